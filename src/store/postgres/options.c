/*
 * options.c: takes the URL apart. Our own options (schema, mode, fast, lock_id, password_file) are
 * taken out; libpq knows the others, and checks them. Then every option that keeps a connection
 * safe is set explicitly: PG* variables fill in only options that aren't set, so they can't weaken
 * it.
 *
 * No error text quotes the URL or libpq's words about it, because they may have a password in them.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/url.h"
#include "store/options.h"
#include "store/postgres/postgres.h"

#define KEY_SIZE 64
#define VALUE_SIZE 1024
#define ROOTS "/etc/ssl/certs/ca-certificates.crt"

static int options_fail(struct baton_error *err, const char *what)
{
	store_fail(err, BATON_E_URL, "%s", what);
	return BATON_E_URL;
}

static int no_memory(struct baton_error *err)
{
	store_fail(err, BATON_E_MEMORY, "no memory for the store's URL");
	return BATON_E_MEMORY;
}

const char *pg_conninfo_get(const struct pg_conninfo *info, const char *keyword)
{
	for (size_t i = 0; i < info->n; i++)
		if (strcmp(info->keywords[i], keyword) == 0)
			return info->values[i];
	return NULL;
}

void pg_conninfo_done(struct pg_conninfo *info)
{
	for (size_t i = 0; i < info->n; i++) {
		/* One of the values may be a password. */
		explicit_bzero(info->values[i], strlen(info->values[i]));
		free(info->keywords[i]);
		free(info->values[i]);
	}
	info->n = 0;
	free(info->password_file);
	info->password_file = NULL;
}

/* The file is read for each connection, so that a new password needs no restart. */
char *pg_conninfo_password(const struct pg_conninfo *info)
{
	char line[VALUE_SIZE] = "";
	FILE *file = info->password_file != NULL ? fopen(info->password_file, "re") : NULL;

	if (file == NULL)
		return NULL;
	setbuf(file, NULL); /* no copy of the password stays in a buffer */
	bool ok = fgets(line, sizeof(line), file) != NULL;

	(void)fclose(file);
	line[strcspn(line, "\r\n")] = '\0';
	char *password = ok ? strdup(line) : NULL;

	explicit_bzero(line, sizeof(line));
	return password;
}

static bool options_add(struct pg_conninfo *info, const char *keyword, const char *value)
{
	char *k = strdup(keyword);
	char *v = strdup(value);

	if (k == NULL || v == NULL || info->n == PG_KEYWORDS_MAX) {
		free(k);
		free(v);
		return false;
	}
	info->keywords[info->n] = k;
	info->values[info->n++] = v;
	return true;
}

/* ---- our own words ---- */

static const struct option_known own_options[] = {
	{"schema", "1 to 48 lower case letters, digits and _, not beginning with a digit or pg_"},
	{"mode", "lease or advisory"},
	{"fast", OPTION_IS_FLAG},
	{"lock_id", "a whole number of 64 bits"},
	{"password_file", "the path of a file"},
};

#define N_OWN (sizeof(own_options) / sizeof(own_options[0]))

static bool set_schema(struct pg_conninfo *info, const char *value)
{
	size_t n = strlen(value);

	if (n == 0 || n > PG_SCHEMA_MAX || (value[0] >= '0' && value[0] <= '9') ||
	    strspn(value, "abcdefghijklmnopqrstuvwxyz0123456789_") != n ||
	    strncmp(value, "pg_", 3) == 0)
		return false;
	(void)memcpy(info->schema, value, n + 1);
	return true;
}

static bool set_lock_id(struct pg_conninfo *info, const char *value)
{
	char *end;

	errno = 0;
	long long id = strtoll(value, &end, 10);

	if (errno != 0 || end == value || *end != '\0' || value[0] == ' ')
		return false;
	(void)snprintf(info->lock_id, sizeof(info->lock_id), "%lld", id);
	return true;
}

/* False: the value is not valid. */
static bool set_own(struct pg_conninfo *info, const char *key, const char *value)
{
	if (strcmp(key, "schema") == 0)
		return set_schema(info, value);
	if (strcmp(key, "fast") == 0)
		return option_flag(value, &info->fast);
	if (strcmp(key, "lock_id") == 0)
		return set_lock_id(info, value);
	info->advisory = strcmp(value, "advisory") == 0;
	return info->advisory || strcmp(value, "lease") == 0;
}

/* 1: the option was ours. 0: it is libpq's. Else a code. */
static int take_option(struct pg_conninfo *info, const char *key, char *value,
		       struct baton_error *err)
{
	const struct option_known *row = own_options;

