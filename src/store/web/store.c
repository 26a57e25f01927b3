/* store.c: a store that is a service with one or more members, and its lanes: see web.h. */
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/web/web.h"

/* ---- the store ---- */

int web_store_init(struct web_store *s, const struct web_options *o, size_t note_size,
		   struct baton_error *err)
{
	int code = BATON_OK;

	s->options = o;
	s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	s->watches = web_index_new(note_size);
	if (s->wake < 0 || s->watches == NULL) {
		code = s->wake < 0 ? BATON_E_SYSTEM : BATON_E_MEMORY;
		(void)store_fail(err, code, "no memory or no descriptor for a store");
	}
	/* So that not all processes begin with the same member. */
	atomic_init(&s->turn, o->n_hosts > 0 ? (unsigned)(clock_boot_ns() / 1000 % o->n_hosts) : 0);
	return code;
}

void web_store_done(struct web_store *s)
{
	while (s->leases != NULL) {
		struct web_lease *l = s->leases;

		s->leases = l->next;
		free(l);
	}
	web_index_free(s->watches);
	if (s->options != NULL && s->wake >= 0)
		(void)close(s->wake);
	store_base_done(&s->base);
}

void web_store_forget(void *store)
{
	struct web_store *s = store;

	s->base.forgotten = true;
	for (struct store_lane *lane = s->base.lanes; lane != NULL; lane = lane->next)
		http_forget(((struct web_lane *)lane)->http);
	if (s->wake >= 0)
		(void)close(s->wake);
	s->wake = -1;
}

/* ---- lanes ---- */

int web_lane_init(struct web_lane *lane, struct web_store *s, int kind, size_t body_max,
		  struct baton_error *err)
{
	const struct web_options *o = s->options;
	struct http_config config = {.ca = o->files.ca,
				     .cert = o->files.cert,
				     .key = o->files.key,
				     .server_name = o->files.server_name,
				     .body_max = body_max,
				     .h2 = o->h2,
				     .probe = o->probe,
				     .wake = kind == BATON_LANE_WATCH ? s->wake : 0};

	lane->http = http_new(&config);
	if (lane->http == NULL)
		return store_fail(err, BATON_E_MEMORY, "no memory for a lane");
	lane->store = s;
	lane->kind = kind;
	store_lane_add(&s->base, &lane->base);
	return 0;
}

void web_lane_done(struct web_lane *lane)
{
	if (lane->store != NULL)
		store_lane_remove(&lane->store->base, &lane->base);
	http_free(lane->http);
	bytes_done(&lane->body);
}

struct bytes *web_begin(struct web_lane *lane)
{
	bytes_clear(&lane->body);
	return &lane->body;
}

/* ---- members ---- */

const struct http_host *web_host(const struct web_store *s, unsigned turn)
{
	return &s->options->hosts[turn % s->options->n_hosts];
}

void web_share_time(struct web_lane *lane, size_t n_left, uint64_t deadline_ns)
{
	uint64_t now_ns = clock_boot_ns();

	/* One more share, for the request itself. */
	lane->prove_ns = lane->store->options->n_hosts > 1 && now_ns < deadline_ns
				 ? now_ns + (deadline_ns - now_ns) / (n_left + 1)
				 : 0;
}

void web_move_on(struct web_store *s, unsigned turn)
{
	if (!atomic_compare_exchange_strong(&s->turn, &turn, turn + 1) || s->options->n_hosts == 1)
		return;
	/* The watch lane listens to a member that may have fallen silent. */
	web_wake(s);
}

bool web_has_moved(const struct web_lane *lane)
{
	const struct web_store *s = lane->store;
	size_t n = s->options->n_hosts;

	return atomic_load(&s->turn) % n != lane->stream % n;
}

int web_code_of(int http_result)
{
	switch (http_result) {
	case HTTP_LATE: return BATON_E_TIMEOUT;
	case HTTP_UNTRUSTED: return BATON_E_DENIED;
	case HTTP_STRANGE: return BATON_E_CORRUPT;
	case HTTP_MEMORY: return BATON_E_MEMORY;
	default: return BATON_E_UNAVAILABLE;
	}
}
