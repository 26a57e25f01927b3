/*
 * test_memory_switch.c: the memory driver's hints, deadlines and switches: each fault does what
 * baton-memory.h says, no more, and never past a call's deadline. Nothing here waits for time to
 * pass but calls that are told to.
 */
#include "memory_party.h"

/* A call on another thread, for those that block. */
struct caller {
	struct party *party;
	struct baton_call call;
	pthread_t thread;
	int outcome;
};

static void *call_renew(void *arg)
{
	struct caller *c = arg;

	c->outcome = party_renew_within(c->party, c->call);
	return NULL;
}

static void *call_wait(void *arg)
{
	struct caller *c = arg;

	c->outcome = party_wait_within(c->party, c->call);
	return NULL;
}

static void begin(struct caller *c, struct party *p, void *(*fn)(void *))
{
	*c = (struct caller){.party = p, .call = soon()};
	assert_int_equal(pthread_create(&c->thread, NULL, fn, c), 0);
}

static int end(struct caller *c)
{
	assert_int_equal(pthread_join(c->thread, NULL), 0);
	assert_true(clock_boot_ns() < c->call.deadline_ns);
	return c->outcome;
}

/* Until the store has seen this many calls of the verb: the last one is inside, or through. */
static void await_calls(struct world *w, int verb, uint64_t n)
{
	uint64_t limit_ns = soon().deadline_ns;

	while (baton_memory_calls(w->m, verb) < n && clock_boot_ns() < limit_ns)
		sched_yield();
	assert_int_equal(baton_memory_calls(w->m, verb), n);
}

/* ---- hints ---- */

static void test_adding_is_followed_by_one_hint(void **state)
{
	struct world *w = *state;

	assert_int_equal(party_watch(&w->b, "x", 7), 1);
	assert_int_equal(w->b.cookies[0], 7);
	assert_int_equal(party_hints(&w->b), 0);
	/* Again: one more, but still one watch. */
	assert_int_equal(party_watch(&w->b, "x", 7), 1);
	assert_int_equal(party_campaign(&w->a, "x", 1, 0), BATON_OUTCOME_OK);
	assert_int_equal(party_hints(&w->b), 1);
	assert_int_equal(party_hints(&w->b), 0);
}

static void assert_hinted(struct world *w, uint64_t cookie)
{
	assert_int_equal(party_wait(&w->b), 1);
	assert_int_equal(w->b.cookies[0], cookie);
	assert_int_equal(party_hints(&w->b), 0);
}

static void test_every_change_is_hinted_at(void **state)
{
	struct world *w = *state;
	struct baton_order o = {.id = 1, .term = 1, .kind = BATON_ORDER_RESIGN};
	struct baton_call call = soon();

	assert_int_equal(party_watch(&w->b, "x", 7), 1);
	assert_int_equal(party_campaign(&w->a, "x", 1, 0), BATON_OUTCOME_OK);
	assert_hinted(w, 7);
	assert_int_equal(baton_memory_driver.order(w->a.lanes[1], &call, "x", &o),
			 BATON_OUTCOME_OK);
	assert_hinted(w, 7);
	w->a.profile.score_permille = 900;
	assert_int_equal(party_publish(&w->a, "x"), BATON_OUTCOME_OK);
	assert_hinted(w, 7);
	assert_int_equal(party_publish(&w->a, "x"), BATON_OUTCOME_OK); /* no news */
	assert_int_equal(party_hints(&w->b), 0);
	assert_int_equal(party_release(&w->a, "x", 1, 1), BATON_OUTCOME_OK);
	assert_hinted(w, 7);
	assert_int_equal(baton_memory_driver.pause(w->a.lanes[1], &call, "x", true),
			 BATON_OUTCOME_OK);
	assert_hinted(w, 7);
	assert_int_equal(baton_memory_driver.pause(w->a.lanes[1], &call, "x", false),
			 BATON_OUTCOME_OK);
	assert_hinted(w, 7);
	assert_int_equal(party_campaign(&w->a, "x", 2, 0), BATON_OUTCOME_OK);
	assert_hinted(w, 7);
	assert_int_equal(party_close(&w->a), BATON_OUTCOME_OK);
	assert_hinted(w, 7);
	/* Refused, or elsewhere: nothing to say. */
	assert_int_equal(party_release(&w->a, "x", 1, 1), BATON_OUTCOME_REFUSED);
	assert_int_equal(party_campaign(&w->b, "y", 1, 0), BATON_OUTCOME_OK);
	assert_int_equal(party_hints(&w->b), 0);
	baton_memory_driver.watch_remove(w->b.lanes[2], "x", 8); /* not ours */
	assert_int_equal(party_campaign(&w->b, "x", 1, 0), BATON_OUTCOME_OK);
	assert_hinted(w, 7);
	baton_memory_driver.watch_remove(w->b.lanes[2], "x", 7);
	assert_int_equal(party_release(&w->b, "x", 1, 3), BATON_OUTCOME_OK);
	assert_int_equal(party_hints(&w->b), 0);
}

