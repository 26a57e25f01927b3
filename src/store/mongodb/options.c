/*
 * options.c: the URL of a MongoDB store, which is MongoDB's own connection string with our options.
 *
 *     mongodb://[user[:password]@]host[:port][,host[:port]...]/database[?option=value&...]
 *     mongodb+srv://[user[:password]@]name/database[?option=value&...]
 *
 * A URL that isn't valid is refused with a sentence. A password never stands in a sentence.
 */
#include <stdio.h>
#include <string.h>

#include "store/mongodb/mongodb.h"

#define PORT "27017"
#define EXAMPLE "mongodb://user@host:27017/database"
#define A_FLAG "true or false"

static bool set_flag(const char *value, bool *out)
{
	*out = strcmp(value, "1") == 0 || strcmp(value, "true") == 0;
	return *out || strcmp(value, "0") == 0 || strcmp(value, "false") == 0;
}

static bool set_mechanism(struct mongodb_options *o, const char *value)
{
	static const char *const mechanisms[] = {"SCRAM-SHA-1", "SCRAM-SHA-256", "MONGODB-X509",
						 "PLAIN"};

	for (size_t i = 0; i < sizeof(mechanisms) / sizeof(mechanisms[0]); i++)
		if (strcmp(value, mechanisms[i]) == 0)
			return option_text(value, o->mechanism, sizeof(o->mechanism));
	return false;
}

/* Options that connection strings from elsewhere often have, with values that hold here anyhow. */
static bool is_so_anyhow(const char *key, const char *value)
{
	bool is_on;

	return (strcmp(key, "retryWrites") == 0 && set_flag(value, &is_on)) ||
	       (strcmp(key, "w") == 0 && strcmp(value, "majority") == 0) ||
	       (strcmp(key, "journal") == 0 && strcmp(value, "true") == 0) ||
	       (strcmp(key, "readPreference") == 0 && strcmp(value, "primary") == 0) ||
	       strcmp(key, "appName") == 0;
}

static bool set_push(struct mongodb_options *o, const char *value)
{
	o->record->is_polled = strcmp(value, "poll") == 0;
	return o->record->is_polled || strcmp(value, "stream") == 0;
}

static const struct option_known known[] = {
	{"password_file", OPTION_IS_PATH},
	{"replicaSet", OPTION_IS_TEXT(OPTION_TEXT_LENGTH)},
	{"directConnection", A_FLAG},
	{"authSource", OPTION_IS_TEXT(63)},
	{"authMechanism", "SCRAM-SHA-1, SCRAM-SHA-256, MONGODB-X509 or PLAIN"},
	{"tls", A_FLAG},
	{"ca", OPTION_IS_PATH},
	{"cert", OPTION_IS_PATH},
	{"key", OPTION_IS_PATH},
	{"server_name", OPTION_IS_SERVER_NAME},
	{"collection", OPTION_IS_TEXT(63) ", without $ and quotes, and not system.*"},
	{"prefix", OPTION_IS_NAMES(RECORD_PREFIX_MAX)},
	{"poll", OPTION_IS_POLL},
	{"push", "stream or poll"},
	{NULL, NULL},
};

/* Options of MongoDB's own connection strings that have another name here, or that hold anyhow. */
static const struct option_known also[] = {
	{"ssl", A_FLAG},
	{"tlsCAFile", OPTION_IS_PATH},
	{"tlsCertificateKeyFile", OPTION_IS_PATH},
	{"retryWrites", A_FLAG},
	{"w", "majority"},
	{"journal", "true"},
	{"readPreference", "primary"},
	{"appName", OPTION_IS_TEXT(OPTION_TEXT_LENGTH)},
	{NULL, NULL},
};

static bool set_option(void *options, const char *key, const char *value)
{
	struct mongodb_options *o = options;

	if (strcmp(key, "password_file") == 0)
		return option_path(value, o->login.password_file, sizeof(o->login.password_file));
	if (strcmp(key, "collection") == 0)
		return strpbrk(value, "$\"") == NULL && strncmp(value, "system.", 7) != 0 &&
		       option_text(value, o->collection, sizeof(o->collection));
	if (strcmp(key, "push") == 0)
		return set_push(o, value);
	if (strcmp(key, "replicaSet") == 0)
		return option_text(value, o->replica_set, sizeof(o->replica_set));
	if (strcmp(key, "authSource") == 0)
		return option_text(value, o->auth_source, sizeof(o->auth_source));
	if (strcmp(key, "authMechanism") == 0)
		return set_mechanism(o, value);
	if (strcmp(key, "directConnection") == 0)
		return set_flag(value, &o->is_direct);
	if (strcmp(key, "tls") == 0 || strcmp(key, "ssl") == 0) {
		o->has_tls = true;
		return set_flag(value, &o->tls);
	}
	if (strcmp(key, "tlsCAFile") == 0)
		return option_tls(&o->files, "ca", value);
	if (strcmp(key, "tlsCertificateKeyFile") == 0)
		return option_tls(&o->files, "cert", value);
	return is_so_anyhow(key, value) || option_tls(&o->files, key, value) ||
	       record_option(o->record, key, value);
}

