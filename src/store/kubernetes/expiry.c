/*
 * expiry.c: what was last seen of each election, and since when its spec is unchanged on our clock.
 * That is the only proof that a lease is over (A1). A process that takes over has seen the same
 * spec for as long as the record says, counted from the end of the first read; and it writes on
 * condition that the object is still the one that was seen.
 *
 * If answers overtake each other, the spec seems to go back, and the time begins anew: that costs
 * time only.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/kubernetes/kube.h"

struct kube_expiry {
	struct name_node node;
	char *object; /* as compact text; NULL: there was none */
	char *spec;   /* what must not change while the time runs */
	uint64_t rv;
	uint64_t since_ns;
	uint64_t reserved;    /* the reservation's hash */
	uint64_t reserved_ns; /* since when that is unchanged */
	uint64_t hash;
	uint64_t end_ns;
	uint64_t left_term; /* this process has given back its claim of that term, or is about to */
	bool is_told;       /* the hint that its time is over was given */
	bool is_led;        /* this process leads */
	bool is_doubted;
	char process[KUBE_NAME_MAX + 1];
	char name[];
};

void kube_process_key(const char *process, char out[KUBE_NAME_MAX + 2])
{
	/* No election's name has the character \x01. */
	(void)snprintf(out, KUBE_NAME_MAX + 2, "\x01%s", process);
}

/* ---- the table ---- */

static struct kube_expiry *expiry_find(const struct kube_store *s, const char *name)
{
	return (struct kube_expiry *)name_table_find(&s->expiries, name);
}

/* The entry after `g`, or the first one if `g` is NULL; NULL at the end. */
static struct kube_expiry *expiry_next(const struct kube_store *s, const struct kube_expiry *g)
{
	return (struct kube_expiry *)name_table_next(&s->expiries, g != NULL ? &g->node : NULL);
}

static struct kube_expiry *expiry_get(struct kube_store *s, const char *name)
{
	struct kube_expiry *g = expiry_find(s, name);
	size_t size = strlen(name) + 1;

	if (g != NULL || name_table_reserve(&s->expiries) != 0)
		return g;
	g = calloc(1, sizeof(*g) + size);
	if (g == NULL)
		return NULL;
	(void)memcpy(g->name, name, size);
	name_table_add(&s->expiries, &g->node, g->name);
	return g;
}

static void expiry_drop(struct kube_store *s, struct kube_expiry *g)
{
	name_table_remove(&s->expiries, &g->node);
	s->n_led -= g->is_led;
	free(g->object);
	free(g->spec);
	free(g);
}

void kube_expiry_forget(struct kube_store *s, const char *name)
{
	store_lock(&s->web.base);
	struct kube_expiry *g = expiry_find(s, name);

	if (g != NULL)
		expiry_drop(s, g);
	store_unlock(&s->web.base);
}

void kube_expiry_done(struct kube_store *s)
{
	for (struct kube_expiry *g = expiry_next(s, NULL), *next; g != NULL; g = next) {
		next = expiry_next(s, g);
		expiry_drop(s, g);
	}
	name_table_done(&s->expiries);
}

/* ---- seeing ---- */

/* The fields that every renewal and every claim changes, as one text; NULL: no memory. */
static char *spec_of(const struct kube_lease *l)
{
	char *text = NULL;

	if (asprintf(&text, "%d %" PRIu64 " %" PRIu64 " %s %s %s", l->is_dead, l->duration_s,
		     l->transitions, l->acquire, l->renew, l->holder) < 0)
		return NULL;
	return text;
}

/* The object as text without its managedFields, which are most of it, and of no use to us. */
static char *text_of(json_t *object)
{
	(void)json_object_del(json_object_get(object, "metadata"), "managedFields");
	return json_dumps(object, JSON_COMPACT);
}

static void expiry_note_reserved(struct kube_expiry *g, const struct kube_lease *l,
				 uint64_t read_ns)
{
	uint64_t reserved = l->reserved[0] != '\0' ? kube_hash(0, l->reserved) : 0;

	if (reserved == g->reserved && g->reserved_ns != 0)
		return;
	g->reserved = reserved;
	g->reserved_ns = read_ns;
}

