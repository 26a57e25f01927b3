/*
 * doctor.c: what a Redis server is like: who answers, what it throws away, what it keeps, who
 * copies it, and whether our user may do all that the scripts do. A server that the other verbs
 * refuse is looked at, too, and nothing is left there but a key that expires within a second.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/doctor.h"
#include "store/redis/redis.h"

#define WORD_SIZE 64

struct visit {
	struct redis_lane *lane;
	struct baton_call *call;
	struct doctor doctor;
	char *info; /* all of INFO */
	bool is_unfit;
};

/* ---- asking ---- */

/* One command; NULL: the connection failed, and the call's error says how. */
static const struct resp *ask(struct visit *v, const char *const *words, size_t n)
{
	struct resp_out *out = &v->lane->wire.out;
	const struct resp *reply;

	/* A refusal may have closed it. */
	if (redis_link(v->lane, v->call) != 0)
		return NULL;
	resp_out_clear(out);
	resp_begin(out, n);
	for (size_t i = 0; i < n; i++)
		resp_text(out, words[i]);
	if (redis_wire_send(&v->lane->wire) != 0 || redis_wire_read(&v->lane->wire, &reply) != 0)
		return NULL;
	return reply;
}

static void word(const struct visit *v, const char *key, char out[WORD_SIZE])
{
	redis_info_get(v->info, key, out, WORD_SIZE);
}

static int64_t number(const struct visit *v, const char *key)
{
	char text[WORD_SIZE];

	word(v, key, text);
	return strtoll(text, NULL, 10);
}

static bool is(const struct visit *v, const char *key, const char *value)
{
	char text[WORD_SIZE];

	word(v, key, text);
	return strcmp(text, value) == 0;
}

#define TELL(v, level, ...) doctor_tell(&(v)->doctor, BATON_FINDING_##level, __VA_ARGS__)

/* ---- what INFO says ---- */

static void look_at_server(struct visit *v)
{
	const struct redis_options *o = &v->lane->store->options;
	const struct redis_host *at = &v->lane->target;
	char version[WORD_SIZE];
	bool is_valkey = is(v, "server_name", "valkey");

	word(v, is_valkey ? "valkey_version" : "redis_version", version);
	TELL(v, OK, "reachability", NULL, "%s answers at %s%s%s.", is_valkey ? "Valkey" : "Redis",
	     o->socket[0] != '\0' ? o->socket : at->name, o->socket[0] != '\0' ? "" : ":",
	     o->socket[0] != '\0' ? "" : at->port);
	v->is_unfit = number(v, "redis_version") < REDIS_VERSION_MIN;
	if (v->is_unfit)
		TELL(v, ERROR, "version", "Upgrade it.", "It is %s; baton needs %d or later.",
		     version, REDIS_VERSION_MIN);
	else
		TELL(v, OK, "version", NULL, "It is %s.", version);
	if (o->mode == REDIS_SINGLE && number(v, "cluster_enabled") != 0)
		TELL(v, WARNING, "cluster", "Say redis+cluster:// in the URL.",
		     "It is a node of a cluster: it serves us only while it has our slot.");
}

static void look_at_encryption(struct visit *v)
{
	const struct redis_options *o = &v->lane->store->options;
	bool is_local = o->socket[0] != '\0' || doctor_is_local(v->lane->target.name);
	bool has_secret = o->password.text[0] != '\0' || o->password.file[0] != '\0';

	doctor_tell_encryption(&v->doctor, v->lane->tls != NULL, is_local,
			       has_secret ? "password" : NULL,
			       "Use rediss://, or tls=1 with Sentinel and Cluster.");
}

static void look_at_memory(struct visit *v)
{
	char policy[WORD_SIZE];
	int64_t used = number(v, "used_memory");
	int64_t most = number(v, "maxmemory");

	word(v, "maxmemory_policy", policy);
	if (strcmp(policy, "noeviction") != 0) {
		v->is_unfit = true;
		TELL(v, ERROR, "policy",
		     "CONFIG SET maxmemory-policy noeviction, or use a server that isn't a "
		     "cache.",
		     "It throws keys away when its memory is full (maxmemory-policy %s), leases "
		     "and terms among them.",
		     policy[0] != '\0' ? policy : "unknown");
	} else if (most > 0 && used > most / 10 * 9) {
		TELL(v, WARNING, "policy", "Raise maxmemory, or remove what isn't needed.",
		     "It throws nothing away, but %lld of %lld MiB are in use: when it is full "
		     "nobody can renew.",
		     (long long)(used >> 20), (long long)(most >> 20));
	} else {
		TELL(v, OK, "policy", NULL, "It throws nothing away (noeviction).");
	}
}

