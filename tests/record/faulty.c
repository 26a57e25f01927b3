/*
 * faulty.c: a module that is any record store, with faults.h in front of it. The suite puts it into
 * a folder of its own, under the store's scheme; FAULTY_MODULE in the environment names the module
 * that has the adapter itself, and FAULTY_AS may take away what that can do ("get_max=1,values=0"),
 * so that one store stands for others.
 */
#include "faulty.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faults.h"

static struct record_adapter adapter;
static char scheme[64];
static const char *schemes[2] = {scheme, NULL};

static void faulty_change(const char *what)
{
	if (strstr(what, "get_max=1") != NULL)
		adapter.get_max = 1;
	if (strstr(what, "values=0") != NULL)
		adapter.lists_values = false;
	if (strstr(what, "batch_max=7") != NULL)
		adapter.batch_max = 7;
}

__attribute__((constructor)) static void faulty_load(void)
{
	const char *path = getenv(FAULTY_MODULE);
	const char *name = path != NULL ? strrchr(path, '/') : NULL;
	void *module = name != NULL ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
	const struct record_adapter *const *real =
		module != NULL ? dlsym(module, "baton_driver_adapter") : NULL;
	const char *file = getenv(FAULTS_FILE);

	if (real == NULL) {
		(void)fprintf(stderr, "faulty: %s is not a module with an adapter: %s\n",
			      path != NULL ? path : "(none)", dlerror());
		abort();
	}
	(void)snprintf(scheme, sizeof(scheme), "%.*s", (int)strcspn(name + 1, "."), name + 1);
	faults_wrap(*real, file != NULL ? faults_map(file) : NULL, &adapter);
	if (getenv(FAULTY_AS) != NULL)
		faulty_change(getenv(FAULTY_AS));
}

RECORD_DRIVER(baton_driver, adapter, .name = scheme, .schemes = schemes);
