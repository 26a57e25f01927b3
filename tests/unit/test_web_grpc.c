/*
 * test_web_grpc.c: messages as protocol buffers have them, and calls and streams of gRPC against a
 * server that behaves badly on request.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/web/grpc.h"
#include "base/web/proto.h"
#include "grpc_server.h"

#define SOON_MS 200    /* what is meant to be late */
#define LATER_MS 20000 /* what is not */

/* ---- messages ---- */

static struct proto of(const struct bytes *b)
{
	return (struct proto){b->at, b->n};
}

/* As the encoding's own description has them. */
static void test_wire(void **state)
{
	struct bytes b = {0};

	(void)state;
	proto_put_number(&b, 1, 150);
	proto_put_text(&b, 2, "testing");
	size_t begin = proto_begin(&b, 3);

	proto_put_number(&b, 1, 150);
	proto_end(&b, begin);
	assert_int_equal(b.n, 17);
	assert_memory_equal(b.at, "\x08\x96\x01\x12\x07testing\x1a\x03\x08\x96\x01", 17);
	assert_false(b.has_failed);
	bytes_done(&b);
}

static void test_numbers(void **state)
{
	static const uint64_t numbers[] = {0, 1, 127, 128, 300, UINT32_MAX, INT64_MAX, UINT64_MAX};
	struct bytes b = {0};

	(void)state;
	for (unsigned i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		proto_put_number(&b, i + 1000, numbers[i]);
	for (unsigned i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		assert_true(proto_number(of(&b), i + 1000) == numbers[i]);
	assert_true(proto_number(of(&b), 7) == 0); /* there is none */
	proto_put_number(&b, 1000, 5);             /* the last one counts */
	assert_true(proto_number(of(&b), 1000) == 5);
	bytes_done(&b);
}

/* Lengths of more than one byte, at every depth. */
static void test_nested(void **state)
{
	static char text[5000];
	char out[6000];
	struct bytes b = {0};
	size_t begin[5];

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	for (unsigned i = 0; i < 5; i++) {
		proto_put_text(&b, 9, "before");
		begin[i] = proto_begin(&b, i + 1);
	}
	proto_put_text(&b, 6, text);
	for (unsigned i = 5; i-- > 0;) {
		proto_end(&b, begin[i]);
		proto_put_text(&b, 10, "behind");
	}
	struct proto m = of(&b);

	for (unsigned i = 0; i < 5; i++) {
		assert_true(proto_text(m, 9, out, sizeof(out)));
		assert_string_equal(out, "before");
		assert_true(proto_text(m, 10, out, sizeof(out)));
		assert_string_equal(out, "behind");
		m = proto_get(m, i + 1);
	}
	assert_true(proto_text(m, 6, out, sizeof(out)));
	assert_string_equal(out, text);
	bytes_done(&b);
}

static void test_lists(void **state)
{
	struct bytes b = {0};
	struct proto item;
	char out[8];

	(void)state;
	proto_put_text(&b, 2, "a");
	proto_put_number(&b, 2, 7); /* of another kind */
	proto_put_text(&b, 2, "");
	proto_put_text(&b, 2, "ccc");
	struct proto m = of(&b);

	assert_int_equal(proto_count(m, 2), 3);
	assert_int_equal(proto_count(m, 3), 0);
	item = proto_item(m, 2, 2);
	assert_int_equal(item.n, 3);
	assert_memory_equal(item.at, "ccc", 3);
	item = proto_item(m, 2, 1);
	assert_non_null(item.at); /* there, and empty */
	assert_int_equal(item.n, 0);
	assert_null(proto_item(m, 2, 3).at);
	assert_null(proto_item(m, 3, 0).at);
	size_t n = 0;

	for (struct proto rest = m; proto_next(&rest, 2, &item);)
		n += item.n;
	assert_int_equal(n, 4);
	assert_true(proto_text(m, 9, out, sizeof(out)));
	assert_string_equal(out, "");
	assert_false(proto_text(m, 2, out, 3)); /* no room for the NUL */
	assert_string_equal(out, "");
	bytes_done(&b);
	b = (struct bytes){0};
	assert_true(bytes_add(&b, "\x12\x02z\0", 4, SIZE_MAX));
	assert_false(proto_text(of(&b), 2, out, sizeof(out))); /* a NUL in it */
	bytes_done(&b);
}

static const struct proto_shape leaf[] = {{1, PROTO_NUMBER, NULL}, {2, PROTO_BYTES, NULL}, {0}};
static const struct proto_shape tree[] = {{1, PROTO_MESSAGE, leaf}, {2, PROTO_MESSAGE, tree}, {0}};

static bool fits(const char *text, size_t n, const struct proto_shape *shape)
{
	char *exact = malloc(n + 1); /* so that reading beyond it is noticed */

	memcpy(exact, text, n);
	bool ok = proto_fits((struct proto){exact, n}, shape);

	free(exact);
	return ok;
}

#define FITS(text, shape) fits(text, sizeof(text) - 1, shape)

static void test_shapes(void **state)
{
	(void)state;
	assert_true(FITS("", leaf));
	assert_true(FITS("\x08\x01\x12\x01z", leaf));
	assert_true(FITS("\x1d"
			 "1234"
			 "\x21"
			 "12345678",
			 leaf));               /* others are skipped */
	assert_false(FITS("\x0a\x01z", leaf)); /* 1 is a number */
	assert_false(FITS("\x10\x01", leaf));  /* 2 isn't */
	assert_false(FITS("\x08", leaf));
	assert_false(FITS("\x08\x80", leaf));
	assert_false(FITS("\x12\x02z", leaf));
	assert_false(FITS("\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01z", leaf));
	assert_false(FITS("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", leaf)); /* 65 bits */
	assert_true(FITS("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", leaf));
	assert_false(FITS("\x1d"
			  "123",
			  leaf));
	assert_false(FITS("\x0b\x0c", leaf)); /* groups are no more */
	assert_false(FITS("\x00\x00", leaf)); /* there is no field 0 */
	assert_true(FITS("\x0a\x02\x08\x01\x12\x04\x0a\x02\x08\x01", tree));
	assert_false(FITS("\x0a\x02\x0a\x01", tree));         /* within */
	assert_false(FITS("\x12\x04\x0a\x02\x08\x80", tree)); /* further within */
}

/* What goes on within itself for ever is no message. */
static void test_depth(void **state)
{
	struct bytes b = {0};
	size_t begin[16];

	(void)state;
	for (size_t depth = 7; depth < 9; depth++) {
		bytes_clear(&b);
		for (size_t i = 0; i < depth; i++)
			begin[i] = proto_begin(&b, 2);
		for (size_t i = depth; i-- > 0;)
			proto_end(&b, begin[i]);
		assert_int_equal(proto_fits(of(&b), tree), depth == 7);
	}
	bytes_done(&b);
}

/* ---- calls ---- */

struct world {
	struct grpc_server *server;
	struct http *http;
	struct http_host host;
	struct bytes body;
	int wake;
};

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	w->server = grpc_server_new();
	w->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	w->http = http_new(&(struct http_config){.wake = w->wake, .body_max = 2 << 20, .h2 = true});
	snprintf(w->host.name, sizeof(w->host.name), "127.0.0.1");
	snprintf(w->host.port, sizeof(w->host.port), "%u", grpc_server_port(w->server));
	*state = w;
	return w->server != NULL && w->http != NULL ? 0 : -1;
}

static int teardown(void **state)
{
	struct world *w = *state;

	http_free(w->http);
	grpc_server_free(w->server);
	bytes_done(&w->body);
	close(w->wake);
	free(w);
	return 0;
}

static uint64_t in_ms(uint64_t ms)
{
	return clock_boot_ns() + ms * CLOCK_NS_PER_MS;
}

static struct grpc_request ask(struct world *w, const char *what)
{
	static const char *const metadata[] = {"x-test: a", NULL};
	struct bytes *b = grpc_begin(&w->body);

	assert_true(bytes_add(b, what, strlen(what), SIZE_MAX));
	return (struct grpc_request){
		.host = &w->host, .path = "/test.Test/Do", .metadata = metadata, .body = b};
}

static int call(struct world *w, const char *what, uint64_t ms, struct grpc_reply *r)
{
	struct grpc_request q = ask(w, what);

	return grpc_call(w->http, &q, in_ms(ms), r);
}

static void is_well(struct world *w, const char *what)
{
	struct grpc_reply r;

	assert_int_equal(call(w, what, LATER_MS, &r), HTTP_OK);
	assert_int_equal(r.status, GRPC_OK);
	assert_int_equal(r.message.n, 6);
	assert_memory_equal(r.message.at, "hello!", 6);
}

/* One connection does for all, one after the other. */
static void test_call(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < 5; i++)
		is_well(w, "hello");
	assert_int_equal(grpc_server_connections(w->server), 1);
	assert_int_equal(grpc_server_requests(w->server), 5);
}