	if (strcmp(key, "password_file") == 0) {
		free(info->password_file);
		info->password_file = strdup(value);
		return info->password_file != NULL ? 1 : no_memory(err);
	}
	while (row < own_options + N_OWN && strcmp(row->key, key) != 0)
		row++;
	if (row == own_options + N_OWN)
		return 0;
	if (set_own(info, key, value))
		return 1;
	(void)option_invalid(row, value, err);
	return BATON_E_URL;
}

/* ---- what libpq is told ---- */

static bool is_loopback(const char *host, size_t n)
{
	char name[64];

	if (n == 0 || host[0] == '/' || host[0] == '@')
		return true;
	if (n >= sizeof(name))
		return false;
	(void)snprintf(name, sizeof(name), "%.*s", (int)n, host);
	struct in_addr four;

	if (inet_pton(AF_INET, name, &four) == 1)
		return (ntohl(four.s_addr) >> 24) == 127;
	return strcmp(name, "localhost") == 0 || strcmp(name, "::1") == 0;
}

/* Whether the server is on this machine, as far as that can be known before connecting. */
static bool options_are_local(const struct pg_conninfo *info)
{
	const char *hosts = pg_conninfo_get(info, "hostaddr");

	if (hosts == NULL)
		hosts = pg_conninfo_get(info, "host");
	if (hosts == NULL && (pg_conninfo_get(info, "service") != NULL ||
			      getenv("PGSERVICE") != NULL || getenv("PGHOSTADDR") != NULL))
		return false; /* a file or a variable says where the server is */
	if (hosts == NULL)
		hosts = getenv("PGHOST");
	if (hosts == NULL)
		return true;
	for (;;) {
		size_t n = strcspn(hosts, ",");

		if (!is_loopback(hosts, n))
			return false;
		if (hosts[n] == '\0')
			return true;
		hosts += n + 1;
	}
}

struct setting {
	const char *keyword;
	const char *value;
};

static bool add_settings(struct pg_conninfo *info, const struct setting *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (list[i].value != NULL && pg_conninfo_get(info, list[i].keyword) == NULL &&
		    !options_add(info, list[i].keyword, list[i].value))
			return false;
	return true;
}

static int add_defaults(struct pg_conninfo *info, struct baton_error *err)
{
	bool local = options_are_local(info);
	bool has_roots = getenv("PGSSLROOTCERT") != NULL;
	const struct setting list[] = {
		{"sslmode", local ? "prefer" : "verify-full"},
		/* libpq looks for roots in the user's home only. */
		{"sslrootcert", local || has_roots ? NULL : ROOTS},
		{"ssl_min_protocol_version", "TLSv1.2"},
		{"gssencmode", "disable"},
		{"channel_binding", "prefer"},
		{"target_session_attrs", "read-write"},
		{"client_encoding", "UTF8"},
		{"fallback_application_name", "baton"},
		{"keepalives", "1"},
		{"keepalives_idle", "10"},
		{"keepalives_interval", "5"},
		{"keepalives_count", "3"},
		/* A blank means no options, whatever the variable says. */
		{"options", getenv("PGOPTIONS") != NULL ? " " : NULL},
	};

	if (pg_conninfo_get(info, "host") != NULL && pg_conninfo_get(info, "hostaddr") == NULL &&
	    getenv("PGHOSTADDR") != NULL)
		return options_fail(
			err, "the variable PGHOSTADDR would send this elsewhere than the store's "
			     "URL says; unset it, or say hostaddr= in the URL");
	return add_settings(info, list, sizeof(list) / sizeof(list[0])) ? 0 : no_memory(err);
}

/*
 * Adds the places that the PG* variables and the service file send us to, so that they are set
 * explicitly: otherwise libpq would look up such names itself, for an unknown time (L7). We give
 * libpq an option that it can't accept: so it tells what it would do, and does nothing. If the URL
 * has a host, that host is used, whatever the variables and the file say.
 */
static int add_places(struct pg_conninfo *info, struct baton_error *err)
{
	const char *const keywords[] = {"channel_binding", "password", "service", NULL};
	const char *const values[] = {"-", "-", pg_conninfo_get(info, "service"), NULL};
	static const char *const places[] = {"port", "host", "hostaddr"};
	size_t n = pg_conninfo_get(info, "host") != NULL ? 1 : 3;
	PGconn *nowhere = PQconnectStartParams(keywords, values, 0);
	PQconninfoOption *list = PQconninfo(nowhere);
	int code = list != NULL ? 0 : no_memory(err);

	for (PQconninfoOption *o = list; list != NULL && o->keyword != NULL && code == 0; o++) {
		for (size_t i = 0; i < n; i++) {
			const struct setting one = {places[i], o->val};

			if (strcmp(o->keyword, places[i]) == 0 && !add_settings(info, &one, 1))
				code = no_memory(err);
		}
	}
	PQconninfoFree(list);
	PQfinish(nowhere);
	return code;
}

