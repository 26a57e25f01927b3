/*
 * watch.c: the watch lane. It has one watch, on the only election that we are in, or on all Leases
 * of the namespace but those of candidates. It looks first, and watches from there: nothing is
 * missed.
 *
 * Every renewal of a leader is an event. A renewal is noted (expiry.c), and causes no hint: only
 * changes that others wait for do. A lease that is not renewed causes no event, so its end is
 * timed here.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "store/kubernetes/kube.h"

#define OPEN_NS (5 * CLOCK_NS_PER_S)
#define WATCH_S 290
/* The server ends the watch after WATCH_S. A server that sends bookmarks sends one every minute,
 * but no server has to: two missing bookmarks mean something only if there were some before. */
#define SILENCE_NS ((WATCH_S + 20) * CLOCK_NS_PER_S)
#define BOOKMARKS_NS (150 * CLOCK_NS_PER_S)
/* What answers show comes by the watch, too, and soon: our own renewal is an event. A watch that is
 * slow by nature gets more and more time, so that it isn't opened anew all the time (L4). */
#define LAG_NS (15 * CLOCK_NS_PER_S)
/* A server that is down is tried less and less often, up to this time between two tries. */
#define RETRY_MAX_NS (10 * CLOCK_NS_PER_S)
/* ... but the first tries don't wait: connections end, and that is normal. */
#define FREE_TRIES 2

