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
 * Structs start with their size and may grow at their end, those that the library reads and those
 * that it fills in alike: a function whose name ends with _sized has a macro without it that says
 * how large the struct is in your program. Lists are told one by one, by a function of yours; what
 * it is given lives as long as that call.
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
struct baton_context;  /* work that is bound to one leadership */

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

/* The name of a code in one lower-case word, for logs, metrics and other languages: "timeout" for
 * BATON_E_TIMEOUT. "unknown" for what this library doesn't know; so do those below. */
BATON_API const char *baton_code_name(int code);
/* "lost" for BATON_EVENT_LOST */
BATON_API const char *baton_event_name(int kind);
/* "expired" for BATON_REASON_EXPIRED */
BATON_API const char *baton_reason_name(int reason);
/* "standby" for BATON_STATE_STANDBY */
BATON_API const char *baton_state_name(int state);
/* "degraded" for BATON_CONDITION_DEGRADED */
BATON_API const char *baton_condition_name(int condition);
/* "held" for BATON_OBSTACLE_HELD */
BATON_API const char *baton_obstacle_name(int obstacle);

/* Filled in by calls that can fail in many ways. Never holds a secret. */
struct baton_error {
	int code;
	char text[252]; /* one sentence: what is wrong and what would be right */
};

/* "0.1.0" of the library that runs, which may be newer than this header. */
BATON_API const char *baton_version(void);

/* The same as one number that can be compared: 1002003 for 1.2.3. */
BATON_API uint32_t baton_version_number(void);
#define BATON_VERSION_NUMBER \
	(BATON_VERSION_MAJOR * 1000000 + BATON_VERSION_MINOR * 1000 + BATON_VERSION_PATCH)

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

/* One step of an election, for traces: what happened, and what was decided. Strings live as long as
 * the call. */
