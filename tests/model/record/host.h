/*
 * host.h: a candidate around the tasks of decide.h: what the runtime carries out, and what the
 * core makes of the answers. The tasks are the real ones, and so are the records that they get.
 *
 * The core's part is as small as it can be: a lease counts from before its send, ends at its
 * deadline, and is not brought back by a late answer; a claim counts only on the lease that it was
 * made for; a candidate steps down before it gives back, and closes when it leads no more.
 *
 *   host.c   numbers and structs, and what becomes of a write
 *   lane.c   the lease: opening, renewing, closing
 *   seat.c   the elections: campaigning, settling, releasing
 *   others.c what sweepers and people write
 */
#ifndef BATON_MODEL_RECORD_HOST_H
#define BATON_MODEL_RECORD_HOST_H

#include "baton-store.h"
#include "model/record/model.h"
#include "store/record/decide/decide.h"

#define TICK_NS ((uint64_t)1000 * 1000 * 1000)
#define NOW_NS (1000 * TICK_NS)

extern const char *const cand_ids[];
extern const char *const lease_ids[];

/* What the tasks are given; filled anew for each turn. */
extern struct record_election election;
extern struct record_lease lease;
extern struct record_sight sight;
extern struct record_hold hold;

struct record_version version_of(uint8_t id);
uint8_t id_of(const struct record_version *v);
uint8_t slot_of(const char *id);
uint8_t small(uint64_t n);
struct baton_lease lease_of(int slot, int c);
void show_election(const struct erec *r);
void take_election(struct erec *r);
void show_lease(const struct lrec *l);
void show_sight(const struct seat *s, int slot);
void take_sight(struct seat *s, int slot);
void drop_sight(struct seat *s);
void begin_turn(struct record_turn *t, const struct world *w, const struct seat *s, int e);
void end_turn(struct seat *s);
void answer(struct record_turn *t, int outcome, uint8_t version);
void answer_election(struct record_turn *t, const struct world *w, int c, int e, int outcome);
bool add_stray(struct world *w, const struct put *p);
int carry_out(struct world *w, const struct put *p, uint8_t *fate);

#endif
