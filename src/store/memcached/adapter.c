/*
 * adapter.c: records in one memcached server. memcached.h describes how.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/memcached/memcached.h"
#include "store/record/decide/decide.h"

#define BATCH_MAX 1000
/* How many bytes of requests may be sent before their replies are read. With more, both sides might
 * wait for each other to read. */
#define ASKED_MAX 32768
/* The unit of the client flags: tenths of a second. */
#define TICK_MS 100

/* ---- the store and its lanes ---- */

#define PROMISES                                                                          \
	"Best effort: at most one leader at a time among all processes that use the "     \
	"same server, as long as it runs, throws nothing away (-M) and has room. After "  \
	"a restart, flush_all, an eviction or a write that found no room no candidate "   \
	"is elected until the longest lease (max_lease=) is over. A candidate that was "  \
	"about to claim when it happened may lead beside another until its next "         \
	"renewal. Terms follow the server's clock, so they grow across a restart unless " \
	"that clock is set back."

#define WARNING                                                                                 \
	"a cache forgets: this store (memcached) is best effort, and two may lead for a while " \
	"when it loses data; use another store if that does harm; weak=ok in the URL accepts it"

#define TRAITS                                                                             \
	RECORD_TRAITS(.size = sizeof(struct baton_traits), .min_lease_ns = CLOCK_NS_PER_S, \
		      .promises = PROMISES, .warning = WARNING)

static const struct baton_traits *traits_of(const void *store)
{
	return &((const struct memcached_store *)store)->traits;
}

static int open_store(const struct baton_store_config *config, struct record_options *options,
		      void **store, struct baton_error *err)
{
	struct memcached_store *s = store_base_new(sizeof(*s), err);

	if (s == NULL)
		return BATON_E_MEMORY;
	s->options.record = options;
	int code = memcached_options_parse(&s->options, config->url, err);

	if (code != BATON_OK) {
		explicit_bzero(s->options.password, sizeof(s->options.password));
		store_base_free(s);
		return code;
	}
	(void)snprintf(s->prefix, sizeof(s->prefix), "%.*s", MEMCACHED_PREFIX_MAX, options->prefix);
	s->traits = (struct baton_traits)TRAITS;
	if (s->options.is_known_weak)
		s->traits.warning = NULL;
	*store = s;
	return BATON_OK;
}

static void close_store(void *store)
{
	struct memcached_store *s = store;

	explicit_bzero(s->options.password, sizeof(s->options.password));
	store_base_free(s);
}

static int open_lane(void *store, int kind, void **lane, struct baton_error *err)
{
	struct memcached_store *s = store;
	const struct option_tls *files = &s->options.files;
	struct memcached_lane *l = store_lane_new(s, sizeof(*l), false, err);

	(void)kind;
	if (l == NULL)
		return BATON_E_MEMORY;
	l->store = s;
	net_init(&l->net, "memcached");
	if (s->options.tls)
		l->tls = net_tls_new(&(struct net_files){files->ca, files->cert, files->key});
	if (s->options.tls && l->tls == NULL) {
		store_lane_free(s, l);
		(void)store_fail(err, BATON_E_MEMORY, "no memory for a lane of the store");
		return BATON_E_MEMORY;
	}
	*lane = l;
	return BATON_OK;
}

static void close_lane(void *lane)
{
	struct memcached_lane *l = lane;

	net_done(&l->net);
	net_tls_free(l->tls);
	bytes_done(&l->out);
	bytes_done(&l->in);
	bytes_done(&l->values);
	store_lane_free(l->store, l);
}

static void forget_lane(void *lane)
{
	net_forget(&((struct memcached_lane *)lane)->net);
}

static void forget_store(void *store)
{
	store_base_forget(store, forget_lane);
}

/* ---- versions ---- */

struct token {
	uint64_t run;
	uint64_t cas;
};

static struct record_version version_of(const struct memcached_lane *l, uint64_t cas)
{
	struct token t = {.run = l->run, .cas = cas};

	return record_version_of(&t, sizeof(t));
}

/* The cas number of a version; 0: the version is of another run of the server, so no record has it
 * now. */
static uint64_t cas_of(const struct memcached_lane *l, const struct record_version *v)
{
	struct token t = {0};

	if (v->n == sizeof(t))
		(void)memcpy(&t, v->bytes, sizeof(t));
	return t.run == l->run ? t.cas : 0;
}

static void begin_all(struct record_item *items, size_t n)
{
	for (size_t i = 0; i < n; i++)
		items[i].outcome = 0;
}

static void end_all(struct memcached_lane *l, struct record_item *items, size_t n, int outcome)
{
	record_items_end(items, n, outcome, l->call->error.code);
}

