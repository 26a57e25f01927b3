/*
 * codec.c: see codec.h. Each kind of record is described once, by a function that names its fields
 * in their order. Its struct codec says whether it reads or writes them. So a parser takes what its
 * writer makes, and nothing else.
 */
#include "store/record/decide/codec.h"

#include <string.h>

#include "store/record/decide/parts.h"

/* One pass over a text, which ends at the first thing that is wrong. */
struct codec {
	char *out; /* NULL: it reads */
	const char *in;
	size_t n; /* bytes of `in`, or room in `out` */
	size_t at;
	bool is_bad;
};

static const char *const order_words[] = {"", "resign", "transfer"};

#define N_ORDER_WORDS 3

/* ---- pieces ---- */

static void fail(struct codec *c)
{
	c->is_bad = true;
}

static char next(const struct codec *c)
{
	return (char)(c->at < c->n ? c->in[c->at] : '\0');
}

static void put(struct codec *c, const char *bytes, size_t n)
{
	if (c->is_bad || n > c->n - c->at) {
		fail(c);
		return;
	}
	(void)memcpy(c->out + c->at, bytes, n);
	c->at += n;
}

/* Reads or writes exactly this text. */
static void do_literal(struct codec *c, const char *text)
{
	size_t n = strlen(text);

	if (c->out != NULL)
		put(c, text, n);
	else if (c->is_bad || n > c->n - c->at || memcmp(c->in + c->at, text, n) != 0)
		fail(c);
	else
		c->at += n;
}

static void put_digits(struct codec *c, uint64_t value)
{
	char digits[20];
	size_t i = sizeof(digits);

	do {
		digits[--i] = (char)('0' + value % 10);
		value /= 10;
	} while (value > 0);
	put(c, digits + i, sizeof(digits) - i);
}

/* Without leading zeros. */
static uint64_t get_digits(struct codec *c)
{
	size_t first = c->at;
	uint64_t value = 0;

	for (; next(c) >= '0' && next(c) <= '9'; c->at++)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(next(c) - '0'), &value))
			fail(c);
	if (c->at == first || (c->in[first] == '0' && c->at > first + 1))
		fail(c);
	return value;
}

static void do_count(struct codec *c, uint64_t *value, uint64_t min, uint64_t max)
{
	if (c->out != NULL)
		put_digits(c, *value);
	else
		*value = get_digits(c);
	if (*value < min || *value > max)
		fail(c);
}

static void do_signed(struct codec *c, int64_t *value)
{
	bool is_negative = c->out != NULL ? *value < 0 : next(c) == '-';
	uint64_t size = *value < 0 ? 0 - (uint64_t)*value : (uint64_t)*value;

	if (is_negative)
		do_literal(c, "-");
	do_count(c, &size, is_negative ? 1 : 0, (uint64_t)INT64_MAX + is_negative);
	if (c->out == NULL)
		*value = is_negative ? (int64_t)(0 - size) : (int64_t)size;
}

/* ---- strings ---- */

/* How many bytes the character at s has. 0: it is not UTF-8 in its shortest form, or is a control
 * character. */
static size_t character_size(const char *s, size_t n)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	const unsigned char *b = (const unsigned char *)s;
	size_t size = b[0] < 0x80 ? 1 : b[0] < 0xe0 ? 2 : b[0] < 0xf0 ? 3 : 4;
	uint32_t rune = size == 1 ? b[0] : b[0] & (0x7fu >> size);

	if ((b[0] >= 0x80 && b[0] < 0xc0) || b[0] >= 0xf8 || size > n)
		return 0;
	for (size_t i = 1; i < size; i++) {
		if ((b[i] & 0xc0) != 0x80)
			return 0;
		rune = rune << 6 | (b[i] & 0x3fu);
	}
	if (rune < 0x20 || (rune >= 0x7f && rune <= 0x9f) || rune < least[size] ||
	    rune > 0x10ffff || (rune >= 0xd800 && rune <= 0xdfff))
		return 0;
	return size;
}

static void put_string(struct codec *c, const char *text)
{
	size_t n = strlen(text);

	for (size_t at = 0, size; at < n && !c->is_bad; at += size) {
		size = character_size(text + at, n - at);
		if (size == 0) {
			fail(c);
			return;
		}
		if (text[at] == '"' || text[at] == '\\')
			put(c, "\\", 1);
		put(c, text + at, size);
	}
}