static bool is_keyword(const PQconninfoOption *known, const char *key)
{
	for (; known->keyword != NULL; known++)
		if (strcmp(known->keyword, key) == 0)
			return true;
	return strcmp(key, "ssl") == 0;
}

/* The sentence for an option that neither we nor libpq know. */
static int unknown_option(const PQconninfoOption *libpq, char *key, struct baton_error *err)
{
	struct option_known known[PG_KEYWORDS_MAX + N_OWN + 1] = {0};
	const struct option_list list = {.store = "a PostgreSQL store", .known = known};
	size_t n = N_OWN;

	(void)memcpy(known, own_options, sizeof(own_options));
	for (; libpq->keyword != NULL && n < PG_KEYWORDS_MAX + N_OWN; libpq++)
		known[n++] = (struct option_known){.key = libpq->keyword};
	(void)option_unknown(&list, key, err);
	return BATON_E_URL;
}

/* Takes our options out of the query, and checks the names of the others. `rest` is the URL without
 * our options. */
static int split_query(struct pg_conninfo *info, const struct url *url, struct pg_text *rest,
		       struct baton_error *err)
{
	struct url_part query = url->query;
	PQconninfoOption *known = PQconndefaults();
	char separator[] = "?";
	int rc = 0;

	if (known == NULL)
		return no_memory(err);
	while (rc == 0) {
		char key[KEY_SIZE], value[VALUE_SIZE], raw[VALUE_SIZE];
		const char *begin = query.at;

		rc = url_next_option(&query, key, sizeof(key), value, sizeof(value));
		if (rc == 0)
			break;
		if (rc < 0) {
			(void)option_unreadable("baton-postgres(7)", VALUE_SIZE - 1, err);
			rc = BATON_E_URL;
			break;
		}
		rc = take_option(info, key, value, err);
		if (rc == 1) {
			rc = 0;
			continue;
		}
		if (rc == 0 && !is_keyword(known, key))
			rc = unknown_option(known, key, err);
		(void)snprintf(raw, sizeof(raw), "%.*s", (int)strcspn(begin, "&"), begin);
		pg_text_add(rest, separator);
		pg_text_add(rest, raw);
		separator[0] = '&';
		explicit_bzero(value, sizeof(value));
		explicit_bzero(raw, sizeof(raw));
	}
	PQconninfoFree(known);
	return rc;
}

static int let_libpq_parse(struct pg_conninfo *info, const char *text, struct baton_error *err)
{
	char *words = NULL;
	PQconninfoOption *list = PQconninfoParse(text, &words);
	int code = 0;

	PQfreemem(words);
	if (list == NULL)
		return options_fail(err, "not a valid URL; say "
					 "postgres://USER@HOST:PORT/DATABASE?OPTION=VALUE");
	for (PQconninfoOption *o = list; o->keyword != NULL && code == 0; o++)
		if (o->val != NULL && !options_add(info, o->keyword, o->val))
			code = no_memory(err);
	PQconninfoFree(list);
	return code;
}

int pg_conninfo_parse(struct pg_conninfo *info, const char *text, struct baton_error *err)
{
	struct pg_text rest = {0};
	struct url url;
	char part[VALUE_SIZE];

	*info = (struct pg_conninfo){.schema = "baton"};
	if (!url_split(text, &url) || url.authority.n + url.path.n >= sizeof(part))
		return options_fail(err, "not a valid URL; say "
					 "postgres://USER@HOST:PORT/DATABASE?OPTION=VALUE");
	(void)snprintf(part, sizeof(part), "%.*s%.*s", (int)url.authority.n, url.authority.at,
		       (int)url.path.n, url.path.at);
	pg_text_add(&rest, "postgresql://");
	pg_text_add(&rest, part);
	explicit_bzero(part, sizeof(part));
	int code = split_query(info, &url, &rest, err);

	if (code == 0 && rest.failed)
		code = no_memory(err);
	if (code == 0)
		code = let_libpq_parse(info, rest.at, err);
	if (rest.at != NULL)
		explicit_bzero(rest.at, rest.n);
	pg_text_done(&rest);
	if (code == 0)
		code = add_defaults(info, err);
	if (code == 0)
		code = add_places(info, err);
	if (code == 0 && info->lock_id[0] != '\0' && !info->advisory)
		code = options_fail(
			err, "lock_id= is only for mode=advisory; say mode=advisory, or leave "
			     "lock_id= out");
	if (code != 0)
		pg_conninfo_done(info);
	return code;
}
