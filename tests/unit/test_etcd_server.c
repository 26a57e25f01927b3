/*
 * test_etcd_server.c: what the etcd driver does where members misbehave at just the wrong moment:
 * who has lost its cluster, who says nothing, who says what etcd never does. The servers say what a
 * test has written down (grpc_server.h).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "grpc_server.h"
#include "store/etcd/etcd.h"

extern const struct baton_driver baton_driver;

#define SOON_MS 300    /* what is meant to be late */
#define LATER_MS 20000 /* what is not */
#define LEASE 0x77
#define SERVERS_MAX 2
#define ANSWERS_MAX 12

struct world {
	struct grpc_answer answers[SERVERS_MAX][ANSWERS_MAX];
	struct bytes messages[SERVERS_MAX][ANSWERS_MAX];
	size_t n_answers[SERVERS_MAX];
	struct grpc_server *servers[SERVERS_MAX];
	struct etcd_store *store;
	struct etcd_lane *lane;
	struct baton_lease lease;
};

/* ---- what servers say ---- */

static void put_header(struct bytes *b, uint64_t revision, uint64_t raft_term)
{
	size_t header = proto_begin(b, ETCD_HEADER);

	proto_put_number(b, ETCD_HEADER_REVISION, revision);
	if (raft_term != 0)
		proto_put_number(b, ETCD_HEADER_RAFT_TERM, raft_term);
	proto_end(b, header);
}

/* The next answer of that server: a message, which begins with a header. */
static struct bytes *says(struct world *w, int server, uint64_t revision)
{
	size_t i = w->n_answers[server]++;

	w->answers[server][i].status = "0";
	put_header(&w->messages[server][i], revision, 5);
	return &w->messages[server][i];
}

static struct grpc_answer *fails(struct world *w, int server, const char *status, const char *words)
{
	struct grpc_answer *a = &w->answers[server][w->n_answers[server]++];

	a->status = status;
	a->words = words;
	return a;
}

static void is_mute(struct world *w, int server)
{
	(void)fails(w, server, NULL, NULL);
}

/* ---- the world ---- */

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	w->lease = (struct baton_lease){
		.id = "a-1-1", .ttl_ns = 9 * CLOCK_NS_PER_S, .owner = "me", .address = ""};
	*state = w;
	return 0;
}

/* After all has been written down: as many members as have something to say. */
static void begin(struct world *w, const char *user)
{
	char url[200];
	int n = snprintf(url, sizeof(url), "etcd://%s", user);
	struct baton_error err = {0};

	for (int i = 0; i < SERVERS_MAX && (i == 0 || w->n_answers[i] > 0); i++) {
		for (size_t k = 0; k < w->n_answers[i]; k++) {
			w->answers[i][k].message = w->messages[i][k].at;
			w->answers[i][k].n = w->messages[i][k].n;
		}
		w->servers[i] = grpc_server_says(w->answers[i], w->n_answers[i]);
		assert_non_null(w->servers[i]);
		n += snprintf(url + n, sizeof(url) - (size_t)n, "%s127.0.0.1:%u", i > 0 ? "," : "",
			      grpc_server_port(w->servers[i]));
	}
	struct baton_store_config config = {.size = sizeof(config), .url = url};

	assert_int_equal(baton_driver.open(&config, (void **)&w->store, &err), BATON_OK);
	assert_int_equal(
		baton_driver.lane_open(w->store, BATON_LANE_CAMPAIGN, (void **)&w->lane, &err),
		BATON_OK);
	atomic_store(&w->store->web.turn, 0); /* the first one */
	struct web_lease lease = {.id = "a-1-1", .number = LEASE};

	assert_true(web_lease_note(&w->store->web, &lease));
}

static int teardown(void **state)
{
	struct world *w = *state;

	if (w->store != NULL) {
		baton_driver.lane_close(w->lane);
		baton_driver.close(w->store);
	}
	for (int i = 0; i < SERVERS_MAX; i++) {
		if (w->servers[i] != NULL)
			grpc_server_free(w->servers[i]);
		for (size_t k = 0; k < ANSWERS_MAX; k++)
			bytes_done(&w->messages[i][k]);
	}
	free(w);
	return 0;
}

static struct baton_call in_ms(uint64_t ms)
{
	return (struct baton_call){.deadline_ns = clock_boot_ns() + ms * CLOCK_NS_PER_MS};
}

