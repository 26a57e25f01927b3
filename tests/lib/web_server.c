/* web_server.c: see web_server.h. A thread per connection; all of them end with the server. */
#include "web_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define REQUEST_MAX 65536
#define SESSIONS_MAX 64

struct session {
	struct web_server *server;
	pthread_t thread;
	int fd;
	void *layer;
	char request[REQUEST_MAX];
};

struct web_server {
	const struct web_layer *layer; /* NULL: none */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t change;
	int listener;
	unsigned port;
	unsigned n_requests;
	bool is_over;
	bool goes_on;
	web_script *script; /* NULL: by the path */
	void *script_arg;
	char last[REQUEST_MAX];
	struct session *sessions[SESSIONS_MAX];
	unsigned n_sessions;
};

static long get(struct session *c, char *to, size_t n)
{
	const struct web_layer *l = c->server->layer;

	return l != NULL ? l->read(c->layer, to, n) : recv(c->fd, to, n, 0);
}

static bool put(struct session *c, const char *from, size_t n)
{
	const struct web_layer *l = c->server->layer;

	while (n > 0) {
		long done = l != NULL ? l->write(c->layer, from, n)
				      : send(c->fd, from, n, MSG_NOSIGNAL);

		if (done <= 0)
			return false;
		from += done;
		n -= (size_t)done;
	}
	return true;
}

static bool put_text(struct session *c, const char *text)
{
	return put(c, text, strlen(text));
}

static bool reply(struct session *c, const char *head, const char *body, size_t n)
{
	char text[512];

	snprintf(text, sizeof(text), "HTTP/1.1 %s\r\nContent-Length: %zu\r\n\r\n", head, n);
	return put_text(c, text) && put(c, body, n);
}

/* One request, with its body; the length, or 0: the end. */
static size_t hear(struct session *c)
{
	size_t n = 0;

	for (;;) {
		long got = get(c, c->request + n, sizeof(c->request) - 1 - n);
		char *end;

		if (got <= 0)
			return 0;
		n += (size_t)got;
		c->request[n] = '\0';
		if (c->request[0] < 'A') { /* TLS, perhaps */
			reply(c, "400 Bad Request", "", 0);
			return 0;
		}
		end = strstr(c->request, "\r\n\r\n");
		if (end == NULL)
			continue;
		const char *length = strcasestr(c->request, "\r\ncontent-length:");
		size_t body = length != NULL && length < end ? strtoul(length + 17, NULL, 10) : 0;

		if (n >= (size_t)(end - c->request) + 4 + body)
			return n;
	}
}

/* Until the test goes on, or the server ends: false. */
static bool await(struct session *c)
{
	struct web_server *s = c->server;

	pthread_mutex_lock(&s->lock);
	while (!s->is_over && !s->goes_on)
		pthread_cond_wait(&s->change, &s->lock);
	bool goes_on = s->goes_on && !s->is_over;

	pthread_mutex_unlock(&s->lock);
	return goes_on;
}

/* Bytes for ever, some milliseconds apart. */
static void trickle(struct session *c, const char *first, const char *more, int ms)
{
	struct pollfd fd = {.fd = c->fd, .events = POLLRDHUP};

	if (!put_text(c, first))
		return;
	while (poll(&fd, 1, ms) == 0 && put_text(c, more))
		;
}

static bool says(const struct session *c, const char *path)
{
	const char *at = strchr(c->request, ' ');

	return at != NULL && strncmp(at + 1, path, strlen(path)) == 0;
}

static bool tell_lines(struct session *c)
{
	return put_text(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
			   "4\r\none\n\r\n2\r\ntw\r\n2\r\no\n\r\n") &&
	       await(c) && put_text(c, "5\r\nthree\r\n0\r\n\r\n");
}

/* True: the connection goes on. */
static bool play(struct session *c)
{
	struct web_server *s = c->server;
	char text[16384] = "";

	pthread_mutex_lock(&s->lock);
	enum web_after after = s->script(s->script_arg, c->request, text, sizeof(text));

	pthread_mutex_unlock(&s->lock);
	if (!put_text(c, text))
		return false;
	return after == WEB_GOES_ON || (after == WEB_STAYS_OPEN && await(c) && false);
}

