/*
 * late.c: requests that reach the server long after everybody has given them up, verb by verb, on
 * the driver itself. A network may deliver what it kept back; nothing of it may harm a lease that
 * was opened since. `late URL`: exit code 0 if all is well.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "baton-store.h"

#define CHECK(condition) ((condition) ? (void)0 : fail(__LINE__, #condition))

static const struct baton_driver *d;
static struct baton_call call;

static _Noreturn void fail(int line, const char *condition)
{
	fprintf(stderr, "late.c:%d: not so: %s (%s)\n", line, condition, call.error.text);
	exit(1);
}

static struct baton_call *soon(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	call = (struct baton_call){.deadline_ns = (uint64_t)(now.tv_sec + 10) * 1000000000u};
	return &call;
}

static struct baton_lease lease_of(const char *id)
{
	struct baton_lease lease = {.ttl_ns = 20000000000u, .owner = "late", .address = ""};

	snprintf(lease.id, sizeof(lease.id), "%s", id);
	return lease;
}

static bool lives(void *lane, const struct baton_lease *lease, uint32_t n_held)
{
	uint32_t n = UINT32_MAX;

	return d->lease_renew(lane, soon(), lease, &n) == BATON_OUTCOME_OK && n == n_held;
}

/* The incarnations of one lease are hexadecimal numbers: f comes before 10. */
static void opens_late(void *lane)
{
	struct baton_lease old = lease_of("aa-1-f"), now = lease_of("aa-1-10");
	struct baton_lease other = lease_of("aa-11-1"), newer = lease_of("aa-1-11");
	struct baton_record record = {0};
	struct baton_campaign c = {.name = "e", .nonce = 7, .record = &record};

	c.profile.metadata = "";
	CHECK(d->lease_open(lane, soon(), &old) == BATON_OUTCOME_OK);
	CHECK(d->lease_open(lane, soon(), &other) == BATON_OUTCOME_OK);
	CHECK(d->lease_open(lane, soon(), &now) == BATON_OUTCOME_OK);
	/* Opening the new one has ended the old one, and no other. */
	CHECK(!lives(lane, &old, 0) && lives(lane, &other, 0) && lives(lane, &now, 0));
	d->campaign(lane, soon(), &now, &c, 1);
	CHECK(c.outcome == BATON_OUTCOME_OK && c.term > 0);
	/* The old one's request comes once more. */
	CHECK(d->lease_open(lane, soon(), &old) == BATON_OUTCOME_OK);
	CHECK(lives(lane, &now, 1));
	CHECK(d->lease_close(lane, soon(), &old) == BATON_OUTCOME_OK);
	CHECK(lives(lane, &now, 1));
	/* And a newer one ends this one. */
	CHECK(d->lease_open(lane, soon(), &newer) == BATON_OUTCOME_OK);
	CHECK(!lives(lane, &now, 1) && lives(lane, &newer, 0));
	/* A claim on a lease that is gone is none. */
	c.nonce = 8;
	d->campaign(lane, soon(), &now, &c, 1);
	CHECK(c.outcome == BATON_OUTCOME_REFUSED && !record.held);
	CHECK(d->lease_close(lane, soon(), &newer) == BATON_OUTCOME_OK);
	CHECK(d->lease_close(lane, soon(), &other) == BATON_OUTCOME_OK);
}

/* S6: lease, nonce and term; a release that comes again finds another claim. */
static void releases_late(void *lane)
{
	struct baton_lease lease = lease_of("bb-1-1");
	struct baton_record record = {0};
	struct baton_campaign c = {.name = "r", .nonce = 1, .record = &record};
	struct baton_release r = {
		.name = "r", .lease_id = lease.id, .nonce = 1, .reason = "stopped"};

	c.profile.metadata = "";
	CHECK(d->lease_open(lane, soon(), &lease) == BATON_OUTCOME_OK);
	d->campaign(lane, soon(), &lease, &c, 1);
	CHECK(c.outcome == BATON_OUTCOME_OK);
	r.term = c.term;
	d->release(lane, soon(), &r, 1);
	CHECK(r.outcome == BATON_OUTCOME_OK);
	c.nonce = 2;
	d->campaign(lane, soon(), &lease, &c, 1);
	CHECK(c.outcome == BATON_OUTCOME_OK && c.term > r.term);
	d->release(lane, soon(), &r, 1);
	CHECK(r.outcome == BATON_OUTCOME_REFUSED);
	CHECK(lives(lane, &lease, 1));
	/* The campaign comes again: held by the same lease, with its nonce and term. */
	uint64_t term = c.term;

	d->campaign(lane, soon(), &lease, &c, 1);
	CHECK(c.outcome == BATON_OUTCOME_REFUSED && record.held && record.nonce == 2 &&
	      record.term == term);
	CHECK(d->lease_close(lane, soon(), &lease) == BATON_OUTCOME_OK);
}

/* Of a batch one was won, and the row of another, whose term is known, is gone: the batch goes out
 * again, which comes too late for the first. */
static void wins_once(void *lane)
{
	struct baton_lease lease = lease_of("cc-1-1");
	struct baton_record records[2] = {0};
	struct baton_campaign list[2] = {{.name = "won", .nonce = 1, .record = &records[0]},
					 {.name = "gone", .nonce = 2, .record = &records[1]}};

	list[0].profile.metadata = "";
	list[1].profile.metadata = "";
	CHECK(d->lease_open(lane, soon(), &lease) == BATON_OUTCOME_OK);
	d->campaign(lane, soon(), &lease, list, 1);
	CHECK(list[0].outcome == BATON_OUTCOME_OK);
	struct baton_release r = {.name = "won",
				  .lease_id = lease.id,
				  .nonce = 1,
				  .term = list[0].term,
				  .reason = "stopped"};

	d->release(lane, soon(), &r, 1);
	CHECK(r.outcome == BATON_OUTCOME_OK);
	list[0].floor = list[0].term;
	list[0].nonce = 3;
	list[1].floor = list[0].term;
	d->campaign(lane, soon(), &lease, list, 2);
	CHECK(list[0].outcome == BATON_OUTCOME_OK && list[0].term == r.term + 1);
	CHECK(list[1].outcome == BATON_OUTCOME_OK && list[1].term > list[1].floor);
	CHECK(lives(lane, &lease, 2));
	CHECK(d->lease_close(lane, soon(), &lease) == BATON_OUTCOME_OK);
}

int main(int argc, char **argv)
{
	struct baton_error err = {0};
	void *store, *lane;
	void *module = argc == 3 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;

	d = module != NULL ? dlsym(module, BATON_DRIVER_SYMBOL) : NULL;
	if (d == NULL) {
		fprintf(stderr, "usage: late MODULE URL\n");
		return 2;
	}
	struct baton_store_config config = {.size = sizeof(config), .url = argv[2]};

	CHECK(d->open(&config, &store, &err) == 0);
	CHECK(d->lane_open(store, BATON_LANE_CAMPAIGN, &lane, &err) == 0);
	opens_late(lane);
	releases_late(lane);
	wins_once(lane);
	d->lane_close(lane);
	d->close(store);
	printf("late: ok\n");
	return 0;
}
