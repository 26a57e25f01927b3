/*
 * test_s3.c: the parts of the S3 adapter that need no server: signatures by the examples that AWS
 * publishes, the files of profiles, URLs, ETags and dates.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/sha256.h"
#include "store/s3/s3.h"

/* ---- signatures ---- */

/* The hash of "Welcome to Amazon S3.", the body of the documentation's example. */
#define WELCOME "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072"
#define WELCOME_HEADER \
	"x-amz-content-sha256: 44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072"
#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

/* One request of AWS' examples for S3: its headers (but for host and date), and its signature. */
struct example {
	const char *method, *path, *query;
	const char *headers[6];
	const char *hash;
	const char *signature;
};

static const struct example examples[] = {
	{"GET",
	 "/test.txt",
	 "",
	 {"host: examplebucket.s3.amazonaws.com", "range: bytes=0-9",
	  "x-amz-content-sha256: " EMPTY, "x-amz-date: 20130524T000000Z"},
	 EMPTY,
	 "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"},
	{"PUT",
	 "/test%24file.text",
	 "",
	 {"date: Fri, 24 May 2013 00:00:00 GMT", "host: examplebucket.s3.amazonaws.com",
	  WELCOME_HEADER, "x-amz-date: 20130524T000000Z",
	  "x-amz-storage-class: REDUCED_REDUNDANCY"},
	 WELCOME,
	 "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"},
	{"GET",
	 "/",
	 "lifecycle=",
	 {"host: examplebucket.s3.amazonaws.com", "x-amz-content-sha256: " EMPTY,
	  "x-amz-date: 20130524T000000Z"},
	 EMPTY,
	 "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"},
	{"GET",
	 "/",
	 "max-keys=2&prefix=J",
	 {"host: examplebucket.s3.amazonaws.com", "x-amz-content-sha256: " EMPTY,
	  "x-amz-date: 20130524T000000Z"},
	 EMPTY,
	 "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"},
};

static void test_sign(void **state)
{
	static const struct s3_keys keys = {.id = "AKIAIOSFODNN7EXAMPLE",
					    .secret = "wJalrXUtnFEMI/K7MDENG/"
						      "bPxRfiCYEXAMPLEKEY"};
	const struct s3_scope scope = {&keys, "20130524T000000Z", "us-east-1", "s3"};
	char out[1024];

	(void)state;
	for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++) {
		const struct example *e = &examples[i];

		assert_true(s3_sign(&scope, e->method, e->path, e->query, e->headers, e->hash, out,
				    sizeof(out)));
		assert_string_equal(strstr(out, "Signature=") + 10, e->signature);
		assert_non_null(strstr(out, "authorization: AWS4-HMAC-SHA256 Credential="
					    "AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/"
					    "aws4_request,SignedHeaders="));
		assert_false(s3_sign(&scope, e->method, e->path, e->query, e->headers, e->hash, out,
				     strlen(out)));
	}
}

/* Of the general test suite: get-vanilla. */
static void test_sign_vanilla(void **state)
{
	static const struct s3_keys keys = {.id = "AKIDEXAMPLE",
					    .secret = "wJalrXUtnFEMI/K7MDENG+"
						      "bPxRfiCYEXAMPLEKEY"};
	const struct s3_scope scope = {&keys, "20150830T123600Z", "us-east-1", "service"};
	static const char *const headers[] = {"host: example.amazonaws.com",
					      "x-amz-date: 20150830T123600Z", NULL};
	char out[1024];

	(void)state;
	assert_true(s3_sign(&scope, "GET", "/", "", headers, EMPTY, out, sizeof(out)));
	assert_string_equal(out,
			    "authorization: AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/"
			    "us-east-1/service/aws4_request,SignedHeaders=host;x-amz-date,"
			    "Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d"
			    "763fbf31");
}

/* ---- dates and ETags ---- */

static void test_dates(void **state)
{
	char out[S3_DATE_SIZE];

	(void)state;
	s3_date(INT64_C(1369353600999), out);
	assert_string_equal(out, "20130524T000000Z");
	assert_int_equal(s3_seconds("2013-05-24T00:00:07.123Z"), 1369353607);
	assert_int_equal(s3_seconds("Fri, 24 May 2013 00:00:00 GMT"), 1369353600);
	assert_int_equal(s3_seconds(""), -1);
	assert_int_equal(s3_seconds("yesterday"), -1);
	assert_int_equal(s3_age_ns("2013-05-24T00:00:00Z", "Fri, 24 May 2013 00:00:03 GMT"),
			 3000000000);
	assert_int_equal(s3_age_ns("2013-05-24T00:00:09Z", "Fri, 24 May 2013 00:00:03 GMT"), 0);
	assert_true(s3_age_ns("", "Fri, 24 May 2013 00:00:03 GMT") == RECORD_NEVER);
}

static void test_etags(void **state)
{
	static const char *const bad[] = {
		"", "\"\"", "W/\"abc\"",
		"\"0123456789012345678901234567890123456789012345678901234567890123\""};
	struct record_version v;

	(void)state;
	assert_true(s3_etag("\"abc\"", &v));
	assert_int_equal(v.n, 3);
	assert_memory_equal(v.bytes, "abc", 3);
	assert_true(s3_etag("abc", &v));
	assert_int_equal(v.n, 3);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_false(s3_etag(bad[i], &v));
		assert_int_equal(v.n, 0);
	}
}

