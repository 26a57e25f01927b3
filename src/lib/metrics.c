/*
 * metrics.c: what is counted, as data. The names are those that Prometheus wants; what shows them,
 * and how, is not this library's business. No callback is made with a lock held.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "lib/lib.h"

#define LABELS_MAX 2

/* What is told of one election, copied while the lock is held. */
struct shot {
	struct baton_election *e;
	struct baton_status status;
	const struct numbers *numbers; /* NULL: none */
	double led_since_s;
	double left_s;
	double n_overruns;
};

struct teller {
	struct baton *b;
	void (*emit)(void *arg, const struct baton_metric *metric);
	void *arg;
	struct shot *shots;
	size_t n_shots;
	int n; /* metrics told */
};

static void tell(struct teller *t, const struct baton_metric *m, const char *label,
		 const char *value, const char *label2, const char *value2)
{
	struct baton_label labels[LABELS_MAX] = {{label, value}, {label2, value2}};

	struct baton_metric told = *m;

	told.size = sizeof(told);
	told.labels = labels;
	told.n_labels = (label != NULL) + (size_t)(label2 != NULL);
	told.unit = m->unit != NULL ? m->unit : "";
	t->emit(t->arg, &told);
	t->n++;
}

/* Buckets of powers of two, in a unit of which a second has per_second. */
static void tell_histogram(struct teller *t, const struct baton_metric *m,
			   const struct histogram *h, double per_second, const char *label,
			   const char *value, const char *label2, const char *value2)
{
	double bounds[BATON_HISTOGRAM_BUCKETS];
	uint64_t counts[BATON_HISTOGRAM_BUCKETS];
	struct baton_metric told = {.name = m->name,
				    .help = m->help,
				    .type = BATON_METRIC_HISTOGRAM,
				    .unit = "seconds",
				    .bounds = bounds,
				    .counts = counts,
				    .n_buckets = BATON_HISTOGRAM_BUCKETS,
				    .sum = (double)atomic_load(&h->sum) / per_second};

	for (int i = 0; i < BATON_HISTOGRAM_BUCKETS; i++) {
		/* cppcheck-suppress unreadVariable // read by emit(), through the struct */
		bounds[i] = i + 1 < BATON_HISTOGRAM_BUCKETS
				    ? (double)((UINT64_C(1) << i) - 1) / per_second
				    : INFINITY;
		counts[i] = atomic_load(&h->buckets[i]);
		told.count += counts[i];
	}
	tell(t, &told, label, value, label2, value2);
}

/* ---- of the handle ---- */

static void tell_counter(struct teller *t, const char *name, const char *help,
			 const _Atomic uint64_t *counter)
{
	struct baton_metric m = {.name = name,
				 .help = help,
				 .type = BATON_METRIC_COUNTER,
				 .value = (double)atomic_load(counter)};

	tell(t, &m, "store", t->b->driver->name, NULL, NULL);
}

static void tell_renewals(struct teller *t)
{
	const struct counters *c = &t->b->counters;
	struct baton_metric m = {.name = "baton_renewals_total",
				 .help = "Renewals of the lease.",
				 .type = BATON_METRIC_COUNTER};

	m.value = (double)atomic_load(&c->renewed);
	tell(t, &m, "store", t->b->driver->name, "result", "ok");
	m.value = (double)atomic_load(&c->renew_failed);
	tell(t, &m, "store", t->b->driver->name, "result", "failed");
	m = (struct baton_metric){.name = "baton_store_errors_total",
				  .help = "Calls to the store that failed.",
				  .type = BATON_METRIC_COUNTER};
	for (int i = 1; i < CODES; i++) {
		uint64_t n = atomic_load(&c->errors[i]);

		m.value = (double)n;
		if (n != 0)
			tell(t, &m, "store", t->b->driver->name, "code", baton_code_name(-i));
	}
}

static void tell_latencies(struct teller *t)
{
	const struct counters *c = &t->b->counters;
	struct baton_metric renewals = {.name = "baton_renewal_duration_seconds",
					.help = "How long a renewal of the lease took."};
	struct baton_metric campaigns = {.name = "baton_campaign_duration_seconds",
					 .help = "How long a campaign took."};
	struct baton_metric delays = {
		.name = "baton_loop_delay_seconds",
		.help = "How late the library woke up: a busy or frozen machine."};
	struct baton_metric handlers = {.name = "baton_handler_seconds",
					.help = "How long handlers of the application took."};

	tell_histogram(t, &renewals, &c->renew_latency, 1e6, "store", t->b->driver->name, NULL,
		       NULL);
	tell_histogram(t, &campaigns, &c->campaign_latency, 1e6, "store", t->b->driver->name, NULL,
		       NULL);
	tell_histogram(t, &delays, &c->loop_delay, 1e6, NULL, NULL, NULL, NULL);
	tell_histogram(t, &handlers, &c->handlers, 1e6, NULL, NULL, NULL, NULL);
	struct baton_metric called = {.name = "baton_handlers_total",
				      .help = "Calls of handlers of the application.",
				      .type = BATON_METRIC_COUNTER};

	for (int i = 0; i < BATON_HISTOGRAM_BUCKETS; i++)
		called.value += (double)atomic_load(&c->handlers.buckets[i]);
	tell(t, &called, NULL, NULL, NULL, NULL);
}

