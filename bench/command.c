/*
 * command.c: `baton run` on the file store, beside flock(1) doing the same: from its start until
 * the child runs as leader, from kill -9 of everything (supervisor, guard and child) until the next
 * child runs, and what supervisor and guard keep in memory.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define START_MS 15
#define FAILOVER_MS (3 + 5) /* the file store's, and 5 ms for two processes more */
#define TAIL_MS (10 + 5)
#define SUPERVISOR_MIB 4
#define GUARD_MIB 1

/* How to start a child that says when it runs; without "baton", by flock(1). */
struct command {
	char child[1024];
	char baton[1024];
	char store[600];
	char lock[600];
};

struct started {
	pid_t pid;
	int fd;
};

static void find_programs(struct command *c)
{
	(void)snprintf(c->child, sizeof(c->child), "%s", bench_beside("bench-child"));
	(void)snprintf(c->baton, sizeof(c->baton), "%s", bench_beside("baton"));
	(void)snprintf(c->store, sizeof(c->store), "--store=file:%s/command", bench_dir());
	(void)snprintf(c->lock, sizeof(c->lock), "%s/command-lock", bench_dir());
}

/* Starts one; it says a byte when its child runs. `waits`: don't wait for that. */
static struct started start(struct command *c, bool by_flock, const char *child, bool waits)
{
	char *const run[] = {c->baton,  "run", c->store, "--log-level=error",
			     "command", "--",  c->child, (char *)(uintptr_t)child,
			     NULL};
	char *const flock[] = {"flock", c->lock, c->child, (char *)(uintptr_t)child, NULL};
	struct started s;

	s.pid = bench_start(by_flock ? flock : run, &s.fd, !waits);
	return s;
}

static void wait_byte(const struct started *s)
{
	char byte;

	if (read(s->fd, &byte, 1) != 1)
		bench_die("The command doesn't start its child.");
}

static void finish(const struct started *s)
{
	(void)waitpid(s->pid, NULL, 0);
	(void)close(s->fd);
}

/* ---- starting ---- */

static void one_start(struct command *c, bool by_flock, struct samples *s)
{
	uint64_t began_ns = bench_now_ns();
	struct started p = start(c, by_flock, "brief", false);

	samples_add(s, bench_now_ns() - began_ns);
	finish(&p);
}

/* ---- crashing ---- */

static pid_t child_of(pid_t pid)
{
	char path[64];
	char text[64] = "";

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
	FILE *in = fopen(path, "re");

	if (in != NULL) {
		(void)!fgets(text, sizeof(text), in);
		(void)fclose(in);
	}
	return (pid_t)strtol(text, NULL, 10);
}

/* Of supervisor and guard, or of flock(1) alone; then the child. */
static void kill_all(const struct started *s, bool by_flock)
{
	pid_t pids[] = {s->pid, child_of(s->pid), by_flock ? 0 : child_of(child_of(s->pid))};

	for (size_t i = 0; i < sizeof(pids) / sizeof(pids[0]); i++)
		if (pids[i] > 0)
			(void)kill(pids[i], SIGKILL);
}

static void found_candidate(void *arg, const struct baton_candidate *candidate)
{
	(void)arg;
	(void)candidate;
}

static void wait_for_standby(struct baton *b)
{
	uint64_t limit_ns = bench_now_ns() + 60000000000u;

	while (b != NULL && baton_list_candidates(b, "command", found_candidate, NULL, NULL) < 2) {
		if (bench_now_ns() > limit_ns)
			bench_die("The standby doesn't show itself.");
		(void)poll(NULL, 0, 1);
	}
	(void)poll(NULL, 0, 30); /* let it come to rest: nothing shows when it has */
}

/* Each waits for the one before it, and is killed for the one after it. */
static void crashes(struct command *c, bool by_flock, int times, struct samples *s)
{
	char url[600];
	struct baton *b = NULL;
	struct started old = start(c, by_flock, "stays", false);

	(void)snprintf(url, sizeof(url), "%s", strchr(c->store, '=') + 1);
	if (!by_flock)
		b = bench_open(url, "onlooker");
	for (int i = 0; i < times; i++) {
		struct started next = start(c, by_flock, "stays", true);

		wait_for_standby(b);
		uint64_t began_ns = bench_now_ns();

		kill_all(&old, by_flock);
		wait_byte(&next);
		samples_add(s, bench_now_ns() - began_ns);
		finish(&old);
		old = next;
	}
	kill_all(&old, by_flock);
	finish(&old);
	baton_close(b);
}

/* ---- memory ---- */

double bench_resident_mib(pid_t pid)
{
	char path[64];
	char line[256];
	double kib = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)pid);
	FILE *in = fopen(path, "re");

	while (in != NULL && fgets(line, sizeof(line), in) != NULL)
		if (strncmp(line, "Rss:", 4) == 0)
			kib = strtod(line + 4, NULL);
	if (in != NULL)
		(void)fclose(in);
	if (kib <= 0)
		bench_die("%s can't be read.", path);
	return kib / 1024;
}

static void memory(struct command *c)
{
	struct started flock = start(c, true, "stays", false);
	struct started run = start(c, false, "stays", false);
	char beside[96];

	(void)poll(NULL, 0, 200); /* a few renewals later it would be the same */
	(void)snprintf(beside, sizeof(beside), "flock(1): %.3f MiB", bench_resident_mib(flock.pid));
	row("baton run, resident: supervisor", bench_resident_mib(run.pid), SUPERVISOR_MIB, "MiB",
	    beside);
	row("baton run, resident: guard", bench_resident_mib(child_of(run.pid)), GUARD_MIB, "MiB",
	    beside);
	kill_all(&run, false);
	kill_all(&flock, true);
	finish(&run);
	finish(&flock);
}

/* ---- the rows ---- */

static void tell(const char *what, struct samples *ours, struct samples *others, double percent,
		 double budget)
{
	char beside[96];

	(void)snprintf(beside, sizeof(beside), "flock(1): %.3f ms; two fsyncs: %.3f ms",
		       (double)samples_at(&others[0], percent) / 1e6,
		       (double)samples_at(&others[1], percent) / 1e6);
	row(what, (double)samples_at(ours, percent) / 1e6, budget, "ms", beside);
}

void bench_command(bool quick)
{
	static struct command c;
	int times = quick ? 20 : 200;
	struct samples ours;
	struct samples others[2]; /* flock(1), and two fsyncs as a claim has them */

	find_programs(&c);
	samples_init(&ours);
	samples_init(&others[0]);
	samples_init(&others[1]);
	for (int i = 0; i < times; i++) {
		one_start(&c, false, &ours);
		one_start(&c, true, &others[0]);
		bench_raw_write(&others[1], i);
	}
	tell("baton run, start to child running, p50", &ours, others, 50, START_MS);
	tell("baton run, start to child running, p99", &ours, others, 99, 0);
	ours.n = others[0].n = 0;
	crashes(&c, false, times, &ours);
	crashes(&c, true, times, &others[0]);
	tell("baton run, all killed to next child, p50", &ours, others, 50, FAILOVER_MS);
	tell("baton run, all killed to next child, p99", &ours, others, 99,
	     TAIL_MS + (double)samples_at(&others[1], 99) / 1e6);
	memory(&c);
	samples_done(&ours);
	samples_done(&others[0]);
	samples_done(&others[1]);
}
