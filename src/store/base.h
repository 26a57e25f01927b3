/*
 * base.h: what every driver has, whatever its store: the sentence of an error, and a store's lock
 * and lanes. The struct of a driver's store begins with struct store_base. Nothing here knows which
 * driver that is.
 */
#ifndef BATON_STORE_BASE_H
#define BATON_STORE_BASE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/term.h"

struct baton_call;
struct baton_campaign;
struct baton_error;

/* Writes what went wrong into err, unless err is NULL. Returns -1 always, for `return`. */
int store_fail(struct baton_error *err, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The campaign has failed because of its term. Returns -1 always, for `return`. */
int store_fail_term(struct baton_call *call, struct baton_campaign *c, enum term_fault fault);

/* Whether a release with this reason obeys an order, whose note the history then shows. */
bool store_is_by_order(const char *reason);

/* The first member of a driver's lane. */
struct store_lane {
	struct store_lane *next;
	int wake; /* of store_lane_new(): a descriptor that ends a wait; -1: it has none */
};

/* The first member of a driver's store. */
struct store_base {
	pthread_mutex_t lock;
	struct store_lane *lanes;           /* `lock`; for forget() */
	bool forgotten;                     /* in a child of fork() (S10): nothing is locked */
	const struct baton_campaign *asked; /* `lock`: campaigns under way */
	size_t n_asked;
};

/* 0, or -1 when there is no memory for it. */
int store_base_init(struct store_base *base);
void store_base_done(struct store_base *base);

/* In a child of fork() both do nothing: a thread that the child doesn't have may hold the lock. */
void store_lock(struct store_base *base);
void store_unlock(struct store_base *base);

/* These take the lock. */
void store_lane_add(struct store_base *base, struct store_lane *lane);
void store_lane_remove(struct store_base *base, struct store_lane *lane);

/* Notes the campaigns that are under way; n = 0: none are left. A candidate that waits for the
 * answer to its campaign needs no hint of what the campaign has written. */
void store_ask(struct store_base *base, const struct baton_campaign *list, size_t n);
bool store_is_asked(struct store_base *base, const char *name);

/* A new store of that size. It begins with its struct store_base, and all else is zero. NULL: no
 * memory; err says so. */
void *store_base_new(size_t size, struct baton_error *err);
void store_base_free(void *store);
/* A new lane of that size, in the store's list. It begins with a struct store_lane. wakes: it has a
 * descriptor that ends a wait. NULL: no memory, or no descriptor; err says so. */
void *store_lane_new(void *store, size_t size, bool wakes, struct baton_error *err);
void store_lane_free(void *store, void *lane);
/* From any thread: makes the lane's descriptor readable. */
void store_lane_wake(void *lane);
/* S10, in a child of fork(): the connections are the parent's. `forget` closes what a lane has, and
 * says nothing to the server. */
void store_base_forget(void *store, void (*forget)(void *lane));

struct store_waiting;

/* One lane at a time has the turn, for as long as a call takes. No lane waits for it past a
 * deadline. Lanes get the turn in the order in which they came, except that a lane may ask to go
 * first. */
struct store_turn {
	pthread_mutex_t lock;
	pthread_cond_t given;
	bool is_taken;
	struct store_waiting *waiting; /* in the order in which they get the turn */
	size_t n_waiting;
};

/* 0, or -1 when there is no memory for it. */
int store_turn_init(struct store_turn *turn);
void store_turn_done(struct store_turn *turn);
/* False: another lane had it until that deadline, on the boot clock. first: before all others that
 * wait. */
bool store_turn_take(struct store_turn *turn, uint64_t deadline_ns, bool first);
void store_turn_give(struct store_turn *turn);

#endif
