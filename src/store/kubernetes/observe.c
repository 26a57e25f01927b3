/*
 * observe.c: one election as the store shows it. We look by a LIST for the election's name: a LIST
 * asks the store itself, and its answer has the store's resourceVersion even if there is no such
 * object.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/kubernetes/kube.h"

/* A list comes in pages; `continue` says where the next page begins. */
#define PAGE 500

void kube_ask_lease(const struct kube_store *s, struct kube_call *c, const char *object,
		    const char *why)
{
	*c = (struct kube_call){.method = "GET", .is_read = true};
	kube_path(s, c, NULL, "?fieldSelector=metadata.name%%3D%s&for=%s", object, why);
}

int kube_list(struct kube_lane *lane, struct baton_call *call, const char *selector,
	      const char *why, kube_item *found, void *arg)
{
	char next[KUBE_TEXT_MAX] = "";
	uint64_t rv = 0;
	int outcome;

	do {
		struct kube_call c = {.method = "GET", .is_read = true};

		kube_path(lane->store, &c, NULL, "?%s&limit=%d&for=%s%s%s", selector, PAGE, why,
			  next[0] != '\0' ? "&continue=" : "", next);
		outcome = kube_call(lane, call, &c);
		const json_t *items = js_get(c.answer, "items");
		const json_t *metadata = js_get(c.answer, "metadata");

		if (outcome == BATON_OUTCOME_OK &&
		    (!json_is_array(items) || !js_u64(metadata, "resourceVersion", &rv) ||
		     !http_encode(js_text(metadata, "continue"), next, sizeof(next))))
			outcome = kube_strange(call);
		for (size_t i = 0; outcome == BATON_OUTCOME_OK && i < json_array_size(items); i++) {
			char name[BATON_NAME_MAX + 1];
			json_t *object = json_array_get(items, i);

			found(arg, kube_name_of(object, name) ? name : "", object, rv);
		}
		if (outcome == BATON_OUTCOME_OK)
			found(arg, "", NULL, rv);
		kube_call_done(&c);
	} while (outcome == BATON_OUTCOME_OK && next[0] != '\0');
	return outcome == BATON_OUTCOME_REFUSED ? BATON_OUTCOME_FAILED : outcome;
}

int kube_read_lease(struct kube_lane *lane, struct baton_call *call, struct kube_call *c,
		    const char *name, bool is_kept, struct kube_lease *l)
{
	char is[BATON_NAME_MAX + 1];
	int outcome = c->outcome == BATON_OUTCOME_REFUSED ? BATON_OUTCOME_FAILED : c->outcome;

	*l = (struct kube_lease){.object = NULL};
	if (outcome == BATON_OUTCOME_OK)
		outcome = kube_lease_of_list(l, call, c->answer);
	if (outcome != BATON_OUTCOME_OK)
		return outcome;
	if (name[0] != '\x01' && l->object != NULL &&
	    (!kube_name_of(l->object, is) || strcmp(is, name) != 0)) {
		kube_lease_done(l);
		(void)store_fail(&call->error, BATON_E_CORRUPT,
				 "the Lease of the election \"%.60s\" says that it is another's: "
				 "its annotation baton/name is damaged",
				 name);
		return BATON_OUTCOME_FAILED;
	}
	if (is_kept)
		(void)kube_expiry_note(lane->store, name, l, c->read_ns, false);
	return BATON_OUTCOME_OK;
}

/* L2: a look for another purpose has found a change. We hint at it now, because the watch's event
 * will no longer show anything new. */
static void record_hint(struct kube_store *s, const char *name)
{
	web_index_hint(s->web.watches, name);
	web_wake(&s->web);
}

int kube_take_lease(struct kube_lane *lane, struct baton_call *call, struct kube_call *c,
		    const char *name, struct kube_lease *l)
{
	int outcome = kube_read_lease(lane, call, c, name, false, l);

	if (outcome == BATON_OUTCOME_OK &&
	    kube_expiry_note(lane->store, name, l, c->read_ns, false))
		record_hint(lane->store, name);
	return outcome;
}

int kube_fetch_lease(struct kube_lane *lane, struct baton_call *call, const char *name,
		     struct kube_lease *l)
{
	char object[KUBE_NAME_MAX + 1];
	struct kube_call c;

	kube_lease_done(l);
	kube_object_name(name, object);
	kube_ask_lease(lane->store, &c, object, "look");
	(void)kube_call(lane, call, &c);
	int outcome = kube_take_lease(lane, call, &c, name, l);

