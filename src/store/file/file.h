/*
 * file.h: what the files of the file driver share. campaign.c, release.c and lease.c describe the
 * protocol. tests/model/file proves it; its steps have the same names.
 *
 *     DIR/leases/<id>              a lease: when it expires
 *     DIR/leases/<id>.alive        locked as long as the lease's process lives
 *     DIR/leases/<id>.candidate/   how the process shows itself: one file for each election
 *     DIR/elections/<name>/<seq>   a claim; the highest number is the present one
 *     DIR/elections/<name>/<seq>.end             that claim was given back
 *     DIR/elections/<name>/order-<term>-<id>     an order for the leader of that term
 *     DIR/elections/<name>/pause-<n>             no candidate may lead
 *     DIR/elections/<name>/pause-<n>.end         that pause is over; only the highest number counts
 *     (beside them `work`, which the work itself locks: see baton_work_lock)
 *     DIR/tmp/                     files that are not complete; locked while they are written
 *
 * No file is ever changed in place by two processes, and no process waits for another. Every
 * decision is one link(2), which exactly one caller wins.
 */
#ifndef BATON_FILE_H
#define BATON_FILE_H

#include <pthread.h>
#include <sys/stat.h>

#include "base/name_table.h"
#include "store/base.h"
#include "store/file/codec.h"

#pragma GCC visibility push(hidden)

#define FILE_SEQ_DIGITS 20
#define FILE_ORDERS_MAX 16
#define FILE_UNCLOCKED_MAX 64
#define FILE_TMPFS 0x01021994ul
#define FILE_OVERLAYFS 0x794c7630ul
#define FILE_GROUP_KEPT ((gid_t)-1) /* as chown(2) has it */

/* The opened directories. They are counted, because a lane uses them during a call. */
struct file_root {
	int dir;
	int leases;
	int elections;
	int tmp;
	unsigned refs; /* store->base.lock */
	dev_t dev;
	ino_t ino;
	gid_t gid;
	ino_t parts[3]; /* the inodes of leases, elections and tmp */
	uint64_t timens;
	char boot[FILE_BOOT_ID + 1];
};

/* A lease of this process. */
struct file_own_lease {
	struct file_own_lease *next;
	struct file_root *root;
	uint64_t expires_ns;
	uint64_t serial;
	ino_t ino; /* the inode of the lease file that we wrote last */
	int alive; /* the locked descriptor: stays open while a candidate may lead by it */
	bool lost; /* for good */
	bool busy; /* a renewal is under way, which works on a copy */
	char id[BATON_LEASE_ID_MAX + 1];
};

enum file_claim_state {
	FILE_LINKING = 1, /* a campaign is linking it, and will set the state */
	FILE_LINKED,
	FILE_DOUBT, /* not known; the next renewal finds out */
};

/* A claim that this process has linked, or may have. */
struct file_own_claim {
	struct name_node node; /* by name */
	uint64_t seq;
	uint64_t term;
	uint64_t nonce;
	uint64_t round; /* the round in which it was last checked */
	int state;
	char lease[BATON_LEASE_ID_MAX + 1];
	char name[];
};

/* A lease that our clock can't judge, or that is missing: since when it is unchanged. */
struct file_unclocked {
	uint64_t serial;
	uint64_t since_ns;
	char id[BATON_LEASE_ID_MAX + 1];
};

struct file_watch;
struct file_lane;

struct file_store {
	struct store_base base; /* its lock is never held during I/O that can take long */
	char *path;
	mode_t mode;
	uint64_t history;
	bool force;
	uint64_t random;  /* makes the names of temporary files our own */
	uint64_t counter; /* atomic: numbers them */
	/* base.lock protects everything below. */
	struct file_root *root;
	struct file_own_lease *own_leases;
	struct name_table own_claims;
	uint64_t round; /* renewals check each claim once in a round */
	uint64_t swept_ns;
	struct file_unclocked unclocked[FILE_UNCLOCKED_MAX];
	struct file_watch *watch;
};

