/*
 * postgres.h: what the files of the postgres driver share: leases and elections as rows of a
 * PostgreSQL database, "postgres://user@host/database".
 *
 *   driver.c        the table of functions, the store and its lanes
 *   options.c       the URL, and what libpq is told
 *   connect.c       a connection: opened, checked, given up
 *   pipeline.c      ... and asked, in pipelines, all within a deadline
 *   array.c         arrays as the server reads them
 *   resolve.c       names to addresses within a deadline
 *   schema.c        the tables: printed, made on demand, and their version
 *   fence.c         a guard for the databases that leaders write to: printed only
 *   functions.sql   elections for programs that call SQL: printed only
 *   sql.c           the statements
 *   expiry.c        whose lease has surely ended: pure, the safety of this store rests on it
 *   lease.c         leases: open, renew, close, and the claims on them
 *   campaign.c      campaign
 *   release.c       release
 *   observe.c       observe
 *   candidates.c    publish, withdraw, candidates
 *   orders.c        orders and the pause
 *   history.c       history
 *   list.c          list
 *   doctor.c        what the server is like, for a command that asks
 *   watch.c         LISTEN, and the ends of leases
 *   lock_session.c  the session that holds locks (mode=advisory, fast=1)
 *   lock_waiters.c  sessions that wait for the locks of others to become free
 *   tableless/      mode=advisory&fast=1: locks and nothing else, no tables
 *
 * A lease is a row that its process renews; an election's row names the lease that holds it. A
 * lease *lives as long as its row is there*. Only two parties delete it: its owner, or somebody who
 * has proven that its time is over (expiry.h), by compare-and-set on its `seq`, in the transaction
 * that claims. So an owner whose lease was taken finds no row to renew, and can't come back.
 *
 * A claim is one transaction: pin the own lease (FOR KEY SHARE, so that it can't be deleted before
 * the commit; renewals go on), delete proven-dead leases, take what is free, mint the terms. Rows
 * that a stranger has locked are skipped, never waited for.
 *
 * Session locks come on top of that. They prove that a connection lives, not its owner (rule 3): so
 * the server is told to end a session that was silent for a whole lease, and not before; and a
 * session that may hold a lock is not closed while its owner may still lead. With fast=1 a lease
 * has a *beacon*, a lock of its session: whoever finds it free may take the lease at once. In
 * mode=advisory each claim holds its election's lock, too, which other programs respect. A process
 * that leads by a session lock has no other session: see lock_session.c.
 */
#ifndef BATON_POSTGRES_H
#define BATON_POSTGRES_H

#include <libpq-fe.h>
#include <pthread.h>
#include <stdatomic.h>

#include "baton-store.h"
#include "store/base.h"
#include "store/postgres/expiry.h"

#define PG_SERVER_MIN 120000
#define PG_SCHEMA_VERSION 1
#define PG_SCHEMA_MAX 48
#define PG_HISTORY_MAX 100
#define PG_LIST_MAX 10000 /* names in one answer */
#define PG_PUSHED_MAX 24  /* statements of one call, each perhaps prepared first */
#define PG_PARAMS_MAX 10
/* As in the core: terms fit a bigint; a floor that jumps further than this is corrupt (S4). */

/* ---- sql.c: the statements. A '@' in their texts stands for the schema and a dot, a '^' for the
 * schema alone, a '~' for its name inside quotes, a '#' for lock_id= ---- */

/* Each with the name that it is prepared under, which also stands in its text as a comment: so that
 * a server's log and pg_stat_activity show what it is. The first word is the verb that the
 * statement is for: the conformance suite lets a verb fail by it. PG_LIMITS says how long the
 * others may take, and how they are planned. */
