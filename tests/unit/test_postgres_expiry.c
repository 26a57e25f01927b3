/*
 * test_postgres_expiry.c: whose lease has surely ended, on clocks that jump. Each test plays a
 * server's wall clock against ours, and asks what expiry.h promises: the proof never comes before a
 * whole ttl has passed on our clock since the last renewal.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "store/postgres/expiry.h"

#define S ((uint64_t)1000000000)
#define MS ((uint64_t)1000000)

/* A server, a holder that renews, and us who watch. */
struct world {
	uint64_t now_ns;
	int64_t offset_us; /* the server's clock against ours */
	uint64_t ttl_ns;
	uint64_t renewed_ns; /* ours, when the server carried it out */
	int64_t expires_us;
	int64_t seq;
	struct expiry_clock clock;
	struct watched_leases watched_leases;
};

static int64_t server_us(const struct world *w)
{
	return (int64_t)(w->now_ns / 1000) + w->offset_us;
}

static struct world begin(uint64_t ttl_ns)
{
	return (struct world){.now_ns = 1000 * S, .offset_us = 1700000000000000, .ttl_ns = ttl_ns};
}

static void renew(struct world *w)
{
	w->seq++;
	w->renewed_ns = w->now_ns;
	w->expires_us = server_us(w) + (int64_t)(w->ttl_ns / 1000);
}

/* The server is asked, and its answer read so much later. */
static void sample(struct world *w, uint64_t later_ns)
{
	int64_t said_us = server_us(w);
	uint64_t asked_ns = w->now_ns;

	w->now_ns += later_ns;
	expiry_clock_add(&w->clock, asked_ns, w->now_ns, said_us);
}

static uint64_t end_of(struct world *w)
{
	struct watched_lease *s = expiry_note(&w->watched_leases, "holder", w->seq, w->expires_us,
					      w->ttl_ns, w->now_ns);

	assert_non_null(s);
	return expiry_end_ns(s, &w->clock, w->now_ns);
}

/* Renewals and samples every third of the ttl, so that the samples reach back. */
static void live(struct world *w, unsigned thirds)
{
	for (unsigned i = 0; i < thirds; i++) {
		renew(w);
		sample(w, MS);
		(void)end_of(w);
		w->now_ns += w->ttl_ns / 3;
	}
}

static void steady_clock(void **state)
{
	struct world w = begin(15 * S);

	(void)state;
	live(&w, 6);
	renew(&w);
	(void)end_of(&w);
	sample(&w, MS);
	/* The slowest answer of the window, and a microsecond or two of rounding. */
	uint64_t end_ns = end_of(&w);

	assert_true(end_ns >= w.renewed_ns + w.ttl_ns);
	assert_true(end_ns <= w.renewed_ns + w.ttl_ns + 2 * MS);
	expiry_done(&w.watched_leases);
}

static void newcomer_watches(void **state)
{
	struct world w = begin(15 * S);

	(void)state;
	renew(&w);
	w.now_ns += 10 * S;
	sample(&w, MS);
	uint64_t first_ns = w.now_ns;

	assert_int_equal(end_of(&w), first_ns + w.ttl_ns);
	/* Seen again, unchanged: it counts from the first time. */
	w.now_ns += 3 * S;
	assert_int_equal(end_of(&w), first_ns + w.ttl_ns);
	/* Renewed: from anew. */
	renew(&w);
	assert_int_equal(end_of(&w), w.now_ns + w.ttl_ns);
	expiry_done(&w.watched_leases);
}

static void jump_forward(void **state)
{
	struct world w = begin(15 * S);

	(void)state;
	live(&w, 6);
	renew(&w);
	(void)end_of(&w);
	uint64_t renewed_ns = w.renewed_ns;

	/* An hour on, and sampled: the stamp is long over by the server's clock, not by ours. */
	w.now_ns += 1 * S;
	w.offset_us += 3600000000;
	sample(&w, MS);
	assert_true(end_of(&w) >= renewed_ns + w.ttl_ns);
	/* A renewal after it: `low` still is the old offset, so the other proof comes first. */
	renew(&w);
	assert_true(end_of(&w) >= w.renewed_ns + w.ttl_ns);
	expiry_done(&w.watched_leases);
}

static void jump_back(void **state)
{
	struct world w = begin(15 * S);

	(void)state;
	live(&w, 6);
	renew(&w);
	(void)end_of(&w);
	uint64_t seen_ns = w.now_ns;

	/* The stamp is an hour ahead now; who watched is not kept waiting for it. */
	w.offset_us -= 3600000000;
	w.now_ns += 1 * S;
	sample(&w, MS);
	uint64_t end_ns = end_of(&w);

	assert_true(end_ns >= w.renewed_ns + w.ttl_ns);
	assert_true(end_ns <= seen_ns + w.ttl_ns);
	expiry_done(&w.watched_leases);
}

/* It has jumped since we last asked, and the holder has renewed since: what is written is old by
 * the clock that we know. Only what was asked after we saw it tells. */
