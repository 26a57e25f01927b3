/*
 * baton-store.h: the contract between baton and the code that speaks to one kind of store.
 *
 * A driver is straight-line code: each call blocks, but never past its deadline, whatever the
 * network, the name service or the server do. It knows nothing of elections' policy: who
 * campaigns when, who may lead, what a timeout means is decided above it. It owns no thread.
 *
 * Concurrency is the runtime's business: it opens three lanes on a store, and uses each from one
 * thread at a time. What lanes share in `store` is the driver's to lock.
 *
 * The one word that matters is UNKNOWN. FAILED promises that nothing was written and nothing
 * will be, not even late. Who isn't sure says UNKNOWN; the runtime then finds out.
 *
 * A driver is loaded if its `abi` is this one, though its table of functions may be shorter than
 * this one (`size`): what is missing at the end is unsupported. Structs in this header grow at
 * their end. Those that a driver fills in and that start with a size may leave it 0: then they are
 * as they were in the first version. Those that are handed over as arrays never grow.
 *
 * Names, ids and addresses are valid UTF-8 without control characters, 1 to BATON_NAME_MAX bytes;
 * metadata is up to BATON_METADATA_MAX bytes. The runtime has checked that.
 */
#ifndef BATON_STORE_H
#define BATON_STORE_H

#include <baton.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BATON_STORE_ABI 1
#define BATON_STORE_NEVER UINT64_MAX
#define BATON_LEASE_ID_MAX 63 /* bytes: lower case hex digits, '-' */

enum baton_outcome {
	BATON_OUTCOME_OK = 1,
	BATON_OUTCOME_REFUSED, /* the store answered, and the answer is no */
	BATON_OUTCOME_FAILED,  /* nothing was written, nothing will be */
	BATON_OUTCOME_UNKNOWN, /* nobody knows */
};

/* What every call is given: how long it may take, and where to say what went wrong. */
struct baton_call {
	uint64_t deadline_ns;     /* on CLOCK_BOOTTIME */
	struct baton_error error; /* filled in unless the outcome is OK or a plain REFUSED */
	bool is_unasked; /* set if it was answered without the store: no sign that that is well */
	/* Given to lease_close: the lease has surely ended by itself, and nobody asks for it again.
	 * So whatever the store says, what the driver keeps of it is dropped. */
	bool is_last;
};

/* What a process keeps alive. The id is new for every incarnation, and is never used again. */
struct baton_lease {
	char id[BATON_LEASE_ID_MAX + 1];
	uint64_t ttl_ns;
	const char *owner;   /* the candidate's id: a label */
	const char *address; /* may be "" */
	/* Others trust its deadline, and may live on when its process doesn't: no proof of death
	 * ends it, only its expiry. Only given to drivers whose traits say `outlives`, or that
	 * prove no death. */
	bool outlive;
};

/* How a candidate shows itself to others. */
struct baton_profile {
	const char *metadata; /* never NULL */
	int32_t priority;
	uint32_t score_permille;
	bool is_healthy; /* by its own minimum, which the store doesn't know */
};

enum baton_order_kind { BATON_ORDER_NONE, BATON_ORDER_RESIGN, BATON_ORDER_TRANSFER };

struct baton_order {
	uint64_t id;   /* not 0; its own for every order */
	uint64_t term; /* the leadership that it is meant for */
	uint64_t quiet_ms;
	int kind;
	char target[BATON_NAME_MAX + 1]; /* a candidate's id */
	bool target_ok; /* filled in by observe: that candidate is there, and healthy */
	char note[BATON_NOTE_MAX + 1]; /* who ordered it, and why; "": nothing was said */
};

/* How the claim before one that was won has ended. */
enum baton_end {
	BATON_END_UNTOLD,   /* not known, or there was none */
	BATON_END_RELEASED, /* it was given back */
	BATON_END_DIED,     /* its holder is proven dead */
	BATON_END_EXPIRED,  /* nobody renewed it */
};

