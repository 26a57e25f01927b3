/*
 * examine.c: what a store is like. The driver tells what only it knows. What every store has is
 * tried here, on a lease that carries nothing: can it be opened, renewed and closed, and is the
 * store near enough for the timings of the handle?
 */
#include <stdio.h>

#include "base/clock.h"
#include "lib/lib.h"
#include "store/doctor.h"

/* For all questions of a driver together: an examination may take longer than a renewal. */
#define PATIENCE_NS (5 * NS_PER_S)

static double ms(uint64_t ns)
{
	return (double)ns / (double)NS_PER_MS;
}

static double seconds(uint64_t ns)
{
	return (double)ns / (double)NS_PER_S;
}

/* There is no advice: the driver's sentence says what would be right, too. */
static void tell_failure(struct doctor *d, const char *check, const struct baton_call *call)
{
	int code = call->error.code != 0 ? call->error.code : BATON_E_UNAVAILABLE;

	doctor_tell(d, BATON_FINDING_ERROR, check, NULL, "%s",
		    call->error.text[0] != '\0' ? call->error.text : baton_strerror(code));
}

static void examine_begin(const struct baton *b, struct baton_call *call)
{
	*call = (struct baton_call){.deadline_ns = clock_boot_ns() + timing_call_ns(&b->timing)};
}

/* ---- the trial ---- */

static int examine_renew(struct baton *b, void *lane, struct baton_call *call,
			 const struct baton_lease *lease, struct doctor_trips *trips)
{
	int outcome = BATON_OUTCOME_OK;

	for (int i = 0; i < DOCTOR_TRIPS && outcome == BATON_OUTCOME_OK; i++) {
		uint64_t began_ns = clock_boot_ns();
		uint32_t n_held;

		examine_begin(b, call);
		outcome = b->driver->lease_renew(lane, call, lease, &n_held);
		doctor_trip(trips, began_ns, clock_boot_ns());
	}
	return outcome;
}

/* L6: a renewal that takes longer than its share of the grace counts as failed. */
static void tell_renewals(struct doctor *d, const struct baton *b, struct doctor_trips *trips)
{
	uint64_t limit_ns = timing_call_ns(&b->timing);
	uint64_t slowest_ns = doctor_trips_slowest_ns(trips);
	bool is_slow = slowest_ns > limit_ns / 2;

	doctor_tell(
		d, is_slow ? BATON_FINDING_WARNING : BATON_FINDING_OK, "renewal",
		is_slow ? "Use longer timings (a lease of 60 s, a grace of 30 s), or a store "
			  "that is nearer or less busy."
			: NULL,
		"A renewal takes %.2f ms, the slowest of %zu %.2f ms; with a grace of %.3g s it "
		"may take %.0f ms.",
		ms(doctor_trips_median_ns(trips)), trips->n, ms(slowest_ns),
		seconds(b->timing.grace_ns), ms(limit_ns));
}

static void tell_failover(struct doctor *d, const struct baton *b)
{
	const struct timing *t = &b->timing;
	bool at_once = b->traits->proves_death;
	uint32_t n_leases = b->traits->expiry_leases;
	uint64_t more_ns =
		(n_leases > 1 ? n_leases - 1 : 0) * t->lease_ns + b->traits->expiry_more_ns;

	doctor_tell(d, BATON_FINDING_OK, "failover", NULL,
		    "With a lease of %.3g s a leader that %s is replaced after %.3g to %.3g s%s.",
		    seconds(t->lease_ns),
		    at_once ? "is frozen"
			    : "dies, or is cut off or "
			      "frozen,",
		    seconds(t->lease_ns - t->renew_ns + more_ns),
		    seconds(timing_gone_ns(t) + more_ns), at_once ? ", one that dies at once" : "");
}

/* Tries a lease that no executor of this handle has. */
static void try_lease(struct doctor *d, struct baton *b, void *lane)
{
	struct baton_lease lease = {.ttl_ns = b->timing.lease_ns,
				    .owner = b->id,
				    .address = b->address,
				    .outlive = b->outlive};
	struct doctor_trips trips = {.n = 0};
	struct baton_call call;

	lease_id_print(b, UINT32_MAX, 1, lease.id);
	examine_begin(b, &call);
	int outcome = b->driver->lease_open(lane, &call, &lease);

	if (outcome == BATON_OUTCOME_OK)
		outcome = examine_renew(b, lane, &call, &lease, &trips);
	if (outcome == BATON_OUTCOME_OK) {
		tell_renewals(d, b, &trips);
		tell_failover(d, b);
	} else {
		tell_failure(d, "lease", &call);
	}
	examine_begin(b, &call);
	if (b->driver->lease_close(lane, &call, &lease) != BATON_OUTCOME_OK &&
	    outcome == BATON_OUTCOME_OK)
		tell_failure(d, "lease", &call);
}

static void pass_on(void *arg, const struct baton_finding *finding)
{
	struct doctor *d = arg;

	if (finding->level > d->worst)
		d->worst = finding->level;
	d->found(d->arg, finding);
}

int baton_examine(struct baton *b, doctor_found *found, void *arg, struct baton_error *err)
{
	struct doctor d = {.found = found, .arg = arg};
	struct baton_call call;
	void *lane = NULL;
	int outcome = BATON_OUTCOME_OK;

	if (found == NULL)
		return lib_fail(err, BATON_E_INVALID, "%s", baton_strerror(BATON_E_INVALID));
	int code = lib_lane(b, &lane, &call, err);

	if (code != 0)
		return code;
	call.deadline_ns = clock_boot_ns() + PATIENCE_NS;
	if (b->driver->examine != NULL)
		outcome = b->driver->examine(lane, &call, pass_on, &d);
	if (outcome != BATON_OUTCOME_OK && outcome != BATON_OUTCOME_REFUSED)
		tell_failure(&d, "reachability", &call);
	else if (outcome == BATON_OUTCOME_OK && !b->traits->own_leases)
		try_lease(&d, b, lane);
	lib_lane_done(b);
	return d.worst;
}
