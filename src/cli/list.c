/*
 * list.c: the verb list: the names of the elections that a store knows. It asks for page after page
 * and prints each name as it comes, so that a store with many elections needs no memory here.
 */
#include <string.h>

#include "cli/cli.h"

struct listing {
	bool json;
	size_t n;
	char last[BATON_NAME_MAX + 1]; /* the next page begins after it */
};

static void list_name(void *arg, const char *name)
{
	struct listing *l = arg;

	(void)snprintf(l->last, sizeof(l->last), "%s", name);
	if (l->json) {
		(void)printf("%s{\"election\":", l->n > 0 ? "," : "[");
		text_json(stdout, name);
		(void)printf("}");
	} else {
		(void)printf("%s\n", name);
	}
	l->n++;
}

int verb_list(struct settings *s)
{
	struct listing l = {.json = s->json != 0};
	struct baton_error err = {0};
	struct baton *b;
	int code = open_store_url(s);

	if (code == 0)
		code = open_handle(s, &b);
	if (code != 0)
		return code;
	int n;

	do
		n = baton_list_elections(b, s->prefix, l.last, list_name, &l, &err);
	while (n > 0 && ferror(stdout) == 0);
	if (l.json && (n >= 0 || l.n > 0))
		(void)printf("%s]\n", l.n == 0 ? "[" : "");
	if (n < 0)
		code = open_fail(&err);
	baton_close(b);
	return code;
}
