/*
 * test_relay.c: the fault proxy itself (tests/relay): does it tell one message from the next, do
 * the rules fire when they should, and does each act do what rules.h says? The server of these
 * tests counts: it answers the n-th command that reaches it with the number n.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "relay/relay.h"

#define LIMIT_MS 5000
#define SHORT_MS 120 /* long enough to see that nothing comes */

/* ---- framing ---- */

static size_t first(const struct protocol *protocol, bool is_reply, const char *data, size_t n,
		    char *kind)
{
	struct protocol_state s = {0};
	struct message m = {0};
	bool is_whole = (is_reply ? protocol->reply : protocol->request)(&s, data, n, &m);

	if (kind != NULL)
		(void)snprintf(kind, KIND_SIZE, "%s", m.kind);
	return is_whole ? m.n : 0;
}

/* Whole only with its last byte, whatever follows. */
static void assert_frame(const struct protocol *protocol, bool is_reply, const char *data, size_t n,
			 const char *wanted)
{
	char kind[KIND_SIZE];
	char *more = malloc(n + 3);

	assert_non_null(more);
	memcpy(more, data, n);
	memcpy(more + n, "*1\r", 3);
	for (size_t i = 1; i < n; i++)
		assert_int_equal(first(protocol, is_reply, data, i, NULL), 0);
	assert_int_equal(first(protocol, is_reply, data, n, kind), n);
	assert_string_equal(kind, wanted);
	assert_int_equal(first(protocol, is_reply, more, n + 3, NULL), n);
	free(more);
}

#define FRAME(protocol, is_reply, text, kind) \
	assert_frame((protocol), (is_reply), (text), sizeof(text) - 1, (kind))

static void test_resp(void **state)
{
	(void)state;
	FRAME(&protocol_resp, false, "*2\r\n$7\r\nevalsha\r\n$3\r\na\r\n\r\n", "EVALSHA");
	FRAME(&protocol_resp, false, "PING\r\n", "PING");
	FRAME(&protocol_resp, true, "+OK\r\n", "status");
	FRAME(&protocol_resp, true, "-ERR no\r\n", "error");
	FRAME(&protocol_resp, true, ":12\r\n", "number");
	FRAME(&protocol_resp, true, "$4\r\n\r\n\r\n\r\n", "text");
	FRAME(&protocol_resp, true, "$-1\r\n", "text");
	FRAME(&protocol_resp, true, "*2\r\n*2\r\n:1\r\n$1\r\nx\r\n*0\r\n", "list");
	FRAME(&protocol_resp, true, "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nx\r\n", "push");
	FRAME(&protocol_resp, true, "%1\r\n+a\r\n*1\r\n:1\r\n", "text");
	/* No value has that many elements: rubbish is passed on as it is. */
	assert_int_equal(first(&protocol_resp, true, "*999999999\r\n", 12, NULL), 12);
}

static void test_postgres(void **state)
{
	(void)state;
	FRAME(&protocol_postgres, false, "\0\0\0\x9\0\3\0\0\0", "startup");
	FRAME(&protocol_postgres, false, "\0\0\0\x8\x4\xd2\x16\x2f", "encrypt");
	FRAME(&protocol_postgres, false, "Q\0\0\0\x7one", "query");
	FRAME(&protocol_postgres, false, "P\0\0\0\x6hiB\0\0\0\4S\0\0\0\4", "batch");
	FRAME(&protocol_postgres, false, "X\0\0\0\4", "terminate");
	FRAME(&protocol_postgres, true, "D\0\0\0\6xxC\0\0\0\6xxZ\0\0\0\5I", "ready");
	FRAME(&protocol_postgres, true, "R\0\0\0\x8\0\0\0\xa", "question");
	FRAME(&protocol_postgres, true, "R\0\0\0\x8\0\0\0\0S\0\0\0\4Z\0\0\0\5I", "ready");
	FRAME(&protocol_postgres, true, "A\0\0\0\6xx", "notification");
	assert_int_equal(first(&protocol_postgres, false, "Q\xff\xff\xff\xff?", 6, NULL), 6);
}

