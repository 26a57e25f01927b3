/*
 * srv.c: finds the servers of a mongodb+srv:// name. libmongoc asks the name service for them, with
 * all that belongs to it (the TXT record, and which names may follow from which), but without a
 * deadline. So it does that on a thread of its own. If the lookup outlives its call, the next call
 * goes on with it. So a dead name service costs one thread per lane, and not one per try.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/thread.h"
#include "store/mongodb/mongodb.h"

struct mongodb_srv {
	pthread_mutex_t lock;
	pthread_cond_t done;
	bool is_done;
	bool is_given_up; /* no call waits for it: the thread frees it */
	pthread_t thread;
	struct mongodb_servers servers;
	char reason[128];
	char text[MONGODB_TEXT_MAX + 32];
};

static void srv_free(struct mongodb_srv *q)
{
	(void)pthread_mutex_destroy(&q->lock);
	(void)pthread_cond_destroy(&q->done);
	free(q);
}

static void take_servers(struct mongodb_srv *q, const mongoc_uri_t *uri)
{
	struct mongodb_servers *s = &q->servers;
	const char *set = mongoc_uri_get_option_as_utf8(uri, MONGOC_URI_REPLICASET, "");
	bson_iter_t source;

	for (const mongoc_host_list_t *h = mongoc_uri_get_hosts(uri);
	     h != NULL && s->n_hosts < MONGODB_HOSTS_MAX; h = h->next) {
		struct option_host *to = &s->hosts[s->n_hosts++];

		(void)snprintf(to->name, sizeof(to->name), "%s", h->host);
		(void)snprintf(to->port, sizeof(to->port), "%u", (unsigned)h->port);
	}
	(void)snprintf(s->replica_set, sizeof(s->replica_set), "%s", set);
	/* Not mongoc_uri_get_auth_source(): its "admin" may be the library's own default. */
	if (bson_iter_init_find_case(&source, mongoc_uri_get_credentials(uri),
				     MONGOC_URI_AUTHSOURCE) &&
	    BSON_ITER_HOLDS_UTF8(&source))
		(void)snprintf(s->auth_source, sizeof(s->auth_source), "%s",
			       bson_iter_utf8(&source, NULL));
}

static void *srv_ask(void *arg)
{
	struct mongodb_srv *q = arg;
	bson_error_t error = {0};
	mongoc_uri_t *uri = mongoc_uri_new_with_error(q->text, &error);
	mongoc_client_t *client =
		uri != NULL ? mongoc_client_new_from_uri_with_error(uri, &error) : NULL;

	if (client != NULL)
		take_servers(q, mongoc_client_get_uri(client));
	(void)snprintf(q->reason, sizeof(q->reason), "%.120s",
		       client != NULL ? "it names no server" : error.message);
	if (client != NULL)
		mongoc_client_destroy(client);
	if (uri != NULL)
		mongoc_uri_destroy(uri);
	/* From here on the thread only ends: joining it takes no time. */
	(void)pthread_mutex_lock(&q->lock);
	q->is_done = true;
	bool is_ours = q->is_given_up;

	(void)pthread_cond_signal(&q->done);
	(void)pthread_mutex_unlock(&q->lock);
	if (is_ours)
		srv_free(q);
	return NULL;
}

static struct mongodb_srv *srv_begin(const char *name)
{
	struct mongodb_srv *q = calloc(1, sizeof(*q));
	pthread_condattr_t clock;

	if (q == NULL)
		return NULL;
	(void)snprintf(q->text, sizeof(q->text), "mongodb+srv://%s/", name);
	(void)pthread_condattr_init(&clock);
	(void)pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	(void)pthread_mutex_init(&q->lock, NULL);
	(void)pthread_cond_init(&q->done, &clock);
	(void)pthread_condattr_destroy(&clock);
	if (thread_start(&q->thread, srv_ask, q))
		return q;
	srv_free(q);
	return NULL;
}

/* A thread that has found something is joined: the module may be unloaded right after this. One
 * that still waits for the name service goes on, in a module that stays (-z nodelete). */
void mongodb_srv_cancel(struct mongodb_srv **under_way)
{
	struct mongodb_srv *q = *under_way;

	*under_way = NULL;
	if (q == NULL)
		return;
	(void)pthread_mutex_lock(&q->lock);
	bool is_done = q->is_done;
	pthread_t thread = q->thread;

	q->is_given_up = true;
	(void)pthread_mutex_unlock(&q->lock);
	if (is_done) {
		(void)pthread_join(thread, NULL);
		srv_free(q);
	} else {
		(void)pthread_detach(thread);
	}
}

/* Waits for the lookup. False: it has not ended by then. */
static bool srv_await(struct mongodb_srv *q, uint64_t deadline_ns)
{
	uint64_t now_ns = clock_boot_ns();
	uint64_t left_ns = now_ns < deadline_ns ? deadline_ns - now_ns : 0;
	struct timespec until;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	left_ns += (uint64_t)until.tv_nsec;
	until.tv_sec += (time_t)(left_ns / CLOCK_NS_PER_S);
	until.tv_nsec = (long)(left_ns % CLOCK_NS_PER_S);
	(void)pthread_mutex_lock(&q->lock);
	while (!q->is_done && pthread_cond_timedwait(&q->done, &q->lock, &until) == 0)
		;
	bool is_done = q->is_done;

	(void)pthread_mutex_unlock(&q->lock);
	return is_done;
}

bool mongodb_srv_find(struct mongodb_lane *lane, const char *name, struct mongodb_servers *out)
{
	if (lane->srv == NULL)
		lane->srv = srv_begin(name);
	lane->why = BATON_E_MEMORY;
	(void)snprintf(lane->text, sizeof(lane->text), "no memory to ask the name service");
	if (lane->srv == NULL)
		return false;
	if (!srv_await(lane->srv, lane->deadline_ns)) {
		lane->why = BATON_E_TIMEOUT;
		(void)snprintf(lane->text, sizeof(lane->text),
			       "can't find the servers of %.100s: the name service does not answer",
			       name);
		return false;
	}
	*out = lane->srv->servers;
	lane->why = out->n_hosts > 0 ? 0 : BATON_E_UNAVAILABLE;
	(void)snprintf(lane->text, sizeof(lane->text), "can't find the servers of %.80s: %.110s",
		       name, lane->srv->reason);
	mongodb_srv_cancel(&lane->srv);
	return out->n_hosts > 0;
}
