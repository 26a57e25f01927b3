/*
 * baton-store.h: the contract between baton and the code that speaks to one kind of store.
 *
 * A driver is straight-line code. Each call blocks, but never past its deadline, whatever the
 * network, the name service or the server does. A driver knows nothing of election policy: when to
 * campaign, which candidate may lead and what a timeout means is decided above the driver. A driver
 * owns no thread.
 *
 * The runtime opens three lanes on a store and uses each lane from one thread at a time. The driver
 * locks what its lanes share in `store`.
 *
 * The outcome that matters most is UNKNOWN. FAILED promises that nothing was written and nothing
 * will be written, not even late. A driver that isn't sure returns UNKNOWN, and the runtime then
 * finds out.
 *
 * A driver is loaded if its `abi` equals BATON_STORE_ABI. Its table of functions may be shorter
 * than the one below (`size`): functions that are missing at the end are unsupported. Structs in
 * this header grow at their end. In a struct that a driver fills in and that starts with a size,
 * the size may be 0: the struct is then as it was in the first version. Structs that are passed in
 * arrays never grow.
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
	BATON_OUTCOME_FAILED,  /* nothing was written, and nothing will be written */
	BATON_OUTCOME_UNKNOWN, /* the driver can't tell whether anything was or will be written */
};

/* Given to every call: how long the call may take, and where to write what went wrong. */
struct baton_call {
	uint64_t deadline_ns;     /* on CLOCK_BOOTTIME */
	struct baton_error error; /* filled in unless the outcome is OK or a plain REFUSED */
	bool is_unasked; /* set if the store was not asked: the answer doesn't show its health */
	/* Given to lease_close: the lease has surely expired, and no call will name it again. So
	 * the driver drops what it keeps of the lease, whatever the store says. */
	bool is_last;
};

/* What a process keeps alive. The id is new for every incarnation and is never reused. */
struct baton_lease {
	char id[BATON_LEASE_ID_MAX + 1];
	uint64_t ttl_ns;
	const char *owner;   /* the candidate's id, as a label */
	const char *address; /* may be "" */
	/* true: other processes trust the lease's deadline and may outlive the lease's process. No
	 * proof of death ends such a lease, only its expiry. Given only to drivers whose traits say
	 * `outlives`, or that never prove death. */
	bool outlive;
};

/* What a candidate shows of itself to others. */
struct baton_profile {
	const char *metadata; /* never NULL */
	int32_t priority;
	uint32_t score_permille;
	bool is_healthy; /* by the candidate's own minimum, which the store doesn't know */
};

enum baton_order_kind { BATON_ORDER_NONE, BATON_ORDER_RESIGN, BATON_ORDER_TRANSFER };

struct baton_order {
	uint64_t id;   /* not 0; different for every order */
	uint64_t term; /* the leadership that the order is meant for */
	uint64_t quiet_ms;
	int kind;
	char target[BATON_NAME_MAX + 1]; /* a candidate's id */
	bool target_ok; /* filled in by observe: that candidate is present and healthy */
	char note[BATON_NOTE_MAX + 1]; /* who gave the order, and why; "": no note */
};

/* How the claim before the one that was just won has ended. */
enum baton_end {
	BATON_END_UNTOLD,   /* not known, or there was no claim before */
	BATON_END_RELEASED, /* the claim was given back */
	BATON_END_DIED,     /* the holder is proven dead */
	BATON_END_EXPIRED,  /* the claim was not renewed */
};

/* One election as the store sees it. */
struct baton_record {
	uint64_t term;       /* the highest ever, also when no claim stands */
	uint64_t nonce;      /* of the claim that stands */
	uint64_t free_in_ns; /* when the claim or reservation can end by itself; or NEVER */
	int64_t since_ms;    /* wall time */
	int32_t priority;
	uint32_t score_permille;
	bool held;     /* a claim stands */
	bool reserved; /* free, but kept for another candidate than the asking one */
	bool paused;
	/* The watch surely hints at the end of the claim and at any order for it, so the runtime
	 * sets no timer. Also filled in for a claim that was just won. */
	bool watched;
	char lease_id[BATON_LEASE_ID_MAX + 1];
	char leader[BATON_NAME_MAX + 1];
	char address[BATON_NAME_MAX + 1];
	char metadata[BATON_METADATA_MAX + 1];
	/* Not "": the election is free, but no candidate can win before free_in_ns has passed. The
	 * text says why, in a few words that fit behind "waits 22 s: ". Such an answer is not a
	 * failure. */
	char wait[BATON_WAIT_MAX + 1];
	bool functions; /* marked for the store's own functions (see `functions` below) */
	struct baton_order order;
	int before; /* BATON_END_...; only of a campaign that was won */
	/* About how many candidates there are while a claim stands; 0: not known. If there are
	 * many, a few act on a hint at once, and the others look one after the other. */
	uint32_t n_candidates;
};

