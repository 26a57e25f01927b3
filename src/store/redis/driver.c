/*
 * driver.c: the Redis store as a driver: its lanes and its table of functions. redis.h says how the
 * parts fit together, options.c what a URL may say, and lua/ what the server does.
 */
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/redis/redis.h"

extern const struct baton_driver baton_driver;

static const struct baton_traits traits = {
	.min_lease_ns = 100 * CLOCK_NS_PER_MS,
	.max_lease_ns = REDIS_MAX_LEASE_MS * CLOCK_NS_PER_MS,
	.max_lease_option = "max_lease",
	.pushes = true,
	.keeps_history = true,
	.promises =
		"One Redis primary decides, in one script per step. Exclusion and growing terms "
		"hold whatever candidates and networks do, and through restarts of the server: "
		"after one no candidate wins before the longest lease is over. Exclusion can "
		"break when a failover loses what was acknowledged (wait=N makes that rarer), "
		"when keys are deleted by hand (FLUSHALL), or when the server's wall clock "
		"jumps ahead; terms grow even then, so let resources check them. For exclusion "
		"across the loss of a server use etcd, Consul or a synchronous PostgreSQL.",
};

/* ---- the store ---- */

static void store_close(void *s)
{
	struct redis_store *store = s;

	if (store == NULL)
		return;
	for (int i = 0; i < REDIS_SCRIPTS; i++)
		free(store->scripts[i].text);
	redis_index_free(store->index);
	redis_own_free(store->own, store->base.forgotten);
	if (store->wake >= 0)
		(void)close(store->wake);
	store_base_done(&store->base);
	explicit_bzero(&store->options, sizeof(store->options));
	free(store);
}

/* EVALSHA needs the digest of the whole text. */
static int make_script(struct redis_text *to, const struct redis_source *body)
{
	unsigned char digest[SHA_DIGEST_LENGTH];

	to->size = redis_prelude.size + body->size;
	to->text = malloc(to->size);
	if (to->text == NULL)
		return -1;
	(void)memcpy(to->text, redis_prelude.text, redis_prelude.size);
	(void)memcpy(to->text + redis_prelude.size, body->text, body->size);
	(void)SHA1((const unsigned char *)to->text, to->size, digest);
	for (int i = 0; i < SHA_DIGEST_LENGTH; i++)
		(void)snprintf(to->sha + 2 * i, 3, "%02x", digest[i]);
	return 0;
}

static int store_fill(struct redis_store *store)
{
	store->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (store->wake < 0)
		return BATON_E_SYSTEM;
	store->index = redis_index_new(store->wake);
	store->own = redis_own_new();
	if (store->index == NULL || store->own == NULL)
		return BATON_E_MEMORY;
	for (int i = 0; i < REDIS_SCRIPTS; i++)
		if (make_script(&store->scripts[i], &redis_sources[i]) != 0)
			return BATON_E_MEMORY;
	return BATON_OK;
}

static int store_open(const struct baton_store_config *config, void **out, struct baton_error *err)
{
	struct redis_store *store = calloc(1, sizeof(*store));

	*out = NULL;
	if (store == NULL || store_base_init(&store->base) != 0) {
		free(store);
		(void)store_fail(err, BATON_E_MEMORY, "no memory for a store");
		return BATON_E_MEMORY;
	}
	store->wake = -1;
	int code = redis_options_parse(&store->options, config->url, err);

	store->traits = traits;
	store->traits.max_lease_ns = store->options.max_lease_ms * CLOCK_NS_PER_MS;
	if (code == BATON_OK) {
		code = store_fill(store);
		if (code != BATON_OK)
			(void)store_fail(err, code, "no memory or no descriptor for a store");
	}
	if (code != BATON_OK) {
		store_close(store);
		return code;
	}
	*out = store;
	return BATON_OK;
}

static const struct baton_traits *store_traits(const void *store)
{
	return store != NULL ? &((const struct redis_store *)store)->traits : &traits;
}

/* ---- lanes ---- */

static int lane_open(void *s, int kind, void **out, struct baton_error *err)
{
	struct redis_store *store = s;
	struct redis_lane *lane = calloc(1, sizeof(*lane));

	*out = NULL;
	if (lane != NULL && store->options.tls) {
		const struct option_tls *files = &store->options.files;

		lane->tls = net_tls_new(&(struct net_files){files->ca, files->cert, files->key});
		if (lane->tls == NULL) {
			free(lane);
			lane = NULL;
		}
	}
	if (lane == NULL) {
		(void)store_fail(err, BATON_E_MEMORY, "no memory for a lane");
		return BATON_E_MEMORY;
	}
	lane->store = store;
	lane->kind = kind;
	redis_wire_init(&lane->wire);
	if (kind == BATON_LANE_WATCH)
		lane->wire.net.wake = store->wake;
	store_lane_add(&store->base, &lane->base);
	*out = lane;
	return BATON_OK;
}

static void lane_close(void *l)
{
	struct redis_lane *lane = l;

	if (lane == NULL)
		return;
	struct redis_store *store = lane->store;

	store_lane_remove(&store->base, &lane->base);
	redis_wire_done(&lane->wire);
	net_tls_free(lane->tls);
	free(lane);
}

/* S10, in the child of fork(): the connections are the parent's, so nothing is sent on them. */
static void store_forget(void *s)
{
	struct redis_store *store = s;

	store->base.forgotten = true;
	for (struct store_lane *at = store->base.lanes; at != NULL; at = at->next) {
		struct redis_lane *lane = (struct redis_lane *)at;

		net_forget(&lane->wire.net);
	}
	if (store->wake >= 0)
		(void)close(store->wake);
	store->wake = -1;
}

static const char *const schemes[] = {"redis",          "rediss",        "redis+unix",
				      "redis+sentinel", "redis+cluster", NULL};

__attribute__((visibility("default"))) const struct baton_driver baton_driver = {
	.abi = BATON_STORE_ABI,
	.size = sizeof(struct baton_driver),
	.name = "redis",
	.schemes = schemes,
	.open = store_open,
	.close = store_close,
	.traits = store_traits,
	.lane_open = lane_open,
	.lane_close = lane_close,
	.forget = store_forget,
	.lease_open = redis_lease_open,
	.lease_renew = redis_lease_renew,
	.lease_close = redis_lease_close,
	.claims = redis_claims,
	.campaign = redis_campaign,
	.release = redis_release,
	.observe = redis_observe,
	.watch_add = redis_watch_add,
	.watch_remove = redis_watch_remove,
	.watch_wait = redis_watch_wait,
	.watch_wake = redis_watch_wake,
	.publish = redis_publish,
	.withdraw = redis_withdraw,
	.candidates = redis_candidates,
	.order = redis_order,
	.pause = redis_pause,
	.history = redis_history,
	.list = redis_list,
	.survey = redis_survey,
	.fence = redis_fence,
	.examine = redis_examine,
};
