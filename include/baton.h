/*
 * baton.h: leader election for everyone.
 *
 * Many instances of a program run; one of them leads. When the leader fails, another instance takes
 * over. No two instances ever lead at once. The elections live in a store that you already have,
 * named by a URL ("file:/var/lib/myapp", "memory:test").
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
 * Functions return 0 or more for success and a negative BATON_E code for failure. Functions that
 * take a struct baton_error also write a sentence there. All functions may be called from any
 * thread and from handlers, unless their comment says otherwise. After fork() the child is never
 * leader. It must not use the parent's handles, except to close them: all other calls return
 * BATON_E_FORKED.
 *
 * Structs start with their size and may grow at their end. This is true of structs that the library
 * reads and of structs that it fills in; structs without a size never grow. A function whose name
 * ends with _sized has a macro without that ending, which passes the size that the struct has in
 * your program: call the macro. Functions that list things call a function of yours once for each
 * entry. The entry, with its strings, lives only until your function returns.
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
	BATON_E_INVALID = -1,       /* an argument is not valid */
	BATON_E_TIMING = -2,        /* the timings contradict each other */
	BATON_E_URL = -3,           /* the store's URL can't be understood */
	BATON_E_NO_DRIVER = -4,     /* no driver for this kind of store */
	BATON_E_MEMORY = -5,        /* out of memory */
	BATON_E_SYSTEM = -6,        /* the system refused something: threads, descriptors */
	BATON_E_NOT_STARTED = -7,   /* the election is not started, or only observes */
	BATON_E_NOT_LEADER = -8,    /* only a leader can do this, and this candidate doesn't lead */
	BATON_E_TIMEOUT = -9,       /* the given time has passed */
	BATON_E_EXISTS = -10,       /* this handle already has an election of that name */
	BATON_E_UNAVAILABLE = -11,  /* the store does not answer, for now */
	BATON_E_DENIED = -12,       /* the store denies access: permissions, credentials */
	BATON_E_CORRUPT = -13,      /* data in the store is damaged, or not baton's */
	BATON_E_UNSUPPORTED = -14,  /* this store can't do that */
	BATON_E_NO_CANDIDATE = -15, /* no such candidate, or the candidate is not healthy */
	BATON_E_STALE = -16,        /* the term is older than a term seen before */
	BATON_E_FORKED = -17,       /* the handle belongs to the parent process */
	BATON_E_BUSY = -18,         /* the same operation is already under way */
	BATON_E_DUPLICATE_ID = -19, /* another living candidate has the same id */
};

/* Describes a code in a few words. Never NULL. */
BATON_API const char *baton_strerror(int code);

/* The name of a code in one lower-case word, for logs, metrics and other languages: "timeout" for
 * BATON_E_TIMEOUT. This function and those below return "unknown" for a number that this library
 * doesn't know. */
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

/* Filled in by calls that can fail in many ways. It never contains a secret. It never grows:
 * programs and drivers keep it inside structs of their own. */
struct baton_error {
	int code;
	char text[252]; /* one sentence: what is wrong and what would be right */
};

/* The version of the running library, such as "0.1.0". It may be newer than this header. */
BATON_API const char *baton_version(void);

/* The version of the running library as a number that can be compared: 1002003 for 1.2.3. */
BATON_API uint32_t baton_version_number(void);
#define BATON_VERSION_NUMBER \
	(BATON_VERSION_MAJOR * 1000000 + BATON_VERSION_MINOR * 1000 + BATON_VERSION_PATCH)

/* ---- the handle ---- */

enum baton_log_level { BATON_LOG_ERROR = 1, BATON_LOG_WARN, BATON_LOG_INFO, BATON_LOG_DEBUG };

/* One record for the log. Fields that don't apply are NULL or 0. */
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
	const char *election;  /* NULL: the step is about the lease that all elections share */
	const char *happening; /* "campaigned", "hint", "timer", ... */
	const char *decision;  /* "campaign", "became", "renew", ... */
	const char *reason;    /* a few words */
	uint64_t call;         /* the number of the call to the store; 0: no call */
	uint64_t term;         /* 0: no term */
	int outcome; /* of the call that was answered: 1 ok, 2 refused, 3 failed, 4 unknown */
};

