/*
 * rounds.c: carries out what jobs ask for. In each round, all asks of a batch's jobs go to the
 * store together. Then each task is told its answer, and says what to do next (decide.h).
 *
 * What this must never do: send a write twice for one ask; bury a lease from another version than
 * the one on which the task decided (R4).
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/record/layer.h"

/* A batch of jobs on its way. */
struct round {
	struct record_lane *lane;
	struct baton_call *call;
	struct record_job *jobs;
	size_t n;
	struct record_item *items; /* the items of the current request */
	struct record_job **who;   /* which job an item is for */
	size_t n_items;
	uint64_t sent_ns;
};

/* ---- items ---- */

int record_no_memory(struct baton_call *call)
{
	(void)store_fail(&call->error, BATON_E_MEMORY, "no memory for a request");
	return BATON_OUTCOME_FAILED;
}

void record_no_election(struct record_election *e, const char *name)
{
	(void)memset(e, 0, sizeof(*e));
	(void)memcpy(e->name, name, strlen(name) + 1);
}

bool record_read_election(struct baton_call *call, struct record_item *item, const char *name,
			  struct record_election *out)
{
	record_no_election(out, name);
	if (item->version.n == 0 ||
	    (record_parse_election(item->value.at, item->value.n, out) == 0 &&
	     strcmp(out->name, name) == 0))
		return true;
	item->outcome = BATON_OUTCOME_FAILED;
	item->code = BATON_E_CORRUPT;
	(void)store_fail(
		&call->error, BATON_E_CORRUPT,
		"the record of the election \"%.60s\" is not valid: it is left as it is, and no "
		"candidate is elected",
		name);
	return false;
}

bool record_read_lease(struct baton_call *call, struct record_item *item, struct record_lease *out)
{
	(void)memset(out, 0, sizeof(*out));
	if (item->version.n == 0 || record_parse_lease(item->value.at, item->value.n, out) == 0)
		return true;
	item->outcome = BATON_OUTCOME_FAILED;
	item->code = BATON_E_CORRUPT;
	(void)store_fail(&call->error, BATON_E_CORRUPT,
			 "the record %.80s is not a valid lease: it is left as it is", item->key);
	return false;
}

enum verb { VERB_GET, VERB_GET_FRESH, VERB_PUT, VERB_DROP };

static void items_send(const struct record_lane *lane, struct baton_call *call,
		       struct record_item *items, size_t n, enum verb verb)
{
	const struct record_adapter *a = lane->store->adapter;

	switch (verb) {
	case VERB_PUT: a->put(lane->lane, call, items, n); break;
	case VERB_DROP: a->drop(lane->lane, call, items, n); break;
	default: a->get(lane->lane, call, items, n, verb == VERB_GET_FRESH);
	}
}

/* Sends items in batches. Items that the time doesn't suffice for were never sent, so they are
 * FAILED. */
static void items_each(const struct record_lane *lane, struct baton_call *call,
		       struct record_item *items, size_t n, enum verb verb)
{
	size_t max = lane->store->adapter->batch_max;

	for (size_t i = 0; i < n; i++) {
		items[i].outcome = 0;
		items[i].code = 0;
		items[i].is_told = false;
		items[i].is_unchanged = false;
		items[i].age_ns = RECORD_NEVER;
	}
	for (size_t done = 0; done < n && clock_boot_ns() < call->deadline_ns; done += max)
		items_send(lane, call, items + done, n - done < max ? n - done : max, verb);
	if (n == 0 || items[n - 1].outcome != 0)
		return;
	if (call->error.code == 0)
		(void)store_fail(&call->error, BATON_E_TIMEOUT, "the store did not answer in time");
	record_items_end(items, n, BATON_OUTCOME_FAILED, call->error.code);
}

void record_get(struct record_lane *lane, struct baton_call *call, struct record_item *items,
		size_t n, bool fresh)
{
	items_each(lane, call, items, n, fresh ? VERB_GET_FRESH : VERB_GET);
}

void record_put(struct record_lane *lane, struct baton_call *call, struct record_item *items,
		size_t n)
{
	items_each(lane, call, items, n, VERB_PUT);
}

void record_drop(struct record_lane *lane, struct baton_call *call, struct record_item *items,
		 size_t n)
{
	items_each(lane, call, items, n, VERB_DROP);
}

struct record_item *record_items_new(struct baton_call *call, size_t n)
{
	struct record_item *items = calloc(n > 0 ? n : 1, sizeof(*items));

	if (items == NULL)
		(void)record_no_memory(call);
	return items;
}

