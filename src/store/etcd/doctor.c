/*
 * doctor.c: examines an etcd cluster: which member answers, its version (some have bugs in their
 * leases), how many members there are, whether it is full, and whether our user has the rights that
 * are needed. It writes nothing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/doctor.h"
#include "store/etcd/etcd.h"

struct visit {
	struct etcd_lane *lane;
	struct baton_call *call;
	struct baton_call quiet; /* for questions that may fail */
	struct doctor doctor;
	bool is_unfit;
};

#define TELL(v, level, ...) doctor_tell(&(v)->doctor, BATON_FINDING_##level, __VA_ARGS__)

/* Sends a request without fields. Returns an outcome, and the answer. */
static int doctor_ask(struct visit *v, const struct etcd_method *method, struct proto *answer)
{
	v->quiet = (struct baton_call){.deadline_ns = v->call->deadline_ns};
	(void)etcd_begin(v->lane);
	return etcd_call(v->lane, &v->quiet, method, answer);
}

/* ---- versions ---- */

struct version {
	int major, minor, patch;
};

/* The first patch version of each line in which a bug is fixed. */
struct fix {
	int patch_3_4, patch_3_5, patch_3_6;
};

static bool is_fixed(const struct version *v, const struct fix *f)
{
	if (v->major != 3 || v->minor > 6)
		return v->major > 3 || v->minor > 6;
	return v->minor == 4   ? v->patch >= f->patch_3_4
	       : v->minor == 5 ? v->patch >= f->patch_3_5
	       : v->minor == 6 ? v->patch >= f->patch_3_6
			       : false;
}

/* Reads "3.5.12"; ignores what follows. */
static bool read_version(const char *text, struct version *out)
{
	int *const parts[] = {&out->major, &out->minor, &out->patch};

	for (int i = 0; i < 3; i++) {
		char *end;
		long number = strtol(text, &end, 10);

		if (end == text || number < 0 || number > 9999 || (i < 2 && *end != '.'))
			return false;
		*parts[i] = (int)number;
		text = end + 1;
	}
	return true;
}

static void judge_version(struct visit *v, const char *text)
{
	static const struct fix stuck_leader = {31, 13, 0};
	static const struct fix revoked = {38, 23, 5};
	struct version version = {0, 0, 0};

	if (!read_version(text, &version)) {
		TELL(v, NOTE, "version", NULL, "The server does not tell its version.");
	} else if (version.major < 3 || (version.major == 3 && version.minor < 4)) {
		v->is_unfit = true;
		TELL(v, ERROR, "version", "Upgrade it.",
		     "The version is %s; baton needs 3.4 or later.", text);
	} else if (!is_fixed(&version, &stuck_leader)) {
		TELL(v, WARNING, "version",
		     "Upgrade it to 3.4.31, 3.5.13 or later, where that is less likely.",
		     "In version %s a member whose disk is stuck renews leases after it was "
		     "deposed, and later ends leases that live (etcd issue 15247). baton lets no "
		     "such renewal count, but may lose a leadership by it.",
		     text);
	} else if (!is_fixed(&version, &revoked)) {
		TELL(v, NOTE, "version", "Upgrade it to 3.4.38, 3.5.23, 3.6.5 or later.",
		     "Version %s may confirm the renewal of a lease that has ended. baton lets no "
		     "such renewal count.",
		     text);
	} else {
		TELL(v, OK, "version", NULL, "The version is %s.", text);
	}
}

static int examine_version(struct visit *v)
{
	struct etcd_store *s = v->lane->store;
	char version[64];
	struct proto answer;
	int outcome = doctor_ask(v, &etcd_status, &answer);
	const struct http_host *host = web_host(&s->web, atomic_load(&s->web.turn));

	(void)proto_text(answer, ETCD_STATUS_VERSION, version, sizeof(version));
	etcd_done(&answer);
	/* A client that isn't let in has reached the server as well. */
	if (outcome != BATON_OUTCOME_OK && v->quiet.error.code != BATON_E_DENIED) {
		v->call->error = v->quiet.error;
		return -1;
	}
	TELL(v, OK, "reachability", NULL, "etcd answers at %s:%s.", host->name, host->port);
	judge_version(v, version);
	return 0;
}

/* ---- the cluster ---- */

static void examine_encryption(struct visit *v)
{
	const struct etcd_options *o = &v->lane->store->options;
	bool has_secret = o->user[0] != '\0';

	doctor_tell_encryption(&v->doctor, o->web.tls, web_is_local(&o->web),
			       has_secret ? "password" : NULL, "Use etcds://.");
}

