/*
 * test_record.c: the layer of the record stores, on records in memory, with faults in front of
 * them: how many requests each verb takes, what becomes of claims whose answer was lost, came twice
 * or landed late, and what is tidied up.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "record/faults.h"
#include "store/record/layer.h"

#define LEASE_NS (60 * CLOCK_NS_PER_S)

extern const struct record_adapter *const baton_driver_adapter; /* of tests/record/memory.c */

static struct record_adapter adapter;
static struct faults faults;

/* A process with its lease. */
struct party {
	void *store;
	void *lane;
	void *watch;
	struct baton_lease lease;
};

static struct baton_call a_call(void)
{
	return (struct baton_call){.deadline_ns = clock_boot_ns() + 10 * CLOCK_NS_PER_S};
}

static void party_open(struct party *p, const char *options, const char *id)
{
	char url[200];
	struct baton_store_config config = {.size = sizeof(config), .url = url};
	struct baton_call call = a_call();

	snprintf(url, sizeof(url), "memory+record:unit?poll=100%s", options);
	assert_int_equal(record_driver_open(&adapter, &config, &p->store, NULL), 0);
	assert_int_equal(record_driver_lane_open(p->store, BATON_LANE_CAMPAIGN, &p->lane, NULL), 0);
	assert_int_equal(record_driver_lane_open(p->store, BATON_LANE_WATCH, &p->watch, NULL), 0);
	p->lease = (struct baton_lease){.ttl_ns = LEASE_NS, .owner = id, .address = ""};
	snprintf(p->lease.id, sizeof(p->lease.id), "%s-0-1", id);
	assert_int_equal(record_driver_lease_open(p->lane, &call, &p->lease), BATON_OUTCOME_OK);
}

static void party_close(struct party *p)
{
	record_driver_lane_close(p->lane);
	record_driver_lane_close(p->watch);
	record_driver_close(p->store);
}

static uint64_t n_calls(void)
{
	return atomic_load(&faults.calls[FAULTS_ANY]);
}

static int campaign(struct party *p, const char *name, uint64_t nonce, struct baton_record *record)
{
	struct baton_call call = a_call();
	struct baton_record spare = {.term = 0};
	struct baton_campaign c = {.name = name,
				   .nonce = nonce,
				   .profile = {.metadata = ""},
				   .record = record != NULL ? record : &spare};

	record_driver_campaign(p->lane, &call, &p->lease, &c, 1);
	return c.outcome;
}

static int release(struct party *p, const char *name, uint64_t nonce, uint64_t term)
{
	struct baton_call call = a_call();
	struct baton_release r = {.name = name,
				  .lease_id = p->lease.id,
				  .nonce = nonce,
				  .term = term,
				  .reason = "test"};

	record_driver_release(p->lane, &call, &r, 1);
	return r.outcome;
}

struct found {
	unsigned n;
	char name[BATON_NAME_MAX + 1];
	uint64_t nonce;
	uint64_t term;
};

static void found_claim(void *arg, const char *name, uint64_t nonce, uint64_t term)
{
	struct found *f = arg;

	f->n++;
	snprintf(f->name, sizeof(f->name), "%s", name);
	f->nonce = nonce;
	f->term = term;
}

static int claims(struct party *p, struct found *f)
{
	struct baton_call call = a_call();

	*f = (struct found){0};
	return record_driver_claims(p->lane, &call, &p->lease, found_claim, f);
}

static uint32_t renew(struct party *p)
{
	struct baton_call call = a_call();
	uint32_t n_held = UINT32_MAX;

	assert_int_equal(record_driver_lease_renew(p->lane, &call, &p->lease, &n_held),
			 BATON_OUTCOME_OK);
	return n_held;
}

static void observe(struct party *p, const char *name, struct baton_record *record)
{
	struct baton_call call = a_call();
	struct baton_observation o = {
		.name = name, .lease_id = p->lease.id, .id = p->lease.owner, .record = record};

	record_driver_observe(p->lane, &call, &o, 1);
	assert_int_equal(o.outcome, BATON_OUTCOME_OK);
}

