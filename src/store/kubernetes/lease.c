/*
 * lease.c: leases and their renewal. An election's own Lease is renewed by one patch with tests.
 * With process_lease=1, one Lease of the process is renewed, which carries any number of elections.
 *
 * A process lease that is gone, or that others have marked as dead, never comes back. Its owner's
 * next renewal fails, and every process that finds the lease gone or dead may take its elections.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/kubernetes/kube.h"

/* An API server gives up on a request after that time. */
#define LANDED_NS (60 * CLOCK_NS_PER_S)
/* A number of claims that never matches: so the caller asks for the claims. */
#define UNCOUNTED UINT32_MAX

/* ---- what leases are used for ---- */

/* The caller holds the lock. */
static struct kube_use *use_find(struct kube_store *s, const char *lease_id)
{
	char who[BATON_LEASE_ID_MAX + 1];
	struct kube_use *u = s->uses;

	kube_who(lease_id, 1, who);
	while (u != NULL && strcmp(u->who, who) != 0)
		u = u->next;
	return u;
}

void kube_note_use(struct kube_store *s, const char *lease_id, const char *name)
{
	store_lock(&s->web.base);
	struct kube_use *u = use_find(s, lease_id);

	if (u == NULL && (u = calloc(1, sizeof(*u))) != NULL) {
		kube_who(lease_id, 1, u->who);
		u->next = s->uses;
		s->uses = u;
	}
	if (u != NULL) {
		(void)snprintf(u->lease_id, sizeof(u->lease_id), "%s", lease_id);
		(void)snprintf(u->name, sizeof(u->name), "%s", name);
		u->n_held = 0;
		u->doubt_ns = 0;
		u->left_ns = 0;
	}
	store_unlock(&s->web.base);
}

/* The caller holds the lock. */
static void use_free(struct kube_use **at)
{
	struct kube_use *u = *at;

	*at = u->next;
	free(u);
}

/* For two ids with the same "who-which": they end with a number that grows. */
static bool is_newer(const char *id, const char *than)
{
	size_t n = strlen(id), m = strlen(than);

	return n != m ? n > m : strcmp(id, than) > 0;
}

/* Forgets that lease, which is closed; leases before it with this "who-which" are closed, too. */
static void use_drop(struct kube_store *s, const char *lease_id)
{
	char who[BATON_LEASE_ID_MAX + 1];
	struct kube_use **at = &s->uses;

	kube_who(lease_id, 1, who);
	store_lock(&s->web.base);
	while (*at != NULL && strcmp((*at)->who, who) != 0)
		at = &(*at)->next;
	if (*at != NULL && !is_newer((*at)->lease_id, lease_id))
		use_free(at);
	store_unlock(&s->web.base);
}

/* L3: what we know of a lease is kept for a while, because closing a lease that may be there needs
 * it. A lease that ends by itself isn't closed: for such a lease the while is over after two lease
 * times. */
void kube_leave_use(struct kube_store *s, const char *name)
{
	uint64_t now_ns = clock_boot_ns();
	struct kube_use **at = &s->uses;

	store_lock(&s->web.base);
	while (*at != NULL && !s->options.process_lease) {
		struct kube_use *u = *at;

		if (u->left_ns == 0 && strcmp(u->name, name) == 0)
			u->left_ns = now_ns;
		if (u->left_ns != 0 && now_ns > u->left_ns + 2 * s->ttl_ns)
			use_free(at);
		else
			at = &u->next;
	}
	store_unlock(&s->web.base);
}

bool kube_use_of(struct kube_store *s, const char *lease_id, char name[BATON_NAME_MAX + 1])
{
	store_lock(&s->web.base);
	const struct kube_use *u = use_find(s, lease_id);

	name[0] = '\0';
	if (u != NULL)
		(void)snprintf(name, BATON_NAME_MAX + 1, "%s", u->name);
	store_unlock(&s->web.base);
	return name[0] != '\0';
}

bool kube_is_used(struct kube_store *s, const char *lease_id)
{
	return use_find(s, lease_id) != NULL;
}

void kube_count_claim(struct kube_store *s, const char *lease_id, int change)
{
	store_lock(&s->web.base);
	struct kube_use *u = use_find(s, lease_id);

	if (u != NULL && (change > 0 || u->n_held > 0))
		u->n_held += (uint32_t)change;
	store_unlock(&s->web.base);
}

