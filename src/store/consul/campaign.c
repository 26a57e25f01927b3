/*
 * campaign.c: campaigning. One transaction serves many elections, and is carried out as a whole or
 * not at all. Campaigns whose part has failed are looked at and left out, and the others are tried
 * again.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/consul/consul.h"

/* A lock delay ends silently, and Consul doesn't tell how long it is. This is the usual one. */
#define USUAL_DELAY_NS (15 * CLOCK_NS_PER_S)
#define DELAY_STEP_NS (2 * CLOCK_NS_PER_S)
/* After one claim in this many, old leaderships are deleted. That is seldom, because a
 * candidate waits for its claim. Most are deleted after releases. */
#define PRUNE_ONE_IN 64

/* One election of a batch, on its way. */
struct attempt {
	struct baton_campaign *c;
	struct consul_known known;
	uint64_t raised;   /* the offset that the claim must write; 0: it stays */
	json_t *state;     /* the rest of the election's state */
	uint64_t foretold; /* the term without offset that we expect; 0: that of a new key */
	bool has_failed;   /* its part of the transaction has failed */
	bool is_delayed;
};

/* A batch of campaigns, and what all of them need. */
struct batch {
	struct consul_lane *lane;
	struct baton_call *call;
	const struct baton_lease *lease;
	struct web_lease own;
	struct attempt tries[CONSUL_CHUNK];
	size_t n;
	size_t owner[CONSUL_OPS_MAX]; /* the campaign of each operation; n: the count of claims */
	bool is_count_old;
};

/* ---- looking ---- */

/* A lock delay began when the session ended, and ends some time later. We ask now and then. */
static void campaign_delay(const struct consul_options *o, struct attempt *t, uint64_t now_ns)
{
	uint64_t own_ns = o->lock_delay_ms * CLOCK_NS_PER_MS;
	uint64_t wait_ns = DELAY_STEP_NS;

	if (t->known.until_ns == 0)
		t->known.until_ns = now_ns + (own_ns > 0 ? own_ns : USUAL_DELAY_NS);
	if (t->known.until_ns > now_ns && t->known.until_ns - now_ns < wait_ns)
		wait_ns = t->known.until_ns - now_ns + CLOCK_NS_PER_MS;
	t->c->record->free_in_ns = wait_ns;
}

/* Judges a campaign that has failed: it is refused, or worth another try (outcome 0). */
static void campaign_judge(struct batch *b, struct attempt *t, const struct consul_answer *answer)
{
	struct baton_campaign *c = t->c;
	struct consul_known before = t->known;

	consul_record(b->lane->store, c->name, b->lease->owner, answer, &t->known, c->record);
	bool is_free = !c->record->held && !c->record->paused && !c->record->reserved;
	bool is_new = before.state_index != t->known.state_index ||
		      before.exists != t->known.exists || before.native != t->known.native;

	c->code = 0;
	c->outcome = is_free && is_new && !t->is_delayed ? 0 : BATON_OUTCOME_REFUSED;
	if (is_free && t->is_delayed)
		campaign_delay(&b->lane->store->options, t, clock_boot_ns());
	else if (is_free) /* it was freed meanwhile, so it is worth another try soon */
		c->record->free_in_ns = 0;
	consul_known_set(b->lane->store, c->name, &t->known);
	json_decref(t->state);
	t->state = consul_state(b->lane->store, c->name, answer);
	t->has_failed = false;
	t->is_delayed = false;
}

/* Looks at all campaigns that have failed. */
static int campaign_read(struct batch *b)
{
	struct consul_answer answer;
	int outcome = BATON_OUTCOME_OK;

	consul_begin(b->lane);
	for (size_t i = 0; i < b->n; i++)
		if (b->tries[i].has_failed)
			consul_op_read(b->lane, b->tries[i].c->name);
	if (b->lane->n_ops == 0)
		return outcome;
	outcome = consul_read(b->lane, b->call, "state", &answer);
	for (size_t i = 0; i < b->n && outcome == BATON_OUTCOME_OK; i++)
		if (b->tries[i].has_failed)
			campaign_judge(b, &b->tries[i], &answer);
	json_decref(answer.json);
	return outcome;
}

/* ---- terms ---- */

/* Lost terms are reported once, as an error. True: they are to be reported now. */
static bool is_loss_news(struct batch *b)
{
	return !atomic_exchange(&b->lane->store->is_loss_reported, true);
}

