/*
 * test_record_claims.c: claims() of the record stores tells all claims that stand and none else, or
 * says that it can't: after lists that failed halfway, and whichever allocation of the layer fails.
 * The layer is linked with its calls of malloc() renamed (tests/faults).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "faults/fault.h"
#include "store/record/layer.h"

#define LEASE_NS (60 * CLOCK_NS_PER_S)
#define MANY (RECORD_FEW + 10) /* so many that claims() looks at a list */

extern const struct record_adapter *const baton_driver_adapter; /* of tests/record/memory.c */

static struct record_adapter adapter;
static bool lists_fail;
static char names[MANY][16];

/* A process with its lease. */
struct party {
	void *store;
	void *lane;
	struct baton_lease lease;
};

static struct baton_call a_call(void)
{
	return (struct baton_call){.deadline_ns = clock_boot_ns() + 10 * CLOCK_NS_PER_S};
}

static int list_badly(void *lane, struct baton_call *call, const char *prefix, bool with_values,
		      void (*found)(void *arg, const struct record_item *item), void *arg)
{
	int outcome = baton_driver_adapter->list(lane, call, prefix, with_values, found, arg);

	return lists_fail ? BATON_OUTCOME_FAILED : outcome;
}

static int set_up(void **state)
{
	static struct party p;
	const struct baton_store_config config = {.size = sizeof(config),
						  .url = "memory+record:claims?poll=100"};
	struct baton_call call = a_call();

	adapter = *baton_driver_adapter;
	adapter.list = list_badly;
	lists_fail = false;
	for (unsigned i = 0; i < MANY; i++)
		snprintf(names[i], sizeof(names[i]), "n%u", i);
	p.lease = (struct baton_lease){
		.id = "aa-0-1", .ttl_ns = LEASE_NS, .owner = "aa", .address = ""};
	assert_int_equal(record_driver_open(&adapter, &config, &p.store, NULL), 0);
	assert_int_equal(record_driver_lane_open(p.store, BATON_LANE_CAMPAIGN, &p.lane, NULL), 0);
	assert_int_equal(record_driver_lease_open(p.lane, &call, &p.lease), BATON_OUTCOME_OK);
	*state = &p;
	return 0;
}

static int tear_down(void **state)
{
	struct party *p = *state;

	record_driver_lane_close(p->lane);
	record_driver_close(p->store);
	return 0;
}

/* Campaigns in all elections; outcomes has room for them. */
static void campaign(struct party *p, uint64_t nonce, int outcomes[MANY])
{
	struct baton_call call = a_call();
	struct baton_campaign list[MANY];
	struct baton_record records[MANY];

	for (unsigned i = 0; i < MANY; i++)
		list[i] = (struct baton_campaign){.name = names[i],
						  .nonce = nonce + i,
						  .profile = {.metadata = ""},
						  .record = &records[i]};
	record_driver_campaign(p->lane, &call, &p->lease, list, MANY);
	for (unsigned i = 0; i < MANY; i++)
		outcomes[i] = list[i].outcome;
}

static void win_all(struct party *p)
{
	int outcomes[MANY];

	campaign(p, 1, outcomes);
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(outcomes[i], BATON_OUTCOME_OK);
}

struct told {
	unsigned n;
	uint64_t term_of[MANY]; /* 0: not told of */
};

static void found_claim(void *arg, const char *name, uint64_t nonce, uint64_t term)
{
	struct told *t = arg;

	(void)nonce;
	t->n++;
	t->term_of[strtoul(name + 1, NULL, 10)] = term;
}

static int claims(struct party *p, struct told *t)
{
	struct baton_call call = a_call();

	*t = (struct told){0};
	return record_driver_claims(p->lane, &call, &p->lease, found_claim, t);
}

/* Deletes an election as a person would. */
static void delete_election(struct party *p, const char *name)
{
	struct record_lane *lane = p->lane;
	struct record_key key = record_key_of(p->store, RECORD_ELECTIONS, name);
	struct record_item item = {.key = key.text};
	struct baton_call call = a_call();

	baton_driver_adapter->get(lane->lane, &call, &item, 1, true);
	bytes_done(&item.value);
	baton_driver_adapter->drop(lane->lane, &call, &item, 1);
	assert_int_equal(item.outcome, BATON_OUTCOME_OK);
}

