/*
 * resolve.c: resolves names to addresses within a deadline (base/lookup.h). A lookup that outlives
 * its call stays with the store, and the next call for that name waits for the same lookup: a dead
 * name service costs one thread per name, not one per try.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/lookup.h"
#include "store/postgres/postgres.h"

#define HOST_MAX 256
/* How often a wait checks whether the watch lane is wanted back. */
#define STEP_NS (50 * CLOCK_NS_PER_MS)

struct pg_lookup {
	struct pg_lookup *next;
	struct lookup *under_way;
	char name[HOST_MAX];
};

/* The lookup that was kept for that name, or a new one; NULL: no memory. */
static struct pg_lookup *lookup_take(struct pg_store *store, const char *name)
{
	store_lock(&store->base);
	struct pg_lookup **at = &store->lookups;

	while (*at != NULL && strcmp((*at)->name, name) != 0)
		at = &(*at)->next;
	struct pg_lookup *l = *at;

	if (l != NULL)
		*at = l->next;
	store_unlock(&store->base);
	if (l == NULL && (l = calloc(1, sizeof(*l))) != NULL)
		(void)snprintf(l->name, sizeof(l->name), "%s", name);
	return l;
}

static void lookup_keep(struct pg_store *store, struct pg_lookup *l)
{
	store_lock(&store->base);
	l->next = store->lookups;
	store->lookups = l;
	store_unlock(&store->base);
}

void pg_lookups_free(struct pg_lookup *list)
{
	while (list != NULL) {
		struct pg_lookup *l = list;

		list = l->next;
		lookup_cancel(&l->under_way);
		free(l);
	}
}

/* Waits for the name's addresses. 0, or a code. */
static int lookup_wait(struct pg_lane *lane, const char *name, uint64_t until_ns,
		       struct addrinfo **list)
{
	struct pg_lookup *l = lookup_take(lane->store, name);
	int rc;

	if (l == NULL) {
		(void)pg_no_memory(lane);
		return BATON_E_MEMORY;
	}
	do {
		uint64_t step_ns = clock_boot_ns() + STEP_NS;

		rc = lookup(&l->under_way, name, "0", step_ns < until_ns ? step_ns : until_ns, -1,
			    list);
	} while (rc == EAI_INPROGRESS && clock_boot_ns() < until_ns && !pg_is_woken(lane));
	if (rc == EAI_INPROGRESS) {
		lookup_keep(lane->store, l);
		store_fail(&lane->call->error, BATON_E_TIMEOUT,
			   "the name service did not find %.100s in time", name);
		return BATON_E_TIMEOUT;
	}
	free(l);
	if (rc == 0)
		return 0;
	if (rc == EAI_MEMORY) {
		(void)pg_no_memory(lane);
		return BATON_E_MEMORY;
	}
	store_fail(&lane->call->error, BATON_E_UNAVAILABLE,
		   "the name service does not know %.100s: %s", name, gai_strerror(rc));
	return BATON_E_UNAVAILABLE;
}

static void add_host(struct pg_text hosts[3], const char *host, const char *address,
		     const char *port)
{
	const char *const values[3] = {host, address, port};

	for (size_t i = 0; i < 3; i++) {
		if (hosts[i].at != NULL)
			pg_text_add(&hosts[i], ",");
		pg_text_add(&hosts[i], values[i]);
	}
}

static bool is_address(const char *host)
{
	struct in6_addr any;

	return inet_pton(AF_INET, host, &any) == 1 || inet_pton(AF_INET6, host, &any) == 1;
}

