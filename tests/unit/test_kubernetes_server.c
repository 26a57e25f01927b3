/*
 * test_kubernetes_server.c: what the Kubernetes driver does where an API server, or what stands
 * between, misbehaves at just the wrong moment: answers that get lost, watches that end, clocks
 * that jump. The server is one that says what a test has written down (web_server.h).
 */
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

static struct rule *find_rule(struct world *w, const char *said)
{
	for (struct rule *r = w->rules; r < w->rules + RULES_MAX && r->says != NULL; r++)
		if (strstr(said, r->says) != NULL && (r->n_times == 0 || r->n < r->n_times))
			return r;
	return NULL;
}

static enum web_after answer(void *arg, const char *request, char *out, size_t size)
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

static void set_rules(struct world *w, const struct rule *rules, size_t n)
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
static unsigned count(struct world *w, const char *says)
{
	unsigned n = 0;

	pthread_mutex_lock(&w->lock);
	for (const char *at = w->heard; (at = strstr(at, says)) != NULL; at++)
		n++;
	pthread_mutex_unlock(&w->lock);
	return n;
}

/* ---- the store ---- */

static const char *path_of(const struct world *w, const char *name)
{
	static char path[100];

	snprintf(path, sizeof(path), "%s/%s", w->folder, name);
	return path;
}

