/*
 * lease.c: the lease that a process keeps alive, and the claims on it. etcd gives the lease a
 * number.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/etcd/etcd.h"

#define PAGE 5000

uint64_t etcd_lease_number(struct etcd_store *s, const char *id)
{
	struct web_lease lease;

	return web_lease_get(&s->web, id, &lease) ? lease.number : 0;
}

uint64_t etcd_lease_raft_term(struct etcd_store *s, const char *id)
{
	struct web_lease lease;

	return web_lease_get(&s->web, id, &lease) ? lease.era : 0;
}

static bool lease_note(struct etcd_store *s, const struct baton_lease *lease, uint64_t number,
		       uint64_t raft_term)
{
	struct web_lease noted = {.number = number, .ttl_ns = lease->ttl_ns, .era = raft_term};

	(void)snprintf(noted.id, sizeof(noted.id), "%s", lease->id);
	return web_lease_note(&s->web, &noted);
}

/* ---- open and close ---- */

static void claims_give_back(struct etcd_lane *lane, uint64_t deadline_ns, uint64_t number);

/* Ends a lease, and deletes all its keys, in one step. OK also if the lease was gone. */
static int lease_revoke(struct etcd_lane *lane, struct baton_call *call, uint64_t number)
{
	proto_put_number(etcd_begin(lane), ETCD_LEASE_ASKED, number);
	int outcome = etcd_tell(lane, call, &etcd_revoke);

	return outcome == BATON_OUTCOME_REFUSED ? BATON_OUTCOME_OK : outcome;
}

/* The same for a lease that may have claims. Up to half of the time is for giving these back. */
static int lease_end(struct etcd_lane *lane, struct baton_call *call, uint64_t number)
{
	uint64_t now_ns = clock_boot_ns();

	if (now_ns < call->deadline_ns)
		claims_give_back(lane, now_ns + (call->deadline_ns - now_ns) / 2, number);
	return lease_revoke(lane, call, number);
}

/* Asks for the raft term. The lease is then granted in this term or in a later one
 * (unreleased.c). */
static int ask_raft_term(struct etcd_lane *lane, struct baton_call *call)
{
	struct etcd_key key = etcd_lease_key(lane->store, 1, "");

	etcd_ask_range(etcd_begin(lane), &key, NULL, 0, true);
	return etcd_tell(lane, call, &etcd_range);
}

/* etcd counts leases in whole seconds. It may grant a longer lease than we ask for, but never a
 * shorter one (A2). */
static int lease_grant(struct etcd_lane *lane, struct baton_call *call,
		       const struct baton_lease *lease, uint64_t *number)
{
	uint64_t seconds = (lease->ttl_ns + CLOCK_NS_PER_S - 1) / CLOCK_NS_PER_S;
	struct proto answer;

	proto_put_number(etcd_begin(lane), ETCD_LEASE_ASKED, seconds);
	int outcome = etcd_call(lane, call, &etcd_grant, &answer);
	uint64_t ttl = proto_number(answer, ETCD_LEASE_TTL);

	*number = proto_number(answer, ETCD_LEASE_ID);
	etcd_done(&answer);
	if (outcome == BATON_OUTCOME_OK && (*number == 0 || ttl < seconds || ttl > INT64_MAX))
		outcome = etcd_strange(call);
	return outcome;
}

/* Writes the key that exists as long as the lease does. */
static int lease_show(struct etcd_lane *lane, struct baton_call *call,
		      const struct baton_lease *lease, uint64_t number)
{
	struct etcd_key key = etcd_lease_key(lane->store, number, "");

	etcd_put(etcd_begin(lane), ETCD_THEN, &key, lease->owner, number);
	return etcd_tell(lane, call, &etcd_txn);
}

