/*
 * options.c: the URL of a Kubernetes store.
 *
 *     kubernetes:[?option=value&...]            in the namespace of the context or service account
 *     kubernetes://namespace[?option=value&...]
 *
 * Which cluster that is, and how we log in there, is found by itself (config.c). A URL that isn't
 * valid is refused with a sentence; nothing is guessed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/url.h"
#include "store/kubernetes/kube.h"

#define SERVICE_ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount"

static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";

/* Whether Kubernetes takes that text as a namespace: it goes into paths as it is. */
bool kube_is_namespace(const char *text)
{
	size_t n = strlen(text);

	return n > 0 && n < 64 && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == n &&
	       strchr(letters, text[0]) != NULL && strchr(letters, text[n - 1]) != NULL;
}

/* ---- what stands behind the '?' ---- */

/* [prefix/]name. The text goes into a merge patch, as JSON. */
static bool set_label(const char *value, char *out, size_t size)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
				    "-._/";

	return strspn(value, plain) == strlen(value) && option_text(value, out, size);
}

static const struct option_known known[] = {
	{"kubeconfig", OPTION_IS_PATH},
	{"context", "the name of a context of the kubeconfig"},
	{"service_account", "the full path of a directory"},
	{"process_lease", OPTION_IS_FLAG},
	{"pod", "the name of a pod"},
	{"pod_label", "the key of a label: letters, digits and -._/"},
	{NULL, NULL},
};

static bool set_option(void *options, const char *key, const char *value)
{
	struct kube_options *o = options;

	if (strcmp(key, "kubeconfig") == 0)
		return option_path(value, o->kubeconfig, sizeof(o->kubeconfig));
	if (strcmp(key, "context") == 0)
		return option_text(value, o->context, sizeof(o->context));
	if (strcmp(key, "service_account") == 0)
		return option_path(value, o->service_account, sizeof(o->service_account));
	if (strcmp(key, "process_lease") == 0)
		return option_flag(value, &o->process_lease);
	if (strcmp(key, "pod") == 0)
		return set_label(value, o->pod, sizeof(o->pod));
	if (strcmp(key, "pod_label") == 0)
		return set_label(value, o->pod_label, sizeof(o->pod_label));
	return false;
}

static const struct option_list options = {
	.store = "a Kubernetes store",
	.page = "baton-kubernetes(7)",
	.known = known,
	.set = set_option,
};

/* A pod's host name is the pod's name, unless the pod sets another host name. */
static int find_pod(struct kube_options *o, struct baton_error *err)
{
	const char *name = getenv("POD_NAME");

	if (o->pod_label[0] == '\0' || o->pod[0] != '\0')
		return 0;
	if (name == NULL || name[0] == '\0')
		name = getenv("HOSTNAME");
	if (name != NULL && set_label(name, o->pod, sizeof(o->pod)) && strchr(o->pod, '/') == NULL)
		return 0;
	return store_fail(err, BATON_E_URL,
			  "pod_label= needs to know the pod: pod=NAME, or the variable POD_NAME");
}

static int parse_query(struct kube_options *o, struct url_part query, struct baton_error *err)
{
	if (option_each(query, &options, o, err) != 0)
		return -1;
	return find_pod(o, err);
}

int kube_options_parse(struct kube_options *o, const char *text, struct baton_error *err)
{
	struct url url;

	*o = (struct kube_options){.service_account = SERVICE_ACCOUNT};
	bool is_one = url_split(text, &url) &&
		      (url.path.n == 0 || (url.path.n == 1 && url.path.at[0] == '/'));

	if (is_one && url.has_authority)
		is_one = url_decode(url.authority, o->space, sizeof(o->space)) &&
			 kube_is_namespace(o->space);
	if (!is_one) {
		(void)store_fail(err, BATON_E_URL,
				 "not a valid URL of a Kubernetes store; say kubernetes: or "
				 "kubernetes://namespace");
		return BATON_E_URL;
	}
	return parse_query(o, url.query, err) == 0 ? BATON_OK : BATON_E_URL;
}
