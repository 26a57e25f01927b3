/*
 * wire.c: one connection. Sockets never block: every wait is a poll() that ends with the call's
 * deadline, so neither a dead network nor a server that trickles bytes holds a lane.
 */
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
#include "store/redis/redis.h"

/* Half-open connections are noticed by the system, too, for the sake of lanes that are idle. */
#define KEEPALIVE_S 15
#define USER_TIMEOUT_MS 20000

int redis_wire_fail(struct redis_wire *w, const char *what, int error)
{
	char reason[80];

	if (error == ETIMEDOUT && clock_boot_ns() >= w->deadline_ns)
		return store_fail(w->error, BATON_E_UNAVAILABLE,
				  "Redis does not answer in time (%s)", what);
	return store_fail(w->error,
			  error == EMFILE || error == ENFILE ? BATON_E_SYSTEM : BATON_E_UNAVAILABLE,
			  "can't %s: %s", what, strerror_r(error, reason, sizeof(reason)));
}

void redis_wire_init(struct redis_wire *w)
{
	*w = (struct redis_wire){.fd = -1, .wake = -1};
}

void redis_wire_close(struct redis_wire *w)
{
	redis_tls_close(w);
	if (w->fd >= 0)
		(void)close(w->fd);
	w->fd = -1;
	resp_in_clear(&w->in);
}

static void wire_forget_addresses(struct redis_wire *w)
{
	if (w->addresses != NULL)
		freeaddrinfo(w->addresses);
	w->addresses = NULL;
}

void redis_wire_done(struct redis_wire *w)
{
	redis_wire_close(w);
	lookup_cancel(&w->lookup);
	wire_forget_addresses(w);
	resp_out_done(&w->out);
	resp_in_done(&w->in);
}

int redis_wire_wait(struct redis_wire *w, short events)
{
	for (;;) {
		struct pollfd fds[2] = {{.fd = w->fd, .events = events},
					{.fd = w->wake, .events = POLLIN}};
		uint64_t now_ns = clock_boot_ns();
		uint64_t left_ns = now_ns < w->deadline_ns ? w->deadline_ns - now_ns : 0;
		struct timespec left = {.tv_sec = (time_t)(left_ns / CLOCK_NS_PER_S),
					.tv_nsec = (long)(left_ns % CLOCK_NS_PER_S)};
		int n = ppoll(fds, w->wake >= 0 ? 2 : 1, &left, NULL);

		if (n > 0 && fds[0].revents != 0)
			return 0;
		if (n > 0 && fds[1].revents != 0)
			return WIRE_WOKEN;
		if (n < 0 && errno != EINTR)
			return -1;
		if (n == 0 && left_ns == 0) {
			errno = ETIMEDOUT;
			return -1;
		}
	}
}

/* ---- connecting ---- */

