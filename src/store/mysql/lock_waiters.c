/*
 * lock_waiters.c: wakes standbys by named locks. The server has no push. But a session that waits
 * for a lock wakes at once when another session frees it, and that serves as an alarm.
 *
 * A process that leads holds a lock on the session of its watch lane. The lock's name follows from
 * the process's lease, with a number from 0 to 7 at the end. To ring, the process takes the lock of
 * the next number and frees the old one. The sessions that wait get the old lock one after the
 * other. Each has it only until the server begins the next statement of the same request, which
 * frees it. The end of the process rings, too.
 *
 * A standby asks which of the eight locks is in use, begins to wait for it on a connection of its
 * own, and then reads the elections. Any release after the question frees that lock. So no release
 * is missed, unless the leader rings eight times between the question and the wait. If none of the
 * locks is in use, or the server can't be relied on (Galera keeps locks per node; behind a proxy a
 * session is not ours), standbys find out when they look, once per poll=.
 *
 * What this must never do: be needed for anything but speed; ask again and again for a lock that is
 * free; or end another session's wait in any other way than by freeing the lock.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/sha256.h"
#include "store/mysql/mysql.h"

#define NUMBERS 8
#define NONE NUMBERS
#define REQUEST_NS (500 * CLOCK_NS_PER_MS)
#define GAP_NS (10 * CLOCK_NS_PER_MS) /* between two rings, so that the others wait again */
#define RETRY_NS (100 * CLOCK_NS_PER_MS)
#define VAIN_MAX 8 /* after these, an alarm is looked for every 26 s */
#define WAIT_S 30

/* The alarm of another process's lease. */
struct alarm {
	struct mysql_lane *lane; /* a connection of its own; NULL: none yet */
	unsigned number;
	bool is_awaited; /* a request is under way */
	unsigned n_vain;
	uint64_t retry_ns;
	char lease[BATON_LEASE_ID_MAX + 1]; /* "": not in use */
};

struct mysql_alarms {
	unsigned long checked; /* the session in which locks were last tried */
	bool is_off;           /* ... where they can't be relied on */
	unsigned long session; /* the session that has our own lock */
	unsigned number;
	bool is_due; /* we must ring as soon as the gap is over */
	uint64_t rung_ns;
	char own[BATON_LEASE_ID_MAX + 1]; /* "": we hold none */
	struct alarm list[RECORD_ALARMS_MAX];
};

static struct baton_call short_call(void)
{
	return (struct baton_call){.deadline_ns = clock_boot_ns() + REQUEST_NS};
}

/* Writes the lock's name as a literal. It has the database in it, because a server's locks are
 * shared by all its databases. */
static void put_name(struct bytes *sql, const struct mysql_store *s, const char *lease,
		     unsigned number)
{
	char text[sizeof(s->options.database) + sizeof(s->prefix) + BATON_LEASE_ID_MAX + 3];
	char hash[SHA256_HEX_SIZE];
	int n = snprintf(text, sizeof(text), "%s/%s/%s", s->options.database, s->prefix, lease);

	sha256_hex(text, (size_t)n, hash);
	bytes_print(sql, "'baton:alarm:%.40s:%u'", hash, number);
}

/* ---- whether locks can be relied on ---- */

struct trial {
	unsigned long holder;
	bool is_galera;
};

static void trial_found(void *arg, MYSQL_ROW row, const unsigned long *sizes)
{
	struct trial *t = arg;

	(void)sizes;
	if (row[0] == NULL || row[1] == NULL)
		return;
	if (strcmp(row[0], "holder") == 0)
		t->holder = strtoul(row[1], NULL, 10);
	else
		t->is_galera = strcmp(row[1], "ON") == 0;
}

bool mysql_try_locks(struct mysql_lane *l, struct baton_call *call, bool *is_galera, bool *is_ours)
{
	struct trial t = {0};
	unsigned long id = mysql_thread_id(l->session);

	bytes_clear(&l->sql);
	bytes_print(&l->sql,
		    "DO GET_LOCK('baton:try:%lu', 0);SELECT 'holder', IS_USED_LOCK('baton:try:%lu')"
		    ";DO RELEASE_LOCK('baton:try:%lu');SHOW VARIABLES LIKE 'wsrep_on'",
		    id, id, id);
	if (mysql_run(l, call, trial_found, &t, NULL) != MYSQL_DONE)
		return false;
	*is_galera = t.is_galera;
	*is_ours = t.holder == id;
	return true;
}

static bool can_ring(struct mysql_lane *l)
{
	struct mysql_alarms *b = l->alarms;
	struct baton_call call = short_call();
	bool is_galera = false, is_ours = false;

	if (l->session == NULL)
		return false;
	if (b->checked != mysql_thread_id(l->session)) {
		unsigned long id = mysql_thread_id(l->session);

		b->is_off =
			!mysql_try_locks(l, &call, &is_galera, &is_ours) || is_galera || !is_ours;
		b->checked = id;
	}
	return !b->is_off && l->session != NULL;
}

