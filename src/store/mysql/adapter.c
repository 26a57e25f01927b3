/*
 * adapter.c: records in a table of MySQL or MariaDB. mysql.h describes how.
 */
#include <mysqld_error.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/mysql/mysql.h"

#define KEY_MAX 240
#define VALUE_MAX ((uint32_t)1 << 20)
#define BATCH_MAX 1000

/* ---- the store and its lanes ---- */

static int open_store(const struct baton_store_config *config, struct record_options *options,
		      void **store, struct baton_error *err)
{
	struct mysql_store *s = store_base_new(sizeof(*s), err);

	if (s == NULL)
		return BATON_E_MEMORY;
	s->options.record = options;
	int code = mysql_options_parse(&s->options, config->url, err);

	if (code == BATON_OK && mysql_library_init(0, NULL, NULL) != 0) {
		(void)store_fail(err, BATON_E_SYSTEM, "the client library can't be set up");
		code = BATON_E_SYSTEM;
	}
	if (code == BATON_OK && s->options.has_locks &&
	    (s->locks = mysql_locks_new(s, err)) == NULL)
		code = BATON_E_MEMORY;
	if (code != BATON_OK) {
		store_base_free(s);
		return code;
	}
	(void)snprintf(s->prefix, sizeof(s->prefix), "%s", options->prefix);
	*store = s;
	return BATON_OK;
}

static void close_store(void *store)
{
	struct mysql_store *s = store;

	mysql_locks_free(s->locks);
	explicit_bzero(s->options.login.password, sizeof(s->options.login.password));
	store_base_free(s);
}

struct mysql_lane *mysql_lane_new(struct mysql_store *store, struct baton_error *err)
{
	struct mysql_lane *l = store_lane_new(store, sizeof(*l), false, err);

	if (l != NULL)
		l->store = store;
	return l;
}

void mysql_lane_free(struct mysql_lane *l)
{
	if (l == NULL)
		return;
	mysql_alarms_free(l);
	if (!l->store->base.forgotten) {
		mysql_disconnect(l);
		lookup_cancel(&l->lookup);
	}
	bytes_done(&l->sql);
	store_lane_free(l->store, l);
}

static int open_lane(void *store, int kind, void **lane, struct baton_error *err)
{
	(void)kind;
	*lane = mysql_lane_new(store, err);
	return *lane != NULL ? BATON_OK : BATON_E_MEMORY;
}

static void close_lane(void *lane)
{
	mysql_lane_free(lane);
}

static void forget_lane(void *lane)
{
	struct mysql_lane *l = lane;

	if (l->session != NULL)
		(void)close(mysql_get_socket(l->session));
	l->session = NULL;
}

static void forget_store(void *store)
{
	store_base_forget(store, forget_lane);
}

/* ---- keys and rows ---- */

static void put_key(struct mysql_lane *l, const char *key)
{
	const char *prefix = l->store->prefix;
	char whole[RECORD_PREFIX_MAX + 1 + KEY_MAX + 1];
	int n = snprintf(whole, sizeof(whole), "%s%s%s", prefix, prefix[0] != '\0' ? "/" : "", key);

	mysql_literal(&l->sql, whole, (size_t)n);
}

static void put_keys(struct mysql_lane *l, const struct record_item *items, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		bytes_print(&l->sql, "%s", i == 0 ? "(" : ",");
		put_key(l, items[i].key);
	}
	bytes_print(&l->sql, ")");
}

/* How many bytes of a row's key come before the record's key. */
static size_t prefix_size(const struct mysql_lane *l)
{
	size_t n = strlen(l->store->prefix);

	return n > 0 ? n + 1 : 0;
}

struct batch {
	struct mysql_lane *lane;
	struct record_sorted sorted;
	struct record_version *written; /* put: the new versions of `sorted`; get: NULL */
};

/* The item that a row is about, and its number; NULL: no item is. */
static struct record_item *batch_find(const struct batch *b, MYSQL_ROW row,
				      const unsigned long *sizes, size_t *at)
{
	size_t skip = prefix_size(b->lane);

	return row[0] != NULL && sizes[0] >= skip
		       ? record_sorted_find(&b->sorted, row[0] + skip, sizes[0] - skip, at)
		       : NULL;
}

static int outcome_of(int end)
{
	return end == MYSQL_NO_ANSWER || end == MYSQL_UNSURE ? BATON_OUTCOME_UNKNOWN
							     : BATON_OUTCOME_FAILED;
}

