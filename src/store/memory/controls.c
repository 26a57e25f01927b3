/*
 * controls.c: the switches of baton-memory.h. Each takes the store's lock, turns one thing, and
 * wakes the calls that a fault holds up, so that a fault that is turned off ends at once.
 */
#include "store/memory/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

static void set_fault(struct baton_memory *handle, int verb, const struct memory_fault *fault);
static int set_rig(struct baton_memory *handle, const char *name, uint32_t times, bool wins);

static struct memory *begin(struct baton_memory *handle)
{
	struct memory *m = handle->memory;

	pthread_mutex_lock(&m->lock);
	memory_sweep(m);
	return m;
}

static void end(struct memory *m)
{
	pthread_cond_broadcast(&m->changed);
	memory_hint_sooner(m); /* the clock may have been moved */
	pthread_mutex_unlock(&m->lock);
}

int baton_memory_open(const char *url, struct baton_memory **out, struct baton_error *err)
{
	struct baton_error own = {0};

	if (out == NULL) {
		store_fail(err, BATON_E_INVALID, "there is no pointer for the switches");
		return BATON_E_INVALID;
	}
	*out = memory_handle_new(url, &own);
	if (err != NULL)
		*err = own;
	return *out != NULL ? 0 : own.code;
}

void baton_memory_close(struct baton_memory *m)
{
	memory_handle_free(m);
}

/* ---- the clock ---- */

static void move_clock(struct memory *m, uint64_t to_ns)
{
	int64_t by_ns = (int64_t)(to_ns - memory_now_ns(m));

	if (m->is_held) {
		m->held_ns = to_ns;
		m->held_wall_ms += by_ns / (int64_t)CLOCK_NS_PER_MS;
	} else {
		m->offset_ns += (uint64_t)by_ns;
	}
	memory_sweep(m);
}

static uint64_t ns_of_ms(uint64_t ms)
{
	return ms > BATON_STORE_NEVER / CLOCK_NS_PER_MS ? BATON_STORE_NEVER : ms * CLOCK_NS_PER_MS;
}

void baton_memory_hold_clock(struct baton_memory *m, bool held)
{
	struct memory *s = begin(m);
	uint64_t now_ns = memory_now_ns(s);
	int64_t wall_ms = memory_wall_ms(s);

	if (held) /* on a whole ms, so that setting it to what it shows changes nothing */
		s->held_ns = now_ns - now_ns % CLOCK_NS_PER_MS;
	else
		s->offset_ns = now_ns - clock_boot_ns();
	s->held_wall_ms = wall_ms;
	s->is_held = held;
	end(s);
}

uint64_t baton_memory_clock_ms(struct baton_memory *m)
{
	struct memory *s = begin(m);
	uint64_t now_ns = memory_now_ns(s);

	pthread_mutex_unlock(&s->lock); /* nothing was changed, so no lane is woken */
	return now_ns / CLOCK_NS_PER_MS;
}

void baton_memory_set_clock(struct baton_memory *m, uint64_t ms)
{
	struct memory *s = begin(m);

	move_clock(s, ns_of_ms(ms));
	end(s);
}

void baton_memory_advance(struct baton_memory *m, uint64_t ms)
{
	struct memory *s = begin(m);

	move_clock(s, memory_now_ns(s) + ns_of_ms(ms));
	end(s);
}

/* ---- campaigns ---- */

int baton_memory_win(struct baton_memory *m, const char *name, uint32_t times)
{
	return set_rig(m, name, times, true);
}

int baton_memory_lose(struct baton_memory *m, const char *name, uint32_t times)
{
	return set_rig(m, name, times, false);
}

static int set_rig(struct baton_memory *handle, const char *name, uint32_t times, bool wins)
{
	struct memory *m = begin(handle);
	struct memory_election *e = name != NULL ? memory_election_get(m, name) : NULL;
	struct memory_rig *rig = name != NULL ? NULL : &m->rig;

	if (e != NULL)
		rig = &e->rig;
	if (rig != NULL)
		*rig = (struct memory_rig){.times = times, .wins = wins};
	if (e != NULL) {
		memory_hint(e); /* standbys may try now */
		memory_election_tidy(m, e);
	}
	end(m);
	return rig != NULL ? 0 : BATON_E_MEMORY;
}

/* Standbys look again: they may try now, or have to wait. */
static void hint_all(struct memory *m)
{
	for (size_t i = 0; i < m->elections.room; i++)
		for (struct name_node *n = m->elections.slots[i]; n != NULL; n = n->next)
			memory_hint((struct memory_election *)n);
}

void baton_memory_bar(struct baton_memory *m, uint64_t ms, const char *why)
{
	struct memory *s = begin(m);

	s->barred_ns = memory_now_ns(s) + ns_of_ms(ms);
	(void)snprintf(s->barred, sizeof(s->barred), "%s",
		       why != NULL && why[0] != '\0' ? why : "a test lets no candidate win");
	hint_all(s);
	end(s);
}

/* ---- faults ---- */

static struct memory_fault fault_of(int kind, uint32_t times)
{
	return (struct memory_fault){.kind = (uint8_t)kind, .times = times};
}

static void set_error(struct memory_fault *fault, int code, const char *text)
{
	store_fail(&fault->error, code, "%s", text != NULL ? text : "a test made this call fail");
}

void baton_memory_fail(struct baton_memory *m, int verb, uint32_t times, int code, const char *text)
{
	struct memory_fault fault = fault_of(MEMORY_FAULT_FAIL, times);

	set_error(&fault, code, text);
	set_fault(m, verb, &fault);
}

