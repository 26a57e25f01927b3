/*
 * world.c: time, coroutines and random numbers. The code that is simulated reads its clock and its
 * random bits here: clock_boot_ns(), clock_wall_ms() and getrandom() are this file's.
 */
#include "sim.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define WALL_MS INT64_C(1700000000000)
#define STEPS_MAX 2000000

struct world world;
const char *const election_names[ELECTIONS] = {"one", "two", "three"};

/* ---- what the code that is simulated asks of the system ---- */

uint64_t clock_boot_ns(void)
{
	if (world.current == NULL)
		return world.now_ns;
	return cand_clock_ns(world.current->cand, world.now_ns);
}

int64_t clock_wall_ms(void)
{
	return WALL_MS + (int64_t)(clock_boot_ns() / CLOCK_NS_PER_MS);
}

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): the header's are reserved */
ssize_t getrandom(void *out, size_t n, unsigned flags)
{
	uint8_t *bytes = out;

	(void)flags;
	for (size_t i = 0; i < n; i += sizeof(uint64_t)) {
		uint64_t bits = world_random(NEVER);

		(void)memcpy(bytes + i, &bits, n - i < sizeof(bits) ? n - i : sizeof(bits));
	}
	return (ssize_t)n;
}

/* ---- random numbers, clocks ---- */

static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

uint64_t world_random(uint64_t below)
{
	return below > 0 ? next_random(&world.random) % below : 0;
}

bool world_fault(uint32_t permille)
{
	bool happens = !world.is_quiet && world_random(1000) < permille;

	world.n_faults += happens;
	return happens;
}

uint64_t cand_clock_ns(const struct cand *cand, uint64_t now_ns)
{
	return cand->origin_ns + now_ns / 1000 * cand->rate;
}

uint64_t world_when_ns(const struct cand *cand, uint64_t clock_ns)
{
	if (clock_ns >= NEVER / 2000)
		return NEVER;
	return clock_ns > cand->origin_ns ? (clock_ns - cand->origin_ns) / cand->rate * 1000 + 1000
					  : 0;
}

void tell(const char *format, ...)
{
	va_list args;

	if (!world.is_told)
		return;
	(void)printf("%9.3f ", (double)world.now_ns / (double)CLOCK_NS_PER_S);
	va_start(args, format);
	(void)vprintf(format, args);
	va_end(args);
	(void)printf("\n");
}

/* ---- coroutines ---- */

static void enter(void)
{
	struct coroutine *c = world.current;

	c->run(c->cand);
	c->cand->n_running--;
	c->is_used = false;
	(void)setcontext(&world.context); /* never comes back */
}

static void prepare(struct coroutine *c)
{
	(void)getcontext(&c->context);
	c->context.uc_stack.ss_sp = c->stack;
	c->context.uc_stack.ss_size = STACK_SIZE;
	c->context.uc_link = NULL;
	makecontext(&c->context, enter, 0);
}

struct coroutine *coroutine_start(struct cand *cand, void (*run)(struct cand *cand))
{
	struct coroutine *c = world.coroutines;

	while (c < world.coroutines + COROUTINES_MAX && c->is_used)
		c++;
	if (c == world.coroutines + COROUTINES_MAX)
		abort();
	void *stack = c->stack != NULL ? c->stack : malloc(STACK_SIZE);

	if (stack == NULL)
		abort();
	*c = (struct coroutine){.stack = stack, .cand = cand, .run = run, .is_used = true};
	prepare(c);
	cand->n_running++;
	wake(c);
	return c;
}

void wake(struct coroutine *c)
{
	if (c->due_ns <= world.now_ns && c->order != 0)
		return;
	c->due_ns = world.now_ns;
	c->order = ++world.n_orders;
}

void sleep_until(uint64_t when_ns)
{
	struct coroutine *c = world.current;

	if (c->cand->has_ended)
		return;
	c->due_ns = when_ns > world.now_ns ? when_ns : world.now_ns;
	c->order = ++world.n_orders;
	(void)swapcontext(&c->context, &world.context);
}

static struct coroutine *next_coroutine(void)
{
	struct coroutine *next = NULL;

	for (struct coroutine *c = world.coroutines; c < world.coroutines + COROUTINES_MAX; c++)
		if (c->is_used && (next == NULL || c->due_ns < next->due_ns ||
				   (c->due_ns == next->due_ns && c->order < next->order)))
			next = c;
	return next;
}

/* A process that is paused takes no step; its clock goes on. */
static bool is_paused(struct coroutine *c)
{
	struct cand *cand = c->cand;

	if (cand->number < CANDS && !cand->has_ended && cand->paused_ns <= world.now_ns &&
	    world_fault(world.params.weather.paused)) {
		cand->paused_ns = world.now_ns + world_random(2 * world.params.ttl_ns);
		tell("%s is paused until %.3f", cand->id, (double)cand->paused_ns / 1e9);
	}
	if (cand->has_ended || cand->paused_ns <= world.now_ns)
		return false;
	c->due_ns = cand->paused_ns;
	return true;
}

static void run_coroutine(struct coroutine *c)
{
	struct cand *cand = c->cand;

	if (is_paused(c))
		return;
	if (cand->number < CANDS && !cand->has_ended && world.params.restarts &&
	    world_fault(world.params.weather.crashed)) {
		tell("%s crashes", cand->id);
		cand_end(cand);
	}
	world.current = c;
	(void)swapcontext(&world.context, &c->context);
	world.current = NULL;
}

/* ---- one world ---- */

