/*
 * credentials.c: access keys. They are looked for as AWS' own tools do it, in this order:
 *
 *   1  AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN (not if the URL names a profile)
 *   2  a role for a token in a file (AWS_WEB_IDENTITY_TOKEN_FILE, AWS_ROLE_ARN): EKS
 *   3  a profile in the shared files
 *   4  the container's endpoint (AWS_CONTAINER_CREDENTIALS_*): ECS
 *   5  the instance's metadata, version 2: EC2
 *
 * The lanes share the keys. Minutes before the keys are over, lanes that no renewal waits for ask
 * for new ones. The renew lane uses the old keys as long as they last. What this must never do: put
 * a key, a secret or a token into a sentence.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/secret.h"
#include "base/web/json.h"
#include "base/web/xml.h"
#include "store/s3/s3.h"

#define FILE_MAX ((size_t)1 << 18)
#define EARLY_NS (300 * CLOCK_NS_PER_S)  /* how long before their end new keys are asked for */
#define REREAD_NS (60 * CLOCK_NS_PER_S)  /* files are read again, for they are replaced */
#define AGAIN_NS (5 * CLOCK_NS_PER_S)    /* after a failure */
#define MOMENT_NS (10 * CLOCK_NS_PER_S)  /* so late, the renew lane asks as well */
#define METADATA_NS (2 * CLOCK_NS_PER_S) /* on other machines no server answers there */
#define METADATA "http://169.254.169.254"
#define CONTAINER "http://169.254.170.2"
#define ROLES "/latest/meta-data/iam/security-credentials/"

/* 1: found; 0: not configured, so the next provider is asked; -1: err says why it can't be used. */
typedef int provider(struct s3_lane *lane, uint64_t deadline_ns, struct s3_keys *out,
		     struct baton_error *err);

static const char *variable(const char *name)
{
	const char *value = getenv(name);

	return value != NULL ? value : "";
}

/* ---- the environment ---- */

static int from_environment(struct s3_lane *lane, uint64_t deadline_ns, struct s3_keys *out,
			    struct baton_error *err)
{
	const char *token = variable("AWS_SESSION_TOKEN");

	(void)deadline_ns;
	if (lane->store->options.profile[0] != '\0' ||
	    lane->store->options.credentials_file[0] != '\0' ||
	    variable("AWS_ACCESS_KEY_ID")[0] == '\0' ||
	    variable("AWS_SECRET_ACCESS_KEY")[0] == '\0')
		return 0;
	if (!option_text(variable("AWS_ACCESS_KEY_ID"), out->id, sizeof(out->id)) ||
	    !option_text(variable("AWS_SECRET_ACCESS_KEY"), out->secret, sizeof(out->secret)) ||
	    (token[0] != '\0' && !option_text(token, out->token, sizeof(out->token))))
		return store_fail(err, BATON_E_DENIED,
				  "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY or AWS_SESSION_TOKEN "
				  "is too long");
	return 1;
}

/* ---- files ---- */

static bool read_whole(const char *path, struct bytes *out)
{
	char part[4096];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = 0;

	do {
		n = fd >= 0 ? read(fd, part, sizeof(part)) : -1;
	} while (n > 0 && bytes_add(out, part, (size_t)n, FILE_MAX));
	explicit_bzero(part, sizeof(part));
	if (fd >= 0)
		(void)close(fd);
	return fd >= 0 && n == 0 && out->at != NULL;
}

static void wipe_bytes(struct bytes *b)
{
	if (b->at != NULL)
		explicit_bzero(b->at, b->room);
	bytes_done(b);
}

/* The shared files, and the names of the profile in them. */
struct shared {
	struct bytes keys, config;
	char profile[S3_NAME_MAX], section[S3_NAME_MAX + 16];
};

static void shared_path(const char *set, const char *from, const char *usual, char *out,
			size_t size)
{
	if (set[0] != '\0' || variable(from)[0] != '\0')
		(void)snprintf(out, size, "%s", set[0] != '\0' ? set : variable(from));
	else
		(void)snprintf(out, size, "%s/.aws/%s", variable("HOME"), usual);
}

