/*
 * watch.c: push. The kernel tells of every file that is made in an election's folder (a claim, an
 * end, an order), and of the close of an .alive file, which is the death of a process. Each event
 * is only a hint to look. A missed event costs time, but safety doesn't suffer.
 *
 * A frozen leader causes no event. So there is a timer for every lease that holds a watched
 * election. When the lease should have expired, it is looked at: either it was renewed, or its
 * elections get a hint. That is one look per lease and length of the lease, however many elections
 * it holds.
 *
 * There is one inotify instance, with one watch for each election's folder, one for leases/, and
 * one for DIR itself. If a limit of the system is reached, the rest of the elections are not
 * watched. Their records say so, so candidates poll them. Besides, all watchers get a hint from
 * time to time, and after a while watching is tried again.
 *
 * store->base.lock protects everything here but the descriptors: only the watch lane uses those.
 */
#include "store/file/watch_index.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/clock.h"

#define ELECTION_MASK                                                                          \
	(IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_MOVED_FROM | IN_DELETE_SELF | IN_MOVE_SELF | \
	 IN_ONLYDIR)
#define LEASES_MASK (IN_CLOSE_WRITE | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR)
#define TOP_MASK (IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR)
#define RETRY_NS (10 * CLOCK_NS_PER_S)    /* until the limit is tried again */
#define COMPLAIN_NS (60 * CLOCK_NS_PER_S) /* between two errors about it */
#define UNLOCK_NS (10 * CLOCK_NS_PER_MS)  /* a close is announced before the lock is free */
#define UNLOCK_TRY_NS (CLOCK_NS_PER_MS / 5)

static int watch_wait_inside(struct file_lane *lane, uint64_t *cookies, size_t max);
static int watch_take_hints(struct file_watch *w, uint64_t *cookies, size_t max);
static int watch_set_up(struct file_lane *lane);
static int watch_add_pending(struct file_lane *lane);
static int watch_complain(struct file_lane *lane, const char *what);
static void watch_check_holders(struct file_lane *lane);
static int watch_sleep(struct file_lane *lane, bool *woken);
static void watch_read_events(struct file_lane *lane);

/* ---- the lane's side ---- */

int file_watch_wait(void *l, struct baton_call *call, uint64_t *cookies, size_t max)
{
	struct file_lane *lane = l;
	struct file_watch *w = lane->watch;
	int n = -1;

	if (max == 0)
		return 0;
	if (clock_boot_ns() >= call->deadline_ns)
		return watch_take_hints(w, cookies, max);
	if (file_enter(lane, call, true) == 0)
		n = watch_wait_inside(lane, cookies, max);
	file_leave(lane);
	if (n < 0) {
		store_lock(&w->store->base);
		w->all = true; /* all watchers get a hint when it works again */
		store_unlock(&w->store->base);
	}
	return n;
}

static int watch_wait_inside(struct file_lane *lane, uint64_t *cookies, size_t max)
{
	struct file_watch *w = lane->watch;
	bool woken = false;

	for (;;) {
		if (watch_set_up(lane) != 0 || watch_add_pending(lane) != 0)
			return -1;
		watch_check_holders(lane);
		int n = watch_take_hints(w, cookies, max);

		if (n > 0 || woken || clock_boot_ns() >= lane->call->deadline_ns)
			return n;
		if (watch_sleep(lane, &woken) != 0)
			return -1;
		watch_read_events(lane);
		if (!file_root_stands(w->store, lane->root)) {
			file_index_reset(w);
			return 0; /* the next call opens what is there now */
		}
	}
}

static int watch_take_hints(struct file_watch *w, uint64_t *cookies, size_t max)
{
	size_t n = 0;

	store_lock(&w->store->base);
	if (w->all) {
		w->all = false;
		cookies[n++] = BATON_HINT_ALL;
		watch_index_forget_hints(&w->names);
	}
	n += watch_index_take(&w->names, cookies + n, (max < INT_MAX ? max : INT_MAX) - n);
	store_unlock(&w->store->base);
	return (int)n;
}

static int watch_sleep(struct file_lane *lane, bool *woken)
{
	struct file_watch *w = lane->watch;
	uint64_t until_ns = lane->call->deadline_ns;
	uint64_t now_ns = clock_boot_ns();
	uint64_t count;

	store_lock(&w->store->base);
	uint64_t next_ns = file_index_next_ns(w);
	store_unlock(&w->store->base);
	if (next_ns < until_ns)
		until_ns = next_ns;
	uint64_t left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
	struct timespec left = {
		.tv_sec =
			(time_t)(left_ns / CLOCK_NS_PER_S > 3600 ? 3600 : left_ns / CLOCK_NS_PER_S),
		.tv_nsec = (long)(left_ns % CLOCK_NS_PER_S),
	};
	struct pollfd fds[2] = {{.fd = w->wake, .events = POLLIN},
				{.fd = w->inotify, .events = POLLIN}};

	if (ppoll(fds, w->inotify >= 0 ? 2 : 1, &left, NULL) < 0 && errno != EINTR)
		return file_errno(lane, "wait for", "changes", "");
	if (read(w->wake, &count, sizeof(count)) == (ssize_t)sizeof(count))
		*woken = true;
	return 0;
}