void baton_memory_doubt(struct baton_memory *m, int verb, uint32_t times, int code,
			const char *text)
{
	struct memory_fault fault = fault_of(MEMORY_FAULT_DOUBT, times);

	set_error(&fault, code, text);
	set_fault(m, verb, &fault);
}

void baton_memory_delay(struct baton_memory *m, int verb, uint32_t times, uint64_t ms)
{
	struct memory_fault fault = fault_of(MEMORY_FAULT_DELAY, times);

	fault.delay_ns = ns_of_ms(ms);
	set_fault(m, verb, &fault);
}

void baton_memory_delay_replies(struct baton_memory *m, int verb, uint32_t times, uint64_t ms)
{
	struct memory_fault fault = fault_of(MEMORY_FAULT_DELAY_REPLY, times);

	fault.delay_ns = ns_of_ms(ms);
	set_fault(m, verb, &fault);
}

void baton_memory_drop_replies(struct baton_memory *m, int verb, uint32_t times, bool at_once)
{
	struct memory_fault fault = fault_of(MEMORY_FAULT_DROP_REPLY, times);

	fault.at_once = at_once;
	set_fault(m, verb, &fault);
}

void baton_memory_black_hole(struct baton_memory *m, int verb, uint32_t times)
{
	struct memory_fault fault = fault_of(MEMORY_FAULT_BLACK_HOLE, times);

	set_fault(m, verb, &fault);
}

static void set_fault(struct baton_memory *handle, int verb, const struct memory_fault *fault)
{
	struct memory *m;

	if (verb < 0 || verb >= BATON_MEMORY_VERBS)
		return;
	m = begin(handle);
	m->faults[verb] = *fault;
	m->faults[verb].slot = (uint8_t)verb;
	m->faults[verb].serial = ++m->fault_serial;
	end(m);
}

void baton_memory_heal(struct baton_memory *m)
{
	struct memory *s = begin(m);

	for (int verb = 0; verb < BATON_MEMORY_VERBS; verb++)
		s->faults[verb] = (struct memory_fault){.serial = ++s->fault_serial};
	s->rig.times = 0;
	s->barred_ns = 0;
	for (size_t i = 0; i < s->elections.room; i++) {
		struct name_node *node = s->elections.slots[i], *next;

		for (; node != NULL; node = next) {
			struct memory_election *e = (struct memory_election *)node;

			next = node->next;
			e->rig.times = 0;
			memory_election_tidy(s, e);
		}
	}
	end(s);
}

/* ---- what others do ---- */

size_t baton_memory_expire(struct baton_memory *m, const char *id)
{
	struct memory *s = begin(m);
	struct memory_lease *l, *next;
	size_t n = 0;

	for (l = LIST_FIRST(&s->all); l != NULL; l = next) {
		next = LIST_NEXT(l, all);
		if (id != NULL && strcmp(l->owner->text, id) != 0)
			continue;
		memory_lease_end(s, l, MEMORY_END_EXPIRED);
		n++;
	}
	end(s);
	return n;
}

bool baton_memory_destroy(struct baton_memory *m, const char *name)
{
	struct memory *s = begin(m);
	struct memory_election *e = memory_election_find(s, name);
	bool was_held = e != NULL && e->holder != NULL;

	if (was_held)
		memory_unclaim(s, e, s->ends[MEMORY_END_DESTROYED]);
	end(s);
	return was_held;
}

/* Makes a lease that no process keeps alive. */
static struct memory_lease *phantom(struct memory *m, const char *leader, uint64_t ttl_ms)
{
	struct baton_lease lease = {
		.ttl_ns = ttl_ms != 0 ? ns_of_ms(ttl_ms) : BATON_STORE_NEVER,
		.owner = leader,
		.address = "",
	};

	(void)snprintf(lease.id, sizeof(lease.id), "0-%llx", (unsigned long long)++m->phantoms);
	return memory_lease_new(m, &lease);
}

int baton_memory_overwrite(struct baton_memory *m, const char *name, const char *leader,
			   uint64_t term, uint64_t ttl_ms)
{
	const struct memory_profile blank = {.score_permille = 1000, .is_healthy = true};
	struct memory *s = begin(m);
	struct memory_election *e = memory_election_get(s, name);
	struct memory_lease *l = NULL;
	int rc = e != NULL ? 0 : BATON_E_MEMORY;

	if (rc == 0 && leader != NULL) {
		l = phantom(s, leader, ttl_ms);
		rc = l != NULL ? 0 : BATON_E_MEMORY;
	}
	if (rc == 0) {
		if (e->holder != NULL)
			memory_unclaim(s, e, s->ends[MEMORY_END_OVERWRITTEN]);
		e->term = term;
		if (l != NULL)
			memory_claim(s, e, l, &blank);
		else
			memory_hint(e);
	}
	if (e != NULL)
		memory_election_tidy(s, e);
	end(s);
	return rc;
}

void baton_memory_forget(struct baton_memory *m)
{
	struct memory *s = begin(m);

	memory_forget_all(s);
	end(s);
}

uint64_t baton_memory_calls(struct baton_memory *m, int verb)
{
	struct memory *s = begin(m);
	uint64_t n = 0;

	for (int v = 0; v < BATON_MEMORY_VERBS; v++)
		if (v == verb || verb == BATON_MEMORY_ANY)
			n += s->calls[v];
	pthread_mutex_unlock(&s->lock);
	return n;
}
