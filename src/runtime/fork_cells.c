/*
 * fork_cells.c: the deadlines, where a forked child reads zero. The pages are wiped by the kernel
 * in the child (MADV_WIPEONFORK), so that S10 costs baton_is_leader() nothing: asking for the pid
 * would cost six clock reads.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/runtime.h"

static struct fork_cells *new_page(struct baton *b);

int fork_cells_init(struct baton *b)
{
	struct fork_cells *c = new_page(b);

	if (c == NULL)
		return BATON_E_MEMORY;
	b->owner_cell = &c->page[0];
	atomic_store(b->owner_cell, 1);
	return 0;
}

static struct fork_cells *new_page(struct baton *b)
{
	struct fork_cells *c = calloc(1, sizeof(*c));
	size_t size = (size_t)sysconf(_SC_PAGESIZE);

	if (c == NULL)
		return NULL;
	void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED || madvise(page, size, MADV_WIPEONFORK) != 0) {
		if (page != MAP_FAILED)
			(void)munmap(page, size);
		free(c);
		return NULL;
	}
	c->page = page;
	c->used = 1;
	c->next = b->cells;
	b->cells = c;
	return c;
}

_Atomic uint64_t *fork_cells_new(struct baton *b)
{
	uint32_t room = (uint32_t)((size_t)sysconf(_SC_PAGESIZE) / sizeof(uint64_t));

	if (b->free_cell != NULL) { /* a freed cell holds the address of the next one */
		_Atomic uint64_t *cell = b->free_cell;

		b->free_cell = (_Atomic uint64_t *)(uintptr_t)atomic_load(cell);
		atomic_store(cell, 0);
		return cell;
	}
	if (b->cells->used == room && new_page(b) == NULL)
		return NULL;
	return &b->cells->page[b->cells->used++];
}

void fork_cells_free(struct baton *b, _Atomic uint64_t *cell)
{
	atomic_store(cell, (uint64_t)(uintptr_t)b->free_cell);
	b->free_cell = cell;
}

void fork_cells_done(struct baton *b)
{
	while (b->cells != NULL) {
		struct fork_cells *c = b->cells;

		b->cells = c->next;
		(void)munmap((void *)(uintptr_t)c->page, (size_t)sysconf(_SC_PAGESIZE));
		free(c);
	}
}

bool fork_cells_forked(const struct baton *b)
{
	return atomic_load_explicit(b->owner_cell, memory_order_relaxed) == 0;
}
