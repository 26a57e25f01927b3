/*
 * baton.h: leader election for everyone.
 *
 * Many instances of a program run; one of them leads. When it fails, another takes over, and
 * no two ever lead at once. The elections live in a store that you already have, named by a URL
 * ("file:/var/lib/myapp", "memory:test").
 *
 *     struct baton *b;
 *     struct baton_election *e;
 *
 *     if (baton_open("file:/var/lib/myapp", NULL, &b, NULL) != 0 ||
 *         baton_election_new(b, "nightly-report", NULL, &e, NULL) != 0)
 *             return 1;
 *     baton_election_start(e);
 *     while (running) {
 *             if (baton_is_leader(e))         // wait-free: ask before each piece of work
 *                     do_a_little_work(baton_term(e));
 *             baton_wait(b, 1000, &event);
 *     }
 *     baton_close(b);                         // steps down, gives the leadership back
 *
 * Functions return 0 or more for success and a negative BATON_E code for failure; the sentence
 * goes to a struct baton_error where one is taken. All functions may be called from any thread
 * and from handlers, unless it says otherwise. After fork() the child is never leader and
 * must not use the parent's handles (each call says BATON_E_FORKED), except to close them.
 *
 * Structs that the library reads start with their size and may grow. Structs that it fills in
 * grow only with a new soname.
 */
#ifndef BATON_H
#define BATON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define BATON_API __attribute__((visibility("default")))
#else
#define BATON_API
#endif

#define BATON_VERSION_MAJOR 0
#define BATON_VERSION_MINOR 1
#define BATON_VERSION_PATCH 0

struct baton;          /* a handle on one store: makes any number of elections */
struct baton_election; /* this process' candidate in one election */
struct baton_context;  /* what a function that runs as leader is given */

/* ---- errors ---- */

enum baton_code {
	BATON_OK = 0,
	BATON_E_INVALID = -1,       /* an argument is not what it should be */
	BATON_E_TIMING = -2,        /* the timings contradict each other */
	BATON_E_URL = -3,           /* the store's URL can't be understood */
	BATON_E_NO_DRIVER = -4,     /* no driver for this kind of store */
	BATON_E_MEMORY = -5,        /* out of memory */
	BATON_E_SYSTEM = -6,        /* the system refused something: threads, descriptors */
	BATON_E_NOT_STARTED = -7,   /* the election is not started, or only observes */
	BATON_E_NOT_LEADER = -8,    /* this needs the leadership, and another has it, or nobody */
	BATON_E_TIMEOUT = -9,       /* the given time has passed */
	BATON_E_EXISTS = -10,       /* this handle has an election of that name */
	BATON_E_UNAVAILABLE = -11,  /* the store does not answer, for now */
	BATON_E_DENIED = -12,       /* the store refuses us: permissions, credentials */
	BATON_E_CORRUPT = -13,      /* the store holds something that is not ours or is damaged */
	BATON_E_UNSUPPORTED = -14,  /* this store can't do that */
	BATON_E_NO_CANDIDATE = -15, /* no such candidate, or it is not healthy */
	BATON_E_STALE = -16,        /* the term is older than one seen before */
	BATON_E_FORKED = -17,       /* the handle belongs to the parent process */
	BATON_E_BUSY = -18,         /* not now: this is already under way */
	BATON_E_DUPLICATE_ID = -19, /* another living candidate has the same id */
};

/* A few words for a code; never NULL. */
BATON_API const char *baton_strerror(int code);

/* Filled in by calls that can fail in many ways. Never holds a secret. */
struct baton_error {
	int code;
	char text[252]; /* one sentence: what is wrong and what would be right */
};

/* "0.1.0" of the library that runs, which may be newer than this header. */
BATON_API const char *baton_version(void);

/* ---- the handle ---- */

enum baton_log_level { BATON_LOG_ERROR = 1, BATON_LOG_WARN, BATON_LOG_INFO, BATON_LOG_DEBUG };

/* One record for the log: fields are NULL or 0 where they don't apply. */
struct baton_log_record {
	size_t size;
	int level;
	int code; /* BATON_E..., or 0 */
	const char *election;
	const char *message; /* a sentence without secrets */
	const char *detail;  /* the store's own words */
	uint64_t term;
};

