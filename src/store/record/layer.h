/*
 * layer.h: what the files of this folder share. Together they build all of baton-store.h on
 * compare-and-set.
 *
 *   driver.c      the store, its lanes, and the options that every record store's URL can have
 *   lease.c campaign.c release.c observe.c watch.c candidates.c orders.c history.c list.c doctor.c
 *                 the verbs of the contract, each in the file of its name
 *   rounds.c      carries out what tasks ask for, in as few requests as the adapter can
 *   known.c       elections that are watched or claimed; other processes' leases; our own leases
 *   show.c        a leader's new profile, in the record of its election
 *   locks.c       native locks beside the records, if the URL asks for them
 *   sweep.c       deletes what is no longer needed (R10)
 *   keys.c        names as keys, tokens as versions; rows.c: rows of a database as items
 *   decide/       what is written when: pure
 *
 * What is in the store:
 *
 *   l/LEASE       a lease: written by its owner with every renewal
 *   e/NAME        an election: its term, the claim, an order, a pause, the last leaderships
 *   c/LEASE       the elections that the owner of a lease is a candidate of; further pages are
 *                 c/LEASE.2, c/LEASE.3 ...
 *
 * store->base.lock protects all tables. It is held for a few instructions, or for one step of a
 * task, and never during a request.
 *
 * Elections in the table (struct record_known) are those that are watched, or that a claim of ours
 * stands on. A lease of another process (struct record_seen) is watched while an election in
 * the table names it: we note its version, and since when we know that version (R3).
 */
#ifndef BATON_RECORD_LAYER_H
#define BATON_RECORD_LAYER_H

#include <sys/queue.h>

#include "base/name_table.h"
#include "store/base.h"
#include "store/record/adapter.h"
#include "store/record/decide/codec.h"
#include "store/record/decide/decide.h"
#include "store/watch_index.h"

#pragma GCC visibility push(hidden)

/* Room for "e/" and a name of which every byte is written as three. */
#define RECORD_KEY_ROOM (3 * BATON_NAME_MAX + 8)
/* At most this many tasks are carried out together, because each takes some ten kilobytes. */
#define RECORD_JOBS_MAX 256

/* How many of those that are left go into the next batch. */
static inline size_t record_least(size_t left, size_t max)
{
	return left < max ? left : max;
}
/* Up to this many elections are read one by one. More of them are looked at with a list, if that
 * takes fewer requests. */
#define RECORD_FEW 20
/* The rounds of a batch, at most. A conflict means that another process has written, and so many
 * conflicts in a row don't happen by chance. */
#define RECORD_ROUNDS_MAX 16

/* ---- known.c ---- */

LIST_HEAD(record_elections, record_known);
LIST_HEAD(record_showns, record_shown);

struct record_known {
	struct watched watched; /* by its key */
	char *name;
	char *text; /* the record as last read or written; NULL: no record, or it is unknown */
	size_t n;
	struct record_version version; /* of the text */
	uint64_t noted_ns;             /* the text is not older than this; 0: it is unknown */
	struct record_hold hold;
	/* Watching. */
	struct record_version told; /* the version that the watchers have been told of */
	bool is_told;               /* `told` counts: the record was read since it is watched */
	bool is_listed;             /* the last list had this record */
	bool is_stale;              /* the record is to be read */
	struct record_seen *seen;   /* the other process's lease that it names; NULL: none */
	LIST_ENTRY(record_known) of_seen;
	/* Our own claim. */
	struct record_claim claim;
	struct record_ours *ours; /* NULL: there is none */
	LIST_ENTRY(record_known) of_ours;
	uint64_t confirmed_ns; /* when the list was begun that last showed the version we wrote */
	uint64_t lock_ns;      /* when its native lock was last taken or kept; 0: it isn't ours */
	bool owes_loss; /* its lock is about to end, and its leader has not heard of that yet */
};

/* A native lock that is to be given back. */
struct record_spent_lock {
	struct record_spent_lock *next;
	char lease_id[BATON_LEASE_ID_MAX + 1];
	char name[];
};

/* A lease of another process. */
struct record_seen {
	struct name_node node; /* by its id */
	struct record_sight sight;
	uint64_t age_ns;                   /* at the last look, by the server's clock */
	struct record_elections elections; /* those in the table that name it */
	const void *buried_by;             /* the task that does so in this round; NULL: none */
	const void *looked_by;             /* the list whose look reads it; NULL: none */
	unsigned n_users;                  /* requests under way that will note the lease */
	bool is_over_told;                 /* watchers know that the time of this version is over */
	char id[BATON_LEASE_ID_MAX + 1];
};

