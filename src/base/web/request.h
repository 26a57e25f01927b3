/*
 * request.h: what the files of the HTTP client share; others include http.h.
 *
 *   http.c       calls and streams: what is under way, and for how long
 *   request.c    one request as a handle of libcurl
 *   addresses.c  the addresses of hosts, as libcurl wants them
 *   headers.c    what stands in requests and replies beside the body
 */
#ifndef BATON_HTTP_REQUEST_H
#define BATON_HTTP_REQUEST_H

#include <curl/curl.h>

#include "base/bytes.h"
#include "base/lookup.h"
#include "base/web/http.h"

#pragma GCC visibility push(hidden)

#define HTTP_NAMES_MAX 16
#define HTTP_ADDRESSES_MAX 8
/* A connection that is tried beside another one has a socket, too. */
#define HTTP_SOCKETS_MAX 64

/* What came back. Lives until the next call. */
struct answer {
	struct bytes head;
	struct bytes body;
};

/* One request under way. */
struct request {
	struct http *http;
	CURL *easy;
	struct answer *answer;
	struct http_reply *reply; /* NULL: it is free, or a stream between two calls */
	struct curl_slist *headers;
	struct curl_slist *resolve;
	struct curl_slist *connect_to;
	unsigned n_sent;
	bool is_added; /* to the multi handle */
	bool is_done;
	bool is_too_much; /* more than body_max */
	bool is_again;    /* only on a connection that is there */
	CURLcode code;    /* when it is done */
	char error[CURL_ERROR_SIZE];
};

/* A host whose addresses we know, or are looking up. */
struct name {
	struct http_host host;
	struct lookup *lookup;
	/* "name:port:address" of each, as libcurl wants it; none for what is an address itself. */
	char *entries[HTTP_ADDRESSES_MAX];
	size_t n;
	size_t at;      /* whose turn it is */
	bool is_proven; /* ... and that it has answered, and not failed since */
	uint64_t until_ns;
};

struct http {
	CURLM *multi;
	struct request requests[HTTP_PARALLEL];
	struct answer *answers;
	size_t n_answers;
	struct name names[HTTP_NAMES_MAX];
	size_t next_name;
	int sockets[HTTP_SOCKETS_MAX]; /* -1: none */
	int wake;                      /* -1: none */
	uint64_t heed_ns;              /* from when on a wake ends calls, too; 0: never */
	size_t body_max;
	char *ca, *ca_text, *cert, *cert_text, *key, *key_text, *server_name; /* or NULL */
	const char *probe; /* the path that is asked for to see whether a server answers */
	bool h2;
	bool is_7_88;            /* the libcurl that is used: see request.c */
	bool is_stream;          /* in requests[0] */
	enum http_pieces pieces; /* ... and what is waited for */
	size_t piece;            /* ... and the bytes of its answer that were read */
	struct http_host stream_host;
	bool is_forgotten; /* in a child of fork() */
};

/* Makes the handle ready: 0, or -1 (no memory). reply and answer are set. fresh: it must work on a
 * fresh connection, too. */
int request_fill(struct request *s, const struct http_request *request, const struct name *name,
		 uint64_t connect_ms, bool fresh);
/* What became of it, in *out: result, status, sent, body, text. */
void request_judge(const struct request *s, const struct http_host *host, struct http_reply *out);
void request_clear(struct request *s);

/* The host's addresses: HTTP_OK, or the result, with the text in *reply. */
int addresses_find(struct http *h, const struct http_host *host, uint64_t deadline_ns,
		   struct name **name, struct http_reply *reply);
/* The host was not there, or did not answer: look it up again, and use the next address. */
void addresses_doubt(struct http *h, const struct http_host *host);
void addresses_next(struct name *n);
void addresses_free(struct http *h);

#pragma GCC visibility pop

#endif
