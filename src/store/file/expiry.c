/*
 * expiry.c: whether the owner of a lease can still believe in it, and tidying up after the dead.
 *
 *   .alive    lease file    verdict
 *   unlocked  any           died: locks end with their process, and nobody can lock it again
 *   locked    present       by the clock
 *   missing   present       by the clock (somebody has meddled; its owner will notice)
 *   missing   missing       gone: closed by its owner, or swept after its death
 *   locked    missing       somebody has meddled: waited out, see stare()
 *
 * All who share a kernel share a boot clock, so "by the clock" has no drift. Rule 9: the clock is
 * read before the file. Whoever renews reads it again after the write. So if we read a time past
 * the old expiry, and then still the old expiry, then its owner's write comes later than that, and
 * its owner will see so. No verdict but "alive" is ever taken back.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/file/file.h"

#define SWEEP_MAX 64 /* leases, and temporaries, at once */
#define SWEEP_PERIOD_NS (30 * CLOCK_NS_PER_S)
#define FRESH_MS 60000 /* a temporary may be between its making and its lock for so long */

static int judge_open(struct file_lane *lane, const char *id, uint64_t now_ns, int alive,
		      uint64_t ttl_ns, uint64_t *free_in_ns);
static int stare(struct file_lane *lane, const char *id, uint64_t serial, uint64_t ttl_ns,
		 uint64_t now_ns, uint64_t *free_in_ns);
static int by_the_clock(struct file_lane *lane, const struct file_lease *lease, uint64_t now_ns,
			uint64_t *free_in_ns);

