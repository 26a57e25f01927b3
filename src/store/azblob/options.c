/*
 * options.c: the URL of an Azure Blob store.
 *
 *     azblob://account/container[/prefix][?option=value&...]
 *
 * A URL that isn't valid is refused with a sentence. Secrets stand in files, never in the URL,
 * because URLs are shown in logs and lists of processes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/azblob/azblob.h"

#define EXAMPLE "azblob://account/container"
#define CLOUD "blob.core.windows.net"
#define AUTHORITY "https://login.microsoftonline.com"
#define MACHINE "http://169.254.169.254"

static const char lower[] = "abcdefghijklmnopqrstuvwxyz0123456789-";

/* ---- where ---- */

bool azblob_endpoint_parse(const char *text, struct azblob_endpoint *out)
{
	struct url url;
	struct url_part scheme;

	if (!url_split(text, &url) || !url.has_authority || url.query.n > 0 ||
	    url.path.n > AZBLOB_BASE_MAX)
		return false;
	scheme = url.scheme;
	*out = (struct azblob_endpoint){.host = {.tls = scheme.n == strlen("https")}};
	if (strncmp(scheme.at, "https", scheme.n) != 0 || scheme.n < strlen("http"))
		return false;
	(void)snprintf(out->host.port, sizeof(out->host.port), "%s", out->host.tls ? "443" : "80");
	if (url_next_host(&url.authority, out->host.name, sizeof(out->host.name), out->host.port) !=
		    1 ||
	    url.authority.n > 0)
		return false;
	while (url.path.n > 0 && url.path.at[url.path.n - 1] == '/')
		url.path.n--;
	(void)snprintf(out->base, sizeof(out->base), "%.*s", (int)url.path.n, url.path.at);
	return true;
}

/* Whether the text can stand in a path as it is. */
static bool is_name(const char *text)
{
	size_t n = strlen(text);

	return n >= 3 && n <= AZBLOB_NAME_MAX && strspn(text, lower) == n && text[0] != '-' &&
	       text[n - 1] != '-' && strstr(text, "--") == NULL;
}

/* ---- options ---- */

static bool set_file(struct azblob_options *o, int login, const char *option, const char *value)
{
	if (o->file[0] != '\0' || !option_path(value, o->file, sizeof(o->file)))
		return false;
	o->login = login;
	o->file_option = option;
	return true;
}

static bool set_login(struct azblob_options *o, const char *value)
{
	o->has_login = true;
	o->login = strcmp(value, "workload") == 0 ? AZBLOB_WORKLOAD : AZBLOB_MANAGED;
	return o->login == AZBLOB_WORKLOAD || strcmp(value, "managed") == 0;
}

static bool set_mode(struct azblob_options *o, const char *value)
{
	bool is_lease = strcmp(value, "bloblease") == 0;

	o->record->locks = is_lease ? RECORD_LOCKS_DURATION : RECORD_LOCKS_NONE;
	return is_lease || strcmp(value, "record") == 0;
}

#define A_LOGIN "the full path of one file: key_file, sas_file or connection_file"

static const struct option_known known[] = {
	{"endpoint", "http://host:port/path or https://host:port/path"},
	{"key_file", A_LOGIN},
	{"sas_file", A_LOGIN},
	{"connection_file", A_LOGIN},
	{"login", "workload or managed"},
	{"client_id", OPTION_IS_TEXT(AZBLOB_ID_MAX)},
	{"tenant_id", OPTION_IS_TEXT(AZBLOB_ID_MAX)},
	{"ca", OPTION_IS_PATH},
	{"mode", "record or bloblease"},
	{"blob",
	 "the name of a blob: " OPTION_IS_TEXT(AZBLOB_BASE_MAX) ", without a '/' at the front"},
	{"prefix", OPTION_IS_NAMES(RECORD_PREFIX_MAX)},
	{"poll", OPTION_IS_POLL},
	{NULL, NULL},
};

