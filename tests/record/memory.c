/*
 * memory.c: memory+record:NAME, an adapter whose records are in this process's memory. It is the
 * record stores' layer alone, without a server in the way: what goes wrong on it goes wrong on all.
 * Faults are injected in front of it, as in front of any other adapter (faults.h).
 *
 * All handles of the process that are opened on one name share its records, which live as long as
 * one of them is open. push=1: the store tells what has changed; else it is polled.
 * weak=1: the store forgets, which it may have done last when its first handle was opened.
 * locks=session or locks=duration: claims hold a lock, too, which other programs could take
 * (memory.h). A session is a handle; a duration passes by itself.
 */
#include "memory.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/name_table.h"
#include "base/url.h"
#include "store/base.h"
#include "store/options.h"
#include "store/record/adapter.h"

#define MAX_LEASE_MS 30000 /* as long as a store that forgets lets leases be, if not told */

struct record {
	struct name_node node;
	uint64_t serial; /* of its last write: its version */
	uint64_t written_ns;
	char *value;
	size_t n;
	char key[];
};

/* A native lock. */
struct native {
	struct name_node node;
	const void *holder; /* the handle whose session it is; NULL: another program */
	uint64_t until_ns;  /* RECORD_NEVER: as long as the session lasts */
	uint64_t told_ns;   /* for how long, as whoever is refused hears */
	char lease_id[BATON_LEASE_ID_MAX + 1];
	char name[];
};

/* The records of one name. */
struct shelf {
	struct shelf *next;
	size_t refs;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct name_table records;
	struct name_table locks;
	uint64_t serial;
	uint64_t made_ns;
	char name[];
};

struct memory_store {
	struct shelf *shelf;
	uint32_t locks;                     /* enum record_locks */
	char prefix[RECORD_PREFIX_MAX + 2]; /* with its '/' */
};

struct memory_lane {
	struct memory_store *store;
	uint64_t serial;  /* what has changed up to here was told */
	bool is_standing; /* that the watch stands was told */
	bool is_woken;
};

static pthread_mutex_t shelves_lock = PTHREAD_MUTEX_INITIALIZER;
static struct shelf *shelves;

/* ---- the store ---- */

static struct shelf *shelf_new(const char *name)
{
	struct shelf *shelf = calloc(1, sizeof(*shelf) + strlen(name) + 1);
	pthread_condattr_t attr;

	if (shelf == NULL || name_table_init(&shelf->records) != 0 ||
	    name_table_init(&shelf->locks) != 0) {
		if (shelf != NULL)
			name_table_done(&shelf->records);
		free(shelf);
		return NULL;
	}
	(void)strcpy(shelf->name, name);
	shelf->made_ns = clock_boot_ns();
	(void)pthread_mutex_init(&shelf->lock, NULL);
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&shelf->changed, &attr);
	(void)pthread_condattr_destroy(&attr);
	shelf->next = shelves;
	shelves = shelf;
	return shelf;
}

static struct shelf *shelf_get(const char *name)
{
	(void)pthread_mutex_lock(&shelves_lock);
	struct shelf *shelf = shelves;

	while (shelf != NULL && strcmp(shelf->name, name) != 0)
		shelf = shelf->next;
	if (shelf == NULL)
		shelf = shelf_new(name);
	if (shelf != NULL)
		shelf->refs++;
	(void)pthread_mutex_unlock(&shelves_lock);
	return shelf;
}

static void record_free(struct shelf *shelf, struct record *r)
{
	name_table_remove(&shelf->records, &r->node);
	free(r->value);
	free(r);
}

static void shelf_put(struct shelf *shelf)
{
	struct name_node *node;

	(void)pthread_mutex_lock(&shelves_lock);
	if (--shelf->refs == 0) {
		struct shelf **at = &shelves;

		while (*at != shelf)
			at = &(*at)->next;
		*at = shelf->next;
		while ((node = name_table_next(&shelf->records, NULL)) != NULL)
			record_free(shelf, (struct record *)node);
		name_table_done(&shelf->records);
		while ((node = name_table_next(&shelf->locks, NULL)) != NULL) {
			name_table_remove(&shelf->locks, node);
			free(node);
		}
		name_table_done(&shelf->locks);
		(void)pthread_mutex_destroy(&shelf->lock);
		(void)pthread_cond_destroy(&shelf->changed);
		free(shelf);
	}
	(void)pthread_mutex_unlock(&shelves_lock);
}