static void test_more_hints_than_fit(void **state)
{
	struct world *w = *state;
	uint64_t seen = 0;
	char name[8];
	int n;

	for (uint64_t i = 0; i < 40; i++) {
		(void)snprintf(name, sizeof(name), "e%d", (int)i);
		assert_int_equal(baton_memory_driver.watch_add(w->b.lanes[2], name, i), 0);
	}
	while ((n = party_hints(&w->b)) > 0)
		for (int i = 0; i < n; i++)
			seen ^= (uint64_t)1 << w->b.cookies[i];
	assert_int_equal(seen, ((uint64_t)1 << 40) - 1);
}

static void test_a_waiting_lane_is_told(void **state)
{
	struct world *w = *state;
	struct caller c;

	assert_int_equal(party_campaign(&w->a, "x", 1, 0), BATON_OUTCOME_OK);
	assert_int_equal(party_watch(&w->b, "x", 7), 1);
	begin(&c, &w->b, call_wait);
	await_calls(w, BATON_MEMORY_WATCH, 2);
	assert_int_equal(party_release(&w->a, "x", 1, 1), BATON_OUTCOME_OK);
	assert_int_equal(end(&c), 1);
	begin(&c, &w->b, call_wait);
	await_calls(w, BATON_MEMORY_WATCH, 3);
	baton_memory_driver.watch_wake(w->b.lanes[2]);
	assert_int_equal(end(&c), 0);
	/* Woken before it waits: it doesn't. */
	baton_memory_driver.watch_wake(w->b.lanes[2]);
	assert_int_equal(party_wait(&w->b), 0);
}

/* The held clock is advanced, or runs: whoever waits is told of the end of the lease. */
static void test_the_end_of_a_lease_is_hinted_at(void **state)
{
	struct world *w = *state;
	struct caller c;

	assert_int_equal(party_campaign(&w->a, "x", 1, 0), BATON_OUTCOME_OK);
	assert_int_equal(party_watch(&w->b, "x", 7), 1);
	begin(&c, &w->b, call_wait);
	await_calls(w, BATON_MEMORY_WATCH, 2);
	baton_memory_advance(w->m, TTL_MS);
	assert_int_equal(end(&c), 1);
	/* A lease that is shorter than all that the waiting lane knew of, on the real clock. */
	begin(&c, &w->b, call_wait);
	await_calls(w, BATON_MEMORY_WATCH, 3);
	baton_memory_hold_clock(w->m, false);
	party_new_lease(&w->a);
	w->a.lease.ttl_ns = 5 * CLOCK_NS_PER_MS;
	assert_int_equal(party_open(&w->a), BATON_OUTCOME_OK);
	assert_int_equal(baton_memory_win(w->m, "x", 1), 0); /* though the machine be slow */
	(void)party_campaign(&w->a, "x", 2, 0);
	assert_int_equal(end(&c), 1);
	do {
		assert_int_equal(party_observe(&w->b, "x"), BATON_OUTCOME_OK);
	} while (w->b.record.held && party_wait(&w->b) == 1);
	assert_false(w->b.record.held);
}

/*
 * A wake-up that was forgotten would still come with the lane's own look at the clock, once a
 * second. So each is made often enough that the sum tells them apart on any machine.
 */
#define WAKES 20
#define WAKES_LIMIT_NS (10 * CLOCK_NS_PER_S)

static void by_wake(struct world *w, uint64_t i)
{
	(void)i;
	baton_memory_driver.watch_wake(w->b.lanes[2]);
}

static void by_release(struct world *w, uint64_t i)
{
	assert_int_equal(party_release(&w->a, "x", i, i), BATON_OUTCOME_OK);
}

