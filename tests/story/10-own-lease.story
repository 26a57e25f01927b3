# Where a store ties a lease to one object (a Kubernetes Lease, an Azure blob), each election has a
# lease of its own: there is nothing to open, it is granted together with the claim and ends with
# it.

story own_lease_is_granted_with_the_claim
    The time is counted from when the campaign was sent: it was the campaign that opened the
    lease.
    with own_lease

    0s      start
                lease 1 is up (started)
                campaign #1 (the lease is open)
            now lease ready, state campaigning
    1.5s    won term 1 watched
                became leader in term 1 (won)
                leader is A in term 1 (held)
            now lease live, leads yes, deadline 10s, wake 5s
    5s      ...
                renew lease 1 (due)
    5.1s    renewed ok
            now deadline 15s

story own_lease_goes_with_its_release
    No close is needed; the next campaign opens the next lease.
    with own_lease
    given leader term 1

    1s      resign
                lost term 1 (resigned)
    1.1s    drained
                release #1 term 1 (the work has ended)
    1.2s    released ok
            now lease ready, state standby
    3.2s    ...
                campaign #3 floor 1 (due)
    3.2s    won term 2 watched
                became leader in term 2 (won)
                leader is A in term 2 (held)
            now lease live, leads yes, deadline 13.2s

story own_lease_of_a_standby
    Nothing is kept alive by who only waits: no renewal.
    with own_lease

    0s      start
                lease 1 is up (started)
                campaign #1 (the lease is open)
    0.1s    held by B term 7 watched
                leader is B in term 7 (held)
            now lease ready, wake never
    60s     stop
                stopped (stopped)
            now lease closed, wake never

story own_lease_lost
    The same order as with a shared one: lost, drained, closed, and a new start.
    with own_lease
    given leader term 1

    5s      ...
                renew lease 1 (due)
    5.1s    renewed refused
                lease 1 is down (the store says that the lease is gone)
                lost term 1 (the store says that the lease is gone)
            now leads no
    6s      drained
                close lease 1 (the store says that the lease is gone)
    6.1s    closed ok
                lease 2 is up (started)
                campaign #2 floor 1 (the lease is open)
    6.2s    held by B term 2 watched
                leader is B in term 2 (held)

story own_lease_S5_a_late_grant_is_given_back
    Won, but the answer was read after the deadline that counts from the send: it is closed,
    unled.
    with own_lease

    0s      start
                lease 1 is up (started)
                campaign #1 (the lease is open)
    1s      freezes
    10s     thaws, then won term 1
                close lease 1 (too late)
            now leads no, lease closing
    10.1s   closed ok
                lease 2 is up (started)
                campaign #2 floor 1 (the lease is open)
    10.2s   won term 2 watched
                became leader in term 2 (won)
                leader is A in term 2 (held)
            now leads yes

story own_lease_a_bad_term_goes_back
    A grant that is no leadership is released like any other claim.
    with own_lease

    0s      start
                lease 1 is up (started)
                campaign #1 (the lease is open)
    0.1s    held by B term 7 watched
                leader is B in term 7 (held)
    1s      hint
                campaign #2 floor 7 (a hint)
    1.1s    won term 7
                error term 7 (the term is not above the highest one seen)
                release #2 term 7 (the term is not above the highest one seen)
    1.2s    released ok
            now leads no, lease ready, wake 11.1s

story own_lease_unknown_and_found
    The claim is there: it is counted from the send of the campaign that made it.
    with own_lease

    0s      start
                lease 1 is up (started)
                campaign #1 (the lease is open)
    1.6s    campaigned unknown
                error (the outcome is unknown)
                claims lease 1 (the outcome is unknown)
    1.7s    claims term 1 nonce 1
                became leader in term 1 (own claim found after an unknown outcome)
                leader is A in term 1 (held)
                observe (own claim found after an unknown outcome)
            now leads yes, deadline 10s, wake 5s

story own_lease_unknown_and_found_too_late
    The campaign was sent at 0s; what is found at 13s is past its deadline.
    with own_lease

    0s      start
                lease 1 is up (started)
                campaign #1 (the lease is open)
    1.6s    campaigned unknown
                error (the outcome is unknown)
                claims lease 1 (the outcome is unknown)
    3.2s    claims failed
    4.2s    ...
                claims lease 1 (the outcome is unknown)
    5s      claims failed
    7s      ...
                claims lease 1 (the outcome is unknown)
    8s      claims failed
    12s     ...
                claims lease 1 (the outcome is unknown)
    13s     claims term 1 nonce 1
                close lease 1 (too late)
            now leads no, lease closing
    13.1s   closed ok
                lease 2 is up (started)
                campaign #2 floor 1 (the lease is open)

story own_lease_carried_out_twice
    The campaign met its own claim: counted from its own send.
    with own_lease

    0s      start
                lease 1 is up (started)
                campaign #1 (the lease is open)
    0.5s    held by B term 1 watched
                leader is B in term 1 (held)
    20s     hint
                campaign #2 floor 1 (a hint)
    20.5s   held mine term 2 nonce 2
                became leader in term 2 (own claim found after an unknown outcome)
                leader is A in term 2 (held)
                observe (own claim found after an unknown outcome)
            now leads yes, deadline 30s

story own_lease_orphan
    A claim of ours that no doubt explains: given back, and nobody leads on it.
    with own_lease

    0s      start
                lease 1 is up (started)
                campaign #1 (the lease is open)
    0.1s    held mine term 5 nonce 9
                close lease 1 (too late)
            now leads no, lease closing
    0.2s    closed ok
                lease 2 is up (started)
    2.1s    ...
                campaign #2 floor 5 (the lease is open)
    2.2s    held by B term 6 watched
                leader is B in term 6 (held)

