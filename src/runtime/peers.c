/*
 * peers.c: the others. The core knows them by small numbers; their ids and addresses are kept
 * here, once each. This file puts what a driver says in names into the core's words.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/runtime.h"

struct peer {
	char *address;
	uint32_t hash;
	char id[]; /* an id, or an id, a newline and a lease: see leader_number() */
};

static uint32_t hash_id(const char *s)
{
	uint32_t h = 2166136261u;

	while (*s != '\0')
		h = (h ^ (unsigned char)*s++) * 16777619u;
	return h;
}

static bool peers_grow(struct peers *p)
{
	uint32_t room = p->room != 0 ? p->room * 2 : 8;
	struct peer **list = realloc(p->list, room * sizeof(struct peer *));

	if (list == NULL)
		return false;
	p->list = list;
	uint32_t *table = calloc((size_t)room * 2, sizeof(*table));

	if (table == NULL)
		return false;
	for (uint32_t i = 0; i < p->n; i++) {
		uint32_t h = p->list[i]->hash & (room * 2 - 1);

		while (table[h] != 0)
			h = (h + 1) & (room * 2 - 1);
		table[h] = i + 1;
	}
	free(p->table);
	p->table = table;
	p->room = room;
	p->table_room = room * 2;
	return true;
}

static void set_address(struct peer *peer, const char *address)
{
	if (address[0] == '\0' || (peer->address != NULL && strcmp(peer->address, address) == 0))
		return;
	char *copy = strdup(address);

	if (copy == NULL)
		return;
	free(peer->address);
	peer->address = copy;
}

/* 0 (NOBODY) if there is no memory. */
static uint32_t peers_slot(struct peers *p, const char *id, const char *address)
{
	uint32_t hash = hash_id(id);

	if (p->n >= p->room && !peers_grow(p))
		return NOBODY;
	uint32_t h = hash & (p->table_room - 1);

	for (; p->table[h] != 0; h = (h + 1) & (p->table_room - 1)) {
		struct peer *peer = p->list[p->table[h] - 1];

		if (peer->hash == hash && strcmp(peer->id, id) == 0) {
			set_address(peer, address);
			return p->table[h] + SELF;
		}
	}
	struct peer *peer = calloc(1, sizeof(*peer) + strlen(id) + 1);

	if (peer == NULL)
		return NOBODY;
	peer->hash = hash;
	(void)memcpy(peer->id, id, strlen(id) + 1);
	set_address(peer, address);
	p->list[p->n++] = peer;
	p->table[h] = p->n;
	return p->n + SELF;
}

uint32_t peers_find(struct baton *b, const char *id, const char *address)
{
	if (strcmp(id, b->id) == 0)
		return SELF;
	(void)pthread_mutex_lock(&b->peers.lock);
	uint32_t number = peers_slot(&b->peers, id, address);

	(void)pthread_mutex_unlock(&b->peers.lock);
	return number;
}

void peers_name(struct baton *b, uint32_t number, char *id, char *address)
{
	const char *found_id = number == SELF ? b->id : "";
	const char *found_address = number == SELF ? b->address : "";

	(void)pthread_mutex_lock(&b->peers.lock);
	if (number > SELF && number - SELF <= b->peers.n) {
		const struct peer *peer = b->peers.list[number - SELF - 1];

		found_id = peer->id;
		found_address = peer->address != NULL ? peer->address : "";
	}
	if (id != NULL)
		(void)snprintf(id, BATON_NAME_MAX + 1, "%.*s", (int)strcspn(found_id, "\n"),
			       found_id);
	if (address != NULL)
		(void)snprintf(address, BATON_NAME_MAX + 1, "%s", found_address);
	(void)pthread_mutex_unlock(&b->peers.lock);
}

void peers_done(struct baton *b)
{
	for (uint32_t i = 0; i < b->peers.n; i++) {
		free(b->peers.list[i]->address);
		free(b->peers.list[i]);
	}
	free(b->peers.list);
	free(b->peers.table);
}

/*
 * Rule 5: an id is a label; the incarnation decides. Another process with our id is another
 * candidate. Its key is the id, a newline and the lease: no id has a newline, so that keeps the two
 * apart.
 */
static uint32_t leader_number(struct baton_election *e, const struct baton_record *r, bool *twin)
{
	struct baton *b = e->handle;
	bool ours = strncmp(r->lease_id, b->incarnation, strlen(b->incarnation)) == 0;

	*twin = !ours && strcmp(r->leader, b->id) == 0;
	if (ours)
		return SELF;
	if (!*twin)
		return peers_find(b, r->leader, r->address);
	char key[BATON_NAME_MAX + BATON_LEASE_ID_MAX + 3];

	(void)snprintf(key, sizeof(key), "%s\n%s", r->leader, r->lease_id);
	return peers_find(b, key, r->address);
}

/* Keeps what the application may ask for and the core has no word for. */
static void remember_leader(struct baton_election *e, const struct baton_record *r, bool twin)
{
	struct app *app = &e->handle->app;
	const char *known = "";

	(void)pthread_mutex_lock(&app->lock);
	if (e->leader_metadata != NULL)
		known = e->leader_metadata;
	if (r->held && strcmp(known, r->metadata) != 0) {
		free(e->leader_metadata);
		e->leader_metadata = r->metadata[0] != '\0' ? strdup(r->metadata) : NULL;
	}
	e->leader_since_ms = r->held ? r->since_ms : 0;
	e->twin = twin;
	(void)pthread_mutex_unlock(&app->lock);
}

bool peers_view(struct baton_election *e, const struct job *job, const struct baton_record *r,
		struct view *v)
{
	struct baton *b = e->handle;
	char own_id[BATON_LEASE_ID_MAX + 1];
	bool twin = false;

	lease_id_print(b, e->executor->number, job->epoch, own_id);
	*v = (struct view){
		.term = r->term,
		.nonce = r->nonce,
		.free_in_ns = r->free_in_ns,
		.order_id = r->order.id,
		.order_term = r->order.term,
		.order_quiet_ns = r->order.quiet_ms > NEVER / NS_PER_MS
					  ? NEVER
					  : r->order.quiet_ms * NS_PER_MS,
		.priority = r->priority,
		.score = (uint16_t)(r->score_permille > SCORE_MAX ? SCORE_MAX : r->score_permille),
		.crowd = (uint16_t)(r->n_candidates > UINT16_MAX ? UINT16_MAX : r->n_candidates),
		.held = r->held,
		.watched = r->watched,
		.paused = r->paused,
		.target_ok = r->order.target_ok,
		.order = (uint8_t)r->order.kind,
	};
	v->mine = r->held && strcmp(r->lease_id, own_id) == 0;
	if (r->held)
		v->leader = leader_number(e, r, &twin);
	if (r->order.kind == BATON_ORDER_TRANSFER)
		v->order_target = peers_find(b, r->order.target, "");
	remember_leader(e, r, twin);
	events_waits(e, r);
	return (!r->held || v->leader != NOBODY) &&
	       (r->order.kind != BATON_ORDER_TRANSFER || v->order_target != NOBODY);
}