static void tell_timings(struct teller *t)
{
	const struct timing *timing = &t->b->timing;
	const struct {
		const char *kind;
		uint64_t ns;
	} kinds[] = {{"lease", timing->lease_ns}, {"renew", timing->renew_ns},
		     {"grace", timing->grace_ns}, {"drain", timing_drain_ns(timing)},
		     {"retry", timing->retry_ns}, {"call", timing_call_ns(timing)}};
	struct baton_metric m = {.name = "baton_timing_seconds",
				 .help = "The timings that are in force.",
				 .unit = "seconds",
				 .type = BATON_METRIC_GAUGE};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		m.value = (double)kinds[i].ns / 1e9;
		tell(t, &m, "store", t->b->driver->name, "kind", kinds[i].kind);
	}
}

/* How long ago it was; 0 where there was no such instant, or it lies ahead. */
static double seconds_since(uint64_t then_ns)
{
	uint64_t now_ns = clock_boot_ns();

	return then_ns != 0 && now_ns > then_ns ? (double)(now_ns - then_ns) / 1e9 : 0;
}

/* Whether the library's own threads get on. */
static void tell_threads(struct teller *t)
{
	static const char *const lanes[] = {[BATON_LANE_RENEW] = "renew",
					    [BATON_LANE_CAMPAIGN] = "campaign",
					    [BATON_LANE_WATCH] = "watch"};
	struct baton *b = t->b;
	uint64_t step_ns = atomic_load(&b->step_ns);
	struct baton_metric m = {
		.name = "baton_loop_stalled_seconds",
		.help = "How long the library's loop has been at one step, or late for it.",
		.unit = "seconds",
		.type = BATON_METRIC_GAUGE,
		.value = seconds_since(step_ns != 0 ? step_ns : atomic_load(&b->wake_ns))};

	tell(t, &m, NULL, NULL, NULL, NULL);
	m = (struct baton_metric){.name = "baton_lane_overdue_seconds",
				  .help = "How long a call to the store goes on past its deadline.",
				  .unit = "seconds",
				  .type = BATON_METRIC_GAUGE};
	for (size_t i = 0; i < sizeof(lanes) / sizeof(lanes[0]); i++) {
		m.value = seconds_since(atomic_load(&b->lanes[i].call_until_ns));
		tell(t, &m, "store", b->driver->name, "lane", lanes[i]);
	}
}

static void tell_store(struct teller *t)
{
	struct baton *b = t->b;
	int64_t ok_ms = atomic_load(&b->counters.store_ok_ms);
	struct baton_metric m = {.name = "baton_store_up",
				 .help = "Whether the last call to the store went well.",
				 .type = BATON_METRIC_GAUGE,
				 .value = ok_ms != 0 && atomic_load(&b->app.store_fails) == 0};

	tell(t, &m, "store", b->driver->name, NULL, NULL);
	m = (struct baton_metric){.name = "baton_store_last_success_timestamp_seconds",
				  .help = "When a call to the store last went well.",
				  .unit = "seconds",
				  .type = BATON_METRIC_GAUGE,
				  .value = (double)ok_ms / 1e3};
	tell(t, &m, "store", b->driver->name, NULL, NULL);
	m = (struct baton_metric){.name = "baton_log_dropped_total",
				  .help = "Log records that were left out.",
				  .type = BATON_METRIC_COUNTER,
				  .value = (double)atomic_load(&b->counters.log_dropped)};
	tell(t, &m, NULL, NULL, NULL, NULL);
	m = (struct baton_metric){.name = "baton_build_info",
				  .help = "Which library this is.",
				  .type = BATON_METRIC_GAUGE,
				  .value = 1};
	tell(t, &m, "version", BATON_VERSION, NULL, NULL);
}

/* ---- of its elections ---- */

enum gauge {
	IS_LEADER,
	HAS_LEADER,
	PAUSED,
	TERM,
	LED_SINCE,
	TIME_LEFT,
	HEALTH,
	CHANGES,
	OVERRUNS,
	N_GAUGES
};

