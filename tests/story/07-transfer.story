# Handing over to a named candidate: by the application, by an order left in the store, or because a
# better candidate asks for it.

story transfer_hands_over_to_a_named_candidate
    A releases it reserved for B, for 2s; B hears of it and takes it, C can't. When A looks
    again, it sees that B leads: the transfer is done.
    with candidates A B C
    given A: leader term 3
    given B: standby of A term 3
    given C: standby of A term 3

    1s      A: transfer to B
                A: lost term 3 (transfer)
            now A: leads no
    1.1s    A: drained
                A: release #1 term 3 for B held back 2s (the work has ended)
    1.2s    A: released ok
    1.3s    B: hint
                B: campaign #2 floor 3 (a hint)
    1.3s    C: hint
                C: campaign #2 floor 3 (a hint)
    1.4s    B: won term 4 watched
                B: became leader in term 4 (won)
                B: leader is B in term 4 (held)
    1.5s    C: held by B term 4 watched
                C: leader is B in term 4 (held)
    3.2s    ...
                A: campaign #3 floor 3 (due)
    3.2s    A: held by B term 4 watched
                A: leader is B in term 4 (held)
            now B: leads yes

story a_transfer_that_is_not_taken_is_over
    B does not come. After the 2s the election is free for all; who then leads is not B, and
    that is reported as what became of the transfer.

    given leader term 3
    1s      transfer to B
                lost term 3 (transfer)
    1.1s    drained
                release #1 term 3 for B held back 2s (the work has ended)
    1.2s    released ok
    3.2s    ...
                campaign #3 floor 3 (due)
    3.2s    held by C term 4 watched
                leader is C in term 4 (held)
                error about B (the target of the transfer did not take over)
            now leader C
    4s      hint
                campaign #4 floor 4 (a hint)
    4.1s    held by C term 4 watched
    4.5s    hint
                campaign #5 floor 4 (a hint)
    4.6s    held by D term 5 watched
                leader is D in term 5 (held)

story a_transfer_that_comes_back
    Nobody takes it, and A itself leads again: the same report, and a new term.

    given leader term 3
    1s      transfer to B
                lost term 3 (transfer)
    1.1s    drained
                release #1 term 3 for B held back 2s (the work has ended)
    1.2s    released ok
    3.2s    ...
                campaign #3 floor 3 (due)
    3.2s    won term 4 watched
                became leader in term 4 (won)
                leader is A in term 4 (held)
                error about B (the target of the transfer did not take over)
            now leads yes, term 4

story a_transfer_to_nobody_is_refused
    The target is not there, or unwell. The leader stays, and says why.

    given leader term 3
    1s      transfer to B unwell
                error about B (the target of the transfer is absent, or not healthy)
            now leads yes

story a_transfer_to_oneself_is_nothing
    It leads already.

    given leader term 3
    1s      transfer to A
            now leads yes

story a_transfer_dies_with_its_leadership
    The lease is lost before the work has ended: there was nothing to hand over. A later release
    is meant for everybody.

    given leader term 3
    4.9s    transfer to B
                lost term 3 (transfer)
    5s      ...
                renew lease 1 (due)
    5.1s    renewed refused
                lease 1 is down (the store says that the lease is gone)
    5.2s    drained
                close lease 1 (the store says that the lease is gone)
    5.3s    closed ok
                open lease 2 (started)
    5.4s    opened ok
                lease 2 is up (the lease is open)
                campaign #2 floor 3 (the lease is open)
    5.5s    won term 4 watched
                became leader in term 4 (won)
                leader is A in term 4 (held)
    6s      resign
                lost term 4 (resigned)
    6.1s    drained
                release #2 term 4 (the work has ended)
    6.2s    released ok