struct baton_options {
	size_t size;             /* sizeof(struct baton_options); set by baton_options_init() */
	const char *id;          /* this candidate's name; default: host, pid, 48 random bits */
	const char *address;     /* where others can reach this candidate; default none */
	uint64_t lease_ms;       /* how long the claim of a silent leader stands; default 15000 */
	uint64_t renew_ms;       /* from one renewal to the next; default 0: lease/3 */
	uint64_t grace_ms;       /* how long a due renewal may keep failing; default 0: lease/3 */
	uint64_t retry_ms;       /* first pause after a failure; 0: 2 s, or lease/6 if less */
	uint64_t retry_max_ms;   /* longest pause after failures; default 0: five times retry */
	uint32_t drift_permille; /* how much clock rates may differ; 100, or the store's minimum */
	uint32_t dispatchers;    /* how many threads call handlers; default 0: 2 threads */
	/* Called on a thread of the library, never concurrently. Must not block for long: records
	 * that can't be delivered in time are counted and dropped. NULL: no log. */
	void (*log)(void *arg, const struct baton_log_record *record);
	void *log_arg;
	/* Called for each decision, on the thread that makes all decisions. Must return at once and
	 * must not call this library. NULL: no traces, at no cost. */
	void (*trace)(void *arg, const struct baton_trace_record *record);
	void *trace_arg;
	/* true: other processes act on the deadlines that the library reports to this process, and
	 * they may live longer than this process. No other candidate leads before such a deadline
	 * has passed, even if the store can prove that this process is dead. baton_open() returns
	 * BATON_E_UNSUPPORTED if the store can't promise that. Default false. */
	bool outlive;
};

/* Sets the defaults. The size is that of the struct in your program, so that a newer library never
 * writes beyond it. Call it by the name without _sized. */
BATON_API void baton_options_init_sized(struct baton_options *options, size_t size);
#define baton_options_init(options) baton_options_init_sized((options), sizeof(*(options)))

/* Opens a handle on the store that the URL names. Does no I/O: opening succeeds even if the store
 * is down, and the store is used as soon as it answers. options may be NULL. err may be NULL. */
BATON_API int baton_open(const char *url, const struct baton_options *options, struct baton **out,
			 struct baton_error *err);

/* Stops all elections of the handle as baton_election_stop() does, releases every claim, then frees
 * the elections and the handle. Waits for running handlers to return. Waits for the store for at
 * most one lease. Takes NULL. Must not be called from a handler. */
BATON_API void baton_close(struct baton *b);

/* The id of this process in the elections of the handle. */
BATON_API const char *baton_id(const struct baton *b);

/* The timings that the elections of a handle really use. Timings that were not given have their
 * defaults, and limits of the store are applied. All timings count from the moment just before the
 * last successful renewal was sent (baton_status.last_renewal_boot_ns). */
struct baton_timings {
	size_t size; /* of what the library has filled in */
	uint64_t lease_ns;
	uint64_t renew_ns;
	uint64_t grace_ns;
	uint64_t drain_ns; /* time for the work to stop: from renew + grace to end_ns */
	uint64_t end_ns;   /* lease * (1 - drift): the work of a lost leadership is over by then */
	uint64_t gone_ns;  /* lease * (1 + drift): how long others wait for a silent leader */
	uint64_t retry_ns;
	uint64_t retry_max_ns;
	uint64_t call_ns; /* how long one call to the store may take */
	uint32_t drift_permille;
	bool proves_death; /* if a leader's process is dead, another candidate can lead at once */
};

/* Fills in the fields that your program was compiled with. Call it by the name without _sized. */
BATON_API int baton_get_timings_sized(const struct baton *b, struct baton_timings *timings,
				      size_t size);
#define baton_get_timings(b, timings) baton_get_timings_sized((b), (timings), sizeof(*(timings)))

/*
 * Tells the path of the election's work lock: a file whose lock says that work of the election
 * still goes on. Before a program starts work, the program takes an exclusive open file description
 * lock (F_OFD_SETLK) on that file. Only the processes that do the work may inherit the descriptor.
 * The path is absolute and ends with a zero byte. mode is the mode to create the file with. Does no
 * I/O. BATON_E_UNSUPPORTED: this store has no such file.
 */
