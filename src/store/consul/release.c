/*
 * release.c: gives claims back. A claim is named by the index at which it was last written. If that
 * is unchanged, its lease, nonce and term are, too (S6).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/consul/consul.h"

/* After one release in this many, old leaderships are deleted. */
#define PRUNE_ONE_IN 16

void consul_op_unlock(struct consul_lane *lane, const char *name, const char *session,
		      uint64_t index)
{
	struct consul_key key = consul_lock_key(lane->store, name);
	struct consul_op op = {
		.verb = "unlock", .key = &key, .value = "", .session = session, .is_lock = true};

	consul_op_check(lane, &key, index);
	consul_op(lane, &op);
}

/* ---- release ---- */

/* One of a batch, on its way. */
struct back {
	struct baton_release *r;
	struct consul_known known;
	json_t *state;   /* NULL: not read yet */
	bool is_looked;  /* was read in this round */
	bool has_failed; /* its part of the transaction has failed */
};

struct batch {
	struct consul_lane *lane;
	struct baton_call *call;
	struct web_lease own;
	struct back list[CONSUL_CHUNK];
	size_t n;
	size_t owner[CONSUL_OPS_MAX]; /* the release of each operation; n: the count of claims */
	bool is_count_old;
};

static bool reserves(const struct baton_release *r)
{
	return r->reserve_for != NULL && r->reserve_for[0] != '\0';
}

/* S6: whether what we know is the claim of this release. */
static bool release_is_it(const struct back *b)
{
	return b->known.claim_index != 0 && b->known.claim_nonce == b->r->nonce &&
	       b->known.native + b->known.offset == b->r->term;
}

static void release_put_reservation(struct batch *b, const struct back *one)
{
	struct consul_key key = consul_state_key(b->lane->store, one->r->name);
	json_t *state = json_copy(one->state);
	json_t *reserved = web_reserve_make(one->r);
	char term[24];

	(void)snprintf(term, sizeof(term), "%" PRIu64, one->r->term);
	(void)json_object_set_new(reserved, "term", json_string(term));
	(void)json_object_set_new(state, "reserved", reserved);
	consul_op_state(b->lane, &key, state, one->known.state_index);
	json_decref(state);
}

/* Reads the elections of which we know too little, or whose part has failed. */
static int release_read(struct batch *b)
{
	struct baton_record record;
	struct consul_answer answer;

	consul_begin(b->lane);
	for (size_t i = 0; i < b->n; i++) {
		struct back *one = &b->list[i];

		one->is_looked = one->has_failed || (reserves(one->r) && one->state == NULL) ||
				 !release_is_it(one);
		if (one->is_looked)
			consul_op_read(b->lane, one->r->name);
	}
	if (b->lane->n_ops == 0)
		return BATON_OUTCOME_OK;
	int outcome = consul_read(b->lane, b->call, "state", &answer);

	for (size_t i = 0; i < b->n && outcome == BATON_OUTCOME_OK; i++) {
		struct back *one = &b->list[i];

		if (!one->is_looked)
			continue;
		consul_record(b->lane->store, one->r->name, "", &answer, &one->known, &record);
		json_decref(one->state);
		one->state = consul_state(b->lane->store, one->r->name, &answer);
		one->has_failed = false;
		if (!release_is_it(one) || strcmp(record.lease_id, one->r->lease_id) != 0)
			one->r->outcome = BATON_OUTCOME_REFUSED;
	}
	json_decref(answer.json);
	return outcome;
}

static void release_given_back(struct batch *b, const struct consul_answer *answer)
{
	struct consul_key count = consul_count_key(b->lane->store, b->own.name);

	(void)js_u64(consul_find(answer, count.text), "ModifyIndex", &b->own.index);
	b->own.n_claims -= b->own.n_claims < b->n ? b->own.n_claims : b->n;
	web_lease_count(&b->lane->store->web, b->own.id, b->own.n_claims, b->own.index);
	for (size_t i = 0; i < b->n; i++) {
		struct back *one = &b->list[i];

		one->r->outcome = BATON_OUTCOME_OK;
		one->known.claim_index = 0;
		consul_known_set(b->lane->store, one->r->name, &one->known);
	}
	for (size_t i = 0; i < b->n; i++)
		consul_prune_history(b->lane, b->call, b->list[i].r->name, b->own.index + i,
				     PRUNE_ONE_IN);
}

