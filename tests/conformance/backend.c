/*
 * backend.c: the list of backends, and what a case may ask of one.
 */
#include "backend.h"

#include <string.h>

static const struct backend *const backends[] = {
	&backend_memory,
	&backend_file,
	&backend_memory_record_locks,
	&backend_memory_record,
	&backend_redis,
	&backend_redis_tls,
	&backend_redis_sentinel,
	&backend_redis_cluster,
#ifdef WITH_POSTGRES /* libpq is there */
	&backend_postgres,
	&backend_postgres_fast,
	&backend_postgres_advisory,
	&backend_postgres_tableless,
#endif
#ifdef WITH_ETCD /* libcurl and jansson are there */
	&backend_etcd,
#endif
#ifdef WITH_CONSUL
	&backend_consul,
	&backend_consul_open,
#endif
#ifdef WITH_KUBERNETES /* libyaml as well */
	&backend_kubernetes,
	&backend_kubernetes_process,
#endif
};

const struct backend *backend_find(const char *url)
{
	size_t length = strcspn(url, ":");

	for (size_t i = 0; i < sizeof(backends) / sizeof(backends[0]); i++) {
		const struct backend *b = backends[i];
		/* "postgres+fast" is a way to use postgres:, "redis+cluster" a scheme. */
		const char *way = b->serves != NULL ? strrchr(b->scheme, '+') : NULL;
		size_t n = way != NULL ? (size_t)(way - b->scheme) : strlen(b->scheme);

		if (n == length && memcmp(b->scheme, url, length) == 0 &&
		    (b->serves == NULL || b->serves(url)))
			return b;
	}
	return backend_record(url);
}

static bool has(const struct backend *b, unsigned need)
{
	switch (need) {
	case NEEDS_PROCESSES: return b->has_processes;
	case NEEDS_DESTROY: return b->destroy != NULL;
	case NEEDS_UNLOCK: return b->unlock != NULL;
	case NEEDS_DOWN: return b->down != NULL;
	case NEEDS_HOLE: return b->hole != NULL;
	case NEEDS_REPLIES: return b->mute != NULL && b->late != NULL;
	case NEEDS_FORGET: return b->forget != NULL;
	case NEEDS_DENY: return b->deny != NULL;
	case NEEDS_TERM: return b->set_term != NULL;
	case NEEDS_FAIL: return b->fail != NULL;
	case NEEDS_NAMES: return b->count_name != NULL;
	case NEEDS_PUSH: return b->pushes;
	case NEEDS_POOLER: return false; /* no backend has one yet */
	case NEEDS_CALLS: return b->calls != NULL;
	case NEEDS_HISTORY: return b->keeps_history;
	default: return true;
	}
}

unsigned backend_lacks(const struct backend *b, unsigned needs)
{
	unsigned lacks = 0;

	for (unsigned need = 1; need < ALONE; need <<= 1) {
		if ((needs & need) != 0 && !has(b, need))
			lacks |= need;
	}
	return lacks;
}

const char *need_text(unsigned need)
{
	static const struct {
		unsigned need;
		const char *text;
	} texts[] = {
		{NEEDS_PROCESSES, "several processes"},
		{NEEDS_DESTROY, "claims that can be taken away from outside"},
		{NEEDS_UNLOCK, "a claim that ends while its session lives"},
		{NEEDS_DOWN, "a store that can be down"},
		{NEEDS_HOLE, "a store that can swallow calls"},
		{NEEDS_REPLIES, "replies that can be lost or late"},
		{NEEDS_FORGET, "a store that can lose its data"},
		{NEEDS_DENY, "permissions that can be taken away"},
		{NEEDS_TERM, "terms that can be set"},
		{NEEDS_FAIL, "single calls that can fail"},
		{NEEDS_NAMES, "names that can be read by another client"},
		{NEEDS_PUSH, "a store that pushes"},
		{NEEDS_POOLER, "a pooler in between"},
		{NEEDS_CALLS, "a store that counts its calls"},
		{NEEDS_HISTORY, "a store that keeps past leaderships"},
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if ((need & texts[i].need) != 0)
			return texts[i].text;
	}
	return "nothing";
}
