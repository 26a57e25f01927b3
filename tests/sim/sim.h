/*
 * sim.h: the simulator runs the real core in many small worlds, each drawn from one number.
 *
 *   params.c      what a world is like: sizes, timings, latencies, which faults and how strong
 *   schedule.c    what happens to it from outside, planned before it starts
 *   world.c       virtual time: takes the next event from the queue, until the end
 *   phases.c      the quiet after the faults, and what must come true in it (L1, L2, L3, L8)
 *   net.c         messages on their way: latency, loss, doubles, late ones; hints
 *   store.c       the model store: one atomic step per request
 *   proc.c        a process: the glue that core.h asks for, round leases and elections
 *   app.c         the application: work that runs, drains, stalls, and what it was told
 *   invariants.c  what must hold after every event
 *   cover.c       what happened at all; a batch that missed something is void
 *   trace.c       the timeline for people, the hash for machines
 *   shrink.c      makes a failing world small; keeps it as a seed file
 *
 * True time is the store's clock. Every process has a clock of its own, with another offset and
 * another rate. Whatever decides anything is integer arithmetic on numbers that come from
 * the seed, so a seed gives the same trace in every build.
 */
#ifndef BATON_SIM_H
#define BATON_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/audience.h"
#include "core/core.h"
#include "core/election.h"
#include "core/lease.h"
#include "core/timing.h"

#define PROCS_MAX 300
#define ELECTIONS_MAX 3
#define STORE_LEASES_MAX 24 /* of one process: of this life and of those before */
#define SCHEDULE_MAX 400
#define SENT_MAX 16 /* campaigns whose send time is remembered, for adoptions */
#define NO_ELECTION 0xff

/* ---- numbers ---- */

struct rng {
	uint64_t state;
};

uint64_t rng_next(struct rng *r);
uint64_t rng_below(struct rng *r, uint64_t n);               /* 0 .. n - 1; 0 for n = 0 */
uint64_t rng_range(struct rng *r, uint64_t lo, uint64_t hi); /* both included */
bool rng_chance(struct rng *r, unsigned permille);
struct rng rng_stream(uint64_t seed, uint64_t a, uint64_t b);

/* local = base_local + (true - base_true) * num / 2^20, rounded down */
struct clock {
	uint64_t base_true;
	uint64_t base_local;
	uint64_t num;
};

uint64_t clock_local(const struct clock *c, uint64_t true_ns);
/* The first true instant at which the local clock shows at least this. */
uint64_t clock_true(const struct clock *c, uint64_t local_ns);
void clock_set_rate(struct clock *c, uint64_t true_ns, uint64_t num);

/* ---- faults, and all else that the seed makes happen ---- */

#define FAULTS(X)                             \
	X(LOST_REQUEST, "lost-request")       \
	X(LOST_REPLY, "lost-reply")           \
	X(LATE_REQUEST, "late-request")       \
	X(DOUBLE_REQUEST, "double-request")   \
	X(SWAP, "swap")                       \
	X(STALE, "stale-view")                \
	X(FAILED, "failed-call")              \
	X(RESET, "reset-connection")          \
	X(LOST_HINT, "lost-hint")             \
	X(SPURIOUS_HINT, "spurious-hint")     \
	X(LATE_TIMER, "late-timer")           \
	X(LATE_EXPIRY, "late-expiry")         \
	X(SLOW_DRAIN, "slow-drain")           \
	X(OVERRUN, "overrun")                 \
	X(CORRUPT, "corrupt-term")            \
	X(NO_FLOOR, "floor-ignored")          \
	X(PAUSE, "pause")                     \
	X(SUSPEND, "suspend")                 \
	X(CRASH, "crash")                     \
	X(RESTART, "restart")                 \
	X(PROVEN_DEATH, "proven-death")       \
	X(RATE, "clock-rate")                 \
	X(OUTAGE, "outage")                   \
	X(SLOW, "slow-store")                 \
	X(FAILOVER, "failover")               \
	X(LOSS, "loss-of-data")               \
	X(CLOCK_STEP, "clock-step")           \
	X(HINT_STORM, "hint-storm")           \
	X(STOP, "stop")                       \
	X(START, "start")                     \
	X(DESTROY, "destroy")                 \
	X(ACQUIRE, "acquire")                 \
	X(RESIGN, "resign")                   \
	X(TRANSFER, "transfer")               \
	X(HEALTH, "health")                   \
	X(STALL, "stall")                     \
	X(ORDER_RESIGN, "order-resign")       \
	X(ORDER_TRANSFER, "order-transfer")   \
	X(OLD_ORDER, "old-order")             \
	X(PAUSE_ELECTION, "pause-election")   \
	X(RESUME_ELECTION, "resume-election") \
	X(TERM_END, "end-of-terms")

