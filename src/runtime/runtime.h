/*
 * runtime.h: the only place with threads, clocks and timers. It turns what happens into events for
 * the core, and the core's actions into calls of the driver and news for the application.
 *
 * Threads of one handle, and what each owns
 *   loop        all cores (struct lease, struct election), the timer heap, the list of elections
 *               and everything below that names no lock. No other thread steps a core.
 *   renew lane  the driver's renew lane: open, renew, close. Nothing queues in front of it.
 *   campaign lane  the driver's campaign lane: releases first, then campaigns, observations,
 *               claims, orders, publications, in batches of at most LANE_BATCH.
 *   watch lane  the driver's watch lane.
 *   dispatchers call the application's handlers; one at a time for one election.
 *   logger      calls the application's log function; only if there is one.
 *   the application's own threads: they post messages, read cells, and wait.
 *
 * Locks, each held for a few instructions only. While app.lock is held, mail.lock or peers.lock may
 * be taken; otherwise no lock is taken while another one is held.
 *   mail.lock   the mailbox of the loop (any thread posts, the loop takes)
 *   lane.lock   a lane's queue (the loop puts, the lane takes)
 *   app.lock    what the application sees and waits for: struct events, queues of elections with
 *               news, contexts of running work, answers to waiting calls
 *   peers.lock  names of others
 *   log.lock    the ring of log records
 *
 * Atomic cells, written by the loop only, read by any thread: the deadline of a lease (in pages
 * that are wiped on fork, so that a child reads 0), and the term and work limit of an election.
 *
 * A leadership ends in this order: the cells say no, then the news is queued (S7).
 */
#ifndef BATON_RUNTIME_H
#define BATON_RUNTIME_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "baton-store.h"
#include "core/audience.h"
#include "core/election.h"
#include "runtime/failure.h"
#include "runtime/heap.h"

#define LANE_BATCH 1000
#define LANE_QUEUES 3
#define DISPATCHERS_MAX 64
#define SELF 1u /* our own number among the candidates */

/* ---- messages for the loop, jobs for the lanes: linked, never copied ---- */

enum message_kind {
	MSG_ATTACH = 1,   /* election: a new one */
	MSG_EVENT,        /* election, event: for the core */
	MSG_POKE,         /* election: see its pokes */
	MSG_DONE,         /* job: a lane has carried it out */
	MSG_HINT,         /* cookie: an election, or BATON_HINT_ALL */
	MSG_HINT_SPARE,   /* a hint at everything, in memory that was set aside */
	MSG_WATCH,        /* for the watch lane: a name to add */
	MSG_UNWATCHED,    /* to that lane: a name to remove; back: no further hint comes for it */
	MSG_WATCH_FAILED, /* app.watch_error says why */
	MSG_QUIT,
};

struct message {
	struct message *next;
	uint8_t kind;
};

/* What the application (or the watch lane) posts; freed by the loop. */
struct post {
	struct message m;
	struct baton_election *election;
	struct event event;
	uint64_t cookie;
	bool *done; /* app.lock: set once the loop has dealt with it; or NULL */
};

enum job_kind {
	JOB_OPEN = 1,
	JOB_RENEW,
	JOB_CLOSE,
	JOB_CLAIMS,
	JOB_RELEASE,
	JOB_CAMPAIGN,
	JOB_OBSERVE,
	JOB_ORDER,
	JOB_PUBLISH,
	JOB_WITHDRAW,
	JOB_STRAY,
};

/* One call of the driver. Part of its lease or election, which has at most one of each. */
struct job {
	struct message m; /* m.next links it in a lane's queue, too */
	struct baton_election *election;
	struct executor *executor;
	uint64_t call;
	uint64_t limit_ns;
	uint64_t sent_ns;
	uint64_t epoch;
	int code;
	uint8_t kind;
	uint8_t outcome;
	bool is_last; /* JOB_CLOSE: the lease has ended by itself */
	bool busy;    /* with a lane, or on its way back */
};

/* A claim that the store lists on a lease of ours. */
struct claim_found {
	struct claim_found *next;
	uint64_t nonce;
	uint64_t term;
	char name[BATON_NAME_MAX + 1];
};