static void shared_read(struct shared *s, const struct s3_options *o)
{
	const char *profile = o->profile[0] != '\0' ? o->profile : variable("AWS_PROFILE");
	char path[2 * OPTION_PATH_MAX];

	(void)memset(s, 0, sizeof(*s));
	(void)snprintf(s->profile, sizeof(s->profile), "%s",
		       profile[0] != '\0' ? profile : "default");
	(void)snprintf(s->section, sizeof(s->section), "%s%s",
		       strcmp(s->profile, "default") == 0 ? "" : "profile ", s->profile);
	shared_path(o->credentials_file, "AWS_SHARED_CREDENTIALS_FILE", "credentials", path,
		    sizeof(path));
	(void)read_whole(path, &s->keys);
	shared_path("", "AWS_CONFIG_FILE", "config", path, sizeof(path));
	(void)read_whole(path, &s->config);
}

static void shared_done(struct shared *s)
{
	wipe_bytes(&s->keys);
	wipe_bytes(&s->config);
}

/* Looks into the credentials file first, then into the config file. */
static bool shared_get(const struct shared *s, const char *key, char *out, size_t size)
{
	return (s->keys.at != NULL &&
		s3_profile_get(s->keys.at, s->keys.n, s->profile, key, out, size)) ||
	       (s->config.at != NULL &&
		s3_profile_get(s->config.at, s->config.n, s->section, key, out, size));
}

static int from_role(struct s3_lane *lane, const char *role, const char *file, const char *session,
		     uint64_t deadline_ns, struct s3_keys *out, struct baton_error *err);

/* A profile without keys, which may name a role. */
static int from_profile_role(struct s3_lane *lane, const struct shared *s, uint64_t deadline_ns,
			     struct s3_keys *out, struct baton_error *err)
{
	static const char *const others[] = {"role_arn", "credential_process", "sso_session",
					     "sso_start_url"};
	char role[OPTION_PATH_MAX], file[OPTION_PATH_MAX], session[S3_NAME_MAX];

	if (shared_get(s, "role_arn", role, sizeof(role)) &&
	    shared_get(s, "web_identity_token_file", file, sizeof(file))) {
		(void)shared_get(s, "role_session_name", session, sizeof(session));
		return from_role(lane, role, file, session, deadline_ns, out, err);
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (shared_get(s, others[i], role, sizeof(role)))
			return store_fail(err, BATON_E_UNSUPPORTED,
					  "the profile \"%.60s\" has %s, which baton can't use: "
					  "name a profile with keys, or a role for a token in a "
					  "file (web_identity_token_file)",
					  s->profile, others[i]);
	if (lane->store->options.profile[0] == '\0' && variable("AWS_PROFILE")[0] == '\0' &&
	    lane->store->options.credentials_file[0] == '\0')
		return 0;
	return store_fail(err, BATON_E_DENIED,
			  "the profile \"%.60s\" has no aws_access_key_id and "
			  "aws_secret_access_key in the shared files, or these can't be read",
			  s->profile);
}

static int from_files(struct s3_lane *lane, uint64_t deadline_ns, struct s3_keys *out,
		      struct baton_error *err)
{
	struct shared s;
	int rc = 1;

