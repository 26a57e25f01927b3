/*
 * call.c: requests to the storage account, and what an answer means.
 *
 * What this must never do: call a write FAILED that may have been carried out, or still will be.
 */
#include <curl/curl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/azblob/azblob.h"
#include "store/web/web.h"

#define VERSION "2021-12-02"
/* The service refuses signatures that were made with a clock that is further off. */
#define CLOCK_OFF_S 900
#define RIGHTS "the role Storage Blob Data Contributor, or a SAS with sp=rcwdl"

/* ---- a request ---- */

/* Writes a key into a path. Every '/' but the first becomes "=s", because a storage account may
 * take what is before it for a directory. A '.' at the end becomes "=d", because the service drops
 * it. The layer's own keys have two digits or a '-' behind each '='. */
static void path_add_key(const char *key, char *out, size_t size)
{
	size_t used = 0, n = strlen(key), first = strcspn(key, "/");

	for (size_t i = 0; i < n && used + 3 < size; i++) {
		const char *instead = key[i] == '/' && i > first    ? "=s"
				      : key[i] == '.' && i + 1 == n ? "=d"
								    : NULL;

		if (instead != NULL)
			used += (size_t)snprintf(out + used, size - used, "%s", instead);
		else
			out[used++] = key[i];
	}
	out[used] = '\0';
}

/* Begins a request for the container. Returns how much of the path is used. */
static size_t ask_begin(const struct azblob_lane *lane, struct azblob_ask *ask, const char *method)
{
	ask->method = method;
	ask->body = NULL;
	ask->body_size = 0;
	ask->n_lines = 0;
	ask->headers[0] = NULL;
	ask->is_cut = false;
	return (size_t)snprintf(ask->path, sizeof(ask->path), "%s/%s", lane->endpoint.base,
				lane->store->options.container);
}

void azblob_ask(const struct azblob_lane *lane, struct azblob_ask *ask, const char *method,
		const char *key)
{
	const char *prefix = lane->store->prefix;
	size_t n = ask_begin(lane, ask, method), size = sizeof(ask->path);

	if (key == NULL)
		return;
	n += (size_t)snprintf(ask->path + n, size - n, "/%s%s", prefix,
			      prefix[0] != '\0' ? "/" : "");
	path_add_key(key, ask->path + n, size - n);
}

void azblob_ask_blob(const struct azblob_lane *lane, struct azblob_ask *ask, const char *method,
		     const char *blob)
{
	size_t n = ask_begin(lane, ask, method);
	char *out = ask->path + n;

	ask->is_cut = !http_encode(blob, out + 1, sizeof(ask->path) - n - 1);
	*out = '/';
	for (const char *from = out; !ask->is_cut && *from != '\0'; from++) {
		bool is_slash = strncmp(from, "%2F", 3) == 0;

		*out++ = (char)(is_slash ? '/' : *from);
		from += is_slash ? 2 : 0;
	}
	*out = '\0';
}

void azblob_ask_query(struct azblob_ask *ask, const char *name, const char *value)
{
	size_t n = strlen(ask->path), size = sizeof(ask->path);
	int used = snprintf(ask->path + n, size - n,
			    "%c%s=", strchr(ask->path, '?') == NULL ? '?' : '&', name);

	n += (size_t)used;
	ask->is_cut = ask->is_cut || n >= size || !http_encode(value, ask->path + n, size - n);
}

void azblob_ask_header(struct azblob_ask *ask, const char *format, ...)
{
	va_list args;

	if (ask->n_lines == AZBLOB_LINES) {
		ask->is_cut = true;
		return;
	}
	va_start(args, format);
	int n = vsnprintf(ask->lines[ask->n_lines], AZBLOB_LINE_MAX, format, args);

	va_end(args);
	ask->is_cut = ask->is_cut || n >= AZBLOB_LINE_MAX;
	ask->headers[ask->n_lines] = ask->lines[ask->n_lines];
	ask->headers[++ask->n_lines] = NULL;
}

