/*
 * driver.c: a record store as a driver: the store, its lanes, and the options that all record
 * stores have. RECORD_DRIVER in adapter.h makes the table of functions.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/options.h"
#include "store/record/layer.h"

#define MAX_LEASE_MS 30000

/* ---- options ---- */

/* A prefix consists of the characters that keys consist of. */
static bool option_prefix(const char *value, char out[RECORD_PREFIX_MAX + 1])
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789-_./";
	size_t n = strlen(value);

	return n > 0 && strspn(value, allowed) == n && value[0] != '/' && value[n - 1] != '/' &&
	       strstr(value, "//") == NULL && option_text(value, out, RECORD_PREFIX_MAX + 1);
}

bool record_option(struct record_options *o, const char *key, const char *value)
{
	if (strcmp(key, "poll") == 0)
		return option_number(value, OPTION_POLL_MAX_MS, &o->poll_ms) &&
		       o->poll_ms >= OPTION_POLL_MIN_MS;
	if (strcmp(key, "max_lease") == 0)
		return o->max_lease_ms != 0 &&
		       option_number(value, OPTION_MAX_LEASE_MAX_MS, &o->max_lease_ms) &&
		       o->max_lease_ms >= OPTION_MAX_LEASE_MIN_MS;
	return strcmp(key, "prefix") == 0 && option_prefix(value, o->prefix);
}

/* ---- the store ---- */

void record_driver_close(void *store)
{
	struct record_store *s = store;

	if (s == NULL)
		return;
	record_tables_done(s);
	if (s->store != NULL)
		s->adapter->close(s->store);
	store_base_done(&s->base);
	free(s);
}

/* A standby may see the last renewal a poll late and count from then, so an expiry may take a poll
 * longer. */
static void store_traits(struct record_store *s)
{
	const struct record_adapter *adapter = s->adapter;

	s->traits = adapter->traits_of != NULL ? *adapter->traits_of(s->store) : adapter->traits;
	s->traits.own_leases = false; /* even with native locks: a lease carries any number */
	s->traits.expiry_more_ns += s->options.poll_ms * CLOCK_NS_PER_MS;
	if (s->options.max_lease_ms == 0)
		return;
	s->traits.max_lease_ns = s->options.max_lease_ms * CLOCK_NS_PER_MS;
	s->traits.max_lease_option = "max_lease";
}

int record_driver_open(const struct record_adapter *adapter,
		       const struct baton_store_config *config, void **out, struct baton_error *err)
{
	struct record_store *s = calloc(1, sizeof(*s));

	*out = NULL;
	if (s == NULL || store_base_init(&s->base) != 0) {
		free(s);
		(void)store_fail(err, BATON_E_MEMORY, "no memory for a store");
		return BATON_E_MEMORY;
	}
	s->adapter = adapter;
	s->options.poll_ms = adapter->poll_ms;
	s->options.max_lease_ms = adapter->is_weak ? MAX_LEASE_MS : 0;
	int code = BATON_E_MEMORY;

	if (watch_index_init(&s->elections, sizeof(struct record_known)) == 0 &&
	    name_table_init(&s->leases) == 0)
		code = adapter->open(config, &s->options, &s->store, err);
	else
		(void)store_fail(err, BATON_E_MEMORY, "no memory for a store");
	if (code != BATON_OK) {
		record_driver_close(s);
		return code;
	}
	/* A leader must see that its election's record is lost before another one may lead. */
	if (adapter->is_weak && s->options.poll_ms > s->options.max_lease_ms / 2)
		s->options.poll_ms = s->options.max_lease_ms / 2;
	store_traits(s);
	*out = s;
	return BATON_OK;
}

const struct baton_traits *record_driver_traits(const struct record_adapter *adapter,
						const void *store)
{
	return store != NULL ? &((const struct record_store *)store)->traits : &adapter->traits;
}

/* S10, in the child of fork(): the descriptors are the parent's. Nothing is freed, and nothing is
 * locked. */
void record_driver_forget(void *store)
{
	struct record_store *s = store;

	s->base.forgotten = true;
	for (struct store_lane *l = s->base.lanes; l != NULL; l = l->next) {
		struct record_lane *lane = (struct record_lane *)l;

		if (lane->wake >= 0)
			(void)close(lane->wake);
		lane->wake = -1;
	}
	s->adapter->forget(s->store);
}

/* ---- lanes ---- */

void record_driver_lane_close(void *l)
{
	struct record_lane *lane = l;

	if (lane == NULL)
		return;
	store_lane_remove(&lane->store->base, &lane->base);
	if (lane->lane != NULL)
		lane->store->adapter->lane_close(lane->lane);
	if (lane->wake >= 0)
		(void)close(lane->wake);
	record_sweeper_free(lane->sweeper);
	free(lane);
}

int record_driver_lane_open(void *store, int kind, void **out, struct baton_error *err)
{
	struct record_store *s = store;
	struct record_lane *lane = calloc(1, sizeof(*lane));
	bool watches = kind == BATON_LANE_WATCH;

	*out = NULL;
	if (lane == NULL) {
		(void)store_fail(err, BATON_E_MEMORY, "no memory for a lane");
		return BATON_E_MEMORY;
	}
	lane->store = s;
	lane->kind = kind;
	lane->is_all = true;
	lane->sweep_ns = record_sweep_ns();
	lane->sweeper = watches ? record_sweeper_new() : NULL;
	lane->wake = watches ? eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC) : -1;
	store_lane_add(&s->base, &lane->base);
	int code = s->adapter->lane_open(s->store, kind, &lane->lane, err);

	if (code == BATON_OK && watches && lane->wake < 0) {
		code = BATON_E_SYSTEM;
		(void)store_fail(err, code, "no descriptor for a lane");
	} else if (code == BATON_OK && watches && lane->sweeper == NULL) {
		code = BATON_E_MEMORY;
		(void)store_fail(err, code, "no memory for a lane");
	}
	if (code != BATON_OK) {
		record_driver_lane_close(lane);
		return code;
	}
	*out = lane;
	return BATON_OK;
}
