/*
 * page.c: reads the page in shared memory that `baton serve` writes: whether its candidate leads,
 * without a call to any process. It must never say yes for a page of another boot, of other clocks,
 * or of another election.
 */
#include <baton.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/page.h"

struct baton_page {
	const struct page *at;
};

static int fail(struct baton_error *err, int code, const char *path, const char *words)
{
	if (err != NULL) {
		err->code = code;
		(void)snprintf(err->text, sizeof(err->text), "the page %.150s %s", path, words);
	}
	return code;
}

/* NULL, or what is wrong. */
static const char *examine_page(const struct page *p, const char *name)
{
	char own_name[PAGE_WORD_MAX];
	char id[PAGE_WORD_MAX];
	char boot_id[16];
	uint64_t time_namespace;

	if (memcmp(p->magic, PAGE_MAGIC, sizeof(p->magic)) != 0 || p->layout != PAGE_LAYOUT)
		return "is not one that this library can read";
	if (page_get_names(p, own_name, id) != 0)
		return "was left by a baton serve that died while it wrote the names";
	if (strcmp(own_name, name) != 0)
		return "belongs to another election";
	if (page_clock(boot_id, &time_namespace) != 0 ||
	    memcmp(boot_id, p->boot_id, sizeof(boot_id)) != 0 ||
	    time_namespace != p->time_namespace)
		return "counts by another clock: of an earlier boot, or of another host";
	return NULL;
}

static const struct page *map_page(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *at = MAP_FAILED;

	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) == 0 && st.st_size >= PAGE_SIZE_BYTES)
		at = mmap(NULL, PAGE_SIZE_BYTES, PROT_READ, MAP_SHARED, fd, 0);
	else
		errno = EINVAL;
	int error = errno;

	(void)close(fd);
	errno = error;
	return at != MAP_FAILED ? at : NULL;
}

int baton_page_open(const char *dir, const char *name, struct baton_page **out,
		    struct baton_error *err)
{
	char path[PAGE_PATH_MAX];
	char own[PAGE_PATH_MAX];
	struct baton_page *page;

	if (out != NULL)
		*out = NULL;
	if (name == NULL || out == NULL)
		return fail(err, BATON_E_INVALID, "", "needs a name");
	page_default_dir(own);
	if (page_path(dir != NULL ? dir : own, name, path) != 0)
		return fail(err, BATON_E_INVALID, name, "has a path that is too long");
	page = calloc(1, sizeof(*page));
	if (page == NULL)
		return fail(err, BATON_E_MEMORY, path, "can't be read: no memory");
	page->at = map_page(path);
	const char *wrong = page->at != NULL ? examine_page(page->at, name) : strerror(errno);

	if (wrong != NULL) {
		int code = page->at != NULL ? BATON_E_CORRUPT : BATON_E_SYSTEM;

		baton_page_close(page);
		return fail(err, code, path, wrong);
	}
	*out = page;
	return BATON_OK;
}

uint64_t baton_page_term(const struct baton_page *page)
{
	uint64_t term = page != NULL ? atomic_load(&page->at->term) : 0;

	if (term == 0)
		return 0;
	int64_t deadline_ns = atomic_load(&page->at->deadline_boot_ns);
	bool leads = atomic_load(&page->at->term) == term && (int64_t)clock_boot_ns() < deadline_ns;

	return leads ? term : 0;
}

bool baton_page_leads(const struct baton_page *page)
{
	return baton_page_term(page) != 0;
}

void baton_page_close(struct baton_page *page)
{
	if (page == NULL)
		return;
	if (page->at != NULL)
		(void)munmap((void *)(uintptr_t)page->at, PAGE_SIZE_BYTES);
	free(page);
}
