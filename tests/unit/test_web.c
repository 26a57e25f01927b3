/*
 * test_web.c: the HTTP client against a server that behaves badly on request, and what drivers need
 * of JSON. TLS is in test_web_tls.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/secret.h"
#include "base/web/http.h"
#include "base/web/json.h"
#include "baton.h"
#include "store/web/watch_index.h"
#include "web_server.h"

#define SOON_MS 200    /* what is meant to be late */
#define LATER_MS 20000 /* what is not */

struct world {
	struct web_server *server;
	struct http *http;
	struct http_host host;
	int wake;
};

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	w->server = web_server_new(NULL);
	w->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	w->http = http_new(&(struct http_config){.wake = w->wake, .body_max = 2 << 20});
	snprintf(w->host.name, sizeof(w->host.name), "127.0.0.1");
	snprintf(w->host.port, sizeof(w->host.port), "%u", web_server_port(w->server));
	*state = w;
	return w->server != NULL && w->http != NULL ? 0 : -1;
}

static int teardown(void **state)
{
	struct world *w = *state;

	http_free(w->http);
	web_server_free(w->server);
	close(w->wake);
	free(w);
	return 0;
}

static uint64_t in_ms(uint64_t ms)
{
	return clock_boot_ns() + ms * CLOCK_NS_PER_MS;
}

static int get(struct world *w, const char *path, uint64_t ms, struct http_reply *reply)
{
	struct http_request q = {.method = "GET", .host = &w->host, .path = path};

	return http_call(w->http, &q, in_ms(ms), reply);
}

static void test_call(void **state)
{
	struct world *w = *state;
	struct http_reply r;
	char text[64];

	assert_int_equal(get(w, "/hello", LATER_MS, &r), HTTP_OK);
	assert_int_equal(r.status, 200);
	assert_string_equal(r.body, "hello");
	assert_int_equal(r.body_size, 5);
	assert_true(r.sent);
	assert_string_equal(http_header(&r, "x-test", text, sizeof(text)), "a value");
	assert_string_equal(http_header(&r, "x-tes", text, sizeof(text)), "");
	assert_int_equal(get(w, "/hello?again", LATER_MS, &r), HTTP_OK);
	assert_int_equal(web_server_connections(w->server), 1);
	assert_int_equal(get(w, "/big", LATER_MS, &r), HTTP_OK);
	assert_int_equal(r.body_size, 1 << 20);
}

static void test_request(void **state)
{
	struct world *w = *state;
	const char *const headers[] = {"Content-Type: application/json", "X-Token: t", NULL};
	struct http_request q = {.method = "PUT",
				 .host = &w->host,
				 .path = "/echo/../a%2Fb?x=%20",
				 .headers = headers,
				 .body = "{\"a\":1}",
				 .body_size = 7};
	struct http_reply r;
	char last[4096];

	assert_int_equal(http_call(w->http, &q, in_ms(LATER_MS), &r), HTTP_OK);
	assert_int_equal(r.status, 201);
	assert_string_equal(r.body, "{\"a\":1}");
	web_server_last(w->server, last, sizeof(last));
	assert_memory_equal(last, "PUT /echo/../a%2Fb?x=%20 HTTP/1.1\r\n", 35);
	assert_non_null(strstr(last, "\r\nContent-Type: application/json\r\n"));
	assert_non_null(strstr(last, "\r\nX-Token: t\r\n"));
	assert_null(strcasestr(last, "urlencoded"));
	q.body = calloc(1, 60000);
	q.body_size = 60000;
	assert_int_equal(http_call(w->http, &q, in_ms(LATER_MS), &r), HTTP_OK);
	assert_int_equal(r.body_size, 60000);
	web_server_last(w->server, last, sizeof(last));
	assert_null(strcasestr(last, "\r\nexpect"));
	free((void *)(uintptr_t)q.body);
}

