/*
 * test_base.c: small parts of src/base: SHA-256 by the vectors of its standard and at the edges of
 * its blocks, and tables of names.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/name_table.h"
#include "base/sha256.h"

static void test_sha256_vectors(void **state)
{
	static const struct {
		const char *text;
		const char *hash;
	} vectors[] = {
		{"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
		{"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
		{"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
		 "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
	};
	char hex[SHA256_HEX_SIZE];

	(void)state;
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		sha256_hex(vectors[i].text, strlen(vectors[i].text), hex);
		assert_string_equal(hex, vectors[i].hash);
	}
}

/* So many times an 'a': where the length still fits into the block, and where it doesn't. */
static void test_sha256_edges(void **state)
{
	static const struct {
		size_t n;
		const char *hash;
	} edges[] = {
		{55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"},
		{56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a"},
		{63, "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34"},
		{64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"},
		{1000, "41edece42d63e8d9bf515a9ba6932e1c20cbc9f5a5d134645adb5db1b9737ea3"},
	};
	char text[1000];
	char hex[SHA256_HEX_SIZE];

	(void)state;
	memset(text, 'a', sizeof(text));
	for (size_t i = 0; i < sizeof(edges) / sizeof(edges[0]); i++) {
		sha256_hex(text, edges[i].n, hex);
		assert_string_equal(hex, edges[i].hash);
	}
}

/* RFC 4231: cases 1, 2 and 6, whose key is longer than a block. */
static void test_hmac_vectors(void **state)
{
	static const struct {
		int key_byte;
		const char *key;
		size_t key_size;
		const char *message;
		const char *code;
	} vectors[] = {
		{0x0b, NULL, 20, "Hi There",
		 "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
		{0, "Jefe", 4, "what do ya want for nothing?",
		 "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
		{0xaa, NULL, 131, "Test Using Larger Than Block-Size Key - Hash Key First",
		 "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		uint8_t code[SHA256_SIZE];
		char key[131];
		char hex[SHA256_HEX_SIZE];

		if (vectors[i].key != NULL)
			memcpy(key, vectors[i].key, vectors[i].key_size);
		else
			memset(key, vectors[i].key_byte, vectors[i].key_size);
		sha256_hmac(key, vectors[i].key_size, vectors[i].message,
			    strlen(vectors[i].message), code);
		for (size_t k = 0; k < SHA256_SIZE; k++)
			snprintf(hex + 2 * k, 3, "%02x", code[k]);
		assert_string_equal(hex, vectors[i].code);
	}
}

struct thing {
	struct name_node node;
	char name[16];
};

static void test_table_finds_all(void **state)
{
	enum { N = 1000 };
	struct thing *things = calloc(N, sizeof(*things));
	struct name_table table;
	size_t n = 0;

	(void)state;
	assert_non_null(things);
	assert_int_equal(name_table_init(&table), 0);
	for (size_t i = 0; i < N; i++) {
		snprintf(things[i].name, sizeof(things[i].name), "name-%zu", i);
		name_table_add(&table, &things[i].node, things[i].name);
	}
	assert_int_equal(table.n, N);
	assert_ptr_equal(name_table_find(&table, "name-512"), &things[512].node);
	assert_null(name_table_find(&table, "name-1000"));
	for (struct name_node *node = name_table_next(&table, NULL), *next; node != NULL;
	     node = next) {
		next = name_table_next(&table, node);
		if ((++n & 1) != 0)
			name_table_remove(&table, node);
	}
	assert_int_equal(n, N);
	assert_int_equal(table.n, N / 2);
	name_table_done(&table);
	free(things);
}

static void test_table_of_zeros(void **state)
{
	struct name_table table = {0};
	struct thing thing = {.name = "a"};

	(void)state;
	assert_null(name_table_find(&table, "a"));
	assert_null(name_table_next(&table, NULL));
	assert_null(name_table_pop(&table));
	assert_int_equal(name_table_reserve(&table), 0);
	name_table_add(&table, &thing.node, thing.name);
	assert_int_equal(name_table_reserve(&table), 0);
	assert_ptr_equal(name_table_find(&table, "a"), &thing.node);
	name_table_done(&table);
}

/* Several with one name: all are found, each once, among others of the same chain. */
static void test_table_finds_more(void **state)
{
	enum { N = 300 };
	struct thing *things = calloc(N, sizeof(*things));
	struct name_table table = {0};
	bool has_seen[N] = {false};
	size_t n = 0;

	(void)state;
	assert_non_null(things);
	assert_int_equal(name_table_reserve(&table), 0);
	for (size_t i = 0; i < N; i++) {
		snprintf(things[i].name, sizeof(things[i].name), "%zu", i % 100);
		name_table_add(&table, &things[i].node, things[i].name);
	}
	for (struct name_node *node = name_table_find(&table, "42"); node != NULL;
	     node = name_table_more(node), n++) {
		size_t at = (size_t)(name_container(node, struct thing, node) - things);

		assert_int_equal(at % 100, 42);
		assert_false(has_seen[at]);
		has_seen[at] = true;
	}
	assert_int_equal(n, 3);
	name_table_done(&table);
	free(things);
}

static void test_table_pops_all(void **state)
{
	enum { N = 1000 };
	struct thing *things = calloc(N, sizeof(*things));
	struct name_table table = {0};
	size_t n = 0;

	(void)state;
	assert_non_null(things);
	assert_int_equal(name_table_reserve(&table), 0);
	for (size_t i = 0; i < N; i++) {
		snprintf(things[i].name, sizeof(things[i].name), "name-%zu", i);
		name_table_add(&table, &things[i].node, things[i].name);
		if (i % 3 == 0) { /* what comes after a pop is found, too */
			struct name_node *node = name_table_pop(&table);

			assert_null(name_table_find(&table, node->key));
			n++;
		}
	}
	for (; name_table_pop(&table) != NULL; n++)
		;
	assert_int_equal(n, N);
	assert_int_equal(table.n, 0);
	name_table_done(&table);
	free(things);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sha256_vectors), cmocka_unit_test(test_sha256_edges),
		cmocka_unit_test(test_hmac_vectors),   cmocka_unit_test(test_table_finds_all),
		cmocka_unit_test(test_table_of_zeros), cmocka_unit_test(test_table_finds_more),
		cmocka_unit_test(test_table_pops_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
