/*
 * root.c: the directory of a store. It is made if it is missing, refused if the protocol doesn't
 * hold there, and recognised again. If it is moved away and another one is put in its place,
 * that is another store. Leases in the old one are lost, because new candidates can't see them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "store/file/file.h"

static const char *const parts[] = {"leases", "elections", "tmp"};

static struct file_root *root_open(struct file_lane *lane, bool create);
static int open_top(struct file_lane *lane, bool create);
static int open_part(struct file_lane *lane, const struct file_root *root, const char *name);
static int check_file_system(struct file_lane *lane, int dir);
static int read_kernel(struct file_lane *lane, struct file_root *root);
static void root_close(struct file_root *root);

int file_enter(struct file_lane *lane, struct baton_call *call, bool create)
{
	struct file_store *store = lane->store;

	lane->call = call;
	lane->root = NULL;
	call->error = (struct baton_error){0};
	if (file_in_time(lane) != 0)
		return -1;
	store_lock(&store->base);
	struct file_root *root = store->root;
	if (root != NULL)
		root->refs++;
	store_unlock(&store->base);
	if (root != NULL && file_root_stands(store, root)) {
		lane->root = root;
		return 0;
	}
	struct file_root *fresh = root_open(lane, create);
	struct file_root *stale = NULL;

	store_lock(&store->base);
	if (fresh != NULL) {
		stale = store->root;
		store->root = fresh;
		fresh->refs = 2; /* one for the store, one for this lane */
	}
	if (stale != NULL && store->watch != NULL && lane->watch == NULL)
		file_watch_nudge(store->watch);
	store_unlock(&store->base);
	file_root_drop(store, stale);
	file_root_drop(store, root);
	lane->root = fresh;
	return fresh != NULL ? 0 : -1;
}

void file_leave(struct file_lane *lane)
{
	file_root_drop(lane->store, lane->root);
	lane->root = NULL;
}

void file_root_keep(struct file_store *store, struct file_root *root)
{
	store_lock(&store->base);
	root->refs++;
	store_unlock(&store->base);
}

void file_root_drop(struct file_store *store, struct file_root *root)
{
	if (root == NULL)
		return;
	store_lock(&store->base);
	bool last = --root->refs == 0;
	store_unlock(&store->base);
	if (last)
		root_close(root);
}

bool file_root_stands(const struct file_store *store, const struct file_root *root)
{
	struct stat st;

	if (stat(store->path, &st) != 0 || st.st_dev != root->dev || st.st_ino != root->ino)
		return false;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (fstatat(root->dir, parts[i], &st, AT_SYMLINK_NOFOLLOW) != 0 ||
		    st.st_ino != root->parts[i])
			return false;
	return true;
}

/* ---- opening ---- */

static struct file_root *root_open(struct file_lane *lane, bool create)
{
	struct file_root *root = calloc(1, sizeof(*root));
	struct stat st;

	if (root == NULL) {
		errno = ENOMEM;
		file_errno(lane, "open", "the store", "");
		return NULL;
	}
	root->leases = root->elections = root->tmp = -1;
	root->dir = open_top(lane, create);
	if (root->dir < 0)
		goto failed;
	if (fstat(root->dir, &st) != 0) {
		file_errno(lane, "open", FILE_DIRECTORY, "");
		goto failed;
	}
	root->dev = st.st_dev;
	root->ino = st.st_ino;
	root->gid = st.st_gid;
	if (read_kernel(lane, root) != 0)
		goto failed;
	int *fds[] = {&root->leases, &root->elections, &root->tmp};

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		*fds[i] = open_part(lane, root, parts[i]);
		if (*fds[i] < 0)
			goto failed;
		if (fstat(*fds[i], &st) != 0) {
			file_errno(lane, "open", parts[i], "");
			goto failed;
		}
		root->parts[i] = st.st_ino;
	}
	return root;
failed:
	root_close(root);
	return NULL;
}

/* Opens DIR, or makes it. Folders above it are not made: if they are missing, a mount may be
 * wrong. */
