/*
 * test_kubernetes_news.c: what the Kubernetes driver makes of what an API server says and when:
 * answers that are faster than the watch, watches that fall silent, Leases that come and go, claims
 * that land late.
 */
#include "kube_world.h"

/* ---- news in answers ---- */

/* Ours, with an annotation more. */
#define MINE_WITH(rv, key, text)                                                               \
	LEASE("e", rv,                                                                         \
	      ",\"annotations\":{\"baton/term\":\"41\",\"baton/claim\":\"ab-0-1 7 41\",\"" key \
	      "\":\"" text "\",\"baton/leader\":\"{\\\"leader\\\":\\\"me\\\",\\\"nonce\\\":"   \
	      "\\\"7\\\"}\"}",                                                                 \
	      BY("me"))

#define MINE_AT(rv) LEASE("e", rv, CLAIM("ab-0-1", "me"), BY("me"))

/* Leads, and the watch has shown it; all hints are taken. */
static void lead(struct world *w)
{
	open_store(w, "");
	kube_note_use(w->store, w->lease.id, "e");
	RULES(w, {.says = "watch=1", .status = 200, .answer = EVENT, .after = WEB_STAYS_OPEN},
	      {.says = "for=watch", .status = 200, .answer = LIST(MINE("e"))});
	assert_int_equal(baton_driver.watch_add(w->watch, "e", 1), BATON_OK);
	assert_int_equal(wait_ms(w, LATER_MS), 1);
	while (wait_ms(w, SOON_MS) > 0)
		;
}

static void renew(struct world *w)
{
	struct baton_call call = in_ms(LATER_MS);
	uint32_t n_held;

	assert_int_equal(baton_driver.lease_renew(w->lane, &call, &w->lease, &n_held),
			 BATON_OUTCOME_OK);
}

/* Hints until nothing more is to be heard. */
static int hints_of(struct world *w)
{
	int n = 0;

	for (int i = 0; i < 3; i++)
		n += wait_ms(w, SOON_MS / 3);
	return n;
}

/* A watch that stands, and shows nothing: not even our own renewals. */
static void test_lagging_watch(void **state)
{
	struct world *w = *state;

	lead(w);
	RULES(w, {.says = "watch=1", .status = 200, .answer = EVENT, .after = WEB_STAYS_OPEN},
	      {.says = "for=watch", .status = 200, .answer = LIST(MINE("e"))},
	      {.says = "for=renew", .status = 200, .n_times = 1, .answer = MINE("e")},
	      {.says = "for=renew", .status = 200, .answer = MINE_AT("92")});
	w->watch->patience_ns = 200 * CLOCK_NS_PER_MS;
	renew(w); /* nothing that it hasn't shown */
	assert_int_equal(hints_of(w), 0);
	assert_int_equal(count(w, "watch=1"), 0);
	renew(w);
	assert_true(store_of(w)->owed_ns != 0);
	int rc = 0;

	for (int i = 0; i < 20 && rc == 0; i++)
		rc = wait_ms(w, SOON_MS);
	assert_int_equal(rc, BATON_E_UNAVAILABLE);
	assert_int_equal(w->watch->patience_ns, 400 * CLOCK_NS_PER_MS); /* L4 */
	/* The next one looks first, and nothing is owed any more. */
	while (count(w, "watch=1") == 0)
		(void)wait_ms(w, SOON_MS);
	(void)hints_of(w);
	(void)hints_of(w);
	assert_int_equal(count(w, "watch=1"), 1);
	assert_int_equal(w->watch->patience_ns, 400 * CLOCK_NS_PER_MS);
	/* What comes in time is no reason, whatever was before. */
	RULES(w, {.says = "for=renew", .status = 200, .answer = MINE_AT("94")});
	renew(w);
	assert_true(store_of(w)->owed_ns != 0);
	assert_true(kube_shown(w->store, 93) == 0);
	assert_true(kube_shown(w->store, 94) > 0);
	(void)hints_of(w);
	(void)hints_of(w);
	assert_int_equal(count(w, "GET"), 0);
}