	shared_read(&s, &lane->store->options);
	if (shared_get(&s, "aws_access_key_id", out->id, sizeof(out->id)) &&
	    shared_get(&s, "aws_secret_access_key", out->secret, sizeof(out->secret))) {
		(void)shared_get(&s, "aws_session_token", out->token, sizeof(out->token));
		out->refresh_ns = clock_boot_ns() + REREAD_NS;
	} else {
		rc = from_profile_role(lane, &s, deadline_ns, out, err);
	}
	shared_done(&s);
	return rc;
}

/* ---- by request ---- */

/* Sets the end of keys to a date. If the text isn't a date, the keys are over. */
static void set_end(struct s3_keys *keys, const char *date)
{
	int64_t left_s = s3_seconds(date) - clock_wall_ms() / 1000;
	uint64_t left_ns = left_s > 0 ? (uint64_t)left_s * CLOCK_NS_PER_S : 0;

	keys->end_ns = clock_boot_ns() + left_ns;
	keys->refresh_ns = keys->end_ns - (left_ns / 2 < EARLY_NS ? left_ns / 2 : EARLY_NS);
}

/* A service that hands out keys, and by when it must answer. */
struct service {
	const char *name, *base; /* for people; its address */
	struct http *http;
	uint64_t deadline_ns;
	struct baton_error *err;
};

/* Sends one request to the service. 0, or -1: err says why not. */
static int fetch_answer(const struct service *s, const char *method, const char *path,
			const char *header, const char *body, struct http_reply *reply)
{
	const char *headers[] = {header != NULL && header[0] != '\0' ? header : NULL, NULL};
	char start[OPTION_PATH_MAX], whole[2 * OPTION_PATH_MAX], code[S3_NAME_MAX];
	struct http_host host;
	struct http_request request = {.method = method,
				       .host = &host,
				       .path = whole,
				       .headers = headers,
				       .body = body,
				       .body_size = body != NULL ? strlen(body) : 0};

	if (!s3_parse_address(s->base, &host, start, sizeof(start)))
		return store_fail(s->err, BATON_E_DENIED,
				  "not a valid address of %s: say https://host", s->name);
	(void)snprintf(whole, sizeof(whole), "%s%s",
		       path[0] == '/' && start[1] == '\0' ? "" : start, path);
	if (http_call(s->http, &request, s->deadline_ns, reply) != HTTP_OK)
		return store_fail(s->err, BATON_E_UNAVAILABLE, "%s has no credentials for us: %s",
				  s->name, reply->text);
	(void)xml_find(reply->body, reply->body_size, "Code", code, sizeof(code));
	if (reply->status != 200)
		return store_fail(s->err, BATON_E_DENIED, "%s has no credentials for us: %d %.60s",
				  s->name, reply->status, code);
	return 0;
}

/* Reads keys from JSON, as containers and instances get it. */
static int read_json(const struct service *s, const struct http_reply *reply, struct s3_keys *out)
{
	json_t *all = js_parse(reply->body, reply->body_size);
	bool is_ok =
		option_text(js_text(all, "AccessKeyId"), out->id, sizeof(out->id)) &&
		option_text(js_text(all, "SecretAccessKey"), out->secret, sizeof(out->secret)) &&
		option_text(js_text(all, "Token"), out->token, sizeof(out->token));

	if (is_ok)
		set_end(out, js_text(all, "Expiration"));
	json_decref(all);
	if (!is_ok)
		(void)store_fail(s->err, BATON_E_DENIED,
				 "%s has no credentials for us: no keys in its answer", s->name);
	return is_ok ? 1 : -1;
}

static struct http *client(struct baton_error *err)
{
	struct http *http = http_new(&(struct http_config){.body_max = FILE_MAX});

