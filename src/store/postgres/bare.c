/*
 * bare.c: mode=advisory&fast=1: session locks and nothing else. No table, no right to make one.
 *
 *  - Each claim has a session of its own (own_leases), which holds the election's lock. Its end is
 *    the claim's end: a claim is never carried over to another session, because nobody could tell
 *    who has led in between.
 *  - The lease is the server's patience: it ends a session that was silent for so long
 *    (idle_session_timeout), and each renewal is a statement on that session, which checks that the
 *    lock is really held (rule 4).
 *  - The term is the server's 64-bit transaction id, which only grows. It is drawn after the lock
 *    was taken, so that a later holder has a higher one, and on the disk before it is used (S3). A
 *    server that is behind a term that was seen is another one, or was restored: refused (S4).
 *  - Who it is, the session tells itself: the text of its last statement, which pg_stat_activity
 *    shows to others of the same role, begins with a comment that holds id, nonce and term.
 *
 * Releases are pushed by NOTIFY, all other ends by a bell (lock_waiters.c).
 */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/postgres/postgres.h"

#define TAG_BEGIN "/* baton_tag "
#define TAG_MAX 900 /* of the 1,024 bytes of a statement's text that a server shows */
#define FIELD '\x1f'

struct bare_session {
	struct bare_session *next;
	struct pg_lane *lane;
	pthread_mutex_t lock; /* of the lane's use; the rest changes under the store's lock, too */
	char lease_id[BATON_LEASE_ID_MAX + 1];
	char name[BATON_NAME_MAX + 1];
	char key[24];
	uint64_t nonce;
	uint64_t term; /* 0: not yet */
	int pid;       /* of the session that has the lock */
	char *renew;   /* the statement with its tag */
	char *look;    /* ... likewise */
	unsigned users;
};

static const char promises[] =
	"A dead leader is replaced at once, and terms grow, among all processes that use the same "
	"database, as long as the server lives. One leader at a time only while it keeps its "
	"sessions: one that it ends (pg_terminate_backend, a restart, a failover) frees the lock "
	"before its holder knows. Terms are the server's transaction ids: they grow through "
	"crashes and restarts, and through a failover that loses nothing. Check them where it "
	"matters. Orders, candidates, pauses and history need tables, and are not there.";

/* As in driver.c. */
const struct baton_traits pg_bare_traits = {
	.min_lease_ns = 300 * CLOCK_NS_PER_MS,
	.own_leases = true,
	.pushes = true,
	.proves_death = true,
	.promises = promises,
};

bool pg_is_bare(const struct pg_store *store)
{
	return store->info.advisory && store->info.fast;
}

int bare_refuse(struct baton_call *call)
{
	store_fail(&call->error, BATON_E_UNSUPPORTED,
		   "mode=advisory&fast=1 keeps no tables, and this needs them: leave fast=1 out.");
	return BATON_OUTCOME_FAILED;
}

/* ---- what a session tells of itself ---- */

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+_";

static void encode(const char *text, size_t n, char *out)
{
	for (size_t i = 0; i < n; i += 3) {
		uint32_t three = 0;

		for (size_t k = 0; k < 3; k++)
			three = three << 8 | (i + k < n ? (unsigned char)text[i + k] : 0);
		for (size_t k = 0; k < 4; k++)
			*out++ = digits[three >> (18 - 6 * k) & 63];
	}
	*out = '\0';
}

/* The bytes of the tag that `at` begins with; zeros behind it. False: it is none, or cut off. */
static bool decode(const char *at, char *out, size_t size)
{
	size_t n = strspn(at, digits);

	(void)memset(out, 0, size);
	if (n == 0 || n % 4 != 0 || strncmp(at + n, " */", 3) != 0 || n / 4 * 3 >= size)
		return false;
	for (size_t i = 0; i < n; i += 4) {
		uint32_t four = 0;

		for (size_t k = 0; k < 4; k++)
			four = four << 6 | (uint32_t)(strchr(digits, at[i + k]) - digits);
		for (size_t k = 0; k < 3; k++)
			*out++ = (char)(four >> (16 - 8 * k) & 255);
	}
	return true;
}

