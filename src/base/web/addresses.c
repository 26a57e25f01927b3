/*
 * addresses.c: the addresses of hosts, as libcurl wants them. Its own resolver can't be given up
 * on: who removes a request whose name is being looked up waits for that, past every deadline.
 *
 * What is known is used for a minute, and after that until something newer is known: a name service
 * that doesn't answer harms nobody who has a connection, or an address.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/web/request.h"

#define KNOWN_NS (60 * CLOCK_NS_PER_S)
#define ADDRESSES_MAX 8

static bool is_address(const char *host)
{
	struct in6_addr any;

	return inet_pton(AF_INET, host, &any) == 1 || inet_pton(AF_INET6, host, &any) == 1;
}

static void name_done(struct name *n)
{
	lookup_cancel(&n->lookup);
	free(n->entry);
	*n = (struct name){0};
}

void addresses_free(struct http *h)
{
	for (size_t i = 0; i < HTTP_NAMES_MAX; i++)
		name_done(&h->names[i]);
}

static struct name *name_find(struct http *h, const struct http_host *host)
{
	for (size_t i = 0; i < HTTP_NAMES_MAX; i++)
		if (strcmp(h->names[i].host.name, host->name) == 0 &&
		    strcmp(h->names[i].host.port, host->port) == 0)
			return &h->names[i];
	return NULL;
}

void addresses_doubt(struct http *h, const struct http_host *host)
{
	struct name *n = name_find(h, host);

	if (n != NULL)
		n->until_ns = 0;
}

static void add_address(struct bytes *text, const struct addrinfo *a, bool is_first)
{
	char address[NI_MAXHOST];

	if (getnameinfo(a->ai_addr, a->ai_addrlen, address, sizeof(address), NULL, 0,
			NI_NUMERICHOST) == 0)
		bytes_print(text, a->ai_family == AF_INET6 ? "%s[%s]" : "%s%s", is_first ? "" : ",",
			    address);
}

/* "name:port:address,address" */
static void name_learn(struct name *n, const struct addrinfo *list)
{
	struct bytes text = {0};
	size_t count = 0;

	bytes_print(&text, "%s:%s:", n->host.name, n->host.port);
	size_t size = text.n;

	for (const struct addrinfo *a = list; a != NULL && count < ADDRESSES_MAX; a = a->ai_next)
		add_address(&text, a, count++ == 0);
	if (text.has_failed || text.n <= size) {
		bytes_done(&text);
		return;
	}
	free(n->entry);
	n->entry = text.at;
	n->until_ns = clock_boot_ns() + KNOWN_NS;
}

/* Asks; does not wait when there is something to go on with. */
static int name_ask(struct http *h, struct name *n, uint64_t deadline_ns)
{
	struct addrinfo *list = NULL;
	int code = lookup(&n->lookup, n->host.name, n->host.port,
			  n->entry != NULL ? 0 : deadline_ns, h->wake, &list);

	if (code != 0)
		return code;
	name_learn(n, list);
	freeaddrinfo(list);
	return n->entry != NULL ? 0 : EAI_MEMORY;
}

static int addresses_fail(struct http_reply *reply, const struct http_host *host, int code)
{
	const char *why =
		code == EAI_INPROGRESS ? "the name service does not answer" : gai_strerror(code);

	reply->result = code == EAI_INPROGRESS ? HTTP_LATE : HTTP_UNAVAILABLE;
	(void)snprintf(reply->text, sizeof(reply->text), "can't find the host %.80s: %.80s",
		       host->name, why);
	return reply->result;
}

int addresses_find(struct http *h, const struct http_host *host, uint64_t deadline_ns,
		   struct name **name, struct http_reply *reply)
{
	*name = NULL;
	if (is_address(host->name))
		return HTTP_OK;
	struct name *n = name_find(h, host);

	if (n == NULL) {
		n = &h->names[h->next_name++ % HTTP_NAMES_MAX];
		name_done(n);
		n->host = *host;
	}
	int code = clock_boot_ns() >= n->until_ns ? name_ask(h, n, deadline_ns) : 0;

	if (code != 0 && n->entry == NULL)
		return addresses_fail(reply, host, code);
	*name = n;
	return HTTP_OK;
}
