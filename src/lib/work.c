/* work.c: doing something as leader, and ceasing to be one. */
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "lib/lib.h"

#define ELECTION_ENDED INT32_MIN /* the election was stopped: not one of the codes */

static uint64_t quiet_ns(int64_t ms)
{
	return ms <= 0 ? 0 : (uint64_t)ms > NEVER / NS_PER_MS ? NEVER : (uint64_t)ms * NS_PER_MS;
}

/* app.lock is held: what the answer was, or why there is none yet. */
static int read_answer(const struct baton_election *e, bool answered, int *obstacle)
{
	if (answered) {
		*obstacle = e->acquire_obstacle;
		return e->acquire_answer;
	}
	*obstacle =
		e->audience.work == WORK_DRAINS ? BATON_OBSTACLE_DRAINING : BATON_OBSTACLE_STORE;
	return BATON_E_TIMEOUT;
}

int baton_try_acquire(struct baton_election *e, int64_t timeout_ms, int *obstacle)
{
	int mine = 0;
	int code = e != NULL ? lib_check(e->handle) : BATON_E_INVALID;

	obstacle = obstacle != NULL ? obstacle : &mine;
	*obstacle = BATON_OBSTACLE_NONE;
	if (code != 0)
		return code;
	struct baton *b = e->handle;
	uint64_t until_ns = events_until_ns(timeout_ms);

	(void)pthread_mutex_lock(&b->app.lock);
	/* One answer serves all threads that ask meanwhile. */
	uint32_t id = ++e->acquire_id;

	(void)pthread_mutex_unlock(&b->app.lock);
	code = lib_post(e, EV_ACQUIRE);
	if (code != 0)
		return code;
	(void)pthread_mutex_lock(&b->app.lock);
	while ((int32_t)(e->acquire_answered - id) < 0 && events_wait(b, until_ns))
		;
	code = read_answer(e, (int32_t)(e->acquire_answered - id) >= 0, obstacle);
	(void)pthread_mutex_unlock(&b->app.lock);
	return code;
}

void baton_alive(struct baton_election *e)
{
	uint64_t now_ns = clock_boot_ns();
	uint64_t last_ns = atomic_load_explicit(&e->alive_ns, memory_order_relaxed);

	if (lib_check(e->handle) != 0 || e->core.options.work_timeout_ns == 0 ||
	    now_ns - last_ns < e->core.options.work_timeout_ns / 16)
		return;
	atomic_store_explicit(&e->alive_ns, now_ns, memory_order_relaxed);
	loop_poke(e, POKE_ALIVE);
}

int baton_drained(struct baton_election *e, uint64_t term)
{
	int code = e != NULL && term != 0 ? lib_check(e->handle) : BATON_E_INVALID;

	if (code != 0)
		return code;
	uint64_t leads_in;
	/* A leadership that the clock has ended is over for good, though the loop may not have
	 * noticed. */
	bool over = !(lib_leads(e, &leads_in) && leads_in == term);

	(void)pthread_mutex_lock(&e->handle->app.lock);
	struct audience_result r = events_tell(
		e, &(struct audience_event){.kind = AUDIENCE_DRAINED, .term = term, .over = over});

	(void)pthread_mutex_unlock(&e->handle->app.lock);
	return r.refused ? BATON_E_STALE : 0;
}

int baton_resign(struct baton_election *e, int64_t quiet_ms)
{
	int code = e != NULL ? lib_check(e->handle) : BATON_E_INVALID;

	if (code != 0)
		return code;
	if (!baton_is_leader(e))
		return BATON_E_NOT_LEADER;
	return loop_tell(e, &(struct event){.kind = EV_RESIGN, .quiet_ns = quiet_ns(quiet_ms)});
}

/* ---- contexts ---- */

/* app.lock is held, so LOST can't slip in between. */
static int enter_now(struct baton_election *e, struct baton_context *ctx, bool is_run)
{
	uint64_t term;

	return context_enter(e, ctx, lib_leads(e, &term) ? term : 0, is_run);
}

static int enter(struct baton_election *e, struct baton_context *ctx, bool is_run)
{
	(void)pthread_mutex_lock(&e->handle->app.lock);
	int code = enter_now(e, ctx, is_run);

	(void)pthread_mutex_unlock(&e->handle->app.lock);
	return code;
}

static void leave(struct baton_context *ctx)
{
	struct app *app = &ctx->election->handle->app;

	(void)pthread_mutex_lock(&app->lock);
	context_leave(ctx);
	(void)pthread_mutex_unlock(&app->lock);
}

int baton_enter(struct baton_election *e, struct baton_context **ctx, struct baton_error *err)
{
	int code = e != NULL && ctx != NULL ? lib_check(e->handle) : BATON_E_INVALID;

	if (code != 0)
		return lib_fail(err, code, "%s", baton_strerror(code));
	struct baton_context *c = calloc(1, sizeof(*c));

	*ctx = NULL;
	code = c != NULL ? enter(e, c, false) : BATON_E_MEMORY;
	if (code != 0) {
		free(c);
		return lib_fail(err, code, "%s", baton_strerror(code));
	}
	(void)election_ref(e);
	*ctx = c;
	return 0;
}

