/*
 * drain.c: when work counts as ended, for programs whose threads and tasks are not those of C:
 * events with tokens, contexts, words with a term, and a descriptor that needs no thread.
 */
#include "backend.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>

static void drains_by_hand(struct baton_election_options *o)
{
	o->drain_by_hand = true;
	o->tell_renewals = true;
}

/* The next event of that kind; all before it are dealt with. */
static void pull_kind(struct testcase *t, struct local *p, int kind, struct baton_event *event)
{
	uint64_t end_ns = now_ns() + soon_ms(t) * MS;

	do
		CHECK(t, now_ns() < end_ns, "no event %d to pull", kind);
	while (baton_wait(p->b, 10, event) != 1 || event->kind != kind);
}

/* ---- N37 ---- */

struct word {
	struct baton *b;
	uint64_t token;
	int answer;
	int again;
};

static void *say_done(void *arg)
{
	struct word *w = arg;

	w->answer = baton_event_done(w->b, w->token);
	w->again = baton_event_done(w->b, w->token);
	return NULL;
}

static void done_by_another(struct testcase *t)
{
	struct local *a = local_new(t, &(struct cast){.pulls = true});
	uint64_t term = local_leads(a, soon_ms(t));
	struct local *b = local_new(t, NULL);
	struct baton_event event;
	pthread_t thread;

	pull_kind(t, a, BATON_EVENT_BECAME, &event);
	CHECK(t, event.term == term && event.token != 0, "became without a token");
	CHECK(t, event.deadline_boot_ns > 0 && event.work_end_boot_ns > event.deadline_boot_ns,
	      "became without its deadlines");
	local_sees(b, a->id, soon_ms(t));
	CHECK(t, baton_resign(a->e, 60000) == 0, "resign");
	pull_kind(t, a, BATON_EVENT_LOST, &event);
	stays(t, local_is_no_leader, b, t->lease_ms / 2, "the claim is kept until it is done");
	struct word word = {.b = a->b, .token = event.token};

	CHECK(t, pthread_create(&thread, NULL, say_done, &word) == 0, "a thread");
	(void)pthread_join(thread, NULL);
	CHECK(t, word.answer == 0, "done says %d", word.answer);
	CHECK(t, word.again == BATON_E_STALE, "done again says %d", word.again);
	CHECK(t, local_leads(b, failover_ms(t)) > term, "S3");
	local_stop(a);
}

/* ---- N38 ---- */

static void pump_gives_nothing(struct testcase *t)
{
	struct local *a =
		local_new(t, &(struct cast){.pulls = true, .tune_election = drains_by_hand});
	uint64_t term = local_leads(a, soon_ms(t));
	struct local *b = local_new(t, NULL);
	struct baton_context *ctx = NULL;
	struct baton_event event;
	unsigned n_renewed = 0;
	bool lost = false;

	local_sees(b, a->id, soon_ms(t));
	CHECK(t, baton_enter(a->e, &ctx, NULL) == 0, "enter");
	CHECK(t, baton_context_term(ctx) == term && baton_context_is_leader(ctx), "its term");
	CHECK(t, baton_resign(a->e, 60000) == 0, "resign");
	struct baton_context *late = NULL;

	CHECK(t, baton_enter(a->e, &late, NULL) == BATON_E_NOT_LEADER && late == NULL,
	      "enters what is lost");
	struct pollfd fd = {.fd = baton_context_fd(ctx), .events = POLLIN};

	CHECK(t, poll(&fd, 1, (int)soon_ms(t)) == 1, "the descriptor says nothing of the loss");
	for (uint64_t end_ns = now_ns() + t->lease_ms * MS; now_ns() < end_ns;) {
		if (baton_wait(a->b, 10, &event) == 1) {
			lost = lost || event.kind == BATON_EVENT_LOST;
			n_renewed += event.kind == BATON_EVENT_RENEWED;
		}
		CHECK(t, !baton_is_leader(b->e), "S7: given away under running work");
	}
	CHECK(t, lost && n_renewed > 0, "lost %d, renewals %u", lost, n_renewed);
	baton_leave(ctx);
	CHECK(t, local_leads(b, failover_ms(t)) > term, "S3");
	local_stop(a);
}

/* ---- N39 ---- */

static void old_word_drains_nothing(struct testcase *t)
{
	struct local *a =
		local_new(t, &(struct cast){.pulls = true, .tune_election = drains_by_hand});
	uint64_t first = local_leads(a, soon_ms(t));

	CHECK(t, baton_drained(a->e, first) == BATON_E_STALE, "drained while leading");
	CHECK(t, baton_resign(a->e, 0) == 0, "resign");
	CHECK(t, baton_drained(a->e, first) == 0, "drained");
	CHECK(t, baton_drained(a->e, first) == BATON_E_STALE, "drained twice");
	uint64_t second = local_leads(a, failover_ms(t));
	struct local *b = local_new(t, NULL);

	local_sees(b, a->id, soon_ms(t));
	CHECK(t, baton_resign(a->e, 60000) == 0, "resign");
	CHECK(t, baton_drained(a->e, first) == BATON_E_STALE, "the old term drains");
	stays(t, local_is_no_leader, b, t->lease_ms / 2, "the work of the second term goes on");
	CHECK(t, baton_drained(a->e, second) == 0, "drained");
	CHECK(t, local_leads(b, failover_ms(t)) > second, "S3");
	local_stop(a);
}