struct baton_options {
	size_t size;             /* sizeof(struct baton_options); set by baton_options_init() */
	const char *id;          /* who we are; default: host, pid, boot and random bits */
	const char *address;     /* where the others can reach us; default none */
	uint64_t lease_ms;       /* 15000: how long a dead leader's claim stands */
	uint64_t renew_ms;       /* 0 = lease/3, from send to send */
	uint64_t grace_ms;       /* 0 = lease/3: how long a due renewal may keep failing */
	uint64_t retry_ms;       /* 0 = 2 s, or lease/6 if that is less */
	uint64_t retry_max_ms;   /* 0 = five times retry */
	uint32_t drift_permille; /* 100: how much two clocks' rates may differ */
	uint32_t dispatchers;    /* 0 = 2: threads that call handlers */
	/* Called on a thread of the library, never concurrently; must not block for long: records
	 * that it can't take in time are counted and left out. NULL: no log. */
	void (*log)(void *arg, const struct baton_log_record *record);
	void *log_arg;
};

/* Sets the defaults. Knows the size that your program was compiled with, so that a newer library
 * never writes more. Call it by the name without _sized. */
BATON_API void baton_options_init_sized(struct baton_options *options, size_t size);
#define baton_options_init(options) baton_options_init_sized((options), sizeof(*(options)))

/*
 * Opens a handle on the store that the URL names. Does no I/O: a store that is down is no
 * failure here, and is used as soon as it is there. options may be NULL. err may be NULL.
 */
BATON_API int baton_open(const char *url, const struct baton_options *options, struct baton **out,
			 struct baton_error *err);

/*
 * Stops all elections of the handle (each as by baton_election_stop()), gives everything back,
 * frees them and the handle. Waits for handlers that run, and for the store no longer than a
 * lease. Takes NULL. Must not be called from a handler.
 */
BATON_API void baton_close(struct baton *b);

/* Our own id in the elections of this handle. */
BATON_API const char *baton_id(const struct baton *b);

/*
 * The timings that the elections of a handle really have: what was not given is filled in, and what
 * the store needs is applied. All count from the moment before the last good renewal was sent, as
 * baton_status.last_renewal_boot_ns has it.
 */
struct baton_timings {
	size_t size; /* of what the library has filled in */
	uint64_t lease_ns;
	uint64_t renew_ns;
	uint64_t grace_ns;
	uint64_t
		drain_ns; /* between the end of renew + grace and end_ns: for the work to stop in */
	uint64_t end_ns;  /* lease * (1 - drift): the work of a lost leadership is over by then */
	uint64_t gone_ns; /* lease * (1 + drift): others wait so long for who is not heard of */
	uint64_t retry_ns;
	uint64_t retry_max_ns;
	uint64_t call_ns; /* how long one call to the store may take */
	uint32_t drift_permille;
	bool proves_death; /* this store replaces a leader whose process is dead at once */
};

/* Fills in as much as your program was compiled with. Call it by the name without _sized. */
BATON_API int baton_get_timings_sized(const struct baton *b, struct baton_timings *timings,
				      size_t size);
#define baton_get_timings(b, timings) baton_get_timings_sized((b), (timings), sizeof(*(timings)))

/*
 * The file whose lock says that work of the election still goes on, on stores that have one:
 * whoever starts work takes an open file description lock on it first (F_OFD_SETLK, exclusive), and
 * lets nobody but the work inherit the descriptor. The path is absolute and ends with a zero byte;
 * mode is what the file is to be made with. Does no I/O. BATON_E_UNSUPPORTED: this store has none.
 */
BATON_API int baton_work_lock(const struct baton *b, const char *name, char *path, size_t size,
			      uint32_t *mode, struct baton_error *err);

/* ---- elections ---- */

