/*
 * adapter.h: what a store must be able to do to carry elections, and nothing else.
 *
 * A record store has one primitive: compare-and-set on one record. The layer in this folder makes
 * all of baton-store.h of it. An adapter is the code for one kind of store: it reads, writes,
 * deletes and lists records, and knows nothing of leases, elections and terms. It never parses a
 * value, and it owns no thread.
 *
 *   baton_driver          the table that libbaton calls; RECORD_DRIVER makes it
 *      |
 *   src/store/record      rounds and batches, claims, watching; decide/: what is written when
 *      |
 *   struct record_adapter
 *      |
 *   the store
 *
 * A new store is one file, src/store/NAME/adapter.c, that ends with
 *
 *     static const char *const schemes[] = {"NAME", NULL};
 *     RECORD_DRIVER(baton_driver, adapter, .name = "NAME", .schemes = schemes);
 *
 * and one line in cmake/Drivers.cmake:
 *
 *     baton_driver(NAME RECORD SCHEMES NAME LIBRARIES ...)
 *
 * What the layer promises an adapter:
 *  1. A lane is used by one thread at a time; lanes of one store run at once. What they share in
 *     the store is the adapter's to lock.
 *  2. Keys are letters, digits, and "-_./=", at most key_max bytes; they begin with "l/", "e/",
 *     "c/" or "t/". No '/' stands at the end or next to another one. An adapter adds its prefix,
 *     if it has one, and takes it away again.
 *  3. No key stands twice in one call.
 *  4. Values are text of at most value_max bytes. Each attempt to write has its own bytes: a value
 *     begins with {"w":"N" where N are 64 random bits.
 *  5. Nothing below e/ is ever deleted.
 *
 * What an adapter owes the layer:
 *  1. put and drop are linearizable compare-and-sets. So is a get with `fresh`.
 *  2. An adapter never repeats a write by itself, and switches off such a habit of a library.
 *  3. FAILED means that the write was not carried out, and surely never will be, not even by a
 *     request that is still on its way. Whoever isn't sure says UNKNOWN.
 *  4. A version never comes back on a record that exists. Where the store has none that keeps to
 *     this, or where a read can show a write that is rolled back later, `w` is the version:
 *     record_version_of_value().
 *  5. A call ends at call->deadline_ns, whatever the network and the server do. What has no answer
 *     by then is UNKNOWN (get, list: FAILED), with BATON_E_TIMEOUT.
 *  6. What is FAILED or UNKNOWN has a code in its item, and the first sentence stands in
 *     call->error. BATON_E_DENIED is said only where somebody has to give a right.
 */
#ifndef BATON_RECORD_ADAPTER_H
#define BATON_RECORD_ADAPTER_H

#include "base/bytes.h"
#include "store/record/decide/record.h"

#pragma GCC visibility push(hidden)

/* The least key_max: a hash, or a lease's id, fits with what stands around it. */
#define RECORD_KEY_MIN 96
#define RECORD_PREFIX_MAX 128

/* One record in a call. */
struct record_item {
	const char *key;
	/*
	 * put, drop, in: the record must have this version; n = 0: it must not be there.
	 *         out:   OK: the new one, of what was written. REFUSED: the one in the way, if the
	 *                answer told it (is_told).
	 * get, in:       the layer knows the value of this version; n = 0: it knows none.
	 *         out:   the one that was found; n = 0: there is no such record, which is OK, too.
	 */
	struct record_version version;
	/*
	 * put, in:  what to write.  out: REFUSED and is_told: what stands there instead.
	 * get, out: what was found. An adapter may leave it empty (and is_unchanged set) where the
	 *           version is still the one that the layer knows.
	 * The layer frees it.
	 */
	struct bytes value;
	uint64_t age_ns; /* get, list: since it was written, by the server's clock; RECORD_NEVER:
			    not told. It is for people only, and nothing depends on it */
	/*
	 * OK:      it was carried out.
	 * REFUSED: a conflict: the store answered that another version is there. Never for get.
	 * FAILED:  it was not carried out, and never will be.
	 * UNKNOWN: nobody knows. Never for get.
	 * "Not written, but no verdict" is REFUSED without is_told: the layer reads, and decides.
	 */
	int outcome;
	int code; /* BATON_E_; FAILED and UNKNOWN */
	bool is_told;
	bool is_unchanged;
};

/* What the URLs of all record stores can say. An adapter's open() is given it with the defaults of
 * its kind, and hands on to record_option() what it doesn't know itself. */
struct record_options {
	uint32_t poll_ms;      /* poll=: how often a standby looks, in ms, at least 100 */
	uint32_t max_lease_ms; /* max_lease=: of a store that forgets; the longest lease there */
	/* prefix=: stands in front of all keys, without a '/' at its end */
	char prefix[RECORD_PREFIX_MAX + 1];
	/* Set by open(): this store is polled, although the adapter could push or ring. */
	bool is_polled;
	/* Set by open(): claims hold a native lock, too: enum record_locks. */
	uint32_t locks;
};

