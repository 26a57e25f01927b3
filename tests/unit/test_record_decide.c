/*
 * test_record_decide.c: corners of what decides for record stores that no story comes to: the ends
 * of numbers and lists, what is told of nothing, and which versions only a batch can meet.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "store/record/decide/decide.h"

static struct record_election election;
static struct record_lease lease;
static struct record_sight sight;
static struct record_hold hold;
static const struct baton_lease ours = {.id = "a-1", .ttl_ns = 10, .owner = "A", .address = ""};
static const struct record_version one = {.n = 1, .bytes = {1}};
static const struct record_version two = {.n = 1, .bytes = {2}};

static struct record_turn a_turn(void)
{
	memset(&election, 0, sizeof(election));
	memset(&lease, 0, sizeof(lease));
	memset(&sight, 0, sizeof(sight));
	memset(&hold, 0, sizeof(hold));
	return (struct record_turn){.now_ns = 100,
				    .random = 7,
				    .election = &election,
				    .lease = &lease,
				    .sight = &sight,
				    .hold = &hold};
}

static void answer(struct record_turn *t, int outcome, struct record_version version)
{
	t->outcome = outcome;
	t->version = version;
	t->is_told = false;
}

/* ---- the end of time ---- */

static void test_waits_without_end(void **state)
{
	struct record_sight s = {.is_known = false};
	struct record_lease l = {.ttl_ns = RECORD_NEVER};

	(void)state;
	assert_true(record_sight_end_ns(&s) == RECORD_NEVER);
	assert_false(record_sight_is_over(&s, 1000));
	record_sight_note(&s, &one, &l, 0, false, 5);
	assert_true(record_sight_end_ns(&s) == RECORD_NEVER);
	assert_true(record_idle_ns(RECORD_NEVER) == RECORD_NEVER);
}

/* R4: what is missing by an old read, or named by nobody, is not waited for. */
static void test_waits_for_the_missing(void **state)
{
	const struct record_version none = {.n = 0};
	struct record_sight s = {.is_known = false};
	struct record_lease l = {.ttl_ns = 10};

	(void)state;
	assert_false(record_sight_is_unsure(&s));
	record_sight_note(&s, &none, NULL, 10, false, 5);
	assert_true(record_sight_is_unsure(&s));
	assert_false(record_sight_is_over(&s, 1000));
	record_sight_note(&s, &none, NULL, 0, true, 6);
	assert_false(record_sight_is_over(&s, 1000));
	record_sight_note(&s, &none, NULL, 10, true, 7);
	record_sight_note(&s, &none, NULL, 10, false, 9); /* the same */
	assert_int_equal(record_sight_end_ns(&s), 17);
	record_sight_note(&s, &one, &l, 0, false, 20);
	record_sight_note(&s, &none, NULL, 10, false, 25);
	assert_false(record_sight_is_over(&s, 1000));
	record_sight_note(&s, &one, &l, 0, false, 30);
	assert_int_equal(record_sight_end_ns(&s), 40);
}

/* ---- campaigns ---- */

/* R4: the record was deleted while it was buried, and the store tells. */
static void test_buried_and_gone(void **state)
{
	struct record_turn t = a_turn();
	struct record_campaign c = {.lease = &ours,
				    .profile = &(struct baton_profile){.metadata = ""}};

	(void)state;
	assert_int_equal(record_campaign_step(&c, &t), RECORD_READ);
	strcpy(election.lease, "b-1");
	election.ttl_ns = 10;
	answer(&t, BATON_OUTCOME_OK, one);
	assert_int_equal(record_campaign_step(&c, &t), RECORD_LOOK);
	lease.ttl_ns = 10;
	record_sight_note(&sight, &one, &lease, 0, false, 50);
	answer(&t, BATON_OUTCOME_OK, one);
	assert_int_equal(record_campaign_step(&c, &t), RECORD_BURY);
	answer(&t, BATON_OUTCOME_REFUSED, (struct record_version){.n = 0});
	t.is_told = true;
	assert_int_equal(record_campaign_step(&c, &t), RECORD_LOOK); /* it may not be there yet */
	assert_true(record_sight_is_unsure(&sight));
	record_sight_note(&sight, &(struct record_version){.n = 0}, NULL, 10, true, 100);
	answer(&t, BATON_OUTCOME_OK, (struct record_version){.n = 0});
	assert_int_equal(record_campaign_step(&c, &t), RECORD_DONE);
	assert_int_equal(c.task.why, RECORD_WHY_HELD);
	assert_int_equal(sight.since_ns, 100); /* a new wait */
}

