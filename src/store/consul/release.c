/*
 * release.c: giving back, and what a session holds. A claim is named by the index at which it was
 * last written: where that is still so, lease, nonce and term are what they were (S6).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/consul/consul.h"

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
	json_t *state;   /* NULL: not looked at yet */
	bool is_looked;  /* what is known was just read */
	bool has_failed; /* its part of the transaction */
};

struct batch {
	struct consul_lane *lane;
	struct baton_call *call;
	struct web_lease mine;
	struct back list[CONSUL_CHUNK];
	size_t n;
	size_t owner[CONSUL_OPS_MAX]; /* of each operation; n: the book */
	bool is_book_old;
};

static bool reserves(const struct baton_release *r)
{
	return r->reserve_for != NULL && r->reserve_for[0] != '\0';
}

/* S6: lease, nonce and term. */
static bool is_it(const struct back *b)
{
	return b->known.claim_index != 0 && b->known.claim_nonce == b->r->nonce &&
	       b->known.native + b->known.offset == b->r->term;
}

static void put_reservation(struct batch *b, const struct back *one)
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

/* Looks at those of whom too little is known, or whose part has failed. */
static int look(struct batch *b)
{
	struct baton_record record;
	struct consul_answer answer;

	consul_begin(b->lane);
	for (size_t i = 0; i < b->n; i++) {
		struct back *one = &b->list[i];

		one->is_looked =
			one->has_failed || (reserves(one->r) && one->state == NULL) || !is_it(one);
		if (one->is_looked)
			consul_look(b->lane, one->r->name);
	}
	if (b->lane->n_ops == 0)
		return BATON_OUTCOME_OK;
	int outcome = consul_read(b->lane, b->call, "look", &answer);

	for (size_t i = 0; i < b->n && outcome == BATON_OUTCOME_OK; i++) {
		struct back *one = &b->list[i];

		if (!one->is_looked)
			continue;
		consul_record(b->lane->store, one->r->name, "", &answer, &one->known, &record);
		json_decref(one->state);
		one->state = consul_state(b->lane->store, one->r->name, &answer);
		one->has_failed = false;
		if (!is_it(one) || strcmp(record.lease_id, one->r->lease_id) != 0)
			one->r->outcome = BATON_OUTCOME_REFUSED;
	}
	json_decref(answer.json);
	return outcome;
}

static void given_back(struct batch *b, const struct consul_answer *answer)
{
	struct consul_key book = consul_book_key(b->lane->store, b->mine.name);

	(void)js_u64(consul_find(answer, book.text), "ModifyIndex", &b->mine.index);
	b->mine.n_claims -= b->mine.n_claims < b->n ? b->mine.n_claims : b->n;
	web_lease_count(&b->lane->store->web, b->mine.id, b->mine.n_claims, b->mine.index);
	for (size_t i = 0; i < b->n; i++) {
		struct back *one = &b->list[i];

		one->r->outcome = BATON_OUTCOME_OK;
		one->known.claim_index = 0;
		consul_known_set(b->lane->store, one->r->name, &one->known);
	}
}

static int hear_errors(struct batch *b, const struct consul_answer *answer)
{
	if (consul_n_errors(answer) == 0)
		return consul_strange(b->call);
	for (size_t i = 0; i < consul_n_errors(answer); i++) {
		size_t op;

		if (consul_error(b->call, answer, i, &op) == CONSUL_DENIED)
			return BATON_OUTCOME_FAILED;
		size_t owner = op < b->lane->n_ops ? b->owner[op] : b->n;

		if (owner == b->n)
			b->is_book_old = true;
		else
			b->list[owner].has_failed = true;
	}
	return BATON_OUTCOME_OK;
}

static int send_all(struct batch *b)
{
	struct consul_answer answer;

	b->is_book_old = false;
	consul_begin(b->lane);
	for (size_t i = 0; i < b->n; i++) {
		size_t from = b->lane->n_ops;
		const struct back *one = &b->list[i];

		consul_op_unlock(b->lane, one->r->name, b->mine.name, one->known.claim_index);
		if (reserves(one->r))
			put_reservation(b, one);
		while (from < b->lane->n_ops)
			b->owner[from++] = i;
	}
	b->owner[b->lane->n_ops] = b->n;
	consul_op_book(b->lane, &b->mine, b->mine.n_claims < b->n ? 0 : b->mine.n_claims - b->n);
	int outcome = consul_txn(b->lane, b->call, "release", &answer);

	if (outcome == BATON_OUTCOME_OK && answer.status == 200)
		given_back(b, &answer);
	else if (outcome == BATON_OUTCOME_OK)
		outcome = hear_errors(b, &answer);
	json_decref(answer.json);
	if (outcome == BATON_OUTCOME_OK && b->is_book_old)
		outcome = consul_read_book(b->lane, b->call, b->mine.id, &b->mine);
	return outcome;
}

