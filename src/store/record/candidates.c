/*
 * candidates.c: how candidates show themselves to each other. c/LEASE lists, in pages, the
 * elections that the lease's owner is a candidate of, and is deleted with the lease. Elections with
 * the same profile share its text there.
 *
 * Our own candidacies are kept in memory, so that a page can be written again as a whole. To list
 * candidates, all pages of all leases are read. Only people and leaders that are to hand over do
 * that.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/record/layer.h"

/* The largest page. It is small, because each change of one candidacy writes its whole page
 * again. */
#define PAGE_MAX ((size_t)16 << 10)
/* Upper bounds: what a candidacy needs beside its texts, and a page's head. In texts, every byte
 * may need an escape. */
#define ENTRY_SIZE 160
#define HEAD_SIZE (12 * BATON_NAME_MAX + 256)

_Static_assert(HEAD_SIZE + ENTRY_SIZE + 6 * (BATON_NAME_MAX + BATON_METADATA_MAX) < PAGE_MAX,
	       "a candidacy of any size fits into a page");

/* ---- what we show: with the lock held ---- */

static void shown_drop_profile(struct record_shown_profile *p)
{
	if (p != NULL && --p->n_users == 0)
		free(p);
}

static void shown_remove(struct record_ours *ours, struct record_shown *c)
{
	name_table_remove(&ours->shown, &c->node);
	LIST_REMOVE(c, of_page);
	c->page->size -= c->size;
	c->page->is_dirty = true;
	shown_drop_profile(c->profile);
	free(c);
}

void record_shown_done(struct record_ours *ours)
{
	struct name_node *node;

	while ((node = name_table_next(&ours->shown, NULL)) != NULL)
		shown_remove(ours, (struct record_shown *)node);
	name_table_done(&ours->shown);
	while (ours->pages != NULL) {
		struct record_shown_page *page = ours->pages;

		ours->pages = page->next;
		free(page);
	}
}

/* A page with room for `size` bytes; NULL: no memory. */
static struct record_shown_page *shown_page(struct record_ours *ours, size_t size)
{
	struct record_shown_page *page = ours->pages;

	while (page != NULL && page->size + size > PAGE_MAX)
		page = page->next;
	if (page != NULL)
		return page;
	page = calloc(1, sizeof(*page));
	if (page == NULL)
		return NULL;
	page->number = ours->pages != NULL ? ours->pages->number + 1 : 0;
	page->size = HEAD_SIZE;
	page->next = ours->pages;
	ours->pages = page;
	return page;
}

static struct record_shown_profile *shown_profile(const struct baton_profile *p, int64_t now_ms)
{
	size_t size = strlen(p->metadata) + 1;
	struct record_shown_profile *new = malloc(sizeof(*new) + size);

	if (new == NULL)
		return NULL;
	*new = (struct record_shown_profile){.n_users = 1,
					     .updated_ms = now_ms,
					     .priority = p->priority,
					     .score_permille = p->score_permille,
					     .is_healthy = p->is_healthy};
	(void)memcpy(new->metadata, p->metadata, size);
	return new;
}

static bool shown_is_same(const struct record_shown_profile *a, const struct baton_profile *b,
			  int64_t now_ms)
{
	return a != NULL && a->updated_ms == now_ms && a->priority == b->priority &&
	       a->score_permille == b->score_permille && a->is_healthy == b->is_healthy &&
	       strcmp(a->metadata, b->metadata) == 0;
}

/* False: no memory. *last is the profile of the candidacy before, which this one may share. */
static bool shown_add(struct record_ours *ours, const struct baton_publication *p, int64_t now_ms,
		      struct record_shown_profile **last)
{
	struct record_shown *old = (struct record_shown *)name_table_find(&ours->shown, p->name);
	size_t name_size = strlen(p->name) + 1;
	struct record_shown *c = malloc(sizeof(*c) + name_size);
	bool is_shared = shown_is_same(*last, &p->profile, now_ms);
	struct record_shown_profile *profile =
		is_shared ? *last : shown_profile(&p->profile, now_ms);
	size_t size = ENTRY_SIZE + 6 * (name_size + strlen(p->profile.metadata));
	struct record_shown_page *page =
		c != NULL && profile != NULL ? shown_page(ours, size) : NULL;

	if (page == NULL) {
		if (!is_shared)
			shown_drop_profile(profile);
		free(c);
		return false;
	}
	profile->n_users += is_shared;
	*last = profile;
	if (old != NULL)
		shown_remove(ours, old);
	c->page = page;
	c->size = size;
	c->profile = profile;
	(void)memcpy(c->name, p->name, name_size);
	name_table_add(&ours->shown, &c->node, c->name);
	LIST_INSERT_HEAD(&page->shown, c, of_page);
	page->size += size;
	page->is_dirty = true;
	return true;
}

