/*
 * fence.c: the guards on the resource's side (S4): once a term was accepted, no lower one is.
 *
 * In memory it is one number. In a file it is the same line in two slots, each in a block of its
 * own:
 *
 *   offset 0      "baton-fence 1 00000000000000000042 <checksum>", blanks, newline
 *   offset 4096   the same
 *
 * The file is made complete under another name and linked into place, so that it is never seen
 * half made: an empty one is a damaged one. All else happens in place, under an OFD lock. A new
 * term goes into the slot that does *not* hold the highest one, is forced to disk, and only then
 * goes into the other. So at every instant, and after every crash, the highest term that was ever
 * accepted stands in at least one good slot; and two equal slots say that it has reached the
 * disk, so that the usual call (the same leader again) needs neither write nor fsync.
 *
 * Whatever can't be read, understood or forced to disk is an error, never a yes (S9).
 */
#include "baton.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define SLOT_SIZE 4096
#define FILE_SIZE (2 * SLOT_SIZE)
#define MAGIC "baton-fence 1 "
#define DIGITS 20
/* L7: how often we ask for a lock that a stopped process may hold for ever, 5 s in all. */
#define LOCK_TRIES 500
#define LOCK_PAUSE_NS 10000000
#define NAME_TRIES 100

static int open_file(const char *path, uint64_t term, int *fd, struct baton_error *err);
static int check_file(int fd, const char *path, uint64_t term, struct baton_error *err);
static int fence_fail(struct baton_error *err, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

int baton_fence_check(struct baton_fence *fence, uint64_t term)
{
	uint64_t highest = __atomic_load_n(&fence->highest, __ATOMIC_ACQUIRE);

	if (term == 0) /* what baton_term() says if the candidate doesn't lead */
		return BATON_E_STALE;
	while (term > highest)
		if (__atomic_compare_exchange_n(&fence->highest, &highest, term, true,
						__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			return BATON_OK;
	return term == highest ? BATON_OK : BATON_E_STALE;
}

int baton_fence_file(const char *path, uint64_t term, struct baton_error *err)
{
	struct flock unlock = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
	int fd = -1;
	int rc;

	if (path == NULL || path[0] == '\0')
		return fence_fail(err, BATON_E_INVALID,
				  "the fence has no path; expected the path of a file");
	if (term == 0)
		return fence_fail(err, BATON_E_STALE,
				  "term 0 is not a leadership: only a leader may use the resource");
	rc = open_file(path, term, &fd, err);
	if (rc == 0)
		rc = check_file(fd, path, term, err);
	if (fd >= 0) {
		/* A close is not enough: a child that was forked meanwhile shares the lock. */
		(void)fcntl(fd, F_OFD_SETLK, &unlock);
		(void)close(fd);
	}
	return rc;
}

static int fence_fail(struct baton_error *err, int code, const char *format, ...)
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

static int fail_system(struct baton_error *err, const char *what, const char *path)
{
	const int error = errno;

	return fence_fail(
		err, BATON_E_SYSTEM,
		"can't %s the fence file \"%.100s\" (%s): let this user read and write the file, "
		"and check its disk",
		what, path, strerrordesc_np(error));
}

static int fail_corrupt(struct baton_error *err, const char *path)
{
	return fence_fail(
		err, BATON_E_CORRUPT,
		"the fence file \"%.100s\" is damaged, or is not a fence file: stop what uses the "
		"resource, find out why, then remove the file to start again",
		path);
}

/* ---- slots ---- */

/* FNV-1a: against damage, not against malice. */
static uint64_t checksum_of(const char *s, size_t size)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (size_t i = 0; i < size; i++)
		h = (h ^ (unsigned char)s[i]) * 0x100000001b3u;
	return h;
}

static void slot_make(char slot[SLOT_SIZE + 1], uint64_t term)
{
	int n = snprintf(slot, SLOT_SIZE, MAGIC "%0*" PRIu64, DIGITS, term);
	const size_t used = (size_t)n;

	n += snprintf(slot + used, SLOT_SIZE - used, " %016" PRIx64, checksum_of(slot, used));
	memset(slot + n, ' ', SLOT_SIZE - (size_t)n);
	slot[SLOT_SIZE - 1] = '\n';
	slot[SLOT_SIZE] = '\0';
}

/* The term; 0: the slot is not, to the last byte, as we write it. */
static uint64_t slot_read(const char slot[SLOT_SIZE])
{
	char expected[SLOT_SIZE + 1];
	char digits[DIGITS + 1] = {0};
	uint64_t term;

	memcpy(digits, slot + strlen(MAGIC), DIGITS);
	for (size_t i = 0; i < DIGITS; i++)
		if (digits[i] < '0' || digits[i] > '9')
			return 0;
	errno = 0;
	term = strtoull(digits, NULL, 10);
	if (errno != 0)
		return 0;
	slot_make(expected, term);
	return memcmp(expected, slot, SLOT_SIZE) == 0 ? term : 0;
}

static int write_all(int fd, const char *data, size_t size, off_t at)
{
	while (size > 0) {
		ssize_t n = pwrite(fd, data, size, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			errno = n == 0 ? ENOSPC : errno;
			return -1;
		}
		data += n;
		size -= (size_t)n;
		at += n;
	}
	return 0;
}

static int slot_write(int fd, int slot, uint64_t term)
{
	char data[SLOT_SIZE + 1];

	slot_make(data, term);
	return write_all(fd, data, SLOT_SIZE, (off_t)slot * SLOT_SIZE);
}

/* ---- the file ---- */

static int sync_folder(const char *path)
{
	char copy[PATH_MAX];
	int fd;
	int rc;

	if (strlen(path) >= sizeof(copy)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	(void)snprintf(copy, sizeof(copy), "%s", path);
	fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	rc = fsync(fd);
	(void)close(fd);
	return rc;
}

/* A new file beside it, under an unused name; as readable as the umask allows. */
static int create_temporary(const char *path, char name[PATH_MAX])
{
	int fd = -1;

	for (int i = 0; i < NAME_TRIES && fd < 0; i++) {
		if (snprintf(name, PATH_MAX, "%s.%d.%" PRIu64, path, (int)gettid(),
			     clock_boot_ns()) >= PATH_MAX) {
			errno = ENAMETOOLONG;
			return -1;
		}
		fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (fd < 0 && errno != EEXIST)
			return -1;
	}
	return fd;
}

/*
 * First use. The second slot is left blank: a process that finds the file like that finishes it,
 * and forces its folder to disk before anything is accepted. EEXIST: another process was quicker,
 * which is fine.
 */
static int create_file(const char *path, uint64_t term, struct baton_error *err)
{
	char blank[SLOT_SIZE];
	char temporary[PATH_MAX];
	int fd = create_temporary(path, temporary);
	int rc = -1;

	if (fd < 0)
		return fail_system(err, "create", path);
	memset(blank, ' ', sizeof(blank));
	if (slot_write(fd, 0, term) == 0 && write_all(fd, blank, SLOT_SIZE, SLOT_SIZE) == 0 &&
	    fsync(fd) == 0)
		rc = link(temporary, path);
	if (rc != 0 && errno == EEXIST)
		rc = 0;
	rc = rc != 0 ? fail_system(err, "create", path) : 0;
	(void)unlink(temporary);
	(void)close(fd);
	return rc;
}

static int lock_file(int fd, const char *path, struct baton_error *err)
{
	const struct timespec pause = {.tv_nsec = LOCK_PAUSE_NS};
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	for (int i = 0; i < LOCK_TRIES; i++) {
		if (fcntl(fd, F_OFD_SETLK, &lock) == 0)
			return 0;
		if (errno != EAGAIN && errno != EACCES && errno != EINTR)
			return fail_system(err, "lock", path);
		(void)nanosleep(&pause, NULL);
	}
	return fence_fail(
		err, BATON_E_SYSTEM,
		"another process keeps the fence file \"%.100s\" locked: find that process (it "
		"may be stopped) and end it",
		path);
}

static int open_file(const char *path, uint64_t term, int *fd, struct baton_error *err)
{
	const int flags = O_RDWR | O_CLOEXEC | O_NOCTTY;

	*fd = open(path, flags);
	if (*fd < 0 && errno == ENOENT) {
		int rc = create_file(path, term, err);

		if (rc != 0)
			return rc;
		*fd = open(path, flags);
	}
	if (*fd < 0)
		return fail_system(err, "open", path);
	return lock_file(*fd, path, err);
}

/* Writes the term into the spare slot, forces it to disk, and writes it into the other slot. */
static int accept_term(int fd, const char *path, uint64_t term, int spare, struct baton_error *err)
{
	if (slot_write(fd, spare, term) != 0)
		return fail_system(err, "write", path);
	if (fsync(fd) != 0 || sync_folder(path) != 0)
		return fail_system(err, "force to disk", path);
	/* If this one fails, the next call does it all again. */
	(void)slot_write(fd, 1 - spare, term);
	return BATON_OK;
}

static int check_file(int fd, const char *path, uint64_t term, struct baton_error *err)
{
	char data[FILE_SIZE];
	struct stat st;
	uint64_t slots[2], highest;

	if (fstat(fd, &st) != 0)
		return fail_system(err, "read", path);
	if (!S_ISREG(st.st_mode) || st.st_size != FILE_SIZE)
		return fail_corrupt(err, path);
	if (st.st_nlink == 0)
		return fence_fail(err, BATON_E_SYSTEM,
				  "the fence file \"%.100s\" was removed meanwhile: ask again",
				  path);
	if (pread(fd, data, FILE_SIZE, 0) != FILE_SIZE)
		return fail_system(err, "read", path);
	slots[0] = slot_read(data);
	slots[1] = slot_read(data + SLOT_SIZE);
	highest = slots[0] > slots[1] ? slots[0] : slots[1];
	if (highest == 0)
		return fail_corrupt(err, path);
	if (term < highest)
		return fence_fail(err, BATON_E_STALE,
				  "term %" PRIu64 " is over: the resource was used in term %" PRIu64
				  ", says \"%.100s\"",
				  term, highest, path);
	if (term == slots[0] && term == slots[1])
		return BATON_OK;
	return accept_term(fd, path, term, slots[0] < slots[1] ? 0 : 1, err);
}
