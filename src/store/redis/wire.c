/*
 * wire.c: the protocol of Redis on the lane's connection (base/net): sends commands and reads
 * replies. The connection's failure becomes the call's error.
 */
#include "store/net.h"
#include "store/redis/redis.h"

void redis_wire_init(struct redis_wire *w)
{
	*w = (struct redis_wire){.error = NULL};
	net_init(&w->net, "Redis");
}

void redis_wire_close(struct redis_wire *w)
{
	net_close(&w->net);
	resp_in_clear(&w->in);
}

void redis_wire_done(struct redis_wire *w)
{
	net_done(&w->net);
	resp_out_done(&w->out);
	resp_in_done(&w->in);
}

int redis_wire_fail(struct redis_wire *w)
{
	return store_fail_net(w->error, &w->net);
}

int redis_wire_send(struct redis_wire *w)
{
	w->net.has_sent = false;
	if (w->out.failed)
		return store_fail(w->error, BATON_E_MEMORY, "no memory for a request to Redis");
	return net_send(&w->net, w->out.data, w->out.n) == 0 ? 0 : redis_wire_fail(w);
}

int redis_wire_listen(struct redis_wire *w, const struct resp **reply)
{
	for (;;) {
		int rc = resp_take(&w->in, reply);
		size_t room = 0, got;

		if (rc == 1)
			return 0;
		char *to = rc == 0 ? resp_in_room(&w->in, &room) : NULL;

		if (to == NULL)
			return store_fail(
				w->error, BATON_E_CORRUPT,
				"the answer is not one of Redis', or is too long; another "
				"program may listen at this address");
		rc = net_receive(&w->net, to, room, &got);
		if (rc != 0)
			return rc > 0 ? rc : redis_wire_fail(w);
		resp_in_got(&w->in, got);
	}
}

int redis_wire_read(struct redis_wire *w, const struct resp **reply)
{
	int rc = redis_wire_listen(w, reply);

	if (rc <= 0)
		return rc;
	(void)net_fail_nothing(&w->net, rc, "wait for a reply");
	return redis_wire_fail(w);
}
