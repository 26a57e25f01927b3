/*
 * worker.c: a connection of db-lib on a thread of its own. mssql.h says why.
 *
 * The worker and its caller share the struct below; the last of the two frees it. A caller never
 * waits for the worker longer than its own deadline. It may give the worker up at any time, and
 * what the worker does after that has no effect.
 *
 * A request that was given up before it was sent is never sent: the same lock protects is_sent and
 * is_given_up.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sybdb.h>
#include <sybfront.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "store/mssql/mssql.h"

#define SLICE_MS 1000 /* the longest poll(), because the boot clock also counts time in suspend */
#define CLOSE_MS 300
#define ROWS_MAX ((size_t)256 << 20)
#define FATAL_LEVEL 20
#define SHORT_MAX 4000

struct mssql_worker {
	pthread_mutex_t lock;
	pthread_cond_t asked;
	pthread_t thread;
	int told; /* eventfd */
	/* Under `lock`: */
	int refs;
	int fd; /* the socket; -1: none */
	bool has_request, is_busy, is_sent, is_given_up;
	/* The worker's while it is busy, else the caller's: */
	struct mssql_request request;
	struct bytes texts[MSSQL_PARAMS_MAX];
	struct mssql_answer answer;
	/* The worker's: */
	DBPROCESS *db;
	char section[32], user[MSSQL_TEXT_MAX], password[MSSQL_TEXT_MAX], database[129];
};

/* ---- on the worker's thread ---- */

static void set_fd(struct mssql_worker *w, int fd)
{
	(void)pthread_mutex_lock(&w->lock);
	w->fd = fd;
	(void)pthread_mutex_unlock(&w->lock);
}

static void disconnect(struct mssql_worker *w)
{
	set_fd(w, -1);
	if (w->db != NULL)
		dbclose(w->db);
	w->db = NULL;
}

/* A worker logs in once. If its connection is lost, the worker is given up with it. */
static bool log_in(struct mssql_worker *w)
{
	LOGINREC *login = dblogin();

	if (login != NULL) {
		(void)DBSETLUSER(login, w->user);
		(void)DBSETLPWD(login, w->password);
		(void)DBSETLDBNAME(login, w->database);
		(void)DBSETLAPP(login, "baton");
		(void)DBSETLCHARSET(login, "UTF-8");
		(void)DBSETLVERSION(login, DBVERSION_74);
		w->db = dbopen(login, w->section);
		dbloginfree(login);
	}
	explicit_bzero(w->password, sizeof(w->password));
	set_fd(w, w->db != NULL ? dbiordesc(w->db) : -1);
	return w->db != NULL;
}

/* This library cuts an nvarchar parameter off after 4,000 characters. */
static int type_of(const struct mssql_param *p)
{
	if (p->text == NULL)
		return SYBINT8;
	return p->n > SHORT_MAX ? SYBNTEXT : SYBVARCHAR;
}

static bool add_parameters(struct mssql_worker *w)
{
	const struct mssql_request *r = &w->request;
	/* The library takes texts without const, although it doesn't change them. */
	union {
		const char *from;
		BYTE *to;
	} sql = {.from = r->sql}, declared = {.from = r->declared};
	bool is_good = dbrpcinit(w->db, "sp_executesql", 0) == SUCCEED &&
		       dbrpcparam(w->db, NULL, 0, SYBVARCHAR, -1, (DBINT)strlen(r->sql), sql.to) ==
			       SUCCEED &&
		       dbrpcparam(w->db, NULL, 0, SYBVARCHAR, -1, (DBINT)strlen(r->declared),
				  declared.to) == SUCCEED;

	for (size_t i = 0; is_good && i < r->n_params; i++) {
		const struct mssql_param *p = &r->params[i];
		BYTE *at = p->text != NULL ? (BYTE *)w->texts[i].at
					   : (BYTE *)&w->request.params[i].number;

		is_good = dbrpcparam(w->db, p->name, 0, type_of(p), -1,
				     p->text != NULL ? (DBINT)p->n : -1, at) == SUCCEED;
	}
	return is_good;
}