story a_transfer_does_not_haunt_what_is_given_back_later
    The same, and the next claim is not led at all: it goes back to everybody.

    given leader term 3
    4.9s    transfer to B
                lost term 3 (transfer)
    5s      ...
                renew lease 1 (due)
    5.1s    renewed refused
                lease 1 is down (the store says that the lease is gone)
    5.2s    drained
                close lease 1 (the store says that the lease is gone)
    5.3s    closed ok
                open lease 2 (started)
    5.4s    opened ok
                lease 2 is up (the lease is open)
                campaign #2 floor 3 (the lease is open)
    5.45s   health 0
    5.5s    won term 4
                release #2 term 4 (unhealthy)

story a_transfer_survives_a_list_of_claims
    While the work drains, the store lists what is on the lease. The claim is there: it is still
    handed over to B.

    given leader term 3
    1s      transfer to B
                lost term 3 (transfer)
    5s      ...
                renew lease 1 (due)
    5.1s    renewed ok held 2
                claims lease 1 (the store counts other claims than are known)
    5.2s    claims term 3 nonce 1
    6s      drained
                release #1 term 3 for B held back 2s (the work has ended)

story a_transfer_ends_with_its_claim
    The store has lost the claim while the work drained: there is nothing to hand over. What comes
    back from an older copy of the store later is a claim that nobody asked for. It is given back
    to everybody.

    given leader term 3
    1s      transfer to B
                lost term 3 (transfer)
    5s      ...
                renew lease 1 (due)
    5.1s    renewed ok held 0
                claims lease 1 (the store counts other claims than are known)
    5.2s    claims none
    6s      drained
                campaign #2 floor 3 (the work has ended)
    6.1s    held mine term 3 nonce 1
                release #1 term 3 (own claim found that was not asked for)

story rule_10_an_order_names_its_term
    Orders stand in the record. This one was meant for the leader of term 2, and we are its
    successor: it is none of our business. The one for term 3 is.

    given leader term 3
    1s      hint
                observe (a hint)
    1.1s    observed held mine term 3 nonce 1 order resign id 7 for 2 watched
            now leads yes
    2s      hint
                observe (a hint)
    2.1s    observed held mine term 3 nonce 1 order resign id 8 for 3 watched
                lost term 3 (ordered to resign)
            now leads no
    2.2s    drained
                release #1 term 3 (the work has ended)
    2.3s    released ok
    4.3s    ...
                campaign #5 floor 3 (due)
    4.3s    held by B term 4 watched
                leader is B in term 4 (held)

story rule_10_an_order_to_resign_for_a_while
    With a quiet period, as if the application had asked for it.
    with renewals ok
    given leader term 3

    1s      hint
                observe (a hint)
    1.1s    observed held mine term 3 nonce 1 order resign id 7 for 3 quiet 60s watched
                lost term 3 (ordered to resign)
    1.2s    drained
                release #1 term 3 (the work has ended)
    1.3s    released ok
    2s      hint
                observe (a hint)
    2.1s    observed free term 3 watched
    61.1s   ...
                campaign #5 floor 3 (due)
    61.3s   won term 4 watched
                became leader in term 4 (won)
                leader is A in term 4 (held)

story rule_10_an_order_to_transfer
    The same as a transfer by the application.

    given leader term 3
    1s      hint
                observe (a hint)
    1.1s    observed held mine term 3 nonce 1 order transfer to B id 7 for 3 watched
                lost term 3 (transfer)
    1.2s    drained
                release #1 term 3 for B held back 2s (the work has ended)
    1.3s    released ok
    3.3s    ...
                campaign #4 floor 3 (due)
    3.4s    held by B term 4 watched
                leader is B in term 4 (held)

story rule_10_an_order_is_refused_once
    An order that can't be carried out stands in the record until it is replaced. It is refused
    once, not at each look; a new one, with a number of its own, is a new order.

    given leader term 3
    1s      hint
                observe (a hint)
    1.1s    observed held mine term 3 nonce 1 order transfer to B unwell id 7 for 3 watched
                error about B (the target of the transfer is absent, or not healthy)
    2s      hint
                observe (a hint)
    2.1s    observed held mine term 3 nonce 1 order transfer to B id 7 for 3 watched
            now leads yes
    3s      hint
                observe (a hint)
    3.1s    observed held mine term 3 nonce 1 order transfer to B id 8 for 3 watched
                lost term 3 (transfer)
            now leads no

