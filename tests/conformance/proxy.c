/*
 * proxy.c: see proxy.h. One thread with poll(); everything belongs to one lock, which it holds
 * except while it waits. A fault belongs to a request: it is refused, or passed on with its answer
 * lost (the connection says nothing any more) or late (the connection says everything later).
 */
#include "proxy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define PAIRS_MAX 512
#define BYTES_MAX ((size_t)8 << 20)

enum fault { FAULT_FAIL, FAULT_MUTE, FAULT_LATE, N_FAULTS };

struct bytes {
	char *data;
	size_t n;
	size_t room;
};

/* A client, and the connection to the server that it believes to have. */
struct pair {
	int client;
	int server;
	bool is_clear;      /* meets no faults */
	struct bytes asked; /* by the client, not yet passed on */
	struct bytes said;  /* by the server, not yet passed on */
	uint64_t hold_ns;   /* until when that is held back */
	bool is_mute;
	bool is_torn; /* bytes of it were swallowed: nothing sensible can follow */
};

struct proxy {
	struct proxy_speech speech;
	pthread_mutex_t lock;
	pthread_t thread;
	int listeners[2]; /* [1]: for those that meet no faults */
	unsigned ports[2];
	unsigned server_port;
	int wake;
	bool is_down;
	bool is_hole;
	bool is_over;
	unsigned left[N_FAULTS][N_VERBS]; /* how many requests still meet that fault */
	uint64_t late_ms;
	uint64_t calls[N_VERBS];
	struct pair pairs[PAIRS_MAX];
	size_t n_pairs;
};

/* ---- bytes ---- */

static bool add(struct bytes *b, const char *data, size_t n)
{
	if (b->n + n > BYTES_MAX)
		return false;
	if (b->n + n > b->room) {
		size_t room = 2 * (b->n + n);
		char *more = realloc(b->data, room);

		if (more == NULL)
			return false;
		b->data = more;
		b->room = room;
	}
	memcpy(b->data + b->n, data, n);
	b->n += n;
	return true;
}

static void drop(struct bytes *b, size_t n)
{
	memmove(b->data, b->data + n, b->n - n);
	b->n -= n;
}

/* Passes on what the socket takes; false: it is broken. */
static bool pour(int fd, struct bytes *b)
{
	while (b->n > 0) {
		ssize_t n = send(fd, b->data, b->n, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0)
			return errno == EAGAIN || errno == EINTR;
		drop(b, (size_t)n);
	}
	return true;
}

/* ---- sockets ---- */

static struct sockaddr_in loopback(unsigned port)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
				    .sin_port = htons((uint16_t)port),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static int new_socket(void)
{
	int on = 1;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd >= 0)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

/* A reset, as of a machine that has gone. */
static void slam(int fd)
{
	struct linger now = {.l_onoff = 1};

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(fd);
}

static void end_pair(struct proxy *p, size_t i)
{
	struct pair *x = &p->pairs[i];

	slam(x->client);
	slam(x->server);
	free(x->asked.data);
	free(x->said.data);
	*x = p->pairs[--p->n_pairs];
}

static void welcome(struct proxy *p, bool is_clear)
{
	struct sockaddr_in address = loopback(p->server_port);
	int client = accept4(p->listeners[is_clear], NULL, NULL, SOCK_CLOEXEC);
	bool is_down = p->is_down && !is_clear;
	int server = client >= 0 && !is_down ? new_socket() : -1;
	int on = 1;

	if (is_down) {
		/* It is asked, and says no: that is what a try to open looks like from here. */
		p->calls[VERB_OPEN]++;
		p->calls[VERB_ANY]++;
	}
	if (server < 0 || p->n_pairs == PAIRS_MAX ||
	    connect(server, (const struct sockaddr *)&address, sizeof(address)) != 0) {
		if (client >= 0)
			slam(client);
		if (server >= 0)
			close(server);
		return;
	}
	/* Else the end of an answer waits for the client's delayed acknowledgement. */
	setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	p->pairs[p->n_pairs++] =
		(struct pair){.client = client, .server = server, .is_clear = is_clear};
}

/* ---- requests ---- */

static bool takes(struct proxy *p, enum fault fault, enum verb verb)
{
	unsigned *left =
		p->left[fault][verb] > 0 ? &p->left[fault][verb] : &p->left[fault][VERB_ANY];

	if (*left == 0)
		return false;
	if (*left != UINT32_MAX)
		(*left)--;
	return true;
}

