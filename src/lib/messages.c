/*
 * messages.c: see messages.h. A table for each kind of sentence; and names.
 *
 * Names are taken as they are or refused, before any store sees them: never cut, folded or
 * escaped, because two names that a store can't tell apart make two leaders of one (rule 5).
 */
#include "lib/messages.h"

#include <stdint.h>
#include <string.h>

#include "baton.h"

static size_t rune_at(const char *s, uint32_t *rune);

/* ---- errors ---- */

const char *baton_strerror(int code)
{
	static const char *const texts[] = {
		[-BATON_OK] = "success",
		[-BATON_E_INVALID] = "an argument is not valid",
		[-BATON_E_TIMING] = "the timings contradict each other",
		[-BATON_E_URL] = "the store's URL can't be understood",
		[-BATON_E_NO_DRIVER] = "there is no driver for this kind of store",
		[-BATON_E_MEMORY] = "out of memory",
		[-BATON_E_SYSTEM] = "the system refused something",
		[-BATON_E_NOT_STARTED] = "the election is not started, or only observes",
		[-BATON_E_NOT_LEADER] = "this candidate does not lead",
		[-BATON_E_TIMEOUT] = "the time is over",
		[-BATON_E_EXISTS] = "the handle already has an election of this name",
		[-BATON_E_UNAVAILABLE] = "the store does not answer",
		[-BATON_E_DENIED] = "the store denies access",
		[-BATON_E_CORRUPT] = "the stored data is damaged, or not baton's",
		[-BATON_E_UNSUPPORTED] = "this store can't do that",
		[-BATON_E_NO_CANDIDATE] = "there is no such candidate, or it is not healthy",
		[-BATON_E_STALE] = "the term is older than a term seen before",
		[-BATON_E_FORKED] = "the handle belongs to the parent process",
		[-BATON_E_BUSY] = "this is already under way",
		[-BATON_E_DUPLICATE_ID] = "another living candidate has the same id",
	};
	const int n = (int)(sizeof(texts) / sizeof(texts[0]));

	return code <= 0 && code > -n ? texts[-code] : "unknown error";
}

/* ---- names ---- */

#define NAME_OF(names, i)                                                                   \
	((i) >= 0 && (size_t)(i) < sizeof(names) / sizeof((names)[0]) && (names)[i] != NULL \
		 ? (names)[i]                                                               \
		 : "unknown")

const char *baton_code_name(int code)
{
	static const char *const names[] = {
		[-BATON_OK] = "ok",
		[-BATON_E_INVALID] = "invalid",
		[-BATON_E_TIMING] = "timing",
		[-BATON_E_URL] = "url",
		[-BATON_E_NO_DRIVER] = "no_driver",
		[-BATON_E_MEMORY] = "memory",
		[-BATON_E_SYSTEM] = "system",
		[-BATON_E_NOT_STARTED] = "not_started",
		[-BATON_E_NOT_LEADER] = "not_leader",
		[-BATON_E_TIMEOUT] = "timeout",
		[-BATON_E_EXISTS] = "exists",
		[-BATON_E_UNAVAILABLE] = "unavailable",
		[-BATON_E_DENIED] = "denied",
		[-BATON_E_CORRUPT] = "corrupt",
		[-BATON_E_UNSUPPORTED] = "unsupported",
		[-BATON_E_NO_CANDIDATE] = "no_candidate",
		[-BATON_E_STALE] = "stale",
		[-BATON_E_FORKED] = "forked",
		[-BATON_E_BUSY] = "busy",
		[-BATON_E_DUPLICATE_ID] = "duplicate_id",
	};

	return code > INT32_MIN ? NAME_OF(names, -code) : "unknown";
}

const char *baton_event_name(int kind)
{
	static const char *const names[] = {
		[BATON_EVENT_BECAME] = "became",   [BATON_EVENT_LOST] = "lost",
		[BATON_EVENT_CHANGED] = "changed", [BATON_EVENT_ERROR] = "error",
		[BATON_EVENT_STOPPED] = "stopped", [BATON_EVENT_WAITS] = "waits",
		[BATON_EVENT_RENEWED] = "renewed",
	};

	return NAME_OF(names, kind);
}

const char *baton_reason_name(int reason)
{
	static const char *const names[] = {
		[BATON_REASON_NONE] = "none",           [BATON_REASON_EXPIRED] = "expired",
		[BATON_REASON_REFUSED] = "refused",     [BATON_REASON_SUPERSEDED] = "superseded",
		[BATON_REASON_GONE] = "gone",           [BATON_REASON_STALLED] = "stalled",
		[BATON_REASON_STOPPED] = "stopped",     [BATON_REASON_RESIGNED] = "resigned",
		[BATON_REASON_ORDERED] = "ordered",     [BATON_REASON_TRANSFERRED] = "transferred",
		[BATON_REASON_UNHEALTHY] = "unhealthy", [BATON_REASON_PAUSED] = "paused",
	};

	return NAME_OF(names, reason);
}

const char *baton_state_name(int state)
{
	static const char *const names[] = {
		[BATON_STATE_STOPPED] = "stopped",         [BATON_STATE_STANDBY] = "standby",
		[BATON_STATE_CAMPAIGNING] = "campaigning", [BATON_STATE_LEADING] = "leading",
		[BATON_STATE_RESIGNING] = "resigning",
	};

	return NAME_OF(names, state);
}

