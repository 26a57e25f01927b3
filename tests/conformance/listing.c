/*
 * listing.c: which elections a store knows: each by its exact name, once, in the order of bytes,
 * for as long as the store remembers its terms; and who led them before.
 */
#include "backend.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_MAX 16

struct names {
	struct testcase *t;
	char list[NAMES_MAX][BATON_NAME_MAX + 1];
	int n;
};

/* ---- what a store tells ---- */

static void found_name(void *arg, const char *name)
{
	struct names *names = arg;

	CHECK(names->t, names->n < NAMES_MAX, "more names than there are elections: %s", name);
	snprintf(names->list[names->n++], sizeof(names->list[0]), "%s", name);
}

/* All pages. */
static void list_names(struct testcase *t, struct baton *b, const char *prefix, const char *after,
		       struct names *out)
{
	char last[BATON_NAME_MAX + 1];
	struct baton_error err = {0};
	int rc = 0;

	*out = (struct names){.t = t};
	snprintf(last, sizeof(last), "%s", after);
	do {
		uint64_t end_ns = now_ns() + t->lease_ms * MS;
		int n = out->n;

		do {
			out->n = n;
			rc = baton_list_elections(b, prefix, last, found_name, out, &err);
		} while ((rc == BATON_E_UNAVAILABLE || rc == BATON_E_TIMEOUT) && now_ns() < end_ns);
		CHECK(t, rc >= 0, "list: %s", err.text);
		CHECK(t, out->n == n + rc, "%d names in a page of %d", out->n - n, rc);
		if (rc > 0)
			snprintf(last, sizeof(last), "%s", out->list[out->n - 1]);
	} while (rc > 0);
}

