/*
 * broken.c: `baton serve` without what makes its deadlines safe, so that the chaos of tests/serve
 * proves that it sees: the handle isn't told that programs outlive it, and a sidecar that is killed
 * is replaced at once. It is the real program; the linker puts this function in place of the
 * library's (--wrap). It must never be linked into what is shipped.
 */
#include <baton.h>

/* The linker's names for what is wrapped, and for what it wraps. */
int __real_baton_open(const char *url, const struct baton_options *options, struct baton **out,
		      struct baton_error *err);
int __wrap_baton_open(const char *url, const struct baton_options *options, struct baton **out,
		      struct baton_error *err);

int __wrap_baton_open(const char *url, const struct baton_options *options, struct baton **out,
		      struct baton_error *err)
{
	struct baton_options o = *options;

	o.outlive = false;
	return __real_baton_open(url, &o, out, err);
}
