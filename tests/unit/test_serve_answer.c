/*
 * test_serve_answer.c: what `baton serve` answers, without a socket: requests and a view go in,
 * replies come out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "serve/answer/answer.h"

#define NOW_NS 1000000000000

static struct serve_election web = {
	.name = "web",
	.takes_part = true,
	.leads = true,
	.state = BATON_STATE_LEADING,
	.state_name = "leading",
	.condition_name = "healthy",
	.my_term = 7,
	.term = 7,
	.deadline_boot_ns = NOW_NS + 8210000000,
	.leader = "me<b>\"\xff",
	.address = "",
	.wait = "",
	.error = "",
	.reason = "",
	.since_ms = 1700000000123,
	.seq = 41,
};
static struct serve_election other = {
	.name = "other",
	.state_name = "observing",
	.condition = BATON_CONDITION_DEGRADED,
	.condition_name = "degraded",
	.leader = "",
	.address = "",
	.wait = "",
	.error = "",
	.reason = "",
	.lease_left_ms = -1,
};
static const struct serve_election *const rows[] = {&other, &web};
static const char *const hosts[] = {"box.example", NULL};
static const char page[] = "<table><!--rows--></table>";
static const struct serve_asset assets[] = {{"index.html", "text/html", page, sizeof(page) - 1},
					    {"a.js", "text/javascript", "1;", 2}};
static struct serve_view view;
static struct serve_request request;
static struct serve_reply reply;
static char room[16384];

static int set_up(void **state)
{
	(void)state;
	view = (struct serve_view){.now_boot_ns = NOW_NS,
				   .now_wall_ms = 1700000001000,
				   .version = "1",
				   .boot_id = "b",
				   .id = "me",
				   .store = "file",
				   .promises = "",
				   .first_seq = 12,
				   .seq = 60,
				   .hosts = hosts,
				   .elections = rows,
				   .n_elections = 2,
				   .assets = assets,
				   .n_assets = 2};
	request = (struct serve_request){.method = "GET", .host = "localhost:80", .body = ""};
	web.leads = true;
	return 0;
}

/* The status; what is told stands in room. */
static int ask(const char *target)
{
	request.target = target;
	(void)memset(room, 0, sizeof(room));
	reply.body = (struct serve_text){room, sizeof(room) - 1, 0};
	serve_answer(&request, &view, &reply);
	return reply.status;
}

static bool says(const char *words)
{
	return strstr(room, words) != NULL;
}

static void change(const char *method, const char *body)
{
	request.method = method;
	request.content_type = "application/json";
	request.baton_request = "1";
	request.body = body;
	request.n_body = strlen(body);
	request.is_unix = true;
	request.peer_rights = SERVE_APPLY | SERVE_OPERATE;
}

static void probes(void **state)
{
	(void)state;
	request.host = "stranger.example"; /* they are for everybody */
	assert_int_equal(ask("/livez"), 200);
	view.stuck = true;
	assert_int_equal(ask("/livez"), 503);
	assert_int_equal(ask("/readyz"), 200);
	web.leads = false;
	assert_int_equal(ask("/standby/web"), 200);
	view.starting = true; /* a store that is silent has not said that anything is well */
	assert_int_equal(ask("/readyz"), 503);
	assert_true(says("starting"));
	assert_int_equal(ask("/standby/web"), 503);
	assert_int_equal(ask("/any/web"), 503);
	view.elections = rows;
	view.n_elections = 0;
	view.observing = true;
	assert_int_equal(ask("/readyz"), 503);
	view.starting = false;
	assert_int_equal(ask("/readyz"), 200);
	view.n_elections = 2;
	view.observing = false;
	web.leads = true;
	view.stopping = true;
	assert_int_equal(ask("/readyz"), 503);
	view.stopping = false;
	assert_int_equal(ask("/healthz"), 200);
	assert_true(says("degraded"));
	assert_int_equal(ask("/healthz?degraded=503"), 503);
	assert_int_equal(ask("/leader/web"), 200);
	assert_true(reply.has_role && reply.election == &web);
	assert_int_equal(ask("/standby/web"), 503);
	assert_int_equal(ask("/any/web"), 200);
	assert_int_equal(ask("/leader/other?standby=429"), 429);
	assert_int_equal(ask("/leader/other?standby=9"), 400);
	assert_int_equal(ask("/leader/nobody"), 404);
	view.now_boot_ns = web.deadline_boot_ns; /* the clock decides, not what events said */
	assert_int_equal(ask("/leader/web"), 503);
	request.method = "POST";
	assert_int_equal(ask("/livez"), 405);
	assert_string_equal(reply.allow, "GET, HEAD, OPTIONS");
	assert_int_equal(ask("/leader/web"), 405);
	assert_string_equal(reply.allow, "GET, HEAD, OPTIONS");
	request.method = "OPTIONS";
	assert_int_equal(ask("/livez"), 204);
	assert_string_equal(reply.allow, "GET, HEAD, OPTIONS");
	request.host = "localhost"; /* what is no probe has no OPTIONS */
	assert_int_equal(ask("/v1"), 405);
	assert_string_equal(reply.allow, "GET, HEAD");
}

