/*
 * history.c: the leaderships of an election, each under keys of its own, because a claim must not
 * need to know what was there before. etcd's revisions are the clock: a leadership began at the
 * create revision of its key, which is its term without the offset, and had ended at that of its
 * end. One that was not given back has no end: it was over when the next one began.
 *
 * Nothing here decides who leads, and nothing that fails here costs a leadership.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/etcd/etcd.h"

#define PAST_KEPT 20
#define PAST_READ 1000 /* at most */
#define ID_DIGITS 32
#define DELETES_MAX 120

/* ---- writing ---- */

void etcd_put_begun(struct bytes *b, const struct etcd_store *s, const struct etcd_key *key,
		    const char *name, uint64_t offset, const char *leader)
{
	struct etcd_key all = etcd_history_key(s, name, 0, 0, NULL);
	struct etcd_key end = etcd_key_end(&all);
	char value[BATON_NAME_MAX + 64];

	etcd_get_range(b, ETCD_THEN, &all, &end, true);
	(void)snprintf(value, sizeof(value), "%" PRIu64 " %" PRId64 " %s", offset, clock_wall_ms(),
		       leader);
	etcd_put(b, ETCD_THEN, key, value, 0);
}

void etcd_put_ended(struct bytes *b, const struct etcd_store *s, uint64_t lease,
		    const struct baton_release *r)
{
	struct etcd_key key = etcd_history_key(s, r->name, lease, r->nonce, ".end");
	char value[128];

	(void)snprintf(value, sizeof(value), "%" PRId64 " %.60s", clock_wall_ms(),
		       r->reason != NULL && r->reason[0] != '\0' ? r->reason : "released");
	etcd_put(b, ETCD_THEN, &key, value, 0);
}

/* ---- reading ---- */

struct past {
	char id[ID_DIGITS + 1];
	struct baton_leadership h;
};

struct past_list {
	struct past *at;
	size_t n;
	bool has_failed;
};

static int newest_first(const void *a, const void *b)
{
	uint64_t x = ((const struct past *)a)->h.since_ns;
	uint64_t y = ((const struct past *)b)->h.since_ns;

	return x < y ? 1 : x > y ? -1 : 0;
}

/* "ID" and what follows it, of a key of the history. False: it isn't one. */
static bool past_key(struct proto kv, char id[ID_DIGITS + 1], char what[8])
{
	char key[ETCD_KEY_MAX];
	const char *last;

	if (!proto_text(kv, ETCD_KV_KEY, key, sizeof(key)) || (last = strrchr(key, '/')) == NULL ||
	    strlen(last + 1) < ID_DIGITS || strlen(last + 1) >= ID_DIGITS + 8)
		return false;
	(void)memcpy(id, last + 1, ID_DIGITS);
	id[ID_DIGITS] = '\0';
	(void)memcpy(what, last + 1 + ID_DIGITS, strlen(last + 1 + ID_DIGITS) + 1);
	return true;
}

static void past_read_begun(struct past_list *list, const char *id, struct proto kv)
{
	struct past *p = &list->at[list->n];
	char value[BATON_NAME_MAX + 64];
	char *rest;

	*p = (struct past){.h = {.size = sizeof(p->h)}};
	(void)proto_text(kv, ETCD_KV_VALUE, value, sizeof(value));
	uint64_t offset = strtoull(value, &rest, 10);

	p->h.since_ms = strtoll(rest, &rest, 10);
	p->h.since_ns = proto_number(kv, ETCD_KV_CREATE);
	p->h.term = p->h.since_ns + offset;
	(void)snprintf(p->id, sizeof(p->id), "%s", id);
	(void)snprintf(p->h.clock, sizeof(p->h.clock), "etcd %" PRIu64, offset);
	(void)snprintf(p->h.leader, sizeof(p->h.leader), "%s", *rest == ' ' ? rest + 1 : rest);
	list->n++;
}

