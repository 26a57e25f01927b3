# The campaign whose outcome nobody knows. It may have been carried out, or not, or not yet. A claim
# that may be ours is never walked away from (L3), and led only if it is certainly ours (rule 8).

story S9_unknown_is_not_leader
    No answer is not a yes. The store is asked what is on our lease, and says: the claim. It is
    adopted, in its own term.

    0s      start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                campaign #1 (the lease is open)
    1.7s    campaigned unknown
                error (the outcome is unknown)
                claims lease 1 (the outcome is unknown)
            now state seeking, leads no
    1.8s    claims term 1 nonce 1
                became leader in term 1 (own claim found after an unknown outcome)
                leader is A in term 1 (held)
                observe (own claim found after an unknown outcome)
            now state leading, leads yes, term 1

story unknown_and_nothing_there
    It was not carried out. After the usual backoff the candidate tries again.

    0s      start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                campaign #1 (the lease is open)
    1.7s    campaigned unknown
                error (the outcome is unknown)
                claims lease 1 (the outcome is unknown)
    1.8s    claims none
            now state standby, wake 2.7s
    2.7s    ...
                campaign #2 (retry)
    2.8s    won term 1 watched
                became leader in term 1 (won)
                leader is A in term 1 (held)

story unknown_and_the_question_fails_too
    The question for the claims is repeated until it is answered. Nothing is campaigned for
    meanwhile: it might be ours already.

    0s      start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                campaign #1 (the lease is open)
    1.7s    campaigned unknown
                error (the outcome is unknown)
                claims lease 1 (the outcome is unknown)
    3.3s    claims unknown
    4.3s    ...
                claims lease 1 (the outcome is unknown)
    4.4s    claims failed
    5s      ...
                renew lease 1 (due)
    5.1s    renewed ok held 1
    6.4s    ...
                claims lease 1 (the outcome is unknown)
    6.5s    claims term 1 nonce 1
                became leader in term 1 (own claim found after an unknown outcome)
                leader is A in term 1 (held)
                observe (own claim found after an unknown outcome)
            now leads yes

story unknown_until_the_lease_is_gone
    It is never found out. When the lease ends, the question is void: its close gives back what
    may be there.

    0s      start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                campaign #1 (the lease is open)
    1.7s    campaigned unknown
                error (the outcome is unknown)
                claims lease 1 (the outcome is unknown)
    3.3s    claims unknown
    4.3s    ...
                claims lease 1 (the outcome is unknown)
    5s      ...
                renew lease 1 (due)
    5.1s    renewed refused
                lease 1 is down (the store says that the lease is gone)
                close lease 1 (the store says that the lease is gone)
            now state standby
    5.2s    claims term 1 nonce 1
    5.3s    closed ok
                open lease 2 (started)
    5.4s    opened ok
                lease 2 is up (the lease is open)
                campaign #2 (the lease is open)
    5.5s    won term 2 watched
                became leader in term 2 (won)
                leader is A in term 2 (held)

story a_new_lease_asks_afresh
    The question had to wait after it failed; about the next lease it is asked at once, and its
    failures are counted from the first.
    with random 1

    0s      start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                campaign #1 (the lease is open)
    1.7s    campaigned unknown
                error (the outcome is unknown)
                claims lease 1 (the outcome is unknown)
    3.3s    claims unknown
    5s      ...
                renew lease 1 (due)
    5.1s    renewed refused
                lease 1 is down (the store says that the lease is gone)
                close lease 1 (the store says that the lease is gone)
    5.2s    closed ok
                open lease 2 (started)
    5.25s   opened ok
                lease 2 is up (the lease is open)
                campaign #2 (the lease is open)
    5.26s   campaigned unknown
                error (the outcome is unknown)
                claims lease 2 (the outcome is unknown)
    5.27s   claims failed random 0.5
            now wake 6.269908447s

story L3_a_campaign_that_lands_late_is_adopted
    Unknown, and nothing there: the request was still on its way. The next campaign finds that
    the election is held, by ourselves: with the nonce of the first one, on our living lease.

    0s      start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                campaign #1 (the lease is open)
    1.7s    campaigned unknown
                error (the outcome is unknown)
                claims lease 1 (the outcome is unknown)
    1.8s    claims none
    2.7s    ...
                campaign #2 (retry)
    2.8s    held mine term 1 nonce 1
                became leader in term 1 (own claim found after an unknown outcome)
                leader is A in term 1 (held)
                observe (own claim found after an unknown outcome)
            now leads yes, term 1

