/*
 * test_web_addresses.c: hosts with several addresses, some of which are dead. The name service is
 * this file: the C library's lookups are answered by getaddrinfo_a() below.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/web/http.h"
#include "web_server.h"

#define SOON_MS 300    /* what is meant to be late */
#define LATER_MS 20000 /* what is not */
#define FULL 16

/* ---- the name service ---- */

static const char *answers[4]; /* NULL at the end */

/* NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): the header's are reserved */
int getaddrinfo_a(int mode, struct gaicb *list[], int n, struct sigevent *event)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST};
	struct addrinfo **at = &list[0]->ar_result;

	(void)mode;
	(void)event;
	for (size_t i = 0; n == 1 && answers[i] != NULL; i++, at = &(*at)->ai_next)
		if (getaddrinfo(answers[i], list[0]->ar_service, &hints, at) != 0)
			return EAI_NONAME;
	return 0;
}

int gai_error(struct gaicb *question)
{
	(void)question;
	return 0;
}
/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */

/* ---- the world ---- */

struct world {
	struct web_server *server; /* on 127.0.0.1 */
	int dead[FULL + 1];        /* a listener on the same port of 127.0.0.2, and what fills it */
	struct http *http;
	struct http_host host;
	int wake;
};

static struct sockaddr_in address_of(const struct world *w, const char *address)
{
	struct sockaddr_in in = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)web_server_port(w->server))};

	assert_int_equal(inet_pton(AF_INET, address, &in.sin_addr), 1);
	return in;
}