enum baton_event_kind {
	BATON_EVENT_BECAME = 1, /* this candidate leads now, in `term` */
	BATON_EVENT_LOST,       /* it no longer does; `reason` and `text` say why */
	BATON_EVENT_CHANGED,    /* another leader (or none: leader is "") than before */
	BATON_EVENT_ERROR,      /* `code`, `text`, `detail`; at most one a second for one cause */
	BATON_EVENT_STOPPED,    /* baton_election_stop() is done: nothing is owed any more */
	BATON_EVENT_WAITS,      /* nobody can lead for `wait_ms`; `text` says why. Once a wait */
};

/* Why a leadership was lost. */
enum baton_reason {
	BATON_REASON_NONE,
	BATON_REASON_EXPIRED,    /* no renewal came through in time */
	BATON_REASON_REFUSED,    /* the store says that the lease is gone */
	BATON_REASON_SUPERSEDED, /* another leads in a later term */
	BATON_REASON_GONE,       /* the claim was taken away in the store */
	BATON_REASON_STALLED,    /* the work gave no sign of life */
	BATON_REASON_STOPPED,
	BATON_REASON_RESIGNED,
	BATON_REASON_ORDERED,
	BATON_REASON_TRANSFERRED,
	BATON_REASON_UNHEALTHY,
	BATON_REASON_PAUSED,
};

#define BATON_NAME_MAX 253 /* bytes of an election's name, an id or an address */
#define BATON_METADATA_MAX 1024
#define BATON_WAIT_MAX 191 /* bytes that say why nobody can lead yet */

struct baton_event {
	int kind;
	int reason;
	int code;
	uint64_t term;
	uint64_t old_term;
	struct baton_election *election;
	char leader[BATON_NAME_MAX + 1]; /* CHANGED: the new one */
	char old_leader[BATON_NAME_MAX + 1];
	char text[256];
	char detail[256];
	int64_t wait_ms; /* WAITS: from now on */
};

struct baton_election_options {
	size_t size;                 /* set by baton_election_options_init() */
	const char *metadata;        /* shown to others beside our id; default none */
	bool release_on_stop;        /* true */
	bool check_health;           /* true: the health score gates campaigning and leading */
	bool step_down_unhealthy;    /* true */
	bool observe_only;           /* false: never campaigns, only watches */
	bool manual;                 /* false: campaigns only in baton_try_acquire() */
	uint32_t min_score_permille; /* 800 */
	int32_t priority;            /* 0 */
	uint64_t preempt_ms;         /* 0: never takes over from a healthy leader */
	uint64_t work_timeout_ms;    /* 0: off; else baton_alive() must come this often */
	/*
	 * Called on a dispatcher thread, in order for one election; LOST comes before all else that
	 * waits. When the handler of LOST returns, the work counts as stopped and the leadership
	 * may pass on. NULL: events are pulled with baton_wait(), and the work counts as stopped
	 * when LOST was pulled and the same thread asks for the next event, or by baton_drained(),
	 * or when a function that was running by baton_run_...() has returned. A program that never
	 * pulls events has the drain time (see baton.7) to notice by baton_is_leader().
	 */
	void (*handler)(void *arg, const struct baton_event *event);
	void *handler_arg;
};

/* Sets the defaults, as baton_options_init() does. */
BATON_API void baton_election_options_init_sized(struct baton_election_options *options,
						 size_t size);
#define baton_election_options_init(options) \
	baton_election_options_init_sized((options), sizeof(*(options)))

/* Makes a candidate in the named election. It does nothing until it is started. */
BATON_API int baton_election_new(struct baton *b, const char *name,
				 const struct baton_election_options *options,
				 struct baton_election **out, struct baton_error *err);

/* Contends from now on. Idempotent; does no I/O and never blocks. */
BATON_API int baton_election_start(struct baton_election *e);

/*
 * Steps down and stops contending: baton_is_leader() is false at once, LOST is delivered, the
 * work drains, then the claim is released. Idempotent. Waits up to timeout_ms for all that (0:
 * doesn't wait, negative: without limit) and says BATON_E_TIMEOUT when it goes on in the
 * background. From a handler, or a function run by baton_run_...(), it never waits.
 */
BATON_API int baton_election_stop(struct baton_election *e, int64_t timeout_ms);

/*
 * Stops (waiting as long as a lease) and frees. If this election's handler is running, waits for it
 * to return; from a handler of another election it doesn't wait. No handler is called afterwards,
 * and baton_wait() returns no event of it. Takes NULL. Not from a handler of its own.
 */
