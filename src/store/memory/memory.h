/*
 * memory.h: what the files of the memory driver share. The store NAME is one struct memory: tables
 * of leases and elections under one lock, which is held for the few instructions of each verb.
 *
 *   driver.c      the store, its lanes, the table of verbs; rows for callbacks
 *   lease.c campaign.c release.c observe.c watch.c candidates.c orders.c history.c list.c
 *                 the verbs of the contract, each in the file of its name
 *   state.c       leases, claims, candidates and history: what a server would keep
 *   hints.c       who watches which election
 *   faults.c      the clock, waiting, and what the switches do to calls
 *   controls.c    the switches of baton-memory.h
 *   words.c       strings that are shared
 *   registry.c    the stores of this process by name
 *
 * memory.lock protects everything in struct memory, except what never changes, and except `refs`
 * and `next`, which the registry's lock protects. Leases whose time has passed are swept away
 * before a verb looks at anything, so a lease that is found is alive.
 *
 *   lease 1 --- n election   its claims: renewing is O(1), closing is O(claims)
 *   lease 1 --- n candidate n --- 1 election
 *   lane  1 --- n watch     n --- 1 election: a hint is O(watchers of that name)
 */
#ifndef BATON_MEMORY_STORE_H
#define BATON_MEMORY_STORE_H

#include <pthread.h>
#include <sys/queue.h>

#include "base/name_table.h"
#include "baton-memory.h"
#include "baton-store.h"
#include "store/base.h"

#define MEMORY_HISTORY_MAX 100

/* ---- words.c ---- */

/* A string with many owners. */
struct memory_word {
	uint32_t refs;
	char text[];
};

struct memory_word *memory_word_new(const char *text);
struct memory_word *memory_word_ref(struct memory_word *w);
void memory_word_unref(struct memory_word *w);

/* ---- what the store keeps ---- */

LIST_HEAD(memory_leases, memory_lease);
LIST_HEAD(memory_claims, memory_election);
LIST_HEAD(memory_candidates, memory_candidate);
LIST_HEAD(memory_watches, memory_watch);
LIST_HEAD(memory_lanes, memory_lane);
TAILQ_HEAD(memory_queue, memory_watch);

struct memory_lease {
	struct name_node node;
	LIST_ENTRY(memory_lease) all;
	struct memory_claims claims;
	struct memory_candidates candidates;
	uint64_t expires_ns; /* on the store's clock */
	struct memory_word *owner;
	struct memory_word *address;
	uint32_t n_claims;
	char id[];
};

/* A candidate's profile. metadata NULL: none. */
struct memory_profile {
	char *metadata;
	int32_t priority;
	uint32_t score_permille;
	bool is_healthy;
};

struct memory_candidate {
	LIST_ENTRY(memory_candidate) of_lease;
	LIST_ENTRY(memory_candidate) of_election;
	struct memory_lease *lease;
	struct memory_election *election;
	struct memory_profile profile;
	int64_t updated_ms;
};

/* One leadership of the history. `ended` is NULL while it lasts. */
struct memory_past {
	uint64_t term;
	uint64_t since_ns;
	uint64_t until_ns;
	int64_t since_ms;
	int64_t until_ms;
	struct memory_word *leader;
	struct memory_word *ended;
	struct memory_word *note; /* NULL: none */
};

/* The outcome of campaigns, if a test determines it. */
struct memory_rig {
	uint32_t times;
	bool wins;
};

struct memory_election {
	struct name_node node;
	struct memory_lease *holder;       /* NULL: free */
	LIST_ENTRY(memory_election) claim; /* on the holder's list */
	struct memory_candidates candidates;
	struct memory_watches watches;
	uint64_t term; /* the highest ever (S3) */
	uint64_t nonce;
	int64_t since_ms;
	struct memory_profile profile;    /* that of the holder */
	struct baton_order *order;        /* NULL: none */
	struct memory_word *reserved_for; /* NULL: no reservation */
	uint64_t reserved_until_ns;
	struct memory_past *past; /* a ring */
	uint8_t past_room;
	uint8_t past_n;
	uint8_t past_first;
	bool paused;
	struct memory_rig rig;
	char name[];
};

/* ---- handles, lanes and the store itself ---- */

