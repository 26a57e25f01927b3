/*
 * nearest.h: which word of a list was probably meant by a word that is not in the list. Sentences
 * about an unknown option or command suggest that word. Nothing is ever done with a guess.
 */
#ifndef BATON_NEAREST_H
#define BATON_NEAREST_H

#pragma GCC visibility push(hidden)

/* The nearest of a NULL-terminated list, or NULL if none is near. */
const char *nearest_word(const char *word, const char *const *list);

#pragma GCC visibility pop

#endif
