/*
 * adapter.c: records as documents of MongoDB. mongodb.h describes how.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/mongodb/mongodb.h"

#define BATCH_MAX 1000
/* How many bytes of values one command may have: a document has 16 MB at most. */
#define COMMAND_MAX ((size_t)8 << 20)
#define E_DUPLICATE_KEY 11000

/* ---- the store and its lanes ---- */

/* The library has one log for the whole process, which would else go to the application's
 * stderr. */
static void log_nothing(mongoc_log_level_t level, const char *domain, const char *text, void *arg)
{
	(void)level, (void)domain, (void)text, (void)arg;
}

/* The library keeps counters in a file of shared memory, for a tool of its own. A process that is
 * killed would leave the file behind, and a later process with the same id would complain. So the
 * file gets no name. */
static void set_up_library(void)
{
	char name[32];

	mongoc_init();
	mongoc_log_set_handler(log_nothing, NULL);
	(void)snprintf(name, sizeof(name), "/mongoc-%u", (unsigned)getpid());
	(void)shm_unlink(name);
}

static int open_store(const struct baton_store_config *config, struct record_options *options,
		      void **store, struct baton_error *err)
{
	struct mongodb_store *s = store_base_new(sizeof(*s), err);

	if (s == NULL)
		return BATON_E_MEMORY;
	s->options.record = options;
	int code = mongodb_options_parse(&s->options, config->url, err);

	if (code != BATON_OK) {
		store_base_free(s);
		return code;
	}
	set_up_library();
	(void)snprintf(s->prefix, sizeof(s->prefix), "%s", options->prefix);
	*store = s;
	return BATON_OK;
}

static void close_store(void *store)
{
	struct mongodb_store *s = store;

	explicit_bzero(s->options.login.password, sizeof(s->options.login.password));
	store_base_free(s);
}

static int open_lane(void *store, int kind, void **lane, struct baton_error *err)
{
	struct mongodb_lane *l = store_lane_new(store, sizeof(*l), kind == BATON_LANE_WATCH, err);

	if (l == NULL)
		return BATON_E_MEMORY;
	l->store = store;
	*lane = l;
	return BATON_OK;
}

static void close_lane(void *lane)
{
	struct mongodb_lane *l = lane;

	if (!l->store->base.forgotten) {
		mongodb_disconnect(l);
		lookup_cancel(&l->lookup);
		mongodb_srv_cancel(&l->srv);
	}
	store_lane_free(l->store, l);
}

static void forget_lane(void *lane)
{
	mongodb_streams_forget(lane);
}

static void forget_store(void *store)
{
	store_base_forget(store, forget_lane);
}

/* ---- reading ---- */

/* A document of an answer. It points into the answer. */
struct row {
	const char *key;
	struct record_version version;
	const char *value;
	uint32_t n;
	uint64_t age_ns;
};

typedef void row_found(void *arg, const struct row *row);

static uint64_t age_of(const struct mongodb_lane *l, const bson_iter_t *at)
{
	int64_t now_ms = l->ahead_ms + (int64_t)(clock_boot_ns() / CLOCK_NS_PER_MS);
	int64_t age_ms = now_ms - bson_iter_date_time(at);

	return (uint64_t)(age_ms > 0 ? age_ms : 0) * CLOCK_NS_PER_MS;
}

/* Reads a document. One that isn't ours gets no version. False: it has no key. */
static bool take_row(const struct mongodb_lane *l, const bson_iter_t *doc, struct row *row)
{
	bson_iter_t at;
	uint32_t n;

	*row = (struct row){.age_ns = RECORD_NEVER};
	if (!BSON_ITER_HOLDS_DOCUMENT(doc) || !bson_iter_recurse(doc, &at))
		return false;
	while (bson_iter_next(&at)) {
		const char *name = bson_iter_key(&at);

		if (strcmp(name, "at") == 0 && BSON_ITER_HOLDS_DATE_TIME(&at))
			row->age_ns = age_of(l, &at);
		if (!BSON_ITER_HOLDS_UTF8(&at))
			continue;
		const char *text = bson_iter_utf8(&at, &n);

		if (strcmp(name, "_id") == 0)
			row->key = mongodb_key(l, text);
		else if (strcmp(name, "w") == 0 && n > 0 && n <= RECORD_VERSION_MAX)
			row->version = record_version_of(text, n);
		else if (strcmp(name, "v") == 0)
			row->value = text, row->n = n;
	}
	return row->key != NULL;
}

