/*
 * suite.h: what every case of the conformance suite is written with.
 *
 * A case is a function that plays one sentence of the list through the public API, in a process of
 * its own and at a place of its own in the store. It fails by CHECK(), which ends that process,
 * so a case never cleans up after a failure, and never waits without a limit.
 *
 *   local    a candidate in this process: a handle, an election, and all events in order
 *   remote   a candidate in another process: it can be killed, stopped, and told to do things
 *   backend  what can be done to this kind of store from outside (backend.h)
 *
 * Competitors share the election's name and never an id, unless the case is about just that.
 */
#ifndef BATON_CONFORMANCE_SUITE_H
#define BATON_CONFORMANCE_SUITE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "baton.h"
#include "lists.h"
#include "oracle.h"

#define PLACE_MAX 512
#define LOCALS_MAX 128
#define REMOTES_MAX 32
#define MS ((uint64_t)1000000)

/* What the process of a case tells the one that counts; in shared memory. */
struct result {
	bool passed;
	bool adapted;
	/* The machine or its disk stood still for longer than the case's timings allow (L6): it is
	 * tried again with a longer lease, unless what it found is a violation of safety. */
	bool disturbed;
	bool checked;      /* it failed by a CHECK(), and not by a crash */
	bool is_safety;    /* what that found is a violation of safety */
	uint64_t n_faults; /* that were injected, by the network or into calls of the system */
	uint32_t ms;
	char text[1024]; /* why it failed */
	char note[256];  /* what was measured, or how it was adapted */
	char step[128];  /* what it waits for at the moment */
};

struct testcase {
	const struct backend *backend;
	const struct entry *entry;
	struct result *result;
	char url[PLACE_MAX]; /* of this case alone */
	char name[64];       /* the election of this case */
	uint64_t lease_ms;
	bool full; /* as often as the list says, not as often as a quick run can */
	struct local *locals[LOCALS_MAX];
	unsigned n_locals;
	struct remote *remotes[REMOTES_MAX];
	unsigned n_remotes;
	struct oracle *oracle;
	int oracle_fd;
	void *hand; /* the backend's */
};

/* What a case can't do without; a store that lacks it must say why in not-applicable.txt. */
enum need {
	NEEDS_NOTHING = 0,
	NEEDS_PROCESSES = 1 << 0, /* candidates in several processes */
	NEEDS_DESTROY = 1 << 1,   /* the claim can be taken away from outside */
	NEEDS_UNLOCK = 1 << 2,    /* ... while the session or lease lives on */
	NEEDS_DOWN = 1 << 3,      /* the store can be made to fail, and to come back */
	NEEDS_HOLE = 1 << 4,      /* the store can be made to swallow all that is asked */
	NEEDS_REPLIES = 1 << 5,   /* replies can be lost and late */
	NEEDS_FORGET = 1 << 6,    /* the store can lose its data */
	NEEDS_DENY = 1 << 7,      /* the store can refuse us */
	NEEDS_TERM = 1 << 8,      /* the term in the record can be set */
	NEEDS_FAIL = 1 << 9,      /* one kind of call can be made to fail */
	NEEDS_NAMES = 1 << 10,    /* the names in the store can be read by another client */
	NEEDS_PUSH = 1 << 11,     /* the store pushes */
	NEEDS_POOLER = 1 << 12,   /* something can stand between the store and us */
	NEEDS_CALLS = 1 << 13,    /* the store counts what it is asked */
	NEEDS_HISTORY = 1 << 14,  /* past leaderships are kept */
	/* Not a need: it keeps the store so busy that nothing else should run beside it. */
	ALONE = 1 << 16,
};

struct entry {
	const char *id;
	const char *title;
	void (*play)(struct testcase *t);
	unsigned needs;
	unsigned limit_s; /* 0: the usual */
};

extern const struct entry cases_basic[], cases_events[], cases_work[], cases_crash[], cases_terms[],
	cases_orders[], cases_names[], cases_faults[], cases_losses[], cases_options[],
	cases_scale[], cases_oracle[], cases_drain[], cases_listing[];

/* ---- failing and waiting ---- */

