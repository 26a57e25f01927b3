/*
 * test_memory.c: the memory driver keeps the contract of baton-store.h, call by call. Time is the
 * store's own, held and advanced. What its switches do is in test_memory_switch.c.
 */
#include "memory_party.h"

#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#define TERM_MAX ((uint64_t)INT64_MAX)
#define JUMP_MAX ((uint64_t)1 << 48)

/* ---- opening ---- */

static void test_urls(void **state)
{
	static const char *const bad[] = {"memory:",     "memory",     "file:x",    "",
					  "memory:a?b=", "memory://a", "memory:a#b"};
	struct baton_store_config config = {.size = sizeof(config)};
	struct baton_error err;
	void *store = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		config.url = bad[i];
		err.code = 0;
		assert_int_equal(baton_memory_driver.open(&config, &store, &err), BATON_E_URL);
		assert_int_equal(err.code, BATON_E_URL);
		assert_true(strlen(err.text) > 10);
		assert_null(store);
	}
	assert_int_equal(baton_memory_driver.abi, BATON_STORE_ABI);
	assert_string_equal(baton_memory_driver.schemes[0], "memory");
	assert_null(baton_memory_driver.schemes[1]);
	baton_memory_driver.close(NULL);
	baton_memory_driver.lane_close(NULL);
	baton_memory_close(NULL);
}

static void test_stores_of_two_names_are_two(void **state)
{
	struct party a, b;

	(void)state;
	party_init(&a, "memory:one", "a");
	party_init(&b, "memory:two", "b");
	assert_int_equal(party_campaign(&a, "x", 1, 0), BATON_OUTCOME_OK);
	assert_int_equal(party_campaign(&b, "x", 1, 0), BATON_OUTCOME_OK);
	party_done(&a);
	party_done(&b);
}

/* With the last handle all is gone; a hand on the switches keeps it. */
static void test_how_long_a_store_lives(void **state)
{
	struct baton_memory *m;
	struct party a;

	(void)state;
	for (int i = 0; i < 2; i++) {
		party_init(&a, "memory:life", "a");
		assert_int_equal(party_campaign(&a, "x", 1, 0), BATON_OUTCOME_OK);
		assert_int_equal(a.term, 1);
		party_done(&a);
	}
	assert_int_equal(baton_memory_open("memory:life", &m, NULL), 0);
	for (uint64_t term = 1; term < 4; term++) {
		party_init(&a, "memory:life", "a");
		assert_int_equal(party_campaign(&a, "x", 1, 0), BATON_OUTCOME_OK);
		assert_int_equal(a.term, term);
		assert_int_equal(party_close(&a), BATON_OUTCOME_OK);
		party_done(&a);
	}
	baton_memory_close(m);
}

