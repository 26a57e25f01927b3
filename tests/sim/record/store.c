/*
 * store.c: records that can be compared and set, and the adapter that the layer is given.
 *
 * Each item of a call is a request of its own. It lands after a while, once, twice or never; its
 * answer takes a while, too. Whoever waits until the deadline hears UNKNOWN, and the request may
 * still land. A read that need not be fresh may show what the record was before.
 */
#include "sim.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OLD 3 /* how many states of a record are remembered */

/* One state of a record. serial 0: it was not there. */
struct state {
	uint64_t serial;
	struct bytes value;
};

struct record {
	struct record *next;
	struct state states[OLD]; /* the newest first */
	char key[RECORD_KEY_ROOM];
};

enum kind { KIND_GET, KIND_PUT, KIND_DROP };

struct request {
	LIST_ENTRY(request) of_all;
	struct coroutine *waits; /* NULL: nobody any more */
	struct record_item *item;
	struct errand errand;
	enum kind kind;
	bool is_old; /* KIND_GET: shows a state before the newest */
	uint64_t lands_ns[2];
	uint64_t answered_ns; /* NEVER: not yet known, or never */
	uint64_t answer_takes_ns;
	int answered_by; /* which landing's answer it is */
	int outcome;
	uint64_t expected;
	bool is_found;      /* it was carried out, or met another version */
	struct state found; /* then, and after what was written */
	struct bytes value;
	char key[RECORD_KEY_ROOM];
};

struct record_adapter sim_adapter;
struct lock locks[ELECTIONS];
struct record_election elections[ELECTIONS];

LIST_HEAD(requests, request);

static struct requests requests;
static struct record *records;
static uint64_t serial;
static uint64_t changes; /* below e/ */
static uint64_t began_ns;

/* ---- records ---- */

static struct record *record_find(const char *key, bool makes)
{
	struct record *r = records;

	while (r != NULL && strcmp(r->key, key) != 0)
		r = r->next;
	if (r != NULL || !makes)
		return r;
	r = calloc(1, sizeof(*r));
	if (r == NULL)
		abort();
	(void)snprintf(r->key, sizeof(r->key), "%s", key);
	r->next = records;
	records = r;
	return r;
}

static void bytes_copy(struct bytes *to, const struct bytes *from)
{
	bytes_clear(to);
	if (from->n > 0 && !bytes_add(to, from->at, from->n, from->n))
		abort();
}

static int election_of(const char *key)
{
	for (int e = 0; e < ELECTIONS; e++)
		if (strncmp(key, "e/", 2) == 0 && strcmp(key + 2, election_names[e]) == 0)
			return e;
	return -1;
}

/* What a write does is looked at before it is done. by NULL: by hand. */
static void judge(const struct errand *by, const struct record *r, const struct bytes *value)
{
	struct record_lease before;
	struct record_lease after;
	const struct state *now = &r->states[0];
	int e = election_of(r->key);

	if (e >= 0) {
		struct record_election next;

		record_no_election(&next, election_names[e]);
		if (value != NULL && record_parse_election(value->at, value->n, &next) != 0)
			rule_break(RULE_WORLD);
		if (by != NULL)
			rules_election(by, e, now->serial != 0 ? &elections[e] : NULL,
				       value != NULL ? &next : NULL);
		elections[e] = next;
	} else if (strncmp(r->key, "l/", 2) == 0 && by != NULL) {
		if (now->serial != 0 &&
		    record_parse_lease(now->value.at, now->value.n, &before) != 0)
			rule_break(RULE_WORLD);
		if (value != NULL && record_parse_lease(value->at, value->n, &after) != 0)
			rule_break(RULE_WORLD);
		rules_lease(by, r->key + 2, now->serial != 0 ? &before : NULL,
			    value != NULL ? &after : NULL);
	}
}

