/*
 * adapter.c: records in a table of SQL Server. mssql.h describes how.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/mssql/mssql.h"

#define BATCH_MAX 1000

/* ---- the store and its lanes ---- */

static int open_store(const struct baton_store_config *config, struct record_options *options,
		      void **store, struct baton_error *err)
{
	struct mssql_store *s = store_base_new(sizeof(*s), err);

	if (s == NULL)
		return BATON_E_MEMORY;
	s->options.record = options;
	int code = mssql_options_parse(&s->options, config->url, err);

	if (code == BATON_OK && mssql_library_open(&s->options, err) != 0)
		code = BATON_E_SYSTEM;
	if (code == BATON_OK && s->options.has_locks &&
	    (s->locks = mssql_locks_new(s, err)) == NULL)
		code = BATON_E_MEMORY;
	(void)snprintf(s->prefix, sizeof(s->prefix), "%s", options->prefix);
	if (code != BATON_OK)
		store_base_free(s);
	*store = code == BATON_OK ? s : NULL;
	return code;
}

static void close_store(void *store)
{
	struct mssql_store *s = store;

	mssql_locks_free(s->locks);
	explicit_bzero(s->options.login.password, sizeof(s->options.login.password));
	store_base_free(s);
}

static int open_lane(void *store, int kind, void **lane, struct baton_error *err)
{
	struct mssql_lane *l = store_lane_new(store, sizeof(*l), kind == BATON_LANE_WATCH, err);

	if (l == NULL)
		return BATON_E_MEMORY;
	l->store = store;
	*lane = l;
	return BATON_OK;
}

static void close_lane(void *lane)
{
	struct mssql_lane *l = lane;

	if (!l->store->base.forgotten) {
		mssql_line_done(&l->line);
		mssql_line_done(&l->push);
	}
	bytes_done(&l->json);
	store_lane_free(l->store, l);
}

static void forget_lane(void *lane)
{
	struct mssql_lane *l = lane;

	mssql_line_forget(&l->line);
	mssql_line_forget(&l->push);
}

static void forget_store(void *store)
{
	mssql_locks_forget(((struct mssql_store *)store)->locks);
	store_base_forget(store, forget_lane);
}

/* ---- keys and rows ---- */

struct mssql_key mssql_key(const struct mssql_lane *l, const char *key)
{
	const char *prefix = l->store->prefix;
	struct mssql_key whole;

	(void)snprintf(whole.text, sizeof(whole.text), "%s%s%s", prefix,
		       prefix[0] != '\0' ? "/" : "", key);
	return whole;
}

size_t mssql_prefix_size(const struct mssql_lane *l)
{
	size_t n = strlen(l->store->prefix);

	return n > 0 ? n + 1 : 0;
}

/* Writes the text in quotes. */
void mssql_put_text(struct bytes *json, const char *text, size_t n)
{
	size_t from = 0;

	bytes_print(json, "\"");
	for (size_t i = 0; i < n; i++) {
		if (text[i] != '"' && text[i] != '\\')
			continue;
		(void)bytes_add(json, text + from, i - from, SIZE_MAX);
		(void)bytes_add(json, "\\", 1, SIZE_MAX);
		from = i;
	}
	(void)bytes_add(json, text + from, n - from, SIZE_MAX);
	bytes_print(json, "\"");
}

static void put_member(struct bytes *json, const char *name, const char *text, size_t n)
{
	bytes_print(json, "%s\"%s\":", strcmp(name, "k") == 0 ? "" : ",", name);
	mssql_put_text(json, text, n);
}

struct batch {
	struct mssql_lane *lane;
	struct record_sorted sorted;
};

static bool batch_init(struct batch *b, struct mssql_lane *l, struct baton_call *call,
		       struct record_item *items, size_t n)
{
	b->lane = l;
	bytes_clear(&l->json);
	return record_sort(&b->sorted, call, items, n);
}