/* Hands on the documents of one page. Returns the cursor for the next page; 0: that was the last
 * one. */
static int64_t take_page(struct mongodb_lane *l, const bson_t *reply, row_found *found, void *arg)
{
	bson_iter_t at, doc;
	struct row row;

	if ((mongodb_has(reply, "cursor.firstBatch", &at) ||
	     mongodb_has(reply, "cursor.nextBatch", &at)) &&
	    bson_iter_recurse(&at, &doc))
		while (bson_iter_next(&doc))
			if (take_row(l, &doc, &row))
				found(arg, &row);
	return mongodb_has(reply, "cursor.id", &at) ? bson_iter_as_int64(&at) : 0;
}

static int run_find(struct mongodb_lane *l, struct baton_call *call, const bson_t *filter,
		    bool fresh, bool with_values, row_found *found, void *arg)
{
	const char *collection = l->store->options.collection;
	bson_t command = BSON_INITIALIZER, part, reply;

	(void)BSON_APPEND_UTF8(&command, "find", collection);
	(void)BSON_APPEND_DOCUMENT(&command, "filter", filter);
	(void)BSON_APPEND_INT32(&command, "batchSize", 10 * BATCH_MAX);
	(void)BSON_APPEND_INT32(&command, "maxTimeMS", mongodb_left_ms(call));
	if (!with_values) {
		(void)BSON_APPEND_DOCUMENT_BEGIN(&command, "projection", &part);
		(void)BSON_APPEND_INT32(&part, "v", 0);
		(void)bson_append_document_end(&command, &part);
	}
	/*
	 * With "linearizable", the server answers only when a majority has agreed that it was still
	 * the primary after it read the records. So each record is as new as the request, though
	 * they need not be of one moment. A single server has no majority to ask, and refuses this.
	 */
	if (fresh && l->is_set) {
		(void)BSON_APPEND_DOCUMENT_BEGIN(&command, "readConcern", &part);
		(void)BSON_APPEND_UTF8(&part, "level", "linearizable");
		(void)bson_append_document_end(&command, &part);
	}
	int end = mongodb_run(l, call, &command, &reply);

	while (end == MONGODB_DONE) {
		int64_t cursor = take_page(l, &reply, found, arg);

		bson_destroy(&reply);
		bson_reinit(&command);
		if (cursor == 0) {
			bson_init(&reply);
			break;
		}
		(void)BSON_APPEND_INT64(&command, "getMore", cursor);
		(void)BSON_APPEND_UTF8(&command, "collection", collection);
		end = mongodb_run(l, call, &command, &reply);
	}
	bson_destroy(&reply);
	bson_destroy(&command);
	return end;
}

/* ---- items ---- */

/* Items in the order of their keys, so that documents find theirs. */
static int by_key(const void *a, const void *b)
{
	return strcmp((*(struct record_item *const *)a)->key,
		      (*(struct record_item *const *)b)->key);
}

static int to_key(const void *key, const void *item)
{
	return strcmp(key, (*(struct record_item *const *)item)->key);
}

struct batch {
	struct record_item **list;
	size_t n;
	size_t n_ours; /* put: how many records have what we wrote */
};

static struct record_item *batch_find(const struct batch *b, const struct row *row)
{
	struct record_item **at =
		bsearch(row->key, (void *)b->list, b->n, sizeof(struct record_item *), to_key);

	return at != NULL ? *at : NULL;
}

