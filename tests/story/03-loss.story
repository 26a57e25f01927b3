# How a leadership ends against its will. The order is always the same: the answer to "do I lead?"
# is no, the application is told, the work ends, and only then is anything given back (S7).

story S7_after_the_deadline_the_work_has_the_rest_of_the_lease
    No renewal comes through. From 10s on nobody leads here. The work has until 13.5s to end;
    then the lease is closed, whether it has ended or not: from 15s on somebody else may lead.

    given leader term 1
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
                lost term 1 (the deadline has passed)
            now leads no, state resigning, lease dead
    13.5s   ...
                close lease 1 (the deadline has passed)
    13.6s   closed ok
                open lease 2 (started)
    13.7s   opened ok
                lease 2 is up (the lease is open)
            now state resigning
    14s     drained
                campaign #2 floor 1 (the work has ended)
    14.1s   held by B term 2 watched
                leader is B in term 2 (held)

story S7_the_dead_lease_is_kept_until_the_work_has_ended
    The same, but the work ends early: then the lease is given back early, and the successor
    need not wait.

    given leader term 1
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
                lost term 1 (the deadline has passed)
    11s     drained
                close lease 1 (the deadline has passed)
    11.1s   closed ok
                open lease 2 (started)
    11.2s   opened ok
                lease 2 is up (the lease is open)
                campaign #2 floor 1 (the lease is open)
    11.3s   won term 2 watched
                became leader in term 2 (won)
                leader is A in term 2 (held)
            now leads yes, term 2

story a_dead_lease_waits_for_the_call_under_way
    The close must not overtake a renewal that is still on the wire.

    given leader term 1
    5s      ...
                renew lease 1 (due)
    6.6s    renewed unknown
                error (the call failed)
                renew lease 1 (retry)
    8.2s    renewed unknown
                error (the call failed)
    8.333333334s ...
                renew lease 1 (retry)
    10s     ...
                lease 1 is down (the deadline has passed)
                lost term 1 (the deadline has passed)
    10.01s  drained
            now lease dead, wake never
    10.05s  renewed ok
                close lease 1 (the deadline has passed)
    10.1s   closed ok
                open lease 2 (started)

story S5_a_refused_renewal_ends_it_at_once
    The store says that the lease is not ours any more (it ran out, or was taken away). There is
    no grace for that.

    given leader term 1
    5s      ...
                renew lease 1 (due)
    5.1s    renewed refused
                lease 1 is down (the store says that the lease is gone)
                lost term 1 (the store says that the lease is gone)
            now leads no, lease dead
    6s      drained
                close lease 1 (the store says that the lease is gone)
    6.1s    closed refused
                open lease 2 (started)
    6.2s    opened ok
                lease 2 is up (the lease is open)
                campaign #2 floor 1 (the lease is open)
    6.3s    held by B term 2 watched
                leader is B in term 2 (held)

story S5_a_late_answer_does_not_bring_back_the_dead
    The good answer comes a moment after the deadline. The lease lives on in the store, but it
    has been reported as lost: it stays lost, and is closed.

    given leader term 1
    5s      ...
                renew lease 1 (due)
    6.6s    renewed unknown
                error (the call failed)
                renew lease 1 (retry)
    8.2s    renewed unknown
                error (the call failed)
    8.333333334s ...
                renew lease 1 (retry)
    10s     ...
                lease 1 is down (the deadline has passed)
                lost term 1 (the deadline has passed)
    10s     renewed ok
            now leads no, lease dead
    11s     drained
                close lease 1 (the deadline has passed)
    11.5s   closed ok
                open lease 2 (started)
    11.6s   opened ok
                lease 2 is up (the lease is open)
                campaign #2 floor 1 (the lease is open)
    11.7s   won term 2 watched
                became leader in term 2 (won)
                leader is A in term 2 (held)

story L3_a_close_is_tried_until_it_is_confirmed
    A close whose outcome is unknown is repeated until the lease has surely ended by itself:
    lease + drift after the last thing that could have prolonged it. Then it is closed once
    more, for what the caller has of it; whatever comes of that, the next one is opened.

    given leader term 1
    5s      ...
                renew lease 1 (due)
    5.1s    renewed refused
                lease 1 is down (the store says that the lease is gone)
                lost term 1 (the store says that the lease is gone)
    5.2s    drained
                close lease 1 (the store says that the lease is gone)
    6s      closed unknown
    7s      ...
                close lease 1 (the store says that the lease is gone)
    8s      closed failed
    10s     ...
                close lease 1 (the store says that the lease is gone)
    11s     closed unknown
    15s     ...
                close lease 1 (the store says that the lease is gone)
    16.5s   closed unknown
            now lease closing, wake 21.5s
    21.5s   ...
                close lease 1, which has ended (the store says that the lease is gone)
            now lease closing
    22s     closed unknown
                open lease 2 (started)
            now lease opening

