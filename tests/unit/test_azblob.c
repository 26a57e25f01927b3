/*
 * test_azblob.c: the parts of the Azure Blob adapter that need no server: URLs, which secrets are
 * refused in them, and what is signed with the account key. The form of the texts to sign is that
 * of Microsoft's documentation of the service; Azurite accepts what is signed so
 * (tests/azblob/run).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/azblob/azblob.h"

/* ---- URLs ---- */

static int parse(struct azblob_options *o, struct record_options *record, const char *url,
		 struct baton_error *err)
{
	*record = (struct record_options){.poll_ms = 2000};
	*o = (struct azblob_options){.record = record};
	*err = (struct baton_error){0};
	return azblob_options_parse(o, url, err);
}

static void test_url(void **state)
{
	struct azblob_options o;
	struct record_options r;
	struct baton_error err;

	(void)state;
	assert_int_equal(parse(&o, &r, "azblob://acct/box?key_file=/k", &err), BATON_OK);
	assert_string_equal(o.endpoint.host.name, "acct.blob.core.windows.net");
	assert_string_equal(o.endpoint.host.port, "443");
	assert_true(o.endpoint.host.tls);
	assert_string_equal(r.prefix, "");
	assert_int_equal(r.locks, RECORD_LOCKS_NONE);
	assert_int_equal(parse(&o, &r,
			       "azblob://acct/box/my/app?endpoint=http://[::1]:10000/acct/"
			       "&sas_file=/s&mode=bloblease&blob=a/b&poll=500&ca=/c",
			       &err),
			 BATON_OK);
	assert_string_equal(o.container, "box");
	assert_string_equal(r.prefix, "my/app");
	assert_string_equal(o.endpoint.host.name, "::1");
	assert_string_equal(o.endpoint.base, "/acct");
	assert_false(o.endpoint.host.tls);
	assert_int_equal(o.login, AZBLOB_SAS);
	assert_string_equal(o.blob, "a/b");
	assert_int_equal(r.locks, RECORD_LOCKS_DURATION);
}

/* Each with a word of the sentence that refuses it. */
static const char *const bad[][2] = {
	{"azblob:acct/box", "not a valid URL"},
	{"azblob://acct", "no container"},
	{"azblob://acct/ab", "not the name of a container"},
	{"azblob://acct/Box", "not the name of a container"},
	{"azblob://acct/b--x", "not the name of a container"},
	{"azblob://acct/box/a//b?key_file=/k", "in front of keys"},
	{"azblob://acct/box/a?prefix=b&key_file=/k", "two prefixes"},
	{"azblob://a_b/box", "no storage account"},
	{"azblob://acct:s3cr3t@x/box", "key_file="},
	{"azblob://acct/box?key=s3cr3t", "key_file="},
	{"azblob://acct/box?account_key=s3cr3t", "key_file="},
	{"azblob://acct/box?sv=1&sig=s3cr3t", "sas_file="},
	{"azblob://acct/box?connection_string=s3cr3t", "connection_file="},
	{"azblob://acct/box?key_file=k", "key_file"},
	{"azblob://acct/box?key_file=/k&sas_file=/s", "sas_file"},
	{"azblob://acct/box?key_file=/k&login=managed", "two logins"},
	{"azblob://acct/box?login=other", "login"},
	{"azblob://acct/box?login=workload", "AZURE_FEDERATED_TOKEN_FILE"},
	{"azblob://acct/box?login=managed&endpoint=http://x", "TLS only"},
	{"azblob://acct/box?key_file=/k&endpoint=ftp://x", "endpoint"},
	{"azblob://acct/box?key_file=/k&mode=other", "mode"},
	{"azblob://acct/box?key_file=/k&blob=x", "mode=bloblease"},
	{"azblob://acct/box?key_file=/k&nonsense=1", "nonsense"},
};

static void test_bad_urls(void **state)
{
	struct azblob_options o;
	struct record_options r;
	struct baton_error err;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (parse(&o, &r, bad[i][0], &err) != BATON_E_URL ||
		    strstr(err.text, bad[i][1]) == NULL || strstr(err.text, "s3cr3t") != NULL)
			fail_msg("%s: %s", bad[i][0], err.text);
	}
}

