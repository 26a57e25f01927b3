# Pause is a flag of the election, seen by everybody who looks: nobody leads while it is up.

story pause_ends_the_leadership
    The leader sees the flag and steps down in the usual order. It looks on, and campaigns when
    the flag is gone.
    with renewals ok
    given leader term 3

    1s      hint
                observe (a hint)
    1.1s    observed held mine term 3 nonce 1 paused watched
                lost term 3 (paused)
            now leads no
    1.5s    drained
                release #1 term 3 (the work has ended)
    1.6s    released ok
    3.6s    ...
                observe (due)
    3.6s    observed free term 3 paused watched
    60s     hint
                observe (a hint)
    60.1s   observed free term 3 paused watched
    100s    hint
                observe (a hint)
    100.1s  observed free term 3 watched
                campaign #7 floor 3 (free)
    100.2s  won term 4 watched
                became leader in term 4 (won)
                leader is A in term 4 (held)
            now leads yes

story a_paused_election_is_not_campaigned_for
    A standby learns of the pause when its campaign is refused.
    with renewals ok

    0s      start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                campaign #1 (the lease is open)
    0.2s    refused free term 3 paused watched
            now state standby
    50s     hint
                observe (a hint)
    50.1s   observed free term 3 paused
    57.6s   ...
                observe (due)
    58s     observed free term 3
                campaign #4 floor 3 (free)
    58.1s   won term 4 watched
                became leader in term 4 (won)
                leader is A in term 4 (held)

story a_pause_is_news_and_so_is_its_end
    Each look finds something new, so the hint of the next change does not wait (L2).
    with renewals ok
    given standby of B term 3

    1s      hint
                campaign #2 floor 3 (a hint)
    1.001s  held by B term 3 paused watched
    1.002s  hint
                observe (a hint)
    1.003s  observed held by B term 3 watched
    1.004s  hint
                campaign #4 floor 3 (a hint)
    1.005s  held by B term 3 paused watched

story a_pause_while_somebody_leads
    Seen by a standby: it keeps still, and does not preempt either.
    with renewals ok
    with priority 5 preempt 20s

    0s      start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                campaign #1 (the lease is open)
    0.2s    held by B term 3 paused watched
                leader is B in term 3 (held)
    50s     ...
    60s     hint
                observe (a hint)
    60.1s   observed held by B term 3 watched
    80.1s   ...
                order term 3 for A (a candidate that ranks higher asks for the leadership)
    80.2s   ordered ok
    80.3s   hint
                campaign #4 floor 3 (a hint)
    80.4s   held by B term 3 watched
    80.5s   hint
                campaign #5 floor 3 (a hint)
    80.6s   held by B term 3 paused watched
    80.61s  hint
                observe (a hint)

story an_old_answer_about_the_flag_costs_a_look
    A replica that lags shows the flag as it was in an earlier term. It is believed all the
    same: taken wrongly it costs one campaign that is refused; not believed, a store that has
    forgotten a term would be paused for ever.
    with renewals ok
    given standby of B term 3

    1s      hint
                campaign #2 floor 3 (a hint)
    1.1s    refused free term 3 paused watched
                nobody leads after term 3 (free)
    2s      hint
                observe (a hint)
    2.1s    observed free term 2
    9.6s    ...
                campaign #4 floor 3 (due)
    9.7s    refused free term 3 paused watched
            now state standby
    20s     hint
                observe (a hint)
    20.1s   observed free term 3 paused watched

story an_own_claim_in_a_paused_election_is_given_back
    A campaign of unknown outcome lands late, and then the election is paused. The refusal of the
    next campaign tells both: the claim is ours, and nobody may lead. Where every change is pushed,
    nobody would say it again.
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
    3.7s    held mine term 4 nonce 2 paused watched
                release #2 term 4 (paused)
            now leads no
    3.8s    released ok
                observe (due)
    3.9s    observed free term 4 paused watched
                nobody leads after term 4 (free)
            now state standby, wake 5s
