/* options.c: the part of a URL that these drivers share: see web.h. */
#include <stdio.h>
#include <string.h>

#include "store/doctor.h"
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
	return got >= 0 && list.n == 0 && o->n_hosts > 0;
}

bool web_set_prefix(const char *value, char *out, size_t size)
{
	size_t n = strlen(value);

	if (n == 0 || n >= size)
		return false;
	(void)snprintf(out, size, "%.*s", (int)(value[n - 1] == '/' ? n - 1 : n), value);
	return true;
}

int web_check_prefix(const char *prefix, struct baton_error *err)
{
	static const char *const ours[] = {".candidate", ".lease", ".election", ".history"};

	for (const char *at = prefix; *at != '\0'; at += strspn(at, "/")) {
		const char *end = at + strcspn(at, "/");

		for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
			size_t n = strlen(ours[i]);

			if ((size_t)(end - at) >= n && strncmp(end - n, ours[i], n) == 0)
				return store_fail(err, BATON_E_URL,
						  "invalid prefix \"%.60s\": keys that end with "
						  "%s belong to another prefix; expected a name "
						  "without that ending",
						  prefix, ours[i]);
		}
		at = end;
	}
	return 0;
}

bool web_is_local(const struct web_options *o)
{
	bool is_local = true;

	for (size_t i = 0; i < o->n_hosts; i++)
		is_local = is_local && doctor_is_local(o->hosts[i].name);
	return is_local;
}
