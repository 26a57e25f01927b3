/*
 * supervise.c: see supervise.h. Signals are read from a descriptor, never handled; the library's
 * threads inherit the blocked mask. What a shell or a service manager expects of a command holds
 * for this one too: TERM ends it; the child decides on INT, HUP and QUIT; TSTP stops both; and if a
 * signal ends us, our parent sees that.
 */
#include "cli/supervise.h"
#include "telemetry/service.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

static const int heard[] = {SIGTERM, SIGINT,  SIGHUP,  SIGQUIT, SIGUSR1,
			    SIGUSR2, SIGCHLD, SIGTSTP, SIGCONT, SIGWINCH};

static int setup_fail(const char *what);
static bool is_ignored(int sig);
static void make_page(struct guard_plan *plan);
static void keep_traceparent(struct guard_page *page);
static int make_guard(struct run *r);

int supervise_setup(struct run *r)
{
	struct guard_plan *plan = &r->plan;
	sigset_t all;

	r->began_ns = clock_boot_ns();
	log_never_wait();
	/* If our parent ignores SIGCHLD, so do we after exec, and no child's end could be seen. */
	(void)signal(SIGCHLD, SIG_DFL);
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &plan->mask);
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1); /* should the guard die, its orphans are ours */
	make_page(plan);
	plan->environment = callbacks_environment(GUARD_N_OWN);
	keep_traceparent(plan->page);
	if (plan->page == MAP_FAILED || plan->environment == NULL)
		return setup_fail("a page of memory");
	atomic_store(&plan->page->kill_ns, 0);
	plan->command = r->s->command;
	plan->election = r->s->name;
	plan->isolate = r->s->isolate != 0 ? ISOLATE_NAMESPACE : ISOLATE_NO;
	plan->on_loss = (int)r->s->on_loss;
	plan->patience_ns = (uint64_t)r->s->stop_timeout_ms * CLOCK_NS_PER_MS;
	plan->terminal = isatty(0) == 1 && tcgetpgrp(0) == getpgrp() ? 0 : -1;
	isolate_choose(plan);
	int code = make_guard(r);

	if (code == 0)
		code = isolate_make(plan, r->guard);
	if (code != 0)
		return code;
	sigset_t set;

	(void)sigemptyset(&set);
	for (size_t i = 0; i < sizeof(heard) / sizeof(heard[0]); i++)
		if (!is_ignored(heard[i]))
			(void)sigaddset(&set, heard[i]);
	r->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	r->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	return r->signals >= 0 && r->timer >= 0 ? 0 : setup_fail("a timer");
}

/* Says why, by errno. */
static int setup_fail(const char *what)
{
	log_say(BATON_LOG_ERROR, "%s can't be made: %s%s", what, strerror(errno),
		text_limit(errno));
	return EXIT_INTERNAL;
}

/* A signal that was already ignored at start stays ignored: by nohup(1), or by a shell that runs us
 * in the background. A blocked signal would come all the same, ignored or not. */
