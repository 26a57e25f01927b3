/*
 * backend_record.c: any store that is an adapter for the record stores' layer. What happens to its
 * calls happens in front of the adapter (tests/record/faults.h), and what people do to its records
 * is done with the adapter itself: a new store needs nothing of its own here.
 *
 * The suite opens the store's module beside libbaton. libbaton is given a folder in which the
 * module of that name is tests/record/faulty.c, which loads the real one. Each case has a prefix of
 * its own in the store.
 */
#include "backend.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "faults.h"
#include "faulty.h"
#include "proxy.h"
#include "store/record/decide/codec.h"
#include "store/record/decide/decide.h"

#define POLL "poll=100"

/* Stores whose network the fault proxy understands: then --network is a bad one, and else faults
 * in front of the adapter. A verb is a text that stands in its requests. */
static const struct network {
	const char *scheme;
	const struct protocol *protocol;
	const char *words[N_VERBS];
} networks[] = {
	{"mssql",
	 &protocol_tds,
	 {[VERB_OPEN] = "INSERT",
	  [VERB_RENEW] = "UPDATE",
	  [VERB_CAMPAIGN] = "OUTPUT",
	  [VERB_RELEASE] = "DELETE",
	  [VERB_OBSERVE] = "DATEDIFF_BIG"}},
	{"mysql",
	 &protocol_mysql,
	 {[VERB_OPEN] = "INSERT",
	  [VERB_RENEW] = "UPDATE",
	  [VERB_CAMPAIGN] = "TRANSACTION",
	  [VERB_RELEASE] = "DELETE",
	  [VERB_OBSERVE] = "TIMESTAMPDIFF"}},
	{"memcached:",
	 &protocol_memcached,
	 {[VERB_OPEN] = "/l/",
	  [VERB_RENEW] = "/l/",
	  [VERB_CAMPAIGN] = "/e/",
	  [VERB_RELEASE] = "/e/",
	  [VERB_OBSERVE] = "mg"}},
	{"s3:",
	 &protocol_http,
	 {[VERB_OPEN] = "/l/",
	  [VERB_RENEW] = "/l/",
	  [VERB_CAMPAIGN] = "/e/",
	  [VERB_RELEASE] = "/e/",
	  [VERB_OBSERVE] = "GET"}},
	{"azblob:",
	 &protocol_http,
	 {[VERB_OPEN] = "/l/",
	  [VERB_RENEW] = "/l/",
	  [VERB_CAMPAIGN] = "/e/",
	  [VERB_RELEASE] = "/e/",
	  [VERB_OBSERVE] = "GET"}},
	{"mongodb",
	 &protocol_mongodb,
	 {[VERB_OPEN] = "insert",
	  [VERB_RENEW] = "update",
	  [VERB_CAMPAIGN] = "update",
	  [VERB_RELEASE] = "delete",
	  [VERB_OBSERVE] = "find"}},
};

/* The backend's own way to the records of a case. */
struct hand {
	struct proxy *proxy; /* NULL: there is none. The first field: proxy.h */
	const struct record_adapter *adapter;
	void *store;
	void *lane;
	struct faults *faults;
};

static const int classes[N_VERBS] = {
	[VERB_ANY] = FAULTS_ANY,         [VERB_OPEN] = FAULTS_OPEN,
	[VERB_RENEW] = FAULTS_RENEW,     [VERB_CAMPAIGN] = FAULTS_CLAIM,
	[VERB_RELEASE] = FAULTS_RELEASE, [VERB_OBSERVE] = FAULTS_READ,
};

/* Of a thousand calls; --network default, or another number. */
#define BAD_WEATHER 30
static unsigned weather_permille;

/* ---- modules ---- */

static void scheme_of(const char *url, char *out, size_t size)
{
	snprintf(out, size, "%.*s", (int)strcspn(url, ":"), url);
}

/* Beside this program: the stores that only tests have. */
static bool test_module(const char *name, char *out, size_t size)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (n <= 0)
		return false;
	path[n] = '\0';
	*strrchr(path, '/') = '\0';
	n = snprintf(out, size, "%s/test-modules/%s.so", path, name);
	return (size_t)n < size && access(out, R_OK) == 0;
}

/* The module that has the adapter, wherever it is. */
static bool real_module(const char *url, char *out, size_t size)
{
	const char *dir = getenv("BATON_MODULE_DIR");
	char scheme[64];

	scheme_of(url, scheme, sizeof(scheme));
	int n = snprintf(out, size, "%s/%s.so", dir != NULL ? dir : "", scheme);

	return (n > 0 && (size_t)n < size && access(out, R_OK) == 0) ||
	       test_module(scheme, out, size);
}