/* The release of a claim whose election was freed. */
struct stray {
	struct job job;
	struct claim_found *claim;
};

/*
 * A lease and what is on it. Counted references keep it: one of the loop's, and one of each of its
 * elections. Threads that hold an election may so read the atomics here, also when the loop has let
 * go of both.
 */
struct executor {
	struct lease core;
	_Atomic uint32_t refs;
	struct baton *handle;
	struct baton_election *elections; /* linked by executor_next */
	struct executor *left_next;       /* an own lease whose election has left */
	_Atomic uint64_t *deadline_cell;
	struct heap_item timer;
	struct job job;
	struct job claims_job;
	struct claim_found *claims; /* what the claims job found; the lane's until it is done */
	uint32_t number;            /* tells this process' leases apart */
	uint32_t n_held;            /* answer of a renewal */
	uint32_t n_publish_due;
	uint64_t publish_ns;         /* own lease: when to show its election again; or NEVER */
	_Atomic uint32_t n_contexts; /* open contexts of its elections; app.lock to change it */
	bool claims_short;           /* the list of claims is not complete */
	_Atomic bool is_open;        /* something of the lease may be in the store */
	_Atomic int64_t renewed_wall_ms;
	_Atomic uint64_t renewed_boot_ns;
	_Atomic uint64_t end_epoch; /* of the incarnation that lives, or lived last ... */
	_Atomic uint64_t end_ns;    /* ... and until when work on it may go on; written after it */
};

enum { POKE_DRAINED = 1, POKE_ALIVE = 2, POKE_DETACH = 4, POKE_QUEUED = 8 };

/* ---- what the application is told. core/audience.h decides whether and when; here stand the
 * words, and the queue of the elections that have something to tell ---- */

/* When each code was last told, and the store's words for the last one. */
struct error_event {
	uint64_t told_ns[32];
	char detail[sizeof(((struct baton_error *)0)->text)];
};

struct events {
	TAILQ_ENTRY(baton_election) link; /* the queue of elections with news */
	uint64_t changed_term;
	uint64_t changed_old_term;
	uint32_t leader;
	uint32_t old_leader;
	struct error_event *error; /* made with the first one */
	int error_code;
	uint8_t error_why;
	bool queued;
	bool is_urgent;  /* queued with LOST */
	uint64_t puller; /* the number of the thread that is being told */
};

/* No candidate can lead before a certain time. */
struct wait {
	uint64_t until_ns; /* 0: the wait is over */
	char text[BATON_WAIT_MAX + 1];
};

/*
 * Counted references keep an election: one of the application's, one of the loop's, one for each
 * queue that it stands in, one for each thread inside a call on it.
 */
