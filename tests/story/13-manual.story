# Manual: campaigns only when asked to; and `acquire` in general, "try now, and say how it went".

story manual_campaigns_only_when_asked
    It keeps its lease and looks, but leaves a free election alone.
    with manual

    0s      start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                observe (the lease is open)
    0.2s    observed free term 3 watched
            now state standby
    1s      acquire
                campaign #2 floor 3 (asked to try)
    1.1s    won term 4 watched
                became leader in term 4 (won)
                leader is A in term 4 (held)
                acquired (won)
            now leads yes

story manual_asks_once
    Somebody else has it: the answer is no, and that is the end of it.
    with manual

    0s      start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                observe (the lease is open)
    0.2s    observed held by B term 3 watched
                leader is B in term 3 (held)
    1s      acquire
                campaign #2 floor 3 (asked to try)
    1.1s    held by B term 3 watched
                not-acquired (held)
    2s      hint
                observe (a hint)
    2.1s    observed free term 3 watched
                nobody leads after term 3 (free)
            now state standby

story acquire_before_the_lease_is_open
    Asked early: tried as soon as it can be.
    with manual

    0s      start
                open lease 1 (started)
    0.05s   acquire
    0.1s    opened ok
                lease 1 is up (the lease is open)
                campaign #1 (the lease is open)
    0.2s    won term 1 watched
                became leader in term 1 (won)
                leader is A in term 1 (held)
                acquired (won)
            now leads yes

story acquire_by_the_leader
    It has it already.

    given leader term 3
    1s      acquire
                acquired (won)
            now leads yes

story acquire_when_not_started
    Who does not stand can't be elected.

    0s      acquire
                not-acquired (not started, or observing only)
            now state stopped
    1s      start
                open lease 1 (started)
    1.1s    opened ok
                lease 1 is up (the lease is open)
                campaign #1 (the lease is open)
    1.2s    won term 1 watched
                became leader in term 1 (won)
                leader is A in term 1 (held)
    2s      stop
                lost term 1 (stopped)
    3s      acquire
                not-acquired (not started, or observing only)

story acquire_does_not_wait_for_a_quiet_period
    Asked for by the application, which knows what it does.

    given leader term 3
    1s      resign quiet 60s
                lost term 3 (resigned)
    1.1s    drained
                release #1 term 3 (the work has ended)
    1.2s    released ok
    2s      acquire
                campaign #3 floor 3 (asked to try)
    2.1s    won term 4 watched
                became leader in term 4 (won)
                leader is A in term 4 (held)
                acquired (won)
            now leads yes

story acquire_during_a_campaign
    One campaign is enough for both.

    0s      start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                campaign #1 (the lease is open)
    0.2s    acquire
    0.3s    acquire
    0.4s    held by B term 1 watched
                leader is B in term 1 (held)
                not-acquired (held)

story acquire_during_a_look
    The look is older than the question: after it the campaign follows, whatever it shows.
    with manual

    0s      start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                observe (the lease is open)
    0.2s    acquire
    0.3s    observed held by B term 3 watched
                leader is B in term 3 (held)
                campaign #2 floor 3 (asked to try)
    0.4s    held by B term 3 watched
                not-acquired (held)
            now state standby

story acquire_that_fails
    The store did not answer: that is a no, not a maybe.

    given standby of B term 3
    1s      acquire
                campaign #2 floor 3 (asked to try)
    1.1s    campaigned failed
                error (the call failed)
                not-acquired (the call failed)

story acquire_with_an_unknown_outcome_found
    The answer waits until it is known: yes.

    given standby of B term 3
    1s      acquire
                campaign #2 floor 3 (asked to try)
    2.6s    campaigned unknown
                error (the outcome is unknown)
                claims lease 1 (the outcome is unknown)
    2.7s    claims term 4 nonce 2
                became leader in term 4 (own claim found after an unknown outcome)
                leader is A in term 4 (held)
                acquired (own claim found after an unknown outcome)
                observe (own claim found after an unknown outcome)
            now leads yes