#define PG_STATEMENT_LIST(X)                            \
	X(LIMITS, "baton_limits")                       \
	X(HELLO, "baton_hello")                         \
	X(TABLES, "baton_tables")                       \
	X(VERSION, "baton_version")                     \
	X(LEASE_OPEN, "baton_open")                     \
	X(LEASE_RENEW, "baton_renew")                   \
	X(LEASE_END, "baton_end")                       \
	X(LEASE_FREE, "baton_free")                     \
	X(LEASE_STALE, "baton_stale")                   \
	X(LEASE_SWEEP, "baton_sweep")                   \
	X(LEASES_SEEN, "baton_seen")                    \
	X(CLAIMS, "baton_claims")                       \
	X(PIN, "baton_pin")                             \
	X(MAKE, "baton_make")                           \
	X(KILL, "baton_kill")                           \
	X(CLAIM, "baton_claim")                         \
	X(CLAIM_LOCKED, "baton_claim_locked")           \
	X(RELEASE, "baton_release")                     \
	X(RELEASE_LOCKED, "baton_release_locked")       \
	X(SESSION, "baton_session")                     \
	X(END_OLD, "baton_end_old")                     \
	X(BEACON, "baton_beacon")                       \
	X(UNLOCK_ALL, "baton_unlock_all")               \
	X(KEEP, "baton_keep")                           \
	X(LOCKED, "baton_observe_locks")                \
	X(AWAIT, "baton_await")                         \
	X(AWAITED, "baton_awaited")                     \
	X(TABLELESS_FIND, "baton_claim_find")           \
	X(TABLELESS_TAKE, "baton_claim_tableless")      \
	X(TABLELESS_TELL, "baton_tell_tableless")       \
	X(TABLELESS_RENEW, "baton_renew_tableless")     \
	X(TABLELESS_OWN, "baton_observe_own")           \
	X(TABLELESS_RELEASE, "baton_release_tableless") \
	X(STILL_HELD, "baton_still_held")               \
	X(OBSERVE, "baton_observe")                     \
	X(LISTEN, "baton_listen")                       \
	X(HELD_BY, "baton_held_by")                     \
	X(PUBLISH, "baton_publish")                     \
	X(PUBLISH_HELD, "baton_publish_held")           \
	X(WITHDRAW, "baton_withdraw")                   \
	X(CANDIDATES, "baton_candidates")               \
	X(ORDER, "baton_order")                         \
	X(PAUSE, "baton_pause")                         \
	X(HISTORY, "baton_history")                     \
	X(LIST, "baton_list")                           \
	X(EXAMINE, "baton_examine")                     \
	X(EXAMINE_TABLES, "baton_examine_tables")       \
	X(EXAMINE_FUNCTIONS, "baton_examine_functions")

enum pg_statement {
#define X(word, name) PG_##word,
	PG_STATEMENT_LIST(X)
#undef X
		PG_STATEMENTS,
};

extern const char *const pg_statement_names[PG_STATEMENTS];
extern const char *const pg_statements[PG_STATEMENTS];
struct pg_conninfo;
/* Puts these in; the caller frees it. NULL: no memory. */
char *pg_sql(const char *text, const struct pg_conninfo *info);

/* ---- options.c ---- */

enum { PG_KEYWORDS_MAX = 64 };

struct pg_conninfo {
	char *keywords[PG_KEYWORDS_MAX + 1];
	char *values[PG_KEYWORDS_MAX + 1];
	size_t n;
	char schema[PG_SCHEMA_MAX + 1];
	char lock_id[24]; /* "": the locks are named by the elections */
	bool advisory;
	bool fast;
	char *password_file; /* NULL: none */
};

int pg_conninfo_parse(struct pg_conninfo *info, const char *text, struct baton_error *err);
void pg_conninfo_done(struct pg_conninfo *info);
/* The first line of the password file, for free(); NULL: can't be read, or there is none. */
char *pg_conninfo_password(const struct pg_conninfo *info);
/* NULL: it isn't said. */
const char *pg_conninfo_get(const struct pg_conninfo *info, const char *keyword);

