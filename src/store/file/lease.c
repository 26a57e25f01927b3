/*
 * lease.c: the lease that this process keeps alive: a file that says until when, and a lock that
 * says that there is a process that could renew it.
 *
 * Opening: .alive is made and locked under another name, and only then put into its place. (If it
 * were locked only there, a sweeper could take it for that of a dead process.) Then the lease
 * itself is written. Renewing: it is refused from the expiry on, because a late renewal revives
 * nothing. The new expiry is renamed into place, and then the clock is read again (rule 9). No
 * fsync is needed: a host that crashed has no leader. Closing: the lock is freed first, which frees
 * and announces everything at once.
 *
 * What it must never do: close `alive` while this process could still count on the lease, or renew
 * a lease that was lost.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/file/file.h"

#define VERIFY_PART 100 /* at most this part of the lease's length is spent on checking claims */

static int open_lease(struct file_lane *lane, const struct baton_lease *lease);
static int place_alive(struct file_lane *lane, struct file_own_lease *own);
static int write_lease(struct file_lane *lane, const struct baton_lease *lease,
		       const struct file_own_lease *own, uint64_t expires_ns, bool *doubt);
static struct file_own_lease *find_own(struct file_store *store, const char *id);
static void own_free(struct file_store *store, struct file_own_lease *own);
static int renew_lease(struct file_lane *lane, const struct baton_lease *lease,
		       struct file_own_lease *copy);
static int lease_check_places(struct file_lane *lane, const struct file_own_lease *own);

/* ---- opening ---- */

int file_lease_open(void *l, struct baton_call *call, const struct baton_lease *lease)
{
	struct file_lane *lane = l;
	int outcome = BATON_OUTCOME_FAILED;

	if (file_enter(lane, call, true) == 0) {
		outcome = open_lease(lane, lease);
		if (outcome == BATON_OUTCOME_OK)
			file_sweep(lane);
	}
	file_leave(lane);
	return outcome;
}

/* If a step fails, all is taken back: no candidate has counted on it yet. */
static int open_lease(struct file_lane *lane, const struct baton_lease *lease)
{
	struct file_store *store = lane->store;
	struct file_own_lease *own = calloc(1, sizeof(*own));
	bool doubt;

	if (own == NULL) {
		store_fail(&lane->call->error, BATON_E_MEMORY, "no memory for a lease");
		return BATON_OUTCOME_FAILED;
	}
	own->alive = -1;
	own->serial = 1;
	own->root = lane->root;
	file_root_keep(store, own->root);
	(void)snprintf(own->id, sizeof(own->id), "%s", lease->id);
	if (!file_is_lease_id(lease->id) || lease->ttl_ns == 0 || lease->ttl_ns > INT64_MAX / 2) {
		store_fail(&lane->call->error, BATON_E_INVALID, "this lease is malformed");
		goto failed;
	}
	if (place_alive(lane, own) != 0)
		goto failed;
	own->expires_ns = clock_boot_ns() + lease->ttl_ns; /* model: OPEN_CLOCK */
	if (write_lease(lane, lease, own, own->expires_ns, &doubt) != 0)
		goto failed;
	struct stat st;

	if (fstatat(lane->root->leases, own->id, &st, AT_SYMLINK_NOFOLLOW) != 0) {
		file_errno(lane, "find", "leases", own->id);
		goto failed;
	}
	own->ino = st.st_ino;
	store_lock(&store->base);
	own->next = store->own_leases;
	store->own_leases = own;
	store_unlock(&store->base);
	return BATON_OUTCOME_OK;
failed:
	own_free(store, own);
	return BATON_OUTCOME_FAILED;
}

/* As in sweep_lease(): .alive says "died", so it is removed last, and only if the lease is gone. */
static void remove_files(const struct file_own_lease *own)
{
	char name[BATON_LEASE_ID_MAX + 8];

	(void)snprintf(name, sizeof(name), "%s.alive", own->id);
	/* model: CLOSE_LEASE, CLOSE_UNLINK */
	if (unlinkat(own->root->leases, own->id, 0) == 0 || errno == ENOENT)
		(void)unlinkat(own->root->leases, name, 0);
}

/* Frees the lock first: that frees all that the lease carries, and its close tells the others. */
static void own_free(struct file_store *store, struct file_own_lease *own)
{
	if (own->alive >= 0) {
		(void)close(own->alive); /* model: CLOSE_ALIVE */
		remove_files(own);
	}
	file_root_drop(store, own->root);
	free(own);
}

