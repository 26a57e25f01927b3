/*
 * admin.c: questions and orders that go straight to the store, on one lane that they share. Each
 * request blocks for at most the time of two calls, and disturbs no election of the handle.
 */
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "lib/lib.h"
#include "lib/messages.h"

/* A process that has just begun doesn't report an overlap that is older than this. */
#define AUDIT_BACK_MS (60 * 60 * INT64_C(1000))
/* So many leaderships are enough for a look at the history, even if it is longer. */
#define AUDIT_LEAST 100

/*
 * A connection that was unused for so long may be dead: a new connection is better than a failed
 * call.
 */
#define IDLE_NS (2 * CLOCK_NS_PER_S)

/*
 * app.lock is held: takes the lane, after a wait of up to one call's time if another thread uses
 * it.
 */
static int take_lane(struct baton *b)
{
	uint64_t until_ns = clock_boot_ns() + timing_call_ns(&b->timing);

	while (b->admin.busy && events_wait(b, until_ns))
		;
	if (b->admin.busy)
		return BATON_E_BUSY;
	b->admin.busy = true;
	return 0;
}

int lib_lane(struct baton *b, void **lane, struct baton_call *call, struct baton_error *err)
{
	int code = lib_check(b);

	if (code != 0)
		return lib_fail(err, code, "%s", baton_strerror(code));
	(void)pthread_mutex_lock(&b->app.lock);
	code = take_lane(b);
	(void)pthread_mutex_unlock(&b->app.lock);
	if (code != 0)
		return lib_fail(err, code,
				"the store has not answered another question of this process yet");
	*call = (struct baton_call){.deadline_ns = clock_boot_ns() + timing_call_ns(&b->timing)};
	if (b->admin.lane != NULL && clock_boot_ns() - b->admin.used_ns > IDLE_NS) {
		b->driver->lane_close(b->admin.lane);
		b->admin.lane = NULL;
	}
	if (b->admin.lane == NULL)
		code = b->driver->lane_open(b->store, BATON_LANE_CAMPAIGN, &b->admin.lane,
					    &call->error);
	*lane = b->admin.lane;
	if (code == 0)
		return 0;
	b->admin.lane = NULL;
	lib_lane_done(b);
	return lib_fail(err, code, "%s", call->error.text);
}

void lib_lane_done(struct baton *b)
{
	(void)pthread_mutex_lock(&b->app.lock);
	b->admin.used_ns = clock_boot_ns();
	b->admin.busy = false;
	(void)pthread_cond_broadcast(&b->app.changed);
	(void)pthread_mutex_unlock(&b->app.lock);
}

/* Gives the lane back and puts the outcome into a code. */
static int admin_finish(struct baton *b, int outcome, const struct baton_call *call,
			struct baton_error *err)
{
	lib_lane_done(b);
	if (outcome == BATON_OUTCOME_OK)
		return 0;
	int code = call->error.code != 0              ? call->error.code
		   : outcome == BATON_OUTCOME_REFUSED ? BATON_E_NOT_LEADER
						      : BATON_E_UNAVAILABLE;

	return lib_fail(err, code, "%s",
			call->error.text[0] != '\0' ? call->error.text : baton_strerror(code));
}

static int check_name(const char *name, struct baton_error *err)
{
	if (name != NULL && text_is_name(name, BATON_NAME_MAX))
		return 0;
	return lib_fail(err, BATON_E_INVALID,
			"not a valid name or id; expected 1 to %d bytes of UTF-8 without control "
			"characters",
			BATON_NAME_MAX);
}

/* ---- lists ---- */

/* app.lock is held: what is counted of the handle's election of that name; NULL: it has none. */
static struct numbers *numbers_of(struct baton *b, const char *name)
{
	for (struct baton_election *e = b->app.all; e != NULL; e = e->all_next)
		if (strcmp(e->name, name) == 0)
			return events_numbers(e);
	return NULL;
}

struct list {
	void (*candidate)(void *arg, const struct baton_candidate *candidate);
	void (*leadership)(void *arg, const struct baton_leadership *leadership);
	void (*name)(void *arg, const char *name);
	void *arg;
	size_t max;
	size_t n;
	uint32_t n_healthy;
	uint64_t audited;             /* leaderships up to this term were compared before; ... */
	int64_t audit_from_ms;        /* ... 0: none were: those since then count */
	uint64_t overlap_ns;          /* of the others */
	uint64_t newest;              /* term; 0: none was told yet, ... */
	struct baton_leadership last; /* ... else the one before */
};