static double gauge_of(const struct shot *s, int gauge)
{
	switch (gauge) {
	case IS_LEADER: return s->status.is_leader;
	case HAS_LEADER: return s->status.leader[0] != '\0';
	case PAUSED: return s->status.paused;
	case TERM: return (double)s->status.term;
	case LED_SINCE: return s->led_since_s;
	case TIME_LEFT: return s->left_s;
	case HEALTH: return s->status.score_permille / 1000.0;
	case CHANGES: return atomic_load(&s->e->n_changes);
	default: return s->n_overruns;
	}
}

static void tell_gauges(struct teller *t)
{
	static const struct baton_metric gauges[N_GAUGES] = {
		[IS_LEADER] = {.name = "baton_is_leader", .help = "Whether this candidate leads."},
		[HAS_LEADER] = {.name = "baton_has_leader",
				.help = "Whether this candidate knows of a leader."},
		[PAUSED] = {.name = "baton_paused",
			    .help = "Whether the election is paused: no candidate may lead."},
		[TERM] = {.name = "baton_term", .help = "The term of the leader."},
		[LED_SINCE] = {.name = "baton_leadership_start_time_seconds",
			       .help = "Since when the leader leads; 0: not known.",
			       .unit = "seconds"},
		[TIME_LEFT] = {.name = "baton_leadership_time_left_seconds",
			       .help = "How long this candidate leads if no renewal comes through.",
			       .unit = "seconds"},
		[HEALTH] = {.name = "baton_health_score_ratio",
			    .help = "The health that this candidate reports.",
			    .unit = "ratio"},
		[CHANGES] = {.name = "baton_leader_changes_total",
			     .help = "How often another leader was seen.",
			     .type = BATON_METRIC_COUNTER},
		[OVERRUNS] = {.name = "baton_overruns_total",
			      .help = "Work of lost leaderships that another leader may have met.",
			      .type = BATON_METRIC_COUNTER},
	};

	for (int g = 0; g < N_GAUGES; g++) {
		for (size_t i = 0; i < t->n_shots; i++) {
			struct baton_metric m = gauges[g];

			m.type = m.type != 0 ? m.type : BATON_METRIC_GAUGE;
			m.value = gauge_of(&t->shots[i], g);
			tell(t, &m, "election", t->shots[i].e->name, NULL, NULL);
		}
	}
}

static void tell_campaigns(struct teller *t)
{
	struct baton_metric m = {.name = "baton_campaigns_total",
				 .help = "Campaigns, by how they ended.",
				 .type = BATON_METRIC_COUNTER};

	for (size_t i = 0; i < t->n_shots; i++) {
		const struct baton_election *e = t->shots[i].e;

		m.value = atomic_load(&e->n_won);
		tell(t, &m, "election", e->name, "result", "won");
		m.value = atomic_load(&e->n_refused);
		tell(t, &m, "election", e->name, "result", "held");
		m.value = atomic_load(&e->n_failed);
		tell(t, &m, "election", e->name, "result", "failed");
	}
}

/* What the application has listed, as it was then. */
static void tell_candidates(struct teller *t)
{
	struct baton_metric m = {.name = "baton_candidates",
				 .help = "Candidates, when they were last listed.",
				 .type = BATON_METRIC_GAUGE};

	for (size_t i = 0; i < t->n_shots; i++) {
		const struct shot *s = &t->shots[i];

		if (s->numbers == NULL || !atomic_load(&s->numbers->is_listed))
			continue;
		m.value = atomic_load(&s->numbers->n_healthy);
		tell(t, &m, "election", s->e->name, "health", "healthy");
		m.value = atomic_load(&s->numbers->n_unhealthy);
		tell(t, &m, "election", s->e->name, "health", "unhealthy");
	}
}

/* From the start, where there is a history: what looks for a rise needs the value before it. */
static void tell_overlaps(struct teller *t)
{
	struct baton_metric m = {.name = "baton_overlap_seconds_total",
				 .help = "Overlaps of leaderships in the history that was read, by "
					 "the store's clock; not a time where that counts changes.",
				 .unit = "seconds",
				 .type = BATON_METRIC_COUNTER};

	for (size_t i = 0; t->b->traits->keeps_history && i < t->n_shots; i++) {
		const struct numbers *numbers = t->shots[i].numbers;

		m.value = numbers != NULL ? (double)atomic_load(&numbers->overlap_ns) / 1e9 : 0;
		tell(t, &m, "election", t->shots[i].e->name, NULL, NULL);
	}
}

