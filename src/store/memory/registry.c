/*
 * registry.c: see memory.h. The registry of stores by name. It is the only global thing in this
 * driver, because all handles of a process share a store.
 *
 * S10: fork() copies the stores, with the locks that were held. The child starts with an empty
 * registry, and leaves the copies alone: they are not locked, read or freed.
 */
#include "store/memory/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCHEME "memory:"

static struct {
	pthread_once_t once;
	pthread_mutex_t lock;
	struct memory *stores;
	struct memory *forked; /* the parent's, kept so that leak checkers find them */
	uint64_t generation;
	bool fork_is_safe;
} registry = {.once = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER};

static void registry_init(void);
static const char *name_in(const char *url, struct baton_error *err);
static struct memory *memory_get(const char *name);
static struct memory *memory_new(const char *name);
static void memory_free(struct memory *m);

struct baton_memory *memory_handle_new(const char *url, struct baton_error *err)
{
	const char *name = name_in(url, err);
	struct baton_memory *handle;

	if (name == NULL)
		return NULL;
	(void)pthread_once(&registry.once, registry_init);
	handle = registry.fork_is_safe ? calloc(1, sizeof(*handle)) : NULL;
	if (handle != NULL) {
		pthread_mutex_lock(&registry.lock);
		handle->memory = memory_get(name);
		handle->generation = registry.generation;
		pthread_mutex_unlock(&registry.lock);
	}
	if (handle == NULL || handle->memory == NULL) {
		free(handle);
		store_fail(err, BATON_E_MEMORY, "no memory for the store \"%.100s\"", url);
		return NULL;
	}
	return handle;
}

void memory_handle_free(struct baton_memory *handle)
{
	struct memory *m;
	struct memory **at = &registry.stores;

	if (handle == NULL)
		return;
	m = handle->memory;
	pthread_mutex_lock(&registry.lock);
	if (handle->generation != registry.generation || --m->refs > 0) {
		m = NULL;
	} else {
		while (*at != m)
			at = &(*at)->next;
		*at = m->next;
	}
	pthread_mutex_unlock(&registry.lock);
	memory_free(m);
	free(handle);
}

bool memory_handle_is_forked(const struct baton_memory *handle)
{
	bool forked;

	pthread_mutex_lock(&registry.lock);
	forked = handle->generation != registry.generation;
	pthread_mutex_unlock(&registry.lock);
	return forked;
}

static const char *name_in(const char *url, struct baton_error *err)
{
	const char *name = url;

	if (url != NULL && strncmp(url, SCHEME, strlen(SCHEME)) == 0)
		name = url + strlen(SCHEME);
	if (url == NULL || name == url || *name == '\0') {
		store_fail(err, BATON_E_URL,
			   "not the URL of a memory store; expected \"memory:NAME\", the same "
			   "NAME for all handles of this process that share the store");
		return NULL;
	}
	if (strlen(name) > BATON_NAME_MAX || strpbrk(name, "?#/") != NULL) {
		store_fail(err, BATON_E_URL,
			   "not a valid name of a memory store: \"%.60s\"; expected at most %d "
			   "bytes without \"?\", \"#\" and \"/\"",
			   name, BATON_NAME_MAX);
		return NULL;
	}
	return name;
}

/* ---- fork ---- */

static void before_fork(void)
{
	pthread_mutex_lock(&registry.lock);
}

static void after_fork_in_parent(void)
{
	pthread_mutex_unlock(&registry.lock);
}

static void after_fork_in_child(void)
{
	struct memory **end = &registry.stores;

	while (*end != NULL)
		end = &(*end)->next;
	*end = registry.forked;
	registry.forked = registry.stores;
	registry.stores = NULL;
	registry.generation++;
	pthread_mutex_unlock(&registry.lock);
}

static void registry_init(void)
{
	registry.fork_is_safe =
		pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) == 0;
}

/* ---- stores ---- */

static struct memory *memory_get(const char *name)
{
	struct memory *m = registry.stores;

	while (m != NULL && strcmp(m->name, name) != 0)
		m = m->next;
	if (m == NULL) {
		m = memory_new(name);
		if (m == NULL)
			return NULL;
		m->next = registry.stores;
		registry.stores = m;
	}
	m->refs++;
	return m;
}

static int fill(struct memory *m, const char *name)
{
	static const char *const ends[MEMORY_ENDS] = {"expired", "closed", "destroyed",
						      "overwritten", "taken"};
	int rc = name_table_init(&m->leases) | name_table_init(&m->elections);

	for (size_t i = 0; i < MEMORY_ENDS; i++) {
		m->ends[i] = memory_word_new(ends[i]);
		rc |= m->ends[i] != NULL ? 0 : BATON_E_MEMORY;
	}
	m->name = strdup(name);
	return m->name != NULL ? rc : BATON_E_MEMORY;
}

static struct memory *memory_new(const char *name)
{
	struct memory *m = calloc(1, sizeof(*m));

	if (m == NULL)
		return NULL;
	if (memory_cond_init(&m->changed) != 0) {
		free(m);
		return NULL;
	}
	(void)pthread_mutex_init(&m->lock, NULL); /* never fails on Linux */
	LIST_INIT(&m->all);
	LIST_INIT(&m->lanes);
	m->earliest_ns = BATON_STORE_NEVER;
	if (fill(m, name) != 0) {
		memory_free(m);
		return NULL;
	}
	return m;
}

static void memory_free(struct memory *m)
{
	if (m == NULL)
		return;
	if (m->leases.slots != NULL && m->elections.slots != NULL)
		memory_free_all(m);
	name_table_done(&m->leases);
	name_table_done(&m->elections);
	for (size_t i = 0; i < MEMORY_ENDS; i++)
		memory_word_unref(m->ends[i]);
	memory_word_unref(m->reason);
	pthread_cond_destroy(&m->changed);
	pthread_mutex_destroy(&m->lock);
	free(m->name);
	free(m);
}
