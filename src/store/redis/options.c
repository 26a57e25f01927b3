/*
 * options.c: the URL of a Redis store.
 *
 *     redis://[user[:password]@]host[:port][/db][?option=value&...]     rediss:// with TLS
 *     redis+unix:/path/to/redis.sock[?...]
 *     redis+sentinel://[user[:password]@]host[:port],host[:port].../master[/db][?...]
 *     redis+cluster://[user[:password]@]host[:port],host[:port]...[?...]
 *
 * A URL that isn't valid is refused with a sentence; nothing is guessed. A password never stands in
 * a sentence.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/url.h"
#include "store/redis/redis.h"

#define PORT "6379"
#define SENTINEL_PORT "26379"
#define PREFIX_MAX 200
#define WAIT_MAX 16
#define HISTORY_MAX 10000

static int options_parse_scheme(struct redis_options *o, const struct url *url,
				struct baton_error *err);
static int options_parse_authority(struct redis_options *o, struct url_part a,
				   struct baton_error *err);
static int options_parse_path(struct redis_options *o, const struct url *url,
			      struct baton_error *err);
static int options_parse_query(struct redis_options *o, struct url_part query,
			       struct baton_error *err);

int redis_options_parse(struct redis_options *o, const char *text, struct baton_error *err)
{
	struct url url;

	*o = (struct redis_options){.max_lease_ms = REDIS_MAX_LEASE_MS, .history = 100};
	(void)snprintf(o->prefix, sizeof(o->prefix), "{baton}:");
	if (!url_split(text, &url)) {
		(void)store_fail(err, BATON_E_URL,
				 "not a valid URL of a Redis store; say redis://host:6379/0, and "
				 "write special characters as %%XX");
		return BATON_E_URL;
	}
	if (options_parse_scheme(o, &url, err) != 0 ||
	    (o->socket[0] == '\0' && options_parse_authority(o, url.authority, err) != 0) ||
	    options_parse_path(o, &url, err) != 0 || options_parse_query(o, url.query, err) != 0)
		return BATON_E_URL;
	if (o->tls && o->files.server_name[0] == '\0' && o->mode == REDIS_SINGLE)
		(void)snprintf(o->files.server_name, sizeof(o->files.server_name), "%s",
			       o->hosts[0].name);
	return BATON_OK;
}

static bool is_scheme(const struct url *url, const char *name)
{
	return url->scheme.n == strlen(name) && memcmp(url->scheme.at, name, url->scheme.n) == 0;
}

static int options_parse_scheme(struct redis_options *o, const struct url *url,
				struct baton_error *err)
{
	o->tls = is_scheme(url, "rediss");
	if (is_scheme(url, "redis+unix")) {
		if (!url->has_authority && url->path.n > 1 && url->path.at[0] == '/' &&
		    url_decode(url->path, o->socket, sizeof(o->socket)))
			return 0;
		return store_fail(err, BATON_E_URL,
				  "not a valid path of a socket; expected a full path of up to 107 "
				  "bytes: redis+unix:/run/redis/redis.sock");
	}
	o->mode = is_scheme(url, "redis+sentinel")  ? REDIS_SENTINEL
		  : is_scheme(url, "redis+cluster") ? REDIS_CLUSTER
						    : REDIS_SINGLE;
	if (url->has_authority && url->authority.n > 0)
		return 0;
	return store_fail(err, BATON_E_URL, "the URL has no host; expected redis://host:6379/0");
}

static int options_parse_authority(struct redis_options *o, struct url_part a,
				   struct baton_error *err)
{
	int got = 1;

	if (!url_take_login(&a, o->user, sizeof(o->user), o->password.text,
			    sizeof(o->password.text)))
		return store_fail(err, BATON_E_URL,
				  "the user or password can't be read; write special characters as "
				  "%%XX");
	while (got == 1 && o->n_hosts < REDIS_HOSTS_MAX) {
		struct redis_host *h = &o->hosts[o->n_hosts];

		(void)snprintf(h->port, sizeof(h->port), "%s",
			       o->mode == REDIS_SENTINEL ? SENTINEL_PORT : PORT);
		got = url_next_host(&a, h->name, sizeof(h->name), h->port);
		o->n_hosts += got == 1;
	}
	if (got < 0 || a.n > 0)
		return store_fail(
			err, BATON_E_URL,
			"not valid names of servers; expected host:port,host:port, %d at most",
			REDIS_HOSTS_MAX);
	if (o->n_hosts == 0 || (o->n_hosts > 1 && o->mode == REDIS_SINGLE))
		return store_fail(err, BATON_E_URL,
				  "a Redis store is one server; several are redis+sentinel:// or "
				  "redis+cluster://");
	return 0;
}

/* Parses "", "/" or "/3"; with Sentinel, "/master" or "/master/3". */
static int options_parse_path(struct redis_options *o, const struct url *url,
			      struct baton_error *err)
{
	char path[2 * BATON_NAME_MAX];
	char *db = path + 1;

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
	if (o->mode == REDIS_CLUSTER || !option_number(db, UINT16_MAX, &o->db))
		return store_fail(
			err, BATON_E_URL,
			"\"%.40s\" is not the number of a database (a cluster has only one)", db);
	return 0;
}

/* ---- what stands behind the '?' ---- */

/* The hash tag keeps all keys of a namespace in one slot of a cluster. */
static bool options_set_prefix(struct redis_options *o, const char *value)
{
	size_t n = strlen(value);

	if (n == 0 || n > PREFIX_MAX || strpbrk(value, "{}") != NULL)
		return false;
	(void)snprintf(o->prefix, sizeof(o->prefix), "{%s}:", value);
	return true;
}

