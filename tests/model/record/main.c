/*
 * main.c: model-record: searches the rules of record stores, by running the code that decides
 * them. Each size is searched together with those before it.
 *
 *     model-record [--size small|test|large] [--world TEXT] [--only NAME] [--all-violations]
 *                  [--list-invariants] [--list-worlds] [--max-states N] [--verbose]
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/record/model.h"

enum { EXIT_FINE, EXIT_VIOLATED, EXIT_USAGE, EXIT_INCOMPLETE, EXIT_VOID };

struct command {
	struct options options;
	enum size size;
	const char *world; /* only those whose name has it */
	const char *only;  /* only the one with that name */
	bool lists;
	bool lists_worlds;
};

struct total {
	uint64_t n_states; /* of worlds that are searched to their end */
	uint64_t n_deep;   /* of the others */
	uint64_t n_violations;
	uint64_t first[N_RULES];
	uint64_t whats;
	bool complete;
};

static int usage(void)
{
	(void)fprintf(stderr, "usage: model-record [--size small|test|large] [--world TEXT]\n"
			      "                    [--only NAME] [--all-violations]\n"
			      "                    [--list-invariants] [--list-worlds]\n"
			      "                    [--max-states N] [--verbose]\n");
	return EXIT_USAGE;
}

static bool take_size(const char *word, struct command *c)
{
	static const char *const words[] = {"small", "test", "large"};

	for (size_t i = 0; i < 3; i++) {
		if (strcmp(word, words[i]) == 0) {
			c->size = (enum size)i;
			return true;
		}
	}
	return false;
}

static int take_options(int argc, char **argv, struct command *c)
{
	static const struct option longs[] = {
		{"size", required_argument, NULL, 's'},
		{"world", required_argument, NULL, 'w'},
		{"only", required_argument, NULL, 'o'},
		{"list-worlds", no_argument, NULL, 'W'},
		{"all-violations", no_argument, NULL, 'a'},
		{"list-invariants", no_argument, NULL, 'l'},
		{"max-states", required_argument, NULL, 'm'},
		{"verbose", no_argument, NULL, 'v'},
		{NULL, 0, NULL, 0},
	};
	int opt;

	while ((opt = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		switch (opt) {
		case 's':
			if (!take_size(optarg, c))
				return usage();
			break;
		case 'w': c->world = optarg; break;
		case 'o': c->only = optarg; break;
		case 'W': c->lists_worlds = true; break;
		case 'a': c->options.go_on = true; break;
		case 'l': c->lists = true; break;
		case 'm': c->options.max_states = strtoull(optarg, NULL, 10); break;
		case 'v': c->options.verbose = true; break;
		default: return usage();
		}
	}
	return optind == argc ? EXIT_FINE : usage();
}

static void tell(const struct setup *s, const struct result *r)
{
	(void)printf("%s: %llu states, %u steps deep, %s%s, ", s->name,
		     (unsigned long long)r->n_states, r->depth,
		     r->complete ? "complete" : "not complete", r->progress ? ", progress" : "");
	if (r->n_violations == 0)
		(void)printf("no violation\n");
	else
		(void)printf("%llu violations\n", (unsigned long long)r->n_violations);
	(void)fflush(stdout);
}

static void add(struct total *t, const struct setup *s, const struct result *r)
{
	for (int k = 1; k < N_RULES; k++)
		if (r->first[k] != 0 && t->first[k] == 0)
			t->first[k] = t->n_states + t->n_deep + r->first[k];
	*(s->depth == 0 ? &t->n_states : &t->n_deep) += r->n_states;
	t->complete = t->complete && (r->complete || s->depth != 0);
	t->whats |= r->whats;
	t->n_violations += r->n_violations;
}

static bool is_wanted(const struct command *c, const struct setup *s)
{
	return (c->world == NULL || strstr(s->name, c->world) != NULL) &&
	       (c->only == NULL || strcmp(s->name, c->only) == 0);
}

/* Beyond the first world with a violation it goes on only if all are wanted. */
static void run_all(const struct command *c, struct total *t)
{
	for (int size = SIZE_SMALL; size <= (int)c->size; size++) {
		size_t n;
		const struct setup *list = setups_get((enum size)size, &n);

		for (size_t i = 0; i < n; i++) {
			struct result r;

			if (!is_wanted(c, &list[i]))
				continue;
			if (c->lists_worlds) {
				(void)printf("%s\n", list[i].name);
				continue;
			}
			if (t->n_violations > 0 && !c->options.go_on)
				return;
			search_run(&list[i], &c->options, &r);
			tell(&list[i], &r);
			add(t, &list[i], &r);
		}
	}
}

/* What was never possible in any world was not searched, however complete that was. */
static bool is_void(const struct command *c, const struct total *t)
{
	bool missed = false;

	for (int what = 0;
	     what < N_WHATS && c->world == NULL && c->only == NULL && t->n_violations == 0;
	     what++) {
		if ((t->whats >> what & 1u) == 0) {
			(void)printf("void: never possible: %s\n", what_text((enum what)what));
			missed = true;
		}
	}
	return missed;
}

static int finish(const struct command *c, const struct total *t)
{
	if (t->n_violations > 0) {
		(void)printf("violated:");
		for (int k = 1; k < N_RULES; k++)
			if (t->first[k] != 0)
				(void)printf(" %s@%llu", rule_name((enum rule)k),
					     (unsigned long long)t->first[k]);
		(void)printf("\n");
	}
	bool missed = is_void(c, t);

	(void)printf("model-record: %llu states, %s, %llu violations; and %llu states of worlds "
		     "that are searched to a depth\n",
		     (unsigned long long)t->n_states, t->complete ? "complete" : "incomplete",
		     (unsigned long long)t->n_violations, (unsigned long long)t->n_deep);
	if (t->n_violations > 0)
		return EXIT_VIOLATED;
	if (!t->complete)
		return EXIT_INCOMPLETE;
	return missed ? EXIT_VOID : EXIT_FINE;
}

int main(int argc, char **argv)
{
	struct command c = {.options = {.max_states = (uint64_t)1 << 26}, .size = SIZE_TEST};
	struct total t = {.complete = true};
	int code = take_options(argc, argv, &c);

	if (code != EXIT_FINE)
		return code;
	if (c.lists) {
		for (int k = 1; k < N_RULES; k++)
			(void)printf("%s\n", rule_name((enum rule)k));
		return EXIT_FINE;
	}
	run_all(&c, &t);
	if (c.lists_worlds)
		return EXIT_FINE;
	return finish(&c, &t);
}