/* lease, nonce, term, length, priority, score, since, owner, address, metadata; what is too long is
 * left out, the last first. */
static void make_tag(const struct bare_session *s, const struct baton_lease *lease,
		     const struct baton_profile *p, char *tag)
{
	char text[TAG_MAX];
	const char *parts[] = {lease->owner, lease->address, p->metadata};
	int n = snprintf(text, sizeof(text),
			 "%s%c%" PRIu64 "%c%" PRIu64 "%c%" PRIu64 "%c%d%c%u%c%" PRId64, s->lease_id,
			 FIELD, s->nonce, FIELD, s->term, FIELD, lease->ttl_ns, FIELD,
			 (int)p->priority, FIELD, p->score_permille, FIELD, clock_wall_ms());

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		size_t length = strlen(parts[i]);
		bool fits = (size_t)n + length + 4 < TAG_MAX / 4 * 3;

		n += snprintf(text + n, sizeof(text) - (size_t)n, "%c%s", FIELD,
			      fits ? parts[i] : "");
	}
	encode(text, (size_t)n, tag);
}

static char *tagged(const char *tag, const char *sql)
{
	struct pg_text out = {0};

	pg_text_add(&out, TAG_BEGIN);
	pg_text_add(&out, tag);
	pg_text_add(&out, " */ ");
	pg_text_add(&out, sql);
	if (!out.failed)
		return out.at;
	pg_text_done(&out);
	return NULL;
}

static char *next_field(char **rest)
{
	char *field = *rest;
	char end[] = {FIELD, '\0'};
	size_t n = strcspn(field, end);

	*rest = field + n + (field[n] != '\0');
	field[n] = '\0';
	return field;
}

/* What is too long is cut off; no candidate makes it so. */
static void take_field(char **rest, char *out, size_t size)
{
	const char *field = next_field(rest);
	size_t n = strnlen(field, size - 1);

	(void)memcpy(out, field, n);
	out[n] = '\0';
}

/* What the holder says of itself; false: it says nothing. */
static bool read_tag(const char *query, struct baton_record *out, uint64_t *ttl_ns)
{
	const char *at = strstr(query, TAG_BEGIN);
	char text[TAG_MAX];
	char *rest = text;

	if (at == NULL || !decode(at + strlen(TAG_BEGIN), text, sizeof(text)))
		return false;
	take_field(&rest, out->lease_id, sizeof(out->lease_id));
	out->nonce = strtoull(next_field(&rest), NULL, 10);
	out->term = strtoull(next_field(&rest), NULL, 10);
	*ttl_ns = strtoull(next_field(&rest), NULL, 10);
	out->priority = (int32_t)strtol(next_field(&rest), NULL, 10);
	out->score_permille = (uint32_t)strtoul(next_field(&rest), NULL, 10);
	out->since_ms = strtoll(next_field(&rest), NULL, 10);
	take_field(&rest, out->leader, sizeof(out->leader));
	take_field(&rest, out->address, sizeof(out->address));
	take_field(&rest, out->metadata, sizeof(out->metadata));
	return out->term > 0 && out->leader[0] != '\0';
}

/* ---- sessions ---- */

static void drop_user(struct pg_store *store, struct bare_session *s)
{
	store_lock(&store->base);
	bool last = --s->users == 0;

	store_unlock(&store->base);
	if (!last)
		return;
	pg_lane_free(s->lane);
	free(s->renew);
	free(s->look);
	(void)pthread_mutex_destroy(&s->lock);
	free(s);
}

bool bare_is_other(struct pg_store *store, const char *name)
{
	store_lock(&store->base);
	const struct bare_session *s = store->sessions;

	while (s != NULL && strcmp(s->name, name) != 0)
		s = s->next;
	store_unlock(&store->base);
	return s == NULL;
}

/* For as long as put() isn't called; NULL: that lease has no session, and so it has no lock. */
static struct bare_session *get(struct pg_store *store, const char *lease_id)
{
	store_lock(&store->base);
	struct bare_session *s = store->sessions;

