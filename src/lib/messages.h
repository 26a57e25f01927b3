/*
 * messages.h: words for people, and what counts as a word: the sentences of errors that come from
 * settings, and the one rule for names that all stores can keep. (The core's reasons are in
 * runtime/messages.h.)
 */
#ifndef BATON_LIB_TEXT_H
#define BATON_LIB_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "core/timing.h"

/* A sentence: what is wrong and what would be right. Never NULL. */
const char *text_timing(enum timing_fault fault);

/*
 * 1 to max bytes of strictly valid UTF-8 without control characters: fit for the name of an
 * election, an id or an address. NULL is not valid.
 */
bool text_is_name(const char *s, size_t max);
/* The same, but 0 to BATON_METADATA_MAX bytes. */
bool text_is_note(const char *s);
bool text_is_metadata(const char *s);

#endif
