/*
 * audience.h: the third machine: what the application is told of one election, and when the work
 * of a leadership counts as ended.
 *
 *                became                 lost             dealt with, and no context is open:
 *   WORK_NONE -----------> WORK_RUNS ---------> WORK_DRAINS --+  `drained`
 *       ^                                                     |
 *       +-----------------------------------------------------+
 *
 * News wait in one slot per kind and are told one at a time:
 *
 *              news                taken (token)              done (token)
 *      nothing ----> `deliver` ----------------> being told ----------------> next news, or nothing
 *
 * The work of a lost leadership is dealt with
 *   handler           when the handler of its LOST returns
 *   no handler        when its LOST was taken and is done; at the loss, if contexts are open or
 *                     a thread runs functions by it; after the drain time, if no event is taken
 *   drain_by_hand     never by an event: when its last context is left, or by the word "drained"
 *   any of them       by the word "drained" with its term; without a handler or by hand, by stop
 * It has ended when it is dealt with and no context is open.
 *
 * What it must never do: tell LOST before the BECAME that it belongs to, or one of them twice, or
 * one without the other (S8); tell anything of a freed election; say "drained" while a context
 * is open, while the application has yet to hear a LOST that it should hear, or for another
 * leadership than the one that was lost last (S7); forget to say "drained" (or the claim is kept
 * for ever).
 *
 * It is as pure as its two siblings (core.h). Its caller holds one lock while it steps.
 */
#ifndef BATON_AUDIENCE_H
#define BATON_AUDIENCE_H

#include "core/core.h"

/* Kinds of news. They are bits, because a set of them may wait. */
enum news {
	NEWS_BECAME = 1,
	NEWS_LOST = 2,
	NEWS_CHANGED = 4,
	NEWS_ERROR = 8,
	NEWS_WAITS = 16,
	NEWS_RENEWED = 32,
	NEWS_STOPPED = 64,
};

enum audience_event_kind {
	/* from the core */
	AUDIENCE_NOTE = 1, /* note, term, why; wanted: the core's, has_puller: the handle's */
	AUDIENCE_NEWS,     /* news: CHANGED, ERROR, WAITS or RENEWED */
	AUDIENCE_TIMER,
	AUDIENCE_START_HEARD,
	AUDIENCE_STOP_HEARD, /* stopping: NOTE_STOPPED will come */
	AUDIENCE_LET_GO,     /* the core has stopped it for good */
	/* from the application */
	AUDIENCE_TAKE,    /* token: the next piece of news; a handler begins, or it is pulled */
	AUDIENCE_DONE,    /* token: the handler returned, or that event was dealt with */
	AUDIENCE_ENTER,   /* term that the clock says it leads in; 0: none */
	AUDIENCE_LEAVE,   /* one context */
	AUDIENCE_RUN,     /* a thread runs functions whenever elected */
	AUDIENCE_RUN_END, /* it no longer does */
	AUDIENCE_DRAINED, /* term; over: by the clock this candidate no longer leads */
	AUDIENCE_START,
	AUDIENCE_STOP,
	AUDIENCE_FREE, /* the application lets go of it: it is about to be stopped for good */
	AUDIENCE_MUTE, /* no further news of it is told */
};

/* All fields that an event doesn't need are zero. */
struct audience_event {
	uint64_t now_ns;
	uint64_t drain_ns; /* NOTE_LOST: the work's time if the application isn't told of it */
	uint64_t term;
	uint64_t token;
	uint8_t kind;
	uint8_t note;
	uint8_t why;
	uint8_t news;
	bool wanted;
	bool stopping;
	bool has_puller;
	bool over;
};

/* What the caller is to do, and the answer to what was asked. */
struct audience_result {
	uint64_t wake_ns; /* AUDIENCE_TIMER is due then; or NEVER */
	uint64_t term;    /* of the news that was taken */
	uint8_t news;     /* that was taken; 0: none waits */
	uint8_t why;      /* of the news that was taken */
	bool deliver;     /* news wait, and none is being told */
	bool drained;     /* EV_DRAINED for the core */
	bool refused;     /* not now: no leadership to enter, no such token, term not draining */
	uint8_t pad[3];
};

enum work_state {
	WORK_NONE,
	WORK_RUNS,
	WORK_DRAINS, /* the leadership is lost; its work has yet to end */
};

struct audience {
	uint64_t led;     /* the term of the last leadership that the core told of */
	uint64_t entered; /* the term of the last context */
	uint64_t became_term;
	uint64_t lost_term;
	uint64_t lost_for;  /* the term whose work is dealt with once the waiting LOST is */
	uint64_t taken_for; /* the same for the LOST that is being told; else 0 */
	uint64_t token;     /* of what is being told; 0: nothing */
	uint64_t drain_ns;  /* no event is taken: when the work counts as done; or NEVER */
	uint32_t n_contexts;
	uint32_t n_runners;
	uint16_t n_starts;  /* starts that the core has not heard of yet */
	uint16_t n_stops;   /* stops that have come to their end */
	uint16_t stops_due; /* what n_stops will be when the last stop asked for has ended */
	uint8_t pending;    /* NEWS_... that wait */
	uint8_t lost_why;
	uint8_t work; /* of the leadership `led` */
	bool has_handler;
	bool by_hand;
	bool tells_renewals;
	bool stopped;
	bool self_stop; /* the application itself asked for the stop */
	bool over;      /* WORK_RUNS: the work has ended; the core has yet to say "lost" */
	bool dealt;     /* WORK_DRAINS: the application has dealt with the loss */
	bool freed;
	bool muted;
	bool let_go;
	uint8_t pad[5];
};

void audience_init(struct audience *a, bool has_handler, bool by_hand, bool tells_renewals);
struct audience_result audience_step(struct audience *a, const struct audience_event *ev);

/* Whether the stop that was due at that count is over. */
bool audience_has_stopped(const struct audience *a, uint16_t due);
/* Whether a handler runs or is yet to be called. */
bool audience_is_busy(const struct audience *a);

#endif
