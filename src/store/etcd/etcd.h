/*
 * etcd.h: what the files of the etcd driver share.
 *
 *   driver.c   the table of functions, the store and its lanes
 *   options.c  the URL
 *   key.c      keys
 *   message.c  etcd's messages: what requests and answers look like
 *   call.c     one request: choosing a member, logging in, what an answer means
 *   lease.c    the lease, and its claims
 *   campaign.c campaigning
 *   release.c  giving claims back
 *   observe.c  records
 *   nested.c   elections of other applications whose keys lie among the claims of one of ours
 *   unreleased.c  claims that ended without a release, and the wait before a new claim
 *   candidates.c  candidates
 *   orders.c   orders and pauses
 *   history.c  past leaderships
 *   list.c     names
 *   watch.c    hints
 *   doctor.c   examines the cluster
 *
 * The driver speaks gRPC with etcd, as etcd's own clients do: etcd's JSON gateway does the same,
 * but is slower. What is in the store, with the prefix "baton":
 *
 *   baton/NAME/LEASE             a claim, laid out as in etcd's own concurrency package. The claim
 *                                with the lowest create revision below NAME/ leads. We make a claim
 *                                only if there is none, so ours is the lowest
 *   baton/.election/NAME/term    written with every claim, so its mod revision is the last claim's
 *                       /unended written with every claim, deleted with its release. If the key is
 *                                there without the claim, the claim ended otherwise (unreleased.c)
 *                       /offset  what is added to revisions; only there when the cluster lost data
 *                       /paused /reserved /order
 *   baton.candidate/NAME/LEASE   a candidate
 *   baton.history/NAME/ID        a leadership, written with its claim; JSON. The create revision is
 *                                when it began; ID is its lease and nonce
 *                            .end   written with its release: time, reason; likewise
 *                            .note  written with an order for it
 *   baton.lease/LEASE/           shows that the lease lives
 *   baton.lease/LEASE/NAME       one of its claims, with the claim's nonce
 *
 * LEASE is the id of an etcd lease in hex. Every key with a LEASE in its name is deleted with that
 * lease. In NAME, '/' and '%' are written as %2F and %25, and a '.' in front as %2E. Only baton/ is
 * watched: keys that don't interest standbys stand beside it.
 *
 * A term is the claim's create revision plus the offset, which the claim's transaction compares.
 * The revisions of a cluster only grow. If the floor shows that they did not, because a backup was
 * restored, the claim's transaction raises the offset.
 *
 * Lanes share struct etcd_store: what changes in it is atomic, or protected by its lock.
 */
#ifndef BATON_ETCD_H
#define BATON_ETCD_H

#include "base/web/grpc.h"
#include "base/web/proto.h"
#include "store/web/web.h"

#pragma GCC visibility push(hidden)

#define ETCD_PREFIX_MAX 128
/* Room for two names with every byte encoded, and what stands around them. */
#define ETCD_KEY_MAX (ETCD_PREFIX_MAX + 2 * 3 * BATON_NAME_MAX + 64)
/* The answer to a login is a token: etcd's own, which is short, or a signed one (JWT), which is
 * long. */
#define ETCD_TOKEN_MAX 4096
/* How many elections one transaction serves: etcd allows 128 operations, nested ones included. */
#define ETCD_CHUNK 50
/* How many elections one look reads: three operations for each, none of them nested. */
#define ETCD_LOOKS 42
_Static_assert(3 * ETCD_LOOKS <= 128, "etcd refuses that many operations");
/* How many elections of others may lie among the claims of one of ours (nested.c). Each means one
 * more range, in a transaction that is nested in one of ETCD_CHUNK operations. */
#define ETCD_NESTED_MAX 64
_Static_assert(ETCD_CHUNK + ETCD_NESTED_MAX + 1 + 4 <= 128, "etcd refuses that many operations");

/* How often to try: what was known may have been old, and each try learns something newer. */
#define ETCD_ROUNDS 3

