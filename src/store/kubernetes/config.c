/*
 * config.c: which API server, and how we log in there. The configuration is looked for in the order
 * of kubectl and client-go, and the first one that is given or there is used: kubeconfig= of the
 * URL, the files that $KUBECONFIG names, the service account of the pod that we are in (unless the
 * URL has context=), ~/.kube/config.
 *
 * The configuration is read once, when the store is opened. The files that it names (certificates,
 * tokens) are read again whenever they are used, so that they can be replaced.
 */
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/secret.h"
#include "store/kubernetes/kube.h"

#define FILES_MAX 16

/* The kubeconfigs that make up the configuration. Of two entries with one name, the first one
 * counts. */
struct files {
	json_t *list[FILES_MAX];
	char paths[FILES_MAX][KUBE_TEXT_MAX];
	size_t n;
};

void kube_config_done(struct kube_config *c)
{
	if (c->key_text != NULL)
		explicit_bzero(c->key_text, strlen(c->key_text));
	if (c->token != NULL)
		explicit_bzero(c->token, strlen(c->token));
	free(c->ca_text);
	free(c->cert_text);
	free(c->key_text);
	free(c->token);
	json_decref(c->exec);
	explicit_bzero(c, sizeof(*c));
}

/* ---- the server's URL ---- */

static bool take_port(struct kube_config *c, const char *at)
{
	size_t n = strspn(at, "0123456789");

	if (n == 0 || n > 5)
		return false;
	(void)snprintf(c->host.port, sizeof(c->host.port), "%.*s", (int)n, at);
	return at[n] == '\0' || at[n] == '/';
}

/* https://host[:port][/prefix] */
static bool config_take_server(struct kube_config *c, const char *url)
{
	static const char tls[] = "https://";
	static const char plain[] = "http://";

	c->host.tls = strncmp(url, tls, strlen(tls)) == 0;
	if (!c->host.tls && strncmp(url, plain, strlen(plain)) != 0)
		return false;
	const char *at = url + strlen(c->host.tls ? tls : plain);
	const char *path = at + strcspn(at, "/");
	bool is_v6 = at[0] == '[';
	size_t n = is_v6 ? strcspn(at, "]/") - 1 : strcspn(at, ":/");

	if (strpbrk(at, "@?#% ") != NULL || n == 0 || n >= sizeof(c->host.name) ||
	    (is_v6 && at[n + 1] != ']'))
		return false;
	(void)snprintf(c->host.name, sizeof(c->host.name), "%.*s", (int)n, at + is_v6);
	at += n + (is_v6 ? 2 : 0);
	(void)snprintf(c->host.port, sizeof(c->host.port), "%s", c->host.tls ? "443" : "80");
	if (*at == ':' && !take_port(c, at + 1))
		return false;
	n = strlen(path);
	while (n > 0 && path[n - 1] == '/')
		n--;
	(void)snprintf(c->prefix, sizeof(c->prefix), "%.*s", (int)n, path);
	return n < sizeof(c->prefix);
}

/* ---- the service account of a pod ---- */

static bool is_there(const char *folder, const char *file)
{
	char path[KUBE_TEXT_MAX + 16];

	(void)snprintf(path, sizeof(path), "%s/%s", folder, file);
	return access(path, R_OK) == 0;
}

static bool is_in_cluster(const struct kube_options *o)
{
	return getenv("KUBERNETES_SERVICE_HOST") != NULL &&
	       getenv("KUBERNETES_SERVICE_PORT") != NULL && is_there(o->service_account, "token");
}

static int config_use_service_account(struct kube_config *c, const struct kube_options *o,
				      struct baton_error *err)
{
	const char *port = getenv("KUBERNETES_SERVICE_PORT");
	char path[KUBE_TEXT_MAX + 16];
	char reason[HTTP_TEXT_MAX];

	(void)snprintf(c->source, sizeof(c->source), "%s", o->service_account);
	(void)snprintf(c->host.name, sizeof(c->host.name), "%s", getenv("KUBERNETES_SERVICE_HOST"));
	c->host.tls = true;
	if (strlen(o->service_account) + 16 > KUBE_TEXT_MAX || c->host.name[0] == '\0' ||
	    port == NULL || !take_port(c, port))
		return store_fail(err, BATON_E_URL,
				  "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not "
				  "the address of an API server");
	(void)snprintf(path, sizeof(path), "%s/namespace", o->service_account);
	if (secret_read(path, c->space, sizeof(c->space), reason) != 0 ||
	    !kube_is_namespace(c->space))
		c->space[0] = '\0';
	(void)snprintf(path, sizeof(path), "%s/token", o->service_account);
	(void)memcpy(c->token_file, path, KUBE_TEXT_MAX);
	(void)snprintf(path, sizeof(path), "%s/ca.crt", o->service_account);
	if (is_there(o->service_account, "ca.crt"))
		(void)memcpy(c->ca, path, KUBE_TEXT_MAX);
	return 0;
}

