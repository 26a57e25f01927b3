/*
 * oracle.h: do two candidates ever lead at once? The judge for real threads and processes (S1,
 * S3, S4), which needs no trust in the library that it judges, only one clock for all.
 *
 * Each candidate loops `t0; is_leader; t1`. A yes says that it led at some instant between t0 and
 * t1, so a term surely lasted from the smallest t1 to the greatest t0 of its yeses. For two terms
 * X < Y the order of time must equal the order of terms:
 *
 *        X: --[t0  t1]----[t0  t1]--------------------   greatest t0 of X
 *        Y: -------------------------[t0 t1]---[t0 t1]   smallest t1 of Y   must be later
 *
 * That is all: an overlap violates it, whichever of the two began first, and so does a term that
 * comes back. A wrong alarm is impossible, because only sure instants are compared.
 *
 * The memory is shared (by fork, or through a descriptor that is inherited), so what a killed
 * process has seen counts. A track has one writer at a time. What is judged while they still write
 * is true, but may not be all.
 */
#ifndef BATON_TEST_ORACLE_H
#define BATON_TEST_ORACLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ORACLE_TRACKS 128
#define ORACLE_TERMS 2048

/* What one candidate saw of one term. */
struct oracle_term {
	_Atomic uint64_t term; /* 0: not used */
	_Atomic uint64_t first_t1_ns;
	_Atomic uint64_t last_t0_ns;
};

struct oracle_track {
	_Atomic uint32_t n_terms;
	_Atomic uint64_t n_samples;
	_Atomic uint64_t n_yes;
	_Atomic uint32_t n_full;     /* terms that found no room: the run proves nothing */
	_Atomic uint32_t n_termless; /* yes, but in no term */
	_Atomic uint32_t n_woke_yes; /* the first answers after a long stop of the sampler */
	_Atomic uint32_t n_woke_no;
	_Atomic uint32_t n_woke_new; /* yes, but won since: the sampler got to run late */
	_Atomic uint64_t previous_t0_ns;
	_Atomic uint64_t stopped_ns; /* when it surely stood still; the last time */
	struct oracle_term terms[ORACLE_TERMS];
};

struct oracle {
	_Atomic uint64_t wake_gap_ns; /* a stop of so long is one beyond the lease */
	struct oracle_track tracks[ORACLE_TRACKS];
};

/* How a candidate is asked: by the library under test, or by something broken on purpose. */
struct oracle_subject {
	bool (*is_leader)(const void *candidate);
	uint64_t (*term)(const void *candidate);
	const void *candidate;
};

/* Shared memory; *fd (may be NULL) is inherited by programs that are executed. NULL: no memory. */
struct oracle *oracle_new(uint64_t wake_gap_ns, int *fd);
/* The same memory in a program that inherited the descriptor. */
struct oracle *oracle_attach(int fd);
void oracle_free(struct oracle *o);

/* The clock of all stamps. */
uint64_t oracle_now_ns(void);

/* One round of t0; is_leader; t1. */
void oracle_sample(struct oracle *o, unsigned track, const struct oracle_subject *subject);
/* The track's process stands still, and doesn't go on before this returns. A sampler that only gets
 * no time while others of its process do is something else: those may have renewed the lease. */
void oracle_stopped(struct oracle *o, unsigned track);
/* A yes from elsewhere, like the begin or the end of a piece of work done in that term. */
void oracle_saw(struct oracle *o, unsigned track, uint64_t term, uint64_t t0_ns, uint64_t t1_ns);

struct oracle_verdict {
	uint64_t n_samples;
	uint64_t n_yes;
	uint64_t n_terms;
	uint32_t n_overlaps; /* pairs of neighbouring terms whose sure times are not in order */
	uint32_t n_shared;   /* terms that two tracks led in */
	uint32_t n_termless;
	uint32_t n_woke_yes;
	uint32_t n_woke_no;
	uint32_t n_woke_new;
	uint32_t n_full;
	char text[200]; /* the first violation, in words */
};

/* True: nothing was violated. */
bool oracle_judge(const struct oracle *o, struct oracle_verdict *v);

#endif
