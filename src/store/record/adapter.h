/*
 * adapter.h: what a store must be able to do to carry elections, and nothing else.
 *
 * A record store has one primitive: compare-and-set on one record. The layer in this folder builds
 * all of baton-store.h on that. An adapter is the code for one kind of store: it reads, writes,
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
 * A new store is one file, src/store/NAME/adapter.c, which ends with
 *
 *     static const char *const schemes[] = {"NAME", NULL};
 *     RECORD_DRIVER(baton_driver, adapter, .name = "NAME", .schemes = schemes);
 *
 * and one line in cmake/Drivers.cmake:
 *
 *     baton_driver(NAME RECORD SCHEMES NAME LIBRARIES ...)
 *
 * What the layer promises an adapter:
 *  1. A lane is used by one thread at a time, but several lanes of one store run at once. The
 *     adapter locks what they share in the store.
 *  2. Keys are letters, digits, and "-_./=", at most key_max bytes; they begin with "l/", "e/",
 *     "c/" or "t/". No '/' stands at the end or next to another one. If an adapter has a prefix,
 *     the adapter adds it and takes it away again.
 *  3. No key stands twice in one call.
 *  4. Values are text of at most value_max bytes. Each attempt to write has its own bytes: a value
 *     begins with {"w":"N" where N are 64 random bits.
 *  5. Nothing below e/ is ever deleted.
 *
 * What an adapter owes the layer:
 *  1. put and drop are linearizable compare-and-sets. So is a get with `fresh`.
 *  2. An adapter never repeats a write by itself. It switches off the retries of the libraries that
 *     it uses.
 *  3. FAILED means that the write was not carried out, and surely never will be, not even by a
 *     request that is still on its way. An adapter that isn't sure says UNKNOWN.
 *  4. A version never comes back on a record that exists. A store may have no such version of its
 *     own, or its reads may show a write that is rolled back later. Then `w` is the version:
 *     record_version_of_value().
 *  5. A call ends at call->deadline_ns, whatever the network and the server do. An item that has no
 *     answer by then is UNKNOWN (get, list: FAILED), with BATON_E_TIMEOUT.
 *  6. An item that is FAILED or UNKNOWN has a code, and call->error has the sentence for the first
 *     of them. BATON_E_DENIED is only for a missing right that an administrator has to grant.
 */
#ifndef BATON_RECORD_ADAPTER_H
#define BATON_RECORD_ADAPTER_H

#include "base/bytes.h"
#include "store/record/decide/record.h"

#pragma GCC visibility push(hidden)

/* The least key_max: it has room for a key made of a hash or of a lease's id. */
#define RECORD_KEY_MIN 96
#define RECORD_PREFIX_MAX 128

/* One record in a call. */
struct record_item {
	const char *key;
	/*
	 * put, drop, in: the record must have this version; n = 0: there must be no record.
	 *         out:   OK: the new version, that of what was written. REFUSED: the version that
	 *                is in the way, if the answer told it (is_told).
	 * get, in:       the layer knows the value of this version; n = 0: it knows no value.
	 *         out:   the version that was found; n = 0: there is no record. That is OK, too.
	 */
	struct record_version version;
	/*
	 * put, in:  what to write.  out: REFUSED and is_told: what stands there instead.
	 * get, out: what was found. If the version is still the one that the layer knows, an
	 *           adapter may set is_unchanged and leave the value empty.
	 * The layer frees it.
	 */
	struct bytes value;
	uint64_t age_ns; /* get, list: since the record was written, by the server's clock;
	                    RECORD_NEVER: not told. Only for people: nothing depends on it */
	/*
	 * OK:      it was carried out.
	 * REFUSED: a conflict: the store answered that another version is there. Never for get.
	 * FAILED:  it was not carried out, and never will be.
	 * UNKNOWN: it is not known whether it was carried out. Never for get.
	 * If the store says only that it has not written, without why, that is REFUSED without
	 * is_told: the layer then reads the record and decides.
	 */
	int outcome;
	int code; /* BATON_E_; FAILED and UNKNOWN */
	bool is_told;
	bool is_unchanged;
	/* get: an election that is marked for the store's own functions (baton-store.h). Only for
	 * people: nothing depends on it. */
	bool is_marked;
};

/* The options that the URLs of all record stores can have. An adapter's open() gets them with the
 * defaults of its kind, and passes to record_option() each option that the adapter doesn't know
 * itself. */
struct record_options {
	uint32_t poll_ms;      /* poll=: how often a standby looks, in ms, at least 100 */
	uint32_t max_lease_ms; /* max_lease=: the longest lease of a store that forgets; else 0 */
	/* prefix=: stands in front of all keys, without a '/' at its end */
	char prefix[RECORD_PREFIX_MAX + 1];
	/* Set by open(): the layer polls this store, although the adapter has watch() or
	 * listen(). */
	bool is_polled;
	/* Set by open(): which native locks claims hold besides: enum record_locks. */
	uint32_t locks;
};

