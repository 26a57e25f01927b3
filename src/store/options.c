/*
 * options.c: what the URLs of several drivers can say: see options.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/secret.h"
#include "store/base.h"
#include "store/options.h"

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

int option_each(struct url_part query, bool (*set)(void *o, const char *key, const char *value),
		void *o, const char *store, const char *page, struct baton_error *err)
{
	char key[32];
	char value[OPTION_PATH_MAX];
	int got;

	while ((got = url_next_option(&query, key, sizeof(key), value, sizeof(value))) == 1)
		if (!set(o, key, value))
			return store_fail(
				err, BATON_E_URL,
				"unknown option \"%.31s\" of this store (%s), or not a valid "
				"value for it; see %s",
				key, store, page);
	if (got != 0)
		return store_fail(err, BATON_E_URL,
				  "the options of this store (%s) are written key=value&key=value",
				  store);
	return 0;
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
		return store_fail(err, BATON_E_URL,
				  "servers are named host:port,host:port, %zu at most: %s", max,
				  example);
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