/* True: something that matters has changed. */
static bool expiry_note(struct kube_store *s, struct kube_expiry *g, struct kube_lease *l,
			uint64_t read_ns)
{
	bool is_own = l->is_ours && kube_is_used(s, l->lease_id);
	bool is_led = is_own && l->term != g->left_term;
	uint64_t hash = kube_lease_hash(l, is_own);
	char *object = l->object != NULL ? text_of(l->object) : NULL;
	char *spec = spec_of(l);
	bool is_new = g->hash != hash;

	if (spec == NULL || g->spec == NULL || strcmp(spec, g->spec) != 0) {
		g->since_ns = read_ns;
		g->is_told = false;
	}
	free(g->spec);
	free(g->object);
	g->spec = spec;
	g->object = object;
	g->rv = object != NULL || l->object == NULL ? l->rv : 0;
	g->hash = hash;
	s->n_led += (size_t)is_led - (size_t)g->is_led;
	g->is_led = is_led;
	expiry_note_reserved(g, l, read_ns);
	(void)snprintf(g->process, sizeof(g->process), "%s", l->process);
	return is_new;
}

/* ---- what the watch owes ---- */

/* The caller holds the lock. What an answer shows of a watched Lease has to come by the watch, too,
 * unless the watch is as far already. To keep one such debt at a time is enough. */
static void expiry_note_owed(struct kube_store *s, const char *name, const struct kube_lease *l)
{
	bool is_watched = name[0] == '\x01' ? !atomic_load(&s->is_narrow)
					    : web_index_is_watched(s->web.watches, name);

	if (s->owed_ns != 0 || l->object == NULL || l->rv <= s->shown_rv || !is_watched)
		return;
	s->owed_rv = l->rv;
	s->owed_ns = clock_boot_ns();
}

uint64_t kube_shown(struct kube_store *s, uint64_t rv)
{
	uint64_t took_ns = 0;

	store_lock(&s->web.base);
	s->shown_rv = rv;
	if (s->owed_ns != 0 && rv >= s->owed_rv) {
		took_ns = clock_boot_ns() - s->owed_ns;
		s->owed_ns = 0;
	}
	store_unlock(&s->web.base);
	return took_ns;
}

void kube_shown_anew(struct kube_store *s, uint64_t rv)
{
	store_lock(&s->web.base);
	s->shown_rv = rv;
	s->owed_ns = 0;
	store_unlock(&s->web.base);
}

uint64_t kube_owed_ns(struct kube_store *s)
{
	store_lock(&s->web.base);
	uint64_t owed_ns = s->owed_ns != 0 ? s->owed_ns : BATON_STORE_NEVER;

	store_unlock(&s->web.base);
	return owed_ns;
}

/* ---- seeing it ---- */

bool kube_expiry_note(struct kube_store *s, const char *name, struct kube_lease *l,
		      uint64_t read_ns, bool is_event)
{
	bool is_new = true, is_sooner = false;

	l->since_ns = read_ns;
	l->reserved_ns = read_ns;
	kube_history_saw(s, name, l);
	store_lock(&s->web.base);
	struct kube_expiry *g = expiry_get(s, name);

	if (g != NULL) {
		/* An event of the watch may be older than what we know. An answer always counts: a
		 * store that was put back to an earlier state has lower numbers. */
		is_new = !(is_event && g->spec != NULL && l->rv < g->rv) &&
			 expiry_note(s, g, l, read_ns);
		l->since_ns = g->since_ns;
		l->reserved_ns = g->reserved_ns;
		g->end_ns = l->holder[0] != '\0' && l->process[0] == '\0'
				    ? kube_lease_end_ns(l, s->ttl_ns)
				    : BATON_STORE_NEVER;
		g->is_doubted = false;
		is_sooner = !g->is_told && g->end_ns < s->next_end_ns;
		if (is_sooner)
			s->next_end_ns = g->end_ns;
		if (l->process[0] != '\0')
			atomic_store(&s->has_process_claims, true);
		if (!is_event)
			expiry_note_owed(s, name, l);
	}
	store_unlock(&s->web.base);
	if (is_sooner && !is_event) /* L1: the watch lane listens until a later end */
		web_wake(&s->web);
	return is_new;
}