/* Shorter than all that the waiting lane knew of. */
static void by_expiry(struct world *w, uint64_t i)
{
	(void)i;
	w->a.lease.ttl_ns = CLOCK_NS_PER_MS;
	assert_int_equal(party_renew(&w->a), BATON_OUTCOME_OK);
}

/* The lease ends soon, but by a clock that stands still until now. */
static void by_clock(struct world *w, uint64_t i)
{
	(void)i;
	baton_memory_hold_clock(w->m, false);
}

static void prepare_clock(struct world *w)
{
	baton_memory_hold_clock(w->m, true);
	w->a.lease.ttl_ns = CLOCK_NS_PER_MS;
	assert_int_equal(party_renew(&w->a), BATON_OUTCOME_OK);
}

static void count_wakes(struct world *w, void (*wake)(struct world *, uint64_t), int n_hints)
{
	uint64_t spent_ns = 0;
	uint64_t calls = baton_memory_calls(w->m, BATON_MEMORY_WATCH);
	struct caller c;

	for (uint64_t i = 1; i <= WAKES; i++) {
		if (n_hints > 0) {
			party_new_lease(&w->a);
			w->a.lease.ttl_ns = 3600 * CLOCK_NS_PER_S;
			assert_int_equal(party_open(&w->a), BATON_OUTCOME_OK);
			assert_int_equal(party_campaign(&w->a, "x", i, i - 1), BATON_OUTCOME_OK);
			calls++;
			(void)party_hints(&w->b);
		}
		if (wake == by_clock)
			prepare_clock(w);
		begin(&c, &w->b, call_wait);
		await_calls(w, BATON_MEMORY_WATCH, ++calls);
		uint64_t t0 = clock_boot_ns();
		wake(w, i);
		assert_int_equal(end(&c), n_hints);
		spent_ns += clock_boot_ns() - t0;
	}
	assert_true(spent_ns < WAKES_LIMIT_NS);
}

static void test_nobody_is_woken_late(void **state)
{
	struct world *w = *state;

	baton_memory_hold_clock(w->m, false);
	assert_int_equal(party_watch(&w->b, "x", 7), 1);
	count_wakes(w, by_wake, 0);
	count_wakes(w, by_release, 1);
	baton_memory_forget(w->m);
	(void)party_hints(&w->b);
	count_wakes(w, by_expiry, 1);
	baton_memory_forget(w->m);
	(void)party_hints(&w->b);
	count_wakes(w, by_clock, 1);
	baton_memory_black_hole(w->m, BATON_MEMORY_WATCH, BATON_MEMORY_ALWAYS);
	count_wakes(w, by_wake, 0);
}

static void test_a_broken_watch(void **state)
{
	struct world *w = *state;

	assert_int_equal(party_watch(&w->b, "x", 7), 1);
	assert_int_equal(party_watch(&w->b, "y", 8), 1);
	baton_memory_fail(w->m, BATON_MEMORY_WATCH, 2, BATON_E_DENIED, "No.");
	assert_int_equal(party_campaign(&w->a, "x", 1, 0), BATON_OUTCOME_OK);
	assert_int_equal(party_wait(&w->b), BATON_E_DENIED);
	assert_string_equal(w->b.error.text, "No.");
	assert_int_equal(party_wait(&w->b), BATON_E_DENIED);
	assert_int_equal(party_wait(&w->b), 1);
	assert_int_equal(w->b.cookies[0], BATON_HINT_ALL);
	assert_int_equal(party_hints(&w->b), 0);
	/* Hints that were taken and got lost. */
	baton_memory_drop_replies(w->m, BATON_MEMORY_WATCH, 1, true);
	assert_int_equal(party_release(&w->a, "x", 1, 1), BATON_OUTCOME_OK);
	assert_int_equal(party_wait(&w->b), BATON_E_UNAVAILABLE);
	assert_int_equal(party_wait(&w->b), 1);
	assert_int_equal(w->b.cookies[0], BATON_HINT_ALL);
}

/* ---- deadlines ---- */

static void test_a_call_that_comes_too_late_does_nothing(void **state)
{
	struct world *w = *state;

	assert_int_equal(party_campaign_within(&w->a, "x", 1, 0, within_ms(0)),
			 BATON_OUTCOME_FAILED);
	assert_int_equal(w->a.code, BATON_E_TIMEOUT);
	assert_int_equal(party_renew_within(&w->a, within_ms(0)), BATON_OUTCOME_FAILED);
	assert_int_equal(w->a.error.code, BATON_E_TIMEOUT);
	party_observe(&w->b, "x");
	assert_int_equal(w->b.record.term, 0);
}

