/* pace.c: see pace.h. */
#include "runtime/pace.h"

#include "base/clock.h"

#define HOUR_NS (3600 * CLOCK_NS_PER_S)
#define FEWEST 2 /* one slow call in an hour says nothing */

/* The 99.9th percentile is above half of a call's time. */
static bool is_slow(const struct pace *p)
{
	return p->n_slow >= FEWEST && (uint64_t)p->n_slow * 1000 > p->n;
}

bool pace_add(struct pace *p, uint64_t now_ns, uint64_t took_ns, uint64_t call_ns,
	      struct pace *last)
{
	bool is_news = false;

	if (p->since_ns == 0)
		p->since_ns = now_ns;
	p->n++;
	p->n_slow += took_ns > call_ns / 2;
	if (now_ns - p->since_ns >= HOUR_NS) {
		bool slow = is_slow(p);

		is_news = slow && !p->was_slow;
		*last = *p;
		*p = (struct pace){.since_ns = now_ns, .was_slow = slow};
	}
	return is_news;
}
