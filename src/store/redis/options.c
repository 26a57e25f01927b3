/*
 * options.c: the URL of a Redis store.
 *
 *     redis://[user[:password]@]host[:port][/db][?option=value&...]     rediss:// with TLS
 *     redis+unix:/path/to/redis.sock[?...]
 *     redis+sentinel://[user[:password]@]host[:port],host[:port].../master[/db][?...]
 *     redis+cluster://[user[:password]@]host[:port],host[:port]...[?...]
 *
 * What isn't understood is refused with a sentence; nothing is guessed at. A password never stands
 * in a sentence.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/url.h"
#include "store/redis/redis.h"

#define PORT "6379"
#define SENTINEL_PORT "26379"
#define MAX_LEASE_MS 60000

static int parse_scheme(struct redis_options *o, const struct url *url, struct baton_error *err);
static int parse_authority(struct redis_options *o, struct url_part a, struct baton_error *err);
static int parse_path(struct redis_options *o, const struct url *url, struct baton_error *err);
static int parse_query(struct redis_options *o, struct url_part query, struct baton_error *err);

int redis_options_parse(struct redis_options *o, const char *text, struct baton_error *err)
{
	struct url url;

	*o = (struct redis_options){.max_lease_ms = MAX_LEASE_MS, .history = 100};
	(void)snprintf(o->prefix, sizeof(o->prefix), "{baton}:");
	if (!url_split(text, &url)) {
		(void)store_fail(err, BATON_E_URL,
				 "that is no URL of a Redis store; say redis://host:6379/0, and "
				 "write special characters as %%XX");
		return BATON_E_URL;
	}
	if (parse_scheme(o, &url, err) != 0 ||
	    (o->socket[0] == '\0' && parse_authority(o, url.authority, err) != 0) ||
	    parse_path(o, &url, err) != 0 || parse_query(o, url.query, err) != 0)
		return BATON_E_URL;
	if (o->tls && o->server_name[0] == '\0' && o->mode == REDIS_SINGLE)
		(void)snprintf(o->server_name, sizeof(o->server_name), "%s", o->hosts[0].name);
	return BATON_OK;
}

static bool is_scheme(const struct url *url, const char *name)
{
	return url->scheme.n == strlen(name) && memcmp(url->scheme.at, name, url->scheme.n) == 0;
}

static int parse_scheme(struct redis_options *o, const struct url *url, struct baton_error *err)
{
	o->tls = is_scheme(url, "rediss");
	if (is_scheme(url, "redis+unix")) {
		if (!url->has_authority && url->path.n > 1 && url->path.at[0] == '/' &&
		    url_decode(url->path, o->socket, sizeof(o->socket)))
			return 0;
		return store_fail(err, BATON_E_URL,
				  "a socket is named by its full path, of up to 107 bytes: "
				  "redis+unix:/run/redis/redis.sock");
	}
	o->mode = is_scheme(url, "redis+sentinel")  ? REDIS_SENTINEL
		  : is_scheme(url, "redis+cluster") ? REDIS_CLUSTER
						    : REDIS_SINGLE;
	if (url->has_authority && url->authority.n > 0)
		return 0;
	return store_fail(err, BATON_E_URL, "a Redis store needs a host: redis://host:6379/0");
}

/* "host", "host:port", "[::1]:port". */
static bool parse_host(struct redis_host *h, struct url_part text, const char *port)
{
	struct url_part name = text;
	struct url_part number = {port, strlen(port)};
	const char *end = text.n > 0 && text.at[0] == '[' ? memchr(text.at, ']', text.n) : NULL;
	const char *colon = NULL;

	if (text.n > 0 && text.at[0] == '[') {
		if (end == NULL)
			return false;
		name = (struct url_part){text.at + 1, (size_t)(end - text.at) - 1};
		if (end + 1 < text.at + text.n)
			colon = end + 1;
	} else {
		colon = memchr(text.at, ':', text.n);
		if (colon != NULL)
			name.n = (size_t)(colon - text.at);
	}
	if (colon != NULL) {
		number = (struct url_part){colon + 1, text.n - (size_t)(colon + 1 - text.at)};
		if (*colon != ':')
			return false;
	}
	if (!url_decode(name, h->name, sizeof(h->name)) || h->name[0] == '\0' ||
	    !url_decode(number, h->port, sizeof(h->port)))
		return false;
	size_t digits = strspn(h->port, "0123456789");
	long value = strtol(h->port, NULL, 10);

	return digits > 0 && h->port[digits] == '\0' && value > 0 && value < 65536;
}

