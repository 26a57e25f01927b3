# R2, R5 to R9, R11: an election in a record store: claimed and given back by compare-and-set, and
# what becomes of a claim whose answer was lost.

story R5_the_first_claim
    From absent, in term 1.

    0s      A opens
                writes A1 from v0: ok (begun)
                ok (written)
    0s      A campaigns
                reads e: nothing v0 (begun)
                writes e from v0: A1 in term 1: ok (free)
                ok: leads in term 1 (written)

story R5_the_term_is_above_all
    Above the stored one and above what the candidate has seen.
    given A leads

    1s      A releases
                writes e from v2: free, term 1: ok (begun)
                ok (written)
    1s      A campaigns floor 7
                reads e: free, term 1 v3 (begun)
                writes e from v3: A1 in term 8: ok (free)
                ok: leads in term 8 (written)
    2s      A releases
                writes e from v4: free, term 8: ok (begun)
                ok (written)
    2s      A campaigns floor 9223372036854775807
                reads e: free, term 8 v5 (begun)
                failed (there is no higher term)

story R5_a_floor_from_nowhere
    A term that is impossibly far above the stored one is no term.
    given A leads

    1s      A releases
                writes e from v2: free, term 1: ok (begun)
                ok (written)
    1s      A campaigns floor 900000000000000000
                reads e: free, term 1 v3 (begun)
                failed (the term is impossibly far below the highest one seen)

story R5_held
    By a lease that lives. A second campaign on the own lease is refused, too.
    given A leads

    0s      B opens
                writes B1 from v0: ok (begun)
                ok (written)
    0s      B campaigns
                reads e: A1 in term 1 v2 (begun)
                looks at A1: alive v1, known for 0s (it names a lease)
                refused (held)
    0s      A campaigns
                reads e: A1 in term 1 v2 (begun)
                refused (held on our own lease)

story R5_paused
    Nobody claims, and what is written stays paused.
    given A leads

    1s      pause
                reads e fresh: A1 in term 1 v2 (begun)
                writes e from v2: A1 in term 1, paused: ok (begun)
                ok (written)
    1s      pause
                reads e fresh: A1 in term 1, paused v3 (begun)
                ok (written)
    2s      A releases
                reads e fresh: A1 in term 1, paused v3 (begun)
                writes e from v3: free, term 1, paused: ok (begun)
                ok (written)
    2s      A campaigns
                reads e: free, term 1, paused v4 (begun)
                refused (paused)
    3s      resume
                reads e fresh: free, term 1, paused v4 (begun)
                writes e from v4: free, term 1: ok (begun)
                ok (written)
    3s      A campaigns
                reads e: free, term 1 v5 (begun)
                writes e from v5: A1 in term 2: ok (free)
                ok: leads in term 2 (written)

story R6_a_release_is_one_write
    From the version of the claim.
    given A leads

    1s      A releases
                writes e from v2: free, term 1: ok (begun)
                ok (written)

story R6_an_order_came_in_between
    The claim is still the same: it is given back from the new version.
    given A leads

    1s      order 1
                reads e fresh: A1 in term 1 v2 (begun)
                writes e from v2: A1 in term 1, an order: ok (begun)
                ok (written)
    2s      A releases
                reads e fresh: A1 in term 1, an order v3 (begun)
                writes e from v3: free, term 1: ok (begun)
                ok (written)
    3s      A releases
                reads e fresh: free, term 1 v4 (begun)
                refused (it is not ours any more)

story R6_the_conflict_tells_it
    The first try of a release has landed: what is in the way isn't ours.
    with conflicts tell
    given A leads

    1s      A releases, its write copied
                writes e from v2: free, term 1: refused (begun)
                refused (it is not ours any more)

story R6_not_ours_any_more
    Another leads: nothing is touched.
    given A leads

    0s      B opens
                writes B1 from v0: ok (begun)
                ok (written)
    1s      A closes
                buries A1 from v1: ok (begun)
                ok (written)
    1s      B campaigns
                reads e: A1 in term 1 v2 (begun)
                looks at A1: dead v4, known for 0s (it names a lease)
                writes e from v2: B1 in term 2: ok (its lease is dead)
                ok: leads in term 2 (written)
    2s      A releases
                reads e fresh: B1 in term 2 v5 (begun)
                refused (it is not ours any more)

