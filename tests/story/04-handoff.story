# How a leadership is given up, and how the next one begins. Two candidates, A and B, and what the
# store tells each of them.

story S7_stop_drains_then_releases_then_tells
    The whole order of a clean stop: no longer leader, "lost", the work ends, the claim is given
    back, "stopped", the lease is closed. B hears of it by a push and leads 0.2s later.
    with candidates A B
    given A: leader term 3
    given B: standby of A term 3

    1s      A: stop
                A: lost term 3 (stopped)
            now A: leads no, state resigning, lease live
    2s      A: drained
                A: release #1 term 3 (the work has ended)
            now A: state releasing
    2.1s    A: released ok
                A: stopped (stopped)
                A: close lease 1 (no election needs it)
            now A: state stopped, lease closing
    2.2s    A: closed ok
            now A: lease closed, wake never
    2.2s    B: hint
                B: campaign #2 floor 3 (a hint)
    2.3s    B: won term 4 watched
                B: became leader in term 4 (won)
                B: leader is B in term 4 (held)
            now B: leads yes, term 4

story S7_a_slow_work_keeps_the_claim
    Nobody hurries a voluntary end. The claim is kept and the lease renewed for as long as the
    work takes, so that no successor starts beside it; once per lease an error reminds of it.
    with candidates A B
    with renewals ok
    given A: leader term 3
    given B: standby of A term 3

    1s      A: resign
                A: lost term 3 (resigned)
            now A: leads no, lease live
    16s     ...
                A: error term 3 (the work has not ended yet)
    31s     ...
                A: error term 3 (the work has not ended yet)
    46s     ...
                A: error term 3 (the work has not ended yet)
    50s     A: drained
                A: release #1 term 3 (the work has ended)
    50.1s   A: released ok
    50.2s   B: hint
                B: campaign #2 floor 3 (a hint)
    50.3s   B: won term 4 watched
                B: became leader in term 4 (won)
                B: leader is B in term 4 (held)
    52.1s   ...
                A: campaign #3 floor 3 (due)
    52.2s   A: held by B term 4 watched
                A: leader is B in term 4 (held)

story S7_a_work_that_outlives_its_lease
    While the work drains, the store goes away. Then it is a loss like any other: the claim
    can't be kept, and the work has what is left of the lease.

    given leader term 3
    1s      resign
                lost term 3 (resigned)
    5s      ...
                renew lease 1 (due)
    6.6s    renewed unknown
                error (the call failed)
                renew lease 1 (retry)
    8.2s    renewed unknown
                error (the call failed)
    8.333333334s ...
                renew lease 1 (retry)
    9.9s    renewed unknown
                error (the call failed)
    10s     ...
                lease 1 is down (the deadline has passed)
    13.5s   ...
                close lease 1 (the deadline has passed)
    13.6s   closed ok
                open lease 2 (started)
    13.7s   opened ok
                lease 2 is up (the lease is open)
            now state resigning
    14s     drained
                campaign #2 floor 3 (the work has ended)
    14.1s   held by B term 4 watched
                leader is B in term 4 (held)

story a_resigned_leader_lets_the_others_go_first
    Who gave it back does not take it again at once: for 2s (or renew, if that is less) it keeps
    away, and then it contends again.

    given leader term 3
    1s      resign
                lost term 3 (resigned)
    1.1s    drained
                release #1 term 3 (the work has ended)
    1.2s    released ok
            now state standby, wake 3.2s
    2s      hint
                observe (a hint)
    2.1s    observed free term 3
    3.2s    ...
                campaign #4 floor 3 (due)
    3.2s    won term 4 watched
                became leader in term 4 (won)
                leader is A in term 4 (held)

story a_quiet_period_is_kept
    Resigned for half a minute: it looks, but does not campaign before the time is over.
    with renewals ok
    given leader term 3

    1s      resign quiet 30s
                lost term 3 (resigned)
    1.1s    drained
                release #1 term 3 (the work has ended)
    1.2s    released ok
    4s      hint
                observe (a hint)
    4.1s    observed held by B term 4 watched
                leader is B in term 4 (held)
    20s     hint
                observe (a hint)
    20.1s   observed free term 4 watched
                nobody leads after term 4 (free)
            now wake 25s
    31s     ...
                campaign #5 floor 4 (due)
    31.1s   won term 5 watched
                became leader in term 5 (won)
                leader is A in term 5 (held)

