/*
 * listing.c: which elections a store knows: each by its exact name, once, in the order of bytes,
 * for as long as the store remembers its terms.
 */
#include "backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_MAX 16

struct names {
	struct testcase *t;
	char list[NAMES_MAX][BATON_NAME_MAX + 1];
	int n;
};

/* ---- what a store tells ---- */

static void found_name(void *arg, const char *name)
{
	struct names *names = arg;

	CHECK(names->t, names->n < NAMES_MAX, "more names than there are elections: %s", name);
	snprintf(names->list[names->n++], sizeof(names->list[0]), "%s", name);
}

/* All pages. */
static void list_names(struct testcase *t, struct baton *b, const char *prefix, const char *after,
		       struct names *out)
{
	char last[BATON_NAME_MAX + 1];
	struct baton_error err = {0};
	int rc = 0;

	*out = (struct names){.t = t};
	snprintf(last, sizeof(last), "%s", after);
	do {
		uint64_t end_ns = now_ns() + t->lease_ms * MS;
		int n = out->n;

		do {
			out->n = n;
			rc = baton_list_elections(b, prefix, last, found_name, out, &err);
		} while ((rc == BATON_E_UNAVAILABLE || rc == BATON_E_TIMEOUT) && now_ns() < end_ns);
		CHECK(t, rc >= 0, "list: %s", err.text);
		CHECK(t, out->n == n + rc, "%d names in a page of %d", out->n - n, rc);
		if (rc > 0)
			snprintf(last, sizeof(last), "%s", out->list[out->n - 1]);
	} while (rc > 0);
}

static int by_bytes(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Exactly those of `all` that begin with the prefix and come after `after`. */
static void lists_exactly(struct testcase *t, struct baton *b, const struct names *all,
			  const char *prefix, const char *after)
{
	struct names got;
	int k = 0;

	list_names(t, b, prefix, after, &got);
	for (int i = 0; i < all->n; i++) {
		const char *name = all->list[i];

		if (strncmp(name, prefix, strlen(prefix)) != 0 || strcmp(name, after) <= 0)
			continue;
		CHECK(t, k < got.n && strcmp(got.list[k], name) == 0,
		      "name %d of prefix \"%.60s\" after \"%.60s\" is \"%.100s\", not \"%.100s\"",
		      k, prefix, after, k < got.n ? got.list[k] : "", name);
		k++;
	}
	CHECK(t, k == got.n, "\"%.100s\" is listed, too", got.list[k]);
}

/* ---- N42 ---- */

/* Every byte that a name may have: ASCII, what continues longer forms, and what begins them. */
static void every_byte(struct names *names)
{
	char *at = names->list[names->n++];
	char *end = at + snprintf(at, BATON_NAME_MAX, "%s~", names->t->name);

	for (char c = ' '; c < 0x7f; c++)
		*end++ = c;
	at = names->list[names->n++];
	end = at + snprintf(at, BATON_NAME_MAX, "%s~", names->t->name);
	for (unsigned c = 0x80; c < 0xc0; c++) {
		*end++ = '\xc3';
		*end++ = (char)c;
	}
	at = names->list[names->n++];
	end = at + snprintf(at, BATON_NAME_MAX, "%s~\xc2\xbf", names->t->name);
	for (unsigned c = 0xc4; c < 0xe0; c++) {
		*end++ = (char)c;
		*end++ = '\xa0';
	}
	for (unsigned c = 0xe0; c < 0xf5; c++) {
		*end++ = (char)c;
		*end++ = c == 0xf4 || c == 0xed ? '\x80' : c == 0xf0 ? '\x90' : '\xa0';
		*end++ = '\x80';
		if (c >= 0xf0)
			*end++ = '\x80';
	}
}

static void make_names(struct names *names)
{
	static const char *const tails[] = {"", "-a", "-a/b", "-a/c", "-ab", "-b", "-B", "+", "%"};

	for (unsigned i = 0; i < sizeof(tails) / sizeof(tails[0]); i++)
		snprintf(names->list[names->n++], sizeof(names->list[0]), "%s%s", names->t->name,
			 tails[i]);
	every_byte(names);
	char *longest = names->list[names->n++];

	memset(longest, 'x', BATON_NAME_MAX);
	memcpy(longest, names->t->name, strlen(names->t->name));
	qsort(names->list, (size_t)names->n, sizeof(names->list[0]), by_bytes);
}

static void elections_are_listed(struct testcase *t)
{
	struct names all = {.t = t};
	struct local *list[NAMES_MAX];
	char prefix[BATON_NAME_MAX + 1];
	char other[80];

	make_names(&all);
	struct local *eye = local_new(t, &(struct cast){.idle = true});

	/* Whoever only looks makes no election. */
	snprintf(other, sizeof(other), "%s-nobody", t->name);
	struct baton_observed status = {0};
	struct baton_error err = {0};

	CHECK(t, patient_observe(t, eye->b, other, &status, &err) == 0, "observe: %s", err.text);
	for (int i = 0; i < all.n; i++) {
		struct cast cast = {.name = all.list[i]};

		list[i] = i == 0 ? local_new(t, &cast) : local_more(list[0], &cast);
	}
	for (int i = 0; i < all.n; i++)
		local_leads(list[i], failover_ms(t));
	lists_exactly(t, eye->b, &all, t->name, "");
	for (int i = 0; i < all.n; i += 3)
		lists_exactly(t, eye->b, &all, t->name, all.list[i]);
	static const char *const tails[] = {"-a", "-a/", "~", "%", "-nobody", "+"};

	for (unsigned i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
		snprintf(prefix, sizeof(prefix), "%s%s", t->name, tails[i]);
		lists_exactly(t, eye->b, &all, prefix, "");
	}
	lists_exactly(t, eye->b, &all, all.list[all.n - 1], "");
	/* Those that are released are known as long as their terms are. */
	for (int i = 0; i < all.n; i++)
		local_stop(list[i]);
	lists_exactly(t, eye->b, &all, t->name, "");
	if (t->backend->forget == NULL)
		return;
	for (int i = all.n - 1; i >= 0; i--)
		local_close(list[i]);
	CHECK(t, t->backend->forget(t), "forget");
	all.n = 0;
	lists_exactly(t, eye->b, &all, t->name, "");
}

const struct entry cases_listing[] = {
	{"N42", "elections are listed by name, led or not", elections_are_listed, NEEDS_NOTHING,
	 60},
	{NULL, NULL, NULL, 0, 0},
};
