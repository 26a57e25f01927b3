/*
 * test_serve_shell.c: parts of the shell around serve_answer() that hold without a socket: what
 * streams are told of renewals, of events that were missed, of nothing at all, and of work that
 * goes on too long; and how often the store is asked for its elections.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "serve/server.h"

#define SECOND INT64_C(1000000000)
#define NOW (1000 * SECOND)

/* ---- the rest of the shell ---- */

static int64_t later_ns; /* than NOW */

int64_t server_now_ns(void)
{
	return NOW + later_ns;
}

const struct serve_view *server_view(struct server *s)
{
	return &s->view;
}

bool members_add(struct server *s, const char *name, bool takes_part)
{
	(void)s, (void)name, (void)takes_part;
	return true;
}

struct member *members_find(struct server *s, const char *name)
{
	(void)s, (void)name;
	return NULL;
}

void member_refresh(struct member *m)
{
	(void)m;
}

void members_refresh_all(struct server *s)
{
	(void)s;
}

void member_attach(struct member *m, struct stream *stream)
{
	(void)m, (void)stream;
}

void member_detach(struct member *m, struct stream *stream)
{
	(void)m, (void)stream;
}

void member_half_closed(struct member *m, struct stream *stream)
{
	(void)m, (void)stream;
}

static struct call *resumed[4];
static size_t n_resumed;

void call_resume(struct call *call)
{
	resumed[n_resumed++] = call;
}

void call_left(struct call *call, bool is_whole)
{
	(void)call, (void)is_whole;
}

/* ---- renewals ---- */

struct world {
	struct server server;
	struct stream stream;
	struct member *members[600];
};

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	w->server.members = w->members;
	w->server.streams = &w->stream;
	w->server.n_streams = 1;
	w->stream.kind = STREAM_EVENTS;
	w->stream.lines = true;
	w->stream.is_through = true;
	w->stream.spoken_ns = NOW;
	later_ns = 0;
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	for (size_t i = 0; i < w->server.n_members; i++)
		free(w->members[i]);
	bytes_done(&w->stream.out);
	free(w);
	return 0;
}

static struct member *add_leader(struct world *w, const char *name, int64_t left_ns)
{
	struct member *m = calloc(1, sizeof(*m) + strlen(name) + 1);

	(void)strcpy(m->name, name);
	m->server = &w->server;
	m->hold = (struct baton_context *)m; /* not NULL: leads */
	m->renewed_ns = NOW + left_ns;
	w->members[w->server.n_members++] = m;
	return m;
}

static void renew(struct world *w, struct member *m, int64_t left_ns)
{
	m->renewed_ns = NOW + left_ns;
	m->is_renewed = w->server.is_renewed = true;
}

/* All that was told since the last time. */
static const char *told(struct world *w)
{
	w->stream.sent = w->stream.out.n;
	return w->stream.out.n > 0 ? w->stream.out.at : "";
}

static void test_one_lease_for_all(void **state)
{
	struct world *w = *state;

	renew(w, add_leader(w, "a", 0), 5 * SECOND);
	renew(w, add_leader(w, "b", 0), 5 * SECOND);
	streams_renewed(&w->server);
	assert_string_equal(told(w), "{\"time_left_ms\":5000,\"renew_p50_us\":0,"
				     "\"renew_p99_us\":0,\"renew_slow\":false}\n");
	assert_false(w->server.is_renewed);
}

static void test_own_leases(void **state)
{
	struct world *w = *state;
	struct member *a = add_leader(w, "a", 2 * SECOND);
	struct member *b = add_leader(w, "b \"", 3 * SECOND);
	struct member *lost = add_leader(w, "lost", 0);

	renew(w, b, 5 * SECOND);
	renew(w, lost, 5 * SECOND);
	lost->is_lost = true;
	streams_renewed(&w->server);
	assert_string_equal(told(w),
			    "{\"elections\":[\"b \\\"\"],\"time_left_ms\":5000,"
			    "\"renew_p50_us\":0,\"renew_p99_us\":0,\"renew_slow\":false}\n");
	renew(w, a, 6 * SECOND);
	renew(w, b, 7 * SECOND);
	streams_renewed(&w->server);
	assert_string_equal(told(w),
			    "{\"elections\":[\"a\"],\"time_left_ms\":6000,"
			    "\"renew_p50_us\":0,\"renew_p99_us\":0,\"renew_slow\":false}\n"
			    "{\"elections\":[\"b \\\"\"],\"time_left_ms\":7000,"
			    "\"renew_p50_us\":0,\"renew_p99_us\":0,\"renew_slow\":false}\n");
	assert_false(a->is_renewed || b->is_renewed || lost->is_renewed || w->server.is_renewed);
}

