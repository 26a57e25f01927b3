/*
 * history.c: the verb history: reads the lines that campaign.lua writes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/redis/redis.h"

/* Takes a field off a line; false: there is none. */
static bool history_field(const char **at, char *out, size_t size)
{
	size_t n = strcspn(*at, "\t");

	if (n >= size || (*at)[n] != '\t')
		return false;
	(void)memcpy(out, *at, n);
	out[n] = '\0';
	*at += n + 1;
	return true;
}

/* Reads "term since until ended server leader", and the note if there is one. Times are
 * microseconds of that server's clock. */
static bool history_read(const char *line, struct baton_leadership *out)
{
	char term[24], since[24], until[24], server[48];

	*out = (struct baton_leadership){.size = sizeof(*out)};
	if (!history_field(&line, term, sizeof(term)) ||
	    !history_field(&line, since, sizeof(since)) ||
	    !history_field(&line, until, sizeof(until)) ||
	    !history_field(&line, out->ended, sizeof(out->ended)) ||
	    !history_field(&line, server, sizeof(server)))
		return false;
	uint64_t since_us = strtoull(since, NULL, 10);
	uint64_t until_us = strtoull(until, NULL, 10);

	out->term = strtoull(term, NULL, 10);
	out->since_ms = (int64_t)(since_us / 1000);
	out->until_ms = (int64_t)(until_us / 1000);
	out->since_ns = since_us * 1000;
	out->until_ns = until_us * 1000;
	(void)snprintf(out->clock, sizeof(out->clock), "redis %s", server);
	const char *note = strchr(line, '\t');

	(void)snprintf(out->leader, sizeof(out->leader), "%.*s", (int)strcspn(line, "\t"), line);
	(void)snprintf(out->note, sizeof(out->note), "%s", note != NULL ? note + 1 : "");
	return true;
}

int redis_history(void *l, struct baton_call *call, const char *name, size_t max,
		  void (*found)(void *arg, const struct baton_leadership *leadership), void *arg)
{
	struct redis_lane *lane = l;
	const struct resp *reply;
	int outcome = max > 0 ? redis_call_begin(lane, call, REDIS_HISTORY, 2) : 0;

	if (outcome != BATON_OUTCOME_OK)
		return max > 0 ? outcome : BATON_OUTCOME_OK;
	resp_text(&lane->wire.out, name);
	resp_number(&lane->wire.out, max < 10000 ? max : 10000);
	outcome = redis_call_end(lane, call, REDIS_HISTORY, &reply);
	if (outcome != BATON_OUTCOME_OK)
		return outcome;
	for (size_t i = 0; i < reply->n; i++) {
		struct baton_leadership row;

		if (!history_read(resp_get(reply, i), &row))
			return redis_call_strange(lane, call);
		found(arg, &row);
	}
	return BATON_OUTCOME_OK;
}