/* ---- the store ---- */

struct pg_lookup;

struct pg_conn {
	PGconn *pg; /* NULL: none */
	_Atomic int fd;
	bool pooled;         /* somebody stands in between: sessions aren't ours */
	bool warned;         /* the server committed, and has doubts about it */
	bool ended;          /* the server has said goodbye */
	bool connecting;     /* not there yet: since began_ns */
	bool has_locks;      /* set up to hold locks, and has its beacon (lock_session.c) */
	bool may_have_locks; /* ... or was told to, and nobody knows */
	bool unsure;         /* it may have locks that no row tells of */
	bool listens;        /* ... and hears of changes (watch.c) */
	int pid;             /* of the session; libpq forgets it when the connection breaks */
	int64_t start_us;    /* ... and its start, by the server's clock: together its name */
	PostgresPollingStatusType polling;
	uint64_t began_ns;
	unsigned turn;     /* the store's, when it began */
	size_t n_places;   /* addresses that there are to ask, one after the other */
	uint64_t limit_ms; /* the session's limits, as PG_LIMITS last set them; 0: unknown */
	size_t plan;
	bool prepared[PG_STATEMENTS];
	uint64_t heard_ns;
};

/* A session that nobody needs any more is ended, which takes the server milliseconds of a core: not
 * at the moment at which somebody takes over. */
#define PG_REST_NS ((uint64_t)100000000)
#define PG_LOST_MAX 4
#define PG_WAITERS_MAX 8

struct pg_waiter;
struct tableless_session;
struct tableless_term;

struct pg_store {
	struct store_base base; /* its lock: watched leases, clock, spare, lookups, waiters... */
	struct pg_conninfo info;
	char *sql[PG_STATEMENTS];
	struct watched_leases watched_leases;
	struct expiry_clock clock;
	struct pg_lane *watcher;     /* the lane that listens */
	uint64_t sleeps_ns;          /* until when, on the boot clock */
	struct pg_conn spare;        /* left by a lane that was closed, for the next one */
	uint64_t spare_ns;           /* since when */
	struct pg_lookup *lookups;   /* questions to the name service that outlived their call */
	struct pg_lane *lock_lane;   /* whose session holds the locks; NULL: there are none */
	struct store_turn lock_turn; /* the lock lane, and what is known of it */
	char session_lease_id[BATON_LEASE_ID_MAX +
			      1];    /* the lease that it holds locks for; "": none */
	bool session_campaigns;      /* ... and that one is more than a trial */
	PGconn *parked[PG_LOST_MAX]; /* sessions that didn't answer, and may hold locks */
	int lost_pids[PG_LOST_MAX];  /* ... and all that may not have ended yet */
	int64_t lost_starts[PG_LOST_MAX];
	struct pg_waiter *waiters[PG_WAITERS_MAX];
	_Atomic int lock_pid;
	_Atomic uint64_t patience_ns; /* that the last call to the lock lane had */
	uint64_t owed_ns;             /* the watch lane's: waits so long for a late answer, or 0 */
	PGnotify *heard;              /* the first notification that another lane came across */
	_Atomic int claimer_pid;      /* the session of the last claim */
	_Atomic bool watch_waits;     /* for a turn */
	struct tableless_session *sessions; /* of tableless/ */
	struct tableless_session *half_made;
	struct tableless_term *seen;
	_Atomic bool listening;
	_Atomic bool has_schema;
	_Atomic uint64_t troubles; /* connections that failed: others may be dead as well */
	/* Which address is asked first. It moves on from one that is silent, and stays then. */
	_Atomic unsigned turn;
	_Atomic unsigned good_turn; /* ... when we were last let in */
};

struct pg_watch;