static void jump_back_unseen(void **state)
{
	struct world w = begin(15 * S);

	(void)state;
	live(&w, 6);
	w.offset_us -= 3600000000;
	renew(&w);
	assert_true(end_of(&w) >= w.renewed_ns + w.ttl_ns);
	w.now_ns += S;
	sample(&w, MS);
	assert_true(end_of(&w) >= w.renewed_ns + w.ttl_ns);
	/* An answer that was under way doesn't tell, however late it is read. */
	struct world late = begin(15 * S);

	live(&late, 6);
	uint64_t asked_ns = late.now_ns;
	int64_t said_us = server_us(&late);

	late.offset_us -= 3600000000;
	late.now_ns += MS;
	renew(&late);
	(void)end_of(&late);
	late.now_ns += S;
	expiry_clock_add(&late.clock, asked_ns, late.now_ns, said_us);
	assert_true(end_of(&late) >= late.renewed_ns + late.ttl_ns);
	expiry_done(&w.watched_leases);
	expiry_done(&late.watched_leases);
}

/* A call was lost, and meanwhile the clock was an hour behind and is right again. The holder has
 * renewed by the wrong clock: its stamp is long over by the right one. */
static void jump_back_and_forth(void **state)
{
	struct world w = begin(15 * S);

	(void)state;
	live(&w, 6);
	w.offset_us -= 3600000000;
	renew(&w);
	w.now_ns += w.ttl_ns / 3;
	w.offset_us += 3600000000;
	uint64_t seen_ns = w.now_ns;

	(void)end_of(&w);
	sample(&w, MS);
	assert_true(end_of(&w) >= w.renewed_ns + w.ttl_ns);
	assert_true(end_of(&w) <= seen_ns + w.ttl_ns);
	/* The gap counts until it is a ttl ago, also among samples that were put together. */
	for (unsigned i = 0; i < 2 * EXPIRY_SAMPLES; i++) {
		w.now_ns += w.ttl_ns / 3 / (2 * EXPIRY_SAMPLES);
		sample(&w, MS);
		assert_true(end_of(&w) >= w.renewed_ns + w.ttl_ns);
	}
	expiry_done(&w.watched_leases);
}

static void gone_is_ended(void **state)
{
	struct world w = begin(15 * S);

	(void)state;
	renew(&w);
	(void)end_of(&w);
	w.now_ns += S;
	assert_true(expiry_missed(&w.watched_leases, w.now_ns));
	assert_false(expiry_missed(&w.watched_leases, w.now_ns));
	assert_int_equal(
		expiry_end_ns(expiry_find(&w.watched_leases, "holder"), &w.clock, w.now_ns), 0);
	expiry_drop(&w.watched_leases, "holder");
	assert_null(expiry_find(&w.watched_leases, "holder"));
	expiry_done(&w.watched_leases);
}

static void gone_are_forgotten(void **state)
{
	static const char *const ids[] = {"gone", "here", "gone-too"};
	struct world w = begin(15 * S);

	(void)state;
	for (size_t i = 0; i < 3; i++)
		assert_non_null(expiry_note(&w.watched_leases, ids[i], 1, 0, w.ttl_ns, w.now_ns));
	expiry_drop_gone(&w.watched_leases);
	assert_int_equal(w.watched_leases.n, 3);
	w.now_ns += S;
	assert_non_null(expiry_note(&w.watched_leases, "here", 2, 0, w.ttl_ns, w.now_ns));
	assert_true(expiry_missed(&w.watched_leases, w.now_ns));
	expiry_drop_gone(&w.watched_leases);
	assert_int_equal(w.watched_leases.n, 1);
	assert_non_null(expiry_find(&w.watched_leases, "here"));
	expiry_done(&w.watched_leases);
}

/* A proof that is not one. */
static bool is_wrong(const struct world *w, uint64_t end_ns)
{
	return end_ns <= w->now_ns && w->now_ns < w->renewed_ns + w->ttl_ns;
}

/* Many worlds: clocks that jump between samples, answers that take their time, a holder that
 * dies somewhen. At no time is there a proof before its ttl is over. */
static void never_too_early(void **state)
{
	unsigned proofs = 0;

	(void)state;
	srand48(42);
	for (unsigned round = 0; round < 3000; round++) {
		uint64_t ttl_ns = (1 + (uint64_t)lrand48() % 30) * S / 2;
		struct world w = begin(ttl_ns);
		uint64_t step_ns = ttl_ns / (2 + (uint64_t)lrand48() % 4);
		unsigned dies = 3 + (unsigned)(lrand48() % 60);

		for (unsigned i = 0; i < dies + 20; i++) {
			if (lrand48() % 8 == 0)
				w.offset_us +=
					(lrand48() % 2 == 0 ? 1 : -1) * (lrand48() % 40000000);
			sample(&w, (uint64_t)lrand48() % (step_ns / 10));
			if (i < dies)
				renew(&w);
			assert_false(is_wrong(&w, end_of(&w)));
			proofs += end_of(&w) <= w.now_ns;
			w.now_ns += step_ns;
			/* The end of a step: nobody may have proven what isn't so. */
			const struct watched_lease *s = expiry_find(&w.watched_leases, "holder");

			assert_false(is_wrong(&w, expiry_end_ns(s, &w.clock, w.now_ns)));
		}
		/* Liveness: it died long ago, and that shows, whatever the clock did. */
		assert_true(end_of(&w) <= w.now_ns);
		expiry_done(&w.watched_leases);
	}
	assert_true(proofs > 3000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steady_clock),     cmocka_unit_test(newcomer_watches),
		cmocka_unit_test(jump_forward),     cmocka_unit_test(jump_back),
		cmocka_unit_test(jump_back_unseen), cmocka_unit_test(jump_back_and_forth),
		cmocka_unit_test(gone_is_ended),    cmocka_unit_test(gone_are_forgotten),
		cmocka_unit_test(never_too_early),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
