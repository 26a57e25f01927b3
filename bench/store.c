/*
 * store.c: the rows of a store with a server. Handoffs beside a raw round trip of the same run,
 * crash failover beside the moment at which the server itself ends the lease, what the server is
 * asked when nothing happens, campaigns beside the server's own benchmark, and what others need for
 * a handoff.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server.h"

/* Renewed three times each, it is counted over two of them. A batch of 1,000 campaigns must be done
 * within a ninth. */
#define LEASE_MS 6000
#define LONG_LEASE_MS 15000
#define RENEWALS 6
#define QUIET_TRIES 5
#define TAIL ((size_t)65536)
/* Who has just come has shown itself then, and heeds a hint at once again: a look of its own that
 * found nothing new makes it wait for a 256th of retry, and more of them double that (L4). */
#define REST_MS 70
/* With a bell (PostgreSQL's fast=1) it has looked up to three times for nothing new. */
#define FAST_REST_MS 300
#define CRASH_LEASE_MS 1000

struct rig {
	const struct bench_server *server;
	const char *url;
	void *raw;
	double trip_ms[2]; /* p50, p99 */
	double handoff_ms; /* p50 */
	double leader_mib; /* of a process that leads one election */
};

static uint64_t raw_trip(void *arg)
{
	const struct rig *g = arg;
	uint64_t began_ns = bench_now_ns();

	g->server->write(g->raw);
	return bench_now_ns() - began_ns;
}

static double ms_at(struct samples *s, double percent)
{
	return (double)samples_at(s, percent) / 1e6;
}

/* A row of this store: what, then its name. */
static void tell(const struct rig *g, const char *what, double value, double budget,
		 const char *unit, const char *beside)
{
	char text[128];

	(void)snprintf(text, sizeof(text), "%s: %s", g->server->name, what);
	row(text, value, budget, unit, beside);
}

static void keep(const struct rig *g, const struct samples *s, const char *what, const char *whose)
{
	char text[128];

	(void)snprintf(text, sizeof(text), "%s: %s", g->server->name, what);
	samples_keep(s, text, whose);
}

/* ---- handoff ---- */

/* Another election that it leads all the time: its lease stays, as in a program that goes on. */
static void keep_lease(struct baton *b, const char *name)
{
	struct baton_election *e = bench_election(b, name);

	(void)baton_election_start(e);
	bench_until_leader(b, e);
}

static void handoffs(struct rig *g, bool quick)
{
	struct baton *b[2] = {bench_open(g->url, "a"), bench_open(g->url, "b")};
	struct baton_election *e[2] = {bench_election(b[0], "handoff"),
				       bench_election(b[1], "handoff")};
	int times = quick ? 50 : 1000;
	struct samples raw;
	struct samples handoff;
	char beside[96];

	samples_init(&raw);
	samples_init(&handoff);
	keep_lease(b[0], "kept by a");
	keep_lease(b[1], "kept by b");
	(void)baton_election_start(e[0]);
	bench_until_leader(b[0], e[0]);
	for (int i = 0; i < times; i++) {
		struct baton_election *from = e[i % 2];
		struct baton_election *to = e[(i + 1) % 2];

		(void)baton_election_start(to);
		bench_until_standby(b[(i + 1) % 2], to);
		/* Where it is polled, at any moment between two looks. */
		(void)poll(NULL, 0, REST_MS + (int)(random() % (g->server->poll_ms + 1)));
		samples_add(&raw, raw_trip(g));
		uint64_t began_ns = bench_now_ns();

		(void)baton_election_stop(from, 0);
		bench_until_leader(b[(i + 1) % 2], to);
		samples_add(&handoff, bench_now_ns() - began_ns);
		(void)baton_election_stop(from, -1);
	}
	g->trip_ms[0] = ms_at(&raw, 50);
	g->trip_ms[1] = ms_at(&raw, 99);
	g->handoff_ms = ms_at(&handoff, 50);
	(void)snprintf(beside, sizeof(beside), "%s: %.3f ms", g->server->raw, g->trip_ms[0]);
	tell(g, "clean handoff, p50", g->handoff_ms,
	     g->server->handoff_trips > 0 ? g->server->handoff_trips * g->trip_ms[0]
					  : 4 * g->trip_ms[0] + 0.5 + g->server->poll_ms / 2.0,
	     "ms", beside);
	(void)snprintf(beside, sizeof(beside), "%s, p99: %.3f ms", g->server->raw, g->trip_ms[1]);
	tell(g, "clean handoff, p99", ms_at(&handoff, 99),
	     g->server->handoff_trips > 0 ? 0
					  : 12 * g->trip_ms[1] + 0.5 + g->server->poll_ms * 1.25,
	     "ms", beside);
	keep(g, &handoff, "handoff", "baton");
	keep(g, &raw, "handoff", g->server->raw);
	samples_done(&raw);
	samples_done(&handoff);
	baton_close(b[0]);
	baton_close(b[1]);
}