/* ---- setting up ---- */

static int add_watch(int inotify, int dir, uint32_t mask)
{
	char path[64];

	/* Through the descriptor, so that it is this very folder, whatever is done to its path. */
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", dir);
	return inotify_add_watch(inotify, path, mask);
}

static int watch_set_up(struct file_lane *lane)
{
	struct file_watch *w = lane->watch;
	const struct file_root *root = lane->root;

	if (w->inotify >= 0 && w->dev == root->dev && w->ino == root->ino)
		return 0;
	if (w->limited && clock_boot_ns() < w->retry_ns)
		return 0;
	file_index_reset(w);
	int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	if (fd < 0)
		return watch_complain(lane, "inotify instances (fs.inotify.max_user_instances)");
	int top_wd = add_watch(fd, root->dir, TOP_MASK);
	int leases_wd = top_wd < 0 ? -1 : add_watch(fd, root->leases, LEASES_MASK);

	if (leases_wd < 0) {
		int error = errno;

		(void)close(fd);
		errno = error;
		return watch_complain(lane, "inotify watches (fs.inotify.max_user_watches)");
	}
	store_lock(&w->store->base);
	w->inotify = fd;
	w->top_wd = top_wd;
	w->leases_wd = leases_wd;
	w->dev = root->dev;
	w->ino = root->ino;
	w->limited = false;
	store_unlock(&w->store->base);
	return 0;
}

/* A limit is reported as an error once a minute, and else tolerated. Other errors break the
 * watch. */
static int watch_complain(struct file_lane *lane, const char *what)
{
	struct file_watch *w = lane->watch;
	uint64_t now_ns = clock_boot_ns();

	if (errno != EMFILE && errno != ENFILE && errno != ENOSPC && errno != ENOMEM)
		return file_errno(lane, "watch", FILE_DIRECTORY, "");
	w->limited = true;
	w->retry_ns = now_ns + RETRY_NS;
	if (w->complained_ns != 0 && now_ns < w->complained_ns + COMPLAIN_NS)
		return 0;
	w->complained_ns = now_ns;
	return store_fail(&lane->call->error, BATON_E_SYSTEM,
			  "the system has no more %s, or this process no descriptors (ulimit -n); "
			  "raise that limit; until then changes are found by polling",
			  what);
}

/* Begins to watch the names that aren't watched yet, or no longer. Makes their folders, because
 * only a folder that exists can be watched. */
static int watch_add_pending(struct file_lane *lane)
{
	struct file_watch *w = lane->watch;
	char name[BATON_NAME_MAX + 1];
	char path[FILE_PATH_SIZE];
	bool missing;

	if (w->inotify < 0 || (w->limited && clock_boot_ns() < w->retry_ns))
		return 0;
	w->limited = false;
	while (file_index_next_pending(w, name)) {
		file_path_of(name, path);
		int dir = file_open_election(lane, path, true, &missing);

		if (dir < 0)
			return -1;
		store_lock(&w->store->base);
		int wd = add_watch(w->inotify, dir, ELECTION_MASK);
		int error = errno;
		if (wd >= 0)
			file_index_is_on(w, name, wd);
		store_unlock(&w->store->base);
		(void)close(dir);
		errno = error;
		if (wd < 0)
			return watch_complain(lane,
					      "inotify watches (fs.inotify.max_user_watches)");
	}
	return 0;
}

/* ---- events ---- */

/* Whether an event in the folder can matter to candidates. */
static bool event_concerns(struct watch_entry *e, const struct inotify_event *event)
{
	const char *name = event->len > 0 ? event->name : "";
	bool gone = (event->mask & (IN_DELETE | IN_MOVED_FROM)) != 0;
	bool end;
	uint64_t seq = file_seq_of(name, &end);
	uint64_t pause = file_pause_of(name, &end);
	uint64_t term;
	uint64_t id;

	if ((event->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED)) != 0)
		return true;
	if (seq != 0 && !gone && seq > e->highest)
		e->highest = seq;
	if (seq != 0)
		return !gone || seq >= e->highest; /* else an old claim was pruned */
	if (pause != 0 && !gone && pause > e->last_pause)
		e->last_pause = pause;
	if (pause != 0)
		return !gone || pause >= e->last_pause; /* else an old pause was removed */
	return !gone && file_order_of(name, &term, &id);
}

