/*
 * adapter.c: records as objects of a bucket. s3.h describes how.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/web/xml.h"
#include "store/s3/s3.h"

#define PAGE "1000"
#define MIN_LEASE_NS CLOCK_NS_PER_S

/* ---- the store and its lanes ---- */

static int no_memory(struct baton_error *err)
{
	(void)store_fail(err, BATON_E_MEMORY, "no memory for the store");
	return BATON_E_MEMORY;
}

static void close_store(void *store)
{
	struct s3_store *s = store;

	store_turn_done(&s->turn);
	explicit_bzero(&s->keys, sizeof(s->keys));
	store_base_free(s);
}

static int open_store(const struct baton_store_config *config, struct record_options *options,
		      void **store, struct baton_error *err)
{
	struct s3_store *s = store_base_new(sizeof(*s), err);

	if (s == NULL)
		return BATON_E_MEMORY;
	s->options.record = options;
	int code = store_turn_init(&s->turn) == 0 ? BATON_OK : no_memory(err);

	if (code == BATON_OK)
		code = s3_options_parse(&s->options, config->url, err);
	if (code != BATON_OK) {
		close_store(s);
		return code;
	}
	(void)snprintf(s->prefix, sizeof(s->prefix), "%s%s", options->prefix,
		       options->prefix[0] != '\0' ? "/" : "");
	*store = s;
	return BATON_OK;
}

static void close_lane(void *lane)
{
	struct s3_lane *l = lane;

	if (l == NULL)
		return;
	struct s3_store *s = l->store;

	http_free(l->http);
	free(l->asks);
	free(l->requests);
	free(l->replies);
	explicit_bzero((char *)l + sizeof(l->lane), sizeof(*l) - sizeof(l->lane));
	store_lane_free(s, l);
}

static int open_lane(void *store, int kind, void **lane, struct baton_error *err)
{
	struct s3_store *s = store;
	const struct option_tls *files = &s->options.files;
	struct s3_lane *l = store_lane_new(s, sizeof(*l), kind == BATON_LANE_WATCH, err);

	if (l == NULL)
		return BATON_E_MEMORY;
	l->store = s;
	l->kind = kind;
	l->http = http_new(&(struct http_config){.ca = files->ca,
						 .cert = files->cert,
						 .key = files->key,
						 .server_name = files->server_name,
						 .wake = l->lane.wake > 0 ? l->lane.wake : 0});
	if (l->http == NULL) {
		close_lane(l);
		return no_memory(err);
	}
	*lane = l;
	return BATON_OK;
}

static void forget_lane(void *lane)
{
	http_forget(((struct s3_lane *)lane)->http);
}

static void forget_store(void *store)
{
	store_base_forget(store, forget_lane);
}

/* ---- get, put, drop ---- */

static void end_item(struct record_item *item, int outcome, const struct baton_call *call)
{
	item->outcome = outcome;
	item->code = call->error.code;
}

static void put_condition(char *out, size_t size, const char *name, const struct record_version *v)
{
	(void)snprintf(out, size, "%s: \"%.*s\"", name, (int)v->n, (const char *)v->bytes);
}

/* Begins a call. False: nothing can be sent, and all items are FAILED. */
static bool begin(struct s3_lane *l, struct baton_call *call, struct record_item *items, size_t n)
{
	if (s3_begin(l, call, n))
		return true;
	for (size_t i = 0; i < n; i++)
		end_item(&items[i], BATON_OUTCOME_FAILED, call);
	return false;
}

static void got_record(struct s3_lane *l, struct baton_call *call, struct record_item *item,
		       size_t i)
{
	const struct http_reply *reply = &l->replies[i];
	char etag[S3_LINE_MAX], written[64], now[64];
	int answer = s3_answer(l, call, i);

	item->outcome = BATON_OUTCOME_OK;
	item->is_unchanged = answer == S3_UNCHANGED && item->version.n > 0;
	if (answer == S3_DONE && reply->body_size <= S3_VALUE_MAX &&
	    s3_etag(http_header(reply, "ETag", etag, sizeof(etag)), &item->version)) {
		item->age_ns =
			s3_age_ns(http_header(reply, "Last-Modified", written, sizeof(written)),
				  http_header(reply, "Date", now, sizeof(now)));
		bytes_clear(&item->value);
		if (bytes_add(&item->value, reply->body, reply->body_size, S3_VALUE_MAX))
			return;
		(void)store_fail(&call->error, BATON_E_MEMORY, "no memory for a record");
	} else if (answer == S3_ABSENT) {
		item->version = (struct record_version){.n = 0};
		return;
	} else if (item->is_unchanged) {
		return;
	} else if (answer == S3_DONE) {
		(void)store_fail(
			&call->error, BATON_E_CORRUPT,
			"the object of %.80s has no ETag that can be used, or is too large",
			item->key);
	}
	end_item(item, BATON_OUTCOME_FAILED, call);
}

