/*
 * options.c: the URL of a memcached store.
 *
 *     memcached://[user[:password]@]host[:port][?option=value&...]
 *     memcacheds://...                                             the same with TLS
 *
 * A URL that isn't valid is refused with a sentence. A password never stands in a sentence.
 */
#include <stdio.h>
#include <string.h>

#include "store/memcached/memcached.h"

#define PORT "11211"
#define EXAMPLE "memcached://host:11211"

static const struct option_known known[] = {
	{"weak", "ok"},
	{"max_lease", OPTION_IS_MAX_LEASE},
	{"user", OPTION_IS_TEXT(OPTION_TEXT_LENGTH)},
	{"password_file", OPTION_IS_PATH},
	{"tls", OPTION_IS_FLAG},
	{"ca", OPTION_IS_PATH},
	{"cert", OPTION_IS_PATH},
	{"key", OPTION_IS_PATH},
	{"server_name", OPTION_IS_SERVER_NAME},
	{"prefix", OPTION_IS_NAMES(MEMCACHED_PREFIX_MAX)},
	{"poll", OPTION_IS_POLL},
	{NULL, NULL},
};

static bool set_option(void *options, const char *key, const char *value)
{
	struct memcached_options *o = options;

	if (strcmp(key, "password_file") == 0)
		return option_path(value, o->password_file, sizeof(o->password_file));
	if (strcmp(key, "user") == 0)
		return option_text(value, o->user, sizeof(o->user));
	if (strcmp(key, "tls") == 0)
		return option_flag(value, &o->tls);
	if (strcmp(key, "weak") == 0)
		return o->is_known_weak = strcmp(value, "ok") == 0;
	if (option_tls(&o->files, key, value))
		return true;
	return record_option(o->record, key, value) &&
	       strlen(o->record->prefix) <= MEMCACHED_PREFIX_MAX;
}

static const struct option_list options = {
	.store = "a memcached store",
	.page = "baton-memcached(7)",
	.known = known,
	.set = set_option,
};

static int parse_host(struct memcached_options *o, struct url_part list, struct baton_error *err)
{
	if (!url_take_login(&list, o->user, sizeof(o->user), o->password, sizeof(o->password)))
		return store_fail(err, BATON_E_URL,
				  "the user or password can't be read; write special characters as "
				  "%%XX");
	(void)snprintf(o->port, sizeof(o->port), "%s", PORT);
	if (url_next_host(&list, o->host, sizeof(o->host), o->port) != 1)
		return store_fail(err, BATON_E_URL,
				  "not a valid name of a server; expected host:port: " EXAMPLE);
	if (list.n > 0)
		return store_fail(
			err, BATON_E_URL,
			"memcached servers know nothing of each other: several of them would elect "
			"several leaders; name one, the same for all candidates");
	return 0;
}

static int options_check(const struct memcached_options *o, struct baton_error *err)
{
	if (option_tls_check(&o->files, o->tls, "memcacheds:// or tls=1", err) != 0)
		return -1;
	if (o->password[0] != '\0' && o->password_file[0] != '\0')
		return store_fail(err, BATON_E_URL, "there are two passwords, one in a file");
	if (o->user[0] == '\0' && (o->password[0] != '\0' || o->password_file[0] != '\0'))
		return store_fail(err, BATON_E_URL,
				  "the password has no user; expected memcached://user@host");
	if (o->user[0] != '\0' && o->password[0] == '\0' && o->password_file[0] == '\0')
		return store_fail(err, BATON_E_URL,
				  "the user has no password: name its file with password_file=");
	return 0;
}

int memcached_options_parse(struct memcached_options *o, const char *text, struct baton_error *err)
{
	struct url url;

	if (!url_split(text, &url) || !url.has_authority ||
	    (url.path.n > 0 && !(url.path.n == 1 && url.path.at[0] == '/'))) {
		(void)store_fail(err, BATON_E_URL,
				 "not a valid URL of a memcached store; say " EXAMPLE
				 ", and write special characters as %%XX");
		return BATON_E_URL;
	}
	o->tls = url.scheme.n == strlen("memcacheds");
	(void)snprintf(o->record->prefix, sizeof(o->record->prefix), "baton");
	if (parse_host(o, url.authority, err) != 0 ||
	    option_each(url.query, &options, o, err) != 0 || options_check(o, err) != 0)
		return BATON_E_URL;
	return BATON_OK;
}