/* ---- options.c ---- */

struct etcd_options {
	struct web_options web;
	char user[BATON_NAME_MAX + 1];
	char password[WEB_PATH_MAX];
	char password_file[WEB_PATH_MAX];
	char prefix[ETCD_PREFIX_MAX + 1]; /* without the '/' */
};

/* BATON_OK, or a code, with a sentence in err. */
int etcd_options_parse(struct etcd_options *o, const char *text, struct baton_error *err);

/* ---- the store and its lanes ---- */

struct etcd_store {
	struct web_store web;
	struct etcd_options options;
	char token[ETCD_TOKEN_MAX];   /* `lock`; that of the last login; "": none */
	atomic_bool is_loss_reported; /* the cluster's revisions are below a term that was seen */
	struct etcd_nested *nested;   /* `lock`; see nested.c */
	atomic_bool has_nested;
};

struct etcd_lane {
	struct web_lane web;
	struct etcd_store *store;
	uint64_t raft_term;         /* of the last answer */
	uint64_t revision;          /* of the last answer */
	bool is_made;               /* watch lane: its stream has begun */
	uint64_t heard;             /* ... and has told all up to this revision; 0: none */
	char token[ETCD_TOKEN_MAX]; /* "": none */
};

/* ---- key.c ---- */

struct etcd_key {
	char text[ETCD_KEY_MAX];
};

/* "NAME/LEASE"; lease 0: "NAME/". */
struct etcd_key etcd_claim_key(const struct etcd_store *s, const char *name, uint64_t lease);
/* ".election/NAME/what" */
struct etcd_key etcd_state_key(const struct etcd_store *s, const char *name, const char *what);
struct etcd_key etcd_candidate_key(const struct etcd_store *s, const char *name, uint64_t lease);
/* name "": the key that shows that the lease lives. */
struct etcd_key etcd_lease_key(const struct etcd_store *s, uint64_t lease, const char *name);
/* The history's key for the leadership with that lease and nonce: "" its begin, ".end", ".note".
 * NULL: the beginning of all keys of this election's history. */
struct etcd_key etcd_history_key(const struct etcd_store *s, const char *name, uint64_t lease,
				 uint64_t nonce, const char *what);
/* The end of the range of all keys that begin like this one. */
struct etcd_key etcd_key_end(const struct etcd_key *key);
/* The beginning of another election's keys, which begin like a claim: "NAME/SEGMENT/"
 * (nested.c). */
struct etcd_key etcd_nested_key(const struct etcd_key *claims, const char *segment);
/* What a key is: 'c'laim, 's'tate, another 'o'ne of ours; 0: none of ours. Writes the election's
 * name. */
int etcd_key_read(const struct etcd_store *s, const char *key, char *name);

/* ---- message.c ---- */

/* Fields of etcd's messages, by the number that etcd gives them. */
enum {
	ETCD_HEADER = 1, /* in every answer */
	ETCD_HEADER_REVISION = 3,
	ETCD_HEADER_RAFT_TERM = 4,
	ETCD_KV_KEY = 1,
	ETCD_KV_CREATE = 2,
	ETCD_KV_MOD = 3,
	ETCD_KV_VALUE = 5,
	ETCD_KV_LEASE = 6,
	ETCD_RANGE_KEY = 1, /* in the request */
	ETCD_RANGE_END = 2,
	ETCD_RANGE_KVS = 2, /* in the answer */
	ETCD_RANGE_COUNT = 4,
	ETCD_TXN_SUCCEEDED = 2,
	ETCD_TXN_RESPONSES = 3,
	ETCD_OP_RANGE = 1, /* the kind of an operation, and of its response */
	ETCD_OP_PUT = 2,
	ETCD_OP_DELETE = 3,
	ETCD_OP_TXN = 4,
	ETCD_LEASE_ASKED = 1, /* the lease's number; in a request for a new lease: its seconds */
	ETCD_LEASE_ID = 2,
	ETCD_LEASE_TTL = 3,
	ETCD_WATCH_CREATE = 1, /* the request: a range inside this */
	ETCD_WATCH_START = 3,
	ETCD_WATCH_PROGRESS = 4,
	ETCD_WATCH_CREATED = 3,
	ETCD_WATCH_CANCELED = 4,
	ETCD_WATCH_COMPACTED = 5,
	ETCD_WATCH_REASON = 6,
	ETCD_WATCH_EVENTS = 11,
	ETCD_EVENT_TYPE = 1,
	ETCD_EVENT_KV = 2,
	ETCD_AUTH_NAME = 1,
	ETCD_AUTH_PASSWORD = 2,
	ETCD_AUTH_TOKEN = 2,
	ETCD_MEMBERS_LIST = 2,
	ETCD_ALARMS_LIST = 2,
	ETCD_ALARM_KIND = 2,
	ETCD_STATUS_VERSION = 2,
};