static int open_top(struct file_lane *lane, bool create)
{
	struct file_store *store = lane->store;
	const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
	bool made = false;
	int dir = open(store->path, flags);

	if (dir < 0 && errno == ENOENT && create) {
		made = file_make_dir(store, AT_FDCWD, store->path) == 0;
		if (!made && errno == ENOENT)
			return store_fail(&lane->call->error, BATON_E_UNAVAILABLE,
					  "can't make the directory %.120s: the one above it isn't "
					  "there; make that first",
					  store->path);
		if (!made && errno != EEXIST)
			return file_errno(lane, "make", FILE_DIRECTORY, "");
		dir = open(store->path, flags);
	}
	if (dir < 0 && errno == ENOENT && !create)
		return store_fail(&lane->call->error, BATON_E_UNAVAILABLE,
				  "there is no store at %.200s; its first candidate makes it",
				  store->path);
	if (dir < 0)
		return file_errno(lane, "open", FILE_DIRECTORY, "");
	if (check_file_system(lane, dir) == 0 &&
	    (!made || file_set_up_dir(lane, dir, FILE_GROUP_KEPT, FILE_DIRECTORY, "") == 0)) {
		/* If the folder above can't be read, it can't be synced either: that is up to its
		 * owner. */
		int above = made ? openat(dir, "..", flags) : -1;

		if (above < 0 || fsync(above) == 0) {
			if (above >= 0)
				(void)close(above);
			return dir;
		}
		file_errno(lane, "sync", "the folder above", "");
		(void)close(above);
	}
	(void)close(dir);
	return -1;
}

/* Readers make it, too: a reader may come while the first candidate is still making the store. */
static int open_part(struct file_lane *lane, const struct file_root *root, const char *name)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(root->dir, name, flags);

	if (fd < 0 && errno == ENOENT) {
		if (file_make_dir(lane->store, root->dir, name) != 0 && errno != EEXIST)
			return file_errno(lane, "make", name, "");
		if (fsync(root->dir) != 0)
			return file_errno(lane, "sync", FILE_DIRECTORY, "");
		fd = openat(root->dir, name, flags);
	}
	if (fd < 0)
		return file_errno(lane, "open", name, "");
	if (file_set_up_dir(lane, fd, root->gid, name, "") == 0)
		return fd;
	(void)close(fd);
	return -1;
}

/* The umask may have taken away even the owner's bits. Then no process could open the new folder,
 * so they are set again. */
static void open_up(int at, const char *path, mode_t mode)
{
	int fd = openat(at, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	char self[64];

	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0 && (st.st_mode & S_IRWXU) != S_IRWXU) {
		(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
		(void)chmod(self, mode);
	}
	(void)close(fd);
}

int file_make_dir(const struct file_store *store, int at, const char *path)
{
	mode_t mode = file_dir_mode(store);

	if (mkdirat(at, path, mode) != 0)
		return -1;
	open_up(at, path, mode);
	return 0;
}

/*
 * If DIR is shared by its group, all that is in it is shared, too: folders belong to DIR's group,
 * and pass it on to what is made in them. Bits are only added: the umask may have taken them away,
 * or the folder's maker was killed before this step. Bits beyond these were set by an
 * administrator.
 */
int file_set_up_dir(struct file_lane *lane, int fd, gid_t gid, const char *where, const char *name)
{
	mode_t mode = file_dir_mode(lane->store);
	struct stat st;

	if (fstat(fd, &st) != 0)
		return file_errno(lane, "find", where, name);
	if (st.st_uid != geteuid())
		return 0;
	/* EPERM: a user that is not in that group can't set it, and doesn't share by it. EROFS:
	 * nothing can be written there, so nothing but reading is shared. */
	if ((mode & S_ISGID) != 0 && gid != FILE_GROUP_KEPT && st.st_gid != gid &&
	    fchown(fd, (uid_t)-1, gid) != 0 && errno != EPERM && errno != EROFS)
		return file_errno(lane, "set the group of", where, name);
	if ((st.st_mode & mode) != mode && fchmod(fd, (st.st_mode & 07777) | mode) != 0 &&
	    errno != EROFS)
		return file_errno(lane, "set the mode of", where, name);
	return 0;
}

/*
 * The protocol needs one kernel for all candidates, with its locks, its clock and its boot. This is
 * a list of good file systems, because a list of bad ones would let the next network file system
 * through.
 */
const char *file_system_name(unsigned long type)
{
	static const struct {
		unsigned long type;
		const char *name;
	} good[] = {{0xef53, "ext4"},     {0x58465342, "xfs"}, {0x9123683e, "btrfs"},
		    {0xf2f52010, "f2fs"}, {0x2fc12fc1, "zfs"}, {FILE_TMPFS, "tmpfs"}};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		if (type == good[i].type)
			return good[i].name;
	return NULL;
}

int file_system_type(struct file_lane *lane, int dir, unsigned long *type)
{
	struct statfs fs;

	if (fstatfs(dir, &fs) != 0)
		return file_errno(lane, "ask for the file system of", FILE_DIRECTORY, "");
	*type = (unsigned long)fs.f_type & 0xffffffffu;
	return 0;
}

static int check_file_system(struct file_lane *lane, int dir)
{
	unsigned long type = 0;

	if (file_system_type(lane, dir, &type) != 0)
		return -1;
	if (file_system_name(type) != NULL || lane->store->force)
		return 0;
	return store_fail(
		&lane->call->error, BATON_E_UNSUPPORTED,
		"%.80s is on a file system (type %lx) that may be shared between machines "
		"or keeps no locks; use a directory on ext4, xfs, btrfs, f2fs, zfs or "
		"tmpfs%s",
		lane->store->path, type,
		type == FILE_OVERLAYFS ? ", for a container: a volume" : "");
}

static int read_kernel(struct file_lane *lane, struct file_root *root)
{
	static const char path[] = "/proc/sys/kernel/random/boot_id";
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, root->boot, FILE_BOOT_ID);

	if (fd < 0 && errno != ENOENT)
		return file_errno(lane, "open", path, "");
	if (fd >= 0)
		(void)close(fd);
	if (n != FILE_BOOT_ID || strspn(root->boot, "0123456789abcdef-") != FILE_BOOT_ID)
		return store_fail(&lane->call->error, BATON_E_SYSTEM,
				  "can't read %s, which tells one boot from another; mount /proc",
				  path);
	/* Kernels before 5.6 have no time namespaces: there is one clock for all. */
	root->timens = stat("/proc/self/ns/time", &st) == 0 ? (uint64_t)st.st_ino : 0;
	return 0;
}

