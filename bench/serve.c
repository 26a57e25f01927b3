/*
 * serve.c: `baton serve` on the file store: what it keeps in memory with 1,000 elections, what its
 * metrics cost beside an empty reply, how a probe fares while 200 clients connect and say nothing,
 * and how soon the next program works when the one that held /lead is killed.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define RESIDENT_MIB 8
#define METRICS_TIMES 50
#define SILENT_TIMES 5
#define FOLLOW_MS 20        /* a release and a claim: four fsyncs, and a push between them */
#define RENEW "5s"          /* a third of the lease, as by default */
#define QUICK_RENEW "500ms" /* who has led leaves it to others for as long, up to 2 s */
#define QUIET_MS 700
#define N_ELECTIONS 1000
#define N_SILENT 100 /* and as many that begin a head and don't end it */
#define CHANGE "Content-Type: application/json\r\nBaton-Request: 1\r\n"

struct sidecar {
	pid_t pid;
	int fd;
	char socket[300];
};

/* ---- requests ---- */

static int connect_to(const struct sidecar *s)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (strlen(s->socket) >= sizeof(at.sun_path))
		bench_die("%s is too long for a socket.", s->socket);
	(void)strcpy(at.sun_path, s->socket);
	if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof(at)) != 0) {
		(void)close(fd);
		return -1;
	}
	return fd;
}

static void send_text(int fd, const char *text)
{
	(void)!send(fd, text, strlen(text), MSG_NOSIGNAL);
}

/* Asks, reads all, and keeps the beginning. The bytes, or -1. */
static ssize_t ask(const struct sidecar *s, const char *path, char *answer, size_t size)
{
	char room[16384];
	ssize_t total = 0;
	ssize_t n;
	int fd = connect_to(s);

	if (fd < 0)
		return -1;
	(void)snprintf(room, sizeof(room),
		       "GET %s HTTP/1.1\r\nHost: baton\r\nConnection: close\r\n\r\n", path);
	send_text(fd, room);
	while ((n = read(fd, room, sizeof(room))) > 0) {
		for (ssize_t i = 0; i < n && (size_t)(total + i) + 1 < size; i++)
			answer[total + i] = room[i];
		total += n;
	}
	(void)close(fd);
	answer[(size_t)total < size ? (size_t)total : size - 1] = '\0';
	return total;
}

static void until_says(const struct sidecar *s, const char *path, const char *word)
{
	static char answer[1 << 20];
	uint64_t limit_ns = bench_now_ns() + 120000000000u;

	while (ask(s, path, answer, sizeof(answer)) < 0 || strstr(answer, word) == NULL) {
		if (bench_now_ns() > limit_ns)
			bench_die("baton serve doesn't say %s at %s.", word, path);
		(void)poll(NULL, 0, 10);
	}
}

static void measure_path(const struct sidecar *s, const char *path, int times, struct samples *to)
{
	char answer[64];

	for (int i = 0; i < times; i++) {
		uint64_t began_ns = bench_now_ns();

		if (ask(s, path, answer, sizeof(answer)) <= 0)
			bench_die("baton serve doesn't answer %s.", path);
		samples_add(to, bench_now_ns() - began_ns);
	}
}

/* ---- servers ---- */

static struct sidecar begin(const char *name, const char *attach, const char *renew, int n)
{
	static char options[7][400];
	static char names[N_ELECTIONS][24];
	char *argv[N_ELECTIONS + 12];
	struct sidecar s;
	int k = 0;

	(void)snprintf(s.socket, sizeof(s.socket), "%s/%s.sock", bench_dir(), name);
	(void)snprintf(options[0], 400, "--store=file:%s/serve", bench_dir());
	(void)snprintf(options[1], 400, "--socket=%s", s.socket);
	(void)snprintf(options[2], 400, "--page-dir=%s/%s", bench_dir(), name);
	(void)snprintf(options[3], 400, "--attach=%s", attach);
	(void)snprintf(options[4], 400, "--id=%s", name);
	(void)snprintf(options[5], 400, "--renew=%s", renew);
	argv[k++] = bench_beside("baton");
	argv[k++] = "serve";
	argv[k++] = "--log-level=error";
	for (int i = 0; i < 6; i++)
		argv[k++] = options[i];
	for (int i = 0; i < n; i++) {
		(void)snprintf(names[i], sizeof(names[i]), n == 1 ? "work" : "election-%d", i);
		argv[k++] = names[i];
	}
	argv[k] = NULL;
	s.pid = bench_start(argv, &s.fd, false);
	return s;
}

static void finish(const struct sidecar *s)
{
	(void)kill(-s->pid, SIGKILL);
	(void)waitpid(s->pid, NULL, 0);
	(void)close(s->fd);
}

/* ---- the rows ---- */

