/*
 * words.c: strings that are shared; see memory.h.
 */
#include <stdlib.h>
#include <string.h>

#include "store/memory/memory.h"

struct memory_word *memory_word_new(const char *text)
{
	size_t size = strlen(text) + 1;
	struct memory_word *w = malloc(sizeof(*w) + size);

	if (w == NULL)
		return NULL;
	w->refs = 1;
	memcpy(w->text, text, size);
	return w;
}

struct memory_word *memory_word_ref(struct memory_word *w)
{
	w->refs++;
	return w;
}

void memory_word_unref(struct memory_word *w)
{
	if (w != NULL && --w->refs == 0)
		free(w);
}
