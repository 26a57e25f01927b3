/*
 * options.c: the URL of an etcd store.
 *
 *     etcd://[user[:password]@]host[:port][,host[:port]...][?option=value&...]
 *     etcds://...                                                with TLS
 *
 * A URL that isn't valid is refused with a sentence; nothing is guessed. A password never stands in
 * a sentence.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/url.h"
#include "store/etcd/etcd.h"

#define PORT "2379"

/* ---- what stands behind the '?' ---- */

static const struct option_known known[] = {
	{"prefix", OPTION_IS_TEXT(ETCD_PREFIX_MAX)},
	{"user", OPTION_IS_TEXT(BATON_NAME_MAX)},
	{"password_file", OPTION_IS_PATH},
	{"ca", OPTION_IS_PATH},
	{"cert", OPTION_IS_PATH},
	{"key", OPTION_IS_PATH},
	{"server_name", OPTION_IS_SERVER_NAME},
	{NULL, NULL},
};

static bool set_option(void *options, const char *key, const char *value)
{
	struct etcd_options *o = options;

	if (strcmp(key, "prefix") == 0)
		return web_set_prefix(value, o->prefix, sizeof(o->prefix));
	if (strcmp(key, "user") == 0)
		return option_text(value, o->user, sizeof(o->user));
	if (strcmp(key, "password_file") == 0)
		return option_path(value, o->password_file, sizeof(o->password_file));
	return option_tls(&o->web.files, key, value);
}

static const struct option_list options = {
	.store = "an etcd store",
	.page = "baton-etcd(7)",
	.known = known,
	.set = set_option,
};

static int options_check(const struct etcd_options *o, struct baton_error *err)
{
	if (option_tls_check(&o->web.files, o->web.tls, "etcds://", err) != 0)
		return -1;
	if (web_check_prefix(o->prefix, err) != 0)
		return -1;
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
	if (option_each(query, &options, o, err) != 0)
		return -1;
	return options_check(o, err);
}

int etcd_options_parse(struct etcd_options *o, const char *text, struct baton_error *err)
{
	struct url url;

	*o = (struct etcd_options){.prefix = "baton", .web = {.h2 = true}};
	if (!url_split(text, &url) || !url.has_authority ||
	    (url.path.n > 0 && (url.path.n > 1 || url.path.at[0] != '/'))) {
		(void)store_fail(
			err, BATON_E_URL,
			"not a valid URL of an etcd store; say etcd://host:2379, and write "
			"special characters as %%XX");
		return BATON_E_URL;
	}
	o->web.tls = url.scheme.n == strlen("etcds");
	if (!url_take_login(&url.authority, o->user, sizeof(o->user), o->password,
			    sizeof(o->password))) {
		(void)store_fail(err, BATON_E_URL,
				 "the user or password can't be read; write special characters as "
				 "%%XX");
		return BATON_E_URL;
	}
	if (!web_parse_hosts(&o->web, url.authority, PORT)) {
		(void)store_fail(
			err, BATON_E_URL,
			"not valid names of members; expected host:port,host:port, %d at most: "
			"etcd://host:2379,host:2379",
			WEB_HOSTS_MAX);
		return BATON_E_URL;
	}
	return parse_query(o, url.query, err) == 0 ? BATON_OK : BATON_E_URL;
}
