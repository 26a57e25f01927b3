/* watch_index.c: see watch_index.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/file/watch_index.h"

#define HINT_ALL_NS (2 * CLOCK_NS_PER_S) /* while something can't be watched */
#define PENDING UINT64_MAX               /* in the place of a number */

static struct watch_entry *by_name(const struct file_watch *w, const char *name,
				   const struct watch_entry *e);
static struct watch_holder *find_holder(const struct file_watch *w, const char *id);
static void leave_holder(struct file_watch *w, struct watch_entry *e);

/* ---- names ---- */

int file_index_add(struct file_watch *w, const char *name, uint64_t cookie)
{
	size_t n = strlen(name) + 1;
	struct watch_entry *e = calloc(1, sizeof(*e) + n);

	if (e == NULL || file_table_reserve(&w->names) != 0 || file_table_reserve(&w->wds) != 0) {
		free(e);
		return -1;
	}
	memcpy(e->name, name, n);
	e->cookie = cookie;
	e->wd = -1;
	file_table_add(&w->wds, &e->by_wd, PENDING);
	file_table_add(&w->names, &e->by_name, file_table_key(name));
	return 0;
}

static void drop_hint(struct file_watch *w, const struct watch_entry *e)
{
	struct watch_entry *before = NULL;
	struct watch_entry *at = w->first_hint;

	while (at != NULL && at != e) {
		before = at;
		at = at->next_hint;
	}
	if (at == NULL)
		return;
	if (before != NULL)
		before->next_hint = e->next_hint;
	else
		w->first_hint = e->next_hint;
	if (w->last_hint == e)
		w->last_hint = before;
}

int file_index_drop(struct file_watch *w, const char *name, uint64_t cookie)
{
	struct watch_entry *e = by_name(w, name, NULL);

	while (e != NULL && e->cookie != cookie)
		e = by_name(w, name, e);
	if (e == NULL)
		return -1;
	int wd = e->wd;

	file_table_remove(&w->wds, &e->by_wd);
	if (e->hinted)
		drop_hint(w, e);
	leave_holder(w, e);
	file_table_remove(&w->names, &e->by_name);
	free(e);
	return wd >= 0 && file_index_by_wd(w, wd, NULL) == NULL ? wd : -1;
}

void file_index_clear(struct file_watch *w)
{
	for (struct file_node *node; (node = file_table_pop(&w->holders)) != NULL;)
		free(file_container(node, struct watch_holder, node));
	for (struct file_node *node; (node = file_table_pop(&w->names)) != NULL;)
		free(file_container(node, struct watch_entry, by_name));
	file_table_done(&w->names);
	file_table_done(&w->wds);
	file_table_done(&w->holders);
}

void file_index_reset(struct file_watch *w)
{
	store_lock(&w->store->base);
	if (w->inotify >= 0)
		(void)close(w->inotify);
	w->inotify = w->top_wd = w->leases_wd = -1;
	w->all = true;
	for (struct file_node *node = file_table_each(&w->names, NULL); node != NULL;
	     node = file_table_each(&w->names, node))
		file_index_is_off(w, file_container(node, struct watch_entry, by_name));
	store_unlock(&w->store->base);
}

static struct watch_entry *by_name(const struct file_watch *w, const char *name,
				   const struct watch_entry *e)
{
	struct file_node *node = e != NULL ? file_table_more(&e->by_name)
					   : file_table_find(&w->names, file_table_key(name));

	for (; node != NULL; node = file_table_more(node)) {
		struct watch_entry *found = file_container(node, struct watch_entry, by_name);

		if (strcmp(found->name, name) == 0)
			return found;
	}
	return NULL;
}

/* ---- what is watched ---- */

bool file_index_next_pending(struct file_watch *w, char name[BATON_NAME_MAX + 1])
{
	store_lock(&w->store->base);
	struct file_node *node = file_table_find(&w->wds, PENDING);
	if (node != NULL)
		(void)snprintf(name, BATON_NAME_MAX + 1, "%s",
			       file_container(node, struct watch_entry, by_wd)->name);
	store_unlock(&w->store->base);
	return node != NULL;
}

static void set_wd(struct file_watch *w, struct watch_entry *e, int wd)
{
	file_table_remove(&w->wds, &e->by_wd);
	e->wd = wd;
	file_table_add(&w->wds, &e->by_wd, wd < 0 ? PENDING : (uint64_t)wd);
}

void file_index_is_on(struct file_watch *w, const char *name, int wd)
{
	for (struct watch_entry *e = by_name(w, name, NULL); e != NULL; e = by_name(w, name, e)) {
		if (e->wd >= 0)
			continue;
		set_wd(w, e, wd);
		file_index_hint(w, e);
	}
}

void file_index_is_off(struct file_watch *w, struct watch_entry *e)
{
	if (e->wd >= 0)
		set_wd(w, e, -1);
}

struct watch_entry *file_index_by_wd(const struct file_watch *w, int wd,
				     const struct watch_entry *e)
{
	struct file_node *node =
		e != NULL ? file_table_more(&e->by_wd) : file_table_find(&w->wds, (uint64_t)wd);

	return node != NULL ? file_container(node, struct watch_entry, by_wd) : NULL;
}

/* ---- hints ---- */

void file_index_hint(struct file_watch *w, struct watch_entry *e)
{
	if (e->hinted)
		return;
	e->hinted = true;
	e->next_hint = NULL;
	if (w->first_hint == NULL)
		w->first_hint = e;
	else
		w->last_hint->next_hint = e;
	w->last_hint = e;
}

struct watch_entry *file_index_pop_hint(struct file_watch *w)
{
	struct watch_entry *e = w->first_hint;

