/*
 * serve.c: the loop of `baton serve`: sockets, events of elections, signals, times. It must never
 * wait for the store: probes are answered from memory however the store is.
 */
#include "serve/serve.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "serve/assets.h"
#include "serve/server.h"
#include "telemetry/callbacks.h"
#include "telemetry/service.h"

#define TICK_MS 1000
#define SETTLE_MS 100
#define LIST_MS 5000
#define LOOK_MS 1000
#define LOOKS 25      /* at once */
#define TRIM_MS 10000 /* how often memory that is free goes back to the system */
#define NS_PER_MS ((int64_t)CLOCK_NS_PER_MS)

int64_t server_now_ns(void)
{
	return (int64_t)clock_boot_ns();
}

const struct serve_view *server_view(struct server *s)
{
	struct serve_view *v = &s->view;
	struct baton_stats stats = {0};

	if (!s->has_answer)
		pulse_take(s);
	v->now_boot_ns = server_now_ns();
	v->now_wall_ms = clock_wall_ms();
	v->starting = !s->has_answer;
	v->stopping = s->is_stopping;
	v->stuck = s->is_stuck;
	v->elections = (const struct serve_election *const *)s->rows;
	v->n_elections = s->n_members;
	if (baton_get_stats(s->config->baton, &stats) == 0) {
		const uint64_t *counts = stats.renew_latency;

		latency_note(&s->latency, counts, v->now_boot_ns);
		v->renew_p50_us = latency_quantile_us(&s->latency, counts, 50);
		v->renew_p99_us = latency_quantile_us(&s->latency, counts, 99);
		v->renew_slow = latency_is_slow(&s->latency, counts, v->timings.call_ns);
	}
	return v;
}

static void read_boot_id(struct server *s)
{
	FILE *in = fopen("/proc/sys/kernel/random/boot_id", "re");

	if (in == NULL)
		return;
	if (fgets(s->boot_id, sizeof(s->boot_id), in) != NULL)
		s->boot_id[strcspn(s->boot_id, "\n")] = '\0';
	(void)fclose(in);
}

/* "a,b" as a list. */
static bool split_hosts(struct server *s)
{
	size_t n = 2;

	s->hosts_text = strdup(s->config->hosts != NULL ? s->config->hosts : "");
	for (const char *c = s->hosts_text; c != NULL && *c != '\0'; c++)
		n += *c == ',';
	s->hosts = s->hosts_text != NULL ? calloc(n, sizeof(*s->hosts)) : NULL;
	if (s->hosts == NULL)
		return false;
	char *next = s->hosts_text;

	for (size_t i = 0; next != NULL && next[0] != '\0'; i++)
		s->hosts[i] = strsep(&next, ",");
	return true;
}

static bool fill_view(struct server *s)
{
	struct serve_view *v = &s->view;

	read_boot_id(s);
	if (!split_hosts(s))
		return false;
	/* JavaScript counts up to 2^53. */
	if (getrandom(&v->first_seq, sizeof(v->first_seq), 0) != (ssize_t)sizeof(v->first_seq))
		v->first_seq = (uint64_t)clock_wall_ms() * 1000;
	v->first_seq = v->seq = 1 + (v->first_seq >> 12);
	v->version = s->config->version;
	v->boot_id = s->boot_id;
	v->id = baton_id(s->config->baton);
	v->store = s->config->store;
	v->promises = baton_promises(s->config->baton);
	v->hosts = s->hosts;
	v->read_only = s->config->read_only;
	v->observing = s->config->observe_prefix != NULL;
	v->can_list = v->observing;
	v->assets = serve_assets;
	v->n_assets = serve_n_assets;
	return baton_get_timings(s->config->baton, &v->timings) == 0;
}

static bool watch_fd(struct server *s, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

	return fd < 0 || epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

static int daemon_fd(struct MHD_Daemon *daemon)
{
	const union MHD_DaemonInfo *info =
		daemon != NULL ? MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;

	return info != NULL ? info->epoll_fd : -1;
}

static bool open_loop(struct server *s)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGHUP);
	(void)signal(SIGPIPE, SIG_IGN);
	if (pthread_sigmask(SIG_BLOCK, &set, NULL) != 0)
		return false;
	s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	s->gone_fd = epoll_create1(EPOLL_CLOEXEC);
	s->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->signal_fd < 0 || s->epoll_fd < 0 || s->gone_fd < 0 || s->done_fd < 0)
		return false;
	return http_start(s) && watch_fd(s, s->signal_fd) && watch_fd(s, s->gone_fd) &&
	       watch_fd(s, s->done_fd) && watch_fd(s, s->unix_fd) && watch_fd(s, s->tcp_fd) &&
	       watch_fd(s, daemon_fd(s->plain)) && watch_fd(s, daemon_fd(s->tls)) &&
	       watch_fd(s, baton_fd(s->config->baton)) &&
	       (s->callbacks == NULL || watch_fd(s, callbacks_fd(s->callbacks))) && worker_start(s);
}

static void take_signals(struct server *s)
{
	struct signalfd_siginfo info;

	while (read(s->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGHUP) {
			if (listen_read_tokens(s))
				s->config->say(BATON_LOG_INFO, "the tokens were read again");
			continue;
		}
		s->config->say(BATON_LOG_INFO, "stopping");
		service_say("STOPPING=1");
		members_stop(s);
	}
}