static void end_all(struct record_item **list, size_t n, int outcome, int code)
{
	for (size_t i = 0; i < n; i++) {
		list[i]->outcome = outcome;
		list[i]->code = code;
	}
}

static void append_index(bson_t *array, size_t i, bson_t *element)
{
	char text[16];
	const char *key;
	size_t n = bson_uint32_to_string((uint32_t)i, &key, text, sizeof(text));

	(void)bson_append_document_begin(array, key, (int)n, element);
}

/* {_id: {$in: [...]}} */
static void filter_keys(const struct mongodb_lane *l, const struct batch *b, bson_t *filter)
{
	bson_t in, list;
	char id[MONGODB_ID_MAX], text[16];
	const char *key;

	(void)BSON_APPEND_DOCUMENT_BEGIN(filter, "_id", &in);
	(void)BSON_APPEND_ARRAY_BEGIN(&in, "$in", &list);
	for (size_t i = 0; i < b->n; i++) {
		size_t n = bson_uint32_to_string((uint32_t)i, &key, text, sizeof(text));

		(void)bson_append_utf8(&list, key, (int)n, id, mongodb_id(l, b->list[i]->key, id));
	}
	(void)bson_append_array_end(&in, &list);
	(void)bson_append_document_end(filter, &in);
}

static int read_batch(struct mongodb_lane *l, struct baton_call *call, struct batch *b, bool fresh,
		      row_found *found)
{
	bson_t filter = BSON_INITIALIZER;

	filter_keys(l, b, &filter);
	int end = run_find(l, call, &filter, fresh, true, found, b);

	bson_destroy(&filter);
	return end;
}

/* NULL: no memory; the call's error says so. */
static struct record_item **sort_items(struct baton_call *call, struct record_item *items, size_t n)
{
	struct record_item **list = calloc(n, sizeof(struct record_item *));

	for (size_t i = 0; i < n; i++) {
		items[i].outcome = 0;
		items[i].is_told = false;
		if (list != NULL)
			list[i] = &items[i];
	}
	if (list != NULL) {
		qsort((void *)list, n, sizeof(struct record_item *), by_key);
		return list;
	}
	(void)store_fail(&call->error, BATON_E_MEMORY, "no memory for a request");
	record_items_end(items, n, BATON_OUTCOME_FAILED, BATON_E_MEMORY);
	return NULL;
}

/* ---- get ---- */

static void get_found(void *arg, const struct row *row)
{
	struct record_item *item = batch_find(arg, row);

	if (item == NULL)
		return;
	item->version = row->version;
	item->age_ns = row->age_ns;
	bytes_clear(&item->value);
	if (row->value != NULL)
		(void)bytes_add(&item->value, row->value, row->n, MONGODB_VALUE_MAX);
	bool is_whole = row->version.n > 0 && row->value != NULL && !item->value.has_failed;

	item->outcome = is_whole ? BATON_OUTCOME_OK : BATON_OUTCOME_FAILED;
	item->code = is_whole ? 0 : BATON_E_CORRUPT;
}

static void get_records(void *lane, struct baton_call *call, struct record_item *items, size_t n,
			bool fresh)
{
	struct mongodb_lane *l = lane;
	struct batch b = {.list = sort_items(call, items, n), .n = n};

	if (b.list == NULL)
		return;
	for (size_t i = 0; i < n; i++) {
		items[i].version = (struct record_version){0};
		items[i].outcome = BATON_OUTCOME_OK;
		items[i].age_ns = RECORD_NEVER;
	}
	int end = mongodb_connect(l, call) ? read_batch(l, call, &b, fresh, get_found)
					   : MONGODB_UNSENT;

	if (end != MONGODB_DONE)
		end_all(b.list, n, BATON_OUTCOME_FAILED, call->error.code);
	free((void *)b.list);
}

/* ---- put ---- */

static void append_version(bson_t *doc, const struct record_version *v)
{
	(void)bson_append_utf8(doc, "w", 1, (const char *)v->bytes, v->n);
}

