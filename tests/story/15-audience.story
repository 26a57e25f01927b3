# What the application hears, and when its work counts as ended: the third machine, before the
# core that gives nothing back until it says so.

story S7_the_handler_of_lost_is_part_of_the_work
    Only when the handler of LOST has returned is the claim given back; B waits that long.
    with candidates A B
    with audience handler
    given A: leader term 3
    given B: standby of A term 3

    1s      A: takes
                A: hears became, term 3
    1s      A: done
    1s      A: takes
                A: hears changed
    1s      A: done
    2s      A: resign
                A: lost term 3 (resigned)
    2.1s    A: takes
                A: hears lost, term 3
    3s      A: done
                A: the work counts as ended
                A: release #1 term 3 (the work has ended)

story S7_events_pulled_are_acknowledged_by_themselves
    Taking LOST says nothing; that it is done does, whoever says so. The word of another event
    that is over is refused.
    with audience pulls
    given leader term 3

    1s      takes
                hears became, term 3
    1s      done
    1s      done
                refused
    2s      resign
                lost term 3 (resigned)
    2s      takes
                hears lost, term 3
    2s      done
                the work counts as ended
                release #1 term 3 (the work has ended)
    2.1s    takes
                hears changed
    3s      done

story S7_a_pump_gives_nothing_away
    A binding's pump takes every event at once while the work runs on. By hand, only leaving the
    context ends it.
    with audience by_hand
    given leader term 3

    1s      enters
    1s      takes
                hears became, term 3
    1s      done
    2s      resign
                lost term 3 (resigned)
    2s      enters
                refused
    2s      takes
                hears lost, term 3
    2s      done
    2s      takes
                hears changed
    2s      done
    3s      leaves
                the work counts as ended
                release #1 term 3 (the work has ended)

story S7_a_word_with_an_old_term
    The work of term 3 is over and done with. What is said of it later ends nothing of term 4.
    with audience by_hand
    given leader term 3

    1s      ended term 3
                refused
    2s      resign
                lost term 3 (resigned)
    3s      ended term 3
                the work counts as ended
                release #1 term 3 (the work has ended)
    3.1s    released ok
    5s      ...
                renew lease 1 (due)
    5.1s    ...
                campaign #3 floor 3 (due)
    5.2s    won term 4 watched
                became leader in term 4 (won)
                leader is A in term 4 (held)
    6s      resign
                lost term 4 (resigned)
    7s      ended term 3
                refused
    8s      ended term 4
                the work counts as ended
                release #3 term 4 (the work has ended)

story S7_the_clock_is_faster_than_the_core
    The deadline has passed while the process was frozen. The work sees it by itself and says that
    it has ended, before the core has told of any loss: that word counts.
    with audience by_hand
    given leader term 3

    1s      freezes
    11s     thaws, then ended term 3
                lease 1 is down (the deadline has passed)
                lost term 3 (the deadline has passed)
                the work counts as ended
                close lease 1 (the deadline has passed)

story S7_nobody_listens
    A program that never takes events has the drain time to notice by is_leader().
    with audience nobody
    with renewals ok
    given leader term 3

    1s      resign
                lost term 3 (resigned)
    4.5s    ...
                the work counts as ended
                release #1 term 3 (the work has ended)

story S8_a_leadership_that_nobody_heard_of
    The application says by itself that its work has ended, and leads again and again before it
    takes an event. It hears of the first loss and of the last beginning, and of nothing between.
    with audience pulls
    given leader term 3

    1s      takes
                hears became, term 3
    1s      done
    1s      takes
                hears changed
    1s      done
    2s      resign
                lost term 3 (resigned)
    2s      ended term 3
                the work counts as ended
                release #1 term 3 (the work has ended)
    2.1s    released ok
    4.1s    ...
                campaign #3 floor 3 (due)
    4.2s    won term 4 watched
                became leader in term 4 (won)
                leader is A in term 4 (held)
    5s      ...
                renew lease 1 (due)
    5s      resign
                lost term 4 (resigned)
    5s      ended term 4
                the work counts as ended
                release #3 term 4 (the work has ended)
    5.1s    released ok
    7.1s    ...
                campaign #5 floor 4 (due)
    7.2s    won term 5 watched
                became leader in term 5 (won)
                leader is A in term 5 (held)
    8s      takes
                hears lost, term 3
    8s      done
    8s      takes
                hears became, term 5
    8s      done

story S8_stopped_is_the_last_word
    Who asks for the stop knows of the loss: nothing is waited for, and STOPPED is told at the end.
    with audience pulls
    given leader term 3

    1s      takes
                hears became, term 3
    1s      done
    2s      stop
                lost term 3 (stopped)
                the work counts as ended
                release #1 term 3 (the work has ended)
    2.1s    released ok
                stopped (stopped)
                close lease 1 (no election needs it)
    3s      takes
                hears lost, term 3
    3s      done
    3s      takes
                hears changed
    3s      done
    3s      takes
                hears stopped
    3s      done
    3s      takes
                hears nothing
