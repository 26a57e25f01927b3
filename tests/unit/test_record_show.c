/*
 * test_record_show.c: leaders of record stores show how they are: a profile that has changed
 * stands in the election's record as well, after conflicts, lost answers and late writes too, and
 * never in another's.
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
#include "store/record/layer.h"

#define LEASE_NS (60 * CLOCK_NS_PER_S)

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

static void party_open(struct party *p, const char *id)
{
	const struct baton_store_config config = {.size = sizeof(config),
						  .url = "memory+record:show?poll=100"};
	struct baton_call call = a_call();

	assert_int_equal(record_driver_open(&adapter, &config, &p->store, NULL), 0);
	assert_int_equal(record_driver_lane_open(p->store, BATON_LANE_CAMPAIGN, &p->lane, NULL), 0);
	p->lease = (struct baton_lease){.ttl_ns = LEASE_NS, .owner = id, .address = ""};
	snprintf(p->lease.id, sizeof(p->lease.id), "%s-0-1", id);
	assert_int_equal(record_driver_lease_open(p->lane, &call, &p->lease), BATON_OUTCOME_OK);
}

static void party_close(struct party *p)
{
	record_driver_lane_close(p->lane);
	record_driver_close(p->store);
}

static uint64_t n_calls(void)
{
	return atomic_load(&faults.calls[FAULTS_ANY]);
}

static int campaign(struct party *p, uint64_t nonce)
{
	struct baton_call call = a_call();
	struct baton_record record = {.term = 0};
	struct baton_campaign c = {
		.name = "e", .nonce = nonce, .profile = {.metadata = ""}, .record = &record};

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

struct found {
	unsigned n;
	char name[BATON_NAME_MAX + 1];
	uint64_t nonce;
	uint64_t term;
};

static void found_claim(void *arg, const char *name, uint64_t nonce, uint64_t term)
{
	struct found *f = arg;

	f->n++;
	snprintf(f->name, sizeof(f->name), "%s", name);
	f->nonce = nonce;
	f->term = term;
}

static int claims(struct party *p, struct found *f)
{
	struct baton_call call = a_call();

	*f = (struct found){0};
	return record_driver_claims(p->lane, &call, &p->lease, found_claim, f);
}

static uint32_t renew(struct party *p)
{
	struct baton_call call = a_call();
	uint32_t n_held = UINT32_MAX;

	assert_int_equal(record_driver_lease_renew(p->lane, &call, &p->lease, &n_held),
			 BATON_OUTCOME_OK);
	return n_held;
}

static void observe(struct party *p, const char *name, struct baton_record *record)
{
	struct baton_call call = a_call();
	struct baton_observation o = {
		.name = name, .lease_id = p->lease.id, .id = p->lease.owner, .record = record};

	record_driver_observe(p->lane, &call, &o, 1);
	assert_int_equal(o.outcome, BATON_OUTCOME_OK);
}

static int set_up(void **state)
{
	struct party *p = calloc(2, sizeof(*p));

	faults_heal(&faults);
	faults_wrap(baton_driver_adapter, &faults, &adapter);
	party_open(&p[0], "aa");
	party_open(&p[1], "bb");
	*state = p;
	return 0;
}

static int tear_down(void **state)
{
	struct party *p = *state;

	party_close(&p[0]);
	party_close(&p[1]);
	free(p);
	return 0;
}

static int publish(struct party *p, const char *name, uint32_t score)
{
	struct baton_publication show = {
		.name = name,
		.profile = {.metadata = "", .score_permille = score, .is_healthy = true}};
	struct baton_call call = a_call();

	record_driver_publish(p->lane, &call, &p->lease, &show, 1);
	return show.outcome;
}

/* The score with which its leader is seen by the other. */
static uint32_t seen_score(struct party *p)
{
	struct baton_record record;

	observe(&p[1], "e", &record);
	return record.score_permille;
}

/* A leader's profile stands in its election's record, too: one more request if it has changed. */
static void test_leader_is_shown(void **state)
{
	struct party *p = *state;
	struct found f;

	assert_int_equal(campaign(&p[0], 1), BATON_OUTCOME_OK);
	uint64_t n = n_calls();

	assert_int_equal(publish(&p[0], "e", 0), BATON_OUTCOME_OK);
	assert_int_equal(n_calls() - n, 1); /* as it was in the claim */
	n = n_calls();
	assert_int_equal(publish(&p[0], "e", 900), BATON_OUTCOME_OK);
	assert_int_equal(publish(&p[0], "e", 700), BATON_OUTCOME_OK);
	assert_int_equal(n_calls() - n, 4);
	assert_int_equal(seen_score(p), 700);
	n = n_calls();
	assert_int_equal(publish(&p[0], "e", 700), BATON_OUTCOME_OK);
	assert_int_equal(renew(&p[0]), 1);
	assert_int_equal(claims(&p[0], &f), BATON_OUTCOME_OK);
	assert_int_equal(f.n, 1);
	assert_int_equal(release(&p[0], "e", 1, 1), BATON_OUTCOME_OK);
	assert_int_equal(n_calls() - n, 4); /* one each: the versions of page and claim are known */
	/* Who leads no more shows itself among the candidates alone. */
	n = n_calls();
	assert_int_equal(publish(&p[0], "e", 600), BATON_OUTCOME_OK);
	assert_int_equal(n_calls() - n, 1);
}