static int rename_without_replacing(int from_dir, const char *from, int to_dir, const char *to)
{
	struct stat st;

	if (renameat2(from_dir, from, to_dir, to, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -1;
	/* This file system can't rename so. Ids are used only once (A5), so a look before is
	 * enough. */
	if (fstatat(to_dir, to, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		errno = EEXIST;
		return -1;
	}
	return renameat(from_dir, from, to_dir, to);
}

/* .alive is renamed and not linked, so that its close is announced in leases/, under its own
 * name. */
static int place_alive(struct file_lane *lane, struct file_own_lease *own)
{
	struct file_tmp tmp = {.fd = -1};
	char name[BATON_LEASE_ID_MAX + 8];

	(void)snprintf(name, sizeof(name), "%s.alive", own->id);
	if (file_tmp_make(lane, &tmp, "", 0) != 0) /* model: OPEN_LOCK */
		return -1;
	if (rename_without_replacing(lane->root->tmp, tmp.name, lane->root->leases, name) == 0) {
		own->alive = tmp.fd; /* model: OPEN_ALIVE */
		return 0;
	}
	file_errno(lane, "make", "leases", name);
	file_tmp_done(lane, &tmp);
	return -1;
}

static int write_lease(struct file_lane *lane, const struct baton_lease *lease,
		       const struct file_own_lease *own, uint64_t expires_ns, bool *doubt)
{
	struct file_lease record = {
		.serial = own->serial,
		.expires_ns = expires_ns,
		.ttl_ns = lease->ttl_ns,
		.timens = lane->root->timens,
		.pid = (uint64_t)getpid(),
		.outlive = lease->outlive,
	};
	char text[FILE_TEXT_MAX];

	*doubt = false;
	(void)snprintf(record.id, sizeof(record.id), "%s", own->id);
	(void)snprintf(record.boot, sizeof(record.boot), "%s", lane->root->boot);
	(void)snprintf(record.owner, sizeof(record.owner), "%s", lease->owner);
	size_t n = file_write_lease(&record, text);

	if (n == 0)
		return store_fail(&lane->call->error, BATON_E_INVALID,
				  "this lease or its owner's id is malformed");
	/* model: OPEN_LEASE, RENEW_WRITE */
	return file_replace(lane, lane->root->leases, own->id, text, n, false, doubt);
}

/* ---- renewing ---- */

int file_lease_renew(void *l, struct baton_call *call, const struct baton_lease *lease,
		     uint32_t *n_held)
{
	struct file_lane *lane = l;
	struct file_store *store = lane->store;
	struct file_own_lease copy;

	lane->call = call;
	call->error = (struct baton_error){0};
	*n_held = 0;
	store_lock(&store->base);
	struct file_own_lease *own = find_own(store, lease->id);
	bool busy = own != NULL && own->busy;
	bool usable = own != NULL && !own->lost && !busy;
	if (usable) {
		own->busy = true;
		own->root->refs++;
		copy = *own;
	}
	store_unlock(&store->base);
	if (busy) {
		store_fail(&call->error, BATON_E_BUSY, "a renewal of this lease is under way");
		return BATON_OUTCOME_FAILED;
	}
	if (!usable)
		return BATON_OUTCOME_REFUSED;
	lane->root = copy.root;
	int outcome = renew_lease(lane, lease, &copy);

	store_lock(&store->base);
	own->busy = false; /* still there: a busy lease is not freed */
	own->expires_ns = copy.expires_ns;
	own->serial = copy.serial;
	own->ino = copy.ino;
	own->lost = own->lost || outcome == BATON_OUTCOME_REFUSED;
	store_unlock(&store->base);
	if (outcome == BATON_OUTCOME_OK) {
		/* The lease is renewed, whatever this check meets. The next check goes on from
		 * there. */
		struct baton_error kept = call->error;

		(void)file_own_claims_verify(lane, lease->id,
					     clock_boot_ns() + lease->ttl_ns / VERIFY_PART);
		call->error = kept;
		*n_held = file_own_claims_count(store, lease->id);
	}
	file_leave(lane);
	return outcome;
}

static int renew_lease(struct file_lane *lane, const struct baton_lease *lease,
		       struct file_own_lease *copy)
{
	uint64_t old_ns = copy->expires_ns;
	uint64_t now_ns = clock_boot_ns(); /* model: RENEW_CHECK */
	struct stat st;
	bool doubt;

	if (now_ns >= old_ns)
		return BATON_OUTCOME_REFUSED;
	int places = lease_check_places(lane, copy);

	if (places != BATON_OUTCOME_OK)
		return places;
	if (file_in_time(lane) != 0)
		return BATON_OUTCOME_FAILED;
	copy->serial++;
	bool failed = write_lease(lane, lease, copy, now_ns + lease->ttl_ns, &doubt) != 0;

	copy->ino = 0; /* not known until we see it */
	if (!failed && fstatat(lane->root->leases, copy->id, &st, AT_SYMLINK_NOFOLLOW) == 0)
		copy->ino = st.st_ino;
	if (clock_boot_ns() >= old_ns) /* model: RENEW_AGAIN. Others may have seen the old one. */
		return BATON_OUTCOME_REFUSED;
	if (failed)
		return doubt ? BATON_OUTCOME_UNKNOWN : BATON_OUTCOME_FAILED;
	copy->expires_ns = now_ns + lease->ttl_ns;
	return BATON_OUTCOME_OK;
}

/* If a file of ours was removed or replaced, others can't see our lease: it is lost. */
static int lease_file_in_place(struct file_lane *lane, const char *name, ino_t ino)
{
	struct stat st;

	if (fstatat(lane->root->leases, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		if (ino == 0 || st.st_ino == ino)
			return BATON_OUTCOME_OK;
	} else if (errno != ENOENT && errno != ENOTDIR) {
		file_errno(lane, "find", "leases", name);
		return BATON_OUTCOME_FAILED;
	}
	store_fail(&lane->call->error, BATON_E_CORRUPT,
		   "leases/%.70s in %.80s was removed or replaced while in use", name,
		   lane->store->path);
	return BATON_OUTCOME_REFUSED;
}

static int lease_check_places(struct file_lane *lane, const struct file_own_lease *own)
{
	char name[BATON_LEASE_ID_MAX + 8];
	struct stat st;

	if (stat(lane->store->path, &st) != 0 && errno != ENOENT && errno != ENOTDIR) {
		file_errno(lane, "find", FILE_DIRECTORY, "");
		return BATON_OUTCOME_FAILED;
	}
	if (!file_root_stands(lane->store, own->root)) {
		store_fail(
			&lane->call->error, BATON_E_CORRUPT,
			"the directory %.120s, or a part of it, was removed or replaced while in "
			"use",
			lane->store->path);
		return BATON_OUTCOME_REFUSED;
	}
	if (fstat(own->alive, &st) != 0) {
		file_errno(lane, "find", "the lock file of lease", own->id);
		return BATON_OUTCOME_FAILED;
	}
	(void)snprintf(name, sizeof(name), "%s.alive", own->id);
	int outcome = lease_file_in_place(lane, name, st.st_ino);

	return outcome != BATON_OUTCOME_OK ? outcome : lease_file_in_place(lane, own->id, own->ino);
}

/* ---- closing ---- */

int file_lease_close(void *l, struct baton_call *call, const struct baton_lease *lease)
{
	struct file_lane *lane = l;
	struct file_store *store = lane->store;

	lane->call = call;
	call->error = (struct baton_error){0};
	store_lock(&store->base);
	struct file_own_lease **at = &store->own_leases;
	while (*at != NULL && strcmp((*at)->id, lease->id) != 0)
		at = &(*at)->next;
	struct file_own_lease *own = *at;
	bool busy = own != NULL && own->busy;
	if (own != NULL && !busy) {
		*at = own->next;
		own->root->refs++;
	}
	store_unlock(&store->base);
	if (own == NULL)
		return BATON_OUTCOME_OK;
	if (busy) {
		store_fail(&call->error, BATON_E_BUSY, "a renewal of this lease is under way");
		return BATON_OUTCOME_FAILED;
	}
	lane->root = own->root;
	file_end_all(lane, lease->id, own->lost ? 0 : own->expires_ns, "closed");
	file_remove_candidates(lane, lease->id);
	own_free(store, own);
	file_leave(lane);
	call->error = (struct baton_error){0};
	return BATON_OUTCOME_OK;
}

/* ---- the claims on it ---- */

int file_claims(void *l, struct baton_call *call, const struct baton_lease *lease,
		void (*found)(void *arg, const char *name, uint64_t nonce, uint64_t term),
		void *arg)
{
	struct file_lane *lane = l;
	int outcome = BATON_OUTCOME_FAILED;

	if (file_enter(lane, call, false) != 0)
		return outcome;
	store_lock(&lane->store->base);
	size_t max = lane->store->own_claims.n;
	store_unlock(&lane->store->base);
	struct file_own_claim **list = calloc(max + 1, sizeof(list[0]));
	bool *stand = calloc(max + 1, sizeof(stand[0]));
	size_t n = 0;
	int result = 0;

	if (list != NULL && stand != NULL)
		n = file_own_claims_copy(lane->store, lease->id, list, max);
	else
		result = store_fail(&call->error, BATON_E_MEMORY, "no memory for claims");

	for (size_t i = 0; i < n && result == 0; i++)
		result = file_in_time(lane) != 0 ? -1
						 : file_own_claim_stands(lane, list[i], &stand[i]);
	/* All or nothing: with half a list, the other claims would look lost. */
	for (size_t i = 0; i < n; i++) {
		if (result == 0)
			file_own_claim_note(lane, list[i], stand[i]);
		if (result == 0 && stand[i])
			found(arg, list[i]->name, list[i]->nonce, list[i]->term);
		free(list[i]);
	}
	if (result == 0)
		outcome = BATON_OUTCOME_OK;
	free(stand);
	free(list);
	file_leave(lane);
	return outcome;
}

/* ---- for the others ---- */

static struct file_own_lease *find_own(struct file_store *store, const char *id)
{
	struct file_own_lease *own = store->own_leases;

	while (own != NULL && strcmp(own->id, id) != 0)
		own = own->next;
	return own;
}

uint64_t file_own_expires_ns(struct file_lane *lane, const char *id)
{
	struct file_store *store = lane->store;
	uint64_t expires_ns = 0;

	store_lock(&store->base);
	const struct file_own_lease *own = find_own(store, id);
	if (own != NULL && !own->lost && own->root->dev == lane->root->dev &&
	    own->root->ino == lane->root->ino)
		expires_ns = own->expires_ns;
	store_unlock(&store->base);
	return expires_ns;
}
