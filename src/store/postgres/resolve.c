/*
 * resolve.c: names to addresses within a deadline. getaddrinfo() can't be given one, so the C
 * library asks in a thread of its own (getaddrinfo_a), and we wait as long as we may. A question
 * that outlives its call stays with the store, and the next call for that name waits for the same
 * one: a dead name service costs one thread per name, not one per try.
 */
#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "store/postgres/postgres.h"

#define HOST_MAX 256

struct pg_lookup {
	struct pg_lookup *next;
	struct gaicb question;
	struct addrinfo hints;
	char name[HOST_MAX];
};

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
	return l;
}

static void lookup_keep(struct pg_store *store, struct pg_lookup *l)
{
	store_lock(&store->base);
	l->next = store->lookups;
	store->lookups = l;
	store_unlock(&store->base);
}

static void lookup_free(struct pg_lookup *l)
{
	if (l->question.ar_result != NULL)
		freeaddrinfo(l->question.ar_result);
	free(l);
}

/* What can't be cancelled stays: a thread of the C library still writes to it. */
void pg_lookups_free(struct pg_lookup *list)
{
	while (list != NULL) {
		struct pg_lookup *l = list;

		list = l->next;
		if (gai_cancel(&l->question) != EAI_NOTCANCELED)
			lookup_free(l);
	}
}

static struct pg_lookup *lookup_new(const char *name)
{
	struct pg_lookup *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return NULL;
	(void)snprintf(l->name, sizeof(l->name), "%s", name);
	l->hints = (struct addrinfo){.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
	l->question.ar_name = l->name;
	l->question.ar_request = &l->hints;
	struct gaicb *list[] = {&l->question};

	if (getaddrinfo_a(GAI_NOWAIT, list, 1, NULL) == 0)
		return l;
	free(l);
	return NULL;
}

/* 0 and its addresses in *out, or a code. */
static int lookup_wait(struct pg_lane *lane, const char *name, uint64_t until_ns,
		       struct pg_lookup **out)
{
	struct pg_lookup *l = lookup_take(lane->store, name);

	if (l == NULL && (l = lookup_new(name)) == NULL) {
		(void)pg_no_memory(lane);
		return BATON_E_MEMORY;
	}
	const struct gaicb *const list[] = {&l->question};
	int rc;

	while ((rc = gai_error(&l->question)) == EAI_INPROGRESS) {
		uint64_t now_ns = clock_boot_ns();

		if (now_ns >= until_ns || pg_is_woken(lane)) {
			lookup_keep(lane->store, l);
			store_fail(&lane->call->error, BATON_E_TIMEOUT,
				   "the name service did not find %.100s in time", name);
			return BATON_E_TIMEOUT;
		}
		/* In steps: the watch lane may be wanted back. */
		uint64_t left_ns = until_ns - now_ns;
		struct timespec step = {.tv_nsec = (long)(left_ns < 50 * CLOCK_NS_PER_MS
								  ? left_ns
								  : 50 * CLOCK_NS_PER_MS)};

		(void)gai_suspend(list, 1, &step);
	}
	if (rc == 0) {
		*out = l;
		return 0;
	}
	store_fail(&lane->call->error, BATON_E_UNAVAILABLE,
		   "the name service does not know %.100s: %s", name, gai_strerror(rc));
	lookup_free(l);
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
	struct pg_lookup *l = NULL;
	int code;

	if (host[0] == '\0' || host[0] == '/' || host[0] == '@' || is_address(host)) {
		add_host(hosts, host, is_address(host) ? host : "", port);
		return 0;
	}
	code = lookup_wait(lane, host, until_ns, &l);
	if (code != 0)
		return code;
	for (struct addrinfo *a = l->question.ar_result; a != NULL; a = a->ai_next) {
		char address[NI_MAXHOST];

		if (getnameinfo(a->ai_addr, a->ai_addrlen, address, sizeof(address), NULL, 0,
				NI_NUMERICHOST) == 0)
			add_host(hosts, host, address, port);
	}
	lookup_free(l);
	return 0;
}

/* The i-th of a list with commas; the last one stands for all that follow, if there is but one. */
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

/* It begins with the n-th then, and goes round. */
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

/* A name that is not found leaves the time for the others, and is left out. */
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

	/* Of lists that don't fit together libpq says what is wrong. */
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