static int by_bytes(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Exactly those of `all` that begin with the prefix and come after `after`. */
static void lists_exactly(struct testcase *t, struct baton *b, const struct names *all,
			  const char *prefix, const char *after)
{
	struct names got;
	int k = 0;

	list_names(t, b, prefix, after, &got);
	for (int i = 0; i < all->n; i++) {
		const char *name = all->list[i];

		if (strncmp(name, prefix, strlen(prefix)) != 0 || strcmp(name, after) <= 0)
			continue;
		CHECK(t, k < got.n && strcmp(got.list[k], name) == 0,
		      "name %d of prefix \"%.60s\" after \"%.60s\" is \"%.100s\", not \"%.100s\"",
		      k, prefix, after, k < got.n ? got.list[k] : "", name);
		k++;
	}
	CHECK(t, k == got.n, "\"%.100s\" is listed, too", got.list[k]);
}

/* ---- N42 ---- */

/* Every byte that a name may have: ASCII, what continues longer forms, and what begins them. */
static void every_byte(struct names *names)
{
	char *at = names->list[names->n++];
	char *end = at + snprintf(at, BATON_NAME_MAX, "%s~", names->t->name);

	for (char c = ' '; c < 0x7f; c++)
		*end++ = c;
	at = names->list[names->n++];
	end = at + snprintf(at, BATON_NAME_MAX, "%s~", names->t->name);
	for (unsigned c = 0x80; c < 0xc0; c++) {
		*end++ = '\xc3';
		*end++ = (char)c;
	}
	at = names->list[names->n++];
	end = at + snprintf(at, BATON_NAME_MAX, "%s~\xc2\xbf", names->t->name);
	for (unsigned c = 0xc4; c < 0xe0; c++) {
		*end++ = (char)c;
		*end++ = '\xa0';
	}
	for (unsigned c = 0xe0; c < 0xf5; c++) {
		*end++ = (char)c;
		*end++ = (char)(c == 0xf4 || c == 0xed ? 0x80 : c == 0xf0 ? 0x90 : 0xa0);
		*end++ = '\x80';
		if (c >= 0xf0)
			*end++ = '\x80';
	}
}

static void make_names(struct names *names)
{
	static const char *const tails[] = {"", "-a", "-a/b", "-a/c", "-ab", "-b", "-B", "+", "%"};

	for (unsigned i = 0; i < sizeof(tails) / sizeof(tails[0]); i++)
		snprintf(names->list[names->n++], sizeof(names->list[0]), "%s%s", names->t->name,
			 tails[i]);
	every_byte(names);
	char *longest = names->list[names->n++];

	memset(longest, 'x', BATON_NAME_MAX);
	memcpy(longest, names->t->name, strlen(names->t->name));
	qsort(names->list, (size_t)names->n, sizeof(names->list[0]), by_bytes);
}

static void elections_are_listed(struct testcase *t)
{
	struct names all = {.t = t};
	struct local *list[NAMES_MAX];
	char prefix[BATON_NAME_MAX + 1];
	char other[80];

	make_names(&all);
	struct local *eye = local_new(t, &(struct cast){.idle = true});

	/* Whoever only looks makes no election. */
	snprintf(other, sizeof(other), "%s-nobody", t->name);
	struct baton_observed status = {0};
	struct baton_error err = {0};

	CHECK(t, patient_observe(t, eye->b, other, &status, &err) == 0, "observe: %s", err.text);
	for (int i = 0; i < all.n; i++) {
		struct cast cast = {.name = all.list[i]};

		list[i] = i == 0 ? local_new(t, &cast) : local_more(list[0], &cast);
	}
	for (int i = 0; i < all.n; i++)
		local_leads(list[i], failover_ms(t));
	lists_exactly(t, eye->b, &all, t->name, "");
	for (int i = 0; i < all.n; i += 3)
		lists_exactly(t, eye->b, &all, t->name, all.list[i]);
	static const char *const tails[] = {"-a", "-a/", "~", "%", "-nobody", "+"};

	for (unsigned i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
		snprintf(prefix, sizeof(prefix), "%s%s", t->name, tails[i]);
		lists_exactly(t, eye->b, &all, prefix, "");
	}
	lists_exactly(t, eye->b, &all, all.list[all.n - 1], "");
	/* Those that are released are known as long as their terms are. */
	for (int i = 0; i < all.n; i++)
		local_stop(list[i]);
	lists_exactly(t, eye->b, &all, t->name, "");
	if (t->backend->forget == NULL)
		return;
	for (int i = all.n - 1; i >= 0; i--)
		local_close(list[i]);
	CHECK(t, t->backend->forget(t), "forget");
	all.n = 0;
	lists_exactly(t, eye->b, &all, t->name, "");
}

/* ---- N44 ---- */

#define PAST_MIN 16
#define PAST_MAX 64

/* What no two neighbours of one history may be. */
static void check_neighbours(struct testcase *t, const struct baton_leadership *later,
			     const struct baton_leadership *earlier)
{
	CHECK(t, later->term > earlier->term, "S3: term %" PRIu64 " after %" PRIu64, later->term,
	      earlier->term);
	CHECK(t, earlier->ended[0] != '\0', "term %" PRIu64 " has not ended", earlier->term);
	if (earlier->clock[0] == '\0' || strcmp(earlier->clock, later->clock) != 0)
		return;
	CHECK(t, earlier->until_ns >= earlier->since_ns && earlier->until_ns <= later->since_ns,
	      "S1: term %" PRIu64 " began before the end of %" PRIu64, later->term, earlier->term);
}

/* The leadership of that term, as the store remembers it. */
static struct baton_leadership remembered(struct testcase *t, struct baton *b, uint64_t term)
{
	static struct baton_leadership list[PAST_MAX];
	struct baton_error err = {0};
	int n = patient_history(t, b, t->name, list, PAST_MAX, &err);

	CHECK(t, n > 0, "history: %s", err.text);
	for (int i = 0; i < n; i++)
		if (list[i].term == term)
			return list[i];
	CHECK(t, false, "term %" PRIu64 " is not in the history", term);
	return list[0];
}

/* An order's note goes with the leadership that it ended. */
static void order_is_noted(struct testcase *t, struct local **two, bool transfers)
{
	static const char note[] = "alice: \xc3\xbc \"1\\2\" {3}";
	struct local *leader = await_leader(t, two, 2, failover_ms(t));
	struct local *other = two[leader == two[0]];
	uint64_t term = local_leads(leader, soon_ms(t));
	struct baton_error err = {0};

	local_sees(other, leader->id, failover_ms(t));
	int rc = transfers ? baton_order_transfer(other->b, t->name, term, other->id, note, &err)
			   : baton_order_resign(other->b, t->name, term, (int64_t)t->lease_ms, note,
						&err);

	CHECK(t, rc == 0, "order: %s", err.text);
	await(t, local_is_no_leader, leader, soon_ms(t), "it to step down");
	/* A target that is slow may find that the old leader was faster. */
	CHECK(t, local_leads(await_leader(t, two, 2, failover_ms(t)), soon_ms(t)) > term, "S3");
	struct baton_leadership h = remembered(t, other->b, term);

	CHECK(t, strcmp(h.ended, transfers ? "transferred" : "ordered") == 0,
	      "after an order: ended: %s", h.ended);
	CHECK(t, strcmp(h.note, note) == 0, "after an order: the note \"%s\"", h.note);
}

/* Two take turns. */
static void past_is_kept(struct testcase *t)
{
	static struct baton_leadership list[PAST_MAX];
	struct local *two[2] = {local_new(t, NULL), local_new(t, NULL)};
	struct baton_error err = {0};
	uint64_t terms[PAST_MIN + 1];
	const char *leaders[PAST_MIN + 1];

	for (unsigned i = 0; i < PAST_MIN + 1; i++) {
		struct local *p = await_leader(t, two, 2, failover_ms(t));

		terms[i] = local_leads(p, soon_ms(t));
		leaders[i] = p->id;
		CHECK(t, i == 0 || terms[i] > terms[i - 1], "S3");
		if (i < PAST_MIN) {
			local_sees(two[p == two[0]], p->id, failover_ms(t));
			CHECK(t, baton_resign(p->e, (int64_t)t->lease_ms / 4) == 0, "resign");
			await(t, local_is_no_leader, p, soon_ms(t), "it to step down");
		}
	}
	int n = patient_history(t, two[0]->b, t->name, list, PAST_MAX, &err);

	CHECK(t, n >= PAST_MIN, "%d leaderships are kept: %s", n, err.text);
	for (int i = 0; i + 1 < n && i + 1 < PAST_MAX; i++)
		check_neighbours(t, &list[i], &list[i + 1]);
	for (unsigned i = 0; i < PAST_MIN; i++) {
		const struct baton_leadership *h = &list[i];

		CHECK(t, h->term == terms[PAST_MIN - i], "term %" PRIu64 " is missing",
		      terms[PAST_MIN - i]);
		CHECK(t, strcmp(h->leader, leaders[PAST_MIN - i]) == 0, "led by %s", h->leader);
		CHECK(t, strcmp(h->ended, i == 0 ? "" : "resigned") == 0, "ended: %s", h->ended);
		CHECK(t, h->note[0] == '\0', "a note that nobody made: %s", h->note);
	}
	order_is_noted(t, two, false);
	order_is_noted(t, two, true);
}

const struct entry cases_listing[] = {
	{"N42", "elections are listed by name, led or not", elections_are_listed, NEEDS_NOTHING,
	 60},
	{"N44", "sixteen leaderships are remembered, and the note that ended one", past_is_kept,
	 NEEDS_HISTORY, 90},
	{NULL, NULL, NULL, 0, 0},
};