BATON_API int baton_work_lock(const struct baton *b, const char *name, char *path, size_t size,
			      uint32_t *mode, struct baton_error *err);

/* ---- elections ---- */

/* The number of a kind, reason or state never changes its meaning. */
enum baton_event_kind {
	BATON_EVENT_BECAME = 1, /* this candidate leads now, in `term` */
	BATON_EVENT_LOST,       /* this candidate no longer leads; `reason` and `text` say why */
	BATON_EVENT_CHANGED,    /* the leader has changed; `leader` is "" if there is none */
	BATON_EVENT_ERROR,      /* `code`, `text`, `detail`; at most one a second for one cause */
	BATON_EVENT_STOPPED,    /* baton_election_stop() is complete */
	BATON_EVENT_WAITS,      /* no candidate can lead for `wait_ms`; `text` says why */
	BATON_EVENT_RENEWED,    /* the deadline of `term` has moved; only with tell_renewals */
};

/* Why a leadership was lost. */
enum baton_reason {
	BATON_REASON_NONE,
	BATON_REASON_EXPIRED,    /* no renewal succeeded in time */
	BATON_REASON_REFUSED,    /* the store says that the lease is gone */
	BATON_REASON_SUPERSEDED, /* another candidate leads in a later term */
	BATON_REASON_GONE,       /* the claim was removed from the store */
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
#define BATON_WAIT_MAX 191 /* bytes of the text that says why no candidate can lead yet */

struct baton_event {
	size_t size;    /* of what the library has filled in */
	uint64_t token; /* for baton_event_done(); 0 in a handler */
	struct baton_election *election;
	int kind;
	int reason;
	int code;
	uint64_t term;
	uint64_t old_term;
	int64_t wait_ms;                 /* WAITS: counted from when the event is taken */
	int64_t deadline_boot_ns;        /* BECAME, RENEWED: as in baton_get_deadline() */
	int64_t work_end_boot_ns;        /* BECAME, RENEWED: as in baton_get_deadline() */
	char leader[BATON_NAME_MAX + 1]; /* CHANGED: the new leader */
	char old_leader[BATON_NAME_MAX + 1];
	char text[256];
	char detail[256];
};

struct baton_election_options {
	size_t size;                 /* set by baton_election_options_init() */
	const char *metadata;        /* shown to others beside the id; default none */
	bool release_on_stop;        /* releases the claim when the election stops; default true */
	bool check_health;           /* campaigns only while healthy; default true */
	bool step_down_unhealthy;    /* steps down when no longer healthy; default true */
	bool observe_only;           /* only watches, never campaigns; default false */
	bool manual;                 /* campaigns only in baton_try_acquire(); default false */
	uint32_t min_score_permille; /* the least score that counts as healthy; default 800 */
	int32_t priority;            /* rank of this candidate, for preempt_ms; default 0 */
	/* If this candidate has outranked a healthy leader for this long, asks that leader to hand
	 * over. Default 0: never. */
	uint64_t preempt_ms;
	/* Steps down if baton_alive() is not called at least this often. Default 0: never. */
	uint64_t work_timeout_ms;
	/*
	 * Called on a dispatcher thread. The events of one election arrive in order, except that
	 * LOST overtakes all events that still wait. When the handler returns from LOST, the work
	 * counts as stopped and the leadership may pass to another candidate.
	 *
	 * NULL: the program takes events with baton_wait(). The work then counts as stopped when
	 * the program has dealt with LOST (see baton_event_done()), or calls baton_drained(), or
	 * has left all contexts that were open at the loss. A program that never takes events must
	 * notice the loss by baton_is_leader() within the drain time (see baton.7).
	 */
	void (*handler)(void *arg, const struct baton_event *event);
	void *handler_arg;
	/* true: taking LOST does not mean that the work has stopped. The work counts as stopped
	 * after baton_leave() of the leadership's last context, after baton_drained() with the term
	 * of that leadership (also if it ended before the program could enter it), or after
	 * baton_election_stop(), and never while a context is open. For event pumps, and for
	 * languages whose tasks move between threads. Default false. */
	bool drain_by_hand;
	bool tell_renewals; /* delivers RENEWED events, too; default false */
};

/* Sets the defaults, as baton_options_init() does. */
BATON_API void baton_election_options_init_sized(struct baton_election_options *options,
						 size_t size);
#define baton_election_options_init(options) \
	baton_election_options_init_sized((options), sizeof(*(options)))

/* Makes a candidate in the named election. The candidate does nothing until it is started. The
 * first election of a handle makes its threads. Connections are made when one starts. */
BATON_API int baton_election_new(struct baton *b, const char *name,
				 const struct baton_election_options *options,
				 struct baton_election **out, struct baton_error *err);

/* Contends from now on. Idempotent; does no I/O and never blocks. */
BATON_API int baton_election_start(struct baton_election *e);

/*
 * Steps down and stops contending: baton_is_leader() is false at once, LOST is delivered, the work
 * drains, then the claim is released. Idempotent. Waits up to timeout_ms until all of this is done
 * (0: doesn't wait; negative: waits without limit). Returns BATON_E_TIMEOUT if the stop goes on in
 * the background. Never waits when called from a handler or from a function that baton_run_...()
 * runs; nor, without a limit, for a context that the calling thread itself has entered.
 */
BATON_API int baton_election_stop(struct baton_election *e, int64_t timeout_ms);

/* Stops the election, waiting up to the length of a lease, and frees it. If this election's handler
 * is running, waits for the handler to return, unless called from a handler of another election.
 * Afterwards the handler is not called and baton_wait() returns no event of this election. Takes
 * NULL. Must not be called from a handler of the same election. */
BATON_API void baton_election_free(struct baton_election *e);

/* ---- questions ---- */

/* Whether this candidate leads now. Wait-free, no I/O; true only while the lease surely holds. */
BATON_API bool baton_is_leader(const struct baton_election *e);

/* The term of the present leadership: the fencing token. 0 if this candidate doesn't lead. */
BATON_API uint64_t baton_term(const struct baton_election *e);

/* How long baton_is_leader() stays true if the store doesn't answer again. 0 if it is false now. */
BATON_API int64_t baton_time_left_ms(const struct baton_election *e);

/*
 * Tells two instants on CLOCK_BOOTTIME. deadline_boot_ns: when baton_is_leader() turns false if the
 * store doesn't answer again. work_end_boot_ns: when the work of this leadership must have ended.
 * An instant that doesn't exist is 0. After a loss work_end_boot_ns keeps its value until the lease
 * has ended. Either pointer may be NULL. Wait-free. Returns 1 if this candidate leads now, else 0.
 */
BATON_API int baton_get_deadline(const struct baton_election *e, int64_t *deadline_boot_ns,
				 int64_t *work_end_boot_ns);

enum baton_state {
	BATON_STATE_STOPPED,
	BATON_STATE_STANDBY,
	BATON_STATE_CAMPAIGNING,
	BATON_STATE_LEADING,
	BATON_STATE_RESIGNING, /* no longer leader: the work drains, then the claim is released */
};

struct baton_status {
	size_t size; /* of what the library has filled in */
	int state;
	bool is_leader;
	bool paused;
	uint64_t term;                   /* of the known leader */
	char leader[BATON_NAME_MAX + 1]; /* "": no known leader */
	char leader_address[BATON_NAME_MAX + 1];
	char leader_metadata[BATON_METADATA_MAX + 1];
	int64_t leader_since_ms;      /* wall time, ms since 1970; 0: unknown */
	int64_t last_renewal_ms;      /* wall time of the last successful renewal here; 0: none */
	int64_t last_renewal_boot_ns; /* the same instant on CLOCK_BOOTTIME, for programs */
	/* When the work of this candidate's last leadership must have ended, on CLOCK_BOOTTIME.
	 * 0: that leadership's lease has ended, or this candidate has not led. A value that was
	 * read before remains valid. */
	int64_t work_end_boot_ns;
	int64_t time_left_ms;
	uint32_t score_permille;       /* this candidate's own */
	int64_t wait_ms;               /* not 0: no candidate can lead before this has passed */
	char wait[BATON_WAIT_MAX + 1]; /* why no candidate can lead yet; else "" */
};

/* Tells who leads, as far as this candidate knows. Reads memory only: doesn't ask the store. */
BATON_API int baton_get_status_sized(const struct baton_election *e, struct baton_status *status,
				     size_t size);
#define baton_get_status(e, status) baton_get_status_sized((e), (status), sizeof(*(status)))
/* The name that the election was made with. */
BATON_API const char *baton_election_name(const struct baton_election *e);

enum baton_condition {
	BATON_CONDITION_HEALTHY = 0,   /* leads, or sees a valid leader */
	BATON_CONDITION_DEGRADED = 1,  /* sees no leader */
	BATON_CONDITION_UNHEALTHY = 2, /* the store fails; err says how */
};

/* The condition of the election as this candidate sees it. The candidate's own health is another
 * matter: see baton_report_health(). */
BATON_API int baton_election_condition(const struct baton_election *e, struct baton_error *err);

/* ---- events ---- */

/* Takes the next event of the handle's elections that have no handler. Waits up to timeout_ms (0:
 * doesn't wait; negative: waits without limit). Returns 1 with an event, 0 without. Call it by the
 * name without _sized. */
BATON_API int baton_wait_sized(struct baton *b, int64_t timeout_ms, struct baton_event *event,
			       size_t size);
#define baton_wait(b, timeout_ms, event) \
	baton_wait_sized((b), (timeout_ms), (event), sizeof(*(event)))

/*
 * Says that the event with this token is dealt with. Any thread may call this. The next event of
 * the same election is delivered only after this call. For LOST this call also says that the work
 * has ended, unless the election has drain_by_hand. A program with one thread needs no such call:
 * baton_wait() marks all events that the same thread took before as dealt with. Such a program
 * calls baton_wait() again only after the work of a lost leadership has ended. BATON_E_STALE: the
 * event was already dealt with.
 */
BATON_API int baton_event_done(struct baton *b, uint64_t token);

/* A descriptor that polls readable while baton_wait() has an event. Owned by the handle. */
BATON_API int baton_fd(const struct baton *b);

/* ---- work ---- */

/* What kept a candidate from leading. */
enum baton_obstacle {
	BATON_OBSTACLE_NONE,
	BATON_OBSTACLE_HELD,      /* another candidate leads, or the election is kept for one */
	BATON_OBSTACLE_PAUSED,    /* the election is paused */
	BATON_OBSTACLE_UNHEALTHY, /* this candidate's score is too low */
	BATON_OBSTACLE_DRAINING,  /* the work of this candidate's last leadership has not ended */
	BATON_OBSTACLE_STOPPED,   /* not started, stopped meanwhile, or only observing */
	BATON_OBSTACLE_STORE,     /* the store failed, or did not answer in time */
	BATON_OBSTACLE_TERMS,     /* there is no higher term */
};

/* Tries to become leader now. Returns 1 if this candidate leads now, whether it has just won or
 * already led. Returns 0 if it can't lead at present. Returns a negative code if the election is
 * not started, or if the store did not answer within timeout_ms. obstacle tells why the candidate
 * doesn't lead; the pointer may be NULL. */
BATON_API int baton_try_acquire(struct baton_election *e, int64_t timeout_ms, int *obstacle);

/* Says that the work is alive (see work_timeout_ms). */
BATON_API void baton_alive(struct baton_election *e);

/* Says that the work of the leadership in this term has ended. Open contexts still keep the
 * leadership from being given back. BATON_E_STALE: that leadership still holds, is not this
 * candidate's last one, or its work already counts as ended. */
BATON_API int baton_drained(struct baton_election *e, uint64_t term);

/*
 * Binds work to the present leadership. BATON_E_NOT_LEADER if this candidate doesn't lead. The
 * leadership is not given back while the context is open. Any thread may use and leave the context.
 */
BATON_API int baton_enter(struct baton_election *e, struct baton_context **ctx,
			  struct baton_error *err);
/* Says that this piece of work has ended, and frees ctx. Leave all contexts before baton_close().
 * Takes NULL. */
BATON_API void baton_leave(struct baton_context *ctx);

/* Runs fn on this thread if this candidate leads, and returns what fn returns (0 or more).
 * Otherwise returns BATON_E_NOT_LEADER. If the leadership ends while fn runs, the context is
 * cancelled. The leadership is not given back before fn has returned. */
BATON_API int baton_run_if_leader(struct baton_election *e,
				  int (*fn)(struct baton_context *ctx, void *arg), void *arg);

struct baton_run_options {
	size_t size;      /* set by baton_run_options_init() */
	int64_t quiet_ms; /* doesn't campaign for this long after fn has returned; default 0 */
	bool once;        /* ends when fn has returned by itself; default false */
};

/* Sets the defaults, as baton_options_init() does. */
BATON_API void baton_run_options_init_sized(struct baton_run_options *options, size_t size);
#define baton_run_options_init(options) baton_run_options_init_sized((options), sizeof(*(options)))

/*
 * Runs fn on this thread whenever this candidate is elected, and cancels the context when the
 * leadership ends. If fn returns while the candidate leads, the candidate resigns. With `once` the
 * call then returns what fn returned. Without `once` the candidate doesn't campaign for quiet_ms
 * and then contends again. Starts the election if it is not started. Returns BATON_OK when the
 * election is stopped. options may be NULL.
 */
BATON_API int baton_run_when_elected(struct baton_election *e,
				     int (*fn)(struct baton_context *ctx, void *arg), void *arg,
				     const struct baton_run_options *options);

/* Whether the leadership that the context was made for still holds. */
BATON_API bool baton_context_is_leader(const struct baton_context *ctx);
/* The term of that leadership. */
BATON_API uint64_t baton_context_term(const struct baton_context *ctx);
/* As baton_time_left_ms(), for that leadership. */
BATON_API int64_t baton_context_time_left_ms(const struct baton_context *ctx);
/* A descriptor that polls readable from the moment the leadership ends. It is a timer at the
 * deadline, so it works even if every thread of this library stands still, and at once after a
 * suspend. When it is readable, ask baton_context_is_leader(). Don't read from it. The context owns
 * it. */
BATON_API int baton_context_fd(const struct baton_context *ctx);
/* Waits until the context is cancelled (returns true) or timeout_ms have passed (returns false).
 * Work that sleeps should sleep by this call. */
BATON_API bool baton_context_wait(const struct baton_context *ctx, int64_t timeout_ms);

/* Steps down, and doesn't campaign for quiet_ms. After every leadership that it gives back, a
 * candidate also waits for the renewal interval or 2 s, whichever is shorter, so that other
 * candidates can win first. BATON_E_NOT_LEADER if this candidate doesn't lead. */
BATON_API int baton_resign(struct baton_election *e, int64_t quiet_ms);

/* Steps down in favour of the named candidate. Campaigns again if the named candidate doesn't take
 * over. */
BATON_API int baton_transfer(struct baton_election *e, const char *candidate_id,
			     struct baton_error *err);

/*
 * ---- orders: any process with access to the store can give a leader an order. Calls block. ----
 *
 * term is the leadership that the order is meant for; 0: whichever candidate leads now.
 * BATON_E_STALE if that leadership has ended, BATON_E_NOT_LEADER if there is no leader. note says
 * who gives the order and why: up to BATON_NOTE_MAX bytes of UTF-8 without control characters.
 * NULL: no note.
 */
#define BATON_NOTE_MAX 200

/* The leader steps down, and doesn't campaign for quiet_ms. */
BATON_API int baton_order_resign(struct baton *b, const char *name, uint64_t term, int64_t quiet_ms,
				 const char *note, struct baton_error *err);
/* The leader hands over to the named candidate. BATON_E_NO_CANDIDATE if that candidate is absent or
 * not healthy. */
BATON_API int baton_order_transfer(struct baton *b, const char *name, uint64_t term,
				   const char *candidate_id, const char *note,
				   struct baton_error *err);
/* Pauses the election: no candidate leads until baton_resume(). */
BATON_API int baton_pause(struct baton *b, const char *name, struct baton_error *err);
/* Ends the pause. */
BATON_API int baton_resume(struct baton *b, const char *name, struct baton_error *err);

/* ---- health and candidates ---- */

/* Reports this candidate's own health, 0 to 1000. metadata may be NULL (unchanged). */
BATON_API int baton_report_health(struct baton_election *e, uint32_t score_permille,
				  const char *metadata);

struct baton_candidate {
	size_t size;
	char id[BATON_NAME_MAX + 1];
	char address[BATON_NAME_MAX + 1];
	char metadata[BATON_METADATA_MAX + 1];
	bool is_leader;
	bool is_healthy; /* its score reaches its own min_score_permille: it may lead */
	uint32_t score_permille;
	int32_t priority;
	int64_t updated_ms; /* wall time */
};

/* Asks the store, and calls found() for each candidate. Returns the number of candidates.
 * Blocks. */
BATON_API int baton_list_candidates(struct baton *b, const char *name,
				    void (*found)(void *arg,
						  const struct baton_candidate *candidate),
				    void *arg, struct baton_error *err);

/* As baton_list_candidates(), but writes the first max candidates to an array, for languages whose
 * functions C can't call. Returns the number of candidates, which may be more than max. Call it by
 * the name without _sized. */
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
	int64_t until_ms; /* 0: not ended, or the time is unknown */
	char ended[64];   /* why it ended, in a word; "": not ended */
	/* For proofs: instants of a clock that belongs to the store, not to the leader. This
	 * leadership began after since_ns and had ended by until_ns (0: not ended, or not
	 * recorded). Instants of the same clock can be compared. */
	char clock[64]; /* the name of the clock; "": the store has none */
	uint64_t since_ns;
	uint64_t until_ns;
	char note[BATON_NOTE_MAX + 1]; /* of the order that ended it; "": none */
};