struct baton_election {
	struct election core;
	_Atomic uint32_t refs;
	_Atomic uint32_t pokes; /* POKE_..., taken by the loop */
	struct baton *handle;
	struct executor *executor;
	struct baton_election *executor_next;
	struct baton_election *hash_next; /* the loop's table by name */
	struct baton_election *all_next;  /* app.lock: the handle's list */
	_Atomic uint64_t term_cell;       /* the term that we lead in, else 0 */
	_Atomic uint64_t work_cell;       /* L5: leads only before this */
	_Atomic uint64_t work_epoch;      /* of the lease that the last leadership stands on */
	_Atomic uint64_t overdue_cell;    /* L5: when its claim is given back */
	_Atomic uint64_t alive_ns;        /* the last sign of life that was passed on */
	struct message poke;
	uint64_t hint_ns;                /* when a hint came during the call under way; 0: none */
	uint64_t auto_drain_ns;          /* no event is taken: when the work counts as ended */
	const struct claim_found *claim; /* while the loop tells of claims */
	struct heap_item timer;
	struct job job;
	struct job *publish_job; /* NULL: none is under way */
	struct view view;        /* the answer to the job; the lane's until it is done */
	struct failure *failure; /* made with the first one; or NULL */
	uint64_t arg_nonce;
	uint64_t arg_term; /* of a campaign: its floor */
	uint64_t arg_hold_ns;
	uint32_t arg_target;
	uint8_t arg_why;
	uint8_t trying;   /* FAILURE_...: source of the failed answer being handled; or 0 */
	uint8_t lost_why; /* of the last leadership */
	uint8_t before;   /* BATON_END_...: how the leadership before ours ended */
	bool publish_due;
	bool published;
	bool detached; /* the application has let go of it */
	bool watched;  /* from its first start on */
	bool unwatching;
	bool unwatched; /* no further hint names it */
	bool leaving;   /* in the handle's list of elections that leave */
	struct baton_election *leaving_next;
	struct message watch[2]; /* MSG_WATCH, MSG_UNWATCHED */
	/* app.lock from here on */
	struct audience audience;
	struct events events;
	struct baton_context *contexts;
	uint32_t acquire_id;
	uint32_t acquire_answered;
	int acquire_answer;
	int acquire_obstacle;
	uint8_t seen_state;
	bool seen_paused;
	bool left;       /* the loop has let go of it */
	bool twin;       /* another living candidate has our id */
	bool overran;    /* the last leadership's work is counted as an overrun */
	int attach_code; /* 1: not yet */
	uint32_t seen_leader;
	uint32_t score;
	uint64_t seen_term;
	uint64_t became_ns;
	uint64_t vacant_ns; /* since when no candidate leads: lost, or seen free; 0: not so */
	_Atomic(struct numbers *) numbers; /* made with the first of them; or NULL */
	_Atomic uint32_t n_won, n_refused, n_failed, n_changes;
	int64_t leader_since_ms;
	struct wait *wait;     /* NULL: there never was one */
	char *metadata;        /* ours; NULL: none */
	char *leader_metadata; /* NULL: none */
	void (*handler)(void *arg, const struct baton_event *event);
	void *handler_arg;
	char name[];
};

/* Work that runs as leader: on the stack of the thread that runs it, or on the heap if the
 * application entered it by itself. */
struct baton_context {
	struct baton_election *election;
	struct baton_context *next;
	uint64_t term;
	uint64_t thread; /* the number of the thread that entered it */
	int fd;          /* a timer at the deadline */
	bool is_run;     /* a function runs by it: no other thread can leave it */
};

/* ---- the handle ---- */

struct mailbox {
	pthread_mutex_t lock;
	struct message *first;
	struct message **last;
	int event_fd;
};

struct lane {
	struct baton *handle;
	void *driver_lane;
	struct batch *batch;            /* the lane thread's memory for one call */
	_Atomic uint64_t call_until_ns; /* the deadline of the call under way; 0: there is none */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct message *first[LANE_QUEUES]; /* [0] goes first, [2] last */
	struct message **last[LANE_QUEUES];
	uint64_t yields_ns;      /* the lane thread's: until then, [2] waits */
	struct message *changes; /* watch lane: names to add or remove */
	struct message **changes_last;
	struct message *unadded; /* the watch lane's: names that the driver couldn't add */
	struct post spare;       /* watch lane: a hint at everything, when there is no memory */
	_Atomic bool spare_busy;
	struct message failed; /* watch lane: MSG_WATCH_FAILED */
	_Atomic bool failed_busy;
	int kind;
	bool quit;
	bool running;
};

/* Those with LOST, which come first, and the others. */
TAILQ_HEAD(events_queue, baton_election);
enum { URGENT, USUAL, N_QUEUES };

struct app {
	pthread_mutex_t lock;
	pthread_cond_t changed;  /* answers, stops, contexts; CLOCK_MONOTONIC */
	pthread_cond_t dispatch; /* elections with a handler have news */
	struct events_queue handled[N_QUEUES];
	struct events_queue pulled[N_QUEUES];
	struct events_queue pulling; /* elections whose events baton_wait() returned last */
	struct baton_election *all;
	uint32_t n_kept; /* while closing: how many elections have not been let go */
	int events_fd;   /* readable while an election is in pulled */
	uint64_t tokens; /* how many events were taken */
	bool has_puller;
	bool quit;
	struct baton_error store_error; /* the last failure of a call */
	uint64_t store_said_ns;         /* when that was */
	struct baton_error watch_error; /* the last failure of the watch */
	_Atomic int store_fails;        /* no call went well since; also read without the lock */
};

