/*
 * test_core.c: what the search and the simulator rely on. The state is flat and small, it can be
 * copied, compared and hashed, and the same events lead to the same state, bit by bit. A long
 * walk through random events, with all of a caller's duties kept, is taken twice to show it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/election.h"
#include "core/lease.h"

#define N_ELECTIONS 3u
#define N_STEPS 20000u

struct seat {
	struct election election;
	uint64_t call;
	uint64_t led; /* S8: the term that was told of last ... */
	bool leads;   /* ... and that it was not yet told to be lost */
	uint8_t call_kind;
};

struct caller {
	struct lease lease;
	struct seat seats[N_ELECTIONS];
	uint64_t now_ns;
	uint64_t dice;
	uint64_t lease_call;
	uint64_t claims_call;
	uint64_t n_led;
	uint8_t lease_kind;
};

static uint64_t roll(struct caller *c)
{
	c->dice ^= c->dice << 13;
	c->dice ^= c->dice >> 7;
	c->dice ^= c->dice << 17;
	return c->dice;
}

static void tell(struct caller *c, size_t i, struct event *ev);

static void tell_all(struct caller *c, uint8_t kind)
{
	for (size_t i = 0; i < N_ELECTIONS; i++)
		tell(c, i, &(struct event){.now_ns = c->now_ns, .random = roll(c), .kind = kind});
}

static void heed_lease(struct caller *c, const struct actions *acts)
{
	for (size_t k = 0; k < acts->n; k++) {
		const struct action *a = &acts->list[k];

		if (a->kind == ACT_LEASE_UP || a->kind == ACT_LEASE_DOWN)
			tell_all(c, a->kind == ACT_LEASE_UP ? EV_LEASE_UP : EV_LEASE_DOWN);
		if (a->kind == ACT_CLAIMS)
			c->claims_call = a->call;
		if (a->kind == ACT_OPEN || a->kind == ACT_RENEW || a->kind == ACT_CLOSE) {
			c->lease_call = a->call;
			c->lease_kind = a->kind;
		}
	}
}

static void heed(struct caller *c, size_t i, const struct actions *acts)
{
	struct seat *seat = &c->seats[i];

	for (size_t k = 0; k < acts->n; k++) {
		const struct action *a = &acts->list[k];

		if (a->kind != ACT_NOTE) {
			seat->call = a->call;
			seat->call_kind = a->kind;
		} else if (a->note == NOTE_BECAME) {
			assert_false(seat->leads);
			assert_true(a->term > seat->led);
			seat->leads = true;
			seat->led = a->term;
			c->n_led++;
		} else if (a->note == NOTE_LOST) {
			assert_true(seat->leads);
			assert_int_equal(a->term, seat->led);
			seat->leads = false;
		}
	}
}

static void tell(struct caller *c, size_t i, struct event *ev)
{
	struct actions acts = {.n = 0};

	election_step(&c->seats[i].election, &c->lease, ev, &acts);
	assert_true(acts.n <= ACTIONS_MAX);
	heed(c, i, &acts);
}

static void tell_lease(struct caller *c, struct event *ev)
{
	struct actions acts = {.n = 0};

	lease_step(&c->lease, ev, &acts);
	assert_true(acts.n <= ACTIONS_MAX);
	heed_lease(c, &acts);
}

static struct view any_view(struct caller *c, size_t i)
{
	const struct election *e = &c->seats[i].election;
	uint64_t r = roll(c);

	return (struct view){
		.term = e->floor + (r & 3) - (e->floor > 0 && (r & 4)),
		.nonce = (r & 8) ? e->nonce : e->doubt,
		.free_in_ns = (r & 16) ? NEVER : (r >> 32) & 0x7fffffff,
		.order_id = (r >> 5) & 3,
		.order_term = e->term,
		.leader = (uint32_t)((r >> 7) & 3),
		.order_target = (uint32_t)((r >> 9) & 3),
		.score = (uint16_t)((r >> 11) & 1023),
		.held = r & (1u << 21),
		.mine = r & (1u << 22),
		.watched = r & (1u << 23),
		.paused = (r & (7u << 24)) == 0,
		.target_ok = r & (1u << 27),
		.order = (uint8_t)((r >> 28) % 3),
	};
}

static uint8_t any_outcome(struct caller *c)
{
	uint64_t r = roll(c) % 8;

	return (uint8_t)(r < 4 ? r + 1 : OUTCOME_OK); /* mostly well */
}

