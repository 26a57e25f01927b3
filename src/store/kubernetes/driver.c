/*
 * driver.c: the Kubernetes store as a driver: its lanes and its table of functions. kube.h says how
 * the parts work together, and what is in the store.
 */
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/kubernetes/kube.h"

extern const struct baton_driver baton_driver;

/* ---- the store ---- */

static void kube_close(void *s)
{
	struct kube_store *store = s;

	if (store == NULL)
		return;
	while (store->uses != NULL) {
		struct kube_use *u = store->uses;

		store->uses = u->next;
		free(u);
	}
	kube_expiry_done(store);
	tdestroy(store->presence.shown, free);
	if (store->web.base.forgotten)
		store->plugin.pid = 0; /* the plugin is the parent's */
	kube_plugin_done(&store->plugin);
	web_store_done(&store->web);
	kube_config_done(&store->config);
	free(store);
}

static int kube_fill(struct kube_store *store, const char *url, struct baton_error *err)
{
	store->plugin.out = -1;
	store->next_end_ns = BATON_STORE_NEVER;
	int code = kube_options_parse(&store->options, url, err);

	if (code == BATON_OK)
		code = kube_config_find(&store->config, &store->options, err);
	store->server.n_hosts = 1;
	store->server.hosts[0] = store->config.host;
	return code == BATON_OK ? web_store_init(&store->web, &store->server, 0, err) : code;
}

static int kube_open(const struct baton_store_config *config, void **out, struct baton_error *err)
{
	struct kube_store *store = calloc(1, sizeof(*store));

	*out = NULL;
	if (store == NULL || store_base_init(&store->web.base) != 0) {
		free(store);
		(void)store_fail(err, BATON_E_MEMORY, "no memory for a store");
		return BATON_E_MEMORY;
	}
	int code = kube_fill(store, config->url, err);

	if (code != BATON_OK) {
		kube_close(store);
		return code;
	}
	*out = store;
	return BATON_OK;
}

#define PROMISES                                                                          \
	"The API server decides, by compare-and-set in etcd. No wall clock counts, on "   \
	"any machine: a candidate that takes over has itself seen the Lease unchanged "   \
	"for as long as the Lease says, on its own clock. So exclusion rests on the "     \
	"rates of the candidates' clocks, which may differ by a fifth (20 % of the "      \
	"lease is kept for that), and holds whatever networks and API servers do. Terms " \
	"grow also when the Lease is deleted and made anew. Exclusion can break when a "  \
	"backup of etcd is restored while a candidate leads, or when Leases are changed " \
	"by hand; terms grow even then, as long as a candidate is left that saw the "     \
	"highest. "

static const struct baton_traits *kube_traits(const void *store)
{
	static const struct baton_traits own = {
		.min_lease_ns = CLOCK_NS_PER_S,
		.drift_permille = 200,
		.own_leases = true,
		.pushes = true,
		.keeps_history = true,
		.promises = PROMISES
		"Candidates of client-go in the same election and baton's candidates exclude each "
		"other if client-go has version 0.27 or later, or the same lease duration. "
		"client-go knows no terms, and believes that it leads until it notices the loss.",
	};
	static const struct baton_traits shared = {
		.min_lease_ns = CLOCK_NS_PER_S,
		.drift_permille = 200,
		.pushes = true,
		.keeps_history = true,
		.promises = PROMISES
		"With process_lease=1 one Lease of the process carries all of its elections. "
		"Never mix in client-go candidates: they wait for ever when it dies, and those "
		"before 0.27 take over while it lives.",
	};
	const struct kube_store *s = store;

	return s != NULL && s->options.process_lease ? &shared : &own;
}

/* ---- lanes ---- */

static void kube_lane_close(void *l)
{
	struct kube_lane *lane = l;

	if (lane == NULL)
		return;
	web_lane_done(&lane->web);
	http_free(lane->beat);
	free(lane);
}

static int kube_lane_open(void *s, int kind, void **out, struct baton_error *err)
{
	struct kube_store *store = s;
	bool is_watch = kind == BATON_LANE_WATCH;
	struct kube_lane *lane = calloc(1, sizeof(*lane));

	*out = NULL;
	if (lane != NULL) {
		lane->web.http = kube_http(store, is_watch ? store->web.wake : 0);
		lane->beat = is_watch ? kube_http(store, store->web.wake) : NULL;
	}
	if (lane == NULL || lane->web.http == NULL || (is_watch && lane->beat == NULL)) {
		kube_lane_close(lane);
		(void)store_fail(err, BATON_E_MEMORY, "no memory for a lane");
		return BATON_E_MEMORY;
	}
	lane->store = store;
	lane->web.store = &store->web;
	lane->web.kind = kind;
	store_lane_add(&store->web.base, &lane->web.base);
	*out = lane;
	return BATON_OK;
}

/* S10: called in the child. The connections are the parent's. */
static void kube_forget(void *s)
{
	const struct kube_store *store = s;

	for (struct store_lane *at = store->web.base.lanes; at != NULL; at = at->next) {
		struct kube_lane *lane = (struct kube_lane *)(void *)at;

		if (lane->beat != NULL)
			http_forget(lane->beat);
	}
	web_store_forget(s);
}

static const char *const schemes[] = {"kubernetes", NULL};

__attribute__((visibility("default"))) const struct baton_driver baton_driver = {
	.abi = BATON_STORE_ABI,
	.size = sizeof(struct baton_driver),
	.name = "kubernetes",
	.schemes = schemes,
	.open = kube_open,
	.close = kube_close,
	.traits = kube_traits,
	.lane_open = kube_lane_open,
	.lane_close = kube_lane_close,
	.forget = kube_forget,
	.lease_open = kube_lease_open,
	.lease_renew = kube_lease_renew,
	.lease_close = kube_lease_close,
	.claims = kube_claims,
	.campaign = kube_campaign,
	.release = kube_release,
	.observe = kube_observe,
	.watch_add = web_watch_add,
	.watch_remove = kube_watch_remove,
	.watch_wait = kube_watch_wait,
	.watch_wake = web_watch_wake,
	.publish = kube_publish,
	.withdraw = kube_withdraw,
	.candidates = kube_candidates,
	.order = kube_order,
	.pause = kube_pause,
	.history = kube_history,
	.examine = kube_examine,
	.list = kube_list_elections,
};
