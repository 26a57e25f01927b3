/*
 * doctor.c: examines the directory of a store: its file system, its rights, and whether the kernel
 * does there what the protocol needs: locks, links that one caller wins, syncs, and events. If the
 * directory isn't there yet, it is not made, and the one above it is examined.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/doctor.h"
#include "store/file/file.h"

#define SPACE_MIN ((uint64_t)16 << 20)
#define INODES_MIN 1000
/* The kernel's number of the time namespace that processes are in unless they have left it. */
#define TIMENS_FIRST 0xeffffffau

static const char elsewhere[] =
	"Use a directory on ext4, xfs, btrfs, f2fs or zfs of this machine; for candidates on "
	"several machines use a store with a server, such as redis: or postgres:.";

/* ---- the directory ---- */

/* Opens DIR if *is_there, else the directory above it. -1: call->error says why. */
static int open_dir(struct file_lane *lane, bool *is_there)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
	int dir = open(lane->store->path, flags);

	*is_there = dir >= 0 || errno != ENOENT;
	if (dir >= 0)
		return dir;
	if (*is_there)
		return file_errno(lane, "open", FILE_DIRECTORY, "");
	char *above = strdup(lane->store->path);
	char *slash = above != NULL ? strrchr(above, '/') : NULL;

	if (slash != NULL) {
		slash[slash == above] = '\0';
		dir = open(above, flags);
	}
	free(above);
	return dir >= 0 ? dir : file_errno(lane, "open", "the folder above", "");
}

/* Whether the folder is empty or has a store in it. A folder with other things is hardly meant for
 * a store, so nothing is made there. */
static bool is_meant_for_store(int dir)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *all = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *e;
	size_t n = 0;

	if (all == NULL) {
		if (fd >= 0)
			(void)close(fd);
		return false;
	}
	while ((e = readdir(all)) != NULL)
		n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
	(void)closedir(all);
	return n == 0 || faccessat(dir, "elections", F_OK, 0) == 0;
}

/* The name of a file system that can't be used. */
static const char *other_file_system(unsigned long type)
{
	static const struct {
		unsigned long type;
		const char *name;
	} others[] = {
		{0x6969, "NFS"},        {0xff534d42, "CIFS"},
		{0xfe534d42, "SMB"},    {0x65735546, "FUSE"},
		{0x01021997, "9p"},     {0x00c36400, "CephFS"},
		{0x01161970, "GFS2"},   {0x7461636f, "OCFS2"},
		{0x0bd00bd0, "Lustre"}, {FILE_OVERLAYFS, "overlayfs, the layer of a container"}};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (type == others[i].type)
			return others[i].name;
	return "one that baton doesn't know";
}

/* False: the file system can't be used. */
static bool look_at_file_system(struct file_lane *lane, struct doctor *d, unsigned long type)
{
	const char *name = file_system_name(type);
	bool force = lane->store->force;

	if (name == NULL) {
		doctor_tell(
			d, force ? BATON_FINDING_WARNING : BATON_FINDING_ERROR, "file system",
			elsewhere,
			"The directory is on %s (type %lx)%s: it may be shared between machines "
			"that know nothing of each other's locks and clocks.",
			other_file_system(type), type, force ? ", which force=1 allows" : "");
		return force;
	}
	doctor_tell(d, BATON_FINDING_OK, "file system", NULL,
		    "The directory is on %s: one leader among all processes of this host.", name);
	if (type == FILE_TMPFS)
		doctor_tell(d, BATON_FINDING_WARNING, "persistence",
			    "Use a directory on a disk where a resource checks terms.",
			    "tmpfs is empty after a boot: terms begin anew.");
	else
		doctor_tell(d, BATON_FINDING_OK, "persistence", NULL,
			    "Claims and terms are on the disk before a candidate leads by them.");
	return true;
}

static bool look_at_rights(const struct file_lane *lane, struct doctor *d, int dir)
{
	mode_t wanted = file_dir_mode(lane->store) & 0777;
	struct stat st;

	if (fstat(dir, &st) != 0 || faccessat(dir, ".", R_OK | W_OK | X_OK, AT_EACCESS) != 0) {
		doctor_tell(d, BATON_FINDING_ERROR, "rights",
			    "Give the directory to this user, or share it by a group: "
			    "install -d -g GROUP -m 2770 DIR, and mode=0770 in the URL.",
			    "This user may not read and write there: %s.", strerror(errno));
		return false;
	}
	if ((st.st_mode & S_IWOTH) != 0 && (st.st_mode & S_ISVTX) == 0)
		doctor_tell(d, BATON_FINDING_WARNING, "rights", "chmod o-w it, or chmod +t.",
			    "Every user may remove the files of other users there (mode %04o).",
			    (unsigned)st.st_mode & 07777);
	else if ((st.st_mode & wanted & 0070) != (wanted & 0070))
		doctor_tell(d, BATON_FINDING_WARNING, "rights",
			    "chmod the directory, or its owner does it.",
			    "mode=%04o is meant to share it, and the directory's own mode is "
			    "%04o.",
			    (unsigned)wanted, (unsigned)st.st_mode & 07777);
	else
		doctor_tell(d, BATON_FINDING_OK, "rights", NULL,
			    "This user may read and write there (mode %04o).",
			    (unsigned)st.st_mode & 07777);
	return true;
}

