/*
 * candidates.c: how candidates show themselves to each other.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/etcd/etcd.h"

/* Writes the candidate; and asks for its claim, which shows the profile, too. */
static void candidate_put(struct bytes *b, const struct etcd_store *s,
			  const struct baton_lease *lease, uint64_t number,
			  const struct baton_publication *p)
{
	struct etcd_key key = etcd_candidate_key(s, p->name, number);
	struct etcd_key claim = etcd_claim_key(s, p->name, number);
	char *text = web_candidate_text(lease, &p->profile);

	b->has_failed = b->has_failed || text == NULL;
	etcd_put(b, ETCD_THEN, &key, text != NULL ? text : "", number);
	etcd_get_range(b, ETCD_THEN, &claim, NULL, false);
	free(text);
}

/* Writes the same claim with the new profile, unless the claim has changed meanwhile. */
static int candidate_show_leader(struct etcd_lane *lane, struct baton_call *call,
				 const struct baton_lease *lease, uint64_t number,
				 const struct baton_publication *p, const struct baton_record *r,
				 uint64_t mod)
{
	struct etcd_key claim = etcd_claim_key(lane->store, p->name, number);
	char *text = web_claim_text(lease, r->nonce, r->since_ms, &p->profile);
	struct bytes *b = etcd_begin(lane);

	etcd_compare(b, &claim, NULL, ETCD_IS_MOD, mod);
	b->has_failed = b->has_failed || text == NULL;
	etcd_put(b, ETCD_THEN, &claim, text != NULL ? text : "", number);
	free(text);
	return etcd_tell(lane, call, &etcd_txn);
}

static int publish_part(struct etcd_lane *lane, struct baton_call *call,
			const struct baton_lease *lease, uint64_t number,
			struct baton_publication *list, size_t n)
{
	struct baton_record record;
	struct bytes *b = etcd_begin(lane);
	struct proto answer;

	for (size_t i = 0; i < n; i++)
		candidate_put(b, lane->store, lease, number, &list[i]);
	int outcome = etcd_call(lane, call, &etcd_txn, &answer);

	for (size_t i = 0; i < n && outcome == BATON_OUTCOME_OK; i++) {
		struct proto claim = etcd_kv(answer, 2 * i + 1);

		list[i].outcome = BATON_OUTCOME_OK;
		list[i].code = 0;
		if (claim.at == NULL)
			continue;
		(void)etcd_read_claim(claim, &record);
		if (web_claim_shows(&record, &list[i].profile) ||
		    strcmp(record.lease_id, lease->id) != 0)
			continue;
		list[i].outcome = candidate_show_leader(lane, call, lease, number, &list[i],
							&record, proto_number(claim, ETCD_KV_MOD));
		list[i].code = list[i].outcome == BATON_OUTCOME_OK ? 0 : call->error.code;
	}
	etcd_done(&answer);
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

	if (number == 0)
		return BATON_OUTCOME_OK;
	etcd_delete(etcd_begin(lane), ETCD_THEN, &key);
	return etcd_tell(lane, call, &etcd_txn);
}

static bool candidate_read(struct proto kv, uint64_t leader, struct baton_candidate *c)
{
	char value[WEB_VALUE_MAX];

	if (!proto_text(kv, ETCD_KV_VALUE, value, sizeof(value)) || !web_candidate_read(value, c))
		return false;
	c->is_leader = leader != 0 && proto_number(kv, ETCD_KV_LEASE) == leader;
	return true;
}

/* Asks for the candidates, and for the lease of the leader (0: none). The caller frees the answer.
 * *is_read: the claim could be read. Returns an outcome. */
static int candidates_ask(struct etcd_lane *lane, struct baton_call *call, const char *name,
			  struct proto *answer, uint64_t *leader, bool *is_read)
{
	struct etcd_key all = etcd_candidate_key(lane->store, name, 0);
	struct bytes *b = etcd_begin(lane);
	struct proto claim = {NULL, 0};

	etcd_get(b, ETCD_THEN, &all);
	size_t n = etcd_get_claims(b, ETCD_THEN, lane->store, name);
	int outcome = etcd_call(lane, call, &etcd_txn, answer);

	*is_read = etcd_first_claim(lane->store, name, *answer, 1, n, &claim);
	*leader = proto_number(claim, ETCD_KV_LEASE);
	return outcome;
}

int etcd_candidates(void *l, struct baton_call *call, const char *name,
		    void (*found)(void *arg, const struct baton_candidate *candidate), void *arg)
{
	struct etcd_lane *lane = l;
	struct proto answer;
	uint64_t leader;
	bool is_read;
	int outcome = candidates_ask(lane, call, name, &answer, &leader, &is_read);

	if (outcome == BATON_OUTCOME_OK && !is_read) {
		etcd_done(&answer);
		outcome = etcd_learn_nested(lane, call, name);
		if (outcome == BATON_OUTCOME_OK)
			outcome = candidates_ask(lane, call, name, &answer, &leader, &is_read);
	}
	struct proto rest = etcd_response(answer, 0, ETCD_OP_RANGE);

	for (struct proto kv; proto_next(&rest, ETCD_RANGE_KVS, &kv);) {
		struct baton_candidate c;

		if (candidate_read(kv, leader, &c))
			found(arg, &c);
	}
	etcd_done(&answer);
	return outcome;
}