/* S10: the child finds nothing, and may close what it came with. */
static void test_fork(void **state)
{
	struct world *w = *state;
	struct party c;
	int status;
	pid_t child;

	assert_int_equal(party_campaign(&w->a, "x", 1, 0), BATON_OUTCOME_OK);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		baton_memory_driver.forget(w->a.store);
		party_done(&w->a);
		party_done(&w->b);
		baton_memory_close(w->m);
		party_init(&c, WORLD_URL, "c");
		int outcome = party_campaign(&c, "x", 1, 0);
		bool fresh = outcome == BATON_OUTCOME_OK && c.term == 1;

		party_done(&c);
		_exit(fresh ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(party_renew(&w->a), BATON_OUTCOME_OK);
	assert_int_equal(w->a.n_held, 1);
}

/* ---- leases ---- */

static void test_a_lease_lives_and_ends(void **state)
{
	struct world *w = *state;

	assert_int_equal(party_renew(&w->a), BATON_OUTCOME_OK);
	assert_int_equal(w->a.n_held, 0);
	for (int i = 0; i < 5; i++) {
		baton_memory_advance(w->m, TTL_MS - 1);
		assert_int_equal(party_renew(&w->a), BATON_OUTCOME_OK);
	}
	baton_memory_advance(w->m, TTL_MS);
	assert_int_equal(party_renew(&w->a), BATON_OUTCOME_REFUSED);
	assert_int_equal(party_renew(&w->b), BATON_OUTCOME_REFUSED);
	assert_int_equal(party_close(&w->a), BATON_OUTCOME_OK);
	/* Opening twice is one lease: the first answer may have been lost. */
	party_new_lease(&w->a);
	assert_int_equal(party_open(&w->a), BATON_OUTCOME_OK);
	assert_int_equal(party_campaign(&w->a, "x", 1, 0), BATON_OUTCOME_OK);
	assert_int_equal(party_open(&w->a), BATON_OUTCOME_OK);
	assert_int_equal(party_renew(&w->a), BATON_OUTCOME_OK);
	assert_int_equal(w->a.n_held, 1);
	assert_int_equal(party_close(&w->a), BATON_OUTCOME_OK);
	assert_int_equal(party_renew(&w->a), BATON_OUTCOME_REFUSED);
}

/* The clock that runs: whoever asks next finds it gone. */
static void test_a_lease_runs_out(void **state)
{
	struct world *w = *state;
	uint64_t limit_ns = soon().deadline_ns;

	baton_memory_hold_clock(w->m, false);
	w->a.lease.ttl_ns = 20 * CLOCK_NS_PER_MS;
	assert_int_equal(party_renew(&w->a), BATON_OUTCOME_OK);
	(void)party_campaign(&w->a, "x", 1, 0);
	do {
		assert_int_equal(party_observe(&w->b, "x"), BATON_OUTCOME_OK);
	} while (w->b.record.held && clock_boot_ns() < limit_ns);
	assert_false(w->b.record.held);
	assert_int_equal(party_renew(&w->a), BATON_OUTCOME_REFUSED);
}

/* N31, rule 6: each lease has its own length. */
static void test_leases_of_different_lengths(void **state)
{
	struct world *w = *state;

	w->b.lease.ttl_ns = 3 * TTL_MS * CLOCK_NS_PER_MS;
	assert_int_equal(party_renew(&w->b), BATON_OUTCOME_OK);
	assert_int_equal(party_campaign(&w->a, "x", 1, 0), BATON_OUTCOME_OK);
	assert_int_equal(party_campaign(&w->b, "y", 1, 0), BATON_OUTCOME_OK);
	party_observe(&w->b, "y");
	assert_int_equal(w->b.record.free_in_ns, 3 * TTL_MS * CLOCK_NS_PER_MS);
	baton_memory_advance(w->m, TTL_MS);
	assert_int_equal(party_observe(&w->b, "x"), BATON_OUTCOME_OK);
	assert_false(w->b.record.held);
	assert_int_equal(party_observe(&w->b, "y"), BATON_OUTCOME_OK);
	assert_true(w->b.record.held);
}

struct listed {
	size_t n;
	uint64_t nonces;
	uint64_t terms;
	char last[BATON_NAME_MAX + 1];
};

static void list_claim(void *arg, const char *name, uint64_t nonce, uint64_t term)
{
	struct listed *l = arg;

	l->n++;
	l->nonces += nonce;
	l->terms += term;
	(void)snprintf(l->last, sizeof(l->last), "%s", name);
}

static int party_claims(struct party *p, struct listed *l)
{
	struct baton_call call = soon();

	*l = (struct listed){0};
	return baton_memory_driver.claims(p->lanes[1], &call, &p->lease, list_claim, l);
}

static void test_claims_of_a_lease(void **state)
{
	struct world *w = *state;
	struct listed l;

	assert_int_equal(party_claims(&w->a, &l), BATON_OUTCOME_OK);
	assert_int_equal(l.n, 0);
	assert_int_equal(party_campaign(&w->a, "x", 3, 0), BATON_OUTCOME_OK);
	assert_int_equal(party_campaign(&w->a, "y", 4, 9), BATON_OUTCOME_OK);
	assert_int_equal(party_campaign(&w->b, "z", 5, 0), BATON_OUTCOME_OK);
	assert_int_equal(party_claims(&w->a, &l), BATON_OUTCOME_OK);
	assert_int_equal(l.n, 2);
	assert_int_equal(l.nonces, 7);
	assert_int_equal(l.terms, 11);
	assert_int_equal(party_release(&w->a, "x", 3, 1), BATON_OUTCOME_OK);
	assert_int_equal(party_claims(&w->a, &l), BATON_OUTCOME_OK);
	assert_int_equal(l.n, 1);
	assert_string_equal(l.last, "y");
	/* What is gone holds nothing. */
	assert_int_equal(party_close(&w->a), BATON_OUTCOME_OK);
	assert_int_equal(party_claims(&w->a, &l), BATON_OUTCOME_OK);
	assert_int_equal(l.n, 0);
}

/* ---- campaigns ---- */

static void test_one_wins_the_other_sees_whom(void **state)
{
	struct world *w = *state;
	const struct baton_record *r = &w->b.record;

	w->a.profile =
		(struct baton_profile){.metadata = "blue", .priority = -3, .score_permille = 950};
	assert_int_equal(party_campaign(&w->a, "x", 77, 0), BATON_OUTCOME_OK);
	assert_int_equal(w->a.term, 1);
	baton_memory_advance(w->m, 100);
	assert_int_equal(party_campaign(&w->b, "x", 78, 0), BATON_OUTCOME_REFUSED);
	assert_true(r->held);
	assert_false(r->reserved);
	assert_false(r->paused);
	assert_true(r->watched);
	assert_int_equal(r->term, 1);
	assert_int_equal(r->nonce, 77);
	assert_int_equal(r->free_in_ns, (TTL_MS - 100) * CLOCK_NS_PER_MS);
	assert_int_equal(r->priority, -3);
	assert_int_equal(r->score_permille, 950);
	assert_string_equal(r->lease_id, w->a.lease.id);
	assert_string_equal(r->leader, "a");
	assert_string_equal(r->address, "host-a:1");
	assert_string_equal(r->metadata, "blue");
	assert_true(r->since_ms > 0);
	assert_int_equal(r->order.kind, BATON_ORDER_NONE);
	/* Held by the same lease: REFUSED, with its nonce and term. */
	assert_int_equal(party_campaign(&w->a, "x", 79, 0), BATON_OUTCOME_REFUSED);
	assert_int_equal(w->a.record.nonce, 77);
	assert_int_equal(w->a.record.term, 1);
	assert_string_equal(w->a.record.lease_id, w->a.lease.id);
}

/* S3: over release, expiry and close. */
static void test_terms_only_grow(void **state)
{
	struct world *w = *state;

	assert_int_equal(party_campaign(&w->a, "x", 1, 0), BATON_OUTCOME_OK);
	assert_int_equal(party_release(&w->a, "x", 1, 1), BATON_OUTCOME_OK);
	assert_int_equal(party_campaign(&w->a, "x", 2, 0), BATON_OUTCOME_OK);
	assert_int_equal(w->a.term, 2);
	baton_memory_advance(w->m, TTL_MS - 1);
	assert_int_equal(party_renew(&w->b), BATON_OUTCOME_OK);
	assert_int_equal(party_campaign(&w->b, "x", 3, 0), BATON_OUTCOME_REFUSED);
	baton_memory_advance(w->m, 1);
	assert_int_equal(party_campaign(&w->b, "x", 3, 0), BATON_OUTCOME_OK);
	assert_int_equal(w->b.term, 3);
	assert_int_equal(party_close(&w->b), BATON_OUTCOME_OK);
	party_observe(&w->a, "x");
	assert_false(w->a.record.held);
	assert_int_equal(w->a.record.term, 3);
	assert_int_equal(w->a.record.free_in_ns, BATON_STORE_NEVER);
	party_new_lease(&w->a);
	assert_int_equal(party_open(&w->a), BATON_OUTCOME_OK);
	assert_int_equal(party_campaign(&w->a, "x", 4, 0), BATON_OUTCOME_OK);
	assert_int_equal(w->a.term, 4);
}

static void test_floors(void **state)
{
	struct world *w = *state;

	assert_int_equal(party_campaign(&w->a, "x", 1, 41), BATON_OUTCOME_OK);
	assert_int_equal(w->a.term, 42);
	assert_int_equal(party_release(&w->a, "x", 1, 42), BATON_OUTCOME_OK);
	assert_int_equal(party_campaign(&w->a, "x", 2, 7), BATON_OUTCOME_OK);
	assert_int_equal(w->a.term, 43);
	assert_int_equal(party_release(&w->a, "x", 2, 43), BATON_OUTCOME_OK);
	/* S4: a jump beyond 2^48 is corrupt; nothing is written. */
	assert_int_equal(party_campaign(&w->a, "x", 3, 43 + JUMP_MAX + 1), BATON_OUTCOME_FAILED);
	assert_int_equal(w->a.code, BATON_E_CORRUPT);
	assert_true(strlen(w->a.error.text) > 10);
	party_observe(&w->a, "x");
	assert_int_equal(w->a.record.term, 43);
	assert_false(w->a.record.held);
	assert_int_equal(party_campaign(&w->a, "x", 3, 43 + JUMP_MAX), BATON_OUTCOME_OK);
	assert_int_equal(w->a.term, 44 + JUMP_MAX);
	/* N34: a store that knows nothing has no say. */
	assert_int_equal(party_campaign(&w->a, "y", 4, 3 * JUMP_MAX), BATON_OUTCOME_OK);
	assert_int_equal(w->a.term, 3 * JUMP_MAX + 1);
}

/* C19, C21: no term, no leader, and the election stays free. */
static void test_the_end_of_the_terms(void **state)
{
	struct world *w = *state;

	assert_int_equal(baton_memory_overwrite(w->m, "x", NULL, TERM_MAX - 1, 0), 0);
	assert_int_equal(party_campaign(&w->a, "x", 1, 0), BATON_OUTCOME_OK);
	assert_int_equal(w->a.term, TERM_MAX);
	assert_int_equal(party_release(&w->a, "x", 1, TERM_MAX), BATON_OUTCOME_OK);
	assert_int_equal(party_campaign(&w->a, "x", 2, 0), BATON_OUTCOME_FAILED);
	assert_int_equal(w->a.code, BATON_E_CORRUPT);
	assert_non_null(strstr(w->a.error.text, "no higher term"));
	party_observe(&w->a, "x");
	assert_false(w->a.record.held);
	assert_int_equal(w->a.record.term, TERM_MAX);
	assert_int_equal(party_campaign(&w->a, "y", 3, UINT64_MAX), BATON_OUTCOME_FAILED);
	assert_int_equal(w->a.code, BATON_E_CORRUPT);
	assert_int_equal(party_renew(&w->a), BATON_OUTCOME_OK);
	assert_int_equal(w->a.n_held, 0);
}

static void test_no_campaign_without_a_lease(void **state)
{
	struct world *w = *state;

	baton_memory_advance(w->m, TTL_MS);
	assert_int_equal(party_campaign(&w->a, "x", 1, 0), BATON_OUTCOME_REFUSED);
	assert_false(w->a.record.held);
	assert_int_equal(w->a.record.free_in_ns, 0); /* it is free: worth another try */
	assert_int_equal(w->a.record.term, 0);
	assert_int_equal(party_publish(&w->a, "x"), BATON_OUTCOME_REFUSED);
}

static void test_a_batch_is_answered_one_by_one(void **state)
{
	struct world *w = *state;
	struct baton_record records[3];
	struct baton_campaign list[3] = {
		{.name = "x", .nonce = 1, .profile = w->a.profile, .record = &records[0]},
		{.name = "y", .nonce = 2, .profile = w->a.profile, .record = &records[1]},
		{.name = "z",
		 .nonce = 3,
		 .floor = UINT64_MAX,
		 .profile = w->a.profile,
		 .record = &records[2]},
	};
	struct baton_call call = soon();

	assert_int_equal(party_campaign(&w->b, "y", 9, 0), BATON_OUTCOME_OK);
	baton_memory_driver.campaign(w->a.lanes[1], &call, &w->a.lease, list, 3);
	assert_int_equal(list[0].outcome, BATON_OUTCOME_OK);
	assert_int_equal(list[0].term, 1);
	assert_int_equal(list[1].outcome, BATON_OUTCOME_REFUSED);
	assert_string_equal(records[1].leader, "b");
	assert_int_equal(list[2].outcome, BATON_OUTCOME_FAILED);
	assert_int_equal(list[2].code, BATON_E_CORRUPT);
	assert_int_equal(call.error.code, BATON_E_CORRUPT);
}

/* N18, N19: full names, compared in full. */
static void test_names(void **state)
{
	struct world *w = *state;
	static const char *const names[] = {"Aa", "BB", "tenant-1a", "tenant-2B", " ", "a/../b"};
	char name[BATON_NAME_MAX + 1];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct party *p = i % 2 == 0 ? &w->a : &w->b;

		assert_int_equal(party_campaign(p, names[i], 1, 0), BATON_OUTCOME_OK);
	}
	memset(name, 'n', sizeof(name));
	name[BATON_NAME_MAX] = '\0';
	assert_int_equal(party_campaign(&w->a, name, 1, 0), BATON_OUTCOME_OK);
	name[BATON_NAME_MAX - 1] = 'm';
	assert_int_equal(party_campaign(&w->b, name, 1, 0), BATON_OUTCOME_OK);
	assert_int_equal(party_renew(&w->a), BATON_OUTCOME_OK);
	assert_int_equal(w->a.n_held, 4);
}

