/*
 * trace.c: for the application's trace function: what happened, what was decided and why, as the
 * cores have it. Runs on the loop's thread, and only if there is such a function.
 */
#include "runtime/messages.h"
#include "runtime/runtime.h"

static const char *const happenings[] = {
	[EV_TIMER] = "timer",           [EV_HINT] = "hint",         [EV_OPENED] = "opened",
	[EV_RENEWED] = "renewed",       [EV_CLOSED] = "closed",     [EV_CLAIMS] = "claims",
	[EV_START] = "start",           [EV_STOP] = "stop",         [EV_ACQUIRE] = "acquire",
	[EV_RESIGN] = "resign",         [EV_TRANSFER] = "transfer", [EV_HEALTH] = "health",
	[EV_ALIVE] = "alive",           [EV_DRAINED] = "drained",   [EV_LEASE_UP] = "lease_up",
	[EV_LEASE_DOWN] = "lease_down", [EV_CLAIM] = "claim",       [EV_CAMPAIGNED] = "campaigned",
	[EV_OBSERVED] = "observed",     [EV_RELEASED] = "released", [EV_ORDERED] = "ordered",
};

static const char *const calls[] = {
	[ACT_OPEN] = "open",         [ACT_RENEW] = "renew",       [ACT_CLOSE] = "close",
	[ACT_CLAIMS] = "claims",     [ACT_LEASE_UP] = "lease_up", [ACT_LEASE_DOWN] = "lease_down",
	[ACT_CAMPAIGN] = "campaign", [ACT_OBSERVE] = "observe",   [ACT_RELEASE] = "release",
	[ACT_ORDER] = "order",
};

static const char *const notes[] = {
	[NOTE_BECAME] = "became",     [NOTE_LOST] = "lost",
	[NOTE_CHANGED] = "changed",   [NOTE_STOPPED] = "stopped",
	[NOTE_ACQUIRED] = "acquired", [NOTE_NOT_ACQUIRED] = "not_acquired",
	[NOTE_ERROR] = "error",
};

void trace_step(const struct baton *b, const struct baton_election *e, const struct event *ev,
		const struct actions *out)
{
	struct baton_trace_record r = {.size = sizeof(r),
				       .boot_ns = (int64_t)ev->now_ns,
				       .election = e != NULL ? e->name : NULL,
				       .happening = happenings[ev->kind],
				       .outcome = ev->outcome};

	for (uint64_t i = 0; i < out->n; i++) {
		const struct action *a = &out->list[i];

		r.decision = a->kind == ACT_NOTE ? notes[a->note] : calls[a->kind];
		r.reason = text_of_why(a->why);
		r.call = a->call;
		r.term = a->term;
		b->trace(b->trace_arg, &r);
	}
}
