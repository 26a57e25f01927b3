/*
 * handover.h: the spans of the handovers that one candidate has a part in: baton.handover when it
 * takes over, baton.step_down when it gives the leadership back. They hang together by the ids of
 * trace.h. A handover that never came to work ends as an error.
 *
 * One thread at a time. Nothing is allocated unless the exporter wants spans; the ids are there
 * without it, for the commands and programs that are told which span they belong to.
 */
#ifndef BATON_HANDOVER_H
#define BATON_HANDOVER_H

#include <baton.h>

#include "telemetry/exporter.h"

/* The first three are set by the owner; all else begins as zero. */
struct handover {
	const struct exporter *exporter;
	const char *url; /* the store's */
	const char *election;
	uint64_t seen_term;  /* of the last leader that we have heard of */
	int64_t notice_ns;   /* wall time: no leader since then; 0: a leader is known */
	struct trace_id id;  /* of the handover that made us leader */
	struct span *taking; /* under way; NULL: none is, or spans are not wanted */
	struct span *leaving;
	uint64_t leaving_term; /* 0: no step-down is under way */
	struct trace_id leaving_id;
	uint8_t step_down[8]; /* its span */
};

/* After these reasons the claim stands, and is renewed, until the work has ended. */
bool handover_is_voluntary(int reason);
/* Whether spans are sent anywhere. */
bool handover_is_exported(const struct handover *h);
/* Election, store and term, as attributes. */
void handover_describe(const struct handover *h, struct span *s, uint64_t term);
/* Ends a span now, and sends it. */
void handover_send(const struct handover *h, struct span *s);

/* The event CHANGED; id is our own. */
void handover_changed(struct handover *h, const struct baton_event *event, const char *id);
void handover_became(struct handover *h, const struct baton_event *event);
/* The work has begun, or may begin. */
void handover_started(struct handover *h);
/* This leadership ends; true: this is the first call for it. The reason may come later: "". */
bool handover_leaving(struct handover *h, uint64_t term, const char *reason);
void handover_drained(struct handover *h);
void handover_released(struct handover *h);
/* Frees what is under way. */
void handover_done(struct handover *h);

#endif
