/*
 * rules.h: what is to go wrong, and when: a text, a line or a part between semicolons per rule.
 *
 *     request EVALSHA nth=3 -> cut-after        the third one is carried out, nobody hears of it
 *     request @ text=job chance=5 -> late 400   of 5 in 100 the answer comes 400 ms later
 *     reply list every=10 times=2 -> half       twice, the tenth: half of it, then the end
 *     label renew 5bb1...                       requests with this text in them are called renew
 *     label renew baton:renew                   so are those of HTTP/2 with this header
 *
 * WHEN is request or reply, a kind (of the protocol, as the head of its file says, or a label; @ is
 * any label, * anything, and may be left out), and any of: text=WORD somewhere in it; nth=N,
 * every=N of those that fit so far; after=MS since the rule was set; chance=PERCENT; times=N at
 * most. The first rule that fires decides; those of a higher slot are asked first.
 *
 *     drop        it vanishes                     delay MS    it, and all behind it, waits
 *     cut         a reset instead of it           cut-after   it arrives, then comes a reset
 *     half        half of it arrives, then a reset
 *     duplicate   it arrives twice; of a request answered twice the second answer vanishes
 *     stall       nothing more goes this way, ever; the other way goes on
 * of a request only:
 *     late MS     it arrives; what the server says from then on waits
 *     mute        it arrives; the server is never heard again on this connection
 *     refuse      it does not arrive; the answer is "not now"
 *
 * The same text and the same seed make the same decisions for the same messages.
 */
#ifndef BATON_RELAY_RULES_H
#define BATON_RELAY_RULES_H

#include <stdint.h>

#include "protocols.h"

#define RULES_MAX 96
#define LABELS_MAX 16
#define TEXT_SIZE 96
#define RULES_TEXT_SIZE 16384

enum act {
	ACT_PASS,
	ACT_DROP,
	ACT_DELAY,
	ACT_CUT,
	ACT_CUT_AFTER,
	ACT_HALF,
	ACT_DUPLICATE,
	ACT_STALL,
	ACT_LATE,
	ACT_MUTE,
	ACT_REFUSE,
	N_ACTS,
};

struct rule {
	unsigned slot;
	bool on_reply;
	char kind[KIND_SIZE]; /* "*": any */
	char text[TEXT_SIZE]; /* "": any */
	uint64_t nth;         /* 0: any */
	uint64_t every;       /* 0: any */
	uint64_t times;       /* 0: always */
	uint64_t after_ms;
	uint64_t chance; /* of 100 */
	enum act act;
	uint64_t ms;
	uint64_t begin_ms; /* when it was set */
	uint64_t seen;     /* messages that fit */
	uint64_t done;
};

struct label {
	char kind[KIND_SIZE];
	char text[TEXT_SIZE];
	uint64_t seen;
};

struct rules {
	struct rule list[RULES_MAX];
	size_t n;
	struct label labels[LABELS_MAX];
	size_t n_labels;
	uint64_t seed;
	uint64_t state; /* of the random numbers */
	uint64_t fired; /* how often any of them has, those that were replaced included */
};

void rules_init(struct rules *r, uint64_t seed);
/* Replaces the rules of this slot by those of the text, which may be empty; labels stay. False: it
 * isn't understood, and nothing was changed. */
bool rules_set(struct rules *r, unsigned slot, const char *text, uint64_t now_ms, char *why,
	       size_t size);
/* Gives a request its label; true: it has one. */
bool rules_label(struct rules *r, struct message *m);
/* Which rule fires, if any. */
const struct rule *rules_match(struct rules *r, bool is_reply, bool is_labelled,
			       const struct message *m, uint64_t now_ms);
/* The whole list again, with the seed and how often each rule has fired, as comments. */
void rules_text(const struct rules *r, char *to, size_t size);

#endif
