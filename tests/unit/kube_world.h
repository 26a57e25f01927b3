/*
 * kube_world.h: what the tests of the Kubernetes driver share that need a server: one that says
 * what a test has written down (web_server.h), a store on it with two of its lanes, and Leases.
 */
#ifndef BATON_TEST_KUBE_WORLD_H
#define BATON_TEST_KUBE_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/kubernetes/kube.h"
#include "web_server.h"

extern const struct baton_driver baton_driver;

#define SOON_MS 300    /* what is meant to be late */
#define LATER_MS 20000 /* what is not */

/* A request with that in its first line or in its body is answered so; the first one counts. */
struct rule {
	const char *says;
	int status; /* 0: the connection ends, without an answer */
	const char *answer;
	unsigned n_times; /* 0: always */
	enum web_after after;
	unsigned n; /* how often it was */
};

#define RULES_MAX 8

struct world {
	struct web_server *server;
	struct rule rules[RULES_MAX];
	pthread_mutex_t lock;
	char heard[65536]; /* all requests, without headers */
	char folder[40];
	void *store;
	struct kube_lane *lane, *watch;
	struct baton_lease lease;
};

/* ---- the server ---- */

static inline struct rule *find_rule(struct world *w, const char *said)
{
	for (struct rule *r = w->rules; r < w->rules + RULES_MAX && r->says != NULL; r++)
		if (strstr(said, r->says) != NULL && (r->n_times == 0 || r->n < r->n_times))
			return r;
	return NULL;
}

static inline enum web_after answer(void *arg, const char *request, char *out, size_t size)
{
	struct world *w = arg;
	char said[8192], date[64];
	time_t now = time(NULL);
	struct tm tm;

	snprintf(said, sizeof(said), "%.*s %s\n", (int)strcspn(request, "\r"), request,
		 strstr(request, "\r\n\r\n") + 4);
	strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&now, &tm));
	pthread_mutex_lock(&w->lock);
	strncat(w->heard, said, sizeof(w->heard) - strlen(w->heard) - 1);
	struct rule *r = find_rule(w, said);
	struct rule now_is = r != NULL ? *r : (struct rule){.status = 404, .answer = "{}"};

	if (r != NULL)
		r->n++;
	pthread_mutex_unlock(&w->lock);
	if (now_is.status == 0)
		return now_is.after == WEB_GOES_ON ? WEB_CLOSES : now_is.after;
	if (now_is.after == WEB_GOES_ON)
		snprintf(out, size, "HTTP/1.1 %d So\r\nDate: %s\r\nContent-Length: %zu\r\n\r\n%s",
			 now_is.status, date, strlen(now_is.answer), now_is.answer);
	else /* one piece of more */
		snprintf(out, size,
			 "HTTP/1.1 %d So\r\nDate: %s\r\nTransfer-Encoding: chunked\r\n\r\n"
			 "%zx\r\n%s\r\n",
			 now_is.status, date, strlen(now_is.answer), now_is.answer);
	return now_is.after;
}

static inline void set_rules(struct world *w, const struct rule *rules, size_t n)
{
	pthread_mutex_lock(&w->lock);
	memset(w->rules, 0, sizeof(w->rules));
	memcpy(w->rules, rules, n * sizeof(*rules));
	w->heard[0] = '\0';
	pthread_mutex_unlock(&w->lock);
}

#define RULES(w, ...)                                      \
	set_rules((w), (const struct rule[]){__VA_ARGS__}, \
		  sizeof((const struct rule[]){__VA_ARGS__}) / sizeof(struct rule))

/* How many requests there were that say so. */
static inline unsigned count(struct world *w, const char *says)
{
	unsigned n = 0;

	pthread_mutex_lock(&w->lock);
	for (const char *at = w->heard; (at = strstr(at, says)) != NULL; at++)
		n++;
	pthread_mutex_unlock(&w->lock);
	return n;
}

/* ---- the store ---- */

static inline const char *path_of(const struct world *w, const char *name)
{
	static char path[100];

	snprintf(path, sizeof(path), "%s/%s", w->folder, name);
	return path;
}