/* "always", "everysec", "no"; "" where our user may not ask. */
static int read_fsync(struct visit *v, char out[WORD_SIZE])
{
	const struct resp *r = ask(v, (const char *const[]){"CONFIG", "GET", "appendfsync"}, 3);

	if (r == NULL)
		return -1;
	(void)snprintf(out, WORD_SIZE, "%.20s", r->type == RESP_ARRAY ? resp_get(r, 1) : "");
	return 0;
}

static int look_at_persistence(struct visit *v)
{
	const struct redis_options *o = &v->lane->store->options;
	bool keeps_log = number(v, "aof_enabled") != 0;
	char fsync[WORD_SIZE];
	double wait_s = (double)o->max_lease_ms / 1000;

	if (read_fsync(v, fsync) != 0)
		return -1;
	bool forgets = !keeps_log || (fsync[0] != '\0' && strcmp(fsync, "always") != 0);

	if (o->durable && number(v, "connected_slaves") > 0)
		TELL(v, ERROR, "persistence", "Take durable=1 out of the URL.",
		     "durable=1 says that it has no replicas, and it has: after a failover two "
		     "could lead.");
	else if (o->durable && forgets)
		TELL(v, ERROR, "persistence",
		     "Set appendonly yes and appendfsync always, or take durable=1 out of the "
		     "URL.",
		     "durable=1 says that it has each write on its disk before it answers, and "
		     "it hasn't (appendonly %s, appendfsync %s): after a crash two could lead.",
		     keeps_log ? "yes" : "no", fsync[0] != '\0' ? fsync : "unknown");
	else if (o->durable && fsync[0] == '\0')
		TELL(v, NOTE, "persistence", "Make sure that appendfsync is always.",
		     "durable=1 is right only with appendfsync always; this user may not ask "
		     "for it.");
	else if (o->durable)
		TELL(v, OK, "persistence", NULL,
		     "Each write is on its disk before it answers, as durable=1 says.");
	else if (!forgets && fsync[0] != '\0' && number(v, "connected_slaves") == 0)
		TELL(v, NOTE, "persistence",
		     "Say durable=1 in every candidate's URL (with all of them stopped, see "
		     "baton-redis(7)).",
		     "Each write is on its disk before it answers, but after a restart nobody "
		     "wins for %.3g s (max_lease), because the URL doesn't say so.",
		     wait_s);
	else
		TELL(v, NOTE, "persistence",
		     "Set max_lease= little above the longest lease; or appendonly yes, "
		     "appendfsync always and durable=1.",
		     "It may forget what it acknowledged when it crashes: so after a restart "
		     "nobody wins for %.3g s (max_lease).",
		     wait_s);
	if (is(v, "aof_last_write_status", "err") || is(v, "rdb_last_bgsave_status", "err"))
		TELL(v, WARNING, "disk", "Look at its log, and at the space on its disk.",
		     "It could not write to its disk the last time: it may refuse all writes.");
	return 0;
}

bool redis_minds_replicas(const char *version)
{
	static const unsigned long since[] = {6, 2, 7};

	for (size_t i = 0; i < sizeof(since) / sizeof(since[0]); i++) {
		char *end;
		unsigned long n = strtoul(version, &end, 10);

		if (n != since[i])
			return n > since[i];
		version = *end == '.' ? end + 1 : end;
	}
	return true;
}