/* ---- releases ---- */

/* S6, rule 8: lease, nonce and term, all three. */
static void test_no_foreign_release(void **state)
{
	struct world *w = *state;

	assert_int_equal(party_campaign(&w->a, "x", 7, 0), BATON_OUTCOME_OK);
	assert_int_equal(party_release(&w->b, "x", 7, 1), BATON_OUTCOME_REFUSED);
	assert_int_equal(party_release(&w->a, "x", 8, 1), BATON_OUTCOME_REFUSED);
	assert_int_equal(party_release(&w->a, "x", 7, 2), BATON_OUTCOME_REFUSED);
	assert_int_equal(party_release(&w->a, "y", 7, 1), BATON_OUTCOME_REFUSED);
	party_observe(&w->b, "x");
	assert_true(w->b.record.held);
	assert_int_equal(party_release(&w->a, "x", 7, 1), BATON_OUTCOME_OK);
	assert_int_equal(party_release(&w->a, "x", 7, 1), BATON_OUTCOME_REFUSED);
	party_observe(&w->b, "x");
	assert_false(w->b.record.held);
}

static void test_a_reservation(void **state)
{
	struct world *w = *state;
	struct party c;

	party_init(&c, WORLD_URL, "c");
	for (uint64_t i = 0; i < 2; i++) {
		assert_int_equal(party_campaign(&w->a, "x", 10 + i, 0), BATON_OUTCOME_OK);
		w->a.reserve_for = "b";
		w->a.hold_ns = 500 * CLOCK_NS_PER_MS;
		assert_int_equal(party_release(&w->a, "x", 10 + i, w->a.term), BATON_OUTCOME_OK);
		w->a.reserve_for = NULL;
		/* Kept for b: nobody else gets it, not even who had it. */
		assert_int_equal(party_campaign(&c, "x", 1, 0), BATON_OUTCOME_REFUSED);
		assert_true(c.record.reserved);
		assert_false(c.record.held);
		assert_int_equal(c.record.free_in_ns, 500 * CLOCK_NS_PER_MS);
		assert_int_equal(party_campaign(&w->a, "x", 2, 0), BATON_OUTCOME_REFUSED);
		party_observe(&w->b, "x");
		assert_false(w->b.record.reserved);
		assert_int_equal(w->b.record.free_in_ns, BATON_STORE_NEVER);
		baton_memory_advance(w->m, 499);
		party_observe(&c, "x");
		assert_true(c.record.reserved);
		assert_int_equal(c.record.free_in_ns, CLOCK_NS_PER_MS);
		if (i == 0) {
			assert_int_equal(party_campaign(&w->b, "x", 3, 0), BATON_OUTCOME_OK);
			assert_int_equal(party_release(&w->b, "x", 3, 2), BATON_OUTCOME_OK);
		}
	}
	/* b doesn't come: it is anybody's when the time is over. */
	baton_memory_advance(w->m, 1);
	party_observe(&c, "x");
	assert_false(c.record.reserved);
	assert_int_equal(party_campaign(&c, "x", 4, 0), BATON_OUTCOME_OK);
	/* Once taken it is spent: the next end leaves it free for all. */
	c.reserve_for = "b";
	c.hold_ns = TTL_MS * CLOCK_NS_PER_MS;
	assert_int_equal(party_release(&c, "x", 4, c.term), BATON_OUTCOME_OK);
	assert_int_equal(party_campaign(&w->b, "x", 5, 0), BATON_OUTCOME_OK);
	assert_true(baton_memory_destroy(w->m, "x"));
	assert_int_equal(party_campaign(&w->a, "x", 6, 0), BATON_OUTCOME_OK);
	party_done(&c);
}

