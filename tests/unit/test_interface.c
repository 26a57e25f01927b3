/*
 * test_interface.c: what programs of other languages stand on: a handle that costs nothing until it
 * contends, threads that take no signals, structs that may grow, names, metrics, traces, and
 * drivers that are older than the library.
 */
#include <dirent.h>
#include <math.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "baton-memory.h"
#include "baton.h"
#include "lib/lib.h"

#define SOON_MS 10000

static struct baton *open_it(const char *url)
{
	struct baton_error err = {0};
	struct baton *b = NULL;

	if (baton_open(url, NULL, &b, &err) != 0)
		fail_msg("%s", err.text);
	return b;
}

static struct baton_election *lead(struct baton *b, const char *name)
{
	struct baton_election *e = NULL;
	int obstacle = -1;

	assert_int_equal(baton_election_new(b, name, NULL, &e, NULL), 0);
	assert_int_equal(baton_try_acquire(e, SOON_MS, &obstacle), BATON_E_NOT_STARTED);
	assert_int_equal(obstacle, BATON_OBSTACLE_STOPPED);
	assert_int_equal(baton_election_start(e), 0);
	assert_int_equal(baton_try_acquire(e, SOON_MS, &obstacle), 1);
	assert_int_equal(obstacle, BATON_OBSTACLE_NONE);
	return e;
}

/* ---- threads ---- */

static unsigned long long own_signals(void)
{
	return 1ull << (SIGSEGV - 1) | 1ull << (SIGBUS - 1) | 1ull << (SIGFPE - 1) |
	       1ull << (SIGILL - 1) | 1ull << (SIGKILL - 1) | 1ull << (SIGSTOP - 1) |
	       3ull << 31; /* the C library's own */
}

/* Whether the thread blocks all signals that it should. */
static bool is_deaf(const char *task)
{
	char path[300];
	char line[128];
	unsigned long long blocked = 0;

	(void)snprintf(path, sizeof(path), "/proc/self/task/%s/status", task);
	FILE *f = fopen(path, "re");

	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		if (strncmp(line, "SigBlk:", 7) == 0)
			blocked = strtoull(line + 7, NULL, 16);
	if (f != NULL)
		(void)fclose(f);
	if (access(path, F_OK) != 0) /* it has ended meanwhile */
		return true;
	/* While a thread begins or ends, the C library blocks all of them. */
	return (blocked | own_signals()) == UINT64_MAX;
}

/* How many threads there are; all but the first must be deaf. */
static unsigned count_threads(void)
{
	DIR *d = opendir("/proc/self/task");
	unsigned n = 0;

	for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
		if (e->d_name[0] == '.')
			continue;
		n++;
		if (strtol(e->d_name, NULL, 10) != getpid())
			assert_true(is_deaf(e->d_name));
	}
	(void)closedir(d);
	return n;
}

static void nothing_runs_before_an_election(void **state)
{
	struct baton_observed seen;
	unsigned before = count_threads();
	struct baton *b = open_it("memory:lazy");

	(void)state;
	assert_int_equal(baton_observe(b, "nobody", &seen, NULL), 0);
	assert_int_equal(seen.size, sizeof(seen));
	assert_false(seen.has_leader);
	assert_int_equal(baton_pause(b, "nobody", NULL), 0);
	assert_true(baton_fd(b) >= 0);
	struct baton_event ev;

	assert_int_equal(baton_wait(b, 0, &ev), 0);
	assert_int_equal(count_threads(), before);
	struct baton_election *e = lead(b, "lazy");

	assert_true(count_threads() > before); /* and none of them takes signals */
	assert_int_equal(baton_observe(b, "lazy", &seen, NULL), 0);
	assert_true(seen.has_leader);
	assert_string_equal(seen.leader, baton_id(b));
	assert_int_equal(seen.term, baton_term(e));
	baton_close(b);
	/* A thread that was joined may be shown for a moment. */
	for (int i = 0; i < SOON_MS && count_threads() > before; i++)
		(void)poll(NULL, 0, 1);
	assert_int_equal(count_threads(), before);
}

