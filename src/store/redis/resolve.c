/*
 * resolve.c: names to addresses, with a deadline. The system's resolver knows none, so names are
 * looked up beside the lane (getaddrinfo_a); a lookup that outlives its call is picked up by the
 * next one that asks for the same name. Addresses written as numbers need none of that.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/redis/redis.h"

/* How long a wait for the name service lasts before somebody who waits to wake us is seen. */
#define LOOK_NS (50 * CLOCK_NS_PER_MS)

/* What a lookup points to lives as long as it does. */
struct lookup {
	struct gaicb cb;
	struct addrinfo hints;
	char host[BATON_NAME_MAX + 1];
	char port[8];
};

static int resolve_fail(struct redis_wire *w, const struct redis_host *host, int code)
{
	return store_fail(
		w->error, BATON_E_UNAVAILABLE, "can't find the host %.100s: %.80s", host->name,
		code == EAI_INPROGRESS ? "the name service does not answer" : gai_strerror(code));
}

static void lookup_free(struct lookup *l)
{
	if (l->cb.ar_result != NULL)
		freeaddrinfo(l->cb.ar_result);
	free(l);
}

void redis_resolve_forget(struct redis_wire *w)
{
	if (w->lookup == NULL)
		return;
	/* What can't be cancelled will still be written to: it is left to the system. */
	if (gai_cancel(w->lookup) != EAI_NOTCANCELED)
		lookup_free((struct lookup *)(void *)w->lookup);
	w->lookup = NULL;
}

static int lookup_begin(struct redis_wire *w, const struct redis_host *host)
{
	struct lookup *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return EAI_MEMORY;
	l->hints = (struct addrinfo){.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
	(void)snprintf(l->host, sizeof(l->host), "%s", host->name);
	(void)snprintf(l->port, sizeof(l->port), "%s", host->port);
	l->cb.ar_name = l->host;
	l->cb.ar_service = l->port;
	l->cb.ar_request = &l->hints;
	struct gaicb *list[1] = {&l->cb};
	int code = getaddrinfo_a(GAI_NOWAIT, list, 1, NULL);

	if (code != 0) {
		free(l);
		return code;
	}
	w->lookup = &l->cb;
	return 0;
}

static bool lookup_is_same(const struct redis_wire *w, const struct redis_host *host)
{
	const struct lookup *l = (const struct lookup *)(const void *)w->lookup;

	return strcmp(l->host, host->name) == 0 && strcmp(l->port, host->port) == 0;
}

static bool is_woken(const struct redis_wire *w)
{
	struct pollfd fd = {.fd = w->wake, .events = POLLIN};

	return w->wake >= 0 && poll(&fd, 1, 0) > 0;
}

int redis_resolve(struct redis_wire *w, const struct redis_host *host, struct addrinfo **list)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
				 .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
	int code = getaddrinfo(host->name, host->port, &hints, list);

	if (code == 0)
		return 0;
	if (w->lookup != NULL && !lookup_is_same(w, host))
		redis_resolve_forget(w);
	if (w->lookup == NULL && (code = lookup_begin(w, host)) != 0)
		return resolve_fail(w, host, code);
	while ((code = gai_error(w->lookup)) == EAI_INPROGRESS) {
		uint64_t now_ns = clock_boot_ns();

		if (now_ns >= w->deadline_ns || is_woken(w))
			return resolve_fail(w, host, code);
		uint64_t left_ns = w->deadline_ns - now_ns;
		struct timespec left = {.tv_nsec = (long)(left_ns < LOOK_NS ? left_ns : LOOK_NS)};
		const struct gaicb *const waits[1] = {w->lookup};

		(void)gai_suspend(waits, 1, &left);
	}
	struct lookup *l = (struct lookup *)(void *)w->lookup;

	*list = l->cb.ar_result;
	l->cb.ar_result = NULL;
	w->lookup = NULL;
	lookup_free(l);
	return code == 0 ? 0 : resolve_fail(w, host, code);
}
