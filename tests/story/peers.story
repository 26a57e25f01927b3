# Bugs of others, each as a story in which ours does not have it.
#
# Some of them are not the core's to have; they are shown where they can happen:
#   a blocked log pipe hangs the read loop      the runtime's tests (L7: the core logs nothing)
#   the child of the lock wrapper outlives it   the tests of `baton run`
#   the wrapper ignores SIGTERM                 the tests of `baton run`
#   only one pid of the group is signalled      the tests of `baton run`
#   the default identity is the host name       the library's tests; the core's half is here

story peer_lost_race_reports_leader
    Two candidates campaign at once. The one whose compare-and-set lost the race reported itself
    as leader all the same. Here the refusal is all that counts.
    with candidates A B

    0s      A: start
                A: open lease 1 (started)
    0s      B: start
                B: open lease 1 (started)
    0.1s    A: opened ok
                A: lease 1 is up (the lease is open)
                A: campaign #1 (the lease is open)
    0.1s    B: opened ok
                B: lease 1 is up (the lease is open)
                B: campaign #1 (the lease is open)
    0.2s    A: won term 1 watched
                A: became leader in term 1 (won)
                A: leader is A in term 1 (held)
    0.2s    B: held by A term 1 watched
                B: leader is A in term 1 (held)
            now A: leads yes
            now B: leads no, state standby

story peer_lost_lease_callback_never_called
    The lease was lost, and nobody was told. Here "lost" is part of the same step, for every
    election on the lease, and told exactly once.
    with elections a b
    given leader term 3

    5s      ...
                renew lease 1 (due)
    5.1s    renewed refused
                lease 1 is down (the store says that the lease is gone)
                a: lost term 3 (the store says that the lease is gone)
                b: lost term 3 (the store says that the lease is gone)
    5.2s    a: drained
    5.3s    b: drained
                close lease 1 (the store says that the lease is gone)

story peer_lost_lease_callback_never_called_after_a_freeze
    The same when the loss is found out by something else than a timer: any event will do.

    given leader term 3
    2s      freezes
    30s     thaws, then health 1
                lost term 3 (the deadline has passed)
                lease 1 is down (the deadline has passed)
                close lease 1, which has ended (the deadline has passed)

story peer_released_before_stepping_down
    The lock was released in the store while is_leader() still said yes. Here the release is
    sent when "lost" was told and the work has ended, and never before.

    given leader term 3
    1s      stop
                lost term 3 (stopped)
            now leads no, state resigning
    1.1s    hint
    1.2s    stop
    1.3s    drained
                release #1 term 3 (the work has ended)
            now state releasing

story peer_expiry_judged_by_own_configuration
    A candidate with a 2s lease took over from one with a 60s lease after 2s. Here the record
    decides.
    with lease 2s renew 600ms grace 600ms
    with renewals ok

    0s      start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                campaign #1 (the lease is open)
    0.2s    held by B term 3 free_in 59s
                leader is B in term 3 (held)
    50s     ...
    59.2s   ...
                campaign #2 floor 3 (due)
    59.3s   won term 4 watched
                became leader in term 4 (won)
                leader is A in term 4 (held)

story peer_stop_hook_blocks_past_the_lease
    The stop hook took longer than the lease, and a successor began beside it. Here the claim is
    kept and renewed while the work stops.
    with candidates A B
    with renewals ok
    given A: leader term 3
    given B: standby of A term 3

    1s      A: stop
                A: lost term 3 (stopped)
    16s     ...
                A: error term 3 (the work has not ended yet)
    20s     B: hint
                B: campaign #2 floor 3 (a hint)
    20.1s   B: held by A term 3 watched
    31s     ...
                A: error term 3 (the work has not ended yet)
    40s     A: drained
                A: release #1 term 3 (the work has ended)
    40.1s   A: released ok
                A: stopped (stopped)
                A: close lease 1 (no election needs it)
    40.2s   B: hint
                B: campaign #3 floor 3 (a hint)
    40.3s   B: won term 4 watched
                B: became leader in term 4 (won)
                B: leader is B in term 4 (held)
            now B: leads yes

story peer_reconnected_twice_in_a_row
    Two "reconnected" in a row started two loops, and two leaders in one process. Here a
    reconnect is a hint: one look, and one more for what came during the first.

    given leader term 3
    1s      reconnected
                observe (a hint)
    1s      reconnected
    1.1s    observed held mine term 3 nonce 1 watched
                observe (a hint)
            now leads yes, wake 5s

