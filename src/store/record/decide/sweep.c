/*
 * sweep.c: deletes what is left over (R10). If something is deleted too early, a candidate that
 * waits for it waits a ttl longer (R4: a missing record is watched, too), but safety doesn't
 * suffer. Elections are never swept (R9).
 */
#include <string.h>

#include "store/record/decide/parts.h"

#define HOUR_NS ((uint64_t)3600 * 1000 * 1000 * 1000)

uint64_t record_idle_ns(uint64_t ttl_ns)
{
	return ttl_ns > (RECORD_NEVER - HOUR_NS) / 10 ? RECORD_NEVER : HOUR_NS + 10 * ttl_ns;
}

int record_sweep_lease(const struct record_sight *s, bool is_named, uint64_t idle_ns,
		       uint64_t now_ns)
{
	if (s->version.n == 0)
		return RECORD_LEAVE;
	if (record_sight_is_dead(s))
		return is_named ? RECORD_LEAVE : RECORD_DROP;
	return now_ns - s->since_ns >= idle_ns ? RECORD_END : RECORD_LEAVE;
}

int record_sweep_candidate(const struct record_sight *s)
{
	bool is_missing = s->is_known && s->version.n == 0;

	return is_missing || record_sight_is_dead(s) ? RECORD_DROP : RECORD_LEAVE;
}

void record_tombstone(struct record_lease *out, uint32_t death, uint64_t ttl_ns, const char *owner,
		      uint64_t random)
{
	out->w = random;
	out->ttl_ns = ttl_ns;
	out->beat = 0;
	out->death = death;
	out->address[0] = '\0';
	record_copy_text(out->owner, sizeof(out->owner), owner);
}
