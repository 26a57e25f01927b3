/*
 * stream.c: gives libmongoc our own sockets (base/net). So every wait of the library ends with the
 * call's deadline, be it for a name, a connection, TLS or an answer; and a watch can be woken.
 *
 * The library's own time limits (connect.c) apply as well: they are for one socket of several.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/mongodb/mongodb.h"

#define STREAM_TYPE 100 /* above the library's own */
#define PEER "MongoDB"

struct mongodb_stream {
	mongoc_stream_t stream; /* first: the library's view */
	struct net net;
	struct net_tls *tls;
	struct mongodb_lane *lane;
	struct mongodb_stream *next;
	int error; /* errno of the last read or write */
};

/* Keeps the reason of a failure for our sentence, because the library's own sentences are about its
 * workings. */
static void note_failure(struct mongodb_lane *lane, const struct net *n)
{
	static const int codes[] = {
		[NET_UNAVAILABLE] = BATON_E_UNAVAILABLE, [NET_LATE] = BATON_E_TIMEOUT,
		[NET_SYSTEM] = BATON_E_SYSTEM,           [NET_UNTRUSTED] = BATON_E_DENIED,
		[NET_MEMORY] = BATON_E_MEMORY,
	};

	lane->why = codes[n->why];
	(void)snprintf(lane->text, sizeof(lane->text), "%s", n->text);
}

static void begin(struct mongodb_stream *s, int32_t timeout_ms)
{
	uint64_t until_ns = clock_boot_ns() + (uint64_t)timeout_ms * CLOCK_NS_PER_MS;

	s->net.deadline_ns = s->lane->deadline_ns;
	s->net.wake = s->lane->is_watching ? s->lane->lane.wake : -1;
	if (timeout_ms >= 0 && until_ns < s->net.deadline_ns)
		s->net.deadline_ns = until_ns;
	s->error = 0;
}

static ssize_t stream_write(mongoc_stream_t *stream, mongoc_iovec_t *list, size_t n,
			    int32_t timeout_ms)
{
	struct mongodb_stream *s = (struct mongodb_stream *)stream;
	ssize_t total = 0;

	begin(s, timeout_ms > 0 ? timeout_ms : -1);
	for (size_t i = 0; i < n; i++) {
		int rc = s->net.fd < 0 || s->lane->deadline_ns == 0
				 ? -1
				 : net_send(&s->net, list[i].iov_base, list[i].iov_len);

		s->lane->has_sent = s->lane->has_sent || (rc == 0 || s->net.has_sent);
		if (rc != 0) {
			note_failure(s->lane, &s->net);
			s->error = errno = EPIPE;
			return -1;
		}
		total += (ssize_t)list[i].iov_len;
	}
	return total;
}

/* Reads one piece. 0, or an errno. */
static int read_some(struct mongodb_stream *s, char *to, size_t room, size_t *got)
{
	if (s->net.fd < 0)
		return EPIPE;
	int rc = net_receive(&s->net, to, room, got);

	if (rc == 0)
		return 0;
	s->lane->is_woken = s->lane->is_woken || rc == NET_WOKEN;
	if (rc == NET_NOTHING && clock_boot_ns() < s->lane->deadline_ns)
		return EAGAIN; /* only the library's own limit is over, and it decides */
	(void)net_fail_nothing(&s->net, rc, "wait for an answer");
	note_failure(s->lane, &s->net);
	return rc == NET_NOTHING ? ETIMEDOUT : EPIPE;
}

static ssize_t stream_read(mongoc_stream_t *stream, mongoc_iovec_t *list, size_t n, size_t least,
			   int32_t timeout_ms)
{
	struct mongodb_stream *s = (struct mongodb_stream *)stream;
	size_t total = 0;

	begin(s, timeout_ms);
	for (size_t i = 0; i < n; i++) {
		size_t done = 0;

		while (done < list[i].iov_len) {
			size_t got = 0;

			s->error = read_some(s, (char *)list[i].iov_base + done,
					     list[i].iov_len - done, &got);
			if (s->error != 0) {
				errno = s->error;
				return -1;
			}
			done += got;
			total += got;
			if (total >= least)
				return (ssize_t)total;
		}
	}
	return (ssize_t)total;
}