story R6_the_release_fails
    It is tried again.
    given A leads

    1s      A releases, its write fails
                writes e from v2: free, term 1: failed (begun)
                failed (the store failed)
    2s      A releases, its write lost
                writes e from v2: free, term 1: unknown (begun)
                unknown (it is not known whether it was written)
    3s      A releases for B 5s, its write unanswered
                writes e from v2: free, term 1, kept for B: unknown (begun)
                unknown (it is not known whether it was written)
    4s      A releases
                reads e fresh: free, term 1, kept for B v3 (begun)
                refused (it is not ours any more)

story R7_the_claim_has_landed
    Nobody leads on a claim that was only read: it is written again, and then it is ours.

    0s      A opens
                writes A1 from v0: ok (begun)
                ok (written)
    0s      A campaigns, its claim unanswered
                reads e: nothing v0 (begun)
                writes e from v0: A1 in term 1: unknown (free)
                unknown (it is not known whether it was written)
                a claim is in doubt
    1s      A settles
                reads e fresh: A1 in term 1 v2 (begun)
                writes e from v2: A1 in term 1: ok (our claim stands in the record)
                ok: leads in term 1 (our claim stands in the record)

story R7_the_claim_never_lands
    The version that it was written from is still there: it is written again, which kills the claim.

    0s      A opens
                writes A1 from v0: ok (begun)
                ok (written)
    0s      A campaigns, its claim late
                reads e: nothing v0 (begun)
                writes e from v0: A1 in term 1: unknown (free)
                unknown (it is not known whether it was written)
                a claim is in doubt
    1s      A settles
                reads e fresh: nothing v0 (begun)
                writes e from v0: free, term 0: ok (our claim may still land, unless something is written before it)
                refused (our claim never lands)
    2s      landed
                it never is: another version is there

story R7_the_claim_lands_first
    Between settling's read and its write: the write meets it, and it is ours.

    0s      A opens
                writes A1 from v0: ok (begun)
                ok (written)
    0s      A campaigns, its claim late
                reads e: nothing v0 (begun)
                writes e from v0: A1 in term 1: unknown (free)
                unknown (it is not known whether it was written)
                a claim is in doubt
    1s      landed
                it is written
    1s      A settles
                reads e fresh: A1 in term 1 v2 (begun)
                writes e from v2: A1 in term 1: ok (our claim stands in the record)
                ok: leads in term 1 (our claim stands in the record)

story R7_settling_has_no_answer
    Still in doubt. The next time it is known.

    0s      A opens
                writes A1 from v0: ok (begun)
                ok (written)
    0s      A campaigns, its claim late
                reads e: nothing v0 (begun)
                writes e from v0: A1 in term 1: unknown (free)
                unknown (it is not known whether it was written)
                a claim is in doubt
    1s      A settles, its write lost
                reads e fresh: nothing v0 (begun)
                writes e from v0: free, term 0: unknown (our claim may still land, unless something is written before it)
                unknown (it is not known whether it was written)
                a claim is in doubt
    2s      A settles, its read fails
                reads e fresh: failed v0 (begun)
                unknown (the store failed)
                a claim is in doubt
    3s      A settles
                reads e fresh: nothing v0 (begun)
                writes e from v0: free, term 0: ok (our claim may still land, unless something is written before it)
                refused (our claim never lands)

story R7_settling_meets_its_own_copy
    Its write was carried out twice.

    0s      A opens
                writes A1 from v0: ok (begun)
                ok (written)
    0s      A campaigns, its claim lost
                reads e: nothing v0 (begun)
                writes e from v0: A1 in term 1: unknown (free)
                unknown (it is not known whether it was written)
                a claim is in doubt
    1s      A settles, its write copied
                reads e fresh: nothing v0 (begun)
                writes e from v0: free, term 0: refused (our claim may still land, unless something is written before it)
                reads e fresh: free, term 0 v2 (another version was in the way)
                refused (our claim never lands)
    2s      A campaigns, its claim unanswered
                reads e: free, term 0 v2 (begun)
                writes e from v2: A1 in term 1: unknown (free)
                unknown (it is not known whether it was written)
                a claim is in doubt
    3s      A settles, its write copied
                reads e fresh: A1 in term 1 v3 (begun)
                writes e from v3: A1 in term 1: refused (our claim stands in the record)
                reads e fresh: A1 in term 1 v4 (another version was in the way)
                writes e from v4: A1 in term 1: ok (our claim stands in the record)
                ok: leads in term 1 (our claim stands in the record)