/* Until a hint for that cookie came. */
static void await_hint(struct party *p, uint64_t cookie)
{
	struct baton_call call = a_call();
	uint64_t cookies[8];
	bool is_there = false;

	while (!is_there) {
		int n = record_driver_watch_wait(p->watch, &call, cookies, 8);

		assert_true(n > 0);
		for (int i = 0; i < n; i++)
			is_there = is_there || cookies[i] == cookie;
	}
}

static int set_up(void **state)
{
	struct party *p = calloc(2, sizeof(*p));

	faults_heal(&faults);
	faults_wrap(baton_driver_adapter, &faults, &adapter);
	party_open(&p[0], "", "aa");
	party_open(&p[1], "", "bb");
	*state = p;
	return 0;
}

static int tear_down(void **state)
{
	struct party *p = *state;

	party_close(&p[0]);
	party_close(&p[1]);
	free(p);
	return 0;
}

/* ---- requests ---- */

static void test_requests(void **state)
{
	struct party *p = *state;
	struct baton_record record;
	struct found f;
	uint64_t n = n_calls();

	assert_int_equal(campaign(&p[0], "e", 1, NULL), BATON_OUTCOME_OK);
	assert_int_equal(n_calls() - n, 2); /* read, claim */
	n = n_calls();
	assert_int_equal(renew(&p[0]), 1);
	assert_int_equal(n_calls() - n, 1);
	n = n_calls();
	observe(&p[1], "e", &record);
	assert_int_equal(n_calls() - n, 2); /* the election, its lease */
	assert_true(record.held);
	assert_string_equal(record.leader, "aa");
	n = n_calls();
	assert_int_equal(claims(&p[0], &f), BATON_OUTCOME_OK);
	assert_int_equal(n_calls() - n, 1);
	assert_int_equal(f.n, 1);
	n = n_calls();
	assert_int_equal(release(&p[0], "e", 1, 1), BATON_OUTCOME_OK);
	assert_int_equal(n_calls() - n, 1); /* from the version that we wrote */
	assert_int_equal(renew(&p[0]), 0);
}

/* What is in sight and free is claimed without a read; a standby makes two requests per poll. */
static void test_requests_of_watch(void **state)
{
	struct party *p = *state;
	struct baton_record record;

	assert_int_equal(campaign(&p[0], "e", 1, NULL), BATON_OUTCOME_OK);
	assert_int_equal(record_driver_watch_add(p[1].watch, "e", 7), 0);
	await_hint(&p[1], 7);
	observe(&p[1], "e", &record);
	assert_true(record.watched);
	uint64_t n = n_calls();
	struct record_lane *lane = p[1].watch;

	lane->next_ns = 0;
	struct baton_call call = {.deadline_ns = clock_boot_ns() + 50 * CLOCK_NS_PER_MS};
	uint64_t cookies[8];

	assert_int_equal(record_driver_watch_wait(p[1].watch, &call, cookies, 8), 0);
	assert_int_equal(n_calls() - n, 2);
	assert_int_equal(release(&p[0], "e", 1, 1), BATON_OUTCOME_OK);
	await_hint(&p[1], 7);
	n = n_calls();
	assert_int_equal(campaign(&p[1], "e", 1, &record), BATON_OUTCOME_OK);
	assert_int_equal(n_calls() - n, 1);
	assert_true(record.watched);
}

