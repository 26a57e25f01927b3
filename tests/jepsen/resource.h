/*
 * resource.h: the value that the leaders of Jepsen's experiment change: a text in a server, read as
 * a whole and written as a whole. With a fence, both carry the term: a leader that reads has raised
 * the fence by that, so that nobody before it can write what it doesn't see.
 */
#ifndef BATON_JEPSEN_RESOURCE_H
#define BATON_JEPSEN_RESOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VALUE_MAX ((size_t)4 << 20)

enum answer { ANSWER_OK, ANSWER_REFUSED, ANSWER_UNKNOWN };

struct resource {
	void *connection;
	const char *name;
	bool is_fenced;
};

/* One table for each kind of server. */
struct resource_ops {
	bool (*open)(struct resource *r, const char *url);
	enum answer (*read)(struct resource *r, uint64_t term, char *value);
	enum answer (*write)(struct resource *r, uint64_t term, const char *value);
	void (*close)(struct resource *r);
};

extern const struct resource_ops resource_redis, resource_postgres;

#endif