int etcd_lease_open(void *l, struct baton_call *call, const struct baton_lease *lease)
{
	struct etcd_lane *lane = l;
	struct web_lease older;
	uint64_t number;

	if (web_lease_take_older(&lane->store->web, lease->id, &older))
		(void)lease_end(lane, call, older.number); /* if this fails, it expires by itself */
	if (ask_raft_term(lane, call) != BATON_OUTCOME_OK)
		return BATON_OUTCOME_FAILED; /* FAILED: nothing was written yet */
	uint64_t raft_term = lane->raft_term;
	int outcome = lease_grant(lane, call, lease, &number);

	if (outcome != BATON_OUTCOME_OK)
		return outcome;
	outcome = lease_show(lane, call, lease, number);
	if (outcome == BATON_OUTCOME_OK && lease_note(lane->store, lease, number, raft_term))
		return BATON_OUTCOME_OK;
	if (outcome == BATON_OUTCOME_OK || outcome == BATON_OUTCOME_REFUSED)
		outcome = BATON_OUTCOME_FAILED;
	/* The new lease would stay until it expires. So it is ended now, or when the next one is
	 * opened. */
	struct baton_call quiet = {.deadline_ns = call->deadline_ns};

	if (lease_revoke(lane, &quiet, number) != BATON_OUTCOME_OK)
		(void)lease_note(lane->store, lease, number, raft_term);
	return outcome;
}

int etcd_lease_close(void *l, struct baton_call *call, const struct baton_lease *lease)
{
	struct etcd_lane *lane = l;
	uint64_t number = etcd_lease_number(lane->store, lease->id);

	if (number == 0)
		return BATON_OUTCOME_OK;
	int outcome = lease_end(lane, call, number);

	if (outcome == BATON_OUTCOME_OK || call->is_last)
		web_lease_forget(&lane->store->web, lease->id);
	return outcome;
}

/* ---- renew ---- */

/*
 * A member that believes to lead the cluster answers a keepalive out of its memory. It does so even
 * if it no longer leads (etcd #15247), or if the lease is gone already. So a renewal counts only if
 * a linearizable read that was sent after it was answered in the same raft term, and has still
 * found the lease's keys.
 */
static int lease_confirm(struct etcd_lane *lane, struct baton_call *call, uint64_t number,
			 uint64_t *n_keys)
{
	struct etcd_key key = etcd_lease_key(lane->store, number, "");
	struct etcd_key end = etcd_key_end(&key);
	uint64_t raft_term = lane->raft_term;
	struct proto answer;

	etcd_ask_range(etcd_begin(lane), &key, &end, 0, true);
	int outcome = etcd_call(lane, call, &etcd_range, &answer);

	*n_keys = proto_number(answer, ETCD_RANGE_COUNT);
	etcd_done(&answer);
	if (outcome == BATON_OUTCOME_OK && raft_term == 0) /* nothing is confirmed without it */
		return etcd_strange(call);
	if (outcome == BATON_OUTCOME_OK && lane->raft_term != raft_term) {
		(void)store_fail(&call->error, BATON_E_UNAVAILABLE,
				 "the leader of the etcd cluster has changed since the "
				 "renewal: it may not have counted");
		outcome = BATON_OUTCOME_UNKNOWN;
	}
	return outcome;
}

static int lease_keep_alive(struct etcd_lane *lane, struct baton_call *call, uint64_t number)
{
	struct proto answer;

	proto_put_number(etcd_begin(lane), ETCD_LEASE_ASKED, number);
	int outcome = etcd_call(lane, call, &etcd_keep_alive, &answer);

	/* A ttl of 0 means that there is no such lease. */
	if (outcome == BATON_OUTCOME_OK && proto_number(answer, ETCD_LEASE_TTL) == 0)
		outcome = BATON_OUTCOME_REFUSED;
	etcd_done(&answer);
	return outcome;
}

int etcd_lease_renew(void *l, struct baton_call *call, const struct baton_lease *lease,
		     uint32_t *n_held)
{
	struct etcd_lane *lane = l;
	uint64_t number = etcd_lease_number(lane->store, lease->id);
	uint64_t n_keys = 0;

	if (number == 0)
		return BATON_OUTCOME_REFUSED;
	int outcome = lease_keep_alive(lane, call, number);

	if (outcome == BATON_OUTCOME_OK)
		outcome = lease_confirm(lane, call, number, &n_keys);
	if (outcome == BATON_OUTCOME_OK && n_keys == 0)
		outcome = BATON_OUTCOME_REFUSED;
	*n_held = outcome == BATON_OUTCOME_OK ? (uint32_t)(n_keys - 1) : 0;
	return outcome;
}

/* ---- the claims on it ---- */

/* What the lease says of a claim: "nonce offset" under the election's name. */
struct held {
	char name[BATON_NAME_MAX + 1];
	uint64_t nonce;
	uint64_t offset;
	uint64_t revision;
};

