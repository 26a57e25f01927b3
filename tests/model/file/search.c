/*
 * search.c: visits every world that can be reached, breadth first, each once. Worlds are kept
 * whole and compared whole: no two are taken for one because of their hash.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "model/file/model.h"

/* Address space for as many as may come; the kernel gives memory as it is touched. */
struct found {
	struct world *worlds;
	uint32_t *before; /* which world each was first reached from */
	uint32_t *table;  /* 0: empty; else the number of a world and one */
	uint64_t n;
	uint64_t max;
	uint64_t mask;
};

static void tell_way(const struct found *f, const struct bounds *b, enum variant v, uint64_t last);
static bool search_add(struct found *f, const struct world *w, uint64_t from);

static void *room(uint64_t n, size_t size)
{
	void *memory = mmap(NULL, n * size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED) {
		perror("model-file");
		exit(2);
	}
	return memory;
}

static void found_init(struct found *f, uint64_t max)
{
	uint64_t slots = 1024;

	while (slots < max * 2)
		slots *= 2;
	*f = (struct found){.max = max, .mask = slots - 1};
	f->worlds = room(max, sizeof(f->worlds[0]));
	f->before = room(max, sizeof(f->before[0]));
	f->table = room(slots, sizeof(f->table[0]));
}

static void found_done(struct found *f)
{
	(void)munmap(f->worlds, f->max * sizeof(f->worlds[0]));
	(void)munmap(f->before, f->max * sizeof(f->before[0]));
	(void)munmap(f->table, (f->mask + 1) * sizeof(f->table[0]));
}

struct result search(const struct bounds *b, enum variant v, uint64_t max, bool tell)
{
	struct result r = {.complete = true};
	struct found f;
	struct world w;
	uint64_t level_end = 1;

	found_init(&f, max);
	world_init(&w, b);
	(void)search_add(&f, &w, 0);
	for (uint64_t i = 0; i < f.n && r.objection == NULL; i++) {
		struct action actions[ACTIONS_MAX];
		int n = world_actions(&f.worlds[i], b, actions);

		if (i == level_end) {
			r.depth++;
			level_end = f.n;
		}
		for (int k = 0; k < n && r.objection == NULL; k++) {
			w = f.worlds[i];
			world_apply(&w, b, v, actions[k]);
			if (!b->plain)
				world_fold(&w);
			if (!search_add(&f, &w, i)) {
				r.complete = r.complete && f.n < f.max;
				continue;
			}
			r.objection = world_objection(&w, b, v);
		}
	}
	r.states = f.n;
	if (r.objection != NULL) {
		r.depth++;
		r.complete = false;
		if (tell)
			tell_way(&f, b, v, f.n - 1);
	}
	found_done(&f);
	return r;
}

static uint64_t hash_of(const struct world *w)
{
	uint64_t words[sizeof(*w) / 8];
	uint64_t hash = 0x9e3779b97f4a7c15u;

	memcpy(words, w, sizeof(*w));
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		hash = (hash ^ words[i]) * 0xff51afd7ed558ccdu;
		hash ^= hash >> 32;
	}
	return hash;
}

/* False: it is known already, or there is no more room. */
static bool search_add(struct found *f, const struct world *w, uint64_t from)
{
	uint64_t at = hash_of(w) & f->mask;

	while (f->table[at] != 0) {
		if (memcmp(&f->worlds[f->table[at] - 1], w, sizeof(*w)) == 0)
			return false;
		at = (at + 1) & f->mask;
	}
	if (f->n >= f->max)
		return false;
	f->worlds[f->n] = *w;
	f->before[f->n] = (uint32_t)from;
	f->n++;
	f->table[at] = (uint32_t)f->n;
	return true;
}

/* Which action leads from one world to the next; the way is told from its beginning. */
static void tell_way(const struct found *f, const struct bounds *b, enum variant v, uint64_t last)
{
	if (last == 0)
		return;
	uint64_t from = f->before[last];
	struct action actions[ACTIONS_MAX];
	int n = world_actions(&f->worlds[from], b, actions);

	tell_way(f, b, v, from);
	for (int k = 0; k < n; k++) {
		struct world w = f->worlds[from];
		char words[80];

		world_apply(&w, b, v, actions[k]);
		if (memcmp(&w, &f->worlds[last], sizeof(w)) != 0)
			continue;
		world_tell(&f->worlds[from], actions[k], words, sizeof(words));
		(void)printf("    %s\n", words);
		return;
	}
}
