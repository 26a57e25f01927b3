/*
 * observe.c: reads elections. Each is three ranges of one transaction: the claims, the rest of its
 * state, and the number of its candidates.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/etcd/etcd.h"

/* ---- what is known beside the record ---- */

void etcd_known_get(struct etcd_store *s, const char *name, struct etcd_known *k)
{
	(void)web_index_get(s->web.watches, name, k);
}

void etcd_known_set(struct etcd_store *s, const char *name, const struct etcd_known *k)
{
	(void)web_index_set(s->web.watches, name, k);
}

/* ---- claims ---- */

bool etcd_read_claim(struct proto kv, struct baton_record *out)
{
	char value[WEB_VALUE_MAX];
	char otherwise[40];
	uint64_t lease = proto_number(kv, ETCD_KV_LEASE);

	(void)proto_text(kv, ETCD_KV_VALUE, value, sizeof(value));
	if (web_claim_read(value, out))
		return true;
	/* Not one of ours: made with etcd's own package, as by `etcdctl elect`. */
	out->nonce = proto_number(kv, ETCD_KV_CREATE);
	(void)snprintf(out->lease_id, sizeof(out->lease_id), "%" PRIx64, lease);
	(void)snprintf(otherwise, sizeof(otherwise), "etcd lease %" PRIx64, lease);
	web_claim_foreign(value, otherwise, out);
	return false;
}

/* ---- the rest of the record ---- */

/* Of the answers to one election, so many stand behind those with its claims. */
#define BESIDE 2

struct state {
	char value[2048];
	uint64_t mod;
};

/* Finds the key that ends with /what in a range; false: there is none. */
static bool state_get(struct proto range, const char *what, struct state *out)
{
	size_t n = strlen(what);

	for (struct proto kv; proto_next(&range, ETCD_RANGE_KVS, &kv);) {
		char key[ETCD_KEY_MAX];

		if (!proto_text(kv, ETCD_KV_KEY, key, sizeof(key)) || strlen(key) < n + 1 ||
		    strcmp(key + strlen(key) - n, what) != 0 || key[strlen(key) - n - 1] != '/')
			continue;
		(void)proto_text(kv, ETCD_KV_VALUE, out->value, sizeof(out->value));
		out->mod = proto_number(kv, ETCD_KV_MOD);
		return true;
	}
	*out = (struct state){0};
	return false;
}

static void record_read_order(const struct state *state, struct baton_record *out)
{
	json_t *order = js_parse(state->value, strlen(state->value));

	web_order_read(order, out);
	json_decref(order);
}

/* Reads the reservation. Its time counts from when we saw it, because etcd has no clock that we
 * could use. */
static void record_read_reserved(const struct state *state, const char *id, struct etcd_known *k,
				 struct baton_record *out)
{
	json_t *reserved = js_parse(state->value, strlen(state->value));
	uint64_t now_ns = clock_boot_ns();
	uint64_t hold_ms = 0;

	(void)js_u64(reserved, "hold", &hold_ms);
	if (state->mod != k->reserved_mod) {
		k->reserved_mod = state->mod;
		k->reserved_until_ns = now_ns + hold_ms * CLOCK_NS_PER_MS;
	}
	if (!out->held && strcmp(js_text(reserved, "for"), id) != 0 &&
	    now_ns < k->reserved_until_ns) {
		out->reserved = true;
		out->free_in_ns = k->reserved_until_ns - now_ns;
	}
	json_decref(reserved);
}

size_t etcd_get_election(struct bytes *b, enum etcd_part part, struct etcd_store *s,
			 const char *name)
{
	struct etcd_key state = etcd_state_key(s, name, "");
	struct etcd_key candidates = etcd_candidate_key(s, name, 0);
	size_t n = etcd_get_claims(b, part, s, name);

	etcd_get(b, part, &state);
	etcd_get_count(b, part, &candidates);
	return n + BESIDE;
}

