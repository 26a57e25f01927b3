/*
 * base.c: what every driver has: see base.h.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "baton-store.h"
#include "store/base.h"

int store_fail(struct baton_error *err, int code, const char *format, ...)
{
	va_list args;

	if (err == NULL)
		return -1;
	err->code = code;
	va_start(args, format);
	(void)vsnprintf(err->text, sizeof(err->text), format, args);
	va_end(args);
	return -1;
}

int store_fail_term(struct baton_call *call, struct baton_campaign *c, enum term_fault fault)
{
	static const char *const texts[] = {
#define X(name, text) text,
		TERM_FAULTS(X)
#undef X
	};

	c->outcome = BATON_OUTCOME_FAILED;
	c->code = fault == TERM_BEHIND ? BATON_E_STALE
		  : fault == TERM_LOW  ? BATON_E_UNAVAILABLE
				       : BATON_E_CORRUPT;
	return store_fail(&call->error, c->code, "the election \"%.60s\" %s", c->name,
			  texts[fault]);
}

bool store_is_by_order(const char *reason)
{
	return reason != NULL &&
	       (strcmp(reason, "ordered") == 0 || strcmp(reason, "transferred") == 0);
}

int store_base_init(struct store_base *base)
{
	base->lanes = NULL;
	base->forgotten = false;
	return pthread_mutex_init(&base->lock, NULL) == 0 ? 0 : -1;
}

void store_base_done(struct store_base *base)
{
	if (!base->forgotten)
		(void)pthread_mutex_destroy(&base->lock);
}

void store_lock(struct store_base *base)
{
	if (!base->forgotten)
		(void)pthread_mutex_lock(&base->lock);
}

void store_unlock(struct store_base *base)
{
	if (!base->forgotten)
		(void)pthread_mutex_unlock(&base->lock);
}

void store_lane_add(struct store_base *base, struct store_lane *lane)
{
	store_lock(base);
	lane->next = base->lanes;
	base->lanes = lane;
	store_unlock(base);
}

void store_lane_remove(struct store_base *base, struct store_lane *lane)
{
	store_lock(base);
	struct store_lane **at = &base->lanes;

	while (*at != NULL && *at != lane)
		at = &(*at)->next;
	if (*at != NULL)
		*at = lane->next;
	store_unlock(base);
}

void *store_base_new(size_t size, struct baton_error *err)
{
	struct store_base *base = calloc(1, size);

	if (base != NULL && store_base_init(base) == 0)
		return base;
	free(base);
	(void)store_fail(err, BATON_E_MEMORY, "no memory for the store");
	return NULL;
}

void store_base_free(void *store)
{
	store_base_done(store);
	free(store);
}

void *store_lane_new(void *store, size_t size, bool wakes, struct baton_error *err)
{
	struct store_lane *lane = calloc(1, size);

	if (lane != NULL) {
		lane->wake = wakes ? eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC) : -1;
		store_lane_add(store, lane);
		if (!wakes || lane->wake >= 0)
			return lane;
		store_lane_free(store, lane);
	}
	(void)store_fail(err, BATON_E_MEMORY, "no memory for a lane of the store");
	return NULL;
}

static void close_wake(struct store_lane *lane)
{
	if (lane->wake >= 0)
		(void)close(lane->wake);
	lane->wake = -1;
}

void store_lane_free(void *store, void *lane)
{
	store_lane_remove(store, lane);
	close_wake(lane);
	free(lane);
}

void store_lane_wake(void *lane)
{
	const struct store_lane *l = lane;
	uint64_t one = 1;

	if (l->wake >= 0 && write(l->wake, &one, sizeof(one)) < 0)
		return; /* the counter is full, so the lane wakes anyhow */
}

void store_base_forget(void *store, void (*forget)(void *lane))
{
	struct store_base *base = store;

	base->forgotten = true;
	for (struct store_lane *lane = base->lanes; lane != NULL; lane = lane->next) {
		forget(lane);
		close_wake(lane);
	}
}

void store_ask(struct store_base *base, const struct baton_campaign *list, size_t n)
{
	store_lock(base);
	base->asked = list;
	base->n_asked = n;
	store_unlock(base);
}

bool store_is_asked(struct store_base *base, const char *name)
{
	bool is_asked = false;

	store_lock(base);
	for (size_t i = 0; i < base->n_asked && !is_asked; i++)
		is_asked = strcmp(base->asked[i].name, name) == 0;
	store_unlock(base);
	return is_asked;
}

int store_turn_init(struct store_turn *turn)
{
	pthread_condattr_t attr;

	*turn = (struct store_turn){.is_taken = false};
	if (pthread_mutex_init(&turn->lock, NULL) != 0)
		return -1;
	if (pthread_condattr_init(&attr) != 0) {
		(void)pthread_mutex_destroy(&turn->lock);
		return -1;
	}
	/* A condition can't wait by the boot clock. The boot clock is never behind the monotonic
	 * one. */
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	int rc = pthread_cond_init(&turn->given, &attr);

	(void)pthread_condattr_destroy(&attr);
	if (rc != 0)
		(void)pthread_mutex_destroy(&turn->lock);
	return rc == 0 ? 0 : -1;
}

void store_turn_done(struct store_turn *turn)
{
	(void)pthread_cond_destroy(&turn->given);
	(void)pthread_mutex_destroy(&turn->lock);
}

struct store_waiting {
	struct store_waiting *next;
	bool is_handed; /* it has the turn, even if its thread hasn't woken up yet */
};

static void line_up(struct store_turn *turn, struct store_waiting *me, bool first)
{
	struct store_waiting **at = &turn->waiting;

	while (!first && *at != NULL)
		at = &(*at)->next;
	me->next = *at;
	*at = me;
	turn->n_waiting++;
}

static void go_away(struct store_turn *turn, const struct store_waiting *me)
{
	struct store_waiting **at = &turn->waiting;

	while (*at != me)
		at = &(*at)->next;
	*at = me->next;
	turn->n_waiting--;
}

bool store_turn_take(struct store_turn *turn, uint64_t deadline_ns, bool first)
{
	uint64_t now_ns = clock_boot_ns();
	uint64_t left_ns = now_ns < deadline_ns ? deadline_ns - now_ns : 0;
	struct store_waiting me = {.next = NULL};
	struct timespec until;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	left_ns += (uint64_t)until.tv_nsec;
	until.tv_sec += (time_t)(left_ns / CLOCK_NS_PER_S);
	until.tv_nsec = (long)(left_ns % CLOCK_NS_PER_S);
	(void)pthread_mutex_lock(&turn->lock);
	bool is_ours = !turn->is_taken;

	turn->is_taken = true;
	if (!is_ours) {
		line_up(turn, &me, first);
		while (!me.is_handed &&
		       pthread_cond_timedwait(&turn->given, &turn->lock, &until) == 0)
			;
		is_ours = me.is_handed;
		if (!is_ours)
			go_away(turn, &me);
	}
	(void)pthread_mutex_unlock(&turn->lock);
	return is_ours;
}

void store_turn_give(struct store_turn *turn)
{
	(void)pthread_mutex_lock(&turn->lock);
	struct store_waiting *next = turn->waiting;
	bool is_handed = next != NULL;

	turn->is_taken = is_handed;
	if (is_handed) {
		next->is_handed = true;
		go_away(turn, next);
	}
	(void)pthread_mutex_unlock(&turn->lock);
	/* Only after the unlock: else the threads would wake up just to wait for the lock. */
	if (is_handed)
		(void)pthread_cond_broadcast(&turn->given);
}
