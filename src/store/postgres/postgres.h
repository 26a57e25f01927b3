/*
 * postgres.h: the postgres driver: leases and elections as rows of a PostgreSQL database,
 * "postgres://user@host/database". This header has what the files of the driver share.
 *
 *   driver.c        the table of functions, the store and its lanes
 *   options.c       the URL, and the options for libpq
 *   connect.c       connections: opened, checked, given up
 *   pipeline.c      calls on a connection: pipelines, each within a deadline
 *   array.c         arrays as the server reads them
 *   resolve.c       names to addresses within a deadline
 *   schema.c        the tables: printed, made on demand, and their version
 *   fence.c         a guard for databases that leaders write to: only printed
 *   functions.sql   elections for programs that call SQL: only printed
 *   sql.c           the statements
 *   expiry.c        which leases have surely ended: pure; the safety of this store rests on it
 *   lease.c         leases: open, renew, close, and the claims on them
 *   campaign.c      campaign
 *   release.c       release
 *   observe.c       observe
 *   candidates.c    publish, withdraw, candidates
 *   orders.c        orders and the pause
 *   history.c       history
 *   list.c          list
 *   doctor.c        examines the server
 *   watch.c         LISTEN, and the ends of leases
 *   lock_session.c  the session that holds locks (mode=advisory, fast=1)
 *   lock_waiters.c  sessions that wait until locks of others are free
 *   tableless/      mode=advisory&fast=1: locks only, no tables
 *
 * A lease is a row that its process renews; an election's row names the lease that holds it. A
 * lease *lives as long as its row is there*. Only two parties delete the row: the lease's owner, or
 * a process that has proven that the lease's time is over (expiry.h). That process does so by
 * compare-and-set on the row's `seq`, in the transaction that claims. So an owner whose lease was
 * taken finds no row to renew, and can't come back.
 *
 * A claim is one transaction: pin the own lease (FOR KEY SHARE, so that it can't be deleted before
 * the commit; renewals go on), delete the leases that are proven dead, take the elections that are
 * free, mint the terms. Rows that another transaction has locked are skipped, never waited for.
 *
 * Session locks come on top of that. They prove that a connection lives, not that its owner lives
 * (rule 3). So the server is told to end a session that was silent for a whole lease, and not
 * before; and we don't close a session that may hold a lock while its owner may still lead. With
 * fast=1 a lease has a *beacon*, a lock of its session: a process that finds the beacon free may
 * take the lease at once. In mode=advisory each claim also holds its election's lock, which other
 * programs respect. A process that leads by a session lock has no other session: see
 * lock_session.c.
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
#define PG_PUSHED_MAX 24  /* entries of one call: statements, and preparing them */
#define PG_PARAMS_MAX 10

/* ---- sql.c: the statements. A '@' in their texts stands for the schema and a dot, a '^' for the
 * schema alone, a '~' for its name inside quotes, a '#' for lock_id= ---- */

/*
 * Each statement with the name under which it is prepared. That name also stands in the statement's
 * text as a comment, so that a server's log and pg_stat_activity show which statement it is. The
 * first word is the verb that the statement is for: by that word the conformance suite lets a verb
 * fail. PG_LIMITS sets how long the other statements may take, and how they are planned.
 */
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
/* Replaces those letters in a text; the caller frees the result. NULL: no memory. */
char *pg_sql(const char *text, const struct pg_conninfo *info);

/* ---- options.c ---- */

enum { PG_KEYWORDS_MAX = 64 };

struct pg_conninfo {
	char *keywords[PG_KEYWORDS_MAX + 1];
	char *values[PG_KEYWORDS_MAX + 1];
	size_t n;
	char schema[PG_SCHEMA_MAX + 1];
	char lock_id[24]; /* "": a lock's key comes from its election's name */
	bool advisory;
	bool fast;
	char *password_file; /* NULL: none */
};

int pg_conninfo_parse(struct pg_conninfo *info, const char *text, struct baton_error *err);
void pg_conninfo_done(struct pg_conninfo *info);
/* The first line of the password file; the caller frees it. NULL: the file can't be read, or the
 * URL names no file. */
