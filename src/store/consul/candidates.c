/*
 * candidates.c: how candidates show themselves to each other.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/consul/consul.h"

/* Writes the candidate; asks for the others, and for the claim, which shows the leader's profile,
 * too. */
static void candidate_put(struct consul_lane *lane, const struct baton_lease *lease,
			  const char *session, const struct baton_publication *p)
{
	struct consul_key key = consul_candidate_key(lane->store, p->name, session);
	struct consul_key all = consul_candidate_key(lane->store, p->name, "");
	char *text = web_candidate_text(lease, &p->profile);
	struct consul_op lock = {
		.verb = "lock", .key = &key, .value = text != NULL ? text : "", .session = session};
	struct consul_op list = {.verb = "get-tree", .key = &all};

	consul_op(lane, &lock);
	consul_op(lane, &list);
	consul_op_read(lane, p->name);
	lane->web.body.has_failed = lane->web.body.has_failed || text == NULL;
	free(text);
}

/*
 * Writes the same claim with the new profile, unless the claim has changed meanwhile. It locks the
 * key again, which we have locked already: any other write would set its LockIndex back, and with
 * it the next terms (S3).
 */
static int candidate_show_leader(struct consul_lane *lane, struct baton_call *call,
				 const struct baton_lease *lease, const char *session,
				 const struct baton_publication *p, const struct baton_record *r,
				 uint64_t index)
{
	struct consul_key key = consul_lock_key(lane->store, p->name);
	char *text = web_claim_text(lease, r->nonce, r->since_ms, &p->profile);
	struct consul_op op = {.verb = "lock",
			       .key = &key,
			       .value = text != NULL ? text : "",
			       .session = session,
			       .is_lock = true};
	struct consul_answer answer;
	struct consul_known known;

	consul_begin(lane);
	consul_op_check(lane, &key, index);
	consul_op(lane, &op);
	lane->web.body.has_failed = lane->web.body.has_failed || text == NULL;
	free(text);
	int outcome = consul_txn(lane, call, "publish", &answer);

	consul_known_get(lane->store, p->name, &known);
	if (outcome == BATON_OUTCOME_OK && known.claim_index == index &&
	    js_u64(consul_find(&answer, key.text), "ModifyIndex", &known.claim_index))
		consul_known_set(lane->store, p->name, &known);
	json_decref(answer.json);
	return outcome;
}

/* OK also if another has the claim, or if the claim shows the profile already. */
static int candidate_show_if_leader(struct consul_lane *lane, struct baton_call *call,
				    const struct baton_lease *lease, const char *session,
				    const struct baton_publication *p,
				    const struct consul_answer *answer)
{
	struct consul_key key = consul_lock_key(lane->store, p->name);
	const json_t *claim = consul_find(answer, key.text);
	struct baton_record record = {.nonce = 0};
	uint64_t index = 0;
	bool is_foreign;

	if (!js_u64(claim, "ModifyIndex", &index) ||
	    !consul_read_claim(claim, &record, &is_foreign) ||
	    strcmp(record.lease_id, lease->id) != 0 || web_claim_shows(&record, &p->profile))
		return BATON_OUTCOME_OK;
	return candidate_show_leader(lane, call, lease, session, p, &record, index);
}

static int publish_part(struct consul_lane *lane, struct baton_call *call,
			const struct baton_lease *lease, const char *session,
			struct baton_publication *list, size_t n)
{
	struct consul_answer answer;
	size_t op;

	consul_begin(lane);
	for (size_t i = 0; i < n; i++) {
		candidate_put(lane, lease, session, &list[i]);
		if (!consul_shown_add(lane->store, session, list[i].name))
			lane->web.body.has_failed = true;
	}
	int outcome = consul_txn(lane, call, "publish", &answer);

	if (outcome == BATON_OUTCOME_OK && answer.status == 409)
		outcome = consul_error(call, &answer, 0, &op) == CONSUL_DENIED
				  ? BATON_OUTCOME_FAILED
				  : BATON_OUTCOME_REFUSED;
	for (size_t i = 0; i < n && outcome == BATON_OUTCOME_OK; i++) {
		list[i].outcome =
			candidate_show_if_leader(lane, call, lease, session, &list[i], &answer);
		list[i].code = list[i].outcome == BATON_OUTCOME_OK ? 0 : call->error.code;
	}
	if (outcome == BATON_OUTCOME_OK)
		consul_sweep(lane, call, &answer);
	json_decref(answer.json);
	return outcome;
}

void consul_publish(void *l, struct baton_call *call, const struct baton_lease *lease,
		    struct baton_publication *list, size_t n)
{
	struct consul_lane *lane = l;
	struct web_lease own;
	bool has_lease = web_lease_get(&lane->store->web, lease->id, &own);

	for (size_t done = 0; done < n;) {
		size_t k = n - done < CONSUL_CHUNK ? n - done : CONSUL_CHUNK;
		int outcome = !has_lease
				      ? BATON_OUTCOME_REFUSED
				      : publish_part(lane, call, lease, own.name, list + done, k);

		for (size_t i = done; outcome != BATON_OUTCOME_OK && i < done + k; i++) {
			list[i].outcome = outcome;
			list[i].code = call->error.code;
		}
		done += k;
	}
}

int consul_withdraw(void *l, struct baton_call *call, const struct baton_lease *lease,
		    const char *name)
{
	struct consul_lane *lane = l;
	struct consul_answer answer;
	struct web_lease own;

	if (!web_lease_get(&lane->store->web, lease->id, &own))
		return BATON_OUTCOME_OK;
	struct consul_key key = consul_candidate_key(lane->store, name, own.name);
	struct consul_op op = {.verb = "delete", .key = &key};
	size_t i;

	consul_begin(lane);
	consul_op(lane, &op);
	int outcome = consul_txn(lane, call, "withdraw", &answer);

	if (outcome == BATON_OUTCOME_OK && answer.status == 409 &&
	    consul_error(call, &answer, 0, &i) == CONSUL_DENIED)
		outcome = BATON_OUTCOME_FAILED;
	if (outcome == BATON_OUTCOME_OK)
		consul_shown_remove(lane->store, own.name, name);
	json_decref(answer.json);
	return outcome;
}

int consul_candidates(void *l, struct baton_call *call, const char *name,
		      void (*found)(void *arg, const struct baton_candidate *candidate), void *arg)
{
	struct consul_lane *lane = l;
	struct consul_key all = consul_candidate_key(lane->store, name, "");
	struct consul_key lock = consul_lock_key(lane->store, name);
	struct consul_op op = {.verb = "get-tree", .key = &all};
	struct consul_answer answer;

	consul_begin(lane);
	consul_op(lane, &op);
	consul_op_read(lane, name);
	int outcome = consul_read(lane, call, "candidates", &answer);
	const json_t *results = consul_results(&answer);
	const char *leader = js_text(consul_find(&answer, lock.text), "Session");

	for (size_t i = 0; i < json_array_size(results) && outcome == BATON_OUTCOME_OK; i++) {
		const json_t *kv = js_get(json_array_get(results, i), "KV");
		const char *session = js_text(kv, "Session");
		struct baton_candidate c;
		char value[WEB_VALUE_MAX];

		if (strncmp(js_text(kv, "Key"), all.text, strlen(all.text)) != 0 ||
		    session[0] == '\0' || !js_base64(kv, "Value", value, sizeof(value)) ||
		    !web_candidate_read(value, &c))
			continue;
		c.is_leader = strcmp(session, leader) == 0;
		found(arg, &c);
	}
	json_decref(answer.json);
	return outcome;
}
