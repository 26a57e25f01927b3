/*
 * page.h: the page in shared memory by which any process of a host knows whether the candidate of a
 * `baton serve` leads: 4 KiB in a file, one writer, any number of readers, no lock.
 *
 * The writer stores deadline 0, term, deadline when it became leader, the deadline at a renewal,
 * and 0 at the loss. A reader loads term, deadline, term: it leads if both terms are the same and
 * the clock has not reached the deadline. So no reader ever combines a deadline with another term.
 *
 * The names change when another `baton serve` takes the page over. They stand under a sequence
 * lock: their number is odd while they are written, and another one afterwards.
 */
#ifndef BATON_PAGE_H
#define BATON_PAGE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

#define PAGE_SIZE_BYTES 4096
#define PAGE_MAGIC "BATONPG\n"
#define PAGE_LAYOUT 1
#define PAGE_PATH_MAX 4096
#define PAGE_WORD_MAX 256

struct page {
	char magic[8];
	uint64_t layout;
	char boot_id[16];
	uint64_t time_namespace; /* clocks of another one can't be compared */
	_Atomic uint64_t term;
	_Atomic int64_t deadline_boot_ns;
	_Atomic int64_t end_boot_ns;
	_Atomic uint64_t changes;                 /* leaderships so far */
	_Atomic uint64_t state;                   /* 0 closed, 1 open */
	_Atomic uint64_t name[PAGE_WORD_MAX / 8]; /* bytes, with a zero byte behind them */
	_Atomic uint64_t id[PAGE_WORD_MAX / 8];
	_Atomic uint64_t names; /* the number of the sequence lock */
};

/* Where the page of an election is. 0, or -1: the path is too long. */
int page_path(const char *dir, const char *name, char path[PAGE_PATH_MAX]);
/* The folder that is meant where none is named: /run/baton, or one's own below XDG_RUNTIME_DIR. */
void page_default_dir(char dir[PAGE_PATH_MAX]);
/* What identifies the clock: 0, or -1 where the system doesn't tell. */
int page_clock(char boot_id[16], uint64_t *time_namespace);
/* One writer. Longer names are cut. */
void page_put_names(struct page *p, const char *name, const char *id);
/* Both as they were at one instant. 0, or -1: a writer has begun and doesn't end. */
int page_get_names(const struct page *p, char name[PAGE_WORD_MAX], char id[PAGE_WORD_MAX]);

#pragma GCC visibility pop

#endif