static inline void write_file(const struct world *w, const char *name, const char *text)
{
	FILE *file = fopen(path_of(w, name), "we");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static inline void open_store(struct world *w, const char *options)
{
	char text[400], url[200];
	struct baton_error err = {0};
	struct baton_store_config config = {.size = sizeof(config), .url = url};

	snprintf(text, sizeof(text),
		 "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:%u'}}]\n"
		 "users: [{name: u, user: {}}]\ncurrent-context: x\n"
		 "contexts: [{name: x, context: {cluster: c, user: u}}]\n",
		 web_server_port(w->server));
	write_file(w, "k", text);
	snprintf(url, sizeof(url), "kubernetes:?kubeconfig=%s%s", path_of(w, "k"), options);
	if (baton_driver.open(&config, &w->store, &err) != BATON_OK ||
	    baton_driver.lane_open(w->store, BATON_LANE_CAMPAIGN, (void **)&w->lane, &err) !=
		    BATON_OK ||
	    baton_driver.lane_open(w->store, BATON_LANE_WATCH, (void **)&w->watch, &err) !=
		    BATON_OK)
		fail_msg("%s", err.text);
}

static inline int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	strcpy(w->folder, "/tmp/baton-kube-XXXXXX");
	w->server = web_server_new(NULL);
	pthread_mutex_init(&w->lock, NULL);
	web_server_play(w->server, answer, w);
	w->lease = (struct baton_lease){
		.id = "ab-0-1", .ttl_ns = 15 * CLOCK_NS_PER_S, .owner = "me", .address = ""};
	*state = w;
	return w->server != NULL && mkdtemp(w->folder) != NULL ? 0 : -1;
}

static inline int teardown(void **state)
{
	struct world *w = *state;

	baton_driver.lane_close(w->lane);
	baton_driver.lane_close(w->watch);
	baton_driver.close(w->store);
	web_server_free(w->server);
	unlink(path_of(w, "k"));
	unlink(path_of(w, "plugin"));
	unlink(path_of(w, "go"));
	rmdir(w->folder);
	free(w);
	return 0;
}

static inline struct kube_store *store_of(struct world *w)
{
	return w->store;
}

static inline struct baton_call in_ms(uint64_t ms)
{
	return (struct baton_call){.deadline_ns = clock_boot_ns() + ms * CLOCK_NS_PER_MS};
}

/* What the watch lane hears within that time: how many hints, or a code. */
static inline int wait_ms(struct world *w, uint64_t ms)
{
	struct baton_call call = in_ms(ms);
	uint64_t cookies[8];

	return baton_driver.watch_wait(w->watch, &call, cookies, 8);
}

/* ---- Leases ---- */

#define LIST(items) "{\"metadata\":{\"resourceVersion\":\"90\"},\"items\":[" items "]}"
#define LEASE(name, rv, metadata, spec)                                                \
	"{\"metadata\":{\"name\":\"" name "\",\"resourceVersion\":\"" rv "\"" metadata \
	"},\"spec\":{" spec "}}"
#define HELD(seconds)                                                                    \
	"\"holderIdentity\":\"you\",\"leaseDurationSeconds\":" seconds ",\"renewTime\":" \
	"\"2026-01-01T00:00:00.000000Z\""
/* A claim of `lease`, whose owner is `who`. */
#define CLAIM(lease, who)                                                             \
	",\"annotations\":{\"baton/term\":\"41\",\"baton/claim\":\"" lease " 7 41\"," \
	"\"baton/leader\":\"{\\\"leader\\\":\\\"" who "\\\",\\\"nonce\\\":\\\"7\\\"}\"}"
#define BY(who) "\"holderIdentity\":\"" who "\",\"leaseDurationSeconds\":15"
#define MINE(name) LEASE(name, "70", CLAIM("ab-0-1", "me"), BY("me"))
#define OTHERS(name) LEASE(name, "71", CLAIM("cd-0-1", "you"), BY("you"))

#define EVENT "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"91\"}}}\n"

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
