/*
 * hooks.c: the callbacks of `baton serve`: on-elected before any client is told that this candidate
 * leads, on-lost after the work has ended and before the claim is given back, on-change whenever
 * the leader changes. They are those of `baton run`. Where `baton run` has a command, `baton serve`
 * has connections, and deadlines that were told.
 *
 * It must never let work begin before its gate has opened, nor wait for a command.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "serve/server.h"
#include "telemetry/callbacks.h"

#define QUIET_MS 30000 /* after a gate that stayed closed: others first */
#define MARGIN_MAX_NS ((int64_t)CLOCK_NS_PER_S / 2)

/* What the callbacks of one election have come to. */
struct hooks {
	struct callback_queue *queue;
	uint64_t term;      /* the term whose on-lost is still to run; 0: none */
	const char *reason; /* of its end, as far as it is known */
	int64_t end_ns;     /* until then its commands may run */
	uint64_t seen_term; /* of the last leader that we have heard of */
	char seen[BATON_NAME_MAX + 1];
	bool gate_runs;
	bool is_ending; /* on-lost was begun */
	bool is_ended;
};

bool hooks_start(struct server *s)
{
	const struct serve_config *c = s->config;
	struct baton_error err = {0};

	if (c->on_elected == NULL && c->on_lost == NULL && c->on_change == NULL &&
	    c->notify_fifo == NULL)
		return true;
	s->environment = callbacks_environment(0);
	const struct callbacks_plan plan = {.commands = {[CALLBACK_ELECTED] = c->on_elected,
							 [CALLBACK_LOST] = c->on_lost,
							 [CALLBACK_CHANGE] = c->on_change},
					    .fifo = c->notify_fifo,
					    .timeout_ns = (uint64_t)c->callback_timeout_ms *
							  CLOCK_NS_PER_MS,
					    .environment = s->environment,
					    .say = c->say_text_of};

	s->callbacks = s->environment != NULL ? callbacks_new(&plan, &err) : NULL;
	if (s->callbacks == NULL)
		c->say(BATON_LOG_ERROR, "%s", err.text[0] != '\0' ? err.text : "no memory");
	return s->callbacks != NULL;
}

void hooks_end(struct server *s)
{
	callbacks_free(s->callbacks);
	s->callbacks = NULL;
	free(s->environment);
	s->environment = NULL;
}

bool hooks_add(struct member *m)
{
	struct server *s = m->server;

	if (s->callbacks == NULL)
		return true;
	m->hooks = calloc(1, sizeof(*m->hooks));
	if (m->hooks == NULL)
		return false;
	m->hooks->queue = callbacks_queue(s->callbacks, m->name, s->view.id);
	return m->hooks->queue != NULL;
}

void hooks_remove(struct member *m)
{
	free(m->hooks);
	m->hooks = NULL;
}

static void put_event(struct member *m, const struct callback_event *event,
		      void (*done)(void *arg, bool ok))
{
	struct callback_event told = *event;
	char trace[TRACE_PARENT_SIZE] = "";

	told.leader = event->leader != NULL ? event->leader : "";
	told.old_leader = event->old_leader != NULL ? event->old_leader : "";
	told.leader_address = event->leader_address != NULL ? event->leader_address : "";
	told.reason = event->reason != NULL ? event->reason : "";
	telemetry_parent(m, event->kind == CALLBACK_LOST, trace);
	told.traceparent = trace;
	callbacks_put(m->hooks->queue, &told, done, m);
}

/* The work of the leadership may go on until its end, less a margin for the killing. The latest end
 * that was told counts: a lease that is gone tells none. */
static void move_limit(struct member *m)
{
	int64_t margin_ns = (int64_t)m->server->view.timings.drain_ns / 4;
	int64_t end_ns = 0;

	(void)baton_get_deadline(m->election, NULL, &end_ns);
	end_ns -= margin_ns < MARGIN_MAX_NS ? margin_ns : MARGIN_MAX_NS;
	if (end_ns > m->hooks->end_ns)
		m->hooks->end_ns = end_ns;
	callbacks_limit(m->hooks->queue, (uint64_t)m->hooks->end_ns);
}

/* ---- the gate ---- */

static void gate_ended(void *arg, bool ok)
{
	struct member *m = arg;

	m->hooks->gate_runs = false;
	if (m->hold == NULL || m->is_lost || m->hold_term != m->hooks->term)
		return;
	if (ok) {
		member_open(m);
		return;
	}
	m->server->config->say_of(BATON_LOG_WARN, m->name, m->hold_term,
				  "%s: --on-elected has failed; this candidate steps down and "
				  "stays out for 30 s",
				  m->name);
	(void)baton_resign(m->election, QUIET_MS);
}

void hooks_elected(struct member *m, const struct baton_event *event)
{
	struct hooks *h = m->hooks;
	struct callback_event told = {.kind = CALLBACK_ELECTED,
				      .is_leader = true,
				      .term = event->term,
				      .old_term = event->old_term,
				      .leader = m->server->view.id,
				      .old_leader = event->old_leader,
				      .leader_address = m->server->config->address};

	if (h == NULL) {
		member_open(m);
		return;
	}
	if (told.old_term == 0) { /* the last one that we have heard of */
		told.old_term = h->seen_term;
		told.old_leader = h->seen;
	}
	h->term = event->term;
	h->end_ns = 0;
	h->is_ended = h->is_ending = false;
	h->reason = baton_reason_name(BATON_REASON_STOPPED);
	h->gate_runs = true;
	move_limit(m);
	put_event(m, &told, gate_ended);
}

/* ---- the end of the work ---- */

void hooks_renewed(struct member *m)
{
	if (m->hooks != NULL && m->hooks->term != 0)
		move_limit(m);
}

void hooks_lost(struct member *m, int reason)
{
	if (m->hooks == NULL || m->hooks->term == 0)
		return;
	m->hooks->reason = baton_reason_name(reason);
	callbacks_cancel(m->hooks->queue, CALLBACK_ELECTED);
}

static void lost_ended(void *arg, bool ok)
{
	struct member *m = arg;

	(void)ok; /* whatever its result is, the work has ended */
	m->hooks->is_ended = true;
}

bool hooks_are_over(struct member *m)
{
	struct hooks *h = m->hooks;

	if (h == NULL || h->term == 0)
		return true;
	move_limit(m);
	if (h->gate_runs)
		return false; /* on-elected is being killed */
	if (!h->is_ending) {
		const struct callback_event told = {.kind = CALLBACK_LOST,
						    .term = h->term,
						    .old_term = h->term,
						    .old_leader = m->server->view.id,
						    .reason = h->reason};

		h->is_ending = true;
		put_event(m, &told, lost_ended);
	}
	if (!h->is_ended)
		return false;
	h->term = 0;
	callbacks_limit(h->queue, 0);
	return true;
}

void hooks_changed(struct member *m, const struct baton_event *event)
{
	struct hooks *h = m->hooks;

	if (h == NULL)
		return;
	member_refresh(m);
	const struct callback_event told = {
		.kind = CALLBACK_CHANGE,
		.is_leader = strcmp(event->leader, m->server->view.id) == 0,
		.term = event->term,
		.old_term = event->old_term,
		.leader = event->leader,
		.old_leader = event->old_leader,
		.leader_address = strcmp(m->v.leader, event->leader) == 0 ? m->v.address : ""};

	if (event->leader[0] != '\0') {
		(void)strcpy(h->seen, event->leader);
		h->seen_term = event->term;
	}
	put_event(m, &told, NULL);
}
