/*
 * faults.h: stands between the layer of the record stores and any adapter, and does to its calls
 * what networks and servers do: they fail, get lost, come late, land twice or long after the
 * answer, and reads are old.
 *
 * The switches lie in a file that all processes of a test case map (FAULTS_FILE in the
 * environment), so that whoever turns one turns it for all of them.
 */
#ifndef BATON_RECORD_FAULTS_H
#define BATON_RECORD_FAULTS_H

#include <stdatomic.h>

#include "store/record/adapter.h"

#define FAULTS_FILE "BATON_RECORD_FAULTS"
/* As `times`. */
#define FAULTS_ALWAYS UINT32_MAX

/* What a call is about. */
enum faults_class {
	FAULTS_ANY,
	FAULTS_OPEN,    /* a lease is made */
	FAULTS_RENEW,   /* ... and renewed */
	FAULTS_CLAIM,   /* an election gets a leader, or a new word about its leader */
	FAULTS_RELEASE, /* an election is given back */
	FAULTS_READ,    /* elections are read, but not by the watch */
	FAULTS_OTHER,
	FAULTS_LOCK, /* a native lock is taken, kept or dropped */
	FAULTS_CLASSES,
};

enum faults_kind {
	FAULTS_NONE,
	FAULTS_FAIL,     /* fails at once, without an effect */
	FAULTS_DENY,     /* the same, for want of a right */
	FAULTS_HOLE,     /* is swallowed: no effect, no answer until the deadline */
	FAULTS_MUTE,     /* is carried out, and not answered until the deadline */
	FAULTS_LATE,     /* is carried out, and answered after `ms` */
	FAULTS_DOUBLE,   /* writes are carried out twice; the first answer counts */
	FAULTS_CONFLICT, /* writes are refused for nothing */
	FAULTS_AFTER,    /* writes are not answered, and are carried out before a later one */
	FAULTS_STALE,    /* reads that may be old have what was there before */
	FAULTS_KINDS,
};

struct faults_switch {
	atomic_uint kind;
	atomic_uint times; /* calls that are still to suffer */
	atomic_ullong ms;
};

struct faults {
	struct faults_switch switches[FAULTS_CLASSES];
	atomic_ullong calls[FAULTS_CLASSES]; /* that have come so far */
	atomic_ullong n_suffered;
	atomic_uint weather_permille; /* of calls, at random, get any of these faults */
};

/* Maps the file, and makes it if it isn't there; NULL: it can't be. */
struct faults *faults_map(const char *path);
void faults_set(struct faults *f, int class, int kind, uint32_t times, uint64_t ms);
/* All of them. */
void faults_heal(struct faults *f);

/* An adapter that does as `real` does, and as the switches say. f NULL: only the former. */
void faults_wrap(const struct record_adapter *wrapped, struct faults *f,
		 struct record_adapter *out);

#endif