void kube_doubt_claims(struct kube_store *s, const struct baton_lease *lease)
{
	uint64_t late_ns = 2 * lease->ttl_ns > LANDED_NS ? 2 * lease->ttl_ns : LANDED_NS;

	store_lock(&s->web.base);
	struct kube_use *u = use_find(s, lease->id);

	if (u != NULL)
		u->doubt_ns = clock_boot_ns() + late_ns;
	store_unlock(&s->web.base);
}

/*
 * The claims on a process lease are in other objects, so a renewal doesn't show their number. L3: a
 * claim that we gave up on may land after we have left its election. It would keep all candidates
 * away from that election for as long as this process lives. So while such a claim may land, each
 * renewal has the claims asked for.
 */
static uint32_t count_held(struct kube_store *s, const char *lease_id)
{
	store_lock(&s->web.base);
	const struct kube_use *u = use_find(s, lease_id);
	uint32_t n = u == NULL ? 0 : clock_boot_ns() < u->doubt_ns ? UNCOUNTED : u->n_held;

	store_unlock(&s->web.base);
	return n;
}

static void forget_held(struct kube_store *s, const char *lease_id)
{
	store_lock(&s->web.base);
	struct kube_use *u = use_find(s, lease_id);

	if (u != NULL)
		u->n_held = 0;
	store_unlock(&s->web.base);
}

/* ---- the election's own Lease ---- */

static void put_renewal(const struct kube_store *s, struct kube_call *call, const char *object)
{
	*call = (struct kube_call){.method = "PATCH", .type = KUBE_PATCH};
	kube_path(s, call, object, "?fieldManager=baton&for=renew");
	bytes_print(&call->body, "[");
}

static void end_renewal(struct kube_call *call)
{
	char now[KUBE_TIME_MAX];
	char time[KUBE_TIME_MAX + 2];

	kube_now(now); /* in microseconds: a patch that changes nothing isn't written */
	(void)snprintf(time, sizeof(time), "\"%s\"", now);
	kube_put_op(&call->body, "replace", "/spec/renewTime", time);
	bytes_print(&call->body, "]");
}

static int renew_once(struct kube_lane *lane, struct baton_call *call, const char *name,
		      const struct kube_lease *l)
{
	char object[KUBE_NAME_MAX + 1];
	struct bytes holder = {0};
	struct kube_call c;

	kube_object_name(name, object);
	kube_put_text(&holder, l->holder);
	put_renewal(lane->store, &c, object);
	kube_put_annotation(&c.body, "test", "claim", l->claim);
	kube_put_op(&c.body, "test", "/spec/holderIdentity", holder.at != NULL ? holder.at : "0");
	end_renewal(&c);
	c.body.has_failed = c.body.has_failed || holder.has_failed;
	bytes_done(&holder);
	int outcome = kube_call(lane, call, &c);

	if (outcome == BATON_OUTCOME_OK)
		kube_tell_answer(lane->store, name, &c);
	kube_call_done(&c);
	return outcome;
}

static bool is_own(const struct kube_lease *l, const struct baton_lease *lease)
{
	return l->is_ours && strcmp(l->lease_id, lease->id) == 0;
}

/* If the patch's tests fail, we look at the Lease before we believe that it is lost. */
static int renew_own(struct kube_lane *lane, struct baton_call *call,
		     const struct baton_lease *lease)
{
	char name[BATON_NAME_MAX + 1];
	struct kube_lease l;
	int outcome = BATON_OUTCOME_REFUSED;

	call->is_unasked = !kube_use_of(lane->store, lease->id, name);
	if (call->is_unasked)
		return BATON_OUTCOME_REFUSED;
	if (kube_expiry_recall(lane->store, name, &l) && is_own(&l, lease))
		outcome = renew_once(lane, call, name, &l);
	if (outcome == BATON_OUTCOME_REFUSED) {
		outcome = kube_fetch_lease(lane, call, name, &l);
		if (outcome == BATON_OUTCOME_OK)
			outcome = is_own(&l, lease) ? renew_once(lane, call, name, &l)
						    : BATON_OUTCOME_REFUSED;
	}
	kube_lease_done(&l);
	return outcome;
}