story rule_10_an_order_for_a_claim_that_nobody_knew
    The order was left for a claim that landed late, before its owner knew of it. Whoever adopts a
    claim looks at the record at once: the push that told of the order is long over.
    with renewals ok
    given standby of B term 3

    1s      hint
                campaign #2 floor 3 (a hint)
    2.6s    campaigned unknown
                error (the outcome is unknown)
                claims lease 1 (the outcome is unknown)
    2.7s    claims none
    3.6s    ...
                campaign #3 floor 3 (retry)
    3.7s    held mine term 4 nonce 2 watched order resign id 7 for 4 quiet 30s
                became leader in term 4 (own claim found after an unknown outcome)
                leader is A in term 4 (held)
                observe (own claim found after an unknown outcome)
    3.8s    observed held mine term 4 nonce 2 watched order resign id 7 for 4 quiet 30s
                lost term 4 (ordered to resign)
            now leads no

story a_preferred_standby_asks_for_its_place
    B ranks above A. After the preempt delay it leaves an order for the leader of term 3, and A
    hands over in the usual order. No claim is taken from anybody.
    with candidates A B
    with renewals ok
    with B: priority 10 preempt 20s
    given A: leader term 3

    0s      B: start
                B: open lease 1 (started)
    0.1s    B: opened ok
                B: lease 1 is up (the lease is open)
                B: campaign #1 (the lease is open)
    0.2s    B: held by A term 3 priority 0 score 1.0 watched
                B: leader is A in term 3 (held)
    20.2s   ...
                B: order term 3 for B (a candidate that ranks higher asks for the leadership)
    20.3s   B: ordered ok
    20.4s   A: hint
                A: observe (a hint)
    20.5s   A: observed held mine term 3 nonce 1 order transfer to B id 1 for 3 watched
                A: lost term 3 (transfer)
    20.6s   A: drained
                A: release #1 term 3 for B held back 2s (the work has ended)
    20.7s   A: released ok
    20.8s   B: hint
                B: campaign #3 floor 3 (a hint)
    20.9s   B: won term 4 watched
                B: became leader in term 4 (won)
                B: leader is B in term 4 (held)
            now B: leads yes
    22.7s   ...
                A: campaign #4 floor 3 (due)
    22.7s   A: held by B term 4 priority 10 score 1.0 watched
                A: leader is B in term 4 (held)
            now A: wake 25s

story a_healthier_standby_asks_for_its_place
    Of the same priority: a score that is better by 0.1 or more asks, one that is a little
    better does not. That margin keeps two candidates from swapping places for ever.
    with renewals ok
    with preempt 20s

    0s      start
                open lease 1 (started)
    0.1s    health 0.95
    0.2s    opened ok
                lease 1 is up (the lease is open)
                campaign #1 (the lease is open)
    0.3s    held by B term 3 score 0.86 watched
                leader is B in term 3 (held)
    100s    hint
                campaign #2 floor 3 (a hint)
    100.1s  held by B term 3 score 0.85 watched
            now wake 105s
    120.1s  ...
                order term 3 for A (a candidate that ranks higher asks for the leadership)
    120.2s  ordered ok
    140.1s  ...
                order term 3 for A (a candidate that ranks higher asks for the leadership)
    140.2s  ordered refused
            now wake 145s

story a_lesser_standby_never_asks
    A better score does not outweigh a lower priority.
    with renewals ok
    with preempt 20s priority -1

    0s      start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                campaign #1 (the lease is open)
    0.2s    held by B term 3 priority 0 score 0.1 watched
                leader is B in term 3 (held)
    100s    ...

