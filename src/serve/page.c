/*
 * page.c: writes the page in shared memory. One writer: a lock on the file keeps a second one away.
 * It must never truncate the file: a reader that has it mapped would be killed.
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
	(void)snprintf(p->name, sizeof(p->name), "%s", name);
	(void)snprintf(p->id, sizeof(p->id), "%s", id);
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

bool page_open(const char *dir, const char *name, const char *id, void **page,
	       struct baton_error *err)
{
	char path[PAGE_PATH_MAX];
	struct writer *w = calloc(1, sizeof(*w));
	struct stat st;

	*page = NULL;
	if (w == NULL || page_path(dir, name, path) != 0) {
		free(w);
		return fail(err, dir, "has a path that is too long");
	}
	(void)mkdir(dir, 0755);
	w->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, PAGE_MODE);
	if (w->fd < 0) {
		free(w);
		return fail(err, path, strerror(errno));
	}
	bool is_ours = flock(w->fd, LOCK_EX | LOCK_NB) == 0;

	if (is_ours && fstat(w->fd, &st) == 0 &&
	    (st.st_size >= PAGE_SIZE_BYTES || ftruncate(w->fd, PAGE_SIZE_BYTES) == 0))
		w->page = map_page(w->fd);
	if (w->page == NULL || !fill_page(w->page, name, id)) {
		page_close(w);
		return fail(err, path,
			    is_ours ? "can't be written" : "is written by another baton serve");
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

	/* A grant that comes late is not a leadership any more. */
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
		(void)munmap(w->page, PAGE_SIZE_BYTES);
	}
	(void)close(w->fd);
	free(w);
}