	kube_call_done(&c);
	return outcome;
}

bool kube_note_answer(struct kube_store *s, const char *name, const struct kube_call *c)
{
	struct kube_lease l;

	kube_lease_read(&l, json_incref(c->answer), 0);
	bool is_new = kube_expiry_note(s, name, &l, c->read_ns, false);

	kube_lease_done(&l);
	return is_new;
}

void kube_tell_answer(struct kube_store *s, const char *name, const struct kube_call *c)
{
	if (kube_note_answer(s, name, c))
		record_hint(s, name);
}

/* ---- terms of Leases that others made ---- */

/*
 * S3: a Lease that client-go has made has no term; it may be made anew after one of ours was
 * deleted. Its resourceVersion is above all terms that there ever were, because each term took at
 * least one write. A term that is written down stays the same for as long as that leader leads.
 */
int kube_stamp(struct kube_lane *lane, struct baton_call *call, const char *name,
	       struct kube_lease *l)
{
	struct baton_call quiet = {.deadline_ns = call->deadline_ns};
	struct kube_call c = {.method = "PATCH", .type = KUBE_MERGE};
	char object[KUBE_NAME_MAX + 1];

	if (l->object == NULL || l->term != 0 || l->holder[0] == '\0')
		return BATON_OUTCOME_OK;
	kube_object_name(name, object);
	kube_path(lane->store, &c, object, "?fieldManager=baton&for=stamp");
	bytes_print(&c.body,
		    "{\"metadata\":{\"resourceVersion\":\"%" PRIu64 "\",\"annotations\":{"
		    "\"baton/term\":\"%" PRIu64 "\",\"baton/transitions\":\"%" PRIu64 "\"}}}",
		    l->rv, l->rv, l->transitions);
	int outcome = kube_call(lane, &quiet, &c);

	/* A process that has no right to write, or is too late, knows no term for now. That does
	 * no harm. */
	if (outcome == BATON_OUTCOME_OK) {
		kube_lease_done(l);
		kube_lease_read(l, json_incref(c.answer), 0);
		(void)kube_expiry_note(lane->store, name, l, c.read_ns, false);
	}
	kube_call_done(&c);
	return outcome;
}

/* ---- records ---- */

/* A holder that isn't baton's: client-go, or another program with such records. Its name can be any
 * text. */
static void record_read_foreign(const struct kube_lease *l, struct baton_record *out)
{
	char otherwise[64];

	out->nonce = l->transitions;
	(void)snprintf(out->lease_id, sizeof(out->lease_id), "f-%" PRIx64, l->transitions);
	(void)snprintf(otherwise, sizeof(otherwise), "holder after %" PRIu64 " transitions",
		       l->transitions);
	web_claim_foreign(l->holder, otherwise, out);
	out->since_ms = kube_time_ms(l->acquire);
}

/* Rule 10: the order is for this leadership. */
static void record_read_order(const struct kube_lease *l, struct baton_record *out)
{
	json_t *order = js_parse(l->order, strlen(l->order));

	web_order_read(order, out);
	json_decref(order);
	/* The API server's coordinator prefers another leader: for us that is an order to
	 * resign. */
	if (out->order.kind == BATON_ORDER_NONE && l->preferred[0] != '\0' &&
	    strcmp(l->preferred, l->holder) != 0)
		out->order = (struct baton_order){.id = kube_hash(0, l->preferred) | 1,
						  .term = out->term,
						  .kind = BATON_ORDER_RESIGN};
}

/* The election is reserved for one candidate. The time of that is counted from when we saw it. */
static void record_read_reserved(const struct kube_lease *l, const char *id, uint64_t now_ns,
				 struct baton_record *out)
{
	json_t *reserved = js_parse(l->reserved, strlen(l->reserved));
	uint64_t hold_ms = 0;

	(void)js_u64(reserved, "hold", &hold_ms);
	uint64_t until_ns = l->reserved_ns + hold_ms * CLOCK_NS_PER_MS;

	if (strcmp(js_text(reserved, "for"), id) != 0 && now_ns < until_ns) {
		out->reserved = true;
		out->free_in_ns = until_ns - now_ns;
	}
	json_decref(reserved);
}