/* A failover can lose what was acknowledged. */
static void tell_of_loss(struct visit *v, long long n_replicas)
{
	static const char text[] =
		"It has replicas (%lld) that follow it later: a failover can lose what was "
		"acknowledged, and two may lead.";
	char version[WORD_SIZE];

	word(v, "redis_version", version);
	if (redis_minds_replicas(version))
		TELL(v, WARNING, "replication",
		     "Say wait=1 in the URL, set min-replicas-to-write 1 on the server, and "
		     "check terms at the resource. " DOCTOR_ACROSS_LOSS,
		     text, n_replicas);
	else
		TELL(v, WARNING, "replication",
		     "Say wait=1 in the URL (before 6.2.7 min-replicas-to-write does nothing for "
		     "scripts), and check terms at the resource. " DOCTOR_ACROSS_LOSS,
		     text, n_replicas);
}

static void look_at_replication(struct visit *v)
{
	uint32_t wanted = v->lane->store->options.wait;
	long long n = number(v, "connected_slaves");

	if (!is(v, "role", "master")) {
		v->is_unfit = true;
		TELL(v, ERROR, "replication", "Name the primary, or use redis+sentinel://.",
		     "This server is a replica.");
	} else if (n < wanted) {
		v->is_unfit = true;
		TELL(v, ERROR, "replication", "Start the replicas, or lower wait= in the URL.",
		     "wait=%u wants that many replicas to confirm each renewal, and %lld are "
		     "there.",
		     wanted, n);
	} else if (n == 0) {
		TELL(v, NOTE, "replication", DOCTOR_ACROSS_LOSS,
		     "It has no replica: while it is down nobody leads, and what it loses is "
		     "lost.");
	} else if (wanted == 0) {
		tell_of_loss(v, n);
	} else {
		TELL(v, NOTE, "replication", "Check terms at the resource. " DOCTOR_ACROSS_LOSS,
		     "%u of %lld replicas confirm each renewal: that a failover loses one is "
		     "rare, and not impossible.",
		     wanted, n);
	}
}

/* ---- what we may ---- */

static int look_at_rights(struct visit *v)
{
	static const char list[] = "Give it the rights that baton-redis(7) lists (ACL SETUSER).";
	char id[24];
	const struct resp *r;

	(void)snprintf(id, sizeof(id), "%llx", (unsigned long long)clock_boot_ns());
	int outcome = redis_call_begin(v->lane, v->call, REDIS_DOCTOR, 1);

	if (outcome != BATON_OUTCOME_OK)
		return -1;
	resp_text(&v->lane->wire.out, id);
	outcome = redis_call_end(v->lane, v->call, REDIS_DOCTOR, &r);
	if (outcome != BATON_OUTCOME_OK && v->call->error.code == BATON_E_DENIED)
		TELL(v, ERROR, "rights", list, "%s", v->call->error.text);
	else if (outcome != BATON_OUTCOME_OK)
		return -1;
	else if (r->n > 0)
		TELL(v, ERROR, "rights", list,
		     "%zu commands of the scripts are refused; the first: %.200s", r->n,
		     resp_get(r, 0));
	else
		TELL(v, OK, "rights", NULL, "Our user may do all that the scripts do.");
	v->is_unfit = v->is_unfit || outcome != BATON_OUTCOME_OK || r->n > 0;
	return 0;
}

/* Last: the connection can't be used for anything else afterwards. */
static int look_at_hints(struct visit *v)
{
	char channel[sizeof(v->lane->store->options.prefix) + 16];

	(void)snprintf(channel, sizeof(channel), "%shint:doctor", v->lane->store->options.prefix);
	const struct resp *r = ask(v, (const char *const[]){"SUBSCRIBE", channel}, 2);

	if (r == NULL)
		return -1;
	if (r->type == RESP_ERROR)
		TELL(v, WARNING, "hints",
		     "Give our user +subscribe, +unsubscribe and "
		     "&{baton}:*.",
		     "We may not subscribe, so standbys would have to poll: %.150s", r->text);
	else
		TELL(v, OK, "hints", NULL, "Standbys are told of changes (pub/sub).");
	redis_unlink(v->lane);
	return 0;
}

/* ---- the namespace ---- */