story L3_the_count_finds_what_landed_late
    The same, but nobody campaigns (a standby of C). The next renewal counts one claim more than
    we know of.

    0s      start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                campaign #1 (the lease is open)
    1.7s    campaigned unknown
                error (the outcome is unknown)
                claims lease 1 (the outcome is unknown)
    1.8s    claims none
    2.7s    ...
                campaign #2 (retry)
    2.8s    held by C term 1 watched
                leader is C in term 1 (held)
    5s      ...
                renew lease 1 (due)
    5.1s    renewed ok held 1
                claims lease 1 (the store counts other claims than are known)
    5.2s    claims term 2 nonce 1
                became leader in term 2 (own claim found after an unknown outcome)
                leader is A in term 2 (held)
                observe (own claim found after an unknown outcome)
            now leads yes, term 2

story L3_a_look_finds_what_landed_late
    The same, seen by a look at the record.

    given standby of B term 3
    1s      hint
                campaign #2 floor 3 (a hint)
    2.6s    campaigned unknown
                error (the outcome is unknown)
                claims lease 1 (the outcome is unknown)
    2.7s    claims none
    2.8s    health 0.5
    3.6s    ...
                observe (retry)
    3.7s    observed held mine term 4 nonce 2
                nobody leads after term 4 (free)
                claims lease 1 (the record differs from what is known)
    3.8s    claims term 4 nonce 2
                release #2 term 4 (unhealthy)
    3.9s    released ok
                observe (due)
            now state standby

story rule_8_a_claim_that_nobody_asked_for_is_given_back
    A claim on our lease with a nonce that ended otherwise is an orphan: nobody leads on it.

    given standby of B term 3
    5s      ...
                renew lease 1 (due)
    5.1s    renewed ok held 1
                claims lease 1 (the store counts other claims than are known)
    5.2s    claims term 9 nonce 1
                release #1 term 9 (own claim found that was not asked for)
            now leads no, state releasing
    5.3s    released ok
            now state standby

story rule_8_a_campaign_that_meets_an_orphan_gives_it_back
    The same, found by a campaign.

    given standby of B term 3
    1s      hint
                campaign #2 floor 3 (a hint)
    1.1s    held mine term 4 nonce 1
                release #1 term 4 (own claim found that was not asked for)
            now leads no
    1.2s    released ok

story rule_8_a_term_that_was_led_is_not_led_again
    A store that forgot the release (a failover) shows the claim of the last leadership again.
    Its term was reported and lost: it goes back.

    given leader term 3
    1s      resign quiet 60s
                lost term 3 (resigned)
    1.1s    drained
                release #1 term 3 (the work has ended)
    1.2s    released ok
    5s      ...
                renew lease 1 (due)
    5.1s    renewed ok held 1
                claims lease 1 (the store counts other claims than are known)
    5.2s    claims term 3 nonce 1
                release #1 term 3 (own claim found that was not asked for)
            now leads no
    5.3s    released ok

story rule_2_a_request_that_was_carried_out_twice
    The campaign is refused because it has already won: the record carries its own nonce. The
    first answer was lost underneath (a proxy that retries). It is ours.

    given standby of B term 3
    1s      hint
                campaign #2 floor 3 (a hint)
    1.1s    held mine term 4 nonce 2
                became leader in term 4 (own claim found after an unknown outcome)
                leader is A in term 4 (held)
                observe (own claim found after an unknown outcome)
            now leads yes, term 4

story rule_8_a_found_claim_below_what_was_reported
    The doubt is about campaign #3, and its claim is there; but its term is one that we have
    already led in. Whatever happened in the store, it is not led twice.
    with renewals ok
    given leader term 3

    1s      resign
                lost term 3 (resigned)
    1.1s    drained
                release #1 term 3 (the work has ended)
    1.2s    released ok
    3.2s    ...
                campaign #3 floor 3 (due)
    4.7s    campaigned unknown
                error (the outcome is unknown)
                claims lease 1 (the outcome is unknown)
    4.8s    claims term 3 nonce 3
                release #3 term 3 (own claim found that was not asked for)
            now leads no
    4.9s    released ok

story rule_8_a_found_claim_below_what_was_seen
    The same with a term below the highest one seen.

    given standby of B term 41
    1s      hint
                campaign #2 floor 41 (a hint)
    2.6s    campaigned unknown
                error (the outcome is unknown)
                claims lease 1 (the outcome is unknown)
    2.7s    claims term 40 nonce 2
                release #2 term 40 (own claim found that was not asked for)
            now leads no, floor 41