static void write_file(const struct world *w, const char *name, const char *text)
{
	FILE *file = fopen(path_of(w, name), "we");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void open_store(struct world *w, const char *options)
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

static int setup(void **state)
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

static int teardown(void **state)
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

static struct kube_store *store_of(struct world *w)
{
	return w->store;
}

static struct baton_call in_ms(uint64_t ms)
{
	return (struct baton_call){.deadline_ns = clock_boot_ns() + ms * CLOCK_NS_PER_MS};
}

/* What the watch lane hears within that time: how many hints, or a code. */
static int wait_ms(struct world *w, uint64_t ms)
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

/* ---- what the dead have left behind ---- */

#define LONG_AGO ",\"creationTimestamp\":\"2020-01-01T00:00:00Z\",\"labels\":{\"baton/process\":"
#define OF_LEASE LONG_AGO "\"lease\"}"
#define OF_DEAD LONG_AGO "\"lease\"},\"annotations\":{\"baton/dead\":\"1\"}"
#define OF_PRESENCE LONG_AGO "\"presence\"}"

static void sweep(struct world *w)
{
	w->watch->sweep_ns = 1;
	kube_beat(w->watch, clock_boot_ns());
}

/* As somebody saw it some seconds ago. */
static void see_before(struct world *w, const char *text, uint64_t seconds)
{
	struct kube_lease l;
	char key[KUBE_NAME_MAX + 2];

	kube_lease_read(&l, js_parse(text, strlen(text)), 0);
	kube_process_key(js_text(js_get(l.object, "metadata"), "name"), key);
	kube_see(w->store, key, &l, clock_boot_ns() - seconds * CLOCK_NS_PER_S, false);
	kube_lease_done(&l);
}

/* S1: whatever the server's clock says, a process lease goes only if it is over by our own. */
static void test_sweep(void **state)
{
	static const char lease[] = LEASE("baton--p-1", "11", OF_LEASE, HELD("60"));
	struct world *w = *state;

	open_store(w, "");
	RULES(w, {.says = "labelSelector=baton%2Fcandidate", .status = 200, .answer = LIST("")},
	      {.says = "labelSelector=baton%2Fprocess",
	       .status = 200,
	       .answer = LIST(LEASE("baton--p-1", "11", OF_LEASE, HELD("60")) "," LEASE(
		       "baton--p-2", "12", OF_DEAD,
		       HELD("60")) "," LEASE("baton--p-3", "13", OF_PRESENCE,
					     HELD("60")) "," LEASE("baton--p-4", "14", OF_PRESENCE,
								   HELD("2000000000")))},
	      {.says = "DELETE", .status = 200, .answer = "{}"});
	sweep(w);
	assert_int_equal(count(w, "DELETE"), 2);
	assert_int_equal(count(w, "baton--p-1"), 0);
	assert_int_equal(count(w, "baton--p-2 HTTP/1.1 {\"preconditions\":{\"resourceVersion\":"
				  "\"12\"}}"),
			 1);
	assert_int_equal(count(w, "baton--p-3"), 1);
	/* It was seen like that before, but not for long enough. */
	kube_unsee(w->store, "\x01"
			     "baton--p-1");
	see_before(w, lease, 50);
	sweep(w);
	assert_int_equal(count(w, "baton--p-1"), 0);
	kube_unsee(w->store, "\x01"
			     "baton--p-1");
	see_before(w, lease, 61);
	sweep(w);
	assert_int_equal(count(w, "baton--p-1 HTTP/1.1 {\"preconditions\":{\"resourceVersion\":"
				  "\"11\"}}"),
			 1);
	/* What is gone is forgotten. */
	RULES(w, {.says = "for=sweep", .status = 200, .answer = LIST("")});
	sweep(w);
	assert_int_equal(store_of(w)->n_sights, 0);
}

/* ---- requests ---- */

/* S9: what there was no memory to say is not sent. */
static void test_no_memory(void **state)
{
	struct world *w = *state;
	struct kube_call calls[3] = {{.method = "PATCH", .type = KUBE_MERGE},
				     {.method = "PATCH", .type = KUBE_MERGE},
				     {.method = "PATCH", .type = KUBE_MERGE}};
	struct baton_call call = in_ms(LATER_MS);

	open_store(w, "");
	RULES(w, {.says = "PATCH", .status = 200, .answer = "{}"});
	for (int i = 0; i < 3; i++) {
		kube_path(w->store, &calls[i], "e", "?i=%d", i);
		bytes_print(&calls[i].body, "{\"i\":%d}", i);
	}
	calls[1].body.has_failed = true;
	assert_false(kube_call_all(w->lane, &call, calls, 3));
	assert_int_equal(calls[0].outcome, BATON_OUTCOME_OK);
	assert_int_equal(calls[1].outcome, BATON_OUTCOME_FAILED);
	assert_int_equal(calls[1].code, BATON_E_MEMORY);
	assert_int_equal(calls[2].outcome, BATON_OUTCOME_OK);
	assert_int_equal(count(w, "PATCH"), 2);
	assert_int_equal(count(w, "{\"i\":1}"), 0);
	for (int i = 0; i < 3; i++)
		kube_call_done(&calls[i]);
}

/* ---- candidates ---- */

static int publish(struct world *w, const char *name)
{
	struct baton_call call = in_ms(LATER_MS);
	struct baton_publication p = {.name = name, .profile.metadata = ""};

	baton_driver.publish(w->lane, &call, &w->lease, &p, 1);
	return p.outcome;
}

/* A candidate whose first publication was carried out, but not answered, is shown, too. */
static void test_lost_publication(void **state)
{
	struct world *w = *state;
	struct baton_call call = in_ms(LATER_MS);

	open_store(w, "");
	RULES(w, {.says = "for=presence", .status = 200, .answer = "{}"},
	      {.says = "for=publish", .n_times = 1},
	      {.says = "for=publish", .status = 200, .n_times = 1, .answer = "{}"},
	      {.says = "for=publish", .status = 201, .answer = "{}"},
	      {.says = "DELETE", .status = 200, .answer = "{}"});
	assert_int_equal(publish(w, "e"), BATON_OUTCOME_UNKNOWN);
	assert_int_equal(publish(w, "e"), BATON_OUTCOME_OK);
	unsigned before = count(w, "for=presence");

	kube_beat(w->watch, clock_boot_ns() + w->lease.ttl_ns);
	assert_int_equal(count(w, "for=presence"), before + 1);
	/* ... also when another one has gone. */
	assert_int_equal(publish(w, "f"), BATON_OUTCOME_OK);
	assert_int_equal(publish(w, "f"), BATON_OUTCOME_OK);
	assert_int_equal(baton_driver.withdraw(w->lane, &call, &w->lease, "f"), BATON_OUTCOME_OK);
	assert_int_equal(count(w, "/baton--p-ab?for=withdraw"), 0);
	before = count(w, "for=presence");
	kube_beat(w->watch, clock_boot_ns() + 2 * w->lease.ttl_ns);
	assert_int_equal(count(w, "for=presence"), before + 1);
	assert_int_equal(baton_driver.withdraw(w->lane, &call, &w->lease, "e"), BATON_OUTCOME_OK);
	assert_int_equal(count(w, "/baton--p-ab?for=withdraw"), 1);
}

/* ---- the watch ---- */

/* L1, L2: what is due is told at once, and an end when it is one, though nothing is heard. */
static void test_silent_watch(void **state)
{
	static const char other[] = LEASE("f", "70", "", HELD("1"));
	struct world *w = *state;
	uint64_t began_ns = clock_boot_ns();
	struct kube_lease l;

	open_store(w, "");
	RULES(w, {.says = "watch=1", .status = 200, .answer = "", .after = WEB_STAYS_OPEN},
	      {.says = "for=watch",
	       .status = 200,
	       .answer = LIST(LEASE("e", "70", "", HELD("1")))});
	assert_int_equal(baton_driver.watch_add(w->watch, "e", 1), BATON_OK);
	assert_int_equal(wait_ms(w, LATER_MS), 1);
	assert_int_equal(wait_ms(w, LATER_MS), 1);
	assert_true(clock_boot_ns() - began_ns < LATER_MS * CLOCK_NS_PER_MS);
	/* What another lane has seen ends, too. */
	assert_int_equal(baton_driver.watch_add(w->watch, "f", 2), BATON_OK);
	while (wait_ms(w, SOON_MS) > 0)
		;
	kube_lease_read(&l, js_parse(other, strlen(other)), 0);
	kube_see(w->store, "f", &l, clock_boot_ns(), false);
	kube_lease_done(&l);
	assert_int_equal(wait_ms(w, LATER_MS), 0); /* woken */
	assert_int_equal(wait_ms(w, LATER_MS), 1);
	assert_true(clock_boot_ns() - began_ns < LATER_MS * CLOCK_NS_PER_MS);
}

#define EVENT "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"91\"}}}\n"

/* L4: a watch that has worked is no sign that the server is there. */
static void test_outage(void **state)
{
	struct world *w = *state;

	open_store(w, "");
	RULES(w, {.says = "watch=1", .status = 200, .answer = EVENT, .after = WEB_CLOSES},
	      {.says = "for=watch", .status = 200, .answer = LIST("")});
	assert_int_equal(baton_driver.watch_add(w->watch, "e", 1), BATON_OK);
	assert_int_equal(wait_ms(w, LATER_MS), 1);
	assert_true(wait_ms(w, LATER_MS) < 0);
	RULES(w, {.says = "GET"});
	for (int i = 0; i < 10; i++)
		assert_true(wait_ms(w, 50) <= 0); /* nobody is sent to look */
	assert_in_range(count(w, "GET"), 1, 4);
	assert_in_range(w->watch->n_tries, 2, 4);
	/* Another lane is answered: that ends the longest rest. */
	w->watch->retry_ns = clock_boot_ns() + LATER_MS * CLOCK_NS_PER_MS;
	RULES(w, {.says = "watch=1", .status = 200, .answer = EVENT, .after = WEB_STAYS_OPEN},
	      {.says = "for=watch", .status = 200, .answer = LIST("")},
	      {.says = "for=look", .status = 200, .answer = LIST("")});
	struct baton_call call = in_ms(LATER_MS);
	struct kube_lease l = {.object = NULL};

	assert_int_equal(kube_look_again(w->lane, &call, "e", &l), BATON_OUTCOME_OK);
	kube_lease_done(&l);
	assert_int_equal(wait_ms(w, LATER_MS), 1); /* what was seen is news */
	assert_int_equal(wait_ms(w, LATER_MS), 0);
	assert_int_equal(wait_ms(w, LATER_MS), 1);
	while (w->watch->n_tries != 0)
		assert_int_equal(wait_ms(w, SOON_MS), 0);
}

/* L4: nor are watches that end as soon as they begin opened all the time. */
static void test_refused_watch(void **state)
{
	struct world *w = *state;

	open_store(w, "");
	RULES(w, {.says = "watch=1", .status = 403, .answer = "{}"},
	      {.says = "for=watch", .status = 200, .answer = LIST("")});
	assert_int_equal(baton_driver.watch_add(w->watch, "e", 1), BATON_OK);
	while (w->watch->n_tries < 2)
		(void)wait_ms(w, LATER_MS);
	for (int i = 0; i < 12; i++)
		(void)wait_ms(w, 50);
	assert_in_range(count(w, "watch=1"), 1, 4);
}

/* L7: nobody who wakes it waits for a server that is silent. */
static void test_wake(void **state)
{
	struct world *w = *state;
	uint64_t began_ns = clock_boot_ns();

	open_store(w, "");
	RULES(w, {.says = "HTTP", .status = 0, .after = WEB_STAYS_OPEN});
	assert_int_equal(baton_driver.watch_add(w->watch, "e", 1), BATON_OK);
	baton_driver.watch_wake(w->watch);
	assert_int_equal(wait_ms(w, LATER_MS), 0);
	assert_true(clock_boot_ns() - began_ns < 4 * CLOCK_NS_PER_S);
	assert_int_equal(w->watch->n_tries, 0); /* no fault of the server's */
	/* Nor while it shows that it lives. */
	RULES(w, {.says = "for=publish", .status = 200, .answer = "{}"},
	      {.says = "for=presence", .status = 200, .answer = "{}", .n_times = 1},
	      {.says = "for=presence", .status = 0, .after = WEB_STAYS_OPEN});
	assert_int_equal(publish(w, "e"), BATON_OUTCOME_OK);
	baton_driver.watch_wake(w->watch);
	began_ns = clock_boot_ns();
	kube_beat(w->watch, began_ns + w->lease.ttl_ns);
	assert_int_equal(count(w, "for=presence"), 2);
	assert_true(clock_boot_ns() - began_ns < 10 * CLOCK_NS_PER_S);
}

/* ---- plugins ---- */

/* L7: one that has said all and doesn't end is waited for, but not past a call's deadline. */
static void test_lingering_plugin(void **state)
{
	struct world *w = *state;
	struct baton_call call = in_ms(SOON_MS);
	uint64_t began_ns = clock_boot_ns();
	char text[300];

	open_store(w, "");
	snprintf(text, sizeof(text),
		 "#!/bin/sh\necho '{\"status\":{\"token\":\"t\"}}'\nexec >&-\ni=0\n"
		 "until [ -e %s ] || [ $i -ge 300 ]; do sleep 0.1; i=$((i + 1)); done\n",
		 path_of(w, "go"));
	write_file(w, "plugin", text);
	assert_int_equal(chmod(path_of(w, "plugin"), 0700), 0);
	store_of(w)->config.exec = json_pack("{s:s}", "command", path_of(w, "plugin"));
	assert_int_equal(kube_plugin_run(w->store, &call), -1);
	assert_int_equal(call.error.code, BATON_E_TIMEOUT);
	assert_true(clock_boot_ns() - began_ns < LATER_MS * CLOCK_NS_PER_MS);
	write_file(w, "go", "");
	call = in_ms(LATER_MS);
	assert_int_equal(kube_plugin_run(w->store, &call), 0);
	assert_string_equal(store_of(w)->plugin.token, "t");
	/* Another that never ends: with its store it does. */
	unlink(path_of(w, "go"));
	store_of(w)->plugin.is_known = false;
	call = in_ms(SOON_MS);
	assert_int_equal(kube_plugin_run(w->store, &call), -1);
}

static char *write_plugin(struct world *w, const char *text)
{
	static char path[100];

	write_file(w, "plugin", text);
	snprintf(path, sizeof(path), "%s", path_of(w, "plugin"));
	assert_int_equal(chmod(path, 0700), 0);
	return path;
}

/* L6: nobody waits for another credential as long as the one that there is is good. */
static void test_early_plugin(void **state)
{
	struct world *w = *state;
	struct baton_call call = in_ms(LATER_MS);
	struct kube_plugin *p;
	char text[300];

	open_store(w, "");
	p = &store_of(w)->plugin;
	store_of(w)->config.exec =
		json_pack("{s:s}", "command",
			  write_plugin(w, "#!/bin/sh\necho '{\"status\":{\"token\":\"old\"}}'\n"));
	assert_int_equal(kube_plugin_run(w->store, &call), 0);
	assert_string_equal(p->token, "old");
	/* It ends soon, and the plugin takes its time. */
	snprintf(text, sizeof(text),
		 "#!/bin/sh\ni=0\n"
		 "until [ -e %s ] || [ $i -ge 300 ]; do sleep 0.1; i=$((i + 1)); done\n"
		 "echo '{\"status\":{\"token\":\"new\"}}'\n",
		 path_of(w, "go"));
	write_plugin(w, text);
	p->until_ns = clock_boot_ns();
	p->end_ns = p->until_ns + 30 * CLOCK_NS_PER_S;
	for (int i = 0; i < 3; i++) {
		uint64_t began_ns = clock_boot_ns();

		call = in_ms(LATER_MS);
		assert_int_equal(kube_plugin_run(w->store, &call), 0);
		assert_true(clock_boot_ns() - began_ns < 5 * CLOCK_NS_PER_S);
		assert_string_equal(p->token, "old");
		assert_true(p->pid > 0);
	}
	/* What it says is picked up by who comes next. */
	write_file(w, "go", "");
	while (strcmp(p->token, "new") != 0 && clock_boot_ns() < p->end_ns)
		assert_int_equal(kube_plugin_run(w->store, &call), 0);
	assert_string_equal(p->token, "new");
	/* One that fails isn't started all the time, and does no harm until the end. */
	write_plugin(w, "#!/bin/sh\necho >>\"${0%/*}/go\"\nexit 1\n");
	unlink(path_of(w, "go"));
	p->until_ns = clock_boot_ns();
	p->end_ns = p->until_ns + 30 * CLOCK_NS_PER_S;
	while (p->retry_ns < p->until_ns && clock_boot_ns() < p->end_ns)
		assert_int_equal(kube_plugin_run(w->store, &call), 0);
	for (int i = 0; i < 5; i++)
		assert_int_equal(kube_plugin_run(w->store, &call), 0);
	struct stat file;

	assert_int_equal(stat(path_of(w, "go"), &file), 0);
	assert_int_equal(file.st_size, 1);
	p->end_ns = clock_boot_ns();
	call = in_ms(LATER_MS);
	assert_int_equal(kube_plugin_run(w->store, &call), -1);
	assert_int_equal(call.error.code, BATON_E_DENIED);
}

/* ---- the pod's label ---- */

#define MINE(name) LEASE(name, "70", CLAIM("ab-0-1", "me"), BY("me"))
#define OTHERS(name) LEASE(name, "71", CLAIM("cd-0-1", "you"), BY("you"))

/* It says whether this process leads any of its elections, whichever was seen last. */
static void test_pod_label(void **state)
{
	struct world *w = *state;

	open_store(w, "&pod_label=role&pod=p");
	kube_note_use(w->store, w->lease.id, "e");
	assert_int_equal(publish(w, "e"), BATON_OUTCOME_FAILED); /* so it is known who we are */
	RULES(w, {.says = "watch=1", .status = 200, .answer = "", .after = WEB_STAYS_OPEN},
	      {.says = "for=watch", .status = 200, .answer = LIST(MINE("e") "," OTHERS("f"))},
	      {.says = "PATCH", .status = 403, .answer = "{}", .n_times = 1},
	      {.says = "PATCH", .status = 200, .answer = "{}"});
	assert_int_equal(baton_driver.watch_add(w->watch, "e", 1), BATON_OK);
	assert_int_equal(baton_driver.watch_add(w->watch, "f", 2), BATON_OK);
	assert_int_equal(wait_ms(w, LATER_MS), 2);
	for (int i = 0; i < 5; i++)
		assert_int_equal(wait_ms(w, 10), 0);
	assert_int_equal(count(w, "PATCH"), 1); /* not with every turn */
	kube_beat(w->watch, clock_boot_ns() + 11 * CLOCK_NS_PER_S);
	assert_int_equal(count(w, "\"role\":\"leader\""), 2);
	assert_int_equal(count(w, "\"role\":\"standby\""), 0);
	/* No more. */
	baton_driver.watch_remove(w->watch, "e", 1);
	kube_beat(w->watch, clock_boot_ns());
	assert_int_equal(count(w, "\"role\":\"standby\""), 1);
}

/* ---- what is kept ---- */

/* What is over is forgotten, and nothing else is. */
static void test_kept(void **state)
{
	struct world *w = *state;
	struct baton_call call = in_ms(LATER_MS);

	open_store(w, "");
	kube_note_use(w->store, "ab-1-4", "e");
	RULES(w, {.says = "for=look", .status = 200, .answer = LIST("")});
	struct baton_lease older = {.id = "ab-1-3", .owner = "me"};
	struct baton_lease last = {.id = "ab-1-10", .owner = "me"}; /* closed with all before */

	assert_int_equal(baton_driver.lease_close(w->lane, &call, &older), BATON_OUTCOME_OK);
	assert_non_null(store_of(w)->uses); /* a newer one is used */
	assert_int_equal(baton_driver.lease_close(w->lane, &call, &last), BATON_OUTCOME_OK);
	assert_null(store_of(w)->uses);
	assert_int_equal(store_of(w)->n_sights, 0);
	/* One that isn't closed, because it was never there. */
	store_of(w)->ttl_ns = 15 * CLOCK_NS_PER_S;
	kube_note_use(w->store, "ab-2-1", "e");
	assert_int_equal(baton_driver.watch_add(w->watch, "e", 1), BATON_OK);
	baton_driver.watch_remove(w->watch, "e", 1);
	assert_non_null(store_of(w)->uses);
	store_of(w)->uses->left_ns -= 31 * CLOCK_NS_PER_S;
	kube_leave_use(w->store, "f");
	assert_null(store_of(w)->uses);
	/* A process lease that has gone while nobody listened. */
	see_before(w, LEASE("baton--p-1", "11", OF_LEASE, HELD("60")), 0);
	RULES(w, {.says = "watch=1", .status = 200, .answer = "", .after = WEB_STAYS_OPEN},
	      {.says = "for=watch", .status = 200, .answer = LIST("")});
	assert_int_equal(baton_driver.watch_add(w->watch, "e", 1), BATON_OK);
	assert_int_equal(baton_driver.watch_add(w->watch, "f", 2), BATON_OK);
	assert_int_equal(wait_ms(w, LATER_MS), 2);
	assert_int_equal(store_of(w)->n_sights, 0);
}

/* ---- news in answers ---- */

/* Ours, with an annotation more. */
#define MINE_WITH(rv, key, text)                                                               \
	LEASE("e", rv,                                                                         \
	      ",\"annotations\":{\"baton/term\":\"41\",\"baton/claim\":\"ab-0-1 7 41\",\"" key \
	      "\":\"" text "\",\"baton/leader\":\"{\\\"leader\\\":\\\"me\\\",\\\"nonce\\\":"   \
	      "\\\"7\\\"}\"}",                                                                 \
	      BY("me"))

#define MINE_AT(rv) LEASE("e", rv, CLAIM("ab-0-1", "me"), BY("me"))

/* Leads, and the watch has shown it; all hints are taken. */
static void lead(struct world *w)
{
	open_store(w, "");
	kube_note_use(w->store, w->lease.id, "e");
	RULES(w, {.says = "watch=1", .status = 200, .answer = EVENT, .after = WEB_STAYS_OPEN},
	      {.says = "for=watch", .status = 200, .answer = LIST(MINE("e"))});
	assert_int_equal(baton_driver.watch_add(w->watch, "e", 1), BATON_OK);
	assert_int_equal(wait_ms(w, LATER_MS), 1);
	while (wait_ms(w, SOON_MS) > 0)
		;
}

static void renew(struct world *w)
{
	struct baton_call call = in_ms(LATER_MS);
	uint32_t n_held;

	assert_int_equal(baton_driver.lease_renew(w->lane, &call, &w->lease, &n_held),
			 BATON_OUTCOME_OK);
}

/* Hints until nothing more is to be heard. */
static int hints_of(struct world *w)
{
	int n = 0;

	for (int i = 0; i < 3; i++)
		n += wait_ms(w, SOON_MS / 3);
	return n;
}

/* A watch that stands, and shows nothing: not even our own renewals. */
static void test_lagging_watch(void **state)
{
	struct world *w = *state;

	lead(w);
	RULES(w, {.says = "watch=1", .status = 200, .answer = EVENT, .after = WEB_STAYS_OPEN},
	      {.says = "for=watch", .status = 200, .answer = LIST(MINE("e"))},
	      {.says = "for=renew", .status = 200, .n_times = 1, .answer = MINE("e")},
	      {.says = "for=renew", .status = 200, .answer = MINE_AT("92")});
	w->watch->patience_ns = 200 * CLOCK_NS_PER_MS;
	renew(w); /* nothing that it hasn't shown */
	assert_int_equal(hints_of(w), 0);
	assert_int_equal(count(w, "watch=1"), 0);
	renew(w);
	assert_true(store_of(w)->owed_ns != 0);
	int rc = 0;

	for (int i = 0; i < 20 && rc == 0; i++)
		rc = wait_ms(w, SOON_MS);
	assert_int_equal(rc, BATON_E_UNAVAILABLE);
	assert_int_equal(w->watch->patience_ns, 400 * CLOCK_NS_PER_MS); /* L4 */
	/* The next one looks first, and nothing is owed any more. */
	while (count(w, "watch=1") == 0)
		(void)wait_ms(w, SOON_MS);
	(void)hints_of(w);
	(void)hints_of(w);
	assert_int_equal(count(w, "watch=1"), 1);
	assert_int_equal(w->watch->patience_ns, 400 * CLOCK_NS_PER_MS);
	/* What comes in time is no reason, whatever was before. */
	RULES(w, {.says = "for=renew", .status = 200, .answer = MINE_AT("94")});
	renew(w);
	assert_true(store_of(w)->owed_ns != 0);
	assert_true(kube_shown(w->store, 93) == 0);
	assert_true(kube_shown(w->store, 94) > 0);
	(void)hints_of(w);
	(void)hints_of(w);
	assert_int_equal(count(w, "GET"), 0);
}

/* Bookmarks come every minute, where they come: one that stops to send them is broken. */
static void test_bookmarks(void **state)
{
	struct world *w = *state;

	open_store(w, "");
	RULES(w,
	      {.says = "watch=1",
	       .status = 200,
	       .answer = "{\"type\":\"MODIFIED\",\"object\":" MINE_AT("91") "}\n",
	       .after = WEB_STAYS_OPEN},
	      {.says = "for=watch", .status = 200, .answer = LIST("")});
	assert_int_equal(baton_driver.watch_add(w->watch, "e", 1), BATON_OK);
	while (store_of(w)->shown_rv != 91)
		(void)wait_ms(w, SOON_MS);
	(void)hints_of(w);
	w->watch->web.heard_ns -= 151 * CLOCK_NS_PER_S;
	assert_int_equal(wait_ms(w, SOON_MS), 0); /* this server sends none */
	web_watch_break(&w->watch->web);
	RULES(w, {.says = "watch=1", .status = 200, .answer = EVENT, .after = WEB_STAYS_OPEN},
	      {.says = "for=watch", .status = 200, .answer = LIST("")});
	assert_int_equal(wait_ms(w, LATER_MS), 1);
	while (!w->watch->has_bookmarks)
		assert_int_equal(wait_ms(w, SOON_MS), 0);
	w->watch->web.heard_ns -= 151 * CLOCK_NS_PER_S;
	assert_int_equal(wait_ms(w, LATER_MS), BATON_E_UNAVAILABLE);
	assert_false(w->watch->has_bookmarks);
}

/* An answer that shows an order or a pause before the watch does: who leads is told all the same,
 * because the watch's event is no news any more. */
static void test_news_in_answers(void **state)
{
	struct world *w = *state;
	struct baton_call call = in_ms(LATER_MS);
	struct baton_order order = {.id = 1, .term = 40, .kind = BATON_ORDER_RESIGN};

	lead(w);
	RULES(w,
	      {.says = "for=renew",
	       .status = 200,
	       .n_times = 1,
	       .answer = MINE_WITH("72", "baton/order", "{}")},
	      {.says = "for=renew",
	       .status = 200,
	       .n_times = 1,
	       .answer = MINE_WITH("73", "baton/order", "{}")},
	      {.says = "for=renew", .status = 200, .answer = MINE_WITH("74", "baton/paused", "1")},
	      {.says = "for=look", .status = 200, .n_times = 1, .answer = LIST(MINE("e"))},
	      {.says = "for=look", .status = 200, .answer = LIST("")});
	renew(w);
	assert_int_equal(hints_of(w), 1);
	renew(w); /* nothing has changed */
	assert_int_equal(hints_of(w), 0);
	renew(w);
	assert_int_equal(hints_of(w), 1);
	/* By a look that was for something else. */
	assert_int_equal(baton_driver.order(w->lane, &call, "e", &order), BATON_OUTCOME_REFUSED);
	assert_int_equal(hints_of(w), 1);
	assert_int_equal(baton_driver.order(w->lane, &call, "e", &order), BATON_OUTCOME_REFUSED);
	assert_int_equal(hints_of(w), 1);
}

/* ---- campaigns ---- */

static struct baton_campaign campaign(struct world *w, const char *name)
{
	static struct baton_record record;
	struct baton_call call = in_ms(LATER_MS);
	struct baton_campaign c = {
		.name = name, .nonce = 7, .profile.metadata = "", .record = &record};

	baton_driver.campaign(w->lane, &call, &w->lease, &c, 1);
	return c;
}

/* S3: the term of a Lease that is made anew is that Lease's own: where the store was before it was
 * made may be the term of one that came and went meanwhile. */
static void test_new_lease(void **state)
{
	struct world *w = *state;

	open_store(w, "");
	RULES(w, {.says = "GET", .status = 200, .answer = LIST("")},
	      {.says = "POST", .status = 201, .answer = LEASE("e", "95", "", "")},
	      {.says = "PATCH", .status = 200, .answer = MINE("e")});
	struct baton_campaign c = campaign(w, "e");

	assert_int_equal(c.outcome, BATON_OUTCOME_OK);
	assert_int_equal(c.term, 96);
	assert_int_equal(count(w, "POST"), 1);
	assert_int_equal(count(w, "\"spec\":{}"), 1); /* nobody's yet */
	assert_int_equal(count(w, "\"resourceVersion\":\"95\""), 1);
	assert_int_equal(count(w, "baton/claim\":\"ab-0-1 7 96"), 1);
	assert_int_equal(count(w, "GET"), 1);
	/* What can't be known to have been made is no claim. */
	RULES(w, {.says = "GET", .status = 200, .answer = LIST("")}, {.says = "POST"});
	c = campaign(w, "f");
	assert_int_equal(c.outcome, BATON_OUTCOME_FAILED);
	assert_int_equal(count(w, "POST"), 1);
	/* Somebody else has made it. */
	RULES(w, {.says = "POST", .status = 409, .answer = "{}"},
	      {.says = "GET", .status = 200, .n_times = 1, .answer = LIST("")},
	      {.says = "GET", .status = 200, .answer = LIST(OTHERS("g"))});
	c = campaign(w, "g");
	assert_int_equal(c.outcome, BATON_OUTCOME_REFUSED);
	assert_int_equal(c.record->term, 41);
	/* There is no such namespace. */
	RULES(w, {.says = "GET", .status = 200, .answer = LIST("")});
	c = campaign(w, "h");
	assert_int_equal(c.outcome, BATON_OUTCOME_FAILED);
	assert_int_equal(count(w, "POST"), 1);
}

/* ... nor does a pause begin with it. */
static void test_new_pause(void **state)
{
	struct world *w = *state;
	struct baton_call call = in_ms(LATER_MS);

	open_store(w, "");
	RULES(w, {.says = "GET", .status = 200, .answer = LIST("")},
	      {.says = "POST", .status = 201, .answer = LEASE("e", "95", "", "")});
	assert_int_equal(baton_driver.pause(w->lane, &call, "e", true), BATON_OUTCOME_OK);
	assert_int_equal(count(w, "baton/paused"), 1);
	assert_int_equal(count(w, "baton/term"), 0);
}

/* ---- claims that land late ---- */

#define FREE(name) LEASE(name, "70", ",\"annotations\":{\"baton/term\":\"40\"}", "")

static void note_claim(void *arg, const char *name, uint64_t nonce, uint64_t term)
{
	assert_string_equal(name, "e");
	assert_int_equal(nonce, 7);
	assert_int_equal(term, 41);
	++*(int *)arg;
}

/* L3: nobody else counts the claims on a process lease: as long as one may still land, they are
 * asked for with every renewal, also if its election has gone. */
static void test_late_claim(void **state)
{
	struct world *w = *state;
	struct baton_call call = in_ms(LATER_MS);
	uint32_t n_held = 0;
	int n_found = 0;

	open_store(w, "&process_lease=1");
	RULES(w, {.says = "for=open", .status = 201, .answer = "{}"},
	      {.says = "for=renew", .status = 200, .answer = "{}"},
	      {.says = "for=claims", .status = 200, .n_times = 1, .answer = LIST("")},
	      {.says = "for=claims", .status = 200, .answer = LIST(MINE("e"))},
	      {.says = "GET", .status = 200, .answer = LIST(FREE("e"))}, {.says = "for=campaign"});
	assert_int_equal(baton_driver.lease_open(w->lane, &call, &w->lease), BATON_OUTCOME_OK);
	assert_int_equal(baton_driver.lease_renew(w->lane, &call, &w->lease, &n_held),
			 BATON_OUTCOME_OK);
	assert_int_equal(n_held, 0);
	assert_int_equal(campaign(w, "e").outcome, BATON_OUTCOME_UNKNOWN);
	for (int i = 0; i < 2; i++) { /* it isn't there, and then it is */
		assert_int_equal(baton_driver.lease_renew(w->lane, &call, &w->lease, &n_held),
				 BATON_OUTCOME_OK);
		assert_int_equal(n_held, UINT32_MAX);
		assert_int_equal(
			baton_driver.claims(w->lane, &call, &w->lease, note_claim, &n_found),
			BATON_OUTCOME_OK);
		assert_int_equal(n_found, i);
	}
	store_of(w)->uses->doubt_ns = clock_boot_ns(); /* no more */
	assert_int_equal(baton_driver.lease_renew(w->lane, &call, &w->lease, &n_held),
			 BATON_OUTCOME_OK);
	assert_int_equal(n_held, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_sweep),         TEST(test_no_memory),        TEST(test_lost_publication),
		TEST(test_silent_watch),  TEST(test_outage),           TEST(test_refused_watch),
		TEST(test_wake),          TEST(test_lingering_plugin), TEST(test_pod_label),
		TEST(test_kept),          TEST(test_news_in_answers),  TEST(test_new_lease),
		TEST(test_new_pause),     TEST(test_late_claim),       TEST(test_early_plugin),
		TEST(test_lagging_watch), TEST(test_bookmarks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
