/*
 * watch.c: the watch lane. Every `poll` it looks at what is watched: with one list of the
 * elections, or the adapter's push, and one get of the other processes' leases that they name. It
 * gives a hint for each election whose record has another version, whose lease has died, or whose
 * lease is over by our clock. If the adapter has an alarm, the lane sleeps in it, and looks early
 * at the elections that the alarm rings for.
 *
 * What this must never do: say that a name is watched before it was read, or miss a change after
 * that.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/record/layer.h"

/* A look takes a quarter of our lease at most, within these bounds. If an answer is lost, a leader
 * must not wait for it until its claim is long gone. */
#define LOOK_MAX_NS (5 * CLOCK_NS_PER_S)
#define LOOK_MIN_NS (500 * CLOCK_NS_PER_MS)

static uint64_t min_ns(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* ---- what is watched ---- */

int record_driver_watch_add(void *l, const char *name, uint64_t cookie)
{
	struct record_store *s = ((struct record_lane *)l)->store;
	struct record_key key = record_key_of(s, RECORD_ELECTIONS, name);

	store_lock(&s->base);
	struct record_known *k = record_known_get(s, key.text, name);
	bool was_watched = k != NULL && watch_index_is_watched(&k->watched);
	bool is_added = k != NULL && watch_index_watch(&s->elections, &k->watched, cookie, false);

	if (is_added) {
		s->n_watched += !was_watched;
		k->is_told = false; /* so that reading it gives a hint */
		k->is_stale = s->has_stale = true;
	} else if (k != NULL) {
		record_known_tidy(s, k);
	}
	store_unlock(&s->base);
	return is_added ? BATON_OK : BATON_E_MEMORY;
}

void record_driver_watch_remove(void *l, const char *name, uint64_t cookie)
{
	struct record_store *s = ((struct record_lane *)l)->store;
	struct record_key key = record_key_of(s, RECORD_ELECTIONS, name);

	store_lock(&s->base);
	struct record_known *k = record_known_find(s, key.text);

	if (k != NULL && watch_index_unwatch(&s->elections, &k->watched, cookie)) {
		s->n_watched -= !watch_index_is_watched(&k->watched);
		record_known_tidy(s, k);
	}
	store_unlock(&s->base);
}

static size_t watch_take(struct record_store *s, uint64_t *cookies, size_t max)
{
	store_lock(&s->base);
	size_t n = watch_index_take(&s->elections, cookies, max);

	store_unlock(&s->base);
	return n;
}

/* The next election that is watched; the first one if k is NULL. With the lock held. */
static struct record_known *watch_next(const struct record_store *s, const struct record_known *k)
{
	struct watched *w = watch_index_next(&s->elections, k != NULL ? &k->watched : NULL);

	while (w != NULL && !watch_index_is_watched(w))
		w = watch_index_next(&s->elections, w);
	return (struct record_known *)w;
}

static bool watch_pushes(const struct record_store *s)
{
	return s->adapter->watch != NULL && !s->options.is_polled;
}

static bool watch_listens(const struct record_store *s)
{
	return s->adapter->listen != NULL && !s->options.is_polled;
}

static uint64_t watch_limit_ns(struct record_store *s)
{
	uint64_t limit_ns = LOOK_MAX_NS;

	store_lock(&s->base);
	for (const struct record_ours *ours = s->ours; ours != NULL; ours = ours->next)
		limit_ns = min_ns(limit_ns, ours->ttl_ns / 4);
	store_unlock(&s->base);
	return limit_ns > LOOK_MIN_NS ? limit_ns : LOOK_MIN_NS;
}

/* ---- looking at elections ---- */

/* The election has that version, as a read that was not too old shows. With the lock held. */
static void watch_tell(struct record_store *s, struct record_known *k,
		       const struct record_version *version)
{
	if (!k->is_told || !record_same_version(&k->told, version))
		record_known_hint(s, k);
	k->told = *version;
	k->is_told = true;
	k->is_stale = false;
}

struct listing {
	struct record_store *s;
	uint64_t sent_ns;
};

static void watch_listed(void *arg, const struct record_item *item)
{
	const struct listing *list = arg;
	struct record_store *s = list->s;

	store_lock(&s->base);
	struct record_known *k = record_known_find(s, item->key);

	if (k != NULL && watch_index_is_watched(&k->watched)) {
		k->is_listed = true;
		if (k->noted_ns == 0 || !record_same_version(&k->version, &item->version))
			k->is_stale = true;
		else if (record_known_note(s, k, &item->version, NULL, NULL, list->sent_ns))
			watch_tell(s, k, &item->version);
	}
	store_unlock(&s->base);
}

/* Lists all elections, to find those that have changed. An election that is not in the list has no
 * record. */
static int watch_list(struct record_lane *lane, struct baton_call *call)
{
	struct record_store *s = lane->store;
	struct listing list = {s, clock_boot_ns()};
	const struct record_version none = {.n = 0};
	struct record_election e;

	store_lock(&s->base);
	for (struct record_known *k = watch_next(s, NULL); k != NULL; k = watch_next(s, k))
		k->is_listed = false;
	store_unlock(&s->base);
	int outcome = s->adapter->list(lane->lane, call, "e/", false, watch_listed, &list);

	store_lock(&s->base);
	for (struct record_known *k = watch_next(s, NULL); k != NULL && outcome == BATON_OUTCOME_OK;
	     k = watch_next(s, k)) {
		record_no_election(&e, k->name);
		if (!k->is_listed && record_known_note(s, k, &none, &e, NULL, list.sent_ns))
			watch_tell(s, k, &none);
	}
	store_unlock(&s->base);
	return outcome;
}

/* The number of elections that are to be read. */
static size_t watch_count_stale(struct record_store *s, bool is_all)
{
	size_t n = 0;

	store_lock(&s->base);
	s->has_stale = false; /* if these reads fail, the watch is broken, and all are read */
	for (struct record_known *k = watch_next(s, NULL); k != NULL; k = watch_next(s, k)) {
		k->is_stale = k->is_stale || is_all;
		n += k->is_stale;
	}
	store_unlock(&s->base);
	return n;
}

/* The items point to the keys of the table. They stay, because only this lane removes an election
 * that is watched. */
static size_t watch_collect_stale(struct record_store *s, struct record_item *items, size_t max)
{
	size_t n = 0;

	store_lock(&s->base);
	for (struct record_known *k = watch_next(s, NULL); k != NULL && n < max;
	     k = watch_next(s, k)) {
		if (!k->is_stale)
			continue;
		items[n].key = k->watched.node.key;
		items[n].version = k->noted_ns != 0 ? k->version : (struct record_version){.n = 0};
		n++;
	}
	store_unlock(&s->base);
	return n;
}

static void watch_got(struct record_store *s, struct baton_call *call, struct record_item *item,
		      uint64_t sent_ns)
{
	struct record_election e;
	struct baton_error error = call->error;

	store_lock(&s->base);
	struct record_known *k = record_known_find(s, item->key);
	bool is_read =
		k != NULL && !item->is_unchanged && record_read_election(call, item, k->name, &e);

	if (k != NULL &&
	    record_known_note(s, k, &item->version, is_read ? &e : NULL, &item->value, sent_ns))
		watch_tell(s, k, &item->version);
	store_unlock(&s->base);
	call->error = error; /* a record that isn't valid is told to those that observe it */
}

static int watch_read_stale(struct record_lane *lane, struct baton_call *call, size_t n)
{
	struct record_store *s = lane->store;
	struct record_item *items = record_items_new(call, n);
	int outcome = items != NULL ? BATON_OUTCOME_OK : BATON_OUTCOME_FAILED;
	uint64_t sent_ns = clock_boot_ns();
	size_t n_items = items != NULL ? watch_collect_stale(s, items, n) : 0;

	record_get(lane, call, items, n_items, false);
	for (size_t i = 0; i < n_items; i++) {
		if (items[i].outcome == BATON_OUTCOME_OK)
			watch_got(s, call, &items[i], sent_ns);
		else
			outcome = BATON_OUTCOME_FAILED;
	}
	record_items_free(items, n);
	return outcome;
}

static int watch_elections(struct record_lane *lane, struct baton_call *call, bool is_all)
{
	struct record_store *s = lane->store;
	size_t n = watch_count_stale(s, is_all);
	bool is_long = n > RECORD_FEW && n > s->adapter->get_max;
	int outcome = is_long ? watch_list(lane, call) : BATON_OUTCOME_OK;

	if (is_long)
		n = watch_count_stale(s, false);
	return outcome == BATON_OUTCOME_OK && n > 0 ? watch_read_stale(lane, call, n) : outcome;
}

/* ---- looking at leases ---- */

static int watch_leases(struct record_lane *lane, struct baton_call *call, bool is_all)
{
	struct record_store *s = lane->store;
	size_t n = 0;

	store_lock(&s->base);
	size_t max = s->leases.n > 0 ? s->leases.n : 1;
	struct record_look *list = calloc(max, sizeof(*list));
	char(*ids)[BATON_LEASE_ID_MAX + 1] = calloc(max, sizeof(*ids));
	struct name_node *node = name_table_next(&s->leases, NULL);

	for (; node != NULL && list != NULL && ids != NULL;
	     node = name_table_next(&s->leases, node)) {
		const struct record_seen *seen = (struct record_seen *)node;

		if (LIST_EMPTY(&seen->elections))
			continue;
		(void)memcpy(ids[n], seen->id, sizeof(ids[n]));
		list[n] = (struct record_look){ids[n], seen->sight.ttl_ns};
		n++;
	}
	store_unlock(&s->base);
	int outcome = list != NULL && ids != NULL ? record_look(lane, call, list, n, is_all)
						  : record_no_memory(call);

	free(ids);
	free(list);
	return outcome;
}

/* Gives a hint, once, for each lease whose time has passed since we know its version. Returns when
 * the next lease's time will have passed. */
static uint64_t watch_over(struct record_store *s, uint64_t now_ns)
{
	uint64_t next_ns = RECORD_NEVER;

	store_lock(&s->base);
	for (struct name_node *node = name_table_next(&s->leases, NULL); node != NULL;
	     node = name_table_next(&s->leases, node)) {
		struct record_seen *seen = (struct record_seen *)node;
		uint64_t end_ns = record_sight_end_ns(&seen->sight);

		if (LIST_EMPTY(&seen->elections) || seen->is_over_told || end_ns == 0)
			continue;
		if (now_ns >= end_ns) {
			seen->is_over_told = true;
			record_seen_hint(s, seen);
		} else {
			next_ns = min_ns(next_ns, end_ns);
		}
	}
	store_unlock(&s->base);
	return next_ns;
}

/* ---- the lane ---- */

/* poll=, up to an eighth more or less, so that candidates don't all ask at the same time. */
static uint64_t watch_jitter_ns(const struct record_store *s)
{
	uint64_t poll_ns = s->options.poll_ms * CLOCK_NS_PER_MS;

	return poll_ns - poll_ns / 8 + record_random() % (poll_ns / 4 + 1);
}

static void watch_set_live(struct record_store *s, bool is_live)
{
	store_lock(&s->base);
	for (struct record_known *k = watch_next(s, NULL); k != NULL && is_live && !s->is_live;
	     k = watch_next(s, k))
		record_known_hint(s, k);
	s->is_live = is_live;
	store_unlock(&s->base);
}

static int watch_broken(struct record_lane *lane, struct baton_call *call,
			const struct baton_error *error)
{
	watch_set_live(lane->store, false);
	lane->is_all = true;
	lane->next_ns = 0;
	call->error = *error;
	if (call->error.code == 0)
		(void)store_fail(&call->error, BATON_E_UNAVAILABLE, "the store can't be watched");
	return call->error.code;
}

/* 0, or a code: the watch is broken. */
static int watch_look(struct record_lane *lane, struct baton_call *call)
{
	struct record_store *s = lane->store;
	uint64_t now_ns = clock_boot_ns();
	struct baton_call look = {.deadline_ns =
					  min_ns(call->deadline_ns, now_ns + watch_limit_ns(s))};
	bool is_due = now_ns >= lane->next_ns;
	bool is_all = lane->is_all || (is_due && !watch_pushes(s));

	lane->is_all = false;
	if (watch_elections(lane, &look, is_all) != BATON_OUTCOME_OK ||
	    watch_leases(lane, &look, is_due) != BATON_OUTCOME_OK)
		return watch_broken(lane, call, &look.error);
	if (is_due)
		lane->next_ns = clock_boot_ns() + watch_jitter_ns(s);
	if (is_all)
		watch_set_live(s, true);
	if (is_due && now_ns >= lane->sweep_ns)
		record_sweep(lane, call->deadline_ns);
	return 0;
}

/* With the lock held. */
static void watch_set_stale(struct record_store *s, struct record_known *k)
{
	if (k != NULL)
		k->is_stale = s->has_stale = true;
}

static void watch_rung(struct record_store *s, const char *id)
{
	struct record_known *k;

	store_lock(&s->base);
	const struct record_seen *seen = record_seen_find(s, id);

	k = seen != NULL ? LIST_FIRST(&seen->elections) : NULL;
	for (; k != NULL; k = LIST_NEXT(k, of_seen))
		watch_set_stale(s, k);
	store_unlock(&s->base);
}

static void watch_changed(void *arg, const char *key)
{
	struct record_lane *lane = arg;
	struct record_store *s = lane->store;

	if (key == NULL) {
		lane->is_standing = true;
		lane->is_all = true;
		return;
	}
	if (strncmp(key, "l/", 2) == 0) {
		watch_rung(s, key + 2);
		return;
	}
	store_lock(&s->base);
	watch_set_stale(s, record_known_find(s, key));
	store_unlock(&s->base);
}

/* ---- alarms ---- */

void record_watch_wake(struct record_store *s)
{
	for (struct store_lane *l = s->base.lanes; l != NULL && watch_listens(s); l = l->next)
		if (((struct record_lane *)l)->kind == BATON_LANE_WATCH)
			record_driver_watch_wake(l);
}

void record_watch_ring(struct record_store *s, bool is_release)
{
	store_lock(&s->base);
	s->rings = s->rings || is_release;
	record_watch_wake(s);
	store_unlock(&s->base);
}

/* Sleeps, and listens for those that ring. */
static void watch_listen(struct record_lane *lane, struct baton_call *call)
{
	struct record_store *s = lane->store;
	struct record_alarms alarms = {.wake = lane->wake};
	char ids[RECORD_ALARMS_MAX + 1][BATON_LEASE_ID_MAX + 1];

	store_lock(&s->base);
	alarms.rings = s->rings;
	s->rings = false;
	for (const struct record_ours *ours = s->ours; ours != NULL && alarms.own == NULL;
	     ours = ours->next)
		if (!LIST_EMPTY(&ours->claims))
			alarms.own = memcpy(ids[RECORD_ALARMS_MAX], ours->id, sizeof(ids[0]));
	for (struct name_node *node = name_table_next(&s->leases, NULL);
	     node != NULL && alarms.n_others < RECORD_ALARMS_MAX;
	     node = name_table_next(&s->leases, node)) {
		const struct record_seen *seen = (struct record_seen *)node;
		char *id = ids[alarms.n_others];

		if (!LIST_EMPTY(&seen->elections) && !record_sight_is_dead(&seen->sight))
			alarms.others[alarms.n_others++] = memcpy(id, seen->id, sizeof(ids[0]));
	}
	store_unlock(&s->base);
	s->adapter->listen(lane->lane, call, &alarms, watch_changed, lane);
}

static bool watch_take_wake(const struct record_lane *lane)
{
	uint64_t count;

	return read(lane->wake, &count, sizeof(count)) > 0;
}

/* Sleeps until then, or until something wakes us. 0, or a code: the watch is broken. */
static int watch_sleep(struct record_lane *lane, struct baton_call *call, uint64_t until_ns)
{
	const struct record_adapter *adapter = lane->store->adapter;
	struct pollfd wake = {.fd = lane->wake, .events = POLLIN};
	struct baton_call push = {.deadline_ns = until_ns};
	uint64_t now_ns = clock_boot_ns();

	if (watch_pushes(lane->store) && poll(&wake, 1, 0) == 0) {
		if (adapter->watch(lane->lane, &push, watch_changed, lane) != BATON_OUTCOME_OK) {
			lane->is_standing = false; /* only here: a look that fails leaves it set */
			return watch_broken(lane, call, &push.error);
		}
	} else if (watch_listens(lane->store) && poll(&wake, 1, 0) == 0) {
		watch_listen(lane, &push);
	} else if (!watch_pushes(lane->store) && now_ns < until_ns) {
		(void)poll(&wake, 1, (int)((until_ns - now_ns) / CLOCK_NS_PER_MS) + 1);
	}
	return 0;
}

static bool watch_has_work(struct record_lane *lane, uint64_t now_ns)
{
	struct record_store *s = lane->store;

	if (watch_pushes(s) && !lane->is_standing)
		return false;
	store_lock(&s->base);
	bool has_stale = s->has_stale;

	store_unlock(&s->base);
	return has_stale || lane->is_all || now_ns >= lane->next_ns;
}

int record_driver_watch_wait(void *l, struct baton_call *call, uint64_t *cookies, size_t max)
{
	struct record_lane *lane = l;
	uint64_t began_ns = clock_boot_ns();

	for (;;) {
		uint64_t now_ns = clock_boot_ns();
		uint64_t until_ns = min_ns(call->deadline_ns,
					   min_ns(watch_over(lane->store, now_ns), lane->next_ns));
		size_t n = watch_take(lane->store, cookies, max);
		bool is_short =
			call->deadline_ns - now_ns < LOOK_MIN_NS && now_ns - began_ns > LOOK_MIN_NS;
		int code = 0;

		if (n > 0 || now_ns >= call->deadline_ns)
			return (int)n;
		if (watch_has_work(lane, now_ns)) {
			if (is_short)
				return 0;
			code = watch_look(lane, call);
		} else {
			if (watch_pushes(lane->store) && !lane->is_standing)
				until_ns = min_ns(call->deadline_ns,
						  now_ns + watch_limit_ns(lane->store));
			code = watch_sleep(lane, call, until_ns);
			if (watch_take_wake(lane))
				return code;
		}
		if (code != 0)
			return code;
	}
}

void record_driver_watch_wake(void *l)
{
	const struct record_lane *lane = l;
	uint64_t one = 1;

	if (write(lane->wake, &one, sizeof(one)) < 0) {
		/* The counter is full, so the lane wakes anyhow. */
	}
	if (lane->store->adapter->wake != NULL)
		lane->store->adapter->wake(lane->lane);
}