/* What hangs on a leadership; its key comes before these. */
static void past_read_more(struct past *p, const char *what, struct proto kv)
{
	char value[BATON_NOTE_MAX + 1];
	char *rest;

	(void)proto_text(kv, ETCD_KV_VALUE, value, sizeof(value));
	if (strcmp(what, ".note") == 0) {
		(void)snprintf(p->h.note, sizeof(p->h.note), "%s", value);
		return;
	}
	p->h.until_ms = strtoll(value, &rest, 10);
	p->h.until_ns = proto_number(kv, ETCD_KV_CREATE);
	(void)snprintf(p->h.ended, sizeof(p->h.ended), "%.60s", *rest == ' ' ? rest + 1 : rest);
}

/* Of what a range found, the newest first; to be freed. */
static struct past_list past_read(struct proto range)
{
	size_t n = proto_count(range, ETCD_RANGE_KVS);
	struct past_list list = {.at = calloc(n + 1, sizeof(list.at[0]))};
	char id[ID_DIGITS + 1];
	char what[8];

	list.has_failed = list.at == NULL;
	for (struct proto kv; !list.has_failed && proto_next(&range, ETCD_RANGE_KVS, &kv);) {
		if (!past_key(kv, id, what))
			continue;
		struct past *last = list.n > 0 ? &list.at[list.n - 1] : NULL;

		if (what[0] == '\0')
			past_read_begun(&list, id, kv);
		else if (last != NULL && strcmp(last->id, id) == 0)
			past_read_more(last, what, kv);
	}
	if (list.n > 1)
		qsort(list.at, list.n, sizeof(list.at[0]), newest_first);
	return list;
}

/* The note is that of the order which ended it; and whoever has no end has one by now, unless it is
 * the one that leads. */
static void past_tidy(struct past *p, bool is_led)
{
	if (!store_is_by_order(p->h.ended))
		p->h.note[0] = '\0';
	if (p->h.ended[0] == '\0' && !is_led)
		(void)snprintf(p->h.ended, sizeof(p->h.ended), "expired");
}

static void past_tell(struct past_list *list, const struct baton_record *now, size_t max,
		      void (*found)(void *arg, const struct baton_leadership *leadership),
		      void *arg)
{
	bool is_foreign = now->held && (list->n == 0 || now->term > list->at[0].h.term);

	if (is_foreign && max > 0) { /* another program's, which writes nothing down */
		struct baton_leadership h = {
			.size = sizeof(h), .term = now->term, .since_ms = now->since_ms};

		(void)snprintf(h.leader, sizeof(h.leader), "%s", now->leader);
		found(arg, &h);
		max--;
	}
	for (size_t i = 0; i < list->n && i < max; i++) {
		past_tidy(&list->at[i], i == 0 && now->held && !is_foreign);
		found(arg, &list->at[i].h);
	}
}

/* False: etcd_learn_nested() first. */
static bool history_ask(struct etcd_lane *lane, struct baton_call *call, const char *name,
			struct past_list *list, struct baton_record *now, int *outcome)
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
	struct past_list list = {0};
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
		past_tell(&list, &now, max, found, arg);
	free(list.at);
	return outcome == BATON_OUTCOME_OK ? outcome : BATON_OUTCOME_FAILED;
}

/* ---- pruning ---- */

static bool past_is_kept(const struct past_list *list, const char *id)
{
	for (size_t i = 0; i < list->n && i < PAST_KEPT; i++)
		if (strcmp(list->at[i].id, id) == 0)
			return true;
	return false;
}

/* The keys of all that are too old, as operations of a transaction. How many. */
static size_t prune_put(struct etcd_lane *lane, const char *name, struct proto range,
			const struct past_list *list)
{
	struct bytes *b = etcd_begin(lane);
	char id[ID_DIGITS + 1];
	char what[8];
	size_t n = 0;

	for (struct proto kv; n < DELETES_MAX && proto_next(&range, ETCD_RANGE_KVS, &kv);) {
		if (!past_key(kv, id, what) || past_is_kept(list, id))
			continue;
		struct etcd_key key = etcd_history_key(lane->store, name, 0, 0, NULL);
		size_t length = strlen(key.text);

		(void)snprintf(key.text + length, sizeof(key.text) - length, "%s%s", id, what);

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
		struct past_list list = past_read(answer);

		if (!list.has_failed && prune_put(lane, name, answer, &list) > 0)
			(void)etcd_tell(lane, &quiet, &etcd_txn);
		free(list.at);
	}
	etcd_done(&answer);
}
