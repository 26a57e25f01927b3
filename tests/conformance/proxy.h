/*
 * proxy.h: the network between the candidates of one case and a real server, in the verbs of the
 * suite. The fault proxy itself is tests/relay; here a verb is a text that stands in its requests.
 */
#ifndef BATON_CONFORMANCE_PROXY_H
#define BATON_CONFORMANCE_PROXY_H

#include "backend.h"
#include "relay/protocols.h"

struct proxy;

/* Passes on to 127.0.0.1:port; NULL if it can't. words[verb] tells the verbs apart. */
struct proxy *proxy_new(unsigned port, const struct protocol *protocol,
			const char *const words[N_VERBS]);
void proxy_free(struct proxy *p);
unsigned proxy_port(const struct proxy *p);
/* The same way through, on which nothing ever fails: its time tells how busy the machine is. */
unsigned proxy_clear_port(const struct proxy *p);

/* Hooks of a backend whose hand begins with a pointer to its proxy. */
bool proxy_down(struct testcase *t, bool is_down);
bool proxy_hole(struct testcase *t, bool is_hole);
bool proxy_fail(struct testcase *t, enum verb verb, unsigned n);
bool proxy_mute(struct testcase *t, enum verb verb, unsigned n);
bool proxy_late(struct testcase *t, enum verb verb, unsigned n, uint64_t ms);
uint64_t proxy_calls(struct testcase *t, enum verb verb);
/* How many messages were harmed so far. */
uint64_t proxy_harmed(struct testcase *t);

/* Rules that every proxy of this process has from its beginning (conformance --network): false, and
 * a sentence, if they are not understood. */
bool proxy_weather(const char *rules, uint64_t seed, char *why, size_t size);
/* Whether there are such rules. */
bool proxy_is_bad(void);

#endif
