/*
 * baton-memory.h: the memory store's switches, for tests of your own programs.
 *
 * All handles of one process that are opened on "memory:NAME" share the store NAME. It keeps
 * what real stores keep, and lives as long as a handle or a struct baton_memory is open on it:
 * hold one of these if terms are to survive the last handle. A test turns the switches while the
 * program under test runs as it always does:
 *
 *     struct baton_memory *m;
 *
 *     baton_memory_open("memory:test", &m, NULL);
 *     start_my_program("memory:test");
 *     wait_until_it_leads();
 *     baton_memory_black_hole(m, BATON_MEMORY_ANY, BATON_MEMORY_ALWAYS);
 *     wait_until_it_has_stopped_working();    // by its own clock, without a word from the store
 *     baton_memory_heal(m);
 *     wait_until_it_leads();
 *     baton_memory_close(m);
 *
 * Switches that make the store break its own promises say so. Functions may be called from any
 * thread. They don't block, and take effect for calls that begin later. In the child of a fork()
 * the stores are empty, and a switch that the parent opened may only be closed.
 */
#ifndef BATON_MEMORY_H
#define BATON_MEMORY_H

#include <baton.h>

#ifdef __cplusplus
extern "C" {
#endif

struct baton_memory; /* somebody's hand on the switches of one store */

/* What a handle asks of its store; each call of a batch counts once. */
enum baton_memory_verb {
	BATON_MEMORY_ANY,
	BATON_MEMORY_OPEN,       /* opens a lease */
	BATON_MEMORY_RENEW,      /* renews it, for all elections on it */
	BATON_MEMORY_CLOSE,      /* gives it back with all that it carries */
	BATON_MEMORY_CLAIMS,     /* asks what is on it */
	BATON_MEMORY_CAMPAIGN,   /* tries to become leader */
	BATON_MEMORY_RELEASE,    /* gives one leadership back */
	BATON_MEMORY_OBSERVE,    /* asks who leads */
	BATON_MEMORY_WATCH,      /* waits for hints */
	BATON_MEMORY_PUBLISH,    /* shows a candidate */
	BATON_MEMORY_WITHDRAW,   /* and takes it back */
	BATON_MEMORY_CANDIDATES, /* lists them */
	BATON_MEMORY_ORDER,      /* leaves an order for a leader */
	BATON_MEMORY_PAUSE,      /* pauses or resumes an election */
	BATON_MEMORY_HISTORY,    /* lists past leaderships */
	BATON_MEMORY_LIST,       /* lists elections */
	BATON_MEMORY_VERBS,      /* how many there are; not a verb */
};

/* As `times`: until it is turned off. 0 turns it off. */
#define BATON_MEMORY_ALWAYS UINT32_MAX

/*
 * Opens the switches of the store that the URL names ("memory:NAME"), and makes the store if it
 * isn't there. err may be NULL.
 */
BATON_API int baton_memory_open(const char *url, struct baton_memory **out,
				struct baton_error *err);

/* Lets go. What was switched stays as it is while somebody else uses the store. Takes NULL. */
BATON_API void baton_memory_close(struct baton_memory *m);

/* ---- the store's clock: leases and reservations end by it ---- */

/*
 * Held, the clock stands still until it is set or advanced; let go, it runs on from where it
 * stands. The handles' own clocks are not touched: a store whose clock runs ahead of them breaks
 * the promise that a lease is never shorter than asked for, so two may lead for a while.
 */
BATON_API void baton_memory_hold_clock(struct baton_memory *m, bool held);
/* What it shows. */
BATON_API uint64_t baton_memory_clock_ms(struct baton_memory *m);
/* Sets it, forward or back. What has expired by then is gone at once, and is hinted at. */
BATON_API void baton_memory_set_clock(struct baton_memory *m, uint64_t ms);
/* Moves it on by that much. */
BATON_API void baton_memory_advance(struct baton_memory *m, uint64_t ms);

/* ---- campaigns ---- */

/*
 * The next campaigns in the named election (NULL: in any) win, whoever holds it, kept for whom,
 * paused or not, if only the candidate's lease lives. Takes a leadership away without a word: two
 * may lead for a while, in different terms. Returns 0 or BATON_E_MEMORY.
 */
BATON_API int baton_memory_win(struct baton_memory *m, const char *name, uint32_t times);
/* They are refused, though it may be free. Replaces win for that name. */
BATON_API int baton_memory_lose(struct baton_memory *m, const char *name, uint32_t times);
/*
 * Nobody wins what is free before that much time has passed on the store's clock, as on a server
 * that has just begun and may have lost leases (0: from now on as usual). Whoever leads goes on.
 * `why` is what candidates are told; NULL: something general.
 */
BATON_API void baton_memory_bar(struct baton_memory *m, uint64_t ms, const char *why);

/* ---- faults: one at a time for each verb; one for BATON_MEMORY_ANY, which comes second ---- */

/* Calls fail with this code and sentence (NULL: a general one). Nothing is carried out. */
BATON_API void baton_memory_fail(struct baton_memory *m, int verb, uint32_t times, int code,
				 const char *text);
/* The same, but the caller can't know that nothing was carried out. */
BATON_API void baton_memory_doubt(struct baton_memory *m, int verb, uint32_t times, int code,
				  const char *text);
/*
 * Calls reach the store this much later. Who has to wait beyond the call's deadline is not carried
 * out, and doesn't know.
 */
BATON_API void baton_memory_delay(struct baton_memory *m, int verb, uint32_t times, uint64_t ms);
/*
 * Calls are carried out at once, but their reply comes this much later; beyond the deadline it
 * doesn't come, and the caller doesn't know that it was carried out.
 */
BATON_API void baton_memory_delay_replies(struct baton_memory *m, int verb, uint32_t times,
					  uint64_t ms);
/*
 * Calls are carried out, but the caller doesn't know: it waits for the reply until the deadline,
 * or is told at once that the connection broke.
 */
BATON_API void baton_memory_drop_replies(struct baton_memory *m, int verb, uint32_t times,
					 bool at_once);
/*
 * Calls get no answer until their deadline, and are not carried out. Those that still wait when
 * it is turned off are, like packets that are sent again.
 */
BATON_API void baton_memory_black_hole(struct baton_memory *m, int verb, uint32_t times);
/* Turns all faults off, win, lose and bar too. Calls that wait go on. */
BATON_API void baton_memory_heal(struct baton_memory *m);

/* ---- what others do to the store ---- */

/*
 * Ends the leases of the candidates with this id (NULL: of all) as if their time had passed, with
 * all that is on them. Returns how many. Breaks the promise that a lease is never shorter than
 * asked for.
 */
BATON_API size_t baton_memory_expire(struct baton_memory *m, const char *id);
/* Takes the claim on the named election away from its holder. Whether there was one. */
BATON_API bool baton_memory_destroy(struct baton_memory *m, const char *name);
/*
 * Overwrites the record of the named election: held by `leader` (NULL: by nobody) in exactly this
 * term, lower or higher than before, for ttl_ms (0: for ever). Returns 0 or BATON_E_MEMORY.
 */
BATON_API int baton_memory_overwrite(struct baton_memory *m, const char *name, const char *leader,
				     uint64_t term, uint64_t ttl_ms);
/* Forgets everything, terms too: a server that lost its disk. Breaks what it acknowledged. */
BATON_API void baton_memory_forget(struct baton_memory *m);

/* ---- traffic ---- */

/* How many calls of this verb (BATON_MEMORY_ANY: of all) have begun since the store was made. */
BATON_API uint64_t baton_memory_calls(struct baton_memory *m, int verb);

#ifdef __cplusplus
}
#endif

#endif