/* What begins with a promise ("S3: ...") is a violation of safety: nothing excuses that. */
#define CHECK(t, condition, ...) \
	((condition) ? (void)0 : testcase_fail((t), __FILE__, __LINE__, #condition, "" __VA_ARGS__))

_Noreturn void testcase_fail(struct testcase *t, const char *file, int line, const char *condition,
			     const char *format, ...) __attribute__((format(printf, 5, 6)));
/* What was measured, or how the case was adapted: stands behind its line in the summary. */
void testcase_note(struct testcase *t, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void testcase_adapted(struct testcase *t, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

uint64_t now_ns(void);
/* Until the answer is yes; fails after limit_ms with `what` as the reason. */
void await(struct testcase *t, bool (*is_so)(void *arg), void *arg, uint64_t limit_ms,
	   const char *what);
/* The time passes, and the answer stays yes. `what` may begin with the promise that is broken if it
 * doesn't: "S9: ...". */
void stays(struct testcase *t, bool (*is_so)(void *arg), void *arg, uint64_t for_ms,
	   const char *what);
/* Only the time passes: where the case is about its passing. */
void pass_time(uint64_t for_ms);

/* After how long the store ends a lease that nobody renews. */
uint64_t expiry_ms(const struct testcase *t);
/* L1, with what a busy machine takes: nobody may take longer to lead. */
uint64_t failover_ms(const struct testcase *t);
/* For what has no bound of its own. */
uint64_t soon_ms(const struct testcase *t);
/* When a leader whose renewals fail says no at the latest: renew + grace. */
uint64_t deadline_ms(const struct testcase *t);

/* ---- local candidates ---- */

struct seen {
	struct baton_event event;
	uint64_t at_ns;
};

struct local {
	struct testcase *t;
	struct baton *b;
	struct baton_election *e;
	char id[BATON_NAME_MAX + 1];
	pthread_mutex_t lock; /* seen, n_seen, room */
	pthread_cond_t changed;
	struct seen *seen;
	size_t n_seen;
	size_t room;
	size_t cursor; /* local_next() goes on from here */
	/* Called in the handler, after the event was recorded. */
	void (*hook)(struct local *p, const struct baton_event *event);
	void *arg; /* the case's */
};

/* What a case may want to be different; a zeroed one means: as usual. */
struct cast {
	const char *url;
	const char *name;
	const char *id;
	uint64_t lease_ms;
	void (*hook)(struct local *p, const struct baton_event *event);
	void *arg;
	void (*tune)(struct baton_options *o);
	void (*tune_election)(struct baton_election_options *o);
	bool pulls; /* no handler */
	bool idle;  /* don't start it */
};

/* A handle and an election, started; closed when the case ends. cast may be NULL. */
struct local *local_new(struct testcase *t, const struct cast *cast);
/* A second election on the same handle. */
struct local *local_more(struct local *with, const struct cast *cast);
/* Stops, frees, closes; and checks that its events were in order (S8). */
void local_close(struct local *p);
void local_stop(struct local *p);

/* The next event of that kind, from the last one found; fails after limit_ms. */
const struct seen *local_next(struct local *p, int kind, uint64_t limit_ms);
/* The same, but NULL if there is none by then. */
const struct seen *local_try_next(struct local *p, int kind, uint64_t limit_ms);
/* The last event of that kind, if there was one. */
bool local_last(struct local *p, int kind, struct seen *out);
/* From now on only what comes from now on. */
void local_catch_up(struct local *p);
size_t local_count(struct local *p, int kind); /* kind 0: all */
/* Waits until it leads; its term. */
uint64_t local_leads(struct local *p, uint64_t limit_ms);
/* Waits until it names that leader in a status. */
void local_sees(struct local *p, const char *leader, uint64_t limit_ms);
/* Waits until it knows of a leader in at least that term. */
void local_knows(struct local *p, uint64_t term, uint64_t limit_ms);
void local_status(struct local *p, struct baton_status *status);
/* The one of n that leads, or NULL. */
struct local *leader_of(struct local **list, unsigned n);
/* Waits for it. */
struct local *await_leader(struct testcase *t, struct local **list, unsigned n, uint64_t limit_ms);
/* It leads in a later term than that one (S3, S4). */
void local_is_above(struct local *p, uint64_t term);
/* As baton_observe() and test_candidates(); but on a busy machine a call can come too late
 * (L6), which says nothing, so they ask again for a while. */
int patient_observe(struct testcase *t, struct baton *b, const char *name,
		    struct baton_observed *status, struct baton_error *err);
int patient_list(struct testcase *t, struct baton *b, const char *name,
		 struct baton_candidate *list, size_t max, struct baton_error *err);
int patient_history(struct testcase *t, struct baton *b, const char *name,
		    struct baton_leadership *list, size_t max, struct baton_error *err);
/* by_order: as a third party; else the leader itself. */
int patient_transfer(struct testcase *t, struct local *from, struct local *to, bool by_order,
		     struct baton_error *err);
bool local_is_leader(void *local);
bool local_is_no_leader(void *local);

/* A thread that puts the oracle's question to local candidates, a track each, and pauses; 0: it
 * never does. Who resigns as soon as it leads has to be asked often, or no leadership is ever
 * seen. */
#define SAMPLE_NS 500000
#define SAMPLE_OFTEN_NS 50000
struct sampler;
struct sampler *sampler_new(struct testcase *t, struct local **list, unsigned n, unsigned track,
			    long pause_ns);
void sampler_end(struct sampler *s);
/* Makes the oracle of the test case. */
void testcase_oracle(struct testcase *t);
/* Fails unless the oracle is content, and has seen something. */
void testcase_judge(struct testcase *t);

/* ---- remote candidates ---- */

struct remote {
	struct testcase *t;
	pid_t pid;
	unsigned track;  /* of the oracle */
	bool was_killed; /* by us */
	int in;          /* commands */
	int out;         /* lines that it says */
	size_t n_text;
	char id[BATON_NAME_MAX + 1];
	char error[256]; /* the last one that it told */
	char text[8192];
};

struct remote_options {
	const char *url;
	const char *name;
	const char *id;
	uint64_t lease_ms;
	int64_t clock_s; /* its wall clock is off by so much */
	unsigned track;  /* in the oracle of the test case, if there is one */
	unsigned n;      /* candidates; 0: one */
	bool cycle;      /* resigns as soon as it leads, again and again */
	bool outlive;    /* its lease ends by its expiry alone; it says each deadline */
	bool spins;      /* its sampler never pauses, so it asks first of all after a stop */
};

struct remote *remote_new(struct testcase *t, const struct remote_options *o);
void remote_signal(struct remote *k, int signal);
void remote_stopped(struct remote *k); /* SIGSTOP, and waits until it stands still */
void remote_kill(struct remote *k);    /* SIGKILL, and reaps it */
void remote_say(struct remote *k, const char *command);
/* The next line that begins with the word; false after limit_ms, or if it died. */
bool remote_hears(struct remote *k, const char *word, char *line, size_t size, uint64_t limit_ms);
/* Waits until it leads; its term. */
uint64_t remote_leads(struct remote *k, uint64_t limit_ms);
/* Tells it to stop, and waits for its end. */
void remote_end(struct remote *k);
/* In that process: a check has failed. Tells it to the one that started it, and on stderr. */
void remote_broke(const char *words, const char *text);
/* The program of that other process. */
int remote_main(int argc, char **argv);
/* Adds to the wall clock of this process, for everybody who asks libc. */
void clock_shift(int64_t by_s);

/* ---- injected faults: only in conformance-faulty ---- */

/* In the environment, so that remote candidates have them, too: the seed. */
#define FAULTS_SEED "BATON_TEST_FAULTS"

bool faults_can_be(void);
bool faults_are_on(void);
/* From now on calls of the system fail now and then, if they are on. */
void faults_begin(void);
/* Whether what came out of a fault is worth another try: what only prepares the test case must
 * work. */
bool faults_retry(int code);

/* ---- the frame ---- */

void testcase_open(struct testcase *t);
void testcase_close(struct testcase *t);
/* Starts to measure how long this machine, and its store, let us wait. */
void stall_watch(struct testcase *t);
uint64_t stall_worst_ms(void);
/* Notes how many faults there were so far: a run without any has shown nothing. */
void testcase_count_faults(struct testcase *t);

#endif