BATON_API void baton_election_free(struct baton_election *e);

/* ---- questions ---- */

/* Whether this candidate leads now. Wait-free, no I/O; true only while the lease surely holds. */
BATON_API bool baton_is_leader(const struct baton_election *e);

/* The term of the present leadership, 0 if none: the fencing token. */
BATON_API uint64_t baton_term(const struct baton_election *e);

/* How long baton_is_leader() stays true if nothing more is heard from the store; 0 if it isn't. */
BATON_API int64_t baton_time_left_ms(const struct baton_election *e);

enum baton_state {
	BATON_STATE_STOPPED,
	BATON_STATE_STANDBY,
	BATON_STATE_CAMPAIGNING,
	BATON_STATE_LEADING,
	BATON_STATE_RESIGNING, /* no longer leader; the work has yet to end, or the claim to go */
};

struct baton_status {
	int state;
	bool is_leader;
	bool paused;
	uint64_t term;                   /* of the leader that we know */
	char leader[BATON_NAME_MAX + 1]; /* "": none known */
	char leader_address[BATON_NAME_MAX + 1];
	char leader_metadata[BATON_METADATA_MAX + 1];
	int64_t leader_since_ms;      /* wall time, ms since 1970; 0 unknown */
	int64_t last_renewal_ms;      /* wall time of our lease's last good renewal; 0 none */
	int64_t last_renewal_boot_ns; /* the same on CLOCK_BOOTTIME, for programs */
	/* Until when the work of our last leadership may go on at the latest, on CLOCK_BOOTTIME.
	 * 0: its lease is no more; what was said before counts. */
	int64_t work_end_boot_ns;
	int64_t time_left_ms; /* -1: not known (of baton_observe()) */
	uint32_t score_permille;
	int64_t wait_ms;               /* not 0: nobody can lead before that is over, ... */
	char wait[BATON_WAIT_MAX + 1]; /* ... and this is why; else "" */
};

/* Who leads, as far as this candidate knows; from memory, asks nobody. */
BATON_API int baton_get_status(const struct baton_election *e, struct baton_status *status);
/* The name that it was made with. */
BATON_API const char *baton_election_name(const struct baton_election *e);

enum baton_health {
	BATON_HEALTHY = 0,   /* leads, or sees a valid leader */
	BATON_DEGRADED = 1,  /* sees no leader */
	BATON_UNHEALTHY = 2, /* the store fails; err says how */
};

/* The health of the election as seen from here (not of the candidate). */
BATON_API int baton_check_health(const struct baton_election *e, struct baton_error *err);

/* ---- events ---- */

/*
 * The next event of any election of the handle that has no handler. Waits up to timeout_ms
 * (0: not at all, negative: without limit). Returns 1 with an event, 0 without. Asking for the
 * next event says that the last one this thread got is dealt with: ask after the work of a lost
 * leadership has ended.
 */
BATON_API int baton_wait(struct baton *b, int64_t timeout_ms, struct baton_event *event);

/* A descriptor that polls readable while baton_wait() has an event. Owned by the handle. */
BATON_API int baton_fd(const struct baton *b);

/* ---- work ---- */

/*
 * Tries to become leader now. 1: leads (or did already). 0: another leads. Negative: not
 * started, or the store did not answer within timeout_ms.
 */
BATON_API int baton_try_acquire(struct baton_election *e, int64_t timeout_ms);

/* The work gives a sign of life (see work_timeout_ms). */
BATON_API void baton_alive(struct baton_election *e);

/* The work of the last leadership has ended: for those who pull events. */
BATON_API void baton_drained(struct baton_election *e);

/*
 * Runs fn here and now if this candidate leads, and returns what it returns (0 or more), or
 * BATON_E_NOT_LEADER. If the leadership ends meanwhile the context is cancelled, and the
 * leadership is not given back before fn has returned.
 */
BATON_API int baton_run_if_leader(struct baton_election *e,
				  int (*fn)(struct baton_context *ctx, void *arg), void *arg);

