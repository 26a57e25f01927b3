/*
 * contexts.c: work that is bound to a leadership. Each context has a timer on CLOCK_BOOTTIME. The
 * timer is set to the deadline; every renewal moves it, and a lost leadership sets it to now. So
 * its descriptor becomes readable in time even if every thread of the library stands still, and at
 * once after a suspend (S2). Readable means: ask whether this candidate still leads.
 */
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "runtime/runtime.h"

/* A time in the past makes it readable at once; all zero would disarm it. */
static void set_timer(int fd, uint64_t when_ns)
{
	struct itimerspec at = {0};

	if (when_ns != NEVER) {
		when_ns = max_ns(when_ns, 1);
		at.it_value.tv_sec = (time_t)(when_ns / CLOCK_NS_PER_S);
		at.it_value.tv_nsec = (long)(when_ns % CLOCK_NS_PER_S);
	}
	(void)timerfd_settime(fd, TFD_TIMER_ABSTIME, &at, NULL);
}

/*
 * The end counts only if it is that of the lease that the leadership stands on. A lease that was
 * opened since says nothing about this leadership. The end is read before its epoch: if the loop
 * changes them in between, the epochs differ, and the end is not taken for ours.
 */
uint64_t work_end_of(const struct baton_election *e)
{
	uint64_t end_ns = atomic_load(&e->executor->end_ns);
	uint64_t epoch = atomic_load(&e->executor->end_epoch);
	uint64_t work_epoch = atomic_load(&e->work_epoch);

	if (work_epoch == 0 || epoch != work_epoch)
		return 0;
	return min_ns(end_ns, atomic_load(&e->overdue_cell));
}

uint64_t deadline_of(const struct baton_election *e)
{
	return min_ns(atomic_load(e->executor->deadline_cell), atomic_load(&e->work_cell));
}

int context_enter(struct baton_election *e, struct baton_context *ctx, uint64_t term, bool is_run)
{
	*ctx = (struct baton_context){
		.election = e, .term = term, .thread = thread_number(), .fd = -1, .is_run = is_run};
	if (term == 0 || e->audience.work == WORK_DRAINS)
		return BATON_E_NOT_LEADER;
	ctx->fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (ctx->fd < 0)
		return BATON_E_SYSTEM;
	(void)events_tell(e, &(struct audience_event){.kind = AUDIENCE_ENTER, .term = term});
	ctx->next = e->contexts;
	e->contexts = ctx;
	atomic_fetch_add(&e->executor->n_contexts, 1);
	/* After the context is counted: from here on, a move of the deadline reaches it. */
	set_timer(ctx->fd, deadline_of(e));
	return 0;
}

void context_leave(struct baton_context *ctx)
{
	struct baton_election *e = ctx->election;

	for (struct baton_context **p = &e->contexts; *p != NULL; p = &(*p)->next) {
		if (*p == ctx) {
			*p = ctx->next;
			break;
		}
	}
	atomic_fetch_sub(&e->executor->n_contexts, 1);
	(void)close(ctx->fd);
	ctx->fd = -1;
	(void)events_say(e, AUDIENCE_LEAVE);
}

void contexts_cancel(struct baton_election *e)
{
	for (struct baton_context *c = e->contexts; c != NULL; c = c->next)
		set_timer(c->fd, 1);
}

void contexts_move(struct baton_election *e)
{
	if (e->audience.work == WORK_DRAINS) /* lost: nothing brings that back */
		return;
	for (struct baton_context *c = e->contexts; c != NULL; c = c->next)
		set_timer(c->fd, deadline_of(e));
}
