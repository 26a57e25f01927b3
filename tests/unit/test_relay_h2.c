/*
 * test_relay_h2.c: the fault proxy on HTTP/2 with gRPC. Both ends are nghttp2's, which is strict:
 * whatever the proxy drops, doubles or answers itself, they must find nothing to object to. The
 * server of these tests counts, as that of test_relay.c does: it answers the n-th request that
 * reaches it with the number n, and says what its header `baton` was.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <nghttp2/nghttp2.h>
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
#define STREAMS 600  /* numbers of streams that these tests use */
#define LONG 100000  /* more than a window */

static const char preface[] = NGHTTP2_CLIENT_MAGIC;

/* ---- an end of a connection ---- */

struct talk {
	bool is_watch;
	bool is_over;
	char status[8]; /* gRPC's */
	char words[64]; /* its message, or the header `baton` of a request */
	char body[64];  /* the end of it is cut */
	size_t body_n;  /* of all of it */
	size_t sent;
};

struct end {
	int fd;
	nghttp2_session *session;
	bool is_odd; /* the other end said something that makes no sense */
	unsigned *reached;
	struct talk talks[STREAMS];
};

static ssize_t give_body(nghttp2_session *session, int32_t id, uint8_t *to, size_t room,
			 uint32_t *flags, nghttp2_data_source *source, void *arg)
{
	struct end *e = arg;
	struct talk *t = &e->talks[id];
	size_t size = e->reached != NULL ? t->body_n : *(size_t *)source->ptr;
	size_t n = size - t->sent < room ? size - t->sent : room;

	if (t->is_watch) { /* letter by letter, and it never ends */
		n = t->sent < 3;
		memset(to, 'a' + (int)t->sent, n);
		t->sent += n;
		return n > 0 ? (ssize_t)n : NGHTTP2_ERR_DEFERRED;
	}
	memset(to, 'x', n);
	if (e->reached != NULL)
		memcpy(to, t->body + t->sent, n);
	t->sent += n;
	if (t->sent == size) {
		*flags |= NGHTTP2_DATA_FLAG_EOF;
		if (e->reached != NULL) {
			nghttp2_nv trailer = {(uint8_t *)"grpc-status", (uint8_t *)"0", 11, 1, 0};

			*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
			(void)nghttp2_submit_trailer(session, id, &trailer, 1);
		}
	}
	return (ssize_t)n;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *f, const uint8_t *name,
		     size_t name_n, const uint8_t *value, size_t n, uint8_t flags, void *arg)
{
	struct end *e = arg;
	struct talk *t = &e->talks[f->hd.stream_id];

	(void)session;
	(void)flags;
	if (name_n == 5 && memcmp(name, ":path", 5) == 0)
		t->is_watch = memmem(value, n, "/Watch", 6) != NULL;
	if (name_n == 11 && memcmp(name, "grpc-status", 11) == 0)
		(void)snprintf(t->status, sizeof(t->status), "%.*s", (int)n, (const char *)value);
	if ((name_n == 12 && memcmp(name, "grpc-message", 12) == 0) ||
	    (name_n == 5 && memcmp(name, "baton", 5) == 0))
		(void)snprintf(t->words, sizeof(t->words), "%.*s", (int)n, (const char *)value);
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
		   size_t n, void *arg)
{
	struct end *e = arg;
	struct talk *t = &e->talks[id];

	(void)session;
	(void)flags;
	for (size_t i = 0; i < n; i++)
		if (t->body_n++ + 1 < sizeof(t->body))
			t->body[t->body_n - 1] = (char)data[i];
	return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *f, void *arg)
{
	static const nghttp2_nv head[] = {
		{(uint8_t *)":status", (uint8_t *)"200", 7, 3, 0},
		{(uint8_t *)"content-type", (uint8_t *)"application/grpc", 12, 16, 0}};
	nghttp2_data_provider body = {.read_callback = give_body};
	struct end *e = arg;
	struct talk *t = &e->talks[f->hd.stream_id % STREAMS];

	if (f->hd.type == NGHTTP2_GOAWAY)
		e->is_odd = true;
	if ((f->hd.type != NGHTTP2_HEADERS && f->hd.type != NGHTTP2_DATA) ||
	    (f->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0)
		return 0;
	t->is_over = true;
	if (e->reached == NULL)
		return 0;
	/* A whole request: it is answered. */
	char word[21];

	memcpy(word, t->words, sizeof(word) - 1);
	word[sizeof(word) - 1] = '\0';
	t->body_n = (size_t)snprintf(t->body, sizeof(t->body), "%u %s", ++*e->reached, word);
	return nghttp2_submit_response(session, f->hd.stream_id, head, 2, &body);
}

static int on_invalid(nghttp2_session *session, const nghttp2_frame *f, int why, void *arg)
{
	(void)session;
	(void)f;
	(void)why;
	((struct end *)arg)->is_odd = true;
	return 0;
}

static void end_init(struct end *e, int fd, unsigned *reached)
{
	nghttp2_session_callbacks *calls;

	*e = (struct end){.fd = fd, .reached = reached};
	assert_int_equal(nghttp2_session_callbacks_new(&calls), 0);
	nghttp2_session_callbacks_set_on_header_callback(calls, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(calls, on_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(calls, on_frame);
	nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(calls, on_invalid);
	assert_int_equal((reached != NULL ? nghttp2_session_server_new
					  : nghttp2_session_client_new)(&e->session, calls, e),
			 0);
	nghttp2_session_callbacks_del(calls);
	assert_int_equal(nghttp2_submit_settings(e->session, NGHTTP2_FLAG_NONE, NULL, 0), 0);
}

static void end_done(struct end *e)
{
	nghttp2_session_del(e->session);
	(void)close(e->fd);
}

static void flush_out(struct end *e)
{
	const uint8_t *data;
	ssize_t n;

	while ((n = nghttp2_session_mem_send(e->session, &data)) > 0)
		if (send(e->fd, data, (size_t)n, MSG_NOSIGNAL) != n)
			return;
}

/* What has come within so long: 0, or the end, or a reset, as of recv(2). */
static ssize_t take_in(struct end *e, int ms)
{
	struct pollfd p = {.fd = e->fd, .events = POLLIN};
	uint8_t data[4096];
	ssize_t got = poll(&p, 1, ms) > 0 ? recv(e->fd, data, sizeof(data), 0) : -2;

	if (got > 0 && nghttp2_session_mem_recv(e->session, data, (size_t)got) != got)
		e->is_odd = true;
	flush_out(e);
	return got;
}

/* ---- the server ---- */

struct stage {
	int listener;
	pthread_t thread;
	struct relay *relay;
	unsigned reached; /* requests that the server has read; its thread's until it is joined */
	bool was_odd;     /* somebody said something to it that makes no sense */
};

/* One connection after the other; a listener that was shut ends it. */
static void *server(void *arg)
{
	struct stage *t = arg;
	struct end *e = malloc(sizeof(*e));

	for (int fd; (fd = accept4(t->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0;) {
		end_init(e, fd, &t->reached);
		flush_out(e);
		while (!e->is_odd && take_in(e, -1) > 0)
			;
		t->was_odd = t->was_odd || e->is_odd;
		end_done(e);
	}
	free(e);
	return NULL;
}

static int begin(void **state)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(at);
	struct stage *t = *state = calloc(1, sizeof(*t));

	t->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(t->listener, (const struct sockaddr *)&at, size) != 0 ||
	    listen(t->listener, 8) != 0 ||
	    getsockname(t->listener, (struct sockaddr *)&at, &size) != 0 ||
	    pthread_create(&t->thread, NULL, server, t) != 0)
		return -1;
	t->relay = relay_new(&(struct relay_options){
		.protocol = &protocol_h2, .server_port = ntohs(at.sin_port), .seed = 1});
	return t->relay != NULL ? 0 : -1;
}

static int finish(void **state)
{
	struct stage *t = *state;

	relay_free(t->relay);
	(void)shutdown(t->listener, SHUT_RDWR);
	(void)close(t->listener);
	(void)pthread_join(t->thread, NULL);
	bool was_odd = t->was_odd;

	free(t);
	return was_odd ? -1 : 0;
}

/* ---- a client ---- */

static struct end *call(unsigned port)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct end *e = malloc(sizeof(*e));
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_non_null(e);
	assert_int_equal(connect(fd, (const struct sockaddr *)&at, sizeof(at)), 0);
	end_init(e, fd, NULL);
	return e;
}

static void hang_up(struct end *e)
{
	assert_false(e->is_odd);
	end_done(e);
	free(e);
}

/* Asks for a method, with a header and so many bytes; the number of the stream. */
static int32_t ask_long(struct end *e, const char *path, const char *word, size_t n)
{
	static size_t size;
	size = n;
	const nghttp2_nv head[] = {
		{(uint8_t *)":method", (uint8_t *)"POST", 7, 4, 0},
		{(uint8_t *)":scheme", (uint8_t *)"http", 7, 4, 0},
		{(uint8_t *)":path", (uint8_t *)path, 5, strlen(path), 0},
		{(uint8_t *)":authority", (uint8_t *)"etcd", 10, 4, 0},
		{(uint8_t *)"te", (uint8_t *)"trailers", 2, 8, 0},
		{(uint8_t *)"baton", (uint8_t *)word, 5, strlen(word), 0},
		{(uint8_t *)"authorization", (uint8_t *)"s", 13, 1, NGHTTP2_NV_FLAG_NO_INDEX}};
	nghttp2_data_provider body = {.source.ptr = &size, .read_callback = give_body};
	int32_t id = nghttp2_submit_request(e->session, NULL, head, 7, &body, NULL);

	assert_in_range(id, 1, STREAMS - 1);
	flush_out(e);
	return id;
}

static int32_t ask(struct end *e, const char *method, const char *word)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/etcdserverpb.KV/%s", method);
	return ask_long(e, path, word, 10);
}

/* What comes within so long: "STATUS: BODY", or the words of a status that is none; "silence" or
 * "reset" (an end in the middle is one, too). */
static const char *hear_for(struct end *e, int32_t id, int ms)
{
	static char line[160];
	const struct talk *t = &e->talks[id];

	while (!t->is_over) {
		ssize_t got = take_in(e, ms);

		assert_false(e->is_odd);
		if (got == -2)
			return "silence";
		if (got <= 0)
			return "reset";
	}
	(void)snprintf(line, sizeof(line), "%s: %s", t->status, t->body_n > 0 ? t->body : t->words);
	return line;
}

static const char *hear(struct end *e, int32_t id)
{
	return hear_for(e, id, LIMIT_MS);
}

static void rules(const struct stage *t, const char *text)
{
	char why[200];

	assert_true(relay_rules(t->relay, 0, text, why, sizeof(why)));
}

/* ---- the whole ---- */

static void test_passes(void **state)
{
	struct stage *t = *state;
	struct end *e = call(relay_port(t->relay));
	struct relay_counts counts;

	assert_string_equal(hear(e, ask(e, "Txn", "open")), "0: 1 open");
	assert_string_equal(hear(e, ask(e, "Txn", "renew")), "0: 2 renew");
	int32_t three = ask(e, "Txn", "three");
	int32_t four = ask(e, "Range", "four");

	assert_string_equal(hear(e, four), "0: 4 four");
	assert_string_equal(hear(e, three), "0: 3 three");
	relay_counts(t->relay, &counts);
	assert_int_equal(counts.requests, 4); /* and not settings and windows */
	hang_up(e);
}

/* What the second of three requests meets, what is heard then, and whether it has reached the
 * server: the next one on a new connection tells by its number. */
static void meets(struct stage *t, const char *act, const char *heard, const char *next)
{
	char text[80];

	(void)snprintf(text, sizeof(text), "request Range -> %s", act);
	rules(t, text);
	struct end *e = call(relay_port(t->relay));

	assert_string_equal(hear(e, ask(e, "Txn", "a")), "0: 1 a");
	int32_t id = ask(e, "Range", "b");

	assert_string_equal(hear_for(e, id, heard[0] == 's' ? SHORT_MS : LIMIT_MS), heard);
	hang_up(e);
	e = call(relay_port(t->relay));
	assert_string_equal(hear(e, ask(e, "Txn", "c")), next);
	hang_up(e);
}

static void test_drop(void **state)
{
	meets(*state, "drop", "silence", "0: 2 c");
}

static void test_cut(void **state)
{
	meets(*state, "cut", "reset", "0: 2 c");
}

static void test_cut_after(void **state)
{
	meets(*state, "cut-after", "reset", "0: 3 c");
}

static void test_half(void **state)
{
	meets(*state, "half", "reset", "0: 2 c");
}

static void test_mute(void **state)
{
	meets(*state, "mute", "silence", "0: 3 c");
}

static void test_stall(void **state)
{
	meets(*state, "stall", "silence", "0: 2 c");
}

static void test_refuse(void **state)
{
	meets(*state, "refuse", "14: no leader, says the test", "0: 2 c");
}

/* The client gets its answer before the server has said a word. */
static void test_refuse_the_first(void **state)
{
	struct stage *t = *state;

	rules(t, "request Range nth=1 -> refuse; request Range nth=2 -> drop");
	for (unsigned i = 0; i < 2; i++) {
		struct end *e = call(relay_port(t->relay));
		int32_t id = ask(e, "Range", "a");

		if (i == 0)
			assert_string_equal(hear(e, id), "14: no leader, says the test");
		else
			assert_string_equal(hear_for(e, id, SHORT_MS), "silence");
		assert_int_equal(hear(e, ask(e, "Txn", "b"))[3], '1' + (int)i);
		hang_up(e);
	}
}

/* Of a request that is gone the server must not hear when it is given up. */
static void test_goes_on_after_a_drop(void **state)
{
	struct stage *t = *state;
	struct end *e = call(relay_port(t->relay));

	rules(t, "request Range -> drop");
	for (unsigned i = 1; i < 100; i++) {
		char wanted[16];
		int32_t id = ask(e, "Range", "lost");

		(void)snprintf(wanted, sizeof(wanted), "0: %u a", i);
		(void)nghttp2_submit_rst_stream(e->session, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
		assert_string_equal(hear(e, ask(e, "Txn", "a")), wanted);
		assert_false(e->talks[id].is_over);
	}
	hang_up(e);
}

/* Carried out twice, answered once, and the answers after it fit. */
static void test_duplicate(void **state)
{
	struct stage *t = *state;
	struct end *e = call(relay_port(t->relay));

	rules(t, "request Range -> duplicate");
	for (unsigned i = 0; i < 50; i++) {
		char wanted[16];
		int32_t one = ask(e, "Txn", "a");
		int32_t two = ask(e, "Range", "b");
		int32_t three = ask(e, "Txn", "c");

		(void)snprintf(wanted, sizeof(wanted), "0: %u c", 4 * i + 4);
		assert_string_equal(hear(e, three), wanted);
		(void)snprintf(wanted, sizeof(wanted), "0: %u b", 4 * i + 2);
		assert_string_equal(hear(e, two), wanted);
		(void)snprintf(wanted, sizeof(wanted), "0: %u a", 4 * i + 1);
		assert_string_equal(hear(e, one), wanted);
	}
	hang_up(e);
}

static void test_replies(void **state)
{
	struct stage *t = *state;
	struct end *e = call(relay_port(t->relay));

	rules(t, "reply 0 nth=2 -> drop; reply nth=4 -> duplicate; reply 0 nth=6 -> half");
	assert_string_equal(hear(e, ask(e, "Txn", "a")), "0: 1 a");
	assert_string_equal(hear_for(e, ask(e, "Txn", "b"), SHORT_MS), "silence");
	for (char i = '3'; i < '6'; i++)
		assert_int_equal(hear(e, ask(e, "Txn", "c"))[3], i);
	assert_string_equal(hear(e, ask(e, "Txn", "d")), "reset");
	hang_up(e);
}

static uint64_t now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void test_delays(void **state)
{
	static const char *const texts[] = {"request Range -> delay 150",
					    "request Range -> late 150", "reply -> delay 150"};
	struct stage *t = *state;

	for (int i = 0; i < 3; i++) {
		struct end *e = call(relay_port(t->relay));

		rules(t, texts[i]);
		uint64_t began = now_ms();
		int32_t one = ask(e, "Range", "b");
		int32_t two = ask(e, "Txn", "c"); /* it can't overtake */

		assert_int_equal(hear(e, one)[3], '1' + 2 * i);
		assert_true(now_ms() - began >= 149);
		assert_int_equal(hear(e, two)[3], '2' + 2 * i);
		hang_up(e);
	}
}

static void test_labels(void **state)
{
	struct stage *t = *state;
	struct end *e = call(relay_port(t->relay));

	rules(t, "label renew baton:renew; label campaign baton:campaign; "
		 "request renew nth=2 -> refuse; request @ nth=9 -> drop; "
		 "request text=:path:/etcdserverpb.KV/Range -> refuse");
	assert_string_equal(hear(e, ask(e, "Txn", "renew")), "0: 1 renew");
	assert_string_equal(hear(e, ask(e, "Txn", "other")), "0: 2 other");
	assert_int_equal(hear(e, ask(e, "Txn", "renew"))[0], '1');
	assert_string_equal(hear(e, ask(e, "Txn", "campaign")), "0: 3 campaign");
	assert_int_equal(hear(e, ask(e, "Range", "campaign"))[0], '1');
	assert_int_equal(relay_labelled(t->relay, "renew"), 2);
	assert_int_equal(relay_labelled(t->relay, "campaign"), 2);
	hang_up(e);
}

/* What never ends is passed on as it comes, other requests beside it, and rules meet its pieces. */
static void test_watch(void **state)
{
	struct stage *t = *state;
	struct end *e = call(relay_port(t->relay));

	rules(t, "reply bytes nth=3 -> drop"); /* the first is the head */
	int32_t id = ask(e, "Watch", "observe");

	while (e->talks[id].body_n < 2)
		assert_true(take_in(e, LIMIT_MS) > 0);
	assert_string_equal(e->talks[id].body, "ac");
	assert_string_equal(hear(e, ask(e, "Txn", "a")), "0: 2 a");
	assert_false(e->talks[id].is_over);
	(void)nghttp2_submit_rst_stream(e->session, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
	assert_string_equal(hear(e, ask(e, "Txn", "b")), "0: 3 b");
	hang_up(e);
}

/* What doesn't arrive fills no window, and what is longer than a window gets through. */
static void test_windows(void **state)
{
	static const char path[] = "/etcdserverpb.KV/Txn";
	struct stage *t = *state;
	struct end *e = call(relay_port(t->relay));

	rules(t, "request text=baton:no -> refuse");
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(hear(e, ask_long(e, path, "no", LONG / 50))[0], '1');
	assert_string_equal(hear(e, ask_long(e, path, "long", LONG)), "0: 1 long");
	assert_string_equal(hear(e, ask(e, "Txn", "a")), "0: 2 a");
	hang_up(e);
}

/* Headers that need more than one frame, in both directions of the proxy. */
static void test_long_headers(void **state)
{
	struct stage *t = *state;
	struct end *e = call(relay_port(t->relay));
	char *word = malloc(40001);

	assert_non_null(word);
	memset(word, 'z', 40000);
	word[40000] = '\0';
	assert_string_equal(hear(e, ask(e, "Txn", word)), "0: 1 zzzzzzzzzzzzzzzzzzzz");
	assert_string_equal(hear(e, ask(e, "Txn", "a")), "0: 2 a");
	free(word);
	hang_up(e);
}

/* ---- framing ---- */

/* Feeds a whole text to one side; how many asides and messages it was, and how much is left. */
static size_t feed(struct protocol_state *s, bool is_reply, const char *data, size_t n,
		   struct message *last)
{
	const struct protocol *h2 = &protocol_h2;
	size_t at = 0;

	while (at < n && !s->is_opaque) {
		struct message m = {0};

		if (!(is_reply ? h2->reply : h2->request)(s, data + at, n - at, &m))
			break;
		assert_in_range(m.n, 1, n - at);
		if (!m.is_aside && !m.is_unwanted && !is_reply && !s->is_opaque)
			h2->stamp(s, false);
		at += m.n;
		if (last != NULL)
			*last = m;
	}
	return n - at;
}

#define FEED(s, is_reply, text, last) feed((s), (is_reply), (text), sizeof(text) - 1, (last))

/* The block is `:path: /a.B/Get`, and then an entry of the static table: `:method: POST`. */
#define GET_HEAD(id) "\0\0\x0b\1\4\0\0\0" id "\x04\x08/a.B/Get\x83"
#define GET_BODY(id) "\0\0\2\0\1\0\0\0" id "hi"
#define WINDOW(id) "\0\0\4\x8\0\0\0\0" id "\0\0\0\7"

static void test_frames(void **state)
{
	static const char text[] = GET_HEAD("\1") WINDOW("\0") GET_BODY("\1");
	struct protocol_state s = {0};
	struct message m;

	(void)state;
	assert_int_equal(feed(&s, false, preface, sizeof(preface) - 1, &m), 0);
	assert_true(m.is_aside);
	for (size_t n = 1; n < 9; n++)
		assert_int_equal(feed(&s, false, text, n, NULL), n); /* no frame yet */
	assert_int_equal(FEED(&s, false, GET_HEAD("\1") WINDOW("\0"), &m), 0);
	assert_true(m.is_aside); /* it doesn't wait for the request */
	assert_int_equal(FEED(&s, false, GET_BODY("\1"), &m), 0);
	assert_string_equal(m.kind, "Get");
	assert_int_equal(m.text_n, 30);
	assert_memory_equal(m.text, ":path:/a.B/Get\n:method:POST\nhi", 30);
	protocol_h2.forget(&s);
}

/* Towards the server numbers have no gaps to go back to, and what it says of them is put right. */
static void test_goaway(void **state)
{
	static const char going[] = "\0\0\x8\7\0\0\0\0\0\0\0\0\3\0\0\0\0";
	struct protocol_state s = {0};
	struct message m;

	(void)state;
	assert_int_equal(feed(&s, false, preface, sizeof(preface) - 1, &m), 0);
	assert_int_equal(FEED(&s, false, GET_HEAD("\1") GET_BODY("\1"), &m), 0);
	protocol_h2.stamp(&s, true); /* 3 */
	assert_int_equal(FEED(&s, false, GET_HEAD("\3") GET_BODY("\3"), &m), 0);
	assert_int_equal(m.data[8], 5);
	assert_int_equal(FEED(&s, true, going, &m), 0);
	assert_int_equal(m.size, sizeof(going) - 1);
	assert_int_equal(m.data[12], 1); /* the second won't be served */
	protocol_h2.forget(&s);
}

/* Nobody may remember more of headers than the proxy does. */
static void test_settings(void **state)
{
	static const char more[] = "\0\0\xc\4\0\0\0\0\0\0\3\0\0\0\x64\0\1\0\1\0\0";
	struct protocol_state s = {0};
	struct message m;

	(void)state;
	assert_int_equal(FEED(&s, true, more, &m), 0);
	assert_true(m.is_aside);
	assert_memory_equal(m.data, "\0\0\xc\4\0\0\0\0\0\0\3\0\0\0\x64\0\1\0\0\x10\0", 21);
	protocol_h2.forget(&s);
}

static void test_something_else(void **state)
{
	struct protocol_state s = {0};
	struct message m;

	(void)state;
	assert_int_equal(FEED(&s, false, "POST /v3/kv/put HTTP/1.1\r\n", &m), 0);
	assert_true(s.is_opaque);
	assert_false(m.is_aside);
	assert_null(m.data); /* as it came */
	protocol_h2.forget(&s);
}

static uint64_t draw(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 33;
}

/* A conversation with a few wrong bytes: it is passed on, by pieces that have an end. */
static void test_rubbish(void **state)
{
	static const char asked[] = GET_HEAD("\1") WINDOW("\1") GET_BODY("\1") GET_HEAD("\3")
		GET_BODY("\3") "\0\0\4\3\0\0\0\0\1\0\0\0\1\0\0\4\x9\4\0\0\0\1\x82\x82\x82\x82"
			       "\0\0\xc\4\0\0\0\0\0\0\3\0\0\0\x64\0\1\0\1\0\0";
	static const char said[] = "\0\0\1\1\4\0\0\0\1\x88" GET_BODY(
		"\1") "\0\0\1\1\5\0\0\0\3\x88"
		      "\0\0\4\3\0\0\0\0\1\0\0\0\1\0\0\x8\7\0\0\0\0\0\0\0\0\3\0\0\0\0" WINDOW("\1");
	uint64_t seed = 1;

	(void)state;
	for (unsigned i = 0; i < 20000; i++) {
		struct protocol_state s = {0};
		char one[sizeof(asked)], two[sizeof(said)];

		memcpy(one, asked, sizeof(asked));
		memcpy(two, said, sizeof(said));
		for (uint64_t n = draw(&seed) % 4; n > 0; n--) {
			one[draw(&seed) % (sizeof(one) - 1)] = (char)draw(&seed);
			two[draw(&seed) % (sizeof(two) - 1)] = (char)(1u << draw(&seed) % 8);
		}
		(void)feed(&s, false, preface, sizeof(preface) - 1, NULL);
		size_t half = draw(&seed) % (sizeof(one) - 1);

		(void)feed(&s, false, one, half, NULL);
		(void)feed(&s, true, two, sizeof(two) - 1, NULL);
		(void)feed(&s, false, one + half, sizeof(one) - 1 - half, NULL);
		protocol_h2.forget(&s);
	}
}

#define WHOLE(test) cmocka_unit_test_setup_teardown(test, begin, finish)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frames),
		cmocka_unit_test(test_goaway),
		cmocka_unit_test(test_settings),
		cmocka_unit_test(test_something_else),
		cmocka_unit_test(test_rubbish),
		WHOLE(test_passes),
		WHOLE(test_drop),
		WHOLE(test_cut),
		WHOLE(test_cut_after),
		WHOLE(test_half),
		WHOLE(test_mute),
		WHOLE(test_stall),
		WHOLE(test_refuse),
		WHOLE(test_refuse_the_first),
		WHOLE(test_goes_on_after_a_drop),
		WHOLE(test_duplicate),
		WHOLE(test_replies),
		WHOLE(test_delays),
		WHOLE(test_labels),
		WHOLE(test_watch),
		WHOLE(test_windows),
		WHOLE(test_long_headers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