/* Stores a row: for each column its size in four bytes, -1 for NULL, and then its text. */
static bool take_row(struct mssql_worker *w)
{
	int n = dbnumcols(w->db);

	for (int i = 1; i <= n; i++) {
		const BYTE *data = dbdata(w->db, i);
		int32_t size = data != NULL ? dbdatlen(w->db, i) : -1;
		int type = dbcoltype(w->db, i);
		char digits[24];
		const char *from = (const char *)data;

		if (data != NULL && (type == SYBINT8 || type == SYBINT4)) {
			long long wide = 0;
			int32_t narrow = 0;

			if (type == SYBINT8)
				(void)memcpy(&wide, data, sizeof(wide));
			else
				(void)memcpy(&narrow, data, sizeof(narrow));
			size = snprintf(digits, sizeof(digits), "%lld", wide + narrow);
			from = digits;
		}
		if (!bytes_add(&w->answer.rows, (const char *)&size, sizeof(size), ROWS_MAX) ||
		    (size > 0 && !bytes_add(&w->answer.rows, from, (size_t)size, ROWS_MAX)))
			return false;
	}
	for (int i = n; i < MSSQL_COLUMNS_MAX; i++) {
		int32_t none = -1;

		if (!bytes_add(&w->answer.rows, (const char *)&none, sizeof(none), ROWS_MAX))
			return false;
	}
	return true;
}

static bool take_results(struct mssql_worker *w)
{
	RETCODE more;
	STATUS row;

	while ((more = dbresults(w->db)) == SUCCEED) {
		while ((row = dbnextrow(w->db)) == REG_ROW)
			if (!take_row(w))
				return false;
		if (row == FAIL)
			return false;
		if (dbnumcols(w->db) == 0 && dbcount(w->db) > 0)
			w->answer.n_changed += (uint64_t)dbcount(w->db);
	}
	return more == NO_MORE_RESULTS;
}

/* Whether the request may be sent. If so, it counts as sent from now on. */
static bool may_send(struct mssql_worker *w)
{
	(void)pthread_mutex_lock(&w->lock);
	bool may = !w->is_given_up;

	w->is_sent = may;
	(void)pthread_mutex_unlock(&w->lock);
	return may;
}

static int execute_request(struct mssql_worker *w)
{
	if (w->db == NULL && !log_in(w))
		return MSSQL_UNSENT;
	bool is_batch = w->request.declared == NULL;

	if ((is_batch ? dbcmd(w->db, w->request.sql) != SUCCEED : !add_parameters(w)) ||
	    !may_send(w)) {
		(void)dbrpcinit(w->db, "", DBRPCRESET); /* frees it, as sending it would */
		return MSSQL_UNSENT;
	}
	bool is_good = is_batch ? dbsqlsend(w->db) == SUCCEED : dbrpcsend(w->db) == SUCCEED;

	is_good = is_good && dbsqlok(w->db) == SUCCEED && take_results(w);
	if (is_good && w->answer.said.error == 0 && !dbdead(w->db))
		return MSSQL_DONE;
	/* An error of the server is an answer: the server has taken the one statement back. Not so
	 * when the error leaves that in doubt. */
	if (w->answer.said.error != 0 && w->answer.said.level < FATAL_LEVEL &&
	    !w->answer.said.is_in_doubt && w->answer.said.library_error == 0 && !dbdead(w->db) &&
	    dbcancel(w->db) == SUCCEED)
		return MSSQL_REFUSED;
	return MSSQL_NO_ANSWER;
}

static void release_worker(struct mssql_worker *w)
{
	(void)pthread_mutex_lock(&w->lock);
	bool is_last = --w->refs == 0;

	(void)pthread_mutex_unlock(&w->lock);
	if (!is_last)
		return;
	for (size_t i = 0; i < MSSQL_PARAMS_MAX; i++)
		bytes_done(&w->texts[i]);
	bytes_done(&w->answer.rows);
	(void)close(w->told);
	(void)pthread_cond_destroy(&w->asked);
	(void)pthread_mutex_destroy(&w->lock);
	free(w);
}

static void *worker_main(void *arg)
{
	struct mssql_worker *w = arg;
	uint64_t one = 1;
	bool is_over = false;

	mssql_said = &w->answer.said;
	while (!is_over) {
		(void)pthread_mutex_lock(&w->lock);
		while (!w->has_request && !w->is_given_up)
			(void)pthread_cond_wait(&w->asked, &w->lock);
		w->has_request = false;
		is_over = w->is_given_up;
		(void)pthread_mutex_unlock(&w->lock);
		if (is_over)
			break;
		int end = execute_request(w);

		(void)pthread_mutex_lock(&w->lock);
		w->answer.end = end;
		w->is_busy = false;
		is_over = w->is_given_up;
		(void)pthread_mutex_unlock(&w->lock);
		(void)!write(w->told, &one, sizeof(one));
	}
	disconnect(w);
	release_worker(w);
	return NULL;
}