/* ---- kubeconfigs ---- */

static void files_done(struct files *f)
{
	for (size_t i = 0; i < f->n; i++)
		json_decref(f->list[i]);
}

static int config_add_file(struct files *f, const char *path, struct baton_error *err)
{
	char reason[HTTP_TEXT_MAX];

	if (f->n == FILES_MAX || strlen(path) >= KUBE_TEXT_MAX)
		return store_fail(err, BATON_E_URL, "there are more than %d kubeconfigs",
				  FILES_MAX);
	f->list[f->n] = kube_yaml_read(path, reason);
	if (f->list[f->n] == NULL)
		return store_fail(err, BATON_E_URL, "%s", reason);
	(void)snprintf(f->paths[f->n], sizeof(f->paths[0]), "%s", path);
	f->n++;
	return 0;
}

/* Adds a list of files as $KUBECONFIG has it; a file that isn't there is left out. */
static int config_add_files(struct files *f, const char *list, struct baton_error *err)
{
	while (*list != '\0') {
		size_t n = strcspn(list, ":");
		char path[KUBE_TEXT_MAX];

		(void)snprintf(path, sizeof(path), "%.*s", (int)n, list);
		if (n > 0 && n < sizeof(path) && access(path, F_OK) == 0 &&
		    config_add_file(f, path, err) != 0)
			return -1;
		list += n + (list[n] == ':');
	}
	return 0;
}

/* The content of the entry of that name in `contexts`, `clusters` or `users`; *path gets its
 * file. */
static const json_t *config_find_entry(const struct files *f, const char *list, const char *kind,
				       const char *name, const char **path)
{
	for (size_t i = 0; i < f->n; i++) {
		const json_t *entries = js_get(f->list[i], list);

		for (size_t k = 0; k < json_array_size(entries); k++) {
			const json_t *entry = json_array_get(entries, k);

			if (strcmp(js_text(entry, "name"), name) != 0)
				continue;
			*path = f->paths[i];
			return js_get(entry, kind);
		}
	}
	return NULL;
}

/* The path of a file that a kubeconfig names. It is relative to the kubeconfig's folder. */
static bool take_file(const json_t *from, const char *key, const char *kubeconfig, char *out)
{
	const char *path = js_text(from, key);
	const char *slash = strrchr(kubeconfig, '/');
	int folder = path[0] != '/' && slash != NULL ? (int)(slash - kubeconfig) + 1 : 0;
	int n = 0;

	if (path[0] != '\0')
		n = snprintf(out, KUBE_TEXT_MAX, "%.*s%s", folder, kubeconfig, path);
	return n >= 0 && n < KUBE_TEXT_MAX;
}

/* A PEM text that stands in the kubeconfig itself, in base64. */
static bool take_data(const json_t *from, const char *key, char **out)
{
	const char *data = js_text(from, key);
	size_t size = strlen(data) + 1;

	if (data[0] == '\0')
		return true;
	*out = malloc(size);
	return *out != NULL && js_base64(from, key, *out, size);
}

static int config_take_cluster(struct kube_config *c, const json_t *cluster, const char *path,
			       struct baton_error *err)
{
	if (strcmp(js_text(cluster, "insecure-skip-tls-verify"), "true") == 0)
		return store_fail(err, BATON_E_URL,
				  "the kubeconfig says insecure-skip-tls-verify, which baton never "
				  "does: name the server's authority in certificate-authority");
	if (js_text(cluster, "proxy-url")[0] != '\0')
		return store_fail(err, BATON_E_URL,
				  "the kubeconfig has a proxy-url; baton uses no proxies");
	if (!config_take_server(c, js_text(cluster, "server")))
		return store_fail(err, BATON_E_URL,
				  "the kubeconfig %.150s has no server that can be used", path);
	(void)snprintf(c->server_name, sizeof(c->server_name), "%s",
		       js_text(cluster, "tls-server-name"));
	if (!take_file(cluster, "certificate-authority", path, c->ca) ||
	    !take_data(cluster, "certificate-authority-data", &c->ca_text))
		return store_fail(err, BATON_E_URL,
				  "the certificate authority in %.150s can't be used", path);
	return 0;
}

/* The first key of the user that baton doesn't know, or NULL. We refuse such a user: without that
 * key we would log in as another one. */
