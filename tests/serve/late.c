/*
 * late.c: stands in front of libbaton (LD_PRELOAD), for the tests of a leadership that is lost
 * between BECAME and baton_enter(): the first baton_enter() of the process waits until then.
 */
#include <dlfcn.h>
#include <poll.h>
#include <stdatomic.h>

#include <baton.h>

BATON_API int baton_enter(struct baton_election *e, struct baton_context **ctx,
			  struct baton_error *err)
{
	static atomic_bool was_late;
	int (*enter)(struct baton_election *, struct baton_context **, struct baton_error *);

	*(void **)&enter = dlsym(RTLD_NEXT, "baton_enter");
	if (!atomic_exchange(&was_late, true))
		while (baton_is_leader(e))
			(void)poll(NULL, 0, 1);
	return enter(e, ctx, err);
}