static int look_at_namespace(struct visit *v, int64_t server_ms)
{
	const struct redis_options *o = &v->lane->store->options;
	char key[sizeof(o->prefix) + 16];
	uint64_t max_ms = 0;
	int64_t until_ms = 0;

	(void)snprintf(key, sizeof(key), "%snamespace", o->prefix);
	const struct resp *r =
		ask(v, (const char *const[]){"HMGET", key, "max_lease", "until", "durable"}, 5);

	if (r == NULL)
		return -1;
	if (r->type != RESP_ARRAY)
		return 0; /* it has been told what we may not */
	if (!resp_get_u64(r, 0, &max_ms)) {
		/* To try a lease would fix the namespace's max_lease. */
		v->is_unfit = true;
		TELL(v, NOTE, "namespace", NULL,
		     "No candidate has used %s yet, so no lease is tried on it.", o->prefix);
	} else if (max_ms != o->max_lease_ms) {
		v->is_unfit = true;
		TELL(v, ERROR, "namespace", "Give all candidates the same max_lease=.",
		     "Candidates use max_lease=%llu on %s, and this URL %llu.",
		     (unsigned long long)max_ms, o->prefix, (unsigned long long)o->max_lease_ms);
	} else if (resp_is(r, 2, o->durable ? "0" : "1")) {
		v->is_unfit = true;
		TELL(v, ERROR, "namespace", "Give all candidates the same durable=.",
		     "Candidates use durable=%d on %s, and this URL %d.", !o->durable, o->prefix,
		     o->durable);
	}
	if (resp_get_i64(r, 1, &until_ms) && until_ms > server_ms)
		TELL(v, NOTE, "guard", NULL,
		     "It has just begun, or has taken over: nobody new wins for another %.1f s.",
		     (double)(until_ms - server_ms) / 1000);
	return 0;
}

static int look_at_clock(struct visit *v, int64_t *server_ms)
{
	struct doctor_trips trips = {.n = 0};

	for (int i = 0; i < DOCTOR_TRIPS; i++) {
		uint64_t began_ns = clock_boot_ns();
		const struct resp *r = ask(v, (const char *const[]){"TIME"}, 1);
		int64_t s = 0, us = 0;

		if (r == NULL)
			return -1;
		if (resp_get_i64(r, 0, &s) && resp_get_i64(r, 1, &us))
			doctor_trip_clock(&trips, began_ns, clock_boot_ns(), s * 1000000 + us);
		*server_ms = s * 1000 + us / 1000;
	}
	if (trips.n > 0)
		doctor_tell_trips(&v->doctor, &trips, "A request");
	doctor_tell_clock(
		&v->doctor, &trips,
		"Leases are measured by the server's: when it is corrected by a jump ahead, "
		"they end early, and two may lead.");
	return 0;
}

/* ---- all of it ---- */

static int read_info(struct visit *v)
{
	const struct resp *r = ask(v, (const char *const[]){"INFO"}, 1);

	if (r == NULL)
		return -1;
	v->info = r->type == RESP_TEXT ? strdup(r->text) : NULL;
	return v->info != NULL ? 0
			       : store_fail(&v->call->error, BATON_E_DENIED,
					    "Redis does not tell what it is (INFO): %.150s",
					    r->type == RESP_ERROR ? r->text : "no memory");
}

static int look(struct visit *v)
{
	int64_t server_ms = 0;

	if (read_info(v) != 0)
		return -1;
	look_at_server(v);
	look_at_encryption(v);
	look_at_memory(v);
	if (look_at_persistence(v) != 0)
		return -1;
	look_at_replication(v);
	doctor_tell_connections(&v->doctor, number(v, "connected_clients"), number(v, "maxclients"),
				"Raise maxclients.");
	if (is(v, "role", "master") && look_at_rights(v) != 0)
		return -1;
	return look_at_clock(v, &server_ms) == 0 && look_at_namespace(v, server_ms) == 0 &&
			       look_at_hints(v) == 0
		       ? 0
		       : -1;
}

int redis_examine(void *l, struct baton_call *call, doctor_found *found, void *arg)
{
	struct visit v = {.lane = l, .call = call, .doctor = {.found = found, .arg = arg}};

	v.lane->examines = true;
	int rc = redis_link(v.lane, call);

	if (rc == 0)
		rc = look(&v);
	v.lane->examines = false;
	free(v.info);
	if (rc != 0) {
		redis_unlink(v.lane);
		return BATON_OUTCOME_FAILED;
	}
	return v.is_unfit ? BATON_OUTCOME_REFUSED : BATON_OUTCOME_OK;
}