/* What ends a native lock that nobody drops. */
enum record_locks {
	RECORD_LOCKS_NONE,
	RECORD_LOCKS_SESSION,  /* the end of the session that took it */
	RECORD_LOCKS_DURATION, /* its time, unless it is kept */
};

/* False: it is none of these, or that is not a valid value for it. */
bool record_option(struct record_options *o, const char *key, const char *value);

/* One record of a list. The item is the adapter's, and is gone after the call. */
typedef void record_found(void *arg, const struct record_item *item);
/* A record below e/ may have changed; of a lease below l/: all elections that name it; NULL: any of
 * them. */
typedef void record_changed(void *arg, const char *key);

/* Leases whose owners may ring, at most. */
#define RECORD_ALARMS_MAX 4

/* What a lane of the watch kind listens for while it sleeps. */
struct record_alarms {
	const char *own; /* the lease that our claims stand on; NULL: there are none */
	bool rings;      /* claims were released since the last call: the others must hear it */
	const char *others[RECORD_ALARMS_MAX]; /* leases that watched elections name */
	size_t n_others;
	int wake; /* a descriptor that ends the call when it is readable */
};

/* A store's own clock, where it forgets. */
struct record_age {
	uint64_t uptime_ns; /* since it may have lost everything */
	uint64_t server_ms; /* its wall clock */
	uint64_t coarse_ns; /* it may be older than that by so much */
};

struct record_adapter {
	const char *name; /* for people: "S3" */
	const char *page; /* its manual: "baton-s3(7)" */
	/* Bytes of a key, without the adapter's prefix; RECORD_KEY_MIN at least. */
	uint32_t key_max;
	/* Bytes of a value; 64 KB at least. */
	uint32_t value_max;
	/* Items of one call of get, put or drop. The adapter carries them out in as few requests
	 * as it can, or side by side. */
	uint32_t batch_max;
	/* Records that one request reads; 1: an object store. */
	uint32_t get_max;
	/* How often a standby looks, unless the URL says otherwise: 1000; object stores 2000. */
	uint32_t poll_ms;
	/* list has the values at no extra request. */
	bool lists_values;
	/* It forgets (A3 fails): terms follow its clock, nobody claims while it is young, and `age`
	 * is there. */
	bool is_weak;
	/* Servers of this kind may ignore conditions. Before a store's first lease compare-and-set
	 * is tried on a scratch record below t/; where that fails, so does the lease. */
	bool is_tried;
	struct baton_traits traits; /* RECORD_TRAITS(...) */

	/* As in baton-store.h: parses and allocates only. `options` is the layer's. */
	int (*open)(const struct baton_store_config *config, struct record_options *options,
		    void **store, struct baton_error *err);
	void (*close)(void *store);
	/* Of a store; NULL where all of this kind are alike. */
	const struct baton_traits *(*traits_of)(const void *store);
	int (*lane_open)(void *store, int kind, void **lane, struct baton_error *err);
	void (*lane_close)(void *lane);
	/* S10: in the child of fork(); closes descriptors, and frees nothing. */
	void (*forget)(void *store);
	/* As in baton-store.h; NULL: nothing beyond what the layer finds out by itself. */
	int (*examine)(void *lane, struct baton_call *call,
		       void (*found)(void *arg, const struct baton_finding *finding), void *arg);

	/* Each item stands on its own: a conflict of one undoes no other. n <= batch_max.
	 * fresh: linearizable; else it may be old. */
	void (*get)(void *lane, struct baton_call *call, struct record_item *items, size_t n,
		    bool fresh);
	void (*put)(void *lane, struct baton_call *call, struct record_item *items, size_t n);
	void (*drop)(void *lane, struct baton_call *call, struct record_item *items, size_t n);
	/*
	 * All records whose keys begin with `prefix` ("e/"), in any order: key, version and age;
	 * the value only if with_values, which is asked for only where lists_values is set. May be
	 * old; a record that is written meanwhile may be missing or appear. OK, or FAILED.
	 */
	int (*list)(void *lane, struct baton_call *call, const char *prefix, bool with_values,
		    record_found *found, void *arg);
	/*
	 * Push, on the watch lane: blocks until something below e/ may have changed, wake() is
	 * called, or the deadline, and tells which. After it has told once that the watch stands
	 * (key NULL), no change is missed. OK; else the watch is broken, and is called again after
	 * a while. NULL: the layer polls.
	 */
	int (*watch)(void *lane, struct baton_call *call, record_changed *changed, void *arg);
	/*
	 * An alarm, where there is no push: sleeps on the watch lane until the deadline, or until
	 * alarms->wake is readable, or until the owner of one of alarms->others has released
	 * something, and tells which (key "l/LEASE"). Nobody counts on it: the layer polls as if
	 * there were none. NULL: the layer sleeps by itself.
	 */
	void (*listen)(void *lane, struct baton_call *call, const struct record_alarms *alarms,
		       record_changed *changed, void *arg);
	/* From any thread: ends a call that is under way on the watch lane, as soon as it can: a
	 * watch() is OK then, a get or list FAILED. NULL where no call there can last long. */
	void (*wake)(void *lane);
	/* is_weak: how old the store is. OK or FAILED. Else NULL. */
	int (*age)(void *lane, struct baton_call *call, struct record_age *age);