/* For the metrics: how many candidates there were when they were listed. */
static void keep_candidates(struct baton *b, const char *name, const struct list *l)
{
	(void)pthread_mutex_lock(&b->app.lock);
	struct numbers *numbers = numbers_of(b, name);

	if (numbers != NULL) {
		atomic_store(&numbers->n_healthy, l->n_healthy);
		atomic_store(&numbers->n_unhealthy, (uint32_t)l->n - l->n_healthy);
		atomic_store(&numbers->is_listed, true);
	}
	(void)pthread_mutex_unlock(&b->app.lock);
}

/* A driver may know less of the struct than we: its size says how much. */
static size_t known_size(size_t told, size_t all)
{
	return told != 0 && told < all ? told : all;
}

static void list_candidate(void *arg, const struct baton_candidate *c)
{
	struct list *l = arg;
	struct baton_candidate all = {0};

	(void)memcpy(&all, c, known_size(c->size, sizeof(all)));
	all.size = sizeof(all);
	l->n++;
	l->n_healthy += all.is_healthy;
	l->candidate(l->arg, &all);
}

/* ---- looking ---- */

/* The record, and the candidates, too, if there is a list for them. */
static int admin_look(struct baton *b, const char *name, struct baton_record *record,
		      struct list *l, struct baton_error *err)
{
	struct baton_call call;
	void *lane = NULL;
	int code = check_name(name, err);

	if (code == 0)
		code = lib_lane(b, &lane, &call, err);
	if (code != 0)
		return code;
	*record = (struct baton_record){.free_in_ns = BATON_STORE_NEVER};
	struct baton_observation o = {.name = name,
				      .lease_id = "",
				      .id = "",
				      .outcome = BATON_OUTCOME_FAILED,
				      .record = record};

	int outcome = BATON_OUTCOME_OK;

	if (l != NULL && b->driver->survey != NULL) {
		outcome = b->driver->survey(lane, &call, &o, list_candidate, l);
	} else {
		b->driver->observe(lane, &call, &o, 1);
		outcome = o.outcome;
		if (o.code != 0 && call.error.code == 0)
			call.error.code = o.code;
		if (l != NULL && outcome == BATON_OUTCOME_OK) {
			/* A request of its own, with the time of a call of its own. */
			call.deadline_ns = clock_boot_ns() + timing_call_ns(&b->timing);
			outcome = b->driver->candidates(lane, &call, name, list_candidate, l);
		}
	}
	return admin_finish(b, outcome, &call, err);
}

static void give_observed(const struct baton_record *r, struct baton_observed *observed,
			  size_t size)
{
	bool knows_end = r->free_in_ns != BATON_STORE_NEVER;
	struct baton_observed all = {
		.has_leader = r->held,
		.paused = r->paused,
		.functions = r->functions,
		.term = r->term,
	};

	if (r->wait[0] != '\0' && knows_end) {
		all.wait_ms = (int64_t)(r->free_in_ns / NS_PER_MS);
		(void)snprintf(all.wait, sizeof(all.wait), "%s", r->wait);
	}
	if (r->held) {
		all.since_ms = r->since_ms;
		all.lease_left_ms = knows_end ? (int64_t)(r->free_in_ns / NS_PER_MS) : -1;
		all.score_permille = r->score_permille;
		all.priority = r->priority;
		(void)snprintf(all.leader, sizeof(all.leader), "%s", r->leader);
		(void)snprintf(all.address, sizeof(all.address), "%s", r->address);
		(void)snprintf(all.metadata, sizeof(all.metadata), "%s", r->metadata);
	}
	lib_give_sized(observed, size, &all, sizeof(all));
}

int baton_observe_sized(struct baton *b, const char *name, struct baton_observed *observed,
			size_t size, struct baton_error *err)
{
	struct baton_record r;

	if (observed == NULL || size < sizeof(observed->size))
		return lib_fail(err, BATON_E_INVALID, "%s", baton_strerror(BATON_E_INVALID));
	int code = admin_look(b, name, &r, NULL, err);

	if (code == 0)
		give_observed(&r, observed, size);
	return code;
}

