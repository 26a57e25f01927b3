/*
 * adapter.c: records as block blobs. azblob.h describes how.
 */
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/web/xml.h"
#include "store/azblob/azblob.h"

#define VALUE_MAX ((uint32_t)1 << 20)
/* Each item is a request of its own, and takes some kilobytes while the request is under way. */
#define BATCH_MAX 128
#define PAGE_MAX "5000"
/* A page of a list is a megabyte or several. */
#define BODY_MAX ((size_t)32 << 20)
/* How long a call of the watch lane goes on although the lane was woken. */
#define PATIENCE_NS (CLOCK_NS_PER_S / 2)

#define PROMISES                                                                         \
	"At most one leader at a time among all processes that use the same container, " \
	"and terms that only grow. The service's clock does not matter. A failover of "  \
	"the account to another region loses the last writes: two may lead until the "   \
	"older lease is over, and terms still grow for candidates that have seen them. " \
	"baton's own tests run on Azurite, not on Azure."

/* ---- the store and its lanes ---- */

static void set_traits(struct azblob_store *s)
{
	s->traits = (struct baton_traits)RECORD_TRAITS(.min_lease_ns = CLOCK_NS_PER_S,
						       .promises = PROMISES);
	if (!s->has_locks)
		return;
	s->traits.min_lease_ns = AZBLOB_LEASE_MIN_S * CLOCK_NS_PER_S;
	s->traits.max_lease_ns = AZBLOB_LEASE_MAX_S * CLOCK_NS_PER_S;
}

static int open_store(const struct baton_store_config *config, struct record_options *options,
		      void **store, struct baton_error *err)
{
	struct azblob_store *s = store_base_new(sizeof(*s), err);
	int code = BATON_E_MEMORY;

	if (s == NULL)
		return code;
	if (store_turn_init(&s->turn) == 0) {
		s->options.record = options;
		code = azblob_options_parse(&s->options, config->url, err);
		if (code == BATON_OK) {
			(void)snprintf(s->prefix, sizeof(s->prefix), "%s", options->prefix);
			s->has_locks = options->locks != RECORD_LOCKS_NONE;
			set_traits(s);
			*store = s;
			return BATON_OK;
		}
		store_turn_done(&s->turn);
	}
	store_base_free(s);
	return code;
}

static void close_store(void *store)
{
	struct azblob_store *s = store;

	if (s->token != NULL)
		explicit_bzero(s->token, strlen(s->token));
	free(s->token);
	azblob_locks_done(s);
	store_turn_done(&s->turn);
	store_base_free(s);
}

static const struct baton_traits *traits_of(const void *store)
{
	return &((const struct azblob_store *)store)->traits;
}

static int open_lane(void *store, int kind, void **lane, struct baton_error *err)
{
	struct azblob_store *s = store;
	struct azblob_lane *l = store_lane_new(s, sizeof(*l), kind == BATON_LANE_WATCH, err);

	if (l == NULL)
		return BATON_E_MEMORY;
	l->store = s;
	l->kind = kind;
	struct http_config config = {.ca = s->options.ca,
				     .body_max = BODY_MAX,
				     .wake = l->lane.wake > 0 ? l->lane.wake : 0};

	l->http = http_new(&config);
	if (l->http == NULL) {
		store_lane_free(s, l);
		(void)store_fail(err, BATON_E_MEMORY, "no memory for a lane of the store");
		return BATON_E_MEMORY;
	}
	*lane = l;
	return BATON_OK;
}

static void close_lane(void *lane)
{
	struct azblob_lane *l = lane;

	http_free(l->http);
	explicit_bzero(l->secret, sizeof(l->secret));
	store_lane_free(l->store, l);
}

static void forget_lane(void *lane)
{
	http_forget(((struct azblob_lane *)lane)->http);
}

static void forget_store(void *store)
{
	store_base_forget(store, forget_lane);
}

/* A wake may end a call of the watch lane. lane_end() then takes the wake. */
static void lane_begin(struct azblob_lane *l)
{
	if (l->lane.wake >= 0)
		http_heed_wake(l->http, clock_boot_ns() + PATIENCE_NS);
}

static void lane_end(const struct azblob_lane *l)
{
	uint64_t count;

	if (l->lane.wake >= 0 && read(l->lane.wake, &count, sizeof(count)) < 0)
		return; /* the lane was not woken */
}

/* ---- batches ---- */

struct batch {
	struct azblob_ask *asks;
	struct http_reply *replies;
};

static void batch_done(struct batch *b)
{
	free(b->asks);
	free(b->replies);
}

