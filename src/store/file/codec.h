/*
 * codec.h: what stands in the files of the store, as structs and as text.
 *
 * Every file is a few lines of "key value" in a fixed order, between a line that says what the file
 * is and a line that says that it is complete. Strings are percent-encoded, so that no value spans
 * lines. The parsers take exactly what the writers make, and nothing else: all content is untrusted
 * (a disk, an administrator, another user), and a file that is not valid must stop us (S9). Parsers
 * and writers are pure functions, made to be fuzzed.
 */
#ifndef BATON_FILE_TEXT_H
#define BATON_FILE_TEXT_H

#include <baton-store.h>

#define FILE_TEXT_MAX 8192 /* no file of ours is longer */
#define FILE_BOOT_ID 36    /* bytes of the kernel's boot id */
#define FILE_WORD_MAX 31
/* "%xx" for each byte of the longest name, and a '+' and '/' for each piece of it. */
#define FILE_PATH_SIZE (BATON_NAME_MAX * 3 + 32)

/* A claim: the file <seq> of an election. */
struct file_claim {
	uint64_t seq;
	uint64_t term;
	uint64_t nonce;
	uint64_t ttl_ns; /* that of its lease; needed if the lease is missing */
	uint64_t timens;
	uint64_t since_ns; /* before the link, on the boot clock of that boot and namespace */
	int64_t since_ms;
	int64_t priority;
	uint64_t score_permille;
	char boot[FILE_BOOT_ID + 1];
	char lease[BATON_LEASE_ID_MAX + 1];
	char election[BATON_NAME_MAX + 1]; /* the full name, which is compared (rule 5) */
	char owner[BATON_NAME_MAX + 1];
	char address[BATON_NAME_MAX + 1];
	char metadata[BATON_METADATA_MAX + 1];
	char after[FILE_WORD_MAX + 1]; /* how the leadership before it ended, as far as we saw */
};

/* The end of a claim: the file <seq>.end. */
struct file_end {
	uint64_t seq;
	uint64_t timens;
	uint64_t until_ns;          /* when it had ended, on the clock of that boot and namespace */
	uint64_t reserved_until_ns; /* on the same clock */
	int64_t until_ms;
	char boot[FILE_BOOT_ID + 1];
	char reason[FILE_WORD_MAX + 1];
	char reserved_for[BATON_NAME_MAX + 1]; /* "": no reservation */
	char note[BATON_NOTE_MAX + 1];         /* the note of the order that was obeyed; "": none */
};

/* A lease: leases/<id>. */
struct file_lease {
	uint64_t serial; /* grows with each renewal */
	uint64_t expires_ns;
	uint64_t ttl_ns;
	uint64_t timens;  /* the inode of the time namespace whose clock this is */
	uint64_t pid;     /* for administrators that read the file */
	uint64_t outlive; /* 0 or 1: others trust its expiry, so its owner's death ends nothing */
	char id[BATON_LEASE_ID_MAX + 1];
	char boot[FILE_BOOT_ID + 1];
	char owner[BATON_NAME_MAX + 1];
};

/* A candidate of one election: leases/<id>.candidate/<election>. */
struct file_candidate {
	int64_t updated_ms;
	int64_t priority;
	uint64_t score_permille;
	uint64_t is_healthy; /* 0 or 1, by the candidate's own minimum */
	char election[BATON_NAME_MAX + 1];
	char owner[BATON_NAME_MAX + 1];
	char address[BATON_NAME_MAX + 1];
	char metadata[BATON_METADATA_MAX + 1];
};

/* An order: order-<term>-<id> of an election. */
struct file_order {
	uint64_t id;
	uint64_t term;
	uint64_t quiet_ms;
	uint64_t kind;
	int64_t issued_ms;
	char target[BATON_NAME_MAX + 1];
	char note[BATON_NOTE_MAX + 1];
};

/* 0, or -1: the text is not exactly what the writer makes. *out is then undefined. */
int file_parse_claim(const char *text, size_t n, struct file_claim *out);
int file_parse_end(const char *text, size_t n, struct file_end *out);
int file_parse_lease(const char *text, size_t n, struct file_lease *out);
int file_parse_candidate(const char *text, size_t n, struct file_candidate *out);
int file_parse_order(const char *text, size_t n, struct file_order *out);

/* The text's length, or 0: a value doesn't fit its field. The buffer has FILE_TEXT_MAX bytes. */
size_t file_write_claim(const struct file_claim *claim, char *out);
size_t file_write_end(const struct file_end *end, char *out);
size_t file_write_lease(const struct file_lease *lease, char *out);
size_t file_write_candidate(const struct file_candidate *candidate, char *out);
size_t file_write_order(const struct file_order *order, char *out);

/*
 * An election's name as a path below elections/, and back. Only lower case letters, digits, '_',
 * '-' and '.' (but not first) stand for themselves, and all else is "%xx". So no two names share a
 * path, not even if the file system folds cases. A text that is too long for a file's name is split
 * into folders. All of these but the last end in '+', which no election's folder does.
 */
void file_path_of(const char *name, char out[FILE_PATH_SIZE]);
int file_name_of(const char *path, char out[BATON_NAME_MAX + 1]);

/* Whether the text consists of hex digits and '-'. A lease's id is used as a file's name, wherever
 * it was read. */
bool file_is_lease_id(const char *id);

#endif
