/*
 * log.c: between the library and the application's log function. A log that blocks must not hold
 * up a renewal (L7): records wait in a ring, and what doesn't fit is counted and left out.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "runtime/messages.h"
#include "runtime/runtime.h"

#define RING 128

struct log_entry {
	int level;
	int code;
	uint64_t term;
	char election[BATON_NAME_MAX + 1];
	char message[256];
	char detail[256];
};

static void *log_main(void *arg);

int log_start(struct baton *b, struct baton_error *err)
{
	if (b->log == NULL || b->ring.running)
		return 0;
	if (b->ring.entries == NULL)
		b->ring.entries = calloc(RING, sizeof(*b->ring.entries));
	if (b->ring.entries == NULL) {
		(void)strcpy(err->text, "out of memory");
		return err->code = BATON_E_MEMORY;
	}
	if (!thread_start(&b->ring.thread, log_main, b))
		return text_fail_limits(err);
	b->ring.running = true;
	return 0;
}

void log_stop(struct baton *b)
{
	if (b->ring.running) {
		(void)pthread_mutex_lock(&b->ring.lock);
		b->ring.quit = true;
		(void)pthread_cond_signal(&b->ring.wake);
		(void)pthread_mutex_unlock(&b->ring.lock);
		(void)pthread_join(b->ring.thread, NULL);
	}
	b->ring.running = false;
	free(b->ring.entries);
	b->ring.entries = NULL;
}

void log_put(struct baton *b, int level, int code, const char *election, uint64_t term,
	     const char *detail, const char *format, ...)
{
	va_list args;

	if (!b->ring.running)
		return;
	(void)pthread_mutex_lock(&b->ring.lock);
	if (b->ring.n == RING) {
		atomic_fetch_add(&b->counters.log_dropped, 1);
	} else {
		struct log_entry *e = &b->ring.entries[(b->ring.first + b->ring.n++) % RING];

		e->level = level;
		e->code = code;
		e->term = term;
		(void)snprintf(e->election, sizeof(e->election), "%s",
			       election != NULL ? election : "");
		(void)snprintf(e->detail, sizeof(e->detail), "%s", detail != NULL ? detail : "");
		va_start(args, format);
		(void)vsnprintf(e->message, sizeof(e->message), format, args);
		va_end(args);
		(void)pthread_cond_signal(&b->ring.wake);
	}
	(void)pthread_mutex_unlock(&b->ring.lock);
}

static void *log_main(void *arg)
{
	struct baton *b = arg;

	(void)pthread_mutex_lock(&b->ring.lock);
	while (!b->ring.quit || b->ring.n > 0) {
		if (b->ring.n == 0) {
			(void)pthread_cond_wait(&b->ring.wake, &b->ring.lock);
			continue;
		}
		struct log_entry e = b->ring.entries[b->ring.first];

		b->ring.first = (b->ring.first + 1) % RING;
		b->ring.n--;
		(void)pthread_mutex_unlock(&b->ring.lock);
		struct baton_log_record record = {
			.size = sizeof(record),
			.level = e.level,
			.code = e.code,
			.term = e.term,
			.election = e.election[0] != '\0' ? e.election : NULL,
			.message = e.message,
			.detail = e.detail[0] != '\0' ? e.detail : NULL,
		};

		b->log(b->log_arg, &record);
		(void)pthread_mutex_lock(&b->ring.lock);
	}
	(void)pthread_mutex_unlock(&b->ring.lock);
	return NULL;
}
