/*
 * test_telemetry_trace.c: the id of a handover's trace is the same for all URLs of one namespace,
 * and another for another one; nothing of a user or a password is in it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "telemetry/namespace.h"
#include "telemetry/trace.h"

struct pair {
	const char *a;
	const char *b;
};

static bool is_one_trace(const char *a, const char *b)
{
	struct trace_id x = trace_of(a, "web", 7);
	struct trace_id y = trace_of(b, "web", 7);
	bool is_one = memcmp(x.trace, y.trace, sizeof(x.trace)) == 0;

	assert_int_equal(memcmp(x.root, y.root, sizeof(x.root)) == 0, is_one);
	return is_one;
}

static void test_one_namespace(void **state)
{
	static const struct pair pairs[] = {
		{"redis://h", "redis://h:6379"},
		{"redis://h", "redis://h/"},
		{"redis://h", "rediss://user:secret@H/0?durable=1"},
		{"redis://h/3", "redis://h?db=3"},
		{"redis://h", "redis://h?prefix=baton&password_file=/x"},
		{"redis+sentinel://a,b:26379,c/main", "redis+sentinel://C:26379,b,a/main/0"},
		{"redis+cluster://a,b:7000", "redis+cluster://b:7000,a:6379/"},
		{"redis+unix:/run/redis.sock", "redis+unix:/run/redis.sock?db=0"},
		{"etcd://a,b,c", "etcds://c:2379,B:2379,a?cert=/x&key=/y"},
		{"etcd://[::1]", "etcd://[::1]:2379"},
		{"consul://h", "consuls://:token@h:8501"},
		{"memcached://h?weak=ok", "memcacheds://h:11211?max_lease=1000"},
		{"mongodb://a,b/db?replicaSet=rs", "mongodb://u:p@B:27017,a/db?Collection=baton"},
		{"mysql://u@h/db", "mariadb://other@h:3306/db?poll=500"},
		{"mssql://u@h/db", "mssql://v@h:1433/db?encrypt=off"},
		{"postgres://u@h/db", "postgresql://v:w@H:5432/db?sslmode=require"},
		{"postgres://u@h", "postgres://h/u"},
		{"postgres:///db?host=/run/pg", "postgres://u@%2Frun%2Fpg/db"},
		{"postgres://h:5433/db", "postgres:///db?host=h&port=5433"},
		{"s3://bucket/app?region=eu", "s3://bucket?prefix=app&path_style=1"},
		{"azblob://a/box?key_file=/x", "azblob://a/box/?login=managed"},
		{"azblob://a/box/app", "azblob://a/box?prefix=app"},
		{"file:/var/lib/baton", "file:/var/lib/baton/"},
		{"kubernetes://prod", "kubernetes://prod?pod_label=a/b"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		if (!is_one_trace(pairs[i].a, pairs[i].b))
			fail_msg("%s and %s are two", pairs[i].a, pairs[i].b);
}

static void test_two_namespaces(void **state)
{
	static const struct pair pairs[] = {
		{"redis://h", "redis://h:6380"},
		{"redis://h", "redis://h/1"},
		{"redis://h", "redis://h?prefix=x"},
		{"redis://h", "redis+cluster://h"},
		{"redis+sentinel://a/main", "redis+sentinel://a/other"},
		{"redis+unix:/run/a.sock", "redis+unix:/run/a.sock?db=1"},
		{"etcd://a,b", "etcd://a"},
		{"etcd://a", "consul://a"},
		{"consul://h", "consul://h?dc=west"},
		{"consul://h?ns=a", "consul://h?ns=b"},
		{"mongodb://h/a", "mongodb://h/b"},
		{"mongodb://h/a", "mongodb://h/a?collection=x"},
		{"mysql://h/db", "mysql://h/db?mode=lock&lock=x"},
		{"postgres://h/a", "postgres://h/A"},
		{"postgres://h/db", "postgres://h/db?schema=x"},
		{"postgres://h/db?mode=advisory&lock_id=1",
		 "postgres://h/db?mode=advisory&lock_id=2"},
		{"s3://a", "s3://b"},
		{"s3://a", "s3://a?endpoint=http://minio:9000"},
		{"s3://a/x", "s3://a/y"},
		{"azblob://a/x", "azblob://a/y"},
		{"file:/a", "file:/A"},
		{"kubernetes://a", "kubernetes://b"},
		{"kubernetes://a", "kubernetes://a?context=other"},
		{"mongodb+srv://cluster.example/db", "mongodb://cluster.example/db"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		if (is_one_trace(pairs[i].a, pairs[i].b))
			fail_msg("%s and %s are one", pairs[i].a, pairs[i].b);
}

static void test_election_and_term(void **state)
{
	struct trace_id a = trace_of("redis://h", "web", 7);
	struct trace_id b = trace_of("redis://h", "web", 8);
	struct trace_id c = trace_of("redis://h", "mail", 7);

	(void)state;
	assert_memory_not_equal(a.trace, b.trace, sizeof(a.trace));
	assert_memory_not_equal(a.trace, c.trace, sizeof(a.trace));
	assert_memory_not_equal(a.trace, a.root, sizeof(a.root));
}

/* What can't be read has a name, too, and never one with a secret in it. */
static void test_no_secrets(void **state)
{
	static const struct pair cases[] = {
		{"redis://user:secret@h:6379/2", "redis\nh\n/2"},
		{"redis://us%40er:secret@h,bad:port", "redis\nh,bad:port\n/0"},
		{"redis://:sec@ret@h", "redis\nh\n/0"},
		{"postgres://user:secret@h?password=secret&dbname=d", "postgres\nh\n/d"},
		{"nonsense", ""},
		{"redis://h/%zz?password=secret", "redis\nh\n/%zz"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bytes text = {0};

		namespace_of(cases[i].a, &text);
		assert_true(bytes_add(&text, "", 1, 1 << 16));
		assert_string_equal(text.at, cases[i].b);
		bytes_done(&text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_namespace),
		cmocka_unit_test(test_two_namespaces),
		cmocka_unit_test(test_election_and_term),
		cmocka_unit_test(test_no_secrets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