/* All that its session holds. */
static void locks_end_session(const struct memory_store *s)
{
	struct name_node *next;

	(void)pthread_mutex_lock(&s->shelf->lock);
	for (struct name_node *node = name_table_next(&s->shelf->locks, NULL); node != NULL;
	     node = next) {
		const struct native *lock = (struct native *)node;

		next = name_table_next(&s->shelf->locks, node);
		if (lock->holder == s && lock->until_ns == RECORD_NEVER) {
			name_table_remove(&s->shelf->locks, node);
			free(node);
		}
	}
	(void)pthread_mutex_unlock(&s->shelf->lock);
}

static const struct option_known memory_known[] = {
	{"locks", "session or duration"},
	{"push", OPTION_IS_FLAG},
	{"weak", OPTION_IS_FLAG ", before max_lease"},
	{"prefix", OPTION_IS_NAMES(RECORD_PREFIX_MAX)},
	{"poll", OPTION_IS_POLL},
	{"max_lease", OPTION_IS_MAX_LEASE},
	{NULL, NULL},
};

static bool memory_set(void *o, const char *key, const char *value)
{
	struct record_options *options = o;
	bool is_set;

	if (strcmp(key, "locks") == 0) {
		options->locks = strcmp(value, "session") == 0 ? RECORD_LOCKS_SESSION
							       : RECORD_LOCKS_DURATION;
		return options->locks == RECORD_LOCKS_SESSION || strcmp(value, "duration") == 0;
	}
	if (strcmp(key, "push") != 0 && strcmp(key, "weak") != 0)
		return record_option(options, key, value);
	bool is_flag = option_flag(value, &is_set);

	if (strcmp(key, "push") == 0)
		options->is_polled = !is_set;
	else
		options->max_lease_ms = is_set ? MAX_LEASE_MS : 0;
	return is_flag;
}

static const struct option_list memory_options = {
	.store = "a memory+record store",
	.page = "adapter.h",
	.known = memory_known,
	.set = memory_set,
};

static int memory_open(const struct baton_store_config *config, struct record_options *options,
		       void **out, struct baton_error *err)
{
	struct memory_store *s = calloc(1, sizeof(*s));
	char name[BATON_NAME_MAX + 1];
	struct url url;

	options->is_polled = true;
	if (!url_split(config->url, &url) || !url_decode(url.path, name, sizeof(name)) ||
	    option_each(url.query, &memory_options, options, err) != 0) {
		free(s);
		(void)store_fail(err, BATON_E_URL, "expected memory+record:NAME");
		return BATON_E_URL;
	}
	if (s == NULL || (s->shelf = shelf_get(name)) == NULL) {
		free(s);
		(void)store_fail(err, BATON_E_MEMORY, "no memory for a store");
		return BATON_E_MEMORY;
	}
	s->locks = options->locks;
	if (options->prefix[0] != '\0')
		(void)snprintf(s->prefix, sizeof(s->prefix), "%s/", options->prefix);
	*out = s;
	return BATON_OK;
}

static void memory_close(void *store)
{
	struct memory_store *s = store;

	locks_end_session(s);
	shelf_put(s->shelf);
	free(s);
}

static int memory_lane_open(void *store, int kind, void **out, struct baton_error *err)
{
	struct memory_lane *lane = calloc(1, sizeof(*lane));

	(void)kind;
	if (lane == NULL) {
		(void)store_fail(err, BATON_E_MEMORY, "no memory for a lane");
		return BATON_E_MEMORY;
	}
	lane->store = store;
	*out = lane;
	return BATON_OK;
}

static void memory_lane_close(void *lane)
{
	free(lane);
}

static void memory_forget(void *store)
{
	(void)store;
}

static int memory_age(void *l, struct baton_call *call, struct record_age *age)
{
	const struct memory_lane *lane = l;

	(void)call;
	age->uptime_ns = clock_boot_ns() - lane->store->shelf->made_ns;
	age->server_ms = (uint64_t)clock_wall_ms();
	return BATON_OUTCOME_OK;
}

/* ---- records ---- */

struct place {
	char key[RECORD_PREFIX_MAX + 1024];
};

static struct place place_of(const struct memory_store *s, const char *key)
{
	struct place place;

	(void)snprintf(place.key, sizeof(place.key), "%s%s", s->prefix, key);
	return place;
}

static struct record_version version_of(const struct record *r)
{
	return record_version_of(&r->serial, sizeof(r->serial));
}

static bool is_version(const struct record *r, const struct record_version *v)
{
	uint64_t serial = 0;

	if (r == NULL || v->n == 0)
		return r == NULL && v->n == 0;
	(void)memcpy(&serial, v->bytes, sizeof(serial));
	return v->n == sizeof(serial) && serial == r->serial;
}