static void append_record(const struct mongodb_lane *l, bson_t *doc, const struct record_item *item)
{
	struct record_version w = record_version_of_value(item->value.at, item->value.n);

	append_version(doc, &w);
	(void)bson_append_utf8(doc, "v", 1, item->value.at, (int)item->value.n);
	(void)BSON_APPEND_DATE_TIME(doc, "at",
				    l->ahead_ms + (int64_t)(clock_boot_ns() / CLOCK_NS_PER_MS));
}

/* Appends {_id, w}: the record, if it has the expected version. */
static void append_expected(const struct mongodb_lane *l, bson_t *statement,
			    const struct record_item *item)
{
	bson_t q;
	char id[MONGODB_ID_MAX];

	(void)BSON_APPEND_DOCUMENT_BEGIN(statement, "q", &q);
	(void)bson_append_utf8(&q, "_id", 3, id, mongodb_id(l, item->key, id));
	append_version(&q, &item->version);
	(void)bson_append_document_end(statement, &q);
}

/* Begins a command that writes. The server answers it when a majority has the write on disk. If
 * that takes longer than wtimeout, the server answers that it does not know, and the connection
 * stays good. The caller destroys the command. */
static void begin_write(const struct mongodb_lane *l, const struct baton_call *call,
			bson_t *command, const char *verb)
{
	bson_t concern;
	int32_t left_ms = mongodb_left_ms(call);

	bson_init(command);
	(void)bson_append_utf8(command, verb, -1, l->store->options.collection, -1);
	(void)BSON_APPEND_BOOL(command, "ordered", false);
	(void)BSON_APPEND_DOCUMENT_BEGIN(command, "writeConcern", &concern);
	(void)BSON_APPEND_UTF8(&concern, "w", "majority");
	(void)BSON_APPEND_BOOL(&concern, "j", true);
	(void)BSON_APPEND_INT32(&concern, "wtimeout", left_ms - left_ms / 8);
	(void)bson_append_document_end(command, &concern);
}

/* Takes the server's errors about single statements. */
static void judge_errors(struct baton_call *call, const bson_t *reply, struct batch *b)
{
	bson_iter_t list, at, field;

	if (!mongodb_has(reply, "writeErrors", &list) || !bson_iter_recurse(&list, &at))
		return;
	while (bson_iter_next(&at)) {
		int64_t index = bson_iter_recurse(&at, &field) && bson_iter_find(&field, "index")
					? bson_iter_as_int64(&field)
					: -1;
		int code = bson_iter_recurse(&at, &field) && bson_iter_find(&field, "code")
				   ? (int)bson_iter_as_int64(&field)
				   : 0;
		const char *text =
			bson_iter_recurse(&at, &field) && bson_iter_find(&field, "errmsg")
				? bson_iter_utf8(&field, NULL)
				: NULL;

		if (index < 0 || (uint64_t)index >= b->n)
			continue;
		struct record_item *item = b->list[index];

		if (code == E_DUPLICATE_KEY) {
			item->outcome = BATON_OUTCOME_REFUSED;
			continue;
		}
		(void)store_fail(&call->error, mongodb_code(code), "the server says: %.150s (%d)",
				 text != NULL ? text : "", code);
		item->outcome = mongodb_is_harmless(code) && b->n == 1 ? BATON_OUTCOME_FAILED
								       : BATON_OUTCOME_UNKNOWN;
		item->code = mongodb_code(code);
	}
}

/* Sends the command. Items that have an outcome then are done. The others were carried out or
 * refused; *n_hit says how many records they have found. */
static void run_write(struct mongodb_lane *l, struct baton_call *call, const bson_t *command,
		      struct batch *b, size_t *n_hit)
{
	bson_t reply;
	bson_iter_t at;
	int end = mongodb_run(l, call, command, &reply);