static bool is_ignored(int sig)
{
	struct sigaction now = {0};

	if (sig != SIGHUP && sig != SIGINT && sig != SIGQUIT)
		return false;
	return sigaction(sig, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

/* A traceparent that we were given is handed on, unless we trace ourselves. */
static void keep_traceparent(struct guard_page *page)
{
	const char *given = getenv("TRACEPARENT");

	if (page == MAP_FAILED || given == NULL || strlen(given) >= sizeof(page->traceparent))
		return;
	(void)strcpy(page->traceparent, given);
	page->traceparent_is_foreign = true;
}

/*
 * The page is shared by all that are forked from us; and a successor can read it by its descriptor.
 */
static void make_page(struct guard_plan *plan)
{
	const size_t n = sizeof(*plan->page);
	int fd = memfd_create("baton-page", MFD_CLOEXEC);

	plan->page_fd = fd >= 0 && ftruncate(fd, (off_t)n) == 0 ? fd : -1;
	plan->page = mmap(NULL, n, PROT_READ | PROT_WRITE,
			  MAP_SHARED | (plan->page_fd < 0 ? MAP_ANONYMOUS : 0), plan->page_fd, 0);
	if (plan->page != MAP_FAILED)
		plan->page->has_offset = tree_boot_offset(&plan->page->offset_ns);
}

static int make_guard(struct run *r)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return setup_fail("the guard's socket");
	r->guard = fork();
	if (r->guard == 0) {
		(void)close(ends[0]);
		r->plan.socket = ends[1];
		guard_main(&r->plan);
	}
	(void)close(ends[1]);
	r->socket = ends[0];
	r->guard_fd = r->guard > 0 ? (int)syscall(SYS_pidfd_open, r->guard, 0) : -1;
	return r->guard_fd >= 0 ? 0 : setup_fail("the guard");
}

/* ---- the guard ---- */

void supervise_start(struct run *r)
{
	r->restart_ns = 0;
	if (r->guard_fd < 0 || r->child != CHILD_NONE || !r->is_leading || r->is_stopping ||
	    !hooks_may_start(r))
		return;
	r->child = CHILD_STARTING;
	r->group = 0;
	r->cant_run = 0;
	r->is_refused = r->has_status = false;
	r->stop_ns = 0;
	r->started_ns = clock_boot_ns();
	guard_send(r->socket, GUARD_START, 0, r->term, baton_id(r->b));
}

void supervise_stop(struct run *r, int sig, bool voluntary)
{
	/* A lease can outlive the claim on it (L5); its renewals then no longer move the word. */
	uint64_t word = voluntary ? 0 : deadline_word(r);
	uint64_t at_ns = voluntary   ? clock_boot_ns() + r->plan.patience_ns
			 : word != 0 ? word
				     : UINT64_MAX;

	r->child = CHILD_ENDING;
	/* The guard has a moment more than it was told. */
	r->stop_ns = voluntary ? at_ns + CLOCK_NS_PER_S / 4 : word;
	guard_send(r->socket, GUARD_STOP, sig, at_ns, "");
}

void supervise_end(struct run *r, int code)
{
	r->exit_code = code;
	if (r->is_stopping)
		return;
	r->is_stopping = true;
	r->restart_ns = 0;
	if (r->is_leading)
		telemetry_stepping_down(r, BATON_REASON_NONE);
	if (!r->is_anew)
		service_say("STOPPING=1\nSTATUS=stops");
	/* We pull our events, so a stop says that the work has ended: the work must end first. */
	if (r->child == CHILD_NONE && hooks_are_over(r))
		supervise_leave(r);
	else if (r->child != CHILD_NONE && !r->is_lost)
		supervise_stop(r, r->stop_signal != 0 ? r->stop_signal : r->plan.on_loss, true);
}

void supervise_leave(struct run *r)
{
	r->has_left = true;
	r->give_up_ns = clock_boot_ns() + r->lease_ns;
	(void)baton_election_stop(r->e, 0);
}

static void take_terminal_back(const struct run *r)
{
	if (r->plan.terminal >= 0)
		(void)tcsetpgrp(r->plan.terminal, getpgrp()); /* TTOU is blocked */
}

/* Job control: when the child is stopped, so are we; the guard keeps the time. */
static void paused(struct run *r, int sig)
{
	if (r->plan.terminal < 0 || getpid() == 1)
		return;
	take_terminal_back(r);
	(void)kill(0, sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU ? SIGSTOP : sig);
}

static void continued(struct run *r)
{
	if (r->group <= 0)
		return;
	if (r->plan.terminal >= 0 && tcgetpgrp(r->plan.terminal) == getpgrp())
		(void)tcsetpgrp(r->plan.terminal, r->group);
	guard_send(r->socket, GUARD_SIGNAL, SIGCONT, 0, "");
}

static void refused(struct run *r, const struct guard_message *m)
{
	r->is_refused = true;
	r->is_late = m->value == ETIMEDOUT;
	log_say(BATON_LOG_ERROR, "the command is not started: %s: %s%s", m->text,
		strerror(m->value), text_limit(m->value));
}

void supervise_receive(struct run *r)
{
	struct guard_message m;

	while (recv(r->socket, &m, sizeof(m), MSG_DONTWAIT) == (ssize_t)sizeof(m)) {
		switch (m.kind) {
		case GUARD_FORKED: r->group = m.value; break;
		case GUARD_STARTED:
			r->n_refused = 0;
			if (r->child == CHILD_STARTING)
				r->child = CHILD_RUNNING;
			telemetry_started(r);
			break;
		case GUARD_WAITING:
			log_say(BATON_LOG_WARN, "waits for the end of %s, which still works",
				m.text);
			break;
		case GUARD_CANT_RUN: r->cant_run = m.value; break;
		case GUARD_REFUSED: refused(r, &m); break;
		case GUARD_PAUSED: paused(r, m.value); break;
		case GUARD_REAPED: r->group = 0; break;
		case GUARD_STATUS:
			r->status = m.value;
			r->has_status = true;
			break;
		case GUARD_ENDED:
			take_terminal_back(r);
			run_child_ended(r, r->has_status ? r->status : m.value, m.number != 0);
			break;
		default: break;
		}
	}
}

void supervise_guard_died(struct run *r)
{
	bool worked = r->child != CHILD_NONE;

	supervise_receive(r);
	if (r->guard_fd < 0)
		return;
	deadline_take_over(r);
	take_terminal_back(r);
	if (r->guard_error != 0)
		log_say(BATON_LOG_ERROR, "the guard has failed: %s%s", strerror(r->guard_error),
			text_limit(r->guard_error));
	else
		log_say(BATON_LOG_ERROR, "the guard was killed%s",
			worked ? "; what it has started is dead" : "");
	if (r->is_stopping)
		return; /* we know already how to end */
	r->is_anew = r->guard_error == 0;
	supervise_end(r, EXIT_INTERNAL);
}

/* ---- signals ---- */

static void reap_guard(struct run *r)
{
	siginfo_t info = {0};

	/* The guard is left to its pidfd. All others are reaped, as a first process has to. */
	while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0) {
		int status;

		if (info.si_pid == r->guard) {
			if (r->guard_fd >= 0)
				supervise_guard_died(r);
			return;
		}
		if (callbacks_owns(r->hooks.callbacks, info.si_pid)) {
			callbacks_process(r->hooks.callbacks);
			info.si_pid = 0;
			continue;
		}
		health_ended(r, info.si_pid);
		if (waitpid(info.si_pid, &status, WNOHANG) > 0)
			health_reaped(r, info.si_pid, status);
		info.si_pid = 0;
	}
}