/* ---- pages ---- */

/* A page on its way to the store. */
struct publishing {
	struct record_store *s;
	const struct baton_lease *lease;
	size_t number;
	struct record_own own;
	int outcome;
	int code;
};

static struct record_shown_page *page_find(struct record_store *s, const struct publishing *p)
{
	const struct record_ours *ours = record_ours_find(s, p->lease->id);
	struct record_shown_page *page = ours != NULL ? ours->pages : NULL;

	while (page != NULL && page->number != p->number)
		page = page->next;
	return page;
}

static bool page_profile(struct record_page *out, struct record_shown_profile *p)
{
	struct record_profile profile = {.updated_ms = p->updated_ms,
					 .priority = p->priority,
					 .score_permille = p->score_permille,
					 .is_healthy = p->is_healthy};

	if (p->number != SIZE_MAX)
		return true;
	(void)memcpy(profile.metadata, p->metadata, strlen(p->metadata) + 1);
	p->number = out->n_profiles;
	return record_page_add_profile(out, &profile);
}

/* Writes the page as it is now, with this w. */
static bool page_encode(void *arg, uint64_t w, struct bytes *out)
{
	const struct publishing *p = arg;
	char text[PAGE_MAX];
	struct record_page record;
	bool is_whole = true;
	struct record_shown *c;

	record_page_begin(&record, text, sizeof(text), w, p->lease->owner, p->lease->address);
	store_lock(&p->s->base);
	const struct record_shown_page *page = page_find(p->s, p);
	struct record_shown *first = page != NULL ? LIST_FIRST(&page->shown) : NULL;

	for (c = first; c != NULL; c = LIST_NEXT(c, of_page))
		c->profile->number = SIZE_MAX;
	for (c = first; c != NULL; c = LIST_NEXT(c, of_page))
		is_whole = page_profile(&record, c->profile) && is_whole;
	for (c = first; c != NULL; c = LIST_NEXT(c, of_page))
		is_whole = record_page_add_name(&record, c->name, c->profile->number) && is_whole;
	store_unlock(&p->s->base);
	size_t n = record_page_end(&record);

	return is_whole && n > 0 && bytes_add(out, text, n, n);
}

/* Writes these pages. A page that could not be written stays marked as changed. */
static void pages_write(struct record_lane *lane, struct baton_call *call, struct publishing *list,
			size_t n)
{
	struct record_job *jobs = record_jobs_new(call, n);

	for (size_t i = 0; i < n; i++) {
		list[i].outcome = BATON_OUTCOME_FAILED;
		list[i].code = BATON_E_MEMORY;
	}
	if (jobs == NULL)
		return;
	for (size_t i = 0; i < n; i++) {
		record_job_init(&jobs[i], lane->store, RECORD_JOB_KEEP, NULL);
		jobs[i].key = record_page_key(list[i].lease->id, list[i].number);
		jobs[i].u.keep =
			(struct record_keep){.intent = RECORD_PUBLISH, .own = &list[i].own};
		jobs[i].encode = page_encode;
		jobs[i].arg = &list[i];
	}
	record_jobs_run(lane, call, jobs, n);
	store_lock(&lane->store->base);
	for (size_t i = 0; i < n; i++) {
		struct record_shown_page *page = page_find(lane->store, &list[i]);

		list[i].outcome = record_job_task(&jobs[i])->outcome;
		list[i].code = jobs[i].code;
		if (page != NULL) {
			page->own = list[i].own;
			page->is_dirty = list[i].outcome != BATON_OUTCOME_OK;
		}
	}
	store_unlock(&lane->store->base);
	free(jobs);
}

/* Which pages have changed; NULL: no memory. With the lock held. */
static struct publishing *pages_collect(struct record_store *s, const struct record_ours *ours,
					const struct baton_lease *lease, size_t *n)
{
	size_t room = ours->pages != NULL ? ours->pages->number + 1 : 1;
	struct publishing *list = calloc(room, sizeof(*list));

	*n = 0;
	for (const struct record_shown_page *page = ours->pages; page != NULL && list != NULL;
	     page = page->next)
		if (page->is_dirty)
			list[(*n)++] = (struct publishing){
				.s = s, .lease = lease, .number = page->number, .own = page->own};
	return list;
}

/* ---- publish and withdraw ---- */

