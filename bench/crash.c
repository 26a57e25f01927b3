/*
 * crash.c: kill -9 of the leader on the file store until the standby says yes, beside flock(1)
 * doing the same: a process that holds the lock is killed, another that waits for it goes on.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

char *bench_beside(const char *name)
{
	static char path[1024];
	char own[512];
	ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 1);

	if (n <= 0)
		bench_die("There is no /proc.");
	own[n] = '\0';
	(void)snprintf(path, sizeof(path), "%.*s/%s", (int)(strrchr(own, '/') - own), own, name);
	if (access(path, X_OK) != 0)
		bench_die("%s isn't built.", path);
	return path;
}

pid_t bench_start(char *const *argv, int *out, bool waits)
{
	int fds[2];
	char byte;

	if (pipe2(fds, O_CLOEXEC) != 0)
		bench_die("No descriptor is left.");
	pid_t pid = fork();

	if (pid == 0) {
		(void)setpgid(0, 0);
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* whoever cuts us */
		(void)dup2(fds[1], STDOUT_FILENO);
		(void)execvp(argv[0], argv);
		_exit(127);
	}
	(void)close(fds[1]);
	*out = fds[0];
	if (pid < 0 || (waits && read(fds[0], &byte, 1) != 1))
		bench_die("%s doesn't start.", argv[0]);
	return pid;
}

static void kill_group(pid_t pid, int fd)
{
	(void)kill(-pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	(void)close(fd);
}

static void one_failover(struct baton *b, struct baton_election *e, const char *url,
			 struct samples *s)
{
	char *const argv[] = {bench_beside("bench-child"), "leads", (char *)(uintptr_t)url, NULL};
	int fd;
	pid_t pid = bench_start(argv, &fd, true);

	(void)baton_election_start(e);
	bench_until_standby(b, e);
	uint64_t began_ns = bench_now_ns();

	(void)kill(pid, SIGKILL);
	bench_until_leader(b, e);
	samples_add(s, bench_now_ns() - began_ns);
	kill_group(pid, fd);
	(void)baton_election_stop(e, -1);
}

/* flock(1): the waiter prints a byte as soon as it has the lock. */
static void one_flock(const char *path, struct samples *s)
{
	char *const holder[] = {"flock", (char *)(uintptr_t)path,          "sh",
				"-c",    "echo L; exec tail -f /dev/null", NULL};
	char *const waiter[] = {"flock", (char *)(uintptr_t)path,          "sh",
				"-c",    "echo L; exec tail -f /dev/null", NULL};
	int second_fd;
	int fd;
	char byte;
	pid_t pid = bench_start(holder, &fd, true);
	pid_t second = bench_start(waiter, &second_fd, false);

	(void)poll(NULL, 0, 20); /* let it block on the lock: nothing shows when it does */
	uint64_t began_ns = bench_now_ns();

	(void)kill(-pid, SIGKILL);
	if (read(second_fd, &byte, 1) == 1)
		samples_add(s, bench_now_ns() - began_ns);
	kill_group(pid, fd);
	kill_group(second, second_fd);
}

void bench_crash(bool quick)
{
	char url[512];
	char path[512];
	char beside[96];
	int times = quick ? 50 : 1000;
	struct samples crash;
	struct samples flock;
	struct samples sync;

	samples_init(&crash);
	samples_init(&flock);
	samples_init(&sync);
	(void)snprintf(url, sizeof(url), "file:%s/crash", bench_dir());
	struct baton *b = bench_open(url, "survivor");
	struct baton_election *e = bench_election(b, "crash");

	for (int i = 0; i < times; i++) {
		one_failover(b, e, url, &crash);
		bench_raw_write(&sync, i);
	}
	(void)snprintf(path, sizeof(path), "%s/flock", bench_dir());
	for (int i = 0; i < times / 10; i++)
		one_flock(path, &flock);
	(void)snprintf(beside, sizeof(beside), "flock(1): %.3f ms; two fsyncs: %.3f ms",
		       (double)samples_at(&flock, 50) / 1e6, (double)samples_at(&sync, 50) / 1e6);
	row("crash failover, file store, p50", (double)samples_at(&crash, 50) / 1e6, 3, "ms",
	    beside);
	(void)snprintf(beside, sizeof(beside), "flock(1): %.3f ms; two fsyncs: %.3f ms",
		       (double)samples_at(&flock, 99) / 1e6, (double)samples_at(&sync, 99) / 1e6);
	row("crash failover, file store, p99", (double)samples_at(&crash, 99) / 1e6,
	    10 + (double)samples_at(&sync, 99) / 1e6, "ms", beside);
	samples_keep(&crash, "file: failover", "baton");
	samples_keep(&flock, "file: failover", "flock(1)");
	samples_done(&crash);
	samples_done(&flock);
	samples_done(&sync);
	baton_close(b);
}
