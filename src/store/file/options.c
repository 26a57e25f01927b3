/*
 * options.c: the URL of a file store.
 *
 *     file:/var/lib/myapp?mode=0770&history=50
 *
 * mode     who may take part, as for chmod(1); 0700 unless the URL says otherwise
 * history  how many claims of an election are kept; 100 unless the URL says otherwise
 * force    1: use a file system that is not on the list, at the administrator's own risk
 *
 * No error quotes a URL that can't be taken apart: it may have a password in it.
 */
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/url.h"
#include "store/file/file.h"

#define HISTORY_MAX 10000
#define TEXT_OF(number) TEXT_OF_VALUE(number)
#define TEXT_OF_VALUE(number) #number

static int options_fail(struct baton_error *err, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static int options_fail(struct baton_error *err, const char *format, ...)
{
	char text[sizeof(err->text)];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	store_fail(err, BATON_E_URL, "%s", text);
	return BATON_E_URL;
}

static int decode_path(const struct url *url, char path[PATH_MAX], struct baton_error *err)
{
	const struct url_part *host = &url->authority;
	const struct url_part *from = &url->path;

	if (url->has_authority && host->n != 0 &&
	    (host->n != 9 || memcmp(host->at, "localhost", 9) != 0))
		/* The sentence doesn't name the host: it may be a login. */
		return options_fail(err,
				    "a host before the path; a file store is a directory of this "
				    "machine: file:/path/to/directory");
	if (from->n == 0)
		return options_fail(err, "no directory; say file:/path/to/directory");
	if (url_decode(*from, path, PATH_MAX))
		return BATON_OK;
	for (size_t i = 0; i < from->n; i++) {
		struct url_part escape = {from->at + i, from->n - i < 3 ? from->n - i : 3};
		char byte[2];

		if (from->at[i] == '%' && !url_decode(escape, byte, sizeof(byte)))
			return options_fail(err,
					    "\"%.*s\" in the path is not a byte; write %%25 for %%",
					    (int)escape.n, escape.at);
	}
	return options_fail(err, "the path has %zu bytes; the system takes up to %d", from->n,
			    PATH_MAX - 1);
}

/* Makes the path absolute, because the program may change its directory. */
static int parse_path(struct file_store *store, const struct url *url, struct baton_error *err)
{
	char path[PATH_MAX];
	int code = decode_path(url, path, err);

	if (code != BATON_OK)
		return code;
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

/* Sets an option, and returns NULL. Else: what a valid value is, or "" if there is no such
 * option. */
static const char *parse_option(struct file_store *store, const char *key, const char *value)
{
	unsigned long number;

	if (strcmp(key, "mode") == 0) {
		if (!parse_option_number(value, 8, 0777, &number) || (number & 0700) != 0700)
			return "0700 to 0777, in octal, with all bits of the owner";
		store->mode = (mode_t)number;
		return NULL;
	}
	if (strcmp(key, "history") == 0) {
		if (!parse_option_number(value, 10, HISTORY_MAX, &number) || number == 0)
			return "1 to " TEXT_OF(HISTORY_MAX);
		store->history = number;
		return NULL;
	}
	if (strcmp(key, "force") == 0) {
		if (!parse_option_number(value, 10, 1, &number))
			return "0 or 1";
		store->force = number == 1;
		return NULL;
	}
	return "";
}

static int parse_options(struct file_store *store, struct url_part query, struct baton_error *err)
{
	char key[32];
	char value[32];
	int got;

	while ((got = url_next_option(&query, key, sizeof(key), value, sizeof(value))) == 1) {
		const char *expected = parse_option(store, key, value);

		if (expected == NULL)
			continue;
		if (expected[0] == '\0')
			return options_fail(err,
					    "unknown option \"%s\"; a file store has mode, history "
					    "and force",
					    key);
		return options_fail(err, "invalid value for \"%s\": \"%s\"; expected %s", key,
				    value, expected);
	}
	if (got == 0)
		return BATON_OK;
	return options_fail(err, "the options are not written key=value&key=value, or too long");
}

int file_parse_url(struct file_store *store, const char *text, struct baton_error *err)
{
	struct url url;

	store->mode = 0700;
	store->history = 100;
	/* The sentence doesn't show the URL: if the scheme is wrong, it may have a password in
	 * it. */
	if (!url_split(text, &url))
		return options_fail(err, "not a valid URL; say file:/path/to/directory");
	int code = parse_path(store, &url, err);

	return code != BATON_OK ? code : parse_options(store, url.query, err);
}
