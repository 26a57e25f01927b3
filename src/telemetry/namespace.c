/* namespace.c: see namespace.h. The drivers know more of their URLs; none is loaded for this. */
#include "telemetry/namespace.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/url.h"

#define TEXT_MAX ((size_t)1 << 20)
#define HOSTS_MAX 32
#define HOST_SIZE 264
#define VALUE_SIZE 1024

struct kind {
	const char *scheme;
	const char *name;
	const char *port; /* the usual one; NULL: what stands behind the "//" names no hosts */
	const char *part; /* the option that chooses a part, ... */
	const char *default_part; /* ... and what it is without it */
};

static const struct kind kinds[] = {
	{"redis", "redis", "6379", "prefix", "baton"},
	{"rediss", "redis", "6379", "prefix", "baton"},
	{"redis+unix", "redis+unix", NULL, "prefix", "baton"},
	{"redis+sentinel", "redis+sentinel", "26379", "prefix", "baton"},
	{"redis+cluster", "redis+cluster", "6379", "prefix", "baton"},
	{"consul", "consul", "8500", "prefix", "baton"},
	{"consuls", "consul", "8501", "prefix", "baton"},
	{"etcd", "etcd", "2379", "prefix", "baton"},
	{"etcds", "etcd", "2379", "prefix", "baton"},
	{"memcached", "memcached", "11211", "prefix", "baton"},
	{"memcacheds", "memcached", "11211", "prefix", "baton"},
	{"mongodb", "mongodb", "27017", "collection", "baton"},
	{"mongodb+srv", "mongodb+srv", "", "collection", "baton"},
	{"mssql", "mssql", "1433", NULL, NULL},
	{"mysql", "mysql", "3306", NULL, NULL},
	{"mariadb", "mysql", "3306", NULL, NULL},
	{"postgres", "postgres", "5432", "schema", "baton"},
	{"postgresql", "postgres", "5432", "schema", "baton"},
};

/* Two values of these are two sets of elections. */
static const char *const chosen[] = {"prefix",  "schema",   "collection", "table",    "namespace",
				     "dc",      "ns",       "partition",  "mode",     "lock",
				     "lock_id", "resource", "blob",       "endpoint", "socket",
				     "service", "context"};

static struct kind kind_of(struct url_part scheme)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strlen(kinds[i].scheme) == scheme.n &&
		    memcmp(kinds[i].scheme, scheme.at, scheme.n) == 0)
			return kinds[i];
	return (struct kind){0};
}

static bool is_kind(const struct kind *kind, const char *name)
{
	return kind->name != NULL && strcmp(kind->name, name) == 0;
}

/* The last one of that name counts. */
static bool find_option(struct url_part query, const char *name, char out[VALUE_SIZE])
{
	char key[64];
	char value[VALUE_SIZE];
	bool is_there = false;

	while (url_next_option(&query, key, sizeof(key), value, sizeof(value)) == 1) {
		if (strcasecmp(key, name) != 0)
			continue;
		(void)strcpy(out, value);
		is_there = true;
	}
	explicit_bzero(value, sizeof(value)); /* it may have been a password */
	return is_there;
}

static void add_text(struct bytes *out, const char *text)
{
	(void)bytes_add(out, text, strlen(text), TEXT_MAX);
}

/* ---- hosts ---- */

