/*
 * baton-memory.h: the memory store's switches, for tests of your own programs.
 *
 * All handles of one process that are opened on "memory:NAME" share the store NAME. The store keeps
 * what real stores keep. It lives as long as a handle or a struct baton_memory is open on it: keep
 * a struct baton_memory open if terms must survive the last handle. A test turns the switches while
 * the program under test runs as it always does:
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
 * The comment of a switch says so if the switch makes the store break its own promises. Functions
 * may be called from any thread. They don't block, and they affect calls that begin later. In the
 * child of a fork() the stores are empty, and a struct baton_memory that the parent opened may only
 * be closed.
 */
#ifndef BATON_MEMORY_H
#define BATON_MEMORY_H

#include <baton.h>

#ifdef __cplusplus
extern "C" {
#endif

struct baton_memory; /* access to the switches of one store */

/* What a handle asks of its store. A batch counts as one call. */
enum baton_memory_verb {
	BATON_MEMORY_ANY,
	BATON_MEMORY_OPEN,       /* opens a lease */
	BATON_MEMORY_RENEW,      /* renews a lease, for all elections on it */
	BATON_MEMORY_CLOSE,      /* closes a lease and releases all that it carries */
	BATON_MEMORY_CLAIMS,     /* lists the claims on a lease */
	BATON_MEMORY_CAMPAIGN,   /* tries to become leader */
	BATON_MEMORY_RELEASE,    /* gives one leadership back */
	BATON_MEMORY_OBSERVE,    /* asks who leads */
	BATON_MEMORY_WATCH,      /* waits for hints */
	BATON_MEMORY_PUBLISH,    /* shows a candidate */
	BATON_MEMORY_WITHDRAW,   /* stops showing a candidate */
	BATON_MEMORY_CANDIDATES, /* lists candidates */
	BATON_MEMORY_ORDER,      /* leaves an order for a leader */
	BATON_MEMORY_PAUSE,      /* pauses or resumes an election */
	BATON_MEMORY_HISTORY,    /* lists past leaderships */
	BATON_MEMORY_LIST,       /* lists elections */
	BATON_MEMORY_VERBS,      /* the number of verbs; not a verb */
};

/* A value for `times`: the switch stays on until it is turned off. 0 turns a switch off. */
#define BATON_MEMORY_ALWAYS UINT32_MAX

/*
 * Opens the switches of the store that the URL names ("memory:NAME"), and makes the store if it
 * doesn't exist. err may be NULL.
 */
BATON_API int baton_memory_open(const char *url, struct baton_memory **out,
				struct baton_error *err);

/* Closes the switches. They stay as they are while another user keeps the store open. Takes
 * NULL. */
BATON_API void baton_memory_close(struct baton_memory *m);

/* ---- the store's clock: leases and reservations end by it ---- */

/*
 * Stops the store's clock (true), or lets it run on from where it stands (false). A stopped clock
 * moves only when it is set or advanced. The handles' own clocks are not touched. If the store's
 * clock runs ahead of them, the store breaks the promise that a lease is never shorter than asked
 * for, so two candidates may lead for a while.
 */
BATON_API void baton_memory_hold_clock(struct baton_memory *m, bool held);
/* The time that the store's clock shows. */
BATON_API uint64_t baton_memory_clock_ms(struct baton_memory *m);
/* Sets the clock, forward or back. What has expired by the new time ends at once, with hints. */
BATON_API void baton_memory_set_clock(struct baton_memory *m, uint64_t ms);
/* Moves the clock forward by ms. */
BATON_API void baton_memory_advance(struct baton_memory *m, uint64_t ms);

/* ---- campaigns ---- */

/*
 * The next campaigns in the named election (NULL: in any) win if the candidate's lease lives, even
 * if the election is held, reserved or paused. The old leader is not told: two candidates may lead
 * for a while, in different terms. Returns 0 or BATON_E_MEMORY.
 */
BATON_API int baton_memory_win(struct baton_memory *m, const char *name, uint32_t times);
/* The next campaigns are refused, even if the election is free. Replaces
 * baton_memory_win() for that name. */
BATON_API int baton_memory_lose(struct baton_memory *m, const char *name, uint32_t times);
/*
 * No campaign wins before ms have passed on the store's clock, as on a server that has just started
 * and may have lost leases. 0 ends the wait. Present leaders go on. Candidates are told `why`;
 * NULL: a general sentence.
 */
BATON_API void baton_memory_bar(struct baton_memory *m, uint64_t ms, const char *why);

/* ---- faults ---- */

/*
 * Each verb has at most one fault; the fault of BATON_MEMORY_ANY applies to verbs that have none.
 */

/* Calls fail with this code and sentence (NULL: a general one). Nothing is carried out. */
BATON_API void baton_memory_fail(struct baton_memory *m, int verb, uint32_t times, int code,
				 const char *text);
/* As baton_memory_fail(), but the caller can't know that nothing was carried out. */
BATON_API void baton_memory_doubt(struct baton_memory *m, int verb, uint32_t times, int code,
				  const char *text);
/*
 * Calls reach the store ms later. A call that would have to wait beyond its deadline is not carried
 * out, and the caller can't know that.
 */
BATON_API void baton_memory_delay(struct baton_memory *m, int verb, uint32_t times, uint64_t ms);
/*
 * Calls are carried out at once, but their replies come ms later. A reply that would come after the
 * deadline never comes, and the caller can't know that the call was carried out.
 */
BATON_API void baton_memory_delay_replies(struct baton_memory *m, int verb, uint32_t times,
					  uint64_t ms);
/*
 * Calls are carried out, but their replies are lost. The caller waits until the deadline, or with
 * at_once is told immediately that the connection broke.
 */
BATON_API void baton_memory_drop_replies(struct baton_memory *m, int verb, uint32_t times,
					 bool at_once);
/*
 * Calls get no answer until their deadline and are not carried out. Calls that still wait when the
 * switch is turned off are carried out then, like packets that are sent again.
 */
BATON_API void baton_memory_black_hole(struct baton_memory *m, int verb, uint32_t times);
/* Turns off all faults, and also win, lose and bar. Waiting calls go on. */
BATON_API void baton_memory_heal(struct baton_memory *m);

/* ---- what others do to the store ---- */

/*
 * Ends the leases of the candidates with this id (NULL: of all) as if their time had passed,
 * together with everything that they carry. Returns the number of leases. Breaks the promise that a
 * lease is never shorter than asked for.
 */
BATON_API size_t baton_memory_expire(struct baton_memory *m, const char *id);
/* Takes the claim on the named election away from its holder. Returns whether a claim stood. */
BATON_API bool baton_memory_destroy(struct baton_memory *m, const char *name);
/*
 * Overwrites the record of the named election. `leader` (NULL: no candidate) then holds the
 * election in exactly this term, lower or higher than before, for ttl_ms (0: for ever). Returns 0
 * or BATON_E_MEMORY.
 */
BATON_API int baton_memory_overwrite(struct baton_memory *m, const char *name, const char *leader,
				     uint64_t term, uint64_t ttl_ms);
/* Forgets everything, also terms, like a server that lost its disk. This breaks the promise that
 * the store keeps what it acknowledged. */
BATON_API void baton_memory_forget(struct baton_memory *m);

/* ---- traffic ---- */

/* How many calls of this verb (BATON_MEMORY_ANY: of all) have begun since the store was made. */
BATON_API uint64_t baton_memory_calls(struct baton_memory *m, int verb);

#ifdef __cplusplus
}
#endif

#endif