#define ETCD_EVENT_DELETE 1

struct etcd_method {
	const char *path;
	const char *label; /* for tests that read along, or NULL; etcd ignores it */
	const struct proto_shape *answer;
};

extern const struct etcd_method etcd_range, etcd_txn, etcd_txn_campaign, etcd_txn_release,
	etcd_txn_observe, etcd_grant, etcd_keep_alive, etcd_revoke, etcd_time_left, etcd_watch,
	etcd_authenticate, etcd_members, etcd_alarms, etcd_status;

/* The part of a transaction. */
enum etcd_part { ETCD_COMPARE = 1, ETCD_THEN = 2, ETCD_ELSE = 3 };
/* Which revision of a key is compared. */
enum etcd_target { ETCD_IS_CREATE = 1, ETCD_IS_MOD = 2 };

/* Asks for a range in a request of its own. end NULL: only that key. limit 0: no limit. */
void etcd_ask_range(struct bytes *b, const struct etcd_key *from, const struct etcd_key *end,
		    uint64_t limit, bool count_only);
/* The same without values. */
void etcd_ask_keys(struct bytes *b, const struct etcd_key *from, const struct etcd_key *end,
		   uint64_t limit);
/* An operation of a transaction may be a transaction itself: what is put between begin and end
 * belongs to it. */
struct etcd_nest {
	size_t op, txn;
};
struct etcd_nest etcd_begin_txn(struct bytes *b, enum etcd_part part);
void etcd_end_txn(struct bytes *b, struct etcd_nest nest);
void etcd_put(struct bytes *b, enum etcd_part part, const struct etcd_key *key, const char *value,
	      uint64_t lease_number);
void etcd_delete(struct bytes *b, enum etcd_part part, const struct etcd_key *key);
/* Reads all keys that begin like this one. */
void etcd_get(struct bytes *b, enum etcd_part part, const struct etcd_key *key);
/* Reads how many keys begin like this one, into ETCD_RANGE_COUNT. */
void etcd_get_count(struct bytes *b, enum etcd_part part, const struct etcd_key *key);
/* Reads a range. end NULL: only that key. first: only the key that was created first. */
void etcd_get_range(struct bytes *b, enum etcd_part part, const struct etcd_key *from,
		    const struct etcd_key *end, bool first);
/* Adds a condition: the key, or all keys of a range, must have that revision. */
void etcd_compare(struct bytes *b, const struct etcd_key *key, const struct etcd_key *end,
		  enum etcd_target target, uint64_t revision);
void etcd_compare_value(struct bytes *b, const struct etcd_key *key, const char *value);

/* etcd_response(): the i-th response of a transaction, of that kind. etcd_kv(): the first key that
 * it has found. */
struct proto etcd_response(struct proto txn_answer, size_t i, unsigned kind);
struct proto etcd_kv(struct proto txn_answer, size_t i);

/* ---- call.c ---- */

