/*
 * namespace.h: the name of a store's namespace, from its URL: the same text for all URLs that lead
 * to the same elections, as far as URLs show that. Both sides of a handover make the id of its
 * trace of it, and may have written the URL differently.
 *
 *     kind      redis for rediss, mysql for mariadb, ...: with TLS or without
 *     hosts     in lower case, in order, without the usual port
 *     path      database, directory, bucket: as it is
 *     options   those that choose a part of the store: prefix, schema, ...
 *
 * Never in it: a user, a password, and options that choose no other elections.
 */
#ifndef BATON_NAMESPACE_H
#define BATON_NAMESPACE_H

#include "base/bytes.h"

/* Appends it. Nothing is asked for: two names of one host are two hosts. */
void namespace_of(const char *url, struct bytes *out);

#endif