/* Bookmarks come every minute, where they come: one that stops to send them is broken. */
static void test_bookmarks(void **state)
{
	struct world *w = *state;

	open_store(w, "");
	RULES(w,
	      {.says = "watch=1",
	       .status = 200,
	       .answer = "{\"type\":\"MODIFIED\",\"object\":" MINE_AT("91") "}\n",
	       .after = WEB_STAYS_OPEN},
	      {.says = "for=watch", .status = 200, .answer = LIST("")});
	assert_int_equal(baton_driver.watch_add(w->watch, "e", 1), BATON_OK);
	while (store_of(w)->shown_rv != 91)
		(void)wait_ms(w, SOON_MS);
	(void)hints_of(w);
	w->watch->web.heard_ns -= 151 * CLOCK_NS_PER_S;
	assert_int_equal(wait_ms(w, SOON_MS), 0); /* this server sends none */
	web_watch_break(&w->watch->web);
	RULES(w, {.says = "watch=1", .status = 200, .answer = EVENT, .after = WEB_STAYS_OPEN},
	      {.says = "for=watch", .status = 200, .answer = LIST("")});
	assert_int_equal(wait_ms(w, LATER_MS), 1);
	while (!w->watch->has_bookmarks)
		assert_int_equal(wait_ms(w, SOON_MS), 0);
	w->watch->web.heard_ns -= 151 * CLOCK_NS_PER_S;
	assert_int_equal(wait_ms(w, LATER_MS), BATON_E_UNAVAILABLE);
	assert_false(w->watch->has_bookmarks);
}

/* An answer that shows an order or a pause before the watch does: who leads is told all the same,
 * because the watch's event is no news any more. */
static void test_news_in_answers(void **state)
{
	struct world *w = *state;
	struct baton_call call = in_ms(LATER_MS);
	struct baton_order order = {.id = 1, .term = 40, .kind = BATON_ORDER_RESIGN};

	lead(w);
	RULES(w,
	      {.says = "for=renew",
	       .status = 200,
	       .n_times = 1,
	       .answer = MINE_WITH("72", "baton/order", "{}")},
	      {.says = "for=renew",
	       .status = 200,
	       .n_times = 1,
	       .answer = MINE_WITH("73", "baton/order", "{}")},
	      {.says = "for=renew", .status = 200, .answer = MINE_WITH("74", "baton/paused", "1")},
	      {.says = "for=look", .status = 200, .n_times = 1, .answer = LIST(MINE("e"))},
	      {.says = "for=look", .status = 200, .answer = LIST("")});
	renew(w);
	assert_int_equal(hints_of(w), 1);
	renew(w); /* nothing has changed */
	assert_int_equal(hints_of(w), 0);
	renew(w);
	assert_int_equal(hints_of(w), 1);
	/* By a look that was for something else. */
	assert_int_equal(baton_driver.order(w->lane, &call, "e", &order), BATON_OUTCOME_REFUSED);
	assert_int_equal(hints_of(w), 1);
	assert_int_equal(baton_driver.order(w->lane, &call, "e", &order), BATON_OUTCOME_REFUSED);
	assert_int_equal(hints_of(w), 1);
}

/* ---- campaigns ---- */

static struct baton_campaign campaign(struct world *w, const char *name)
{
	static struct baton_record record;
	struct baton_call call = in_ms(LATER_MS);
	struct baton_campaign c = {
		.name = name, .nonce = 7, .profile.metadata = "", .record = &record};

	baton_driver.campaign(w->lane, &call, &w->lease, &c, 1);
	return c;
}

/* S3: the term of a Lease that is made anew is that Lease's own: where the store was before it was
 * made may be the term of one that came and went meanwhile. */