static const struct record_adapter *load_adapter(const char *path)
{
	void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL); /* it stays */
	const struct record_adapter *const *adapter =
		module != NULL ? dlsym(module, "baton_driver_adapter") : NULL;

	return adapter != NULL ? *adapter : NULL;
}

static void place_files(const char *label, char dir[PATH_MAX], char file[PATH_MAX])
{
	const char *tmp = getenv("TMPDIR");

	snprintf(dir, PATH_MAX, "%s/baton-record-%s.d", tmp != NULL ? tmp : "/tmp", label);
	snprintf(file, PATH_MAX, "%s/baton-record-%s", tmp != NULL ? tmp : "/tmp", label);
}

/* ---- places ---- */

/* Not inlined: the compiler would take a URL that has no room, which is refused, for a mistake. */
__attribute__((noinline)) static bool place_url(const char *base_url, const char *label, char *out,
						size_t size)
{
	int n = snprintf(out, size, "%s%c" POLL "&prefix=%s", base_url,
			 strchr(base_url, '?') != NULL ? '&' : '?', label);

	return n > 0 && (size_t)n < size;
}

static bool hand_open(struct hand *h, const char *url, const char *module)
{
	struct baton_store_config config = {.size = sizeof(config), .url = url};
	struct record_options options = {.poll_ms = 100};

	h->adapter = load_adapter(module);
	if (h->adapter != NULL && h->adapter->is_weak)
		options.max_lease_ms = 30000; /* so that the URL may say otherwise */
	return h->adapter != NULL &&
	       h->adapter->open(&config, &options, &h->store, NULL) == BATON_OK &&
	       h->adapter->lane_open(h->store, BATON_LANE_CAMPAIGN, &h->lane, NULL) == BATON_OK;
}

static void hand_close(struct hand *h)
{
	if (h->lane != NULL)
		h->adapter->lane_close(h->lane);
	if (h->store != NULL)
		h->adapter->close(h->store);
}

static const struct network *network_of(const char *url)
{
	for (size_t i = 0; i < sizeof(networks) / sizeof(networks[0]); i++)
		if (strncmp(url, networks[i].scheme, strlen(networks[i].scheme)) == 0)
			return &networks[i];
	return NULL;
}

/* With --network the candidates' way to the server leads through the proxy, and ours doesn't. */
static bool place_network(struct testcase *t, struct hand *h, const char *base_url,
			  const char *label)
{
	const struct network *network = proxy_is_bad() ? network_of(base_url) : NULL;
	const char *host = strstr(base_url, "127.0.0.1:");
	char url[PLACE_MAX];

	if (network == NULL)
		return true;
	if (host == NULL)
		return false;
	const char *port = strchr(host, ':') + 1;

	h->proxy = proxy_new((unsigned)strtoul(port, NULL, 10), network->protocol, network->words);
	if (h->proxy == NULL)
		return false;
	snprintf(url, sizeof(url), "%.*s%u%s", (int)(port - base_url), base_url,
		 proxy_port(h->proxy), port + strspn(port, "0123456789"));
	return place_url(url, label, t->url, sizeof(t->url));
}

static bool place(struct testcase *t, const char *base_url, const char *label)
{
	struct hand *h = calloc(1, sizeof(*h));
	char module[PATH_MAX];
	char faulty[PATH_MAX];
	char dir[PATH_MAX];
	char file[PATH_MAX];
	char link[PATH_MAX + 80];
	char scheme[64];

	(void)place_url(base_url, label, t->url, sizeof(t->url));
	place_files(label, dir, file);
	scheme_of(base_url, scheme, sizeof(scheme));
	snprintf(link, sizeof(link), "%s/%s.so", dir, scheme);
	if (h == NULL || !real_module(base_url, module, sizeof(module)) ||
	    !test_module("faulty", faulty, sizeof(faulty)) || !hand_open(h, t->url, module) ||
	    !place_network(t, h, base_url, label))
		return false;
	(void)unlink(file);
	h->faults = faults_map(file);
	(void)mkdir(dir, 0700);
	(void)unlink(link);
	t->hand = h;
	if (h->faults != NULL)
		atomic_store(&h->faults->weather_permille, weather_permille);
	return h->faults != NULL && symlink(faulty, link) == 0 &&
	       setenv("BATON_MODULE_DIR", dir, 1) == 0 && setenv(FAULTY_MODULE, module, 1) == 0 &&
	       setenv(FAULTS_FILE, file, 1) == 0;
}

