/*
 * addon.c: libbaton for Node, through Node-API: functions on handles, which index.js makes classes
 * of.
 *
 * A function that fails returns the negative code, and lastText() its sentence. Nothing here blocks
 * the event loop: what asks the store is a job on a thread of libuv's pool. C never calls
 * JavaScript but from the event loop, when a descriptor is readable: uv_poll on a copy of it. No
 * variable is shared between environments, so worker threads may load it, too.
 */
#define NAPI_VERSION 8
#include <assert.h>
#include <baton.h>
#include <fcntl.h>
#include <node_api.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#define MAX_ARGS 6
#define TEXT_MAX 2048 /* of a name, an id, metadata, a note, a URL: more than the library takes */

/* One for each environment. */
struct instance {
	char text[sizeof(((struct baton_error *)0)->text)];
};

/* A descriptor that is watched, and the function that is called when it is readable. */
struct watch {
	napi_env env;
	napi_ref function;
	napi_async_cleanup_hook_handle hook;
	struct baton_context *ctx; /* NULL: of a store */
	uv_poll_t poll;
	int fd;
};

/* ---- values ---- */

static napi_value number_of(napi_env env, double n)
{
	napi_value value = NULL;

	napi_create_double(env, n, &value);
	return value;
}

static napi_value truth_of(napi_env env, bool is)
{
	napi_value value = NULL;

	napi_get_boolean(env, is, &value);
	return value;
}

static napi_value text_of(napi_env env, const char *text)
{
	napi_value value = NULL;

	napi_create_string_utf8(env, text, NAPI_AUTO_LENGTH, &value);
	return value;
}

static napi_value bigint_of(napi_env env, uint64_t n)
{
	napi_value value = NULL;

	napi_create_bigint_uint64(env, n, &value);
	return value;
}

static void set(napi_env env, napi_value object, const char *name, napi_value value)
{
	napi_set_named_property(env, object, name, value);
}

static napi_value fail(napi_env env, int code, const struct baton_error *err)
{
	struct instance *i = NULL;
	const char *text = baton_strerror(code);

	if (err != NULL && err->code == code && err->text[0] != '\0')
		text = err->text;
	if (napi_get_instance_data(env, (void **)&i) == napi_ok && i != NULL) {
		strncpy(i->text, text, sizeof(i->text) - 1);
		i->text[sizeof(i->text) - 1] = '\0';
	}
	return number_of(env, code);
}

static napi_value result_of(napi_env env, int code, const struct baton_error *err)
{
	return code < 0 ? fail(env, code, err) : number_of(env, code);
}

/* The arguments; those that are missing are undefined. */
static void arguments(napi_env env, napi_callback_info info, napi_value args[MAX_ARGS])
{
	size_t n = MAX_ARGS;

	napi_get_cb_info(env, info, &n, args, NULL, NULL);
}

static void *pointer_of(napi_env env, napi_value value)
{
	void *pointer = NULL;

	napi_get_value_external(env, value, &pointer);
	assert(pointer != NULL); /* index.js hands on only what it was given */
	return pointer;
}

static napi_value external_of(napi_env env, void *pointer)
{
	napi_value value = NULL;

	napi_create_external(env, pointer, NULL, NULL, &value);
	return value;
}

static int64_t int_of(napi_env env, napi_value value, int64_t missing)
{
	int64_t n = missing;

	return napi_get_value_int64(env, value, &n) == napi_ok ? n : missing;
}

/* false, with err: it is too long, or has a zero byte, where text ends in C. */
static bool get_text(napi_env env, napi_value value, char text[TEXT_MAX], struct baton_error *err)
{
	size_t n = 0;

	if (napi_get_value_string_utf8(env, value, text, TEXT_MAX, &n) != napi_ok ||
	    n >= TEXT_MAX - 4 || strlen(text) != n) {
		err->code = BATON_E_INVALID;
		strcpy(err->text, "text that is too long or has a zero byte: at most 2,043 bytes");
		return false;
	}
	return true;
}

/* ---- options: a property that is undefined keeps the default ---- */

static bool has(napi_env env, napi_value object, const char *name, napi_value *value)
{
	napi_valuetype type = napi_undefined;

	return napi_get_named_property(env, object, name, value) == napi_ok &&
	       napi_typeof(env, *value, &type) == napi_ok && type != napi_undefined &&
	       type != napi_null;
}

