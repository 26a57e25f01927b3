# L5: a leader whose work gives no sign of life loses, though its lease is renewed all the time.

story L5_a_stalled_work_loses
    The last sign of life was at 2s, the timeout is 10s. At 12s it is lost; the work has 3.5s to
    stop, the time that it would have after any other loss. It does not stop. The claim passes
    on all the same; we contend again when the work has ended at last.
    with renewals ok
    with work_timeout 10s
    given leader term 3

    1s      alive
    2s      alive
            now leads yes at 9.999s, leads no at 12s
    12s     ...
                lost term 3 (no sign of life from the work)
            now leads no, state resigning, lease live
    15.5s   ...
                release #1 term 3 (the time for the work to end has passed)
    15.6s   released ok
            now state resigning
    27s     ...
                error term 3 (the work has not ended yet)
    40s     drained
                campaign #3 floor 3 (the work has ended)
    40.1s   held by B term 4 watched
                leader is B in term 4 (held)

story L5_signs_of_life_keep_it
    As long as they come in time.
    with renewals ok
    with work_timeout 10s
    given leader term 3

    9s      alive
    18s     alive
    27s     alive
    36s     alive
            now leads yes, leads no at 46s

story L5_a_sign_of_life_that_comes_too_late
    At the very moment of the timeout it is too late: the clock is asked first.
    with renewals ok
    with work_timeout 10s
    given leader term 3

    9s      freezes
    10s     thaws, then alive
                lost term 3 (no sign of life from the work)
            now leads no

story L5_a_stalled_work_that_ends_in_time
    It was only slow, and has ended before its time was up: the usual release.
    with renewals ok
    with work_timeout 10s
    given leader term 3

    10s     ...
                lost term 3 (no sign of life from the work)
    11s     drained
                release #1 term 3 (the work has ended)
    11.1s   released ok
    13.1s   ...
                campaign #3 floor 3 (due)
    13.1s   won term 4 watched
                became leader in term 4 (won)
                leader is A in term 4 (held)

story L5_only_the_stalled_election_loses
    The lease and the other elections on it are well.
    with renewals ok
    with elections a b
    with a: work_timeout 10s
    given leader term 3

    10s     ...
                a: lost term 3 (no sign of life from the work)
            now a: leads no
            now b: leads yes
    13.5s   ...
                a: release #1 term 3 (the time for the work to end has passed)
    13.6s   a: released ok
            now b: leads yes

story L5_a_stalled_work_ends_while_its_claim_is_given_back
    Overdue, the release is on its way, and then the work ends after all.
    with renewals ok
    with work_timeout 10s
    given leader term 3

    10s     ...
                lost term 3 (no sign of life from the work)
    13.5s   ...
                release #1 term 3 (the time for the work to end has passed)
    13.6s   drained
    13.7s   released ok
            now state standby
    15.7s   ...
                campaign #3 floor 3 (due)
    15.8s   won term 4 watched
                became leader in term 4 (won)
                leader is A in term 4 (held)

story L5_stopped_while_stalled
    The claim is given back when the work's time is up; "stopped" is told when the work has
    ended.
    with renewals ok
    with work_timeout 10s
    given leader term 3

    10s     ...
                lost term 3 (no sign of life from the work)
    11s     stop
    13.5s   ...
                release #1 term 3 (the time for the work to end has passed)
    13.6s   released ok
    25s     ...
                error term 3 (the work has not ended yet)
    30s     drained
                stopped (stopped)
                close lease 1 (no election needs it)
    30.1s   closed ok
            now state stopped

story L5_stalled_and_lost
    The lease dies while the stalled work is being waited for: its close gives the claim back.
    with work_timeout 4s
    given leader term 3

    4s      ...
                lost term 3 (no sign of life from the work)
    5s      ...
                renew lease 1 (due)
    5.1s    renewed refused
                lease 1 is down (the store says that the lease is gone)
    13.5s   ...
                close lease 1 (the store says that the lease is gone)
            now state resigning, lease closing

story L5_an_old_stall_does_not_hurry_a_later_end
    Stalled once, led again, and then resigned: that work may take its time, like any other
    (S7).
    with renewals ok
    with work_timeout 10s
    given leader term 3

    10s     ...
                lost term 3 (no sign of life from the work)
    11s     drained
                release #1 term 3 (the work has ended)
    11.1s   released ok
    13.1s   ...
                campaign #3 floor 3 (due)
    13.1s   won term 4 watched
                became leader in term 4 (won)
                leader is A in term 4 (held)
    20s     resign
                lost term 4 (resigned)
    30s     ...
            now state resigning
    31s     drained
                release #3 term 4 (the work has ended)