/* ---- get ---- */

static void get_found(void *arg, MYSQL_ROW row, const unsigned long *sizes)
{
	size_t at;
	struct record_item *item = batch_find(arg, row, sizes, &at);

	if (item == NULL)
		return;
	item->version = record_row_version(row[1], sizes[1]);
	item->age_ns = record_row_age_ns(row[3]);
	item->is_marked = row[4] != NULL && row[4][0] == '1';
	record_row_take(item, row[2], sizes[2], VALUE_MAX);
}

/* Whether an election is marked for functions: functions.sql keeps the marks below m/. */
static void put_mark(struct mysql_lane *l)
{
	int n = (int)prefix_size(l);

	bytes_print(&l->sql,
		    ", SUBSTRING(r.k, %d, 2) = 'e/' AND EXISTS (SELECT 1 FROM "
		    "baton_record m WHERE m.k = CONCAT(SUBSTRING(r.k, 1, %d), 'm', "
		    "SUBSTRING(r.k, %d)))",
		    n + 1, n, n + 2);
}

/* All reads are fresh: each statement reads what is committed when it begins. */
static void get_records(void *lane, struct baton_call *call, struct record_item *items, size_t n,
			bool fresh)
{
	struct mysql_lane *l = lane;
	struct batch b = {.lane = l};

	(void)fresh;
	if (!record_sort(&b.sorted, call, items, n)) {
		record_items_end_all(items, n, BATON_OUTCOME_FAILED, call->error.code);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		items[i].version = (struct record_version){0};
		items[i].outcome = BATON_OUTCOME_OK;
		items[i].age_ns = RECORD_NEVER;
		items[i].is_marked = false;
	}
	int end = MYSQL_UNSENT;

	if (mysql_connect(l, call, true)) {
		bytes_clear(&l->sql);
		bytes_print(&l->sql, "SELECT k, w, v, TIMESTAMPDIFF(MICROSECOND, at, NOW(6))");
		put_mark(l);
		bytes_print(&l->sql, " FROM baton_record r WHERE k IN ");
		put_keys(l, items, n);
		end = mysql_run(l, call, get_found, &b, NULL);
	}
	record_sorted_done(&b.sorted);
	if (end != MYSQL_DONE)
		record_items_end_all(items, n, BATON_OUTCOME_FAILED, call->error.code);
}

/* ---- put ---- */

static void put_version(struct mysql_lane *l, const struct record_version *v)
{
	mysql_literal(&l->sql, v->bytes, v->n);
}

static void put_value(struct mysql_lane *l, const struct record_item *item)
{
	mysql_literal(&l->sql, item->value.at, item->value.n);
}

/* Writes one record that exists. The number of changed rows is the verdict, so no transaction is
 * needed. */
static void put_one(struct mysql_lane *l, struct baton_call *call, struct record_item *item,
		    const struct record_version *version)
{
	uint64_t n = 0;

	bytes_clear(&l->sql);
	bytes_print(&l->sql, "UPDATE baton_record SET w = ");
	put_version(l, version);
	bytes_print(&l->sql, ", v = ");
	put_value(l, item);
	bytes_print(&l->sql, " WHERE k = ");
	put_key(l, item->key);
	bytes_print(&l->sql, " AND w = ");
	put_version(l, &item->version);
	int end = mysql_run(l, call, NULL, NULL, &n);

	if (end != MYSQL_DONE) {
		record_items_end_all(item, 1, outcome_of(end), call->error.code);
		return;
	}
	item->outcome = n == 1 ? BATON_OUTCOME_OK : BATON_OUTCOME_REFUSED;
	item->is_told = false;
	if (n == 1)
		item->version = *version;
}

static void write_inserts(struct mysql_lane *l, const struct batch *b)
{
	size_t n = 0;

	for (size_t i = 0; i < b->sorted.n; i++) {
		if (b->sorted.items[i]->version.n > 0)
			continue;
		bytes_print(&l->sql,
			    n++ == 0 ? "INSERT INTO baton_record (k, w, v) VALUES (" : ",(");
		put_key(l, b->sorted.items[i]->key);
		bytes_print(&l->sql, ",");
		put_version(l, &b->written[i]);
		bytes_print(&l->sql, ",");
		put_value(l, b->sorted.items[i]);
		bytes_print(&l->sql, ")");
	}
	if (n > 0) /* a row that exists stays as it is */
		bytes_print(&l->sql, " ON DUPLICATE KEY UPDATE k = k;");
}

