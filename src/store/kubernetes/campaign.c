/*
 * campaign.c: campaigning. A claim is one write, on condition that the object is the one that was
 * seen (resourceVersion). It is enough that the watch has seen the object: a standby that hears of
 * a release claims without looking. If there is no object, an object without a holder is made
 * first.
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
	struct kube_lease process; /* which `l` hangs on; it is ended before a takeover */
	uint64_t end_ns;
	uint64_t term;
	bool is_known;  /* the watch shows a holder: then this campaign is one look */
	bool is_wanted; /* a claim is to be made */
	char object[KUBE_NAME_MAX + 1];
};

/* If more elections than this are to be looked at, one request lists all Leases. */
#define CROWD 16

struct crowd {
	struct attempt *tries;
	size_t n;
	uint64_t rv; /* the store's resourceVersion */
};

static void campaign_done(struct attempt *t, int outcome, int code)
{
	t->c->outcome = outcome;
	t->c->code = code;
}

/* ---- terms ---- */

/*
 * S3, S4: the new term is above the stored term and the floor. An object without a term begins with
 * its resourceVersion. That is above all terms that there ever were, and no other object has the
 * same. (The resourceVersion of a list without the object would not be: an object may have come,
 * been led, and gone since.) A floor above the stored term shows that the store was put back to an
 * earlier state: the first campaign that sees this fails with an error that says so.
 */
static int campaign_mint(struct kube_store *s, struct baton_call *call, struct attempt *t)
{
	uint64_t stored = t->l.term != 0 ? t->l.term : t->l.rv;
	uint64_t floor = t->c->floor;
	enum term_fault fault;

	t->term = term_next(stored, floor, 0, &fault);
	if (fault != TERM_FINE)
		return store_fail_term(call, t->c, fault);
	store_lock(&s->web.base);
	bool is_news = floor > stored && !s->is_loss_reported;

	s->is_loss_reported = s->is_loss_reported || floor > stored;
	store_unlock(&s->web.base);
	return is_news ? store_fail_term(call, t->c, TERM_BEHIND) : 0;
}

/* ---- claims ---- */

static uint64_t seconds_of(uint64_t ns)
{
	return (ns + CLOCK_NS_PER_S - 1) / CLOCK_NS_PER_S;
}

static void claim_put_annotations(struct bytes *b, const struct kube_store *s,
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
	bytes_print(b, ",\"baton/history\":");
	kube_put_free(b, kube_history_begun(s, t->c->name, &t->l, t->term, lease->owner));
	if (strcmp(t->object, t->c->name) != 0) {
		bytes_print(b, ",\"baton/name\":");
		kube_put_text(b, t->c->name);
	}
	kube_process_name(lease->id, process);
	bytes_print(b, ",\"baton/process\":\"%s\"", s->options.process_lease ? process : "");
	bytes_print(b, ",\"baton/order\":null,\"baton/reserved\":null}");
}

static void claim_put_spec(struct bytes *b, const struct kube_store *s,
			   const struct baton_lease *lease, uint64_t transitions)
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

static void claim_put(const struct kube_store *s, struct kube_call *call,
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
	claim_put_annotations(b, s, lease, t, transitions);
	bytes_print(b, "},");
	claim_put_spec(b, s, lease, transitions);
	bytes_print(b, "}");
}

/* ---- campaigns ---- */

static void campaign_forget(struct attempt *t)
{
	kube_lease_done(&t->l);
	kube_lease_done(&t->process);
	t->is_wanted = false;
}

/* Tells by what we know of the election whether it is free, paused, reserved or held. True: it can
 * be claimed. */
static bool campaign_judge(struct kube_lane *lane, struct baton_call *call,
			   const struct baton_lease *lease, struct attempt *t)
{
	struct baton_record *r = t->c->record;
	int outcome = kube_end_of(lane, call, &t->l, lease->ttl_ns, &t->end_ns, &t->process);

	if (outcome != BATON_OUTCOME_OK) {
		campaign_done(t, BATON_OUTCOME_FAILED, call->error.code);
		return false;
	}
	kube_record(lane->store, t->c->name, lease->owner, &t->l, t->end_ns, r);
	/* A claim on this lease that is there already is found, and then led or given back; it
	 * isn't made anew. */
	bool is_own = r->held && strcmp(r->lease_id, lease->id) == 0;

	return !is_own && !r->paused && !r->reserved && (!r->held || r->free_in_ns == 0);
}

