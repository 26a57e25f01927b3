/*
 * watch.c: change streams, which replica sets and sharded clusters have. A single server has none.
 * There a watch just lasts until its deadline, and then says that all may have changed. That is
 * polling.
 *
 * The stream is a cursor on the watch lane's connection. If a wake ends a wait, the connection is
 * cut, because an answer is still to come on it. The next watch then begins a new stream, and says
 * so.
 */
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/mongodb/mongodb.h"

/* How much longer than maxTimeMS the server's answer may take. */
#define MARGIN_MS 60

static bool take_wake(const struct mongodb_lane *l)
{
	uint64_t count;

	return read(l->lane.wake, &count, sizeof(count)) > 0;
}

/* Waits for a wake until the call's deadline. True: there was one. */
static bool await_wake(const struct mongodb_lane *l, const struct baton_call *call)
{
	struct pollfd fd = {.fd = l->lane.wake, .events = POLLIN};

	(void)poll(&fd, 1, clock_boot_ns() < call->deadline_ns ? mongodb_left_ms(call) + 1 : 0);
	return take_wake(l);
}

static void tell_changes(const struct mongodb_lane *l, const bson_t *reply, record_changed *changed,
			 void *arg)
{
	bson_iter_t at, doc, event, id;

	if ((!mongodb_has(reply, "cursor.firstBatch", &at) &&
	     !mongodb_has(reply, "cursor.nextBatch", &at)) ||
	    !bson_iter_recurse(&at, &doc))
		return;
	while (bson_iter_next(&doc)) {
		const char *key = NULL;

		if (BSON_ITER_HOLDS_DOCUMENT(&doc) && bson_iter_recurse(&doc, &event) &&
		    bson_iter_find_descendant(&event, "documentKey._id", &id) &&
		    BSON_ITER_HOLDS_UTF8(&id))
			key = mongodb_key(l, bson_iter_utf8(&id, NULL));
		if (key != NULL && strncmp(key, "e/", 2) == 0)
			changed(arg, key);
	}
}

/* Makes the command for a stream from now on. It tells changes below e/ only, and of each only the
 * record's _id. */
static void make_stream(const struct mongodb_lane *l, bson_t *command)
{
	bson_t pipeline, stage, part, range, cursor;
	char id[MONGODB_ID_MAX];
	int n = mongodb_id(l, "e/", id);

	(void)BSON_APPEND_UTF8(command, "aggregate", l->store->options.collection);
	(void)BSON_APPEND_ARRAY_BEGIN(command, "pipeline", &pipeline);
	(void)BSON_APPEND_DOCUMENT_BEGIN(&pipeline, "0", &stage);
	(void)BSON_APPEND_DOCUMENT_BEGIN(&stage, "$changeStream", &part);
	(void)bson_append_document_end(&stage, &part);
	(void)bson_append_document_end(&pipeline, &stage);
	(void)BSON_APPEND_DOCUMENT_BEGIN(&pipeline, "1", &stage);
	(void)BSON_APPEND_DOCUMENT_BEGIN(&stage, "$match", &part);
	(void)BSON_APPEND_DOCUMENT_BEGIN(&part, "documentKey._id", &range);
	(void)bson_append_utf8(&range, "$gte", 4, id, n);
	id[n - 1]++;
	(void)bson_append_utf8(&range, "$lt", 3, id, n);
	(void)bson_append_document_end(&part, &range);
	(void)bson_append_document_end(&stage, &part);
	(void)bson_append_document_end(&pipeline, &stage);
	(void)BSON_APPEND_DOCUMENT_BEGIN(&pipeline, "2", &stage);
	(void)BSON_APPEND_DOCUMENT_BEGIN(&stage, "$project", &part);
	(void)BSON_APPEND_INT32(&part, "documentKey", 1);
	(void)bson_append_document_end(&stage, &part);
	(void)bson_append_document_end(&pipeline, &stage);
	(void)bson_append_array_end(command, &pipeline);
	(void)BSON_APPEND_DOCUMENT_BEGIN(command, "cursor", &cursor);
	(void)bson_append_document_end(command, &cursor);
}

/* Runs the command, and tells the changes in its answer. False: the stream is broken. */
static bool run_stream(struct mongodb_lane *l, struct baton_call *call, const bson_t *command,
		       record_changed *changed, void *arg)
{
	bson_t reply;
	bson_iter_t at;
	int end = mongodb_run(l, call, command, &reply);

	l->cursor = 0;
	if (end == MONGODB_DONE) {
		l->cursor = mongodb_has(&reply, "cursor.id", &at) ? bson_iter_as_int64(&at) : 0;
		tell_changes(l, &reply, changed, arg);
		if (l->cursor == 0)
			(void)store_fail(&call->error, BATON_E_UNAVAILABLE,
					 "the change stream has ended: the collection was dropped, "
					 "perhaps");
	}
	bson_destroy(&reply);
	return l->cursor != 0;
}

int mongodb_watch(void *lane, struct baton_call *call, record_changed *changed, void *arg)
{
	struct mongodb_lane *l = lane;
	bson_t command = BSON_INITIALIZER;
	bool is_new = false;

	if (take_wake(l)) /* before anything is sent, whose answer would be in the way */
		return BATON_OUTCOME_OK;
	l->is_watching = true;
	bool is_fine = mongodb_connect(l, call);

	if (is_fine && !l->is_set) {
		bool is_begun = l->cursor != 0;

		l->cursor = 1; /* not a real cursor: the server is polled */
		if (!is_begun || !await_wake(l, call))
			changed(arg, NULL);
		l->is_watching = false;
		return BATON_OUTCOME_OK;
	}
	if (is_fine && l->cursor == 0) {
		make_stream(l, &command);
		is_new = is_fine = run_stream(l, call, &command, changed, arg);
		if (is_new)
			changed(arg, NULL);
	}
	int32_t left_ms = mongodb_left_ms(call);

	if (is_fine && !is_new && left_ms <= MARGIN_MS) {
		(void)await_wake(l, call);
	} else if (is_fine && !is_new) {
		(void)BSON_APPEND_INT64(&command, "getMore", l->cursor);
		(void)BSON_APPEND_UTF8(&command, "collection", l->store->options.collection);
		(void)BSON_APPEND_INT32(&command, "maxTimeMS", left_ms - MARGIN_MS);
		is_fine = run_stream(l, call, &command, changed, arg);
	}
	bson_destroy(&command);
	l->is_watching = false;
	if (!is_fine && l->is_woken)
		is_fine = true; /* a wake is not a failure; the next watch begins anew */
	(void)take_wake(l);
	return is_fine ? BATON_OUTCOME_OK : BATON_OUTCOME_FAILED;
}