/* Begins a request. Its body is written into the result. */
struct bytes *etcd_begin(struct etcd_lane *lane);
/*
 * Sends the lane's request. OK: the answer has the right shape; etcd_done() frees it. Else an
 * outcome, with the sentence in call->error; REFUSED: etcd knows no such lease.
 */
int etcd_call(struct etcd_lane *lane, struct baton_call *call, const struct etcd_method *method,
	      struct proto *answer);
void etcd_done(struct proto *answer);
/* The same if the answer's content doesn't matter. */
int etcd_tell(struct etcd_lane *lane, struct baton_call *call, const struct etcd_method *method);
/* Opens the watch lane's stream with that request; 0 or -1. */
int etcd_listen(struct etcd_lane *lane, struct baton_call *call);
/* The token no longer works, so the next call logs in. */
void etcd_drop_token(struct etcd_lane *lane);
/* For an answer that etcd never gives. */
int etcd_strange(struct baton_call *call);
/* The code for an error of etcd. *is_sure: surely nothing was carried out. Fills in call->error. */
int etcd_judge(struct baton_call *call, int status, const char *text, bool *is_sure);

/* ---- lease.c ---- */

/* etcd's number for a lease of ours; 0: it is not ours. */
uint64_t etcd_lease_number(struct etcd_store *s, const char *id);
/* The cluster's raft term when the lease was granted, or an earlier one; 0: not known. */
uint64_t etcd_lease_raft_term(struct etcd_store *s, const char *id);

/* ---- observe.c ---- */

/* What we know of an election beside its record, while it is watched. */
struct etcd_known {
	uint64_t offset;
	uint64_t offset_mod;
	uint64_t reserved_mod;
	uint64_t reserved_until_ns;   /* on our clock, counted from when we saw it */
	uint64_t claim_mod;           /* that of the last claim that we have won */
	uint64_t unreleased_mod;      /* that of the note of a claim that ended without a release */
	uint64_t unreleased_until_ns; /* no claim before then; counted as reserved_until_ns */
};

void etcd_known_get(struct etcd_store *s, const char *name, struct etcd_known *k);
void etcd_known_set(struct etcd_store *s, const char *name, const struct etcd_known *k);
/* Adds the operations that etcd_record() needs. Returns how many. */
size_t etcd_get_election(struct bytes *b, enum etcd_part part, struct etcd_store *s,
			 const char *name);
/* Makes the record out of the n responses to these, from `at` on. id: the candidate that asks.
 * Updates k. False: call etcd_learn_nested(), and ask again. */
bool etcd_record(const struct etcd_lane *lane, const char *name, const char *id, struct proto txn,
		 size_t at, size_t n, struct etcd_known *k, struct baton_record *out);
/* The claim that was found; if the key is empty, there is none. */
struct etcd_claim {
	struct etcd_key key;
	uint64_t revision; /* when it was made */
	uint64_t lease;
	bool is_read;
};

/* Reads one election in a request of its own. Returns an outcome. */
int etcd_read_election(struct etcd_lane *lane, struct baton_call *call, const char *name,
		       const char *id, struct baton_record *out, struct etcd_claim *claim);
/* Reads the claim in this key. False: another program's. */
bool etcd_read_claim(struct proto kv, struct baton_record *out);

/* ---- nested.c ---- */

/* Asks for the first claim of each range of an election's claims. Returns the number of ranges. */
size_t etcd_get_claims(struct bytes *b, enum etcd_part part, struct etcd_store *s,
		       const char *name);
/* Adds the condition that there is no claim. */
void etcd_compare_no_claims(struct bytes *b, struct etcd_store *s, const char *name);
/* The first claim in n responses from `at` on; *first is empty if there is none. False: they have
 * keys of other elections that we didn't know: call etcd_learn_nested(), and ask again. */
bool etcd_first_claim(const struct etcd_store *s, const char *name, struct proto txn, size_t at,
		      size_t n, struct proto *first);
