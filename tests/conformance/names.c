/*
 * names.c: names and ids are bytes that the store must keep apart exactly (rule 5). Names cut to a
 * length, hashed weakly or used as patterns make two elections one, or two leaders.
 */
#include "backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- N18 ---- */

/* A name of that length that begins like all others of this case, and ends like none. */
static void fill(char *name, size_t length, const struct testcase *t, char last)
{
	size_t n = (size_t)snprintf(name, BATON_NAME_MAX + 1, "%s-", t->name);

	memset(name + n, 'x', length - n);
	name[length - 1] = last;
	name[length] = '\0';
}

static void long_names(struct testcase *t)
{
	static const size_t lengths[] = {60, 128, BATON_NAME_MAX};

	for (unsigned i = 0; i < 3; i++) {
		char names[2][BATON_NAME_MAX + 1];
		char ids[2][BATON_NAME_MAX + 1];

		for (unsigned k = 0; k < 2; k++) {
			fill(names[k], lengths[i], t, (char)('a' + k));
			fill(ids[k], lengths[i], t, (char)('p' + k));
		}
		/* Two elections that differ in the last byte: both have a leader. */
		struct local *a = local_new(t, &(struct cast){.name = names[0], .id = ids[0]});
		struct local *b = local_new(t, &(struct cast){.name = names[1], .id = ids[1]});

		local_leads(a, soon_ms(t));
		local_leads(b, soon_ms(t));
		/* Two candidates that differ in the last byte: one leads, and both know which. */
		struct local *c = local_new(t, &(struct cast){.name = names[0], .id = ids[1]});

		local_sees(c, ids[0], soon_ms(t));
		CHECK(t, strcmp(baton_election_name(a->e), names[0]) == 0, "the name was changed");
		CHECK(t, strcmp(baton_id(a->b), ids[0]) == 0, "the id was changed");
		stays(t, local_is_no_leader, c, t->lease_ms / 2, "one leader of names that long");
		local_stop(a);
		local_leads(c, failover_ms(t));
		local_close(a);
		local_close(b);
		local_close(c);
	}
}

/* ---- N19 ---- */

static void colliding_names(struct testcase *t)
{
	static const char *const pairs[][2] = {
		{"Aa", "BB"},
		{"AaAa", "BBBB"},
		{"tenant-1a", "tenant-2B"},
		{"case", "CASE"},
		{"dot", "dot."},
		{"a/b", "a%2Fb"},
		{"a_b", "a-b"},
		/* one letter and the same as a letter with an accent that is put over it */
		{"\xc3\xa9", "e\xcc\x81"},
	};

	for (unsigned i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		struct local *p[2];

		for (unsigned k = 0; k < 2; k++) {
			char name[BATON_NAME_MAX + 1];

			snprintf(name, sizeof(name), "%s%s", t->name, pairs[i][k]);
			p[k] = local_new(t, &(struct cast){.name = name});
		}
		for (unsigned k = 0; k < 2; k++)
			local_leads(p[k], soon_ms(t));
		CHECK(t, baton_is_leader(p[0]->e) && baton_is_leader(p[1]->e),
		      "%s and %s are one election", pairs[i][0], pairs[i][1]);
		/* Ids that collide are two candidates. */
		local_close(p[0]);
		local_close(p[1]);
	}
	struct local *a = local_new(t, &(struct cast){.id = "Aa"});
	struct local *b = local_new(t, &(struct cast){.id = "BB"});
	struct local *list[2] = {a, b};
	struct local *leader = await_leader(t, list, 2, soon_ms(t));

	local_sees(list[leader == a], leader->id, soon_ms(t));
	stays(t, local_is_no_leader, list[leader == a], t->lease_ms, "one leader");
}

/* ---- N30 ---- */

/* Either refused, or an election of exactly this name: no third way. */
static const char *const hostile[] = {
	"'",
	"\"",
	"`",
	"'; DROP TABLE baton; --",
	"$(reboot)",
	"${IFS}",
	"%s%n",
	"\\",
	"\\0",
	"..",
	".",
	"../..",
	"/",
	"/etc/passwd",
	"a/../b",
	"~",
	"-rf",
	"--",
	"*",
	"?",
	"[a-z]",
	"{}",
	"{a}",
	"{{x}}",
	"#",
	"&",
	";",
	"|",
	"<>",
	"%",
	"%00",
	"%2e%2e",
	"+",
	" ",
	" leading",
	"trailing ",
	"a b",
	":",
	"a:b:c",
	"=",
	",",
	"(",
	"\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80",
	".hidden",
	"name.end",
	"1",
	"0",
	"work",
	"leases",
	"NUL",
	"con",
};