static int compare_hosts(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Of a list that can't be read, the list itself. */
static void add_hosts(struct bytes *out, struct url_part list, const char *usual_port)
{
	char hosts[HOSTS_MAX][HOST_SIZE];
	struct url_part left = list;
	size_t n = 0;
	int got = 1;

	for (; n < HOSTS_MAX && got == 1; n += got == 1) {
		char name[HOST_SIZE - 8];
		char port[8];

		(void)snprintf(port, sizeof(port), "%s", usual_port);
		got = url_next_host(&left, name, sizeof(name), port);
		if (got != 1)
			break;
		for (char *c = name; *c != '\0' && name[0] != '/'; c++) /* not of a socket */
			*c = (char)tolower((unsigned char)*c);
		(void)snprintf(hosts[n], HOST_SIZE, "%s%s%s", name,
			       strcmp(port, usual_port) != 0 ? ":" : "",
			       strcmp(port, usual_port) != 0 ? port : "");
	}
	if (got < 0 || left.n > 0) {
		(void)bytes_add(out, list.at, list.n, TEXT_MAX);
		return;
	}
	qsort(hosts, n, HOST_SIZE, compare_hosts);
	for (size_t i = 0; i < n; i++) {
		add_text(out, i > 0 ? "," : "");
		add_text(out, hosts[i]);
	}
}

/* What stands before the last '@' is a user and a password: it is taken off, and the user told. */
static struct url_part take_login(struct url_part *authority)
{
	struct url_part user = {authority->at, 0};

	for (size_t i = authority->n; i > 0; i--) {
		if (authority->at[i - 1] != '@')
			continue;
		while (user.n + 1 < i && user.at[user.n] != ':')
			user.n++;
		authority->at += i;
		authority->n -= i;
		break;
	}
	return user;
}

/* libpq names a server by options, too. */
static void add_authority(struct bytes *out, const struct kind *kind, struct url_part authority,
			  struct url_part query)
{
	char hosts[VALUE_SIZE];
	char port[VALUE_SIZE];
	bool has_options = is_kind(kind, "postgres");

	if (has_options && find_option(query, "host", hosts))
		authority = (struct url_part){hosts, strlen(hosts)};
	if (kind->port == NULL) {
		(void)bytes_add(out, authority.at, authority.n, TEXT_MAX);
		return;
	}
	add_hosts(out, authority, kind->port);
	if (has_options && find_option(query, "port", port) && strcmp(port, kind->port) != 0)
		bytes_print(out, ":%s", port);
}

/* ---- the part of a server ---- */

/* redis://host/3, redis://host?db=3; with Sentinel the name of the primary stands before it. */
static void add_redis_database(struct bytes *out, const struct kind *kind, const char *path,
			       struct url_part query)
{
	char db[VALUE_SIZE];
	const char *rest = path[0] == '/' ? path + 1 : path;

	if (is_kind(kind, "redis+unix")) {
		bytes_print(out, "%s\n", path);
		rest = "";
	} else if (is_kind(kind, "redis+sentinel")) {
		size_t n = strcspn(rest, "/");

		bytes_print(out, "/%.*s", (int)n, rest);
		rest += n + (rest[n] == '/');
	}
	if (!find_option(query, "db", db))
		(void)snprintf(db, sizeof(db), "%s", rest[0] != '\0' ? rest : "0");
	bytes_print(out, "/%s", db);
}

static void add_path(struct bytes *out, const struct kind *kind, const struct url *u,
		     struct url_part user)
{
	char path[VALUE_SIZE];
	char name[VALUE_SIZE];

	if (!url_decode(u->path, path, sizeof(path))) {
		(void)bytes_add(out, u->path.at, u->path.n, TEXT_MAX);
		return;
	}
	for (size_t n = strlen(path); n > 0 && path[n - 1] == '/'; n--)
		path[n - 1] = '\0';
	if (kind->name != NULL && strncmp(kind->name, "redis", 5) == 0) {
		add_redis_database(out, kind, path, u->query);
		return;
	}
	bool is_postgres = is_kind(kind, "postgres");

	if (is_postgres && find_option(u->query, "dbname", name))
		(void)snprintf(path, sizeof(path), "/%.1000s", name);
	else if (is_postgres && path[0] == '\0' && url_decode(user, name, sizeof(name)))
		(void)snprintf(path, sizeof(path), "/%.1000s", name); /* the usual database */
	add_text(out, path);
}

static void add_options(struct bytes *out, const struct kind *kind, struct url_part query)
{
	char value[VALUE_SIZE];

	for (size_t i = 0; i < sizeof(chosen) / sizeof(chosen[0]); i++) {
		if (!find_option(query, chosen[i], value))
			continue;
		if (kind->part != NULL && strcmp(kind->part, chosen[i]) == 0 &&
		    strcmp(kind->default_part, value) == 0)
			continue;
		bytes_print(out, "\n%s=%s", chosen[i], value);
	}
}

/* s3://bucket/myapp is s3://bucket?prefix=myapp. */
static bool has_prefix_in_path(struct url_part scheme)
{
	return (scheme.n == 2 && memcmp(scheme.at, "s3", 2) == 0) ||
	       (scheme.n == 6 && memcmp(scheme.at, "azblob", 6) == 0);
}

void namespace_of(const char *url, struct bytes *out)
{
	struct url u;
	char prefix[VALUE_SIZE];

	if (!url_split(url, &u))
		return;
	struct kind kind = kind_of(u.scheme);
	struct url_part authority = u.has_authority ? u.authority : (struct url_part){"", 0};
	struct url_part user = take_login(&authority);

	bytes_print(out, "%.*s\n", (int)(kind.name != NULL ? strlen(kind.name) : u.scheme.n),
		    kind.name != NULL ? kind.name : u.scheme.at);
	add_authority(out, &kind, authority, u.query);
	add_text(out, "\n");
	add_path(out, &kind, &u, user);
	if (has_prefix_in_path(u.scheme) && find_option(u.query, "prefix", prefix)) {
		bytes_print(out, "/%s", prefix);
		kind.part = "prefix";
		kind.default_part = prefix; /* it was told */
	}
	add_options(out, &kind, u.query);
}