static void heard(const struct world *w, unsigned first, unsigned second)
{
	assert_int_equal(grpc_server_requests(w->servers[0]), first);
	if (w->servers[1] != NULL)
		assert_int_equal(grpc_server_requests(w->servers[1]), second);
}

static unsigned turn_of(const struct world *w)
{
	return atomic_load(&w->store->web.turn);
}

/* A read that any member can answer. */
static int reads(struct world *w, struct baton_call *call)
{
	struct etcd_key key = etcd_lease_key(w->store, 1, "");

	etcd_ask_range(etcd_begin(w->lane), &key, NULL, 0, true);
	return etcd_tell(w->lane, call, &etcd_range);
}

/* ---- members ---- */

/* A learner lets nobody in, nor does one that has lost its cluster: the next one does. */
static void test_login_elsewhere(void **state)
{
	struct world *w = *state;
	struct baton_call call = in_ms(LATER_MS);

	fails(w, 0, "14", "etcdserver: rpc not supported for learner");
	proto_put_text(says(w, 1, 7), ETCD_AUTH_TOKEN, "token");
	says(w, 1, 7);
	begin(w, "me:secret@");
	assert_int_equal(reads(w, &call), BATON_OUTCOME_OK);
	heard(w, 1, 2);
	assert_int_equal(turn_of(w), 1);
}

/* But a wrong password is wrong everywhere. */
static void test_login_denied(void **state)
{
	struct world *w = *state;
	struct baton_call call = in_ms(LATER_MS);

	fails(w, 0, "3", "etcdserver: authentication failed, invalid user ID or password");
	says(w, 1, 7);
	begin(w, "me:secret@");
	assert_int_equal(reads(w, &call), BATON_OUTCOME_FAILED);
	assert_int_equal(call.error.code, BATON_E_DENIED);
	heard(w, 1, 0);
}

/* Rights change again while a new token is fetched: another one is, but not for ever. */
static void test_login_again(void **state)
{
	struct world *w = *state;
	struct baton_call call = in_ms(LATER_MS);

	for (int i = 0; i < 4; i++) {
		proto_put_text(says(w, 0, 7), ETCD_AUTH_TOKEN, "token");
		fails(w, 0, "3", "etcdserver: revision of auth store is old");
	}
	proto_put_text(says(w, 0, 7), ETCD_AUTH_TOKEN, "token");
	says(w, 0, 7);
	begin(w, "me:secret@");
	assert_int_equal(reads(w, &call), BATON_OUTCOME_OK);
	heard(w, 10, 0);
	teardown(state);
	setup(state);
	w = *state;
	call = in_ms(LATER_MS);
	for (int i = 0; i < 6; i++) {
		proto_put_text(says(w, 0, 7), ETCD_AUTH_TOKEN, "token");
		fails(w, 0, "3", "etcdserver: revision of auth store is old");
	}
	begin(w, "me:secret@");
	assert_int_equal(reads(w, &call), BATON_OUTCOME_FAILED);
	heard(w, 10, 0);
}

static void test_long_token(void **state)
{
	struct world *w = *state;
	struct baton_call call = in_ms(LATER_MS);
	char token[2001];

	memset(token, 'x', sizeof(token) - 1);
	token[sizeof(token) - 1] = '\0';
	proto_put_text(says(w, 0, 7), ETCD_AUTH_TOKEN, token);
	says(w, 0, 7);
	begin(w, "me:secret@");
	assert_int_equal(reads(w, &call), BATON_OUTCOME_OK);
	assert_string_equal(w->lane->token, token);
	heard(w, 2, 0);
}

static void move_on(void *arg)
{
	struct world *w = arg;

	web_move_on(&w->store->web, 0);
}

/* Another lane has left the member meanwhile: the one that it went to isn't left with it. */
static void test_turn(void **state)
{
	static const char *const status[] = {"14", "2"};

	for (size_t i = 0; i < 2; i++) {
		struct world *w = *state;
		struct baton_call call = in_ms(LATER_MS);
		struct grpc_answer *a = fails(w, 0, status[i], "etcdserver: request timed out");

		a->before = move_on;
		a->arg = w;
		says(w, 1, 7);
		begin(w, "");
		assert_int_equal(reads(w, &call), BATON_OUTCOME_UNKNOWN);
		assert_int_equal(turn_of(w), 1);
		assert_int_equal(reads(w, &call), BATON_OUTCOME_OK);
		heard(w, 1, 1);
		teardown(state);
		setup(state);
	}
}

