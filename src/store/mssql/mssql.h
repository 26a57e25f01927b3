/*
 * mssql.h: records in a table of SQL Server or Azure SQL. This header has what the files of this
 * adapter share.
 *
 *   options.c   the URL
 *   library.c   what db-lib has once for the whole process: handlers, login time, settings
 *   worker.c    a connection, on a thread of its own, and one request on it until a deadline
 *   session.c   setting up a connection; the sentences for errors
 *   adapter.c   the verbs of store/record/adapter.h
 *   watch.c     push: a request that waits at the server
 *   lock_session.c   mode=applock: application locks beside the claims
 *   doctor.c    examines the server
 *   schema.c    every statement, the tables, and the guard on the resource's side
 *
 * The tables, in the schema dbo of the database that the URL names:
 *
 *   baton_record   k varchar(384) PRIMARY KEY   the prefix, '/', the record's key; a binary
 *                                               collation, so that no two names count as one (rule
 *                                               5)
 *                  w varchar(64)                the record's version, from its value
 *                  value nvarchar(max)          its value
 *                  at datetime2(6)              when the record was written; for people
 *                  rv rowversion                for the watch: what has changed since a look
 *   baton_version  version int                  the version of this layout
 *
 * Every request is one constant statement with parameters, sent with sp_executesql, and commits by
 * itself. Several records are one parameter: a JSON text, sorted by key, which OPENJSON takes
 * apart. So an error of the server means that nothing of the request was written. Errors of Azure
 * SQL that tell of a failover are the exception (mssql_said.is_in_doubt).
 *
 * db-lib blocks. So each connection has a thread, the worker, and only the worker touches it.
 * Callers wait for the worker no longer than their deadline. A worker that is late is given up: its
 * socket is shut down, which ends its wait, and then the worker ends by itself. The adapter must
 * never repeat a request: a request that was sent and has no answer is UNKNOWN.
 */
#ifndef BATON_MSSQL_H
#define BATON_MSSQL_H

#include <pthread.h>

#include "base/bytes.h"
#include "store/base.h"
#include "store/doctor.h"
#include "store/options.h"
#include "store/record/adapter.h"

#pragma GCC visibility push(hidden)

#define MSSQL_HOSTS_MAX 8
#define MSSQL_TEXT_MAX 256
#define MSSQL_LAYOUT 1
#define MSSQL_KEY_MAX 240
#define MSSQL_VALUE_MAX ((uint32_t)1 << 20)
#define MSSQL_PARAMS_MAX 4
#define MSSQL_COLUMNS_MAX 8
/* How many workers of a connection may have been given up and not have ended yet. */
#define MSSQL_STUCK_MAX 3
/* The longest login, for the whole process. */
#define MSSQL_LOGIN_S 5

/* The server's errors that are treated in a special way. */
enum mssql_error {
	MSSQL_E_NO_OBJECT = 208,
	MSSQL_E_DENIED = 229,
	MSSQL_E_MAY_NOT_CREATE = 262,
	MSSQL_E_DEADLOCK = 1205,
	MSSQL_E_LOCK_TIMEOUT = 1222,
	MSSQL_E_DUPLICATE = 2627,
	MSSQL_E_EXISTS = 2714,
	MSSQL_E_READ_ONLY = 3906,
	MSSQL_E_NO_DATABASE = 4060,
	MSSQL_E_LOGIN = 18456
};

enum mssql_encryption {
	MSSQL_MANDATORY, /* TLS for everything */
	MSSQL_OPTIONAL,  /* TLS for the login; for the rest if the server wants it */
	MSSQL_PLAIN
};

struct mssql_options {
	struct option_login login;
	char sections[MSSQL_HOSTS_MAX][32]; /* each host's section in db-lib's settings */
	char database[129];
	enum mssql_encryption encryption;
	struct option_tls files;
	bool has_locks;                /* mode=applock */
	char resource[MSSQL_TEXT_MAX]; /* the lock's name; "": it follows from the election's */
	struct record_options *record; /* while the URL is read */
};

int mssql_options_parse(struct mssql_options *o, const char *text, struct baton_error *err);

/* ---- db-lib, once for the process ---- */

/* Sets db-lib up, and adds settings for the hosts' connections. 0, or -1 with a sentence. */
int mssql_library_open(struct mssql_options *o, struct baton_error *err);

/* The first error of the server or the library while this thread used it. */
struct mssql_said {
	int error; /* the server's number; 0: none */
	int level;
	int library_error;
	int os_error; /* errno of what the library ran into; 0: none */
	char text[160];
	bool is_in_doubt; /* some error leaves open whether the request was carried out */
};

extern _Thread_local struct mssql_said *mssql_said;

/* ---- workers ---- */

struct mssql_param {
	const char *name;
	const char *text; /* NULL: a number */
	size_t n;
	int64_t number;
};

struct mssql_request {
	const char *sql;      /* constant */
	const char *declared; /* the parameters and their types; NULL: a batch without parameters */
	struct mssql_param params[MSSQL_PARAMS_MAX];
	size_t n_params;
};

/* How a request has ended. */
enum mssql_end {
	MSSQL_DONE,
	MSSQL_REFUSED,  /* the server answered with an error: nothing was written */
	MSSQL_UNSENT,   /* it was never sent */
	MSSQL_NO_ANSWER /* it was sent; the result is unknown; the connection is given up */
};

struct mssql_answer {
	int end;
	bool is_late; /* the deadline has passed */
	struct mssql_said said;
	uint64_t n_changed;
	struct bytes rows;
};