static void orders(struct rig *g, bool quick)
{
	/* Where it is polled, an order is seen at the next look. */
	struct bench_trip trip = {
		.take = raw_trip, .arg = g, .poll_ms = 1.125 * g->server->poll_ms};

	bench_orders(g->url, g->server->name, &trip, quick);
}

static int per_renewal(const struct rig *g)
{
	return g->server->per_renewal > 0 ? g->server->per_renewal : 1;
}

static void growth(struct rig *g, bool quick)
{
	const struct bench_server *server = g->server;
	struct bench_counter counter = {.requests = server->at_once != NULL ? server->at_once
									    : server->requests,
					.server = g->raw,
					.per_renewal = per_renewal(g)};

	bool counts = counter.requests != NULL && counter.requests(g->raw) != UINT64_MAX;

	bench_growth(g->url, server->name, counts ? &counter : NULL, quick);
}

/* ---- questions ---- */

static void run_once(char *const *argv, struct samples *s)
{
	uint64_t began_ns = bench_now_ns();
	int fd;
	int ended;
	pid_t pid = bench_start(argv, &fd, false);

	(void)waitpid(pid, &ended, 0);
	samples_add(s, bench_now_ns() - began_ns);
	(void)close(fd);
	if (!WIFEXITED(ended) || WEXITSTATUS(ended) != 0)
		bench_die("%s fails.", argv[0]);
}

/* From the start of the command to its end: what people and scripts wait for. Beside it one round
 * trip of the server's own client, a command as well, and one on a warm connection. */
static void status(struct rig *g, bool quick)
{
	char baton[1024];
	char *const ours[] = {baton,     (char *)(uintptr_t) "status", (char *)(uintptr_t) "status",
			      "--store", (char *)(uintptr_t)g->url,    NULL};
	char *const *theirs = g->server->question != NULL ? g->server->question(g->raw) : NULL;
	struct baton *b = bench_open(g->url, "leader");
	struct samples own;
	struct samples other;
	struct samples raw;
	char beside[96];

	(void)snprintf(baton, sizeof(baton), "%s", bench_beside("baton"));
	samples_init(&own);
	samples_init(&other);
	samples_init(&raw);
	keep_lease(b, "status");
	for (int i = 0; i < (quick ? 20 : 200); i++) {
		run_once(ours, &own);
		if (theirs != NULL)
			run_once(theirs, &other);
		samples_add(&raw, raw_trip(g));
	}
	if (theirs != NULL)
		(void)snprintf(beside, sizeof(beside), "%s: %.3f ms; %s: %.3f ms", theirs[0],
			       ms_at(&other, 50), g->server->raw, ms_at(&raw, 50));
	else
		(void)snprintf(beside, sizeof(beside), "%s: %.3f ms", g->server->raw,
			       ms_at(&raw, 50));
	tell(g, "baton status, p50", ms_at(&own, 50), g->server->status_ms, "ms", beside);
	samples_done(&own);
	samples_done(&other);
	samples_done(&raw);
	baton_close(b);
}

/* ---- crash ---- */

static int crash_lease_ms(const struct rig *g)
{
	return g->server->crash_lease_ms > 0 ? g->server->crash_lease_ms : CRASH_LEASE_MS;
}

/* How much of the killed leader's lease is left, at most. */
static uint64_t crash_left_ns(const struct rig *g)
{
	if (g->server->left_us == NULL)
		return (uint64_t)crash_lease_ms(g) * 1000000;
	return (uint64_t)g->server->left_us(g->raw, "crash") * 1000;
}