/* ---- profiles ---- */

static const char file[] = "aws_access_key_id = NOBODYS\n"
			   "[default]\n"
			   "# aws_access_key_id = COMMENT\n"
			   "aws_access_key_id = FIRST\n"
			   "aws_secret_access_key=a=b/c+d#e # why\r\n"
			   "s3 =\n"
			   "  region = nested\n"
			   "empty =\n"
			   "\n"
			   "[ profile two ] ; words\n"
			   "aws_access_key_id\t=\tSECOND\n"
			   "region = eu-west-1\n"
			   "[default]\n"
			   "aws_access_key_id = LAST";

static const char *value(const char *section, const char *key)
{
	static char out[64];

	return s3_profile_get(file, strlen(file), section, key, out, sizeof(out)) ? out : NULL;
}

static void test_profiles(void **state)
{
	char small[4];

	(void)state;
	assert_string_equal(value("default", "aws_access_key_id"), "LAST");
	assert_string_equal(value("default", "aws_secret_access_key"), "a=b/c+d#e");
	assert_string_equal(value("profile two", "aws_access_key_id"), "SECOND");
	assert_string_equal(value("profile two", "region"), "eu-west-1");
	assert_null(value("default", "region"));
	assert_null(value("default", "empty"));
	assert_null(value("two", "region"));
	assert_null(value("", "aws_access_key_id"));
	assert_false(s3_profile_get(file, strlen(file), "default", "aws_access_key_id", small,
				    sizeof(small)));
	assert_string_equal(small, "");
}

/* ---- URLs ---- */

static int parse(const char *url, struct s3_options *o, struct record_options *r)
{
	struct baton_error err = {0};

	*o = (struct s3_options){.record = r};
	*r = (struct record_options){.poll_ms = 2000};
	return s3_options_parse(o, url, &err);
}

static void test_urls(void **state)
{
	static const char *const bad[] = {
		"s3:bucket",
		"s3://",
		"s3://ab",
		"s3://Bucket",
		"s3://my_bucket",
		"s3://user:password@bucket",
		"s3://bucket/..",
		"s3://bucket/a/../b",
		"s3://bucket/./b",
		"s3://bucket/a%20b",
		"s3://bucket/a//b",
		"s3://bucket/a?prefix=b",
		"s3://bucket?prefix=..",
		"s3://bucket?endpoint=host:9000",
		"s3://bucket?endpoint=ftp://host",
		"s3://bucket?endpoint=http://host/path",
		"s3://bucket?endpoint=http://a,b",
		"s3://bucket?region=",
		"s3://bucket?region=a/b",
		"s3://bucket?path_style=2",
		"s3://bucket?server_name=name",
		"s3://bucket?endpoint=https://host&server_name=name&path_style=0",
		"s3://bucket?credentials_file=relative",
		"s3://bucket?endpoint=http://host&ca=/ca.pem",
		"s3://bucket?poll=1",
		"s3://bucket?secret_key=x",
	};
	struct s3_options o;
	struct record_options r;

	(void)state;
	assert_int_equal(parse("s3://my-bucket", &o, &r), BATON_OK);
	assert_string_equal(o.bucket, "my-bucket");
	assert_false(o.has_endpoint || o.path_style);
	assert_string_equal(r.prefix, "");
	assert_int_equal(parse("s3://my.bucket/a/b.c/?region=eu-west-1&ca=/ca.pem", &o, &r),
			 BATON_OK);
	assert_true(o.path_style);
	assert_string_equal(r.prefix, "a/b.c");
	assert_string_equal(o.region, "eu-west-1");
	assert_int_equal(parse("s3://bucket?endpoint=http://[::1]:9000/&poll=500", &o, &r),
			 BATON_OK);
	assert_true(o.path_style && o.has_endpoint && !o.host.tls);
	assert_string_equal(o.host.name, "::1");
	assert_string_equal(o.host.port, "9000");
	assert_int_equal(r.poll_ms, 500);
	assert_int_equal(parse("s3://bucket?endpoint=https://host&path_style=0", &o, &r), BATON_OK);
	assert_false(o.path_style);
	assert_string_equal(o.host.port, "443");
	assert_int_equal(parse("s3://bucket?server_name=name&path_style=1", &o, &r), BATON_OK);
	assert_int_equal(parse("s3://bucket?endpoint=https://host&server_name=name", &o, &r),
			 BATON_OK);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (parse(bad[i], &o, &r) != BATON_E_URL)
			fail_msg("not refused: %s", bad[i]);
}

static void test_addresses(void **state)
{
	struct http_host h;
	char path[32];

	(void)state;
	assert_true(s3_parse_address("http://127.0.0.1:80/v2/keys?a=b", &h, path, sizeof(path)));
	assert_string_equal(path, "/v2/keys?a=b");
	assert_true(s3_parse_address("https://host", &h, path, sizeof(path)));
	assert_string_equal(path, "/");
	assert_true(h.tls);
	assert_false(s3_parse_address("host/path", &h, path, sizeof(path)));
	assert_false(s3_parse_address("http://host/0123456789012345678901234567890", &h, path,
				      sizeof(path)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sign),      cmocka_unit_test(test_sign_vanilla),
		cmocka_unit_test(test_dates),     cmocka_unit_test(test_etags),
		cmocka_unit_test(test_profiles),  cmocka_unit_test(test_urls),
		cmocka_unit_test(test_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