/* Those who are decided are out; outcome: of all the others, if it isn't OK. */
static void thin(struct batch *b, int outcome)
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

/* All of them on one lease. */
static void release_part(struct batch *b)
{
	for (int round = 0; round < CONSUL_ROUNDS && b->n > 0; round++) {
		int outcome = look(b);

		thin(b, outcome);
		if (b->n > 0)
			outcome = send_all(b);
		thin(b, outcome);
	}
	if (b->n == 0)
		return; /* whoever failed has said why */
	(void)store_fail(&b->call->error, BATON_E_UNAVAILABLE, "the claims change all the time");
	thin(b, BATON_OUTCOME_FAILED);
}

void consul_release(void *l, struct baton_call *call, struct baton_release *list, size_t n)
{
	struct batch b = {.lane = l, .call = call};

	for (size_t done = 0; done < n;) {
		const char *lease_id = list[done].lease_id;
		bool has_lease = web_lease_get(&b.lane->store->web, lease_id, &b.mine);

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

/* ---- what a session holds ---- */

/* Who is told, and what has to be put right. */
struct inventory {
	struct consul_lane *lane;
	struct baton_call *call;
	struct web_lease mine;
	void (*found)(void *arg, const char *name, uint64_t nonce, uint64_t term);
	void *arg;
	uint64_t n;
};

/* A lock of ours that nobody can read is nobody's claim: it is given back. */
static int drop(struct inventory *v, const char *name, const json_t *kv)
{
	struct consul_answer answer;
	uint64_t index = 0;

	(void)js_u64(kv, "ModifyIndex", &index);
	consul_begin(v->lane);
	consul_op_unlock(v->lane, name, v->mine.name, index);
	int outcome = consul_txn(v->lane, v->call, "drop", &answer);

	json_decref(answer.json);
	return outcome;
}

static int look_at(struct inventory *v, const json_t *kv, const struct consul_answer *all,
		   const char *lease_id)
{
	struct baton_record record = {.nonce = 0};
	char name[BATON_NAME_MAX + 1];
	uint64_t offset = 0;

	if (strcmp(js_text(kv, "Session"), v->mine.name) != 0 ||
	    consul_key_read(v->lane->store, js_text(kv, "Key"), name) != 'l')
		return BATON_OUTCOME_OK;
	(void)consul_read_claim(kv, &record);
	if (strcmp(record.lease_id, lease_id) != 0)
		return drop(v, name, kv);
	json_t *state = consul_state(v->lane->store, name, all);

	(void)js_u64(state, "offset", &offset);
	json_decref(state);
	v->found(v->arg, name, record.nonce, consul_native(kv) + offset);
	v->n++;
	return BATON_OUTCOME_OK;
}

/* The book is put right, unless somebody has written into it since. */
static int correct(struct inventory *v)
{
	struct consul_answer answer;

	consul_begin(v->lane);
	consul_op_book(v->lane, &v->mine, v->n);
	int outcome = consul_txn(v->lane, v->call, "book", &answer);

	json_decref(answer.json);
	return outcome == BATON_OUTCOME_OK
		       ? consul_read_book(v->lane, v->call, v->mine.id, &v->mine)
		       : outcome;
}

/*
 * Consul can't tell what a session has locked: all elections are read. That is asked when something
 * went wrong, and hardly ever else.
 */
int consul_claims(void *l, struct baton_call *call, const struct baton_lease *lease,
		  void (*found)(void *arg, const char *name, uint64_t nonce, uint64_t term),
		  void *arg)
{
	struct inventory v = {.lane = l, .call = call, .found = found, .arg = arg};
	struct consul_answer answer;

	if (!web_lease_get(&v.lane->store->web, lease->id, &v.mine))
		return BATON_OUTCOME_OK;
	int outcome = consul_read_book(v.lane, call, lease->id, &v.mine);

	if (outcome == BATON_OUTCOME_REFUSED)
		return BATON_OUTCOME_OK; /* it has ended: so it holds nothing */
	if (outcome != BATON_OUTCOME_OK)
		return outcome;
	consul_begin(v.lane);
	consul_look(v.lane, "");
	outcome = consul_read(v.lane, call, "claims", &answer);
	const json_t *results = consul_results(&answer);

	for (size_t i = 0; i < json_array_size(results) && outcome == BATON_OUTCOME_OK; i++)
		outcome = look_at(&v, js_get(json_array_get(results, i), "KV"), &answer, lease->id);
	json_decref(answer.json);
	return outcome == BATON_OUTCOME_OK && v.n != v.mine.n_claims ? correct(&v) : outcome;
}