/* One campaign of a batch. The driver fills in each one's outcome, and the error code if it
 * fails. */
struct baton_campaign {
	const char *name;
	uint64_t nonce; /* different for every attempt */
	uint64_t floor; /* the highest term that the runtime knows: the new one must be higher */
	struct baton_profile profile;
	int outcome; /* OK: the candidate won, in `term`. REFUSED: `record` says why */
	int code;
	uint64_t term;
	struct baton_record *record; /* the caller's memory */
};

struct baton_release {
	const char *name;
	const char *lease_id; /* if lease_id, nonce and term don't all match: REFUSED */
	uint64_t nonce;
	uint64_t term;
	const char *reason;      /* for the history: one word */
	const char *reserve_for; /* a candidate's id, or NULL */
	uint64_t hold_ns;        /* how long the election is kept for that candidate */
	int outcome;
	int code;
};

struct baton_observation {
	const char *name;
	const char *lease_id; /* the asking candidate's, or "": only to fill in `reserved` */
	const char *id;       /* the asking candidate's, or "" */
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
	uint32_t drift_permille; /* the least value that is safe here; usually 0: as configured */
	bool own_leases;         /* a lease carries one election; its campaign makes it */
	bool pushes;             /* watch returns hints: standbys need not poll for a release */
	bool proves_death;       /* a dead holder's claim is free at once */
	bool keeps_history;
	const char *promises;  /* for people: what holds, and which faults break it */
	uint64_t max_lease_ns; /* 0: any */
	/* The URL option, in ms, that raises max_lease_ns if every candidate has it. NULL: none. */
	const char *max_lease_option;
	/* How long the store takes to end a lease that is not renewed: this many lease times (0:
	 * one) plus expiry_more_ns. */
	uint32_t expiry_leases;
	uint64_t expiry_more_ns;
	/* With proves_death: the store proves no death for leases with `outlive`. A driver without
	 * proves_death may leave this false. */
	bool outlives;
	const char *warning; /* logged once, in lower case: what the store lacks; NULL: nothing */
};

struct baton_store_config {
	size_t size;
	const char *url;
};

/* The cookie that watch_wait() returns if it can't tell what changed: look at everything. */
#define BATON_HINT_ALL UINT64_MAX

struct baton_driver {
	uint32_t abi;  /* BATON_STORE_ABI */
	uint32_t size; /* sizeof(struct baton_driver); 0: up to `fence` */
	const char *name;
	const char *const *schemes; /* NULL at the end: "file" serves "file:..." */

	/* Only parses and allocates: no I/O. */
	int (*open)(const struct baton_store_config *config, void **store, struct baton_error *err);
	void (*close)(void *store);
	/* A store of NULL asks for the traits of this kind of store in general. */
	const struct baton_traits *(*traits)(const void *store);

	/* No I/O either. After fork() the child calls forget() on the store, which closes
	 * descriptors and frees nothing else. */
	int (*lane_open)(void *store, int kind, void **lane, struct baton_error *err);
	void (*lane_close)(void *lane);
	void (*forget)(void *store);

	/* With own_leases lease_open is never called: campaign makes the lease.
	 *
	 * Two leases with the same id up to the last '-' follow one another: the runtime closes the
	 * first before it opens the second. If opening the first ended UNKNOWN, the runtime does
	 * not close it; lease_open of the second then removes what the first left behind (a lock, a
	 * session, a connection). A request that arrives late must not end a newer lease. */
	int (*lease_open)(void *lane, struct baton_call *call, const struct baton_lease *lease);
	int (*lease_renew)(void *lane, struct baton_call *call, const struct baton_lease *lease,
			   uint32_t *n_held);
	/* Releases everything that the lease carries. OK also if the lease was already gone. */
	int (*lease_close)(void *lane, struct baton_call *call, const struct baton_lease *lease);
	/* Calls found() for each claim on the lease. */
	int (*claims)(void *lane, struct baton_call *call, const struct baton_lease *lease,
		      void (*found)(void *arg, const char *name, uint64_t nonce, uint64_t term),
		      void *arg);

