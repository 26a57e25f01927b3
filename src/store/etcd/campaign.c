/*
 * campaign.c: campaigning. One transaction serves many elections. It has a nested transaction for
 * each of them, so that each is won or lost by itself.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/etcd/etcd.h"

/* One election of a batch, on its way. */
struct attempt {
	struct baton_campaign *c;
	struct etcd_known known;
	bool is_unread;   /* other elections' keys lie among its claims */
	uint64_t n_past;  /* how many keys its history had when it was claimed */
	uint64_t raised;  /* the offset that the claim must write; 0: it stays */
	bool is_entitled; /* no known reservation or note (unreleased.c) keeps us out */
};

/* ---- terms ---- */

/* Asks for the cluster's revision. */
static int read_revision(struct etcd_lane *lane, struct baton_call *call)
{
	struct etcd_key key = etcd_lease_key(lane->store, 1, "");

	etcd_ask_range(etcd_begin(lane), &key, NULL, 0, true);
	return etcd_tell(lane, call, &etcd_range);
}

/*
 * S4: the next revision plus the offset must be above the floor. That is so unless the cluster was
 * put back to an earlier state, or is another one. Then the claim writes a higher offset. Before
 * that is done, it is reported once as an error.
 */
static int campaign_mint(struct etcd_lane *lane, struct baton_call *call, struct attempt *t)
{
	struct etcd_store *s = lane->store;
	uint64_t stored = term_sum(lane->revision, t->known.offset);
	enum term_fault fault = term_check(stored, t->c->floor);

	t->raised = 0;
	if (fault == TERM_FINE && stored >= t->c->floor)
		return 0;
	if (fault == TERM_FINE && !atomic_exchange(&s->is_loss_reported, true))
		fault = TERM_BEHIND;
	if (fault != TERM_FINE)
		return store_fail_term(call, t->c, fault);
	t->raised = t->c->floor - lane->revision;
	return 0;
}

/* Asks for the cluster's revision only if the last one that we know isn't high enough. If that
 * fails, the campaigns are FAILED, because nothing was written yet. */
static int campaign_mint_all(struct etcd_lane *lane, struct baton_call *call, struct attempt *tries,
			     size_t n)
{
	bool is_below = false;

	for (size_t i = 0; i < n; i++)
		is_below = is_below || lane->revision + tries[i].known.offset < tries[i].c->floor;
	int outcome = is_below ? read_revision(lane, call) : BATON_OUTCOME_OK;

	for (size_t i = 0; i < n && outcome == BATON_OUTCOME_OK; i++)
		(void)campaign_mint(lane, call, &tries[i]);
	return outcome == BATON_OUTCOME_OK ? outcome : BATON_OUTCOME_FAILED;
}

/* ---- campaigns ---- */

/* The reservation that the claim removes; 0: there must be none. */
static uint64_t reservation_of(const struct attempt *t)
{
	return t->is_entitled ? t->known.reserved_mod : 0;
}

/* The same for the note of a claim that ended without a release (unreleased.c). */
static uint64_t unreleased_of(const struct attempt *t)
{
	return t->is_entitled ? t->known.unreleased_mod : 0;
}

static uint64_t offset_of(const struct attempt *t)
{
	return t->raised != 0 ? t->raised : t->known.offset;
}

/* The conditions: no candidate has the election, or may believe that it has; the election isn't
 * paused or reserved for another candidate; and the offset is the one that we know. */
static void campaign_put_conditions(struct bytes *b, struct etcd_store *s, const struct attempt *t)
{
	struct etcd_key paused = etcd_state_key(s, t->c->name, "paused");
	struct etcd_key offset = etcd_state_key(s, t->c->name, "offset");
	struct etcd_key reserved = etcd_state_key(s, t->c->name, "reserved");
	struct etcd_key unreleased = etcd_state_key(s, t->c->name, ETCD_UNRELEASED);

	etcd_compare_no_claims(b, s, t->c->name);
	etcd_compare(b, &paused, NULL, ETCD_IS_CREATE, 0);
	etcd_compare(b, &offset, NULL, ETCD_IS_MOD, t->known.offset_mod);
	etcd_compare(b, &reserved, NULL, ETCD_IS_MOD, reservation_of(t));
	etcd_compare(b, &unreleased, NULL, ETCD_IS_MOD, unreleased_of(t));
}