/* Each of 500 elections is told once, and never so much at once that a client can't follow. */
static void test_many_own_leases(void **state)
{
	struct world *w = *state;
	size_t n = 0;

	for (int i = 0; i < 500; i++) {
		char name[BATON_NAME_MAX + 1];

		(void)snprintf(name, sizeof(name), "e%03d%0200d", i, 0);
		renew(w, add_leader(w, name, 0), (5 + i % 2) * SECOND);
	}
	for (int turn = 0; w->server.is_renewed; turn++) {
		assert_true(turn < 500);
		streams_renewed(&w->server);
		const char *text = told(w);

		assert_true(strlen(text) <= SERVER_UNSENT / 2);
		assert_false(w->stream.is_gone);
		for (const char *at = text; (at = strstr(at, "\"e")) != NULL; at++)
			n += at[2] >= '0' && at[2] <= '9';
	}
	assert_int_equal(n, 500);
}

/* ---- nothing to tell, and too much ---- */

static void test_idle_stream(void **state)
{
	struct world *w = *state;

	w->stream.lines = false;
	later_ns = 10 * SECOND;
	streams_tick(&w->server);
	assert_string_equal(told(w), "");
	later_ns++;
	streams_tick(&w->server);
	assert_memory_equal(told(w), ": \n\n", 4);
	assert_int_equal(w->stream.out.n, 4);
	bytes_clear(&w->stream.out);
	w->stream.sent = 0;
	streams_tick(&w->server); /* not again for as long */
	assert_int_equal(w->stream.out.n, 0);
	w->stream.lines = true; /* in lines of JSON nothing else is a comment */
	later_ns += 20 * SECOND;
	streams_tick(&w->server);
	assert_int_equal(w->stream.out.n, 0);
}

static char said[200];
static int n_said;

__attribute__((format(printf, 4, 5))) static void say_of(int level, const char *election,
							 uint64_t term, const char *format, ...)
{
	va_list args;

	assert_int_equal(level, BATON_LOG_WARN);
	assert_string_equal(election, "a");
	assert_int_equal(term, 7);
	va_start(args, format);
	(void)vsnprintf(said, sizeof(said), format, args);
	va_end(args);
	n_said++;
}

/* Work that goes on past its end is counted and logged, once. */
static void test_overrun(void **state)
{
	struct world *w = *state;
	const struct serve_config tells = {.say_of = say_of};
	struct member *m = add_leader(w, "a", 0);

	w->server.config = &tells;
	w->stream.kind = STREAM_LEAD;
	w->stream.member = m;
	w->stream.told_term = 7;
	streams_tick(&w->server); /* not lost */
	w->stream.end_ns = NOW + SECOND;
	later_ns = SECOND - 1;
	streams_tick(&w->server);
	assert_int_equal(m->v.overruns, 0);
	for (int i = 0; i < 3; i++, later_ns++)
		streams_tick(&w->server);
	assert_int_equal(m->v.overruns, 1);
	assert_int_equal(n_said, 1);
	assert_string_equal(said, "a: the work of term 7 goes on past its end (overrun)");
}

/* How long the work may go on after the loss, if it had to end by then anyway. */
static void assert_end_in(struct world *w, int64_t end_boot_ns, int64_t left_ms)
{
	char wanted[128];

	bytes_clear(&w->stream.out);
	w->stream.sent = 0;
	w->stream.end_ns = 0;
	w->stream.member->v.end_boot_ns = end_boot_ns;
	stream_tell_lead(&w->stream, "lost", "expired");
	(void)snprintf(wanted, sizeof(wanted),
		       "{\"event\":\"lost\",\"election\":\"a\",\"reason\":\"expired\","
		       "\"end_in_ms\":%lld,\"term\":\"7\"}\n",
		       (long long)left_ms);
	assert_int_equal(w->stream.out.n, strlen(wanted));
	assert_memory_equal(w->stream.out.at, wanted, strlen(wanted));
	assert_int_equal(w->stream.end_ns, NOW + left_ms * (SECOND / 1000));
}