static void answer_lease(struct caller *c, struct event *ev)
{
	ev->call = c->lease_call;
	ev->outcome = any_outcome(c);
	ev->n_held = c->lease.n_sure + (roll(c) % 8 == 0);
	ev->kind = c->lease_kind == ACT_OPEN    ? EV_OPENED
		   : c->lease_kind == ACT_RENEW ? EV_RENEWED
						: EV_CLOSED;
	c->lease_call = 0;
	tell_lease(c, ev);
}

static void answer_claims(struct caller *c, struct event *ev)
{
	ev->call = c->claims_call;
	ev->kind = EV_CLAIMS;
	ev->outcome = any_outcome(c);
	c->claims_call = 0;
	tell_lease(c, ev);
	if (ev->outcome != OUTCOME_OK)
		return;
	ev->kind = EV_CLAIM;
	for (size_t i = 0; i < N_ELECTIONS; i++) {
		ev->view = any_view(c, i);
		tell(c, i, ev);
	}
}

static void answer(struct caller *c, size_t i, struct event *ev)
{
	static const uint8_t kinds[] = {
		[ACT_CAMPAIGN] = EV_CAMPAIGNED,
		[ACT_OBSERVE] = EV_OBSERVED,
		[ACT_RELEASE] = EV_RELEASED,
		[ACT_ORDER] = EV_ORDERED,
	};
	struct seat *seat = &c->seats[i];

	ev->kind = kinds[seat->call_kind];
	ev->call = seat->call;
	ev->outcome = any_outcome(c);
	ev->view = any_view(c, i);
	seat->call = 0;
	tell(c, i, ev);
}

/* Something that may happen at any time. */
static void say_anything(struct caller *c, size_t i, struct event *ev)
{
	static const uint8_t kinds[] = {EV_HINT,    EV_START,   EV_START,    EV_STOP,
					EV_ACQUIRE, EV_RESIGN,  EV_TRANSFER, EV_HEALTH,
					EV_ALIVE,   EV_DRAINED, EV_DRAINED};

	ev->kind = kinds[roll(c) % sizeof(kinds)];
	ev->target = (uint32_t)(roll(c) % 4);
	ev->target_ok = roll(c) % 2;
	ev->score = (uint16_t)(roll(c) % 3 == 0 ? 500 : 900);
	ev->quiet_ns = roll(c) % (4 * NS_PER_S);
	tell(c, i, ev);
}

static void check_leaders(const struct caller *c)
{
	for (size_t i = 0; i < N_ELECTIONS; i++) {
		const struct seat *seat = &c->seats[i];

		/* S8: who leads was told so. */
		assert_true(seat->leads || !election_leads(&seat->election, &c->lease, c->now_ns));
	}
}

static void walk_on(struct caller *c)
{
	struct event ev = {.now_ns = c->now_ns, .random = roll(c), .kind = EV_TIMER};
	size_t i = roll(c) % N_ELECTIONS;

	switch (roll(c) % 8) {
	case 0:
		if (c->lease_call != 0)
			answer_lease(c, &ev);
		break;
	case 1:
		if (c->claims_call != 0)
			answer_claims(c, &ev);
		break;
	case 2:
	case 3:
		if (c->seats[i].call != 0)
			answer(c, i, &ev);
		break;
	case 4: say_anything(c, i, &ev); break;
	case 5: tell_lease(c, &ev); break;
	case 6: tell(c, i, &ev); break;
	default: c->now_ns += roll(c) % (NS_PER_S / 4); break;
	}
	check_leaders(c);
}

static void set_out(struct caller *c, uint64_t seed)
{
	struct timing t = {.drift_ppm = NEVER};

	memset(c, 0, sizeof(*c));
	c->dice = seed;
	c->now_ns = 1000 * NS_PER_S;
	timing_fill(&t);
	lease_init(&c->lease, &t, false);
	for (size_t i = 0; i < N_ELECTIONS; i++) {
		struct options o;

		options_init(&o);
		o.manual = i == 1;
		o.work_timeout_ns = i == 2 ? 3 * NS_PER_S : 0;
		o.preempt_ns = i == 0 ? 20 * NS_PER_S : 0;
		o.release_on_stop = i != 0;
		election_init(&c->seats[i].election, 1, &o);
	}
}