story R7_settling_meets_its_own_copy_and_is_told
    As above.
    with conflicts tell

    0s      A opens
                writes A1 from v0: ok (begun)
                ok (written)
    0s      A campaigns, its claim unanswered
                reads e: nothing v0 (begun)
                writes e from v0: A1 in term 1: unknown (free)
                unknown (it is not known whether it was written)
                a claim is in doubt
    1s      A settles, its write copied
                reads e fresh: A1 in term 1 v2 (begun)
                writes e from v2: A1 in term 1: refused (our claim stands in the record)
                writes e from v3: A1 in term 1: ok (our claim stands in the record)
                ok: leads in term 1 (our claim stands in the record)

story R7_a_conflict_is_no_loss
    The claim was carried out twice, and the answer is that of the second. It is looked at, and found.

    0s      A opens
                writes A1 from v0: ok (begun)
                ok (written)
    0s      A campaigns, its claim copied
                reads e: nothing v0 (begun)
                writes e from v0: A1 in term 1: refused (free)
                reads e fresh: A1 in term 1 v2 (another version was in the way)
                writes e from v2: A1 in term 1: ok (our claim stands in the record)
                ok: leads in term 1 (our claim stands in the record)

story R7_a_conflict_that_tells_is_none_either
    As above, without a read.
    with conflicts tell

    0s      A opens
                writes A1 from v0: ok (begun)
                ok (written)
    0s      A campaigns, its claim copied
                reads e: nothing v0 (begun)
                writes e from v0: A1 in term 1: refused (free)
                writes e from v2: A1 in term 1: ok (our claim stands in the record)
                ok: leads in term 1 (our claim stands in the record)

story R7_a_claim_that_failed
    It never lands, and nothing is in doubt.

    0s      A opens
                writes A1 from v0: ok (begun)
                ok (written)
    0s      A campaigns, its claim fails
                reads e: nothing v0 (begun)
                writes e from v0: A1 in term 1: failed (free)
                failed (the store failed)

story R7_another_was_faster
    Any other version: it is over.
    given A leads

    0s      B opens
                writes B1 from v0: ok (begun)
                ok (written)
    1s      A releases
                writes e from v2: free, term 1: ok (begun)
                ok (written)
    1s      B campaigns, its claim lost
                reads e: free, term 1 v4 (begun)
                writes e from v4: B1 in term 2: unknown (free)
                unknown (it is not known whether it was written)
                a claim is in doubt
    2s      A campaigns
                reads e: free, term 1 v4 (begun)
                writes e from v4: A1 in term 2: ok (free)
                ok: leads in term 2 (written)
    3s      B settles
                reads e fresh: A1 in term 2 v5 (begun)
                refused (our claim never lands)

story R8_an_old_read_costs_a_write
    B reads that the election is free, which was so a moment ago. Its claim meets another version; then it is
    told the truth.

    0s      A opens
                writes A1 from v0: ok (begun)
                ok (written)
    0s      copy
    0s      A campaigns
                reads e: nothing v0 (begun)
                writes e from v0: A1 in term 1: ok (free)
                ok: leads in term 1 (written)
    1s      B opens
                writes B1 from v0: ok (begun)
                ok (written)
    1s      B campaigns, old
                reads e: nothing v0 (begun)
                writes e from v0: B1 in term 1: refused (free)
                reads e fresh: A1 in term 1 v2 (another version was in the way)
                looks at A1: alive v1, known for 0s (it names a lease)
                refused (held)

story R9_the_term_outlives_everything
    Release, close and sweep: the next leadership counts on.
    given A leads

    1s      A releases
                writes e from v2: free, term 1: ok (begun)
                ok (written)
    2s      A closes
                buries A1 from v1: ok (begun)
                ok (written)
    3s      B opens
                writes B1 from v0: ok (begun)
                ok (written)
    3s      B sweeps
                A1 is dropped
                B1 stays
    3s      B campaigns
                reads e: free, term 1 v3 (begun)
                writes e from v3: B1 in term 2: ok (free)
                ok: leads in term 2 (written)

