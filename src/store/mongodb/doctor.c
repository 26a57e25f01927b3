/*
 * doctor.c: examines a MongoDB server: which program it is, whether there are several servers,
 * whether the records can be read, and whether an index deletes them. It writes nothing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/mongodb/mongodb.h"

#define TELL(v, level, ...) doctor_tell(&(v)->doctor, BATON_FINDING_##level, __VA_ARGS__)
#define NEEDS_MAJOR 3 /* 3.6: change streams, and what libmongoc speaks */
#define NEEDS_MINOR 6
#define E_NO_COLLECTION 26

struct visit {
	struct mongodb_lane *lane;
	struct doctor doctor;
	bool is_unfit; /* the store can't be used, so nothing is tried */
};

static int ask_server(struct visit *v, struct baton_call *call, const char *verb, const char *of,
		      bson_t *reply)
{
	bson_t command = BSON_INITIALIZER;

	if (of != NULL)
		(void)bson_append_utf8(&command, verb, -1, of, -1);
	else
		(void)bson_append_int32(&command, verb, -1, 1);
	if (strcmp(verb, "find") == 0)
		(void)BSON_APPEND_INT32(&command, "limit", 1);
	int end = mongodb_connect(v->lane, call) ? mongodb_run(v->lane, call, &command, reply)
						 : MONGODB_UNSENT;

	if (end == MONGODB_UNSENT)
		bson_init(reply);
	bson_destroy(&command);
	return end;
}

static void text_of(const bson_t *reply, const char *name, char *out, size_t size)
{
	bson_iter_t at;

	(void)snprintf(out, size, "%s",
		       mongodb_has(reply, name, &at) && BSON_ITER_HOLDS_UTF8(&at)
			       ? bson_iter_utf8(&at, NULL)
			       : "");
}

/* What isn't a version isn't too old. */
static bool is_too_old(const char *version)
{
	char *end;
	long major = strtol(version, &end, 10);

	if (end == version || *end != '.')
		return false;
	long minor = strtol(end + 1, NULL, 10);

	return major < NEEDS_MAJOR || (major == NEEDS_MAJOR && minor < NEEDS_MINOR);
}

/* FerretDB 1 can't be used: its compare-and-set is not atomic, so two writers can win. */
static void tell_version(struct visit *v, struct baton_call *call)
{
	bson_t reply;
	char version[32] = "", ferret[32] = "";

	if (ask_server(v, call, "buildInfo", NULL, &reply) == MONGODB_DONE) {
		text_of(&reply, "version", version, sizeof(version));
		text_of(&reply, "ferretdbVersion", ferret, sizeof(ferret));
		if (ferret[0] == '\0')
			text_of(&reply, "ferretdb.version", ferret, sizeof(ferret));
	}
	bson_destroy(&reply);
	if (strncmp(ferret, "v1.", 3) == 0) {
		v->is_unfit = true;
		TELL(v, ERROR, "version", "Use FerretDB 2, or MongoDB.",
		     "In FerretDB %s two writers of one record can both be told that they have "
		     "won.",
		     ferret);
	} else if (is_too_old(version)) {
		v->is_unfit = true;
		TELL(v, ERROR, "version", "Use MongoDB 3.6 or later.",
		     "The server is MongoDB %s, and baton needs 3.6 or later.", version);
	} else if (version[0] != '\0') {
		TELL(v, OK, "version", NULL, "The server says that it is MongoDB %s%s%s.", version,
		     ferret[0] != '\0' ? ", FerretDB " : "", ferret);
	}
}

