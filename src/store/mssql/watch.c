/*
 * watch.c: push. SQL Server doesn't tell its clients what has changed. So a request waits at the
 * server: every 50 ms it looks for a row below e/ with a row version above those that were seen,
 * and answers when there is one, or after a while. It has a connection of its own, because the
 * watch lane also reads.
 *
 * "Seen" is every row version below MIN_ACTIVE_ROWVERSION(), which is read before the rows. A row
 * version of a transaction that is still open is never below it, so none is missed.
 *
 * A request outlives the call that began it: the next call goes on waiting for its answer.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/mssql/mssql.h"

#define TICKS 20 /* of 50 ms each: how long a request waits at the server */
#define TICK_NS (50 * CLOCK_NS_PER_MS)
#define GRACE_NS (5 * CLOCK_NS_PER_S) /* how late an answer may be */
#define SLICE_MS 1000

struct news {
	struct mssql_lane *lane;
	record_changed *changed;
	void *arg;
	int64_t next, n_rows;
};

/* A row without a key has the numbers; each other row is a change. */
static void row_found(void *arg, const char *const *columns, const size_t *sizes)
{
	struct news *news = arg;
	size_t skip = mssql_prefix_size(news->lane);
	struct mssql_key key;

	if (columns[0] == NULL && columns[1] != NULL && columns[2] != NULL) {
		news->next = strtoll(columns[1], NULL, 10);
		news->n_rows = strtoll(columns[2], NULL, 10);
	}
	if (columns[0] == NULL || sizes[0] < skip || sizes[0] >= sizeof(key.text))
		return;
	(void)memcpy(key.text, columns[0] + skip, sizes[0] - skip);
	key.text[sizes[0] - skip] = '\0';
	news->changed(news->arg, key.text);
}

static int end_watch(struct mssql_lane *l, struct baton_call *call,
		     const struct mssql_answer *answer)
{
	mssql_tell(l, &call->error, answer);
	mssql_line_close(&l->push);
	l->is_standing = l->is_asked = false;
	return BATON_OUTCOME_FAILED;
}

static bool ask_server(struct mssql_lane *l, int64_t seen, int64_t ticks)
{
	struct mssql_key from = mssql_key(l, "e/"), to = mssql_key(l, "e0");
	struct mssql_request request = {
		.sql = mssql_sql_watch,
		.declared = "@a varchar(384), @b varchar(384), @seen bigint, @t int",
		.params = {{"@a", from.text, strlen(from.text), 0},
			   {"@b", to.text, strlen(to.text), 0},
			   {"@seen", NULL, 0, seen},
			   {"@t", NULL, 0, ticks}},
		.n_params = 4,
	};

	l->is_asked = mssql_worker_ask(l->push.worker, &request);
	l->asked_until_ns = clock_boot_ns() + TICKS * TICK_NS + GRACE_NS;
	return l->is_asked;
}

/* Only an administrator deletes rows below e/. A row that is gone can't tell, but the number of
 * rows does; then all elections are to be read. */
static int take_answer(struct mssql_lane *l, struct baton_call *call, struct mssql_answer *answer,
		       record_changed *changed, void *arg)
{
	struct news news = {l, changed, arg, l->seen, l->n_rows};

	l->is_asked = false;
	if (answer->end == MSSQL_DONE)
		mssql_rows_each(&answer->rows, row_found, &news);
	bytes_done(&answer->rows);
	if (answer->end != MSSQL_DONE)
		return end_watch(l, call, answer);
	if (!l->is_standing || news.n_rows < l->n_rows)
		changed(arg, NULL);
	l->seen = news.next;
	l->n_rows = news.n_rows;
	return BATON_OUTCOME_OK;
}

/* Begins the watch: finds out what counts as seen. From then on nothing is missed. */
static int stand_watch(struct mssql_lane *l, struct baton_call *call, record_changed *changed,
		       void *arg)
{
	struct mssql_answer answer = {0};

	/* The other connection makes the tables. */
	if (!mssql_connect(l, &l->line, call, true) || !mssql_connect(l, &l->push, call, false))
		return BATON_OUTCOME_FAILED;
	if (!ask_server(l, INT64_MAX, 0))
		return end_watch(l, call, &answer);
	mssql_line_wait(&l->push, call->deadline_ns, &answer);
	int outcome = take_answer(l, call, &answer, changed, arg);

	l->is_standing = outcome == BATON_OUTCOME_OK;
	return outcome;
}

int mssql_watch(void *lane, struct baton_call *call, record_changed *changed, void *arg)
{
	struct mssql_lane *l = lane;
	struct mssql_answer answer = {0};
	uint64_t count;

	if (!l->is_standing)
		return stand_watch(l, call, changed, arg);
	if (!l->is_asked && (l->push.worker == NULL || !ask_server(l, l->seen, TICKS))) {
		(void)store_fail(&call->error, BATON_E_MEMORY, "no memory for a request");
		return end_watch(l, call, &answer);
	}
	struct pollfd fds[] = {{.fd = mssql_worker_fd(l->push.worker), .events = POLLIN},
			       {.fd = l->lane.wake, .events = POLLIN}};

	while (!mssql_worker_take(l->push.worker, &answer)) {
		uint64_t now_ns = clock_boot_ns();

		if (now_ns >= l->asked_until_ns) {
			answer.is_late = true;
			return end_watch(l, call, &answer);
		}
		if (read(l->lane.wake, &count, sizeof(count)) > 0 || now_ns >= call->deadline_ns)
			return BATON_OUTCOME_OK;
		uint64_t left_ms = (call->deadline_ns - now_ns) / CLOCK_NS_PER_MS + 1;

		(void)poll(fds, 2, left_ms < SLICE_MS ? (int)left_ms : SLICE_MS);
	}
	return take_answer(l, call, &answer, changed, arg);
}