/* Never more than the drain time, and never past the end of the lease. */
static void test_end_of_lost_work(void **state)
{
	struct world *w = *state;

	w->server.view.timings.drain_ns = 3 * SECOND;
	w->stream.kind = STREAM_LEAD;
	w->stream.member = add_leader(w, "a", 0);
	w->stream.told_term = 7;
	assert_end_in(w, NOW + 9 * SECOND, 3000); /* the lease holds on */
	assert_end_in(w, NOW + 2 * SECOND, 2000);
	assert_end_in(w, NOW, 0);
	assert_end_in(w, NOW - SECOND, 0); /* a freeze was longer than the lease */
	assert_end_in(w, 0, 0);            /* so long that another lease has followed */
}

/* A client over TCP that has closed its own side is told again, with the time that is left. */
static void test_lost_is_told_again(void **state)
{
	struct world *w = *state;
	const struct serve_config tells = {.say_of = say_of};
	struct link link = {.is_unix = true};
	struct call call = {.server = &w->server, .link = &link};
	struct member *m = add_leader(w, "a", 0);

	w->server.config = &tells;
	w->server.view.timings.drain_ns = 3 * SECOND;
	m->v.reason = "resigned";
	m->v.end_boot_ns = NOW + 9 * SECOND;
	w->stream.kind = STREAM_LEAD;
	w->stream.member = m;
	w->stream.call = &call;
	w->stream.told_term = 7;
	w->stream.is_half_closed = true;
	streams_tick(&w->server); /* not lost */
	assert_string_equal(told(w), "");
	stream_tell_lead(&w->stream, "lost", "resigned");
	assert_non_null(strstr(told(w), "\"end_in_ms\":3000,"));
	later_ns = SECOND + 1;
	streams_tick(&w->server); /* the kernel tells of a unix socket that it is closed */
	assert_int_equal(w->stream.sent, w->stream.out.n);
	link.is_unix = false;
	streams_tick(&w->server);
	assert_non_null(strstr(told(w), "\"end_in_ms\":1999,"));
	later_ns = 5 * SECOND;
	streams_tick(&w->server);
	assert_non_null(strstr(told(w), "\"end_in_ms\":0,"));
}

/* What a client is told that comes back with this number. */
static const char *told_after(struct world *w, uint64_t after)
{
	struct link link = {.fd = -1};
	struct call call = {.server = &w->server, .link = &link};
	static char room[1 << 20];

	call.reply.task = SERVE_EVENTS;
	call.reply.after = after;
	struct stream *st = stream_new(&call, NULL);

	assert_non_null(st);
	(void)snprintf(room, sizeof(room), "%.*s", (int)st->out.n,
		       st->out.at != NULL ? st->out.at : "");
	stream_free(st);
	return room;
}

static size_t count(const char *text, const char *word)
{
	size_t n = 0;

	for (; (text = strstr(text, word)) != NULL; text++)
		n++;
	return n;
}

/* The last 1,000 events are kept. Who has missed more gets all there is, once. */
static void test_missed_events(void **state)
{
	struct world *w = *state;
	struct server *s = &w->server;
	struct member *m = add_leader(w, "a", 0);

	m->v = (struct serve_election){.name = m->name,
				       .leader = "",
				       .address = "",
				       .wait = "",
				       .error = "",
				       .reason = "",
				       .state_name = "",
				       .condition_name = ""};
	static struct serve_election *rows[1];

	rows[0] = &m->v;
	s->view = (struct serve_view){.version = "",
				      .boot_id = "",
				      .id = "",
				      .store = "",
				      .first_seq = 5000,
				      .seq = 5000,
				      .elections = (const struct serve_election *const *)rows,
				      .n_elections = 1};
	s->streams = NULL;
	s->n_streams = 0;
	s->gone_fd = -1;
	assert_int_equal(count(told_after(w, 5000), "event: "), 0); /* nothing was missed */
	for (int i = 0; i < SERVER_RING + 1; i++) {
		const struct serve_event event = {.seq = ++s->view.seq,
						  .kind = "changed",
						  .leader = "x",
						  .old_leader = "",
						  .reason = "",
						  .text = ""};

		streams_publish(m, &event);
	}
	const char *all = told_after(w, 5001);

	assert_int_equal(count(all, "event: changed"), SERVER_RING);
	assert_memory_equal(all, "id: 5002\n", 9);
	assert_int_equal(count(all, "snapshot"), 0);
	const char *too_many = told_after(w, 5000);

	assert_memory_equal(too_many, "id: 6001\nevent: snapshot\n", 25);
	assert_int_equal(count(too_many, "event: "), 1);
	streams_free_ring(s);
}

