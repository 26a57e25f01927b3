/*
 * net.h: turns the failure of a connection (base/net) into a driver's error.
 */
#ifndef BATON_STORE_NET_H
#define BATON_STORE_NET_H

#include "base/net/net.h"

#pragma GCC visibility push(hidden)

struct baton_error;

/* Writes the code and the sentence into err. Returns -1 always, like store_fail(). */
int store_fail_net(struct baton_error *err, const struct net *n);

#pragma GCC visibility pop

#endif