int file_judge(struct file_lane *lane, const char *id, uint64_t ttl_ns, uint64_t *free_in_ns)
{
	uint64_t now_ns = clock_boot_ns(); /* model: LOOK_CLOCK */
	char name[BATON_LEASE_ID_MAX + 8];

	*free_in_ns = 0;
	(void)snprintf(name, sizeof(name), "%.63s.alive", id);
	int alive = openat(lane->root->leases, name,
			   O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (alive < 0 && errno != ENOENT)
		return file_errno(lane, "open", "leases", name);
	int verdict = judge_open(lane, id, now_ns, alive, ttl_ns, free_in_ns);

	if (alive >= 0)
		(void)close(alive);
	return verdict;
}

static int judge_open(struct file_lane *lane, const char *id, uint64_t now_ns, int alive,
		      uint64_t ttl_ns, uint64_t *free_in_ns)
{
	struct file_lease lease;
	size_t n;
	int locked = alive < 0 ? 1 : file_is_locked(alive); /* model: LOOK_ALIVE */

	if (locked < 0)
		return file_errno(lane, "ask for the lock of lease", id, "");
	if (locked == 0)
		return FILE_DIED;
	int got = file_read(lane, lane->root->leases, id, "leases", &n); /* model: LOOK_LEASE */

	if (got == FILE_GOT_ERROR)
		return -1;
	if (got == FILE_GOT_NONE && alive < 0)
		return FILE_GONE;
	if (got == FILE_GOT_NONE) /* its owner may just have closed it */
		return file_is_locked(alive) == 0 ? FILE_DIED
						  : stare(lane, id, 0, ttl_ns, now_ns, free_in_ns);
	if (file_parse_lease(lane->text, n, &lease) != 0 || strcmp(lease.id, id) != 0)
		return file_corrupt(lane, "leases", id);
	bool same_boot = strcmp(lease.boot, lane->root->boot) == 0;

	if (!same_boot && alive < 0)
		return FILE_GONE;
	if (!same_boot || lease.timens != lane->root->timens)
		return stare(lane, id, lease.serial, lease.ttl_ns, now_ns, free_in_ns);
	return by_the_clock(lane, &lease, now_ns, free_in_ns);
}

static int by_the_clock(struct file_lane *lane, const struct file_lease *lease, uint64_t now_ns,
			uint64_t *free_in_ns)
{
	if (now_ns >= lease->expires_ns)
		return FILE_EXPIRED;
	*free_in_ns = lease->expires_ns - now_ns;
	/* It was written before now, for no longer than this. */
	if (lease->expires_ns - lease->ttl_ns > clock_boot_ns())
		return file_corrupt(lane, "leases", lease->id);
	return FILE_ALIVE;
}

/*
 * A clock that we can't read (another time namespace), or no file to read: over when it has been
 * seen unchanged for its whole length on our own clock, counted from after the first sight
 * (rule 1), and seen once more after that.
 */
static int stare(struct file_lane *lane, const char *id, uint64_t serial, uint64_t ttl_ns,
		 uint64_t now_ns, uint64_t *free_in_ns)
{
	struct file_store *store = lane->store;
	struct file_stare *slot = &store->stares[0];
	int verdict = FILE_ALIVE;

	*free_in_ns = ttl_ns;
	store_lock(&store->base);
	for (size_t i = 0; i < FILE_SIGHTS; i++) {
		struct file_stare *s = &store->stares[i];

		if (strcmp(s->id, id) == 0) {
			slot = s;
			break;
		}
		if (s->since_ns < slot->since_ns)
			slot = s;
	}
	if (strcmp(slot->id, id) != 0 || slot->serial != serial) {
		(void)snprintf(slot->id, sizeof(slot->id), "%s", id);
		slot->serial = serial;
		slot->since_ns = clock_boot_ns();
	} else if (now_ns > slot->since_ns && now_ns - slot->since_ns >= ttl_ns) {
		verdict = FILE_EXPIRED;
		*free_in_ns = 0;
	} else if (now_ns > slot->since_ns) {
		*free_in_ns = ttl_ns - (now_ns - slot->since_ns);
	}
	store_unlock(&store->base);
	return verdict;
}

/* ---- sweeping: nothing here decides anything, and what fails is done by the next one ---- */

/*
 * The lease goes first and .alive last: who is killed in between leaves what still says "died".
 * Only the dead are swept. One that is frozen past its expiry keeps its files until it wakes up,
 * or dies; they harm nobody.
 */
static void sweep_lease(struct file_lane *lane, const char *id)
{
	char name[BATON_LEASE_ID_MAX + 16];

	file_remove_candidates(lane, id);
	if (unlinkat(lane->root->leases, id, 0) != 0 && errno != ENOENT) /* model: SWEEP_LEASE */
		return;
	(void)snprintf(name, sizeof(name), "%.63s.alive", id);
	(void)unlinkat(lane->root->leases, name, 0); /* model: SWEEP_ALIVE */
}

/* Cuts ".alive" or ".candidate" off. False: not ours. */
static bool lease_of(const char *name, char id[BATON_LEASE_ID_MAX + 1])
{
	const char *dot = strchr(name, '.');
	size_t n = dot != NULL ? (size_t)(dot - name) : strlen(name);

	if (n == 0 || n > BATON_LEASE_ID_MAX ||
	    (dot != NULL && strcmp(dot, ".alive") != 0 && strcmp(dot, ".candidate") != 0))
		return false;
	memcpy(id, name, n);
	id[n] = '\0';
	return file_is_lease_id(id);
}

static void sweep_leases(struct file_lane *lane)
{
	char dead[SWEEP_MAX][BATON_LEASE_ID_MAX + 1];
	size_t n_dead = 0;
	size_t at = 0;
	struct baton_error kept = lane->call->error;

	if (file_scan(lane, lane->root->leases, "leases") != 0)
		lane->scan_used = 0;
	for (const char *name; n_dead < SWEEP_MAX && (name = file_scan_next(lane, &at)) != NULL;) {
		uint64_t free_in_ns;
		char *id = dead[n_dead];

		if (!lease_of(name, id) || file_in_time(lane) != 0)
			continue;
		int verdict = file_judge(lane, id, BATON_STORE_NEVER, &free_in_ns);

		if ((verdict == FILE_DIED || verdict == FILE_GONE) &&
		    (n_dead == 0 || strcmp(dead[n_dead - 1], id) != 0))
			n_dead++;
	}
	for (size_t i = 0; i < n_dead; i++)
		sweep_lease(lane, dead[i]);
	lane->call->error = kept;
}

/* By the wall clock, which may jump: then its maker's link fails, and is tried again. */
static bool is_fresh(int fd)
{
	struct stat st;
	int64_t now_ms = clock_wall_ms();

	if (fstat(fd, &st) != 0)
		return true;
	int64_t made_ms = (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;

	return made_ms <= now_ms && now_ms - made_ms < FRESH_MS;
}

static void sweep_tmp(struct file_lane *lane)
{
	struct baton_error kept = lane->call->error;
	size_t at = 0;

	if (file_scan(lane, lane->root->tmp, "tmp") != 0)
		lane->scan_used = 0;
	for (const char *name; (name = file_scan_next(lane, &at)) != NULL;) {
		int fd = name[0] == '.' || file_in_time(lane) != 0
				 ? -1
				 : openat(lane->root->tmp, name,
					  O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

		if (fd < 0)
			continue;
		if (!is_fresh(fd) && file_is_locked(fd) == 0)
			(void)unlinkat(lane->root->tmp, name, 0);
		(void)close(fd);
	}
	lane->call->error = kept;
}

/* Now and then: it looks at every lease, and those who lose theirs have better things to do. */
void file_sweep(struct file_lane *lane)
{
	struct file_store *store = lane->store;
	uint64_t now_ns = clock_boot_ns();

	store_lock(&store->base);
	bool due = store->swept_ns == 0 || now_ns >= store->swept_ns + SWEEP_PERIOD_NS;
	if (due)
		store->swept_ns = now_ns;
	store_unlock(&store->base);
	if (!due)
		return;
	sweep_leases(lane);
	sweep_tmp(lane);
}

/* The folders of long names are as deep as those names are long: a few. */
static void remove_below(int dir, const char *name, int depth)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);

	if (stream == NULL) {
		if (fd >= 0)
			(void)close(fd);
		return;
	}
	for (struct dirent *e; (e = readdir(stream)) != NULL;) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (unlinkat(fd, e->d_name, 0) != 0 && errno == EISDIR && depth > 0)
			remove_below(fd, e->d_name, depth - 1);
	}
	(void)closedir(stream);
	(void)unlinkat(dir, name, AT_REMOVEDIR);
}

void file_remove_candidates(struct file_lane *lane, const char *id)
{
	char name[BATON_LEASE_ID_MAX + 16];

	(void)snprintf(name, sizeof(name), "%.63s.candidate", id);
	remove_below(lane->root->leases, name, 8);
}