/* However the bytes of a long reply come in, none of them stays where nobody looks for it. */
static void test_long(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < 200; i++) {
		struct grpc_reply r;

		assert_int_equal(call(w, "long", LATER_MS, &r), HTTP_OK);
		assert_int_equal(r.status, GRPC_OK);
		assert_int_equal(r.message.n, 190000);
	}
	assert_int_equal(grpc_server_connections(w->server), 1);
}

static void test_error(void **state)
{
	struct world *w = *state;
	struct grpc_reply r;

	assert_int_equal(call(w, "error", LATER_MS, &r), HTTP_OK);
	assert_int_equal(r.status, GRPC_NOT_FOUND);
	assert_string_equal(r.text, "no such thing");
	assert_int_equal(call(w, "page", LATER_MS, &r), HTTP_OK);
	assert_int_equal(r.status, GRPC_NONE);
	assert_int_equal(r.http.status, 404);
	is_well(w, "hello");
	assert_int_equal(grpc_server_connections(w->server), 1);
}

/* Whatever comes that isn't one message with its status is no answer, and the request was sent. */
static void test_strange(void **state)
{
	static const struct {
		const char *what;
		int result, status;
	} cases[] = {
		{"bare", HTTP_OK, GRPC_NONE}, {"zip", HTTP_STRANGE, 0},
		{"two", HTTP_STRANGE, 0},     {"big", HTTP_STRANGE, GRPC_NONE},
		{"half", -1, GRPC_NONE},      {"close", -1, GRPC_NONE},
		{"none", HTTP_STRANGE, 0},    {"short", HTTP_STRANGE, 0},
	};
	struct world *w = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct grpc_reply r;
		int result = call(w, cases[i].what, LATER_MS, &r);

		if (cases[i].result >= 0)
			assert_int_equal(result, cases[i].result);
		else
			assert_int_not_equal(result, HTTP_OK);
		assert_int_equal(r.status, cases[i].status);
		assert_null(r.message.at);
		assert_true(r.http.sent);
		is_well(w, "hello");
	}
}