static void hosts_are_checked(void **state)
{
	(void)state;
	assert_int_equal(ask("/v1"), 200);
	request.host = "evil.example:80";
	assert_int_equal(ask("/v1"), 421);
	request.host = "localhost.evil.example";
	assert_int_equal(ask("/v1"), 421);
	request.host = "BOX.example:8443";
	assert_int_equal(ask("/v1"), 200);
	request.host = "[::1]:80";
	assert_int_equal(ask("/v1"), 200);
	request.host = NULL;
	assert_int_equal(ask("/v1"), 400);
}

static void changes_need_more(void **state)
{
	(void)state;
	const char *target = "/v1/elections/web/resign?any=1";

	change("POST", "{}");
	assert_int_equal(ask(target), 202);
	assert_int_equal(reply.task, SERVE_RESIGN);
	request.content_type = "application/x-www-form-urlencoded";
	assert_int_equal(ask(target), 415);
	request.content_type = "application/json; charset=utf-8";
	assert_int_equal(ask(target), 202);
	request.baton_request = NULL;
	assert_int_equal(ask(target), 403);
	request.baton_request = "1";
	request.sec_fetch_site = "cross-site";
	assert_int_equal(ask(target), 403);
	request.sec_fetch_site = "same-origin";
	request.origin = "http://evil.example";
	assert_int_equal(ask(target), 403);
	request.origin = "http://localhost:80";
	assert_int_equal(ask(target), 202);
	request.n_body = SERVE_BODY_MAX + 1;
	assert_int_equal(ask(target), 413);
	request.n_body = 2;
	view.read_only = true;
	assert_int_equal(ask(target), 404);
}

static void rights(void **state)
{
	(void)state;
	change("POST", "{}");
	request.peer_rights = SERVE_APPLY;
	assert_int_equal(ask("/v1/elections/web/alive"), 204);
	assert_int_equal(ask("/v1/elections/web/resign?any=1"), 403);
	request.is_unix = false;
	assert_int_equal(ask("/v1/elections/web/alive"), 401);
	assert_true(reply.challenge);
	view.apply_token = "application-secret";
	view.operator_token = "operator-secret-xy";
	request.authorization = "Bearer application-secret";
	assert_int_equal(ask("/v1/elections/web/alive"), 204);
	assert_int_equal(ask("/v1/elections/web/resign?any=1"), 403);
	request.authorization = "Bearer operator-secret-xy";
	assert_int_equal(ask("/v1/elections/web/resign?any=1"), 202);
	request.authorization = "Bearer operator-secret-xyz";
	assert_int_equal(ask("/v1/elections/web/resign?any=1"), 401);
	request.authorization = "Bearer ";
	assert_int_equal(ask("/v1"), 401);
	request.authorization = NULL;
	request.method = "GET";
	assert_int_equal(ask("/v1"), 200);
	view.read_token = "reader-secret-1234";
	assert_int_equal(ask("/v1"), 401);
	assert_int_equal(ask("/leader/web"), 200);
	request.authorization = "bearer reader-secret-1234";
	assert_int_equal(ask("/v1"), 200);
	assert_true(says("\"mode\":\"reader\""));
	request.authorization = "Bearer operator-secret-xy";
	assert_int_equal(ask("/v1"), 200);
	assert_true(says("\"mode\":\"operator\""));
	view.read_only = true;
	assert_int_equal(ask("/v1"), 200);
	assert_true(says("\"mode\":\"reader\""));
}