/* Our lease, and another nonce: a claim of ours that is not this one. */
static void test_another_claim_of_ours(void **state)
{
	struct record_claim claim = {
		.nonce = 5, .term = 1, .version = one, .standing = RECORD_IN_DOUBT};
	struct record_turn t = a_turn();
	struct record_campaign c;

	(void)state;
	record_settle_begin(&c, &ours, &claim, false);
	assert_int_equal(record_campaign_step(&c, &t), RECORD_READ_FRESH);
	strcpy(election.lease, "a-1");
	election.nonce = 6;
	answer(&t, BATON_OUTCOME_OK, two);
	assert_int_equal(record_campaign_step(&c, &t), RECORD_DONE);
	assert_int_equal(c.task.outcome, BATON_OUTCOME_REFUSED);
}

/* Giving back a claim whose lock was lost: until the store answers, it stays so. */
static void test_forfeit_stays(void **state)
{
	struct record_claim claim = {
		.nonce = 5, .term = 1, .version = one, .standing = RECORD_FORFEIT};
	struct record_turn t = a_turn();
	struct record_campaign c;

	(void)state;
	record_settle_begin(&c, &ours, &claim, true);
	assert_int_equal(record_campaign_step(&c, &t), RECORD_READ_FRESH);
	strcpy(election.lease, "a-1");
	election.nonce = 5;
	answer(&t, BATON_OUTCOME_OK, one);
	assert_int_equal(record_campaign_step(&c, &t), RECORD_WRITE);
	assert_string_equal(election.lease, "");
	record_campaign_give_up(&c);
	assert_int_equal(c.task.outcome, BATON_OUTCOME_UNKNOWN);
	record_campaign_book(&c, &claim);
	assert_int_equal(claim.standing, RECORD_FORFEIT);
}

static void test_lock_without_answer(void **state)
{
	struct record_turn t = a_turn();
	struct record_campaign c = {
		.lease = &ours, .profile = &(struct baton_profile){.metadata = ""}, .locks = true};

	(void)state;
	assert_int_equal(record_campaign_step(&c, &t), RECORD_READ);
	answer(&t, BATON_OUTCOME_OK, one);
	assert_int_equal(record_campaign_step(&c, &t), RECORD_LOCK);
	answer(&t, BATON_OUTCOME_UNKNOWN, one);
	assert_int_equal(record_campaign_step(&c, &t), RECORD_DONE);
	assert_int_equal(c.task.outcome, BATON_OUTCOME_FAILED);
	assert_true(c.has_lock); /* to be dropped */
}

/* ---- edits ---- */

/* S6: all three match, or nothing happens. */
static void test_release_of_another_claim(void **state)
{
	struct baton_release asked = {.lease_id = "a-1", .nonce = 5, .term = 3, .reason = ""};

	(void)state;
	for (int what = 0; what < 3; what++) {
		struct record_turn t = a_turn();
		struct record_edit d = {.release = &asked};

		assert_int_equal(record_edit_step(&d, &t), RECORD_READ_FRESH);
		strcpy(election.lease, what == 0 ? "b-1" : "a-1");
		election.nonce = what == 1 ? 6 : 5;
		election.term = what == 2 ? 4 : 3;
		answer(&t, BATON_OUTCOME_OK, one);
		assert_int_equal(record_edit_step(&d, &t), RECORD_DONE);
		assert_int_equal(d.task.outcome, BATON_OUTCOME_REFUSED);
	}
}

/* S6, for a leader's profile: and an answer that was in the way tells whether it stands there. */
static void test_show_of_another_claim(void **state)
{
	struct baton_profile profile = {.metadata = "m", .priority = 2, .score_permille = 900};
	struct record_show asked = {.lease_id = "a-1", .nonce = 5, .term = 3, .profile = &profile};

	(void)state;
	for (int what = 0; what < 3; what++) {
		struct record_turn t = a_turn();
		struct record_edit d = {.show = &asked};

		assert_int_equal(record_edit_step(&d, &t), RECORD_READ_FRESH);
		strcpy(election.lease, what == 0 ? "b-1" : "a-1");
		election.nonce = what == 1 ? 6 : 5;
		election.term = what == 2 ? 4 : 3;
		answer(&t, BATON_OUTCOME_OK, one);
		assert_int_equal(record_edit_step(&d, &t), RECORD_DONE);
		assert_int_equal(d.task.outcome, BATON_OUTCOME_REFUSED);
		assert_int_equal(election.score_permille, 0);
	}
}

/* Whatever differs is written, from the claim's version, and nothing else changes; what is the same
 * is not. */