static void test_a_black_hole(void **state)
{
	struct world *w = *state;
	struct caller renew, wait;

	baton_memory_black_hole(w->m, BATON_MEMORY_ANY, BATON_MEMORY_ALWAYS);
	struct baton_call call = within_ms(20);
	assert_int_equal(party_campaign_within(&w->a, "x", 1, 0, call), BATON_OUTCOME_UNKNOWN);
	assert_int_equal(w->a.code, BATON_E_UNAVAILABLE);
	assert_true(clock_boot_ns() >= call.deadline_ns);
	assert_int_equal(w->a.term, 0);
	/* Those that wait when it heals are carried out; and a lane can be woken out of it. */
	begin(&renew, &w->a, call_renew);
	begin(&wait, &w->b, call_wait);
	await_calls(w, BATON_MEMORY_RENEW, 1);
	await_calls(w, BATON_MEMORY_WATCH, 1);
	baton_memory_driver.watch_wake(w->b.lanes[2]);
	assert_int_equal(end(&wait), 0);
	baton_memory_heal(w->m);
	assert_int_equal(end(&renew), BATON_OUTCOME_OK);
	party_observe(&w->b, "x");
	assert_int_equal(w->b.record.term, 0); /* the campaign was not */
}

/* ---- faults ---- */

static void test_failing_calls(void **state)
{
	struct world *w = *state;

	baton_memory_fail(w->m, BATON_MEMORY_CAMPAIGN, 2, BATON_E_DENIED, "Wrong password.");
	for (int i = 0; i < 2; i++) {
		assert_int_equal(party_campaign(&w->a, "x", 1, 0), BATON_OUTCOME_FAILED);
		assert_int_equal(w->a.code, BATON_E_DENIED);
		assert_int_equal(w->a.error.code, BATON_E_DENIED);
		assert_string_equal(w->a.error.text, "Wrong password.");
		assert_int_equal(party_renew(&w->a), BATON_OUTCOME_OK); /* another verb */
	}
	assert_int_equal(party_campaign(&w->a, "x", 1, 0), BATON_OUTCOME_OK);
	assert_int_equal(w->a.term, 1); /* nothing was written before */
	baton_memory_fail(w->m, BATON_MEMORY_ANY, BATON_MEMORY_ALWAYS, BATON_E_UNAVAILABLE, NULL);
	baton_memory_doubt(w->m, BATON_MEMORY_RENEW, 1, BATON_E_SYSTEM, NULL);
	assert_int_equal(party_renew(&w->a), BATON_OUTCOME_UNKNOWN); /* its own comes first */
	assert_int_equal(w->a.error.code, BATON_E_SYSTEM);
	assert_int_equal(party_renew(&w->a), BATON_OUTCOME_FAILED);
	assert_true(strlen(w->a.error.text) > 0);
	assert_int_equal(party_release(&w->a, "x", 1, 1), BATON_OUTCOME_FAILED);
	assert_int_equal(party_observe(&w->a, "x"), BATON_OUTCOME_FAILED);
	assert_int_equal(party_publish(&w->a, "x"), BATON_OUTCOME_FAILED);
	assert_int_equal(party_close(&w->a), BATON_OUTCOME_FAILED);
	baton_memory_fail(w->m, BATON_MEMORY_ANY, 0, 0, NULL);
	party_observe(&w->b, "x");
	assert_true(w->b.record.held);
	/* A verb that there isn't is nobody's. */
	baton_memory_fail(w->m, BATON_MEMORY_VERBS, 1, BATON_E_SYSTEM, NULL);
	baton_memory_fail(w->m, -1, 1, BATON_E_SYSTEM, NULL);
	assert_int_equal(party_renew(&w->a), BATON_OUTCOME_OK);
}

