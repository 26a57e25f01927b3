/* parse.h: what a request says, taken apart: its path, its query, its body. Pure, as answer.h. */
#ifndef BATON_SERVE_PARSE_H
#define BATON_SERVE_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "serve/answer/answer.h"

#define PARSE_SEGMENTS 6
#define PARSE_PAIRS 8

struct parsed {
	const char *segments[PARSE_SEGMENTS];
	size_t n_segments;
	const char *keys[PARSE_PAIRS];
	const char *values[PARSE_PAIRS];
	size_t n_pairs;
	char room[SERVE_TARGET_MAX + PARSE_SEGMENTS + 2 * PARSE_PAIRS];
};

/* False: the target is refused: too long, too deep, a wrong %xx, a zero byte. */
bool parse_target(const char *target, struct parsed *out);
/* NULL: the query has no such key. */
const char *parse_query(const struct parsed *p, const char *key);
/* "500ms", "30s", "2m"; a number alone is milliseconds. Up to a day. */
bool parse_time(const char *text, int64_t *ms);
bool parse_unsigned(const char *text, uint64_t *n);
/* "0.85" as 850; from 0 to 1. */
bool parse_part(const char *text, int64_t *permille);

/* A value of a flat JSON object, as text: strings without quotes and escapes. */
struct parsed_value {
	char kind; /* 's' string, 'n' number, 'b' boolean, '0' null */
	char text[BATON_METADATA_MAX + 1];
};

/* Calls take() for each key of {"key":value,...}. NULL, or what is wrong with it in a sentence. */
const char *parse_object(const char *body, size_t n,
			 const char *(*take)(void *arg, const char *key,
					     const struct parsed_value *value),
			 void *arg);

#endif
