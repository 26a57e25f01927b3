/*
 * locks.c: native locks beside the records, for stores that are asked for them. A claim holds its
 * election's lock from before its write until it is over; renewals keep it.
 *
 * A lock is dropped as soon as nothing of ours may stand on its election: at once by a release,
 * else with the next call that may ask the store. What this must never do: drop the lock of a
 * claim that stands or may land; let a claim count on a lock that ends before its lease does.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/record/layer.h"

struct record_kept_lock {
	char name[BATON_NAME_MAX + 1];
	uint64_t kept_ns; /* before this try */
	uint64_t sent_ns;
	int outcome;
};

bool record_has_locks(const struct record_store *s)
{
	return s->options.locks != RECORD_LOCKS_NONE;
}

/* ---- taking ---- */

int record_lock_take(struct record_lane *lane, struct baton_call *call, struct record_job *j)
{
	const struct baton_lease *lease = j->u.campaign.lease;

	j->lock_free_in_ns = RECORD_NEVER;
	j->lock_ns = clock_boot_ns();
	return lane->store->adapter->lock_take(lane->lane, call, j->name, lease->id, lease->ttl_ns,
					       &j->lock_free_in_ns);
}

bool record_lock_book(struct record_store *s, const struct record_job *j, const char *lease_id,
		      struct record_claim *claim)
{
	bool counts = true;

	if (!j->u.campaign.has_lock)
		return true;
	store_lock(&s->base);
	const struct record_ours *ours = record_ours_find(s, lease_id);
	struct record_known *k = record_known_find(s, j->key.text);

	if (ours == NULL || k == NULL || k->ours != ours) {
		record_lock_spend(s, j->name, lease_id);
	} else {
		k->lock_ns = j->lock_ns;
		counts = s->options.locks == RECORD_LOCKS_SESSION ||
			 record_lock_counts(j->lock_ns, ours->renewed_ns);
	}
	if (!counts && claim->standing == RECORD_STANDS) {
		claim->standing = RECORD_IN_DOUBT;
		record_known_claim(s, k, k->ours, claim);
	} else {
		counts = true;
	}
	store_unlock(&s->base);
	return counts;
}

/* ---- keeping ---- */

static size_t locks_copy(struct record_store *s, const char *lease_id,
			 struct record_kept_lock **out)
{
	const struct record_known *k;
	size_t n = 0;

	store_lock(&s->base);
	struct record_ours *ours = record_ours_find(s, lease_id);

	if (ours != NULL)
		ours->renewed_ns = clock_boot_ns();
	k = ours != NULL ? LIST_FIRST(&ours->claims) : NULL;
	for (; k != NULL; k = LIST_NEXT(k, of_ours))
		n += k->lock_ns != 0 && k->claim.standing != RECORD_FORFEIT;
	*out = calloc(n > 0 ? n : 1, sizeof(**out));
	n = 0;
	k = ours != NULL && *out != NULL ? LIST_FIRST(&ours->claims) : NULL;
	for (; k != NULL; k = LIST_NEXT(k, of_ours)) {
		if (k->lock_ns == 0 || k->claim.standing == RECORD_FORFEIT)
			continue;
		(void)memcpy((*out)[n].name, k->name, strlen(k->name) + 1);
		(*out)[n++].kept_ns = k->lock_ns;
	}
	store_unlock(&s->base);
	return n;
}

bool record_locks_keep(struct record_lane *lane, struct baton_call *call,
		       const struct baton_lease *lease, struct record_lock_list *kept)
{
	struct record_store *s = lane->store;

	*kept = (struct record_lock_list){.n = 0};
	if (!record_has_locks(s))
		return true;
	kept->n = locks_copy(s, lease->id, &kept->list);
	if (kept->list == NULL) {
		(void)record_no_memory(call);
		return false;
	}
	for (size_t i = 0; i < kept->n; i++) {
		struct record_kept_lock *lock = &kept->list[i];

		lock->sent_ns = clock_boot_ns();
		lock->outcome = lock->sent_ns < call->deadline_ns
					? s->adapter->lock_keep(lane->lane, call, lock->name,
								lease->id, lease->ttl_ns)
					: BATON_OUTCOME_FAILED;
	}
	return true;
}