	if (http == NULL)
		(void)store_fail(err, BATON_E_MEMORY, "no memory for a request");
	return http;
}

static void put_field(struct bytes *b, const char *name, const char *value)
{
	static const char plain[] = "-._~";

	bytes_print(b, "&%s=", name);
	for (; *value != '\0'; value++) {
		bool is_plain = (*value >= 'a' && *value <= 'z') ||
				(*value >= 'A' && *value <= 'Z') ||
				(*value >= '0' && *value <= '9') || strchr(plain, *value) != NULL;

		bytes_print(b, is_plain ? "%c" : "%%%02X", (unsigned char)*value);
	}
}

static int ask_role(const struct service *s, const struct bytes *body, struct s3_keys *out)
{
	struct http_reply reply = {.body = ""};
	char date[40];
	const struct {
		const char *name;
		char *to;
		size_t size;
	} parts[] = {{"AccessKeyId", out->id, sizeof(out->id)},
		     {"SecretAccessKey", out->secret, sizeof(out->secret)},
		     {"SessionToken", out->token, sizeof(out->token)},
		     {"Expiration", date, sizeof(date)}};

	if (fetch_answer(s, "POST", "/", "Content-Type: application/x-www-form-urlencoded",
			 body->at, &reply) != 0)
		return -1;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (!xml_find(reply.body, reply.body_size, parts[i].name, parts[i].to,
			      parts[i].size))
			return store_fail(s->err, BATON_E_DENIED,
					  "%s has no credentials for us: no %s in its answer",
					  s->name, parts[i].name);
	set_end(out, date);
	return 1;
}

static int from_role(struct s3_lane *lane, const char *role, const char *file, const char *session,
		     uint64_t deadline_ns, struct s3_keys *out, struct baton_error *err)
{
	const char *base = variable("AWS_ENDPOINT_URL_STS");
	char reason[SECRET_REASON_MAX], usual[2 * S3_NAME_MAX], *token = malloc(FILE_MAX);
	struct service sts = {"STS", base[0] != '\0' ? base : usual, NULL, deadline_ns, err};
	struct bytes body = {0};
	int rc = -1;

	(void)snprintf(usual, sizeof(usual), "https://sts.%s.amazonaws.com", lane->region);

	if (token == NULL)
		return store_fail(err, BATON_E_MEMORY, "no memory for a request");
	bytes_print(&body, "Action=AssumeRoleWithWebIdentity&Version=2011-06-15");
	put_field(&body, "RoleArn", role);
	put_field(&body, "RoleSessionName", session[0] != '\0' ? session : "baton");
	if (secret_read(file, token, FILE_MAX, reason) != 0) {
		(void)store_fail(err, BATON_E_DENIED, "%s", reason);
	} else {
		put_field(&body, "WebIdentityToken", token);
		sts.http = client(err);
		rc = sts.http != NULL && !body.has_failed ? ask_role(&sts, &body, out) : -1;
		http_free(sts.http);
	}
	explicit_bzero(token, FILE_MAX);
	free(token);
	wipe_bytes(&body);
	return rc;
}

static int from_web_identity(struct s3_lane *lane, uint64_t deadline_ns, struct s3_keys *out,
			     struct baton_error *err)
{
	const char *file = variable("AWS_WEB_IDENTITY_TOKEN_FILE");
	const char *role = variable("AWS_ROLE_ARN");

	if (file[0] == '\0' || role[0] == '\0' || lane->store->options.profile[0] != '\0' ||
	    lane->store->options.credentials_file[0] != '\0')
		return 0;
	return from_role(lane, role, file, variable("AWS_ROLE_SESSION_NAME"), deadline_ns, out,
			 err);
}

/* Without TLS, only addresses that stay on this machine are allowed. */
static bool is_container_host(const char *url)
{
	struct http_host host;
	char path[OPTION_PATH_MAX];
	static const char *const local[] = {"localhost", "::1", "169.254.170.2", "169.254.170.23",
					    "fd00:ec2::23"};

	if (!s3_parse_address(url, &host, path, sizeof(path)))
		return false;
	for (size_t i = 0; i < sizeof(local) / sizeof(local[0]); i++)
		if (strcmp(host.name, local[i]) == 0)
			return true;
	return host.tls || strncmp(host.name, "127.", 4) == 0;
}

static int from_container(struct s3_lane *lane, uint64_t deadline_ns, struct s3_keys *out,
			  struct baton_error *err)
{
	const char *relative = variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
	const char *full = variable("AWS_CONTAINER_CREDENTIALS_FULL_URI");
	const char *file = variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
	char header[S3_TOKEN_MAX] = "", token[S3_TOKEN_MAX - 32] = "", reason[SECRET_REASON_MAX];
	struct http_reply reply = {.body = ""};

