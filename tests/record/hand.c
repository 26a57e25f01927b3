/*
 * hand.c: calls an adapter by hand, for suites that look at its verdicts: `record-hand MODULE URL`.
 * Each line of the input is one call, and so is each line of the output:
 *
 *     put KEY VALUE [KEY VALUE]...   writes over what the last put or get of the key found
 *     get KEY...
 *     drop KEY...                    deletes what the last put or get of the key found
 *     limit SECONDS                  how much time each later call has; 20 at first
 *
 * It says the outcome of each item, and the error's sentence.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "store/record/adapter.h"

#define ITEMS_MAX 8
/* Records begin with a number that makes each write another one. */
#define VALUE "{\"w\":\"%u\"," IS
#define IS "\"is\":\""

static const struct record_adapter *adapter;
static void *lane;
static struct record_item known[ITEMS_MAX];
static unsigned n_written, limit_s = 20;

static const char *const words[] = {
	[BATON_OUTCOME_OK] = "OK",
	[BATON_OUTCOME_REFUSED] = "REFUSED",
	[BATON_OUTCOME_FAILED] = "FAILED",
	[BATON_OUTCOME_UNKNOWN] = "UNKNOWN",
};

static int open_lane(const char *module, const char *url)
{
	struct baton_store_config config = {.size = sizeof(config), .url = url};
	struct record_options options = {.poll_ms = 1000};
	struct baton_error err = {0};
	void *store = NULL;
	void *loaded = dlopen(module, RTLD_NOW | RTLD_LOCAL);
	const struct record_adapter *const *found =
		loaded != NULL ? dlsym(loaded, "baton_driver_adapter") : NULL;

	if (found == NULL) {
		(void)fprintf(stderr, "record-hand: %s\n", dlerror());
		return -1;
	}
	adapter = *found;
	if (adapter->open(&config, &options, &store, &err) == BATON_OK &&
	    adapter->lane_open(store, BATON_LANE_CAMPAIGN, &lane, &err) == BATON_OK)
		return 0;
	(void)fprintf(stderr, "record-hand: %s\n", err.text);
	return -1;
}

static struct baton_call new_call(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_BOOTTIME, &now);
	return (struct baton_call){.deadline_ns = (uint64_t)(now.tv_sec + limit_s) * 1000000000u};
}

/* What is known of a key; its version is none at first. */
static struct record_item *item_of(const char *key)
{
	size_t i = 0;

	while (i + 1 < ITEMS_MAX && known[i].key != NULL && strcmp(known[i].key, key) != 0)
		i++;
	if (known[i].key == NULL)
		known[i].key = strdup(key);
	return &known[i];
}

static void print_value(const struct bytes *value)
{
	const char *at = value->n > 0 ? strstr(value->at, IS) : NULL;

	at = at != NULL ? at + sizeof(IS) - 1 : "";
	printf("=%.*s", (int)strcspn(at, "\""), at);
}

static void carry_out(const char *verb, char *rest)
{
	bool is_put = strcmp(verb, "put") == 0, is_get = strcmp(verb, "get") == 0;
	struct record_item items[ITEMS_MAX];
	struct record_item *of[ITEMS_MAX];
	struct baton_call call = new_call();
	size_t n = 0;

	for (char *word; n < ITEMS_MAX && (word = strtok_r(NULL, " \n", &rest)) != NULL; n++) {
		of[n] = item_of(word);
		items[n] = (struct record_item){.key = of[n]->key, .version = of[n]->version};
		const char *value = is_put ? strtok_r(NULL, " \n", &rest) : NULL;

		if (value != NULL)
			bytes_print(&items[n].value, VALUE "%s\"}", ++n_written, value);
		if (is_get)
			items[n].version.n = 0; /* so that it tells the value */
	}
	if (is_put)
		adapter->put(lane, &call, items, n);
	else if (is_get)
		adapter->get(lane, &call, items, n, true);
	else
		adapter->drop(lane, &call, items, n);
	for (size_t i = 0; i < n; i++) {
		if (items[i].outcome == BATON_OUTCOME_OK && (is_put || is_get))
			of[i]->version = items[i].version;
		printf("%s%s", i > 0 ? " " : "", words[items[i].outcome]);
		if (is_get)
			print_value(&items[i].value);
		bytes_done(&items[i].value);
	}
	printf(": %s\n", call.error.text);
}

static void set_limit(const char *seconds)
{
	limit_s = seconds != NULL ? (unsigned)strtoul(seconds, NULL, 10) : limit_s;
	printf("%u s\n", limit_s);
}

int main(int argc, char **argv)
{
	char line[1024];

	if (argc != 3 || open_lane(argv[1], argv[2]) != 0)
		return 2;
	while (fgets(line, sizeof(line), stdin) != NULL) {
		char *rest = NULL;
		const char *verb = strtok_r(line, " \n", &rest);

		if (verb == NULL)
			continue;
		if (strcmp(verb, "limit") == 0)
			set_limit(strtok_r(NULL, " \n", &rest));
		else
			carry_out(verb, rest);
		(void)fflush(stdout);
	}
	return 0;
}