/* ---- our own ---- */

static void note_number(void *arg, MYSQL_ROW row, const unsigned long *sizes)
{
	(void)sizes;
	*(unsigned *)arg = row[0] != NULL ? (unsigned)strtoul(row[0], NULL, 10) : 0;
}

/* Takes the lock of that lease (NULL: of none) with the next number, and frees the old one. */
static void change_own(struct mysql_lane *l, const char *lease)
{
	struct mysql_alarms *b = l->alarms;
	struct baton_call call = short_call();
	bool had = b->own[0] != '\0' && b->session == mysql_thread_id(l->session);
	unsigned next = (b->number + 1) % NUMBERS, has = 0;

	bytes_clear(&l->sql);
	if (lease != NULL) {
		bytes_print(&l->sql, "SELECT GET_LOCK(");
		put_name(&l->sql, l->store, lease, next);
		bytes_print(&l->sql, ", 0)%s", had ? ";" : "");
	}
	if (had) {
		bytes_print(&l->sql, "DO RELEASE_LOCK(");
		put_name(&l->sql, l->store, b->own, b->number);
		bytes_print(&l->sql, ")");
	}
	unsigned long session = mysql_thread_id(l->session);
	bool is_done = l->sql.n == 0 || mysql_run(l, &call, note_number, &has, NULL) == MYSQL_DONE;

	(void)snprintf(b->own, sizeof(b->own), "%s", is_done && has == 1 ? lease : "");
	b->session = session;
	b->number = next;
	b->is_due = false;
	b->rung_ns = clock_boot_ns();
}

static void keep_own(struct mysql_lane *l, const struct record_alarms *alarms)
{
	struct mysql_alarms *b = l->alarms;
	bool has = b->own[0] != '\0' && b->session == mysql_thread_id(l->session);
	bool is_right = alarms->own != NULL ? has && strcmp(b->own, alarms->own) == 0 : !has;

	b->is_due = b->is_due || alarms->rings;
	if (!is_right || (b->is_due && has && clock_boot_ns() >= b->rung_ns + GAP_NS))
		change_own(l, alarms->own);
	else if (!has)
		b->is_due = false;
}

/* ---- those of others ---- */

/* Gives a wait up, by cutting its connection. */
static void give_up(struct alarm *x)
{
	struct baton_call call = {.deadline_ns = 0};

	if (x->is_awaited)
		(void)mysql_finish(x->lane, &call, NULL, NULL, NULL);
	x->is_awaited = false;
	x->lease[0] = '\0';
}

static bool is_listed(const struct record_alarms *alarms, const char *lease)
{
	for (size_t i = 0; i < alarms->n_others; i++)
		if (strcmp(alarms->others[i], lease) == 0)
			return true;
	return false;
}

static void choose_others(struct mysql_alarms *b, const struct record_alarms *alarms)
{
	for (size_t i = 0; i < RECORD_ALARMS_MAX; i++)
		if (b->list[i].lease[0] != '\0' && !is_listed(alarms, b->list[i].lease))
			give_up(&b->list[i]);
	for (size_t i = 0; i < alarms->n_others; i++) {
		struct alarm *empty = NULL;
		bool is_there = false;

		for (size_t k = 0; k < RECORD_ALARMS_MAX; k++) {
			is_there = is_there || strcmp(b->list[k].lease, alarms->others[i]) == 0;
			if (b->list[k].lease[0] == '\0')
				empty = &b->list[k];
		}
		if (is_there || empty == NULL)
			continue;
		(void)snprintf(empty->lease, sizeof(empty->lease), "%s", alarms->others[i]);
		empty->n_vain = 0;
		empty->retry_ns = 0;
	}
}

static void try_later(struct alarm *x)
{
	x->retry_ns = clock_boot_ns() + (RETRY_NS << x->n_vain);
	x->n_vain += x->n_vain < VAIN_MAX;
}

static void used_found(void *arg, MYSQL_ROW row, const unsigned long *sizes)
{
	struct alarm *x = arg;

	(void)sizes;
	for (x->number = 0; x->number < NUMBERS && row[x->number] == NULL; x->number++)
		;
}

/* Finds out which number is in use. */
static bool find_number(struct mysql_lane *l, struct alarm *x)
{
	struct baton_call call = short_call();

	bytes_clear(&l->sql);
	for (unsigned i = 0; i < NUMBERS; i++) {
		bytes_print(&l->sql, i == 0 ? "SELECT IS_USED_LOCK(" : ",IS_USED_LOCK(");
		put_name(&l->sql, l->store, x->lease, i);
		bytes_print(&l->sql, ")");
	}
	x->number = NONE;
	return mysql_run(l, &call, used_found, x, NULL) == MYSQL_DONE && x->number != NONE;
}