	while (s != NULL && strcmp(s->lease_id, lease_id) != 0)
		s = s->next;
	if (s != NULL)
		s->users++;
	store_unlock(&store->base);
	if (s != NULL)
		(void)pthread_mutex_lock(&s->lock); /* a call of another lane, which ends in time */
	return s;
}

static void put(struct pg_store *store, struct bare_session *s)
{
	(void)pthread_mutex_unlock(&s->lock);
	drop_user(store, s);
}

static void put_in(struct bare_session **list, struct bare_session *s)
{
	struct pg_store *store = s->lane->store;

	store_lock(&store->base);
	s->next = *list;
	*list = s;
	store_unlock(&store->base);
}

/* Out of the list: nobody finds it any more; whoever uses it closes it at last. */
static void take_out(struct pg_store *store, struct bare_session *s)
{
	store_lock(&store->base);
	struct bare_session **at = &store->sessions;

	while (*at != NULL && *at != s)
		at = &(*at)->next;
	bool listed = *at == s;

	if (listed)
		*at = s->next;
	store_unlock(&store->base);
	if (listed)
		drop_user(store, s);
	pg_watch_nudge(store);
}

/* A session that a call had no time to finish; its user is the caller. NULL: there is none. */
static struct bare_session *half_made(struct pg_store *store, const char *name)
{
	store_lock(&store->base);
	struct bare_session **at = &store->half_made;

	while (*at != NULL && strcmp((*at)->name, name) != 0)
		at = &(*at)->next;
	struct bare_session *s = *at;

	if (s != NULL)
		*at = s->next;
	store_unlock(&store->base);
	return s;
}

void bare_done(struct pg_store *store)
{
	while (store->sessions != NULL)
		take_out(store, store->sessions);
	while (store->half_made != NULL)
		drop_user(store, half_made(store, store->half_made->name));
}

/* In no list yet; its user is the caller. */
static struct bare_session *session_new(struct pg_store *store)
{
	struct bare_session *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	s->lane = pg_lane_new(store);
	if (s->lane == NULL) {
		free(s);
		return NULL;
	}
	s->lane->is_apart = true;
	(void)pthread_mutex_init(&s->lock, NULL);
	s->users = 1;
	return s;
}

/* ---- what was seen of elections: a free one has no record that tells the highest term ---- */

struct bare_seen {
	struct bare_seen *next;
	uint64_t term;
	bool was_free; /* a bell said so, and nobody has looked since */
	char name[];
};

static struct bare_seen *find_seen(const struct pg_store *store, const char *name)
{
	struct bare_seen *s = store->seen;

	while (s != NULL && strcmp(s->name, name) != 0)
		s = s->next;
	return s;
}

static uint64_t highest(struct pg_store *store, const char *name, uint64_t term)
{
	size_t size = strlen(name) + 1;

	store_lock(&store->base);
	struct bare_seen *s = find_seen(store, name);

	if (s == NULL && term > 0 && (s = calloc(1, sizeof(*s) + size)) != NULL) {
		(void)memcpy(s->name, name, size);
		s->next = store->seen;
		store->seen = s;
	}
	if (s != NULL && s->term < term)
		s->term = term;
	if (s != NULL)
		term = s->term;
	store_unlock(&store->base);
	return term;
}

void bare_rung(struct pg_store *store, const char *name)
{
	store_lock(&store->base);
	struct bare_seen *s = find_seen(store, name);

	if (s != NULL)
		s->was_free = true;
	store_unlock(&store->base);
}

/* Once: then it is somebody's, or was. */
static bool was_free(struct pg_store *store, const char *name)
{
	store_lock(&store->base);
	struct bare_seen *s = find_seen(store, name);
	bool was = s != NULL && s->was_free;

	if (s != NULL)
		s->was_free = false;
	store_unlock(&store->base);
	return was;
}

void bare_forget_terms(struct pg_store *store)
{
	while (store->seen != NULL) {
		struct bare_seen *s = store->seen;

		store->seen = s->next;
		free(s);
	}
}

/* ---- looking ---- */

static void clear(struct pg_store *store, struct baton_observation *o)
{
	*o->record = (struct baton_record){.free_in_ns = BATON_STORE_NEVER,
					   .term = highest(store, o->name, 0),
					   .watched = atomic_load(&store->listening)};
}

