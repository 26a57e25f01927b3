# How a candidate becomes leader, and how it waits for its turn.
#
# Unless a story says otherwise: lease 15s, renew 5s, grace 5s, drift 10 %, retry 2s (at most 10s),
# and the dice always show the middle, so that the first backoff takes 1s instead of "up to 2s".

story a_candidate_opens_its_lease_and_wins
    First a lease, then a claim on it. The time is counted from when the lease was asked for,
    not from when it was granted: the deadline is 0s + renew + grace.

    0s      start
                open lease 1 (started)
            now state standby, lease opening, leads no
    0.1s    opened ok
                lease 1 is up (the lease is open)
                campaign #1 (the lease is open)
            now state campaigning, lease live, leads no, deadline 10s, end 13.5s
    0.2s    won term 1 watched
                became leader in term 1 (won)
                leader is A in term 1 (held)
            now state leading, leads yes, term 1, wake 5s
    1s      start

story a_standby_waits_for_the_end_of_the_leader
    Somebody else has it. Where the store pushes the end of that claim for certain ("watched"),
    no timer is needed: the lease is kept alive, and nothing else is asked for.

    0s      start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                campaign #1 (the lease is open)
    0.2s    held by B term 7 watched
                leader is B in term 7 (held)
            now state standby, leader B, floor 7, wake 5s
    5s      ...
                renew lease 1 (due)
    5.1s    renewed ok
    10s     ...
                renew lease 1 (due)
    10.1s   renewed ok
    12s     hint
                campaign #2 floor 7 (a hint)
    12.1s   won term 8 watched
                became leader in term 8 (won)
                leader is A in term 8 (held)
            now leads yes, term 8

story a_standby_polls_where_nobody_tells_it
    Without a push, the standby looks again after a half to all of retry_max; here it is 7.5s.
    It looks by campaigning: if the election is free by then, it is won with the same call.

    0s      start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                campaign #1 (the lease is open)
    0.2s    held by B term 7
                leader is B in term 7 (held)
            now wake 5s
    5s      ...
                renew lease 1 (due)
    5.1s    renewed ok
    7.7s    ...
                campaign #2 floor 7 (due)
    7.8s    held by B term 7
    10s     ...
                renew lease 1 (due)
    10.1s   renewed ok
    15s     ...
                renew lease 1 (due)
    15.1s   renewed ok
    15.3s   ...
                campaign #3 floor 7 (due)
    15.4s   won term 8
                became leader in term 8 (won)
                leader is A in term 8 (held)

story a_standby_comes_when_the_record_says_so
    The store can say when the claim of a dead leader ends (free_in). Then that is when to come.

    0s      start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                campaign #1 (the lease is open)
    0.2s    held by B term 7 free_in 3s
                leader is B in term 7 (held)
            now wake 3.2s
    3.2s    ...
                campaign #2 floor 7 (due)
    3.3s    won term 8 watched
                became leader in term 8 (won)
                leader is A in term 8 (held)

story L1_two_clocks_do_not_creep_up_on_the_end
    The store's "free in almost nothing" is waited for a millisecond at least, and its "free in
    nothing, but not free yet" with a backoff, so that nobody asks in a circle.

    0s      start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                campaign #1 (the lease is open)
    0.2s    held by B term 7 free_in 0.0001ms
                leader is B in term 7 (held)
    0.201s  ...
                campaign #2 floor 7 (due)
    0.3s    held by B term 7 free_in 0s
            now wake 1.3s
    1.3s    ...
                campaign #3 floor 7 (due)
    1.4s    held by B term 7 free_in 0s random 1
            now wake 3.399969482s

story L4_the_end_that_does_not_come
    The record keeps saying "free in 50 ms": its holder renews just in time, or the store counts
    badly. Where nothing is new, two looks are a retry apart.
    with renewals ok

    0s      start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                campaign #1 (the lease is open)
    0.2s    held by B term 7 free_in 50ms
                leader is B in term 7 (held)
    0.25s   ...
                campaign #2 floor 7 (due)
    0.3s    held by B term 7 free_in 50ms
            now wake 2.25s
    2.25s   ...
                campaign #3 floor 7 (due)
    2.3s    held by B term 7 free_in 50ms
    4.25s   ...
                campaign #4 floor 7 (due)
    4.3s    held by C term 8 free_in 50ms
                leader is C in term 8 (held)
            now wake 4.35s