static const char *const forbidden[] = {
	"",
	"a\r\nb",
	"\n",
	"\t",
	"\x01",
	"\x7f",
	"\xff\xfe",
	"\xc3",
	"\xc0\xaf",
	"\xed\xa0\x80",
	"\xf4\x90\x80\x80",
	"a\xe2\x82",
};

static bool is_refused(struct testcase *t, struct baton *b, const char *name)
{
	struct baton_election *e = NULL;
	struct baton_error err = {0};
	int rc = baton_election_new(b, name, NULL, &e, &err);

	CHECK(t, (rc == 0) == (e != NULL), "code %d", rc);
	CHECK(t, rc == 0 || rc == BATON_E_INVALID, "\"%.40s\" is refused with %d", name, rc);
	CHECK(t, rc == 0 || err.text[0] != '\0', "\"%.40s\" is refused without a sentence", name);
	baton_election_free(e);
	return rc != 0;
}

/* The name as it is: places are the case's own, where the store has places. */
static void round_trip(struct testcase *t, const char *name)
{
	struct local *p = local_new(t, &(struct cast){.name = name});
	struct baton_observed status = {0};
	struct baton_error err = {0};

	local_leads(p, soon_ms(t));
	int rc = patient_observe(t, p->b, name, &status, &err);

	CHECK(t, rc == 0, "observe \"%s\": %s", name, err.text);
	CHECK(t, strcmp(status.leader, p->id) == 0, "\"%s\" is led by \"%s\"", name, status.leader);
	CHECK(t, strcmp(baton_election_name(p->e), name) == 0, "the name was changed");
	int n = t->backend->count_name(t, name, strlen(name));

	CHECK(t, n == 1, "another client finds \"%s\" %d times", name, n);
	local_close(p);
}

static void hostile_names(struct testcase *t)
{
	struct local *p = local_new(t, &(struct cast){.idle = true});
	unsigned n_led = 0;
	char *huge = malloc(1 << 20);

	CHECK(t, huge != NULL, "no memory");
	memset(huge, 'a', (1 << 20) - 1);
	huge[(1 << 20) - 1] = '\0';
	CHECK(t, is_refused(t, p->b, huge), "a megabyte is a name");
	huge[BATON_NAME_MAX + 1] = '\0';
	CHECK(t, is_refused(t, p->b, huge), "a name of %d bytes", BATON_NAME_MAX + 1);
	huge[BATON_NAME_MAX] = '\0';
	CHECK(t, !is_refused(t, p->b, huge), "no name of %d bytes", BATON_NAME_MAX);
	free(huge);
	for (unsigned i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++) {
		struct baton_options o;
		struct baton *b = NULL;

		CHECK(t, is_refused(t, p->b, forbidden[i]), "forbidden name %u is accepted", i);
		baton_options_init(&o);
		o.id = forbidden[i];
		CHECK(t, baton_open(t->url, &o, &b, NULL) == BATON_E_INVALID,
		      "forbidden id %u is accepted", i);
	}
	for (unsigned i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
		if (is_refused(t, p->b, hostile[i]))
			continue;
		round_trip(t, hostile[i]);
		n_led++;
	}
	testcase_note(t, "%u names led, %zu refused", n_led,
		      sizeof(hostile) / sizeof(hostile[0]) - n_led +
			      sizeof(forbidden) / sizeof(forbidden[0]));
}

/* Hostile ids and metadata come back exactly, too. */
static void hostile_texts(struct testcase *t)
{
	hostile_names(t);
	for (unsigned i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i += 4) {
		struct local *a = local_new(t, &(struct cast){.id = hostile[i]});

		local_leads(a, soon_ms(t));
		struct local *b = local_new(t, NULL);

		local_sees(b, hostile[i], soon_ms(t));
		local_close(a);
		local_close(b);
	}
}

const struct entry cases_names[] = {
	{"N18", "ids and names of 60, 128, 253 characters", long_names, NEEDS_NOTHING, 0},
	{"N19", "names that collide under weak hashes", colliding_names, NEEDS_NOTHING, 0},
	{"N30", "hostile names: exact round trip, or refused before any I/O", hostile_texts,
	 NEEDS_NAMES, 60},
	{NULL, NULL, NULL, 0, 0},
};