void kube_record(struct kube_store *s, const char *name, const char *id, const struct kube_lease *l,
		 uint64_t end_ns, struct baton_record *out)
{
	uint64_t now_ns = clock_boot_ns();

	*out = (struct baton_record){.free_in_ns = BATON_STORE_NEVER};
	out->term = l->term;
	out->paused = l->is_paused;
	out->held = l->holder[0] != '\0' && end_ns != 0;
	out->watched = web_index_is_watched(s->web.watches, name) &&
		       (l->process[0] == '\0' || !atomic_load(&s->is_narrow));
	if (out->held) {
		if (!l->is_ours || !web_claim_read(l->leader, out))
			record_read_foreign(l, out);
		record_read_order(l, out);
		if (end_ns != BATON_STORE_NEVER)
			out->free_in_ns = end_ns > now_ns ? end_ns - now_ns : 0;
	} else if (l->reserved[0] != '\0') {
		record_read_reserved(l, id, now_ns, out);
	}
}

/* ---- ends ---- */

static int process_end(struct kube_lane *lane, struct baton_call *call, const char *process,
		       struct kube_lease *out)
{
	char key[KUBE_NAME_MAX + 2];
	struct kube_call c;

	kube_process_key(process, key);
	/* While process leases are watched, what was last seen of this one still holds. */
	if (!atomic_load(&lane->store->is_narrow) && web_index_is_live(lane->store->web.watches) &&
	    kube_expiry_recall(lane->store, key, out))
		return BATON_OUTCOME_OK;
	kube_lease_done(out);
	kube_ask_lease(lane->store, &c, process, "process");
	(void)kube_call(lane, call, &c);
	int outcome = kube_read_lease(lane, call, &c, key, true, out);

	kube_call_done(&c);
	return outcome;
}

int kube_end_of(struct kube_lane *lane, struct baton_call *call, const struct kube_lease *l,
		uint64_t ttl_ns, uint64_t *end_ns, struct kube_lease *process)
{
	*end_ns = 0;
	*process = (struct kube_lease){.object = NULL};
	if (l->holder[0] == '\0')
		return BATON_OUTCOME_OK;
	if (l->process[0] == '\0') {
		*end_ns = kube_lease_end_ns(l, ttl_ns);
		return BATON_OUTCOME_OK;
	}
	int outcome = process_end(lane, call, l->process, process);

	if (outcome == BATON_OUTCOME_OK && process->object != NULL)
		*end_ns = kube_lease_end_ns(process, ttl_ns);
	return outcome;
}

/* ---- observe ---- */

static void observe_one(struct kube_lane *lane, struct baton_call *call, struct kube_call *c,
			struct baton_observation *o)
{
	struct kube_store *s = lane->store;
	struct kube_lease process, l;
	uint64_t end_ns;
	bool is_candidate = o->id[0] != '\0';

	*o->record = (struct baton_record){.free_in_ns = BATON_STORE_NEVER};
	o->outcome = kube_read_lease(lane, call, c, o->name, is_candidate, &l);
	if (o->outcome == BATON_OUTCOME_OK && is_candidate)
		(void)kube_stamp(lane, call, o->name, &l);
	if (o->outcome == BATON_OUTCOME_OK) {
		if (!is_candidate) /* the lease was not timed here: it counts from now */
			l.since_ns = clock_boot_ns();
		o->outcome = kube_end_of(lane, call, &l, CLOCK_NS_PER_S, &end_ns, &process);
		kube_record(s, o->name, o->id, &l, end_ns, o->record);
		kube_lease_done(&process);
	}
	kube_lease_done(&l);
	if (o->outcome == BATON_OUTCOME_OK)
		o->outcome = web_check_target(kube_candidates, lane, call, o);
	o->code = o->outcome == BATON_OUTCOME_OK ? 0 : call->error.code;
}

void kube_observe(void *l, struct baton_call *call, struct baton_observation *list, size_t n)
{
	struct kube_lane *lane = l;
	struct kube_call *calls = calloc(n, sizeof(*calls));

	if (calls == NULL)
		(void)store_fail(&call->error, BATON_E_MEMORY, "no memory for a look");
	for (size_t i = 0; i < n; i++) {
		char object[KUBE_NAME_MAX + 1];

		list[i].outcome = BATON_OUTCOME_FAILED;
		list[i].code = BATON_E_MEMORY;
		kube_object_name(list[i].name, object);
		if (calls != NULL)
			kube_ask_lease(lane->store, &calls[i], object, "observe");
	}
	if (calls != NULL)
		(void)kube_call_all(lane, call, calls, n);
	for (size_t i = 0; i < n && calls != NULL; i++) {
		observe_one(lane, call, &calls[i], &list[i]);
		kube_call_done(&calls[i]);
	}
	free(calls);
}
