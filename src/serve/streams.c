/*
 * streams.c: connections that stay open: the work of a leadership, and all that happens. A
 * connection without news is suspended, and the HTTP library doesn't look at it then: a second
 * epoll does, and notices at once that the other end is gone.
 *
 * It must never keep more than a bounded amount for a client that doesn't read.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "serve/server.h"

#define NS_PER_MS ((int64_t)CLOCK_NS_PER_MS)
#define LEASE_ROOM 4096  /* of a message about renewals, ... */
#define LEASE_REST 256   /* ... and of that for what isn't names */
#define LEASE_MESSAGES 4 /* in one turn of the loop */

/* ---- bytes ---- */

/* Its client doesn't read. The HTTP library would wait for the socket to take more. */
static void stream_cut(struct stream *st)
{
	st->is_gone = st->is_cut = true;
	(void)shutdown(st->call->link->fd, SHUT_RDWR);
	stream_wake(st);
}

static void stream_put(struct stream *st, const char *text, size_t n)
{
	size_t from = st->sent > st->beginning ? st->sent : st->beginning;

	/* What the stream began with grows with the number of elections: it takes time to send. */
	if (st->is_begun && st->out.n - from + n > SERVER_UNSENT && st->out.n > from) {
		stream_cut(st);
	} else {
		if (st->sent == st->out.n) {
			bytes_clear(&st->out);
			st->sent = st->beginning = 0;
		}
		if (!bytes_add(&st->out, text, n, (size_t)1 << 30))
			stream_cut(st);
	}
	st->spoken_ns = server_now_ns();
	stream_wake(st);
}

/* One message in the form that was asked for. */
static void stream_say(struct stream *st, uint64_t id, const char *kind,
		       const struct serve_text *data)
{
	char head[128];
	int n = 0;

	if (!st->lines && id != 0)
		n = snprintf(head, sizeof(head), "id: %llu\n", (unsigned long long)id);
	if (!st->lines)
		n += snprintf(head + n, sizeof(head) - (size_t)n, "event: %s\ndata: ", kind);
	struct bytes all = {0};

	if (bytes_add(&all, head, (size_t)n, SIZE_MAX) &&
	    bytes_add(&all, data->at, data->n, SIZE_MAX) &&
	    bytes_add(&all, st->lines ? "\n" : "\n\n", st->lines ? 1 : 2, SIZE_MAX))
		stream_put(st, all.at, all.n);
	else
		stream_cut(st);
	bytes_done(&all);
}

void stream_wake(struct stream *st)
{
	if (!st->is_suspended)
		return;
	st->is_suspended = false;
	st->call->server->is_resumed = true;
	MHD_resume_connection(st->call->connection);
}

void stream_end(struct stream *st)
{
	st->is_over = true;
	stream_wake(st);
}

ssize_t stream_read(void *cls, uint64_t at, char *to, size_t room)
{
	struct stream *st = cls;
	size_t n = st->out.n - st->sent;

	(void)at;
	if (st->is_gone)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	st->moved_ns = server_now_ns();
	st->is_through = st->is_through || st->sent >= st->beginning;
	if (n > 0) {
		n = n < room ? n : room;
		(void)memcpy(to, st->out.at + st->sent, n);
		st->sent += n;
		/* The HTTP library asks for more when it is run, not when the socket is ready. */
		st->call->server->is_resumed = true;
		return (ssize_t)n;
	}
	if (st->is_over)
		return MHD_CONTENT_READER_END_OF_STREAM;
	st->is_suspended = true;
	MHD_suspend_connection(st->call->connection);
	return 0;
}

/* ---- coming and going ---- */

/* A text that grows until all fits. */
static bool compose(struct server *s, struct serve_text *out,
		    void (*write)(struct serve_text *out, const struct serve_view *view))
{
	*out = (struct serve_text){0};
	write(out, server_view(s));
	out->at = malloc(out->n + 256);
	out->room = out->n + 256;
	out->n = 0;
	if (out->at == NULL)
		return false;
	write(out, server_view(s));
	return out->n <= out->room;
}