static void look_at_space(struct doctor *d, int dir)
{
	struct statvfs fs;

	if (fstatvfs(dir, &fs) != 0)
		return;
	uint64_t free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
	bool is_short = free_bytes < SPACE_MIN || (fs.f_files > 0 && fs.f_favail < INODES_MIN);

	doctor_tell(d, is_short ? BATON_FINDING_WARNING : BATON_FINDING_OK, "space",
		    is_short ? "Free some: when it is full no candidate can renew or lead." : NULL,
		    "%llu MiB and %llu files are left.", (unsigned long long)(free_bytes >> 20),
		    (unsigned long long)fs.f_favail);
}

/* ---- what the kernel does there ---- */

/* Whether a lock that is held is seen through another open file description of the same file. */
static bool locks_hold(struct file_lane *lane, const struct file_tmp *tmp)
{
	int other = openat(lane->root->tmp, tmp->name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	bool is_seen = other >= 0 && file_is_locked(other) == 1;

	if (other >= 0)
		(void)close(other);
	return is_seen;
}

/* Whether the second of two links to the same name fails. */
static bool links_decide(struct file_lane *lane, const struct file_tmp *tmp)
{
	char name[sizeof(tmp->name) + 8];

	(void)snprintf(name, sizeof(name), "%s.twice", tmp->name);
	bool first = file_tmp_link(lane, tmp, lane->root->tmp, name) == 0;
	bool second = file_tmp_link(lane, tmp, lane->root->tmp, name) != 0 && errno == EEXIST;

	(void)unlinkat(lane->root->tmp, name, 0);
	return first && second;
}

static int try_files(struct file_lane *lane, struct doctor *d)
{
	struct file_tmp tmp = {.fd = -1};
	struct doctor_trips trips = {.n = 0};
	int rc = 0;

	if (file_tmp_make(lane, &tmp, "doctor\n", 7) != 0)
		return -1;
	bool good = locks_hold(lane, &tmp) && links_decide(lane, &tmp);

	doctor_tell(
		d, good ? BATON_FINDING_OK : BATON_FINDING_ERROR, "locks", good ? NULL : elsewhere,
		good ? "Locks work, and of two calls of link(2) exactly one succeeds."
		     : "Other processes don't see a lock, or two calls of link(2) both succeed.");
	for (int i = 0; i < DOCTOR_TRIPS && rc == 0; i++) {
		uint64_t began_ns = clock_boot_ns();

		rc = write(tmp.fd, "x", 1) == 1 ? file_tmp_sync(lane, &tmp)
						: file_errno(lane, "write", "tmp", tmp.name);
		doctor_trip(&trips, began_ns, clock_boot_ns());
	}
	if (rc == 0)
		doctor_tell_trips(d, &trips, "A sync of the disk");
	file_tmp_done(lane, &tmp);
	return rc;
}

static void look_at_notices(struct doctor *d)
{
	int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	if (fd >= 0) {
		(void)close(fd);
		doctor_tell(d, BATON_FINDING_OK, "notices", NULL,
			    "The kernel tells standbys of changes (inotify).");
	} else {
		doctor_tell(
			d, BATON_FINDING_WARNING, "notices",
			"Raise fs.inotify.max_user_instances, or run fewer programs as this "
			"user.",
			"The kernel has no more inotify instances for this user: standbys would "
			"have to poll.");
	}
}

static void look_at_clock(const struct file_lane *lane, struct doctor *d)
{
	uint64_t ns = lane->root->timens;

	if (ns == 0 || ns == TIMENS_FIRST)
		doctor_tell(d, BATON_FINDING_OK, "clock", NULL,
			    "All processes of this host have one clock, which counts suspend.");
	else
		doctor_tell(d, BATON_FINDING_NOTE, "clock",
			    "Where you can, run all candidates in one time namespace.",
			    "This process is in a time namespace of its own: a frozen leader of "
			    "another one is replaced only after it was watched for a whole lease.");
}

/* Examines a directory that is there and may be used. */
static int look_inside(struct file_lane *lane, struct baton_call *call, struct doctor *d)
{
	if (file_enter(lane, call, false) != 0)
		return BATON_OUTCOME_FAILED;
	int rc = try_files(lane, d);

	look_at_notices(d);
	look_at_clock(lane, d);
	file_leave(lane);
	return rc == 0 ? BATON_OUTCOME_OK : BATON_OUTCOME_FAILED;
}

int file_examine(void *l, struct baton_call *call, doctor_found *found, void *arg)
{
	struct file_lane *lane = l;
	struct doctor d = {.found = found, .arg = arg};
	unsigned long type = 0;
	bool is_there;

	lane->call = call;
	int dir = open_dir(lane, &is_there);

	if (dir < 0 || file_system_type(lane, dir, &type) != 0) {
		if (dir >= 0)
			(void)close(dir);
		return BATON_OUTCOME_FAILED;
	}
	if (!is_there)
		doctor_tell(&d, BATON_FINDING_NOTE, "directory", NULL,
			    "%s isn't there yet; the first candidate makes it. The other findings "
			    "are about its parent directory.",
			    lane->store->path);
	bool can_be_used = look_at_file_system(lane, &d, type);

	can_be_used = look_at_rights(lane, &d, dir) && can_be_used;
	if (can_be_used)
		look_at_space(&d, dir);
	if (is_there && !is_meant_for_store(dir)) {
		doctor_tell(&d, BATON_FINDING_NOTE, "directory", "Check that it is the right one.",
			    "%s holds other things, and no elections: nothing is tried in it.",
			    lane->store->path);
		is_there = false;
	}
	(void)close(dir);
	return can_be_used && is_there ? look_inside(lane, call, &d) : BATON_OUTCOME_REFUSED;
}