story a_quiet_period_without_end
    "Never again" is a time like any other: it keeps away until it is asked to try.
    with renewals ok
    given leader term 3

    1s      resign quiet never
                lost term 3 (resigned)
    1.1s    drained
                release #1 term 3 (the work has ended)
    1.2s    released ok
    500s    hint
                observe (a hint)
    500.1s  observed free term 3 watched
    600s    acquire
                campaign #4 floor 3 (asked to try)
    600.1s  won term 4 watched
                became leader in term 4 (won)
                leader is A in term 4 (held)
                acquired (won)
            now leads yes

story S6_a_release_names_lease_nonce_and_term
    A store must compare all three (and the runner checks that the lease is the living one).
    Between our two leaderships B has led: the second release names its own claim, not the first
    one.
    with renewals ok
    given leader term 3

    1s      resign
                lost term 3 (resigned)
    1.1s    drained
                release #1 term 3 (the work has ended)
    1.2s    released ok
    3.2s    ...
                campaign #3 floor 3 (due)
    3.2s    held by B term 4 watched
                leader is B in term 4 (held)
    8s      hint
                campaign #4 floor 4 (a hint)
    8.1s    won term 5 watched
                became leader in term 5 (won)
                leader is A in term 5 (held)
    9s      resign
                lost term 5 (resigned)
    9.1s    drained
                release #4 term 5 (the work has ended)
    9.2s    released refused

story L3_a_release_is_tried_until_it_is_confirmed
    Given back is what the store has confirmed. Failed, unknown: once more, with a backoff; the
    lease is renewed meanwhile, since the claim may still stand.

    given leader term 3
    1s      stop
                lost term 3 (stopped)
    1.1s    drained
                release #1 term 3 (the work has ended)
    1.2s    released failed
                error (the call failed)
    2.2s    ...
                release #1 term 3 (retry)
    2.3s    released unknown
                error (the call failed)
    4.3s    ...
                release #1 term 3 (retry)
    4.4s    released unknown
                error (the call failed)
            now state releasing, lease live
    5s      ...
                renew lease 1 (due)
    5.1s    renewed ok held 1
    8.4s    ...
                release #1 term 3 (retry)
    8.5s    released ok
                stopped (stopped)
                close lease 1 (no election needs it)

story L3_a_release_that_was_carried_out_unseen
    The first release landed, its answer was lost. The second one is refused: it is no longer
    ours. That is an answer, too.

    given leader term 3
    1s      resign
                lost term 3 (resigned)
    1.1s    drained
                release #1 term 3 (the work has ended)
    1.2s    released unknown
                error (the call failed)
    2.2s    ...
                release #1 term 3 (retry)
    2.3s    released refused
            now state standby
    4.3s    ...
                campaign #4 floor 3 (due)
    4.4s    held by B term 4 watched
                leader is B in term 4 (held)

story a_release_that_took_long_is_forgotten
    Its failures don't count for the campaign that comes after it.
    with renewals ok
    given leader term 3

    0.5s    resign
                lost term 3 (resigned)
    0.6s    drained
                release #1 term 3 (the work has ended)
    0.7s    released failed
                error (the call failed)
    1.7s    ...
                release #1 term 3 (retry)
    1.8s    released failed
                error (the call failed)
    3.8s    ...
                release #1 term 3 (retry)
    3.9s    released ok
    5.9s    ...
                campaign #5 floor 3 (due)
    6s      campaigned failed
                error (the call failed)
    7s      ...
                campaign #6 floor 3 (retry)
    7.1s    held by B term 4 watched
                leader is B in term 4 (held)

story L3_a_release_ends_with_its_lease
    The lease dies while the release is under way. Its close gives back all that it carries.

    given leader term 3
    4s      resign
                lost term 3 (resigned)
    4.1s    drained
                release #1 term 3 (the work has ended)
    5s      ...
                renew lease 1 (due)
    5.2s    renewed refused
                lease 1 is down (the store says that the lease is gone)
                close lease 1 (the store says that the lease is gone)
            now state standby
    5.3s    released unknown
    5.4s    closed ok
                open lease 2 (started)
    5.5s    opened ok
                lease 2 is up (the lease is open)
    6.1s    ...
                campaign #3 floor 3 (the lease is open)
    6.2s    held by B term 4 watched
                leader is B in term 4 (held)

