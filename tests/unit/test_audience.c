/*
 * test_audience.c: the third machine: what the application is told, and when its work has ended.
 * Each test is a short scene. The simulator plays it in whole worlds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/audience.h"

#define DRAIN_NS 1000u

static struct audience_result say(struct audience *a, uint8_t kind)
{
	return audience_step(a, &(struct audience_event){.kind = kind});
}

static struct audience_result note(struct audience *a, uint8_t kind, uint64_t term)
{
	return audience_step(a, &(struct audience_event){.kind = AUDIENCE_NOTE,
							 .note = kind,
							 .term = term,
							 .why = WHY_RESIGNED,
							 .now_ns = 5000,
							 .drain_ns = DRAIN_NS,
							 .has_puller = true});
}

static struct audience_result news(struct audience *a, uint8_t kind)
{
	return audience_step(a, &(struct audience_event){.kind = AUDIENCE_NEWS, .news = kind});
}

static struct audience_result take(struct audience *a, uint64_t token)
{
	return audience_step(a, &(struct audience_event){.kind = AUDIENCE_TAKE, .token = token});
}

static struct audience_result done(struct audience *a, uint64_t token)
{
	return audience_step(a, &(struct audience_event){.kind = AUDIENCE_DONE, .token = token});
}

static struct audience_result drained(struct audience *a, uint64_t term, bool over)
{
	return audience_step(
		a, &(struct audience_event){.kind = AUDIENCE_DRAINED, .term = term, .over = over});
}

static struct audience_result enter(struct audience *a, uint64_t term)
{
	return audience_step(a, &(struct audience_event){.kind = AUDIENCE_ENTER, .term = term});
}

static void takes(struct audience *a, uint8_t kind, uint64_t term)
{
	struct audience_result r = take(a, 77);

	assert_false(r.refused);
	assert_int_equal(r.news, kind);
	assert_int_equal(r.term, term);
}

static struct audience started(bool has_handler, bool by_hand)
{
	struct audience a;

	audience_init(&a, has_handler, by_hand, by_hand);
	assert_true(a.stopped);
	(void)say(&a, AUDIENCE_START);
	(void)say(&a, AUDIENCE_START_HEARD);
	assert_false(a.stopped);
	return a;
}

/* S7: what a handler does after LOST is part of the work. */
static void handler_of_lost_ends_the_work(void **state)
{
	struct audience a = started(true, false);

	(void)state;
	assert_true(note(&a, NOTE_BECAME, 3).deliver);
	takes(&a, NEWS_BECAME, 3);
	assert_true(audience_is_busy(&a));
	assert_false(note(&a, NOTE_LOST, 3).deliver); /* one at a time */
	assert_true(take(&a, 76).refused);
	assert_true(audience_is_busy(&a));
	assert_true(done(&a, 77).deliver);
	struct audience_result r = take(&a, 78);

	assert_int_equal(r.news, NEWS_LOST);
	assert_int_equal(r.why, WHY_RESIGNED);
	assert_true(take(&a, 79).refused); /* one at a time */
	assert_true(done(&a, 77).refused); /* an old token says nothing */
	assert_true(done(&a, 0).refused);
	assert_false(say(&a, AUDIENCE_STOP).drained); /* the handler runs on */
	assert_true(done(&a, 78).drained);
	assert_false(audience_is_busy(&a));
	assert_true(take(&a, 80).refused);
}

static void pulled_events_end_it_when_done(void **state)
{
	struct audience a = started(false, false);

	(void)state;
	(void)note(&a, NOTE_BECAME, 3);
	takes(&a, NEWS_BECAME, 3);
	(void)done(&a, 77);
	assert_int_equal(note(&a, NOTE_LOST, 3).wake_ns, NEVER); /* somebody pulls */
	takes(&a, NEWS_LOST, 3);
	assert_false(audience_is_busy(&a)); /* no handler */
	assert_true(done(&a, 77).drained);
	assert_false(done(&a, 77).drained);
}