/* No redirect is followed, no proxy of the environment is used. */
static void test_no_detours(void **state)
{
	struct world *w = *state;
	struct http_reply r;

	setenv("http_proxy", "http://127.0.0.1:1", 1);
	setenv("ALL_PROXY", "http://127.0.0.1:1", 1);
	assert_int_equal(get(w, "/redirect", LATER_MS, &r), HTTP_OK);
	unsetenv("http_proxy");
	unsetenv("ALL_PROXY");
	assert_int_equal(r.status, 302);
	assert_int_equal(web_server_requests(w->server), 1);
}

static void is_late(struct world *w, const char *path)
{
	uint64_t from_ns = clock_boot_ns();
	struct http_reply r;

	assert_int_equal(get(w, path, SOON_MS, &r), HTTP_LATE);
	assert_true(r.sent);
	assert_true(clock_boot_ns() - from_ns >= SOON_MS * CLOCK_NS_PER_MS);
	assert_true(clock_boot_ns() - from_ns < LATER_MS * CLOCK_NS_PER_MS);
	assert_non_null(strstr(r.text, "no reply in time"));
}

/* The whole call has the deadline; and after it, the next one has another connection. */
static void test_late(void **state)
{
	struct world *w = *state;
	struct http_reply r;

	assert_int_equal(get(w, "/hello", LATER_MS, &r), HTTP_OK);
	is_late(w, "/mute");
	assert_int_equal(web_server_connections(w->server), 1);
	assert_int_equal(get(w, "/hello", LATER_MS, &r), HTTP_OK);
	assert_int_equal(web_server_connections(w->server), 2);
	is_late(w, "/trickle");
}

/* Who wakes the client ends its calls only where that was said, and not at once. */
static void test_heeded_wake(void **state)
{
	struct world *w = *state;
	uint64_t one = 1, from_ns = clock_boot_ns();
	struct http_reply r;

	assert_int_equal(write(w->wake, &one, sizeof(one)), sizeof(one));
	is_late(w, "/mute");
	http_heed_wake(w->http, in_ms(SOON_MS));
	assert_int_equal(get(w, "/hello", LATER_MS, &r), HTTP_OK);
	assert_int_equal(get(w, "/mute", LATER_MS, &r), HTTP_LATE);
	assert_true(r.sent);
	assert_true(clock_boot_ns() - from_ns >= 2 * SOON_MS * CLOCK_NS_PER_MS);
	assert_true(clock_boot_ns() - from_ns < LATER_MS * CLOCK_NS_PER_MS);
}

static void test_nobody(void **state)
{
	struct world *w = *state;
	struct http_reply r;

	snprintf(w->host.port, sizeof(w->host.port), "1");
	assert_int_equal(get(w, "/hello", LATER_MS, &r), HTTP_UNAVAILABLE);
	assert_false(r.sent);
	assert_int_equal(r.status, 0);
	assert_string_equal(r.body, "");
	assert_non_null(strstr(r.text, "127.0.0.1:1: "));
}

static void test_rubbish(void **state)
{
	struct world *w = *state;
	struct http_reply r;

	assert_int_equal(get(w, "/rubbish", LATER_MS, &r), HTTP_STRANGE);
	assert_int_equal(get(w, "/endless", LATER_MS, &r), HTTP_STRANGE);
	assert_non_null(strstr(r.text, "larger than we take"));
	assert_int_equal(get(w, "/head", LATER_MS, &r), HTTP_STRANGE);
	assert_int_equal(get(w, "/hello", LATER_MS, &r), HTTP_OK);
}

/* A connection that was used before ends, without a reply: the request may have had its effect. */
static void test_never_twice(void **state)
{
	struct world *w = *state;
	struct http_reply r;

	assert_int_equal(get(w, "/hello", LATER_MS, &r), HTTP_OK);
	assert_int_equal(get(w, "/close", LATER_MS, &r), HTTP_UNAVAILABLE);
	assert_true(r.sent);
	assert_int_equal(web_server_requests(w->server), 2);
}