story L3_a_release_that_waits_for_its_retry_ends_with_its_lease
    The same, between two tries.

    given leader term 3
    4.8s    stop
                lost term 3 (stopped)
    4.85s   drained
                release #1 term 3 (the work has ended)
    4.9s    released failed
                error (the call failed)
    5s      ...
                renew lease 1 (due)
    5.1s    renewed refused
                lease 1 is down (the store says that the lease is gone)
                stopped (stopped)
                close lease 1 (the store says that the lease is gone)
    5.2s    closed ok
            now state stopped, lease closed

story S8_stop_before_anything_began
    Nothing is owed to anybody: stopped at once. The lease that was being opened is closed as
    soon as it can be.

    0s      start
                open lease 1 (started)
    0.1s    stop
                stopped (stopped)
            now state stopped, lease opening
    0.2s    opened ok
                lease 1 is up (the lease is open)
                close lease 1 (no election needs it)
    0.3s    closed ok
            now lease closed, wake never

story S8_stop_while_the_store_is_away
    The lease is not there. There is nothing to give back, and nothing that tries again.

    0s      start
                open lease 1 (started)
    0.1s    opened failed
                error (the call failed)
                lease 1 is down (the call failed)
    0.2s    stop
                stopped (stopped)
            now lease closed, wake never
    0.3s    stop

story S8_stop_during_a_renewal
    The close waits for the renewal that is under way, and for nothing else.

    given standby of B term 3
    5s      ...
                renew lease 1 (due)
    5.05s   stop
                stopped (stopped)
            now lease closing
    5.1s    renewed ok
                close lease 1 (no election needs it)
    5.2s    closed ok

story S8_stop_while_renewals_fail
    The failures of the renewals don't count for the close.

    given standby of B term 3
    5s      ...
                renew lease 1 (due)
    5.1s    renewed failed
                error (the call failed)
                renew lease 1 (retry)
    5.2s    renewed failed
                error (the call failed)
    5.3s    stop
                stopped (stopped)
                close lease 1 (no election needs it)
    5.4s    closed failed
            now wake 6.4s

story S8_stop_during_a_campaign
    The campaign is won after nobody wants it any more. It is never reported, and given back;
    only then is it stopped.

    0s      start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                campaign #1 (the lease is open)
    0.2s    stop
    0.3s    won term 1
                release #1 term 1 (stopped)
            now leads no
    0.4s    released ok
                stopped (stopped)
                close lease 1 (no election needs it)
    0.5s    closed ok

story S8_stop_during_a_campaign_that_is_lost
    The same, and somebody else has it.

    0s      start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                campaign #1 (the lease is open)
    0.2s    stop
    0.3s    held by B term 1
                leader is B in term 1 (held)
                stopped (stopped)
                close lease 1 (no election needs it)
    0.4s    closed ok

story S8_stop_during_a_campaign_whose_lease_is_lost
    Stopped, the lease is gone, and then the campaign turns out to be won. The close gives it
    back.

    given standby of B term 3
    4.9s    hint
                campaign #2 floor 3 (a hint)
    4.95s   stop
    5s      ...
                renew lease 1 (due)
    5.1s    renewed refused
                lease 1 is down (the store says that the lease is gone)
                close lease 1 (the store says that the lease is gone)
    5.2s    won term 4
                stopped (stopped)
            now state stopped
    5.3s    closed ok

story S8_stop_while_looking
    An observation under way is nobody's business any more.

    given standby of B term 3
    1s      health 0
    1.1s    hint
                observe (a hint)
    1.2s    hint
    1.3s    stop
                stopped (stopped)
                close lease 1 (no election needs it)
            now state stopped
    1.4s    observed held by B term 3
    1.5s    closed ok

story S8_start_while_stopping
    Started again before it has stopped: first the stop is carried out to its end and told, then
    it starts anew. The claim of the old leadership is given back, and the new one is a new term
    (rule 7).

    given leader term 3
    1s      stop
                lost term 3 (stopped)
    1.1s    start
    1.2s    drained
                release #1 term 3 (the work has ended)
    1.3s    released ok
                stopped (stopped)
                campaign #3 floor 3 (started)
    1.4s    won term 4 watched
                became leader in term 4 (won)
                leader is A in term 4 (held)
            now leads yes, term 4

