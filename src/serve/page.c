/*
 * page.c: writes the page in shared memory. One writer: a lock on the file keeps a second one away.
 * It must never truncate the file: a reader that has it mapped would be killed. Nor may it count by
 * another clock than the one that a reader has compared its own with: then it takes a new file.
 */
#include "serve/page.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/page.h"

#define PAGE_MODE 0644
#define TRIES 5

struct writer {
	struct page *page;
	int fd;
};

static bool fail(struct baton_error *err, const char *path, const char *words)
{
	err->code = BATON_E_SYSTEM;
	(void)snprintf(err->text, sizeof(err->text), "the page %.150s %s", path, words);
	return false;
}

static struct page *map_page(int fd)
{
	void *at = mmap(NULL, PAGE_SIZE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return at != MAP_FAILED ? at : NULL;
}

/* No reader takes the page for ours before the magic is there. */
static bool fill_page(struct page *p, const char *name, const char *id)
{
	atomic_store(&p->deadline_boot_ns, 0);
	p->layout = PAGE_LAYOUT;
	page_put_names(p, name, id);
	if (page_clock(p->boot_id, &p->time_namespace) != 0)
		return false;
	atomic_store(&p->state, 1);
	(void)memcpy(p->magic, PAGE_MAGIC, sizeof(p->magic));
	return true;
}

/* The words are in the file, where readers find them; while nothing is written, our own map of it
 * needs no memory. There may be thousands of pages. */
static void rest(const struct writer *w)
{
	(void)madvise(w->page, PAGE_SIZE_BYTES, MADV_DONTNEED);
}

/* Whether readers that may have the file mapped count by our clock. If not, this page is their
 * last: it shows no leader, and the next page is another file. */
static bool counts_alike(struct page *p)
{
	char boot_id[sizeof(p->boot_id)];
	uint64_t time_namespace;

	if (memcmp(p->magic, PAGE_MAGIC, sizeof(p->magic)) != 0)
		return true;
	if (page_clock(boot_id, &time_namespace) == 0 && p->time_namespace == time_namespace &&
	    memcmp(p->boot_id, boot_id, sizeof(boot_id)) == 0)
		return true;
	atomic_store(&p->deadline_boot_ns, 0);
	atomic_store(&p->state, 0);
	return false;
}

enum taken { TAKEN, NOT_TAKEN, ANOTHER_FILE };

/* Locks and maps the file that is there, or is made. errno says why it was not taken; 0: it has
 * another writer. */
static int take_file(struct writer *w, const char *path)
{
	struct stat st;
	struct stat there;

	w->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, PAGE_MODE);
	if (w->fd < 0)
		return NOT_TAKEN;
	if (flock(w->fd, LOCK_EX | LOCK_NB) != 0) {
		errno = 0;
		return NOT_TAKEN;
	}
	if (fstat(w->fd, &st) != 0 || stat(path, &there) != 0)
		return NOT_TAKEN;
	if (there.st_ino != st.st_ino || there.st_dev != st.st_dev)
		return ANOTHER_FILE; /* put aside meanwhile */
	if (st.st_size < PAGE_SIZE_BYTES && ftruncate(w->fd, PAGE_SIZE_BYTES) != 0)
		return NOT_TAKEN;
	w->page = map_page(w->fd);
	if (w->page == NULL)
		return NOT_TAKEN;
	if (counts_alike(w->page))
		return TAKEN;
	return unlink(path) == 0 ? ANOTHER_FILE : NOT_TAKEN;
}

static void drop_file(struct writer *w)
{
	if (w->page != NULL)
		(void)munmap(w->page, PAGE_SIZE_BYTES);
	if (w->fd >= 0)
		(void)close(w->fd);
	w->page = NULL;
}

bool page_open(const char *dir, const char *name, const char *id, void **page,
	       struct baton_error *err)
{
	char path[PAGE_PATH_MAX];
	struct writer *w = calloc(1, sizeof(*w));

	*page = NULL;
	if (w == NULL || page_path(dir, name, path) != 0) {
		free(w);
		return fail(err, dir, "has a path that is too long");
	}
	(void)mkdir(dir, 0755);
	int taken = take_file(w, path);

	for (int i = 0; i < TRIES && taken == ANOTHER_FILE; i++) {
		drop_file(w);
		taken = take_file(w, path);
	}
	if (taken != TAKEN || !fill_page(w->page, name, id)) {
		int error = errno;

		page_close(w);
		return fail(err, path,
			    error == 0 ? "is written by another baton serve" : strerror(error));
	}
	rest(w);
	*page = w;
	return true;
}

void page_became(void *page, uint64_t term, int64_t deadline_ns, int64_t end_ns)
{
	struct writer *w = page;

	if (w == NULL)
		return;
	atomic_store(&w->page->deadline_boot_ns, 0);
	atomic_store(&w->page->term, term);
	atomic_store(&w->page->end_boot_ns, end_ns);
	(void)atomic_fetch_add(&w->page->changes, 1);
	atomic_store(&w->page->deadline_boot_ns, deadline_ns);
	rest(w);
}

void page_renewed(void *page, int64_t deadline_ns, int64_t end_ns)
{
	struct writer *w = page;

	/* A grant that comes late is no longer a leadership. */
	if (w == NULL || atomic_load(&w->page->deadline_boot_ns) == 0)
		return;
	atomic_store(&w->page->end_boot_ns, end_ns);
	atomic_store(&w->page->deadline_boot_ns, deadline_ns);
	rest(w);
}

void page_lost(void *page)
{
	struct writer *w = page;

	if (w != NULL)
		atomic_store(&w->page->deadline_boot_ns, 0);
}

void page_close(void *page)
{
	struct writer *w = page;

	if (w == NULL)
		return;
	if (w->page != NULL) {
		atomic_store(&w->page->deadline_boot_ns, 0);
		atomic_store(&w->page->state, 0);
	}
	drop_file(w);
	free(w);
}
