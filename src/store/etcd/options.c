/*
 * options.c: the URL of an etcd store.
 *
 *     etcd://[user[:password]@]host[:port][,host[:port]...][?option=value&...]
 *     etcds://...                                                with TLS
 *
 * What isn't understood is refused with a sentence; nothing is guessed at. A password never stands
 * in a sentence.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/url.h"
#include "store/etcd/etcd.h"

#define PORT "2379"

static int parse_hosts(struct etcd_options *o, struct url_part list, struct baton_error *err)
{
	int got = 1;

	while (got == 1 && o->n_hosts < ETCD_HOSTS_MAX) {
		struct http_host *h = &o->hosts[o->n_hosts];

		(void)snprintf(h->port, sizeof(h->port), "%s", PORT);
		h->tls = o->tls;
		got = url_next_host(&list, h->name, sizeof(h->name), h->port);
		o->n_hosts += got == 1;
	}
	if (got == 0 && o->n_hosts > 0)
		return 0;
	return store_fail(err, BATON_E_URL,
			  "an etcd store is named by its members, %d at most: "
			  "etcd://host:2379,host:2379",
			  ETCD_HOSTS_MAX);
}

/* ---- what stands behind the '?' ---- */

static bool set_text(const char *value, char *out, size_t size)
{
	int n = snprintf(out, size, "%s", value);

	return n > 0 && (size_t)n < size;
}

static bool set_path(const char *value, char *out, size_t size)
{
	return value[0] == '/' && set_text(value, out, size);
}

/* A '/' at the end is ours to add. */
static bool set_prefix(struct etcd_options *o, const char *value)
{
	size_t n = strlen(value);

	if (n == 0 || n > ETCD_PREFIX_MAX)
		return false;
	(void)snprintf(o->prefix, sizeof(o->prefix), "%.*s", (int)(value[n - 1] == '/' ? n - 1 : n),
		       value);
	return true;
}

static bool set_option(struct etcd_options *o, const char *key, const char *value)
{
	if (strcmp(key, "prefix") == 0)
		return set_prefix(o, value);
	if (strcmp(key, "user") == 0)
		return set_text(value, o->user, sizeof(o->user));
	if (strcmp(key, "password_file") == 0)
		return set_path(value, o->password_file, sizeof(o->password_file));
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

static int check(const struct etcd_options *o, struct baton_error *err)
{
	if (!o->tls && (o->ca[0] != '\0' || o->cert[0] != '\0' || o->key[0] != '\0' ||
			o->server_name[0] != '\0'))
		return store_fail(err, BATON_E_URL,
				  "ca, cert, key and server_name are for TLS: say etcds://");
	if (o->key[0] != '\0' && o->cert[0] == '\0')
		return store_fail(err, BATON_E_URL,
				  "key= needs the certificate that it is for: cert=");
	if (o->password[0] != '\0' && o->password_file[0] != '\0')
		return store_fail(err, BATON_E_URL, "there are two passwords, one in a file");
	bool has_password = o->password[0] != '\0' || o->password_file[0] != '\0';

	if (has_password != (o->user[0] != '\0'))
		return store_fail(err, BATON_E_URL,
				  "a user and a password belong together: etcd://user@host with "
				  "password_file=/path");
	return 0;
}

static int parse_query(struct etcd_options *o, struct url_part query, struct baton_error *err)
{
	char key[32];
	char value[ETCD_PATH_MAX];
	int got;

	while ((got = url_next_option(&query, key, sizeof(key), value, sizeof(value))) == 1)
		if (!set_option(o, key, value))
			return store_fail(err, BATON_E_URL,
					  "\"%.31s\" is no option of an etcd store, or what it is "
					  "set to is no value for it: baton-etcd(7) has the list",
					  key);
	if (got != 0)
		return store_fail(err, BATON_E_URL,
				  "the options of an etcd store are written key=value&key=value");
	return check(o, err);
}

int etcd_options_parse(struct etcd_options *o, const char *text, struct baton_error *err)
{
	struct url url;

	*o = (struct etcd_options){.prefix = "baton"};
	if (!url_split(text, &url) || !url.has_authority ||
	    (url.path.n > 0 && (url.path.n > 1 || url.path.at[0] != '/'))) {
		(void)store_fail(err, BATON_E_URL,
				 "that is no URL of an etcd store; say etcd://host:2379, and write "
				 "special characters as %%XX");
		return BATON_E_URL;
	}
	o->tls = url.scheme.n == strlen("etcds");
	if (!url_take_login(&url.authority, o->user, sizeof(o->user), o->password,
			    sizeof(o->password))) {
		(void)store_fail(err, BATON_E_URL,
				 "the user or password can't be read; write special characters as "
				 "%%XX");
		return BATON_E_URL;
	}
	if (parse_hosts(o, url.authority, err) != 0 || parse_query(o, url.query, err) != 0)
		return BATON_E_URL;
	return BATON_OK;
}