static uint64_t number_in(napi_env env, napi_value object, const char *name, uint64_t n)
{
	napi_value value;

	return has(env, object, name, &value) ? (uint64_t)int_of(env, value, (int64_t)n) : n;
}

static bool truth_in(napi_env env, napi_value object, const char *name, bool is)
{
	napi_value value;

	if (has(env, object, name, &value))
		napi_get_value_bool(env, value, &is);
	return is;
}

/* *text is NULL where there is none. */
static bool text_in(napi_env env, napi_value object, const char *name, char buffer[TEXT_MAX],
		    const char **text, struct baton_error *err)
{
	napi_value value;

	*text = NULL;
	if (!has(env, object, name, &value))
		return true;
	*text = buffer;
	return get_text(env, value, buffer, err);
}

/* A function that only answers; most are about the handle that is their first argument. */
#define FIRST pointer_of(env, args[0])
#define FUNCTION(name, answer)                                        \
	static napi_value name(napi_env env, napi_callback_info info) \
	{                                                             \
		napi_value args[MAX_ARGS];                            \
		arguments(env, info, args);                           \
		return answer;                                        \
	}

/* ---- the handle ---- */

static napi_value open_store(napi_env env, napi_callback_info info)
{
	napi_value args[MAX_ARGS];
	struct baton_options o;
	struct baton_error err = {0};
	struct baton *b = NULL;
	char url[TEXT_MAX], id[TEXT_MAX], address[TEXT_MAX];
	int code;

	arguments(env, info, args);
	baton_options_init(&o);
	if (!get_text(env, args[0], url, &err) || !text_in(env, args[1], "id", id, &o.id, &err) ||
	    !text_in(env, args[1], "address", address, &o.address, &err))
		return fail(env, err.code, &err);
	o.lease_ms = number_in(env, args[1], "lease", o.lease_ms);
	o.renew_ms = number_in(env, args[1], "renew", o.renew_ms);
	o.grace_ms = number_in(env, args[1], "grace", o.grace_ms);
	o.retry_ms = number_in(env, args[1], "retry", o.retry_ms);
	o.outlive = truth_in(env, args[1], "outlive", o.outlive);
	code = baton_open(url, &o, &b, &err);
	return code < 0 ? fail(env, code, &err) : external_of(env, b);
}

FUNCTION(store_id, text_of(env, baton_id(FIRST)))

FUNCTION(store_promises, text_of(env, baton_promises(FIRST)))

/* ---- elections ---- */

static napi_value election_new(napi_env env, napi_callback_info info)
{
	napi_value args[MAX_ARGS];
	struct baton_election_options o;
	struct baton_error err = {0};
	struct baton_election *e = NULL;
	char name[TEXT_MAX], metadata[TEXT_MAX];
	int code;

	arguments(env, info, args);
	baton_election_options_init(&o);
	if (!get_text(env, args[1], name, &err) ||
	    !text_in(env, args[2], "metadata", metadata, &o.metadata, &err))
		return fail(env, err.code, &err);
	o.release_on_stop = truth_in(env, args[2], "releaseOnStop", o.release_on_stop);
	o.check_health = truth_in(env, args[2], "checkHealth", o.check_health);
	o.step_down_unhealthy = truth_in(env, args[2], "stepDownUnhealthy", o.step_down_unhealthy);
	o.observe_only = truth_in(env, args[2], "observeOnly", o.observe_only);
	o.manual = truth_in(env, args[2], "manual", o.manual);
	o.min_score_permille =
		(uint32_t)number_in(env, args[2], "minScorePermille", o.min_score_permille);
	o.priority = (int32_t)number_in(env, args[2], "priority", 0);
	o.preempt_ms = number_in(env, args[2], "preempt", 0);
	o.work_timeout_ms = number_in(env, args[2], "workTimeout", 0);
	o.drain_by_hand = true;
	code = baton_election_new(pointer_of(env, args[0]), name, &o, &e, &err);
	return code < 0 ? fail(env, code, &err) : external_of(env, e);
}

/* What an event names its election by. */
FUNCTION(election_key, bigint_of(env, (uintptr_t)FIRST))

FUNCTION(election_start, result_of(env, baton_election_start(FIRST), NULL))

