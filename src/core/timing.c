/*
 * timing.c: see timing.h. Pure arithmetic; nothing here can overflow once timing_check()
 * has accepted the numbers, and timing_check() itself takes any.
 */
#include "core/timing.h"

/* This many candidates that look at once don't count as a herd. */
#define FEW 8
#define STAGGER_NS ((uint64_t)500000)

#define PPM ((uint64_t)1000000)
#define LEASE_MIN_NS (10 * NS_PER_MS)
#define DAY_NS (86400 * NS_PER_S)
#define DRIFT_DEFAULT_PPM ((uint64_t)100000)
#define DRIFT_MAX_PPM ((uint64_t)500000)
#define PRIORITY_MAX 1000000

static uint64_t drift_ns(const struct timing *t)
{
	return t->lease_ns / PPM * t->drift_ppm + t->lease_ns % PPM * t->drift_ppm / PPM;
}

void timing_fill(struct timing *t)
{
	if (t->lease_ns == 0)
		t->lease_ns = 15 * NS_PER_S;
	if (t->renew_ns == 0)
		t->renew_ns = t->lease_ns / 3;
	if (t->grace_ns == 0)
		t->grace_ns = t->lease_ns / 3;
	if (t->retry_ns == 0)
		t->retry_ns = min_ns(2 * NS_PER_S, t->lease_ns / 6);
	if (t->retry_max_ns == 0)
		t->retry_max_ns = t->retry_ns > NEVER / 5 ? NEVER : 5 * t->retry_ns;
	if (t->drift_ppm == NEVER)
		t->drift_ppm = DRIFT_DEFAULT_PPM;
}

enum timing_fault timing_check(const struct timing *t, uint64_t store_min_lease_ns)
{
	if (t->lease_ns < LEASE_MIN_NS || t->lease_ns > DAY_NS)
		return TIMING_LEASE_RANGE;
	if (t->lease_ns < store_min_lease_ns)
		return TIMING_LEASE_STORE;
	if (t->drift_ppm > DRIFT_MAX_PPM)
		return TIMING_DRIFT_RANGE;
	if (t->renew_ns < NS_PER_MS)
		return TIMING_RENEW_RANGE;
	if (t->renew_ns > t->lease_ns / 2)
		return TIMING_RENEW_HALF;
	if (t->grace_ns < 3 * NS_PER_MS || t->grace_ns >= t->lease_ns)
		return TIMING_GRACE_RANGE;
	if (t->renew_ns + t->grace_ns > timing_end_ns(t))
		return TIMING_NO_DRAIN;
	if (timing_drain_ns(t) < t->lease_ns / 20)
		return TIMING_SHORT_DRAIN;
	if (t->retry_ns < NS_PER_MS || t->retry_ns > t->lease_ns)
		return TIMING_RETRY_RANGE;
	if (t->retry_max_ns < t->retry_ns || t->retry_max_ns > DAY_NS)
		return TIMING_RETRY_MAX;
	return t->renew_ns > t->lease_ns / 3 ? TIMING_WARN_RENEW : TIMING_OK;
}

void options_init(struct options *o)
{
	*o = (struct options){
		.min_score = 800,
		.check_health = true,
		.step_down_unhealthy = true,
		.release_on_stop = true,
	};
}

enum timing_fault options_check(const struct options *o, const struct timing *t)
{
	if (o->work_timeout_ns != 0 &&
	    (o->work_timeout_ns < NS_PER_MS || o->work_timeout_ns > DAY_NS))
		return TIMING_WORK_TIMEOUT;
	if (o->preempt_ns != 0 && (o->preempt_ns < t->lease_ns || o->preempt_ns > DAY_NS))
		return TIMING_PREEMPT;
	if (o->min_score > SCORE_MAX)
		return TIMING_SCORE_RANGE;
	if (o->priority < -PRIORITY_MAX || o->priority > PRIORITY_MAX)
		return TIMING_PRIORITY_RANGE;
	if (o->observe_only && o->manual)
		return TIMING_OBSERVE_MANUAL;
	return TIMING_OK;
}

uint64_t timing_end_ns(const struct timing *t)
{
	return t->lease_ns - drift_ns(t);
}

uint64_t timing_gone_ns(const struct timing *t)
{
	return t->lease_ns + drift_ns(t);
}

uint64_t timing_drain_ns(const struct timing *t)
{
	return timing_end_ns(t) - t->renew_ns - t->grace_ns;
}

uint64_t timing_call_ns(const struct timing *t)
{
	return t->grace_ns / 3;
}

uint64_t timing_hold_ns(const struct timing *t)
{
	return min_ns(2 * NS_PER_S, t->renew_ns);
}

/* A random part of d: 0 <= jitter < d. */
static uint64_t jitter_ns(uint64_t d, uint64_t random)
{
	uint64_t r = random & 0xffff;

	return (d >> 16) * r + (((d & 0xffff) * r) >> 16);
}

uint64_t timing_backoff_ns(const struct timing *t, unsigned attempt, uint64_t random)
{
	uint64_t d = t->retry_ns;

	while (attempt-- > 0 && d < t->retry_max_ns)
		d *= 2;
	return jitter_ns(min_ns(d, t->retry_max_ns), random);
}

uint64_t timing_poll_ns(const struct timing *t, uint64_t random)
{
	uint64_t half = t->retry_max_ns / 2;

	return half + jitter_ns(half, random);
}

uint64_t timing_stagger_ns(const struct timing *t, unsigned crowd, uint64_t random)
{
	if (crowd <= FEW)
		return 0;
	uint64_t all_ns = min_ns(crowd * STAGGER_NS, t->retry_ns / 32);
	uint64_t few_ns = all_ns / crowd * FEW;
	uint64_t turn_ns = jitter_ns(all_ns, random);

	return turn_ns > few_ns ? turn_ns - few_ns : 0;
}