/* ---- N40 ---- */

static sem_t hung;
static _Atomic bool hangs;

/* Runs on the loop: with it, nothing moves any more. */
static void hang(void *arg, const struct baton_trace_record *record)
{
	(void)arg;
	(void)record;
	while (atomic_load(&hangs) && sem_wait(&hung) != 0)
		;
}

static void with_a_trap(struct baton_options *o)
{
	o->trace = hang;
}

static void hung_loop_cancels(struct testcase *t)
{
	CHECK(t, sem_init(&hung, 0, 0) == 0, "semaphore: %s", strerror(errno));
	struct local *a =
		local_new(t, &(struct cast){.tune = with_a_trap, .tune_election = drains_by_hand});
	struct baton_context *ctx = NULL;
	int64_t deadline_ns = 0;

	local_leads(a, soon_ms(t));
	CHECK(t, baton_enter(a->e, &ctx, NULL) == 0, "enter");
	struct pollfd fd = {.fd = baton_context_fd(ctx), .events = POLLIN};

	/* Renewals move it on. */
	CHECK(t, poll(&fd, 1, (int)(2 * deadline_ms(t))) == 0, "cancelled though renewed");
	CHECK(t, baton_context_is_leader(ctx), "not leader though renewed");
	atomic_store(&hangs, true);
	int ready = poll(&fd, 1, (int)(2 * deadline_ms(t) + t->lease_ms));
	bool leads = baton_context_is_leader(ctx);

	(void)baton_get_deadline(a->e, &deadline_ns, NULL);
	atomic_store(&hangs, false);
	(void)sem_post(&hung);
	CHECK(t, ready == 1, "a hung loop cancels nothing");
	CHECK(t, !leads && deadline_ns == 0, "cancelled, and says that it leads");
	CHECK(t, baton_context_wait(ctx, 0), "cancelled, and waits");
	baton_leave(ctx);
	local_close(a);
	(void)sem_destroy(&hung);
}

/* ---- N41 ---- */

/* It contends again: its profile is in the store a little later. */
static int transfer_to(struct local *from, struct local *to, uint64_t term, const char *note,
		       struct baton_error *err)
{
	uint64_t end_ns = now_ns() + soon_ms(from->t) * MS;
	int rc;

	do {
		rc = baton_order_transfer(from->b, from->t->name, term, to->id, note, err);
	} while (rc == BATON_E_NO_CANDIDATE && now_ns() < end_ns);
	return rc;
}

static void old_order_is_refused(struct testcase *t)
{
	struct local *a = local_new(t, NULL);
	uint64_t first = local_leads(a, soon_ms(t));
	struct local *b = local_new(t, NULL);
	struct baton_error err = {0};
	char note[BATON_NOTE_MAX + 2];

	local_sees(b, a->id, soon_ms(t));
	local_stop(a);
	uint64_t second = local_leads(b, failover_ms(t));
	int rc = baton_order_resign(b->b, t->name, first, 0, "meant for the first", &err);

	CHECK(t, rc == BATON_E_STALE && err.text[0] != '\0', "an old order says %d", rc);
	memset(note, 'x', sizeof(note));
	note[sizeof(note) - 1] = '\0';
	rc = baton_order_resign(b->b, t->name, second, 0, note, &err);
	CHECK(t, rc == BATON_E_INVALID, "a note that is too long says %d", rc);
	CHECK(t, baton_election_start(a->e) == 0, "start");
	rc = transfer_to(b, a, first, "meant for the first", &err);
	CHECK(t, rc == BATON_E_STALE && err.text[0] != '\0', "an old transfer says %d", rc);
	rc = transfer_to(b, a, second, note, &err);
	CHECK(t, rc == BATON_E_INVALID, "a transfer's note that is too long says %d", rc);
	stays(t, local_is_leader, b, t->lease_ms / 2, "leader after orders that were refused");
	note[BATON_NOTE_MAX] = '\0';
	rc = baton_order_resign(b->b, t->name, second, 60000, note, &err);
	CHECK(t, rc == 0, "an order for the leader: %s", err.text);
	CHECK(t, local_next(b, BATON_EVENT_LOST, soon_ms(t))->event.reason == BATON_REASON_ORDERED,
	      "not by order");
}

const struct entry cases_drain[] = {
	{"N37", "events taken by one thread and done by another", done_by_another, NEEDS_NOTHING,
	 0},
	{"N38", "a pump that takes events while work runs gives nothing away", pump_gives_nothing,
	 NEEDS_NOTHING, 0},
	{"N39", "drained with an old term says nothing", old_word_drains_nothing, NEEDS_NOTHING, 0},
	{"N40", "a hung loop cancels by the descriptor", hung_loop_cancels, NEEDS_NOTHING, 0},
	{"N41", "an order with an old term is refused", old_order_is_refused, NEEDS_NOTHING, 0},
	{NULL, NULL, NULL, 0, 0},
};