/* ---- on the caller's thread ---- */

static struct mssql_worker *worker_new(const struct mssql_login *login)
{
	struct mssql_worker *w = calloc(1, sizeof(*w));

	if (w == NULL)
		return NULL;
	w->told = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->told < 0) {
		free(w);
		return NULL;
	}
	(void)pthread_mutex_init(&w->lock, NULL);
	(void)pthread_cond_init(&w->asked, NULL);
	w->refs = 2;
	w->fd = -1;
	(void)snprintf(w->section, sizeof(w->section), "%s", login->section);
	(void)snprintf(w->user, sizeof(w->user), "%s", login->user);
	(void)snprintf(w->password, sizeof(w->password), "%s", login->password);
	(void)snprintf(w->database, sizeof(w->database), "%s", login->database);
	return w;
}

/* Finds a free place for a worker. One that was given up keeps its place until it has ended. */
static bool has_place(struct mssql_line *line, size_t *place)
{
	for (size_t i = 0; i < MSSQL_STUCK_MAX; i++) {
		struct mssql_worker *w = line->stuck[i];

		if (w != NULL) {
			(void)pthread_mutex_lock(&w->lock);
			bool has_ended = w->refs == 1;

			(void)pthread_mutex_unlock(&w->lock);
			if (!has_ended)
				continue;
			release_worker(w);
			line->stuck[i] = NULL;
		}
		*place = i;
		return true;
	}
	return false;
}

int mssql_worker_start(struct mssql_line *line, const struct mssql_login *login,
		       struct baton_error *err)
{
	size_t place;

	if (!has_place(line, &place))
		return store_fail(err, BATON_E_TIMEOUT,
				  "%d connections to the server hang; baton opens no further "
				  "connection until one of them has ended",
				  MSSQL_STUCK_MAX);
	struct mssql_worker *w = worker_new(login);

	if (w == NULL)
		return store_fail(err, BATON_E_MEMORY, "no memory for a connection");
	if (!thread_start(&w->thread, worker_main, w)) {
		w->refs = 1;
		release_worker(w);
		return store_fail(err, BATON_E_SYSTEM, "no thread for a connection");
	}
	line->worker = w;
	return 0;
}

/* An idle connection can have nothing to read but its end. */
bool mssql_worker_is_lost(struct mssql_worker *w)
{
	(void)pthread_mutex_lock(&w->lock);
	struct pollfd socket = {.fd = w->is_busy ? -1 : w->fd, .events = POLLIN | POLLRDHUP};

	(void)pthread_mutex_unlock(&w->lock);
	return poll(&socket, 1, 0) > 0;
}

bool mssql_worker_ask(struct mssql_worker *w, const struct mssql_request *request)
{
	w->request = *request;
	for (size_t i = 0; i < request->n_params; i++) {
		const struct mssql_param *p = &request->params[i];

		bytes_clear(&w->texts[i]);
		if (p->text != NULL && !bytes_add(&w->texts[i], p->text, p->n, SIZE_MAX))
			return false;
	}
	bytes_clear(&w->answer.rows);
	w->answer.n_changed = 0;
	w->answer.said = (struct mssql_said){0};
	(void)pthread_mutex_lock(&w->lock);
	w->has_request = w->is_busy = true;
	w->is_sent = false;
	(void)pthread_cond_signal(&w->asked);
	(void)pthread_mutex_unlock(&w->lock);
	return true;
}

int mssql_worker_fd(const struct mssql_worker *w)
{
	return w->told;
}

bool mssql_worker_take(struct mssql_worker *w, struct mssql_answer *answer)
{
	uint64_t count;

	(void)!read(w->told, &count, sizeof(count));
	(void)pthread_mutex_lock(&w->lock);
	bool is_done = !w->is_busy;

	(void)pthread_mutex_unlock(&w->lock);
	if (is_done) {
		*answer = w->answer;
		w->answer.rows = (struct bytes){0};
	}
	return is_done;
}

/* Gives the worker up, and shuts its socket down, so that it ends. During a login there is no
 * socket yet: a login has its own time limit. */