static bool claim_read_numbers(const char *text, struct held *out)
{
	char *end;

	out->nonce = strtoull(text, &end, 10);
	if (end == text || *end != ' ')
		return false;
	text = end + 1;
	out->offset = strtoull(text, &end, 10);
	return end != text && *end == '\0';
}

static bool claim_read(const struct etcd_store *s, struct proto kv, struct held *out)
{
	char key[ETCD_KEY_MAX];
	char value[64];

	out->revision = proto_number(kv, ETCD_KV_MOD);
	return proto_text(kv, ETCD_KV_KEY, key, sizeof(key)) &&
	       etcd_key_read(s, key, out->name) == 'o' && out->name[0] != '\0' &&
	       proto_text(kv, ETCD_KV_VALUE, value, sizeof(value)) &&
	       claim_read_numbers(value, out);
}

/* For claims that were deleted by hand: deletes what the lease says of them, too, unless that is
 * newer. */
static int claims_sweep(struct etcd_lane *lane, struct baton_call *call, uint64_t number,
			const struct held *list, size_t n)
{
	struct bytes *b = etcd_begin(lane);

	for (size_t i = 0; i < n; i++) {
		struct etcd_key key = etcd_lease_key(lane->store, number, list[i].name);
		struct etcd_nest nest = etcd_begin_txn(b, ETCD_THEN);

		etcd_compare(b, &key, NULL, ETCD_IS_MOD, list[i].revision);
		etcd_delete(b, ETCD_THEN, &key);
		etcd_end_txn(b, nest);
	}
	return etcd_tell(lane, call, &etcd_txn);
}

/* Whether we know this claim: we were told that we have won it, or have checked it before. */
static bool claim_is_known(struct etcd_store *s, const struct held *held)
{
	struct etcd_known k;

	etcd_known_get(s, held->name, &k);
	return k.claim_mod != 0 && k.claim_mod == held->revision;
}

static void claim_make_known(struct etcd_store *s, const struct held *held)
{
	struct etcd_known k;

	etcd_known_get(s, held->name, &k);
	k.claim_mod = held->revision;
	etcd_known_set(s, held->name, &k);
}

/* Checks that the claims themselves stand as the lease says. */
static int claims_check(struct etcd_lane *lane, struct baton_call *call, uint64_t number,
			struct held *list, size_t n,
			void (*found)(void *arg, const char *name, uint64_t nonce, uint64_t term),
			void *arg)
{
	struct bytes *b = etcd_begin(lane);
	struct proto answer;
	size_t n_stale = 0;

	for (size_t i = 0; i < n; i++) {
		struct etcd_key key = etcd_claim_key(lane->store, list[i].name, number);

		etcd_get_range(b, ETCD_THEN, &key, NULL, false);
	}
	int outcome = etcd_call(lane, call, &etcd_txn, &answer);

	if (outcome == BATON_OUTCOME_OK && proto_count(answer, ETCD_TXN_RESPONSES) != n)
		outcome = etcd_strange(call);
	for (size_t i = 0; i < n && outcome == BATON_OUTCOME_OK; i++) {
		uint64_t revision = proto_number(etcd_kv(answer, i), ETCD_KV_CREATE);

		if (revision != 0 && revision == list[i].revision) {
			claim_make_known(lane->store, &list[i]);
			found(arg, list[i].name, list[i].nonce, revision + list[i].offset);
		} else {
			list[n_stale++] = list[i];
		}
	}
	etcd_done(&answer);
	return n_stale > 0 ? claims_sweep(lane, call, number, list, n_stale) : outcome;
}

/* Reads a page of what the lease says, from `from` on, and moves `from`. "": that was the last
 * page. */
static int claims_read_page(struct etcd_lane *lane, struct baton_call *call, uint64_t number,
			    struct etcd_key *from, struct proto *answer)
{
	struct etcd_key all = etcd_lease_key(lane->store, number, "");
	struct etcd_key end = etcd_key_end(&all);

	etcd_ask_range(etcd_begin(lane), from, &end, PAGE, false);
	int outcome = etcd_call(lane, call, &etcd_range, answer);
	size_t n = proto_count(*answer, ETCD_RANGE_KVS);

