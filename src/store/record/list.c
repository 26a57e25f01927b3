/*
 * list.c: the names of elections, from the keys below e/. A key that is a hash doesn't tell the
 * name, so its record is read. If the list has the values, an election that never had a leader and
 * isn't paused is left out. Nothing here decides which candidate leads.
 */
#include <stdlib.h>
#include <string.h>

#include "store/names.h"
#include "store/record/layer.h"

struct name_listing {
	struct store_names names;
	struct record_item *hashed; /* their keys are hashes */
	size_t n_hashed;
	bool has_failed;
};

static void list_value(struct name_listing *l, const struct record_item *item)
{
	struct record_election e;

	if (item->value.n > 0 && record_parse_election(item->value.at, item->value.n, &e) == 0 &&
	    (e.term != 0 || e.paused))
		store_names_add(&l->names, e.name);
}

static void list_hashed(struct name_listing *l, const char *key)
{
	/* The room is a power of two, and full when n_hashed reaches it. */
	bool is_full = (l->n_hashed & (l->n_hashed - 1)) == 0;
	size_t room = l->n_hashed > 0 ? 2 * l->n_hashed : 1;
	struct record_item *more = is_full ? realloc(l->hashed, room * sizeof(*more)) : l->hashed;

	if (more == NULL) {
		l->has_failed = true;
		return;
	}
	l->hashed = more;
	more[l->n_hashed] = (struct record_item){.key = strdup(key)};
	l->has_failed = l->has_failed || more[l->n_hashed].key == NULL;
	l->n_hashed++;
}

static void list_found(void *arg, const struct record_item *item)
{
	struct name_listing *l = arg;
	char name[BATON_NAME_MAX + 1];

	if (item->value.n > 0)
		list_value(l, item);
	else if (record_parse_key(RECORD_ELECTIONS, item->key, name) == 0)
		store_names_add(&l->names, name);
	else
		list_hashed(l, item->key);
}

static int list_read_hashed(struct record_lane *lane, struct baton_call *call,
			    struct name_listing *l)
{
	int outcome = BATON_OUTCOME_OK;

	if (!l->has_failed && l->n_hashed > 0)
		record_get(lane, call, l->hashed, l->n_hashed, false);
	for (size_t i = 0; i < l->n_hashed && !l->has_failed; i++) {
		if (l->hashed[i].outcome != BATON_OUTCOME_OK)
			outcome = BATON_OUTCOME_FAILED;
		list_value(l, &l->hashed[i]);
	}
	for (size_t i = 0; i < l->n_hashed; i++) {
		bytes_done(&l->hashed[i].value);
		free((char *)(uintptr_t)l->hashed[i].key);
	}
	free(l->hashed);
	return outcome;
}

int record_driver_list(void *lane, struct baton_call *call, const char *prefix, const char *after,
		       size_t max, void (*found)(void *arg, const char *name), void *arg)
{
	struct record_lane *l = lane;
	const struct record_adapter *adapter = l->store->adapter;
	struct name_listing listing = {.names = {.prefix = prefix, .after = after, .max = max}};
	int outcome =
		adapter->list(l->lane, call, "e/", adapter->lists_values, list_found, &listing);
	int read = list_read_hashed(l, call, &listing);

	if (outcome == BATON_OUTCOME_OK)
		outcome = read;
	if (listing.has_failed || listing.names.failed)
		outcome = record_no_memory(call);
	if (outcome == BATON_OUTCOME_OK)
		(void)store_names_tell(&listing.names, found, arg);
	store_names_done(&listing.names);
	return outcome;
}