static void test_postgres_encrypted(void **state)
{
	struct protocol_state s = {.awaits_letter = true};
	struct message m = {0};

	(void)state;
	assert_true(protocol_postgres.reply(&s, "N", 1, &m));
	assert_false(s.is_opaque);
	s.awaits_letter = true;
	assert_true(protocol_postgres.reply(&s, "S", 1, &m));
	assert_true(s.is_opaque);
	assert_int_equal(m.n, 1);
}

#define GREETING "\3\0\0\0\nv\0"
#define LOGIN(flags) "\6\0\0\1" flags "ab"
#define OK(number, flags) "\7\0\0" number "\0\0\0" flags "\0\0\0"
#define EOF_PACKET(flags) "\5\0\0\4\xfe\0\0" flags "\0"
#define TERSE_END "\7\0\0\4\xfe\0\0\2\0\0\0"
#define COLUMN "\3\0\0\2def"
#define ROW "\2\0\0\3\1x"

/* A session that has come so far. */
static struct protocol_state mysql_at(unsigned step, bool is_terse)
{
	return (struct protocol_state){.step = step, .is_terse = is_terse};
}

/* Whole only with its last byte, whatever follows; with what was said before. */
static void assert_answer(struct protocol_state s, const char *data, size_t n, const char *kind)
{
	char more[256];

	memcpy(more, data, n);
	memcpy(more + n, "*1\r", 3);
	for (size_t i = 0; i <= n + 3; i += i < n ? 1 : 3) {
		struct protocol_state now = s;
		struct message m = {0};

		assert_int_equal(protocol_mysql.reply(&now, more, i, &m), i >= n);
		if (i < n)
			continue;
		assert_int_equal(m.n, n);
		assert_string_equal(m.kind, kind);
	}
}

#define ANSWER(s, text, kind) assert_answer((s), (text), sizeof(text) - 1, (kind))

/* Length, number, answer to, what it is; flags, a section, and a document {ping: 1} in it. */
#define MONGODB(what)                                                \
	"\x24\0\0\0\1\0\0\0\0\0\0\0" what "\0\0\0\0\0\x0f\0\0\0\x10" \
	"ping\0\1\0\0\0\0"

static void test_mongodb(void **state)
{
	(void)state;
	FRAME(&protocol_mongodb, false, MONGODB("\xdd\7\0\0"), "ping");
	FRAME(&protocol_mongodb, false, MONGODB("\xd4\7\0\0"), "query");
	FRAME(&protocol_mongodb, false, MONGODB("\1\0\0\0"), "message");
	FRAME(&protocol_mongodb, true, MONGODB("\xdd\7\0\0"), "reply");
	/* Shorter than its header, or longer than any: TLS, perhaps. */
	assert_int_equal(first(&protocol_mongodb, false, "\1\0\0\0 and what follows", 20, NULL),
			 20);
	assert_int_equal(first(&protocol_mongodb, true, "\x16\3\1\x7f and what follows", 20, NULL),
			 20);
}

static void test_mysql(void **state)
{
	const struct protocol_state login = mysql_at(1, false), command = mysql_at(2, false),
				    terse = mysql_at(2, true);

	(void)state;
	FRAME(&protocol_mysql, false, LOGIN("\0\0\0\0"), "login");
	FRAME(&protocol_mysql, false, "\5\0\0\0\3DO 1", "query");
	FRAME(&protocol_mysql, false, "\1\0\0\0\1", "quit");
	FRAME(&protocol_mysql, true, GREETING, "greeting");
	ANSWER(login, OK("\2", "\2"), "ok");
	ANSWER(login, "\2\0\0\2\1\3" OK("\3", "\2"), "ok");
	ANSWER(login, "\2\0\0\2\1\4", "question");
	ANSWER(login, "\3\0\0\2\xfexy", "question");
	ANSWER(command, OK("\1", "\2"), "ok");
	ANSWER(command, "\3\0\0\1\xff\x51\4", "error");
	ANSWER(command, "\1\0\0\1\1" COLUMN EOF_PACKET("\2") ROW ROW EOF_PACKET("\2"), "rows");
	ANSWER(terse, "\1\0\0\1\1" COLUMN ROW TERSE_END, "rows");
	/* Several statements: the last one's flags end the answer, or an error does. */
	ANSWER(command, OK("\1", "\xa") OK("\2", "\2"), "ok");
	ANSWER(command,
	       OK("\1", "\xa") "\1\0\0\2\1" COLUMN EOF_PACKET("\xa") ROW EOF_PACKET("\xa")
		       OK("\3", "\2"),
	       "rows");
	ANSWER(command, OK("\1", "\xa") "\3\0\0\1\xff\x51\4", "error");
}