static void orders_name_their_term(void **state)
{
	(void)state;
	change("POST", "{\"to\":\"b\\u00fc\",\"note\":\"why \\\"not\\\"\"}");
	assert_int_equal(ask("/v1/elections/web/transfer"), 412);
	request.if_match = "\"6\"";
	assert_int_equal(ask("/v1/elections/web/transfer"), 412);
	request.if_match = "7";
	assert_int_equal(ask("/v1/elections/web/transfer"), 400);
	request.if_match = "\"7\"";
	assert_int_equal(ask("/v1/elections/web/transfer?wait=10s"), 202);
	assert_int_equal(reply.task, SERVE_TRANSFER);
	assert_int_equal(reply.term, 7);
	assert_int_equal(reply.wait_ms, 10000);
	assert_string_equal(reply.to, "b\xc3\xbc");
	assert_string_equal(reply.note, "why \"not\"");
	change("PUT", "");
	assert_int_equal(ask("/v1/elections/web/paused"), 204);
	assert_int_equal(reply.task, SERVE_PAUSE);
	change("DELETE", "");
	assert_int_equal(ask("/v1/elections/web/paused"), 204);
	assert_int_equal(reply.task, SERVE_RESUME);
	change("POST", "");
	assert_int_equal(ask("/v1/elections/web/paused"), 405);
	change("PUT", "{}"); /* a flag of the election needs no term; one that is named counts */
	request.if_match = "\"6\"";
	assert_int_equal(ask("/v1/elections/web/paused"), 412);
	request.if_match = NULL;
	assert_int_equal(ask("/v1/elections/web/paused"), 204);
	assert_int_equal(ask("/v1/elections/web/paused?any=1"), 204);
	change("POST", "{\"quiet\":\"30s\"}");
	assert_int_equal(ask("/v1/elections/web/resign?any=1"), 202);
	assert_int_equal(reply.quiet_ms, 30000);
	change("POST", "{\"quite\":1}");
	assert_int_equal(ask("/v1/elections/web/resign?any=1"), 400);
}

/* Nothing of a body is left out without a word. */
static void bodies_are_taken_whole(void **state)
{
	static const struct {
		const char *method;
		const char *target;
		const char *body;
	} wrong[] = {
		{"PUT", "/v1/elections/web/paused", "{\"note\":\"x\"}"},
		{"DELETE", "/v1/elections/web/paused", "{\"until\":1}"},
		{"PUT", "/v1/elections/web/paused", "paused"},
		{"POST", "/v1/elections/web/resign?any=1", "{\"to\":\"b\"}"},
		{"POST", "/v1/elections/web/transfer?any=1", "{\"to\":\"b\",\"quiet\":\"1s\"}"},
		{"POST", "/v1/elections/web/alive", "{\"term\":\"7\"}"},
		{"POST", "/v1/elections/web/done", "{\"term\":\"7\",\"score\":1}"},
		{"POST", "/v1/elections/web/health", "{\"score\":1,\"renewed\":true}"},
		{"POST", "/v1/elections/web/lead", "{\"metadata\":\"m\"}"}};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		change(wrong[i].method, wrong[i].body);
		assert_int_equal(ask(wrong[i].target), 400);
	}
}

static void work(void **state)
{
	(void)state;
	change("POST", "{\"term\":\"7\"}");
	assert_int_equal(ask("/v1/elections/web/done"), 204);
	assert_int_equal(reply.term, 7);
	change("POST", "{}");
	assert_int_equal(ask("/v1/elections/web/done"), 400);
	request.accept = "application/x-ndjson";
	assert_int_equal(ask("/v1/elections/web/lead"), 200);
	assert_true(reply.task == SERVE_LEAD && reply.lines);
	assert_int_equal(ask("/v1/elections/other/lead"), 409);
	assert_int_equal(ask("/v1/elections/other/alive"), 409);
	assert_true(says("this election is only observed here"));
	change("POST", "{\"score\":1}");
	assert_int_equal(ask("/v1/elections/other/health"), 409);
	change("POST", "{\"term\":\"7\"}");
	assert_int_equal(ask("/v1/elections/other/done"), 409);
	change("POST", "{\"score\":0.85,\"metadata\":\"m\"}");
	assert_int_equal(ask("/v1/elections/web/health"), 204);
	assert_int_equal(reply.score_permille, 850);
	assert_string_equal(reply.metadata, "m");
	change("POST", "{\"score\":1.2}");
	assert_int_equal(ask("/v1/elections/web/health"), 400);
	change("POST", "{\"score\":");
	assert_int_equal(ask("/v1/elections/web/health"), 400);
}

static void leadership_has_a_deadline(void **state)
{
	(void)state;
	assert_int_equal(ask("/v1/elections/web/leadership"), 200);
	assert_int_equal(reply.task, SERVE_TELL);
	assert_true(says("{\"leader\":true,\"term\":\"7\",\"time_left_ms\":8210,"));
	assert_int_equal(ask("/v1/elections/web/terms/7"), 200);
	assert_int_equal(ask("/v1/elections/web/terms/6"), 410);
	assert_int_equal(ask("/v1/elections/web/terms/x"), 400);
	web.leads = false;
	assert_int_equal(ask("/v1/elections/web/leadership"), 200);
	assert_true(says("{\"leader\":false,\"term\":\"0\",\"time_left_ms\":0,"));
	assert_int_equal(reply.term, 0);
}

