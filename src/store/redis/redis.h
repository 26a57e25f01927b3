/*
 * redis.h: what the files of the Redis driver share.
 *
 *   driver.c       the table of functions, the store and its lanes
 *   options.c      the URL
 *   lease.c, campaign.c, release.c, observe.c, candidates.c, orders.c, history.c, list.c  the verbs
 *   watch.c        hints; watch_index.c knows what is watched, and who leads it
 *   doctor.c       examines the server
 *   call.c         runs one script, and tells the outcome by what came back
 *   reclaim.c      our own claims, and claiming them again on a server that has lost them
 *   primary.c      connects a lane to the right server, and checks that it may be used
 *   wire.c         a connection: base/net with the protocol
 *   resp.c         the protocol: commands and replies, all of bounded size
 *   lua/           the scripts: the protocol itself. prelude.lua describes the keys
 *
 * Each verb is one script, so it is atomic. Every wait for a socket ends with the call's deadline.
 * A connection that fails in the middle is closed, so that a late answer is never taken for the
 * next one. A call that was sent and not answered is UNKNOWN.
 *
 * Lanes share nothing but struct redis_store. Its options never change. Its index and its list of
 * own claims each have a lock.
 */
#ifndef BATON_REDIS_H
#define BATON_REDIS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/net/net.h"
#include "baton-store.h"
#include "store/base.h"
#include "store/options.h"
#include "store/redis/resp.h"

#pragma GCC visibility push(hidden)

#define REDIS_HOSTS_MAX 16
#define REDIS_PATH_MAX 512
/* How many elections one script serves. They are few, because the server does nothing else
 * meanwhile. */
#define REDIS_PART 200
/* How many names one script lists. */
#define REDIS_LIST_MAX 1000
#define REDIS_VERSION_MIN 6
/* The default of max_lease: the longest lease, and so the time without a winner after a restart. */
#define REDIS_MAX_LEASE_MS 30000
/* For how many leaders' leases a renewal asks how much time they have left. */
#define REDIS_SEEN_MAX 64
/* The size of an id that a server gives itself. */
#define REDIS_ID_SIZE 48

/* ---- options.c ---- */

struct redis_host {
	char name[BATON_NAME_MAX + 1];
	char port[8];
};

/* A password, or the file that has it in its first line. Both "": no password. */
struct redis_secret {
	char text[REDIS_PATH_MAX];
	char file[REDIS_PATH_MAX];
};

enum redis_mode { REDIS_SINGLE, REDIS_SENTINEL, REDIS_CLUSTER };

struct redis_options {
	int mode;
	bool tls;
	bool durable;
	struct redis_host hosts[REDIS_HOSTS_MAX];
	size_t n_hosts;
	char socket[108];                /* "": TCP */
	char master[BATON_NAME_MAX + 1]; /* the primary's name for the Sentinels */
	char user[BATON_NAME_MAX + 1];
	struct redis_secret password;
	char sentinel_user[BATON_NAME_MAX + 1];
	struct redis_secret sentinel_password;
	struct option_tls files;
	char prefix[BATON_NAME_MAX + 8]; /* "{baton}:" */
	uint32_t max_lease_ms;
	uint32_t db;
	uint32_t wait; /* replicas that must have a write before it counts */
	uint32_t history;
};

/* BATON_OK, or a code, with a sentence in err. */
int redis_options_parse(struct redis_options *o, const char *text, struct baton_error *err);

/* ---- wire.c ---- */

struct redis_wire {
	struct net net;
	struct baton_error *error; /* the call's: everything below writes its sentence here */
	struct resp_out out;
	struct resp_in in;
};