static void campaign_put_claim(struct bytes *b, struct etcd_store *s,
			       const struct baton_lease *lease, uint64_t number,
			       const struct attempt *t)
{
	const char *name = t->c->name;
	struct etcd_key claim = etcd_claim_key(s, name, number);
	struct etcd_key held = etcd_lease_key(s, number, name);
	struct etcd_key term = etcd_state_key(s, name, "term");
	struct etcd_key offset = etcd_state_key(s, name, "offset");
	struct etcd_key order = etcd_state_key(s, name, "order");
	struct etcd_key reserved = etcd_state_key(s, name, "reserved");
	char *text = web_claim_text(lease, t->c->nonce, clock_wall_ms(), &t->c->profile);
	char words[64];

	struct etcd_key begun = etcd_history_key(s, name, number, t->c->nonce, "");

	etcd_put_begun(b, s, &begun, name, offset_of(t), lease->owner);
	b->has_failed = b->has_failed || text == NULL;
	etcd_put(b, ETCD_THEN, &claim, text != NULL ? text : "", number);
	free(text);
	(void)snprintf(words, sizeof(words), "%" PRIu64 " %" PRIu64, t->c->nonce, offset_of(t));
	etcd_put(b, ETCD_THEN, &held, words, number);
	etcd_put(b, ETCD_THEN, &term, lease->owner, 0);
	etcd_put_unreleased(b, s, name, lease);
	(void)snprintf(words, sizeof(words), "%" PRIu64, t->raised);
	if (t->raised != 0)
		etcd_put(b, ETCD_THEN, &offset, words, 0);
	etcd_delete(b, ETCD_THEN, &order);
	if (reservation_of(t) != 0)
		etcd_delete(b, ETCD_THEN, &reserved);
}

static void campaign_put(struct bytes *b, struct etcd_store *s, const struct baton_lease *lease,
			 uint64_t number, const struct attempt *t)
{
	struct etcd_nest nest = etcd_begin_txn(b, ETCD_THEN);

	campaign_put_conditions(b, s, t);
	campaign_put_claim(b, s, lease, number, t);
	(void)etcd_get_election(b, ETCD_ELSE, s, t->c->name);
	etcd_end_txn(b, nest);
}

/* The election was won in a term that isn't above the floor, because the cluster was put back
 * meanwhile. The claim is given back. */
static int campaign_undo(struct etcd_lane *lane, struct baton_call *call, struct attempt *t,
			 uint64_t number, uint64_t revision)
{
	struct baton_campaign *c = t->c;

	t->known.claim_mod = 0; /* if the claim stays, it must be checked */
	etcd_known_set(lane->store, c->name, &t->known);
	struct etcd_key begun = etcd_history_key(lane->store, c->name, number, c->nonce, "");
	struct bytes *b = etcd_begin(lane);

	etcd_put_removal(b, lane->store, c->name, number, revision, NULL);
	etcd_delete(b, ETCD_THEN, &begun);
	int outcome = etcd_tell(lane, call, &etcd_txn);

	(void)store_fail_term(call, c, TERM_LOW);
	c->outcome = outcome == BATON_OUTCOME_OK ? BATON_OUTCOME_FAILED : BATON_OUTCOME_UNKNOWN;
	return -1;
}

/* Takes the result of one campaign. Outcome 0: it must be tried again. */
static void campaign_hear(struct etcd_lane *lane, const struct baton_lease *lease,
			  struct attempt *t, struct proto answer, uint64_t revision)
{
	struct baton_campaign *c = t->c;

	c->code = 0;
	if (proto_number(answer, ETCD_TXN_SUCCEEDED) != 0) {
		c->outcome = BATON_OUTCOME_OK;
		t->n_past = proto_number(etcd_response(answer, 0, ETCD_OP_RANGE), ETCD_RANGE_COUNT);
		c->term = revision + offset_of(t);
		c->record->watched = web_is_watched(&lane->store->web, c->name);
		t->known.claim_mod = revision;
		t->known.reserved_mod = 0; /* there was none, or the claim has removed it */
		t->known.unreleased_mod = 0;
		if (t->raised != 0) {
			t->known.offset = t->raised;
			t->known.offset_mod = revision;
		}
		etcd_known_set(lane->store, c->name, &t->known);
		web_index_set_foreign(lane->store->web.watches, c->name, NULL);
		return;
	}
	uint64_t offset_mod = t->known.offset_mod;
	uint64_t reserved_mod = reservation_of(t);
	uint64_t unreleased_mod = unreleased_of(t);

	t->is_unread = !etcd_record(lane, c->name, lease->owner, answer, 0,
				    proto_count(answer, ETCD_TXN_RESPONSES), &t->known, c->record);
	if (t->is_unread)
		return;
	bool is_free = !c->record->held && !c->record->paused && !c->record->reserved;

	t->is_entitled = is_free;
	bool is_new = offset_mod != t->known.offset_mod || reserved_mod != reservation_of(t) ||
		      unreleased_mod != unreleased_of(t);