/* Alarms and pushes: whoever sleeps on its watch lane. */
static void ring(void)
{
	changes++;
	for (int i = 0; i < CANDS; i++) {
		const struct cand *cand = world.cands[i];

		if (cand != NULL && (world.params.pushes || world_random(2) == 0) &&
		    cand->coroutines[BATON_LANE_WATCH] != NULL)
			wake(cand->coroutines[BATON_LANE_WATCH]);
	}
}

static void record_change(struct record *r, const struct bytes *value)
{
	struct bytes oldest = r->states[OLD - 1].value;

	(void)memmove(&r->states[1], &r->states[0], (OLD - 1) * sizeof(r->states[0]));
	r->states[0] = (struct state){.serial = value != NULL ? ++serial : 0, .value = oldest};
	bytes_clear(&r->states[0].value);
	if (value != NULL)
		bytes_copy(&r->states[0].value, value);
	if (r->key[0] == 'e')
		ring();
}

bool store_delete(const char *key)
{
	struct record *r = record_find(key, false);

	if (r == NULL || r->states[0].serial == 0)
		return false;
	judge(NULL, r, NULL);
	record_change(r, NULL);
	return true;
}

void store_forget(void)
{
	for (struct record *r = records; r != NULL; r = r->next)
		if (r->states[0].serial != 0)
			(void)store_delete(r->key);
	began_ns = world.now_ns;
}

int store_lease(const char *id)
{
	char key[RECORD_KEY_ROOM];
	struct record_lease lease;

	(void)snprintf(key, sizeof(key), "l/%s", id);
	const struct record *r = record_find(key, false);

	if (r == NULL || r->states[0].serial == 0 ||
	    record_parse_lease(r->states[0].value.at, r->states[0].value.n, &lease) != 0)
		return 0;
	return lease.death == RECORD_ALIVE ? 1 : 2;
}

/* ---- requests ---- */

static uint64_t takes_ns(void)
{
	return 1000 + world_random(world.is_quiet ? CLOCK_NS_PER_MS : world.params.weather.slow_ns);
}

static struct request *request_new(struct record_item *item, enum kind kind, bool fresh)
{
	struct request *q = calloc(1, sizeof(*q));
	const struct weather *w = &world.params.weather;

	if (q == NULL)
		abort();
	q->waits = world.current;
	q->item = item;
	q->errand = world.current->errand;
	q->kind = kind;
	q->lands_ns[0] = world.now_ns + takes_ns();
	q->lands_ns[1] = NEVER;
	q->answered_ns = NEVER;
	q->answer_takes_ns = takes_ns();
	(void)memcpy(&q->expected, item->version.bytes, sizeof(q->expected));
	if (item->version.n == 0)
		q->expected = 0;
	(void)snprintf(q->key, sizeof(q->key), "%s", item->key);
	bytes_copy(&q->value, &item->value);
	LIST_INSERT_HEAD(&requests, q, of_all);
	if (kind == KIND_GET && !fresh && world_fault(w->stale))
		q->is_old = true;
	if (world_fault(w->lost)) {
		q->lands_ns[0] = NEVER;
	} else if (world_fault(w->late)) {
		q->lands_ns[0] += world_random(3 * world.params.ttl_ns);
	} else if (kind != KIND_GET && world_fault(w->doubled)) {
		q->lands_ns[1] = q->lands_ns[0] + world_random(world.params.ttl_ns);
		q->answered_by = (int)world_random(2);
	} else if (world_fault(w->silent)) {
		q->answer_takes_ns = NEVER;
	} else if (world_fault(w->failed)) {
		q->outcome = BATON_OUTCOME_FAILED;
		q->lands_ns[0] = NEVER;
		q->answered_ns = world.now_ns + takes_ns();
	} else if (kind != KIND_GET && world_fault(w->conflict)) {
		q->outcome = BATON_OUTCOME_REFUSED; /* without what was in the way */
		q->lands_ns[0] = NEVER;
		q->answered_ns = world.now_ns + takes_ns();
	}
	return q;
}

static void request_free(struct request *q)
{
	LIST_REMOVE(q, of_all);
	bytes_done(&q->value);
	bytes_done(&q->found.value);
	free(q);
}