/* ---- how long renewals take ---- */

#define MINUTE (60 * SECOND)
#define FAST 10 /* a bucket: up to 1 ms */
#define SLOW 21 /* up to 2 s, and more than 1 s */

/* p50 and p99 are those of the last minutes: what was slow before is forgotten. */
static void test_latency_lately(void **state)
{
	struct latency l = {0};
	uint64_t counts[BATON_HISTOGRAM_BUCKETS] = {0};

	(void)state;
	assert_int_equal(latency_quantile_us(&l, counts, 50), 0);
	counts[SLOW] = 10;
	latency_note(&l, counts, NOW);
	assert_int_equal(latency_quantile_us(&l, counts, 50), UINT64_C(1) << SLOW);
	for (int minute = 1; minute <= 2 * LATENCY_MINUTES; minute++) {
		counts[FAST] += 12;
		latency_note(&l, counts, NOW + minute * MINUTE);
		latency_note(&l, counts, NOW + minute * MINUTE + 1); /* not twice */
		assert_int_equal(latency_quantile_us(&l, counts, 99),
				 UINT64_C(1) << (minute + 1 < LATENCY_SHOWN ? SLOW : FAST));
	}
	for (int minute = 1; minute <= LATENCY_SHOWN; minute++)
		latency_note(&l, counts, NOW + (1000 + minute) * MINUTE);
	assert_int_equal(latency_quantile_us(&l, counts, 50), 0); /* none any more */
}

/* More than one of a thousand of the last hour, and not one alone. */
static void test_latency_slow(void **state)
{
	struct latency l = {0};
	uint64_t counts[BATON_HISTOGRAM_BUCKETS] = {0};
	const uint64_t call_ns = 2 * SECOND;

	(void)state;
	counts[FAST] = 500;
	latency_note(&l, counts, NOW);
	assert_false(latency_is_slow(&l, counts, call_ns));
	counts[SLOW] = 1;
	assert_false(latency_is_slow(&l, counts, call_ns));
	counts[SLOW] = 2;
	assert_true(latency_is_slow(&l, counts, call_ns));
	assert_true(latency_is_slow(&l, counts, UINT64_C(2) * 1048576000)); /* where it begins */
	assert_false(latency_is_slow(&l, counts, 2 * call_ns)); /* half of it is its end */
	counts[FAST] = 3000;
	assert_false(latency_is_slow(&l, counts, call_ns));
	counts[SLOW] = 4;
	assert_true(latency_is_slow(&l, counts, call_ns));
	for (int minute = 1; minute <= LATENCY_MINUTES; minute++)
		latency_note(&l, counts, NOW + minute * MINUTE);
	assert_false(latency_is_slow(&l, counts, call_ns));
}

/* ---- lists ---- */

static sem_t asked, answered;
static atomic_int n_asked;
static int n_pages; /* behind the present one; the worker's */

int __wrap_baton_list_elections(struct baton *b, const char *prefix, const char *after,
				void (*found)(void *arg, const char *name), void *arg,
				struct baton_error *err);
int __wrap_baton_list_elections(struct baton *b, const char *prefix, const char *after,
				void (*found)(void *arg, const char *name), void *arg,
				struct baton_error *err)
{
	(void)b, (void)prefix, (void)after, (void)err;
	(void)atomic_fetch_add(&n_asked, 1);
	(void)sem_post(&asked);
	(void)sem_wait(&answered);
	if (n_pages == 0)
		return 0;
	n_pages--;
	found(arg, "name");
	return 1; /* there are more */
}

static void take_finished(struct server *s)
{
	struct pollfd fd = {.fd = s->done_fd, .events = POLLIN};

	assert_int_equal(poll(&fd, 1, 60000), 1);
	worker_take_finished(s);
}

