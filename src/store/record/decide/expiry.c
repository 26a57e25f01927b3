/*
 * expiry.c: when another process's lease is over (R2, R3, R4), and when a reservation is over
 * (R11).
 *
 * The version that we received was written before we received it, and its writer counts from before
 * its send. So if nothing is written for a whole ttl on our clock after the receipt, the writer has
 * given up. A write that acts on this is conditional on that very version. What this must never do:
 * count from when we asked, which may be long before the version was written; or keep the wait when
 * the version has changed.
 *
 * A record that is missing has no version of its own. An old read may show the time before the
 * lease was opened, or the record may have been deleted: both look alike. So the wait for a
 * missing record begins only with a fresh read. An election names a lease only after the lease was
 * opened, so a record that is then missing in a fresh read has been deleted. Nor does
 * the wait begin while its length is unknown.
 */
#include "store/record/decide/parts.h"

/* now + d; either may be RECORD_NEVER. */
static uint64_t after_ns(uint64_t now_ns, uint64_t d)
{
	return d > RECORD_NEVER - now_ns ? RECORD_NEVER : now_ns + d;
}

void record_sight_note(struct record_sight *s, const struct record_version *version,
		       const struct record_lease *lease, uint64_t ttl_ns, bool is_fresh,
		       uint64_t read_ns)
{
	bool counts = lease != NULL || (is_fresh && ttl_ns != 0);

	/* Dead is final. A late copy of an open may make a swept record again, but no process
	 * counts on that lease. */
	if (record_sight_is_dead(s))
		return;
	if (!s->is_known || !record_same_version(&s->version, version) || record_sight_is_unsure(s))
		s->since_ns = counts ? read_ns : RECORD_NEVER;
	s->is_known = true;
	s->version = *version;
	s->noted_ns = read_ns;
	s->ttl_ns = lease != NULL ? lease->ttl_ns : ttl_ns;
	s->death = lease != NULL ? lease->death : RECORD_ALIVE;
}

bool record_sight_is_unsure(const struct record_sight *s)
{
	return s->is_known && s->since_ns == RECORD_NEVER;
}

bool record_sight_is_dead(const struct record_sight *s)
{
	return s->is_known && s->death != RECORD_ALIVE;
}

uint64_t record_sight_end_ns(const struct record_sight *s)
{
	if (!s->is_known)
		return RECORD_NEVER;
	return s->death != RECORD_ALIVE ? 0 : after_ns(s->since_ns, s->ttl_ns);
}

bool record_sight_is_over(const struct record_sight *s, uint64_t now_ns)
{
	return now_ns >= record_sight_end_ns(s);
}

void record_hold_note(struct record_hold *h, const struct record_election *e, uint64_t read_ns)
{
	if (h->term == e->hold_term)
		return;
	h->term = e->hold_term;
	h->since_ns = read_ns;
}

uint64_t record_hold_end_ns(const struct record_hold *h, const struct record_election *e,
			    const char *id)
{
	if (e->reserved_for[0] == '\0' || record_same_text(e->reserved_for, id))
		return 0;
	return after_ns(h->since_ns, e->hold_ns);
}
