/*
 * memory.c: the memory driver, "memory:NAME": a store inside this process, for users' own tests.
 * It keeps the contract of baton-store.h to the letter: a program that works on it works on a
 * server. Nothing survives the process; the switches of baton-memory.h break things on purpose.
 *
 * Each verb is the same three steps: come in through the gate, which takes the lock and does what
 * the switches say; do the one thing, atomically; leave through the gate. Callers' functions are
 * called after that, without the lock, on a copy.
 */
#include "memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const struct baton_driver baton_memory_driver;

/* Rows for the caller's function, copied while the lock is held. */
struct rows {
	char *data;
	size_t size;
	size_t room;
};

static void *rows_add(struct rows *rows, size_t size);

static int no_memory(struct baton_call *call)
{
	store_fail(&call->error, BATON_E_MEMORY, "There is no memory for it.");
	return BATON_OUTCOME_FAILED;
}

/* ---- the store and its lanes ---- */

static int store_open(const struct baton_store_config *config, void **store,
		      struct baton_error *err)
{
	struct baton_memory *handle;
	struct baton_error own = {0};

	if (config == NULL || config->size < sizeof(*config)) {
		store_fail(err, BATON_E_INVALID, "The store's configuration is not one.");
		return BATON_E_INVALID;
	}
	handle = memory_handle_new(config->url, &own);
	if (handle == NULL) {
		if (err != NULL)
			*err = own;
		return own.code;
	}
	*store = handle;
	return 0;
}

static void store_close(void *store)
{
	memory_handle_free(store);
}

static const struct baton_traits *store_traits(const void *store)
{
	static const struct baton_traits traits = {
		.pushes = true,
		.keeps_history = true,
		.promises =
			"All handles of this process on one name share the store. At most one "
			"leader at a time and terms that only grow, as long as a handle is open: "
			"nothing outlives the last one, and other processes see nothing of it. A "
			"test may switch on faults that break this.",
	};

	(void)store;
	return &traits;
}

static int lane_open(void *store, int kind, void **lane, struct baton_error *err)
{
	struct memory_lane *l = calloc(1, sizeof(*l));

	(void)kind;
	if (l == NULL || memory_cond_init(&l->wake) != 0) {
		free(l);
		store_fail(err, BATON_E_MEMORY, "There is no memory for a lane of the store.");
		return BATON_E_MEMORY;
	}
	l->handle = store;
	LIST_INIT(&l->watches);
	TAILQ_INIT(&l->pending);
	pthread_mutex_lock(&l->handle->memory->lock);
	LIST_INSERT_HEAD(&l->handle->memory->lanes, l, all);
	pthread_mutex_unlock(&l->handle->memory->lock);
	*lane = l;
	return 0;
}

static void lane_close(void *lane)
{
	struct memory_lane *l = lane;

	if (l == NULL)
		return;
	if (!memory_handle_is_forked(l->handle)) {
		pthread_mutex_lock(&l->handle->memory->lock);
		memory_watch_clear(l);
		LIST_REMOVE(l, all);
		pthread_mutex_unlock(&l->handle->memory->lock);
		pthread_cond_destroy(&l->wake);
	}
	free(l);
}

/* There are no descriptors; memory_registry.c has seen the fork. */
static void store_forget(void *store)
{
	(void)store;
}

/* ---- leases ---- */

static int lease_open(void *lane, struct baton_call *call, const struct baton_lease *lease)
{
	struct memory *m = ((struct memory_lane *)lane)->handle->memory;
	struct memory_fault fault;
	int outcome = memory_enter(lane, call, BATON_MEMORY_OPEN, &fault);

	if (outcome == 0) {
		struct memory_lease *l = memory_lease_find(m, lease->id);

		outcome = BATON_OUTCOME_OK;
		if (l != NULL) /* it was carried out before, and nobody knew */
			memory_lease_renew(m, l, lease->ttl_ns);
		else if (memory_lease_new(m, lease) == NULL)
			outcome = no_memory(call);
	}
	return memory_leave(lane, call, &fault, outcome);
}