enum fault {
#define X(name, text) FAULT_##name,
	FAULTS(X)
#undef X
		N_FAULTS
};

/* What a skip list names: a decision of the schedule, a fault of a message, a whole process. */
#define SKIP_SCHEDULED ((uint64_t)1 << 60)
#define SKIP_MESSAGE ((uint64_t)2 << 60)
#define SKIP_PROC ((uint64_t)3 << 60)

struct skips {
	uint64_t *id; /* sorted */
	size_t n;
};

bool skips_has(const struct skips *s, uint64_t id);

/* ---- invariants ---- */

#define INVARIANTS(X)                                                                             \
	X(S1, "S1-exclusion")       /* two candidates say yes at one true instant */              \
	X(S2_MARGIN, "S2-margin")   /* the work's end, at the worst rate, is after the expiry */  \
	X(S2_EARLY, "S2-early")     /* says yes later than t_send + renew + grace */              \
	X(S3, "S3-terms")           /* a leadership without a higher term */                      \
	X(S4, "S4-fencing")         /* leads in a term that it or the resource knows better */    \
	X(S4_FLOOR, "S4-floor")     /* a campaign below a term that was seen */                   \
	X(S5_LOSS, "S5-loss")       /* told "not yours", and leads on */                          \
	X(S5_LATE, "S5-late")       /* a grant that came too late is reported */                  \
	X(S6, "S6-foreign")         /* gives back or renews what it was never given */            \
	X(S7_ORDER, "S7-order")     /* gives back or closes before the work had ended */          \
	X(S7_WORK, "S7-work")       /* two works run at once */                                   \
	X(S7_REMIND, "S7-remind")   /* the reminder of a work that doesn't end */                 \
	X(S8, "S8-events")          /* became and lost don't alternate, or come after stopped */  \
	X(S8_TOLD, "S8-told")       /* what was told and what is true differ after a step */      \
	X(S7_HEARD, "S7-heard")     /* the work counts as ended while it runs, or never does */   \
	X(S8_HEARD, "S8-heard")     /* what the application hears is out of turn */               \
	X(S9, "S9-closed")          /* leads without a grant */                                   \
	X(L1, "L1-leader")          /* nobody leads in time */                                    \
	X(L1_PAUSE, "L1-pause")     /* a paused election still has a leader */                    \
	X(L2, "L2-handover")        /* nobody takes a released election soon */                   \
	X(L3, "L3-orphan")          /* a claim on a living lease that its owner doesn't know */   \
	X(L4_RATE, "L4-rate")       /* too many calls of an election */                           \
	X(L4_LEASE, "L4-lease")     /* too many calls of a lease */                               \
	X(L5, "L5-stalled")         /* leads without a sign of life */                            \
	X(L6, "L6-spurious")        /* lost although the store answered in time */                \
	X(L6_RETRY, "L6-retry")     /* lost without having tried three times */                   \
	X(L8, "L8-again")           /* a survivor that doesn't take over */                       \
	X(L9, "L9-preempt")         /* the better candidate never gets its place */               \
	X(ORDER, "R10-order")       /* obeys an order that is meant for another term */           \
	X(ELIGIBLE, "E-eligible")   /* campaigns or leads although it must not */                 \
	X(TRANSFER, "E-transfer")   /* a release that forgets its successor */                    \
	X(PREEMPT, "E-preempt")     /* asks for the place too often, or without the right */      \
	X(ANSWER, "E-answer")       /* an acquire without an answer, or two */                    \
	X(CLOSED, "closed-once")    /* a lease that was opened is not closed, or twice */         \
	X(ONE_CALL, "one-call")     /* two calls of one kind under way, or one without a limit */ \
	X(WAKE, "wake-late")        /* would sleep beyond the end of its leadership */            \
	X(ADVANCE, "time-advances") /* too many steps at one instant */                           \
	X(ASSERT, "assert")         /* a contract inside the core broke */

enum invariant {
#define X(name, text) INV_##name,
	INVARIANTS(X)
#undef X
		N_INVARIANTS
};

const char *invariant_name(enum invariant inv);
int invariant_find(const char *name);