char *pg_conninfo_password(const struct pg_conninfo *info);
/* The value of that keyword; NULL: it isn't set. */
const char *pg_conninfo_get(const struct pg_conninfo *info, const char *keyword);

/* ---- the store ---- */

struct pg_lookup;

struct pg_conn {
	PGconn *pg; /* NULL: none */
	_Atomic int fd;
	bool pooled;         /* a pooler stands in between: sessions aren't ours */
	bool warned;         /* the server committed, with a warning about that */
	bool ended;          /* the server has announced the session's end */
	bool connecting;     /* still connecting, since began_ns */
	bool has_locks;      /* set up to hold locks, and has its beacon (lock_session.c) */
	bool may_have_locks; /* ... or was told to, and the answer isn't known */
	bool unsure;         /* it may have locks that no row tells of */
	bool listens;        /* it hears of changes (watch.c) */
	int pid;             /* of the session; libpq loses its copy when the connection breaks */
	int64_t start_us;    /* its start by the server's clock: with the pid, its name */
	PostgresPollingStatusType polling;
	uint64_t began_ns;
	unsigned turn;     /* the store's `turn` when the attempt began */
	size_t n_places;   /* how many addresses there are to try in turn */
	uint64_t limit_ms; /* the session's limits, as PG_LIMITS last set them; 0: unknown */
	size_t plan;
	bool prepared[PG_STATEMENTS];
	uint64_t heard_ns;
};

/* A session that is no longer needed is ended only after this time: its end takes the server
 * milliseconds of a core, which mustn't fall into a takeover. */
#define PG_REST_NS ((uint64_t)100000000)
#define PG_LOST_MAX 4
#define PG_WAITERS_MAX 8

struct pg_waiter;
struct tableless_session;
struct tableless_term;

struct pg_store {
	struct store_base base; /* with the lock of watched leases, clock, spare, waiters... */
	struct pg_conninfo info;
	char *sql[PG_STATEMENTS];
	struct watched_leases watched_leases;
	struct expiry_clock clock;
	struct pg_lane *watcher;     /* the lane that listens */
	uint64_t sleeps_ns;          /* until when the watch lane sleeps, on the boot clock */
	struct pg_conn spare;        /* of a lane that was closed, for the next lane */
	uint64_t spare_ns;           /* since when */
	struct pg_lookup *lookups;   /* lookups that outlived their call */
	struct pg_lane *lock_lane;   /* its session holds the locks; NULL: there are none */
	struct store_turn lock_turn; /* guards the lock lane, and what we know of its session */
	char session_lease_id[BATON_LEASE_ID_MAX +
			      1];    /* the lease whose locks it holds; "": none */
	bool session_campaigns;      /* ... and that lease has campaigned */
	PGconn *parked[PG_LOST_MAX]; /* sessions that didn't answer and may hold locks */
	int lost_pids[PG_LOST_MAX];  /* ... and all sessions that may not have ended yet */
	int64_t lost_starts[PG_LOST_MAX];
	struct pg_waiter *waiters[PG_WAITERS_MAX];
	_Atomic int lock_pid;
	_Atomic uint64_t patience_ns; /* the time that the last call to the lock lane had */
	uint64_t owed_ns;             /* until when the watch lane waits for a late answer, or 0 */
	PGnotify *heard;              /* the first notification that another lane came across */
	_Atomic int claimer_pid;      /* the session of the last claim */
	_Atomic bool watch_waits;     /* the watch lane waits for a turn */
	struct tableless_session *sessions; /* of tableless/ */
	struct tableless_session *half_made;
	struct tableless_term *seen;
	_Atomic bool listening;
	_Atomic bool has_schema;
	_Atomic uint64_t troubles; /* connections that failed: others may be dead, too */
	/* Counts on to the address to try first. It moves on from an address that is silent, and
	 * stays there then. */
	_Atomic unsigned turn;
	_Atomic unsigned good_turn; /* ... as it was when we last got a session */
};

struct pg_watch;