static void request_read(struct request *q)
{
	struct record *r = record_find(q->key, true);
	const struct state *state = &r->states[q->is_old ? 1 + world_random(OLD - 1) : 0];

	q->found.serial = state->serial;
	bytes_copy(&q->found.value, &state->value);
	q->outcome = BATON_OUTCOME_OK;
}

static void request_write(struct request *q, bool is_answer)
{
	struct record *r = record_find(q->key, true);
	bool fits = r->states[0].serial == q->expected;

	if (fits) {
		const struct bytes *value = q->kind == KIND_PUT ? &q->value : NULL;

		judge(&q->errand, r, value);
		record_change(r, value);
	}
	if (world.is_told)
		tell("%c%s %s %s %.*s", 'a' + q->errand.cand, fits ? "" : " in vain",
		     q->kind == KIND_PUT ? "writes" : "drops", q->key,
		     q->kind == KIND_PUT ? (int)q->value.n : 0,
		     q->value.at != NULL ? q->value.at : "");
	if (!is_answer)
		return;
	q->outcome = fits ? BATON_OUTCOME_OK : BATON_OUTCOME_REFUSED;
	q->is_found = true;
	q->found.serial = r->states[0].serial;
	bytes_copy(&q->found.value, &r->states[0].value);
}

static void request_answer(struct request *q)
{
	struct record_item *item = q->item;

	item->outcome = q->outcome;
	item->code = q->outcome == BATON_OUTCOME_FAILED ? BATON_E_UNAVAILABLE : 0;
	item->is_told = q->outcome == BATON_OUTCOME_REFUSED && q->is_found && world_random(2) == 0;
	if (q->outcome == BATON_OUTCOME_OK || item->is_told)
		item->version = q->found.serial != 0
					? record_version_of(&q->found.serial, sizeof(uint64_t))
					: (struct record_version){.n = 0};
	if (q->kind == KIND_GET || item->is_told)
		bytes_copy(&item->value, &q->found.value);
	q->answered_ns = NEVER;
	wake(q->waits);
	q->waits = NULL;
}

static bool request_is_over(const struct request *q)
{
	return q->waits == NULL && q->lands_ns[0] == NEVER && q->lands_ns[1] == NEVER;
}

static uint64_t request_next_ns(const struct request *q)
{
	uint64_t next_ns = q->waits != NULL ? q->answered_ns : NEVER;

	for (int i = 0; i < 2; i++)
		if (q->lands_ns[i] < next_ns)
			next_ns = q->lands_ns[i];
	return next_ns;
}

uint64_t store_next_ns(void)
{
	uint64_t next_ns = NEVER;

	for (const struct request *q = LIST_FIRST(&requests); q != NULL; q = LIST_NEXT(q, of_all)) {
		uint64_t at_ns = request_next_ns(q);

		if (at_ns < next_ns)
			next_ns = at_ns;
	}
	return next_ns;
}

/* The one that is due: of several, the one that was sent first. */
static struct request *request_due(void)
{
	struct request *due = NULL;
	uint64_t next_ns = NEVER;

	for (struct request *q = LIST_FIRST(&requests); q != NULL; q = LIST_NEXT(q, of_all)) {
		uint64_t at_ns = request_next_ns(q);

		if (at_ns != NEVER && at_ns <= next_ns) {
			next_ns = at_ns;
			due = q;
		}
	}
	return due;
}

void store_land(void)
{
	struct request *q = request_due();

	if (q == NULL)
		return;
	for (int i = 0; i < 2; i++) {
		if (q->lands_ns[i] > world.now_ns)
			continue;
		q->lands_ns[i] = NEVER;
		if (q->kind == KIND_GET)
			request_read(q);
		else
			request_write(q, i == q->answered_by);
		if (i == q->answered_by && q->answer_takes_ns != NEVER)
			q->answered_ns = world.now_ns + q->answer_takes_ns;
	}
	if (q->waits != NULL && q->answered_ns <= world.now_ns)
		request_answer(q);
	if (request_is_over(q))
		request_free(q);
}

