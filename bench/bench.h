/*
 * bench.h: rows of measurements. Each row has what was measured, the budget that it is held
 * against, and what it was measured beside in the same run: machines differ, ratios tell.
 */
#ifndef BATON_BENCH_H
#define BATON_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <baton.h>

#define SAMPLES_MAX 20000

/* Durations in nanoseconds. */
struct samples {
	uint64_t *list;
	size_t n;
};

void samples_init(struct samples *s);
void samples_add(struct samples *s, uint64_t ns);
/* The value below which `percent` of all are. Sorts. */
uint64_t samples_at(struct samples *s, double percent);
/* Writes all of them to FOLDER/bench.samples, for those who draw them. */
void samples_keep(const struct samples *s, const char *what, const char *whose);
void samples_done(struct samples *s);

/* One line of the table. Values and budgets are in `unit`; budget 0: for information. */
void row(const char *what, double value, double budget, const char *unit, const char *beside);

uint64_t bench_now_ns(void);
/* A fresh directory on a disk, removed at exit. */
const char *bench_dir(void);
/* Ends the program with a sentence. */
void bench_die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
/* A handle and one started election; dies if it can't. */
struct baton *bench_open(const char *url, const char *id);
/* The same with another lease than the default. */
struct baton *bench_open_lease(const char *url, const char *id, uint64_t lease_ms);
struct baton_election *bench_election(struct baton *b, const char *name);
/* Waits, for a minute at most, until it leads; or knows another as leader, and can be handed over
 * to. For the event, without turning: whoever is measured needs the processor. */
void bench_until_leader(struct baton *b, const struct baton_election *e);
void bench_until_standby(struct baton *b, const struct baton_election *e);

/* "election-0" and so on; and waits, two minutes at most, until the handle leads all of them. */
void bench_start_all(struct baton *b, int n);
void bench_until_all_lead(struct baton *b, int n);

/* Starts a program in a group of its own, its output on a pipe; waits for its first byte. */
pid_t bench_start(char *const *argv, int *out, bool waits);

/* How much memory a process has, in MiB. */
double bench_resident_mib(pid_t pid);

/* Two fsyncs: a small file, and the directory that names it. */
void bench_raw_write(struct samples *s, int i);

/* Requests that a server has served, and how many of them are a renewal. */
struct bench_counter {
	uint64_t (*requests)(void *server);
	void *server;
	int per_renewal;
};

/* The measurements. `quick`: a tenth of the samples. */
void bench_memory(bool quick);
void bench_is_leader(bool quick);
void bench_handoff(const char *url, const char *name, bool quick);
void bench_crash(bool quick);
void bench_command(bool quick);
void bench_serve(bool quick);
void bench_many(bool quick);
/* A raw durable write at the server, in nanoseconds. poll_ms: what a store that is polled may need
 * until it sees an order. */
struct bench_trip {
	uint64_t (*take)(void *arg);
	void *arg;
	double poll_ms;
};

/* Among several candidates: by each way to ask for a handoff, and by the number of standbys.
 * trip: NULL: the store has no server. counter: NULL: nobody counts. */
void bench_orders(const char *url, const char *name, const struct bench_trip *trip, bool quick);
void bench_growth(const char *url, const char *name, const struct bench_counter *counter,
		  bool quick);
/* On a store with a server, which must be a throw-away one. only: parts, with commas between them;
 * NULL: all. */
void bench_store(const char *url, bool quick, const char *only);
/* The path of a program that is built beside this one; until the next call. */
char *bench_beside(const char *name);

#endif