story own_lease_a_campaign_that_lands_late
    Unknown, nothing there, and then the next campaign finds the first one's claim.
    with own_lease

    0s      start
                lease 1 is up (started)
                campaign #1 (the lease is open)
    1.6s    campaigned unknown
                error (the outcome is unknown)
                claims lease 1 (the outcome is unknown)
    1.7s    claims none
    2.6s    ...
                campaign #2 (retry)
    2.7s    held mine term 1 nonce 1
                became leader in term 1 (own claim found after an unknown outcome)
                leader is A in term 1 (held)
                observe (own claim found after an unknown outcome)
            now leads yes, deadline 10s

story own_lease_the_claim_is_gone_but_the_lease_lives
    The record was deleted underneath. A new claim on what is left of the lease is a new term.
    with own_lease
    given leader term 1

    1s      hint
                observe (a hint)
    1.1s    observed free term 1
                lost term 1 (the claim is gone from the store)
    1.2s    drained
                campaign #3 floor 1 (the work has ended)
    1.3s    won term 2 watched
                became leader in term 2 (won)
                leader is A in term 2 (held)
            now leads yes, deadline 10s

story own_lease_release_that_ends_with_its_lease
    A release under way when the lease dies: nothing is spent twice.
    with own_lease
    given leader term 1

    4.9s    resign
                lost term 1 (resigned)
    4.95s   drained
                release #1 term 1 (the work has ended)
    5s      ...
                renew lease 1 (due)
    5.1s    renewed refused
                lease 1 is down (the store says that the lease is gone)
                close lease 1 (the store says that the lease is gone)
    5.2s    closed ok
                lease 2 is up (started)
    5.3s    released ok
            now lease ready, state standby
    6.95s   ...
                campaign #3 floor 1 (the lease is open)
    7.3s    won term 2 watched
                became leader in term 2 (won)
                leader is A in term 2 (held)

story own_lease_renewal_under_way_at_the_release
    The answer to a renewal of the lease that was spent says nothing about the next one.
    with own_lease
    given leader term 1

    4.8s    resign
                lost term 1 (resigned)
    4.9s    drained
                release #1 term 1 (the work has ended)
    5s      ...
                renew lease 1 (due)
    5.1s    released ok
            now lease ready
    6.3s    renewed refused
            now lease ready, state standby
    7.1s    ...
                campaign #3 floor 1 (due)
    7.2s    won term 2 watched
                became leader in term 2 (won)
                leader is A in term 2 (held)
            now leads yes

story own_lease_a_renewal_of_the_last_lease_answered_in_the_next
    The same, even later: the next leadership has begun. A refusal of the old one is no loss of
    it.
    with own_lease
    given leader term 1

    4.8s    resign
                lost term 1 (resigned)
    4.9s    drained
                release #1 term 1 (the work has ended)
    5s      ...
                renew lease 1 (due)
    5.1s    released ok
    6.5s    acquire
                campaign #3 floor 1 (asked to try)
    6.6s    won term 2 watched
                became leader in term 2 (won)
                leader is A in term 2 (held)
                acquired (won)
    6.65s   renewed refused
            now leads yes, deadline 16.5s

story L6_own_lease_an_old_renewal_changes_nothing_in_the_next
    The same with a good answer. It neither prolongs the new lease nor puts its renewal off.
    with own_lease
    given leader term 1

    4.8s    resign
                lost term 1 (resigned)
    4.9s    drained
                release #1 term 1 (the work has ended)
    5s      ...
                renew lease 1 (due)
    5.1s    released ok
    6.5s    acquire
                campaign #3 floor 1 (asked to try)
    6.6s    won term 2 watched
                became leader in term 2 (won)
                leader is A in term 2 (held)
                acquired (won)
    6.65s   renewed ok
            now leads yes, deadline 16.5s, wake 11.5s
    11.5s   ...
                renew lease 2 (due)

story own_lease_a_grant_for_the_last_lease
    The claim was deleted, a new one is campaigned for on what is left of the lease, and that lease
    dies meanwhile. The grant makes the dead lease anew in the store. So the lease is not closed
    before the answer is there: a claim that came after the close would stay behind (L3).
    with own_lease
    given leader term 1

    4.7s    hint
                observe (a hint)
    4.8s    observed free term 1
                lost term 1 (the claim is gone from the store)
    4.9s    drained
                campaign #3 floor 1 (the work has ended)
    5s      ...
                renew lease 1 (due)
    5.1s    renewed refused
                lease 1 is down (the store says that the lease is gone)
            now lease dead, wake never
    5.2s    won term 2
                close lease 1 (the store says that the lease is gone)
            now leads no
    5.3s    closed ok
                lease 2 is up (started)
                campaign #4 floor 2 (the lease is open)

story own_lease_left_to_expire
    With release on stop off: the claim is not given back, and its lease is closed when it has
    ended.
    with own_lease
    with release_on_stop off
    given leader term 1

    1s      stop
                lost term 1 (stopped)
    1.1s    drained
                stopped (stopped)
            now state stopped, lease closing, wake 16.5s
    16.5s   ...
                close lease 1, which has ended (no election needs it)
    16.6s   closed ok
            now lease closed, wake never

story own_leases_are_independent
    Two elections, two leases: the loss of one is none of the other's.
    with own_lease
    with elections a b
    given leader term 1

    5s      ...
                a: renew lease 1 (due)
                b: renew lease 1 (due)
    5.1s    a: renewed refused
                a: lease 1 is down (the store says that the lease is gone)
                a: lost term 1 (the store says that the lease is gone)
    5.2s    b: renewed ok
            now a: leads no
            now b: leads yes, deadline 15s
