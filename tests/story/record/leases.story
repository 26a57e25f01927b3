# R1, R3, R4, R10, R12: a lease in a record store: renewed by compare-and-set, waited for by whoever
# finds it in the way, and dead for ever once it is buried.

story R1_a_renewal_is_one_write
    From the version that was written last; nothing is read.

    0s      A opens
                writes A1 from v0: ok (begun)
                ok (written)
    3s      A renews
                writes A1 from v1: ok (begun)
                ok (written)

story R1_an_earlier_renewal_has_landed
    The answer was lost, the write was not: the next renewal meets it, sees that it is alive, and goes on
    from there.

    0s      A opens
                writes A1 from v0: ok (begun)
                ok (written)
    3s      A renews, its renewal unanswered
                writes A1 from v1: unknown (begun)
                unknown (it is not known whether it was written)
    6s      A renews
                writes A1 from v1: refused (begun)
                reads A1 fresh: alive (another version was in the way)
                writes A1 from v2: ok (another version was in the way)
                ok (written)

story R1_the_conflict_tells_it
    As above, and the store says what was in the way: no read is needed.
    with conflicts tell

    0s      A opens
                writes A1 from v0: ok (begun)
                ok (written)
    3s      A renews, its renewal unanswered
                writes A1 from v1: unknown (begun)
                unknown (it is not known whether it was written)
    6s      A renews
                writes A1 from v1: refused (begun)
                writes A1 from v2: ok (another version was in the way)
                ok (written)

story R1_dead_is_dead
    Whoever finds its lease buried has lost it. Nothing is written over a tombstone.
    given A leads

    0s      B opens
                writes B1 from v0: ok (begun)
                ok (written)
    0s      B campaigns
                reads e: A1 in term 1 v2 (begun)
                looks at A1: alive v1, known for 0s (it names a lease)
                refused (held)
    10s     B campaigns
                reads e: A1 in term 1 v2 (begun)
                looks at A1: alive v1, known for 10s (it names a lease)
                buries A1 from v1: ok (its lease was unchanged for its whole ttl)
                writes e from v2: B1 in term 2: ok (its lease is dead)
                ok: leads in term 2 (written)
    10s     A renews
                writes A1 from v1: refused (begun)
                reads A1 fresh: dead (another version was in the way)
                refused (it is gone)

story R1_it_never_creates
    Somebody has deleted the record. A renewal doesn't make it again.
    given A leads

    1s      deleted A1
    3s      A renews
                writes A1 from v1: refused (begun)
                reads A1 fresh: nothing (another version was in the way)
                refused (it is gone)

story R1_an_opening_without_an_answer
    The lease isn't known to be there; its renewal reads before it writes anything.

    0s      A opens, its opening lost
                writes A1 from v0: unknown (begun)
                unknown (it is not known whether it was written)
    3s      A renews
                reads A1 fresh: nothing (begun)
                refused (it is gone)
    4s      A opens, its opening unanswered
                writes A2 from v0: unknown (begun)
                unknown (it is not known whether it was written)
    5s      A renews
                reads A2 fresh: alive (begun)
                writes A2 from v1: ok (another version was in the way)
                ok (written)

story R1_the_store_fails
    One failure is not a loss.

    0s      A opens
                writes A1 from v0: ok (begun)
                ok (written)
    3s      A renews, its renewal fails
                writes A1 from v1: failed (begun)
                failed (the store failed)
    4s      A renews, its renewal unanswered
                writes A1 from v1: unknown (begun)
                unknown (it is not known whether it was written)
    5s      A renews, its read fails
                writes A1 from v1: refused (begun)
                reads A1 fresh: failed (another version was in the way)
                unknown (the store failed)

story R3_the_wait_begins_with_the_receipt
    B counts from when it received the version, whatever A has counted before that.
    given A leads

    0s      B opens
                writes B1 from v0: ok (begun)
                ok (written)
    9s      B campaigns
                reads e: A1 in term 1 v2 (begun)
                looks at A1: alive v1, known for 0s (it names a lease)
                refused (held)
    18s     B campaigns
                reads e: A1 in term 1 v2 (begun)
                looks at A1: alive v1, known for 9s (it names a lease)
                refused (held)
    19s     B campaigns
                reads e: A1 in term 1 v2 (begun)
                looks at A1: alive v1, known for 10s (it names a lease)
                buries A1 from v1: ok (its lease was unchanged for its whole ttl)
                writes e from v2: B1 in term 2: ok (its lease is dead)
                ok: leads in term 2 (written)

