/* net.c: see net.h. It is linked with base/net, into modules that have connections of their own. */
#include "store/net.h"

#include "baton-store.h"
#include "store/base.h"

int store_fail_net(struct baton_error *err, const struct net *n)
{
	static const int codes[] = {
		[NET_UNAVAILABLE] = BATON_E_UNAVAILABLE, [NET_LATE] = BATON_E_UNAVAILABLE,
		[NET_SYSTEM] = BATON_E_SYSTEM,           [NET_UNTRUSTED] = BATON_E_DENIED,
		[NET_MEMORY] = BATON_E_MEMORY,
	};

	return store_fail(err, codes[n->why], "%s", n->text);
}
