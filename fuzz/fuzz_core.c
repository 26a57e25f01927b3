/*
 * fuzz_core.c: any sequence of events, also ones that no store and no application would make. The
 * core must keep its own assertions, never lead past the deadline, and never ask to be woken for
 * ever at one instant.
 */
#include <string.h>

#include "core/election.h"
#include "fuzz.h"

struct reader {
	const uint8_t *at;
	size_t left;
};

static uint64_t take(struct reader *r, size_t n)
{
	uint64_t v = 0;

	n = n < r->left ? n : r->left;
	(void)memcpy(&v, r->at, n);
	r->at += n;
	r->left -= n;
	return v;
}

static void read_event(struct reader *r, const struct election *e, const struct lease *l,
		       struct event *ev)
{
	uint64_t bits = take(r, 4);

	ev->kind = (uint8_t)(1 + take(r, 1) % EV_ORDERED);
	ev->outcome = (uint8_t)(1 + bits % 4);
	ev->call = (bits & 16) != 0 ? e->call : (bits & 32) != 0 ? l->call : l->claims_call;
	ev->view.term = (bits & 64) != 0 ? take(r, 8) : e->floor + bits % 3;
	ev->view.nonce = (bits & 128) != 0 ? e->doubt : e->nonce;
	ev->view.free_in_ns = (bits & 256) != 0 ? NEVER : take(r, 4);
	ev->view.held = (bits & 512) != 0;
	ev->view.mine = (bits & 1024) != 0;
	ev->view.watched = (bits & 2048) != 0;
	ev->view.paused = (bits & 4096) != 0 && (bits & 8192) != 0;
	ev->view.leader = (uint32_t)(bits >> 14) % 3;
	ev->view.order = (uint8_t)((bits >> 16) % 3);
	ev->view.order_term = e->term;
	ev->view.order_id = bits >> 18;
	ev->view.order_target = (uint32_t)(bits >> 20) % 3;
	ev->view.target_ok = (bits >> 22 & 1) != 0;
	ev->n_held = (uint32_t)(bits >> 23) % 3;
	ev->target = (uint32_t)(bits >> 25) % 3;
	ev->target_ok = (bits >> 27 & 1) != 0;
	ev->score = (uint16_t)((bits >> 28 & 1) != 0 ? 1000 : 100);
	ev->quiet_ns = (bits >> 29 & 1) != 0 ? NEVER : take(r, 4);
	ev->random = take(r, 2);
}

/* Delivers one event to whom it belongs, and what follows from it for the other. */
static void deliver(struct election *e, struct lease *l, struct event *ev)
{
	struct actions out;
	struct event told = {.now_ns = ev->now_ns, .random = ev->random};
	bool for_lease = ev->kind >= EV_OPENED && ev->kind <= EV_CLAIMS;

	if (ev->kind == EV_LEASE_UP || ev->kind == EV_LEASE_DOWN)
		ev->kind = EV_TIMER; /* only the lease says these */
	out.n = 0;
	if (for_lease || ev->kind == EV_TIMER || ev->kind == EV_HINT)
		lease_step(l, ev, &out);
	for (uint64_t i = 0; i < out.n; i++) {
		struct actions more = {.n = 0};

		if (out.list[i].kind != ACT_LEASE_UP && out.list[i].kind != ACT_LEASE_DOWN)
			continue;
		told.kind = out.list[i].kind == ACT_LEASE_UP ? EV_LEASE_UP : EV_LEASE_DOWN;
		election_step(e, l, &told, &more);
	}
	out.n = 0;
	if (!for_lease)
		election_step(e, l, ev, &out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct reader r = {.at = data, .left = size};
	struct timing t = {.drift_ppm = NEVER};
	struct options o;
	struct election e;
	struct lease l;
	uint64_t now_ns = 1;

	timing_fill(&t);
	options_init(&o);
	uint64_t bits = take(&r, 2);

	o.manual = (bits & 1) != 0;
	o.observe_only = (bits & 6) == 6;
	o.release_on_stop = (bits & 8) == 0;
	o.work_timeout_ns = (bits & 16) != 0 ? 3 * NS_PER_S : 0;
	o.preempt_ns = (bits & 32) != 0 ? t.lease_ns : 0;
	lease_init(&l, &t, (bits & 64) != 0);
	election_init(&e, 1, &o);
	while (r.left > 0) {
		struct event ev = {0};

		read_event(&r, &e, &l, &ev);
		now_ns += take(&r, 4) * 16; /* up to 69 s */
		ev.now_ns = now_ns;
		deliver(&e, &l, &ev);
		MUST(!election_leads(&e, &l, now_ns + t.renew_ns + t.grace_ns));
		for (int i = 0; i < 20; i++) { /* what is due at this instant comes to an end */
			struct event timer = {.kind = EV_TIMER, .now_ns = now_ns};

			if (min_ns(lease_wake_ns(&l), election_wake_ns(&e, &l)) > now_ns)
				break;
			MUST(i < 19);
			deliver(&e, &l, &timer);
		}
	}
	return 0;
}