static void states(void **state)
{
	(void)state;
	assert_int_equal(ask("/v1/elections?prefix=w"), 200);
	assert_true(says("\"election\":\"web\"") && !says("\"election\":\"other\""));
	assert_true(says("\"since\":\"2023-11-14T22:13:20.123Z\""));
	assert_true(says("me<b>\\\"\xef\xbf\xbd")); /* what is no UTF-8 is replaced */
	assert_int_equal(ask("/v1/elections?limit=1"), 200);
	assert_true(says("\"more\":true"));
	assert_int_equal(ask("/v1/elections?limit=1&prefix=o"), 200);
	assert_true(says("\"more\":false") && says("\"election\":\"other\""));
	assert_int_equal(ask("/v1/elections?limit=2"), 200);
	assert_true(says("\"more\":false"));
	assert_int_equal(ask("/v1/elections?after=other&limit=1"), 200);
	assert_true(says("\"more\":false") && says("\"election\":\"web\""));
	assert_int_equal(ask("/v1/elections?limit=0"), 400);
	assert_int_equal(ask("/v1/elections/w%65b?after=41&wait=30s"), 200);
	assert_true(reply.task == SERVE_STATUS && reply.after == 41 && reply.wait_ms == 30000);
	assert_int_equal(ask("/v1/elections/web?after=x"), 400);
	assert_int_equal(ask("/v1/elections/web/history?check=1&limit=5"), 200);
	assert_true(reply.task == SERVE_HISTORY && reply.check && reply.limit == 5);
	assert_int_equal(ask("/v1/elections/web/%"), 400);
	assert_int_equal(ask("/v1/elections/web%00"), 400);
	assert_int_equal(ask("/metrics"), 404);
	request.last_event_id = "12";
	assert_int_equal(ask("/v1/events"), 200);
	assert_true(reply.task == SERVE_EVENTS && reply.after == 12);
}

/* What another process has told, before a restart, is no number of ours. */
static void foreign_numbers(void **state)
{
	static const char *const foreign[] = {"11", "61", "0", "18446744073709551615", "x"};
	char target[80];

	(void)state;
	for (size_t i = 0; i < 5; i++) {
		request.last_event_id = foreign[i];
		assert_int_equal(ask("/v1/events"), 200);
		assert_true(reply.after == UINT64_MAX);
		(void)snprintf(target, sizeof(target), "/v1/elections/web?after=%s&wait=1s",
			       foreign[i]);
		assert_int_equal(ask(target), foreign[i][0] == 'x' ? 400 : 200);
		assert_true(reply.after == UINT64_MAX || reply.status == 400);
	}
	request.last_event_id = "60";
	assert_int_equal(ask("/v1/events"), 200);
	assert_int_equal(reply.after, 60);
}

/* The tag of a status, if the client knows that of before. */
static int tag(const char *known, const struct baton_candidate *list, size_t n, char etag[40])
{
	const struct serve_status status = {
		.election = &web, .candidates = list, .n_candidates = n};
	struct serve_text text = {room, sizeof(room) - 1, 0};

	request.if_none_match = known;
	assert_int_equal(ask("/v1/elections/web"), 200);
	serve_write_still(&text, &view, &status);
	serve_tag(&reply, room, text.n);
	(void)strcpy(etag, reply.etag);
	return reply.status;
}

static void tags_of_what_is_shown(void **state)
{
	struct baton_candidate one = {.id = "one", .address = "", .metadata = ""};
	char first[40];
	char again[40];
	char list[120];

	(void)state;
	assert_int_equal(tag(NULL, &one, 1, first), 200);
	view.now_boot_ns++; /* time goes by, and the lease is renewed */
	web.deadline_boot_ns += 5000000000;
	assert_int_equal(tag(first, &one, 1, again), 304);
	assert_string_equal(first, again);
	assert_string_equal(reply.type, "");
	(void)snprintf(list, sizeof(list), "\"x\", %s, \"y\"", first + 2); /* W/ doesn't matter */
	assert_int_equal(tag(list, &one, 1, again), 304);
	assert_int_equal(tag("*", &one, 1, again), 304);
	assert_int_equal(tag("\"1\"", &one, 1, again), 200);
	assert_int_equal(tag(first, &one, 0, again), 200); /* a candidate has gone */
	one.is_healthy = true;
	assert_int_equal(tag(first, &one, 1, again), 200);
	one.is_healthy = false;
	web.leads = false;
	assert_int_equal(tag(first, &one, 1, again), 200);
	web.leads = true;
	web.seq++;
	assert_int_equal(tag(first, &one, 1, again), 200);
	web.seq--;
	web.deadline_boot_ns -= 5000000000;
	assert_int_equal(tag(first, &one, 1, again), 304);
}

