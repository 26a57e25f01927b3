/*
 * directory.c: directory:/path, an adapter for record stores whose records are files in a
 * directory. It is the example of docs/new-store.md: complete, and small. (For real use there is
 * file:, which is faster and proves the death of a leader at once.)
 *
 * A record is one file; its name is the key, with ':' for '/'. Compare-and-set is "read, compare,
 * rename a new file over it" under one flock() for the whole directory. The version is `w`, which
 * stands at the beginning of every value and is new for every attempt to write.
 *
 * What this must never do: say FAILED about a file that may be there.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/url.h"
#include "store/base.h"
#include "store/options.h"
#include "store/record/adapter.h"

/* A lane needs nothing of its own here: it is the store. */
struct directory {
	char path[PATH_MAX / 2];
};

struct path {
	char text[PATH_MAX];
};

/* ---- the store ---- */

static const struct option_known directory_known[] = {
	{"prefix", OPTION_IS_NAMES(RECORD_PREFIX_MAX)},
	{"poll", OPTION_IS_POLL},
	{NULL, NULL},
};

static bool directory_option(void *options, const char *key, const char *value)
{
	return record_option(options, key, value); /* it has none of its own */
}

static const struct option_list directory_options = {
	.store = "a directory",
	.page = "docs/new-store.md",
	.known = directory_known,
	.set = directory_option,
};

/* Parses and allocates only. */
static int directory_open(const struct baton_store_config *config, struct record_options *options,
			  void **store, struct baton_error *err)
{
	struct directory *d = calloc(1, sizeof(*d));
	char path[PATH_MAX / 4];
	struct url url;

	if (d == NULL) {
		(void)store_fail(err, BATON_E_MEMORY, "no memory for a store");
		return BATON_E_MEMORY;
	}
	if (!url_split(config->url, &url) || !url_decode(url.path, path, sizeof(path)) ||
	    path[0] != '/') {
		free(d);
		(void)store_fail(err, BATON_E_URL, "expected directory:/path/to/a/directory");
		return BATON_E_URL;
	}
	if (option_each(url.query, &directory_options, options, err) != 0) {
		free(d);
		return BATON_E_URL;
	}
	(void)snprintf(d->path, sizeof(d->path), "%s%s%s", path,
		       options->prefix[0] != '\0' ? "/" : "", options->prefix);
	*store = d;
	return BATON_OK;
}

static void directory_close(void *store)
{
	free(store);
}

static int directory_lane_open(void *store, int kind, void **lane, struct baton_error *err)
{
	(void)kind;
	(void)err;
	*lane = store;
	return BATON_OK;
}

static void directory_lane_close(void *lane)
{
	(void)lane;
}

/* Nothing is open between two calls. */
static void directory_forget(void *store)
{
	(void)store;
}

/* ---- files ---- */

static struct path path_of(const struct directory *d, const char *key)
{
	struct path p;
	int n = snprintf(p.text, sizeof(p.text), "%s/", d->path);

	(void)snprintf(p.text + n, sizeof(p.text) - (size_t)n, "%s", key);
	for (char *c = p.text + n; *c != '\0'; c++)
		if (*c == '/')
			*c = ':';
	return p;
}

/* What went wrong, in the words of the system. */
static void item_fail(struct baton_call *call, struct record_item *item, int outcome, int error)
{
	bool is_right = error == EACCES || error == EPERM || error == EROFS;

	item->outcome = outcome;
	item->code = is_right ? BATON_E_DENIED : BATON_E_UNAVAILABLE;
	(void)store_fail(&call->error, item->code, "the record %.80s: %s", item->key,
			 strerror(error));
}

/* The record as it is; a file that is not there is a record with no version. */
static bool item_read(const struct directory *d, struct baton_call *call, struct record_item *item)
{
	struct path path = path_of(d, item->key);
	int fd = open(path.text, O_RDONLY | O_CLOEXEC);
	char text[4096];
	ssize_t n = 0;

	bytes_clear(&item->value);
	item->version = (struct record_version){.n = 0};
	item->outcome = BATON_OUTCOME_OK;
	if (fd < 0 && errno == ENOENT)
		return true;
	while (fd >= 0 && (n = read(fd, text, sizeof(text))) > 0)
		(void)bytes_add(&item->value, text, (size_t)n, SIZE_MAX);
	if (fd < 0 || n < 0)
		item_fail(call, item, BATON_OUTCOME_FAILED, errno);
	if (fd >= 0)
		(void)close(fd);
	item->version = record_version_of_value(item->value.at, item->value.n);
	return item->outcome == BATON_OUTCOME_OK;
}

