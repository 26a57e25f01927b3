/*
 * group.c: one election among several candidates, each with a handle of its own, as in as many
 * processes. How long a handoff takes by each way to ask for one (stop, order, transfer, resume
 * after a pause), and how it grows with the number of standbys: time, requests at the server, and
 * what an idle standby costs.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "bench.h"

#define ORDER_CANDIDATES 4
/* What an order may cost more than a stop: its own way to the leader, and this. */
#define ORDER_EXTRA_MS 2
/* Handoffs grow by this at most from 2 standbys to 100. */
#define GROWTH 3
/* What a standby may ask of the server for a handoff, beside its renewals. */
#define REQUESTS 1
/* What it may take of a core while nothing happens, in percent. */
#define IDLE_PERCENT 0.01
/* Who gives its leadership back asks for that, ends its lease, and listens no more. */
#define LEAVER_REQUESTS 3
#define NAME "group"
/* A standby whose last three looks found nothing new heeds a hint at once again after 7/256 of
 * retry, 55 ms. */
#define REST_MS 70
/* As long as the interval of renewals: each renews once, as it does all the time. */
#define IDLE_MS 5000
/* Descriptors of a handle: connections, pipes, timers. */
#define FDS_EACH 24

struct group {
	struct baton **b;
	struct baton_election **e;
	struct pollfd *fds;
	int n;
};

enum way { BY_STOP, BY_ORDER, BY_TRANSFER, BY_RESUME, N_WAYS };

static const char *const way_names[N_WAYS] = {"stop", "order to resign", "order to transfer",
					      "resume after a pause"};

/* All handles are asked, not only those that poll readable: to ask again is what says that the last
 * event is dealt with. */
static void group_take_events(struct group *g, int timeout_ms)
{
	struct baton_event event;

	(void)poll(g->fds, (nfds_t)g->n, timeout_ms);
	for (int i = 0; i < g->n; i++)
		while (baton_wait(g->b[i], 0, &event) > 0)
			;
}

/* Who leads, other than `not`; waits for it a minute at most. */
static int group_leader(struct group *g, int not )
{
	uint64_t limit_ns = bench_now_ns() + 60000000000u;

	for (;;) {
		for (int i = 0; i < g->n; i++)
			if (i != not &&baton_is_leader(g->e[i]))
				return i;
		if (bench_now_ns() > limit_ns)
			bench_die("The group has no leader after a minute.");
		group_take_events(g, 1000);
	}
}

/* Until all but the leader, and one that is stopped (-1: none), know it and have come to rest. */
static void group_rest(struct group *g, int leader, int stopped)
{
	uint64_t limit_ns = bench_now_ns() + 60000000000u;
	struct baton_status s;

	for (int i = 0; i < g->n; i++) {
		while (i != leader && i != stopped &&
		       (baton_get_status(g->e[i], &s) != 0 || s.state != BATON_STATE_STANDBY ||
			strcmp(s.leader, baton_id(g->b[leader])) != 0)) {
			if (bench_now_ns() > limit_ns)
				bench_die("A standby doesn't see the leader.");
			group_take_events(g, 5);
		}
	}
	uint64_t rested_ns = bench_now_ns() + REST_MS * 1000000u;

	while (bench_now_ns() < rested_ns)
		group_take_events(g, 10);
}

static void group_open(struct group *g, const char *url, int n)
{
	char id[24];

	*g = (struct group){.n = n,
			    .b = calloc((size_t)n, sizeof(*g->b)),
			    .e = calloc((size_t)n, sizeof(*g->e)),
			    .fds = calloc((size_t)n, sizeof(*g->fds))};
	if (g->b == NULL || g->e == NULL || g->fds == NULL)
		bench_die("Out of memory.");
	for (int i = 0; i < n; i++) {
		(void)snprintf(id, sizeof(id), "c%d", i);
		g->b[i] = bench_open(url, id);
		g->e[i] = bench_election(g->b[i], NAME);
		g->fds[i] = (struct pollfd){.fd = baton_fd(g->b[i]), .events = POLLIN};
		(void)baton_election_start(g->e[i]);
		/* One after the other: hundreds that connect at once are another measurement. */
		if (i == 0)
			bench_until_leader(g->b[0], g->e[0]);
		else
			bench_until_standby(g->b[i], g->e[i]);
	}
}

static void group_close(struct group *g)
{
	for (int i = 0; i < g->n; i++)
		(void)baton_election_stop(g->e[i], 0);
	for (int i = 0; i < g->n; i++)
		baton_close(g->b[i]);
	free(g->b);
	free(g->e);
	free(g->fds);
}

