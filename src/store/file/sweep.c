/*
 * sweep.c: removes what dead processes have left in leases/ and tmp/. No decision depends on it. If
 * something can't be removed now, the next candidate that sweeps tries again.
 *
 * What it must never do: remove a file of a living process.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/file/file.h"

#define SWEEP_MAX 64 /* how many leases one sweep removes at most */
#define SWEEP_PERIOD_NS (30 * CLOCK_NS_PER_S)
#define FRESH_MS 60000 /* how long a temporary file may be between its making and its lock */

/*
 * The lease is removed first and .alive last: a sweeper that is killed in between leaves a file
 * that still says "died". Only the leases of dead processes are swept. A process that is frozen
 * past its expiry keeps its files until it wakes up or dies; they do no harm.
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

/* The lease that an entry belongs to: cuts ".alive" or ".candidate" off. False: not one of our
 * files. */
static bool lease_of_entry(const char *name, char id[BATON_LEASE_ID_MAX + 1])
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

		if (!lease_of_entry(name, id) || file_in_time(lane) != 0)
			continue;
		int verdict = file_lease_verdict(lane, id, BATON_STORE_NEVER, &free_in_ns);

		if ((verdict == FILE_DIED || verdict == FILE_GONE) &&
		    (n_dead == 0 || strcmp(dead[n_dead - 1], id) != 0))
			n_dead++;
	}
	for (size_t i = 0; i < n_dead; i++)
		sweep_lease(lane, dead[i]);
	lane->call->error = kept;
}

/* Judged by the wall clock, which may jump. Then the link of the file's maker fails, and is tried
 * again. */
static bool is_fresh_tmp(int fd)
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
		if (!is_fresh_tmp(fd) && file_is_locked(fd) == 0)
			(void)unlinkat(lane->root->tmp, name, 0);
		(void)close(fd);
	}
	lane->call->error = kept;
}

/* Only now and then, because it looks at every lease. */
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

/* Removes a folder and what is in it. Long names are a few folders deep. */
static void remove_folder(int dir, const char *name, int depth)
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
			remove_folder(fd, e->d_name, depth - 1);
	}
	(void)closedir(stream);
	(void)unlinkat(dir, name, AT_REMOVEDIR);
}

void file_remove_candidates(struct file_lane *lane, const char *id)
{
	char name[BATON_LEASE_ID_MAX + 16];

	(void)snprintf(name, sizeof(name), "%.63s.candidate", id);
	remove_folder(lane->root->leases, name, 8);
}