/* What is there now, into the item. */
static void item_fill(struct record_item *item, const struct record *r)
{
	bytes_clear(&item->value);
	item->version = (struct record_version){.n = 0};
	if (r == NULL)
		return;
	item->version = version_of(r);
	item->age_ns = clock_boot_ns() - r->written_ns;
	(void)bytes_add(&item->value, r->value, r->n, r->n);
}

static void memory_get(void *l, struct baton_call *call, struct record_item *items, size_t n,
		       bool fresh)
{
	struct memory_lane *lane = l;
	struct shelf *shelf = lane->store->shelf;

	(void)call;
	(void)fresh;
	(void)pthread_mutex_lock(&shelf->lock);
	for (size_t i = 0; i < n; i++) {
		struct place place = place_of(lane->store, items[i].key);
		struct record *r = (struct record *)name_table_find(&shelf->records, place.key);
		bool is_known = items[i].version.n != 0 && is_version(r, &items[i].version);

		if (!is_known)
			item_fill(&items[i], r);
		items[i].is_unchanged = is_known;
		items[i].outcome = BATON_OUTCOME_OK;
	}
	(void)pthread_mutex_unlock(&shelf->lock);
}

/* With the lock held. False: no memory. */
static bool record_write(struct shelf *shelf, const char *key, struct record *r,
			 const struct bytes *value)
{
	size_t size = strlen(key) + 1;
	char *copy = malloc(value->n + 1);

	if (copy != NULL && r == NULL) {
		r = calloc(1, sizeof(*r) + size);
		if (r != NULL) {
			(void)memcpy(r->key, key, size);
			name_table_add(&shelf->records, &r->node, r->key);
		}
	}
	if (copy == NULL || r == NULL) {
		free(copy);
		return false;
	}
	(void)memcpy(copy, value->at, value->n);
	free(r->value);
	r->value = copy;
	r->n = value->n;
	r->serial = ++shelf->serial;
	r->written_ns = clock_boot_ns();
	return true;
}

static void memory_write(void *l, struct baton_call *call, struct record_item *items, size_t n,
			 bool is_drop)
{
	struct memory_lane *lane = l;
	struct shelf *shelf = lane->store->shelf;

	(void)pthread_mutex_lock(&shelf->lock);
	for (size_t i = 0; i < n; i++) {
		struct place place = place_of(lane->store, items[i].key);
		struct record *r = (struct record *)name_table_find(&shelf->records, place.key);

		items[i].outcome = BATON_OUTCOME_OK;
		if (!is_version(r, &items[i].version)) {
			items[i].outcome = BATON_OUTCOME_REFUSED;
			items[i].is_told = true;
			item_fill(&items[i], r);
		} else if (is_drop) {
			if (r != NULL)
				record_free(shelf, r);
			shelf->serial++;
		} else if (record_write(shelf, place.key, r, &items[i].value)) {
			r = (struct record *)name_table_find(&shelf->records, place.key);
			items[i].version = version_of(r);
		} else {
			items[i].outcome = BATON_OUTCOME_FAILED;
			items[i].code = BATON_E_MEMORY;
			(void)store_fail(&call->error, BATON_E_MEMORY, "no memory for a record");
		}
	}
	(void)pthread_cond_broadcast(&shelf->changed);
	(void)pthread_mutex_unlock(&shelf->lock);
}

static void memory_put(void *lane, struct baton_call *call, struct record_item *items, size_t n)
{
	memory_write(lane, call, items, n, false);
}

static void memory_drop(void *lane, struct baton_call *call, struct record_item *items, size_t n)
{
	memory_write(lane, call, items, n, true);
}

/* A copy, because whoever is told may want to write. */
static int memory_list(void *l, struct baton_call *call, const char *prefix, bool with_values,
		       record_found *found, void *arg)
{
	struct memory_lane *lane = l;
	struct shelf *shelf = lane->store->shelf;
	struct place place = place_of(lane->store, prefix);
	size_t length = strlen(place.key);
	size_t skipped = strlen(lane->store->prefix);
	struct bytes keys = {.at = NULL};

	(void)pthread_mutex_lock(&shelf->lock);
	for (const struct name_node *node = name_table_next(&shelf->records, NULL); node != NULL;
	     node = name_table_next(&shelf->records, node))
		if (strncmp(node->key, place.key, length) == 0)
			(void)bytes_add(&keys, node->key + skipped, strlen(node->key) - skipped + 1,
					SIZE_MAX);
	(void)pthread_mutex_unlock(&shelf->lock);
	for (const char *key = keys.at; key != NULL && key < keys.at + keys.n;
	     key += strlen(key) + 1) {
		struct record_item item = {.key = key, .age_ns = RECORD_NEVER};

		memory_get(lane, call, &item, 1, true);
		if (!with_values)
			bytes_clear(&item.value);
		if (item.version.n != 0)
			found(arg, &item);
		bytes_done(&item.value);
	}
	bytes_done(&keys);
	return BATON_OUTCOME_OK;
}