struct file_lane {
	struct store_lane link;
	struct file_store *store;
	struct file_root *root; /* during a call */
	struct baton_call *call;
	struct file_watch *watch; /* NULL unless this is the watch lane */
	char *scan;
	size_t scan_size;
	size_t scan_used;
	char text[FILE_TEXT_MAX + 1];
};

/* The names in an election's folder, all as of one instant. */
struct file_folder {
	uint64_t highest; /* 0: no claim yet */
	uint64_t lowest;
	uint32_t n_orders;
	bool ended; /* the highest claim has its end */
	bool paused;
	uint64_t last_pause; /* the highest number of a pause or of an end of one; 0: none yet */
	struct {
		uint64_t term;
		uint64_t id;
	} orders[FILE_ORDERS_MAX];
};

enum file_verdict {
	FILE_ALIVE = 1,
	FILE_DIED,    /* the kernel says that no process is left that could renew it */
	FILE_EXPIRED, /* its owner will see that, too, when it renews late */
	FILE_GONE,    /* closed by its owner, or swept after its owner's death */
};

/* The folder, and what the present claim means. */
struct file_election {
	struct file_folder folder;
	struct file_claim claim; /* if folder.highest != 0 */
	struct file_end end;     /* if folder.ended */
	int verdict;             /* if not ended */
	uint64_t free_in_ns;
	bool held;
	bool watched;
};

/* ---- errors (error.c): all return -1, as store_fail() does ---- */

#define FILE_DIRECTORY "the directory" /* DIR itself, for calls that name a file */
/* Writes the sentence for errno: which file, what happened, what to do. */
int file_errno(struct file_lane *lane, const char *what, const char *where, const char *name);
int file_corrupt(struct file_lane *lane, const char *where, const char *name);
/* -1 if the call's time is up. */
int file_in_time(struct file_lane *lane);

/* ---- the URL (options.c) ---- */

int file_parse_url(struct file_store *store, const char *text, struct baton_error *err);

/* ---- directories (root.c) ---- */

/* file_enter() begins a call, and opens the store if necessary. file_leave() ends the call, and
 * gives the directories back. */
int file_enter(struct file_lane *lane, struct baton_call *call, bool create);
void file_leave(struct file_lane *lane);
void file_root_keep(struct file_store *store, struct file_root *root);
void file_root_drop(struct file_store *store, struct file_root *root);
/* The type of a directory's file system; and the type's name, or NULL if the protocol doesn't hold
 * there. */
int file_system_type(struct file_lane *lane, int dir, unsigned long *type);
const char *file_system_name(unsigned long type);
/* Whether DIR and its parts are still the directories that we opened. */
bool file_root_stands(const struct file_store *store, const struct file_root *root);
/* Opens an election's folder. -1 with *missing set: there is none, and create is false. */
int file_open_election(struct file_lane *lane, const char *path, bool create, bool *missing);
/* Syncs the folders above an election's, up to elections/: for its first claim. */
int file_sync_above(struct file_lane *lane, int dir);
/* Makes all folders of the path but its last piece. */
int file_make_parents(struct file_lane *lane, int dir, const char *path);
/* Like mkdirat(2), but the folder has at least the owner's bits, whatever the umask is. */
int file_make_dir(const struct file_store *store, int at, const char *path);
/* Gives a folder of ours the mode of the store and this group. */
int file_set_up_dir(struct file_lane *lane, int fd, gid_t gid, const char *where, const char *name);
mode_t file_mode(const struct file_store *store);
mode_t file_dir_mode(const struct file_store *store);

/* ---- files (io.c) ---- */

/* A temporary file. It is locked while we live, so that only the files of dead processes are
 * swept. */
struct file_tmp {
	int fd;
	char name[48];
};

int file_tmp_make(struct file_lane *lane, struct file_tmp *tmp, const char *text, size_t n);
int file_tmp_sync(struct file_lane *lane, struct file_tmp *tmp);
/* 0, or -1 with errno. */
int file_tmp_link(struct file_lane *lane, const struct file_tmp *tmp, int dir, const char *name);
/* Makes a file and renames it into place: it is there complete, or not at all. -1 with *doubt set:
 * it is unknown whether the file is there. */
