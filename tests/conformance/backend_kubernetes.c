/*
 * backend_kubernetes.c: an API server, as its administrator with kubectl treats it, and the network
 * in front of it (proxy.h). Each case has a namespace and a service account of its own, which has
 * the rights of deploy/kubernetes/rbac.yaml, and no other.
 *
 * It knows the Leases that baton-kubernetes(7) describes, and uses nothing of the driver; only the
 * HTTP client is the same. The server's own TLS is taken off before (tests/servers
 * kubernetes-plain).
 */
#include "backend.h"

#ifdef WITH_KUBERNETES /* libcurl and jansson are there */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "admin.h"

#define MERGE "application/merge-patch+json"
#define APPLY "application/apply-patch+yaml"
#define PATH_SIZE 700

/* The requests by what stands in their path. */
static const char *const words[N_VERBS] = {
	[VERB_OPEN] = "&for=open",         [VERB_RENEW] = "&for=renew",
	[VERB_CAMPAIGN] = "&for=campaign", [VERB_RELEASE] = "&for=release",
	[VERB_OBSERVE] = "&for=observe",
};

/* ---- a small client ---- */

/* It was done, or had been. */
static bool is_done(const struct admin *a, json_t *answer)
{
	bool done = (a->status >= 200 && a->status < 300) || a->status == 409;

	if (!done)
		fprintf(stderr, "conformance: Kubernetes: status %d, %s\n", a->status,
			js_text(answer, "message"));
	json_decref(answer);
	return done;
}

static const char *path_of(const struct hand *h, const char *group, const char *rest)
{
	static _Thread_local char out[2][PATH_SIZE];
	static _Thread_local unsigned turn;
	char *to = out[turn++ % 2];

	snprintf(to, PATH_SIZE, "/%s/namespaces/%s/%s", group, h->label, rest);
	return to;
}

#define LEASES "apis/coordination.k8s.io/v1"
#define RBAC "apis/rbac.authorization.k8s.io/v1"

/* ---- places ---- */

/* Of the administrator's kubeconfig, which the base URL names: where, and with which token. */
static bool read_kubeconfig(const char *base_url, char *folder, size_t size, unsigned *port,
			    char *token, size_t token_size)
{
	static const char server[] = "server: http://127.0.0.1:";
	static const char secret[] = "token: ";
	const char *at = strstr(base_url, "kubeconfig=");
	char path[300], text[4096] = "";

	if (at == NULL)
		return false;
	at += strlen("kubeconfig=");
	snprintf(path, sizeof(path), "%.*s", (int)strcspn(at, "&"), at);
	FILE *file = fopen(path, "re");

	if (file == NULL)
		return false;
	size_t n = fread(text, 1, sizeof(text) - 1, file);

	fclose(file);
	text[n] = '\0';
	const char *where = strstr(text, server);
	const char *who = strstr(text, secret);

	snprintf(folder, size, "%.*s", (int)(strrchr(path, '/') - path), path);
	if (where == NULL || who == NULL)
		return false;
	*port = (unsigned)strtoul(where + strlen(server), NULL, 10);
	who += strlen(secret);
	snprintf(token, token_size, "%.*s", (int)strcspn(who, "\n"), who);
	return true;
}

static bool root_open(struct admin *a, unsigned port, const char *token)
{
	snprintf(a->header, sizeof(a->header), "Authorization: Bearer %s", token);
	return admin_open(a, port);
}

static bool allow(struct hand *h)
{
	return is_done(&h->admin,
		       admin_ask(&h->admin, "POST", path_of(h, RBAC, "rolebindings"),
				 "{\"metadata\":{\"name\":\"baton\"},\"roleRef\":{\"apiGroup\":"
				 "\"rbac.authorization.k8s.io\",\"kind\":\"Role\",\"name\":"
				 "\"baton\"},\"subjects\":[{\"kind\":\"ServiceAccount\",\"name\":"
				 "\"baton\"}]}"));
}

/* A namespace, a service account, a role; and a token, which is asked for. */
static bool make_account(struct hand *h, char *token, size_t size)
{
	struct admin *a = &h->admin;
	bool done = is_done(a, admin_ask(a, "POST", "/api/v1/namespaces",
					 "{\"metadata\":{\"name\":\"%s\"}}", h->label)) &&
		    is_done(a, admin_ask(a, "POST", path_of(h, "api/v1", "serviceaccounts"),
					 "{\"metadata\":{\"name\":\"baton\"}}")) &&
		    is_done(a, admin_ask(a, "POST", path_of(h, RBAC, "roles"),
					 "{\"metadata\":{\"name\":\"baton\"},\"rules\":[{"
					 "\"apiGroups\":[\"coordination.k8s.io\"],\"resources\":["
					 "\"leases\"],\"verbs\":[\"list\",\"watch\",\"create\","
					 "\"patch\",\"delete\"]}]}")) &&
		    allow(h);

	if (!done)
		return false;
	json_t *answer = admin_ask(a, "POST", path_of(h, "api/v1", "serviceaccounts/baton/token"),
				   "{\"spec\":{}}");

	snprintf(token, size, "%s", js_text(js_get(answer, "status"), "token"));
	json_decref(answer);
	return token[0] != '\0';
}