/* ---- push ---- */

static void shelf_wait(struct shelf *shelf, uint64_t deadline_ns)
{
	uint64_t now_ns = clock_boot_ns();
	uint64_t left_ns = now_ns < deadline_ns ? deadline_ns - now_ns : 0;
	struct timespec until;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	left_ns += (uint64_t)until.tv_nsec;
	until.tv_sec += (time_t)(left_ns / CLOCK_NS_PER_S);
	until.tv_nsec = (long)(left_ns % CLOCK_NS_PER_S);
	(void)pthread_cond_timedwait(&shelf->changed, &shelf->lock, &until);
}

/* What was dropped can't be told by its key any more: then everything may have changed. */
static void memory_tell(struct memory_lane *lane, record_changed *changed, void *arg)
{
	struct shelf *shelf = lane->store->shelf;
	struct place place = place_of(lane->store, "e/");
	uint64_t last = lane->serial;
	uint64_t n = 0;

	for (const struct name_node *node = name_table_next(&shelf->records, NULL); node != NULL;
	     node = name_table_next(&shelf->records, node)) {
		const struct record *r = (const struct record *)node;

		n += r->serial > last;
		if (r->serial > last && strncmp(r->key, place.key, strlen(place.key)) == 0)
			changed(arg, r->key + strlen(lane->store->prefix));
	}
	if (n < shelf->serial - last)
		changed(arg, NULL);
	lane->serial = shelf->serial;
}

static int memory_watch(void *l, struct baton_call *call, record_changed *changed, void *arg)
{
	struct memory_lane *lane = l;
	struct shelf *shelf = lane->store->shelf;

	(void)pthread_mutex_lock(&shelf->lock);
	if (!lane->is_standing) {
		lane->is_standing = true;
		lane->serial = shelf->serial;
		changed(arg, NULL);
	} else {
		while (!lane->is_woken && lane->serial == shelf->serial &&
		       clock_boot_ns() < call->deadline_ns)
			shelf_wait(shelf, call->deadline_ns);
		memory_tell(lane, changed, arg);
	}
	lane->is_woken = false;
	(void)pthread_mutex_unlock(&shelf->lock);
	return BATON_OUTCOME_OK;
}

static void memory_wake(void *l)
{
	struct memory_lane *lane = l;
	struct shelf *shelf = lane->store->shelf;

	(void)pthread_mutex_lock(&shelf->lock);
	lane->is_woken = true;
	(void)pthread_cond_broadcast(&shelf->changed);
	(void)pthread_mutex_unlock(&shelf->lock);
}

/* ---- locks ---- */

/* With the shelf's lock held. NULL: nobody has it. */
static struct native *lock_find(struct shelf *shelf, const char *name)
{
	struct native *lock = (struct native *)name_table_find(&shelf->locks, name);

	if (lock == NULL || clock_boot_ns() < lock->until_ns)
		return lock;
	name_table_remove(&shelf->locks, &lock->node);
	free(lock);
	return NULL;
}

static struct native *lock_make(struct shelf *shelf, const char *name)
{
	size_t size = strlen(name) + 1;
	struct native *lock = calloc(1, sizeof(*lock) + size);

	if (lock == NULL)
		return NULL;
	(void)memcpy(lock->name, name, size);
	lock->until_ns = lock->told_ns = RECORD_NEVER;
	name_table_add(&shelf->locks, &lock->node, lock->name);
	return lock;
}

static void lock_set(struct native *lock, const struct memory_store *s, const char *lease_id,
		     uint64_t ttl_ns)
{
	lock->holder = s;
	(void)snprintf(lock->lease_id, sizeof(lock->lease_id), "%s", lease_id);
	if (s->locks == RECORD_LOCKS_DURATION)
		lock->until_ns = clock_boot_ns() + ttl_ns;
}