static void group_ask(struct group *g, struct baton *admin, enum way way, int leader)
{
	struct baton_error err = {0};
	int rc = 0;

	switch (way) {
	case BY_STOP: rc = baton_election_stop(g->e[leader], 0); break;
	case BY_ORDER: rc = baton_order_resign(admin, NAME, 0, 0, NULL, &err); break;
	case BY_TRANSFER:
		rc = baton_order_transfer(admin, NAME, 0, baton_id(g->b[(leader + 1) % g->n]), NULL,
					  &err);
		break;
	default: rc = baton_resume(admin, NAME, &err); break;
	}
	if (rc != 0 && rc != BATON_E_TIMEOUT)
		bench_die("The handoff can't be asked for: %s", err.text);
}

/* Paused, until nobody leads and everybody knows. */
static void group_pause(struct group *g, struct baton *admin, int leader)
{
	struct baton_error err = {0};

	if (baton_pause(admin, NAME, &err) != 0)
		bench_die("The election can't be paused: %s", err.text);
	while (baton_is_leader(g->e[leader]))
		group_take_events(g, 100);
	uint64_t rested_ns = bench_now_ns() + REST_MS * 1000000u;

	while (bench_now_ns() < rested_ns)
		group_take_events(g, 10);
}

/* Who leads then. */
static int group_hand_over(struct group *g, struct baton *admin, enum way way, int leader,
			   struct samples *s)
{
	if (way == BY_RESUME)
		group_pause(g, admin, leader);
	uint64_t began_ns = bench_now_ns();

	group_ask(g, admin, way, leader);
	int next = group_leader(g, way == BY_RESUME ? -1 : leader);

	samples_add(s, bench_now_ns() - began_ns);
	return next;
}

/* Who has led lets the others go first for a while: anew, it contends at once. */
static void group_restart(struct group *g, int was, int leader)
{
	if (was != leader) {
		(void)baton_election_stop(g->e[was], -1);
		(void)baton_election_start(g->e[was]);
	}
	group_rest(g, leader, -1);
}

/* The rows of one way. Beyond a stop it may take a raw trip, a poll where the store is polled, and
 * ORDER_EXTRA_MS. */
static void tell_way(const char *name, enum way way, struct samples of[],
		     const struct bench_trip *trip, struct samples *raw)
{
	static const int percents[2] = {50, 99};

	for (int i = 0; i < 2; i++) {
		double stop_ms = (double)samples_at(&of[BY_STOP], percents[i]) / 1e6;
		double trip_ms = trip == NULL ? 0 : (double)samples_at(raw, percents[i]) / 1e6;
		double poll_ms = trip == NULL ? 0 : trip->poll_ms;
		char what[96];
		char beside[64];

		(void)snprintf(what, sizeof(what), "%s: handoff among %d by %s, p%d", name,
			       ORDER_CANDIDATES, way_names[way], percents[i]);
		(void)snprintf(beside, sizeof(beside), "by stop: %.3f ms; a raw trip: %.3f ms",
			       stop_ms, trip_ms);
		row(what, (double)samples_at(&of[way], percents[i]) / 1e6,
		    way == BY_STOP ? 0 : stop_ms + trip_ms + poll_ms + ORDER_EXTRA_MS, "ms",
		    beside);
	}
}

/* All ways and the raw trip take turns, so that each has the same moments of the machine. */
void bench_orders(const char *url, const char *name, const struct bench_trip *trip, bool quick)
{
	struct baton *admin = bench_open(url, "admin");
	int times = quick ? 20 : 200;
	struct samples of[N_WAYS];
	struct samples raw;
	struct group g;

	group_open(&g, url, ORDER_CANDIDATES);
	int leader = group_leader(&g, -1);

	group_rest(&g, leader, -1);
	samples_init(&raw);
	for (enum way way = BY_STOP; way < N_WAYS; way++)
		samples_init(&of[way]);
	for (int i = 0; i < times * N_WAYS; i++) {
		enum way way = (enum way)(i % N_WAYS);

		if (trip != NULL)
			samples_add(&raw, trip->take(trip->arg));
		int next = group_hand_over(&g, admin, way, leader, &of[way]);

		group_restart(&g, leader, next);
		leader = next;
	}
	for (enum way way = BY_STOP; way < N_WAYS; way++)
		tell_way(name, way, of, trip, &raw);
	for (enum way way = BY_STOP; way < N_WAYS; way++)
		samples_done(&of[way]);
	samples_done(&raw);
	group_close(&g);
	baton_close(admin);
}

/* ---- growth ---- */