story S8_start_and_stop_while_stopping
    The last word counts: stopped it is, and told once.

    given leader term 3
    1s      stop
                lost term 3 (stopped)
    1.1s    start
    1.2s    stop
    1.3s    drained
                release #1 term 3 (the work has ended)
    1.4s    released ok
                stopped (stopped)
                close lease 1 (no election needs it)
    1.5s    closed ok
            now state stopped, wake never

story start_and_stop_again
    Restartable: a new lease, a new campaign, and a term above all that were seen.

    given leader term 3
    1s      stop
                lost term 3 (stopped)
    1.1s    drained
                release #1 term 3 (the work has ended)
    1.2s    released ok
                stopped (stopped)
                close lease 1 (no election needs it)
    1.3s    closed ok
    60s     start
                open lease 2 (started)
    60.1s   opened ok
                lease 2 is up (the lease is open)
                campaign #3 floor 3 (the lease is open)
    60.2s   won term 4 watched
                became leader in term 4 (won)
                leader is A in term 4 (held)
            now leads yes, term 4

story restarted_while_the_old_lease_is_being_closed
    The new lease is opened when the old one is off our hands.

    given leader term 3
    1s      stop
                lost term 3 (stopped)
    1.1s    drained
                release #1 term 3 (the work has ended)
    1.2s    released ok
                stopped (stopped)
                close lease 1 (no election needs it)
    1.3s    start
            now lease closing
    1.4s    closed unknown
    2.4s    ...
                close lease 1 (no election needs it)
    2.5s    closed ok
                open lease 2 (started)
    2.6s    opened ok
                lease 2 is up (the lease is open)
                campaign #3 floor 3 (the lease is open)

story release_on_stop_off_leaves_the_claim_to_expire
    A process that is restarted in place may want nobody to take over in between. The work ends,
    then nothing is given back: the lease ends by itself. Only then it is closed, because the
    caller still has something of it (a lock, a session), which would stay for ever.
    with release_on_stop off
    given leader term 3

    1s      stop
                lost term 3 (stopped)
    1.1s    drained
                stopped (stopped)
            now state stopped, lease closing, wake 16.5s
    16.5s   ...
                close lease 1, which has ended (no election needs it)
    16.6s   closed unknown
            now lease closed, wake never

story release_on_stop_off_is_forgotten_by_the_next_lease
    Started again, the process needs another lease. The first one is in the way: it is closed at
    once, and its claim goes with it. What was meant for it is not meant for the second one, which
    has no claim, and is closed when nobody needs it.
    with release_on_stop off
    given leader term 3

    1s      stop
                lost term 3 (stopped)
    1.1s    drained
                stopped (stopped)
    2s      start
                close lease 1 (no election needs it)
    2.05s   closed ok
                open lease 2 (started)
    2.1s    opened ok
                lease 2 is up (the lease is open)
                campaign #2 floor 3 (the lease is open)
    2.2s    held by B term 4 free_in 3s watched
                leader is B in term 4 (held)
    3s      stop
                stopped (stopped)
                close lease 2 (no election needs it)
    3.1s    closed ok
            now lease closed, wake never

story release_on_stop_off_still_gives_back_on_resign
    Only a stop leaves the claim behind.
    with release_on_stop off
    given leader term 3

    1s      resign
                lost term 3 (resigned)
    1.1s    drained
                release #1 term 3 (the work has ended)
    1.2s    released ok

story S8_words_that_come_when_nobody_leads
    Resign, transfer, alive and drained mean a leadership. Without one they mean nothing.

    given standby of B term 3
    1s      resign quiet 20s
    1.1s    transfer to C
    1.2s    alive
    1.3s    drained
            now state standby, wake 5s
    1.4s    hint
                campaign #2 floor 3 (a hint)
    1.5s    won term 4 watched
                became leader in term 4 (won)
                leader is A in term 4 (held)
    1.6s    drained
    1.7s    alive
            now leads yes