static void test_batch(void **state)
{
	enum { N = 600 };
	struct party *p = *state;
	struct baton_call call = a_call();
	struct baton_campaign *list = calloc(N, sizeof(*list));
	struct baton_record *records = calloc(N, sizeof(*records));
	char(*names)[16] = calloc(N, sizeof(*names));
	struct found f;

	for (unsigned i = 0; i < N; i++) {
		snprintf(names[i], sizeof(names[i]), "n%u", i);
		list[i] = (struct baton_campaign){.name = names[i],
						  .nonce = i + 1,
						  .profile = {.metadata = ""},
						  .record = &records[i]};
	}
	uint64_t n = n_calls();

	record_driver_campaign(p[0].lane, &call, &p[0].lease, list, N);
	for (unsigned i = 0; i < N; i++)
		assert_int_equal(list[i].outcome, BATON_OUTCOME_OK);
	assert_int_equal(n_calls() - n, 6); /* three batches of a read and a write */
	assert_int_equal(renew(&p[0]), N);
	assert_int_equal(claims(&p[0], &f), BATON_OUTCOME_OK);
	assert_int_equal(f.n, N);
	/* A lease that ends frees them all, for whoever has waited for it: one tombstone. */
	struct record_store *s = p[1].store;

	record_driver_campaign(p[1].lane, &call, &p[1].lease, list, N);
	assert_int_equal(list[0].outcome, BATON_OUTCOME_REFUSED);
	store_lock(&s->base);
	record_seen_find(s, p[0].lease.id)->sight.since_ns -= LEASE_NS;
	store_unlock(&s->base);
	n = atomic_load(&faults.calls[FAULTS_OTHER]);
	record_driver_campaign(p[1].lane, &call, &p[1].lease, list, N);
	for (unsigned i = 0; i < N; i++)
		assert_int_equal(list[i].outcome, BATON_OUTCOME_OK);
	assert_int_equal(atomic_load(&faults.calls[FAULTS_OTHER]) - n, 1);
	assert_int_equal(list[0].term, 2);
	free(names);
	free(records);
	free(list);
}

/* ---- claims in doubt ---- */

/* The write of a claim suffers that; then claims() finds it, or not, and it never comes back. */
static void claim_suffers(struct party *p, int kind, unsigned n_found)
{
	struct baton_record record;
	struct found f;

	faults_set(&faults, FAULTS_CLAIM, kind, 1, 0);
	struct baton_call call = {.deadline_ns = clock_boot_ns() + 20 * CLOCK_NS_PER_MS};
	struct baton_campaign c = {
		.name = "e", .nonce = 5, .profile = {.metadata = ""}, .record = &record};

	record_driver_campaign(p->lane, &call, &p->lease, &c, 1);
	assert_int_equal(c.outcome, BATON_OUTCOME_UNKNOWN);
	assert_int_equal(renew(p), 0); /* nobody counts on it yet */
	assert_int_equal(claims(p, &f), BATON_OUTCOME_OK);
	assert_int_equal(f.n, n_found);
	assert_int_equal(renew(p), n_found);
	observe(p, "e", &record);
	assert_int_equal(record.held, n_found != 0);
	if (n_found != 0)
		assert_int_equal(release(p, "e", f.nonce, f.term), BATON_OUTCOME_OK);
}

static void test_answer_lost(void **state)
{
	claim_suffers(*state, FAULTS_MUTE, 1);
}

static void test_request_lost(void **state)
{
	claim_suffers(*state, FAULTS_HOLE, 0);
}

/* It lands right before the write that was to kill it, so that is what finds it. */
static void test_claim_lands_late(void **state)
{
	claim_suffers(*state, FAULTS_AFTER, 1);
}

static void test_claim_lands_twice(void **state)
{
	struct party *p = *state;
	struct found f;

	faults_set(&faults, FAULTS_CLAIM, FAULTS_DOUBLE, 1, 0);
	assert_int_equal(campaign(&p[0], "e", 5, NULL), BATON_OUTCOME_OK);
	assert_int_equal(claims(&p[0], &f), BATON_OUTCOME_OK);
	assert_int_equal(f.n, 1);
}

/* A conflict is no proof that nothing has landed. */
static void test_conflict(void **state)
{
	struct party *p = *state;
	struct found f;

	faults_set(&faults, FAULTS_CLAIM, FAULTS_CONFLICT, 1, 0);
	assert_int_equal(campaign(&p[0], "e", 5, NULL), BATON_OUTCOME_OK);
	assert_int_equal(claims(&p[0], &f), BATON_OUTCOME_OK);
	assert_int_equal(f.n, 1);
	assert_int_equal(f.nonce, 5);
}

static void test_renewal_after_lost_answer(void **state)
{
	struct party *p = *state;
	struct baton_call call = {.deadline_ns = clock_boot_ns() + 20 * CLOCK_NS_PER_MS};
	uint32_t n_held;

	faults_set(&faults, FAULTS_RENEW, FAULTS_MUTE, 1, 0);
	assert_int_equal(record_driver_lease_renew(p->lane, &call, &p->lease, &n_held),
			 BATON_OUTCOME_UNKNOWN);
	assert_int_equal(renew(p), 0);
}

