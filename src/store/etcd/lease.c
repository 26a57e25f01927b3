/*
 * lease.c: the lease that a process keeps alive, and the claims on it. etcd picks its number.
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

/* All that hangs on it goes with it, in one step. OK also if it was gone. */
static int lease_revoke(struct etcd_lane *lane, struct baton_call *call, uint64_t number)
{
	proto_put_number(etcd_begin(lane), ETCD_LEASE_ASKED, number);
	int outcome = etcd_tell(lane, call, &etcd_revoke);

	return outcome == BATON_OUTCOME_REFUSED ? BATON_OUTCOME_OK : outcome;
}

/* The same for one that may carry claims: half the time is theirs. */
static int lease_end(struct etcd_lane *lane, struct baton_call *call, uint64_t number)
{
	uint64_t now_ns = clock_boot_ns();

	if (now_ns < call->deadline_ns)
		claims_give_back(lane, now_ns + (call->deadline_ns - now_ns) / 2, number);
	return lease_revoke(lane, call, number);
}

/* Which one it is, before a lease is granted in it or in a later one (unreleased.c). */
static int ask_raft_term(struct etcd_lane *lane, struct baton_call *call)
{
	struct etcd_key key = etcd_lease_key(lane->store, 1, "");

	etcd_ask_range(etcd_begin(lane), &key, NULL, 0, true);
	return etcd_tell(lane, call, &etcd_range);
}

/* etcd counts whole seconds, and may give more than is asked for; never less (A2). */
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

/* A key that is there as long as the lease is. */
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
		(void)lease_end(lane, call, older.number); /* else it ends by itself */
	if (ask_raft_term(lane, call) != BATON_OUTCOME_OK)
		return BATON_OUTCOME_FAILED; /* nothing was written yet */
	uint64_t raft_term = lane->raft_term;
	int outcome = lease_grant(lane, call, lease, &number);

	if (outcome != BATON_OUTCOME_OK)
		return outcome;
	outcome = lease_show(lane, call, lease, number);
	if (outcome == BATON_OUTCOME_OK && lease_note(lane->store, lease, number, raft_term))
		return BATON_OUTCOME_OK;
	if (outcome == BATON_OUTCOME_OK || outcome == BATON_OUTCOME_REFUSED)
		outcome = BATON_OUTCOME_FAILED;
	/* Nobody keeps it alive, but it would stay for its time: ended now, or by the next. */
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
 * A member answers a keepalive out of its memory if it believes to lead: also when it leads no more
 * (etcd #15247), or when the lease is gone already. So a renewal counts only when a read through
 * the whole cluster, sent after it, was answered in the same term of that cluster's leadership, and
 * still found what hangs on the lease.
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
	if (outcome == BATON_OUTCOME_OK && raft_term == 0) /* without it nothing is confirmed */
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

	/* No time left: there is none such, that is how it says it. */
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

/* ---- what it holds ---- */

/* "nonce offset" behind a claim's name in the lease. */
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

/* The claim was taken away by hand: what the lease says of it goes, too, unless it is newer. */
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

/* We have won it, and were told so, or have looked at it before. */
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

/* What the lease says is one half; the claims themselves are the other. */
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

/* A page of what the lease holds, from `from` on, which moves; "": that was the last one. */
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
	/* The next key is the last one with the least byte behind it. */
	if (n < PAGE || !proto_text(proto_item(*answer, ETCD_RANGE_KVS, n - 1), ETCD_KV_KEY,
				    from->text, sizeof(from->text) - 1))
		from->text[0] = '\0';
	else
		(void)memcpy(from->text + strlen(from->text), "\x01", 2);
	return outcome;
}

/*
 * What the lease says of a claim is written and deleted together with it, so of those that we know
 * it is enough: if one of them was deleted by hand, that is pushed, and who leads by it looks. One
 * that we don't know may be led from now on (rule 8), and is looked at itself. So the time that
 * this takes hardly grows with the claims: it has to end within one call (L3).
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

/* The notes of these claims that they are not released (unreleased.c). */
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
 * The lease is to end, and whoever led on it has ended its work (S7): so what it still carries is
 * as good as released, and nobody need wait for longer (unreleased.c). That it can't be said is no
 * reason to stay: then they do.
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