/* What is due without an event. */
static void do_due(struct server *s)
{
	int64_t now_ns = server_now_ns();

	if (s->watchdog_ns != 0 && now_ns >= s->alive_ns) {
		s->alive_ns = now_ns + s->watchdog_ns;
		service_say("WATCHDOG=1");
	}
	if (now_ns - s->trimmed_ns > TRIM_MS * NS_PER_MS) {
		s->trimmed_ns = now_ns;
		(void)malloc_trim(0);
	}
	(void)server_view(s); /* notes how long renewals take, also while no client asks */
	http_tick(s);
	streams_tick(s);
	telemetry_tick(s);
	if (s->config->observe_prefix != NULL && !s->is_stopping &&
	    now_ns - s->listed_ns > LIST_MS * NS_PER_MS) {
		s->listed_ns = now_ns;
		worker_list(s);
	}
	/* While a client has a stream open, the store is asked for what it knows of others' leases,
	 * bit by bit. */
	if (s->n_streams > 0 && s->n_members > 0 && now_ns - s->looked_ns > LOOK_MS * NS_PER_MS) {
		s->looked_ns = now_ns;
		for (size_t i = 0; i < LOOKS && i < s->n_members; i++)
			worker_look(s->members[s->look_at++ % s->n_members]);
	}
}

static void take_event(struct server *s, int fd)
{
	if (fd == s->signal_fd)
		take_signals(s);
	else if (fd == s->gone_fd)
		streams_take_gone(s);
	else if (fd == s->done_fd)
		worker_take_finished(s);
	else if (fd == s->unix_fd || fd == s->tcp_fd)
		http_accept(s, fd);
}

static void run_loop(struct server *s)
{
	int64_t ticked_ns = 0;
	int64_t settle_ns = INT64_MAX;

	while (!s->is_stopping || !members_have_stopped(s)) {
		struct epoll_event events[64];
		int64_t now_ns = server_now_ns();
		int64_t wait_ms = s->watchdog_ns == 0 ? TICK_MS : SETTLE_MS;

		if (s->is_stopping && now_ns > s->stop_until_ns)
			return;
		if (s->n_streams > 0 || s->is_stopping)
			wait_ms = SETTLE_MS;
		if (settle_ns < now_ns + wait_ms * NS_PER_MS)
			wait_ms = settle_ns > now_ns ? (settle_ns - now_ns) / NS_PER_MS + 1 : 0;
		if (s->is_resumed)
			wait_ms = 0;
		int n = epoll_wait(s->epoll_fd, events, 64, (int)wait_ms);

		for (int i = 0; i < n; i++)
			take_event(s, events[i].data.fd);
		if (s->callbacks != NULL)
			callbacks_process(s->callbacks);
		members_take_events(s);
		settle_ns = members_settle(s);
		if (server_now_ns() - ticked_ns > SETTLE_MS * NS_PER_MS) {
			ticked_ns = server_now_ns();
			do_due(s);
		}
		http_run(s);
	}
	http_run(s); /* what was told last is sent */
}

static void server_close(struct server *s)
{
	int fds[] = {s->signal_fd, s->epoll_fd, s->gone_fd, s->done_fd};

	worker_stop(s);
	http_stop(s);
	listen_close(s);
	members_free(s);
	telemetry_end(s);
	streams_free_ring(s);
	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (fds[i] >= 0)
			(void)close(fds[i]);
	for (size_t i = 0; i < 3; i++) {
		free(s->tokens[i]);
		free(s->tls_texts[i]);
	}
	free(s->hosts_text);
	free(s->hosts);
	free(s->rows);
	free(s->members);
	free(s);
}

int serve_run(const struct serve_config *config)
{
	struct server *s = calloc(1, sizeof(*s));
	int code = SERVE_REFUSED;

	if (s == NULL)
		return SERVE_REFUSED;
	s->config = config;
	s->unix_fd = s->tcp_fd = s->epoll_fd = s->gone_fd = s->signal_fd = s->done_fd = -1;
	(void)pthread_mutex_init(&s->lock, NULL);
	(void)pthread_cond_init(&s->wake, NULL);
	if (!listen_read_tokens(s)) {
		server_close(s);
		return SERVE_WRONG;
	}
	code = listen_open(s);
	if (code == SERVE_ENDED && !hooks_start(s))
		code = SERVE_WRONG;
	if (code == SERVE_ENDED && (!fill_view(s) || !telemetry_start(s) || !open_loop(s))) {
		config->say(BATON_LOG_ERROR, "baton serve can't start: %s", strerror(errno));
		code = SERVE_REFUSED;
	}
	for (size_t i = 0; code == SERVE_ENDED && i < config->n_names; i++)
		if (!members_add(s, config->names[i], !config->observe))
			code = SERVE_WRONG;
	if (code == SERVE_ENDED)
		code = telemetry_listen(s);
	if (code == SERVE_ENDED) {
		s->watchdog_ns = (int64_t)service_watchdog_ns();
		service_say("READY=1\nSTATUS=%s %zu election%s",
			    config->observe ? "observes" : "takes part in", config->n_names,
			    config->n_names == 1 ? "" : "s");
		run_loop(s);
		code = members_have_stopped(s) ? SERVE_ENDED : SERVE_ABANDONED;
	}
	telemetry_last(s);
	hooks_end(s);
	if (code == SERVE_ABANDONED)
		config->say(BATON_LOG_WARN, "the work was told to end but goes on; its leadership "
					    "is left to expire");
	else
		server_close(s);
	return code;
}
