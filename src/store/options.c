/*
 * options.c: options that the URLs of several drivers have; see options.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/nearest.h"
#include "base/secret.h"
#include "store/base.h"
#include "store/options.h"

#define OPTION_KEY_MAX 64
#define OPTION_KNOWN_MAX 80
#define OPTION_JOINED_MAX 165

bool option_text(const char *value, char *out, size_t size)
{
	int n = snprintf(out, size, "%s", value);

	return n > 0 && (size_t)n < size;
}

bool option_path(const char *value, char *out, size_t size)
{
	return value[0] == '/' && option_text(value, out, size);
}

bool option_flag(const char *value, bool *out)
{
	*out = strcmp(value, "1") == 0;
	return *out || strcmp(value, "0") == 0;
}

bool option_number(const char *value, uint32_t max, uint32_t *out)
{
	size_t n = strlen(value);

	if (n == 0 || n > 9 || strspn(value, "0123456789") != n)
		return false;
	*out = (uint32_t)strtoul(value, NULL, 10);
	return *out <= max;
}

/* ---- all options of a URL ---- */

static const struct option_known *find_known(const struct option_known *row, const char *key,
					     bool ignores_case)
{
	for (; row != NULL && row->key != NULL; row++)
		if ((ignores_case ? strcasecmp(row->key, key) : strcmp(row->key, key)) == 0)
			return row;
	return NULL;
}

