/*
 * drifty.c: a module for the tests: the file store as "drifty:DIR", where clocks are taken to
 * differ by a lot, and work can't be locked. So it ends work earlier than its user has
 * asked for, and nothing but supervisor and guard keeps two children apart, as on a server.
 */
#include <stdio.h>
#include <string.h>

#include <baton-store.h>

#define DRIFT_PERMILLE 400

extern const struct baton_driver baton_file_driver;
extern BATON_API struct baton_driver baton_driver;
struct baton_driver baton_driver;

static const char *const schemes[] = {"drifty", NULL};
static struct baton_traits drifty;

static int open_drifty(const struct baton_store_config *config, void **store,
		       struct baton_error *err)
{
	char url[4096];
	struct baton_store_config inner = {.size = sizeof(inner), .url = url};
	const char *path = strchr(config->url, ':') + 1;

	/* "drifty://user:password@host/path", as a server's URL would be. */
	if (strncmp(path, "//", 2) == 0)
		path = strchr(path + 2, '/');
	(void)snprintf(url, sizeof(url), "file:%s", path != NULL ? path : "");
	return baton_file_driver.open(&inner, store, err);
}

static const struct baton_traits *traits_of(const void *store)
{
	(void)store;
	return &drifty;
}

__attribute__((constructor)) static void make(void)
{
	drifty = *baton_file_driver.traits(NULL);
	drifty.drift_permille = DRIFT_PERMILLE;
	drifty.promises = "For tests.";
	baton_driver = baton_file_driver;
	baton_driver.name = "drifty";
	baton_driver.schemes = schemes;
	baton_driver.open = open_drifty;
	baton_driver.traits = traits_of;
	baton_driver.work_lock = NULL;
}