struct peers {
	pthread_mutex_t lock;
	struct peer **list; /* by number - SELF - 1 */
	uint32_t n;
	uint32_t room;
	uint32_t *table; /* hash of id and lease -> number */
	uint32_t table_room;
};

struct log_ring {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	pthread_t thread;
	struct log_entry *entries;
	uint32_t first;
	uint32_t n;
	bool running;
	bool quit;
};

/* Counters: any thread adds and reads. */
#define CODES 32 /* more than there are error codes */

struct histogram {
	_Atomic uint64_t buckets[BATON_HISTOGRAM_BUCKETS]; /* of powers of two */
	_Atomic uint64_t sum;
};

struct counters {
	_Atomic uint64_t elections, leading, won, refused, failed, renewed, renew_failed, lost;
	_Atomic uint64_t transitions, hints, observes, releases, log_dropped;
	_Atomic uint64_t errors[CODES]; /* calls of the driver that failed, by -code */
	_Atomic int64_t store_ok_ms;    /* wall time of the last call that went well */
	struct histogram renew_latency; /* us */
	struct histogram campaign_latency;
	struct histogram loop_delay; /* us that the loop woke too late */
	struct histogram tenure;     /* ms */
	struct histogram handlers;   /* us */
};

/* What is counted of one election, from when a leadership was lost or taken over, or the
 * application has listed something of it. */
struct numbers {
	_Atomic uint64_t lost[BATON_REASON_PAUSED + 1];
	struct histogram tenure;                          /* ms */
	struct histogram drain;                           /* ms */
	struct histogram handover[BATON_END_EXPIRED + 1]; /* us, by how the one before ended */
	_Atomic uint64_t overruns;
	_Atomic uint64_t overlap_ns; /* of leaderships in the history, ... */
	_Atomic uint64_t audited;    /* ... up to this term; 0: none was read */
	_Atomic uint32_t n_healthy;  /* candidates, when they were last listed */
	_Atomic uint32_t n_unhealthy;
	_Atomic bool is_listed;
};

struct fork_cells {
	_Atomic uint64_t *page; /* wiped on fork; word 0 is 1 in the process that owns the handle */
	struct fork_cells *next;
	uint32_t used;
};

/* The one lane of all questions and orders that go straight to the store; app.lock. */
struct admin {
	void *lane;       /* NULL: none is open */
	uint64_t used_ns; /* when it was last given back */
	bool busy;
};

struct baton {
	const struct baton_driver *driver; /* &driver_table */
	const struct baton_traits *traits; /* &traits_known */
	struct baton_driver driver_table;  /* zero where an older driver has less than we know */
	struct baton_traits traits_known;
	void *store;
	void *driver_library; /* dlopen()ed, or NULL */
	char id[BATON_NAME_MAX + 1];
	char address[BATON_NAME_MAX + 1];
	char incarnation[33]; /* 128 random bits */
	struct timing timing;
	void (*log)(void *arg, const struct baton_log_record *record);
	void *log_arg;
	void (*trace)(void *arg, const struct baton_trace_record *record);
	void *trace_arg;
	bool outlive;
	int64_t opened_wall_ms;
	struct executor *shared; /* where leases are shared: the one executor */
	struct executor *left;   /* those of own leases that have yet to end */
	uint32_t n_numbered;     /* how many executors were made */
	uint32_t n_executors;    /* how many there are */
	struct mailbox mail;
	struct lane lanes[3];
	struct app app;
	struct admin admin;
	struct peers peers;
	struct log_ring ring;
	struct counters counters;
	struct fork_cells *cells;
	_Atomic uint64_t *owner_cell; /* 1; 0 in a forked child */
	_Atomic uint64_t *free_cell;
	struct heap heap;
	struct baton_election **table; /* by name; the loop's */
	uint32_t table_room;
	uint32_t n_attached;
	struct baton_election *leaving; /* they go when the loop's step is done */
	uint64_t random;                /* state of the loop's generator */
	int timer_fd;
	_Atomic uint64_t step_ns; /* since when the loop is at its step; 0: it waits, ... */
	_Atomic uint64_t wake_ns; /* ... until then; 0: for whatever comes */
	pthread_t loop_thread;
	pthread_t dispatchers[DISPATCHERS_MAX];
	uint32_t n_dispatchers;
	uint32_t n_dispatchers_started;
	pthread_mutex_t start_lock; /* held while threads and lanes are made */
	bool is_warned;             /* start_lock: of what the store lacks */
	bool loop_running;
	_Atomic bool is_closing;     /* baton_close() was called */
	bool watch_untold;           /* app.watch_error is for the election that starts next */
	struct baton *registry_next; /* fork.c's lock */
};

