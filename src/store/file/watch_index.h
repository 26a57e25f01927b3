/*
 * watch_index.h: what the watch knows: which names are watched, and by which number of the kernel;
 * which lease holds each name; which hints are due; and when to read which lease. All of it is in
 * memory, under store->base.lock. The system calls are in watch.c.
 */
#ifndef BATON_FILE_WATCH_INDEX_H
#define BATON_FILE_WATCH_INDEX_H

#include "store/file/file.h"
#include "store/watch_index.h"

#pragma GCC visibility push(hidden)

#define WATCH_EVENTS_SIZE 16384

struct watch_holder {
	struct name_node node; /* by lease id */
	LIST_HEAD(watch_entries, watch_entry) entries;
	uint64_t check_ns;   /* when to look at the lease; NEVER: its hints were given */
	uint64_t closing_ns; /* until then its lock may be about to be freed */
	uint64_t ttl_ns;
	char id[BATON_LEASE_ID_MAX + 1];
};

struct watch_entry {
	struct watched watched;
	struct name_node by_wd;              /* in `wds`, while it is watched */
	TAILQ_ENTRY(watch_entry) of_pending; /* in `pending`, while it is not watched (yet) */
	struct watch_holder *holder;
	LIST_ENTRY(watch_entry) of_holder;
	uint64_t highest;    /* the highest claim that we were told of */
	uint64_t last_pause; /* ... the last pause, likewise */
	int wd;              /* -1: not watched (yet) */
	char wd_text[16];
};

struct file_watch {
	struct file_store *store;
	int wake;
	int inotify;
	int top_wd;
	int leases_wd;
	dev_t dev; /* the directory that is watched, with `ino` */
	ino_t ino;
	struct watch_index names; /* of struct watch_entry */
	TAILQ_HEAD(watch_pending, watch_entry) pending;
	struct name_table wds;     /* of struct watch_entry, by the kernel's number */
	struct name_table holders; /* of struct watch_holder */
	bool all;
	bool limited; /* a limit of the system is reached */
	uint64_t retry_ns;
	uint64_t complained_ns;
	uint64_t all_ns; /* while limited: when all watchers get a hint next */
	_Alignas(8) char events[WATCH_EVENTS_SIZE];
};

/* 0, or -1: no memory. */
int file_index_init(struct file_watch *w);
int file_index_add(struct file_watch *w, const char *name, uint64_t cookie);
/* Returns the kernel's number if no watcher needs it any longer, else -1. */
int file_index_drop(struct file_watch *w, const char *name, uint64_t cookie);
void file_index_clear(struct file_watch *w);
/* Notes that all watches have ended, and gives all watchers a hint. Takes the lock. */
void file_index_reset(struct file_watch *w);

/* Copies a name that is to be watched, but isn't yet. Takes the lock. */
bool file_index_next_pending(struct file_watch *w, char name[BATON_NAME_MAX + 1]);
void file_index_is_on(struct file_watch *w, const char *name, int wd);
void file_index_is_off(struct file_watch *w, struct watch_entry *e);
/* The first entry with this number, or the one after `e`. */
struct watch_entry *file_index_by_wd(const struct file_watch *w, int wd,
				     const struct watch_entry *e);

/* Gives a hint for all elections that this lease holds. */
void file_index_hint_holder(struct file_watch *w, const char *id);
void file_index_recheck(struct file_watch *w, const char *id, uint64_t check_ns,
			uint64_t closing_ns);
/* Copies a lease that must be looked at now. Takes the lock. */
bool file_index_next_due(struct file_watch *w, uint64_t now_ns, char id[BATON_LEASE_ID_MAX + 1],
			 uint64_t *ttl_ns, uint64_t *closing_ns);
/* When there is something to do even without an event. */
uint64_t file_index_next_ns(struct file_watch *w);

#pragma GCC visibility pop

#endif