struct pg_lane {
	struct store_lane link;
	struct pg_store *store;
	struct pg_conn conn;
	bool is_plain;          /* any connection will do */
	bool renews;            /* so it goes first where lanes take turns */
	bool examines;          /* for the doctor, who tells what is wrong in its own words */
	struct pg_watch *watch; /* of a watch lane */
	int wake_fd;            /* of a watch lane, else -1 */
	_Atomic bool woken;
	bool nudged;          /* of a watch lane: wake_fd was read while it asked the server */
	struct pg_lane *user; /* of the lock lane: the watch lane, while that one uses it */
	/* The call under way. */
	struct baton_call *call;
	uint64_t begun_ns;
	int pushed[PG_PUSHED_MAX]; /* a statement, or ~ it: only prepared */
	PGresult *results[PG_PUSHED_MAX];
	size_t n_pushed;
	size_t n_taken; /* of the answers */
	bool push_failed;
	/* A session with one purpose (tableless/, lock_waiters.c): it is waited for, not replaced;
	 * its statements are not prepared and set no limits, so that the last one shows what for.
	 * */
	bool is_apart;
	bool repeats;    /* ... except a lock waiter's, which waits again and again */
	bool owes;       /* answers that came too late */
	bool waited_out; /* a lock waiter's: nothing happened for as long as it waits */
};

/* ---- array.c ---- */

/* A growing text: arrays for the server. */
struct pg_text {
	char *at;
	size_t n;
	size_t room;
	bool failed; /* no memory */
};

void pg_text_add(struct pg_text *t, const char *text);
void pg_text_done(struct pg_text *t);
/* Of several. */
bool pg_texts_failed(const struct pg_text *list, size_t n);
void pg_texts_done(struct pg_text *list, size_t n);
/* "{", elements, "}". An element is a number or a quoted text; NULL is NULL. */
void pg_array_begin(struct pg_text *t);
void pg_array_text(struct pg_text *t, const char *value);
void pg_array_number(struct pg_text *t, int64_t value);
void pg_array_end(struct pg_text *t);
/* ... of all these. */
void pg_array_names(struct pg_text *t, const struct baton_observation *list, size_t n);

/* ---- pipeline.c ---- */

/*
 * A call: begin, push statements, run. begin connects if need be, and makes the schema; it returns
 * 0, or the outcome (FAILED: nothing was asked). run() sends all as one transaction and returns OK,
 * with the results of each statement in lane->results until the next begin; or FAILED or UNKNOWN,
 * with call->error filled in. n: how many elections it is about; 0: none in particular.
 */
int pg_begin(struct pg_lane *lane, struct baton_call *call, size_t n);
void pg_push(struct pg_lane *lane, int statement, size_t n, const char *const *params);
/* So that it is known to the session when it is needed. */
void pg_push_prepare(struct pg_lane *lane, int statement);
/* A text of one's own, which is not prepared. */
void pg_push_text(struct pg_lane *lane, const char *text, size_t n, const char *const *params);
int pg_run(struct pg_lane *lane);
/* A call of one statement, whose result is in lane->results. */
int pg_ask(struct pg_lane *l, struct baton_call *call, int statement, size_t n,
	   const char *const *params);
/* The next answer of those that were pushed is this: the session may know one statement more. */
void pg_note_prepared(struct pg_lane *lane, const PGresult *r);
/* Reads what is still owed; false: it isn't there yet, or never will be. */
bool pg_drain(struct pg_lane *lane);
/* The connection was lost, and there is time for another try of what may be done twice. */
bool pg_may_repeat(const struct pg_lane *lane, int outcome);
void pg_results_clear(struct pg_lane *lane);
/* In this call. */
bool pg_is_pushed(const struct pg_lane *lane, int statement);
/* Statements without parameters, several in one text, as one transaction. 0, or the outcome. */
int pg_exec(struct pg_lane *lane, const char *text);
/* The result of what was pushed as the i-th since begin. */
const PGresult *pg_result(const struct pg_lane *lane, size_t i);
/* ... of that statement, if it was pushed. */
const PGresult *pg_result_of(const struct pg_lane *lane, int statement);
int64_t pg_number(const PGresult *r, int row, int column);
uint64_t pg_unsigned(const PGresult *r, int row, int column);
bool pg_is_true(const PGresult *r, int row, int column);
void pg_copy(char *to, size_t size, const PGresult *r, int row, int column);
int pg_no_memory(struct pg_lane *lane);