	/*
	 * Native locks, one per election, for a store whose open() has set options->locks; else
	 * they are not called. They stand beside the records, never in place of one: two candidates
	 * are kept apart by the records alone, and the lock keeps other programs away.
	 *
	 * A lock belongs to the store and to a lease, not to a lane: it is taken on one lane and
	 * kept on another. A session that holds locks is a connection of its own, is ended by the
	 * server when it was silent for ttl_ns and not before (rule 3), and is not closed because a
	 * call was slow. What is taken for a lease ends what the store holds for an older one.
	 *
	 * lock_take: OK: it is ours; if it was before, it is prolonged. REFUSED: another has it:
	 *     *free_in_ns says for how long at most, or stays RECORD_NEVER. FAILED: it isn't ours.
	 *     UNKNOWN: it may be.
	 * lock_keep: OK: it was ours all the time, and is for ttl_ns more, counted from before the
	 *     call. REFUSED: it is not, or was not meanwhile, or its session has ended: never take
	 *     it again here, for another may have worked since. FAILED, UNKNOWN: nobody knows.
	 *     Called before each renewal for each lock of the lease, in one call: where all of them
	 *     stand and fall with one session, that is asked once.
	 * lock_drop: if that lease has it. Whatever it returns, the adapter counts on it no more:
	 *     a session that can't be told is closed, and a duration passes.
	 */
	int (*lock_take)(void *lane, struct baton_call *call, const char *name,
			 const char *lease_id, uint64_t ttl_ns, uint64_t *free_in_ns);
	int (*lock_keep)(void *lane, struct baton_call *call, const char *name,
			 const char *lease_id, uint64_t ttl_ns);
	int (*lock_drop)(void *lane, struct baton_call *call, const char *name,
			 const char *lease_id);
};

/* What is the same for all of them. Two candidates' clocks are compared: hence the drift. */
#define RECORD_TRAITS(...)                                                \
	{                                                                 \
		.drift_permille = 200, .keeps_history = true, __VA_ARGS__ \
	}

/* `w` of a value as its version; n = 0: it isn't one of ours, and the record is FAILED with
 * BATON_E_CORRUPT. */
struct record_version record_version_of_value(const char *value, size_t n);
/* From a token of the store's; longer than RECORD_VERSION_MAX: its hash. n = 0 is not allowed. */
struct record_version record_version_of(const void *token, size_t n);
/* The same end for all items, from the first on that has none yet (outcome 0), with the sentence
 * in call->error. */
void record_items_end(struct record_item *items, size_t n, int outcome, int code);
/* ... for all of them, whatever they have. */
void record_items_end_all(struct record_item *items, size_t n, int outcome, int code);

/* ---- rows.c: for stores that answer with rows ---- */

/* The items of a call in the order of their keys: so rows find theirs, and two requests lock in one
 * order. */
struct record_sorted {
	struct record_item **items;
	size_t n;
};

/* False: no memory, which call->error says. */
bool record_sort(struct record_sorted *s, struct baton_call *call, struct record_item *items,
		 size_t n);
void record_sorted_done(struct record_sorted *s);
/* The item with that key, and its number, if `at` isn't NULL; NULL: nobody asked for it. */
struct record_item *record_sorted_find(const struct record_sorted *s, const char *key, size_t n,
				       size_t *at);
/* A column with `w`; n = 0: it isn't one of ours. */
struct record_version record_row_version(const char *w, size_t n);
/* A column with an age in microseconds, which may be NULL. */
uint64_t record_row_age_ns(const char *us);
/* A row's value, of at most max bytes, into an item that has its version. */
void record_row_take(struct record_item *item, const char *value, size_t n, size_t max);

/* ---- the driver: the verbs of baton-store.h on top of any adapter ---- */

int record_driver_open(const struct record_adapter *adapter,
		       const struct baton_store_config *config, void **out,
		       struct baton_error *err);
void record_driver_close(void *store);
const struct baton_traits *record_driver_traits(const struct record_adapter *adapter,
						const void *store);