story R11_the_named_one_claims_at_once
    The others wait, each from its own receipt.
    given A leads

    0s      B opens
                writes B1 from v0: ok (begun)
                ok (written)
    0s      C opens
                writes C1 from v0: ok (begun)
                ok (written)
    1s      A releases for B 5s
                writes e from v2: free, term 1, kept for B: ok (begun)
                ok (written)
    2s      C campaigns
                reads e: free, term 1, kept for B v5 (begun)
                refused (reserved for another)
    3s      B campaigns
                reads e: free, term 1, kept for B v5 (begun)
                writes e from v5: B1 in term 2: ok (free)
                ok: leads in term 2 (written)

story R11_the_others_after_a_while
    Nobody is kept waiting for one who doesn't come.
    given A leads

    0s      C opens
                writes C1 from v0: ok (begun)
                ok (written)
    1s      A releases for B 5s
                writes e from v2: free, term 1, kept for B: ok (begun)
                ok (written)
    2s      C campaigns
                reads e: free, term 1, kept for B v4 (begun)
                refused (reserved for another)
    2s      C observes
                free, kept for another, term 1
                can end in 5s
    6s      C campaigns
                reads e: free, term 1, kept for B v4 (begun)
                refused (reserved for another)
    7s      C campaigns
                reads e: free, term 1, kept for B v4 (begun)
                writes e from v4: C1 in term 2: ok (free)
                ok: leads in term 2 (written)

story orders_are_for_one_leadership
    Rule 10: an order names its term, and stands there once.
    given A leads

    1s      order 1
                reads e fresh: A1 in term 1 v2 (begun)
                writes e from v2: A1 in term 1, an order: ok (begun)
                ok (written)
    1s      order 1
                reads e fresh: A1 in term 1, an order v3 (begun)
                ok (written)
    1s      order 2
                reads e fresh: A1 in term 1, an order v3 (begun)
                refused (that leadership is over)
    2s      A releases
                reads e fresh: A1 in term 1, an order v3 (begun)
                writes e from v3: free, term 1: ok (begun)
                ok (written)
    2s      order 1
                reads e fresh: free, term 1 v4 (begun)
                refused (that leadership is over)

story an_order_for_the_dead
    Whoever's lease has ended leads no more.
    given A leads

    1s      A closes
                buries A1 from v1: ok (begun)
                ok (written)
    1s      order 1
                reads e fresh: A1 in term 1 v2 (begun)
                refused (that leadership is over)

story orders_meet_others
    The write of an order meets a pause, or fails.
    given A leads

    1s      order 1, its write copied
                reads e fresh: A1 in term 1 v2 (begun)
                writes e from v2: A1 in term 1, an order: refused (begun)
                reads e fresh: A1 in term 1, an order v3 (another version was in the way)
                ok (written)
    2s      pause, its write fails
                reads e fresh: A1 in term 1, an order v3 (begun)
                writes e from v3: A1 in term 1, an order, paused: failed (begun)
                failed (the store failed)
    3s      pause, its write unanswered
                reads e fresh: A1 in term 1, an order v3 (begun)
                writes e from v3: A1 in term 1, an order, paused: unknown (begun)
                unknown (it is not known whether it was written)
    4s      order 1, its read fails
                reads e fresh: failed v4 (begun)
                failed (the store failed)

story what_is_observed
    Held while the lease may live, with when that can end.
    given A leads

    0s      B opens
                writes B1 from v0: ok (begun)
                ok (written)
    1s      B observes
                held by A, term 1
    2s      B campaigns
                reads e: A1 in term 1 v2 (begun)
                looks at A1: alive v1, known for 0s (it names a lease)
                refused (held)
    4s      B observes
                held by A, term 1
                can end in 8s
    20s     B observes
                held by A, term 1
                can end in 0s
    20s     A closes
                buries A1 from v1: ok (begun)
                ok (written)
    21s     B campaigns
                reads e: A1 in term 1 v2 (begun)
                looks at A1: dead v4, known for 0s (it names a lease)
                writes e from v2: B1 in term 2: ok (its lease is dead)
                ok: leads in term 2 (written)
    22s     A observes
                held by B, term 2
