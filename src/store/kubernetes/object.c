/* object.c: reads a Lease object without trust, and writes the pieces of one. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "store/kubernetes/kube.h"

/* ---- reading ---- */

const char *kube_annotation(const json_t *object, const char *key)
{
	return js_text(js_get(js_get(object, "metadata"), "annotations"), key);
}

static bool read_number(const char *text, uint64_t *out)
{
	char *end;

	if (text[0] < '0' || text[0] > '9')
		return false;
	uint64_t number = strtoull(text, &end, 10);

	if (*end != '\0' || number > TERM_MAX)
		return false;
	*out = number;
	return true;
}

/* Copies the next word of a text, and moves *text behind the word. False: there is none, or no
 * room. */
static bool next_word(const char **text, char *out, size_t size)
{
	size_t n = strcspn(*text, " ");

	if (n == 0 || n >= size)
		return false;
	(void)memcpy(out, *text, n);
	out[n] = '\0';
	*text += n + ((*text)[n] == ' ');
	return true;
}

/* Splits "LEASE NONCE TERM"; false: the text has another form. */
static bool claim_split(const struct kube_lease *l, char lease_id[BATON_LEASE_ID_MAX + 1],
			uint64_t *nonce, uint64_t *term)
{
	const char *rest = l->claim;
	char nonce_text[24], term_text[24];

	return next_word(&rest, lease_id, BATON_LEASE_ID_MAX + 1) &&
	       next_word(&rest, nonce_text, sizeof(nonce_text)) &&
	       next_word(&rest, term_text, sizeof(term_text)) && *rest == '\0' &&
	       read_number(nonce_text, nonce) && read_number(term_text, term);
}

/*
 * The claim is one of baton if the spec is still the one that it came with. S9: a claim that there
 * was no memory to read counts as none, but nothing is concluded from that: its process lease still
 * says how long it lasts.
 */
static void lease_read_claim(struct kube_lease *l)
{
	uint64_t term = 0;
	json_t *leader = js_parse(l->leader, strlen(l->leader));
	bool is_unread = leader == NULL && l->leader[0] != '\0';
	bool is_same = strcmp(js_text(leader, "leader"), l->holder) == 0;

	json_decref(leader);
	l->is_ours = l->holder[0] != '\0' && (is_same || is_unread) &&
		     claim_split(l, l->lease_id, &l->nonce, &term) && term == l->term;
	if (!l->is_ours)
		l->process = "";
	l->is_ours = l->is_ours && is_same;
	if (!l->is_ours)
		l->lease_id[0] = '\0';
}

/*
 * A leader of another program counts leaseTransitions up, and the term grows by as much. The last
 * claim has its term, too, which is used if baton/term was damaged (S3).
 */
static void lease_read_term(struct kube_lease *l)
{
	uint64_t claimed = 0, nonce, counted = 0;
	char lease_id[BATON_LEASE_ID_MAX + 1];

	l->term = 0;
	(void)read_number(kube_annotation(l->object, "baton/term"), &l->term);
	if (claim_split(l, lease_id, &nonce, &claimed) && claimed > l->term)
		l->term = claimed;
	if (l->term == 0)
		return;
	if (!read_number(kube_annotation(l->object, "baton/transitions"), &counted))
		counted = l->transitions;
	if (l->transitions > counted)
		l->term = term_sum(l->term, l->transitions - counted);
}

void kube_lease_read(struct kube_lease *l, json_t *object, uint64_t list_rv)
{
	const json_t *spec = js_get(object, "spec");

	*l = (struct kube_lease){.object = object, .rv = list_rv};
	l->holder = js_text(spec, "holderIdentity");
	l->acquire = js_text(spec, "acquireTime");
	l->renew = js_text(spec, "renewTime");
	l->preferred = js_text(spec, "preferredHolder");
	l->claim = kube_annotation(object, "baton/claim");
	l->leader = kube_annotation(object, "baton/leader");
	l->process = kube_annotation(object, "baton/process");
	l->order = kube_annotation(object, "baton/order");
	l->reserved = kube_annotation(object, "baton/reserved");
	l->is_paused = kube_annotation(object, "baton/paused")[0] != '\0';
	l->is_dead = kube_annotation(object, "baton/dead")[0] != '\0';
	(void)js_u64(spec, "leaseDurationSeconds", &l->duration_s);
	(void)js_u64(spec, "leaseTransitions", &l->transitions);
	if (object == NULL)
		return;
	(void)js_u64(js_get(object, "metadata"), "resourceVersion", &l->rv);
	lease_read_term(l);
	lease_read_claim(l);
}

void kube_lease_done(struct kube_lease *l)
{
	json_decref(l->object);
	*l = (struct kube_lease){.object = NULL};
}