/* Adds the login: a key signs the request, a SAS goes into its path, a token into a header. */
static void ask_finish(struct azblob_lane *lane, struct azblob_ask *ask)
{
	const char *account = lane->store->options.account;
	struct bytes to_sign = {0};
	char date[40], line[AZBLOB_LINE_MAX];
	size_t n = strlen(ask->path);

	azblob_date(clock_wall_ms() / 1000, date, sizeof(date));
	azblob_ask_header(ask, "x-ms-date: %s", date);
	azblob_ask_header(ask, "x-ms-version: " VERSION);
	if (lane->login == AZBLOB_SAS) {
		int used = snprintf(ask->path + n, sizeof(ask->path) - n, "%c%s",
				    strchr(ask->path, '?') == NULL ? '?' : '&', lane->secret);

		ask->is_cut = ask->is_cut || n + (size_t)used >= sizeof(ask->path);
	} else if (lane->login == AZBLOB_KEY) {
		azblob_string_to_sign(&to_sign, account, ask->method, ask->path, ask->headers,
				      ask->body_size);
		if (to_sign.has_failed ||
		    !azblob_sign(account, lane->secret, to_sign.at, to_sign.n, line, sizeof(line)))
			ask->is_cut = true;
		else
			azblob_ask_header(ask, "%s", line);
		bytes_done(&to_sign);
	} else {
		ask->headers[ask->n_lines] = lane->secret;
		ask->headers[ask->n_lines + 1] = NULL;
	}
}

void azblob_send(struct azblob_lane *lane, struct baton_call *call, struct azblob_ask *asks,
		 size_t n, struct http_reply *replies)
{
	struct http_request *requests = calloc(n, sizeof(*requests));
	bool is_cut = false;

	for (size_t i = 0; requests != NULL && i < n; i++) {
		ask_finish(lane, &asks[i]);
		is_cut = is_cut || asks[i].is_cut;
		requests[i] = (struct http_request){.method = asks[i].method,
						    .host = &lane->endpoint.host,
						    .path = asks[i].path,
						    .headers = asks[i].headers,
						    .body = asks[i].body,
						    .body_size = asks[i].body_size};
	}
	if (requests == NULL || is_cut) {
		for (size_t i = 0; i < n; i++)
			replies[i] = (struct http_reply){
				.result = requests == NULL ? HTTP_MEMORY : HTTP_UNTRUSTED,
				.text = "the request can't be made; check that the account key "
					"is in base64",
				.body = ""};
	} else {
		(void)http_call_all(lane->http, requests, n, call->deadline_ns, replies);
	}
	free(requests);
}

int azblob_call(struct azblob_lane *lane, struct baton_call *call, struct azblob_ask *ask,
		struct http_reply *reply)
{
	azblob_send(lane, call, ask, 1, reply);
	return reply->result == HTTP_OK ? 0 : -1;
}

/* ---- what an answer means ---- */

bool azblob_says(const struct http_reply *reply, const char *code)
{
	char said[64];

	return reply->result == HTTP_OK &&
	       strcmp(http_header(reply, "x-ms-error-code", said, sizeof(said)), code) == 0;
}

bool azblob_ahead_s(const struct http_reply *reply, int64_t *out)
{
	char date[64];
	time_t at = curl_getdate(http_header(reply, "Date", date, sizeof(date)), NULL);

	*out = (int64_t)at - clock_wall_ms() / 1000;
	return at > 0;
}

/* Writes when the SAS in use has ended, by the server's clock. False: it has not ended, or that
 * isn't known. */
static bool sas_has_ended(const struct azblob_lane *lane, const struct http_reply *reply, char *out,
			  size_t size)
{
	struct url_part query = {lane->secret, strlen(lane->secret)};
	char key[32], value[2048], date[64];
	time_t now = curl_getdate(http_header(reply, "Date", date, sizeof(date)), NULL);
	struct tm end = {0};

	while (url_next_option(&query, key, sizeof(key), value, sizeof(value)) == 1)
		if (strcmp(key, "se") == 0 && strptime(value, "%Y-%m-%dT%H:%M", &end) != NULL) {
			(void)snprintf(out, size, "%.30s", value);
			return now > 0 && timegm(&end) <= now;
		}
	return false;
}

