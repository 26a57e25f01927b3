/*
 * driver.c: the Consul store as a driver: its lanes and its table of functions. consul.h says how
 * the parts fit together, and what is in the store.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/consul/consul.h"

/* The watch's answers have all elections: some 300 bytes for each. */
#define WATCH_MAX ((size_t)64 << 20)

extern const struct baton_driver baton_driver;

static const struct baton_traits usual = {
	.min_lease_ns = 10 * CLOCK_NS_PER_S,
	.expiry_leases = 2,
	.pushes = true,
	.keeps_history = true,
	.promises =
		"A Consul cluster decides, by its consensus. Exclusion and growing terms hold "
		"whatever candidates, networks, agents and a minority of the servers do, and no "
		"clock that jumps endangers them. A renewal counts only when a read through the "
		"whole cluster has confirmed it. Exclusion can break in two cases. First, while a "
		"candidate leads, someone destroys its session, deregisters its node, deletes or "
		"unlocks its key, or restores a snapshot. Second, a server that led the cluster "
		"is frozen for longer than two leases and leads again within minutes; lock_delay= "
		"with the length of the lease prevents a break by such an early end of a session. "
		"Even then terms grow, as long as a candidate lives that saw the highest term. "
		"After a crash the next candidate leads when Consul has ended the session. That "
		"takes twice the lease, and longer if a lock delay is set or the cluster has a "
		"new leader.",
};

/* ---- the store ---- */

static void consul_close(void *s)
{
	struct consul_store *store = s;

	if (store == NULL)
		return;
	consul_shown_done(store);
	web_store_done(&store->web);
	explicit_bzero(&store->options, sizeof(store->options));
	free(store);
}

static int consul_open(const struct baton_store_config *config, void **out, struct baton_error *err)
{
	struct consul_store *store = calloc(1, sizeof(*store));

	*out = NULL;
	if (store == NULL || store_base_init(&store->web.base) != 0) {
		free(store);
		(void)store_fail(err, BATON_E_MEMORY, "no memory for a store");
		return BATON_E_MEMORY;
	}
	int code = consul_options_parse(&store->options, config->url, err);

	if (code == BATON_OK)
		code = web_store_init(&store->web, &store->options.web, sizeof(struct consul_known),
				      err);
	if (code != BATON_OK) {
		consul_close(store);
		return code;
	}
	store->traits = usual;
	store->traits.min_lease_ns = store->options.ttl_min_ms * CLOCK_NS_PER_MS;
	/* With checks= the lock delay is at least as long as the lease (lease.c). */
	store->traits.expiry_leases = store->options.node[0] == '\0' ? 3 : 2;
	store->traits.expiry_more_ns =
		store->options.node[0] == '\0' ? 0 : store->options.lock_delay_ms * CLOCK_NS_PER_MS;
	*out = store;
	return BATON_OK;
}

static const struct baton_traits *consul_traits(const void *s)
{
	const struct consul_store *store = s;

	return store != NULL ? &store->traits : &usual;
}

/* ---- lanes ---- */

static void consul_lane_close(void *l)
{
	struct consul_lane *lane = l;

	if (lane == NULL)
		return;
	web_lane_done(&lane->web);
	free(lane);
}

static int consul_lane_open(void *s, int kind, void **out, struct baton_error *err)
{
	struct consul_store *store = s;
	struct consul_lane *lane = calloc(1, sizeof(*lane));

	*out = NULL;
	if (lane == NULL || web_lane_init(&lane->web, &store->web, kind,
					  kind == BATON_LANE_WATCH ? WATCH_MAX : 0, err) != 0) {
		consul_lane_close(lane);
		(void)store_fail(err, BATON_E_MEMORY, "no memory for a lane");
		return BATON_E_MEMORY;
	}
	lane->store = store;
	*out = lane;
	return BATON_OK;
}

static const char *const schemes[] = {"consul", "consuls", NULL};

__attribute__((visibility("default"))) const struct baton_driver baton_driver = {
	.abi = BATON_STORE_ABI,
	.size = sizeof(struct baton_driver),
	.name = "consul",
	.schemes = schemes,
	.open = consul_open,
	.close = consul_close,
	.traits = consul_traits,
	.lane_open = consul_lane_open,
	.lane_close = consul_lane_close,
	.forget = web_store_forget,
	.lease_open = consul_lease_open,
	.lease_renew = consul_lease_renew,
	.lease_close = consul_lease_close,
	.claims = consul_claims,
	.campaign = consul_campaign,
	.release = consul_release,
	.observe = consul_observe,
	.watch_add = consul_watch_add,
	.watch_remove = consul_watch_remove,
	.watch_wait = consul_watch_wait,
	.watch_wake = web_watch_wake,
	.publish = consul_publish,
	.withdraw = consul_withdraw,
	.candidates = consul_candidates,
	.order = consul_order,
	.pause = consul_pause,
	.history = consul_history,
	.examine = consul_examine,
	.list = consul_list,
};