static void leave(struct testcase *t)
{
	struct hand *h = t->hand;

	hand_close(h);
	if (h->proxy != NULL)
		proxy_free(h->proxy);
	free(h);
}

/* ---- records ---- */

static struct baton_call a_call(void)
{
	return (struct baton_call){.deadline_ns = now_ns() + 10000 * MS};
}

struct found {
	struct found *next;
	struct record_item item;
};

static void found_one(void *arg, const struct record_item *item)
{
	struct found **list = arg;
	struct found *f = calloc(1, sizeof(*f));

	f->item.key = strdup(item->key);
	f->next = *list;
	*list = f;
}

/* All records below a prefix, with their values. */
static struct found *list_records(struct hand *h, const char *prefix)
{
	struct baton_call call = a_call();
	struct found *list = NULL;

	if (h->adapter->list(h->lane, &call, prefix, false, found_one, &list) != BATON_OUTCOME_OK)
		return NULL;
	for (struct found *f = list; f != NULL; f = f->next)
		h->adapter->get(h->lane, &call, &f->item, 1, true);
	return list;
}

static void free_records(struct found *list)
{
	while (list != NULL) {
		struct found *f = list;

		list = f->next;
		bytes_done(&f->item.value);
		free((char *)(uintptr_t)f->item.key);
		free(f);
	}
}

static bool drop_records(struct hand *h, const char *prefix)
{
	struct baton_call call = a_call();
	struct found *list = list_records(h, prefix);

	for (struct found *f = list; f != NULL; f = f->next)
		h->adapter->drop(h->lane, &call, &f->item, 1);
	free_records(list);
	return true;
}

static void clean(const char *base_url, const char *label)
{
	struct hand h = {0};
	char url[PLACE_MAX];
	char module[PATH_MAX];
	char dir[PATH_MAX];
	char file[PATH_MAX];
	char link[PATH_MAX + 80];
	char scheme[64];

	(void)place_url(base_url, label, url, sizeof(url));
	place_files(label, dir, file);
	scheme_of(base_url, scheme, sizeof(scheme));
	snprintf(link, sizeof(link), "%s/%s.so", dir, scheme);
	if (real_module(base_url, module, sizeof(module)) && hand_open(&h, url, module)) {
		drop_records(&h, "e/");
		drop_records(&h, "l/");
		drop_records(&h, "c/");
	}
	hand_close(&h);
	(void)unlink(link);
	(void)rmdir(dir);
	(void)unlink(file);
}

static uint64_t new_w(void)
{
	return now_ns() * 2685821657736338717u;
}

/* Tries again where somebody else was faster. */
static bool change_election(struct hand *h, const char *name,
			    bool (*change)(struct hand *h, struct record_election *e, void *arg),
			    void *arg)
{
	struct baton_call call = a_call();
	bool done = false;

	for (unsigned i = 0; i < 100 && !done; i++) {
		struct found *list = list_records(h, "e/");
		struct record_election e;

		for (struct found *f = list; f != NULL && !done; f = f->next) {
			char text[RECORD_TEXT_MAX];

			if (record_parse_election(f->item.value.at, f->item.value.n, &e) != 0 ||
			    strcmp(e.name, name) != 0 || !change(h, &e, arg))
				continue;
			e.w = new_w();
			size_t n = record_write_election(&e, text, sizeof(text));

			bytes_clear(&f->item.value);
			(void)bytes_add(&f->item.value, text, n, n);
			h->adapter->put(h->lane, &call, &f->item, 1);
			done = f->item.outcome == BATON_OUTCOME_OK;
		}
		free_records(list);
	}
	return done;
}

static bool free_it(struct hand *h, struct record_election *e, void *arg)
{
	const uint64_t *term = arg;

	(void)h;
	e->lease[0] = '\0';
	e->leader[0] = '\0';
	e->nonce = 0;
	if (term != NULL)
		e->term = *term;
	return true;
}

/* A claim of somebody who never renews. */
static bool take_it(struct hand *h, struct record_election *e, void *arg)
{
	const struct testcase *t = arg;
	struct baton_call call = a_call();
	struct record_lease lease = {.w = new_w(), .ttl_ns = t->lease_ms * MS, .beat = 1};
	struct record_item item = {0};
	char key[80];
	char text[RECORD_TEXT_MAX];

	snprintf(e->lease, sizeof(e->lease), "dead-0-%llx", (unsigned long long)(new_w() >> 32));
	snprintf(e->leader, sizeof(e->leader), "somebody-else");
	snprintf(lease.owner, sizeof(lease.owner), "somebody-else");
	snprintf(key, sizeof(key), "l/%s", e->lease);
	e->nonce = 1;
	e->term++;
	e->ttl_ns = lease.ttl_ns;
	size_t n = record_write_lease(&lease, text, sizeof(text));

	item.key = key;
	(void)bytes_add(&item.value, text, n, n);
	h->adapter->put(h->lane, &call, &item, 1);
	bytes_done(&item.value);
	return item.outcome == BATON_OUTCOME_OK;
}

