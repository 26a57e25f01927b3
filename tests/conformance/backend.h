/*
 * backend.h: what the suite can do to a kind of store, beside what the library does with it: as
 * its administrator, its network, its disk or its worst enemy would.
 *
 * One file is one backend: a table of hooks. A hook that is NULL is something that can't happen to
 * this store; each case that needs it then stands in not-applicable.txt, with the reason.
 * Hooks work on the place of the test case and return false if they did not manage. To add a store:
 * write backend_<scheme>.c, and put it into the list in backend.c. An adapter for record stores
 * needs none: backend_record.c serves them all.
 */
#ifndef BATON_CONFORMANCE_BACKEND_H
#define BATON_CONFORMANCE_BACKEND_H

#include "suite.h"

/* Where a store takes one, in the URL of every place; nobody may ever read it (C26). */
#define PASSWORD "canary-7d0f"

enum verb {
	VERB_ANY,
	VERB_OPEN, /* of a lease */
	VERB_RENEW,
	VERB_CAMPAIGN,
	VERB_RELEASE,
	VERB_OBSERVE,
	N_VERBS,
};

/* The ways in which a claim can end from outside (C16). */
enum way {
	WAY_DELETED,     /* the record of the election is deleted */
	WAY_OVERWRITTEN, /* somebody else's claim stands there, in a later term */
	WAY_SESSION,     /* the lease, session or connection is destroyed */
	WAY_EXPIRED,     /* the lease is over, by the store's word */
	WAY_DAMAGED,     /* the record is rubbish */
	N_WAYS,
};

struct backend {
	const char *scheme; /* of its URLs; with a '+' and a word: of one of its modes */
	const char
		*family; /* what holds for all of these is not applicable here, either; or NULL */
	bool (*serves)(const char *url); /* NULL: all URLs of the scheme */
	bool has_processes;              /* several processes can use one store */
	bool has_network;                /* a proxy stands in front of it (proxy.h) */
	bool pushes;
	bool proves_death;  /* a dead leader's successor need not wait for the lease */
	bool shares_leases; /* one renewal for all elections of a process */
	bool keeps_history;
	bool is_mute;      /* what a leader has to say of itself later is not kept */
	bool is_durable;   /* A3: terms survive that all candidates go away */
	uint64_t lease_ms; /* what cases begin with; 0: as usual */
	unsigned n_leases; /* after how many of them the store ends one; 0: after one */

	/* Faults at random in all places (--network), where no proxy makes them: false, and a
	 * sentence, if it doesn't know them. And how many there were in this place. */
	bool (*weather)(const char *rules, char *why, size_t size);
	uint64_t (*harmed)(struct testcase *t);

	/* A place of its own for a case: makes it, and writes its URL into t->url. */
	bool (*place)(struct testcase *t, const char *base_url, const char *label);
	/* At the end of a case that went well. May be NULL. */
	void (*leave)(struct testcase *t);
	/* Takes the place away again; from another process than the case's. */
	void (*clean)(const char *base_url, const char *label);

	/* Does what a renewal does at the least, so that its time tells how busy the store is.
	 * May be NULL; called from a thread of its own, also while the store is down. */
	void (*pulse)(struct testcase *t);

	/* The claim ends in that way. */
	bool (*destroy)(struct testcase *t, const char *name, enum way way);
	bool ways[N_WAYS];
	/* C17: what makes the claim exclusive is gone, the session or the lease lives. */
	bool (*unlock)(struct testcase *t, const char *name);
	/* Every call fails at once, or works again. */
	bool (*down)(struct testcase *t, bool is_down);
	/* Every call is swallowed: no answer until its deadline. */
	bool (*hole)(struct testcase *t, bool is_hole);
	/* The next n calls of that kind fail, without an effect; 0: from now on they work. */
	bool (*fail)(struct testcase *t, enum verb verb, unsigned n);
	/* The next n calls of that kind are carried out, but their replies are lost. */
	bool (*mute)(struct testcase *t, enum verb verb, unsigned n);
	/* ... or come only after so long; 0 ms: at once, as ever. */
	bool (*late)(struct testcase *t, enum verb verb, unsigned n, uint64_t ms);
	/* All data is lost, as by a restart without persistence. */
	bool (*forget)(struct testcase *t);
	/* Permission is taken away, or given back. Called with false before anything is opened. */
	bool (*deny)(struct testcase *t, bool is_denied);
	/* The highest term that the record knows; the election is free then. */
	bool (*set_term)(struct testcase *t, const char *name, uint64_t term);
	/* How many elections the store holds under exactly this name, seen by another client;
	 * negative if it can't tell. */
	int (*count_name)(struct testcase *t, const char *name, size_t length);
	/* Calls of that kind that reached the store so far. */
	uint64_t (*calls)(struct testcase *t, enum verb verb);
};

extern const struct backend backend_memory, backend_file, backend_redis, backend_redis_tls,
	backend_redis_sentinel, backend_redis_cluster, backend_postgres, backend_postgres_fast,
	backend_postgres_advisory, backend_postgres_tableless, backend_etcd, backend_consul,
	backend_consul_open, backend_kubernetes, backend_kubernetes_process, backend_memory_record,
	backend_memory_record_locks;

/* Of a store whose driver is an adapter for record stores (backend_record.c); NULL: it isn't. */
const struct backend *backend_record(const char *url);

/* By the scheme of a URL; NULL: none. */
const struct backend *backend_find(const char *url);
/* What of `needs` this backend doesn't have. */
unsigned backend_lacks(const struct backend *b, unsigned needs);
/* Words for one of them. */
const char *need_text(unsigned need);

#endif