static void end_one(struct memcached_lane *l, struct record_item *item,
		    const struct memcached_reply *r)
{
	item->code = memcached_refuse(l, r);
	item->outcome = BATON_OUTCOME_FAILED;
}

/* ---- get ---- */

/* Whether an item needs its value at once. If the layer knows a version, only the version is asked
 * for first. */
static bool get_asks_value(const struct record_item *item)
{
	return item->version.n == 0;
}

static void get_put(struct memcached_lane *l, const struct record_item *item, bool with_value)
{
	char key[MEMCACHED_KEY_ROOM];

	memcached_key(l, item->key, key);
	bytes_print(&l->out, "mg %s c f%s\r\n", key, with_value ? " v" : "");
}

static void get_take(struct memcached_lane *l, struct record_item *item,
		     const struct memcached_reply *r)
{
	uint32_t now = (uint32_t)(memcached_now_ms(l) / TICK_MS);

	item->version = version_of(l, memcached_flag(r, 'c'));
	item->age_ns =
		(uint32_t)(now - (uint32_t)memcached_flag(r, 'f')) * (TICK_MS * CLOCK_NS_PER_MS);
	if (item->age_ns > (uint64_t)INT32_MAX * TICK_MS * CLOCK_NS_PER_MS)
		item->age_ns = 0; /* the clocks may be a second apart */
	bytes_clear(&item->value);
	item->outcome = BATON_OUTCOME_OK;
}

/* Returns false if the item must be asked for again, with its value. */
static bool get_hear(struct memcached_lane *l, struct record_item *item,
		     const struct memcached_reply *r, bool with_value)
{
	struct record_version known = item->version;

	if (memcached_is(r, "EN")) {
		item->version = (struct record_version){0};
		bytes_clear(&item->value);
		item->outcome = BATON_OUTCOME_OK;
	} else if (memcached_is(r, with_value ? "VA" : "HD") && memcached_flag(r, 'c') != 0) {
		get_take(l, item, r);
		if (with_value && !bytes_add(&item->value, r->value, r->n, MEMCACHED_VALUE_MAX)) {
			item->outcome = BATON_OUTCOME_FAILED;
			item->code = BATON_E_CORRUPT;
		}
		if (with_value || record_same_version(&known, &item->version)) {
			item->is_unchanged = !with_value;
			return true;
		}
		item->outcome = 0;
		item->version = (struct record_version){0};
		return false;
	} else {
		end_one(l, item, r);
	}
	return true;
}

/* Asks for some of the items that still need it, beginning with `from`. Returns where it has
 * stopped. */
static size_t get_some(struct memcached_lane *l, struct record_item *items, size_t from, size_t n,
		       bool by_value, bool *is_ok)
{
	size_t to = from;

	bytes_clear(&l->out);
	for (; to < n && l->out.n < ASKED_MAX; to++)
		if (items[to].outcome == 0 && get_asks_value(&items[to]) == by_value)
			get_put(l, &items[to], by_value);
	*is_ok = l->out.n == 0 || memcached_send(l);
	for (size_t i = from; i < to && *is_ok; i++) {
		struct memcached_reply r;

		if (items[i].outcome != 0 || get_asks_value(&items[i]) != by_value)
			continue;
		*is_ok = memcached_read(l, &r);
		if (*is_ok)
			(void)get_hear(l, &items[i], &r, by_value);
		*is_ok = *is_ok && l->net.fd >= 0;
	}
	return to;
}

/* All reads are fresh: there is a single server, which answers with what stands there now. */
static void get_records(void *lane, struct baton_call *call, struct record_item *items, size_t n,
			bool fresh)
{
	struct memcached_lane *l = lane;
	bool is_ok = memcached_connect(l, call);

	(void)fresh;
	begin_all(items, n);
	/* First the items whose version is known: those that have changed are asked for again. */
	for (size_t at = 0; is_ok && at < n;)
		at = get_some(l, items, at, n, false, &is_ok);
	for (size_t at = 0; is_ok && at < n;)
		at = get_some(l, items, at, n, true, &is_ok);
	if (!is_ok)
		end_all(l, items, n, BATON_OUTCOME_FAILED);
}

/* ---- put ---- */

static void put_item(struct memcached_lane *l, const struct record_item *item)
{
	char key[MEMCACHED_KEY_ROOM];
	unsigned long long cas = cas_of(l, &item->version);
	unsigned tick = (uint32_t)(memcached_now_ms(l) / TICK_MS);

	memcached_key(l, item->key, key);
	if (item->version.n == 0)
		bytes_print(&l->out, "ms %s %zu ME c F%u\r\n", key, item->value.n, tick);
	else
		bytes_print(&l->out, "ms %s %zu C%llu c F%u\r\n", key, item->value.n, cas, tick);
	(void)bytes_add(&l->out, item->value.at, item->value.n, SIZE_MAX / 2);
	bytes_print(&l->out, "\r\n");
}