/* One request; false: the pair is broken. */
static bool pass(struct proxy *p, struct pair *x, size_t n, enum verb verb)
{
	struct bytes one = {.data = x->asked.data, .n = n};

	p->calls[VERB_ANY] += !x->is_clear;
	if (verb != VERB_ANY)
		p->calls[verb]++;
	if (verb != VERB_ANY && takes(p, FAULT_FAIL, verb))
		return add(&x->said, p->speech.refusal,
			   p->speech.refusal_n > 0 ? p->speech.refusal_n
						   : strlen(p->speech.refusal));
	if (verb != VERB_ANY && takes(p, FAULT_MUTE, verb))
		x->is_mute = true;
	if (verb != VERB_ANY && takes(p, FAULT_LATE, verb))
		x->hold_ns = now_ns() + p->late_ms * MS;
	while (one.n > 0) {
		ssize_t sent = send(x->server, one.data, one.n, MSG_NOSIGNAL);

		if (sent <= 0)
			return false;
		one.data += sent;
		one.n -= (size_t)sent;
	}
	return true;
}

static bool hear_client(struct proxy *p, struct pair *x)
{
	char data[16384];
	ssize_t got = recv(x->client, data, sizeof(data), MSG_DONTWAIT);
	enum verb verb;
	size_t n;

	if (got < 0)
		return errno == EAGAIN;
	if (got == 0)
		return false;
	if (!x->is_clear && (p->is_hole || x->is_torn)) {
		x->is_torn = true;
		p->calls[VERB_ANY]++;
		return true;
	}
	if (!add(&x->asked, data, (size_t)got))
		return false;
	while ((n = p->speech.request(p->speech.arg, x->asked.data, x->asked.n, &verb)) > 0) {
		if (!pass(p, x, n, verb))
			return false;
		drop(&x->asked, n);
	}
	return true;
}

static bool hear_server(struct proxy *p, struct pair *x)
{
	char data[16384];
	ssize_t got = recv(x->server, data, sizeof(data), MSG_DONTWAIT);

	if (got < 0)
		return errno == EAGAIN;
	if (got == 0)
		return false;
	if (!x->is_clear && (p->is_hole || x->is_torn)) {
		x->is_torn = true;
		return true;
	}
	return x->is_mute || add(&x->said, data, (size_t)got);
}

/* ---- the thread ---- */

static int next_wait_ms(const struct proxy *p)
{
	uint64_t now = now_ns();
	uint64_t wait = 1000 * MS;

	for (size_t i = 0; i < p->n_pairs; i++) {
		const struct pair *x = &p->pairs[i];

		if (x->said.n > 0 && x->hold_ns > now && x->hold_ns - now < wait)
			wait = x->hold_ns - now;
	}
	return (int)((wait + MS - 1) / MS);
}

static void serve(struct proxy *p, const struct pollfd *fds, size_t n)
{
	for (size_t i = n; i-- > 0;) {
		struct pair *x = &p->pairs[i];
		bool ok = true;

		if (fds[3 + 2 * i].revents & (POLLIN | POLLHUP | POLLERR))
			ok = hear_client(p, x);
		if (ok && fds[4 + 2 * i].revents & (POLLIN | POLLHUP | POLLERR))
			ok = hear_server(p, x);
		if (ok && x->said.n > 0 && now_ns() >= x->hold_ns)
			ok = pour(x->client, &x->said);
		if (!ok)
			end_pair(p, i);
	}
}

/* A switch was turned: connections that can't go on end. */
static void tidy(struct proxy *p)
{
	for (size_t i = p->n_pairs; i-- > 0;)
		if (p->is_over || (p->is_down && !p->pairs[i].is_clear) ||
		    (p->pairs[i].is_torn && !p->is_hole))
			end_pair(p, i);
}

