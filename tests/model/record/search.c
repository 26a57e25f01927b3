/*
 * search.c: visits every world that can be reached, breadth first, each once. Worlds are kept
 * whole and compared whole: no two are taken for one because of their hash. When all are known,
 * progress is looked at: what a candidate alone does next leads from each world to another one,
 * and following these steps must come to a leadership, never to a circle.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "model/record/model.h"

#define TEXT_MAX 512
#define WALK_MAX 4096

/* Address space for as many as may come; the kernel gives memory as it is touched. */
struct found {
	uint8_t *bytes;   /* each world: its length, then its bytes, at a multiple of four */
	uint32_t *at;     /* where, in fours */
	uint32_t *before; /* which world each was first reached from */
	uint32_t *table;  /* 0: empty; else the number of a world and one */
	uint64_t n;
	uint64_t max;
	uint64_t used; /* bytes */
	uint64_t max_bytes;
	uint64_t mask;
};

#define NOT_FOUND UINT64_MAX

static void *room(uint64_t n, size_t size)
{
	void *memory = mmap(NULL, n * size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED) {
		perror("model-record");
		exit(2);
	}
	return memory;
}

static void found_init(struct found *f, const struct options *o)
{
	*f = (struct found){.max = o->max_states, .mask = ((uint64_t)1 << 16) - 1};
	f->max_bytes = f->max * (PACKED_MAX / 2);
	f->bytes = room(f->max_bytes, 1);
	f->at = room(f->max, sizeof(f->at[0]));
	f->before = room(f->max, sizeof(f->before[0]));
	f->table = room(f->mask + 1, sizeof(f->table[0]));
}

static void found_done(struct found *f)
{
	(void)munmap(f->bytes, f->max_bytes);
	(void)munmap(f->at, f->max * sizeof(f->at[0]));
	(void)munmap(f->before, f->max * sizeof(f->before[0]));
	(void)munmap(f->table, (f->mask + 1) * sizeof(f->table[0]));
}

static const uint8_t *found_get(const struct found *f, uint64_t i, size_t *n)
{
	const uint8_t *p = f->bytes + (uint64_t)f->at[i] * 4;

	*n = p[0];
	return p + 1;
}

static uint64_t hash_of(const uint8_t *bytes, size_t n)
{
	uint64_t h = 0x9e3779b97f4a7c15u ^ n;

	for (size_t i = 0; i < n; i += 8) { /* packed worlds end in zeros */
		uint64_t word = 0;

		memcpy(&word, bytes + i, n - i < 8 ? n - i : 8);
		h = (h ^ word) * 0xff51afd7ed558ccdu;
		h ^= h >> 32;
	}
	return h;
}

static uint64_t *slot_of(const struct found *f, const uint8_t *bytes, size_t n, uint64_t *slot)
{
	uint64_t i = hash_of(bytes, n) & f->mask;

	for (; f->table[i] != 0; i = (i + 1) & f->mask) {
		size_t size;
		const uint8_t *there = found_get(f, f->table[i] - 1, &size);

		if (size == n && memcmp(there, bytes, n) == 0)
			break;
	}
	*slot = i;
	return slot;
}

static void grow(struct found *f)
{
	uint32_t *was = f->table;
	uint64_t size = (f->mask + 1) * sizeof(f->table[0]);

	f->mask = 2 * f->mask + 1;
	f->table = room(f->mask + 1, sizeof(f->table[0]));
	(void)munmap(was, size);
	for (uint64_t i = 0; i < f->n; i++) {
		size_t n;
		const uint8_t *bytes = found_get(f, i, &n);
		uint64_t at = hash_of(bytes, n) & f->mask;

		while (f->table[at] != 0)
			at = (at + 1) & f->mask;
		f->table[at] = (uint32_t)i + 1;
	}
}