story peer_deletes_its_own_new_node
    After a reconnect the late cleanup of the old session deleted the node of the new one. Here
    a claim is named by lease, nonce and term: the release of an old one can't mean the new one,
    and ends together with its lease.

    given leader term 3
    4.8s    resign
                lost term 3 (resigned)
    4.9s    drained
                release #1 term 3 (the work has ended)
    5s      ...
                renew lease 1 (due)
    5.1s    renewed refused
                lease 1 is down (the store says that the lease is gone)
                close lease 1 (the store says that the lease is gone)
    5.2s    closed ok
                open lease 2 (started)
    5.3s    opened ok
                lease 2 is up (the lease is open)
    6.5s    released unknown
    6.9s    ...
                campaign #3 floor 3 (the lease is open)
    7s      won term 4 watched
                became leader in term 4 (won)
                leader is A in term 4 (held)
            now leads yes, term 4

story peer_believes_an_old_path_after_session_expiry
    The session had expired, and an answer about the old one was taken for the new one: "your
    node is still the first". Here answers about a lease that is no more are ignored.

    given leader term 3
    4.8s    hint
                observe (a hint)
    4.9s    observed held by B term 2 watched
                claims lease 1 (the record differs from what is known)
    5s      ...
                renew lease 1 (due)
    5.05s   renewed refused
                lease 1 is down (the store says that the lease is gone)
                lost term 3 (the store says that the lease is gone)
    5.1s    drained
                close lease 1 (the store says that the lease is gone)
    5.2s    closed ok
                open lease 2 (started)
    5.3s    opened ok
                lease 2 is up (the lease is open)
                campaign #3 floor 3 (the lease is open)
    5.4s    claims term 3 nonce 1
            now leads no
    5.5s    held by B term 4 watched
                leader is B in term 4 (held)

story peer_fence_counter_restarts_at_one
    The counter lived in the record that expires, so that it began at 1 again, and the old
    leader's writes were accepted. Here every campaign carries the highest term seen, and a
    grant below it is no leadership.

    given standby of B term 41
    1s      hint
                campaign #2 floor 41 (a hint)
    1.1s    won term 1
                error term 1 (the term is not above the highest one seen)
                release #2 term 1 (the term is not above the highest one seen)
            now leads no, floor 41
    1.2s    released ok

story peer_waiter_is_told_that_it_holds_after_its_lease_died
    It waited for the lock, its own lease died meanwhile, and then it was told "you hold it".
    Here a claim on a lease that is no more is never led.

    given standby of B term 3
    4.9s    hint
                campaign #2 floor 3 (a hint)
    5s      ...
                renew lease 1 (due)
    5.1s    renewed refused
                lease 1 is down (the store says that the lease is gone)
                close lease 1 (the store says that the lease is gone)
    5.2s    won term 4
            now leads no
    5.3s    closed ok
                open lease 2 (started)

story peer_clock_stood_still_in_suspend
    The machine slept for an hour, the monotonic clock with it, and the leader led on. Here time
    counts suspend, and the first question after it is answered with no, without any event.

    given leader term 3
    2s      freezes
            now leads no at 3600s
    3600s   thaws, then hint
                lost term 3 (the deadline has passed)
                lease 1 is down (the deadline has passed)
                close lease 1, which has ended (the deadline has passed)
            now leads no

story peer_expired_session_is_never_recreated
    After the session had expired, nobody opened another one. Here the lease is opened again, as
    often as it takes.

    given leader term 3
    5s      ...
                renew lease 1 (due)
    5.1s    renewed refused
                lease 1 is down (the store says that the lease is gone)
                lost term 3 (the store says that the lease is gone)
    5.2s    drained
                close lease 1 (the store says that the lease is gone)
    5.3s    closed failed
    6.3s    ...
                close lease 1 (the store says that the lease is gone)
    6.4s    closed refused
                open lease 2 (started)
    6.5s    opened failed
                error (the call failed)
                lease 2 is down (the call failed)
    7.5s    ...
                open lease 3 (retry)
    7.6s    opened failed
                error (the call failed)
                lease 3 is down (the call failed)
    9.6s    ...
                open lease 4 (retry)
    9.7s    opened ok
                lease 4 is up (the lease is open)
                campaign #2 floor 3 (the lease is open)
    9.8s    won term 4 watched
                became leader in term 4 (won)
                leader is A in term 4 (held)
            now leads yes