	*n_hit = 0;
	if (end == MONGODB_DONE && mongodb_has(&reply, "writeConcernError", &at)) {
		/* The write may stay, or be rolled back. */
		(void)store_fail(&call->error, BATON_E_UNAVAILABLE,
				 "no majority of the servers has confirmed the write in time");
		end_all(b->list, b->n, BATON_OUTCOME_UNKNOWN, BATON_E_UNAVAILABLE);
	} else if (end == MONGODB_DONE) {
		if (mongodb_has(&reply, "n", &at))
			*n_hit = (size_t)bson_iter_as_int64(&at);
		judge_errors(call, &reply, b);
	} else {
		/* Some of several statements may have been carried out before the server
		 * stopped. */
		bool never =
			end == MONGODB_UNSENT ||
			(end == MONGODB_REFUSED && b->n == 1 && mongodb_is_harmless(l->code)) ||
			(end == MONGODB_REFUSED && call->error.code == BATON_E_DENIED);

		end_all(b->list, b->n, never ? BATON_OUTCOME_FAILED : BATON_OUTCOME_UNKNOWN,
			call->error.code);
	}
	bson_destroy(&reply);
}

static void take_written(struct record_item *item)
{
	item->outcome = BATON_OUTCOME_OK;
	item->version = record_version_of_value(item->value.at, item->value.n);
}

static void insert_records(struct mongodb_lane *l, struct baton_call *call, struct batch *b)
{
	bson_t command, list, doc;
	char id[MONGODB_ID_MAX];
	size_t n_hit;

	begin_write(l, call, &command, "insert");
	(void)BSON_APPEND_ARRAY_BEGIN(&command, "documents", &list);
	for (size_t i = 0; i < b->n; i++) {
		append_index(&list, i, &doc);
		(void)bson_append_utf8(&doc, "_id", 3, id, mongodb_id(l, b->list[i]->key, id));
		append_record(l, &doc, b->list[i]);
		(void)bson_append_document_end(&list, &doc);
	}
	(void)bson_append_array_end(&command, &list);
	run_write(l, call, &command, b, &n_hit);
	bson_destroy(&command);
	for (size_t i = 0; i < b->n; i++)
		if (b->list[i]->outcome == 0)
			take_written(b->list[i]);
}

/* If only some statements have matched: those whose records are as we wrote them. */
static void put_found(void *arg, const struct row *row)
{
	struct batch *b = arg;
	struct record_item *item = batch_find(b, row);

	if (item == NULL || item->outcome != 0 || row->value == NULL || row->version.n == 0)
		return;
	struct record_version ours = record_version_of_value(item->value.at, item->value.n);

	if (record_same_version(&row->version, &ours)) {
		take_written(item);
		b->n_ours++;
		return;
	}
	item->is_told = true;
	item->version = row->version;
	bytes_clear(&item->value);
	(void)bytes_add(&item->value, row->value, row->n, MONGODB_VALUE_MAX);
	item->is_told = !item->value.has_failed;
}

static void find_matched(struct mongodb_lane *l, struct baton_call *call, struct batch *b,
			 size_t n_hit)
{
	int end = read_batch(l, call, b, true, put_found);
	/* If fewer records are ours than have matched, another write has followed one of ours. */
	bool is_clear = end == MONGODB_DONE && b->n_ours == n_hit;

	for (size_t i = 0; i < b->n; i++) {
		struct record_item *item = b->list[i];

		if (item->outcome != 0)
			continue;
		item->outcome = is_clear ? BATON_OUTCOME_REFUSED : BATON_OUTCOME_UNKNOWN;
		item->is_told = item->is_told && is_clear;
		item->code = BATON_E_UNAVAILABLE;
	}
	if (!is_clear && end == MONGODB_DONE)
		(void)store_fail(&call->error, BATON_E_UNAVAILABLE,
				 "a record was written again before it could be looked at");
}

/* Judges statements that need a record, of which n_hit have found it. False: only some have, so
 * that nothing is known of the single ones. */