/* ---- the model store ---- */

struct store_lease {
	uint64_t epoch;
	uint64_t ttl_ns;
	uint64_t expires_ns; /* what it promises */
	uint64_t dies_ns;    /* when it really frees, at that time or later */
	uint32_t inc;
	uint8_t idx;
	uint8_t pad[3];
};

struct store_record {
	uint64_t epoch;
	uint64_t nonce;
	uint64_t term;
	uint64_t order_id;
	uint64_t order_term;
	uint64_t order_quiet_ns;
	uint64_t reserved_until_ns;
	uint32_t inc; /* of the holder */
	uint32_t reserved_for;
	uint32_t order_target;
	uint16_t proc; /* of the holder */
	uint8_t idx;
	uint8_t order;
	bool held; /* see store_holds(): the lease must live, too */
	bool paused;
	uint8_t pad[2];
};

struct store_leases {
	struct store_lease list[STORE_LEASES_MAX];
	uint64_t n;
	uint64_t armed_ns; /* the next alarm for expiries; in the past: none */
};

struct store {
	struct store_record record[ELECTIONS_MAX];
	struct store_leases of[PROCS_MAX];
	uint64_t at_ns; /* snapshots: when it was taken */
};

/* ---- messages ---- */

struct msg {
	struct view view[ELECTIONS_MAX]; /* the reply; [0], but for claims: one per election */
	struct action act;               /* the request */
	uint64_t fault_id;
	uint64_t at_ns; /* when the other direction ends */
	uint32_t inc;
	uint32_t gen; /* of the election object that asked */
	uint32_t n_held;
	uint32_t next_free;
	uint16_t proc;
	uint8_t idx;
	uint8_t elec;
	uint8_t outcome;
	bool lost_reply;
	bool stale;
	bool failed;
	bool reset;
	bool corrupt;
	bool no_floor;
	bool from_glue; /* an orphan of an election that no longer exists */
};

enum queue_kind {
	Q_TIMER,
	Q_REQUEST,
	Q_REPLY,
	Q_HINT,
	Q_RECONNECT,
	Q_DRAIN,
	Q_ALIVE,
	Q_BOOT,
	Q_SCHEDULED,
	Q_EXPIRE,
	Q_SNAPSHOT,
	Q_PHASE,
	Q_CHECK,
};

struct item {
	uint64_t at_ns;
	uint32_t seq;
	uint32_t arg;
	uint16_t proc;
	uint8_t kind;
	uint8_t elec;
};

/* ---- a process ---- */

struct pending {
	uint64_t call; /* 0: none */
	uint64_t limit_ns;
	uint64_t sent_ns;
	uint64_t epoch;
	uint8_t kind;
	bool ended; /* a close that is not tried again */
	uint8_t pad[6];
};

struct window { /* L4 */
	uint64_t since_ns;
	uint64_t calls;
	uint64_t changes; /* of our own: starts, wishes, leases that came up ... */
	uint64_t others;  /* the world's count of changes when the window began */
};

struct lease_box {
	struct lease core;
	struct pending pending[2]; /* open, renew, close; claims */
	struct window window;
	uint64_t good_sent_ns; /* what we saw acknowledged, by ourselves: not what the core says */
	uint64_t good_epoch;
	uint64_t checked_end_ns;
	uint64_t checked_deadline_ns;
	uint64_t refused_epoch; /* by the renewal that was just answered */
	uint64_t has_epoch;     /* the one that a driver has something of; 0: none */
	uint64_t unused_ns;     /* true time: since when nobody needs it; NEVER: somebody does */
	uint32_t n_bad;         /* renewals since the good one that failed */
	uint32_t n_sent;        /* renewals since the good one that were sent */
	bool excused;           /* since the good one the process was late itself */
	uint8_t pad[7];
};

struct sent {
	uint64_t nonce;
	uint64_t epoch;
	uint64_t sent_ns;
	bool unknown;
	uint8_t pad[7];
};

