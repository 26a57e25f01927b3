/*
 * consul.h: what the files of the Consul driver share.
 *
 *   driver.c   the table of functions, the store and its lanes
 *   options.c  the URL, and environment variables
 *   key.c      keys, and the operations of a transaction
 *   call.c     one request: choosing a server, logging in, what an answer means
 *   lease.c    the session, and its claims
 *   campaign.c campaigning
 *   release.c  giving claims back
 *   observe.c  records
 *   candidates.c  candidates
 *   shown.c    the elections in which a session shows a candidate
 *   orders.c   orders and pauses
 *   history.c  past leaderships
 *   list.c     names
 *   watch.c    hints
 *   doctor.c   examines the cluster
 *
 * What is in the store, with the prefix "baton":
 *
 *   baton/NAME/.lock              the claim: the key that `consul lock baton/NAME` locks, with the
 *                                 same flags. The owner of the session that has locked it leads
 *   baton/NAME/.baton             the rest of the election's state, if there is any: offset, pause,
 *                                 order, reservation; JSON
 *   baton.candidate/NAME/SESSION  a candidate
 *   baton.lease/SESSION           how many claims a session has
 *   baton.history/NAME/ID         a leadership, written with its claim; JSON. The CreateIndex is
 *                                 when it began; ID is its session and nonce
 *                             .end   written with its release; likewise
 *                             .note  written with an order for it
 *
 * In NAME, '/' and '%' are written as %2F and %25, and a '.' in front as %2E. Only baton/ is
 * watched: keys that don't interest standbys stand beside it. A key with a SESSION in its name is
 * locked by that session. When the session ends, the key is unlocked, and the next candidate that
 * sees it deletes it.
 *
 * A term is the claim's CreateIndex, with its LockIndex in the lowest 12 bits, plus the offset.
 * Each lock of a key counts its LockIndex up. A key that was deleted, as `consul lock` does it,
 * comes back with a higher CreateIndex, because that is the cluster's own count of writes. When the
 * 12 bits are used up, the claim's transaction makes the key anew. (With more bits, the term of a
 * quiet election on a busy cluster would jump by so much that candidates took it for damage.) If
 * the floor shows that the cluster's count went back, the claim's transaction raises the offset.
 *
 * A transaction is carried out as a whole or not at all, and if not, it tells which operations
 * failed. A batch of campaigns is one transaction. Those that have failed are looked at and left
 * out, and the others are tried again.
 *
 * Sessions belong to a node of their own ("baton" in the catalog), not to an agent's node: when a
 * node leaves, Consul ends its sessions at once, and an agent leaves whenever it is restarted
 * properly.
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
/* How many elections one transaction serves: each takes five operations at most, and the count of
 * claims takes one more. Old servers allow 64 operations, others 128. */
#define CONSUL_CHUNK 12
#define CONSUL_OPS_MAX (5 * CONSUL_CHUNK + 2)
_Static_assert(CONSUL_OPS_MAX <= 64, "old servers refuse a transaction of that size");
#define CONSUL_LOCK_BITS 12
#define CONSUL_LOCK_MAX (((uint64_t)1 << CONSUL_LOCK_BITS) - 1)
/* How often to try: what was known may have been old, and each try learns something newer. */
#define CONSUL_ROUNDS 4

/* ---- options.c ---- */

struct consul_options {
	struct web_options web;
	char token[WEB_PATH_MAX];
	char token_file[WEB_PATH_MAX];
	char dc[BATON_NAME_MAX + 1];
	char ns[BATON_NAME_MAX + 1];
	char partition[BATON_NAME_MAX + 1];
	char node[BATON_NAME_MAX + 1];                 /* "": that of the agent that we ask */
	char checks[WEB_PATH_MAX];                     /* separated by commas */
	char prefix[CONSUL_PREFIX_MAX + 1];            /* without the '/' */
	char query[3 * 3 * (BATON_NAME_MAX + 1) + 32]; /* "dc=..&ns=.." for every request, or "" */
	uint32_t lock_delay_ms;
	uint32_t ttl_min_ms; /* the servers' own setting */
};

