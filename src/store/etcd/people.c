/*
 * people.c: candidates, orders and pauses: what people and other candidates look at.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/etcd/etcd.h"

/* A transaction that is in lane->web.body, without an answer that matters. */
static int run(struct etcd_lane *lane, struct baton_call *call)
{
	json_t *answer;
	int outcome = etcd_call(lane, call, "/v3/kv/txn", &answer);

	json_decref(answer);
	return outcome;
}

/* ---- candidates ---- */

/* Shows it; and if it leads, asks for the claim, which shows the profile, too. */
static void put_candidate(struct bytes *b, const struct etcd_store *s,
			  const struct baton_lease *lease, uint64_t number,
			  const struct baton_publication *p)
{
	struct etcd_key key = etcd_candidate_key(s, p->name, number);
	struct etcd_key claim = etcd_claim_key(s, p->name, number);
	char *text = web_candidate_text(lease, &p->profile);

	b->has_failed = b->has_failed || text == NULL;
	etcd_put(b, &key, text != NULL ? text : "", number);
	etcd_range(b, &claim, true);
	free(text);
}

/* The same claim with another profile; not if it has changed meanwhile. */
static int show_leader(struct etcd_lane *lane, struct baton_call *call,
		       const struct baton_lease *lease, uint64_t number,
		       const struct baton_publication *p, const struct baton_record *r,
		       uint64_t mod)
{
	struct etcd_key claim = etcd_claim_key(lane->store, p->name, number);
	char *text = web_claim_text(lease, r->nonce, r->since_ms, &p->profile);
	struct bytes *b = web_begin(&lane->web);

	bytes_print(b, "{\"compare\":[");
	etcd_compare(b, &claim, false, "MOD", mod);
	bytes_print(b, "],\"success\":[");
	b->has_failed = b->has_failed || text == NULL;
	etcd_put(b, &claim, text != NULL ? text : "", number);
	free(text);
	bytes_print(b, "]}");
	return run(lane, call);
}

static int publish_part(struct etcd_lane *lane, struct baton_call *call,
			const struct baton_lease *lease, uint64_t number,
			struct baton_publication *list, size_t n)
{
	struct baton_record record;
	struct bytes *b = web_begin(&lane->web);
	json_t *answer;

	bytes_print(b, "{\"success\":[");
	for (size_t i = 0; i < n; i++)
		put_candidate(b, lane->store, lease, number, &list[i]);
	bytes_print(b, "]}");
	int outcome = etcd_call(lane, call, "/v3/kv/txn", &answer);

	for (size_t i = 0; i < n && outcome == BATON_OUTCOME_OK; i++) {
		const json_t *claim = etcd_kv(answer, 2 * i + 1);
		uint64_t mod = 0;

		list[i].outcome = BATON_OUTCOME_OK;
		list[i].code = 0;
		if (!js_u64(claim, "mod_revision", &mod))
			continue;
		etcd_read_claim(claim, &record);
		if (web_claim_shows(&record, &list[i].profile) ||
		    strcmp(record.lease_id, lease->id) != 0)
			continue;
		list[i].outcome = show_leader(lane, call, lease, number, &list[i], &record, mod);
		list[i].code = list[i].outcome == BATON_OUTCOME_OK ? 0 : call->error.code;
	}
	json_decref(answer);
	return outcome;
}

void etcd_publish(void *l, struct baton_call *call, const struct baton_lease *lease,
		  struct baton_publication *list, size_t n)
{
	struct etcd_lane *lane = l;
	uint64_t number = etcd_lease_number(lane->store, lease->id);

	for (size_t done = 0; done < n;) {
		size_t k = n - done < ETCD_CHUNK ? n - done : ETCD_CHUNK;
		int outcome = number == 0 ? BATON_OUTCOME_REFUSED
					  : publish_part(lane, call, lease, number, list + done, k);

		for (size_t i = done; outcome != BATON_OUTCOME_OK && i < done + k; i++) {
			list[i].outcome = outcome;
			list[i].code = call->error.code;
		}
		done += k;
	}
}

int etcd_withdraw(void *l, struct baton_call *call, const struct baton_lease *lease,
		  const char *name)
{
	struct etcd_lane *lane = l;
	uint64_t number = etcd_lease_number(lane->store, lease->id);
	struct etcd_key key = etcd_candidate_key(lane->store, name, number);
	struct bytes *b = web_begin(&lane->web);

	if (number == 0)
		return BATON_OUTCOME_OK;
	bytes_print(b, "{\"success\":[");
	etcd_delete(b, &key);
	bytes_print(b, "]}");
	return run(lane, call);
}