static void examine_members(struct visit *v)
{
	struct proto answer;
	size_t n_named = v->lane->store->options.web.n_hosts;

	(void)doctor_ask(v, &etcd_members, &answer);
	size_t n = proto_count(answer, ETCD_MEMBERS_LIST);

	etcd_done(&answer);
	if (n == 0)
		return; /* our user may not ask that */
	if (n < 3)
		TELL(v, NOTE, "members", "Run three or five members.",
		     "Number of members: %zu. While one is down, no candidate can win or renew.",
		     n);
	else if (n_named == 1)
		TELL(v, WARNING, "members", "Name several members in the URL, with commas.",
		     "The cluster has %zu members, and the URL names one: while that member is "
		     "down, baton reaches none.",
		     n);
	else
		TELL(v, OK, "members", NULL, "Number of members: %zu, and the URL names %zu.", n,
		     n_named);
}

static void examine_alarms(struct visit *v)
{
	static const char *const names[] = {"NONE", "NOSPACE", "CORRUPT"};
	struct proto answer;
	bool is_asked = doctor_ask(v, &etcd_alarms, &answer) == BATON_OUTCOME_OK;
	struct proto alarm = proto_item(answer, ETCD_ALARMS_LIST, 0);
	uint64_t kind = proto_number(alarm, ETCD_ALARM_KIND);

	if (alarm.at != NULL) {
		v->is_unfit = true;
		TELL(v, ERROR, "alarm",
		     "Compact and defragment it, or repair it, then: etcdctl alarm disarm.",
		     "etcd has raised the alarm %.20s: no candidate can win.",
		     kind < 3 ? names[kind] : "of a kind that is new");
	} else if (is_asked) {
		TELL(v, OK, "alarm", NULL, "etcd has raised no alarm.");
	}
	etcd_done(&answer);
}

/* ---- our rights ---- */

/* Sends a write whose condition can't hold. etcd checks the rights before the condition. */
static int examine_rights(struct visit *v)
{
	const char *prefix = v->lane->store->options.prefix;
	struct etcd_key key = etcd_state_key(v->lane->store, "doctor", "term");
	struct etcd_key held = etcd_lease_key(v->lane->store, 1, "");
	struct bytes *b = etcd_begin(v->lane);

	etcd_compare(b, &key, NULL, ETCD_IS_CREATE, TERM_MAX);
	etcd_put(b, ETCD_THEN, &key, "", 0);
	etcd_put(b, ETCD_THEN, &held, "", 0);
	etcd_get_range(b, ETCD_ELSE, &key, NULL, false);
	int outcome = etcd_tell(v->lane, v->call, &etcd_txn);

	if (outcome != BATON_OUTCOME_OK && v->call->error.code != BATON_E_DENIED)
		return -1;
	v->is_unfit = v->is_unfit || outcome != BATON_OUTCOME_OK;
	if (outcome == BATON_OUTCOME_OK)
		TELL(v, OK, "rights", NULL,
		     "This user may read and write the keys below %s/ and baton's other keys.",
		     prefix);
	else
		TELL(v, ERROR, "rights",
		     "etcdctl role grant-permission ROLE readwrite PREFIX. PREFIX0, as in "
		     "baton-etcd(7).",
		     "%s", v->call->error.text);
	return 0;
}

static int examine_speed(struct visit *v)
{
	struct doctor_trips trips = {.n = 0};
	struct etcd_key key = etcd_lease_key(v->lane->store, 1, "");

	for (int i = 0; i < DOCTOR_TRIPS && !v->is_unfit; i++) {
		uint64_t began_ns = clock_boot_ns();

		etcd_ask_range(etcd_begin(v->lane), &key, NULL, 0, false);
		if (etcd_tell(v->lane, v->call, &etcd_range) != BATON_OUTCOME_OK)
			return -1;
		doctor_trip(&trips, began_ns, clock_boot_ns());
	}
	if (trips.n > 0)
		doctor_tell_trips(&v->doctor, &trips, "A read through the cluster");
	return 0;
}

int etcd_examine(void *l, struct baton_call *call, doctor_found *found, void *arg)
{
	struct visit v = {.lane = l, .call = call, .doctor = {.found = found, .arg = arg}};

	if (examine_version(&v) != 0)
		return BATON_OUTCOME_FAILED;
	examine_encryption(&v);
	if (!v.is_unfit) {
		if (examine_rights(&v) != 0)
			return BATON_OUTCOME_FAILED;
		examine_members(&v);
		examine_alarms(&v);
		if (examine_speed(&v) != 0)
			return BATON_OUTCOME_FAILED;
	}
	return v.is_unfit ? BATON_OUTCOME_REFUSED : BATON_OUTCOME_OK;
}
