/*
 * web_server.h: a small HTTP server on a port of 127.0.0.1, for tests of the client. What it does
 * to a request is told by the path:
 *
 *     /hello /echo /redirect /big      a proper reply: text, the body, a redirect, 1 MiB
 *     /mute /trickle /rubbish /close   none, one byte after the other, no HTTP, just the end
 *     /endless /head                   a body, or a head, that does not end
 *     /lines /poll                     three lines, the last one later; a reply that comes later
 */
#ifndef BATON_WEB_SERVER_H
#define BATON_WEB_SERVER_H

#include <stdatomic.h>
#include <stddef.h>

struct web_server;

/* How bytes get through, if not as they are (TLS). */
struct web_layer {
	void *(*accept)(void *arg, int fd); /* NULL: no connection */
	long (*read)(void *session, char *to, size_t n);
	long (*write)(void *session, const char *from, size_t n);
	void (*end)(void *session);
	void *arg;
};

struct web_server *web_server_new(const struct web_layer *layer);
void web_server_free(struct web_server *s);
unsigned web_server_port(const struct web_server *s);
/* So far. */
unsigned web_server_connections(struct web_server *s);
unsigned web_server_requests(struct web_server *s);
/* The last request, head and body. */
void web_server_last(struct web_server *s, char *out, size_t size);
/* What a test answers itself, to whatever is asked: the whole reply is written to `out`. One at a
 * time, in the threads of the server. */
enum web_after { WEB_GOES_ON, WEB_CLOSES, WEB_STAYS_OPEN };
typedef enum web_after web_script(void *arg, const char *request, char *out, size_t size);
void web_server_play(struct web_server *s, web_script *script, void *arg);
/* Lets those go on that wait to say more: the third of /lines, the reply of /poll. */
void web_server_go_on(struct web_server *s);

#endif