/* Somebody wants the watch lane back that this is done for. */
bool pg_is_woken(struct pg_lane *lane);
/* Waits for the connection, the lane's wake_fd or the deadline: 1: ready, 0: woken, or too late. */
int pg_wait(struct pg_lane *lane, short events, uint64_t deadline_ns);
/* Something is wrong with the connection, in the server's or libpq's words; closes it. */
void pg_broken(struct pg_lane *lane, const char *words);
/* What the server said no with, as code and sentence. */
void pg_refused(struct pg_lane *lane, const char *state, const char *words);

/* ---- connect.c ---- */

/* 0, or a code with call->error filled in; the lane has no connection then. */
int pg_connect(struct pg_lane *lane);
/* False: there is none, or it broke while nobody used it. */
bool pg_is_connected(struct pg_lane *lane);
/* S7: the lock lane's, if it is well and may have locks, is parked and not closed. */
void pg_conn_close(struct pg_lane *lane);
struct pg_lane *pg_lane_new(struct pg_store *store);
void pg_lane_free(struct pg_lane *l);
void pg_conn_free(struct pg_conn *c);
/* Takes the session out of it; it is only good for PQfinish() then. */
PGconn *pg_conn_take(struct pg_conn *c);
void pg_conn_move(struct pg_conn *to, struct pg_conn *from);
/* A store whose session holds locks has no other for long; returns when the next end is due. */
uint64_t pg_spare_rest(struct pg_store *store);
/* An answer of the server about its clock, for the proofs of expiry.h. */
void pg_clock_seen(struct pg_lane *lane, int64_t server_us);

/* ---- resolve.c ---- */

/*
 * Fills in host, hostaddr and port as libpq's lists, so that it, which would block for as long as
 * the name service likes, has nothing to look up. They begin with the one whose turn it is. Leaves
 * them empty where there is nothing to do. 0, or a code with call->error filled in.
 */
int pg_resolve(struct pg_lane *lane, struct pg_text hosts[3]);
void pg_lookups_free(struct pg_lookup *list);

/* ---- schema.c ---- */

/* The tables are there and of our version, or are made; 0, or FAILED. */
int pg_schema_check(struct pg_lane *lane, struct baton_call *call);
extern const char pg_schema_script[];
extern const char pg_fence_script[];     /* fence.c */
extern const char pg_functions_script[]; /* functions.sql */

/* ---- observe.c: what is known of others' leases, for all lanes ---- */

/* The ids of all that are known, as an array; false: there are none. */
bool pg_watched_ids(struct pg_store *store, struct pg_text *ids);
/* The answer to PG_LEASES_SEEN about them, which was asked for at asked_ns. */
void pg_watched_seen(struct pg_lane *lane, const PGresult *r, uint64_t asked_ns);
/* Those that have surely ended, as arrays of ids and seqs; false: none. */
bool pg_watched_ended(struct pg_store *store, struct pg_text *ids, struct pg_text *seqs);

/* How long it takes a whole lease to end, in the server's units; the caller's memory. */
void pg_lease_ms(const struct baton_lease *lease, char text[24]);

/* ---- lock_session.c ---- */

/* The lane whose session holds the locks; this lane itself where there are none. NULL: it was busy
 * all the time. Ends with pg_session_give(). */
struct pg_lane *pg_session_take(struct pg_lane *lane, struct baton_call *call);
/* For the watch lane. NULL: it is in use, and the lane is nudged when that is over; or it owes an
 * answer, until owed_ns. */
