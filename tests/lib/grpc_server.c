/* grpc_server.c: see grpc_server.h. Headers are written as they are and not read at all: which
 * stream it is, and what its message says, is all that there is to know. */
#include "grpc_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PREFACE 24
#define FRAME 9
#define MESSAGE 5
#define PAYLOAD_MAX 16384
#define BIG ((size_t)3 << 20)
#define LONG ((size_t)190000)

enum type { DATA = 0, HEADERS = 1, SETTINGS = 4, PING = 6 };
enum flag { END_STREAM = 1, ACK = 1, END_HEADERS = 4 };

struct grpc_server {
	pthread_t thread;
	int listener;
	unsigned port;
	atomic_int client;
	atomic_bool is_over;
	atomic_uint n_connections;
	atomic_uint n_requests;
	atomic_uint n_ended;
	const struct grpc_answer *list; /* or NULL */
	size_t n_list;
};

/* ---- bytes ---- */

static bool get(int fd, void *to, size_t n)
{
	char *at = to;

	while (n > 0) {
		ssize_t got = recv(fd, at, n, 0);

		if (got <= 0)
			return false;
		at += got;
		n -= (size_t)got;
	}
	return true;
}

static bool put(int fd, const void *from, size_t n)
{
	const char *at = from;

	while (n > 0) {
		ssize_t done = send(fd, at, n, MSG_NOSIGNAL);

		if (done <= 0)
			return false;
		at += done;
		n -= (size_t)done;
	}
	return true;
}

static bool frame(int fd, enum type type, unsigned flags, uint32_t stream, const void *payload,
		  size_t n)
{
	unsigned char head[FRAME] = {(unsigned char)(n >> 16),
				     (unsigned char)(n >> 8),
				     (unsigned char)n,
				     (unsigned char)type,
				     (unsigned char)flags,
				     (unsigned char)(stream >> 24),
				     (unsigned char)(stream >> 16),
				     (unsigned char)(stream >> 8),
				     (unsigned char)stream};

	return put(fd, head, sizeof(head)) && put(fd, payload, n);
}

/* ---- replies ---- */

/* :status 200 is the eighth of the table that both ends have. */
static bool begin(int fd, uint32_t stream)
{
	return frame(fd, HEADERS, END_HEADERS, stream, "\x88", 1);
}

static size_t add(char *to, const char *name, const char *value)
{
	return (size_t)sprintf(to, "%c%c%s%c%s", 0x10, (char)strlen(name), name,
			       (char)strlen(value), value);
}

/* What comes last; with `whole` it is all that comes. */
static bool finish(int fd, uint32_t stream, const char *status, const char *words, bool whole)
{
	char block[256];
	size_t n = 0;

	if (whole)
		block[n++] = (char)0x88;
	n += add(block + n, "grpc-status", status);
	n += add(block + n, "grpc-message", words);
	return frame(fd, HEADERS, END_HEADERS | END_STREAM, stream, block, n);
}

static size_t message(char *to, int flag, const char *text)
{
	size_t n = strlen(text);

	to[0] = (char)flag;
	to[1] = to[2] = to[3] = 0;
	to[4] = (char)n;
	memcpy(to + MESSAGE, text, n);
	return MESSAGE + n;
}

static bool say(int fd, uint32_t stream, int flag, const char *text, unsigned flags)
{
	char data[256];
	size_t n = message(data, flag, text);

	return frame(fd, DATA, flags, stream, data, n);
}

static bool say_stream(int fd, uint32_t stream)
{
	char data[256];
	size_t n = message(data, 0, "one");

	n += message(data + n, 0, "");
	n += message(data + n, 0, "three");
	return begin(fd, stream) && frame(fd, DATA, 0, stream, data, 3) &&
	       frame(fd, DATA, 0, stream, data + 3, n - 7) &&
	       frame(fd, DATA, 0, stream, data + n - 4, 4) &&
	       finish(fd, stream, "14", "no%20leader", false);
}

/* A message of n bytes, which may be NULL: zeros. */
static bool say_long(int fd, uint32_t stream, const char *at, size_t n)
{
	static const char zeros[PAYLOAD_MAX];
	const unsigned char head[MESSAGE] = {0, (unsigned char)(n >> 24), (unsigned char)(n >> 16),
					     (unsigned char)(n >> 8), (unsigned char)n};
	bool ok = begin(fd, stream) && frame(fd, DATA, 0, stream, head, sizeof(head));

	while (ok && n > 0) {
		size_t part = n < PAYLOAD_MAX ? n : PAYLOAD_MAX;

		ok = frame(fd, DATA, 0, stream, at != NULL ? at : zeros, part);
		at = at != NULL ? at + part : NULL;
		n -= part;
	}
	return ok;
}

/* What a test has written down. */
static bool say_next(struct grpc_server *s, int fd, uint32_t stream, unsigned turn)
{
	const struct grpc_answer *a = &s->list[turn];

	if (turn < s->n_list && a->before != NULL)
		a->before(a->arg);
	if (turn >= s->n_list || a->status == NULL)
		return true;
	if (strcmp(a->status, "0") != 0)
		return finish(fd, stream, a->status, a->words, true);
	return say_long(fd, stream, a->message, a->n) &&
	       (a->goes_on || finish(fd, stream, "0", "", false));
}