/* N5: the claim stands, and its owner has to find it. */
static void test_dropped_replies(void **state)
{
	struct world *w = *state;

	baton_memory_drop_replies(w->m, BATON_MEMORY_CAMPAIGN, 1, true);
	assert_int_equal(party_campaign(&w->a, "x", 9, 0), BATON_OUTCOME_UNKNOWN);
	assert_int_equal(w->a.term, 0);
	assert_int_equal(w->a.record.term, 0);
	assert_int_equal(party_campaign(&w->a, "x", 10, 0), BATON_OUTCOME_REFUSED);
	assert_int_equal(w->a.record.nonce, 9);
	assert_int_equal(w->a.record.term, 1);
	baton_memory_drop_replies(w->m, BATON_MEMORY_RENEW, 1, false);
	struct baton_call call = within_ms(20);
	baton_memory_advance(w->m, TTL_MS - 1);
	assert_int_equal(party_renew_within(&w->a, call), BATON_OUTCOME_UNKNOWN);
	assert_int_equal(w->a.n_held, UINT32_MAX);
	assert_true(clock_boot_ns() >= call.deadline_ns);
	baton_memory_advance(w->m, TTL_MS - 1);
	party_observe(&w->a, "x");
	assert_true(w->a.record.held); /* it was renewed */
}

static void test_delays(void **state)
{
	struct world *w = *state;
	uint64_t t0;

	/* In time: later, but as ever. */
	baton_memory_delay(w->m, BATON_MEMORY_CAMPAIGN, 1, 15);
	t0 = clock_boot_ns();
	assert_int_equal(party_campaign(&w->a, "x", 1, 0), BATON_OUTCOME_OK);
	assert_true(clock_boot_ns() - t0 >= 15 * CLOCK_NS_PER_MS);
	baton_memory_delay_replies(w->m, BATON_MEMORY_RELEASE, 1, 15);
	t0 = clock_boot_ns();
	assert_int_equal(party_release(&w->a, "x", 1, 1), BATON_OUTCOME_OK);
	assert_true(clock_boot_ns() - t0 >= 15 * CLOCK_NS_PER_MS);
	/* Beyond the deadline: not carried out, or carried out, and the caller doesn't know. */
	baton_memory_delay(w->m, BATON_MEMORY_CAMPAIGN, 1, 1000000);
	assert_int_equal(party_campaign_within(&w->a, "x", 2, 0, within_ms(10)),
			 BATON_OUTCOME_UNKNOWN);
	party_observe(&w->b, "x");
	assert_false(w->b.record.held);
	baton_memory_delay_replies(w->m, BATON_MEMORY_CAMPAIGN, 1, UINT64_MAX);
	assert_int_equal(party_campaign_within(&w->a, "x", 3, 0, within_ms(10)),
			 BATON_OUTCOME_UNKNOWN);
	assert_int_equal(w->a.term, 0);
	party_observe(&w->b, "x");
	assert_true(w->b.record.held);
	assert_int_equal(w->b.record.nonce, 3);
}

/* N4: a slow call holds nobody up but its caller. */
static void test_a_slow_call_is_alone(void **state)
{
	struct world *w = *state;
	struct caller c;

	baton_memory_delay_replies(w->m, BATON_MEMORY_RENEW, 1, 1000000);
	begin(&c, &w->a, call_renew);
	await_calls(w, BATON_MEMORY_RENEW, 1);
	assert_int_equal(party_campaign(&w->b, "x", 1, 0), BATON_OUTCOME_OK);
	assert_int_equal(party_renew(&w->b), BATON_OUTCOME_OK);
	baton_memory_heal(w->m);
	assert_int_equal(end(&c), BATON_OUTCOME_OK);
}

/* ---- campaigns as a test wants them ---- */