static void root_close(struct file_root *root)
{
	const int fds[] = {root->dir, root->leases, root->elections, root->tmp};

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (fds[i] >= 0)
			(void)close(fds[i]);
	free(root);
}

/* ---- elections ---- */

int file_open_election(struct file_lane *lane, const char *path, bool create, bool *missing)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int root = lane->root->elections;
	int dir = openat(root, path, flags);

	*missing = dir < 0 && errno == ENOENT && !create;
	if (*missing)
		return -1;
	if (dir < 0 && errno == ENOENT) {
		if (file_make_parents(lane, root, path) != 0)
			return -1;
		if (file_make_dir(lane->store, root, path) != 0 && errno != EEXIST)
			return file_errno(lane, "make", "elections", path);
		dir = openat(root, path, flags);
	}
	if (dir < 0)
		return file_errno(lane, "open", "elections", path);
	if (file_set_up_dir(lane, dir, lane->root->gid, "elections", path) == 0)
		return dir;
	(void)close(dir);
	return -1;
}

int file_sync_above(struct file_lane *lane, int dir)
{
	struct stat top;
	struct stat st;
	int above = dir;
	int result = 0;

	if (fstat(lane->root->elections, &top) != 0)
		return file_errno(lane, "find", "elections", "");
	do {
		int next = openat(above, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (above != dir)
			(void)close(above);
		if (next < 0)
			return file_errno(lane, "open", "elections", "");
		above = next;
		result = file_sync_dir(lane, above, "elections");
		if (result == 0 && fstat(above, &st) != 0)
			result = file_errno(lane, "find", "elections", "");
	} while (result == 0 && (st.st_ino != top.st_ino || st.st_dev != top.st_dev));
	(void)close(above);
	return result;
}

int file_make_parents(struct file_lane *lane, int dir, const char *path)
{
	char part[FILE_PATH_SIZE];

	for (const char *slash = strchr(path, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		(void)snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path);
		if (file_make_dir(lane->store, dir, part) != 0 && errno != EEXIST)
			return file_errno(lane, "make", "the folder", part);
		int fd = openat(dir, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

		if (fd < 0)
			return file_errno(lane, "open", "the folder", part);
		int result = file_set_up_dir(lane, fd, lane->root->gid, "the folder", part);

		(void)close(fd);
		if (result != 0)
			return -1;
	}
	return 0;
}

mode_t file_mode(const struct file_store *store)
{
	return store->mode & 0666;
}

/*
 * In a folder that others may write to, users can't remove each other's files (S_ISVTX). A folder
 * that is shared with a group passes the group on (S_ISGID).
 */
mode_t file_dir_mode(const struct file_store *store)
{
	mode_t mode = store->mode & 0777;

	if ((mode & 0022) != 0)
		mode |= S_ISVTX;
	if ((mode & 0070) != 0)
		mode |= S_ISGID;
	return mode;
}
