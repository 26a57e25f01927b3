/*
 * driver.c: the file store as a driver: the store, its lanes, its table of functions. file.h
 * describes the layout, and campaign.c, release.c, lease.c and expiry.c the protocol.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/file/file.h"

#define SCAN_SIZE ((size_t)32 * 1024)

/* ---- the store ---- */

static void close_store(void *s)
{
	struct file_store *store = s;

	if (store == NULL)
		return;
	while (store->own_leases != NULL) {
		struct file_own_lease *own = store->own_leases;

		/* A lease that was not closed before: freeing its lock tells the others that its
		 * owner is dead. */
		store->own_leases = own->next;
		if (own->alive >= 0)
			(void)close(own->alive);
		file_root_drop(store, own->root);
		free(own);
	}
	for (struct name_node *node; (node = name_table_pop(&store->own_claims)) != NULL;)
		free(node);
	name_table_done(&store->own_claims);
	file_root_drop(store, store->root);
	store_base_done(&store->base);
	free(store->path);
	free(store);
}

static int open_store(const struct baton_store_config *config, void **out, struct baton_error *err)
{
	struct file_store *store = calloc(1, sizeof(*store));

	*out = NULL;
	if (store == NULL || store_base_init(&store->base) != 0) {
		free(store);
		store_fail(err, BATON_E_MEMORY, "no memory for a store");
		return BATON_E_MEMORY;
	}
	if (getrandom(&store->random, sizeof(store->random), 0) != (ssize_t)sizeof(store->random))
		store->random = clock_boot_ns() ^ (uint64_t)getpid() << 40;
	int code = file_parse_url(store, config->url, err);

	if (code != BATON_OK) {
		close_store(store);
		return code;
	}
	*out = store;
	return BATON_OK;
}

static const struct baton_traits *traits_of(const void *store)
{
	static const struct baton_traits traits = {
		.size = sizeof(struct baton_traits),
		.min_lease_ns = 100 * CLOCK_NS_PER_MS,
		.pushes = true,
		.proves_death = true,
		.outlives = true,
		.keeps_history = true,
		.promises =
			"One host: all candidates must share one kernel and one directory on a "
			"local file system. Exclusion and growing terms hold whatever the "
			"processes do: killed or stopped anywhere, crashed or suspended host. A "
			"dead leader is replaced at once, a frozen one when its lease has "
			"expired. Terms are on the disk before a candidate leads; on tmpfs they "
			"end with the boot. It doesn't hold if files of the directory are "
			"removed or restored by hand, if the disk loses what it has synced, or "
			"on a shared file system that was forced.",
	};

	(void)store;
	return &traits;
}

/* ---- lanes ---- */

static int open_lane(void *s, int kind, void **out, struct baton_error *err)
{
	struct file_store *store = s;
	struct file_lane *lane = calloc(1, sizeof(*lane));

	*out = NULL;
	if (lane != NULL) {
		lane->store = store;
		lane->scan_size = SCAN_SIZE;
		lane->scan = malloc(SCAN_SIZE);
	}
	if (lane == NULL || lane->scan == NULL) {
		free(lane);
		store_fail(err, BATON_E_MEMORY, "no memory for a lane");
		return BATON_E_MEMORY;
	}
	int code = kind == BATON_LANE_WATCH ? file_watch_new(lane, err) : BATON_OK;

	if (code != BATON_OK) {
		free(lane->scan);
		free(lane);
		return code;
	}
	if (lane->watch != NULL) {
		store_lock(&store->base);
		store->watch = lane->watch;
		store_unlock(&store->base);
	}
	store_lane_add(&store->base, &lane->link);
	*out = lane;
	return BATON_OK;
}

static void close_lane(void *l)
{
	struct file_lane *lane = l;

	if (lane == NULL)
		return;
	struct file_store *store = lane->store;

	store_lane_remove(&store->base, &lane->link);
	store_lock(&store->base);
	if (store->watch == lane->watch)
		store->watch = NULL;
	store_unlock(&store->base);
	file_watch_free(lane);
	free(lane->scan);
	free(lane);
}

static void close_root(struct file_root *root)
{
	int *fds[] = {&root->dir, &root->leases, &root->elections, &root->tmp};

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		if (*fds[i] >= 0)
			(void)close(*fds[i]);
		*fds[i] = -1;
	}
}

/* S10, in the child of fork(): another thread may have held any lock at the fork, so none is
 * taken. */
static void forget_store(void *s)
{
	struct file_store *store = s;

	store->base.forgotten = true;
	for (struct file_own_lease *own = store->own_leases; own != NULL; own = own->next) {
		if (own->alive >= 0)
			(void)close(own->alive);
		own->alive = -1;
		close_root(own->root);
	}
	if (store->root != NULL)
		close_root(store->root);
	for (struct store_lane *at = store->base.lanes; at != NULL; at = at->next) {
		struct file_lane *lane = (struct file_lane *)at;

		file_watch_forget(lane);
		if (lane->root != NULL)
			close_root(lane->root);
	}
}

/* Only names the file: the lock must be on a descriptor that is not ours. src/cli/worklock.c takes
 * it. */
static int work_lock(const void *s, const char *name, char *path, size_t size, uint32_t *mode,
		     struct baton_error *err)
{
	const struct file_store *store = s;
	char folder[FILE_PATH_SIZE];

	file_path_of(name, folder);
	int n = snprintf(path, size, "%s/elections/%s/work", store->path, folder);

	if (n < 0 || (size_t)n >= size) {
		store_fail(err, BATON_E_INVALID, "the path of the work lock doesn't fit");
		return BATON_E_INVALID;
	}
	*mode = (uint32_t)file_mode(store);
	return BATON_OK;
}

static const char *const schemes[] = {"file", NULL};

const struct baton_driver baton_file_driver = {
	.abi = BATON_STORE_ABI,
	.size = sizeof(struct baton_driver),
	.name = "file",
	.schemes = schemes,
	.open = open_store,
	.close = close_store,
	.traits = traits_of,
	.lane_open = open_lane,
	.lane_close = close_lane,
	.forget = forget_store,
	.lease_open = file_lease_open,
	.lease_renew = file_lease_renew,
	.lease_close = file_lease_close,
	.claims = file_claims,
	.campaign = file_campaign,
	.release = file_release,
	.observe = file_observe,
	.watch_add = file_watch_add,
	.watch_remove = file_watch_remove,
	.watch_wait = file_watch_wait,
	.watch_wake = file_watch_wake,
	.publish = file_publish,
	.withdraw = file_withdraw,
	.candidates = file_candidates,
	.order = file_order,
	.pause = file_pause,
	.history = file_history,
	.list = file_list,
	.work_lock = work_lock,
	.examine = file_examine,
};