story L2_a_free_election_is_taken_at_once
    A release is pushed as a hint. Who is not allowed to trust it looks, and who may campaigns:
    after a clean release somebody leads within one push, not within a lease.

    given standby of B term 7
    1s      hint
                campaign #2 floor 7 (a hint)
    1.1s    held by B term 7 watched
    2s      hint
                campaign #3 floor 7 (a hint)
    2.1s    won term 8 watched
                became leader in term 8 (won)
                leader is A in term 8 (held)

story L2_what_an_observer_sees_free_is_campaigned_for
    A candidate that could not campaign a moment ago looks instead; when it may again, and sees
    that nobody has the election, it does not wait for its next turn.

    given standby of B term 7
    1s      health 0.1
    2s      hint
                observe (a hint)
    2.05s   health 1
    2.1s    observed free term 7
                nobody leads after term 7 (free)
                campaign #3 floor 7 (free)
    2.2s    won term 8 watched
                became leader in term 8 (won)
                leader is A in term 8 (held)

story a_reserved_election_is_left_to_its_successor
    Released for a named successor: for everybody else it is neither held nor free. They come
    when the reservation has ended.

    given standby of B term 7
    1s      hint
                campaign #2 floor 7 (a hint)
    1.1s    refused reserved term 7 free_in 2s
                nobody leads after term 7 (free)
            now leader nobody, wake 3.1s
    3.1s    ...
                campaign #3 floor 7 (due)
    3.2s    won term 8 watched
                became leader in term 8 (won)
                leader is A in term 8 (held)

story a_reserved_election_is_not_free_to_the_eye
    The same, seen by somebody who only looked.

    given standby of B term 7
    1s      health 0.1
    2s      hint
                observe (a hint)
    2.05s   health 1
    2.1s    observed reserved term 7 free_in 2s
                nobody leads after term 7 (free)
            now wake 4.1s

story L4_an_unreachable_store_is_asked_ever_less_often
    The lease can't be opened. Each failure doubles the backoff, up to retry_max: 2s, 4s, 8s,
    10s, of which the dice take a half.

    0s      start
                open lease 1 (started)
    0.5s    opened failed
                error (the call failed)
                lease 1 is down (the call failed)
    1.5s    ...
                open lease 2 (retry)
    2s      opened unknown
                error (the call failed)
                lease 2 is down (the call failed)
    4s      ...
                open lease 3 (retry)
    4.5s    opened failed
                error (the call failed)
                lease 3 is down (the call failed)
    8.5s    ...
                open lease 4 (retry)
    9s      opened failed
                error (the call failed)
                lease 4 is down (the call failed)
    14s     ...
                open lease 5 (retry)
    15s     opened failed
                error (the call failed)
                lease 5 is down (the call failed)
    20s     ...
                open lease 6 (retry)
    21s     opened ok
                lease 6 is up (the lease is open)
                campaign #1 (the lease is open)
    21.1s   won term 1 watched
                became leader in term 1 (won)
                leader is A in term 1 (held)

story L4_a_reconnect_cuts_the_backoff_short
    Whoever hears that the store is there again need not sit out a long backoff; but two tries
    are never closer together than one retry.

    with retry 2s retry_max 60s
    0s      start
                open lease 1 (started)
    0s      opened failed
                error (the call failed)
                lease 1 is down (the call failed)
    1s      ...
                open lease 2 (retry)
    1s      opened failed
                error (the call failed)
                lease 2 is down (the call failed)
    3s      ...
                open lease 3 (retry)
    3s      opened failed
                error (the call failed)
                lease 3 is down (the call failed)
    7s      ...
                open lease 4 (retry)
    7s      opened failed
                error (the call failed)
                lease 4 is down (the call failed)
    7.5s    reconnected
    9s      ...
                open lease 5 (retry)
    9s      opened failed
                error (the call failed)
                lease 5 is down (the call failed)
            now wake 25s
    20s     reconnected
                open lease 6 (retry)
    20.1s   opened ok
                lease 6 is up (the lease is open)
                campaign #1 (the lease is open)