/* ---- structs that grow ---- */

/* The option struct of a library to come, and a program that was compiled with today's. */
static void a_newer_library_takes_shorter_options(void **state)
{
	struct {
		struct baton_run_options today;
		uint64_t added;
	} known = {.added = 42};
	struct baton_run_options program;
	struct baton_error err;
	size_t today = sizeof(program);

	(void)state;
	baton_run_options_init(&program);
	program.once = true;
	assert_int_equal(lib_take_sized(&known, sizeof(known), today, &program, today, &err), 0);
	assert_true(known.today.once);
	assert_int_equal(known.added, 42); /* what it doesn't know keeps its default */
	assert_int_equal(lib_take_sized(&known, sizeof(known), today, &program, today - 1, &err),
			 BATON_E_INVALID);
	assert_non_null(strstr(err.text, "init function"));
	program.quiet_ms = 1;
	assert_int_equal(lib_take_sized(&known, 8, 8, &program, today, &err), BATON_E_UNSUPPORTED);
}

struct oldest {
	struct baton_election *e;
	uint64_t term;
};

static int works(struct baton_context *ctx, void *arg)
{
	struct oldest *o = arg;

	o->term = baton_context_term(ctx);
	return baton_election_stop(o->e, 0);
}

/* It was compiled with the first version of each option struct: it opens, elects and runs. */
static void the_oldest_program_runs(void **state)
{
	struct baton_options options;
	struct baton_election_options election;
	struct baton_run_options run;
	struct oldest o = {0};
	struct baton_error err = {0};
	struct baton *b = NULL;

	(void)state;
	(void)memset(&options, 0xa5, sizeof(options));
	(void)memset(&election, 0xa5, sizeof(election));
	(void)memset(&run, 0xa5, sizeof(run));
	baton_options_init_sized(&options, FIRST_OPTIONS);
	baton_election_options_init_sized(&election, FIRST_ELECTION_OPTIONS);
	baton_run_options_init_sized(&run, FIRST_RUN_OPTIONS);
	assert_int_equal(baton_open("memory:oldest", &options, &b, &err), 0);
	assert_int_equal(baton_election_new(b, "oldest", &election, &o.e, &err), 0);
	assert_int_equal(baton_run_when_elected(o.e, works, &o, &run), 0);
	assert_true(o.term > 0);
	baton_close(b);
}

static void older_programs_get_less(void **state)
{
	struct baton *b = open_it("memory:sizes");
	struct baton_election *e = lead(b, "sizes");
	struct {
		struct baton_status status;
		char behind[8];
	} s;

	(void)state;
	memset(&s, 0x55, sizeof(s));
	size_t size = offsetof(struct baton_status, term) + sizeof(s.status.term);

	assert_int_equal(baton_get_status_sized(e, &s.status, size), 0);
	assert_int_equal(s.status.size, size);
	assert_int_equal(s.status.state, BATON_STATE_LEADING);
	assert_int_equal(((unsigned char *)&s)[size], 0x55); /* not touched */
	/* A newer one: what we don't know is zero. */
	assert_int_equal(baton_get_status_sized(e, &s.status, sizeof(s)), 0);
	assert_int_equal(s.status.size, sizeof(s.status));
	assert_int_equal(s.behind[0], 0);
	assert_int_equal(baton_get_status_sized(e, &s.status, 4), BATON_E_INVALID);
	struct baton_event ev;

	memset(&ev, 0x55, sizeof(ev));
	size = offsetof(struct baton_event, code);
	assert_int_equal(baton_wait_sized(b, SOON_MS, &ev, size), 1);
	assert_int_equal(ev.size, size);
	assert_int_equal(ev.kind, BATON_EVENT_BECAME);
	assert_int_equal(ev.code, 0x55555555);
	struct baton_stats stats;

	assert_int_equal(baton_get_stats(b, &stats), 0);
	assert_int_equal(stats.size, sizeof(stats));
	assert_int_equal(stats.leading, 1);
	int64_t deadline_ns = 0;
	int64_t end_ns = 0;

	assert_int_equal(baton_get_deadline(e, &deadline_ns, &end_ns), 1);
	assert_true(deadline_ns > (int64_t)clock_boot_ns() && end_ns > deadline_ns);
	baton_close(b);
}