/* How long after the server's end of the lease the next one led, in nanoseconds. */
static uint64_t one_crash(struct rig *g, struct baton *b, struct baton_election *e,
			  struct samples *whole)
{
	char lease[16];
	char *const argv[] = {bench_beside("bench-child"), "leads", (char *)(uintptr_t)g->url,
			      lease, NULL};
	int fd;

	(void)snprintf(lease, sizeof(lease), "%d", crash_lease_ms(g));
	pid_t pid = bench_start(argv, &fd, true);

	(void)baton_election_start(e);
	bench_until_standby(b, e);
	/* Somebody who has just come may have to watch for a whole lease: not what is meant. */
	(void)poll(NULL, 0, crash_lease_ms(g) * 12 / 10);
	g->leader_mib = bench_resident_mib(pid);
	uint64_t killed_ns = bench_now_ns();

	(void)kill(pid, SIGKILL);
	uint64_t ends_ns = crash_left_ns(g);

	ends_ns += bench_now_ns();
	bench_until_leader(b, e);
	uint64_t became_ns = bench_now_ns();

	samples_add(whole, became_ns - killed_ns);
	(void)waitpid(pid, NULL, 0);
	(void)close(fd);
	(void)baton_election_stop(e, -1);
	return became_ns > ends_ns ? became_ns - ends_ns : 0;
}

static void crashes(struct rig *g, bool quick)
{
	struct baton *b = bench_open_lease(g->url, "survivor", (uint64_t)crash_lease_ms(g));
	struct baton_election *e = bench_election(b, "crash");
	struct samples above;
	struct samples whole;
	char beside[96];

	samples_init(&above);
	samples_init(&whole);
	for (int i = 0; i < (quick ? 3 : 15); i++)
		samples_add(&above, one_crash(g, b, e, &whole));
	(void)snprintf(beside, sizeof(beside), "with a lease of %.1f s: %.0f ms after the kill",
		       crash_lease_ms(g) / 1000.0, ms_at(&whole, 50));
	tell(g, "crash failover above the lease's end, p50", ms_at(&above, 50),
	     10 + g->server->expiry_ms + 4 * g->trip_ms[0], "ms", beside);
	(void)snprintf(beside, sizeof(beside), "of %zu kills", above.n);
	tell(g, "crash failover above the lease's end, max", ms_at(&above, 100), 0, "ms", beside);
	tell(g, "resident memory of a leader", g->leader_mib, 0, "MiB", "");
	(void)snprintf(beside, sizeof(beside), "baton, lease %.1f s", crash_lease_ms(g) / 1000.0);
	keep(g, &whole, "failover", beside);
	keep(g, &above, "failover after the lease's end", "baton");
	samples_done(&above);
	samples_done(&whole);
	baton_close(b);
}

struct fast {
	struct samples crash; /* from the kill until another leads */
	struct samples death; /* ... until the kernel has cleared it away */
	struct samples raw;   /* two raw writes */
};

/* Where the server tells at once that a leader is gone: nothing has to end first. */
static void one_fast_crash(struct rig *g, struct baton *b, struct baton_election *e,
			   const char *url, struct fast *f)
{
	char *const argv[] = {bench_beside("bench-child"), "leads", (char *)(uintptr_t)url, NULL};
	int fd;
	pid_t pid = bench_start(argv, &fd, true);

	(void)baton_election_start(e);
	bench_until_standby(b, e);
	(void)poll(NULL, 0, FAST_REST_MS);
	samples_add(&f->raw, raw_trip(g) + raw_trip(g));
	uint64_t killed_ns = bench_now_ns();

	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0); /* its sockets are closed by then, and nobody knows before */
	samples_add(&f->death, bench_now_ns() - killed_ns);
	bench_until_leader(b, e);
	samples_add(&f->crash, bench_now_ns() - killed_ns);
	(void)close(fd);
	(void)baton_election_stop(e, -1);
}