/* Writes why we are not let in. The service and its emulators use different words for it, so this
 * judges mainly by what we know ourselves. */
static void tell_denied(const struct azblob_lane *lane, const struct http_reply *reply, char *out,
			size_t size)
{
	const struct azblob_options *o = &lane->store->options;
	char end[32];
	int64_t ahead_s;

	if (azblob_ahead_s(reply, &ahead_s) && (ahead_s > CLOCK_OFF_S || ahead_s < -CLOCK_OFF_S))
		(void)snprintf(out, size,
			       "this machine's clock is %lld s %s the service's: set it (NTP)",
			       (long long)(ahead_s > 0 ? ahead_s : -ahead_s),
			       ahead_s > 0 ? "behind" : "ahead of");
	else if (azblob_says(reply, "AccountIsDisabled"))
		(void)snprintf(out, size, "the account is disabled");
	else if (azblob_says(reply, "KeyBasedAuthenticationNotPermitted"))
		(void)snprintf(out, size, "the account takes no keys: say login=managed");
	else if (lane->login == AZBLOB_KEY)
		(void)snprintf(out, size,
			       "the key in %s is not one of account %s, or its firewall keeps this "
			       "machine out",
			       o->file_option, o->account);
	else if (lane->login == AZBLOB_SAS && sas_has_ended(lane, reply, end, sizeof(end)))
		(void)snprintf(out, size, "the SAS in %s has ended at %s: put a new one there",
			       o->file_option, end);
	else if (reply->status == 403 && !azblob_says(reply, "AuthenticationFailed"))
		(void)snprintf(out, size, "this login lacks a right: " RIGHTS);
	else if (lane->login == AZBLOB_SAS)
		(void)snprintf(out, size, "the SAS in %s is not one of account %s", o->file_option,
			       o->account);
	else
		(void)snprintf(out, size, "the token has ended, or is for another service");
}

/* Words of the service that call for an action of a person. */
static const struct {
	const char *said, *advice;
	int code;
} known[] = {
	{"ContainerNotFound", "make the container, or let this login make it", BATON_E_DENIED},
	{"ContainerBeingDeleted", "it is being deleted, which takes half a minute",
	 BATON_E_UNAVAILABLE},
	{"ContainerDisabled", "it was disabled", BATON_E_DENIED},
	{"BlobImmutableDueToPolicy",
	 "an immutability policy or a legal hold keeps records from being written: use a container "
	 "without one",
	 BATON_E_DENIED},
	{"BlobArchived",
	 "a lifecycle rule has archived a record: let no rule reach this container's elections",
	 BATON_E_DENIED},
	{"LeaseIdMissing",
	 "another program leases a record's blob: let it leave baton's blobs alone", BATON_E_BUSY},
	{"InvalidBlobType",
	 "a record's blob is of another type: use an empty container, or a prefix",
	 BATON_E_CORRUPT},
	{"AccountRequiresHttps", "let endpoint= begin with https://", BATON_E_DENIED},
	{"SecureTransferRequired", "let endpoint= begin with https://", BATON_E_DENIED},
	{"FeatureVersionMismatch", "use an account of kind StorageV2", BATON_E_UNSUPPORTED},
};

static void tell_status(struct azblob_lane *lane, const struct http_reply *reply,
			struct baton_error *err)
{
	const struct azblob_options *o = &lane->store->options;
	char said[64], advice[300] = "";
	int code =
		reply->status == 429 || reply->status == 503 ? BATON_E_BUSY : BATON_E_UNAVAILABLE;