struct pg_lane {
	struct store_lane link;
	struct pg_store *store;
	struct pg_conn conn;
	bool is_plain;          /* any connection of the store will do */
	bool renews;            /* it goes first where lanes take turns */
	bool examines;          /* for the doctor, which reports faults in its own words */
	struct pg_watch *watch; /* a watch lane's */
	int wake_fd;            /* a watch lane's, else -1 */
	_Atomic bool woken;
	bool nudged;          /* a watch lane's: wake_fd was read while it asked the server */
	struct pg_lane *user; /* the lock lane's: the watch lane, while that lane uses it */
	/* The call under way. */
	struct baton_call *call;
	uint64_t begun_ns;
	int pushed[PG_PUSHED_MAX]; /* a statement, or ~statement: it is only prepared */
	PGresult *results[PG_PUSHED_MAX];
	size_t n_pushed;
	size_t n_taken; /* how many answers were taken */
	bool push_failed;
	/* A session with one purpose (tableless/, lock_waiters.c). If it is slow, it is waited for,
	 * not replaced. Its statements are not prepared and set no limits, so that its last
	 * statement shows the purpose. */
	bool is_apart;
	bool repeats;    /* a lock waiter's, which waits again and again: prepares */
	bool owes;       /* answers of a call that ended before them */
	bool waited_out; /* a lock waiter's: its wait ended without the lock */
};

/* ---- array.c ---- */

/* A growing text: arrays for the server. */
struct pg_text {
	char *at;
	size_t n;
	size_t room;
	bool failed; /* there was no memory */
};

void pg_text_add(struct pg_text *t, const char *text);
void pg_text_done(struct pg_text *t);
/* Whether one of several has failed. */
bool pg_texts_failed(const struct pg_text *list, size_t n);
void pg_texts_done(struct pg_text *list, size_t n);
/* An array: "{", elements, "}". An element is a number or a quoted text; NULL becomes an SQL
 * NULL. */
void pg_array_begin(struct pg_text *t);
void pg_array_text(struct pg_text *t, const char *value);
void pg_array_number(struct pg_text *t, int64_t value);
void pg_array_end(struct pg_text *t);
/* An array of the names of all these. */
void pg_array_names(struct pg_text *t, const struct baton_observation *list, size_t n);

/* ---- pipeline.c ---- */

/*
 * A call: pg_begin(), pg_push() for each statement, pg_run(). pg_begin() connects if need be, and
 * makes the schema; it returns 0, or the outcome (FAILED: nothing was asked). pg_run() sends all
 * statements as one transaction. It returns OK, with each statement's result in lane->results until
 * the next pg_begin(); or FAILED or UNKNOWN, with call->error filled in. n: how many elections the
 * call is about; 0: none in particular.
 */
int pg_begin(struct pg_lane *lane, struct baton_call *call, size_t n);
void pg_push(struct pg_lane *lane, int statement, size_t n, const char *const *params);
/* Prepares a statement on the session for later. */
void pg_push_prepare(struct pg_lane *lane, int statement);
/* Pushes a text of the caller, which is not prepared. */
void pg_push_text(struct pg_lane *lane, const char *text, size_t n, const char *const *params);
int pg_run(struct pg_lane *lane);
/* A whole call with one statement; its result is in lane->results. */
int pg_ask(struct pg_lane *l, struct baton_call *call, int statement, size_t n,
	   const char *const *params);
/* Notes the next answer to what was pushed: it may say that the session has prepared a
 * statement. */
void pg_note_prepared(struct pg_lane *lane, const PGresult *r);
/* Reads the answers that are still owed. False: they aren't there yet, or will never come. */
bool pg_drain(struct pg_lane *lane);
/* The connection was lost, and there is time to try again. For calls that may be carried out
 * twice. */
bool pg_may_repeat(const struct pg_lane *lane, int outcome);
void pg_results_clear(struct pg_lane *lane);
/* Whether that statement was pushed in this call. */
bool pg_is_pushed(const struct pg_lane *lane, int statement);
/* Carries out statements without parameters, several in one text, as one transaction. 0, or the
 * outcome. */