/* ---- orders and pause ---- */

static void test_orders(void **state)
{
	struct world *w = *state;
	struct baton_order o = {.id = 5, .term = 1, .kind = BATON_ORDER_TRANSFER, .target = "b"};
	struct baton_call call = soon();
	void *lane = w->b.lanes[1];

	assert_int_equal(baton_memory_driver.order(lane, &call, "x", &o), BATON_OUTCOME_REFUSED);
	assert_int_equal(party_campaign(&w->a, "x", 1, 0), BATON_OUTCOME_OK);
	o.term = 2;
	assert_int_equal(baton_memory_driver.order(lane, &call, "x", &o), BATON_OUTCOME_REFUSED);
	o.term = 1;
	assert_int_equal(baton_memory_driver.order(lane, &call, "x", &o), BATON_OUTCOME_OK);
	party_observe(&w->a, "x");
	assert_int_equal(w->a.record.order.id, 5);
	assert_int_equal(w->a.record.order.term, 1);
	assert_int_equal(w->a.record.order.kind, BATON_ORDER_TRANSFER);
	assert_string_equal(w->a.record.order.target, "b");
	assert_false(w->a.record.order.target_ok); /* b isn't there */
	w->b.profile.is_healthy = false;
	assert_int_equal(party_publish(&w->b, "x"), BATON_OUTCOME_OK);
	party_observe(&w->a, "x");
	assert_false(w->a.record.order.target_ok); /* b is unwell */
	w->b.profile.is_healthy = true;
	assert_int_equal(party_publish(&w->b, "x"), BATON_OUTCOME_OK);
	party_observe(&w->a, "x");
	assert_true(w->a.record.order.target_ok);
	assert_int_equal(party_close(&w->b), BATON_OUTCOME_OK);
	party_observe(&w->a, "x");
	assert_false(w->a.record.order.target_ok); /* gone with its lease */
	/* Rule 10: the next leader doesn't see it. */
	assert_int_equal(party_release(&w->a, "x", 1, 1), BATON_OUTCOME_OK);
	assert_int_equal(party_campaign(&w->a, "x", 2, 0), BATON_OUTCOME_OK);
	party_observe(&w->a, "x");
	assert_int_equal(w->a.record.order.kind, BATON_ORDER_NONE);
}

