/*
 * options.c: the URL of an S3 store.
 *
 *     s3://BUCKET[/PREFIX][?option=value&...]
 *
 * A URL that isn't valid is refused with a sentence. It has no place for a secret.
 */
#include <stdio.h>
#include <string.h>

#include "store/s3/s3.h"

#define EXAMPLE "s3://bucket/prefix?region=eu-central-1"
#define LETTERS "abcdefghijklmnopqrstuvwxyz"
#define DIGITS "0123456789"

static bool is_made_of(const char *text, const char *allowed)
{
	return text[0] != '\0' && strspn(text, allowed) == strlen(text);
}

bool s3_parse_address(const char *text, struct http_host *host, char *path, size_t size)
{
	struct url url;

	*host = (struct http_host){.tls = strncmp(text, "https:", 6) == 0};
	if (!url_split(text, &url) || !url.has_authority ||
	    (!host->tls && strncmp(text, "http:", 5) != 0))
		return false;
	size_t n = url.path.n + (url.query.n > 0 ? url.query.n + 1 : 0);

	(void)snprintf(host->port, sizeof(host->port), "%s", host->tls ? "443" : "80");
	if (url_next_host(&url.authority, host->name, sizeof(host->name), host->port) != 1 ||
	    url.authority.n > 0)
		return false;
	if (path == NULL)
		return url.query.n == 0 && (n == 0 || (n == 1 && url.path.at[0] == '/'));
	if (n >= size)
		return false;
	(void)snprintf(path, size, "%.*s", n > 0 ? (int)n : 1, n > 0 ? url.path.at : "/");
	return true;
}

/* Whether a part of the prefix has only dots. On servers that keep objects in files, ".." is
 * another folder. */
static bool has_dots(const char *prefix)
{
	for (const char *at = prefix; *at != '\0'; at += strcspn(at, "/"), at += *at == '/') {
		size_t n = strcspn(at, "/");

		if (n > 0 && strspn(at, ".") >= n)
			return true;
	}
	return false;
}

static const struct option_known known[] = {
	{"region", "a-z, 0-9 and '-', as in eu-central-1"},
	{"endpoint", "http://host:port or https://host:port, without a path"},
	{"path_style", OPTION_IS_FLAG},
	{"profile", OPTION_IS_TEXT(127)},
	{"credentials_file", OPTION_IS_PATH},
	{"ca", OPTION_IS_PATH},
	{"cert", OPTION_IS_PATH},
	{"key", OPTION_IS_PATH},
	{"server_name", OPTION_IS_SERVER_NAME},
	{"prefix", OPTION_IS_NAMES(RECORD_PREFIX_MAX) ", not only dots, and none in the path"},
	{"poll", OPTION_IS_POLL},
	{NULL, NULL},
};

static bool set_option(void *options, const char *key, const char *value)
{
	struct s3_options *o = options;

	if (strcmp(key, "endpoint") == 0)
		return o->has_endpoint = s3_parse_address(value, &o->host, NULL, 0);
	if (strcmp(key, "region") == 0)
		return is_made_of(value, LETTERS DIGITS "-") &&
		       option_text(value, o->region, sizeof(o->region));
	if (strcmp(key, "path_style") == 0)
		return o->has_path_style = option_flag(value, &o->path_style);
	if (strcmp(key, "profile") == 0)
		return option_text(value, o->profile, sizeof(o->profile));
	if (strcmp(key, "credentials_file") == 0)
		return option_path(value, o->credentials_file, sizeof(o->credentials_file));
	if (strcmp(key, "prefix") == 0) /* the same as the path, and only one may be given */
		return o->record->prefix[0] == '\0' && !has_dots(value) &&
		       record_option(o->record, key, value);
	return option_tls(&o->files, key, value) || record_option(o->record, key, value);
}

static const struct option_list options = {
	.store = "an S3 store",
	.page = "baton-s3(7)",
	.known = known,
	.set = set_option,
};

static int parse_place(struct s3_options *o, const struct url *url, struct baton_error *err)
{
	struct url_part rest = url->path;
	char prefix[RECORD_PREFIX_MAX + 1] = "";

	if (!url_decode(url->authority, o->bucket, sizeof(o->bucket)) ||
	    !is_made_of(o->bucket, LETTERS DIGITS "-.") || strlen(o->bucket) < 3)
		return store_fail(
			err, BATON_E_URL,
			"not a valid name of a bucket; expected 3 to 63 of a-z, 0-9, '-' and '.', "
			"as in " EXAMPLE);
	for (; rest.n > 0 && rest.at[0] == '/'; rest.n--)
		rest.at++;
	while (rest.n > 0 && rest.at[rest.n - 1] == '/')
		rest.n--;
	if (rest.n == 0)
		return 0;
	if (!url_decode(rest, prefix, sizeof(prefix)) || has_dots(prefix) ||
	    !record_option(o->record, "prefix", prefix))
		return store_fail(
			err, BATON_E_URL,
			"not a valid prefix; expected up to %d letters, digits and -_./ as "
			"in " EXAMPLE,
			RECORD_PREFIX_MAX);
	return 0;
}

int s3_options_parse(struct s3_options *o, const char *text, struct baton_error *err)
{
	struct url url;

	if (!url_split(text, &url) || !url.has_authority) {
		(void)store_fail(err, BATON_E_URL, "not a valid URL of an S3 store; say " EXAMPLE);
		return BATON_E_URL;
	}
	if (parse_place(o, &url, err) != 0 || option_each(url.query, &options, o, err) != 0 ||
	    option_tls_check(&o->files, !o->has_endpoint || o->host.tls, "endpoint=https://...",
			     err) != 0)
		return BATON_E_URL;
	/* AWS has a host for each bucket, but its certificate doesn't cover buckets with a dot in
	 * their names. Other servers mostly have one host for all buckets. */
	if (!o->has_path_style)
		o->path_style = o->has_endpoint || strchr(o->bucket, '.') != NULL;
	/* The name also stands in the requests, where it would take the place of the bucket's. */
	if (o->files.server_name[0] != '\0' && !o->path_style) {
		(void)store_fail(err, BATON_E_URL,
				 "server_name= needs the bucket in the path: say path_style=1");
		return BATON_E_URL;
	}
	return BATON_OK;
}