static void rows_of_many(bool quick)
{
	struct sidecar s = begin("many", "any", RENEW, N_ELECTIONS);
	struct samples empty;
	struct samples metrics;
	char beside[96];
	int times = quick ? 50 : 500;

	until_says(&s, "/metrics", "baton_is_leader{election=\"__other__\"} 800");
	samples_init(&empty);
	samples_init(&metrics);
	measure_path(&s, "/livez", times, &empty);
	measure_path(&s, "/metrics", times, &metrics);
	double reply_us = (double)samples_at(&empty, 50) / 1e3;
	double metrics_us = (double)samples_at(&metrics, 50) / 1e3;

	(void)snprintf(beside, sizeof(beside), "%.0f us beside %.0f us of /livez, p50", metrics_us,
		       reply_us);
	row("baton serve, /metrics of 1,000 elections", metrics_us / reply_us, METRICS_TIMES, "x",
	    beside);
	(void)poll(NULL, 0, 12000); /* what is free goes back every ten seconds */
	row("baton serve, resident, 1,000 elections", bench_resident_mib(s.pid), RESIDENT_MIB,
	    "MiB", "leads all of them; after a few scrapes");
	samples_done(&empty);
	samples_done(&metrics);
	finish(&s);
}

static void rows_of_silence(bool quick)
{
	struct sidecar s = begin("silent", "any", RENEW, 1);
	struct samples idle;
	struct samples besieged;
	int silent[2 * N_SILENT];
	char beside[96];
	int times = quick ? 200 : 2000;

	until_says(&s, "/readyz", "ready");
	samples_init(&idle);
	samples_init(&besieged);
	measure_path(&s, "/livez", times, &idle);
	for (int i = 0; i < 2 * N_SILENT; i++) {
		silent[i] = connect_to(&s);
		if (i >= N_SILENT)
			send_text(silent[i], "GET /livez HTTP/1.1\r\nHost: ");
	}
	measure_path(&s, "/livez", times, &besieged);
	double idle_us = (double)samples_at(&idle, 99) / 1e3;
	double besieged_us = (double)samples_at(&besieged, 99) / 1e3;

	(void)snprintf(beside, sizeof(beside), "%.0f us beside %.0f us without them", besieged_us,
		       idle_us);
	row("baton serve, /livez p99 by 200 silent clients", besieged_us / idle_us, SILENT_TIMES,
	    "x", beside);
	for (int i = 0; i < 2 * N_SILENT; i++)
		(void)close(silent[i]);
	samples_done(&idle);
	samples_done(&besieged);
	finish(&s);
}

/* A process that holds /lead, and says a byte when it works. */
static pid_t hold_lead(const struct sidecar *s, int *out)
{
	int fds[2];

	if (pipe(fds) != 0)
		bench_die("No descriptor is left.");
	pid_t pid = fork();

	if (pid == 0) {
		char room[4096];
		ssize_t n;
		int fd = connect_to(s);

		(void)close(fds[0]);
		send_text(fd, "POST /v1/elections/work/lead HTTP/1.1\r\nHost: baton\r\n" CHANGE
			      "Content-Length: 0\r\n\r\n");
		while ((n = read(fd, room, sizeof(room) - 1)) > 0) {
			room[n] = '\0';
			if (strstr(room, "event: became") != NULL)
				(void)!write(fds[1], "L", 1);
		}
		_exit(0);
	}
	(void)close(fds[1]);
	*out = fds[0];
	return pid;
}

static void rows_of_death(bool quick)
{
	struct sidecar s[2] = {begin("left", "require", QUICK_RENEW, 1),
			       begin("right", "require", QUICK_RENEW, 1)};
	struct samples took;
	struct samples sync;
	char beside[96];
	char byte;
	pid_t apps[2];
	int outs[2];
	int times = quick ? 10 : 50;

	samples_init(&took);
	samples_init(&sync);
	until_says(&s[0], "/readyz", "ready");
	until_says(&s[1], "/readyz", "ready");
	apps[0] = hold_lead(&s[0], &outs[0]);
	if (read(outs[0], &byte, 1) != 1)
		bench_die("Nobody works.");
	for (int i = 0; i < times; i++) {
		int old = i % 2;
		int next = 1 - old;

		apps[next] = hold_lead(&s[next], &outs[next]);
		until_says(&s[next], "/v1/elections/work", "\"healthy\":true,\"score\":1.000");
		/* Whoever has just resigned leaves it to others for a while. */
		(void)poll(NULL, 0, QUIET_MS);
		uint64_t began_ns = bench_now_ns();

		(void)kill(apps[old], SIGKILL);
		if (read(outs[next], &byte, 1) != 1)
			bench_die("Nobody follows.");
		samples_add(&took, bench_now_ns() - began_ns);
		(void)waitpid(apps[old], NULL, 0);
		(void)close(outs[old]);
		bench_raw_write(&sync, i);
	}
	(void)snprintf(beside, sizeof(beside), "two fsyncs: %.3f ms; p99 %.3f ms",
		       (double)samples_at(&sync, 50) / 1e6, (double)samples_at(&took, 99) / 1e6);
	row("baton serve, program killed to next works", (double)samples_at(&took, 50) / 1e6,
	    FOLLOW_MS, "ms", beside);
	(void)kill(apps[times % 2], SIGKILL);
	(void)waitpid(apps[times % 2], NULL, 0);
	(void)close(outs[times % 2]);
	samples_done(&took);
	samples_done(&sync);
	finish(&s[0]);
	finish(&s[1]);
}

void bench_serve(bool quick)
{
	if (access(bench_beside("libexec/serve"), X_OK) != 0)
		return;
	rows_of_many(quick);
	rows_of_silence(quick);
	rows_of_death(quick);
}
