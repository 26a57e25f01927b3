/*
 * primary.c: connects a lane to the right server. It finds that server (Sentinel, Cluster), logs
 * in, and checks that the server may be used at all. It refuses replicas, servers that are too old,
 * and servers that evict keys when their memory is full, each with a sentence.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/redis/redis.h"

/* How often the nodes of a cluster may send us on. */
#define HOPS_MAX 5

/* Talks on a new connection, to find out which server answers. 0, or -1 with a sentence. */
typedef int primary_talk(struct redis_lane *lane, const struct redis_host *host, void *arg);

static int sentinel_find_primary(struct redis_lane *lane);
static primary_talk primary_greet;
static int primary_put_login(struct redis_lane *lane, const char *user,
			     const struct redis_secret *secret, bool *is_asked);
static int primary_reach(struct redis_lane *lane, const struct redis_host *host, primary_talk *talk,
			 void *arg);
static bool is_elsewhere_better(const struct redis_lane *lane);

void redis_disconnect(struct redis_lane *lane)
{
	redis_wire_close(&lane->wire);
	lane->is_subscribed = false;
	lane->is_asking = false;
}

/* Goes from node to node, until one says that it has our slot. */
static int cluster_follow(struct redis_lane *lane)
{
	for (int hops = 0; hops < HOPS_MAX; hops++) {
		bool is_moved = false;
		struct redis_host host = lane->target;

		if (primary_reach(lane, &host, primary_greet, &is_moved) != 0)
			return -1;
		if (!is_moved)
			return 0;
	}
	return store_fail(lane->wire.error, BATON_E_UNAVAILABLE,
			  "the cluster sends us from node to node");
}

/* Tries the node that had our slot, and then those of the URL. They share the time, so that a dead
 * node doesn't use up all of it. */
static int cluster_connect(struct redis_lane *lane)
{
	const struct redis_options *o = &lane->store->options;
	uint64_t deadline_ns = lane->wire.net.deadline_ns;
	size_t n = o->n_hosts + (lane->target.name[0] != '\0' ? 1 : 0);
	int rc = -1;

	for (; n > 0 && rc != 0; n--) {
		if (lane->target.name[0] == '\0')
			lane->target = o->hosts[lane->turn++ % o->n_hosts];
		lane->wire.net.deadline_ns = net_share_ns(deadline_ns, n);
		rc = cluster_follow(lane);
		if (rc != 0)
			lane->target.name[0] = '\0'; /* the next host is tried */
		if (rc != 0 && !is_elsewhere_better(lane))
			break;
	}
	lane->wire.net.deadline_ns = deadline_ns;
	return rc;
}

bool redis_is_apart(const struct redis_lane *lane)
{
	return !lane->examines && lane->at != atomic_load(&lane->store->at);
}

