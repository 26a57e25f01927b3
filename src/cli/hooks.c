/*
 * hooks.c: the callbacks of `baton run`: on-elected before the command is started, on-lost after
 * nothing of it is left and before the leadership is given back (S7), on-change whenever another
 * leads. The supervisor kills those that take too long; the guard doesn't know of them.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/run.h"
#include "cli/supervise.h"

#define QUIET_MS 30000 /* after a gate that stayed closed: others first */

static void say(int level, const char *election, const char *text)
{
	log_say_of(level, election, 0, "%s", text);
}

int hooks_begin(struct run *r)
{
	const struct settings *s = r->s;
	const struct callbacks_plan plan = {.commands = {[CALLBACK_ELECTED] = s->on_elected,
							 [CALLBACK_LOST] = s->on_lost,
							 [CALLBACK_CHANGE] = s->on_change},
					    .fifo = s->notify_fifo,
					    .timeout_ns = (uint64_t)s->callback_timeout_ms *
							  CLOCK_NS_PER_MS,
					    .environment = r->plan.environment + GUARD_N_OWN,
					    .say = say};
	struct baton_error err = {0};

	if (s->on_elected == NULL && s->on_lost == NULL && s->on_change == NULL &&
	    s->notify_fifo == NULL)
		return 0;
	r->hooks.callbacks = callbacks_new(&plan, &err);
	if (r->hooks.callbacks == NULL)
		return open_fail(&err);
	r->hooks.queue = callbacks_queue(r->hooks.callbacks, s->name, baton_id(r->b));
	return r->hooks.queue != NULL ? 0 : EXIT_INTERNAL;
}

static void put_event(struct run *r, const struct callback_event *event,
		      void (*done)(void *arg, bool ok))
{
	struct callback_event told = *event;

	told.leader = event->leader != NULL ? event->leader : "";
	told.old_leader = event->old_leader != NULL ? event->old_leader : "";
	told.leader_address = event->leader_address != NULL ? event->leader_address : "";
	told.reason = event->reason != NULL ? event->reason : "";
	told.traceparent = r->plan.page->traceparent;
	callbacks_put(r->hooks.queue, &told, done, r);
}

/* ---- the gate ---- */

static void gate_ended(void *arg, bool ok)
{
	struct run *r = arg;

	r->hooks.gate_runs = false;
	if (!r->is_leading || r->term != r->hooks.term || r->is_stopping)
		return;
	r->hooks.is_open = ok;
	if (ok) {
		supervise_start(r);
		return;
	}
	log_say(BATON_LOG_WARN,
		"%s: --on-elected has failed; this candidate steps down and stays out for 30 s",
		r->s->name);
	(void)baton_resign(r->e, QUIET_MS);
}

void hooks_elected(struct run *r, const struct baton_event *event)
{
	struct callback_event told = {.kind = CALLBACK_ELECTED,
				      .is_leader = true,
				      .term = event->term,
				      .old_term = event->old_term,
				      .leader = baton_id(r->b),
				      .old_leader = event->old_leader,
				      .leader_address = r->s->address};

	if (r->hooks.callbacks == NULL)
		return;
	if (told.old_term == 0) { /* the last one that we have heard of */
		told.old_term = r->hooks.seen_term;
		told.old_leader = r->hooks.seen;
	}
	r->hooks.term = event->term;
	r->hooks.is_open = r->hooks.is_ended = r->hooks.is_ending = false;
	r->hooks.reason = baton_reason_name(BATON_REASON_STOPPED);
	r->hooks.gate_runs = true;
	put_event(r, &told, gate_ended);
}

bool hooks_may_start(const struct run *r)
{
	return r->hooks.callbacks == NULL || r->hooks.is_open;
}

/* ---- the end of the work ---- */

void hooks_lost(struct run *r, int reason)
{
	if (r->hooks.callbacks == NULL)
		return;
	r->hooks.reason = baton_reason_name(reason);
	callbacks_cancel(r->hooks.queue, CALLBACK_ELECTED);
}

static void lost_ended(void *arg, bool ok)
{
	struct run *r = arg;

	(void)ok; /* whatever its result is, the work has ended */
	r->hooks.is_ended = true;
}

bool hooks_are_over(struct run *r)
{
	const struct callback_event told = {.kind = CALLBACK_LOST,
					    .term = r->hooks.term,
					    .old_term = r->hooks.term,
					    .old_leader = baton_id(r->b),
					    .reason = r->hooks.reason};

	if (r->hooks.callbacks == NULL || r->hooks.term == 0)
		return true;
	if (r->hooks.gate_runs) {
		callbacks_cancel(r->hooks.queue, CALLBACK_ELECTED);
		return false;
	}
	if (!r->hooks.is_ending) {
		r->hooks.is_ending = true;
		put_event(r, &told, lost_ended);
	}
	if (r->hooks.is_ended)
		r->hooks.term = 0;
	return r->hooks.is_ended;
}

void hooks_changed(struct run *r, const struct baton_event *event)
{
	struct baton_status status;

	if (r->hooks.callbacks == NULL)
		return;
	bool is_known =
		baton_get_status(r->e, &status) == 0 && strcmp(status.leader, event->leader) == 0;
	const struct callback_event told = {.kind = CALLBACK_CHANGE,
					    .is_leader = strcmp(event->leader, baton_id(r->b)) == 0,
					    .term = event->term,
					    .old_term = event->old_term,
					    .leader = event->leader,
					    .old_leader = event->old_leader,
					    .leader_address =
						    is_known ? status.leader_address : ""};

	if (event->leader[0] != '\0') {
		(void)strcpy(r->hooks.seen, event->leader);
		r->hooks.seen_term = event->term;
	}
	put_event(r, &told, NULL);
}

/* ---- the loop ---- */

int hooks_fd(const struct run *r)
{
	return r->hooks.callbacks != NULL ? callbacks_fd(r->hooks.callbacks) : -1;
}

void hooks_tick(struct run *r)
{
	if (r->hooks.callbacks == NULL)
		return;
	/* The later instant counts. A claim that we give back of our own will is renewed until
	 * then; and the library tells no instant of a lease that is gone. */
	uint64_t word = deadline_word(r);
	uint64_t told = atomic_load(&r->plan.page->kill_ns);

	callbacks_limit(r->hooks.queue, r->hooks.term == 0 ? 0 : word > told ? word : told);
	callbacks_process(r->hooks.callbacks);
}

void hooks_end(struct run *r)
{
	callbacks_free(r->hooks.callbacks);
	r->hooks.callbacks = NULL;
}
