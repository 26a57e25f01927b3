/*
 * speech.c: the list of the protocols, and the one that is none.
 */
#include "speech.h"

#include <string.h>

static bool all(struct speech_state *s, const char *data, size_t n, struct message *m)
{
	(void)s;
	(void)data;
	m->n = n;
	m->is_push = false;
	speech_kind(m, "bytes", 5);
	return n > 0;
}

const struct speech speech_bytes = {.name = "bytes", .request = all, .reply = all};

static const struct speech *const list[] = {&speech_resp, &speech_postgres, &speech_http,
					    &speech_h2, &speech_bytes};

const struct speech *speech_find(const char *name)
{
	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
		if (strcmp(list[i]->name, name) == 0)
			return list[i];
	return NULL;
}

void speech_kind(struct message *m, const char *word, size_t n)
{
	if (n >= sizeof(m->kind))
		n = sizeof(m->kind) - 1;
	memcpy(m->kind, word, n);
	m->kind[n] = '\0';
}