/* What ends a native lock that is not dropped. */
enum record_locks {
	RECORD_LOCKS_NONE,
	RECORD_LOCKS_SESSION,  /* the end of the session that took it */
	RECORD_LOCKS_DURATION, /* its time, unless it is kept */
};

/* False: the key is not one of these options, or the value is not valid for it. */
bool record_option(struct record_options *o, const char *key, const char *value);

/* One record of a list. The item is the adapter's, and is gone after the call. */
typedef void record_found(void *arg, const struct record_item *item);
/* Some election may have changed. key: below e/, that election's record; below l/, a lease: any
 * election that names it; NULL: any election. */
typedef void record_changed(void *arg, const char *key);

/* How many leases' owners a lane listens to, at most. */
#define RECORD_ALARMS_MAX 4

/* What a lane of the watch kind listens for while it sleeps. */
struct record_alarms {
	const char *own; /* the lease that our claims stand on; NULL: there are none */
	bool rings;      /* claims were released since the last call: others must be woken */
	const char *others[RECORD_ALARMS_MAX]; /* leases that watched elections name */
	size_t n_others;
	int wake; /* a descriptor that ends the call when it is readable */
};

/* The own clock of a store that forgets. */
struct record_age {
	uint64_t uptime_ns; /* since the moment when it may have lost everything */
	uint64_t server_ms; /* its wall clock */
	uint64_t coarse_ns; /* how much older than uptime_ns it may be */
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
	/* How often a standby looks, unless the URL says otherwise: 1000, for object stores
	 * 2000. */
	uint32_t poll_ms;
	/* list returns the values as well, without extra requests. */
	bool lists_values;
	/* The store forgets (A3 fails): terms follow its clock, no claim is made while it is young,
	 * and `age` is set. If a URL decides that, its open() sets max_lease_ms instead. */
	bool is_weak;
	/* Servers of this kind may ignore conditions. So before the first lease, the layer tries
	 * compare-and-set on a scratch record below t/. If that fails, opening the lease fails. */
	bool is_tried;
	struct baton_traits traits; /* RECORD_TRAITS(...) */

	/* As in baton-store.h: only parses and allocates. `options` belongs to the layer. */
	int (*open)(const struct baton_store_config *config, struct record_options *options,
		    void **store, struct baton_error *err);
	void (*close)(void *store);
	/* The traits of one store; NULL: all stores of this kind have the same. */
	const struct baton_traits *(*traits_of)(const void *store);
	int (*lane_open)(void *store, int kind, void **lane, struct baton_error *err);
	void (*lane_close)(void *lane);
	/* S10, in the child of fork(): closes descriptors, and frees nothing. */
	void (*forget)(void *store);
	/* As in baton-store.h; NULL: there is nothing to find beyond what the layer finds by
	 * itself. */
	int (*examine)(void *lane, struct baton_call *call,
		       void (*found)(void *arg, const struct baton_finding *finding), void *arg);

	/* Each item stands on its own: a conflict of one undoes no other. n <= batch_max. fresh:
	 * the read is linearizable; else its result may be old. */
	void (*get)(void *lane, struct baton_call *call, struct record_item *items, size_t n,
		    bool fresh);
	void (*put)(void *lane, struct baton_call *call, struct record_item *items, size_t n);
	void (*drop)(void *lane, struct baton_call *call, struct record_item *items, size_t n);
	/*
	 * All records whose keys begin with `prefix` ("e/"), in any order: key, version and age;
	 * the value only if with_values is set. The layer sets with_values only if lists_values is
	 * set. The list may be old; a record that is written meanwhile may be missing or appear.
	 * Returns OK or FAILED.
	 */
	int (*list)(void *lane, struct baton_call *call, const char *prefix, bool with_values,
		    record_found *found, void *arg);
	/*
	 * Push, on the watch lane: blocks until something below e/ may have changed, wake() is
	 * called or the deadline has come, and calls changed() for each record that may have
	 * changed. A call with the key NULL says that the watch stands: from then on no change is
	 * missed. Returns OK; anything else means that the watch is broken, and the layer calls
	 * again after a while. NULL: the layer polls.
	 */
	int (*watch)(void *lane, struct baton_call *call, record_changed *changed, void *arg);
	/*
	 * An alarm, for stores without push: sleeps on the watch lane until the deadline, or until
	 * alarms->wake is readable, or until the owner of one of alarms->others has released
	 * something. In the last case it calls changed() with that lease ("l/LEASE"). Nothing
	 * depends on the alarm: the layer polls as often as without it. NULL: the layer sleeps by
	 * itself.
	 */
	void (*listen)(void *lane, struct baton_call *call, const struct record_alarms *alarms,
		       record_changed *changed, void *arg);
	/* From any thread: ends the call that is under way on the watch lane, as soon as possible.
	 * watch() then returns OK, a get or list FAILED. NULL: no call on the watch lane can last
	 * long. */
	void (*wake)(void *lane);
	/* How old the store is; returns OK or FAILED. NULL: it never forgets. */
	int (*age)(void *lane, struct baton_call *call, struct record_age *age);

