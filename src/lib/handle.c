/* handle.c: opening and closing a handle, and what can be asked of it. */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "lib/lib.h"
#include "lib/messages.h"

#define DISPATCHERS_DEFAULT 2

static int take_options(struct baton *b, const struct baton_options *options,
			struct baton_error *err);
static int handle_open_store(struct baton *b, const char *url, struct baton_error *err);
static void free_handle(struct baton *b);

void baton_options_init_sized(struct baton_options *options, size_t size)
{
	struct baton_options o = {
		.size = size,
		.lease_ms = 15000,
		.drift_permille = 100,
		.dispatchers = DISPATCHERS_DEFAULT,
	};

	lib_init_sized(options, size, &o, sizeof(o));
}

/* Everything that free_handle() undoes, in a state that it can undo. */
static struct baton *new_handle(void)
{
	struct baton *b = calloc(1, sizeof(*b));
	pthread_condattr_t attr;

	if (b == NULL)
		return NULL;
	b->mail.last = &b->mail.first;
	b->mail.event_fd = -1;
	b->timer_fd = -1;
	b->app.events_fd = -1;
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_mutex_init(&b->start_lock, NULL);
	(void)pthread_mutex_init(&b->mail.lock, NULL);
	(void)pthread_mutex_init(&b->app.lock, NULL);
	(void)pthread_mutex_init(&b->peers.lock, NULL);
	(void)pthread_mutex_init(&b->ring.lock, NULL);
	(void)pthread_cond_init(&b->app.changed, &attr);
	(void)pthread_cond_init(&b->app.dispatch, NULL);
	(void)pthread_cond_init(&b->ring.wake, NULL);
	for (int i = 0; i < 3; i++) {
		struct lane *lane = &b->lanes[i];

		lane->handle = b;
		lane->kind = i;
		lane->last[0] = &lane->first[0];
		lane->last[1] = &lane->first[1];
		lane->last[2] = &lane->first[2];
		lane->changes_last = &lane->changes;
		lane->spare.m.kind = MSG_HINT_SPARE;
		(void)pthread_mutex_init(&lane->lock, NULL);
		(void)pthread_cond_init(&lane->wake, &attr);
	}
	(void)pthread_condattr_destroy(&attr);
	return b;
}

static int handle_prepare(struct baton *b, struct baton_error *err)
{
	if (fork_cells_init(b) != 0 ||
	    (!b->traits->own_leases && (b->shared = executor_new(b)) == NULL) ||
	    fork_register(b) != 0)
		return lib_fail(err, BATON_E_MEMORY, "out of memory");
	return events_init(b, err);
}

/*
 * A program that only asks or orders needs none of this. What couldn't be made is made the next
 * time.
 */
int lib_start(struct baton *b, struct baton_error *err)
{
	(void)pthread_mutex_lock(&b->start_lock);
	int code = log_start(b, err);

	if (code == 0)
		code = loop_start(b, err);
	if (code == 0)
		code = events_start(b, err);
	for (int i = 0; code == 0 && i < 3; i++)
		code = lane_start(b, i, err);
	if (code == 0 && b->traits->warning != NULL && !b->is_warned)
		log_put(b, BATON_LOG_WARN, 0, "", 0, NULL, "%s", b->traits->warning);
	b->is_warned = b->is_warned || code == 0;
	(void)pthread_mutex_unlock(&b->start_lock);
	return code;
}

int baton_open(const char *url, const struct baton_options *options, struct baton **out,
	       struct baton_error *err)
{
	struct baton_error mine = {0};
	int code;

	err = err != NULL ? err : &mine;
	*err = (struct baton_error){0};
	if (url == NULL || out == NULL)
		return lib_fail(err, BATON_E_INVALID,
				"baton_open() needs a URL and a pointer for the handle");
	*out = NULL;
	struct baton *b = new_handle();

	if (b == NULL)
		return lib_fail(err, BATON_E_MEMORY, "out of memory");
	code = take_options(b, options, err);
	if (code == 0)
		code = handle_open_store(b, url, err);
	if (code == 0)
		code = handle_prepare(b, err);
	if (code != 0) {
		free_handle(b);
		return code;
	}
	*out = b;
	return 0;
}

/* ---- options ---- */

/* Host and pid are for people. The digits of the incarnation make it unique, and are never cut. */
static void default_id(struct baton *b)
{
	char host[65] = "";

	(void)gethostname(host, sizeof(host) - 1);
	if (!text_is_name(host, sizeof(host)))
		(void)strcpy(host, "host");
	(void)snprintf(b->id, sizeof(b->id), "%s-%ld-%.12s", host, (long)getpid(), b->incarnation);
}