static int lease_renew(void *lane, struct baton_call *call, const struct baton_lease *lease,
		       uint32_t *n_held)
{
	struct memory *m = ((struct memory_lane *)lane)->handle->memory;
	struct memory_fault fault;
	uint32_t n = 0;
	int outcome = memory_enter(lane, call, BATON_MEMORY_RENEW, &fault);

	if (outcome == 0) {
		struct memory_lease *l = memory_lease_find(m, lease->id);

		outcome = l != NULL ? BATON_OUTCOME_OK : BATON_OUTCOME_REFUSED;
		if (l != NULL) {
			memory_lease_renew(m, l, lease->ttl_ns);
			n = l->n_claims;
		}
	}
	outcome = memory_leave(lane, call, &fault, outcome);
	if (outcome == BATON_OUTCOME_OK)
		*n_held = n;
	return outcome;
}

static int lease_close(void *lane, struct baton_call *call, const struct baton_lease *lease)
{
	struct memory *m = ((struct memory_lane *)lane)->handle->memory;
	struct memory_fault fault;
	int outcome = memory_enter(lane, call, BATON_MEMORY_CLOSE, &fault);

	if (outcome == 0) {
		struct memory_lease *l = memory_lease_find(m, lease->id);

		outcome = BATON_OUTCOME_OK;
		if (l != NULL)
			memory_lease_end(m, l, MEMORY_END_CLOSED);
	}
	return memory_leave(lane, call, &fault, outcome);
}

struct claim_row {
	uint64_t nonce;
	uint64_t term;
	char name[BATON_NAME_MAX + 1];
};

static int list_claims(const struct memory_lease *l, struct rows *rows)
{
	struct memory_election *e;

	for (e = LIST_FIRST(&l->claims); e != NULL; e = LIST_NEXT(e, claim)) {
		struct claim_row *row = rows_add(rows, sizeof(*row));

		if (row == NULL)
			return BATON_E_MEMORY;
		row->nonce = e->nonce;
		row->term = e->term;
		(void)snprintf(row->name, sizeof(row->name), "%s", e->name);
	}
	return 0;
}

static int claims(void *lane, struct baton_call *call, const struct baton_lease *lease,
		  void (*found)(void *arg, const char *name, uint64_t nonce, uint64_t term),
		  void *arg)
{
	struct memory *m = ((struct memory_lane *)lane)->handle->memory;
	struct memory_fault fault;
	struct rows rows = {0};
	int outcome = memory_enter(lane, call, BATON_MEMORY_CLAIMS, &fault);

	if (outcome == 0) {
		struct memory_lease *l = memory_lease_find(m, lease->id);

		outcome = BATON_OUTCOME_OK; /* a lease that is gone holds nothing */
		if (l != NULL && list_claims(l, &rows) != 0)
			outcome = no_memory(call);
	}
	outcome = memory_leave(lane, call, &fault, outcome);
	for (size_t i = 0; outcome == BATON_OUTCOME_OK && i < rows.size;
	     i += sizeof(struct claim_row)) {
		struct claim_row *row = (struct claim_row *)(void *)(rows.data + i);

		found(arg, row->name, row->nonce, row->term);
	}
	free(rows.data);
	return outcome;
}

/* ---- campaigns ---- */

/* 1: a test wants it to win, -1: to lose, 0: no test has a say. */
static int take_rig(struct memory *m, struct memory_election *e)
{
	struct memory_rig *rig = e->rig.times != 0 ? &e->rig : &m->rig;

	if (rig->times == 0)
		return 0;
	if (rig->times != BATON_MEMORY_ALWAYS)
		rig->times--;
	return rig->wins ? 1 : -1;
}

static void campaign_failed(struct baton_call *call, struct baton_campaign *c, int code,
			    const char *what)
{
	c->outcome = BATON_OUTCOME_FAILED;
	c->code = code;
	store_fail(&call->error, code, "The election \"%.60s\" %s", c->name, what);
}

/* S3, S4: above what the store knows and above what the candidate knows; or not at all. */
static uint64_t mint(struct baton_call *call, const struct memory_election *e,
		     struct baton_campaign *c)
{
	uint64_t highest = e->term > c->floor ? e->term : c->floor;

	if (highest >= MEMORY_TERM_MAX) {
		campaign_failed(call, c, BATON_E_CORRUPT,
				"has no higher term: they are used up, or its record is damaged; "
				"give it a new name.");
		return 0;
	}
	if (e->term > 0 && c->floor > e->term && c->floor - e->term > MEMORY_FLOOR_JUMP_MAX) {
		campaign_failed(call, c, BATON_E_CORRUPT,
				"has a term in the store that is impossibly far below the one that "
				"the candidate has seen: one of the two is damaged.");
		return 0;
	}
	return highest + 1;
}