static void put_hear(struct memcached_lane *l, struct record_item *item,
		     const struct memcached_reply *r)
{
	if (memcached_is(r, "HD") && memcached_flag(r, 'c') != 0) {
		item->version = version_of(l, memcached_flag(r, 'c'));
		item->outcome = BATON_OUTCOME_OK;
	} else if (memcached_is(r, "NS") || memcached_is(r, "EX") || memcached_is(r, "NF")) {
		item->outcome = BATON_OUTCOME_REFUSED;
	} else if (memcached_is(r, "SERVER_ERROR")) {
		end_one(l, item, r);
	} else {
		item->code = memcached_refuse(l, r);
		item->outcome = BATON_OUTCOME_UNKNOWN;
		memcached_disconnect(l);
	}
}

/* Refuses an item without asking if its version is of another run: no record has that version
 * now. */
static bool put_is_of_run(const struct memcached_lane *l, struct record_item *item)
{
	if (item->version.n == 0 || cas_of(l, &item->version) != 0)
		return true;
	item->outcome = BATON_OUTCOME_REFUSED;
	return false;
}

static bool put_makes(const struct record_item *items, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (items[i].version.n == 0)
			return true;
	return false;
}

static void put_records(void *lane, struct baton_call *call, struct record_item *items, size_t n)
{
	struct memcached_lane *l = lane;

	begin_all(items, n);
	if (!memcached_connect(l, call) ||
	    (put_makes(items, n) && !memcached_index_add(l, items, n))) {
		end_all(l, items, n, BATON_OUTCOME_FAILED);
		return;
	}
	bytes_clear(&l->out);
	for (size_t i = 0; i < n; i++)
		if (put_is_of_run(l, &items[i]))
			put_item(l, &items[i]);
	if (l->out.n > 0 && !memcached_send(l)) {
		end_all(l, items, n,
			l->net.has_sent ? BATON_OUTCOME_UNKNOWN : BATON_OUTCOME_FAILED);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		struct memcached_reply r;

		if (items[i].outcome != 0)
			continue;
		if (l->net.fd < 0 || !memcached_read(l, &r)) {
			end_all(l, items, n, BATON_OUTCOME_UNKNOWN);
			return;
		}
		put_hear(l, &items[i], &r);
	}
}

/* ---- drop, list ---- */

static void drop_hear(struct memcached_lane *l, struct record_item *item,
		      const struct memcached_reply *r)
{
	if (memcached_is(r, "HD"))
		item->outcome = BATON_OUTCOME_OK;
	else if (memcached_is(r, "EX") || memcached_is(r, "NF") || memcached_is(r, "NS"))
		item->outcome = BATON_OUTCOME_REFUSED;
	else
		end_one(l, item, r);
}

static void drop_records(void *lane, struct baton_call *call, struct record_item *items, size_t n)
{
	struct memcached_lane *l = lane;
	bool is_ok = memcached_connect(l, call);

	begin_all(items, n);
	bytes_clear(&l->out);
	for (size_t i = 0; is_ok && i < n; i++) {
		char key[MEMCACHED_KEY_ROOM];

		memcached_key(l, items[i].key, key);
		if (put_is_of_run(l, &items[i]))
			bytes_print(&l->out, "md %s C%llu\r\n", key,
				    (unsigned long long)cas_of(l, &items[i].version));
	}
	if (!is_ok || (l->out.n > 0 && !memcached_send(l))) {
		end_all(l, items, n,
			is_ok && l->net.has_sent ? BATON_OUTCOME_UNKNOWN : BATON_OUTCOME_FAILED);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		struct memcached_reply r;

		if (items[i].outcome != 0)
			continue;
		if (l->net.fd < 0 || !memcached_read(l, &r)) {
			end_all(l, items, n, BATON_OUTCOME_UNKNOWN);
			return;
		}
		drop_hear(l, &items[i], &r);
	}
	memcached_index_drop(l, items, n);
}

static int list_some(struct memcached_lane *l, struct baton_call *call, char *const *keys, size_t n,
		     record_found *found, void *arg)
{
	struct record_item *items = calloc(n, sizeof(*items));
	int outcome = BATON_OUTCOME_OK;

	if (items == NULL) {
		(void)store_fail(&call->error, BATON_E_MEMORY, "no memory for a list");
		return BATON_OUTCOME_FAILED;
	}
	for (size_t i = 0; i < n; i++)
		items[i].key = keys[i];
	get_records(l, call, items, n, false);
	for (size_t i = 0; i < n; i++) {
		if (items[i].outcome != BATON_OUTCOME_OK)
			outcome = BATON_OUTCOME_FAILED;
		else if (items[i].version.n > 0)
			found(arg, &items[i]);
		bytes_done(&items[i].value);
	}
	free(items);
	return outcome;
}