story S4_a_found_claim_in_a_term_that_was_anothers
    The campaign is late. Meanwhile B wins term 42, which we hear. Then the store fails over to a
    replica that never heard of B's grant; there the late campaign lands, with the floor that it
    was sent with, and makes term 42 a second time. It is B's: a resource could not tell us apart.
    with renewals ok

    given standby of B term 41
    1s      hint
                campaign #2 floor 41 (a hint)
    2.6s    campaigned unknown
                error (the outcome is unknown)
                claims lease 1 (the outcome is unknown)
    2.7s    claims none
    3s      hint
                campaign #3 floor 41 (a hint)
    3.1s    held by B term 42 watched
                leader is B in term 42 (held)
            now floor 42
    4s      hint
                campaign #4 floor 42 (a hint)
    4.1s    held mine term 42 nonce 2
                release #2 term 42 (own claim found that was not asked for)
            now leads no
    4.2s    released ok

story S4_a_found_claim_in_a_term_that_was_the_successors
    The same with a leader: it sees its successor, and later the store shows a late campaign of
    its own in that term.
    with renewals ok

    given standby of B term 41
    1s      hint
                campaign #2 floor 41 (a hint)
    2.6s    campaigned unknown
                error (the outcome is unknown)
                claims lease 1 (the outcome is unknown)
    2.7s    claims none
    3s      hint
                campaign #3 floor 41 (a hint)
    3.1s    won term 42 watched
                became leader in term 42 (won)
                leader is A in term 42 (held)
    3.5s    hint
                observe (a hint)
    3.6s    observed held by B term 43 watched
                lost term 42 (another candidate leads in a later term)
    3.7s    drained
                campaign #5 floor 43 (the work has ended)
    3.8s    held mine term 43 nonce 2
                release #2 term 43 (own claim found that was not asked for)
            now leads no
    3.9s    released ok

story S4_a_found_claim_in_a_term_that_was_seen_late
    The same where the look is answered only after the leader has resigned.
    with renewals ok

    given standby of B term 41
    1s      hint
                campaign #2 floor 41 (a hint)
    2.6s    campaigned unknown
                error (the outcome is unknown)
                claims lease 1 (the outcome is unknown)
    2.7s    claims none
    3s      hint
                campaign #3 floor 41 (a hint)
    3.1s    won term 42 watched
                became leader in term 42 (won)
                leader is A in term 42 (held)
    3.5s    hint
                observe (a hint)
    3.6s    resign
                lost term 42 (resigned)
    3.7s    observed held by B term 43 watched
    3.8s    drained
                release #3 term 42 (the work has ended)
    3.9s    released refused
    5.8s    ...
                campaign #6 floor 43 (due)
    5.9s    held mine term 43 nonce 2
                release #2 term 43 (own claim found that was not asked for)
            now leads no
    6s      released ok

story S4_a_found_claim_below_one_that_was_given_back
    A later campaign was won and not wanted. It was nobody's, but it was seen: an earlier one that
    turns up below it, in a store that forgot, is not led either.
    with renewals ok

    given standby of B term 41
    1s      hint
                campaign #2 floor 41 (a hint)
    2.6s    campaigned unknown
                error (the outcome is unknown)
                claims lease 1 (the outcome is unknown)
    2.7s    claims none
    3s      hint
                campaign #3 floor 41 (a hint)
    3.1s    health 0
    3.2s    won term 43
                release #3 term 43 (unhealthy)
    3.3s    released ok
                observe (due)
    3.4s    health 1
    3.5s    observed free term 41
    4.5s    hint
                campaign #6 floor 43 (a hint)
    4.6s    held mine term 42 nonce 2
                release #2 term 42 (own claim found that was not asked for)
            now leads no, floor 43
    4.7s    released ok

story rule_8_a_found_claim_with_an_impossible_term
    The same with a term that nobody can have counted to. It is given back, and not taken as
    seen.

    given standby of B term 41
    1s      hint
                campaign #2 floor 41 (a hint)
    2.6s    campaigned unknown
                error (the outcome is unknown)
                claims lease 1 (the outcome is unknown)
    2.7s    claims term 9223372036854775807 nonce 2
                release #2 term 9223372036854775807 (own claim found that was not asked for)
            now leads no, floor 41

story rule_8_a_claim_is_adopted_once
    A campaign that landed late was found, not wanted any more, and given back. When the same
    claim turns up again (a store that forgot the release), it is no longer the one in doubt.
    with renewals ok
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
    3.7s    observed held mine term 4 nonce 2 watched
                claims lease 1 (the record differs from what is known)
    3.8s    claims term 4 nonce 2
                release #2 term 4 (no longer wanted)
    3.9s    released ok
                observe (due)
    4s      observed free term 4 watched
    9s      acquire
                campaign #6 floor 4 (asked to try)
    9.1s    held mine term 4 nonce 2
                not-acquired (own claim found that was not asked for)
                release #2 term 4 (own claim found that was not asked for)
            now leads no
    9.2s    released ok

