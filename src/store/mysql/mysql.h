/*
 * mysql.h: records in a table of MySQL or MariaDB. This header has what the files of this adapter
 * share.
 *
 *   options.c   the URL
 *   connect.c   a connection, and one request on it until a deadline
 *   adapter.c   the verbs of store/record/adapter.h
 *   lock_waiters.c     wakes standbys when a leader releases
 *   lock_session.c   mode=lock: named locks beside the claims
 *   doctor.c    examines the server
 *   schema.c    the tables, and the guard for a resource that checks terms
 *   functions.sql   elections for programs that call SQL: only printed
 *
 * The table, in the database that the URL names:
 *
 *   baton_record   k VARBINARY(384) PRIMARY KEY   the prefix, '/', the record's key; bytes, because
 *                                                 collations take different names for one (rule 5)
 *                  w VARBINARY(64)                the record's version, from its value
 *                  v MEDIUMBLOB                   its value
 *                  at TIMESTAMP(6)                when the record was written; for people
 *   baton_version  version INT                    the version of this layout
 *
 * A write of several records is one request with one transaction. It locks the rows in the order of
 * their keys, inserts, updates the rows that have the expected version, and reads back what stands
 * there now. Keys and values are written as hexadecimal literals, so there is nothing to quote.
 *
 * The isolation level is READ COMMITTED: with REPEATABLE READ a transaction would go on seeing the
 * past. The adapter must never repeat a request by itself: a request that was sent and has no
 * answer is UNKNOWN.
 */
#ifndef BATON_MYSQL_H
#define BATON_MYSQL_H

#include <mysql.h>

#include "base/lookup.h"
#include "store/base.h"
#include "store/doctor.h"
#include "store/options.h"
#include "store/record/adapter.h"

#pragma GCC visibility push(hidden)

#define MYSQL_HOSTS_MAX 8
#define MYSQL_TEXT_MAX 256
#define MYSQL_LAYOUT 1

struct mysql_options {
	struct option_login login;
	char socket[108];
	char database[65];
	bool has_locks;            /* mode=lock */
	char lock[MYSQL_TEXT_MAX]; /* the lock's name; "": it follows from the election's */
	bool tls;
	struct option_tls files;
	struct record_options *record; /* while the URL is read */
};

int mysql_options_parse(struct mysql_options *o, const char *text, struct baton_error *err);

struct mysql_store {
	struct store_base base;
	struct mysql_options options;
	char prefix[RECORD_PREFIX_MAX + 1];
	bool has_table;            /* base.lock: some lane has seen the tables */
	struct mysql_locks *locks; /* NULL: without mode=lock */
};

struct mysql_lane {
	struct store_lane lane;
	struct mysql_store *store;
	MYSQL *session; /* NULL: not connected */
	struct lookup *lookup;
	size_t turn;    /* which host is tried first: the one that worked last */
	size_t address; /* the same of its addresses */
	/* How many addresses the library may still try by itself, and until when the one that it
	 * tries; 0: no matter. */
	size_t n_addresses;
	uint64_t address_ns;
	struct bytes sql;
	struct baton_call *call; /* the call under way */
	int waits_for;           /* what the library waits for, in a request that is under way */
	int has_failed;
	struct mysql_alarms *alarms; /* of the watch lane; NULL: the lane has never listened */
};

/* NULL: no memory; err says so. */
struct mysql_lane *mysql_lane_new(struct mysql_store *store, struct baton_error *err);
void mysql_lane_free(struct mysql_lane *l);

/* One row of an answer. */
typedef void mysql_row_found(void *arg, MYSQL_ROW row, const unsigned long *sizes);

/* How a request has ended. */
enum mysql_end {
	MYSQL_DONE,
	MYSQL_REFUSED,  /* the server answered with an error: nothing was committed */
	MYSQL_UNSURE,   /* the server answered with an error that does not say that */
	MYSQL_UNSENT,   /* it was never sent */
	MYSQL_NO_ANSWER /* it was sent; the result is unknown; the connection is given up */
};

/* Connects if necessary. with_table: also makes the tables if they are missing. False: call->error
 * says why not. */
bool mysql_connect(struct mysql_lane *lane, struct baton_call *call, bool with_table);
/* Carries out lane->sql, which is one or several statements, and calls `found` for each row of all
 * of them. Returns enum mysql_end. */
int mysql_run(struct mysql_lane *lane, struct baton_call *call, mysql_row_found *found, void *arg,
	      uint64_t *n_changed);
/* The same in two steps. The first begins to send (MYSQL_DONE: it is on its way), and the second
 * waits for the answer. */
int mysql_begin(struct mysql_lane *lane, struct baton_call *call);
int mysql_finish(struct mysql_lane *lane, struct baton_call *call, mysql_row_found *found,
		 void *arg, uint64_t *n_changed);
/* The code of the server's last error. */
unsigned mysql_code(const struct mysql_lane *lane);
void mysql_disconnect(struct mysql_lane *lane);
/* Appends x'...'. */
void mysql_literal(struct bytes *sql, const void *at, size_t n);

/* Tries named locks. *is_ours: they belong to this session, which is not so behind a proxy.
 * *is_galera: they count on one node of a Galera cluster only. False: that can't be found out. */
bool mysql_try_locks(struct mysql_lane *l, struct baton_call *call, bool *is_galera, bool *is_ours);
void mysql_listen(void *lane, struct baton_call *call, const struct record_alarms *alarms,
		  record_changed *changed, void *arg);
void mysql_alarms_free(struct mysql_lane *l);

/* NULL: no memory; err says so. */
struct mysql_locks *mysql_locks_new(struct mysql_store *store, struct baton_error *err);
void mysql_locks_free(struct mysql_locks *k);
int mysql_lock_take(void *lane, struct baton_call *call, const char *name, const char *lease_id,
		    uint64_t ttl_ns, uint64_t *free_in_ns);
int mysql_lock_keep(void *lane, struct baton_call *call, const char *name, const char *lease_id,
		    uint64_t ttl_ns);
int mysql_lock_drop(void *lane, struct baton_call *call, const char *name, const char *lease_id);

int mysql_examine(void *lane, struct baton_call *call,
		  void (*found)(void *arg, const struct baton_finding *finding), void *arg);

extern const char mysql_schema_script[];
extern const char mysql_fence_script[];
extern const char mysql_functions_script[]; /* functions.sql */
/* The statements that make the tables; NULL at the end. */
extern const char *const mysql_schema_statements[];

#pragma GCC visibility pop

#endif