/*
 * S4: the next term must be above the floor. That is so unless the cluster was put back to an
 * earlier state, or is another one. Then the claim writes a higher offset. Before that is done, it
 * is reported once as an error.
 */
static int campaign_mint(struct batch *b, struct attempt *t)
{
	uint64_t stored = term_sum(t->known.native, t->known.offset);
	uint64_t floor = t->c->floor;
	enum term_fault fault = term_check(stored, floor);

	t->raised = 0;
	if (fault != TERM_END && (!t->known.exists || stored >= floor))
		return 0;
	if (fault == TERM_FINE && is_loss_news(b))
		fault = TERM_BEHIND;
	if (fault != TERM_FINE)
		return store_fail_term(b->call, t->c, fault);
	t->raised = floor - t->known.native;
	return 0;
}

/* Looks first at the elections of which we know too little. */
static int campaign_mint_all(struct batch *b)
{
	uint64_t now_ns = clock_boot_ns();
	bool is_any = false;

	for (size_t i = 0; i < b->n; i++) {
		struct attempt *t = &b->tries[i];
		bool is_low = t->state == NULL && t->c->floor > 0 &&
			      t->known.native + t->known.offset < t->c->floor;

		t->has_failed = is_low || (t->state == NULL && now_ns < t->known.until_ns);
		is_any = is_any || t->has_failed;
	}
	if (is_any) {
		int outcome = campaign_read(b);

		if (outcome != BATON_OUTCOME_OK)
			return outcome;
		for (size_t i = 0; i < b->n; i++) {
			struct baton_campaign *c = b->tries[i].c;

			/* Free, and we know all that we need: to be tried. */
			if (c->outcome == BATON_OUTCOME_REFUSED && !c->record->held &&
			    !c->record->paused && !c->record->reserved)
				c->outcome = 0;
		}
	}
	for (size_t i = 0; i < b->n; i++)
		if (b->tries[i].c->outcome == 0)
			(void)campaign_mint(b, &b->tries[i]);
	return BATON_OUTCOME_OK;
}

/* ---- claims ---- */

/* The state must be the one that we know; or we write it, with a higher offset. */
static void campaign_put_state(struct batch *b, const struct attempt *t)
{
	struct consul_key key = consul_state_key(b->lane->store, t->c->name);
	char number[24];

	if (t->raised == 0) {
		consul_op_check(b->lane, &key, t->known.state_index);
		return;
	}
	json_t *state = t->state != NULL ? json_copy(t->state) : json_object();

	(void)snprintf(number, sizeof(number), "%" PRIu64, t->raised);
	(void)json_object_set_new(state, "offset", json_string(number));
	consul_op_state(b->lane, &key, state, t->known.state_index);
	json_decref(state);
}

/*
 * The lock must be free, also of ourselves: Consul would let us lock it twice in one term. If the
 * key's LockIndex is used up, the key is made anew.
 */
static void campaign_put_lock(struct batch *b, struct attempt *t)
{
	bool is_used_up = (t->known.native & CONSUL_LOCK_MAX) >= CONSUL_LOCK_MAX - 1;
	struct consul_key key = consul_lock_key(b->lane->store, t->c->name);
	char *text = web_claim_text(b->lease, t->c->nonce, clock_wall_ms(), &t->c->profile);
	struct consul_op free_op = {.verb = "check-session", .key = &key, .session = ""};
	struct consul_op drop = {.verb = "delete", .key = &key};
	struct consul_op lock = {.verb = "lock",
				 .key = &key,
				 .value = text != NULL ? text : "",
				 .session = b->own.name,
				 .is_lock = true};

	if (t->known.exists)
		consul_op(b->lane, &free_op);
	else
		consul_op_check(b->lane, &key, 0);
	if (t->known.exists && is_used_up)
		consul_op(b->lane, &drop);
	consul_op(b->lane, &lock);
	t->foretold = t->known.exists && !is_used_up ? t->known.native + 1 : 0;
	consul_op_begun(b->lane, t->c->name, b->own.name, t->c->nonce, t->foretold,
			t->raised != 0 ? t->raised : t->known.offset, b->lease->owner);
	b->lane->web.body.has_failed = b->lane->web.body.has_failed || text == NULL;
	free(text);
}

