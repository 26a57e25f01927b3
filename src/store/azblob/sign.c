/*
 * sign.c: signs a request with the account key (SharedKey): the text that is signed, and the
 * header.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/sha256.h"
#include "base/url.h"
#include "base/web/json.h"
#include "store/azblob/azblob.h"

#define OURS "x-ms-"
#define PAIRS_MAX 8
#define PAIR_MAX 2048

/* The values of these headers are signed in this order, after the method and before our own
 * headers. */
static const char *const signed_headers[] = {
	"Content-MD5",   "Content-Type",        "Date",  "If-Modified-Since", "If-Match",
	"If-None-Match", "If-Unmodified-Since", "Range",
};

/* The value behind the colon. */
static const char *value_at(const char *line)
{
	line += strcspn(line, ":");
	return *line == ':' ? line + 1 + strspn(line + 1, " ") : line;
}

static const char *value_of(const char *const *headers, const char *name)
{
	size_t n = strlen(name);

	for (; headers != NULL && *headers != NULL; headers++)
		if (strncasecmp(*headers, name, n) == 0 && (*headers)[n] == ':')
			return value_at(*headers);
	return "";
}

/* Sorts by the name before the colon. */
static int by_name(const void *a, const void *b)
{
	const char *x = *(const char *const *)a, *y = *(const char *const *)b;
	size_t n = strcspn(x, ":"), m = strcspn(y, ":");
	int order = memcmp(x, y, n < m ? n : m);

	return order != 0 ? order : (n > m) - (n < m);
}

static void sign_ours(struct bytes *out, const char *const *headers)
{
	const char *ours[AZBLOB_LINES];
	size_t n = 0;

	for (; headers != NULL && *headers != NULL && n < AZBLOB_LINES; headers++)
		if (strncmp(*headers, OURS, strlen(OURS)) == 0)
			ours[n++] = *headers;
	qsort((void *)ours, n, sizeof(ours[0]), by_name);
	for (size_t i = 0; i < n; i++)
		bytes_print(out, "%.*s:%s\n", (int)strcspn(ours[i], ":"), ours[i],
			    value_at(ours[i]));
}

/* The path as it is sent, then the query, decoded and sorted. */
static void sign_resource(struct bytes *out, const char *account, const char *path)
{
	size_t n_path = strcspn(path, "?"), n = 0;
	struct url_part query = {path + n_path, 0};
	char *pairs[PAIRS_MAX], key[64], value[PAIR_MAX];

	bytes_print(out, "/%s%.*s", account, (int)n_path, path);
	if (path[n_path] == '?')
		query = (struct url_part){path + n_path + 1, strlen(path + n_path + 1)};
	while (n < PAIRS_MAX &&
	       url_next_option(&query, key, sizeof(key), value, sizeof(value)) == 1) {
		if (asprintf(&pairs[n], "%s:%s", key, value) < 0)
			out->has_failed = true;
		else
			n++;
	}
	out->has_failed = out->has_failed || query.n > 0;
	qsort((void *)pairs, n, sizeof(pairs[0]), by_name);
	for (size_t i = 0; i < n; i++) {
		bytes_print(out, "\n%s", pairs[i]);
		free(pairs[i]);
	}
}

void azblob_string_to_sign(struct bytes *out, const char *account, const char *method,
			   const char *path, const char *const *headers, size_t size)
{
	char length[24] = "";

	if (size > 0)
		(void)snprintf(length, sizeof(length), "%zu", size);
	bytes_print(out, "%s\n\n\n%s\n", method, length);
	for (size_t i = 0; i < sizeof(signed_headers) / sizeof(signed_headers[0]); i++)
		bytes_print(out, "%s\n", value_of(headers, signed_headers[i]));
	sign_ours(out, headers);
	sign_resource(out, account, path);
}

bool azblob_sign(const char *account, const char *key, const char *to_sign, size_t n, char *out,
		 size_t size)
{
	char raw[128], text[BASE64_SIZE(SHA256_SIZE)];
	uint8_t code[SHA256_SIZE];
	long n_raw = base64_decode(key, strlen(key), raw, sizeof(raw));

	if (n_raw <= 0)
		return false;
	sha256_hmac(raw, (size_t)n_raw, to_sign, n, code);
	explicit_bzero(raw, sizeof(raw));
	base64_encode(code, sizeof(code), text);
	return (size_t)snprintf(out, size, "Authorization: SharedKey %s:%s", account, text) < size;
}

void azblob_date(int64_t unix_s, char *out, size_t size)
{
	static const char days[][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
	static const char months[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
					 "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
	time_t at = (time_t)unix_s;
	struct tm t = {0};

	(void)gmtime_r(&at, &t);
	(void)snprintf(out, size, "%s, %02d %s %04d %02d:%02d:%02d GMT", days[t.tm_wday], t.tm_mday,
		       months[t.tm_mon], t.tm_year + 1900, t.tm_hour, t.tm_min, t.tm_sec);
}