static int release_hear_errors(struct batch *b, const struct consul_answer *answer)
{
	if (consul_n_errors(answer) == 0)
		return consul_strange(b->call);
	for (size_t i = 0; i < consul_n_errors(answer); i++) {
		size_t op;

		if (consul_error(b->call, answer, i, &op) == CONSUL_DENIED)
			return BATON_OUTCOME_FAILED;
		size_t owner = op < b->lane->n_ops ? b->owner[op] : b->n;

		if (owner == b->n)
			b->is_count_old = true;
		else
			b->list[owner].has_failed = true;
	}
	return BATON_OUTCOME_OK;
}

static int release_send(struct batch *b)
{
	struct consul_answer answer;

	b->is_count_old = false;
	consul_begin(b->lane);
	for (size_t i = 0; i < b->n; i++) {
		size_t from = b->lane->n_ops;
		const struct back *one = &b->list[i];

		consul_op_unlock(b->lane, one->r->name, b->own.name, one->known.claim_index);
		if (reserves(one->r))
			release_put_reservation(b, one);
		consul_op_ended(b->lane, b->own.name, one->r);
		while (from < b->lane->n_ops)
			b->owner[from++] = i;
	}
	b->owner[b->lane->n_ops] = b->n;
	consul_op_count(b->lane, &b->own, b->own.n_claims < b->n ? 0 : b->own.n_claims - b->n);
	int outcome = consul_txn(b->lane, b->call, "release", &answer);

	if (outcome == BATON_OUTCOME_OK && answer.status == 200)
		release_given_back(b, &answer);
	else if (outcome == BATON_OUTCOME_OK)
		outcome = release_hear_errors(b, &answer);
	json_decref(answer.json);
	if (outcome == BATON_OUTCOME_OK && b->is_count_old)
		outcome = consul_read_count(b->lane, b->call, b->own.id, &b->own);
	return outcome;
}

/* Leaves out releases that have an outcome. If outcome isn't OK, all others get it. */
static void release_thin(struct batch *b, int outcome)
{
	size_t n = 0;

	for (size_t i = 0; i < b->n; i++) {
		struct baton_release *r = b->list[i].r;

		if (r->outcome == 0 && outcome != BATON_OUTCOME_OK) {
			r->outcome = outcome;
			r->code = b->call->error.code;
		}
		if (r->outcome == 0)
			b->list[n++] = b->list[i];
		else
			json_decref(b->list[i].state);
	}
	b->n = n;
}

/* Releases a batch, all on one lease. */
static void release_part(struct batch *b)
{
	for (int round = 0; round < CONSUL_ROUNDS && b->n > 0; round++) {
		int outcome = release_read(b);

		release_thin(b, outcome);
		if (b->n > 0)
			outcome = release_send(b);
		release_thin(b, outcome);
	}
	if (b->n == 0)
		return; /* the call's error says why */
	(void)store_fail(&b->call->error, BATON_E_UNAVAILABLE, "the claims change all the time");
	release_thin(b, BATON_OUTCOME_FAILED);
}

void consul_release(void *l, struct baton_call *call, struct baton_release *list, size_t n)
{
	struct batch b = {.lane = l, .call = call};

	for (size_t done = 0; done < n;) {
		const char *lease_id = list[done].lease_id;
		bool has_lease = web_lease_get(&b.lane->store->web, lease_id, &b.own);

		b.n = 0;
		for (; done < n && b.n < CONSUL_CHUNK && strcmp(list[done].lease_id, lease_id) == 0;
		     done++) {
			struct baton_release *r = &list[done];

			r->outcome = has_lease ? 0 : BATON_OUTCOME_REFUSED;
			r->code = 0;
			if (!has_lease)
				continue;
			b.list[b.n] = (struct back){.r = r};
			consul_known_get(b.lane->store, r->name, &b.list[b.n++].known);
		}
		if (b.n > 0)
			release_part(&b);
	}
}