story L4_a_reconnect_without_trouble_is_no_reason_to_act
    A lease that is well is renewed when it is due, whatever the connection does.

    given standby of B term 7
    1s      reconnected
                campaign #2 floor 7 (a hint)
    1.1s    held by B term 7 watched
            now wake 5s

story L4_hints_that_tell_nothing_new_must_wait
    A flapping watch must not become a flood. The first hint is followed at once; each fruitless
    look makes the next hint wait longer: 1/256 of retry, 1/128, up to all of it.

    given standby of B term 7
    1s      hint
                campaign #2 floor 7 (a hint)
    1.001s  held by B term 7 watched
    1.002s  hint
    1.0078125s ...
                campaign #3 floor 7 (a hint)
    1.01s   held by B term 7 watched
    1.011s  hint
    1.0234375s ...
                campaign #4 floor 7 (a hint)
    1.03s   held by B term 7 watched
    1.04s   hint
    1.0546875s ...
                campaign #5 floor 7 (a hint)
    1.06s   held by B term 7 watched
    1.07s   hint
    1.1171875s ...
                campaign #6 floor 7 (a hint)
    1.12s   held by B term 7 watched
    1.13s   hint
    1.2421875s ...
                campaign #7 floor 7 (a hint)
    1.25s   held by B term 7 watched
    1.26s   hint
    1.4921875s ...
                campaign #8 floor 7 (a hint)
    1.5s    held by B term 7 watched
    1.51s   hint
    1.9921875s ...
                campaign #9 floor 7 (a hint)
    2s      held by B term 7 watched
    2.1s    hint
    2.9921875s ...
                campaign #10 floor 7 (a hint)
    3s      held by B term 7 watched
    3.1s    hint
    3.2s    hint
            now wake 4.9921875s
    4.9921875s ...
                campaign #11 floor 7 (a hint)
    4.995s  held by B term 7 watched
    4.996s  hint
    5s      ...
                renew lease 1 (due)
    5.1s    renewed ok
    6.9921875s ...
                campaign #12 floor 7 (a hint)
    6.995s  held by C term 8 watched
                leader is C in term 8 (held)
    7s      hint
                campaign #13 floor 8 (a hint)
    7.001s  held by C term 8 watched
    7.002s  hint
            now wake 7.0078125s

story L2_hints_now_and_then_are_no_storm
    A leader that reports its health every few seconds makes everybody look in vain. Each retry
    period in which no hint had to wait takes back two fruitless looks.
    with renewals ok

    given standby of B term 7
    1s      hint
                campaign #2 floor 7 (a hint)
    1.01s   held by B term 7 watched
    1.1s    hint
                campaign #3 floor 7 (a hint)
    1.11s   held by B term 7 watched
    1.2s    hint
                campaign #4 floor 7 (a hint)
    1.21s   held by B term 7 watched
    1.3s    hint
                campaign #5 floor 7 (a hint)
    1.31s   held by B term 7 watched
    3.3s    hint
                campaign #6 floor 7 (a hint)
    3.301s  held by B term 7 watched
    3.302s  hint
            now wake 3.425s
    3.425s  ...
                campaign #7 floor 7 (a hint)
    3.43s   held by B term 7 watched
    5.68s   hint
                campaign #8 floor 7 (a hint)
    5.681s  held by B term 7 watched
    5.682s  hint
            now wake 5.805s
    5.805s  ...
                campaign #9 floor 7 (a hint)
    5.81s   held by B term 7 watched
    10.1s   hint
                campaign #10 floor 7 (a hint)
    10.101s held by B term 7 watched
    10.102s hint
            now wake 10.13125s