static void test_mysql_login(void **state)
{
	struct protocol_state s = {0};
	struct message m = {0};

	(void)state;
	assert_true(protocol_mysql.reply(&s, GREETING, sizeof(GREETING) - 1, &m));
	assert_true(m.is_push);
	assert_true(protocol_mysql.request(&s, LOGIN("\0\0\0\1"), 10, &m));
	assert_true(s.is_terse);
	assert_true(protocol_mysql.reply(&s, OK("\2", "\2"), 11, &m));
	assert_false(m.is_push);
	assert_int_equal(s.step, 2);
	/* Whoever asks for encryption is not understood any more. */
	s = mysql_at(1, false);
	assert_true(protocol_mysql.request(&s, LOGIN("\0\x8\0\0"), 10, &m));
	assert_true(s.is_opaque);
	/* Nor is a command whose answer nobody here can find the end of. */
	s = mysql_at(2, false);
	assert_true(protocol_mysql.request(&s, "\2\0\0\0\x16x", 6, &m));
	assert_true(s.is_opaque);
}

#define TDS(type, last, text) type last "\0\xc\0\0\1\0" text

/* A message may be several packets, and its text is seen as ASCII. */
static void test_tds(void **state)
{
	static const char two[] = TDS("\3", "\0", "U\0P\0") TDS("\3", "\1", "S\0E\0");
	struct protocol_state s = {0};
	struct message m = {0};

	(void)state;
	FRAME(&protocol_tds, true, TDS("\4", "\1", "\xfd\0\0\0"), "reply");
	for (size_t i = 0; i < sizeof(two) - 1; i++)
		assert_false(protocol_tds.request(&s, two, i, &m));
	assert_true(protocol_tds.request(&s, two, sizeof(two) - 1, &m));
	assert_int_equal(m.n, sizeof(two) - 1);
	assert_string_equal(m.kind, "rpc");
	assert_non_null(memmem(m.text, m.text_n, "UP", 2));
	/* The answer to the prelogin says that what follows is encrypted, or that it never is. */
	static const char none[] = "\4\1\0\xf\0\0\1\0\1\0\6\0\1\xff\2";
	static const char on[] = "\4\1\0\xf\0\0\1\0\1\0\6\0\1\xff\1";

	assert_true(protocol_tds.reply(&s, none, sizeof(none) - 1, &m));
	assert_false(s.is_opaque);
	protocol_tds.forget(&s);
	s = (struct protocol_state){0};
	assert_true(protocol_tds.reply(&s, on, sizeof(on) - 1, &m));
	assert_true(s.is_opaque);
}

static void test_memcached(void **state)
{
	struct protocol_state s = {0};
	struct message m = {0};

	(void)state;
	FRAME(&protocol_memcached, false, "mg k v c\r\n", "mg");
	FRAME(&protocol_memcached, false, "ms k 3 C7 c\r\na\nb\r\n", "ms");
	FRAME(&protocol_memcached, false, "set k 0 0 4\r\nu pw\r\n", "set");
	FRAME(&protocol_memcached, false, "stats\r\n", "stats");
	FRAME(&protocol_memcached, true, "HD c7\r\n", "HD");
	FRAME(&protocol_memcached, true, "VA 3 c7\r\na\nb\r\n", "VA");
	FRAME(&protocol_memcached, true, "STAT pid 1\r\nSTAT time 2\r\nEND\r\n", "STAT");
	FRAME(&protocol_memcached, true, "SERVER_ERROR out of memory\r\n", "SERVER_ERROR");
	/* Who speaks TLS is not understood. */
	assert_true(protocol_memcached.request(&s, "\x16\3\1", 3, &m));
	assert_true(s.is_opaque);
}

