/*
 * protocols.c: the list of the protocols, and the one that is none.
 */
#include "protocols.h"

#include <string.h>

static bool all(struct protocol_state *s, const char *data, size_t n, struct message *m)
{
	(void)s;
	(void)data;
	m->n = n;
	m->is_push = false;
	protocol_kind(m, "bytes", 5);
	return n > 0;
}

const struct protocol protocol_bytes = {.name = "bytes", .request = all, .reply = all};

static const struct protocol *const list[] = {
	&protocol_resp, &protocol_postgres, &protocol_http,      &protocol_h2,   &protocol_mysql,
	&protocol_tds,  &protocol_mongodb,  &protocol_memcached, &protocol_bytes};

const struct protocol *protocol_find(const char *name)
{
	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
		if (strcmp(list[i]->name, name) == 0)
			return list[i];
	return NULL;
}

void protocol_kind(struct message *m, const char *word, size_t n)
{
	if (n >= sizeof(m->kind))
		n = sizeof(m->kind) - 1;
	memcpy(m->kind, word, n);
	m->kind[n] = '\0';
}