static int close_own(struct kube_lane *lane, struct baton_call *call,
		     const struct baton_lease *lease)
{
	char name[BATON_NAME_MAX + 1];
	struct baton_release r = {.name = name, .lease_id = lease->id};

	call->is_unasked = !kube_use_of(lane->store, lease->id, name);
	if (call->is_unasked)
		return BATON_OUTCOME_OK;
	int outcome = kube_let_go(lane, call, &r);

	if (!web_index_has(lane->store->web.watches, name)) /* it is no longer watched here */
		kube_expiry_forget(lane->store, name);
	return outcome == BATON_OUTCOME_REFUSED ? BATON_OUTCOME_OK : outcome;
}

/* ---- the process lease ---- */

static int process_delete(struct kube_lane *lane, struct baton_call *call, const char *lease_id)
{
	struct kube_call c = {.method = "DELETE"};
	char object[KUBE_NAME_MAX + 1];

	kube_process_name(lease_id, object);
	kube_path(lane->store, &c, object, "%s", "");
	(void)kube_call(lane, call, &c);
	int outcome = c.status == 404 ? BATON_OUTCOME_OK : c.outcome;

	kube_call_done(&c);
	return outcome;
}

int kube_lease_open(void *l, struct baton_call *call, const struct baton_lease *lease)
{
	struct kube_lane *lane = l;
	struct kube_call c = {.method = "POST", .type = KUBE_JSON};
	char older[BATON_NAME_MAX + 1];
	char object[KUBE_NAME_MAX + 1];
	char now[KUBE_TIME_MAX];

	if (kube_use_of(lane->store, lease->id, older)) /* if that fails, it ends by itself */
		(void)process_delete(lane, call, older);
	kube_process_name(lease->id, object);
	kube_path(lane->store, &c, NULL, "?fieldManager=baton&for=open");
	kube_now(now);
	bytes_print(&c.body,
		    "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":{"
		    "\"name\":\"%s\",\"labels\":{\"baton/process\":\"lease\"},\"annotations\":{"
		    "\"baton/alive\":\"%s\"}},\"spec\":{\"leaseDurationSeconds\":%" PRIu64
		    ",\"acquireTime\":\"%s\",\"renewTime\":\"%s\",\"holderIdentity\":",
		    object, lease->id, (lease->ttl_ns + CLOCK_NS_PER_S - 1) / CLOCK_NS_PER_S, now,
		    now);
	kube_put_text(&c.body, lease->owner);
	bytes_print(&c.body, "}}");
	int outcome = kube_call(lane, call, &c);

	kube_call_done(&c);
	if (outcome == BATON_OUTCOME_OK || outcome == BATON_OUTCOME_UNKNOWN)
		kube_note_use(lane->store, lease->id, lease->id);
	return outcome == BATON_OUTCOME_REFUSED ? BATON_OUTCOME_FAILED : outcome;
}

static int process_fetch(struct kube_lane *lane, struct baton_call *call, const char *lease_id,
			 struct kube_lease *out)
{
	char object[KUBE_NAME_MAX + 1];
	char key[KUBE_NAME_MAX + 2];
	struct kube_call c;

	kube_process_name(lease_id, object);
	kube_process_key(object, key);
	kube_ask_lease(lane->store, &c, object, "process");
	(void)kube_call(lane, call, &c);
	int outcome = kube_read_lease(lane, call, &c, key, false, out);

	kube_call_done(&c);
	return outcome;
}

int kube_process_lives(struct kube_lane *lane, struct baton_call *call, const char *lease_id)
{
	struct kube_lease l;
	int outcome = process_fetch(lane, call, lease_id, &l);

	if (outcome == BATON_OUTCOME_OK && (l.object == NULL || l.is_dead))
		outcome = BATON_OUTCOME_REFUSED;
	kube_lease_done(&l);
	return outcome;
}

static int process_renew(struct kube_lane *lane, struct baton_call *call,
			 const struct baton_lease *lease, uint32_t *n_held)
{
	char object[KUBE_NAME_MAX + 1];
	char key[KUBE_NAME_MAX + 2];
	struct kube_call c;

	kube_process_name(lease->id, object);
	kube_process_key(object, key);
	put_renewal(lane->store, &c, object);
	kube_put_annotation(&c.body, "test", "alive", lease->id);
	end_renewal(&c);
	int outcome = kube_call(lane, call, &c);

	if (outcome == BATON_OUTCOME_OK) /* the watch owes us that, too */
		(void)kube_note_answer(lane->store, key, &c);
	kube_call_done(&c);
	if (outcome == BATON_OUTCOME_REFUSED) {
		outcome = kube_process_lives(lane, call, lease->id);
		if (outcome == BATON_OUTCOME_OK) { /* the lease lives: the server only refused */
			(void)store_fail(&call->error, BATON_E_UNAVAILABLE,
					 "the API server refuses a renewal that it could grant");
			outcome = BATON_OUTCOME_FAILED;
		}
	}
	*n_held = count_held(lane->store, lease->id);
	return outcome;
}

int kube_end_process(struct kube_lane *lane, struct baton_call *call, const char *process,
		     struct kube_lease *l)
{
	struct kube_call c = {.method = "PATCH", .type = KUBE_MERGE};
	char key[KUBE_NAME_MAX + 2];

	kube_path(lane->store, &c, process, "?fieldManager=baton&for=end");
	bytes_print(&c.body,
		    "{\"metadata\":{\"resourceVersion\":\"%" PRIu64 "\",\"annotations\":{"
		    "\"baton/alive\":\"\",\"baton/dead\":\"1\"}}}",
		    l->rv);
	int outcome = kube_call(lane, call, &c);

	kube_process_key(process, key);
	if (outcome == BATON_OUTCOME_OK)
		(void)kube_note_answer(lane->store, key, &c);
	else if (outcome == BATON_OUTCOME_REFUSED)
		kube_expiry_forget(lane->store, key);
	kube_call_done(&c);
	return outcome;
}

/* ---- the verbs ---- */

int kube_lease_renew(void *l, struct baton_call *call, const struct baton_lease *lease,
		     uint32_t *n_held)
{
	struct kube_lane *lane = l;

	*n_held = 0;
	if (lane->store->options.process_lease)
		return process_renew(lane, call, lease, n_held);
	int outcome = renew_own(lane, call, lease);

	*n_held = outcome == BATON_OUTCOME_OK;
	return outcome;
}

int kube_lease_close(void *l, struct baton_call *call, const struct baton_lease *lease)
{
	struct kube_lane *lane = l;
	int outcome = lane->store->options.process_lease ? process_delete(lane, call, lease->id)
							 : close_own(lane, call, lease);

	if (outcome == BATON_OUTCOME_OK || call->is_last)
		use_drop(lane->store, lease->id);
	return outcome;
}

typedef void claim_found(void *arg, const char *name, uint64_t nonce, uint64_t term);

/* A caller that asks for the claims on a lease. */
struct asker {
	struct kube_store *store;
	const struct baton_lease *lease;
	claim_found *found;
	void *arg;
};

static void claim_tell(void *arg, const char *name, json_t *object, uint64_t rv)
{
	const struct asker *a = arg;
	struct kube_lease l;

	kube_lease_read(&l, json_incref(object), rv);
	if (name[0] != '\0' && is_own(&l, a->lease)) {
		a->found(a->arg, name, l.nonce, l.term);
		if (a->store->options.process_lease)
			kube_count_claim(a->store, a->lease->id, 1);
	}
	kube_lease_done(&l);
}

static int claims_of_process(struct kube_lane *lane, struct baton_call *call, struct asker *asker)
{
	char selector[BATON_LEASE_ID_MAX + 64];

	(void)snprintf(selector, sizeof(selector), "labelSelector=baton%%2Flease%%3D%s",
		       asker->lease->id);
	forget_held(lane->store, asker->lease->id);
	return kube_list(lane, call, selector, "claims", claim_tell, asker);
}

int kube_claims(void *l, struct baton_call *call, const struct baton_lease *lease,
		claim_found *found, void *arg)
{
	struct kube_lane *lane = l;
	char name[BATON_NAME_MAX + 1];
	struct kube_lease now = {.object = NULL};
	struct asker asker = {.store = lane->store, .lease = lease, .found = found, .arg = arg};

	if (lane->store->options.process_lease)
		return claims_of_process(lane, call, &asker);
	call->is_unasked = !kube_use_of(lane->store, lease->id, name);
	if (call->is_unasked)
		return BATON_OUTCOME_OK;
	int outcome = kube_fetch_lease(lane, call, name, &now);

	if (outcome == BATON_OUTCOME_OK)
		claim_tell(&asker, name, now.object, now.rv);
	kube_lease_done(&now);
	return outcome;
}