/*
 * Runs fn on this thread whenever elected, and cancels it when the leadership ends. If fn
 * returns while leading: with `once` resign and return what it returned; else resign, keep
 * quiet for quiet_ms, and contend again. Starts the election if need be. Returns when the election
 * is stopped (BATON_OK), or with `once`.
 */
BATON_API int baton_run_when_elected(struct baton_election *e,
				     int (*fn)(struct baton_context *ctx, void *arg), void *arg,
				     int64_t quiet_ms, bool once);

/* Inside such a function: whether the leadership that it was called for still holds. */
BATON_API bool baton_context_is_leader(const struct baton_context *ctx);
/* Its term. */
BATON_API uint64_t baton_context_term(const struct baton_context *ctx);
/* As baton_time_left_ms(). */
BATON_API int64_t baton_context_time_left_ms(const struct baton_context *ctx);
/* A descriptor that polls readable from the moment the leadership ends. */
BATON_API int baton_context_fd(const struct baton_context *ctx);
/* Waits until cancelled (returns true) or timeout_ms have passed (false): sleep in work by this. */
BATON_API bool baton_context_wait(const struct baton_context *ctx, int64_t timeout_ms);

/*
 * Steps down, and doesn't campaign for quiet_ms; nor, as after every leadership that is given back,
 * for the renewal interval or 2 s, whichever is shorter: others first. BATON_E_NOT_LEADER if it
 * doesn't lead.
 */
BATON_API int baton_resign(struct baton_election *e, int64_t quiet_ms);

/* Steps down in favour of the named candidate; comes back if that doesn't take over. */
BATON_API int baton_transfer(struct baton_election *e, const char *candidate_id,
			     struct baton_error *err);

/* ---- orders: to whoever leads, from anybody with access to the store. They block. ---- */

/* The leader steps down, and doesn't campaign for quiet_ms. BATON_E_NOT_LEADER if nobody leads. */
BATON_API int baton_order_resign(struct baton *b, const char *name, int64_t quiet_ms,
				 struct baton_error *err);
/* The leader hands over. BATON_E_NO_CANDIDATE if the other isn't there, or isn't healthy. */
BATON_API int baton_order_transfer(struct baton *b, const char *name, const char *candidate_id,
				   struct baton_error *err);
/* While paused nobody leads. */
BATON_API int baton_pause(struct baton *b, const char *name, struct baton_error *err);
/* Ends the pause. */
BATON_API int baton_resume(struct baton *b, const char *name, struct baton_error *err);

/* ---- health and candidates ---- */

/* Our own health, 0 to 1000; metadata may be NULL (unchanged). */
BATON_API int baton_report_health(struct baton_election *e, uint32_t score_permille,
				  const char *metadata);

struct baton_candidate {
	char id[BATON_NAME_MAX + 1];
	char address[BATON_NAME_MAX + 1];
	char metadata[BATON_METADATA_MAX + 1];
	bool is_leader;
	bool is_healthy; /* by its own min_score_permille: it could lead */
	uint32_t score_permille;
	int32_t priority;
	int64_t updated_ms; /* wall time */
};

/* Asks the store. Returns how many there are; fills in at most max of them. Blocks. */
BATON_API int baton_list_candidates(struct baton *b, const char *name, struct baton_candidate *list,
				    size_t max, struct baton_error *err);

/* ---- history ---- */

struct baton_leadership {
	uint64_t term;
	char leader[BATON_NAME_MAX + 1];
	int64_t since_ms; /* wall time */
	int64_t until_ms; /* 0: not ended, or nobody knows when */
	char ended[64];   /* why, in a word; "" if not ended */
	/*
	 * For proofs: instants of a clock that belongs to the store, not to who led. This
	 * leadership began after since_ns and had ended by until_ns (0: not ended, or not written
	 * down). Those of the same clock can be compared.
	 */
	char clock[64]; /* "": there is none */
	uint64_t since_ns;
	uint64_t until_ns;
};

/* The last leaderships, newest first. Blocks. BATON_E_UNSUPPORTED where a store keeps none. */
BATON_API int baton_list_history(struct baton *b, const char *name, struct baton_leadership *list,
				 size_t max, struct baton_error *err);

