/*
 * faults.c: see memory.h. What is between a caller and the store: the clock, the time that a call
 * may take, and the faults that a test has switched on.
 *
 *   caller -- black hole, fail, doubt, delay --> store -- delay or drop of the reply --> caller
 *
 * Only a call that stops before the store is FAILED. A call that was carried out and isn't answered
 * is UNKNOWN, as on a real network. No wait goes past the call's deadline.
 */
#include "store/memory/memory.h"

#include <stdio.h>
#include <time.h>

#include "base/clock.h"

/* The longest wait. Conditions wait by a clock that stands still in suspend, but deadlines don't,
 * so they are looked at again. */
#define SLICE_NS CLOCK_NS_PER_S

static void take_fault(struct memory *m, int verb, struct memory_fault *out);
static bool wait_out(struct memory_lane *lane, const struct baton_call *call,
		     const struct memory_fault *fault, uint64_t until_ns);
static uint64_t later_ns(uint64_t now_ns, uint64_t d);
static int no_answer(struct baton_call *call);

int memory_enter(struct memory_lane *lane, struct baton_call *call, int verb,
		 struct memory_fault *fault)
{
	struct memory *m = lane->handle->memory;
	int outcome = 0;

	call->error.code = 0;
	call->error.text[0] = '\0';
	fault->kind = MEMORY_FAULT_NONE;
	pthread_mutex_lock(&m->lock);
	m->calls[verb]++;
	if (verb != BATON_MEMORY_WATCH && clock_boot_ns() >= call->deadline_ns) {
		store_fail(&call->error, BATON_E_TIMEOUT,
			   "the call's time was over before it began");
		return BATON_OUTCOME_FAILED;
	}
	take_fault(m, verb, fault);
	switch (fault->kind) {
	case MEMORY_FAULT_FAIL:
		call->error = fault->error;
		outcome = BATON_OUTCOME_FAILED;
		break;
	case MEMORY_FAULT_DOUBT:
		call->error = fault->error;
		outcome = BATON_OUTCOME_UNKNOWN;
		break;
	case MEMORY_FAULT_BLACK_HOLE:
		if (!wait_out(lane, call, fault, BATON_STORE_NEVER))
			outcome = no_answer(call);
		break;
	case MEMORY_FAULT_DELAY:
		if (!wait_out(lane, call, fault, later_ns(clock_boot_ns(), fault->delay_ns)))
			outcome = no_answer(call);
		break;
	default: break;
	}
	memory_sweep(m);
	return outcome;
}

int memory_leave(struct memory_lane *lane, struct baton_call *call, struct memory_fault *fault,
		 int outcome)
{
	struct memory *m = lane->handle->memory;

	if (fault->kind == MEMORY_FAULT_DELAY_REPLY) {
		if (!wait_out(lane, call, fault, later_ns(clock_boot_ns(), fault->delay_ns)))
			outcome = no_answer(call);
	} else if (fault->kind == MEMORY_FAULT_DROP_REPLY) {
		if (!fault->at_once)
			(void)wait_out(lane, call, fault, BATON_STORE_NEVER);
		outcome = no_answer(call);
	}
	pthread_mutex_unlock(&m->lock);
	return outcome;
}

/* The verb's own fault applies before the one for all verbs. */
static void take_fault(struct memory *m, int verb, struct memory_fault *out)
{
	struct memory_fault *f = &m->faults[verb];

	if (f->times == 0)
		f = &m->faults[BATON_MEMORY_ANY];
	if (f->times == 0)
		return;
	*out = *f;
	if (f->times != BATON_MEMORY_ALWAYS)
		f->times--;
}

/*
 * Waits. True: it is until_ns, or the fault was turned off, or the lane was woken. False: the
 * call's deadline has come.
 */
static bool wait_out(struct memory_lane *lane, const struct baton_call *call,
		     const struct memory_fault *fault, uint64_t until_ns)
{
	struct memory *m = lane->handle->memory;

	while (m->faults[fault->slot].serial == fault->serial && !lane->woken) {
		uint64_t now_ns = clock_boot_ns();

		/* A wait that ended before the deadline counts, even if the thread woke up late. */
		if (now_ns >= until_ns && until_ns < call->deadline_ns)
			return true;
		if (now_ns >= call->deadline_ns)
			return false;
		memory_wait(m, &m->changed,
			    until_ns < call->deadline_ns ? until_ns : call->deadline_ns);
	}
	return true;
}

static int no_answer(struct baton_call *call)
{
	store_fail(&call->error, BATON_E_UNAVAILABLE, "the store did not answer in time");
	return BATON_OUTCOME_UNKNOWN;
}

/* ---- time ---- */

int memory_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;
	int rc;

	if (pthread_condattr_init(&attr) != 0)
		return BATON_E_SYSTEM;
	rc = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	if (rc == 0)
		rc = pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
	return rc == 0 ? 0 : BATON_E_SYSTEM;
}

uint64_t memory_now_ns(const struct memory *m)
{
	return m->is_held ? m->held_ns : clock_boot_ns() + m->offset_ns;
}

int64_t memory_wall_ms(const struct memory *m)
{
	if (m->is_held)
		return m->held_wall_ms;
	return clock_wall_ms() + (int64_t)m->offset_ns / (int64_t)CLOCK_NS_PER_MS;
}

void memory_wait(struct memory *m, pthread_cond_t *cond, uint64_t boot_ns)
{
	uint64_t now_ns = clock_boot_ns();
	uint64_t wait_ns = boot_ns > now_ns ? boot_ns - now_ns : 0;
	struct timespec t;

	if (wait_ns > SLICE_NS)
		wait_ns = SLICE_NS;
	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	wait_ns += (uint64_t)t.tv_nsec;
	t.tv_sec += (time_t)(wait_ns / CLOCK_NS_PER_S);
	t.tv_nsec = (long)(wait_ns % CLOCK_NS_PER_S);
	(void)pthread_cond_timedwait(cond, &m->lock, &t);
}

static uint64_t later_ns(uint64_t now_ns, uint64_t d)
{
	return d > BATON_STORE_NEVER - now_ns ? BATON_STORE_NEVER : now_ns + d;
}
