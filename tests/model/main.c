/* main.c: the command line of the search; see usage(). */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

#define N_SETUPS 16

enum { EXIT_FINE, EXIT_VIOLATED, EXIT_USAGE, EXIT_INCOMPLETE };

static int usage(void)
{
	(void)fprintf(stderr,
		      "usage: model [--size small|test|large] [--own] [--watched] [--all-violations]\n"
		      "             [--max-states N] [--hash-bits N] [--verbose]\n");
	return EXIT_USAGE;
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {
		{"size", required_argument, NULL, 's'},   {"own", no_argument, NULL, 'o'},
		{"watched", no_argument, NULL, 'w'},      {"all-violations", no_argument, NULL, 'a'},
		{"max-states", required_argument, NULL, 'm'}, {"hash-bits", required_argument, NULL, 'b'},
		{"verbose", no_argument, NULL, 'v'},      {NULL, 0, NULL, 0},
	};
	struct search_options o = {.max_states = UINT64_MAX, .hash_bits = 25};
	enum size size = SIZE_TEST;
	struct setup list[N_SETUPS];
	int opt;
	bool own=false, watched=false;

	while ((opt = getopt_long(argc, argv, "", longs, NULL)) != -1)
		switch (opt) {
		case 's': size = strcmp(optarg, "small") == 0 ? SIZE_SMALL : strcmp(optarg,"test")==0?SIZE_TEST:SIZE_LARGE; break;
		case 'o': own = true; break;
		case 'w': watched = true; break;
		case 'a': o.go_on = true; break;
		case 'm': o.max_states = strtoull(optarg, NULL, 10); break;
		case 'b': o.hash_bits = (unsigned)atoi(optarg); break;
		case 'v': o.verbose = true; break;
		default: return usage();
		}
	size_t n = setups_get(size, list, N_SETUPS);
	for (size_t i = 0; i < n; i++) {
		struct search_result r;
		list[i].own = own; list[i].watched = watched;
		if (getenv("B")) for (unsigned k = 0; k < N_BOUNDS; k++) list[i].bounds[k] = (uint8_t)(getenv("B")[k]-'0');
		if (getenv("S")) list[i].strays_max=(uint8_t)atoi(getenv("S"));
		if (getenv("E")) list[i].tells_end=true;
		if (getenv("Q")) list[i].equal=true;
		if (getenv("L")) list[i].lazy_push=true;
		if (getenv("J")) list[i].jitter=true;
		if (getenv("T")) list[i].term_max=(uint8_t)atoi(getenv("T"));
		if (getenv("SC")) { printf("selfcheck %d\n", selfcheck(&list[i], (unsigned)atoi(getenv("SC")))); return 0; }
		search_run(&list[i], &o, &r);
		printf("%s: %llu states, %s, %llu violations, %g missed\n", list[i].name, (unsigned long long)r.n_states, r.complete?"complete":"incomplete", (unsigned long long)r.n_violations, r.misses);
		for (int k = 1; k < N_RULES; k++) if (r.first[k]) printf(" %s@%llu", rule_name((enum rule)k), (unsigned long long)r.first[k]);
		printf("\n");
	}
	return 0;
}