static void test_show(void **state)
{
	static const struct baton_profile old = {
		.metadata = "m", .priority = 2, .score_permille = 900};
	struct baton_profile profiles[] = {old, old, old, old};

	(void)state;
	profiles[1].metadata = "n";
	profiles[2].priority = 3;
	profiles[3].score_permille = 800;
	for (int what = 0; what < 4; what++) {
		struct record_show asked = {
			.lease_id = "a-1", .nonce = 5, .term = 3, .profile = &profiles[what]};
		struct record_turn t = a_turn();
		struct record_edit d = {.show = &asked, .known = one};

		strcpy(election.lease, "a-1");
		strcpy(election.metadata, old.metadata);
		election.nonce = 5;
		election.term = 3;
		election.priority = old.priority;
		election.score_permille = old.score_permille;
		election.order_id = 7;
		struct record_election was = election;
		int op = record_edit_step(&d, &t);

		assert_int_equal(op, what == 0 ? RECORD_DONE : RECORD_WRITE);
		if (what == 0) {
			assert_int_equal(d.task.outcome, BATON_OUTCOME_OK);
			continue;
		}
		assert_true(record_same_version(&d.task.version, &one));
		assert_string_equal(election.metadata, profiles[what].metadata);
		assert_int_equal(election.priority, profiles[what].priority);
		assert_int_equal(election.score_permille, profiles[what].score_permille);
		assert_int_equal(election.w, t.random);
		strcpy(election.metadata, was.metadata);
		election.w = was.w;
		election.priority = was.priority;
		election.score_permille = was.score_permille;
		assert_memory_equal(&election, &was, sizeof(was));
		answer(&t, BATON_OUTCOME_OK, two);
		assert_int_equal(record_edit_step(&d, &t), RECORD_DONE);
		assert_int_equal(d.task.outcome, BATON_OUTCOME_OK);
		assert_true(record_same_version(&d.task.version, &two));
	}
}

/* The leader's lease is not known here: its word is the record's. */
static void test_order_without_a_sight(void **state)
{
	struct baton_order order = {.id = 1, .term = 3};
	struct record_turn t = a_turn();
	struct record_edit d = {.order = &order};

	(void)state;
	t.sight = NULL;
	assert_int_equal(record_edit_step(&d, &t), RECORD_READ_FRESH);
	strcpy(election.lease, "b-1");
	election.term = 3;
	answer(&t, BATON_OUTCOME_OK, one);
	assert_int_equal(record_edit_step(&d, &t), RECORD_WRITE);
	record_edit_give_up(&d);
	assert_int_equal(d.task.outcome, BATON_OUTCOME_FAILED);
}

/* ---- leases ---- */

/* A page of candidates is only ours, and is written from whatever is there. */
static void test_publish(void **state)
{
	struct record_own own = {.beat = 0};
	struct record_turn t = a_turn();
	struct record_keep k = {.intent = RECORD_PUBLISH, .own = &own};

	(void)state;
	assert_int_equal(record_keep_step(&k, &t), RECORD_WRITE);
	answer(&t, BATON_OUTCOME_REFUSED, one);
	assert_int_equal(record_keep_step(&k, &t), RECORD_READ_FRESH);
	answer(&t, BATON_OUTCOME_OK, one);
	assert_int_equal(record_keep_step(&k, &t), RECORD_WRITE);
	answer(&t, BATON_OUTCOME_OK, two);
	assert_int_equal(record_keep_step(&k, &t), RECORD_DONE);
	assert_true(record_same_version(&own.version, &two));
}

/* Whoever closes what is gone, or dead, is done. */
static void test_close_of_the_dead(void **state)
{
	(void)state;
	for (int is_there = 0; is_there < 2; is_there++) {
		struct record_own own = {.version = one};
		struct record_turn t = a_turn();
		struct record_keep k = {.intent = RECORD_CLOSE,
					.death = RECORD_CLOSED,
					.lease = &ours,
					.own = &own};

		assert_int_equal(record_keep_step(&k, &t), RECORD_WRITE);
		answer(&t, BATON_OUTCOME_REFUSED, two);
		assert_int_equal(record_keep_step(&k, &t), RECORD_READ_FRESH);
		lease.death = RECORD_EXPIRED;
		answer(&t, BATON_OUTCOME_OK, is_there ? two : (struct record_version){.n = 0});
		assert_int_equal(record_keep_step(&k, &t), RECORD_DONE);
		assert_int_equal(k.task.outcome, BATON_OUTCOME_OK);
		record_keep_give_up(&k);
		assert_int_equal(k.task.outcome, BATON_OUTCOME_UNKNOWN);
	}
}

/* ---- what is remembered, shown and swept ---- */

