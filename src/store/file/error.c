/*
 * error.c: errors: a code, and a sentence that names the file and says what to do. The caller gets
 * both in its struct baton_call; nothing is logged here.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "store/file/file.h"

/* How much of a path is shown at most. It is the end that is shown, because that says more than the
 * beginning. */
#define PATH_SHOWN 60

static int code_of_errno(int error);
static const char *advice_for_errno(int error);

static const char *end_of(const char *path, const char **dots)
{
	size_t n = strlen(path);

	*dots = n > PATH_SHOWN ? "..." : "";
	return n > PATH_SHOWN ? path + n - PATH_SHOWN : path;
}

int file_errno(struct file_lane *lane, const char *what, const char *where, const char *name)
{
	int error = errno;
	char path[FILE_PATH_SIZE + 2 * BATON_LEASE_ID_MAX];
	char words[64];
	const char *dots;
	const char *more;
	const char *said = strerror_r(error, words, sizeof(words));

	(void)snprintf(path, sizeof(path), "%s%s%s", where, name[0] != '\0' ? "/" : "", name);
	const char *file = end_of(path, &dots);
	const char *dir = end_of(lane->store->path, &more);

	const char *in = strcmp(file, FILE_DIRECTORY) == 0 ? "" : "in ";

	return store_fail(&lane->call->error, code_of_errno(error), "can't %s %s%s %s%s%s: %.40s%s",
			  what, dots, file, in, more, dir, said, advice_for_errno(error));
}

int file_corrupt(struct file_lane *lane, const char *where, const char *name)
{
	const char *more;
	const char *dir = end_of(lane->store->path, &more);

	return store_fail(&lane->call->error, BATON_E_CORRUPT,
			  "%.60s/%.80s in %s%s is damaged or not ours; look at it, restore it "
			  "or move it away",
			  where, name, more, dir);
}

int file_in_time(struct file_lane *lane)
{
	if (clock_boot_ns() < lane->call->deadline_ns)
		return 0;
	return store_fail(&lane->call->error, BATON_E_TIMEOUT,
			  "the disk under %.120s is too slow: the call's time is up",
			  lane->store->path);
}

static int code_of_errno(int error)
{
	switch (error) {
	case EACCES:
	case EPERM:
	case EROFS: return BATON_E_DENIED;
	case EMFILE:
	case ENFILE:
	case ENOLCK: return BATON_E_SYSTEM;
	case ENOMEM: return BATON_E_MEMORY;
	case ENOTDIR:
	case EISDIR:
	case ELOOP: return BATON_E_CORRUPT;
	default: return BATON_E_UNAVAILABLE;
	}
}

static const char *advice_for_errno(int error)
{
	switch (error) {
	case EACCES:
	case EPERM: return "; check the owner, group and mode of the directory";
	case EROFS: return "; mount it for writing, or choose another directory";
	case EMFILE: return "; raise this process' limit of open files (ulimit -n)";
	case ENFILE: return "; raise the system's limit of open files (fs.file-max)";
	case ENOSPC:
	case EDQUOT: return "; free some space";
	case ENOENT: return "; the directory may have been removed";
	case ENOTDIR:
	case EISDIR:
	case ELOOP: return "; something else stands in its place, move it away";
	case EIO: return "; the disk fails, look at the kernel's log";
	default: return "";
	}
}