static void test_a_pause(void **state)
{
	struct world *w = *state;
	struct baton_call call = soon();
	void *lane = w->b.lanes[1];

	assert_int_equal(baton_memory_driver.pause(lane, &call, "x", true), BATON_OUTCOME_OK);
	assert_int_equal(party_campaign(&w->a, "x", 1, 0), BATON_OUTCOME_REFUSED);
	assert_true(w->a.record.paused);
	assert_false(w->a.record.held);
	assert_int_equal(w->a.record.free_in_ns, BATON_STORE_NEVER);
	assert_int_equal(party_campaign(&w->a, "y", 1, 0), BATON_OUTCOME_OK);
	assert_int_equal(baton_memory_driver.pause(lane, &call, "x", false), BATON_OUTCOME_OK);
	assert_int_equal(party_campaign(&w->a, "x", 1, 0), BATON_OUTCOME_OK);
	/* A pause takes nothing away: the leader sees it and steps down. */
	assert_int_equal(baton_memory_driver.pause(lane, &call, "x", true), BATON_OUTCOME_OK);
	party_observe(&w->a, "x");
	assert_true(w->a.record.held && w->a.record.paused);
}

/* ---- candidates and history ---- */

struct crowd {
	size_t n;
	struct baton_candidate list[4];
};