/* "user:password", "user", ":password". */
static bool parse_login(struct redis_options *o, struct url_part text)
{
	const char *colon = memchr(text.at, ':', text.n);
	struct url_part user = {text.at, colon != NULL ? (size_t)(colon - text.at) : text.n};
	struct url_part password = {colon, 0};

	if (colon != NULL)
		password = (struct url_part){colon + 1, text.n - user.n - 1};
	return url_decode(user, o->user, sizeof(o->user)) &&
	       (colon == NULL || url_decode(password, o->password.text, sizeof(o->password.text)));
}

static int parse_authority(struct redis_options *o, struct url_part a, struct baton_error *err)
{
	const char *at = memrchr(a.at, '@', a.n);
	const char *port = o->mode == REDIS_SENTINEL ? SENTINEL_PORT : PORT;

	if (at != NULL) {
		struct url_part login = {a.at, (size_t)(at - a.at)};

		if (!parse_login(o, login))
			return store_fail(err, BATON_E_URL,
					  "the user or password can't be read; write special "
					  "characters as %%XX");
		a = (struct url_part){at + 1, a.n - login.n - 1};
	}
	while (a.n > 0) {
		const char *comma = memchr(a.at, ',', a.n);
		struct url_part one = {a.at, comma != NULL ? (size_t)(comma - a.at) : a.n};

		if (o->n_hosts == REDIS_HOSTS_MAX || !parse_host(&o->hosts[o->n_hosts], one, port))
			return store_fail(err, BATON_E_URL,
					  "\"%.*s\" is no host:port, or there are more than %d",
					  (int)(one.n < 100 ? one.n : 100), one.at,
					  REDIS_HOSTS_MAX);
		o->n_hosts++;
		size_t used = one.n + (comma != NULL ? 1 : 0);

		a = (struct url_part){a.at + used, a.n - used};
	}
	if (o->n_hosts == 0 || (o->n_hosts > 1 && o->mode == REDIS_SINGLE))
		return store_fail(err, BATON_E_URL,
				  "a Redis store is one server; several are redis+sentinel:// or "
				  "redis+cluster://");
	return 0;
}

static bool parse_number(const char *text, uint64_t max, uint64_t *out)
{
	size_t n = strlen(text);

	if (n == 0 || n > 9 || strspn(text, "0123456789") != n)
		return false;
	*out = strtoull(text, NULL, 10);
	return *out <= max;
}

/* "", "/", "/3"; Sentinel: "/master", "/master/3". */
static int parse_path(struct redis_options *o, const struct url *url, struct baton_error *err)
{
	char path[2 * BATON_NAME_MAX];
	char *db = path + 1;
	uint64_t number = 0;

	if (o->socket[0] != '\0')
		return 0;
	if (!url_decode(url->path, path, sizeof(path)))
		return store_fail(err, BATON_E_URL, "the path of the URL can't be read");
	if (path[0] == '\0')
		db = path;
	if (o->mode == REDIS_SENTINEL) {
		size_t n = strcspn(db, "/");

		if (n == 0 || n >= sizeof(o->master))
			return store_fail(err, BATON_E_URL,
					  "Sentinel needs the name of the primary: "
					  "redis+sentinel://host:26379/mymaster");
		(void)memcpy(o->master, db, n);
		db += n + (db[n] == '/' ? 1 : 0);
	}
	if (db[0] == '\0')
		return 0;
	if (o->mode == REDIS_CLUSTER || !parse_number(db, UINT16_MAX, &number))
		return store_fail(err, BATON_E_URL,
				  "\"%.40s\" is no number of a database (a cluster has only one)",
				  db);
	o->db = (uint32_t)number;
	return 0;
}

/* ---- what stands behind the '?' ---- */

/* The hash tag keeps all keys of a namespace in one slot of a cluster. */
static bool set_prefix(struct redis_options *o, const char *value)
{
	size_t n = strlen(value);

	if (n == 0 || n > 200 || strpbrk(value, "{}") != NULL)
		return false;
	(void)snprintf(o->prefix, sizeof(o->prefix), "{%s}:", value);
	return true;
}

static bool set_flag(const char *value, bool *out)
{
	*out = strcmp(value, "1") == 0;
	return *out || strcmp(value, "0") == 0;
}

static bool set_path(const char *value, char *out, size_t size)
{
	int n = snprintf(out, size, "%s", value);

	return value[0] == '/' && n > 0 && (size_t)n < size;
}

static bool set_number(const char *value, uint32_t max, uint32_t *out)
{
	uint64_t number;

	if (!parse_number(value, max, &number))
		return false;
	*out = (uint32_t)number;
	return true;
}

