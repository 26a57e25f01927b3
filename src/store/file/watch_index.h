/*
 * watch_index.h: what the watch knows: which names are watched, by which number of the kernel,
 * which lease holds each, what is to be hinted at, and when to read which lease. Memory only, all
 * under store->base.lock; the system calls are in watch.c.
 */
#ifndef BATON_FILE_WATCH_INDEX_H
#define BATON_FILE_WATCH_INDEX_H

#include "store/file/file.h"

#pragma GCC visibility push(hidden)

#define WATCH_EVENTS_SIZE 16384

struct watch_holder {
	struct file_node node; /* by lease id */
	struct watch_entry *entries;
	uint64_t check_ns;   /* when to look at the lease; NEVER: it was hinted at */
	uint64_t closing_ns; /* until then its lock may be about to go */
	uint64_t ttl_ns;
	char id[BATON_LEASE_ID_MAX + 1];
};

struct watch_entry {
	struct file_node by_name;
	struct file_node by_wd; /* those that aren't watched have a key of their own */
	struct watch_holder *holder;
	struct watch_entry *prev; /* of the same holder */
	struct watch_entry *next;
	struct watch_entry *next_hint;
	uint64_t cookie;
	uint64_t highest;    /* the highest claim that we were told of */
	uint64_t last_pause; /* ... and pause */
	int wd;              /* -1: not watched (yet) */
	bool hinted;
	char name[];
};

struct file_watch {
	struct file_store *store;
	int wake;
	int inotify;
	int top_wd;
	int leases_wd;
	dev_t dev; /* the directory that is watched */
	ino_t ino;
	struct file_table names;
	struct file_table wds;
	struct file_table holders;
	struct watch_entry *first_hint;
	struct watch_entry *last_hint;
	bool all;
	bool limited; /* the system's limit is reached */
	uint64_t retry_ns;
	uint64_t complained_ns;
	uint64_t all_ns; /* when everything is hinted at next, while limited */
	_Alignas(8) char events[WATCH_EVENTS_SIZE];
};

int file_index_add(struct file_watch *w, const char *name, uint64_t cookie);
/* The number that nobody needs any more, or -1. */
int file_index_drop(struct file_watch *w, const char *name, uint64_t cookie);
void file_index_clear(struct file_watch *w);
/* Nothing is watched any more; all is to be hinted at. Takes the lock. */
void file_index_reset(struct file_watch *w);

/* Copies a name that is not watched. Takes the lock. */
bool file_index_next_pending(struct file_watch *w, char name[BATON_NAME_MAX + 1]);
void file_index_is_on(struct file_watch *w, const char *name, int wd);
void file_index_is_off(struct file_watch *w, struct watch_entry *e);
/* The first entry with this number, or the one after `e`. */
struct watch_entry *file_index_by_wd(const struct file_watch *w, int wd,
				     const struct watch_entry *e);

void file_index_hint(struct file_watch *w, struct watch_entry *e);
struct watch_entry *file_index_pop_hint(struct file_watch *w);

/* Hints at all that this lease holds. */
void file_index_hint_holder(struct file_watch *w, const char *id);
void file_index_recheck(struct file_watch *w, const char *id, uint64_t check_ns,
			uint64_t closing_ns);
/* Copies a lease that is to be looked at. Takes the lock. */
bool file_index_next_due(struct file_watch *w, uint64_t now_ns, char id[BATON_LEASE_ID_MAX + 1],
			 uint64_t *ttl_ns, uint64_t *closing_ns);
/* When something is to be done without an event. */
uint64_t file_index_next_ns(struct file_watch *w);

#pragma GCC visibility pop

#endif
