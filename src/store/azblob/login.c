/*
 * login.c: our login to the storage account. Files are read for every call, because keys and SAS
 * are replaced while we run. A connection string also says where the account is.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/secret.h"
#include "store/azblob/azblob.h"

#define CLOUD "core.windows.net"

/* Finds a value in "Name=value;Name=value". Returns its length; -1: there is no such name. Values
 * may have a '='. */
static int setting_of(const char *text, const char *name, const char **value)
{
	size_t n = strlen(name);

	while (*text != '\0') {
		size_t size = strcspn(text, ";");

		if (size > n && text[n] == '=' && strncmp(text, name, n) == 0) {
			*value = text + n + 1;
			return (int)(size - n - 1);
		}
		text += size;
		text += strspn(text, ";");
	}
	return -1;
}

/* The address in a connection string: BlobEndpoint, or one made from the account and a suffix. */
static bool connection_endpoint(const char *text, const char *account, struct azblob_endpoint *out)
{
	const char *value, *protocol;
	char url[AZBLOB_BASE_MAX + HTTP_NAME_MAX + 16];
	int n = setting_of(text, "BlobEndpoint", &value);

	if (n >= 0) {
		(void)snprintf(url, sizeof(url), "%.*s", n, value);
		return azblob_endpoint_parse(url, out);
	}
	int n_protocol = setting_of(text, "DefaultEndpointsProtocol", &protocol);

	n = setting_of(text, "EndpointSuffix", &value);
	(void)snprintf(url, sizeof(url), "%.*s://%s.blob.%.*s", n_protocol > 0 ? n_protocol : 5,
		       n_protocol > 0 ? protocol : "https", account, n > 0 ? n : (int)strlen(CLOUD),
		       n > 0 ? value : CLOUD);
	return azblob_endpoint_parse(url, out);
}

/* Takes the connection string apart. The lane's secret is then only the key or the SAS. */
static int login_connection(struct azblob_lane *lane, struct baton_call *call)
{
	const struct azblob_options *o = &lane->store->options;
	const char *account, *secret;
	char *text = lane->secret;
	int n = setting_of(text, "AccountName", &account);

	if (n >= 0 &&
	    (strlen(o->account) != (size_t)n || strncmp(account, o->account, (size_t)n) != 0))
		return store_fail(&call->error, BATON_E_DENIED,
				  "the connection string is of another account than %s, which the "
				  "URL names",
				  o->account);
	if (!o->has_endpoint && !connection_endpoint(text, o->account, &lane->endpoint))
		return store_fail(&call->error, BATON_E_DENIED,
				  "the address in the connection string can't be read");
	lane->login = AZBLOB_KEY;
	n = setting_of(text, "AccountKey", &secret);
	if (n < 0) {
		lane->login = AZBLOB_SAS;
		n = setting_of(text, "SharedAccessSignature", &secret);
	}
	if (n <= 0)
		return store_fail(&call->error, BATON_E_DENIED,
				  "the connection string has neither AccountKey nor "
				  "SharedAccessSignature: copy it whole from the account's page");
	(void)memmove(text, secret, (size_t)n);
	text[n] = '\0';
	return 0;
}

/* A SAS is appended to every query as it is, so it must have no other characters in it. */
static int login_check_sas(struct azblob_lane *lane, struct baton_call *call)
{
	char *text = lane->secret;

	if (text[0] == '?')
		(void)memmove(text, text + 1, strlen(text));
	for (const char *c = text; *c != '\0'; c++)
		if ((unsigned char)*c <= ' ' || (unsigned char)*c >= 0x7f || *c == '#')
			text[0] = '\0';
	if (strstr(text, "sig=") == NULL)
		return store_fail(&call->error, BATON_E_DENIED,
				  "%s has no SAS in it: that is sv=...&sig=..., in one line",
				  lane->store->options.file_option);
	return 0;
}

int azblob_log_in(struct azblob_lane *lane, struct baton_call *call)
{
	const struct azblob_options *o = &lane->store->options;
	char reason[SECRET_REASON_MAX];

	lane->endpoint = o->endpoint;
	lane->login = o->login;
	if (o->login == AZBLOB_WORKLOAD || o->login == AZBLOB_MANAGED)
		return azblob_token(lane, call);
	if (secret_read(o->file, lane->secret, sizeof(lane->secret), reason) != 0)
		return store_fail(&call->error, BATON_E_DENIED, "%s", reason);
	if (o->login == AZBLOB_CONNECTION && login_connection(lane, call) != 0)
		return -1;
	return lane->login == AZBLOB_SAS ? login_check_sas(lane, call) : 0;
}