static void list_candidate(void *arg, const struct baton_candidate *c)
{
	struct crowd *crowd = arg;

	assert_true(crowd->n < 4);
	crowd->list[crowd->n++] = *c;
}

static const struct baton_candidate *find(const struct crowd *crowd, const char *id)
{
	for (size_t i = 0; i < crowd->n; i++)
		if (strcmp(crowd->list[i].id, id) == 0)
			return &crowd->list[i];
	return NULL;
}

static struct crowd crowd_of(struct party *p, const char *name)
{
	struct crowd crowd = {0};
	struct baton_call call = soon();

	assert_int_equal(
		baton_memory_driver.candidates(p->lanes[1], &call, name, list_candidate, &crowd),
		BATON_OUTCOME_OK);
	return crowd;
}

static void test_candidates(void **state)
{
	struct world *w = *state;
	struct baton_call call = soon();
	struct crowd crowd = crowd_of(&w->a, "x");

	assert_int_equal(crowd.n, 0);
	assert_int_equal(party_campaign(&w->a, "x", 1, 0), BATON_OUTCOME_OK);
	w->a.profile = (struct baton_profile){"one", 5, 100, true};
	assert_int_equal(party_publish(&w->a, "x"), BATON_OUTCOME_OK);
	w->b.profile = (struct baton_profile){"two", -5, 799, false};
	assert_int_equal(party_publish(&w->b, "x"), BATON_OUTCOME_OK);
	assert_int_equal(party_publish(&w->b, "x"), BATON_OUTCOME_OK);
	crowd = crowd_of(&w->a, "x");
	assert_int_equal(crowd.n, 2);
	assert_true(find(&crowd, "a")->is_leader);
	assert_true(find(&crowd, "a")->is_healthy);
	assert_string_equal(find(&crowd, "a")->metadata, "one");
	assert_string_equal(find(&crowd, "a")->address, "host-a:1");
	assert_false(find(&crowd, "b")->is_leader);
	assert_false(find(&crowd, "b")->is_healthy);
	assert_int_equal(find(&crowd, "b")->priority, -5);
	assert_int_equal(find(&crowd, "b")->score_permille, 799);
	assert_true(find(&crowd, "b")->updated_ms > 0);
	/* What the leader shows stands in its record, too. */
	party_observe(&w->b, "x");
	assert_string_equal(w->b.record.metadata, "one");
	assert_int_equal(w->b.record.priority, 5);
	assert_int_equal(w->b.record.n_candidates, 2);
	assert_int_equal(crowd_of(&w->a, "y").n, 0);
	assert_int_equal(baton_memory_driver.withdraw(w->a.lanes[1], &call, &w->a.lease, "x"),
			 BATON_OUTCOME_OK);
	assert_int_equal(baton_memory_driver.withdraw(w->a.lanes[1], &call, &w->a.lease, "x"),
			 BATON_OUTCOME_OK);
	assert_int_equal(crowd_of(&w->a, "x").n, 1);
	party_observe(&w->b, "x");
	assert_int_equal(w->b.record.n_candidates, 1);
	/* N22: gone with the lease. */
	baton_memory_advance(w->m, TTL_MS);
	assert_int_equal(crowd_of(&w->a, "x").n, 0);
}