/* One election as the store sees it. */
struct baton_record {
	uint64_t term;       /* the highest ever; also when nobody holds it */
	uint64_t nonce;      /* of the claim that holds it */
	uint64_t free_in_ns; /* when the claim, or the reservation, can end by itself; or NEVER */
	int64_t since_ms;    /* wall time */
	int32_t priority;
	uint32_t score_permille;
	bool held;     /* somebody's claim stands */
	bool reserved; /* free, but kept for another candidate than the one who asks */
	bool paused;
	/* Its end, and any order for it, will be hinted at for certain: no timer. Also of a claim
	 * that was just won. */
	bool watched;
	char lease_id[BATON_LEASE_ID_MAX + 1];
	char leader[BATON_NAME_MAX + 1];
	char address[BATON_NAME_MAX + 1];
	char metadata[BATON_METADATA_MAX + 1];
	/* Not "": it is free, but nobody at all can win before free_in_ns is over, and this is why:
	 * a few words that fit behind "waits 22 s: ". No failure, so an answer as any other. */
	char wait[BATON_WAIT_MAX + 1];
	struct baton_order order;
	int before; /* BATON_END_...: of a campaign that was won */
	/* About how many candidates there are, where somebody holds it; 0: not known. Where there
	 * are many, standbys heed a hint one after the other. */
	uint32_t n_candidates;
};

/* One of many in a batch; the outcome is filled in for each, and the error code where it fails. */
struct baton_campaign {
	const char *name;
	uint64_t nonce; /* its own for every try */
	uint64_t floor; /* the highest term that we know: the new one must be above it */
	struct baton_profile profile;
	int outcome; /* OK: won in `term`. REFUSED: `record` says why */
	int code;
	uint64_t term;
	struct baton_record *record; /* the caller's memory */
};

struct baton_release {
	const char *name;
	const char *lease_id; /* all three must match, or nothing happens (REFUSED) */
	uint64_t nonce;
	uint64_t term;
	const char *reason;      /* for the history: one word */
	const char *reserve_for; /* a candidate's id, or NULL */
	uint64_t hold_ns;        /* how long it is kept for that one */
	int outcome;
	int code;
};

struct baton_observation {
	const char *name;
	const char *lease_id; /* the asker's, or "": only to tell `reserved` */
	const char *id;       /* the asker's id, or "" */
	int outcome;
	int code;
	struct baton_record *record;
};

struct baton_publication {
	const char *name;
	struct baton_profile profile;
	int outcome;
	int code;
};

enum baton_lane_kind { BATON_LANE_RENEW, BATON_LANE_CAMPAIGN, BATON_LANE_WATCH };

/* What a kind of store can do. */
struct baton_traits {
	size_t size; /* sizeof(struct baton_traits); 0: up to expiry_more_ns */
	uint64_t min_lease_ns;
	uint32_t drift_permille; /* the least that is safe here; usually 0: as configured */
	bool own_leases;         /* a lease carries one election, and is made by its campaign */
	bool pushes;             /* watch returns hints, so standbys need not poll for a release */
	bool proves_death;       /* a dead holder's claim is free at once */
	bool keeps_history;
	const char *promises;  /* for people: what holds, and under which faults it doesn't */
	uint64_t max_lease_ns; /* 0: any */
	/* What raises that, in the URL of every candidate; in ms. NULL: nothing does. */
	const char *max_lease_option;
	/* How long the store takes to end a lease that nobody renews: so many leases (0: one), and
	 * that much more. */
	uint32_t expiry_leases;
	uint64_t expiry_more_ns;
	/* proves_death: but not of a lease with `outlive`. Who proves none needs not say so. */
	bool outlives;
	const char *warning; /* for the log, once, in lower case: what it lacks; NULL: nothing */
};

struct baton_store_config {
	size_t size;
	const char *url;
};

/* A watch_wait() that returns this can't tell what changed: look at everything. */
#define BATON_HINT_ALL UINT64_MAX

struct baton_driver {
	uint32_t abi;  /* BATON_STORE_ABI */
	uint32_t size; /* sizeof(struct baton_driver); 0: up to `fence` */
	const char *name;
	const char *const *schemes; /* NULL at the end: "file" serves "file:..." */

	/* Parses and allocates only. */
	int (*open)(const struct baton_store_config *config, void **store, struct baton_error *err);
	void (*close)(void *store);
	/* NULL for a store: of any of this kind. */
	const struct baton_traits *(*traits)(const void *store);

	/* No I/O either. After fork() the child calls forget() on the store, which closes
	 * descriptors and frees nothing else. */
	int (*lane_open)(void *store, int kind, void **lane, struct baton_error *err);
	void (*lane_close)(void *lane);
	void (*forget)(void *store);