/* Gets memory, a login and a container. False: all items have ended, and the caller is done. */
static bool batch_begin(struct batch *b, struct azblob_lane *l, struct baton_call *call,
			struct record_item *items, size_t n)
{
	for (size_t i = 0; i < n; i++)
		items[i].outcome = 0;
	b->asks = calloc(n, sizeof(*b->asks));
	b->replies = calloc(n, sizeof(*b->replies));
	lane_begin(l);
	if (b->asks == NULL || b->replies == NULL)
		(void)store_fail(&call->error, BATON_E_MEMORY, "no memory for a request");
	else if (azblob_log_in(l, call) == 0 && azblob_see_to_container(l, call) == 0)
		return true;
	batch_done(b);
	lane_end(l);
	record_items_end(items, n, BATON_OUTCOME_FAILED, call->error.code);
	return false;
}

static void batch_send(struct batch *b, struct azblob_lane *l, struct baton_call *call, size_t n)
{
	azblob_send(l, call, b->asks, n, b->replies);
	lane_end(l);
}

/* The version for an ETag: without its quotes, as lists show it. n = 0: the ETag can't be used. */
static struct record_version version_of(const char *etag)
{
	size_t n;

	if (strncmp(etag, "W/", 2) == 0)
		etag += 2;
	etag += etag[0] == '"';
	n = strcspn(etag, "\"");
	return n > 0 && n <= RECORD_VERSION_MAX ? record_version_of(etag, n)
						: (struct record_version){.n = 0};
}

static struct record_version version_in(const struct http_reply *reply)
{
	char etag[128];

	return version_of(http_header(reply, "ETag", etag, sizeof(etag)));
}

static void ask_if(struct azblob_ask *ask, const char *header, const struct record_version *v)
{
	azblob_ask_header(ask, "%s: \"%.*s\"", header, (int)v->n, (const char *)v->bytes);
}

/* The time since the record was written, by the server's clock. */
static uint64_t age_of(const char *written, const char *now)
{
	time_t from = curl_getdate(written, NULL), to = curl_getdate(now, NULL);

	return from < 0 || to < from ? RECORD_NEVER : (uint64_t)(to - from) * CLOCK_NS_PER_S;
}

/* ---- get ---- */

static void get_judge(struct azblob_lane *l, struct baton_call *call, struct record_item *item,
		      const struct http_reply *reply)
{
	char written[64], now[64];
	bool is_gone = azblob_says(reply, "ContainerNotFound");

	item->age_ns = RECORD_NEVER;
	if (reply->result == HTTP_OK && reply->status == 304) {
		item->is_unchanged = true;
		item->outcome = BATON_OUTCOME_OK;
		return;
	}
	item->version = (struct record_version){.n = 0};
	item->outcome = BATON_OUTCOME_OK;
	if (is_gone)
		azblob_container_is_gone(l->store);
	if (is_gone || azblob_says(reply, "BlobNotFound"))
		return;
	bool is_there = reply->result == HTTP_OK && reply->status == 200;

	item->version = is_there ? version_in(reply) : item->version;
	bytes_clear(&item->value);
	if (item->version.n > 0 &&
	    bytes_add(&item->value, reply->body, reply->body_size, VALUE_MAX)) {
		item->age_ns = age_of(http_header(reply, "Last-Modified", written, sizeof(written)),
				      http_header(reply, "Date", now, sizeof(now)));
		return;
	}
	if (is_there)
		(void)store_fail(&call->error, BATON_E_CORRUPT,
				 "a blob has no ETag, or is not a record of baton's");
	else
		(void)azblob_fail(l, call, reply);
	item->outcome = BATON_OUTCOME_FAILED;
	item->code = call->error.code;
}

/* All reads are fresh: the service is strongly consistent. */
static void get_records(void *lane, struct baton_call *call, struct record_item *items, size_t n,
			bool fresh)
{
	struct azblob_lane *l = lane;
	struct batch b;

	(void)fresh;
	if (n == 0 || !batch_begin(&b, l, call, items, n))
		return;
	for (size_t i = 0; i < n; i++) {
		azblob_ask(l, &b.asks[i], "GET", items[i].key);
		if (items[i].version.n > 0)
			ask_if(&b.asks[i], "If-None-Match", &items[i].version);
	}
	batch_send(&b, l, call, n);
	for (size_t i = 0; i < n; i++)
		get_judge(l, call, &items[i], &b.replies[i]);
	batch_done(&b);
}

/* ---- put, drop ---- */

