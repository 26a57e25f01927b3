/*
 * handoff.c: a clean handoff, from the leader's resignation to the standby's "yes", beside one
 * equally durable write: two fsyncs on the file store, as a claim needs (file and directory).
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

/* The cheapest durable write of a new file: its data, its name. */
void bench_raw_write(struct samples *s, int i)
{
	char path[512];
	char other[512];
	int dir_fd = open(bench_dir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)snprintf(path, sizeof(path), "%s/raw-%d.tmp", bench_dir(), i);
	(void)snprintf(other, sizeof(other), "%s/raw-%d", bench_dir(), i);
	uint64_t began_ns = bench_now_ns();
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, "claim\n", 6) != 6 || fsync(fd) != 0 || close(fd) != 0 ||
	    link(path, other) != 0 || fsync(dir_fd) != 0)
		bench_die("%s can't be written.", path);
	samples_add(s, bench_now_ns() - began_ns);
	(void)unlink(path);
	(void)unlink(other);
	(void)close(dir_fd);
}

void bench_handoff(const char *url, const char *name, bool quick)
{
	struct baton *b[2] = {bench_open(url, "a"), bench_open(url, "b")};
	struct baton_election *e[2] = {bench_election(b[0], "handoff"),
				       bench_election(b[1], "handoff")};
	int times = quick ? 100 : 1000;
	struct samples raw;
	struct samples handoff;
	char what[80];
	char beside[96];

	samples_init(&raw);
	samples_init(&handoff);
	for (int i = 0; strncmp(url, "file:", 5) == 0 && i < times; i++)
		bench_raw_write(&raw, i);
	(void)baton_election_start(e[0]);
	bench_until_leader(b[0], e[0]);
	for (int i = 0; i < times; i++) {
		struct baton_election *from = e[i % 2];
		struct baton_election *to = e[(i + 1) % 2];

		(void)baton_election_start(to);
		bench_until_standby(b[(i + 1) % 2], to);
		uint64_t began_ns = bench_now_ns();

		(void)baton_election_stop(from, 0);
		bench_until_leader(b[(i + 1) % 2], to);
		samples_add(&handoff, bench_now_ns() - began_ns);
		(void)baton_election_stop(from, -1);
	}
	double trip = (double)samples_at(&raw, 50) / 1e6;

	(void)snprintf(beside, sizeof(beside), "a raw durable write: %.3f ms", trip);
	(void)snprintf(what, sizeof(what), "clean handoff, %s store, p50", name);
	row(what, (double)samples_at(&handoff, 50) / 1e6, 4 * trip + 0.5, "ms", beside);
	(void)snprintf(what, sizeof(what), "clean handoff, %s store, p99", name);
	row(what, (double)samples_at(&handoff, 99) / 1e6,
	    12 * (double)samples_at(&raw, 99) / 1e6 + 0.5, "ms", beside);
	(void)snprintf(what, sizeof(what), "%s: handoff", name);
	samples_keep(&handoff, what, "baton");
	if (raw.n > 0)
		samples_keep(&raw, what, "a raw durable write");
	samples_done(&raw);
	samples_done(&handoff);
	baton_close(b[0]);
	baton_close(b[1]);
}
