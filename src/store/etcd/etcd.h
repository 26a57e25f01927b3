/*
 * etcd.h: what the files of the etcd driver share.
 *
 *   driver.c   the table of functions, the store and its lanes
 *   options.c  the URL
 *   key.c      keys
 *   message.c  etcd's messages: what is asked, and what answers must look like
 *   call.c     one request: which member, who we are there, what an answer means
 *   lease.c    the lease, and its claims
 *   campaign.c campaigning
 *   release.c  giving claims back
 *   observe.c  records
 *   nested.c   elections of others whose keys lie among the claims of one of ours
 *   unreleased.c  claims that ended without a release, and how long nobody may follow them
 *   candidates.c  candidates
 *   orders.c   orders and pauses
 *   history.c  past leaderships
 *   list.c     names
 *   watch.c    hints
 *   doctor.c   what the cluster is like
 *
 * etcd is spoken to by gRPC, as its own clients do: its JSON gateway makes the same of a request,
 * but takes its time for that. What is in the store, with the prefix "baton":
 *
 *   baton/NAME/LEASE             a claim: the layout of etcd's own concurrency package. Who has the
 *                                lowest create revision below NAME/ leads. We make ours only where
 *                                there is none, so it is the lowest
 *   baton/.election/NAME/term    written with every claim: its mod revision is the last claim's
 *                       /unended written with every claim, deleted with its release: who finds it
 *                                without the claim knows that that ended otherwise (unreleased.c)
 *                       /offset  what is added to revisions; only there when the cluster lost data
 *                       /paused /reserved /order
 *   baton.candidate/NAME/LEASE   who would like to lead
 *   baton.history/NAME/ID        a leadership, written with its claim; JSON. Its
 *                                create revision is when it began; ID is its lease and nonce
 *                            .end   written with its release: time, reason; likewise
 *                            .note  written with an order for it
 *   baton.lease/LEASE/           shows that the lease lives
 *   baton.lease/LEASE/NAME       one of its claims, with the claim's nonce
 *
 * LEASE is the id of an etcd lease in hex, and everything with a LEASE in its name goes with it. In
 * NAME, '/' and '%' are written as %2F and %25, and a '.' in front as %2E. Only baton/ is watched:
 * what is of no interest to standbys stands beside it.
 *
 * A term is the create revision of the claim plus the offset, which the claim's transaction
 * compares: revisions of a cluster only grow, and where the floor shows that they didn't, because a
 * backup was restored, the claim's transaction raises the offset.
 *
 * Lanes share struct etcd_store: what changes in it is atomic or has its lock.
 */
#ifndef BATON_ETCD_H
#define BATON_ETCD_H

#include "base/web/grpc.h"
#include "base/web/proto.h"
#include "store/web/web.h"

#pragma GCC visibility push(hidden)

#define ETCD_PREFIX_MAX 128
/* A name with every byte encoded, before or behind a lease, and what stands around it. */
#define ETCD_KEY_MAX (ETCD_PREFIX_MAX + 2 * 3 * BATON_NAME_MAX + 64)
/* A login is answered with a token: a short one of etcd's own, or a signed one (JWT), a long one.
 * */
#define ETCD_TOKEN_MAX 4096
/* How many elections one transaction serves: etcd takes 128 operations, nested ones included. */
#define ETCD_CHUNK 50
/* How many elections of others may lie among the claims of one of ours (nested.c): a range more for
 * each, in a transaction inside one of ETCD_CHUNK operations. */
#define ETCD_NESTED_MAX 64
_Static_assert(ETCD_CHUNK + ETCD_NESTED_MAX + 1 + 4 <= 128, "etcd refuses that many operations");
/* Terms end here: etcd's revisions do. */
/* What was known may have been old: then we know better, and try again. */
#define ETCD_ROUNDS 3

/* ---- options.c ---- */

