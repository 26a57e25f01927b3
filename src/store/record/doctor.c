/*
 * doctor.c: tries compare-and-set on a scratch record, which is deleted afterwards, and measures
 * how long a request takes. The adapter examines what is special about its store.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "store/doctor.h"
#include "store/record/layer.h"

/* A value for the scratch record, different each time. */
static bool trial_value(struct record_item *item)
{
	bytes_clear(&item->value);
	bytes_print(&item->value, "{\"w\":\"%llu\"}", (unsigned long long)record_random());
	return !item->value.has_failed;
}

/* One write that must have this outcome. */
static bool trial_put(struct record_lane *lane, struct baton_call *call, struct record_item *item,
		      int expected)
{
	struct record_version given = item->version;

	if (!trial_value(item)) {
		(void)record_no_memory(call);
		return false;
	}
	record_put(lane, call, item, 1);
	if (item->outcome == expected) {
		if (expected != BATON_OUTCOME_OK)
			item->version = given;
		return true;
	}
	if (item->outcome == BATON_OUTCOME_OK || item->outcome == BATON_OUTCOME_REFUSED)
		(void)store_fail(&call->error, BATON_E_UNSUPPORTED,
				 "this server (%s) ignores the conditions of a write: two leaders "
				 "would be possible; use a server that keeps them",
				 lane->store->adapter->name);
	return false;
}

/* The scratch record can be made, but not made again; it can be written from its version, but not
 * from the version before. */
static bool trial_run(struct record_lane *lane, struct baton_call *call)
{
	char key[64];
	struct record_item item = {.key = key};
	struct record_version first, second;

	(void)snprintf(key, sizeof(key), "t/%016llx", (unsigned long long)record_random());
	bool is_ok = trial_put(lane, call, &item, BATON_OUTCOME_OK);

	first = item.version;
	item.version = (struct record_version){.n = 0};
	is_ok = is_ok && trial_put(lane, call, &item, BATON_OUTCOME_REFUSED);
	item.version = first;
	is_ok = is_ok && trial_put(lane, call, &item, BATON_OUTCOME_OK);
	second = item.version;
	item.version = first;
	is_ok = is_ok && trial_put(lane, call, &item, BATON_OUTCOME_REFUSED);
	struct baton_call quiet = {.deadline_ns = call->deadline_ns};

	item.version = is_ok ? second : first;
	record_drop(lane, &quiet, &item, 1);
	bytes_done(&item.value);
	return is_ok;
}

bool record_try(struct record_lane *lane, struct baton_call *call)
{
	struct record_store *s = lane->store;

	store_lock(&s->base);
	bool is_tried = s->is_tried || !s->adapter->is_tried;

	store_unlock(&s->base);
	if (is_tried || !trial_run(lane, call))
		return is_tried;
	store_lock(&s->base);
	s->is_tried = true;
	store_unlock(&s->base);
	return true;
}

/* Reads a record that is hardly ever there, and writes nothing. */
static int examine_trips(struct record_lane *lane, struct baton_call *call, struct doctor *d)
{
	struct doctor_trips trips = {.n = 0};
	struct record_item item = {.key = "t/examine"};

	for (size_t i = 0; i < DOCTOR_TRIPS; i++) {
		uint64_t began_ns = clock_boot_ns();

		record_get(lane, call, &item, 1, true);
		if (item.outcome != BATON_OUTCOME_OK)
			break;
		doctor_trip(&trips, began_ns, clock_boot_ns());
	}
	bytes_done(&item.value);
	if (item.outcome == BATON_OUTCOME_OK)
		doctor_tell_trips(d, &trips, "a read");
	return item.outcome;
}

int record_driver_examine(void *l, struct baton_call *call,
			  void (*found)(void *arg, const struct baton_finding *finding), void *arg)
{
	struct record_lane *lane = l;
	const struct record_adapter *adapter = lane->store->adapter;
	struct doctor d = {.found = found, .arg = arg};
	int outcome = BATON_OUTCOME_OK;

	if (adapter->examine != NULL)
		outcome = adapter->examine(lane->lane, call, found, arg);
	return outcome == BATON_OUTCOME_OK ? examine_trips(lane, call, &d) : outcome;
}
