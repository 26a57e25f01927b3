/*
 * main.c: model-file: searches the file store's protocol to its end, and shows that the search
 * would find what isn't there: each variant that is built wrong in one place.
 *
 *     model-file [--size test|large] [--variants [--trace]]
 */
#include <stdio.h>
#include <string.h>

#include "model/file/model.h"

#define TEST_MAX ((uint64_t)16 * 1000 * 1000) /* states: as many as two gigabytes hold */
#define LARGE_MAX ((uint64_t)100 * 1000 * 1000)

/* Each with what it takes to show. */
static const struct {
	enum variant variant;
	struct bounds bounds;
	const char *what;
} variants[] = {
#define TWO .ttl = 2, .lives = 1, .processes = 2, .idle = 1, .plain = 1
	{ALIVE_MADE_THEN_LOCKED,
	 {.ttl = 2, .ticks = 1, .seqs = 2, .lives = 1, .blind = 1},
	 ".alive made, then locked"},
	{LEASE_BEFORE_ALIVE,
	 {.ttl = 2, .ticks = 1, .seqs = 2, .lives = 1, .kills = 1, .blind = 1},
	 "the lease put into place before .alive"},
	{TERM_AS_NAME, {TWO, .ticks = 2, .seqs = 2}, "the term as the claim's file name"},
	{CLAIM_BY_RENAME, {TWO, .ticks = 2, .seqs = 2}, "claims by rename instead of link"},
	{RELEASE_UNLINKS, {TWO, .ticks = 2, .seqs = 2}, "release unlinks the claim"},
	{RELEASE_OF_ANYBODY,
	 {.ttl = 2, .ticks = 3, .seqs = 3, .lives = 1, .idle = 1, .campaigns = 1, .blind = 1},
	 "release without looking whose it is"},
	{CLOCK_AFTER_RECORD, {TWO, .ticks = 6, .seqs = 3}, "takeover reads the clock late"},
	{RENEWAL_WITHOUT_SECOND_CLOCK, {TWO, .ticks = 6, .seqs = 3}, "renewal reads it once only"},
	{RENEWAL_RESURRECTS, {TWO, .ticks = 6, .seqs = 3}, "a late renewal resurrects"},
	{NO_LOOK_AFTER_CLAIM, {TWO, .ticks = 2, .seqs = 5}, "no look after the claim"},
	{SCAN_IN_TWO_CALLS, {TWO, .ticks = 2, .seqs = 5}, "the folder read in two calls"},
	{SWEEP_BY_MISSING_LEASE,
	 {.ttl = 2, .ticks = 1, .seqs = 2, .lives = 1, .blind = 1},
	 "sweep by a missing lease, not by the lock"},
	{SWEEP_ALIVE_FIRST,
	 {.ttl = 2, .ticks = 2, .seqs = 2, .lives = 1, .kills = 2, .processes = 2},
	 "sweep removes .alive first"},
	{CLOSE_UNLINKS_FIRST,
	 {.ttl = 2, .ticks = 2, .seqs = 2, .lives = 1, .processes = 2},
	 "close removes the lease before the lock"},
#undef TWO
};

_Static_assert(sizeof(variants) / sizeof(variants[0]) == N_VARIANTS - 1, "all of them");

static const struct bounds test_sizes[] = {
	/* three candidates on open leases: who leads, and until when */
	{.ttl = 2, .ticks = 3, .seqs = 3, .kills = 1, .campaigns = 1, .renewals = 1, .idle = 1},
	{.ttl = 3, .ticks = 4, .seqs = 3, .campaigns = 1, .renewals = 1, .idle = 1, .blind = 1},
	/* leases opened, closed and swept by three */
	{.ttl = 2, .ticks = 1, .seqs = 2, .lives = 1, .kills = 2, .campaigns = 1, .lazy = 1},
	/* renewals beside all else, each in a thread of its own */
	{.ttl = 2,
	 .ticks = 4,
	 .seqs = 3,
	 .kills = 1,
	 .campaigns = 1,
	 .renewals = 2,
	 .two_threads = 1,
	 .processes = 2,
	 .idle = 1},
	{.ttl = 3,
	 .ticks = 5,
	 .seqs = 3,
	 .kills = 1,
	 .campaigns = 1,
	 .renewals = 2,
	 .two_threads = 1,
	 .processes = 2,
	 .idle = 1},
};

static const struct bounds large_sizes[] = {
	{.ttl = 2, .ticks = 4, .seqs = 3, .kills = 2, .campaigns = 1, .renewals = 1, .idle = 1},
	{.ttl = 3, .ticks = 5, .seqs = 3, .kills = 1, .campaigns = 1, .renewals = 1, .idle = 1},
	{.ttl = 2, .ticks = 3, .seqs = 2, .lives = 1, .kills = 1, .campaigns = 1, .lazy = 1},
	{.ttl = 2, .ticks = 1, .seqs = 2, .lives = 2, .kills = 1, .campaigns = 1, .lazy = 1},
	{.ttl = 2,
	 .ticks = 4,
	 .seqs = 4,
	 .kills = 1,
	 .campaigns = 2,
	 .renewals = 2,
	 .two_threads = 1,
	 .processes = 2,
	 .idle = 1},
	{.ttl = 2,
	 .ticks = 3,
	 .seqs = 2,
	 .lives = 2,
	 .kills = 1,
	 .campaigns = 1,
	 .renewals = 1,
	 .processes = 2},
};

static void tell_bounds(const struct bounds *b)
{
	(void)printf("%d candidates, leases of %d ticks, clock to %d, %d claims, %d killed%s%s: ",
		     b->processes != 0 ? b->processes : PROCESSES, b->ttl, b->ticks, b->seqs,
		     b->kills, b->idle ? "" : ", opening and sweeping",
		     b->two_threads ? ", two threads" : "");
	(void)fflush(stdout);
}

static int search_all(const struct bounds *list, size_t n, uint64_t max)
{
	uint64_t states = 0;
	int violations = 0;
	bool complete = true;

	for (size_t i = 0; i < n; i++) {
		tell_bounds(&list[i]);
		struct result r = search(&list[i], AS_BUILT, max, true);

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
		struct result r = search(&variants[i].bounds, variants[i].variant, TEST_MAX, tell);

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
		return search_all(large_sizes, sizeof(large_sizes) / sizeof(large_sizes[0]),
				  LARGE_MAX);
	return search_all(test_sizes, sizeof(test_sizes) / sizeof(test_sizes[0]), TEST_MAX);
}
