/*
 * task.c: what all tasks have in common, and small functions for versions and texts.
 */
#include <string.h>

#include "store/record/decide/parts.h"

const char *const record_death_words[RECORD_DEATHS] = {"", "closed", "replaced", "expired", "idle"};

int record_task_ask(struct record_task *task, uint32_t phase, int op, int why)
{
	task->phase = phase;
	task->why = why;
	return op;
}

int record_task_end(struct record_task *task, int outcome, int why)
{
	task->outcome = outcome;
	return record_task_ask(task, PHASE_DONE, RECORD_DONE, why);
}

int record_task_fail(struct record_task *task, int why)
{
	int outcome = task->was_refused ? BATON_OUTCOME_UNKNOWN : BATON_OUTCOME_FAILED;

	return record_task_end(task, outcome, why);
}

const char *record_why_text(int why)
{
	static const char *const texts[] = {
#define X(name, text) text,
		RECORD_WHYS(X)
#undef X
	};

	return texts[why];
}

bool record_same_version(const struct record_version *a, const struct record_version *b)
{
	return a->n == b->n && memcmp(a->bytes, b->bytes, a->n) == 0;
}

bool record_same_text(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

void record_copy_text(char *to, size_t size, const char *from)
{
	size_t n = strlen(from);

	if (n >= size)
		n = size - 1;
	(void)memcpy(to, from, n);
	to[n] = '\0';
}