/* S6, and a claim that was taken from outside is not counted for ever. */
static void test_foreign(void **state)
{
	struct party *p = *state;
	struct found f;

	assert_int_equal(campaign(&p[0], "e", 5, NULL), BATON_OUTCOME_OK);
	assert_int_equal(release(&p[1], "e", 5, 1), BATON_OUTCOME_REFUSED);
	assert_int_equal(release(&p[0], "e", 6, 1), BATON_OUTCOME_REFUSED);
	assert_int_equal(campaign(&p[0], "f", 5, NULL), BATON_OUTCOME_OK);
	struct record_lane *lane = p[1].lane;
	struct baton_call call = a_call();
	struct record_item item = {.key = "e/f"};

	record_get(lane, &call, &item, 1, true);
	record_drop(lane, &call, &item, 1);
	bytes_done(&item.value);
	assert_int_equal(item.outcome, BATON_OUTCOME_OK);
	assert_int_equal(renew(&p[0]), 1);
	assert_int_equal(claims(&p[0], &f), BATON_OUTCOME_OK);
	assert_int_equal(f.n, 0);
	assert_int_equal(renew(&p[0]), 0);
}

/* ---- the rest ---- */

static void test_push(void **state)
{
	struct party *p = *state;
	struct party q = {0};
	uint64_t n;

	party_open(&q, "&push=1", "cc");
	assert_int_equal(record_driver_watch_add(q.watch, "e", 9), 0);
	await_hint(&q, 9);
	struct record_lane *lane = q.watch;

	lane->next_ns = clock_boot_ns() + 3600 * CLOCK_NS_PER_S; /* it is not found by a poll */
	n = lane->next_ns;
	assert_int_equal(campaign(&p[0], "e", 1, NULL), BATON_OUTCOME_OK);
	await_hint(&q, 9);
	assert_int_equal(lane->next_ns, n);
	party_close(&q);
}

/* A store tells once that its watch stands: a look that fails doesn't make it tell so again. */
static void test_push_after_failed_look(void **state)
{
	struct party *p = *state;
	struct party q = {0};
	struct baton_call call = {.deadline_ns = clock_boot_ns() + 20 * CLOCK_NS_PER_S};
	uint64_t cookies[8];

	party_open(&q, "&push=1", "cc");
	assert_int_equal(record_driver_watch_add(q.watch, "e", 9), 0);
	await_hint(&q, 9);
	struct record_lane *lane = q.watch;

	lane->next_ns = 0;
	lane->is_all = true;
	faults_set(&faults, FAULTS_OTHER, FAULTS_FAIL, 1, 0);
	assert_true(record_driver_watch_wait(q.watch, &call, cookies, 8) < 0);
	assert_true(lane->is_standing);
	await_hint(&q, 9); /* it works again */
	assert_int_equal(campaign(&p[0], "e", 1, NULL), BATON_OUTCOME_OK);
	await_hint(&q, 9);
	party_close(&q);
}

/* Rows find the item with their key, and no other. */
static void test_rows(void **state)
{
	struct record_item items[] = {{.key = "e/b"}, {.key = "e/abc"}, {.key = "e/a"}};
	struct baton_call call = {.deadline_ns = 0};
	struct record_sorted sorted;
	size_t at = 9;

	(void)state;
	assert_true(record_sort(&sorted, &call, items, 3));
	assert_ptr_equal(record_sorted_find(&sorted, "e/a", 3, &at), &items[2]);
	assert_int_equal(at, 0);
	assert_ptr_equal(record_sorted_find(&sorted, "e/abcd", 5, &at), &items[1]);
	assert_int_equal(at, 1);
	assert_ptr_equal(record_sorted_find(&sorted, "e/b", 3, NULL), &items[0]);
	assert_null(record_sorted_find(&sorted, "e/ab", 4, NULL));
	assert_null(record_sorted_find(&sorted, "e/c", 3, NULL));
	assert_null(record_sorted_find(&sorted, "", 0, NULL));
	record_sorted_done(&sorted);
	assert_int_equal(record_row_version(NULL, 0).n, 0);
	assert_int_equal(record_row_version("12", 2).n, 2);
	assert_int_equal(record_row_age_ns("7"), 7000);
	assert_int_equal(record_row_age_ns(NULL), RECORD_NEVER);
}

