/*
 * test_watch_index.c: the index of watched names: who is told, once and in order, and what a driver
 * keeps with a name.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/watch_index.h"

struct note {
	struct watched watched;
	int number;
};

static struct watch_index x;
static uint64_t cookies[16];

static int begin(void **state)
{
	(void)state;
	return watch_index_init(&x, sizeof(struct note));
}

static int end(void **state)
{
	(void)state;
	watch_index_done(&x);
	return 0;
}

static void test_notes(void **state)
{
	struct note *a = (struct note *)watch_index_get(&x, "a");

	(void)state;
	assert_non_null(a);
	assert_string_equal(a->watched.node.key, "a");
	assert_int_equal(a->number, 0);
	a->number = 7;
	assert_ptr_equal(watch_index_get(&x, "a"), &a->watched);
	assert_ptr_equal(watch_index_find(&x, "a"), &a->watched);
	assert_int_equal(a->number, 7);
	assert_null(watch_index_find(&x, "b"));
	assert_false(watch_index_is_watched(&a->watched));
	watch_index_drop(&x, &a->watched);
	assert_null(watch_index_find(&x, "a"));
}

static void test_hints(void **state)
{
	struct watched *a = watch_index_add(&x, "a", 1, false);
	struct watched *b = watch_index_add(&x, "b", 2, false);

	(void)state;
	assert_ptr_equal(watch_index_add(&x, "b", 3, false), b);
	assert_false(watch_index_has_hints(&x));
	watch_index_hint(&x, a);
	watch_index_hint(&x, b);
	watch_index_hint(&x, a); /* once, and in its old place */
	assert_true(watch_index_has_hints(&x));
	assert_int_equal(watch_index_take(&x, cookies, 1), 1);
	assert_int_equal(cookies[0], 1);
	assert_int_equal(watch_index_take(&x, cookies, 16), 2);
	assert_int_equal(cookies[0] + cookies[1], 5);
	assert_int_equal(watch_index_take(&x, cookies, 16), 0);
	watch_index_hint(&x, a); /* again, since it was taken */
	assert_int_equal(watch_index_take(&x, cookies, 16), 1);
	watch_index_hint_all(&x);
	watch_index_forget_hints(&x);
	assert_false(watch_index_has_hints(&x));
	watch_index_hint_all(&x);
	assert_int_equal(watch_index_take(&x, cookies, 16), 3);
}

static void test_due_at_once(void **state)
{
	(void)state;
	assert_non_null(watch_index_add(&x, "a", 1, false));
	assert_non_null(watch_index_add(&x, "a", 2, true)); /* and not the other one */
	assert_int_equal(watch_index_take(&x, cookies, 16), 1);
	assert_int_equal(cookies[0], 2);
}

static void test_unwatch(void **state)
{
	struct watched *a = watch_index_add(&x, "a", 1, true);

	(void)state;
	assert_ptr_equal(watch_index_add(&x, "a", 2, true), a);
	assert_false(watch_index_unwatch(&x, a, 3));
	assert_true(watch_index_unwatch(&x, a, 1)); /* and it is not due any more */
	assert_true(watch_index_is_watched(a));
	assert_int_equal(watch_index_take(&x, cookies, 16), 1);
	assert_int_equal(cookies[0], 2);
	assert_true(watch_index_unwatch(&x, a, 2));
	assert_false(watch_index_unwatch(&x, a, 2));
	assert_false(watch_index_is_watched(a));
	assert_ptr_equal(watch_index_find(&x, "a"), a); /* what is known of it stays */
	watch_index_hint(&x, a);
	assert_int_equal(watch_index_take(&x, cookies, 16), 0);
}

static void test_many(void **state)
{
	enum { N = 10000 };
	char name[16];
	size_t n = 0;

	(void)state;
	for (unsigned i = 0; i < N; i++) {
		snprintf(name, sizeof(name), "e%u", i);
		assert_non_null(watch_index_add(&x, name, i, false));
	}
	for (struct watched *w = watch_index_next(&x, NULL), *next; w != NULL; w = next, n++) {
		unsigned long i = strtoul(w->node.key + 1, NULL, 10);

		next = watch_index_next(&x, w);
		if (i % 2 == 0)
			continue;
		assert_true(watch_index_unwatch(&x, w, i));
		watch_index_drop(&x, w);
	}
	assert_int_equal(n, N);
	watch_index_hint_all(&x);
	for (n = 0; watch_index_take(&x, cookies, 16) == 16; n += 16)
		assert_int_equal(cookies[0] % 2, 0);
	assert_int_equal(n, N / 2 - N / 2 % 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_notes, begin, end),
		cmocka_unit_test_setup_teardown(test_hints, begin, end),
		cmocka_unit_test_setup_teardown(test_due_at_once, begin, end),
		cmocka_unit_test_setup_teardown(test_unwatch, begin, end),
		cmocka_unit_test_setup_teardown(test_many, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