/* BATON_OK, or a code, with a sentence in err. */
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
	size_t n_ops; /* operations in the body */
	/* Of the watch lane: */
	size_t n_names;                /* names that are watched */
	char only[BATON_NAME_MAX + 1]; /* the only name that is watched; "": the watch is for all */
	uint64_t index;                /* the index that we have seen; 0: none yet */
	size_t n_keys;                 /* how many keys there were at that index */
};

/* ---- key.c ---- */

struct consul_key {
	char text[CONSUL_KEY_MAX];
};

struct consul_key consul_lock_key(const struct consul_store *s, const char *name);
struct consul_key consul_state_key(const struct consul_store *s, const char *name);
/* session "": the beginning of all candidates' keys. */
struct consul_key consul_candidate_key(const struct consul_store *s, const char *name,
				       const char *session);
/* The history's key for the leadership with that session and nonce: "" its begin, ".end", ".note".
 * NULL: the beginning of all keys of this election's history. */
struct consul_key consul_history_key(const struct consul_store *s, const char *name,
				     const char *session, uint64_t nonce, const char *what);
struct consul_key consul_count_key(const struct consul_store *s, const char *session);
/* The beginning of all keys of an election; name "": of all elections. */
struct consul_key consul_tree_key(const struct consul_store *s, const char *name);
/* What a key is: the 'l'ock or the 's'tate of an election; 0: none of ours. */
int consul_key_read(const struct consul_store *s, const char *key, char *name);
/* Writes a key as a path of Consul's API; its slashes stay. False: it doesn't fit. */
bool consul_put_path(const char *key, char *out, size_t size);

/* An operation of a transaction. Only fields that are set are sent. */
struct consul_op {
	const char *verb;
	const struct consul_key *key;
	const char *value;
	const char *session;
	uint64_t index;
	bool has_index;
	bool is_lock; /* with the flags that `consul lock` expects */
};

/* Begins a transaction; adds an operation. */
void consul_begin(struct consul_lane *lane);
void consul_op(struct consul_lane *lane, const struct consul_op *op);
/* Adds a check that a key is unchanged since index; 0: that it doesn't exist. */
void consul_op_check(struct consul_lane *lane, const struct consul_key *key, uint64_t index);
/* Writes the state, if it is unchanged since index; 0: if there is none yet. */
void consul_op_state(struct consul_lane *lane, const struct consul_key *key, const json_t *state,
		     uint64_t index);
/* Writes how many claims the session has, if the count is unchanged since lease->index. */
void consul_op_count(struct consul_lane *lane, const struct web_lease *lease, uint64_t n_claims);

/* ---- call.c ---- */

/* What an answer was. */
struct consul_answer {
	json_t *json; /* the caller frees it with json_decref(); may be NULL */
	int status;
	char text[200]; /* the words of an answer that is not JSON */
};

/*
 * Sends one request. OK: there is an answer with the status 200, 404, or 409 (a transaction that
 * failed). Else an outcome, with the sentence in call->error; REFUSED: there is no such session or
 * node. Consul ignores parts of a query that it doesn't know: ours are for logs and tests.
 */
int consul_call(struct consul_lane *lane, struct baton_call *call, const char *path,
		struct consul_answer *answer);
/* Sends the transaction in the lane's body. OK: status 200 or 409. */
int consul_txn(struct consul_lane *lane, struct baton_call *call, const char *what,
	       struct consul_answer *answer);
/* The same for a transaction that only reads; OK: 200. It sees all writes before it. */
int consul_read(struct consul_lane *lane, struct baton_call *call, const char *what,
		struct consul_answer *answer);
/* Begins a long poll on the watch lane; 0 or -1. */
int consul_poll(struct consul_lane *lane, struct baton_call *call, const char *path);
int consul_strange(struct baton_call *call);
/* The code for an error of Consul. *is_sure: surely nothing was carried out. */
int consul_judge(struct baton_call *call, int status, const char *text, bool *is_sure);
/* consul_results(): the results of an answer. consul_find(): the last of them with that key, or
 * NULL. */
