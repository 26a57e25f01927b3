/*
 * azblob.h: records as blobs of an Azure storage account: what the files of this adapter share.
 *
 *   options.c   the URL
 *   login.c     who we are: an account key, a SAS, a connection string, a token
 *   sign.c      a request signed with the account key (SharedKey)
 *   token.c     tokens of workload identities and managed identities
 *   call.c      requests, and what an answer means
 *   lock.c      mode=bloblease: the lease of a blob beside an election's record
 *   adapter.c   the verbs of store/record/adapter.h
 *   doctor.c    what account and container are like
 *
 * A record is a block blob: PREFIX/l/LEASE, PREFIX/e/NAME, PREFIX/c/LEASE. Its version is its ETag,
 * and every write has a condition on that. Blobs of one call are written side by side.
 *
 * It must never repeat a write by itself, and no secret may stand in a URL, a sentence or a log.
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
/* Below this are the blobs that are leased. */
#define AZBLOB_LOCKS "lock/"
/* What the service gives leases for. */
#define AZBLOB_LEASE_MIN_S 15
#define AZBLOB_LEASE_MAX_S 60
/* Tokens and SAS are long. */
#define AZBLOB_SECRET_MAX 8192
#define AZBLOB_PATH_MAX 4096
#define AZBLOB_LINES 12
#define AZBLOB_LINE_MAX 256

/* Where a service is: a host, and what its paths begin with, without a '/' at the end. */
struct azblob_endpoint {
	struct http_host host;
	char base[AZBLOB_BASE_MAX + 1];
};

enum azblob_login {
	AZBLOB_KEY,
	AZBLOB_SAS,
	AZBLOB_CONNECTION, /* a connection string, which has one of the two above */
	AZBLOB_WORKLOAD,   /* a token for a token of Kubernetes' */
	AZBLOB_MANAGED,    /* a token of the machine's, or of App Service's */
};

struct azblob_options {
	char account[AZBLOB_NAME_MAX + 1];
	char container[AZBLOB_NAME_MAX + 1];
	struct azblob_endpoint endpoint;
	bool has_endpoint;
	int login;
	bool has_login;             /* login= */
	char file[OPTION_PATH_MAX]; /* what we log in with, but for a managed identity */
	const char *file_option;    /* the option that named it */
	char client_id[AZBLOB_ID_MAX + 1];
	char tenant_id[AZBLOB_ID_MAX + 1];
	/* Who gives tokens; "": it isn't known. */
	struct azblob_endpoint authority;
	char identity_header[AZBLOB_ID_MAX + 1]; /* App Service; "": the machine's */
	char ca[OPTION_PATH_MAX];
	char blob[AZBLOB_BASE_MAX + 1]; /* blob=; "": each election has its own */
	struct record_options *record;  /* while the URL is read */
};

int azblob_options_parse(struct azblob_options *o, const char *text, struct baton_error *err);
/* "https://host:port/path"; false: not such an address. */
bool azblob_endpoint_parse(const char *text, struct azblob_endpoint *out);

struct azblob_store {
	struct store_base base;
	struct azblob_options options;
	char prefix[RECORD_PREFIX_MAX + 1];
	bool has_container; /* base.lock: somebody has seen it */
	/* base.lock: the token that all lanes use. */
	char *token;
	uint64_t token_due_ns, token_end_ns, token_retry_ns;
	struct store_turn turn;    /* one lane asks for a token */
	bool has_locks;            /* mode=bloblease */
	struct azblob_lock *locks; /* base.lock: lock.c */
	struct baton_traits traits;
};

struct azblob_lane {
	struct store_lane lane;
	struct azblob_store *store;
	struct http *http;
	int kind;
	/* Of the call under way: where to, and with what. */
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
	bool is_cut; /* something had no room: it must not be sent */
};

/* ---- sign.c ---- */

/* What is signed: method, path with query, "name: value" headers, bytes of the body. */
void azblob_string_to_sign(struct bytes *out, const char *account, const char *method,
			   const char *path, const char *const *headers, size_t size);
/* The header that proves the key; false: the key is not valid. */
bool azblob_sign(const char *account, const char *key, const char *to_sign, size_t n, char *out,
		 size_t size);
/* As in "Fri, 26 Jun 2015 23:39:12 GMT", in any locale. */
void azblob_date(int64_t unix_s, char *out, size_t size);

/* ---- login.c, token.c ---- */

/* Fills in the lane's endpoint, login and secret. 0, or -1 with the sentence. */
int azblob_log_in(struct azblob_lane *lane, struct baton_call *call);
int azblob_token(struct azblob_lane *lane, struct baton_call *call);
/* The server did not take the lane's token: nobody is to use it again. */
void azblob_token_drop(struct azblob_lane *lane);

/* ---- call.c ---- */

/* Begins a request for a record; NULL: for the container. */
void azblob_ask(const struct azblob_lane *lane, struct azblob_ask *ask, const char *method,
		const char *key);
/* The same for a blob of any name, without the prefix. */
void azblob_ask_blob(const struct azblob_lane *lane, struct azblob_ask *ask, const char *method,
		     const char *blob);
void azblob_ask_query(struct azblob_ask *ask, const char *name, const char *value);
void azblob_ask_header(struct azblob_ask *ask, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Sends them side by side; the lane is logged in. */
void azblob_send(struct azblob_lane *lane, struct baton_call *call, struct azblob_ask *asks,
		 size_t n, struct http_reply *replies);
/* One request, from the login on. 0, or -1: it was not sent, and the sentence is there. */
int azblob_call(struct azblob_lane *lane, struct baton_call *call, struct azblob_ask *ask,
		struct http_reply *reply);
/* The service's own word for what went wrong. */
bool azblob_says(const struct http_reply *reply, const char *code);
/* How a write has ended that did not go well: FAILED or UNKNOWN, with the sentence in the call. */
int azblob_fail(struct azblob_lane *lane, struct baton_call *call, const struct http_reply *reply);
/* Makes the container unless it is there. 0, or -1 with the sentence. */
int azblob_see_to_container(struct azblob_lane *lane, struct baton_call *call);
void azblob_container_is_gone(struct azblob_store *s);
/* Server's clock ahead of ours, in seconds; false: it did not tell. */
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