bool etcd_record(const struct etcd_lane *lane, const char *name, const char *id, struct proto txn,
		 size_t at, size_t n, struct etcd_known *k, struct baton_record *out)
{
	struct etcd_store *s = lane->store;
	struct proto kvs = etcd_response(txn, at + n - BESIDE, ETCD_OP_RANGE);
	struct proto candidates = etcd_response(txn, at + n - 1, ETCD_OP_RANGE);
	struct proto claim;
	struct state state;
	uint64_t revision = 0;

	*out = (struct baton_record){.free_in_ns = BATON_STORE_NEVER};
	if (!etcd_first_claim(s, name, txn, at, n - BESIDE, &claim))
		return false;
	k->offset = state_get(kvs, "offset", &state) ? strtoull(state.value, NULL, 10) : 0;
	k->offset_mod = state.mod;
	out->paused = state_get(kvs, "paused", &state);
	out->held = claim.at != NULL;
	if (out->held)
		revision = proto_number(claim, ETCD_KV_CREATE);
	else if (state_get(kvs, "term", &state))
		revision = state.mod;
	if (!out->held || revision != k->claim_mod)
		k->claim_mod = 0; /* the claim that we have won is over */
	out->term = revision > 0 ? revision + k->offset : 0;
	if (out->held) {
		uint64_t crowd = proto_number(candidates, ETCD_RANGE_COUNT);

		out->n_candidates = (uint32_t)(crowd < UINT32_MAX ? crowd : UINT32_MAX);
		web_past_saw(&s->web, name, out, !etcd_read_claim(claim, out));
		if (state_get(kvs, "order", &state))
			record_read_order(&state, out);
	}
	if (state_get(kvs, "reserved", &state))
		record_read_reserved(&state, id, k, out);
	else
		k->reserved_mod = 0;
	(void)state_get(kvs, ETCD_UNRELEASED, &state);
	etcd_read_unreleased(lane, state.value, state.mod, out->held ? revision : 0, k, out);
	/* An expiry deletes the claim, too, and etcd pushes that. */
	out->watched = web_is_watched(&s->web, name);
	etcd_known_set(s, name, k);
	return true;
}

/* Returns an outcome. claim->is_read: the record could be read. */
static int election_read_once(struct etcd_lane *lane, struct baton_call *call, const char *name,
			      const char *id, struct baton_record *out, struct etcd_claim *claim)
{
	struct etcd_known k;
	struct proto answer, kv;
	size_t n = etcd_get_election(etcd_begin(lane), ETCD_THEN, lane->store, name);
	int outcome = etcd_call(lane, call, &etcd_txn_observe, &answer);

	*claim = (struct etcd_claim){.is_read = false};
	if (outcome == BATON_OUTCOME_OK && proto_count(answer, ETCD_TXN_RESPONSES) != n)
		outcome = etcd_strange(call);
	if (outcome == BATON_OUTCOME_OK) {
		etcd_known_get(lane->store, name, &k);
		claim->is_read = etcd_record(lane, name, id, answer, 0, n, &k, out);
		(void)etcd_first_claim(lane->store, name, answer, 0, n - BESIDE, &kv);
		(void)proto_text(kv, ETCD_KV_KEY, claim->key.text, sizeof(claim->key.text));
		claim->revision = proto_number(kv, ETCD_KV_CREATE);
		claim->lease = proto_number(kv, ETCD_KV_LEASE);
	}
	etcd_done(&answer);
	return outcome;
}

int etcd_read_election(struct etcd_lane *lane, struct baton_call *call, const char *name,
		       const char *id, struct baton_record *out, struct etcd_claim *claim)
{
	int outcome = election_read_once(lane, call, name, id, out, claim);

	for (int round = 1; outcome == BATON_OUTCOME_OK && !claim->is_read; round++) {
		if (round == ETCD_ROUNDS) {
			(void)store_fail(&call->error, BATON_E_UNAVAILABLE,
					 "the keys of the election \"%.60s\" change all the time",
					 name);
			return BATON_OUTCOME_FAILED;
		}
		outcome = etcd_learn_nested(lane, call, name);
		if (outcome == BATON_OUTCOME_OK)
			outcome = election_read_once(lane, call, name, id, out, claim);
	}
	return outcome;
}

/* ---- observe ---- */

