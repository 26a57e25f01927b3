/*
 * main.c: the command. Runs a batch of worlds from a seed, or one world with its timeline, and says
 * what it found. Exit: 0 fine, 1 something was violated, 2 usage.
 *
 *     sim-record [--worlds N] [--cpu SECONDS] [--from SEED|fresh] [--seed SEED] [--first]
 *                [--list-invariants]
 *
 * A batch from a fresh seed says which seed that is. The seeds of a batch follow each other, and a
 * violation names its own: --seed runs that world again. --first: no world after a violation.
 */
#include "sim.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define FRESH_BITS 40 /* a number that people can copy */

enum { EXIT_FINE, EXIT_VIOLATED, EXIT_USAGE };

struct settings {
	uint64_t worlds;
	uint64_t cpu_s; /* 0: no limit */
	uint64_t from;
	bool is_one;
	bool is_first;
};

static int usage(void)
{
	(void)fprintf(stderr, "usage: sim-record [--worlds N] [--cpu SECONDS] [--from SEED|fresh]\n"
			      "                  [--seed SEED] [--first] [--list-invariants]\n");
	return EXIT_USAGE;
}

/* From the kernel: the getrandom() of this program is the worlds'. */
static uint64_t fresh_seed(void)
{
	uint64_t bits = 0;

	if (syscall(SYS_getrandom, &bits, sizeof(bits), 0) != (long)sizeof(bits))
		bits = (uint64_t)time(NULL);
	return (bits & ((UINT64_C(1) << FRESH_BITS) - 1)) + 1;
}

static bool take_number(const char *text, uint64_t *out)
{
	char *end;

	*out = strtoull(text, &end, 10);
	return end != text && *end == '\0';
}

static int take_options(int argc, char **argv, struct settings *s)
{
	static const struct option longs[] = {
		{"worlds", required_argument, NULL, 'w'},
		{"cpu", required_argument, NULL, 'c'},
		{"from", required_argument, NULL, 'f'},
		{"seed", required_argument, NULL, 's'},
		{"first", no_argument, NULL, '1'},
		{"list-invariants", no_argument, NULL, 'l'},
		{NULL, 0, NULL, 0},
	};
	bool is_fine = true;
	int opt;

	while (is_fine && (opt = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		switch (opt) {
		case 'w': is_fine = take_number(optarg, &s->worlds); break;
		case 'c': is_fine = take_number(optarg, &s->cpu_s); break;
		case 'f':
			if (strcmp(optarg, "fresh") == 0)
				s->from = fresh_seed();
			else
				is_fine = take_number(optarg, &s->from);
			break;
		case 's':
			is_fine = take_number(optarg, &s->from);
			s->is_one = true;
			break;
		case '1': s->is_first = true; break;
		case 'l':
			for (int k = 1; k < N_RULES; k++)
				(void)printf("%s\n", rule_name((enum rule)k));
			exit(EXIT_FINE);
		default: is_fine = false; break;
		}
	}
	return is_fine && optind == argc ? EXIT_FINE : usage();
}

static bool is_done(const struct settings *s, uint64_t n)
{
	return n >= s->worlds || (s->cpu_s != 0 && clock() / CLOCKS_PER_SEC >= (clock_t)s->cpu_s);
}

static int run(const struct settings *s)
{
	uint64_t first[N_RULES] = {0};
	uint64_t n = 0;
	uint64_t n_faults = 0;
	uint64_t n_led = 0;
	uint64_t n_violations = 0;
	uint64_t hash = 0;

	for (; !is_done(s, n) && !(s->is_first && n_violations > 0); n++) {
		world_run(s->from + n);
		n_faults += world.n_faults;
		n_led += world.n_leaderships;
		hash = (hash ^ world.hash) * UINT64_C(0x9e3779b97f4a7c15);
		if (broken == RULE_NONE)
			continue;
		n_violations++;
		if (first[broken] == 0)
			(void)printf("violation: %s seed %llu at %.6f: %s\n", rule_name(broken),
				     (unsigned long long)world.seed, (double)world.now_ns / 1e9,
				     rule_text(broken));
		if (first[broken] == 0)
			first[broken] = n + 1;
	}
	if (n_violations > 0) {
		(void)printf("violated:");
		for (int k = 1; k < N_RULES; k++)
			if (first[k] != 0)
				(void)printf(" %s@%llu", rule_name((enum rule)k),
					     (unsigned long long)first[k]);
		(void)printf("\n");
	}
	(void)printf("hash %016llx\n", (unsigned long long)hash);
	(void)printf("sim-record: from seed %llu: %llu worlds, %llu leaderships, %llu faults, %llu "
		     "violations\n",
		     (unsigned long long)s->from, (unsigned long long)n, (unsigned long long)n_led,
		     (unsigned long long)n_faults, (unsigned long long)n_violations);
	return n_violations > 0 ? EXIT_VIOLATED : EXIT_FINE;
}

int main(int argc, char **argv)
{
	struct settings s = {.worlds = 500, .from = 1};
	int code = take_options(argc, argv, &s);

	if (code != EXIT_FINE)
		return code;
	if (s.is_one) {
		s.worlds = 1;
		world.is_told = true;
	}
	return run(&s);
}