static bool set_max_lease(struct redis_options *o, const char *value)
{
	return option_number(value, OPTION_MAX_LEASE_MAX_MS, &o->max_lease_ms) &&
	       o->max_lease_ms >= OPTION_MAX_LEASE_MIN_MS;
}

/* User and password for the Sentinels, which may differ from those for the server. */
static bool options_set_sentinel(struct redis_options *o, const char *key, const char *value)
{
	struct redis_secret *secret = &o->sentinel_password;

	if (strcmp(key, "sentinel_user") == 0)
		return option_text(value, o->sentinel_user, sizeof(o->sentinel_user));
	if (strcmp(key, "sentinel_password") == 0)
		return option_text(value, secret->text, sizeof(secret->text));
	return strcmp(key, "sentinel_password_file") == 0 &&
	       option_path(value, secret->file, sizeof(secret->file));
}

static const struct option_known known[] = {
	{"prefix", OPTION_IS_TEXT(PREFIX_MAX) ", without { and }"},
	{"db", "0 to 65535, and no db= with redis+cluster://"},
	{"max_lease", OPTION_IS_MAX_LEASE},
	{"wait", OPTION_IS_NUMBER(0, WAIT_MAX) " replicas"},
	{"durable", OPTION_IS_FLAG},
	{"history", OPTION_IS_NUMBER(0, HISTORY_MAX) " claims"},
	{"user", OPTION_IS_TEXT(BATON_NAME_MAX)},
	{"password_file", OPTION_IS_PATH},
	{"sentinel_user", OPTION_IS_TEXT(BATON_NAME_MAX)},
	{"sentinel_password_file", OPTION_IS_PATH},
	{"tls", OPTION_IS_FLAG},
	{"ca", OPTION_IS_PATH},
	{"cert", OPTION_IS_PATH},
	{"key", OPTION_IS_PATH},
	{"server_name", OPTION_IS_SERVER_NAME},
	{NULL, NULL},
};

/* Not among `known`, because no sentence suggests a URL with a password in it. */
static const struct option_known also[] = {
	{"sentinel_password", OPTION_IS_TEXT(OPTION_PATH_LENGTH)},
	{NULL, NULL},
};

static bool options_set(void *options, const char *key, const char *value)
{
	struct redis_options *o = options;

	if (strncmp(key, "sentinel_", 9) == 0)
		return options_set_sentinel(o, key, value);
	if (strcmp(key, "prefix") == 0)
		return options_set_prefix(o, value);
	if (strcmp(key, "db") == 0)
		return o->mode != REDIS_CLUSTER && option_number(value, UINT16_MAX, &o->db);
	if (strcmp(key, "max_lease") == 0)
		return set_max_lease(o, value);
	if (strcmp(key, "wait") == 0)
		return option_number(value, WAIT_MAX, &o->wait);
	if (strcmp(key, "history") == 0)
		return option_number(value, HISTORY_MAX, &o->history);
	if (strcmp(key, "durable") == 0)
		return option_flag(value, &o->durable);
	if (strcmp(key, "user") == 0)
		return option_text(value, o->user, sizeof(o->user));
	if (strcmp(key, "password_file") == 0)
		return option_path(value, o->password.file, sizeof(o->password.file));
	if (strcmp(key, "tls") == 0)
		return option_flag(value, &o->tls);
	return option_tls(&o->files, key, value);
}

static const struct option_list list = {
	.store = "a Redis store",
	.page = "baton-redis(7)",
	.known = known,
	.also = also,
	.set = options_set,
};

static bool is_twice(const struct redis_secret *secret)
{
	return secret->text[0] != '\0' && secret->file[0] != '\0';
}

static bool has_sentinel_options(const struct redis_options *o)
{
	return o->sentinel_user[0] != '\0' || o->sentinel_password.text[0] != '\0' ||
	       o->sentinel_password.file[0] != '\0';
}

static int options_check(const struct redis_options *o, bool was_secure, struct baton_error *err)
{
	if (o->mode != REDIS_SENTINEL && has_sentinel_options(o))
		return store_fail(err, BATON_E_URL,
				  "sentinel_user and sentinel_password_file are for "
				  "redis+sentinel:// only");
	if (was_secure && !o->tls)
		return store_fail(err, BATON_E_URL, "rediss:// is TLS: tls=0 contradicts it");
	if (option_tls_check(&o->files, o->tls, "rediss://, or tls=1 with Sentinel and Cluster",
			     err) != 0)
		return -1;
	if (o->tls && o->socket[0] != '\0')
		return store_fail(err, BATON_E_URL, "there is no TLS on a socket of this machine");
	if (is_twice(&o->password) || is_twice(&o->sentinel_password))
		return store_fail(err, BATON_E_URL, "there are two passwords, one in a file");
	if (o->sentinel_user[0] != '\0' && o->sentinel_password.text[0] == '\0' &&
	    o->sentinel_password.file[0] == '\0')
		return store_fail(err, BATON_E_URL,
				  "sentinel_user needs sentinel_password_file (or "
				  "sentinel_password, where the URL itself is kept secret)");
	if (o->durable && o->mode != REDIS_SINGLE)
		return store_fail(err, BATON_E_URL,
				  "durable=1 is for one server without replicas: with Sentinel and "
				  "Cluster another one takes over, and may have missed what the "
				  "first one has on its disk");
	if (o->wait > 0 && o->durable)
		return store_fail(err, BATON_E_URL,
				  "durable=1 is for one server without replicas, wait is for those "
				  "with replicas");
	return 0;
}

static int options_parse_query(struct redis_options *o, struct url_part query,
			       struct baton_error *err)
{
	bool was_secure = o->tls;

	if (option_each(query, &list, o, err) != 0)
		return -1;
	return options_check(o, was_secure, err);
}