static void fast_crashes(struct rig *g, const char *option, bool quick)
{
	char url[512];
	char what[96];
	char beside[96];
	struct fast f;

	samples_init(&f.crash);
	samples_init(&f.death);
	samples_init(&f.raw);
	(void)snprintf(url, sizeof(url), "%s%c%s", g->url, strchr(g->url, '?') != NULL ? '&' : '?',
		       option);
	struct baton *b = bench_open(url, "survivor");
	struct baton_election *e = bench_election(b, "crash");

	for (int i = 0; i < (quick ? 50 : 1000); i++)
		one_fast_crash(g, b, e, url, &f);
	(void)snprintf(what, sizeof(what), "crash failover, %s, p50", option);
	(void)snprintf(beside, sizeof(beside), "until it is dead: %.3f ms; two raw writes: %.3f ms",
		       ms_at(&f.death, 50), ms_at(&f.raw, 50));
	tell(g, what, ms_at(&f.crash, 50), 3, "ms", beside);
	(void)snprintf(what, sizeof(what), "crash failover, %s, p99", option);
	(void)snprintf(beside, sizeof(beside),
		       "until it is dead: %.3f ms; two raw writes: %.3f ms; %zu kills",
		       ms_at(&f.death, 99), ms_at(&f.raw, 99), f.crash.n);
	tell(g, what, ms_at(&f.crash, 99), 10 + ms_at(&f.raw, 99), "ms", beside);
	(void)snprintf(what, sizeof(what), "baton, %s", option);
	keep(g, &f.crash, "failover", what);
	samples_done(&f.crash);
	samples_done(&f.death);
	samples_done(&f.raw);
	baton_close(b);
}

static void fast(struct rig *g, bool quick)
{
	for (size_t i = 0; g->server->fast[i] != NULL; i++)
		fast_crashes(g, g->server->fast[i], quick);
}

/* ---- what it is asked when nothing happens ---- */

static void let_pass(int seconds)
{
	uint64_t until_ns = bench_now_ns() + (uint64_t)seconds * 1000000000u;

	while (bench_now_ns() < until_ns)
		(void)poll(NULL, 0, 50);
}

/* Of so many processes; one more is at the edge of the window, and the watch asks every ten
 * seconds at most. */
static uint64_t most_requests(const struct rig *g, int processes, int window_s)
{
	int looks = g->server->poll_ms > 0 ? window_s * 8000 / (7 * g->server->poll_ms) + 1 : 0;

	return (uint64_t)((RENEWALS + 1) * per_renewal(g) + window_s / 10 + 2 * looks) *
	       (uint64_t)processes;
}

static uint64_t requests_in(const struct rig *g, int seconds)
{
	uint64_t before = g->server->requests(g->raw);

	let_pass(seconds);
	return g->server->requests(g->raw) - before;
}

static void count_requests(const struct rig *g, const char *what, int processes, int lease_ms)
{
	int window_s = 2 * lease_ms / 1000;
	char text[80];
	char beside[96];

	if (g->server->requests == NULL)
		return;
	/* What was begun comes to its end first. */
	for (int i = 0; i < QUIET_TRIES; i++)
		if (requests_in(g, g->server->settle_s) <= most_requests(g, processes, window_s))
			break;
	uint64_t renewed = g->server->renewals != NULL ? g->server->renewals(g->raw) : 0;
	uint64_t n = requests_in(g, window_s);

	if (g->server->renewals != NULL) {
		(void)snprintf(text, sizeof(text), "renewals in %d s, %s", window_s, what);
		tell(g, text, (double)(g->server->renewals(g->raw) - renewed),
		     (double)((RENEWALS + 1) * processes), "", "");
	}
	(void)snprintf(text, sizeof(text), "requests in %d s, %s", window_s, what);
	(void)snprintf(beside, sizeof(beside), "%d renewals of %d process%s; %s",
		       RENEWALS * processes, processes, processes > 1 ? "es" : "",
		       g->server->probe);
	tell(g, text, (double)n, (double)most_requests(g, processes, window_s), "", beside);
}

