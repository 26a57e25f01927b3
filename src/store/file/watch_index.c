/* watch_index.c: see watch_index.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/file/watch_index.h"

#define HINT_ALL_NS (2 * CLOCK_NS_PER_S) /* between hints for all, while limited */

static struct watch_entry *find_name(const struct file_watch *w, const char *name);
static void leave_holder(struct file_watch *w, struct watch_entry *e);

/* ---- names ---- */

int file_index_init(struct file_watch *w)
{
	TAILQ_INIT(&w->pending);
	return watch_index_init(&w->names, sizeof(struct watch_entry)) != 0 ||
			       name_table_init(&w->wds) != 0 || name_table_init(&w->holders) != 0
		       ? -1
		       : 0;
}

int file_index_add(struct file_watch *w, const char *name, uint64_t cookie)
{
	const struct watch_entry *known = find_name(w, name);
	struct watch_entry *e = (struct watch_entry *)watch_index_add(
		&w->names, name, cookie, known != NULL && known->wd >= 0);

	if (e == NULL)
		return -1;
	if (known == NULL) {
		e->wd = -1;
		TAILQ_INSERT_TAIL(&w->pending, e, of_pending);
	}
	return 0;
}

int file_index_drop(struct file_watch *w, const char *name, uint64_t cookie)
{
	struct watch_entry *e = find_name(w, name);

	if (e == NULL || !watch_index_unwatch(&w->names, &e->watched, cookie) ||
	    watch_index_is_watched(&e->watched))
		return -1;
	int wd = e->wd;

	file_index_is_off(w, e);
	TAILQ_REMOVE(&w->pending, e, of_pending);
	leave_holder(w, e);
	watch_index_drop(&w->names, &e->watched);
	return wd >= 0 && file_index_by_wd(w, wd, NULL) == NULL ? wd : -1;
}

void file_index_clear(struct file_watch *w)
{
	for (struct name_node *node; (node = name_table_pop(&w->holders)) != NULL;)
		free(node);
	name_table_done(&w->holders);
	name_table_done(&w->wds);
	watch_index_done(&w->names);
}

void file_index_reset(struct file_watch *w)
{
	store_lock(&w->store->base);
	if (w->inotify >= 0)
		(void)close(w->inotify);
	w->inotify = w->top_wd = w->leases_wd = -1;
	w->all = true;
	for (struct watched *n = watch_index_next(&w->names, NULL); n != NULL;
	     n = watch_index_next(&w->names, n))
		file_index_is_off(w, (struct watch_entry *)n);
	store_unlock(&w->store->base);
}

static struct watch_entry *find_name(const struct file_watch *w, const char *name)
{
	return (struct watch_entry *)watch_index_find(&w->names, name);
}

/* ---- what is watched ---- */

bool file_index_next_pending(struct file_watch *w, char name[BATON_NAME_MAX + 1])
{
	store_lock(&w->store->base);
	const struct watch_entry *e = TAILQ_FIRST(&w->pending);
	if (e != NULL)
		(void)snprintf(name, BATON_NAME_MAX + 1, "%s", e->watched.node.key);
	store_unlock(&w->store->base);
	return e != NULL;
}

void file_index_is_on(struct file_watch *w, const char *name, int wd)
{
	struct watch_entry *e = find_name(w, name);

	if (e == NULL || e->wd >= 0)
		return;
	TAILQ_REMOVE(&w->pending, e, of_pending);
	e->wd = wd;
	(void)snprintf(e->wd_text, sizeof(e->wd_text), "%d", wd);
	name_table_add(&w->wds, &e->by_wd, e->wd_text);
	watch_index_hint(&w->names, &e->watched);
}

void file_index_is_off(struct file_watch *w, struct watch_entry *e)
{
	if (e->wd < 0)
		return;
	name_table_remove(&w->wds, &e->by_wd);
	e->wd = -1;
	TAILQ_INSERT_TAIL(&w->pending, e, of_pending);
}

struct watch_entry *file_index_by_wd(const struct file_watch *w, int wd,
				     const struct watch_entry *e)
{
	char text[16];

	(void)snprintf(text, sizeof(text), "%d", wd);
	struct name_node *node =
		e != NULL ? name_table_more(&e->by_wd) : name_table_find(&w->wds, text);

	return node != NULL ? name_container(node, struct watch_entry, by_wd) : NULL;
}

/* ---- holders ---- */

static struct watch_holder *find_holder(const struct file_watch *w, const char *id)
{
	return (struct watch_holder *)name_table_find(&w->holders, id);
}

static struct watch_holder *make_holder(struct file_watch *w, const char *id, uint64_t ttl_ns)
{
	struct watch_holder *h = find_holder(w, id);

	if (h == NULL && (h = calloc(1, sizeof(*h))) != NULL) {
		(void)snprintf(h->id, sizeof(h->id), "%s", id);
		h->check_ns = BATON_STORE_NEVER;
		name_table_add(&w->holders, &h->node, h->id);
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
	LIST_REMOVE(e, of_holder);
	e->holder = NULL;
	if (!LIST_EMPTY(&h->entries))
		return;
	name_table_remove(&w->holders, &h->node);
	free(h);
}

bool file_watch_holder(struct file_store *store, const char *name, const char *lease,
		       uint64_t ttl_ns)
{
	bool watched = false;

	store_lock(&store->base);
	struct file_watch *w = store->watch;
	struct watch_entry *e = w != NULL ? find_name(w, name) : NULL;
	if (e != NULL) {
		struct watch_holder *h = lease[0] != '\0' ? make_holder(w, lease, ttl_ns) : NULL;

		if (h == NULL || h != e->holder)
			leave_holder(w, e);
		if (h != NULL && e->holder == NULL)
			LIST_INSERT_HEAD(&h->entries, e, of_holder);
		e->holder = h;
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
		file_watch_nudge(store->watch); /* the lane may be about to sleep for longer */
	}
	store_unlock(&store->base);
}

void file_index_hint_holder(struct file_watch *w, const char *id)
{
	struct watch_holder *h = find_holder(w, id);

	if (h == NULL)
		return;
	h->check_ns = BATON_STORE_NEVER;
	for (const struct watch_entry *e = LIST_FIRST(&h->entries); e != NULL;
	     e = LIST_NEXT(e, of_holder))
		watch_index_hint(&w->names, &e->watched);
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
	const struct name_node *node = name_table_next(&w->holders, NULL);
	for (; !found && node != NULL; node = name_table_next(&w->holders, node)) {
		const struct watch_holder *h = (const struct watch_holder *)node;

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

	for (const struct name_node *node = name_table_next(&w->holders, NULL); node != NULL;
	     node = name_table_next(&w->holders, node)) {
		const struct watch_holder *h = (const struct watch_holder *)node;

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
