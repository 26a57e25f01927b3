/*
 * test_metrics.c: what baton_metrics() tells of a handover, of work that goes on for too long, of
 * lists and of the history. Numbers are exact where the test makes them; durations are not
 * asserted.
 */
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "baton-memory.h"
#include "baton.h"

#define SOON_MS 30000

static struct baton *open_as(const char *url, const char *id)
{
	struct baton_options o;
	struct baton_error err = {0};
	struct baton *b = NULL;

	baton_options_init(&o);
	o.id = id;
	o.lease_ms = 3000;
	if (baton_open(url, &o, &b, &err) != 0)
		fail_msg("%s", err.text);
	return b;
}

static struct baton_election *start(struct baton *b, const char *name)
{
	struct baton_election *e = NULL;

	assert_int_equal(baton_election_new(b, name, NULL, &e, NULL), 0);
	assert_int_equal(baton_election_start(e), 0);
	return e;
}

static struct baton_election *lead(struct baton *b, const char *name)
{
	struct baton_election *e = start(b, name);

	assert_int_equal(baton_try_acquire(e, SOON_MS, NULL), 1);
	return e;
}

/* Until an event of that kind comes. */
static void await(struct baton *b, int kind)
{
	struct baton_event ev = {0};

	while (ev.kind != kind)
		assert_int_equal(baton_wait(b, SOON_MS, &ev), 1);
}

/* ---- one time series ---- */

struct sought {
	const char *name;
	const char *value; /* of its last label; NULL: any */
	double found;      /* NAN: it isn't told */
	uint64_t count;
};

static void seek(void *arg, const struct baton_metric *m)
{
	struct sought *s = arg;

	for (size_t i = 0; i < m->n_labels; i++) /* ids are never labels */
		assert_true(strncmp(m->labels[i].value, "id-", 3) != 0);
	if (m->type == BATON_METRIC_HISTOGRAM) {
		uint64_t n = 0;

		for (size_t i = 0; i < m->n_buckets; i++)
			n += m->counts[i];
		assert_int_equal(n, m->count);
		assert_true(m->sum >= 0 && isinf(m->bounds[m->n_buckets - 1]));
	}
	if (strcmp(m->name, s->name) != 0 ||
	    (s->value != NULL && strcmp(m->labels[m->n_labels - 1].value, s->value) != 0))
		return;
	s->found = m->value;
	s->count = m->count;
}

static struct sought metric(struct baton *b, const char *name, const char *value)
{
	struct sought s = {.name = name, .value = value, .found = NAN};

	assert_true(baton_metrics(b, seek, &s) > 0);
	return s;
}

static double value_of(struct baton *b, const char *name, const char *value)
{
	return metric(b, name, value).found;
}

static uint64_t count_of(struct baton *b, const char *name, const char *value)
{
	return metric(b, name, value).count;
}

/* ---- handovers ---- */

static void handovers_are_counted(void **state)
{
	struct baton *a = open_as("memory:handover", "id-a");
	struct baton *b = open_as("memory:handover", "id-b");
	struct baton_election *ea = lead(a, "n");

	(void)state;
	(void)start(b, "n");
	await(b, BATON_EVENT_CHANGED);
	/* Who leads first has taken over from nobody. */
	assert_int_equal(count_of(a, "baton_handover_seconds", NULL), 0);
	assert_int_equal(baton_election_stop(ea, SOON_MS), 0);
	await(b, BATON_EVENT_BECAME);
	assert_int_equal(count_of(b, "baton_handover_seconds", "released"), 1);
	assert_int_equal(count_of(b, "baton_handover_seconds", "expired"), 0);
	assert_int_equal(count_of(a, "baton_tenure_seconds", NULL), 1);
	assert_int_equal(count_of(a, "baton_drain_seconds", NULL), 1);
	assert_true(value_of(a, "baton_leaderships_lost_total", "stopped") == 1);
	assert_true(value_of(a, "baton_overruns_total", NULL) == 0);
	assert_true(value_of(a, "baton_releases_total", NULL) == 1);
	assert_true(value_of(b, "baton_hints_total", NULL) >= 1);
	baton_close(a);
	baton_close(b);
}

/* Leads on its own, says so, and waits to be killed. */
static void lead_until_killed(const char *url, int ready)
{
	struct baton *b = open_as(url, "id-child");

	(void)lead(b, "n");
	(void)!write(ready, "x", 1);
	while (true)
		(void)pause();
}

