/*
 * test_redis.c: the parts of the Redis driver that need no server: replies with their bounds, URLs,
 * error replies, and the index of what is watched.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/redis/redis.h"

/* ---- replies ---- */

static void give(struct resp_in *in, const char *text)
{
	size_t n = strlen(text);
	size_t room;
	char *to = resp_in_room(in, &room);

	assert_non_null(to);
	assert_true(n <= room);
	memcpy(to, text, n);
	resp_in_got(in, n);
}

static void test_words_from_elsewhere(void **state)
{
	struct resp_out none = {0}, words = {0}, out = {0};

	(void)state;
	resp_text(&words, "a");
	resp_begin(&out, 2);
	resp_words(&out, &none);
	resp_words(&out, &words);
	resp_text(&out, "");
	assert_int_equal(out.n, strlen("*2\r\n$1\r\na\r\n$0\r\n\r\n"));
	assert_memory_equal(out.data, "*2\r\n$1\r\na\r\n$0\r\n\r\n", out.n);
	none.failed = true;
	resp_words(&out, &none);
	assert_true(out.failed);
	resp_out_done(&words);
	resp_out_done(&out);
}

static void test_replies(void **state)
{
	struct resp_in in = {0};
	const struct resp *r;
	uint64_t number;

	(void)state;
	give(&in, "*4\r\n$3\r\none\r\n:-2\r\n$-1\r\n*1\r\n$1\r\n7\r\n+OK\r\n-ERR no\r\n");
	assert_int_equal(resp_take(&in, &r), 1);
	assert_int_equal(r->type, RESP_ARRAY);
	assert_int_equal(r->n, 4);
	assert_string_equal(resp_get(r, 0), "one");
	assert_int_equal(r->items[1].integer, -2);
	assert_int_equal(r->items[2].type, RESP_NIL);
	assert_string_equal(resp_get(r, 2), "");
	assert_string_equal(resp_get(r, 9), "");
	assert_true(resp_get_u64(&r->items[3], 0, &number));
	assert_int_equal(number, 7);
	assert_int_equal(resp_take(&in, &r), 1);
	assert_int_equal(r->type, RESP_STATUS);
	assert_int_equal(resp_take(&in, &r), 1);
	assert_int_equal(r->type, RESP_ERROR);
	assert_string_equal(r->text, "ERR no");
	assert_int_equal(resp_take(&in, &r), 0);
	resp_in_done(&in);
}

/* Beyond the bounds: refused when the head is read, before anything is taken for the body. */
static void test_bounds(void **state)
{
	static const char *const bad[] = {
		"hello\r\n",    "$1048577\r\n", "$-2\r\n", "*65537\r\n",
		"*-2\r\n",      ":1x\r\n",      ":\r\n",   "$99999999999999999999\r\n",
		"$1\r\nab\r\n", "+no return\n", "\r\n",    "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct resp_in in = {0};
		const struct resp *r;

		give(&in, bad[i]);
		if (resp_take(&in, &r) != -1)
			fail_msg("%s is taken", bad[i]);
		resp_in_done(&in);
	}
}

/* A line without an end, and a text without an end, don't grow for ever. */
static void test_endless(void **state)
{
	struct resp_in in = {0};
	const struct resp *r;
	int rc = 0;

	(void)state;
	give(&in, "+");
	for (size_t i = 0; i < 2 * RESP_LINE_MAX && rc == 0; i += 16) {
		give(&in, "0123456789abcdef");
		rc = resp_take(&in, &r);
	}
	assert_int_equal(rc, -1);
	resp_in_done(&in);
}

static void test_numbers(void **state)
{
	struct resp_in in = {0};
	const struct resp *r;
	uint64_t number;

	(void)state;
	give(&in, "*5\r\n$20\r\n18446744073709551615\r\n$20\r\n18446744073709551616\r\n"
		  "$2\r\n-1\r\n$0\r\n\r\n$2\r\n1 \r\n");
	assert_int_equal(resp_take(&in, &r), 1);
	assert_true(resp_get_u64(r, 0, &number));
	assert_true(number == UINT64_MAX);
	for (size_t i = 1; i < 5; i++)
		assert_false(resp_get_u64(r, i, &number));
	resp_in_done(&in);
}

