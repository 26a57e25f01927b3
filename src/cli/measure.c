/*
 * measure.c: `baton doctor --measure`: renews a private lease ten times a second, and sees how long
 * each renewal takes, how long none comes through, how long this machine stands still, and what
 * the kernel tells of that. Then advice.c makes timings of it. It takes part in an election of its
 * own, which no other process uses.
 */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/advice.h"
#include "cli/cli.h"
#include "cli/machine.h"

#define RENEW_MS 100
#define GRACE_MS 8000
#define LEASE_MS 20000
#define WAIT_MS 20000 /* for the first answer of the store */
#define NEEDED 1000   /* samples that p99.9 needs */
#define KEPT 1000     /* round trips that are told, for baton simulate */

struct pauses {
	atomic_bool is_over;
	_Atomic uint64_t longest_ns;
};

/* How late a timer of a millisecond is. */
static void *watch_pauses(void *arg)
{
	struct pauses *p = arg;
	uint64_t last_ns = clock_boot_ns();

	while (!atomic_load(&p->is_over)) {
		const struct timespec ms = {.tv_nsec = (long)CLOCK_NS_PER_MS};

		(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &ms, NULL);
		uint64_t now_ns = clock_boot_ns();
		uint64_t late_ns =
			now_ns - last_ns > CLOCK_NS_PER_MS ? now_ns - last_ns - CLOCK_NS_PER_MS : 0;

		if (late_ns > atomic_load(&p->longest_ns))
			atomic_store(&p->longest_ns, late_ns);
		last_ns = now_ns;
	}
	return NULL;
}

/* ---- renewals ---- */

struct renewals {
	struct measured *m;
	size_t room;
	uint64_t ahead_ns; /* from the send of a renewal to the deadline that it gives */
	uint64_t last_ns;  /* when the last good one was sent */
	uint64_t outage_ns;
};

static bool note_renewal(struct renewals *r, const struct baton_event *event)
{
	uint64_t sent_ns = (uint64_t)event->deadline_boot_ns - r->ahead_ns;
	uint64_t now_ns = clock_boot_ns();
	uint64_t due_ns = 2 * RENEW_MS * CLOCK_NS_PER_MS;

	if (r->last_ns != 0 && sent_ns > r->last_ns + due_ns &&
	    sent_ns - r->last_ns - due_ns > r->outage_ns)
		r->outage_ns = sent_ns - r->last_ns - due_ns;
	r->last_ns = sent_ns;
	if (r->m->n == r->room) {
		size_t room = r->room != 0 ? 2 * r->room : 1024;
		double *more = realloc(r->m->samples, room * sizeof(*more));

		if (more == NULL)
			return false;
		r->m->samples = more;
		r->room = room;
	}
	r->m->samples[r->m->n++] = (double)(now_ns - sent_ns) / 1e6;
	return true;
}