/* ---- the adapter ---- */

static bool are_answered(const struct record_item *items, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (items[i].outcome == 0)
			return false;
	return true;
}

/* Nobody waits for these any more; what is on its way may land. */
static void give_up(const struct coroutine *c)
{
	struct request *next;

	for (struct request *q = LIST_FIRST(&requests); q != NULL; q = next) {
		next = LIST_NEXT(q, of_all);
		if (q->waits != c)
			continue;
		q->waits = NULL;
		q->item = NULL;
		if (request_is_over(q))
			request_free(q);
	}
}

static void send_all(struct baton_call *call, struct record_item *items, size_t n, enum kind kind,
		     bool fresh)
{
	struct coroutine *c = world.current;
	uint64_t until_ns = world_when_ns(c->cand, call->deadline_ns);

	for (size_t i = 0; i < n && !c->cand->has_ended; i++)
		(void)request_new(&items[i], kind, fresh);
	while (!c->cand->has_ended && !are_answered(items, n) && world.now_ns < until_ns)
		sleep_until(until_ns);
	give_up(c);
	if (are_answered(items, n))
		return;
	(void)store_fail(&call->error, BATON_E_TIMEOUT, "no answer in time, says the simulator");
	record_items_end(items, n, kind == KIND_GET ? BATON_OUTCOME_FAILED : BATON_OUTCOME_UNKNOWN,
			 BATON_E_TIMEOUT);
}

static void sim_get(void *lane, struct baton_call *call, struct record_item *items, size_t n,
		    bool fresh)
{
	(void)lane;
	for (size_t i = 0; i < n; i++)
		bytes_clear(&items[i].value);
	send_all(call, items, n, KIND_GET, fresh);
}

static void sim_put(void *lane, struct baton_call *call, struct record_item *items, size_t n)
{
	(void)lane;
	send_all(call, items, n, KIND_PUT, false);
}

static void sim_drop(void *lane, struct baton_call *call, struct record_item *items, size_t n)
{
	(void)lane;
	send_all(call, items, n, KIND_DROP, false);
}

/* A request without a record: a while, and an answer or none. */
static int ask(struct baton_call *call)
{
	struct coroutine *c = world.current;
	uint64_t until_ns = world_when_ns(c->cand, call->deadline_ns);
	uint64_t when_ns = world.now_ns + takes_ns();
	const struct weather *w = &world.params.weather;
	bool fails = world_fault(w->failed);

	if (world_fault(w->lost))
		when_ns = NEVER;
	while (!c->cand->has_ended && world.now_ns < when_ns && world.now_ns < until_ns)
		sleep_until(when_ns < until_ns ? when_ns : until_ns);
	if (!c->cand->has_ended && when_ns <= world.now_ns && !fails)
		return BATON_OUTCOME_OK;
	(void)store_fail(&call->error, BATON_E_UNAVAILABLE, "no answer, says the simulator");
	return BATON_OUTCOME_FAILED;
}

static int sim_list(void *lane, struct baton_call *call, const char *prefix, bool with_values,
		    record_found *found, void *arg)
{
	int outcome = ask(call);

	(void)lane;
	for (const struct record *r = records; r != NULL && outcome == BATON_OUTCOME_OK;
	     r = r->next) {
		const struct state *state = &r->states[world_fault(10) ? 1 : 0];
		struct record_item item = {.key = r->key, .age_ns = RECORD_NEVER};

		if (state->serial == 0 || strncmp(r->key, prefix, strlen(prefix)) != 0)
			continue;
		item.version = record_version_of(&state->serial, sizeof(uint64_t));
		if (with_values)
			bytes_copy(&item.value, &state->value);
		found(arg, &item);
		bytes_done(&item.value);
	}
	return outcome;
}

struct sim_lane {
	uint64_t changes; /* told so far */
	bool is_standing;
	bool is_woken;
};