/* All reads are fresh: S3 is strongly consistent. */
static void get_records(void *lane, struct baton_call *call, struct record_item *items, size_t n,
			bool fresh)
{
	struct s3_lane *l = lane;
	char known[S3_LINE_MAX];

	(void)fresh;
	if (!begin(l, call, items, n))
		return;
	for (size_t i = 0; i < n; i++) {
		known[0] = '\0';
		if (items[i].version.n > 0)
			put_condition(known, sizeof(known), "if-none-match", &items[i].version);
		s3_ask(l, i, "GET", items[i].key, "", known, NULL);
	}
	s3_run(l, call, n);
	for (size_t i = 0; i < n; i++)
		got_record(l, call, &items[i], i);
}

static void was_put(struct s3_lane *l, struct baton_call *call, struct record_item *item, size_t i)
{
	char etag[S3_LINE_MAX];

	switch (s3_answer(l, call, i)) {
	case S3_DONE:
		item->outcome = BATON_OUTCOME_OK;
		if (s3_etag(http_header(&l->replies[i], "ETag", etag, sizeof(etag)),
			    &item->version))
			return;
		(void)store_fail(&call->error, BATON_E_UNSUPPORTED,
				 "the server names no ETag for what was written: use a server with "
				 "conditional writes");
		end_item(item, BATON_OUTCOME_UNKNOWN, call);
		return;
	case S3_UNCHANGED: /* older MinIO servers send 304 for 412 */
	case S3_CONFLICT:
	case S3_ABSENT: item->outcome = BATON_OUTCOME_REFUSED; return;
	case S3_UNKNOWN: end_item(item, BATON_OUTCOME_UNKNOWN, call); return;
	default: end_item(item, BATON_OUTCOME_FAILED, call); return;
	}
}

static void put_records(void *lane, struct baton_call *call, struct record_item *items, size_t n)
{
	struct s3_lane *l = lane;
	char expected[S3_LINE_MAX];

	if (!begin(l, call, items, n))
		return;
	for (size_t i = 0; i < n; i++) {
		if (items[i].version.n > 0)
			put_condition(expected, sizeof(expected), "if-match", &items[i].version);
		else
			(void)snprintf(expected, sizeof(expected), "if-none-match: *");
		s3_ask(l, i, "PUT", items[i].key, "", expected, &items[i].value);
	}
	s3_run(l, call, n);
	for (size_t i = 0; i < n; i++)
		was_put(l, call, &items[i], i);
}

/* Some servers ignore this condition or don't know it, but nothing depends on it: a swept record is
 * useless, and a scratch record is only ours. */
static void drop_records(void *lane, struct baton_call *call, struct record_item *items, size_t n)
{
	struct s3_lane *l = lane;
	char expected[S3_LINE_MAX] = "";

	if (!begin(l, call, items, n))
		return;
	for (size_t i = 0; i < n; i++) {
		if (items[i].key[0] != 't')
			put_condition(expected, sizeof(expected), "if-match", &items[i].version);
		s3_ask(l, i, "DELETE", items[i].key, "", expected, NULL);
	}
	s3_run(l, call, n);
	for (size_t i = 0; i < n; i++) {
		int answer = s3_answer(l, call, i);

		if (answer == S3_DONE)
			items[i].outcome = BATON_OUTCOME_OK;
		else if (answer == S3_CONFLICT || answer == S3_ABSENT || answer == S3_UNCHANGED)
			items[i].outcome = BATON_OUTCOME_REFUSED;
		else
			end_item(&items[i],
				 answer == S3_UNKNOWN ? BATON_OUTCOME_UNKNOWN
						      : BATON_OUTCOME_FAILED,
				 call);
	}
}

/* ---- list ---- */

/* One page of a list. */
struct listing {
	const char *now;
	size_t skip; /* bytes of the prefix, which each key begins with */
	record_found *found;
	void *arg;
	bool is_truncated;
	char next[S3_PATH_MAX / 4]; /* where the next page begins */
	/* The object that is being read: */
	char key[2 * S3_PATH_MAX], etag[S3_LINE_MAX], written[64];
};

/* Turns an object's name back into the record's key: see put_key() in call.c. False: the name isn't
 * one of ours. */
static bool read_key(char *key)
{
	char *to = key;

	for (const char *at = key; *at != '\0'; at++) {
		bool is_slash = at[0] == '=' && at[1] == '_';

		*to = *at;
		if (is_slash)
			*to = '/';
		to++;
		at += is_slash;
	}
	*to = '\0';
	return to - key <= S3_KEY_MAX && to - key > 2;
}

