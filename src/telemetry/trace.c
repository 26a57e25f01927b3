/* trace.c: see trace.h. */
#include "telemetry/trace.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/bytes.h"
#include "base/sha256.h"
#include "telemetry/namespace.h"

struct trace_id trace_of(const char *url, const char *election, uint64_t old_term)
{
	uint8_t digest[SHA256_SIZE];
	struct bytes text = {0};
	struct trace_id id;

	bytes_print(&text, "baton.handover\n");
	namespace_of(url, &text);
	bytes_print(&text, "\n%s\n%llu", election, (unsigned long long)old_term);
	sha256(text.at != NULL ? text.at : "", text.n, digest);
	bytes_done(&text);
	(void)memcpy(id.trace, digest, sizeof(id.trace));
	(void)memcpy(id.root, digest + sizeof(id.trace), sizeof(id.root));
	return id;
}

int64_t trace_now(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void trace_random(uint8_t id[8])
{
	if (getrandom(id, 8, GRND_NONBLOCK) != 8) {
		int64_t now = trace_now();

		(void)memcpy(id, &now, 8);
	}
	id[0] |= 1; /* an id of zero means that there is none */
}

void trace_hex(const uint8_t *id, size_t n, char *out)
{
	for (size_t i = 0; i < n; i++)
		(void)snprintf(out + 2 * i, 3, "%02x", id[i]);
}

void trace_parent(const uint8_t trace[16], const uint8_t span[8], bool sampled,
		  char out[TRACE_PARENT_SIZE])
{
	char trace_text[33];
	char span_hex[17];

	trace_hex(trace, 16, trace_text);
	trace_hex(span, 8, span_hex);
	(void)snprintf(out, TRACE_PARENT_SIZE, "00-%s-%s-%s", trace_text, span_hex,
		       sampled ? "01" : "00");
}

/* ---- spans ---- */

void span_begin(struct span *s, const char *name, const uint8_t trace[16])
{
	*s = (struct span){.name = name, .start_ns = trace_now()};
	(void)memcpy(s->trace, trace, sizeof(s->trace));
	trace_random(s->id);
}

void span_event(struct span *s, const char *name)
{
	if (s->n_events < TRACE_EVENTS_MAX)
		s->events[s->n_events++] = (struct span_event){name, trace_now()};
}

void span_text(struct span *s, const char *key, const char *text)
{
	if (s->n_attributes == TRACE_ATTRIBUTES_MAX)
		return;
	struct span_attribute *a = &s->attributes[s->n_attributes++];

	a->key = key;
	(void)snprintf(a->text, sizeof(a->text), "%s", text);
}

void span_number(struct span *s, const char *key, int64_t number)
{
	if (s->n_attributes == TRACE_ATTRIBUTES_MAX)
		return;
	s->attributes[s->n_attributes++] = (struct span_attribute){.key = key, .number = number};
}
