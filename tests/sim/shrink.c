/*
 * shrink.c: makes a failing world small. Every fault that was applied has an id, and so has every
 * process; delta debugging looks for ids that can be left out while the same invariant still
 * breaks. What remains is printed as a seed file: for the reader now, for tests/seeds ever after.
 *
 * A seed file, line by line: `# comment`, `seed N`, `invariant NAME`, `skip ID ID ...`.
 */
#include "sim.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUNS_MAX 3000 /* a bound on patience */

struct ids {
	uint64_t *id;
	size_t n;
	size_t size;
};

static void *grow(void *list, size_t bytes)
{
	void *more = realloc(list, bytes);

	if (more == NULL)
		abort();
	return more;
}

static void ids_add(struct ids *s, uint64_t id)
{
	if (s->n == s->size) {
		s->size = s->size == 0 ? 64 : 2 * s->size;
		s->id = grow(s->id, s->size * sizeof(*s->id));
	}
	s->id[s->n++] = id;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void ids_sort(struct ids *s)
{
	size_t n = 0;

	if (s->n == 0)
		return;
	qsort(s->id, s->n, sizeof(*s->id), compare);
	for (size_t i = 0; i < s->n; i++)
		if (n == 0 || s->id[i] != s->id[n - 1])
			s->id[n++] = s->id[i];
	s->n = n;
}

static void run_with(struct world *w, uint64_t seed, const struct ids *skip)
{
	w->skips = (struct skips){.id = skip->id, .n = skip->n};
	world_run(w, seed);
	w->skips = (struct skips){0};
}

/* Tries to leave out a stretch of what is still there. True: it still fails. */
static bool try_without(struct world *w, uint64_t seed, int inv, struct ids *skip,
			const struct ids *there, size_t from, size_t n)
{
	struct ids more = {0};

	for (size_t i = 0; i < skip->n; i++)
		ids_add(&more, skip->id[i]);
	for (size_t i = from; i < from + n && i < there->n; i++)
		ids_add(&more, there->id[i]);
	ids_sort(&more);
	run_with(w, seed, &more);
	if (w->violation.inv != inv) {
		free(more.id);
		return false;
	}
	free(skip->id);
	*skip = more;
	return true;
}

/* What is there in the world as it last ran: processes and applied faults. */
static void list_there(const struct world *w, const struct ids *skip, struct ids *there)
{
	struct skips s = {.id = skip->id, .n = skip->n};

	there->n = 0;
	for (uint64_t i = 0; i < w->params.n_procs; i++)
		if (!skips_has(&s, SKIP_PROC | i))
			ids_add(there, SKIP_PROC | i);
	for (size_t i = 0; i < w->n_applied; i++)
		if (w->applied[i] != 0)
			ids_add(there, w->applied[i]);
	ids_sort(there);
}

static void reduce(struct world *w, uint64_t seed, int inv, struct ids *skip)
{
	struct ids there = {0};
	unsigned runs = 0;
	size_t chunk;

	run_with(w, seed, skip);
	list_there(w, skip, &there);
	chunk = there.n / 2 + 1;
	for (bool again = true; runs < RUNS_MAX && (again || chunk > 1);) {
		again = false;
		for (size_t i = 0; i < there.n && runs < RUNS_MAX; runs++) {
			if (try_without(w, seed, inv, skip, &there, i, chunk)) {
				list_there(w, skip, &there);
				again = true;
			} else {
				i += chunk;
			}
		}
		if (chunk > 1)
			chunk /= 2;
	}
	free(there.id);
}

static void print_seed(const struct world *w, uint64_t seed, const struct ids *skip)
{
	printf("# %s at %llu.%06llus: %s\n", invariant_name((enum invariant)w->violation.inv),
	       (unsigned long long)(w->violation.at_ns / NS_PER_S),
	       (unsigned long long)(w->violation.at_ns % NS_PER_S / 1000), w->violation.text);
	printf("seed %" PRIu64 "\n", seed);
	printf("invariant %s\n", invariant_name((enum invariant)w->violation.inv));
	for (size_t i = 0; i < skip->n; i++)
		printf("%s%" PRIx64 "%s", i % 6 == 0 ? "skip " : " ", skip->id[i],
		       i % 6 == 5 || i + 1 == skip->n ? "\n" : "");
}

void shrink(struct world *w, uint64_t seed)
{
	struct ids skip = {0};
	bool all = w->all, verbose = w->verbose;
	int inv;

	w->record = true;
	w->verbose = false;
	w->all = false;
	run_with(w, seed, &skip);
	inv = w->violation.inv;
	if (inv >= 0) {
		reduce(w, seed, inv, &skip);
		w->verbose = true;
		printf("shrunk: the smallest schedule that still breaks %s\n",
		       invariant_name((enum invariant)inv));
		run_with(w, seed, &skip);
		printf("seed file:\n");
		print_seed(w, seed, &skip);
	}
	free(skip.id);
	w->record = false;
	w->verbose = verbose;
	w->all = all;
}

/* ---- seed files ---- */

static bool read_line(char *s, uint64_t *seed, int *inv, struct ids *skip)
{
	char *word = strtok(s, " \n");

	if (word == NULL || word[0] == '#')
		return true;
	if (strcmp(word, "skip") == 0) {
		while ((word = strtok(NULL, " \n")) != NULL)
			ids_add(skip, strtoull(word, NULL, 16));
		return true;
	}
	char *value = strtok(NULL, " \n");

	if (value == NULL)
		return false;
	if (strcmp(word, "seed") == 0)
		*seed = strtoull(value, NULL, 10);
	else if (strcmp(word, "invariant") == 0)
		*inv = invariant_find(value);
	else
		return false;
	return true;
}

int seed_replay(struct world *w, const char *path)
{
	FILE *f = fopen(path, "r");
	struct ids skip = {0};
	char buf[1024];
	uint64_t seed = 0;
	int inv = -1, n = -1;
	bool good = f != NULL;

	while (good && fgets(buf, sizeof(buf), f) != NULL)
		good = read_line(buf, &seed, &inv, &skip);
	if (f != NULL)
		(void)fclose(f);
	if (good && seed != 0 && inv >= 0) {
		ids_sort(&skip);
		run_with(w, seed, &skip);
		n = w->violation.inv >= 0;
		if (n != 0)
			printf("violation: %s seed %llu (%s) at %llu.%06llu: %s\n",
			       invariant_name((enum invariant)w->violation.inv),
			       (unsigned long long)seed, path,
			       (unsigned long long)(w->violation.at_ns / NS_PER_S),
			       (unsigned long long)(w->violation.at_ns % NS_PER_S / 1000),
			       w->violation.text);
	} else {
		printf("violation: not a seed file: %s\n", path);
	}
	free(skip.id);
	return n;
}

static int is_seed(const struct dirent *d)
{
	const char *dot = strrchr(d->d_name, '.');

	return dot != NULL && strcmp(dot, ".seed") == 0;
}

int seeds_replay(struct world *w, const char *dir, void (*ran)(const struct world *))
{
	struct dirent **list;
	int n = scandir(dir, &list, is_seed, alphasort), bad = 0;
	char path[1024];

	if (n < 0) {
		printf("violation: can't read the folder %s\n", dir);
		return -1;
	}
	for (int i = 0; i < n; i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", dir, list[i]->d_name);
		bad += seed_replay(w, path) != 0;
		ran(w);
		free(list[i]);
	}
	free(list);
	return bad;
}
