/*
 * shown.c: the elections in which each session of this process shows a candidate. The keys of
 * candidates are locked by their session. When the session ends, they are unlocked, but stay:
 * Consul could delete all keys that a session has locked, but that would include the claims with
 * their terms. So a process that ends its session deletes these keys itself. Keys that dead
 * processes leave behind are swept by the next candidate of the same election.
 */
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "store/consul/consul.h"

struct consul_shown {
	struct consul_shown *next;
	void *names; /* a tree of tsearch(3) */
	char session[CONSUL_SESSION_MAX + 1];
};

static int compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* With the lock held: where the session is in the list, or would be. */
static struct consul_shown **shown_find(struct consul_store *s, const char *session)
{
	struct consul_shown **at = &s->shown;

	while (*at != NULL && strcmp((*at)->session, session) != 0)
		at = &(*at)->next;
	return at;
}

bool consul_shown_add(struct consul_store *s, const char *session, const char *name)
{
	bool is_added = false;

	store_lock(&s->web.base);
	struct consul_shown **at = shown_find(s, session);

	if (*at == NULL && (*at = calloc(1, sizeof(**at))) != NULL)
		(void)memcpy((*at)->session, session, strnlen(session, sizeof((*at)->session) - 1));
	if (*at != NULL) {
		bool is_known = tfind(name, &(*at)->names, compare) != NULL;
		char *copy = is_known ? NULL : strdup(name);

		is_added =
			is_known || (copy != NULL && tsearch(copy, &(*at)->names, compare) != NULL);
		if (!is_added)
			free(copy);
	}
	store_unlock(&s->web.base);
	return is_added;
}

void consul_shown_remove(struct consul_store *s, const char *session, const char *name)
{
	char *copy = NULL;

	store_lock(&s->web.base);
	struct consul_shown *shown = *shown_find(s, session);
	char *const *node = shown != NULL ? tfind(name, &shown->names, compare) : NULL;

	if (node != NULL) {
		copy = *node;
		(void)tdelete(name, &shown->names, compare);
	}
	store_unlock(&s->web.base);
	free(copy);
}

/* Takes any name; the caller frees it. NULL: there is none left, and the session is forgotten. */
static char *shown_take(struct consul_store *s, const char *session)
{
	char *name = NULL;

	store_lock(&s->web.base);
	struct consul_shown **at = shown_find(s, session);
	struct consul_shown *shown = *at;

	if (shown != NULL && shown->names != NULL) {
		name = *(char **)shown->names; /* the root of the tree */
		(void)tdelete(name, &shown->names, compare);
	} else if (shown != NULL) {
		*at = shown->next;
		free(shown);
	}
	store_unlock(&s->web.base);
	return name;
}

void consul_shown_done(struct consul_store *s)
{
	while (s->shown != NULL) {
		struct consul_shown *shown = s->shown;

		tdestroy(shown->names, free);
		s->shown = shown->next;
		free(shown);
	}
}

void consul_shown_clear(struct consul_lane *lane, uint64_t deadline_ns, const char *session)
{
	struct baton_call quiet = {.deadline_ns = deadline_ns};
	int outcome = BATON_OUTCOME_OK;
	size_t n;

	do {
		struct consul_answer answer;
		char *name;

		consul_begin(lane);
		for (n = 0; n < CONSUL_OPS_MAX && (name = shown_take(lane->store, session)); n++) {
			struct consul_key key = consul_candidate_key(lane->store, name, session);
			struct consul_op op = {.verb = "delete", .key = &key};

			consul_op(lane, &op);
			free(name);
		}
		/* Keys that can't be deleted now are swept by others. The names are forgotten
		 * anyhow. */
		if (n > 0 && outcome == BATON_OUTCOME_OK) {
			outcome = consul_txn(lane, &quiet, "close", &answer);
			json_decref(answer.json);
		}
	} while (n > 0);
}