static void draw_weather(struct weather *w, uint64_t ttl_ns)
{
	uint32_t bad = (uint32_t)world_random(4) * 25;

	w->lost = (uint32_t)world_random(bad + 1);
	w->late = (uint32_t)world_random(bad + 1);
	w->doubled = (uint32_t)world_random(bad + 1);
	w->silent = (uint32_t)world_random(bad + 1);
	w->failed = (uint32_t)world_random(bad + 1);
	w->conflict = (uint32_t)world_random(bad / 2 + 1);
	w->stale = (uint32_t)world_random(200);
	w->paused = (uint32_t)world_random(10);
	w->crashed = (uint32_t)world_random(4);
	w->slow_ns = 1 + world_random(world_random(3) == 0 ? ttl_ns / 8 : ttl_ns / 100);
}

static void draw_params(struct params *p)
{
	static const uint64_t ttls_s[] = {2, 15, 300}; /* in the last, sweepers have their time */
	bool is_weak = world_random(5) == 0;

	*p = (struct params){.ttl_ns = ttls_s[world_random(3)] * CLOCK_NS_PER_S};
	p->poll_ns = p->ttl_ns / 10;
	p->last_ns = (20 + world_random(40)) * p->ttl_ns;
	p->end_ns = p->last_ns + 20 * p->ttl_ns;
	p->server_rate = 1000 + (uint32_t)world_random(DRIFT_PERMILLE);
	p->pushes = world_random(2) == 0;
	p->deletes = world_random(3) == 0;
	p->pauses = world_random(2) == 0;
	p->orders = world_random(2) == 0;
	p->restarts = world_random(3) != 0;
	p->forgets = is_weak && world_random(2) == 0;
	p->evicts = is_weak && !p->forgets;
	p->locks = !is_weak && world_random(4) == 0;
	p->breaks = p->locks && world_random(2) == 0;
	draw_weather(&p->weather, p->ttl_ns);
}

static void tell_params(const struct params *p)
{
	tell("a lease of %llu s%s%s%s%s%s%s%s%s%s",
	     (unsigned long long)(p->ttl_ns / CLOCK_NS_PER_S), p->pushes ? ", push" : "",
	     p->deletes ? ", records are deleted" : "", p->pauses ? ", pauses" : "",
	     p->orders ? ", orders" : "", p->locks ? ", native locks" : "",
	     p->breaks ? ", which are broken" : "", p->forgets ? ", begins anew" : "",
	     p->evicts ? ", loses elections" : "", p->restarts ? ", crashes" : "");
}

static void reap(int number)
{
	struct cand *cand = world.cands[number];

	if (cand != NULL && cand->has_ended && cand->n_running == 0) {
		for (int i = 0; i < 3; i++)
			record_driver_lane_close(cand->lanes[i]);
		record_driver_close(cand->store);
		free(cand);
		world.cands[number] = NULL;
		if (number < CANDS)
			world.respawn_ns[number] =
				world.now_ns + world_random(2 * world.params.ttl_ns);
	}
	if (number < CANDS && world.cands[number] == NULL && !world.is_over &&
	    world.respawn_ns[number] <= world.now_ns)
		cand_start(number);
}

/* Whatever is next: something lands, somebody goes on, a candidate starts. */
static bool step(void)
{
	struct coroutine *c = next_coroutine();
	uint64_t lands_ns = store_next_ns();
	uint64_t next_ns = c != NULL && c->due_ns < lands_ns ? c->due_ns : lands_ns;

	for (int i = 0; i < CANDS; i++)
		if (world.cands[i] == NULL && !world.is_over && world.respawn_ns[i] < next_ns)
			next_ns = world.respawn_ns[i];
	if (next_ns == NEVER || next_ns > world.params.end_ns)
		return false;
	if (next_ns > world.now_ns)
		world.now_ns = next_ns;
	if (world.now_ns >= world.params.last_ns)
		world.is_quiet = true;
	if (lands_ns <= world.now_ns)
		store_land();
	else if (c != NULL && c->due_ns <= world.now_ns)
		run_coroutine(c);
	for (int i = 0; i <= CANDS; i++)
		reap(i);
	rules_check();
	world.hash = (world.hash ^ world.now_ns ^ world.random) * UINT64_C(0x9e3779b97f4a7c15);
	if (++world.n_steps > STEPS_MAX)
		rule_break(RULE_WORLD);
	return true;
}

/* All leave the way they came, so that nothing is left. */
static void finish(void)
{
	world.is_over = true;
	for (int i = 0; i <= CANDS; i++)
		if (world.cands[i] != NULL)
			cand_end(world.cands[i]);
	for (struct coroutine *c = next_coroutine(); c != NULL; c = next_coroutine()) {
		world.current = c;
		(void)swapcontext(&world.context, &c->context);
		world.current = NULL;
	}
	for (int i = 0; i <= CANDS; i++)
		reap(i);
	store_end();
}

void world_run(uint64_t seed)
{
	bool is_told = world.is_told;

	for (size_t i = 0; i < COROUTINES_MAX; i++)
		world.coroutines[i].is_used = false;
	world.seed = world.random = seed;
	world.now_ns = world.n_steps = world.n_faults = world.n_leaderships = world.hash = 0;
	world.n_orders = world.n_incarnations = 0;
	world.is_quiet = world.is_over = false;
	world.current = NULL;
	world.is_told = is_told;
	draw_params(&world.params);
	rules_begin();
	store_begin();
	tell_params(&world.params);
	for (int i = 0; i < CANDS; i++)
		world.respawn_ns[i] = world_random(world.params.ttl_ns);
	others_start();
	while (broken == RULE_NONE && step())
		;
	if (broken == RULE_NONE)
		rules_check_end();
	enum rule first = broken;

	finish();
	broken = first;
}