static bool judge_all(const struct batch *b, size_t n_hit)
{
	size_t n_open = 0;

	for (size_t i = 0; i < b->n; i++)
		n_open += b->list[i]->outcome == 0;
	if (n_hit != n_open && n_hit != 0)
		return false;
	for (size_t i = 0; i < b->n; i++)
		if (b->list[i]->outcome == 0)
			b->list[i]->outcome = n_hit > 0 ? BATON_OUTCOME_OK : BATON_OUTCOME_REFUSED;
	return true;
}

static void update_records(struct mongodb_lane *l, struct baton_call *call, struct batch *b)
{
	bson_t command, list, statement, doc;
	size_t n_hit;

	begin_write(l, call, &command, "update");
	(void)BSON_APPEND_ARRAY_BEGIN(&command, "updates", &list);
	for (size_t i = 0; i < b->n; i++) {
		append_index(&list, i, &statement);
		append_expected(l, &statement, b->list[i]);
		(void)BSON_APPEND_DOCUMENT_BEGIN(&statement, "u", &doc);
		append_record(l, &doc, b->list[i]);
		(void)bson_append_document_end(&statement, &doc);
		(void)bson_append_document_end(&list, &statement);
	}
	(void)bson_append_array_end(&command, &list);
	run_write(l, call, &command, b, &n_hit);
	bson_destroy(&command);
	if (!judge_all(b, n_hit)) {
		find_matched(l, call, b, n_hit);
		return;
	}
	for (size_t i = 0; i < b->n; i++)
		if (b->list[i]->outcome == BATON_OUTCOME_OK)
			take_written(b->list[i]);
}

/* Moves new records to the front. Both parts stay sorted by key. Returns how many are new. */
static size_t split_new(struct record_item **list, size_t n, struct record_item **out)
{
	size_t n_new = 0, n_old = 0;

	for (size_t i = 0; i < n; i++)
		if (list[i]->version.n == 0)
			out[n_new++] = list[i];
	for (size_t i = 0; i < n; i++)
		if (list[i]->version.n > 0)
			out[n_new + n_old++] = list[i];
	return n_new;
}

/* How many of them fit into one command. */
static size_t count_fitting(struct record_item *const *list, size_t n)
{
	size_t size = 0, i = 0;

	while (i < n && (i == 0 || size + list[i]->value.n < COMMAND_MAX))
		size += list[i++]->value.n;
	return i;
}

static void put_records(void *lane, struct baton_call *call, struct record_item *items, size_t n)
{
	struct mongodb_lane *l = lane;
	struct record_item **sorted = sort_items(call, items, n);
	struct record_item **list = sorted != NULL ? calloc(n, sizeof(struct record_item *)) : NULL;

	if (list == NULL) {
		record_items_end(items, n, BATON_OUTCOME_FAILED, BATON_E_MEMORY);
		free((void *)sorted);
		return;
	}
	size_t n_new = split_new(sorted, n, list);
	size_t n_some;

	for (size_t i = 0; i < n; i += n_some) {
		bool is_new = i < n_new;

		n_some = count_fitting(list + i, (is_new ? n_new : n) - i);
		struct batch b = {.list = list + i, .n = n_some};

		if (!mongodb_connect(l, call))
			end_all(b.list, b.n, BATON_OUTCOME_FAILED, call->error.code);
		else if (is_new)
			insert_records(l, call, &b);
		else
			update_records(l, call, &b);
	}
	free((void *)list);
	free((void *)sorted);
}

/* ---- drop, list ---- */

/* Sweeping is rare, and reads before it deletes. So the verdict may be as coarse as this: all,
 * none, or unknown. */