/* True: the connection goes on. */
static bool answer(int fd, uint32_t stream, const char *asked)
{
	if (strcmp(asked, "hello") == 0)
		return begin(fd, stream) && say(fd, stream, 0, "hello!", 0) &&
		       finish(fd, stream, "0", "", false);
	if (strcmp(asked, "error") == 0)
		return finish(fd, stream, "5", "no%20such thing", true);
	if (strcmp(asked, "page") == 0) /* :status 404 is the 13th */
		return frame(fd, HEADERS, END_HEADERS | END_STREAM, stream, "\x8d", 1);
	if (strcmp(asked, "half") == 0)
		return begin(fd, stream) && frame(fd, DATA, 0, stream, "\0\0\0\0\6hel", 8) && false;
	if (strcmp(asked, "bare") == 0)
		return begin(fd, stream) && say(fd, stream, 0, "hello!", END_STREAM);
	if (strcmp(asked, "zip") == 0)
		return begin(fd, stream) && say(fd, stream, 1, "hello!", 0) &&
		       finish(fd, stream, "0", "", false);
	if (strcmp(asked, "two") == 0)
		return begin(fd, stream) && say(fd, stream, 0, "one", 0) &&
		       say(fd, stream, 0, "two", 0) && finish(fd, stream, "0", "", false);
	if (strcmp(asked, "none") == 0)
		return finish(fd, stream, "0", "", true);
	if (strcmp(asked, "short") == 0)
		return begin(fd, stream) && frame(fd, DATA, 0, stream, "\0\0\0", 3) &&
		       finish(fd, stream, "0", "", false);
	if (strcmp(asked, "strange") == 0)
		return begin(fd, stream) && say(fd, stream, 0, "one", 0) &&
		       say(fd, stream, 7, "two", 0);
	if (strcmp(asked, "stream") == 0)
		return say_stream(fd, stream);
	if (strcmp(asked, "big") == 0)
		return say_long(fd, stream, NULL, BIG) && finish(fd, stream, "0", "", false);
	if (strcmp(asked, "long") == 0)
		return say_long(fd, stream, NULL, LONG) && finish(fd, stream, "0", "", false);
	return strcmp(asked, "mute") == 0;
}

/* ---- connections ---- */

static void serve(struct grpc_server *s, int fd)
{
	unsigned char head[FRAME];
	char payload[PAYLOAD_MAX + 1];
	char asked[64] = "";
	bool is_probe = false;

	if (!get(fd, payload, PREFACE) || !frame(fd, SETTINGS, 0, 0, "", 0))
		return;
	while (get(fd, head, sizeof(head))) {
		size_t n = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
		uint32_t stream = (uint32_t)(head[5] & 0x7f) << 24 | (uint32_t)head[6] << 16 |
				  (uint32_t)head[7] << 8 | head[8];

		if (n > PAYLOAD_MAX || !get(fd, payload, n))
			return;
		payload[n] = '\0';
		if (head[3] == SETTINGS && !(head[4] & ACK) && !frame(fd, SETTINGS, ACK, 0, "", 0))
			return;
		if (head[3] == PING && !(head[4] & ACK) && !frame(fd, PING, ACK, 0, payload, n))
			return;
		if (head[3] == HEADERS) /* :path / is the fourth, and others stand as texts */
			is_probe = memchr(payload, 0x84, n < 4 ? n : 4) != NULL;
		if (head[3] == DATA && n > MESSAGE)
			snprintf(asked, sizeof(asked), "%.60s", payload + MESSAGE);
		if (head[3] != DATA || !(head[4] & END_STREAM))
			continue;
		if (is_probe) { /* and nothing else */
			if (!finish(fd, stream, "12", "", true))
				return;
			continue;
		}
		unsigned turn = atomic_fetch_add(&s->n_requests, 1);

		if (!(s->list != NULL ? say_next(s, fd, stream, turn) : answer(fd, stream, asked)))
			return;
	}
}

static void *listen_all(void *arg)
{
	struct grpc_server *s = arg;

	while (!atomic_load(&s->is_over)) {
		int fd = accept(s->listener, NULL, NULL);

		if (fd < 0)
			break;
		atomic_fetch_add(&s->n_connections, 1);
		atomic_store(&s->client, fd);
		if (!atomic_load(&s->is_over))
			serve(s, fd);
		atomic_store(&s->client, -1);
		close(fd);
		atomic_fetch_add(&s->n_ended, 1);
	}
	return NULL;
}

struct grpc_server *grpc_server_new(void)
{
	return grpc_server_says(NULL, 0);
}

struct grpc_server *grpc_server_says(const struct grpc_answer *list, size_t n)
{
	struct grpc_server *s = calloc(1, sizeof(*s));
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(address);

	if (s == NULL)
		return NULL;
	s->client = -1;
	s->list = list;
	s->n_list = n;
	s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(s->listener, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
	    listen(s->listener, 16) != 0 ||
	    getsockname(s->listener, (struct sockaddr *)&address, &size) != 0 ||
	    pthread_create(&s->thread, NULL, listen_all, s) != 0) {
		close(s->listener);
		free(s);
		return NULL;
	}
	s->port = ntohs(address.sin_port);
	return s;
}

void grpc_server_hang_up(struct grpc_server *s)
{
	int fd = atomic_load(&s->client);

	if (fd >= 0)
		shutdown(fd, SHUT_RDWR);
}

void grpc_server_free(struct grpc_server *s)
{
	atomic_store(&s->is_over, true);
	shutdown(s->listener, SHUT_RDWR);
	grpc_server_hang_up(s);
	pthread_join(s->thread, NULL);
	close(s->listener);
	free(s);
}

unsigned grpc_server_port(const struct grpc_server *s)
{
	return s->port;
}

unsigned grpc_server_connections(struct grpc_server *s)
{
	return atomic_load(&s->n_connections);
}

unsigned grpc_server_requests(struct grpc_server *s)
{
	return atomic_load(&s->n_requests);
}

unsigned grpc_server_ended(struct grpc_server *s)
{
	return atomic_load(&s->n_ended);
}