static int publish_outcome(struct record_store *s, const struct baton_lease *lease,
			   const char *name, const struct publishing *list, size_t n, int *code)
{
	store_lock(&s->base);
	const struct record_ours *ours = record_ours_find(s, lease->id);
	const struct record_shown *c =
		ours != NULL ? (struct record_shown *)name_table_find(&ours->shown, name) : NULL;
	size_t number = c != NULL ? c->page->number : SIZE_MAX;

	store_unlock(&s->base);
	for (size_t i = 0; i < n; i++) {
		if (list[i].number != number)
			continue;
		*code = list[i].code;
		return list[i].outcome;
	}
	*code = BATON_E_MEMORY;
	return BATON_OUTCOME_FAILED;
}

void record_driver_publish(void *l, struct baton_call *call, const struct baton_lease *lease,
			   struct baton_publication *list, size_t n)
{
	struct record_lane *lane = l;
	struct record_store *s = lane->store;
	struct record_shown_profile *last = NULL;
	struct publishing *pages = NULL;
	int64_t now_ms = clock_wall_ms();
	size_t n_pages = 0;

	store_lock(&s->base);
	struct record_ours *ours = record_ours_find(s, lease->id);

	for (size_t i = 0; i < n && ours != NULL; i++)
		(void)shown_add(ours, &list[i], now_ms, &last);
	if (ours != NULL)
		pages = pages_collect(s, ours, lease, &n_pages);
	store_unlock(&s->base);
	if (n_pages > 0)
		pages_write(lane, call, pages, n_pages);
	for (size_t i = 0; i < n; i++) {
		list[i].code = 0;
		list[i].outcome = ours == NULL ? BATON_OUTCOME_REFUSED
					       : publish_outcome(s, lease, list[i].name, pages,
								 n_pages, &list[i].code);
	}
	free(pages);
	record_show_leaders(lane, call, lease, list, n);
}

int record_driver_withdraw(void *l, struct baton_call *call, const struct baton_lease *lease,
			   const char *name)
{
	struct record_lane *lane = l;
	struct record_store *s = lane->store;
	struct publishing *pages = NULL;
	int outcome = BATON_OUTCOME_OK;
	size_t n = 0;

	store_lock(&s->base);
	struct record_ours *ours = record_ours_find(s, lease->id);
	struct record_shown *c =
		ours != NULL ? (struct record_shown *)name_table_find(&ours->shown, name) : NULL;

	if (c != NULL)
		shown_remove(ours, c);
	if (ours != NULL)
		pages = pages_collect(s, ours, lease, &n);
	store_unlock(&s->base);
	if (n > 0)
		pages_write(lane, call, pages, n);
	for (size_t i = 0; i < n && outcome == BATON_OUTCOME_OK; i++)
		outcome = pages[i].outcome;
	free(pages);
	return outcome;
}

void record_shown_drop(struct record_lane *lane, const struct baton_call *call,
		       const char *lease_id)
{
	struct record_store *s = lane->store;
	struct baton_call quiet = {.deadline_ns = call->deadline_ns};
	struct record_key *keys = NULL;
	struct record_item *items = NULL;
	size_t n = 0;

	store_lock(&s->base);
	const struct record_ours *ours = record_ours_find(s, lease_id);
	size_t room = ours != NULL && ours->pages != NULL ? ours->pages->number + 1 : 0;

	if (room > 0) {
		keys = calloc(room, sizeof(*keys));
		items = record_items_new(&quiet, room);
	}
	for (const struct record_shown_page *page = keys != NULL && items != NULL ? ours->pages
										  : NULL;
	     page != NULL; page = page->next) {
		if (page->own.version.n == 0)
			continue; /* it was never written; if it was, a sweeper finds it */
		keys[n] = record_page_key(lease_id, page->number);
		items[n].key = keys[n].text;
		items[n++].version = page->own.version;
	}
	store_unlock(&s->base);
	if (n > 0)
		record_drop(lane, &quiet, items, n);
	record_items_free(items, room);
	free(keys);
}

/* ---- listing ---- */

/* A candidate of the election whose lease is still to be read. */
struct listed {
	char lease_id[BATON_LEASE_ID_MAX + 1];
	struct baton_candidate candidate;
};

struct listing {
	const char *name;
	struct record_item *pages; /* those that are to be read, if lists have no values */
	size_t n_pages;
	struct listed *list;
	size_t n;
	bool has_failed;
};

static void *grow(void *array, size_t n, size_t size)
{
	/* The room is a power of two, and full when n reaches it. */
	return n == 0 || (n & (n - 1)) == 0 ? realloc(array, (n > 0 ? 2 * n : 1) * size) : array;
}

