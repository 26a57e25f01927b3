/*
 * campaign.c: campaigning and releasing. A claim is one write, on condition that the object is the
 * one that was seen (resourceVersion). What the watch has shown does for that: a standby that
 * hears of a release claims without looking. Where there is no object, one that nobody holds is
 * made first.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/kubernetes/kube.h"

/* One election of a batch, on its way. */
struct attempt {
	struct baton_campaign *c;
	struct kube_lease l;
	struct kube_lease process; /* that holds it; ended, if it is to be taken over */
	uint64_t end_ns;
	uint64_t term;
	bool is_known;  /* the watch says that another has it: then a look is all that it takes */
	bool is_wanted; /* a claim is to be made */
	char object[KUBE_NAME_MAX + 1];
};

/* So many are looked at in one go. */
#define CROWD 16

struct crowd {
	struct attempt *tries;
	size_t n;
	uint64_t rv; /* where the store was */
};

static void done(struct attempt *t, int outcome, int code)
{
	t->c->outcome = outcome;
	t->c->code = code;
}

/* ---- terms ---- */

static int fail_one(struct baton_call *call, struct attempt *t, int code, const char *what)
{
	done(t, BATON_OUTCOME_FAILED, code);
	return store_fail(&call->error, code, "the election \"%.60s\" %s", t->c->name, what);
}

/*
 * S3, S4: above the stored term and the floor. An object without one begins with its
 * resourceVersion, which is above all that there ever were, and no other object's. (Where the store
 * was when there was none is not: one may have come, been led, and gone since.) Where the floor is
 * higher than that, the store was put back to an earlier state: that is said once, as an error,
 * before it is done.
 */
static int mint(struct kube_store *s, struct baton_call *call, struct attempt *t)
{
	uint64_t stored = t->l.term != 0 ? t->l.term : t->l.rv;
	uint64_t floor = t->c->floor;

	if (stored >= KUBE_TERM_MAX || floor >= KUBE_TERM_MAX)
		return fail_one(call, t, BATON_E_CORRUPT,
				"has no higher term: they are used up, or its record is damaged; "
				"give it a new name");
	if (floor > stored && floor - stored > KUBE_JUMP_MAX)
		return fail_one(call, t, BATON_E_CORRUPT,
				"has a term in the store that is impossibly far below the one that "
				"the candidate has seen: one of the two is damaged");
	store_lock(&s->web.base);
	bool is_news = floor > stored && !s->is_loss_reported;

	s->is_loss_reported = s->is_loss_reported || floor > stored;
	store_unlock(&s->web.base);
	if (is_news)
		return fail_one(call, t, BATON_E_STALE,
				"had higher terms than this cluster knows: its data was put back "
				"to an earlier state, or it is another cluster; terms go on above "
				"the highest that was seen");
	t->term = (stored > floor ? stored : floor) + 1;
	return 0;
}

/* ---- claims ---- */

void kube_put_free(struct bytes *b, char *text)
{
	b->has_failed = b->has_failed || text == NULL;
	kube_put_text(b, text != NULL ? text : "");
	free(text);
}

static uint64_t seconds_of(uint64_t ns)
{
	return (ns + CLOCK_NS_PER_S - 1) / CLOCK_NS_PER_S;
}

static void put_annotations(struct bytes *b, const struct kube_store *s,
			    const struct baton_lease *lease, const struct attempt *t,
			    uint64_t transitions)
{
	char process[KUBE_NAME_MAX + 1];

	bytes_print(b,
		    "\"annotations\":{\"baton/term\":\"%" PRIu64
		    "\",\"baton/transitions\":\"%" PRIu64 "\",\"baton/claim\":\"%s %" PRIu64
		    " %" PRIu64 "\",\"baton/leader\":",
		    t->term, transitions, lease->id, t->c->nonce, t->term);
	kube_put_free(b, web_claim_text(lease, t->c->nonce, clock_wall_ms(), &t->c->profile));
	if (strcmp(t->object, t->c->name) != 0) {
		bytes_print(b, ",\"baton/name\":");
		kube_put_text(b, t->c->name);
	}
	kube_process_name(lease->id, process);
	bytes_print(b, ",\"baton/process\":\"%s\"", s->options.process_lease ? process : "");
	bytes_print(b, ",\"baton/order\":null,\"baton/reserved\":null}");
}

