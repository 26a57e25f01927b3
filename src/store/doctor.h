/*
 * doctor.h: how drivers tell what they have found out about their store, for baton_examine(). What
 * is the same for several stores stands here once: the clock of a server, and what to use when
 * exclusion must survive the loss of a server.
 */
#ifndef BATON_DOCTOR_H
#define BATON_DOCTOR_H

#include "baton-store.h"

#pragma GCC visibility push(hidden)

#define DOCTOR_TRIPS 9
#define DOCTOR_ACROSS_LOSS                                                                  \
	"Where exclusion must survive the loss of a server, use a store that agrees among " \
	"several: etcd, Consul, or PostgreSQL with a synchronous standby."

typedef void doctor_found(void *arg, const struct baton_finding *finding);

/* Who is told, and the worst level that was told. */
struct doctor {
	doctor_found *found;
	void *arg;
	int worst;
};

/* fix: what a person should do about it; NULL: nothing. */
void doctor_tell(struct doctor *d, int level, const char *check, const char *fix,
		 const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Whether the way to that host stays on this machine. NULL, "" and paths are local sockets. */
bool doctor_is_local(const char *host);

/* secret: what we show the server to be let in; NULL: nothing. fix: how to ask for TLS. */
void doctor_tell_encryption(struct doctor *d, bool has_tls, bool is_local, const char *secret,
			    const char *fix);

/* How long a few requests took, and how far the server's wall clock is ahead of ours. */
struct doctor_trips {
	uint64_t ns[DOCTOR_TRIPS];
	size_t n;
	int64_t ahead_us;    /* by the fastest request; wrong by half of its time at most */
	uint64_t fastest_ns; /* 0: no clock was seen */
};

void doctor_trip(struct doctor_trips *t, uint64_t began_ns, uint64_t ended_ns);
/* The same for a request that also read the server's clock. It must have ended just now. */
void doctor_trip_clock(struct doctor_trips *t, uint64_t began_ns, uint64_t ended_ns,
		       int64_t server_us);
/* Sorts. */
uint64_t doctor_trips_median_ns(struct doctor_trips *t);
uint64_t doctor_trips_slowest_ns(const struct doctor_trips *t);
void doctor_tell_trips(struct doctor *d, struct doctor_trips *t, const char *what);
/* harm: a sentence that says what a wrong clock does to this store. */
void doctor_tell_clock(struct doctor *d, const struct doctor_trips *t, const char *harm);
/* How many of the connections that the server allows are in use. */
void doctor_tell_connections(struct doctor *d, int64_t used, int64_t most, const char *fix);

#pragma GCC visibility pop

#endif