struct pg_lane *pg_session_take_idle(struct pg_lane *lane);
void pg_session_give(struct pg_lane *lane, const struct pg_lane *taken);
/* The next notification that is news to us, for PQfreemem(); NULL: there is none. */
PGnotify *pg_next_heard(struct pg_store *store, struct pg_conn *c);
/* How long a call of the watch lane may take. */
uint64_t pg_watch_call_ns(const struct pg_store *store);
/* The session is there for that lease; whether it has its locks is another question. */
bool pg_session_is_for(const struct pg_lane *l, const struct baton_lease *lease);
/* ... or would be, if that were opened, or campaigned. */
bool pg_session_could_be_for(const struct pg_lane *l, const struct baton_lease *lease);
/* Before and after a session takes locks for that lease, in the call's transaction, which renews
 * the lease before anything else. */
void pg_push_lock_session(struct pg_lane *l, const struct baton_lease *lease);
void pg_session_is_locked(struct pg_lane *l, const struct baton_lease *lease);
/* Where a dead leader is replaced at once: asks to end nothing, and to claim nothing for the lease,
 * if there is one, so that the session has plans for it when there is something. */
void pg_push_rehearse(struct pg_lane *l, const struct baton_lease *lease);
/* lease.c: in mode=advisory, its locks become those of the lease's claims. */
void pg_push_keep(struct pg_lane *l, const struct baton_lease *lease);
/* All locks go, and all sessions that may have some; after it, there is no lease any more. */
void pg_push_unlock(struct pg_lane *l);
void pg_unlocked(struct pg_lane *l);
void pg_session_end_lost(struct pg_store *store);
/* The lock lane's connection goes; `park`: it only didn't answer, and keeps its locks until the
 * lease is over. */
void pg_session_lose(struct pg_store *store, bool park);
/* Settings of a session that holds locks for so long. */
void pg_push_session(struct pg_lane *l, const struct baton_lease *lease);
/* The columns of PG_LOCKED. */
enum {
	PG_LOCK_INDEX,
	PG_LOCK_KEY,
	PG_LOCK_PID,
	PG_LOCK_USER,
	PG_LOCK_APP,
	PG_LOCK_ADDRESS,
	PG_LOCK_QUERY,
	PG_LOCK_SILENT, /* for so many microseconds */
};
/* The session is baton's, by its last statement, which others of the same role see. */
bool pg_is_ours(const PGresult *r, int row);
/* Another program's can only be told by what the server knows of it. */
void pg_name_session(const PGresult *r, int row, char *out, size_t size);
/* The session locks of others: a record of whoever has one that no row tells of. */
void pg_fill_locked(struct pg_lane *l, const PGresult *r, struct baton_observation *list, size_t n);

/* ---- lock_waiters.c ---- */

/* Wants to be told when this lock is free; the label is a lease's id, or an election's name. True:
 * somebody waits for it already. */
bool pg_waiter_ask(struct pg_store *store, bool is_lease, const char *label, int64_t key);
/* For the watch lane: sets up what was asked for, and tells who is to look, whether the lock was
 * free just now, and of a lease the answer to PG_AWAITED: that one has lost its lock for sure. */
typedef void pg_lock_freed(struct pg_lane *watcher, const char *label, const PGresult *lease,
			   bool is_free);
/* True: somebody was told. */
bool pg_waiters_attend(struct pg_lane *watcher, pg_lock_freed *freed, bool arms);
struct pollfd;
/* Ends sessions that have nothing to wait for; returns when the next one is due. */
uint64_t pg_waiters_rest(struct pg_store *store);
/* Their sockets; returns how many. */
size_t pg_waiters_poll(struct pg_store *store, struct pollfd *fds);
void pg_waiters_free(struct pg_store *store);

/* ---- tableless/: the verbs without tables ---- */

