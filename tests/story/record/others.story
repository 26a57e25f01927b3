# Leaders that show themselves, stores that forget, and stores with native locks.

story a_leaders_news_stand_in_the_record
    Once, and from the version of its claim; the release goes from the new version.

    0s      A opens
                writes A1 from v0: ok (begun)
                ok (written)
    0s      A campaigns
                reads e: nothing v0 (begun)
                writes e from v0: A1 in term 1: ok (free)
                ok: leads in term 1 (written)
    1s      A shows 900
                writes e from v2: A1 in term 1, score 900: ok (begun)
                ok (written)
    2s      A shows 900
                ok (written)
    3s      A releases
                writes e from v3: free, term 1: ok (begun)
                ok (written)

story S6_news_of_a_leader_that_was_replaced
    An order that came in between is kept. A successor's claim is left as it is.

    0s      A opens
                writes A1 from v0: ok (begun)
                ok (written)
    0s      A campaigns
                reads e: nothing v0 (begun)
                writes e from v0: A1 in term 1: ok (free)
                ok: leads in term 1 (written)
    1s      order 1
                reads e fresh: A1 in term 1 v2 (begun)
                writes e from v2: A1 in term 1, an order: ok (begun)
                ok (written)
    2s      A shows 900
                reads e fresh: A1 in term 1, an order v3 (begun)
                writes e from v3: A1 in term 1, score 900, an order: ok (begun)
                ok (written)
    3s      A shows 800, its write copied
                writes e from v4: A1 in term 1, score 800, an order: refused (begun)
                reads e fresh: A1 in term 1, score 800, an order v5 (another version was in the way)
                ok (written)
    4s      A releases
                writes e from v5: free, term 1: ok (begun)
                ok (written)
    5s      B opens
                writes B1 from v0: ok (begun)
                ok (written)
    5s      B campaigns
                reads e: free, term 1 v6 (begun)
                writes e from v6: B1 in term 2: ok (free)
                ok: leads in term 2 (written)
    6s      A shows 700
                reads e fresh: B1 in term 2 v8 (begun)
                refused (it is not ours any more)

story a_young_store_is_waited_for
    It may have forgotten a lease: nobody claims before the longest one has passed. Terms follow its clock.
    with forgets 5000

    0s      A opens
                writes A1 from v0: ok (begun)
                ok (written)
    0s      A campaigns
                reads e: nothing v0 (begun)
                failed (the store has just begun, and may have forgotten leases)
    10s     A campaigns
                reads e: nothing v0 (begun)
                writes e from v0: free, term 0: ok (there is no record yet, and a store that forgets needs one)
                writes e from v2: A1 in term 5000: ok (free)
                ok: leads in term 5000 (written)
    11s     A releases
                writes e from v3: free, term 5000: ok (begun)
                ok (written)
    11s     A campaigns floor 6000
                reads e: free, term 5000 v4 (begun)
                writes e from v4: A1 in term 6001: ok (free)
                ok: leads in term 6001 (written)

story a_store_that_forgets_needs_a_record_first
    What it has forgotten is absent again: a claim that is late would land on that.
    with forgets 5000

    0s      A opens
                writes A1 from v0: ok (begun)
                ok (written)
    10s     A campaigns, its write copied
                reads e: nothing v0 (begun)
                writes e from v0: free, term 0: refused (there is no record yet, and a store that forgets needs one)
                reads e fresh: free, term 0 v2 (another version was in the way)
                writes e from v2: A1 in term 5000: ok (free)
                ok: leads in term 5000 (written)
    11s     forgotten
    21s     B opens
                writes B1 from v0: ok (begun)
                ok (written)
    21s     B campaigns, its write lost
                reads e: nothing v0 (begun)
                writes e from v0: free, term 0: unknown (there is no record yet, and a store that forgets needs one)
                failed (the store failed)
    22s     B campaigns, its write fails
                reads e: nothing v0 (begun)
                writes e from v0: free, term 0: failed (there is no record yet, and a store that forgets needs one)
                failed (the store failed)

story a_store_that_forgets_and_tells
    The record was made by another meanwhile.
    with forgets 5000, conflicts tell

    0s      A opens
                writes A1 from v0: ok (begun)
                ok (written)
    10s     A campaigns, its write copied
                reads e: nothing v0 (begun)
                writes e from v0: free, term 0: refused (there is no record yet, and a store that forgets needs one)
                writes e from v2: A1 in term 5000: ok (free)
                ok: leads in term 5000 (written)

story the_lock_comes_last
    Nothing is claimed without it, and it is taken only when the record could be had.
    with locks

    0s      A opens
                writes A1 from v0: ok (begun)
                ok (written)
    0s      B opens
                writes B1 from v0: ok (begun)
                ok (written)
    0s      A campaigns
                reads e: nothing v0 (begun)
                takes the lock: ok (free)
                writes e from v0: A1 in term 1: ok (free)
                ok: leads in term 1 (written)
    1s      B campaigns
                reads e: A1 in term 1 v3 (begun)
                looks at A1: alive v1, known for 0s (it names a lease)
                refused (held)

story another_program_has_the_lock
    So nobody claims. Once it lets go, the next campaign wins.
    with locks

    0s      A opens
                writes A1 from v0: ok (begun)
                ok (written)
    0s      foreign takes
    0s      A campaigns
                reads e: nothing v0 (begun)
                takes the lock: refused (free)
                refused (another has its lock)
    1s      foreign drops
    1s      A campaigns, its lock fails
                reads e: nothing v0 (begun)
                takes the lock: failed (free)
                failed (the store failed)
    2s      A campaigns
                reads e: nothing v0 (begun)
                takes the lock: ok (free)
                writes e from v0: A1 in term 1: ok (free)
                ok: leads in term 1 (written)

story a_claim_in_doubt_and_its_lock
    It is adopted only with its lock; else it is given back.
    with locks

    0s      A opens
                writes A1 from v0: ok (begun)
                ok (written)
    0s      A campaigns, its claim unanswered
                reads e: nothing v0 (begun)
                takes the lock: ok (free)
                writes e from v0: A1 in term 1: unknown (free)
                unknown (it is not known whether it was written)
                a claim is in doubt
    1s      A settles, its lock fails
                reads e fresh: A1 in term 1 v2 (begun)
                takes the lock: failed (our claim stands in the record)
                unknown (the store failed)
                a claim is in doubt
    2s      foreign takes
    2s      A settles
                reads e fresh: A1 in term 1 v2 (begun)
                takes the lock: refused (our claim stands in the record)
                writes e from v2: free, term 1: ok (another has its lock)
                refused (our claim never lands)
    3s      foreign drops
    3s      A campaigns, its claim unanswered
                reads e: free, term 1 v3 (begun)
                takes the lock: ok (free)
                writes e from v3: A1 in term 2: unknown (free)
                unknown (it is not known whether it was written)
                a claim is in doubt
    4s      A settles
                reads e fresh: A1 in term 2 v4 (begun)
                takes the lock: ok (our claim stands in the record)
                writes e from v4: A1 in term 2: ok (our claim stands in the record)
                ok: leads in term 2 (our claim stands in the record)