/* ---- URLs ---- */

static int parse(const char *url, struct redis_options *o, struct baton_error *err)
{
	memset(err, 0, sizeof(*err));
	return redis_options_parse(o, url, err);
}

static void test_urls(void **state)
{
	struct redis_options o;
	struct baton_error err;

	(void)state;
	assert_int_equal(parse("redis://h", &o, &err), 0);
	assert_string_equal(o.hosts[0].name, "h");
	assert_string_equal(o.hosts[0].port, "6379");
	assert_string_equal(o.prefix, "{baton}:");
	assert_int_equal(parse("redis://u%40x:p%3Aw@[::1]:7000/3?prefix=app&wait=2", &o, &err), 0);
	assert_string_equal(o.user, "u@x");
	assert_string_equal(o.password.text, "p:w");
	assert_string_equal(o.hosts[0].name, "::1");
	assert_string_equal(o.hosts[0].port, "7000");
	assert_int_equal(o.db, 3);
	assert_int_equal(o.wait, 2);
	assert_string_equal(o.prefix, "{app}:");
	assert_int_equal(parse("redis+unix:/run/r.sock?db=2", &o, &err), 0);
	assert_string_equal(o.socket, "/run/r.sock");
	assert_int_equal(o.db, 2);
	assert_int_equal(parse("redis+sentinel://a,b:1,c/main/4", &o, &err), 0);
	assert_int_equal(o.n_hosts, 3);
	assert_string_equal(o.hosts[0].port, "26379");
	assert_string_equal(o.master, "main");
	assert_int_equal(o.db, 4);
	assert_int_equal(
		parse("redis+sentinel://u:p@a/m?sentinel_user=w&sentinel_password=s%26", &o, &err),
		0);
	assert_string_equal(o.user, "u");
	assert_string_equal(o.password.text, "p");
	assert_string_equal(o.sentinel_user, "w");
	assert_string_equal(o.sentinel_password.text, "s&");
	assert_int_equal(parse("rediss://h?ca=/ca.pem", &o, &err), 0);
	assert_true(o.tls);
	assert_string_equal(o.files.server_name, "h");
}

static void test_bad_urls(void **state)
{
	static const char *const bad[] = {
		"redis:",
		"redis://",
		"redis://h:0",
		"redis://h:65536",
		"redis://h:x",
		"redis://[::1",
		"redis://[::1]x",
		"redis://a,b",
		"redis://h/x",
		"redis://h?prefix={a}",
		"redis://h?prefix=",
		"redis://h?max_lease=99",
		"redis://h?max_lease=1s",
		"redis://h?password=hunter2",
		"redis://h?ca=/ca.pem",
		"redis://h?wait=1&durable=1",
		"redis+sentinel://a/m?durable=1",
		"redis+cluster://a?durable=1",
		"rediss://h?tls=0",
		"rediss://h?ca=relative.pem",
		"redis://u:hunter2@h?password_file=/p",
		"redis+unix:relative",
		"redis+unix:/s?tls=1",
		"redis+sentinel://a,b",
		"redis+cluster://a/1",
		"redis+cluster://a?db=1",
		"redis://h?nonsense=1",
		"redis://h?sentinel_password=hunter2",
		"redis+sentinel://a/m?sentinel_user=w",
		"redis+sentinel://a/m?sentinel_nonsense=hunter2",
		"redis+sentinel://a/m?sentinel_password=hunter2&sentinel_password_file=/p",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct redis_options o;
		struct baton_error err;

		if (parse(bad[i], &o, &err) != BATON_E_URL || err.text[0] == '\0')
			fail_msg("%s is taken", bad[i]);
		assert_null(strstr(err.text, "hunter2"));
	}
}

/* ---- where a cluster sends us ---- */

