/*
 * advice.h: from what was measured to timings: plain arithmetic, without a clock or a store.
 *
 *     call  >= max(4 * p99.9, 2 * worst)           what one call to the store may take
 *     grace >= max(3 * call, 1.5 * longest outage) three tries fit in
 *     drain >= stop time + 2 * longest pause       for the work to end in
 *     renew  = lease / 3, and so: lease = (grace + drain) / (2/3 - drift)
 */
#ifndef BATON_ADVICE_H
#define BATON_ADVICE_H

#include <stddef.h>
#include <stdint.h>

#define ADVICE_ROWS 4

/* What was measured. Times in milliseconds. */
struct measured {
	double *samples; /* of renewals, sorted */
	size_t n;
	double outage_ms;        /* the longest run of failures */
	double pause_ms;         /* the longest local pause */
	double pressure_percent; /* as machine.h tells them */
	double steal_percent;
	double stop_ms;  /* what the work needs to stop */
	double floor_ms; /* no lease below this on this store */
	double drift;    /* 0.1 */
};

/* One row of the table. */
struct advice {
	const char *name;
	double lease_ms;
	double renew_ms;
	double grace_ms;
	double drain_ms;
	double call_ms;
	double typical_ms; /* until a frozen leader is replaced */
	double most_ms;
	double false_a_year;  /* failovers for no good reason, as the samples have it */
	double false_at_most; /* with 95 % confidence */
	double requests_a_minute;
	int is_enough; /* whether the work can stop in its drain time */
};

/* The value that this part of the samples doesn't exceed. */
double advice_quantile(const struct measured *m, double part);
/* The recommended timings first, then those of the profiles. */
void advice_compute(const struct measured *m, struct advice rows[ADVICE_ROWS]);

#endif