int file_replace(struct file_lane *lane, int dir, const char *name, const char *text, size_t n,
		 bool sync, bool *doubt);
void file_tmp_done(struct file_lane *lane, struct file_tmp *tmp);

enum file_got { FILE_GOT_ERROR = -1, FILE_GOT_NONE, FILE_GOT };
/* Reads a whole small file into lane->text. */
int file_read(struct file_lane *lane, int dir, const char *name, const char *where, size_t *n);
int file_sync_dir(struct file_lane *lane, int dir, const char *name);
/* Whether a process holds the file's lock. -1 with errno. */
int file_is_locked(int fd);

/* Reads all names of a folder in one system call. */
int file_scan(struct file_lane *lane, int dir, const char *where);
/* The first of them, as many as there is room for. */
void file_scan_some(struct file_lane *lane, int dir);
/* The next name of the last scan, or NULL. */
const char *file_scan_next(const struct file_lane *lane, size_t *at);
int file_read_folder(struct file_lane *lane, int dir, const char *name, struct file_folder *out);
/* "<20 digits>" or "<20 digits>.end" as a number, or 0. */
uint64_t file_seq_of(const char *name, bool *end);
void file_seq_name(uint64_t seq, bool end, char out[32]);
bool file_order_of(const char *name, uint64_t *term, uint64_t *id);
/* "pause-<20 digits>" or "pause-<20 digits>.end" as a number, or 0. */
uint64_t file_pause_of(const char *name, bool *end);
void file_pause_name(uint64_t number, bool end, char out[32]);

/* ---- leases (lease.c, expiry.c, sweep.c) ---- */

int file_lease_open(void *l, struct baton_call *call, const struct baton_lease *lease);
int file_lease_renew(void *l, struct baton_call *call, const struct baton_lease *lease,
		     uint32_t *n_held);
int file_lease_close(void *l, struct baton_call *call, const struct baton_lease *lease);
int file_claims(void *l, struct baton_call *call, const struct baton_lease *lease,
		void (*found)(void *arg, const char *name, uint64_t nonce, uint64_t term),
		void *arg);
/* When our lease expires; 0: it is lost, or is not ours. */
uint64_t file_own_expires_ns(struct file_lane *lane, const char *id);
/* Whether a lease's owner can still count on it: FILE_ALIVE, or why not. -1: an error. */
int file_lease_verdict(struct file_lane *lane, const char *id, uint64_t ttl_ns,
		       uint64_t *free_in_ns);
/* If a sweep is due: removes what dead processes have left behind, as far as time and permissions
 * allow. */
void file_sweep(struct file_lane *lane);
/* Removes leases/<id>.candidate. */
void file_remove_candidates(struct file_lane *lane, const char *id);

/* ---- the claims of this process (own_claims.c) ---- */

int file_own_claim_add(struct file_lane *lane, const char *name, const char *lease, uint64_t seq,
		       uint64_t term, uint64_t nonce);
void file_own_claim_set(struct file_lane *lane, const char *name, uint64_t nonce, int state);
void file_own_claim_drop(struct file_lane *lane, const char *name, uint64_t nonce);
/* Copies up to max claims on this lease. The caller frees each. */
size_t file_own_claims_copy(struct file_store *store, const char *lease,
			    struct file_own_claim **out, size_t max);
uint32_t file_own_claims_count(struct file_store *store, const char *lease);
/* file_own_claim_stands(): whether a claim still stands in the store. file_own_claim_note(): notes
 * the answer. */
int file_own_claim_stands(struct file_lane *lane, const struct file_own_claim *claim, bool *stands);
void file_own_claim_note(struct file_lane *lane, const struct file_own_claim *claim, bool stands);
/* Checks some claims, in turn, and forgets those that no longer stand. */
int file_own_claims_verify(struct file_lane *lane, const char *lease, uint64_t until_ns);

/* ---- campaign and release (campaign.c, release.c) ---- */

