/*
 * driver.c: the file store as a driver: its URL, its lanes, its table of functions. The idea and
 * the layout stand in file.h, the protocol in campaign.c, lease.c and expiry.c.
 *
 *     file:/var/lib/myapp?mode=0770&history=50
 *
 * mode     who may take part, as of chmod; 0700 unless it says otherwise
 * history  how many claims of an election are kept; 100
 * force    1: use a file system that is not on the list, at one's own risk
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/url.h"
#include "store/file/file.h"

#define SCAN_SIZE ((size_t)32 * 1024)
#define HISTORY_MAX 10000

static int parse_url(struct file_store *store, const char *text, struct baton_error *err);
static int parse_path(struct file_store *store, const struct url *url, struct baton_error *err);
static int parse_options(struct file_store *store, struct url_part query, struct baton_error *err);

/* ---- the store ---- */

static void close_store(void *s)
{
	struct file_store *store = s;

	if (store == NULL)
		return;
	while (store->owns != NULL) {
		struct file_own *own = store->owns;

		/* Whoever closes without giving back dies for the others: the lock says so. */
		store->owns = own->next;
		if (own->alive >= 0)
			(void)close(own->alive);
		file_root_drop(store, own->root);
		free(own);
	}
	for (struct file_node *node; (node = file_table_pop(&store->held)) != NULL;)
		free(file_container(node, struct file_held, node));
	file_table_done(&store->held);
	file_root_drop(store, store->root);
	store_base_done(&store->base);
	free(store->path);
	free(store);
}

static int open_store(const struct baton_store_config *config, void **out, struct baton_error *err)
{
	struct file_store *store = calloc(1, sizeof(*store));

	*out = NULL;
	if (store == NULL || store_base_init(&store->base) != 0) {
		free(store);
		store_fail(err, BATON_E_MEMORY, "no memory for a store");
		return BATON_E_MEMORY;
	}
	store->mode = 0700;
	store->history = 100;
	if (getrandom(&store->random, sizeof(store->random), 0) != (ssize_t)sizeof(store->random))
		store->random = clock_boot_ns() ^ (uint64_t)getpid() << 40;
	int code = parse_url(store, config->url, err);

	if (code != BATON_OK) {
		close_store(store);
		return code;
	}
	*out = store;
	return BATON_OK;
}

static int parse_url(struct file_store *store, const char *text, struct baton_error *err)
{
	struct url url;

	if (!url_split(text, &url)) {
		/* Not what it was: whoever mistakes the scheme may have put a password in it. */
		store_fail(err, BATON_E_URL, "that is no URL; say file:/path/to/directory");
		return BATON_E_URL;
	}
	int code = parse_path(store, &url, err);

	return code != BATON_OK ? code : parse_options(store, url.query, err);
}

/* Absolute from here on: the program may change its directory. */
static int parse_path(struct file_store *store, const struct url *url, struct baton_error *err)
{
	char path[4096];
	bool local = !url->has_authority || url->authority.n == 0 ||
		     (url->authority.n == 9 && memcmp(url->authority.at, "localhost", 9) == 0);

	if (!local || url->path.n == 0 || !url_decode(url->path, path, sizeof(path))) {
		store_fail(
			err, BATON_E_URL,
			"a file store needs a directory of this machine: file:/path/to/directory");
		return BATON_E_URL;
	}
	for (size_t n = strlen(path); n > 1 && path[n - 1] == '/'; n--)
		path[n - 1] = '\0';
	char *here = path[0] == '/' ? NULL : getcwd(NULL, 0);
	size_t size = (here != NULL ? strlen(here) : 0) + strlen(path) + 2;

	if (path[0] != '/' && here == NULL) {
		store_fail(err, BATON_E_SYSTEM, "there is no working directory; use a full path");
		return BATON_E_SYSTEM;
	}
	store->path = malloc(size);
	if (store->path != NULL)
		(void)snprintf(store->path, size, "%s%s%s", here != NULL ? here : "",
			       here != NULL ? "/" : "", path);
	free(here);
	if (store->path != NULL)
		return BATON_OK;
	store_fail(err, BATON_E_MEMORY, "no memory for a store");
	return BATON_E_MEMORY;
}

static bool parse_number(const char *text, int base, unsigned long max, unsigned long *out)
{
	char *end;

	if (text[0] < '0' || text[0] > '9' || strlen(text) > 8)
		return false;
	*out = strtoul(text, &end, base);
	return *end == '\0' && *out <= max;
}

static bool parse_option(struct file_store *store, const char *key, const char *value)
{
	unsigned long number;

	if (strcmp(key, "mode") == 0 && parse_number(value, 8, 0777, &number) &&
	    (number & 0700) == 0700) {
		store->mode = (mode_t)number;
		return true;
	}
	if (strcmp(key, "history") == 0 && parse_number(value, 10, HISTORY_MAX, &number) &&
	    number > 0) {
		store->history = number;
		return true;
	}
	if (strcmp(key, "force") == 0 && parse_number(value, 10, 1, &number)) {
		store->force = number == 1;
		return true;
	}
	return false;
}

