/*
 * run.c: `baton run`: the supervisor. It contends, has the guard start the command when it leads
 * and stop it when it doesn't, and gives the leadership back when nothing of the command is left.
 *
 *     standby --BECAME--> leading, child runs --LOST--> child ends --(drained)--> standby
 *                              |
 *                              +-- the child ended by itself: stop, release, exit with its code
 */
#include "cli/run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/supervise.h"
#include "telemetry/handover.h"
#include "telemetry/service.h"

#define BACKOFF_MIN_NS (100 * CLOCK_NS_PER_MS)
#define BACKOFF_MAX_NS (30 * CLOCK_NS_PER_S)
#define LOOK_NS (10 * CLOCK_NS_PER_MS)
#define REFUSED_MAX 5                   /* 1.5 s */
#define WORKED_NS (10 * CLOCK_NS_PER_S) /* a longer run was not a failed start */

static int check(const struct settings *s);
static int contend_once(struct run *r);
static void run_loop(struct run *r);
static void arm_wait(struct run *r);
static void pull_events(struct run *r);
static void end_lost(struct run *r);
static void look_at_waiting(struct run *r);

int verb_run(struct settings *s)
{
	static struct run r = {.guard_fd = -1, .health = {.fd = -1}};
	int code = check(s);

	r.s = s;
	if (code == 0)
		code = open_store_url(s);
	if (code != 0)
		return code;
	/* Before there is a thread: see guard.c. */
	code = supervise_setup(&r);
	if (code != 0)
		return code;
	code = contend_once(&r);
	if (code != 0)
		return code;
	run_loop(&r);
	health_done(&r);
	bool is_over = telemetry_last(&r);

	hooks_end(&r);
	if (is_over)
		baton_close(r.b);
	telemetry_end(&r);
	return supervise_finish(&r);
}

static int check(const struct settings *s)
{
	if (s->work_timeout_ms != 0 && s->health_cmd == NULL)
		return cli_usage("--work-timeout needs --health-cmd, which gives the sign of life");
	return 0;
}

/* Warns of a store that excludes fewer processes than one may think. */
static void warn_of_store(const struct settings *s)
{
	if (s->is_default_store)
		log_say(BATON_LOG_WARN,
			"no store given: one leader on this host%s only, in %s; see --store",
			geteuid() == 0 ? "" : " and of this user", strchr(s->store, ':') + 1);
	else if (strncmp(s->store, "memory:", 7) == 0)
		log_say(BATON_LOG_WARN,
			"the store %s is for tests: it lives in this process, and excludes no "
			"other process; see --store",
			s->store);
}

static int contend_once(struct run *r)
{
	struct baton_election_options o;
	struct baton_error err = {0};
	int code = open_handle(r->s, &r->b);

	if (code != 0)
		return code;
	code = deadline_setup(r);
	if (code == 0)
		code = telemetry_begin(r);
	if (code == 0)
		code = hooks_begin(r);
	if (code != 0) {
		baton_close(r->b);
		return code;
	}
	health_setup(r);
	open_election_options(r->s, &o);
	o.drain_by_hand = true;
	o.tell_renewals = true;
	if (baton_election_new(r->b, r->s->name, &o, &r->e, &err) != 0 ||
	    (err.code = health_begin(r)) != 0 || (err.code = baton_election_start(r->e)) != 0) {
		code = open_fail(&err);
		baton_close(r->b);
		return code;
	}
	code = telemetry_listen(r);
	if (code != 0) {
		baton_close(r->b);
		return code;
	}
	warn_of_store(r->s);
	uint64_t now_ns = clock_boot_ns();

	r->try_ns = now_ns;
	r->give_up_ns = UINT64_MAX;
	if (r->s->wait_ms >= 0)
		r->give_up_ns = now_ns + (uint64_t)r->s->wait_ms * CLOCK_NS_PER_MS;
	else if (r->s->on_held == ON_HELD_EXIT)
		r->give_up_ns = now_ns + r->lease_ns; /* if the store doesn't say who leads */
	notify_setup(r);
	service_say("READY=1\nSTATUS=stands by for %.200s", r->s->name);
	return 0;
}