story rule_8_a_claim_that_was_found_is_in_doubt_no_more
    A campaign that landed late was found when it was not wanted, and given back. When the same
    claim turns up on our lease again (a store that forgot the release), we are willing once more;
    but the doubt was settled by the first find.

    given standby of B term 3
    1s      hint
                campaign #2 floor 3 (a hint)
    2.6s    campaigned unknown
                error (the outcome is unknown)
                claims lease 1 (the outcome is unknown)
    2.7s    claims none
    2.8s    health 0.5
    3.6s    ...
                observe (retry)
    3.7s    observed held mine term 4 nonce 2
                nobody leads after term 4 (free)
                claims lease 1 (the record differs from what is known)
    3.8s    claims term 4 nonce 2
                release #2 term 4 (unhealthy)
    3.9s    released ok
                observe (due)
    4s      observed failed
                error (the call failed)
    4.5s    health 1
                campaign #6 floor 4 (healthy again)
    4.8s    campaigned failed
                error (the call failed)
    5s      ...
                renew lease 1 (due)
    5.1s    renewed ok held 1
                claims lease 1 (the store counts other claims than are known)
    5.2s    claims term 4 nonce 2
                release #2 term 4 (own claim found that was not asked for)
            now leads no
    5.3s    released ok

story S9_an_answer_to_another_question
    A list with a number that nobody asked under is thrown away; the question stays open.

    0s      start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                campaign #1 (the lease is open)
    1.7s    campaigned unknown
                error (the outcome is unknown)
                claims lease 1 (the outcome is unknown)
    1.75s   claims failed call 99
    1.8s    claims term 1 nonce 1
                became leader in term 1 (own claim found after an unknown outcome)
                leader is A in term 1 (held)
                observe (own claim found after an unknown outcome)
            now leads yes

story rule_8_what_was_adopted_must_still_be_wanted
    Found, but meanwhile it was stopped: given back, then stopped.

    0s      start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                campaign #1 (the lease is open)
    1.7s    campaigned unknown
                error (the outcome is unknown)
                claims lease 1 (the outcome is unknown)
    1.75s   stop
    1.8s    claims term 1 nonce 1
                release #1 term 1 (stopped)
            now leads no
    1.9s    released ok
                stopped (stopped)
                close lease 1 (no election needs it)
    2s      closed ok

story unknown_stopped_and_nothing_there
    Stopped while seeking: it stops when it knows that nothing is left behind.

    0s      start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                campaign #1 (the lease is open)
    1.7s    campaigned unknown
                error (the outcome is unknown)
                claims lease 1 (the outcome is unknown)
    1.75s   stop
            now state seeking
    1.8s    claims none
                stopped (stopped)
                close lease 1 (no election needs it)
    1.9s    closed ok

story L3_a_claim_that_lands_after_the_stop
    The lease lives on for another election, and the campaign of the stopped one lands late. It
    is found by the count and given back; nobody is told, since it was never led.
    with elections a b

    0s      start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                a: campaign #1 (the lease is open)
                b: campaign #2 (the lease is open)
    1s      b: held by B term 7 watched
                b: leader is B in term 7 (held)
    1.7s    a: campaigned unknown
                a: error (the outcome is unknown)
                claims lease 1 (the outcome is unknown)
    1.8s    claims none
    1.9s    a: stop
                a: stopped (stopped)
    5s      ...
                renew lease 1 (due)
    5.1s    renewed ok held 1
                claims lease 1 (the store counts other claims than are known)
    5.2s    claims a term 1 nonce 1
                a: release #1 term 1 (stopped)
    5.3s    a: released ok
            now a: state stopped
            now b: state standby, lease live
    6s      b: stop
                b: stopped (stopped)
                close lease 1 (no election needs it)
    6.1s    closed ok

story S5_an_answer_from_before_is_no_proof
    The question was asked while the campaign was on its way, and its answer comes after the
    win. It says nothing about the claim: it is older.
    with elections a b

    0s      start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                a: campaign #1 (the lease is open)
                b: campaign #2 (the lease is open)
    0.2s    b: campaigned unknown
                b: error (the outcome is unknown)
                claims lease 1 (the outcome is unknown)
    0.3s    a: won term 1 watched
                a: became leader in term 1 (won)
                a: leader is A in term 1 (held)
    0.4s    claims none
            now a: leads yes
            now b: state standby