static int parse_options(struct file_store *store, struct url_part query, struct baton_error *err)
{
	char key[32];
	char value[32];
	int got;

	while ((got = url_next_option(&query, key, sizeof(key), value, sizeof(value))) == 1) {
		if (parse_option(store, key, value))
			continue;
		store_fail(
			err, BATON_E_URL,
			"\"%s\" is no option of a file store, or its value isn't right; there are "
			"mode (octal, at least 0700), history (1 to %d) and force (0 or 1)",
			key, HISTORY_MAX);
		return BATON_E_URL;
	}
	if (got == 0)
		return BATON_OK;
	store_fail(err, BATON_E_URL, "the options of a file store are written key=value&key=value");
	return BATON_E_URL;
}

static const struct baton_traits *traits_of(const void *store)
{
	static const struct baton_traits traits = {
		.min_lease_ns = 100 * CLOCK_NS_PER_MS,
		.pushes = true,
		.proves_death = true,
		.keeps_history = true,
		.promises =
			"One host: all candidates must share one kernel and one directory on a "
			"local file system. Exclusion and growing terms hold whatever the "
			"processes do: killed or stopped anywhere, crashed or suspended host. A "
			"dead leader is replaced at once, a frozen one when its lease has expired. "
			"Terms are on the disk before anybody leads; on tmpfs they end with the "
			"boot. It doesn't hold if files of the directory are removed or restored "
			"by hand, if the disk loses what it has synced, or on a shared file system "
			"that was forced.",
	};

	(void)store;
	return &traits;
}

/* ---- lanes ---- */

static int open_lane(void *s, int kind, void **out, struct baton_error *err)
{
	struct file_store *store = s;
	struct file_lane *lane = calloc(1, sizeof(*lane));

	*out = NULL;
	if (lane != NULL) {
		lane->store = store;
		lane->scan_size = SCAN_SIZE;
		lane->scan = malloc(SCAN_SIZE);
	}
	if (lane == NULL || lane->scan == NULL) {
		free(lane);
		store_fail(err, BATON_E_MEMORY, "no memory for a lane");
		return BATON_E_MEMORY;
	}
	int code = kind == BATON_LANE_WATCH ? file_watch_new(lane, err) : BATON_OK;

	if (code != BATON_OK) {
		free(lane->scan);
		free(lane);
		return code;
	}
	if (lane->watch != NULL) {
		store_lock(&store->base);
		store->watch = lane->watch;
		store_unlock(&store->base);
	}
	store_lane_add(&store->base, &lane->link);
	*out = lane;
	return BATON_OK;
}

static void close_lane(void *l)
{
	struct file_lane *lane = l;

	if (lane == NULL)
		return;
	struct file_store *store = lane->store;

	store_lane_remove(&store->base, &lane->link);
	store_lock(&store->base);
	if (store->watch == lane->watch)
		store->watch = NULL;
	store_unlock(&store->base);
	file_watch_free(lane);
	free(lane->scan);
	free(lane);
}

static void close_root(struct file_root *root)
{
	int *fds[] = {&root->dir, &root->leases, &root->elections, &root->tmp};

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		if (*fds[i] >= 0)
			(void)close(*fds[i]);
		*fds[i] = -1;
	}
}

/* S10: in the child. Another thread may have held any lock when it forked: none is taken. */
static void forget(void *s)
{
	struct file_store *store = s;

	store->base.forgotten = true;
	for (struct file_own *own = store->owns; own != NULL; own = own->next) {
		if (own->alive >= 0)
			(void)close(own->alive);
		own->alive = -1;
		close_root(own->root);
	}
	if (store->root != NULL)
		close_root(store->root);
	for (struct store_lane *at = store->base.lanes; at != NULL; at = at->next) {
		struct file_lane *lane = (struct file_lane *)at;

		file_watch_forget(lane);
		if (lane->root != NULL)
			close_root(lane->root);
	}
}

/* The descriptor on it must not be one of ours: see src/cli/worklock.c, which takes it. */
static int work_lock(const void *s, const char *name, char *path, size_t size, uint32_t *mode,
		     struct baton_error *err)
{
	const struct file_store *store = s;
	char folder[FILE_PATH_SIZE];

	file_path_of(name, folder);
	int n = snprintf(path, size, "%s/elections/%s/work", store->path, folder);

	if (n < 0 || (size_t)n >= size) {
		store_fail(err, BATON_E_INVALID, "the path of the work lock doesn't fit");
		return BATON_E_INVALID;
	}
	*mode = (uint32_t)file_mode(store);
	return BATON_OK;
}

static const char *const schemes[] = {"file", NULL};

const struct baton_driver baton_file_driver = {
	.abi = BATON_STORE_ABI,
	.name = "file",
	.schemes = schemes,
	.open = open_store,
	.close = close_store,
	.traits = traits_of,
	.lane_open = open_lane,
	.lane_close = close_lane,
	.forget = forget,
	.lease_open = file_lease_open,
	.lease_renew = file_lease_renew,
	.lease_close = file_lease_close,
	.claims = file_claims,
	.campaign = file_campaign,
	.release = file_release,
	.observe = file_observe,
	.watch_add = file_watch_add,
	.watch_remove = file_watch_remove,
	.watch_wait = file_watch_wait,
	.watch_wake = file_watch_wake,
	.publish = file_publish,
	.withdraw = file_withdraw,
	.candidates = file_candidates,
	.order = file_order,
	.pause = file_pause,
	.history = file_history,
	.work_lock = work_lock,
	.examine = file_examine,
};