static void test_redirects(void **state)
{
	struct redis_host to = {"here", "1"};

	(void)state;
	assert_true(redis_redirect("MOVED 3999 10.0.0.2:6381", "MOVED ", &to));
	assert_string_equal(to.name, "10.0.0.2");
	assert_string_equal(to.port, "6381");
	assert_true(redis_redirect("ASK 3999 ::1:7", "ASK ", &to));
	assert_string_equal(to.name, "::1");
	assert_true(redis_redirect("ASK 3999 :8", "ASK ", &to)); /* the same host */
	assert_string_equal(to.name, "::1");
	assert_string_equal(to.port, "8");
	assert_false(redis_redirect("ASK 3999 a:8", "MOVED ", &to));
	assert_false(redis_redirect("MOVED 3999 a:0", "MOVED ", &to));
	assert_false(redis_redirect("MOVED 3999 a:65536", "MOVED ", &to));
	assert_false(redis_redirect("MOVED", "MOVED ", &to));
	assert_string_equal(to.name, "::1");
}

/* ---- error replies ---- */

/* FAILED promises that nothing was written: only what a server says before it runs a script. */
static void test_errors(void **state)
{
	static const struct {
		const char *text;
		int code;
		bool is_sure;
	} list[] = {
		{"LOADING Redis is loading the dataset in memory", BATON_E_UNAVAILABLE, true},
		{"READONLY You can't write against a read only replica.", BATON_E_UNAVAILABLE,
		 true},
		{"NOPERM this user has no permissions to run the 'evalsha' command", BATON_E_DENIED,
		 true},
		{"NOPERM this user has no permissions ... script: 0123, on @user_script:3.",
		 BATON_E_DENIED, false},
		{"OOM command not allowed when used memory > 'maxmemory'. script: 01, on "
		 "@user_script:9.",
		 BATON_E_UNAVAILABLE, false},
		{"WRONGTYPE Operation against a key holding the wrong kind of value",
		 BATON_E_CORRUPT, false},
		/* Redis 6 */
		{"ERR Error running script (call to f_01): @user_script:9: @user_script: 9: "
		 "-READONLY You can't write against a read only replica.",
		 BATON_E_UNAVAILABLE, false},
		{"ERR Error running script (call to f_01): @user_script:9: -WRONGTYPE Operation",
		 BATON_E_CORRUPT, false},
		{"ERR Error running script (call to f_01): @user_script:9: attempt to index",
		 BATON_E_CORRUPT, false},
		{"ERR anything", BATON_E_CORRUPT, false},
		{"", BATON_E_CORRUPT, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		bool is_sure;

		if (redis_judge(list[i].text, &is_sure) != list[i].code ||
		    is_sure != list[i].is_sure)
			fail_msg("%s is misjudged", list[i].text);
	}
}

/* ---- versions ---- */

static void test_versions(void **state)
{
	(void)state;
	assert_false(redis_minds_replicas("6.0.20"));
	assert_false(redis_minds_replicas("6.2.6"));
	assert_true(redis_minds_replicas("6.2.7"));
	assert_true(redis_minds_replicas("6.2.14"));
	assert_true(redis_minds_replicas("7.0.0"));
	assert_true(redis_minds_replicas("10.0"));
	assert_false(redis_minds_replicas(""));
}

/* ---- which server it is ---- */

/* What is held is got back from another one, and from no other. */
static void test_servers(void **state)
{
	static const struct redis_server first = {"run1", "id1", false};
	static const struct redis_server renamed = {"run1", "id2", false};
	static const struct redis_server promoted = {"run1", "id3", true};
	static const struct redis_server restarted = {"run2", "id1", false};
	static const struct redis_server unknown = {"", "", true};

	(void)state;
	assert_true(redis_is_same_server(&first, &first));
	assert_true(redis_is_same_server(&promoted, &promoted));
	assert_true(redis_is_same_server(&first, &renamed));
	assert_true(redis_is_same_server(&renamed, &first));
	assert_true(redis_is_same_server(&promoted, &renamed));
	assert_false(redis_is_same_server(&first, &promoted));
	assert_false(redis_is_same_server(&first, &restarted));
	assert_false(redis_is_same_server(&first, &unknown));
}

/* ---- the index ---- */

#define LONG_NS (3600 * CLOCK_NS_PER_S)

static size_t take(struct redis_index *index, uint64_t *cookies)
{
	uint64_t next_ns;

	return redis_index_take(index, cookies, 8, &next_ns);
}

static void test_index_subscribe(void **state)
{
	int wake = eventfd(0, EFD_NONBLOCK);
	struct redis_index *index = redis_index_new(wake);
	char name[BATON_NAME_MAX + 1];
	uint64_t cookies[8];

	(void)state;
	assert_int_equal(redis_index_add(index, "e", 7), 0);
	/* Not watched before the server has said so; then a hint, and after each loss again. */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(take(index, cookies), 0);
		assert_false(redis_index_seen(index, "e", "", BATON_STORE_NEVER));
		assert_true(redis_index_next(index, name));
		assert_string_equal(name, "e");
		assert_false(redis_index_next(index, name));
		redis_index_subscribed(index, "e");
		assert_int_equal(take(index, cookies), 1);
		assert_int_equal(cookies[0], 7);
		assert_true(redis_index_seen(index, "e", "", BATON_STORE_NEVER));
		redis_index_broken(index);
	}
	/* Many hints are one. */
	redis_index_hint(index, "e");
	redis_index_hint(index, "e");
	redis_index_hint(index, "other");
	assert_int_equal(take(index, cookies), 1);
	assert_false(redis_index_remove(index, "e", 8));
	assert_true(redis_index_remove(index, "e", 7));
	redis_index_hint(index, "e");
	assert_int_equal(take(index, cookies), 0);
	redis_index_free(index);
	close(wake);
}

