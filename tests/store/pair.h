/*
 * pair.h: two candidates on a file store in a directory of their own, made anew for each case: what
 * the programs of the store's tests begin with.
 */
#ifndef BATON_TEST_STORE_PAIR_H
#define BATON_TEST_STORE_PAIR_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "store/rig.h"

#define OK BATON_OUTCOME_OK
#define REFUSED BATON_OUTCOME_REFUSED
#define FAILED BATON_OUTCOME_FAILED

static char dir[256];
static struct rig a;
static struct rig b;

static inline int set_up(void **state)
{
	(void)state;
	rig_make_dir(dir, sizeof(dir));
	rig_open(&a, dir, "?history=3", "alice");
	rig_open(&b, dir, "?history=3", "bob");
	return 0;
}

static inline int tear_down(void **state)
{
	(void)state;
	rig_close(&a);
	rig_close(&b);
	rig_remove_dir(dir);
	return 0;
}

static inline void both_open(uint64_t ttl_ms)
{
	assert_int_equal(rig_lease(&a, ttl_ms), OK);
	assert_int_equal(rig_lease(&b, ttl_ms), OK);
}

static inline char *in_dir(const char *path)
{
	static char full[1024];

	(void)snprintf(full, sizeof(full), "%s/%s", dir, path);
	return full;
}

#endif