void redis_wire_init(struct redis_wire *w);
void redis_wire_done(struct redis_wire *w);
void redis_wire_close(struct redis_wire *w);
/* All of these return 0, or -1 with a sentence. */
/* Sends what is in `out`, and leaves it there. */
int redis_wire_send(struct redis_wire *w);
/* Reads the next reply. It is valid until the next one is read. */
int redis_wire_read(struct redis_wire *w, const struct resp **reply);
/* The same for the watch lane, which expects no certain reply: also NET_WOKEN or NET_NOTHING. */
int redis_wire_listen(struct redis_wire *w, const struct resp **reply);
/* The connection's failure becomes the call's error. Returns -1 always. */
int redis_wire_fail(struct redis_wire *w);

/* ---- watch_index.c ---- */

struct redis_index;

/* wake is written to when a hint is due before the watch lane means to wake up. */
struct redis_index *redis_index_new(int wake);
void redis_index_free(struct redis_index *index);
int redis_index_add(struct redis_index *index, const char *name, uint64_t cookie);
/* True: that was the name's last watch. */
bool redis_index_remove(struct redis_index *index, const char *name, uint64_t cookie);
/* The next name to subscribe to; false: there is none. */
bool redis_index_next(struct redis_index *index, char *name);
void redis_index_subscribed(struct redis_index *index, const char *name);
void redis_index_hint(struct redis_index *index, const char *name);
/* The connection is lost: all names must be subscribed to again, and then get a hint. */
void redis_index_broken(struct redis_index *index);
/* Notes an observation: the lease that holds the election ("": none), and how much time it has
 * left. Returns whether its end will cause a hint. */
bool redis_index_seen(struct redis_index *index, const char *name, const char *lease,
		      uint64_t left_ns);
/* The leases that hold watched elections, those with the shortest time left first. */
size_t redis_index_leases(struct redis_index *index, char (*ids)[BATON_LEASE_ID_MAX + 1],
			  size_t max);
/* Notes how much time such a lease has left; 0: it is gone. */
void redis_index_left(struct redis_index *index, const char *lease, uint64_t left_ns);
/* Takes hints that are due. *next_ns: when the next one will be due if nothing happens. */
size_t redis_index_take(struct redis_index *index, uint64_t *cookies, size_t max,
			uint64_t *next_ns);

/* ---- reclaim.c ---- */

/* Which server it is, and which run of it, as the server itself tells. */
struct redis_server {
	char run[REDIS_ID_SIZE];    /* different after each start */
	char replid[REDIS_ID_SIZE]; /* different after each failover, but not only then */
	bool has_followed;          /* another server; or its replicas did through a restart */
};

struct redis_own;
struct redis_lane;

/* Whether `now` is the same server as `then`, so that no other server can have granted or forgotten
 * anything since. guard() in prelude.lua has the same rule. */
bool redis_is_same_server(const struct redis_server *then, const struct redis_server *now);

struct redis_own *redis_own_new(void);
void redis_own_free(struct redis_own *own, bool is_forked);
/* redis_own_open(): a lease was opened on that server, and has no claims yet. redis_own_close(): it
 * is about to be closed. */
void redis_own_open(struct redis_own *own, const struct baton_lease *lease, uint64_t ttl_ms,
		    const struct redis_server *server);
void redis_own_close(struct redis_own *own, const char *lease);
/* For a lease that is being closed. redis_own_put_shown() writes some elections in which the
 * lease's owner is shown, and returns how many. redis_own_drop_shown(): the store has removed
 * these. */
size_t redis_own_put_shown(struct redis_own *own, const char *lease, struct resp_out *out);
void redis_own_drop_shown(struct redis_own *own, const char *lease);
/* Whether we know already that this lease has won the election in this term, or our own campaign is
 * about to tell us. */
bool redis_own_knows(struct redis_own *own, const char *lease, const char *name, uint64_t term,
		     bool is_asked);
/* redis_own_claim(): a claim was won, or the store lists it (profile NULL: as it was).
 * redis_own_drop(): a claim is about to be released. */
void redis_own_claim(struct redis_own *own, const char *lease, const char *name, uint64_t nonce,
		     uint64_t term, const struct baton_profile *profile);