static void nobody_listens_and_time_ends_it(void **state)
{
	struct audience a = started(false, false);
	struct audience_event lost = {.kind = AUDIENCE_NOTE,
				      .note = NOTE_LOST,
				      .term = 3,
				      .now_ns = 5000,
				      .drain_ns = DRAIN_NS};

	(void)state;
	(void)note(&a, NOTE_BECAME, 3);
	assert_int_equal(audience_step(&a, &lost).wake_ns, 5000 + DRAIN_NS);
	assert_false(audience_step(&a, &(struct audience_event){.kind = AUDIENCE_TIMER,
								.now_ns = 5000 + DRAIN_NS - 1})
			     .drained);
	struct audience_result r = audience_step(
		&a, &(struct audience_event){.kind = AUDIENCE_TIMER, .now_ns = 5000 + DRAIN_NS});

	assert_true(r.drained);
	assert_int_equal(r.wake_ns, NEVER);
	/* Whoever listens, or drains by hand, is given no such time. */
	struct audience b = started(true, false);
	struct audience c = started(false, true);

	(void)note(&b, NOTE_BECAME, 3);
	(void)note(&c, NOTE_BECAME, 3);
	assert_int_equal(audience_step(&b, &lost).wake_ns, NEVER);
	assert_int_equal(audience_step(&c, &lost).wake_ns, NEVER);
}

static void contexts_are_waited_for(void **state)
{
	struct audience a = started(false, false);

	(void)state;
	assert_true(enter(&a, 0).refused);
	(void)note(&a, NOTE_BECAME, 3);
	assert_false(enter(&a, 3).refused);
	assert_false(enter(&a, 3).refused);
	assert_false(note(&a, NOTE_LOST, 3).drained);
	assert_true(enter(&a, 4).refused); /* while it drains */
	assert_false(say(&a, AUDIENCE_LEAVE).drained);
	assert_true(say(&a, AUDIENCE_LEAVE).drained); /* though nobody took LOST */
	/* Entered, and left before the loss: other work may go on, so LOST counts. */
	(void)note(&a, NOTE_BECAME, 4);
	(void)enter(&a, 4);
	(void)say(&a, AUDIENCE_LEAVE);
	assert_false(note(&a, NOTE_LOST, 4).drained);
	/* A handler and a context: both. */
	struct audience b = started(true, false);

	(void)note(&b, NOTE_BECAME, 3);
	(void)enter(&b, 3);
	(void)note(&b, NOTE_LOST, 3);
	assert_false(say(&b, AUDIENCE_LEAVE).drained);
	takes(&b, NEWS_BECAME, 3);
	(void)done(&b, 77);
	takes(&b, NEWS_LOST, 3);
	assert_true(done(&b, 77).drained);
}

static void runners_take_part_in_the_loss(void **state)
{
	struct audience a = started(false, false);

	(void)state;
	(void)say(&a, AUDIENCE_RUN);
	(void)note(&a, NOTE_BECAME, 3);
	assert_true(note(&a, NOTE_LOST, 3).drained); /* it had not begun */
	(void)say(&a, AUDIENCE_RUN_END);
	(void)note(&a, NOTE_BECAME, 4);
	assert_false(note(&a, NOTE_LOST, 4).drained);
}

/* A pump that takes events while work runs gives nothing away. */
static void by_hand_no_event_ends_it(void **state)
{
	struct audience a = started(false, true);

	(void)state;
	(void)note(&a, NOTE_BECAME, 3);
	takes(&a, NEWS_BECAME, 3);
	(void)done(&a, 77);
	(void)enter(&a, 3);
	(void)note(&a, NOTE_LOST, 3);
	takes(&a, NEWS_LOST, 3);
	assert_false(done(&a, 77).drained);
	assert_true(say(&a, AUDIENCE_LEAVE).drained);
	/* Nothing was entered: the word is "drained". */
	(void)note(&a, NOTE_BECAME, 4);
	assert_false(note(&a, NOTE_LOST, 4).drained);
	assert_true(drained(&a, 3, true).refused);
	assert_true(drained(&a, 4, true).drained);
	assert_true(drained(&a, 4, true).refused);
	/* All that was entered had been left. */
	(void)note(&a, NOTE_BECAME, 5);
	(void)enter(&a, 5);
	(void)say(&a, AUDIENCE_LEAVE);
	assert_true(note(&a, NOTE_LOST, 5).drained);
	/* By hand, a handler's return says nothing either; a stop does. */
	struct audience b = started(true, true);

	(void)note(&b, NOTE_BECAME, 3);
	(void)note(&b, NOTE_LOST, 3);
	takes(&b, NEWS_BECAME, 3);
	(void)done(&b, 77);
	takes(&b, NEWS_LOST, 3);
	assert_false(done(&b, 77).drained);
	assert_true(say(&b, AUDIENCE_STOP).drained);
}

