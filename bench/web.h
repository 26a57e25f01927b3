/* web.h: a server that speaks HTTP, as the measurements see it: one question after the other. */
#ifndef BATON_BENCH_WEB_H
#define BATON_BENCH_WEB_H

#include <stdint.h>

#include "base/bytes.h"

struct bench_web;

/* "SCHEME://HOST:PORT...", as tests/servers says; of several servers, the first. */
struct bench_web *bench_web_open(const char *url);
void bench_web_close(struct bench_web *w);
/* The reply's body, until the next question. body NULL: a GET. Dies unless the status is 200. */
const char *bench_web_ask(struct bench_web *w, const char *method, const char *path,
			  const char *body);
/* The same by gRPC: a message that was begun with grpc_begin(), and an answer that is an error or
 * not. Dies if it is one. */
void bench_web_call(struct bench_web *w, const char *path, struct bytes *body);
/* The sum of all lines of a text in Prometheus' form that begin with this name. */
uint64_t bench_web_sum(const char *text, const char *name);

#endif