static void list_object(struct listing *list)
{
	struct record_item item = {.key = list->key + list->skip, .outcome = BATON_OUTCOME_OK};

	item.age_ns = s3_age_ns(list->written, list->now);
	if (strlen(list->key) > list->skip && s3_etag(list->etag, &item.version) &&
	    read_key(list->key + list->skip))
		list->found(list->arg, &item);
	list->key[0] = list->etag[0] = list->written[0] = '\0';
}

static void list_element(struct listing *list, const struct xml *x)
{
	if (xml_is(x, "Contents", "Key"))
		(void)snprintf(list->key, sizeof(list->key), "%.2000s", x->text);
	else if (xml_is(x, "Contents", "ETag"))
		(void)snprintf(list->etag, sizeof(list->etag), "%.200s", x->text);
	else if (xml_is(x, "Contents", "LastModified"))
		(void)snprintf(list->written, sizeof(list->written), "%.40s", x->text);
	else if (xml_is(x, NULL, "Contents"))
		list_object(list);
	else if (xml_is(x, "ListBucketResult", "IsTruncated"))
		list->is_truncated = strcmp(x->text, "true") == 0;
	else if (xml_is(x, "ListBucketResult", "NextContinuationToken") &&
		 !http_encode(x->text, list->next, sizeof(list->next)))
		list->next[0] = '\0';
}

static int list_page(struct s3_lane *l, struct baton_call *call, struct listing *list)
{
	const struct http_reply *reply = l->replies;
	int answer = s3_answer(l, call, 0), event = XML_BAD;
	char now[64];
	struct xml x;

	if (answer == S3_DONE) {
		list->now = http_header(reply, "Date", now, sizeof(now));
		list->next[0] = '\0';
		list->is_truncated = false;
		xml_init(&x, reply->body, reply->body_size);
		while ((event = xml_next(&x)) == XML_OPEN || event == XML_CLOSE)
			if (event == XML_CLOSE)
				list_element(list, &x);
	}
	if (event == XML_DONE && (!list->is_truncated || list->next[0] != '\0'))
		return BATON_OUTCOME_OK;
	if (answer != S3_FAILED && answer != S3_UNKNOWN)
		(void)store_fail(&call->error, BATON_E_CORRUPT,
				 "the server's list of the bucket \"%s\" can't be read",
				 l->store->options.bucket);
	return BATON_OUTCOME_FAILED;
}

static int list_records(void *lane, struct baton_call *call, const char *prefix, bool with_values,
			record_found *found, void *arg)
{
	struct s3_lane *l = lane;
	struct listing list = {.skip = strlen(l->store->prefix), .found = found, .arg = arg};
	char whole[RECORD_PREFIX_MAX + 16], encoded[3 * sizeof(whole)], query[S3_PATH_MAX / 2];
	int outcome;

	(void)with_values;
	(void)snprintf(whole, sizeof(whole), "%s%s", l->store->prefix, prefix);
	if (!http_encode(whole, encoded, sizeof(encoded)))
		return BATON_OUTCOME_FAILED;
	do {
		(void)snprintf(query, sizeof(query),
			       "%s%s%slist-type=2&max-keys=" PAGE "&prefix=%s",
			       list.next[0] != '\0' ? "continuation-token=" : "", list.next,
			       list.next[0] != '\0' ? "&" : "", encoded);
		if (!s3_begin(l, call, 1))
			return BATON_OUTCOME_FAILED;
		s3_ask(l, 0, "GET", NULL, query, "", NULL);
		s3_run(l, call, 1);
		outcome = list_page(l, call, &list);
	} while (outcome == BATON_OUTCOME_OK && list.is_truncated);
	return outcome;
}

#define PROMISES                                                                                  \
	"At most one leader at a time among all processes that use the same bucket and prefix, "  \
	"and terms that only grow. No server's clock matters. It holds where conditional writes " \
	"(If-Match, If-None-Match) and reads are consistent, as on AWS: a server that ignores "   \
	"conditions is refused, and one that loses what it acknowledged, or a lifecycle rule "    \
	"that deletes baton's objects, can let two lead until the older lease is over. baton's "  \
	"own tests run on versitygw, not on AWS."

static const struct record_adapter adapter = {
	.name = "S3",
	.page = "baton-s3(7)",
	.key_max = S3_KEY_MAX,
	.value_max = S3_VALUE_MAX,
	.batch_max = S3_BATCH_MAX,
	.get_max = 1,
	.poll_ms = 2000,
	.is_tried = true,
	.traits = RECORD_TRAITS(.min_lease_ns = MIN_LEASE_NS, .promises = PROMISES),
	.open = open_store,
	.close = close_store,
	.lane_open = open_lane,
	.lane_close = close_lane,
	.forget = forget_store,
	.wake = store_lane_wake,
	.examine = s3_examine,
	.get = get_records,
	.put = put_records,
	.drop = drop_records,
	.list = list_records,
};

static const char *const schemes[] = {"s3", NULL};

RECORD_DRIVER(baton_driver, adapter, .name = "s3", .schemes = schemes);