/* A connection that has ended meanwhile is no reason to fail: nothing was sent on it. */
static void test_goodbye(void **state)
{
	struct world *w = *state;

	for (unsigned i = 0; i < 3; i++) {
		is_well(w, "hello");
		is_well(w, "hello");
		assert_int_equal(grpc_server_connections(w->server), i + 1);
		grpc_server_hang_up(w->server);
		while (grpc_server_ended(w->server) < i + 1)
			sched_yield();
	}
}

/* Given up, and the next one begins on a fresh connection. */
static void test_mute(void **state)
{
	struct world *w = *state;
	uint64_t began_ns = clock_boot_ns();
	struct grpc_reply r;

	assert_int_equal(call(w, "mute", SOON_MS, &r), HTTP_LATE);
	assert_true(r.http.sent);
	assert_true(clock_boot_ns() - began_ns >= SOON_MS * CLOCK_NS_PER_MS);
	is_well(w, "hello");
	assert_int_equal(grpc_server_connections(w->server), 2);
}

/* Nobody waits for the answer any more: it isn't asked. */
static void test_too_late(void **state)
{
	struct world *w = *state;
	struct grpc_reply r;

	is_well(w, "hello");
	assert_int_equal(call(w, "hello", 0, &r), HTTP_LATE);
	assert_false(r.http.sent);
	is_well(w, "hello");
	assert_int_equal(grpc_server_requests(w->server), 2);
}