story L4_two_states_in_turn_are_no_news_for_ever
    A replica lags behind: C has led in this term, says one look, and B, says the next. Such changes
    are heeded at once, but they count. After eight of them hints must wait.

    given standby of B term 7
    1s      hint
                campaign #2 floor 7 (a hint)
    1.001s  held by C term 7 watched
                leader is C in term 7 (held)
    1.002s  hint
                campaign #3 floor 7 (a hint)
    1.003s  held by B term 7 watched
                leader is B in term 7 (held)
    1.004s  hint
                campaign #4 floor 7 (a hint)
    1.005s  held by C term 7 watched
                leader is C in term 7 (held)
    1.006s  hint
                campaign #5 floor 7 (a hint)
    1.007s  held by B term 7 watched
                leader is B in term 7 (held)
    1.008s  hint
                campaign #6 floor 7 (a hint)
    1.009s  held by C term 7 watched
                leader is C in term 7 (held)
    1.01s   hint
                campaign #7 floor 7 (a hint)
    1.011s  held by B term 7 watched
                leader is B in term 7 (held)
    1.012s  hint
                campaign #8 floor 7 (a hint)
    1.013s  held by C term 7 watched
                leader is C in term 7 (held)
    1.014s  hint
                campaign #9 floor 7 (a hint)
    1.015s  held by B term 7 watched
                leader is B in term 7 (held)
    1.016s  hint
                campaign #10 floor 7 (a hint)
    1.017s  held by C term 7 watched
                leader is C in term 7 (held)
    1.018s  hint
            now wake 3.016s

story L2_the_trail_of_a_handoff_deafens_nobody
    C takes over by an order: three hints, of order, release and claim. The answer to the first look
    shows all of it, and two more looks find nothing. The next order, 70ms later, and its release
    are heeded at once.

    given standby of B term 7
    1s      hint
                campaign #2 floor 7 (a hint)
    1.001s  hint
    1.002s  held by C term 8 watched
                leader is C in term 8 (held)
                campaign #3 floor 8 (a hint)
    1.003s  hint
    1.004s  held by C term 8 watched
    1.0098125s ...
                campaign #4 floor 8 (a hint)
    1.011s  held by C term 8 watched
    1.07s   hint
                campaign #5 floor 8 (a hint)
    1.071s  held by C term 8 watched order transfer to A id 5 for 8
    1.072s  hint
                campaign #6 floor 8 (a hint)
    1.073s  won term 9 watched
                became leader in term 9 (won)
                leader is A in term 9 (held)

story L2_tries_by_timer_deafen_nobody
    A store in trouble is tried again at the times of the backoff. These tries are no answer to
    hints, and don't make the next hint wait for longer.

    given standby of B term 7
    1s      hint
                campaign #2 floor 7 (a hint)
    1.001s  campaigned failed random 0
                error (the call failed)
                campaign #3 floor 7 (retry)
    1.002s  campaigned failed random 0
                error (the call failed)
                campaign #4 floor 7 (retry)
    1.003s  campaigned failed
                error (the call failed)
    1.02s   hint
                campaign #5 floor 7 (a hint)

story L2_news_end_the_wait_whoever_asked
    Hints must wait; then the application asks, and the answer names another leader. The next hint
    is followed at once.

    given standby of B term 7
    1s      hint
                campaign #2 floor 7 (a hint)
    1.001s  held by B term 7 watched
    1.002s  hint
            now wake 1.0078125s
    1.003s  acquire
                campaign #3 floor 7 (asked to try)
    1.004s  held by C term 8 watched
                leader is C in term 8 (held)
                not-acquired (held)
    1.005s  hint
                campaign #4 floor 8 (a hint)

