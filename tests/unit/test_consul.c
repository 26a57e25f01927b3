/*
 * test_consul.c: the parts of the Consul driver that need no server: URLs, keys, terms, errors,
 * histories.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/consul/consul.h"

/* ---- URLs ---- */

static void test_url(void **state)
{
	struct consul_options o;
	struct baton_error err = {0};

	(void)state;
	assert_int_equal(consul_options_parse(&o, "consul://one", &err), BATON_OK);
	assert_int_equal(o.web.n_hosts, 1);
	assert_string_equal(o.web.hosts[0].port, "8500");
	assert_string_equal(o.prefix, "baton");
	assert_string_equal(o.node, "baton");
	assert_int_equal(o.ttl_min_ms, 10000);
	assert_int_equal(consul_options_parse(&o,
					      "consuls://:s%2Fcret@one:1,[::1]/"
					      "?prefix=my/app/&dc=d%26c&ns=n&partition=p"
					      "&checks=serfHealth&lock_delay=20000"
					      "&session_ttl_min=2000&server_name=s",
					      &err),
			 BATON_OK);
	assert_int_equal(o.web.n_hosts, 2);
	assert_string_equal(o.web.hosts[1].name, "::1");
	assert_string_equal(o.web.hosts[1].port, "8501");
	assert_string_equal(o.token, "s/cret");
	assert_string_equal(o.prefix, "my/app");
	assert_string_equal(o.query, "dc=d%26c&ns=n&partition=p");
	assert_string_equal(o.node, ""); /* the agent's, which has the checks */
	assert_int_equal(o.lock_delay_ms, 20000);
	assert_int_equal(o.ttl_min_ms, 2000);
}

static void test_bad_urls(void **state)
{
	static const char *const bad[] = {
		"consul:one",
		"consul://",
		"consul://one/path",
		"consul://me@one",
		"consul://me:canary@one",
		"consul://:can%20ary@one",
		"consul://:canary@one?token_file=/there",
		"consul://one?token=canary",
		"consul://one?token_file=there",
		"consul://one?prefix=",
		"consul://one?prefix=/baton",
		"consul://one?prefix=baton.candidate",
		"consul://one?prefix=a.lease/b",
		"consul://one?ca=/there",
		"consuls://one?key=/there",
		"consul://one?lock_delay=60001",
		"consul://one?lock_delay=-1",
		"consul://one?session_ttl_min=99",
		"consul://one?session_ttl_min=2s",
		"consul://one?checks=serfHealth&node=there",
		"consul://one?unheard=of",
		"consul://one?prefix",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct baton_error err = {0};
		struct consul_options o;

		assert_int_equal(consul_options_parse(&o, bad[i], &err), BATON_E_URL);
		assert_true(err.text[0] != '\0');
		assert_null(strstr(err.text, "canary"));
	}
}

/* As for Consul's own command; what stands in the URL comes first. */
static void test_environment(void **state)
{
	struct consul_options o;
	struct baton_error err = {0};

	(void)state;
	assert_int_equal(setenv("CONSUL_HTTP_TOKEN", "canary", 1), 0);
	assert_int_equal(consul_options_parse(&o, "consul://one", &err), BATON_OK);
	assert_string_equal(o.token, "canary");
	assert_int_equal(consul_options_parse(&o, "consul://:mine@one", &err), BATON_OK);
	assert_string_equal(o.token, "mine");
	assert_int_equal(setenv("CONSUL_HTTP_TOKEN_FILE", "/there", 1), 0);
	assert_int_equal(consul_options_parse(&o, "consul://one", &err), BATON_OK);
	assert_string_equal(o.token_file, "/there");
	assert_string_equal(o.token, "");
	assert_int_equal(setenv("CONSUL_HTTP_TOKEN_FILE", "there", 1), 0);
	assert_int_equal(consul_options_parse(&o, "consul://one", &err), BATON_E_URL);
	assert_int_equal(unsetenv("CONSUL_HTTP_TOKEN_FILE"), 0);
	assert_int_equal(unsetenv("CONSUL_HTTP_TOKEN"), 0);
}

/* ---- keys ---- */

static struct consul_store store_with(const char *prefix)
{
	struct consul_store s = {.web = {.wake = -1}};

	snprintf(s.options.prefix, sizeof(s.options.prefix), "%s", prefix);
	return s;
}

