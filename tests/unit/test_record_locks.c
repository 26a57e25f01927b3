/*
 * test_record_locks.c: native locks beside the records (docs/decisions/0001-native-locks.md), on
 * records in memory: other programs are kept away, and keep us away; a lock that is lost costs one
 * leadership, and nothing stays locked.
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
#include "record/faults.h"
#include "record/memory.h"
#include "store/record/layer.h"

#define LEASE_NS (60 * CLOCK_NS_PER_S)
#define STORE "locks"

extern const struct record_adapter *const baton_driver_adapter; /* of tests/record/memory.c */

static struct record_adapter adapter;
static struct faults faults;

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

static void party_open(struct party *p, const char *kind, const char *id)
{
	char url[200];
	struct baton_store_config config = {.size = sizeof(config), .url = url};
	struct baton_call call = a_call();

	snprintf(url, sizeof(url), "memory+record:" STORE "?poll=100&locks=%s", kind);
	assert_int_equal(record_driver_open(&adapter, &config, &p->store, NULL), 0);
	assert_int_equal(record_driver_lane_open(p->store, BATON_LANE_CAMPAIGN, &p->lane, NULL), 0);
	p->lease = (struct baton_lease){.ttl_ns = LEASE_NS, .owner = id, .address = ""};
	snprintf(p->lease.id, sizeof(p->lease.id), "%s-0-1", id);
	assert_int_equal(record_driver_lease_open(p->lane, &call, &p->lease), BATON_OUTCOME_OK);
}

static void party_close(struct party *p)
{
	if (p->store == NULL)
		return;
	record_driver_lane_close(p->lane);
	record_driver_close(p->store);
	p->store = NULL;
}

static int set_up(void **state, const char *kind)
{
	struct party *p = calloc(2, sizeof(*p));

	faults_heal(&faults);
	faults_wrap(baton_driver_adapter, &faults, &adapter);
	party_open(&p[0], kind, "aa");
	party_open(&p[1], kind, "bb");
	*state = p;
	return 0;
}

static int set_up_session(void **state)
{
	return set_up(state, "session");
}

static int set_up_duration(void **state)
{
	return set_up(state, "duration");
}

static int tear_down(void **state)
{
	struct party *p = *state;

	party_close(&p[0]);
	party_close(&p[1]);
	free(p);
	return 0;
}

static int campaign(struct party *p, const char *name, uint64_t nonce, struct baton_record *record)
{
	struct baton_call call = a_call();
	struct baton_record spare = {0};
	struct baton_campaign c = {.name = name,
				   .nonce = nonce,
				   .profile = {.metadata = ""},
				   .record = record != NULL ? record : &spare};

	memset(c.record, 0, sizeof(*c.record));
	record_driver_campaign(p->lane, &call, &p->lease, &c, 1);
	return c.outcome;
}

static int release(struct party *p, const char *name, uint64_t nonce, uint64_t term)
{
	struct baton_call call = a_call();
	struct baton_release r = {.name = name,
				  .lease_id = p->lease.id,
				  .nonce = nonce,
				  .term = term,
				  .reason = "test"};

	record_driver_release(p->lane, &call, &r, 1);
	return r.outcome;
}

static void found_claim(void *arg, const char *name, uint64_t nonce, uint64_t term)
{
	(void)name;
	(void)nonce;
	(void)term;
	++*(unsigned *)arg;
}

/* How many claims the lease has. */
static unsigned claims(struct party *p)
{
	struct baton_call call = a_call();
	unsigned n = 0;

	assert_int_equal(record_driver_claims(p->lane, &call, &p->lease, found_claim, &n),
			 BATON_OUTCOME_OK);
	return n;
}

static int renew(struct party *p, uint32_t *n_held)
{
	struct baton_call call = a_call();

	*n_held = UINT32_MAX;
	return record_driver_lease_renew(p->lane, &call, &p->lease, n_held);
}

static bool is_held(struct party *p, const char *name)
{
	struct baton_call call = a_call();
	struct baton_record record = {0};
	struct baton_observation o = {
		.name = name, .lease_id = p->lease.id, .id = p->lease.owner, .record = &record};

	record_driver_observe(p->lane, &call, &o, 1);
	assert_int_equal(o.outcome, BATON_OUTCOME_OK);
	return record.held;
}

static struct record_known *known(struct party *p, const char *name)
{
	struct record_store *s = p->store;
	struct record_key key = record_key_of(s, RECORD_ELECTIONS, name);

	return record_known_find(s, key.text);
}

/* ---- others ---- */

