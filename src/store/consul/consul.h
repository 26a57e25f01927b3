/*
 * consul.h: what the files of the Consul driver share.
 *
 *   driver.c   the table of functions, the store and its lanes
 *   options.c  the URL, and what the environment adds to it
 *   key.c      keys, and the operations of a transaction
 *   call.c     one request: which server, who we are there, what an answer means
 *   lease.c    the session, and its claims
 *   campaign.c campaigning
 *   release.c  giving claims back
 *   observe.c  records
 *   candidates.c  candidates
 *   shown.c    in which elections a session shows one
 *   orders.c   orders and pauses
 *   history.c  past leaderships
 *   list.c     names
 *   watch.c    hints
 *   doctor.c   what the cluster is like
 *
 * What is in the store, with the prefix "baton":
 *
 *   baton/NAME/.lock              the claim: the key that `consul lock baton/NAME` locks, with the
 *                                 same flags. Whose session has it leads
 *   baton/NAME/.baton             what else is known of the election, only there when there is
 *                                 something: offset, pause, order, reservation; JSON
 *   baton.candidate/NAME/SESSION  who would like to lead
 *   baton.lease/SESSION           how many claims a session has
 *   baton.history/NAME/ID         a leadership, written with its claim; JSON. Its CreateIndex is
 *                                 when it began; ID is its session and nonce
 *                             .end   written with its release; likewise
 *                             .note  written with an order for it
 *
 * In NAME, '/' and '%' are written as %2F and %25, and a '.' in front as %2E. Only baton/ is
 * watched: what is of no interest to standbys stands beside it. What has a SESSION in its name is
 * locked by it; when the session ends, that lock goes, and whoever comes by takes the key away.
 *
 * A term is the claim's CreateIndex, its LockIndex in the lowest 12 bits, plus the offset. A key
 * that is locked again counts its LockIndex up; one that was deleted, which `consul lock` does,
 * comes back with a higher CreateIndex, because that is the cluster's own count of writes. When 12
 * bits are used up, the claim's transaction makes the key anew; with more of them, a quiet election
 * on a busy cluster would jump by so much that candidates took it for damage. Where the floor shows
 * that the cluster's count went back, the claim's transaction raises the offset.
 *
 * A transaction is carried out as a whole or not at all, and then tells each operation that failed.
 * So a batch of campaigns is one transaction; those who failed are looked at and left out, and the
 * others tried again.
 *
 * Sessions stand on a node of their own ("baton" in the catalog), not on that of an agent: Consul
 * ends the sessions of a node that leaves, whatever their time, and an agent leaves whenever it is
 * restarted properly.
 */
#ifndef BATON_CONSUL_H
#define BATON_CONSUL_H

#include "store/web/web.h"

#pragma GCC visibility push(hidden)

#define CONSUL_PREFIX_MAX 128
/* Consul's own limit. */
#define CONSUL_LOCK_DELAY_MAX_MS 60000
#define CONSUL_SESSION_MAX 39
#define CONSUL_KEY_MAX (CONSUL_PREFIX_MAX + 3 * BATON_NAME_MAX + 64)
/* How many elections one transaction serves, each with five operations at most, beside the count
 * of claims: old servers take 64 operations, others 128. */
#define CONSUL_CHUNK 12
#define CONSUL_OPS_MAX (5 * CONSUL_CHUNK + 2)
_Static_assert(CONSUL_OPS_MAX <= 64, "old servers refuse a transaction of that size");
#define CONSUL_LOCK_BITS 12
#define CONSUL_LOCK_MAX (((uint64_t)1 << CONSUL_LOCK_BITS) - 1)
/* What was known may have been old: then we know better, and try again. */
#define CONSUL_ROUNDS 4

/* ---- options.c ---- */

struct consul_options {
	struct web_options web;
	char token[WEB_PATH_MAX];
	char token_file[WEB_PATH_MAX];
	char dc[BATON_NAME_MAX + 1];
	char ns[BATON_NAME_MAX + 1];
	char partition[BATON_NAME_MAX + 1];
	char node[BATON_NAME_MAX + 1];                 /* "": the agent's that we talk to */
	char checks[WEB_PATH_MAX];                     /* with commas */
	char prefix[CONSUL_PREFIX_MAX + 1];            /* without the '/' */
	char query[3 * 3 * (BATON_NAME_MAX + 1) + 32]; /* "dc=..&ns=.." for every request, or "" */
	uint32_t lock_delay_ms;
	uint32_t ttl_min_ms; /* what the servers are set to */
};

/* BATON_OK, or a code and the sentence in err. */
int consul_options_parse(struct consul_options *o, const char *text, struct baton_error *err);

/* ---- the store and its lanes ---- */

struct consul_store {
	struct web_store web;
	struct consul_options options;
	struct baton_traits traits;
	atomic_bool is_loss_reported; /* the cluster's indexes are below a term that was seen */
	struct consul_shown *shown;   /* `lock`; see shown.c */
};

