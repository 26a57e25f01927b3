/*
 * many.c: many elections in one process: how long until all lead, what each costs in memory, what
 * they cost in processor time when nothing happens, and whether that stays so as they grow.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

static double cpu_s(void)
{
	struct rusage u;

	(void)getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static double resident_bytes(void)
{
	char line[128];
	long kib = 0;
	FILE *f = fopen("/proc/self/smaps_rollup", "re");

	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		if (strncmp(line, "Rss:", 4) == 0)
			kib = strtol(line + 4, NULL, 10);
	if (f != NULL)
		(void)fclose(f);
	return (double)kib * 1024;
}

void bench_start_all(struct baton *b, int n)
{
	char name[64];

	for (int i = 0; i < n; i++) {
		(void)snprintf(name, sizeof(name), "election-%d", i);
		(void)baton_election_start(bench_election(b, name));
	}
}

void bench_until_all_lead(struct baton *b, int n)
{
	struct baton_stats s = {0};
	uint64_t limit_ns = bench_now_ns() + 120000000000u;

	do {
		if (bench_now_ns() > limit_ns)
			bench_die("After two minutes %llu of %d elections lead; %llu campaigns and "
				  "%llu renewals failed.",
				  (unsigned long long)s.leading, n,
				  (unsigned long long)s.campaigns_failed,
				  (unsigned long long)s.renewals_failed);
		(void)usleep(1000); /* leave the processor to them */
		(void)baton_get_stats(b, &s);
	} while (s.leading < (uint64_t)n);
}

/* Seconds until n elections lead. */
static double lead_all(const char *url, int n)
{
	struct baton *b = bench_open(url, "many");
	uint64_t began_ns = bench_now_ns();

	bench_start_all(b, n);
	bench_until_all_lead(b, n);
	double s = (double)(bench_now_ns() - began_ns) / 1e9;

	baton_close(b);
	return s;
}

/*
 * The library's own share: the memory store would add its own for elections that are started. Runs
 * first, in a heap that nothing has used yet.
 */
void bench_memory(bool quick)
{
	int n = quick ? 10000 : 50000;
	struct baton *b = bench_open("memory:size", "size");
	char name[64];
	double before = resident_bytes();

	for (int i = 0; i < n; i++) {
		(void)snprintf(name, sizeof(name), "election-%d", i);
		(void)bench_election(b, name);
	}
	row("memory per further election", (resident_bytes() - before) / n, 1024, "bytes",
	    "made, not started; names of 14 bytes");
	baton_close(b);
}

static void idle_row(int n, int seconds)
{
	struct baton *b = bench_open("memory:idle", "idle");
	struct baton_stats before;
	struct baton_stats after;
	char beside[96];

	bench_start_all(b, n);
	bench_until_all_lead(b, n);
	(void)sleep(2);
	(void)baton_get_stats(b, &before);
	double began = cpu_s();

	(void)sleep((unsigned)seconds);
	double used = cpu_s() - began;

	(void)baton_get_stats(b, &after);
	(void)snprintf(beside, sizeof(beside), "%llu renewals, %llu looks in %d s",
		       (unsigned long long)(after.renewals_ok - before.renewals_ok),
		       (unsigned long long)(after.observes - before.observes), seconds);
	row("10,000 idle elections, of one core", 100 * used / seconds, 1, "%", beside);
	baton_close(b);
}

void bench_many(bool quick)
{
	char url[512];
	char beside[96];
	int large = quick ? 10000 : 100000;
	double small_us = lead_all("memory:small", 100) * 1e6 / 100;
	double large_us = lead_all("memory:large", large) * 1e6 / large;

	idle_row(10000, quick ? 5 : 60);
	(void)snprintf(beside, sizeof(beside), "%.1f us each at 100, %.1f us each at %d", small_us,
		       large_us, large);
	row("growth, memory store", large_us / small_us, 2, "x", beside);
	row("100,000 elections lead, memory store", large_us * large / 1e6, 0, "s", beside);
	(void)snprintf(url, sizeof(url), "file:%s/many", bench_dir());
	row("1,000 elections lead, file store", lead_all(url, quick ? 100 : 1000), 0, "s", "");
}
