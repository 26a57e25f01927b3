/* lib.h: what the public functions share: check, copy, delegate to the runtime. */
#ifndef BATON_LIB_H
#define BATON_LIB_H

#include "lib/first.h"
#include "runtime/runtime.h"

/* Fills in err, if there is one, and returns the code. */
int lib_fail(struct baton_error *err, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Structs that the caller may know in another size than we do. */
void lib_init_sized(void *to, size_t size, const void *from, size_t known);
/* Copies what the caller's struct has; the rest of *to keeps its defaults. The least size is that
 * of the struct's first version. */
int lib_take_sized(void *to, size_t known, size_t least, const void *from, size_t size,
		   struct baton_error *err);

/* BATON_OK, or why this handle can't be used: NULL, or of the parent process. */
int lib_check(const struct baton *b);

/* Posts an event of that kind to the election's core, and doesn't wait for it. */
int lib_post(struct baton_election *e, uint8_t kind);

/* Whether the election leads now. *term: in which term, if it does. */
bool lib_leads(const struct baton_election *e, uint64_t *term);

/* drivers.c: the driver for a URL's scheme, compiled in or loaded; NULL: err says why. */
const struct baton_driver *drivers_find(const char *url, void **library, struct baton_error *err);

/* The table of a driver that may be older than we: what it doesn't have is zero. */
void drivers_copy(const struct baton_driver *d, struct baton_driver *out);
void drivers_copy_traits(const struct baton_traits *t, struct baton_traits *out);

/* Makes threads and lanes, when the first election is made; does nothing when they are there. */
int lib_start(struct baton *b, struct baton_error *err);

/* Takes the lane for calls that block, which all callers share; and gives it back. */
int lib_lane(struct baton *b, void **lane, struct baton_call *call, struct baton_error *err);
void lib_lane_done(struct baton *b);

/* Fills in as much of a struct that starts with its size as the caller knows. */
void lib_give_sized(void *to, size_t size, void *all, size_t known);

#endif