static void win(struct memory *m, struct baton_call *call, struct memory_election *e,
		struct memory_lease *l, struct baton_campaign *c)
{
	struct memory_profile profile;
	uint64_t term = mint(call, e, c);

	if (term == 0)
		return;
	if (memory_profile_copy(&profile, &c->profile) != 0) {
		campaign_failed(call, c, BATON_E_MEMORY,
				"can't have a leader: there is no memory to record it.");
		return;
	}
	if (e->holder != NULL) /* only where a test wants it so */
		memory_unclaim(m, e, m->ends[MEMORY_END_TAKEN]);
	e->term = term;
	e->nonce = c->nonce;
	memory_claim(m, e, l, &profile);
	c->term = term;
	c->outcome = BATON_OUTCOME_OK;
	c->code = 0;
}

static void campaign_one(struct memory *m, struct baton_call *call, const struct baton_lease *lease,
			 struct baton_campaign *c)
{
	struct memory_lease *l = memory_lease_find(m, lease->id);
	struct memory_election *e = memory_election_get(m, c->name);
	int rig = e != NULL && l != NULL ? take_rig(m, e) : 0;

	c->term = 0;
	if (e == NULL) {
		campaign_failed(call, c, BATON_E_MEMORY, "can't be recorded: there is no memory.");
		return;
	}
	memory_record(m, e, lease->owner, c->record);
	if (l != NULL && e->holder != l && rig >= 0 &&
	    (rig > 0 || (!c->record->held && !c->record->reserved && !e->paused))) {
		win(m, call, e, l, c);
	} else {
		c->outcome = BATON_OUTCOME_REFUSED;
		c->code = 0;
		/* Refused though it is free: worth another try soon. */
		if (!c->record->held && !c->record->reserved && !e->paused)
			c->record->free_in_ns = 0;
	}
	memory_election_tidy(m, e);
}

static void campaign(void *lane, struct baton_call *call, const struct baton_lease *lease,
		     struct baton_campaign *list, size_t n)
{
	struct memory *m = ((struct memory_lane *)lane)->handle->memory;
	struct memory_fault fault;
	int outcome = memory_enter(lane, call, BATON_MEMORY_CAMPAIGN, &fault);
	bool reached = outcome == 0;

	for (size_t i = 0; reached && i < n; i++)
		campaign_one(m, call, lease, &list[i]);
	outcome = memory_leave(lane, call, &fault, reached ? BATON_OUTCOME_OK : outcome);
	for (size_t i = 0; outcome != BATON_OUTCOME_OK && i < n; i++) {
		list[i].outcome = outcome;
		list[i].code = call->error.code;
		list[i].term = 0;
		memset(list[i].record, 0, sizeof(*list[i].record));
	}
}

/* ---- releases ---- */

/* Most releases give the reason of the one before. */
static struct memory_word *reason_word(struct memory *m, const char *reason)
{
	const char *text = reason != NULL && reason[0] != '\0' ? reason : "released";

	if (m->reason == NULL || strcmp(m->reason->text, text) != 0) {
		struct memory_word *w = memory_word_new(text);

		if (w == NULL)
			return NULL;
		memory_word_unref(m->reason);
		m->reason = w;
	}
	return m->reason;
}

static void release_one(struct memory *m, struct baton_call *call, struct baton_release *r)
{
	struct memory_election *e = memory_election_find(m, r->name);
	struct memory_word *reason, *target = NULL;
	uint64_t now_ns = memory_now_ns(m);

	r->code = 0;
	r->outcome = BATON_OUTCOME_REFUSED;
	/* S6: lease, nonce and term. */
	if (e == NULL || e->holder == NULL || strcmp(e->holder->id, r->lease_id) != 0 ||
	    e->nonce != r->nonce || e->term != r->term)
		return;
	reason = reason_word(m, r->reason);
	if (r->reserve_for != NULL)
		target = memory_word_new(r->reserve_for);
	if (reason == NULL || (r->reserve_for != NULL && target == NULL)) {
		memory_word_unref(target);
		r->outcome = no_memory(call);
		r->code = call->error.code;
		return;
	}
	memory_unclaim(m, e, reason);
	e->reserved_for = target;
	e->reserved_until_ns =
		r->hold_ns > BATON_STORE_NEVER - now_ns ? BATON_STORE_NEVER : now_ns + r->hold_ns;
	r->outcome = BATON_OUTCOME_OK;
}

