/*
 * doctor.c: examines the account and the container: our login and its rights, the clocks, and
 * settings that keep records from being written or let them grow. It writes nothing: a write whose
 * condition can't hold shows whether we have the right.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/web/xml.h"
#include "store/azblob/azblob.h"
#include "store/doctor.h"

#define TELL(v, level, ...) doctor_tell(&(v)->doctor, BATON_FINDING_##level, __VA_ARGS__)
#define CLOCK_APART_S 60
#define SCRATCH "t/examine"

struct visit {
	struct azblob_lane *lane;
	struct baton_call *call;
	struct doctor doctor;
	bool is_unfit; /* the store can't be used, so nothing is tried */
};

static const char *const logins[] = {
	[AZBLOB_KEY] = "the account key",
	[AZBLOB_SAS] = "a SAS",
	[AZBLOB_CONNECTION] = "a connection string",
	[AZBLOB_WORKLOAD] = "a workload identity",
	[AZBLOB_MANAGED] = "a managed identity",
};

static void tell_login(struct visit *v)
{
	const struct azblob_lane *l = v->lane;

	TELL(v, OK, "login", NULL, "By %s.", logins[l->store->options.login]);
	doctor_tell_encryption(
		&v->doctor, l->endpoint.host.tls, doctor_is_local(l->endpoint.host.name),
		l->login == AZBLOB_SAS ? "SAS" : NULL, "Let endpoint= begin with https://.");
}

static void tell_clock(struct visit *v, const struct http_reply *reply)
{
	int64_t ahead_s;

	if (!azblob_ahead_s(reply, &ahead_s))
		return;
	if (ahead_s < CLOCK_APART_S && ahead_s > -CLOCK_APART_S)
		TELL(v, OK, "clock", NULL, "This machine's clock and the service's agree.");
	else
		TELL(v, WARNING, "clock", "Set this machine's clock (NTP).",
		     "This machine's clock is %lld s %s the service's: from 15 minutes on "
		     "requests are refused. Elections don't depend on the clock.",
		     (long long)(ahead_s > 0 ? ahead_s : -ahead_s),
		     ahead_s > 0 ? "behind" : "ahead of");
}

static bool has_header(const struct http_reply *reply, const char *name, const char *value)
{
	char text[64];

	return strcmp(http_header(reply, name, text, sizeof(text)), value) == 0;
}

/* The settings of the container. A SAS for the container alone may not read them. */
static void tell_container(struct visit *v)
{
	const struct azblob_options *o = &v->lane->store->options;
	struct azblob_ask ask;
	struct http_reply reply;

	azblob_ask(v->lane, &ask, "GET", NULL);
	azblob_ask_query(&ask, "restype", "container");
	(void)azblob_call(v->lane, v->call, &ask, &reply);
	if (azblob_says(&reply, "ContainerNotFound")) {
		TELL(v, NOTE, "container", "Make it, or let baton make it.",
		     "There is no container %s yet.", o->container);
		v->is_unfit = true;
		return;
	}
	if (reply.result != HTTP_OK || reply.status != 200)
		return;
	TELL(v, OK, "container", NULL, "There is a container %s.", o->container);
	if (has_header(&reply, "x-ms-has-immutability-policy", "true") ||
	    has_header(&reply, "x-ms-has-legal-hold", "true")) {
		TELL(v, ERROR, "immutability", "Use a container without one.",
		     "The container has an immutability policy or a legal hold: records can't be "
		     "written again.");
		v->is_unfit = true;
	}
}

/* Sends a write that can't succeed. The answer is 412 or 404 if we have the right to it. */
static bool may_write(struct visit *v, const char *method)
{
	struct azblob_ask ask;
	struct http_reply reply;

	azblob_ask(v->lane, &ask, method, SCRATCH);
	if (strcmp(method, "PUT") == 0) {
		ask.body = "";
		azblob_ask_header(&ask, "x-ms-blob-type: BlockBlob");
	}
	azblob_ask_header(&ask, "If-Match: \"0x0\"");
	(void)azblob_call(v->lane, v->call, &ask, &reply);
	if (reply.result == HTTP_OK && (reply.status == 412 || reply.status == 404))
		return true;
	(void)azblob_fail(v->lane, v->call, &reply);
	TELL(v, ERROR, "rights",
	     "Give this login read, write, delete and list on the container: Storage Blob Data "
	     "Contributor, or a SAS with sp=rcwdl.",
	     "This login may not %s: %s.", strcmp(method, "PUT") == 0 ? "write" : "delete",
	     v->call->error.text);
	v->is_unfit = true;
	return false;
}

/* Notes the record of some election: it shows what is done to blobs here. */
static void note_record(void *arg, const struct record_item *item)
{
	char *key = arg;

	if (key[0] == '\0')
		(void)snprintf(key, AZBLOB_KEY_MAX + 1, "%s", item->key);
}

