/*
 * test_page.c: the page in shared memory as its readers see it: where it is, what they refuse, who
 * leads, and names that are never mixed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <baton.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/page.h"

#define ROUNDS 200000

static char folder[64];
static char path[PAGE_PATH_MAX];
static struct page good;

static int setup(void **state)
{
	(void)state;
	(void)strcpy(folder, "/tmp/baton-page-XXXXXX");
	assert_non_null(mkdtemp(folder));
	assert_int_equal(page_path(folder, "web", path), 0);
	(void)memset(&good, 0, sizeof(good));
	(void)memcpy(good.magic, PAGE_MAGIC, sizeof(good.magic));
	good.layout = PAGE_LAYOUT;
	assert_int_equal(page_clock(good.boot_id, &good.time_namespace), 0);
	page_put_names(&good, "web", "me");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	(void)unlink(path);
	(void)rmdir(folder);
	return 0;
}

/* What baton_page_open() says of a file with this page. */
static int opens(const struct page *p, size_t size, struct baton_page **page, const char *words)
{
	struct baton_error err = {0};
	char room[PAGE_SIZE_BYTES] = "";
	FILE *out = fopen(path, "we");

	(void)memcpy(room, p, sizeof(*p));
	assert_non_null(out);
	assert_int_equal(fwrite(room, 1, size, out), size);
	assert_int_equal(fclose(out), 0);
	int code = baton_page_open(folder, "web", page, &err);

	assert_int_equal(err.code, code);
	if (code != 0) {
		assert_null(*page);
		assert_non_null(strstr(err.text, words));
	}
	return code;
}

/* The file of an election's page in the folder "d". */
static const char *file_of(const char *name)
{
	static char room[PAGE_PATH_MAX];

	assert_int_equal(page_path("d", name, room), 0);
	assert_memory_equal(room, "d/", 2);
	return room + 2;
}

static const char *many(size_t n, char c)
{
	static char room[PAGE_PATH_MAX + 1];

	(void)memset(room, c, n);
	room[n] = '\0';
	return room;
}

/* As baton_page_open(3) tells it. */
static void files_of_names(void **state)
{
	char path_room[PAGE_PATH_MAX];
	char wanted[PAGE_PATH_MAX + 8];

	(void)state;
	assert_string_equal(file_of("web"), "web.page");
	assert_string_equal(file_of("Web-2_b.X"), "Web-2_b.X.page");
	assert_string_equal(file_of(".x"), "%2ex.page");
	assert_string_equal(file_of(".."), "%2e..page");
	assert_string_equal(file_of("a/b c%"), "a%2fb%20c%25.page");
	assert_string_equal(file_of("caf\xc3\xa9"), "caf%c3%a9.page");
	assert_string_equal(file_of("caf\xe9"), "caf%e9.page");
	(void)snprintf(wanted, sizeof(wanted), "%s.page", many(200, 'a'));
	assert_string_equal(file_of(many(200, 'a')), wanted);
	/* What would be longer is the SHA-256 of the name. */
	assert_string_equal(
		file_of(many(201, 'a')),
		"a92efd82109373e58f9a2056dee01e807e216ce6075f7051207c0a9f7d666e50.page");
	assert_string_equal(
		file_of(many(67, '/')),
		"3eb1349aab9dc074e2028d6801ffe27e5de46b30e87a4e66e5fbb0b764f514e1.page");
	assert_string_equal(
		file_of(many(255, '/')),
		"595e6ca3d0f666a13da6535365bf31bb147a515410f9b3f283203f325d6013aa.page");
	assert_string_equal(
		file_of(many(255, 'a')),
		"b0f3323e7a3cad8ae6778340cc2a17ae0cb31c818df3767cda7c3dd423725e90.page");
	assert_int_equal(page_path(many(PAGE_PATH_MAX - 10, 'd'), "web", path_room), 0);
	assert_int_equal(page_path(many(PAGE_PATH_MAX - 9, 'd'), "web", path_room), -1);
}

