/*
 * verbs.c: the short verbs: orders to the leader, what stores there are and what they need, which
 * version this is.
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

static int give_order(struct settings *s, int order, const char *done)
{
	struct baton_error err = {0};
	struct baton *b;

	if (s->term == 0 || s->term < -1)
		return cli_out_of_range("--term", s->term, 1, INT64_MAX);
	uint64_t term = s->term > 0 ? (uint64_t)s->term : 0;
	int code = open_store_url(s);

	if (code == 0)
		code = open_handle(s, &b);
	if (code != 0)
		return code;
	switch (order) {
	case ORDER_RESIGN:
		code = baton_order_resign(b, s->name, term, s->quiet_ms, s->note, &err);
		break;
	case ORDER_TRANSFER:
		code = baton_order_transfer(b, s->name, term, s->to, s->note, &err);
		break;
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
	return give_order(s, ORDER_RESIGN, "The leader was told to step down.");
}

int verb_transfer(struct settings *s)
{
	if (s->to == NULL)
		return cli_usage("--to is missing; write baton transfer %s --to ID", s->name);
	return give_order(s, ORDER_TRANSFER, "The leader was told to hand over.");
}

int verb_pause(struct settings *s)
{
	return give_order(s, ORDER_PAUSE, "Paused: no candidate leads until resume.");
}

int verb_resume(struct settings *s)
{
	return give_order(s, ORDER_RESUME, "Resumed.");
}

/* ---- stores ---- */

struct stores {
	bool json;
	int n;
};

static void store_json(const struct baton_driver_info *d)
{
	(void)printf("{\"store\":");
	text_json(stdout, d->name);
	(void)printf(",\"schemes\":[");
	for (size_t i = 0; d->schemes[i] != NULL; i++) {
		(void)printf("%s", i > 0 ? "," : "");
		text_json(stdout, d->schemes[i]);
	}
	(void)printf("],\"module\":");
	text_json(stdout, d->module != NULL ? d->module : "");
	(void)printf(",\"promises\":");
	text_json(stdout, d->promises);
	(void)printf(",\"min_lease_ms\":%llu,\"drift\":%u.%03u,\"pushes\":%s,"
		     "\"proves_death\":%s,\"keeps_history\":%s,\"error\":",
		     (unsigned long long)d->min_lease_ms, d->drift_permille / 1000,
		     d->drift_permille % 1000, d->pushes ? "true" : "false",
		     d->proves_death ? "true" : "false", d->keeps_history ? "true" : "false");
	text_json(stdout, d->error != NULL ? d->error : "");
	(void)printf("}");
}

static void store_text(const struct baton_driver_info *d)
{
	for (size_t i = 0; d->schemes[i] != NULL; i++)
		(void)printf("%s%s:", i > 0 ? " " : "", d->schemes[i]);
	(void)printf("%s%s\n", d->module != NULL ? "  from " : "",
		     d->module != NULL ? d->module : "");
	text_wrap(stdout, d->error != NULL ? d->error : d->promises, 4, 80);
}

static void show_store(void *arg, const struct baton_driver_info *d)
{
	struct stores *stores = arg;

	if (stores->n++ > 0)
		(void)printf("%s", stores->json ? "," : "\n");
	if (stores->json)
		store_json(d);
	else
		store_text(d);
}

int verb_stores(struct settings *s)
{
	struct stores stores = {.json = s->json != 0};

	if (stores.json)
		(void)printf("[");
	(void)baton_list_drivers(show_store, &stores);
	if (stores.json)
		(void)printf("]\n");
	return EXIT_OK;
}

/* ---- schema ---- */

struct schema {
	const char *store;
	bool fence;
	bool functions;
	bool is_known;
	bool is_there;
};

static void show_schema(void *arg, const struct baton_driver_info *d)
{
	struct schema *schema = arg;
	const char *text = schema->fence ? d->fence : schema->functions ? d->functions : d->schema;

	if (strcmp(d->name, schema->store) != 0)
		return;
	schema->is_known = d->error == NULL;
	schema->is_there = text != NULL;
	if (text != NULL)
		(void)fputs(text, stdout);
}

int verb_schema(struct settings *s)
{
	struct schema schema = {
		.store = s->name, .fence = s->fence != 0, .functions = s->functions != 0};

	if (schema.fence && schema.functions)
		return cli_usage("--fence and --functions are two scripts; choose one");
	(void)baton_list_drivers(show_schema, &schema);
	if (!schema.is_known)
		return cli_usage("there is no store \"%s\" here; \"baton stores\" lists them",
				 s->name);
	if (!schema.is_there)
		log_say(BATON_LOG_INFO, "%s stores %s", s->name,
			schema.fence       ? "have no guard to install: see baton_fence_check(3)"
			: schema.functions ? "have no functions to install"
					   : "need no tables");
	return EXIT_OK;
}
