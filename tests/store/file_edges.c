/*
 * file_edges.c: the file store at its edges: names of every kind, URLs and file systems that it
 * refuses, no time, no descriptors, a forked child. Users are in file_users.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/file/codec.h"
#include "store/pair.h"

/* ---- names and URLs ---- */

static void names_keep_apart(void **state)
{
	static const char *const names[] = {
		"Aa",
		"BB",
		"aA",
		"a",
		"A",
		".",
		"..",
		"a/b",
		"a%2fb",
		"%41",
		"a+b",
		"work",
		"paused",
		"name",
		"*{}",
		"\"'",
		"\xc3\xa4",
		"a b",
		"00000000000000000001",
	};
	char name[BATON_NAME_MAX + 1];
	char back[BATON_NAME_MAX + 1];
	char path[FILE_PATH_SIZE];

	(void)state;
	assert_int_equal(rig_lease(&a, 60000), OK);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_int_equal(rig_campaign(&a, names[i], 0), OK);
		assert_int_equal(a.term, 1);
	}
	/* Long ones that differ only at the end, plain and encoded. */
	for (int c = 0; c < 4; c++) {
		for (size_t n = 60; n <= BATON_NAME_MAX; n += n < 128 ? 68 : n < 200 ? 73 : 52) {
			memset(name, c % 2 == 0 ? 'x' : '#', n);
			name[n] = '\0';
			name[n - 1] = c < 2 ? 'y' : 'z';
			assert_int_equal(rig_campaign(&a, name, 0), OK);
			assert_int_equal(a.term, 1);
			file_path_of(name, path);
			assert_int_equal(file_name_of(path, back), 0);
			assert_string_equal(back, name);
		}
	}
	assert_int_equal(rig_publish(&a, name, 900, true, ""), OK);
	assert_int_equal(rig_lease_close(&a), OK);
	assert_int_equal(rig_count(dir, "leases"), 0);
}

static void urls_are_taken_strictly(void **state)
{
	static const struct {
		const char *url;
		int code;
	} cases[] = {
		{"file:/x", BATON_OK},
		{"file:///x", BATON_OK},
		{"file://localhost/x", BATON_OK},
		{"file:x", BATON_OK},
		{"file:/x%20y?mode=0770&history=5&force=1", BATON_OK},
		{"file:", BATON_E_URL},
		{"file://host/x", BATON_E_URL},
		{"file:/x?colour=red", BATON_E_URL},
		{"file:/x?mode=0070", BATON_E_URL},
		{"file:/x?mode=999", BATON_E_URL},
		{"file:/x?history=0", BATON_E_URL},
		{"file:/x?history", BATON_E_URL},
		{"file:/x%0", BATON_E_URL},
		{"file:/x%00", BATON_E_URL},
		{"file:/x#y", BATON_E_URL},
		{"/x", BATON_E_URL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct baton_store_config config = {.size = sizeof(config), .url = cases[i].url};
		struct baton_error err = {0};
		void *store;

		if (baton_file_driver.open(&config, &store, &err) != cases[i].code)
			fail_msg("%s", cases[i].url);
		assert_true(cases[i].code == BATON_OK || err.text[0] != '\0');
		baton_file_driver.close(store);
	}
}

/* What is wrong is said, not what is right anyhow. */
static void errors_of_urls_say_what_is_wrong(void **state)
{
	char long_url[6000];
	const struct {
		const char *url;
		const char *says;
	} cases[] = {
		{long_url, "5000 bytes"},
		{"file:/x%zz", "%zz"},
		{"file://host/x", "host"},
		{"file:", "no directory"},
		{"file:/x?colour=red", "unknown option \"colour\""},
		{"file:/x?mode=0070", "invalid value for \"mode\""},
		{"file:/x?history=many", "invalid value for \"history\""},
	};

	(void)state;
	memset(long_url, 'x', sizeof(long_url));
	memcpy(long_url, "file:/", 6);
	long_url[5 + 5000] = '\0';
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct baton_store_config config = {.size = sizeof(config), .url = cases[i].url};
		struct baton_error err = {0};
		void *store;

		assert_int_equal(baton_file_driver.open(&config, &store, &err), BATON_E_URL);
		if (strstr(err.text, cases[i].says) == NULL)
			fail_msg("%.60s: %s", cases[i].url, err.text);
	}
}

static void a_wrong_file_system_is_refused(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, "/proc", "", "eve");
	assert_int_equal(rig_lease(&r, 1000), FAILED);
	assert_int_equal(r.call.error.code, BATON_E_UNSUPPORTED);
	assert_non_null(strstr(r.call.error.text, "ext4"));
	rig_close(&r);
}

static void no_time_is_no_write(void **state)
{
	(void)state;
	both_open(60000);
	a.call.deadline_ns = 1;
	struct baton_campaign c = {.name = "job", .nonce = 1, .record = &a.record};

	c.profile.metadata = "";
	baton_file_driver.campaign(a.campaign, &a.call, &a.lease, &c, 1);
	assert_int_equal(c.outcome, FAILED);
	assert_int_equal(c.code, BATON_E_TIMEOUT);
	assert_int_equal(rig_count(dir, "elections"), 0);
}

/* ---- no descriptors ---- */

static void no_descriptors_is_no_watch(void **state)
{
	struct rlimit old;
	struct rlimit few = {.rlim_cur = 0, .rlim_max = 0};
	uint64_t cookies[4];

	(void)state;
	both_open(60000);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	few.rlim_max = old.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	int n = baton_file_driver.watch_wait(a.watch, rig_call(&a, 1000), cookies, 4);
	int outcome = rig_campaign(&a, "job", 0);

	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_int_equal(n, -1);
	assert_int_equal(outcome, FAILED);
	assert_int_equal(a.call.error.code, BATON_E_SYSTEM);
	assert_non_null(strstr(a.call.error.text, "ulimit"));
	assert_int_equal(rig_campaign(&a, "job", 0), OK);
	assert_false(a.record.watched);
	assert_int_equal(baton_file_driver.watch_add(a.watch, "job", 7), BATON_OK);
	assert_true(rig_hinted(&a, 7, 4000)); /* everything, from time to time */
}

static void a_child_forgets(void **state)
{
	int status;

	(void)state;
	both_open(60000);
	assert_int_equal(rig_campaign(&a, "job", 0), OK);
	pid_t child = fork();

	if (child == 0) { /* S10: it keeps no lock, and frees what it has without a trace */
		baton_file_driver.forget(a.store);
		rig_close(&a);
		(void)kill(getpid(), SIGSTOP);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, WUNTRACED), child);
	assert_true(WIFSTOPPED(status));
	assert_int_equal(rig_campaign(&b, "job", 0), REFUSED);
	rig_close(&a); /* dies without a word, as it were: the child must not keep it alive */
	assert_int_equal(rig_campaign(&b, "job", 0), OK);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	rig_open(&a, dir, "", "alice");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		T(names_keep_apart),
		T(urls_are_taken_strictly),
		T(errors_of_urls_say_what_is_wrong),
		T(a_wrong_file_system_is_refused),
		T(no_time_is_no_write),
		T(no_descriptors_is_no_watch),
		T(a_child_forgets),
#undef T
	};

	return cmocka_run_group_tests_name("file_edges", tests, NULL, NULL);
}
