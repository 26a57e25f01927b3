/*
 * net.c: names, sockets and deadlines: see net.h. It must never block: every wait is net_wait().
 */
#include "base/net/net.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

/* The system notices half-open connections, too, because an idle lane would not. */
#define KEEPALIVE_S 15
#define USER_TIMEOUT_MS 20000

int net_fail(struct net *n, int why, const char *format, ...)
{
	va_list args;

	n->why = why;
	va_start(args, format);
	(void)vsnprintf(n->text, sizeof(n->text), format, args);
	va_end(args);
	return -1;
}

int net_fail_system(struct net *n, const char *what, int error)
{
	char reason[80];

	if (error == ETIMEDOUT && clock_boot_ns() >= n->deadline_ns)
		return net_fail(n, NET_LATE, "%s does not answer in time (%s)", n->peer, what);
	return net_fail(n, error == EMFILE || error == ENFILE ? NET_SYSTEM : NET_UNAVAILABLE,
			"can't %s: %s", what, strerror_r(error, reason, sizeof(reason)));
}

void net_init(struct net *n, const char *peer)
{
	*n = (struct net){.fd = -1, .wake = -1, .peer = peer};
}

void net_close(struct net *n)
{
	net_tls_close(n);
	if (n->fd >= 0)
		(void)close(n->fd);
	n->fd = -1;
}

static void net_forget_addresses(struct net *n)
{
	if (n->addresses != NULL)
		freeaddrinfo(n->addresses);
	n->addresses = NULL;
}

void net_done(struct net *n)
{
	net_close(n);
	lookup_cancel(&n->lookup);
	net_forget_addresses(n);
}

void net_forget(struct net *n)
{
	if (n->fd >= 0)
		(void)close(n->fd);
	n->fd = -1;
	n->wake = -1;
	n->lookup = NULL; /* the thread that looks it up is not here */
}

int net_wait(const struct net *n, short events)
{
	for (;;) {
		struct pollfd fds[2] = {{.fd = n->fd, .events = events},
					{.fd = n->wake, .events = POLLIN}};
		uint64_t now_ns = clock_boot_ns();
		uint64_t left_ns = now_ns < n->deadline_ns ? n->deadline_ns - now_ns : 0;
		struct timespec left = {.tv_sec = (time_t)(left_ns / CLOCK_NS_PER_S),
					.tv_nsec = (long)(left_ns % CLOCK_NS_PER_S)};
		int rc = ppoll(fds, n->wake >= 0 ? 2 : 1, &left, NULL);

		if (rc > 0 && fds[0].revents != 0)
			return 0;
		if (rc > 0 && fds[1].revents != 0)
			return NET_WOKEN;
		if (rc < 0 && errno != EINTR)
			return -1;
		if (rc == 0 && left_ns == 0) {
			errno = ETIMEDOUT;
			return -1;
		}
	}
}

/* ---- connecting ---- */

/* 0, or an errno. */
static int connect_finish(const struct net *n)
{
	int error = 0;
	socklen_t size = sizeof(error);
	int rc = net_wait(n, POLLOUT);

	if (rc != 0)
		return rc == NET_WOKEN ? ECANCELED : errno;
	if (getsockopt(n->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
		return errno;
	return error;
}

static int connect_try(struct net *n, const struct sockaddr *address, socklen_t size)
{
	net_close(n);
	n->fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (n->fd < 0)
		return errno;
	int error = connect(n->fd, address, size) == 0 ? 0 : errno;

	if (error == EINPROGRESS)
		error = connect_finish(n);
	if (error != 0) {
		(void)close(n->fd);
		n->fd = -1;
	}
	return error;
}

static void socket_tune(int fd)
{
	int on = 1;
	int seconds = KEEPALIVE_S;
	int count = 3;
	unsigned timeout_ms = USER_TIMEOUT_MS;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof(seconds));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &seconds, sizeof(seconds));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof(timeout_ms));
}

int net_open_unix(struct net *n, const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char what[160];

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	int error = connect_try(n, (const struct sockaddr *)&address, sizeof(address));

	if (error == 0)
		return 0;
	(void)snprintf(what, sizeof(what), "connect to %.120s", path);
	return net_fail_system(n, what, error);
}

/* How many addresses the host has, or -1 with the sentence. */
static int host_find(struct net *n, const struct net_place *place)
{
	int count = 0;

	net_forget_addresses(n);
	int code = lookup(&n->lookup, place->host, place->port, n->deadline_ns, n->wake,
			  &n->addresses);

	if (code != 0)
		return net_fail(n, NET_UNAVAILABLE, "can't find the host %.100s: %.80s",
				place->host,
				code == EAI_INPROGRESS ? "the name service does not answer"
						       : gai_strerror(code));
	for (const struct addrinfo *a = n->addresses; a != NULL; a = a->ai_next)
		count++;
	return count;
}

