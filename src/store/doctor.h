/*
 * doctor.h: how drivers tell what they have found out about their store, for baton_examine(). What
 * is the same for several stores stands here once: the clock of a server, and where to go when
 * exclusion must survive the loss of one.
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

/* Who is told, and the worst that was. */
struct doctor {
	doctor_found *found;
	void *arg;
	int worst;
};

/* fix: what to do about it; NULL: nothing. */
void doctor_tell(struct doctor *d, int level, const char *check, const char *fix,
		 const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Whether nothing leaves this machine on the way there. NULL, "" and paths are sockets. */
bool doctor_is_local(const char *host);

/* secret: what we show the server to be let in; NULL: nothing. fix: how to ask for TLS. */
void doctor_tell_encryption(struct doctor *d, bool has_tls, bool is_local, const char *secret,
			    const char *fix);

/* How long a few requests took, and how far the server's wall clock is ahead of ours at least. */
struct doctor_trips {
	uint64_t ns[DOCTOR_TRIPS];
	size_t n;
	int64_t ahead_us;    /* by the fastest of them, up to half of which it may be wrong */
	uint64_t fastest_ns; /* 0: no clock was seen */
};

void doctor_trip(struct doctor_trips *t, uint64_t began_ns, uint64_t ended_ns);
/* The same, with what the server's clock said meanwhile, and ours at the end. */
void doctor_trip_clock(struct doctor_trips *t, uint64_t began_ns, uint64_t ended_ns,
		       int64_t server_us);
/* Sorts. */
uint64_t doctor_trips_median_ns(struct doctor_trips *t);
uint64_t doctor_trips_slowest_ns(const struct doctor_trips *t);
void doctor_tell_trips(struct doctor *d, struct doctor_trips *t, const char *what);
/* harm: what a clock that is wrong does to this store, as a sentence. */
void doctor_tell_clock(struct doctor *d, const struct doctor_trips *t, const char *harm);
/* What of the connections that a server has for all is in use. */
void doctor_tell_connections(struct doctor *d, int64_t used, int64_t most, const char *fix);

#pragma GCC visibility pop

#endif