story R3_another_version_is_a_new_wait
    A lives: each renewal makes B wait anew.
    given A leads

    0s      B opens
                writes B1 from v0: ok (begun)
                ok (written)
    0s      B campaigns
                reads e: A1 in term 1 v2 (begun)
                looks at A1: alive v1, known for 0s (it names a lease)
                refused (held)
    9s      A renews
                writes A1 from v1: ok (begun)
                ok (written)
    10s     B campaigns
                reads e: A1 in term 1 v2 (begun)
                looks at A1: alive v4, known for 0s (it names a lease)
                refused (held)
    19s     B campaigns
                reads e: A1 in term 1 v2 (begun)
                looks at A1: alive v4, known for 9s (it names a lease)
                refused (held)
    20s     B campaigns
                reads e: A1 in term 1 v2 (begun)
                looks at A1: alive v4, known for 10s (it names a lease)
                buries A1 from v4: ok (its lease was unchanged for its whole ttl)
                writes e from v2: B1 in term 2: ok (its lease is dead)
                ok: leads in term 2 (written)

story R4_the_tombstone_is_written_from_the_watched_version
    B has waited, and A renews at the last moment: B's tombstone meets another version, and the wait begins
    anew.
    given A leads

    0s      B opens
                writes B1 from v0: ok (begun)
                ok (written)
    0s      B campaigns
                reads e: A1 in term 1 v2 (begun)
                looks at A1: alive v1, known for 0s (it names a lease)
                refused (held)
    10s     B campaigns, its tombstone lost
                reads e: A1 in term 1 v2 (begun)
                looks at A1: alive v1, known for 10s (it names a lease)
                buries A1 from v1: unknown (its lease was unchanged for its whole ttl)
                failed (the store failed)
    10s     A renews
                writes A1 from v1: ok (begun)
                ok (written)
    11s     B campaigns
                reads e: A1 in term 1 v2 (begun)
                looks at A1: alive v4, known for 0s (it names a lease)
                refused (held)

story R4_a_tombstone_without_an_answer
    Nobody claims on it. The next campaign finds what is there.
    given A leads

    0s      B opens
                writes B1 from v0: ok (begun)
                ok (written)
    0s      B campaigns
                reads e: A1 in term 1 v2 (begun)
                looks at A1: alive v1, known for 0s (it names a lease)
                refused (held)
    10s     B campaigns, its tombstone unanswered
                reads e: A1 in term 1 v2 (begun)
                looks at A1: alive v1, known for 10s (it names a lease)
                buries A1 from v1: unknown (its lease was unchanged for its whole ttl)
                failed (the store failed)
    11s     B campaigns
                reads e: A1 in term 1 v2 (begun)
                looks at A1: dead v4, known for 0s (it names a lease)
                writes e from v2: B1 in term 2: ok (its lease is dead)
                ok: leads in term 2 (written)

story R4_its_copy_came_first
    The tombstone was carried out twice; the answer is that of the second.
    given A leads

    0s      B opens
                writes B1 from v0: ok (begun)
                ok (written)
    0s      B campaigns
                reads e: A1 in term 1 v2 (begun)
                looks at A1: alive v1, known for 0s (it names a lease)
                refused (held)
    10s     B campaigns, its tombstone copied
                reads e: A1 in term 1 v2 (begun)
                looks at A1: alive v1, known for 10s (it names a lease)
                buries A1 from v1: refused (its lease was unchanged for its whole ttl)
                looks at A1: dead v4, known for 0s (another version was in the way)
                writes e from v2: B1 in term 2: ok (its lease is dead)
                ok: leads in term 2 (written)

story R4_its_copy_came_first_and_is_told
    As above.
    with conflicts tell
    given A leads

    0s      B opens
                writes B1 from v0: ok (begun)
                ok (written)
    0s      B campaigns
                reads e: A1 in term 1 v2 (begun)
                looks at A1: alive v1, known for 0s (it names a lease)
                refused (held)
    10s     B campaigns, its tombstone copied
                reads e: A1 in term 1 v2 (begun)
                looks at A1: alive v1, known for 10s (it names a lease)
                buries A1 from v1: refused (its lease was unchanged for its whole ttl)
                writes e from v2: B1 in term 2: ok (its lease is dead)
                ok: leads in term 2 (written)

story R4_absent_is_watched_like_any_version
    Somebody has deleted the record of a leader that lives. B waits a whole ttl all the same, by what the
    election says, and then creates the tombstone.
    given A leads

    0s      B opens
                writes B1 from v0: ok (begun)
                ok (written)
    1s      deleted A1
    1s      B campaigns
                reads e: A1 in term 1 v2 (begun)
                looks at A1: missing, perhaps not there yet (it names a lease)
                looks at A1 fresh: missing v0, known for 0s (it names a lease)
                refused (held)
    11s     B campaigns
                reads e: A1 in term 1 v2 (begun)
                looks at A1: missing v0, known for 10s (it names a lease)
                buries A1 from v0: ok (its lease was unchanged for its whole ttl)
                writes e from v2: B1 in term 2: ok (its lease is dead)
                ok: leads in term 2 (written)
    11s     A renews
                writes A1 from v1: refused (begun)
                reads A1 fresh: dead (another version was in the way)
                refused (it is gone)