/* Ours, by what the session says, but we have given it up: it is about to end. */
static bool is_ghost(struct pg_store *store, const struct baton_observation *o,
		     const struct baton_record *said)
{
	if (o->lease_id[0] == '\0' || strcmp(said->lease_id, o->lease_id) != 0)
		return false;
	store_lock(&store->base);
	const struct bare_session *s = store->sessions;

	while (s != NULL && (strcmp(s->lease_id, said->lease_id) != 0 || s->term != said->term))
		s = s->next;
	store_unlock(&store->base);
	return s == NULL;
}

static void fill(struct pg_lane *l, const PGresult *r, int row, struct baton_observation *o)
{
	struct baton_record *out = o->record;
	struct baton_record said = *out;
	uint64_t ttl_ns = 0;
	uint64_t silent_ns = pg_unsigned(r, row, PG_LOCK_SILENT) * 1000;
	bool speaks = read_tag(PQgetvalue(r, row, PG_LOCK_QUERY), &said, &ttl_ns);

	/* Nobody waits for itself. */
	if (!speaks || o->lease_id[0] == '\0' || strcmp(said.lease_id, o->lease_id) != 0)
		out->watched =
			pg_bell_ask(l->store, false, o->name, pg_number(r, row, PG_LOCK_KEY)) &&
			out->watched;
	said.watched = out->watched;
	if (speaks && !is_ghost(l->store, o, &said)) {
		*out = said;
		out->held = true;
		out->free_in_ns = ttl_ns > silent_ns ? ttl_ns - silent_ns : 0;
		out->term = highest(l->store, o->name, out->term);
	} else if (speaks || pg_is_ours(r, row)) {
		out->reserved = true; /* it is just taking it, or just gone */
		out->free_in_ns = CLOCK_NS_PER_MS;
	} else {
		out->held = true;
		pg_name_session(r, row, out->leader, sizeof(out->leader));
	}
}

static int ask(struct pg_lane *l, struct baton_call *call, int statement,
	       struct baton_observation *list, size_t n)
{
	struct pg_text names = {0};

	l->call = call;
	pg_array_names(&names, list, n);
	int outcome = names.failed ? pg_no_memory(l) : pg_begin(l, call, n);

	if (outcome != 0) {
		pg_text_done(&names);
		return outcome;
	}
	pg_push(l, statement, 1, (const char *const[]){names.at});
	if (statement == PG_BARE_LOOK) { /* so that they are ready when time counts */
		pg_push_prepare(l, PG_SESSION);
		pg_push_prepare(l, PG_BARE_TAKE);
	}
	outcome = pg_run(l);
	pg_text_done(&names);
	return outcome;
}

static void observe(struct pg_lane *l, struct baton_call *call, int statement,
		    struct baton_observation *list, size_t n)
{
	int outcome = ask(l, call, statement, list, n);

	if (pg_may_repeat(l, outcome))
		outcome = ask(l, call, statement, list, n);
	for (size_t i = 0; i < n; i++) {
		list[i].outcome = outcome;
		list[i].code = outcome == BATON_OUTCOME_OK ? 0 : call->error.code;
		clear(l->store, &list[i]);
	}
	const PGresult *r = outcome == BATON_OUTCOME_OK ? pg_result(l, 0) : NULL;

	for (int row = 0; r != NULL && row < PQntuples(r); row++) {
		int64_t at = pg_number(r, row, PG_LOCK_INDEX);

		if (at >= 1 && (size_t)at <= n)
			fill(l, r, row, &list[at - 1]);
	}
	pg_results_clear(l);
}

/* The leader is the only one that can be seen. */
int bare_candidates(struct pg_lane *l, struct baton_call *call, const char *name,
		    void (*found)(void *arg, const struct baton_candidate *candidate), void *arg)
{
	struct baton_record *record = calloc(1, sizeof(*record));
	struct baton_observation o = {.name = name, .lease_id = "", .id = "", .record = record};
	struct baton_candidate c = {.is_leader = true, .is_healthy = true};

	if (record == NULL) {
		l->call = call;
		return pg_no_memory(l);
	}
	bare_observe(l, call, &o, 1);
	if (o.outcome == BATON_OUTCOME_OK && record->held) {
		(void)snprintf(c.id, sizeof(c.id), "%s", record->leader);
		(void)snprintf(c.address, sizeof(c.address), "%s", record->address);
		(void)snprintf(c.metadata, sizeof(c.metadata), "%s", record->metadata);
		c.priority = record->priority;
		c.score_permille = record->score_permille;
		c.updated_ms = record->since_ms;
		found(arg, &c);
	}
	free(record);
	return o.outcome;
}