static void run_loop(struct run *r)
{
	while (!r->is_done) {
		struct pollfd fds[] = {{.fd = r->signals, .events = POLLIN},
				       {.fd = r->socket, .events = POLLIN},
				       {.fd = r->timer, .events = POLLIN},
				       {.fd = r->guard_fd, .events = POLLIN},
				       {.fd = r->health.fd, .events = POLLIN},
				       {.fd = baton_fd(r->b), .events = POLLIN},
				       {.fd = hooks_fd(r), .events = POLLIN}};

		arm_wait(r);
		(void)poll(fds, 7, -1);
		deadline_move(r);
		if (fds[2].revents != 0) {
			uint64_t times;

			(void)!read(r->timer, &times, sizeof(times));
		}
		if (fds[1].revents != 0)
			supervise_receive(r);
		if (fds[3].revents != 0)
			supervise_guard_died(r);
		if (fds[0].revents != 0)
			supervise_signals(r);
		if (fds[4].revents != 0)
			health_read(r);
		hooks_tick(r);
		deadline_enforce(r);
		end_lost(r);
		pull_events(r);
		end_lost(r);
		health_tick(r);
		notify_tick(r);
		telemetry_tick(r);
		look_at_waiting(r);
		if (r->restart_ns != 0 && clock_boot_ns() >= r->restart_ns)
			supervise_start(r);
	}
}

/*
 * When to give up, or to look whether to: neither a pause nor the end of the first try is an event.
 */
static uint64_t look_ns(const struct run *r)
{
	bool waits = !r->is_leading && !r->is_stopping && r->child == CHILD_NONE;
	uint64_t now_ns = clock_boot_ns();

	if (waits && (r->s->on_held == ON_HELD_EXIT || now_ns >= r->give_up_ns))
		return now_ns + LOOK_NS;
	return now_ns < r->give_up_ns ? r->give_up_ns : UINT64_MAX;
}

static void arm_wait(struct run *r)
{
	uint64_t times[] = {deadline_next_ns(r), health_next_ns(r),
			    r->notify_ns,        r->restart_ns != 0 ? r->restart_ns : UINT64_MAX,
			    look_ns(r),          telemetry_next_ns(r)};
	uint64_t at_ns = UINT64_MAX;

	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
		if (times[i] < at_ns)
			at_ns = times[i];
	struct itimerspec when = {0};

	if (at_ns == 0) /* at once: a time of 0 would mean "never" */
		at_ns = 1;
	if (at_ns != UINT64_MAX)
		when.it_value = (struct timespec){.tv_sec = (time_t)(at_ns / CLOCK_NS_PER_S),
						  .tv_nsec = (long)(at_ns % CLOCK_NS_PER_S)};
	(void)timerfd_settime(r->timer, TFD_TIMER_ABSTIME, &when, NULL);
}

/* ---- events ---- */

static void became_leader(struct run *r, const struct baton_event *event)
{
	r->is_leading = true;
	r->is_twin_leading = false;
	r->is_lost = false;
	r->term = event->term;
	r->backoff_ns = BACKOFF_MIN_NS;
	r->n_refused = 0;
	if (!r->is_stopping)
		r->give_up_ns = UINT64_MAX;
	deadline_begin(r);
	telemetry_became(r, event);
	hooks_elected(r, event);
	supervise_start(r);
	/* Said when it is done: a disk, too, may keep its writer waiting (L7). */
	log_say_of(BATON_LOG_INFO, r->s->name, r->term, "leads %s in term %llu as %s", r->s->name,
		   (unsigned long long)r->term, baton_id(r->b));
	notify_status(r, "leads %.200s in term %llu", r->s->name, (unsigned long long)r->term);
}

static void lost_leadership(struct run *r, const struct baton_event *event)
{
	bool voluntary = handover_is_voluntary(event->reason);

	telemetry_stepping_down(r, event->reason);

	r->is_leading = false;
	r->is_lost = true;
	r->lost_term = event->term;
	r->restart_ns = 0;
	if (r->child != CHILD_NONE)
		supervise_stop(r, r->stop_signal != 0 ? r->stop_signal : r->plan.on_loss,
			       voluntary);
	hooks_lost(r, event->reason);
	log_say_of(voluntary ? BATON_LOG_INFO : BATON_LOG_WARN, r->s->name, event->term,
		   "no longer leads %s: %s", r->s->name, event->text);
	notify_status(r, "stands by for %.200s", r->s->name);
}