static bool read_candidate(const json_t *kv, uint64_t leader, struct baton_candidate *c)
{
	char value[WEB_VALUE_MAX];
	uint64_t lease = 0;

	if (!js_base64(kv, "value", value, sizeof(value)) || !web_candidate_read(value, c))
		return false;
	c->is_leader = js_u64(kv, "lease", &lease) && lease == leader;
	return true;
}

int etcd_candidates(void *l, struct baton_call *call, const char *name,
		    void (*found)(void *arg, const struct baton_candidate *candidate), void *arg)
{
	struct etcd_lane *lane = l;
	struct etcd_key all = etcd_candidate_key(lane->store, name, 0);
	struct etcd_key claims = etcd_claim_key(lane->store, name, 0);
	struct bytes *b = web_begin(&lane->web);
	uint64_t leader = 0;
	json_t *answer;

	bytes_print(b, "{\"success\":[");
	etcd_range(b, &claims, true);
	etcd_range(b, &all, false);
	bytes_print(b, "]}");
	int outcome = etcd_call(lane, call, "/v3/kv/txn", &answer);
	const json_t *kvs = etcd_kvs(answer, 1);

	(void)js_u64(etcd_kv(answer, 0), "lease", &leader);
	for (size_t i = 0; i < json_array_size(kvs); i++) {
		struct baton_candidate c;

		if (read_candidate(json_array_get(kvs, i), leader, &c))
			found(arg, &c);
	}
	json_decref(answer);
	return outcome;
}

/* ---- orders and pauses ---- */

/* Only if that leadership still stands. */
static int leave_order(struct etcd_lane *lane, struct baton_call *call, const char *name,
		       const struct etcd_key *claim, uint64_t revision,
		       const struct baton_order *order)
{
	struct etcd_key key = etcd_state_key(lane->store, name, "order");
	json_t *value = web_order_make(order);
	char *text = json_dumps(value, JSON_COMPACT);
	struct bytes *b = web_begin(&lane->web);
	json_t *answer;

	bytes_print(b, "{\"compare\":[");
	etcd_compare(b, claim, false, "CREATE", revision);
	bytes_print(b, "],\"success\":[");
	b->has_failed = b->has_failed || text == NULL;
	etcd_put(b, &key, text != NULL ? text : "", 0);
	free(text);
	json_decref(value);
	bytes_print(b, "]}");
	int outcome = etcd_call(lane, call, "/v3/kv/txn", &answer);

	if (outcome == BATON_OUTCOME_OK && !json_is_true(js_get(answer, "succeeded")))
		outcome = BATON_OUTCOME_REFUSED;
	json_decref(answer);
	return outcome;
}

int etcd_order(void *l, struct baton_call *call, const char *name, const struct baton_order *order)
{
	struct baton_record record;
	struct etcd_lane *lane = l;
	struct bytes *b = web_begin(&lane->web);
	struct etcd_known known;
	struct etcd_key claim;
	json_t *answer;
	uint64_t revision = 0;

	bytes_print(b, "{\"success\":[");
	etcd_look(b, lane->store, name);
	bytes_print(b, "]}");
	int outcome = etcd_call(lane, call, "/v3/kv/txn", &answer);

	if (outcome == BATON_OUTCOME_OK) {
		const json_t *kv = etcd_kv(answer, 0);

		etcd_known_get(lane->store, name, &known);
		etcd_record(lane->store, name, "", answer, 0, &known, &record);
		if (!record.held || record.term != order->term ||
		    !js_u64(kv, "create_revision", &revision) ||
		    !js_base64(kv, "key", claim.text, sizeof(claim.text)))
			outcome = BATON_OUTCOME_REFUSED;
	}
	json_decref(answer);
	return outcome == BATON_OUTCOME_OK ? leave_order(lane, call, name, &claim, revision, order)
					   : outcome;
}

int etcd_pause(void *l, struct baton_call *call, const char *name, bool paused)
{
	struct etcd_lane *lane = l;
	struct etcd_key key = etcd_state_key(lane->store, name, "paused");
	struct bytes *b = web_begin(&lane->web);

	bytes_print(b, "{\"success\":[");
	if (paused)
		etcd_put(b, &key, "1", 0);
	else
		etcd_delete(b, &key);
	bytes_print(b, "]}");
	return run(lane, call);
}
