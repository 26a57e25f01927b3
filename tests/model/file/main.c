/*
 * main.c: model-file: searches the file store's protocol to its end, and shows that the search
 * would find what isn't there: each variant that is built wrong in one place.
 *
 *     model-file [--size test|large] [--variants [--trace]]
 */
#include <stdio.h>
#include <string.h>

#include "model/file/model.h"

#define STATES_MAX ((uint64_t)100 * 1000 * 1000)

/* Each with what it takes to show. */
static const struct {
	enum variant variant;
	struct bounds bounds;
	const char *what;
} variants[] = {
	{ALIVE_MADE_THEN_LOCKED, {2, 1, 2, 1, 0, 0, 3, 0, 0, 1}, ".alive made, then locked"},
	{LEASE_BEFORE_ALIVE,
	 {2, 2, 2, 1, 1, 0, 2, 1, 1, 1},
	 "the lease put into place before .alive"},
	{TERM_AS_NAME, {2, 2, 2, 1, 0, 0, 2, 1, 1, 1}, "the term as the claim's file name"},
	{CLAIM_BY_RENAME, {2, 2, 2, 1, 0, 0, 2, 1, 1, 1}, "claims by rename instead of link"},
	{RELEASE_UNLINKS,
	 {2, 2, 2, 1, 0, 0, 2, 1, 1, 1},
	 "release unlinks the claim instead of ending it"},
	{RELEASE_OF_ANYBODY, {2, 4, 3, 2, 0, 0, 2, 1, 1, 1}, "release without looking whose it is"},
	{CLOCK_AFTER_RECORD,
	 {2, 6, 3, 1, 0, 0, 2, 1, 1, 1},
	 "takeover reads the clock after the record"},
	{RENEWAL_WITHOUT_SECOND_CLOCK,
	 {2, 6, 3, 1, 0, 0, 2, 1, 1, 1},
	 "renewal doesn't read the clock again"},
	{RENEWAL_RESURRECTS, {2, 6, 3, 1, 0, 0, 2, 1, 1, 1}, "a late renewal resurrects"},
	{NO_LOOK_AFTER_CLAIM, {2, 2, 5, 1, 0, 0, 2, 1, 1, 1}, "no look after the claim"},
	{SCAN_IN_TWO_CALLS, {2, 2, 5, 1, 0, 0, 2, 1, 1, 1}, "the folder read in two calls"},
	{SWEEP_BY_MISSING_LEASE,
	 {2, 1, 2, 1, 0, 0, 3, 0, 0, 1},
	 "sweep by a missing lease, not by the lock"},
	{SWEEP_ALIVE_FIRST, {2, 2, 2, 1, 2, 0, 2, 0, 1, 1}, "sweep removes .alive first"},
	{CLOSE_UNLINKS_FIRST,
	 {2, 2, 2, 1, 0, 0, 2, 1, 1, 0},
	 "close removes the lease before the lock"},
};

_Static_assert(sizeof(variants) / sizeof(variants[0]) == N_VARIANTS - 1, "all of them");

static const struct bounds test_sizes[] = {
	{.ttl = 2, .ticks = 4, .seqs = 3, .lives = 1, .kills = 1, .two_threads = 1},
	{.ttl = 3, .ticks = 5, .seqs = 3, .lives = 1, .kills = 1, .two_threads = 0},
};

static const struct bounds large_sizes[] = {
	{.ttl = 2, .ticks = 5, .seqs = 4, .lives = 1, .kills = 2, .two_threads = 0},
	{.ttl = 3, .ticks = 6, .seqs = 3, .lives = 1, .kills = 2, .two_threads = 1},
	{.ttl = 2, .ticks = 5, .seqs = 3, .lives = 2, .kills = 1, .two_threads = 0},
};

static void tell_bounds(const struct bounds *b)
{
	(void)printf("lease of %d ticks, clock to %d, %d claims, %d lease%s each, %d killed, %s: ",
		     b->ttl, b->ticks, b->seqs, b->lives, b->lives > 1 ? "s" : "", b->kills,
		     b->two_threads ? "two threads" : "one thread");
	(void)fflush(stdout);
}

static int search_all(const struct bounds *list, size_t n)
{
	uint64_t states = 0;
	int violations = 0;
	bool complete = true;

	for (size_t i = 0; i < n; i++) {
		tell_bounds(&list[i]);
		struct result r = search(&list[i], AS_BUILT, STATES_MAX, true);

		(void)printf("%llu states, %u steps deep, %s\n", (unsigned long long)r.states,
			     r.depth, r.objection != NULL ? r.objection : "no violation");
		states += r.states;
		complete = complete && r.complete;
		violations += r.objection != NULL;
	}
	(void)printf("model-file: %llu states, %s, %d violations\n", (unsigned long long)states,
		     complete ? "complete" : "incomplete", violations);
	return complete && violations == 0 ? 0 : 1;
}

static int search_variants(bool tell)
{
	size_t n = sizeof(variants) / sizeof(variants[0]);
	size_t found = 0;

	for (size_t i = 0; i < n; i++) {
		struct result r =
			search(&variants[i].bounds, variants[i].variant, STATES_MAX / 3, tell);

		(void)printf("%-50s %-22s after %2u steps, %8llu states\n", variants[i].what,
			     r.objection != NULL ? r.objection : "NOT FOUND", r.depth,
			     (unsigned long long)r.states);
		(void)fflush(stdout);
		found += r.objection != NULL;
	}
	(void)printf("model-file: %zu variants, %zu found\n", n, found);
	return found == n ? 0 : 1;
}

int main(int argc, char **argv)
{
	bool large = false;
	bool wrong = false;
	bool tell = false;

	for (int i = 1; i < argc; i++) {
		bool size = strcmp(argv[i], "--size") == 0 && i + 1 < argc;

		if (size && strcmp(argv[i + 1], "large") == 0)
			large = true;
		else if (strcmp(argv[i], "--variants") == 0)
			wrong = true;
		else if (strcmp(argv[i], "--trace") == 0)
			tell = true;
		else if (!size || strcmp(argv[i + 1], "test") != 0) {
			(void)fprintf(stderr, "usage: model-file [--size test|large] "
					      "[--variants [--trace]]\n");
			return 2;
		}
		i += size;
	}
	if (wrong)
		return search_variants(tell);
	if (large)
		return search_all(large_sizes, sizeof(large_sizes) / sizeof(large_sizes[0]));
	return search_all(test_sizes, sizeof(test_sizes) / sizeof(test_sizes[0]));
}
