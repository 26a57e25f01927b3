/*
 * net.h: one connection of a driver that speaks a protocol of its own: name, socket, TLS, and a
 * deadline for all of it. Nothing in it knows a store or a protocol.
 *
 * Sockets never block: every wait is a poll() that ends with the deadline, so neither a dead
 * network nor a server that trickles bytes holds a lane. What went wrong is kept as a sentence,
 * which names the other side as `peer` does ("Redis").
 *
 *     net_init(&n, "Redis");
 *     n.deadline_ns = ...;
 *     net_reach(&n, &place, talk, arg)      connects; `talk` says the first words
 *     net_send(&n, text, size)
 *     net_receive(&n, to, room, &got)
 *
 * A connection belongs to one thread at a time. It never sends anything twice, never raises
 * SIGPIPE, and never goes back from TLS to plain text.
 */
#ifndef BATON_NET_H
#define BATON_NET_H

#include <netdb.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/lookup.h"

#pragma GCC visibility push(hidden)

#define NET_TEXT_MAX 240

/* Why something failed. */
enum net_why {
	NET_UNAVAILABLE = 1, /* no such name, no server there, connection lost */
	NET_LATE,            /* the deadline */
	NET_SYSTEM,          /* no descriptor */
	NET_UNTRUSTED,       /* TLS: not trusted, or a file can't be used */
	NET_MEMORY,
};

struct net {
	int fd;    /* -1: not connected */
	void *ssl; /* NULL: plain */
	uint64_t deadline_ns;
	int wake;                   /* an eventfd that ends a wait for input, or -1 */
	bool has_sent;              /* a byte of the last message is on its way */
	const char *peer;           /* how sentences name the other side; not copied */
	struct lookup *lookup;      /* a name that is being looked up, also beyond a call */
	struct addrinfo *addresses; /* of the name that was looked up last; NULL: none */
	size_t turn;                /* which of them answered last */
	int why;                    /* of the last failure: enum net_why ... */
	char text[NET_TEXT_MAX];    /* ... and its sentence */
};

/* PEM files. An empty name means: ca: those that the system trusts; cert: none; key: it is in cert.
 * The files are read when a connection is first made, and again after one was refused. Not
 * copied. */
struct net_files {
	const char *ca;
	const char *cert;
	const char *key;
};

struct net_tls;

/* NULL: no memory. No I/O. For one connection at a time. */
struct net_tls *net_tls_new(const struct net_files *files);
void net_tls_free(struct net_tls *tls);

void net_init(struct net *n, const char *peer);
void net_done(struct net *n);
void net_close(struct net *n);
/* S10: for a child of fork(): closes the socket, says nothing to the other side, and frees
 * nothing. */
void net_forget(struct net *n);

/* Where to connect. */
struct net_place {
	const char *host;
	const char *port;
	struct net_tls *tls; /* NULL: plain */
	const char *name;    /* that the certificate must have */
};

/* Says the first words on a connection. 0: this is the right one. NET_ELSEWHERE: no server was
 * there, or not the one that we look for; another address may be better. -1: no other address would
 * be better. */
enum { NET_ELSEWHERE = -2 };
typedef int net_talk(void *arg);

/*
 * Connects, and talks. The addresses of a host share the time until one answers: neither an address
 * that drops what comes nor one that accepts connections and stays silent may take it all. The
 * address that answered is tried first the next time. 0, or what talk returned, or NET_ELSEWHERE or
 * -1 with the sentence.
 */
int net_reach(struct net *n, const struct net_place *place, net_talk *talk, void *arg);
/* The same on a socket of this machine: 0, or -1 with the sentence. */
int net_open_unix(struct net *n, const char *path);
/* What one of n gets of the time that is left. */
uint64_t net_share_ns(uint64_t deadline_ns, uint64_t n);

/* Sends all of it, or returns -1 with the sentence. A wake doesn't interrupt it, so that no half of
 * a message is left behind. */
int net_send(struct net *n, const char *from, size_t size);
/* Receives some bytes: 0, or -1 with the sentence. NET_WOKEN, and NET_NOTHING at the deadline, are
 * not failures: the caller may have waited for nothing in particular. */
enum { NET_WOKEN = 1, NET_NOTHING };
int net_receive(struct net *n, char *to, size_t room, size_t *got);
/* Makes a failure of these two. Returns -1. */
int net_fail_nothing(struct net *n, int rc, const char *what);
/* Nothing is wrong with the idle connection, as far as one can see without asking. */
bool net_is_sound(const struct net *n);

/* Waits until the socket can be read or written: 0; NET_WOKEN, or -1: see errno. */
int net_wait(const struct net *n, short events);
/* Keeps the sentence. Always -1. */
int net_fail(struct net *n, int why, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The same for what the system says; the deadline's sentence comes first. */
int net_fail_system(struct net *n, const char *what, int error);

/* tls.c, for net.c. As read(2) and write(2); what is to be waited for is in *events when they
 * return -1 and errno is EAGAIN. */
int net_tls_open(struct net_tls *tls, struct net *n, const char *name);
void net_tls_close(struct net *n);
long net_tls_read(struct net *n, char *to, size_t size, short *events);
long net_tls_write(struct net *n, const char *from, size_t size, short *events);

#pragma GCC visibility pop

#endif