static void status_is_that_of_the_command(void **state)
{
	static const char *const words[] = {"\"functions\":false", "\"functions\":true"};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		const struct baton_observed observed = {.functions = i == 1, .metadata = "m"};
		const struct serve_status status = {.election = &web, .observed = &observed};
		struct serve_text text = {room, sizeof(room) - 1, 0};

		(void)memset(room, 0, sizeof(room));
		serve_write_status(&text, &view, &status);
		assert_true(says("\"metadata\":\"m\"") && says(words[i]) && !says(words[1 - i]));
	}
}

/* What the store refuses or can't do has codes of its own. */
static void codes_of_the_library(void **state)
{
	static const struct {
		int code;
		int status;
		const char *title;
	} all[] = {
		{BATON_E_INVALID, 400, "Bad Request"},
		{BATON_E_NOT_LEADER, 409, "Conflict"},
		{BATON_E_STALE, 412, "Precondition Failed"},
		{BATON_E_NO_CANDIDATE, 422, "Unprocessable Content"},
		{BATON_E_UNSUPPORTED, 501, "Not Implemented"},
		{BATON_E_UNAVAILABLE, 503, "Service Unavailable"},
		{BATON_E_DENIED, 503, "Service Unavailable"},
		{BATON_E_CORRUPT, 503, "Service Unavailable"},
		{BATON_E_TIMEOUT, 504, "Gateway Timeout"},
		{BATON_E_SYSTEM, 500, "Internal Server Error"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		(void)memset(room, 0, sizeof(room));
		reply.task = SERVE_STATUS;
		serve_problem_of(&reply, all[i].code, "word", "a sentence");
		assert_int_equal(reply.status, all[i].status);
		assert_int_equal(reply.task, SERVE_NOTHING);
		assert_true(says(all[i].title) && says("\"code\":\"word\"") && says("a sentence"));
		assert_string_equal(reply.type, "application/problem+json");
	}
}

static void front_page(void **state)
{
	(void)state;
	request.accept = "text/html";
	assert_int_equal(ask("/"), 200);
	assert_true(says("<th scope=\"row\">web</th><td>me&lt;b&gt;&quot;"));
	assert_false(says("<b>"));
	assert_int_equal(ask("/a.js"), 200);
	assert_true(reply.is_asset && reply.n_body == 2);
	view.read_token = "reader-secret-1234"; /* the page, to ask for it: without a name */
	assert_int_equal(ask("/a.js"), 200);
	assert_int_equal(ask("/"), 200);
	assert_true(says("<table>") && !says("web"));
	request.accept = "*/*";
	view.elections = rows + 1;
	view.n_elections = 1;
	assert_int_equal(ask("/"), 401);
	view.read_token = NULL;
	view.elections = rows + 1;
	view.n_elections = 1;
	assert_int_equal(ask("/"), 200);
	assert_true(says("{\"name\":\"me<b>"));
	assert_int_equal(ask("/sse"), 200);
	assert_int_equal(reply.task, SERVE_ELECTOR_EVENTS);
}

static void too_little_room(void **state)
{
	(void)state;
	(void)ask("/v1/elections");
	size_t wanted = reply.body.n;

	request.target = "/v1/elections";
	(void)memset(room, '#', sizeof(room));
	reply.body = (struct serve_text){room, 10, 0};
	serve_answer(&request, &view, &reply);
	assert_int_equal(reply.body.n, wanted);
	assert_memory_equal(room + 10, "####", 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(probes, set_up),
		cmocka_unit_test_setup(hosts_are_checked, set_up),
		cmocka_unit_test_setup(changes_need_more, set_up),
		cmocka_unit_test_setup(rights, set_up),
		cmocka_unit_test_setup(orders_name_their_term, set_up),
		cmocka_unit_test_setup(bodies_are_taken_whole, set_up),
		cmocka_unit_test_setup(work, set_up),
		cmocka_unit_test_setup(leadership_has_a_deadline, set_up),
		cmocka_unit_test_setup(states, set_up),
		cmocka_unit_test_setup(foreign_numbers, set_up),
		cmocka_unit_test_setup(tags_of_what_is_shown, set_up),
		cmocka_unit_test_setup(codes_of_the_library, set_up),
		cmocka_unit_test_setup(status_is_that_of_the_command, set_up),
		cmocka_unit_test_setup(front_page, set_up),
		cmocka_unit_test_setup(too_little_room, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