FUNCTION(election_stop, result_of(env, baton_election_stop(FIRST, int_of(env, args[1], 0)), NULL))

FUNCTION(is_leader, truth_of(env, baton_is_leader(FIRST)))

FUNCTION(election_term, bigint_of(env, baton_term(FIRST)))

FUNCTION(time_left, number_of(env, (double)baton_time_left_ms(FIRST)))

static napi_value election_status(napi_env env, napi_callback_info info)
{
	napi_value args[MAX_ARGS], object;
	struct baton_status s = {0};
	int code;

	arguments(env, info, args);
	code = baton_get_status(pointer_of(env, args[0]), &s);
	if (code < 0)
		return fail(env, code, NULL);
	napi_create_object(env, &object);
	set(env, object, "state", text_of(env, baton_state_name(s.state)));
	set(env, object, "isLeader", truth_of(env, s.is_leader));
	set(env, object, "paused", truth_of(env, s.paused));
	set(env, object, "term", bigint_of(env, s.term));
	set(env, object, "leader", text_of(env, s.leader));
	set(env, object, "leaderAddress", text_of(env, s.leader_address));
	set(env, object, "leaderMetadata", text_of(env, s.leader_metadata));
	set(env, object, "timeLeft", number_of(env, (double)s.time_left_ms));
	set(env, object, "wait", number_of(env, (double)s.wait_ms));
	set(env, object, "waitReason", text_of(env, s.wait));
	return object;
}

FUNCTION(election_resign, result_of(env, baton_resign(FIRST, int_of(env, args[1], 0)), NULL))

static napi_value election_transfer(napi_env env, napi_callback_info info)
{
	napi_value args[MAX_ARGS];
	struct baton_error err = {0};
	char id[TEXT_MAX];

	arguments(env, info, args);
	if (!get_text(env, args[1], id, &err))
		return fail(env, err.code, &err);
	return result_of(env, baton_transfer(pointer_of(env, args[0]), id, &err), &err);
}

/* reportHealth(election, {score, metadata}) */
static napi_value report_health(napi_env env, napi_callback_info info)
{
	napi_value args[MAX_ARGS];
	struct baton_error err = {0};
	char buffer[TEXT_MAX];
	const char *metadata;
	uint32_t score;

	arguments(env, info, args);
	if (!text_in(env, args[1], "metadata", buffer, &metadata, &err))
		return fail(env, err.code, &err);
	score = (uint32_t)number_in(env, args[1], "score", 0);
	return result_of(env, baton_report_health(FIRST, score, metadata), NULL);
}

FUNCTION(work_alive, (baton_alive(FIRST), NULL))

/* ---- leads ---- */

static napi_value lead_enter(napi_env env, napi_callback_info info)
{
	napi_value args[MAX_ARGS];
	struct baton_context *ctx = NULL;
	struct baton_error err = {0};
	int code;

	arguments(env, info, args);
	code = baton_enter(pointer_of(env, args[0]), &ctx, &err);
	return code < 0 ? fail(env, code, &err) : external_of(env, ctx);
}

FUNCTION(lead_leave, (baton_leave(FIRST), NULL))

FUNCTION(lead_leads, truth_of(env, baton_context_is_leader(FIRST)))

FUNCTION(lead_term, bigint_of(env, baton_context_term(FIRST)))

FUNCTION(lead_time_left, number_of(env, (double)baton_context_time_left_ms(FIRST)))

/* ---- events, on the event loop ---- */

/* The next event, or null. No event ends work: leaving a lead does. */
static napi_value take_event(napi_env env, napi_callback_info info)
{
	napi_value args[MAX_ARGS], object;
	struct baton_event event;
	struct baton *b;

	arguments(env, info, args);
	b = pointer_of(env, args[0]);
	if (baton_wait(b, 0, &event) <= 0) {
		napi_get_null(env, &object);
		return object;
	}
	/* Open leads are waited for; without one there is no work to wait for. */
	if (event.kind == BATON_EVENT_LOST)
		baton_drained(event.election, event.term);
	baton_event_done(b, event.token);
	napi_create_object(env, &object);
	set(env, object, "key", bigint_of(env, (uintptr_t)event.election));
	set(env, object, "kind", text_of(env, baton_event_name(event.kind)));
	set(env, object, "reason", text_of(env, baton_reason_name(event.reason)));
	set(env, object, "code", number_of(env, event.code));
	set(env, object, "term", bigint_of(env, event.term));
	set(env, object, "oldTerm", bigint_of(env, event.old_term));
	set(env, object, "wait", number_of(env, (double)event.wait_ms));
	set(env, object, "leader", text_of(env, event.leader));
	set(env, object, "oldLeader", text_of(env, event.old_leader));
	set(env, object, "text", text_of(env, event.text));
	set(env, object, "detail", text_of(env, event.detail));
	return object;
}