static void test_win_and_lose(void **state)
{
	struct world *w = *state;
	struct baton_call call = soon();

	assert_int_equal(baton_memory_lose(w->m, "x", 2), 0);
	assert_int_equal(party_campaign(&w->a, "y", 1, 0), BATON_OUTCOME_OK);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(party_campaign(&w->a, "x", 1, 0), BATON_OUTCOME_REFUSED);
		assert_false(w->a.record.held);
		assert_int_equal(w->a.record.free_in_ns, 0);
	}
	assert_int_equal(party_campaign(&w->a, "x", 1, 0), BATON_OUTCOME_OK);
	/* Held by a, and paused: b wins all the same, in the next term. */
	assert_int_equal(baton_memory_driver.pause(w->a.lanes[1], &call, "x", true),
			 BATON_OUTCOME_OK);
	assert_int_equal(baton_memory_win(w->m, "x", 1), 0);
	assert_int_equal(party_campaign(&w->b, "x", 2, 0), BATON_OUTCOME_OK);
	assert_int_equal(w->b.term, 2);
	assert_int_equal(party_renew(&w->a), BATON_OUTCOME_OK);
	assert_int_equal(w->a.n_held, 1);
	assert_int_equal(party_campaign(&w->a, "x", 3, 0), BATON_OUTCOME_REFUSED);
	/* Nor twice: what one has is shown. */
	assert_int_equal(baton_memory_win(w->m, "x", 1), 0);
	assert_int_equal(party_campaign(&w->b, "x", 3, 0), BATON_OUTCOME_REFUSED);
	assert_int_equal(w->b.record.nonce, 2);
	assert_int_equal(w->b.record.term, 2);
	/* Not without a lease. */
	assert_int_equal(baton_memory_win(w->m, NULL, BATON_MEMORY_ALWAYS), 0);
	assert_int_equal(party_close(&w->a), BATON_OUTCOME_OK);
	assert_int_equal(party_campaign(&w->a, "x", 4, 0), BATON_OUTCOME_REFUSED);
	assert_int_equal(baton_memory_lose(w->m, NULL, BATON_MEMORY_ALWAYS), 0);
	assert_int_equal(party_campaign(&w->b, "z", 5, 0), BATON_OUTCOME_REFUSED);
	baton_memory_heal(w->m);
	assert_int_equal(party_campaign(&w->b, "z", 5, 0), BATON_OUTCOME_OK);
}

/* What is free is for nobody, for a while, and it is said why; whoever leads goes on. */
static void test_bar(void **state)
{
	struct world *w = *state;

	baton_memory_hold_clock(w->m, true);
	assert_int_equal(party_campaign(&w->a, "x", 1, 0), BATON_OUTCOME_OK);
	assert_int_equal(party_watch(&w->b, "y", 7), 1);
	baton_memory_bar(w->m, 300, "it has lost leases");
	assert_int_equal(party_campaign(&w->b, "y", 1, 0), BATON_OUTCOME_REFUSED);
	assert_false(w->b.record.held);
	assert_int_equal(w->b.record.free_in_ns, 300 * CLOCK_NS_PER_MS);
	assert_string_equal(w->b.record.wait, "it has lost leases");
	assert_int_equal(party_campaign(&w->b, "x", 2, 0), BATON_OUTCOME_REFUSED);
	assert_true(w->b.record.held);
	assert_string_equal(w->b.record.wait, "");
	assert_int_equal(party_renew(&w->a), BATON_OUTCOME_OK);
	baton_memory_advance(w->m, 299);
	assert_int_equal(party_campaign(&w->b, "y", 3, 0), BATON_OUTCOME_REFUSED);
	baton_memory_advance(w->m, 1);
	assert_int_equal(party_campaign(&w->b, "y", 4, 0), BATON_OUTCOME_OK);
	assert_string_equal(w->b.record.wait, "");
	/* Turned off early, it is hinted at. */
	baton_memory_bar(w->m, 300, NULL);
	assert_int_equal(party_campaign(&w->a, "z", 5, 0), BATON_OUTCOME_REFUSED);
	assert_int_not_equal(strlen(w->a.record.wait), 0);
	baton_memory_bar(w->m, 0, NULL);
	assert_hinted(w, 7);
	assert_int_equal(party_campaign(&w->a, "z", 6, 0), BATON_OUTCOME_OK);
}

/* ---- what others do ---- */

static void test_expire(void **state)
{
	struct world *w = *state;

	assert_int_equal(party_campaign(&w->a, "x", 1, 0), BATON_OUTCOME_OK);
	assert_int_equal(party_watch(&w->b, "x", 7), 1);
	assert_int_equal(baton_memory_expire(w->m, "nobody"), 0);
	assert_int_equal(baton_memory_expire(w->m, "a"), 1);
	assert_hinted(w, 7);
	assert_int_equal(party_renew(&w->a), BATON_OUTCOME_REFUSED);
	assert_int_equal(party_campaign(&w->b, "x", 1, 0), BATON_OUTCOME_OK);
	assert_int_equal(w->b.term, 2);
	assert_int_equal(baton_memory_expire(w->m, NULL), 1);
	assert_int_equal(party_renew(&w->b), BATON_OUTCOME_REFUSED);
}

