/*
 * memory_party.h: what the tests of the memory driver share: a party is one process as the store
 * sees it, with a store handle, three lanes and a lease; a world is two of them and the switches,
 * with the store's clock held.
 */
#ifndef BATON_TEST_MEMORY_PARTY_H
#define BATON_TEST_MEMORY_PARTY_H

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "baton-memory.h"
#include "baton-store.h"

#define WORLD_URL "memory:world"
#define TTL_MS 1000
#define COOKIES_MAX 16

extern const struct baton_driver baton_memory_driver;

struct party {
	void *store;
	void *lanes[3];
	struct baton_lease lease;
	char id[16];
	char address[32];
	unsigned incarnation;
	struct baton_profile profile;
	const char *reserve_for; /* for the next release */
	uint64_t hold_ns;
	/* what the last call brought */
	uint64_t term;
	int code;
	uint32_t n_held;
	struct baton_error error;
	struct baton_record record;
	uint64_t cookies[COOKIES_MAX];
};

struct world {
	struct baton_memory *m;
	struct party a;
	struct party b;
};

/* A deadline that no test should reach. */
static inline struct baton_call soon(void)
{
	return (struct baton_call){.deadline_ns = clock_boot_ns() + 20 * CLOCK_NS_PER_S};
}

static inline struct baton_call within_ms(uint64_t ms)
{
	return (struct baton_call){.deadline_ns = clock_boot_ns() + ms * CLOCK_NS_PER_MS};
}

static inline int party_open(struct party *p)
{
	struct baton_call call = soon();

	return baton_memory_driver.lease_open(p->lanes[0], &call, &p->lease);
}

static inline void party_new_lease(struct party *p)
{
	(void)snprintf(p->lease.id, sizeof(p->lease.id), "%s-%u", p->id, ++p->incarnation);
}

static inline void party_init(struct party *p, const char *url, const char *id)
{
	struct baton_store_config config = {.size = sizeof(config), .url = url};

	*p = (struct party){
		.profile = {.metadata = "", .score_permille = 1000, .is_healthy = true}};
	(void)snprintf(p->id, sizeof(p->id), "%s", id);
	(void)snprintf(p->address, sizeof(p->address), "host-%s:1", id);
	p->lease.ttl_ns = TTL_MS * CLOCK_NS_PER_MS;
	p->lease.owner = p->id;
	p->lease.address = p->address;
	party_new_lease(p);
	assert_int_equal(baton_memory_driver.open(&config, &p->store, NULL), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(baton_memory_driver.lane_open(p->store, i, &p->lanes[i], NULL), 0);
	assert_int_equal(party_open(p), BATON_OUTCOME_OK);
}

static inline void party_done(struct party *p)
{
	for (int i = 0; i < 3; i++)
		baton_memory_driver.lane_close(p->lanes[i]);
	baton_memory_driver.close(p->store);
}

static inline int party_renew_within(struct party *p, struct baton_call call)
{
	int outcome;

	p->n_held = UINT32_MAX;
	outcome = baton_memory_driver.lease_renew(p->lanes[0], &call, &p->lease, &p->n_held);
	p->error = call.error;
	return outcome;
}

static inline int party_renew(struct party *p)
{
	return party_renew_within(p, soon());
}

static inline int party_close(struct party *p)
{
	struct baton_call call = soon();

	return baton_memory_driver.lease_close(p->lanes[0], &call, &p->lease);
}

static inline int party_campaign_within(struct party *p, const char *name, uint64_t nonce,
					uint64_t floor, struct baton_call call)
{
	struct baton_campaign c = {
		.name = name,
		.nonce = nonce,
		.floor = floor,
		.profile = p->profile,
		.record = &p->record,
	};

	baton_memory_driver.campaign(p->lanes[1], &call, &p->lease, &c, 1);
	p->term = c.term;
	p->code = c.code;
	p->error = call.error;
	return c.outcome;
}

static inline int party_campaign(struct party *p, const char *name, uint64_t nonce, uint64_t floor)
{
	return party_campaign_within(p, name, nonce, floor, soon());
}

static inline int party_release(struct party *p, const char *name, uint64_t nonce, uint64_t term)
{
	struct baton_call call = soon();
	struct baton_release r = {
		.name = name,
		.lease_id = p->lease.id,
		.nonce = nonce,
		.term = term,
		.reason = "resigned",
		.reserve_for = p->reserve_for,
		.hold_ns = p->hold_ns,
	};

	baton_memory_driver.release(p->lanes[1], &call, &r, 1);
	p->code = r.code;
	p->error = call.error;
	return r.outcome;
}

static inline int party_observe(struct party *p, const char *name)
{
	struct baton_call call = soon();
	struct baton_observation o = {
		.name = name, .lease_id = p->lease.id, .id = p->id, .record = &p->record};

	baton_memory_driver.observe(p->lanes[1], &call, &o, 1);
	p->code = o.code;
	p->error = call.error;
	return o.outcome;
}

static inline int party_publish(struct party *p, const char *name)
{
	struct baton_call call = soon();
	struct baton_publication pub = {.name = name, .profile = p->profile};

	baton_memory_driver.publish(p->lanes[1], &call, &p->lease, &pub, 1);
	p->code = pub.code;
	return pub.outcome;
}

static inline int party_wait_within(struct party *p, struct baton_call call)
{
	int n = baton_memory_driver.watch_wait(p->lanes[2], &call, p->cookies, COOKIES_MAX);

	p->error = call.error;
	return n;
}

static inline int party_wait(struct party *p)
{
	return party_wait_within(p, soon());
}

/* How many hints there are now. */
static inline int party_hints(struct party *p)
{
	return party_wait_within(p, within_ms(0));
}

/* Adds the name, and takes the hint that follows. */
static inline int party_watch(struct party *p, const char *name, uint64_t cookie)
{
	assert_int_equal(baton_memory_driver.watch_add(p->lanes[2], name, cookie), 0);
	return party_wait(p);
}

static inline int world_init(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	if (w == NULL || baton_memory_open(WORLD_URL, &w->m, NULL) != 0) {
		free(w);
		return -1;
	}
	baton_memory_hold_clock(w->m, true);
	party_init(&w->a, WORLD_URL, "a");
	party_init(&w->b, WORLD_URL, "b");
	*state = w;
	return 0;
}

static inline int world_done(void **state)
{
	struct world *w = *state;

	party_done(&w->a);
	party_done(&w->b);
	baton_memory_close(w->m);
	free(w);
	return 0;
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, world_init, world_done)

#endif
