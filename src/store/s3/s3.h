/*
 * s3.h: records as objects of a bucket, on AWS S3 and servers like it. This header has what the
 * files of this adapter share.
 *
 *   options.c      the URL
 *   profile.c      the files that AWS' own tools keep profiles in
 *   credentials.c  access keys: where they come from, and when new ones are fetched
 *   sign.c         signatures of requests (AWS Signature Version 4)
 *   call.c         requests, and what their answers mean
 *   adapter.c      the verbs of store/record/adapter.h
 *   doctor.c       what the bucket is like
 *
 * The objects:
 *
 *   PREFIX/e/NAME   PREFIX/l/LEASE   PREFIX/c/LEASE   PREFIX/t/SCRATCH
 *
 * One object is one record, and its ETag is the version. No two values are equal, so no two ETags
 * are. A write is a PUT with `If-Match: ETAG`, or with `If-None-Match: *` if there must be no
 * object. An election is freed by a PUT, too. Only sweeping deletes, because some servers ignore
 * the conditions of a DELETE.
 *
 * The adapter must never send a write a second time by itself. It must never show a secret: not in
 * a sentence, and not in a request to another host than the one that the secret is for.
 */
#ifndef BATON_S3_H
#define BATON_S3_H

#include "base/web/http.h"
#include "store/base.h"
#include "store/options.h"
#include "store/record/adapter.h"

#pragma GCC visibility push(hidden)

#define S3_KEY_MAX 180
#define S3_VALUE_MAX ((uint32_t)1 << 20)
#define S3_BATCH_MAX 250
#define S3_NAME_MAX 128
#define S3_SECRET_MAX 256
#define S3_TOKEN_MAX 8192
#define S3_PATH_MAX 2400
#define S3_LINE_MAX 512
#define S3_DATE_SIZE sizeof("20130524T000000Z")

/* ---- options.c ---- */

struct s3_options {
	char bucket[64];
	char region[S3_NAME_MAX];
	char profile[S3_NAME_MAX];
	char credentials_file[OPTION_PATH_MAX];
	bool has_endpoint;
	struct http_host host; /* of the endpoint */
	bool path_style;
	bool has_path_style; /* the URL says which style */
	struct option_tls files;
	struct record_options *record; /* while the URL is read */
};

int s3_options_parse(struct s3_options *o, const char *text, struct baton_error *err);
/* Parses "https://host:port/path", or one without a path if `path` is NULL. False: not a valid
 * address. */
bool s3_parse_address(const char *text, struct http_host *host, char *path, size_t size);

/* ---- profile.c ---- */

/* The value of a key in a section of a file; the last one counts. False: there is none, or there is
 * no room for it. */
bool s3_profile_get(const char *text, size_t n, const char *section, const char *key, char *out,
		    size_t size);

/* ---- credentials.c ---- */

struct s3_keys {
	char id[S3_SECRET_MAX];
	char secret[S3_SECRET_MAX];
	char token[S3_TOKEN_MAX]; /* "": none */
	uint64_t refresh_ns;      /* from then on, on the boot clock, new keys are asked for */
	uint64_t end_ns;          /* when these keys are over */
};

struct s3_store;
struct s3_lane;

/* Copies keys that can be used now, and the region, to the lane. False: call->error says why
 * not. */
bool s3_credentials(struct s3_lane *lane, struct baton_call *call);
/* The server refused a request with the lane's keys. are_refused: it refused the keys themselves,
 * so the next call asks for new ones. Else the keys are used on, and new ones are asked for
 * later. */
void s3_credentials_doubt(struct s3_lane *lane, bool are_refused);

/* ---- sign.c ---- */

struct s3_scope {
	const struct s3_keys *keys;
	const char *date; /* 20130524T000000Z */
	const char *region;
	const char *service;
};

/* Writes "authorization: ..." for a request. path and query must be encoded, and the parts of the
 * query sorted. The headers are "name: value", with names in lower case, sorted, and NULL at the
 * end; all of them are signed. hash: that of the body. False: no room. */
bool s3_sign(const struct s3_scope *scope, const char *method, const char *path, const char *query,
	     const char *const *headers, const char *hash, char *out, size_t size);
void s3_date(int64_t wall_ms, char out[S3_DATE_SIZE]);

/* ---- call.c ---- */

struct s3_store {
	struct store_base base;
	struct s3_options options;
	char prefix[RECORD_PREFIX_MAX + 2]; /* with a '/' at its end, unless it is empty */
	struct store_turn turn;             /* one lane at a time asks for keys */
	struct s3_keys keys;                /* base.lock */
	char region[S3_NAME_MAX];           /* base.lock; "": not known yet */
	bool has_keys;                      /* base.lock */
};

/* The headers of one request, and the texts that they are made of. */
struct s3_ask {
	const char *headers[9];
	char path[S3_PATH_MAX];
	char host[HTTP_NAME_MAX + 20];
	char hash[100];
	char date[40];
	char condition[S3_LINE_MAX];
	char sign[2 * S3_LINE_MAX];
};

struct s3_lane {
	struct store_lane lane;
	struct s3_store *store;
	int kind;
	struct http *http;
	struct http_host host; /* of the bucket */
	struct s3_keys keys;   /* as they were at the last call */
	char region[S3_NAME_MAX];
	char token[S3_TOKEN_MAX + 32]; /* the whole header */
	/* Of the call under way: */
	struct s3_ask *asks;
	struct http_request *requests;
	struct http_reply *replies;
	size_t room;
};

/* What an answer means, whatever was asked. */
enum s3_answer {
	S3_DONE,
	S3_UNCHANGED, /* 304 */
	S3_ABSENT,    /* 404: there is no such object */
	S3_CONFLICT,  /* not carried out: another version is there, or another writer was faster */
	S3_FAILED,    /* not carried out; call->error says why */
	S3_UNKNOWN,   /* the result is unknown; call->error says why */
};

/* Begins a call of n requests. False: call->error says why not. */
bool s3_begin(struct s3_lane *lane, struct baton_call *call, size_t n);
/* Fills in the i-th request. key: a record's, or NULL: the bucket itself. query: encoded and
 * sorted, or "". condition: a header, or "". */
void s3_ask(struct s3_lane *lane, size_t i, const char *method, const char *key, const char *query,
	    const char *condition, const struct bytes *body);
/* Carries out all n requests. */
void s3_run(struct s3_lane *lane, struct baton_call *call, size_t n);
/* The answer to the i-th request: enum s3_answer. */
int s3_answer(struct s3_lane *lane, struct baton_call *call, size_t i);
/* The version for an ETag: without its quotes. False: the ETag can't be used. */
bool s3_etag(const char *text, struct record_version *out);
/* How old an object is by the server's clock. Both texts are as the server wrote them. */
uint64_t s3_age_ns(const char *written, const char *now);
/* Seconds since 1970 of a date of HTTP or XML; -1: not a date. */
int64_t s3_seconds(const char *text);

int s3_examine(void *lane, struct baton_call *call,
	       void (*found)(void *arg, const struct baton_finding *finding), void *arg);

#pragma GCC visibility pop

#endif