/* C16, C17: the lease lives, the claim doesn't. */
static void test_destroy(void **state)
{
	struct world *w = *state;

	assert_false(baton_memory_destroy(w->m, "x"));
	assert_int_equal(party_campaign(&w->a, "x", 1, 0), BATON_OUTCOME_OK);
	assert_int_equal(party_watch(&w->b, "x", 7), 1);
	assert_true(baton_memory_destroy(w->m, "x"));
	assert_hinted(w, 7);
	assert_int_equal(party_renew(&w->a), BATON_OUTCOME_OK);
	assert_int_equal(w->a.n_held, 0);
	assert_int_equal(party_release(&w->a, "x", 1, 1), BATON_OUTCOME_REFUSED);
	assert_int_equal(party_campaign(&w->b, "x", 1, 0), BATON_OUTCOME_OK);
	assert_int_equal(w->b.term, 2);
}

static void test_overwrite(void **state)
{
	struct world *w = *state;

	assert_int_equal(party_campaign(&w->a, "x", 1, 0), BATON_OUTCOME_OK);
	assert_int_equal(party_watch(&w->b, "x", 7), 1);
	assert_int_equal(baton_memory_overwrite(w->m, "x", "ghost", 50, 100), 0);
	assert_hinted(w, 7);
	party_observe(&w->a, "x");
	assert_true(w->a.record.held);
	assert_string_equal(w->a.record.leader, "ghost");
	assert_int_equal(w->a.record.term, 50);
	assert_int_equal(w->a.record.free_in_ns, 100 * CLOCK_NS_PER_MS);
	assert_int_equal(party_renew(&w->a), BATON_OUTCOME_OK);
	assert_int_equal(w->a.n_held, 0);
	baton_memory_advance(w->m, 100);
	assert_hinted(w, 7);
	assert_int_equal(baton_memory_overwrite(w->m, "x", "ghost", 3, 0), 0);
	party_observe(&w->a, "x");
	assert_int_equal(w->a.record.term, 3);
	assert_int_equal(w->a.record.free_in_ns, BATON_STORE_NEVER);
	assert_int_equal(baton_memory_overwrite(w->m, "x", NULL, 4, 0), 0);
	assert_int_equal(party_campaign(&w->a, "x", 2, 0), BATON_OUTCOME_OK);
	assert_int_equal(w->a.term, 5);
	assert_int_equal(baton_memory_overwrite(w->m, "new", NULL, 0, 0), 0);
}

/* N34: terms still grow, by the floor of who has seen them. */
static void test_forget(void **state)
{
	struct world *w = *state;

	assert_int_equal(party_campaign(&w->a, "x", 1, 20), BATON_OUTCOME_OK);
	assert_int_equal(party_watch(&w->b, "x", 7), 1);
	assert_int_equal(party_watch(&w->b, "y", 8), 1);
	baton_memory_forget(w->m);
	assert_int_equal(party_wait(&w->b), 2);
	assert_int_equal(party_renew(&w->a), BATON_OUTCOME_REFUSED);
	party_observe(&w->b, "x");
	assert_int_equal(w->b.record.term, 0);
	party_new_lease(&w->b);
	assert_int_equal(party_open(&w->b), BATON_OUTCOME_OK);
	assert_int_equal(party_campaign(&w->b, "x", 2, 21), BATON_OUTCOME_OK);
	assert_int_equal(w->b.term, 22);
	assert_hinted(w, 7); /* still watched */
}

/* ---- the clock and the counters ---- */

static void test_the_clock(void **state)
{
	struct world *w = *state;
	uint64_t t0 = baton_memory_clock_ms(w->m);

	baton_memory_advance(w->m, 10);
	assert_int_equal(baton_memory_clock_ms(w->m), t0 + 10);
	baton_memory_set_clock(w->m, t0 + TTL_MS - 1);
	assert_int_equal(party_renew(&w->b), BATON_OUTCOME_OK);
	baton_memory_set_clock(w->m, t0 + TTL_MS);
	assert_int_equal(party_renew(&w->a), BATON_OUTCOME_REFUSED);
	/* Back: what is left gets longer, what is gone stays gone. */
	baton_memory_set_clock(w->m, t0);
	assert_int_equal(party_renew(&w->a), BATON_OUTCOME_REFUSED);
	assert_int_equal(party_campaign(&w->b, "x", 1, 0), BATON_OUTCOME_OK);
	party_observe(&w->b, "x");
	assert_int_equal(w->b.record.free_in_ns, (2 * TTL_MS - 1) * CLOCK_NS_PER_MS);
	/* Let go, it runs on from where it stands; a jump moves it. */
	baton_memory_hold_clock(w->m, false);
	assert_in_range(baton_memory_clock_ms(w->m), t0, t0 + 20000);
	baton_memory_advance(w->m, 3600000);
	assert_in_range(baton_memory_clock_ms(w->m), t0 + 3600000, t0 + 3620000);
	assert_int_equal(party_renew(&w->b), BATON_OUTCOME_REFUSED);
}

