/*
 * guard.c: the process between the supervisor and the child. It is forked before there are threads
 * or drivers, so it stays tiny and can't hang; it has one job: nothing that it has started lives
 * past the word in the shared page.
 *
 * It is the child's parent, and the reaper of everything that the child leaves behind, so no
 * process escapes by leaving the process group. "Ended" is said when there is nothing left to wait
 * for.
 *
 *                 START                exit, STOP, deadline, supervisor gone
 *     idle ------------------> running -----------------------------------> ending
 *       ^                                                                      |
 *       +------------------------- nothing left: ENDED -----------------------+
 */
#include "cli/guard.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#define KILL_AGAIN_NS (2 * CLOCK_NS_PER_MS)

struct guard {
	struct guard_plan *plan;
	int signals;
	int timer;
	pid_t child; /* 0: idle. Also the process group, until `reaped` */
	bool reaped;
	bool asked; /* the first signal was sent */
	bool orphaned;
	bool ended_by_us; /* the main process was told to end before it did */
	int status;
	uint64_t stop_ns; /* when to KILL, if before the word; UINT64_MAX: not */
};

static void set_up_guard(struct guard *g);
static void hurry(struct guard_plan *plan);
static void enforce(struct guard *g);
static void arm_timer(const struct guard *g);
static void receive_orders(struct guard *g);
static void reap_children(struct guard *g);

_Noreturn void guard_main(struct guard_plan *plan)
{
	struct guard g = {.plan = plan, .stop_ns = UINT64_MAX};

	set_up_guard(&g);
	for (;;) {
		struct pollfd fds[] = {{.fd = g.orphaned ? -1 : plan->socket, .events = POLLIN},
				       {.fd = g.signals, .events = POLLIN},
				       {.fd = g.timer, .events = POLLIN}};

		enforce(&g);
		arm_timer(&g);
		(void)poll(fds, 3, -1);
		if (fds[0].revents != 0)
			receive_orders(&g);
		if (fds[1].revents != 0) {
			struct signalfd_siginfo info;

			(void)!read(g.signals, &info, sizeof(info));
		}
		if (fds[2].revents != 0) {
			uint64_t times;

			(void)!read(g.timer, &times, sizeof(times));
		}
		reap_children(&g);
	}
}

static void set_up_guard(struct guard *g)
{
	sigset_t all;
	sigset_t children;

	(void)prctl(PR_SET_NAME, "baton-guard");
	/* Its own group: a signal that is meant for the supervisor's must not take the guard
	 * along. */
	(void)setpgid(0, 0);
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	hurry(g->plan);
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	(void)sigemptyset(&children);
	(void)sigaddset(&children, SIGCHLD);
	g->signals = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
	g->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	g->plan->pid = getpid();
	g->plan->self = (int)syscall(SYS_pidfd_open, getpid(), 0);
	if (g->signals < 0 || g->timer < 0 || g->plan->self < 0)
		_exit(errno != 0 ? errno : EIO);
}

/*
 * On a busy machine the KILL must not wait for its turn: where there is no work lock, the margin is
 * all that keeps a successor from starting too early. A guard sleeps nearly always, so its priority
 * keeps no other process waiting. A user without that right does without the priority.
 */
static void hurry(struct guard_plan *plan)
{
	const struct sched_param first = {.sched_priority = sched_get_priority_min(SCHED_RR)};

	plan->policy = sched_getscheduler(0);
	plan->nice = getpriority(PRIO_PROCESS, 0);
	if (plan->policy == SCHED_OTHER || plan->policy == SCHED_BATCH ||
	    plan->policy == SCHED_IDLE)
		(void)sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &first);
}

/* ---- the deadline ---- */

static uint64_t kill_time(const struct guard *g)
{
	uint64_t word = atomic_load(&g->plan->page->kill_ns);

	return g->stop_ns < word ? g->stop_ns : word;
}

/* When the guard asks by itself: the supervisor asks at the loss, and by now it must be frozen. */
static uint64_t ask_time(const struct guard *g)
{
	uint64_t word = atomic_load(&g->plan->page->kill_ns);
	uint64_t before = g->plan->page->drain_ns - g->plan->page->late_ns;

	return word > before ? word - before : 0;
}

/*
 * Signals the group, and, with KILL or when the main process has ended, those that left the group.
 */
static void signal_all(const struct guard *g, int sig)
{
	if (!g->reaped)
		(void)kill(-g->child, sig);
	if (g->reaped || sig == SIGKILL)
		tree_signal(sig);
	if (sig == SIGKILL)
		isolate_kill(g->plan);
}

static void ask(struct guard *g, int sig)
{
	g->asked = true;
	signal_all(g, sig);
	/* A stopped process can't hear it. */
	if (sig != SIGKILL)
		signal_all(g, SIGCONT);
}

static void enforce(struct guard *g)
{
	uint64_t now_ns = clock_boot_ns();

	if (g->child == 0)
		return;
	if (now_ns >= kill_time(g))
		ask(g, SIGKILL);
	else if (!g->asked && now_ns >= ask_time(g))
		ask(g, g->plan->on_loss);
}

