/*
 * child.c: between fork and exec. In this order: die with the guard, take the terminal, take the
 * work lock (and wait for it), look at the deadline once more, become the command. Whatever fails
 * on the way, the command doesn't run.
 *
 * In a PID namespace of its own there are two processes more: one that stays outside, because the
 * holder of the work lock can only be seen and killed from there; and the first one inside. When
 * that one ends, or the guard does, the kernel kills all others in the namespace.
 *
 *     guard --- outside (has the lock) --- first, "baton-init" --- the command
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/guard.h"

#define NOT_STARTED 125

static void die_with_guard(const struct guard_plan *plan);
static void slow_down(const struct guard_plan *plan);
static void enter_namespace(const struct guard_plan *plan);
static void fill_environment(const struct guard_plan *plan, const struct guard_message *start);
static _Noreturn void refuse(const struct guard_plan *plan, const char *text);

_Noreturn void child_main(const struct guard_plan *plan, const struct guard_message *start)
{
	(void)setpgid(0, 0);
	die_with_guard(plan);
	slow_down(plan);
	if (isolate_enter(plan) != 0)
		refuse(plan, "its cgroup can't be entered");
	if (plan->terminal >= 0)
		(void)tcsetpgrp(plan->terminal, getpgrp()); /* all signals are blocked still */
	fill_environment(plan, start);
	/* From here on a TERM ends us, also while we wait. */
	(void)sigprocmask(SIG_SETMASK, &plan->mask, NULL);
	if (plan->page->work[0] != '\0' && worklock_take(plan, start->number) != 0)
		refuse(plan, "the work lock can't be taken");
	if (plan->isolate == ISOLATE_NAMESPACE)
		enter_namespace(plan);
	uint64_t word = atomic_load(&plan->page->kill_ns);

	if (clock_boot_ns() + plan->page->drain_ns >= word) {
		errno = ETIMEDOUT;
		refuse(plan, "the leadership is over");
	}
	guard_send(plan->socket, GUARD_STARTED, 0, 0, "");
	(void)execvpe(plan->command[0], plan->command, plan->environment);
	int error = errno;

	guard_send(plan->socket, GUARD_CANT_RUN, error, 0, "");
	_exit(error == ENOENT || error == ENOTDIR ? 127 : 126);
}

static _Noreturn void refuse(const struct guard_plan *plan, const char *text)
{
	guard_send(plan->socket, GUARD_REFUSED, errno, 0, text);
	_exit(NOT_STARTED);
}

static void die_with_guard(const struct guard_plan *plan)
{
	struct pollfd guard = {.fd = plan->self, .events = POLLIN};

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* The guard may have died before. In a PID namespace it can't be seen as parent. */
	if (poll(&guard, 1, 0) != 0)
		_exit(NOT_STARTED);
}

/* Back to the scheduling that we were started with: at the fork, the kernel takes the guard's
 * priority from us, and our own policy and niceness with it. */
static void slow_down(const struct guard_plan *plan)
{
	const struct sched_param none = {0};

	if (plan->policy == SCHED_BATCH || plan->policy == SCHED_IDLE)
		(void)sched_setscheduler(0, plan->policy, &none);
	(void)setpriority(PRIO_PROCESS, 0, plan->nice);
}

/* All signals are blocked: none that is meant for the command ends or stops those around it. */
static pid_t fork_inside(const struct guard_plan *plan)
{
	sigset_t all;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	pid_t pid = fork();

	if (pid == 0)
		die_with_guard(plan); /* its parent does, and so it does, too */
	if (pid < 0)
		refuse(plan, "no process can be made");
	return pid;
}

static _Noreturn void end_as(int status)
{
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

/* The first process of the namespace: reaps, and tells what the guard can't see. */
static _Noreturn void be_first(const struct guard_plan *plan, pid_t child)
{
	int status = 0;

	(void)prctl(PR_SET_NAME, "baton-init");
	for (pid_t pid; (pid = waitpid(-1, &status, WUNTRACED)) != child || WIFSTOPPED(status);) {
		if (pid < 0 && errno != EINTR)
			_exit(NOT_STARTED);
		if (pid == child)
			guard_send(plan->socket, GUARD_PAUSED, WSTOPSIG(status), 0, "");
	}
	/* This process can't end by a signal, as its child may have done. */
	guard_send(plan->socket, GUARD_STATUS, status, 0, "");
	end_as(status);
}

/* Returns only in the process that becomes the command. */
static void enter_namespace(const struct guard_plan *plan)
{
	int status = 0;

	if (unshare(CLONE_NEWPID) != 0)
		refuse(plan, "a PID namespace can't be made");
	pid_t first = fork_inside(plan);

	if (first != 0) {
		while (waitpid(first, &status, 0) < 0 && errno == EINTR)
			;
		end_as(status);
	}
	pid_t child = fork_inside(plan);

	if (child != 0)
		be_first(plan, child);
	(void)sigprocmask(SIG_SETMASK, &plan->mask, NULL);
}

static void fill_environment(const struct guard_plan *plan, const struct guard_message *start)
{
	static char term[48];
	static char election[300];
	static char id[GUARD_TEXT + 16];
	static char trace[96];

	(void)snprintf(term, sizeof(term), "BATON_TERM=%llu", (unsigned long long)start->number);
	(void)snprintf(election, sizeof(election), "BATON_ELECTION=%s", plan->election);
	(void)snprintf(id, sizeof(id), "BATON_ID=%s", start->text);
	(void)snprintf(trace, sizeof(trace), "TRACEPARENT=%.63s", plan->page->traceparent);
	plan->environment[0] = term;
	plan->environment[1] = trace;
	plan->environment[2] = election;
	plan->environment[3] = id;
}
