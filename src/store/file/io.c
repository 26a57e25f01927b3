/*
 * io.c: files that appear complete or not at all, and folders that are read as of one instant.
 *
 * Every file is written in DIR/tmp, and then linked or renamed to its place. Its maker holds a lock
 * on it meanwhile, so that a sweeper removes only the files of dead processes. Between its making
 * and its lock the file is young, and young files aren't swept. (If the wall clock jumps, the file
 * may look old, and a sweeper may remove it. Then the link fails, and no harm is done.)
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/file/file.h"

#define SCAN_MAX ((size_t)64 << 20) /* bytes: a larger folder isn't one of ours */
#define REPLACE_TRIES 4
#define PAUSE "pause-"

static int tmp_lock_and_write(struct file_lane *lane, struct file_tmp *tmp, const char *text,
			      size_t n);
static int scan_folder_once(struct file_lane *lane, int dir, const char *where, bool *all);

/* ---- writing ---- */

int file_tmp_make(struct file_lane *lane, struct file_tmp *tmp, const char *text, size_t n)
{
	struct file_store *store = lane->store;
	uint64_t number = __atomic_add_fetch(&store->counter, 1, __ATOMIC_RELAXED);

	(void)snprintf(tmp->name, sizeof(tmp->name), "%016llx-%llx",
		       (unsigned long long)store->random, (unsigned long long)number);
	tmp->fd = openat(lane->root->tmp, tmp->name,
			 O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, file_mode(store));
	if (tmp->fd < 0)
		return file_errno(lane, "make", "tmp", tmp->name);
	if (tmp_lock_and_write(lane, tmp, text, n) == 0)
		return 0;
	file_tmp_done(lane, tmp);
	return -1;
}

static int tmp_lock_and_write(struct file_lane *lane, struct file_tmp *tmp, const char *text,
			      size_t n)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	mode_t mode = file_mode(lane->store);

	if (fcntl(tmp->fd, F_OFD_SETLK, &lock) != 0)
		return file_errno(lane, "lock", "tmp", tmp->name);
	if (fchmod(tmp->fd, mode) != 0) /* whatever the umask is */
		return file_errno(lane, "set the mode of", "tmp", tmp->name);
	while (n > 0) {
		ssize_t done = write(tmp->fd, text, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0) {
			errno = done == 0 ? ENOSPC : errno;
			return file_errno(lane, "write", "tmp", tmp->name);
		}
		text += done;
		n -= (size_t)done;
	}
	return 0;
}

int file_tmp_sync(struct file_lane *lane, struct file_tmp *tmp)
{
	return fsync(tmp->fd) == 0 ? 0 : file_errno(lane, "sync", "tmp", tmp->name);
}

int file_tmp_link(struct file_lane *lane, const struct file_tmp *tmp, int dir, const char *name)
{
	return linkat(lane->root->tmp, tmp->name, dir, name, 0);
}

/* A file that can't be removed is swept later, by a process that can. */
void file_tmp_done(struct file_lane *lane, struct file_tmp *tmp)
{
	if (tmp->fd < 0)
		return;
	(void)unlinkat(lane->root->tmp, tmp->name, 0);
	(void)close(tmp->fd);
	tmp->fd = -1;
}

int file_replace(struct file_lane *lane, int dir, const char *name, const char *text, size_t n,
		 bool sync, bool *doubt)
{
	struct file_tmp tmp = {.fd = -1};

	*doubt = false;
	for (int i = 0; i < REPLACE_TRIES; i++) {
		if (file_tmp_make(lane, &tmp, text, n) != 0)
			return -1;
		if (sync && file_tmp_sync(lane, &tmp) != 0) {
			file_tmp_done(lane, &tmp);
			return -1;
		}
		/* It is closed before it is moved, because the close of a file in leases/ tells
		 * that a process has died. */
		(void)close(tmp.fd);
		if (renameat(lane->root->tmp, tmp.name, dir, name) == 0)
			return 0;
		int error = errno;

		(void)unlinkat(lane->root->tmp, tmp.name, 0);
		errno = error;
		if (error != ENOENT) /* ENOENT: it was swept in between, or the store is gone */
			break;
	}
	*doubt = errno == EIO;
	return file_errno(lane, "rename a file to", name, "");
}

int file_sync_dir(struct file_lane *lane, int dir, const char *name)
{
	return fsync(dir) == 0 ? 0 : file_errno(lane, "sync", "the folder", name);
}

/* ---- reading ---- */

int file_read(struct file_lane *lane, int dir, const char *name, const char *where, size_t *n)
{
	/* O_NONBLOCK, because the file may be a pipe. */
	int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	ssize_t got;

	if (fd < 0 && errno == ENOENT)
		return FILE_GOT_NONE;
	if (fd < 0)
		return file_errno(lane, "open", where, name);
	do
		got = read(fd, lane->text, FILE_TEXT_MAX + 1);
	while (got < 0 && errno == EINTR);
	int error = errno;

	(void)close(fd);
	errno = error;
	if (got < 0)
		return file_errno(lane, "read", where, name);
	*n = (size_t)got; /* if it is one byte too long, the parser refuses it */
	return FILE_GOT;
}

int file_is_locked(int fd)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	if (fcntl(fd, F_OFD_GETLK, &lock) != 0)
		return -1;
	return lock.l_type != F_UNLCK;
}

/* ---- folders ---- */

/*
 * One getdents64(2) must return all names: the kernel holds the folder's lock during the call, so
 * the names are those of one instant. A scan in several calls could miss a claim that is there all
 * the time.
 */
