/* options.c: the part of a URL that is the same for all: see web.h. */
#include <stdio.h>
#include <string.h>

#include "store/web/web.h"

bool web_parse_hosts(struct web_options *o, struct url_part list, const char *port)
{
	int got = 1;

	while (got == 1 && o->n_hosts < WEB_HOSTS_MAX) {
		struct http_host *h = &o->hosts[o->n_hosts];

		(void)snprintf(h->port, sizeof(h->port), "%s", port);
		h->tls = o->tls;
		got = url_next_host(&list, h->name, sizeof(h->name), h->port);
		o->n_hosts += got == 1;
	}
	return got == 0 && o->n_hosts > 0;
}

bool web_set_text(const char *value, char *out, size_t size)
{
	int n = snprintf(out, size, "%s", value);

	return n > 0 && (size_t)n < size;
}

bool web_set_path(const char *value, char *out, size_t size)
{
	return value[0] == '/' && web_set_text(value, out, size);
}

bool web_set_prefix(const char *value, char *out, size_t size)
{
	size_t n = strlen(value);

	if (n == 0 || n >= size)
		return false;
	(void)snprintf(out, size, "%.*s", (int)(value[n - 1] == '/' ? n - 1 : n), value);
	return true;
}

bool web_set_option(struct web_options *o, const char *key, const char *value)
{
	if (strcmp(key, "ca") == 0)
		return web_set_path(value, o->ca, sizeof(o->ca));
	if (strcmp(key, "cert") == 0)
		return web_set_path(value, o->cert, sizeof(o->cert));
	if (strcmp(key, "key") == 0)
		return web_set_path(value, o->key, sizeof(o->key));
	if (strcmp(key, "server_name") == 0)
		return web_set_text(value, o->server_name, sizeof(o->server_name));
	return false;
}

int web_check_options(const struct web_options *o, const char *with_tls, struct baton_error *err)
{
	if (!o->tls && (o->ca[0] != '\0' || o->cert[0] != '\0' || o->key[0] != '\0' ||
			o->server_name[0] != '\0'))
		return store_fail(err, BATON_E_URL,
				  "ca, cert, key and server_name are for TLS: say %s://", with_tls);
	if (o->key[0] != '\0' && o->cert[0] == '\0')
		return store_fail(err, BATON_E_URL,
				  "key= needs the certificate that it is for: cert=");
	return 0;
}
