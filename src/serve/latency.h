/*
 * latency.h: how long renewals took lately. The library counts them since the beginning, in buckets
 * of powers of two; what was counted within a time is the difference of two such counts, which are
 * noted once a minute. It must never ask for the time, nor for the counts: the caller has both.
 */
#ifndef BATON_SERVE_LATENCY_H
#define BATON_SERVE_LATENCY_H

#include <baton.h>

#define LATENCY_MINUTES 60 /* as far back as it knows: what is called slow */
#define LATENCY_SHOWN 3    /* of them are shown */

struct latency {
	int64_t noted_ns; /* the last time; 0: never */
	unsigned n;       /* notes so far */
	uint32_t past[LATENCY_MINUTES][BATON_HISTOGRAM_BUCKETS];
};

/* Notes the counts, once a minute. */
void latency_note(struct latency *l, const uint64_t *counts, int64_t now_ns);
/* The value below which so many percent of the last minutes lie; 0: nothing was counted. */
uint64_t latency_quantile_us(const struct latency *l, const uint64_t *counts, unsigned percent);
/*
 * The rule by which the library's log calls an hour slow: more than one of a thousand took more
 * than half of a call's time, and at least two did. Within a bucket, values are taken to be spread
 * evenly.
 */
bool latency_is_slow(const struct latency *l, const uint64_t *counts, uint64_t call_ns);

#endif
