/*
 * server.h: what the measurements on a store with a server need beside baton itself: one raw round
 * trip, the server's own counters, when it will end a lease, and its own benchmark tool running the
 * same script or statements. The server must be a throw-away one (tests/servers).
 */
#ifndef BATON_BENCH_SERVER_H
#define BATON_BENCH_SERVER_H

#include "bench.h"

struct bench_server {
	const char *name;
	const char *raw;    /* what a raw round trip is */
	const char *tool;   /* its own benchmark */
	const char *probe;  /* what is counted beside renewals */
	int settle_s;       /* so late its counters may be */
	int per_renewal;    /* requests; 0: one */
	int crash_lease_ms; /* the shortest lease; 0: a second */
	int most;           /* elections that make sense; 0: any number */
	int expiry_ms;      /* so late it may notice itself that a lease has ended */
	int poll_ms;        /* so late a process hears of a change: so often it looks, with two
			     * requests, or the server does so for it; 0: it is told at once */
	int handoff_trips;  /* what a handoff may take, in raw round trips; 0: as usual */
	int status_ms;      /* what `baton status` may take; 0: nothing is said of that */
	int large;          /* how many elections are many; 0: as usual */
	/* What a URL says so that a dead leader is replaced at once; NULL behind the last. */
	const char *fast[3];
	void *(*open)(const char *url);
	void (*close)(void *server);
	/* The cheapest write that is as durable as a claim, on a warm connection. */
	void (*write)(void *server);
	/* Requests of clients that it has served. Nothing else that comes by itself is counted.
	 * NULL: it doesn't count them. */
	uint64_t (*requests)(void *server);
	/* The same where requests() tells late, or counts what candidates don't ask. UINT64_MAX: it
	 * can't be told here. NULL: requests() does neither. */
	uint64_t (*at_once)(void *server);
	/* Those of them that are renewals, when nothing happens. NULL: it doesn't count them. */
	uint64_t (*renewals)(void *server);
	/* Sessions that it has ever had. NULL: it doesn't count them. */
	uint64_t (*connections)(void *server);
	/* In how many microseconds it ends the lease of who leads that election; 0: nobody does.
	 * NULL: standbys end a lease, and all of it may be left. */
	int64_t (*left_us)(void *server, const char *election);
	/* A command that asks the server one question, up to a NULL. NULL: there is none. */
	char *const *(*question)(void *server);
	/* Claims per second of the tool, n in all, in batches as large as the driver's. NULL: there
	 * is none. */
	double (*campaigns)(void *server, const char *url, int n);
};

#ifdef WITH_REDIS
extern const struct bench_server bench_redis;
#endif
#ifdef WITH_POSTGRES
extern const struct bench_server bench_postgres;
#endif
#ifdef WITH_MYSQL
extern const struct bench_server bench_mysql;
#endif
#ifdef WITH_ETCD
extern const struct bench_server bench_etcd;
#endif
#ifdef WITH_CONSUL
extern const struct bench_server bench_consul;
#endif
#ifdef WITH_KUBERNETES
extern const struct bench_server bench_kubernetes;
#endif

#ifdef WITH_S3
extern const struct bench_server bench_s3;
#endif

extern const struct bench_server bench_azblob;
extern const struct bench_server bench_mongodb;
extern const struct bench_server bench_memcached;
extern const struct bench_server bench_mssql;

/* Runs a program to its end and returns the number before the words in its output; dies if there is
 * none. */
double bench_tool(char *const *argv, const char *words);

#endif