static void watch_readable(uv_poll_t *poll, int status, int events)
{
	struct watch *w = poll->data;
	napi_handle_scope scope;
	napi_value function, global;

	(void)status;
	(void)events;
	if (w->ctx != NULL) {
		if (baton_context_is_leader(w->ctx)) /* the deadline has moved */
			return;
		uv_poll_stop(poll); /* once is enough */
	}
	napi_open_handle_scope(w->env, &scope);
	napi_get_reference_value(w->env, w->function, &function);
	napi_get_global(w->env, &global);
	if (napi_make_callback(w->env, NULL, global, function, 0, NULL, NULL) ==
	    napi_pending_exception) {
		napi_value error;

		napi_get_and_clear_last_exception(w->env, &error);
		napi_fatal_exception(w->env, error);
	}
	napi_close_handle_scope(w->env, scope);
}

static void watch_closed(uv_handle_t *handle)
{
	struct watch *w = handle->data;

	close(w->fd);
	if (w->hook != NULL)
		napi_remove_async_cleanup_hook(w->hook);
	free(w);
}

/* The environment ends, as that of a worker thread does. */
static void watch_cleanup(napi_async_cleanup_hook_handle hook, void *arg)
{
	struct watch *w = arg;

	(void)hook;
	if (!uv_is_closing((uv_handle_t *)&w->poll))
		uv_close((uv_handle_t *)&w->poll, watch_closed);
}

/* watch(store or lead, is a lead, function): the watch; unwatch() ends it. */
static napi_value watch_new(napi_env env, napi_callback_info info)
{
	napi_value args[MAX_ARGS];
	struct watch *w = calloc(1, sizeof(*w));
	uv_loop_t *loop = NULL;
	bool is_lead = false;
	void *what;

	arguments(env, info, args);
	what = pointer_of(env, args[0]);
	napi_get_value_bool(env, args[1], &is_lead);
	if (w == NULL)
		return fail(env, BATON_E_MEMORY, NULL);
	w->env = env;
	w->ctx = is_lead ? what : NULL;
	w->fd = fcntl(is_lead ? baton_context_fd(what) : baton_fd(what), F_DUPFD_CLOEXEC, 3);
	w->poll.data = w;
	if (w->fd < 0 || napi_get_uv_event_loop(env, &loop) != napi_ok ||
	    uv_poll_init(loop, &w->poll, w->fd) != 0) {
		if (w->fd >= 0)
			close(w->fd);
		free(w);
		return fail(env, BATON_E_SYSTEM, NULL);
	}
	napi_create_reference(env, args[2], 1, &w->function);
	napi_add_async_cleanup_hook(env, watch_cleanup, w, &w->hook);
	uv_poll_start(&w->poll, UV_READABLE, watch_readable);
	if (is_lead) /* the store's keeps the program alive */
		uv_unref((uv_handle_t *)&w->poll);
	return external_of(env, w);
}

static napi_value watch_end(napi_env env, napi_callback_info info)
{
	napi_value args[MAX_ARGS];
	struct watch *w;

	arguments(env, info, args);
	w = pointer_of(env, args[0]);
	w->ctx = NULL;
	if (w->function != NULL)
		napi_delete_reference(env, w->function);
	w->function = NULL;
	uv_close((uv_handle_t *)&w->poll, watch_closed);
	return NULL;
}

static napi_value watch_ref(napi_env env, napi_callback_info info)
{
	napi_value args[MAX_ARGS];
	struct watch *w;
	bool is = false;

	arguments(env, info, args);
	w = pointer_of(env, args[0]);
	napi_get_value_bool(env, args[1], &is);
	if (is)
		uv_ref((uv_handle_t *)&w->poll);
	else
		uv_unref((uv_handle_t *)&w->poll);
	return NULL;
}