/* ---- claims ---- */

/* Takes the lock, then the term. OK, REFUSED: another has it, or what went wrong. */
static int take(struct bare_session *s, struct baton_call *call, const struct baton_lease *lease)
{
	struct pg_lane *l = s->lane;
	int outcome = pg_begin(l, call, 0);

	if (outcome != 0)
		return outcome;
	pg_push_session(l, lease); /* before the lock: it must not outlive us */
	pg_push(l, PG_BARE_TAKE, 1, (const char *const[]){s->name});
	outcome = pg_run(l);
	if (outcome != BATON_OUTCOME_OK)
		return outcome;
	const PGresult *took = pg_result_of(l, PG_BARE_TAKE);

	pg_copy(s->key, sizeof(s->key), took, 0, 1);
	s->term = pg_unsigned(took, 0, 2);
	s->pid = l->conn.pid;
	atomic_store(&l->store->claimer_pid, s->pid);
	return pg_is_true(took, 0, 0) ? BATON_OUTCOME_OK : BATON_OUTCOME_REFUSED;
}

/* A statement of the session; its result is in lane->results. */
static int say(struct bare_session *s, struct baton_call *call, const char *text, size_t n,
	       const char *const *params)
{
	struct pg_lane *l = s->lane;

	l->call = call;
	l->begun_ns = clock_boot_ns();
	if (l->owes && !pg_drain(l) && l->conn.pg != NULL &&
	    PQstatus(l->conn.pg) == CONNECTION_OK) {
		store_fail(&call->error, BATON_E_TIMEOUT, "PostgreSQL did not answer in time.");
		return BATON_OUTCOME_FAILED;
	}
	if (!pg_is_connected(l))
		return BATON_OUTCOME_REFUSED; /* the session is gone, and its lock with it */
	int outcome = pg_begin(l, call, 0);

	if (outcome != 0)
		return outcome;
	if (l->conn.pid != s->pid)
		return BATON_OUTCOME_REFUSED; /* it broke just then, and this is another */
	pg_push_text(l, text, n, params);
	outcome = pg_run(l);
	return outcome == BATON_OUTCOME_UNKNOWN && l->conn.pg == NULL ? BATON_OUTCOME_REFUSED
								      : outcome;
}

/* Rule 4: whether the lock is held is what the session is asked. */
static int check(struct bare_session *s, struct baton_call *call, const char *text)
{
	int outcome = say(s, call, text, 1, (const char *const[]){s->key});

	if (outcome != BATON_OUTCOME_OK)
		return outcome;
	return pg_number(pg_result(s->lane, 0), 0, 0) == 1 ? BATON_OUTCOME_OK
							   : BATON_OUTCOME_REFUSED;
}

/* What we hold ourselves, its session is asked about: the lane needs none for that. False: it isn't
 * ours, or the session doesn't say so. */
static bool observe_own(struct pg_store *store, struct baton_call *call,
			struct baton_observation *o)
{
	struct bare_session *s = get(store, o->lease_id);
	struct baton_record *out = o->record;

	if (s == NULL)
		return false;
	clear(store, o);
	bool is_held = strcmp(s->name, o->name) == 0 &&
		       check(s, call, s->look) == BATON_OUTCOME_OK &&
		       read_tag(s->look, out, &out->free_in_ns);

	put(store, s);
	out->held = is_held;
	out->watched = true; /* there are no orders, and each renewal looks */
	o->outcome = BATON_OUTCOME_OK;
	o->code = 0;
	return is_held;
}

void bare_observe(struct pg_lane *l, struct baton_call *call, struct baton_observation *list,
		  size_t n)
{
	if (n != 1 || !observe_own(l->store, call, list))
		observe(l, call, PG_LOCKED, list, n);
}

