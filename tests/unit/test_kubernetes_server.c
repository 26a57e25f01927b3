/*
 * test_kubernetes_server.c: what the Kubernetes driver does where an API server, or what stands
 * between, misbehaves at just the wrong moment: answers that get lost, watches that end, clocks
 * that jump. What answers show, and what they are for, is in test_kubernetes_news.c.
 */
#include "kube_world.h"

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
	kube_expiry_note(w->store, key, &l, clock_boot_ns() - seconds * CLOCK_NS_PER_S, false);
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
	kube_expiry_forget(w->store, "\x01"
				     "baton--p-1");
	see_before(w, lease, 50);
	sweep(w);
	assert_int_equal(count(w, "baton--p-1"), 0);
	kube_expiry_forget(w->store, "\x01"
				     "baton--p-1");
	see_before(w, lease, 61);
	sweep(w);
	assert_int_equal(count(w, "baton--p-1 HTTP/1.1 {\"preconditions\":{\"resourceVersion\":"
				  "\"11\"}}"),
			 1);
	/* What is gone is forgotten. */
	RULES(w, {.says = "for=sweep", .status = 200, .answer = LIST("")});
	sweep(w);
	assert_int_equal(store_of(w)->expiries.n, 0);
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

/* ---- releases ---- */

/* A batch of them is on its way at once; each has an outcome of its own. */
static void test_releases(void **state)
{
	static const char *const names[] = {"e1", "e2", "e3", "e4"};
	struct world *w = *state;
	struct baton_call call = in_ms(LATER_MS);
	struct baton_release list[4];

	open_store(w, "&process_lease=1");
	RULES(w, {.says = "name%3De1", .status = 200, .answer = LIST(MINE("e1"))},
	      {.says = "name%3De2", .status = 200, .answer = LIST(MINE("e2"))},
	      {.says = "name%3De3", .status = 200, .answer = LIST(OTHERS("e3"))},
	      {.says = "name%3De4", .status = 200, .answer = LIST(MINE("e4"))},
	      {.says = "leases/e2?", .status = 422, .n_times = 1, .answer = "{}"},
	      {.says = "leases/e4?", .status = 0},
	      {.says = "for=release", .status = 200, .answer = "{}"});
	for (int i = 0; i < 4; i++)
		list[i] = (struct baton_release){
			.name = names[i], .lease_id = "ab-0-1", .nonce = 7, .term = 41};
	baton_driver.release(w->lane, &call, list, 4);
	assert_int_equal(list[0].outcome, BATON_OUTCOME_OK);
	assert_int_equal(list[1].outcome, BATON_OUTCOME_OK); /* looked at again, and tried again */
	assert_int_equal(list[2].outcome, BATON_OUTCOME_REFUSED);
	assert_int_equal(list[3].outcome, BATON_OUTCOME_UNKNOWN);
	assert_int_equal(count(w, "for=release"), 4);
	assert_int_equal(count(w, "name%3D"), 5);
	assert_true(web_server_connections(w->server) >= 4);
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
	kube_expiry_note(w->store, "f", &l, clock_boot_ns(), false);
	kube_lease_done(&l);
	assert_int_equal(wait_ms(w, LATER_MS), 0); /* woken */
	assert_int_equal(wait_ms(w, LATER_MS), 1);
	assert_true(clock_boot_ns() - began_ns < LATER_MS * CLOCK_NS_PER_MS);
}

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

	assert_int_equal(kube_fetch_lease(w->lane, &call, "e", &l), BATON_OUTCOME_OK);
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

/* How many requests said the one before the first that said the other. */
static unsigned count_before(struct world *w, const char *says, const char *other)
{
	char *end = strstr(w->heard, other);
	unsigned n;

	if (end == NULL)
		return 0;
	*end = '\0';
	n = count(w, says);
	*end = other[0];
	return n;
}

/* The label goes off before the last claim does, and stays off while the watch lags behind. */
static void test_pod_label_release(void **state)
{
	struct world *w = *state;
	struct baton_call call;
	struct baton_release e = {.name = "e", .lease_id = "ab-0-1", .nonce = 7, .term = 41};
	struct baton_release f = {.name = "f", .lease_id = "ab-0-1", .nonce = 7, .term = 41};

	open_store(w, "&pod_label=role&pod=p");
	kube_note_use(w->store, w->lease.id, "e");
	assert_int_equal(publish(w, "e"), BATON_OUTCOME_FAILED);
	RULES(w, {.says = "watch=1", .status = 200, .answer = "", .after = WEB_STAYS_OPEN},
	      {.says = "for=watch", .status = 200, .answer = LIST(MINE("e") "," MINE("f"))},
	      {.says = "for=release", .status = 500, .answer = "{}", .n_times = 2},
	      {.says = "for=release", .status = 200, .answer = "{}"},
	      {.says = "\"standby\"", .status = 500, .answer = "{}", .n_times = 1},
	      {.says = "pods/p", .status = 200, .answer = "{}"});
	assert_int_equal(baton_driver.watch_add(w->watch, "e", 1), BATON_OK);
	assert_int_equal(baton_driver.watch_add(w->watch, "f", 2), BATON_OK);
	assert_int_equal(wait_ms(w, LATER_MS), 2);
	kube_beat(w->watch, clock_boot_ns());
	assert_int_equal(count(w, "\"role\":\"leader\""), 1);
	call = in_ms(LATER_MS);
	baton_driver.release(w->lane, &call, &e, 1); /* another one is led on */
	assert_int_equal(count(w, "for=release"), 1);
	assert_int_equal(count(w, "\"role\":\"standby\""), 0);
	call = in_ms(LATER_MS);
	baton_driver.release(w->lane, &call, &f, 1); /* the label can't be set: that is no reason */
	assert_int_equal(count(w, "for=release"), 2);
	assert_int_equal(count(w, "\"role\":\"standby\""), 1);
	/* As after a failure: the claims are still there, and the process leads no more. */
	w->lane->label_ns = 0;
	w->heard[0] = '\0';
	call = in_ms(LATER_MS);
	baton_driver.release(w->lane, &call, &f, 1);
	assert_int_equal(f.outcome, BATON_OUTCOME_OK);
	assert_int_equal(count_before(w, "\"role\":\"standby\"", "for=release"), 1);
	kube_beat(w->watch, clock_boot_ns() + 11 * CLOCK_NS_PER_S);
	assert_int_equal(count(w, "\"role\":\"leader\""), 0);
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
	assert_int_equal(store_of(w)->expiries.n, 0);
	/* The last word of one that can't be closed. */
	kube_note_use(w->store, "ab-1-11", "e");
	RULES(w, {.says = "", .status = 500, .answer = "{}"});
	snprintf(last.id, sizeof(last.id), "ab-1-11");
	assert_int_not_equal(baton_driver.lease_close(w->lane, &call, &last), BATON_OUTCOME_OK);
	assert_non_null(store_of(w)->uses);
	call = in_ms(LATER_MS);
	call.is_last = true;
	assert_int_not_equal(baton_driver.lease_close(w->lane, &call, &last), BATON_OUTCOME_OK);
	assert_null(store_of(w)->uses);
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
	assert_int_equal(store_of(w)->expiries.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_sweep),
		TEST(test_no_memory),
		TEST(test_releases),
		TEST(test_lost_publication),
		TEST(test_silent_watch),
		TEST(test_outage),
		TEST(test_refused_watch),
		TEST(test_wake),
		TEST(test_lingering_plugin),
		TEST(test_early_plugin),
		TEST(test_pod_label),
		TEST(test_pod_label_release),
		TEST(test_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
