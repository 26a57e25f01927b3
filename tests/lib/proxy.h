/*
 * proxy.h: a proxy on loopback that does to the traffic of a store what networks and servers do to
 * it. It knows where the messages of a protocol end, so that a fault can hit a request of one kind,
 * or the reply to it, and nothing else.
 *
 * Written once for all stores: a protocol is a small table (proxy_postgres, proxy_resp); a kind of
 * request is told by a word that stands in it. The proxy is one thread of the process that made it;
 * every function may be called from any other.
 */
#ifndef BATON_TEST_PROXY_H
#define BATON_TEST_PROXY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROXY_KINDS 8

/* How much of a stream belongs together. */
struct proxy_unit {
	size_t n;         /* bytes; 0: not all of it has come */
	bool is_asked;    /* from the client: one reply will come */
	bool is_greeting; /* ... but it is no request: no rule is for it, and it isn't counted */
	bool is_answer;   /* from the server: the reply ends here */
};

struct proxy_protocol {
	/* The next unit of the client's stream; `begun`: it is not the first. If *answer is set,
	 * the proxy answers that itself, and the server never hears of it. */
	struct proxy_unit (*request)(const unsigned char *bytes, size_t n, bool begun,
				     const char **answer);
	struct proxy_unit (*reply)(const unsigned char *bytes, size_t n);
	/* What a server says that can't do it; the session goes on. */
	const char *refusal;
	size_t refusal_n;
};

extern const struct proxy_protocol proxy_postgres, proxy_resp;

enum proxy_fault {
	PROXY_NONE,
	PROXY_REFUSE, /* the server says no, without having been asked */
	PROXY_MUTE,   /* it is carried out, the reply is lost */
	PROXY_LATE,   /* the reply comes `ms` later */
	PROXY_RESET,  /* the connection is reset instead */
};

struct proxy;

/* To that port of 127.0.0.1. Requests of kind i have words[i] in them; kind 0 is any. NULL: no. */
struct proxy *proxy_new(const struct proxy_protocol *protocol, uint16_t port,
			const char *const *words);
void proxy_free(struct proxy *p);
uint16_t proxy_port(const struct proxy *p);

/* The next `times` requests of that kind, and from then on none. */
void proxy_rule(struct proxy *p, unsigned kind, enum proxy_fault fault, unsigned times,
		uint64_t ms);
/* All connections are reset, and so is each new one at once. */
void proxy_down(struct proxy *p, bool is_down);
/* Bytes are swallowed, both ways. What was connected stays dead when it is over. */
void proxy_hole(struct proxy *p, bool is_hole);
/* Requests of that kind so far. A connection that was reset at once counts as kind `any`. */
uint64_t proxy_count(struct proxy *p, unsigned kind);

#endif