static void test_others_keep_us_away(void **state)
{
	struct party *p = *state;
	struct baton_record record;

	assert_true(memory_lock_take(STORE, "e"));
	assert_int_equal(campaign(&p[0], "e", 1, &record), BATON_OUTCOME_REFUSED);
	assert_true(record.held);
	assert_false(record.watched); /* nobody tells when it is let go of */
	assert_true(record.free_in_ns == RECORD_NEVER);
	assert_string_equal(record.lease_id, "");
	memory_lock_free_in(STORE, "e", 7);
	assert_int_equal(campaign(&p[0], "e", 2, &record), BATON_OUTCOME_REFUSED);
	assert_int_equal(record.free_in_ns, 7);
	assert_int_equal(claims(&p[0]), 0);
	memory_lock_end(STORE, "e");
	assert_int_equal(campaign(&p[0], "e", 3, NULL), BATON_OUTCOME_OK);
}

static void test_we_keep_others_away(void **state)
{
	struct party *p = *state;
	uint32_t n_held;

	assert_int_equal(campaign(&p[0], "e", 1, NULL), BATON_OUTCOME_OK);
	assert_false(memory_lock_take(STORE, "e"));
	assert_int_equal(renew(&p[0], &n_held), BATON_OUTCOME_OK);
	assert_int_equal(n_held, 1);
	assert_false(memory_lock_take(STORE, "e"));
	assert_int_equal(release(&p[0], "e", 1, 1), BATON_OUTCOME_OK);
	assert_true(memory_lock_take(STORE, "e"));
}

/* Whoever is refused by the record has not touched the lock; nor does it when it was too late. */
static void test_the_record_decides(void **state)
{
	struct party *p = *state;
	struct baton_call call = a_call();

	assert_int_equal(campaign(&p[0], "e", 1, NULL), BATON_OUTCOME_OK);
	memory_lock_end(STORE, "e");
	assert_int_equal(campaign(&p[1], "e", 1, NULL), BATON_OUTCOME_REFUSED);
	assert_false(memory_lock_is_taken(STORE, "e"));
	assert_int_equal(record_driver_pause(p[0].lane, &call, "paused", true), BATON_OUTCOME_OK);
	assert_int_equal(campaign(&p[1], "paused", 1, NULL), BATON_OUTCOME_REFUSED);
	assert_false(memory_lock_is_taken(STORE, "paused"));
}

/* ---- loss ---- */

/* One leadership ends, before its time, and not the others of the same lease. */
static void test_lock_lost(void **state)
{
	struct party *p = *state;
	struct record_store *s = p[0].store;
	uint32_t n_held;

	assert_int_equal(campaign(&p[0], "e", 1, NULL), BATON_OUTCOME_OK);
	assert_int_equal(campaign(&p[0], "other", 2, NULL), BATON_OUTCOME_OK);
	memory_lock_end(STORE, "e");
	assert_true(memory_lock_take(STORE, "e"));
	assert_int_equal(renew(&p[0], &n_held), BATON_OUTCOME_OK);
	assert_int_equal(n_held, 1);
	assert_int_equal(claims(&p[0]), 1);
	/* S7: its work may go on until the core says so, by campaigning. */
	assert_true(is_held(&p[1], "e"));
	assert_int_equal(renew(&p[0], &n_held), BATON_OUTCOME_OK);
	assert_true(is_held(&p[1], "e"));
	assert_int_equal(campaign(&p[0], "e", 3, NULL), BATON_OUTCOME_REFUSED);
	assert_false(is_held(&p[1], "e"));
	memory_lock_end(STORE, "e");
	assert_int_equal(campaign(&p[1], "e", 4, NULL), BATON_OUTCOME_OK);
	/* Or when all of its time has passed. */
	memory_lock_end(STORE, "other");
	assert_int_equal(renew(&p[0], &n_held), BATON_OUTCOME_OK);
	assert_int_equal(n_held, 0);
	/* ... since the core has heard of it: until then it may lead. */
	assert_int_equal(record_ours_find(s, p[0].lease.id)->forfeit_ns, 0);
	assert_int_equal(renew(&p[0], &n_held), BATON_OUTCOME_OK);
	assert_true(is_held(&p[1], "other"));
	assert_int_equal(claims(&p[0]), 0);
	record_ours_find(s, p[0].lease.id)->forfeit_ns -= LEASE_NS;
	assert_int_equal(renew(&p[0], &n_held), BATON_OUTCOME_OK);
	assert_false(is_held(&p[1], "other"));
}

