/*
 * driver.c: a driver from outside, in C99: no store at all, but enough of one for baton_open() to
 * find it as a module, look at its number, and hand it the URL.
 */
#include <baton-store.h>
#include <stdio.h>

static int open_store(const struct baton_store_config *config, void **store,
		      struct baton_error *err)
{
	*store = NULL;
	err->code = BATON_E_UNSUPPORTED;
	snprintf(err->text, sizeof(err->text), "the outside driver was given %.100s", config->url);
	return err->code;
}

static const char *const schemes[] = {"outside", NULL};

extern const struct baton_driver baton_driver;
const struct baton_driver baton_driver = {
	.abi = BATON_STORE_ABI,
	.name = "outside",
	.schemes = schemes,
	.open = open_store,
};