static void names_of_constants(void **state)
{
	(void)state;
	assert_string_equal(baton_code_name(BATON_OK), "ok");
	assert_string_equal(baton_code_name(BATON_E_DUPLICATE_ID), "duplicate_id");
	for (int code = BATON_E_DUPLICATE_ID; code <= 0; code++)
		assert_string_not_equal(baton_code_name(code), "unknown");
	assert_string_equal(baton_code_name(BATON_E_DUPLICATE_ID - 1), "unknown");
	assert_string_equal(baton_code_name(INT32_MIN), "unknown");
	assert_string_equal(baton_code_name(1), "unknown");
	for (int i = BATON_EVENT_BECAME; i <= BATON_EVENT_RENEWED; i++)
		assert_string_not_equal(baton_event_name(i), "unknown");
	assert_string_equal(baton_event_name(0), "unknown");
	assert_string_equal(baton_event_name(BATON_EVENT_RENEWED + 1), "unknown");
	for (int i = 0; i <= BATON_REASON_PAUSED; i++)
		assert_string_not_equal(baton_reason_name(i), "unknown");
	for (int i = 0; i <= BATON_STATE_RESIGNING; i++)
		assert_string_not_equal(baton_state_name(i), "unknown");
	for (int i = 0; i <= BATON_CONDITION_UNHEALTHY; i++)
		assert_string_not_equal(baton_condition_name(i), "unknown");
	for (int i = 0; i <= BATON_OBSTACLE_TERMS; i++)
		assert_string_not_equal(baton_obstacle_name(i), "unknown");
	assert_int_equal(baton_version_number(), BATON_VERSION_NUMBER);
}

/* ---- why not ---- */

static void why_not(void **state)
{
	struct baton *a = open_it("memory:why");
	struct baton *b = open_it("memory:why");
	struct baton_election *leads = lead(a, "why");
	struct baton_election *e = NULL;
	int obstacle = -1;

	(void)state;
	assert_int_equal(baton_election_new(b, "why", NULL, &e, NULL), 0);
	assert_int_equal(baton_election_start(e), 0);
	assert_int_equal(baton_try_acquire(e, SOON_MS, &obstacle), 0);
	assert_int_equal(obstacle, BATON_OBSTACLE_HELD);
	assert_int_equal(baton_report_health(e, 0, NULL), 0);
	assert_int_equal(baton_try_acquire(e, SOON_MS, &obstacle), 0);
	assert_int_equal(obstacle, BATON_OBSTACLE_UNHEALTHY);
	assert_int_equal(baton_report_health(e, 1000, NULL), 0);
	/* Who pulls events, and has not said that its work has ended. */
	struct baton_event ev;

	assert_int_equal(baton_wait(a, SOON_MS, &ev), 1);
	assert_int_equal(baton_resign(leads, 0), 0);
	assert_int_equal(baton_try_acquire(leads, 50, &obstacle), BATON_E_TIMEOUT);
	assert_int_equal(obstacle, BATON_OBSTACLE_DRAINING);
	assert_int_equal(baton_pause(b, "why", NULL), 0);
	do /* it comes to know of it by the answer, if not by a hint */
		assert_int_equal(baton_try_acquire(e, SOON_MS, &obstacle), 0);
	while (obstacle == BATON_OBSTACLE_HELD);
	assert_int_equal(obstacle, BATON_OBSTACLE_PAUSED);
	baton_close(a);
	baton_close(b);
}

/* ---- metrics and traces ---- */

struct metric_tally {
	unsigned n;
	unsigned n_elections;
	bool leads;
	bool has_histogram;
	char last[64];
	char done[64][64]; /* names that are over */
	unsigned n_done;
};