/* ---- deadlines ---- */

/* Nothing is asked that nobody waits for, and nobody is blamed for it. */
static void test_no_time(void **state)
{
	struct world *w = *state;
	struct baton_call call = in_ms(0);

	says(w, 0, 7);
	says(w, 1, 7);
	begin(w, "");
	assert_int_equal(reads(w, &call), BATON_OUTCOME_FAILED);
	assert_int_equal(call.error.code, BATON_E_TIMEOUT);
	assert_int_equal(turn_of(w), 0);
	heard(w, 0, 0);
}

#define MANY (3 * ETCD_CHUNK)

static void campaign(struct world *w, struct baton_campaign *list, size_t n, uint64_t floor,
		     struct baton_call *call)
{
	static struct baton_record records[MANY];
	static char names[MANY][24];

	for (size_t i = 0; i < n; i++) {
		snprintf(names[i], sizeof(names[i]), "e%zu", i);
		list[i] = (struct baton_campaign){.name = names[i],
						  .nonce = i + 1,
						  .floor = floor,
						  .profile = {.metadata = ""},
						  .record = &records[i]};
	}
	etcd_campaign(w->lane, call, &w->lease, list, n);
}

/* One part of a batch has no answer: the others weren't asked, and so have surely failed. */
static void test_late_batch(void **state)
{
	static struct baton_campaign list[MANY];
	struct world *w = *state;
	struct baton_call call = in_ms(SOON_MS);

	is_mute(w, 0);
	is_mute(w, 1);
	begin(w, "");
	campaign(w, list, MANY, 0, &call);
	for (size_t i = 0; i < MANY; i++)
		assert_int_equal(list[i].outcome,
				 i < ETCD_CHUNK ? BATON_OUTCOME_UNKNOWN : BATON_OUTCOME_FAILED);
	assert_int_equal(list[MANY - 1].code, BATON_E_TIMEOUT);
	assert_int_equal(turn_of(w), 1);
	heard(w, 1, 0);
}

/* ---- leases ---- */

static int renews(struct world *w, uint64_t raft_term)
{
	struct baton_call call = in_ms(LATER_MS);
	uint32_t n_held;
	int outcome;

	for (int i = 0; i < 2; i++) {
		struct bytes *b = &w->messages[0][w->n_answers[0]];

		w->answers[0][w->n_answers[0]++].status = "0";
		put_header(b, 9, raft_term);
		proto_put_number(b, i == 0 ? ETCD_LEASE_TTL : ETCD_RANGE_COUNT, 9);
	}
	begin(w, "");
	outcome = etcd_lease_renew(w->lane, &call, &w->lease, &n_held);
	assert_int_equal(n_held, outcome == BATON_OUTCOME_OK ? 8 : 0);
	return outcome;
}

static void test_renewal(void **state)
{
	assert_int_equal(renews(*state, 5), BATON_OUTCOME_OK);
}

/* Two members that tell no raft term agree on nothing. */
static void test_no_raft_term(void **state)
{
	assert_int_equal(renews(*state, 0), BATON_OUTCOME_UNKNOWN);
}

/* A lease that came to nothing, with no time left to end it, is ended by the next. */
static void test_half_open(void **state)
{
	struct world *w = *state;
	struct baton_call call = in_ms(SOON_MS);
	struct baton_lease lease = {.id = "b-1-1", .ttl_ns = 9 * CLOCK_NS_PER_S, .owner = "me"};
	struct web_lease noted;

	for (int i = 0; i < 2; i++) {
		if (i == 1) {
			says(w, 0, 9); /* what the first carries */
			says(w, 0, 9); /* its revocation */
		}
		says(w, 0, 9); /* which raft term it is */
		struct bytes *b = says(w, 0, 9);

		proto_put_number(b, ETCD_LEASE_ID, (uint64_t)i + 1);
		proto_put_number(b, ETCD_LEASE_TTL, 9);
		if (i == 0)
			is_mute(w, 0);
	}
	says(w, 0, 9);
	begin(w, "");
	assert_int_equal(etcd_lease_open(w->lane, &call, &lease), BATON_OUTCOME_UNKNOWN);
	assert_true(web_lease_get(&w->store->web, "b-1-1", &noted));
	assert_int_equal(noted.number, 1);
	call = in_ms(LATER_MS);
	snprintf(lease.id, sizeof(lease.id), "b-1-2");
	assert_int_equal(etcd_lease_open(w->lane, &call, &lease), BATON_OUTCOME_OK);
	assert_false(web_lease_get(&w->store->web, "b-1-1", &noted));
	assert_int_equal(etcd_lease_number(w->store, "b-1-2"), 2);
	assert_int_equal(etcd_lease_raft_term(w->store, "b-1-2"), 5);
	heard(w, 8, 0);
}