/* TERM is for us; the others go to the child, or are for us if there is no child. */
static void asked_to_end(struct run *r, int sig)
{
	if (r->is_stopping && r->stop_signal != 0 && r->child == CHILD_NONE) {
		r->is_done = true; /* asked twice, and nothing runs: don't wait for the store */
		return;
	}
	if (r->child != CHILD_NONE && sig != SIGTERM) {
		guard_send(r->socket, GUARD_SIGNAL, sig, 0, "");
		return;
	}
	if (r->stop_signal == 0)
		r->stop_signal = sig;
	if (r->is_anew)
		r->exit_code = EXIT_SIGNAL + sig;
	r->is_anew = false;
	if ((r->is_lost || r->is_stopping) && r->child != CHILD_NONE)
		guard_send(r->socket, GUARD_SIGNAL, sig, 0, "");
	/* Else the code is known already: the command's own, if it ended by itself. */
	if (!r->is_stopping)
		supervise_end(r, EXIT_SIGNAL + sig);
}

static void stop_ourselves(const struct run *r)
{
	if (r->group > 0)
		guard_send(r->socket, GUARD_SIGNAL, SIGTSTP, 0, "");
	if (getpid() != 1)
		(void)raise(SIGSTOP);
}

void supervise_signals(struct run *r)
{
	struct signalfd_siginfo info;

	while (read(r->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		int sig = (int)info.ssi_signo;

		switch (sig) {
		case SIGCHLD: reap_guard(r); break;
		case SIGTERM:
		case SIGINT:
		case SIGHUP:
		case SIGQUIT: asked_to_end(r, sig); break;
		case SIGTSTP: stop_ourselves(r); break;
		case SIGCONT: continued(r); break;
		default:
			if (r->child != CHILD_NONE)
				guard_send(r->socket, GUARD_SIGNAL, sig, 0, "");
			break;
		}
	}
}

/* ---- the end ---- */

/*
 * A guard can only be made while there are no threads, so a supervisor that has lost its guard
 * becomes a new program: the claim was given back, nothing runs, and it contends as if just
 * started. It does so once a second at most, so that we are not kept busy where guards are killed
 * all the time.
 */
static void begin_anew(struct run *r)
{
	uint64_t now_ns = clock_boot_ns();
	uint64_t earliest_ns = r->began_ns + CLOCK_NS_PER_S;

	if (now_ns < earliest_ns)
		(void)poll(NULL, 0, (int)((earliest_ns - now_ns) / CLOCK_NS_PER_MS) + 1);
	(void)sigprocmask(SIG_SETMASK, &r->plan.mask, NULL);
	(void)execv("/proc/self/exe", r->s->argv);
	log_say(BATON_LOG_ERROR, "baton run can't start itself again: %s", strerror(errno));
}

int supervise_finish(struct run *r)
{
	struct rlimit none = {0};
	int sig = r->stop_signal;
	sigset_t set;

	isolate_done(&r->plan);
	if (r->is_anew)
		begin_anew(r);

	if (sig == 0 || r->exit_code != EXIT_SIGNAL + sig)
		return r->exit_code;
	/* A signal asked us to end: we die by it, so that shells and service managers see that. */
	(void)setrlimit(RLIMIT_CORE, &none);
	(void)signal(sig, SIG_DFL);
	(void)raise(sig);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, sig);
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
	return r->exit_code; /* the first process of a container stays */
}
