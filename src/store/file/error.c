/*
 * error.c: what went wrong, as a code and a sentence that names the file and what to do. The
 * caller gets it in its struct baton_call; nothing is logged here.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "store/file/file.h"

/* How much of a path is shown; the end of it says more than the beginning. */
#define PATH_SHOWN 100

static int code_of(int error);
static const char *advice_for(int error);

int file_errno(struct file_lane *lane, const char *what, const char *where, const char *name)
{
	int error = errno;
	char path[2 * PATH_SHOWN];
	char words[64];
	int n = snprintf(path, sizeof(path), "%s%s%.120s", where, name[0] != '\0' ? "/" : "", name);
	size_t skip = n > PATH_SHOWN ? (size_t)n - PATH_SHOWN : 0;
	const char *said = strerror_r(error, words, sizeof(words));

	if (skip > strlen(path))
		skip = 0;
	return file_error(&lane->call->error, code_of(error), "can't %s %s%s in %.60s: %.40s%s",
			  what, skip > 0 ? "..." : "", path + skip, lane->store->path, said,
			  advice_for(error));
}

int file_corrupt(struct file_lane *lane, const char *where, const char *name)
{
	return file_error(&lane->call->error, BATON_E_CORRUPT,
			  "%.60s/%.80s in %.60s is damaged or not ours; look at it, restore it "
			  "or move it away",
			  where, name, lane->store->path);
}

int file_error(struct baton_error *err, int code, const char *format, ...)
{
	va_list args;

	if (err == NULL)
		return -1;
	err->code = code;
	va_start(args, format);
	(void)vsnprintf(err->text, sizeof(err->text), format, args);
	va_end(args);
	return -1;
}

int file_in_time(struct file_lane *lane)
{
	if (clock_boot_ns() < lane->call->deadline_ns)
		return 0;
	return file_error(&lane->call->error, BATON_E_TIMEOUT,
			  "the disk under %.120s is too slow: the call's time is up",
			  lane->store->path);
}

static int code_of(int error)
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

static const char *advice_for(int error)
{
	switch (error) {
	case EACCES:
	case EPERM: return "; check the owner, group and mode of the directory";
	case EROFS: return "; mount it for writing, or choose another directory";
	case EMFILE: return "; raise this process' limit of open files (ulimit -n)";
	case ENFILE: return "; raise the system's limit of open files (fs.file-max)";
	case ENOSPC:
	case EDQUOT: return "; free some space";
	case ENOENT: return "; was the directory removed?";
	case ENOTDIR:
	case EISDIR:
	case ELOOP: return "; something else stands in its place, move it away";
	case EIO: return "; the disk fails, look at the kernel's log";
	default: return "";
	}
}
