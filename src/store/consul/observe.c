/*
 * observe.c: reads elections: the key that is locked, and the rest of the state.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/consul/consul.h"

/* ---- what is known beside the record ---- */

void consul_known_get(struct consul_store *s, const char *name, struct consul_known *k)
{
	(void)web_index_get(s->web.watches, name, k);
}

void consul_known_set(struct consul_store *s, const char *name, const struct consul_known *k)
{
	(void)web_index_set(s->web.watches, name, k);
}

/* ---- claims ---- */

/* If a number is out of range, the result is the highest term, so that no candidate gets a term
 * above it. */
static uint64_t native_of(uint64_t created, uint64_t locked)
{
	if (created >= TERM_MAX >> CONSUL_LOCK_BITS)
		return TERM_MAX;
	return created << CONSUL_LOCK_BITS | (locked < CONSUL_LOCK_MAX ? locked : CONSUL_LOCK_MAX);
}

uint64_t consul_native(const json_t *kv)
{
	uint64_t created = 0;
	uint64_t locked = 0;

	(void)js_u64(kv, "CreateIndex", &created);
	(void)js_u64(kv, "LockIndex", &locked);
	return native_of(created, locked);
}

uint64_t consul_new_native(uint64_t index)
{
	return native_of(index, 1);
}

bool consul_read_claim(const json_t *kv, struct baton_record *out, bool *is_foreign)
{
	char value[WEB_VALUE_MAX];
	char otherwise[CONSUL_SESSION_MAX + 20];
	const char *session = js_text(kv, "Session");

	*is_foreign = false;
	if (session[0] == '\0')
		return false;
	if (!js_base64(kv, "Value", value, sizeof(value)))
		value[0] = '\0';
	if (web_claim_read(value, out))
		return true;
	/* Not one of ours: `consul lock`, or another program that locks keys. The value is free
	 * text. */
	*is_foreign = true;
	out->nonce = consul_native(kv);
	(void)snprintf(out->lease_id, sizeof(out->lease_id), "%s", session);
	(void)snprintf(otherwise, sizeof(otherwise), "session %s", session);
	web_claim_foreign(value, otherwise, out);
	return true;
}

/* ---- the rest of the record ---- */

json_t *consul_state(const struct consul_store *s, const char *name,
		     const struct consul_answer *answer)
{
	struct consul_key key = consul_state_key(s, name);
	char value[WEB_VALUE_MAX];
	json_t *state = NULL;

	if (js_base64(consul_find(answer, key.text), "Value", value, sizeof(value)))
		state = js_parse(value, strlen(value));
	if (json_is_object(state))
		return state;
	json_decref(state);
	return json_object();
}

/*
 * Reads the reservation, which counts only after the leadership that was given back for it. Its
 * time counts from when we saw it, because Consul has no clock that we could use.
 */
static void record_read_reserved(const json_t *reserved, const char *id, bool is_new,
				 struct consul_known *k, struct baton_record *out)
{
	uint64_t now_ns = clock_boot_ns();
	uint64_t hold_ms = 0;
	uint64_t term = 0;

	if (out->held || !js_u64(reserved, "term", &term) || term != out->term ||
	    strcmp(js_text(reserved, "for"), id) == 0) {
		if (is_new)
			k->until_ns = 0;
		return;
	}
	(void)js_u64(reserved, "hold", &hold_ms);
	if (is_new)
		k->until_ns = now_ns + hold_ms * CLOCK_NS_PER_MS;
	if (now_ns < k->until_ns) {
		out->reserved = true;
		out->free_in_ns = k->until_ns - now_ns;
	}
}

void consul_op_read(struct consul_lane *lane, const char *name)
{
	struct consul_key tree = consul_tree_key(lane->store, name);
	struct consul_op op = {.verb = "get-tree", .key = &tree};

	consul_op(lane, &op);
}

/* Reads the claim; or, without one, the last term. If the key is gone, that is the last one that we
 * have seen. */
static void record_read_lock(struct consul_store *s, const char *name, const json_t *lock,
			     struct consul_known *k, struct baton_record *out)
{
	bool is_foreign;

	k->exists = lock != NULL;
	if (k->exists)
		k->native = consul_native(lock);
	if (k->native > 0)
		out->term = term_sum(k->native, k->offset);
	out->held = lock != NULL && consul_read_claim(lock, out, &is_foreign);
	if (out->held)
		web_past_saw(&s->web, name, out, is_foreign);
	k->claim_index = 0;
	if (out->held)
		(void)js_u64(lock, "ModifyIndex", &k->claim_index);
	k->claim_nonce = out->nonce;
}

void consul_record(struct consul_store *s, const char *name, const char *id,
		   const struct consul_answer *answer, struct consul_known *k,
		   struct baton_record *out)
{
	struct consul_key lock = consul_lock_key(s, name);
	struct consul_key key = consul_state_key(s, name);
	json_t *state = consul_state(s, name, answer);
	uint64_t state_index = 0;

	*out = (struct baton_record){.free_in_ns = BATON_STORE_NEVER};
	k->offset = 0;
	(void)js_u64(state, "offset", &k->offset);
	(void)js_u64(consul_find(answer, key.text), "ModifyIndex", &state_index);
	out->paused = json_is_true(js_get(state, "paused"));
	record_read_lock(s, name, consul_find(answer, lock.text), k, out);
	if (out->held)
		web_order_read(js_get(state, "order"), out);
	record_read_reserved(js_get(state, "reserved"), id, state_index != k->state_index, k, out);
	k->state_index = state_index;
	/* The end of a session unlocks the key, and Consul pushes that. */
	out->watched = web_is_watched(&s->web, name);
	consul_known_set(s, name, k);
	json_decref(state);
}

/* ---- observe ---- */

static int observe_part(void *l, struct baton_call *call, struct baton_observation *list, size_t n)
{
	struct consul_lane *lane = l;
	struct consul_answer answer;

	consul_begin(lane);
	for (size_t i = 0; i < n; i++)
		consul_op_read(lane, list[i].name);
	int outcome = consul_read(lane, call, "observe", &answer);

	for (size_t i = 0; i < n && outcome == BATON_OUTCOME_OK; i++) {
		struct consul_known k;

		consul_known_get(lane->store, list[i].name, &k);
		consul_record(lane->store, list[i].name, list[i].id, &answer, &k, list[i].record);
		list[i].outcome = BATON_OUTCOME_OK;
		list[i].code = 0;
	}
	json_decref(answer.json);
	for (size_t i = 0; i < n && outcome == BATON_OUTCOME_OK; i++)
		outcome = web_check_target(consul_candidates, lane, call, &list[i]);
	return outcome;
}

void consul_observe(void *l, struct baton_call *call, struct baton_observation *list, size_t n)
{
	web_observe(observe_part, CONSUL_CHUNK, l, call, list, n);
}