void redis_own_drop(struct redis_own *own, const char *lease, const char *name);
/* The store is about to list all claims. is_done: it has listed them, and claims that it did not
 * list are not ours. */
void redis_own_list(struct redis_own *own, const char *lease, bool is_done);
/* The lease's owner is shown as a candidate; profile NULL: no longer. */
void redis_own_show(struct redis_own *own, const char *lease, const char *name,
		    const struct baton_profile *profile);
/* To call when the lane is connected. If the server may not know our own claims, claims them again
 * there. 0, or -1 with a sentence. */
int redis_reclaim(struct redis_lane *lane, struct baton_call *call);

/* ---- the store and its lanes ---- */

enum redis_script {
	REDIS_LEASE_OPEN,
	REDIS_LEASE_RENEW,
	REDIS_LEASE_KEEP,
	REDIS_LEASE_CLOSE,
	REDIS_RECLAIM,
	REDIS_CLAIMS,
	REDIS_CAMPAIGN,
	REDIS_RELEASE,
	REDIS_OBSERVE,
	REDIS_PUBLISH,
	REDIS_WITHDRAW,
	REDIS_CANDIDATES,
	REDIS_ORDER,
	REDIS_PAUSE,
	REDIS_HISTORY,
	REDIS_LIST,
	REDIS_DOCTOR,
	REDIS_SCRIPTS,
};

/* A file of lua/. The build puts its text into the module. */
struct redis_source {
	const unsigned char *text;
	size_t size;
};

extern const struct redis_source redis_prelude;
extern const struct redis_source redis_sources[REDIS_SCRIPTS];
/* The guard for a resource that checks terms (S4). We print it, and never call it. */
extern const char redis_fence[];

struct redis_text {
	char *text; /* prelude and body */
	size_t size;
	char sha[41];
};

struct redis_store {
	struct store_base base;
	struct redis_options options;
	struct baton_traits traits;
	struct redis_text scripts[REDIS_SCRIPTS];
	struct redis_index *index;  /* what is watched, and who leads it */
	struct redis_own *own;      /* our own claims */
	int wake;                   /* an eventfd: ends a wait of the watch lane */
	atomic_uint_fast64_t at;    /* which server a lane has found last; see redis_is_apart() */
	atomic_uint_fast64_t epoch; /* that of the last failover that a Sentinel has told us of */
};

struct redis_lane {
	struct store_lane base;
	struct redis_store *store;
	struct redis_wire wire;
	struct net_tls *tls;        /* NULL: without TLS */
	struct redis_host target;   /* where the connection goes; cluster: also where to begin */
	size_t turn;                /* which host is tried first */
	struct redis_server server; /* the server that was greeted last */
	uint64_t at;                /* ... as in the store's `at` */
	int kind;
	struct redis_host asked; /* cluster: the node that the last call was sent to; "": none */
	bool is_asking;          /* ... and the connection goes to it */
	bool examines;           /* for the doctor: servers that can't be used are looked at, too */
	bool is_subscribed;      /* the watch lane's connection stands */
	uint64_t heard_ns;       /* ... when the server last said something */
	uint64_t asked_ns;       /* ... when it was last asked; 0: it has answered */
	char cursor[24];         /* where the next renewal goes on checking claims */
	char cursor_lease[BATON_LEASE_ID_MAX + 1];
};

/* primary.c: makes sure that the lane is connected to a server that may be used. 0 or -1. */
int redis_connect(struct redis_lane *lane, struct baton_call *call);
/* The same to the node in lane->asked, for this call only: the cluster is moving our slot there. */
int redis_connect_asked(struct redis_lane *lane, struct baton_call *call);
/* Reads "MOVED slot host:port" or "ASK ...". False: the text is another error. */
bool redis_redirect(const char *text, const char *kind, struct redis_host *to);
void redis_disconnect(struct redis_lane *lane);
/* Whether another lane has found another server since. If one lane renewed on a server that another
 * lane doesn't use, no candidate would ever win. So lanes follow each other. */