static int new_incarnation(struct baton *b, struct baton_error *err)
{
	unsigned char bits[16];

	if (getrandom(bits, sizeof(bits), 0) != (ssize_t)sizeof(bits))
		return lib_fail(err, BATON_E_SYSTEM, "the system gives no random bits");
	for (size_t i = 0; i < sizeof(bits); i++)
		(void)snprintf(b->incarnation + 2 * i, 3, "%02x", bits[i]);
	return 0;
}

static uint64_t ms_to_ns(uint64_t ms)
{
	return ms > NEVER / NS_PER_MS ? NEVER : ms * NS_PER_MS;
}

/* Rounded up: what is said to be enough must be enough. */
static uint64_t ns_to_ms_up(uint64_t ns)
{
	return ns / NS_PER_MS + (ns % NS_PER_MS != 0);
}

static int take_options(struct baton *b, const struct baton_options *options,
			struct baton_error *err)
{
	struct baton_options o;

	baton_options_init(&o);
	if (options != NULL &&
	    lib_take_sized(&o, sizeof(o), FIRST_OPTIONS, options, options->size, err) != 0)
		return err->code;
	if ((o.id != NULL && !text_is_name(o.id, BATON_NAME_MAX)) ||
	    (o.address != NULL && !text_is_name(o.address, BATON_NAME_MAX)))
		return lib_fail(err, BATON_E_INVALID,
				"not a valid id or address; expected 1 to %d bytes of UTF-8 "
				"without control characters",
				BATON_NAME_MAX);
	if (o.dispatchers > DISPATCHERS_MAX)
		return lib_fail(err, BATON_E_INVALID, "too many dispatchers; expected at most %d",
				DISPATCHERS_MAX);
	int code = new_incarnation(b, err);

	if (code != 0)
		return code;
	if (o.id != NULL)
		(void)snprintf(b->id, sizeof(b->id), "%s", o.id);
	else
		default_id(b);
	(void)snprintf(b->address, sizeof(b->address), "%s", o.address != NULL ? o.address : "");
	b->n_dispatchers = o.dispatchers != 0 ? o.dispatchers : DISPATCHERS_DEFAULT;
	b->log = o.log;
	b->log_arg = o.log_arg;
	b->trace = o.trace;
	b->trace_arg = o.trace_arg;
	b->outlive = o.outlive;
	b->opened_wall_ms = clock_wall_ms();
	b->timing = (struct timing){
		.lease_ns = ms_to_ns(o.lease_ms),
		.renew_ns = ms_to_ns(o.renew_ms),
		.grace_ns = ms_to_ns(o.grace_ms),
		.retry_ns = ms_to_ns(o.retry_ms),
		.retry_max_ns = ms_to_ns(o.retry_max_ms),
		.drift_ppm = (uint64_t)o.drift_permille * 1000,
	};
	timing_fill(&b->timing);
	return 0;
}

static int handle_open_store(struct baton *b, const char *url, struct baton_error *err)
{
	struct baton_store_config config = {.size = sizeof(config), .url = url};

	const struct baton_driver *found = drivers_find(url, &b->driver_library, err);

	if (found == NULL)
		return err->code;
	drivers_copy(found, &b->driver_table);
	b->driver = &b->driver_table;
	int code = b->driver->open(&config, &b->store, err);

	if (code != 0)
		return code;
	drivers_copy_traits(b->driver->traits(b->store), &b->traits_known);
	b->traits = &b->traits_known;
	if (b->outlive && !b->traits->outlives)
		return lib_fail(err, BATON_E_UNSUPPORTED,
				"outlive is not supported: this store replaces a dead leader at "
				"once; use another store, or leave outlive off");
	b->timing.drift_ppm =
		max_ns(b->timing.drift_ppm, (uint64_t)b->traits->drift_permille * 1000);
	enum timing_fault fault = timing_check(&b->timing, b->traits->min_lease_ns);

	if (fault == TIMING_LEASE_STORE)
		return lib_fail(err, BATON_E_TIMING, "%s; it must be at least %llu ms",
				text_timing(fault),
				(unsigned long long)ns_to_ms_up(b->traits->min_lease_ns));
	if (fault != TIMING_OK && fault != TIMING_WARN_RENEW)
		return lib_fail(err, BATON_E_TIMING, "%s", text_timing(fault));
	return 0;
}

/* ---- closing ---- */

static void wait_for_lease(struct baton *b, uint64_t until_ns)
{
	/* All elections are stopped: the core closes the lease by itself, and is_open says when. */
	(void)pthread_mutex_lock(&b->app.lock);
	while (b->shared != NULL && atomic_load(&b->shared->is_open) && events_wait(b, until_ns))
		;
	(void)pthread_mutex_unlock(&b->app.lock);
}