struct mssql_worker;
struct mssql_login {
	const char *section, *user, *password, *database;
};

/* One connection of a lane; a lane may have several. */
struct mssql_line {
	struct mssql_worker *worker; /* NULL: not connected */
	struct mssql_worker *stuck[MSSQL_STUCK_MAX];
	size_t turn; /* which host is tried next */
};

/* Starts a worker that connects with this login. 0, or -1 with a sentence. */
int mssql_worker_start(struct mssql_line *line, const struct mssql_login *login,
		       struct baton_error *err);
/* Whether the worker's connection has ended since the last request. */
bool mssql_worker_is_lost(struct mssql_worker *w);
/* Gives the worker a request; false: no memory. */
bool mssql_worker_ask(struct mssql_worker *w, const struct mssql_request *request);
/* A descriptor that is readable when a request has been carried out. */
int mssql_worker_fd(const struct mssql_worker *w);
/* Whether the request has been carried out. If so, *answer is filled in; the caller frees its
 * rows. */
bool mssql_worker_take(struct mssql_worker *w, struct mssql_answer *answer);
/* The same, but waits until the deadline. */
bool mssql_worker_await(struct mssql_worker *w, uint64_t deadline_ns, struct mssql_answer *answer);
/* The same, but gives the worker up when the deadline has passed. */
void mssql_line_wait(struct mssql_line *line, uint64_t deadline_ns, struct mssql_answer *answer);
void mssql_line_close(struct mssql_line *line);
/* Closes the line for the last time, and drops the workers that were given up. */
void mssql_line_done(struct mssql_line *line);
/* In a child of fork(): closes only the descriptors. */
void mssql_line_forget(struct mssql_line *line);

/* One row of an answer; a NULL column is NULL. */
typedef void mssql_row_found(void *arg, const char *const *columns, const size_t *sizes);

void mssql_rows_each(const struct bytes *rows, mssql_row_found *found, void *arg);

/* ---- the store ---- */

struct mssql_store {
	struct store_base base;
	struct mssql_options options;
	char prefix[RECORD_PREFIX_MAX + 1];
	bool has_table;            /* base.lock: some lane has seen the tables */
	struct mssql_locks *locks; /* NULL: without mode=applock */
};

struct mssql_lane {
	struct store_lane lane;
	struct mssql_store *store;
	struct mssql_line line;
	struct mssql_line push; /* watch.c */
	bool is_asked;          /* push: a request is under way */
	bool is_standing;
	int64_t seen;   /* changes up to this row version were told */
	int64_t n_rows; /* rows below e/ */
	uint64_t asked_until_ns;
	struct bytes json; /* of the request under way */
	int error;         /* the server's error of the last request */
	size_t host;       /* which of the URL's hosts was tried last */
};

/* Connects if necessary. with_table: also makes the tables if they are missing. False: call->error
 * says why not. */
bool mssql_connect(struct mssql_lane *lane, struct mssql_line *line, struct baton_call *call,
		   bool with_table);
/* Carries out a request on the lane's own connection, and calls `found` for each row. Returns enum
 * mssql_end. */
int mssql_run(struct mssql_lane *lane, struct baton_call *call, const struct mssql_request *request,
	      mssql_row_found *found, void *arg, uint64_t *n_changed);
/* Writes the sentence for a request that was not done. If a table was missing, the next request
 * makes the tables first. */
void mssql_tell(const struct mssql_lane *lane, struct baton_error *err,
		const struct mssql_answer *a);

/* A record's key with the prefix in front of it. */
struct mssql_key {
	char text[RECORD_PREFIX_MAX + 1 + MSSQL_KEY_MAX + 1];
};
struct mssql_key mssql_key(const struct mssql_lane *l, const char *key);
/* How many bytes of a row's key come before the record's key. */
size_t mssql_prefix_size(const struct mssql_lane *l);

/* Appends a JSON text, in quotes. */
void mssql_put_text(struct bytes *json, const char *text, size_t n);

/* NULL: no memory; err says so. */
struct mssql_locks *mssql_locks_new(struct mssql_store *store, struct baton_error *err);
void mssql_locks_free(struct mssql_locks *k);
void mssql_locks_forget(struct mssql_locks *k);
int mssql_lock_take(void *lane, struct baton_call *call, const char *name, const char *lease_id,
		    uint64_t ttl_ns, uint64_t *free_in_ns);
int mssql_lock_keep(void *lane, struct baton_call *call, const char *name, const char *lease_id,
		    uint64_t ttl_ns);
int mssql_lock_drop(void *lane, struct baton_call *call, const char *name, const char *lease_id);

int mssql_watch(void *lane, struct baton_call *call, record_changed *changed, void *arg);
int mssql_examine(void *lane, struct baton_call *call,
		  void (*found)(void *arg, const struct baton_finding *finding), void *arg);

/* ---- statements ---- */

extern const char mssql_sql_set_up[], mssql_sql_layout[], mssql_sql_get[], mssql_sql_list[];
extern const char mssql_sql_update[], mssql_sql_insert[], mssql_sql_update_many[];
extern const char mssql_sql_insert_many[], mssql_sql_drop[], mssql_sql_watch[];
extern const char mssql_sql_lock_take[], mssql_sql_lock_modes[], mssql_sql_lock_drop[];
extern const char mssql_sql_doctor[], mssql_sql_rights[];
extern const char mssql_schema_script[], mssql_fence_script[];
/* The statements that make the tables; NULL at the end. */
extern const char *const mssql_schema_statements[];

#pragma GCC visibility pop

#endif