/* Another version is there, or there is no record where one was expected. */
static bool is_conflict(const struct http_reply *reply)
{
	return azblob_says(reply, "ConditionNotMet") || azblob_says(reply, "BlobAlreadyExists") ||
	       azblob_says(reply, "BlobNotFound") || azblob_says(reply, "TargetConditionNotMet");
}

static void write_judge(struct azblob_lane *l, struct baton_call *call, struct record_item *item,
			const struct http_reply *reply, int done)
{
	bool is_gone = azblob_says(reply, "ContainerNotFound");
	struct record_version version = version_in(reply);

	item->is_told = false;
	if (reply->result == HTTP_OK && reply->status == done && (done != 201 || version.n > 0)) {
		item->outcome = BATON_OUTCOME_OK;
		if (done == 201)
			item->version = version;
		return;
	}
	if (is_gone)
		azblob_container_is_gone(l->store);
	if (is_conflict(reply) || (is_gone && item->version.n > 0)) {
		item->outcome = BATON_OUTCOME_REFUSED;
		return;
	}
	item->outcome = azblob_fail(l, call, reply);
	item->code = call->error.code;
}

static void put_records(void *lane, struct baton_call *call, struct record_item *items, size_t n)
{
	struct azblob_lane *l = lane;
	struct batch b;

	if (n == 0 || !batch_begin(&b, l, call, items, n))
		return;
	for (size_t i = 0; i < n; i++) {
		azblob_ask(l, &b.asks[i], "PUT", items[i].key);
		b.asks[i].body = items[i].value.at;
		b.asks[i].body_size = items[i].value.n;
		azblob_ask_header(&b.asks[i], "x-ms-blob-type: BlockBlob");
		if (items[i].version.n > 0)
			ask_if(&b.asks[i], "If-Match", &items[i].version);
		else
			azblob_ask_header(&b.asks[i], "If-None-Match: *");
	}
	batch_send(&b, l, call, n);
	for (size_t i = 0; i < n; i++)
		write_judge(l, call, &items[i], &b.replies[i], 201);
	batch_done(&b);
}

static void drop_records(void *lane, struct baton_call *call, struct record_item *items, size_t n)
{
	struct azblob_lane *l = lane;
	struct batch b;

	if (n == 0 || !batch_begin(&b, l, call, items, n))
		return;
	for (size_t i = 0; i < n; i++) {
		azblob_ask(l, &b.asks[i], "DELETE", items[i].key);
		azblob_ask_header(&b.asks[i], "x-ms-delete-snapshots: include");
		ask_if(&b.asks[i], "If-Match", &items[i].version);
	}
	batch_send(&b, l, call, n);
	for (size_t i = 0; i < n; i++)
		write_judge(l, call, &items[i], &b.replies[i], 202);
	batch_done(&b);
}

/* ---- list ---- */

struct listing {
	const char *prefix; /* of all keys, with its '/' */
	const char *now;
	record_found *found;
	void *arg;
	char marker[XML_TEXT_MAX];
	/* Of the blob that is being read: */
	char key[4 * AZBLOB_KEY_MAX];
	struct record_version version;
	uint64_t age_ns;
	bool is_directory;
};

/* Turns a blob's name into a key: see path_add_key(). False: the blob is not one of ours. */
static bool list_key(const struct listing *list, const char *name, char *out, size_t size)
{
	size_t skip = strlen(list->prefix), used = 0;

	if (strncmp(name, list->prefix, skip) != 0)
		return false;
	for (name += skip; *name != '\0' && used + 1 < size; name++) {
		bool is_slash = strncmp(name, "=s", 2) == 0;
		bool is_dot = strncmp(name, "=d", 2) == 0;

		out[used++] = (char)(is_slash ? '/' : is_dot ? '.' : *name);
		name += is_slash || is_dot;
	}
	out[used] = '\0';
	return *name == '\0';
}

static void list_element(struct listing *list, const struct xml *x)
{
	if (xml_is(x, "Blob", "Name") && !list_key(list, x->text, list->key, sizeof(list->key)))
		list->key[0] = '\0';
	else if (xml_is(x, "Properties", "Etag"))
		list->version = version_of(x->text);
	else if (xml_is(x, "Properties", "Last-Modified"))
		list->age_ns = age_of(x->text, list->now);
	else if (xml_is(x, "Properties", "ResourceType"))
		list->is_directory = strcmp(x->text, "directory") == 0;
	else if (xml_is(x, NULL, "NextMarker"))
		(void)snprintf(list->marker, sizeof(list->marker), "%s", x->text);
	else if (xml_is(x, "Blobs", "Blob") && list->key[0] != '\0' && list->version.n > 0 &&
		 !list->is_directory)
		list->found(list->arg, &(struct record_item){.key = list->key,
							     .version = list->version,
							     .age_ns = list->age_ns,
							     .outcome = BATON_OUTCOME_OK});
}

