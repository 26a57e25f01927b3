/* work.c: doing something as leader, and ceasing to be one. */
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "lib/lib.h"

#define ELECTION_ENDED INT32_MIN /* no code and no function's result that we return */

static uint64_t quiet_ns(int64_t ms)
{
	return ms <= 0 ? 0 : (uint64_t)ms > NEVER / NS_PER_MS ? NEVER : (uint64_t)ms * NS_PER_MS;
}

int baton_try_acquire(struct baton_election *e, int64_t timeout_ms)
{
	int code = e != NULL ? lib_check(e->handle) : BATON_E_INVALID;

	if (code != 0)
		return code;
	struct baton *b = e->handle;
	uint64_t until_ns = events_until_ns(timeout_ms);

	(void)pthread_mutex_lock(&b->app.lock);
	/* One answer serves all who ask meanwhile. */
	uint32_t id = ++e->acquire_id;

	(void)pthread_mutex_unlock(&b->app.lock);
	code = lib_post(e, EV_ACQUIRE);
	if (code != 0)
		return code;
	(void)pthread_mutex_lock(&b->app.lock);
	while ((int32_t)(e->acquire_answered - id) < 0 && events_wait(b, until_ns))
		;
	code = (int32_t)(e->acquire_answered - id) < 0 ? BATON_E_TIMEOUT : e->acquire_answer;
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

void baton_drained(struct baton_election *e)
{
	if (lib_check(e->handle) != 0)
		return;
	(void)pthread_mutex_lock(&e->handle->app.lock);
	e->lost_done = true;
	events_check_drained(e);
	(void)pthread_mutex_unlock(&e->handle->app.lock);
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

/* Adds the context if the election leads now; app.lock is held, so LOST can't slip in between. */
static int enter_context(struct baton_election *e, struct baton_context *ctx)
{
	*ctx = (struct baton_context){.election = e, .thread = pthread_self()};
	if (!lib_leads(e, &ctx->term) || e->draining)
		return BATON_E_NOT_LEADER;
	ctx->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (ctx->fd < 0)
		return BATON_E_SYSTEM;
	ctx->next = e->contexts;
	e->contexts = ctx;
	return 0;
}

static void leave_context(struct baton_context *ctx)
{
	struct baton_election *e = ctx->election;
	struct app *app = &e->handle->app;

	(void)pthread_mutex_lock(&app->lock);
	for (struct baton_context **p = &e->contexts; *p != NULL; p = &(*p)->next) {
		if (*p == ctx) {
			*p = ctx->next;
			break;
		}
	}
	events_check_drained(e);
	(void)pthread_mutex_unlock(&app->lock);
	(void)close(ctx->fd);
}

int baton_run_if_leader(struct baton_election *e, int (*fn)(struct baton_context *ctx, void *arg),
			void *arg)
{
	struct baton_context ctx;
	int code = e != NULL && fn != NULL ? lib_check(e->handle) : BATON_E_INVALID;

	if (code != 0)
		return code;
	(void)pthread_mutex_lock(&e->handle->app.lock);
	code = enter_context(e, &ctx);
	(void)pthread_mutex_unlock(&e->handle->app.lock);
	if (code != 0)
		return code;
	code = fn(&ctx, arg);
	leave_context(&ctx);
	return code;
}

/* Waits until elected (0), or until stopped (ELECTION_ENDED), or fails. */
static int wait_elected(struct baton_election *e, struct baton_context *ctx)
{
	struct baton *b = e->handle;
	int code = BATON_E_NOT_LEADER;

	(void)pthread_mutex_lock(&b->app.lock);
	while (!e->is_stopped && code == BATON_E_NOT_LEADER) {
		code = enter_context(e, ctx);
		if (code == BATON_E_NOT_LEADER)
			(void)events_wait(b, NEVER);
	}
	(void)pthread_mutex_unlock(&b->app.lock);
	return code == BATON_E_NOT_LEADER ? ELECTION_ENDED : code;
}

int baton_run_when_elected(struct baton_election *e,
			   int (*fn)(struct baton_context *ctx, void *arg), void *arg,
			   int64_t quiet_ms, bool once)
{
	struct baton_context ctx;
	int code = e != NULL && fn != NULL ? lib_check(e->handle) : BATON_E_INVALID;

	if (code == 0)
		code = baton_election_start(e);
	if (code != 0)
		return code;
	(void)pthread_mutex_lock(&e->handle->app.lock);
	e->n_runners++;
	(void)pthread_mutex_unlock(&e->handle->app.lock);
	(void)election_ref(e);
	while ((code = wait_elected(e, &ctx)) == 0) {
		int result = fn(&ctx, arg);
		bool still = baton_context_is_leader(&ctx);

		if (still)
			(void)baton_resign(e, quiet_ms);
		leave_context(&ctx);
		if (once && still) {
			code = result;
			break;
		}
	}
	(void)pthread_mutex_lock(&e->handle->app.lock);
	e->n_runners--;
	(void)pthread_mutex_unlock(&e->handle->app.lock);
	election_unref(e);
	return code == ELECTION_ENDED ? 0 : code;
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

	/* No longer than the deadline allows: a frozen loop can't cancel anybody. */
	while (baton_context_is_leader(ctx)) {
		uint64_t now_ns = clock_boot_ns();

		if (now_ns >= until_ns)
			return false;
		int64_t left_ms = until_ns == NEVER
					  ? INT32_MAX
					  : (int64_t)((until_ns - now_ns) / NS_PER_MS + 1);
		int64_t lead_ms = baton_context_time_left_ms(ctx) + 1;
		int64_t ms = left_ms < lead_ms ? left_ms : lead_ms;

		if (poll(&fd, 1, ms > INT32_MAX ? INT32_MAX : (int)ms) > 0)
			return true;
	}
	return true;
}