static void watch_take_event(struct file_watch *w, const struct inotify_event *event)
{
	const char *dot = event->len > 0 ? strchr(event->name, '.') : NULL;

	if ((event->mask & IN_Q_OVERFLOW) != 0) {
		w->all = true;
		return;
	}
	if (event->wd == w->leases_wd) {
		if (dot == NULL || strcmp(dot, ".alive") != 0 ||
		    (size_t)(dot - event->name) > BATON_LEASE_ID_MAX)
			return;
		char id[BATON_LEASE_ID_MAX + 1];

		(void)snprintf(id, sizeof(id), "%.*s", (int)(dot - event->name), event->name);
		uint64_t now_ns = clock_boot_ns();

		file_index_recheck(w, id, now_ns, now_ns + UNLOCK_NS);
		return;
	}
	struct watch_entry *e = file_index_by_wd(w, event->wd, NULL);
	for (struct watch_entry *next; e != NULL; e = next) {
		next = file_index_by_wd(w, event->wd, e);
		if (!event_concerns(e, event))
			continue;
		watch_index_hint(&w->names, &e->watched);
		if ((event->mask & (IN_IGNORED | IN_MOVE_SELF | IN_DELETE_SELF)) != 0)
			file_index_is_off(w, e);
	}
}

static void watch_read_events(struct file_lane *lane)
{
	struct file_watch *w = lane->watch;
	char *buffer = w->events;

	for (;;) {
		ssize_t n = w->inotify < 0 ? -1 : read(w->inotify, buffer, WATCH_EVENTS_SIZE);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) /* EAGAIN: there are no more */
			return;
		store_lock(&w->store->base);
		for (size_t at = 0; at + sizeof(struct inotify_event) <= (size_t)n;) {
			const struct inotify_event *event = (const void *)(buffer + at);

			watch_take_event(w, event);
			at += sizeof(*event) + event->len;
		}
		store_unlock(&w->store->base);
	}
}

/* ---- leases that should have expired, or whose owner may have died ---- */

static void watch_check_holders(struct file_lane *lane)
{
	struct file_watch *w = lane->watch;
	char id[BATON_LEASE_ID_MAX + 1];
	uint64_t ttl_ns;
	uint64_t closing_ns;

	for (uint64_t now_ns = clock_boot_ns();
	     file_index_next_due(w, now_ns, id, &ttl_ns, &closing_ns);) {
		uint64_t free_in_ns;
		struct baton_error kept = lane->call->error;
		int verdict = file_lease_verdict(lane, id, ttl_ns, &free_in_ns);

		lane->call->error = kept; /* a look after the hint meets it, and reports it */
		if (verdict == FILE_ALIVE && clock_boot_ns() < closing_ns &&
		    free_in_ns > UNLOCK_TRY_NS)
			free_in_ns = UNLOCK_TRY_NS;
		store_lock(&w->store->base);
		if (verdict == FILE_ALIVE)
			file_index_recheck(w, id, clock_boot_ns() + free_in_ns, closing_ns);
		else
			file_index_hint_holder(w, id);
		store_unlock(&w->store->base);
	}
}

/* ---- the lane ---- */

int file_watch_new(struct file_lane *lane, struct baton_error *err)
{
	struct file_watch *w = calloc(1, sizeof(*w));

	if (w == NULL || file_index_init(w) != 0) {
		if (w != NULL)
			file_index_clear(w);
		free(w);
		store_fail(err, BATON_E_MEMORY, "no memory for a watch");
		return BATON_E_MEMORY;
	}
	w->store = lane->store;
	w->inotify = w->top_wd = w->leases_wd = -1;
	w->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (w->wake < 0) {
		file_index_clear(w);
		free(w);
		store_fail(err, BATON_E_SYSTEM,
			   "no descriptor for a watch; raise the limit of open files (ulimit -n)");
		return BATON_E_SYSTEM;
	}
	lane->watch = w;
	return BATON_OK;
}

void file_watch_forget(struct file_lane *lane)
{
	struct file_watch *w = lane->watch;

	if (w == NULL)
		return;
	if (w->wake >= 0)
		(void)close(w->wake);
	if (w->inotify >= 0)
		(void)close(w->inotify);
	w->wake = w->inotify = -1;
}

void file_watch_free(struct file_lane *lane)
{
	if (lane->watch == NULL)
		return;
	file_watch_forget(lane);
	file_index_clear(lane->watch);
	free(lane->watch);
	lane->watch = NULL;
}

void file_watch_wake(void *l)
{
	const struct file_lane *lane = l;

	file_watch_nudge(lane->watch);
}

void file_watch_nudge(const struct file_watch *w)
{
	uint64_t one = 1;

	/* If the counter is full, the lane is awake already. */
	(void)!write(w->wake, &one, sizeof(one));
}

int file_watch_add(void *l, const char *name, uint64_t cookie)
{
	const struct file_lane *lane = l;
	struct file_watch *w = lane->watch;

	store_lock(&w->store->base);
	int result = file_index_add(w, name, cookie);
	store_unlock(&w->store->base);
	file_watch_nudge(w);
	return result == 0 ? BATON_OK : BATON_E_MEMORY;
}

void file_watch_remove(void *l, const char *name, uint64_t cookie)
{
	const struct file_lane *lane = l;
	struct file_watch *w = lane->watch;

	store_lock(&w->store->base);
	int wd = file_index_drop(w, name, cookie);
	if (wd >= 0 && w->inotify >= 0)
		(void)inotify_rm_watch(w->inotify, wd);
	store_unlock(&w->store->base);
}
