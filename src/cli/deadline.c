/*
 * deadline.c: until when the child may live, seen from the supervisor.
 *
 * The word is the send of the last good renewal + lease * (1 - drift), less a margin for the
 * killing itself (S2, S7). It is moved only while it lies ahead: a lease that was opened after an
 * older one had ended can't be mistaken for it, since the older one's word has passed by then.
 */
#include <errno.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/run.h"

#define MARGIN_MAX_NS (500 * CLOCK_NS_PER_MS)
#define LOOK_MIN_NS CLOCK_NS_PER_MS

static uint64_t or_third(int64_t ms, uint64_t lease_ns)
{
	return ms != 0 ? (uint64_t)ms * CLOCK_NS_PER_MS : lease_ns / 3;
}

void deadline_setup(struct run *r)
{
	const struct settings *s = r->s;
	uint64_t lease_ms = s->lease_ms != 0 ? (uint64_t)s->lease_ms : 15000;

	r->lease_ns = lease_ms * CLOCK_NS_PER_MS;
	r->renew_ns = or_third(s->renew_ms, r->lease_ns);
	r->grace_ns = or_third(s->grace_ms, r->lease_ns);
	uint64_t end_ns = r->lease_ns / 1000 * (1000 - (uint64_t)s->drift_permille);
	uint64_t lost_ns = r->renew_ns + r->grace_ns;
	/* Timings without drain time are refused by the library; here they only must not wrap. */
	uint64_t drain_ns = end_ns > lost_ns ? end_ns - lost_ns : 0;
	uint64_t margin_ns = drain_ns / 4 < MARGIN_MAX_NS ? drain_ns / 4 : MARGIN_MAX_NS;

	r->end_ns = end_ns - margin_ns;
	r->plan.drain_ns = drain_ns - margin_ns;
	r->plan.late_ns = r->plan.drain_ns / 8;
	r->plan.limit_ns = r->end_ns;
}

static uint64_t last_renewal(const struct run *r)
{
	struct baton_status status;

	if (baton_get_status(r->e, &status) != 0 || status.last_renewal_boot_ns <= 0)
		return 0;
	return (uint64_t)status.last_renewal_boot_ns;
}

void deadline_begin(struct run *r)
{
	r->renewed_ns = last_renewal(r);
	atomic_store(&r->plan.page->kill_ns, r->renewed_ns + r->end_ns);
}

void deadline_move(struct run *r)
{
	uint64_t word = atomic_load(&r->plan.page->kill_ns);
	uint64_t renewed_ns;

	if (r->child == CHILD_NONE && !r->is_leading)
		return;
	renewed_ns = last_renewal(r);
	/* The clock after the look: what was confirmed before the word passed is its lease's. */
	if (renewed_ns <= r->renewed_ns || clock_boot_ns() >= word)
		return;
	r->renewed_ns = renewed_ns;
	atomic_store(&r->plan.page->kill_ns, renewed_ns + r->end_ns);
}

uint64_t deadline_next_ns(const struct run *r)
{
	uint64_t word = atomic_load(&r->plan.page->kill_ns);
	uint64_t now_ns = clock_boot_ns();

	if (r->child == CHILD_NONE)
		return UINT64_MAX;
	uint64_t due_ns = r->renewed_ns + r->renew_ns + r->renew_ns / 50;
	uint64_t lost_ns = r->renewed_ns + r->renew_ns + r->grace_ns - LOOK_MIN_NS;
	uint64_t step_ns = r->grace_ns / 16 > LOOK_MIN_NS ? r->grace_ns / 16 : LOOK_MIN_NS;
	uint64_t next_ns = now_ns < due_ns ? due_ns : now_ns + step_ns;

	/* The last moment before it would be taken for lost. */
	if (now_ns < lost_ns && lost_ns < next_ns)
		next_ns = lost_ns;
	if (now_ns < word && word < next_ns)
		next_ns = word;
	if (r->stop_ns != 0 && now_ns < r->stop_ns && r->stop_ns < next_ns)
		next_ns = r->stop_ns;
	return next_ns;
}

void deadline_enforce(struct run *r)
{
	uint64_t word = atomic_load(&r->plan.page->kill_ns);
	uint64_t now_ns = clock_boot_ns();
	uint64_t at_ns = r->stop_ns != 0 && r->stop_ns < word ? r->stop_ns : word;

	if (r->child == CHILD_NONE || r->guard_fd < 0 || now_ns < at_ns)
		return;
	if (r->group > 0)
		(void)kill(-r->group, SIGKILL);
	/* A guard that doesn't do its work is no guard. */
	if (now_ns >= at_ns + r->plan.drain_ns / 8) {
		log_say(BATON_LOG_ERROR, "the guard does not answer; it is killed");
		(void)kill(r->guard, SIGKILL);
		deadline_take_over(r);
	}
}

void deadline_take_over(struct run *r)
{
	siginfo_t info = {0};

	if (r->group > 0)
		(void)kill(-r->group, SIGKILL);
	/* With the guard dead its orphans are ours: until nobody is left. */
	while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG) == 0 || errno != ECHILD) {
		tree_signal(SIGKILL);
		(void)poll(NULL, 0, info.si_pid != 0 ? 0 : 1);
		info.si_pid = 0;
	}
	r->health.pid = 0;
	(void)close(r->guard_fd);
	r->guard_fd = -1;
	r->child = CHILD_NONE;
	r->group = 0;
}