void record_items_free(struct record_item *items, size_t n)
{
	for (size_t i = 0; items != NULL && i < n; i++)
		bytes_done(&items[i].value);
	free(items);
}

/* ---- looking at leases of others ---- */

/* Collects the leases that are to be read, each once. */
static size_t look_collect(struct record_store *s, const struct record_look *list, size_t n,
			   bool always, struct record_seen **out)
{
	uint64_t now_ns = clock_boot_ns();
	size_t n_out = 0;

	store_lock(&s->base);
	for (size_t i = 0; i < n; i++) {
		struct record_seen *seen = record_seen_get(s, list[i].id, list[i].ttl_ns);

		if (seen == NULL || seen->looked_by == list || record_sight_is_dead(&seen->sight) ||
		    (!always && record_seen_is_recent(s, seen, now_ns)))
			continue;
		seen->looked_by = list;
		seen->n_users++;
		out[n_out++] = seen;
	}
	store_unlock(&s->base);
	return n_out;
}

/* Reads leases. Moves those to the front that are to be read again, fresh (R4), and returns their
 * number. */
static size_t look_read(struct record_lane *lane, struct baton_call *call,
			struct record_seen **seen, struct record_item *items, size_t n, bool fresh,
			int *outcome)
{
	struct record_store *s = lane->store;
	size_t n_unsure = 0;

	record_get(lane, call, items, n, fresh);
	uint64_t now_ns = clock_boot_ns(); /* R3: after the receipt */

	store_lock(&s->base);
	for (size_t i = 0; i < n; i++) {
		const struct record_sight *sight = &seen[i]->sight;
		struct record_lease lease;

		seen[i]->age_ns = items[i].age_ns;
		if (items[i].outcome == BATON_OUTCOME_OK &&
		    record_read_lease(call, &items[i], &lease))
			record_seen_note(s, seen[i], &items[i].version,
					 items[i].version.n != 0 ? &lease : NULL, fresh, now_ns);
		else
			*outcome = BATON_OUTCOME_FAILED;
		if (!fresh && record_sight_is_unsure(sight) && sight->ttl_ns != 0) {
			seen[n_unsure++] = seen[i];
		} else {
			seen[i]->n_users--;
			seen[i]->looked_by = NULL;
		}
	}
	store_unlock(&s->base);
	return n_unsure;
}

int record_look(struct record_lane *lane, struct baton_call *call, const struct record_look *list,
		size_t n, bool always)
{
	struct record_store *s = lane->store;
	struct record_seen **seen = calloc(n > 0 ? n : 1, sizeof(struct record_seen *));
	struct record_key *keys = calloc(n > 0 ? n : 1, sizeof(*keys));
	struct record_item *items = record_items_new(call, n);
	int outcome = BATON_OUTCOME_OK;
	size_t n_asked = 0;

	if (seen == NULL || keys == NULL || items == NULL)
		outcome = record_no_memory(call);
	else
		n_asked = look_collect(s, list, n, always, seen);
	for (int fresh = 0; n_asked > 0; fresh++) {
		for (size_t i = 0; i < n_asked; i++) {
			keys[i] = record_key_of(s, RECORD_LEASES, seen[i]->id);
			items[i].key = keys[i].text;
			items[i].version.n = 0;
			bytes_clear(&items[i].value);
		}
		n_asked = look_read(lane, call, seen, items, n_asked, fresh != 0, &outcome);
	}
	record_items_free(items, n);
	free(keys);
	free((void *)seen);
	return outcome;
}

/* ---- jobs ---- */

struct record_job *record_jobs_new(struct baton_call *call, size_t n)
{
	struct record_job *jobs = calloc(n > 0 ? n : 1, sizeof(*jobs));

	if (jobs == NULL)
		(void)record_no_memory(call);
	return jobs;
}

void record_job_init(struct record_job *j, const struct record_store *s, int kind, const char *name)
{
	(void)memset(j, 0, sizeof(*j));
	j->kind = kind;
	j->name = name;
	if (name == NULL)
		return;
	j->key = record_key_of(s, RECORD_ELECTIONS, name);
	record_no_election(&j->election, name);
}

static int job_step(struct record_job *j)
{
	switch (j->kind) {
	case RECORD_JOB_KEEP: return record_keep_step(&j->u.keep, &j->turn);
	case RECORD_JOB_CAMPAIGN: return record_campaign_step(&j->u.campaign, &j->turn);
	default: return record_edit_step(&j->u.edit, &j->turn);
	}
}