story L8_a_loser_contends_again
    Every loss is followed by a new lease and a new campaign, by default and without being
    asked.

    given leader term 1
    5s      ...
                renew lease 1 (due)
    5.1s    renewed refused
                lease 1 is down (the store says that the lease is gone)
                lost term 1 (the store says that the lease is gone)
    5.2s    drained
                close lease 1 (the store says that the lease is gone)
    5.3s    closed ok
                open lease 2 (started)
    5.4s    opened ok
                lease 2 is up (the lease is open)
                campaign #2 floor 1 (the lease is open)
    5.5s    held by B term 2 watched
                leader is B in term 2 (held)
    9s      hint
                campaign #3 floor 2 (a hint)
    9.1s    won term 3 watched
                became leader in term 3 (won)
                leader is A in term 3 (held)
            now leads yes, term 3

story S5_the_record_says_superseded
    The leader looks at its own record and finds a later term in it: somebody else was let in.
    It steps back at once, and gives nothing back, since nothing is its own any more (S6).

    given leader term 1
    1s      hint
                observe (a hint)
    1.1s    observed held by B term 2 watched
                lost term 1 (another candidate leads in a later term)
            now leads no, floor 2
    2s      drained
                campaign #3 floor 2 (the work has ended)
    2.1s    held by B term 2 watched
                leader is B in term 2 (held)

story S5_the_record_says_gone
    The claim is gone from the store: somebody deleted it.

    given leader term 1
    1s      hint
                observe (a hint)
    1.1s    observed free term 1
                lost term 1 (the claim is gone from the store)
            now leads no
    2s      drained
                campaign #3 floor 1 (the work has ended)
    2.1s    won term 2 watched
                became leader in term 2 (won)
                leader is A in term 2 (held)

story S5_the_record_of_a_namesake_is_not_ours
    The record names us and our term, but it stands on another lease: another incarnation of us.

    given leader term 1
    1s      hint
                observe (a hint)
    1.1s    observed held by A term 1 watched
                lost term 1 (the claim is gone from the store)
            now leads no

story an_old_answer_about_the_own_record_is_checked
    A replica that lags behind shows a term from before our win. It can't be right about now, so
    the one who knows is asked: what is on our lease?

    given leader term 5
    1s      hint
                observe (a hint)
    1.1s    observed held by B term 4
                claims lease 1 (the record differs from what is known)
            now leads yes
    1.2s    claims term 5 nonce 1
            now leads yes

story a_store_that_forgot_the_claim_is_believed
    The same, and it is true: the claim is no longer there.

    given leader term 5
    1s      hint
                observe (a hint)
    1.1s    observed held by B term 4
                claims lease 1 (the record differs from what is known)
    1.2s    claims none
                lost term 5 (the claim is gone from the store)
            now leads no

story a_failed_look_at_the_own_record_is_no_loss
    The leader could not look. Its lease is what it stands on, not the look.

    given leader term 1
    1s      hint
                observe (a hint)
    1.1s    observed failed
                error (the call failed)
            now leads yes
    2.1s    ...
                observe (retry)
    2.2s    observed unknown
                error (the call failed)
    4.2s    ...
                observe (retry)
    4.3s    observed held mine term 1 nonce 1
            now leads yes, wake 5s

story a_leader_polls_its_own_record_where_nobody_tells_it
    Orders and pauses stand in the record. Where they are not pushed, the leader looks for them.

    0s      start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                campaign #1 (the lease is open)
    0.2s    won term 1
                became leader in term 1 (won)
                leader is A in term 1 (held)
    5s      ...
                renew lease 1 (due)
    5.1s    renewed ok
    7.7s    ...
                observe (due)
    7.8s    observed held mine term 1 nonce 1
    10s     ...
                renew lease 1 (due)
    10.1s   renewed ok
            now wake 15s

story L3_the_count_says_that_a_claim_is_gone
    A renewal also tells how many claims stand on the lease. One less than we count: we ask
    which.

    given leader term 1
    5s      ...
                renew lease 1 (due)
    5.1s    renewed ok held 0
                claims lease 1 (the store counts other claims than are known)
            now leads yes
    5.2s    claims none
                lost term 1 (the claim is gone from the store)
            now leads no, lease live
    6s      drained
                campaign #2 floor 1 (the work has ended)
    6.1s    held by B term 2 watched
                leader is B in term 2 (held)

story S5_the_list_shows_another_claim_than_ours
    A claim is there, with our nonce, but in another term: it is not the one that we lead on.

    given leader term 3
    5s      ...
                renew lease 1 (due)
    5.1s    renewed ok held 2
                claims lease 1 (the store counts other claims than are known)
    5.2s    claims term 9 nonce 1
                lost term 3 (the claim is gone from the store)
            now leads no

