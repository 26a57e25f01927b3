/*
 * login.c: how we log in to the API server. A token's file is read for every request, because
 * others replace it while we run (a pod's token about every hour). Certificates are read for every
 * connection. A plugin's credential is kept until it ends, or until the server refuses it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/secret.h"
#include "store/kubernetes/kube.h"

#define BEARER "Authorization: Bearer "

struct http *kube_http(struct kube_store *s, int wake)
{
	const struct kube_config *c = &s->config;
	const struct kube_plugin *p = &s->plugin;

	store_lock(&s->web.base);
	struct http_config config = {
		.ca = c->ca_text != NULL ? "" : c->ca,
		.ca_text = c->ca_text,
		.cert = c->cert_text != NULL || p->cert_text != NULL ? "" : c->cert,
		.cert_text = p->cert_text != NULL ? p->cert_text : c->cert_text,
		.key = c->key_text != NULL || p->key_text != NULL ? "" : c->key,
		.key_text = p->key_text != NULL ? p->key_text : c->key_text,
		.server_name = c->server_name,
		.probe = "/version",
		.wake = wake};
	struct http *http = http_new(&config);

	store_unlock(&s->web.base);
	return http;
}

/* If the plugin has given a new certificate, the connections with the old one are replaced. */
static int login_renew_client(struct kube_lane *lane, struct baton_call *call)
{
	struct kube_store *s = lane->store;

	store_lock(&s->web.base);
	unsigned n_logins = s->plugin.n_logins;

	store_unlock(&s->web.base);
	if (n_logins == lane->n_logins)
		return 0;
	bool is_watch = lane->web.kind == BATON_LANE_WATCH;
	struct http *http = kube_http(s, is_watch ? s->web.wake : 0);
	struct http *beat = is_watch ? kube_http(s, s->web.wake) : NULL;

	if (http == NULL || (is_watch && beat == NULL)) {
		http_free(http);
		http_free(beat);
		return store_fail(&call->error, BATON_E_MEMORY, "no memory for a connection");
	}
	struct http *old_http = lane->web.http;
	struct http *old_beat = lane->beat;

	/* S10: a child that is forked meanwhile finds the old clients or the new ones, and none
	 * that is freed. */
	store_lock(&s->web.base);
	lane->web.http = http;
	lane->beat = beat;
	store_unlock(&s->web.base);
	http_free(old_http);
	http_free(old_beat);
	lane->n_logins = n_logins;
	return 0;
}

static int by_plugin(struct kube_lane *lane, struct baton_call *call, char *header)
{
	struct kube_store *s = lane->store;

	if (kube_plugin_run(s, call) != 0 || login_renew_client(lane, call) != 0)
		return -1;
	store_lock(&s->web.base);
	if (s->plugin.token != NULL)
		(void)snprintf(header, KUBE_HEADER_MAX, BEARER "%s", s->plugin.token);
	store_unlock(&s->web.base);
	return 0;
}

int kube_login(struct kube_lane *lane, struct baton_call *call, char header[KUBE_HEADER_MAX])
{
	const struct kube_config *c = &lane->store->config;
	char reason[HTTP_TEXT_MAX];

	header[0] = '\0';
	if (c->exec != NULL)
		return by_plugin(lane, call, header);
	if (c->token_file[0] != '\0') {
		(void)memcpy(header, BEARER, sizeof(BEARER));
		if (secret_read(c->token_file, header + strlen(BEARER), KUBE_SECRET_MAX, reason) !=
		    0)
			return store_fail(&call->error, BATON_E_DENIED, "%s", reason);
	} else if (c->token != NULL) {
		(void)snprintf(header, KUBE_HEADER_MAX, BEARER "%s", c->token);
	}
	return 0;
}

bool kube_login_again(struct kube_lane *lane, const char *header)
{
	struct kube_store *s = lane->store;
	const struct kube_config *c = &s->config;
	struct baton_call quiet = {.deadline_ns = 0};
	char *now = NULL;
	bool is_other = false;

	if (c->exec != NULL) {
		store_lock(&s->web.base);
		bool is_same = s->plugin.token == NULL || header[0] == '\0' ||
			       strcmp(s->plugin.token, header + strlen(BEARER)) == 0;

		if (is_same)
			s->plugin.is_known = false;
		store_unlock(&s->web.base);
		return true;
	}
	if (c->token_file[0] != '\0' && (now = malloc(KUBE_HEADER_MAX)) != NULL) {
		is_other = kube_login(lane, &quiet, now) == 0 && strcmp(now, header) != 0;
		explicit_bzero(now, KUBE_HEADER_MAX);
	}
	free(now);
	return is_other;
}