struct consul_lane {
	struct web_lane web;
	struct consul_store *store;
	size_t n_ops; /* in the body */
	/* Of the watch lane: */
	size_t n_names;                /* that are watched */
	char only[BATON_NAME_MAX + 1]; /* the one, if it is one; "": all that begin like ours */
	uint64_t index;                /* where we are; 0: at the beginning */
	size_t n_keys;                 /* that there were then */
};

/* ---- key.c ---- */

struct consul_key {
	char text[CONSUL_KEY_MAX];
};

struct consul_key consul_lock_key(const struct consul_store *s, const char *name);
struct consul_key consul_state_key(const struct consul_store *s, const char *name);
/* session "": of all of them. */
struct consul_key consul_candidate_key(const struct consul_store *s, const char *name,
				       const char *session);
/* What is written down of the leadership with that session and nonce: "" its begin, ".end",
 * ".note". NULL: all that there is of this election. */
struct consul_key consul_history_key(const struct consul_store *s, const char *name,
				     const char *session, uint64_t nonce, const char *what);
struct consul_key consul_count_key(const struct consul_store *s, const char *session);
/* What all keys of an election begin with; name "": of all elections. */
struct consul_key consul_tree_key(const struct consul_store *s, const char *name);
/* What a key is about: the 'l'ock or the 's'tate of an election, or none of ours: 0. */
int consul_key_read(const struct consul_store *s, const char *key, char *name);
/* A key as a path of Consul's API: the slashes in it stay. False: it doesn't fit. */
bool consul_put_path(const char *key, char *out, size_t size);

/* An operation of a transaction. What isn't set isn't sent. */
struct consul_op {
	const char *verb;
	const struct consul_key *key;
	const char *value;
	const char *session;
	uint64_t index;
	bool has_index;
	bool is_lock; /* with the flags that `consul lock` wants to see */
};

/* Begins a transaction; adds to it. */
void consul_begin(struct consul_lane *lane);
void consul_op(struct consul_lane *lane, const struct consul_op *op);
/* That a key is as it was: at index, or, with 0, not there. */
void consul_op_check(struct consul_lane *lane, const struct consul_key *key, uint64_t index);
/* The state, unless it isn't at index any more; 0: unless there is one. */
void consul_op_state(struct consul_lane *lane, const struct consul_key *key, const json_t *state,
		     uint64_t index);
/* How many claims the session has, unless somebody has counted since. */
void consul_op_count(struct consul_lane *lane, const struct web_lease *lease, uint64_t n_claims);

/* ---- call.c ---- */

/* What an answer was. */
struct consul_answer {
	json_t *json; /* to be given back with json_decref(); may be NULL */
	int status;
	char text[200]; /* of an answer that is not JSON */
};

/*
 * One request. OK: the answer is there, of status 200, 404, or 409 (a transaction that failed);
 * else an outcome with the sentence in call->error; REFUSED: there is no such session or node. What
 * Consul doesn't know in a query it ignores: it is for those who read along, in a log or a test.
 */
int consul_call(struct consul_lane *lane, struct baton_call *call, const char *path,
		struct consul_answer *answer);
/* The transaction that is in the lane's body. OK: status 200 or 409. */
int consul_txn(struct consul_lane *lane, struct baton_call *call, const char *what,
	       struct consul_answer *answer);
/* The same for one that reads only; OK: 200. Sees all that was written before it. */
int consul_read(struct consul_lane *lane, struct baton_call *call, const char *what,
		struct consul_answer *answer);
/* Begins a long poll on the watch lane; 0 or -1. */
int consul_poll(struct consul_lane *lane, struct baton_call *call, const char *path);
int consul_strange(struct baton_call *call);
/* What an error of Consul's means: the code; is_sure: nothing was carried out. */
int consul_judge(struct baton_call *call, int status, const char *text, bool *is_sure);
/* Of an answer: the results, and the key of that name among them; the last one, or NULL. */
const json_t *consul_results(const struct consul_answer *answer);
const json_t *consul_find(const struct consul_answer *answer, const char *key);

/* Why one operation failed. */
enum consul_why { CONSUL_STALE, CONSUL_NO_SESSION, CONSUL_DELAYED, CONSUL_DENIED };

/* The i-th error of a transaction: which operation, and why. Denied: call->error says it. */
size_t consul_n_errors(const struct consul_answer *answer);
enum consul_why consul_error(struct baton_call *call, const struct consul_answer *answer, size_t i,
			     size_t *op);

/* ---- lease.c ---- */

/* How many claims the session has, as the store says; OK, REFUSED: it has ended, or an outcome. */
int consul_read_count(struct consul_lane *lane, struct baton_call *call, const char *id,
		      struct web_lease *lease);
/* Keys of sessions that have ended are of no use to anybody: whoever sees them takes them away. */
void consul_sweep(struct consul_lane *lane, const struct baton_call *call,
		  const struct consul_answer *seen);

