/*
 * term.h: terms: their range, the next one, and what can be wrong with it. The core, the rules for
 * record stores and all drivers count by it. It is pure: it calls nothing and remembers nothing. A
 * driver that lets its store count (SQL, Lua) says the same in that language, with these digits.
 */
#ifndef BATON_TERM_H
#define BATON_TERM_H

#include <stdint.h>

/* Terms fit a signed 64-bit column. At the end of the range no candidate leads (C21). */
#define TERM_MAX ((uint64_t)INT64_MAX)
#define TERM_MAX_DIGITS "9223372036854775807"
/* A term that jumps further than this at once is corrupt data, not a term (S4). */
#define TERM_JUMP_MAX ((uint64_t)1 << 48)
#define TERM_JUMP_MAX_DIGITS "281474976710656"

/* What is wrong, and the sentence for it, which goes on after the election's name. */
#define TERM_FAULTS(X)                                                                             \
	X(FINE, "")                                                                                \
	X(END, "has no higher term: they are used up, or its record is damaged; give it a new "    \
	       "name")                                                                             \
	X(JUMP, "has a term in the store that is impossibly far below the one that the candidate " \
		"has seen: one of the two is damaged")                                             \
	X(BEHIND, "had higher terms than this store has: its data was put back to an earlier "     \
		  "state, or it is another store; terms go on above the highest that was seen")    \
	X(LOW, "was won in a term that isn't above all that were seen: given back")

enum term_fault {
#define X(name, text) TERM_##name,
	TERM_FAULTS(X)
#undef X
};

/* The sum, for a store that keeps a term in two parts. At the end of the range it stays there. */
static inline uint64_t term_sum(uint64_t a, uint64_t b)
{
	return a < TERM_MAX && b < TERM_MAX - a ? a + b : TERM_MAX;
}

/*
 * S3, S4: is there a term above what the store knows and above what the candidate knows? A store
 * that knows none (0) has nothing that the floor could be too far above.
 */
static inline enum term_fault term_check(uint64_t stored, uint64_t floor)
{
	if (stored >= TERM_MAX || floor >= TERM_MAX)
		return TERM_END;
	if (stored > 0 && floor > stored && floor - stored > TERM_JUMP_MAX)
		return TERM_JUMP;
	return TERM_FINE;
}

/* The next term; 0: there is none, and *fault says why. `least` is for a store that counts time,
 * and whose terms are no lower than its clock; 0 for all others. */
static inline uint64_t term_next(uint64_t stored, uint64_t floor, uint64_t least,
				 enum term_fault *fault)
{
	uint64_t higher = (stored > floor ? stored : floor) + 1;

	*fault = least > TERM_MAX ? TERM_END : term_check(stored, floor);
	if (*fault != TERM_FINE)
		return 0;
	return least > higher ? least : higher;
}

#endif