void file_campaign(void *l, struct baton_call *call, const struct baton_lease *lease,
		   struct baton_campaign *list, size_t n);
void file_release(void *l, struct baton_call *call, struct baton_release *list, size_t n);
/* Gives back all claims on this lease, as far as possible: the lease ends right afterwards. */
void file_end_all(struct file_lane *lane, const char *id, uint64_t expires_ns, const char *reason);

/* ---- observing (observe.c) ---- */

void file_observe(void *l, struct baton_call *call, struct baton_observation *list, size_t n);
/* The folder, and the present claim and its end, if there are any. */
int file_read_claim(struct file_lane *lane, int dir, const char *name, struct file_election *out);
/* The same, with the verdict on the claim's lease. */
int file_read_election(struct file_lane *lane, int dir, const char *name,
		       struct file_election *out);
/* id: that of the candidate that asks, or "". */
int file_fill_record(struct file_lane *lane, int dir, const char *name, const char *id,
		     const struct file_election *election, struct baton_record *record);
/* Rule 10: reads only orders for this very leadership, and takes the latest of several. best->id is
 * 0 if there is none. */
int file_read_order(struct file_lane *lane, int dir, const char *name,
		    const struct file_election *election, struct file_order *best);
/* How long the election is reserved for another candidate than this one; 0: it isn't. */
uint64_t file_reserved_ns(struct file_lane *lane, const struct file_election *election,
			  const char *id);

/* ---- orders, history and names (orders.c, history.c, list.c) ---- */

int file_order(void *l, struct baton_call *call, const char *name, const struct baton_order *order);
int file_pause(void *l, struct baton_call *call, const char *name, bool paused);
int file_history(void *l, struct baton_call *call, const char *name, size_t max,
		 void (*found)(void *arg, const struct baton_leadership *leadership), void *arg);
int file_list(void *l, struct baton_call *call, const char *prefix, const char *after, size_t max,
	      void (*found)(void *arg, const char *name), void *arg);

/* ---- candidates (candidates.c) ---- */

void file_publish(void *l, struct baton_call *call, const struct baton_lease *lease,
		  struct baton_publication *list, size_t n);
int file_withdraw(void *l, struct baton_call *call, const struct baton_lease *lease,
		  const char *name);
int file_candidates(void *l, struct baton_call *call, const char *name,
		    void (*found)(void *arg, const struct baton_candidate *candidate), void *arg);
/* 1: that lease's owner is a candidate of this election; 0: it isn't. */
int file_read_candidate(struct file_lane *lane, const char *lease, const char *name,
			struct file_candidate *out);
/* About how many candidates there are, at the cost of a few system calls; 0: they are few, or
 * not counted. */
uint32_t file_crowd(struct file_lane *lane, const char *name);
/* 1: a living, healthy candidate has this id. */
int file_has_candidate(struct file_lane *lane, const char *name, const char *id);

/* ---- examining (doctor.c) ---- */

int file_examine(void *l, struct baton_call *call,
		 void (*found)(void *arg, const struct baton_finding *finding), void *arg);

/* ---- the watch (watch.c) ---- */

int file_watch_new(struct file_lane *lane, struct baton_error *err);
void file_watch_free(struct file_lane *lane);
void file_watch_forget(struct file_lane *lane);
int file_watch_add(void *l, const char *name, uint64_t cookie);
void file_watch_remove(void *l, const char *name, uint64_t cookie);
int file_watch_wait(void *l, struct baton_call *call, uint64_t *cookies, size_t max);
void file_watch_wake(void *l);
/* Wakes the watch lane. */
void file_watch_nudge(const struct file_watch *w);
/* To call after an election was read, and before the verdict on the lease that holds it ("": none).
 * True: the end of that claim will cause a hint. */
bool file_watch_holder(struct file_store *store, const char *name, const char *lease,
		       uint64_t ttl_ns);
/* To call after the verdict: when that lease expires unless it is renewed. */
void file_watch_expiry(struct file_store *store, const char *lease, uint64_t free_in_ns);

#pragma GCC visibility pop

#endif
