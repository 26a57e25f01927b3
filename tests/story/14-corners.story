# Corners: small bugs that hide where two rare things meet. Each story was written because a planted
# bug had survived without it.

story own_lease_an_orphan_is_not_dated_by_the_last_doubt
    The campaign in doubt came to nothing. A claim of yet another campaign of ours shows up: nobody
    knows when that one was sent, so the lease does not live by it, and is closed.
    with own_lease

    0s      start
                lease 1 is up (started)
                campaign #1 (the lease is open)
    0.1s    campaigned unknown
                error (the outcome is unknown)
                claims lease 1 (the outcome is unknown)
    0.2s    claims none
    1.1s    ...
                campaign #2 (retry)
    1.2s    ...
    1.3s    held mine term 3 nonce 9
                close lease 1 (too late)
            now leads no

story rule7_a_list_of_a_lease_that_is_gone_says_nothing
    The list was asked for on lease 1 and comes when lease 2 is up. What was on lease 1 has gone
    together with it, so nothing is given back.
    given standby of B term 3

    1s      health 0.1
    5s      ...
                renew lease 1 (due)
    5.1s    renewed ok held 1
                claims lease 1 (the store counts other claims than are known)
    5.2s    freezes
    30s     thaws
                lease 1 is down (the deadline has passed)
                close lease 1, which has ended (the deadline has passed)
    30.02s  closed ok
                open lease 2 (started)
    30.04s  opened ok
                lease 2 is up (the lease is open)
                observe (the lease is open)
    30.06s  claims term 4 nonce 9
            now state standby, lease live

story L3_the_lease_is_kept_for_who_gives_back_after_its_stop
    a has stopped, and finds a claim that landed late. b stops while that is given back: the
    lease is closed only after the answer.
    with elections a b
    given leader term 3

    1s      a: stop
                a: lost term 3 (stopped)
    1.1s    a: drained
                a: release #1 term 3 (the work has ended)
    1.2s    a: released ok
                a: stopped (stopped)
    5s      ...
                renew lease 1 (due)
    5.1s    renewed ok held 2
                claims lease 1 (the store counts other claims than are known)
    5.2s    claims a term 4 nonce 9, b term 3 nonce 2
                a: release #9 term 4 (own claim found that was not asked for)
    5.3s    b: stop
                b: lost term 3 (stopped)
    5.4s    b: drained
                b: release #2 term 3 (the work has ended)
    5.5s    b: released ok
                b: stopped (stopped)
            now b: lease live
    5.6s    a: released ok
                close lease 1 (no election needs it)

story a_second_start_is_none
    Started twice, stopped once: the lease is closed.

    0s      start
                open lease 1 (started)
    0.1s    start
    0.2s    opened ok
                lease 1 is up (the lease is open)
                campaign #1 (the lease is open)
    0.3s    held by B term 3 watched
                leader is B in term 3 (held)
    1s      stop
                stopped (stopped)
                close lease 1 (no election needs it)
    1.1s    closed ok
            now lease closed

story L2_a_hint_while_a_claim_is_looked_for_counts_after_it
    The hint may be about the end of another's claim. It can't be followed while our own is looked
    for, but is not forgotten: nothing is found, and the next campaign doesn't wait for its retry.

    0s      start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                campaign #1 (the lease is open)
    1.5s    campaigned unknown
                error (the outcome is unknown)
                claims lease 1 (the outcome is unknown)
    1.6s    hint
    1.7s    claims none
                campaign #2 (a hint)

story L2_a_hint_while_a_claim_is_given_back_counts_after_it
    The same while the claim is given back: who led keeps away for 2s, and looks at once.
    with renewals ok
    given leader term 3

    1s      resign
                lost term 3 (resigned)
    1.1s    drained
                release #1 term 3 (the work has ended)
    1.2s    hint
    1.3s    released ok
                observe (a hint)

story L2_polls_do_not_wear_out_hints
    Any number of looks by timer that found nothing new: the first hint after them is followed at
    once.
    with renewals ok
    given standby of B term 3

    1s      hint
                campaign #2 floor 3 (a hint)
    1.1s    held by B term 3
    8.6s    ...
                campaign #3 floor 3 (due)
    8.7s    held by B term 3
    16.2s   ...
                campaign #4 floor 3 (due)
    16.3s   held by B term 3
    23.8s   ...
                campaign #5 floor 3 (due)
    23.9s   held by B term 3
    24s     hint
                campaign #6 floor 3 (a hint)