static bool find_election(struct hand *h, const char *name, struct record_election *e,
			  struct record_item *item)
{
	struct found *list = list_records(h, "e/");
	bool is_there = false;

	for (struct found *f = list; f != NULL && !is_there; f = f->next) {
		is_there = record_parse_election(f->item.value.at, f->item.value.n, e) == 0 &&
			   strcmp(e->name, name) == 0;
		if (!is_there || item == NULL)
			continue;
		*item = f->item;
		item->key = strdup(f->item.key);
		f->item.value = (struct bytes){0};
	}
	free_records(list);
	return is_there;
}

static bool delete_election(struct hand *h, const char *name)
{
	struct baton_call call = a_call();
	struct record_election e;
	struct record_item item;

	if (!find_election(h, name, &e, &item))
		return false;
	h->adapter->drop(h->lane, &call, &item, 1);
	bytes_done(&item.value);
	free((char *)(uintptr_t)item.key);
	return item.outcome == BATON_OUTCOME_OK;
}

/* Until the owner has not been faster. */
static bool end_lease(struct hand *h, const char *name, bool is_deleted)
{
	struct record_election e;
	char key[80];
	char text[RECORD_TEXT_MAX];
	struct record_item item = {.key = key};
	struct record_lease lease;

	if (!find_election(h, name, &e, NULL) || e.lease[0] == '\0')
		return false;
	snprintf(key, sizeof(key), "l/%s", e.lease);
	for (unsigned i = 0; i < 100; i++) {
		struct baton_call call = a_call();

		item.version.n = 0;
		h->adapter->get(h->lane, &call, &item, 1, true);
		if (record_parse_lease(item.value.at, item.value.n, &lease) != 0)
			return false;
		record_tombstone(&lease, RECORD_EXPIRED, lease.ttl_ns, "somebody", new_w());
		size_t n = record_write_lease(&lease, text, sizeof(text));

		bytes_clear(&item.value);
		(void)bytes_add(&item.value, text, n, n);
		if (is_deleted)
			h->adapter->drop(h->lane, &call, &item, 1);
		else
			h->adapter->put(h->lane, &call, &item, 1);
		if (item.outcome == BATON_OUTCOME_OK)
			break;
	}
	bytes_done(&item.value);
	return item.outcome == BATON_OUTCOME_OK;
}

/* ---- the hooks ---- */

static bool destroy(struct testcase *t, const char *name, enum way way)
{
	switch (way) {
	case WAY_DELETED: return delete_election(t->hand, name);
	case WAY_OVERWRITTEN: return change_election(t->hand, name, take_it, t);
	case WAY_SESSION: return end_lease(t->hand, name, true);
	case WAY_EXPIRED: return end_lease(t->hand, name, false);
	default: return false;
	}
}

static bool unlock(struct testcase *t, const char *name)
{
	return change_election(t->hand, name, free_it, NULL);
}

static bool turn(struct testcase *t, int class, int kind, uint32_t times, uint64_t ms)
{
	struct hand *h = t->hand;

	faults_set(h->faults, class, kind, times, ms);
	return true;
}

static bool down(struct testcase *t, bool is_down)
{
	return turn(t, FAULTS_ANY, is_down ? FAULTS_FAIL : FAULTS_NONE, is_down ? FAULTS_ALWAYS : 0,
		    0);
}

static bool hole(struct testcase *t, bool is_hole)
{
	return turn(t, FAULTS_ANY, is_hole ? FAULTS_HOLE : FAULTS_NONE, is_hole ? FAULTS_ALWAYS : 0,
		    0);
}

static bool deny(struct testcase *t, bool is_denied)
{
	return turn(t, FAULTS_ANY, is_denied ? FAULTS_DENY : FAULTS_NONE,
		    is_denied ? FAULTS_ALWAYS : 0, 0);
}

/* A campaign begins with a read, and often ends with it. */
static bool fail(struct testcase *t, enum verb verb, unsigned n)
{
	if (verb == VERB_CAMPAIGN)
		(void)turn(t, FAULTS_READ, FAULTS_FAIL, n, 0);
	return turn(t, classes[verb], FAULTS_FAIL, n, 0);
}

static bool mute(struct testcase *t, enum verb verb, unsigned n)
{
	return turn(t, classes[verb], FAULTS_MUTE, n, 0);
}