static bool set_option(void *options, const char *key, const char *value)
{
	struct azblob_options *o = options;

	if (strcmp(key, "key_file") == 0)
		return set_file(o, AZBLOB_KEY, "key_file=", value);
	if (strcmp(key, "sas_file") == 0)
		return set_file(o, AZBLOB_SAS, "sas_file=", value);
	if (strcmp(key, "connection_file") == 0)
		return set_file(o, AZBLOB_CONNECTION, "connection_file=", value);
	if (strcmp(key, "login") == 0)
		return set_login(o, value);
	if (strcmp(key, "mode") == 0)
		return set_mode(o, value);
	if (strcmp(key, "blob") == 0)
		return value[0] != '/' && option_text(value, o->blob, sizeof(o->blob));
	if (strcmp(key, "client_id") == 0)
		return option_text(value, o->client_id, sizeof(o->client_id));
	if (strcmp(key, "tenant_id") == 0)
		return option_text(value, o->tenant_id, sizeof(o->tenant_id));
	if (strcmp(key, "ca") == 0)
		return option_path(value, o->ca, sizeof(o->ca));
	if (strcmp(key, "endpoint") == 0) {
		o->has_endpoint = true;
		return azblob_endpoint_parse(value, &o->endpoint);
	}
	return record_option(o->record, key, value);
}

static const struct option_list options = {
	.store = "an Azure Blob store",
	.page = AZBLOB_PAGE,
	.known = known,
	.set = set_option,
};

/* Refuses options that people try, and that would show a secret to any reader of the URL. */
static int refuse_secrets(struct url_part query, struct baton_error *err)
{
	static const char *const secrets[][2] = {
		{"key", "key_file="},
		{"account_key", "key_file="},
		{"sas", "sas_file="},
		{"sig", "sas_file="},
		{"connection_string", "connection_file="},
		{"token", "login=workload or login=managed"},
		{"password", "key_file="},
	};
	char key[64], value[OPTION_PATH_MAX];
	int got;

	while ((got = url_next_option(&query, key, sizeof(key), value, sizeof(value))) != 0) {
		for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++)
			if (got == 1 && strcmp(key, secrets[i][0]) == 0)
				return store_fail(err, BATON_E_URL,
						  "a secret must not stand in a URL (%s=): put it "
						  "in a file of its own, and say %s",
						  key, secrets[i][1]);
		if (got < 0)
			return 0; /* option_each() says so */
	}
	return 0;
}

/* ---- tokens: the platform's environment variables ---- */

static void set_default(const char *variable, char *out, size_t size)
{
	const char *value = getenv(variable);

	if (out[0] == '\0' && value != NULL && value[0] != '\0')
		(void)option_text(value, out, size);
}

static int set_authority(struct azblob_options *o, const char *variable, const char *otherwise,
			 struct baton_error *err)
{
	const char *value = getenv(variable);

	if (value == NULL || value[0] == '\0')
		value = otherwise;
	if (!azblob_endpoint_parse(value, &o->authority))
		return store_fail(err, BATON_E_URL, "%s is not a valid URL", variable);
	if (o->login == AZBLOB_WORKLOAD && !o->authority.host.tls)
		return store_fail(err, BATON_E_URL, "%s does not begin with https://", variable);
	return 0;
}

static int find_workload(struct azblob_options *o, struct baton_error *err)
{
	set_default("AZURE_FEDERATED_TOKEN_FILE", o->file, sizeof(o->file));
	set_default("AZURE_TENANT_ID", o->tenant_id, sizeof(o->tenant_id));
	o->file_option = "AZURE_FEDERATED_TOKEN_FILE";
	if (o->file[0] == '\0' || o->client_id[0] == '\0' || o->tenant_id[0] == '\0')
		return store_fail(
			err, BATON_E_URL,
			"AZURE_FEDERATED_TOKEN_FILE, AZURE_CLIENT_ID or AZURE_TENANT_ID is "
			"missing in the environment; a workload identity needs all three");
	return set_authority(o, "AZURE_AUTHORITY_HOST", AUTHORITY, err);
}