/* Reads up to the closing quote. */
static void get_string(struct codec *c, char *text, size_t room)
{
	size_t n = 0;

	while (c->at < c->n && c->in[c->at] != '"') {
		bool is_escaped = c->in[c->at] == '\\';
		size_t at = c->at + is_escaped;
		size_t size = at < c->n ? character_size(c->in + at, c->n - at) : 0;

		if (is_escaped && size == 1 && c->in[at] != '"' && c->in[at] != '\\')
			size = 0;
		if (size == 0 || (is_escaped && size > 1) || n + size >= room) {
			fail(c);
			break;
		}
		(void)memcpy(text + n, c->in + at, size);
		n += size;
		c->at = at + size;
	}
	text[n] = '\0';
}

static void do_string(struct codec *c, char *text, size_t room)
{
	do_literal(c, "\"");
	if (c->out != NULL)
		put_string(c, text);
	else
		get_string(c, text, room);
	do_literal(c, "\"");
}

/* ---- values behind their key ---- */

#define DO_STRING(c, key, text) \
	do_literal(c, key);     \
	do_string(c, text, sizeof(text))

/* A number of 64 bits, written as a string. */
static void do_number(struct codec *c, const char *key, uint64_t *value, uint64_t min, uint64_t max)
{
	do_literal(c, key);
	do_literal(c, "\"");
	do_count(c, value, min, max);
	do_literal(c, "\"");
}

static void do_time(struct codec *c, const char *key, int64_t *value)
{
	do_literal(c, key);
	do_literal(c, "\"");
	do_signed(c, value);
	do_literal(c, "\"");
}

static void do_score(struct codec *c, const char *key, uint32_t *value)
{
	uint64_t wide = *value;

	do_literal(c, key);
	do_count(c, &wide, 0, UINT32_MAX);
	*value = (uint32_t)wide;
}

static void do_priority(struct codec *c, const char *key, int32_t *value)
{
	int64_t wide = *value;

	do_literal(c, key);
	do_signed(c, &wide);
	if (wide < INT32_MIN || wide > INT32_MAX)
		fail(c);
	*value = (int32_t)wide;
}

static void do_bool(struct codec *c, const char *key, bool *value)
{
	do_literal(c, key);
	if (c->out == NULL)
		*value = next(c) == 't';
	do_literal(c, *value ? "true" : "false");
}

/* One of a list of words. */
static void do_word(struct codec *c, uint32_t *value, const char *const *words, uint32_t n)
{
	char text[RECORD_WORD_MAX + 1] = "";

	if (c->out != NULL && *value < n)
		record_copy_text(text, sizeof(text), words[*value]);
	do_string(c, text, sizeof(text));
	for (uint32_t i = 1; i < n; i++) {
		if (record_same_text(text, words[i])) {
			*value = i;
			return;
		}
	}
	fail(c);
}

/* A lease's id, which stands in keys and paths: hex digits and '-'. "": no lease. */
static void do_lease_id(struct codec *c, const char *key, char id[BATON_LEASE_ID_MAX + 1])
{
	do_literal(c, key);
	do_string(c, id, BATON_LEASE_ID_MAX + 1);
	for (const char *p = id; !c->is_bad && *p != '\0'; p++)
		if (!(*p >= '0' && *p <= '9') && !(*p >= 'a' && *p <= 'f') && *p != '-')
			fail(c);
}

/* ---- records ---- */

static void do_lease(struct codec *c, struct record_lease *l)
{
	do_number(c, "{\"w\":", &l->w, 0, UINT64_MAX);
	do_number(c, ",\"ttl\":", &l->ttl_ns, 1, INT64_MAX);
	do_number(c, ",\"beat\":", &l->beat, 0, UINT64_MAX);
	DO_STRING(c, ",\"owner\":", l->owner);
	DO_STRING(c, ",\"address\":", l->address);
	do_literal(c, ",\"dead\":");
	if (c->out != NULL ? l->death == RECORD_ALIVE : next(c) == 'f')
		do_literal(c, "false");
	else
		do_word(c, &l->death, record_death_words, RECORD_DEATHS);
	do_literal(c, "}");
}

static void do_order(struct codec *c, struct record_election *e)
{
	do_literal(c, ",\"order\":");
	if (c->out != NULL ? e->order_id == 0 : next(c) == 'n') {
		do_literal(c, "null");
		return;
	}
	do_number(c, "{\"id\":", &e->order_id, 1, UINT64_MAX);
	do_number(c, ",\"term\":", &e->order_term, 1, TERM_MAX);
	do_literal(c, ",\"kind\":");
	do_word(c, &e->order_kind, order_words, N_ORDER_WORDS);
	do_number(c, ",\"quiet\":", &e->order_quiet_ms, 0, UINT64_MAX);
	DO_STRING(c, ",\"target\":", e->order_target);
	DO_STRING(c, ",\"note\":", e->order_note);
	do_literal(c, "}");
}

