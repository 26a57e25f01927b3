/*
 * failure.h: what to log of a failure that lasts. An election retries by itself, so one broken
 * thing fails many times: the log has one line when that begins, one for each new cause, one now
 * and then as a reminder, and one when it is over.
 *
 * A failure has sources: what was tried and did not work. The failure is over when each source
 * works again, or is no longer needed. The loop alone uses it.
 */
#ifndef BATON_FAILURE_H
#define BATON_FAILURE_H

#include <stdbool.h>
#include <stdint.h>

enum failure_source {
	FAILURE_LEASE = 1 << 0,    /* opening or renewing the lease */
	FAILURE_CAMPAIGN = 1 << 1, /* campaigning, and giving back */
	FAILURE_OBSERVE = 1 << 2,
	FAILURE_TWIN = 1 << 3,  /* another candidate has our id */
	FAILURE_WATCH = 1 << 4, /* a driver may say it once and then live with it: no end */
};

struct failure {
	uint64_t since_ns;
	uint64_t last_ns;       /* when it failed last */
	uint64_t ended_ns;      /* the end was told; 0: not yet */
	uint64_t remind_ns;     /* when to say it again */
	uint64_t every_ns;      /* and after how long once more */
	uint32_t told;          /* codes, as bits */
	uint32_t told_of_watch; /* kept apart: a broken watch is less than a call that fails */
	uint8_t sources;        /* that don't work */
	bool flaps;             /* it came back soon after its end */
};

enum failure_news {
	FAILURE_OLD,     /* said already */
	FAILURE_BEGINS,  /* it is new, or has another cause */
	FAILURE_GOES_ON, /* a reminder */
};

/* Something failed with this code of the library. */
enum failure_news failure_add(struct failure *f, unsigned source, int code, uint64_t now_ns);
/* These sources work. True: the failure is over with that, and the log is to say so. */
bool failure_remove(struct failure *f, unsigned sources, uint64_t now_ns);
/* How long it has lasted, in seconds. */
uint64_t failure_seconds(const struct failure *f);

#endif