/* Who it is stands in its last statement, and others are told when that is there. */
static int show(struct bare_session *s, struct baton_call *call, const struct baton_lease *lease,
		const struct baton_campaign *c)
{
	const struct pg_store *store = s->lane->store;
	char tag[TAG_MAX / 3 * 4 + 8];

	make_tag(s, lease, &c->profile, tag);
	s->renew = tagged(tag, store->sql[PG_BARE_RENEW]);
	s->look = tagged(tag, store->sql[PG_BARE_OWN]);
	char *text = tagged(tag, store->sql[PG_BARE_SHOW]);
	const char *const params[] = {store->info.schema, s->name};
	bool is_made = s->renew != NULL && s->look != NULL && text != NULL;
	int outcome = is_made ? say(s, call, text, 2, params) : pg_no_memory(s->lane);

	free(text);
	return outcome;
}

static bool is_above(const struct bare_session *s, struct baton_call *call,
		     struct baton_campaign *c)
{
	if (s->term > c->floor && s->term < PG_TERM_MAX)
		return true;
	c->code = BATON_E_CORRUPT;
	store_fail(&call->error, c->code,
		   "The server's transaction ids are behind the term %" PRIu64 " of the election "
		   "\"%.60s\": it is another server, or was restored. Use mode=advisory without "
		   "fast=1.",
		   c->floor, c->name);
	return false;
}

static int claim(struct pg_lane *l, struct baton_call *call, const struct baton_lease *lease,
		 struct baton_campaign *c)
{
	struct bare_session *s = half_made(l->store, c->name);
	int outcome;

	l->call = call;
	if (s == NULL)
		s = session_new(l->store);
	if (s == NULL)
		return pg_no_memory(l);
	/* It takes over the lane's connection: nobody connects on the way to the lock. */
	if (s->lane->conn.pg == NULL && pg_is_connected(l))
		pg_conn_move(&s->lane->conn, &l->conn);
	(void)snprintf(s->lease_id, sizeof(s->lease_id), "%s", lease->id);
	(void)snprintf(s->name, sizeof(s->name), "%s", c->name);
	s->nonce = c->nonce;
	outcome = take(s, call, lease);
	if (outcome == BATON_OUTCOME_OK && !is_above(s, call, c))
		outcome = BATON_OUTCOME_FAILED;
	if (outcome == BATON_OUTCOME_OK) {
		outcome = show(s, call, lease, c);
		/* Its session has ended, so that nothing was taken, or will not be kept. */
		if (outcome == BATON_OUTCOME_REFUSED)
			outcome = BATON_OUTCOME_UNKNOWN;
	}
	if (outcome == BATON_OUTCOME_OK) {
		c->term = s->term;
		c->record->watched = true; /* there are no orders, and each renewal looks */
		(void)highest(l->store, s->name, s->term);
		put_in(&l->store->sessions, s);
		pg_watch_nudge(l->store);
	} else if (s->lane->conn.connecting || outcome == BATON_OUTCOME_REFUSED) {
		put_in(&l->store->half_made, s); /* the next try goes on with it */
	} else {
		drop_user(l->store, s); /* with the session goes the lock */
	}
	return outcome;
}

static void look(struct pg_lane *l, struct baton_call *call, const struct baton_lease *lease,
		 struct baton_campaign *c)
{
	struct baton_observation o = {
		.name = c->name, .lease_id = lease->id, .id = lease->owner, .record = c->record};

	observe(l, call, PG_BARE_LOOK, &o, 1);
	c->outcome = o.outcome == BATON_OUTCOME_OK ? BATON_OUTCOME_REFUSED : BATON_OUTCOME_FAILED;
	c->code = o.code;
}

/* Those who wait for the bell have the lock for a moment, too: longer on a busy machine. */
#define TRIES 5
#define TRY_MS 2