struct app {
	uint64_t term;
	uint64_t last_term; /* of the last leadership of this object */
	uint64_t kill_ns;   /* the work is ended from outside by then */
	uint64_t epoch;     /* of the lease that the work runs on */
	uint64_t alive_ns;
	uint64_t became_ns;
	uint64_t lost_ns;
	uint64_t quiet_ns;
	uint64_t asked_ns;
	uint64_t ordered_ns;
	uint32_t serial; /* of the leadership: drains and signs of life belong to one */
	uint32_t n_reminded;
	uint32_t target; /* of the transfer that is under way */
	uint16_t score;
	uint8_t why; /* of the last loss */
	bool led;    /* told became, and not lost since */
	bool working;
	bool frozen; /* the kill time no longer moves */
	bool stalled;
	bool lively;
	bool wanted;
	bool stopping; /* has yet to be told stopped */
	bool restart;  /* to be started after that */
	bool stopped;  /* told so */
	bool asked;
	bool excused; /* the process slept while the work drained */
	uint8_t pad[4];
};

/* What the application has heard, by the real machine (hearing.c). */
struct hearing {
	struct audience machine;
	struct rng rng;
	uint64_t tokens;
	uint64_t held; /* the token of LOST, while the work ends; 0: none */
	uint64_t told_term;
	uint8_t manner;
	bool told_leads;
	bool entered;
	bool drained;
	uint8_t pad[4];
};

struct told { /* a claim that the store told us of */
	uint64_t epoch;
	uint64_t nonce;
	uint64_t term;
};

struct election_box {
	struct election core;
	struct app app;
	struct hearing hearing;
	struct pending pending;
	struct window window;
	struct sent sent[SENT_MAX];
	struct sent doubt; /* the last one that ended UNKNOWN */
	struct told told[2];
	uint64_t n_sent;
	uint64_t seen_term;
	uint64_t heard_term; /* the highest that was told as not its own */
	uint32_t gen;
	uint8_t state_before; /* this step */
	bool exists;
	uint8_t pad[2];
};

struct proc {
	struct timing timing;
	struct clock clock;
	struct rng rng;
	struct election_box election[ELECTIONS_MAX];
	struct lease_box lease[ELECTIONS_MAX];
	uint64_t now_ns; /* local */
	uint64_t asleep_until_ns;
	uint64_t timer_ns; /* true; NEVER: none */
	uint64_t wake_ns;  /* local: what the alarm was set for */
	uint64_t n_messages;
	uint64_t n_at_instant;
	uint64_t instant_ns;
	uint64_t worst_num; /* the slowest rate that the drift bound allows, of 2^20 */
	uint32_t inc;       /* which life of which process; 0: not running */
	uint32_t life;
	uint32_t timer_seq;
	uint16_t slot;
	bool absent; /* shrunk away */
	uint8_t pad[1];
};

/* ---- a world ---- */

struct scheduled {
	uint64_t at_ns;
	uint64_t a;
	uint64_t b;
	uint16_t proc;
	uint8_t kind;
	uint8_t elec;
	uint8_t pad[4];
};

struct params {
	uint64_t lease_ns;   /* of this order of magnitude */
	uint64_t lattice_ns; /* 0: none */
	uint64_t safety_ns;  /* how long the faults last */
	uint64_t lat_min_ns;
	uint64_t lat_max_ns;
	uint64_t push_max_ns;
	uint64_t late_ns;       /* timers, always */
	uint64_t late_spike_ns; /* timers, as a fault */
	uint64_t expiry_late_ns;
	uint64_t term_start;
	uint64_t drain_max_ns;
	uint32_t n_procs;
	uint32_t n_elections;
	uint16_t strength[N_FAULTS]; /* per mille, or events per hundred leases */
	bool own;
	bool watched;
	bool tells_expiry;
	bool provable;
	bool weak;    /* the store may forget, or err: S1 is not promised */
	bool corrupt; /* ... and even term numbers lie: nobody needs to lead */
	bool bad_app;
	bool spurious_timers;
	bool pause_at_end;
};

struct options_of {
	struct options o[ELECTIONS_MAX];
};

struct violation {
	char text[240];
	uint64_t at_ns;
	int inv; /* -1: none */
};

