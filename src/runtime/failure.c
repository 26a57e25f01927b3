/*
 * failure.c: see failure.h. It has no clock and no memory of its own: the caller says what time it
 * is.
 *
 *     well --add--> failing: told --add, time for it--> reminded --remove of the last--> well: told
 *       ^                                                                                  |
 *       +----- a minute without a failure -------- silent, until it is well for a minute --+ add
 *
 * It must never keep a new cause to itself.
 */
#include "runtime/failure.h"

#include "base/clock.h"
#include "core/core.h"

#define REMIND_NS (60 * CLOCK_NS_PER_S)       /* for the first time; then after twice as long */
#define REMIND_MAX_NS (3600 * CLOCK_NS_PER_S) /* at most */
#define CALM_NS (60 * CLOCK_NS_PER_S)         /* a failure that comes back sooner was never over */

static bool is_over(const struct failure *f, uint64_t now_ns)
{
	/* A failure of the watch has no end of its own: it is over when it was not heard of for
	 * long. */
	if (f->sources == FAILURE_WATCH)
		return now_ns - f->last_ns >= 2 * f->every_ns;
	return f->sources == 0 && now_ns - f->last_ns >= CALM_NS;
}

enum failure_news failure_add(struct failure *f, unsigned source, int code, uint64_t now_ns)
{
	uint32_t bit = UINT32_C(1) << ((unsigned)-code % 32);

	if (f->since_ns == 0 || is_over(f, now_ns))
		*f = (struct failure){
			.since_ns = now_ns, .every_ns = REMIND_NS, .remind_ns = now_ns + REMIND_NS};
	else if (f->ended_ns != 0) {
		f->ended_ns = 0;
		f->flaps = true;
	}
	f->last_ns = now_ns;
	f->sources |= (uint8_t)source;
	const bool is_told =
		((source == FAILURE_WATCH ? f->told | f->told_of_watch : f->told) & bit) != 0;

	*(source == FAILURE_WATCH ? &f->told_of_watch : &f->told) |= bit;
	if (!is_told)
		return FAILURE_BEGINS;
	if (now_ns < f->remind_ns)
		return FAILURE_OLD;
	f->every_ns = min_ns(2 * f->every_ns, REMIND_MAX_NS);
	f->remind_ns = now_ns + f->every_ns;
	return FAILURE_GOES_ON;
}

bool failure_remove(struct failure *f, unsigned sources, uint64_t now_ns)
{
	const unsigned had = f->sources & ~(unsigned)FAILURE_WATCH;

	if (f->since_ns == 0 || f->ended_ns != 0)
		return false;
	f->sources &= (uint8_t)~sources;
	if ((had & ~sources) != 0 || (had == 0 && !f->flaps))
		return false;
	if (f->flaps && now_ns - f->last_ns < CALM_NS)
		return false;
	f->sources = 0;
	f->ended_ns = now_ns;
	return true;
}

uint64_t failure_seconds(const struct failure *f)
{
	uint64_t until_ns = f->ended_ns != 0 ? f->ended_ns : f->last_ns;

	return (until_ns - f->since_ns) / CLOCK_NS_PER_S;
}