/* loop.c */
int loop_start(struct baton *b, struct baton_error *err);
void loop_stop(struct baton *b);
/* Frees the election after this step, if the application has let go of it and nothing in the loop
 * or in the lanes refers to it. */
void loop_try_leave(struct baton_election *e);
struct baton_election *loop_find(struct baton *b, const char *name);
/* 0, or BATON_E_MEMORY. ev may be NULL for messages that carry none. */
int loop_post(struct baton *b, uint8_t message, struct baton_election *e, const struct event *ev);
/* The same for an event, and the loop has dealt with it when this returns: cells included. */
int loop_tell(struct baton_election *e, const struct event *ev);
void loop_post_message(struct baton *b, struct message *m);
/* Several at once, linked from the first to the last. */
void loop_post_list(struct baton *b, struct message *first, struct message *last);
/* Needs no memory: for what must not get lost. */
void loop_poke(struct baton_election *e, uint32_t poke);

struct baton_election *election_ref(struct baton_election *e);
void election_unref(struct baton_election *e);

/* execute.c: cores in, actions out */
struct executor *executor_new(struct baton *b);
/* The loop needs it no longer. */
void executor_let_go(struct executor *c);
struct executor *executor_ref(struct executor *c);
void executor_unref(struct executor *c); /* NULL: none */
void executor_step(struct executor *c, struct event *ev);
void executor_step_election(struct baton_election *e, struct event *ev);
/* EV_HINT, now or after the call under way, if that is needed then. */
void executor_hint(struct baton_election *e);
void executor_publish(struct baton_election *e);
/* A job came back from its lane. */
void executor_done(struct baton *b, struct job *job);

/* lane.c */
int lane_start(struct baton *b, int kind, struct baton_error *err);
/* Ends the lane's thread; what is queued does not run. The driver's lane stays until
 * lane_done(). */
void lane_stop(struct lane *lane);
void lane_done(struct lane *lane);
void lane_put(struct lane *lane, struct job *job, bool first);
/* The lane's lock is held: waits until something is put in, or for so long; then it returns
 * ETIMEDOUT. */
int lane_wait(struct lane *lane, uint64_t ns);
void lane_watch(struct lane *lane, struct baton_election *e, bool add);

/* driver_calls.c: what a lane does with jobs of one kind for one lease */
struct batch *batch_new(void);
void batch_free(struct batch *t);
void batch_run(struct lane *lane, struct job **jobs, size_t n);
/* A lease's name in the store: which process, which of its leases, which incarnation of that lease.
 * Drivers and the answers of stores are compared with it, so there is one place that prints it. */
void lease_id_print(const struct baton *b, uint32_t number, uint64_t epoch,
		    char out[BATON_LEASE_ID_MAX + 1]);

/* watch.c */
void *watch_main(void *arg);