static uint64_t find(const struct found *f, const struct world *w)
{
	uint8_t bytes[PACKED_MAX + 8];
	uint64_t slot;
	size_t n = world_pack(w, bytes);

	(void)slot_of(f, bytes, n, &slot);
	return f->table[slot] == 0 ? NOT_FOUND : f->table[slot] - 1;
}

/* False: it is known, or there is no room. */
static bool add(struct found *f, const struct world *w, uint64_t from, bool *is_full)
{
	uint8_t bytes[PACKED_MAX + 8];
	size_t n = world_pack(w, bytes);
	uint64_t slot;

	(void)slot_of(f, bytes, n, &slot);
	if (f->table[slot] != 0)
		return false;
	if (f->n == f->max || f->used + n + 8 > f->max_bytes) {
		*is_full = true;
		return false;
	}
	f->at[f->n] = (uint32_t)(f->used / 4);
	f->bytes[f->used] = (uint8_t)n;
	memcpy(f->bytes + f->used + 1, bytes, n);
	f->used += (n + 1 + 3) / 4 * 4;
	f->before[f->n] = (uint32_t)from;
	f->table[slot] = (uint32_t)++f->n;
	if (f->n * 3 > f->mask * 2)
		grow(f);
	return true;
}

static void load(const struct found *f, uint64_t i, struct world *w)
{
	size_t n;

	world_unpack(w, found_get(f, i, &n));
}

/* ---- telling ---- */

static void tell(const struct world *w, const char *what)
{
	char text[TEXT_MAX];

	world_text(w, text, sizeof(text));
	(void)printf("    %-50s %s\n", what, text);
}

/* The way to a world, and what happened there in the end. */
static void tell_way(const struct found *f, uint64_t last, const struct action *end)
{
	uint64_t way[WALK_MAX] = {0};
	size_t n = 0;
	struct action actions[ACTIONS_MAX];
	uint8_t order[CANDS];
	char text[TEXT_MAX];
	struct world w;

	for (uint64_t i = last; i != 0 && n < WALK_MAX - 1; i = f->before[i])
		way[n++] = i;
	load(f, 0, &w);
	while (n-- > 0) {
		struct world from = w;
		int n_actions = world_actions(&from, actions);

		for (int k = 0; k < n_actions; k++) {
			w = from;
			world_apply(&w, actions[k]);
			struct world as_is = w;

			world_canon(&w, order);
			if (find(f, &w) == way[n]) {
				action_text(actions[k], text, sizeof(text));
				tell(&as_is, text);
				break;
			}
		}
	}
	if (end != NULL) {
		world_apply(&w, *end);
		action_text(*end, text, sizeof(text));
		tell(&w, text);
	}
}

static void violation(const struct found *f, const struct options *o, struct result *r,
		      uint64_t from, const struct action *a)
{
	enum rule rule = broken;

	r->n_violations++;
	r->first[rule] = f->n;
	if (o->go_on)
		return;
	(void)printf("%s: %s\n", rule_name(rule), rule_text(rule));
	tell_way(f, from, a);
}

/* ---- all worlds ---- */

static void expand(struct found *f, const struct options *o, struct result *r, uint64_t i)
{
	struct action actions[ACTIONS_MAX];
	uint8_t order[CANDS];
	struct world from;
	bool is_full = false;

	load(f, i, &from);
	int n = world_actions(&from, actions);

	for (int k = 0; k < n && r->n_violations == 0; k++) {
		struct world w = from;

		r->whats |= (uint64_t)1 << actions[k].what;
		broken = RULE_NONE;
		world_apply(&w, actions[k]);
		if (broken == RULE_NONE)
			rules_check(&w);
		if (broken != RULE_NONE) {
			violation(f, o, r, i, &actions[k]);
			continue;
		}
		world_canon(&w, order);
		(void)add(f, &w, i, &is_full);
		if (is_full)
			r->complete = false;
	}
}

/* ---- progress ---- */

enum mark { MARK_NONE, MARK_GOOD, MARK_PATH };

struct walk {
	uint8_t *marks[CANDS];
	uint64_t path[WALK_MAX];
	uint8_t who[WALK_MAX];
	int n;
};