static void tell_server(struct visit *v)
{
	const struct mongodb_options *o = &v->lane->store->options;

	TELL(v, OK, "reachability", NULL, "The server answers, database %s, collection %s.",
	     o->database, o->collection);
	doctor_tell_encryption(
		&v->doctor, o->tls, !o->is_srv && doctor_is_local(o->login.hosts[0].name),
		o->login.password[0] != '\0' || o->login.password_file[0] != '\0' ? "password"
										  : NULL,
		"Say tls=1, and ca= with the authority that signed the server's certificate.");
	if (v->lane->is_set)
		TELL(v, OK, "replication", NULL,
		     "There are several servers, and a majority has every write on disk before it "
		     "counts.");
	else
		TELL(v, NOTE, "replication",
		     "Use a replica set of three where exclusion must survive the loss of a "
		     "server.",
		     "MongoDB is a single server here: no candidate leads while it is away, and "
		     "standbys poll.");
}

static void tell_records(struct visit *v, struct baton_call *call)
{
	bson_t reply;
	int end = ask_server(v, call, "find", v->lane->store->options.collection, &reply);

	bson_destroy(&reply);
	v->is_unfit = v->is_unfit || end != MONGODB_DONE;
	if (end == MONGODB_DONE)
		TELL(v, OK, "records", NULL, "The records can be read.");
	else
		TELL(v, ERROR, "records", "Give the user the role readWrite on the database.",
		     "The records can't be read: %s.", call->error.text);
}

/* Whether an index deletes documents by a field that the records have: `at`; `_ts`, which Azure
 * Cosmos DB gives every document. */
static bool has_ttl(const bson_t *index)
{
	bson_iter_t at;

	return mongodb_has(index, "expireAfterSeconds", &at) &&
	       (mongodb_has(index, "key.at", &at) || mongodb_has(index, "key._ts", &at));
}

/* R9: what deletes a record of an election deletes its term. A filter may leave those out. */
static void tell_index(struct visit *v, const bson_t *index)
{
	bson_iter_t at;
	char name[128];

	if (!has_ttl(index))
		return;
	text_of(index, "name", name, sizeof(name));
	if (mongodb_has(index, "partialFilterExpression", &at)) {
		TELL(v, WARNING, "expiry",
		     "Let its filter leave out every _id that begins with e/, or drop the index.",
		     "The TTL index %s deletes the records that its filter matches. The records "
		     "of elections have the terms.",
		     name);
		return;
	}
	v->is_unfit = true;
	TELL(v, ERROR, "expiry", "Drop that index.",
	     "The TTL index %s deletes records, also those of elections. Without them terms no "
	     "longer grow.",
	     name);
}

static void tell_indexes(struct visit *v, struct baton_call *call)
{
	bson_t reply, index;
	bson_iter_t list, at;
	const uint8_t *data;
	uint32_t size;
	int end = ask_server(v, call, "listIndexes", v->lane->store->options.collection, &reply);

	/* A collection has 64 at most: they are all in the first batch. */
	if (end == MONGODB_DONE && mongodb_has(&reply, "cursor.firstBatch", &list) &&
	    BSON_ITER_HOLDS_ARRAY(&list) && bson_iter_recurse(&list, &at)) {
		while (bson_iter_next(&at)) {
			if (!BSON_ITER_HOLDS_DOCUMENT(&at))
				continue;
			bson_iter_document(&at, &size, &data);
			if (bson_init_static(&index, data, size))
				tell_index(v, &index);
		}
	} else if (v->lane->code != E_NO_COLLECTION) { /* which the first write makes */
		TELL(v, NOTE, "expiry", "Give the user the role readWrite on the database.",
		     "The indexes can't be listed: a TTL index would delete records.");
	}
	bson_destroy(&reply);
}

int mongodb_examine(void *lane, struct baton_call *call,
		    void (*found)(void *arg, const struct baton_finding *finding), void *arg)
{
	struct visit v = {.lane = lane, .doctor = {.found = found, .arg = arg}};

	if (!mongodb_connect(v.lane, call))
		return BATON_OUTCOME_FAILED; /* the caller reports the call's error */
	tell_server(&v);
	tell_version(&v, call);
	tell_records(&v, call);
	if (!v.is_unfit)
		tell_indexes(&v, call);
	return v.is_unfit ? BATON_OUTCOME_REFUSED : BATON_OUTCOME_OK;
}
