/*
 * sign.c: signatures of requests, AWS Signature Version 4. What is signed is the method, the path,
 * the query, all headers that are sent with it, and the hash of the body.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/sha256.h"
#include "store/s3/s3.h"

#define DAY 8 /* digits of a date */
#define MS_PER_S 1000

void s3_date(int64_t wall_ms, char out[S3_DATE_SIZE])
{
	time_t seconds = (time_t)(wall_ms / MS_PER_S);
	struct tm tm;

	out[0] = '\0';
	if (gmtime_r(&seconds, &tm) != NULL)
		(void)strftime(out, S3_DATE_SIZE, "%Y%m%dT%H%M%SZ", &tm);
}

/* "host;x-amz-date" */
static void put_names(struct bytes *b, const char *const *headers)
{
	for (size_t i = 0; headers[i] != NULL; i++)
		bytes_print(b, "%s%.*s", i > 0 ? ";" : "", (int)strcspn(headers[i], ":"),
			    headers[i]);
}

/* The hash of the request in the form that both sides agree on. */
static bool hash_request(const char *method, const char *path, const char *query,
			 const char *const *headers, const char *hash, char out[SHA256_HEX_SIZE])
{
	struct bytes b = {0};

	bytes_print(&b, "%s\n%s\n%s\n", method, path, query);
	for (size_t i = 0; headers[i] != NULL; i++) {
		size_t n = strcspn(headers[i], ":");
		const char *value = headers[i] + n + 1;

		bytes_print(&b, "%.*s:%s\n", (int)n, headers[i], value + strspn(value, " "));
	}
	bytes_print(&b, "\n");
	put_names(&b, headers);
	bytes_print(&b, "\n%s", hash);
	bool is_ok = !b.has_failed;

	if (is_ok)
		sha256_hex(b.at, b.n, out);
	if (b.at != NULL) /* it has a session's token in it */
		explicit_bzero(b.at, b.n);
	bytes_done(&b);
	return is_ok;
}

static void chain(uint8_t key[SHA256_SIZE], const char *text)
{
	sha256_hmac(key, SHA256_SIZE, text, strlen(text), key);
}

/* Derives the key for one day, region and service. */
static void derive(const struct s3_scope *scope, const char *day, uint8_t key[SHA256_SIZE])
{
	char first[S3_SECRET_MAX + 4];
	int n = snprintf(first, sizeof(first), "AWS4%s", scope->keys->secret);

	sha256_hmac(first, (size_t)n, day, strlen(day), key);
	explicit_bzero(first, sizeof(first));
	chain(key, scope->region);
	chain(key, scope->service);
	chain(key, "aws4_request");
}

bool s3_sign(const struct s3_scope *scope, const char *method, const char *path, const char *query,
	     const char *const *headers, const char *hash, char *out, size_t size)
{
	char day[DAY + 1], request[SHA256_HEX_SIZE], place[S3_LINE_MAX], text[2 * S3_LINE_MAX];
	uint8_t key[SHA256_SIZE];
	struct bytes b = {0};

	(void)snprintf(day, sizeof(day), "%.8s", scope->date);
	int n = snprintf(place, sizeof(place), "%s/%s/%s/aws4_request", day, scope->region,
			 scope->service);

	if (n >= (int)sizeof(place) || !hash_request(method, path, query, headers, hash, request))
		return false;
	n = snprintf(text, sizeof(text), "AWS4-HMAC-SHA256\n%s\n%s\n%s", scope->date, place,
		     request);
	derive(scope, day, key);
	sha256_hmac(key, sizeof(key), text, (size_t)n, key);
	bytes_print(&b, "authorization: AWS4-HMAC-SHA256 Credential=%s/%s,SignedHeaders=",
		    scope->keys->id, place);
	put_names(&b, headers);
	bytes_print(&b, ",Signature=");
	for (size_t i = 0; i < sizeof(key); i++)
		bytes_print(&b, "%02x", key[i]);
	bool is_ok = !b.has_failed && b.n < size;

	if (is_ok)
		(void)memcpy(out, b.at, b.n + 1);
	bytes_done(&b);
	return is_ok;
}