int record_locks_judge(struct record_store *s, const struct baton_lease *lease,
		       struct record_lock_list *kept, int outcome)
{
	bool is_renewed = outcome == BATON_OUTCOME_OK;
	uint64_t now_ns = clock_boot_ns();

	store_lock(&s->base);
	for (size_t i = 0; i < kept->n; i++) {
		const struct record_kept_lock *lock = &kept->list[i];
		struct record_key key = record_key_of(s, RECORD_ELECTIONS, lock->name);
		struct record_known *k = record_known_find(s, key.text);
		int verdict = record_lock_judge(lock->outcome, lock->kept_ns, lease->ttl_ns, now_ns,
						is_renewed);

		if (verdict == RECORD_LOCK_UNSURE && is_renewed)
			outcome = lock->outcome;
		if (k == NULL || k->ours == NULL || k->lock_ns == 0 ||
		    strcmp(k->ours->id, lease->id) != 0)
			continue; /* given back meanwhile */
		if (verdict == RECORD_LOCK_KEPT) {
			k->lock_ns = lock->sent_ns;
		} else if (verdict == RECORD_LOCK_LOST) {
			struct record_claim claim = k->claim;

			claim.standing = RECORD_FORFEIT;
			k->ours->forfeit_ns = 0; /* the core must hear of this one, too */
			record_known_claim(s, k, k->ours, &claim);
		}
	}
	store_unlock(&s->base);
	free(kept->list);
	return outcome;
}

void record_locks_told(struct record_store *s, const struct baton_lease *lease)
{
	store_lock(&s->base);
	struct record_ours *ours = record_ours_find(s, lease->id);
	const struct record_known *k = ours != NULL ? LIST_FIRST(&ours->claims) : NULL;

	while (k != NULL && k->claim.standing != RECORD_FORFEIT)
		k = LIST_NEXT(k, of_ours);
	if (k != NULL && ours->forfeit_ns == 0)
		ours->forfeit_ns = clock_boot_ns();
	store_unlock(&s->base);
}

/*
 * Nobody but the core knows when the work on a forfeit claim has ended, and the core has forgotten
 * the claim. Its next campaign comes after that, and settles it; without one, a whole ttl since it
 * has heard of the loss is as long as any work on a lost lease may take. Until then it may lead.
 */
bool record_locks_were_lost(struct record_store *s, const struct baton_lease *lease)
{
	store_lock(&s->base);
	struct record_ours *ours = record_ours_find(s, lease->id);
	bool is_due = ours != NULL && ours->forfeit_ns != 0 &&
		      clock_boot_ns() - ours->forfeit_ns >= lease->ttl_ns;

	if (is_due)
		ours->forfeit_ns = 0;
	store_unlock(&s->base);
	return is_due;
}

/* ---- dropping ---- */

void record_lock_spend(struct record_store *s, const char *name, const char *lease_id)
{
	size_t size = strlen(name) + 1;
	struct record_spent_lock *spent = malloc(sizeof(*spent) + size);

	if (spent == NULL)
		return; /* it ends with its session, or with its time */
	(void)memcpy(spent->name, name, size);
	(void)memcpy(spent->lease_id, lease_id, strlen(lease_id) + 1);
	spent->next = s->spent;
	s->spent = spent;
}

void record_lock_drop(struct record_lane *lane, const struct baton_call *call, const char *name,
		      const char *lease_id)
{
	struct baton_call quiet = {.deadline_ns = call->deadline_ns};

	(void)lane->store->adapter->lock_drop(lane->lane, &quiet, name, lease_id);
}

void record_locks_drop(struct record_lane *lane, const struct baton_call *call)
{
	struct record_store *s = lane->store;

	if (!record_has_locks(s))
		return;
	store_lock(&s->base);
	struct record_spent_lock *list = s->spent;

	s->spent = NULL;
	store_unlock(&s->base);
	while (list != NULL) {
		struct record_spent_lock *spent = list;

		list = spent->next;
		record_lock_drop(lane, call, spent->name, spent->lease_id);
		free(spent);
	}
}
