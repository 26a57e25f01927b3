/*
 * grpc.h: gRPC on the HTTP client: a request is one message, and so is a reply, or each piece of a
 * stream. Nothing in it knows a service.
 *
 *     struct bytes *b = grpc_begin(&body);
 *     proto_put_number(b, 1, 42);
 *     struct grpc_request ask = {.host = &host, .path = "/pkg.Service/Method", .body = b};
 *     struct grpc_reply reply;
 *     int rc = grpc_call(http, &ask, deadline_ns, &reply);  HTTP_OK: a reply came
 *     if (reply.status == GRPC_OK) ... reply.message
 *
 * The client must have been made with h2. What is said of calls in http.h holds here, too.
 */
#ifndef BATON_GRPC_H
#define BATON_GRPC_H

#include "base/web/http.h"
#include "base/web/proto.h"

#pragma GCC visibility push(hidden)

#define GRPC_METADATA_MAX 4

enum grpc_status {
	GRPC_NONE = -1, /* the reply was not gRPC: see http.status */
	GRPC_OK = 0,
	GRPC_INVALID = 3,
	GRPC_NOT_FOUND = 5,
	GRPC_DENIED = 7,
	GRPC_EXHAUSTED = 8,
	GRPC_UNAVAILABLE = 14,
	GRPC_UNAUTHENTICATED = 16,
};

struct grpc_request {
	const struct http_host *host;
	const char *path;
	const char *const *metadata; /* "name: value", NULL at the end; may be NULL */
	struct bytes *body;          /* begun with grpc_begin() */
	uint64_t prove_ns;           /* as in http.h */
};

struct grpc_reply {
	struct http_reply http; /* result, sent, and what went wrong below gRPC */
	int status;             /* enum grpc_status, or another status of gRPC */
	char text[HTTP_TEXT_MAX];
	struct proto message; /* until the next call on this client */
};

struct bytes *grpc_begin(struct bytes *b);

/* The result of http_call(). HTTP_STRANGE also where GRPC_OK comes without a message. */
int grpc_call(struct http *h, const struct grpc_request *request, uint64_t deadline_ns,
	      struct grpc_reply *reply);
/* http_stream_next() gives the messages of the stream. */
int grpc_stream_open(struct http *h, const struct grpc_request *request, uint64_t deadline_ns,
		     struct http_reply *reply);
/* What has come with a reply, or at the end of a stream: its status and its text. */
int grpc_status_of(const struct http_reply *reply, char text[HTTP_TEXT_MAX]);

#pragma GCC visibility pop

#endif