static bool write_kubeconfig(const char *path, unsigned port, const char *token)
{
	FILE *file = fopen(path, "we");

	if (file == NULL)
		return false;
	fprintf(file,
		"clusters:\n- name: c\n  cluster: {server: 'http://127.0.0.1:%u'}\n"
		"users:\n- name: u\n  user: {token: %s}\n"
		"contexts:\n- name: x\n  context: {cluster: c, user: u}\n"
		"current-context: x\n",
		port, token);
	return fclose(file) == 0;
}

static bool place(struct testcase *t, const char *base_url, const char *label)
{
	struct hand *h = calloc(1, sizeof(*h));
	char folder[300], path[400], root[300], token[2000];
	unsigned port;

	if (h == NULL ||
	    !read_kubeconfig(base_url, folder, sizeof(folder), &port, root, sizeof(root)))
		return false;
	t->hand = h;
	snprintf(h->label, sizeof(h->label), "%s", label);
	if (!root_open(&h->admin, port, root) || !make_account(h, token, sizeof(token)))
		return false;
	h->proxy = proxy_new(port, &protocol_http, words);
	if (h->proxy == NULL || !root_open(&h->pulse, proxy_clear_port(h->proxy), root))
		return false;
	snprintf(path, sizeof(path), "%s/%s.kubeconfig", folder, label);
	if (!write_kubeconfig(path, proxy_port(h->proxy), token))
		return false;
	snprintf(t->url, sizeof(t->url), "kubernetes://%s?kubeconfig=%s%s", label, path,
		 strstr(base_url, "&process_lease=1") != NULL ? "&process_lease=1" : "");
	return true;
}

static bool forget_leases(struct hand *h)
{
	return is_done(&h->admin,
		       admin_send(&h->admin, "DELETE", path_of(h, LEASES, "leases"), NULL, 0));
}

/* A namespace is taken away by a controller, which isn't there: what is in it goes. */
static void clean(const char *base_url, const char *label)
{
	struct hand h = {0};
	char folder[300], path[400], root[300];
	unsigned port;

	if (!read_kubeconfig(base_url, folder, sizeof(folder), &port, root, sizeof(root)))
		return;
	snprintf(h.label, sizeof(h.label), "%s", label);
	if (root_open(&h.admin, port, root))
		forget_leases(&h);
	admin_close(&h.admin);
	snprintf(path, sizeof(path), "%s/%s.kubeconfig", folder, label);
	unlink(path);
}

/* A write that goes through the whole store. */
static void pulse(struct testcase *t)
{
	struct hand *h = admin_hand(t);

	h->pulse.type = APPLY;
	json_decref(admin_ask(&h->pulse, "PATCH",
			      path_of(h, LEASES, "leases/baton--pulse?fieldManager=t&force=true"),
			      "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\","
			      "\"metadata\":{\"name\":\"baton--pulse\",\"labels\":{"
			      "\"baton/candidate\":\"none\"},\"annotations\":{\"at\":\"%" PRIu64
			      "\"}}}",
			      now_ns()));
}

/* ---- claims that end ---- */

static json_t *list(struct hand *h)
{
	return admin_send(&h->admin, "GET", path_of(h, LEASES, "leases"), NULL, 0);
}

/* Whether that object is the election's. */
static bool is_of(const json_t *object, const char *name)
{
	const json_t *metadata = js_get(object, "metadata");
	const char *says = js_text(js_get(metadata, "annotations"), "baton/name");

	return js_get(js_get(metadata, "labels"), "baton/candidate") == NULL &&
	       js_get(js_get(metadata, "labels"), "baton/process") == NULL &&
	       strcmp(says[0] != '\0' ? says : js_text(metadata, "name"), name) == 0;
}

/* The election's Lease; the list is to be given back. */
static const json_t *find(const json_t *leases, const char *name)
{
	const json_t *items = js_get(leases, "items");

	for (size_t i = 0; i < json_array_size(items); i++)
		if (is_of(json_array_get(items, i), name))
			return json_array_get(items, i);
	return NULL;
}

static const char *lease_path(const struct hand *h, const char *object)
{
	char rest[300];

	snprintf(rest, sizeof(rest), "leases/%s", object);
	return path_of(h, LEASES, rest);
}

static bool merge(struct hand *h, const char *object, const char *patch)
{
	h->admin.type = MERGE;
	bool done = is_done(&h->admin,
			    admin_ask(&h->admin, "PATCH", lease_path(h, object), "%s", patch));

	h->admin.type = NULL;
	return done;
}

static bool delete_lease(struct hand *h, const char *object)
{
	return is_done(&h->admin, admin_send(&h->admin, "DELETE", lease_path(h, object), NULL, 0));
}

