/*
 * rig.h: a file store in a directory of its own, driven through the driver's table of functions,
 * with as few words as a test can do with.
 */
#ifndef BATON_TEST_STORE_RIG_H
#define BATON_TEST_STORE_RIG_H

#include <baton-store.h>

extern const struct baton_driver baton_file_driver;

/* One candidate: a store handle with its lanes and, once opened, a lease. */
struct rig {
	void *store;
	void *renew;
	void *campaign;
	void *watch;
	struct baton_call call;
	struct baton_lease lease;
	struct baton_record record; /* of the last campaign or observation */
	uint64_t nonce;             /* of the last campaign */
	uint64_t term;
	char owner[BATON_NAME_MAX + 1];
};

/* A new directory on a file system that the driver takes. */
void rig_make_dir(char *path, size_t size);
void rig_remove_dir(const char *path);

/* Aborts the program where nothing can go wrong. options: "" or "?history=2" or the like. */
void rig_open(struct rig *r, const char *dir, const char *options, const char *owner);
void rig_close(struct rig *r);
/* The call to use next: with this many milliseconds. */
struct baton_call *rig_call(struct rig *r, uint64_t ms);

/* Each returns the outcome. */
int rig_lease(struct rig *r, uint64_t ttl_ms);
int rig_renew(struct rig *r, uint32_t *n_held);
int rig_lease_close(struct rig *r);
int rig_campaign(struct rig *r, const char *name, uint64_t floor);
int rig_release(struct rig *r, const char *name, const char *reserve_for, uint64_t hold_ms);
int rig_observe(struct rig *r, const char *name);
int rig_pause(struct rig *r, const char *name, bool paused);
int rig_publish(struct rig *r, const char *name, uint32_t score, bool is_healthy,
		const char *metadata);
/* How many claims the store finds on the lease, or -1. */
int rig_claims(struct rig *r);
/* Waits for a hint with this cookie. False: none came in time. */
bool rig_hinted(struct rig *r, uint64_t cookie, uint64_t ms);

/* Waits on the boot clock for this instant. */
void rig_wait_until(uint64_t boot_ns);
/* Makes a file, or all in a folder, so old that a sweeper takes it. */
void rig_age(const char *dir, const char *path);
/* How many entries a folder has; -1: there is none. */
int rig_count(const char *dir, const char *folder);

#endif