/* After a failure another address may be better, unless the reason is on our side. */
static int elsewhere(const struct net *n)
{
	return n->why == NET_UNAVAILABLE || n->why == NET_LATE ? NET_ELSEWHERE : -1;
}

/* i: which of the addresses, counted from the one that answered last. */
static int host_open(struct net *n, const struct net_place *place, int i, int count)
{
	const struct addrinfo *a = n->addresses;
	char what[160];

	for (size_t k = (n->turn + (size_t)i) % (size_t)count; k > 0; k--)
		a = a->ai_next;
	int error = connect_try(n, a->ai_addr, a->ai_addrlen);

	if (error != 0) {
		(void)snprintf(what, sizeof(what), "connect to %.120s:%s", place->host,
			       place->port);
		(void)net_fail_system(n, what, error);
		return elsewhere(n);
	}
	socket_tune(n->fd);
	if (place->tls == NULL || net_tls_open(place->tls, n, place->name) == 0)
		return 0;
	net_close(n);
	return elsewhere(n);
}

uint64_t net_share_ns(uint64_t deadline_ns, uint64_t n)
{
	uint64_t now_ns = clock_boot_ns();

	return now_ns < deadline_ns ? now_ns + (deadline_ns - now_ns) / n : deadline_ns;
}

int net_reach(struct net *n, const struct net_place *place, net_talk *talk, void *arg)
{
	uint64_t deadline_ns = n->deadline_ns;
	int count = host_find(n, place);
	int rc = NET_ELSEWHERE;

	for (int i = 0; i < count && rc == NET_ELSEWHERE; i++) {
		n->deadline_ns = net_share_ns(deadline_ns, (uint64_t)(count - i));
		rc = host_open(n, place, i, count);
		if (rc == 0)
			rc = talk(arg);
		if (rc == 0)
			n->turn += (size_t)i;
	}
	n->deadline_ns = deadline_ns;
	return rc;
}

/* ---- talking ---- */

/* As read(2), but *events says what to wait for when the error is EAGAIN. */
static ssize_t socket_read(struct net *n, char *to, size_t size, short *events)
{
	*events = POLLIN;
	if (n->ssl != NULL)
		return net_tls_read(n, to, size, events);
	return recv(n->fd, to, size, 0);
}

static ssize_t socket_write(struct net *n, const char *from, size_t size, short *events)
{
	*events = POLLOUT;
	if (n->ssl != NULL)
		return net_tls_write(n, from, size, events);
	return send(n->fd, from, size, MSG_NOSIGNAL);
}

int net_send(struct net *n, const char *from, size_t size)
{
	char what[80];
	size_t done = 0;

	n->has_sent = false;
	while (done < size) {
		short events;
		ssize_t rc = socket_write(n, from + done, size - done, &events);

		if (rc > 0) {
			done += (size_t)rc;
			n->has_sent = true;
			continue;
		}
		if (rc < 0 && errno == EINTR)
			continue;
		int wake = n->wake;

		n->wake = -1;
		bool can = rc < 0 && errno == EAGAIN && net_wait(n, events) == 0;

		n->wake = wake;
		if (can)
			continue;
		int error = rc < 0 ? errno : EPIPE;

		(void)snprintf(what, sizeof(what), "send to %s", n->peer);
		return net_fail_system(n, what, error);
	}
	return 0;
}

int net_receive(struct net *n, char *to, size_t room, size_t *got)
{
	char what[80];

	for (;;) {
		short events;
		ssize_t size = socket_read(n, to, room, &events);

		*got = size > 0 ? (size_t)size : 0;
		if (size > 0)
			return 0;
		if (size == 0)
			return net_fail(n, NET_UNAVAILABLE, "%s has closed the connection",
					n->peer);
		if (errno == EINTR)
			continue;
		int error = errno;

		(void)snprintf(what, sizeof(what), "read from %s", n->peer);
		if (error != EAGAIN)
			return net_fail_system(n, what, error);
		int rc = net_wait(n, events);

		if (rc > 0)
			return NET_WOKEN;
		if (rc < 0)
			return errno == ETIMEDOUT ? NET_NOTHING : net_fail_system(n, "wait", errno);
	}
}

int net_fail_nothing(struct net *n, int rc, const char *what)
{
	return rc < 0 ? rc : net_fail_system(n, what, rc == NET_WOKEN ? ECANCELED : ETIMEDOUT);
}

bool net_is_sound(const struct net *n)
{
	struct pollfd fd = {.fd = n->fd, .events = POLLIN};

	/* Nothing was asked: what can be read now is the end of the connection, or out of turn. */
	return n->fd >= 0 && poll(&fd, 1, 0) == 0;
}