	/* With own_leases lease_open is never called: campaign makes the lease. Every lease that
	 * was opened is closed before the next one with the same "who-which" (the id up to its last
	 * '-') is opened, but for one whose opening ended UNKNOWN: what is still kept of that (a
	 * lock, a session, a connection), opening the next one ends. A request that lands late ends
	 * nothing that is newer than itself. */
	int (*lease_open)(void *lane, struct baton_call *call, const struct baton_lease *lease);
	int (*lease_renew)(void *lane, struct baton_call *call, const struct baton_lease *lease,
			   uint32_t *n_held);
	/* Gives back all that the lease carries. OK also if it was gone. */
	int (*lease_close)(void *lane, struct baton_call *call, const struct baton_lease *lease);
	/* Calls found() for each claim on the lease. */
	int (*claims)(void *lane, struct baton_call *call, const struct baton_lease *lease,
		      void (*found)(void *arg, const char *name, uint64_t nonce, uint64_t term),
		      void *arg);

	/* In one atomic step: the lease lives, nobody else holds it, a term above the stored one
	 * and the floor is minted. Held by the same lease: REFUSED, with its nonce and term. */
	void (*campaign)(void *lane, struct baton_call *call, const struct baton_lease *lease,
			 struct baton_campaign *list, size_t n);
	void (*release)(void *lane, struct baton_call *call, struct baton_release *list, size_t n);
	void (*observe)(void *lane, struct baton_call *call, struct baton_observation *list,
			size_t n);

	/*
	 * The watch lane. Adding a name is followed by one hint for it, once it is really watched;
	 * what can't be added (a BATON_E_ code) is added again after a while.
	 * watch_wait() blocks until there are hints or the deadline; it returns how many, as the
	 * cookies of their names, or negative: the watch is broken, and is to be called again
	 * after a while (names stay added; all are hinted when it works again).
	 */
	int (*watch_add)(void *lane, const char *name, uint64_t cookie);
	void (*watch_remove)(void *lane, const char *name, uint64_t cookie);
	int (*watch_wait)(void *lane, struct baton_call *call, uint64_t *cookies, size_t max);
	/* Makes a watch_wait() under way return; from any thread. */
	void (*watch_wake)(void *lane);

	/* Shows the lease's owner as candidate; gone with the lease. */
	void (*publish)(void *lane, struct baton_call *call, const struct baton_lease *lease,
			struct baton_publication *list, size_t n);
	int (*withdraw)(void *lane, struct baton_call *call, const struct baton_lease *lease,
			const char *name);
	int (*candidates)(void *lane, struct baton_call *call, const char *name,
			  void (*found)(void *arg, const struct baton_candidate *candidate),
			  void *arg);
	/* Leaves an order for the leader of order->term; REFUSED if that leads no more. */
	int (*order)(void *lane, struct baton_call *call, const char *name,
		     const struct baton_order *order);
	int (*pause)(void *lane, struct baton_call *call, const char *name, bool paused);
	/* Newest first. NULL where keeps_history is false. */
	int (*history)(void *lane, struct baton_call *call, const char *name, size_t max,
		       void (*found)(void *arg, const struct baton_leadership *leadership),
		       void *arg);
	/* As baton_work_lock(). No I/O. NULL where work can't be locked. */
	int (*work_lock)(const void *store, const char *name, char *path, size_t size,
			 uint32_t *mode, struct baton_error *err);
	/*
	 * For baton_examine(): calls found() for each thing about this store that is worth knowing:
	 * who answers, rights, settings that endanger the promises, its clock. Makes nothing that
	 * isn't there yet. OK: a lease may be tried on it; REFUSED: not as it is; else it can't be
	 * looked at, and call->error says why. NULL: nothing beyond what a lease shows.
	 */
	int (*examine)(void *lane, struct baton_call *call,
		       void (*found)(void *arg, const struct baton_finding *finding), void *arg);
	/* For an administrator, for the store's own client to run: what makes the tables; and what
	 * makes a guard that refuses older terms, where the store is also what leaders write to.
	 * NULL where there is none. */
	const char *schema;
	const char *fence;

	/* ---- since here, what may be missing in an older driver, or NULL ---- */

	/* Calls found() for the names of elections that begin with prefix and come after `after`,
	 * both of which may be "", in the order of their bytes; at most max of them. */
	int (*list)(void *lane, struct baton_call *call, const char *prefix, const char *after,
		    size_t max, void (*found)(void *arg, const char *name), void *arg);
	/* As observe of one election and candidates, in one request. */
	int (*survey)(void *lane, struct baton_call *call, struct baton_observation *observation,
		      void (*found)(void *arg, const struct baton_candidate *candidate), void *arg);
};

/* What a driver that is loaded by its scheme exports. */
#define BATON_DRIVER_SYMBOL "baton_driver"

#ifdef __cplusplus
}
#endif

#endif