/* What the platform's variables say. */
static void test_identity(void **state)
{
	struct azblob_options o;
	struct record_options r;
	struct baton_error err;

	(void)state;
	assert_int_equal(parse(&o, &r, "azblob://acct/box", &err), BATON_OK);
	assert_int_equal(o.login, AZBLOB_MANAGED);
	assert_string_equal(o.authority.host.name, "169.254.169.254");
	(void)setenv("IDENTITY_ENDPOINT", "http://localhost:4141/msi/token", 1);
	(void)setenv("IDENTITY_HEADER", "h", 1);
	assert_int_equal(parse(&o, &r, "azblob://acct/box", &err), BATON_OK);
	assert_string_equal(o.authority.base, "/msi/token");
	(void)setenv("AZURE_FEDERATED_TOKEN_FILE", "/token", 1);
	(void)setenv("AZURE_CLIENT_ID", "c", 1);
	(void)setenv("AZURE_TENANT_ID", "t", 1);
	assert_int_equal(parse(&o, &r, "azblob://acct/box", &err), BATON_OK);
	assert_int_equal(o.login, AZBLOB_WORKLOAD);
	assert_string_equal(o.authority.host.name, "login.microsoftonline.com");
	(void)setenv("AZURE_AUTHORITY_HOST", "http://plain", 1);
	assert_int_equal(parse(&o, &r, "azblob://acct/box", &err), BATON_E_URL);
	assert_non_null(strstr(err.text, "https://"));
}

/* ---- SharedKey ---- */

static void check_signed(const char *account, const char *method, const char *path,
			 const char *const *headers, size_t size, const char *wanted)
{
	struct bytes text = {0};

	azblob_string_to_sign(&text, account, method, path, headers, size);
	assert_false(text.has_failed);
	assert_string_equal(text.at, wanted);
	bytes_done(&text);
}

static void test_string_to_sign(void **state)
{
	/* Get Container Metadata, 2015-02-21: no Content-Length where there is no body. */
	const char *const metadata[] = {"x-ms-version: 2015-02-21",
					"x-ms-date: Fri, 26 Jun 2015 23:39:12 GMT", NULL};
	const char *const put[] = {"x-ms-version: 2021-12-02", "x-ms-blob-type: BlockBlob",
				   "If-None-Match: *", "x-ms-date: D", NULL};
	const char *const renew[] = {"If-Match: \"0x8D\"", "x-ms-lease-id: G",
				     "x-ms-lease-action: renew", NULL};

	(void)state;
	check_signed("myaccount", "GET", "/mycontainer?restype=container&comp=metadata&timeout=20",
		     metadata, 0,
		     "GET\n\n\n\n\n\n\n\n\n\n\n\n"
		     "x-ms-date:Fri, 26 Jun 2015 23:39:12 GMT\nx-ms-version:2015-02-21\n"
		     "/myaccount/mycontainer\ncomp:metadata\nrestype:container\ntimeout:20");
	check_signed("myaccount", "GET",
		     "/container?restype=container&comp=list&prefix=e%2F&marker=a%3D%3D", metadata,
		     0,
		     "GET\n\n\n\n\n\n\n\n\n\n\n\n"
		     "x-ms-date:Fri, 26 Jun 2015 23:39:12 GMT\nx-ms-version:2015-02-21\n"
		     "/myaccount/container\ncomp:list\nmarker:a==\nprefix:e/\nrestype:container");
	check_signed("acct", "PUT", "/acct/box/e/a=s", put, 65,
		     "PUT\n\n\n65\n\n\n\n\n\n*\n\n\n"
		     "x-ms-blob-type:BlockBlob\nx-ms-date:D\nx-ms-version:2021-12-02\n"
		     "/acct/acct/box/e/a=s");
	check_signed("acct", "PUT", "/box/b?comp=lease", renew, 0,
		     "PUT\n\n\n\n\n\n\n\n\"0x8D\"\n\n\n\n"
		     "x-ms-lease-action:renew\nx-ms-lease-id:G\n/acct/box/b\ncomp:lease");
}

/* RFC 4231, test case 2, as a key in base64 ("Jefe"). */
static void test_signature(void **state)
{
	static const char text[] = "what do ya want for nothing?";
	char line[AZBLOB_LINE_MAX];

	(void)state;
	assert_true(azblob_sign("acct", "SmVmZQ==", text, strlen(text), line, sizeof(line)));
	assert_string_equal(line, "Authorization: SharedKey acct:"
				  "W9zBRr9gdU5qBCQmCJV1x1oAPwidJzmDnexYuWTsOEM=");
	assert_false(azblob_sign("acct", "no base64!", text, 1, line, sizeof(line)));
	assert_false(azblob_sign("acct", "", text, 1, line, sizeof(line)));
}

static void test_date(void **state)
{
	char text[40];

	(void)state;
	azblob_date(1435361952, text, sizeof(text));
	assert_string_equal(text, "Fri, 26 Jun 2015 23:39:12 GMT");
	azblob_date(0, text, sizeof(text));
	assert_string_equal(text, "Thu, 01 Jan 1970 00:00:00 GMT");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_url),
		cmocka_unit_test(test_bad_urls),
		cmocka_unit_test(test_string_to_sign),
		cmocka_unit_test(test_signature),
		cmocka_unit_test(test_date),
		cmocka_unit_test(test_identity), /* changes the environment */
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