story a_question_is_asked_again_for_who_came_later
    Two campaigns end unknown, one after the other. The answer to the question of the first says
    nothing about the second: it is asked for again.
    with elections a b

    0s      start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                a: campaign #1 (the lease is open)
                b: campaign #2 (the lease is open)
    1.6s    a: campaigned unknown
                a: error (the outcome is unknown)
                claims lease 1 (the outcome is unknown)
    1.7s    b: campaigned unknown
                b: error (the outcome is unknown)
    1.8s    claims a term 1 nonce 1, b term 1 nonce 2
                claims lease 1 (the outcome is unknown)
                a: became leader in term 1 (own claim found after an unknown outcome)
                a: leader is A in term 1 (held)
                a: observe (own claim found after an unknown outcome)
            now a: leads yes
            now b: state seeking, leads no
    1.9s    claims a term 1 nonce 1, b term 1 nonce 2
                b: became leader in term 1 (own claim found after an unknown outcome)
                b: leader is A in term 1 (held)
                b: observe (own claim found after an unknown outcome)
            now b: leads yes

story S5_late_grant_is_given_back
    The answer to a won campaign is read after the deadline of its lease: the process had been
    frozen. It is no leadership, and is never reported as one.

    0s      start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                campaign #1 (the lease is open)
    0.2s    freezes
    11s     thaws, then won term 1
                release #1 term 1 (too late)
                lease 1 is down (the deadline has passed)
                close lease 1 (the deadline has passed)
            now leads no
    11.1s   released unknown
    11.2s   closed ok
                open lease 2 (started)
    11.3s   opened ok
                lease 2 is up (the lease is open)
                campaign #3 floor 1 (the lease is open)
            now state campaigning

story S5_a_grant_on_a_lease_that_is_no_more
    The answer comes when the lease has been closed and another one opened. The claim went with
    the old lease.

    given standby of B term 3
    4.9s    hint
                campaign #2 floor 3 (a hint)
    5s      ...
                renew lease 1 (due)
    5.1s    renewed refused
                lease 1 is down (the store says that the lease is gone)
                close lease 1 (the store says that the lease is gone)
    5.2s    closed ok
                open lease 2 (started)
    5.3s    opened ok
                lease 2 is up (the lease is open)
    5.4s    won term 4
            now leads no, state standby
    6.4s    ...
                campaign #3 floor 4 (too late)
    6.5s    won term 5 watched
                became leader in term 5 (won)
                leader is A in term 5 (held)
            now leads yes
    10.2s   ...
                renew lease 2 (due)
    10.3s   renewed ok held 2
                claims lease 2 (the store counts other claims than are known)

story S5_a_refusal_about_a_lease_that_is_no_more
    The same, and the answer says: held by yourself. It speaks of the lease that is gone.

    given standby of B term 3
    4.9s    hint
                campaign #2 floor 3 (a hint)
    5s      ...
                renew lease 1 (due)
    5.1s    renewed refused
                lease 1 is down (the store says that the lease is gone)
                close lease 1 (the store says that the lease is gone)
    5.2s    closed ok
                open lease 2 (started)
    5.3s    opened ok
                lease 2 is up (the lease is open)
    5.4s    held mine term 4 nonce 2 free_in 10s
                nobody leads after term 4 (free)
            now leads no, state standby, leader nobody

story S9_an_unknown_outcome_on_a_lease_that_is_no_more
    What can't be asked for any more is not sought for: the close gave it back.

    given standby of B term 3
    4.9s    hint
                campaign #2 floor 3 (a hint)
    5s      ...
                renew lease 1 (due)
    5.1s    renewed refused
                lease 1 is down (the store says that the lease is gone)
                close lease 1 (the store says that the lease is gone)
    5.2s    closed ok
                open lease 2 (started)
    5.3s    opened ok
                lease 2 is up (the lease is open)
    5.4s    campaigned unknown
                error (the call failed)
            now state standby

story L3_a_claim_found_on_the_new_lease
    The last campaign was sent on lease 1, which is gone. On lease 2, where nobody has
    campaigned yet, a strange claim is found: it is given back on lease 2.

    given standby of B term 3
    1s      health 0
    5s      ...
                renew lease 1 (due)
    5.1s    renewed refused
                lease 1 is down (the store says that the lease is gone)
                close lease 1 (the store says that the lease is gone)
    5.2s    closed ok
                open lease 2 (started)
    5.3s    opened ok
                lease 2 is up (the lease is open)
                observe (the lease is open)
    5.4s    observed held mine term 4 nonce 9
                nobody leads after term 4 (free)
                claims lease 2 (the record differs from what is known)
    5.5s    claims term 4 nonce 9
                release #9 term 4 (own claim found that was not asked for)
    5.6s    released ok
