/*
 * net.h: what a connection (base/net) says of a failure, as a driver's error.
 */
#ifndef BATON_STORE_NET_H
#define BATON_STORE_NET_H

#include "base/net/net.h"

#pragma GCC visibility push(hidden)

struct baton_error;

/* The code and the sentence. Always -1, as store_fail(). */
int store_fail_net(struct baton_error *err, const struct net *n);

#pragma GCC visibility pop

#endif
