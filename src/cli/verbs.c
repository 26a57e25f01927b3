/*
 * verbs.c: the short verbs: orders to whoever leads, what stores there are, which version this is.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

#ifndef BATON_VERSION
#define BATON_VERSION "unknown"
#endif

int verb_version(struct settings *s)
{
	if (s->json != 0)
		(void)printf("{\"command\":\"%s\",\"library\":\"%s\"}\n", BATON_VERSION,
			     baton_version());
	else
		(void)printf("baton %s (library %s)\n", BATON_VERSION, baton_version());
	return EXIT_OK;
}

/* ---- orders ---- */

enum order { ORDER_RESIGN, ORDER_TRANSFER, ORDER_PAUSE, ORDER_RESUME };

static int give(struct settings *s, int order, const char *done)
{
	struct baton_error err = {0};
	struct baton *b;
	int code = open_store_url(s);

	if (code == 0)
		code = open_handle(s, &b);
	if (code != 0)
		return code;
	switch (order) {
	case ORDER_RESIGN: code = baton_order_resign(b, s->name, s->quiet_ms, &err); break;
	case ORDER_TRANSFER: code = baton_order_transfer(b, s->name, s->to, &err); break;
	case ORDER_PAUSE: code = baton_pause(b, s->name, &err); break;
	default: code = baton_resume(b, s->name, &err); break;
	}
	baton_close(b);
	if (code != 0)
		return open_fail(&err);
	if (s->json != 0)
		(void)printf("{\"ok\":true}\n");
	else
		(void)printf("%s\n", done);
	return EXIT_OK;
}

int verb_resign(struct settings *s)
{
	return give(s, ORDER_RESIGN, "The leader was told to step down.");
}

int verb_transfer(struct settings *s)
{
	if (s->to == NULL)
		return cli_usage("to whom? baton transfer %s --to ID", s->name);
	return give(s, ORDER_TRANSFER, "The leader was told to hand over.");
}

int verb_pause(struct settings *s)
{
	return give(s, ORDER_PAUSE, "Paused: nobody leads until resume.");
}

int verb_resume(struct settings *s)
{
	return give(s, ORDER_RESUME, "Resumed.");
}

/* ---- stores ---- */

int verb_stores(struct settings *s)
{
	/* Opening does no I/O, and a handle knows what its store promises. */
	static const char *const urls[] = {"file:/tmp", "memory:stores"};
	const char *comma = "";

	if (s->json != 0)
		(void)printf("[");
	for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
		struct baton *b;
		char scheme[16];

		if (baton_open(urls[i], NULL, &b, NULL) != 0)
			continue;
		(void)snprintf(scheme, sizeof(scheme), "%.*s", (int)strcspn(urls[i], ":"), urls[i]);
		if (s->json != 0) {
			(void)printf("%s{\"store\":\"%s\",\"promises\":", comma, scheme);
			text_json(stdout, baton_promises(b));
			(void)printf("}");
		} else {
			(void)printf("%s%s:\n%s\n", comma[0] != '\0' ? "\n" : "", scheme,
				     baton_promises(b));
		}
		comma = ",";
		baton_close(b);
	}
	if (s->json != 0)
		(void)printf("]\n");
	return EXIT_OK;
}
