/*
 * broken.c: who judges the judge? Clients that are broken on purpose, in the ways in which real
 * ones were, must be caught by the oracle; else a clean run proves nothing. And N24, which needs
 * something that no backend has yet.
 */
#include "backend.h"

#include <stdatomic.h>
#include <stdio.h>

/* A client of our own making: it leads in this term until then, whatever anybody says. */
struct fake {
	_Atomic uint64_t term;
	_Atomic uint64_t until_ns;
};

static bool fake_is_leader(const void *candidate)
{
	const struct fake *f = candidate;

	return now_ns() < atomic_load(&f->until_ns);
}

static uint64_t fake_term(const void *candidate)
{
	return atomic_load(&((const struct fake *)candidate)->term);
}

static void ask(struct oracle *o, unsigned track, const struct fake *f)
{
	struct oracle_subject subject = {fake_is_leader, fake_term, f};

	for (unsigned i = 0; i < 20; i++) {
		oracle_sample(o, track, &subject);
		pass_time(1);
	}
}

static struct oracle *fresh(struct testcase *t)
{
	struct oracle *o = oracle_new(UINT64_MAX, NULL);

	CHECK(t, o != NULL, "no shared memory");
	return o;
}

static void expect(struct testcase *t, struct oracle *o, bool is_clean, const char *what)
{
	struct oracle_verdict v;

	CHECK(t, oracle_judge(o, &v) == is_clean, "%s: %s", what, is_clean ? v.text : "not caught");
	oracle_free(o);
}

static void made_up_clients(struct testcase *t)
{
	struct oracle *o = fresh(t);
	struct fake a = {.term = 1, .until_ns = UINT64_MAX};
	struct fake b = {.term = 2, .until_ns = UINT64_MAX};

	ask(o, 0, &a);
	atomic_store(&a.until_ns, 0);
	ask(o, 0, &a);
	ask(o, 1, &b);
	expect(t, o, true, "one after the other");
	/* Leads on beside its successor. */
	o = fresh(t);
	atomic_store(&a.until_ns, UINT64_MAX);
	ask(o, 0, &a);
	ask(o, 1, &b);
	ask(o, 0, &a);
	expect(t, o, false, "leads on beside its successor");
	/* For a single question only. */
	o = fresh(t);
	ask(o, 1, &b);
	struct oracle_subject subject = {fake_is_leader, fake_term, &a};

	oracle_sample(o, 0, &subject);
	ask(o, 1, &b);
	expect(t, o, false, "one wrong answer");
	/* The fence counter began at 1 again: time order is not term order. */
	o = fresh(t);
	ask(o, 1, &b);
	ask(o, 0, &a);
	expect(t, o, false, "terms that go back");
	/* One term for two. */
	o = fresh(t);
	ask(o, 0, &a);
	atomic_store(&b.term, 1);
	ask(o, 1, &b);
	expect(t, o, false, "one term, two leaders");
	/* Leads without a term. */
	o = fresh(t);
	atomic_store(&b.term, 0);
	ask(o, 1, &b);
	expect(t, o, false, "no term");
}

/* The real library with a broken client around it: it remembers "became" and asks no clock. */
struct memory_of {
	_Atomic uint64_t term;
};

static bool remembers(const void *candidate)
{
	return atomic_load(&((const struct memory_of *)candidate)->term) != 0;
}

static uint64_t remembered(const void *candidate)
{
	return atomic_load(&((const struct memory_of *)candidate)->term);
}

static void forgetful_client(struct testcase *t)
{
	struct oracle *o = fresh(t);
	struct local *p = local_new(t, NULL);
	struct memory_of client = {.term = 0};
	struct oracle_subject broken = {remembers, remembered, &client};

	atomic_store(&client.term, local_leads(p, soon_ms(t)));
	oracle_sample(o, 0, &broken);
	struct local *q = local_new(t, NULL);
	struct memory_of next = {.term = 0};
	struct oracle_subject successor = {remembers, remembered, &next};

	local_sees(q, p->id, soon_ms(t));
	local_stop(p);
	atomic_store(&next.term, local_leads(q, failover_ms(t)));
	oracle_sample(o, 1, &successor);
	oracle_sample(o, 0, &broken); /* nobody told it that "lost" came */
	expect(t, o, false, "a client that ignores lost");
}

static void catches_broken_clients(struct testcase *t)
{
	made_up_clients(t);
	forgetful_client(t);
}

static void pooler(struct testcase *t)
{
	CHECK(t, false, "this backend has no pooler to put in between");
}

const struct entry cases_oracle[] = {
	{"N24", "a pooler in between is noticed and refused", pooler, NEEDS_POOLER, 0},
	{"ORACLE", "the oracle catches a broken client", catches_broken_clients, NEEDS_NOTHING, 0},
	{NULL, NULL, NULL, 0, 0},
};