/* ---- rules ---- */

static void test_http(void **state)
{
	struct protocol_state s = {0};
	struct message m = {0};
	static const char watch[] = "POST /v3/watch HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}";

	(void)state;
	FRAME(&protocol_http, false, "GET /version HTTP/1.1\r\nHost: a\r\n\r\n", "/version");
	FRAME(&protocol_http, false,
	      "POST /v3/kv/txn?release HTTP/1.1\r\ncontent-length:  3\r\nX: y\r\n\r\n{ }",
	      "/v3/kv/txn?release");
	FRAME(&protocol_http, true, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n\r\n\r\n", "200");
	FRAME(&protocol_http, true, "HTTP/1.1 204 No Content\r\nA: b\r\n\r\n", "204");
	FRAME(&protocol_http, true, "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
	      "304");
	FRAME(&protocol_http, true,
	      "HTTP/1.1 503 No\r\nTransfer-Encoding: chunked\r\n\r\n"
	      "c\r\nhello\r\n0\r\n\r\n\r\n3;x\r\nabc\r\n0\r\nTrailer: z\r\n\r\n",
	      "503");
	/* What never ends is passed on as it comes. */
	assert_true(protocol_http.request(&s, watch, sizeof(watch) - 1, &m));
	assert_int_equal(m.n, sizeof(watch) - 1);
	assert_true(s.is_opaque);
}

static void test_rules_are_read_and_written(void **state)
{
	static const char text[] = "label renew 5bb1\n"
				   "request renew text=job nth=3 times=1 -> cut-after\n"
				   "reply list every=2 after=5 chance=50 -> delay 0\n";
	static struct rules a, b;
	char why[200], one[RULES_TEXT_SIZE], two[RULES_TEXT_SIZE];

	(void)state;
	rules_init(&a, 7);
	rules_init(&b, 7);
	assert_true(rules_set(&a, 0, text, 0, why, sizeof(why)));
	assert_int_equal(a.n, 2);
	rules_text(&a, one, sizeof(one));
	assert_true(rules_set(&b, 0, one, 0, why, sizeof(why)));
	rules_text(&b, two, sizeof(two));
	assert_string_equal(one, two);
	assert_non_null(strstr(one, "request renew text=job nth=3 times=1 -> cut-after"));
	assert_non_null(strstr(one, "reply list every=2 after=5 chance=50 -> delay 0"));
}

static void test_rules_refused(void **state)
{
	static const char *const texts[] = {"perhaps -> cut",
					    "request",
					    "request ->",
					    "request -> explode",
					    "request -> delay",
					    "request -> delay soon",
					    "request -> cut 5",
					    "request nth=x -> cut",
					    "request often=1 -> cut",
					    "reply -> refuse",
					    "reply -> mute",
					    "label alone"};
	static struct rules r;
	char why[200];

	(void)state;
	rules_init(&r, 1);
	assert_true(rules_set(&r, 3, "request -> cut", 0, why, sizeof(why)));
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_false(rules_set(&r, 3, texts[i], 0, why, sizeof(why)));
	assert_int_equal(r.n, 1); /* nothing was changed */
	assert_true(rules_set(&r, 3, "", 0, why, sizeof(why)));
	assert_int_equal(r.n, 0);
}

static void test_slots(void **state)
{
	static struct rules r;
	struct message m = {.text = "a", .text_n = 1, .kind = "GET"};
	char why[200];

	(void)state;
	rules_init(&r, 1);
	assert_true(rules_set(&r, 0, "request -> cut; request -> half", 0, why, sizeof(why)));
	assert_true(rules_set(&r, 2, "request times=1 -> drop", 0, why, sizeof(why)));
	assert_int_equal(rules_match(&r, false, false, &m, 0)->act, ACT_DROP);
	assert_int_equal(rules_match(&r, false, false, &m, 0)->act, ACT_CUT);
}

/* Which of 12 messages a rule fires on, as letters. */
static const char *pattern(const char *rule, uint64_t seed)
{
	static struct rules r;
	static char text[13];
	char why[200];
	struct message m = {.text = "abcd", .text_n = 4, .kind = "GET"};

	rules_init(&r, seed);
	assert_true(rules_set(&r, 0, rule, 100, why, sizeof(why)));
	for (unsigned i = 0; i < 12; i++)
		text[i] = rules_match(&r, false, false, &m, 100 + i) != NULL ? 'x' : '.';
	return text;
}

static void test_triggers(void **state)
{
	char once[13];

	(void)state;
	assert_string_equal(pattern("request -> cut", 1), "xxxxxxxxxxxx");
	assert_string_equal(pattern("reply -> cut", 1), "............");
	assert_string_equal(pattern("request GET nth=3 -> cut", 1), "..x.........");
	assert_string_equal(pattern("request SET -> cut", 1), "............");
	assert_string_equal(pattern("request @ -> cut", 1), "............");
	assert_string_equal(pattern("request every=4 -> cut", 1), "...x...x...x");
	assert_string_equal(pattern("request every=4 times=2 -> cut", 1), "...x...x....");
	assert_string_equal(pattern("request after=9 -> cut", 1), ".........xxx");
	assert_string_equal(pattern("request text=bc -> cut", 1), "xxxxxxxxxxxx");
	assert_string_equal(pattern("request text=cb -> cut", 1), "............");
	assert_string_equal(pattern("request chance=0 -> cut", 1), "............");
	/* The same seed decides the same, another one doesn't. */
	memcpy(once, pattern("request chance=50 -> cut", 42), sizeof(once));
	assert_string_equal(pattern("request chance=50 -> cut", 42), once);
	assert_string_not_equal(pattern("request chance=50 -> cut", 43), once);
}

/* ---- the whole ---- */

struct stage {
	int listener;
	pthread_t thread;
	struct relay *relay;
	unsigned reached; /* commands that the server has read; its thread's until it is joined */
};

static void answer(struct stage *t, int fd)
{
	char data[256], word[16];
	ssize_t n;

	while ((n = recv(fd, data, sizeof(data), 0)) > 0)
		for (ssize_t i = 0; i < n; i++)
			if (data[i] == '\n') {
				int size = snprintf(word, sizeof(word), ":%u\r\n", ++t->reached);

				(void)send(fd, word, (size_t)size, MSG_NOSIGNAL);
			}
	(void)close(fd);
}

/* One connection after the other; a listener that was shut ends it. */
static void *server(void *arg)
{
	struct stage *t = arg;

	for (int fd; (fd = accept4(t->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0;)
		answer(t, fd);
	return NULL;
}

static int call(unsigned port)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (const struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}

static int begin(void **state)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(at);
	struct stage *t = calloc(1, sizeof(*t));

	t->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(t->listener, (const struct sockaddr *)&at, size) != 0 ||
	    listen(t->listener, 8) != 0 ||
	    getsockname(t->listener, (struct sockaddr *)&at, &size) != 0 ||
	    pthread_create(&t->thread, NULL, server, t) != 0)
		return -1;
	t->relay = relay_new(&(struct relay_options){
		.protocol = &protocol_resp, .server_port = ntohs(at.sin_port), .seed = 1});
	*state = t;
	return t->relay != NULL ? 0 : -1;
}

static int end(void **state)
{
	struct stage *t = *state;

	relay_free(t->relay);
	(void)shutdown(t->listener, SHUT_RDWR);
	(void)close(t->listener);
	(void)pthread_join(t->thread, NULL);
	free(t);
	return 0;
}

static void rules(const struct stage *t, const char *text)
{
	char why[200];

	assert_true(relay_rules(t->relay, 0, text, why, sizeof(why)));
}

static void ask(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* What comes within so long: a line, "end", "reset" or "silence". */
static const char *hear_for(int fd, int ms)
{
	static char line[64];
	size_t n = 0;

	for (;;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		ssize_t got = poll(&p, 1, ms) > 0 ? recv(fd, line + n, 1, 0) : -2;

		if (got == -2)
			return n == 0 ? "silence" : line;
		if (got < 0)
			return "reset";
		if (got == 0)
			return n == 0 ? "end" : line;
		line[++n] = '\0';
		if (line[n - 1] == '\n' || n + 1 == sizeof(line))
			return line;
	}
}

static const char *hear(int fd)
{
	return hear_for(fd, LIMIT_MS);
}

static void test_passes(void **state)
{
	struct stage *t = *state;
	int fd = call(relay_port(t->relay));
	struct relay_counts counts;

	ask(fd, "ONE\r\nTWO\r\nTH");
	assert_string_equal(hear(fd), ":1\r\n");
	assert_string_equal(hear(fd), ":2\r\n");
	ask(fd, "REE\r\n");
	assert_string_equal(hear(fd), ":3\r\n");
	relay_counts(t->relay, &counts);
	assert_int_equal(counts.requests, 3);
	(void)close(fd);
}

/* What the n-th of three requests meets, what is heard then, and whether it has reached the
 * server: the next one on a new connection tells by its number. */
static void meets(struct stage *t, const char *act, const char *heard, const char *next)
{
	char text[80];

	(void)snprintf(text, sizeof(text), "request B -> %s", act);
	rules(t, text);
	int fd = call(relay_port(t->relay));

	ask(fd, "A\r\n");
	assert_string_equal(hear(fd), ":1\r\n");
	ask(fd, "B\r\n");
	assert_string_equal(hear_for(fd, heard[0] == 's' ? SHORT_MS : LIMIT_MS), heard);
	(void)close(fd);
	fd = call(relay_port(t->relay));
	ask(fd, "C\r\n");
	assert_string_equal(hear(fd), next);
	(void)close(fd);
}

static void test_drop(void **state)
{
	meets(*state, "drop", "silence", ":2\r\n");
}

static void test_cut(void **state)
{
	meets(*state, "cut", "reset", ":2\r\n");
}

static void test_cut_after(void **state)
{
	meets(*state, "cut-after", "reset", ":3\r\n");
}

static void test_half(void **state)
{
	meets(*state, "half", "reset", ":2\r\n");
}

static void test_mute(void **state)
{
	meets(*state, "mute", "silence", ":3\r\n");
}

static void test_stall(void **state)
{
	meets(*state, "stall", "silence", ":2\r\n");
}

static void test_refuse(void **state)
{
	meets(*state, "refuse", "-LOADING not now, says the test\r\n", ":2\r\n");
}

/* Carried out twice, answered once, and the answers after it fit. */
static void test_duplicate(void **state)
{
	struct stage *t = *state;
	int fd = call(relay_port(t->relay));

	rules(t, "request B -> duplicate");
	ask(fd, "A\r\nB\r\nC\r\n");
	assert_string_equal(hear(fd), ":1\r\n");
	assert_string_equal(hear(fd), ":2\r\n");
	assert_string_equal(hear(fd), ":4\r\n");
	(void)close(fd);
}

static void test_replies(void **state)
{
	struct stage *t = *state;
	int fd = call(relay_port(t->relay));

	rules(t, "reply nth=2 -> drop; reply nth=4 -> duplicate; reply nth=5 -> half");
	ask(fd, "A\r\nB\r\nC\r\nD\r\n");
	assert_string_equal(hear(fd), ":1\r\n");
	assert_string_equal(hear(fd), ":3\r\n");
	assert_string_equal(hear(fd), ":4\r\n");
	assert_string_equal(hear(fd), ":4\r\n");
	ask(fd, "E\r\n");
	assert_string_equal(hear(fd), ":5");
	(void)close(fd);
}

static uint64_t now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void test_delays(void **state)
{
	static const char *const acts[] = {"request B -> delay 150", "request B -> late 150"};
	struct stage *t = *state;

	for (unsigned i = 0; i < 2; i++) {
		int fd = call(relay_port(t->relay));

		rules(t, acts[i]);
		uint64_t began = now_ms();

		ask(fd, "B\r\nC\r\n"); /* C can't overtake it */
		assert_int_equal(hear(fd)[1], '1' + 2 * (int)i);
		assert_true(now_ms() - began >= 149);
		assert_int_equal(hear(fd)[1], '2' + 2 * (int)i);
		(void)close(fd);
	}
}

/* Of a delay that is taken back nothing is left. */
static void test_let_go(void **state)
{
	struct stage *t = *state;
	int fd = call(relay_port(t->relay));

	rules(t, "request -> late 600000");
	ask(fd, "A\r\n");
	assert_string_equal(hear_for(fd, SHORT_MS), "silence");
	rules(t, "");
	assert_string_equal(hear(fd), ":1\r\n");
	(void)close(fd);
}

static void test_switches(void **state)
{
	struct stage *t = *state;
	int fd = call(relay_port(t->relay));
	int clear = call(relay_clear_port(t->relay));

	ask(fd, "A\r\n");
	assert_string_equal(hear(fd), ":1\r\n");
	relay_hole(t->relay, true);
	ask(fd, "B\r\n");
	assert_string_equal(hear_for(fd, SHORT_MS), "silence");
	relay_hole(t->relay, false);
	assert_string_equal(hear(fd), "reset"); /* torn: nothing sensible can follow */
	(void)close(fd);
	rules(t, "request -> drop");
	relay_down(t->relay, true);
	fd = call(relay_port(t->relay));
	assert_string_equal(hear(fd), "reset");
	(void)close(fd);
	ask(clear, "C\r\n");
	assert_string_equal(hear(clear), ":2\r\n");
	(void)close(clear);
}

static void test_labels(void **state)
{
	struct stage *t = *state;
	int fd = call(relay_port(t->relay));

	rules(t, "label renew beef; request renew nth=2 -> cut-after; request @ nth=9 -> drop");
	ask(fd, "EVALSHA beef\r\n");
	assert_string_equal(hear(fd), ":1\r\n");
	ask(fd, "EVALSHA dead\r\n");
	assert_string_equal(hear(fd), ":2\r\n");
	ask(fd, "EVALSHA beef\r\n");
	assert_string_equal(hear(fd), "reset");
	assert_int_equal(relay_labelled(t->relay, "renew"), 2);
	(void)close(fd);
}

#define WHOLE(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_resp),
		cmocka_unit_test(test_postgres),
		cmocka_unit_test(test_http),
		cmocka_unit_test(test_postgres_encrypted),
		cmocka_unit_test(test_mongodb),
		cmocka_unit_test(test_mysql),
		cmocka_unit_test(test_mysql_login),
		cmocka_unit_test(test_memcached),
		cmocka_unit_test(test_tds),
		cmocka_unit_test(test_rules_are_read_and_written),
		cmocka_unit_test(test_rules_refused),
		cmocka_unit_test(test_slots),
		cmocka_unit_test(test_triggers),
		WHOLE(test_passes),
		WHOLE(test_drop),
		WHOLE(test_cut),
		WHOLE(test_cut_after),
		WHOLE(test_half),
		WHOLE(test_mute),
		WHOLE(test_stall),
		WHOLE(test_refuse),
		WHOLE(test_duplicate),
		WHOLE(test_replies),
		WHOLE(test_delays),
		WHOLE(test_let_go),
		WHOLE(test_switches),
		WHOLE(test_labels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