static int add_name(struct pg_lane *lane, struct pg_text hosts[3], const char *host,
		    const char *port, uint64_t until_ns)
{
	struct addrinfo *list;
	int code;

	if (host[0] == '\0' || host[0] == '/' || host[0] == '@' || is_address(host)) {
		add_host(hosts, host, is_address(host) ? host : "", port);
		return 0;
	}
	code = lookup_wait(lane, host, until_ns, &list);
	if (code != 0)
		return code;
	for (const struct addrinfo *a = list; a != NULL; a = a->ai_next) {
		char address[NI_MAXHOST];

		if (getnameinfo(a->ai_addr, a->ai_addrlen, address, sizeof(address), NULL, 0,
				NI_NUMERICHOST) == 0)
			add_host(hosts, host, address, port);
	}
	freeaddrinfo(list);
	return 0;
}

/* The i-th item of a list with commas. A list with a single item has that item at every place. */
static void nth(const char *list, size_t i, char *out, size_t size)
{
	const char *at = list;

	if (strchr(list, ',') != NULL) {
		for (; i > 0 && at != NULL; i--)
			at = strchr(at, ',') != NULL ? strchr(at, ',') + 1 : NULL;
	}
	(void)snprintf(out, size, "%.*s", at != NULL ? (int)strcspn(at, ",") : 0,
		       at != NULL ? at : "");
}

static size_t count(const char *list)
{
	size_t n = 1;

	for (; *list != '\0'; list++)
		n += *list == ',';
	return n;
}

/* Rotates a list, so that it begins with its n-th item. */
static void rotate_hosts(struct pg_text *list, size_t n)
{
	struct pg_text out = {0};
	char *at = list->at;

	for (; n > 0; n--)
		at = strchr(at, ',') + 1;
	if (at == list->at)
		return;
	at[-1] = '\0';
	pg_text_add(&out, at);
	pg_text_add(&out, ",");
	pg_text_add(&out, list->at);
	pg_text_done(list);
	*list = out;
}

/* Adds n hosts. A name that isn't found in its share of the time is left out, so that the others
 * have time, too. */
static int add_hosts(struct pg_lane *lane, struct pg_text hosts[3], size_t n)
{
	const struct pg_conninfo *info = &lane->store->info;
	const char *names = pg_conninfo_get(info, "host");
	const char *addresses = pg_conninfo_get(info, "hostaddr");
	const char *ports = pg_conninfo_get(info, "port");
	int code = 0;

	for (size_t i = 0; i < n; i++) {
		uint64_t now_ns = clock_boot_ns();
		uint64_t deadline_ns = lane->call->deadline_ns;
		uint64_t left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
		char host[HOST_MAX], port[16], address[HOST_MAX];

		nth(names != NULL ? names : "", i, host, sizeof(host));
		nth(ports != NULL ? ports : "", i, port, sizeof(port));
		nth(addresses != NULL ? addresses : "", i, address, sizeof(address));
		if (addresses != NULL) {
			add_host(hosts, host, address, port);
			continue;
		}
		int rc = add_name(lane, hosts, host, port, now_ns + left_ns / (n - i));

		code = rc != 0 ? rc : code;
	}
	return hosts[0].at == NULL ? code : 0;
}

static bool any_failed(const struct pg_text hosts[3])
{
	return hosts[0].failed || hosts[1].failed || hosts[2].failed;
}

int pg_resolve(struct pg_lane *lane, struct pg_text hosts[3])
{
	const char *names = pg_conninfo_get(&lane->store->info, "host");
	const char *addresses = pg_conninfo_get(&lane->store->info, "hostaddr");
	const char *list = addresses != NULL ? addresses : names;

	/* If the lists don't fit together, libpq will say what is wrong. */
	if (list == NULL || (names != NULL && count(names) != count(list)))
		return 0;
	int code = add_hosts(lane, hosts, count(list));

	if (hosts[0].at != NULL && !any_failed(hosts)) {
		lane->call->error = (struct baton_error){0};
		lane->conn.n_places = count(hosts[0].at);
		for (size_t i = 0; i < 3; i++)
			rotate_hosts(&hosts[i], lane->conn.turn % lane->conn.n_places);
	}
	if (any_failed(hosts)) {
		(void)pg_no_memory(lane);
		return BATON_E_MEMORY;
	}
	return code;
}