/* Calls found() for the last leaderships, newest first, at most max of them (0: all). Returns the
 * number of leaderships. Blocks. BATON_E_UNSUPPORTED if the store keeps no history. */
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
	/* SQL functions in the store may end leases of this election, by the store's clock. */
	bool functions;
	uint64_t term; /* the highest so far: the leader's, if there is a leader */
	char leader[BATON_NAME_MAX + 1]; /* "": no leader */
	char address[BATON_NAME_MAX + 1];
	char metadata[BATON_METADATA_MAX + 1];
	int64_t since_ms;              /* wall time; 0: not known */
	int64_t lease_left_ms;         /* of the leader, as far as the store knows; -1: not known */
	uint32_t score_permille;       /* the leader's */
	int32_t priority;              /* the leader's */
	int64_t wait_ms;               /* not 0: no candidate can lead before this has passed */
	char wait[BATON_WAIT_MAX + 1]; /* why no candidate can lead yet; else "" */
};

/* Asks the store who leads. One request; blocks. Call it by the name without _sized. */
BATON_API int baton_observe_sized(struct baton *b, const char *name,
				  struct baton_observed *observed, size_t size,
				  struct baton_error *err);
#define baton_observe(b, name, observed, err) \
	baton_observe_sized((b), (name), (observed), sizeof(*(observed)), (err))