static void job_give_up(struct record_job *j)
{
	switch (j->kind) {
	case RECORD_JOB_KEEP: record_keep_give_up(&j->u.keep); break;
	case RECORD_JOB_CAMPAIGN: record_campaign_give_up(&j->u.campaign); break;
	default: record_edit_give_up(&j->u.edit); break;
	}
}

const struct record_task *record_job_task(const struct record_job *j)
{
	switch (j->kind) {
	case RECORD_JOB_KEEP: return &j->u.keep.task;
	case RECORD_JOB_CAMPAIGN: return &j->u.campaign.task;
	default: return &j->u.edit.task;
	}
}

/* The lease that the job must know about; "": none. */
static const char *job_rival(const struct record_job *j)
{
	if (j->kind == RECORD_JOB_CAMPAIGN)
		return j->u.campaign.rival;
	return j->kind == RECORD_JOB_EDIT && j->u.edit.order != NULL ? j->election.lease : "";
}

/* Whether the job's lease is to be read now. An order must know whether the leader in the record
 * that was just read still leads. */
static bool job_looks(const struct record_job *j)
{
	bool is_read = j->op == RECORD_READ_FRESH && j->turn.outcome == BATON_OUTCOME_OK;

	if (j->kind == RECORD_JOB_EDIT)
		return job_rival(j)[0] != '\0' &&
		       (is_read || (j->op == RECORD_WRITE && j->turn.is_told));
	return j->op == RECORD_LOOK;
}

/* ---- one round ---- */

static struct record_item *round_add(struct round *r, struct record_job *j, const char *key)
{
	struct record_item *item = &r->items[r->n_items];

	bytes_clear(&item->value);
	item->key = key;
	item->version = (struct record_version){.n = 0};
	r->who[r->n_items++] = j;
	return item;
}

/* Parses the job's own record, as read or told. */
static bool round_parse(struct round *r, struct record_job *j, struct record_item *item)
{
	if (j->name != NULL)
		return record_read_election(r->call, item, j->name, &j->election);
	return j->u.keep.intent == RECORD_PUBLISH || record_read_lease(r->call, item, &j->lease);
}

/* Notes the record in the table, if the election is there. is_ours: we wrote the record for a
 * caller that gets the answer, so it needs no hint. */
static void round_note(struct round *r, struct record_job *j, const struct record_item *item,
		       uint64_t when_ns, bool is_ours)
{
	struct record_store *s = r->lane->store;

	if (j->name == NULL)
		return;
	store_lock(&s->base);
	struct record_known *k = record_known_find(s, j->key.text);

	if (k != NULL &&
	    record_known_note(s, k, &item->version, &j->election, &item->value, when_ns) && is_ours)
		k->told = item->version;
	store_unlock(&s->base);
}

static void round_answer(struct record_job *j, const struct record_item *item)
{
	j->turn.outcome = item->outcome;
	j->turn.version = item->version;
	j->turn.is_told = item->is_told;
	j->code = item->code;
}

/*
 * Answers a read from what the watch lane knows, but only if that lets the campaign go on: at worst
 * the claim conflicts (R8). A refusal must come from the store itself.
 */
static bool round_read_known(struct round *r, struct record_job *j)
{
	struct record_store *s = r->lane->store;
	uint64_t now_ns = clock_boot_ns();

	store_lock(&s->base);
	const struct record_known *k = record_known_find(s, j->key.text);
	const struct record_election *e = &j->election;
	bool is_read = record_known_is_watched(s, k) && record_known_read(k, &j->election) &&
		       !e->paused && e->reserved_for[0] == '\0' &&
		       (e->lease[0] == '\0' ||
			(k->seen != NULL && record_sight_is_over(&k->seen->sight, now_ns)));

	if (is_read)
		j->turn.version = k->version;
	store_unlock(&s->base);
	j->turn.outcome = BATON_OUTCOME_OK;
	j->turn.is_told = false;
	return is_read;
}

static void round_read(struct round *r, int op)
{
	r->n_items = 0;
	for (size_t i = 0; i < r->n; i++) {
		struct record_job *j = &r->jobs[i];

		if (j->op == op && (op == RECORD_READ_FRESH || !round_read_known(r, j)))
			(void)round_add(r, j, j->key.text);
	}
	r->sent_ns = clock_boot_ns();
	record_get(r->lane, r->call, r->items, r->n_items, op == RECORD_READ_FRESH);
	for (size_t i = 0; i < r->n_items; i++) {
		struct record_job *j = r->who[i];
		struct record_item *item = &r->items[i];

		if (item->outcome == BATON_OUTCOME_OK && round_parse(r, j, item))
			round_note(r, j, item, r->sent_ns, false);
		round_answer(j, item);
	}
}