/* events.c: between the loop and the application */
void events_note(struct baton_election *e, const struct action *a);
/* source: FAILURE_..., or 0 for what doesn't last; code 0: the one that belongs to the reason. */
void events_error(struct baton_election *e, unsigned source, uint8_t why, int code);
/* These sources of failures work, or aren't needed. */
void events_works(struct baton_election *e, unsigned sources);
/* After a step: keeps what other threads may ask of the election. */
void events_seen(struct baton_election *e);
/* What a lane has read: whether no candidate can lead before a certain time. */
void events_waits(struct baton_election *e, const struct baton_record *r);
/* The lease was renewed: tells the elections that want to hear of it. */
void events_renewed(struct baton_election *e);
/* The application has let go of it, and it is stopped. */
void events_let_go(struct baton_election *e);
/* app.lock is held: steps the audience, and carries out what it says. */
struct audience_result events_tell(struct baton_election *e, const struct audience_event *ev);
/* The same, for an event without fields beside its kind. */
struct audience_result events_say(struct baton_election *e, uint8_t kind);
/* app.lock is held: no further news of the election is told, and none is kept. */
void events_mute(struct baton_election *e);
/* The watch is broken: this is why. */
void events_watch(struct baton_election *e, const struct baton_error *said);
/* app.lock is held: what is counted of it; NULL: there is no memory, so it is not counted. */
struct numbers *events_numbers(struct baton_election *e);
/* app.lock is held: its work goes on though another may lead, and that isn't counted yet. */
bool events_overruns(const struct baton_election *e);
/* Its claim is given back though its work has not ended. */
void events_overdue(struct baton_election *e);
/* How the last call of the driver went; code 0: well. */
void events_store(struct baton *b, const struct baton_error *err);
int events_init(struct baton *b, struct baton_error *err);
int events_start(struct baton *b, struct baton_error *err);
void events_stop(struct baton *b);
/* After the loop has stopped: drops the events that were not taken. */
void events_done(struct baton *b);
int events_pull(struct baton *b, int64_t timeout_ms, struct baton_event *out);
/* The event with this token is dealt with, whichever thread took it. BATON_E_STALE: there is no
 * such event. */
int events_finish(struct baton *b, uint64_t token);
/* app.lock held: waits for app.changed until then (NEVER: for ever); false: too late. */
bool events_wait(struct baton *b, uint64_t until_ns);
uint64_t events_until_ns(int64_t timeout_ms);
bool events_on_dispatcher(const struct baton *b);

/* contexts.c: work that is bound to a leadership, and the descriptors that end with it */
/* app.lock is held for all of these. 0, or a code. */
int context_enter(struct baton_election *e, struct baton_context *ctx, uint64_t term, bool is_run);
/* Takes it out of its election; the descriptor is closed. */
void context_leave(struct baton_context *ctx);
/* The leadership is lost: the descriptors of its contexts say so now. */
void contexts_cancel(struct baton_election *e);
/* What the cells show: until when it leads, and until when its work may go on; 0: not known. */
uint64_t deadline_of(const struct baton_election *e);
uint64_t work_end_of(const struct baton_election *e);
/* The descriptors of the election's contexts end at the deadline that its cells show. */
void contexts_move(struct baton_election *e);

/* peers.c */
uint32_t peers_find(struct baton *b, const char *id, const char *address);
/* Copies id and address ("" for NOBODY); either may be NULL. */
void peers_name(struct baton *b, uint32_t number, char *id, char *address);
void peers_done(struct baton *b);

/* fork_cells.c: deadlines that a forked child reads as 0 */
int fork_cells_init(struct baton *b);
_Atomic uint64_t *fork_cells_new(struct baton *b);
void fork_cells_free(struct baton *b, _Atomic uint64_t *cell);
void fork_cells_done(struct baton *b);
bool fork_cells_forked(const struct baton *b);

/* fork.c */
int fork_register(struct baton *b);
void fork_unregister(struct baton *b);

/* trace.c: tells the trace function of one step of the lease (e: NULL), or of an election */
void trace_step(const struct baton *b, const struct baton_election *e, const struct event *ev,
		const struct actions *out);

/* log.c */
int log_start(struct baton *b, struct baton_error *err);
void log_stop(struct baton *b);
void log_put(struct baton *b, int level, int code, const char *election, uint64_t term,
	     const char *detail, const char *format, ...) __attribute__((format(printf, 7, 8)));

/* What a driver says about an election, in the core's words. */
/* False: there is no memory for the name of a candidate in the record. */
bool peers_view(struct baton_election *e, const struct job *job, const struct baton_record *r,
		struct view *v);

/* Counts a value into the bucket of its power of two. */
void count_into(struct histogram *h, uint64_t value);

#endif