static bool has_values(const struct histogram *h)
{
	for (int i = 0; i < BATON_HISTOGRAM_BUCKETS; i++)
		if (atomic_load(&h->buckets[i]) != 0)
			return true;
	return false;
}

static void tell_handovers(struct teller *t)
{
	static const char *const causes[] = {[BATON_END_RELEASED] = "released",
					     [BATON_END_DIED] = "died",
					     [BATON_END_EXPIRED] = "expired"};
	struct baton_metric m = {
		.name = "baton_handover_seconds",
		.help = "How long no candidate led before this one did, as far as it noticed."};

	for (size_t i = 0; i < t->n_shots; i++) {
		const struct shot *s = &t->shots[i];

		for (int c = BATON_END_RELEASED; c <= BATON_END_EXPIRED; c++)
			if (s->numbers != NULL && has_values(&s->numbers->handover[c]))
				tell_histogram(t, &m, &s->numbers->handover[c], 1e6, "election",
					       s->e->name, "cause", causes[c]);
	}
}

static void tell_losses(struct teller *t)
{
	struct baton_metric m = {.name = "baton_leaderships_lost_total",
				 .help = "Leaderships of this candidate that ended, by reason.",
				 .type = BATON_METRIC_COUNTER};

	for (size_t i = 0; i < t->n_shots; i++) {
		const struct numbers *numbers = t->shots[i].numbers;

		for (int r = 1; numbers != NULL && r <= BATON_REASON_PAUSED; r++) {
			m.value = (double)atomic_load(&numbers->lost[r]);
			tell(t, &m, "election", t->shots[i].e->name, "reason",
			     baton_reason_name(r));
		}
	}
}

static void tell_spans(struct teller *t, bool drain)
{
	for (size_t i = 0; i < t->n_shots; i++) {
		const struct numbers *numbers = t->shots[i].numbers;
		struct baton_metric m = {
			.name = drain ? "baton_drain_seconds" : "baton_tenure_seconds",
			.help = drain ? "How long the work took to end after a leadership."
				      : "How long leaderships of this candidate lasted."};

		if (numbers != NULL)
			tell_histogram(t, &m, drain ? &numbers->drain : &numbers->tenure, 1e3,
				       "election", t->shots[i].e->name, NULL, NULL);
	}
}

/* ---- ---- */

/* References to all elections; false: no memory. */
static bool take_shots(struct teller *t)
{
	struct baton *b = t->b;
	size_t n = 0;

	(void)pthread_mutex_lock(&b->app.lock);
	for (struct baton_election *e = b->app.all; e != NULL; e = e->all_next)
		n++;
	t->shots = calloc(n + 1, sizeof(*t->shots));
	for (struct baton_election *e = b->app.all; t->shots != NULL && e != NULL;
	     e = e->all_next) {
		struct shot *s = &t->shots[t->n_shots++];

		s->e = election_ref(e);
		s->numbers = atomic_load(&e->numbers);
		/* An overrun that goes on counts already. */
		s->n_overruns = events_overruns(e);
		if (s->numbers != NULL)
			s->n_overruns += (double)atomic_load(&s->numbers->overruns);
	}
	(void)pthread_mutex_unlock(&b->app.lock);
	for (size_t i = 0; i < t->n_shots; i++) {
		struct shot *s = &t->shots[i];

		(void)baton_get_status(s->e, &s->status);
		s->led_since_s = (double)s->status.leader_since_ms / 1e3;
		s->left_s = (double)s->status.time_left_ms / 1e3;
	}
	return t->shots != NULL;
}

int baton_metrics(struct baton *b, void (*emit)(void *arg, const struct baton_metric *metric),
		  void *arg)
{
	struct teller t = {.b = b, .emit = emit, .arg = arg};
	int code = emit != NULL ? lib_check(b) : BATON_E_INVALID;

	if (code != 0)
		return code;
	if (!take_shots(&t))
		return BATON_E_MEMORY;
	tell_gauges(&t);
	tell_candidates(&t);
	tell_overlaps(&t);
	tell_campaigns(&t);
	tell_losses(&t);
	tell_spans(&t, false);
	tell_spans(&t, true);
	tell_handovers(&t);
	tell_renewals(&t);
	tell_counter(&t, "baton_hints_total", "Hints that something changed.", &b->counters.hints);
	tell_counter(&t, "baton_observes_total", "Looks at elections.", &b->counters.observes);
	tell_counter(&t, "baton_releases_total", "Claims given back.", &b->counters.releases);
	tell_latencies(&t);
	tell_timings(&t);
	tell_threads(&t);
	tell_store(&t);
	for (size_t i = 0; i < t.n_shots; i++)
		election_unref(t.shots[i].e);
	free(t.shots);
	return t.n;
}