	if (e == NULL)
		return NULL;
	w->first_hint = e->next_hint;
	if (w->first_hint == NULL)
		w->last_hint = NULL;
	e->hinted = false;
	return e;
}

/* ---- holders ---- */

static struct watch_holder *find_holder(const struct file_watch *w, const char *id)
{
	struct file_node *node = file_table_find(&w->holders, file_table_key(id));

	for (; node != NULL; node = file_table_more(node)) {
		struct watch_holder *h = file_container(node, struct watch_holder, node);

		if (strcmp(h->id, id) == 0)
			return h;
	}
	return NULL;
}

static struct watch_holder *make_holder(struct file_watch *w, const char *id, uint64_t ttl_ns)
{
	struct watch_holder *h = find_holder(w, id);

	if (h == NULL && file_table_reserve(&w->holders) == 0 &&
	    (h = calloc(1, sizeof(*h))) != NULL) {
		(void)snprintf(h->id, sizeof(h->id), "%s", id);
		h->check_ns = BATON_STORE_NEVER;
		file_table_add(&w->holders, &h->node, file_table_key(id));
	}
	if (h != NULL) {
		uint64_t check_ns = clock_boot_ns() + ttl_ns;

		h->ttl_ns = ttl_ns;
		if (check_ns < h->check_ns)
			h->check_ns = check_ns;
	}
	return h;
}

static void leave_holder(struct file_watch *w, struct watch_entry *e)
{
	struct watch_holder *h = e->holder;

	if (h == NULL)
		return;
	if (e->prev != NULL)
		e->prev->next = e->next;
	else
		h->entries = e->next;
	if (e->next != NULL)
		e->next->prev = e->prev;
	e->prev = e->next = NULL;
	e->holder = NULL;
	if (h->entries != NULL)
		return;
	file_table_remove(&w->holders, &h->node);
	free(h);
}

static void join_holder(struct watch_holder *h, struct watch_entry *e)
{
	e->holder = h;
	e->prev = NULL;
	e->next = h->entries;
	if (e->next != NULL)
		e->next->prev = e;
	h->entries = e;
}

bool file_watch_holder(struct file_store *store, const char *name, const char *lease,
		       uint64_t ttl_ns)
{
	bool watched = false;

	store_lock(&store->base);
	struct file_watch *w = store->watch;
	struct watch_entry *e = w != NULL ? by_name(w, name, NULL) : NULL;
	for (; e != NULL; e = by_name(w, name, e)) {
		struct watch_holder *h = lease[0] != '\0' ? make_holder(w, lease, ttl_ns) : NULL;

		if (h == NULL || h != e->holder)
			leave_holder(w, e);
		if (h != NULL && e->holder == NULL)
			join_holder(h, e);
		watched = e->wd >= 0 && w->leases_wd >= 0 && (h != NULL || lease[0] == '\0');
	}
	store_unlock(&store->base);
	return watched;
}

void file_watch_expiry(struct file_store *store, const char *lease, uint64_t free_in_ns)
{
	store_lock(&store->base);
	struct watch_holder *h = store->watch != NULL ? find_holder(store->watch, lease) : NULL;
	uint64_t check_ns = clock_boot_ns() + free_in_ns;
	if (h != NULL && check_ns < h->check_ns) {
		h->check_ns = check_ns;
		file_watch_nudge(store->watch); /* it may sleep for longer than that */
	}
	store_unlock(&store->base);
}

void file_index_hint_holder(struct file_watch *w, const char *id)
{
	struct watch_holder *h = find_holder(w, id);

	if (h == NULL)
		return;
	h->check_ns = BATON_STORE_NEVER;
	for (struct watch_entry *e = h->entries; e != NULL; e = e->next)
		file_index_hint(w, e);
}

void file_index_recheck(struct file_watch *w, const char *id, uint64_t check_ns,
			uint64_t closing_ns)
{
	struct watch_holder *h = find_holder(w, id);

	if (h == NULL)
		return;
	h->check_ns = check_ns;
	h->closing_ns = closing_ns;
}

bool file_index_next_due(struct file_watch *w, uint64_t now_ns, char id[BATON_LEASE_ID_MAX + 1],
			 uint64_t *ttl_ns, uint64_t *closing_ns)
{
	bool found = false;

	store_lock(&w->store->base);
	struct file_node *node = file_table_each(&w->holders, NULL);
	for (; !found && node != NULL; node = file_table_each(&w->holders, node)) {
		struct watch_holder *h = file_container(node, struct watch_holder, node);

		found = h->check_ns <= now_ns;
		if (found) {
			(void)snprintf(id, BATON_LEASE_ID_MAX + 1, "%s", h->id);
			*ttl_ns = h->ttl_ns;
			*closing_ns = h->closing_ns;
		}
	}
	store_unlock(&w->store->base);
	return found;
}

uint64_t file_index_next_ns(struct file_watch *w)
{
	uint64_t next_ns = BATON_STORE_NEVER;
	uint64_t now_ns = clock_boot_ns();

	for (struct file_node *node = file_table_each(&w->holders, NULL); node != NULL;
	     node = file_table_each(&w->holders, node)) {
		const struct watch_holder *h = file_container(node, struct watch_holder, node);

		if (h->check_ns < next_ns)
			next_ns = h->check_ns;
	}
	if (!w->limited)
		return next_ns;
	if (w->all_ns == 0 || now_ns >= w->all_ns) {
		w->all = w->all || w->all_ns != 0;
		w->all_ns = now_ns + HINT_ALL_NS;
	}
	if (w->all)
		return now_ns;
	return w->all_ns < next_ns ? w->all_ns : next_ns;
}
