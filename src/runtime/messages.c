/* messages.c: see messages.h. */
#include "runtime/messages.h"

#include <stdio.h>

#include "baton-store.h"
#include "core/core.h"

static const char *const texts[] = {
#define X(name, text) text,
	CORE_WHYS(X)
#undef X
};

struct meaning {
	const char *word;
	int reason;
	int code;
};

/* A reason that isn't listed here ends no leadership and is not an error. */
static const struct meaning meanings[] = {
	[WHY_EXPIRED] = {"expired", BATON_REASON_EXPIRED, 0},
	[WHY_REFUSED] = {"refused", BATON_REASON_REFUSED, 0},
	[WHY_SUPERSEDED] = {"superseded", BATON_REASON_SUPERSEDED, 0},
	[WHY_GONE] = {"gone", BATON_REASON_GONE, 0},
	[WHY_STALLED] = {"stalled", BATON_REASON_STALLED, 0},
	[WHY_STOPPED] = {"stopped", BATON_REASON_STOPPED, 0},
	[WHY_RESIGNED] = {"resigned", BATON_REASON_RESIGNED, 0},
	[WHY_ORDERED] = {"ordered", BATON_REASON_ORDERED, 0},
	[WHY_TRANSFER] = {"transferred", BATON_REASON_TRANSFERRED, 0},
	[WHY_UNHEALTHY] = {"unhealthy", BATON_REASON_UNHEALTHY, 0},
	[WHY_PAUSED] = {"paused", BATON_REASON_PAUSED, 0},
	[WHY_FAILED] = {"failed", 0, BATON_E_UNAVAILABLE},
	[WHY_UNKNOWN] = {"unknown", 0, BATON_E_UNAVAILABLE},
	[WHY_BAD_TERM] = {"bad-term", 0, BATON_E_CORRUPT},
	[WHY_FLOOR_JUMP] = {"floor-jump", 0, BATON_E_CORRUPT},
	[WHY_TERM_END] = {"term-end", 0, BATON_E_CORRUPT},
	[WHY_TRANSFER_REFUSED] = {"transfer-refused", 0, BATON_E_NO_CANDIDATE},
	[WHY_TRANSFER_ABORTED] = {"transfer-aborted", 0, BATON_E_NO_CANDIDATE},
	[WHY_DRAINING] = {"draining", 0, BATON_E_BUSY},
};

static const struct meaning *meaning_of(uint8_t why)
{
	static const struct meaning none = {"other", 0, BATON_E_UNAVAILABLE};

	if (why >= sizeof(meanings) / sizeof(meanings[0]) || meanings[why].word == 0)
		return &none;
	return &meanings[why];
}

const char *text_of_why(uint8_t why)
{
	return why < sizeof(texts) / sizeof(texts[0]) ? texts[why] : texts[WHY_NONE];
}

const char *text_of_error(int code, uint8_t why)
{
	if (code == BATON_E_DUPLICATE_ID)
		return "another living candidate has the same id; give each candidate its own";
	if (why == WHY_NONE)
		return "the watch failed; until it works again, changes are found late, by polling";
	return text_of_why(why);
}

int text_fail_limits(struct baton_error *err)
{
	(void)snprintf(err->text, sizeof(err->text),
		       "no descriptor or thread is left for a baton handle; raise the limits "
		       "(ulimit -n, ulimit -u)");
	return err->code = BATON_E_SYSTEM;
}

const char *text_word_of_why(uint8_t why)
{
	return meaning_of(why)->word;
}

int reason_of_why(uint8_t why)
{
	return meaning_of(why)->reason;
}

int code_of_why(uint8_t why)
{
	int code = meaning_of(why)->code;

	return code != 0 ? code : BATON_E_UNAVAILABLE;
}

int obstacle_of_why(uint8_t why)
{
	switch (why) {
	case WHY_PAUSED: return BATON_OBSTACLE_PAUSED;
	case WHY_UNHEALTHY: return BATON_OBSTACLE_UNHEALTHY;
	case WHY_STOPPED:
	case WHY_NOT_STARTED:
	case WHY_UNWANTED: return BATON_OBSTACLE_STOPPED;
	case WHY_TERM_END: return BATON_OBSTACLE_TERMS;
	case WHY_FAILED:
	case WHY_LATE: return BATON_OBSTACLE_STORE;
	default: return BATON_OBSTACLE_HELD;
	}
}