static int memory_lock(void *l, struct baton_call *call, const char *name, const char *lease_id,
		       uint64_t ttl_ns, uint64_t *free_in_ns)
{
	const struct memory_lane *lane = l;
	struct shelf *shelf = lane->store->shelf;
	int outcome = BATON_OUTCOME_OK;

	(void)call;
	(void)pthread_mutex_lock(&shelf->lock);
	struct native *lock = lock_find(shelf, name);

	if (lock == NULL)
		lock = lock_make(shelf, name);
	else if (lock->holder != lane->store)
		outcome = BATON_OUTCOME_REFUSED;
	if (lock == NULL)
		outcome = BATON_OUTCOME_FAILED;
	else if (outcome == BATON_OUTCOME_OK)
		lock_set(lock, lane->store, lease_id, ttl_ns);
	else
		*free_in_ns = lock->told_ns;
	(void)pthread_mutex_unlock(&shelf->lock);
	return outcome;
}

static int memory_keep(void *l, struct baton_call *call, const char *name, const char *lease_id,
		       uint64_t ttl_ns)
{
	const struct memory_lane *lane = l;
	struct shelf *shelf = lane->store->shelf;

	(void)call;
	(void)pthread_mutex_lock(&shelf->lock);
	struct native *lock = lock_find(shelf, name);
	bool is_ours = lock != NULL && lock->holder == lane->store &&
		       strcmp(lock->lease_id, lease_id) == 0;

	if (is_ours)
		lock_set(lock, lane->store, lease_id, ttl_ns);
	(void)pthread_mutex_unlock(&shelf->lock);
	return is_ours ? BATON_OUTCOME_OK : BATON_OUTCOME_REFUSED;
}

static int memory_unlock(void *l, struct baton_call *call, const char *name, const char *lease_id)
{
	const struct memory_lane *lane = l;
	struct shelf *shelf = lane->store->shelf;

	(void)call;
	(void)pthread_mutex_lock(&shelf->lock);
	struct native *lock = lock_find(shelf, name);

	if (lock != NULL && lock->holder == lane->store && strcmp(lock->lease_id, lease_id) == 0)
		lock->until_ns = 0;
	(void)lock_find(shelf, name);
	(void)pthread_mutex_unlock(&shelf->lock);
	return BATON_OUTCOME_OK;
}

bool memory_lock_take(const char *store, const char *name)
{
	struct shelf *shelf = shelf_get(store);

	(void)pthread_mutex_lock(&shelf->lock);
	bool is_free = lock_find(shelf, name) == NULL && lock_make(shelf, name) != NULL;

	(void)pthread_mutex_unlock(&shelf->lock);
	shelf_put(shelf);
	return is_free;
}

void memory_lock_free_in(const char *store, const char *name, uint64_t ns)
{
	struct shelf *shelf = shelf_get(store);

	(void)pthread_mutex_lock(&shelf->lock);
	struct native *lock = lock_find(shelf, name);

	if (lock != NULL)
		lock->told_ns = ns;
	(void)pthread_mutex_unlock(&shelf->lock);
	shelf_put(shelf);
}

void memory_lock_end(const char *store, const char *name)
{
	struct shelf *shelf = shelf_get(store);

	(void)pthread_mutex_lock(&shelf->lock);
	struct native *lock = lock_find(shelf, name);

	if (lock != NULL)
		lock->until_ns = 0;
	(void)lock_find(shelf, name);
	(void)pthread_mutex_unlock(&shelf->lock);
	shelf_put(shelf);
}

bool memory_lock_is_taken(const char *store, const char *name)
{
	struct shelf *shelf = shelf_get(store);

	(void)pthread_mutex_lock(&shelf->lock);
	bool is_taken = lock_find(shelf, name) != NULL;

	(void)pthread_mutex_unlock(&shelf->lock);
	shelf_put(shelf);
	return is_taken;
}

static const struct record_adapter adapter = {
	.name = "memory+record",
	.page = "adapter.h",
	.key_max = 512,
	.value_max = 1 << 20,
	.batch_max = 1000,
	.get_max = 1000,
	.poll_ms = 1000,
	.lists_values = true,
	.traits = RECORD_TRAITS(.min_lease_ns = 100 * CLOCK_NS_PER_MS,
				.promises = "All handles of this process on one name share the "
					    "records. Nothing outlives the last of them."),
	.open = memory_open,
	.close = memory_close,
	.lane_open = memory_lane_open,
	.lane_close = memory_lane_close,
	.forget = memory_forget,
	.get = memory_get,
	.put = memory_put,
	.drop = memory_drop,
	.list = memory_list,
	.watch = memory_watch,
	.wake = memory_wake,
	.age = memory_age,
	.lock_take = memory_lock,
	.lock_keep = memory_keep,
	.lock_drop = memory_unlock,
};

static const char *const schemes[] = {"memory+record", NULL};

RECORD_DRIVER(baton_driver, adapter, .name = "memory+record", .schemes = schemes);
