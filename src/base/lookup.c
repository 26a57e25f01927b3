/* lookup.c: see lookup.h. */
#include "base/lookup.h"

#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

/* How long a wait for the name service lasts before it looks whether it was woken. */
#define STEP_NS (50 * CLOCK_NS_PER_MS)

/* A question, with all that it points to. */
struct lookup {
	struct gaicb question;
	struct addrinfo hints;
	char *port;
	char host[];
};

static void lookup_free(struct lookup *l)
{
	if (l->question.ar_result != NULL)
		freeaddrinfo(l->question.ar_result);
	free(l);
}

void lookup_cancel(struct lookup **under_way)
{
	struct lookup *l = *under_way;

	*under_way = NULL;
	/* A question that can't be cancelled will still be written to: it is left to the C
	 * library. */
	if (l != NULL && gai_cancel(&l->question) != EAI_NOTCANCELED)
		lookup_free(l);
}

static int lookup_begin(struct lookup **under_way, const char *host, const char *port)
{
	size_t host_size = strlen(host) + 1;
	size_t port_size = strlen(port) + 1;
	struct lookup *l = calloc(1, sizeof(*l) + host_size + port_size);

	if (l == NULL)
		return EAI_MEMORY;
	(void)memcpy(l->host, host, host_size);
	l->port = l->host + host_size;
	(void)memcpy(l->port, port, port_size);
	l->hints = (struct addrinfo){.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
	l->question.ar_name = l->host;
	l->question.ar_service = l->port;
	l->question.ar_request = &l->hints;
	struct gaicb *list[1] = {&l->question};
	int code = getaddrinfo_a(GAI_NOWAIT, list, 1, NULL);

	if (code != 0) {
		free(l);
		return code;
	}
	*under_way = l;
	return 0;
}

static bool is_woken(int wake)
{
	struct pollfd fd = {.fd = wake, .events = POLLIN};

	return wake >= 0 && poll(&fd, 1, 0) > 0;
}

static int lookup_await(struct lookup *l, uint64_t deadline_ns, int wake)
{
	const struct gaicb *const list[1] = {&l->question};
	int code;

	while ((code = gai_error(&l->question)) == EAI_INPROGRESS) {
		uint64_t now_ns = clock_boot_ns();

		if (now_ns >= deadline_ns || is_woken(wake))
			return EAI_INPROGRESS;
		uint64_t left_ns = deadline_ns - now_ns;
		struct timespec step = {.tv_nsec = (long)(left_ns < STEP_NS ? left_ns : STEP_NS)};

		(void)gai_suspend(list, 1, &step);
	}
	return code;
}

int lookup(struct lookup **under_way, const char *host, const char *port, uint64_t deadline_ns,
	   int wake, struct addrinfo **list)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
				 .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
	int code = getaddrinfo(host, port, &hints, list);

	if (code == 0)
		return 0;
	struct lookup *l = *under_way;

	if (l != NULL && (strcmp(l->host, host) != 0 || strcmp(l->port, port) != 0))
		lookup_cancel(under_way);
	if (*under_way == NULL && (code = lookup_begin(under_way, host, port)) != 0)
		return code;
	l = *under_way;
	code = lookup_await(l, deadline_ns, wake);
	if (code == EAI_INPROGRESS)
		return code;
	*list = l->question.ar_result;
	l->question.ar_result = NULL;
	*under_way = NULL;
	lookup_free(l);
	return code;
}
