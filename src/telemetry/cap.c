/*
 * cap.c: see cap.h. Series pass as they come; only those of "__other__" are kept until the last one
 * of their name has come, since they are sums.
 */
#include "telemetry/cap.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/name_table.h"

#define FAMILY_SIZE 128
#define LABELS_MAX 4
#define LABELS_SIZE 512
#define BUCKETS_MAX 64

/* An election that has series of its own. */
struct name {
	struct name_node node;
	uint64_t seen; /* the last round that it was part of */
	char text[];
};

/* A series of "__other__". */
struct sum {
	struct sum *next;
	double value;
	double sum;
	uint64_t count;
	uint64_t counts[BUCKETS_MAX];
	struct baton_label labels[LABELS_MAX]; /* into text */
	size_t n_labels;
	char text[LABELS_SIZE];
};

struct cap {
	void (*emit)(void *arg, const struct baton_metric *m);
	void *arg;
	size_t max_elections;
	uint64_t round;
	struct name_table names;
	char family[FAMILY_SIZE]; /* the name that is being told; "": none */
	struct baton_metric last; /* of that family; its labels and counts are no longer valid */
	double bounds[BUCKETS_MAX];
	struct sum *sums;
	bool is_summed; /* of that family: "__other__" has it */
	bool has_failed;
};

struct cap *cap_new(size_t max_elections)
{
	struct cap *c = calloc(1, sizeof(*c));

	if (c == NULL || name_table_init(&c->names) != 0) {
		free(c);
		return NULL;
	}
	c->max_elections = max_elections;
	return c;
}

/* ---- names ---- */

static const char *election_of(const struct baton_metric *m)
{
	for (size_t i = 0; i < m->n_labels; i++)
		if (strcmp(m->labels[i].name, "election") == 0)
			return m->labels[i].value;
	return NULL;
}

static bool is_named(struct cap *c, const char *election)
{
	struct name *name = (struct name *)name_table_find(&c->names, election);

	if (name == NULL && c->names.n < c->max_elections) {
		size_t n = strlen(election) + 1;

		name = calloc(1, sizeof(*name) + n);
		if (name == NULL) {
			c->has_failed = true;
			return false;
		}
		(void)memcpy(name->text, election, n);
		name_table_add(&c->names, &name->node, name->text);
	}
	if (name != NULL)
		name->seen = c->round;
	return name != NULL;
}

/* Names of elections that are gone make room. */
static void forget_names(struct cap *c)
{
	struct name_node *node = name_table_next(&c->names, NULL);

	while (node != NULL) {
		struct name_node *next = name_table_next(&c->names, node);

		if (((struct name *)node)->seen != c->round) {
			name_table_remove(&c->names, node);
			free(node);
		}
		node = next;
	}
}

/* ---- sums ---- */

/* Gauges whose sum over elections says how many. */
static bool is_countable(const char *name)
{
	return strcmp(name, "baton_is_leader") == 0 || strcmp(name, "baton_has_leader") == 0 ||
	       strcmp(name, "baton_paused") == 0 || strcmp(name, "baton_candidates") == 0;
}

/* The value of a label there. */
static const char *other_value(const struct baton_label *l)
{
	return strcmp(l->name, "election") == 0 ? CAP_OTHER : l->value;
}

static bool is_same(const struct sum *s, const struct baton_metric *m)
{
	if (s->n_labels != m->n_labels)
		return false;
	for (size_t i = 0; i < m->n_labels; i++)
		if (strcmp(s->labels[i].name, m->labels[i].name) != 0 ||
		    strcmp(s->labels[i].value, other_value(&m->labels[i])) != 0)
			return false;
	return true;
}

static const char *keep_text(struct sum *s, size_t *used, const char *text)
{
	char *to = s->text + *used;
	size_t n = strlen(text) + 1;

	if (n > sizeof(s->text) - *used)
		return NULL;
	*used += n;
	return memcpy(to, text, n);
}

/* NULL: no memory, or labels that are longer than any of ours. */
static struct sum *sum_new(const struct baton_metric *m)
{
	struct sum *s = calloc(1, sizeof(*s));
	size_t used = 0;

	if (s == NULL)
		return NULL;
	for (size_t i = 0; i < m->n_labels; i++) {
		struct baton_label *l = &s->labels[i];

		l->name = keep_text(s, &used, m->labels[i].name);
		l->value = keep_text(s, &used, other_value(&m->labels[i]));
		if (l->name == NULL || l->value == NULL) {
			free(s);
			return NULL;
		}
	}
	s->n_labels = m->n_labels;
	return s;
}

static void add_to_other(struct cap *c, const struct baton_metric *m)
{
	struct sum *s = c->sums;

	if (m->n_buckets > BUCKETS_MAX || m->n_labels > LABELS_MAX)
		return;
	while (s != NULL && !is_same(s, m))
		s = s->next;
	if (s == NULL) {
		s = sum_new(m);
		if (s == NULL) {
			c->has_failed = true;
			return;
		}
		s->next = c->sums;
		c->sums = s;
	}
	c->last = *m;
	s->value += m->value;
	s->sum += m->sum;
	s->count += m->count;
	for (size_t i = 0; i < m->n_buckets; i++) {
		s->counts[i] += m->counts[i];
		c->bounds[i] = m->bounds[i];
	}
}

static void end_family(struct cap *c)
{
	while (c->sums != NULL) {
		struct sum *s = c->sums;
		struct baton_metric m = c->last;

		m.name = c->family;
		m.labels = s->labels;
		m.n_labels = s->n_labels;
		m.value = s->value;
		m.sum = s->sum;
		m.count = s->count;
		m.counts = s->counts;
		m.bounds = c->bounds;
		c->emit(c->arg, &m);
		c->sums = s->next;
		free(s);
	}
}

/* ---- ---- */

void cap_begin(struct cap *c, void (*emit)(void *arg, const struct baton_metric *m), void *arg)
{
	c->emit = emit;
	c->arg = arg;
	c->round++;
	c->family[0] = '\0';
	c->has_failed = false;
}

void cap_add(void *arg, const struct baton_metric *m)
{
	struct cap *c = arg;
	const char *election = election_of(m);
	bool is_other = election != NULL && !is_named(c, election);

	if (strcmp(c->family, m->name) != 0) {
		end_family(c);
		(void)snprintf(c->family, sizeof(c->family), "%s", m->name);
		c->is_summed = m->type != BATON_METRIC_GAUGE || is_countable(m->name);
	}
	if (!is_other)
		c->emit(c->arg, m);
	else if (c->is_summed)
		add_to_other(c, m);
}

bool cap_end(struct cap *c)
{
	end_family(c);
	c->family[0] = '\0';
	forget_names(c);
	return !c->has_failed;
}

void cap_free(struct cap *c)
{
	if (c == NULL)
		return;
	while (c->sums != NULL) { /* of a round that was not ended */
		struct sum *next = c->sums->next;

		free(c->sums);
		c->sums = next;
	}
	c->round++;
	forget_names(c);
	name_table_done(&c->names);
	free(c);
}