static void release(void *lane, struct baton_call *call, struct baton_release *list, size_t n)
{
	struct memory *m = ((struct memory_lane *)lane)->handle->memory;
	struct memory_fault fault;
	int outcome = memory_enter(lane, call, BATON_MEMORY_RELEASE, &fault);
	bool reached = outcome == 0;

	for (size_t i = 0; reached && i < n; i++)
		release_one(m, call, &list[i]);
	outcome = memory_leave(lane, call, &fault, reached ? BATON_OUTCOME_OK : outcome);
	for (size_t i = 0; outcome != BATON_OUTCOME_OK && i < n; i++) {
		list[i].outcome = outcome;
		list[i].code = call->error.code;
	}
}

/* ---- looking ---- */

static void observe(void *lane, struct baton_call *call, struct baton_observation *list, size_t n)
{
	struct memory *m = ((struct memory_lane *)lane)->handle->memory;
	struct memory_fault fault;
	int outcome = memory_enter(lane, call, BATON_MEMORY_OBSERVE, &fault);
	bool reached = outcome == 0;

	for (size_t i = 0; reached && i < n; i++)
		memory_record(m, memory_election_find(m, list[i].name), list[i].id, list[i].record);
	outcome = memory_leave(lane, call, &fault, reached ? BATON_OUTCOME_OK : outcome);
	for (size_t i = 0; i < n; i++) {
		list[i].outcome = outcome;
		list[i].code = call->error.code;
		if (outcome != BATON_OUTCOME_OK)
			memset(list[i].record, 0, sizeof(*list[i].record));
	}
}

static int watch_add(void *lane, const char *name, uint64_t cookie)
{
	struct memory_lane *l = lane;
	int rc;

	pthread_mutex_lock(&l->handle->memory->lock);
	rc = memory_watch_add(l, name, cookie);
	pthread_mutex_unlock(&l->handle->memory->lock);
	return rc;
}

static void watch_remove(void *lane, const char *name, uint64_t cookie)
{
	struct memory_lane *l = lane;

	pthread_mutex_lock(&l->handle->memory->lock);
	memory_watch_remove(l, name, cookie);
	pthread_mutex_unlock(&l->handle->memory->lock);
}

static int watch_wait(void *lane, struct baton_call *call, uint64_t *cookies, size_t max)
{
	struct memory_lane *l = lane;
	struct memory_fault fault;
	int n = 0;
	int outcome = memory_enter(l, call, BATON_MEMORY_WATCH, &fault);

	if (outcome == 0) {
		n = memory_watch_take(l, call, cookies, max < INT32_MAX ? max : INT32_MAX);
		outcome = BATON_OUTCOME_OK;
	}
	outcome = memory_leave(l, call, &fault, outcome);
	if (outcome == BATON_OUTCOME_OK)
		return n;
	/* What was taken is lost: the next wait that works says so. */
	pthread_mutex_lock(&l->handle->memory->lock);
	l->broken = true;
	pthread_mutex_unlock(&l->handle->memory->lock);
	return call->error.code;
}

static void watch_wake(void *lane)
{
	struct memory_lane *l = lane;
	struct memory *m = l->handle->memory;

	pthread_mutex_lock(&m->lock);
	l->woken = true;
	pthread_cond_signal(&l->wake);
	pthread_cond_broadcast(&m->changed); /* it may wait at the gate */
	pthread_mutex_unlock(&m->lock);
}

/* ---- candidates ---- */

static bool is_same(const struct memory_profile *a, const struct memory_profile *b)
{
	return a->priority == b->priority && a->score_permille == b->score_permille &&
	       a->is_healthy == b->is_healthy &&
	       strcmp(a->metadata != NULL ? a->metadata : "",
		      b->metadata != NULL ? b->metadata : "") == 0;
}

static void replace(struct memory_profile *to, const struct memory_profile *from)
{
	free(to->metadata);
	*to = *from;
}

/* The holder's profile stands in the record, too, and is worth a hint when it changes. */
static int publish_one(struct memory *m, struct memory_lease *l, const struct baton_publication *p)
{
	struct memory_election *e = memory_election_get(m, p->name);
	struct memory_candidate *c = e != NULL ? memory_candidate_find(e, l) : NULL;
	struct memory_profile shown = {0}, held = {0};
	bool holds = e != NULL && e->holder == l;

	if (e == NULL || memory_profile_copy(&shown, &p->profile) != 0 ||
	    (holds && memory_profile_copy(&held, &p->profile) != 0) ||
	    (c == NULL && (c = memory_candidate_new(e, l)) == NULL)) {
		free(shown.metadata);
		free(held.metadata);
		if (e != NULL)
			memory_election_tidy(m, e);
		return BATON_E_MEMORY;
	}
	c->updated_ms = memory_wall_ms(m);
	replace(&c->profile, &shown);
	if (holds) {
		if (!is_same(&e->profile, &held))
			memory_hint(e);
		replace(&e->profile, &held);
	}
	return 0;
}

