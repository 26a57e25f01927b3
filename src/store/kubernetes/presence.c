/*
 * presence.c: shows that a process with candidates is alive, and, if it is a pod, whether it leads.
 * Both are for others to look at; no leadership depends on them. The watch lane does this beside
 * listening, because that lane is never in a hurry. Only before a release the releasing lane takes
 * the label off.
 *
 * The age of a sign of life is judged by the API server's clock alone: by the time when it wrote
 * the object (managedFields), and the time that it puts on its answers. That clock can jump, so it
 * is never a reason to touch a process lease, which elections hang on (S1).
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "store/kubernetes/kube.h"

#define CALL_NS (2 * CLOCK_NS_PER_S)
/* A process that has been silent for that much longer than its lease counts as gone for good. */
#define SWEEP_MS ((int64_t)3600 * 1000)
#define SWEEP_FIRST_NS (60 * CLOCK_NS_PER_S)
#define SWEEP_NS (3600 * CLOCK_NS_PER_S)
/* After a failure the pod's label isn't tried again before that time, whatever events come. */
#define LABEL_NS (10 * CLOCK_NS_PER_S)

/* ---- how old ---- */

static int64_t object_written_ms(const json_t *object)
{
	const json_t *fields = js_get(js_get(object, "metadata"), "managedFields");
	int64_t last = kube_time_ms(js_text(js_get(object, "metadata"), "creationTimestamp"));

	for (size_t i = 0; i < json_array_size(fields); i++) {
		int64_t ms = kube_time_ms(js_text(json_array_get(fields, i), "time"));

		if (ms > last)
			last = ms;
	}
	return last;
}

static int64_t duration_ms(const json_t *object)
{
	uint64_t seconds = 0;

	(void)js_u64(js_get(object, "spec"), "leaseDurationSeconds", &seconds);
	return seconds < KUBE_FOREVER_S ? (int64_t)seconds * 1000 : 0;
}

/* At exactly its duration an object is still fresh: times are in whole seconds, and a renewal may
 * be on its way. */
bool kube_is_fresh(const json_t *object, int64_t server_ms)
{
	return kube_annotation(object, "baton/dead")[0] == '\0' &&
	       server_ms - object_written_ms(object) <= duration_ms(object);
}

/* ---- the life sign ---- */

