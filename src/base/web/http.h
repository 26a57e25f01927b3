/*
 * http.h: the HTTP client of the drivers whose stores speak HTTP. Nothing in it knows a store.
 *
 * A client belongs to one lane, and to one thread at a time: so a renewal never waits for a watch's
 * connection. Calls block, but never past their deadline, which covers all of it: names, TLS, bytes
 * that trickle. After anything but a complete reply all connections of the client are closed, and
 * the next call begins on a fresh one: a dead connection is met once.
 *
 *     struct http_config config = {.ca = "/etc/ssl/etcd.pem"};
 *     struct http *h = http_new(&config);
 *     struct http_request ask = {.method = "GET", .host = &host, .path = "/health"};
 *     struct http_reply reply;
 *     int rc = http_call(h, &ask, deadline_ns, &reply);   HTTP_OK: a reply came, of any status
 *     if (rc != HTTP_OK && !reply.sent)                   then surely nothing happened
 *
 * A host may have several addresses, and one of them may be dead: it drops what is sent to it, or
 * accepts connections and stays silent. So an address that has yet to answer for the first time, or
 * has failed since, is first asked for something that does no harm (`probe`). It has a share of the
 * time for that; then it is the next one's turn. A host with one address isn't asked.
 *
 * Also: no redirect is followed, no proxy is used, no variable of the environment is asked, bodies
 * are bounded. A connection has one request at a time, so that giving one up takes no other along.
 * The protocol is HTTP/1.1, or HTTP/2 where that is all that the server speaks (h2). TLS is 1.2 or
 * later, with chain and name verified; there is no switch against that. A request is never sent
 * twice by itself.
 */
#ifndef BATON_HTTP_H
#define BATON_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

#define HTTP_NAME_MAX 255
#define HTTP_TEXT_MAX 200
/* How many requests of http_call_all() are under way at a time, each on its own connection. */
#define HTTP_PARALLEL 8

enum http_result {
	HTTP_OK,
	HTTP_LATE,        /* the deadline */
	HTTP_UNAVAILABLE, /* no such name, no server there, connection lost */
	HTTP_UNTRUSTED,   /* TLS: we don't trust it, it doesn't trust us, or a file can't be used */
	HTTP_STRANGE,     /* not HTTP, or more than we accept */
	HTTP_MEMORY,
	/* Of streams only: */
	HTTP_WOKEN, /* the wake descriptor can be read; the stream goes on */
	HTTP_END,   /* the server has ended the stream, properly */
};

/* Files are read again for every connection, so they may be replaced at any time. For each, the
 * text of the PEM file can be given instead. "" or NULL: none. What is pointed to is copied. */
struct http_config {
	const char *ca; /* none: those that the system trusts */
	const char *ca_text;
	const char *cert; /* ours */
	const char *cert_text;
	const char *key; /* none: it is in cert */
	const char *key_text;
	const char *server_name; /* what the certificate must be for, if not the host's name */
	size_t body_max;         /* 0: 16 MiB; of a stream: one piece */
	bool h2;                 /* the server speaks HTTP/2; under TLS both agree on it */
	int wake;          /* descriptor that ends a wait for a stream or a name, or 0: none */
	const char *probe; /* a path that any client may ask for; NULL: "/". Not copied */
};

struct http_host {
	char name[HTTP_NAME_MAX + 1]; /* or an address, IPv6 without brackets */
	char port[8];
	bool tls;
};

struct http_request {
	const char *method;
	const struct http_host *host;
	const char *path;           /* from the '/' on, encoded: see http_encode() */
	const char *const *headers; /* "Name: value", NULL at the end; may be NULL */
	const char *body;           /* may be NULL */
	size_t body_size;
	/* Where other hosts could be asked instead: until when this host has to show that it
	 * answers, before the request is sent. 0: there is no other host. */
	uint64_t prove_ns;
};

struct http_reply {
	int result; /* enum http_result */
	int status; /* 0: none came */
	bool sent;  /* a byte of the request may have left this machine */
	/* Valid until the next call on this client. body is never NULL, and has a NUL behind it. */
	const char *body;
	size_t body_size;
	char text[HTTP_TEXT_MAX]; /* unless OK: what went wrong, without a full stop */
	const void *answer;       /* see http_header() */
};

struct http;

/* Whether this libcurl knows HTTP/2, without which no client with h2 can do anything. */
bool http_knows_h2(void);
/* NULL: no memory. No I/O. */
struct http *http_new(const struct http_config *config);
void http_free(struct http *h);
/* In a child of fork(): closes what connections there are silently, and frees nothing. Of
 * all calls only http_free() may follow. */
void http_forget(struct http *h);

/* reply->result, too. */
int http_call(struct http *h, const struct http_request *request, uint64_t deadline_ns,
	      struct http_reply *reply);
/* Makes n calls, several at a time, in no certain order. True: all OK. */
bool http_call_all(struct http *h, const struct http_request *requests, size_t n,
		   uint64_t deadline_ns, struct http_reply *replies);
/* From from_ns on (boot clock; 0: never), a wake ends calls, too, as late ones. Before that, a call
 * has its time, however often the client is woken. */
void http_heed_wake(struct http *h, uint64_t from_ns);
/* A header of the reply, without the blanks around it; "" if it has none. As long as the body is
 * valid. */
const char *http_header(const struct http_reply *reply, const char *name, char *out, size_t size);

/*
 * A stream: one request, whose reply is read piece by piece as it comes, for as long as it takes.
 * Beside it, a client makes no calls.
 *
 *     http_stream_open()    begins it
 *     http_stream_next()    OK: reply->body is the next piece, without what frames it. LATE and
 *                           WOKEN: nothing yet, call again. Anything else: it is over, and closed
 */
enum http_pieces {
	HTTP_LINES,
	HTTP_FRAMES, /* of gRPC: see http_frame() */
	HTTP_WHOLE,  /* the body, when it is complete (a long poll), followed by END */
};

int http_stream_open(struct http *h, const struct http_request *request, enum http_pieces pieces,
		     uint64_t deadline_ns, struct http_reply *reply);
int http_stream_next(struct http *h, uint64_t deadline_ns, struct http_reply *reply);
void http_stream_close(struct http *h);
bool http_stream_is_open(const struct http *h);

/* gRPC puts a byte (0: not compressed) and a size of four before each message. */
#define HTTP_FRAME 5

/* The size of the first message, with these bytes; 0: it isn't all there; SIZE_MAX: we can't read
 * it. */
size_t http_frame(const char *data, size_t n);

/* One segment of a path, or a value of a query, as it may stand there. False: no room. */
bool http_encode(const char *text, char *out, size_t size);

#pragma GCC visibility pop

#endif
