/*
 * call.c: requests to the bucket, and what their answers mean. s3.h describes the objects.
 *
 * An answer of the server decides whether the request was carried out or surely was not. Without an
 * answer, and after any 5xx, the result is unknown, unless nothing was sent at all.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sha256.h"
#include "base/web/xml.h"
#include "store/s3/s3.h"
#include "store/web/web.h"

#define PATIENCE_NS CLOCK_NS_PER_S
#define RIGHTS                                                                                 \
	"s3:ListBucket on the bucket, s3:GetObject, s3:PutObject and s3:DeleteObject on what " \
	"is in it"

/* ---- requests ---- */

static void set_host(struct s3_lane *lane)
{
	const struct s3_options *o = &lane->store->options;
	const char *dot = o->path_style ? "" : ".", *bucket = o->path_style ? "" : o->bucket;

	lane->host = o->host;
	if (o->has_endpoint) {
		(void)snprintf(lane->host.name, sizeof(lane->host.name), "%s%s%.190s", bucket, dot,
			       o->host.name);
		return;
	}
	(void)snprintf(lane->host.name, sizeof(lane->host.name), "%s%ss3.%s.amazonaws.com%s",
		       bucket, dot, lane->region,
		       strncmp(lane->region, "cn-", 3) == 0 ? ".cn" : "");
	(void)snprintf(lane->host.port, sizeof(lane->host.port), "443");
	lane->host.tls = true;
}

static bool need_room(struct s3_lane *lane, size_t n)
{
	if (n <= lane->room)
		return true;
	struct s3_ask *asks = realloc(lane->asks, n * sizeof(*asks));

	if (asks != NULL)
		lane->asks = asks;
	struct http_request *requests = realloc(lane->requests, n * sizeof(*requests));

	if (requests != NULL)
		lane->requests = requests;
	struct http_reply *replies = realloc(lane->replies, n * sizeof(*replies));

	if (replies != NULL)
		lane->replies = replies;
	if (asks == NULL || requests == NULL || replies == NULL)
		return false;
	lane->room = n;
	return true;
}

bool s3_begin(struct s3_lane *lane, struct baton_call *call, size_t n)
{
	if (!need_room(lane, n)) {
		(void)store_fail(&call->error, BATON_E_MEMORY, "no memory for a request");
		return false;
	}
	if (!s3_credentials(lane, call))
		return false;
	set_host(lane);
	lane->token[0] = '\0';
	if (lane->keys.token[0] != '\0')
		(void)snprintf(lane->token, sizeof(lane->token), "x-amz-security-token: %s",
			       lane->keys.token);
	return true;
}

/* Behind its first two characters a record's key has no '/': some servers keep objects in files,
 * and there "a" could not exist beside "a/b". "=_" stands for the '/'; no key of the layer has that
 * in it. */
static void put_key(struct bytes *b, const char *key)
{
	for (size_t i = 0; key[i] != '\0'; i++) {
		if (key[i] == '/' && i >= 2)
			bytes_print(b, "%%3D_");
		else
			bytes_print(b, key[i] == '=' ? "%%3D" : "%c", key[i]);
	}
}

/* The encoded path. The characters of a prefix need no encoding. */
static void put_path(struct s3_lane *lane, const char *key, char out[S3_PATH_MAX])
{
	const struct s3_store *s = lane->store;
	struct bytes b = {0};

	bytes_print(&b, "/%s", s->options.path_style ? s->options.bucket : "");
	if (key != NULL) {
		bytes_print(&b, "%s%s", s->options.path_style ? "/" : "", s->prefix);
		put_key(&b, key);
	}
	(void)snprintf(out, S3_PATH_MAX, "%s", b.has_failed ? "" : b.at);
	bytes_done(&b);
}

static void put_host(const struct s3_lane *lane, char *out, size_t size)
{
	const struct http_host *h = &lane->host;
	const char *shown = lane->store->options.files.server_name;
	const char *name = shown[0] != '\0' ? shown : h->name;
	bool is_usual = strcmp(h->port, h->tls ? "443" : "80") == 0;
	bool is_6 = strchr(name, ':') != NULL;

	(void)snprintf(out, size, "host: %s%s%s%s%s", is_6 ? "[" : "", name, is_6 ? "]" : "",
		       is_usual ? "" : ":", is_usual ? "" : h->port);
}