static void tell_records(struct visit *v, const char *key)
{
	struct azblob_ask ask;
	struct http_reply reply;
	char text[64];

	azblob_ask(v->lane, &ask, "GET", key);
	if (azblob_call(v->lane, v->call, &ask, &reply) != 0 || reply.status != 200)
		return;
	if (http_header(&reply, "x-ms-version-id", text, sizeof(text))[0] != '\0')
		TELL(v, WARNING, "versioning",
		     "Use an account without versioning, or a lifecycle rule that deletes versions "
		     "(never the blobs themselves) after a day.",
		     "The account keeps all versions: each renewal leaves one, and is paid for.");
	if (has_header(&reply, "x-ms-access-tier", "Cool") ||
	    has_header(&reply, "x-ms-access-tier", "Cold"))
		TELL(v, WARNING, "lifecycle", "Let no rule reach the elections of this container.",
		     "A lifecycle rule has moved a record to another tier. One that deletes "
		     "records loses terms.");
}

/* A lease of another program that never ends keeps all candidates out. */
static void tell_leases(struct visit *v)
{
	const struct azblob_store *s = v->lane->store;
	const char *blob = s->options.blob;
	struct xml *x = malloc(sizeof(*x));
	struct azblob_ask ask;
	struct http_reply reply;
	char below[AZBLOB_BASE_MAX + 1], name[128] = "";
	int event;

	(void)snprintf(below, sizeof(below), "%.120s%s" AZBLOB_LOCKS, s->prefix,
		       s->prefix[0] != '\0' ? "/" : "");
	azblob_ask(v->lane, &ask, "GET", NULL);
	azblob_ask_query(&ask, "comp", "list");
	azblob_ask_query(&ask, "prefix", blob[0] != '\0' ? blob : below);
	azblob_ask_query(&ask, "restype", "container");
	if (x == NULL || azblob_call(v->lane, v->call, &ask, &reply) != 0 || reply.status != 200) {
		free(x);
		return;
	}
	xml_init(x, reply.body, reply.body_size);
	while ((event = xml_next(x)) == XML_OPEN || event == XML_CLOSE) {
		if (event == XML_CLOSE && xml_is(x, "Blob", "Name"))
			(void)snprintf(name, sizeof(name), "%.127s", x->text);
		if (event == XML_CLOSE && xml_is(x, "Properties", "LeaseDuration") &&
		    strcmp(x->text, "infinite") == 0)
			TELL(v, ERROR, "lease",
			     "Ask whose it is; `az storage blob lease break` ends it.",
			     "Another program has an infinite lease on %s: no candidate can lead.",
			     name);
	}
	free(x);
}

/* How safe a write is when the service has answered. */
static void tell_account(struct visit *v)
{
	struct azblob_ask ask;
	struct http_reply reply;
	char sku[64];

	azblob_ask(v->lane, &ask, "GET", NULL);
	azblob_ask_query(&ask, "comp", "properties");
	azblob_ask_query(&ask, "restype", "account");
	if (azblob_call(v->lane, v->call, &ask, &reply) != 0 || reply.status != 200)
		return;
	(void)http_header(&reply, "x-ms-sku-name", sku, sizeof(sku));
	if (strstr(sku, "GRS") != NULL || strstr(sku, "GZRS") != NULL)
		TELL(v, NOTE, "replication",
		     "After a failover of the account, stop all candidates for one lease; let "
		     "resources check terms.",
		     "%s: a failover to the other region loses the last writes.", sku);
	else if (sku[0] != '\0')
		TELL(v, OK, "replication", NULL, "%s: what is written is there.", sku);
}

extern const struct record_adapter *const baton_driver_adapter;

int azblob_examine(void *lane, struct baton_call *call,
		   void (*found)(void *arg, const struct baton_finding *finding), void *arg)
{
	struct visit v = {.lane = lane, .call = call, .doctor = {.found = found, .arg = arg}};
	const struct azblob_options *o = &v.lane->store->options;
	char key[AZBLOB_KEY_MAX + 1] = "", server[64];
	struct azblob_ask ask;
	struct http_reply reply;

	if (azblob_log_in(v.lane, call) != 0)
		return BATON_OUTCOME_FAILED; /* the caller reports the call's error */
	azblob_ask(v.lane, &ask, "GET", SCRATCH);
	(void)azblob_call(v.lane, call, &ask, &reply);
	if (reply.result != HTTP_OK || (reply.status != 200 && reply.status != 404)) {
		(void)azblob_fail(v.lane, call, &reply);
		return BATON_OUTCOME_FAILED;
	}
	TELL(&v, OK, "reachability", NULL, "The service answers (%s), account %s.",
	     http_header(&reply, "Server", server, sizeof(server)), o->account);
	tell_login(&v);
	tell_clock(&v, &reply);
	tell_container(&v);
	tell_account(&v);
	if (v.is_unfit || !may_write(&v, "PUT") || !may_write(&v, "DELETE"))
		return BATON_OUTCOME_REFUSED;
	if (baton_driver_adapter->list(lane, call, "e/", false, note_record, key) !=
	    BATON_OUTCOME_OK)
		return BATON_OUTCOME_FAILED;
	if (key[0] != '\0')
		tell_records(&v, key);
	if (v.lane->store->has_locks)
		tell_leases(&v);
	return BATON_OUTCOME_OK;
}
