/*
 * failure.h: what to log of a failure that lasts. An election retries by itself, so one broken
 * thing fails many times: it is one line when it begins, one line for each new cause, one now and
 * then as a reminder, and one when it is over.
 *
 * A failure has sources: what was tried and did not work. It is over when each of them works again,
 * or is not needed any more. The loop alone uses it.
 */
#ifndef BATON_FAILURE_H
#define BATON_FAILURE_H

#include <stdbool.h>
#include <stdint.h>

enum failure_source {
	FAILURE_LEASE = 1 << 0,    /* opening or renewing it */
	FAILURE_CAMPAIGN = 1 << 1, /* and giving back */
	FAILURE_OBSERVE = 1 << 2,
	FAILURE_TWIN = 1 << 3,  /* another candidate has our id */
	FAILURE_WATCH = 1 << 4, /* a driver may say it once and then live with it: has no end */
};

struct failure {
	uint64_t since_ns;
	uint64_t last_ns;       /* it failed */
	uint64_t ended_ns;      /* the end was told; 0: not yet */
	uint64_t remind_ns;     /* when to say it again */
	uint64_t every_ns;      /* and after how long once more */
	uint32_t told;          /* codes, as bits */
	uint32_t told_of_watch; /* a watch that is broken is less than a call that fails */
	uint8_t sources;        /* that don't work */
	bool flaps;             /* it came back soon after its end */
};

enum failure_news {
	FAILURE_OLD,     /* nothing that wasn't said */
	FAILURE_BEGINS,  /* or has another cause */
	FAILURE_GOES_ON, /* a reminder */
};

/* Something failed with this code of the library. */
enum failure_news failure_add(struct failure *f, unsigned source, int code, uint64_t now_ns);
/* These work. True: with that it is over, and that is to be said. */
bool failure_remove(struct failure *f, unsigned sources, uint64_t now_ns);
/* How long it has lasted, in seconds. */
uint64_t failure_seconds(const struct failure *f);

#endif