int baton_survey_sized(struct baton *b, const char *name, struct baton_observed *observed,
		       size_t size,
		       void (*found)(void *arg, const struct baton_candidate *candidate), void *arg,
		       struct baton_error *err)
{
	struct list l = {.candidate = found, .arg = arg};
	struct baton_record r;

	if (observed == NULL || size < sizeof(observed->size) || found == NULL)
		return lib_fail(err, BATON_E_INVALID, "%s", baton_strerror(BATON_E_INVALID));
	int code = admin_look(b, name, &r, &l, err);

	if (code != 0)
		return code;
	give_observed(&r, observed, size);
	keep_candidates(b, name, &l);
	return (int)l.n;
}

/* ---- orders ---- */

/*
 * Rule 10: an order names the term that it is meant for; 0 stands for the candidate that leads now.
 */
static int find_term(struct baton *b, const char *name, struct baton_order *order,
		     struct baton_error *err)
{
	struct baton_record r;
	int code = admin_look(b, name, &r, NULL, err);

	if (code != 0)
		return code;
	if (!r.held)
		return lib_fail(err, BATON_E_NOT_LEADER,
				"%.100s has no leader that could take the order", name);
	if (order->term != 0 && order->term != r.term)
		return lib_fail(err, BATON_E_STALE,
				"%.100s is led in term %llu now; the order was meant for term %llu",
				name, (unsigned long long)r.term, (unsigned long long)order->term);
	order->term = r.term;
	return 0;
}

static int leave_order(struct baton *b, const char *name, struct baton_order *order,
		       const char *note, struct baton_error *err)
{
	struct baton_call call;
	void *lane = NULL;

	if (note != NULL && !text_is_note(note))
		return lib_fail(
			err, BATON_E_INVALID,
			"not a valid note; expected up to %d bytes of UTF-8 without control "
			"characters",
			BATON_NOTE_MAX);
	(void)snprintf(order->note, sizeof(order->note), "%s", note != NULL ? note : "");
	if (getrandom(&order->id, sizeof(order->id), 0) != (ssize_t)sizeof(order->id))
		order->id = clock_boot_ns();
	order->id |= 1;
	bool is_meant = order->term != 0;
	int code = find_term(b, name, order, err);

	if (code == 0)
		code = lib_lane(b, &lane, &call, err);
	if (code != 0)
		return code;
	int outcome = b->driver->order(lane, &call, name, order);

	/* It led a moment ago: a caller that named the term is told that this term is over. */
	if (outcome == BATON_OUTCOME_REFUSED && is_meant && call.error.code == 0)
		call.error.code = BATON_E_STALE;
	return admin_finish(b, outcome, &call, err);
}

int baton_order_resign(struct baton *b, const char *name, uint64_t term, int64_t quiet_ms,
		       const char *note, struct baton_error *err)
{
	struct baton_order order = {.kind = BATON_ORDER_RESIGN,
				    .term = term,
				    .quiet_ms = quiet_ms > 0 ? (uint64_t)quiet_ms : 0};

	return leave_order(b, name, &order, note, err);
}

struct search {
	const char *id;
	bool is_there;
	bool is_healthy;
};

static void found_candidate(void *arg, const struct baton_candidate *c)
{
	struct search *s = arg;

	if (strcmp(c->id, s->id) == 0) {
		s->is_there = true;
		s->is_healthy = s->is_healthy || c->is_healthy;
	}
}

/* N28: a transfer is refused cleanly if its target isn't there, or isn't healthy. */
static int check_candidate(struct baton *b, const char *name, const char *id,
			   struct baton_error *err)
{
	struct search s = {.id = id};
	struct baton_call call;
	void *lane = NULL;
	int code = check_name(name, err);

	if (code == 0)
		code = check_name(id, err);
	if (code == 0)
		code = lib_lane(b, &lane, &call, err);
	if (code != 0)
		return code;
	int outcome = b->driver->candidates(lane, &call, name, found_candidate, &s);

	code = admin_finish(b, outcome, &call, err);
	if (code != 0 || s.is_healthy)
		return code;
	return lib_fail(err, BATON_E_NO_CANDIDATE,
			s.is_there ? "the candidate %.100s is not healthy"
				   : "there is no candidate %.100s in this election",
			id);
}