/* A store, and a second handle for it, that hang until they are let go. */
static int open_another(struct baton **out, struct baton_error *err)
{
	(void)out, (void)err;
	(void)sem_post(&asked);
	(void)sem_wait(&answered);
	return BATON_E_UNAVAILABLE;
}

static const struct serve_config config = {.observe_prefix = "", .open_another = open_another};

static void start_workers(struct server *s)
{
	s->config = &config;
	s->done_fd = eventfd(0, EFD_NONBLOCK);
	(void)pthread_mutex_init(&s->lock, NULL);
	(void)pthread_cond_init(&s->wake, NULL);
	(void)sem_init(&asked, 0, 0);
	(void)sem_init(&answered, 0, 0);
	atomic_store(&n_asked, 0);
	n_resumed = 0;
	assert_true(worker_start(s));
}

static void stop_workers(struct server *s)
{
	worker_stop(s);
	(void)close(s->done_fd);
	(void)sem_destroy(&asked);
	(void)sem_destroy(&answered);
	(void)pthread_cond_destroy(&s->wake);
	(void)pthread_mutex_destroy(&s->lock);
}

static void test_lists_never_pile_up(void **state)
{
	struct world *w = *state;
	struct server *s = &w->server;

	start_workers(s);
	worker_list(s);
	(void)sem_wait(&asked); /* the store hangs */
	for (int i = 0; i < 5; i++)
		worker_list(s);
	assert_null(s->workers[WORKER_STORE].queue);
	(void)sem_post(&answered);
	take_finished(s);
	worker_list(s); /* it has answered: the next one is asked for */
	(void)sem_post(&answered);
	take_finished(s);
	assert_int_equal(atomic_load(&n_asked), 2);
	stop_workers(s);
}

/* ---- orders ---- */

static struct call call_for(struct server *s, int task)
{
	static char rooms[4][512];
	static size_t n;
	char *room = rooms[n++ % 4];

	return (struct call){.server = s,
			     .room = room,
			     .reply = {.task = task, .status = 202, .body = {room, 512, 0}}};
}

/* A list of many pages, and the questions of readers, never hold up an order. */
static void test_orders_go_first(void **state)
{
	struct world *w = *state;
	struct server *s = &w->server;
	struct call reader = call_for(s, SERVE_HISTORY);
	struct call order = call_for(s, SERVE_RESIGN);

	start_workers(s);
	n_pages = 1;
	worker_list(s);
	(void)sem_wait(&asked);
	assert_true(worker_ask(&reader));
	assert_true(worker_ask(&order));
	(void)sem_post(&answered);
	(void)sem_wait(&asked); /* the next page is asked for behind both of them */
	take_finished(s);
	assert_int_equal(n_resumed, 2);
	assert_ptr_equal(resumed[0], &reader); /* what was finished last is taken first */
	assert_ptr_equal(resumed[1], &order);
	(void)sem_post(&answered);
	take_finished(s);
	assert_false(s->is_listed);
	stop_workers(s);
}

/* Nor does an examination. */
static void test_doctors_hold_up_nobody(void **state)
{
	struct world *w = *state;
	struct server *s = &w->server;
	struct call doctor = call_for(s, SERVE_DOCTOR);
	struct call order = call_for(s, SERVE_PAUSE);

	start_workers(s);
	assert_true(worker_ask(&doctor));
	(void)sem_wait(&asked);
	assert_true(worker_ask(&order));
	take_finished(s);
	assert_int_equal(n_resumed, 1);
	assert_ptr_equal(resumed[0], &order);
	(void)sem_post(&answered);
	take_finished(s);
	assert_ptr_equal(resumed[1], &doctor);
	assert_int_equal(doctor.reply.status, 503);
	stop_workers(s);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_one_lease_for_all),
		TEST(test_own_leases),
		TEST(test_many_own_leases),
		TEST(test_idle_stream),
		TEST(test_overrun),
		TEST(test_end_of_lost_work),
		TEST(test_lost_is_told_again),
		TEST(test_missed_events),
		cmocka_unit_test(test_latency_lately),
		cmocka_unit_test(test_latency_slow),
		TEST(test_lists_never_pile_up),
		TEST(test_orders_go_first),
		TEST(test_doctors_hold_up_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