void baton_leave(struct baton_context *ctx)
{
	if (ctx == NULL)
		return;
	struct baton_election *e = ctx->election;

	/* In a forked child, the descriptor is the child's, and all else is the parent's. */
	if (lib_check(e->handle) != 0) {
		(void)close(ctx->fd);
	} else {
		leave(ctx);
		election_unref(e);
	}
	free(ctx);
}

int baton_run_if_leader(struct baton_election *e, int (*fn)(struct baton_context *ctx, void *arg),
			void *arg)
{
	struct baton_context ctx;
	int code = e != NULL && fn != NULL ? lib_check(e->handle) : BATON_E_INVALID;

	if (code != 0)
		return code;
	code = enter(e, &ctx, true);
	if (code != 0)
		return code;
	code = fn(&ctx, arg);
	leave(&ctx);
	return code;
}

/* Waits until elected (0), or until stopped (ELECTION_ENDED), or fails. */
static int wait_elected(struct baton_election *e, struct baton_context *ctx)
{
	struct baton *b = e->handle;
	int code = BATON_E_NOT_LEADER;

	(void)pthread_mutex_lock(&b->app.lock);
	while (!e->audience.stopped && code == BATON_E_NOT_LEADER) {
		code = enter_now(e, ctx, true);
		if (code == BATON_E_NOT_LEADER)
			(void)events_wait(b, NEVER);
	}
	(void)pthread_mutex_unlock(&b->app.lock);
	return code == BATON_E_NOT_LEADER ? ELECTION_ENDED : code;
}

void baton_run_options_init_sized(struct baton_run_options *options, size_t size)
{
	struct baton_run_options o = {.size = size};

	lib_init_sized(options, size, &o, sizeof(o));
}

static int run_elected(struct baton_election *e, int (*fn)(struct baton_context *ctx, void *arg),
		       void *arg, const struct baton_run_options *o)
{
	struct baton_context ctx;
	int code;

	while ((code = wait_elected(e, &ctx)) == 0) {
		int result = fn(&ctx, arg);
		bool still = baton_context_is_leader(&ctx);

		if (still)
			(void)baton_resign(e, o->quiet_ms);
		leave(&ctx);
		if (o->once && still)
			return result;
	}
	return code == ELECTION_ENDED ? 0 : code;
}

int baton_run_when_elected(struct baton_election *e,
			   int (*fn)(struct baton_context *ctx, void *arg), void *arg,
			   const struct baton_run_options *options)
{
	struct baton_run_options o;
	int code = e != NULL && fn != NULL ? lib_check(e->handle) : BATON_E_INVALID;

	baton_run_options_init(&o);
	if (code == 0 && options != NULL)
		code = lib_take_sized(&o, sizeof(o), FIRST_RUN_OPTIONS, options, options->size,
				      NULL);
	if (code == 0)
		code = baton_election_start(e);
	if (code != 0)
		return code;
	struct app *app = &e->handle->app;

	(void)pthread_mutex_lock(&app->lock);
	(void)events_say(e, AUDIENCE_RUN);
	(void)pthread_mutex_unlock(&app->lock);
	(void)election_ref(e);
	code = run_elected(e, fn, arg, &o);
	(void)pthread_mutex_lock(&app->lock);
	(void)events_say(e, AUDIENCE_RUN_END);
	(void)pthread_mutex_unlock(&app->lock);
	election_unref(e);
	return code;
}

bool baton_context_is_leader(const struct baton_context *ctx)
{
	uint64_t term;

	return lib_leads(ctx->election, &term) && term == ctx->term;
}

uint64_t baton_context_term(const struct baton_context *ctx)
{
	return ctx->term;
}

int64_t baton_context_time_left_ms(const struct baton_context *ctx)
{
	return baton_context_is_leader(ctx) ? baton_time_left_ms(ctx->election) : 0;
}

int baton_context_fd(const struct baton_context *ctx)
{
	return ctx->fd;
}

bool baton_context_wait(const struct baton_context *ctx, int64_t timeout_ms)
{
	uint64_t until_ns = events_until_ns(timeout_ms);
	struct pollfd fd = {.fd = ctx->fd, .events = POLLIN};

	/* The descriptor is a timer at the deadline: a frozen loop can't keep it from firing. A
	 * deadline that a renewal has moved meanwhile is not the end. */
	while (baton_context_is_leader(ctx)) {
		uint64_t now_ns = clock_boot_ns();

		if (now_ns >= until_ns)
			return false;
		uint64_t left_ms =
			until_ns == NEVER ? INT32_MAX : (until_ns - now_ns) / NS_PER_MS + 1;

		(void)poll(&fd, 1, left_ms > INT32_MAX ? INT32_MAX : (int)left_ms);
	}
	return true;
}
