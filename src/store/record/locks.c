/*
 * locks.c: native locks beside the records, if the store's URL asks for them. A claim holds its
 * election's lock from before the claim is written until the claim is over. Renewals keep the lock.
 *
 * A lock is dropped as soon as no claim of ours may stand on its election: a release drops it at
 * once, else the next call that may ask the store drops it. What this must never do: drop the lock
 * of a claim that stands or may land; let a claim count on a lock that ends before the claim's
 * lease does.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/record/layer.h"

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

struct record_held *record_locks_keep(struct record_lane *lane, struct baton_call *call,
				      const struct baton_lease *lease, size_t *n)
{
	struct record_store *s = lane->store;

	store_lock(&s->base);
	struct record_ours *ours = record_ours_find(s, lease->id);

	if (ours != NULL)
		ours->renewed_ns = clock_boot_ns();
	store_unlock(&s->base);
	const char *id = record_has_locks(s) ? lease->id : "";
	struct record_held *list = record_held_copy(s, call, id, RECORD_NO_CLAIM, n);

	for (size_t i = 0; list != NULL && i < *n; i++) {
		struct record_held *held = &list[i];

		if (held->lock_ns == 0 || held->claim.standing == RECORD_FORFEIT)
			continue;
		held->sent_ns = clock_boot_ns();
		held->outcome = held->sent_ns < call->deadline_ns
					? s->adapter->lock_keep(lane->lane, call, held->name,
								lease->id, lease->ttl_ns)
					: BATON_OUTCOME_FAILED;
	}
	return list;
}

/*
 * If another has the lock, it is lost: the renewal counts one claim less, and the core then asks
 * for the claims. A lock that could not be kept for a long time is still ours for a while, and its
 * leader must not count on more than that. So no renewal counts until the leader has heard of the
 * loss.
 */
static void lock_forfeit(struct record_store *s, struct record_known *k, int outcome)
{
	struct record_claim claim = k->claim;
	bool is_led = claim.standing == RECORD_STANDS;

	claim.standing = RECORD_FORFEIT;
	k->ours->forfeit_ns = 0; /* the core must hear of this one, too */
	record_known_claim(s, k, k->ours, &claim);
	k->owes_loss = is_led && outcome != BATON_OUTCOME_REFUSED;
	k->ours->n_owed += k->owes_loss;
	record_known_hint(s, k);
}

int record_locks_judge(struct record_store *s, struct baton_call *call,
		       const struct baton_lease *lease, struct record_held *kept, size_t n,
		       int outcome)
{
	bool is_renewed = outcome == BATON_OUTCOME_OK;
	uint64_t now_ns = clock_boot_ns();

	store_lock(&s->base);
	for (size_t i = 0; i < n; i++) {
		const struct record_held *held = &kept[i];
		struct record_key key = record_key_of(s, RECORD_ELECTIONS, held->name);
		struct record_known *k = record_known_find(s, key.text);
		int verdict = record_lock_judge(held->outcome, held->lock_ns, lease->ttl_ns, now_ns,
						is_renewed);

		if (held->sent_ns == 0)
			continue;
		if (verdict == RECORD_LOCK_UNSURE && is_renewed)
			outcome = held->outcome;
		if (k == NULL || k->ours == NULL || k->lock_ns == 0 ||
		    strcmp(k->ours->id, lease->id) != 0)
			continue; /* given back meanwhile */
		if (verdict == RECORD_LOCK_KEPT)
			k->lock_ns = held->sent_ns;
		else if (verdict == RECORD_LOCK_LOST)
			lock_forfeit(s, k, held->outcome);
	}
	const struct record_ours *ours = record_ours_find(s, lease->id);

	if (outcome == BATON_OUTCOME_OK && ours != NULL && ours->n_owed != 0) {
		outcome = BATON_OUTCOME_UNKNOWN;
		(void)store_fail(&call->error, BATON_E_BUSY,
				 "a native lock can't be kept: renewals count again when its "
				 "leader has stepped down");
	}
	store_unlock(&s->base);
	free(kept);
	return outcome;
}

void record_lock_told(struct record_known *k)
{
	k->ours->n_owed -= k->owes_loss;
	k->owes_loss = false;
	if (k->ours->n_owed == 0 && k->ours->forfeit_ns == 0)
		k->ours->forfeit_ns = clock_boot_ns();
}

void record_locks_told(struct record_store *s, const struct baton_lease *lease)
{
	store_lock(&s->base);
	struct record_ours *ours = record_ours_find(s, lease->id);
	struct record_known *k = ours != NULL ? LIST_FIRST(&ours->claims) : NULL;

	for (; k != NULL; k = LIST_NEXT(k, of_ours))
		if (k->claim.standing == RECORD_FORFEIT)
			record_lock_told(k);
	store_unlock(&s->base);
}

/*
 * Only the core knows when the work on a forfeit claim has ended, but the core has forgotten the
 * claim. The core's next campaign comes after the end of the work, and settles the claim. If there
 * is no campaign, the claim is settled a whole ttl after the core has heard of the loss: no work on
 * a lost lease may take longer. Until then the work may go on.
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
		return; /* the lock ends with its session, or with its time */
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