story preemption_starts_anew_with_every_leader
    The delay is counted for each leadership: a leader that has only just begun is left alone.
    with renewals ok
    with preempt 20s priority 5

    0s      start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                campaign #1 (the lease is open)
    0.2s    held by B term 3 watched
                leader is B in term 3 (held)
    15s     hint
                campaign #2 floor 3 (a hint)
    15.1s   held by C term 4 watched
                leader is C in term 4 (held)
    25s     hint
                campaign #3 floor 4 (a hint)
    25.1s   held by C term 4 watched
    35.1s   ...
                order term 4 for A (a candidate that ranks higher asks for the leadership)
    35.2s   ordered unknown

story preemption_ends_when_the_leader_is_better_or_gone
    Ranks change, and so does the own health.
    with renewals ok
    with preempt 20s

    0s      start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                campaign #1 (the lease is open)
    0.2s    held by B term 3 score 0.5 watched
                leader is B in term 3 (held)
    10s     hint
                campaign #2 floor 3 (a hint)
    10.1s   held by B term 3 score 1 watched
    30s     hint
                campaign #3 floor 3 (a hint)
    30.1s   held by B term 3 score 0.8 watched
    40s     health 0.7
    60s     health 1
                campaign #4 floor 3 (healthy again)
    60.1s   held by B term 3 score 0.8 watched
    70s     hint
                campaign #5 floor 3 (a hint)
    70.1s   refused reserved term 3 free_in 30s
                nobody leads after term 3 (free)
    90s     stop
                stopped (stopped)
                close lease 1 (no election needs it)

story preemption_is_over_when_we_lead
    The plan to ask for the place dies with the win: nobody is asked for anything when we have
    lost it again.
    with renewals ok
    with preempt 20s priority 5

    0s      start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                campaign #1 (the lease is open)
    0.2s    held by B term 3 watched
                leader is B in term 3 (held)
    10s     hint
                campaign #2 floor 3 (a hint)
    10.1s   won term 4 watched
                became leader in term 4 (won)
                leader is A in term 4 (held)
    30s     resign
                lost term 4 (resigned)
    30.1s   drained
                release #2 term 4 (the work has ended)
    30.2s   released ok
    32.2s   ...
                campaign #4 floor 4 (due)
    32.2s   held by B term 5 priority 9 watched
                leader is B in term 5 (held)
    60s     ...

story a_leader_of_higher_rank_is_left_alone
    Our 5 is more than the usual 0, but less than B's 9.
    with renewals ok
    with preempt 20s priority 5

    0s      start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                campaign #1 (the lease is open)
    0.2s    held by B term 3 priority 9 watched
                leader is B in term 3 (held)
    60s     ...

story preemption_does_not_survive_a_stop
    Planned, stopped, and started again much later: the delay is counted anew.
    with renewals ok
    with preempt 20s priority 5

    0s      start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                campaign #1 (the lease is open)
    0.2s    held by B term 3 watched
                leader is B in term 3 (held)
    5s      stop
                stopped (stopped)
                close lease 1 (no election needs it)
    5.1s    closed ok
    30s     start
                open lease 2 (started)
    30.1s   opened ok
                lease 2 is up (the lease is open)
                campaign #2 floor 3 (the lease is open)
    30.2s   held by B term 3 watched
    50.2s   ...
                order term 3 for A (a candidate that ranks higher asks for the leadership)

story without_a_delay_nobody_is_preempted
    Preemption is off by default, however good the standby.
    with renewals ok
    with priority 100

    0s      start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                campaign #1 (the lease is open)
    0.2s    held by B term 3 priority 0 score 0.1 watched
                leader is B in term 3 (held)
    100s    ...

story an_unwell_standby_asks_for_nothing
    Better by its priority, but not fit to lead.
    with renewals ok
    with priority 100 preempt 20s

    0s      start
                open lease 1 (started)
    0.1s    health 0.1
    0.2s    opened ok
                lease 1 is up (the lease is open)
                observe (the lease is open)
    0.3s    observed held by B term 3 priority 0 watched
                leader is B in term 3 (held)
    100s    ...