/* An order was written meanwhile, or a copy came first: what is still ours is written again. */
static void test_shown_after_conflict(void **state)
{
	struct party *p = *state;
	struct baton_order order = {.id = 9, .term = 1, .kind = BATON_ORDER_RESIGN};
	struct baton_call call = a_call();
	struct baton_record record;

	assert_int_equal(campaign(&p[0], 1), BATON_OUTCOME_OK);
	assert_int_equal(record_driver_order(p[1].lane, &call, "e", &order), BATON_OUTCOME_OK);
	assert_int_equal(publish(&p[0], "e", 900), BATON_OUTCOME_OK);
	observe(&p[1], "e", &record);
	assert_int_equal(record.score_permille, 900);
	assert_int_equal(record.order.id, 9);
	faults_set(&faults, FAULTS_CLAIM, FAULTS_CONFLICT, 1, 0);
	assert_int_equal(publish(&p[0], "e", 800), BATON_OUTCOME_OK);
	faults_set(&faults, FAULTS_CLAIM, FAULTS_DOUBLE, 1, 0);
	assert_int_equal(publish(&p[0], "e", 850), BATON_OUTCOME_OK);
	assert_int_equal(seen_score(p), 850);
	assert_int_equal(release(&p[0], "e", 1, 1), BATON_OUTCOME_OK);
}

/* A profile that may not stand there is shown again; what comes late does no harm (S6, R7). */
static void test_shown_later(void **state)
{
	static const int kinds[] = {FAULTS_FAIL, FAULTS_MUTE, FAULTS_HOLE, FAULTS_AFTER};
	static const int outcomes[] = {BATON_OUTCOME_FAILED, BATON_OUTCOME_UNKNOWN,
				       BATON_OUTCOME_UNKNOWN, BATON_OUTCOME_UNKNOWN};
	struct party *p = *state;

	for (unsigned i = 0; i < 4; i++) {
		struct baton_publication show = {
			.name = "e", .profile = {.metadata = "", .score_permille = 900}};
		struct baton_call call = a_call();

		call.deadline_ns = clock_boot_ns() + 200 * CLOCK_NS_PER_MS;
		assert_int_equal(campaign(&p[0], i + 1), BATON_OUTCOME_OK);
		faults_set(&faults, FAULTS_CLAIM, kinds[i], 1, 0);
		record_driver_publish(p[0].lane, &call, &p[0].lease, &show, 1);
		assert_int_equal(show.outcome, outcomes[i]);
		assert_int_equal(publish(&p[0], "e", 800), BATON_OUTCOME_OK);
		assert_int_equal(seen_score(p), 800);
		assert_int_equal(release(&p[0], "e", i + 1, i + 1), BATON_OUTCOME_OK);
	}
	/* A claim in doubt is shown once it stands. */
	struct found f;
	struct baton_call call = a_call();
	struct baton_record record = {.term = 0};
	struct baton_campaign c = {
		.name = "e", .nonce = 9, .profile = {.metadata = ""}, .record = &record};

	call.deadline_ns = clock_boot_ns() + 200 * CLOCK_NS_PER_MS;
	faults_set(&faults, FAULTS_CLAIM, FAULTS_MUTE, 1, 0);
	record_driver_campaign(p[0].lane, &call, &p[0].lease, &c, 1);
	assert_int_equal(c.outcome, BATON_OUTCOME_UNKNOWN);
	assert_int_equal(publish(&p[0], "e", 500), BATON_OUTCOME_UNKNOWN);
	assert_int_equal(claims(&p[0], &f), BATON_OUTCOME_OK);
	assert_int_equal(publish(&p[0], "e", 500), BATON_OUTCOME_OK);
	assert_int_equal(seen_score(p), 500);
}

/* S6: who was taken for dead, and has not heard of that, changes nothing of its successor's. */
static void test_shown_by_another(void **state)
{
	struct party *p = *state;
	struct record_store *s = p[1].store;

	assert_int_equal(campaign(&p[0], 1), BATON_OUTCOME_OK);
	assert_int_equal(campaign(&p[1], 1), BATON_OUTCOME_REFUSED);
	store_lock(&s->base);
	record_seen_find(s, p[0].lease.id)->sight.since_ns -= LEASE_NS;
	store_unlock(&s->base);
	assert_int_equal(campaign(&p[1], 2), BATON_OUTCOME_OK);
	assert_int_equal(publish(&p[0], "e", 900), BATON_OUTCOME_OK);
	assert_int_equal(seen_score(p), 0);
	assert_int_equal(release(&p[1], "e", 2, 2), BATON_OUTCOME_OK);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_leader_is_shown),
		TEST(test_shown_after_conflict),
		TEST(test_shown_later),
		TEST(test_shown_by_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