static uint64_t hash_mix(uint64_t hash, const char *text)
{
	for (; *text != '\0'; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3;
	return hash;
}

/* Tells the other lanes, and wakes the watch lane, which may be in a long wait. */
static void primary_arrive(struct redis_lane *lane)
{
	const struct redis_server *s = &lane->server;

	if (lane->examines)
		return;
	lane->at = hash_mix(hash_mix(0xcbf29ce484222325, s->run), s->has_followed ? s->replid : "");
	if (atomic_exchange(&lane->store->at, lane->at) != lane->at)
		redis_watch_wake(lane);
}

int redis_connect(struct redis_lane *lane, struct baton_call *call)
{
	const struct redis_options *o = &lane->store->options;
	int rc = 0;

	lane->wire.net.deadline_ns = call->deadline_ns;
	lane->wire.error = &call->error;
	if (net_is_sound(&lane->wire.net) && !redis_is_apart(lane))
		return 0;
	redis_disconnect(lane);
	if (o->mode == REDIS_CLUSTER) {
		rc = cluster_connect(lane);
	} else {
		if (o->mode == REDIS_SENTINEL)
			rc = sentinel_find_primary(lane);
		else
			lane->target = o->hosts[0];
		if (rc == 0)
			rc = primary_reach(lane, &lane->target, primary_greet, &(bool){false});
	}
	if (rc != 0)
		redis_disconnect(lane);
	else
		primary_arrive(lane);
	return rc;
}

/* For one call only. lane->target stays, so the next call begins with the slot's owner. */
int redis_connect_asked(struct redis_lane *lane, struct baton_call *call)
{
	redis_disconnect(lane);
	lane->wire.net.deadline_ns = call->deadline_ns;
	lane->wire.error = &call->error;
	lane->is_asking = true;
	if (primary_reach(lane, &lane->asked, primary_greet, &(bool){false}) == 0)
		return 0;
	redis_disconnect(lane);
	return -1;
}

/* ---- one host ---- */

/* Whether to try another host: no server answered, or not the right one. If a server refuses us,
 * another one would do so, too. */
static bool is_elsewhere_better(const struct redis_lane *lane)
{
	return lane->wire.error->code == BATON_E_UNAVAILABLE;
}

/* A talk with its arguments. */
struct primary_visit {
	struct redis_lane *lane;
	const struct redis_host *host;
	primary_talk *talk;
	void *arg;
};

static int visit_talk(void *arg)
{
	const struct primary_visit *v = arg;

	resp_in_clear(&v->lane->wire.in);
	if (v->talk(v->lane, v->host, v->arg) == 0)
		return 0;
	return is_elsewhere_better(v->lane) ? NET_ELSEWHERE : -1;
}

static int primary_reach(struct redis_lane *lane, const struct redis_host *host, primary_talk *talk,
			 void *arg)
{
	const struct redis_options *o = &lane->store->options;
	struct redis_wire *w = &lane->wire;
	struct primary_visit visit = {.lane = lane, .host = host, .talk = talk, .arg = arg};
	struct net_place place = {.host = host->name, .port = host->port, .tls = lane->tls};

	place.name = o->files.server_name[0] != '\0' ? o->files.server_name : host->name;
	w->error->code = 0;
	redis_wire_close(w);
	int rc = o->socket[0] == '\0' ? net_reach(&w->net, &place, visit_talk, &visit)
		 : net_open_unix(&w->net, o->socket) == 0 ? visit_talk(&visit)
							  : -1;

	if (rc != 0 && w->error->code == 0)
		(void)redis_wire_fail(w);
	return rc == 0 ? 0 : -1;
}

/* ---- what the server tells of itself ---- */

void redis_info(const char *info, const char *key, char *out, size_t size)
{
	char field[40];
	int n = snprintf(field, sizeof(field), "\n%s:", key);
	const char *at = strstr(info, field);

	out[0] = '\0';
	if (at != NULL)
		(void)snprintf(out, size, "%.*s", (int)strcspn(at + n, "\r\n"), at + n);
}

static int primary_check_version(struct redis_wire *w, const char *info)
{
	char version[32];

	redis_info(info, "redis_version", version, sizeof(version));
	if (strtol(version, NULL, 10) >= REDIS_VERSION_MIN)
		return 0;
	return store_fail(w->error, BATON_E_UNSUPPORTED,
			  "Redis %s is too old: baton needs %d or later", version,
			  REDIS_VERSION_MIN);
}

/* A2, A3: if the server evicts a lease early, there may be two leaders. If it evicts a term, an old
 * term may look new. */
static int primary_check_memory(struct redis_wire *w, const char *info)
{
	char policy[32];

	redis_info(info, "maxmemory_policy", policy, sizeof(policy));
	if (strcmp(policy, "noeviction") == 0)
		return 0;
	return store_fail(w->error, BATON_E_UNSUPPORTED,
			  "this Redis throws keys away when its memory is full (maxmemory-policy "
			  "%s), leases among them; set it to noeviction, or use another server",
			  policy[0] != '\0' ? policy : "unknown");
}

static int primary_check_role(struct redis_wire *w, const char *info)
{
	char role[16];

	redis_info(info, "role", role, sizeof(role));
	if (strcmp(role, "master") == 0)
		return 0;
	return store_fail(w->error, BATON_E_UNAVAILABLE,
			  "this Redis is a replica (role %s); name the primary, or use "
			  "redis+sentinel://",
			  role);
}

static void primary_note_stream(struct redis_server *server, const char *info)
{
	char offset[32];

	redis_info(info, "master_replid", server->replid, sizeof(server->replid));
	redis_info(info, "second_repl_offset", offset, sizeof(offset));
	server->has_followed = strcmp(offset, "-1") != 0;
}

/* ---- greeting ---- */

enum step { STEP_AUTH, STEP_SELECT, STEP_NAME, STEP_SERVER, STEP_MEMORY, STEP_ROLE, STEP_PROBE };

static int login_read_secret(struct redis_lane *lane, const struct redis_secret *secret, char *out,
			     size_t size)
{
	if (secret->file[0] == '\0') {
		(void)snprintf(out, size, "%s", secret->text);
		return 0;
	}
	int fd = open(secret->file, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, out, size - 1);

	if (fd >= 0)
		(void)close(fd);
	if (n < 0) {
		char reason[80];

		return store_fail(lane->wire.error, BATON_E_DENIED,
				  "can't read the password in %.120s: %s", secret->file,
				  strerror_r(errno, reason, sizeof(reason)));
	}
	out[n] = '\0';
	out[strcspn(out, "\r\n")] = '\0';
	return 0;
}

/* Adds AUTH, if there is a password. */
static int primary_put_login(struct redis_lane *lane, const char *user,
			     const struct redis_secret *secret, bool *is_asked)
{
	struct resp_out *out = &lane->wire.out;
	char password[REDIS_PATH_MAX] = "";

	if (login_read_secret(lane, secret, password, sizeof(password)) != 0)
		return -1;
	*is_asked = password[0] != '\0';
	if (*is_asked) {
		resp_begin(out, user[0] != '\0' ? 3 : 2);
		resp_text(out, "AUTH");
		if (user[0] != '\0')
			resp_text(out, user);
		resp_text(out, password);
	}
	explicit_bzero(password, sizeof(password));
	return 0;
}

static int greeting_send(struct redis_lane *lane, enum step *steps, size_t *n)
{
	const struct redis_options *o = &lane->store->options;
	struct resp_out *out = &lane->wire.out;
	static const char *const lanes[] = {"renew", "campaign", "watch"};
	char name[32];
	bool is_asked;

	resp_out_clear(out);
	if (primary_put_login(lane, o->user, &o->password, &is_asked) != 0)
		return -1;
	if (is_asked)
		steps[(*n)++] = STEP_AUTH;
	if (o->db != 0) {
		resp_begin(out, 2);
		resp_text(out, "SELECT");
		resp_number(out, o->db);
		steps[(*n)++] = STEP_SELECT;
	}
	resp_begin(out, 3);
	resp_text(out, "CLIENT");
	resp_text(out, "SETNAME");
	(void)snprintf(name, sizeof(name), "baton-%s", lanes[lane->kind]);
	resp_text(out, name);
	steps[(*n)++] = STEP_NAME;
	static const char *const sections[] = {"server", "memory", "replication"};

	for (int i = 0; i < 3; i++) {
		resp_begin(out, 2);
		resp_text(out, "INFO");
		resp_text(out, sections[i]);
		steps[(*n)++] = (enum step)((int)STEP_SERVER + i);
	}
	if (o->mode == REDIS_CLUSTER && !lane->is_asking) { /* is this the node of our slot? */
		resp_begin(out, 2);
		resp_text(out, "EXISTS");
		resp_text(out, o->prefix);
		steps[(*n)++] = STEP_PROBE;
	}
	return redis_wire_send(&lane->wire);
}

bool redis_redirect(const char *text, const char *kind, struct redis_host *to)
{
	char host[BATON_NAME_MAX + 1];
	long port = 0;
	const char *at = strrchr(text, ' ');
	const char *colon = at != NULL ? strrchr(at, ':') : NULL;

	if (strncmp(text, kind, strlen(kind)) != 0 || colon == NULL)
		return false;
	port = strtol(colon + 1, NULL, 10);
	(void)snprintf(host, sizeof(host), "%.*s", (int)(colon - at - 1), at + 1);
	if (port <= 0 || port > 65535)
		return false;
	if (host[0] != '\0') /* "": the same host, another port */
		(void)snprintf(to->name, sizeof(to->name), "%s", host);
	(void)snprintf(to->port, sizeof(to->port), "%ld", port);
	return true;
}

/* How much of an error may be shown: a server that doesn't know AUTH repeats the password. */
static size_t sayable(const char *text)
{
	const char *repeated = strstr(text, "with args");

	return repeated != NULL ? (size_t)(repeated - text) : strlen(text);
}

static int least(size_t n, int max)
{
	return n < (size_t)max ? (int)n : max;
}

static int greeting_refuse(struct redis_lane *lane, const char *text)
{
	int n = least(sayable(text), 180);
	bool is_sure;
	int code = redis_judge(text, &is_sure);

	if (strncmp(text, "NOPERM", 6) == 0)
		return store_fail(
			lane->wire.error, code,
			"Redis refuses our user a command that baton needs (the list is in "
			"baton-redis(7)): %.*s",
			least((size_t)n, 100), text);
	return store_fail(lane->wire.error, code, "Redis refuses us: %.*s", n, text);
}

static int greeting_hear(struct redis_lane *lane, enum step step, const struct resp *r,
			 bool *is_moved)
{
	struct redis_wire *w = &lane->wire;

	if (r->type == RESP_ERROR && step == STEP_NAME)
		return 0; /* the name is only for administrators */
	if (r->type == RESP_ERROR && step == STEP_PROBE) {
		*is_moved = redis_redirect(r->text, "MOVED ", &lane->target);
		/* While the owner moves the slot away, it sends us on for keys that it doesn't
		 * have. */
		if (*is_moved || strncmp(r->text, "ASK ", 4) == 0)
			return 0;
	}
	if (r->type == RESP_ERROR)
		return greeting_refuse(lane, r->text);
	if (lane->examines)
		return 0;
	switch (step) {
	case STEP_SERVER:
		redis_info(r->text, "run_id", lane->server.run, sizeof(lane->server.run));
		return primary_check_version(w, r->text);
	case STEP_MEMORY: return primary_check_memory(w, r->text);
	case STEP_ROLE: /* in a cluster, a replica sends us on */
		primary_note_stream(&lane->server, r->text);
		return lane->store->options.mode == REDIS_CLUSTER ? 0
								  : primary_check_role(w, r->text);
	default: return 0;
	}
}

/* A server that hangs up at our first words may speak TLS or not, other than we do. With TLS 1.3, a
 * server also refuses a client's certificate in this way. */
static void greeting_doubt(struct redis_lane *lane)
{
	struct baton_error *error = lane->wire.error;
	char said[160];

	if (lane->store->options.socket[0] != '\0' || error->code != BATON_E_UNAVAILABLE ||
	    clock_boot_ns() >= lane->wire.net.deadline_ns)
		return;
	(void)snprintf(said, sizeof(said), "%.*s", (int)sizeof(said) - 1, error->text);
	(void)store_fail(error, error->code, "%s; %s", said,
			 lane->tls != NULL
				 ? "it may want a certificate of ours, or another (cert=, key=)"
				 : "if that port speaks TLS, say rediss:// or tls=1");
}

/* arg: a bool that says whether a cluster's node has sent us on, to lane->target. */
static int primary_greet(struct redis_lane *lane, const struct redis_host *host, void *arg)
{
	bool *is_moved = arg;
	enum step steps[8];
	size_t n = 0;

	(void)host;

	lane->server = (struct redis_server){.has_followed = false};
	int rc = greeting_send(lane, steps, &n);

	if (rc != 0)
		greeting_doubt(lane);
	for (size_t i = 0; i < n && rc == 0; i++) {
		const struct resp *reply;

		rc = redis_wire_read(&lane->wire, &reply);
		if (rc == 0)
			rc = greeting_hear(lane, steps[i], reply, is_moved);
		else if (i == 0)
			greeting_doubt(lane);
	}
	resp_out_clear(&lane->wire.out);
	return rc;
}

/* ---- Sentinel ---- */

/* What one Sentinel says of the primary. */
struct sentinel_answer {
	struct redis_host primary;
	uint64_t epoch; /* of its configuration; each failover has a higher one; 0: not told */
};

static void sentinel_put_question(struct resp_out *out, const char *question, const char *master)
{
	resp_begin(out, 3);
	resp_text(out, "SENTINEL");
	resp_text(out, question);
	resp_text(out, master);
}

/* The reply is pairs of names and values. It may be an error, because a user may lack the right to
 * ask. */
static uint64_t sentinel_epoch(const struct resp *reply)
{
	uint64_t epoch = 0;

	for (size_t i = 0; reply->type == RESP_ARRAY && i + 1 < reply->n; i += 2)
		if (resp_is(reply, i, "config-epoch"))
			(void)resp_get_u64(reply, i + 1, &epoch);
	return epoch;
}

static int sentinel_ask(struct redis_lane *lane, const struct redis_host *sentinel, void *arg)
{
	struct sentinel_answer *said = arg;
	struct redis_wire *w = &lane->wire;
	const struct redis_options *o = &lane->store->options;
	const struct resp *reply;
	bool is_asked;

	resp_out_clear(&w->out);
	if (primary_put_login(lane, o->sentinel_user, &o->sentinel_password, &is_asked) != 0)
		return -1;
	sentinel_put_question(&w->out, "GET-MASTER-ADDR-BY-NAME", o->master);
	sentinel_put_question(&w->out, "MASTER", o->master);
	int rc = redis_wire_send(w);

	resp_out_clear(&w->out);
	for (size_t i = is_asked ? 2 : 1; i > 0 && rc == 0; i--) {
		rc = redis_wire_read(w, &reply);
		if (rc == 0 && reply->type == RESP_ERROR)
			rc = store_fail(w->error, BATON_E_DENIED,
					"the Sentinel %.80s refuses us (its own user and password "
					"are sentinel_user and sentinel_password_file): %.*s",
					sentinel->name, least(sayable(reply->text), 80),
					reply->text);
	}
	if (rc != 0)
		return -1;
	if (reply->type != RESP_ARRAY || reply->n != 2)
		return store_fail(w->error, BATON_E_UNAVAILABLE,
				  "the Sentinel %.80s knows no primary called \"%.80s\"",
				  sentinel->name, o->master);
	(void)snprintf(said->primary.name, sizeof(said->primary.name), "%s", resp_get(reply, 0));
	(void)snprintf(said->primary.port, sizeof(said->primary.port), "%.7s", resp_get(reply, 1));
	if (redis_wire_read(w, &reply) != 0)
		return -1;
	said->epoch = sentinel_epoch(reply);
	return 0;
}

static bool is_same_host(const struct redis_host *a, const struct redis_host *b)
{
	return strcmp(a->name, b->name) == 0 && strcmp(a->port, b->port) == 0;
}

/* Keeps the highest epoch that was seen. */
static void sentinel_note_epoch(struct redis_store *s, uint64_t epoch)
{
	uint_fast64_t seen = atomic_load(&s->epoch);

	while (seen < epoch && !atomic_compare_exchange_weak(&s->epoch, &seen, epoch))
		;
}

/*
 * The Sentinels that know of the last failover decide. While these name different primaries, a
 * failover is going on. If all Sentinels of the URL name the same primary, it counts even if their
 * epochs are lower than before, because Sentinels that were set up anew count from one again.
 */
static int sentinel_choose(struct redis_lane *lane, const struct sentinel_answer *said, size_t n)
{
	const struct redis_options *o = &lane->store->options;
	uint64_t epoch = atomic_load(&lane->store->epoch);
	size_t same = 0, known = 0;

	for (size_t i = 0; i < n; i++) {
		epoch = said[i].epoch > epoch ? said[i].epoch : epoch;
		same += is_same_host(&said[0].primary, &said[i].primary);
	}
	if (same == o->n_hosts) {
		lane->target = said[0].primary;
		return 0;
	}
	for (size_t i = 0; i < n; i++) {
		if (said[i].epoch < epoch)
			continue;
		if (known++ > 0 && !is_same_host(&lane->target, &said[i].primary))
			return store_fail(lane->wire.error, BATON_E_UNAVAILABLE,
					  "the Sentinels don't agree on the primary \"%.80s\": it "
					  "is being replaced",
					  o->master);
		lane->target = said[i].primary;
	}
	if (known == 0)
		return store_fail(
			lane->wire.error, BATON_E_UNAVAILABLE,
			"the Sentinels that answer have not heard of the last failover of "
			"\"%.80s\" yet",
			o->master);
	sentinel_note_epoch(lane->store, epoch);
	return 0;
}

/*
 * One Sentinel may be on the wrong side of a partition, so most of those in the URL must answer.
 * Besides, an old primary calls itself primary for seconds after its restart, and most Sentinels
 * may not have heard yet that it was replaced. We must not go back to such a primary.
 */
static int sentinel_find_primary(struct redis_lane *lane)
{
	const struct redis_options *o = &lane->store->options;
	struct redis_wire *w = &lane->wire;
	struct sentinel_answer said[REDIS_HOSTS_MAX];
	uint64_t deadline_ns = w->net.deadline_ns;
	size_t n = 0;

	for (size_t i = 0; i < o->n_hosts; i++) {
		uint64_t now_ns = clock_boot_ns();
		uint64_t left_ns = now_ns < deadline_ns ? deadline_ns - now_ns : 0;

		/* A Sentinel that doesn't answer must leave time for the others, and for the
		 * primary. */
		w->net.deadline_ns = now_ns + left_ns / (o->n_hosts - i + 1);
		n += primary_reach(lane, &o->hosts[i], sentinel_ask, &said[n]) == 0;
	}
	redis_wire_close(w);
	w->net.deadline_ns = deadline_ns;
	if (2 * n > o->n_hosts)
		return sentinel_choose(lane, said, n);
	if (n == 0)
		return -1; /* the last Sentinel's sentence says why */
	return store_fail(w->error, BATON_E_UNAVAILABLE,
			  "%zu of %zu Sentinels of the primary \"%.80s\" answer: most have to", n,
			  o->n_hosts, o->master);
}

/* ---- error replies ---- */

/* Redis 6 puts its own words before the error of a script's command: "ERR Error running script
 * (call to ...): @user_script:1: @user_script: 1: -READONLY You can't ...". */
const char *redis_error(const char *text)
{
	const char *inner =
		strncmp(text, "ERR Error running script", 24) == 0 ? strstr(text, ": -") : NULL;

	return inner != NULL ? inner + 3 : text;
}

int redis_judge(const char *text, bool *is_sure)
{
	static const struct {
		const char *kind;
		int code;
	} kinds[] = {
		{"NOAUTH", BATON_E_DENIED},
		{"WRONGPASS", BATON_E_DENIED},
		{"NOPERM", BATON_E_DENIED},
		{"READONLY", BATON_E_UNAVAILABLE},
		{"LOADING", BATON_E_UNAVAILABLE},
		{"MASTERDOWN", BATON_E_UNAVAILABLE},
		{"NOSCRIPT", BATON_E_UNAVAILABLE},
		{"OOM", BATON_E_UNAVAILABLE},
		{"MISCONF", BATON_E_UNAVAILABLE},
		{"NOREPLICAS", BATON_E_UNAVAILABLE},
		{"BUSY", BATON_E_BUSY},
		{"CLUSTERDOWN", BATON_E_UNAVAILABLE},
		{"MOVED", BATON_E_UNAVAILABLE},
		{"ASK", BATON_E_UNAVAILABLE},
		{"TRYAGAIN", BATON_E_UNAVAILABLE},
		{"WRONGTYPE", BATON_E_CORRUPT},
	};
	const char *said = redis_error(text);
	size_t n = strcspn(said, " ");

	*is_sure = false;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strlen(kinds[i].kind) != n || memcmp(kinds[i].kind, said, n) != 0)
			continue;
		/* An error from inside a script is not sure: the script may have written before. */
		*is_sure = strstr(text, "script") == NULL && kinds[i].code != BATON_E_CORRUPT;
		return kinds[i].code;
	}
	if (strncmp(text, "ERR AUTH", 8) == 0 || strstr(text, "invalid password") != NULL) {
		*is_sure = true;
		return BATON_E_DENIED;
	}
	return BATON_E_CORRUPT;
}
