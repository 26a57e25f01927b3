/* agent_check.c: see agent_check.h. */
#include "telemetry/agent_check.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/thread.h"

struct agent_check {
	int socket;
	int stop; /* eventfd: readable at the end */
	pthread_t thread;
	bool (*leads)(void *arg);
	void *arg;
};

static void *answer_all(void *arg);

static struct agent_check *agent_fail(struct agent_check *a, struct baton_error *err, int code,
				      const char *where, const char *why)
{
	err->code = code;
	(void)snprintf(err->text, sizeof(err->text), "--agent-check=%.100s: %.100s", where, why);
	if (a != NULL) {
		if (a->socket >= 0)
			(void)close(a->socket);
		if (a->stop >= 0)
			(void)close(a->stop);
		free(a);
	}
	return NULL;
}

/* Takes an address apart; false: not an address with a port. */
static bool split_where(const char *where, char host[256], char port[8])
{
	const char *colon = strrchr(where, ':');
	const char *digits = colon != NULL ? colon + 1 : where;
	size_t n = colon != NULL ? (size_t)(colon - where) : 0;

	if (strlen(digits) == 0 || strlen(digits) > 5 ||
	    strspn(digits, "0123456789") != strlen(digits) || n >= 256)
		return false;
	(void)strcpy(port, digits);
	if (n >= 2 && where[0] == '[' && where[n - 1] == ']') {
		where++;
		n -= 2;
	}
	(void)snprintf(host, 256, "%.*s", (int)n, where);
	if (colon == NULL)
		(void)strcpy(host, "127.0.0.1");
	return host[0] != '\0';
}

/* -1 with errno. */
static int listen_on(const struct addrinfo *at)
{
	const int yes = 1;
	int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -1;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (bind(fd, at->ai_addr, at->ai_addrlen) != 0 || listen(fd, 64) != 0) {
		int error = errno;

		(void)close(fd);
		errno = error;
		return -1;
	}
	return fd;
}

struct agent_check *agent_check_new(const char *where, bool (*leads)(void *arg), void *arg,
				    struct baton_error *err)
{
	const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
				       .ai_socktype = SOCK_STREAM};
	struct agent_check *a = calloc(1, sizeof(*a));
	struct addrinfo *list = NULL;
	char host[256];
	char port[8];

	if (a == NULL)
		return agent_fail(a, err, BATON_E_MEMORY, where, "no memory");
	a->socket = -1;
	a->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	a->leads = leads;
	a->arg = arg;
	if (!split_where(where, host, port) || getaddrinfo(host, port, &hints, &list) != 0)
		return agent_fail(a, err, BATON_E_INVALID, where,
				  "not an address; expected PORT or ADDRESS:PORT");
	a->socket = listen_on(list);
	int error = errno;

	freeaddrinfo(list);
	if (a->socket < 0)
		return agent_fail(a, err, BATON_E_SYSTEM, where, strerror(error));
	if (a->stop < 0 || !thread_start(&a->thread, answer_all, a))
		return agent_fail(a, err, BATON_E_SYSTEM, where, "there is no thread for it");
	return a;
}

int agent_check_port(const struct agent_check *a)
{
	struct sockaddr_storage at;
	socklen_t n = sizeof(at);

	if (getsockname(a->socket, (struct sockaddr *)&at, &n) != 0)
		return 0;
	return ntohs(at.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&at)->sin6_port
					      : ((struct sockaddr_in *)&at)->sin_port);
}

/* A few bytes fit into any socket's buffer; a socket that takes none gets no answer. */
static void answer_one(const struct agent_check *a, int fd)
{
	const char *text = a->leads(a->arg) ? "ready up\n" : "maint\n";

	(void)!send(fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL);
	(void)shutdown(fd, SHUT_WR);
	(void)close(fd);
}

static void *answer_all(void *arg)
{
	struct agent_check *a = arg;
	struct pollfd fds[] = {{.fd = a->stop, .events = POLLIN},
			       {.fd = a->socket, .events = POLLIN}};

	while (poll(fds, 2, -1) >= 0 || errno == EINTR) {
		if (fds[0].revents != 0)
			break;
		int fd = accept4(a->socket, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd >= 0)
			answer_one(a, fd);
		else if (errno == EMFILE || errno == ENFILE)
			(void)poll(fds, 1, 100); /* no descriptor is left: wait a moment */
	}
	return NULL;
}

void agent_check_free(struct agent_check *a)
{
	const uint64_t one = 1;

	if (a == NULL)
		return;
	(void)!write(a->stop, &one, sizeof(one));
	(void)pthread_join(a->thread, NULL);
	(void)close(a->socket);
	(void)close(a->stop);
	free(a);
}