static void the_same_walk_twice_ends_in_the_same_state(void **state)
{
	uint64_t n_led = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct caller a;
		struct caller b;

		set_out(&a, seed * 0x9e3779b97f4a7c15);
		set_out(&b, seed * 0x9e3779b97f4a7c15);
		for (size_t n = 0; n < N_STEPS; n++)
			walk_on(&a);
		for (size_t n = 0; n < N_STEPS; n++)
			walk_on(&b);
		assert_memory_equal(&a, &b, sizeof(a));
		n_led += a.n_led;
	}
	/* A walk in which nobody ever leads would prove little. */
	if (n_led < 1000)
		fail_msg("only %llu leaderships", (unsigned long long)n_led);
}

static void a_copy_in_the_middle_goes_the_same_way(void **state)
{
	struct caller a;

	(void)state;
	set_out(&a, 42);
	for (size_t n = 0; n < N_STEPS; n++) {
		walk_on(&a);
		if (n % 100 == 0) {
			struct caller b = a;

			for (size_t k = 0; k < 50; k++)
				walk_on(&a);
			for (size_t k = 0; k < 50; k++)
				walk_on(&b);
			assert_memory_equal(&a, &b, sizeof(a));
		}
	}
}

static void structs_are_small_and_flat(void **state)
{
	(void)state;
	assert_true(sizeof(struct election) <= 512);
	assert_true(sizeof(struct lease) <= 512);
	assert_true(sizeof(struct actions) <= 1024);
	/* No hidden padding: each struct ends where its last named field does. */
	assert_int_equal(sizeof(struct tally), offsetof(struct tally, pad) + 5);
	assert_int_equal(sizeof(struct options) % sizeof(uint64_t), 0);
	assert_int_equal(sizeof(struct event) % sizeof(uint64_t), 0);
	assert_int_equal(sizeof(struct view) % sizeof(uint64_t), 0);
	assert_int_equal(sizeof(struct action) % sizeof(uint64_t), 0);
	assert_int_equal(sizeof(struct lease) % sizeof(uint64_t), 0);
	assert_int_equal(sizeof(struct election) % sizeof(uint64_t), 0);
}

/* Every byte of a state is written by its init: dirty memory makes no difference. */
static void init_leaves_no_byte_to_chance(void **state)
{
	struct timing t = {.drift_ppm = NEVER};
	struct options o;
	struct lease l[2];
	struct election e[2];

	(void)state;
	timing_fill(&t);
	memset(l, 0x55, sizeof(l));
	memset(e, 0x55, sizeof(e));
	memset(&l[1], 0xaa, sizeof(l[1]));
	memset(&e[1], 0xaa, sizeof(e[1]));
	options_init(&o);
	for (size_t i = 0; i < 2; i++) {
		lease_init(&l[i], &t, true);
		election_init(&e[i], 3, &o);
	}
	assert_memory_equal(&l[0], &l[1], sizeof(l[0]));
	assert_memory_equal(&e[0], &e[1], sizeof(e[0]));
}

/* Failures are counted, but not for ever: the 300th backoff is like the tenth. */
static void failures_without_end(void **state)
{
	struct timing t = {.drift_ppm = NEVER};
	struct lease l;
	struct actions acts = {.n = 0};
	struct event ev = {.now_ns = 1000 * NS_PER_S, .random = 0x8000, .kind = EV_TIMER};

	(void)state;
	timing_fill(&t);
	lease_init(&l, &t, false);
	lease_enlist(&l);
	for (int i = 0; i < 300; i++) {
		ev.kind = EV_TIMER;
		acts.n = 0;
		lease_step(&l, &ev, &acts);
		assert_int_equal(acts.n, 1);
		ev.kind = EV_OPENED;
		ev.call = acts.list[0].call;
		ev.outcome = OUTCOME_FAILED;
		acts.n = 0;
		lease_step(&l, &ev, &acts);
		assert_true(lease_wake_ns(&l) > ev.now_ns);
		ev.now_ns = lease_wake_ns(&l);
	}
	assert_int_equal(l.attempt, UINT8_MAX);
	assert_int_equal(timing_backoff_ns(&t, l.attempt, 0x8000), t.retry_max_ns / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(structs_are_small_and_flat),
		cmocka_unit_test(init_leaves_no_byte_to_chance),
		cmocka_unit_test(the_same_walk_twice_ends_in_the_same_state),
		cmocka_unit_test(a_copy_in_the_middle_goes_the_same_way),
		cmocka_unit_test(failures_without_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
