/*
 * look.c: one election as the store shows it. Two ranges of one transaction: who has claimed it,
 * and what is known of it beside.
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
	uint64_t notes[HINTS_NOTES];

	(void)hints_get(s->hints, name, notes);
	*k = (struct etcd_known){notes[0], notes[1], notes[2], notes[3]};
}

void etcd_known_set(struct etcd_store *s, const char *name, const struct etcd_known *k)
{
	const uint64_t notes[HINTS_NOTES] = {k->offset, k->offset_mod, k->reserved_mod,
					     k->reserved_until_ns};

	(void)hints_set(s->hints, name, notes);
}

/* ---- claims ---- */

char *etcd_claim_text(const struct baton_lease *lease, uint64_t nonce, int64_t since_ms,
		      const struct baton_profile *profile)
{
	char number[24];

	(void)snprintf(number, sizeof(number), "%" PRIu64, nonce);
	json_t *claim =
		json_pack("{s:s,s:s,s:s,s:s,s:I,s:i,s:i,s:s}", "leader", lease->owner, "lease",
			  lease->id, "nonce", number, "address", lease->address, "since",
			  (json_int_t)since_ms, "priority", (int)profile->priority, "score",
			  (int)profile->score_permille, "metadata", profile->metadata);
	char *text = json_dumps(claim, JSON_COMPACT);

	json_decref(claim);
	return text;
}

static void copy(char *to, size_t size, const json_t *object, const char *key)
{
	(void)snprintf(to, size, "%s", js_text(object, key));
}