struct annals {
	size_t n;
	struct baton_leadership list[128];
};

static void list_leadership(void *arg, const struct baton_leadership *l)
{
	struct annals *annals = arg;

	assert_true(annals->n < 128);
	annals->list[annals->n++] = *l;
}

static void ask_history(struct party *p, size_t max, struct annals *out)
{
	struct baton_call call = soon();

	out->n = 0;
	assert_int_equal(
		baton_memory_driver.history(p->lanes[1], &call, "x", max, list_leadership, out),
		BATON_OUTCOME_OK);
}

static void test_history(void **state)
{
	static struct annals h;
	struct world *w = *state;

	ask_history(&w->a, 10, &h);
	assert_int_equal(h.n, 0);
	for (uint64_t i = 1; i <= 250; i++) {
		assert_int_equal(party_campaign(&w->a, "x", i, 0), BATON_OUTCOME_OK);
		baton_memory_advance(w->m, 2);
		assert_int_equal(party_renew(&w->b), BATON_OUTCOME_OK);
		assert_int_equal(party_release(&w->a, "x", i, i), BATON_OUTCOME_OK);
	}
	assert_int_equal(party_renew(&w->a), BATON_OUTCOME_OK);
	assert_int_equal(party_campaign(&w->a, "x", 251, 0), BATON_OUTCOME_OK);
	baton_memory_advance(w->m, TTL_MS - 1);
	assert_int_equal(party_renew(&w->b), BATON_OUTCOME_OK);
	baton_memory_advance(w->m, 1);
	assert_int_equal(party_campaign(&w->b, "x", 252, 0), BATON_OUTCOME_OK);
	ask_history(&w->a, 1000, &h);
	assert_int_equal(h.n, 100);
	for (size_t i = 0; i < h.n; i++)
		assert_int_equal(h.list[i].term, 252 - i);
	assert_string_equal(h.list[0].leader, "b");
	assert_string_equal(h.list[0].ended, "");
	assert_int_equal(h.list[0].until_ms, 0);
	assert_string_equal(h.list[1].leader, "a");
	assert_string_equal(h.list[1].ended, "expired");
	assert_string_equal(h.list[2].ended, "resigned");
	assert_int_equal(h.list[2].until_ms - h.list[2].since_ms, 2);
	/* And by the store's own clock, on which the next one began when it had ended. */
	assert_string_equal(h.list[2].clock, "memory");
	assert_int_equal(h.list[2].until_ns - h.list[2].since_ns, 2000000);
	assert_true(h.list[1].since_ns >= h.list[2].until_ns);
	assert_int_equal(h.list[0].until_ns, 0);
	assert_int_equal(party_close(&w->b), BATON_OUTCOME_OK);
	ask_history(&w->a, 1, &h);
	assert_int_equal(h.n, 1);
	assert_string_equal(h.list[0].ended, "closed");
}

/* ---- many ---- */

