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
#define NAME "group"
/* A standby whose last look found nothing new heeds a hint at once again after a 32nd of retry. */
#define REST_MS 70
#define IDLE_MS 2000
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

/* Until all but the leader know it, and have come to rest. */
static void group_rest(struct group *g, int leader)
{
	uint64_t limit_ns = bench_now_ns() + 60000000000u;
	struct baton_status s;

	for (int i = 0; i < g->n; i++) {
		while (i != leader &&
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
		if (i == 0)
			bench_until_leader(g->b[0], g->e[0]);
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

static int group_handoff(struct group *g, struct baton *admin, enum way way, int leader,
			 struct samples *s)
{
	if (way == BY_RESUME)
		group_pause(g, admin, leader);
	uint64_t began_ns = bench_now_ns();

	group_ask(g, admin, way, leader);
	int next = group_leader(g, way == BY_RESUME ? -1 : leader);

	samples_add(s, bench_now_ns() - began_ns);
	/* Who has led lets the others go first for a while: anew, it contends at once. */
	if (leader != next) {
		(void)baton_election_stop(g->e[leader], -1);
		(void)baton_election_start(g->e[leader]);
	}
	group_rest(g, next);
	return next;
}

void bench_orders(const char *url, const char *name, double trip_ms, bool quick)
{
	struct baton *admin = bench_open(url, "admin");
	int times = quick ? 20 : 200;
	double stop_ms[2] = {0};
	struct group g;

	group_open(&g, url, ORDER_CANDIDATES);
	int leader = group_leader(&g, -1);

	group_rest(&g, leader);
	for (enum way way = BY_STOP; way < N_WAYS; way++) {
		static const int percents[2] = {50, 99};
		struct samples s;

		samples_init(&s);
		for (int i = 0; i < times; i++)
			leader = group_handoff(&g, admin, way, leader, &s);
		for (int i = 0; i < 2; i++) {
			double ms = (double)samples_at(&s, percents[i]) / 1e6;
			char what[96];
			char beside[64];

			stop_ms[i] = way == BY_STOP ? ms : stop_ms[i];
			(void)snprintf(what, sizeof(what), "%s: handoff among %d by %s, p%d", name,
				       g.n, way_names[way], percents[i]);
			(void)snprintf(beside, sizeof(beside), "by stop: %.3f ms", stop_ms[i]);
			row(what, ms, way == BY_STOP ? 0 : stop_ms[i] + trip_ms + ORDER_EXTRA_MS,
			    "ms", beside);
		}
		samples_done(&s);
	}
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

/* Handoffs by stop among so many standbys. The p50 in ms. */
static double grow(const char *url, const char *name, int standbys, double least_ms,
		   uint64_t (*requests)(void *server), void *server, bool quick)
{
	int times = quick ? 10 : 50;
	uint64_t asked = 0;
	struct samples s;
	struct group g;
	char what[96];
	char beside[96];

	allow_descriptors(standbys + 1);
	group_open(&g, url, standbys + 1);
	int leader = group_leader(&g, -1);

	group_rest(&g, leader);
	samples_init(&s);
	double cpu_ms = others_cpu_ms();

	(void)poll(NULL, 0, IDLE_MS);
	double idle = (others_cpu_ms() - cpu_ms) / IDLE_MS * 100 / (standbys + 1);

	for (int i = 0; i < times; i++) {
		uint64_t before = requests != NULL ? requests(server) : 0;

		leader = group_handoff(&g, NULL, BY_STOP, leader, &s);
		asked += (requests != NULL ? requests(server) : 0) - before;
	}
	double p50 = (double)samples_at(&s, 50) / 1e6;

	(void)snprintf(beside, sizeof(beside), "idle, each: %.3f %% of a core",
		       idle > 0 ? idle : 0);
	(void)snprintf(what, sizeof(what), "%s: handoff with %d standbys, p50", name, standbys);
	row(what, p50, standbys == 100 ? GROWTH * least_ms : 0, "ms", beside);
	(void)snprintf(what, sizeof(what), "%s: handoff with %d standbys, p99", name, standbys);
	row(what, (double)samples_at(&s, 99) / 1e6, 0, "ms", beside);
	if (requests != NULL) {
		(void)snprintf(what, sizeof(what), "%s: requests per handoff and standby, %d", name,
			       standbys);
		row(what, (double)asked / times / standbys, 0, "", "all of the server's");
	}
	samples_done(&s);
	group_close(&g);
	return p50;
}

void bench_growth(const char *url, const char *name, uint64_t (*requests)(void *server),
		  void *server, bool quick)
{
	static const int standbys[] = {2, 20, 100, 500};
	double least_ms = 0;

	for (size_t i = 0; i < sizeof(standbys) / sizeof(standbys[0]) - (quick ? 1 : 0); i++) {
		double p50 = grow(url, name, standbys[i], least_ms, requests, server, quick);

		least_ms = i == 0 ? p50 : least_ms;
	}
}
