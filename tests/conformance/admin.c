/* admin.c: see admin.h. */
#include "admin.h"

#ifdef WITH_WEB /* libcurl and jansson are there */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BODY_SIZE 16384
#define PATIENCE_MS 10000

bool admin_open(struct admin *a, unsigned port)
{
	static const struct http_config config;

	a->http = http_new(&config);
	snprintf(a->host.name, sizeof(a->host.name), "127.0.0.1");
	snprintf(a->host.port, sizeof(a->host.port), "%u", port);
	return a->http != NULL;
}

void admin_close(struct admin *a)
{
	http_free(a->http);
	a->http = NULL;
}

unsigned admin_port_of(const char *url)
{
	size_t n = strcspn(url, "?");

	while (n > 0 && url[n - 1] != ':')
		n--;
	return n > 0 ? (unsigned)strtoul(url + n, NULL, 10) : 0;
}

json_t *admin_send(struct admin *a, const char *method, const char *path, const char *body,
		   size_t n)
{
	char type[80];
	const char *const headers[] = {type, a->header[0] != '\0' ? a->header : NULL, NULL};
	struct http_request q = {.method = method,
				 .host = &a->host,
				 .path = path,
				 .headers = headers,
				 .body = body,
				 .body_size = n};
	struct http_reply r;

	snprintf(type, sizeof(type), "Content-Type: %s",
		 a->type != NULL ? a->type : "application/json");
	a->status = 0;
	if (http_call(a->http, &q, now_ns() + PATIENCE_MS * MS, &r) != HTTP_OK)
		return NULL;
	a->status = r.status;
	return js_parse(r.body, r.body_size);
}

json_t *admin_ask(struct admin *a, const char *method, const char *path, const char *format, ...)
{
	static _Thread_local char body[BODY_SIZE];
	va_list args;

	va_start(args, format);
	size_t n = (size_t)vsnprintf(body, sizeof(body), format, args);

	va_end(args);
	return admin_send(a, method, path, n > 0 ? body : NULL, n);
}

struct hand *admin_hand(struct testcase *t)
{
	return t->hand;
}

void admin_leave(struct testcase *t)
{
	struct hand *h = admin_hand(t);

	proxy_free(h->proxy);
	h->proxy = NULL;
	admin_close(&h->admin);
}

#endif
