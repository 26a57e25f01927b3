/*
 * model.h: the file store's protocol as a small world that can be searched to its end.
 *
 * A few processes, one election, one clock. Every system call and every look at the clock that the
 * driver makes (src/store/file) is one step here, under the name that stands in a comment at that
 * place in the driver. Between any two steps anything else may happen: another process' step, a
 * tick of the clock, a process killed for good. A stopped process is one whose next step doesn't
 * come for a while, or never. A process is two threads, as in the runtime: one renews, one does
 * all else.
 *
 * What must hold in every state:
 *   exclusion  no two processes believe that they lead (S1)
 *   terms      every leadership has a higher term than all before it (S3)
 *   death      what a dead process held is free at once, not only when its lease expires
 *   progress   each process, left alone by all others, comes to lead: nobody waits for a lock
 */
#ifndef BATON_MODEL_FILE_H
#define BATON_MODEL_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROCESSES 3
#define LIVES_MAX 3                    /* leases of one process; the last is for walks alone */
#define LEASES (PROCESSES * LIVES_MAX) /* a lease's number: process * LIVES_MAX + life */
#define SEQ_MAX 8                      /* room for walks alone beyond the bound */
#define NOBODY 15

/* What the main thread of a process does next. */
enum pc {
	PC_DEAD, /* killed, or at the end of its lives */
	OPEN_LOCK,
	OPEN_ALIVE,
	OPEN_CLOCK,
	OPEN_LEASE,
	READY, /* between two calls */
	LOOK,
	LOOK_MORE, /* in a variant: the rest of a scan in two calls */
	LOOK_CLAIM,
	LOOK_CLOCK,
	LOOK_ALIVE,
	LOOK_LOCK,
	LOOK_LEASE,
	CLAIM_LINK,
	CLAIM_LOOK,
	CLAIM_LOOK_MORE,
	CLAIM_VOID,
	CLAIM_CLOCK,
	PRUNE_CLAIM,
	PRUNE_END,
	RELEASE_LOOK,
	RELEASE_LINK,
	CLOSE_ALIVE,
	CLOSE_LEASE,
	CLOSE_UNLINK,
	SWEEP_LEASE,
	SWEEP_ALIVE,
	N_PCS
};

enum renew_pc { RENEW_CHECK, RENEW_WRITE, RENEW_AGAIN };

struct process {
	uint8_t pc;
	uint8_t renew;   /* enum renew_pc */
	uint8_t life;    /* which of its leases */
	uint8_t expires; /* of its lease, as it believes */
	uint8_t fresh;   /* the expiry that it is renewing to */
	uint8_t seq;     /* the claim that it makes or has */
	uint8_t term;
	uint8_t who;     /* the lease whose end it looks for, or NOBODY */
	uint8_t time;    /* the clock as it read it before judging */
	uint8_t seen;    /* the highest claim of its look */
	uint8_t low;     /* where pruning is */
	bool open : 1;   /* its lease is open, and its lock held */
	bool lost : 1;   /* it has seen that its lease is over, or closes it */
	bool leads : 1;  /* it was told that it leads */
	bool sweeps : 1; /* it does so in order to sweep */
	bool there : 1;  /* the .alive file was there when it looked */
	bool ended : 1;  /* the claim that it saw has its end */
};

struct lease_file {
	uint8_t expires : 5; /* 0: no file */
	bool alive : 1;      /* .alive is in its place */
	bool locked : 1;     /* somebody holds its lock, in its place or not */
};

struct claim_file {
	uint8_t lease : 4;
	bool there : 1;
	bool ended : 1; /* its end is there, whether it is or not */
	uint8_t term;
};

struct world {
	uint8_t now;
	uint8_t last_term; /* the highest that was reported */
	uint8_t kills;
	bool term_fell; /* a lower one was reported later */
	struct lease_file leases[LEASES];
	struct claim_file claims[SEQ_MAX + 1]; /* [0] is unused */
	struct process p[PROCESSES];
	uint8_t campaigns[PROCESSES]; /* how many each has begun */
	uint8_t renewals;             /* how many all have begun: a bit pair for each process */
	uint8_t pad;
};

_Static_assert(sizeof(struct world) == 72, "a world is nine words, without hidden padding");

/* One thing built otherwise each. */
enum variant {
	AS_BUILT,
	ALIVE_MADE_THEN_LOCKED,
	LEASE_BEFORE_ALIVE,
	TERM_AS_NAME,
	CLAIM_BY_RENAME,
	RELEASE_UNLINKS,
	RELEASE_OF_ANYBODY,
	CLOCK_AFTER_RECORD,
	RENEWAL_WITHOUT_SECOND_CLOCK,
	RENEWAL_RESURRECTS,
	NO_LOOK_AFTER_CLAIM,
	SCAN_IN_TWO_CALLS,
	SWEEP_BY_MISSING_LEASE,
	SWEEP_ALIVE_FIRST,
	CLOSE_UNLINKS_FIRST,
	N_VARIANTS
};

struct bounds {
	uint8_t ttl;         /* ticks of a lease */
	uint8_t ticks;       /* the clock stops there */
	uint8_t seqs;        /* claims are made up to this number */
	uint8_t lives;       /* leases of each process */
	uint8_t kills;       /* processes that are killed */
	uint8_t campaigns;   /* that each process begins; 0: as many as the others allow */
	uint8_t renewals;    /* that each process begins, at most 3; 0: likewise */
	uint8_t lazy;        /* 1: nobody renews */
	uint8_t two_threads; /* else a renewal is a call among others */
	uint8_t processes;   /* that take part; 0: all */
	uint8_t idle;        /* 1: leases are open from the start; nobody closes or sweeps */
	uint8_t plain;       /* 1: without the short cuts of fold.c */
	uint8_t blind;       /* 1: progress is not looked at, which takes most of the time */
};

/* What can happen next. */
enum what {
	DO_STEP, /* the main thread goes on */
	DO_RENEW,
	DO_CAMPAIGN,
	DO_RELEASE,
	DO_CLOSE,
	DO_SWEEP, /* arg: a lease */
	DO_KILL,
	DO_TICK,
};

struct action {
	uint8_t who; /* a process; PROCESSES: the clock */
	uint8_t what;
	uint8_t arg;
};

#define ACTIONS_MAX 64

/* steps.c */
void world_init(struct world *w, const struct bounds *b);
int world_actions(const struct world *w, const struct bounds *b, struct action *out);
void world_apply(struct world *w, const struct bounds *b, enum variant v, struct action a);
bool world_believes(const struct world *w, int i);

/* fold.c: of worlds that differ in nothing that matters, the same one. */
void world_fold(struct world *w);
/* Whose step is to come first, as it makes no difference to anybody else; -1: nobody's. */
int world_private(const struct world *w, const struct bounds *b);

/* rules.c: what is wrong with this state, or NULL. */
const char *world_objection(const struct world *w, const struct bounds *b, enum variant v);
/* "2: CLAIM_LINK 3", before it happens. */
void world_tell(const struct world *w, struct action a, char *out, size_t size);

/* search.c */
struct result {
	uint64_t states;
	uint32_t depth; /* steps of the longest shortest way, or of the way to the objection */
	bool complete;
	const char *objection; /* or NULL */
};

/* Visits all states, breadth first, up to the first objection or `max` states. tell: prints the
 * way to the objection. */
struct result search(const struct bounds *b, enum variant v, uint64_t max, bool tell);

#endif
