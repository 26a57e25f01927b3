/*
 * options.c: the URL of a file store.
 *
 *     file:/var/lib/myapp?mode=0770&history=50
 *
 * mode     who may take part, as of chmod(1); 0700 unless the URL says otherwise
 * history  how many claims of an election are kept; 100
 * force    1: use a file system that is not on the list, at the administrator's own risk
 *
 * No error quotes a URL that could not be taken apart: it may hold a password.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/url.h"
#include "store/file/file.h"

#define HISTORY_MAX 10000

/* Absolute from here on: the program may change its directory. */
static int parse_path(struct file_store *store, const struct url *url, struct baton_error *err)
{
	char path[4096];
	bool local = !url->has_authority || url->authority.n == 0 ||
		     (url->authority.n == 9 && memcmp(url->authority.at, "localhost", 9) == 0);

	if (!local || url->path.n == 0 || !url_decode(url->path, path, sizeof(path))) {
		store_fail(
			err, BATON_E_URL,
			"a file store needs a directory of this machine: file:/path/to/directory");
		return BATON_E_URL;
	}
	for (size_t n = strlen(path); n > 1 && path[n - 1] == '/'; n--)
		path[n - 1] = '\0';
	char *here = path[0] == '/' ? NULL : getcwd(NULL, 0);
	size_t size = (here != NULL ? strlen(here) : 0) + strlen(path) + 2;

	if (path[0] != '/' && here == NULL) {
		store_fail(err, BATON_E_SYSTEM, "there is no working directory; use a full path");
		return BATON_E_SYSTEM;
	}
	store->path = malloc(size);
	if (store->path != NULL)
		(void)snprintf(store->path, size, "%s%s%s", here != NULL ? here : "",
			       here != NULL ? "/" : "", path);
	free(here);
	if (store->path != NULL)
		return BATON_OK;
	store_fail(err, BATON_E_MEMORY, "no memory for a store");
	return BATON_E_MEMORY;
}

static bool parse_option_number(const char *text, int base, unsigned long max, unsigned long *out)
{
	char *end;

	if (text[0] < '0' || text[0] > '9' || strlen(text) > 8)
		return false;
	*out = strtoul(text, &end, base);
	return *end == '\0' && *out <= max;
}

static bool parse_option(struct file_store *store, const char *key, const char *value)
{
	unsigned long number;

	if (strcmp(key, "mode") == 0 && parse_option_number(value, 8, 0777, &number) &&
	    (number & 0700) == 0700) {
		store->mode = (mode_t)number;
		return true;
	}
	if (strcmp(key, "history") == 0 && parse_option_number(value, 10, HISTORY_MAX, &number) &&
	    number > 0) {
		store->history = number;
		return true;
	}
	if (strcmp(key, "force") == 0 && parse_option_number(value, 10, 1, &number)) {
		store->force = number == 1;
		return true;
	}
	return false;
}

static int parse_options(struct file_store *store, struct url_part query, struct baton_error *err)
{
	char key[32];
	char value[32];
	int got;

	while ((got = url_next_option(&query, key, sizeof(key), value, sizeof(value))) == 1) {
		if (parse_option(store, key, value))
			continue;
		store_fail(
			err, BATON_E_URL,
			"\"%s\" is no option of a file store, or its value isn't right; there are "
			"mode (octal, at least 0700), history (1 to %d) and force (0 or 1)",
			key, HISTORY_MAX);
		return BATON_E_URL;
	}
	if (got == 0)
		return BATON_OK;
	store_fail(err, BATON_E_URL, "the options of a file store are written key=value&key=value");
	return BATON_E_URL;
}

int file_parse_url(struct file_store *store, const char *text, struct baton_error *err)
{
	struct url url;

	store->mode = 0700;
	store->history = 100;
	if (!url_split(text, &url)) {
		/* Not what it was: whoever mistakes the scheme may have put a password in it. */
		store_fail(err, BATON_E_URL, "that is no URL; say file:/path/to/directory");
		return BATON_E_URL;
	}
	int code = parse_path(store, &url, err);

	return code != BATON_OK ? code : parse_options(store, url.query, err);
}
