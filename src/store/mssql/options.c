/*
 * options.c: the URL of a SQL Server store.
 *
 *     mssql://user[:password]@host[:port][,host[:port]...]/database[?option=value&...]
 *
 * A URL that isn't valid is refused with a sentence. A password never stands in a sentence.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "store/mssql/mssql.h"

#define PORT "1433"
#define EXAMPLE "mssql://user@host:1433/database"

/* The values are those of Microsoft's drivers, but without "strict": that is TDS 8, which db-lib
 * does not speak. */
static bool set_encryption(struct mssql_options *o, const char *value)
{
	static const struct {
		const char *word;
		enum mssql_encryption encryption;
	} words[] = {
		{"mandatory", MSSQL_MANDATORY}, {"true", MSSQL_MANDATORY}, {"yes", MSSQL_MANDATORY},
		{"optional", MSSQL_OPTIONAL},   {"false", MSSQL_OPTIONAL}, {"no", MSSQL_OPTIONAL},
		{"off", MSSQL_PLAIN},
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcasecmp(value, words[i].word) == 0) {
			o->encryption = words[i].encryption;
			return true;
		}
	}
	return false;
}

static bool set_push(struct mssql_options *o, const char *value)
{
	o->record->is_polled = strcmp(value, "poll") == 0;
	return o->record->is_polled || strcmp(value, "waitfor") == 0;
}

static const struct option_known known[] = {
	{"password_file", OPTION_IS_PATH},
	{"encrypt", "mandatory, optional or off"},
	{"ca", OPTION_IS_PATH},
	{"push", "waitfor or poll"},
	{"mode", "record or applock"},
	{"resource", OPTION_IS_TEXT(OPTION_TEXT_LENGTH)},
	{"prefix", OPTION_IS_NAMES(RECORD_PREFIX_MAX)},
	{"poll", OPTION_IS_POLL},
	{NULL, NULL},
};

/* The client library can't do the first three: see check_options(). The others stand in copied
 * connection strings; only the value that is true in any case is accepted. */
static const struct option_known also[] = {
	{"cert", OPTION_IS_PATH},
	{"key", OPTION_IS_PATH},
	{"server_name", OPTION_IS_SERVER_NAME},
	{"ApplicationIntent", "ReadWrite, because a candidate writes"},
	{"TrustServerCertificate", "false; if the server's certificate names the host, name its "
				   "file in ca=, else give the server one that does"},
	{NULL, NULL},
};

static bool set_option(void *options, const char *key, const char *value)
{
	struct mssql_options *o = options;

	if (strcmp(key, "password_file") == 0)
		return option_path(value, o->login.password_file, sizeof(o->login.password_file));
	if (strcmp(key, "encrypt") == 0)
		return set_encryption(o, value);
	if (strcmp(key, "mode") == 0) {
		o->has_locks = strcmp(value, "applock") == 0;
		o->record->locks = o->has_locks ? RECORD_LOCKS_SESSION : RECORD_LOCKS_NONE;
		return o->has_locks || strcmp(value, "record") == 0;
	}
	if (strcmp(key, "resource") == 0)
		return option_text(value, o->resource, sizeof(o->resource));
	if (strcmp(key, "push") == 0)
		return set_push(o, value);
	if (strcmp(key, "ApplicationIntent") == 0)
		return strcasecmp(value, "ReadWrite") == 0;
	if (strcmp(key, "TrustServerCertificate") == 0)
		return strcasecmp(value, "false") == 0 || strcasecmp(value, "no") == 0;
	return option_tls(&o->files, key, value) || record_option(o->record, key, value);
}

static const struct option_list options = {
	.store = "a SQL Server store",
	.page = "baton-mssql(7)",
	.known = known,
	.also = also,
	.ignores_case = true,
	.set = set_option,
};

static int parse_hosts(struct mssql_options *o, struct url_part list, struct baton_error *err)
{
	if (option_login(&o->login, list, MSSQL_HOSTS_MAX, PORT, EXAMPLE, err) != 0)
		return -1;
	if (o->login.user[0] == '\0')
		return store_fail(err, BATON_E_URL, "there is no user: " EXAMPLE);
	if (strchr(o->login.user, '\\') != NULL)
		return store_fail(err, BATON_E_URL,
				  "a Windows account can't log in here: name a login of the "
				  "server's own");
	for (size_t i = 0; i < o->login.n_hosts; i++)
		if (strchr(o->login.hosts[i].name, '\\') != NULL)
			return store_fail(err, BATON_E_URL,
					  "host\\instance can't be looked up: write the port of "
					  "the instance instead, as in " EXAMPLE);
	return 0;
}

/* Whether the text has no character that ends a line of db-lib's settings. */
static bool is_plain(const char *text)
{
	return strpbrk(text, ";#\r\n") == NULL;
}

static int check_options(const struct mssql_options *o, struct baton_error *err)
{
	if (option_tls_check(&o->files, o->encryption != MSSQL_PLAIN, "encrypt=mandatory", err) !=
	    0)
		return -1;
	if (o->files.server_name[0] != '\0')
		return store_fail(err, BATON_E_URL,
				  "server_name= can't be given to this client library: name the "
				  "host in the URL as its certificate does");
	if (o->files.cert[0] != '\0')
		return store_fail(err, BATON_E_URL,
				  "cert= can't be given to this client library: a login has a "
				  "user and a password");
	if (!is_plain(o->files.ca))
		return store_fail(err, BATON_E_URL,
				  "ca= names a file whose path has ; or # in it, which this client "
				  "library can't read");
	for (size_t i = 0; i < o->login.n_hosts; i++)
		if (!is_plain(o->login.hosts[i].name))
			return store_fail(err, BATON_E_URL, "not a valid host: " EXAMPLE);
	if (o->resource[0] != '\0' && !o->has_locks)
		return store_fail(err, BATON_E_URL, "resource= needs mode=applock");
	if (option_login_check(&o->login, err) != 0)
		return -1;
	return 0;
}

int mssql_options_parse(struct mssql_options *o, const char *text, struct baton_error *err)
{
	struct url url;

	if (option_database(text, &url, o->database, sizeof(o->database), "SQL Server", EXAMPLE,
			    err) != 0 ||
	    parse_hosts(o, url.authority, err) != 0 ||
	    option_each(url.query, &options, o, err) != 0 || check_options(o, err) != 0)
		return BATON_E_URL;
	return BATON_OK;
}