static const char *strange_user(const json_t *user)
{
	static const char *const keys[] = {"username", "password", "auth-provider",
					   "as",       "as-uid",   "as-groups"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (js_get(user, keys[i]) != NULL)
			return keys[i];
	return NULL;
}

static int config_take_user(struct kube_config *c, json_t *user, const char *path,
			    struct baton_error *err)
{
	const char *slash = strrchr(path, '/');
	const char *strange = strange_user(user);
	const char *token = js_text(user, "token");

	if (strange != NULL)
		return store_fail(err, BATON_E_URL,
				  "the user in %.150s has \"%s\", which baton doesn't know: use "
				  "certificates, a token, a token file or an exec plugin",
				  path, strange);
	if (!take_file(user, "client-certificate", path, c->cert) ||
	    !take_file(user, "client-key", path, c->key) ||
	    !take_file(user, "tokenFile", path, c->token_file) ||
	    !take_data(user, "client-certificate-data", &c->cert_text) ||
	    !take_data(user, "client-key-data", &c->key_text))
		return store_fail(err, BATON_E_URL, "the user in %.150s can't be used", path);
	if (token[0] != '\0' && c->token_file[0] == '\0' && (c->token = strdup(token)) == NULL)
		return store_fail(err, BATON_E_MEMORY, "no memory for a kubeconfig");
	if (token[0] != '\0' &&
	    (strlen(token) >= KUBE_SECRET_MAX || strpbrk(token, "\r\n") != NULL))
		return store_fail(err, BATON_E_URL, "the token in %.150s is not valid", path);
	c->exec = json_incref(json_object_get(user, "exec"));
	(void)snprintf(c->exec_folder, sizeof(c->exec_folder), "%.*s",
		       slash != NULL ? (int)(slash - path) + 1 : 0, path);
	return 0;
}

static const char *current_context(const struct files *f)
{
	const char *name = "";

	for (size_t i = 0; i < f->n && name[0] == '\0'; i++)
		name = js_text(f->list[i], "current-context");
	return name;
}

static int config_use_files(struct kube_config *c, const struct kube_options *o,
			    const struct files *f, struct baton_error *err)
{
	const char *name = o->context[0] != '\0' ? o->context : current_context(f);
	const char *path = "";
	const json_t *context = config_find_entry(f, "contexts", "context", name, &path);

	if (context == NULL)
		return store_fail(err, BATON_E_URL,
				  "the kubeconfig has no context \"%.80s\"; say context=NAME",
				  name);
	const char *space = js_text(context, "namespace");
	const json_t *cluster =
		config_find_entry(f, "clusters", "cluster", js_text(context, "cluster"), &path);

	(void)snprintf(c->source, sizeof(c->source), "%s", path);
	if (cluster == NULL)
		return store_fail(
			err, BATON_E_URL,
			"the context \"%.80s\" names a cluster that its kubeconfig hasn't "
			"got",
			name);
	if (config_take_cluster(c, cluster, path, err) != 0)
		return -1;
	if (kube_is_namespace(space))
		(void)snprintf(c->space, sizeof(c->space), "%s", space);
	const json_t *user = config_find_entry(f, "users", "user", js_text(context, "user"), &path);

	if (user == NULL && js_text(context, "user")[0] != '\0')
		return store_fail(
			err, BATON_E_URL,
			"the context \"%.80s\" names a user that its kubeconfig hasn't got", name);
	return user != NULL ? config_take_user(c, (json_t *)(uintptr_t)user, path, err) : 0;
}

static void home_file(char *out, size_t size)
{
	const char *home = getenv("HOME");

	if (home == NULL || home[0] == '\0') {
		const struct passwd *me = getpwuid(getuid()); /* NOLINT: while a store is opened */

		home = me != NULL ? me->pw_dir : "";
	}
	(void)snprintf(out, size, "%s/.kube/config", home);
}

/* ---- finding it ---- */

static int config_search(struct kube_config *c, const struct kube_options *o, struct files *f,
			 struct baton_error *err)
{
	const char *list = getenv("KUBECONFIG");
	char home[PATH_MAX];

	if (o->kubeconfig[0] != '\0') {
		if (config_add_file(f, o->kubeconfig, err) != 0)
			return -1;
	} else if (list != NULL && list[0] != '\0') {
		if (config_add_files(f, list, err) != 0)
			return -1;
	} else if (o->context[0] == '\0' && is_in_cluster(o)) {
		return config_use_service_account(c, o, err);
	} else {
		home_file(home, sizeof(home));
		if (access(home, F_OK) == 0 && config_add_file(f, home, err) != 0)
			return -1;
	}
	if (f->n == 0)
		return store_fail(err, BATON_E_URL,
				  "there is no Kubernetes here: no kubeconfig ($KUBECONFIG, "
				  "~/.kube/config), and this is not a pod with a service account");
	return config_use_files(c, o, f, err);
}

int kube_config_find(struct kube_config *c, const struct kube_options *o, struct baton_error *err)
{
	struct files f = {.n = 0};
	int rc = config_search(c, o, &f, err);

	files_done(&f);
	if (o->space[0] != '\0')
		(void)snprintf(c->space, sizeof(c->space), "%s", o->space);
	if (c->space[0] == '\0')
		(void)snprintf(c->space, sizeof(c->space), "default");
	return rc == 0 ? BATON_OK : err->code;
}