story L4_what_is_not_believed_is_no_news
    A store that forgot names another leader in an older term. Each look is answered so, and each
    makes the next hint wait longer.
    given standby of B term 3

    1s      hint
                campaign #2 floor 3 (a hint)
    1.001s  held by C term 2 watched
    1.002s  hint
    1.0078125s ...
                campaign #3 floor 3 (a hint)
    1.01s   held by C term 2 watched
    1.011s  hint
    1.0234375s ...
                campaign #4 floor 3 (a hint)
    1.2s    ...
    1.21s   held by C term 2 watched

story L2_that_nobody_leads_is_news
    Many hints found nothing new, so that the next one has to wait. Then the leader is gone: the
    hint after that is followed at once again.
    with renewals ok
    given standby of B term 3

    1s      health 0.1
    1.1s    hint
                observe (a hint)
    1.2s    observed held by B term 3 watched
    1.3s    hint
                observe (a hint)
    1.4s    observed held by B term 3 watched
    1.5s    hint
                observe (a hint)
    1.6s    observed held by B term 3 watched
    1.601s  hint
                observe (a hint)
    1.602s  observed held by B term 3 watched
    1.603s  hint
    1.6635s ...
                observe (a hint)
    1.67s   observed held by B term 3 watched
    1.671s  hint
    1.7885s ...
                observe (a hint)
    3s      ...
    3s      observed free term 3 watched
                nobody leads after term 3 (free)
    3.01s   hint
                observe (a hint)

story L1_who_forgot_is_not_trusted_to_push
    The store knows less than we do, and promises to push the end of the claim: it is polled.
    with renewals ok
    given standby of B term 3

    1s      hint
                campaign #2 floor 3 (a hint)
    1.1s    held by C term 1 watched
    8.6s    ...
                campaign #3 floor 3 (due)

story L1_the_end_of_a_reservation_has_a_timer
    Claims are pushed when they end; reservations end silently.
    given standby of B term 3

    1s      hint
                campaign #2 floor 3 (a hint)
    1.1s    refused reserved term 3 free_in 2s watched
                nobody leads after term 3 (free)
            now wake 3.1s

story L4_a_claim_that_lasts_nearly_for_ever
    The end in the record lies beyond the end of the clock: that is never, not now.
    with renewals ok
    given standby of B term 3

    1s      hint
                campaign #2 floor 3 (a hint)
    1.1s    held by B term 3 free_in 18446744073708ms
    60s     ...

story a_claim_that_no_longer_stands_has_no_leader
    The record still names who held it last.
    given standby of B term 3

    1s      health 0.1
    1.1s    hint
                observe (a hint)
    1.2s    observed free by B term 3 watched
                nobody leads after term 3 (free)
            now leader nobody

story rule10_ordered_to_keep_away_for_good
    An order to resign with a quiet period without end: it never campaigns by itself again.
    with renewals ok
    given leader term 3

    1s      hint
                observe (a hint)
    1.1s    observed held mine term 3 nonce 1 watched order resign id 7 for 3 quiet never
                lost term 3 (ordered to resign)
    1.2s    drained
                release #1 term 3 (the work has ended)
    1.3s    released ok
    60s     ...
            now state standby

story L1_refused_though_nobody_leads
    The campaign was refused because its lease was gone by then, not because of a leader. No push
    will come, so it is tried again.
    with renewals ok
    given standby of B term 3

    1s      hint
                campaign #2 floor 3 (a hint)
    1.1s    refused free term 3 watched
                nobody leads after term 3 (free)
    2.1s    ...
                campaign #3 floor 3 (retry)
    3s      ...

story L4_who_asks_without_a_lease_waits_for_it
    Woken past the deadline, and asked to acquire before any timer has rung: the lease can't carry
    a campaign any more, and to look instead would not help. The end of the lease answers.
    given standby of B term 3

    5s      ...
                renew lease 1 (due)
    5.1s    renewed ok
    6s      freezes
    30s     thaws, then acquire
                lease 1 is down (the deadline has passed)
                not-acquired (the call failed)
                close lease 1, which has ended (the deadline has passed)
