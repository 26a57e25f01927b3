/*
 * test_web_xml.c: XML answers of servers: what is understood, and what is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/web/xml.h"

/* All events as one line: "+a +b -b(text) -a ." for a document, "!" for a bad end. */
static const char *told(const char *text)
{
	static char out[4096];
	struct xml x;
	size_t n = 0;
	int event;

	out[0] = '\0';
	xml_init(&x, text, strlen(text));
	do {
		event = xml_next(&x);
		if (event == XML_OPEN)
			n += (size_t)snprintf(out + n, sizeof(out) - n, "+%s ", x.name);
		else if (event == XML_CLOSE)
			n += (size_t)snprintf(out + n, sizeof(out) - n, "-%s(%s) ", x.name, x.text);
		else
			n += (size_t)snprintf(out + n, sizeof(out) - n,
					      event == XML_DONE ? "." : "!");
	} while (event == XML_OPEN || event == XML_CLOSE);
	assert_int_equal(xml_next(&x), event);
	return out;
}

static void test_reads(void **state)
{
	(void)state;
	assert_string_equal(told("<a/>"), "+a -a() .");
	assert_string_equal(told("<?xml version=\"1.0\"?>\n<a> <b>x y</b>\n<c k='>'/></a>\n"),
			    "+a +b -b(x y) +c -c() -a() .");
	assert_string_equal(told("\xef\xbb\xbf<!-- <b> --><n:a xmlns:n = \"u\"><n:b></n:b ></n:a>"),
			    "+a +b -b() -a() .");
	assert_string_equal(told("<a>&lt;&gt;&amp;&quot;&apos;&#65;&#x20aC;&#x10ffff;</a>"),
			    "+a -a(<>&\"'A\xe2\x82\xac\xf4\x8f\xbf\xbf) .");
	assert_string_equal(told("<a>x<!-- y -->z</a>"), "+a -a(xz) .");
	/* The text of an element that has others in it isn't told. */
	assert_string_equal(told("<a>x<b>y</b> </a>"), "+a +b -b(y) -a() .");
}

static void test_refuses(void **state)
{
	static const char *const bad[] = {
		"",
		"x",
		"<a>",
		"<a",
		"<a><b></a>",
		"<a></b>",
		"</a>",
		"<a/><b/>",
		"<a/>x",
		"<a b></a>",
		"<a b=c></a>",
		"<a b='c></a>",
		"<a b='c'd='e'/>x",
		"<1a/>",
		"< a/>",
		"<a / >",
		"<!DOCTYPE a><a/>",
		"<a><![CDATA[x]]></a>",
		"<a>&x;</a>",
		"<a>&#0;</a>",
		"<a>&#xd800;</a>",
		"<a>&#x110000;</a>",
		"<a>&#99999999;</a>",
		"<a>&#;</a>",
		"<a>&#x;</a>",
		"<a>&lt</a>",
		"<a>&</a>",
		"<a>&amp",
		"<!-- <a/>",
		"<? <a/>",
		"<a><b/>x</a>",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const char *out = told(bad[i]);

		if (out[strlen(out) - 1] != '!')
			fail_msg("%s: %s", bad[i], out);
	}
	struct xml x;

	xml_init(&x, "<a>\0</a>", 8);
	assert_int_equal(xml_next(&x), XML_OPEN);
	assert_int_equal(xml_next(&x), XML_BAD);
}

/* A document that fills a limit, and one that is a byte over it. */
static void fill(char *out, const char *before, size_t n, const char *after)
{
	size_t at = strlen(before);

	(void)memcpy(out, before, at);
	(void)memset(out + at, 'x', n);
	(void)strcpy(out + at + n, after);
}

static void test_limits(void **state)
{
	static char text[XML_TEXT_MAX + 100];
	struct xml x;

	(void)state;
	for (size_t over = 0; over < 2; over++) {
		fill(text, "<a>", XML_TEXT_MAX - 1 + over, "</a>");
		xml_init(&x, text, strlen(text));
		assert_int_equal(xml_next(&x), XML_OPEN);
		assert_int_equal(xml_next(&x), over ? XML_BAD : XML_CLOSE);
		fill(text, "<", XML_NAME_MAX - 1 + over, "/>");
		xml_init(&x, text, strlen(text));
		assert_int_equal(xml_next(&x), over ? XML_BAD : XML_OPEN);
		text[0] = '\0';
		for (size_t i = 0; i < XML_DEPTH_MAX + over; i++)
			(void)strcat(text, "<a>");
		for (size_t i = 0; i < XML_DEPTH_MAX + over; i++)
			(void)strcat(text, "</a>");
		const char *out = told(text);

		assert_int_equal(out[strlen(out) - 1], over ? '!' : '.');
	}
}

static void test_is(void **state)
{
	static const char text[] = "<l><o><k>1</k></o><k>2</k></l>";
	struct xml x;
	char seen[64] = "";

	(void)state;
	xml_init(&x, text, strlen(text));
	for (int event; (event = xml_next(&x)) == XML_OPEN || event == XML_CLOSE;) {
		if (xml_is(&x, "o", "k"))
			(void)strcat(strcat(seen, "o"), x.text);
		if (xml_is(&x, "l", "k"))
			(void)strcat(strcat(seen, "l"), x.text);
	}
	assert_string_equal(seen, "oo1ll2");
}

static void test_find(void **state)
{
	static const char text[] = "<Error><Code/><Code>NoSuchKey</Code><Code>b</Code></Error>";
	char out[16];

	(void)state;
	assert_true(xml_find(text, strlen(text), "Code", out, sizeof(out)));
	assert_string_equal(out, "NoSuchKey");
	assert_false(xml_find(text, strlen(text), "Code", out, sizeof("NoSuchKey") - 1));
	assert_string_equal(out, "");
	assert_false(xml_find(text, strlen(text), "Message", out, sizeof(out)));
	assert_false(xml_find(text, strlen(text) - 1, "Code", out, sizeof(out)));
	assert_string_equal(out, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads),  cmocka_unit_test(test_refuses),
		cmocka_unit_test(test_limits), cmocka_unit_test(test_is),
		cmocka_unit_test(test_find),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