static void test_many(void **state)
{
	struct world *w = *state;
	struct http_request q[50];
	struct http_reply r[50];
	char bodies[50][8];

	for (int i = 0; i < 50; i++) {
		snprintf(bodies[i], sizeof(bodies[i]), "no %d", i);
		q[i] = (struct http_request){.method = "POST",
					     .host = &w->host,
					     .path = "/echo",
					     .body = bodies[i],
					     .body_size = strlen(bodies[i])};
	}
	assert_true(http_call_all(w->http, q, 50, in_ms(LATER_MS), r));
	for (int i = 0; i < 50; i++)
		assert_string_equal(r[i].body, bodies[i]);
	assert_true(web_server_connections(w->server) <= HTTP_PARALLEL);
	/* Those that are done are done, whatever becomes of the others. */
	q[3].path = "/mute";
	q[49].path = "/close";
	assert_false(http_call_all(w->http, q, 50, in_ms(2000), r));
	for (int i = 0; i < 50; i++)
		assert_int_equal(r[i].result, i == 3    ? HTTP_LATE
					      : i == 49 ? HTTP_UNAVAILABLE
							: HTTP_OK);
}

/* ---- streams ---- */

static void test_stream(void **state)
{
	struct world *w = *state;
	struct http_request q = {.method = "GET", .host = &w->host, .path = "/lines"};
	struct http_reply r;
	uint64_t one = 1;

	assert_int_equal(http_stream_open(w->http, &q, HTTP_LINES, in_ms(LATER_MS), &r), HTTP_OK);
	assert_true(http_stream_is_open(w->http));
	assert_int_equal(http_stream_next(w->http, in_ms(LATER_MS), &r), HTTP_OK);
	assert_string_equal(r.body, "one");
	assert_int_equal(r.status, 200);
	assert_int_equal(http_stream_next(w->http, in_ms(LATER_MS), &r), HTTP_OK);
	assert_string_equal(r.body, "two");
	assert_int_equal(http_stream_next(w->http, in_ms(SOON_MS), &r), HTTP_LATE);
	assert_int_equal(write(w->wake, &one, sizeof(one)), sizeof(one));
	assert_int_equal(http_stream_next(w->http, in_ms(LATER_MS), &r), HTTP_WOKEN);
	assert_int_equal(read(w->wake, &one, sizeof(one)), sizeof(one));
	web_server_go_on(w->server);
	assert_int_equal(http_stream_next(w->http, in_ms(LATER_MS), &r), HTTP_OK);
	assert_string_equal(r.body, "three");
	assert_int_equal(http_stream_next(w->http, in_ms(LATER_MS), &r), HTTP_END);
	assert_false(http_stream_is_open(w->http));
}

static void test_long_poll(void **state)
{
	struct world *w = *state;
	struct http_request q = {.method = "GET", .host = &w->host, .path = "/poll"};
	struct http_reply r;
	char text[8];

	for (int i = 0; i < 2; i++) {
		assert_int_equal(http_stream_open(w->http, &q, HTTP_WHOLE, in_ms(LATER_MS), &r),
				 HTTP_OK);
		if (i == 0)
			assert_int_equal(http_stream_next(w->http, in_ms(SOON_MS), &r), HTTP_LATE);
		web_server_go_on(w->server);
		assert_int_equal(http_stream_next(w->http, in_ms(LATER_MS), &r), HTTP_OK);
		assert_string_equal(r.body, "a\nb");
		assert_string_equal(http_header(&r, "X-Index", text, sizeof(text)), "7");
		assert_false(http_stream_is_open(w->http));
	}
	assert_int_equal(web_server_connections(w->server), 1);
}

static void test_stream_breaks(void **state)
{
	struct world *w = *state;
	struct http_request q = {.method = "GET", .host = &w->host, .path = "/close"};
	struct http_reply r;

	assert_int_equal(http_stream_open(w->http, &q, HTTP_LINES, in_ms(LATER_MS), &r), HTTP_OK);
	assert_int_equal(http_stream_next(w->http, in_ms(LATER_MS), &r), HTTP_UNAVAILABLE);
	assert_false(http_stream_is_open(w->http));
	/* A call ends a stream. */
	q.path = "/lines";
	assert_int_equal(http_stream_open(w->http, &q, HTTP_LINES, in_ms(LATER_MS), &r), HTTP_OK);
	assert_int_equal(get(w, "/hello", LATER_MS, &r), HTTP_OK);
	assert_false(http_stream_is_open(w->http));
}