/* An alarm: what it was asked, and what it rings for. */
static struct {
	unsigned n_calls;
	bool has_rung;
	char own[BATON_LEASE_ID_MAX + 1];
	char other[BATON_LEASE_ID_MAX + 1];
} alarm;

static void alarm_listen(void *lane, struct baton_call *call, const struct record_alarms *alarms,
			 record_changed *changed, void *arg)
{
	char key[BATON_LEASE_ID_MAX + 3];

	(void)lane;
	(void)call;
	alarm.n_calls++;
	alarm.has_rung = alarm.has_rung || alarms->rings;
	snprintf(alarm.own, sizeof(alarm.own), "%s", alarms->own != NULL ? alarms->own : "");
	for (size_t i = 0; i < alarms->n_others; i++) {
		snprintf(alarm.other, sizeof(alarm.other), "%s", alarms->others[i]);
		snprintf(key, sizeof(key), "l/%s", alarms->others[i]);
		changed(arg, key);
	}
}

static void sleep_once(const struct party *p)
{
	struct record_lane *lane = p->watch;
	struct baton_call call = {.deadline_ns = clock_boot_ns() + CLOCK_NS_PER_S};
	uint64_t cookies[8];
	unsigned n = alarm.n_calls;

	lane->next_ns = clock_boot_ns() + 3600 * CLOCK_NS_PER_S; /* nothing is found by a poll */
	while (alarm.n_calls == n)
		assert_true(record_driver_watch_wait(p->watch, &call, cookies, 8) >= 0);
}

/* Whoever leads has an alarm and rings it after a release; a standby hears the leader's. */
static void test_alarms(void **state)
{
	const struct record_adapter usual = adapter;
	struct party *p = *state;
	struct party q = {0};

	adapter.watch = NULL;
	adapter.listen = alarm_listen;
	party_open(&q, "&push=1", "cc");
	assert_int_equal(record_driver_watch_add(q.watch, "e", 9), 0);
	await_hint(&q, 9);
	sleep_once(&q);
	assert_string_equal(alarm.own, "");
	assert_int_equal(campaign(&q, "mine", 1, NULL), BATON_OUTCOME_OK);
	sleep_once(&q);
	assert_string_equal(alarm.own, q.lease.id);
	assert_false(alarm.has_rung);
	assert_int_equal(release(&q, "mine", 1, 1), BATON_OUTCOME_OK);
	sleep_once(&q);
	assert_true(alarm.has_rung);
	assert_int_equal(campaign(&p[0], "e", 1, NULL), BATON_OUTCOME_OK);
	/* Whom to listen to is also learned by a campaign. */
	assert_int_equal(campaign(&q, "e", 2, NULL), BATON_OUTCOME_REFUSED);
	sleep_once(&q);
	assert_string_equal(alarm.other, p[0].lease.id);
	assert_int_equal(release(&p[0], "e", 1, 1), BATON_OUTCOME_OK);
	await_hint(&q, 9); /* it rings, and what it rings for is read */
	party_close(&q);
	adapter = usual;
}

static void found_candidate(void *arg, const struct baton_candidate *candidate)
{
	unsigned *n = arg;

	(void)candidate;
	(*n)++;
}

static unsigned candidates(struct party *p, const char *name)
{
	struct baton_call call = a_call();
	unsigned n = 0;

	assert_int_equal(record_driver_candidates(p->lane, &call, name, found_candidate, &n),
			 BATON_OUTCOME_OK);
	return n;
}

