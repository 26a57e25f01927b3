/*
 * library.c: what db-lib has once for the whole process instead of once for each connection.
 *
 *   handlers     for errors and messages. Ours look at the thread: an error on a worker's thread
 *                goes to that worker, and all others go to the handler that was set before.
 *   login time   MSSQL_LOGIN_S. A caller never waits for a login longer than its deadline, but a
 *                worker that was given up waits that long.
 *   settings     for what stands in freetds.conf (encryption, whom to trust, that the name is
 *                checked) there is no function that sets it for one connection. So it stands in a
 *                file in memory, with a section for each host of each store. No file of the user is
 *                needed or read.
 *
 * All this stays as long as the process lives: this module is never unloaded (-z nodelete).
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
static struct bytes sections; /* the text of the settings */
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
		return INT_CANCEL; /* only repeats what was told already */
	said->library_error = error;
	said->os_error = os_error > 0 ? os_error : 0;
	(void)snprintf(said->text, sizeof(said->text), "%s", text != NULL ? text : "");
	return INT_CANCEL;
}

/* Azure SQL says this when it ends a session, for example for a failover: 40197, or the number that
 * the text of 40197 has. The statement may have been committed before. */
static bool is_in_doubt(DBINT error)
{
	return error == 40143 || error == 40166 || error == 40197 || error == 40540;
}

/* Messages up to level 10 are only remarks. */
static int on_message(DBPROCESS *db, DBINT number, int state, int level, char *text, char *server,
		      char *procedure, int line)
{
	struct mssql_said *said = mssql_said;

	if (said == NULL)
		return message_before != NULL ? message_before(db, number, state, level, text,
							       server, procedure, line)
					      : 0;
	said->is_in_doubt = said->is_in_doubt || is_in_doubt(number);
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

/* With the lock held. Adds a host's section, or uses an equal one again. "system": the authorities
 * that the system trusts. */
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

	if (same != NULL) { /* its name stands before the body: [name]\n */
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