static void *proxy_main(void *arg)
{
	static struct pollfd fds[3 + 2 * PAIRS_MAX];
	struct proxy *p = arg;

	pthread_mutex_lock(&p->lock);
	while (!p->is_over) {
		size_t n = p->n_pairs;
		uint64_t count;

		fds[0] = (struct pollfd){.fd = p->wake, .events = POLLIN};
		/* In a black hole nobody answers a call. */
		fds[1] = (struct pollfd){.fd = p->is_hole ? -1 : p->listeners[0], .events = POLLIN};
		fds[2] = (struct pollfd){.fd = p->listeners[1], .events = POLLIN};
		for (size_t i = 0; i < n; i++) {
			const struct pair *x = &p->pairs[i];
			bool can = x->said.n > 0 && now_ns() >= x->hold_ns;

			fds[3 + 2 * i] =
				(struct pollfd){.fd = x->client,
						.events = (short)(can ? POLLIN | POLLOUT : POLLIN)};
			fds[4 + 2 * i] = (struct pollfd){.fd = x->server, .events = POLLIN};
		}
		int wait_ms = next_wait_ms(p);

		pthread_mutex_unlock(&p->lock);
		poll(fds, (nfds_t)(3 + 2 * n), wait_ms);
		pthread_mutex_lock(&p->lock);
		if (fds[0].revents != 0 && read(p->wake, &count, sizeof(count)) > 0) {
			tidy(p);
			continue; /* what was polled may be gone */
		}
		serve(p, fds, n);
		for (int i = 0; i < 2; i++)
			if (fds[1 + i].revents != 0)
				welcome(p, i == 1);
	}
	tidy(p);
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

static bool listen_on(struct proxy *p, int i)
{
	struct sockaddr_in address = loopback(0);
	socklen_t size = sizeof(address);
	int fd = new_socket();

	p->listeners[i] = fd;
	if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
	    listen(fd, 128) != 0 || getsockname(fd, (struct sockaddr *)&address, &size) != 0)
		return false;
	p->ports[i] = ntohs(address.sin_port);
	return true;
}

struct proxy *proxy_new(unsigned port, const struct proxy_speech *speech)
{
	struct proxy *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return NULL;
	p->speech = *speech;
	p->server_port = port;
	p->wake = eventfd(0, EFD_CLOEXEC);
	pthread_mutex_init(&p->lock, NULL);
	if (p->wake < 0 || !listen_on(p, 0) || !listen_on(p, 1))
		return NULL; /* the case's process ends with that */
	return pthread_create(&p->thread, NULL, proxy_main, p) == 0 ? p : NULL;
}

/* With the lock held. */
static void turn(struct proxy *p)
{
	uint64_t one = 1;

	if (write(p->wake, &one, sizeof(one)) < 0)
		return;
}

void proxy_free(struct proxy *p)
{
	pthread_mutex_lock(&p->lock);
	p->is_over = true;
	turn(p);
	pthread_mutex_unlock(&p->lock);
	pthread_join(p->thread, NULL);
	close(p->listeners[0]);
	close(p->listeners[1]);
	close(p->wake);
	free(p);
}

unsigned proxy_port(const struct proxy *p)
{
	return p->ports[0];
}

unsigned proxy_clear_port(const struct proxy *p)
{
	return p->ports[1];
}

void proxy_down(struct proxy *p, bool is_down)
{
	pthread_mutex_lock(&p->lock);
	p->is_down = is_down;
	turn(p);
	pthread_mutex_unlock(&p->lock);
}

void proxy_hole(struct proxy *p, bool is_hole)
{
	pthread_mutex_lock(&p->lock);
	p->is_hole = is_hole;
	for (size_t i = 0; i < p->n_pairs; i++) /* what is on its way is swallowed, too */
		p->pairs[i].is_torn |= p->pairs[i].asked.n + p->pairs[i].said.n > 0;
	turn(p);
	pthread_mutex_unlock(&p->lock);
}

static void set(struct proxy *p, enum fault fault, enum verb verb, unsigned n, uint64_t ms)
{
	pthread_mutex_lock(&p->lock);
	p->left[fault][verb] = n;
	if (fault == FAULT_LATE)
		p->late_ms = ms;
	for (size_t i = 0; fault == FAULT_LATE && n == 0 && i < p->n_pairs; i++)
		p->pairs[i].hold_ns = 0;
	turn(p);
	pthread_mutex_unlock(&p->lock);
}

void proxy_fail(struct proxy *p, enum verb verb, unsigned n)
{
	set(p, FAULT_FAIL, verb, n, 0);
}

void proxy_mute(struct proxy *p, enum verb verb, unsigned n)
{
	set(p, FAULT_MUTE, verb, n, 0);
}

void proxy_late(struct proxy *p, enum verb verb, unsigned n, uint64_t ms)
{
	set(p, FAULT_LATE, verb, n, ms);
}

uint64_t proxy_calls(struct proxy *p, enum verb verb)
{
	pthread_mutex_lock(&p->lock);
	uint64_t n = p->calls[verb];

	pthread_mutex_unlock(&p->lock);
	return n;
}