bool pg_is_tableless(const struct pg_store *store);
extern const struct baton_traits tableless_traits;
int tableless_renew(struct pg_lane *l, struct baton_call *call, const struct baton_lease *lease,
		    uint32_t *n_held);
int tableless_close(struct pg_lane *l, struct baton_call *call, const struct baton_lease *lease);
int tableless_claims(struct pg_lane *l, struct baton_call *call, const struct baton_lease *lease,
		     void (*found)(void *arg, const char *name, uint64_t nonce, uint64_t term),
		     void *arg);
void tableless_campaign(struct pg_lane *l, struct baton_call *call, const struct baton_lease *lease,
			struct baton_campaign *list, size_t n);
void tableless_release(struct pg_lane *l, struct baton_call *call, struct baton_release *list,
		       size_t n);
void tableless_observe(struct pg_lane *l, struct baton_call *call, struct baton_observation *list,
		       size_t n);
int tableless_candidates(struct pg_lane *l, struct baton_call *call, const char *name,
			 void (*found)(void *arg, const struct baton_candidate *candidate),
			 void *arg);
/* What needs a table. */
int tableless_refuse(struct baton_call *call);
/* Somebody else's session, or nobody's, has that election's lock: its end must be pushed. */
bool tableless_is_other(struct pg_store *store, const char *name);
/* The lock of that election was free a moment ago. */
void tableless_lock_freed(struct pg_store *store, const char *name);
void tableless_sessions_end(struct pg_store *store);
void tableless_terms_done(struct pg_store *store);

/* ---- the verbs ---- */

int pg_lease_open(void *lane, struct baton_call *call, const struct baton_lease *lease);
int pg_lease_renew(void *lane, struct baton_call *call, const struct baton_lease *lease,
		   uint32_t *n_held);
int pg_lease_close(void *lane, struct baton_call *call, const struct baton_lease *lease);
int pg_claims(void *lane, struct baton_call *call, const struct baton_lease *lease,
	      void (*found)(void *arg, const char *name, uint64_t nonce, uint64_t term), void *arg);
void pg_campaign(void *lane, struct baton_call *call, const struct baton_lease *lease,
		 struct baton_campaign *list, size_t n);
void pg_release(void *lane, struct baton_call *call, struct baton_release *list, size_t n);
void pg_observe(void *lane, struct baton_call *call, struct baton_observation *list, size_t n);
int pg_watch_add(void *lane, const char *name, uint64_t cookie);
void pg_watch_remove(void *lane, const char *name, uint64_t cookie);
int pg_watch_wait(void *lane, struct baton_call *call, uint64_t *cookies, size_t max);
void pg_watch_wake(void *lane);
void pg_publish(void *lane, struct baton_call *call, const struct baton_lease *lease,
		struct baton_publication *list, size_t n);
int pg_withdraw(void *lane, struct baton_call *call, const struct baton_lease *lease,
		const char *name);
int pg_candidates(void *lane, struct baton_call *call, const char *name,
		  void (*found)(void *arg, const struct baton_candidate *candidate), void *arg);
int pg_order(void *lane, struct baton_call *call, const char *name,
	     const struct baton_order *order);
int pg_pause(void *lane, struct baton_call *call, const char *name, bool paused);
int pg_list(void *lane, struct baton_call *call, const char *prefix, const char *after, size_t max,
	    void (*found)(void *arg, const char *name), void *arg);
int pg_history(void *lane, struct baton_call *call, const char *name, size_t max,
	       void (*found)(void *arg, const struct baton_leadership *leadership), void *arg);

/* ---- doctor.c ---- */

int pg_examine(void *l, struct baton_call *call,
	       void (*found)(void *arg, const struct baton_finding *finding), void *arg);

/* ---- watch.c ---- */

struct pg_watch *pg_watch_new(void);
void pg_watch_free(struct pg_watch *w);
/* Something about the watched leases changed that the watch lane should reckon with. */
void pg_watch_nudge(struct pg_store *store);

#endif