/*
 * An observer that doesn't watch wants to know how much time the leader's lease has left. etcd
 * tells whole seconds, rounded down. If it can't tell, that is not a failure.
 */
static void record_read_time_left(struct etcd_lane *lane, struct baton_call *call, uint64_t number,
				  struct baton_record *record)
{
	struct baton_call quiet = {.deadline_ns = call->deadline_ns};
	struct proto answer;

	proto_put_number(etcd_begin(lane), ETCD_LEASE_ASKED, number);
	int outcome = etcd_call(lane, &quiet, &etcd_time_left, &answer);
	uint64_t ttl = proto_number(answer, ETCD_LEASE_TTL);

	if (outcome == BATON_OUTCOME_OK && ttl <= INT32_MAX) /* -1: the lease is gone */
		record->free_in_ns = (ttl + 1) * CLOCK_NS_PER_S;
	etcd_done(&answer);
}

/* An election that has other elections' keys among its claims. */
static int observe_nested(struct etcd_lane *lane, struct baton_call *call,
			  struct baton_observation *o)
{
	struct etcd_claim claim = {.lease = 0};
	int outcome = etcd_learn_nested(lane, call, o->name);

	if (outcome == BATON_OUTCOME_OK)
		outcome = etcd_read_election(lane, call, o->name, o->id, o->record, &claim);
	if (outcome == BATON_OUTCOME_OK && o->record->held && !o->record->watched)
		record_read_time_left(lane, call, claim.lease, o->record);
	return outcome;
}

/* Reads all of them in one request, and sets is_read for each. */
static int observe_all(struct etcd_lane *lane, struct baton_call *call,
		       struct baton_observation *list, size_t n, bool *is_read)
{
	struct bytes *b = etcd_begin(lane);
	size_t n_ops[ETCD_LOOKS];
	size_t sum = 0;
	struct proto answer;

	for (size_t i = 0; i < n; i++)
		sum += n_ops[i] = etcd_get_election(b, ETCD_THEN, lane->store, list[i].name);
	int outcome = etcd_call(lane, call, &etcd_txn_observe, &answer);

	if (outcome == BATON_OUTCOME_OK && proto_count(answer, ETCD_TXN_RESPONSES) != sum)
		outcome = etcd_strange(call);
	for (size_t i = 0, at = 0; i < n && outcome == BATON_OUTCOME_OK; at += n_ops[i++]) {
		struct etcd_known k;

		etcd_known_get(lane->store, list[i].name, &k);
		is_read[i] = etcd_record(lane, list[i].name, list[i].id, answer, at, n_ops[i], &k,
					 list[i].record);
		list[i].outcome = BATON_OUTCOME_OK;
		list[i].code = 0;
	}
	if (n == 1 && outcome == BATON_OUTCOME_OK && list->record->held && !list->record->watched) {
		struct proto claim;

		(void)etcd_first_claim(lane->store, list->name, answer, 0, n_ops[0] - BESIDE,
				       &claim);
		record_read_time_left(lane, call, proto_number(claim, ETCD_KV_LEASE), list->record);
	}
	etcd_done(&answer);
	return outcome;
}

static int observe_part(void *l, struct baton_call *call, struct baton_observation *list, size_t n)
{
	struct etcd_lane *lane = l;
	bool is_read[ETCD_LOOKS];
	int outcome = observe_all(lane, call, list, n, is_read);

	for (size_t i = 0; i < n && outcome == BATON_OUTCOME_OK; i++)
		if (!is_read[i])
			outcome = observe_nested(lane, call, &list[i]);
	for (size_t i = 0; i < n && outcome == BATON_OUTCOME_OK; i++)
		outcome = web_check_target(etcd_candidates, lane, call, &list[i]);
	return outcome;
}

void etcd_observe(void *l, struct baton_call *call, struct baton_observation *list, size_t n)
{
	const struct etcd_lane *lane = l;

	/* An election with many ranges leaves no room for others. */
	web_observe(observe_part, atomic_load(&lane->store->has_nested) ? 1 : ETCD_LOOKS, l, call,
		    list, n);
}