/* Finds out which other elections lie among the claims of that one. Returns an outcome. */
int etcd_learn_nested(struct etcd_lane *lane, struct baton_call *call, const char *name);
void etcd_nested_done(struct etcd_store *s);

/* ---- unreleased.c ---- */

#define ETCD_UNRELEASED "unended"

/* Adds the note to the transaction of a claim on that lease. */
void etcd_put_unreleased(struct bytes *b, struct etcd_store *s, const char *name,
			 const struct baton_lease *lease);
/*
 * Updates the record and k by the note that was found, with that value and mod revision; mod 0:
 * there is no note. claim: the create revision of the claim that stands, or 0.
 */
void etcd_read_unreleased(const struct etcd_lane *lane, const char *value, uint64_t mod,
			  uint64_t claim, struct etcd_known *k, struct baton_record *out);

/* ---- history.c ---- */

/* Adds the first of a claim's operations: one asks how long the history is, one writes the
 * leadership that begins. */
void etcd_put_begun(struct bytes *b, const struct etcd_store *s, const struct etcd_key *key,
		    const char *name, uint64_t offset, const char *leader);
/* Adds the end of the leadership to a release's operations. */
void etcd_put_ended(struct bytes *b, const struct etcd_store *s, uint64_t lease,
		    const struct baton_release *r);
/* Deletes what is too old, as far as there is time. This is done once in a while, not with every
 * claim. */
#define ETCD_PAST_KEYS 100 /* a longer history is pruned */
void etcd_prune_history(struct etcd_lane *lane, const struct baton_call *call, const char *name);

/* ---- release.c ---- */

/* Removes a claim that was made at that revision, and what belongs to it. r: the release, with its
 * end and reservation; or NULL. */
void etcd_put_removal(struct bytes *b, const struct etcd_store *s, const char *name,
		      uint64_t number, uint64_t revision, const struct baton_release *r);

/* ---- the verbs ---- */

int etcd_lease_open(void *l, struct baton_call *call, const struct baton_lease *lease);
int etcd_lease_renew(void *l, struct baton_call *call, const struct baton_lease *lease,
		     uint32_t *n_held);
int etcd_lease_close(void *l, struct baton_call *call, const struct baton_lease *lease);
int etcd_claims(void *l, struct baton_call *call, const struct baton_lease *lease,
		void (*found)(void *arg, const char *name, uint64_t nonce, uint64_t term),
		void *arg);
void etcd_campaign(void *l, struct baton_call *call, const struct baton_lease *lease,
		   struct baton_campaign *list, size_t n);
void etcd_release(void *l, struct baton_call *call, struct baton_release *list, size_t n);
void etcd_observe(void *l, struct baton_call *call, struct baton_observation *list, size_t n);
void etcd_publish(void *l, struct baton_call *call, const struct baton_lease *lease,
		  struct baton_publication *list, size_t n);
int etcd_withdraw(void *l, struct baton_call *call, const struct baton_lease *lease,
		  const char *name);
int etcd_candidates(void *l, struct baton_call *call, const char *name,
		    void (*found)(void *arg, const struct baton_candidate *candidate), void *arg);
int etcd_order(void *l, struct baton_call *call, const char *name, const struct baton_order *order);
int etcd_pause(void *l, struct baton_call *call, const char *name, bool paused);
int etcd_history(void *l, struct baton_call *call, const char *name, size_t max,
		 void (*found)(void *arg, const struct baton_leadership *leadership), void *arg);
int etcd_list(void *l, struct baton_call *call, const char *prefix, const char *after, size_t max,
	      void (*found)(void *arg, const char *name), void *arg);
int etcd_examine(void *l, struct baton_call *call,
		 void (*found)(void *arg, const struct baton_finding *finding), void *arg);
int etcd_watch_wait(void *l, struct baton_call *call, uint64_t *cookies, size_t max);

#pragma GCC visibility pop

#endif