/* If the watch shows an election that can be claimed, we claim it without a look. */
static void campaign_try_known(struct kube_lane *lane, struct baton_call *call,
			       const struct baton_lease *lease, struct attempt *t)
{
	if (web_index_is_watched(lane->store->web.watches, t->c->name) &&
	    kube_expiry_recall(lane->store, t->c->name, &t->l) && t->l.object != NULL &&
	    t->l.term >= t->c->floor && t->l.term != 0 && campaign_judge(lane, call, lease, t)) {
		t->is_wanted = true;
		return;
	}
	t->is_known = t->l.holder != NULL && t->l.holder[0] != '\0';
	if (t->c->outcome == 0)
		campaign_forget(t);
}

static bool is_open(const struct attempt *t)
{
	return t->c->outcome == 0 && !t->is_wanted;
}

/* Decides after a look: the election is to be claimed, or the record says why not. */
static void campaign_weigh(struct kube_lane *lane, struct baton_call *call,
			   const struct baton_lease *lease, struct attempt *t, int outcome)
{
	if (outcome != BATON_OUTCOME_OK) {
		campaign_done(t, BATON_OUTCOME_FAILED, call->error.code);
		return;
	}
	t->is_wanted = campaign_judge(lane, call, lease, t);
	if (t->is_wanted || t->c->outcome != 0)
		return;
	/* The election may be held without a term yet. */
	if (t->l.term == 0 && kube_stamp(lane, call, t->c->name, &t->l) == BATON_OUTCOME_OK)
		t->c->record->term = t->l.term;
	campaign_done(t, BATON_OUTCOME_REFUSED, 0);
}

static void campaign_ask_each(struct kube_lane *lane, struct baton_call *call,
			      const struct baton_lease *lease, struct attempt *tries,
			      struct kube_call *calls, size_t n)
{
	size_t k = 0;

	for (size_t i = 0; i < n; i++)
		if (is_open(&tries[i]))
			kube_ask_lease(lane->store, &calls[k++], tries[i].object,
				       tries[i].is_known ? "campaign" : "look");
	(void)kube_call_all(lane, call, calls, k);
	k = 0;
	for (size_t i = 0; i < n; i++) {
		struct attempt *t = &tries[i];

		if (!is_open(t))
			continue;
		campaign_weigh(lane, call, lease, t,
			       kube_read_lease(lane, call, &calls[k], t->c->name, true, &t->l));
		kube_call_done(&calls[k++]);
	}
}

/* Takes one Lease of the list to the attempt that it belongs to, if there is one. */
static void campaign_take_item(void *arg, const char *name, json_t *object, uint64_t rv)
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

/* Looks at all Leases of the namespace at once, instead of asking for one at a time. */
static void campaign_ask_crowd(struct kube_lane *lane, struct baton_call *call,
			       const struct baton_lease *lease, struct attempt *tries, size_t n)
{
	struct crowd crowd = {.tries = tries, .n = n};
	int outcome = kube_list(lane, call, "labelSelector=%21baton%2Fcandidate", "look",
				campaign_take_item, &crowd);
	uint64_t read_ns = clock_boot_ns();

	for (size_t i = 0; i < n; i++) {
		struct attempt *t = &tries[i];

		if (!is_open(t))
			continue;
		if (t->l.object == NULL)
			kube_lease_read(&t->l, NULL, crowd.rv);
		if (outcome == BATON_OUTCOME_OK)
			(void)kube_expiry_note(lane->store, t->c->name, &t->l, read_ns, false);
		campaign_weigh(lane, call, lease, t, outcome);
	}
}

static void campaign_ask_all(struct kube_lane *lane, struct baton_call *call,
			     const struct baton_lease *lease, struct attempt *tries,
			     struct kube_call *calls, size_t n)
{
	size_t k = 0;

	for (size_t i = 0; i < n; i++)
		k += is_open(&tries[i]);
	if (k > CROWD)
		campaign_ask_crowd(lane, call, lease, tries, n);
	else
		campaign_ask_each(lane, call, lease, tries, calls, n);
}

/* A process lease whose time is over is ended before any of its elections is taken, so that it
 * can no longer be renewed. */
static void campaign_end_process(struct kube_lane *lane, struct baton_call *call, struct attempt *t)
{
	if (t->l.process[0] == '\0' || t->process.object == NULL || t->process.is_dead)
		return;
	int outcome = kube_end_process(lane, call, t->l.process, &t->process);

	if (outcome == BATON_OUTCOME_OK)
		return;
	if (outcome == BATON_OUTCOME_REFUSED)
		campaign_forget(t); /* the lease was renewed: look again */
	else
		campaign_done(t, BATON_OUTCOME_FAILED, call->error.code);
	t->is_wanted = false;
}