void s3_ask(struct s3_lane *lane, size_t i, const char *method, const char *key, const char *query,
	    const char *condition, const struct bytes *body)
{
	struct s3_ask *a = &lane->asks[i];
	char hash[SHA256_HEX_SIZE], date[S3_DATE_SIZE];
	struct s3_scope scope = {
		.keys = &lane->keys, .date = date, .region = lane->region, .service = "s3"};
	size_t n = 0, n_query = strlen(query);

	put_path(lane, key, a->path);
	put_host(lane, a->host, sizeof(a->host));
	sha256_hex(body != NULL ? body->at : "", body != NULL ? body->n : 0, hash);
	s3_date(clock_wall_ms(), date);
	(void)snprintf(a->hash, sizeof(a->hash), "x-amz-content-sha256: %s", hash);
	(void)snprintf(a->date, sizeof(a->date), "x-amz-date: %s", date);
	(void)snprintf(a->condition, sizeof(a->condition), "%s", condition);
	a->headers[n++] = a->host; /* sorted by their names */
	if (condition[0] != '\0')
		a->headers[n++] = a->condition;
	a->headers[n++] = a->hash;
	a->headers[n++] = a->date;
	if (lane->token[0] != '\0')
		a->headers[n++] = lane->token;
	a->headers[n] = NULL;
	/* A request that can't be signed is sent without a signature, and the server refuses it. */
	if (s3_sign(&scope, method, a->path, query, a->headers, hash, a->sign, sizeof(a->sign)))
		a->headers[n++] = a->sign;
	a->headers[n] = NULL;
	if (n_query > 0)
		(void)snprintf(a->path + strlen(a->path), S3_PATH_MAX - strlen(a->path), "?%s",
			       query);
	lane->requests[i] = (struct http_request){.method = method,
						  .host = &lane->host,
						  .path = a->path,
						  .headers = a->headers,
						  .body = body != NULL ? body->at : NULL,
						  .body_size = body != NULL ? body->n : 0};
}

void s3_run(struct s3_lane *lane, struct baton_call *call, size_t n)
{
	uint64_t heed_ns = clock_boot_ns() + PATIENCE_NS;
	uint64_t count;

	/* A wake may end the call, but not before the call has had some time. */
	if (lane->lane.wake >= 0)
		http_heed_wake(lane->http, heed_ns);
	(void)http_call_all(lane->http, lane->requests, n, call->deadline_ns, lane->replies);
	if (lane->lane.wake >= 0 && clock_boot_ns() >= heed_ns &&
	    read(lane->lane.wake, &count, sizeof(count)) < 0)
		return; /* the lane was not woken */
}

/* ---- answers ---- */

/* What a server's word means: the error code, and the sentence for people. */
struct verdict {
	const char *word;
	int code;
	const char *text;
};

static const struct verdict verdicts[] = {
	{"NoSuchBucket", BATON_E_UNAVAILABLE,
	 "there is no such bucket: make it, or name another one in the store's URL"},
	{"ExpiredToken", BATON_E_DENIED,
	 "the credentials have expired: renew them where they come from"},
	{"RequestTimeTooSkewed", BATON_E_DENIED,
	 "this machine's clock is too far off for a signature: let NTP set it"},
	{"InvalidAccessKeyId", BATON_E_DENIED,
	 "the server does not know our access key: use one of this server's"},
	{"InvalidToken", BATON_E_DENIED,
	 "the session token is not valid: set AWS_SESSION_TOKEN with its keys, or none"},
	{"SignatureDoesNotMatch", BATON_E_DENIED,
	 "the secret key is not the access key's: use the two that belong together"},
	{"InvalidRequest", BATON_E_UNSUPPORTED,
	 "the bucket does not take plain objects: use one without object lock and its default "
	 "retention"},
	{"NotImplemented", BATON_E_UNSUPPORTED,
	 "the server can't do what baton needs: use one with conditional writes (If-Match)"},
	{"SlowDown", BATON_E_BUSY,
	 "the server asks for fewer requests: use a longer lease and poll="},
};

/* Answers 301, 307 and 400 name the region that the bucket is in. */
static bool tell_region(const struct s3_lane *lane, struct baton_call *call,
			const struct http_reply *reply)
{
	const char *bucket = lane->store->options.bucket;
	char region[S3_NAME_MAX];

	http_header(reply, "x-amz-bucket-region", region, sizeof(region));
	if (region[0] == '\0')
		(void)xml_find(reply->body, reply->body_size, "Region", region, sizeof(region));
	if (region[0] == '\0' || strcmp(region, lane->region) == 0)
		return false;
	(void)store_fail(&call->error, BATON_E_URL,
			 "bucket \"%s\": it is in the region %.40s, not in %.40s: say region=%.40s",
			 bucket, region, lane->region, region);
	return true;
}