struct etcd_options {
	struct web_options web;
	char user[BATON_NAME_MAX + 1];
	char password[WEB_PATH_MAX];
	char password_file[WEB_PATH_MAX];
	char prefix[ETCD_PREFIX_MAX + 1]; /* without the '/' */
};

/* BATON_OK, or a code and the sentence in err. */
int etcd_options_parse(struct etcd_options *o, const char *text, struct baton_error *err);

/* ---- the store and its lanes ---- */

struct etcd_store {
	struct web_store web;
	struct etcd_options options;
	char token[ETCD_TOKEN_MAX];   /* `lock`; of the last who logged in, "": none */
	atomic_bool is_loss_reported; /* the cluster's revisions are below a term that was seen */
	struct etcd_nested *nested;   /* `lock`; see nested.c */
	atomic_bool has_nested;
};

struct etcd_lane {
	struct web_lane web;
	struct etcd_store *store;
	uint64_t raft_term;         /* of the last answer */
	uint64_t revision;          /* of the last answer */
	bool is_made;               /* the watch lane's: its stream has begun */
	uint64_t heard;             /* ... and the revision up to which it has heard all; 0: none */
	char token[ETCD_TOKEN_MAX]; /* "": none */
};

/* ---- key.c ---- */

struct etcd_key {
	char text[ETCD_KEY_MAX];
};

/* "NAME/" and what follows it; lease 0: nothing does. */
struct etcd_key etcd_claim_key(const struct etcd_store *s, const char *name, uint64_t lease);
/* ".election/NAME/what" */
struct etcd_key etcd_state_key(const struct etcd_store *s, const char *name, const char *what);
struct etcd_key etcd_candidate_key(const struct etcd_store *s, const char *name, uint64_t lease);
/* name "": what shows that it lives. */
struct etcd_key etcd_lease_key(const struct etcd_store *s, uint64_t lease, const char *name);
/* What is written down of the leadership with that lease and nonce: "" its begin, ".end", ".note".
 * NULL: all that there is of this election. */
struct etcd_key etcd_history_key(const struct etcd_store *s, const char *name, uint64_t lease,
				 uint64_t nonce, const char *what);
/* The end of the range of all keys that begin like this one. */
struct etcd_key etcd_key_end(const struct etcd_key *key);
/* What begins like a claim, and is of another election: "NAME/SEGMENT/" (nested.c). */
struct etcd_key etcd_nested_key(const struct etcd_key *claims, const char *segment);
/* What a key is about: 'c'laim, 's'tate, another 'o'ne, or none of ours: 0. The name in *name. */
int etcd_key_read(const struct etcd_store *s, const char *key, char *name);

/* ---- message.c ---- */

/* Fields of etcd's messages, by the number that etcd gives them. */
enum {
	ETCD_HEADER = 1, /* of every answer */
	ETCD_HEADER_REVISION = 3,
	ETCD_HEADER_RAFT_TERM = 4,
	ETCD_KV_KEY = 1,
	ETCD_KV_CREATE = 2,
	ETCD_KV_MOD = 3,
	ETCD_KV_VALUE = 5,
	ETCD_KV_LEASE = 6,
	ETCD_RANGE_KEY = 1, /* of the request */
	ETCD_RANGE_END = 2,
	ETCD_RANGE_KVS = 2, /* of the answer */
	ETCD_RANGE_COUNT = 4,
	ETCD_TXN_SUCCEEDED = 2,
	ETCD_TXN_RESPONSES = 3,
	ETCD_OP_RANGE = 1, /* what an operation is, and its response */
	ETCD_OP_PUT = 2,
	ETCD_OP_DELETE = 3,
	ETCD_OP_TXN = 4,
	ETCD_LEASE_ASKED =
		1, /* its number, in every request but for a new one: there its seconds */
	ETCD_LEASE_ID = 2,
	ETCD_LEASE_TTL = 3,
	ETCD_WATCH_CREATE = 1, /* the request: a range, and this */
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
	const char
		*label; /* for those who read along, in a test; or NULL. etcd doesn't look at it */
	const struct proto_shape *answer;
};

