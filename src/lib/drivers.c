/*
 * drivers.c: the one list of drivers. What is compiled in stands here; any other scheme is looked
 * for as a module, so that a program need not load every client library.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/lib.h"

extern const struct baton_driver baton_file_driver;
extern const struct baton_driver baton_memory_driver;

static const struct baton_driver *const built_in[] = {
	&baton_file_driver,
	&baton_memory_driver,
};

#define N_BUILT_IN (sizeof(built_in) / sizeof(built_in[0]))

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

/*
 * BATON_MODULE_DIR is for developers of drivers. A program with more rights than its user ignores
 * it.
 */
static const char *module_dir(void)
{
	const char *dir = secure_getenv("BATON_MODULE_DIR");

	return dir != NULL && dir[0] == '/' ? dir : BATON_MODULE_DIR;
}

/* The driver in a file, or NULL. */
static const struct baton_driver *load_module(const char *path, void **library)
{
	*library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	const struct baton_driver *d =
		*library != NULL ? dlsym(*library, BATON_DRIVER_SYMBOL) : NULL;

	if (d != NULL && d->abi == BATON_STORE_ABI)
		return d;
	if (*library != NULL)
		(void)dlclose(*library);
	*library = NULL;
	return NULL;
}

void drivers_copy(const struct baton_driver *d, struct baton_driver *out)
{
	size_t size = d->size != 0 ? d->size : offsetof(struct baton_driver, list);

	*out = (struct baton_driver){0};
	(void)memcpy(out, d, size < sizeof(*out) ? size : sizeof(*out));
}

void drivers_copy_traits(const struct baton_traits *t, struct baton_traits *out)
{
	size_t size = t->size != 0 ? t->size : offsetof(struct baton_traits, outlives);

	*out = (struct baton_traits){0};
	(void)memcpy(out, t, size < sizeof(*out) ? size : sizeof(*out));
	out->outlives = out->outlives || !out->proves_death;
}

const struct baton_driver *drivers_find(const char *url, void **library, struct baton_error *err)
{
	char scheme[SCHEME_MAX];
	char path[PATH_MAX];

	*library = NULL;
	if (!get_scheme(url, scheme)) {
		(void)lib_fail(err, BATON_E_URL,
			       "not the URL of a store; expected one such as file:/var/lib/myapp");
		return NULL;
	}
	for (size_t i = 0; i < N_BUILT_IN; i++)
		if (serves(built_in[i], scheme))
			return built_in[i];
	int n = snprintf(path, sizeof(path), "%s/%s.so", module_dir(), scheme);
	const struct baton_driver *d =
		n > 0 && (size_t)n < sizeof(path) ? load_module(path, library) : NULL;

	if (d != NULL && serves(d, scheme))
		return d;
	if (*library != NULL)
		(void)dlclose(*library);
	*library = NULL;
	(void)lib_fail(
		err, BATON_E_NO_DRIVER,
		"there is no driver for %s: stores here; built in are file: and memory:", scheme);
	return NULL;
}

/* ---- the list ---- */

typedef void driver_found(void *arg, const struct baton_driver_info *info);

static void tell_driver(const struct baton_driver *d, const char *module, driver_found *found,
			void *arg)
{
	const struct baton_traits *told = d->traits != NULL ? d->traits(NULL) : NULL;
	struct baton_driver table;
	struct baton_traits known;
	struct baton_driver_info info = {.size = sizeof(info),
					 .name = d->name,
					 .schemes = d->schemes,
					 .module = module,
					 .promises = ""};

	drivers_copy(d, &table);
	if (told == NULL) {
		info.error = "the driver doesn't say what it can do";
	} else {
		drivers_copy_traits(told, &known);
		info.promises = known.promises != NULL ? known.promises : "";
		info.min_lease_ms = known.min_lease_ns / NS_PER_MS;
		info.drift_permille = known.drift_permille;
		info.pushes = known.pushes;
		info.proves_death = known.proves_death;
		info.keeps_history = known.keeps_history;
		info.schema = table.schema;
		info.fence = table.fence;
		info.lists_elections = table.list != NULL;
		info.outlives = known.outlives;
		info.functions = table.functions;
	}
	found(arg, &info);
}

static void tell_module(const char *path, const char *scheme, driver_found *found, void *arg)
{
	const char *const schemes[] = {scheme, NULL};
	void *library;
	const struct baton_driver *d = load_module(path, &library);

	if (d != NULL) {
		tell_driver(d, path, found, arg);
		(void)dlclose(library);
		return;
	}
	const char *why = dlerror();
	struct baton_driver_info info = {
		.size = sizeof(info),
		.name = scheme,
		.schemes = schemes,
		.module = path,
		.error = why != NULL ? why : "not a driver for this version of baton",
		.promises = ""};

	found(arg, &info);
}

/* A link is one more scheme of a driver that stands in the list already. */
static int is_module(const struct dirent *e)
{
	size_t n = strspn(e->d_name, "abcdefghijklmnopqrstuvwxyz0123456789+");

	return e->d_type != DT_LNK && n > 0 && n < SCHEME_MAX && strcmp(e->d_name + n, ".so") == 0;
}

int baton_list_drivers(void (*found)(void *arg, const struct baton_driver_info *info), void *arg)
{
	struct dirent **list = NULL;

	if (found == NULL)
		return BATON_E_INVALID;
	for (size_t i = 0; i < N_BUILT_IN; i++)
		tell_driver(built_in[i], NULL, found, arg);
	int n = scandir(module_dir(), &list, is_module, alphasort);

	for (int i = 0; i < n; i++) {
		char path[PATH_MAX];
		int size = snprintf(path, sizeof(path), "%s/%s", module_dir(), list[i]->d_name);

		list[i]->d_name[strcspn(list[i]->d_name, ".")] = '\0';
		if (size > 0 && (size_t)size < sizeof(path))
			tell_module(path, list[i]->d_name, found, arg);
		free(list[i]);
	}
	free(list);
	return (int)N_BUILT_IN + (n > 0 ? n : 0);
}