static void test_keys(void **state)
{
	static const char *const names[] = {"e", "a/b", "..", ".lock", "100%", "a\"b\\c", "%2F"};
	struct consul_store s = store_with("my/app");
	char name[BATON_NAME_MAX + 1];

	(void)state;
	assert_string_equal(consul_lock_key(&s, "e").text, "my/app/e/.lock");
	assert_string_equal(consul_state_key(&s, "..").text, "my/app/%2E./.baton");
	assert_string_equal(consul_tree_key(&s, "").text, "my/app/");
	assert_string_equal(consul_tree_key(&s, "a/b").text, "my/app/a%2Fb/");
	assert_string_equal(consul_candidate_key(&s, "e", "s").text, "my/app.candidate/e/s");
	assert_string_equal(consul_count_key(&s, "s").text, "my/app.lease/s");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct consul_key key = consul_lock_key(&s, names[i]);

		assert_int_equal(consul_key_read(&s, key.text, name), 'l');
		assert_string_equal(name, names[i]);
		key = consul_state_key(&s, names[i]);
		assert_int_equal(consul_key_read(&s, key.text, name), 's');
		assert_string_equal(name, names[i]);
	}
	assert_int_equal(consul_key_read(&s, "my/app/e/else", name), 0);
	assert_int_equal(consul_key_read(&s, "my/app.lease/e/.lock", name), 0);
	assert_int_equal(consul_key_read(&s, "other/e/.lock", name), 0);
	assert_int_equal(consul_key_read(&s, "my/app/e", name), 0);
}

/* ---- terms ---- */

static uint64_t native(uint64_t created, uint64_t locked)
{
	json_t *kv = json_pack("{s:I,s:I}", "CreateIndex", (json_int_t)created, "LockIndex",
			       (json_int_t)locked);
	uint64_t term = consul_native(kv);

	json_decref(kv);
	return term;
}

/* They grow when the key is locked again, and when it is made anew; and they end. */
static void test_terms(void **state)
{
	(void)state;
	assert_int_equal(native(17, 3), 17 * 4096 + 3);
	assert_true(native(17, 4) > native(17, 3));
	assert_true(native(18, 1) > native(17, CONSUL_LOCK_MAX));
	assert_true(native(18, 0) > native(17, CONSUL_LOCK_MAX + 5));
	assert_int_equal(native((uint64_t)1 << 60, 1), TERM_MAX);
}

/* ---- errors ---- */

static void judged(int status, const char *text, int code, bool is_sure)
{
	struct baton_call call = {.deadline_ns = 0};
	bool sure = !is_sure;

	assert_int_equal(consul_judge(&call, status, text, &sure), code);
	assert_int_equal(call.error.code, code);
	assert_true(sure == is_sure);
}

/* What may have been carried out is never called failed. */
static void test_errors(void **state)
{
	(void)state;
	judged(500, "No cluster leader", BATON_E_UNAVAILABLE, true);
	judged(500, "raft apply failed: leadership lost while committing log", BATON_E_UNAVAILABLE,
	       false);
	judged(500, "rpc error making call: EOF", BATON_E_UNAVAILABLE, false);
	judged(502, "", BATON_E_UNAVAILABLE, false);
	judged(429, "RPC rate limit exceeded", BATON_E_UNAVAILABLE, true);
	judged(403, "Permission denied: token lacks 'key:write'", BATON_E_DENIED, true);
	judged(403, "ACL not found", BATON_E_DENIED, true);
	judged(500, "Invalid Session TTL '1', must be between [10s=24h0m0s]", BATON_E_TIMING, true);
	judged(400, "Invalid query parameter: \"ns\" - Namespaces are a Consul Enterprise feature",
	       BATON_E_UNSUPPORTED, true);
}

static struct consul_answer answer_with(const char *text)
{
	return (struct consul_answer){.json = js_parse(text, strlen(text)), .status = 409};
}

static void test_txn_errors(void **state)
{
	struct baton_call call = {.deadline_ns = 0};
	struct consul_answer answer = answer_with(
		"{\"Errors\":[{\"OpIndex\":4,\"What\":\"failed to lock key \\\"k\\\" due to lock "
		"delay\"},{\"OpIndex\":2,\"What\":\"invalid session \\\"s\\\"\"},"
		"{\"OpIndex\":1,\"What\":\"failed to set key \\\"k\\\", index is stale\"},"
		"{\"OpIndex\":0,\"What\":\"Permission denied: no\"},7]}");
	size_t op;

	(void)state;
	assert_int_equal(consul_n_errors(&answer), 5);
	assert_int_equal(consul_error(&call, &answer, 0, &op), CONSUL_DELAYED);
	assert_int_equal(op, 4);
	assert_int_equal(consul_error(&call, &answer, 1, &op), CONSUL_NO_SESSION);
	assert_int_equal(op, 2);
	assert_int_equal(consul_error(&call, &answer, 2, &op), CONSUL_STALE);
	assert_int_equal(op, 1);
	assert_int_equal(consul_error(&call, &answer, 3, &op), CONSUL_DENIED);
	assert_int_equal(call.error.code, BATON_E_DENIED);
	assert_int_equal(consul_error(&call, &answer, 4, &op), CONSUL_STALE);
	json_decref(answer.json);
}