story L4_a_crowd_sets_out_one_after_the_other
    Where more than a few stand by, each waits for its turn after a hint, 0.5ms for each of them,
    and then looks before it campaigns: by then somebody leads. One that leads heeds a hint at once,
    and a look at a free election says nothing of how many there are.
    with candidates A B
    given B: standby of A term 3

    1s      B: hint
                B: campaign #2 floor 3 (a hint)
    1.1s    B: held by A term 4 watched crowd 100
                B: leader is A in term 4 (held)
    2s      B: hint
    2.021s  ...
                B: observe (its turn after a hint)
    2.03s   B: observed held by A term 5 watched crowd 60000
                B: leader is A in term 5 (held)
    3s      B: hint
    3.031241672s ...
                B: observe (its turn after a hint)
    3.04s   B: observed reserved term 5 free_in 1s
                B: nobody leads after term 5 (free)
    3.1s    B: hint
    3.131241672s ...
                B: observe (its turn after a hint)
    3.14s   B: observed free term 5
                B: campaign #6 floor 5 (free)
    3.15s   B: won term 6 watched
                B: became leader in term 6 (won)
                B: leader is B in term 6 (held)
    3.2s    B: hint
                B: observe (a hint)

story L4_a_turn_that_finds_nothing_new_counts
    Hints that lead to nothing are heeded ever later, by one that waits for its turn, too.
    with candidates A B
    given B: standby of A term 3

    1s      B: hint
                B: campaign #2 floor 3 (a hint)
    1.1s    B: held by A term 4 watched crowd 100
                B: leader is A in term 4 (held)
    2s      B: hint
    2.021s  ...
                B: observe (its turn after a hint)
    2.03s   B: observed held by A term 4 watched crowd 100
    2.04s   B: hint
    2.061s  ...
                B: observe (its turn after a hint)
    2.062s  B: observed held by A term 4 watched crowd 100
    2.063s  B: hint
    2.084s  ...
                B: observe (its turn after a hint)
    2.085s  B: observed held by A term 4 watched crowd 100
    2.086s  B: hint
    2.11525s ...
                B: observe (its turn after a hint)
    2.12s   B: observed held by A term 4 watched crowd 100
    2.121s  B: hint
    2.17775s ...
                B: observe (its turn after a hint)

story L4_a_campaign_after_a_look_counts
    A look that finds an answer older than what B knows leads to a campaign at once. If that finds
    nothing new either, the hint has cost two calls, and both count.
    with candidates A B
    given B: standby of A term 3

    1s      B: hint
                B: campaign #2 floor 3 (a hint)
    1.1s    B: held by A term 4 watched crowd 100
                B: leader is A in term 4 (held)
    2s      B: hint
    2.021s  ...
                B: observe (its turn after a hint)
    2.03s   B: observed held by A term 2 watched
                B: campaign #4 floor 4 (the record differs from what is known)
    2.04s   B: held by A term 2 watched
    2.041s  B: hint
    2.062s  ...
                B: observe (its turn after a hint)
    2.07s   B: observed held by A term 2 watched
                B: campaign #6 floor 4 (the record differs from what is known)
    2.08s   B: held by A term 2 watched
    2.09s   B: hint
            now B: wake 2.1325s

story L2_the_first_of_a_crowd_is_not_delayed
    Chance picks a few of a crowd, who campaign when the hint comes. Whoever looks in its turn
    campaigns, too, if it finds a lease that is over, or an answer older than what it knows.
    with candidates A B
    given B: standby of A term 3

    1s      B: hint
                B: campaign #2 floor 3 (a hint)
    1.1s    B: held by A term 4 watched crowd 100
                B: leader is A in term 4 (held)
    2s      B: hint random 0.07
                B: campaign #3 floor 4 (a hint)
    2.01s   B: held by A term 5 watched crowd 100
                B: leader is A in term 5 (held)
    3s      B: hint
    3.021s  ...
                B: observe (its turn after a hint)
    3.03s   B: observed held by A term 5 watched free_in 0s
                B: campaign #5 floor 5 (free)
    3.04s   B: held by A term 6 watched crowd 100
                B: leader is A in term 6 (held)
    4s      B: hint
    4.021s  ...
                B: observe (its turn after a hint)
    4.03s   B: observed free term 2
                B: campaign #7 floor 6 (the record differs from what is known)

story L2_a_few_set_out_at_once
    A handful of standbys is no herd: each heeds a hint when it comes.
    with candidates A B
    given B: standby of A term 3

    1s      B: hint
                B: campaign #2 floor 3 (a hint)
    1.1s    B: held by A term 4 watched crowd 8
                B: leader is A in term 4 (held)
    2s      B: hint
                B: campaign #3 floor 4 (a hint)