static void tell_denied(const struct s3_lane *lane, struct baton_call *call, const char *word)
{
	(void)store_fail(&call->error, BATON_E_DENIED,
			 "bucket \"%s\": closed to us (%s): grant " RIGHTS "%s",
			 lane->store->options.bucket, word[0] != '\0' ? word : "403",
			 lane->host.tls ? "" : "; or it wants https: say endpoint=https://...");
}

/* Whether the server refuses the keys themselves, and not what they may do. */
static bool is_about_keys(const char *word)
{
	return strstr(word, "Token") != NULL || strcmp(word, "InvalidAccessKeyId") == 0 ||
	       strcmp(word, "SignatureDoesNotMatch") == 0;
}

/* Writes the sentence for an answer that is neither a success nor a conflict. */
static void tell_refusal(struct s3_lane *lane, struct baton_call *call,
			 const struct http_reply *reply)
{
	const char *bucket = lane->store->options.bucket;
	char word[64], text[100];

	(void)xml_find(reply->body, reply->body_size, "Code", word, sizeof(word));
	(void)xml_find(reply->body, reply->body_size, "Message", text, sizeof(text));
	if (reply->status >= 300 && reply->status <= 403 && tell_region(lane, call, reply))
		return;
	if (!lane->host.tls && reply->status == 400 && strstr(reply->body, "HTTPS") != NULL) {
		(void)store_fail(&call->error, BATON_E_URL,
				 "the server wants https: say endpoint=https://%.80s:%s",
				 lane->host.name, lane->host.port);
		return;
	}
	if (is_about_keys(word))
		s3_credentials_doubt(lane, true);
	else if (reply->status == 403 || reply->status == 401)
		s3_credentials_doubt(lane, false); /* newer keys may have more rights */
	for (size_t i = 0; i < sizeof(verdicts) / sizeof(verdicts[0]); i++)
		if (strcmp(verdicts[i].word, word) == 0) {
			(void)store_fail(&call->error, verdicts[i].code, "bucket \"%s\": %s",
					 bucket, verdicts[i].text);
			return;
		}
	if (reply->status == 403 || reply->status == 401)
		tell_denied(lane, call, word);
	else
		(void)store_fail(&call->error, BATON_E_UNAVAILABLE,
				 "bucket \"%s\": the server answers %d %s: %s", bucket,
				 reply->status, word, text[0] != '\0' ? text : "no more than that");
}

int s3_answer(struct s3_lane *lane, struct baton_call *call, size_t i)
{
	const struct http_reply *reply = &lane->replies[i];
	char word[64];

	if (reply->result != HTTP_OK) {
		(void)store_fail(&call->error, web_code_of(reply->result),
				 "bucket \"%s\": no answer: %s", lane->store->options.bucket,
				 reply->text);
		return reply->sent ? S3_UNKNOWN : S3_FAILED;
	}
	(void)xml_find(reply->body, reply->body_size, "Code", word, sizeof(word));
	if (reply->status >= 200 && reply->status <= 299)
		return S3_DONE;
	if (reply->status == 304)
		return S3_UNCHANGED;
	if (reply->status == 404 && strcmp(word, "NoSuchBucket") != 0)
		return S3_ABSENT;
	if (reply->status == 412 || reply->status == 409)
		return S3_CONFLICT;
	tell_refusal(lane, call, reply);
	return reply->status >= 500 ? S3_UNKNOWN : S3_FAILED;
}

bool s3_etag(const char *text, struct record_version *out)
{
	size_t n = strlen(text);

	*out = (struct record_version){.n = 0};
	if (n >= 2 && text[0] == '"' && text[n - 1] == '"')
		text++, n -= 2;
	if (n == 0 || n > RECORD_VERSION_MAX || strchr(text, '/') != NULL) /* W/"..." */
		return false;
	*out = record_version_of(text, n);
	return true;
}

int64_t s3_seconds(const char *text)
{
	struct tm tm = {0};
	const char *end = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);

	if (end == NULL)
		end = strptime(text, "%a, %d %b %Y %H:%M:%S", &tm);
	return end != NULL ? (int64_t)timegm(&tm) : -1;
}

uint64_t s3_age_ns(const char *written, const char *now)
{
	int64_t from = s3_seconds(written), to = s3_seconds(now);

	if (from < 0 || to < 0)
		return RECORD_NEVER;
	return to > from ? (uint64_t)(to - from) * CLOCK_NS_PER_S : 0;
}
