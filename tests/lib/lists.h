/* lists.h: the library tells lists one by one; tests want to look at them side by side. */
#ifndef BATON_TEST_LISTS_H
#define BATON_TEST_LISTS_H

#include <baton.h>

struct test_list {
	struct baton_candidate *candidates;
	struct baton_leadership *leaderships;
	size_t max;
	size_t n;
};

static inline void test_found_candidate(void *arg, const struct baton_candidate *c)
{
	struct test_list *l = (struct test_list *)arg;

	if (l->n < l->max)
		l->candidates[l->n] = *c;
	l->n++;
}

static inline void test_found_leadership(void *arg, const struct baton_leadership *h)
{
	struct test_list *l = (struct test_list *)arg;

	if (l->n < l->max)
		l->leaderships[l->n] = *h;
	l->n++;
}

/* Both fill in at most max, and return how many there are, or a code. */
static inline int test_candidates(struct baton *b, const char *name, struct baton_candidate *list,
				  size_t max, struct baton_error *err)
{
	struct test_list l = {list, NULL, max, 0};

	return baton_list_candidates(b, name, test_found_candidate, &l, err);
}

static inline int test_history(struct baton *b, const char *name, struct baton_leadership *list,
			       size_t max, struct baton_error *err)
{
	struct test_list l = {NULL, list, max, 0};

	return baton_list_history(b, name, max, test_found_leadership, &l, err);
}

#endif
