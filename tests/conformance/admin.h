/*
 * admin.h: the administrator of a service that speaks HTTP and JSON, for the backends of such
 * stores. It goes straight to the server, and uses nothing of a driver but the HTTP client.
 */
#ifndef BATON_CONFORMANCE_ADMIN_H
#define BATON_CONFORMANCE_ADMIN_H

#include "backend.h"
#include "base/web/http.h"
#include "base/web/json.h"
#include "proxy.h"

/* A connection of the administrator; one thread's. */
struct admin {
	struct http *http;
	struct http_host host;
	char header[2048]; /* who we are, as "Name: value"; "": nobody */
	const char *type;  /* of what is sent; NULL: JSON */
	int status;        /* of the last answer; 0: there was none */
};

/* To 127.0.0.1; false: no memory. */
bool admin_open(struct admin *a, unsigned port);
void admin_close(struct admin *a);
/* The port that a URL ends with, before any options; 0: none. */
unsigned admin_port_of(const char *url);
/* The answer, of any status, to be given back with json_decref(); NULL: none, or no JSON. */
json_t *admin_ask(struct admin *a, const char *method, const char *path, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
json_t *admin_send(struct admin *a, const char *method, const char *path, const char *body,
		   size_t n);

/* What such a backend has in its hand. */
struct hand {
	struct proxy *proxy; /* first: see proxy.h */
	struct admin admin;  /* straight to the server */
	struct admin pulse;  /* of another thread */
	char label[64];
	char token[64]; /* Consul: the case's own; "": there are no rights here */
};

struct hand *admin_hand(struct testcase *t);
/* leave() of a backend. */
void admin_leave(struct testcase *t);

#endif