static void count_metric(void *arg, const struct baton_metric *m)
{
	struct metric_tally *t = arg;

	assert_int_equal(m->size, sizeof(*m));
	assert_true(strncmp(m->name, "baton_", 6) == 0 && m->help[0] != '\0');
	assert_true(m->n_labels <= 2);
	if (strcmp(m->name, t->last) != 0) { /* those of one name follow one another */
		for (unsigned i = 0; i < t->n_done; i++)
			assert_string_not_equal(t->done[i], m->name);
		assert_true(t->n_done < 64);
		(void)snprintf(t->done[t->n_done++], 64, "%s", t->last);
		(void)snprintf(t->last, sizeof(t->last), "%s", m->name);
	}
	t->n++;
	if (strcmp(m->name, "baton_is_leader") == 0) {
		t->n_elections++;
		assert_string_equal(m->labels[0].name, "election");
		t->leads =
			t->leads || (strcmp(m->labels[0].value, "counted") == 0 && m->value == 1);
	}
	if (strcmp(m->name, "baton_campaign_duration_seconds") == 0) {
		uint64_t sum = 0;

		assert_int_equal(m->type, BATON_METRIC_HISTOGRAM);
		for (size_t i = 0; i < m->n_buckets; i++)
			sum += m->counts[i];
		assert_int_equal(sum, m->count);
		assert_true(m->count > 0 && m->sum >= 0 && isinf(m->bounds[m->n_buckets - 1]));
		t->has_histogram = true;
	}
}

static void metrics_are_data(void **state)
{
	struct baton *b = open_it("memory:metrics");
	struct baton_election *other = NULL;
	struct metric_tally t = {0};

	(void)state;
	(void)lead(b, "counted");
	assert_int_equal(baton_election_new(b, "idle", NULL, &other, NULL), 0);
	int n = baton_metrics(b, count_metric, &t);

	assert_int_equal(n, t.n);
	assert_int_equal(t.n_elections, 2);
	assert_true(t.leads && t.has_histogram);
	assert_int_equal(baton_metrics(b, NULL, NULL), BATON_E_INVALID);
	baton_close(b);
}

static void note_trace(void *arg, const struct baton_trace_record *r)
{
	_Atomic bool *became = arg;

	assert_int_equal(r->size, sizeof(*r));
	assert_non_null(r->happening);
	assert_non_null(r->decision);
	assert_non_null(r->reason);
	if (strcmp(r->decision, "became") == 0) {
		assert_string_equal(r->happening, "campaigned");
		assert_string_equal(r->election, "traced");
		assert_int_equal(r->outcome, 1);
		assert_true(r->term > 0 && r->boot_ns > 0);
		atomic_store(became, true);
	}
}

static void decisions_are_traced(void **state)
{
	_Atomic bool became = false;
	struct baton_options o;
	struct baton *b = NULL;

	(void)state;
	baton_options_init(&o);
	o.trace = note_trace;
	o.trace_arg = &became;
	assert_int_equal(baton_open("memory:traced", &o, &b, NULL), 0);
	(void)lead(b, "traced");
	assert_true(atomic_load(&became));
	baton_close(b);
}

/* ---- a look from outside ---- */

static void count_candidate(void *arg, const struct baton_candidate *c)
{
	int *n_leaders = arg;

	assert_int_equal(c->size, sizeof(*c));
	*n_leaders += c->is_leader;
}

static void survey_is_both(void **state)
{
	struct baton *b = open_it("memory:survey");
	struct baton_observed o = {0};
	int n_leaders = 0;
	int n = 0;

	(void)state;
	assert_int_equal(baton_survey(b, "n", &o, count_candidate, &n_leaders, NULL), 0);
	assert_false(o.has_leader);
	(void)lead(b, "n");
	while (n == 0) /* it shows itself a moment later */
		n = baton_survey(b, "n", &o, count_candidate, &n_leaders, NULL);
	assert_int_equal(n, 1);
	assert_true(o.has_leader && n_leaders == 1);
	assert_string_equal(o.leader, baton_id(b));
	assert_int_equal(baton_survey(b, "n", &o, NULL, NULL, NULL), BATON_E_INVALID);
	assert_int_equal(baton_survey(b, "", &o, count_candidate, &n_leaders, NULL),
			 BATON_E_INVALID);
	baton_close(b);
}