static const struct option_list options = {
	.store = "a MongoDB store",
	.page = "baton-mongodb(7)",
	.known = known,
	.also = also,
	.ignores_case = true,
	.set = set_option,
};

static int parse_hosts(struct mongodb_options *o, struct url_part list, struct baton_error *err)
{
	if (option_login(&o->login, list, MONGODB_HOSTS_MAX, o->is_srv ? "" : PORT, EXAMPLE, err) !=
	    0)
		return -1;
	if (o->is_srv && (o->login.n_hosts != 1 || o->login.hosts[0].port[0] != '\0'))
		return store_fail(err, BATON_E_URL,
				  "mongodb+srv:// has one name and no port: its servers stand in "
				  "the name service");
	return 0;
}

static int check_login(const struct mongodb_options *o, struct baton_error *err)
{
	bool has_certificate = strcmp(o->mechanism, "MONGODB-X509") == 0;
	bool has_password = o->login.password[0] != '\0' || o->login.password_file[0] != '\0';

	if (option_login_check(&o->login, err) != 0)
		return -1;
	if (has_certificate && (has_password || o->files.cert[0] == '\0'))
		return store_fail(err, BATON_E_URL,
				  "MONGODB-X509 logs in with a certificate (cert=), and without a "
				  "password");
	if (!has_certificate && has_password != (o->login.user[0] != '\0'))
		return store_fail(err, BATON_E_URL,
				  o->login.user[0] != '\0'
					  ? "the user has no password: password_file="
					  : "there is a password, and no user: " EXAMPLE);
	if (strcmp(o->mechanism, "PLAIN") == 0 && !o->tls)
		return store_fail(err, BATON_E_URL,
				  "PLAIN sends the password without encryption: say tls=1");
	return 0;
}

static int check(const struct mongodb_options *o, struct baton_error *err)
{
	if (option_tls_check(&o->files, o->tls, "tls=1", err) != 0)
		return -1;
	if (o->files.server_name[0] != '\0' && (o->login.n_hosts > 1 || o->is_srv))
		return store_fail(err, BATON_E_URL,
				  "server_name= is one name, and there are several servers");
	if (o->is_direct && (o->login.n_hosts > 1 || o->is_srv))
		return store_fail(err, BATON_E_URL,
				  "directConnection is for one server, and the URL names several");
	return check_login(o, err);
}

int mongodb_options_parse(struct mongodb_options *o, const char *text, struct baton_error *err)
{
	struct url url;

	if (!url_split(text, &url) || !url.has_authority || url.path.n < 2 ||
	    memchr(url.path.at + 1, '/', url.path.n - 1) != NULL) {
		(void)store_fail(err, BATON_E_URL,
				 "not a valid URL of a MongoDB store; say " EXAMPLE
				 ", and write special characters as %%XX");
		return BATON_E_URL;
	}
	struct url_part database = {.at = url.path.at + 1, .n = url.path.n - 1};

	if (!url_decode(database, o->database, sizeof(o->database)) ||
	    strpbrk(o->database, "/\\. \"$") != NULL) {
		(void)store_fail(
			err, BATON_E_URL,
			"not a valid name of a database: it is too long, or has a blank or "
			"one of /\\.\"$ in it");
		return BATON_E_URL;
	}
	o->is_srv = url.scheme.n > strlen("mongodb");
	(void)snprintf(o->collection, sizeof(o->collection), "baton");
	if (parse_hosts(o, url.authority, err) != 0 ||
	    option_each(url.query, &options, o, err) != 0)
		return BATON_E_URL;
	o->tls = o->has_tls ? o->tls : o->is_srv; /* as all clients of MongoDB do it */
	return check(o, err) == 0 ? BATON_OK : BATON_E_URL;
}