struct baton_trace_record {
	size_t size;
	int64_t boot_ns;       /* CLOCK_BOOTTIME */
	const char *election;  /* NULL: it is about the lease of them all */
	const char *happening; /* "campaigned", "hint", "timer", ... */
	const char *decision;  /* "campaign", "became", "renew", ... */
	const char *reason;    /* a few words */
	uint64_t call;         /* numbers what was asked of the store; 0: nothing */
	uint64_t term;         /* 0: it has none */
	int outcome; /* of the call that was answered: 1 ok, 2 refused, 3 failed, 4 unknown */
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
	/* Called for each decision, on the thread that makes them all: it must return at once, and
	 * call nothing of this library. NULL: no traces, at no cost. */
	void (*trace)(void *arg, const struct baton_trace_record *record);
	void *trace_arg;
	/* The deadlines that this process is told are trusted by others that may outlive it: nobody
	 * leads before they have passed, though the store could prove this process dead.
	 * BATON_E_UNSUPPORTED from baton_open() where the store can't keep that. */
	bool outlive;
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

/* Numbers of kinds, reasons and states are never used for something else. */
enum baton_event_kind {
	BATON_EVENT_BECAME = 1, /* this candidate leads now, in `term` */
	BATON_EVENT_LOST,       /* it no longer does; `reason` and `text` say why */
	BATON_EVENT_CHANGED,    /* another leader (or none: leader is "") than before */
	BATON_EVENT_ERROR,      /* `code`, `text`, `detail`; at most one a second for one cause */
	BATON_EVENT_STOPPED,    /* baton_election_stop() is done: nothing is owed any more */
	BATON_EVENT_WAITS,      /* nobody can lead for `wait_ms`; `text` says why. Once a wait */
	BATON_EVENT_RENEWED,    /* tell_renewals: the deadline of `term` has moved */
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
	size_t size;    /* of what the library has filled in */
	uint64_t token; /* for baton_event_done(); 0 in a handler */
	struct baton_election *election;
	int kind;
	int reason;
	int code;
	uint64_t term;
	uint64_t old_term;
	int64_t wait_ms;                 /* WAITS: from now on */
	int64_t deadline_boot_ns;        /* BECAME, RENEWED: as baton_get_deadline() says */
	int64_t work_end_boot_ns;        /* BECAME, RENEWED: the same */
	char leader[BATON_NAME_MAX + 1]; /* CHANGED: the new one */
	char old_leader[BATON_NAME_MAX + 1];
	char text[256];
	char detail[256];
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
	 * when LOST was pulled and is dealt with (see baton_event_done()), or by baton_drained(),
	 * or when all contexts that were entered at the loss are left. A program that never
	 * pulls events has the drain time (see baton.7) to notice by baton_is_leader().
	 */
	void (*handler)(void *arg, const struct baton_event *event);
	void *handler_arg;
	/*
	 * false. true: no event ends the work, whoever takes it. What does: baton_leave() of the
	 * last context of the leadership, baton_drained() with its term, or
	 * baton_election_stop(), and then still no context may be open. For event pumps, and for
	 * languages whose tasks move between threads.
	 */
	bool drain_by_hand;
	bool tell_renewals; /* false: no event RENEWED */
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

/*
 * When baton_is_leader() turns false if nothing more is heard from the store, and until when the
 * work of this leadership may go on at the latest, both on CLOCK_BOOTTIME; 0 where there is none.
 * After the loss the second stays, until the lease is no more. Either may be NULL. Wait-free.
 * Returns 1 if this candidate leads now, else 0.
 */
BATON_API int baton_get_deadline(const struct baton_election *e, int64_t *deadline_boot_ns,
				 int64_t *work_end_boot_ns);

enum baton_state {
	BATON_STATE_STOPPED,
	BATON_STATE_STANDBY,
	BATON_STATE_CAMPAIGNING,
	BATON_STATE_LEADING,
	BATON_STATE_RESIGNING, /* no longer leader; the work has yet to end, or the claim to go */
};

struct baton_status {
	size_t size; /* of what the library has filled in */
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
	int64_t time_left_ms;
	uint32_t score_permille;       /* our own */
	int64_t wait_ms;               /* not 0: nobody can lead before that is over, ... */
	char wait[BATON_WAIT_MAX + 1]; /* ... and this is why; else "" */
};

/* Who leads, as far as this candidate knows; from memory, asks nobody. */
BATON_API int baton_get_status_sized(const struct baton_election *e, struct baton_status *status,
				     size_t size);
#define baton_get_status(e, status) baton_get_status_sized((e), (status), sizeof(*(status)))
/* The name that it was made with. */
BATON_API const char *baton_election_name(const struct baton_election *e);

enum baton_condition {
	BATON_CONDITION_HEALTHY = 0,   /* leads, or sees a valid leader */
	BATON_CONDITION_DEGRADED = 1,  /* sees no leader */
	BATON_CONDITION_UNHEALTHY = 2, /* the store fails; err says how */
};

/* The condition of the election as seen from here; baton_report_health() is about the candidate. */
BATON_API int baton_election_condition(const struct baton_election *e, struct baton_error *err);

/* ---- events ---- */

/*
 * The next event of any election of the handle that has no handler. Waits up to timeout_ms
 * (0: not at all, negative: without limit). Returns 1 with an event, 0 without. Call it by the name
 * without _sized.
 */
BATON_API int baton_wait_sized(struct baton *b, int64_t timeout_ms, struct baton_event *event,
			       size_t size);
#define baton_wait(b, timeout_ms, event) \
	baton_wait_sized((b), (timeout_ms), (event), sizeof(*(event)))

/*
 * The event with that token is dealt with; any thread may say so. The next event of its election
 * waits for that. Of LOST it says that the work has ended, unless the election has drain_by_hand.
 * For programs with one thread there is a shorter way: baton_wait() says it of all events that the
 * same thread was given before, so such a program asks for the next event after the work of a lost
 * leadership has ended. BATON_E_STALE: that event is dealt with already.
 */
BATON_API int baton_event_done(struct baton *b, uint64_t token);

/* A descriptor that polls readable while baton_wait() has an event. Owned by the handle. */
BATON_API int baton_fd(const struct baton *b);

/* ---- work ---- */

/* What kept a candidate from leading. */
enum baton_obstacle {
	BATON_OBSTACLE_NONE,
	BATON_OBSTACLE_HELD,      /* another leads, or it is kept for another */
	BATON_OBSTACLE_PAUSED,    /* nobody may lead */
	BATON_OBSTACLE_UNHEALTHY, /* this candidate's score is too low */
	BATON_OBSTACLE_DRAINING,  /* the work of its last leadership has not ended */
	BATON_OBSTACLE_STOPPED,   /* not started, stopped meanwhile, or only observing */
	BATON_OBSTACLE_STORE,     /* the store failed, or did not answer in time */
	BATON_OBSTACLE_TERMS,     /* there is no higher term */
};

/*
 * Tries to become leader now. 1: leads (or did already). 0: it may not now. Negative: not
 * started, or the store did not answer within timeout_ms. obstacle says why not; it may be NULL.
 */
BATON_API int baton_try_acquire(struct baton_election *e, int64_t timeout_ms, int *obstacle);

/* The work gives a sign of life (see work_timeout_ms). */
BATON_API void baton_alive(struct baton_election *e);

/*
 * The work of the leadership in that term has ended. BATON_E_STALE: that one still leads, or isn't
 * the last one, or its work counts as ended already. Contexts that are open are waited for.
 */
BATON_API int baton_drained(struct baton_election *e, uint64_t term);

/*
 * Binds work to the present leadership: BATON_E_NOT_LEADER if there is none. The leadership is not
 * given back while the context is open. Any thread may use and leave it.
 */
BATON_API int baton_enter(struct baton_election *e, struct baton_context **ctx,
			  struct baton_error *err);
/* This piece of work has ended; ctx must not be used any more. Leave all before baton_close().
 * Takes NULL. */
BATON_API void baton_leave(struct baton_context *ctx);

/*
 * Runs fn here and now if this candidate leads, and returns what it returns (0 or more), or
 * BATON_E_NOT_LEADER. If the leadership ends meanwhile the context is cancelled, and the
 * leadership is not given back before fn has returned.
 */
BATON_API int baton_run_if_leader(struct baton_election *e,
				  int (*fn)(struct baton_context *ctx, void *arg), void *arg);

struct baton_run_options {
	size_t size;      /* set by baton_run_options_init() */
	int64_t quiet_ms; /* 0: how long to leave it to others when fn has returned */
	bool once;        /* false: fn runs again when elected again */
};

/* Sets the defaults, as baton_options_init() does. */
BATON_API void baton_run_options_init_sized(struct baton_run_options *options, size_t size);
#define baton_run_options_init(options) baton_run_options_init_sized((options), sizeof(*(options)))

/*
 * Runs fn on this thread whenever elected, and cancels it when the leadership ends. If fn
 * returns while leading: with `once` resign and return what it returned; else resign, keep
 * quiet for quiet_ms, and contend again. Starts the election if need be. Returns when the election
 * is stopped (BATON_OK), or with `once`. options may be NULL.
 */
BATON_API int baton_run_when_elected(struct baton_election *e,
				     int (*fn)(struct baton_context *ctx, void *arg), void *arg,
				     const struct baton_run_options *options);

/* Whether the leadership that the context was made for still holds. */
BATON_API bool baton_context_is_leader(const struct baton_context *ctx);
/* Its term. */
BATON_API uint64_t baton_context_term(const struct baton_context *ctx);
/* As baton_time_left_ms(). */
BATON_API int64_t baton_context_time_left_ms(const struct baton_context *ctx);
/*
 * A descriptor that polls readable from the moment the leadership ends, also if every thread of
 * this library stands still, and at once after a suspend: a timer at the deadline. Readable means:
 * ask baton_context_is_leader(). Don't read from it. Owned by the context.
 */
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

/*
 * ---- orders: to a leader, from anybody with access to the store. They block. ----
 *
 * term is the leadership that the order is meant for; 0: whoever leads now. BATON_E_STALE if that
 * one leads no more, BATON_E_NOT_LEADER if nobody does. note says who orders it and why, up to
 * BATON_NOTE_MAX bytes of UTF-8 without control characters; NULL: nothing.
 */
#define BATON_NOTE_MAX 200

/* The leader steps down, and doesn't campaign for quiet_ms. */
BATON_API int baton_order_resign(struct baton *b, const char *name, uint64_t term, int64_t quiet_ms,
				 const char *note, struct baton_error *err);
/* The leader hands over. BATON_E_NO_CANDIDATE if the other isn't there, or isn't healthy. */
BATON_API int baton_order_transfer(struct baton *b, const char *name, uint64_t term,
				   const char *candidate_id, const char *note,
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
	size_t size;
	char id[BATON_NAME_MAX + 1];
	char address[BATON_NAME_MAX + 1];
	char metadata[BATON_METADATA_MAX + 1];
	bool is_leader;
	bool is_healthy; /* by its own min_score_permille: it could lead */
	uint32_t score_permille;
	int32_t priority;
	int64_t updated_ms; /* wall time */
};

/* Asks the store, and calls found() for each candidate. Returns how many there are. Blocks. */
BATON_API int baton_list_candidates(struct baton *b, const char *name,
				    void (*found)(void *arg,
						  const struct baton_candidate *candidate),
				    void *arg, struct baton_error *err);

/*
 * The same into an array of yours, for languages that C can't call: the first max of them, each as
 * large as in your program. Returns how many there are, which may be more. Call it by the name
 * without _sized.
 */
BATON_API int baton_get_candidates_sized(struct baton *b, const char *name,
					 struct baton_candidate *candidates, size_t max,
					 size_t size, struct baton_error *err);
#define baton_get_candidates(b, name, candidates, max, err) \
	baton_get_candidates_sized((b), (name), (candidates), (max), sizeof(*(candidates)), (err))

/* ---- history ---- */

struct baton_leadership {
	size_t size;
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
	char note[BATON_NOTE_MAX + 1]; /* of the order that ended it; "": none */
};

/*
 * Calls found() for the last leaderships, newest first, at most max of them (0: all). Returns how
 * many. Blocks. BATON_E_UNSUPPORTED where a store keeps none.
 */
BATON_API int baton_list_history(struct baton *b, const char *name, size_t max,
				 void (*found)(void *arg,
					       const struct baton_leadership *leadership),
				 void *arg, struct baton_error *err);

/* ---- what the store says, without taking part ---- */

/* One election as the store sees it. */
struct baton_observed {
	size_t size; /* of what the library has filled in */
	bool has_leader;
	bool paused;
	uint64_t term;                   /* the highest so far: the leader's, if there is one */
	char leader[BATON_NAME_MAX + 1]; /* "": none */
	char address[BATON_NAME_MAX + 1];
	char metadata[BATON_METADATA_MAX + 1];
	int64_t since_ms;              /* wall time; 0: not known */
	int64_t lease_left_ms;         /* of the leader, as far as the store knows; -1: not known */
	uint32_t score_permille;       /* the leader's */
	int32_t priority;              /* the leader's */
	int64_t wait_ms;               /* not 0: nobody can lead before that is over, ... */
	char wait[BATON_WAIT_MAX + 1]; /* ... and this is why; else "" */
};

/* Asks the store who leads. One request; blocks. Call it by the name without _sized. */
BATON_API int baton_observe_sized(struct baton *b, const char *name,
				  struct baton_observed *observed, size_t size,
				  struct baton_error *err);
#define baton_observe(b, name, observed, err) \
	baton_observe_sized((b), (name), (observed), sizeof(*(observed)), (err))

/*
 * Who leads and who stands by: as baton_observe() and then baton_list_candidates(), in one request
 * where the store can. Returns how many candidates there are. Blocks.
 */
BATON_API int baton_survey_sized(struct baton *b, const char *name, struct baton_observed *observed,
				 size_t size,
				 void (*found)(void *arg, const struct baton_candidate *candidate),
				 void *arg, struct baton_error *err);
#define baton_survey(b, name, observed, found, arg, err) \
	baton_survey_sized((b), (name), (observed), sizeof(*(observed)), (found), (arg), (err))

/*
 * Calls found() for names of elections that this store knows, in the order of their bytes: those
 * that begin with prefix and come after `after` ("" or NULL: from the beginning). Tells one page,
 * and returns how many; 0: there are no more. Blocks. BATON_E_UNSUPPORTED where a store can't.
 */
BATON_API int baton_list_elections(struct baton *b, const char *prefix, const char *after,
				   void (*found)(void *arg, const char *name), void *arg,
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
	size_t size; /* of what the library has filled in */
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
BATON_API int baton_get_stats_sized(const struct baton *b, struct baton_stats *stats, size_t size);
#define baton_get_stats(b, stats) baton_get_stats_sized((b), (stats), sizeof(*(stats)))

enum baton_metric_type { BATON_METRIC_GAUGE = 1, BATON_METRIC_COUNTER, BATON_METRIC_HISTOGRAM };

struct baton_label {
	const char *name;
	const char *value;
};

/* One time series as it is now. What is told of it lives as long as the call that tells it. */
struct baton_metric {
	size_t size;
	const char *name; /* "baton_renewals_total" */
	const char *help; /* a sentence */
	const char *unit; /* "seconds", "ratio"; "": none */
	int type;
	const struct baton_label *labels;
	size_t n_labels;
	double value; /* of gauges and counters */
	/* Of histograms: counts[i] values were at most bounds[i], and more than bounds[i - 1];
	 * the last bound is infinite. */
	const double *bounds;
	const uint64_t *counts;
	size_t n_buckets;
	uint64_t count;
	double sum;
};

/* Calls emit() for every metric of the handle and of its elections; those of one name follow one
 * another. From memory, asks nobody. Returns how many. */
BATON_API int baton_metrics(struct baton *b,
			    void (*emit)(void *arg, const struct baton_metric *metric), void *arg);

/* What the store of this handle promises, and under which faults it doesn't: text for people. */
BATON_API const char *baton_promises(const struct baton *b);

/* ---- the page: whether the candidate of a `baton serve` leads, for other processes ---- */
struct baton_page; /* a file in shared memory, read without a call */

/* Maps the page of an election in a folder; NULL: where `baton serve` writes it by default.
 * BATON_E_CORRUPT: it is no page of this election, or counts by another clock: try again later. */
BATON_API int baton_page_open(const char *dir, const char *name, struct baton_page **out,
			      struct baton_error *err);
/* Whether the candidate leads now. Wait-free. Takes NULL: no. */
BATON_API bool baton_page_leads(const struct baton_page *page);
/* Its term; 0: it doesn't lead. Takes NULL. */
BATON_API uint64_t baton_page_term(const struct baton_page *page);
/* Takes NULL. */
BATON_API void baton_page_close(struct baton_page *page);

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
	bool lists_elections;
	bool outlives; /* baton_options.outlive can be had */
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