static void write_updates(struct mysql_lane *l, const struct batch *b)
{
	size_t n = 0;

	for (size_t i = 0; i < b->sorted.n; i++) {
		if (b->sorted.items[i]->version.n == 0)
			continue;
		bytes_print(&l->sql, n++ == 0 ? "UPDATE baton_record r JOIN (SELECT "
					      : " UNION ALL SELECT ");
		put_key(l, b->sorted.items[i]->key);
		bytes_print(&l->sql, " AS k, ");
		put_version(l, &b->sorted.items[i]->version);
		bytes_print(&l->sql, " AS w, ");
		put_version(l, &b->written[i]);
		bytes_print(&l->sql, " AS w2, ");
		put_value(l, b->sorted.items[i]);
		bytes_print(&l->sql, " AS v");
	}
	if (n > 0)
		bytes_print(&l->sql, ") n ON r.k = n.k AND r.w = n.w SET r.w = n.w2, r.v = n.v;");
}

/* Within the transaction a row has either what we have just written, or what was in the way. */
static void put_found(void *arg, MYSQL_ROW row, const unsigned long *sizes)
{
	struct batch *b = arg;
	struct record_version found;
	size_t at;
	struct record_item *item = batch_find(b, row, sizes, &at);

	if (item == NULL || row[2] == NULL)
		return;
	found = record_row_version(row[1], sizes[1]);
	if (record_same_version(&found, &b->written[at])) {
		item->outcome = BATON_OUTCOME_OK;
	} else {
		item->is_told = true;
		bytes_clear(&item->value);
		(void)bytes_add(&item->value, row[2], sizes[2], VALUE_MAX);
	}
	item->version = found;
}

static int put_many(struct mysql_lane *l, struct baton_call *call, struct batch *b,
		    struct record_item *items)
{
	bytes_clear(&l->sql);
	/* Locks rows in the order of their keys, so that two batches don't wait for each other. */
	bytes_print(&l->sql, "START TRANSACTION;SELECT k, w, NULL FROM baton_record WHERE k IN ");
	put_keys(l, items, b->sorted.n);
	bytes_print(&l->sql, " ORDER BY k FOR UPDATE;");
	write_inserts(l, b);
	write_updates(l, b);
	bytes_print(&l->sql, "SELECT k, w, v FROM baton_record WHERE k IN ");
	put_keys(l, items, b->sorted.n);
	bytes_print(&l->sql, ";COMMIT");
	for (size_t i = 0; i < b->sorted.n; i++) {
		items[i].outcome = BATON_OUTCOME_REFUSED;
		items[i].is_told = false;
	}
	int end = mysql_run(l, call, put_found, b, NULL);

	if (end == MYSQL_UNSURE || (end == MYSQL_REFUSED && mysql_code(l) != ER_LOCK_DEADLOCK))
		mysql_disconnect(l); /* ends the transaction without COMMIT */
	return end;
}

static void put_records(void *lane, struct baton_call *call, struct record_item *items, size_t n)
{
	struct mysql_lane *l = lane;
	struct batch b = {.lane = l};

	if (!mysql_connect(l, call, true)) {
		record_items_end_all(items, n, BATON_OUTCOME_FAILED, call->error.code);
		return;
	}
	if (!record_sort(&b.sorted, call, items, n) ||
	    (b.written = calloc(n, sizeof(*b.written))) == NULL) {
		record_sorted_done(&b.sorted);
		(void)store_fail(&call->error, BATON_E_MEMORY, "no memory for a request");
		record_items_end_all(items, n, BATON_OUTCOME_FAILED, call->error.code);
		return;
	}
	for (size_t i = 0; i < n; i++)
		b.written[i] = record_version_of_value(b.sorted.items[i]->value.at,
						       b.sorted.items[i]->value.n);
	if (n == 1 && items[0].version.n > 0) {
		put_one(l, call, items, b.written);
	} else {
		int end = put_many(l, call, &b, items);

		if (end != MYSQL_DONE)
			record_items_end_all(items, n, outcome_of(end), call->error.code);
	}
	free(b.written);
	record_sorted_done(&b.sorted);
}

/* ---- drop, list ---- */