int kube_show_presence(struct kube_lane *lane, struct baton_call *call)
{
	struct kube_store *s = lane->store;
	struct kube_call c = {.method = "PATCH", .type = KUBE_APPLY};
	char object[KUBE_NAME_MAX + 1];
	char now[KUBE_TIME_MAX];

	store_lock(&s->web.base);
	struct kube_presence p = s->presence;

	s->presence.next_ns = clock_boot_ns() + p.ttl_ns / 3;
	store_unlock(&s->web.base);
	kube_process_name(p.who, object);
	kube_path(s, &c, object, "?fieldManager=baton&force=true&for=presence");
	kube_now(now);
	bytes_print(&c.body,
		    "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":{"
		    "\"name\":\"%s\",\"labels\":{\"baton/candidate\":\"process\","
		    "\"baton/process\":\"presence\"}},\"spec\":{\"leaseDurationSeconds\":%" PRIu64
		    ",\"renewTime\":\"%s\",\"holderIdentity\":",
		    object, (p.ttl_ns + CLOCK_NS_PER_S - 1) / CLOCK_NS_PER_S, now);
	kube_put_text(&c.body, p.owner);
	bytes_print(&c.body, "}}");
	int outcome = kube_call(lane, call, &c);

	kube_call_done(&c);
	return outcome;
}

/* ---- the pod's label ---- */

/* Returns when to try again; or NEVER: the label is right. */
static uint64_t presence_label_pod(struct kube_lane *lane, struct baton_call *call, uint64_t now_ns)
{
	struct kube_store *s = lane->store;
	struct kube_call c = {.method = "PATCH", .type = KUBE_MERGE};

	store_lock(&s->web.base);
	int wanted = s->n_led > 0 ? 1 : -1;
	bool is_due = s->options.pod_label[0] != '\0' && s->labelled != wanted;

	store_unlock(&s->web.base);
	if (!is_due)
		return BATON_STORE_NEVER;
	if (now_ns < lane->label_ns)
		return lane->label_ns;
	(void)snprintf(c.path, sizeof(c.path), "%s/api/v1/namespaces/%s/pods/%s?fieldManager=baton",
		       s->config.prefix, s->config.space, s->options.pod);
	bytes_print(&c.body, "{\"metadata\":{\"labels\":{\"%s\":\"%s\"}}}", s->options.pod_label,
		    wanted > 0 ? "leader" : "standby");
	lane->label_ns = now_ns + LABEL_NS;
	if (kube_call(lane, call, &c) == BATON_OUTCOME_OK) {
		lane->label_ns = 0;
		store_lock(&s->web.base);
		s->labelled = wanted;
		store_unlock(&s->web.base);
	}
	kube_call_done(&c);
	return lane->label_ns != 0 ? lane->label_ns : BATON_STORE_NEVER;
}

/* So that a Service stops sending to a pod whose work has ended, before another pod leads. */
void kube_unlabel_pod(struct kube_lane *lane, uint64_t deadline_ns)
{
	struct kube_store *s = lane->store;
	uint64_t now_ns = clock_boot_ns();

	store_lock(&s->web.base);
	bool is_last = s->labelled > 0 && s->n_led == 0;

	store_unlock(&s->web.base);
	if (!is_last || now_ns >= deadline_ns)
		return;
	struct baton_call quiet = {.deadline_ns = now_ns + (deadline_ns - now_ns) / 2};

	(void)presence_label_pod(lane, &quiet, now_ns);
}

/* ---- what the dead have left behind ---- */

static void delete_object(struct kube_lane *lane, struct baton_call *call, const json_t *object)
{
	struct kube_call c = {.method = "DELETE", .type = KUBE_JSON};
	const json_t *metadata = js_get(object, "metadata");

	kube_path(lane->store, &c, js_text(metadata, "name"), "%s", "");
	bytes_print(&c.body, "{\"preconditions\":{\"resourceVersion\":\"%s\"}}",
		    js_text(metadata, "resourceVersion"));
	(void)kube_call(lane, call, &c);
	kube_call_done(&c);
}

static int presence_list(struct kube_lane *lane, struct baton_call *call, const char *label,
			 struct kube_call *c)
{
	*c = (struct kube_call){.method = "GET", .is_read = true};
	kube_path(lane->store, c, NULL, "?labelSelector=baton%%2F%s&limit=500&for=sweep", label);
	return kube_call(lane, call, c);
}

static bool has(const json_t *items, const char *name)
{
	for (size_t i = 0; i < json_array_size(items); i++)
		if (strcmp(js_text(js_get(json_array_get(items, i), "metadata"), "name"), name) ==
		    0)
			return true;
	return false;
}

/*
 * S1: elections are free as soon as the process lease that they hang on is gone. So we delete that
 * lease only if it is dead already, or if we have seen it unchanged for as long as it says, on our
 * own clock. A process that takes over waits for the same.
 */
static bool presence_is_over(struct kube_store *s, json_t *object,
			     const struct kube_call *presence_list)
{
	const json_t *metadata = js_get(object, "metadata");
	char key[KUBE_NAME_MAX + 2];
	struct kube_lease l;

	if (strcmp(js_text(js_get(metadata, "labels"), "baton/process"), "lease") != 0)
		return presence_list->server_ms - object_written_ms(object) >
		       SWEEP_MS + duration_ms(object);
	kube_process_key(js_text(metadata, "name"), key);
	kube_lease_read(&l, json_incref(object), 0);
	(void)kube_expiry_note(s, key, &l, presence_list->read_ns, false);
	bool is_ended = kube_lease_end_ns(&l, SWEEP_NS) <= clock_boot_ns();

	kube_lease_done(&l);
	return is_ended;
}

/* Deletes processes that have been gone for very long, and candidates whose process is gone. */
static void presence_sweep(struct kube_lane *lane, struct baton_call *call)
{
	struct baton_call quiet = {.deadline_ns = call->deadline_ns};
	struct kube_call candidates, processes;

	kube_expiry_doubt(lane->store);
	/* Candidates are listed first: a process's object is there before those of its
	 * candidates. */
	bool is_known = presence_list(lane, &quiet, "candidate", &candidates) == BATON_OUTCOME_OK;

	is_known =
		presence_list(lane, &quiet, "process", &processes) == BATON_OUTCOME_OK && is_known;
	const json_t *alive = js_get(processes.answer, "items");
	const json_t *shown = js_get(candidates.answer, "items");
	bool is_whole = js_text(js_get(processes.answer, "metadata"), "continue")[0] == '\0';

	/* Our own writes wake us, too, and must not end this. */
	http_heed_wake(lane->beat, 0);
	for (size_t i = 0; is_known && i < json_array_size(alive); i++)
		if (presence_is_over(lane->store, json_array_get(alive, i), &processes))
			delete_object(lane, &quiet, json_array_get(alive, i));
	if (is_known && is_whole)
		kube_expiry_drop_doubted(lane->store);
	for (size_t i = 0; is_known && is_whole && i < json_array_size(shown); i++) {
		const char *process = kube_annotation(json_array_get(shown, i), "baton/process");

		if (process[0] != '\0' && !has(alive, process))
			delete_object(lane, &quiet, json_array_get(shown, i));
	}
	kube_call_done(&candidates);
	kube_call_done(&processes);
}

/* ---- what the watch lane does ---- */

uint64_t kube_beat(struct kube_lane *lane, uint64_t now_ns)
{
	struct kube_store *s = lane->store;
	struct baton_call call = {.deadline_ns = now_ns + CALL_NS};

	kube_be_patient(lane, 0);
	uint64_t label_ns = presence_label_pod(lane, &call, now_ns);

	/* The first sweep waits, because there is much to do at the start. */
	if (lane->sweep_ns == 0) {
		lane->sweep_ns = now_ns + SWEEP_FIRST_NS;
	} else if (now_ns >= lane->sweep_ns) {
		lane->sweep_ns = now_ns + SWEEP_NS;
		presence_sweep(lane, &call);
	}
	store_lock(&s->web.base);
	bool is_shown = s->presence.shown != NULL && !s->options.process_lease;
	uint64_t next_ns = is_shown ? s->presence.next_ns : BATON_STORE_NEVER;

	store_unlock(&s->web.base);
	if (now_ns >= next_ns) {
		(void)kube_show_presence(lane, &call); /* after a failure the next one shows it */
		store_lock(&s->web.base);
		next_ns = s->presence.next_ns;
		store_unlock(&s->web.base);
	}
	return label_ns < next_ns ? label_ns : next_ns;
}