/* Does what baton_observe() and then baton_list_candidates() do, in one request if the store can.
 * Returns the number of candidates. Blocks. */
BATON_API int baton_survey_sized(struct baton *b, const char *name, struct baton_observed *observed,
				 size_t size,
				 void (*found)(void *arg, const struct baton_candidate *candidate),
				 void *arg, struct baton_error *err);
#define baton_survey(b, name, observed, found, arg, err) \
	baton_survey_sized((b), (name), (observed), sizeof(*(observed)), (found), (arg), (err))

/* Calls found() for the names of elections in this store that begin with prefix and come after
 * `after` ("" or NULL: from the beginning), in byte order. One call reports one page of names and
 * returns their number; 0: there are no more. Blocks. BATON_E_UNSUPPORTED if the store can't list
 * elections. */
BATON_API int baton_list_elections(struct baton *b, const char *prefix, const char *after,
				   void (*found)(void *arg, const char *name), void *arg,
				   struct baton_error *err);

/* ---- fencing, on the side of the resource ---- */

/* Remembers the highest term that a resource was used with. Must be zero at the start. Never grows:
 * it is one number that processes may share. */
struct baton_fence {
	uint64_t highest;
};

/* Returns BATON_OK if the term is at least as high as every term before. Otherwise, and for the
 * term 0, which is never valid, returns BATON_E_STALE. Atomic. */