int baton_order_transfer(struct baton *b, const char *name, uint64_t term, const char *candidate_id,
			 const char *note, struct baton_error *err)
{
	struct baton_order order = {.kind = BATON_ORDER_TRANSFER, .term = term};
	int code = check_candidate(b, name, candidate_id, err);

	if (code != 0)
		return code;
	(void)snprintf(order.target, sizeof(order.target), "%s", candidate_id);
	return leave_order(b, name, &order, note, err);
}

int baton_transfer(struct baton_election *e, const char *candidate_id, struct baton_error *err)
{
	struct event ev = {.kind = EV_TRANSFER, .target_ok = true};
	int code = e != NULL ? lib_check(e->handle) : BATON_E_INVALID;

	if (code != 0)
		return lib_fail(err, code, "%s", baton_strerror(code));
	if (!baton_is_leader(e))
		return lib_fail(err, BATON_E_NOT_LEADER, "%s", baton_strerror(BATON_E_NOT_LEADER));
	code = check_candidate(e->handle, e->name, candidate_id, err);
	if (code != 0)
		return code;
	ev.target = peers_find(e->handle, candidate_id, "");
	code = ev.target != NOBODY ? loop_tell(e, &ev) : BATON_E_MEMORY;
	return code == 0 ? 0 : lib_fail(err, code, "%s", baton_strerror(code));
}

static int set_pause(struct baton *b, const char *name, bool paused, struct baton_error *err)
{
	struct baton_call call;
	void *lane = NULL;
	int code = check_name(name, err);

	if (code == 0)
		code = lib_lane(b, &lane, &call, err);
	if (code != 0)
		return code;
	return admin_finish(b, b->driver->pause(lane, &call, name, paused), &call, err);
}

int baton_pause(struct baton *b, const char *name, struct baton_error *err)
{
	return set_pause(b, name, true, err);
}

int baton_resume(struct baton *b, const char *name, struct baton_error *err)
{
	return set_pause(b, name, false, err);
}

int baton_list_candidates(struct baton *b, const char *name,
			  void (*found)(void *arg, const struct baton_candidate *candidate),
			  void *arg, struct baton_error *err)
{
	struct list l = {.candidate = found, .arg = arg};
	struct baton_call call;
	void *lane = NULL;
	int code = check_name(name, err);

	if (code == 0 && found == NULL)
		code = lib_fail(err, BATON_E_INVALID, "%s", baton_strerror(BATON_E_INVALID));
	if (code == 0)
		code = lib_lane(b, &lane, &call, err);
	if (code != 0)
		return code;
	int outcome = b->driver->candidates(lane, &call, name, list_candidate, &l);

	code = admin_finish(b, outcome, &call, err);
	if (code != 0)
		return code;
	keep_candidates(b, name, &l);
	return (int)l.n;
}

/* A process that has just begun counts what has happened in the last hour. If it counted all that
 * the history keeps, each start would be told as an overlap of that moment. */
static bool is_news(const struct list *l, const struct baton_leadership *h)
{
	if (l->audited != 0)
		return h->term > l->audited;
	return h->since_ms == 0 || h->since_ms >= l->audit_from_ms;
}

/*
 * The auditor: by how much a leadership began before the previous one ended, on a clock of the
 * store. Leaderships are told newest first. Each pair counts once, when the later one is new to us.
 */
static void audit(struct list *l, const struct baton_leadership *h)
{
	const struct baton_leadership *later = &l->last;

	if (l->newest == 0)
		l->newest = h->term;
	else if (is_news(l, later) && h->clock[0] != '\0' && strcmp(h->clock, later->clock) == 0 &&
		 h->until_ns > later->since_ns)
		l->overlap_ns += h->until_ns - later->since_ns;
	l->last = *h;
}

static uint64_t audited_before(struct baton *b, const char *name)
{
	(void)pthread_mutex_lock(&b->app.lock);
	const struct numbers *numbers = numbers_of(b, name);
	uint64_t term = numbers != NULL ? atomic_load(&numbers->audited) : 0;

	(void)pthread_mutex_unlock(&b->app.lock);
	return term;
}

/* A short list may end before what was compared last: the pairs between are not looked at yet. */
static bool has_gap(const struct list *l)
{
	return l->n == l->max && l->max < AUDIT_LEAST && l->last.term > l->audited;
}

