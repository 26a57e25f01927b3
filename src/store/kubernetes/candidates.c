/*
 * candidates.c: the candidates of an election, for others to see. Each candidate is an object of
 * its own, which is written when the candidate changes. Whether the candidate lives is told by
 * another object, its process's (presence.c, or the process lease).
 */
#include <inttypes.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/kubernetes/kube.h"

/* ---- showing oneself ---- */

/* The name of the process's object, which shows that we live. */
static void process_of(const struct kube_store *s, const struct baton_lease *lease,
		       char out[KUBE_NAME_MAX + 1])
{
	char who[BATON_LEASE_ID_MAX + 1];

	kube_who(lease->id, 2, who);
	kube_process_name(s->options.process_lease ? lease->id : who, out);
}

static void candidate_put(const struct kube_store *s, struct kube_call *c,
			  const struct baton_lease *lease, const struct baton_publication *p)
{
	char who[BATON_LEASE_ID_MAX + 1];
	char object[KUBE_NAME_MAX + 1];
	char process[KUBE_NAME_MAX + 1];
	char label[64];

	kube_who(lease->id, 2, who);
	kube_candidate_name(who, p->name, object);
	kube_label_of(p->name, label);
	process_of(s, lease, process);
	*c = (struct kube_call){.method = "PATCH", .type = KUBE_APPLY};
	kube_path(s, c, object, "?fieldManager=baton&force=true&for=publish");
	bytes_print(&c->body,
		    "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":{"
		    "\"name\":\"%s\",\"labels\":{\"baton/candidate\":\"%s\"},\"annotations\":{"
		    "\"baton/process\":\"%s\",\"baton/name\":",
		    object, label, process);
	kube_put_text(&c->body, p->name);
	bytes_print(&c->body, ",\"baton/profile\":");
	kube_put_free(&c->body, web_candidate_text(lease, &p->profile));
	bytes_print(&c->body, "}},\"spec\":{\"holderIdentity\":");
	kube_put_text(&c->body, lease->owner);
	bytes_print(&c->body, "}}");
}

/* The leader's profile stands in the election's Lease, too. It isn't written if the claim there is
 * another one by now. */
static int candidate_show_leader(struct kube_lane *lane, struct baton_call *call,
				 const struct baton_lease *lease, const struct baton_publication *p)
{
	struct kube_call c = {.method = "PATCH", .type = KUBE_PATCH};
	struct baton_record shown = {.term = 0};
	char object[KUBE_NAME_MAX + 1];
	struct kube_lease l;
	int outcome = BATON_OUTCOME_OK;

	if (kube_expiry_recall(lane->store, p->name, &l) && l.is_ours &&
	    strcmp(l.lease_id, lease->id) == 0 && web_claim_read(l.leader, &shown) &&
	    !web_claim_shows(&shown, &p->profile)) {
		char *text = web_claim_text(lease, l.nonce, shown.since_ms, &p->profile);

		kube_object_name(p->name, object);
		kube_path(lane->store, &c, object, "?fieldManager=baton&for=publish");
		bytes_print(&c.body, "[");
		kube_put_annotation(&c.body, "test", "claim", l.claim);
		kube_put_annotation(&c.body, "add", "leader", text != NULL ? text : "");
		bytes_print(&c.body, "]");
		c.body.has_failed = c.body.has_failed || text == NULL;
		free(text);
		outcome = kube_call(lane, call, &c);
		if (outcome == BATON_OUTCOME_OK)
			kube_tell_answer(lane->store, p->name, &c);
		kube_call_done(&c);
	}
	kube_lease_done(&l);
	return outcome == BATON_OUTCOME_REFUSED ? BATON_OUTCOME_OK : outcome;
}

/* Before the first candidate of this process is shown, the process's sign of life is. */
static int candidate_begin_presence(struct kube_lane *lane, struct baton_call *call,
				    const struct baton_lease *lease)
{
	struct kube_store *s = lane->store;

	store_lock(&s->web.base);
	kube_who(lease->id, 2, s->presence.who);
	s->presence.ttl_ns = lease->ttl_ns;
	(void)snprintf(s->presence.owner, sizeof(s->presence.owner), "%s", lease->owner);
	bool is_shown = s->presence.shown != NULL;

	store_unlock(&s->web.base);
	return is_shown || s->options.process_lease ? BATON_OUTCOME_OK
						    : kube_show_presence(lane, call);
}

static int compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Notes that we are shown in that election. We keep names instead of a count, because an answer
 * doesn't tell whether the candidate is new if the answer before was lost. False: no memory. */
static bool candidate_note_shown(struct kube_store *s, const char *name)
{
	if (s->options.process_lease) /* a process lease is renewed anyhow */
		return true;
	store_lock(&s->web.base);
	bool is_first = s->presence.shown == NULL;
	bool is_known = tfind(name, &s->presence.shown, compare) != NULL;
	char *copy = is_known ? NULL : strdup(name);

	if (copy != NULL && tsearch(copy, &s->presence.shown, compare) == NULL) {
		free(copy);
		copy = NULL;
	}
	store_unlock(&s->web.base);
	if (is_first && copy != NULL)
		web_wake(&s->web); /* the watch lane beats from now on */
	return is_known || copy != NULL;
}

/* True: all candidates of this process are withdrawn. */
static bool candidate_forget_shown(struct kube_store *s, const char *name)
{
	store_lock(&s->web.base);
	char *const *node = tfind(name, &s->presence.shown, compare);
	char *copy = node != NULL ? *node : NULL;

	if (copy != NULL)
		(void)tdelete(name, &s->presence.shown, compare);
	bool is_last = s->presence.shown == NULL && s->presence.who[0] != '\0';

	store_unlock(&s->web.base);
	free(copy);
	return is_last;
}

void kube_publish(void *l, struct baton_call *call, const struct baton_lease *lease,
		  struct baton_publication *list, size_t n)
{
	struct kube_lane *lane = l;
	struct kube_call *calls = calloc(n, sizeof(*calls));
	int first = candidate_begin_presence(lane, call, lease);

	if (calls == NULL)
		(void)store_fail(&call->error, BATON_E_MEMORY, "no memory for a candidate");
	bool is_ready = calls != NULL && first == BATON_OUTCOME_OK;

	for (size_t i = 0; i < n && is_ready; i++)
		candidate_put(lane->store, &calls[i], lease, &list[i]);
	if (is_ready)
		(void)kube_call_all(lane, call, calls, n);
	for (size_t i = 0; i < n; i++) {
		list[i].outcome = is_ready ? calls[i].outcome : BATON_OUTCOME_FAILED;
		if (is_ready)
			kube_call_done(&calls[i]);
		if (list[i].outcome == BATON_OUTCOME_OK &&
		    !candidate_note_shown(lane->store, list[i].name)) {
			(void)store_fail(&call->error, BATON_E_MEMORY, "no memory for a candidate");
			list[i].outcome = BATON_OUTCOME_UNKNOWN;
		}
		if (list[i].outcome == BATON_OUTCOME_OK)
			list[i].outcome = candidate_show_leader(lane, call, lease, &list[i]);
		list[i].code = list[i].outcome == BATON_OUTCOME_OK ? 0 : call->error.code;
	}
	free(calls);
}

static int candidate_remove_object(struct kube_lane *lane, struct baton_call *call,
				   const char *object)
{
	struct kube_call c = {.method = "DELETE"};

	kube_path(lane->store, &c, object, "?for=withdraw");
	(void)kube_call(lane, call, &c);
	int outcome = c.status == 404 ? BATON_OUTCOME_OK : c.outcome;

	kube_call_done(&c);
	return outcome == BATON_OUTCOME_REFUSED ? BATON_OUTCOME_FAILED : outcome;
}

int kube_withdraw(void *l, struct baton_call *call, const struct baton_lease *lease,
		  const char *name)
{
	struct kube_lane *lane = l;
	struct kube_store *s = lane->store;
	char who[BATON_LEASE_ID_MAX + 1];
	char object[KUBE_NAME_MAX + 1];

	kube_who(lease->id, 2, who);
	kube_candidate_name(who, name, object);
	int outcome = candidate_remove_object(lane, call, object);

	if (outcome == BATON_OUTCOME_OK && candidate_forget_shown(s, name) &&
	    !s->options.process_lease) {
		kube_process_name(who, object);
		(void)candidate_remove_object(lane, call, object);
	}
	return outcome;
}

/* ---- who is there ---- */

static bool process_lives(const json_t *processes, const char *name, int64_t server_ms)
{
	for (size_t i = 0; i < json_array_size(processes); i++) {
		const json_t *object = json_array_get(processes, i);

		if (strcmp(js_text(js_get(object, "metadata"), "name"), name) == 0)
			return kube_is_fresh(object, server_ms);
	}
	return false;
}

typedef void candidate_found(void *arg, const struct baton_candidate *candidate);

/* Tells of a candidate of the election, if it lives. */
static void candidate_tell(const json_t *object, const char *name, const char *leader,
			   const struct kube_call *processes, candidate_found *found, void *arg)
{
	const char *process = kube_annotation(object, "baton/process");
	struct baton_candidate c;

	if (strcmp(kube_annotation(object, "baton/name"), name) != 0 ||
	    !web_candidate_read(kube_annotation(object, "baton/profile"), &c) ||
	    !process_lives(js_get(processes->answer, "items"), process, processes->server_ms))
		return;
	c.is_leader = leader[0] != '\0' && strncmp(process, leader, strlen(leader)) == 0;
	found(arg, &c);
}

int kube_candidates(void *l, struct baton_call *call, const char *name, candidate_found *found,
		    void *arg)
{
	struct kube_lane *lane = l;
	struct kube_store *s = lane->store;
	struct kube_call calls[3];
	char object[KUBE_NAME_MAX + 1];
	char leader[KUBE_NAME_MAX + 1] = "";
	char who[BATON_LEASE_ID_MAX + 1];
	char label[64];
	struct kube_lease now;

	kube_object_name(name, object);
	kube_label_of(name, label);
	kube_ask_lease(s, &calls[0], object, "candidates");
	for (int i = 1; i < 3; i++) {
		calls[i] = (struct kube_call){.method = "GET", .is_read = true};
		kube_path(s, &calls[i], NULL, "?labelSelector=baton%%2F%s%s&for=candidates",
			  i == 1 ? "candidate%3D" : "process", i == 1 ? label : "");
	}
	bool is_ok = kube_call_all(lane, call, calls, 3);
	int outcome = kube_read_lease(lane, call, &calls[0], name, false, &now);

	if (now.is_ours) {
		kube_who(now.lease_id, 2, who);
		kube_process_name(who, leader);
	}
	const json_t *items = js_get(calls[1].answer, "items");

	for (size_t i = 0; is_ok && i < json_array_size(items); i++)
		candidate_tell(json_array_get(items, i), name, leader, &calls[2], found, arg);
	for (int i = 0; i < 3; i++) {
		if (outcome == BATON_OUTCOME_OK && calls[i].outcome != BATON_OUTCOME_OK)
			outcome = BATON_OUTCOME_FAILED;
		kube_call_done(&calls[i]);
	}
	kube_lease_done(&now);
	return outcome;
}