static void test_the_counters(void **state)
{
	struct world *w = *state;

	assert_int_equal(baton_memory_calls(w->m, BATON_MEMORY_OPEN), 2);
	assert_int_equal(baton_memory_calls(w->m, BATON_MEMORY_ANY), 2);
	party_observe(&w->a, "x");
	party_observe(&w->a, "x");
	party_renew(&w->a);
	assert_int_equal(baton_memory_calls(w->m, BATON_MEMORY_OBSERVE), 2);
	assert_int_equal(baton_memory_calls(w->m, BATON_MEMORY_RENEW), 1);
	assert_int_equal(baton_memory_calls(w->m, BATON_MEMORY_ANY), 5);
}

/* ---- all at once ---- */

#define ROUNDS 300

struct mix {
	struct party party;
	pthread_t thread;
	bool failed;
};

static void *play(void *arg)
{
	struct mix *p = arg;

	for (uint64_t i = 1; i <= ROUNDS; i++) {
		int outcome = party_campaign(&p->party, "mix", i, 0);
		uint64_t term = p->party.term;

		if (outcome == BATON_OUTCOME_OK && i % 3 != 0)
			(void)party_release(&p->party, "mix", i, term);
		(void)party_publish(&p->party, "mix");
		if (party_renew(&p->party) == BATON_OUTCOME_REFUSED) {
			party_new_lease(&p->party);
			(void)party_open(&p->party);
		}
		p->failed |= outcome == BATON_OUTCOME_OK && term == 0;
		p->failed |= party_hints(&p->party) < 0;
	}
	return NULL;
}

/* For the sanitizers: verbs, hints and switches from many threads. */
static void test_everything_from_many_threads(void **state)
{
	struct world *w = *state;
	struct mix mixes[4];
	char id[16];

	for (int i = 0; i < 4; i++) {
		(void)snprintf(id, sizeof(id), "mix%d", i);
		mixes[i] = (struct mix){0};
		party_init(&mixes[i].party, WORLD_URL, id);
		assert_int_equal(baton_memory_driver.watch_add(mixes[i].party.lanes[2], "mix", 1),
				 0);
		assert_int_equal(pthread_create(&mixes[i].thread, NULL, play, &mixes[i]), 0);
	}
	for (int i = 0; i < ROUNDS; i++) {
		(void)baton_memory_expire(w->m, "mix1");
		(void)baton_memory_destroy(w->m, "mix");
		baton_memory_drop_replies(w->m, BATON_MEMORY_RELEASE, 1, true);
		baton_memory_advance(w->m, 50);
		(void)baton_memory_win(w->m, "mix", 1);
	}
	baton_memory_heal(w->m);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(pthread_join(mixes[i].thread, NULL), 0);
		assert_false(mixes[i].failed);
		party_done(&mixes[i].party);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_WORLD(test_adding_is_followed_by_one_hint),
		IN_WORLD(test_every_change_is_hinted_at),
		IN_WORLD(test_more_hints_than_fit),
		IN_WORLD(test_a_waiting_lane_is_told),
		IN_WORLD(test_the_end_of_a_lease_is_hinted_at),
		IN_WORLD(test_nobody_is_woken_late),
		IN_WORLD(test_a_broken_watch),
		IN_WORLD(test_a_call_that_comes_too_late_does_nothing),
		IN_WORLD(test_a_black_hole),
		IN_WORLD(test_failing_calls),
		IN_WORLD(test_dropped_replies),
		IN_WORLD(test_delays),
		IN_WORLD(test_a_slow_call_is_alone),
		IN_WORLD(test_win_and_lose),
		IN_WORLD(test_bar),
		IN_WORLD(test_expire),
		IN_WORLD(test_destroy),
		IN_WORLD(test_overwrite),
		IN_WORLD(test_forget),
		IN_WORLD(test_the_clock),
		IN_WORLD(test_the_counters),
		IN_WORLD(test_everything_from_many_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