/* One failure is no loss; a lock that keeps failing costs its own leadership only. */
/* L3: whoever campaigns where a claim is forfeit ends that one, whatever an old read shows. */
static void test_lock_lost_and_old_read(void **state)
{
	struct party *p = *state;
	uint32_t n_held;

	assert_int_equal(campaign(&p[0], "e", 1, NULL), BATON_OUTCOME_OK);
	memory_lock_end(STORE, "e");
	assert_int_equal(renew(&p[0], &n_held), BATON_OUTCOME_OK);
	assert_int_equal(n_held, 0);
	assert_true(is_held(&p[1], "e"));
	faults_set(&faults, FAULTS_READ, FAULTS_STALE, 1, 0);
	faults_set(&faults, FAULTS_CLAIM, FAULTS_AFTER, 1, 0);
	assert_int_equal(campaign(&p[0], "e", 3, NULL), BATON_OUTCOME_REFUSED);
	faults_heal(&faults);
	assert_false(is_held(&p[1], "e"));
	assert_int_equal(campaign(&p[1], "e", 4, NULL), BATON_OUTCOME_OK);
}

static void test_lock_fails(void **state)
{
	struct party *p = *state;
	struct record_store *s = p[0].store;
	uint32_t n_held;

	assert_int_equal(campaign(&p[0], "e", 1, NULL), BATON_OUTCOME_OK);
	faults_set(&faults, FAULTS_LOCK, FAULTS_FAIL, 1, 0);
	assert_int_equal(renew(&p[0], &n_held), BATON_OUTCOME_FAILED);
	assert_int_equal(renew(&p[0], &n_held), BATON_OUTCOME_OK);
	assert_int_equal(n_held, 1);
	known(&p[0], "e")->lock_ns -= LEASE_NS / 2;
	faults_set(&faults, FAULTS_LOCK, FAULTS_FAIL, 1, 0);
	faults_set(&faults, FAULTS_RENEW, FAULTS_FAIL, 1, 0);
	assert_int_equal(renew(&p[0], &n_held), BATON_OUTCOME_FAILED); /* all fails: wait */
	/* The lock ends before a lease that is renewed now: the leader must hear of that first. */
	faults_set(&faults, FAULTS_LOCK, FAULTS_FAIL, 1, 0);
	assert_int_equal(renew(&p[0], &n_held), BATON_OUTCOME_UNKNOWN);
	assert_int_equal(renew(&p[0], &n_held), BATON_OUTCOME_UNKNOWN);
	assert_true(is_held(&p[1], "e"));
	assert_int_equal(record_ours_find(s, p[0].lease.id)->forfeit_ns, 0);
	assert_false(is_held(&p[0], "e"));
	assert_int_not_equal(record_ours_find(s, p[0].lease.id)->forfeit_ns, 0);
	assert_int_equal(renew(&p[0], &n_held), BATON_OUTCOME_OK);
	assert_int_equal(n_held, 0);
}

static void test_take_fails(void **state)
{
	struct party *p = *state;

	faults_set(&faults, FAULTS_LOCK, FAULTS_FAIL, 1, 0);
	assert_int_equal(campaign(&p[0], "e", 1, NULL), BATON_OUTCOME_FAILED);
	assert_false(is_held(&p[0], "e"));
	assert_int_equal(campaign(&p[0], "e", 2, NULL), BATON_OUTCOME_OK);
}

/* ---- what is left ---- */

/* A claim in doubt keeps its lock until it is known. */
static void test_claim_in_doubt(void **state)
{
	struct party *p = *state;

	for (unsigned landed = 0; landed < 2; landed++) {
		struct baton_call call = {.deadline_ns = clock_boot_ns() + 20 * CLOCK_NS_PER_MS};
		struct baton_record record;
		struct baton_campaign c = {.name = "e",
					   .nonce = 5 + landed,
					   .profile = {.metadata = ""},
					   .record = &record};

		faults_set(&faults, FAULTS_CLAIM, landed ? FAULTS_MUTE : FAULTS_HOLE, 1, 0);
		record_driver_campaign(p[0].lane, &call, &p[0].lease, &c, 1);
		assert_int_equal(c.outcome, BATON_OUTCOME_UNKNOWN);
		assert_true(memory_lock_is_taken(STORE, "e"));
		assert_int_equal(claims(&p[0]), landed);
		assert_int_equal(memory_lock_is_taken(STORE, "e"), landed);
	}
}

/* It has landed, but the lock is another's by now: it is given back, not led on. */
static void test_claim_found_without_lock(void **state)
{
	struct party *p = *state;
	struct baton_call call = {.deadline_ns = clock_boot_ns() + 20 * CLOCK_NS_PER_MS};
	struct baton_record record;
	struct baton_campaign c = {
		.name = "e", .nonce = 5, .profile = {.metadata = ""}, .record = &record};

	faults_set(&faults, FAULTS_CLAIM, FAULTS_MUTE, 1, 0);
	record_driver_campaign(p[0].lane, &call, &p[0].lease, &c, 1);
	assert_int_equal(c.outcome, BATON_OUTCOME_UNKNOWN);
	memory_lock_end(STORE, "e");
	assert_true(memory_lock_take(STORE, "e"));
	assert_int_equal(claims(&p[0]), 0);
	assert_false(is_held(&p[1], "e"));
}

