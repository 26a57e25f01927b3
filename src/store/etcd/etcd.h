/*
 * etcd.h: what the files of the etcd driver share.
 *
 *   driver.c   the table of functions, the store and its lanes
 *   options.c  the URL
 *   key.c      keys, and the requests that are made of them
 *   call.c     one request: which member, who we are there, what an answer means
 *   lease.c    the lease, and the book of those that this process has
 *   claim.c    campaigning and releasing
 *   look.c     records, and the claims of a lease
 *   people.c   candidates, orders, pauses
 *   watch.c    hints
 *   doctor.c   what the cluster is like
 *
 * etcd is spoken to through its JSON gateway (/v3/...): the same messages as by gRPC, keys and
 * values in base64, 64-bit numbers as texts. What is in the store, with the prefix "baton":
 *
 *   baton/NAME/LEASE             a claim: the layout of etcd's own concurrency package. Who has the
 *                                lowest create revision below NAME/ leads. We make ours only where
 *                                there is none, so it is the lowest
 *   baton/.election/NAME/term    written with every claim: its mod revision is the last claim's
 *                       /offset  what is added to revisions; only there when the cluster lost data
 *                       /paused /reserved /order
 *   baton.candidate/NAME/LEASE   who would like to lead
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

#include "store/web/web.h"

#pragma GCC visibility push(hidden)

#define ETCD_PREFIX_MAX 128
/* A name with every byte encoded, before or behind a lease, and what stands around it. */
#define ETCD_KEY_MAX (ETCD_PREFIX_MAX + 2 * 3 * BATON_NAME_MAX + 64)
/* How many elections one transaction serves: etcd takes 128 operations, nested ones included. */
#define ETCD_CHUNK 50
/* Terms end here: etcd's revisions do. */
#define ETCD_TERM_MAX ((uint64_t)INT64_MAX - 1)
#define ETCD_JUMP_MAX ((uint64_t)1 << 48)

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
	char token[WEB_PATH_MAX];     /* `lock`; of the last who logged in, "": none */
	atomic_bool is_loss_reported; /* the cluster's revisions are below a term that was seen */
};

struct etcd_lane {
	struct web_lane web;
	struct etcd_store *store;
	uint64_t raft_term;       /* of the last answer */
	uint64_t revision;        /* of the last answer */
	bool is_made;             /* the watch lane's: its stream has begun */
	char token[WEB_PATH_MAX]; /* "": none */
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
/* The end of the range of all keys that begin like this one. */
struct etcd_key etcd_key_end(const struct etcd_key *key);
/* What a key is about: 'c'laim, 's'tate, another 'o'ne, or none of ours: 0. The name in *name. */
int etcd_key_read(const struct etcd_store *s, const char *key, char *name);

/* What requests are made of. They are put into one another by hand: see claim.c. */
void etcd_put_key(struct bytes *b, const char *member, const struct etcd_key *key);
void etcd_put(struct bytes *b, const struct etcd_key *key, const char *value, uint64_t lease);
void etcd_delete(struct bytes *b, const struct etcd_key *key);
/* target: CREATE or MOD. is_range: of all keys that begin like this one. */
void etcd_compare(struct bytes *b, const struct etcd_key *key, bool is_range, const char *target,
		  uint64_t revision);
void etcd_compare_value(struct bytes *b, const struct etcd_key *key, const char *value);
/* All keys that begin like this one; first: only the one that was created first. */
void etcd_range(struct bytes *b, const struct etcd_key *key, bool first);

/* ---- call.c ---- */

/*
 * The lane's body to that path, and the answer, to be given back with json_decref(). OK, or an
 * outcome with the sentence in call->error; REFUSED: etcd knows no such lease. What stands behind a
 * '?' is for those who read along, in a log or a test; etcd doesn't look at it.
 */
int etcd_call(struct etcd_lane *lane, struct baton_call *call, const char *path, json_t **answer);
/* The same for the watch lane's stream; 0 or -1. */
int etcd_listen(struct etcd_lane *lane, struct baton_call *call);
/* The token doesn't work any more: the next call logs in. */
void etcd_drop_token(struct etcd_lane *lane);
/* The answer isn't what etcd says. */
int etcd_strange(struct baton_call *call);
/* An error of etcd's: its code; is_sure: nothing was carried out. Fills call->error. */
int etcd_judge(struct baton_call *call, const json_t *error, bool *is_sure);

/* The i-th answer of a transaction; of it, the keys that a range found; and the first of them. */
const json_t *etcd_response(const json_t *txn, size_t i, const char *kind);
const json_t *etcd_kvs(const json_t *txn, size_t i);
const json_t *etcd_kv(const json_t *txn, size_t i);

/* ---- lease.c ---- */

/* etcd's number of a lease; 0: we have none such. */
uint64_t etcd_lease_number(struct etcd_store *s, const char *id);

/* ---- look.c ---- */

/* What a driver knows of an election beside its record: see HINTS_NOTES. */
struct etcd_known {
	uint64_t offset;
	uint64_t offset_mod;
	uint64_t reserved_mod;
	uint64_t reserved_until_ns; /* on our clock, from when we saw it */
	uint64_t claim_mod;         /* of the claim that we have won last */
};

void etcd_known_get(struct etcd_store *s, const char *name, struct etcd_known *k);
void etcd_known_set(struct etcd_store *s, const char *name, const struct etcd_known *k);
/* Two ranges: what etcd_record() is made of. */
void etcd_look(struct bytes *b, const struct etcd_store *s, const char *name);
/* Of the answers to these, which stand at `at`. For id. Updates k. */
void etcd_record(struct etcd_store *s, const char *name, const char *id, const json_t *txn,
		 size_t at, struct etcd_known *k, struct baton_record *out);
/* Who has the claim that is in this key. */
void etcd_read_claim(const json_t *kv, struct baton_record *out);
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
int etcd_examine(void *l, struct baton_call *call,
		 void (*found)(void *arg, const struct baton_finding *finding), void *arg);
int etcd_watch_wait(void *l, struct baton_call *call, uint64_t *cookies, size_t max);

#pragma GCC visibility pop

#endif
