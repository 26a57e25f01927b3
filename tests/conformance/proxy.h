/*
 * proxy.h: a network that can be made to fail, between the candidates of one case and a real
 * server. It listens on a port of its own in the process of the case, passes bytes on, and knows
 * just enough of a protocol to tell one request from the next and what it is about.
 */
#ifndef BATON_CONFORMANCE_PROXY_H
#define BATON_CONFORMANCE_PROXY_H

#include "backend.h"

struct proxy;

/* How a protocol is understood. */
struct proxy_speech {
	/* The length of the first request in the bytes, and which verb it is (VERB_ANY: another
	 * one); 0: it isn't complete yet. */
	size_t (*request)(void *arg, const char *data, size_t n, enum verb *verb);
	void *arg;
	/* The server's own words for "not now": the answer to a request that is to fail. */
	const char *refusal;
	size_t refusal_n; /* 0: it is a text */
};

/* Passes on to 127.0.0.1:port; NULL if it can't. */
struct proxy *proxy_new(unsigned port, const struct proxy_speech *speech);
void proxy_free(struct proxy *p);
unsigned proxy_port(const struct proxy *p);
/* The same way through, on which nothing ever fails: its time tells how busy the machine is. */
unsigned proxy_clear_port(const struct proxy *p);

/* As the hooks of a backend; see backend.h. */
void proxy_down(struct proxy *p, bool is_down);
void proxy_hole(struct proxy *p, bool is_hole);
void proxy_fail(struct proxy *p, enum verb verb, unsigned n);
void proxy_mute(struct proxy *p, enum verb verb, unsigned n);
void proxy_late(struct proxy *p, enum verb verb, unsigned n, uint64_t ms);
uint64_t proxy_calls(struct proxy *p, enum verb verb);

#endif