/* ---- jobs: what asks the store, and so blocks ---- */

enum job_kind {
	JOB_CLOSE,
	JOB_TRY,
	JOB_OBSERVE,
	JOB_RESIGN,
	JOB_TRANSFER,
	JOB_PAUSE,
	JOB_RESUME,
	JOB_CANDIDATES
};

struct job {
	napi_async_work work;
	napi_deferred deferred;
	enum job_kind kind;
	void *what; /* a store; of JOB_TRY an election */
	uint64_t term;
	int64_t ms;
	char name[TEXT_MAX], other[TEXT_MAX], note[TEXT_MAX];
	const char *noted;
	int code, obstacle;
	struct baton_error err;
	struct baton_observed observed;
	struct baton_candidate *candidates; /* as many as code says */
};

static void job_list_candidates(struct job *j)
{
	size_t room = 0;

	for (j->code = 16; j->code >= 0 && (size_t)j->code > room;) {
		room = (size_t)j->code;
		free(j->candidates);
		j->candidates = calloc(room, sizeof(*j->candidates));
		j->code = BATON_E_MEMORY;
		if (j->candidates != NULL)
			j->code = baton_get_candidates(j->what, j->name, j->candidates, room,
						       &j->err);
	}
}

static void job_execute(napi_env env, void *arg)
{
	struct job *j = arg;

	(void)env;
	switch (j->kind) {
	case JOB_CLOSE: baton_close(j->what); break;
	case JOB_TRY: j->code = baton_try_acquire(j->what, j->ms, &j->obstacle); break;
	case JOB_OBSERVE: j->code = baton_observe(j->what, j->name, &j->observed, &j->err); break;
	case JOB_RESIGN:
		j->code = baton_order_resign(j->what, j->name, j->term, j->ms, j->noted, &j->err);
		break;
	case JOB_TRANSFER:
		j->code = baton_order_transfer(j->what, j->name, j->term, j->other, j->noted,
					       &j->err);
		break;
	case JOB_PAUSE: j->code = baton_pause(j->what, j->name, &j->err); break;
	case JOB_RESUME: j->code = baton_resume(j->what, j->name, &j->err); break;
	case JOB_CANDIDATES: job_list_candidates(j); break;
	}
}

static void job_observed(napi_env env, const struct baton_observed *o, napi_value object)
{
	set(env, object, "hasLeader", truth_of(env, o->has_leader));
	set(env, object, "paused", truth_of(env, o->paused));
	set(env, object, "term", bigint_of(env, o->term));
	set(env, object, "leader", text_of(env, o->leader));
	set(env, object, "address", text_of(env, o->address));
	set(env, object, "metadata", text_of(env, o->metadata));
	set(env, object, "since", number_of(env, (double)o->since_ms));
	set(env, object, "leaseLeft", number_of(env, (double)o->lease_left_ms));
}

static napi_value job_candidates(napi_env env, const struct job *j)
{
	napi_value list, object;

	napi_create_array(env, &list);
	for (int i = 0; i < j->code; i++) {
		const struct baton_candidate *c = &j->candidates[i];

		napi_create_object(env, &object);
		set(env, object, "id", text_of(env, c->id));
		set(env, object, "address", text_of(env, c->address));
		set(env, object, "metadata", text_of(env, c->metadata));
		set(env, object, "leads", truth_of(env, c->is_leader));
		set(env, object, "healthy", truth_of(env, c->is_healthy));
		set(env, object, "score", number_of(env, c->score_permille / 1000.0));
		set(env, object, "priority", number_of(env, c->priority));
		set(env, object, "updated", number_of(env, (double)c->updated_ms));
		napi_set_element(env, list, (uint32_t)i, object);
	}
	return list;
}

/* Resolves to {code, text} and what else there is; index.js makes an error of a negative code. */
static void job_complete(napi_env env, napi_status status, void *arg)
{
	struct job *j = arg;
	napi_value object;

	if (status == napi_cancelled)
		j->code = BATON_E_BUSY;
	napi_create_object(env, &object);
	set(env, object, "code", number_of(env, j->code));
	set(env, object, "text",
	    text_of(env, j->err.text[0] != '\0' ? j->err.text : baton_strerror(j->code)));
	if (j->kind == JOB_OBSERVE && j->code >= 0)
		job_observed(env, &j->observed, object);
	if (j->kind == JOB_TRY)
		set(env, object, "obstacle", text_of(env, baton_obstacle_name(j->obstacle)));
	if (j->kind == JOB_CANDIDATES && j->code >= 0)
		set(env, object, "candidates", job_candidates(env, j));
	napi_resolve_deferred(env, j->deferred, object);
	napi_delete_async_work(env, j->work);
	free(j->candidates);
	free(j);
}

