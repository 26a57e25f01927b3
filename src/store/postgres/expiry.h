/*
 * expiry.h: which leases have surely ended. Pure: no clock, no I/O, no lock; times are arguments.
 *
 * The server stamps `expires` with its wall clock, and wall clocks jump. So candidates never ask
 * that clock whether a lease is over. Two proofs count. Each of them shows that a whole ttl has
 * passed on *our* CLOCK_BOOTTIME since the holder's last renewal reached the server. By A1 the
 * holder's clock has then counted ttl·(1−drift), and its work is over (S2).
 *
 *  1. The server's clock, as we know it. An answer that carries the server's time S, and that was
 *     asked for at t0 and read at t1 (ours), gives a lower bound of the offset o = server − ours:
 *     S − t1. Let `low` be the lowest of these bounds over the last ttl. The renewal at our time r
 *     wrote expires = r + o(r) + ttl, and o(r) ≥ low. So from our time expires − low on, at least
 *     ttl has passed since r. If our samples don't reach back a whole ttl, this proof says nothing.
 *     If they do, but don't reach back to r, then a ttl has passed anyway. The proof also says
 *     nothing before a sample was asked for after r, that is, after we had read the row: a clock
 *     that was set back between our last sample and r would make the row look old. So a jump of the
 *     server's clock makes `low` low, never high: it delays this proof, and can't forge it.
 *     But a clock that jumps back *and* forth again between two samples could forge it, with r in
 *     between. So this proof says nothing if two samples in a row are more than half a ttl apart,
 *     as after a lost call. (Assumed: no clock jumps back and forth within half a ttl.)
 *  2. The row watched unchanged: `seq` was the same at two reads of ours that are a ttl apart,
 *     counted from when we had read the first one. This proof needs no server clock at all, and it
 *     is the only one for a process that has just come.
 *
 * Either proof is worth nothing if the row has been renewed since: a process that acts on a proof
 * compares `seq` in the store, and that comparison decides.
 */
#ifndef BATON_POSTGRES_EXPIRY_H
#define BATON_POSTGRES_EXPIRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXPIRY_SAMPLES 32
#define EXPIRY_ID_SIZE 64
#define EXPIRY_NEVER UINT64_MAX

/* One sample, or several that were put together. */
struct expiry_sample {
	uint64_t from_ns;  /* our clock when the first sample was read */
	uint64_t to_ns;    /* ... and when the last one was */
	uint64_t asked_ns; /* ... and was asked for */
	uint64_t gap_ns;   /* the longest time without a sample, from the one before on */
	int64_t low_us;    /* the server's clock was at least this far ahead of ours */
};

/* Samples, the newest last. Old ones are put together, so that the list reaches back far. */
struct expiry_clock {
	struct expiry_sample list[EXPIRY_SAMPLES];
	size_t n;
	uint64_t asked_ns; /* our clock when the last sample was asked for */
};

void expiry_clock_add(struct expiry_clock *c, uint64_t asked_ns, uint64_t read_ns,
		      int64_t server_us);

/* A lease of another process. */
struct watched_lease {
	char id[EXPIRY_ID_SIZE];
	int64_t seq;
	int64_t expires_us; /* by the server's clock */
	uint64_t ttl_ns;
	uint64_t since_ns; /* our clock: the row is unchanged since then */
	uint64_t noted_ns; /* our clock: the row was last read */
	bool gone;         /* the row was deleted */
	bool freed;        /* its session's lock is free: the lease may be taken then (fast=1) */
	bool told;         /* the elections that wait for its end have had a hint */
};

struct watched_leases {
	struct watched_lease *list;
	size_t n;
	size_t room;
};

void expiry_done(struct watched_leases *s);
struct watched_lease *expiry_find(const struct watched_leases *s, const char *id);
/* Notes a row that was read at read_ns. NULL: no memory, which only costs time. */
struct watched_lease *expiry_note(struct watched_leases *s, const char *id, int64_t seq,
				  int64_t expires_us, uint64_t ttl_ns, uint64_t read_ns);
void expiry_drop(struct watched_leases *s, const char *id);
/* All leases were asked for at asked_ns: those that weren't noted since then are gone. True: there
 * are some. */
bool expiry_missed(struct watched_leases *s, uint64_t asked_ns);
/* Forgets the leases that are gone. */
void expiry_drop_gone(struct watched_leases *s);

/* The time from which on the lease has surely ended, unless it is renewed; 0 if it is gone. */
uint64_t expiry_end_ns(const struct watched_lease *s, const struct expiry_clock *c,
		       uint64_t now_ns);

#endif
