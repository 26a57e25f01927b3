/*
 * main.c: the command. Runs a batch of worlds, or one with its timeline, or the kept seeds, and
 * says what it found. Exit: 0 fine, 1 something was violated, 2 usage, 4 the batch is void.
 *
 * A batch from a fresh seed says which seed that is, so that it can be run again. It is never void:
 * what it happens to miss is what the batch from a fixed seed has.
 */
#include "sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#define YEAR_MS ((uint64_t)31557600000)
#define VOID_FROM 2000 /* worlds: fewer can't be expected to see everything */
#define SHOWN_MAX 20
#define FRESH_BITS 40 /* a number that people can copy */

struct settings {
	const char *seeds;
	uint64_t worlds;
	uint64_t years_milli; /* 0: not by years */
	uint64_t cpu_s;       /* 0: no limit */
	uint64_t seed;        /* 0: a batch */
	uint64_t from;
	bool fresh;
	bool hash;
	bool all;
	bool shrink;
	bool stats;
	bool list;
};

struct totals {
	uint64_t worlds;
	uint64_t ms; /* simulated */
	uint64_t leaderships;
	uint64_t faults;
	uint64_t events;
	uint64_t violations;
	uint64_t hash;
};

static struct world world; /* too large for the stack */

static double cpu_seconds(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static struct totals total;

static void count(const struct world *w)
{
	struct totals *t = &total;

	t->worlds++;
	t->ms += w->now_ns / NS_PER_MS;
	t->leaderships += w->n_leaderships;
	t->faults += w->n_faults;
	t->events += w->n_events;
	t->hash = (t->hash ^ w->hash) * 0x9e3779b97f4a7c15u;
	t->hash ^= t->hash >> 31;
	cover_world();
	t->violations += w->violation.inv >= 0;
}

static void show(const struct world *w)
{
	if (w->violation.inv < 0 || total.violations > SHOWN_MAX)
		return;
	printf("violation: %s seed %llu at %llu.%06llu: %s\n",
	       invariant_name((enum invariant)w->violation.inv), (unsigned long long)w->seed,
	       (unsigned long long)(w->violation.at_ns / NS_PER_S),
	       (unsigned long long)(w->violation.at_ns % NS_PER_S / 1000), w->violation.text);
	(void)fflush(stdout);
}

static bool is_done(const struct settings *s, const struct totals *t)
{
	if (s->cpu_s != 0 && t->worlds % 16 == 0 && cpu_seconds() >= (double)s->cpu_s)
		return true;
	if (s->years_milli != 0)
		return t->ms >= YEAR_MS / 1000 * s->years_milli;
	return t->worlds >= s->worlds;
}

static void run_batch(const struct settings *s, struct totals *t)
{
	while (!is_done(s, t)) {
		uint64_t seed = s->from + t->worlds;

		world_run(&world, seed);
		count(&world);
		show(&world);
		/* The first failing world is always made small; more on demand. */
		if (world.violation.inv >= 0 && !s->all &&
		    (t->violations == 1 || (s->shrink && t->violations <= SHOWN_MAX)))
			shrink(&world, seed);
	}
}

static void print_stats(const struct totals *t)
{
	double minutes = cpu_seconds() / 60;

	cover_print();
	printf("per CPU minute: %.0f worlds, %.3f years, %.0f events, %.0f leaderships\n",
	       (double)t->worlds / minutes, (double)t->ms / (double)YEAR_MS / minutes,
	       (double)t->events / minutes, (double)t->leaderships / minutes);
}

static int finish(const struct settings *s, const struct totals *t)
{
	uint64_t milli = t->ms / (YEAR_MS / 1000);
	int code = t->violations > 0 ? 1 : 0;

	if (s->stats)
		print_stats(t);
	if (s->all)
		cover_print_violated();
	if (s->seed == 0 && s->seeds == NULL && !s->all && !s->fresh && t->worlds >= VOID_FROM &&
	    cover_is_void() && code == 0)
		code = 4;
	if (s->hash)
		printf("hash: %016" PRIx64 "\n", t->hash);
	printf("sim: %" PRIu64 " worlds, %" PRIu64 ".%03" PRIu64 " years, %" PRIu64
	       " elections, %" PRIu64 " faults, %" PRIu64 " violations\n",
	       t->worlds, milli / 1000, milli % 1000, t->leaderships, t->faults, t->violations);
	return code;
}

static int usage(void)
{
	(void)fputs("usage: sim [--worlds N] [--years Y] [--seed S] [--from S|fresh] [--hash]\n"
		    "           [--seeds DIR] [--all-violations] [--shrink] [--stats]\n"
		    "           [--cpu-seconds N] [--list-invariants]\n",
		    stderr);
	return 2;
}

/* "1.5" is 1500. */
static bool parse_milli(const char *text, uint64_t *milli)
{
	char *end;
	uint64_t unit = 100;

	*milli = strtoull(text, &end, 10) * 1000;
	if (end == text)
		return false;
	if (*end == '.')
		for (end++; *end >= '0' && *end <= '9'; end++, unit /= 10)
			*milli += (uint64_t)(*end - '0') * unit;
	return *end == '\0';
}

static bool parse_number(const char *text, uint64_t *n)
{
	char *end;

	*n = strtoull(text, &end, 10);
	return end != text && *end == '\0';
}

/* Where a batch begins: with a number, or with one that nobody has drawn before. */
static bool parse_from(struct settings *s, const char *text)
{
	s->fresh = strcmp(text, "fresh") == 0;
	if (!s->fresh)
		return parse_number(text, &s->from);
	if (getrandom(&s->from, sizeof(s->from), 0) != (ssize_t)sizeof(s->from))
		return false;
	s->from = (s->from >> (64 - FRESH_BITS)) + 1;
	return true;
}

static bool parse_flag(struct settings *s, const char *arg)
{
	static const struct {
		const char *name;
		size_t at;
	} flags[] = {
		{"--hash", offsetof(struct settings, hash)},
		{"--all-violations", offsetof(struct settings, all)},
		{"--shrink", offsetof(struct settings, shrink)},
		{"--stats", offsetof(struct settings, stats)},
		{"--list-invariants", offsetof(struct settings, list)},
	};

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (strcmp(arg, flags[i].name) == 0) {
			*(bool *)((char *)s + flags[i].at) = true;
			return true;
		}
	return false;
}

static bool parse(struct settings *s, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const char *arg = argv[i], *value = i + 1 < argc ? argv[i + 1] : "";

		if (parse_flag(s, arg))
			continue;
		i++;
		if (strcmp(arg, "--seeds") == 0 && i < argc)
			s->seeds = value;
		else if (strcmp(arg, "--years") == 0 && parse_milli(value, &s->years_milli))
			continue;
		else if (!(strcmp(arg, "--worlds") == 0 && parse_number(value, &s->worlds)) &&
			 !(strcmp(arg, "--seed") == 0 && parse_number(value, &s->seed)) &&
			 !(strcmp(arg, "--from") == 0 && parse_from(s, value)) &&
			 !(strcmp(arg, "--cpu-seconds") == 0 && parse_number(value, &s->cpu_s)))
			return false;
	}
	return true;
}