/* ---- history ---- */

static struct baton_leadership told[8];
static size_t n_told;

static void tell(void *arg, const struct baton_leadership *leadership)
{
	(void)arg;
	assert_true(n_told < sizeof(told) / sizeof(told[0]));
	told[n_told++] = *leadership;
}

static void read_past(struct web_past_list *list, const char *key, uint64_t made, const char *value)
{
	struct web_past_key at = {
		.key = key, .service = "consul", .made = made, .native = consul_new_native(made)};

	web_past_read(list, &at, value);
}

/* Two of ours tell of the same stranger; rubbish is left out; terms that nobody has foretold follow
 * from when the key was made, and an end knows better. */
static void test_past(void **state)
{
	struct web_past_list list = {.at = NULL};
	struct baton_record now = {.held = true, .term = 0x5001, .leader = "stranger"};
	struct baton_leadership before = {.size = sizeof(before), .term = 0x2001, .leader = "x"};
	struct baton_release r = {.name = "e", .term = 0x4002, .reason = "ordered"};
	char *first = web_past_begun(0, 0, "a", NULL);
	char *second = web_past_begun(0x3001, 0, "b", &before);
	char *third = web_past_begun(0x4001, 0, "c", &before);
	char *end = web_past_ended(&r);

	(void)state;
	read_past(&list, "p.history/e/s1-1", 1, first);
	read_past(&list, "p.history/e/s1-1.note", 2, "not by order");
	read_past(&list, "p.history/e/s1-2.end", 2, end); /* of one that is gone */
	read_past(&list, "p.history/e/s2-1", 3, second);
	read_past(&list, "p.history/e/s2-2", 3, "rubbish");
	read_past(&list, "p.history/e/s3-1", 4, third);
	read_past(&list, "p.history/e/s3-1.end", 5, end);
	read_past(&list, "p.history/e/s3-1.note", 5, "why");
	assert_false(list.has_failed);
	web_past_sort(&list);
	n_told = 0;
	web_past_tell(&list, &now, 8, tell, NULL);
	assert_int_equal(n_told, 5);
	assert_true(told[0].term == 0x5001 && told[0].ended[0] == '\0');
	assert_true(told[1].term == 0x4002 && told[1].since_ns == 4 && told[1].until_ns == 5);
	assert_string_equal(told[1].ended, "ordered");
	assert_string_equal(told[1].note, "why");
	assert_string_equal(told[1].clock, "consul 0");
	assert_true(told[2].term == 0x3001 && told[2].until_ns == 0);
	assert_string_equal(told[2].ended, "expired");
	assert_true(told[3].term == 0x2001 && told[3].clock[0] == '\0');
	assert_string_equal(told[3].leader, "x");
	assert_string_equal(told[3].ended, "unknown");
	assert_true(told[4].term == 0x1001 && told[4].note[0] == '\0');
	assert_true(web_past_is_kept(&list, "p.history/e/s1-1.note"));
	assert_false(web_past_is_kept(&list, "p.history/e/s1-2.end"));
	n_told = 0;
	now.term = 0x4002; /* one of ours leads: it isn't told twice */
	web_past_tell(&list, &now, 2, tell, NULL);
	assert_true(n_told == 2 && told[0].term == 0x4002 && told[1].term == 0x3001);
	free(list.at);
	free(first);
	free(second);
	free(third);
	free(end);
}

/* The oldest go, with all that hangs on them. */
static void test_past_kept(void **state)
{
	struct web_past_list list = {.at = NULL};
	char key[64];

	(void)state;
	for (unsigned i = 1; i <= WEB_PAST_KEPT + 5; i++) {
		char *value = web_past_begun(0, 0, "a", NULL);

		(void)snprintf(key, sizeof(key), "p.history/e/s-%03u", i);
		read_past(&list, key, i, value);
		free(value);
	}
	web_past_sort(&list);
	for (unsigned i = 1; i <= WEB_PAST_KEPT + 5; i++) {
		(void)snprintf(key, sizeof(key), "p.history/e/s-%03u.end", i);
		assert_int_equal(web_past_is_kept(&list, key), i > 5);
	}
	free(list.at);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_url),         cmocka_unit_test(test_bad_urls),
		cmocka_unit_test(test_environment), cmocka_unit_test(test_keys),
		cmocka_unit_test(test_terms),       cmocka_unit_test(test_errors),
		cmocka_unit_test(test_txn_errors),  cmocka_unit_test(test_past),
		cmocka_unit_test(test_past_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