extern const struct etcd_method etcd_range, etcd_txn, etcd_txn_campaign, etcd_txn_release,
	etcd_txn_observe, etcd_grant, etcd_keep_alive, etcd_revoke, etcd_time_left, etcd_watch,
	etcd_authenticate, etcd_members, etcd_alarms, etcd_status;

/* Where something stands in a transaction. */
enum etcd_part { ETCD_COMPARE = 1, ETCD_THEN = 2, ETCD_ELSE = 3 };
/* What of a key is compared. */
enum etcd_target { ETCD_IS_CREATE = 1, ETCD_IS_MOD = 2 };

/* A range as a request of its own: end NULL: that key alone; limit 0: all. */
void etcd_ask_range(struct bytes *b, const struct etcd_key *from, const struct etcd_key *end,
		    uint64_t limit, bool count_only);
/* The same without values. */
void etcd_ask_keys(struct bytes *b, const struct etcd_key *from, const struct etcd_key *end,
		   uint64_t limit);
/* Operations of a transaction, one of which may be a transaction: what is put in between. */
struct etcd_nest {
	size_t op, txn;
};
struct etcd_nest etcd_begin_txn(struct bytes *b, enum etcd_part part);
void etcd_end_txn(struct bytes *b, struct etcd_nest nest);
void etcd_put(struct bytes *b, enum etcd_part part, const struct etcd_key *key, const char *value,
	      uint64_t lease_number);
void etcd_delete(struct bytes *b, enum etcd_part part, const struct etcd_key *key);
/* All keys that begin like this one. */
void etcd_get(struct bytes *b, enum etcd_part part, const struct etcd_key *key);
/* Those of a range; end NULL: that key alone; first: only the one that was created first. */
void etcd_get_range(struct bytes *b, enum etcd_part part, const struct etcd_key *from,
		    const struct etcd_key *end, bool first);
/* Its condition: the key, or all keys of a range, have that revision. */
void etcd_compare(struct bytes *b, const struct etcd_key *key, const struct etcd_key *end,
		  enum etcd_target target, uint64_t revision);
void etcd_compare_value(struct bytes *b, const struct etcd_key *key, const char *value);

/* The i-th answer of a transaction, which is of that kind; and the first key that it found. */
struct proto etcd_response(struct proto txn_answer, size_t i, unsigned kind);
struct proto etcd_kv(struct proto txn_answer, size_t i);

/* ---- call.c ---- */

/* Begins a request, which is made in what it gives. */
struct bytes *etcd_begin(struct etcd_lane *lane);
/*
 * The lane's request, and the answer, which fits its shape, and is given back with etcd_done(). OK,
 * or an outcome with the sentence in call->error; REFUSED: etcd knows no such lease.
 */
int etcd_call(struct etcd_lane *lane, struct baton_call *call, const struct etcd_method *method,
	      struct proto *answer);
void etcd_done(struct proto *answer);
/* The same without an answer that matters. */
int etcd_tell(struct etcd_lane *lane, struct baton_call *call, const struct etcd_method *method);
/* The same for the watch lane's stream; 0 or -1. */
int etcd_listen(struct etcd_lane *lane, struct baton_call *call);
/* The token doesn't work any more: the next call logs in. */
void etcd_drop_token(struct etcd_lane *lane);
/* The answer isn't what etcd says. */
int etcd_strange(struct baton_call *call);
/* An error of etcd's: our code for it; is_sure: nothing was carried out. Fills call->error. */
int etcd_judge(struct baton_call *call, int status, const char *text, bool *is_sure);

/* ---- lease.c ---- */

/* etcd's number of a lease; 0: we have none such. */
uint64_t etcd_lease_number(struct etcd_store *s, const char *id);
/* The cluster's raft term when it was granted, or an earlier one; 0: unknown. */
uint64_t etcd_lease_raft_term(struct etcd_store *s, const char *id);

/* ---- observe.c ---- */

