/*
 * doctor.c: examines a memcached server: whether it evicts, whether it has lost anything, and what
 * a cache is good for. It writes nothing.
 */
#include "store/memcached/memcached.h"

#define TELL(d, level, ...) doctor_tell(d, BATON_FINDING_##level, __VA_ARGS__)
#define OF_ITS_OWN "Run a memcached of its own for elections, with -M."

static void tell_server(struct doctor *d, const struct memcached_options *o,
			const struct memcached_stats *s)
{
	TELL(d, OK, "reachability", NULL, "The server answers at %s:%s.", o->host, o->port);
	TELL(d, OK, "version", NULL, "The server is memcached %s.", s->version);
	doctor_tell_encryption(
		d, o->tls, doctor_is_local(o->host), o->user[0] != '\0' ? "password" : NULL,
		"Say memcacheds://, and ca= with the authority that signed its certificate.");
	doctor_tell_connections(d, (int64_t)s->connections, (int64_t)s->connections_max,
				"Raise -c.");
	TELL(d, WARNING, "durability",
	     "A cache is good for work that may be done twice now and then. Else use another "
	     "store: `baton stores` has the list.",
	     "memcached forgets everything with a restart (the last was %llu s ago): two may lead "
	     "for a while.",
	     (unsigned long long)s->uptime_s);
}

static void tell_losses(struct doctor *d, const struct memcached_stats *s)
{
	if (!s->has_cas)
		TELL(d, ERROR, "cas", "Start it without -C.",
		     "The server has no compare-and-set: no candidate can be elected.");
	if (!s->evicts)
		TELL(d, OK, "eviction", NULL,
		     "memcached throws nothing away when it is full (-M).");
	else
		TELL(d, WARNING, "eviction", OF_ITS_OWN,
		     "memcached throws records away when it is full, leases among them.");
	if (memcached_losses(s) > 0)
		TELL(d, WARNING, "losses", OF_ITS_OWN,
		     "Since its start %llu records were thrown away, it was emptied %llu times, "
		     "and %llu writes found no room. After each, no candidate is elected until "
		     "the longest lease is over.",
		     (unsigned long long)s->evictions, (unsigned long long)s->flushes,
		     (unsigned long long)(s->no_room + s->too_large));
	if (s->bytes_max > 0 && s->bytes > s->bytes_max / 10 * 8)
		TELL(d, WARNING, "memory", "Give it more (-m).", "%llu of %llu bytes are in use.",
		     (unsigned long long)s->bytes, (unsigned long long)s->bytes_max);
}

int memcached_examine(void *lane, struct baton_call *call,
		      void (*found)(void *arg, const struct baton_finding *finding), void *arg)
{
	struct memcached_lane *l = lane;
	struct doctor d = {.found = found, .arg = arg};
	struct memcached_stats s = {.evicts = true};

	if (!memcached_connect(l, call))
		return BATON_OUTCOME_FAILED; /* the caller reports the call's error */
	bytes_clear(&l->out);
	bytes_print(&l->out, "stats\r\nstats settings\r\n");
	if (!memcached_send(l) || !memcached_read_stats(l, &s) || !memcached_read_stats(l, &s))
		return BATON_OUTCOME_FAILED;
	tell_server(&d, &l->store->options, &s);
	tell_losses(&d, &s);
	return s.has_cas ? BATON_OUTCOME_OK : BATON_OUTCOME_REFUSED;
}