int record_driver_lane_open(void *store, int kind, void **out, struct baton_error *err);
void record_driver_lane_close(void *l);
void record_driver_forget(void *store);
int record_driver_lease_open(void *l, struct baton_call *call, const struct baton_lease *lease);
int record_driver_lease_renew(void *l, struct baton_call *call, const struct baton_lease *lease,
			      uint32_t *n_held);
int record_driver_lease_close(void *l, struct baton_call *call, const struct baton_lease *lease);
int record_driver_claims(void *l, struct baton_call *call, const struct baton_lease *lease,
			 void (*found)(void *arg, const char *name, uint64_t nonce, uint64_t term),
			 void *arg);
void record_driver_campaign(void *l, struct baton_call *call, const struct baton_lease *lease,
			    struct baton_campaign *list, size_t n);
void record_driver_release(void *l, struct baton_call *call, struct baton_release *list, size_t n);
void record_driver_observe(void *l, struct baton_call *call, struct baton_observation *list,
			   size_t n);
int record_driver_watch_add(void *l, const char *name, uint64_t cookie);
void record_driver_watch_remove(void *l, const char *name, uint64_t cookie);
int record_driver_watch_wait(void *l, struct baton_call *call, uint64_t *cookies, size_t max);
void record_driver_watch_wake(void *l);
void record_driver_publish(void *l, struct baton_call *call, const struct baton_lease *lease,
			   struct baton_publication *list, size_t n);
int record_driver_withdraw(void *l, struct baton_call *call, const struct baton_lease *lease,
			   const char *name);
int record_driver_candidates(void *l, struct baton_call *call, const char *name,
			     void (*found)(void *arg, const struct baton_candidate *candidate),
			     void *arg);
int record_driver_order(void *l, struct baton_call *call, const char *name,
			const struct baton_order *order);
int record_driver_pause(void *l, struct baton_call *call, const char *name, bool paused);
int record_driver_history(void *l, struct baton_call *call, const char *name, size_t max,
			  void (*found)(void *arg, const struct baton_leadership *leadership),
			  void *arg);
int record_driver_list(void *lane, struct baton_call *call, const char *prefix, const char *after,
		       size_t max, void (*found)(void *arg, const char *name), void *arg);
int record_driver_examine(void *l, struct baton_call *call,
			  void (*found)(void *arg, const struct baton_finding *finding), void *arg);

/*
 * The table, under that symbol: baton_driver, for a module. What follows are the fields that only
 * the store knows: .name and .schemes; .schema and .fence where it has them. The conformance suite
 * takes the adapter itself (baton_driver_adapter), to stand between the layer and the store.
 */
#define RECORD_DRIVER(symbol, adapter, ...)                                             \
	extern const struct record_adapter *const symbol##_adapter;                     \
	__attribute__((visibility("default")))                                          \
	const struct record_adapter *const symbol##_adapter = &(adapter);               \
	extern const struct baton_driver symbol;                                        \
	static int symbol##_open(const struct baton_store_config *config, void **store, \
				 struct baton_error *err)                               \
	{                                                                               \
		return record_driver_open(&(adapter), config, store, err);              \
	}                                                                               \
	static const struct baton_traits *symbol##_traits(const void *store)            \
	{                                                                               \
		return record_driver_traits(&(adapter), store);                         \
	}                                                                               \
	__attribute__((visibility("default")))                                          \
	const struct baton_driver symbol = {.abi = BATON_STORE_ABI,                     \
					    .size = sizeof(struct baton_driver),        \
					    .open = symbol##_open,                      \
					    .close = record_driver_close,               \
					    .traits = symbol##_traits,                  \
					    .lane_open = record_driver_lane_open,       \
					    .lane_close = record_driver_lane_close,     \
					    .forget = record_driver_forget,             \
					    .lease_open = record_driver_lease_open,     \
					    .lease_renew = record_driver_lease_renew,   \
					    .lease_close = record_driver_lease_close,   \
					    .claims = record_driver_claims,             \
					    .campaign = record_driver_campaign,         \
					    .release = record_driver_release,           \
					    .observe = record_driver_observe,           \
					    .watch_add = record_driver_watch_add,       \
					    .watch_remove = record_driver_watch_remove, \
					    .watch_wait = record_driver_watch_wait,     \
					    .watch_wake = record_driver_watch_wake,     \
					    .publish = record_driver_publish,           \
					    .withdraw = record_driver_withdraw,         \
					    .candidates = record_driver_candidates,     \
					    .order = record_driver_order,               \
					    .pause = record_driver_pause,               \
					    .history = record_driver_history,           \
					    .list = record_driver_list,                 \
					    .examine = record_driver_examine,           \
					    __VA_ARGS__}

#pragma GCC visibility pop

#endif
