/* rig.c: see rig.h. */
#include "store/rig.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

static void demand(bool fact, const char *what)
{
	if (fact)
		return;
	(void)fprintf(stderr, "rig: %s: %s\n", what, strerror(errno));
	abort();
}

/* ---- directories ---- */

void rig_make_dir(char *path, size_t size)
{
	const char *base = getenv("TMPDIR");
	struct statfs fs;

	if (base == NULL)
		base = "/tmp";
	/* Where even that is on an overlay, shared memory is a file system that counts. */
	if (statfs(base, &fs) != 0 || ((unsigned long)fs.f_type & 0xffffffffu) == 0x794c7630)
		base = "/dev/shm";
	(void)snprintf(path, size, "%s/baton-store-XXXXXX", base);
	demand(mkdtemp(path) != NULL, path);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	(void)st;
	(void)kind;
	(void)ftw;
	return remove(path);
}

void rig_remove_dir(const char *path)
{
	(void)nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static int age_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	const struct timespec old[2] = {{.tv_sec = 1}, {.tv_sec = 1}};

	(void)st;
	(void)kind;
	(void)ftw;
	return utimensat(AT_FDCWD, path, old, AT_SYMLINK_NOFOLLOW);
}

void rig_age(const char *dir, const char *path)
{
	char full[4096];

	(void)snprintf(full, sizeof(full), "%s/%s", dir, path);
	demand(nftw(full, age_one, 16, FTW_PHYS) == 0, full);
}

int rig_count(const char *dir, const char *folder)
{
	char path[4096];
	int n = 0;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, folder);
	DIR *stream = opendir(path);

	if (stream == NULL)
		return -1;
	for (struct dirent *e; (e = readdir(stream)) != NULL;)
		n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
	(void)closedir(stream);
	return n;
}

/* ---- the candidate ---- */

void rig_open(struct rig *r, const char *dir, const char *options, const char *owner)
{
	char url[4200];
	struct baton_error err;
	struct baton_store_config config = {.size = sizeof(config), .url = url};
	uint64_t random[2];

	memset(r, 0, sizeof(*r));
	(void)snprintf(url, sizeof(url), "file:%s%s", dir, options);
	demand(baton_file_driver.open(&config, &r->store, &err) == BATON_OK, "open");
	demand(baton_file_driver.lane_open(r->store, BATON_LANE_RENEW, &r->renew, &err) == 0 &&
		       baton_file_driver.lane_open(r->store, BATON_LANE_CAMPAIGN, &r->campaign,
						   &err) == 0 &&
		       baton_file_driver.lane_open(r->store, BATON_LANE_WATCH, &r->watch, &err) ==
			       0,
	       "lanes");
	demand(getrandom(random, sizeof(random), 0) == (ssize_t)sizeof(random), "random");
	(void)snprintf(r->lease.id, sizeof(r->lease.id), "%016llx-%016llx",
		       (unsigned long long)random[0], (unsigned long long)random[1]);
	(void)snprintf(r->owner, sizeof(r->owner), "%s", owner);
	r->lease.owner = r->owner;
	r->lease.address = "here:1";
	r->nonce = random[0] >> 1;
}

void rig_close(struct rig *r)
{
	baton_file_driver.lane_close(r->renew);
	baton_file_driver.lane_close(r->campaign);
	baton_file_driver.lane_close(r->watch);
	baton_file_driver.close(r->store);
	r->store = NULL;
}

struct baton_call *rig_call(struct rig *r, uint64_t ms)
{
	memset(&r->call, 0, sizeof(r->call));
	r->call.deadline_ns = clock_boot_ns() + ms * CLOCK_NS_PER_MS;
	return &r->call;
}

int rig_lease(struct rig *r, uint64_t ttl_ms)
{
	r->lease.ttl_ns = ttl_ms * CLOCK_NS_PER_MS;
	return baton_file_driver.lease_open(r->renew, rig_call(r, 5000), &r->lease);
}

int rig_renew(struct rig *r, uint32_t *n_held)
{
	return baton_file_driver.lease_renew(r->renew, rig_call(r, 5000), &r->lease, n_held);
}

int rig_lease_close(struct rig *r)
{
	return baton_file_driver.lease_close(r->renew, rig_call(r, 5000), &r->lease);
}

int rig_campaign(struct rig *r, const char *name, uint64_t floor)
{
	struct baton_campaign c = {
		.name = name,
		.nonce = ++r->nonce,
		.floor = floor,
		.profile = {.metadata = "of the claim", .priority = 3, .score_permille = 900},
		.record = &r->record,
	};

	baton_file_driver.campaign(r->campaign, rig_call(r, 5000), &r->lease, &c, 1);
	if (c.outcome == BATON_OUTCOME_OK)
		r->term = c.term;
	return c.outcome;
}

int rig_release(struct rig *r, const char *name, const char *reserve_for, uint64_t hold_ms)
{
	struct baton_release release = {
		.name = name,
		.lease_id = r->lease.id,
		.nonce = r->nonce,
		.term = r->term,
		.reason = "resigned",
		.reserve_for = reserve_for,
		.hold_ns = hold_ms * CLOCK_NS_PER_MS,
	};

	baton_file_driver.release(r->campaign, rig_call(r, 5000), &release, 1);
	return release.outcome;
}

int rig_observe(struct rig *r, const char *name)
{
	struct baton_observation o = {
		.name = name, .lease_id = r->lease.id, .id = r->owner, .record = &r->record};

	baton_file_driver.observe(r->campaign, rig_call(r, 5000), &o, 1);
	return o.outcome;
}

int rig_pause(struct rig *r, const char *name, bool paused)
{
	return baton_file_driver.pause(r->campaign, rig_call(r, 5000), name, paused);
}

int rig_publish(struct rig *r, const char *name, uint32_t score, bool is_healthy,
		const char *metadata)
{
	struct baton_publication p = {
		.name = name,
		.profile = {.metadata = metadata,
			    .priority = 7,
			    .score_permille = score,
			    .is_healthy = is_healthy},
	};

	baton_file_driver.publish(r->campaign, rig_call(r, 5000), &r->lease, &p, 1);
	return p.outcome;
}

static void count_claim(void *arg, const char *name, uint64_t nonce, uint64_t term)
{
	(void)name;
	(void)nonce;
	(void)term;
	(*(int *)arg)++;
}

int rig_claims(struct rig *r)
{
	int n = 0;

	if (baton_file_driver.claims(r->campaign, rig_call(r, 5000), &r->lease, count_claim, &n) !=
	    BATON_OUTCOME_OK)
		return -1;
	return n;
}

bool rig_hinted(struct rig *r, uint64_t cookie, uint64_t ms)
{
	uint64_t cookies[64];
	struct baton_call *call = rig_call(r, ms);

	while (clock_boot_ns() < call->deadline_ns) {
		int n = baton_file_driver.watch_wait(r->watch, call, cookies, 64);

		for (int i = 0; i < n; i++)
			if (cookies[i] == cookie || cookies[i] == BATON_HINT_ALL)
				return true;
	}
	return false;
}

void rig_wait_until(uint64_t boot_ns)
{
	for (uint64_t now_ns = clock_boot_ns(); now_ns < boot_ns; now_ns = clock_boot_ns()) {
		uint64_t left_ns = boot_ns - now_ns;
		struct timespec left = {.tv_sec = (time_t)(left_ns / CLOCK_NS_PER_S),
					.tv_nsec = (long)(left_ns % CLOCK_NS_PER_S)};

		(void)ppoll(NULL, 0, &left, NULL);
	}
}