static void standbys(struct rig *g, bool quick)
{
	if (g->server->requests == NULL)
		return;
	int n = g->server->most > 0 ? g->server->most : quick ? 100 : 1000;
	struct baton *b[2] = {bench_open_lease(g->url, "leader", LEASE_MS),
			      bench_open_lease(g->url, "standby", LEASE_MS)};
	char what[48];

	bench_start_all(b[0], n);
	bench_until_all_lead(b[0], n);
	bench_start_all(b[1], n);
	let_pass(3);
	(void)snprintf(what, sizeof(what), "%d elections, leader and standby", n);
	count_requests(g, what, 2, LEASE_MS);
	baton_close(b[0]);
	baton_close(b[1]);
}

/* Seconds until n elections lead; then what they ask for is counted. */
static double lead(const struct rig *g, int n, int lease_ms, const char *counted)
{
	uint64_t connections = g->server->connections != NULL ? g->server->connections(g->raw) : 0;
	struct baton *b = bench_open_lease(g->url, "many", (uint64_t)lease_ms);
	uint64_t began_ns = bench_now_ns();
	char what[80];

	bench_start_all(b, n);
	bench_until_all_lead(b, n);
	double s = (double)(bench_now_ns() - began_ns) / 1e9;

	count_requests(g, counted, 1, lease_ms);
	(void)snprintf(what, sizeof(what), "connections made, %s", counted);
	if (g->server->connections != NULL)
		tell(g, what, (double)(g->server->connections(g->raw) - connections), 3, "", "");
	baton_close(b);
	return s;
}

/* Before and after ours: whatever else the machine does slows it down, never up. */
static double tool_rate(const struct rig *g, int n, double before)
{
	double rate = g->server->campaigns != NULL ? g->server->campaigns(g->raw, g->url, n) : 0;

	return rate > before ? rate : before;
}

static void many(struct rig *g, bool quick)
{
	if (g->server->most > 0)
		return; /* each has a lease of its own */
	int large = quick || g->server->campaigns == NULL ? 10000 : 100000;

	if (g->server->large > 0)
		large = g->server->large;
	char beside[96];

	(void)lead(g, 1, LEASE_MS, "1 election"); /* and the store has all that it needs */
	double tool = tool_rate(g, large, 0);
	double small_us = lead(g, 1000, LEASE_MS, "1,000 elections") * 1e6 / 1000;
	char name[32];

	(void)snprintf(name, sizeof(name), "%d,000 elections", large / 1000);
	double large_us = lead(g, large, LONG_LEASE_MS, name) * 1e6 / large;
	tool = tool_rate(g, large, tool);
	(void)snprintf(beside, sizeof(beside), "%.0f/s, all that belongs to it; %s: %.0f/s",
		       1e6 / large_us, g->server->tool, tool);
	if (tool > 0)
		tell(g, "its own benchmark / our campaigns", tool / (1e6 / large_us), 2, "x",
		     beside);
	(void)snprintf(beside, sizeof(beside), "%.1f us each at 1,000, %.1f us each at %d",
		       small_us, large_us, large);
	tell(g, "growth, cost per election", large_us / small_us, 1.2, "x", beside);
	(void)snprintf(beside, sizeof(beside), "%d elections", large);
	tell(g, "until all lead", large_us * large / 1e6, 0, "s", beside);
}

/* ---- the others ---- */

/* "NAME P50 P99 [SHARE [MIB]]": what a peer needs; of that, so much we may need at most; and how
 * much memory one of its leaders has. */
static bool tell_peer(const struct rig *g, const char *line)
{
	char name[48];
	char what[96];
	char beside[96];
	double v[4] = {0, 0, 0, 0}; /* p50, p99, share, MiB */
	size_t size = strcspn(line, " ");
	const char *at = line + size;
	int n = 0;

	for (char *end; n < 4; n++, at = end) {
		v[n] = strtod(at, &end);
		if (end == at)
			break;
	}
	if (n < 2 || line[0] == '#')
		return false;
	(void)snprintf(name, sizeof(name), "%.*s", (int)size, line);
	(void)snprintf(what, sizeof(what), "clean handoff of %s, p50", name);
	(void)snprintf(beside, sizeof(beside), "p99: %.3f ms", v[1]);
	tell(g, what, v[0], 0, "ms", beside);
	(void)snprintf(what, sizeof(what), "clean handoff / that of %s", name);
	if (n >= 3 && g->handoff_ms > 0)
		tell(g, what, g->handoff_ms / v[0], v[2], "x", "");
	(void)snprintf(what, sizeof(what), "resident memory of %s", name);
	if (n >= 4)
		tell(g, what, v[3], 0, "MiB", "");
	return true;
}