/* 0, or an exit code. */
static int take_samples(struct baton *b, struct renewals *r, int64_t measure_ms)
{
	uint64_t begin_ns = clock_boot_ns();
	uint64_t end_ns = begin_ns + WAIT_MS * CLOCK_NS_PER_MS;
	bool is_leading = false;
	struct baton_event event;

	for (uint64_t now_ns; (now_ns = clock_boot_ns()) < end_ns;) {
		int64_t left_ms = (int64_t)((end_ns - now_ns) / CLOCK_NS_PER_MS) + 1;

		if (baton_wait(b, left_ms, &event) != 1)
			continue;
		if (event.kind == BATON_EVENT_BECAME) {
			is_leading = true;
			end_ns = clock_boot_ns() + (uint64_t)measure_ms * CLOCK_NS_PER_MS;
		} else if (event.kind == BATON_EVENT_LOST) {
			log_say(BATON_LOG_WARN, "the store was away for more than %d s",
				GRACE_MS / 1000);
			r->outage_ns = GRACE_MS * CLOCK_NS_PER_MS;
			break;
		} else if (event.kind == BATON_EVENT_RENEWED && !note_renewal(r, &event)) {
			return EXIT_INTERNAL;
		}
	}
	if (!is_leading || r->m->n == 0) {
		log_say(BATON_LOG_ERROR, "no renewal came through: see baton doctor");
		return EXIT_UNAVAILABLE;
	}
	return 0;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void find_floor(void *arg, const struct baton_driver_info *info)
{
	struct {
		const char *url;
		struct measured *m;
	} *look = arg;
	size_t n = strcspn(look->url, ":");

	for (size_t i = 0; info->error == NULL && info->schemes[i] != NULL; i++) {
		if (strlen(info->schemes[i]) != n || strncmp(info->schemes[i], look->url, n) != 0)
			continue;
		look->m->floor_ms = (double)info->min_lease_ms;
		if (info->drift_permille / 1e3 > look->m->drift)
			look->m->drift = info->drift_permille / 1e3;
	}
}

/* ---- what is shown ---- */

static void show_row(const struct advice *a)
{
	char lease[32], renew[32], grace[32], drain[32], typical[32], most[32];

	(void)printf("%-12s %7s %7s %7s %7s%s %8s %8s %9.2g %9.2g %6.0f\n", a->name,
		     text_span((int64_t)a->lease_ms, lease, sizeof(lease)),
		     text_span((int64_t)a->renew_ms, renew, sizeof(renew)),
		     text_span((int64_t)a->grace_ms, grace, sizeof(grace)),
		     text_span((int64_t)a->drain_ms, drain, sizeof(drain)),
		     a->is_enough ? " " : "!",
		     text_span((int64_t)a->typical_ms, typical, sizeof(typical)),
		     text_span((int64_t)a->most_ms, most, sizeof(most)), a->false_a_year,
		     a->false_at_most, a->requests_a_minute);
}

static const char *text_percent(double value, char *out, size_t size)
{
	if (value < 0)
		return "not told";
	(void)snprintf(out, size, "%.1f %%", value);
	return out;
}

static void show_machine(const struct measured *m)
{
	char pressure[32], steal[32], floor[32];

	(void)printf("something waited for a processor (pressure): %s; the host took (steal): %s\n",
		     text_percent(m->pressure_percent, pressure, sizeof(pressure)),
		     text_percent(m->steal_percent, steal, sizeof(steal)));
	(void)printf("the store's own floor, the least lease: %s\n",
		     m->floor_ms > 0 ? text_span((int64_t)m->floor_ms, floor, sizeof(floor))
				     : "not told");
}

static void show_text(const struct measured *m, const struct advice rows[ADVICE_ROWS])
{
	(void)printf("%zu renewals: half within %.2f ms, 99 %% within %.2f, 99.9 %% within %.2f, "
		     "the worst %.2f\n",
		     m->n, advice_quantile(m, 0.5), advice_quantile(m, 0.99),
		     advice_quantile(m, 0.999), advice_quantile(m, 1));
	(void)printf("longest time without one: %.0f ms; longest pause of this machine: %.1f ms\n",
		     m->outage_ms, m->pause_ms);
	show_machine(m);
	if (m->n < NEEDED)
		(void)printf("99.9 %% needs %d samples, you have %zu: measure for longer\n", NEEDED,
			     m->n);
	(void)printf("\n%-12s %7s %7s %7s %7s  %8s %8s %9s %9s %6s\n", "", "lease", "renew",
		     "grace", "drain", "replaced", "at most", "false/yr", "at most", "req/m");
	for (int i = 0; i < ADVICE_ROWS; i++)
		show_row(&rows[i]);
	(void)printf("\nEach survives an outage of the store as long as its grace. \"replaced\" is "
		     "a frozen leader;\nfalse failovers a year are those that slow renewals "
		     "cause, and \"at most\" holds with 95 %%.\n");
	for (int i = 0; i < ADVICE_ROWS; i++)
		if (!rows[i].is_enough)
			(void)printf("! %s: the work, which needs %.0f ms to stop, has too little "
				     "time for it\n",
				     rows[i].name, m->stop_ms);
	(void)printf("\n    --lease=%.0fms --renew=%.0fms --grace=%.0fms\n", rows[0].lease_ms,
		     rows[0].renew_ms, rows[0].grace_ms);
}

/* A number, or null where it was not told. */
static const char *json_number(double value, bool is_told, char *out, size_t size)
{
	(void)snprintf(out, size, is_told ? "%.3f" : "null", value);
	return out;
}

static void show_json(const struct measured *m, const struct advice rows[ADVICE_ROWS])
{
	char pressure[32], steal[32], floor[32];

	(void)printf("{\"samples\":%zu,\"p50_ms\":%.3f,\"p99_ms\":%.3f,\"p999_ms\":%.3f,"
		     "\"worst_ms\":%.3f,\"outage_ms\":%.3f,\"pause_ms\":%.3f,"
		     "\"pressure_percent\":%s,\"steal_percent\":%s,\"floor_ms\":%s,"
		     "\"stop_ms\":%.0f,\"timings\":[",
		     m->n, advice_quantile(m, 0.5), advice_quantile(m, 0.99),
		     advice_quantile(m, 0.999), advice_quantile(m, 1), m->outage_ms, m->pause_ms,
		     json_number(m->pressure_percent, m->pressure_percent >= 0, pressure,
				 sizeof(pressure)),
		     json_number(m->steal_percent, m->steal_percent >= 0, steal, sizeof(steal)),
		     json_number(m->floor_ms, m->floor_ms > 0, floor, sizeof(floor)), m->stop_ms);
	for (int i = 0; i < ADVICE_ROWS; i++)
		(void)printf("%s{\"name\":\"%s\",\"lease_ms\":%.0f,\"renew_ms\":%.0f,"
			     "\"grace_ms\":%.0f,\"drain_ms\":%.0f,\"replaced_ms\":%.0f,"
			     "\"replaced_at_most_ms\":%.0f,\"false_a_year\":%.6g,"
			     "\"false_at_most\":%.6g,\"requests_a_minute\":%.2f,"
			     "\"can_stop\":%s}",
			     i > 0 ? "," : "", rows[i].name, rows[i].lease_ms, rows[i].renew_ms,
			     rows[i].grace_ms, rows[i].drain_ms, rows[i].typical_ms,
			     rows[i].most_ms, rows[i].false_a_year, rows[i].false_at_most,
			     rows[i].requests_a_minute, rows[i].is_enough ? "true" : "false");
	(void)printf("],\"renewals_ms\":[");
	for (size_t i = 0; i < m->n && i < KEPT; i++) { /* all of them, or evenly chosen ones */
		double part = m->n <= KEPT ? (double)(i + 1) / (double)m->n
					   : (double)(i + 1) / (double)KEPT;

		(void)printf("%s%.3f", i > 0 ? "," : "", advice_quantile(m, part));
	}
	(void)printf("]}\n");
}

/* ---- ---- */

static int measure_on(const struct settings *s, struct baton *b, struct measured *m)
{
	struct baton_election_options o;
	struct baton_error err = {0};
	struct baton_election *e;
	struct baton_timings t;
	struct renewals r = {.m = m};
	char host[128] = "host";
	char name[160];

	(void)gethostname(host, sizeof(host) - 1);
	(void)snprintf(name, sizeof(name), "baton-doctor.%s", host);
	baton_election_options_init(&o);
	o.tell_renewals = true;
	if (baton_get_timings(b, &t) != 0 || baton_election_new(b, name, &o, &e, &err) != 0 ||
	    (err.code = baton_election_start(e)) != 0)
		return open_fail(&err);
	r.ahead_ns = t.renew_ns + t.grace_ns;
	struct pauses pauses = {0};
	struct machine before;
	struct machine after;
	pthread_t thread;

	machine_look(&before);
	bool watches = pthread_create(&thread, NULL, watch_pauses, &pauses) == 0;
	int code = take_samples(b, &r, s->measure_ms);

	atomic_store(&pauses.is_over, true);
	if (watches)
		(void)pthread_join(thread, NULL);
	machine_look(&after);
	m->pressure_percent = machine_pressure(&before, &after);
	m->steal_percent = machine_steal(&before, &after);
	m->outage_ms = (double)r.outage_ns / 1e6;
	m->pause_ms = (double)atomic_load(&pauses.longest_ns) / 1e6;
	return code;
}

int measure_run(struct settings *s)
{
	struct measured m = {.stop_ms = (double)s->stop_time_ms,
			     .drift = (double)s->drift_permille / 1e3};
	struct {
		const char *url;
		struct measured *m;
	} look = {s->store, &m};
	struct advice rows[ADVICE_ROWS];
	struct baton *b;

	s->lease_ms = LEASE_MS;
	s->renew_ms = RENEW_MS;
	s->grace_ms = GRACE_MS;
	int code = open_handle(s, &b);

	if (code != 0)
		return code;
	(void)baton_list_drivers(find_floor, &look);
	code = measure_on(s, b, &m);
	baton_close(b);
	if (code == 0) {
		qsort(m.samples, m.n, sizeof(*m.samples), compare);
		advice_compute(&m, rows);
		if (s->json != 0)
			show_json(&m, rows);
		else
			show_text(&m, rows);
	}
	free(m.samples);
	return code;
}