static void publish(void *lane, struct baton_call *call, const struct baton_lease *lease,
		    struct baton_publication *list, size_t n)
{
	struct memory *m = ((struct memory_lane *)lane)->handle->memory;
	struct memory_fault fault;
	int outcome = memory_enter(lane, call, BATON_MEMORY_PUBLISH, &fault);
	bool reached = outcome == 0;
	struct memory_lease *l = reached ? memory_lease_find(m, lease->id) : NULL;

	for (size_t i = 0; reached && i < n; i++) {
		list[i].code = l != NULL ? publish_one(m, l, &list[i]) : 0;
		list[i].outcome = l != NULL ? BATON_OUTCOME_OK : BATON_OUTCOME_REFUSED;
		if (list[i].code != 0)
			list[i].outcome = no_memory(call);
	}
	outcome = memory_leave(lane, call, &fault, reached ? BATON_OUTCOME_OK : outcome);
	for (size_t i = 0; outcome != BATON_OUTCOME_OK && i < n; i++) {
		list[i].outcome = outcome;
		list[i].code = call->error.code;
	}
}

static int withdraw(void *lane, struct baton_call *call, const struct baton_lease *lease,
		    const char *name)
{
	struct memory *m = ((struct memory_lane *)lane)->handle->memory;
	struct memory_fault fault;
	int outcome = memory_enter(lane, call, BATON_MEMORY_WITHDRAW, &fault);

	if (outcome == 0) {
		struct memory_lease *l = memory_lease_find(m, lease->id);
		struct memory_election *e = memory_election_find(m, name);
		struct memory_candidate *c =
			l != NULL && e != NULL ? memory_candidate_find(e, l) : NULL;

		outcome = BATON_OUTCOME_OK;
		if (c != NULL)
			memory_candidate_free(m, c);
	}
	return memory_leave(lane, call, &fault, outcome);
}

static int list_candidates(const struct memory_election *e, struct rows *rows)
{
	struct memory_candidate *c;

	for (c = LIST_FIRST(&e->candidates); c != NULL; c = LIST_NEXT(c, of_election)) {
		struct baton_candidate *row = rows_add(rows, sizeof(*row));

		if (row == NULL)
			return BATON_E_MEMORY;
		row->is_leader = e->holder == c->lease;
		row->is_healthy = c->profile.is_healthy;
		row->score_permille = c->profile.score_permille;
		row->priority = c->profile.priority;
		row->updated_ms = c->updated_ms;
		(void)snprintf(row->id, sizeof(row->id), "%s", c->lease->owner->text);
		(void)snprintf(row->address, sizeof(row->address), "%s", c->lease->address->text);
		(void)snprintf(row->metadata, sizeof(row->metadata), "%s",
			       c->profile.metadata != NULL ? c->profile.metadata : "");
	}
	return 0;
}

static int candidates(void *lane, struct baton_call *call, const char *name,
		      void (*found)(void *arg, const struct baton_candidate *candidate), void *arg)
{
	struct memory *m = ((struct memory_lane *)lane)->handle->memory;
	struct memory_fault fault;
	struct rows rows = {0};
	int outcome = memory_enter(lane, call, BATON_MEMORY_CANDIDATES, &fault);

	if (outcome == 0) {
		struct memory_election *e = memory_election_find(m, name);

		outcome = BATON_OUTCOME_OK;
		if (e != NULL && list_candidates(e, &rows) != 0)
			outcome = no_memory(call);
	}
	outcome = memory_leave(lane, call, &fault, outcome);
	for (size_t i = 0; outcome == BATON_OUTCOME_OK && i < rows.size;
	     i += sizeof(struct baton_candidate))
		found(arg, (struct baton_candidate *)(void *)(rows.data + i));
	free(rows.data);
	return outcome;
}

/* ---- orders ---- */

