/*
 * azblob.h: records as blobs of an Azure storage account. This header has what the files of this
 * adapter share.
 *
 *   options.c   the URL
 *   login.c     how we log in: an account key, a SAS, a connection string, a token
 *   sign.c      a request signed with the account key (SharedKey)
 *   token.c     tokens of workload identities and managed identities
 *   call.c      requests, and what an answer means
 *   lock.c      mode=bloblease: a leased blob beside an election's record
 *   adapter.c   the verbs of store/record/adapter.h
 *   doctor.c    examines the account and the container
 *
 * A record is a block blob: PREFIX/l/LEASE, PREFIX/e/NAME, PREFIX/c/LEASE. Its version is its ETag,
 * and every write has a condition on the ETag. The blobs of one call are written side by side.
 *
 * The adapter must never repeat a write by itself, and no secret may stand in a URL, a sentence or
 * a log.
 */
#ifndef BATON_AZBLOB_H
#define BATON_AZBLOB_H

#include "base/web/http.h"
#include "store/base.h"
#include "store/options.h"
#include "store/record/adapter.h"

#pragma GCC visibility push(hidden)

#define AZBLOB_PAGE "baton-azblob(7)"
#define AZBLOB_NAME_MAX 63
#define AZBLOB_ID_MAX 127
#define AZBLOB_BASE_MAX 255
#define AZBLOB_KEY_MAX 240
/* The names of the blobs that are leased begin with this. */
#define AZBLOB_LOCKS "lock/"
/* The shortest and the longest lease that the service gives. */
#define AZBLOB_LEASE_MIN_S 15
#define AZBLOB_LEASE_MAX_S 60
/* Tokens and SAS are long. */
#define AZBLOB_SECRET_MAX 8192
#define AZBLOB_PATH_MAX 4096
#define AZBLOB_LINES 12
#define AZBLOB_LINE_MAX 256

/* Where a service is: its host, and the beginning of its paths, without a '/' at the end. */
struct azblob_endpoint {
	struct http_host host;
	char base[AZBLOB_BASE_MAX + 1];
};

enum azblob_login {
	AZBLOB_KEY,
	AZBLOB_SAS,
	AZBLOB_CONNECTION, /* a connection string, which has a key or a SAS */
	AZBLOB_WORKLOAD,   /* a token that Kubernetes' own token is exchanged for */
	AZBLOB_MANAGED,    /* a token from the machine, or from App Service */
};

struct azblob_options {
	char account[AZBLOB_NAME_MAX + 1];
	char container[AZBLOB_NAME_MAX + 1];
	struct azblob_endpoint endpoint;
	bool has_endpoint;
	int login;
	bool has_login;             /* login= */
	char file[OPTION_PATH_MAX]; /* the file with our login; a managed identity has none */
	const char *file_option;    /* the option that names the file */
	char client_id[AZBLOB_ID_MAX + 1];
	char tenant_id[AZBLOB_ID_MAX + 1];
	/* Who gives tokens; "": not known. */
	struct azblob_endpoint authority;
	char identity_header[AZBLOB_ID_MAX + 1]; /* App Service; "": the machine's */
	char ca[OPTION_PATH_MAX];
	char blob[AZBLOB_BASE_MAX + 1]; /* blob=; "": each election has its own */
	struct record_options *record;  /* while the URL is read */
};

int azblob_options_parse(struct azblob_options *o, const char *text, struct baton_error *err);
/* Parses "https://host:port/path"; false: not a valid address. */
bool azblob_endpoint_parse(const char *text, struct azblob_endpoint *out);

struct azblob_store {
	struct store_base base;
	struct azblob_options options;
	char prefix[RECORD_PREFIX_MAX + 1];
	bool has_container; /* base.lock: some lane has seen the container */
	/* base.lock: the token that all lanes use. */
	char *token;
	uint64_t token_due_ns, token_end_ns, token_retry_ns;
	struct store_turn turn;    /* one lane at a time asks for a token */
	bool has_locks;            /* mode=bloblease */
	struct azblob_lock *locks; /* base.lock: lock.c */
	struct baton_traits traits;
};