	(void)lane;
	if (relative[0] == '\0' && full[0] == '\0')
		return 0;
	if (relative[0] == '\0' && !is_container_host(full))
		return store_fail(err, BATON_E_DENIED,
				  "AWS_CONTAINER_CREDENTIALS_FULL_URI neither begins with https:// "
				  "nor names this machine");
	if (file[0] != '\0' && secret_read(file, token, sizeof(token), reason) != 0)
		return store_fail(err, BATON_E_DENIED, "%s", reason);
	if (file[0] == '\0')
		(void)snprintf(token, sizeof(token), "%s",
			       variable("AWS_CONTAINER_AUTHORIZATION_TOKEN"));
	if (token[0] != '\0')
		(void)snprintf(header, sizeof(header), "Authorization: %s", token);
	struct service container = {"the container's endpoint",
				    relative[0] != '\0' ? CONTAINER : full, client(err),
				    deadline_ns, err};
	int rc = container.http == NULL
			 ? -1
			 : fetch_answer(&container, "GET", relative, header, NULL, &reply);

	if (rc == 0)
		rc = read_json(&container, &reply, out);
	explicit_bzero(header, sizeof(header));
	explicit_bzero(token, sizeof(token));
	http_free(container.http);
	return rc;
}

static int ask_instance(const struct service *s, struct s3_keys *out)
{
	char header[S3_LINE_MAX], path[OPTION_PATH_MAX];
	struct http_reply reply = {.body = ""};

	if (fetch_answer(s, "PUT", "/latest/api/token", "X-aws-ec2-metadata-token-ttl-seconds: 60",
			 NULL, &reply) != 0)
		return -1;
	(void)snprintf(header, sizeof(header), "X-aws-ec2-metadata-token: %.*s",
		       (int)strcspn(reply.body, "\r\n"), reply.body);
	if (fetch_answer(s, "GET", ROLES, header, NULL, &reply) != 0)
		return -1;
	(void)snprintf(path, sizeof(path), ROLES "%.*s", (int)strcspn(reply.body, "\r\n"),
		       reply.body);
	if (fetch_answer(s, "GET", path, header, NULL, &reply) != 0)
		return -1;
	return read_json(s, &reply, out);
}

static int from_instance(struct s3_lane *lane, uint64_t deadline_ns, struct s3_keys *out,
			 struct baton_error *err)
{
	const char *base = variable("AWS_EC2_METADATA_SERVICE_ENDPOINT");
	uint64_t limit_ns = clock_boot_ns() + METADATA_NS;

	(void)lane;
	if (strcmp(variable("AWS_EC2_METADATA_DISABLED"), "true") == 0)
		return 0;
	struct service metadata = {"the instance's metadata service",
				   base[0] != '\0' ? base : METADATA, client(err),
				   limit_ns < deadline_ns ? limit_ns : deadline_ns, err};
	int rc = metadata.http != NULL ? ask_instance(&metadata, out) : -1;

	http_free(metadata.http);
	/* If no service answers, this is not an instance of EC2. */
	return rc < 0 && err->code == BATON_E_UNAVAILABLE && base[0] == '\0' ? 0 : rc;
}

/* ---- which of them ---- */

static int find_keys(struct s3_lane *lane, uint64_t deadline_ns, struct s3_keys *out,
		     struct baton_error *err)
{
	static provider *const providers[] = {from_environment, from_web_identity, from_files,
					      from_container, from_instance};
	int rc = 0;

