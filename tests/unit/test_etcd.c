/*
 * test_etcd.c: the parts of the etcd driver that need no server: URLs, keys, errors.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "store/etcd/etcd.h"

/* ---- URLs ---- */

static void test_url(void **state)
{
	struct etcd_options o;
	struct baton_error err = {0};

	(void)state;
	assert_int_equal(etcd_options_parse(&o, "etcd://one", &err), BATON_OK);
	assert_int_equal(o.web.n_hosts, 1);
	assert_string_equal(o.web.hosts[0].name, "one");
	assert_string_equal(o.web.hosts[0].port, "2379");
	assert_false(o.web.hosts[0].tls);
	assert_string_equal(o.prefix, "baton");
	assert_int_equal(etcd_options_parse(&o,
					    "etcds://me:s%40cret@one:1,[::1]:2,[fe80::1],two/"
					    "?prefix=/my/app/&ca=/ca&cert=/c&key=/k&server_name=s",
					    &err),
			 BATON_OK);
	assert_int_equal(o.web.n_hosts, 4);
	assert_string_equal(o.web.hosts[1].name, "::1");
	assert_string_equal(o.web.hosts[1].port, "2");
	assert_string_equal(o.web.hosts[2].name, "fe80::1");
	assert_string_equal(o.web.hosts[2].port, "2379");
	assert_string_equal(o.web.hosts[3].name, "two");
	assert_true(o.web.hosts[3].tls);
	assert_string_equal(o.user, "me");
	assert_string_equal(o.password, "s@cret");
	assert_string_equal(o.prefix, "/my/app");
	assert_string_equal(o.web.files.server_name, "s");
	assert_int_equal(
		etcd_options_parse(&o, "etcd://1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16", &err),
		BATON_OK);
	assert_int_equal(o.web.n_hosts, WEB_HOSTS_MAX);
}

static void test_bad_urls(void **state)
{
	static const char *const bad[] = {
		"etcd:one",
		"etcd://",
		"etcd://one,",
		"etcd://,one",
		"etcd://one,,two",
		"etcd://one:0",
		"etcd://one:65536",
		"etcd://one:x",
		"etcd://one:",
		"etcd://[::1",
		"etcd://[::1]x",
		"etcd://[]",
		"etcd://one/db",
		"etcd://one?prefix=",
		"etcd://one?nonsense=1",
		"etcd://one?prefix=baton.candidate",
		"etcd://one?prefix=a.lease/b/",
		"etcd://one?prefix=a/.election",
		"etcd://one?prefix",
		"etcd://one?ca=/ca",
		"etcds://one?ca=relative",
		"etcds://one?key=/key",
		"etcd://canary@one",
		"etcd://one?password=canary",
		"etcd://u:canary@one?password_file=/f",
		"etcd://:canary@one",
		"etcd://u:can%ary@one",
		"etcd://1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct etcd_options o;
		struct baton_error err = {0};

		if (etcd_options_parse(&o, bad[i], &err) != BATON_E_URL)
			fail_msg("%s is taken", bad[i]);
		assert_true(err.text[0] != '\0');
		assert_null(strstr(err.text, "canary"));
	}
}

/* ---- keys ---- */

static struct etcd_store store_with(const char *prefix)
{
	struct etcd_store s = {.web = {.wake = -1}};

	snprintf(s.options.prefix, sizeof(s.options.prefix), "%s", prefix);
	return s;
}

static void test_keys(void **state)
{
	struct etcd_store s = store_with("baton");
	struct etcd_key k = etcd_claim_key(&s, "report", 0x694da1e2ee84ef18);

	(void)state;
	assert_string_equal(k.text, "baton/report/694da1e2ee84ef18"); /* as etcd's package has it */
	k = etcd_claim_key(&s, "report", 0);
	assert_string_equal(k.text, "baton/report/");
	k = etcd_key_end(&k);
	assert_string_equal(k.text, "baton/report0");
	k = etcd_claim_key(&s, "a/b%", 1);
	assert_string_equal(k.text, "baton/a%2Fb%25/1");
	k = etcd_claim_key(&s, ".election", 1); /* nobody can call an election like our own keys */
	assert_string_equal(k.text, "baton/%2Eelection/1");
	k = etcd_state_key(&s, "..", "term");
	assert_string_equal(k.text, "baton/.election/%2E./term");
	k = etcd_lease_key(&s, 255, "a/b");
	assert_string_equal(k.text, "baton.lease/ff/a%2Fb");
	k = etcd_candidate_key(&s, "x", 255);
	assert_string_equal(k.text, "baton.candidate/x/ff");
}

static void reads(const struct etcd_store *s, struct etcd_key key, int kind, const char *name)
{
	char found[BATON_NAME_MAX + 1] = "";

	assert_int_equal(etcd_key_read(s, key.text, found), kind);
	assert_string_equal(found, name);
}

