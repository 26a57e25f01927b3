# Health: a score from 0 to 1, by default 1 until the first report. Below the minimum (0.8) a leader
# steps down, and a candidate does not campaign.

story an_unhealthy_leader_steps_down
    In the same order as every other end: lost, drained, released. It stays in the election,
    looks, and campaigns again when it has recovered.
    with renewals ok
    given leader term 3

    1s      health 0.79
                lost term 3 (unhealthy)
            now leads no
    1.5s    drained
                release #1 term 3 (the work has ended)
    1.6s    released ok
    3.6s    ...
                observe (due)
    3.6s    observed held by B term 4 watched
                leader is B in term 4 (held)
    60s     health 0.8
                campaign #4 floor 4 (healthy again)
    60.1s   held by B term 4 watched
    61s     hint
                campaign #5 floor 4 (a hint)
    61.1s   won term 5 watched
                became leader in term 5 (won)
                leader is A in term 5 (held)
            now leads yes

story a_healthy_leader_stays
    The minimum itself is well enough, and so is every score above it.

    given leader term 3
    1s      health 0.8
    2s      health 1
    3s      health 0.9
            now leads yes

story an_unhealthy_candidate_does_not_campaign
    It opens its lease and looks who leads, also when nobody does.

    0s      start
                open lease 1 (started)
    0.05s   health 0.5
    0.1s    opened ok
                lease 1 is up (the lease is open)
                observe (the lease is open)
    0.2s    observed free term 0
            now state standby, leads no
    1s      health 0.6
    2s      health 0.9
                campaign #2 (healthy again)
    2.1s    won term 1 watched
                became leader in term 1 (won)
                leader is A in term 1 (held)

story a_candidate_that_falls_ill_during_its_campaign
    Won, but unwell: it is given back, and was never led.

    0s      start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                campaign #1 (the lease is open)
    0.2s    health 0
    0.3s    won term 1
                release #1 term 1 (unhealthy)
            now leads no
    0.4s    released ok
                observe (due)
    0.5s    observed free term 1
            now state standby

story health_that_nobody_checks
    With health checks off a score is for show.
    with check_health off

    0s      start
                open lease 1 (started)
    0.1s    health 0
    0.2s    opened ok
                lease 1 is up (the lease is open)
                campaign #1 (the lease is open)
    0.3s    won term 1 watched
                became leader in term 1 (won)
                leader is A in term 1 (held)
    0.4s    health 0.1
            now leads yes

story an_unhealthy_leader_that_may_stay
    With step-down off an unhealthy leader stays; but once it has lost, it does not campaign
    before it is well.
    with step_down_unhealthy off
    given leader term 3

    1s      health 0.2
            now leads yes
    5s      ...
                renew lease 1 (due)
    5.1s    renewed refused
                lease 1 is down (the store says that the lease is gone)
                lost term 3 (the store says that the lease is gone)
    5.2s    drained
                close lease 1 (the store says that the lease is gone)
    5.3s    closed ok
                open lease 2 (started)
    5.4s    opened ok
                lease 2 is up (the lease is open)
                observe (the lease is open)
    5.5s    observed free term 3 watched
            now state standby
    6s      health 0.8
                campaign #3 floor 3 (healthy again)
    6.1s    won term 4 watched
                became leader in term 4 (won)
                leader is A in term 4 (held)
            now leads yes

story recovery_does_not_break_a_quiet_period
    Unwell, then well again within the time that the others were given.

    given leader term 3
    1s      health 0
                lost term 3 (unhealthy)
    1.1s    drained
                release #1 term 3 (the work has ended)
    1.2s    released ok
    1.3s    health 1
            now state standby, wake 3.2s
    3.2s    ...
                campaign #3 floor 3 (healthy again)
    3.2s    won term 4 watched
                became leader in term 4 (won)
                leader is A in term 4 (held)

story the_minimum_can_be_chosen
    A minimum of 0.3.
    with min_score 0.3
    given leader term 3

    1s      health 0.3
            now leads yes
    2s      health 0.299
                lost term 3 (unhealthy)
            now leads no
