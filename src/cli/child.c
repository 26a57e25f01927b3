/*
 * child.c: between fork and exec. In this order: die with the guard, take the terminal, take the
 * work lock (and wait for it), look at the deadline once more, become the command. Whatever fails
 * on the way, the command doesn't run.
 *
 * With --isolate there is one process more, the first of a PID namespace: when it ends, or the
 * guard does, the kernel kills all others in there.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/guard.h"

#define NOT_STARTED 125

static void die_with_guard(const struct guard_plan *plan);
static void become_first(const struct guard_plan *plan);
static void fill_environment(const struct guard_plan *plan, const struct guard_message *start);
static _Noreturn void refuse(const struct guard_plan *plan, const char *text);

_Noreturn void child_main(const struct guard_plan *plan, const struct guard_message *start)
{
	(void)setpgid(0, 0);
	die_with_guard(plan);
	if (plan->terminal >= 0)
		(void)tcsetpgrp(plan->terminal, getpgrp()); /* all signals are blocked still */
	if (plan->isolate)
		become_first(plan);
	fill_environment(plan, start);
	/* From here on a TERM ends us, also while we wait. */
	(void)sigprocmask(SIG_SETMASK, &plan->mask, NULL);
	if (plan->page->work[0] != '\0' && worklock_take(plan, start->number) != 0)
		refuse(plan, "the work lock can't be taken");
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
	/* It may have died before. In a PID namespace it can't be seen as parent. */
	if (plan->self >= 0 ? poll(&guard, 1, 0) != 0 : getppid() != plan->pid)
		_exit(NOT_STARTED);
}

/* The first process of the namespace stays behind as its reaper; the second returns. */
static void become_first(const struct guard_plan *plan)
{
	pid_t child = fork();
	int status = 0;

	if (child == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		return;
	}
	(void)prctl(PR_SET_NAME, "baton-init");
	if (child < 0)
		refuse(plan, "no process can be made");
	for (pid_t pid; (pid = wait(&status)) != child;)
		if (pid < 0 && errno != EINTR)
			_exit(NOT_STARTED);
	/* The first of a namespace can't end by a signal as its child did. */
	guard_send(plan->socket, GUARD_STATUS, status, 0, "");
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

static void fill_environment(const struct guard_plan *plan, const struct guard_message *start)
{
	static char term[48];
	static char election[300];
	static char id[GUARD_TEXT + 16];

	(void)snprintf(term, sizeof(term), "BATON_TERM=%llu", (unsigned long long)start->number);
	(void)snprintf(election, sizeof(election), "BATON_ELECTION=%s", plan->election);
	(void)snprintf(id, sizeof(id), "BATON_ID=%s", start->text);
	plan->environment[0] = term;
	plan->environment[1] = election;
	plan->environment[2] = id;
}
