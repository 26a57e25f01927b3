/*
 * admin.c: questions and orders that go straight to the store, on a lane of the caller's own: they
 * block up to one call's time and disturb no election of the handle.
 */
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "lib/lib.h"
#include "lib/messages.h"

int lib_lane(struct baton *b, void **lane, struct baton_call *call, struct baton_error *err)
{
	int code = lib_check(b);

	if (code != 0)
		return lib_fail(err, code, "%s", baton_strerror(code));
	*call = (struct baton_call){.deadline_ns = clock_boot_ns() + timing_call_ns(&b->timing)};
	code = b->driver->lane_open(b->store, BATON_LANE_CAMPAIGN, lane, &call->error);
	return code == 0 ? 0 : lib_fail(err, code, "%s", call->error.text);
}

/* Closes the lane and puts the outcome into a code. */
static int admin_finish(struct baton *b, void *lane, int outcome, const struct baton_call *call,
			struct baton_error *err)
{
	b->driver->lane_close(lane);
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
			"A name or id is 1 to %d bytes of UTF-8 without control characters.",
			BATON_NAME_MAX);
}

static int admin_look(struct baton *b, const char *name, struct baton_record *record,
		      struct baton_error *err)
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

	b->driver->observe(lane, &call, &o, 1);
	if (o.code != 0 && call.error.code == 0)
		call.error.code = o.code;
	return admin_finish(b, lane, o.outcome, &call, err);
}

int baton_observe(struct baton *b, const char *name, struct baton_status *status,
		  struct baton_error *err)
{
	struct baton_record r;
	int code = admin_look(b, name, &r, err);

	if (code != 0)
		return code;
	*status = (struct baton_status){
		.state = BATON_STATE_STOPPED,
		.paused = r.paused,
		.term = r.term,
		.leader_since_ms = r.held ? r.since_ms : 0,
		.time_left_ms = !r.held ? 0
				: r.free_in_ns == BATON_STORE_NEVER
					? -1
					: (int64_t)(r.free_in_ns / NS_PER_MS),
		.score_permille = r.score_permille,
	};
	if (r.wait[0] != '\0' && r.free_in_ns != BATON_STORE_NEVER) {
		status->wait_ms = (int64_t)(r.free_in_ns / NS_PER_MS);
		(void)snprintf(status->wait, sizeof(status->wait), "%s", r.wait);
	}
	if (r.held) {
		(void)snprintf(status->leader, sizeof(status->leader), "%s", r.leader);
		(void)snprintf(status->leader_address, sizeof(status->leader_address), "%s",
			       r.address);
		(void)snprintf(status->leader_metadata, sizeof(status->leader_metadata), "%s",
			       r.metadata);
	}
	return 0;
}

/* ---- orders ---- */

/* Leaves an order for whoever leads now: it names the term (rule 10). */
static int leave_order(struct baton *b, const char *name, struct baton_order *order,
		       struct baton_error *err)
{
	struct baton_record r;
	struct baton_call call;
	void *lane = NULL;
	int code = admin_look(b, name, &r, err);

	if (code != 0)
		return code;
	if (!r.held)
		return lib_fail(err, BATON_E_NOT_LEADER,
				"Nobody leads %.100s, so there is nobody to "
				"take the order.",
				name);
	order->term = r.term;
	if (getrandom(&order->id, sizeof(order->id), 0) != (ssize_t)sizeof(order->id))
		order->id = clock_boot_ns();
	order->id |= 1;
	code = lib_lane(b, &lane, &call, err);
	if (code != 0)
		return code;
	return admin_finish(b, lane, b->driver->order(lane, &call, name, order), &call, err);
}

int baton_order_resign(struct baton *b, const char *name, int64_t quiet_ms, struct baton_error *err)
{
	struct baton_order order = {.kind = BATON_ORDER_RESIGN,
				    .quiet_ms = quiet_ms > 0 ? (uint64_t)quiet_ms : 0};

	return leave_order(b, name, &order, err);
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

/* N28: refused cleanly if it isn't there, or isn't well. */
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

	code = admin_finish(b, lane, outcome, &call, err);
	if (code != 0 || s.is_healthy)
		return code;
	return lib_fail(err, BATON_E_NO_CANDIDATE,
			s.is_there ? "The candidate %.100s is not healthy."
				   : "There is no candidate %.100s in this election.",
			id);
}

int baton_order_transfer(struct baton *b, const char *name, const char *candidate_id,
			 struct baton_error *err)
{
	struct baton_order order = {.kind = BATON_ORDER_TRANSFER};
	int code = check_candidate(b, name, candidate_id, err);

	if (code != 0)
		return code;
	(void)snprintf(order.target, sizeof(order.target), "%s", candidate_id);
	return leave_order(b, name, &order, err);
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
	return admin_finish(b, lane, b->driver->pause(lane, &call, name, paused), &call, err);
}

int baton_pause(struct baton *b, const char *name, struct baton_error *err)
{
	return set_pause(b, name, true, err);
}

int baton_resume(struct baton *b, const char *name, struct baton_error *err)
{
	return set_pause(b, name, false, err);
}

/* ---- lists ---- */

struct list {
	void *to;
	size_t max;
	size_t n;
};

static void list_candidate(void *arg, const struct baton_candidate *c)
{
	struct list *l = arg;

	if (l->n < l->max)
		((struct baton_candidate *)l->to)[l->n] = *c;
	l->n++;
}

int baton_list_candidates(struct baton *b, const char *name, struct baton_candidate *list,
			  size_t max, struct baton_error *err)
{
	struct list l = {.to = list, .max = max};
	struct baton_call call;
	void *lane = NULL;
	int code = check_name(name, err);

	if (code == 0)
		code = lib_lane(b, &lane, &call, err);
	if (code != 0)
		return code;
	int outcome = b->driver->candidates(lane, &call, name, list_candidate, &l);

	code = admin_finish(b, lane, outcome, &call, err);
	return code != 0 ? code : (int)l.n;
}

static void list_leadership(void *arg, const struct baton_leadership *h)
{
	struct list *l = arg;

	if (l->n < l->max)
		((struct baton_leadership *)l->to)[l->n] = *h;
	l->n++;
}

int baton_list_history(struct baton *b, const char *name, struct baton_leadership *list, size_t max,
		       struct baton_error *err)
{
	struct list l = {.to = list, .max = max};
	struct baton_call call;
	void *lane = NULL;
	int code = check_name(name, err);

	if (code == 0 && lib_check(b) == 0 && b->driver->history == NULL)
		return lib_fail(err, BATON_E_UNSUPPORTED, "This store keeps no history.");
	if (code == 0)
		code = lib_lane(b, &lane, &call, err);
	if (code != 0)
		return code;
	int outcome = b->driver->history(lane, &call, name, max, list_leadership, &l);

	code = admin_finish(b, lane, outcome, &call, err);
	return code != 0 ? code : (int)l.n;
}
