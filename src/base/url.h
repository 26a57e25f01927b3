/*
 * url.h: URLs taken apart, strictly: what isn't understood is refused, never guessed at.
 *
 *     scheme:path?key=value&key=value
 *     scheme://authority/path?key=value
 *
 * There is no fragment. Keys and values are percent-encoded; a '+' is a plus.
 */
#ifndef BATON_URL_H
#define BATON_URL_H

#include <stdbool.h>
#include <stddef.h>

/* A piece of the URL that was split; not terminated. */
struct url_part {
	const char *at;
	size_t n;
};

struct url {
	struct url_part scheme;
	struct url_part authority;
	struct url_part path;
	struct url_part query;
	bool has_authority; /* there was a "//" */
};

/* False: not a URL (no scheme, a control character, a blank, a fragment). */
bool url_split(const char *text, struct url *out);

/* False: a '%' without two hex digits, an encoded NUL, or no room. Terminates. */
bool url_decode(struct url_part part, char *out, size_t size);

/* Takes "user:password@", "user@" or ":password@" off the front of an authority, if it is there.
 * False: it can't be read, or there is no room. */
bool url_take_login(struct url_part *authority, char *user, size_t user_size, char *password,
		    size_t password_size);

/* Takes the next of "host,host:port,[::1]:port" off the list; the port has 8 bytes, and keeps what
 * is in it (the usual one) if the list names none. 1: there was one; 0: the end; -1: malformed. */
int url_next_host(struct url_part *list, char *name, size_t size, char *port);

/* Takes the next "key=value" off the query. 1: there was one; 0: the end; -1: malformed. */
int url_next_option(struct url_part *query, char *key, size_t key_size, char *value,
		    size_t value_size);

#endif