static void campaign_one(struct pg_lane *l, struct baton_call *call,
			 const struct baton_lease *lease, struct baton_campaign *c)
{
	(void)highest(l->store, c->name, c->floor);
	c->outcome = BATON_OUTCOME_REFUSED;
	if (!was_free(l->store, c->name)) {
		look(l, call, lease, c);
		if (c->outcome != BATON_OUTCOME_REFUSED || c->record->held)
			return;
	}
	for (unsigned i = 0; i < TRIES && c->outcome == BATON_OUTCOME_REFUSED &&
			     clock_boot_ns() < call->deadline_ns;
	     i++) {
		if (i > 0)
			(void)poll(NULL, 0, TRY_MS << i);
		c->code = 0;
		c->outcome = claim(l, call, lease, c);
		if (c->code == 0 && c->outcome != BATON_OUTCOME_REFUSED &&
		    c->outcome != BATON_OUTCOME_OK)
			c->code = call->error.code;
	}
	if (c->outcome == BATON_OUTCOME_REFUSED)
		look(l, call, lease, c);
	if (c->outcome == BATON_OUTCOME_REFUSED && !c->record->held)
		c->record->free_in_ns = 0; /* worth another try soon */
	struct bare_session *s = half_made(l->store, c->name);

	if (s != NULL && s->lane->conn.connecting)
		put_in(&l->store->half_made, s);
	else if (s != NULL)
		drop_user(l->store, s); /* who stands by has no session of its own */
}

void bare_campaign(struct pg_lane *l, struct baton_call *call, const struct baton_lease *lease,
		   struct baton_campaign *list, size_t n)
{
	store_ask(&l->store->base, list, n);
	for (size_t i = 0; i < n; i++)
		campaign_one(l, call, lease, &list[i]);
	store_ask(&l->store->base, NULL, 0);
}

/* S6: all three must match. */
static int release_one(struct pg_lane *l, struct baton_call *call, const struct baton_release *r)
{
	struct bare_session *s = get(l->store, r->lease_id);

	call->is_unasked = s == NULL; /* one alone: here each election has a lease of its own */
	if (s == NULL)
		return BATON_OUTCOME_REFUSED;
	int outcome = BATON_OUTCOME_REFUSED;

	if (s->nonce == r->nonce && s->term == r->term && strcmp(s->name, r->name) == 0) {
		const char *const params[] = {s->key, l->store->info.schema, s->name};

		outcome = say(s, call, l->store->sql[PG_BARE_RELEASE], 3, params);
		if (outcome == BATON_OUTCOME_OK || outcome == BATON_OUTCOME_REFUSED)
			take_out(l->store, s);
	}
	put(l->store, s);
	return outcome;
}

void bare_release(struct pg_lane *l, struct baton_call *call, struct baton_release *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		list[i].outcome = release_one(l, call, &list[i]);
		list[i].code = list[i].outcome == BATON_OUTCOME_OK ||
					       list[i].outcome == BATON_OUTCOME_REFUSED
				       ? 0
				       : call->error.code;
	}
}

int bare_renew(struct pg_lane *l, struct baton_call *call, const struct baton_lease *lease,
	       uint32_t *n_held)
{
	struct bare_session *s = get(l->store, lease->id);

	call->is_unasked = s == NULL;
	if (s == NULL)
		return BATON_OUTCOME_REFUSED;
	int outcome = check(s, call, s->renew);

	if (outcome == BATON_OUTCOME_REFUSED)
		take_out(l->store, s);
	put(l->store, s);
	*n_held = outcome == BATON_OUTCOME_OK;
	return outcome;
}

int bare_close(struct pg_lane *l, struct baton_call *call, const struct baton_lease *lease)
{
	struct bare_session *s = get(l->store, lease->id);

	call->is_unasked = true;
	if (s != NULL) {
		take_out(l->store, s);
		put(l->store, s);
	}
	return BATON_OUTCOME_OK;
}

int bare_claims(struct pg_lane *l, struct baton_call *call, const struct baton_lease *lease,
		void (*found)(void *arg, const char *name, uint64_t nonce, uint64_t term),
		void *arg)
{
	struct bare_session *s = get(l->store, lease->id);

	call->is_unasked = true;
	if (s != NULL) {
		found(arg, s->name, s->nonce, s->term);
		put(l->store, s);
	}
	return BATON_OUTCOME_OK;
}