/* Before the rename nothing has happened; after it, nobody can say that it has not. */
static void item_write(const struct directory *d, struct baton_call *call, struct record_item *item)
{
	struct path path = path_of(d, item->key);
	struct path new = path_of(d, ".new");
	int dir = open(d->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd = open(new.text, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	bool is_written = dir >= 0 && fd >= 0 &&
			  write(fd, item->value.at, item->value.n) == (ssize_t)item->value.n &&
			  fsync(fd) == 0 && rename(new.text, path.text) == 0;

	item->outcome = BATON_OUTCOME_OK;
	if (!is_written)
		item_fail(call, item, BATON_OUTCOME_FAILED, errno);
	else if (fsync(dir) != 0)
		item_fail(call, item, BATON_OUTCOME_UNKNOWN, errno);
	item->version = record_version_of_value(item->value.at, item->value.n);
	if (fd >= 0)
		(void)close(fd);
	if (dir >= 0)
		(void)close(dir);
}

static void item_delete(const struct directory *d, struct baton_call *call,
			struct record_item *item)
{
	struct path path = path_of(d, item->key);

	item->outcome = BATON_OUTCOME_OK;
	if (unlink(path.text) != 0 && errno != ENOENT)
		item_fail(call, item, BATON_OUTCOME_FAILED, errno);
}

/* ---- the lock ---- */

/* The descriptor, or -1: not in time, or the directory can't be used. Makes the directory. */
static int lock_take(const struct directory *d, struct baton_call *call)
{
	static const struct timespec step = {.tv_nsec = 1000000};
	struct path path = path_of(d, ".lock");
	int fd = open(path.text, O_RDWR | O_CREAT | O_CLOEXEC, 0666);

	if (fd < 0 && errno == ENOENT && mkdir(d->path, 0777) == 0)
		fd = open(path.text, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	while (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0) {
		if (errno != EWOULDBLOCK || clock_boot_ns() >= call->deadline_ns) {
			(void)close(fd);
			return -1;
		}
		(void)ppoll(NULL, 0, &step, NULL);
	}
	return fd;
}

static bool is_same(const struct record_version *a, const struct record_version *b)
{
	return a->n == b->n && memcmp(a->bytes, b->bytes, a->n) == 0;
}

static void item_change(const struct directory *d, struct baton_call *call,
			struct record_item *item, bool is_drop)
{
	struct record_item now = {.key = item->key};

	if (!item_read(d, call, &now)) {
		item->outcome = now.outcome;
		item->code = now.code;
	} else if (!is_same(&now.version, &item->version)) {
		/* A conflict: what is in the way is told, which saves the layer a read. */
		struct bytes old = item->value;

		item->outcome = BATON_OUTCOME_REFUSED;
		item->is_told = true;
		item->version = now.version;
		item->value = now.value;
		now.value = old;
	} else if (is_drop) {
		item_delete(d, call, item);
	} else {
		item_write(d, call, item);
	}
	bytes_done(&now.value);
}

/* ---- the six functions ---- */

static void directory_change(void *lane, struct baton_call *call, struct record_item *items,
			     size_t n, bool is_drop)
{
	const struct directory *d = lane;
	int lock = lock_take(d, call);

	if (lock < 0) {
		(void)store_fail(&call->error, BATON_E_UNAVAILABLE,
				 "the directory %.100s can't be locked: %s", d->path,
				 strerror(errno));
		record_items_end(items, n, BATON_OUTCOME_FAILED, BATON_E_UNAVAILABLE);
		return;
	}
	for (size_t i = 0; i < n; i++)
		item_change(d, call, &items[i], is_drop);
	(void)close(lock);
}

static void directory_put(void *lane, struct baton_call *call, struct record_item *items, size_t n)
{
	directory_change(lane, call, items, n, false);
}

static void directory_drop(void *lane, struct baton_call *call, struct record_item *items, size_t n)
{
	directory_change(lane, call, items, n, true);
}

/* A rename is atomic, so a read needs no lock, and is fresh in any case. */
static void directory_get(void *lane, struct baton_call *call, struct record_item *items, size_t n,
			  bool fresh)
{
	(void)fresh;
	for (size_t i = 0; i < n; i++)
		(void)item_read(lane, call, &items[i]);
}

static int directory_list(void *lane, struct baton_call *call, const char *prefix, bool with_values,
			  record_found *found, void *arg)
{
	const struct directory *d = lane;
	DIR *dir = opendir(d->path);
	const struct dirent *e;

	if (dir == NULL && errno == ENOENT)
		return BATON_OUTCOME_OK;
	if (dir == NULL) {
		(void)store_fail(&call->error, BATON_E_UNAVAILABLE, "the directory %.100s: %s",
				 d->path, strerror(errno));
		return BATON_OUTCOME_FAILED;
	}
	while ((e = readdir(dir)) != NULL) {
		char key[NAME_MAX + 1];
		struct record_item item = {.key = key, .age_ns = RECORD_NEVER};

		(void)snprintf(key, sizeof(key), "%s", e->d_name);
		for (char *c = key; *c != '\0'; c++)
			if (*c == ':')
				*c = '/';
		if (strncmp(key, prefix, strlen(prefix)) == 0 && item_read(d, call, &item) &&
		    item.version.n != 0) {
			if (!with_values)
				bytes_clear(&item.value);
			found(arg, &item);
		}
		bytes_done(&item.value);
	}
	(void)closedir(dir);
	return BATON_OUTCOME_OK;
}

static const struct record_adapter adapter = {
	.name = "a directory",
	.page = "docs/new-store.md",
	.key_max = 200,
	.value_max = 1 << 20,
	.batch_max = 1000,
	.get_max = 1000,
	.poll_ms = 1000,
	.lists_values = true,
	.traits = RECORD_TRAITS(.min_lease_ns = 500 * CLOCK_NS_PER_MS,
				.promises = "All processes of one machine that use one directory. "
					    "Exclusion and growing terms hold as long as the file "
					    "system keeps what was synced."),
	.open = directory_open,
	.close = directory_close,
	.lane_open = directory_lane_open,
	.lane_close = directory_lane_close,
	.forget = directory_forget,
	.get = directory_get,
	.put = directory_put,
	.drop = directory_drop,
	.list = directory_list,
};

static const char *const schemes[] = {"directory", NULL};

RECORD_DRIVER(baton_driver, adapter, .name = "directory", .schemes = schemes);