BATON_API int baton_fence_check(struct baton_fence *fence, uint64_t term);

/* As baton_fence_check(), but keeps the highest term in a file beside the resource. All processes
 * of the host share the file, and it survives restarts. BATON_E_SYSTEM or BATON_E_CORRUPT: the file
 * can't be trusted, so don't write to the resource. */
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

struct baton_label { /* never grows: there are arrays of it */
	const char *name;
	const char *value;
};

/* One time series as it is now. Its strings and arrays live until emit() returns. */
struct baton_metric {
	size_t size;
	const char *name; /* "baton_renewals_total" */
	const char *help; /* a sentence */
	const char *unit; /* "seconds", "ratio"; "": none */
	int type;
	const struct baton_label *labels;
	size_t n_labels;
	double value; /* of gauges and counters */
	/* Of histograms: counts[i] values were more than bounds[i - 1] and at most bounds[i]. The
	 * last bound is infinite. */
	const double *bounds;
	const uint64_t *counts;
	size_t n_buckets;
	uint64_t count;
	double sum;
};

/* Calls emit() for every metric of the handle and of its elections. Metrics of one name follow one
 * another. Reads memory only: doesn't ask the store. Returns the number of metrics. */
BATON_API int baton_metrics(struct baton *b,
			    void (*emit)(void *arg, const struct baton_metric *metric), void *arg);