	(void)http_header(reply, "x-ms-error-code", said, sizeof(said));
	if (reply->status == 401 || reply->status == 403) {
		code = BATON_E_DENIED;
		tell_denied(lane, reply, advice, sizeof(advice));
		if (lane->login != AZBLOB_KEY && lane->login != AZBLOB_SAS &&
		    (reply->status == 401 || azblob_says(reply, "AuthenticationFailed")))
			azblob_token_drop(lane);
	}
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(said, known[i].said) == 0) {
			code = known[i].code;
			(void)snprintf(advice, sizeof(advice), "%s", known[i].advice);
		}
	(void)store_fail(err, code, "container %s of account %s: the service says %d%s%s%s%s",
			 o->container, o->account, reply->status, said[0] != '\0' ? " " : "", said,
			 advice[0] != '\0' ? "; " : "", advice);
}

static void tell_unanswered(const struct azblob_lane *lane, const struct http_reply *reply,
			    struct baton_error *err)
{
	bool is_nowhere = strncmp(reply->text, "can't find the host", 19) == 0;

	(void)store_fail(err, web_code_of(reply->result), "%.180s%s", reply->text,
			 !is_nowhere                         ? ""
			 : lane->store->options.has_endpoint ? "; check endpoint="
							     : "; check the name of the "
							       "account; other clouds need "
							       "endpoint=");
}

int azblob_fail(struct azblob_lane *lane, struct baton_call *call, const struct http_reply *reply)
{
	struct baton_error error = {0};
	int status = reply->status;

	if (reply->result != HTTP_OK)
		tell_unanswered(lane, reply, &error);
	else
		tell_status(lane, reply, &error);
	if (call->error.code == 0)
		call->error = error;
	if (reply->result != HTTP_OK)
		return reply->sent ? BATON_OUTCOME_UNKNOWN : BATON_OUTCOME_FAILED;
	/* A refusal comes from the service itself. Any other answer may come from a proxy in
	 * between. */
	return status >= 400 && status < 500 && status != 408 ? BATON_OUTCOME_FAILED
							      : BATON_OUTCOME_UNKNOWN;
}

/* ---- the container ---- */

static void container_set(struct azblob_store *s, bool is_there)
{
	store_lock(&s->base);
	s->has_container = is_there;
	store_unlock(&s->base);
}

void azblob_container_is_gone(struct azblob_store *s)
{
	container_set(s, false);
}

/* Looks for the container with the right to list, which is needed anyhow. A login that may not make
 * the container works once the container has been made. */
int azblob_see_to_container(struct azblob_lane *lane, struct baton_call *call)
{
	struct azblob_store *s = lane->store;
	struct azblob_ask ask;
	struct http_reply reply;

	store_lock(&s->base);
	bool is_seen = s->has_container;

	store_unlock(&s->base);
	if (is_seen)
		return 0;
	azblob_ask(lane, &ask, "GET", NULL);
	azblob_ask_query(&ask, "comp", "list");
	azblob_ask_query(&ask, "maxresults", "1");
	azblob_ask_query(&ask, "restype", "container");
	(void)azblob_call(lane, call, &ask, &reply);
	if (azblob_says(&reply, "ContainerNotFound")) {
		azblob_ask(lane, &ask, "PUT", NULL);
		ask.body = "";
		azblob_ask_query(&ask, "restype", "container");
		(void)azblob_call(lane, call, &ask, &reply);
		if (reply.result == HTTP_OK && reply.status == 403) {
			(void)store_fail(&call->error, BATON_E_DENIED,
					 "there is no container %s in account %s, and this login "
					 "may not make it: make it, or name another one",
					 s->options.container, s->options.account);
			return -1;
		}
	}
	bool is_there = reply.result == HTTP_OK && (reply.status == 200 || reply.status == 201 ||
						    azblob_says(&reply, "ContainerAlreadyExists"));

	if (is_there)
		container_set(s, true);
	else
		(void)azblob_fail(lane, call, &reply);
	return is_there ? 0 : -1;
}
