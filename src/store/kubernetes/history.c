/*
 * history.c: the last leaderships of an election, in the annotation baton/history of its Lease. A
 * claim and its release write it along. A leadership of another program is added by the claim that
 * comes after it, from what the Lease says or what the claiming process has seen.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/kubernetes/kube.h"

/* The Lease's holder, if the claim isn't one of baton; is_over: its leadership is over. False:
 * there is none. */
static bool history_foreign(const struct kube_lease *l, bool is_over, struct baton_leadership *out)
{
	*out = (struct baton_leadership){.size = sizeof(*out)};
	if (l->object == NULL || l->is_ours || l->holder[0] == '\0')
		return false;
	out->term = l->term;
	out->since_ms = kube_time_ms(l->acquire);
	(void)snprintf(out->leader, sizeof(out->leader), "%s", l->holder);
	(void)snprintf(out->ended, sizeof(out->ended), "%s", is_over ? "expired" : "");
	return true;
}

void kube_history_saw(struct kube_store *s, const char *name, const struct kube_lease *l)
{
	struct baton_leadership foreign;

	if (history_foreign(l, false, &foreign) && foreign.term != 0)
		web_index_set_foreign(s->web.watches, name, &foreign);
	else if (l->is_ours)
		web_index_set_foreign(s->web.watches, name, NULL);
}

/* A leader that has given the Lease back no longer stands in it; but we may have seen that leader
 * there. */
static bool history_past_foreign(const struct kube_store *s, const char *name,
				 const struct kube_lease *l, struct baton_leadership *out)
{
	if (history_foreign(l, true, out))
		return true;
	bool was_seen = web_index_get_foreign(s->web.watches, name, out);

	if (was_seen)
		(void)snprintf(out->ended, sizeof(out->ended), "unknown");
	return was_seen;
}

char *kube_history_begun(const struct kube_store *s, const char *name, const struct kube_lease *l,
			 uint64_t term, const char *leader)
{
	struct baton_leadership foreign;
	struct baton_leadership begun = {
		.size = sizeof(begun), .term = term, .since_ms = clock_wall_ms()};
	bool has_foreign = history_past_foreign(s, name, l, &foreign);

	(void)snprintf(begun.leader, sizeof(begun.leader), "%s", leader);
	return web_history_begun(kube_annotation(l->object, "baton/history"),
				 has_foreign ? &foreign : NULL, &begun);
}

char *kube_history_ended(const struct kube_lease *l, const char *reason)
{
	json_t *order = js_parse(l->order, strlen(l->order));
	const char *ended = reason != NULL && reason[0] != '\0' ? reason : "released";
	uint64_t meant = 0;
	bool has_note =
		store_is_by_order(reason) && js_u64(order, "term", &meant) && meant == l->term;
	char *text =
		web_history_ended(kube_annotation(l->object, "baton/history"), l->term,
				  clock_wall_ms(), ended, has_note ? js_text(order, "note") : "");

	json_decref(order);
	return text;
}

int kube_history(void *l, struct baton_call *call, const char *name, size_t max,
		 void (*found)(void *arg, const struct baton_leadership *leadership), void *arg)
{
	struct kube_lease now = {.object = NULL};
	struct baton_leadership foreign;
	int outcome = kube_fetch_lease(l, call, name, &now);

	if (outcome == BATON_OUTCOME_OK) {
		bool has_foreign = history_foreign(&now, false, &foreign);

		web_history_tell(kube_annotation(now.object, "baton/history"),
				 has_foreign ? &foreign : NULL, now.is_ours, max, found, arg);
	}
	kube_lease_done(&now);
	return outcome == BATON_OUTCOME_REFUSED ? BATON_OUTCOME_FAILED : outcome;
}
