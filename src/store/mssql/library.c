/*
 * library.c: what db-lib has once for the whole process, and not once for each connection.
 *
 *   handlers     for errors and messages. Ours look at the thread: what a worker's thread is told
 *                goes to that worker, and everything else to whoever had set a handler before.
 *   login time   MSSQL_LOGIN_S. A caller never waits for a login longer than its deadline, but the
 *                worker that was given up does.
 *   settings     what freetds.conf would say (encryption, whom to trust, that the name counts) has
 *                no function for one connection. They are in a file in memory, with a section for
 *                each host of each store; no file of the user's is needed or asked.
 *
 * They stay as long as the process lives: this module is never unloaded (-z nodelete).
 */
#include <stdio.h>
#include <string.h>
#include <sybdb.h>
#include <sybfront.h>
#include <sys/mman.h>
#include <unistd.h>

#include "store/mssql/mssql.h"

_Thread_local struct mssql_said *mssql_said;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int settings = -1;
static struct bytes sections; /* what the settings say */
static unsigned n_sections;
static EHANDLEFUNC error_before;
static MHANDLEFUNC message_before;

static int on_error(DBPROCESS *db, int severity, int error, int os_error, char *text, char *os_text)
{
	struct mssql_said *said = mssql_said;

	if (said == NULL)
		return error_before != NULL
			       ? error_before(db, severity, error, os_error, text, os_text)
			       : INT_CANCEL;
	if (error == SYBESMSG || said->error != 0 || said->library_error != 0)
		return INT_CANCEL; /* what is told already */
	said->library_error = error;
	(void)snprintf(said->text, sizeof(said->text), "%s", text != NULL ? text : "");
	return INT_CANCEL;
}

/* Up to level 10 they are remarks. */
static int on_message(DBPROCESS *db, DBINT number, int state, int level, char *text, char *server,
		      char *procedure, int line)
{
	struct mssql_said *said = mssql_said;

	if (said == NULL)
		return message_before != NULL ? message_before(db, number, state, level, text,
							       server, procedure, line)
					      : 0;
	if (level <= 10 || said->error != 0)
		return 0;
	said->error = number;
	said->level = level;
	(void)snprintf(said->text, sizeof(said->text), "%s", text != NULL ? text : "");
	return 0;
}

/* With the lock held. */
static int set_up(struct baton_error *err)
{
	char path[64];

	if (settings >= 0)
		return 0;
	int fd = memfd_create("baton-mssql", MFD_CLOEXEC);

	if (fd < 0)
		return store_fail(err, BATON_E_SYSTEM, "no memory for the settings of db-lib");
	if (dbinit() == FAIL) {
		(void)close(fd);
		return store_fail(err, BATON_E_SYSTEM, "the client library can't be set up");
	}
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	dbsetifile(path);
	(void)dbsetlogintime(MSSQL_LOGIN_S);
	error_before = dberrhandle(on_error);
	message_before = dbmsghandle(on_message);
	settings = fd;
	return 0;
}

/* With the lock held. "system": what the system trusts. What is there already is used again. */
static bool add_section(struct mssql_options *o, size_t i)
{
	const struct option_host *h = &o->login.hosts[i];
	char *section = o->sections[i];
	static const char *const words[] = {"require", "request", "off"};
	char body[OPTION_PATH_MAX + 2 * MSSQL_TEXT_MAX];
	int n = snprintf(body, sizeof(body),
			 "\thost = %s\n\tport = %s\n\ttds version = 7.4\n"
			 "\tclient charset = UTF-8\n\tencryption = %s\n\tca file = %s\n"
			 "\tcheck certificate hostname = yes\n",
			 h->name, h->port, words[o->encryption],
			 o->files.ca[0] != '\0' ? o->files.ca : "system");
	const char *same = sections.n > 0 ? strstr(sections.at, body) : NULL;
	size_t end = sections.n;

	if (same != NULL) { /* its name stands before it: [name]\n */
		const char *name = memrchr(sections.at, '[', (size_t)(same - sections.at));

		name++;
		(void)snprintf(section, sizeof(o->sections[i]), "%.*s", (int)(same - name) - 2,
			       name);
		return true;
	}
	(void)snprintf(section, sizeof(o->sections[i]), "baton-%u", ++n_sections);
	bytes_print(&sections, "[%s]\n%s", section, body);
	return n < (int)sizeof(body) && !sections.has_failed &&
	       write(settings, sections.at + end, sections.n - end) == (ssize_t)(sections.n - end);
}

int mssql_library_open(struct mssql_options *o, struct baton_error *err)
{
	(void)pthread_mutex_lock(&lock);
	int failed = set_up(err);

	for (size_t i = 0; failed == 0 && i < o->login.n_hosts; i++)
		if (!add_section(o, i))
			failed = store_fail(err, BATON_E_SYSTEM,
					    "no memory for the settings of db-lib");
	(void)pthread_mutex_unlock(&lock);
	return failed;
}