bool redis_is_apart(const struct redis_lane *lane);
/* Redis before 6.2.7 ignores min-replicas-to-write in scripts. */
bool redis_minds_replicas(const char *version);
/* The value behind "key:" in INFO; "": there is none. */
void redis_info(const char *info, const char *key, char *out, size_t size);
/* The text of an error reply, without what Redis 6 puts around a script's error. */
const char *redis_error(const char *text);
/* The code for an error reply. *is_sure: it is sure that nothing was carried out. */
int redis_judge(const char *text, bool *is_sure);

/* How many elections of a batch of n the next script serves, when `done` are done. */
static inline size_t redis_part(size_t n, size_t done)
{
	return n - done < REDIS_PART ? n - done : REDIS_PART;
}

/* call.c: redis_call_begin() begins a script with n arguments after the prefix; the caller adds
 * them to lane->wire.out. redis_call_end() carries it out. Both return OK (with the reply), or the
 * outcome. */
int redis_call_begin(struct redis_lane *lane, struct baton_call *call, int script, size_t n);
/* The same for a script that needs only one key, the lease's. */
int redis_call_begin_lease(struct redis_lane *lane, struct baton_call *call, int script,
			   const char *id, size_t n);
int redis_call_end(struct redis_lane *lane, struct baton_call *call, int script,
		   const struct resp **reply);
/* For a reply that the script never returns. */
int redis_call_strange(struct redis_lane *lane, struct baton_call *call);
/* observe.c: reads what a script tells of an election, from the item `at` on. Also tells the index
 * who leads. */
void redis_record(struct redis_lane *lane, const char *name, const struct resp *list, size_t at,
		  struct baton_record *out);

int redis_lease_open(void *l, struct baton_call *call, const struct baton_lease *lease);
int redis_lease_renew(void *l, struct baton_call *call, const struct baton_lease *lease,
		      uint32_t *n_held);
int redis_lease_close(void *l, struct baton_call *call, const struct baton_lease *lease);
int redis_claims(void *l, struct baton_call *call, const struct baton_lease *lease,
		 void (*found)(void *arg, const char *name, uint64_t nonce, uint64_t term),
		 void *arg);
void redis_campaign(void *l, struct baton_call *call, const struct baton_lease *lease,
		    struct baton_campaign *list, size_t n);
void redis_release(void *l, struct baton_call *call, struct baton_release *list, size_t n);
void redis_observe(void *l, struct baton_call *call, struct baton_observation *list, size_t n);
void redis_publish(void *l, struct baton_call *call, const struct baton_lease *lease,
		   struct baton_publication *list, size_t n);
int redis_withdraw(void *l, struct baton_call *call, const struct baton_lease *lease,
		   const char *name);
int redis_candidates(void *l, struct baton_call *call, const char *name,
		     void (*found)(void *arg, const struct baton_candidate *candidate), void *arg);
int redis_survey(void *l, struct baton_call *call, struct baton_observation *o,
		 void (*found)(void *arg, const struct baton_candidate *candidate), void *arg);
int redis_order(void *l, struct baton_call *call, const char *name,
		const struct baton_order *order);
int redis_pause(void *l, struct baton_call *call, const char *name, bool paused);
int redis_history(void *l, struct baton_call *call, const char *name, size_t max,
		  void (*found)(void *arg, const struct baton_leadership *leadership), void *arg);
int redis_list(void *l, struct baton_call *call, const char *prefix, const char *after, size_t max,
	       void (*found)(void *arg, const char *name), void *arg);
int redis_examine(void *l, struct baton_call *call,
		  void (*found)(void *arg, const struct baton_finding *finding), void *arg);
int redis_watch_add(void *l, const char *name, uint64_t cookie);
void redis_watch_remove(void *l, const char *name, uint64_t cookie);
int redis_watch_wait(void *l, struct baton_call *call, uint64_t *cookies, size_t max);
void redis_watch_wake(void *l);

#pragma GCC visibility pop

#endif