static void drop_records(void *lane, struct baton_call *call, struct record_item *items, size_t n)
{
	struct mongodb_lane *l = lane;
	struct batch b = {.list = sort_items(call, items, n), .n = n};
	bson_t command, list, statement;
	size_t n_hit;

	if (b.list == NULL)
		return;
	if (!mongodb_connect(l, call)) {
		end_all(b.list, n, BATON_OUTCOME_FAILED, call->error.code);
		free((void *)b.list);
		return;
	}
	begin_write(l, call, &command, "delete");
	(void)BSON_APPEND_ARRAY_BEGIN(&command, "deletes", &list);
	for (size_t i = 0; i < n; i++) {
		append_index(&list, i, &statement);
		append_expected(l, &statement, b.list[i]);
		(void)BSON_APPEND_INT32(&statement, "limit", 1);
		(void)bson_append_document_end(&list, &statement);
	}
	(void)bson_append_array_end(&command, &list);
	run_write(l, call, &command, &b, &n_hit);
	bson_destroy(&command);
	if (!judge_all(&b, n_hit)) {
		(void)store_fail(&call->error, BATON_E_BUSY, "some records had changed");
		record_items_end(items, n, BATON_OUTCOME_UNKNOWN, BATON_E_BUSY);
	}
	free((void *)b.list);
}

struct listing {
	record_found *found;
	void *arg;
};

static void list_found(void *arg, const struct row *row)
{
	const struct listing *list = arg;
	struct record_item item = {.key = row->key,
				   .outcome = BATON_OUTCOME_OK,
				   .version = row->version,
				   .age_ns = row->age_ns};

	if (row->value != NULL) /* the answer's own memory, for the item is used only here */
		item.value = (struct bytes){.at = (char *)row->value, .n = row->n};
	if (row->version.n > 0)
		list->found(list->arg, &item);
}

static int list_records(void *lane, struct baton_call *call, const char *prefix, bool with_values,
			record_found *found, void *arg)
{
	struct mongodb_lane *l = lane;
	struct listing list = {.found = found, .arg = arg};
	bson_t filter = BSON_INITIALIZER, range;
	char id[MONGODB_ID_MAX];

	int n = mongodb_id(l, prefix, id);

	(void)BSON_APPEND_DOCUMENT_BEGIN(&filter, "_id", &range);
	(void)bson_append_utf8(&range, "$gte", 4, id, n);
	id[n - 1]++; /* '/' becomes the next character: the end of the range */
	(void)bson_append_utf8(&range, "$lt", 3, id, n);
	(void)bson_append_document_end(&filter, &range);
	int end = mongodb_connect(l, call)
			  ? run_find(l, call, &filter, false, with_values, list_found, &list)
			  : MONGODB_UNSENT;

	bson_destroy(&filter);
	return end == MONGODB_DONE ? BATON_OUTCOME_OK : BATON_OUTCOME_FAILED;
}

#define PROMISES                                                                               \
	"At most one leader at a time among all processes that use the same collection, and "  \
	"terms that only grow, also when a replica set elects another primary: a majority "    \
	"has every write on disk before it counts. Servers' clocks do not matter. Where a "    \
	"majority of the servers loses its data, two can lead until the older lease is over. " \
	"baton's own tests run on mongo-java-server, not on MongoDB's own server."

static const struct record_adapter adapter = {
	.name = "MongoDB",
	.page = "baton-mongodb(7)",
	.key_max = MONGODB_KEY_MAX,
	.value_max = MONGODB_VALUE_MAX,
	.batch_max = BATCH_MAX,
	.get_max = BATCH_MAX,
	.poll_ms = 1000,
	.lists_values = true,
	.traits = RECORD_TRAITS(.min_lease_ns = CLOCK_NS_PER_S, .promises = PROMISES),
	.open = open_store,
	.close = close_store,
	.lane_open = open_lane,
	.lane_close = close_lane,
	.forget = forget_store,
	.examine = mongodb_examine,
	.get = get_records,
	.put = put_records,
	.drop = drop_records,
	.list = list_records,
	.watch = mongodb_watch,
	.wake = store_lane_wake,
};

static const char *const schemes[] = {"mongodb", "mongodb+srv", NULL};

RECORD_DRIVER(baton_driver, adapter, .name = "mongodb", .schemes = schemes);
