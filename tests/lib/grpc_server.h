/*
 * grpc_server.h: a small gRPC server on a port of 127.0.0.1, for tests of the client: HTTP/2
 * without TLS, one connection after the other. What it does to a request is told by its message:
 *
 *     hello     a proper reply: "hello!"           page      HTTP status 404
 *     error     a status and its words, no more    close     the connection ends
 *     mute      nothing                            bare      a message without a status
 *     half      half a reply, then the end         two       two messages, where one is expected
 *     zip       a message that is compressed       stream    three messages in odd pieces, a status
 *     big       3 MiB                              strange   a stream that only begins well
 *     long      190,000 bytes, and a good status
 *     none      a good status, without a message   short     a good status, and half a frame
 *
 * Who asks for "/", to see whether anybody is there, is told so, and isn't counted.
 *
 * Or it says what a test has written down, one answer after the other, whatever it is asked.
 */
#ifndef BATON_GRPC_SERVER_H
#define BATON_GRPC_SERVER_H

#include <stdbool.h>
#include <stddef.h>

struct grpc_server;

/* One answer. When there are no more of them the server is mute. */
struct grpc_answer {
	const char *status; /* NULL: it is mute this time */
	const char *words;
	const void *message; /* with the status "0" */
	size_t n;
	bool goes_on;              /* a stream: no status follows */
	void (*before)(void *arg); /* called before it is said, by the server's thread; or NULL */
	void *arg;
};

struct grpc_server *grpc_server_new(void);
/* The list must last as long as the server does. */
struct grpc_server *grpc_server_says(const struct grpc_answer *list, size_t n);
void grpc_server_free(struct grpc_server *s);
/* Ends the connection that it has, if any. */
void grpc_server_hang_up(struct grpc_server *s);
unsigned grpc_server_port(const struct grpc_server *s);
/* So far. */
unsigned grpc_server_connections(struct grpc_server *s);
unsigned grpc_server_requests(struct grpc_server *s);
/* Connections that have ended, as the client can see by now. */
unsigned grpc_server_ended(struct grpc_server *s);

#endif
