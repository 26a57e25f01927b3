/*
 * xml.h: XML answers of servers, read strictly, element by element. It knows what such answers are
 * made of: elements, attributes (which are skipped), text with entities, comments. A document type,
 * CDATA, an entity of one's own, or anything that isn't well-formed ends the reading: nothing is
 * guessed at. It needs no memory but its own, and never reads beyond the bytes that it was given.
 *
 *     struct xml x;
 *     int event;
 *
 *     xml_init(&x, reply.body, reply.body_size);
 *     while ((event = xml_next(&x)) == XML_OPEN || event == XML_CLOSE)
 *             if (event == XML_CLOSE && xml_is(&x, "Contents", "Key"))
 *                     use(x.text);
 *     if (event == XML_BAD)
 *             what was used so far is not to be trusted
 */
#ifndef BATON_XML_H
#define BATON_XML_H

#include <stdbool.h>
#include <stddef.h>

#pragma GCC visibility push(hidden)

#define XML_DEPTH_MAX 16
#define XML_NAME_MAX 64
#define XML_TEXT_MAX 8192

enum xml_event {
	XML_OPEN,  /* an element begins: `name` */
	XML_CLOSE, /* an element ends: `name`; `text` if no other element was in it, else "" */
	XML_DONE,  /* the end of a whole document */
	XML_BAD,   /* not a document, or more than there is room for; so are all later ones */
};

struct xml {
	const char *name;        /* without a namespace's prefix */
	char text[XML_TEXT_MAX]; /* decoded, with the blanks that stand there */

	/* The rest is xml.c's. */
	const char *at, *end;
	char names[XML_DEPTH_MAX + 1][XML_NAME_MAX]; /* [1]: the outermost element */
	unsigned depth;
	size_t n_text;
	bool has_root, has_child, is_closing, is_closed, is_bad;
};

/* The bytes stay the caller's, and must stay. */
void xml_init(struct xml *x, const char *text, size_t n);
/* enum xml_event */
int xml_next(struct xml *x);
/* At XML_OPEN and XML_CLOSE: the element has that name, and stands in one of that name. NULL as the
 * parent: in any, or in none. */
bool xml_is(const struct xml *x, const char *parent, const char *name);
/* The text of the first element of that name that has one. False: there is no such element, its
 * text has no room, or the document is bad; then out is "". */
bool xml_find(const char *text, size_t n, const char *name, char *out, size_t size);

#pragma GCC visibility pop

#endif