/* The item that a row is about; NULL: no item is. */
static struct record_item *batch_find(const struct batch *b, const char *const *columns,
				      const size_t *sizes)
{
	size_t skip = mssql_prefix_size(b->lane);

	return columns[0] != NULL && sizes[0] >= skip
		       ? record_sorted_find(&b->sorted, columns[0] + skip, sizes[0] - skip, NULL)
		       : NULL;
}

static int run_json(struct mssql_lane *l, struct baton_call *call, const char *sql,
		    mssql_row_found *found, void *arg)
{
	struct mssql_request request = {.sql = sql, .declared = "@j nvarchar(max)", .n_params = 1};

	if (l->json.has_failed) {
		(void)store_fail(&call->error, BATON_E_MEMORY, "no memory for a request");
		return MSSQL_UNSENT;
	}
	request.params[0] = (struct mssql_param){"@j", l->json.at, l->json.n, 0};
	return mssql_run(l, call, &request, found, arg, NULL);
}

static int outcome_of(int end)
{
	return end == MSSQL_NO_ANSWER ? BATON_OUTCOME_UNKNOWN : BATON_OUTCOME_FAILED;
}

/* ---- get ---- */

static void get_found(void *arg, const char *const *columns, const size_t *sizes)
{
	struct record_item *item = batch_find(arg, columns, sizes);

	if (item == NULL)
		return;
	item->version = record_row_version(columns[1], sizes[1]);
	item->age_ns = record_row_age_ns(columns[3]);
	record_row_take(item, columns[2], sizes[2], MSSQL_VALUE_MAX);
}

/* All reads are fresh: each statement reads what is committed when it begins. */
static void get_records(void *lane, struct baton_call *call, struct record_item *items, size_t n,
			bool fresh)
{
	struct mssql_lane *l = lane;
	struct batch b;
	int end = MSSQL_UNSENT;

	(void)fresh;
	if (batch_init(&b, l, call, items, n) && mssql_connect(l, &l->line, call, true)) {
		for (size_t i = 0; i < n; i++) {
			struct mssql_key key = mssql_key(l, b.sorted.items[i]->key);

			items[i].version = (struct record_version){0};
			items[i].outcome = BATON_OUTCOME_OK;
			items[i].age_ns = RECORD_NEVER;
			bytes_print(&l->json, i == 0 ? "[" : ",");
			mssql_put_text(&l->json, key.text, strlen(key.text));
		}
		bytes_print(&l->json, "]");
		end = run_json(l, call, mssql_sql_get, get_found, &b);
	}
	record_sorted_done(&b.sorted);
	if (end != MSSQL_DONE)
		record_items_end_all(items, n, BATON_OUTCOME_FAILED, call->error.code);
}

/* ---- put ---- */

/* Writes one record: the number of changed rows is the verdict. */
static void put_one(struct mssql_lane *l, struct baton_call *call, struct record_item *item)
{
	struct record_version written = record_version_of_value(item->value.at, item->value.n);
	struct mssql_key key = mssql_key(l, item->key);
	bool is_new = item->version.n == 0;
	struct mssql_request request = {
		.sql = is_new ? mssql_sql_insert : mssql_sql_update,
		.declared = is_new ? "@k varchar(384), @n varchar(64), @v nvarchar(max)"
				   : "@k varchar(384), @n varchar(64), @v nvarchar(max), "
				     "@w varchar(64)",
		.params = {{"@k", key.text, strlen(key.text), 0},
			   {"@n", (char *)written.bytes, written.n, 0},
			   {"@v", item->value.at, item->value.n, 0},
			   {"@w", (char *)item->version.bytes, item->version.n, 0}},
		.n_params = is_new ? 3 : 4,
	};
	uint64_t n = 0;
	int end = mssql_run(l, call, &request, NULL, NULL, &n);

	item->is_told = false;
	if (end == MSSQL_DONE && n == 1) {
		item->outcome = BATON_OUTCOME_OK;
		item->version = written;
	} else if (end == MSSQL_DONE ||
		   (is_new && end == MSSQL_REFUSED && l->error == MSSQL_E_DUPLICATE)) {
		item->outcome = BATON_OUTCOME_REFUSED;
	} else {
		record_items_end_all(item, 1, outcome_of(end), call->error.code);
	}
}

