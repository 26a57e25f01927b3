/*
 * options.c: the URL of a MySQL or MariaDB store.
 *
 *     mysql://[user[:password]@]host[:port][,host[:port]...]/database[?option=value&...]
 *     mariadb://...                                              the same
 *
 * A URL that isn't valid is refused with a sentence. A password never stands in a sentence.
 */
#include <stdio.h>
#include <string.h>

#include "store/mysql/mysql.h"

#define PORT "3306"
#define EXAMPLE "mysql://user@host:3306/database"

static bool set_tls(struct mysql_options *o, const char *value)
{
	o->tls = strcmp(value, "1") == 0 || strcmp(value, "required") == 0;
	return o->tls || strcmp(value, "0") == 0 || strcmp(value, "off") == 0;
}

static const struct option_known known[] = {
	{"password_file", OPTION_IS_PATH},
	{"socket", "the full path of a socket, of up to 107 bytes"},
	{"tls", "1 or required, 0 or off"},
	{"ca", OPTION_IS_PATH},
	{"cert", OPTION_IS_PATH},
	{"key", OPTION_IS_PATH},
	{"push", "lock or poll"},
	{"mode", "record or lock"},
	{"lock", OPTION_IS_TEXT(OPTION_TEXT_LENGTH)},
	{"prefix", OPTION_IS_NAMES(RECORD_PREFIX_MAX)},
	{"poll", OPTION_IS_POLL},
	{NULL, NULL},
};

/* An option that the client library can't do: see check_options(). */
static const struct option_known also[] = {
	{"server_name", OPTION_IS_SERVER_NAME},
	{NULL, NULL},
};

static bool set_option(void *options, const char *key, const char *value)
{
	struct mysql_options *o = options;

	if (strcmp(key, "password_file") == 0)
		return option_path(value, o->login.password_file, sizeof(o->login.password_file));
	if (strcmp(key, "socket") == 0)
		return option_path(value, o->socket, sizeof(o->socket));
	if (strcmp(key, "tls") == 0)
		return set_tls(o, value);
	if (strcmp(key, "push") == 0) {
		o->record->is_polled = strcmp(value, "poll") == 0;
		return o->record->is_polled || strcmp(value, "lock") == 0;
	}
	if (strcmp(key, "mode") == 0) {
		o->has_locks = strcmp(value, "lock") == 0;
		o->record->locks = o->has_locks ? RECORD_LOCKS_SESSION : RECORD_LOCKS_NONE;
		return o->has_locks || strcmp(value, "record") == 0;
	}
	if (strcmp(key, "lock") == 0)
		return option_text(value, o->lock, sizeof(o->lock));
	return option_tls(&o->files, key, value) || record_option(o->record, key, value);
}

static const struct option_list options = {
	.store = "a MySQL store",
	.page = "baton-mysql(7)",
	.known = known,
	.also = also,
	.set = set_option,
};

static int parse_hosts(struct mysql_options *o, struct url_part list, struct baton_error *err)
{
	if (option_login(&o->login, list, MYSQL_HOSTS_MAX, PORT, EXAMPLE, err) != 0)
		return -1;
	return 0;
}

static int check_options(const struct mysql_options *o, struct baton_error *err)
{
	if (option_tls_check(&o->files, o->tls, "tls=1", err) != 0)
		return -1;
	if (o->files.server_name[0] != '\0')
		return store_fail(err, BATON_E_URL,
				  "server_name= can't be given to this client library: name the "
				  "host in the URL as its certificate does");
	if (o->lock[0] != '\0' && !o->has_locks)
		return store_fail(err, BATON_E_URL, "lock= needs mode=lock");
	if (option_login_check(&o->login, err) != 0)
		return -1;
	return 0;
}

int mysql_options_parse(struct mysql_options *o, const char *text, struct baton_error *err)
{
	struct url url;

	if (option_database(text, &url, o->database, sizeof(o->database), "MySQL", EXAMPLE, err) !=
		    0 ||
	    parse_hosts(o, url.authority, err) != 0 ||
	    option_each(url.query, &options, o, err) != 0 || check_options(o, err) != 0)
		return BATON_E_URL;
	return BATON_OK;
}
