/*
 * expiry.c: whether the owner of a lease can still count on it.
 *
 *   .alive    lease file    verdict
 *   unlocked  any           died: locks end with their process, and can't be taken again
 *   unlocked  `outlive`     by the clock, and died after that: others trust it, and may live on
 *   locked    present       by the clock
 *   missing   present       by the clock (the files were changed; its owner will notice)
 *   missing   missing       gone: closed by its owner, or swept after its death
 *   locked    missing       the files were changed: waited out, see verdict_waited_out()
 *
 * All processes on one kernel share its boot clock, so "by the clock" has no drift. Rule 9: we read
 * the clock before the file, and an owner that renews reads the clock again after its write.
 * Suppose that we read a time past the old expiry, and after that still the old expiry. Then the
 * owner's write comes later than the expiry, and the owner sees that, too. No verdict but "alive"
 * is ever taken back.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/file/file.h"

static int verdict_of_open(struct file_lane *lane, const char *id, uint64_t now_ns, int alive,
			   uint64_t ttl_ns, uint64_t *free_in_ns);
static int verdict_of_dead(struct file_lane *lane, const char *id, uint64_t now_ns, int got,
			   size_t n, uint64_t *free_in_ns);
static int verdict_waited_out(struct file_lane *lane, const char *id, uint64_t serial,
			      uint64_t ttl_ns, uint64_t now_ns, uint64_t *free_in_ns);
static int verdict_by_clock(struct file_lane *lane, const struct file_lease *lease, uint64_t now_ns,
			    uint64_t *free_in_ns);

int file_lease_verdict(struct file_lane *lane, const char *id, uint64_t ttl_ns,
		       uint64_t *free_in_ns)
{
	uint64_t now_ns = clock_boot_ns(); /* model: LOOK_CLOCK */
	char name[BATON_LEASE_ID_MAX + 8];

	*free_in_ns = 0;
	(void)snprintf(name, sizeof(name), "%.63s.alive", id);
	/* model: LOOK_ALIVE */
	int alive = openat(lane->root->leases, name,
			   O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (alive < 0 && errno != ENOENT)
		return file_errno(lane, "open", "leases", name);
	int verdict = verdict_of_open(lane, id, now_ns, alive, ttl_ns, free_in_ns);

	if (alive >= 0)
		(void)close(alive);
	return verdict;
}

static int verdict_of_open(struct file_lane *lane, const char *id, uint64_t now_ns, int alive,
			   uint64_t ttl_ns, uint64_t *free_in_ns)
{
	struct file_lease lease;
	size_t n;
	int locked = alive < 0 ? 1 : file_is_locked(alive); /* model: LOOK_LOCK */

	if (locked < 0)
		return file_errno(lane, "ask for the lock of lease", id, "");
	int got = file_read(lane, lane->root->leases, id, "leases", &n); /* model: LOOK_LEASE */

	if (locked == 0)
		return verdict_of_dead(lane, id, now_ns, got, n, free_in_ns);

	if (got == FILE_GOT_ERROR)
		return -1;
	if (got == FILE_GOT_NONE && alive < 0)
		return FILE_GONE;
	if (got == FILE_GOT_NONE) /* its owner may have closed it just now */
		return file_is_locked(alive) == 0
			       ? FILE_DIED
			       : verdict_waited_out(lane, id, 0, ttl_ns, now_ns, free_in_ns);
	if (file_parse_lease(lane->text, n, &lease) != 0 || strcmp(lease.id, id) != 0)
		return file_corrupt(lane, "leases", id);
	bool same_boot = strcmp(lease.boot, lane->root->boot) == 0;

	if (!same_boot && alive < 0)
		return FILE_GONE;
	if (!same_boot || lease.timens != lane->root->timens)
		return verdict_waited_out(lane, id, lease.serial, lease.ttl_ns, now_ns, free_in_ns);
	return verdict_by_clock(lane, &lease, now_ns, free_in_ns);
}

/*
 * The lease's process is dead, and can't renew it. Processes that trust a lease with `outlive` run
 * on the same kernel, so such a lease ends with the boot at the latest. A file that is not valid
 * was left by a host that crashed.
 */
static int verdict_of_dead(struct file_lane *lane, const char *id, uint64_t now_ns, int got,
			   size_t n, uint64_t *free_in_ns)
{
	struct file_lease lease;

	if (got == FILE_GOT_ERROR)
		return -1;
	if (got == FILE_GOT_NONE || file_parse_lease(lane->text, n, &lease) != 0 ||
	    strcmp(lease.id, id) != 0 || lease.outlive == 0 ||
	    strcmp(lease.boot, lane->root->boot) != 0)
		return FILE_DIED;
	int verdict = lease.timens == lane->root->timens
			      ? verdict_by_clock(lane, &lease, now_ns, free_in_ns)
			      : verdict_waited_out(lane, id, lease.serial, lease.ttl_ns, now_ns,
						   free_in_ns);

	return verdict == FILE_EXPIRED ? FILE_DIED : verdict;
}

static int verdict_by_clock(struct file_lane *lane, const struct file_lease *lease, uint64_t now_ns,
			    uint64_t *free_in_ns)
{
	if (now_ns >= lease->expires_ns)
		return FILE_EXPIRED;
	*free_in_ns = lease->expires_ns - now_ns;
	/* A valid lease was written before now, with an expiry no later than ttl after that. */
	if (lease->expires_ns - lease->ttl_ns > clock_boot_ns())
		return file_corrupt(lane, "leases", lease->id);
	return FILE_ALIVE;
}

/*
 * For a lease whose clock we can't read (another time namespace), or that has no file. It is over
 * when it was unchanged for its whole length on our own clock, counted from after the first read
 * (rule 1), and is then read unchanged once more.
 */
static int verdict_waited_out(struct file_lane *lane, const char *id, uint64_t serial,
			      uint64_t ttl_ns, uint64_t now_ns, uint64_t *free_in_ns)
{
	struct file_store *store = lane->store;
	struct file_unclocked *slot = &store->unclocked[0];
	int verdict = FILE_ALIVE;

	*free_in_ns = ttl_ns;
	store_lock(&store->base);
	for (size_t i = 0; i < FILE_UNCLOCKED_MAX; i++) {
		struct file_unclocked *s = &store->unclocked[i];

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
