/*
 * sweep.c: deletes what is no longer needed (R10): dead leases, and candidates whose lease is
 * dead. It runs every ten minutes or so, on the watch lane. If it deletes something too early, a
 * candidate waits longer, but safety doesn't suffer (R4). What this must never do: delete an
 * election (R9).
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/record/layer.h"

#define SWEEP_NS (600 * CLOCK_NS_PER_S)
/* The longest sweep. Hints wait for it. */
#define SWEEP_TIME_NS (2 * CLOCK_NS_PER_S)

/* A lease as earlier sweeps have seen it. */
struct swept {
	struct name_node node;
	struct record_sight sight;
	bool is_listed;
	bool is_unread; /* only its version is known */
	bool is_named;
	char id[BATON_LEASE_ID_MAX + 1];
};

/* A page of candidates. */
struct swept_page {
	struct swept_page *next;
	struct record_version version;
	char key[];
};

struct record_sweeper {
	struct name_table leases;
	struct swept_page *pages;
	size_t n_pages;
};

uint64_t record_sweep_ns(void)
{
	return clock_boot_ns() + SWEEP_NS / 2 + record_random() % SWEEP_NS;
}

struct record_sweeper *record_sweeper_new(void)
{
	struct record_sweeper *w = calloc(1, sizeof(*w));

	if (w != NULL && name_table_init(&w->leases) == 0)
		return w;
	free(w);
	return NULL;
}

static void sweep_free_pages(struct record_sweeper *w)
{
	while (w->pages != NULL) {
		struct swept_page *page = w->pages;

		w->pages = page->next;
		free(page);
	}
	w->n_pages = 0;
}

void record_sweeper_free(struct record_sweeper *w)
{
	struct name_node *node;

	if (w == NULL)
		return;
	while ((node = name_table_pop(&w->leases)) != NULL)
		free(node);
	name_table_done(&w->leases);
	sweep_free_pages(w);
	free(w);
}

/* ---- what is there ---- */

static void sweep_found_page(void *arg, const struct record_item *item)
{
	struct record_sweeper *w = arg;
	size_t size = strlen(item->key) + 1;
	struct swept_page *page = malloc(sizeof(*page) + size);

	if (page == NULL)
		return;
	page->version = item->version;
	(void)memcpy(page->key, item->key, size);
	page->next = w->pages;
	w->pages = page;
	w->n_pages++;
}

static void sweep_found_lease(void *arg, const struct record_item *item)
{
	struct record_sweeper *w = arg;
	char id[BATON_LEASE_ID_MAX + 1];

	record_lease_of_key(item->key, id);
	struct swept *l = (struct swept *)name_table_find(&w->leases, id);

	if (l == NULL) {
		l = calloc(1, sizeof(*l));
		if (l == NULL)
			return;
		(void)memcpy(l->id, id, sizeof(l->id));
		name_table_add(&w->leases, &l->node, l->id);
	}
	l->is_listed = true;
	l->is_named = false;
	l->is_unread =
		!l->sight.is_known || !record_same_version(&l->sight.version, &item->version);
}

static struct swept *sweep_next(const struct record_sweeper *w, const struct swept *l)
{
	return (struct swept *)name_table_next(&w->leases, l != NULL ? &l->node : NULL);
}

/* Forgets leases that are gone. */
static void sweep_tidy(struct record_sweeper *w)
{
	struct swept *next;

	for (struct swept *l = sweep_next(w, NULL); l != NULL; l = next) {
		next = sweep_next(w, l);
		if (!l->is_listed) {
			name_table_remove(&w->leases, &l->node);
			free(l);
		} else {
			l->is_listed = false;
		}
	}
}

static void sweep_read(struct record_lane *lane, struct baton_call *call)
{
	struct record_sweeper *w = lane->sweeper;
	size_t max = w->leases.n;
	struct record_item *items = record_items_new(call, max);
	struct record_key *keys = calloc(max > 0 ? max : 1, sizeof(*keys));
	struct record_lease lease;
	size_t n = 0;

	for (struct swept *l = sweep_next(w, NULL); l != NULL && items != NULL && keys != NULL;
	     l = sweep_next(w, l)) {
		if (!l->is_unread)
			continue;
		keys[n] = record_key_of(lane->store, RECORD_LEASES, l->id);
		items[n].key = keys[n].text;
		n++;
	}
	record_get(lane, call, items, n, false);
	for (size_t i = 0; i < n; i++) {
		struct swept *l = (struct swept *)name_table_find(&w->leases, items[i].key + 2);

		if (l != NULL && items[i].outcome == BATON_OUTCOME_OK &&
		    record_read_lease(call, &items[i], &lease))
			record_sight_note(&l->sight, &items[i].version,
					  items[i].version.n != 0 ? &lease : NULL, 0, false,
					  clock_boot_ns());
	}
	free(keys);
	record_items_free(items, max);
}