static void say_kept(struct stream *st, const struct kept *kept)
{
	char room[8192];
	struct serve_text text = {room, sizeof(room), 0};
	struct server *s = st->call->server;

	serve_write_event(&text, server_view(s), &kept->member->v, &kept->event);
	if (text.n <= text.room)
		stream_say(st, kept->event.seq, kept->event.kind, &text);
}

/* Tells what the client has missed, if that is still known; else all there is. */
static void begin_events(struct stream *st)
{
	struct server *s = st->call->server;
	uint64_t after = st->call->reply.after;
	uint64_t last = s->view.seq;
	struct serve_text text;

	members_refresh_all(s);
	if (after <= last && last - after <= SERVER_RING) {
		for (uint64_t seq = after + 1; seq <= last; seq++)
			say_kept(st, &s->ring[seq % SERVER_RING]);
		return;
	}
	if (compose(s, &text, serve_write_snapshot))
		stream_say(st, last, "snapshot", &text);
	free(text.at);
}

static void say_elector(struct stream *st)
{
	char room[1024];
	struct serve_text text = {room, sizeof(room), 0};

	serve_write_elector(&text, server_view(st->call->server), &st->member->v);
	if (text.n <= text.room)
		stream_say(st, 0, "message", &text);
}

struct stream *stream_new(struct call *call, struct member *member)
{
	struct stream *st = calloc(1, sizeof(*st));
	struct server *s = call->server;
	struct epoll_event event = {.events = EPOLLRDHUP | EPOLLET, .data.ptr = call};

	if (st == NULL)
		return NULL;
	st->call = call;
	st->member = member;
	st->moved_ns = server_now_ns();
	st->kind = call->reply.task == SERVE_LEAD     ? STREAM_LEAD
		   : call->reply.task == SERVE_EVENTS ? STREAM_EVENTS
						      : STREAM_ELECTOR;
	st->lines = call->reply.lines;
	st->tell_renewals = call->reply.tell_renewals;
	st->next = s->streams;
	s->streams = st;
	s->n_streams++;
	call->stream = st;
	if (st->kind == STREAM_LEAD)
		member_attach(member, st);
	else if (st->kind == STREAM_EVENTS)
		begin_events(st);
	else
		say_elector(st);
	st->is_begun = true;
	st->beginning = st->out.n;
	if (epoll_ctl(s->gone_fd, EPOLL_CTL_ADD, call->link->fd, &event) != 0)
		st->is_gone = errno != EEXIST;
	return st;
}

void stream_free(struct stream *st)
{
	struct server *s = st->call->server;
	struct stream **at = &s->streams;

	while (*at != st)
		at = &(*at)->next;
	*at = st->next;
	s->n_streams--;
	(void)epoll_ctl(s->gone_fd, EPOLL_CTL_DEL, st->call->link->fd, NULL);
	if (st->kind == STREAM_LEAD)
		member_detach(st->member, st);
	bytes_done(&st->out);
	free(st);
}

void streams_take_gone(struct server *s)
{
	struct epoll_event events[32];
	int n = epoll_wait(s->gone_fd, events, 32, 0);

	for (int i = 0; i < n; i++) {
		struct call *call = events[i].data.ptr;
		struct stream *st = call->stream;
		bool is_whole = (events[i].events & (EPOLLHUP | EPOLLERR)) != 0;

		if (st == NULL) {
			call_left(call, is_whole);
		} else if (is_whole) {
			st->is_gone = true;
			stream_wake(st);
		} else if (!st->is_half_closed && !st->is_gone) {
			st->is_half_closed = true;
			if (st->kind == STREAM_LEAD)
				member_half_closed(st->member, st);
			else
				stream_end(st);
		}
	}
}

/* ---- what is told ---- */

static int64_t limited(int64_t value, int64_t least, int64_t most)
{
	return value < least ? least : value > most ? most : value;
}