static int replay_seeds(const struct settings *s)
{
	int bad = seeds_replay(&world, s->seeds, count);

	total.violations = bad < 0 ? 1 : (uint64_t)bad; /* files that can't be read among them */
	return finish(s, &total);
}

int main(int argc, char **argv)
{
	struct settings s = {.worlds = 1000, .from = 1};
	int code;

	if (!parse(&s, argc, argv))
		return usage();
	for (unsigned i = 0; s.list && i < N_INVARIANTS; i++)
		printf("%s\n", invariant_name((enum invariant)i));
	if (s.list)
		return 0;
	world.all = s.all;
	if (s.fresh) {
		printf("fresh seed: %" PRIu64 " (replayed by sim --from %" PRIu64 ")\n", s.from,
		       s.from);
		(void)fflush(stdout);
	}
	if (s.seeds != NULL) {
		code = replay_seeds(&s);
	} else {
		if (s.seed != 0) {
			world.verbose = !s.shrink;
			s.from = s.seed;
			s.worlds = 1;
		}
		if (s.seed != 0 && !s.shrink) {
			world_run(&world, s.seed);
			count(&world);
			show(&world);
		} else {
			run_batch(&s, &total);
		}
		code = finish(&s, &total);
	}
	world_done(&world);
	return code;
}