/* Asks the store who leads, without taking part. Blocks. */
BATON_API int baton_observe(struct baton *b, const char *name, struct baton_status *status,
			    struct baton_error *err);

/* ---- fencing, on the side of the resource ---- */

/* Remembers the highest term that a resource was used with. All zero to begin with. */
struct baton_fence {
	uint64_t highest;
};

/* BATON_OK if the term is at least as high as all before it, else BATON_E_STALE (and for 0, which
 * is no term). Atomic. */
BATON_API int baton_fence_check(struct baton_fence *fence, uint64_t term);

/*
 * The same, kept in a file beside the resource and shared by all processes of the host: survives
 * restarts. BATON_E_SYSTEM or BATON_E_CORRUPT if the file can't be trusted: then don't write.
 */
BATON_API int baton_fence_file(const char *path, uint64_t term, struct baton_error *err);

/* ---- statistics ---- */

#define BATON_HISTOGRAM_BUCKETS 32 /* bucket i: less than 2^i microseconds */

struct baton_stats {
	uint64_t elections;
	uint64_t leading;
	uint64_t campaigns_won;
	uint64_t campaigns_refused;
	uint64_t campaigns_failed;
	uint64_t renewals_ok;
	uint64_t renewals_failed;
	uint64_t leaderships_lost;
	uint64_t transitions;
	uint64_t hints;
	uint64_t observes;
	uint64_t releases;
	uint64_t log_dropped;
	uint64_t renew_latency[BATON_HISTOGRAM_BUCKETS];
	uint64_t campaign_latency[BATON_HISTOGRAM_BUCKETS];
	uint64_t tenure[BATON_HISTOGRAM_BUCKETS]; /* bucket i: less than 2^i milliseconds */
};

/* Counters since the handle was opened. */
BATON_API int baton_get_stats(const struct baton *b, struct baton_stats *stats);

/* What the store of this handle promises, and under which faults it doesn't: text for people. */
BATON_API const char *baton_promises(const struct baton *b);

/* ---- drivers ---- */

/* One kind of store. What is told of it lives as long as the call that tells it. */
struct baton_driver_info {
	size_t size;
	const char *name;
	const char *const *schemes; /* NULL at the end: "file" serves "file:..." */
	const char *module;         /* the file that it was loaded from; NULL: it is built in */
	const char *error;          /* why it can't be used, and all below is unknown; or NULL */
	const char *promises;
	uint64_t min_lease_ms;
	uint32_t drift_permille; /* the least that is safe there */
	bool pushes;             /* standbys are told, and need not poll */
	bool proves_death;       /* a dead leader is replaced at once */
	bool keeps_history;
	/* For its own client to run (SQL, a script): what makes its tables, and what makes a guard
	 * that refuses the writes of older terms. NULL: none. */
	const char *schema;
	const char *fence;
};

/* Calls found() for each driver: those that are built in, then the modules. Returns how many. */
BATON_API int baton_list_drivers(void (*found)(void *arg, const struct baton_driver_info *info),
				 void *arg);

/* ---- what a store is like ---- */

enum baton_finding_level {
	BATON_FINDING_OK,
	BATON_FINDING_NOTE,    /* worth knowing */
	BATON_FINDING_WARNING, /* it works, and promises less, or may fail when it is busy */
	BATON_FINDING_ERROR,   /* it can't be used like that */
};

/* One thing that was looked at. What is told of it lives as long as the call that tells it. */
struct baton_finding {
	size_t size;
	int level;
	const char *check; /* what was looked at, in a word or two: "version" */
	const char *text;  /* what was found: sentences without secrets */
	const char *fix;   /* what to do about it; "": nothing */
};

/*
 * Looks at the store: who answers, does it keep what it acknowledges, may we do what is needed, how
 * long does it take with the handle's timings. Calls found() for each thing that was looked at.
 * Takes part in no election and leaves nothing behind. Returns the worst level. Blocks.
 */
BATON_API int baton_examine(struct baton *b,
			    void (*found)(void *arg, const struct baton_finding *finding),
			    void *arg, struct baton_error *err);

#ifdef __cplusplus
}
#endif

#endif