/* job(kind, store or election, {name, other, note, term, ms}): a promise. */
static napi_value job_new(napi_env env, napi_callback_info info)
{
	napi_value args[MAX_ARGS], promise, value;
	struct job *j = calloc(1, sizeof(*j));
	const char *text;
	bool lossless;

	arguments(env, info, args);
	if (j == NULL)
		return fail(env, BATON_E_MEMORY, NULL);
	j->kind = (enum job_kind)int_of(env, args[0], 0);
	j->what = pointer_of(env, args[1]);
	j->ms = (int64_t)number_in(env, args[2], "ms", 0);
	if (has(env, args[2], "term", &value))
		napi_get_value_bigint_uint64(env, value, &j->term, &lossless);
	if (!text_in(env, args[2], "name", j->name, &text, &j->err) ||
	    !text_in(env, args[2], "other", j->other, &text, &j->err) ||
	    !text_in(env, args[2], "note", j->note, &j->noted, &j->err)) {
		value = fail(env, j->err.code, &j->err);
		free(j);
		return value;
	}
	napi_create_promise(env, &j->deferred, &promise);
	napi_create_async_work(env, NULL, text_of(env, "baton"), job_execute, job_complete, j,
			       &j->work);
	napi_queue_async_work(env, j->work);
	return promise;
}

/* ---- the module ---- */

static napi_value last_text(napi_env env, napi_callback_info info)
{
	struct instance *i = NULL;

	(void)info;
	napi_get_instance_data(env, (void **)&i);
	return text_of(env, i->text);
}

FUNCTION(code_name, text_of(env, baton_code_name((int)int_of(env, args[0], 0))))
FUNCTION(event_name, text_of(env, baton_event_name((int)int_of(env, args[0], 0))))
FUNCTION(reason_name, text_of(env, baton_reason_name((int)int_of(env, args[0], 0))))

/* For measurements: a call that does nothing. */
FUNCTION(empty, truth_of(env, FIRST != NULL))

static void instance_free(napi_env env, void *data, void *hint)
{
	(void)env;
	(void)hint;
	free(data);
}

NAPI_MODULE_INIT()
{
	static const struct {
		const char *name;
		napi_callback function;
	} all[] = {
		{"open", open_store},
		{"id", store_id},
		{"promises", store_promises},
		{"election", election_new},
		{"key", election_key},
		{"start", election_start},
		{"stop", election_stop},
		{"isLeader", is_leader},
		{"term", election_term},
		{"timeLeft", time_left},
		{"status", election_status},
		{"resign", election_resign},
		{"transfer", election_transfer},
		{"reportHealth", report_health},
		{"alive", work_alive},
		{"enter", lead_enter},
		{"leave", lead_leave},
		{"leads", lead_leads},
		{"leadTerm", lead_term},
		{"leadTimeLeft", lead_time_left},
		{"take", take_event},
		{"watch", watch_new},
		{"unwatch", watch_end},
		{"ref", watch_ref},
		{"job", job_new},
		{"lastText", last_text},
		{"codeName", code_name},
		{"eventName", event_name},
		{"reasonName", reason_name},
		{"empty", empty},
	};
	struct instance *i = calloc(1, sizeof(*i));

	if (i == NULL || napi_set_instance_data(env, i, instance_free, NULL) != napi_ok) {
		free(i);
		return NULL;
	}
	for (size_t n = 0; n < sizeof(all) / sizeof(all[0]); n++) {
		napi_value function;

		napi_create_function(env, all[n].name, NAPI_AUTO_LENGTH, all[n].function, NULL,
				     &function);
		set(env, exports, all[n].name, function);
	}
	set(env, exports, "version", text_of(env, baton_version()));
	set(env, exports, "versionNumber", number_of(env, baton_version_number()));
	return exports;
}
