/*
 * doctor.c: examines a Redis server: which server answers, what it evicts, what it keeps, which
 * replicas it has, and whether our user may do all that the scripts do. It also looks at a server
 * that the other verbs refuse. It leaves nothing there but a key that expires within a second.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/doctor.h"
#include "store/redis/redis.h"

#define TEXT_SIZE 64

struct examination {
	struct redis_lane *lane;
	struct baton_call *call;
	struct doctor doctor;
	char *info; /* all of INFO */
	bool is_unfit;
};

/* ---- asking ---- */

/* Sends one command; NULL: the connection has failed, and the call's error says why. */
static const struct resp *examine_ask(struct examination *e, const char *const *command, size_t n)
{
	struct resp_out *out = &e->lane->wire.out;
	const struct resp *reply;

	/* A refusal may have closed the connection. */
	if (redis_connect(e->lane, e->call) != 0)
		return NULL;
	resp_out_clear(out);
	resp_begin(out, n);
	for (size_t i = 0; i < n; i++)
		resp_text(out, command[i]);
	if (redis_wire_send(&e->lane->wire) != 0 || redis_wire_read(&e->lane->wire, &reply) != 0)
		return NULL;
	return reply;
}

static void info_text(const struct examination *e, const char *key, char out[TEXT_SIZE])
{
	redis_info(e->info, key, out, TEXT_SIZE);
}

static int64_t info_number(const struct examination *e, const char *key)
{
	char text[TEXT_SIZE];

	info_text(e, key, text);
	return strtoll(text, NULL, 10);
}

static bool info_is(const struct examination *e, const char *key, const char *value)
{
	char text[TEXT_SIZE];

	info_text(e, key, text);
	return strcmp(text, value) == 0;
}

#define TELL(e, level, ...) doctor_tell(&(e)->doctor, BATON_FINDING_##level, __VA_ARGS__)

/* ---- what INFO says ---- */

static void examine_server(struct examination *e)
{
	const struct redis_options *o = &e->lane->store->options;
	const struct redis_host *at = &e->lane->target;
	char version[TEXT_SIZE];
	bool is_valkey = info_is(e, "server_name", "valkey");

	info_text(e, is_valkey ? "valkey_version" : "redis_version", version);
	TELL(e, OK, "reachability", NULL, "%s answers at %s%s%s.", is_valkey ? "Valkey" : "Redis",
	     o->socket[0] != '\0' ? o->socket : at->name, o->socket[0] != '\0' ? "" : ":",
	     o->socket[0] != '\0' ? "" : at->port);
	e->is_unfit = info_number(e, "redis_version") < REDIS_VERSION_MIN;
	if (e->is_unfit)
		TELL(e, ERROR, "version", "Upgrade it.",
		     "The version is %s; baton needs %d or later.", version, REDIS_VERSION_MIN);
	else
		TELL(e, OK, "version", NULL, "The version is %s.", version);
	if (o->mode == REDIS_SINGLE && info_number(e, "cluster_enabled") != 0)
		TELL(e, WARNING, "cluster", "Say redis+cluster:// in the URL.",
		     "The server is a node of a cluster: it serves baton only while it has the "
		     "slot of baton's keys.");
}

static void examine_encryption(struct examination *e)
{
	const struct redis_options *o = &e->lane->store->options;
	bool is_local = o->socket[0] != '\0' || doctor_is_local(e->lane->target.name);
	bool has_secret = o->password.text[0] != '\0' || o->password.file[0] != '\0';

	doctor_tell_encryption(&e->doctor, e->lane->tls != NULL, is_local,
			       has_secret ? "password" : NULL,
			       "Use rediss://, or tls=1 with Sentinel and Cluster.");
}

static void examine_memory(struct examination *e)
{
	char policy[TEXT_SIZE];
	int64_t used = info_number(e, "used_memory");
	int64_t most = info_number(e, "maxmemory");

	info_text(e, "maxmemory_policy", policy);
	if (strcmp(policy, "noeviction") != 0) {
		e->is_unfit = true;
		TELL(e, ERROR, "policy",
		     "CONFIG SET maxmemory-policy noeviction, or use a server that isn't a "
		     "cache.",
		     "Redis throws keys away when its memory is full (maxmemory-policy %s), leases "
		     "and terms among them.",
		     policy[0] != '\0' ? policy : "unknown");
	} else if (most > 0 && used > most / 10 * 9) {
		TELL(e, WARNING, "policy", "Raise maxmemory, or remove what isn't needed.",
		     "Redis throws nothing away, but %lld of %lld MiB are in use: when it is full "
		     "no candidate can renew.",
		     (long long)(used >> 20), (long long)(most >> 20));
	} else {
		TELL(e, OK, "policy", NULL, "Redis throws nothing away (noeviction).");
	}
}