static void round_look(struct round *r)
{
	struct record_store *s = r->lane->store;
	struct record_look *list = calloc(r->n, sizeof(*list));
	uint64_t now_ns = clock_boot_ns();
	size_t n = 0;

	for (size_t i = 0; i < r->n && list != NULL; i++)
		if (job_looks(&r->jobs[i]))
			list[n++] = (struct record_look){job_rival(&r->jobs[i]),
							 r->jobs[i].election.ttl_ns};
	if (n > 0)
		(void)record_look(r->lane, r->call, list, n, false);
	free(list);
	store_lock(&s->base);
	for (size_t i = 0; i < r->n; i++) {
		struct record_job *j = &r->jobs[i];

		if (j->op != RECORD_LOOK)
			continue;
		const struct record_seen *seen = record_seen_find(s, job_rival(j));
		bool is_seen = seen != NULL && record_seen_is_recent(s, seen, now_ns);

		j->turn.outcome = is_seen ? BATON_OUTCOME_OK : BATON_OUTCOME_FAILED;
		j->turn.is_told = false;
		j->code = r->call->error.code;
	}
	store_unlock(&s->base);
}

static void round_lock(struct round *r)
{
	for (size_t i = 0; i < r->n; i++) {
		struct record_job *j = &r->jobs[i];

		if (j->op != RECORD_LOCK)
			continue;
		j->turn.outcome = record_lock_take(r->lane, r->call, j);
		j->turn.is_told = false;
		j->code = r->call->error.code;
	}
}

/* Makes the value to write. False: there is none, so nothing is sent. */
static bool round_encode(struct record_job *j, struct record_item *item)
{
	char text[RECORD_TEXT_MAX];
	size_t n;

	if (j->encode != NULL)
		return j->encode(j->arg, j->turn.random, &item->value);
	if (j->op == RECORD_BURY || j->name == NULL)
		n = record_write_lease(&j->lease, text, sizeof(text));
	else
		n = record_write_election(&j->election, text, sizeof(text));
	return n > 0 && bytes_add(&item->value, text, n, n);
}

static void round_written(struct round *r, struct record_job *j, struct record_item *item)
{
	bool is_bury = j->op == RECORD_BURY;

	if (item->outcome == BATON_OUTCOME_OK && !is_bury)
		round_note(r, j, item, clock_boot_ns(),
			   j->kind != RECORD_JOB_EDIT || j->u.edit.release != NULL ||
				   j->u.edit.show != NULL);
	/* If what was told isn't valid, the record is read, and that read fails. */
	if (item->outcome == BATON_OUTCOME_REFUSED && item->is_told) {
		struct record_item told = *item;

		item->is_told = is_bury ? record_read_lease(r->call, &told, &j->lease)
					: round_parse(r, j, &told);
		if (item->is_told && !is_bury)
			round_note(r, j, item, r->sent_ns, false);
	}
	round_answer(j, item);
}

/* Of the jobs that bury the same lease, only the first writes. The others are told what has become
 * of that. */
static bool round_is_first(struct record_store *s, struct record_job *j)
{
	store_lock(&s->base);
	struct record_seen *seen = record_seen_find(s, job_rival(j));

	j->follows = seen != NULL ? seen->buried_by : NULL;
	if (seen != NULL && j->follows == NULL)
		seen->buried_by = j;
	store_unlock(&s->base);
	return j->follows == NULL;
}

static void round_follow(struct record_store *s, struct record_job *j)
{
	const struct record_job *first = j->follows;

	if (first == NULL) {
		store_lock(&s->base);
		struct record_seen *seen = record_seen_find(s, job_rival(j));

		if (seen != NULL)
			seen->buried_by = NULL;
		store_unlock(&s->base);
		return;
	}
	j->turn = first->turn;
	j->code = first->code;
	j->lease = first->lease;
	if (first->turn.outcome == BATON_OUTCOME_OK) {
		j->turn.outcome = BATON_OUTCOME_REFUSED;
		j->turn.is_told = true;
	}
}