enum memory_fault_kind {
	MEMORY_FAULT_NONE,
	MEMORY_FAULT_FAIL,
	MEMORY_FAULT_DOUBT,
	MEMORY_FAULT_DELAY,
	MEMORY_FAULT_DELAY_REPLY,
	MEMORY_FAULT_DROP_REPLY,
	MEMORY_FAULT_BLACK_HOLE,
};

struct memory_fault {
	uint64_t serial; /* tells a fault from the one that replaced it */
	uint64_t delay_ns;
	uint32_t times; /* for how many calls it still applies */
	uint8_t kind;
	uint8_t slot;
	bool at_once;
	struct baton_error error;
};

/* A handle: the driver's store, or a program's access to the switches. */
struct baton_memory {
	struct memory *memory;
	uint64_t generation; /* tells on which side of a fork it was opened */
};

struct memory_watch {
	LIST_ENTRY(memory_watch) of_election;
	LIST_ENTRY(memory_watch) of_lane;
	TAILQ_ENTRY(memory_watch) pending_next;
	struct memory_election *election;
	struct memory_lane *lane;
	uint64_t cookie;
	bool pending;
};

struct memory_lane {
	struct baton_memory *handle;
	LIST_ENTRY(memory_lane) all;
	pthread_cond_t wake;
	struct memory_watches watches;
	struct memory_queue pending;
	bool woken;  /* watch_wake() was called */
	bool broken; /* the last wait failed, so the next one hints at everything */
};

/* Why a leadership has ended, if the store itself has ended it. */
enum memory_end {
	MEMORY_END_EXPIRED,
	MEMORY_END_CLOSED,
	MEMORY_END_DESTROYED,
	MEMORY_END_OVERWRITTEN,
	MEMORY_END_TAKEN,
	MEMORY_ENDS,
};

struct memory {
	struct memory *next;
	size_t refs;
	char *name;
	pthread_mutex_t lock;
	pthread_cond_t changed; /* a switch was turned, or a lane was woken */
	struct name_table leases;
	struct name_table elections;
	struct memory_leases all;
	struct memory_lanes lanes;
	uint64_t earliest_ns; /* no lease ends before this */
	uint64_t offset_ns;   /* from the boot clock to the store's, modulo 2^64 */
	uint64_t held_ns;
	int64_t held_wall_ms;
	bool is_held;
	struct memory_word *ends[MEMORY_ENDS];
	struct memory_word
		*reason; /* the last release's reason; the next one's is mostly the same */
	struct memory_fault faults[BATON_MEMORY_VERBS];
	uint64_t fault_serial;
	uint64_t calls[BATON_MEMORY_VERBS];
	uint64_t phantoms; /* how many leases a test has made up */
	struct memory_rig rig;
	uint64_t barred_ns;              /* no winner before this, on the store's clock, ... */
	char barred[BATON_WAIT_MAX + 1]; /* ... and why */
};

/* ---- registry.c ---- */

struct baton_memory *memory_handle_new(const char *url, struct baton_error *err);
/* handle may be NULL. */
void memory_handle_free(struct baton_memory *handle);
/* Whether the handle came through a fork(): its locks may never be free again. */
bool memory_handle_is_forked(const struct baton_memory *handle);

/* ---- faults.c: with the lock held, unless it says otherwise ---- */

int memory_cond_init(pthread_cond_t *cond);
uint64_t memory_now_ns(const struct memory *m);
int64_t memory_wall_ms(const struct memory *m);
/* Waits for the condition, until boot_ns at most, or for a shorter time. */
void memory_wait(struct memory *m, pthread_cond_t *cond, uint64_t boot_ns);
/*
 * Begins a call: takes the lock, waits and fails as the switches say, and sweeps. Returns 0, or the
 * outcome with which the call ends here. memory_leave() must follow in both cases: it does to the
 * reply what the switches say, frees the lock, and returns the outcome that the caller sees.
 */
int memory_enter(struct memory_lane *lane, struct baton_call *call, int verb,
		 struct memory_fault *fault);
int memory_leave(struct memory_lane *lane, struct baton_call *call, struct memory_fault *fault,
		 int outcome);

/* ---- hints.c: with the lock held ---- */

void memory_hint(struct memory_election *e);
/* A lease may end sooner than the watch lanes think: wakes them, so that they look again. */
void memory_hint_sooner(struct memory *m);
int memory_watches_add(struct memory_lane *lane, const char *name, uint64_t cookie);
void memory_watches_remove(struct memory_lane *lane, const char *name, uint64_t cookie);
void memory_watches_clear(struct memory_lane *lane);
int memory_watches_take(struct memory_lane *lane, const struct baton_call *call, uint64_t *cookies,
			size_t max);

