/*
 * older.c: a driver that was built against the first header (1.0 beside this file): the memory
 * store as "older:NAME". A newer library must load it, and say UNSUPPORTED of what it doesn't have.
 */
#include <string.h>

#include <baton-store.h>

extern const struct baton_driver baton_memory_driver;
extern BATON_API struct baton_driver baton_driver;
struct baton_driver baton_driver;

static const char *const schemes[] = {"older", NULL};
static struct baton_traits traits;

static int open_older(const struct baton_store_config *config, void **store,
		      struct baton_error *err)
{
	char url[256] = "memory:";
	struct baton_store_config inner = {.size = sizeof(inner), .url = url};

	(void)strncat(url, strchr(config->url, ':') + 1, sizeof(url) - strlen(url) - 1);
	return baton_memory_driver.open(&inner, store, err);
}

static const struct baton_traits *traits_of(const void *store)
{
	(void)store;
	return &traits;
}

__attribute__((constructor)) static void make(void)
{
	(void)memcpy(&baton_driver, &baton_memory_driver, sizeof(baton_driver));
	baton_driver.size = sizeof(baton_driver);
	baton_driver.name = "older";
	baton_driver.schemes = schemes;
	baton_driver.open = open_older;
	baton_driver.traits = traits_of;
	traits = *baton_memory_driver.traits(NULL);
	traits.size = 0; /* it knows of none */
}
