/*
 * faults.c: see faults.h. A process wraps one adapter.
 */
#include "faults.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/name_table.h"
#include "store/base.h"
#include "store/record/decide/codec.h"

static const struct record_adapter *real;
static struct faults *switches;

struct faulty_lane {
	void *lane; /* the real one's */
	int kind;
	atomic_bool is_woken;
};

/* A write that is carried out later. */
struct pending {
	struct pending *next;
	struct record_item *items;
	size_t n;
	bool is_drop;
};

/* What was there before the last change that we know of, for reads that may be old. */
struct before {
	struct name_node node;
	struct record_version version[2]; /* now, and before it */
	struct bytes value[2];
	char key[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pending *pending;
static struct name_table befores;

/* ---- switches ---- */

struct faults *faults_map(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	struct faults *f = MAP_FAILED;

	if (fd >= 0 && ftruncate(fd, sizeof(*f)) == 0)
		f = mmap(NULL, sizeof(*f), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd >= 0)
		(void)close(fd);
	return f != MAP_FAILED ? f : NULL;
}

void faults_set(struct faults *f, int class, int kind, uint32_t times, uint64_t ms)
{
	struct faults_switch *s = &f->switches[class];

	atomic_store(&s->times, 0);
	atomic_store(&s->kind, (unsigned)kind);
	atomic_store(&s->ms, ms);
	atomic_store(&s->times, times);
}

void faults_heal(struct faults *f)
{
	for (int class = 0; class < FAULTS_CLASSES; class ++)
		faults_set(f, class, FAULTS_NONE, 0, 0);
}

static int take_switch(struct faults_switch *s, uint64_t *ms)
{
	unsigned times = atomic_load(&s->times);

	while (times != 0 && times != FAULTS_ALWAYS)
		if (atomic_compare_exchange_weak(&s->times, &times, times - 1))
			break;
	*ms = atomic_load(&s->ms);
	return times != 0 ? (int)atomic_load(&s->kind) : FAULTS_NONE;
}

static uint64_t faults_random(void)
{
	uint64_t bits = 0;

	return getrandom(&bits, sizeof(bits), 0) == (ssize_t)sizeof(bits) ? bits : 0;
}

/* What this call is to suffer. */
static int take(int class, uint64_t *ms)
{
	*ms = 0;
	if (switches == NULL)
		return FAULTS_NONE;
	atomic_fetch_add(&switches->calls[class], 1);
	atomic_fetch_add(&switches->calls[FAULTS_ANY], 1);
	int kind = take_switch(&switches->switches[class], ms);

	if (kind == FAULTS_NONE)
		kind = take_switch(&switches->switches[FAULTS_ANY], ms);
	if (kind == FAULTS_NONE &&
	    faults_random() % 1000 < atomic_load(&switches->weather_permille)) {
		static const int weather[] = {FAULTS_FAIL,   FAULTS_MUTE,     FAULTS_LATE,
					      FAULTS_DOUBLE, FAULTS_CONFLICT, FAULTS_AFTER,
					      FAULTS_STALE};

		kind = weather[faults_random() % (sizeof(weather) / sizeof(weather[0]))];
		*ms = 1 + faults_random() % 20;
	}
	if (kind != FAULTS_NONE)
		atomic_fetch_add(&switches->n_suffered, 1);
	return kind;
}

/* Until then, or until somebody wakes this lane; a millisecond at a time. */
static void wait_until(struct faulty_lane *lane, uint64_t when_ns)
{
	static const struct timespec step = {.tv_nsec = 1000000};

	while (clock_boot_ns() < when_ns && !atomic_load(&lane->is_woken))
		(void)ppoll(NULL, 0, &step, NULL);
}

/* ---- items ---- */

static void end_all(struct baton_call *call, struct record_item *items, size_t n, int outcome,
		    int code, const char *text)
{
	for (size_t i = 0; i < n; i++) {
		items[i].outcome = outcome;
		items[i].code = code;
		items[i].is_told = false;
	}
	(void)store_fail(&call->error, code, "%s", text);
}

static void end_late(struct baton_call *call, struct record_item *items, size_t n, bool is_write)
{
	end_all(call, items, n, is_write ? BATON_OUTCOME_UNKNOWN : BATON_OUTCOME_FAILED,
		BATON_E_TIMEOUT, "no answer in time, says the test");
}

static struct record_item *copy_items(const struct record_item *items, size_t n)
{
	struct record_item *copy = calloc(n, sizeof(*copy));

	for (size_t i = 0; copy != NULL && i < n; i++) {
		copy[i].key = strdup(items[i].key);
		copy[i].version = items[i].version;
		(void)bytes_add(&copy[i].value, items[i].value.at, items[i].value.n,
				items[i].value.n);
	}
	return copy;
}

static void free_items(struct record_item *items, size_t n)
{
	for (size_t i = 0; items != NULL && i < n; i++) {
		bytes_done(&items[i].value);
		free((char *)(uintptr_t)items[i].key);
	}
	free(items);
}

/* ---- reads that are old ---- */

static void bytes_copy(struct bytes *to, const struct bytes *from)
{
	bytes_clear(to);
	(void)bytes_add(to, from->at, from->n, from->n);
}

static void note_before(const struct record_item *item)
{
	size_t size = strlen(item->key) + 1;
	struct before *b = (struct before *)name_table_find(&befores, item->key);

	if (b == NULL) {
		b = calloc(1, sizeof(*b) + size);
		if (b == NULL)
			return;
		(void)memcpy(b->key, item->key, size);
		name_table_add(&befores, &b->node, b->key);
	}
	if (b->version[0].n == item->version.n &&
	    memcmp(b->version[0].bytes, item->version.bytes, item->version.n) == 0)
		return;
	b->version[1] = b->version[0];
	b->version[0] = item->version;
	bytes_copy(&b->value[1], &b->value[0]);
	bytes_copy(&b->value[0], &item->value);
}

static void note_all(const struct record_item *items, size_t n)
{
	(void)pthread_mutex_lock(&lock);
	for (size_t i = 0; i < n; i++)
		if (items[i].outcome == BATON_OUTCOME_OK && !items[i].is_unchanged)
			note_before(&items[i]);
	(void)pthread_mutex_unlock(&lock);
}

static void make_old(struct record_item *items, size_t n)
{
	(void)pthread_mutex_lock(&lock);
	for (size_t i = 0; i < n; i++) {
		const struct before *b = (struct before *)name_table_find(&befores, items[i].key);

		if (b == NULL || items[i].outcome != BATON_OUTCOME_OK)
			continue;
		items[i].is_unchanged = false;
		items[i].version = b->version[1];
		bytes_copy(&items[i].value, &b->value[1]);
	}
	(void)pthread_mutex_unlock(&lock);
}

/* ---- what a call is about ---- */

static int class_of_value(const struct record_item *item)
{
	struct record_lease lease;
	struct record_election e;

	if (item->key[0] == 't') /* the trial before a store's first lease */
		return item->version.n == 0 ? FAULTS_OPEN : FAULTS_OTHER;
	if (item->key[0] == 'l' && record_parse_lease(item->value.at, item->value.n, &lease) == 0) {
		if (lease.death != RECORD_ALIVE)
			return FAULTS_OTHER;
		return item->version.n == 0 ? FAULTS_OPEN : FAULTS_RENEW;
	}
	if (item->key[0] == 'e' && record_parse_election(item->value.at, item->value.n, &e) == 0 &&
	    e.order_id == 0 && !e.paused)
		return e.lease[0] != '\0' ? FAULTS_CLAIM : FAULTS_RELEASE;
	return FAULTS_OTHER;
}

static int class_of_read(const struct faulty_lane *lane, const struct record_item *items, size_t n)
{
	bool is_election = n > 0 && items[0].key[0] == 'e';

	return is_election && lane->kind != BATON_LANE_WATCH ? FAULTS_READ : FAULTS_OTHER;
}

/* ---- calls ---- */

static void faulty_get(void *l, struct baton_call *call, struct record_item *items, size_t n,
		       bool fresh)
{
	struct faulty_lane *lane = l;
	uint64_t ms;
	int kind = take(class_of_read(lane, items, n), &ms);
	uint64_t late_ns = clock_boot_ns() + ms * CLOCK_NS_PER_MS;

	atomic_store(&lane->is_woken, false);
	if (kind == FAULTS_FAIL) {
		end_all(call, items, n, BATON_OUTCOME_FAILED, BATON_E_UNAVAILABLE,
			"connection reset by the test");
		return;
	}
	if (kind == FAULTS_DENY) {
		end_all(call, items, n, BATON_OUTCOME_FAILED, BATON_E_DENIED,
			"permission denied by the test");
		return;
	}
	if (kind == FAULTS_HOLE || kind == FAULTS_MUTE ||
	    (kind == FAULTS_LATE && late_ns >= call->deadline_ns)) {
		wait_until(lane, call->deadline_ns);
		end_late(call, items, n, false);
		return;
	}
	real->get(lane->lane, call, items, n, fresh);
	note_all(items, n);
	if (kind == FAULTS_STALE && !fresh)
		make_old(items, n);
	if (kind == FAULTS_LATE)
		wait_until(lane, late_ns);
}

static void really_write(struct faulty_lane *lane, struct baton_call *call,
			 struct record_item *items, size_t n, bool is_drop)
{
	if (is_drop)
		real->drop(lane->lane, call, items, n);
	else
		real->put(lane->lane, call, items, n);
	note_all(items, n);
}

/* Those that were only said to be lost. */
static void land_pending(struct faulty_lane *lane, struct baton_call *call)
{
	(void)pthread_mutex_lock(&lock);
	struct pending *list = pending;

	pending = NULL;
	(void)pthread_mutex_unlock(&lock);
	while (list != NULL) {
		struct pending *p = list;
		struct baton_call quiet = {.deadline_ns = call->deadline_ns};

		list = p->next;
		really_write(lane, &quiet, p->items, p->n, p->is_drop);
		free_items(p->items, p->n);
		free(p);
	}
}

static void keep_pending(const struct record_item *items, size_t n, bool is_drop)
{
	struct pending *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return;
	p->items = copy_items(items, n);
	p->n = p->items != NULL ? n : 0;
	p->is_drop = is_drop;
	(void)pthread_mutex_lock(&lock);
	p->next = pending;
	pending = p;
	(void)pthread_mutex_unlock(&lock);
}

static void write_twice(struct faulty_lane *lane, struct baton_call *call,
			struct record_item *items, size_t n, bool is_drop)
{
	struct record_item *copy = copy_items(items, n);
	struct baton_call quiet = {.deadline_ns = call->deadline_ns};

	really_write(lane, call, items, n, is_drop);
	if (copy != NULL)
		really_write(lane, &quiet, copy, n, is_drop);
	free_items(copy, n);
}

static void faulty_write(struct faulty_lane *lane, struct baton_call *call,
			 struct record_item *items, size_t n, bool is_drop)
{
	uint64_t ms;
	int class = n > 0 && !is_drop ? class_of_value(&items[0]) : FAULTS_OTHER;
	int kind = take(class, &ms);

	if (n > 0 && items[0].key[0] == 't' && switches != NULL) /* tried before the first lease */
		atomic_fetch_add(&switches->calls[FAULTS_OPEN], 1);
	uint64_t late_ns = clock_boot_ns() + ms * CLOCK_NS_PER_MS;

	atomic_store(&lane->is_woken, false);
	land_pending(lane, call);
	switch (kind) {
	case FAULTS_FAIL:
		end_all(call, items, n, BATON_OUTCOME_FAILED, BATON_E_UNAVAILABLE,
			"connection reset by the test");
		break;
	case FAULTS_DENY:
		end_all(call, items, n, BATON_OUTCOME_FAILED, BATON_E_DENIED,
			"permission denied by the test");
		break;
	case FAULTS_CONFLICT: end_all(call, items, n, BATON_OUTCOME_REFUSED, 0, ""); break;
	case FAULTS_AFTER:
		keep_pending(items, n, is_drop);
		end_late(call, items, n, true);
		break;
	case FAULTS_HOLE:
		wait_until(lane, call->deadline_ns);
		end_late(call, items, n, true);
		break;
	case FAULTS_DOUBLE: write_twice(lane, call, items, n, is_drop); break;
	default:
		really_write(lane, call, items, n, is_drop);
		if (kind == FAULTS_MUTE || kind == FAULTS_LATE)
			wait_until(lane, kind == FAULTS_LATE && late_ns < call->deadline_ns
						 ? late_ns
						 : call->deadline_ns);
		if (kind == FAULTS_MUTE || (kind == FAULTS_LATE && late_ns >= call->deadline_ns))
			end_late(call, items, n, true);
		break;
	}
}

static void faulty_put(void *lane, struct baton_call *call, struct record_item *items, size_t n)
{
	faulty_write(lane, call, items, n, false);
}

static void faulty_drop(void *lane, struct baton_call *call, struct record_item *items, size_t n)
{
	faulty_write(lane, call, items, n, true);
}

/* OK: it goes on. */
static int suffer(struct faulty_lane *lane, struct baton_call *call, int class)
{
	uint64_t ms;
	int kind = take(class, &ms);

	atomic_store(&lane->is_woken, false);
	if (kind == FAULTS_HOLE || kind == FAULTS_MUTE) {
		wait_until(lane, call->deadline_ns);
		(void)store_fail(&call->error, BATON_E_TIMEOUT, "no answer in time, says the test");
	} else if (kind == FAULTS_DENY) {
		(void)store_fail(&call->error, BATON_E_DENIED, "permission denied by the test");
	} else if (kind == FAULTS_FAIL) {
		(void)store_fail(&call->error, BATON_E_UNAVAILABLE, "connection reset by the test");
	} else {
		return BATON_OUTCOME_OK;
	}
	return BATON_OUTCOME_FAILED;
}

static int faulty_list(void *l, struct baton_call *call, const char *prefix, bool with_values,
		       record_found *found, void *arg)
{
	struct faulty_lane *lane = l;
	int outcome = suffer(lane, call, FAULTS_OTHER);

	return outcome == BATON_OUTCOME_OK
		       ? real->list(lane->lane, call, prefix, with_values, found, arg)
		       : outcome;
}

static int faulty_watch(void *l, struct baton_call *call, record_changed *changed, void *arg)
{
	struct faulty_lane *lane = l;
	int outcome = suffer(lane, call, FAULTS_OTHER);

	return outcome == BATON_OUTCOME_OK ? real->watch(lane->lane, call, changed, arg) : outcome;
}

static void faulty_listen(void *l, struct baton_call *call, const struct record_alarms *alarms,
			  record_changed *changed, void *arg)
{
	real->listen(((struct faulty_lane *)l)->lane, call, alarms, changed, arg);
}

static void faulty_wake(void *l)
{
	struct faulty_lane *lane = l;

	atomic_store(&lane->is_woken, true);
	if (real->wake != NULL)
		real->wake(lane->lane);
}

static int faulty_age(void *l, struct baton_call *call, struct record_age *age)
{
	return real->age(((struct faulty_lane *)l)->lane, call, age);
}

static int faulty_lock_take(void *l, struct baton_call *call, const char *name,
			    const char *lease_id, uint64_t ttl_ns, uint64_t *free_in_ns)
{
	struct faulty_lane *lane = l;
	int outcome = suffer(lane, call, FAULTS_LOCK);

	return outcome == BATON_OUTCOME_OK
		       ? real->lock_take(lane->lane, call, name, lease_id, ttl_ns, free_in_ns)
		       : outcome;
}

static int faulty_lock_keep(void *l, struct baton_call *call, const char *name,
			    const char *lease_id, uint64_t ttl_ns)
{
	struct faulty_lane *lane = l;
	int outcome = suffer(lane, call, FAULTS_LOCK);

	return outcome == BATON_OUTCOME_OK
		       ? real->lock_keep(lane->lane, call, name, lease_id, ttl_ns)
		       : outcome;
}

static int faulty_lock_drop(void *l, struct baton_call *call, const char *name,
			    const char *lease_id)
{
	struct faulty_lane *lane = l;

	return real->lock_drop(lane->lane, call, name, lease_id);
}

/* ---- the rest is the real one's ---- */

static int faulty_open(const struct baton_store_config *config, struct record_options *options,
		       void **out, struct baton_error *err)
{
	return real->open(config, options, out, err);
}

static int faulty_lane_open(void *store, int kind, void **out, struct baton_error *err)
{
	struct faulty_lane *lane = calloc(1, sizeof(*lane));
	int code = lane != NULL ? real->lane_open(store, kind, &lane->lane, err) : BATON_E_MEMORY;

	if (code != BATON_OK) {
		free(lane);
		return code;
	}
	lane->kind = kind;
	*out = lane;
	return BATON_OK;
}

static void faulty_lane_close(void *l)
{
	struct faulty_lane *lane = l;

	real->lane_close(lane->lane);
	free(lane);
}

static int faulty_examine(void *l, struct baton_call *call,
			  void (*found)(void *arg, const struct baton_finding *finding), void *arg)
{
	return real->examine(((struct faulty_lane *)l)->lane, call, found, arg);
}

void faults_wrap(const struct record_adapter *wrapped, struct faults *f, struct record_adapter *out)
{
	real = wrapped;
	switches = f;
	if (befores.slots == NULL)
		(void)name_table_init(&befores);
	*out = *wrapped;
	out->open = faulty_open;
	out->lane_open = faulty_lane_open;
	out->lane_close = faulty_lane_close;
	out->examine = wrapped->examine != NULL ? faulty_examine : NULL;
	out->get = faulty_get;
	out->put = faulty_put;
	out->drop = faulty_drop;
	out->list = faulty_list;
	out->watch = wrapped->watch != NULL ? faulty_watch : NULL;
	out->listen = wrapped->listen != NULL ? faulty_listen : NULL;
	out->wake = faulty_wake;
	out->age = wrapped->age != NULL ? faulty_age : NULL;
	out->lock_take = faulty_lock_take;
	out->lock_keep = faulty_lock_keep;
	out->lock_drop = faulty_lock_drop;
}
