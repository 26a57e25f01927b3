/*
 * simulate.c: `baton simulate`: years of an election with these timings, in seconds, by the core
 * that decides in production (src/simulate): how often the leader would change, why, and how long
 * there would be no leader. What calls take comes from a file of `baton doctor --measure --json`.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "simulate/simulate.h"

#define FILE_MAX_BYTES (1 << 20)
#define RESTART_S 10
#define A_YEAR_MAX 1000000
#define BAR_COLUMNS 40
#define CLASSES_MAX 27 /* of gaps: up to 5e8 ms */

/* A store near by, where no file says what calls take: half of them within a millisecond. */
static const double near_ms[] = {0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.3, 2, 10};
#define N_NEAR (sizeof(near_ms) / sizeof(near_ms[0]))

struct plan {
	struct simulate_setup setup;
	struct simulate_result result;
	const char *name;
};

/* ---- the file ---- */

static char *read_text(const char *path)
{
	errno = 0;
	FILE *in = fopen(path, "re");
	char *text = in != NULL ? calloc(1, FILE_MAX_BYTES + 1) : NULL;
	size_t n = text != NULL ? fread(text, 1, FILE_MAX_BYTES, in) : 0;
	bool failed = in == NULL || text == NULL || ferror(in) != 0 || n == 0;

	if (in != NULL)
		(void)fclose(in);
	if (!failed)
		return text;
	if (in != NULL && text != NULL && n == 0 && errno == 0)
		(void)cli_usage("%s is empty", path);
	else
		(void)cli_usage("%s can't be read: %s", path, strerror(errno));
	free(text);
	return NULL;
}

/* What follows "key": in the text, the first time; or NULL. */
static const char *find_key(const char *text, const char *key)
{
	char quoted[64];

	(void)snprintf(quoted, sizeof(quoted), "\"%s\":", key);
	const char *at = strstr(text, quoted);

	return at != NULL ? at + strlen(quoted) : NULL;
}

static bool find_time(const char *text, const char *key, uint64_t *ns)
{
	const char *at = find_key(text, key);
	double ms = at != NULL ? strtod(at, NULL) : 0;

	*ns = ms >= 1 && ms < 1e9 ? (uint64_t)(ms * 1e6) : 0;
	return *ns != 0;
}

/* The list of round trips. Its end is the end of the list, and nothing else may stand in it. */
static double *find_round_trips(const char *text, size_t *n)
{
	const char *at = find_key(text, "renewals_ms");
	double *list = at != NULL ? calloc(strlen(at), sizeof(*list)) : NULL;
	char *end = NULL;

	*n = 0;
	if (list == NULL || *at++ != '[')
		goto bad;
	for (;; at = end + 1) {
		double ms = strtod(at, &end);

		if (end == at || !(ms >= 0 && ms < 1e7))
			goto bad;
		list[(*n)++] = ms;
		if (*end == ']')
			return list;
		if (*end != ',')
			goto bad;
	}
bad:
	free(list);
	return NULL;
}

/* ---- the plans ---- */

/* The library checks the timings, and fills in what was not given. */
static int fill_timing(const struct settings *s, struct timing *t)
{
	struct settings own = *s;
	struct baton_timings filled;
	struct baton *b;

	own.store = "memory:simulate";
	int code = open_handle(&own, &b);

	if (code != 0)
		return code;
	code = baton_get_timings(b, &filled) == 0 ? 0 : EXIT_INTERNAL;
	*t = (struct timing){.lease_ns = filled.lease_ns,
			     .renew_ns = filled.renew_ns,
			     .grace_ns = filled.grace_ns,
			     .retry_ns = filled.retry_ns,
			     .retry_max_ns = filled.retry_max_ns,
			     .drift_ppm = (uint64_t)filled.drift_permille * 1000};
	baton_close(b);
	return code;
}

/* The timings that the doctor has recommended stand first in its list. */
static bool fill_recommended(const char *text, struct timing *t)
{
	const char *list = find_key(text, "timings");

	*t = (struct timing){.drift_ppm = NEVER};
	if (list == NULL || !find_time(list, "lease_ms", &t->lease_ns) ||
	    !find_time(list, "renew_ms", &t->renew_ns) ||
	    !find_time(list, "grace_ms", &t->grace_ns))
		return false;
	timing_fill(t);
	return timing_check(t, 0) <= TIMING_WARN_RENEW;
}