/* bench/peers prints a line for each peer, or one for people that begins with '#'. */
static void peers(struct rig *g, bool quick)
{
	char *const argv[] = {"bench/peers", (char *)(uintptr_t)g->server->name,
			      (char *)(uintptr_t)g->url, quick ? "5" : "30", NULL};
	char line[256];
	int fd;
	pid_t pid = bench_start(argv, &fd, false);
	FILE *in = fdopen(fd, "r");

	while (in != NULL && fgets(line, sizeof(line), in) != NULL) {
		if (!tell_peer(g, line))
			(void)fputs(line, stdout);
	}
	if (in != NULL)
		(void)fclose(in);
	(void)waitpid(pid, NULL, 0);
}

/* Tools repeat themselves while they run: only the end of what they say is kept. */
double bench_tool(char *const *argv, const char *words)
{
	char text[4 * TAIL + 1];
	double value = 0;
	size_t n = 0;
	ssize_t got;
	int fd;
	pid_t pid = bench_start(argv, &fd, false);

	while ((got = read(fd, text + n, 4 * TAIL - n)) > 0) {
		n += (size_t)got;
		if (n < 4 * TAIL)
			continue;
		(void)memmove(text, text + 3 * TAIL, TAIL);
		n = TAIL;
	}
	text[n] = '\0';
	(void)close(fd);
	(void)waitpid(pid, NULL, 0);
	char *at = strstr(text, words);

	/* Back to where the number begins. */
	while (at != NULL && at > text && strchr("0123456789.", at[-1]) != NULL)
		at--;
	if (at != NULL)
		value = strtod(at, NULL);
	if (value <= 0)
		bench_die("%s doesn't say how fast it was.", argv[0]);
	return value;
}

static const struct {
	const char *name;
	void (*measure)(struct rig *g, bool quick);
} parts[] = {
	{"handoff", handoffs}, {"orders", orders},    {"growth", growth},
	{"status", status},    {"peers", peers},      {"crash", crashes},
	{"fast", fast},        {"standby", standbys}, {"many", many},
};

#define N_PARTS (sizeof(parts) / sizeof(parts[0]))

static const struct bench_server *const servers[] = {
#ifdef WITH_REDIS
	&bench_redis,
#endif
#ifdef WITH_POSTGRES
	&bench_postgres,
#endif
#ifdef WITH_MYSQL
	&bench_mysql,
#endif
#ifdef WITH_ETCD
	&bench_etcd,
#endif
#ifdef WITH_CONSUL
	&bench_consul,
#endif
#ifdef WITH_KUBERNETES
	&bench_kubernetes,
#endif
#ifdef WITH_S3
	&bench_s3,
#endif
	&bench_azblob,     &bench_mongodb, &bench_memcached, &bench_mssql, NULL,
};

/* Whether `only`, names with commas between them, has this one. */
static bool is_wanted(const char *only, const char *name)
{
	size_t size = strlen(name);

	for (const char *at = only; at != NULL && *at != '\0'; at += strcspn(at, ",")) {
		at += *at == ',';
		if (strcspn(at, ",") == size && strncmp(at, name, size) == 0)
			return true;
	}
	return only == NULL;
}

void bench_store(const char *url, bool quick, const char *only)
{
	struct rig g = {.server = NULL, .url = url};
	bool measured = false;

	for (size_t i = 0; servers[i] != NULL && g.server == NULL; i++)
		if (strncmp(url, servers[i]->name, strlen(servers[i]->name)) == 0)
			g.server = servers[i];
	if (g.server == NULL)
		bench_die("There are no measurements for that store here.");
	g.raw = g.server->open(url);
	for (size_t i = 0; i < N_PARTS; i++) {
		if (!is_wanted(only, parts[i].name))
			continue;
		parts[i].measure(&g, quick);
		measured = true;
	}
	if (!measured)
		bench_die("There is nothing called %s to measure; see bench --help.", only);
	g.server->close(g.raw);
}