static uint64_t min_ns(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* ---- what is seen ---- */

static void watch_see_process(struct kube_store *s, const char *object, struct kube_lease *l)
{
	char key[KUBE_NAME_MAX + 2];

	kube_process_key(object, key);
	if (kube_expiry_note(s, key, l, clock_boot_ns(), true) && (l->object == NULL || l->is_dead))
		kube_hint_process(s, object);
}

static void watch_see(struct kube_store *s, json_t *object, bool is_gone, uint64_t rv)
{
	const json_t *metadata = js_get(object, "metadata");
	char name[BATON_NAME_MAX + 1];
	struct kube_lease l;

	kube_lease_read(&l, is_gone ? NULL : json_incref(object), rv);
	if (strcmp(js_text(js_get(metadata, "labels"), "baton/process"), "lease") == 0) {
		watch_see_process(s, js_text(metadata, "name"), &l);
	} else if (kube_name_of(object, name) && web_index_has(s->web.watches, name)) {
		if (kube_expiry_note(s, name, &l, clock_boot_ns(), true))
			web_index_hint(s->web.watches, name);
	}
	kube_lease_done(&l);
}

/* ---- looking first ---- */

/* The selector of the watched Leases: that of one election, or all but candidates; encoded. */
static void selector_of(const struct kube_lane *lane, char *out, size_t size)
{
	char object[KUBE_NAME_MAX + 1];

	kube_object_name(lane->only, object);
	if (lane->only[0] != '\0')
		(void)snprintf(out, size, "fieldSelector=metadata.name%%3D%s", object);
	else
		(void)snprintf(out, size, "labelSelector=%%21baton%%2Fcandidate");
}

static void watch_take_item(void *arg, const char *name, json_t *object, uint64_t rv)
{
	struct kube_lane *lane = arg;

	(void)name;
	lane->rv = rv;
	if (object != NULL)
		watch_see(lane->store, object, false, 0);
}

static int watch_list(struct kube_lane *lane, struct baton_call *call)
{
	char selector[KUBE_NAME_MAX + 64];

	selector_of(lane, selector, sizeof(selector));
	kube_expiry_doubt(lane->store);
	if (kube_list(lane, call, selector, "watch", watch_take_item, lane) != BATON_OUTCOME_OK)
		return -1;
	if (lane->only[0] == '\0') /* no event will tell of a Lease that went before */
		kube_expiry_drop_doubted(lane->store);
	return 0;
}

/* The watch goes on where the last one ended, if that came to its regular end; otherwise we look
 * first. Once the watch is live, all elections get a hint. */
static int watch_open(struct kube_lane *lane, struct baton_call *call)
{
	struct kube_store *s = lane->store;
	struct baton_call open = {.deadline_ns =
					  min_ns(call->deadline_ns, clock_boot_ns() + OPEN_NS)};
	char selector[KUBE_NAME_MAX + 64];
	struct kube_call c = {.method = "GET"};
	bool is_narrow = !s->options.process_lease && !atomic_load(&s->has_process_claims) &&
			 web_index_only(s->web.watches, lane->only, sizeof(lane->only));

	if (!is_narrow)
		lane->only[0] = '\0';
	atomic_store(&s->is_narrow, is_narrow);
	kube_be_patient(lane, lane->n_woken);
	int rc = lane->rv == 0 ? watch_list(lane, &open) : 0;

	if (rc == 0) {
		selector_of(lane, selector, sizeof(selector));
		kube_path(s, &c, NULL,
			  "?watch=1&%s&allowWatchBookmarks=true&timeoutSeconds=%d"
			  "&resourceVersion=%" PRIu64,
			  selector, WATCH_S, lane->rv);
		rc = kube_listen(lane, &open, c.path);
	}
	lane->web.heard_ns = clock_boot_ns();
	call->error = open.error;
	if (rc != 0)
		return -1;
	kube_shown_anew(s, lane->rv);
	web_index_set_live(s->web.watches, true);
	return 0;
}

/* The watch has to be for other elections now, so another one is needed. */
static bool watch_is_outdated(struct kube_lane *lane)
{
	struct kube_store *s = lane->store;
	char only[BATON_NAME_MAX + 1] = "";

	if (lane->rv == 0) /* none is open: the next one will be right */
		return false;
	if (s->options.process_lease || atomic_load(&s->has_process_claims) ||
	    !web_index_only(s->web.watches, only, sizeof(only)))
		only[0] = '\0';
	return strcmp(only, lane->only) != 0;
}

/* ---- failures ---- */

static void set_down(struct kube_lane *lane, bool is_down)
{
	struct kube_store *s = lane->store;

	store_lock(&s->web.base);
	s->is_watch_down = is_down;
	store_unlock(&s->web.base);
	lane->is_down = is_down;
}

/*
 * The watch is over, and we look before we open another one: only an answer shows that the server
 * is there. L4: as long as nothing is heard, we wait longer and longer before each try; if the
 * server is down, only until another lane has an answer.
 */
static void watch_lose(struct kube_lane *lane, bool is_down)
{
	unsigned n = lane->n_tries < FREE_TRIES ? 0 : lane->n_tries - FREE_TRIES + 1;
	uint64_t wait_ns = n > 0 ? CLOCK_NS_PER_S << (n < 5 ? n - 1 : 4) : 0;

	lane->rv = 0;
	web_watch_break(&lane->web);
	lane->retry_ns = clock_boot_ns() + min_ns(wait_ns, RETRY_MAX_NS);
	set_down(lane, is_down);
}

static bool watch_is_too_early(struct kube_lane *lane, uint64_t until_ns)
{
	struct kube_store *s = lane->store;
	struct pollfd wake = {.fd = s->web.wake, .events = POLLIN};
	uint64_t now_ns = clock_boot_ns();
	uint64_t end_ns = min_ns(lane->retry_ns, until_ns);

	if (now_ns >= lane->retry_ns)
		return false;
	if (poll(&wake, 1, (int)((end_ns > now_ns ? end_ns - now_ns : 0) / CLOCK_NS_PER_MS + 1)) >
	    0) {
		(void)web_take_wake(&s->web);
		store_lock(&s->web.base);
		if (lane->is_down && !s->is_watch_down)
			lane->retry_ns = 0;
		store_unlock(&s->web.base);
	}
	return true;
}

/* ---- listening ---- */

/* 0, or -1 with the error that the watch ended with. */
static int watch_hear_end(struct kube_lane *lane, struct baton_call *call, int status,
			  const json_t *error)
{
	uint64_t code = 0;

	(void)js_u64(error, "code", &code);
	watch_lose(lane, false); /* whatever the reason, we look again */
	/* 410 Gone: we were away for too long. The look makes up for that, so this is no error. */
	if (code == 410 || status == 410)
		return 0;
	(void)kube_judge(call, status >= 400 ? status : (int)code, error);
	return -1;
}

/* Notes that the watch lives, and how fast it is. */
static void watch_note_pace(struct kube_lane *lane, uint64_t rv, bool is_bookmark)
{
	uint64_t now_ns = clock_boot_ns();
	uint64_t took_ns = kube_shown(lane->store, rv);

	if (took_ns > 0 && took_ns < LAG_NS / 2)
		lane->patience_ns = LAG_NS;
	if (is_bookmark && now_ns - lane->web.heard_ns < BOOKMARKS_NS)
		lane->has_bookmarks = true;
	lane->web.heard_ns = now_ns;
	lane->rv = rv;
	lane->n_tries = 0;
}

static int watch_hear(struct kube_lane *lane, struct baton_call *call,
		      const struct http_reply *reply)
{
	json_t *line = js_parse(reply->body, reply->body_size);
	const char *type = js_text(line, "type");
	json_t *object = json_object_get(line, "object");
	uint64_t rv = 0;
	int rc = 0;

	(void)js_u64(js_get(object, "metadata"), "resourceVersion", &rv);
	if (reply->status != 200 || strcmp(type, "ERROR") == 0) {
		rc = watch_hear_end(lane, call, reply->status,
				    reply->status != 200 ? line : object);
	} else if (rv == 0) {
		watch_lose(lane, false);
		(void)kube_strange(call);
		rc = -1;
	} else {
		bool is_bookmark = strcmp(type, "BOOKMARK") == 0;

		watch_note_pace(lane, rv, is_bookmark);
		if (!is_bookmark)
			watch_see(lane->store, object, strcmp(type, "DELETED") == 0, rv);
	}
	json_decref(line);
	return rc;
}

/* When the watch will have been silent, or behind, for too long. */
static uint64_t hopeless_ns(const struct kube_lane *lane)
{
	uint64_t silence_ns =
		lane->web.heard_ns + (lane->has_bookmarks ? BOOKMARKS_NS : SILENCE_NS);
	uint64_t owed_ns = kube_owed_ns(lane->store);
	uint64_t patience_ns = lane->patience_ns != 0 ? lane->patience_ns : LAG_NS;

	return owed_ns == BATON_STORE_NEVER ? silence_ns
					    : min_ns(silence_ns, owed_ns + patience_ns);
}

/* The connection stands, and nothing comes: the watch is given up. */
static int watch_give_up(struct kube_lane *lane, struct baton_call *call)
{
	uint64_t patience_ns = lane->patience_ns != 0 ? lane->patience_ns : LAG_NS;

	lane->patience_ns = min_ns(2 * patience_ns, SILENCE_NS);
	lane->has_bookmarks = false; /* until some come again */
	watch_lose(lane, false);
	return store_fail(&call->error, BATON_E_UNAVAILABLE,
			  "the watch on the API server doesn't show what has changed");
}

/* 0, 1: woken, -1: the watch is broken. */
static int watch_listen(struct kube_lane *lane, struct baton_call *call, uint64_t until_ns)
{
	struct http_reply reply;
	uint64_t end_ns = min_ns(until_ns, hopeless_ns(lane));
	int result = http_stream_next(lane->web.http, end_ns, &reply);

	if (result == HTTP_OK)
		return watch_hear(lane, call, &reply);
	if (result == HTTP_WOKEN)
		return 1;
	/* We check for silence only now, because all that had come was heard. */
	if (result == HTTP_LATE)
		return clock_boot_ns() < hopeless_ns(lane) ? 0 : watch_give_up(lane, call);
	/* The watch's time is over: the next one goes on from there. */
	if (result == HTTP_END && lane->n_tries < FREE_TRIES)
		return 0;
	watch_lose(lane, false);
	return store_fail(&call->error, BATON_E_UNAVAILABLE,
			  "the watch on the API server is broken: %.150s", reply.text);
}

/* 0, 1: woken, or a code. */
static int watch_open_again(struct kube_lane *lane, struct baton_call *call)
{
	int rc = watch_open(lane, call);
	bool is_woken = rc != 0 && web_take_wake(&lane->store->web);

	if (is_woken && call->error.code == BATON_E_TIMEOUT) {
		lane->rv = 0;
		lane->n_woken++;
		web_watch_break(&lane->web);
		return 1;
	}
	lane->n_woken = 0;
	lane->n_tries++;
	if (rc == 0)
		set_down(lane, false);
	else
		watch_lose(lane, true);
	return rc == 0 ? 0 : is_woken ? 1 : call->error.code;
}

int kube_watch_wait(void *l, struct baton_call *call, uint64_t *cookies, size_t max)
{
	struct kube_lane *lane = l;
	struct kube_store *s = lane->store;

	for (;;) {
		uint64_t now_ns = clock_boot_ns();
		uint64_t next_ns = min_ns(kube_expiry_hint(s, now_ns), call->deadline_ns);
		size_t n = web_index_take(s->web.watches, cookies, max);

		if (n > 0 || now_ns >= call->deadline_ns)
			return (int)n;
		if (watch_is_outdated(lane)) {
			lane->rv = 0;
			lane->n_tries = 0;
			web_watch_break(&lane->web);
		}
		if (!http_stream_is_open(lane->web.http)) {
			if (watch_is_too_early(lane, next_ns))
				return 0;
			int opened = watch_open_again(lane, call);

			if (opened != 0)
				return opened > 0 ? 0 : opened;
			continue; /* L1: what the look saw may be due before any event */
		}
		int rc = watch_listen(lane, call, min_ns(next_ns, kube_beat(lane, now_ns)));

		if (rc < 0)
			return call->error.code;
		if (rc > 0 && web_take_wake(&s->web))
			return (int)web_index_take(s->web.watches, cookies, max);
	}
}

void kube_watch_remove(void *l, const char *name, uint64_t cookie)
{
	struct kube_lane *lane = l;

	web_watch_remove(lane, name, cookie);
	if (!web_index_has(lane->store->web.watches, name)) {
		kube_expiry_forget(lane->store, name);
		kube_leave_use(lane->store, name);
	}
}
