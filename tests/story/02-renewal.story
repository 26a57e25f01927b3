# How a lease is kept. One renewal keeps all that stands on it.

story S2_the_deadline_counts_from_the_send
    The renewal is sent at 5s and answered at 6.5s. The deadline is 5s + renew + grace, and the
    next renewal is due at 5s + renew: the time on the wire is our loss, never the successor's.

    given leader term 1
    5s      ...
                renew lease 1 (due)
            now deadline 10s
    6.5s    renewed ok
            now deadline 15s, end 18.5s, wake 10s
            now sent 5s

story rule_1_one_failed_renewal_is_not_a_loss
    The first retry follows at once, on a fresh connection. Two tries that time out are survived
    inside the grace.

    given leader term 1
    5s      ...
                renew lease 1 (due)
    6.6s    renewed unknown
                error (the call failed)
                renew lease 1 (retry)
    8.2s    renewed unknown
                error (the call failed)
            now leads yes
    8.333333334s ...
                renew lease 1 (retry)
    9.3s    renewed ok
            now leads yes, deadline 18.333333334s

story L6_no_spurious_loss_while_the_store_answers_slowly
    A store that takes a third of the grace for every answer, each time, costs nothing.

    given leader term 1
    5s      ...
                renew lease 1 (due)
    6.6s    renewed ok
    10s     ...
                renew lease 1 (due)
    11.6s   renewed ok
    15s     ...
                renew lease 1 (due)
    16.6s   renewed ok
    20s     ...
                renew lease 1 (due)
    21.6s   renewed ok
            now leads yes, deadline 30s

story L6_the_last_retry_still_fits
    However far the backoff reaches, one more try is made while it can still be answered in
    time.

    with retry 5s
    given leader term 1
    5s      ...
                renew lease 1 (due)
    5.1s    renewed failed
                error (the call failed)
                renew lease 1 (retry)
    5.2s    renewed failed random 1
                error (the call failed)
            now wake 8.333333334s
    8.333333334s ...
                renew lease 1 (retry)
    8.4s    renewed failed random 0.5
                error (the call failed)
            now wake 10s
    10s     ...
                lease 1 is down (the deadline has passed)
                lost term 1 (the deadline has passed)

story L6_two_tries_that_took_a_little_more_than_their_time
    Two tries time out, and each is reported a moment after its limit. The third follows at
    once: it is the last one that can be answered in time.

    given leader term 1
    5s      ...
                renew lease 1 (due)
    6.7s    renewed unknown
                error (the call failed)
                renew lease 1 (retry)
    8.4s    renewed unknown
                error (the call failed)
                renew lease 1 (retry)
    9.9s    renewed ok
            now leads yes, deadline 18.4s

story L4_a_reconnect_hurries_the_renewal
    A failing renewal waits for its backoff; when the connection is back, it need not.

    with retry 1s retry_max 4s
    given leader term 1
    5s      ...
                renew lease 1 (due)
    5.1s    renewed failed
                error (the call failed)
                renew lease 1 (retry)
    5.2s    renewed failed random 1
                error (the call failed)
    5.3s    reconnected
                observe (a hint)
    6.1s    ...
                renew lease 1 (retry)
    6.1s    observed held mine term 1 nonce 1 watched
    6.2s    renewed ok
            now leads yes, deadline 16.1s

story S2_nobody_has_to_run_for_the_end
    The question "do I lead?" looks at the clock by itself. No timer, no event, no thread is
    needed for a no.

    given leader term 1
    5s      ...
                renew lease 1 (due)
            now leads yes at 9.999999999s, leads no at 10s

story S2_the_drift_bound_ends_it_earlier
    Two clocks may differ in their rates. A bound of 20 % takes a fifth off the end of the
    lease; the deadline is where it was, the work has less time to stop in.

    with drift 0.2
    given leader term 1
            now deadline 10s, end 12s
    5s      ...
                renew lease 1 (due)
    6.6s    renewed failed
                error (the call failed)
                renew lease 1 (retry)
    8.2s    renewed failed
                error (the call failed)
    8.333333334s ...
                renew lease 1 (retry)
    9.9s    renewed failed
                error (the call failed)
    10s     ...
                lease 1 is down (the deadline has passed)
                lost term 1 (the deadline has passed)
            now leads no
    12s     ...
                close lease 1 (the deadline has passed)

story a_slow_open_has_used_up_its_time
    The process was held up, and reads 9s after it asked that its lease is open: what is left is
    1s. The renewal is overdue.

    0s      start
                open lease 1 (started)
    0.1s    freezes
    9s      thaws, then opened ok
                lease 1 is up (the lease is open)
                campaign #1 (the lease is open)
                renew lease 1 (due)
            now lease live, deadline 10s
    9.1s    renewed ok
    9.2s    won term 1 watched
                became leader in term 1 (won)
                leader is A in term 1 (held)
            now leads yes, deadline 19s

story S5_a_lease_that_opens_too_late_is_closed
    Opened after its own deadline: it was never good for anything, and is given back.

    0s      start
                open lease 1 (started)
    0.1s    freezes
    10s     thaws, then opened ok
                close lease 1 (too late)
            now lease closing
    10.1s   closed ok
                open lease 2 (started)
    10.2s   opened ok
                lease 2 is up (the lease is open)
                campaign #1 (the lease is open)
    10.3s   won term 1 watched
                became leader in term 1 (won)
                leader is A in term 1 (held)
            now leads yes, deadline 20.1s