void stream_tell_lead(struct stream *st, const char *kind, const char *reason)
{
	struct member *m = st->member;
	struct server *s = m->server;
	char room[2048];
	struct serve_text text = {room, sizeof(room), 0};
	int64_t now_ns = server_now_ns();
	bool is_lost = strcmp(kind, "lost") == 0;

	text_add(&text, "{\"event\":");
	text_string(&text, kind);
	text_add(&text, ",\"election\":");
	text_string(&text, m->name);
	if (is_lost) {
		int64_t drained_ns = now_ns + (int64_t)s->view.timings.drain_ns;

		/* If the lease holds on, the drain time; if it doesn't, what is left: nothing, if
		 * its end has passed, or if another lease has followed since (0). */
		if (st->end_ns == 0)
			st->end_ns = limited(m->v.end_boot_ns, now_ns, drained_ns);
		text_add(&text, ",\"reason\":");
		text_string(&text, reason);
		text_add(&text, ",\"end_in_ms\":");
		text_number(&text, limited(st->end_ns - now_ns, 0, INT64_MAX) / NS_PER_MS);
	} else if (kind[0] != 's') {
		text_add(&text, ",\"time_left_ms\":");
		text_number(&text, (m->v.deadline_boot_ns - now_ns) / NS_PER_MS);
		text_add(&text, ",\"deadline_boot_ns\":\"");
		text_number(&text, m->v.deadline_boot_ns);
		text_add(&text, "\",\"boot_id\":");
		text_string(&text, s->boot_id);
	}
	if (kind[0] != 's') {
		text_add(&text, ",\"term\":\"");
		text_unsigned(&text, st->told_term);
		text_add(&text, "\"");
	}
	text_add(&text, "}");
	if (text.n <= text.room)
		stream_say(st, 0, kind, &text);
}

static char *keep_words(struct serve_event *event)
{
	const char **all[] = {&event->leader, &event->old_leader, &event->text};
	size_t n = 0;

	for (size_t i = 0; i < 3; i++)
		n += strlen(*all[i]) + 1;
	char *words = malloc(n);
	char *to = words;

	for (size_t i = 0; words != NULL && i < 3; i++) {
		size_t length = strlen(*all[i]) + 1;

		(void)memcpy(to, *all[i], length);
		*all[i] = to;
		to += length;
	}
	return words;
}

void streams_publish(struct member *m, const struct serve_event *event)
{
	struct server *s = m->server;
	struct kept *kept = &s->ring[event->seq % SERVER_RING];

	free(kept->words);
	kept->member = m;
	kept->event = *event;
	kept->words = keep_words(&kept->event);
	if (kept->words == NULL)
		kept->event.leader = kept->event.old_leader = kept->event.text = "";
	for (struct stream *st = s->streams; st != NULL; st = st->next) {
		if (st->kind == STREAM_EVENTS)
			say_kept(st, kept);
		else if (st->kind == STREAM_ELECTOR && st->member == m)
			say_elector(st);
	}
}

void streams_publish_row(struct member *m)
{
	char room[8192];
	struct serve_text text = {room, sizeof(room), 0};

	member_refresh(m);
	serve_write_row(&text, server_view(m->server), &m->v);
	if (text.n > text.room)
		return;
	for (struct stream *st = m->server->streams; st != NULL; st = st->next)
		if (st->kind == STREAM_EVENTS)
			stream_say(st, 0, "row", &text);
}

void streams_opened(struct member *m)
{
	streams_publish_row(m);
	for (struct stream *st = m->server->streams; st != NULL; st = st->next)
		if (st->kind == STREAM_ELECTOR && st->member == m)
			say_elector(st);
}

static bool leads(const struct member *m)
{
	return m->hold != NULL && !m->is_lost;
}

/* Whether one lease carries all that lead here: they have the same deadline. */
static bool have_one_deadline(const struct server *s)
{
	int64_t first_ns = 0;

	for (size_t i = 0; i < s->n_members; i++) {
		const struct member *m = s->members[i];

		if (!leads(m))
			continue;
		if (first_ns != 0 && m->renewed_ns != first_ns)
			return false;
		first_ns = m->renewed_ns;
	}
	return true;
}

/* Adds the names of the elections that were renewed until deadline_ns, as long as there is room for
 * the longest one; the others stay for another message. */