static void leader_changed(struct run *r, const struct baton_event *event)
{
	bool is_our_id = strcmp(event->leader, baton_id(r->b)) == 0;

	telemetry_changed(r, event);
	hooks_changed(r, event);
	if (!is_our_id)
		r->is_twin_leading = false;
	if (event->leader[0] == '\0' || is_our_id)
		return;
	log_say(BATON_LOG_INFO, "%s is led by %s in term %llu", r->s->name, event->leader,
		(unsigned long long)event->term);
	notify_status(r, "stands by for %.200s, which %.200s leads", r->s->name, event->leader);
}

/* The wait ends by itself, and nothing went wrong. */
static void told_to_wait(const struct run *r, const struct baton_event *event)
{
	long long s = (event->wait_ms + 999) / 1000;

	if (s == 0)
		return;
	log_say(BATON_LOG_INFO, "%s: waits %lld s: %s", r->s->name, s, event->text);
	service_say("STATUS=waits %lld s for %.100s: %.200s", s, r->s->name, event->text);
}

/* S7: only now may the leadership pass on. */
static void end_lost(struct run *r)
{
	if (r->lost_term == 0 || r->child != CHILD_NONE || !hooks_are_over(r))
		return;
	(void)baton_drained(r->e, r->lost_term); /* or a stop has said so before */
	telemetry_released(r);
	r->lost_term = 0;
}

static void pull_events(struct run *r)
{
	struct baton_event event;

	while (baton_wait(r->b, 0, &event) == 1) {
		if (event.kind != BATON_EVENT_RENEWED)
			telemetry_hurry(r);
		switch (event.kind) {
		case BATON_EVENT_BECAME: became_leader(r, &event); break;
		case BATON_EVENT_LOST: lost_leadership(r, &event); break;
		case BATON_EVENT_CHANGED: leader_changed(r, &event); break;
		case BATON_EVENT_WAITS: told_to_wait(r, &event); break;
		case BATON_EVENT_STOPPED: r->is_done = true; break;
		case BATON_EVENT_RENEWED: deadline_move(r); break;
		default: /* errors are logged by the library */
			if (event.code == BATON_E_DUPLICATE_ID)
				r->is_twin_leading = true;
			break;
		}
	}
}

/* ---- waiting ---- */

enum held { HELD_NOT, HELD_BY_ANOTHER, HELD_PAUSED };

/* Why we can't lead; also for a moment after we did. */
static int find_holder(const struct run *r)
{
	struct baton_status status;

	if (baton_get_status(r->e, &status) != 0 || status.is_leader)
		return HELD_NOT;
	if (status.paused)
		return HELD_PAUSED;
	if (r->is_twin_leading ||
	    (status.leader[0] != '\0' && strcmp(status.leader, baton_id(r->b)) != 0))
		return HELD_BY_ANOTHER;
	return HELD_NOT;
}

/* Whether a campaign of ours was answered; and whether one failed. */
static void count_tries(const struct run *r, bool *answered, bool *failed)
{
	struct baton_stats stats = {0};

	(void)baton_get_stats(r->b, &stats);
	*answered = stats.campaigns_won + stats.campaigns_refused != 0;
	*failed = stats.campaigns_failed != 0;
}

/* The health command or the store has yet to answer, and has not failed: that is not waiting for
 * another candidate. */
static bool is_first_try(const struct run *r)
{
	struct baton_status status;
	struct baton_error err;
	bool answered;
	bool failed;

	if (health_is_unknown(r))
		return true;
	count_tries(r, &answered, &failed);
	return clock_boot_ns() < r->try_ns + r->lease_ns &&
	       baton_election_condition(r->e, &err) != BATON_CONDITION_UNHEALTHY &&
	       baton_get_status(r->e, &status) == 0 &&
	       ((!answered && !failed && health_may_campaign(r)) ||
		status.state == BATON_STATE_CAMPAIGNING);
}