static void drained_names_its_term(void **state)
{
	struct audience a = started(true, false);

	(void)state;
	assert_true(drained(&a, 3, true).refused); /* nothing was told of it */
	(void)note(&a, NOTE_BECAME, 3);
	assert_true(drained(&a, 3, false).refused); /* it leads */
	assert_true(drained(&a, 2, true).refused);
	/* The clock has ended it before the core has said so. */
	assert_false(drained(&a, 3, true).refused);
	assert_true(note(&a, NOTE_LOST, 3).drained);
	(void)note(&a, NOTE_BECAME, 4);
	assert_false(note(&a, NOTE_LOST, 4).drained); /* that was said of 3 */
	assert_true(drained(&a, 4, false).drained);
}

static void stop_by_the_application(void **state)
{
	struct audience a = started(false, false);

	(void)state;
	(void)note(&a, NOTE_BECAME, 3);
	(void)say(&a, AUDIENCE_STOP);
	assert_true(note(&a, NOTE_LOST, 3).drained); /* it knows */
	(void)audience_step(
		&a, &(struct audience_event){.kind = AUDIENCE_STOP_HEARD, .stopping = true});
	uint16_t due = a.stops_due;

	assert_false(audience_has_stopped(&a, due));
	(void)note(&a, NOTE_STOPPED, 0);
	assert_true(audience_has_stopped(&a, due));
	assert_true(a.stopped);
	(void)audience_step(&a, &(struct audience_event){.kind = AUDIENCE_STOP_HEARD});
	assert_true(audience_has_stopped(&a, a.stops_due)); /* it was stopped */
	/* Told to start before the stop has come to its end. */
	(void)say(&a, AUDIENCE_START);
	(void)note(&a, NOTE_STOPPED, 0);
	assert_false(a.stopped);
	(void)say(&a, AUDIENCE_START_HEARD);
	(void)audience_step(&a, &(struct audience_event){.kind = AUDIENCE_NOTE,
							 .note = NOTE_STOPPED,
							 .wanted = true});
	assert_false(a.stopped);
	/* Started anew: the next loss is not its own doing. */
	(void)note(&a, NOTE_BECAME, 4);
	assert_false(note(&a, NOTE_LOST, 4).drained);
}

/* S8: in order, in pairs; a leadership that nobody heard of is left out. */
static void what_waits_is_in_order(void **state)
{
	struct audience a = started(false, false);

	(void)state;
	(void)note(&a, NOTE_BECAME, 3);
	(void)news(&a, NEWS_CHANGED);
	takes(&a, NEWS_BECAME, 3);
	(void)done(&a, 77);
	(void)note(&a, NOTE_LOST, 3);
	(void)drained(&a, 3, true);
	(void)note(&a, NOTE_BECAME, 4);
	(void)note(&a, NOTE_LOST, 4); /* unheard */
	(void)drained(&a, 4, true);
	(void)note(&a, NOTE_BECAME, 5);
	takes(&a, NEWS_LOST, 3); /* before the later BECAME, and before CHANGED */
	(void)done(&a, 77);
	(void)note(&a, NOTE_STOPPED, 0);
	takes(&a, NEWS_STOPPED, 0); /* it belongs to neither */
	(void)done(&a, 77);
	takes(&a, NEWS_BECAME, 5);
	(void)done(&a, 77);
	takes(&a, NEWS_CHANGED, 0);
	(void)done(&a, 77);
	/* Both of 6 wait when 7 begins: nobody will hear of 6. */
	(void)note(&a, NOTE_LOST, 5);
	takes(&a, NEWS_LOST, 5);
	(void)done(&a, 77);
	(void)note(&a, NOTE_BECAME, 6);
	(void)note(&a, NOTE_LOST, 6);
	(void)drained(&a, 6, true);
	(void)note(&a, NOTE_BECAME, 7);
	takes(&a, NEWS_BECAME, 7);
	(void)done(&a, 77);
	(void)note(&a, NOTE_LOST, 7);
	takes(&a, NEWS_LOST, 7);
}