/* Text for people: what the store of this handle promises, and which faults break the promise. */
BATON_API const char *baton_promises(const struct baton *b);

/* ---- the page: whether the candidate of a `baton serve` leads, for other processes ---- */
struct baton_page; /* a file in shared memory, read without a call */

/* Maps the page of an election in the folder dir (NULL: the folder that `baton serve` writes to by
 * default). BATON_E_CORRUPT: the file is not a page of this election, or was written before the
 * last boot; try again later. */
BATON_API int baton_page_open(const char *dir, const char *name, struct baton_page **out,
			      struct baton_error *err);
/* Whether the candidate leads now. Wait-free. Takes NULL and then returns false. */
BATON_API bool baton_page_leads(const struct baton_page *page);
/* The candidate's term; 0 if it doesn't lead. Takes NULL and then returns 0. */
BATON_API uint64_t baton_page_term(const struct baton_page *page);
/* Unmaps the page. Takes NULL. */
BATON_API void baton_page_close(struct baton_page *page);

/* ---- drivers ---- */

/* One kind of store. Its strings live until found() returns. */
struct baton_driver_info {
	size_t size;
	const char *name;
	const char *const *schemes; /* NULL at the end: "file" serves "file:..." */
	const char *module;         /* the file that it was loaded from; NULL: built in */
	const char *error; /* why it can't be used (all fields below are unknown); NULL: usable */
	const char *promises;
	uint64_t min_lease_ms;
	uint32_t drift_permille; /* the least value that is safe with this store */
	bool pushes;             /* the store tells standbys of a release: they need not poll */
	bool proves_death;       /* if a leader is dead, another candidate can lead at once */
	bool keeps_history;
	/* SQL or a script for the store's own client. schema makes baton's tables. fence makes a
	 * guard that refuses the writes of older terms. NULL: none. */
	const char *schema;
	const char *fence;
	bool lists_elections;
	bool outlives;         /* baton_options.outlive is supported */
	const char *functions; /* as schema: makes functions that other programs can call */
};

