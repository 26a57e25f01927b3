/* handover.c: see handover.h. */
#include "telemetry/handover.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool handover_is_voluntary(int reason)
{
	return reason == BATON_REASON_STOPPED || reason == BATON_REASON_RESIGNED ||
	       reason == BATON_REASON_ORDERED || reason == BATON_REASON_TRANSFERRED ||
	       reason == BATON_REASON_UNHEALTHY || reason == BATON_REASON_PAUSED;
}

bool handover_is_exported(const struct handover *h)
{
	const struct exporter *e = h->exporter;

	return e != NULL && e->ops != NULL && e->ops->wants_spans(e->x);
}

void handover_describe(const struct handover *h, struct span *s, uint64_t term)
{
	char store[32];

	(void)snprintf(store, sizeof(store), "%.*s", (int)strcspn(h->url, ":"), h->url);
	span_text(s, "baton.election", h->election);
	span_text(s, "baton.store", store);
	span_number(s, "baton.term", (int64_t)term);
}

void handover_send(const struct handover *h, struct span *s)
{
	s->end_ns = trace_now();
	if (handover_is_exported(h))
		h->exporter->ops->span(h->exporter->x, s);
}

/* Ends the span with one word that says how, and frees it. */
static void end_span(struct handover *h, struct span **at, const char *result, bool is_error)
{
	if (*at == NULL)
		return;
	(*at)->is_error = is_error;
	span_text(*at, "baton.result", result);
	handover_send(h, *at);
	free(*at);
	*at = NULL;
}

void handover_changed(struct handover *h, const struct baton_event *event, const char *id)
{
	if (event->leader[0] == '\0') {
		h->notice_ns = h->notice_ns != 0 ? h->notice_ns : trace_now();
		h->seen_term = event->old_term != 0 ? event->old_term : h->seen_term;
	} else if (strcmp(event->leader, id) != 0) {
		h->notice_ns = 0;
		h->seen_term = event->term;
	}
}

static void begin_taking(struct handover *h, uint64_t term)
{
	struct span *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return;
	span_begin(s, "baton.handover", h->id.trace);
	(void)memcpy(s->id, h->id.root, sizeof(h->id.root));
	if (h->notice_ns != 0) {
		s->start_ns = h->notice_ns;
		span_event(s, "notice");
		s->events[0].wall_ns = h->notice_ns;
	}
	span_event(s, "campaign");
	handover_describe(h, s, term);
	free(h->taking);
	h->taking = s;
}

void handover_became(struct handover *h, const struct baton_event *event)
{
	uint64_t old_term = event->old_term != 0 ? event->old_term : h->seen_term;

	h->id = trace_of(h->url, h->election, old_term);
	if (handover_is_exported(h))
		begin_taking(h, event->term);
	h->notice_ns = 0;
	h->seen_term = event->term;
}

void handover_started(struct handover *h)
{
	if (h->taking != NULL)
		span_event(h->taking, "start");
	end_span(h, &h->taking, "started", false);
}

bool handover_leaving(struct handover *h, uint64_t term, const char *reason)
{
	bool is_first = h->leaving_term != term;

	end_span(h, &h->taking, "not started", true);
	if (is_first) {
		h->leaving_id = trace_of(h->url, h->election, term);
		h->leaving_term = term;
		trace_random(h->step_down);
		free(h->leaving);
		h->leaving = handover_is_exported(h) ? calloc(1, sizeof(*h->leaving)) : NULL;
	}
	if (is_first && h->leaving != NULL) {
		span_begin(h->leaving, "baton.step_down", h->leaving_id.trace);
		(void)memcpy(h->leaving->id, h->step_down, sizeof(h->step_down));
		(void)memcpy(h->leaving->parent, h->leaving_id.root, sizeof(h->leaving_id.root));
		h->leaving->has_parent = true;
		handover_describe(h, h->leaving, term);
	}
	if (h->leaving != NULL && reason[0] != '\0')
		span_text(h->leaving, "baton.reason", reason);
	return is_first;
}

void handover_drained(struct handover *h)
{
	if (h->leaving != NULL)
		span_event(h->leaving, "drain");
}

void handover_released(struct handover *h)
{
	if (h->leaving != NULL)
		span_event(h->leaving, "release");
	end_span(h, &h->leaving, "released", false);
	h->leaving_term = 0;
}

void handover_done(struct handover *h)
{
	free(h->taking);
	free(h->leaving);
	h->taking = h->leaving = NULL;
}