/* A page of our candidacies. */
struct record_shown_page {
	struct record_shown_page *next; /* the one before it */
	size_t number;                  /* from 0 */
	size_t size;                    /* an upper bound of its bytes */
	struct record_own own;
	struct record_showns shown;
	bool is_dirty;
};

/* One candidacy. */
struct record_shown {
	struct name_node node; /* by the election's name */
	LIST_ENTRY(record_shown) of_page;
	struct record_shown_page *page;
	size_t size;
	struct record_shown_profile *profile;
	char name[];
};

/* How a candidate shows itself in one or several elections. */
struct record_shown_profile {
	size_t n_users;
	size_t number; /* its number on the page that is being written; SIZE_MAX: not there yet */
	int64_t updated_ms;
	int32_t priority;
	uint32_t score_permille;
	bool is_healthy;
	char metadata[];
};

/* A lease of our own: it was opened, or perhaps was, and is not known to be closed. */
struct record_ours {
	struct record_ours *next;
	struct record_own own;
	uint64_t ttl_ns;
	struct record_elections claims;
	uint32_t n_stand;
	uint32_t n_owed;     /* losses that leaders have not heard of */
	bool was_claimed_on; /* an election may name it */
	uint64_t renewed_ns; /* when the last renewal was begun, if there are native locks */
	uint64_t forfeit_ns; /* when the core had heard of all that are forfeit; 0: not yet */
	struct name_table shown;
	struct record_shown_page *pages; /* the newest first */
	char id[BATON_LEASE_ID_MAX + 1];
	char owner[BATON_NAME_MAX + 1];
	char address[BATON_NAME_MAX + 1];
};

struct record_store {
	struct store_base base;
	const struct record_adapter *adapter;
	void *store; /* the adapter's */
	struct record_options options;
	struct baton_traits traits;
	struct watch_index elections; /* of struct record_known */
	struct name_table leases;     /* of struct record_seen */
	struct record_ours *ours;
	struct record_spent_lock *spent;
	size_t n_seen_max; /* at this many leases, the useless ones are dropped */
	size_t n_watched;
	bool is_live;   /* the watch stands: it hears of every change */
	bool has_stale; /* an election that is watched is to be read */
	bool is_tried;  /* compare-and-set was tried, and works there */
	bool rings;     /* claims were released, and the watch lane has not rung yet */
};

struct record_lane {
	struct store_lane base;
	struct record_store *store;
	void *lane; /* the adapter's */
	int kind;
	/* Of the watch lane. */
	int wake;         /* an eventfd: ends a wait */
	bool is_standing; /* the adapter's push stands, if it has one */
	bool is_all;      /* everything is to be looked at */
	uint64_t next_ns; /* when the next look is due */
	uint64_t sweep_ns;
	struct record_sweeper *sweeper;
};

/* All of these are called with the lock held. */

/* NULL: the election isn't in the table. */
struct record_known *record_known_find(struct record_store *s, const char *key);
/* Adds it; NULL: no memory. */
struct record_known *record_known_get(struct record_store *s, const char *key, const char *name);
/* Frees the entry if the election is unwatched and no claim of ours stands on it. */
void record_known_tidy(struct record_store *s, struct record_known *k);
/* Notes that the record has that version, and is e, with that text. e NULL: the text isn't valid. A
 * request that was sent at sent_ns has found that or written it. False: we know something newer. */
bool record_known_note(struct record_store *s, struct record_known *k,
		       const struct record_version *version, const struct record_election *e,
		       const struct bytes *text, uint64_t sent_ns);
/* The record as we know it. False: we don't know it. */
bool record_known_read(const struct record_known *k, struct record_election *out);
/* The same, if no other write followed that of our claim. False: the record must be read. */
bool record_known_claimed(const struct record_known *k, struct record_election *out);
void record_known_hint(struct record_store *s, struct record_known *k);
/* Sets our claim that stands on the election, or may stand there. NULL: there is none, and the
 * claim's lock is spent. */
void record_known_claim(struct record_store *s, struct record_known *k, struct record_ours *ours,
			const struct record_claim *claim);
/* Whether every change of the election surely causes a hint. k may be NULL. */
bool record_known_is_watched(const struct record_store *s, const struct record_known *k);

struct record_seen *record_seen_find(struct record_store *s, const char *id);
/* The same, but NULL for a lease of ours: a list of candidates has put those into the table,
 * too. */
struct record_seen *record_seen_other(struct record_store *s, const char *id);
/* Adds it; NULL: no memory. ttl_ns: what an election that names the lease says, or 0. It counts
 * when the lease's record is missing. */
