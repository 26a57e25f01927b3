/* proof.h: whether a history proves that no two leaderships overlapped. Pure. */
#ifndef BATON_SERVE_PROOF_H
#define BATON_SERVE_PROOF_H

#include <baton.h>
#include <stddef.h>

struct proof {
	const char *wrong; /* NULL: nothing contradicts */
	size_t at;         /* which of the list is wrong, ... */
	bool is_pair;      /* ... with the next one, which is older */
	size_t by_terms;   /* pairs that are told apart by their terms alone */
};

/* Of leaderships, newest first. */
struct proof proof_of(const struct baton_leadership *list, size_t n);

#endif