static int sim_watch(void *l, struct baton_call *call, record_changed *changed, void *arg)
{
	struct sim_lane *lane = l;
	const struct cand *cand = world.current->cand;
	uint64_t until_ns = world_when_ns(cand, call->deadline_ns);

	if (!lane->is_standing) {
		if (ask(call) != BATON_OUTCOME_OK)
			return BATON_OUTCOME_FAILED;
		lane->is_standing = true;
		lane->changes = changes;
		changed(arg, NULL);
		return BATON_OUTCOME_OK;
	}
	if (world_fault(world.params.weather.failed)) {
		lane->is_standing = false;
		return BATON_OUTCOME_FAILED;
	}
	while (!cand->has_ended && !lane->is_woken && lane->changes == changes &&
	       world.now_ns < until_ns)
		sleep_until(until_ns);
	lane->is_woken = false;
	if (lane->changes != changes)
		changed(arg, NULL);
	lane->changes = changes;
	return cand->has_ended ? BATON_OUTCOME_FAILED : BATON_OUTCOME_OK;
}

/* Rung for by chance, whenever something changes. */
static void sim_listen(void *l, struct baton_call *call, const struct record_alarms *alarms,
		       record_changed *changed, void *arg)
{
	struct sim_lane *lane = l;
	const struct cand *cand = world.current->cand;
	uint64_t until_ns = world_when_ns(cand, call->deadline_ns);
	struct pollfd wakes = {.fd = alarms->wake, .events = POLLIN};
	uint64_t slice_ns =
		world.params.ttl_ns / 40; /* nobody tells when alarms->wake is readable */
	char key[BATON_LEASE_ID_MAX + 3];

	lane->changes = changes;
	while (!cand->has_ended && lane->changes == changes && world.now_ns < until_ns &&
	       poll(&wakes, 1, 0) == 0)
		sleep_until(until_ns < world.now_ns + slice_ns ? until_ns
							       : world.now_ns + slice_ns);
	for (size_t i = 0; i < alarms->n_others && lane->changes != changes; i++) {
		(void)snprintf(key, sizeof(key), "l/%s", alarms->others[i]);
		changed(arg, key);
	}
}

static void sim_wake(void *l)
{
	struct sim_lane *lane = l;

	lane->is_woken = true;
}

static int sim_age(void *lane, struct baton_call *call, struct record_age *age)
{
	int outcome = ask(call);

	(void)lane;
	age->uptime_ns = (world.now_ns - began_ns) / 1000 * world.params.server_rate;
	age->server_ms = 1000 + world.now_ns / CLOCK_NS_PER_MS;
	return outcome;
}

/* ---- native locks ---- */

bool lock_is_taken(int e)
{
	return locks[e].is_foreign ||
	       (locks[e].lease[0] != '\0' && world.now_ns < locks[e].until_ns);
}

static int lock_of(const char *name)
{
	int e = 0;

	while (e < ELECTIONS - 1 && strcmp(election_names[e], name) != 0)
		e++;
	return e;
}

/* Carried out when it lands; then the answer may be lost. */
static int lock_set(struct baton_call *call, const char *name, const char *lease_id,
		    uint64_t ttl_ns, bool takes)
{
	int e = lock_of(name);
	int outcome = ask(call);
	bool is_ours = lock_is_taken(e) && strcmp(locks[e].lease, lease_id) == 0;

	if (outcome != BATON_OUTCOME_OK)
		return outcome;
	if (!is_ours && (!takes || lock_is_taken(e))) {
		tell("the lock of %s is not %s's", name, lease_id);
		return BATON_OUTCOME_REFUSED;
	}
	locks[e].until_ns = world.now_ns + ttl_ns / world.params.server_rate * 1000;
	(void)snprintf(locks[e].lease, sizeof(locks[e].lease), "%s", lease_id);
	tell("the lock of %s is %s's until %.3f", name, lease_id, (double)locks[e].until_ns / 1e9);
	if (takes)
		locks[e].broken[lease_id[0] - 'a'][0] = '\0';
	return ask(call) == BATON_OUTCOME_OK ? BATON_OUTCOME_OK : BATON_OUTCOME_UNKNOWN;
}