/* Calls found() for each driver: first those that are built in, then the modules. Returns the
 * number of drivers. */
BATON_API int baton_list_drivers(void (*found)(void *arg, const struct baton_driver_info *info),
				 void *arg);

/* ---- what a store is like ---- */

enum baton_finding_level {
	BATON_FINDING_OK,
	BATON_FINDING_NOTE,    /* worth knowing */
	BATON_FINDING_WARNING, /* usable, but promises less, or may fail under load */
	BATON_FINDING_ERROR,   /* the store can't be used like this */
};

/* One thing that was looked at. Its strings live until found() returns. */
struct baton_finding {
	size_t size;
	int level;
	const char *check; /* what was looked at, in a word or two: "version" */
	const char *text;  /* what was found: sentences without secrets */
	const char *fix;   /* what to do about it; "": nothing */
};

/* Looks at the store: which server answers, whether it keeps what it acknowledges, whether this
 * user has the rights that baton needs, and whether answers are fast enough for the handle's
 * timings. Calls found() for each thing that was looked at. Takes part in no election and leaves
 * nothing behind. Returns the worst level. Blocks. */
BATON_API int baton_examine(struct baton *b,
			    void (*found)(void *arg, const struct baton_finding *finding),
			    void *arg, struct baton_error *err);

#ifdef __cplusplus
}
#endif

#endif