static bool begin_wait(struct mysql_lane *l, struct alarm *x)
{
	struct baton_call call = short_call();

	if (x->lane == NULL)
		x->lane = mysql_lane_new(l->store, NULL);
	if (x->lane == NULL || !mysql_connect(x->lane, &call, false))
		return false;
	bytes_clear(&x->lane->sql);
	bytes_print(&x->lane->sql, "SELECT GET_LOCK(");
	put_name(&x->lane->sql, l->store, x->lease, x->number);
	bytes_print(&x->lane->sql, ", %d);DO RELEASE_LOCK(", WAIT_S);
	put_name(&x->lane->sql, l->store, x->lease, x->number);
	bytes_print(&x->lane->sql, ")");
	x->is_awaited = mysql_begin(x->lane, &call) == MYSQL_DONE;
	return x->is_awaited;
}

static void tell(const struct alarm *x, record_changed *changed, void *arg)
{
	char key[BATON_LEASE_ID_MAX + 3];

	(void)snprintf(key, sizeof(key), "l/%s", x->lease);
	changed(arg, key);
}

/* Begins the waits that are due. True: a wait has begun, so elections are to be read before the
 * lane sleeps. */
static bool begin_waits(struct mysql_lane *l, record_changed *changed, void *arg)
{
	bool has_news = false;

	for (size_t i = 0; i < RECORD_ALARMS_MAX && l->session != NULL; i++) {
		struct alarm *x = &l->alarms->list[i];

		if (x->lease[0] == '\0' || x->is_awaited || clock_boot_ns() < x->retry_ns)
			continue;
		if (!find_number(l, x) || !begin_wait(l, x)) {
			try_later(x);
			continue;
		}
		tell(x, changed, arg);
		has_news = true;
	}
	return has_news;
}

static void end_wait(struct alarm *x, record_changed *changed, void *arg)
{
	struct baton_call call = short_call();
	unsigned has = 0;
	bool is_done = mysql_finish(x->lane, &call, note_number, &has, NULL) == MYSQL_DONE;

	x->is_awaited = false;
	x->retry_ns = 0;
	if (is_done && has == 1) {
		x->n_vain = 0;
		tell(x, changed, arg);
	} else if (!is_done) {
		try_later(x);
	}
}

/* ---- the verb ---- */

/* When there is something to do here, even if no alarm rings before. */
static uint64_t next_ns(const struct mysql_alarms *b, uint64_t until_ns)
{
	if (b->is_due && b->rung_ns + GAP_NS < until_ns)
		until_ns = b->rung_ns + GAP_NS;
	for (size_t i = 0; i < RECORD_ALARMS_MAX; i++) {
		const struct alarm *x = &b->list[i];

		if (x->lease[0] != '\0' && !x->is_awaited && x->retry_ns < until_ns)
			until_ns = x->retry_ns;
	}
	return until_ns;
}

static void listen_until(struct mysql_alarms *b, uint64_t until_ns, int wake,
			 record_changed *changed, void *arg)
{
	struct pollfd fds[1 + RECORD_ALARMS_MAX] = {{.fd = wake, .events = POLLIN}};

	for (size_t i = 0; i < RECORD_ALARMS_MAX; i++) {
		const struct alarm *x = b != NULL ? &b->list[i] : NULL;

		fds[1 + i] = (struct pollfd){.fd = -1, .events = POLLIN};
		if (x != NULL && x->is_awaited)
			fds[1 + i].fd = mysql_get_socket(x->lane->session);
	}
	uint64_t now_ns = clock_boot_ns();
	uint64_t left_ms = until_ns > now_ns ? (until_ns - now_ns) / CLOCK_NS_PER_MS + 1 : 0;

	if (poll(fds, 1 + RECORD_ALARMS_MAX, left_ms < 60000 ? (int)left_ms : 60000) <= 0)
		return;
	for (size_t i = 0; i < RECORD_ALARMS_MAX; i++)
		if (fds[1 + i].revents != 0)
			end_wait(&b->list[i], changed, arg);
}

void mysql_listen(void *lane, struct baton_call *call, const struct record_alarms *alarms,
		  record_changed *changed, void *arg)
{
	struct mysql_lane *l = lane;

	if (l->alarms == NULL)
		l->alarms = calloc(1, sizeof(*l->alarms));
	if (l->alarms == NULL || !can_ring(l)) {
		listen_until(l->alarms, call->deadline_ns, alarms->wake, changed, arg);
		return;
	}
	keep_own(l, alarms);
	choose_others(l->alarms, alarms);
	if (!begin_waits(l, changed, arg))
		listen_until(l->alarms, next_ns(l->alarms, call->deadline_ns), alarms->wake,
			     changed, arg);
}

void mysql_alarms_free(struct mysql_lane *l)
{
	for (size_t i = 0; l->alarms != NULL && i < RECORD_ALARMS_MAX; i++) {
		if (!l->store->base.forgotten)
			give_up(&l->alarms->list[i]);
		mysql_lane_free(l->alarms->list[i].lane);
	}
	free(l->alarms);
	l->alarms = NULL;
}