static int sim_lock_take(void *lane, struct baton_call *call, const char *name,
			 const char *lease_id, uint64_t ttl_ns, uint64_t *free_in_ns)
{
	(void)lane;
	*free_in_ns = ttl_ns;
	return lock_set(call, name, lease_id, ttl_ns, true);
}

static int sim_lock_keep(void *lane, struct baton_call *call, const char *name,
			 const char *lease_id, uint64_t ttl_ns)
{
	(void)lane;
	return lock_set(call, name, lease_id, ttl_ns, false);
}

static int sim_lock_drop(void *lane, struct baton_call *call, const char *name,
			 const char *lease_id)
{
	int e = lock_of(name);
	int outcome = ask(call);

	(void)lane;
	if (outcome == BATON_OUTCOME_OK && strcmp(locks[e].lease, lease_id) == 0) {
		tell("the lock of %s is given back by %s", name, lease_id);
		locks[e].lease[0] = '\0';
	}
	return outcome;
}

/* ---- the store ---- */

static int sim_open(const struct baton_store_config *config, struct record_options *options,
		    void **store, struct baton_error *err)
{
	(void)config;
	(void)err;
	options->poll_ms = (uint32_t)(world.params.poll_ns / CLOCK_NS_PER_MS);
	options->max_lease_ms = (uint32_t)(world.params.ttl_ns / CLOCK_NS_PER_MS);
	options->locks = world.params.locks ? RECORD_LOCKS_DURATION : RECORD_LOCKS_NONE;
	*store = &world;
	return BATON_OK;
}

static void sim_close(void *store)
{
	(void)store;
}

static int sim_lane_open(void *store, int kind, void **lane, struct baton_error *err)
{
	(void)store;
	(void)kind;
	(void)err;
	*lane = calloc(1, sizeof(struct sim_lane));
	if (*lane == NULL)
		abort();
	return BATON_OK;
}

static void sim_lane_close(void *lane)
{
	free(lane);
}

static const struct record_adapter adapter = {
	.name = "simulated",
	.page = "sim.h",
	.key_max = 512,
	.value_max = 1 << 20,
	.batch_max = 1000,
	.get_max = 1000,
	.poll_ms = 1000,
	.lists_values = true,
	.traits = RECORD_TRAITS(.promises = ""),
	.open = sim_open,
	.close = sim_close,
	.lane_open = sim_lane_open,
	.lane_close = sim_lane_close,
	.forget = sim_close,
	.get = sim_get,
	.put = sim_put,
	.drop = sim_drop,
	.list = sim_list,
	.watch = sim_watch,
	.listen = sim_listen,
	.wake = sim_wake,
	.age = sim_age,
	.lock_take = sim_lock_take,
	.lock_keep = sim_lock_keep,
	.lock_drop = sim_lock_drop,
};

void store_begin(void)
{
	sim_adapter = adapter;
	sim_adapter.is_weak = world.params.forgets || world.params.evicts;
	if (!world.params.pushes)
		sim_adapter.watch = NULL;
	serial = changes = began_ns = 0;
	(void)memset(locks, 0, sizeof(locks));
	for (int e = 0; e < ELECTIONS; e++)
		record_no_election(&elections[e], election_names[e]);
	/* It has been there for long: nobody who starts has to wait for that. */
	world.now_ns = 4 * world.params.ttl_ns;
	world.params.last_ns += world.now_ns;
	world.params.end_ns += world.now_ns;
}

void store_end(void)
{
	while (!LIST_EMPTY(&requests))
		request_free(LIST_FIRST(&requests));
	while (records != NULL) {
		struct record *r = records;

		records = r->next;
		for (int i = 0; i < OLD; i++)
			bytes_done(&r->states[i].value);
		free(r);
	}
}