/* Control characters would break the line of a log. */
static void make_printable(char *text)
{
	for (; *text != '\0'; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			*text = '?';
}

/* The value may be a password where the path of its file belongs, or an address with a login. */
static bool may_be_secret(const char *key, const char *value)
{
	static const char *const words[] = {"password", "token", "key", "file"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcasestr(key, words[i]) != NULL)
			return true;
	return strchr(value, '@') != NULL;
}

/* "a, b, c": as many names as there is room for. */
static void join_names(const char *const *names, char *out, size_t size)
{
	size_t n = 0;

	for (out[0] = '\0'; *names != NULL; names++) {
		size_t need =
			strlen(*names) + strlen(", ") + (names[1] != NULL ? strlen("...") : 0);

		if (n + need >= size) {
			(void)snprintf(out + n, size - n, "...");
			return;
		}
		n += (size_t)snprintf(out + n, size - n, "%s%s", *names,
				      names[1] != NULL ? ", " : "");
	}
}

int option_unknown(const struct option_list *list, char *key, struct baton_error *err)
{
	const char *names[OPTION_KNOWN_MAX + 1];
	char joined[OPTION_JOINED_MAX];
	size_t n = 0;

	for (; n < OPTION_KNOWN_MAX && list->known[n].key != NULL; n++)
		names[n] = list->known[n].key;
	names[n] = NULL;
	make_printable(key);
	const char *near = nearest_word(key, names);

	if (near != NULL)
		return store_fail(err, BATON_E_URL,
				  "unknown option \"%.40s\" of %s; did you mean \"%s\"?", key,
				  list->store, near);
	join_names(names, joined, sizeof(joined));
	return store_fail(err, BATON_E_URL, "unknown option \"%.40s\"; %s has %s", key, list->store,
			  joined);
}

int option_invalid(const struct option_known *row, char *value, struct baton_error *err)
{
	make_printable(value);
	if (may_be_secret(row->key, value))
		return store_fail(err, BATON_E_URL, "invalid value for \"%s\"; expected %s",
				  row->key, row->expected);
	return store_fail(err, BATON_E_URL, "invalid value for \"%s\": \"%.40s\"; expected %s",
			  row->key, value, row->expected);
}

int option_unreadable(const char *page, int value_max, struct baton_error *err)
{
	return store_fail(
		err, BATON_E_URL,
		"an option of the URL can't be read; write key=value&key=value, values of "
		"up to %d bytes, and special characters as %%XX; see %s",
		value_max, page);
}

int option_each(struct url_part query, const struct option_list *list, void *o,
		struct baton_error *err)
{
	char key[OPTION_KEY_MAX];
	char value[OPTION_PATH_MAX];
	int got;

	while ((got = url_next_option(&query, key, sizeof(key), value, sizeof(value))) == 1) {
		const struct option_known *row = find_known(list->known, key, list->ignores_case);

		if (row == NULL)
			row = find_known(list->also, key, list->ignores_case);
		if (row == NULL)
			return option_unknown(list, key, err);
		if (!list->set(o, row->key, value))
			return option_invalid(row, value, err);
	}
	return got == 0 ? 0 : option_unreadable(list->page, OPTION_PATH_LENGTH, err);
}

bool option_tls(struct option_tls *tls, const char *key, const char *value)
{
	if (strcmp(key, "ca") == 0)
		return option_path(value, tls->ca, sizeof(tls->ca));
	if (strcmp(key, "cert") == 0)
		return option_path(value, tls->cert, sizeof(tls->cert));
	if (strcmp(key, "key") == 0)
		return option_path(value, tls->key, sizeof(tls->key));
	return strcmp(key, "server_name") == 0 &&
	       option_text(value, tls->server_name, sizeof(tls->server_name));
}

int option_tls_check(const struct option_tls *tls, bool is_on, const char *say,
		     struct baton_error *err)
{
	if (!is_on && (tls->ca[0] != '\0' || tls->cert[0] != '\0' || tls->key[0] != '\0' ||
		       tls->server_name[0] != '\0'))
		return store_fail(err, BATON_E_URL,
				  "ca, cert, key and server_name are for TLS: say %s", say);
	if (tls->key[0] != '\0' && tls->cert[0] == '\0')
		return store_fail(err, BATON_E_URL,
				  "key= needs the certificate that it is for: cert=");
	return 0;
}

int option_login(struct option_login *login, struct url_part authority, size_t max,
		 const char *port, const char *example, struct baton_error *err)
{
	int got = 1;

	if (!url_take_login(&authority, login->user, sizeof(login->user), login->password,
			    sizeof(login->password)))
		return store_fail(err, BATON_E_URL,
				  "the user or password can't be read; write special characters as "
				  "%%XX");
	while (got == 1 && login->n_hosts < max) {
		struct option_host *h = &login->hosts[login->n_hosts];

		(void)snprintf(h->port, sizeof(h->port), "%s", port);
		got = url_next_host(&authority, h->name, sizeof(h->name), h->port);
		login->n_hosts += got == 1;
	}
	if (got < 0 || authority.n > 0 || login->n_hosts == 0)
		return store_fail(
			err, BATON_E_URL,
			"not valid names of servers; expected host:port,host:port, %zu at most: "
			"%s",
			max, example);
	return 0;
}

int option_database(const char *text, struct url *url, char *out, size_t size, const char *kind,
		    const char *example, struct baton_error *err)
{
	if (!url_split(text, url) || !url->has_authority || url->path.n < 2 ||
	    memchr(url->path.at + 1, '/', url->path.n - 1) != NULL)
		return store_fail(err, BATON_E_URL,
				  "not a valid URL of a %s store; say %s, and write special "
				  "characters as %%XX",
				  kind, example);
	struct url_part database = {.at = url->path.at + 1, .n = url->path.n - 1};

	if (!url_decode(database, out, size))
		return store_fail(err, BATON_E_URL, "the name of the database can't be read");
	return 0;
}

int option_login_check(const struct option_login *login, struct baton_error *err)
{
	if (login->password[0] != '\0' && login->password_file[0] != '\0')
		return store_fail(err, BATON_E_URL, "there are two passwords, one in a file");
	return 0;
}

bool option_password(const struct option_login *login, char *out, size_t size,
		     struct baton_error *err)
{
	char reason[SECRET_REASON_MAX];

	if (login->password_file[0] == '\0') {
		(void)snprintf(out, size, "%s", login->password);
		return true;
	}
	if (secret_read(login->password_file, out, size, reason) == 0)
		return true;
	(void)store_fail(err, BATON_E_DENIED, "%s", reason);
	return false;
}