struct world {
	struct params params;
	struct options_of options[PROCS_MAX];
	struct proc proc[PROCS_MAX];
	struct scheduled schedule[SCHEDULE_MAX];
	struct store store;
	struct store snapshot;
	struct violation violation;
	struct skips skips;
	struct rng rng;
	uint64_t seed;
	uint64_t now_ns;
	uint64_t end_ns;
	uint64_t quiet_ns; /* when the faults stopped; NEVER before */
	uint64_t hash;
	uint64_t outage_until_ns;
	uint64_t slow_until_ns;
	uint64_t slow_factor;
	uint64_t snapshot_ns; /* how often */
	uint64_t order_serial;
	uint64_t n_changes[ELECTIONS_MAX];   /* whatever a candidate must look at (L4) */
	uint64_t last_led_ns[ELECTIONS_MAX]; /* L1 */
	uint64_t due_ns[ELECTIONS_MAX];      /* L2, L8: somebody must lead by then */
	uint64_t unknown_since_ns[ELECTIONS_MAX];
	struct told unknown[ELECTIONS_MAX];
	uint64_t highest_term[ELECTIONS_MAX]; /* S3 */
	uint64_t resource_term[ELECTIONS_MAX];
	uint32_t resource_owner[ELECTIONS_MAX];
	uint32_t n_led[ELECTIONS_MAX];
	uint32_t n_scheduled;
	uint32_t phase;
	uint64_t n_events;
	uint64_t events_max; /* so many are surely no spin */
	uint64_t n_faults;
	uint64_t n_leaderships;
	bool preempted;    /* there was time for it, after the faults */
	bool faulty_terms; /* the numbers themselves went wrong: nobody needs to lead */
	bool verbose;
	bool stop;
	bool all; /* go on after a violation */
	/* the queue */
	struct item *heap;
	size_t n_heap;
	size_t heap_size;
	uint32_t seq;
	/* messages */
	struct msg *msgs;
	uint32_t n_msgs;
	uint32_t free_msg;
	/* ids of all faults that were applied, for the shrinker */
	uint64_t *applied;
	size_t n_applied;
	size_t applied_size;
	bool record;
};

/* world.c */
void world_run(struct world *w, uint64_t seed);
void world_done(struct world *w);
void queue_push(struct world *w, uint64_t at_ns, uint8_t kind, uint16_t proc, uint8_t elec,
		uint32_t arg);
/* Whether a fault of that strength strikes here; counts it, and knows the skip list. */
bool fault_strikes(struct world *w, struct rng *r, enum fault f, uint64_t id);
void fault_happened(struct world *w, enum fault f, uint64_t id);
static inline bool is_quiet(const struct world *w)
{
	return w->now_ns >= w->quiet_ns;
}

/* params.c, schedule.c */
void params_draw(struct world *w);
void params_timing(struct world *w, struct proc *p);
void params_options(struct world *w, struct proc *p);
void schedule_draw(struct world *w);
void schedule_run(struct world *w, uint32_t index);

/* phases.c */
void phase_begin(struct world *w);
void phase_next(struct world *w);
void phase_check(struct world *w);
void phase_became(struct world *w, unsigned x);

/* net.c */
void net_send(struct world *w, struct proc *p, unsigned idx, unsigned x, const struct action *a,
	      bool from_glue);
void net_request(struct world *w, uint32_t i);
void net_free(struct world *w, uint32_t m);
void net_push(struct world *w, unsigned x);
void net_hint(struct world *w, struct proc *p, unsigned x);

/* store.c */
void store_init(struct world *w);
void store_carry_out(struct world *w, struct msg *m);
void store_expire(struct world *w, struct proc *p);
void store_prove_death(struct world *w, struct proc *p);
void store_snapshot(struct world *w);
void store_fail_over(struct world *w);
void store_lose_all(struct world *w);
void store_step_clock(struct world *w, int64_t by_ns);
void store_order(struct world *w, unsigned x, uint8_t kind, uint64_t term, uint32_t target,
		 uint64_t quiet_ns);
void store_pause(struct world *w, unsigned x, bool paused);
const struct store_lease *store_find(const struct store *s, unsigned proc, uint32_t inc,
				     unsigned idx, uint64_t epoch);
bool store_holds(const struct store *s, unsigned x, uint64_t now_ns);

/* proc.c */
void proc_boot(struct world *w, struct proc *p);
void proc_crash(struct world *w, struct proc *p);
void proc_wake(struct world *w, struct proc *p);
void proc_timer(struct world *w, struct proc *p);
void proc_reply(struct world *w, struct proc *p, const struct msg *m);
void proc_tell(struct world *w, struct proc *p, unsigned x, struct event *ev);
void proc_tell_lease(struct world *w, struct proc *p, unsigned idx, struct event *ev);
void proc_create(struct world *w, struct proc *p, unsigned x);
/* After each event of a process: the alarm clock is set anew. */
void proc_settle(struct world *w, struct proc *p);
struct lease_box *proc_lease(const struct world *w, struct proc *p, unsigned x);
bool proc_leads(const struct world *w, const struct proc *p, unsigned x);
struct proc *proc_by_inc(struct world *w, uint32_t inc);
bool proc_is_target(struct world *w, uint32_t inc, unsigned x);

