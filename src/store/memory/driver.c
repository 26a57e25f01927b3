/*
 * driver.c: the memory driver, "memory:NAME": a store inside this process, for users' own tests. It
 * keeps the contract of baton-store.h to the letter, so a program that works on it works on a
 * server. Nothing survives the process. The switches of baton-memory.h break things on purpose.
 *
 * Each verb has the same three steps. memory_enter() takes the lock and does what the switches say.
 * The verb then does its one thing, atomically. memory_leave() frees the lock. Callbacks are called
 * after that, without the lock, with copies.
 */
#include "store/memory/memory.h"

#include <stdlib.h>
#include <string.h>

extern const struct baton_driver baton_memory_driver;

static int store_open(const struct baton_store_config *config, void **store,
		      struct baton_error *err)
{
	struct baton_memory *handle;
	struct baton_error own = {0};

	if (config == NULL || config->size < sizeof(*config)) {
		store_fail(err, BATON_E_INVALID, "the store's configuration is not valid");
		return BATON_E_INVALID;
	}
	handle = memory_handle_new(config->url, &own);
	if (handle == NULL) {
		if (err != NULL)
			*err = own;
		return own.code;
	}
	*store = handle;
	return 0;
}

static void store_close(void *store)
{
	memory_handle_free(store);
}

static const struct baton_traits *store_traits(const void *store)
{
	static const struct baton_traits traits = {
		.pushes = true,
		.keeps_history = true,
		.promises =
			"All handles of this process on one name share the store. At most one "
			"leader at a time and terms that only grow, as long as a handle is open: "
			"nothing outlives the last one, and other processes see nothing of it. A "
			"test may switch on faults that break this.",
	};

	(void)store;
	return &traits;
}

static int lane_open(void *store, int kind, void **lane, struct baton_error *err)
{
	struct memory_lane *l = calloc(1, sizeof(*l));

	(void)kind;
	if (l == NULL || memory_cond_init(&l->wake) != 0) {
		free(l);
		store_fail(err, BATON_E_MEMORY, "no memory for a lane of the store");
		return BATON_E_MEMORY;
	}
	l->handle = store;
	LIST_INIT(&l->watches);
	TAILQ_INIT(&l->pending);
	pthread_mutex_lock(&l->handle->memory->lock);
	LIST_INSERT_HEAD(&l->handle->memory->lanes, l, all);
	pthread_mutex_unlock(&l->handle->memory->lock);
	*lane = l;
	return 0;
}

static void lane_close(void *lane)
{
	struct memory_lane *l = lane;

	if (l == NULL)
		return;
	if (!memory_handle_is_forked(l->handle)) {
		pthread_mutex_lock(&l->handle->memory->lock);
		memory_watches_clear(l);
		LIST_REMOVE(l, all);
		pthread_mutex_unlock(&l->handle->memory->lock);
		pthread_cond_destroy(&l->wake);
	}
	free(l);
}

/* There are no descriptors to close, and registry.c deals with the fork. */
static void store_forget(void *store)
{
	(void)store;
}

int memory_no_memory(struct baton_call *call)
{
	store_fail(&call->error, BATON_E_MEMORY, "no memory for a record");
	return BATON_OUTCOME_FAILED;
}

/* A new row, all zero; NULL: no memory. All rows of a list have the same type. */
void *memory_rows_add(struct memory_rows *rows, size_t size)
{
	if (rows->room - rows->size < size) {
		size_t room = rows->room == 0 ? 4 * size : 2 * rows->room;
		char *data = realloc(rows->data, room);

		if (data == NULL)
			return NULL;
		rows->data = data;
		rows->room = room;
	}
	rows->size += size;
	return memset(rows->data + rows->size - size, 0, size);
}

static const char *const schemes[] = {"memory", NULL};

const struct baton_driver baton_memory_driver = {
	.abi = BATON_STORE_ABI,
	.size = sizeof(struct baton_driver),
	.name = "memory",
	.schemes = schemes,
	.open = store_open,
	.close = store_close,
	.traits = store_traits,
	.lane_open = lane_open,
	.lane_close = lane_close,
	.forget = store_forget,
	.lease_open = memory_lease_open,
	.lease_renew = memory_lease_renew,
	.lease_close = memory_lease_close,
	.claims = memory_claims,
	.campaign = memory_campaign,
	.release = memory_release,
	.observe = memory_observe,
	.watch_add = memory_watch_add,
	.watch_remove = memory_watch_remove,
	.watch_wait = memory_watch_wait,
	.watch_wake = memory_watch_wake,
	.publish = memory_publish,
	.withdraw = memory_withdraw,
	.candidates = memory_candidates,
	.order = memory_order,
	.pause = memory_pause,
	.history = memory_history,
	.list = memory_list,
};