void baton_close(struct baton *b)
{
	if (b == NULL)
		return;
	if (fork_cells_forked(b)) /* the parent's: nothing here is ours but the memory */
		return;
	uint64_t until_ns = after_ns(clock_boot_ns(), timing_gone_ns(&b->timing));

	atomic_store(&b->is_closing, true);
	(void)pthread_mutex_lock(&b->app.lock);
	for (struct baton_election *e = b->app.all; e != NULL; e = e->all_next) {
		(void)events_say(e, AUDIENCE_STOP);
		bool is_ours = !events_say(e, AUDIENCE_FREE).refused;

		b->app.n_kept += !e->audience.let_go;
		loop_poke(e, POKE_DETACH);
		if (is_ours)
			election_unref(e); /* the loop's reference keeps it until it has left */
	}
	/* S8: waits without a limit. The loop needs no store to let go of the elections; and if the
	 * loop is kept from running, the wait goes on. */
	while (b->app.n_kept > 0)
		(void)events_wait(b, NEVER);
	while (b->app.all != NULL && events_wait(b, until_ns))
		;
	(void)pthread_mutex_unlock(&b->app.lock);
	wait_for_lease(b, until_ns);
	free_handle(b);
}

static void free_handle(struct baton *b)
{
	/* Handlers first: they may call into all the rest. Then what feeds them. */
	events_stop(b);
	for (int i = 0; i < 3; i++)
		lane_stop(&b->lanes[i]);
	loop_stop(b);
	/* Not before the loop has ended: it may be behind, and wakes the watch lane. */
	for (int i = 0; i < 3; i++)
		lane_done(&b->lanes[i]);
	if (b->admin.lane != NULL)
		b->driver->lane_close(b->admin.lane);
	events_done(b);
	fork_unregister(b);
	log_stop(b);
	while (b->app.all != NULL) { /* what would not stop in time */
		struct baton_election *e = b->app.all;

		b->app.all = e->all_next;
		if (e->executor != b->shared)
			executor_unref(e->executor); /* the loop's */
		election_unref(e);
	}
	while (b->left != NULL) { /* ... and what would not end */
		struct executor *c = b->left;

		b->left = c->left_next;
		executor_unref(c);
	}
	executor_unref(b->shared);
	fork_cells_done(b);
	peers_done(b);
	if (b->store != NULL)
		b->driver->close(b->store);
	if (b->driver_library != NULL)
		(void)dlclose(b->driver_library);
	for (int i = 0; i < 3; i++) {
		(void)pthread_mutex_destroy(&b->lanes[i].lock);
		(void)pthread_cond_destroy(&b->lanes[i].wake);
	}
	(void)pthread_mutex_destroy(&b->start_lock);
	(void)pthread_mutex_destroy(&b->mail.lock);
	(void)pthread_mutex_destroy(&b->app.lock);
	(void)pthread_mutex_destroy(&b->peers.lock);
	(void)pthread_mutex_destroy(&b->ring.lock);
	(void)pthread_cond_destroy(&b->app.changed);
	(void)pthread_cond_destroy(&b->app.dispatch);
	(void)pthread_cond_destroy(&b->ring.wake);
	free(b);
}

/* ---- questions ---- */

int lib_fail(struct baton_error *err, int code, const char *format, ...)
{
	va_list args;

	if (err == NULL)
		return code;
	err->code = code;
	va_start(args, format);
	(void)vsnprintf(err->text, sizeof(err->text), format, args);
	va_end(args);
	return code;
}

void lib_init_sized(void *to, size_t size, const void *from, size_t known)
{
	(void)memset(to, 0, size);
	(void)memcpy(to, from, size < known ? size : known);
}

/* A program that is older than the library leaves out the end, a newer one must leave it zero. */
int lib_take_sized(void *to, size_t known, size_t least, const void *from, size_t size,
		   struct baton_error *err)
{
	const unsigned char *bytes = from;

	if (size < least || size > 65536)
		return lib_fail(err, BATON_E_INVALID,
				"the options have no size; set them up with their init function");
	for (size_t i = known; i < size; i++)
		if (bytes[i] != 0)
			return lib_fail(err, BATON_E_UNSUPPORTED,
					"the options use a field that this library (%s) is too "
					"old for",
					BATON_VERSION);
	(void)memcpy(to, from, size < known ? size : known);
	return 0;
}

void lib_give_sized(void *to, size_t size, void *all, size_t known)
{
	*(size_t *)all = size < known ? size : known;
	lib_init_sized(to, size, all, known);
}