int file_scan(struct file_lane *lane, int dir, const char *where)
{
	for (;;) {
		bool all = false;

		if (scan_folder_once(lane, dir, where, &all) != 0)
			return -1;
		if (all)
			return 0;
		size_t size = lane->scan_size * 2;
		char *scan = size > SCAN_MAX ? NULL : realloc(lane->scan, size);

		if (scan == NULL) {
			errno = size > SCAN_MAX ? EFBIG : ENOMEM;
			return file_errno(lane, "read the folder", where, "");
		}
		lane->scan = scan;
		lane->scan_size = size;
	}
}

static int scan_folder_once(struct file_lane *lane, int dir, const char *where, bool *all)
{
	struct dirent64 more;

	if (lseek(dir, 0, SEEK_SET) < 0)
		return file_errno(lane, "read the folder", where, "");
	ssize_t n = getdents64(dir, lane->scan, lane->scan_size);

	if (n < 0 && errno == EINVAL) { /* no room for even one name */
		*all = false;
		return 0;
	}
	if (n < 0)
		return file_errno(lane, "read the folder", where, "");
	lane->scan_used = (size_t)n;
	ssize_t rest = n == 0 ? 0 : getdents64(dir, &more, sizeof(more));

	if (rest < 0 && errno != EINVAL)
		return file_errno(lane, "read the folder", where, "");
	*all = rest == 0;
	return 0;
}

void file_scan_some(struct file_lane *lane, int dir)
{
	ssize_t n = getdents64(dir, lane->scan, lane->scan_size);

	lane->scan_used = n > 0 ? (size_t)n : 0;
}

const char *file_scan_next(const struct file_lane *lane, size_t *at)
{
	const size_t head = offsetof(struct dirent64, d_name);
	unsigned short size;

	if (*at + head >= lane->scan_used)
		return NULL;
	memcpy(&size, lane->scan + *at + offsetof(struct dirent64, d_reclen), sizeof(size));
	const char *name = lane->scan + *at + head;

	*at += size;
	return name;
}

/* If there are more orders than we keep, those for the latest terms are kept. */
static void note_order(struct file_folder *folder, uint64_t term, uint64_t id)
{
	uint32_t at = folder->n_orders;

	if (at < FILE_ORDERS_MAX) {
		folder->n_orders++;
	} else {
		at = 0;
		for (uint32_t i = 1; i < FILE_ORDERS_MAX; i++)
			if (folder->orders[i].term < folder->orders[at].term)
				at = i;
		if (folder->orders[at].term >= term)
			return;
	}
	folder->orders[at].term = term;
	folder->orders[at].id = id;
}

int file_read_folder(struct file_lane *lane, int dir, const char *name, struct file_folder *out)
{
	uint64_t ended = 0;
	uint64_t pauses[2] = {0}; /* the highest pause, and the highest end of one */
	size_t at = 0;

	*out = (struct file_folder){0};
	if (file_scan(lane, dir, name) != 0)
		return -1;
	for (const char *entry; (entry = file_scan_next(lane, &at)) != NULL;) {
		bool end = false;
		uint64_t term;
		uint64_t id;
		uint64_t seq = file_seq_of(entry, &end);
		uint64_t pause = seq == 0 ? file_pause_of(entry, &end) : 0;

		if (seq != 0 && (out->lowest == 0 || seq < out->lowest))
			out->lowest = seq;
		if (seq != 0 && end && seq > ended)
			ended = seq;
		else if (seq != 0 && !end && seq > out->highest)
			out->highest = seq;
		else if (pause > pauses[end])
			pauses[end] = pause;
		else if (file_order_of(entry, &term, &id))
			note_order(out, term, id);
	}
	out->ended = out->highest != 0 && ended == out->highest;
	out->paused = pauses[false] > pauses[true];
	out->last_pause = pauses[!out->paused];
	return 0;
}

/* ---- names ---- */

/* Exactly 20 digits, so that `ls` shows them in order. */
static bool take_digits(const char **text, uint64_t *out)
{
	uint64_t value = 0;

	for (int i = 0; i < FILE_SEQ_DIGITS; i++, (*text)++) {
		if (**text < '0' || **text > '9' ||
		    __builtin_mul_overflow(value, (uint64_t)10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(**text - '0'), &value))
			return false;
	}
	*out = value;
	return true;
}

uint64_t file_seq_of(const char *name, bool *end)
{
	uint64_t seq;

	if (!take_digits(&name, &seq))
		return 0;
	*end = strcmp(name, ".end") == 0;
	return *end || *name == '\0' ? seq : 0;
}

void file_seq_name(uint64_t seq, bool end, char out[32])
{
	(void)snprintf(out, 32, "%0*llu%s", FILE_SEQ_DIGITS, (unsigned long long)seq,
		       end ? ".end" : "");
}

uint64_t file_pause_of(const char *name, bool *end)
{
	return strncmp(name, PAUSE, sizeof(PAUSE) - 1) == 0
		       ? file_seq_of(name + sizeof(PAUSE) - 1, end)
		       : 0;
}

void file_pause_name(uint64_t number, bool end, char out[32])
{
	(void)snprintf(out, 32, PAUSE "%0*llu%s", FILE_SEQ_DIGITS, (unsigned long long)number,
		       end ? ".end" : "");
}

bool file_order_of(const char *name, uint64_t *term, uint64_t *id)
{
	if (strncmp(name, "order-", 6) != 0)
		return false;
	name += 6;
	return take_digits(&name, term) && *name++ == '-' && take_digits(&name, id) &&
	       *name == '\0';
}