story R4_what_is_missing_is_read_fresh
    An old read shows B what was before A's lease was opened. That begins no wait: when somebody deletes
    the record later, A has still a whole ttl since its last renewal.
    given A leads

    0s      B opens
                writes B1 from v0: ok (begun)
                ok (written)
    0s      B campaigns, its look old
                reads e: A1 in term 1 v2 (begun)
                looks at A1: missing, perhaps not there yet (it names a lease)
                looks at A1 fresh: alive v1, known for 0s (it names a lease)
                refused (held)
    9s      A renews
                writes A1 from v1: ok (begun)
                ok (written)
    10s     deleted A1
    10s     B campaigns
                reads e: A1 in term 1 v2 (begun)
                looks at A1: missing, perhaps not there yet (it names a lease)
                looks at A1 fresh: missing v0, known for 0s (it names a lease)
                refused (held)
    15s     B campaigns, its look old
                reads e: A1 in term 1 v2 (begun)
                looks at A1: missing v0, known for 5s (it names a lease)
                refused (held)
    20s     B campaigns
                reads e: A1 in term 1 v2 (begun)
                looks at A1: missing v0, known for 10s (it names a lease)
                buries A1 from v0: ok (its lease was unchanged for its whole ttl)
                writes e from v2: B1 in term 2: ok (its lease is dead)
                ok: leads in term 2 (written)

story R4_a_look_that_fails
    Nobody who can't look at a lease takes it for dead.
    given A leads

    0s      B opens
                writes B1 from v0: ok (begun)
                ok (written)
    10s     B campaigns, its look fails
                reads e: A1 in term 1 v2 (begun)
                looks at A1: failed v1, known for 0s (it names a lease)
                failed (the store failed)
    11s     B campaigns, its read fails
                reads e: failed v2 (begun)
                failed (the store failed)

story R10_what_is_swept
    The dead, unless an election names them; those that nobody has renewed for an hour and ten ttl get
    their tombstone first.
    given A leads

    0s      B opens
                writes B1 from v0: ok (begun)
                ok (written)
    0s      C opens
                writes C1 from v0: ok (begun)
                ok (written)
    0s      C closes
                buries C1 from v4: ok (begun)
                ok (written)
    1s      A closes
                buries A1 from v1: ok (begun)
                ok (written)
    2s      C sweeps
                A1 stays
                B1 stays
                C1 is dropped
    4000s   C sweeps
                A1 stays
                B1 is ended
    4001s   C sweeps
                A1 stays
                B1 is dropped

story R2_a_lease_that_ends_frees_what_stands_on_it
    Whoever closes its lease gives up all that stands on it; nobody waits.
    given A leads

    0s      B opens
                writes B1 from v0: ok (begun)
                ok (written)
    3s      A closes
                buries A1 from v1: ok (begun)
                ok (written)
    3s      B campaigns
                reads e: A1 in term 1 v2 (begun)
                looks at A1: dead v4, known for 0s (it names a lease)
                writes e from v2: B1 in term 2: ok (its lease is dead)
                ok: leads in term 2 (written)
    4s      A closes
                buries A1 from v4: ok (begun)
                ok (written)

story R12_our_own_older_lease_is_not_waited_for
    Whoever opens another lease ends the one that it has given up, and claims at once.
    given A leads

    3s      A closes
                buries A1 from v1: ok (begun)
                ok (written)
    3s      A opens
                writes A2 from v0: ok (begun)
                ok (written)
    3s      A campaigns
                reads e: A1 in term 1 v2 (begun)
                looks at A1: dead v3, known for 0s (it names a lease)
                writes e from v2: A2 in term 2: ok (its lease is dead)
                ok: leads in term 2 (written)

story R3_a_candidate_with_another_lease
    Rule 6: the wait is as long as the record says.
    with ttl 20s
    given A leads

    0s      B opens
                writes B1 from v0: ok (begun)
                ok (written)
    0s      B campaigns
                reads e: A1 in term 1 v2 (begun)
                looks at A1: alive v1, known for 0s (it names a lease)
                refused (held)
    10s     B campaigns
                reads e: A1 in term 1 v2 (begun)
                looks at A1: alive v1, known for 10s (it names a lease)
                refused (held)
    20s     B campaigns
                reads e: A1 in term 1 v2 (begun)
                looks at A1: alive v1, known for 20s (it names a lease)
                buries A1 from v1: ok (its lease was unchanged for its whole ttl)
                writes e from v2: B1 in term 2: ok (its lease is dead)
                ok: leads in term 2 (written)