/* 0, or an errno. */
static int wire_finish_connect(struct redis_wire *w)
{
	int error = 0;
	socklen_t size = sizeof(error);

	int rc = redis_wire_wait(w, POLLOUT);

	if (rc != 0)
		return rc == WIRE_WOKEN ? ECANCELED : errno;
	if (getsockopt(w->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
		return errno;
	return error;
}

static int wire_try_connect(struct redis_wire *w, const struct sockaddr *address, socklen_t size)
{
	w->fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (w->fd < 0)
		return errno;
	int error = connect(w->fd, address, size) == 0 ? 0 : errno;

	if (error == EINPROGRESS)
		error = wire_finish_connect(w);
	if (error != 0) {
		(void)close(w->fd);
		w->fd = -1;
	}
	return error;
}

static void wire_tune(int fd)
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

int redis_wire_open_unix(struct redis_wire *w, const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char what[160];

	redis_wire_close(w);
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	int error = wire_try_connect(w, (const struct sockaddr *)&address, sizeof(address));

	if (error == 0)
		return 0;
	(void)snprintf(what, sizeof(what), "connect to %.120s", path);
	return redis_wire_fail(w, what, error);
}

int redis_wire_find(struct redis_wire *w, const struct redis_host *host)
{
	int n = 0;

	wire_forget_addresses(w);
	int code =
		lookup(&w->lookup, host->name, host->port, w->deadline_ns, w->wake, &w->addresses);

	if (code != 0)
		return store_fail(w->error, BATON_E_UNAVAILABLE,
				  "can't find the host %.100s: %.80s", host->name,
				  code == EAI_INPROGRESS ? "the name service does not answer"
							 : gai_strerror(code));
	for (const struct addrinfo *a = w->addresses; a != NULL; a = a->ai_next)
		n++;
	return n;
}

int redis_wire_open(struct redis_wire *w, const struct redis_host *host, size_t i)
{
	const struct addrinfo *a = w->addresses;
	char what[160];
	size_t n = 0;

	redis_wire_close(w);
	for (const struct addrinfo *one = a; one != NULL; one = one->ai_next)
		n++;
	for (size_t k = (w->turn + i) % n; k > 0; k--)
		a = a->ai_next;
	int error = wire_try_connect(w, a->ai_addr, a->ai_addrlen);

	if (error == 0) {
		wire_tune(w->fd);
		return 0;
	}
	(void)snprintf(what, sizeof(what), "connect to %.120s:%s", host->name, host->port);
	return redis_wire_fail(w, what, error);
}

int redis_wire_secure(struct redis_wire *w, struct redis_tls *tls, const char *name)
{
	if (redis_tls_open(tls, w, name) == 0)
		return 0;
	redis_wire_close(w);
	return -1;
}

/* ---- talking ---- */

/* As read(2), but *events says what to wait for when the error is EAGAIN. */
static ssize_t wire_receive(struct redis_wire *w, char *to, size_t n, short *events)
{
	*events = POLLIN;
	if (w->ssl != NULL)
		return redis_tls_read(w, to, n, events);
	return recv(w->fd, to, n, 0);
}

static ssize_t wire_transmit(struct redis_wire *w, const char *from, size_t n, short *events)
{
	*events = POLLOUT;
	if (w->ssl != NULL)
		return redis_tls_write(w, from, n, events);
	return send(w->fd, from, n, MSG_NOSIGNAL);
}

int redis_wire_send(struct redis_wire *w)
{
	size_t done = 0;

	w->sent = false;
	if (w->out.failed)
		return store_fail(w->error, BATON_E_MEMORY, "no memory for a request to Redis");
	while (done < w->out.n) {
		short events;
		ssize_t n = wire_transmit(w, w->out.data + done, w->out.n - done, &events);

		if (n > 0) {
			done += (size_t)n;
			w->sent = true;
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		/* Half a request must not be left behind by who was only to be woken. */
		int wake = w->wake;

		w->wake = -1;
		bool can = n < 0 && errno == EAGAIN && redis_wire_wait(w, events) == 0;

		w->wake = wake;
		if (can)
			continue;
		return redis_wire_fail(w, "send to Redis", n < 0 ? errno : EPIPE);
	}
	return 0;
}

int redis_wire_listen(struct redis_wire *w, const struct resp **reply)
{
	for (;;) {
		int rc = resp_take(&w->in, reply);
		size_t room = 0;
		short events;

		if (rc == 1)
			return 0;
		char *to = rc == 0 ? resp_in_room(&w->in, &room) : NULL;

		if (to == NULL)
			return store_fail(w->error, BATON_E_CORRUPT,
					  "what answers there does not speak as Redis does, or "
					  "says too much at once");
		ssize_t n = wire_receive(w, to, room, &events);

		if (n > 0) {
			resp_in_got(&w->in, (size_t)n);
			continue;
		}
		if (n == 0)
			return store_fail(w->error, BATON_E_UNAVAILABLE,
					  "Redis has closed the connection");
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN)
			return redis_wire_fail(w, "read from Redis", errno);
		rc = redis_wire_wait(w, events);
		if (rc > 0)
			return WIRE_WOKEN;
		if (rc < 0)
			return errno == ETIMEDOUT ? WIRE_LATE : redis_wire_fail(w, "wait", errno);
	}
}

int redis_wire_read(struct redis_wire *w, const struct resp **reply)
{
	int rc = redis_wire_listen(w, reply);

	if (rc == WIRE_LATE)
		return redis_wire_fail(w, "wait for a reply", ETIMEDOUT);
	return rc == WIRE_WOKEN ? redis_wire_fail(w, "wait for a reply", ECANCELED) : rc;
}

bool redis_wire_is_sound(struct redis_wire *w)
{
	struct pollfd fd = {.fd = w->fd, .events = POLLIN};

	/* Nothing was asked: whatever can be read now is the end, or out of turn. */
	return w->fd >= 0 && poll(&fd, 1, 0) == 0;
}
