/* supervise.h: the supervisor's dealings with its guard, its signals, its terminal and its end. */
#ifndef BATON_SUPERVISE_H
#define BATON_SUPERVISE_H

#include "cli/run.h"

/* Descriptors, signals, the guard. 0, or an exit code. */
int supervise_setup(struct run *r);
/* Has the guard start the command, in the present term. */
void supervise_start(struct run *r);
/* Has the guard end it: with all the patience there is if that is voluntary, else by the word. */
void supervise_stop(struct run *r, int sig, bool voluntary);
/* We end with this code, once nothing runs and nothing is owed. */
void supervise_end(struct run *r, int code);
/* Nothing runs: stops contending, and gives the leadership back (S7). */
void supervise_leave(struct run *r);
void supervise_receive(struct run *r);
void supervise_guard_died(struct run *r);
void supervise_signals(struct run *r);
/* The exit code; or dies by the signal that was meant for us. */
int supervise_finish(struct run *r);

/* run.c: nothing is left of the child; by_us: it was told to end, by the guard at least. */
void run_child_ended(struct run *r, int status, bool by_us);

#endif