/* app.c */
void app_note(struct world *w, struct proc *p, unsigned x, const struct action *n,
	      const struct event *ev);
void app_event(struct world *w, struct proc *p, unsigned x, const struct event *ev);
void app_refresh(struct world *w, struct proc *p);
void app_drain(struct world *w, struct proc *p, unsigned x, uint32_t serial);
void app_alive(struct world *w, struct proc *p, unsigned x, uint32_t serial);
bool app_works(const struct world *w, const struct proc *p, unsigned x);
bool app_is_healthy(const struct world *w, const struct proc *p, unsigned x);

/* hearing.c */
void hearing_init(struct world *w, struct proc *p, unsigned x);
void hearing_note(struct world *w, struct proc *p, unsigned x, const struct action *n);
/* Around the step of an event that the application caused. */
void hearing_before(struct world *w, struct proc *p, unsigned x, uint8_t kind);
void hearing_after(struct world *w, struct proc *p, unsigned x, uint8_t kind);
/* The work has ended, and the machine says so. */
bool hearing_drained(struct world *w, struct proc *p, unsigned x);

/* invariants.c */
__attribute__((format(printf, 3, 4))) void violate(struct world *w, enum invariant inv,
						   const char *fmt, ...);
void check_heard(struct world *w, struct proc *p, unsigned x, const struct event *ev,
		 const struct pending *call);
/* Before the step: what the store told, by the pending call that it answers. */
void check_lease_heard(struct world *w, struct proc *p, unsigned idx, const struct event *ev,
		       const struct pending *call);
void check_election_step(struct world *w, struct proc *p, unsigned x, const struct event *ev);
void check_lease_step(struct world *w, struct proc *p, unsigned idx, const struct event *ev,
		      uint8_t state_before);
void check_action(struct world *w, struct proc *p, unsigned x, const struct action *a);
void check_lease_action(struct world *w, struct proc *p, unsigned idx, const struct action *a);
/* Duty 5 of core.h: what is over has been closed, and what nobody needs will be. */
void check_closed(struct world *w, struct proc *p, unsigned idx);
void check_became(struct world *w, struct proc *p, unsigned x, const struct action *a,
		  const struct event *ev);
void check_lost(struct world *w, struct proc *p, unsigned x, const struct action *a,
		const struct event *ev);
void check_wakes(struct world *w, struct proc *p, uint64_t wake_ns);
void check_drained(struct world *w, struct proc *p, unsigned x);
/* S2: until when a leadership may last by what the store has acknowledged. */
uint64_t good_until_ns(const struct proc *p, const struct lease_box *l, uint64_t epoch);
void check_instant(struct world *w, struct proc *p);

/* cover.c */
void cover_fault(enum fault f);
void cover_violation(enum invariant inv);
/* A resource meets a leader: in an older term than it knows, or in one that another has, too. */
void cover_fence(bool older, bool shared);
/* A world ends; the number is what `violated:` tells for the first of each kind. */
void cover_world(void);
void cover_print_violated(void);
void cover_event(const struct event *ev);
void cover_action(const struct action *a);
void cover_lease(uint8_t before, uint8_t after);
void cover_election(uint8_t before, uint8_t after);
void cover_print(void);
/* Prints what never happened; true if there was any. */
bool cover_is_void(void);

/* trace.c */
__attribute__((format(printf, 3, 4))) void trace(struct world *w, const struct proc *p,
						 const char *fmt, ...);
void trace_event(struct world *w, const struct proc *p, int idx, int x, const struct event *ev);
void trace_action(struct world *w, const struct proc *p, int idx, int x, const struct action *a);
void trace_world(struct world *w);
const char *trace_name(const struct proc *p);
static inline void hash_mix(struct world *w, uint64_t v)
{
	w->hash = (w->hash ^ v) * 0x9e3779b97f4a7c15u;
	w->hash ^= w->hash >> 29;
}

const char *fault_name(enum fault f);

/* shrink.c */
/* Makes the failing world of this seed small, and prints it as a seed file. */
void shrink(struct world *w, uint64_t seed);
/* Replays one file, or all of a folder; returns the number of violations, or -1. */
int seed_replay(struct world *w, const char *path);
int seeds_replay(struct world *w, const char *dir, void (*ran)(const struct world *));

#endif