static void campaign_won(struct batch *b, struct attempt *t, const json_t *kv)
{
	struct baton_campaign *c = t->c;
	uint64_t state_index = 0;

	t->known.native = consul_native(kv);
	t->known.exists = true;
	t->known.until_ns = 0;
	(void)js_u64(kv, "ModifyIndex", &t->known.claim_index);
	t->known.claim_nonce = c->nonce;
	if (t->raised != 0) {
		t->known.offset = t->raised;
		if (js_u64(kv, "ModifyIndex", &state_index))
			t->known.state_index = state_index; /* written in the same transaction */
	}
	c->outcome = BATON_OUTCOME_OK;
	c->code = 0;
	c->term = t->known.native + t->known.offset;
	c->record->watched = web_is_watched(&b->lane->store->web, c->name);
	consul_known_set(b->lane->store, c->name, &t->known);
}

/* The election was won in a term that isn't above the floor, because the cluster was put back
 * meanwhile. The claim is given back. */
static void campaign_undo(struct batch *b, struct attempt *t)
{
	struct consul_key begun =
		consul_history_key(b->lane->store, t->c->name, b->own.name, t->c->nonce, "");
	struct consul_op drop = {.verb = "delete", .key = &begun};
	struct consul_answer answer;

	consul_begin(b->lane);
	consul_op_unlock(b->lane, t->c->name, b->own.name, t->known.claim_index);
	consul_op(b->lane, &drop);
	consul_op_count(b->lane, &b->own, b->own.n_claims - 1);
	int outcome = consul_txn(b->lane, b->call, "undo", &answer);
	bool is_done = outcome == BATON_OUTCOME_OK && answer.status == 200;

	json_decref(answer.json);
	(void)consul_read_count(b->lane, b->call, b->lease->id, &b->own);
	(void)store_fail_term(b->call, t->c, is_loss_news(b) ? TERM_BEHIND : TERM_LOW);
	t->c->outcome = is_done ? BATON_OUTCOME_FAILED : BATON_OUTCOME_UNKNOWN;
}

/*
 * Completes the history after a claim. If a holder that we have not seen had the lock, the term
 * differs from the one that was written with the claim, so it is written again. Now and then the
 * oldest leaderships are deleted.
 */
static void campaign_note(struct batch *b, const struct attempt *t)
{
	struct baton_call quiet = {.deadline_ns = b->call->deadline_ns};
	uint64_t foretold =
		t->foretold != 0 ? t->foretold : consul_new_native(t->known.claim_index);
	struct consul_answer answer;

	if (foretold != t->known.native) {
		consul_begin(b->lane);
		consul_op_begun(b->lane, t->c->name, b->own.name, t->c->nonce, t->known.native,
				t->known.offset, b->lease->owner);
		(void)consul_txn(b->lane, &quiet, "history", &answer);
		json_decref(answer.json);
	}
	web_index_set_foreign(b->lane->store->web.watches, t->c->name, NULL);
	consul_prune_history(b->lane, b->call, t->c->name, t->known.claim_index, PRUNE_ONE_IN);
}

/* The transaction was carried out: all campaigns are won. */
static int campaign_hear(struct batch *b, const struct consul_answer *answer)
{
	struct consul_key count = consul_count_key(b->lane->store, b->own.name);
	const json_t *kv = consul_find(answer, count.text);

	if (!js_u64(kv, "ModifyIndex", &b->own.index))
		return consul_strange(b->call);
	for (size_t i = 0; i < b->n; i++) {
		struct consul_key key = consul_lock_key(b->lane->store, b->tries[i].c->name);

		kv = consul_find(answer, key.text);
		if (strcmp(js_text(kv, "Session"), b->own.name) != 0)
			return consul_strange(b->call);
		campaign_won(b, &b->tries[i], kv);
	}
	b->own.n_claims += b->n;
	web_lease_count(&b->lane->store->web, b->lease->id, b->own.n_claims, b->own.index);
	for (size_t i = 0; i < b->n; i++) {
		const struct baton_campaign *c = b->tries[i].c;

		if (c->term <= c->floor || c->term > TERM_MAX)
			campaign_undo(b, &b->tries[i]);
		else
			campaign_note(b, &b->tries[i]);
	}
	return BATON_OUTCOME_OK;
}

/* The transaction was not carried out: finds out which campaigns are the cause. Returns OK, or an
 * outcome for all of them. */