/* So many that they need several pages, which go with the lease. */
static void test_candidates(void **state)
{
	enum { N = 300 };
	struct party *p = *state;
	struct baton_publication *list = calloc(N, sizeof(*list));
	char(*names)[64] = calloc(N, sizeof(*names));
	struct baton_call call = a_call();

	for (unsigned i = 0; i < N; i++) {
		snprintf(names[i], sizeof(names[i]), "an election with a long name, number %u", i);
		list[i] = (struct baton_publication){
			.name = names[i], .profile = {.metadata = "m", .is_healthy = true}};
	}
	record_driver_publish(p[0].lane, &call, &p[0].lease, list, N);
	record_driver_publish(p[1].lane, &call, &p[1].lease, list, 1);
	for (unsigned i = 0; i < N; i++)
		assert_int_equal(list[i].outcome, BATON_OUTCOME_OK);
	assert_int_equal(candidates(&p[1], names[0]), 2);
	assert_int_equal(candidates(&p[1], names[N - 1]), 1);
	assert_int_equal(record_driver_withdraw(p[0].lane, &call, &p[0].lease, names[N - 1]),
			 BATON_OUTCOME_OK);
	assert_int_equal(candidates(&p[1], names[N - 1]), 0);
	assert_int_equal(record_driver_lease_close(p[0].lane, &call, &p[0].lease),
			 BATON_OUTCOME_OK);
	assert_int_equal(candidates(&p[1], names[0]), 1);
	free(names);
	free(list);
}

/* Somebody deletes the record of a lease. */
static void delete_lease(struct party *p, const char *id)
{
	struct record_lane *lane = p->lane;
	struct record_key key = record_key_of(p->store, RECORD_LEASES, id);
	struct record_item item = {.key = key.text};
	struct baton_call call = a_call();

	record_get(lane, &call, &item, 1, true);
	bytes_done(&item.value);
	record_drop(lane, &call, &item, 1);
	assert_int_equal(item.outcome, BATON_OUTCOME_OK);
}

/* R4: whoever lists candidates doesn't know for how long a missing lease is to be waited for. */
static void test_candidate_without_lease(void **state)
{
	struct party *p = *state;
	struct baton_publication show = {.name = "e", .profile = {.metadata = ""}};
	struct baton_call call = a_call();
	struct record_store *s = p[1].store;

	record_driver_publish(p[0].lane, &call, &p[0].lease, &show, 1);
	assert_int_equal(campaign(&p[0], "e", 1, NULL), BATON_OUTCOME_OK);
	delete_lease(&p[1], p[0].lease.id);
	assert_int_equal(candidates(&p[1], "e"), 0);
	uint64_t calls = n_calls();

	assert_int_equal(campaign(&p[1], "e", 2, NULL), BATON_OUTCOME_REFUSED);
	assert_int_equal(n_calls() - calls, 3); /* the election, its lease, and that one fresh */
	store_lock(&s->base);
	assert_true(record_seen_find(s, p[0].lease.id)->sight.since_ns <= clock_boot_ns());
	record_seen_find(s, p[0].lease.id)->sight.since_ns -= LEASE_NS;
	store_unlock(&s->base);
	assert_int_equal(campaign(&p[1], "e", 3, NULL), BATON_OUTCOME_OK);
}

static void count_record(void *arg, const struct record_item *item)
{
	unsigned *n = arg;

	(void)item;
	(*n)++;
}

static unsigned n_records(struct party *p, const char *prefix)
{
	struct record_lane *lane = p->lane;
	struct baton_call call = a_call();
	unsigned n = 0;

	assert_int_equal(adapter.list(lane->lane, &call, prefix, false, count_record, &n),
			 BATON_OUTCOME_OK);
	return n;
}

static void test_sweep(void **state)
{
	struct party *p = *state;
	struct party q = {0};
	struct baton_publication show = {.name = "e", .profile = {.metadata = ""}};
	struct baton_call call = a_call();

	party_open(&q, "", "dd");
	record_driver_publish(q.lane, &call, &q.lease, &show, 1);
	assert_int_equal(show.outcome, BATON_OUTCOME_OK);
	assert_int_equal(campaign(&q, "e", 1, NULL), BATON_OUTCOME_OK);
	assert_int_equal(n_records(&q, "l/"), 3);
	/* A crash: its lease is over, which the one who takes over has proven. */
	struct record_store *s = p[0].store;

	assert_int_equal(campaign(&p[0], "e", 1, NULL), BATON_OUTCOME_REFUSED);
	store_lock(&s->base);
	record_seen_find(s, q.lease.id)->sight.since_ns -= LEASE_NS;
	store_unlock(&s->base);
	assert_int_equal(campaign(&p[0], "e", 2, NULL), BATON_OUTCOME_OK);
	assert_int_equal(n_records(&q, "l/"), 3);
	assert_int_equal(n_records(&q, "c/"), 1);
	record_sweep(p[1].watch, call.deadline_ns);
	assert_int_equal(n_records(&q, "l/"), 2);
	assert_int_equal(n_records(&q, "c/"), 0);
	assert_int_equal(n_records(&q, "e/"), 1);
	assert_int_equal(renew(&p[0]), 1);
	party_close(&q);
}

