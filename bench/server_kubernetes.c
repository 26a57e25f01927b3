/*
 * server_kubernetes.c: an API server as the measurements see it. Where it is, and who its
 * administrator is, tests/servers says in variables.
 */
#ifdef WITH_KUBERNETES
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/web/http.h"
#include "base/web/json.h"
#include "server.h"
#include "web.h"

#define LEASES "/apis/coordination.k8s.io/v1/namespaces/default/leases"
#define ANSWER_NS 30000000000u

struct kube {
	struct http *http;
	struct http_host host;
	char login[256];
	struct http_reply reply;
};

static const char *variable(const char *name)
{
	const char *value = getenv(name);

	if (value == NULL)
		bench_die("The measurements want tests/servers with kubernetes: no %s.", name);
	return value;
}

static void *open_kube(const char *url)
{
	struct http_config config = {.ca = variable("BATON_TEST_CA")};
	struct kube *k = calloc(1, sizeof(*k));

	(void)url;
	if (k == NULL || (k->http = http_new(&config)) == NULL)
		bench_die("Out of memory.");
	k->host.tls = true;
	(void)snprintf(k->host.name, sizeof(k->host.name), "127.0.0.1");
	(void)snprintf(k->host.port, sizeof(k->host.port), "%s", variable("BATON_TEST_PORT"));
	(void)snprintf(k->login, sizeof(k->login), "Authorization: Bearer %s",
		       variable("BATON_TEST_TOKEN"));
	return k;
}

static void close_kube(void *server)
{
	struct kube *k = server;

	http_free(k->http);
	free(k);
}

static const char *ask(struct kube *k, const char *method, const char *path, const char *type,
		       const char *body)
{
	const char *const headers[] = {k->login, type, NULL};
	const struct http_request request = {.method = method,
					     .host = &k->host,
					     .path = path,
					     .headers = headers,
					     .body = body,
					     .body_size = body != NULL ? strlen(body) : 0};

	if (http_call(k->http, &request, bench_now_ns() + ANSWER_NS, &k->reply) != HTTP_OK)
		bench_die("The API server: %s.", k->reply.text);
	if (k->reply.status >= 300)
		bench_die("The API server says %d to %s: %s", k->reply.status, path, k->reply.body);
	return k->reply.body;
}

/* A Lease is changed, as a claim changes one. */
static void write_kube(void *server)
{
	static unsigned long n;
	char body[300];

	(void)snprintf(body, sizeof(body),
		       "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":"
		       "{\"name\":\"bench-raw\",\"annotations\":{\"n\":\"%lu\"}}}",
		       n++);
	(void)ask(server, "PATCH", LEASES "/bench-raw?fieldManager=bench&force=true",
		  "Content-Type: application/apply-patch+yaml", body);
}

/* What candidates send; the API server itself gets and puts a Lease now and then. */
static uint64_t requests(void *server)
{
	static const char *const verbs[] = {"PATCH", "APPLY", "POST", "LIST", "DELETE"};
	const char *text = ask(server, "GET", "/metrics", NULL, NULL);
	double sum = 0;

	for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
		char word[40];

		line += *line == '\n';
		size_t n = strcspn(line, "\n");

		if (strncmp(line, "apiserver_request_total{", 24) != 0 ||
		    memmem(line, n, "resource=\"leases\"", 17) == NULL)
			continue;
		for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
			(void)snprintf(word, sizeof(word), "verb=\"%s\"", verbs[i]);
			const char *end = memrchr(line, ' ', n);

			if (end != NULL && memmem(line, n, word, strlen(word)) != NULL)
				sum += strtod(end, NULL);
		}
	}
	return (uint64_t)sum;
}

/* By its own words: who watches counts from when it saw them. */
static int64_t left_us(void *server, const char *election)
{
	char path[200];
	struct tm tm = {.tm_sec = 0};
	struct timespec now;
	uint64_t seconds = 0;

	(void)snprintf(path, sizeof(path), LEASES "/%s", election);
	const char *text = ask(server, "GET", path, NULL, NULL);
	json_t *lease = js_parse(text, strlen(text));
	const json_t *spec = js_get(lease, "spec");
	const char *rest = strptime(js_text(spec, "renewTime"), "%Y-%m-%dT%H:%M:%S", &tm);
	double fraction = rest != NULL ? strtod(rest, NULL) : 0;
	bool is_held = js_text(spec, "holderIdentity")[0] != '\0';

	(void)js_u64(spec, "leaseDurationSeconds", &seconds);
	json_decref(lease);
	(void)clock_gettime(CLOCK_REALTIME, &now);
	int64_t renewed_us = (int64_t)timegm(&tm) * 1000000 + (int64_t)(fraction * 1e6);
	int64_t now_us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;

	return is_held ? renewed_us + (int64_t)seconds * 1000000 - now_us : 0;
}

const struct bench_server bench_kubernetes = {
	.name = "kubernetes",
	.raw = "one change of a Lease",
	.probe = "the leader's Lease, and a sign of life of each",
	.settle_s = 2,
	.per_renewal = 2,
	.crash_lease_ms = 2000,
	.most = 1,
	.open = open_kube,
	.close = close_kube,
	.write = write_kube,
	.requests = requests,
	.left_us = left_us,
};
#endif