static int check_settings(const struct settings *s)
{
	const struct {
		const char *option;
		int64_t value, min, max;
	} numbers[] = {
		{"--years", s->years, 1, 1000},
		{"--candidates", s->candidates, 1, SIMULATE_CANDIDATES_MAX},
		{"--crashes", s->crashes, 0, A_YEAR_MAX},
		{"--freezes", s->freezes, 0, A_YEAR_MAX},
		{"--outages", s->outages, 0, A_YEAR_MAX},
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (numbers[i].value < numbers[i].min || numbers[i].value > numbers[i].max)
			return cli_out_of_range(numbers[i].option, numbers[i].value, numbers[i].min,
						numbers[i].max);
	return 0;
}

static struct simulate_setup setup_of(const struct settings *s)
{
	return (struct simulate_setup){.round_trips_ms = near_ms,
				       .n_round_trips = N_NEAR,
				       .n_candidates = (uint32_t)s->candidates,
				       .years = (double)s->years,
				       .crashes_a_year = (double)s->crashes,
				       .restart_ns = RESTART_S * NS_PER_S,
				       .freezes_a_year = (double)s->freezes,
				       .freeze_ns = (uint64_t)s->freeze_ms * NS_PER_MS,
				       .outages_a_year = (double)s->outages,
				       .outage_ns = (uint64_t)s->outage_ms * NS_PER_MS,
				       .stop_ns = (uint64_t)s->stop_time_ms * NS_PER_MS,
				       .seed = (uint64_t)s->seed};
}

/* ---- what is shown ---- */

static const char *span_of(double ms, char *out, size_t size)
{
	return text_span((int64_t)(ms + 0.5), out, size);
}

static void show_head(const struct settings *s)
{
	char freeze[32], outage[32];

	(void)printf(
		"%lld candidate%s, %lld year%s. Each candidate crashes %lld times a year and is "
		"back after\n%d s. It stands still %lld times a year, for %s on average. The "
		"store is away\n%lld times a year, for %s on average. Round trips: %s.\n\n",
		(long long)s->candidates, s->candidates == 1 ? "" : "s", (long long)s->years,
		s->years == 1 ? "" : "s", (long long)s->crashes, RESTART_S, (long long)s->freezes,
		text_span(s->freeze_ms, freeze, sizeof(freeze)), (long long)s->outages,
		text_span(s->outage_ms, outage, sizeof(outage)),
		s->from != NULL ? s->from : "1 ms, a tenth 10 ms");
	(void)printf("%-29s  %-26s  %s\n%-11s %5s %5s %5s  %5s %6s %6s %6s  %7s %5s %5s\n", "",
		     "changes of leader a year by", "no candidate leads", "", "lease", "renew",
		     "grace", "crash", "freeze", "outage", "slow", "a year", "half", "99 %");
}

static void show_row(const struct plan *p)
{
	const struct timing *t = &p->setup.timing;
	const struct simulate_result *r = &p->result;
	char lease[32], renew[32], grace[32], without[32], half[32], most[32];

	(void)printf("%-11s %5s %5s %5s ", p->name,
		     span_of((double)t->lease_ns / 1e6, lease, sizeof(lease)),
		     span_of((double)t->renew_ns / 1e6, renew, sizeof(renew)),
		     span_of((double)t->grace_ns / 1e6, grace, sizeof(grace)));
	for (int i = 0; i < SIMULATE_CAUSES; i++)
		(void)printf(" %*.1f", i == SIMULATE_CRASH ? 5 : 6,
			     (double)r->failovers[i] / p->setup.years);
	(void)printf(
		"  %7s %5s %5s\n",
		span_of((double)r->without_ns / 1e6 / p->setup.years, without, sizeof(without)),
		span_of(simulate_gap_ms(r, 0.5), half, sizeof(half)),
		span_of(simulate_gap_ms(r, 0.99), most, sizeof(most)));
}

/* How long there was no leader after each leadership, one bar for each class: 1, 2, 5, 10... */
static void show_picture(const struct plan *p)
{
	const struct simulate_result *r = &p->result;
	static const double steps[] = {1, 2, 5};
	uint64_t below = 0;
	char longest[32];

	(void)printf("\nHow long no candidate led, %s timings: %llu times, the longest %s\n",
		     p->name, (unsigned long long)r->gaps,
		     span_of((double)r->longest_ns / 1e6, longest, sizeof(longest)));
	for (size_t i = 0; r->gaps > below && i < CLASSES_MAX; i++) {
		size_t digits = i / 3;
		double ms = steps[i % 3] * pow(10, (double)digits);
		uint64_t n = simulate_gaps_below(r, ms) - below;
		char text[32];

		below += n;
		if (below == 0)
			continue;
		(void)printf("  below %7s  ", span_of(ms, text, sizeof(text)));
		for (uint64_t k = 0; k < (n * BAR_COLUMNS + r->gaps - 1) / r->gaps; k++)
			(void)putchar('#');
		(void)printf("%s%llu\n", n > 0 ? " " : "", (unsigned long long)n);
	}
}

static void show_json(const struct plan *plans, size_t n)
{
	static const char *const causes[] = {"crash", "freeze", "outage", "slow"};

	(void)printf("[");
	for (size_t k = 0; k < n; k++) {
		const struct plan *p = &plans[k];
		const struct simulate_result *r = &p->result;

		(void)printf("%s{\"name\":\"%s\",\"lease_ms\":%.0f,\"renew_ms\":%.0f,"
			     "\"grace_ms\":%.0f,\"years\":%.0f",
			     k > 0 ? "," : "", p->name, (double)p->setup.timing.lease_ns / 1e6,
			     (double)p->setup.timing.renew_ns / 1e6,
			     (double)p->setup.timing.grace_ns / 1e6, p->setup.years);
		for (int i = 0; i < SIMULATE_CAUSES; i++)
			(void)printf(",\"%s\":%llu", causes[i],
				     (unsigned long long)r->failovers[i]);
		(void)printf(",\"without_ms\":%.0f,\"longest_ms\":%.0f,\"half_ms\":%.0f,"
			     "\"p99_ms\":%.0f,\"renewals\":%llu,\"overlaps\":%llu}",
			     (double)r->without_ns / 1e6, (double)r->longest_ns / 1e6,
			     simulate_gap_ms(r, 0.5), simulate_gap_ms(r, 0.99),
			     (unsigned long long)r->renewals, (unsigned long long)r->overlaps);
	}
	(void)printf("]\n");
}

static void show_text(const struct settings *s, const struct plan *plans, size_t n)
{
	uint64_t renewals = 0;
	uint64_t overlaps = 0;

	show_head(s);
	for (size_t i = 0; i < n; i++) {
		show_row(&plans[i]);
		renewals += plans[i].result.renewals;
		overlaps += plans[i].result.overlaps;
	}
	show_picture(&plans[n - 1]);
	(void)printf("\n%llu renewals, %llu overlaps of two leaders\n",
		     (unsigned long long)renewals, (unsigned long long)overlaps);
}

/* ---- ---- */

/* Takes from the file what it has: round trips, and timings that were recommended. */
static int add_file(const struct settings *s, struct plan plans[2], size_t *n, double **list)
{
	char *text = read_text(s->from);
	size_t n_list = 0;

	if (text == NULL)
		return EXIT_USAGE;
	*list = find_round_trips(text, &n_list);
	bool is_good = *list != NULL && fill_recommended(text, &plans[1].setup.timing);

	free(text);
	if (!is_good)
		return cli_usage("%s is not what \"baton doctor --measure=100s --json\" prints",
				 s->from);
	*n = 2;
	for (size_t i = 0; i < *n; i++) {
		plans[i].setup.round_trips_ms = *list;
		plans[i].setup.n_round_trips = n_list;
	}
	return 0;
}

int verb_simulate(struct settings *s)
{
	struct plan plans[2] = {{.name = "given"}, {.name = "recommended"}};
	double *list = NULL;
	size_t n = 1;
	int code = check_settings(s);

	plans[0].setup = plans[1].setup = setup_of(s);
	if (code == 0)
		code = fill_timing(s, &plans[0].setup.timing);
	if (code == 0 && s->from != NULL)
		code = add_file(s, plans, &n, &list);
	for (size_t i = 0; i < n && code == 0; i++)
		if (!simulate_run(&plans[i].setup, &plans[i].result))
			code = EXIT_INTERNAL;
	if (code == 0 && s->json != 0)
		show_json(plans, n);
	else if (code == 0)
		show_text(s, plans, n);
	free(list);
	return code;
}
