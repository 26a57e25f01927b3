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
 */
#ifndef BATON_GRPC_SERVER_H
#define BATON_GRPC_SERVER_H

struct grpc_server;

struct grpc_server *grpc_server_new(void);
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