static void do_reservation(struct codec *c, struct record_election *e)
{
	do_literal(c, ",\"reserved\":");
	if (c->out != NULL ? e->reserved_for[0] == '\0' : next(c) == 'n') {
		do_literal(c, "null");
		return;
	}
	DO_STRING(c, "{\"for\":", e->reserved_for);
	if (e->reserved_for[0] == '\0')
		fail(c);
	do_number(c, ",\"hold\":", &e->hold_ns, 0, UINT64_MAX);
	do_number(c, ",\"term\":", &e->hold_term, 1, TERM_MAX);
	do_literal(c, "}");
}

static void do_past(struct codec *c, struct record_election *e)
{
	do_literal(c, ",\"past\":[");
	for (uint32_t i = 0; !c->is_bad && (c->out != NULL ? i < e->n_past : next(c) != ']'); i++) {
		struct record_past *p = &e->past[i];

		if (i == RECORD_PAST_MAX) {
			fail(c);
			return;
		}
		if (i > 0)
			do_literal(c, ",");
		e->n_past = c->out != NULL ? e->n_past : i + 1;
		do_number(c, "{\"term\":", &p->term, 1, TERM_MAX);
		DO_STRING(c, ",\"leader\":", p->leader);
		do_time(c, ",\"since\":", &p->since_ms);
		do_time(c, ",\"until\":", &p->until_ms);
		DO_STRING(c, ",\"ended\":", p->ended);
		DO_STRING(c, ",\"note\":", p->note);
		do_literal(c, "}");
	}
	do_literal(c, "]");
}

static void do_election(struct codec *c, struct record_election *e)
{
	do_number(c, "{\"w\":", &e->w, 0, UINT64_MAX);
	DO_STRING(c, ",\"name\":", e->name);
	do_number(c, ",\"term\":", &e->term, 0, TERM_MAX);
	do_lease_id(c, ",\"lease\":", e->lease);
	do_number(c, ",\"nonce\":", &e->nonce, 0, UINT64_MAX);
	do_number(c, ",\"ttl\":", &e->ttl_ns, e->lease[0] != '\0' ? 1 : 0, INT64_MAX);
	DO_STRING(c, ",\"leader\":", e->leader);
	DO_STRING(c, ",\"address\":", e->address);
	DO_STRING(c, ",\"metadata\":", e->metadata);
	do_priority(c, ",\"priority\":", &e->priority);
	do_score(c, ",\"score\":", &e->score_permille);
	do_time(c, ",\"since\":", &e->since_ms);
	do_bool(c, ",\"paused\":", &e->paused);
	do_order(c, e);
	do_reservation(c, e);
	do_past(c, e);
	do_literal(c, "}");
}

static int parsed(const struct codec *c)
{
	return c->is_bad || c->at != c->n ? -1 : 0;
}

static size_t written(const struct codec *c)
{
	return c->is_bad ? 0 : c->at;
}

int record_parse_lease(const char *text, size_t n, struct record_lease *out)
{
	struct codec c = {.in = text, .n = n};

	(void)memset(out, 0, sizeof(*out));
	do_lease(&c, out);
	return parsed(&c);
}

int record_parse_election(const char *text, size_t n, struct record_election *out)
{
	struct codec c = {.in = text, .n = n};

	(void)memset(out, 0, sizeof(*out));
	do_election(&c, out);
	return parsed(&c);
}

/* The casts take the const away; a writer leaves all values as they are. */
size_t record_write_lease(const struct record_lease *lease, char *out, size_t size)
{
	struct codec c = {.out = out, .n = size};

	do_lease(&c, (struct record_lease *)(uintptr_t)lease);
	return written(&c);
}

size_t record_write_election(const struct record_election *election, char *out, size_t size)
{
	struct codec c = {.out = out, .n = size};

	do_election(&c, (struct record_election *)(uintptr_t)election);
	return written(&c);
}

/* ---- candidates ---- */

#define NAMES_KEY "],\"names\":["
#define PAGE_TAIL "]}"
/* Room that is kept free, so that a page can always be ended. */
#define PAGE_END (sizeof(NAMES_KEY) - 1 + sizeof(PAGE_TAIL) - 1)

static void do_head(struct codec *c, struct record_candidates *h)
{
	do_number(c, "{\"w\":", &h->w, 0, UINT64_MAX);
	DO_STRING(c, ",\"owner\":", h->owner);
	DO_STRING(c, ",\"address\":", h->address);
	do_literal(c, ",\"profiles\":[");
}