story L2_an_order_to_the_leader_does_not_deafen_the_standbys
    An order changes the record, and a change is a hint to everybody. What a standby finds then is
    not what it waits for; but it is new, so that the hint of the release, a moment later, need not
    wait. That counts once in a term: more hints do wait, or somebody who orders over and over
    would make everybody look.

    given standby of B term 7
    1s      hint
                campaign #2 floor 7 (a hint)
    1.001s  held by B term 7 watched order resign id 5 for 7
    1.002s  hint
                campaign #3 floor 7 (a hint)
    1.003s  held by B term 7 watched order resign id 5 for 7
    1.004s  hint
    1.0098125s ...
                campaign #4 floor 7 (a hint)
    1.011s  held by B term 7 watched order resign id 6 for 7
    1.012s  hint
            now wake 1.0254375s

story L4_a_win_is_news
    After a series of fruitless looks the hints had to wait long; whoever wins starts afresh.

    given standby of B term 7
    1s      hint
                campaign #2 floor 7 (a hint)
    1.01s   held by B term 7 watched
    1.1s    hint
                campaign #3 floor 7 (a hint)
    1.11s   held by B term 7 watched
    1.3s    hint
                campaign #4 floor 7 (a hint)
    1.31s   held by B term 7 watched
    1.6s    hint
                campaign #5 floor 7 (a hint)
    1.61s   won term 8 watched
                became leader in term 8 (won)
                leader is A in term 8 (held)
    1.62s   hint
                observe (a hint)
    1.621s  observed held mine term 8 nonce 5 watched
    1.622s  hint
            now wake 1.6278125s

story L4_hints_must_wait_after_a_failure
    The store is in trouble: a hint is followed, but not at the speed of hints.

    given standby of B term 7
    1s      hint
                campaign #2 floor 7 (a hint)
    1.001s  campaigned failed
                error (the call failed)
    1.002s  hint
            now wake 1.0078125s
    1.0078125s ...
                campaign #3 floor 7 (a hint)
    1.01s   campaigned failed
                error (the call failed)
    1.011s  hint
            now wake 1.0234375s

story L4_a_leader_is_not_flooded_either
    Hints about the own record, too, must wait when the last look told nothing new.

    given leader term 7
    1s      hint
                observe (a hint)
    1.001s  observed held mine term 7 nonce 1 watched
    1.002s  hint
    1.0078125s ...
                observe (a hint)
    1.01s   observed held mine term 7 nonce 1 watched
    1.011s  hint
            now wake 1.0234375s

story L4_a_hint_during_a_call_is_followed_once
    What the store is answering right now may be older than the hint. So there is one more look
    afterwards, however many hints there were.

    given standby of B term 7
    1s      hint
                campaign #2 floor 7 (a hint)
    1.1s    hint
    1.2s    hint
    1.3s    held by C term 8 watched
                leader is C in term 8 (held)
                campaign #3 floor 8 (a hint)
    1.4s    held by C term 8 watched
            now wake 5s

story a_hint_during_the_campaign_that_is_won
    It may be about something that came after the win, like an order or a pause: one look at the
    own record.

    given standby of B term 7
    1s      hint
                campaign #2 floor 7 (a hint)
    1.1s    hint
    1.2s    won term 8 watched
                became leader in term 8 (won)
                leader is A in term 8 (held)
                observe (a hint)
            now wake 5s

story L8_a_failed_campaign_is_tried_again
    One error of the store ends nothing. Failed means that nothing was written: no question is
    open.

    0s      start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                campaign #1 (the lease is open)
    0.2s    campaigned failed
                error (the call failed)
    1.2s    ...
                campaign #2 (retry)
    1.3s    campaigned failed
                error (the call failed)
    3.3s    ...
                campaign #3 (retry)
    3.4s    held by B term 1 watched
                leader is B in term 1 (held)
    4s      hint
                campaign #4 floor 1 (a hint)
    4.1s    campaigned failed
                error (the call failed)
            now wake 5s