	for (size_t i = 0; i < sizeof(providers) / sizeof(providers[0]) && rc == 0; i++) {
		(void)memset(out, 0, sizeof(*out));
		out->refresh_ns = out->end_ns = RECORD_NEVER;
		rc = providers[i](lane, deadline_ns, out, err);
	}
	if (rc == 0)
		(void)store_fail(err, BATON_E_DENIED,
				 "no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
				 "or keep a profile in ~/.aws/credentials, or give this machine a "
				 "role; baton-s3(7) has the order");
	return rc == 1 ? 0 : -1;
}

/* The region is from region=, the environment or the profile. For a server that is not AWS' any
 * region does. */
static bool find_region(const struct s3_store *s, char *out, size_t size, struct baton_error *err)
{
	struct shared files;

	if (option_text(s->options.region, out, size) ||
	    option_text(variable("AWS_REGION"), out, size) ||
	    option_text(variable("AWS_DEFAULT_REGION"), out, size))
		return true;
	shared_read(&files, &s->options);
	bool is_found = shared_get(&files, "region", out, size);

	shared_done(&files);
	if (is_found || (s->options.has_endpoint && option_text("us-east-1", out, size)))
		return true;
	(void)store_fail(
		err, BATON_E_URL,
		"no region: say region= in the store's URL, or set AWS_REGION, or region in "
		"the profile");
	return false;
}

/* ---- shared by the lanes ---- */

/* Copies the keys that are known to the lane. True: they can be used. *is_due: new ones are to be
 * asked for. */
static bool take_keys(struct s3_lane *lane, bool *is_due)
{
	struct s3_store *s = lane->store;
	uint64_t now_ns = clock_boot_ns();

	store_lock(&s->base);
	bool has = s->has_keys && now_ns < s->keys.end_ns;
	/* While the keys last, the renew lane leaves it to the others to ask for new ones. */
	bool is_urgent = lane->kind != BATON_LANE_RENEW || now_ns + MOMENT_NS > s->keys.end_ns;

	*is_due = !has || (is_urgent && now_ns >= s->keys.refresh_ns);
	if (has) {
		lane->keys = s->keys;
		(void)memcpy(lane->region, s->region, sizeof(lane->region));
	}
	store_unlock(&s->base);
	return has;
}

static void replace_keys(struct s3_store *s, const struct s3_keys *keys, const char *region)
{
	store_lock(&s->base);
	if (keys != NULL) {
		s->keys = *keys;
		(void)memcpy(s->region, region, sizeof(s->region));
		s->has_keys = true;
	} else { /* the old keys are used on, and after a while new ones are tried again */
		s->keys.refresh_ns = clock_boot_ns() + AGAIN_NS;
	}
	store_unlock(&s->base);
}

bool s3_credentials(struct s3_lane *lane, struct baton_call *call)
{
	struct s3_store *s = lane->store;
	uint64_t now_ns = clock_boot_ns();
	struct baton_error error = {0};
	struct s3_keys keys;
	bool is_due;

	if (take_keys(lane, &is_due) && !is_due)
		return true;
	if (!store_turn_take(&s->turn, call->deadline_ns, lane->kind == BATON_LANE_RENEW)) {
		(void)store_fail(&call->error, BATON_E_TIMEOUT, "no credentials in time");
		return false;
	}
	bool has = take_keys(lane, &is_due); /* another lane may have been faster */
	/* If the old keys still last, half of the time is left for the request itself. */
	uint64_t left_ns = call->deadline_ns > now_ns ? call->deadline_ns - now_ns : 0;

	if (is_due) {
		bool is_found =
			find_region(s, lane->region, sizeof(lane->region), &error) &&
			find_keys(lane, now_ns + (has ? left_ns / 2 : left_ns), &keys, &error) == 0;

		if (is_found || has)
			replace_keys(s, is_found ? &keys : NULL, lane->region);
		has = take_keys(lane, &is_due);
		if (!has && error.code == 0)
			(void)store_fail(&error, BATON_E_DENIED,
					 "the credentials have expired, and there are no newer "
					 "ones: renew them where they come from");
	}
	store_turn_give(&s->turn);
	explicit_bzero(&keys, sizeof(keys));
	if (!has)
		call->error = error;
	return has;
}

void s3_credentials_doubt(struct s3_lane *lane, bool are_refused)
{
	struct s3_store *s = lane->store;
	uint64_t later_ns = clock_boot_ns() + REREAD_NS;

	store_lock(&s->base);
	bool is_same = strcmp(s->keys.secret, lane->keys.secret) == 0 &&
		       strcmp(s->keys.token, lane->keys.token) == 0;

	if (is_same && are_refused)
		s->has_keys = false;
	else if (is_same && s->keys.refresh_ns > later_ns)
		s->keys.refresh_ns = later_ns;
	store_unlock(&s->base);
}
