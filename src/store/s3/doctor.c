/*
 * doctor.c: examines a bucket: whether it keeps every version, whether a rule deletes our objects,
 * whether the server's clock is right, and whether others may read along. It writes nothing.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/web/xml.h"
#include "store/doctor.h"
#include "store/s3/s3.h"

#define TELL(v, level, ...) doctor_tell(&(v)->doctor, BATON_FINDING_##level, __VA_ARGS__)
#define US_PER_S 1000000

struct visit {
	struct s3_lane *lane;
	struct doctor doctor;
	bool is_unfit; /* the store can't be used, so nothing is tried */
};

/* Asks for a setting of the bucket. Returns enum s3_answer. */
static int ask_bucket(struct visit *v, struct baton_call *call, const char *query)
{
	if (!s3_begin(v->lane, call, 1))
		return S3_FAILED;
	s3_ask(v->lane, 0, "GET", NULL, query, "", NULL);
	s3_run(v->lane, call, 1);
	return s3_answer(v->lane, call, 0);
}

static bool said(const struct visit *v, const char *name, char *out, size_t size)
{
	const struct http_reply *reply = v->lane->replies;

	return xml_find(reply->body, reply->body_size, name, out, size);
}

static void tell_server(struct visit *v, uint64_t began_ns)
{
	const struct s3_options *o = &v->lane->store->options;
	struct doctor_trips trips = {.n = 0};
	char date[64];
	int64_t server_s = s3_seconds(http_header(v->lane->replies, "Date", date, sizeof(date)));

	TELL(v, OK, "reachability", NULL, "The server answers, bucket %s, region %s.", o->bucket,
	     v->lane->region);
	doctor_tell_encryption(
		&v->doctor, v->lane->host.tls, doctor_is_local(v->lane->host.name), NULL,
		"Say endpoint=https://..., and ca= with the authority that signed the "
		"server's certificate, unless the system trusts it.");
	if (server_s < 0)
		return;
	/* The server's date has whole seconds. */
	doctor_trip_clock(&trips, began_ns, clock_boot_ns(), server_s * US_PER_S + US_PER_S / 2);
	doctor_tell_clock(&v->doctor, &trips,
			  "Elections don't mind; signatures are refused from 15 minutes on.");
}

static void tell_versions(struct visit *v, struct baton_call *call)
{
	char word[32];
	int answer = ask_bucket(v, call, "object-lock=");

	if (answer == S3_DONE && said(v, "Mode", word, sizeof(word))) {
		TELL(v, ERROR, "object lock", "Use a bucket without object lock.",
		     "The bucket keeps every object for a time (%s): no renewal is ever removed "
		     "before that.",
		     word);
		v->is_unfit = true;
		return;
	}
	answer = ask_bucket(v, call, "versioning=");
	if (answer == S3_DONE && said(v, "Status", word, sizeof(word)) &&
	    strcmp(word, "Enabled") == 0) {
		TELL(v, WARNING, "versioning",
		     "Use a bucket without versions, or a lifecycle rule that removes noncurrent "
		     "ones after a day.",
		     "The bucket keeps every version of an object, so each renewal stays and is "
		     "paid for. No lease was tried, because it would stay, too.");
		v->is_unfit = true;
	} else if (answer == S3_DONE) {
		TELL(v, OK, "versioning", NULL, "Old versions are not kept.");
	} else {
		TELL(v, NOTE, "versioning", NULL, "Whether old versions are kept can't be seen.");
	}
}

/* One rule, as far as it was read. */
struct rule {
	char prefix[S3_LINE_MAX];
	bool is_on, deletes, has_tag;
};

static bool is_below(const char *a, const char *b)
{
	return strncmp(a, b, strlen(b)) == 0;
}

/* Elections must stay for ever (R9); leases and candidates may go after a day. */
static void tell_rule(struct visit *v, const struct rule *r)
{
	char ours[RECORD_PREFIX_MAX + 16];

	(void)snprintf(ours, sizeof(ours), "%se/", v->lane->store->prefix);
	if (!r->is_on || !r->deletes || r->has_tag ||
	    (!is_below(ours, r->prefix) && !is_below(r->prefix, ours)))
		return;
	v->is_unfit = true;
	TELL(v, ERROR, "lifecycle", "Exclude this prefix from the rule, or use another bucket.",
	     "A rule deletes objects below \"%s\", and so baton's elections below \"%s\": terms "
	     "would begin again, and two could lead.",
	     r->prefix, ours);
}

static void read_rules(struct visit *v)
{
	const struct http_reply *reply = v->lane->replies;
	struct rule rule = {.is_on = false};
	struct xml x;

	xml_init(&x, reply->body, reply->body_size);
	for (int event; (event = xml_next(&x)) == XML_OPEN || event == XML_CLOSE;) {
		if (event == XML_OPEN)
			continue;
		if (xml_is(&x, NULL, "Prefix"))
			(void)snprintf(rule.prefix, sizeof(rule.prefix), "%.400s", x.text);
		rule.is_on = rule.is_on ||
			     (xml_is(&x, "Rule", "Status") && strcmp(x.text, "Enabled") == 0);
		rule.deletes = rule.deletes || xml_is(&x, "Expiration", "Days") ||
			       xml_is(&x, "Expiration", "Date");
		rule.has_tag = rule.has_tag || xml_is(&x, NULL, "Tag");
		if (xml_is(&x, NULL, "Rule")) {
			tell_rule(v, &rule);
			rule = (struct rule){.is_on = false};
		}
	}
}

static void tell_lifecycle(struct visit *v, struct baton_call *call)
{
	bool was_unfit = v->is_unfit;
	int answer = ask_bucket(v, call, "lifecycle=");

	v->is_unfit = false;
	if (answer == S3_DONE)
		read_rules(v);
	if (answer == S3_ABSENT || (answer == S3_DONE && !v->is_unfit))
		TELL(v, OK, "lifecycle", NULL, "No rule deletes baton's elections.");
	else if (answer != S3_DONE)
		TELL(v, NOTE, "lifecycle",
		     "See to it that no rule deletes objects of this prefix; "
		     "s3:GetLifecycleConfiguration lets the doctor look.",
		     "Whether a rule deletes objects can't be seen.");
	v->is_unfit = v->is_unfit || was_unfit;
}

int s3_examine(void *lane, struct baton_call *call,
	       void (*found)(void *arg, const struct baton_finding *finding), void *arg)
{
	struct visit v = {.lane = lane, .doctor = {.found = found, .arg = arg}};
	uint64_t began_ns = clock_boot_ns();

	if (ask_bucket(&v, call, "list-type=2&max-keys=1") != S3_DONE)
		return BATON_OUTCOME_FAILED; /* the caller reports the call's error */
	struct baton_call quiet = {.deadline_ns = call->deadline_ns};

	tell_server(&v, began_ns);
	tell_versions(&v, &quiet);
	tell_lifecycle(&v, &quiet);
	return v.is_unfit ? BATON_OUTCOME_REFUSED : BATON_OUTCOME_OK;
}
