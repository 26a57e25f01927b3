/*
 * lookup.h: names to addresses, with a deadline. The system's resolver has none, so names are
 * looked up beside the caller's thread (getaddrinfo_a). A question that outlives its call is picked
 * up by the next call that asks for the same name. So a dead name service costs one thread per
 * caller, and not one per try. Addresses written as numbers need none of that.
 */
#ifndef BATON_LOOKUP_H
#define BATON_LOOKUP_H

#include <netdb.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* A question that is under way, also between calls. NULL: none. */
struct lookup;

/*
 * 0 and *list, to be freed with freeaddrinfo(); or a code of getaddrinfo(3): EAI_INPROGRESS when it
 * took too long, or when `wake` (a descriptor, or negative) could be read.
 */
int lookup(struct lookup **under_way, const char *host, const char *port, uint64_t deadline_ns,
	   int wake, struct addrinfo **list);
/* Gives up on the question; *under_way is NULL then. */
void lookup_cancel(struct lookup **under_way);

#pragma GCC visibility pop

#endif