static void test_nobody(void **state)
{
	struct world *w = *state;
	struct grpc_reply r;

	is_well(w, "hello");
	grpc_server_free(w->server);
	w->server = grpc_server_new(); /* on another port */
	assert_int_equal(call(w, "hello", LATER_MS, &r), HTTP_UNAVAILABLE);
	assert_false(r.http.sent);
	assert_int_equal(r.status, GRPC_NONE);
}

/* ---- streams ---- */

static void open_stream(struct world *w, const char *what)
{
	struct grpc_request q = ask(w, what);
	struct http_reply r;

	assert_int_equal(grpc_stream_open(w->http, &q, in_ms(LATER_MS), &r), HTTP_OK);
}

static void is_next(struct world *w, const char *text)
{
	struct http_reply r;

	assert_int_equal(http_stream_next(w->http, in_ms(LATER_MS), &r), HTTP_OK);
	assert_int_equal(r.body_size, strlen(text));
	assert_memory_equal(r.body, text, strlen(text));
}

static void test_stream(void **state)
{
	struct world *w = *state;
	struct http_reply r;
	char text[HTTP_TEXT_MAX];

	is_well(w, "hello"); /* a stream that follows has a connection of its own */
	open_stream(w, "stream");
	is_next(w, "one");
	is_next(w, "");
	is_next(w, "three");
	assert_int_equal(http_stream_next(w->http, in_ms(LATER_MS), &r), HTTP_END);
	assert_int_equal(grpc_status_of(&r, text), GRPC_UNAVAILABLE);
	assert_string_equal(text, "no leader");
	assert_false(http_stream_is_open(w->http));
	is_well(w, "hello");
}

static void test_bad_streams(void **state)
{
	struct world *w = *state;
	struct http_reply r;
	char text[HTTP_TEXT_MAX];
	uint64_t one = 1;

	open_stream(w, "error");
	assert_int_equal(http_stream_next(w->http, in_ms(LATER_MS), &r), HTTP_END);
	assert_int_equal(grpc_status_of(&r, text), GRPC_NOT_FOUND);
	open_stream(w, "strange");
	is_next(w, "one");
	assert_int_equal(http_stream_next(w->http, in_ms(LATER_MS), &r), HTTP_STRANGE);
	assert_false(http_stream_is_open(w->http));
	open_stream(w, "big");
	assert_int_equal(http_stream_next(w->http, in_ms(LATER_MS), &r), HTTP_STRANGE);
	open_stream(w, "half");
	assert_int_not_equal(http_stream_next(w->http, in_ms(LATER_MS), &r), HTTP_OK);
	open_stream(w, "mute");
	assert_int_equal(http_stream_next(w->http, in_ms(SOON_MS), &r), HTTP_LATE);
	assert_int_equal(write(w->wake, &one, sizeof(one)), sizeof(one));
	assert_int_equal(http_stream_next(w->http, in_ms(LATER_MS), &r), HTTP_WOKEN);
	is_well(w, "hello");
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wire),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_nested),
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_shapes),
		cmocka_unit_test(test_depth),
		CASE(test_call),
		CASE(test_long),
		CASE(test_error),
		CASE(test_strange),
		CASE(test_goodbye),
		CASE(test_mute),
		CASE(test_too_late),
		CASE(test_nobody),
		CASE(test_stream),
		CASE(test_bad_streams),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
