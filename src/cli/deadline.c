/*
 * deadline.c: until when the child may live, seen from the supervisor.
 *
 * The word is the send of the last good renewal + lease * (1 - drift), less a margin for the
 * killing itself (S2, S7). Only renewals of the lease that the leadership stands on move it, and
 * only while it lies ahead; each of them is an event (RENEWED).
 */
#include <errno.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/run.h"
#include "cli/supervise.h"

#define MARGIN_MAX_NS (500 * CLOCK_NS_PER_MS)
#define LOOK_NS CLOCK_NS_PER_MS

/* The work lock, where there is one. */
static int find_work_lock(struct run *r)
{
	struct guard_page *page = r->plan.page;
	struct baton_error err = {0};
	uint32_t mode = 0;
	int code = baton_work_lock(r->b, r->s->name, page->work, sizeof(page->work), &mode, &err);

	page->work_mode = (mode_t)mode;
	if (code == 0)
		return 0;
	page->work[0] = '\0';
	return code == BATON_E_UNSUPPORTED ? 0 : open_fail(&err);
}

int deadline_setup(struct run *r)
{
	struct guard_page *page = r->plan.page;
	struct baton_timings t;

	/* Not the timings that we have asked for: the store may need an earlier end than we do. */
	if (baton_get_timings(r->b, &t) != 0)
		return EXIT_INTERNAL;
	uint64_t margin_ns = t.drain_ns / 4 < MARGIN_MAX_NS ? t.drain_ns / 4 : MARGIN_MAX_NS;

	r->lease_ns = t.lease_ns;
	r->margin_ns = margin_ns;
	r->end_ns = t.end_ns - margin_ns;
	page->drain_ns = t.drain_ns - margin_ns;
	page->late_ns = page->drain_ns / 8;
	page->limit_ns = r->end_ns;
	int code = find_work_lock(r);

	page->is_replaced_at_once = t.proves_death && page->work[0] == '\0';
	return code;
}

uint64_t deadline_word(const struct run *r)
{
	int64_t end_ns = 0;

	(void)baton_get_deadline(r->e, NULL, &end_ns);
	return end_ns > 0 ? (uint64_t)end_ns - r->margin_ns : 0;
}

/* A word of 0: lost again before we came to hear of it; the child won't be started. */
void deadline_begin(struct run *r)
{
	atomic_store(&r->plan.page->kill_ns, deadline_word(r));
}

void deadline_move(struct run *r)
{
	uint64_t word = atomic_load(&r->plan.page->kill_ns);

	if (r->child == CHILD_NONE && !r->is_leading)
		return;
	uint64_t next = deadline_word(r);

	if (next > word && clock_boot_ns() < word)
		atomic_store(&r->plan.page->kill_ns, next);
}

uint64_t deadline_next_ns(const struct run *r)
{
	uint64_t word = atomic_load(&r->plan.page->kill_ns);
	uint64_t now_ns = clock_boot_ns();
	uint64_t at_ns = r->stop_ns != 0 && r->stop_ns < word ? r->stop_ns : word;

	if (r->child == CHILD_NONE)
		return UINT64_MAX;
	/* If the word has passed, look again and again until nothing is left of the child. */
	return now_ns < at_ns ? at_ns : now_ns + LOOK_NS;
}

void deadline_enforce(struct run *r)
{
	uint64_t word = atomic_load(&r->plan.page->kill_ns);
	uint64_t now_ns = clock_boot_ns();
	uint64_t at_ns = r->stop_ns != 0 && r->stop_ns < word ? r->stop_ns : word;

	if (r->child == CHILD_NONE || r->guard_fd < 0 || now_ns < at_ns) {
		r->overdue_ns = 0;
		return;
	}
	if (r->group > 0)
		(void)kill(-r->group, SIGKILL);
	/* Counted from when we see it: a guard that was frozen with us wakes up with us, and does
	 * its work. */
	if (r->overdue_ns == 0)
		r->overdue_ns = now_ns;
	/* A guard that doesn't answer can't guard. */
	if (now_ns >= r->overdue_ns + r->plan.page->drain_ns / 8) {
		(void)kill(r->guard, SIGKILL);
		log_say(BATON_LOG_ERROR, "the guard does not answer; it is killed");
		supervise_guard_died(r);
	}
}

/* False: no child is left. */
static bool clear_away(struct run *r)
{
	siginfo_t info = {0};

	while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG) == 0) {
		if (info.si_pid == 0)
			return true;
		if (info.si_pid == r->guard && info.si_code == CLD_EXITED)
			r->guard_error = info.si_status;
		info.si_pid = 0;
	}
	return errno != ECHILD;
}

void deadline_take_over(struct run *r)
{
	if (r->group > 0)
		(void)kill(-r->group, SIGKILL);
	/* The guard is dead, so its orphans are ours: reap the dead and kill the others, until none
	 * is left. */
	while (clear_away(r)) {
		isolate_kill(&r->plan);
		tree_signal(SIGKILL);
		(void)poll(NULL, 0, 1);
	}
	r->health.pid = 0;
	callbacks_forget(r->hooks.callbacks);
	(void)close(r->guard_fd);
	(void)close(r->socket);
	r->guard_fd = r->socket = -1;
	r->child = CHILD_NONE;
	r->group = 0;
}