/* A close that fails is tried again, and needs the number; the last one doesn't. */
static void test_last_close(void **state)
{
	struct world *w = *state;
	struct baton_call call = in_ms(LATER_MS);
	struct web_lease noted;

	for (int i = 0; i < 4; i++) /* what it carries, and its revocation */
		(void)fails(w, 0, "13", "not now");
	begin(w, "");
	assert_int_not_equal(etcd_lease_close(w->lane, &call, &w->lease), BATON_OUTCOME_OK);
	assert_true(web_lease_get(&w->store->web, w->lease.id, &noted));
	call = in_ms(LATER_MS);
	call.is_last = true;
	assert_int_not_equal(etcd_lease_close(w->lane, &call, &w->lease), BATON_OUTCOME_OK);
	assert_false(web_lease_get(&w->store->web, w->lease.id, &noted));
}

/* ---- campaigns ---- */

static void put_won(struct bytes *b, bool is_won)
{
	size_t response = proto_begin(b, ETCD_TXN_RESPONSES);
	size_t txn = proto_begin(b, ETCD_OP_TXN);

	proto_put_number(b, ETCD_TXN_SUCCEEDED, is_won);
	proto_end(b, txn);
	proto_end(b, response);
}

/* Who has seen no term needs no question before the first campaign. */
static void test_first_campaign(void **state)
{
	struct world *w = *state;
	struct baton_call call = in_ms(LATER_MS);
	struct baton_campaign c;

	put_won(says(w, 0, 42), true);
	begin(w, "");
	campaign(w, &c, 1, 0, &call);
	assert_int_equal(c.outcome, BATON_OUTCOME_OK);
	assert_int_equal(c.term, 42);
	heard(w, 1, 0);
}

/* Who has seen one asks where the cluster is, and has written nothing if nobody answers. */
static void test_failed_read(void **state)
{
	struct world *w = *state;
	struct baton_call call = in_ms(SOON_MS);
	struct baton_campaign c;

	is_mute(w, 0);
	begin(w, "");
	campaign(w, &c, 1, 7, &call);
	assert_int_equal(c.outcome, BATON_OUTCOME_FAILED);
	assert_int_equal(c.code, BATON_E_TIMEOUT);
	heard(w, 1, 0);
}

/* ---- claims ---- */

struct found {
	size_t n;
	uint64_t nonces; /* their sum */
	uint64_t term;   /* of the last one */
};

static void found_one(void *arg, const char *name, uint64_t nonce, uint64_t term)
{
	struct found *f = arg;

	assert_int_equal(name[0], 'e');
	f->n++;
	f->nonces += nonce;
	f->term = term;
}

static void put_kv(struct bytes *b, unsigned field, const struct etcd_key *key, uint64_t revision,
		   const char *value)
{
	size_t kv = proto_begin(b, field);

	proto_put_text(b, ETCD_KV_KEY, key->text);
	proto_put_number(b, ETCD_KV_CREATE, revision);
	proto_put_number(b, ETCD_KV_MOD, revision);
	proto_put_text(b, ETCD_KV_VALUE, value);
	proto_end(b, kv);
}

/* "e0" and so on, created in revision 100 and so on, as the lease has them. */
static void put_page(struct bytes *b, size_t n)
{
	static struct etcd_store keys = {.options = {.prefix = "baton"}};
	struct etcd_key key = etcd_lease_key(&keys, LEASE, "");
	char text[64];

	put_kv(b, ETCD_RANGE_KVS, &key, 1, "me");
	for (size_t i = 0; i < n; i++) {
		snprintf(text, sizeof(text), "e%zu", i);
		key = etcd_lease_key(&keys, LEASE, text);
		snprintf(text, sizeof(text), "%zu 0", i);
		put_kv(b, ETCD_RANGE_KVS, &key, 100 + i, text);
	}
}

/* A claim as it stands itself; revision 0: it doesn't. */
static void put_claim(struct bytes *b, uint64_t revision)
{
	struct etcd_key key = {.text = "baton/e/77"};
	size_t response = proto_begin(b, ETCD_TXN_RESPONSES);
	size_t range = proto_begin(b, ETCD_OP_RANGE);

	if (revision != 0)
		put_kv(b, ETCD_RANGE_KVS, &key, revision, "");
	proto_end(b, range);
	proto_end(b, response);
}

