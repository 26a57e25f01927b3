/*
 * history.c: the leaderships of an election, each under keys of its own; see store/web/past.c.
 * etcd's revisions are the clock: a leadership began at the create revision of its key, which is
 * its term without the offset, and had ended at the create revision of its end's key.
 *
 * Nothing here decides who leads, and nothing that fails here costs a leadership.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/etcd/etcd.h"

#define PAST_READ 1000 /* at most */
#define DELETES_MAX 120

/* ---- writing ---- */

void etcd_put_begun(struct bytes *b, const struct etcd_store *s, const struct etcd_key *key,
		    const char *name, uint64_t offset, const char *leader)
{
	struct etcd_key all = etcd_history_key(s, name, 0, 0, NULL);
	struct etcd_key end = etcd_key_end(&all);
	struct baton_leadership before;
	bool has_before = web_index_get_foreign(s->web.watches, name, &before);
	char *value = web_past_begun(0, offset, leader, has_before ? &before : NULL);

	etcd_get_range(b, ETCD_THEN, &all, &end, true);
	etcd_put(b, ETCD_THEN, key, value != NULL ? value : "", 0);
	b->has_failed = b->has_failed || value == NULL;
	free(value);
}

void etcd_put_ended(struct bytes *b, const struct etcd_store *s, uint64_t lease,
		    const struct baton_release *r)
{
	struct etcd_key key = etcd_history_key(s, r->name, lease, r->nonce, ".end");
	char *value = web_past_ended(r);

	etcd_put(b, ETCD_THEN, &key, value != NULL ? value : "", 0);
	b->has_failed = b->has_failed || value == NULL;
	free(value);
}

/* ---- reading ---- */

/* Makes a list, the newest first, of what a range has found. The caller frees it. */
static struct web_past_list past_read(struct proto range)
{
	struct web_past_list list = {.at = NULL};
	char name[ETCD_KEY_MAX];
	char value[WEB_VALUE_MAX];

	for (struct proto kv; proto_next(&range, ETCD_RANGE_KVS, &kv);) {
		uint64_t made = proto_number(kv, ETCD_KV_CREATE);
		struct web_past_key key = {
			.key = name, .service = "etcd", .made = made, .native = made};

		if (proto_text(kv, ETCD_KV_KEY, name, sizeof(name)) &&
		    proto_text(kv, ETCD_KV_VALUE, value, sizeof(value)))
			web_past_read(&list, &key, value);
	}
	web_past_sort(&list);
	return list;
}

/* False: call etcd_learn_nested(), and ask again. */
static bool history_ask(struct etcd_lane *lane, struct baton_call *call, const char *name,
			struct web_past_list *list, struct baton_record *now, int *outcome)
{
	struct etcd_key all = etcd_history_key(lane->store, name, 0, 0, NULL);
	struct bytes *b = etcd_begin(lane);
	struct etcd_known k;
	struct proto answer;

	etcd_get(b, ETCD_THEN, &all);
	size_t n = etcd_get_election(b, ETCD_THEN, lane->store, name);

	*outcome = etcd_call(lane, call, &etcd_txn, &answer);
	etcd_known_get(lane->store, name, &k);
	bool is_read =
		*outcome != BATON_OUTCOME_OK || etcd_record(lane, name, "", answer, 1, n, &k, now);

	if (*outcome == BATON_OUTCOME_OK && is_read)
		*list = past_read(etcd_response(answer, 0, ETCD_OP_RANGE));
	etcd_done(&answer);
	return is_read;
}

int etcd_history(void *l, struct baton_call *call, const char *name, size_t max,
		 void (*found)(void *arg, const struct baton_leadership *leadership), void *arg)
{
	struct etcd_lane *lane = l;
	struct web_past_list list = {0};
	struct baton_record now;
	int outcome;

	if (!history_ask(lane, call, name, &list, &now, &outcome)) {
		outcome = etcd_learn_nested(lane, call, name);
		if (outcome == BATON_OUTCOME_OK)
			(void)history_ask(lane, call, name, &list, &now, &outcome);
	}
	if (list.has_failed) {
		(void)store_fail(&call->error, BATON_E_MEMORY, "no memory for the history");
		outcome = BATON_OUTCOME_FAILED;
	}
	if (outcome == BATON_OUTCOME_OK)
		web_past_tell(&list, &now, max, found, arg);
	free(list.at);
	return outcome == BATON_OUTCOME_OK ? outcome : BATON_OUTCOME_FAILED;
}

/* ---- pruning ---- */

/* Adds operations that delete the keys of leaderships that are too old. Returns how many. */
static size_t prune_put(struct etcd_lane *lane, struct proto range,
			const struct web_past_list *list)
{
	struct bytes *b = etcd_begin(lane);
	struct etcd_key key;
	size_t n = 0;

	for (struct proto kv; n < DELETES_MAX && proto_next(&range, ETCD_RANGE_KVS, &kv);) {
		if (!proto_text(kv, ETCD_KV_KEY, key.text, sizeof(key.text)) ||
		    web_past_is_kept(list, key.text))
			continue;
		etcd_delete(b, ETCD_THEN, &key);
		n++;
	}
	return n;
}

void etcd_prune_history(struct etcd_lane *lane, const struct baton_call *call, const char *name)
{
	struct baton_call quiet = {.deadline_ns = call->deadline_ns};
	struct etcd_key all = etcd_history_key(lane->store, name, 0, 0, NULL);
	struct etcd_key end = etcd_key_end(&all);
	struct proto answer;

	etcd_ask_range(etcd_begin(lane), &all, &end, PAST_READ, false);
	if (etcd_call(lane, &quiet, &etcd_range, &answer) == BATON_OUTCOME_OK) {
		struct web_past_list list = past_read(answer);

		if (!list.has_failed && prune_put(lane, answer, &list) > 0)
			(void)etcd_tell(lane, &quiet, &etcd_txn);
		free(list.at);
	}
	etcd_done(&answer);
}