story S5_the_record_shows_a_later_claim_of_our_own
    A later term on our own lease: a campaign of ours that we know nothing of. What we led in is
    over; the other one is found by the count and given back.

    given leader term 3
    1s      hint
                observe (a hint)
    1.1s    observed held mine term 5 nonce 9 watched
                lost term 3 (another candidate leads in a later term)
            now leads no, floor 5
    2s      drained
                campaign #3 floor 5 (the work has ended)
    2.1s    held mine term 5 nonce 9
                release #9 term 5 (own claim found that was not asked for)
    2.2s    released ok

story L3_the_list_is_read_while_the_work_of_a_lost_claim_ends
    Lost and gone. A second list changes nothing for who is only waiting for the end of the
    work.

    given leader term 3
    5s      ...
                renew lease 1 (due)
    5.1s    renewed ok held 0
                claims lease 1 (the store counts other claims than are known)
    5.2s    claims none
                lost term 3 (the claim is gone from the store)
            now leads no, state resigning
    10s     ...
                renew lease 1 (due)
    10.1s   renewed ok held 1
                claims lease 1 (the store counts other claims than are known)
    10.2s   claims term 3 nonce 1
            now state resigning
    11s     drained
                campaign #2 floor 3 (the work has ended)
    11.1s   held mine term 3 nonce 1
                release #1 term 3 (own claim found that was not asked for)
    11.2s   released ok

story a_question_that_fails_on_a_dead_lease_is_not_repeated
    There is no point in asking what a dead lease holds.

    given leader term 3
    4.8s    hint
                observe (a hint)
    4.9s    observed held by B term 2 watched
                claims lease 1 (the record differs from what is known)
    5s      ...
                renew lease 1 (due)
    5.1s    renewed refused
                lease 1 is down (the store says that the lease is gone)
                lost term 3 (the store says that the lease is gone)
    5.2s    claims failed
            now lease dead, wake 13.5s
    6s      drained
                close lease 1 (the store says that the lease is gone)
    6.1s    closed ok
                open lease 2 (started)
    6.2s    opened ok
                lease 2 is up (the lease is open)
                campaign #3 floor 3 (the lease is open)
    6.3s    held by B term 4 watched
                leader is B in term 4 (held)

story L3_a_wrong_count_and_a_right_list
    The count was wrong, the list is right: nothing is lost.

    given leader term 1
    5s      ...
                renew lease 1 (due)
    5.1s    renewed ok held 3
                claims lease 1 (the store counts other claims than are known)
    5.2s    claims failed
    6.2s    ...
                claims lease 1 (the store counts other claims than are known)
    6.3s    claims unknown
    8.3s    ...
                claims lease 1 (the store counts other claims than are known)
    8.4s    claims term 1 nonce 1
            now leads yes
    10s     ...
                renew lease 1 (due)
    10.1s   renewed ok held 3
                claims lease 1 (the store counts other claims than are known)
    10.2s   claims failed
    11.2s   ...
                claims lease 1 (the store counts other claims than are known)
    11.3s   claims term 1 nonce 1

story A4_a_suspended_machine_wakes_up_without_its_leadership
    The machine sleeps through the deadline. The clock went on (CLOCK_BOOTTIME): the first
    question is answered with no, before any timer or answer was looked at. The old lease has
    surely ended by itself, and is closed for what the caller has of it; the new one is of no
    use before the work of the old leadership has ended.

    given leader term 1
    2s      freezes
    60s     thaws, then alive
                lost term 1 (the deadline has passed)
                lease 1 is down (the deadline has passed)
                close lease 1, which has ended (the deadline has passed)
            now leads no
    60.05s  closed ok
                open lease 2 (started)
    60.1s   opened ok
                lease 2 is up (the lease is open)
            now state resigning
    61s     drained
                campaign #2 floor 1 (the work has ended)
    61.1s   held by B term 2 watched
                leader is B in term 2 (held)

story S5_frozen_until_the_work_had_ended
    The first thing that is read after the freeze is that the work has ended. The claim is
    not given back by itself: its lease is over, and that includes it.

    given leader term 1
    2s      freezes
    12s     thaws, then drained
                lost term 1 (the deadline has passed)
                observe (the work has ended)
                lease 1 is down (the deadline has passed)
                close lease 1 (the deadline has passed)
            now leads no
    12.1s   observed free term 1
    12.2s   closed ok
                open lease 2 (started)

story S5_frozen_over_the_end_of_the_lease
    Stopped for an hour with a renewal under way. Its good answer, when it is read at last, is
    the answer of another time.

    given leader term 1
    5s      ...
                renew lease 1 (due)
    6s      freezes
    3600s   thaws, then renewed ok
                lease 1 is down (the deadline has passed)
                lost term 1 (the deadline has passed)
                close lease 1, which has ended (the deadline has passed)
            now leads no