static bool set_max_lease(struct redis_options *o, const char *value)
{
	return parse_number(value, 86400000, &o->max_lease_ms) && o->max_lease_ms >= 100;
}

static bool set_text(const char *value, char *out, size_t size)
{
	int n = snprintf(out, size, "%s", value);

	return n > 0 && (size_t)n < size;
}

/* Those of the Sentinels, which need not be those of the server. */
static bool set_sentinel(struct redis_options *o, const char *key, const char *value)
{
	struct redis_secret *secret = &o->sentinel_password;

	if (o->mode != REDIS_SENTINEL)
		return false;
	if (strcmp(key, "sentinel_user") == 0)
		return set_text(value, o->sentinel_user, sizeof(o->sentinel_user));
	if (strcmp(key, "sentinel_password") == 0)
		return set_text(value, secret->text, sizeof(secret->text));
	return strcmp(key, "sentinel_password_file") == 0 &&
	       set_path(value, secret->file, sizeof(secret->file));
}

static bool set_option(struct redis_options *o, const char *key, const char *value)
{
	if (strncmp(key, "sentinel_", 9) == 0)
		return set_sentinel(o, key, value);
	if (strcmp(key, "prefix") == 0)
		return set_prefix(o, value);
	if (strcmp(key, "db") == 0)
		return o->mode != REDIS_CLUSTER && set_number(value, UINT16_MAX, &o->db);
	if (strcmp(key, "max_lease") == 0)
		return set_max_lease(o, value);
	if (strcmp(key, "wait") == 0)
		return set_number(value, 16, &o->wait);
	if (strcmp(key, "history") == 0)
		return set_number(value, 10000, &o->history);
	if (strcmp(key, "durable") == 0)
		return set_flag(value, &o->durable);
	if (strcmp(key, "user") == 0)
		return set_text(value, o->user, sizeof(o->user));
	if (strcmp(key, "password_file") == 0)
		return set_path(value, o->password.file, sizeof(o->password.file));
	if (strcmp(key, "tls") == 0)
		return set_flag(value, &o->tls);
	if (strcmp(key, "ca") == 0)
		return set_path(value, o->ca, sizeof(o->ca));
	if (strcmp(key, "cert") == 0)
		return set_path(value, o->cert, sizeof(o->cert));
	if (strcmp(key, "key") == 0)
		return set_path(value, o->key, sizeof(o->key));
	if (strcmp(key, "server_name") == 0)
		return set_text(value, o->server_name, sizeof(o->server_name));
	return false;
}

static bool is_twice(const struct redis_secret *secret)
{
	return secret->text[0] != '\0' && secret->file[0] != '\0';
}

static int check(const struct redis_options *o, bool was_secure, struct baton_error *err)
{
	if (was_secure && !o->tls)
		return store_fail(err, BATON_E_URL, "rediss:// is TLS: tls=0 contradicts it");
	if (!o->tls && (o->ca[0] != '\0' || o->cert[0] != '\0' || o->key[0] != '\0' ||
			o->server_name[0] != '\0'))
		return store_fail(err, BATON_E_URL,
				  "ca, cert, key and server_name are for TLS: say rediss://, or "
				  "tls=1 with Sentinel and Cluster");
	if (o->tls && o->socket[0] != '\0')
		return store_fail(err, BATON_E_URL, "there is no TLS on a socket of this machine");
	if (is_twice(&o->password) || is_twice(&o->sentinel_password))
		return store_fail(err, BATON_E_URL, "there are two passwords, one in a file");
	if (o->sentinel_user[0] != '\0' && o->sentinel_password.text[0] == '\0' &&
	    o->sentinel_password.file[0] == '\0')
		return store_fail(err, BATON_E_URL,
				  "sentinel_user needs sentinel_password_file (or "
				  "sentinel_password, where the URL itself is kept secret)");
	if (o->wait > 0 && o->durable)
		return store_fail(err, BATON_E_URL,
				  "durable=1 is for one server without replicas, wait is for those "
				  "with replicas");
	return 0;
}

static int parse_query(struct redis_options *o, struct url_part query, struct baton_error *err)
{
	char key[32];
	char value[REDIS_PATH_MAX];
	bool was_secure = o->tls;
	int got;

	while ((got = url_next_option(&query, key, sizeof(key), value, sizeof(value))) == 1) {
		if (!set_option(o, key, value))
			return store_fail(
				err, BATON_E_URL,
				"\"%.31s\" is no option of a Redis store, or what it is set to is "
				"no value for it: baton-redis(7) has the list",
				key);
	}
	if (got != 0)
		return store_fail(err, BATON_E_URL,
				  "the options of a Redis store are written key=value&key=value");
	return check(o, was_secure, err);
}