/* Not one of ours: etcd's own package, of which `etcdctl elect` is one. The value is free text. */
static void foreign_claim(const json_t *kv, const char *value, struct baton_record *out)
{
	uint64_t lease = 0;

	(void)js_u64(kv, "lease", &lease);
	(void)js_u64(kv, "create_revision", &out->nonce);
	(void)snprintf(out->lease_id, sizeof(out->lease_id), "%" PRIx64, lease);
	(void)snprintf(out->leader, sizeof(out->leader), "%s", value);
	for (char *c = out->leader; *c != '\0'; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	json_t *is_text = json_string(out->leader);

	if (is_text == NULL || out->leader[0] == '\0')
		(void)snprintf(out->leader, sizeof(out->leader), "etcd lease %" PRIx64, lease);
	json_decref(is_text);
}

void etcd_read_claim(const json_t *kv, struct baton_record *out)
{
	char value[8192];
	int64_t priority = 0;
	uint64_t score = 0;

	if (!js_base64(kv, "value", value, sizeof(value)))
		value[0] = '\0';
	json_t *claim = js_parse(value, strlen(value));

	if (!js_u64(claim, "nonce", &out->nonce) || js_text(claim, "leader")[0] == '\0') {
		foreign_claim(kv, value, out);
		json_decref(claim);
		return;
	}
	copy(out->leader, sizeof(out->leader), claim, "leader");
	copy(out->lease_id, sizeof(out->lease_id), claim, "lease");
	copy(out->address, sizeof(out->address), claim, "address");
	copy(out->metadata, sizeof(out->metadata), claim, "metadata");
	(void)js_i64(claim, "since", &out->since_ms);
	(void)js_i64(claim, "priority", &priority);
	(void)js_u64(claim, "score", &score);
	out->priority = (int32_t)priority;
	out->score_permille = (uint32_t)score;
	json_decref(claim);
}

/* ---- the rest of the record ---- */

struct state {
	char value[2048];
	uint64_t mod;
};

/* The key that ends with /what; false: there is none. */
static bool get_state(const json_t *kvs, const char *what, struct state *out)
{
	size_t n = strlen(what);

	for (size_t i = 0; i < json_array_size(kvs); i++) {
		const json_t *kv = json_array_get(kvs, i);
		char key[ETCD_KEY_MAX];

		if (!js_base64(kv, "key", key, sizeof(key)) || strlen(key) < n + 1 ||
		    strcmp(key + strlen(key) - n, what) != 0 || key[strlen(key) - n - 1] != '/')
			continue;
		if (!js_base64(kv, "value", out->value, sizeof(out->value)))
			out->value[0] = '\0';
		return js_u64(kv, "mod_revision", &out->mod);
	}
	*out = (struct state){0};
	return false;
}

static void read_order(const struct state *state, struct baton_record *out)
{
	json_t *order = js_parse(state->value, strlen(state->value));
	uint64_t term = 0;
	uint64_t kind = 0;

	(void)js_u64(order, "term", &term);
	if (term == out->term && js_u64(order, "id", &out->order.id) &&
	    js_u64(order, "kind", &kind)) { /* rule 10: for this leadership */
		out->order.term = term;
		out->order.kind = (int)kind;
		(void)js_u64(order, "quiet", &out->order.quiet_ms);
		copy(out->order.target, sizeof(out->order.target), order, "target");
	} else {
		out->order = (struct baton_order){0};
	}
	json_decref(order);
}

/* Kept for one of them; for how long is counted from when we saw it: etcd has no clock for us. */
static void read_reserved(const struct state *state, const char *id, struct etcd_known *k,
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

void etcd_look(struct bytes *b, const struct etcd_store *s, const char *name)
{
	struct etcd_key claims = etcd_claim_key(s, name, 0);
	struct etcd_key state = etcd_state_key(s, name, "");

	etcd_range(b, &claims, true);
	etcd_range(b, &state, false);
}

void etcd_record(struct etcd_store *s, const char *name, const char *id, const json_t *txn,
		 size_t at, struct etcd_known *k, struct baton_record *out)
{
	const json_t *claim = etcd_kv(txn, at);
	const json_t *kvs = etcd_kvs(txn, at + 1);
	struct state state;
	uint64_t revision = 0;

	*out = (struct baton_record){.free_in_ns = BATON_STORE_NEVER};
	k->offset = get_state(kvs, "offset", &state) ? strtoull(state.value, NULL, 10) : 0;
	k->offset_mod = state.mod;
	out->paused = get_state(kvs, "paused", &state);
	out->held = claim != NULL;
	if (out->held)
		(void)js_u64(claim, "create_revision", &revision);
	else if (get_state(kvs, "term", &state))
		revision = state.mod;
	out->term = revision > 0 ? revision + k->offset : 0;
	if (out->held) {
		etcd_read_claim(claim, out);
		if (get_state(kvs, "order", &state))
			read_order(&state, out);
	}
	if (get_state(kvs, "reserved", &state))
		read_reserved(&state, id, k, out);
	else
		k->reserved_mod = 0;
	/* Its end by itself is a deletion, too, which etcd pushes. */
	out->watched = hints_is_watched(s->hints, name);
	etcd_known_set(s, name, k);
}

/* ---- observe ---- */

struct target {
	const char *id;
	bool is_ok;
};

static void look_for(void *arg, const struct baton_candidate *candidate)
{
	struct target *t = arg;

	if (strcmp(candidate->id, t->id) == 0 && candidate->is_healthy)
		t->is_ok = true;
}

/* Whether the candidate that a leader is to hand over to is there: asked only then. */
static int check_target(struct etcd_lane *lane, struct baton_call *call,
			struct baton_observation *o)
{
	struct baton_order *order = &o->record->order;
	struct target t = {.id = order->target};

	if (order->kind != BATON_ORDER_TRANSFER || order->target[0] == '\0')
		return BATON_OUTCOME_OK;
	int outcome = etcd_candidates(lane, call, o->name, look_for, &t);

	order->target_ok = t.is_ok;
	return outcome;
}

/*
 * Who doesn't watch would like to know how long the leader's lease still is; whole seconds, rounded
 * down. That it can't be told is no reason to fail.
 */
static void look_at_lease(struct etcd_lane *lane, struct baton_call *call, const json_t *kv,
			  struct baton_record *record)
{
	struct baton_call quiet = {.deadline_ns = call->deadline_ns};
	json_t *answer;
	uint64_t ttl;

	bytes_print(etcd_begin(lane), "{\"ID\":\"%s\"}", js_text(kv, "lease"));
	(void)etcd_call(lane, &quiet, "/v3/lease/timetolive", &answer);
	if (js_u64(answer, "TTL", &ttl))
		record->free_in_ns = (ttl + 1) * CLOCK_NS_PER_S;
	json_decref(answer);
}

static int observe_part(struct etcd_lane *lane, struct baton_call *call,
			struct baton_observation *list, size_t n)
{
	struct bytes *b = etcd_begin(lane);
	json_t *answer;

	bytes_print(b, "{\"success\":[");
	for (size_t i = 0; i < n; i++)
		etcd_look(b, lane->store, list[i].name);
	bytes_print(b, "]}");
	int outcome = etcd_call(lane, call, "/v3/kv/txn?observe", &answer);

	if (outcome == BATON_OUTCOME_OK && json_array_size(js_get(answer, "responses")) != 2 * n)
		outcome = etcd_strange(call);
	for (size_t i = 0; i < n && outcome == BATON_OUTCOME_OK; i++) {
		struct etcd_known k;

		etcd_known_get(lane->store, list[i].name, &k);
		etcd_record(lane->store, list[i].name, list[i].id, answer, 2 * i, &k,
			    list[i].record);
		list[i].outcome = BATON_OUTCOME_OK;
		list[i].code = 0;
	}
	if (n == 1 && outcome == BATON_OUTCOME_OK && list->record->held && !list->record->watched)
		look_at_lease(lane, call, etcd_kv(answer, 0), list->record);
	json_decref(answer);
	for (size_t i = 0; i < n && outcome == BATON_OUTCOME_OK; i++)
		outcome = check_target(lane, call, &list[i]);
	return outcome;
}

void etcd_observe(void *l, struct baton_call *call, struct baton_observation *list, size_t n)
{
	for (size_t done = 0; done < n;) {
		size_t k = n - done < ETCD_CHUNK ? n - done : ETCD_CHUNK;
		int outcome = observe_part(l, call, list + done, k);

		for (size_t i = done; outcome != BATON_OUTCOME_OK && i < done + k; i++) {
			list[i].outcome =
				outcome == BATON_OUTCOME_REFUSED ? BATON_OUTCOME_FAILED : outcome;
			list[i].code = call->error.code;
			*list[i].record = (struct baton_record){.free_in_ns = BATON_STORE_NEVER};
		}
		done += k;
	}
}
