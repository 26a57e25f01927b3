/*
 * history.c: the leaderships of an election, each under keys of its own; see store/web/past.c. The
 * cluster's count of writes is the clock: a leadership began at the CreateIndex of its key, and had
 * ended at the CreateIndex of its end's key. Its term is that of the lock. A candidate knows this
 * term when it claims only if no other session has had the lock meanwhile. Else campaign.c
 * writes it again afterwards.
 *
 * Nothing here decides who leads, and nothing that fails here costs a leadership.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/consul/consul.h"

/* How many keys one transaction deletes. */
#define DELETES_MAX 60

/* ---- writing ---- */

static void history_put(struct consul_lane *lane, const struct consul_key *key, char *value)
{
	struct consul_op op = {.verb = "set", .key = key, .value = value != NULL ? value : ""};

	consul_op(lane, &op);
	lane->web.body.has_failed = lane->web.body.has_failed || value == NULL;
	free(value);
}

void consul_op_begun(struct consul_lane *lane, const char *name, const char *session,
		     uint64_t nonce, uint64_t native, uint64_t offset, const char *leader)
{
	struct consul_key key = consul_history_key(lane->store, name, session, nonce, "");
	struct baton_leadership before;
	bool has_before = web_index_get_foreign(lane->store->web.watches, name, &before);

	history_put(lane, &key,
		    web_past_begun(native, offset, leader, has_before ? &before : NULL));
}

void consul_op_ended(struct consul_lane *lane, const char *session, const struct baton_release *r)
{
	struct consul_key key = consul_history_key(lane->store, r->name, session, r->nonce, ".end");

	history_put(lane, &key, web_past_ended(r));
}

/* ---- reading ---- */

/* Makes a list, the newest first, of the history's keys in an answer. The caller frees it. */
static struct web_past_list history_read(const struct consul_lane *lane, const char *name,
					 const struct consul_answer *answer)
{
	struct consul_key all = consul_history_key(lane->store, name, "", 0, NULL);
	const json_t *results = consul_results(answer);
	struct web_past_list list = {.at = NULL};
	char value[WEB_VALUE_MAX];

	for (size_t i = 0; i < json_array_size(results); i++) {
		const json_t *kv = js_get(json_array_get(results, i), "KV");
		struct web_past_key key = {.key = js_text(kv, "Key"), .service = "consul"};

		if (strncmp(key.key, all.text, strlen(all.text)) != 0 ||
		    !js_u64(kv, "CreateIndex", &key.made) ||
		    !js_base64(kv, "Value", value, sizeof(value)))
			continue;
		key.native = consul_new_native(key.made);
		web_past_read(&list, &key, value);
	}
	web_past_sort(&list);
	return list;
}

static void history_op_read(struct consul_lane *lane, const char *name)
{
	struct consul_key all = consul_history_key(lane->store, name, "", 0, NULL);
	struct consul_op op = {.verb = "get-tree", .key = &all};

	consul_begin(lane);
	consul_op(lane, &op);
}

int consul_history(void *l, struct baton_call *call, const char *name, size_t max,
		   void (*found)(void *arg, const struct baton_leadership *leadership), void *arg)
{
	struct consul_lane *lane = l;
	struct consul_answer answer;
	struct consul_known known;
	struct baton_record now;

	history_op_read(lane, name);
	consul_op_read(lane, name);
	int outcome = consul_read(lane, call, "history", &answer);

	if (outcome == BATON_OUTCOME_OK) {
		struct web_past_list list = history_read(lane, name, &answer);

		consul_known_get(lane->store, name, &known);
		consul_record(lane->store, name, "", &answer, &known, &now);
		if (list.has_failed) {
			(void)store_fail(&call->error, BATON_E_MEMORY, "no memory for the history");
			outcome = BATON_OUTCOME_FAILED;
		} else {
			web_past_tell(&list, &now, max, found, arg);
		}
		free(list.at);
	}
	json_decref(answer.json);
	return outcome == BATON_OUTCOME_OK ? outcome : BATON_OUTCOME_FAILED;
}

/* ---- pruning ---- */

/* Whether it is this call's turn to prune. The index is shuffled, because elections that change
 * hands regularly write at regular indexes. */
static bool is_turn(uint64_t index, unsigned one_in)
{
	return (index * UINT64_C(0x9E3779B97F4A7C15) >> 32) % one_in == 0;
}

/* Adds operations that delete the keys of leaderships that are too old. */
static void prune_put(struct consul_lane *lane, const char *name,
		      const struct consul_answer *answer)
{
	struct web_past_list list = history_read(lane, name, answer);
	const json_t *results = consul_results(answer);

	consul_begin(lane);
	for (size_t i = 0; !list.has_failed && i < json_array_size(results); i++) {
		const char *at = js_text(js_get(json_array_get(results, i), "KV"), "Key");
		struct consul_key key;
		struct consul_op op = {.verb = "delete", .key = &key};

		if (lane->n_ops == DELETES_MAX || strlen(at) >= sizeof(key.text) ||
		    web_past_is_kept(&list, at))
			continue;
		(void)snprintf(key.text, sizeof(key.text), "%s", at);
		consul_op(lane, &op);
	}
	free(list.at);
}

void consul_prune_history(struct consul_lane *lane, const struct baton_call *call, const char *name,
			  uint64_t index, unsigned one_in)
{
	struct baton_call quiet = {.deadline_ns = call->deadline_ns};
	struct consul_answer answer;

	if (!is_turn(index, one_in))
		return;
	history_op_read(lane, name);
	int outcome = consul_read(lane, &quiet, "history", &answer);

	if (outcome == BATON_OUTCOME_OK)
		prune_put(lane, name, &answer);
	json_decref(answer.json);
	if (outcome == BATON_OUTCOME_OK && lane->n_ops > 0) {
		(void)consul_txn(lane, &quiet, "prune", &answer);
		json_decref(answer.json);
	}
}
