/*
 * file_leaks.c: a process that lives long has many leases, one after the other. Each of them is a
 * locked descriptor and some entries in leases/, and none of those may stay when the lease is over:
 * not when the process was frozen for longer than the lease, and not when its claim was left to
 * expire on purpose. Played through the library, with a handle as an application has it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "baton.h"
#include "store/rig.h"

#define ROUNDS 8
#define LEASE_MS 400
#define LIMIT_MS 30000
/* Of one lease with a candidate on it: the lease, its lock and its folder of candidates. */
#define ENTRIES 3

static char dir[256];
static char url[300];

static int set_up(void **state)
{
	(void)state;
	rig_make_dir(dir, sizeof(dir));
	(void)snprintf(url, sizeof(url), "file:%s", dir);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	rig_remove_dir(dir);
	return 0;
}

static struct baton *open_handle(void)
{
	struct baton_options o;
	struct baton *b = NULL;

	baton_options_init(&o);
	o.lease_ms = LEASE_MS;
	if (baton_open(url, &o, &b, NULL) != 0)
		abort();
	return b;
}

static struct baton_election *contend(struct baton *b, bool release_on_stop)
{
	struct baton_election_options o;
	struct baton_election *e = NULL;

	baton_election_options_init(&o);
	o.release_on_stop = release_on_stop;
	if (baton_election_new(b, "job", &o, &e, NULL) != 0 || baton_election_start(e) != 0)
		abort();
	return e;
}

/* Waits for the next leadership; its term. 0: there was none in time. */
static uint64_t await_term(struct baton *b)
{
	uint64_t until_ns = clock_boot_ns() + LIMIT_MS * CLOCK_NS_PER_MS;
	struct baton_event event;

	while (clock_boot_ns() < until_ns)
		if (baton_wait(b, LIMIT_MS, &event) > 0 && event.kind == BATON_EVENT_BECAME)
			return event.term;
	return 0;
}

/* How many locks of leases that process has open: others of its descriptors come and go. */
static int locks_of(pid_t pid)
{
	char path[64], file[400], target[400];
	int n = 0;

	(void)snprintf(path, sizeof(path), "/proc/%ld/fd", (long)pid);
	DIR *stream = opendir(path);

	assert_non_null(stream);
	for (struct dirent *e; (e = readdir(stream)) != NULL;) {
		(void)snprintf(file, sizeof(file), "%s/%s", path, e->d_name);
		ssize_t length = readlink(file, target, sizeof(target) - 1);

		target[length > 0 ? length : 0] = '\0';
		n += strncmp(target, dir, strlen(dir)) == 0 && strstr(target, ".alive") != NULL;
	}
	(void)closedir(stream);
	return n;
}

/* In the end that process has so many leases and no more; what leaks stays. */
static void await_leases(pid_t pid, int n)
{
	uint64_t until_ns = clock_boot_ns() + LIMIT_MS * CLOCK_NS_PER_MS;

	while ((locks_of(pid) > n || rig_count(dir, "leases") > n * ENTRIES) &&
	       clock_boot_ns() < until_ns)
		rig_wait_until(clock_boot_ns() + CLOCK_NS_PER_MS);
	assert_true(locks_of(pid) <= n);
	assert_true(rig_count(dir, "leases") <= n * ENTRIES);
}

/* ---- frozen ---- */

/* A child that says each term that it leads in. */
static void lead_and_say(int out)
{
	struct baton *b = open_handle();

	(void)contend(b, true);
	for (uint64_t term = await_term(b); term != 0; term = await_term(b))
		if (write(out, &term, sizeof(term)) != (ssize_t)sizeof(term))
			break;
	_exit(0);
}

static pid_t start_child(int *in)
{
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* also if a check fails */
		(void)close(ends[0]);
		lead_and_say(ends[1]);
	}
	(void)close(ends[1]);
	*in = ends[0];
	return pid;
}

static void frozen_for_longer_than_the_lease(void **state)
{
	uint64_t term = 0, next = 0;
	int in, status;
	pid_t pid = start_child(&in);

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		assert_int_equal(read(in, &next, sizeof(next)), sizeof(next));
		assert_true(next > term);
		term = next;
		assert_int_equal(kill(pid, SIGSTOP), 0);
		assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
		/* With the drift that the candidate allows for, and some more. */
		rig_wait_until(clock_boot_ns() + LEASE_MS * CLOCK_NS_PER_MS * 3 / 2);
		assert_int_equal(kill(pid, SIGCONT), 0);
	}
	await_leases(pid, 1);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, &status, 0);
	(void)close(in);
}

/* ---- left to expire ---- */

/* The last one is there until its lease has ended, and not longer. */
static void left_to_expire(void **state)
{
	struct baton *b = open_handle();

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		struct baton_election *e = contend(b, false);

		assert_int_not_equal(await_term(b), 0);
		assert_int_equal(baton_election_stop(e, LIMIT_MS), 0);
		baton_election_free(e);
	}
	await_leases(getpid(), 0);
	baton_close(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(frozen_for_longer_than_the_lease, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(left_to_expire, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
