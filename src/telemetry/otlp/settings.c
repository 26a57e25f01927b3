/*
 * settings.c: the variables of OpenTelemetry, as its specification has them. A variable of one
 * signal (OTEL_EXPORTER_OTLP_TRACES_...) wins over that of all signals. Values of headers are
 * secrets: no sentence repeats one.
 */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "telemetry/otlp/otlp.h"

#define TIMEOUT_MS 10000
#define EVERY_MS 60000

static const char *const names[] = {"TRACES", "METRICS"};
static const char *const paths[] = {"v1/traces", "v1/metrics"};

/* NULL: not set, or empty. */
static const char *variable(const char *name)
{
	const char *value = getenv(name);

	return value != NULL && value[0] != '\0' ? value : NULL;
}

/* OTEL_EXPORTER_OTLP_[TRACES_]WHAT */
static const char *of_signal(int kind, const char *what)
{
	char name[96];

	(void)snprintf(name, sizeof(name), "OTEL_EXPORTER_OTLP_%s_%s", names[kind], what);
	const char *value = variable(name);

	(void)snprintf(name, sizeof(name), "OTEL_EXPORTER_OTLP_%s", what);
	return value != NULL ? value : variable(name);
}

__attribute__((format(printf, 2, 3))) static int settings_fail(struct baton_error *err,
							       const char *format, ...)
{
	va_list args;

	va_start(args, format);
	err->code = BATON_E_INVALID;
	(void)vsnprintf(err->text, sizeof(err->text), format, args);
	va_end(args);
	return err->code;
}

static int hex_digit(char c)
{
	return isdigit((unsigned char)c)    ? c - '0'
	       : isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10
					    : -1;
}

/* A piece of "key=value,key=value", without blanks around it and with %xx read. */
static void read_piece(const char *from, size_t n, char *out, size_t size)
{
	size_t used = 0;

	while (n > 0 && isblank((unsigned char)*from)) {
		from++;
		n--;
	}
	while (n > 0 && isblank((unsigned char)from[n - 1]))
		n--;
	for (size_t i = 0; i < n && used + 1 < size; i++) {
		if (from[i] == '%' && i + 2 < n && hex_digit(from[i + 1]) >= 0 &&
		    hex_digit(from[i + 2]) >= 0) {
			out[used++] = (char)(hex_digit(from[i + 1]) * 16 + hex_digit(from[i + 2]));
			i += 2;
		} else {
			out[used++] = from[i];
		}
	}
	out[used] = '\0';
}

/* Takes the next pair off the list; false: there are no more. */
static bool next_pair(const char **list, char *key, size_t key_size, char *value, size_t value_size)
{
	while (**list != '\0') {
		size_t n = strcspn(*list, ",");
		const char *equals = memchr(*list, '=', n);
		const char *at = *list;

		*list += n + (*(*list + n) == ',');
		if (equals == NULL)
			continue;
		read_piece(at, (size_t)(equals - at), key, key_size);
		read_piece(equals + 1, n - (size_t)(equals + 1 - at), value, value_size);
		if (key[0] != '\0')
			return true;
	}
	return false;
}

static int add_header(struct otlp_signal *s, const char *line, struct baton_error *err)
{
	struct curl_slist *more = curl_slist_append(s->headers, line);

	if (more == NULL)
		return settings_fail(err, "no memory");
	s->headers = more;
	return 0;
}

static int read_headers(struct otlp_signal *s, int kind, struct baton_error *err)
{
	const char *list = of_signal(kind, "HEADERS");
	char key[128];
	char value[4096];
	char line[sizeof(key) + sizeof(value) + 4];
	int code = add_header(s,
			      s->json ? "Content-Type: application/json"
				      : "Content-Type: application/x-protobuf",
			      err);

	if (code == 0 && s->gzip)
		code = add_header(s, "Content-Encoding: gzip", err);
	if (code == 0)
		code = add_header(s, "Expect:", err); /* no "100-continue" */
	while (code == 0 && list != NULL &&
	       next_pair(&list, key, sizeof(key), value, sizeof(value))) {
		if (strpbrk(value, "\r\n") != NULL || strpbrk(key, "\r\n: ") != NULL)
			return settings_fail(err,
					     "OTEL_EXPORTER_OTLP_HEADERS: \"%.60s\" is not a "
					     "header that can be sent",
					     key);
		(void)snprintf(line, sizeof(line), "%s: %s", key, value);
		code = add_header(s, line, err);
	}
	return code;
}