const char *baton_condition_name(int condition)
{
	static const char *const names[] = {
		[BATON_CONDITION_HEALTHY] = "healthy",
		[BATON_CONDITION_DEGRADED] = "degraded",
		[BATON_CONDITION_UNHEALTHY] = "unhealthy",
	};

	return NAME_OF(names, condition);
}

const char *baton_obstacle_name(int obstacle)
{
	static const char *const names[] = {
		[BATON_OBSTACLE_NONE] = "none",         [BATON_OBSTACLE_HELD] = "held",
		[BATON_OBSTACLE_PAUSED] = "paused",     [BATON_OBSTACLE_UNHEALTHY] = "unhealthy",
		[BATON_OBSTACLE_DRAINING] = "draining", [BATON_OBSTACLE_STOPPED] = "stopped",
		[BATON_OBSTACLE_STORE] = "store",       [BATON_OBSTACLE_TERMS] = "terms",
	};

	return NAME_OF(names, obstacle);
}

const char *text_timing(enum timing_fault fault)
{
	static const char *const texts[] = {
		[TIMING_OK] = "the timings are fine",
		[TIMING_WARN_RENEW] =
			"renew is more than a third of the lease, so that fewer lost renewals are "
			"survived; a third or less is better",
		[TIMING_LEASE_RANGE] = "the lease is too short or too long; it must be from 10 ms "
				       "to 24 hours",
		[TIMING_LEASE_STORE] = "the lease is shorter than this store can keep one",
		[TIMING_DRIFT_RANGE] = "the drift is too large; it must be from 0 to 500 permille, "
				       "half of the lease",
		[TIMING_RENEW_RANGE] = "renew is too short; it must be at least 1 ms",
		[TIMING_RENEW_HALF] =
			"renew is more than half of the lease, so that one lost renewal would end "
			"the leadership; a third of the lease is usual",
		[TIMING_GRACE_RANGE] =
			"grace is too short or too long; it must be at least 3 ms and less than "
			"the lease",
		[TIMING_NO_DRAIN] =
			"renew + grace is more than the lease less the clock drift, so that "
			"another could lead before this leader has stopped; lengthen the lease, or "
			"shorten renew or grace",
		[TIMING_SHORT_DRAIN] =
			"renew + grace leave too little of the lease less the clock drift for the "
			"work to stop in; it must be at least a twentieth of the lease: lengthen "
			"the lease, or shorten renew or grace",
		[TIMING_RETRY_RANGE] =
			"retry is too short or too long; it must be at least 1 ms and at most the "
			"lease",
		[TIMING_RETRY_MAX] =
			"the longest retry is too short or too long; it must be at least retry and "
			"at most 24 hours",
		[TIMING_WORK_TIMEOUT] =
			"the work timeout is too short or too long; it must be 0 (off), or from "
			"1 ms to 24 hours",
		[TIMING_PREEMPT] =
			"preempt is too short or too long; it must be 0 (never), or from a lease "
			"to 24 hours, or the leadership would flap",
		[TIMING_SCORE_RANGE] =
			"the minimum score is too large; it must be at most 1000 permille",
		[TIMING_PRIORITY_RANGE] =
			"the priority is too low or too high; it must be from -1000000 to 1000000",
		[TIMING_OBSERVE_MANUAL] =
			"observe_only and manual exclude each other: an election that only "
			"observes can't acquire; set at most one of them",
	};
	const size_t i = (size_t)fault;

	if (i >= sizeof(texts) / sizeof(texts[0]) || texts[i] == NULL)
		return "the timings can't be used; leave them at 0 to get the defaults";
	return texts[i];
}

/* ---- what may stand in a store ---- */

static bool is_text(const char *s, size_t min, size_t max)
{
	size_t size = s != NULL ? strnlen(s, max + 1) : SIZE_MAX;
	uint32_t rune;

	if (size < min || size > max)
		return false;
	while (*s != '\0') {
		size_t n = rune_at(s, &rune);

		if (n == 0 || rune < 0x20 || (rune >= 0x7f && rune <= 0x9f))
			return false;
		s += n;
	}
	return true;
}

bool text_is_name(const char *s, size_t max)
{
	return is_text(s, 1, max);
}

bool text_is_note(const char *s)
{
	return is_text(s, 0, BATON_NOTE_MAX);
}

bool text_is_metadata(const char *s)
{
	return is_text(s, 0, BATON_METADATA_MAX);
}

/*
 * The bytes of the first character of s, or 0: not UTF-8. The terminating 0 is not a continuation
 * byte, so this never reads beyond it. Overlong forms and halves of UTF-16 pairs are refused: they
 * are second spellings of other names.
 */
static size_t rune_at(const char *s, uint32_t *rune)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	const unsigned char *b = (const unsigned char *)s;
	size_t n;

	if (b[0] < 0x80) {
		*rune = b[0];
		return 1;
	}
	if (b[0] >= 0xc0 && b[0] < 0xe0)
		n = 2;
	else if (b[0] >= 0xe0 && b[0] < 0xf0)
		n = 3;
	else if (b[0] >= 0xf0 && b[0] < 0xf8)
		n = 4;
	else
		return 0;
	*rune = b[0] & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		if ((b[i] & 0xc0) != 0x80)
			return 0;
		*rune = *rune << 6 | (b[i] & 0x3fu);
	}
	if (*rune < least[n] || *rune > 0x10ffff || (*rune >= 0xd800 && *rune <= 0xdfff))
		return 0;
	return n;
}