	/*
	 * Native locks, one per election. The layer calls these functions only if the store's
	 * open() has set options->locks. Locks stand beside the records and never replace one: the
	 * records alone keep two candidates apart, and the lock keeps other programs away.
	 *
	 * A lock belongs to the store and to a lease, not to a lane: one lane takes it, and another
	 * lane keeps it. A session that holds locks is a connection of its own. The server must not
	 * end it before ttl_ns of silence (rule 3). Where the server can end it then, the adapter
	 * asks for that (MySQL's wait_timeout); on SQL Server, TCP keepalive ends it some time
	 * later. The adapter doesn't close it because a call was slow. Taking a lock for a lease
	 * ends the locks that the store holds for an older lease.
	 *
	 * lock_take: OK: the lock is ours; if it was ours before, it is prolonged. REFUSED: another
	 *     has it; *free_in_ns says for how long at most, or stays RECORD_NEVER. FAILED: the
	 *     lock isn't ours. UNKNOWN: it may be ours.
	 * lock_keep: OK: the lock was ours all the time, and stays ours for ttl_ns more, counted
	 *     from before the call. REFUSED: it is not ours, or was not ours for a while, or its
	 *     session has ended. lock_keep must not take it again then, because another may have
	 *     worked since. FAILED, UNKNOWN: not known. Before each renewal the layer calls this
	 *     for each lock of the lease, with one and the same `call`. If all locks stand and fall
	 *     with one session, the adapter asks about the session once.
	 * lock_drop: drops the lock if that lease has it. Whatever this returns, the adapter
	 *     no longer counts on the lock: it closes a session that can't be told to drop
	 *     the lock, and it lets a duration pass.
	 */
	int (*lock_take)(void *lane, struct baton_call *call, const char *name,
			 const char *lease_id, uint64_t ttl_ns, uint64_t *free_in_ns);
	int (*lock_keep)(void *lane, struct baton_call *call, const char *name,
			 const char *lease_id, uint64_t ttl_ns);
	int (*lock_drop)(void *lane, struct baton_call *call, const char *name,
			 const char *lease_id);
};

/* The traits that all record stores have. The drift is there because the clocks of two candidates
 * are compared. */
#define RECORD_TRAITS(...)                                                \
	{                                                                 \
		.drift_permille = 200, .keeps_history = true, __VA_ARGS__ \
	}

/* `w` of a value as its version. n = 0: the value isn't one of ours; the adapter then ends the item
 * with FAILED and BATON_E_CORRUPT. */
struct record_version record_version_of_value(const char *value, size_t n);
/* The version for a token of the store. If the token is longer than RECORD_VERSION_MAX, the version
 * is its hash. n = 0 is not allowed. */
struct record_version record_version_of(const void *token, size_t n);
/* Gives the same outcome and code to all items that have none yet (outcome 0). The caller has put
 * the sentence into call->error. */
void record_items_end(struct record_item *items, size_t n, int outcome, int code);
/* Gives them to all items, whatever they have. */
void record_items_end_all(struct record_item *items, size_t n, int outcome, int code);

/* ---- rows.c: for stores that answer with rows ---- */

/* The items of a call, sorted by their keys. So the item of a row is found quickly, and all
 * requests lock their rows in the same order. */
struct record_sorted {
	struct record_item **items;
	size_t n;
};

/* False: no memory; call->error says so. */
bool record_sort(struct record_sorted *s, struct baton_call *call, struct record_item *items,
		 size_t n);
void record_sorted_done(struct record_sorted *s);
/* The item with that key; NULL: no item has it. If `at` isn't NULL, *at becomes the item's
 * number. */
struct record_item *record_sorted_find(const struct record_sorted *s, const char *key, size_t n,
				       size_t *at);
/* The version in a column that has `w`; n = 0: not a valid one. */
struct record_version record_row_version(const char *w, size_t n);
/* The age in a column that has microseconds; the column may be NULL. */
uint64_t record_row_age_ns(const char *us);
/* Copies a row's value, of at most max bytes, into an item that has its version already. */
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
 * Defines the driver's table under that symbol; a module's is baton_driver. The further arguments
 * are the fields that differ from store to store: .name and .schemes, and .schema and .fence if the
 * store has them. The conformance suite uses the adapter itself (baton_driver_adapter), to stand
 * between the layer and the store.
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