story acquire_with_an_unknown_outcome_not_found
    The answer waits until it is known: no.

    given standby of B term 3
    1s      acquire
                campaign #2 floor 3 (asked to try)
    2.6s    campaigned unknown
                error (the outcome is unknown)
                claims lease 1 (the outcome is unknown)
    2.7s    claims none
                not-acquired (the call failed)
            now state standby

story acquire_while_the_store_is_away
    The lease can't be opened: the answer is no, at the first failure, and not whenever the
    store is back.
    with manual

    0s      start
                open lease 1 (started)
    0.1s    acquire
    0.2s    opened failed
                error (the call failed)
                lease 1 is down (the call failed)
                not-acquired (the call failed)
    1.2s    ...
                open lease 2 (retry)
    1.3s    opened ok
                lease 2 is up (the lease is open)
                observe (the lease is open)
            now state standby

story acquire_while_unwell
    Not fit to lead: the answer comes at once.

    given standby of B term 3
    1s      health 0
    2s      acquire
                not-acquired (unhealthy)
            now state standby

story acquire_and_then_unwell
    Asked while the lease is being opened, then unwell: it will not be tried, and that is said.
    with manual

    0s      start
                open lease 1 (started)
    0.1s    acquire
    0.2s    health 0
                not-acquired (unhealthy)
            now state standby

story acquire_and_then_paused
    The look shows a paused election: the answer is no.
    with manual

    0s      start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                observe (the lease is open)
    0.2s    acquire
    0.3s    observed free term 3 paused watched
                not-acquired (paused)
            now state standby

story acquire_and_then_stop
    Stopped before the answer: no.

    0s      start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                campaign #1 (the lease is open)
    0.2s    acquire
    0.3s    stop
                not-acquired (stopped)
    0.4s    won term 1
                release #1 term 1 (stopped)
    0.5s    released ok
                stopped (stopped)
                close lease 1 (no election needs it)
    0.6s    closed ok

story acquire_while_the_last_claim_is_given_back
    Asked during the release: tried at once when it is done.

    given leader term 3
    1s      resign
                lost term 3 (resigned)
    1.1s    acquire
    1.2s    drained
                release #1 term 3 (the work has ended)
    1.3s    released ok
                campaign #3 floor 3 (asked to try)
    1.4s    won term 4 watched
                became leader in term 4 (won)
                leader is A in term 4 (held)
                acquired (won)

story acquire_a_late_grant
    Won, but too late: no, and it goes back.
    with manual

    0s      start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                observe (the lease is open)
    0.2s    observed free term 3 watched
    5s      ...
                renew lease 1 (due)
    5.1s    renewed ok
    9s      acquire
                campaign #2 floor 3 (asked to try)
    9.1s    freezes
    20s     thaws, then won term 4
                not-acquired (too late)
                release #2 term 4 (too late)
                lease 1 is down (the deadline has passed)
                close lease 1 (the deadline has passed)
            now leads no

story manual_does_not_adopt_what_nobody_waits_for
    The answer was no; the claim that landed after it goes back.
    with manual

    0s      start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                observe (the lease is open)
    0.2s    observed free term 3 watched
    1s      acquire
                campaign #2 floor 3 (asked to try)
    2.6s    campaigned unknown
                error (the outcome is unknown)
                claims lease 1 (the outcome is unknown)
    2.7s    claims none
                not-acquired (the call failed)
    3.6s    ...
                observe (retry)
    3.7s    observed free term 3 watched
    5s      ...
                renew lease 1 (due)
    5.1s    renewed ok held 1
                claims lease 1 (the store counts other claims than are known)
    5.2s    claims term 4 nonce 2
                release #2 term 4 (no longer wanted)
            now leads no
    5.3s    released ok
                observe (due)
