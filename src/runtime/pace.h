/*
 * pace.h: whether renewals are too slow for the timings. A renewal may take as long as one call; if
 * one of a thousand takes half of that, the next bad hour may cost a leadership for no good reason.
 * The lane of renewals looks back once an hour, and says so once.
 *
 * It has no clock and no memory of its own: the caller says what time it is. It must never hold up
 * a renewal.
 */
#ifndef BATON_PACE_H
#define BATON_PACE_H

#include <stdbool.h>
#include <stdint.h>

struct pace {
	uint64_t since_ns; /* when the hour began; 0: not yet */
	uint32_t n;        /* renewals in this hour, ... */
	uint32_t n_slow;   /* ... and how many took more than half of a call's time */
	bool was_slow;     /* the hour before was slow, too: that is not said again */
};

/* A renewal ended. True: the last hour was slow, and the log is to say so; `last` has its
 * numbers. */
bool pace_add(struct pace *p, uint64_t now_ns, uint64_t took_ns, uint64_t call_ns,
	      struct pace *last);

#endif