static int place_of(const uint8_t order[CANDS], int c)
{
	int i = 0;

	while (order[i] != c)
		i++;
	return i;
}

/* Follows one candidate from one world. False: it goes in a circle, or out of the search. */
static bool walk_from(const struct found *f, struct walk *k, uint64_t i, int c, int e)
{
	uint8_t order[CANDS];
	struct action a;
	struct world w;
	bool good = true;

	for (k->n = 0; k->n < WALK_MAX; k->n++) {
		if (k->marks[c][i] == MARK_GOOD)
			break;
		load(f, i, &w);
		k->path[k->n] = i;
		k->who[k->n] = (uint8_t)c;
		good = k->marks[c][i] != MARK_PATH;
		if (!good)
			break;
		k->marks[c][i] = MARK_PATH;
		if (!world_alone(&w, c, e, &a)) {
			k->n++;
			break;
		}
		broken = RULE_NONE;
		world_apply(&w, a);
		world_canon(&w, order);
		i = find(f, &w);
		c = place_of(order, c);
		if (i == NOT_FOUND) {
			good = false;
			break;
		}
	}
	for (int n = 0; n < k->n; n++)
		k->marks[k->who[n]][k->path[n]] = good ? MARK_GOOD : MARK_NONE;
	return good;
}

static void tell_walk(const struct found *f, uint64_t i, int c, int e)
{
	uint8_t order[CANDS];
	char text[TEXT_MAX];
	struct action a;
	struct world w;

	load(f, i, &w);
	(void)printf("    alone from here: %c\n", 'a' + c);
	for (int n = 0; n < 40 && world_alone(&w, c, e, &a); n++) {
		world_apply(&w, a);
		action_text(a, text, sizeof(text));
		tell(&w, text);
		world_canon(&w, order);
		c = place_of(order, c);
		if (find(f, &w) == NOT_FOUND) {
			(void)printf("    which was never reached\n");
			break;
		}
	}
}

static void check_progress(const struct found *f, const struct options *o, struct result *r)
{
	struct walk *k = room(1, sizeof(*k));

	for (int c = 0; c < setup->cands; c++)
		k->marks[c] = room(f->n, 1);
	for (int e = 0; e < setup->elections; e++) {
		for (int c = 0; c < setup->cands; c++)
			memset(k->marks[c], 0, f->n);
		for (uint64_t i = 0; i < f->n && r->n_violations == 0; i++) {
			for (int c = 0; c < setup->cands && r->n_violations == 0; c++) {
				if (walk_from(f, k, i, c, e))
					continue;
				broken = RULE_L1_PROGRESS;
				violation(f, o, r, i, NULL);
				if (!o->go_on)
					tell_walk(f, i, c, e);
			}
		}
	}
	r->progress = true;
	for (int c = 0; c < setup->cands; c++)
		(void)munmap(k->marks[c], f->n);
	(void)munmap(k, sizeof(*k));
}

void search_run(const struct setup *s, const struct options *o, struct result *r)
{
	struct found f;
	struct world w;
	uint8_t order[CANDS];
	uint64_t level_end = 1;
	bool is_full = false;

	setup = s;
	*r = (struct result){.complete = true};
	found_init(&f, o);
	world_init(&w);
	world_canon(&w, order);
	(void)add(&f, &w, 0, &is_full);
	for (uint64_t i = 0; i < f.n && r->n_violations == 0; i++) {
		if (i == level_end) {
			r->depth++;
			level_end = f.n;
			if (o->verbose)
				(void)fprintf(stderr, "depth %u: %llu states\n", r->depth,
					      (unsigned long long)f.n);
			if (s->depth != 0 && r->depth == s->depth) {
				r->complete = false;
				break;
			}
		}
		expand(&f, o, r, i);
	}
	r->n_states = f.n;
	if (r->complete && r->n_violations == 0)
		check_progress(&f, o, r);
	found_done(&f);
}
