/*
 * addresses.c: the addresses of hosts, as libcurl wants them. Its own resolver can't be given up
 * on: the removal of a request whose name is being looked up waits for the name, past every
 * deadline.
 *
 * Known addresses are used for a minute, and after that until newer ones are known. So a name
 * service that doesn't answer harms no client that has a connection, or an address.
 *
 * A name may have several addresses, of which one is used at a time. If libcurl had them all, it
 * would wait for half of a call before it tries the second one, and would never leave one that
 * accepts connections and stays silent. After a failure the next address is used.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/web/request.h"

#define KNOWN_NS (60 * CLOCK_NS_PER_S)

static bool is_address(const char *host)
{
	struct in6_addr any;

	return inet_pton(AF_INET, host, &any) == 1 || inet_pton(AF_INET6, host, &any) == 1;
}

static void entries_free(char **entries, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(entries[i]);
}

static void name_done(struct name *n)
{
	lookup_cancel(&n->lookup);
	entries_free(n->entries, n->n);
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

void addresses_next(struct name *n)
{
	n->is_proven = false;
	n->until_ns = 0;
	n->at = n->n > 0 ? (n->at + 1) % n->n : 0;
}

void addresses_doubt(struct http *h, const struct http_host *host)
{
	struct name *n = name_find(h, host);

	if (n != NULL)
		addresses_next(n);
}

/* "name:port:address"; NULL: no memory, or no address. */
static char *entry_make(const struct name *n, const struct addrinfo *a)
{
	char address[NI_MAXHOST];
	char *entry = NULL;

	if (getnameinfo(a->ai_addr, a->ai_addrlen, address, sizeof(address), NULL, 0,
			NI_NUMERICHOST) != 0 ||
	    asprintf(&entry, a->ai_family == AF_INET6 ? "%s:%s:[%s]" : "%s:%s:%s", n->host.name,
		     n->host.port, address) < 0)
		return NULL;
	return entry;
}

/* A name service may tell the same addresses in another order each time: the one whose turn it is
 * stays, if it is among them. */
static void name_learn(struct name *n, const struct addrinfo *list)
{
	char *entries[HTTP_ADDRESSES_MAX];
	size_t count = 0, at = SIZE_MAX;

	for (const struct addrinfo *a = list; a != NULL && count < HTTP_ADDRESSES_MAX;
	     a = a->ai_next) {
		char *entry = entry_make(n, a);

		if (entry == NULL)
			continue;
		if (n->n > 0 && strcmp(entry, n->entries[n->at]) == 0)
			at = count;
		entries[count++] = entry;
	}
	if (count == 0)
		return;
	entries_free(n->entries, n->n);
	(void)memcpy(n->entries, entries, count * sizeof(entries[0]));
	n->n = count;
	n->is_proven = n->is_proven && at != SIZE_MAX;
	n->at = at != SIZE_MAX ? at : 0;
	n->until_ns = clock_boot_ns() + KNOWN_NS;
}

/* Asks the name service; does not wait for it if an address is known. */
static int name_ask(struct http *h, struct name *n, uint64_t deadline_ns)
{
	struct addrinfo *list = NULL;
	int code = lookup(&n->lookup, n->host.name, n->host.port, n->n > 0 ? 0 : deadline_ns,
			  h->wake, &list);

	if (code != 0)
		return code;
	name_learn(n, list);
	freeaddrinfo(list);
	return n->n > 0 ? 0 : EAI_MEMORY;
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
	struct name *n = name_find(h, host);

	if (n == NULL) {
		n = &h->names[h->next_name++ % HTTP_NAMES_MAX];
		name_done(n);
		n->host = *host;
	}
	*name = n;
	if (is_address(host->name))
		return HTTP_OK;
	int code = clock_boot_ns() >= n->until_ns ? name_ask(h, n, deadline_ns) : 0;

	return code != 0 && n->n == 0 ? addresses_fail(reply, host, code) : HTTP_OK;
}