/* Sweeping is rare, so each record is a statement of its own. */
static void drop_records(void *lane, struct baton_call *call, struct record_item *items, size_t n)
{
	struct mysql_lane *l = lane;
	int end = mysql_connect(l, call, true) ? MYSQL_DONE : MYSQL_UNSENT;

	for (size_t i = 0; i < n; i++)
		items[i].outcome = 0;
	for (size_t i = 0; i < n && end == MYSQL_DONE; i++) {
		uint64_t changed = 0;

		bytes_clear(&l->sql);
		bytes_print(&l->sql, "DELETE FROM baton_record WHERE k = ");
		put_key(l, items[i].key);
		bytes_print(&l->sql, " AND w = ");
		put_version(l, &items[i].version);
		end = mysql_run(l, call, NULL, NULL, &changed);
		if (end == MYSQL_DONE)
			items[i].outcome = changed == 1 ? BATON_OUTCOME_OK : BATON_OUTCOME_REFUSED;
		else
			items[i].outcome = outcome_of(end), items[i].code = call->error.code;
	}
	if (end != MYSQL_DONE)
		record_items_end(items, n, BATON_OUTCOME_FAILED, call->error.code);
}

struct listing {
	struct mysql_lane *lane;
	record_found *found;
	void *arg;
};

static void list_found(void *arg, MYSQL_ROW row, const unsigned long *sizes)
{
	struct listing *list = arg;
	size_t skip = prefix_size(list->lane);
	char key[KEY_MAX + 1];
	struct record_item item = {.key = key, .outcome = BATON_OUTCOME_OK};

	if (row[0] == NULL || sizes[0] < skip || sizes[0] - skip > KEY_MAX)
		return;
	(void)snprintf(key, sizeof(key), "%.*s", (int)(sizes[0] - skip), row[0] + skip);
	item.version = record_row_version(row[1], sizes[1]);
	item.age_ns = record_row_age_ns(row[3]);
	if (row[2] != NULL) /* the row's own memory, for the item is used only here */
		item.value = (struct bytes){.at = row[2], .n = sizes[2]};
	list->found(list->arg, &item);
}

static int list_records(void *lane, struct baton_call *call, const char *prefix, bool with_values,
			record_found *found, void *arg)
{
	struct mysql_lane *l = lane;
	struct listing list = {.lane = l, .found = found, .arg = arg};
	char end[KEY_MAX + 1];

	if (!mysql_connect(l, call, true))
		return BATON_OUTCOME_FAILED;
	(void)snprintf(end, sizeof(end), "%s", prefix);
	end[strlen(end) - 1]++; /* '/' becomes the next character: the end of the range */
	bytes_clear(&l->sql);
	bytes_print(&l->sql,
		    "SELECT k, w, %s, TIMESTAMPDIFF(MICROSECOND, at, NOW(6)) FROM baton_record "
		    "WHERE k >= ",
		    with_values ? "v" : "NULL");
	put_key(l, prefix);
	bytes_print(&l->sql, " AND k < ");
	put_key(l, end);
	return mysql_run(l, call, list_found, &list, NULL) == MYSQL_DONE ? BATON_OUTCOME_OK
									 : BATON_OUTCOME_FAILED;
}

#define PROMISES                                                                                \
	"At most one leader at a time among all processes that use the same database of one "   \
	"server, and terms that only grow. The server's clock does not matter. A failover "     \
	"to a replica that lacks the last writes can let two lead until the older lease is "    \
	"over, and terms still grow for candidates that have seen them: use semi-synchronous "  \
	"replication. Programs that call SQL functions (baton schema mysql --functions) go by " \
	"the server's clock: leases that functions made, and all leases in elections that "     \
	"are marked for functions, end by it, so that a jump can let two lead there. With "     \
	"mode=lock other programs get the lock when the leader's process dies, and don't wait " \
	"for a deadline that it told others (outlive)."

static const struct record_adapter adapter = {
	.name = "MySQL",
	.page = "baton-mysql(7)",
	.key_max = KEY_MAX,
	.value_max = VALUE_MAX,
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
	.examine = mysql_examine,
	.get = get_records,
	.put = put_records,
	.drop = drop_records,
	.list = list_records,
	.listen = mysql_listen,
	.lock_take = mysql_lock_take,
	.lock_keep = mysql_lock_keep,
	.lock_drop = mysql_lock_drop,
};

static const char *const schemes[] = {"mysql", "mariadb", NULL};

RECORD_DRIVER(baton_driver, adapter, .name = "mysql", .schemes = schemes,
	      .schema = mysql_schema_script, .fence = mysql_fence_script,
	      .functions = mysql_functions_script);