/* The object was made, and is claimed in the next round. A failure is FAILED, never UNKNOWN: making
 * the object claims nothing. */
static void campaign_hear_new(struct kube_lane *lane, struct attempt *t, struct kube_call *call)
{
	if (call->outcome == BATON_OUTCOME_OK) {
		kube_lease_done(&t->l);
		kube_lease_read(&t->l, json_incref(call->answer), 0);
		if (t->l.rv == 0) /* S9: no condition for a claim */
			campaign_done(t, BATON_OUTCOME_FAILED, BATON_E_CORRUPT);
		else
			(void)kube_expiry_note(lane->store, t->c->name, &t->l, call->read_ns,
					       false);
	} else if (call->outcome == BATON_OUTCOME_REFUSED && call->status == 409) {
		campaign_forget(t); /* others were faster: look again */
	} else {
		campaign_done(t, BATON_OUTCOME_FAILED, call->code);
	}
}

static void campaign_hear_claim(struct kube_lane *lane, struct attempt *t, struct kube_call *call)
{
	if (call->outcome == BATON_OUTCOME_REFUSED && call->status != 422) {
		campaign_forget(t); /* the object has changed: look again */
		return;
	}
	campaign_done(t,
		      call->outcome == BATON_OUTCOME_REFUSED ? BATON_OUTCOME_FAILED : call->outcome,
		      call->outcome == BATON_OUTCOME_OK ? 0 : call->code);
	if (call->outcome != BATON_OUTCOME_OK)
		return;
	t->c->term = t->term;
	t->c->record->watched = web_index_is_watched(lane->store->web.watches, t->c->name);
	(void)kube_note_answer(lane->store, t->c->name, call);
}

static void campaign_claim_all(struct kube_lane *lane, struct baton_call *call,
			       const struct baton_lease *lease, struct attempt *tries,
			       struct kube_call *calls, size_t n)
{
	size_t k = 0;

	for (size_t i = 0; i < n; i++) {
		struct attempt *t = &tries[i];

		if (t->is_wanted && t->c->outcome == 0)
			campaign_end_process(lane, call, t);
		if (!t->is_wanted || t->c->outcome != 0)
			continue;
		if (t->l.object == NULL)
			kube_put_new(lane->store, &calls[k++], t->c->name, false);
		else if (campaign_mint(lane->store, call, t) != 0)
			t->is_wanted = false;
		else
			claim_put(lane->store, &calls[k++], lease, t);
	}
	(void)kube_call_all(lane, call, calls, k);
	k = 0;
	for (size_t i = 0; i < n; i++) {
		if (!tries[i].is_wanted || tries[i].c->outcome != 0)
			continue;
		if (tries[i].l.object == NULL)
			campaign_hear_new(lane, &tries[i], &calls[k]);
		else
			campaign_hear_claim(lane, &tries[i], &calls[k]);
		kube_call_done(&calls[k++]);
	}
}

/*
 * A process lease and an election are two objects. So after a claim was made, its process lease has
 * to be seen alive: a dead lease never comes back to life, so this one lived when the claim was
 * made.
 */
static void campaign_check_process(struct kube_lane *lane, struct baton_call *call,
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
			campaign_done(&tries[i], BATON_OUTCOME_REFUSED,
				      0); /* a claim on a dead lease leaves it free */
			c->record->held = false;
			c->record->free_in_ns = 0;
		} else {
			campaign_done(&tries[i], BATON_OUTCOME_UNKNOWN, call->error.code);
		}
	}
}

static void campaign_note_doubt(struct kube_lane *lane, const struct baton_lease *lease,
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
		campaign_try_known(lane, call, lease, &tries[i]);
	for (int round = 0; round < KUBE_ROUNDS; round++) {
		campaign_ask_all(lane, call, lease, tries, calls, n);
		campaign_claim_all(lane, call, lease, tries, calls, n);
	}
	for (size_t i = 0; i < n; i++) {
		struct baton_campaign *c = tries[i].c;

		if (c->outcome == 0) { /* the Lease changes all the time: try again soon */
			c->outcome = BATON_OUTCOME_REFUSED;
			c->record->free_in_ns = 0;
		}
	}
	campaign_check_process(lane, call, lease, tries, n);
	campaign_note_doubt(lane, lease, tries, n);
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
		campaign_forget(&tries[i]);
	free(tries);
	free(calls);
}
