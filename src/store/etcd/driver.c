/*
 * driver.c: the etcd store as a driver: its lanes and its table of functions. etcd.h says how the
 * parts fit together, and what is in the store.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/etcd/etcd.h"

extern const struct baton_driver baton_driver;

/* ---- the store ---- */

static void etcd_close(void *s)
{
	struct etcd_store *store = s;

	if (store == NULL)
		return;
	etcd_nested_done(store);
	web_store_done(&store->web);
	explicit_bzero(&store->options, sizeof(store->options));
	explicit_bzero(store->token, sizeof(store->token));
	free(store);
}

static int etcd_open(const struct baton_store_config *config, void **out, struct baton_error *err)
{
	struct etcd_store *store = calloc(1, sizeof(*store));

	*out = NULL;
	if (store == NULL || store_base_init(&store->web.base) != 0) {
		free(store);
		(void)store_fail(err, BATON_E_MEMORY, "no memory for a store");
		return BATON_E_MEMORY;
	}
	int code = etcd_options_parse(&store->options, config->url, err);

	if (code == BATON_OK && !http_knows_h2()) {
		code = BATON_E_UNSUPPORTED;
		(void)store_fail(err, code,
				 "the libcurl of this system knows no HTTP/2, which etcd speaks");
	}
	if (code == BATON_OK)
		code = web_store_init(&store->web, &store->options.web, sizeof(struct etcd_known),
				      err);
	if (code != BATON_OK) {
		etcd_close(store);
		return code;
	}
	*out = store;
	return BATON_OK;
}

static const struct baton_traits *etcd_traits(const void *store)
{
	static const struct baton_traits traits = {
		.min_lease_ns = 2 * CLOCK_NS_PER_S,
		.pushes = true,
		.keeps_history = true,
		.promises =
			"An etcd cluster decides, by its consensus. Exclusion and growing terms "
			"hold whatever candidates, networks and a minority of the members do, and "
			"no clock that jumps endangers them. A member that led the cluster and "
			"was frozen may renew leases without right, and may end leases that are "
			"alive. So a renewal counts only when the whole cluster has confirmed it, "
			"and no candidate follows at once when the cluster has changed its "
			"leader. Exclusion can break when a backup is restored while a candidate "
			"leads, or when keys are deleted by hand; terms grow even then, as long "
			"as a candidate is left that saw the highest. After a crash the next "
			"candidate leads when etcd has ended the lease, which takes up to a "
			"second longer than the lease; and one more lease later if the cluster "
			"has changed its leader since the lease was granted.",
	};

	(void)store;
	return &traits;
}

/* ---- lanes ---- */

static void etcd_lane_close(void *l)
{
	struct etcd_lane *lane = l;

	if (lane == NULL)
		return;
	web_lane_done(&lane->web);
	explicit_bzero(lane->token, sizeof(lane->token));
	free(lane);
}

static int etcd_lane_open(void *s, int kind, void **out, struct baton_error *err)
{
	struct etcd_store *store = s;
	struct etcd_lane *lane = calloc(1, sizeof(*lane));

	*out = NULL;
	if (lane == NULL || web_lane_init(&lane->web, &store->web, kind, 0, err) != 0) {
		etcd_lane_close(lane);
		(void)store_fail(err, BATON_E_MEMORY, "no memory for a lane");
		return BATON_E_MEMORY;
	}
	lane->store = store;
	*out = lane;
	return BATON_OK;
}

static const char *const schemes[] = {"etcd", "etcds", NULL};

__attribute__((visibility("default"))) const struct baton_driver baton_driver = {
	.abi = BATON_STORE_ABI,
	.size = sizeof(struct baton_driver),
	.name = "etcd",
	.schemes = schemes,
	.open = etcd_open,
	.close = etcd_close,
	.traits = etcd_traits,
	.lane_open = etcd_lane_open,
	.lane_close = etcd_lane_close,
	.forget = web_store_forget,
	.lease_open = etcd_lease_open,
	.lease_renew = etcd_lease_renew,
	.lease_close = etcd_lease_close,
	.claims = etcd_claims,
	.campaign = etcd_campaign,
	.release = etcd_release,
	.observe = etcd_observe,
	.watch_add = web_watch_add,
	.watch_remove = web_watch_remove,
	.watch_wait = etcd_watch_wait,
	.watch_wake = web_watch_wake,
	.publish = etcd_publish,
	.withdraw = etcd_withdraw,
	.candidates = etcd_candidates,
	.order = etcd_order,
	.pause = etcd_pause,
	.history = etcd_history,
	.examine = etcd_examine,
	.list = etcd_list,
};