/* As client-go does it, with a lease of the same length. */
static bool overwrite(const struct testcase *t, struct hand *h, const json_t *lease,
		      const char *object)
{
	uint64_t transitions = 0;
	char patch[400];

	js_u64(js_get(lease, "spec"), "leaseTransitions", &transitions);
	snprintf(patch, sizeof(patch),
		 "{\"spec\":{\"holderIdentity\":\"somebody-else\",\"leaseTransitions\":%" PRIu64
		 ",\"leaseDurationSeconds\":%" PRIu64
		 ",\"renewTime\":\"2020-01-01T00:00:00.000000Z\"}}",
		 transitions + 1, t->lease_ms / 1000 + 1);
	return merge(h, object, patch);
}

static bool destroy(struct testcase *t, const char *name, enum way way)
{
	struct hand *h = admin_hand(t);
	json_t *leases = list(h);
	const json_t *lease = find(leases, name);
	const json_t *metadata = js_get(lease, "metadata");
	const char *object = js_text(metadata, "name");
	bool done = false;

	switch (way) {
	case WAY_DELETED: done = delete_lease(h, object); break;
	case WAY_OVERWRITTEN: done = overwrite(t, h, lease, object); break;
	case WAY_SESSION:
		done = delete_lease(h, js_text(js_get(metadata, "annotations"), "baton/process"));
		break;
	case WAY_DAMAGED:
		done = merge(h, object,
			     "{\"metadata\":{\"annotations\":{\"baton/claim\":\"rubbish\"}}}");
		break;
	default: break;
	}
	json_decref(leases);
	return lease != NULL && done;
}

static bool unlock(struct testcase *t, const char *name)
{
	struct hand *h = admin_hand(t);
	json_t *leases = list(h);
	bool done = merge(h, js_text(js_get(find(leases, name), "metadata"), "name"),
			  "{\"spec\":{\"holderIdentity\":\"\"}}");

	json_decref(leases);
	return done;
}

/* ---- faults ---- */

static bool forget(struct testcase *t)
{
	return forget_leases(admin_hand(t));
}

static bool deny(struct testcase *t, bool is_denied)
{
	struct hand *h = admin_hand(t);

	if (!is_denied)
		return allow(h);
	return is_done(&h->admin, admin_send(&h->admin, "DELETE",
					     path_of(h, RBAC, "rolebindings/baton"), NULL, 0));
}

/* The election is made for it, if nobody has held it yet; names of these cases are plain. */
static bool set_term(struct testcase *t, const char *name, uint64_t term)
{
	struct hand *h = admin_hand(t);
	char patch[500];

	snprintf(patch, sizeof(patch),
		 "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":{"
		 "\"name\":\"%s\",\"annotations\":{\"baton/term\":\"%" PRIu64
		 "\",\"baton/transitions\":\"0\",\"baton/claim\":\"\"}},\"spec\":{"
		 "\"holderIdentity\":\"\",\"leaseTransitions\":0}}",
		 name, term);
	json_t *leases = list(h);
	bool is_there = find(leases, name) != NULL;

	json_decref(leases);
	if (is_there)
		return merge(h, name, patch);
	return is_done(&h->admin,
		       admin_ask(&h->admin, "POST", path_of(h, LEASES, "leases"), "%s", patch));
}

static int count_name(struct testcase *t, const char *name, size_t length)
{
	struct hand *h = admin_hand(t);
	int n = 0;

	if (strlen(name) != length)
		return -1;
	json_t *leases = list(h);
	const json_t *items = js_get(leases, "items");

	for (size_t i = 0; i < json_array_size(items); i++)
		n += is_of(json_array_get(items, i), name);
	json_decref(leases);
	return n;
}

static bool serves_own(const char *url)
{
	return strstr(url, "process_lease=1") == NULL;
}

static bool serves_process(const char *url)
{
	return !serves_own(url);
}

#define COMMON                                                                                    \
	.has_processes = true, .has_network = true, .pushes = true, .is_durable = true,           \
	.keeps_history = true, .lease_ms = 2000, .place = place, .leave = admin_leave,            \
	.clean = clean, .pulse = pulse, .destroy = destroy, .unlock = unlock, .down = proxy_down, \
	.hole = proxy_hole, .fail = proxy_fail, .mute = proxy_mute, .late = proxy_late,           \
	.forget = forget, .deny = deny, .set_term = set_term, .count_name = count_name,           \
	.calls = proxy_calls

const struct backend backend_kubernetes = {
	.scheme = "kubernetes",
	.serves = serves_own,
	.ways = {[WAY_DELETED] = true, [WAY_OVERWRITTEN] = true, [WAY_DAMAGED] = true},
	COMMON,
};

const struct backend backend_kubernetes_process = {
	.scheme = "kubernetes+process",
	.serves = serves_process,
	.shares_leases = true,
	.ways = {[WAY_DELETED] = true,
		 [WAY_OVERWRITTEN] = true,
		 [WAY_SESSION] = true,
		 [WAY_DAMAGED] = true},
	COMMON,
};

#endif