const json_t *consul_results(const struct consul_answer *answer);
const json_t *consul_find(const struct consul_answer *answer, const char *key);

/* Why an operation has failed. */
enum consul_why { CONSUL_STALE, CONSUL_NO_SESSION, CONSUL_DELAYED, CONSUL_DENIED };

/* The i-th error of a transaction: which operation has failed, and why. CONSUL_DENIED: call->error
 * says so. */
size_t consul_n_errors(const struct consul_answer *answer);
enum consul_why consul_error(struct baton_call *call, const struct consul_answer *answer, size_t i,
			     size_t *op);

/* ---- lease.c ---- */

/* Reads how many claims the session has. OK; REFUSED: the session has ended; or another outcome. */
int consul_read_count(struct consul_lane *lane, struct baton_call *call, const char *id,
		      struct web_lease *lease);
/* Deletes the keys in an answer whose sessions have ended: such keys are useless. */
void consul_sweep(struct consul_lane *lane, const struct baton_call *call,
		  const struct consul_answer *seen);

/* ---- shown.c ---- */

/* consul_shown_add() comes before a candidate is shown, consul_shown_remove() after it is
 * withdrawn. False: no memory. */
bool consul_shown_add(struct consul_store *s, const char *session, const char *name);
void consul_shown_remove(struct consul_store *s, const char *session, const char *name);
/* Deletes the candidates of a session that has ended, as far as there is time, and forgets the
 * session. */
void consul_shown_clear(struct consul_lane *lane, uint64_t deadline_ns, const char *session);
void consul_shown_done(struct consul_store *s);

/* ---- observe.c ---- */

/* What we know of an election beside its record, while it is watched. */
struct consul_known {
	uint64_t offset;
	uint64_t state_index; /* 0: there is no state */
	uint64_t native;      /* the last term without the offset */
	bool exists;          /* the key that is locked exists */
	uint64_t until_ns;    /* until then, on our clock, it is reserved for another, or delayed */
	uint64_t claim_index; /* when the claim was last written, */
	uint64_t claim_nonce; /* and its nonce */
};

void consul_known_get(struct consul_store *s, const char *name, struct consul_known *k);
void consul_known_set(struct consul_store *s, const char *name, const struct consul_known *k);
/* Adds the operation that reads what consul_record() needs. */
void consul_op_read(struct consul_lane *lane, const char *name);
void consul_record(struct consul_store *s, const char *name, const char *id,
		   const struct consul_answer *answer, struct consul_known *k,
		   struct baton_record *out);
/* The state of an election; an empty object if there is none. The caller frees it. NULL: no
 * memory. */
json_t *consul_state(const struct consul_store *s, const char *name,
		     const struct consul_answer *answer);
uint64_t consul_native(const json_t *kv);
/* The same for a key that is made, and locked, at that index. */
uint64_t consul_new_native(uint64_t index);
/* Reads the holder of this key's claim. False: the key is free. *is_foreign: another program holds
 * it. */
bool consul_read_claim(const json_t *kv, struct baton_record *out, bool *is_foreign);

/* ---- history.c ---- */

/* Adds the leadership that begins to a claim's operations, in the term that it has if what we know
 * is still true. native 0: the key is made anew. */
void consul_op_begun(struct consul_lane *lane, const char *name, const char *session,
		     uint64_t nonce, uint64_t native, uint64_t offset, const char *leader);
/* Adds the end of the leadership to a release's operations. */
void consul_op_ended(struct consul_lane *lane, const char *session, const struct baton_release *r);
/* Deletes what is too old, as far as there is time. This is done about once in one_in calls, which
 * `index` decides: that of the write just before. */
void consul_prune_history(struct consul_lane *lane, const struct baton_call *call, const char *name,
			  uint64_t index, unsigned one_in);

/* ---- release.c ---- */

/* Adds the operations that unlock the claim, if it was last written at index. */
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