/* A renewal that was sent after the lock was taken, and before the claim was known, lasts longer
 * than the lock: so the lock is taken again. */
static int (*real_lock_take)(void *lane, struct baton_call *call, const char *name,
			     const char *lease_id, uint64_t ttl_ns, uint64_t *free_in_ns);
static struct party *renewing;

static int renew_after_take(void *lane, struct baton_call *call, const char *name,
			    const char *lease_id, uint64_t ttl_ns, uint64_t *free_in_ns)
{
	int outcome = real_lock_take(lane, call, name, lease_id, ttl_ns, free_in_ns);
	uint32_t n_held;

	adapter.lock_take = real_lock_take;
	assert_int_equal(renew(renewing, &n_held), BATON_OUTCOME_OK);
	return outcome;
}

static void test_renewal_between(void **state)
{
	struct party *p = *state;
	uint32_t n_held;

	renewing = &p[0];
	real_lock_take = adapter.lock_take;
	adapter.lock_take = renew_after_take;
	assert_int_equal(campaign(&p[0], "e", 1, NULL), BATON_OUTCOME_UNKNOWN);
	assert_int_equal(claims(&p[0]), 1);
	assert_int_equal(renew(&p[0], &n_held), BATON_OUTCOME_OK);
	assert_int_equal(n_held, 1);
}

static void test_close(void **state)
{
	struct party *p = *state;
	struct baton_call call = a_call();

	assert_int_equal(campaign(&p[0], "e", 1, NULL), BATON_OUTCOME_OK);
	assert_int_equal(record_driver_lease_close(p[0].lane, &call, &p[0].lease),
			 BATON_OUTCOME_OK);
	assert_false(memory_lock_is_taken(STORE, "e"));
}

/* Another lease in place of the first: what the first one held is free. */
static void test_replaced(void **state)
{
	struct party *p = *state;
	struct baton_call call = a_call();

	assert_int_equal(campaign(&p[0], "e", 1, NULL), BATON_OUTCOME_OK);
	(void)snprintf(p[0].lease.id, sizeof(p[0].lease.id), "aa-0-2");
	assert_int_equal(record_driver_lease_open(p[0].lane, &call, &p[0].lease), BATON_OUTCOME_OK);
	assert_false(memory_lock_is_taken(STORE, "e"));
	assert_int_equal(campaign(&p[0], "e", 2, NULL), BATON_OUTCOME_OK);
}

/* A process that ends without a word: its session ends with it. */
static void test_killed(void **state)
{
	struct party *p = *state;

	assert_int_equal(campaign(&p[0], "e", 1, NULL), BATON_OUTCOME_OK);
	party_close(&p[0]);
	assert_false(memory_lock_is_taken(STORE, "e"));
}

/* ... and a duration passes. */
static void test_killed_duration(void **state)
{
	struct party *p = *state;
	struct record_store *s = p[1].store;

	assert_int_equal(campaign(&p[0], "e", 1, NULL), BATON_OUTCOME_OK);
	assert_int_equal(campaign(&p[1], "e", 1, NULL), BATON_OUTCOME_REFUSED);
	record_seen_find(s, p[0].lease.id)->sight.since_ns -= LEASE_NS;
	party_close(&p[0]);
	assert_true(memory_lock_is_taken(STORE, "e"));
	assert_int_equal(campaign(&p[1], "e", 2, NULL), BATON_OUTCOME_REFUSED);
	memory_lock_end(STORE, "e"); /* a ttl later */
	assert_int_equal(campaign(&p[1], "e", 3, NULL), BATON_OUTCOME_OK);
}

int main(void)
{
#define BOTH(name)                                                        \
	cmocka_unit_test_setup_teardown(name, set_up_session, tear_down), \
		cmocka_unit_test_setup_teardown(name, set_up_duration, tear_down)
	const struct CMUnitTest tests[] = {
		BOTH(test_others_keep_us_away),
		BOTH(test_we_keep_others_away),
		BOTH(test_the_record_decides),
		BOTH(test_lock_lost),
		BOTH(test_lock_lost_and_old_read),
		BOTH(test_lock_fails),
		BOTH(test_take_fails),
		BOTH(test_claim_in_doubt),
		BOTH(test_claim_found_without_lock),
		BOTH(test_close),
		BOTH(test_replaced),
		cmocka_unit_test_setup_teardown(test_renewal_between, set_up_duration, tear_down),
		cmocka_unit_test_setup_teardown(test_killed, set_up_session, tear_down),
		cmocka_unit_test_setup_teardown(test_killed_duration, set_up_duration, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