/* A range of which only the number of keys was asked. */
static void put_count(struct bytes *b, uint64_t n)
{
	size_t response = proto_begin(b, ETCD_TXN_RESPONSES);
	size_t range = proto_begin(b, ETCD_OP_RANGE);

	proto_put_number(b, ETCD_RANGE_COUNT, n);
	proto_end(b, range);
	proto_end(b, response);
}

/* We have won it, and were told so. */
static void knows(struct world *w, size_t i)
{
	struct etcd_known k = {.claim_mod = 100 + i};
	char name[24];

	snprintf(name, sizeof(name), "e%zu", i);
	assert_true(web_index_add(w->store->web.watches, name, i));
	etcd_known_set(w->store, name, &k);
}

#define CLAIMS 4000

/* L3: how long it takes must not grow with the claims that we know; those that we don't know are
 * looked at, and are known then. */
static void test_many_claims(void **state)
{
	struct world *w = *state;
	struct baton_call call = in_ms(LATER_MS);
	struct found f = {0};

	put_page(says(w, 0, 9000), CLAIMS);
	put_claim(says(w, 0, 9000), 100);
	put_page(says(w, 0, 9000), CLAIMS);
	begin(w, "");
	for (size_t i = 1; i < CLAIMS; i++)
		knows(w, i);
	assert_true(web_index_add(w->store->web.watches, "e0", 0));
	assert_int_equal(etcd_claims(w->lane, &call, &w->lease, found_one, &f), BATON_OUTCOME_OK);
	assert_int_equal(f.n, CLAIMS);
	assert_int_equal(f.nonces, CLAIMS * (CLAIMS - 1) / 2);
	heard(w, 2, 0);
	f = (struct found){0};
	assert_int_equal(etcd_claims(w->lane, &call, &w->lease, found_one, &f), BATON_OUTCOME_OK);
	assert_int_equal(f.n, CLAIMS);
	heard(w, 3, 0);
}

/* One that was taken away by hand is none, and is swept away. */
static void test_stale_claim(void **state)
{
	struct world *w = *state;
	struct baton_call call = in_ms(LATER_MS);
	struct found f = {0};

	put_page(says(w, 0, 9000), 2);
	struct bytes *b = says(w, 0, 9000);

	put_claim(b, 0);
	put_claim(b, 101);
	says(w, 0, 9000);
	begin(w, "");
	assert_int_equal(etcd_claims(w->lane, &call, &w->lease, found_one, &f), BATON_OUTCOME_OK);
	assert_int_equal(f.n, 1);
	assert_int_equal(f.term, 101);
	heard(w, 3, 0);
}

/* Who has seen that its claim is gone doesn't know it any more. */
static void test_lost_claim(void **state)
{
	struct world *w = *state;
	struct baton_call call = in_ms(LATER_MS);
	struct baton_record record;
	struct baton_observation look = {.name = "e0", .lease_id = "", .id = "", .record = &record};
	struct found f = {0};
	struct bytes *b = says(w, 0, 9000);

	put_claim(b, 0);
	put_claim(b, 0);
	put_count(b, 0);
	put_page(says(w, 0, 9000), 1);
	put_claim(says(w, 0, 9000), 0);
	says(w, 0, 9000);
	begin(w, "");
	knows(w, 0);
	etcd_observe(w->lane, &call, &look, 1);
	assert_int_equal(look.outcome, BATON_OUTCOME_OK);
	assert_false(record.held);
	assert_int_equal(etcd_claims(w->lane, &call, &w->lease, found_one, &f), BATON_OUTCOME_OK);
	assert_int_equal(f.n, 0);
	heard(w, 4, 0);
}