static int find_identity(struct azblob_options *o, struct baton_error *err)
{
	const char *file = getenv("AZURE_FEDERATED_TOKEN_FILE");

	if (o->file[0] != '\0')
		return o->has_login ? store_fail(err, BATON_E_URL,
						 "login= and %s are two logins: say one of them",
						 o->file_option)
				    : 0;
	if (!o->has_login)
		o->login = file != NULL && file[0] != '\0' ? AZBLOB_WORKLOAD : AZBLOB_MANAGED;
	set_default("AZURE_CLIENT_ID", o->client_id, sizeof(o->client_id));
	if (o->endpoint.host.name[0] != '\0' && !o->endpoint.host.tls)
		return store_fail(err, BATON_E_URL,
				  "a token is sent by TLS only: let endpoint= begin with https://, "
				  "or say key_file=");
	if (o->login == AZBLOB_WORKLOAD)
		return find_workload(o, err);
	set_default("IDENTITY_HEADER", o->identity_header, sizeof(o->identity_header));
	return o->identity_header[0] != '\0'
		       ? set_authority(o, "IDENTITY_ENDPOINT", "", err)
		       : set_authority(o, "AZURE_POD_IDENTITY_AUTHORITY_HOST", MACHINE, err);
}

/* ---- the URL ---- */

static int parse_path(struct azblob_options *o, struct url_part path, struct baton_error *err)
{
	char text[AZBLOB_NAME_MAX + RECORD_PREFIX_MAX + 3];

	if (path.n < 2 ||
	    !url_decode((struct url_part){path.at + 1, path.n - 1}, text, sizeof(text)))
		return store_fail(err, BATON_E_URL,
				  "the URL names no container; say " EXAMPLE "[/prefix]");
	char *prefix = strchr(text, '/');

	if (prefix != NULL)
		*prefix++ = '\0';
	if (!is_name(text))
		return store_fail(err, BATON_E_URL,
				  "\"%.63s\" is not the name of a container: 3 to 63 lower-case "
				  "letters, digits and single '-'",
				  text);
	(void)snprintf(o->container, sizeof(o->container), "%.63s", text);
	if (prefix != NULL && prefix[0] != '\0' && !record_option(o->record, "prefix", prefix))
		return store_fail(err, BATON_E_URL,
				  "\"%.60s\" can't stand in front of keys: letters, digits and "
				  "-_./, and no '/' at the end",
				  prefix);
	return 0;
}

static int parse_account(struct azblob_options *o, struct url_part part, struct baton_error *err)
{
	if (part.n > 0 && memchr(part.at, '@', part.n) != NULL)
		return store_fail(err, BATON_E_URL,
				  "a secret must not stand in a URL: put the account key in a file "
				  "of its own, and say key_file=");
	if (!url_decode(part, o->account, sizeof(o->account)) || !is_name(o->account))
		return store_fail(err, BATON_E_URL,
				  "the URL names no storage account; say " EXAMPLE
				  ", and endpoint= for the address of another cloud");
	return 0;
}

int azblob_options_parse(struct azblob_options *o, const char *text, struct baton_error *err)
{
	struct url url;
	bool had_prefix;

	if (!url_split(text, &url) || !url.has_authority) {
		(void)store_fail(err, BATON_E_URL,
				 "not a valid URL of an Azure Blob store; say " EXAMPLE
				 ", and write special characters as %%XX");
		return BATON_E_URL;
	}
	if (parse_account(o, url.authority, err) != 0 || refuse_secrets(url.query, err) != 0 ||
	    parse_path(o, url.path, err) != 0)
		return BATON_E_URL;
	had_prefix = o->record->prefix[0] != '\0';
	char prefix[RECORD_PREFIX_MAX + 1];

	(void)snprintf(prefix, sizeof(prefix), "%s", o->record->prefix);
	if (option_each(url.query, &options, o, err) != 0)
		return BATON_E_URL;
	if (had_prefix && strcmp(prefix, o->record->prefix) != 0) {
		(void)store_fail(err, BATON_E_URL,
				 "there are two prefixes, one of them in the path");
		return BATON_E_URL;
	}
	if (o->blob[0] != '\0' && o->record->locks == RECORD_LOCKS_NONE) {
		(void)store_fail(err, BATON_E_URL, "blob= is the lock of mode=bloblease: say both");
		return BATON_E_URL;
	}
	if (find_identity(o, err) != 0)
		return BATON_E_URL;
	if (!o->has_endpoint) {
		o->endpoint = (struct azblob_endpoint){.host = {.port = "443", .tls = true}};
		(void)snprintf(o->endpoint.host.name, sizeof(o->endpoint.host.name), "%s." CLOUD,
			       o->account);
	}
	return BATON_OK;
}