/* What a driver knows of an election beside its record, as long as that is watched. */
struct etcd_known {
	uint64_t offset;
	uint64_t offset_mod;
	uint64_t reserved_mod;
	uint64_t reserved_until_ns;   /* on our clock, from when we saw it */
	uint64_t claim_mod;           /* of the claim that we have won last */
	uint64_t unreleased_mod;      /* of the note of a claim that ended without a release */
	uint64_t unreleased_until_ns; /* nobody follows it before then; as reserved_until_ns */
};

void etcd_known_get(struct etcd_store *s, const char *name, struct etcd_known *k);
void etcd_known_set(struct etcd_store *s, const char *name, const struct etcd_known *k);
/* What etcd_record() is made of: so many operations. */
size_t etcd_get_election(struct bytes *b, enum etcd_part part, struct etcd_store *s,
			 const char *name);
/* Of the n answers to these, which stand at `at` in the lane's last answer. For id. Updates k.
 * False: etcd_learn_nested() first, and ask again. */
bool etcd_record(const struct etcd_lane *lane, const char *name, const char *id, struct proto txn,
		 size_t at, size_t n, struct etcd_known *k, struct baton_record *out);
/* The claim that was found; without a key: there is none. */
struct etcd_claim {
	struct etcd_key key;
	uint64_t revision; /* at which it was made */
	uint64_t lease;
	bool is_read;
};

/* One election, asked for by itself. An outcome. */
int etcd_read_election(struct etcd_lane *lane, struct baton_call *call, const char *name,
		       const char *id, struct baton_record *out, struct etcd_claim *claim);
/* Who has the claim that is in this key. */
bool etcd_read_claim(struct proto kv, struct baton_record *out);

/* ---- nested.c ---- */

/* The first claim of each of these ranges, and how many they are. */
size_t etcd_get_claims(struct bytes *b, enum etcd_part part, struct etcd_store *s,
		       const char *name);
/* The condition that there is no claim. */
void etcd_compare_no_claims(struct bytes *b, struct etcd_store *s, const char *name);
/* Of n answers at `at`, the first claim; none: it is empty. False: others' keys are among them that
 * we didn't know: etcd_learn_nested() first, and ask again. */
bool etcd_first_claim(const struct etcd_store *s, const char *name, struct proto txn, size_t at,
		      size_t n, struct proto *first);
/* Which elections of others lie among the claims of that one. An outcome. */
int etcd_learn_nested(struct etcd_lane *lane, struct baton_call *call, const char *name);
void etcd_nested_done(struct etcd_store *s);

/* ---- unreleased.c ---- */

#define ETCD_UNRELEASED "unended"

/* With a claim on that lease. */
void etcd_put_unreleased(struct bytes *b, struct etcd_store *s, const char *name,
			 const struct baton_lease *lease);
/*
 * What follows for the record from a note that was found, with that value and mod revision; mod 0:
 * there is none. claim: the create revision of the claim that stands, or 0. Updates k.
 */
void etcd_read_unreleased(const struct etcd_lane *lane, const char *value, uint64_t mod,
			  uint64_t claim, struct etcd_known *k, struct baton_record *out);

/* ---- history.c ---- */

/* First of a claim's operations: how much there is; and the leadership that begins with it. */
void etcd_put_begun(struct bytes *b, const struct etcd_store *s, const struct etcd_key *key,
		    const char *name, uint64_t offset, const char *leader);
/* With a release. */
void etcd_put_ended(struct bytes *b, const struct etcd_store *s, uint64_t lease,
		    const struct baton_release *r);
/* What is too much is taken away, as far as that goes: once in a while, not with every claim. */
#define ETCD_PAST_KEYS 100 /* more of them are too much */
void etcd_prune_history(struct etcd_lane *lane, const struct baton_call *call, const char *name);

/* ---- release.c ---- */

/* Removes a claim that was made at that revision, and what hangs on it; r: with the reservation
 * that comes with its release, or NULL. */
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
