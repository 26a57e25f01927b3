/*
 * doctor.c: examines the API server: whether it answers, its version, whether our user has the
 * rights that are needed, and how long a write takes. Nothing is left behind: writes are dry runs.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "store/doctor.h"
#include "store/kubernetes/kube.h"

struct visit {
	struct kube_lane *lane;
	struct baton_call *call;
	struct doctor doctor;
	bool is_unfit;
};

#define TELL(v, level, ...) doctor_tell(&(v)->doctor, BATON_FINDING_##level, __VA_ARGS__)

static int examine_version(struct visit *v)
{
	const struct kube_config *config = &v->lane->store->config;
	struct kube_call c = {.method = "GET", .is_read = true};

	(void)snprintf(c.path, sizeof(c.path), "%s/version", config->prefix);
	int outcome = kube_call(v->lane, v->call, &c);

	/* A client that may not ask for the version has still reached the server. */
	if (outcome == BATON_OUTCOME_OK || c.status == 403) {
		TELL(v, OK, "reachability", NULL,
		     "An API server answers at %s:%s, as %.150s says; the namespace is %s.",
		     config->host.name, config->host.port, config->source, config->space);
		if (js_text(c.answer, "gitVersion")[0] != '\0')
			TELL(v, OK, "version", NULL, "The version is %.60s.",
			     js_text(c.answer, "gitVersion"));
		else
			TELL(v, NOTE, "version", NULL, "The server does not tell its version.");
		outcome = BATON_OUTCOME_OK;
	}
	kube_call_done(&c);
	return outcome == BATON_OUTCOME_OK ? 0 : -1;
}

static void examine_encryption(struct visit *v)
{
	const struct kube_config *c = &v->lane->store->config;

	doctor_tell_encryption(&v->doctor, c->host.tls, doctor_is_local(c->host.name), "token",
			       "Use https:// in the kubeconfig.");
}

/* ---- our rights ---- */

/* Whether we have that right. Also true if the server can't be asked: then the write tells. */
static bool doctor_may(struct visit *v, const char *verb, const char *group, const char *resource)
{
	const struct kube_store *s = v->lane->store;
	struct baton_call quiet = {.deadline_ns = v->call->deadline_ns};
	struct kube_call c = {.method = "POST", .type = KUBE_JSON};

	(void)snprintf(c.path, sizeof(c.path),
		       "%s/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
		       s->config.prefix);
	bytes_print(&c.body,
		    "{\"apiVersion\":\"authorization.k8s.io/v1\",\"kind\":"
		    "\"SelfSubjectAccessReview\",\"spec\":{\"resourceAttributes\":{"
		    "\"namespace\":\"%s\",\"verb\":\"%s\",\"group\":\"%s\",\"resource\":\"%s\"}}}",
		    s->config.space, verb, group, resource);
	bool is_denied = kube_call(v->lane, &quiet, &c) == BATON_OUTCOME_OK &&
			 !json_is_true(js_get(js_get(c.answer, "status"), "allowed"));

	kube_call_done(&c);
	return !is_denied;
}

static void examine_rights(struct visit *v)
{
	static const char *const verbs[] = {"list", "watch", "create", "patch", "delete"};
	const struct kube_options *o = &v->lane->store->options;
	char missing[64] = "";
	size_t n = 0;

	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (!doctor_may(v, verbs[i], "coordination.k8s.io", "leases"))
			n += (size_t)snprintf(missing + n, sizeof(missing) - n, "%s%s",
					      n > 0 ? ", " : "", verbs[i]);
	v->is_unfit = v->is_unfit || n > 0;
	if (n > 0)
		TELL(v, ERROR, "rights", "kubectl apply -f deploy/kubernetes/rbac.yaml",
		     "This user may not %s leases in the namespace %s.", missing,
		     v->lane->store->config.space);
	else
		TELL(v, OK, "rights", NULL,
		     "This user has the rights on leases in %s that baton needs.",
		     v->lane->store->config.space);
	if (o->pod_label[0] != '\0' && !doctor_may(v, "patch", "", "pods"))
		TELL(v, WARNING, "pod label", "Add patch of pods to the role.",
		     "This user may not label the pod %.100s.", o->pod);
}

static int examine_speed(struct visit *v)
{
	struct doctor_trips trips = {.n = 0};

	for (int i = 0; i < DOCTOR_TRIPS; i++) {
		struct kube_call c = {.method = "POST", .type = KUBE_JSON};
		uint64_t began_ns = clock_boot_ns();

		kube_path(v->lane->store, &c, NULL, "?dryRun=All");
		bytes_print(&c.body,
			    "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\","
			    "\"metadata\":{\"name\":\"baton--doctor\"},\"spec\":{}}");
		int outcome = kube_call(v->lane, v->call, &c);

		kube_call_done(&c);
		if (outcome == BATON_OUTCOME_REFUSED) {
			v->is_unfit = true;
			TELL(v, ERROR, "lease", "Make the namespace, or name another one.", "%s",
			     v->call->error.text);
			return 0;
		}
		if (outcome != BATON_OUTCOME_OK)
			return -1;
		doctor_trip(&trips, began_ns, clock_boot_ns());
	}
	doctor_tell_trips(&v->doctor, &trips,
			  "A write that the API server checks and does not keep");
	return 0;
}

int kube_examine(void *l, struct baton_call *call, doctor_found *found, void *arg)
{
	struct visit v = {.lane = l, .call = call, .doctor = {.found = found, .arg = arg}};

	if (examine_version(&v) != 0)
		return BATON_OUTCOME_FAILED;
	examine_encryption(&v);
	examine_rights(&v);
	if (!v.is_unfit && examine_speed(&v) != 0)
		return BATON_OUTCOME_FAILED;
	return v.is_unfit ? BATON_OUTCOME_REFUSED : BATON_OUTCOME_OK;
}