	/* In one atomic step: checks that the lease lives and that no other claim stands, then
	 * mints a term above the stored one and the floor. If the same lease already holds the
	 * election: REFUSED, with the claim's nonce and term. */
	void (*campaign)(void *lane, struct baton_call *call, const struct baton_lease *lease,
			 struct baton_campaign *list, size_t n);
	void (*release)(void *lane, struct baton_call *call, struct baton_release *list, size_t n);
	void (*observe)(void *lane, struct baton_call *call, struct baton_observation *list,
			size_t n);

	/*
	 * The watch lane. After a name is added, the driver hints at it once, as soon as it really
	 * watches the name. If watch_add() returns a BATON_E_ code, the runtime adds the name again
	 * after a while. watch_wait() blocks until there are hints or until the deadline. It fills
	 * in the cookies of the hinted names and returns their number. A negative number means that
	 * the watch is broken; the runtime calls again after a while. The names stay added. When
	 * the watch works again, the driver hints at all of them.
	 */
	int (*watch_add)(void *lane, const char *name, uint64_t cookie);
	void (*watch_remove)(void *lane, const char *name, uint64_t cookie);
	int (*watch_wait)(void *lane, struct baton_call *call, uint64_t *cookies, size_t max);
	/* Makes a running watch_wait() return. Called from any thread. */
	void (*watch_wake)(void *lane);

	/* Shows the lease's owner as a candidate. The candidate disappears with the lease. */
	void (*publish)(void *lane, struct baton_call *call, const struct baton_lease *lease,
			struct baton_publication *list, size_t n);
	int (*withdraw)(void *lane, struct baton_call *call, const struct baton_lease *lease,
			const char *name);
	int (*candidates)(void *lane, struct baton_call *call, const char *name,
			  void (*found)(void *arg, const struct baton_candidate *candidate),
			  void *arg);
	/* Leaves an order for the leader of order->term. REFUSED if that leadership has ended. */
	int (*order)(void *lane, struct baton_call *call, const char *name,
		     const struct baton_order *order);
	int (*pause)(void *lane, struct baton_call *call, const char *name, bool paused);
	/* Newest first. NULL if keeps_history is false. */
	int (*history)(void *lane, struct baton_call *call, const char *name, size_t max,
		       void (*found)(void *arg, const struct baton_leadership *leadership),
		       void *arg);
	/* As baton_work_lock(). No I/O. NULL if the store has no work lock. */
	int (*work_lock)(const void *store, const char *name, char *path, size_t size,
			 uint32_t *mode, struct baton_error *err);
	/*
	 * For baton_examine(): calls found() for each thing about this store that is worth knowing:
	 * which server answers, rights, settings that endanger the promises, the server's clock.
	 * Creates nothing in the store. OK: a lease may be tried on the store. REFUSED: no lease
	 * can be tried on the store as it is. FAILED, UNKNOWN: the store can't be examined, and
	 * call->error says why. NULL: the driver finds nothing beyond what a lease shows.
	 */
	int (*examine)(void *lane, struct baton_call *call,
		       void (*found)(void *arg, const struct baton_finding *finding), void *arg);
	/* For an administrator to run with the store's own client. schema makes the tables. fence
	 * makes a guard that refuses older terms, for leaders that write to the same store. NULL:
	 * none. */
	const char *schema;
	const char *fence;

	/* ---- functions below may be NULL, or missing in an older driver ---- */

	/* Calls found() for the names of elections that begin with prefix and come after `after`,
	 * in byte order, at most max of them. Both prefix and `after` may be "". */
	int (*list)(void *lane, struct baton_call *call, const char *prefix, const char *after,
		    size_t max, void (*found)(void *arg, const char *name), void *arg);
	/* Does what observe (of one election) and candidates do, in one request. */
	int (*survey)(void *lane, struct baton_call *call, struct baton_observation *observation,
		      void (*found)(void *arg, const struct baton_candidate *candidate), void *arg);
	/* As `schema`: makes functions in the store. Any program that can call them can contend
	 * without this library. NULL: none. */
	const char *functions;
};

/* The symbol that a driver module exports: its struct baton_driver. */
#define BATON_DRIVER_SYMBOL "baton_driver"

#ifdef __cplusplus
}
#endif

#endif