static void do_profile(struct codec *c, struct record_profile *p)
{
	DO_STRING(c, "{\"metadata\":", p->metadata);
	do_priority(c, ",\"priority\":", &p->priority);
	do_score(c, ",\"score\":", &p->score_permille);
	do_bool(c, ",\"healthy\":", &p->is_healthy);
	do_time(c, ",\"updated\":", &p->updated_ms);
	do_literal(c, "}");
}

static void do_name(struct codec *c, char name[BATON_NAME_MAX + 1], uint64_t *profile,
		    size_t n_profiles)
{
	do_literal(c, "[");
	do_string(c, name, BATON_NAME_MAX + 1);
	do_literal(c, ",");
	do_count(c, profile, 0, n_profiles - 1);
	do_literal(c, "]");
}

void record_page_begin(struct record_page *p, char *out, size_t size, uint64_t w, const char *owner,
		       const char *address)
{
	struct codec c = {.out = out, .n = size < PAGE_END ? 0 : size - PAGE_END};
	struct record_candidates head = {.w = w};

	record_copy_text(head.owner, sizeof(head.owner), owner);
	record_copy_text(head.address, sizeof(head.address), address);
	do_head(&c, &head);
	*p = (struct record_page){.out = out, .size = c.n, .n = written(&c)};
}

bool record_page_add_profile(struct record_page *p, const struct record_profile *profile)
{
	struct codec c = {.out = p->out, .n = p->size, .at = p->n};

	if (p->n_profiles > 0)
		do_literal(&c, ",");
	do_profile(&c, (struct record_profile *)(uintptr_t)profile);
	if (p->n == 0 || c.is_bad)
		return false;
	p->n = c.at;
	p->n_profiles++;
	return true;
}

bool record_page_add_name(struct record_page *p, const char *name, size_t profile)
{
	struct codec c = {.out = p->out, .n = p->size, .at = p->n};
	uint64_t number = profile;

	do_literal(&c, p->n_names > 0 ? "," : NAMES_KEY);
	do_name(&c, (char *)(uintptr_t)name, &number, p->n_profiles);
	if (p->n_profiles == 0 || c.is_bad)
		return false;
	p->n = c.at;
	p->n_names++;
	return true;
}

size_t record_page_end(struct record_page *p)
{
	struct codec c = {.out = p->out, .n = p->size + PAGE_END, .at = p->n};

	do_literal(&c, p->n_names > 0 ? PAGE_TAIL : NAMES_KEY PAGE_TAIL);
	return p->n == 0 ? 0 : c.at;
}

int record_parse_candidates(const char *text, size_t n, struct record_candidates *out)
{
	struct codec c = {.in = text, .n = n};
	char name[BATON_NAME_MAX + 1];
	struct record_profile profile;
	uint64_t number;

	(void)memset(out, 0, sizeof(*out));
	out->text = text;
	out->n = n;
	do_head(&c, out);
	out->profiles_at = c.at;
	for (; !c.is_bad && next(&c) != ']'; out->n_profiles++) {
		if (out->n_profiles > 0)
			do_literal(&c, ",");
		profile = (struct record_profile){0};
		do_profile(&c, &profile);
	}
	do_literal(&c, NAMES_KEY);
	out->names_at = c.at;
	for (; !c.is_bad && next(&c) != ']'; out->n_names++) {
		if (out->n_names > 0)
			do_literal(&c, ",");
		do_name(&c, name, &number, out->n_profiles);
		if (out->n_profiles == 0)
			fail(&c);
	}
	do_literal(&c, PAGE_TAIL);
	return parsed(&c);
}

void record_candidates_profile(const struct record_candidates *from, size_t i,
			       struct record_profile *out)
{
	struct codec c = {.in = from->text, .n = from->n, .at = from->profiles_at};

	for (size_t k = 0; k <= i; k++) {
		if (k > 0)
			do_literal(&c, ",");
		(void)memset(out, 0, sizeof(*out));
		do_profile(&c, out);
	}
}

bool record_candidates_name(const struct record_candidates *from, size_t *at,
			    char name[BATON_NAME_MAX + 1], size_t *profile)
{
	struct codec c = {.in = from->text, .n = from->n, .at = *at};
	uint64_t number = 0;

	if (*at == 0)
		c.at = from->names_at;
	if (next(&c) == ']')
		return false;
	if (*at != 0)
		do_literal(&c, ",");
	do_name(&c, name, &number, from->n_profiles);
	*profile = (size_t)number;
	*at = c.at;
	return true;
}