/* S7: dealing with an old loss ends no newer work, and covers one that nobody heard of. */
static void an_old_loss_drains_nothing_new(void **state)
{
	struct audience a = started(false, false);

	(void)state;
	(void)note(&a, NOTE_BECAME, 3);
	takes(&a, NEWS_BECAME, 3);
	(void)done(&a, 77);
	(void)note(&a, NOTE_LOST, 3);
	takes(&a, NEWS_LOST, 3);
	(void)drained(&a, 3, true);
	(void)note(&a, NOTE_BECAME, 4);
	(void)note(&a, NOTE_LOST, 4);
	assert_false(done(&a, 77).drained); /* that was LOST of 3 */
	takes(&a, NEWS_BECAME, 4);
	(void)done(&a, 77);
	takes(&a, NEWS_LOST, 4);
	assert_true(done(&a, 77).drained);
	(void)note(&a, NOTE_BECAME, 5);
	takes(&a, NEWS_BECAME, 5);
	(void)done(&a, 77);
	(void)note(&a, NOTE_LOST, 5);
	(void)drained(&a, 5, true);
	(void)note(&a, NOTE_BECAME, 6);
	assert_false(note(&a, NOTE_LOST, 6).drained); /* left out; LOST of 5 speaks for it */
	takes(&a, NEWS_LOST, 5);
	assert_true(done(&a, 77).drained);
	assert_true(take(&a, 1).refused);
}

static void other_news(void **state)
{
	struct audience a;

	(void)state;
	audience_init(&a, false, false, false);
	assert_false(news(&a, NEWS_ERROR).deliver); /* S8: stopped */
	assert_false(news(&a, NEWS_WAITS).deliver);
	assert_true(news(&a, NEWS_CHANGED).deliver);
	a = started(false, true);
	assert_false(news(&a, NEWS_RENEWED).deliver); /* no work */
	assert_true(news(&a, NEWS_ERROR).deliver);
	(void)note(&a, NOTE_BECAME, 3);
	takes(&a, NEWS_BECAME, 3);
	assert_false(news(&a, NEWS_RENEWED).deliver);
	assert_true(done(&a, 77).deliver);
	takes(&a, NEWS_ERROR, 0);
	(void)done(&a, 77);
	takes(&a, NEWS_RENEWED, 0);
	a = started(false, false);
	(void)note(&a, NOTE_BECAME, 3);
	(void)news(&a, NEWS_RENEWED); /* not asked for */
	assert_int_equal(a.pending, NEWS_BECAME);
}

static void freed_and_mute(void **state)
{
	struct audience a = started(false, false);

	(void)state;
	assert_false(say(&a, AUDIENCE_FREE).refused);
	assert_true(say(&a, AUDIENCE_FREE).refused); /* once */
	assert_false(say(&a, AUDIENCE_LET_GO).refused);
	assert_true(say(&a, AUDIENCE_LET_GO).refused);
	(void)note(&a, NOTE_BECAME, 3);
	takes(&a, NEWS_BECAME, 3);
	(void)note(&a, NOTE_LOST, 3);
	assert_false(say(&a, AUDIENCE_MUTE).deliver);
	assert_int_equal(a.token, 0);
	assert_false(note(&a, NOTE_STOPPED, 0).deliver);
	assert_true(take(&a, 78).refused);
	/* What a puller has taken is dealt with when the election is no more. */
	a = started(false, false);
	(void)note(&a, NOTE_BECAME, 3);
	takes(&a, NEWS_BECAME, 3);
	(void)done(&a, 77);
	(void)note(&a, NOTE_LOST, 3);
	takes(&a, NEWS_LOST, 3);
	assert_true(say(&a, AUDIENCE_MUTE).drained);
	/* A handler that runs is waited for; the dispatcher takes the rest, and tells nobody. */
	a = started(true, false);
	(void)note(&a, NOTE_BECAME, 3);
	takes(&a, NEWS_BECAME, 3);
	(void)note(&a, NOTE_LOST, 3);
	assert_false(say(&a, AUDIENCE_MUTE).drained);
	assert_int_equal(a.token, 77);
	assert_true(done(&a, 77).deliver);
	takes(&a, NEWS_LOST, 3);
	assert_true(done(&a, 77).drained);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(handler_of_lost_ends_the_work),
		cmocka_unit_test(pulled_events_end_it_when_done),
		cmocka_unit_test(nobody_listens_and_time_ends_it),
		cmocka_unit_test(contexts_are_waited_for),
		cmocka_unit_test(runners_take_part_in_the_loss),
		cmocka_unit_test(by_hand_no_event_ends_it),
		cmocka_unit_test(drained_names_its_term),
		cmocka_unit_test(stop_by_the_application),
		cmocka_unit_test(what_waits_is_in_order),
		cmocka_unit_test(an_old_loss_drains_nothing_new),
		cmocka_unit_test(other_news),
		cmocka_unit_test(freed_and_mute),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