static uint64_t usage_ns(int whose)
{
	struct rusage u;

	(void)getrusage(whose, &u);
	return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000000u +
	       (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000u;
}

/* Of all threads but this one: the pump of the events is no part of what is measured. The kernel
 * rounds both, so that the difference may go back a little. */
static double others_cpu_ms(void)
{
	return ((double)usage_ns(RUSAGE_SELF) - (double)usage_ns(RUSAGE_THREAD)) / 1e6;
}

static void allow_descriptors(int n)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	if (limit.rlim_cur < (rlim_t)n * FDS_EACH)
		limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

static void add_renewals(void *arg, const struct baton_metric *m)
{
	uint64_t *sum = arg;

	if (strcmp(m->name, "baton_renewals_total") == 0)
		*sum += (uint64_t)m->value;
}

/* What the server was asked for, but for renewals. */
static int64_t asked_of(const struct bench_counter *c, const struct group *g)
{
	uint64_t renewals = 0;

	for (int i = 0; i < g->n; i++)
		(void)baton_metrics(g->b[i], add_renewals, &renewals);
	return (int64_t)c->requests(c->server) - (int64_t)renewals * c->per_renewal;
}

/* Each of the candidates, in percent of a core. */
static double idle_percent(const struct group *g)
{
	double cpu_ms = others_cpu_ms();

	(void)poll(NULL, 0, IDLE_MS);
	double percent = (others_cpu_ms() - cpu_ms) / IDLE_MS * 100 / g->n;

	return percent > 0 ? percent : 0;
}

struct growth {
	const char *url;
	const char *name;
	const struct bench_counter *counter; /* NULL: nobody counts */
	double least_ms;                     /* p50 with the fewest standbys */
	bool quick;
};

static void tell_growth(const struct growth *w, int standbys, struct samples *s, double idle)
{
	double p50 = (double)samples_at(s, 50) / 1e6;
	char what[96];
	char beside[96];

	(void)snprintf(beside, sizeof(beside), "idle, each: %.4f %% of a core", idle);
	(void)snprintf(what, sizeof(what), "%s: handoff with %d standbys, p50", w->name, standbys);
	row(what, p50, standbys == 100 ? GROWTH * w->least_ms : 0, "ms", beside);
	(void)snprintf(what, sizeof(what), "%s: handoff with %d standbys, p99", w->name, standbys);
	row(what, (double)samples_at(s, 99) / 1e6, 0, "ms", beside);
	(void)snprintf(what, sizeof(what), "%s: idle, each of %d standbys, of one core", w->name,
		       standbys);
	row(what, idle, IDLE_PERCENT, "%", "with its renewals");
}

/* asked: for one handoff. */
static void tell_requests(const struct growth *w, int standbys, double asked)
{
	char what[96];

	(void)snprintf(what, sizeof(what), "%s: requests per handoff and standby, %d", w->name,
		       standbys);
	row(what, asked / standbys, REQUESTS, "",
	    "without renewals, and without the requests of the leader that steps down");
}

/* Handoffs by stop among so many standbys. The p50 in ms. */
static double grow(const struct growth *w, int standbys)
{
	int times = w->quick ? 10 : 50;
	int64_t asked = 0;
	struct samples s;
	struct group g;

	allow_descriptors(standbys + 1);
	group_open(&g, w->url, standbys + 1);
	int leader = group_leader(&g, -1);

	group_rest(&g, leader, -1);
	samples_init(&s);
	double idle = idle_percent(&g);

	for (int i = 0; i < times; i++) {
		int64_t before = w->counter != NULL ? asked_of(w->counter, &g) : 0;
		int next = group_hand_over(&g, NULL, BY_STOP, leader, &s);

		group_rest(&g, next, leader);
		asked += (w->counter != NULL ? asked_of(w->counter, &g) : 0) - before;
		group_restart(&g, leader, next);
		leader = next;
	}
	double p50 = (double)samples_at(&s, 50) / 1e6;

	tell_growth(w, standbys, &s, idle);
	if (w->counter != NULL)
		tell_requests(w, standbys, (double)asked / times - LEAVER_REQUESTS);
	samples_done(&s);
	group_close(&g);
	return p50;
}

void bench_growth(const char *url, const char *name, const struct bench_counter *counter,
		  bool quick)
{
	static const int standbys[] = {2, 20, 100, 500};
	struct growth w = {.url = url, .name = name, .counter = counter, .quick = quick};

	for (size_t i = 0; i < sizeof(standbys) / sizeof(standbys[0]) - (quick ? 1 : 0); i++) {
		double p50 = grow(&w, standbys[i]);

		w.least_ms = i == 0 ? p50 : w.least_ms;
	}
}
