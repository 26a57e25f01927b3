/*
 * test_examine.c: baton_examine() on a store that says nothing of itself: the lease that is tried
 * on it, and what is told when the store is slow or refuses.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "baton-memory.h"

struct seen {
	int n;
	char checks[8][32];
	int levels[8];
	char last[1024];
};

static void note(void *arg, const struct baton_finding *f)
{
	struct seen *s = arg;

	assert_int_equal(f->size, sizeof(*f));
	assert_true(s->n < 8);
	(void)snprintf(s->checks[s->n], sizeof(s->checks[0]), "%s", f->check);
	(void)snprintf(s->last, sizeof(s->last), "%s", f->text);
	s->levels[s->n++] = f->level;
}

struct world {
	struct baton_memory *m;
	struct baton *b;
};

/* A call may take a third of a second. */
static struct world set_up(void)
{
	struct baton_options o;
	struct world w = {0};

	baton_options_init(&o);
	o.lease_ms = 3000;
	assert_int_equal(baton_memory_open("memory:examine", &w.m, NULL), 0);
	assert_int_equal(baton_open("memory:examine", &o, &w.b, NULL), 0);
	return w;
}

static void tear_down(struct world *w)
{
	baton_close(w->b);
	baton_memory_heal(w->m);
	baton_memory_close(w->m);
}

static void a_lease_is_tried_and_nothing_stays(void **state)
{
	struct world w = set_up();
	struct seen s = {0};

	(void)state;
	assert_int_equal(baton_examine(w.b, note, &s, NULL), BATON_FINDING_OK);
	assert_int_equal(s.n, 2);
	assert_string_equal(s.checks[0], "renewal");
	assert_string_equal(s.checks[1], "failover");
	assert_int_equal(baton_memory_calls(w.m, BATON_MEMORY_OPEN), 1);
	assert_int_equal(baton_memory_calls(w.m, BATON_MEMORY_CLOSE), 1);
	assert_int_equal(baton_memory_calls(w.m, BATON_MEMORY_CAMPAIGN), 0);
	tear_down(&w);
}

/* Two thirds of what it may take; if the machine makes all of it out of that, it is an error. */
static void a_slow_store_is_a_warning(void **state)
{
	struct world w = set_up();
	struct seen s = {0};

	(void)state;
	baton_memory_delay(w.m, BATON_MEMORY_RENEW, 1, 222);
	assert_true(baton_examine(w.b, note, &s, NULL) >= BATON_FINDING_WARNING);
	assert_true(s.levels[0] >= BATON_FINDING_WARNING);
	tear_down(&w);
}

static void a_refusal_is_told_in_its_own_words(void **state)
{
	static const int verbs[] = {BATON_MEMORY_OPEN, BATON_MEMORY_RENEW, BATON_MEMORY_CLOSE};

	(void)state;
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		struct world w = set_up();
		struct seen s = {0};

		baton_memory_fail(w.m, verbs[i], 1, BATON_E_DENIED, "The moon is full.");
		assert_int_equal(baton_examine(w.b, note, &s, NULL), BATON_FINDING_ERROR);
		assert_string_equal(s.checks[s.n - 1], "lease");
		assert_string_equal(s.last, "The moon is full.");
		tear_down(&w);
	}
}

static void misuse_is_refused(void **state)
{
	struct world w = set_up();
	struct baton_error err = {0};

	(void)state;
	assert_int_equal(baton_examine(w.b, NULL, NULL, &err), BATON_E_INVALID);
	assert_int_equal(err.code, BATON_E_INVALID);
	assert_int_equal(baton_examine(NULL, note, NULL, &err), BATON_E_INVALID);
	tear_down(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lease_is_tried_and_nothing_stays),
		cmocka_unit_test(a_slow_store_is_a_warning),
		cmocka_unit_test(a_refusal_is_told_in_its_own_words),
		cmocka_unit_test(misuse_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