static int list_records(void *lane, struct baton_call *call, const char *prefix, bool with_values,
			record_found *found, void *arg)
{
	struct memcached_lane *l = lane;
	char **keys = memcached_connect(l, call) ? memcached_index_list(l, prefix[0]) : NULL;
	int outcome = keys != NULL ? BATON_OUTCOME_OK : BATON_OUTCOME_FAILED;
	size_t n = 0;

	(void)with_values; /* the values come with the versions anyhow */
	while (keys != NULL && keys[n] != NULL)
		n++;
	for (size_t done = 0; done < n && outcome == BATON_OUTCOME_OK; done += BATCH_MAX)
		outcome = list_some(l, call, keys + done,
				    n - done < BATCH_MAX ? n - done : BATCH_MAX, found, arg);
	free((void *)keys);
	return outcome;
}

/* ---- age ---- */

/* Writes the mark anew, because something was lost. If another process was faster, its mark
 * stays. */
static bool age_mark(struct memcached_lane *l, const struct memcached_stats *s, uint64_t losses,
		     uint64_t cas)
{
	char key[MEMCACHED_KEY_ROOM], value[64], how[32] = "ME";
	struct memcached_reply r;

	memcached_key(l, "m", key);
	if (cas != 0)
		(void)snprintf(how, sizeof(how), "C%llu", (unsigned long long)cas);
	int n = snprintf(value, sizeof(value), "%llu %llu", (unsigned long long)s->time_s,
			 (unsigned long long)losses);
	bytes_clear(&l->out);
	bytes_print(&l->out, "ms %s %d %s\r\n%s\r\n", key, n, how, value);
	return memcached_send(l) && memcached_read(l, &r);
}

static int age_of_store(void *lane, struct baton_call *call, struct record_age *age)
{
	struct memcached_lane *l = lane;
	struct memcached_stats s = {0};
	struct memcached_reply r;
	char key[MEMCACHED_KEY_ROOM];
	unsigned long long born_s = 0, marked = 0;

	if (!memcached_connect(l, call))
		return BATON_OUTCOME_FAILED;
	memcached_key(l, "m", key);
	bytes_clear(&l->out);
	bytes_print(&l->out, "mg %s v c\r\nstats\r\n", key);
	if (!memcached_send(l) || !memcached_read(l, &r))
		return BATON_OUTCOME_FAILED;
	uint64_t cas = memcached_is(&r, "VA") ? memcached_flag(&r, 'c') : 0;

	if (cas != 0 && r.n < 60) { /* what isn't a number counts as 0 */
		char *end;

		born_s = strtoull(r.value, &end, 10);
		marked = strtoull(end, NULL, 10);
	}
	if (!memcached_read_stats(l, &s))
		return BATON_OUTCOME_FAILED;
	uint64_t losses = memcached_losses(&s);

	if (losses == 0) {
		born_s = s.time_s - s.uptime_s;
	} else if (born_s == 0 || marked != losses) {
		born_s = s.time_s;
		if (!age_mark(l, &s, losses, cas))
			return BATON_OUTCOME_FAILED;
	}
	uint64_t old_s = born_s < s.time_s ? s.time_s - born_s : 0;

	/* The server cuts fractions of a second off, and reads its clock once a second. So it may
	 * be two seconds behind. */
	old_s = old_s < s.uptime_s ? old_s : s.uptime_s;
	age->uptime_ns = old_s > 2 ? (old_s - 2) * CLOCK_NS_PER_S : 0;
	age->coarse_ns = 4 * CLOCK_NS_PER_S; /* generous, so that a wait is told only once */
	age->server_ms = s.time_s * 1000;
	return BATON_OUTCOME_OK;
}

static const struct record_adapter adapter = {
	.name = "memcached",
	.page = "baton-memcached(7)",
	.key_max = MEMCACHED_KEY_MAX,
	.value_max = MEMCACHED_VALUE_MAX,
	.batch_max = BATCH_MAX,
	.get_max = UINT32_MAX, /* a list would be no cheaper */
	.poll_ms = 1000,
	.lists_values = true,
	.is_weak = true,
	.is_tried = true,
	.traits = TRAITS,
	.open = open_store,
	.close = close_store,
	.traits_of = traits_of,
	.lane_open = open_lane,
	.lane_close = close_lane,
	.forget = forget_store,
	.examine = memcached_examine,
	.get = get_records,
	.put = put_records,
	.drop = drop_records,
	.list = list_records,
	.age = age_of_store,
};

static const char *const schemes[] = {"memcached", "memcacheds", NULL};

RECORD_DRIVER(baton_driver, adapter, .name = "memcached", .schemes = schemes);