/* No candidate leads because the store fails, or lets no candidate win yet: err says which. */
static bool is_failing(const struct run *r, struct baton_error *err)
{
	struct baton_status status;

	if (baton_election_condition(r->e, err) == BATON_CONDITION_UNHEALTHY)
		return true;
	if (baton_get_status(r->e, &status) != 0 || status.wait_ms == 0)
		return false;
	(void)snprintf(err->text, sizeof(err->text), "%s", status.wait);
	return true;
}

/* Says why, and returns the exit code. */
static int give_up(const struct run *r, bool held)
{
	struct baton_error err = {0};
	bool answered;
	bool failed;

	count_tries(r, &answered, &failed);
	bool fails = !held && is_failing(r, &err);

	if (!fails && !held && failed && !answered) { /* other calls go well, a campaign never */
		fails = true;
		(void)strcpy(err.text, "no campaign was answered");
	}
	log_say(BATON_LOG_WARN, "gives up waiting for %s%s%s", r->s->name, fails ? ": " : "",
		fails ? err.text : "");
	return fails ? EXIT_UNAVAILABLE : EXIT_HELD;
}

static void look_at_waiting(struct run *r)
{
	if (r->is_stopping) {
		if (r->child == CHILD_NONE && !r->has_left && hooks_are_over(r))
			supervise_leave(r);
		/* The command has ended, and the store has had its time. */
		if (r->has_left && clock_boot_ns() >= r->give_up_ns)
			r->is_done = true;
		return;
	}
	if (r->is_leading || r->child != CHILD_NONE)
		return;
	int held = find_holder(r);
	bool is_late = clock_boot_ns() >= r->give_up_ns;

	if (r->s->on_held == ON_HELD_EXIT && held != HELD_NOT) {
		log_say(BATON_LOG_INFO,
			held == HELD_PAUSED ? "%s is paused" : "another candidate leads %s",
			r->s->name);
		supervise_end(r, EXIT_HELD);
	} else if (is_late && (held != HELD_NOT || !is_first_try(r))) {
		supervise_end(r, give_up(r, held != HELD_NOT));
	}
}

/* ---- the child's end ---- */

static void start_later(struct run *r, uint64_t now_ns)
{
	r->restart_ns = now_ns + r->backoff_ns;
	r->backoff_ns = r->backoff_ns * 2 < BACKOFF_MAX_NS ? r->backoff_ns * 2 : BACKOFF_MAX_NS;
}

/*
 * Nothing was started, although there was time: what is in the way here need not be in the way
 * elsewhere.
 */
static void not_started(struct run *r, uint64_t now_ns)
{
	if (++r->n_refused < REFUSED_MAX) {
		start_later(r, now_ns);
		return;
	}
	log_say(BATON_LOG_WARN, "stays out of %s for 30 s", r->s->name);
	if (baton_resign(r->e, (int64_t)(BACKOFF_MAX_NS / CLOCK_NS_PER_MS)) != 0)
		start_later(r, now_ns); /* there was no memory for it */
}

void run_child_ended(struct run *r, int status, bool by_us)
{
	int code = WIFSIGNALED(status) ? EXIT_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
	uint64_t now_ns = clock_boot_ns();

	r->child = CHILD_NONE;
	r->group = 0;
	r->stop_ns = 0;
	r->status = status;
	telemetry_child_ended(r, status);
	if (r->is_lost || r->is_refused || by_us) {
		/* Ended by us, or never begun: we contend again, or are about to end. If we were
		 * frozen, the guard may know of the loss before us. */
		if (!r->is_refused) /* no command ran that could have a code */
			r->exit_code = code;
		if (r->is_lost || !r->is_leading || r->is_stopping)
			return;
		if (r->is_refused && !r->is_late)
			not_started(r, now_ns);
		else
			start_later(r, now_ns);
		return;
	}
	log_say(BATON_LOG_DEBUG, "the command has ended with %d", code);
	if (r->s->restart != 0 && r->cant_run == 0 && !r->is_stopping) {
		if (now_ns - r->started_ns >= WORKED_NS)
			r->backoff_ns = BACKOFF_MIN_NS;
		start_later(r, now_ns);
		log_say(BATON_LOG_INFO, "the command has ended with %d; starts it again", code);
		return;
	}
	if (r->cant_run != 0)
		log_say(BATON_LOG_ERROR, "%s can't be run: %s", r->plan.command[0],
			strerror(r->cant_run));
	supervise_end(r, code);
}