story S9_an_answer_to_something_else_changes_nothing
    An answer to another call, to no call at all, or of another kind than what was asked.

    0s      start
                open lease 1 (started)
    0s      won term 4 call 7
    0.1s    opened ok call 9
    0.1s    renewed ok call 1
    0.1s    closed ok call 1
    0.1s    claims none call 0
    0.2s    opened ok
                lease 1 is up (the lease is open)
                campaign #1 (the lease is open)
    0.3s    observed held by B term 9 call 2
    0.4s    won term 4 call 0
    0.5s    renewed refused call 1
    0.6s    claims term 5 nonce 1 call 1
            now state campaigning, leads no, floor 0
    0.7s    won term 1 watched
                became leader in term 1 (won)
                leader is A in term 1 (held)
    0.8s    won term 2 call 1
    0.9s    opened ok call 1
    1s      closed ok call 1
            now leads yes, term 1
    5s      ...
                renew lease 1 (due)
    5s      opened ok call 2
    5.1s    renewed ok
            now leads yes, deadline 15s

story leaders_with_longer_leases_are_waited_for
    Candidates of one election may have different lease lengths. B's record counts, not our own
    15s: the end that the store names is waited for.
    with renewals ok

    0s      start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                campaign #1 (the lease is open)
    0.2s    held by B term 7 free_in 40s
                leader is B in term 7 (held)
    40.2s   ...
                campaign #2 floor 7 (due)
    40.3s   won term 8 watched
                became leader in term 8 (won)
                leader is A in term 8 (held)

story S5_no_campaign_on_a_lease_that_has_run_out
    A standby was frozen past the deadline of its lease, and the first thing that it reads is a
    hint. It may look, but not campaign: nothing could be led on that lease.

    given standby of B term 7
    2s      freezes
    12s     thaws, then hint
                observe (a hint)
                lease 1 is down (the deadline has passed)
                close lease 1 (the deadline has passed)
    12.1s   observed free term 7
                nobody leads after term 7 (free)
            now state standby
    12.2s   closed ok
                open lease 2 (started)
    12.3s   opened ok
                lease 2 is up (the lease is open)
                campaign #3 floor 7 (the lease is open)
    12.4s   won term 8 watched
                became leader in term 8 (won)
                leader is A in term 8 (held)

story the_same_leader_in_a_new_term
    B has lost it and won it again: that is a change, too.

    given standby of B term 7
    1s      hint
                campaign #2 floor 7 (a hint)
    1.1s    held by B term 9 watched
                leader is B in term 9 (held)
    1.15s   hint
                campaign #3 floor 9 (a hint)
    1.151s  held by B term 9 watched
    1.152s  hint
    1.1578125s ...
                campaign #4 floor 9 (a hint)
    1.16s   held by B term 10 watched
                leader is B in term 10 (held)
    1.161s  hint
                campaign #5 floor 10 (a hint)

story a_push_is_better_than_a_date
    The end of the claim is pushed for certain: no need to come when it might run out, since the
    leader will have renewed it by then.

    0s      start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                campaign #1 (the lease is open)
    0.2s    held by B term 7 free_in 3s watched
                leader is B in term 7 (held)
            now wake 5s

story a_proven_death_is_not_waited_out
    A store that can prove that the holder is gone (its session is closed) frees the claim at
    once and says so; the 40s that the record spoke of are over.

    0s      start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                campaign #1 (the lease is open)
    0.2s    held by B term 7 free_in 40s
                leader is B in term 7 (held)
    3s      hint
                campaign #2 floor 7 (a hint)
    3.1s    won term 8 watched
                became leader in term 8 (won)
                leader is A in term 8 (held)

story observers_need_no_lease
    Who only observes keeps nothing alive in the store, and never campaigns, not even for a free
    election.

    with observe_only
    0s      start
                observe (started)
    0.1s    observed held by B term 7 watched
                leader is B in term 7 (held)
            now lease closed, wake never
    1s      hint
                observe (a hint)
    1.1s    observed free term 7
                nobody leads after term 7 (free)
            now wake 8.6s
    2s      hint
                observe (a hint)
    2.1s    observed failed
                error (the call failed)
    3.1s    ...
                observe (retry)
    3.3s    observed held by C term 8 watched
                leader is C in term 8 (held)
    4s      acquire
                not-acquired (not started, or observing only)
    5s      stop
                stopped (stopped)
    5.1s    stop