static void round_write(struct round *r)
{
	struct record_store *s = r->lane->store;

	r->n_items = 0;
	for (size_t i = 0; i < r->n; i++) {
		struct record_job *j = &r->jobs[i];
		bool is_bury = j->op == RECORD_BURY;

		if (!(is_bury && round_is_first(s, j)) && j->op != RECORD_WRITE)
			continue;
		if (is_bury)
			j->rival_key = record_key_of(s, RECORD_LEASES, job_rival(j));
		struct record_item *item =
			round_add(r, j, is_bury ? j->rival_key.text : j->key.text);

		item->version = is_bury ? j->buried : record_job_task(j)->version;
		if (!round_encode(j, item)) {
			r->n_items--;
			j->turn.outcome = record_no_memory(r->call);
			j->code = BATON_E_MEMORY;
		}
	}
	r->sent_ns = clock_boot_ns();
	record_put(r->lane, r->call, r->items, r->n_items);
	for (size_t i = 0; i < r->n_items; i++)
		round_written(r, r->who[i], &r->items[i]);
	for (size_t i = 0; i < r->n; i++)
		if (r->jobs[i].op == RECORD_BURY)
			round_follow(s, &r->jobs[i]);
}

/* Asks how old a store that forgets is: after the reads, and before the claims. Returns how coarse
 * that age is. */
static uint64_t round_age(struct round *r, struct record_weak *weak)
{
	const struct record_store *s = r->lane->store;
	struct record_age age = {0};

	if (s->adapter->age(r->lane->lane, r->call, &age) != BATON_OUTCOME_OK)
		age = (struct record_age){0};
	weak->uptime_ns = age.uptime_ns;
	weak->server_ms = age.server_ms;
	weak->max_lease_ns = s->options.max_lease_ms * CLOCK_NS_PER_MS;
	return age.coarse_ns;
}

/* Steps all jobs that are not done. Returns how many are still not done. */
static size_t round_step(struct round *r)
{
	struct record_store *s = r->lane->store;
	struct record_weak weak;
	bool is_weak = s->options.max_lease_ms != 0 && r->jobs[0].kind == RECORD_JOB_CAMPAIGN;
	size_t n = 0;

	uint64_t coarse_ns = is_weak ? round_age(r, &weak) : 0;
	uint64_t now_ns = clock_boot_ns();

	store_lock(&s->base);
	for (size_t i = 0; i < r->n; i++) {
		struct record_job *j = &r->jobs[i];

		if (j->op == RECORD_DONE)
			continue;
		struct record_known *k = j->name != NULL ? record_known_find(s, j->key.text) : NULL;
		struct record_seen *seen = record_seen_find(s, job_rival(j));

		j->turn.now_ns = now_ns;
		j->turn.wall_ms = clock_wall_ms();
		j->turn.random = record_random();
		j->turn.lease = &j->lease;
		j->turn.election = &j->election;
		j->turn.hold = k != NULL ? &k->hold : &j->hold;
		j->turn.sight = seen != NULL                 ? &seen->sight
				: j->kind == RECORD_JOB_EDIT ? NULL
							     : &j->sight;
		j->turn.weak = is_weak ? &weak : NULL;
		if (is_weak && weak.max_lease_ns > weak.uptime_ns)
			j->young_ns = weak.max_lease_ns - weak.uptime_ns + coarse_ns;
		j->op = job_step(j);
		if (j->op == RECORD_BURY)
			j->buried = j->turn.sight->version;
		n += j->op != RECORD_DONE;
	}
	store_unlock(&s->base);
	return n;
}

static void round_give_up(struct round *r)
{
	if (r->call->error.code == 0)
		(void)store_fail(&r->call->error, BATON_E_TIMEOUT,
				 "the store did not answer in time");
	for (size_t i = 0; i < r->n; i++) {
		if (r->jobs[i].op == RECORD_DONE)
			continue;
		job_give_up(&r->jobs[i]);
		r->jobs[i].code = r->call->error.code;
	}
}

void record_jobs_run(struct record_lane *lane, struct baton_call *call, struct record_job *jobs,
		     size_t n)
{
	struct round r = {.lane = lane, .call = call, .jobs = jobs, .n = n};
	size_t n_left = n;

	r.items = record_items_new(call, n);
	r.who = calloc(n > 0 ? n : 1, sizeof(struct record_job *));
	for (size_t i = 0; i < n; i++)
		jobs[i].op = RECORD_READ; /* anything but DONE */
	if (r.items != NULL && r.who != NULL && n > 0)
		n_left = round_step(&r);
	for (unsigned i = 0; n_left > 0 && r.items != NULL && r.who != NULL &&
			     i < RECORD_ROUNDS_MAX && clock_boot_ns() < call->deadline_ns;
	     i++) {
		round_read(&r, RECORD_READ);
		round_read(&r, RECORD_READ_FRESH);
		round_write(&r);
		round_look(&r);
		round_lock(&r);
		n_left = round_step(&r);
	}
	if (n_left > 0)
		round_give_up(&r);
	record_items_free(r.items, n);
	free((void *)r.who);
}
