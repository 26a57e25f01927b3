/*
 * trace.h: spans, and the ids by which both sides of a handover write one trace without talking to
 * each other.
 *
 * The trace of a handover is named by a hash of the store, the election and the old term, which the
 * old leader knows and its successor learns. The successor writes the root, baton.handover; its id
 * comes from the same hash, so that the old leader can hang baton.step_down below it.
 */
#ifndef BATON_TRACE_H
#define BATON_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRACE_EVENTS_MAX 4
#define TRACE_ATTRIBUTES_MAX 6
#define TRACE_PARENT_SIZE 56 /* 00-TRACE-SPAN-FLAGS, and a NUL */

struct trace_id {
	uint8_t trace[16];
	uint8_t root[8]; /* the span baton.handover */
};

struct span_event {
	const char *name; /* a constant */
	int64_t wall_ns;
};

struct span_attribute {
	const char *key; /* a constant */
	char text[256];
	int64_t number; /* if there is no text */
};

/* One span. Strings that are not copied are constants of the program. */
struct span {
	const char *name;
	uint8_t trace[16];
	uint8_t id[8];
	uint8_t parent[8];
	bool has_parent;
	bool is_error;
	int64_t start_ns; /* wall time */
	int64_t end_ns;
	struct span_event events[TRACE_EVENTS_MAX];
	size_t n_events;
	struct span_attribute attributes[TRACE_ATTRIBUTES_MAX];
	size_t n_attributes;
};

/*
 * The ids of the handover that ends this term. Of the store's URL only the namespace counts
 * (namespace.h): candidates may write the URL differently.
 */
struct trace_id trace_of(const char *url, const char *election, uint64_t old_term);

/* Wall time in nanoseconds. */
int64_t trace_now(void);
/* An id that no other span has. */
void trace_random(uint8_t id[8]);
/* "00-...-...-01", as W3C's Trace Context has it. */
void trace_parent(const uint8_t trace[16], const uint8_t span[8], bool sampled,
		  char out[TRACE_PARENT_SIZE]);
void trace_hex(const uint8_t *id, size_t n, char *out);

void span_begin(struct span *s, const char *name, const uint8_t trace[16]);
void span_event(struct span *s, const char *name);
void span_text(struct span *s, const char *key, const char *text);
void span_number(struct span *s, const char *key, int64_t number);

#endif