static int order(void *lane, struct baton_call *call, const char *name,
		 const struct baton_order *given)
{
	struct memory *m = ((struct memory_lane *)lane)->handle->memory;
	struct memory_fault fault;
	int outcome = memory_enter(lane, call, BATON_MEMORY_ORDER, &fault);

	if (outcome == 0) {
		struct memory_election *e = memory_election_find(m, name);

		outcome = BATON_OUTCOME_OK;
		if (e == NULL || e->holder == NULL || e->term != given->term) {
			outcome = BATON_OUTCOME_REFUSED; /* rule 10 */
		} else if (e->order == NULL && (e->order = malloc(sizeof(*e->order))) == NULL) {
			outcome = no_memory(call);
		} else {
			*e->order = *given;
			memory_hint(e);
		}
	}
	return memory_leave(lane, call, &fault, outcome);
}

static int pause_election(void *lane, struct baton_call *call, const char *name, bool paused)
{
	struct memory *m = ((struct memory_lane *)lane)->handle->memory;
	struct memory_fault fault;
	int outcome = memory_enter(lane, call, BATON_MEMORY_PAUSE, &fault);

	if (outcome == 0) {
		struct memory_election *e = memory_election_get(m, name);

		outcome = BATON_OUTCOME_OK;
		if (e == NULL) {
			outcome = no_memory(call);
		} else {
			if (e->paused != paused)
				memory_hint(e);
			e->paused = paused;
			memory_election_tidy(m, e);
		}
	}
	return memory_leave(lane, call, &fault, outcome);
}

/* ---- history ---- */

static int list_history(const struct memory_election *e, size_t max, struct rows *rows)
{
	for (uint8_t i = e->past_n; i > 0 && max > 0; i--, max--) {
		const struct memory_past *p = memory_past_at(e, (uint8_t)(i - 1));
		struct baton_leadership *row = rows_add(rows, sizeof(*row));

		if (row == NULL)
			return BATON_E_MEMORY;
		row->term = p->term;
		row->since_ms = p->since_ms;
		row->until_ms = p->until_ms;
		row->since_ns = p->since_ns;
		row->until_ns = p->until_ns;
		(void)snprintf(row->clock, sizeof(row->clock), "memory");
		(void)snprintf(row->leader, sizeof(row->leader), "%s", p->leader->text);
		(void)snprintf(row->ended, sizeof(row->ended), "%s",
			       p->ended != NULL ? p->ended->text : "");
	}
	return 0;
}

static int history(void *lane, struct baton_call *call, const char *name, size_t max,
		   void (*found)(void *arg, const struct baton_leadership *leadership), void *arg)
{
	struct memory *m = ((struct memory_lane *)lane)->handle->memory;
	struct memory_fault fault;
	struct rows rows = {0};
	int outcome = memory_enter(lane, call, BATON_MEMORY_HISTORY, &fault);

	if (outcome == 0) {
		struct memory_election *e = memory_election_find(m, name);

		outcome = BATON_OUTCOME_OK;
		if (e != NULL && list_history(e, max, &rows) != 0)
			outcome = no_memory(call);
	}
	outcome = memory_leave(lane, call, &fault, outcome);
	for (size_t i = 0; outcome == BATON_OUTCOME_OK && i < rows.size;
	     i += sizeof(struct baton_leadership))
		found(arg, (struct baton_leadership *)(void *)(rows.data + i));
	free(rows.data);
	return outcome;
}

/* A zeroed row, or NULL. All rows of one list have the same type. */
static void *rows_add(struct rows *rows, size_t size)
{
	if (rows->room - rows->size < size) {
		size_t room = rows->room == 0 ? 4 * size : 2 * rows->room;
		char *data = realloc(rows->data, room);

		if (data == NULL)
			return NULL;
		rows->data = data;
		rows->room = room;
	}
	rows->size += size;
	return memset(rows->data + rows->size - size, 0, size);
}

static const char *const schemes[] = {"memory", NULL};

const struct baton_driver baton_memory_driver = {
	.abi = BATON_STORE_ABI,
	.name = "memory",
	.schemes = schemes,
	.open = store_open,
	.close = store_close,
	.traits = store_traits,
	.lane_open = lane_open,
	.lane_close = lane_close,
	.forget = store_forget,
	.lease_open = lease_open,
	.lease_renew = lease_renew,
	.lease_close = lease_close,
	.claims = claims,
	.campaign = campaign,
	.release = release,
	.observe = observe,
	.watch_add = watch_add,
	.watch_remove = watch_remove,
	.watch_wait = watch_wait,
	.watch_wake = watch_wake,
	.publish = publish,
	.withdraw = withdraw,
	.candidates = candidates,
	.order = order,
	.pause = pause_election,
	.history = history,
};