static int read_url(struct otlp_signal *s, int kind, struct baton_error *err)
{
	char name[96];

	(void)snprintf(name, sizeof(name), "OTEL_EXPORTER_OTLP_%s_ENDPOINT", names[kind]);
	const char *own = variable(name);
	const char *all = variable("OTEL_EXPORTER_OTLP_ENDPOINT");
	const char *url = own != NULL ? own : all;

	if (url == NULL)
		return 0;
	if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
		return settings_fail(err, "%s: not an endpoint; expected http://HOST:4318",
				     own != NULL ? name : "OTEL_EXPORTER_OTLP_ENDPOINT");
	bool has_slash = url[strlen(url) - 1] == '/';
	int n = own != NULL ? asprintf(&s->url, "%s", own)
			    : asprintf(&s->url, "%s%s%s", all, has_slash ? "" : "/", paths[kind]);

	if (n < 0) {
		s->url = NULL;
		return settings_fail(err, "no memory");
	}
	s->is_on = true;
	return 0;
}

static bool is_switched_off(int kind)
{
	const char *exporter =
		variable(kind == SIGNAL_TRACES ? "OTEL_TRACES_EXPORTER" : "OTEL_METRICS_EXPORTER");
	const char *sampler = variable("OTEL_TRACES_SAMPLER");

	if (exporter != NULL && strcmp(exporter, "none") == 0)
		return true;
	return kind == SIGNAL_TRACES && sampler != NULL && strcmp(sampler, "always_off") == 0;
}

static int read_signal(struct otlp_signal *s, int kind, struct baton_error *err)
{
	const char *protocol = of_signal(kind, "PROTOCOL");
	const char *compression = of_signal(kind, "COMPRESSION");
	const char *timeout = of_signal(kind, "TIMEOUT");
	int code = is_switched_off(kind) ? 0 : read_url(s, kind, err);

	if (code != 0 || !s->is_on)
		return code;
	if (protocol != NULL && strcmp(protocol, "http/protobuf") != 0 &&
	    strcmp(protocol, "http/json") != 0)
		return settings_fail(err,
				     "OTEL_EXPORTER_OTLP_PROTOCOL: \"%.60s\" can't be had; "
				     "expected http/protobuf or http/json",
				     protocol);
	if (compression != NULL && strcmp(compression, "none") != 0 &&
	    strcmp(compression, "gzip") != 0)
		return settings_fail(err,
				     "OTEL_EXPORTER_OTLP_COMPRESSION: \"%.60s\" can't be had; "
				     "expected gzip or none",
				     compression);
	s->json = protocol != NULL && strcmp(protocol, "http/json") == 0;
	s->gzip = compression != NULL && strcmp(compression, "gzip") == 0;
	s->timeout_ms = timeout != NULL ? strtol(timeout, NULL, 10) : TIMEOUT_MS;
	if (s->timeout_ms <= 0)
		s->timeout_ms = TIMEOUT_MS;
	s->ca = of_signal(kind, "CERTIFICATE");
	s->certificate = of_signal(kind, "CLIENT_CERTIFICATE");
	s->key = of_signal(kind, "CLIENT_KEY");
	return read_headers(s, kind, err);
}

/* ---- what is told of ourselves ---- */

/* A later value of the same key wins. */
static void set_resource(struct otlp_settings *s, const char *key, const char *value)
{
	size_t i = 0;

	while (i < s->n_resource && strcmp(s->resource[i].key, key) != 0)
		i++;
	if (i == RESOURCE_MAX)
		return;
	s->n_resource += i == s->n_resource;
	(void)snprintf(s->resource[i].key, sizeof(s->resource[i].key), "%s", key);
	(void)snprintf(s->resource[i].value, sizeof(s->resource[i].value), "%s", value);
}

int otlp_settings_read(struct otlp_settings *s, const char *instance, struct baton_error *err)
{
	const char *list = variable("OTEL_RESOURCE_ATTRIBUTES");
	const char *service = variable("OTEL_SERVICE_NAME");
	const char *every = variable("OTEL_METRIC_EXPORT_INTERVAL");
	char key[64];
	char value[256];
	long long every_ms = every != NULL ? strtoll(every, NULL, 10) : EVERY_MS;

	set_resource(s, "service.name", "baton");
	set_resource(s, "service.version", BATON_VERSION);
	set_resource(s, "service.instance.id", instance);
	while (list != NULL && next_pair(&list, key, sizeof(key), value, sizeof(value)))
		set_resource(s, key, value);
	if (service != NULL)
		set_resource(s, "service.name", service);
	for (int kind = 0; kind < SIGNALS; kind++) {
		int code = read_signal(&s->signals[kind], kind, err);

		if (code != 0)
			return code;
	}
	if (s->signals[SIGNAL_METRICS].is_on)
		s->metrics_every_ns =
			(uint64_t)(every_ms > 0 ? every_ms : EVERY_MS) * CLOCK_NS_PER_MS;
	return 0;
}

void otlp_settings_done(struct otlp_settings *s)
{
	for (int kind = 0; kind < SIGNALS; kind++) {
		free(s->signals[kind].url);
		curl_slist_free_all(s->signals[kind].headers);
	}
}