static void arm_timer(const struct guard *g)
{
	uint64_t at_ns = 0;
	uint64_t now_ns = clock_boot_ns();

	if (g->child != 0) {
		at_ns = kill_time(g);
		if (!g->asked && ask_time(g) < at_ns)
			at_ns = ask_time(g);
		if (at_ns <= now_ns)
			at_ns = now_ns + KILL_AGAIN_NS;
	}
	struct itimerspec when = {.it_value = {.tv_sec = (time_t)(at_ns / CLOCK_NS_PER_S),
					       .tv_nsec = (long)(at_ns % CLOCK_NS_PER_S)}};

	(void)timerfd_settime(g->timer, TFD_TIMER_ABSTIME, &when, NULL);
}

/* ---- what the supervisor says ---- */

static void drop_work(const struct guard_plan *plan)
{
	if (plan->page->work[0] != '\0')
		(void)close(plan->work_fd);
}

static void refuse(const struct guard_plan *plan, const char *text)
{
	guard_send(plan->socket, GUARD_REFUSED, errno, 0, text);
	guard_send(plan->socket, GUARD_ENDED, 0, 0, "");
}

static void start_child(struct guard *g, const struct guard_message *m)
{
	pid_t pid;

	if (g->child != 0)
		return;
	g->reaped = g->asked = false;
	g->status = 0;
	g->stop_ns = UINT64_MAX;
	if (g->plan->page->work[0] != '\0' && (g->plan->work_fd = worklock_open(g->plan)) < 0) {
		refuse(g->plan, "the work lock can't be opened");
		return;
	}
	pid = fork();
	if (pid == 0)
		child_main(g->plan, m);
	if (pid < 0) {
		refuse(g->plan, "no process can be made");
		drop_work(g->plan);
		return;
	}
	(void)setpgid(pid, pid); /* both do this: either may be first */
	g->child = pid;
	guard_send(g->plan->socket, GUARD_FORKED, pid, 0, "");
}

/* No process is left that could renew anything, or tell us. */
static void supervisor_gone(struct guard *g)
{
	g->orphaned = true;
	if (g->child == 0) {
		isolate_done(g->plan);
		_exit(0);
	}
	bool at_once = g->plan->page->is_replaced_at_once;
	uint64_t at_ns = clock_boot_ns() + (at_once ? 0 : g->plan->patience_ns);

	if (at_ns < g->stop_ns)
		g->stop_ns = at_ns;
	ask(g, at_once ? SIGKILL : g->plan->on_loss);
}

static void receive_orders(struct guard *g)
{
	struct guard_message m;
	ssize_t n = recv(g->plan->socket, &m, sizeof(m), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n != (ssize_t)sizeof(m)) {
		supervisor_gone(g);
		return;
	}
	switch (m.kind) {
	case GUARD_START: start_child(g, &m); break;
	case GUARD_STOP:
		if (g->child == 0)
			break;
		if (m.number < g->stop_ns)
			g->stop_ns = m.number;
		ask(g, m.value);
		break;
	case GUARD_SIGNAL:
		if (g->child != 0 && !g->reaped)
			(void)kill(-g->child, m.value);
		break;
	default: break;
	}
}

/* ---- who has ended ---- */

static void main_ended(struct guard *g, int status)
{
	uint64_t at_ns = clock_boot_ns() + g->plan->patience_ns;

	g->status = status;
	g->reaped = true;
	g->ended_by_us = g->asked;
	guard_send(g->plan->socket, GUARD_REAPED, 0, 0, "");
	/* What it has left behind ends with it. */
	if (at_ns < g->stop_ns)
		g->stop_ns = at_ns;
	ask(g, SIGTERM);
}

static void reap_children(struct guard *g)
{
	int status;
	pid_t pid;

	if (g->child == 0)
		return;
	while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
		if (pid == g->child && !g->reaped && WIFSTOPPED(status))
			guard_send(g->plan->socket, GUARD_PAUSED, WSTOPSIG(status), 0, "");
		else if (pid == g->child && !g->reaped)
			main_ended(g, status);
	}
	if (pid == 0 || errno != ECHILD || !g->reaped)
		return;
	if (g->orphaned) {
		isolate_done(g->plan);
		_exit(0);
	}
	g->child = 0;
	drop_work(g->plan);
	guard_send(g->plan->socket, GUARD_ENDED, g->status, g->ended_by_us ? 1 : 0, "");
}

void guard_send(int socket, int kind, int value, uint64_t number, const char *text)
{
	struct guard_message m = {.kind = kind, .value = value, .number = number};
	bool waits = kind != GUARD_STOP && kind != GUARD_SIGNAL && kind != GUARD_PAUSED &&
		     kind != GUARD_REAPED;

	(void)snprintf(m.text, sizeof(m.text), "%s", text);
	(void)send(socket, &m, sizeof(m), MSG_NOSIGNAL | (waits ? 0 : MSG_DONTWAIT));
}