static void changed_found(void *arg, const char *const *columns, const size_t *sizes)
{
	struct record_item *item = batch_find(arg, columns, sizes);

	if (item != NULL)
		item->outcome = BATON_OUTCOME_OK;
}

/* Writes either the batch's new records, or those that exist already. */
static void change_many(struct batch *b, struct baton_call *call, const char *sql, bool is_new)
{
	struct mssql_lane *l = b->lane;
	size_t n = 0;

	bytes_clear(&l->json);
	for (size_t i = 0; i < b->sorted.n; i++) {
		struct record_item *item = b->sorted.items[i];
		struct record_version written =
			record_version_of_value(item->value.at, item->value.n);
		struct mssql_key key = mssql_key(l, item->key);

		if ((item->version.n == 0) != is_new)
			continue;
		item->outcome = BATON_OUTCOME_REFUSED;
		item->is_told = false;
		bytes_print(&l->json, n++ == 0 ? "[{" : ",{");
		put_member(&l->json, "k", key.text, strlen(key.text));
		put_member(&l->json, "w", (char *)item->version.bytes, item->version.n);
		put_member(&l->json, "n", (char *)written.bytes, written.n);
		put_member(&l->json, "v", item->value.at, item->value.n);
		bytes_print(&l->json, "}");
	}
	bytes_print(&l->json, "]");
	if (n == 0)
		return;
	int end = run_json(l, call, sql, changed_found, b);

	/* A duplicate key means that one record existed already, and that nothing was inserted. All
	 * stay REFUSED, so the layer reads them again. */
	if (end == MSSQL_DONE || (is_new && end == MSSQL_REFUSED && l->error == MSSQL_E_DUPLICATE))
		return;
	for (size_t i = 0; i < b->sorted.n; i++) {
		if ((b->sorted.items[i]->version.n == 0) == is_new) {
			b->sorted.items[i]->outcome = outcome_of(end);
			b->sorted.items[i]->code = call->error.code;
		}
	}
}

/* New records and existing ones go into two requests. Each request is one statement, which is
 * carried out as a whole or not at all. */
static void put_many(struct batch *b, struct baton_call *call)
{
	change_many(b, call, mssql_sql_update_many, false);
	if (b->lane->line.worker == NULL && !mssql_connect(b->lane, &b->lane->line, call, true)) {
		for (size_t i = 0; i < b->sorted.n; i++) {
			if (b->sorted.items[i]->version.n == 0) {
				b->sorted.items[i]->outcome = BATON_OUTCOME_FAILED;
				b->sorted.items[i]->code = call->error.code;
			}
		}
	} else {
		change_many(b, call, mssql_sql_insert_many, true);
	}
	for (size_t i = 0; i < b->sorted.n; i++)
		if (b->sorted.items[i]->outcome == BATON_OUTCOME_OK)
			b->sorted.items[i]->version = record_version_of_value(
				b->sorted.items[i]->value.at, b->sorted.items[i]->value.n);
}

static void put_records(void *lane, struct baton_call *call, struct record_item *items, size_t n)
{
	struct mssql_lane *l = lane;
	struct batch b = {0};

	if (!mssql_connect(l, &l->line, call, true) || !batch_init(&b, l, call, items, n)) {
		record_items_end_all(items, n, BATON_OUTCOME_FAILED, call->error.code);
		return;
	}
	if (n == 1)
		put_one(l, call, items);
	else
		put_many(&b, call);
	record_sorted_done(&b.sorted);
}

/* ---- drop, list ---- */