int pg_exec(struct pg_lane *lane, const char *text);
/* The result of the i-th statement that was pushed since pg_begin(). */
const PGresult *pg_result(const struct pg_lane *lane, size_t i);
/* ... of that statement; NULL: it wasn't pushed. */
const PGresult *pg_result_of(const struct pg_lane *lane, int statement);
int64_t pg_number(const PGresult *r, int row, int column);
uint64_t pg_unsigned(const PGresult *r, int row, int column);
bool pg_is_true(const PGresult *r, int row, int column);
void pg_copy(char *to, size_t size, const PGresult *r, int row, int column);
int pg_no_memory(struct pg_lane *lane);

/* The runtime wants the watch lane back, and this lane is working for it. */
bool pg_is_woken(struct pg_lane *lane);
/* Waits for the connection, the lane's wake_fd or the deadline. 1: go on; 0: woken, or too late. */
int pg_wait(struct pg_lane *lane, short events, uint64_t deadline_ns);
/* Closes a connection that is broken, and reports why, in the server's or libpq's words. */
void pg_broken(struct pg_lane *lane, const char *words);
/* Reports a refusal of the server as code and sentence. */
void pg_refused(struct pg_lane *lane, const char *state, const char *words);

/* ---- connect.c ---- */

/* 0; or a code, with call->error filled in: the lane has no session then. */
int pg_connect(struct pg_lane *lane);
/* False: there is no connection, or it broke while it was idle. */
bool pg_is_connected(struct pg_lane *lane);
/* Closes the connection. S7: the lock lane's is parked and not closed, if it is well and may have
 * locks. */
void pg_conn_close(struct pg_lane *lane);
struct pg_lane *pg_lane_new(struct pg_store *store);
void pg_lane_free(struct pg_lane *l);
void pg_conn_free(struct pg_conn *c);
/* Takes the libpq connection out of `c`; from then on it may only be finished (PQfinish()). */
PGconn *pg_conn_take(struct pg_conn *c);
void pg_conn_move(struct pg_conn *to, struct pg_conn *from);
/* A store whose session holds locks keeps no spare session for long: ends one that is due, and
 * returns when the next one is due. */
uint64_t pg_spare_rest(struct pg_store *store);
/* Notes the server's clock as an answer has it, for the proofs of expiry.h. */
void pg_clock_seen(struct pg_lane *lane, int64_t server_us);

/* ---- resolve.c ---- */

/*
 * Fills in host, hostaddr and port as libpq's lists, so that libpq has nothing to look up: libpq
 * would block for as long as the name service takes. The lists begin with the address whose turn it
 * is. Leaves them empty if there is nothing to do. 0, or a code with call->error filled in.
 */
int pg_resolve(struct pg_lane *lane, struct pg_text hosts[3]);
void pg_lookups_free(struct pg_lookup *list);

/* ---- schema.c ---- */

/* Sees to it that the tables are there, and of our version: makes them if need be. 0, or FAILED. */
int pg_schema_check(struct pg_lane *lane, struct baton_call *call);
extern const char pg_schema_script[];
extern const char pg_fence_script[];     /* fence.c */
extern const char pg_functions_script[]; /* functions.sql */

/* ---- observe.c: what is known of others' leases, for all lanes ---- */

/* The ids of all known leases, as an array; false: there are none. */
bool pg_watched_ids(struct pg_store *store, struct pg_text *ids);
/* Notes the answer to PG_LEASES_SEEN about these leases, which was asked for at asked_ns. */
void pg_watched_seen(struct pg_lane *lane, const PGresult *r, uint64_t asked_ns);
/* The leases that have surely ended, as arrays of ids and seqs; false: there are none. */
bool pg_watched_ended(struct pg_store *store, struct pg_text *ids, struct pg_text *seqs);

/* A lease's length as text, in the server's unit, milliseconds. */
void pg_lease_ms(const struct baton_lease *lease, char text[24]);

/* ---- lock_session.c ---- */

/* Takes a turn on the lane whose session holds the locks; without such a lane it is this lane
 * itself. NULL: the session was busy all the time. The turn ends with pg_session_give(). */
struct pg_lane *pg_session_take(struct pg_lane *lane, struct baton_call *call);
/* The same for the watch lane, without waiting. NULL: the session is in use, and the watch lane is
 * nudged when it is free; or it owes an answer, which is waited for until owed_ns. */