static int stream_close(mongoc_stream_t *stream)
{
	net_close(&((struct mongodb_stream *)stream)->net);
	return 0;
}

static int stream_flush(mongoc_stream_t *stream)
{
	(void)stream;
	return 0;
}

static int stream_set(mongoc_stream_t *stream, int level, int name, void *value,
		      mongoc_socklen_t size)
{
	(void)stream, (void)level, (void)name, (void)value, (void)size;
	return 0;
}

static void stream_destroy(mongoc_stream_t *stream)
{
	struct mongodb_stream *s = (struct mongodb_stream *)stream;
	struct mongodb_stream **at = &s->lane->streams;

	while (*at != NULL && *at != s)
		at = &(*at)->next;
	if (*at == s)
		*at = s->next;
	net_done(&s->net);
	net_tls_free(s->tls);
	free(s);
}

static bool stream_is_closed(mongoc_stream_t *stream)
{
	return !net_is_sound(&((struct mongodb_stream *)stream)->net);
}

static bool stream_is_late(mongoc_stream_t *stream)
{
	return ((struct mongodb_stream *)stream)->error == ETIMEDOUT;
}

static bool stream_may_retry(mongoc_stream_t *stream)
{
	return ((struct mongodb_stream *)stream)->error == EAGAIN;
}

/* The library calls this when it greets several servers at once. */
static ssize_t stream_poll(mongoc_stream_poll_t *list, size_t n, int32_t timeout_ms)
{
	struct pollfd fds[MONGODB_HOSTS_MAX + 1];
	struct mongodb_lane *lane = ((struct mongodb_stream *)list[0].stream)->lane;
	uint64_t now_ns = clock_boot_ns();
	uint64_t left_ms =
		now_ns < lane->deadline_ns ? (lane->deadline_ns - now_ns) / CLOCK_NS_PER_MS + 1 : 0;
	int rc = 0;

	if (timeout_ms < 0 || (uint64_t)timeout_ms > left_ms)
		timeout_ms = (int32_t)(left_ms < INT32_MAX ? left_ms : INT32_MAX);
	for (size_t i = 0; i < n && n <= MONGODB_HOSTS_MAX; i++)
		fds[i] = (struct pollfd){.fd = ((struct mongodb_stream *)list[i].stream)->net.fd,
					 .events = (short)list[i].events};
	fds[n <= MONGODB_HOSTS_MAX ? n : 0] =
		(struct pollfd){.fd = lane->is_watching ? lane->lane.wake : -1, .events = POLLIN};
	if (left_ms > 0 && n <= MONGODB_HOSTS_MAX)
		rc = poll(fds, (nfds_t)n + 1, timeout_ms);
	if (rc > 0 && fds[n].revents != 0)
		lane->is_woken = true;
	/* Else the library would wait on. So all sockets are reported as broken. */
	bool is_over = left_ms == 0 || lane->is_woken || n > MONGODB_HOSTS_MAX;

	for (size_t i = 0; i < n; i++)
		list[i].revents = is_over ? POLLERR : rc > 0 ? fds[i].revents : 0;
	return is_over ? (ssize_t)n : rc;
}

/* OP_MSG: {ping: 1, $db: "admin"}. A server answers it also before a login. */
static const char ping[] = "\x33\0\0\0\1\0\0\0\0\0\0\0\xdd\7\0\0\0\0\0\0\0"
			   "\x1e\0\0\0\x10ping\0\1\0\0\0\2$db\0\6\0\0\0admin\0";

/* Receives exactly n bytes. */
static bool receive_all(struct net *n, char *to, size_t size)
{
	size_t got = 0;

	for (size_t at = 0; at < size; at += got) {
		int rc = net_receive(n, to + at, size - at, &got);

		if (rc != 0)
			return net_fail_nothing(n, rc, "wait for an answer") == 0;
	}
	return true;
}