static void keep_audit(struct baton *b, const char *name, const struct list *l)
{
	(void)pthread_mutex_lock(&b->app.lock);
	struct numbers *numbers = numbers_of(b, name);

	/* Another thread may have read it meanwhile: then that thread has counted. */
	if (numbers != NULL && !has_gap(l) && atomic_load(&numbers->audited) == l->audited) {
		atomic_fetch_add(&numbers->overlap_ns, l->overlap_ns);
		atomic_store(&numbers->audited, max_ns(l->audited, l->newest));
	}
	(void)pthread_mutex_unlock(&b->app.lock);
}

struct candidates_array {
	unsigned char *to;
	size_t max;
	size_t size; /* of one, as the caller knows it */
	size_t n;
};

static void take_candidate(void *arg, const struct baton_candidate *c)
{
	struct candidates_array *a = arg;

	if (a->n < a->max) {
		struct baton_candidate all = *c;

		lib_give_sized(a->to + a->n * a->size, a->size, &all, sizeof(all));
	}
	a->n++;
}

int baton_get_candidates_sized(struct baton *b, const char *name,
			       struct baton_candidate *candidates, size_t max, size_t size,
			       struct baton_error *err)
{
	struct candidates_array a = {.to = (void *)candidates, .max = max, .size = size};

	if (max != 0 && (candidates == NULL || size < sizeof(size_t)))
		return lib_fail(err, BATON_E_INVALID, "%s", baton_strerror(BATON_E_INVALID));
	return baton_list_candidates(b, name, take_candidate, &a, err);
}

static void list_leadership(void *arg, const struct baton_leadership *h)
{
	struct list *l = arg;
	struct baton_leadership all = {0};

	if (l->n == l->max)
		return;
	(void)memcpy(&all, h, known_size(h->size, sizeof(all)));
	all.size = sizeof(all);
	l->n++;
	audit(l, &all);
	l->leadership(l->arg, &all);
}

int baton_list_history(struct baton *b, const char *name, size_t max,
		       void (*found)(void *arg, const struct baton_leadership *leadership),
		       void *arg, struct baton_error *err)
{
	struct list l = {.leadership = found, .arg = arg, .max = max != 0 ? max : INT32_MAX};
	struct baton_call call;
	void *lane = NULL;
	int code = check_name(name, err);

	if (code == 0 && found == NULL)
		code = lib_fail(err, BATON_E_INVALID, "%s", baton_strerror(BATON_E_INVALID));
	if (code == 0 && lib_check(b) == 0 && b->driver->history == NULL)
		return lib_fail(err, BATON_E_UNSUPPORTED, "this store keeps no history");
	if (code == 0)
		code = lib_lane(b, &lane, &call, err);
	if (code != 0)
		return code;
	l.audited = audited_before(b, name);
	l.audit_from_ms = b->opened_wall_ms - AUDIT_BACK_MS;
	int outcome = b->driver->history(lane, &call, name, l.max, list_leadership, &l);

	code = admin_finish(b, outcome, &call, err);
	if (code != 0)
		return code;
	keep_audit(b, name, &l);
	return (int)l.n;
}

#define ELECTIONS_PAGE 1000

static void list_name(void *arg, const char *name)
{
	struct list *l = arg;

	l->n++;
	l->name(l->arg, name);
}

int baton_list_elections(struct baton *b, const char *prefix, const char *after,
			 void (*found)(void *arg, const char *name), void *arg,
			 struct baton_error *err)
{
	struct list l = {.name = found, .arg = arg};
	struct baton_call call;
	void *lane = NULL;
	int code = lib_check(b);

	prefix = prefix != NULL ? prefix : "";
	after = after != NULL ? after : "";
	if (code == 0 &&
	    (found == NULL || strlen(prefix) > BATON_NAME_MAX || strlen(after) > BATON_NAME_MAX))
		code = BATON_E_INVALID;
	if (code != 0)
		return lib_fail(err, code, "%s", baton_strerror(code));
	if (b->driver->list == NULL)
		return lib_fail(err, BATON_E_UNSUPPORTED, "this store can't list its elections");
	code = lib_lane(b, &lane, &call, err);
	if (code != 0)
		return code;
	int outcome = b->driver->list(lane, &call, prefix, after, ELECTIONS_PAGE, list_name, &l);

	code = admin_finish(b, outcome, &call, err);
	return code != 0 ? code : (int)l.n;
}
