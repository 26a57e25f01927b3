/* codec.c: claims, candidates and orders as they are written down: see web.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/web/web.h"

void web_encode_name(const char *name, char *out)
{
	for (const char *at = name; *at != '\0'; at++) {
		if (*at == '/' || *at == '%' || (*at == '.' && at == name))
			out += snprintf(out, 4, "%%%02X", (unsigned char)*at);
		else
			*out++ = *at;
	}
	*out = '\0';
}

static void copy_text(char *to, size_t size, const json_t *object, const char *key)
{
	(void)snprintf(to, size, "%s", js_text(object, key));
}

static char *dump_json(json_t *value)
{
	char *text = json_dumps(value, JSON_COMPACT);

	json_decref(value);
	return text;
}

/* ---- claims ---- */

char *web_claim_text(const struct baton_lease *lease, uint64_t nonce, int64_t since_ms,
		     const struct baton_profile *profile)
{
	char number[24];

	(void)snprintf(number, sizeof(number), "%" PRIu64, nonce);
	return dump_json(json_pack("{s:s,s:s,s:s,s:s,s:I,s:i,s:i,s:s}", "leader", lease->owner,
				   "lease", lease->id, "nonce", number, "address", lease->address,
				   "since", (json_int_t)since_ms, "priority",
				   (int)profile->priority, "score", (int)profile->score_permille,
				   "metadata", profile->metadata));
}

bool web_claim_read(const char *value, struct baton_record *out)
{
	int64_t priority = 0;
	uint64_t score = 0;
	json_t *claim = js_parse(value, strlen(value));

	if (!js_u64(claim, "nonce", &out->nonce) || js_text(claim, "leader")[0] == '\0') {
		json_decref(claim);
		return false;
	}
	copy_text(out->leader, sizeof(out->leader), claim, "leader");
	copy_text(out->lease_id, sizeof(out->lease_id), claim, "lease");
	copy_text(out->address, sizeof(out->address), claim, "address");
	copy_text(out->metadata, sizeof(out->metadata), claim, "metadata");
	(void)js_i64(claim, "since", &out->since_ms);
	(void)js_i64(claim, "priority", &priority);
	(void)js_u64(claim, "score", &score);
	out->priority = (int32_t)priority;
	out->score_permille = (uint32_t)score;
	json_decref(claim);
	return true;
}

void web_claim_foreign(const char *value, const char *otherwise, struct baton_record *out)
{
	(void)snprintf(out->leader, sizeof(out->leader), "%s", value);
	for (char *c = out->leader; *c != '\0'; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	json_t *is_text = json_string(out->leader);

	if (is_text == NULL || out->leader[0] == '\0')
		(void)snprintf(out->leader, sizeof(out->leader), "%s", otherwise);
	json_decref(is_text);
}

bool web_claim_shows(const struct baton_record *r, const struct baton_profile *p)
{
	return r->priority == p->priority && r->score_permille == p->score_permille &&
	       strcmp(r->metadata, p->metadata) == 0;
}

/* ---- candidates ---- */

char *web_candidate_text(const struct baton_lease *lease, const struct baton_profile *p)
{
	return dump_json(json_pack("{s:s,s:s,s:I,s:i,s:i,s:b,s:s}", "id", lease->owner, "address",
				   lease->address, "updated", (json_int_t)clock_wall_ms(),
				   "priority", (int)p->priority, "score", (int)p->score_permille,
				   "healthy", (int)p->is_healthy, "metadata", p->metadata));
}

bool web_candidate_read(const char *value, struct baton_candidate *c)
{
	json_t *j = js_parse(value, strlen(value));
	int64_t priority = 0;
	uint64_t score = 0;

	*c = (struct baton_candidate){0};
	bool is_one = js_text(j, "id")[0] != '\0' && js_i64(j, "priority", &priority) &&
		      js_u64(j, "score", &score) && js_i64(j, "updated", &c->updated_ms);

	c->priority = (int32_t)priority;
	c->score_permille = (uint32_t)score;
	c->is_healthy = json_is_true(js_get(j, "healthy"));
	copy_text(c->id, sizeof(c->id), j, "id");
	copy_text(c->address, sizeof(c->address), j, "address");
	copy_text(c->metadata, sizeof(c->metadata), j, "metadata");
	json_decref(j);
	return is_one;
}

/* ---- orders ---- */

json_t *web_order_make(const struct baton_order *order)
{
	char id[24], term[24], quiet[24];

	(void)snprintf(id, sizeof(id), "%" PRIu64, order->id);
	(void)snprintf(term, sizeof(term), "%" PRIu64, order->term);
	(void)snprintf(quiet, sizeof(quiet), "%" PRIu64, order->quiet_ms);
	return json_pack("{s:s,s:s,s:i,s:s,s:s,s:s}", "id", id, "term", term, "kind", order->kind,
			 "quiet", quiet, "target", order->target, "note", order->note);
}

void web_order_read(const json_t *order, struct baton_record *out)
{
	uint64_t term = 0;
	uint64_t kind = 0;

	out->order = (struct baton_order){0};
	if (!js_u64(order, "term", &term) || term != out->term ||
	    !js_u64(order, "id", &out->order.id) || !js_u64(order, "kind", &kind))
		return;
	out->order.term = term;
	out->order.kind = (int)kind;
	(void)js_u64(order, "quiet", &out->order.quiet_ms);
	copy_text(out->order.target, sizeof(out->order.target), order, "target");
	copy_text(out->order.note, sizeof(out->order.note), order, "note");
}

json_t *web_reserve_make(const struct baton_release *r)
{
	return json_pack("{s:s,s:I}", "for", r->reserve_for, "hold",
			 (json_int_t)(r->hold_ns / CLOCK_NS_PER_MS));
}

struct target {
	const char *id;
	bool is_ok;
};

static void target_found(void *arg, const struct baton_candidate *candidate)
{
	struct target *t = arg;

	if (strcmp(candidate->id, t->id) == 0 && candidate->is_healthy)
		t->is_ok = true;
}

int web_check_target(web_candidates *candidates, void *lane, struct baton_call *call,
		     struct baton_observation *o)
{
	struct baton_order *order = &o->record->order;
	struct target t = {.id = order->target};

	if (order->kind != BATON_ORDER_TRANSFER || order->target[0] == '\0')
		return BATON_OUTCOME_OK;
	int outcome = candidates(lane, call, o->name, target_found, &t);

	order->target_ok = t.is_ok;
	return outcome;
}