static void test_index_expiry(void **state)
{
	int wake = eventfd(0, EFD_NONBLOCK);
	struct redis_index *index = redis_index_new(wake);
	char ids[4][BATON_LEASE_ID_MAX + 1];
	char name[BATON_NAME_MAX + 1];
	uint64_t cookies[8];
	uint64_t next_ns;

	(void)state;
	for (uint64_t i = 1; i <= 3; i++) {
		(void)snprintf(name, sizeof(name), "e%d", (int)i);
		assert_int_equal(redis_index_add(index, name, i), 0);
		assert_true(redis_index_next(index, name));
		redis_index_subscribed(index, name);
	}
	assert_int_equal(take(index, cookies), 3);
	assert_true(redis_index_seen(index, "e1", "one", LONG_NS));
	assert_true(redis_index_seen(index, "e2", "one", LONG_NS));
	assert_true(redis_index_seen(index, "e3", "two", LONG_NS / 2));
	/* A lease of which nobody knows how long it lasts is not watched. */
	assert_false(redis_index_seen(index, "e3", "two", BATON_STORE_NEVER));
	assert_int_equal(redis_index_leases(index, ids, 4), 2);
	assert_string_equal(ids[0], "two");
	assert_int_equal(redis_index_leases(index, ids, 1), 1);
	assert_string_equal(ids[0], "two");
	assert_int_equal(redis_index_take(index, cookies, 8, &next_ns), 0);
	/* Renewed, and gone: those that it held are hinted at, once. */
	redis_index_left(index, "two", 2 * LONG_NS);
	redis_index_left(index, "one", 0);
	assert_int_equal(take(index, cookies), 2);
	assert_int_equal(cookies[0] + cookies[1], 3);
	assert_int_equal(take(index, cookies), 0);
	assert_int_equal(redis_index_leases(index, ids, 4), 1);
	/* Nobody's any more. */
	assert_true(redis_index_seen(index, "e3", "", BATON_STORE_NEVER));
	assert_int_equal(redis_index_leases(index, ids, 4), 0);
	redis_index_free(index);
	close(wake);
}

/* What counts in Lua has the same bound as what counts in C. */
static void test_term_jump(void **state)
{
	static const char text[] = "\nlocal JUMP_MAX = " TERM_JUMP_MAX_DIGITS "\n";
	const struct redis_source *script = &redis_sources[REDIS_CAMPAIGN];

	(void)state;
	assert_non_null(memmem(script->text, script->size, text, sizeof(text) - 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words_from_elsewhere),
		cmocka_unit_test(test_replies),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_endless),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_urls),
		cmocka_unit_test(test_bad_urls),
		cmocka_unit_test(test_redirects),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_servers),
		cmocka_unit_test(test_index_subscribe),
		cmocka_unit_test(test_index_expiry),
		cmocka_unit_test(test_term_jump),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