/* Finds out "always", "everysec" or "no"; "" if our user may not ask. */
static int examine_fsync(struct examination *e, char out[TEXT_SIZE])
{
	const struct resp *r =
		examine_ask(e, (const char *const[]){"CONFIG", "GET", "appendfsync"}, 3);

	if (r == NULL)
		return -1;
	(void)snprintf(out, TEXT_SIZE, "%.20s", r->type == RESP_ARRAY ? resp_get(r, 1) : "");
	return 0;
}

/* Whether another server may take its place. Then its own disk is not all that counts. */
static bool is_replaceable(const struct examination *e)
{
	return e->lane->store->options.mode != REDIS_SINGLE ||
	       info_number(e, "connected_slaves") > 0;
}

static int examine_persistence(struct examination *e)
{
	const struct redis_options *o = &e->lane->store->options;
	bool keeps_log = info_number(e, "aof_enabled") != 0;
	char fsync[TEXT_SIZE];
	double wait_s = (double)o->max_lease_ms / 1000;

	if (examine_fsync(e, fsync) != 0)
		return -1;
	bool forgets = !keeps_log || (fsync[0] != '\0' && strcmp(fsync, "always") != 0);

	if (o->durable && info_number(e, "connected_slaves") > 0)
		TELL(e, ERROR, "persistence", "Take durable=1 out of the URL.",
		     "durable=1 says that the server has no replicas, but it has some: after a "
		     "failover two candidates could lead.");
	else if (o->durable && forgets)
		TELL(e, ERROR, "persistence",
		     "Set appendonly yes and appendfsync always, or take durable=1 out of the "
		     "URL.",
		     "durable=1 says that the server puts each write on its disk before it "
		     "answers, but the server does not (appendonly %s, appendfsync %s): after a "
		     "crash two candidates could lead.",
		     keeps_log ? "yes" : "no", fsync[0] != '\0' ? fsync : "unknown");
	else if (o->durable && fsync[0] == '\0')
		TELL(e, NOTE, "persistence", "Make sure that appendfsync is always.",
		     "durable=1 is right only with appendfsync always; this user may not ask "
		     "for it.");
	else if (o->durable)
		TELL(e, OK, "persistence", NULL,
		     "Each write is on its disk before it answers, as durable=1 says.");
	else if (is_replaceable(e))
		TELL(e, NOTE, "persistence", "Set max_lease= a little above your longest lease.",
		     "%s. So after a start and after a failover no candidate wins for %.3g s "
		     "(max_lease).",
		     !forgets && fsync[0] != '\0'
			     ? "Each write is on its disk before it answers, but a server that "
			       "takes over may not have all of them"
			     : "Redis may lose acknowledged writes in a crash",
		     wait_s);
	else if (!forgets && fsync[0] != '\0')
		TELL(e, NOTE, "persistence",
		     "Say durable=1 in every candidate's URL (with all of them stopped, see "
		     "baton-redis(7)).",
		     "Each write is on its disk before it answers, but after a start no "
		     "candidate wins for %.3g s (max_lease), because the URL doesn't say so.",
		     wait_s);
	else
		TELL(e, NOTE, "persistence",
		     "Set max_lease= a little above your longest lease; or appendonly yes, "
		     "appendfsync always and durable=1.",
		     "Redis may lose acknowledged writes in a crash. So after a start no candidate "
		     "wins for %.3g s (max_lease).",
		     wait_s);
	if (info_is(e, "aof_last_write_status", "err") ||
	    info_is(e, "rdb_last_bgsave_status", "err"))
		TELL(e, WARNING, "disk", "Look at its log, and at the space on its disk.",
		     "Redis could not write to its disk the last time: it may refuse all writes.");
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

/* A failover can lose writes that were acknowledged. */
static void tell_failover_loss(struct examination *e, long long n_replicas)
{
	static const char text[] =
		"The server has replicas (%lld) that follow it later: a failover can lose what was "
		"acknowledged, and two may lead.";
	char version[TEXT_SIZE];

	info_text(e, "redis_version", version);
	if (redis_minds_replicas(version))
		TELL(e, WARNING, "replication",
		     "Say wait=1 in the URL, set min-replicas-to-write 1 on the server, and "
		     "check terms at the resource. " DOCTOR_ACROSS_LOSS,
		     text, n_replicas);
	else
		TELL(e, WARNING, "replication",
		     "Say wait=1 in the URL (before 6.2.7 min-replicas-to-write does nothing for "
		     "scripts), and check terms at the resource. " DOCTOR_ACROSS_LOSS,
		     text, n_replicas);
}

static void examine_replication(struct examination *e)
{
	uint32_t wanted = e->lane->store->options.wait;
	long long n = info_number(e, "connected_slaves");

	if (!info_is(e, "role", "master")) {
		e->is_unfit = true;
		TELL(e, ERROR, "replication", "Name the primary, or use redis+sentinel://.",
		     "This server is a replica.");
	} else if (n < wanted) {
		e->is_unfit = true;
		TELL(e, ERROR, "replication", "Start the replicas, or lower wait= in the URL.",
		     "wait=%u wants that many replicas to confirm each renewal, and %lld are "
		     "there.",
		     wanted, n);
	} else if (n == 0) {
		TELL(e, NOTE, "replication", DOCTOR_ACROSS_LOSS,
		     "The server has no replica: while it is down no candidate leads, and what it "
		     "loses is lost.");
	} else if (wanted == 0) {
		tell_failover_loss(e, n);
	} else {
		TELL(e, NOTE, "replication", "Check terms at the resource. " DOCTOR_ACROSS_LOSS,
		     "%u of %lld replicas confirm each renewal: a failover rarely loses a "
		     "renewal, but it can.",
		     wanted, n);
	}
}

/* ---- our rights ---- */

static int examine_rights(struct examination *e)
{
	static const char list[] = "Give it the rights that baton-redis(7) lists (ACL SETUSER).";
	char id[24];
	const struct resp *r;

	(void)snprintf(id, sizeof(id), "%llx", (unsigned long long)clock_boot_ns());
	int outcome = redis_call_begin(e->lane, e->call, REDIS_DOCTOR, 1);

	if (outcome != BATON_OUTCOME_OK)
		return -1;
	resp_text(&e->lane->wire.out, id);
	outcome = redis_call_end(e->lane, e->call, REDIS_DOCTOR, &r);
	if (outcome != BATON_OUTCOME_OK && e->call->error.code == BATON_E_DENIED)
		TELL(e, ERROR, "rights", list, "%s", e->call->error.text);
	else if (outcome != BATON_OUTCOME_OK)
		return -1;
	else if (r->n > 0)
		TELL(e, ERROR, "rights", list,
		     "%zu commands of the scripts are refused; the first: %.200s", r->n,
		     resp_get(r, 0));
	else
		TELL(e, OK, "rights", NULL, "This user may run every command of baton's scripts.");
	e->is_unfit = e->is_unfit || outcome != BATON_OUTCOME_OK || r->n > 0;
	return 0;
}

/* Comes last, because the connection can't be used for anything else afterwards. */
static int examine_hints(struct examination *e)
{
	char channel[sizeof(e->lane->store->options.prefix) + 16];

	(void)snprintf(channel, sizeof(channel), "%shint:doctor", e->lane->store->options.prefix);
	const struct resp *r = examine_ask(e, (const char *const[]){"SUBSCRIBE", channel}, 2);

	if (r == NULL)
		return -1;
	if (r->type == RESP_ERROR)
		TELL(e, WARNING, "hints",
		     "Give this user +subscribe, +unsubscribe and "
		     "&{baton}:*.",
		     "This user may not subscribe, so standbys would have to poll: %.150s",
		     r->text);
	else
		TELL(e, OK, "hints", NULL, "Standbys are told of changes (pub/sub).");
	redis_disconnect(e->lane);
	return 0;
}

/* ---- the namespace ---- */

static int examine_namespace(struct examination *e, int64_t server_ms)
{
	const struct redis_options *o = &e->lane->store->options;
	char key[sizeof(o->prefix) + 16];
	uint64_t max_ms = 0;
	int64_t until_ms = 0;

	(void)snprintf(key, sizeof(key), "%snamespace", o->prefix);
	const struct resp *r = examine_ask(
		e, (const char *const[]){"HMGET", key, "max_lease", "until", "durable"}, 5);

	if (r == NULL)
		return -1;
	if (r->type != RESP_ARRAY)
		return 0; /* missing rights were reported already */
	if (!resp_get_u64(r, 0, &max_ms)) {
		/* Trying a lease would fix the namespace's max_lease. */
		e->is_unfit = true;
		TELL(e, NOTE, "namespace", NULL,
		     "No candidate has used %s yet, so no lease is tried on it.", o->prefix);
	} else if (max_ms != o->max_lease_ms) {
		e->is_unfit = true;
		TELL(e, ERROR, "namespace", "Give all candidates the same max_lease=.",
		     "Candidates use max_lease=%llu on %s, and this URL %llu.",
		     (unsigned long long)max_ms, o->prefix, (unsigned long long)o->max_lease_ms);
	} else if (resp_is(r, 2, o->durable ? "0" : "1")) {
		e->is_unfit = true;
		TELL(e, ERROR, "namespace", "Give all candidates the same durable=.",
		     "Candidates use durable=%d on %s, and this URL %d.", !o->durable, o->prefix,
		     o->durable);
	}
	if (resp_get_i64(r, 1, &until_ms) && until_ms > server_ms) {
		/* No candidate waits longer than this, even if the server's clock was set back. */
		int64_t left_ms = until_ms - server_ms < (int64_t)o->max_lease_ms
					  ? until_ms - server_ms
					  : (int64_t)o->max_lease_ms;

		TELL(e, NOTE, "guard", NULL,
		     "The server has just begun, or has taken over: no new candidate wins for "
		     "another %.1f s.",
		     (double)left_ms / 1000);
	}
	return 0;
}

static int examine_clock(struct examination *e, int64_t *server_ms)
{
	struct doctor_trips trips = {.n = 0};

	for (int i = 0; i < DOCTOR_TRIPS; i++) {
		uint64_t began_ns = clock_boot_ns();
		const struct resp *r = examine_ask(e, (const char *const[]){"TIME"}, 1);
		int64_t s = 0, us = 0;

		if (r == NULL)
			return -1;
		if (resp_get_i64(r, 0, &s) && resp_get_i64(r, 1, &us))
			doctor_trip_clock(&trips, began_ns, clock_boot_ns(), s * 1000000 + us);
		*server_ms = s * 1000 + us / 1000;
	}
	if (trips.n > 0)
		doctor_tell_trips(&e->doctor, &trips, "A request");
	doctor_tell_clock(
		&e->doctor, &trips,
		"Redis measures leases by the server's clock: if that clock jumps ahead, leases "
		"end early, and two candidates may lead.");
	return 0;
}

/* ---- all of it ---- */

static int examine_read_info(struct examination *e)
{
	const struct resp *r = examine_ask(e, (const char *const[]){"INFO"}, 1);

	if (r == NULL)
		return -1;
	e->info = r->type == RESP_TEXT ? strdup(r->text) : NULL;
	return e->info != NULL ? 0
			       : store_fail(&e->call->error, BATON_E_DENIED,
					    "Redis does not tell what it is (INFO): %.150s",
					    r->type == RESP_ERROR ? r->text : "no memory");
}

static int examine_all(struct examination *e)
{
	int64_t server_ms = 0;

	if (examine_read_info(e) != 0)
		return -1;
	examine_server(e);
	examine_encryption(e);
	examine_memory(e);
	if (examine_persistence(e) != 0)
		return -1;
	examine_replication(e);
	doctor_tell_connections(&e->doctor, info_number(e, "connected_clients"),
				info_number(e, "maxclients"), "Raise maxclients.");
	if (info_is(e, "role", "master") && examine_rights(e) != 0)
		return -1;
	return examine_clock(e, &server_ms) == 0 && examine_namespace(e, server_ms) == 0 &&
			       examine_hints(e) == 0
		       ? 0
		       : -1;
}

int redis_examine(void *l, struct baton_call *call, doctor_found *found, void *arg)
{
	struct examination e = {.lane = l, .call = call, .doctor = {.found = found, .arg = arg}};

	e.lane->examines = true;
	int rc = redis_connect(e.lane, call);

	if (rc == 0)
		rc = examine_all(&e);
	e.lane->examines = false;
	free(e.info);
	if (rc != 0) {
		redis_disconnect(e.lane);
		return BATON_OUTCOME_FAILED;
	}
	return e.is_unfit ? BATON_OUTCOME_REFUSED : BATON_OUTCOME_OK;
}
