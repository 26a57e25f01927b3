/*
 * release.c: gives claims back. As with campaigns, one transaction serves many elections, with a
 * nested transaction for each of them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/etcd/etcd.h"

void etcd_put_removal(struct bytes *b, const struct etcd_store *s, const char *name,
		      uint64_t number, uint64_t revision, const struct baton_release *r)
{
	struct etcd_key claim = etcd_claim_key(s, name, number);
	struct etcd_key held = etcd_lease_key(s, number, name);
	struct etcd_key unreleased = etcd_state_key(s, name, ETCD_UNRELEASED);

	etcd_delete(b, ETCD_THEN, &held);
	struct etcd_nest nest = etcd_begin_txn(b, ETCD_THEN);

	etcd_compare(b, &claim, NULL, ETCD_IS_CREATE, revision);
	etcd_delete(b, ETCD_THEN, &claim);
	etcd_delete(b, ETCD_THEN, &unreleased);
	if (r != NULL)
		etcd_put_ended(b, s, number, r);
	if (r != NULL && r->reserve_for != NULL && r->reserve_for[0] != '\0') {
		struct etcd_key reserved = etcd_state_key(s, name, "reserved");
		json_t *value = web_reserve_make(r);
		char *text = json_dumps(value, JSON_COMPACT);

		b->has_failed = b->has_failed || text == NULL;
		etcd_put(b, ETCD_THEN, &reserved, text != NULL ? text : "", 0);
		free(text);
		json_decref(value);
	}
	etcd_end_txn(b, nest);
}

/* S6: what the lease says of the claim shows lease, nonce and term; the claim itself shows the term
 * again. */
static void release_put(struct bytes *b, const struct etcd_store *s, const struct baton_release *r,
			uint64_t number, uint64_t offset)
{
	struct etcd_key held = etcd_lease_key(s, number, r->name);
	struct etcd_key offset_key = etcd_state_key(s, r->name, "offset");
	uint64_t revision = r->term > offset ? r->term - offset : 0;
	char words[64];

	(void)snprintf(words, sizeof(words), "%" PRIu64 " %" PRIu64, r->nonce, offset);
	struct etcd_nest nest = etcd_begin_txn(b, ETCD_THEN);

	etcd_compare(b, &held, NULL, ETCD_IS_MOD, revision);
	etcd_compare_value(b, &held, words);
	etcd_put_removal(b, s, r->name, number, revision, r);
	etcd_get_range(b, ETCD_ELSE, &offset_key, NULL, false);
	etcd_end_txn(b, nest);
}

/* True: the release must be tried again, with the offset that we know now. */
static bool release_hear(struct baton_release *r, struct etcd_known *k, struct proto answer)
{
	uint64_t offset = k->offset;
	char value[32];

	r->code = 0;
	if (proto_number(answer, ETCD_TXN_SUCCEEDED) != 0) {
		struct proto claim = etcd_response(answer, 1, ETCD_OP_TXN);

		r->outcome = proto_number(claim, ETCD_TXN_SUCCEEDED) != 0 ? BATON_OUTCOME_OK
									  : BATON_OUTCOME_REFUSED;
		return false;
	}
	r->outcome = BATON_OUTCOME_REFUSED;
	(void)proto_text(etcd_kv(answer, 0), ETCD_KV_VALUE, value, sizeof(value));
	k->offset = strtoull(value, NULL, 10);
	return k->offset != offset;
}

static int release_part(struct etcd_lane *lane, struct baton_call *call,
			struct baton_release **list, struct etcd_known *known, size_t n,
			bool *is_again)
{
	struct bytes *b = etcd_begin(lane);
	struct proto answer;

	for (size_t i = 0; i < n; i++)
		release_put(b, lane->store, list[i],
			    etcd_lease_number(lane->store, list[i]->lease_id), known[i].offset);
	int outcome = etcd_call(lane, call, &etcd_txn_release, &answer);

	if (outcome == BATON_OUTCOME_OK && proto_count(answer, ETCD_TXN_RESPONSES) != n)
		outcome = etcd_strange(call);
	for (size_t i = 0; i < n; i++) {
		is_again[i] = false;
		list[i]->outcome = outcome;
		list[i]->code = call->error.code;
		if (outcome == BATON_OUTCOME_OK)
			is_again[i] = release_hear(list[i], &known[i],
						   etcd_response(answer, i, ETCD_OP_TXN));
	}
	etcd_done(&answer);
	return outcome;
}

void etcd_release(void *l, struct baton_call *call, struct baton_release *list, size_t n)
{
	struct etcd_lane *lane = l;

	for (size_t done = 0; done < n;) {
		struct baton_release *part[ETCD_CHUNK];
		struct etcd_known known[ETCD_CHUNK];
		bool is_again[ETCD_CHUNK];
		size_t left = 0;

		for (; done < n && left < ETCD_CHUNK; done++) {
			etcd_known_get(lane->store, list[done].name, &known[left]);
			list[done].outcome = BATON_OUTCOME_REFUSED;
			list[done].code = 0;
			if (etcd_lease_number(lane->store, list[done].lease_id) != 0)
				part[left++] = &list[done];
		}
		for (int round = 0; round < ETCD_ROUNDS && left > 0; round++) {
			size_t again = 0;

			(void)release_part(lane, call, part, known, left, is_again);
			for (size_t i = 0; i < left; i++) {
				if (!is_again[i])
					continue;
				known[again] = known[i];
				part[again++] = part[i];
			}
			left = again;
		}
	}
}