/*
 * The first words. Of a name with several addresses, one may accept connections and stay silent;
 * the library would wait for it, and never try another. So each must answer once, whatever it says.
 * (No hello: a server takes the library's only as the first one.)
 */
static int say_ping(void *arg)
{
	struct net *n = arg;
	char answer[1024];

	if (n->addresses->ai_next == NULL)
		return 0;
	if (net_send(n, ping, sizeof(ping)) != 0 || !receive_all(n, answer, 4))
		return NET_ELSEWHERE;
	size_t size = (size_t)(unsigned char)answer[0] | (size_t)(unsigned char)answer[1] << 8 |
		      (size_t)(unsigned char)answer[2] << 16;

	if (size >= 16 && size <= sizeof(answer) && answer[3] == 0)
		return receive_all(n, answer, size - 4) ? 0 : NET_ELSEWHERE;
	(void)net_fail(n, NET_UNAVAILABLE, "what answers there does not speak as MongoDB does");
	return NET_ELSEWHERE;
}

/* Several servers share the time: one that drops all packets must not use up all of it. */
mongoc_stream_t *mongodb_stream_open(const mongoc_uri_t *uri, const mongoc_host_list_t *host,
				     void *arg, bson_error_t *error)
{
	struct mongodb_lane *lane = arg;
	const struct mongodb_options *o = &lane->store->options;
	struct mongodb_stream *s = calloc(1, sizeof(*s));
	const mongoc_host_list_t *hosts = mongoc_uri_get_hosts(uri);
	struct net_files files = {o->files.ca, o->files.cert, o->files.key};
	char port[8];

	if (s == NULL || (o->tls && (s->tls = net_tls_new(&files)) == NULL)) {
		free(s);
		bson_set_error(error, MONGOC_ERROR_STREAM, MONGOC_ERROR_STREAM_SOCKET, "no memory");
		return NULL;
	}
	s->lane = lane;
	s->stream = (mongoc_stream_t){
		.type = STREAM_TYPE,
		.destroy = stream_destroy,
		.close = stream_close,
		.flush = stream_flush,
		.writev = stream_write,
		.readv = stream_read,
		.setsockopt = stream_set,
		.check_closed = stream_is_closed,
		.poll = stream_poll,
		.failed = stream_destroy,
		.timed_out = stream_is_late,
		.should_retry = stream_may_retry,
	};
	(void)snprintf(port, sizeof(port), "%u", (unsigned)host->port);
	struct net_place place = {.host = host->host,
				  .port = port,
				  .tls = s->tls,
				  .name = o->files.server_name[0] != '\0' ? o->files.server_name
									  : host->host};

	net_init(&s->net, PEER);
	s->net.wake = lane->is_watching ? lane->lane.wake : -1;
	s->net.lookup = lane->lookup;
	s->net.turn = lane->turn;
	s->net.deadline_ns = hosts != NULL && hosts->next != NULL
				     ? net_share_ns(lane->deadline_ns, 2)
				     : lane->deadline_ns;
	s->next = lane->streams;
	lane->streams = s;
	bool is_open = net_reach(&s->net, &place, say_ping, &s->net) == 0;

	lane->lookup = s->net.lookup;
	lane->turn = s->net.turn;
	s->net.lookup = NULL;
	if (is_open)
		return &s->stream;
	note_failure(lane, &s->net);
	bson_set_error(error, MONGOC_ERROR_STREAM, MONGOC_ERROR_STREAM_CONNECT, "%s", s->net.text);
	stream_destroy(&s->stream);
	return NULL;
}

void mongodb_streams_cut(struct mongodb_lane *lane)
{
	for (struct mongodb_stream *s = lane->streams; s != NULL; s = s->next)
		net_close(&s->net);
}

void mongodb_streams_forget(struct mongodb_lane *lane)
{
	for (struct mongodb_stream *s = lane->streams; s != NULL; s = s->next)
		net_forget(&s->net);
}

bool mongodb_streams_are_sound(const struct mongodb_lane *lane)
{
	for (const struct mongodb_stream *s = lane->streams; s != NULL; s = s->next)
		if (!net_is_sound(&s->net))
			return false;
	return true;
}