/* Reads one page of a list. False: the page can't be read. */
static bool list_page(struct listing *list, const struct http_reply *reply)
{
	struct xml *x = malloc(sizeof(*x));
	char now[64];
	int event = XML_BAD;

	list->marker[0] = '\0';
	list->now = http_header(reply, "Date", now, sizeof(now));
	if (x != NULL)
		xml_init(x, reply->body, reply->body_size);
	while (x != NULL && ((event = xml_next(x)) == XML_OPEN || event == XML_CLOSE)) {
		if (event == XML_CLOSE) {
			list_element(list, x);
			continue;
		}
		if (xml_is(x, "Blobs", "Blob")) {
			list->key[0] = '\0';
			list->version.n = 0;
			list->age_ns = RECORD_NEVER;
			list->is_directory = false;
		}
	}
	free(x);
	return event == XML_DONE;
}

static int list_pages(struct azblob_lane *l, struct baton_call *call, struct listing *list,
		      const char *below)
{
	struct azblob_ask ask;
	struct http_reply reply;

	do {
		azblob_ask(l, &ask, "GET", NULL);
		azblob_ask_query(&ask, "comp", "list");
		if (list->marker[0] != '\0')
			azblob_ask_query(&ask, "marker", list->marker);
		azblob_ask_query(&ask, "maxresults", PAGE_MAX);
		azblob_ask_query(&ask, "prefix", below);
		azblob_ask_query(&ask, "restype", "container");
		(void)azblob_call(l, call, &ask, &reply);
		if (azblob_says(&reply, "ContainerNotFound")) {
			azblob_container_is_gone(l->store);
			return BATON_OUTCOME_OK;
		}
		if (reply.result != HTTP_OK || reply.status != 200) {
			(void)azblob_fail(l, call, &reply);
			return BATON_OUTCOME_FAILED;
		}
		if (!list_page(list, &reply)) {
			(void)store_fail(&call->error, BATON_E_CORRUPT,
					 "a list of blobs can't be read");
			return BATON_OUTCOME_FAILED;
		}
	} while (list->marker[0] != '\0');
	return BATON_OUTCOME_OK;
}

static int list_records(void *lane, struct baton_call *call, const char *prefix, bool with_values,
			record_found *found, void *arg)
{
	struct azblob_lane *l = lane;
	struct listing *list = calloc(1, sizeof(*list));
	char ours[RECORD_PREFIX_MAX + 2], below[RECORD_PREFIX_MAX + AZBLOB_KEY_MAX];
	int outcome = BATON_OUTCOME_FAILED;

	(void)with_values;
	if (list == NULL) {
		(void)store_fail(&call->error, BATON_E_MEMORY, "no memory for a list");
		return outcome;
	}
	(void)snprintf(ours, sizeof(ours), "%s%s", l->store->prefix,
		       l->store->prefix[0] != '\0' ? "/" : "");
	(void)snprintf(below, sizeof(below), "%s%s", ours, prefix);
	list->prefix = ours;
	list->found = found;
	list->arg = arg;
	lane_begin(l);
	if (azblob_log_in(l, call) == 0 && azblob_see_to_container(l, call) == 0)
		outcome = list_pages(l, call, list, below);
	lane_end(l);
	free(list);
	return outcome;
}

static const struct record_adapter adapter = {
	.name = "Azure Blob",
	.page = AZBLOB_PAGE,
	.key_max = AZBLOB_KEY_MAX,
	.value_max = VALUE_MAX,
	.batch_max = BATCH_MAX,
	.get_max = 1,
	.poll_ms = 2000,
	.traits = RECORD_TRAITS(.min_lease_ns = CLOCK_NS_PER_S, .promises = PROMISES),
	.open = open_store,
	.close = close_store,
	.lane_open = open_lane,
	.lane_close = close_lane,
	.forget = forget_store,
	.examine = azblob_examine,
	.get = get_records,
	.put = put_records,
	.drop = drop_records,
	.list = list_records,
	.wake = store_lane_wake,
	.traits_of = traits_of,
	.lock_take = azblob_lock_take,
	.lock_keep = azblob_lock_keep,
	.lock_drop = azblob_lock_drop,
};

static const char *const schemes[] = {"azblob", NULL};

RECORD_DRIVER(baton_driver, adapter, .name = "azblob", .schemes = schemes);