static void refusals(void **state)
{
	struct baton_page *page = NULL;
	struct page p = good;

	(void)state;
	assert_int_equal(opens(&p, PAGE_SIZE_BYTES, &page, ""), BATON_OK);
	baton_page_close(page);
	assert_int_equal(opens(&p, PAGE_SIZE_BYTES - 1, &page, ""), BATON_E_SYSTEM);
	p.magic[0] = 'b';
	assert_int_equal(opens(&p, PAGE_SIZE_BYTES, &page, "can read"), BATON_E_CORRUPT);
	p = good;
	p.layout++;
	assert_int_equal(opens(&p, PAGE_SIZE_BYTES, &page, "can read"), BATON_E_CORRUPT);
	p = good;
	page_put_names(&p, "webb", "me");
	assert_int_equal(opens(&p, PAGE_SIZE_BYTES, &page, "another election"), BATON_E_CORRUPT);
	p = good;
	p.boot_id[15] ^= 1;
	assert_int_equal(opens(&p, PAGE_SIZE_BYTES, &page, "another clock"), BATON_E_CORRUPT);
	p = good;
	p.time_namespace++;
	assert_int_equal(opens(&p, PAGE_SIZE_BYTES, &page, "another clock"), BATON_E_CORRUPT);
	p = good;
	(void)atomic_fetch_add(&p.names, 1); /* a writer that died */
	assert_int_equal(opens(&p, PAGE_SIZE_BYTES, &page, "died"), BATON_E_CORRUPT);
	page_put_names(&p, "web", "the next one");
	assert_int_equal(opens(&p, PAGE_SIZE_BYTES, &page, ""), BATON_OK);
	baton_page_close(page);
	assert_int_equal(baton_page_open(folder, NULL, &page, NULL), BATON_E_INVALID);
}

static void who_leads(void **state)
{
	struct baton_page *page = NULL;
	struct page p = good;

	(void)state;
	p.term = 7;
	p.deadline_boot_ns = (int64_t)(clock_boot_ns() + 3600 * CLOCK_NS_PER_S);
	assert_int_equal(opens(&p, PAGE_SIZE_BYTES, &page, ""), BATON_OK);
	assert_true(baton_page_leads(page));
	assert_int_equal(baton_page_term(page), 7);
	baton_page_close(page);
	p.deadline_boot_ns = (int64_t)clock_boot_ns();
	assert_int_equal(opens(&p, PAGE_SIZE_BYTES, &page, ""), BATON_OK);
	assert_false(baton_page_leads(page));
	baton_page_close(page);
	assert_false(baton_page_leads(NULL));
}

static atomic_bool is_over;

static void *rewrite(void *arg)
{
	static const char *const ids[] = {"a", "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"};

	for (int i = 0; i < ROUNDS; i++)
		page_put_names(arg, ids[i % 2], ids[i % 2]);
	atomic_store(&is_over, true);
	return NULL;
}

/* Both are those of one writer, however often they are rewritten meanwhile. */
static void names_are_never_mixed(void **state)
{
	static struct page p;
	char name[PAGE_WORD_MAX];
	char id[PAGE_WORD_MAX];
	char long_one[2 * PAGE_WORD_MAX];
	pthread_t writer;

	(void)state;
	page_put_names(&p, "a", "a");
	assert_int_equal(pthread_create(&writer, NULL, rewrite, &p), 0);
	while (!atomic_load(&is_over))
		if (page_get_names(&p, name, id) == 0)
			assert_string_equal(name, id);
	(void)pthread_join(writer, NULL);
	assert_int_equal(page_get_names(&p, name, id), 0);
	assert_int_equal(name[0], 'b');
	(void)memset(long_one, 'x', sizeof(long_one) - 1);
	long_one[sizeof(long_one) - 1] = '\0';
	page_put_names(&p, long_one, "");
	assert_int_equal(page_get_names(&p, name, id), 0);
	assert_int_equal(strlen(name), PAGE_WORD_MAX - 1);
	assert_string_equal(id, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_of_names),
		cmocka_unit_test_setup_teardown(refusals, setup, teardown),
		cmocka_unit_test_setup_teardown(who_leads, setup, teardown),
		cmocka_unit_test(names_are_never_mixed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