int lib_check(const struct baton *b)
{
	if (b == NULL)
		return BATON_E_INVALID;
	return fork_cells_forked(b) ? BATON_E_FORKED : 0;
}

const char *baton_id(const struct baton *b)
{
	return b->id;
}

const char *baton_promises(const struct baton *b)
{
	return b->traits->promises;
}

int baton_get_timings_sized(const struct baton *b, struct baton_timings *timings, size_t size)
{
	int code =
		timings != NULL && size >= sizeof(timings->size) ? lib_check(b) : BATON_E_INVALID;

	if (code != 0)
		return code;
	const struct timing *t = &b->timing;
	struct baton_timings all = {
		.lease_ns = t->lease_ns,
		.renew_ns = t->renew_ns,
		.grace_ns = t->grace_ns,
		.drain_ns = timing_drain_ns(t),
		.end_ns = timing_end_ns(t),
		.gone_ns = timing_gone_ns(t),
		.retry_ns = t->retry_ns,
		.retry_max_ns = t->retry_max_ns,
		.call_ns = timing_call_ns(t),
		.drift_permille = (uint32_t)(t->drift_ppm / 1000),
		.proves_death = b->traits->proves_death && !b->outlive,
	};

	lib_give_sized(timings, size, &all, sizeof(all));
	return 0;
}

int baton_work_lock(const struct baton *b, const char *name, char *path, size_t size,
		    uint32_t *mode, struct baton_error *err)
{
	int code = lib_check(b);

	if (code != 0)
		return lib_fail(err, code, "%s", baton_strerror(code));
	if (name == NULL || !text_is_name(name, BATON_NAME_MAX) || path == NULL || mode == NULL)
		return lib_fail(err, BATON_E_INVALID,
				"not a valid name of an election; expected 1 to %d bytes of UTF-8 "
				"without control characters",
				BATON_NAME_MAX);
	if (b->driver->work_lock == NULL)
		return lib_fail(err, BATON_E_UNSUPPORTED, "this store has no work lock");
	struct baton_error mine = {0};

	return b->driver->work_lock(b->store, name, path, size, mode, err != NULL ? err : &mine);
}

const char *baton_version(void)
{
	return BATON_VERSION;
}

uint32_t baton_version_number(void)
{
	return BATON_VERSION_NUMBER;
}

int baton_wait_sized(struct baton *b, int64_t timeout_ms, struct baton_event *event, size_t size)
{
	struct baton_event all;
	int code = event != NULL && size >= sizeof(event->size) ? lib_check(b) : BATON_E_INVALID;

	if (code != 0)
		return code;
	code = events_pull(b, timeout_ms, &all);
	if (code == 1)
		lib_give_sized(event, size, &all, sizeof(all));
	return code;
}

int baton_event_done(struct baton *b, uint64_t token)
{
	int code = lib_check(b);

	return code != 0 ? code : events_finish(b, token);
}

int baton_fd(const struct baton *b)
{
	int code = lib_check(b);

	return code != 0 ? code : b->app.events_fd;
}

static void copy_histogram(uint64_t *to, const struct histogram *from)
{
	for (int i = 0; i < BATON_HISTOGRAM_BUCKETS; i++)
		to[i] = atomic_load_explicit(&from->buckets[i], memory_order_relaxed);
}

int baton_get_stats_sized(const struct baton *b, struct baton_stats *stats, size_t size)
{
	int code = stats != NULL && size >= sizeof(stats->size) ? lib_check(b) : BATON_E_INVALID;

	if (code != 0)
		return code;
	const struct counters *c = &b->counters;
	struct baton_stats all = {
		.elections = atomic_load(&c->elections),
		.leading = atomic_load(&c->leading),
		.campaigns_won = atomic_load(&c->won),
		.campaigns_refused = atomic_load(&c->refused),
		.campaigns_failed = atomic_load(&c->failed),
		.renewals_ok = atomic_load(&c->renewed),
		.renewals_failed = atomic_load(&c->renew_failed),
		.leaderships_lost = atomic_load(&c->lost),
		.transitions = atomic_load(&c->transitions),
		.hints = atomic_load(&c->hints),
		.observes = atomic_load(&c->observes),
		.releases = atomic_load(&c->releases),
		.log_dropped = atomic_load(&c->log_dropped),
	};
	copy_histogram(all.renew_latency, &c->renew_latency);
	copy_histogram(all.campaign_latency, &c->campaign_latency);
	copy_histogram(all.tenure, &c->tenure);
	lib_give_sized(stats, size, &all, sizeof(all));
	return 0;
}