struct record_seen *record_seen_get(struct record_store *s, const char *id, uint64_t ttl_ns);
/* Notes the lease's record, which was received at now_ns at the latest. lease NULL: it is missing.
 * Gives hints if the lease has died. */
void record_seen_note(struct record_store *s, struct record_seen *seen,
		      const struct record_version *version, const struct record_lease *lease,
		      bool is_fresh, uint64_t now_ns);
/* Gives a hint for all elections that name the lease. */
void record_seen_hint(struct record_store *s, struct record_seen *seen);
/* Whether the lease needs no look now: it is dead, or was read within the last two polls. */
bool record_seen_is_recent(const struct record_store *s, const struct record_seen *seen,
			   uint64_t now_ns);

struct record_ours *record_ours_find(struct record_store *s, const char *id);
/* NULL: no memory. */
struct record_ours *record_ours_add(struct record_store *s, const struct baton_lease *lease);
/* Also drops its claims and candidacies. */
void record_ours_remove(struct record_store *s, struct record_ours *ours);

void record_tables_done(struct record_store *s);

/* ---- keys.c ---- */

struct record_key {
	char text[RECORD_KEY_ROOM];
};

struct record_key record_key_of(const struct record_store *s, int kind, const char *name);
/* The key of a page; pages are numbered from 0. */
struct record_key record_page_key(const char *lease_id, size_t page);
/* The lease that a key below l/ or c/ is about; "": not a lease. */
void record_lease_of_key(const char *key, char id[BATON_LEASE_ID_MAX + 1]);
uint64_t record_random(void);

/* ---- rounds.c ---- */

enum record_job_kind {
	RECORD_JOB_KEEP,
	RECORD_JOB_CAMPAIGN,
	RECORD_JOB_EDIT,
};

/* A task on its way: one record that a call is about. */
struct record_job {
	int kind;
	int op;
	union {
		struct record_keep keep;
		struct record_campaign campaign;
		struct record_edit edit;
	} u;
	const char *name;      /* of the election; NULL: the job is about a lease or candidates */
	struct record_key key; /* of its record */
	struct record_turn turn;
	struct record_lease lease;
	struct record_election election;
	struct record_hold hold;          /* used if the election isn't in the table */
	struct record_sight sight;        /* used if the lease isn't in the table */
	struct record_version buried;     /* the version that `rival` is buried from */
	struct record_key rival_key;      /* the key of that lease */
	const struct record_job *follows; /* the task that buries the same lease */
	/* PUBLISH: writes the value, with a new w. False: no memory. */
	bool (*encode)(void *arg, uint64_t w, struct bytes *out);
	void *arg;
	int code;                 /* BATON_E_, if its outcome is FAILED or UNKNOWN */
	uint64_t young_ns;        /* on a store that forgets: how long no candidate can win */
	uint64_t lock_ns;         /* when the request for the lock was sent */
	uint64_t lock_free_in_ns; /* REFUSED: for how long another program has it */
};

/* NULL: no memory, which call->error says. */
struct record_job *record_jobs_new(struct baton_call *call, size_t n);
void record_job_init(struct record_job *j, const struct record_store *s, int kind,
		     const char *name);
/* Runs the jobs until all of them are done. How each has ended stands in its own struct. */
void record_jobs_run(struct record_lane *lane, struct baton_call *call, struct record_job *jobs,
		     size_t n);
const struct record_task *record_job_task(const struct record_job *j);

/* NULL: no memory, which call->error says. */
struct record_item *record_items_new(struct baton_call *call, size_t n);
void record_items_free(struct record_item *items, size_t n);
/* Any number of items, in batches. */
void record_get(struct record_lane *lane, struct baton_call *call, struct record_item *items,
		size_t n, bool fresh);
void record_put(struct record_lane *lane, struct baton_call *call, struct record_item *items,
		size_t n);
void record_drop(struct record_lane *lane, struct baton_call *call, struct record_item *items,
		 size_t n);
/* The election as it is before its first record. */
void record_no_election(struct record_election *e, const char *name);
/* Parses the election in an item; if there is no record, see record_no_election(). False: the value
 * isn't valid, or is another election's (S9). The item is FAILED then. */
bool record_read_election(struct baton_call *call, struct record_item *item, const char *name,
			  struct record_election *out);
bool record_read_lease(struct baton_call *call, struct record_item *item, struct record_lease *out);

struct record_look {
	const char *id;
	uint64_t ttl_ns; /* as told by the election that names the lease */
};

/* Reads those leases. always: also those that were read lately. If a lease is missing in a read
 * that may be old, it is read again, fresh (R4). Returns OK, or FAILED if not all could be read. */
