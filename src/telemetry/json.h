/* json.h: pieces of JSON, put together in a buffer. */
#ifndef BATON_TELEMETRY_JSON_H
#define BATON_TELEMETRY_JSON_H

#include "base/bytes.h"

/* A string with its quotes. Bytes that are not UTF-8 are replaced. */
void json_string(struct bytes *out, const char *text);
/* ,"key":"text" without the comma at the beginning of an object. */
void json_member(struct bytes *out, const char *key, const char *text);

#endif