static void add_renewed(struct server *s, struct serve_text *text, int64_t deadline_ns)
{
	const char *comma = "";

	text_add(text, "\"elections\":[");
	for (size_t i = 0; i < s->n_members; i++) {
		struct member *m = s->members[i];

		if (!m->is_renewed || !leads(m) || m->renewed_ns != deadline_ns)
			continue;
		if (text->n + 6 * BATON_NAME_MAX + LEASE_REST > text->room)
			break;
		m->is_renewed = false;
		text_add(text, comma);
		text_string(text, m->name);
		comma = ",";
	}
	text_add(text, "],");
}

/* Tells all streams of events how long leases last; with names, those that were renewed. */
static void tell_lease(struct server *s, int64_t deadline_ns, bool has_names)
{
	char room[LEASE_ROOM];
	struct serve_text text = {room, sizeof(room), 0};
	const struct serve_view *v = server_view(s);
	int64_t left_ns = deadline_ns - server_now_ns();

	text_add(&text, "{");
	if (has_names)
		add_renewed(s, &text, deadline_ns);
	text_add(&text, "\"time_left_ms\":");
	text_number(&text, left_ns > 0 ? left_ns / NS_PER_MS : 0);
	text_add(&text, ",\"renew_p50_us\":");
	text_unsigned(&text, v->renew_p50_us);
	text_add(&text, ",\"renew_p99_us\":");
	text_unsigned(&text, v->renew_p99_us);
	text_add(&text, v->renew_slow ? ",\"renew_slow\":true}" : ",\"renew_slow\":false}");
	for (struct stream *st = s->streams; st != NULL; st = st->next)
		if (st->kind == STREAM_EVENTS && text.n <= text.room)
			stream_say(st, 0, "lease", &text);
}

/*
 * Where one lease carries all elections of a process, all that lead have the same new deadline, and
 * one message without names tells it. Else each message names the elections that it is about. What
 * is left after a few messages is told in the next turn of the loop: a client has to read them.
 */
void streams_renewed(struct server *s)
{
	int told = 0;

	s->is_renewed = false;
	if (s->n_streams == 0)
		return;
	bool is_shared = have_one_deadline(s);

	for (size_t i = 0; i < s->n_members; i++) {
		struct member *m = s->members[i];

		if (!m->is_renewed)
			continue;
		if (!leads(m)) {
			m->is_renewed = false;
		} else if (is_shared) {
			m->is_renewed = false;
			if (told++ == 0)
				tell_lease(s, m->renewed_ns, false);
		} else if (told++ < LEASE_MESSAGES) {
			tell_lease(s, m->renewed_ns, true);
		} else {
			s->is_renewed = true;
			return;
		}
	}
}

/* TCP says that a client has closed both sides only if something is sent to it. So one that has
 * closed its own side, and now ends its work, is told again. */
static void tell_lost_again(struct stream *st, int64_t now_ns)
{
	if (st->end_ns != 0 && st->is_half_closed && !st->is_gone && !st->call->link->is_unix &&
	    now_ns - st->spoken_ns > SERVER_AGAIN_MS * NS_PER_MS)
		stream_tell_lead(st, "lost", st->member->v.reason);
}

void streams_tick(struct server *s)
{
	int64_t now_ns = server_now_ns();

	for (struct stream *st = s->streams; st != NULL; st = st->next) {
		if (!st->is_through && !st->is_gone &&
		    now_ns - st->moved_ns > SERVER_SEND_MS * NS_PER_MS)
			stream_cut(st);
		if (!st->lines && now_ns - st->spoken_ns > SERVER_COMMENT_MS * NS_PER_MS)
			stream_put(st, ": \n\n", 4);
		tell_lost_again(st, now_ns);
		if (st->end_ns == 0 || now_ns < st->end_ns || st->is_overrun)
			continue;
		st->is_overrun = true;
		st->member->v.overruns++;
		s->config->say_of(BATON_LOG_WARN, st->member->name, st->told_term,
				  "%s: the work of term %llu goes on past its end (overrun)",
				  st->member->name, (unsigned long long)st->told_term);
	}
}

void streams_free_ring(struct server *s)
{
	for (size_t i = 0; i < SERVER_RING; i++)
		free(s->ring[i].words);
}