static void test_history_is_bounded(void **state)
{
	struct baton_release asked = {.lease_id = "a-1",
				      .reason = "a reason that is far too long to "
						"be kept whole"};

	(void)state;
	(void)a_turn();
	for (unsigned i = 0; i < RECORD_PAST_MAX + 3; i++) {
		struct record_campaign c = {.lease = &ours,
					    .profile = &(struct baton_profile){.metadata = ""},
					    .nonce = i + 1};
		struct record_election kept = election;
		struct record_turn t = a_turn();

		election = kept;
		assert_int_equal(record_campaign_step(&c, &t), RECORD_READ);
		answer(&t, BATON_OUTCOME_OK, one);
		assert_int_equal(record_campaign_step(&c, &t), RECORD_WRITE);
		asked.nonce = i + 1;
		asked.term = election.term;
		struct record_edit d = {.release = &asked, .known = one};

		assert_int_equal(record_edit_step(&d, &t), RECORD_WRITE);
	}
	assert_int_equal(election.n_past, RECORD_PAST_MAX);
	assert_int_equal(election.past[0].term, RECORD_PAST_MAX + 3);
	assert_int_equal(strlen(election.past[0].ended), RECORD_WORD_MAX);
}

/* An order's note stays with the leadership that the order has ended, and with no other. */
static void test_notes_are_kept(void **state)
{
	static const char *const reasons[] = {"stopped", "ordered", "transferred"};

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct baton_release asked = {.lease_id = "a-1", .nonce = 5, .reason = reasons[i]};
		struct record_campaign c = {.lease = &ours,
					    .profile = &(struct baton_profile){.metadata = ""},
					    .nonce = 5};
		struct record_turn t = a_turn();

		assert_int_equal(record_campaign_step(&c, &t), RECORD_READ);
		answer(&t, BATON_OUTCOME_OK, one);
		assert_int_equal(record_campaign_step(&c, &t), RECORD_WRITE);
		asked.term = election.term;
		(void)strcpy(election.order_note, "why");
		struct record_edit d = {.release = &asked, .known = one};

		assert_int_equal(record_edit_step(&d, &t), RECORD_WRITE);
		assert_string_equal(election.past[0].ended, reasons[i]);
		assert_string_equal(election.past[0].note, i == 0 ? "" : "why");
		assert_string_equal(election.order_note, "");
	}
}

static void test_shown(void **state)
{
	struct record_sight s = {.is_known = true, .ttl_ns = 10, .since_ns = 50};

	(void)state;
	assert_false(record_is_shown(RECORD_NEVER, &s, 55)); /* there is no such lease */
	s.version = one;
	assert_true(record_is_shown(RECORD_NEVER, &s, 55));
	assert_false(record_is_shown(RECORD_NEVER, &s, 60));
	assert_true(record_is_shown(9, &s, 60)); /* the server says that it is young */
	s.death = RECORD_CLOSED;
	assert_int_equal(record_sight_end_ns(&s), 0);
	assert_false(record_is_shown(9, &s, 55));
}

static void test_swept(void **state)
{
	struct record_sight s = {.is_known = false};

	(void)state;
	assert_int_equal(record_sweep_lease(&s, false, 10, 100), RECORD_LEAVE);
	assert_int_equal(record_sweep_candidate(&s), RECORD_LEAVE);
	s.is_known = true;
	assert_int_equal(record_sweep_candidate(&s), RECORD_DROP);
	s.version = one;
	assert_int_equal(record_sweep_candidate(&s), RECORD_LEAVE);
	s.death = RECORD_IDLE;
	assert_int_equal(record_sweep_candidate(&s), RECORD_DROP);
	assert_int_equal(record_sweep_lease(&s, true, 10, 100), RECORD_LEAVE);
	assert_int_equal(record_sweep_lease(&s, false, 10, 100), RECORD_DROP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_waits_without_end),
		cmocka_unit_test(test_waits_for_the_missing),
		cmocka_unit_test(test_buried_and_gone),
		cmocka_unit_test(test_another_claim_of_ours),
		cmocka_unit_test(test_forfeit_stays),
		cmocka_unit_test(test_lock_without_answer),
		cmocka_unit_test(test_release_of_another_claim),
		cmocka_unit_test(test_show_of_another_claim),
		cmocka_unit_test(test_show),
		cmocka_unit_test(test_order_without_a_sight),
		cmocka_unit_test(test_publish),
		cmocka_unit_test(test_close_of_the_dead),
		cmocka_unit_test(test_history_is_bounded),
		cmocka_unit_test(test_notes_are_kept),
		cmocka_unit_test(test_shown),
		cmocka_unit_test(test_swept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
