/*
 * main.c: the command line of the search. Without options it runs every setup of the test size;
 * each must be complete, that is: no state within its bounds was left out.
 */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

enum { EXIT_FINE, EXIT_VIOLATED, EXIT_USAGE, EXIT_INCOMPLETE, EXIT_VOID };

struct command {
	struct search_options search;
	enum size size;
	bool only_own;
	bool only_watched;
	unsigned n_walks; /* not 0: only check the search itself */
};

/* All setups together. */
struct total {
	uint64_t n_states;
	uint64_t n_live;
	uint64_t n_violations;
	uint64_t first[N_RULES];
	uint32_t ops;
	bool complete;
};

static int usage(void)
{
	(void)fprintf(stderr, "usage: model [--size small|test|large] [--own] [--watched]\n"
			      "             [--all-violations] [--list-invariants] [--walks N]\n"
			      "             [--max-states N] [--hash-bits N] [--verbose]\n");
	return EXIT_USAGE;
}

static int list_rules(void)
{
	for (int k = 1; k < N_RULES; k++)
		(void)printf("%s\n", rule_name((enum rule)k));
	return EXIT_FINE;
}

static bool take_size(const char *word, struct command *c)
{
	static const char *const words[] = {"small", "test", "large"};
	static const enum size sizes[] = {SIZE_SMALL, SIZE_TEST, SIZE_LARGE};

	for (size_t i = 0; i < 3; i++) {
		if (strcmp(word, words[i]) == 0) {
			c->size = sizes[i];
			return true;
		}
	}
	return false;
}

/* EXIT_FINE: go on. */
static int take_options(int argc, char **argv, struct command *c, bool *list)
{
	static const struct option longs[] = {
		{"size", required_argument, NULL, 's'},
		{"own", no_argument, NULL, 'o'},
		{"watched", no_argument, NULL, 'w'},
		{"all-violations", no_argument, NULL, 'a'},
		{"list-invariants", no_argument, NULL, 'l'},
		{"max-states", required_argument, NULL, 'm'},
		{"hash-bits", required_argument, NULL, 'b'},
		{"verbose", no_argument, NULL, 'v'},
		{"walks", required_argument, NULL, 'k'},
		{NULL, 0, NULL, 0},
	};
	int opt;

	while ((opt = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		switch (opt) {
		case 's':
			if (!take_size(optarg, c))
				return usage();
			break;
		case 'o': c->only_own = true; break;
		case 'w': c->only_watched = true; break;
		case 'a': c->search.go_on = true; break;
		case 'l': *list = true; break;
		case 'm': c->search.max_states = strtoull(optarg, NULL, 10); break;
		case 'b': c->search.hash_bits = (unsigned)strtoul(optarg, NULL, 10); break;
		case 'v': c->search.verbose = true; break;
		case 'k': c->n_walks = (unsigned)strtoul(optarg, NULL, 10); break;
		default: return usage();
		}
	}
	return optind == argc ? EXIT_FINE : usage();
}

static void add(struct total *t, const struct search_result *r)
{
	for (int k = 1; k < N_RULES; k++)
		if (r->first[k] != 0 && t->first[k] == 0)
			t->first[k] = t->n_states + r->first[k];
	t->n_states += r->n_states;
	t->n_live += r->n_live;
	t->ops |= r->ops;
	t->n_violations += r->n_violations;
	t->complete = t->complete && r->complete;
}

static void run_all(const struct command *c, struct total *t)
{
	struct setup list[SETUPS_MAX];
	size_t n = setups_get(c->size, list);

	for (size_t i = 0; i < n; i++) {
		struct search_result r;

		if ((c->only_own && !list[i].own) || (c->only_watched && !list[i].watched))
			continue;
		search_run(&list[i], &c->search, &r);
		(void)printf("%s; %s: %llu states, %s, %llu violations; %.1g expected to be "
			     "missed by equal hashes\n",
			     list[i].name, list[i].faults, (unsigned long long)r.n_states,
			     r.complete ? "complete" : "incomplete",
			     (unsigned long long)r.n_violations, r.misses);
		(void)fflush(stdout);
		add(t, &r);
	}
}

static int walk_all(const struct command *c)
{
	struct setup list[SETUPS_MAX + SETUPS_MAX];
	size_t n_walked = setups_walked(list);
	size_t n = n_walked + setups_get(c->size, list + n_walked);
	uint64_t n_steps = 0;

	for (size_t i = 0; i < n; i++)
		if (!selfcheck(&list[i], i < n_walked ? 5 * c->n_walks : c->n_walks, &n_steps))
			return EXIT_VIOLATED;
	(void)printf("model: %llu steps of %zu walks, the same packed and unpacked, 0 violations\n",
		     (unsigned long long)n_steps, (n + 4 * n_walked) * c->n_walks);
	return EXIT_FINE;
}

/* What was never possible in any setup was not searched, however complete that was. */
static bool is_void(const struct command *c, const struct total *t)
{
	bool missed = false;

	if (c->only_own || c->only_watched || c->search.go_on || !t->complete)
		return false;
	for (unsigned op = 0; op < N_OPS; op++)
		if ((t->ops >> op & 1u) == 0) {
			(void)printf("void: never possible: %s\n", op_text(op));
			missed = true;
		}
	return missed;
}

static int finish(const struct command *c, const struct total *t)
{
	bool missed = is_void(c, t);

	if (t->n_violations > 0) {
		(void)printf("violated:");
		for (int k = 1; k < N_RULES; k++)
			if (t->first[k] != 0)
				(void)printf(" %s@%llu", rule_name((enum rule)k),
					     (unsigned long long)t->first[k]);
		(void)printf("\n");
	}
	(void)printf("model: %llu states, %s, %llu violations; liveness from %llu of them\n",
		     (unsigned long long)t->n_states, t->complete ? "complete" : "incomplete",
		     (unsigned long long)t->n_violations, (unsigned long long)t->n_live);
	if (t->n_violations > 0)
		return EXIT_VIOLATED;
	if (!t->complete)
		return EXIT_INCOMPLETE;
	return missed ? EXIT_VOID : EXIT_FINE;
}

int main(int argc, char **argv)
{
	struct command c = {.search = {.max_states = UINT64_MAX, .hash_bits = 25},
			    .size = SIZE_TEST};
	struct total t = {.complete = true};
	bool list = false;
	int code = take_options(argc, argv, &c, &list);

	if (code != EXIT_FINE)
		return code;
	if (list)
		return list_rules();
	if (c.n_walks > 0)
		return walk_all(&c);
	if (c.size == SIZE_LARGE && c.search.hash_bits == 25)
		c.search.hash_bits = 28;
	run_all(&c, &t);
	return finish(&c, &t);
}