/* True: the connection goes on. */
static bool answer(struct session *c, size_t n)
{
	static const char endless[] = "HTTP/1.1 200 OK\r\n\r\n";
	const char *body = strstr(c->request, "\r\n\r\n") + 4;

	if (c->server->script != NULL)
		return play(c);
	if (says(c, "/hello"))
		return reply(c, "200 Fine\r\nX-Test:  a value ", "hello", 5);
	if (says(c, "/echo"))
		return reply(c, "201 Made", body, n - (size_t)(body - c->request));
	if (says(c, "/redirect"))
		return reply(c, "302 Found\r\nLocation: /hello", "", 0);
	if (says(c, "/big")) {
		static char big[1 << 20];

		return reply(c, "200 OK", big, sizeof(big));
	}
	if (says(c, "/mute"))
		return await(c) && false;
	if (says(c, "/trickle"))
		trickle(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", "x", 10);
	if (says(c, "/rubbish"))
		return put_text(c, "rubbish, and no HTTP\r\n\r\n") && false;
	if (says(c, "/endless"))
		trickle(c, endless, "some kind of a body that does not end, and a bit of it\n", 0);
	if (says(c, "/head"))
		trickle(c, "HTTP/1.1 200 OK\r\n", "X-More: and more, and more, and more\r\n", 0);
	if (says(c, "/lines"))
		return tell_lines(c);
	if (says(c, "/poll"))
		return await(c) && reply(c, "200 OK\r\nX-Index: 7", "a\nb", 3);
	return false;
}

static void *serve(void *arg)
{
	struct session *c = arg;
	struct web_server *s = c->server;
	const struct web_layer *l = s->layer;
	sigset_t pipe;

	/* A layer may know no other way; the client's threads have to. */
	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe, NULL);
	if (l != NULL)
		c->layer = l->accept(l->arg, c->fd);
	for (size_t n; (l == NULL || c->layer != NULL) && (n = hear(c)) > 0;) {
		pthread_mutex_lock(&s->lock);
		s->n_requests++;
		memcpy(s->last, c->request, n + 1);
		pthread_mutex_unlock(&s->lock);
		if (!answer(c, n))
			break;
	}
	if (l != NULL && c->layer != NULL)
		l->end(c->layer);
	shutdown(c->fd, SHUT_RDWR);
	return NULL;
}

static void *listen_all(void *arg)
{
	struct web_server *s = arg;

	for (;;) {
		int fd = accept(s->listener, NULL, NULL);
		struct session *c = fd >= 0 ? calloc(1, sizeof(*c)) : NULL;

		if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
			continue;
		if (c == NULL)
			return NULL;
		*c = (struct session){.server = s, .fd = fd};
		pthread_mutex_lock(&s->lock);
		bool is_over = s->is_over || s->n_sessions == SESSIONS_MAX;

		if (!is_over) {
			s->sessions[s->n_sessions++] = c;
			pthread_create(&c->thread, NULL, serve, c);
		}
		pthread_mutex_unlock(&s->lock);
		if (is_over) {
			close(fd);
			free(c);
			return NULL;
		}
	}
}

struct web_server *web_server_new(const struct web_layer *layer)
{
	struct web_server *s = calloc(1, sizeof(*s));
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(address);

	if (s == NULL)
		return NULL;
	s->layer = layer;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->change, NULL);
	s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(s->listener, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
	    listen(s->listener, 64) != 0 ||
	    getsockname(s->listener, (struct sockaddr *)&address, &size) != 0 ||
	    pthread_create(&s->thread, NULL, listen_all, s) != 0) {
		close(s->listener);
		free(s);
		return NULL;
	}
	s->port = ntohs(address.sin_port);
	return s;
}

void web_server_free(struct web_server *s)
{
	pthread_mutex_lock(&s->lock);
	s->is_over = true;
	pthread_cond_broadcast(&s->change);
	for (unsigned i = 0; i < s->n_sessions; i++)
		shutdown(s->sessions[i]->fd, SHUT_RDWR);
	pthread_mutex_unlock(&s->lock);
	shutdown(s->listener, SHUT_RDWR);
	pthread_join(s->thread, NULL);
	for (unsigned i = 0; i < s->n_sessions; i++) {
		pthread_join(s->sessions[i]->thread, NULL);
		close(s->sessions[i]->fd);
		free(s->sessions[i]);
	}
	close(s->listener);
	pthread_cond_destroy(&s->change);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

unsigned web_server_port(const struct web_server *s)
{
	return s->port;
}

unsigned web_server_connections(struct web_server *s)
{
	pthread_mutex_lock(&s->lock);
	unsigned n = s->n_sessions;

	pthread_mutex_unlock(&s->lock);
	return n;
}

unsigned web_server_requests(struct web_server *s)
{
	pthread_mutex_lock(&s->lock);
	unsigned n = s->n_requests;

	pthread_mutex_unlock(&s->lock);
	return n;
}

void web_server_last(struct web_server *s, char *out, size_t size)
{
	pthread_mutex_lock(&s->lock);
	snprintf(out, size, "%s", s->last);
	pthread_mutex_unlock(&s->lock);
}

void web_server_play(struct web_server *s, web_script *script, void *arg)
{
	pthread_mutex_lock(&s->lock);
	s->script = script;
	s->script_arg = arg;
	pthread_mutex_unlock(&s->lock);
}

void web_server_go_on(struct web_server *s)
{
	pthread_mutex_lock(&s->lock);
	s->goes_on = true;
	pthread_cond_broadcast(&s->change);
	pthread_mutex_unlock(&s->lock);
}
