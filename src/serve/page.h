/* page.h: the writer of the page in shared memory (base/page.h). All take NULL: no page. */
#ifndef BATON_SERVE_PAGE_H
#define BATON_SERVE_PAGE_H

#include <baton.h>

/* False: err says why. */
bool page_open(const char *dir, const char *name, const char *id, void **page,
	       struct baton_error *err);
void page_became(void *page, uint64_t term, int64_t deadline_ns, int64_t end_ns);
void page_renewed(void *page, int64_t deadline_ns, int64_t end_ns);
void page_lost(void *page);
void page_close(void *page);

#endif