static void test_keys_read(void **state)
{
	static const char *const names[] = {"report", "a/b%", "..",  ".election",
					    "%2F",    " ",    "a.b", "lease"};
	char name[BATON_NAME_MAX + 1];
	char longest[BATON_NAME_MAX + 1];

	(void)state;
	memset(longest, '/', BATON_NAME_MAX);
	longest[BATON_NAME_MAX] = '\0';
	for (size_t i = 0; i <= sizeof(names) / sizeof(names[0]); i++) {
		const char *n = i < sizeof(names) / sizeof(names[0]) ? names[i] : longest;
		struct etcd_store s = store_with(i % 2 == 0 ? "baton" : "/a/b");

		reads(&s, etcd_claim_key(&s, n, 77), 'c', n);
		reads(&s, etcd_state_key(&s, n, "order"), 's', n);
		reads(&s, etcd_candidate_key(&s, n, 77), 'o', n);
		reads(&s, etcd_lease_key(&s, 77, n), 'o', n);
	}
	struct etcd_store s = store_with("baton");

	reads(&s, etcd_lease_key(&s, 77, ""), 'o', "");
	assert_int_equal(etcd_key_read(&s, "batonx/a/1", name), 0);
	assert_int_equal(etcd_key_read(&s, "bat", name), 0);
	assert_int_equal(etcd_key_read(&s, "baton/a/b/1", name), 0); /* of the prefix baton/a */
	assert_int_equal(etcd_key_read(&s, "baton/a%zz/1", name), 0);
}

/* ---- errors ---- */

static void judges(int status, const char *text, int code, bool is_sure)
{
	struct baton_call call = {0};
	bool sure = !is_sure;

	assert_int_equal(etcd_judge(&call, status, text, &sure), code);
	assert_int_equal(sure, is_sure);
	assert_int_equal(call.error.code, code);
}

/* FAILED promises that nothing was carried out: who isn't sure doesn't say it. */
static void test_errors(void **state)
{
	(void)state;
	judges(7, "etcdserver: permission denied", BATON_E_DENIED, true);
	judges(16, "etcdserver: invalid auth token", BATON_E_DENIED, true);
	judges(3, "etcdserver: authentication failed, invalid user ID or password", BATON_E_DENIED,
	       true);
	judges(14, "etcdserver: no leader", BATON_E_UNAVAILABLE, true);
	judges(14, "etcdserver: rpc not supported for learner", BATON_E_UNAVAILABLE, true);
	judges(14, "etcdserver: request timed out", BATON_E_UNAVAILABLE, false);
	judges(14, "etcdserver: leader changed", BATON_E_UNAVAILABLE, false);
	judges(8, "etcdserver: mvcc: database space exceeded", BATON_E_UNAVAILABLE, false);
	judges(8, "etcdserver: too many requests", BATON_E_UNAVAILABLE, true);
	judges(3, "etcdserver: too many operations in txn request", BATON_E_CORRUPT, true);
	judges(2, "what is this", BATON_E_UNAVAILABLE, false);
	judges(2, "", BATON_E_UNAVAILABLE, false);
}

/* ---- marks ---- */

/* For how long nobody follows after a claim whose mark is that, in ms, in the raft term 5. */
static uint64_t waits(const char *value, uint64_t mod, uint64_t claim, struct etcd_known *k)
{
	struct etcd_lane lane = {.raft_term = 5};
	struct baton_record r = {.held = claim != 0, .free_in_ns = BATON_STORE_NEVER};

	etcd_read_unreleased(&lane, value, mod, claim, k, &r);
	assert_int_equal(r.reserved, r.free_in_ns != BATON_STORE_NEVER);
	/* Some of it has passed already. */
	return r.reserved ? (r.free_in_ns + CLOCK_NS_PER_S - 1) / CLOCK_NS_PER_S * 1000 : 0;
}

static void test_marks(void **state)
{
	struct etcd_known k = {0};

	(void)state;
	assert_int_equal(waits("", 0, 0, &k), 0);        /* it was released */
	assert_int_equal(waits("4 10000", 7, 7, &k), 0); /* its claim stands */
	assert_int_equal(k.unreleased_mod, 0);
	assert_int_equal(waits("5 10000", 7, 0, &k), 0); /* the same raft term */
	assert_int_equal(k.unreleased_mod, 7);
	assert_int_equal(waits("4 10000", 8, 0, &k), 11000);
	assert_int_equal(k.unreleased_mod, 8);
	uint64_t until_ns = k.unreleased_until_ns;

	assert_int_equal(waits("4 10000", 8, 0, &k), 11000); /* counted from when it was seen */
	assert_true(k.unreleased_until_ns == until_ns);
	k.unreleased_until_ns = 1;
	assert_int_equal(waits("4 10000", 8, 0, &k), 0);  /* it is over */
	assert_int_equal(waits("4 10000", 9, 10, &k), 0); /* another's claim stands: not asked */
	assert_true(k.unreleased_until_ns > until_ns);    /* but counted */
	assert_int_equal(waits("0 10000", 11, 0, &k), 11000); /* unknown is no raft term */
	assert_int_equal(waits("6 10000", 12, 0, &k), 11000); /* an older state was restored */
	assert_int_equal(waits("5", 13, 0, &k), 66000);
	assert_int_equal(waits("5 1000x", 14, 0, &k), 66000);
	assert_int_equal(waits("4 99999999999999999999", 15, 0, &k), 95040000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_url),    cmocka_unit_test(test_bad_urls),
		cmocka_unit_test(test_keys),   cmocka_unit_test(test_keys_read),
		cmocka_unit_test(test_errors), cmocka_unit_test(test_marks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