story peer_one_store_error_ends_the_loop
    One exception from the store ended the election loop for ever. Here every kind of call may
    fail, and is tried again.

    0s      start
                open lease 1 (started)
    0.1s    opened failed
                error (the call failed)
                lease 1 is down (the call failed)
    1.1s    ...
                open lease 2 (retry)
    1.2s    opened ok
                lease 2 is up (the lease is open)
                campaign #1 (the lease is open)
    1.3s    campaigned failed
                error (the call failed)
    2.3s    ...
                campaign #2 (retry)
    2.4s    campaigned unknown
                error (the outcome is unknown)
                claims lease 2 (the outcome is unknown)
    2.5s    claims failed
    3.5s    ...
                claims lease 2 (the outcome is unknown)
    3.6s    claims none
    4.4s    ...
                campaign #3 (retry)
    4.5s    won term 1
                became leader in term 1 (won)
                leader is A in term 1 (held)
    6.1s    ...
                renew lease 2 (due)
    6.3s    renewed failed
                error (the call failed)
                renew lease 2 (retry)
    6.4s    renewed ok
            now leads yes
    11.3s   ...
                renew lease 2 (due)
    11.4s   renewed ok
    12s     ...
                observe (due)
    12.1s   observed failed
                error (the call failed)
    13.1s   ...
                observe (retry)
    13.2s   observed held mine term 1 nonce 3 watched
            now leads yes

story peer_health_step_down_leaves_for_good
    Unhealthy once, and out of the election for ever. Here it recovers and contends again.

    given leader term 3
    1s      health 0
                lost term 3 (unhealthy)
    1.1s    drained
                release #1 term 3 (the work has ended)
    1.2s    released ok
    3.2s    ...
                observe (due)
    3.2s    observed held by B term 4 watched
                leader is B in term 4 (held)
    4s      health 1
                campaign #4 floor 4 (healthy again)
    4.1s    held by B term 4 watched
    4.5s    hint
                campaign #5 floor 4 (a hint)
    4.6s    won term 5 watched
                became leader in term 5 (won)
                leader is A in term 5 (held)
            now leads yes

story peer_health_step_down_re_elects_itself_at_once
    The unhealthy leader released the lock and was the first to take it again. Here it does not
    campaign while it is unwell, and lets the others go first when it is well again.

    given leader term 3
    1s      health 0
                lost term 3 (unhealthy)
    1.1s    drained
                release #1 term 3 (the work has ended)
    1.2s    released ok
    1.3s    hint
                observe (a hint)
    1.4s    observed free term 3 watched
            now state standby
    1.5s    health 1
            now state standby, wake 3.2s

story peer_frozen_leader_works_on_beside_the_new_one
    The old leader was stopped (SIGSTOP, a long pause of its collector), lost its lease, and
    went on working when it was continued. Here its first question is answered with no; what the
    work did between its last question and the freeze is what fencing by the term is for.
    with candidates A B
    given A: leader term 3
    given B: standby of A term 3

    2s      A: freezes
    5s      ...
                B: renew lease 1 (due)
    5.1s    B: renewed ok
    10s     ...
                B: renew lease 1 (due)
    10.1s   B: renewed ok
    15s     ...
                B: renew lease 1 (due)
    15.1s   B: renewed ok
    15.5s   B: hint
                B: campaign #2 floor 3 (a hint)
    15.6s   B: won term 4 watched
                B: became leader in term 4 (won)
                B: leader is B in term 4 (held)
            now B: leads yes
            now A: leads no
    17s     A: thaws
                A: lease 1 is down (the deadline has passed)
                A: lost term 3 (the deadline has passed)
                A: close lease 1, which has ended (the deadline has passed)
            now A: leads no
    17.1s   A: drained
    17.1s   A: closed ok
                A: open lease 2 (started)
    17.2s   A: opened ok
                A: lease 2 is up (the lease is open)
                A: campaign #2 floor 3 (the lease is open)
    17.3s   A: held by B term 4 watched
                A: leader is B in term 4 (held)

story peer_a_loser_never_contends_again
    A replica that had lost once never contended again. Here it does, after every kind of end.
    with renewals ok
    given leader term 3

    1s      hint
                observe (a hint)
    1.1s    observed held by B term 4 watched
                lost term 3 (another candidate leads in a later term)
    1.2s    drained
                campaign #3 floor 4 (the work has ended)
    1.3s    held by B term 4 watched
                leader is B in term 4 (held)
    9s      hint
                campaign #4 floor 4 (a hint)
    9.1s    won term 5 watched
                became leader in term 5 (won)
                leader is A in term 5 (held)
    10s     resign
                lost term 5 (resigned)
    10.1s   drained
                release #4 term 5 (the work has ended)
    10.2s   released ok
    12.2s   ...
                campaign #6 floor 5 (due)
    12.2s   won term 6 watched
                became leader in term 6 (won)
                leader is A in term 6 (held)
            now leads yes

story peer_the_host_name_as_identity
    All replicas called themselves after the same host, each found "its own" lock, and all led.
    Here a name proves nothing: a claim is ours by its lease and nonce.

    given standby of A term 3
            now leads no
    1s      hint
                campaign #2 floor 3 (a hint)
    1.1s    held by A term 3 nonce 1 watched
            now leads no, state standby