static void deaths_are_told_apart(void **state)
{
	char dir[] = "/tmp/baton-metrics-XXXXXX";
	char url[64];
	char command[64];
	char byte;
	int ready[2];

	(void)state;
	assert_non_null(mkdtemp(dir));
	(void)snprintf(url, sizeof(url), "file:%s", dir);
	assert_int_equal(pipe(ready), 0);
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0)
		lead_until_killed(url, ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	struct baton *b = open_as(url, "id-b");

	(void)start(b, "n");
	await(b, BATON_EVENT_CHANGED);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	await(b, BATON_EVENT_BECAME);
	assert_int_equal(count_of(b, "baton_handover_seconds", "died"), 1);
	assert_int_equal(count_of(b, "baton_handover_seconds", "released"), 0);
	baton_close(b);
	(void)close(ready[0]);
	(void)close(ready[1]);
	(void)snprintf(command, sizeof(command), "rm -r %s", dir);
	assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): a folder of its own */
}

/* ---- work ---- */

/* Of a work that takes its time. */
static struct baton_election *lead_slowly(struct baton *b, uint64_t work_timeout_ms)
{
	struct baton_election_options o;
	struct baton_election *e = NULL;

	baton_election_options_init(&o);
	o.drain_by_hand = true;
	o.work_timeout_ms = work_timeout_ms;
	assert_int_equal(baton_election_new(b, "n", &o, &e, NULL), 0);
	assert_int_equal(baton_election_start(e), 0);
	assert_int_equal(baton_try_acquire(e, SOON_MS, NULL), 1);
	return e;
}

static void overdue_work_is_an_overrun(void **state)
{
	struct baton *a = open_as("memory:overdue", "id-a");
	struct baton *b = open_as("memory:overdue", "id-b");
	struct baton_election *e = lead_slowly(a, 100);
	uint64_t term = baton_term(e);

	(void)state;
	assert_true(value_of(a, "baton_overruns_total", NULL) == 0);
	(void)start(b, "n");
	await(b, BATON_EVENT_BECAME); /* it gave no sign of life, and had its time */
	assert_true(value_of(a, "baton_overruns_total", NULL) == 1);
	assert_int_equal(baton_drained(e, term), 0);
	assert_true(value_of(a, "baton_overruns_total", NULL) == 1);
	assert_int_equal(count_of(a, "baton_drain_seconds", NULL), 1);
	baton_close(a);
	baton_close(b);
}

static void work_beyond_the_lease_is_an_overrun(void **state)
{
	struct baton_memory *m = NULL;
	struct baton *a = open_as("memory:overrun", "id-a");
	struct baton_election *e = lead_slowly(a, 0);
	struct baton_event ev;
	uint64_t term = baton_term(e);

	(void)state;
	assert_int_equal(baton_memory_open("memory:overrun", &m, NULL), 0);
	assert_int_equal(baton_memory_expire(m, "id-a"), 1);
	await(a, BATON_EVENT_LOST);
	while (value_of(a, "baton_overruns_total", NULL) == 0)
		(void)baton_wait(a, 50, &ev);
	assert_int_equal(baton_drained(e, term), 0);
	assert_true(value_of(a, "baton_overruns_total", NULL) == 1);
	baton_close(a);
	baton_memory_close(m);
}

static void count_call(void *arg, const struct baton_event *ev)
{
	(void)arg;
	(void)ev;
}

static void handlers_are_timed(void **state)
{
	struct baton_election_options o;
	struct baton *b = open_as("memory:handlers", "id-a");
	struct baton_election *e = NULL;

	(void)state;
	baton_election_options_init(&o);
	o.handler = count_call;
	assert_int_equal(baton_election_new(b, "n", &o, &e, NULL), 0);
	assert_int_equal(baton_election_start(e), 0);
	assert_int_equal(baton_try_acquire(e, SOON_MS, NULL), 1);
	assert_int_equal(baton_election_stop(e, SOON_MS), 0);
	assert_true(value_of(b, "baton_handlers_total", NULL) >= 2);
	assert_true(count_of(b, "baton_handler_seconds", NULL) >= 2);
	baton_close(b);
}

/* ---- what was listed ---- */

static void ignore_candidate(void *arg, const struct baton_candidate *c)
{
	(void)arg;
	(void)c;
}

static void ignore_leadership(void *arg, const struct baton_leadership *l)
{
	(void)arg;
	(void)l;
}

/* Candidates show themselves a moment after they start. */
static void list_candidates(struct baton *b, int n)
{
	int found = 0;

	while (found != n) {
		found = baton_list_candidates(b, "n", ignore_candidate, NULL, NULL);
		assert_true(found >= 0);
	}
}