void kube_expiry_leave(struct kube_store *s, const char *name, uint64_t term)
{
	store_lock(&s->web.base);
	struct kube_expiry *g = expiry_find(s, name);

	if (g != NULL) {
		g->left_term = term;
		s->n_led -= g->is_led;
		g->is_led = false;
	}
	store_unlock(&s->web.base);
}

bool kube_expiry_recall(struct kube_store *s, const char *name, struct kube_lease *l)
{
	json_t *object = NULL;
	uint64_t rv = 0, since_ns = 0, reserved_ns = 0;

	store_lock(&s->web.base);
	const struct kube_expiry *g = expiry_find(s, name);

	if (g != NULL) {
		rv = g->rv;
		since_ns = g->since_ns;
		reserved_ns = g->reserved_ns;
		if (g->object != NULL)
			object = js_parse(g->object, strlen(g->object));
		if (g->object != NULL && object == NULL)
			rv = 0;
	}
	store_unlock(&s->web.base);
	kube_lease_read(l, object, rv);
	l->since_ns = since_ns;
	l->reserved_ns = reserved_ns;
	return rv != 0;
}

/* ---- process leases ---- */

static bool expiry_is_process(const struct kube_expiry *g)
{
	return g->name[0] == '\x01';
}

void kube_expiry_doubt(struct kube_store *s)
{
	store_lock(&s->web.base);
	for (struct kube_expiry *g = expiry_next(s, NULL); g != NULL; g = expiry_next(s, g))
		g->is_doubted = expiry_is_process(g);
	store_unlock(&s->web.base);
}

void kube_expiry_drop_doubted(struct kube_store *s)
{
	store_lock(&s->web.base);
	for (struct kube_expiry *g = expiry_next(s, NULL), *next; g != NULL; g = next) {
		next = expiry_next(s, g);
		if (g->is_doubted)
			expiry_drop(s, g);
	}
	store_unlock(&s->web.base);
}

/* ---- ends ---- */

static void expiry_hint_process(struct kube_store *s, const char *process)
{
	for (const struct kube_expiry *g = expiry_next(s, NULL); g != NULL; g = expiry_next(s, g))
		if (!expiry_is_process(g) && strcmp(g->process, process) == 0)
			web_index_hint(s->web.watches, g->name);
}

void kube_hint_process(struct kube_store *s, const char *process)
{
	store_lock(&s->web.base);
	expiry_hint_process(s, process);
	store_unlock(&s->web.base);
}

/* Gives the hint if the lease's time is over. Otherwise returns when the time will be over. */
static uint64_t expiry_end_one(struct kube_store *s, struct kube_expiry *g, uint64_t now_ns)
{
	if (g->is_told)
		return BATON_STORE_NEVER;
	if (g->end_ns > now_ns)
		return g->end_ns;
	g->is_told = true;
	if (expiry_is_process(g))
		expiry_hint_process(s, g->name + 1);
	else
		web_index_hint(s->web.watches, g->name);
	return BATON_STORE_NEVER;
}

uint64_t kube_expiry_hint(struct kube_store *s, uint64_t now_ns)
{
	store_lock(&s->web.base);
	if (now_ns >= s->next_end_ns) {
		s->next_end_ns = BATON_STORE_NEVER;
		for (struct kube_expiry *g = expiry_next(s, NULL); g != NULL;
		     g = expiry_next(s, g)) {
			uint64_t end_ns = expiry_end_one(s, g, now_ns);

			if (end_ns < s->next_end_ns)
				s->next_end_ns = end_ns;
		}
	}
	uint64_t next_ns = s->next_end_ns;

	store_unlock(&s->web.base);
	return next_ns;
}