/* N23: a hundred thousand elections on one lease, one renewal for all of them. */
static void test_a_hundred_thousand(void **state)
{
	enum { N = 100000, BATCH = 1000 };
	static char names[BATCH][16];
	static struct baton_record records[BATCH];
	static struct baton_campaign list[BATCH];
	struct world *w = *state;
	struct listed l;

	for (size_t first = 0; first < N; first += BATCH) {
		struct baton_call call = soon();

		for (size_t i = 0; i < BATCH; i++) {
			(void)snprintf(names[i], sizeof(names[i]), "e%zu", first + i);
			list[i] = (struct baton_campaign){.name = names[i],
							  .nonce = 1,
							  .profile = w->a.profile,
							  .record = &records[i]};
		}
		baton_memory_driver.campaign(w->a.lanes[1], &call, &w->a.lease, list, BATCH);
		for (size_t i = 0; i < BATCH; i++)
			assert_int_equal(list[i].outcome, BATON_OUTCOME_OK);
	}
	assert_int_equal(party_renew(&w->a), BATON_OUTCOME_OK);
	assert_int_equal(w->a.n_held, N);
	assert_int_equal(party_claims(&w->a, &l), BATON_OUTCOME_OK);
	assert_int_equal(l.n, N);
	assert_int_equal(baton_memory_calls(w->m, BATON_MEMORY_RENEW), 1);
	assert_int_equal(party_watch(&w->b, "e77777", 5), 1);
	assert_int_equal(party_close(&w->a), BATON_OUTCOME_OK);
	assert_int_equal(party_wait(&w->b), 1);
	assert_int_equal(party_campaign(&w->b, "e77777", 1, 0), BATON_OUTCOME_OK);
	assert_int_equal(w->b.term, 2);
}

/* C5, C18, N9: whoever holds it holds it alone, and no term comes twice. */
#define RACERS 8
#define WINS 40

struct ring {
	uint64_t last_term; /* only its holder touches it */
	int inside;
};

struct racer {
	struct party party;
	pthread_t thread;
	struct ring *ring;
	bool failed;
};

static void *race(void *arg)
{
	struct racer *r = arg;
	int wins = 0;

	for (uint64_t nonce = 1; wins < WINS; nonce++) {
		int outcome = party_campaign(&r->party, "race", nonce, 0);

		if (outcome == BATON_OUTCOME_REFUSED)
			continue;
		if (outcome != BATON_OUTCOME_OK ||
		    __atomic_fetch_add(&r->ring->inside, 1, __ATOMIC_SEQ_CST) != 0 ||
		    r->party.term <= r->ring->last_term)
			r->failed = true;
		r->ring->last_term = r->party.term;
		__atomic_fetch_sub(&r->ring->inside, 1, __ATOMIC_SEQ_CST);
		if (party_release(&r->party, "race", nonce, r->party.term) != BATON_OUTCOME_OK)
			r->failed = true;
		wins++;
	}
	return NULL;
}

static void test_a_race(void **state)
{
	struct world *w = *state;
	struct ring ring = {0};
	struct racer racers[RACERS];
	char id[16];

	for (int i = 0; i < RACERS; i++) {
		(void)snprintf(id, sizeof(id), "racer%d", i);
		racers[i] = (struct racer){.ring = &ring};
		party_init(&racers[i].party, WORLD_URL, id);
		assert_int_equal(pthread_create(&racers[i].thread, NULL, race, &racers[i]), 0);
	}
	for (int i = 0; i < RACERS; i++) {
		assert_int_equal(pthread_join(racers[i].thread, NULL), 0);
		assert_false(racers[i].failed);
		party_done(&racers[i].party);
	}
	party_observe(&w->a, "race");
	assert_int_equal(w->a.record.term, RACERS * WINS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_urls),
		cmocka_unit_test(test_stores_of_two_names_are_two),
		cmocka_unit_test(test_how_long_a_store_lives),
		IN_WORLD(test_fork),
		IN_WORLD(test_a_lease_lives_and_ends),
		IN_WORLD(test_a_lease_runs_out),
		IN_WORLD(test_leases_of_different_lengths),
		IN_WORLD(test_claims_of_a_lease),
		IN_WORLD(test_one_wins_the_other_sees_whom),
		IN_WORLD(test_terms_only_grow),
		IN_WORLD(test_floors),
		IN_WORLD(test_the_end_of_the_terms),
		IN_WORLD(test_no_campaign_without_a_lease),
		IN_WORLD(test_a_batch_is_answered_one_by_one),
		IN_WORLD(test_names),
		IN_WORLD(test_no_foreign_release),
		IN_WORLD(test_a_reservation),
		IN_WORLD(test_orders),
		IN_WORLD(test_a_pause),
		IN_WORLD(test_candidates),
		IN_WORLD(test_history),
		IN_WORLD(test_a_hundred_thousand),
		IN_WORLD(test_a_race),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