static void listing_add(struct listing *a, const char *key, const struct record_candidates *page,
			size_t profile)
{
	struct listed *more = grow(a->list, a->n, sizeof(*a->list));
	struct record_profile p;

	if (more == NULL) {
		a->has_failed = true;
		return;
	}
	a->list = more;
	struct listed *out = &a->list[a->n++];

	(void)memset(out, 0, sizeof(*out));
	record_candidates_profile(page, profile, &p);
	record_lease_of_key(key, out->lease_id);
	(void)memcpy(out->candidate.id, page->owner, sizeof(out->candidate.id));
	(void)memcpy(out->candidate.address, page->address, sizeof(out->candidate.address));
	(void)memcpy(out->candidate.metadata, p.metadata, sizeof(out->candidate.metadata));
	out->candidate.is_healthy = p.is_healthy;
	out->candidate.score_permille = p.score_permille;
	out->candidate.priority = p.priority;
	out->candidate.updated_ms = p.updated_ms;
}

/* A page that isn't valid shows no candidate. */
static void listing_read(struct listing *a, const struct record_item *item)
{
	struct record_candidates page;
	char name[BATON_NAME_MAX + 1];
	size_t profile;
	size_t at = 0;

	if (item->value.n == 0 ||
	    record_parse_candidates(item->value.at, item->value.n, &page) != 0)
		return;
	while (record_candidates_name(&page, &at, name, &profile))
		if (strcmp(name, a->name) == 0)
			listing_add(a, item->key, &page, profile);
}

static void listing_found(void *arg, const struct record_item *item)
{
	struct listing *a = arg;
	struct record_item *more;

	if (item->value.n > 0) {
		listing_read(a, item);
		return;
	}
	more = grow(a->pages, a->n_pages, sizeof(*a->pages));
	if (more != NULL) {
		a->pages = more;
		more[a->n_pages] = (struct record_item){.key = strdup(item->key)};
		a->has_failed = a->has_failed || more[a->n_pages++].key == NULL;
	} else {
		a->has_failed = true;
	}
}

static int listing_pages(struct record_lane *lane, struct baton_call *call, struct listing *a)
{
	const struct record_adapter *adapter = lane->store->adapter;
	int outcome =
		adapter->list(lane->lane, call, "c/", adapter->lists_values, listing_found, a);

	if (outcome == BATON_OUTCOME_OK && !a->has_failed)
		record_get(lane, call, a->pages, a->n_pages, false);
	for (size_t i = 0; i < a->n_pages; i++) {
		if (outcome == BATON_OUTCOME_OK && !a->has_failed) {
			if (a->pages[i].outcome != BATON_OUTCOME_OK)
				outcome = BATON_OUTCOME_FAILED;
			listing_read(a, &a->pages[i]);
		}
		bytes_done(&a->pages[i].value);
		free((char *)(uintptr_t)a->pages[i].key);
	}
	free(a->pages);
	return a->has_failed ? record_no_memory(call) : outcome;
}

/* Tells those that live, as far as we can see, and which one leads. */
static int listing_tell(struct record_lane *lane, struct baton_call *call, struct listing *a,
			void (*found)(void *arg, const struct baton_candidate *candidate),
			void *arg)
{
	struct record_store *s = lane->store;
	struct record_key key = record_key_of(s, RECORD_ELECTIONS, a->name);
	struct record_item item = {.key = key.text};
	struct record_election e = {.term = 0};
	struct record_look *looks = calloc(a->n > 0 ? a->n : 1, sizeof(*looks));
	int outcome = looks != NULL ? BATON_OUTCOME_OK : record_no_memory(call);

	for (size_t i = 0; i < a->n && looks != NULL; i++)
		looks[i] = (struct record_look){a->list[i].lease_id, 0};
	if (looks != NULL && a->n > 0)
		outcome = record_look(lane, call, looks, a->n, true);
	if (outcome == BATON_OUTCOME_OK && a->n > 0)
		record_get(lane, call, &item, 1, false);
	if (item.outcome == BATON_OUTCOME_OK)
		(void)record_read_election(call, &item, a->name, &e);
	for (size_t i = 0; i < a->n && outcome == BATON_OUTCOME_OK; i++) {
		struct listed *c = &a->list[i];

		store_lock(&s->base);
		const struct record_seen *seen = record_seen_find(s, c->lease_id);
		bool is_shown = seen != NULL &&
				record_is_shown(seen->age_ns, &seen->sight, clock_boot_ns());

		store_unlock(&s->base);
		c->candidate.is_leader = strcmp(e.lease, c->lease_id) == 0;
		if (is_shown)
			found(arg, &c->candidate);
	}
	bytes_done(&item.value);
	free(looks);
	return outcome;
}

int record_driver_candidates(void *l, struct baton_call *call, const char *name,
			     void (*found)(void *arg, const struct baton_candidate *candidate),
			     void *arg)
{
	struct listing a = {.name = name};
	int outcome = listing_pages(l, call, &a);

	if (outcome == BATON_OUTCOME_OK)
		outcome = listing_tell(l, call, &a, found, arg);
	free(a.list);
	return outcome;
}