static void drop_records(void *lane, struct baton_call *call, struct record_item *items, size_t n)
{
	struct mssql_lane *l = lane;
	struct batch b = {0};
	int end = MSSQL_UNSENT;

	if (mssql_connect(l, &l->line, call, true) && batch_init(&b, l, call, items, n)) {
		for (size_t i = 0; i < n; i++) {
			struct record_item *item = b.sorted.items[i];
			struct mssql_key key = mssql_key(l, item->key);

			item->outcome = BATON_OUTCOME_REFUSED;
			bytes_print(&l->json, i == 0 ? "[{" : ",{");
			put_member(&l->json, "k", key.text, strlen(key.text));
			put_member(&l->json, "w", (char *)item->version.bytes, item->version.n);
			bytes_print(&l->json, "}");
		}
		bytes_print(&l->json, "]");
		end = run_json(l, call, mssql_sql_drop, changed_found, &b);
	}
	record_sorted_done(&b.sorted);
	if (end != MSSQL_DONE)
		record_items_end_all(items, n, outcome_of(end), call->error.code);
}

struct listing {
	struct mssql_lane *lane;
	record_found *found;
	void *arg;
};

static void list_found(void *arg, const char *const *columns, const size_t *sizes)
{
	struct listing *list = arg;
	size_t skip = mssql_prefix_size(list->lane);
	char key[MSSQL_KEY_MAX + 1];
	struct record_item item = {.key = key, .outcome = BATON_OUTCOME_OK};

	if (columns[0] == NULL || sizes[0] < skip || sizes[0] - skip > MSSQL_KEY_MAX)
		return;
	(void)snprintf(key, sizeof(key), "%.*s", (int)(sizes[0] - skip), columns[0] + skip);
	item.version = record_row_version(columns[1], sizes[1]);
	item.age_ns = record_row_age_ns(columns[3]);
	if (columns[2] != NULL && /* the answer's own memory, for the item is used only here */
	    !bytes_add(&item.value, columns[2], sizes[2], MSSQL_VALUE_MAX))
		item.outcome = BATON_OUTCOME_FAILED;
	list->found(list->arg, &item);
	bytes_done(&item.value);
}

static int list_records(void *lane, struct baton_call *call, const char *prefix, bool with_values,
			record_found *found, void *arg)
{
	struct mssql_lane *l = lane;
	struct listing list = {l, found, arg};
	struct mssql_key from = mssql_key(l, prefix), to = from;
	struct mssql_request request = {
		.sql = mssql_sql_list,
		.declared = "@a varchar(384), @b varchar(384), @v int",
		.params = {{"@a", from.text, strlen(from.text), 0},
			   {"@b", to.text, strlen(to.text), 0},
			   {"@v", NULL, 0, with_values}},
		.n_params = 3,
	};

	to.text[strlen(to.text) - 1]++; /* "e/" becomes "e0": the end of the range */
	return mssql_connect(l, &l->line, call, true) &&
			       mssql_run(l, call, &request, list_found, &list, NULL) == MSSQL_DONE
		       ? BATON_OUTCOME_OK
		       : BATON_OUTCOME_FAILED;
}

#define PROMISES                                                                          \
	"At most one leader at a time among all processes that use the same database, "   \
	"and terms that only grow. The server's clock does not matter. A failover to a "  \
	"replica that lacks the last commits can let two lead until the older lease is "  \
	"over, and terms still grow for candidates that have seen them: use synchronous " \
	"commit. baton's own tests run on a protocol server of the project, not on "      \
	"Microsoft's server: `make conformance STORE=mssql://...` runs the suite on "     \
	"yours. With mode=applock other programs get the lock when the "                  \
	"leader's process dies, and don't wait for a deadline that it told others (outlive)."

static const struct record_adapter adapter = {
	.name = "SQL Server",
	.page = "baton-mssql(7)",
	.key_max = MSSQL_KEY_MAX,
	.value_max = MSSQL_VALUE_MAX,
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
	.examine = mssql_examine,
	.get = get_records,
	.put = put_records,
	.drop = drop_records,
	.list = list_records,
	.watch = mssql_watch,
	.wake = store_lane_wake,
	.lock_take = mssql_lock_take,
	.lock_keep = mssql_lock_keep,
	.lock_drop = mssql_lock_drop,
};

static const char *const schemes[] = {"mssql", NULL};

RECORD_DRIVER(baton_driver, adapter, .name = "mssql", .schemes = schemes,
	      .schema = mssql_schema_script, .fence = mssql_fence_script);