/* ---- stores that can't ---- */

static void never_found(void *arg, const char *name)
{
	(void)arg;
	fail_msg("found %s", name);
}

static void outlive_puts_death_aside(void **state)
{
	char dir[] = "/tmp/baton-outlive-XXXXXX";
	char url[64];
	struct baton_timings timings;
	struct baton_options o;
	struct baton *b = NULL;

	(void)state;
	assert_non_null(mkdtemp(dir));
	(void)snprintf(url, sizeof(url), "file:%s", dir);
	baton_options_init(&o);
	for (int outlive = 0; outlive < 2; outlive++) {
		o.outlive = outlive == 1;
		assert_int_equal(baton_open(url, &o, &b, NULL), 0);
		assert_int_equal(baton_get_timings(b, &timings), 0);
		assert_true(timings.proves_death == (outlive == 0));
		baton_close(b);
	}
	(void)rmdir(dir);
	/* Where no death is proven there is nothing to keep. */
	assert_int_equal(baton_open("memory:outlive", &o, &b, NULL), 0);
	baton_close(b);
}

#ifdef TEST_POSTGRES
/* Where a store has nothing to put it in, it is refused; so no deadline is told that isn't kept. */
static void outlive_is_refused(void **state)
{
	static const struct {
		const char *query;
		int code;
	} modes[] = {{"", 0},
		     {"?fast=1", 0},
		     {"?mode=advisory", 0},
		     {"?mode=advisory&fast=1", BATON_E_UNSUPPORTED}};
	struct baton_options o;

	(void)state;
	assert_int_equal(setenv("BATON_MODULE_DIR", TEST_POSTGRES, 1), 0);
	baton_options_init(&o);
	o.outlive = true;
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		struct baton_error err = {0};
		struct baton *b = NULL;
		char url[64];

		(void)snprintf(url, sizeof(url), "postgres://127.0.0.1:1/x%s", modes[i].query);
		assert_int_equal(baton_open(url, &o, &b, &err), modes[i].code);
		if (modes[i].code != 0)
			assert_non_null(strstr(err.text, "outlive is not supported"));
		else if (strstr(modes[i].query, "advisory") != NULL)
			assert_non_null(strstr(baton_promises(b), "outlive"));
		baton_close(b);
	}
}
#endif

static void older_drivers_are_loaded(void **state)
{
	struct baton_error err = {0};

	(void)state;
	assert_int_equal(setenv("BATON_MODULE_DIR", TEST_MODULES, 1), 0);
	struct baton *b = open_it("older:one");
	struct baton_election *e = lead(b, "old");

	assert_true(baton_is_leader(e));
	assert_int_equal(baton_list_elections(b, "", "", never_found, NULL, &err),
			 BATON_E_UNSUPPORTED);
	assert_true(err.text[0] != '\0');
	assert_int_equal(baton_list_elections(b, NULL, NULL, NULL, NULL, &err), BATON_E_INVALID);
	struct baton_context *ctx = NULL;

	assert_int_equal(baton_enter(e, &ctx, NULL), 0);
	assert_int_equal(baton_order_resign(b, "old", baton_term(e), 0, "a note", &err), 0);
	assert_true(baton_context_wait(ctx, SOON_MS));
	baton_leave(ctx);
	baton_leave(NULL);
	baton_close(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_runs_before_an_election),
		cmocka_unit_test(older_programs_get_less),
		cmocka_unit_test(names_of_constants),
		cmocka_unit_test(why_not),
		cmocka_unit_test(metrics_are_data),
		cmocka_unit_test(decisions_are_traced),
		cmocka_unit_test(survey_is_both),
		cmocka_unit_test(outlive_puts_death_aside),
#ifdef TEST_POSTGRES
		cmocka_unit_test(outlive_is_refused),
#endif
		cmocka_unit_test(a_newer_library_takes_shorter_options),
		cmocka_unit_test(the_oldest_program_runs),
		cmocka_unit_test(older_drivers_are_loaded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