/* ---- the rest ---- */

static void test_names(void **state)
{
	struct world *w = *state;
	struct http_reply r;

	snprintf(w->host.name, sizeof(w->host.name), "localhost");
	assert_int_equal(get(w, "/hello", LATER_MS, &r), HTTP_OK);
	assert_int_equal(get(w, "/hello", LATER_MS, &r), HTTP_OK);
	assert_int_equal(web_server_connections(w->server), 1);
	snprintf(w->host.name, sizeof(w->host.name), "no-such-host.invalid");
	assert_int_not_equal(get(w, "/hello", SOON_MS, &r), HTTP_OK);
	assert_false(r.sent);
	assert_non_null(strstr(r.text, "no-such-host.invalid"));
}

/* S10: a child says nothing on the parent's connection, not even goodbye. */
static void test_fork(void **state)
{
	struct world *w = *state;
	struct http_reply r;
	int status;

	assert_int_equal(get(w, "/hello", LATER_MS, &r), HTTP_OK);
	pid_t child = fork();

	if (child == 0) {
		http_forget(w->http);
		http_free(w->http);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(get(w, "/hello", LATER_MS, &r), HTTP_OK);
	assert_int_equal(web_server_connections(w->server), 1);
}

static void test_words(void **state)
{
	char out[16];

	(void)state;
	assert_true(http_encode("a-b/c d%", out, sizeof(out)));
	assert_string_equal(out, "a-b%2Fc%20d%25");
	assert_false(http_encode("a-b/c d%e", out, 15));
	assert_true(http_encode("\xc3\xa4", out, sizeof(out)));
	assert_string_equal(out, "%C3%A4");
}

static void put_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void test_secret(void **state)
{
	char path[] = "/tmp/baton-secret-XXXXXX";
	char reason[HTTP_TEXT_MAX];
	char out[16];
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	put_file(path, "canary\r\n");
	assert_int_equal(secret_read(path, out, sizeof(out), reason), 0);
	assert_string_equal(out, "canary");
	put_file(path, "another");
	assert_int_equal(secret_read(path, out, sizeof(out), reason), 0);
	assert_string_equal(out, "another");
	static const char *const bad[] = {"", "\n", "two\nlines", "much too long, really"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		put_file(path, bad[i]);
		assert_int_equal(secret_read(path, out, sizeof(out), reason), -1);
	}
	unlink(path);
	assert_int_equal(secret_read(path, out, sizeof(out), reason), -1);
	assert_non_null(strstr(reason, "No such file"));
}

static void test_json(void **state)
{
	static const char text[] = "{\"t\":\"x\",\"n\":7,\"s\":\"18446744073709551615\",\"m\":-3,"
				   "\"bad\":\"7x\",\"b\":\"aMOk\",\"nul\":\"YQBi\",\"o\":{}}";
	json_t *j = js_parse(text, strlen(text));
	uint64_t u;
	int64_t i;
	char out[8];

	(void)state;
	assert_non_null(j);
	assert_string_equal(js_text(j, "t"), "x");
	assert_string_equal(js_text(j, "n"), "");
	assert_string_equal(js_text(NULL, "n"), "");
	assert_true(js_u64(j, "n", &u) && u == 7);
	assert_true(js_u64(j, "s", &u) && u == UINT64_MAX);
	assert_false(js_u64(j, "m", &u));
	assert_false(js_u64(j, "bad", &u));
	assert_false(js_u64(j, "t", &u));
	assert_true(js_i64(j, "m", &i) && i == -3);
	assert_false(js_i64(j, "s", &i));
	assert_true(js_base64(j, "b", out, sizeof(out)));
	assert_string_equal(out, "h\xc3\xa4");
	assert_false(js_base64(j, "nul", out, sizeof(out)));
	assert_false(js_base64(j, "t", out, sizeof(out)));
	assert_non_null(js_get(j, "o"));
	json_decref(j);
	assert_null(js_parse("{\"a\":1", 6));
	assert_null(js_parse("{\"a\":1,\"a\":2}", 13));
}

/* Of Consul's semaphores, for one: it must not hide all else. */
static void test_json_large(void **state)
{
	static const char text[] = "[{\"Key\":\"a\\\"9999999999999999999\",\"Flags\": "
				   "16210313421097356768,\"ModifyIndex\":42,\"r\":1e-5,"
				   "\"low\":-9999999999999999999}]";
	json_t *list = js_parse(text, strlen(text));
	const json_t *j = json_array_get(list, 0);
	uint64_t u;
	int64_t i;

	(void)state;
	assert_non_null(j);
	assert_string_equal(js_text(j, "Key"), "a\"9999999999999999999");
	assert_true(js_u64(j, "Flags", &u) && u == 16210313421097356768u);
	assert_true(js_u64(j, "ModifyIndex", &u) && u == 42);
	assert_false(js_i64(j, "low", &i));
	assert_true(json_is_real(js_get(j, "r")));
	json_decref(list);
	assert_null(js_parse("{\"a\":99999999999999999999", 25));
	assert_null(js_parse("{\"a\":99999999999999999999,\"b\":\"", 31));
	assert_null(js_parse("{\"a\":1e999}", 11));
}

static void test_bytes(void **state)
{
	struct bytes b = {0};

	(void)state;
	bytes_print(&b, "%s-%d", "a", 7);
	assert_true(bytes_add(&b, "xyz", 3, 6));
	assert_string_equal(b.at, "a-7xyz");
	assert_false(b.has_failed);
	assert_false(bytes_add(&b, "z", 1, 6));
	assert_true(b.has_failed);
	bytes_clear(&b);
	assert_int_equal(b.n, 0);
	assert_false(b.has_failed);
	for (int i = 0; i < 100000; i++)
		bytes_print(&b, "%d", i % 10);
	assert_int_equal(b.n, 100000);
	assert_int_equal(strlen(b.at), 100000);
	bytes_clear(&b); /* much: given back */
	assert_null(b.at);
	bytes_done(&b);
}

/* ---- hints ---- */

static void test_hints(void **state)
{
	struct web_index *h = web_index_new(sizeof(uint64_t[4]));
	uint64_t cookies[8];
	uint64_t notes[4] = {1, 2, 3, 4};

	(void)state;
	assert_true(web_index_add(h, "a", 1));
	assert_true(web_index_add(h, "b", 2));
	assert_true(web_index_add(h, "b", 3));
	assert_int_equal(web_index_take(h, cookies, 8), 0); /* not watched yet */
	assert_false(web_index_is_watched(h, "a"));
	web_index_set_live(h, true);
	web_index_set_live(h, true);
	assert_true(web_index_is_watched(h, "a"));
	assert_false(web_index_is_watched(h, "c"));
	assert_int_equal(web_index_take(h, cookies, 2), 2);
	assert_int_equal(web_index_take(h, cookies, 8), 1);
	web_index_hint(h, "b");
	web_index_hint(h, "b");
	web_index_hint(h, "c");
	assert_int_equal(web_index_take(h, cookies, 8), 2);
	assert_true(web_index_add(h, "c", 4)); /* is watched at once */
	assert_int_equal(web_index_take(h, cookies, 8), 1);
	assert_int_equal(cookies[0], 4);
	assert_true(web_index_set(h, "a", notes));
	notes[0] = 0;
	assert_true(web_index_get(h, "a", notes) && notes[0] == 1 && notes[3] == 4);
	assert_false(web_index_get(h, "z", notes) || notes[0] != 0);
	web_index_hint_all(h);
	web_index_remove(h, "a", 1);
	web_index_remove(h, "b", 9);
	assert_int_equal(web_index_take(h, cookies, 8), 3);
	web_index_set_live(h, false);
	assert_false(web_index_is_watched(h, "b"));
	web_index_free(h);
}

/* It goes with the name, and with the index. */
static void test_foreign(void **state)
{
	struct web_index *h = web_index_new(0);
	struct baton_leadership seen = {.size = sizeof(seen), .term = 7, .leader = "other"};
	struct baton_leadership found = {.size = 0};

	(void)state;
	web_index_set_foreign(h, "a", &seen); /* nobody watches it */
	assert_true(web_index_add(h, "a", 1) && web_index_add(h, "b", 2));
	assert_false(web_index_get_foreign(h, "a", &found));
	web_index_set_foreign(h, "a", &seen);
	seen.term = 8;
	web_index_set_foreign(h, "b", &seen);
	assert_true(web_index_get_foreign(h, "a", &found) && found.term == 7);
	assert_string_equal(found.leader, "other");
	web_index_set_foreign(h, "a", &seen);
	assert_true(web_index_get_foreign(h, "a", &found) && found.term == 8);
	web_index_set_foreign(h, "a", NULL);
	web_index_set_foreign(h, "a", NULL);
	assert_false(web_index_get_foreign(h, "a", &found));
	web_index_set_foreign(h, "a", &seen);
	web_index_remove(h, "a", 1);
	assert_false(web_index_get_foreign(h, "a", &found));
	web_index_free(h);
}

static void test_many_hints(void **state)
{
	struct web_index *h = web_index_new(sizeof(uint64_t[4]));
	uint64_t cookies[256];
	size_t sum = 0;

	(void)state;
	for (uint64_t i = 0; i < 10000; i++) {
		char name[32];

		snprintf(name, sizeof(name), "election-%d", (int)i);
		assert_true(web_index_add(h, name, i));
	}
	web_index_set_live(h, true);
	for (size_t n; (n = web_index_take(h, cookies, 256)) > 0; sum += n)
		for (size_t i = 0; i < n; i++)
			assert_int_equal(cookies[i] < 10000, true);
	assert_int_equal(sum, 10000);
	for (uint64_t i = 0; i < 10000; i += 2) {
		char name[32];

		snprintf(name, sizeof(name), "election-%d", (int)i);
		assert_true(web_index_is_watched(h, name));
		web_index_remove(h, name, i);
		assert_false(web_index_is_watched(h, name));
	}
	web_index_hint_all(h);
	assert_int_equal(web_index_take(h, cookies, 256), 256);
	web_index_free(h);
}

static void test_base64(void **state)
{
	static const char *const pairs[][2] = {
		{"", ""},        {"f", "Zg=="},        {"fo", "Zm8="},
		{"foo", "Zm9v"}, {"foob", "Zm9vYg=="}, {"\xff\xfe", "//4="}};
	char out[32];

	(void)state;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		size_t n = strlen(pairs[i][0]);

		base64_encode(pairs[i][0], n, out);
		assert_string_equal(out, pairs[i][1]);
		assert_int_equal(base64_decode(pairs[i][1], strlen(pairs[i][1]), out, n + 1), n);
		assert_string_equal(out, pairs[i][0]);
		assert_int_equal(base64_decode(pairs[i][1], strlen(pairs[i][1]), out, n), -1);
	}
	assert_int_equal(base64_decode("Zm9", 3, out, sizeof(out)), -1);
	assert_int_equal(base64_decode("Zm=v", 4, out, sizeof(out)), -1);
	assert_int_equal(base64_decode("====", 4, out, sizeof(out)), -1);
}

int main(void)
{
#define WITH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		WITH(test_call),
		WITH(test_request),
		WITH(test_no_detours),
		WITH(test_late),
		WITH(test_heeded_wake),
		WITH(test_nobody),
		WITH(test_rubbish),
		WITH(test_never_twice),
		WITH(test_many),
		WITH(test_stream),
		WITH(test_long_poll),
		WITH(test_stream_breaks),
		WITH(test_names),
		WITH(test_fork),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_secret),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_json_large),
		cmocka_unit_test(test_base64),
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_hints),
		cmocka_unit_test(test_foreign),
		cmocka_unit_test(test_many_hints),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
