/*
 * fork.c: the one registry of the library. After fork() the child must keep no descriptor of a
 * store open: a kernel lock that it inherits would prove the life of a dead parent (S10).
 */
#include "runtime/runtime.h"

static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct baton *registry;
static int atfork_result;

static void before(void)
{
	(void)pthread_mutex_lock(&registry_lock);
}

static void in_parent(void)
{
	(void)pthread_mutex_unlock(&registry_lock);
}

static void in_child(void)
{
	for (struct baton *b = registry; b != NULL; b = b->registry_next)
		b->driver->forget(b->store);
	registry = NULL;
	(void)pthread_mutex_unlock(&registry_lock);
}

static void install(void)
{
	atfork_result = pthread_atfork(before, in_parent, in_child);
}

int fork_register(struct baton *b)
{
	(void)pthread_once(&once, install);
	if (atfork_result != 0)
		return BATON_E_MEMORY;
	(void)pthread_mutex_lock(&registry_lock);
	b->registry_next = registry;
	registry = b;
	(void)pthread_mutex_unlock(&registry_lock);
	return 0;
}

void fork_unregister(struct baton *b)
{
	(void)pthread_mutex_lock(&registry_lock);
	for (struct baton **p = &registry; *p != NULL; p = &(*p)->registry_next) {
		if (*p == b) {
			*p = b->registry_next;
			break;
		}
	}
	(void)pthread_mutex_unlock(&registry_lock);
}
