/*
 * lock.c: what becomes of a claim whose native lock is lost or can't be kept.
 *
 * A lock excludes programs that know nothing of our records; between two candidates the records
 * alone decide. So a lost lock costs one leadership, and a lock whose state is unknown costs one
 * renewal. What this must never do: let a leader count on more time than its lock has.
 */
#include "store/record/decide/parts.h"

/*
 * If a lock can't be kept, the whole renewal fails, like any failed renewal (rule 1: one is not a
 * loss). But while the lease itself is renewed, one bad lock must not end the leadership of all
 * other elections. So a lock is given up when half of its time has passed.
 */
int record_lock_judge(int outcome, uint64_t kept_ns, uint64_t ttl_ns, uint64_t now_ns,
		      bool is_renewed)
{
	if (outcome == BATON_OUTCOME_OK)
		return RECORD_LOCK_KEPT;
	if (outcome == BATON_OUTCOME_REFUSED)
		return RECORD_LOCK_LOST;
	return is_renewed && now_ns - kept_ns >= ttl_ns / 2 ? RECORD_LOCK_LOST : RECORD_LOCK_UNSURE;
}

bool record_lock_counts(uint64_t taken_ns, uint64_t renewed_ns)
{
	return renewed_ns < taken_ns;
}