static void test_new_lease(void **state)
{
	struct world *w = *state;

	open_store(w, "");
	RULES(w, {.says = "GET", .status = 200, .answer = LIST("")},
	      {.says = "POST", .status = 201, .answer = LEASE("e", "95", "", "")},
	      {.says = "PATCH", .status = 200, .answer = MINE("e")});
	struct baton_campaign c = campaign(w, "e");

	assert_int_equal(c.outcome, BATON_OUTCOME_OK);
	assert_int_equal(c.term, 96);
	assert_int_equal(count(w, "POST"), 1);
	assert_int_equal(count(w, "\"spec\":{}"), 1); /* nobody's yet */
	assert_int_equal(count(w, "\"resourceVersion\":\"95\""), 1);
	assert_int_equal(count(w, "baton/claim\":\"ab-0-1 7 96"), 1);
	assert_int_equal(count(w, "GET"), 1);
	/* What can't be known to have been made is no claim. */
	RULES(w, {.says = "GET", .status = 200, .answer = LIST("")}, {.says = "POST"});
	c = campaign(w, "f");
	assert_int_equal(c.outcome, BATON_OUTCOME_FAILED);
	assert_int_equal(count(w, "POST"), 1);
	/* Somebody else has made it. */
	RULES(w, {.says = "POST", .status = 409, .answer = "{}"},
	      {.says = "GET", .status = 200, .n_times = 1, .answer = LIST("")},
	      {.says = "GET", .status = 200, .answer = LIST(OTHERS("g"))});
	c = campaign(w, "g");
	assert_int_equal(c.outcome, BATON_OUTCOME_REFUSED);
	assert_int_equal(c.record->term, 41);
	/* There is no such namespace. */
	RULES(w, {.says = "GET", .status = 200, .answer = LIST("")});
	c = campaign(w, "h");
	assert_int_equal(c.outcome, BATON_OUTCOME_FAILED);
	assert_int_equal(count(w, "POST"), 1);
}

/* ... nor does a pause begin with it. */
static void test_new_pause(void **state)
{
	struct world *w = *state;
	struct baton_call call = in_ms(LATER_MS);

	open_store(w, "");
	RULES(w, {.says = "GET", .status = 200, .answer = LIST("")},
	      {.says = "POST", .status = 201, .answer = LEASE("e", "95", "", "")});
	assert_int_equal(baton_driver.pause(w->lane, &call, "e", true), BATON_OUTCOME_OK);
	assert_int_equal(count(w, "baton/paused"), 1);
	assert_int_equal(count(w, "baton/term"), 0);
}

/* ---- claims that land late ---- */

#define FREE(name) LEASE(name, "70", ",\"annotations\":{\"baton/term\":\"40\"}", "")

static void note_claim(void *arg, const char *name, uint64_t nonce, uint64_t term)
{
	assert_string_equal(name, "e");
	assert_int_equal(nonce, 7);
	assert_int_equal(term, 41);
	++*(int *)arg;
}

/* L3: nobody else counts the claims on a process lease: as long as one may still land, they are
 * asked for with every renewal, also if its election has gone. */
static void test_late_claim(void **state)
{
	struct world *w = *state;
	struct baton_call call = in_ms(LATER_MS);
	uint32_t n_held = 0;
	int n_found = 0;

	open_store(w, "&process_lease=1");
	RULES(w, {.says = "for=open", .status = 201, .answer = "{}"},
	      {.says = "for=renew", .status = 200, .answer = "{}"},
	      {.says = "for=claims", .status = 200, .n_times = 1, .answer = LIST("")},
	      {.says = "for=claims", .status = 200, .answer = LIST(MINE("e"))},
	      {.says = "GET", .status = 200, .answer = LIST(FREE("e"))}, {.says = "for=campaign"});
	assert_int_equal(baton_driver.lease_open(w->lane, &call, &w->lease), BATON_OUTCOME_OK);
	assert_int_equal(baton_driver.lease_renew(w->lane, &call, &w->lease, &n_held),
			 BATON_OUTCOME_OK);
	assert_int_equal(n_held, 0);
	assert_int_equal(campaign(w, "e").outcome, BATON_OUTCOME_UNKNOWN);
	for (int i = 0; i < 2; i++) { /* it isn't there, and then it is */
		assert_int_equal(baton_driver.lease_renew(w->lane, &call, &w->lease, &n_held),
				 BATON_OUTCOME_OK);
		assert_int_equal(n_held, UINT32_MAX);
		assert_int_equal(
			baton_driver.claims(w->lane, &call, &w->lease, note_claim, &n_found),
			BATON_OUTCOME_OK);
		assert_int_equal(n_found, i);
	}
	store_of(w)->uses->doubt_ns = clock_boot_ns(); /* no more */
	assert_int_equal(baton_driver.lease_renew(w->lane, &call, &w->lease, &n_held),
			 BATON_OUTCOME_OK);
	assert_int_equal(n_held, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_lagging_watch), TEST(test_bookmarks), TEST(test_news_in_answers),
		TEST(test_new_lease),     TEST(test_new_pause), TEST(test_late_claim),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