static void give_up(struct mssql_line *line, struct mssql_answer *answer)
{
	struct mssql_worker *w = line->worker;
	size_t place = 0;

	(void)pthread_mutex_lock(&w->lock);
	w->is_given_up = true;
	if (w->fd >= 0)
		(void)shutdown(w->fd, SHUT_RDWR);
	answer->end = w->is_sent ? MSSQL_NO_ANSWER : MSSQL_UNSENT;
	(void)pthread_cond_signal(&w->asked);
	(void)pthread_mutex_unlock(&w->lock);
	(void)pthread_detach(w->thread);
	line->worker = NULL;
	if (has_place(line, &place)) /* there is one: see mssql_worker_start() */
		line->stuck[place] = w;
	else
		release_worker(w);
}

bool mssql_worker_await(struct mssql_worker *w, uint64_t deadline_ns, struct mssql_answer *answer)
{
	struct pollfd told = {.fd = w->told, .events = POLLIN};

	while (!mssql_worker_take(w, answer)) {
		uint64_t now_ns = clock_boot_ns();

		if (now_ns >= deadline_ns)
			return false;
		uint64_t left_ms = (deadline_ns - now_ns) / CLOCK_NS_PER_MS + 1;

		(void)poll(&told, 1, left_ms < SLICE_MS ? (int)left_ms : SLICE_MS);
	}
	return true;
}

void mssql_line_wait(struct mssql_line *line, uint64_t deadline_ns, struct mssql_answer *answer)
{
	*answer = (struct mssql_answer){0};
	if (!mssql_worker_await(line->worker, deadline_ns, answer)) {
		give_up(line, answer);
		answer->is_late = true;
		return;
	}
	if (answer->end == MSSQL_UNSENT || answer->end == MSSQL_NO_ANSWER)
		mssql_line_close(line);
}

/*
 * Waits for the end of a worker's thread, so that no thread runs in a module that is no longer
 * used. An idle worker ends at once, and a busy one when its socket is shut down. A worker that
 * hangs in a login has no socket yet: after a moment it is left to end by itself.
 */
static void end_thread(struct mssql_worker *w)
{
	struct timespec until;

	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += CLOSE_MS * (long)CLOCK_NS_PER_MS;
	until.tv_sec += until.tv_nsec / (long)CLOCK_NS_PER_S;
	until.tv_nsec %= (long)CLOCK_NS_PER_S;
	if (pthread_timedjoin_np(w->thread, NULL, &until) != 0)
		(void)pthread_detach(w->thread);
}

void mssql_line_close(struct mssql_line *line)
{
	struct mssql_worker *w = line->worker;

	if (w != NULL) {
		(void)pthread_mutex_lock(&w->lock);
		w->is_given_up = true;
		if (w->fd >= 0)
			(void)shutdown(w->fd, SHUT_RDWR);
		(void)pthread_cond_signal(&w->asked);
		(void)pthread_mutex_unlock(&w->lock);
		end_thread(w);
		release_worker(w);
		line->worker = NULL;
	}
}

void mssql_line_done(struct mssql_line *line)
{
	mssql_line_close(line);
	for (size_t i = 0; i < MSSQL_STUCK_MAX; i++)
		if (line->stuck[i] != NULL)
			release_worker(line->stuck[i]);
}

void mssql_line_forget(struct mssql_line *line)
{
	if (line->worker != NULL && line->worker->fd >= 0)
		(void)close(line->worker->fd);
	line->worker = NULL;
	for (size_t i = 0; i < MSSQL_STUCK_MAX; i++) {
		if (line->stuck[i] != NULL && line->stuck[i]->fd >= 0)
			(void)close(line->stuck[i]->fd);
		line->stuck[i] = NULL;
	}
}

void mssql_rows_each(const struct bytes *rows, mssql_row_found *found, void *arg)
{
	size_t at = 0;

	while (at < rows->n) {
		const char *columns[MSSQL_COLUMNS_MAX];
		size_t sizes[MSSQL_COLUMNS_MAX];

		for (size_t i = 0; i < MSSQL_COLUMNS_MAX; i++) {
			int32_t size;

			(void)memcpy(&size, rows->at + at, sizeof(size));
			at += sizeof(size);
			columns[i] = size >= 0 ? rows->at + at : NULL;
			sizes[i] = size > 0 ? (size_t)size : 0;
			at += sizes[i];
		}
		found(arg, columns, sizes);
	}
}