static void lists_are_remembered(void **state)
{
	struct baton *a = open_as("memory:listed", "id-a");
	struct baton *b = open_as("memory:listed", "id-b");
	struct baton_election_options o;
	struct baton_election *sick = NULL;

	(void)state;
	(void)lead(a, "n");
	assert_true(isnan(value_of(a, "baton_candidates", "healthy")));
	baton_election_options_init(&o);
	o.check_health = true;
	o.min_score_permille = 500;
	assert_int_equal(baton_election_new(b, "n", &o, &sick, NULL), 0);
	assert_int_equal(baton_report_health(sick, 100, NULL), 0);
	assert_int_equal(baton_election_start(sick), 0);
	list_candidates(a, 2);
	assert_true(value_of(a, "baton_candidates", "healthy") == 1);
	assert_true(value_of(a, "baton_candidates", "unhealthy") == 1);
	assert_true(value_of(b, "baton_health_score_ratio", NULL) == 0.1);
	baton_close(a);
	baton_close(b);
}

/* The store's clock goes back between two leaderships: by its clock they overlap. */
static void overlaps_are_audited(void **state)
{
	struct baton_memory *m = NULL;
	struct baton *a = open_as("memory:audit", "id-a");
	struct baton *b = open_as("memory:audit", "id-b");

	(void)state;
	assert_int_equal(baton_memory_open("memory:audit", &m, NULL), 0);
	baton_memory_hold_clock(m, true);
	assert_int_equal(baton_election_stop(lead(a, "n"), SOON_MS), 0);
	assert_true(value_of(a, "baton_overlap_seconds_total", NULL) == 0);
	assert_int_equal(baton_list_history(a, "n", 0, ignore_leadership, NULL, NULL), 1);
	assert_true(value_of(a, "baton_overlap_seconds_total", NULL) == 0);
	baton_memory_set_clock(m, baton_memory_clock_ms(m) - 250);
	(void)lead(b, "n");
	/* The last one alone says nothing of the pair, and must not count as looked at. */
	assert_int_equal(baton_list_history(a, "n", 1, ignore_leadership, NULL, NULL), 1);
	assert_true(value_of(a, "baton_overlap_seconds_total", NULL) == 0);
	for (int i = 0; i < 2; i++) { /* each pair counts once */
		assert_int_equal(baton_list_history(a, "n", 0, ignore_leadership, NULL, NULL), 2);
		assert_true(value_of(a, "baton_overlap_seconds_total", NULL) == 0.25);
	}
	baton_close(a);
	baton_close(b);
	baton_memory_close(m);
}

/* ---- the store, and the library's own threads ---- */

/* A store that says nothing isn't up, though nothing has failed yet. */
static void silence_is_not_up(void **state)
{
	struct baton_memory *m = NULL;

	(void)state;
	assert_int_equal(baton_memory_open("memory:silent", &m, NULL), 0);
	baton_memory_black_hole(m, BATON_MEMORY_ANY, BATON_MEMORY_ALWAYS);
	struct baton *b = open_as("memory:silent", "id-a");

	assert_true(value_of(b, "baton_store_up", NULL) == 0);
	(void)start(b, "n");
	assert_true(value_of(b, "baton_store_up", NULL) == 0);
	assert_true(value_of(b, "baton_store_last_success_timestamp_seconds", NULL) == 0);
	assert_true(value_of(b, "baton_loop_stalled_seconds", NULL) >= 0);
	baton_memory_heal(m);
	await(b, BATON_EVENT_BECAME);
	assert_true(value_of(b, "baton_store_up", NULL) == 1);
	assert_true(value_of(b, "baton_store_last_success_timestamp_seconds", NULL) > 0);
	for (size_t i = 0; i < 3; i++) {
		static const char *const lanes[] = {"renew", "campaign", "watch"};

		assert_true(value_of(b, "baton_lane_overdue_seconds", lanes[i]) >= 0);
	}
	baton_close(b);
	baton_memory_close(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(deaths_are_told_apart), /* first: it forks */
		cmocka_unit_test(handovers_are_counted),
		cmocka_unit_test(overdue_work_is_an_overrun),
		cmocka_unit_test(work_beyond_the_lease_is_an_overrun),
		cmocka_unit_test(handlers_are_timed),
		cmocka_unit_test(lists_are_remembered),
		cmocka_unit_test(overlaps_are_audited),
		cmocka_unit_test(silence_is_not_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