int record_look(struct record_lane *lane, struct baton_call *call, const struct record_look *list,
		size_t n, bool always);
/* Returns FAILED; call->error says that there is no memory. */
int record_no_memory(struct baton_call *call);

/* ---- lease.c ---- */

/* A claim of ours, as a copy. */
struct record_held {
	char name[BATON_NAME_MAX + 1];
	struct record_claim claim;
	bool stands;
	uint64_t lock_ns; /* its native lock: as in struct record_known */
	uint64_t sent_ns; /* when a renewal asked to keep the lock; 0: it did not */
	int outcome;      /* the outcome of that */
};

/* Copies of a lease's claims with that standing; NO_CLAIM: all claims. NULL: no memory; the call's
 * error says so. */
struct record_held *record_held_copy(struct record_store *s, struct baton_call *call,
				     const char *lease_id, uint32_t standing, size_t *n);
/* Notes what has become of a claim; NULL: it is over. */
void record_held_set(struct record_store *s, const char *lease_id, const char *name,
		     const struct record_claim *claim);

/* ---- locks.c ---- */

bool record_has_locks(const struct record_store *s);
/* Takes the lock of the job's election, for the job's lease. */
int record_lock_take(struct record_lane *lane, struct baton_call *call, struct record_job *j);
/* After a campaign or a settling has ended: notes its lock with the claim, or spends it. False:
 * the lock can't be counted on, so the claim is still in doubt. */
bool record_lock_book(struct record_store *s, const struct record_job *j, const char *lease_id,
		      struct record_claim *claim);
/* Before the renewal of a lease: keeps its locks. NULL: no memory. */
struct record_held *record_locks_keep(struct record_lane *lane, struct baton_call *call,
				      const struct baton_lease *lease, size_t *n);
/* After the renewal, with the result of record_locks_keep(): a claim whose lock is lost is forfeit.
 * outcome: that of the renewal itself. Returns the outcome with the locks counted in. */
int record_locks_judge(struct record_store *s, struct baton_call *call,
		       const struct baton_lease *lease, struct record_held *kept, size_t n,
		       int outcome);
/* Notes that the leader hears of the loss of this claim. With the lock held. */
void record_lock_told(struct record_known *k);
/* Notes that the core has heard of all forfeit claims: claims() has told it which claims it has,
 * and those are not among them. */
void record_locks_told(struct record_store *s, const struct baton_lease *lease);
/* Whether there are forfeit claims that are to be settled now: the work on them has had all of its
 * time (S7). */
bool record_locks_were_lost(struct record_store *s, const struct baton_lease *lease);
/* Drops the lock of one election now. */
void record_lock_drop(struct record_lane *lane, const struct baton_call *call, const char *name,
		      const char *lease_id);
/* Notes the lock of a claim that is over, so that it is dropped later. With the store's lock
 * held. */
void record_lock_spend(struct record_store *s, const char *name, const char *lease_id);
/* Drops the locks that are spent. */
void record_locks_drop(struct record_lane *lane, const struct baton_call *call);

/* ---- release.c ---- */

/* Gives all claims of a lease back that is about to be closed, so that watchers hear of it. */
void record_release_all(struct record_lane *lane, const struct baton_call *call,
			const char *lease_id);

/* ---- show.c ---- */

/* Of the elections in the list, those that this lease leads get the published profile in their
 * records. If that fails, the publication's outcome says so. */
void record_show_leaders(struct record_lane *lane, struct baton_call *call,
			 const struct baton_lease *lease, struct baton_publication *list, size_t n);

/* ---- watch.c ---- */

/* For the watch lane's alarm. is_release: claims were released, and other processes must be woken;
 * else: claims were won, and their lease needs an alarm. */
void record_watch_ring(struct record_store *s, bool is_release);
/* The watch lane is to look again what it must listen for. With the lock held. */
void record_watch_wake(struct record_store *s);

/* ---- candidates.c ---- */

void record_shown_done(struct record_ours *ours);
/* Deletes the pages of a lease that is over. */
void record_shown_drop(struct record_lane *lane, const struct baton_call *call,
		       const char *lease_id);

/* ---- doctor.c ---- */

/* Whether compare-and-set works there. It is tried once, if the adapter asks for that. */
bool record_try(struct record_lane *lane, struct baton_call *call);

/* ---- sweep.c ---- */

/* NULL: no memory. */
struct record_sweeper *record_sweeper_new(void);
void record_sweeper_free(struct record_sweeper *w);
/* When the next sweep is due, counted from now. */
uint64_t record_sweep_ns(void);
void record_sweep(struct record_lane *lane, uint64_t deadline_ns);

#pragma GCC visibility pop

#endif