	if (outcome != BATON_OUTCOME_OK)
		return outcome;
	/* The next page begins at the last key with the least byte behind it. */
	if (n < PAGE || !proto_text(proto_item(*answer, ETCD_RANGE_KVS, n - 1), ETCD_KV_KEY,
				    from->text, sizeof(from->text) - 1))
		from->text[0] = '\0';
	else
		(void)memcpy(from->text + strlen(from->text), "\x01", 2);
	return outcome;
}

/*
 * What the lease says of a claim is written and deleted together with the claim. For claims that we
 * know, that is enough: if one of them is deleted by hand, the watch tells its leader. A
 * claim that we don't know may be led from now on (rule 8), so the claim itself is checked. So the
 * time that this takes hardly grows with the number of claims. It must end within one call (L3).
 */
int etcd_claims(void *l, struct baton_call *call, const struct baton_lease *lease,
		void (*found)(void *arg, const char *name, uint64_t nonce, uint64_t term),
		void *arg)
{
	struct etcd_lane *lane = l;
	uint64_t number = etcd_lease_number(lane->store, lease->id);
	struct etcd_key from = etcd_lease_key(lane->store, number, "");
	int outcome = BATON_OUTCOME_OK;

	while (number != 0 && outcome == BATON_OUTCOME_OK && from.text[0] != '\0') {
		struct held held[ETCD_CHUNK];
		struct proto page, kv;
		size_t n = 0;

		outcome = claims_read_page(lane, call, number, &from, &page);
		for (struct proto rest = page;
		     outcome == BATON_OUTCOME_OK && proto_next(&rest, ETCD_RANGE_KVS, &kv);) {
			if (!claim_read(lane->store, kv, &held[n]))
				continue;
			if (claim_is_known(lane->store, &held[n])) {
				found(arg, held[n].name, held[n].nonce,
				      held[n].revision + held[n].offset);
				continue;
			}
			if (++n < ETCD_CHUNK)
				continue;
			outcome = claims_check(lane, call, number, held, n, found, arg);
			n = 0;
		}
		if (n > 0 && outcome == BATON_OUTCOME_OK)
			outcome = claims_check(lane, call, number, held, n, found, arg);
		etcd_done(&page);
	}
	return outcome;
}

/* ---- giving back ---- */

/* Deletes the notes that these claims are not released (unreleased.c). */
static int claims_clear_unreleased(struct etcd_lane *lane, struct baton_call *call,
				   const struct held *list, size_t n)
{
	struct bytes *b = etcd_begin(lane);

	for (size_t i = 0; i < n; i++) {
		struct etcd_key unreleased =
			etcd_state_key(lane->store, list[i].name, ETCD_UNRELEASED);
		struct etcd_nest nest = etcd_begin_txn(b, ETCD_THEN);

		etcd_compare(b, &unreleased, NULL, ETCD_IS_MOD, list[i].revision);
		etcd_delete(b, ETCD_THEN, &unreleased);
		etcd_end_txn(b, nest);
	}
	return etcd_tell(lane, call, &etcd_txn);
}

/*
 * The lease is about to end, and the work on its claims has ended (S7). So its claims are as good
 * as released, and no candidate need wait any longer (unreleased.c). If this fails, the lease ends
 * all the same, and the other candidates wait.
 */
static void claims_give_back(struct etcd_lane *lane, uint64_t deadline_ns, uint64_t number)
{
	struct baton_call quiet = {.deadline_ns = deadline_ns};
	struct etcd_key from = etcd_lease_key(lane->store, number, "");
	int outcome = BATON_OUTCOME_OK;

	while (outcome == BATON_OUTCOME_OK && from.text[0] != '\0') {
		struct held held[ETCD_CHUNK];
		struct proto page, kv;
		size_t n = 0;

		outcome = claims_read_page(lane, &quiet, number, &from, &page);
		for (struct proto rest = page;
		     outcome == BATON_OUTCOME_OK && proto_next(&rest, ETCD_RANGE_KVS, &kv);) {
			if (!claim_read(lane->store, kv, &held[n]) || ++n < ETCD_CHUNK)
				continue;
			outcome = claims_clear_unreleased(lane, &quiet, held, n);
			n = 0;
		}
		if (n > 0 && outcome == BATON_OUTCOME_OK)
			outcome = claims_clear_unreleased(lane, &quiet, held, n);
		etcd_done(&page);
	}
}