static void sweep_found_election(void *arg, const struct record_item *item)
{
	struct record_sweeper *w = arg;
	struct record_election e;

	if (record_parse_election(item->value.at, item->value.n, &e) != 0)
		return;
	struct swept *l = (struct swept *)name_table_find(&w->leases, e.lease);

	if (l != NULL)
		l->is_named = true;
}

/*
 * Finds out which leases an election names. If lists have no values, reading all elections one by
 * one would be too much. A dead lease then stays until no candidate can still be waiting for it.
 */
static int sweep_named(struct record_lane *lane, struct baton_call *call)
{
	struct record_sweeper *w = lane->sweeper;
	const struct record_adapter *adapter = lane->store->adapter;
	uint64_t now_ns = clock_boot_ns();

	if (adapter->lists_values)
		return adapter->list(lane->lane, call, "e/", true, sweep_found_election, w);
	for (struct swept *l = sweep_next(w, NULL); l != NULL; l = sweep_next(w, l))
		l->is_named = now_ns - l->sight.since_ns < record_idle_ns(l->sight.ttl_ns);
	return BATON_OUTCOME_OK;
}

/* ---- what goes ---- */

/* A lease that was not renewed for very long gets its tombstone now, and is deleted by a later
 * sweep. */
static void sweep_bury(struct record_lane *lane, struct baton_call *call, const struct swept *l)
{
	struct record_key key = record_key_of(lane->store, RECORD_LEASES, l->id);
	struct record_item item = {.key = key.text, .version = l->sight.version};
	struct record_lease lease;
	char text[RECORD_TEXT_MAX];

	(void)memset(&lease, 0, sizeof(lease));
	record_tombstone(&lease, RECORD_IDLE, l->sight.ttl_ns, "", record_random());
	size_t n = record_write_lease(&lease, text, sizeof(text));

	if (n > 0 && bytes_add(&item.value, text, n, n))
		record_put(lane, call, &item, 1);
	bytes_done(&item.value);
}

static void sweep_leases(struct record_lane *lane, struct baton_call *call)
{
	struct record_sweeper *w = lane->sweeper;
	struct record_item *items = record_items_new(call, w->leases.n);
	struct record_key *keys = calloc(w->leases.n + 1, sizeof(*keys));
	size_t n = 0;

	for (const struct swept *l = sweep_next(w, NULL);
	     l != NULL && items != NULL && keys != NULL; l = sweep_next(w, l)) {
		int what = record_sweep_lease(&l->sight, l->is_named,
					      record_idle_ns(l->sight.ttl_ns), clock_boot_ns());

		if (what == RECORD_END)
			sweep_bury(lane, call, l);
		if (what != RECORD_DROP)
			continue;
		keys[n] = record_key_of(lane->store, RECORD_LEASES, l->id);
		items[n].key = keys[n].text;
		items[n++].version = l->sight.version;
	}
	record_drop(lane, call, items, n);
	record_items_free(items, w->leases.n);
	free(keys);
}

static void sweep_pages(struct record_lane *lane, struct baton_call *call)
{
	const struct record_sweeper *w = lane->sweeper;
	const struct record_sight missing = {.is_known = true};
	struct record_item *items = record_items_new(call, w->n_pages);
	size_t n = 0;

	for (const struct swept_page *page = w->pages; page != NULL && items != NULL;
	     page = page->next) {
		char id[BATON_LEASE_ID_MAX + 1];

		record_lease_of_key(page->key, id);
		const struct swept *l = (struct swept *)name_table_find(&w->leases, id);

		if (record_sweep_candidate(l != NULL ? &l->sight : &missing) != RECORD_DROP)
			continue;
		items[n].key = page->key;
		items[n++].version = page->version;
	}
	record_drop(lane, call, items, n);
	record_items_free(items, w->n_pages);
}

/* Lists candidates before leases. So a candidate that opens its lease and shows itself in between
 * isn't taken for dead. */
void record_sweep(struct record_lane *lane, uint64_t deadline_ns)
{
	const struct record_adapter *adapter = lane->store->adapter;
	uint64_t now_ns = clock_boot_ns();
	struct baton_call call = {.deadline_ns = now_ns + SWEEP_TIME_NS};

	if (call.deadline_ns > deadline_ns)
		call.deadline_ns = deadline_ns;
	lane->sweep_ns = record_sweep_ns();
	if (lane->sweeper == NULL)
		return;
	sweep_free_pages(lane->sweeper);
	if (adapter->list(lane->lane, &call, "c/", false, sweep_found_page, lane->sweeper) !=
		    BATON_OUTCOME_OK ||
	    adapter->list(lane->lane, &call, "l/", false, sweep_found_lease, lane->sweeper) !=
		    BATON_OUTCOME_OK)
		return;
	sweep_tidy(lane->sweeper);
	sweep_read(lane, &call);
	if (sweep_named(lane, &call) == BATON_OUTCOME_OK)
		sweep_leases(lane, &call);
	sweep_pages(lane, &call);
}