int kube_lease_of_list(struct kube_lease *l, struct baton_call *call, const json_t *list)
{
	const json_t *items = js_get(list, "items");
	uint64_t rv = 0;

	*l = (struct kube_lease){.object = NULL};
	if (!json_is_array(items) || json_array_size(items) > 1 ||
	    !js_u64(js_get(list, "metadata"), "resourceVersion", &rv) || rv == 0)
		return kube_strange(call);
	kube_lease_read(l, json_incref(json_array_get(items, 0)), rv);
	return BATON_OUTCOME_OK;
}

/* Rule 6: by the record's duration. A record without a duration, or with a process lease that
 * is no longer known, gets the length of our own lease. */
uint64_t kube_lease_end_ns(const struct kube_lease *l, uint64_t ttl_ns)
{
	uint64_t seconds = l->duration_s < KUBE_FOREVER_S ? l->duration_s : 0;

	if (l->is_dead)
		return 0;
	if (l->since_ns == 0)
		return BATON_STORE_NEVER;
	return l->since_ns + (seconds != 0 ? seconds * CLOCK_NS_PER_S : ttl_ns);
}

uint64_t kube_hash(uint64_t h, const char *text)
{
	if (h == 0)
		h = 14695981039346656037u;
	for (; *text != '\0'; text++)
		h = (h ^ (unsigned char)*text) * 1099511628211u;
	return (h ^ 0xff) * 1099511628211u; /* marks the end of this text */
}

uint64_t kube_lease_hash(const struct kube_lease *l, bool is_own)
{
	const char *const texts[] = {l->holder,
				     l->claim,
				     l->leader,
				     l->process,
				     l->reserved,
				     is_own ? l->order : "",
				     is_own ? l->preferred : ""};
	char numbers[80];
	uint64_t h = 0;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		h = kube_hash(h, texts[i]);
	(void)snprintf(numbers, sizeof(numbers), "%d %d %d %" PRIu64 " %" PRIu64 " %" PRIu64,
		       l->object != NULL, l->is_paused, l->is_dead, l->transitions, l->term,
		       l->duration_s);
	return kube_hash(h, numbers);
}

/* ---- times ---- */

void kube_now(char out[KUBE_TIME_MAX])
{
	struct timespec now;
	struct tm tm;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	(void)gmtime_r(&now.tv_sec, &tm);
	size_t n = strftime(out, KUBE_TIME_MAX, "%Y-%m-%dT%H:%M:%S", &tm);

	(void)snprintf(out + n, KUBE_TIME_MAX - n, ".%06ldZ", now.tv_nsec / 1000);
}

int64_t kube_time_ms(const char *text)
{
	struct tm tm = {.tm_sec = 0};
	const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
	double fraction = 0;

	if (rest == NULL)
		return 0;
	if (*rest == '.')
		fraction = strtod(rest, NULL);
	return (int64_t)timegm(&tm) * 1000 + (int64_t)(fraction * 1000);
}

/* ---- writing ---- */

void kube_put_text(struct bytes *b, const char *text)
{
	json_t *value = json_string(text);
	char *quoted = value != NULL ? json_dumps(value, JSON_ENCODE_ANY) : NULL;

	if (quoted != NULL)
		bytes_print(b, "%s", quoted);
	b->has_failed = b->has_failed || quoted == NULL;
	free(quoted);
	json_decref(value);
}

void kube_put_op(struct bytes *b, const char *op, const char *path, const char *json)
{
	bytes_print(b, "%s{\"op\":\"%s\",\"path\":\"%s\",\"value\":%s}",
		    b->n > 0 && b->at[b->n - 1] == '}' ? "," : "", op, path, json);
}

void kube_put_annotation(struct bytes *b, const char *op, const char *key, const char *text)
{
	bytes_print(b, "%s{\"op\":\"%s\",\"path\":\"/metadata/annotations/baton~1%s\",\"value\":",
		    b->n > 0 && b->at[b->n - 1] == '}' ? "," : "", op, key);
	kube_put_text(b, text);
	bytes_print(b, "}");
}

void kube_put_free(struct bytes *b, char *text)
{
	b->has_failed = b->has_failed || text == NULL;
	kube_put_text(b, text != NULL ? text : "");
	free(text);
}

void kube_put_new(const struct kube_store *s, struct kube_call *call, const char *name,
		  bool is_paused)
{
	struct bytes *b = &call->body;
	char object[KUBE_NAME_MAX + 1];

	kube_object_name(name, object);
	*call = (struct kube_call){.method = "POST", .type = KUBE_JSON};
	kube_path(s, call, NULL, "?fieldManager=baton&for=%s", is_paused ? "pause" : "make");
	bytes_print(b,
		    "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":{"
		    "\"name\":\"%s\",\"annotations\":{%s%s",
		    object, is_paused ? "\"baton/paused\":\"1\"" : "",
		    is_paused && strcmp(object, name) != 0 ? "," : "");
	if (strcmp(object, name) != 0) {
		bytes_print(b, "\"baton/name\":");
		kube_put_text(b, name);
	}
	bytes_print(b, "}},\"spec\":{}}");
}
