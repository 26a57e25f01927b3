/*
 * drivers.c: the one list of drivers. What is compiled in stands here; any other scheme is looked
 * for as a module, so that a program starts without every client library there is.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "lib/lib.h"

extern const struct baton_driver baton_file_driver;
extern const struct baton_driver baton_memory_driver;

static const struct baton_driver *const built_in[] = {
	&baton_file_driver,
	&baton_memory_driver,
};

#ifndef BATON_MODULE_DIR
#define BATON_MODULE_DIR "/usr/lib/baton"
#endif

#define SCHEME_MAX 32

static bool serves(const struct baton_driver *d, const char *scheme)
{
	for (const char *const *s = d->schemes; *s != NULL; s++)
		if (strcmp(*s, scheme) == 0)
			return true;
	return false;
}

/* Letters, digits and '+': nothing that could leave the modules' directory. */
static bool get_scheme(const char *url, char *scheme)
{
	size_t n = strspn(url, "abcdefghijklmnopqrstuvwxyz0123456789+");

	if (n == 0 || n >= SCHEME_MAX || url[n] != ':')
		return false;
	(void)memcpy(scheme, url, n);
	scheme[n] = '\0';
	return true;
}

const struct baton_driver *drivers_find(const char *url, void **library, struct baton_error *err)
{
	char scheme[SCHEME_MAX];
	char path[sizeof(BATON_MODULE_DIR) + SCHEME_MAX + 8];

	*library = NULL;
	if (!get_scheme(url, scheme)) {
		(void)lib_fail(err, BATON_E_URL,
			       "The store must be named by a URL such as file:/var/lib/myapp.");
		return NULL;
	}
	for (size_t i = 0; i < sizeof(built_in) / sizeof(built_in[0]); i++)
		if (serves(built_in[i], scheme))
			return built_in[i];
	(void)snprintf(path, sizeof(path), "%s/%s.so", BATON_MODULE_DIR, scheme);
	*library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	const struct baton_driver *d =
		*library != NULL ? dlsym(*library, BATON_DRIVER_SYMBOL) : NULL;

	if (d != NULL && d->abi == BATON_STORE_ABI && serves(d, scheme))
		return d;
	if (*library != NULL)
		(void)dlclose(*library);
	*library = NULL;
	(void)lib_fail(err, BATON_E_NO_DRIVER,
		       "There is no driver for %s: stores here; built in are file: and memory:.",
		       scheme);
	return NULL;
}