struct azblob_lane {
	struct store_lane lane;
	struct azblob_store *store;
	struct http *http;
	int kind;
	/* Of the call under way: where it goes, and how it logs in. */
	struct azblob_endpoint endpoint;
	int login;                      /* KEY, SAS, or a token */
	char secret[AZBLOB_SECRET_MAX]; /* the key in base64, the SAS, or the token's header */
};

/* One request. */
struct azblob_ask {
	const char *method;
	const char *body; /* NULL: none */
	size_t body_size;
	char path[AZBLOB_PATH_MAX];
	char lines[AZBLOB_LINES][AZBLOB_LINE_MAX];
	const char *headers[AZBLOB_LINES + 2];
	size_t n_lines;
	bool is_cut; /* something had no room, so it must not be sent */
};

/* ---- sign.c ---- */

/* Writes the text that is signed. headers: "name: value", NULL at the end. size: bytes of the
 * body. */
void azblob_string_to_sign(struct bytes *out, const char *account, const char *method,
			   const char *path, const char *const *headers, size_t size);
/* Writes the header with the signature; false: the key is not valid. */
bool azblob_sign(const char *account, const char *key, const char *to_sign, size_t n, char *out,
		 size_t size);
/* Writes a date like "Fri, 26 Jun 2015 23:39:12 GMT", whatever the locale. */
void azblob_date(int64_t unix_s, char *out, size_t size);

/* ---- login.c, token.c ---- */

/* Fills in the lane's endpoint, login and secret. 0, or -1 with a sentence. */
int azblob_log_in(struct azblob_lane *lane, struct baton_call *call);
int azblob_token(struct azblob_lane *lane, struct baton_call *call);
/* The server did not take the lane's token: no lane uses it again. */
void azblob_token_drop(struct azblob_lane *lane);

/* ---- call.c ---- */

/* Begins a request for a record. key NULL: for the container. */
void azblob_ask(const struct azblob_lane *lane, struct azblob_ask *ask, const char *method,
		const char *key);
/* The same for a blob of any name, without the prefix. */
void azblob_ask_blob(const struct azblob_lane *lane, struct azblob_ask *ask, const char *method,
		     const char *blob);
void azblob_ask_query(struct azblob_ask *ask, const char *name, const char *value);
void azblob_ask_header(struct azblob_ask *ask, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Sends n requests side by side; the lane must be logged in. */
void azblob_send(struct azblob_lane *lane, struct baton_call *call, struct azblob_ask *asks,
		 size_t n, struct http_reply *replies);
/* Logs in and sends one request. 0, or -1: the request was not sent; the sentence is in the
 * call. */
int azblob_call(struct azblob_lane *lane, struct baton_call *call, struct azblob_ask *ask,
		struct http_reply *reply);
/* Whether the service's own word for what went wrong is `code`. */
bool azblob_says(const struct http_reply *reply, const char *code);
/* The outcome of a write that did not succeed: FAILED or UNKNOWN, with the sentence in the call. */
int azblob_fail(struct azblob_lane *lane, struct baton_call *call, const struct http_reply *reply);
/* Makes the container unless it exists. 0, or -1 with a sentence. */
int azblob_see_to_container(struct azblob_lane *lane, struct baton_call *call);
void azblob_container_is_gone(struct azblob_store *s);
/* How many seconds the server's clock is ahead of ours; false: the server did not tell. */
bool azblob_ahead_s(const struct http_reply *reply, int64_t *out);

/* ---- lock.c: as in store/record/adapter.h ---- */

int azblob_lock_take(void *lane, struct baton_call *call, const char *name, const char *lease_id,
		     uint64_t ttl_ns, uint64_t *free_in_ns);
int azblob_lock_keep(void *lane, struct baton_call *call, const char *name, const char *lease_id,
		     uint64_t ttl_ns);
int azblob_lock_drop(void *lane, struct baton_call *call, const char *name, const char *lease_id);
void azblob_locks_done(struct azblob_store *s);

/* ---- doctor.c ---- */

int azblob_examine(void *lane, struct baton_call *call,
		   void (*found)(void *arg, const struct baton_finding *finding), void *arg);

#pragma GCC visibility pop

#endif