struct pg_lane *pg_session_take_idle(struct pg_lane *lane);
void pg_session_give(struct pg_lane *lane, const struct pg_lane *taken);
/* The next notification that is news to us; the caller frees it with PQfreemem(). NULL: there is
 * none. */
PGnotify *pg_next_heard(struct pg_store *store, struct pg_conn *c);
/* How long a call of the watch lane may take. */
uint64_t pg_watch_call_ns(const struct pg_store *store);
/* The lock session is meant for that lease. It may not have the lease's locks yet. */
bool pg_session_is_for(const struct pg_lane *l, const struct baton_lease *lease);
/* ... or would be if that lease were opened, or campaigned. */
bool pg_session_could_be_for(const struct pg_lane *l, const struct baton_lease *lease);
/* Call pg_push_lock_session() before a session takes locks for that lease, and
 * pg_session_is_locked() after it. Both belong to one call: its transaction renews the lease before
 * anything else. */
void pg_push_lock_session(struct pg_lane *l, const struct baton_lease *lease);
void pg_session_is_locked(struct pg_lane *l, const struct baton_lease *lease);
/* For a store that replaces a dead leader at once: ends no lease, and claims nothing for `lease`
 * unless it is NULL. So the session has the plans ready when there is something to end and
 * claim. */
void pg_push_rehearse(struct pg_lane *l, const struct baton_lease *lease);
/* lease.c: in mode=advisory, the session's locks become those of the lease's claims. */
void pg_push_keep(struct pg_lane *l, const struct baton_lease *lease);
/* pg_push_unlock() gives all locks of the session back. After that, pg_unlocked() notes that the
 * session is for no lease, and ends all lost sessions that may have locks. */
void pg_push_unlock(struct pg_lane *l);
void pg_unlocked(struct pg_lane *l);
void pg_session_end_lost(struct pg_store *store);
/* The lock lane loses its connection. `park`: the connection only didn't answer, and is kept, so
 * that its locks stay until the lease is over. */
void pg_session_lose(struct pg_store *store, bool park);
/* Pushes the settings of a session that holds locks for a lease of that length. */
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
	PG_LOCK_SILENT, /* for how many microseconds */
};
/* Whether the session is baton's: its last statement tells, which others of the same role see. */
bool pg_is_ours(const PGresult *r, int row);
/* A name for another program's session, made from what the server knows of it. */
void pg_name_session(const PGresult *r, int row, char *out, size_t size);
/* Session locks of others: fills in the record of an election that has no holder by its row, but
 * whose lock is held. */
void pg_fill_locked(struct pg_lane *l, const PGresult *r, struct baton_observation *list, size_t n);

/* ---- lock_waiters.c ---- */

/* Asks for a waiter that tells when this lock is free; the label is a lease's id, or an election's
 * name. True: a waiter waits for it already. */
bool pg_waiter_ask(struct pg_store *store, bool is_lease, const char *label, int64_t key);
/* pg_waiters_attend() calls this for a label that is to be looked at. is_free: the lock was free
 * just now. lease: NULL for an election; for a lease it is the answer to PG_AWAITED, and the
 * lease's lock was free for sure. */
typedef void pg_lock_freed(struct pg_lane *watcher, const char *label, const PGresult *lease,
			   bool is_free);
/* For the watch lane. arms: sets up the waiters that were asked for; else listens to those that are
 * set up. True: it has called `freed`. */
bool pg_waiters_attend(struct pg_lane *watcher, pg_lock_freed *freed, bool arms);
struct pollfd;
/* Ends sessions of waiters that have had nothing to wait for; returns when the next one is due. */
uint64_t pg_waiters_rest(struct pg_store *store);
/* Fills in the waiters' sockets; returns how many. */
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
/* Refuses a call that needs a table. */
int tableless_refuse(struct baton_call *call);
/* No session of this process has that election's lock: so we have to listen for its end. */
bool tableless_is_other(struct pg_store *store, const char *name);
/* Notes that the lock of that election was free a moment ago. */
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
/* Wakes the watch lane, because something has changed about the watched leases. */
void pg_watch_nudge(struct pg_store *store);

#endif
