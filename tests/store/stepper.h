/*
 * stepper.h: runs a function in a child process, system call by system call, and does something
 * to it at one of them: kill it, freeze it, or let the call fail.
 */
#ifndef BATON_TEST_STORE_STEPPER_H
#define BATON_TEST_STORE_STEPPER_H

#include <stdbool.h>
#include <sys/types.h>

struct stepper {
	pid_t pid;
	bool gone;     /* the child has ended */
	bool finished; /* the function has returned, and the child waits */
	long call;     /* the number of the system call that the fault hit */
};

/* Forks. The child runs prepare(arg) at full speed, then waits for its first step. */
void stepper_start(struct stepper *s, void (*prepare)(void *arg), void (*run)(void *arg),
		   void *arg);
/* Lets it run up to the entry of its n-th system call, counted from 1. False: it finished. */
bool stepper_goto(struct stepper *s, int n);
/* The call that it stands before fails with this errno. False: no call that is worth it. */
bool stepper_fail(struct stepper *s, int error);
/* Lets it run on until the function has returned. */
void stepper_finish(struct stepper *s);
void stepper_kill(struct stepper *s);

#endif
