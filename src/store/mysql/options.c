/*
 * options.c: the URL of a MySQL or MariaDB store.
 *
 *     mysql://[user[:password]@]host[:port][,host[:port]...]/database[?option=value&...]
 *     mariadb://...                                              the same
 *
 * What isn't understood is refused with a sentence. A password never stands in a sentence.
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

static bool set_option(void *options, const char *key, const char *value)
{
	struct mysql_options *o = options;

	if (strcmp(key, "password_file") == 0)
		return option_path(value, o->password_file, sizeof(o->password_file));
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

static int parse_hosts(struct mysql_options *o, struct url_part list, struct baton_error *err)
{
	int got = 1;

	if (!url_take_login(&list, o->user, sizeof(o->user), o->password, sizeof(o->password)))
		return store_fail(err, BATON_E_URL,
				  "the user or password can't be read; write special characters as "
				  "%%XX");
	while (got == 1 && o->n_hosts < MYSQL_HOSTS_MAX) {
		struct mysql_host *h = &o->hosts[o->n_hosts];

		(void)snprintf(h->port, sizeof(h->port), "%s", PORT);
		got = url_next_host(&list, h->name, sizeof(h->name), h->port);
		o->n_hosts += got == 1;
	}
	if (got < 0 || list.n > 0 || o->n_hosts == 0)
		return store_fail(err, BATON_E_URL,
				  "servers are named host:port,host:port, %d at most: " EXAMPLE,
				  MYSQL_HOSTS_MAX);
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
	if (o->password[0] != '\0' && o->password_file[0] != '\0')
		return store_fail(err, BATON_E_URL, "there are two passwords, one in a file");
	return 0;
}

int mysql_options_parse(struct mysql_options *o, const char *text, struct baton_error *err)
{
	struct url url;

	if (!url_split(text, &url) || !url.has_authority || url.path.n < 2 ||
	    memchr(url.path.at + 1, '/', url.path.n - 1) != NULL) {
		(void)store_fail(err, BATON_E_URL,
				 "not a valid URL of a MySQL store; say " EXAMPLE
				 ", and write special characters as %%XX");
		return BATON_E_URL;
	}
	struct url_part database = {.at = url.path.at + 1, .n = url.path.n - 1};

	if (!url_decode(database, o->database, sizeof(o->database))) {
		(void)store_fail(err, BATON_E_URL, "the name of the database can't be read");
		return BATON_E_URL;
	}
	if (parse_hosts(o, url.authority, err) != 0 ||
	    option_each(url.query, set_option, o, "MySQL", "baton-mysql(7)", err) != 0 ||
	    check_options(o, err) != 0)
		return BATON_E_URL;
	return BATON_OK;
}