	c->outcome = is_free && is_new ? 0 : BATON_OUTCOME_REFUSED;
	if (is_free) /* it was freed meanwhile, so it is worth another try soon */
		c->record->free_in_ns = 0;
}

/* Nothing was written, because other elections' keys lie among the claims. Learns them, for the
 * next try. */
static void campaign_learn(struct etcd_lane *lane, struct baton_call *call, struct attempt *t)
{
	if (t->is_unread && etcd_learn_nested(lane, call, t->c->name) != BATON_OUTCOME_OK)
		web_campaign_set(t->c, BATON_OUTCOME_FAILED, call->error.code);
	t->is_unread = false;
}

static int campaign_send(struct etcd_lane *lane, struct baton_call *call,
			 const struct baton_lease *lease, uint64_t number, struct attempt *tries,
			 size_t n)
{
	struct bytes *b = etcd_begin(lane);
	struct proto answer;

	for (size_t i = 0; i < n; i++)
		campaign_put(b, lane->store, lease, number, &tries[i]);
	int outcome = etcd_call(lane, call, &etcd_txn_campaign, &answer);
	uint64_t revision = proto_number(proto_get(answer, ETCD_HEADER), ETCD_HEADER_REVISION);

	if (outcome == BATON_OUTCOME_OK &&
	    (proto_count(answer, ETCD_TXN_RESPONSES) != n || revision == 0))
		outcome = etcd_strange(call);
	for (size_t i = 0; i < n && outcome == BATON_OUTCOME_OK; i++)
		campaign_hear(lane, lease, &tries[i], etcd_response(answer, i, ETCD_OP_TXN),
			      revision);
	etcd_done(&answer);
	for (size_t i = 0; i < n && outcome == BATON_OUTCOME_OK; i++) {
		const struct baton_campaign *c = tries[i].c;

		if (c->outcome == BATON_OUTCOME_OK && (c->term <= c->floor || c->term > TERM_MAX))
			(void)campaign_undo(lane, call, &tries[i], number, revision);
		campaign_learn(lane, call, &tries[i]);
		if (c->outcome == BATON_OUTCOME_OK && tries[i].n_past > ETCD_PAST_KEYS)
			etcd_prune_history(lane, call, c->name);
	}
	return outcome;
}

static bool has_waited(const struct etcd_known *k)
{
	uint64_t now_ns = clock_boot_ns();

	return now_ns >= k->reserved_until_ns && now_ns >= k->unreleased_until_ns;
}

static void campaign_part(struct etcd_lane *lane, struct baton_call *call,
			  const struct baton_lease *lease, struct baton_campaign *list, size_t n)
{
	uint64_t number = etcd_lease_number(lane->store, lease->id);
	struct attempt tries[ETCD_CHUNK];
	size_t left = 0;

	for (size_t i = 0; i < n; i++) {
		web_campaign_set(&list[i], 0, 0);
		tries[left] = (struct attempt){.c = &list[i]};
		etcd_known_get(lane->store, list[i].name, &tries[left].known);
		tries[left].is_entitled = has_waited(&tries[left].known);
		left++;
		if (number == 0)
			web_campaign_without_lease(&list[i]);
	}
	for (int round = 0; round < ETCD_ROUNDS && number != 0 && left > 0; round++) {
		int outcome = campaign_mint_all(lane, call, tries, left);
		size_t n_tries = 0;

		for (size_t i = 0; i < left; i++)
			if (tries[i].c->outcome == 0)
				tries[n_tries++] = tries[i];
		if (outcome == BATON_OUTCOME_OK && n_tries > 0)
			outcome = campaign_send(lane, call, lease, number, tries, n_tries);
		for (size_t i = 0; i < n_tries && outcome != BATON_OUTCOME_OK; i++) {
			if (outcome == BATON_OUTCOME_REFUSED)
				web_campaign_without_lease(tries[i].c);
			else
				web_campaign_set(tries[i].c, outcome, call->error.code);
		}
		left = 0;
		for (size_t i = 0; i < n_tries; i++)
			if (tries[i].c->outcome == 0)
				tries[left++] = tries[i];
	}
	for (size_t i = 0; i < left && number != 0; i++) /* they change all the time */
		tries[i].c->outcome = BATON_OUTCOME_REFUSED;
}

void etcd_campaign(void *l, struct baton_call *call, const struct baton_lease *lease,
		   struct baton_campaign *list, size_t n)
{
	struct web_store *s = &((struct etcd_lane *)l)->store->web;

	for (size_t done = 0; done < n; done += ETCD_CHUNK) {
		size_t k = n - done < ETCD_CHUNK ? n - done : ETCD_CHUNK;

		store_ask(&s->base, list + done, k);
		campaign_part(l, call, lease, list + done, k);
		store_ask(&s->base, NULL, 0);
	}
}
