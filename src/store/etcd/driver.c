/*
 * driver.c: the etcd store as a driver: its lanes and its table of functions. etcd.h says how the
 * parts hang together, and what is in the store.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/etcd/etcd.h"

extern const struct baton_driver baton_driver;

/* ---- the store ---- */

static void close_store(void *s)
{
	struct etcd_store *store = s;

	if (store == NULL)
		return;
	while (store->leases != NULL) {
		struct etcd_lease *l = store->leases;

		store->leases = l->next;
		free(l);
	}
	hints_free(store->hints);
	if (store->wake >= 0)
		(void)close(store->wake);
	store_base_done(&store->base);
	explicit_bzero(&store->options, sizeof(store->options));
	explicit_bzero(store->token, sizeof(store->token));
	free(store);
}

static int fill_store(struct etcd_store *store, const char *url, struct baton_error *err)
{
	int code = etcd_options_parse(&store->options, url, err);

	if (code != BATON_OK)
		return code;
	store->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	store->hints = hints_new();
	if (store->wake < 0 || store->hints == NULL) {
		code = store->wake < 0 ? BATON_E_SYSTEM : BATON_E_MEMORY;
		(void)store_fail(err, code, "no memory or no descriptor for a store");
		return code;
	}
	/* So that not all of them begin at the same member. */
	atomic_init(&store->turn, (unsigned)(clock_boot_ns() / 1000 % store->options.n_hosts));
	return BATON_OK;
}

static int open_store(const struct baton_store_config *config, void **out, struct baton_error *err)
{
	struct etcd_store *store = calloc(1, sizeof(*store));

	*out = NULL;
	if (store == NULL || store_base_init(&store->base) != 0) {
		free(store);
		(void)store_fail(err, BATON_E_MEMORY, "no memory for a store");
		return BATON_E_MEMORY;
	}
	store->wake = -1;
	int code = fill_store(store, config->url, err);

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
		.min_lease_ns = 2 * CLOCK_NS_PER_S,
		.pushes = true,
		.promises =
			"An etcd cluster decides, by its consensus. Exclusion and growing terms "
			"hold whatever candidates, networks and a minority of the members do, and "
			"no clock that jumps endangers them. A renewal counts only when the whole "
			"cluster has confirmed it, because members before 3.4.31 and 3.5.13 can "
			"renew leases that they may not. Exclusion can break when a backup is "
			"restored while somebody leads, or when keys are deleted by hand; terms "
			"grow even then, as long as a candidate is left that saw the highest. "
			"After a crash the next one leads when etcd has ended the lease, which "
			"takes up to a second longer than the lease.",
	};

	(void)store;
	return &traits;
}

/* ---- lanes ---- */

static int open_lane(void *s, int kind, void **out, struct baton_error *err)
{
	struct etcd_store *store = s;
	const struct etcd_options *o = &store->options;
	struct http_config config = {.ca = o->ca,
				     .cert = o->cert,
				     .key = o->key,
				     .server_name = o->server_name,
				     .wake = kind == BATON_LANE_WATCH ? store->wake : 0};
	struct etcd_lane *lane = calloc(1, sizeof(*lane));

	*out = NULL;
	if (lane != NULL)
		lane->http = http_new(&config);
	if (lane == NULL || lane->http == NULL) {
		free(lane);
		(void)store_fail(err, BATON_E_MEMORY, "no memory for a lane");
		return BATON_E_MEMORY;
	}
	lane->store = store;
	lane->kind = kind;
	store_lane_add(&store->base, &lane->link);
	*out = lane;
	return BATON_OK;
}

static void close_lane(void *l)
{
	struct etcd_lane *lane = l;

	if (lane == NULL)
		return;
	struct etcd_store *store = lane->store;

	store_lane_remove(&store->base, &lane->link);
	http_free(lane->http);
	bytes_done(&lane->body);
	explicit_bzero(lane->token, sizeof(lane->token));
	free(lane);
}

/* S10: in the child. The connections are the parent's. */
static void forget(void *s)
{
	struct etcd_store *store = s;

	store->base.forgotten = true;
	for (struct store_lane *at = store->base.lanes; at != NULL; at = at->next)
		http_forget(((struct etcd_lane *)at)->http);
	if (store->wake >= 0)
		(void)close(store->wake);
	store->wake = -1;
}

static const char *const schemes[] = {"etcd", "etcds", NULL};

__attribute__((visibility("default"))) const struct baton_driver baton_driver = {
	.abi = BATON_STORE_ABI,
	.name = "etcd",
	.schemes = schemes,
	.open = open_store,
	.close = close_store,
	.traits = traits_of,
	.lane_open = open_lane,
	.lane_close = close_lane,
	.forget = forget,
	.lease_open = etcd_lease_open,
	.lease_renew = etcd_lease_renew,
	.lease_close = etcd_lease_close,
	.claims = etcd_claims,
	.campaign = etcd_campaign,
	.release = etcd_release,
	.observe = etcd_observe,
	.watch_add = etcd_watch_add,
	.watch_remove = etcd_watch_remove,
	.watch_wait = etcd_watch_wait,
	.watch_wake = etcd_watch_wake,
	.publish = etcd_publish,
	.withdraw = etcd_withdraw,
	.candidates = etcd_candidates,
	.order = etcd_order,
	.pause = etcd_pause,
	.examine = etcd_examine,
};