static void put_spec(struct bytes *b, const struct kube_store *s, const struct baton_lease *lease,
		     uint64_t transitions)
{
	char now[KUBE_TIME_MAX];

	kube_now(now);
	bytes_print(b, "\"spec\":{\"holderIdentity\":");
	kube_put_text(b, lease->owner);
	bytes_print(b,
		    ",\"leaseDurationSeconds\":%" PRIu64 ",\"acquireTime\":\"%s\","
		    "\"renewTime\":\"%s\",\"leaseTransitions\":%" PRIu64
		    ",\"preferredHolder\":null}",
		    s->options.process_lease ? (uint64_t)KUBE_FOREVER_S : seconds_of(lease->ttl_ns),
		    now, now, transitions);
}

void kube_put_new(const struct kube_store *s, struct kube_call *call, const char *name,
		  bool is_paused)
{
	struct bytes *b = &call->body;
	char object[KUBE_NAME_MAX + 1];

	kube_object_name(name, object);
	*call = (struct kube_call){.method = "POST", .type = KUBE_JSON};
	kube_path(s, call, NULL, "?fieldManager=baton&for=%s", is_paused ? "pause" : "make");
	bytes_print(b,
		    "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":{"
		    "\"name\":\"%s\",\"annotations\":{%s%s",
		    object, is_paused ? "\"baton/paused\":\"1\"" : "",
		    is_paused && strcmp(object, name) != 0 ? "," : "");
	if (strcmp(object, name) != 0) {
		bytes_print(b, "\"baton/name\":");
		kube_put_text(b, name);
	}
	bytes_print(b, "}},\"spec\":{}}");
}

static void put_claim(const struct kube_store *s, struct kube_call *call,
		      const struct baton_lease *lease, const struct attempt *t)
{
	uint64_t transitions = t->l.transitions + (t->l.acquire[0] != '\0'); /* not the first */
	struct bytes *b = &call->body;

	if (transitions > INT32_MAX)
		transitions = INT32_MAX;
	*call = (struct kube_call){.method = "PATCH", .type = KUBE_MERGE};
	kube_path(s, call, t->object, "?fieldManager=baton&for=campaign");
	bytes_print(b, "{\"metadata\":{\"resourceVersion\":\"%" PRIu64 "\",", t->l.rv);
	if (s->options.process_lease)
		bytes_print(b, "\"labels\":{\"baton/lease\":\"%s\"},", lease->id);
	put_annotations(b, s, lease, t, transitions);
	bytes_print(b, "},");
	put_spec(b, s, lease, transitions);
	bytes_print(b, "}");
}

/* ---- campaigns ---- */

static void forget(struct attempt *t)
{
	kube_lease_done(&t->l);
	kube_lease_done(&t->process);
	t->is_wanted = false;
}

/* Free, paused, kept or held: by what we know of it. True: it can be claimed. */
static bool judge(struct kube_lane *lane, struct baton_call *call, const struct baton_lease *lease,
		  struct attempt *t)
{
	struct baton_record *r = t->c->record;
	int outcome = kube_end_of(lane, call, &t->l, lease->ttl_ns, &t->end_ns, &t->process);

	if (outcome != BATON_OUTCOME_OK) {
		done(t, BATON_OUTCOME_FAILED, call->error.code);
		return false;
	}
	kube_record(lane->store, t->c->name, lease->owner, &t->l, t->end_ns, r);
	/* A claim on this lease is found, and led or given back; it is not made anew. */
	bool is_mine = r->held && strcmp(r->lease_id, lease->id) == 0;

	return !is_mine && !r->paused && !r->reserved && (!r->held || r->free_in_ns == 0);
}

/* What the watch has shown, if it shows that it is worth a try; else we look. */
static void try_known(struct kube_lane *lane, struct baton_call *call,
		      const struct baton_lease *lease, struct attempt *t)
{
	if (watch_index_is_watched(lane->store->web.hints, t->c->name) &&
	    kube_recall(lane->store, t->c->name, &t->l) && t->l.object != NULL &&
	    t->l.term >= t->c->floor && t->l.term != 0 && judge(lane, call, lease, t)) {
		t->is_wanted = true;
		return;
	}
	t->is_known = t->l.holder != NULL && t->l.holder[0] != '\0';
	if (t->c->outcome == 0)
		forget(t);
}

static bool is_open(const struct attempt *t)
{
	return t->c->outcome == 0 && !t->is_wanted;
}

/* What was looked at: to be claimed, or why not. */
static void weigh(struct kube_lane *lane, struct baton_call *call, const struct baton_lease *lease,
		  struct attempt *t, int outcome)
{
	if (outcome != BATON_OUTCOME_OK) {
		done(t, BATON_OUTCOME_FAILED, call->error.code);
		return;
	}
	t->is_wanted = judge(lane, call, lease, t);
	if (t->is_wanted || t->c->outcome != 0)
		return;
	/* Held: then it has a term, too. */
	if (t->l.term == 0 && kube_stamp(lane, call, t->c->name, &t->l) == BATON_OUTCOME_OK)
		t->c->record->term = t->l.term;
	done(t, BATON_OUTCOME_REFUSED, 0);
}

static void look_at_each(struct kube_lane *lane, struct baton_call *call,
			 const struct baton_lease *lease, struct attempt *tries,
			 struct kube_call *calls, size_t n)
{
	size_t k = 0;

	for (size_t i = 0; i < n; i++)
		if (is_open(&tries[i]))
			kube_look(lane->store, &calls[k++], tries[i].object,
				  tries[i].is_known ? "campaign" : "look");
	(void)kube_call_all(lane, call, calls, k);
	k = 0;
	for (size_t i = 0; i < n; i++) {
		struct attempt *t = &tries[i];

		if (!is_open(t))
			continue;
		weigh(lane, call, lease, t,
		      kube_looked(lane, call, &calls[k], t->c->name, true, &t->l));
		kube_call_done(&calls[k++]);
	}
}

/* One of many: those that wait for it are asked by name. */
static void take_item(void *arg, const char *name, json_t *object, uint64_t rv)
{
	struct crowd *crowd = arg;

	crowd->rv = rv;
	for (size_t i = 0; object != NULL && i < crowd->n; i++) {
		struct attempt *t = &crowd->tries[i];

		if (is_open(t) && t->l.object == NULL && strcmp(t->c->name, name) == 0) {
			kube_lease_read(&t->l, json_incref(object), 0);
			return;
		}
	}
}

/* All Leases of the namespace at once, instead of many questions for one. */
static void look_at_crowd(struct kube_lane *lane, struct baton_call *call,
			  const struct baton_lease *lease, struct attempt *tries, size_t n)
{
	struct crowd crowd = {.tries = tries, .n = n};
	int outcome = kube_list(lane, call, "labelSelector=%21baton%2Fcandidate", "look", take_item,
				&crowd);
	uint64_t read_ns = clock_boot_ns();

	for (size_t i = 0; i < n; i++) {
		struct attempt *t = &tries[i];

		if (!is_open(t))
			continue;
		if (t->l.object == NULL)
			kube_lease_read(&t->l, NULL, crowd.rv);
		if (outcome == BATON_OUTCOME_OK)
			(void)kube_see(lane->store, t->c->name, &t->l, read_ns, false);
		weigh(lane, call, lease, t, outcome);
	}
}

static void look_at_all(struct kube_lane *lane, struct baton_call *call,
			const struct baton_lease *lease, struct attempt *tries,
			struct kube_call *calls, size_t n)
{
	size_t k = 0;

	for (size_t i = 0; i < n; i++)
		k += is_open(&tries[i]);
	if (k > CROWD)
		look_at_crowd(lane, call, lease, tries, n);
	else
		look_at_each(lane, call, lease, tries, calls, n);
}

/* Whose time is over is ended before anything of it is taken: it can't come back then. */
static void end_process(struct kube_lane *lane, struct baton_call *call, struct attempt *t)
{
	if (t->l.process[0] == '\0' || t->process.object == NULL || t->process.is_dead)
		return;
	int outcome = kube_end_process(lane, call, t->l.process, &t->process);

	if (outcome == BATON_OUTCOME_OK)
		return;
	if (outcome == BATON_OUTCOME_REFUSED)
		forget(t); /* it was renewed: look again */
	else
		done(t, BATON_OUTCOME_FAILED, call->error.code);
	t->is_wanted = false;
}

/* Made, and to be claimed in the next round. What isn't sure to be made is no claim in any case. */
static void hear_new(struct kube_lane *lane, struct attempt *t, struct kube_call *call)
{
	if (call->outcome == BATON_OUTCOME_OK) {
		kube_lease_done(&t->l);
		kube_lease_read(&t->l, json_incref(call->answer), 0);
		if (t->l.rv == 0) /* S9: no condition for a claim */
			done(t, BATON_OUTCOME_FAILED, BATON_E_CORRUPT);
		else
			(void)kube_see(lane->store, t->c->name, &t->l, call->read_ns, false);
	} else if (call->outcome == BATON_OUTCOME_REFUSED && call->status == 409) {
		forget(t); /* others were faster: look again */
	} else {
		done(t, BATON_OUTCOME_FAILED, call->code);
	}
}

static void hear_claim(struct kube_lane *lane, struct attempt *t, struct kube_call *call)
{
	if (call->outcome == BATON_OUTCOME_REFUSED && call->status != 422) {
		forget(t); /* it is another one by now: look again */
		return;
	}
	done(t, call->outcome == BATON_OUTCOME_REFUSED ? BATON_OUTCOME_FAILED : call->outcome,
	     call->outcome == BATON_OUTCOME_OK ? 0 : call->code);
	if (call->outcome != BATON_OUTCOME_OK)
		return;
	t->c->term = t->term;
	t->c->record->watched = watch_index_is_watched(lane->store->web.hints, t->c->name);
	(void)kube_see_answer(lane->store, t->c->name, call);
}

static void claim_all(struct kube_lane *lane, struct baton_call *call,
		      const struct baton_lease *lease, struct attempt *tries,
		      struct kube_call *calls, size_t n)
{
	size_t k = 0;

	for (size_t i = 0; i < n; i++) {
		struct attempt *t = &tries[i];

		if (t->is_wanted && t->c->outcome == 0)
			end_process(lane, call, t);
		if (!t->is_wanted || t->c->outcome != 0)
			continue;
		if (t->l.object == NULL)
			kube_put_new(lane->store, &calls[k++], t->c->name, false);
		else if (mint(lane->store, call, t) != 0)
			t->is_wanted = false;
		else
			put_claim(lane->store, &calls[k++], lease, t);
	}
	(void)kube_call_all(lane, call, calls, k);
	k = 0;
	for (size_t i = 0; i < n; i++) {
		if (!tries[i].is_wanted || tries[i].c->outcome != 0)
			continue;
		if (tries[i].l.object == NULL)
			hear_new(lane, &tries[i], &calls[k]);
		else
			hear_claim(lane, &tries[i], &calls[k]);
		kube_call_done(&calls[k++]);
	}
}

/*
 * A process lease and an election are two objects: so, after a claim was made, the lease has to be
 * seen alive. It never comes back to life, so it lived when the claim was made.
 */
static void check_process(struct kube_lane *lane, struct baton_call *call,
			  const struct baton_lease *lease, struct attempt *tries, size_t n)
{
	bool any = false;

	for (size_t i = 0; i < n; i++)
		any = any || tries[i].c->outcome == BATON_OUTCOME_OK;
	if (!any || !lane->store->options.process_lease)
		return;
	int outcome = kube_process_lives(lane, call, lease->id);

	for (size_t i = 0; i < n; i++) {
		struct baton_campaign *c = tries[i].c;

		if (c->outcome != BATON_OUTCOME_OK)
			continue;
		if (outcome == BATON_OUTCOME_OK) {
			kube_count_claim(lane->store, lease->id, 1);
		} else if (outcome == BATON_OUTCOME_REFUSED) {
			done(&tries[i], BATON_OUTCOME_REFUSED, 0); /* on a dead lease it is free */
			c->record->held = false;
			c->record->free_in_ns = 0;
		} else {
			done(&tries[i], BATON_OUTCOME_UNKNOWN, call->error.code);
		}
	}
}

static void note_doubt(struct kube_lane *lane, const struct baton_lease *lease,
		       const struct attempt *tries, size_t n)
{
	bool any = false;

	for (size_t i = 0; i < n; i++)
		any = any || tries[i].c->outcome == BATON_OUTCOME_UNKNOWN;
	if (any && lane->store->options.process_lease)
		kube_doubt_claims(lane->store, lease);
}

static void campaign_all(struct kube_lane *lane, struct baton_call *call,
			 const struct baton_lease *lease, struct attempt *tries,
			 struct kube_call *calls, size_t n)
{
	for (size_t i = 0; i < n; i++)
		try_known(lane, call, lease, &tries[i]);
	for (int round = 0; round < KUBE_ROUNDS; round++) {
		look_at_all(lane, call, lease, tries, calls, n);
		claim_all(lane, call, lease, tries, calls, n);
	}
	for (size_t i = 0; i < n; i++) {
		struct baton_campaign *c = tries[i].c;

		if (c->outcome == 0) { /* it changes all the time: worth another try, soon */
			c->outcome = BATON_OUTCOME_REFUSED;
			c->record->free_in_ns = 0;
		}
	}
	check_process(lane, call, lease, tries, n);
	note_doubt(lane, lease, tries, n);
}

void kube_campaign(void *l, struct baton_call *call, const struct baton_lease *lease,
		   struct baton_campaign *list, size_t n)
{
	struct kube_lane *lane = l;
	struct attempt *tries = calloc(n, sizeof(*tries));
	struct kube_call *calls = calloc(n, sizeof(*calls));

	store_lock(&lane->store->web.base);
	lane->store->ttl_ns = lease->ttl_ns;
	store_unlock(&lane->store->web.base);
	for (size_t i = 0; i < n; i++) {
		web_campaign_set(&list[i], 0, 0);
		if (tries == NULL || calls == NULL) {
			list[i].outcome = BATON_OUTCOME_FAILED;
			list[i].code = BATON_E_MEMORY;
			continue;
		}
		tries[i].c = &list[i];
		kube_object_name(list[i].name, tries[i].object);
		if (!lane->store->options.process_lease)
			kube_note_use(lane->store, lease->id, list[i].name);
	}
	if (tries != NULL && calls != NULL)
		campaign_all(lane, call, lease, tries, calls, n);
	for (size_t i = 0; i < n && tries != NULL; i++)
		forget(&tries[i]);
	free(tries);
	free(calls);
}

/* ---- releases ---- */

/* S6: lease, nonce and term are in the claim; the holder shows that it is the one that counts. */
static void put_release(const struct kube_store *s, struct kube_call *call, const char *name,
			const struct kube_lease *l, const struct baton_release *r)
{
	struct bytes *b = &call->body;
	char object[KUBE_NAME_MAX + 1];
	char now[KUBE_TIME_MAX];
	char time[KUBE_TIME_MAX + 2];
	struct bytes holder = {0};

	kube_object_name(name, object);
	kube_put_text(&holder, l->holder);
	kube_now(now);
	(void)snprintf(time, sizeof(time), "\"%s\"", now);
	*call = (struct kube_call){.method = "PATCH", .type = KUBE_PATCH};
	kube_path(s, call, object, "?fieldManager=baton&for=release");
	bytes_print(b, "[");
	kube_put_annotation(b, "test", "claim", l->claim);
	kube_put_op(b, "test", "/spec/holderIdentity", holder.at != NULL ? holder.at : "\"\"");
	kube_put_annotation(b, "add", "claim", "");
	kube_put_annotation(b, "add", "order", "");
	if (r->reserve_for != NULL && r->reserve_for[0] != '\0') {
		json_t *value = web_reserve_make(r);

		/* The term makes it another one than the last. */
		(void)json_object_set_new(value, "term", json_integer((json_int_t)l->term));
		char *text = json_dumps(value, JSON_COMPACT);

		b->has_failed = b->has_failed || text == NULL;
		kube_put_annotation(b, "add", "reserved", text != NULL ? text : "");
		free(text);
		json_decref(value);
	}
	kube_put_op(b, "replace", "/spec/holderIdentity", "\"\"");
	kube_put_op(b, "replace", "/spec/leaseDurationSeconds", "1"); /* as client-go does */
	kube_put_op(b, "replace", "/spec/renewTime", time);
	bytes_print(b, "]");
	b->has_failed = b->has_failed || holder.has_failed;
	bytes_done(&holder);
}

static bool is_it(const struct kube_lease *l, const struct baton_release *r)
{
	return l->is_ours && strcmp(l->lease_id, r->lease_id) == 0 &&
	       (r->nonce == 0 || (l->nonce == r->nonce && l->term == r->term));
}

int kube_let_go(struct kube_lane *lane, struct baton_call *call, const struct baton_release *r)
{
	struct kube_lease l;
	bool is_known = kube_recall(lane->store, r->name, &l) && is_it(&l, r);
	int outcome = BATON_OUTCOME_FAILED;

	for (int round = 0; round < KUBE_ROUNDS; round++) {
		struct kube_call c;

		if (!is_known) {
			outcome = kube_look_again(lane, call, r->name, &l);
			if (outcome == BATON_OUTCOME_OK && !is_it(&l, r))
				outcome = BATON_OUTCOME_REFUSED;
			if (outcome != BATON_OUTCOME_OK)
				break;
		}
		put_release(lane->store, &c, r->name, &l, r);
		outcome = kube_call(lane, call, &c);
		if (outcome == BATON_OUTCOME_OK)
			(void)kube_see_answer(lane->store, r->name, &c);
		kube_call_done(&c);
		if (outcome != BATON_OUTCOME_REFUSED)
			break;
		is_known = false; /* look whether it is still there */
		outcome = BATON_OUTCOME_FAILED;
	}
	kube_lease_done(&l);
	return outcome;
}

void kube_release(void *l, struct baton_call *call, struct baton_release *list, size_t n)
{
	struct kube_lane *lane = l;

	for (size_t i = 0; i < n; i++) {
		struct baton_release *r = &list[i];

		r->outcome = kube_let_go(lane, call, r);
		r->code = r->outcome == BATON_OUTCOME_OK || r->outcome == BATON_OUTCOME_REFUSED
				  ? 0
				  : call->error.code;
		if (r->outcome == BATON_OUTCOME_OK && lane->store->options.process_lease)
			kube_count_claim(lane->store, r->lease_id, -1);
	}
}