static bool late(struct testcase *t, enum verb verb, unsigned n, uint64_t ms)
{
	return turn(t, classes[verb], FAULTS_LATE, n, ms);
}

static bool forget(struct testcase *t)
{
	return drop_records(t->hand, "e/") && drop_records(t->hand, "l/") &&
	       drop_records(t->hand, "c/");
}

static bool make_election(struct hand *h, const char *name, uint64_t term)
{
	struct baton_call call = a_call();
	struct record_election e = {.w = new_w(), .term = term};
	char key[1024] = "";
	char text[RECORD_TEXT_MAX];
	struct record_item item = {.key = key};

	snprintf(e.name, sizeof(e.name), "%s", name);
	size_t n = record_write_election(&e, text, sizeof(text));

	(void)bytes_add(&item.value, text, n, n);
	if (record_write_key(RECORD_ELECTIONS, name, key, sizeof(key)) != 0)
		h->adapter->put(h->lane, &call, &item, 1);
	bytes_done(&item.value);
	return item.outcome == BATON_OUTCOME_OK;
}

static bool set_term(struct testcase *t, const char *name, uint64_t term)
{
	struct record_election e;

	if (!find_election(t->hand, name, &e, NULL))
		return make_election(t->hand, name, term);
	return change_election(t->hand, name, free_it, &term);
}

static int count_name(struct testcase *t, const char *name, size_t length)
{
	struct found *list = list_records(t->hand, "e/");
	int n = 0;

	for (const struct found *f = list; f != NULL; f = f->next) {
		struct record_election e;

		n += record_parse_election(f->item.value.at, f->item.value.n, &e) == 0 &&
		     strlen(e.name) == length && memcmp(e.name, name, length) == 0;
	}
	free_records(list);
	return n;
}

static bool weather(const char *rules, char *why, size_t size)
{
	bool is_number = strspn(rules, "0123456789") == strlen(rules);

	snprintf(why, size, "not a number of faults in a thousand calls: %.100s", rules);
	weather_permille = is_number ? (unsigned)strtoul(rules, NULL, 10) : BAD_WEATHER;
	return is_number || strcmp(rules, "default") == 0;
}

static uint64_t harmed(struct testcase *t)
{
	const struct hand *h = t->hand;

	return h != NULL && h->faults != NULL ? atomic_load(&h->faults->n_suffered) : 0;
}

static uint64_t calls(struct testcase *t, enum verb verb)
{
	const struct hand *h = t->hand;

	return atomic_load(&h->faults->calls[classes[verb]]);
}

#define RECORD_HOOKS                                                                            \
	.family = "record", .shares_leases = true, .keeps_history = true, .is_durable = true,   \
	.weather = weather, .harmed = harmed, .place = place, .leave = leave, .clean = clean,   \
	.destroy = destroy,                                                                     \
	.ways = {[WAY_DELETED] = true,                                                          \
		 [WAY_OVERWRITTEN] = true,                                                      \
		 [WAY_SESSION] = true,                                                          \
		 [WAY_EXPIRED] = true},                                                         \
	.unlock = unlock, .down = down, .hole = hole, .fail = fail, .mute = mute, .late = late, \
	.forget = forget, .deny = deny, .set_term = set_term, .count_name = count_name,         \
	.calls = calls

/* One process only. */
const struct backend backend_memory_record = {.scheme = "memory+record", RECORD_HOOKS};

static bool has_locks(const char *url)
{
	return strstr(url, "locks=") != NULL;
}

const struct backend backend_memory_record_locks = {
	.scheme = "memory+record+locks", .serves = has_locks, RECORD_HOOKS};

/* Any other: of whatever scheme it is that the suite was given. */
const struct backend *backend_record(const char *url)
{
	static char scheme[64];
	static struct backend b = {.scheme = scheme, .has_processes = true, RECORD_HOOKS};
	char module[PATH_MAX];

	/* With locks beside the records, the table has rows of its own. */
	snprintf(scheme, sizeof(scheme), "%.*s%s", (int)strcspn(url, ":"), url,
		 strstr(url, "mode=applock") != NULL ? "+applock" : "");
	const struct record_adapter *adapter =
		real_module(url, module, sizeof(module)) ? load_adapter(module) : NULL;

	if (adapter == NULL)
		return NULL;
	/* An adapter that pushes may be told to poll. */
	b.pushes = (adapter->watch != NULL || adapter->listen != NULL) &&
		   strstr(url, "push=poll") == NULL;
	b.has_network = network_of(url) != NULL;
	b.weather = b.has_network ? NULL : weather;
	return &b;
}
