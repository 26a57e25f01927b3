/* expiry.c: finds the leases that have surely ended. expiry.h has the proof. */
#include "store/postgres/expiry.h"

#include <stdlib.h>
#include <string.h>

#define NS_PER_US 1000u

static int64_t min_us(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static uint64_t max_ns(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Makes one sample of every two neighbours: it covers the times of both, and has the lower
 * bound. */
static void clock_condense(struct expiry_clock *c)
{
	size_t to = 0;

	for (size_t i = 0; i + 1 < c->n; i += 2) {
		const struct expiry_sample *a = &c->list[i];
		const struct expiry_sample *b = &c->list[i + 1];

		c->list[to++] = (struct expiry_sample){.from_ns = a->from_ns,
						       .to_ns = b->to_ns,
						       .asked_ns = b->asked_ns,
						       .gap_ns = max_ns(a->gap_ns, b->gap_ns),
						       .low_us = min_us(a->low_us, b->low_us)};
	}
	c->n = to;
}

void expiry_clock_add(struct expiry_clock *c, uint64_t asked_ns, uint64_t read_ns,
		      int64_t server_us)
{
	/* The rounding only lowers the bound, so that it stays a bound. */
	int64_t low_us = server_us - (int64_t)(read_ns / NS_PER_US) - 1;

	if (asked_ns > c->asked_ns)
		c->asked_ns = asked_ns;
	/* Answers come in any order; an older one adds only its bound. */
	if (c->n > 0 && read_ns < c->list[c->n - 1].to_ns) {
		c->list[c->n - 1].low_us = min_us(c->list[c->n - 1].low_us, low_us);
		return;
	}
	if (c->n == EXPIRY_SAMPLES)
		clock_condense(c);
	uint64_t before_ns = c->n > 0 ? c->list[c->n - 1].asked_ns : read_ns;

	c->list[c->n++] = (struct expiry_sample){.from_ns = read_ns,
						 .to_ns = read_ns,
						 .asked_ns = asked_ns,
						 .gap_ns = read_ns - before_ns,
						 .low_us = low_us};
}

/* The lowest bound of the last span, including the sample before it. False: the samples don't reach
 * back so far, or two of them in a row are more than half a span apart. */
static bool clock_lowest(const struct expiry_clock *c, uint64_t now_ns, uint64_t span_ns,
			 int64_t *low_us)
{
	uint64_t begin_ns = now_ns > span_ns ? now_ns - span_ns : 0;

	if (c->n == 0 || c->list[0].from_ns > begin_ns)
		return false;
	*low_us = INT64_MAX;
	for (size_t i = c->n; i > 0; i--) {
		const struct expiry_sample *sample = &c->list[i - 1];
		bool is_before = sample->to_ns <= begin_ns;

		*low_us = min_us(*low_us, sample->low_us);
		if (!is_before && sample->gap_ns > span_ns / 2)
			return false;
		if (sample->from_ns <= begin_ns)
			break;
	}
	return true;
}

static uint64_t to_boot_ns(int64_t server_us, int64_t low_us)
{
	int64_t us;

	if (__builtin_sub_overflow(server_us, low_us, &us) || us > INT64_MAX / 2000)
		return EXPIRY_NEVER;
	return us < 0 ? 0 : ((uint64_t)us + 1) * NS_PER_US;
}

uint64_t expiry_end_ns(const struct watched_lease *s, const struct expiry_clock *c, uint64_t now_ns)
{
	uint64_t watched_ns =
		s->ttl_ns > EXPIRY_NEVER - s->since_ns ? EXPIRY_NEVER : s->since_ns + s->ttl_ns;
	uint64_t clock_ns = EXPIRY_NEVER;
	int64_t low_us;

	if (s->gone || s->freed)
		return 0;
	if (c->asked_ns >= s->since_ns && clock_lowest(c, now_ns, s->ttl_ns, &low_us))
		clock_ns = to_boot_ns(s->expires_us, low_us);
	return clock_ns < watched_ns ? clock_ns : watched_ns;
}

/* ---- the list ---- */

void expiry_done(struct watched_leases *s)
{
	free(s->list);
	*s = (struct watched_leases){0};
}

struct watched_lease *expiry_find(const struct watched_leases *s, const char *id)
{
	for (size_t i = 0; i < s->n; i++)
		if (strcmp(s->list[i].id, id) == 0)
			return &s->list[i];
	return NULL;
}

static struct watched_lease *expiry_add(struct watched_leases *s, const char *id)
{
	size_t length = strlen(id);

	if (length >= EXPIRY_ID_SIZE)
		return NULL;
	if (s->n == s->room) {
		size_t room = s->room != 0 ? 2 * s->room : 8;
		struct watched_lease *list = realloc(s->list, room * sizeof(*list));

		if (list == NULL)
			return NULL;
		s->list = list;
		s->room = room;
	}
	struct watched_lease *one = &s->list[s->n++];

	*one = (struct watched_lease){.seq = -1};
	(void)memcpy(one->id, id, length + 1);
	return one;
}

struct watched_lease *expiry_note(struct watched_leases *s, const char *id, int64_t seq,
				  int64_t expires_us, uint64_t ttl_ns, uint64_t read_ns)
{
	struct watched_lease *one = expiry_find(s, id);
	bool is_new = one == NULL;

	if (is_new && (one = expiry_add(s, id)) == NULL)
		return NULL;
	/* The wait begins anew even if `seq` went back: then answers overtook each other, or the
	 * server lost data. Beginning anew costs time only. */
	if (is_new || seq != one->seq) {
		one->since_ns = read_ns;
		one->told = false;
		one->freed = false;
	}
	one->gone = false;
	one->noted_ns = read_ns;
	one->seq = seq;
	one->expires_us = expires_us;
	one->ttl_ns = ttl_ns;
	return one;
}

void expiry_drop(struct watched_leases *s, const char *id)
{
	struct watched_lease *one = expiry_find(s, id);

	if (one != NULL)
		*one = s->list[--s->n];
}

bool expiry_missed(struct watched_leases *s, uint64_t asked_ns)
{
	bool any = false;

	for (size_t i = 0; i < s->n; i++) {
		struct watched_lease *one = &s->list[i];

		if (one->noted_ns >= asked_ns || one->gone)
			continue;
		one->gone = true;
		one->told = false;
		any = true;
	}
	return any;
}

void expiry_drop_gone(struct watched_leases *s)
{
	for (size_t i = s->n; i > 0; i--)
		if (s->list[i - 1].gone)
			s->list[i - 1] = s->list[--s->n];
}