/* It accepts and stays silent; or, full, it drops what comes. */
static void make_dead(struct world *w, bool is_full)
{
	struct sockaddr_in in = address_of(w, "127.0.0.2");

	w->dead[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(w->dead[0], (struct sockaddr *)&in, sizeof(in)), 0);
	assert_int_equal(listen(w->dead[0], is_full ? 0 : FULL), 0);
	for (int i = 1; is_full && i <= FULL; i++) {
		w->dead[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		(void)connect(w->dead[i], (struct sockaddr *)&in, sizeof(in));
	}
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	w->server = web_server_new(NULL);
	w->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	w->http = http_new(&(struct http_config){.wake = w->wake, .probe = "/hello"});
	snprintf(w->host.name, sizeof(w->host.name), "store.test");
	snprintf(w->host.port, sizeof(w->host.port), "%u", web_server_port(w->server));
	memset(w->dead, -1, sizeof(w->dead));
	answers[0] = "127.0.0.2";
	answers[1] = "127.0.0.1";
	*state = w;
	return w->server != NULL && w->http != NULL ? 0 : -1;
}

static int teardown(void **state)
{
	struct world *w = *state;

	memset(answers, 0, sizeof(answers));
	http_free(w->http);
	web_server_free(w->server);
	for (int i = 0; i <= FULL; i++)
		if (w->dead[i] >= 0)
			close(w->dead[i]);
	close(w->wake);
	free(w);
	return 0;
}

static uint64_t in_ms(uint64_t ms)
{
	return clock_boot_ns() + ms * CLOCK_NS_PER_MS;
}

static int ask(struct world *w, const char *path, uint64_t ms, struct http_reply *r)
{
	struct http_request q = {.method = "PUT", .host = &w->host, .path = path, .body = "once"};

	q.body_size = strlen(q.body);
	return http_call(w->http, &q, in_ms(ms), r);
}

/* ---- one of them is dead ---- */

static void reaches_the_second(struct world *w)
{
	struct http_reply r;
	char last[512];

	assert_int_equal(ask(w, "/echo", LATER_MS, &r), HTTP_OK);
	assert_string_equal(r.body, "once");
	assert_int_equal(web_server_requests(w->server), 2); /* the first is the probe */
	assert_int_equal(ask(w, "/echo", LATER_MS, &r), HTTP_OK);
	assert_int_equal(web_server_requests(w->server), 3); /* it has answered before */
	web_server_last(w->server, last, sizeof(last));
	assert_non_null(strstr(last, "PUT /echo"));
}

static void test_silent(void **state)
{
	struct world *w = *state;

	make_dead(w, false);
	reaches_the_second(w);
}

static void test_full(void **state)
{
	struct world *w = *state;

	make_dead(w, true);
	reaches_the_second(w);
}

/* Nobody listens there: that is told at once. */
static void test_refused(void **state)
{
	reaches_the_second(*state);
}

/* After a failure it is another one's turn; the one that works is found again. */
static void test_failure(void **state)
{
	struct world *w = *state;
	struct http_reply r;

	make_dead(w, false);
	assert_int_equal(ask(w, "/echo", LATER_MS, &r), HTTP_OK);
	assert_int_equal(ask(w, "/mute", SOON_MS, &r), HTTP_LATE);
	assert_true(r.sent);
	unsigned n = web_server_requests(w->server);

	assert_int_equal(ask(w, "/echo", LATER_MS, &r), HTTP_OK);
	assert_int_equal(web_server_requests(w->server), n + 2);
}

/* Nothing was sent, so nothing can have happened. */
static void test_both_dead(void **state)
{
	struct world *w = *state;
	struct http_reply r;

	make_dead(w, false);
	answers[1] = "127.0.0.2";
	assert_int_equal(ask(w, "/echo", SOON_MS, &r), HTTP_LATE);
	assert_false(r.sent);
	assert_true(r.text[0] != '\0');
	answers[0] = "127.0.0.3"; /* and now by refusal */
	answers[1] = "127.0.0.4";
	snprintf(w->host.name, sizeof(w->host.name), "other.test");
	assert_int_equal(ask(w, "/echo", LATER_MS, &r), HTTP_UNAVAILABLE);
	assert_false(r.sent);
	assert_int_equal(web_server_requests(w->server), 0);
}

/* L7: who waits for a stream is woken meanwhile. */
static void test_woken(void **state)
{
	struct world *w = *state;
	struct http_request q = {.method = "GET", .host = &w->host, .path = "/lines"};
	struct http_reply r;
	uint64_t one = 1;

	make_dead(w, false);
	answers[1] = "127.0.0.2";
	assert_int_equal(write(w->wake, &one, sizeof(one)), sizeof(one));
	assert_int_equal(http_stream_open(w->http, &q, HTTP_LINES, in_ms(LATER_MS), &r), HTTP_LATE);
	assert_int_equal(read(w->wake, &one, sizeof(one)), sizeof(one)); /* it is the caller's */
}

static void test_stream(void **state)
{
	struct world *w = *state;
	struct http_request q = {.method = "GET", .host = &w->host, .path = "/lines"};
	struct http_reply r;

	make_dead(w, false);
	assert_int_equal(http_stream_open(w->http, &q, HTTP_LINES, in_ms(LATER_MS), &r), HTTP_OK);
	assert_int_equal(http_stream_next(w->http, in_ms(LATER_MS), &r), HTTP_OK);
}

/* ---- there is one ---- */

/* Who has one address is not asked twice. */
static void test_only_one(void **state)
{
	struct world *w = *state;
	struct http_reply r;

	answers[0] = "127.0.0.1";
	answers[1] = NULL;
	assert_int_equal(ask(w, "/echo", LATER_MS, &r), HTTP_OK);
	assert_int_equal(web_server_requests(w->server), 1); /* without a probe */
}

/* It is one of several that could be asked: so it has to show that it answers, and soon. */
static void test_prove(void **state)
{
	struct world *w = *state;
	struct http_request q = {.method = "PUT", .host = &w->host, .path = "/echo", .body = ""};
	struct http_reply r;

	make_dead(w, false);
	snprintf(w->host.name, sizeof(w->host.name), "127.0.0.2");
	q.prove_ns = in_ms(SOON_MS);
	assert_int_equal(http_call(w->http, &q, in_ms(LATER_MS), &r), HTTP_LATE);
	assert_false(r.sent);
	snprintf(w->host.name, sizeof(w->host.name), "127.0.0.1");
	q.prove_ns = in_ms(LATER_MS);
	assert_int_equal(http_call(w->http, &q, in_ms(LATER_MS), &r), HTTP_OK);
	assert_int_equal(web_server_requests(w->server), 2);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(test_silent),  WITH(test_full),      WITH(test_refused),
		WITH(test_failure), WITH(test_both_dead), WITH(test_woken),
		WITH(test_stream),  WITH(test_only_one),  WITH(test_prove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