/* ---- state.c: with the lock held ---- */

/* Ends all leases whose time has passed. */
void memory_sweep(struct memory *m);
struct memory_lease *memory_lease_find(const struct memory *m, const char *id);
struct memory_lease *memory_lease_new(struct memory *m, const struct baton_lease *lease);
void memory_lease_prolong(struct memory *m, struct memory_lease *l, uint64_t ttl_ns);
void memory_lease_end(struct memory *m, struct memory_lease *l, int end);

struct memory_election *memory_election_find(const struct memory *m, const char *name);
/* Finds or makes the election; NULL: no memory. */
struct memory_election *memory_election_get(struct memory *m, const char *name);
/* Frees the election if there is nothing to remember about it. */
void memory_election_tidy(struct memory *m, struct memory_election *e);

int memory_profile_copy(struct memory_profile *to, const struct baton_profile *from);
/* Takes over the profile's memory. */
void memory_claim(struct memory *m, struct memory_election *e, struct memory_lease *l,
		  const struct memory_profile *profile);
void memory_unclaim(struct memory *m, struct memory_election *e, struct memory_word *ended);

struct memory_candidate *memory_candidate_find(const struct memory_election *e,
					       const struct memory_lease *l);
struct memory_candidate *memory_candidate_new(struct memory_election *e, struct memory_lease *l);
void memory_candidate_free(struct memory *m, struct memory_candidate *c);
/* e may be NULL: an election that the store doesn't know. id: that of the candidate that asks, or
 * "". */
void memory_record(const struct memory *m, const struct memory_election *e, const char *id,
		   struct baton_record *out);
/* The i-th leadership that is remembered, the oldest first. */
struct memory_past *memory_past_at(const struct memory_election *e, uint8_t i);
void memory_forget_all(struct memory *m);
void memory_free_all(struct memory *m);

/* ---- driver.c ---- */

/* Rows for a callback, copied while the lock is held. */
struct memory_rows {
	char *data;
	size_t size;
	size_t room;
};

/* A new row, all zero; NULL: no memory. All rows of a list have the same type. */
void *memory_rows_add(struct memory_rows *rows, size_t size);
/* Puts the error into the call, and returns FAILED. */
int memory_no_memory(struct baton_call *call);

/* ---- the verbs ---- */

int memory_lease_open(void *lane, struct baton_call *call, const struct baton_lease *lease);
int memory_lease_renew(void *lane, struct baton_call *call, const struct baton_lease *lease,
		       uint32_t *n_held);
int memory_lease_close(void *lane, struct baton_call *call, const struct baton_lease *lease);
int memory_claims(void *lane, struct baton_call *call, const struct baton_lease *lease,
		  void (*found)(void *arg, const char *name, uint64_t nonce, uint64_t term),
		  void *arg);
void memory_campaign(void *lane, struct baton_call *call, const struct baton_lease *lease,
		     struct baton_campaign *list, size_t n);
void memory_release(void *lane, struct baton_call *call, struct baton_release *list, size_t n);
void memory_observe(void *lane, struct baton_call *call, struct baton_observation *list, size_t n);
int memory_watch_add(void *lane, const char *name, uint64_t cookie);
void memory_watch_remove(void *lane, const char *name, uint64_t cookie);
int memory_watch_wait(void *lane, struct baton_call *call, uint64_t *cookies, size_t max);
void memory_watch_wake(void *lane);
void memory_publish(void *lane, struct baton_call *call, const struct baton_lease *lease,
		    struct baton_publication *list, size_t n);
int memory_withdraw(void *lane, struct baton_call *call, const struct baton_lease *lease,
		    const char *name);
int memory_candidates(void *lane, struct baton_call *call, const char *name,
		      void (*found)(void *arg, const struct baton_candidate *candidate), void *arg);
int memory_order(void *lane, struct baton_call *call, const char *name,
		 const struct baton_order *given);
int memory_pause(void *lane, struct baton_call *call, const char *name, bool paused);
int memory_history(void *lane, struct baton_call *call, const char *name, size_t max,
		   void (*found)(void *arg, const struct baton_leadership *leadership), void *arg);
int memory_list(void *lane, struct baton_call *call, const char *prefix, const char *after,
		size_t max, void (*found)(void *arg, const char *name), void *arg);

#endif
