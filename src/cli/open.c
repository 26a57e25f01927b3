/*
 * open.c: from settings to a handle of the library. Without a store, elections live in a directory
 * of this host: the user's own, or for root /var/lib/baton.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"

/* A directory for our own user, whatever the umask is. */
static int make_one(const char *path)
{
	if (mkdir(path, 0700) != 0)
		return -1;
	return chmod(path, 0700);
}

/*
 * Makes all folders of the path. The last one, too: the default store is not a mount that may be
 * missing. So a question that comes before the first candidate has an answer: there is no leader.
 */
static int make_dir(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		int failed = make_one(path) != 0 && errno != EEXIST;

		*slash = '/';
		if (failed)
			return -1;
	}
	if (make_one(path) != 0)
		return errno == EEXIST ? 0 : -1;
	/* The directory will hold terms, which may not be lost with it. */
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int above = fd >= 0 ? openat(fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	if (above >= 0) {
		(void)fsync(above);
		(void)close(above);
	}
	if (fd >= 0)
		(void)close(fd);
	return 0;
}

/* A character that a URL's path can't have is written %xx. */
static char *file_url(const char *path)
{
	char *url = malloc(strlen(path) * 3 + 6);
	char *at = url;

	if (url == NULL)
		return NULL;
	at += sprintf(at, "file:");
	for (const char *c = path; *c != '\0'; c++) {
		if ((unsigned char)*c <= ' ' || strchr("%?#\x7f", *c) != NULL)
			at += sprintf(at, "%%%02x", (unsigned)(unsigned char)*c);
		else
			*at++ = *c;
	}
	*at = '\0';
	return url;
}

int open_store_url(struct settings *s)
{
	const char *state = getenv("XDG_STATE_HOME");
	const char *home = getenv("HOME");
	char path[4096];
	int n;

	if (s->store != NULL)
		return 0;
	if (geteuid() == 0 && (state == NULL || state[0] != '/'))
		n = snprintf(path, sizeof(path), "/var/lib/baton");
	else if (state != NULL && state[0] == '/')
		n = snprintf(path, sizeof(path), "%s/baton", state);
	else if (home != NULL && home[0] == '/')
		n = snprintf(path, sizeof(path), "%s/.local/state/baton", home);
	else
		return cli_usage("HOME is not set, so there is no default store; say "
				 "--store=file:/some/directory");
	if (n < 0 || (size_t)n >= sizeof(path))
		return cli_usage("the path of the default store is too long; say --store=URL");
	if (make_dir(path) != 0) {
		log_say(BATON_LOG_ERROR, "%s can't be made: %s; say --store=file:/some/directory",
			path, strerror(errno));
		return EXIT_UNAVAILABLE;
	}
	s->store = file_url(path);
	s->is_default_store = true;
	return s->store != NULL ? 0 : EXIT_INTERNAL;
}

int open_handle(const struct settings *s, struct baton **out)
{
	struct baton_options o;
	struct baton_error err = {0};

	baton_options_init(&o);
	o.id = s->id;
	o.address = s->address;
	/* A verb that only asks or orders keeps no lease; these timings fit whatever drift a store
	 * wants. */
	o.lease_ms = s->lease_ms != 0 ? (uint64_t)s->lease_ms : 30000;
	o.renew_ms = s->lease_ms != 0 ? (uint64_t)s->renew_ms : 5000;
	o.grace_ms = s->lease_ms != 0 ? (uint64_t)s->grace_ms : 7500;
	o.retry_ms = (uint64_t)s->retry_ms;
	o.retry_max_ms = (uint64_t)s->retry_max_ms;
	o.drift_permille = (uint32_t)s->drift_permille;
	o.dispatchers = 1; /* we pull our events */
	o.log = log_record;
	return baton_open(s->store, &o, out, &err) == 0 ? 0 : open_fail(&err);
}

void open_election_options(const struct settings *s, struct baton_election_options *o)
{
	baton_election_options_init(o);
	o->metadata = s->metadata;
	o->release_on_stop = s->release_on_stop != 0;
	o->check_health = s->check_health != 0;
	o->step_down_unhealthy = s->step_down_unhealthy != 0;
	o->min_score_permille = (uint32_t)s->min_score_permille;
	o->priority = (int32_t)s->priority;
	o->preempt_ms = (uint64_t)s->preempt_ms;
	o->work_timeout_ms = (uint64_t)s->work_timeout_ms;
}

int open_exit_code(int code)
{
	switch (code) {
	case BATON_OK: return EXIT_OK;
	case BATON_E_INVALID:
	case BATON_E_TIMING:
	case BATON_E_URL:
	case BATON_E_NO_DRIVER: return EXIT_USAGE;
	case BATON_E_NOT_LEADER:
	case BATON_E_STALE:
	case BATON_E_NO_CANDIDATE: return EXIT_NO;
	case BATON_E_MEMORY:
	case BATON_E_SYSTEM: return EXIT_INTERNAL;
	default: return EXIT_UNAVAILABLE;
	}
}

int open_fail(const struct baton_error *err)
{
	log_say(BATON_LOG_ERROR, "%s",
		err->text[0] != '\0' ? err->text : baton_strerror(err->code));
	return open_exit_code(err->code);
}