/* Longer than a key can be: a hash stands for it, and the name in the record is compared. */
static void test_long_names(void **state)
{
	struct party *p = *state;
	char name[BATON_NAME_MAX + 1];
	struct baton_record record;
	struct record_key key;

	adapter.key_max = RECORD_KEY_MIN;
	memset(name, '*', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	key = record_key_of(p[0].store, RECORD_ELECTIONS, name);
	assert_true(strlen(key.text) <= RECORD_KEY_MIN);
	assert_int_equal(campaign(&p[0], name, 1, NULL), BATON_OUTCOME_OK);
	observe(&p[1], name, &record);
	assert_string_equal(record.leader, "aa");
}

/* A server that ignores conditions gets no lease. */
static void ignore_conditions(void *lane, struct baton_call *call, struct record_item *items,
			      size_t n)
{
	const struct record_adapter *real = baton_driver_adapter;

	for (size_t i = 0; i < n; i++) {
		struct record_item now = {.key = items[i].key};

		real->get(*(void **)lane, call, &now, 1, true);
		items[i].version = now.version;
		bytes_done(&now.value);
	}
	real->put(*(void **)lane, call, items, n);
}

static void test_trial(void **state)
{
	struct party *p = *state;
	struct baton_call call = a_call();
	struct baton_lease lease = p[0].lease;

	(void)snprintf(lease.id, sizeof(lease.id), "ee-0-1");
	adapter.is_tried = true;
	assert_int_equal(record_driver_lease_open(p[0].lane, &call, &lease), BATON_OUTCOME_OK);
	assert_int_equal(n_records(p, "t/"), 0);
	adapter.put = ignore_conditions;
	(void)snprintf(lease.id, sizeof(lease.id), "ff-0-1");
	assert_int_equal(record_driver_lease_open(p[1].lane, &call, &lease), BATON_OUTCOME_FAILED);
	assert_int_equal(call.error.code, BATON_E_UNSUPPORTED);
}

/* A store that forgets: nobody wins while it is young, and terms follow its clock. */
static struct record_age store_age;

static int tell_age(void *lane, struct baton_call *call, struct record_age *age)
{
	(void)lane;
	(void)call;
	*age = store_age;
	return BATON_OUTCOME_OK;
}

static void test_weak(void **state)
{
	struct party *p = *state;
	struct record_store *s = p[0].store;
	struct baton_record record;

	adapter.age = tell_age;
	s->options.max_lease_ms = 30000;
	store_age = (struct record_age){.uptime_ns = 10 * CLOCK_NS_PER_S, .server_ms = 5000000};
	assert_int_equal(campaign(&p[0], "e", 1, &record), BATON_OUTCOME_REFUSED);
	assert_int_equal(record.free_in_ns, 20 * CLOCK_NS_PER_S);
	assert_true(record.wait[0] != '\0');
	store_age.uptime_ns = 30 * CLOCK_NS_PER_S;
	assert_int_equal(campaign(&p[0], "e", 2, &record), BATON_OUTCOME_OK);
	assert_int_equal(record.term, 5000000);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_requests),
		TEST(test_requests_of_watch),
		TEST(test_batch),
		TEST(test_answer_lost),
		TEST(test_request_lost),
		TEST(test_claim_lands_late),
		TEST(test_claim_lands_twice),
		TEST(test_conflict),
		TEST(test_renewal_after_lost_answer),
		TEST(test_foreign),
		TEST(test_push),
		TEST(test_push_after_failed_look),
		TEST(test_rows),
		TEST(test_alarms),
		TEST(test_candidates),
		TEST(test_candidate_without_lease),
		TEST(test_sweep),
		TEST(test_long_names),
		TEST(test_trial),
		TEST(test_weak),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
