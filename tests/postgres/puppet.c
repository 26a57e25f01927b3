/*
 * puppet.c: the driver's verbs, one for each line that is read, on lanes of one store. What a
 * library makes of them isn't here: so a test can break a session at any moment, and see what the
 * next verb does about it. `puppet MODULE URL`; each line is answered by one:
 *
 *   open LEASE MS        renew LEASE       close LEASE        examine
 *   claim LEASE NAME     many LEASE N SIZE (claims of N elections, with metadata of that size)
 *   watch NAME           wait MS (for hints; SIGUSR1 wakes it)
 *   history NAME         (on the connection of the lane itself)
 *
 * "@MS" before a verb is the time that its call has; else it has ten seconds.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "baton-store.h"

#define MANY_MAX 512
#define USUAL_MS 10000
#define TTL_NS 9000000000u

static const struct baton_driver *d;
static void *lanes[3];
static struct baton_call call;
static uint64_t ttl_ns = TTL_NS;
static char metadata[BATON_METADATA_MAX + 1];

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static const char *word(int outcome)
{
	static const char *const words[] = {"?", "ok", "refused", "failed", "unknown"};

	return outcome > 0 && outcome <= BATON_OUTCOME_UNKNOWN ? words[outcome] : words[0];
}

static struct baton_lease lease_of(const char *id)
{
	struct baton_lease lease = {.ttl_ns = ttl_ns, .owner = "puppet", .address = ""};

	snprintf(lease.id, sizeof(lease.id), "%s", id);
	return lease;
}

static void campaign(const char *lease_id, const char *name, size_t n, size_t size)
{
	static struct baton_campaign list[MANY_MAX];
	static struct baton_record records[MANY_MAX];
	static char names[MANY_MAX][BATON_NAME_MAX + 1];
	static uint64_t nonce;
	struct baton_lease lease = lease_of(lease_id);

	if (n > MANY_MAX)
		n = MANY_MAX;
	memset(metadata, 'm', size < BATON_METADATA_MAX ? size : BATON_METADATA_MAX);
	for (size_t i = 0; i < n; i++) {
		if (n == 1)
			snprintf(names[i], sizeof(names[i]), "%s", name);
		else
			snprintf(names[i], sizeof(names[i]), "%s%zu", name, i);
		nonce++;
		list[i] = (struct baton_campaign){
			.name = names[i], .nonce = nonce, .record = &records[i]};
		list[i].profile.metadata = size > 0 ? metadata : "";
	}
	d->campaign(lanes[BATON_LANE_CAMPAIGN], &call, &lease, list, n);
	printf("%s %llu", word(list[0].outcome), (unsigned long long)list[0].term);
}

/* To be woken while it waits. It stores a flag and writes to a descriptor, no more. */
static void wake(int number)
{
	(void)number;
	d->watch_wake(lanes[BATON_LANE_WATCH]);
}

/* How many hints, and after how many milliseconds. */
static void await(unsigned long ms)
{
	uint64_t cookies[8];
	uint64_t began_ns = now_ns();

	call.deadline_ns = began_ns + ms * 1000000u;
	int n = d->watch_wait(lanes[BATON_LANE_WATCH], &call, cookies, 8);

	printf("%d %llu", n, (unsigned long long)((now_ns() - began_ns) / 1000000u));
}

static void ignore(void *arg, const struct baton_finding *finding)
{
	(void)arg;
	(void)finding;
}

static void forget(void *arg, const struct baton_leadership *leadership)
{
	(void)arg;
	(void)leadership;
}

/* As baton_examine() does it: on a lane of its own, with a lease of its own. */
static void examine(void *store, const char *lease_id)
{
	struct baton_lease lease = lease_of(lease_id);
	struct baton_error err;
	uint32_t n_held = 0;
	void *lane = NULL;
	int outcome = d->lane_open(store, BATON_LANE_CAMPAIGN, &lane, &err) == 0
			      ? d->examine(lane, &call, ignore, NULL)
			      : BATON_OUTCOME_FAILED;

	if (outcome == BATON_OUTCOME_OK)
		outcome = d->lease_open(lane, &call, &lease);
	if (outcome == BATON_OUTCOME_OK)
		outcome = d->lease_renew(lane, &call, &lease, &n_held);
	if (outcome == BATON_OUTCOME_OK)
		outcome = d->lease_close(lane, &call, &lease);
	d->lane_close(lane);
	printf("%s", word(outcome));
}

static void obey(void *store, char **words)
{
	const char *verb = words[0];
	struct baton_lease lease = lease_of(words[1]);
	void *renewer = lanes[BATON_LANE_RENEW];
	uint32_t n_held = 0;

	if (strcmp(verb, "open") == 0) {
		ttl_ns = lease.ttl_ns = strtoull(words[2], NULL, 10) * 1000000u;
		printf("%s", word(d->lease_open(renewer, &call, &lease)));
	} else if (strcmp(verb, "renew") == 0) {
		int outcome = d->lease_renew(renewer, &call, &lease, &n_held);

		printf("%s %u", word(outcome), n_held);
	} else if (strcmp(verb, "close") == 0) {
		printf("%s", word(d->lease_close(renewer, &call, &lease)));
	} else if (strcmp(verb, "claim") == 0) {
		campaign(words[1], words[2], 1, 0);
	} else if (strcmp(verb, "many") == 0) {
		campaign(words[1], "many", strtoul(words[2], NULL, 10),
			 strtoul(words[3], NULL, 10));
	} else if (strcmp(verb, "examine") == 0) {
		examine(store, "ee-ffffffff-1");
	} else if (strcmp(verb, "watch") == 0) {
		printf("%d", d->watch_add(lanes[BATON_LANE_WATCH], words[1], 1));
	} else if (strcmp(verb, "history") == 0) {
		printf("%s", word(d->history(lanes[BATON_LANE_CAMPAIGN], &call, words[1], 1, forget,
					     NULL)));
	} else if (strcmp(verb, "wait") == 0) {
		await(strtoul(words[1], NULL, 10));
	}
	printf(" %s\n", call.error.text);
	fflush(stdout);
}

static void serve(void *store)
{
	char line[256];

	while (fgets(line, sizeof(line), stdin) != NULL) {
		char *words[6] = {"", "", "", "", "", ""};
		size_t n = 0;
		unsigned long ms = USUAL_MS;

		for (char *at = strtok(line, " \n"); at != NULL && n < 5;) {
			if (at[0] == '@')
				ms = strtoul(at + 1, NULL, 10);
			else
				words[n++] = at;
			at = strtok(NULL, " \n");
		}
		call = (struct baton_call){.deadline_ns = now_ns() + ms * 1000000u};
		obey(store, words);
	}
}

int main(int argc, char **argv)
{
	struct baton_error err = {0};
	void *store = NULL;
	void *module = argc == 3 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;

	d = module != NULL ? dlsym(module, BATON_DRIVER_SYMBOL) : NULL;
	if (d == NULL) {
		fprintf(stderr, "usage: puppet MODULE URL\n");
		return 2;
	}
	struct baton_store_config config = {.size = sizeof(config), .url = argv[2]};
	int code = d->open(&config, &store, &err);

	for (int kind = 0; kind < 3 && code == 0; kind++)
		code = d->lane_open(store, kind, &lanes[kind], &err);
	if (code != 0) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	signal(SIGUSR1, wake);
	serve(store);
	for (int kind = 0; kind < 3; kind++)
		d->lane_close(lanes[kind]);
	d->close(store);
	return 0;
}