/* L4: a look says how many candidates there are, in the same request. */
static void test_crowd(void **state)
{
	struct world *w = *state;
	struct baton_call call = in_ms(LATER_MS);
	struct baton_record record = {.held = false};
	struct baton_observation look = {.name = "e", .lease_id = "", .id = "", .record = &record};

	static const uint64_t counts[] = {100, UINT64_MAX};

	for (size_t i = 0; i < 2; i++) {
		struct bytes *b = says(w, 0, 9000);

		put_claim(b, 100);
		put_claim(b, 0);
		put_count(b, counts[i]);
	}
	begin(w, "");
	assert_true(web_index_add(w->store->web.watches, "e", 42));
	web_index_set_live(w->store->web.watches, true);
	etcd_observe(w->lane, &call, &look, 1);
	assert_int_equal(look.outcome, BATON_OUTCOME_OK);
	assert_true(record.held && record.watched);
	assert_int_equal(record.n_candidates, 100);
	heard(w, 1, 0);
	etcd_observe(w->lane, &call, &look, 1);
	assert_int_equal(look.outcome, BATON_OUTCOME_OK);
	assert_int_equal(record.n_candidates, UINT32_MAX);
	heard(w, 2, 0);
}

/* Fewer answers than questions: nothing of it counts, and nothing is swept away. */
static void test_short_answer(void **state)
{
	struct world *w = *state;
	struct baton_call call = in_ms(LATER_MS);
	struct found f = {0};

	put_page(says(w, 0, 9000), 2);
	put_claim(says(w, 0, 9000), 100);
	says(w, 0, 9000);
	begin(w, "");
	assert_int_equal(etcd_claims(w->lane, &call, &w->lease, found_one, &f),
			 BATON_OUTCOME_UNKNOWN);
	assert_int_equal(call.error.code, BATON_E_CORRUPT);
	assert_int_equal(f.n, 0);
	heard(w, 2, 0);
}

/* ---- watches ---- */

static int open_watch(void *lane, struct baton_call *call)
{
	(void)etcd_begin(lane);
	return etcd_listen(lane, call);
}

static int hear(void *l, struct baton_call *call, const struct http_reply *reply)
{
	struct web_lane *lane = l;

	(void)call;
	(void)reply;
	web_index_set_live(lane->store->watches, true);
	return 0;
}

static void lost(void *l)
{
	web_watch_break(l);
}

/* A watch that may be deaf is asked for anew, without a word, and nobody has to look. */
static void test_silence(void **state)
{
	static const struct web_watch watch = {.service = "etcd",
					       .silence_ns = SOON_MS * CLOCK_NS_PER_MS,
					       .may_be_silent = true,
					       .open = open_watch,
					       .hear = hear,
					       .lost = lost};
	struct world *w = *state;
	struct baton_call call = in_ms(LATER_MS);
	uint64_t cookie = 0;

	for (size_t i = 0; i < 2; i++) {
		says(w, 0, 7);
		w->answers[0][i].goes_on = true;
	}
	begin(w, "");
	assert_true(web_index_add(w->store->web.watches, "e", 42));
	assert_int_equal(web_watch_wait(&w->lane->web, &watch, &call, &cookie, 1), 1);
	assert_int_equal(cookie, 42);
	heard(w, 1, 0);
	call = in_ms(SOON_MS + SOON_MS / 2);
	assert_int_equal(web_watch_wait(&w->lane->web, &watch, &call, &cookie, 1), 0);
	assert_true(web_index_is_live(w->store->web.watches));
	heard(w, 2, 0);
}

/* One that doesn't even begin is broken, long before silence would tell. */
static void test_no_watch(void **state)
{
	static const struct web_watch watch = {.service = "etcd",
					       .silence_ns = 2 * LATER_MS * CLOCK_NS_PER_MS,
					       .answer_ns = SOON_MS * CLOCK_NS_PER_MS,
					       .may_be_silent = true,
					       .open = open_watch,
					       .hear = hear,
					       .lost = lost};
	struct world *w = *state;
	struct baton_call call = in_ms(LATER_MS);
	uint64_t cookie = 0;

	is_mute(w, 0);
	says(w, 1, 7);
	begin(w, "");
	assert_int_equal(web_watch_wait(&w->lane->web, &watch, &call, &cookie, 1),
			 BATON_E_UNAVAILABLE);
	assert_int_equal(turn_of(w), 1);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_login_elsewhere), CASE(test_login_denied),   CASE(test_login_again),
		CASE(test_long_token),      CASE(test_turn),           CASE(test_no_time),
		CASE(test_late_batch),      CASE(test_renewal),        CASE(test_no_raft_term),
		CASE(test_half_open),       CASE(test_first_campaign), CASE(test_last_close),
		CASE(test_failed_read),     CASE(test_many_claims),    CASE(test_stale_claim),
		CASE(test_short_answer),    CASE(test_silence),        CASE(test_lost_claim),
		CASE(test_no_watch),        CASE(test_crowd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