static int campaign_hear_errors(struct batch *b, const struct consul_answer *answer)
{
	if (consul_n_errors(answer) == 0)
		return consul_strange(b->call);
	for (size_t i = 0; i < consul_n_errors(answer); i++) {
		size_t op;
		enum consul_why why = consul_error(b->call, answer, i, &op);
		size_t owner = op < b->lane->n_ops ? b->owner[op] : b->n;

		if (why == CONSUL_DENIED)
			return BATON_OUTCOME_FAILED;
		if (why == CONSUL_NO_SESSION)
			return BATON_OUTCOME_REFUSED;
		if (owner == b->n) {
			b->is_count_old = true;
			continue;
		}
		b->tries[owner].has_failed = true;
		b->tries[owner].is_delayed = b->tries[owner].is_delayed || why == CONSUL_DELAYED;
	}
	return BATON_OUTCOME_OK;
}

static int campaign_send(struct batch *b)
{
	struct consul_answer answer;

	b->is_count_old = false;
	consul_begin(b->lane);
	for (size_t i = 0; i < b->n; i++) {
		size_t from = b->lane->n_ops;

		campaign_put_state(b, &b->tries[i]);
		campaign_put_lock(b, &b->tries[i]);
		while (from < b->lane->n_ops)
			b->owner[from++] = i;
	}
	b->owner[b->lane->n_ops] = b->n;
	consul_op_count(b->lane, &b->own, b->own.n_claims + b->n);
	int outcome = consul_txn(b->lane, b->call, "campaign", &answer);

	if (outcome == BATON_OUTCOME_OK)
		outcome = answer.status == 200 ? campaign_hear(b, &answer)
					       : campaign_hear_errors(b, &answer);
	json_decref(answer.json);
	if (outcome == BATON_OUTCOME_OK && b->is_count_old)
		outcome = consul_read_count(b->lane, b->call, b->lease->id, &b->own);
	return outcome == BATON_OUTCOME_OK ? campaign_read(b) : outcome;
}

/* Leaves out campaigns that have an outcome. */
static void campaign_thin(struct batch *b)
{
	size_t n = 0;

	for (size_t i = 0; i < b->n; i++) {
		if (b->tries[i].c->outcome == 0)
			b->tries[n++] = b->tries[i];
		else
			json_decref(b->tries[i].state);
	}
	b->n = n;
}

/* Gives the same outcome to all campaigns that have none. */
static void campaign_end_all(struct batch *b, int outcome)
{
	for (size_t i = 0; i < b->n; i++) {
		struct baton_campaign *c = b->tries[i].c;

		if (c->outcome != 0)
			continue;
		if (outcome == BATON_OUTCOME_REFUSED)
			web_campaign_without_lease(c);
		else
			web_campaign_set(c, outcome, b->call->error.code);
	}
	campaign_thin(b);
}

static void campaign_part(struct batch *b, struct baton_campaign *list, size_t n)
{
	bool has_lease = web_lease_get(&b->lane->store->web, b->lease->id, &b->own);

	b->n = n;
	for (size_t i = 0; i < n; i++) {
		web_campaign_set(&list[i], 0, 0);
		b->tries[i] = (struct attempt){.c = &list[i]};
		consul_known_get(b->lane->store, list[i].name, &b->tries[i].known);
	}
	if (!has_lease)
		campaign_end_all(b, BATON_OUTCOME_REFUSED);
	for (int round = 0; round < CONSUL_ROUNDS && b->n > 0; round++) {
		int outcome = campaign_mint_all(b);

		campaign_thin(b);
		if (outcome == BATON_OUTCOME_OK && b->n > 0)
			outcome = campaign_send(b);
		if (outcome != BATON_OUTCOME_OK)
			campaign_end_all(b, outcome);
		campaign_thin(b);
	}
	for (size_t i = 0; i < b->n; i++) /* they change all the time */
		b->tries[i].c->record->free_in_ns = 0;
	for (size_t i = 0; i < b->n; i++)
		b->tries[i].c->outcome = BATON_OUTCOME_REFUSED;
	campaign_thin(b);
}

void consul_campaign(void *l, struct baton_call *call, const struct baton_lease *lease,
		     struct baton_campaign *list, size_t n)
{
	struct batch b = {.lane = l, .call = call, .lease = lease};

	struct web_store *s = &b.lane->store->web;

	for (size_t done = 0; done < n; done += CONSUL_CHUNK) {
		size_t k = n - done < CONSUL_CHUNK ? n - done : CONSUL_CHUNK;

		store_ask(&s->base, list + done, k);
		campaign_part(&b, list + done, k);
		store_ask(&s->base, NULL, 0);
	}
}