/* What a list has shown that failed halfway counts no longer at the next look. */
static void test_list_that_failed(void **state)
{
	struct party *p = *state;
	struct told told;

	adapter.get_max = 1;
	win_all(p);
	assert_int_equal(claims(p, &told), BATON_OUTCOME_OK);
	assert_int_equal(told.n, MANY);
	lists_fail = true;
	assert_int_equal(claims(p, &told), BATON_OUTCOME_FAILED);
	lists_fail = false;
	delete_election(p, names[3]);
	assert_int_equal(claims(p, &told), BATON_OUTCOME_OK);
	assert_int_equal(told.n, MANY - 1);
	assert_int_equal(told.term_of[3], 0);
}

/* The same, if so many claims were given back meanwhile that there is no other list. */
static void test_list_that_failed_and_few(void **state)
{
	struct party *p = *state;
	struct told told;

	adapter.get_max = 1;
	win_all(p);
	lists_fail = true;
	assert_int_equal(claims(p, &told), BATON_OUTCOME_FAILED);
	for (unsigned i = 5; i < MANY; i++)
		record_held_set(p->store, p->lease.id, names[i], NULL);
	delete_election(p, names[3]);
	assert_int_equal(claims(p, &told), BATON_OUTCOME_OK);
	assert_int_equal(told.n, 4);
	assert_int_equal(told.term_of[3], 0);
}

/* ---- no memory ---- */

/* Ends the faults. Whether an allocation has failed since there were `before` faults. */
static bool scarcity_ends(uint64_t before)
{
	fault_nth(FAULT_MEMORY, 0);
	return fault_count() != before;
}

static void check_claims_scarce(struct party *p)
{
	struct told told;
	bool was_scarce = true;

	for (uint64_t n = 1; was_scarce; n++) {
		uint64_t before = fault_count();

		fault_nth(FAULT_MEMORY, n);
		int outcome = claims(p, &told);

		was_scarce = scarcity_ends(before);
		assert_true(was_scarce || n > 1); /* there is something to fail */
		if (outcome == BATON_OUTCOME_OK)
			assert_int_equal(told.n, MANY);
		else
			assert_true(was_scarce && outcome == BATON_OUTCOME_FAILED);
		assert_int_equal(claims(p, &told), BATON_OUTCOME_OK);
		assert_int_equal(told.n, MANY);
	}
}

static void test_claims_read_scarce(void **state)
{
	win_all(*state);
	check_claims_scarce(*state);
}

static void test_claims_listed_scarce(void **state)
{
	adapter.get_max = 1;
	win_all(*state);
	check_claims_scarce(*state);
}

static void test_renewal_scarce(void **state)
{
	struct party *p = *state;
	bool was_scarce = true;

	win_all(p);
	for (uint64_t n = 1; was_scarce; n++) {
		struct baton_call call = a_call();
		uint64_t before = fault_count();
		uint32_t n_held = UINT32_MAX;

		fault_nth(FAULT_MEMORY, n);
		int outcome = record_driver_lease_renew(p->lane, &call, &p->lease, &n_held);

		was_scarce = scarcity_ends(before);
		assert_true(was_scarce || n > 1);
		if (outcome == BATON_OUTCOME_OK)
			assert_int_equal(n_held, MANY);
		else
			assert_true(was_scarce && outcome == BATON_OUTCOME_FAILED);
	}
}

/* A campaign that says so has won, and what it says nothing of, claims() tells. */
static void test_campaign_scarce(void **state)
{
	struct party *p = *state;
	bool was_scarce = true;

	for (uint64_t n = 1; was_scarce; n++) {
		uint64_t before = fault_count();
		int outcomes[MANY];
		struct told told;

		fault_nth(FAULT_MEMORY, n);
		campaign(p, n * MANY, outcomes);
		was_scarce = scarcity_ends(before);
		assert_true(was_scarce || n > 1);
		assert_int_equal(claims(p, &told), BATON_OUTCOME_OK);
		for (unsigned i = 0; i < MANY; i++) {
			assert_true(was_scarce || outcomes[i] == BATON_OUTCOME_OK);
			if (outcomes[i] != BATON_OUTCOME_UNKNOWN)
				assert_int_equal(told.term_of[i] != 0,
						 outcomes[i] == BATON_OUTCOME_OK);
			if (told.term_of[i] == 0)
				continue;
			struct baton_release r = {.name = names[i],
						  .lease_id = p->lease.id,
						  .nonce = n * MANY + i,
						  .term = told.term_of[i],
						  .reason = "test"};
			struct baton_call call = a_call();

			record_driver_release(p->lane, &call, &r, 1);
			assert_int_equal(r.outcome, BATON_OUTCOME_OK);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_list_that_failed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_list_that_failed_and_few, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_claims_read_scarce, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_claims_listed_scarce, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_renewal_scarce, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_campaign_scarce, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
