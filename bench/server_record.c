/*
 * server_record.c: any store on the record layer, as the measurements see it: a raw round trip is
 * one conditional write of the store's own adapter. What such a server was asked is counted by the
 * store's own tests (`tests/NAME/run ... traffic`), not here. It must never touch a record of
 * baton's: its own have a prefix.
 */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server.h"
#include "store/record/adapter.h"

#define ANSWER_NS 30000000000u

struct server {
	const struct record_adapter *adapter;
	void *store;
	void *lane;
	struct record_version version;
	uint64_t n;
};

/* The module that has the adapter is named like the scheme. */
static const struct record_adapter *load_adapter(const char *url)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/%.*s.so", bench_beside("modules"),
			 (int)strcspn(url, ":"), url);
	void *module = n > 0 && (size_t)n < sizeof(path) ? dlopen(path, RTLD_NOW) : NULL;
	const struct record_adapter *const *adapter =
		module != NULL ? dlsym(module, "baton_driver_adapter") : NULL;

	if (adapter == NULL)
		bench_die("There is no %s, or no adapter in it.", path);
	return *adapter;
}

static void *open_record(const char *url)
{
	struct server *s = calloc(1, sizeof(*s));
	char own[1024];
	int n = snprintf(own, sizeof(own), "%s%cprefix=bench", url,
			 strchr(url, '?') != NULL ? '&' : '?');
	struct baton_store_config config = {.size = sizeof(config), .url = own};
	struct record_options options = {.poll_ms = 1000};
	struct baton_error err = {0};

	if (s == NULL || n <= 0 || (size_t)n >= sizeof(own))
		bench_die("Out of memory.");
	s->adapter = load_adapter(url);
	if (s->adapter->is_weak)
		options.max_lease_ms = 1000; /* so that the URL may say otherwise */
	if (s->adapter->open(&config, &options, &s->store, &err) != BATON_OK ||
	    s->adapter->lane_open(s->store, BATON_LANE_CAMPAIGN, &s->lane, &err) != BATON_OK)
		bench_die("The store says: %s", err.text);
	return s;
}

static void close_record(void *server)
{
	struct server *s = server;

	s->adapter->lane_close(s->lane);
	s->adapter->close(s->store);
	free(s);
}

static void write_record(void *server)
{
	struct server *s = server;
	struct baton_call call = {.deadline_ns = bench_now_ns() + ANSWER_NS};
	struct record_item item = {.key = "t/raw", .version = s->version};

	bytes_print(&item.value, "{\"w\":\"%llu\"}", (unsigned long long)++s->n);
	s->adapter->put(s->lane, &call, &item, 1);
	if (item.outcome != BATON_OUTCOME_OK)
		bench_die("The store says: %s", call.error.text);
	s->version = item.version;
	bytes_done(&item.value);
}

/* No server ends a lease here: standbys do. lease_ms: the lease of the leader that is killed.
 * hears_ms: how late a process hears of a release or an order. looks_ms: how often it looks at the
 * leases of others. The last two are the same where nothing is pushed. */
#define RECORD_SERVER(store, lease_ms, hears_ms, looks_ms, many) \
	const struct bench_server bench_##store = {              \
		.name = #store,                                  \
		.raw = "one conditional write",                  \
		.crash_lease_ms = (lease_ms),                    \
		.poll_ms = (hears_ms),                           \
		.expiry_ms = (looks_ms),                         \
		.large = (many),                                 \
		.open = open_record,                             \
		.close = close_record,                           \
		.write = write_record,                           \
	}

RECORD_SERVER(azblob, 3000, 2000, 2000, 2000);
/* It only polls here: the tests' server has no change streams, with which it is told at once. */
RECORD_SERVER(mongodb, 1500, 1000, 1000, 2000);
RECORD_SERVER(memcached, 1500, 1000, 1000, 10000);
/* A request waits at the server, which looks every 50 ms. */
RECORD_SERVER(mssql, 1500, 50, 1000, 2000);