/* ---- shown.c ---- */

/* Before a candidate is shown, and after it is withdrawn. False: no memory. */
bool consul_shown_add(struct consul_store *s, const char *session, const char *name);
void consul_shown_remove(struct consul_store *s, const char *session, const char *name);
/* Takes the candidates of a session that has ended away, as far as there is time; forgets it. */
void consul_shown_clear(struct consul_lane *lane, uint64_t deadline_ns, const char *session);
void consul_shown_done(struct consul_store *s);

/* ---- observe.c ---- */

/* What a driver knows of an election beside its record, as long as that is watched. */
struct consul_known {
	uint64_t offset;
	uint64_t state_index; /* 0: there is no state */
	uint64_t native;      /* the last term without the offset */
	bool exists;          /* the key that is locked */
	uint64_t until_ns;    /* kept for another, or delayed, up to then on our clock */
	uint64_t claim_index; /* when the claim was last written, */
	uint64_t claim_nonce; /* and whose it is */
};

void consul_known_get(struct consul_store *s, const char *name, struct consul_known *k);
void consul_known_set(struct consul_store *s, const char *name, const struct consul_known *k);
/* The operation that reads what consul_record() is made of. */
void consul_op_read(struct consul_lane *lane, const char *name);
void consul_record(struct consul_store *s, const char *name, const char *id,
		   const struct consul_answer *answer, struct consul_known *k,
		   struct baton_record *out);
/* The state of an election, to be given back; an empty object if there is none. NULL: no memory. */
json_t *consul_state(const struct consul_store *s, const char *name,
		     const struct consul_answer *answer);
uint64_t consul_native(const json_t *kv);
/* The same of a key that is made, and locked, at that index. */
uint64_t consul_new_native(uint64_t index);
/* The holder of this key's claim. False: it is free. is_foreign: another program holds it. */
bool consul_read_claim(const json_t *kv, struct baton_record *out, bool *is_foreign);

/* ---- history.c ---- */

/* With a claim: the leadership that begins with it, in the term that it has if what is known is
 * still so. native 0: that of a key that is new. */
void consul_op_begun(struct consul_lane *lane, const char *name, const char *session,
		     uint64_t nonce, uint64_t native, uint64_t offset, const char *leader);
/* With a release. */
void consul_op_ended(struct consul_lane *lane, const char *session, const struct baton_release *r);
/* What is too much is taken away, as far as that goes: once in a while, which `index`, when
 * something was written, decides: at the mean, one time in so many. */
void consul_prune_history(struct consul_lane *lane, const struct baton_call *call, const char *name,
			  uint64_t index, unsigned one_in);

/* ---- release.c ---- */

/* Unlocks the claim that was last written at index, as one of a transaction's operations. */
void consul_op_unlock(struct consul_lane *lane, const char *name, const char *session,
		      uint64_t index);

/* ---- the verbs ---- */

int consul_lease_open(void *l, struct baton_call *call, const struct baton_lease *lease);
int consul_lease_renew(void *l, struct baton_call *call, const struct baton_lease *lease,
		       uint32_t *n_held);
int consul_lease_close(void *l, struct baton_call *call, const struct baton_lease *lease);
int consul_claims(void *l, struct baton_call *call, const struct baton_lease *lease,
		  void (*found)(void *arg, const char *name, uint64_t nonce, uint64_t term),
		  void *arg);
void consul_campaign(void *l, struct baton_call *call, const struct baton_lease *lease,
		     struct baton_campaign *list, size_t n);
void consul_release(void *l, struct baton_call *call, struct baton_release *list, size_t n);
void consul_observe(void *l, struct baton_call *call, struct baton_observation *list, size_t n);
void consul_publish(void *l, struct baton_call *call, const struct baton_lease *lease,
		    struct baton_publication *list, size_t n);
int consul_withdraw(void *l, struct baton_call *call, const struct baton_lease *lease,
		    const char *name);
int consul_candidates(void *l, struct baton_call *call, const char *name,
		      void (*found)(void *arg, const struct baton_candidate *candidate), void *arg);
int consul_order(void *l, struct baton_call *call, const char *name,
		 const struct baton_order *order);
int consul_pause(void *l, struct baton_call *call, const char *name, bool paused);
int consul_history(void *l, struct baton_call *call, const char *name, size_t max,
		   void (*found)(void *arg, const struct baton_leadership *leadership), void *arg);
int consul_list(void *l, struct baton_call *call, const char *prefix, const char *after, size_t max,
		void (*found)(void *arg, const char *name), void *arg);
int consul_examine(void *l, struct baton_call *call,
		   void (*found)(void *arg, const struct baton_finding *finding), void *arg);
int consul_watch_add(void *l, const char *name, uint64_t cookie);
void consul_watch_remove(void *l, const char *name, uint64_t cookie);
int consul_watch_wait(void *l, struct baton_call *call, uint64_t *cookies, size_t max);

#pragma GCC visibility pop

#endif
