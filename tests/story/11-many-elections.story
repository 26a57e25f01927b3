# One lease carries many elections: one renewal keeps them all, one loss loses them all.

story one_renewal_keeps_all
    Three elections are led, for one call in 5s.
    with elections a b c
    given leader term 3

    5s      ...
                renew lease 1 (due)
    5.1s    renewed ok held 3
            now a: leads yes, deadline 15s
            now b: leads yes, deadline 15s
            now c: leads yes, deadline 15s

story one_loss_loses_all
    All are told at once. The lease is closed when the last of their works has ended.
    with elections a b c
    given leader term 3

    5s      ...
                renew lease 1 (due)
    5.1s    renewed refused
                lease 1 is down (the store says that the lease is gone)
                a: lost term 3 (the store says that the lease is gone)
                b: lost term 3 (the store says that the lease is gone)
                c: lost term 3 (the store says that the lease is gone)
    6s      a: drained
    7s      c: drained
            now a: lease dead
    8s      b: drained
                close lease 1 (the store says that the lease is gone)
    8.1s    closed ok
                open lease 2 (started)

story S7_the_slowest_work_has_until_the_end
    One of them does not end: the lease is closed when its time is up.
    with elections a b
    given leader term 3

    5s      ...
                renew lease 1 (due)
    5.1s    renewed refused
                lease 1 is down (the store says that the lease is gone)
                a: lost term 3 (the store says that the lease is gone)
                b: lost term 3 (the store says that the lease is gone)
    6s      a: drained
    13.5s   ...
                close lease 1 (the store says that the lease is gone)
    13.6s   closed ok
                open lease 2 (started)
    13.7s   opened ok
                lease 2 is up (the lease is open)
                a: campaign #3 floor 3 (the lease is open)
            now a: state campaigning
            now b: state resigning

story S7_the_work_of_an_old_lease_does_not_hold_the_new_one
    The work of b outlived lease 1, and had its time. Lease 2 dies, too: nothing of b runs on
    it, so that it is closed as soon as the others allow.
    with elections a b
    given leader term 3

    5s      ...
                renew lease 1 (due)
    5.1s    renewed refused
                lease 1 is down (the store says that the lease is gone)
                a: lost term 3 (the store says that the lease is gone)
                b: lost term 3 (the store says that the lease is gone)
    5.2s    a: drained
    13.5s   ...
                close lease 1 (the store says that the lease is gone)
    13.6s   closed ok
                open lease 2 (started)
    13.7s   opened ok
                lease 2 is up (the lease is open)
                a: campaign #3 floor 3 (the lease is open)
    13.8s   a: held by B term 4 watched
                a: leader is B in term 4 (held)
    18.6s   ...
                renew lease 2 (due)
    18.6s   renewed refused
                lease 2 is down (the store says that the lease is gone)
                close lease 2 (the store says that the lease is gone)
            now b: state resigning
    18.7s   closed ok
                open lease 3 (started)

story one_resigns_the_others_stay
    A claim is given back by itself; the lease lives on for the others, and its count is right.
    with elections a b
    given leader term 3

    1s      a: resign quiet 60s
                a: lost term 3 (resigned)
    1.1s    a: drained
                a: release #1 term 3 (the work has ended)
    1.2s    a: released ok
    5s      ...
                renew lease 1 (due)
    5.1s    renewed ok held 1
            now b: leads yes
            now a: state standby

story the_last_one_closes_the_lease
    Stopped one by one: the lease is closed after the last.
    with elections a b
    given leader term 3

    1s      a: stop
                a: lost term 3 (stopped)
    1.1s    a: drained
                a: release #1 term 3 (the work has ended)
    1.2s    a: released ok
                a: stopped (stopped)
            now b: leads yes, lease live
    2s      b: stop
                b: lost term 3 (stopped)
    2.1s    b: drained
                b: release #2 term 3 (the work has ended)
    2.2s    b: released ok
                b: stopped (stopped)
                close lease 1 (no election needs it)
    2.3s    closed ok

story L3_one_claim_is_missing
    The count is one less. The list says which one: only that one is lost.
    with elections a b
    given leader term 3

    5s      ...
                renew lease 1 (due)
    5.1s    renewed ok held 1
                claims lease 1 (the store counts other claims than are known)
    5.2s    claims a term 3 nonce 1
                b: lost term 3 (the claim is gone from the store)
            now a: leads yes
            now b: leads no

story L3_the_count_allows_for_what_is_on_its_way
    Releases under way during the renewal: the count is right with or without them, and nothing
    is asked for.
    with elections a b c
    given leader term 3

    4.7s    a: resign
                a: lost term 3 (resigned)
    4.8s    b: resign
                b: lost term 3 (resigned)
    4.9s    a: drained
                a: release #1 term 3 (the work has ended)
    5s      ...
                renew lease 1 (due)
    5.05s   a: released ok
    5.06s   b: drained
                b: release #2 term 3 (the work has ended)
    5.1s    renewed ok held 1
    5.2s    b: released ok
            now c: leads yes

story L3_one_more_than_all_that_is_on_its_way
    A campaign is under way when the renewal is sent, so that 0 and 1 are both right. 2 is not.
    with elections a b
    given standby of B term 3

    4.9s    a: hint
                a: campaign #3 floor 3 (a hint)
    5s      ...
                renew lease 1 (due)
    5.1s    renewed ok held 2
                claims lease 1 (the store counts other claims than are known)
    5.2s    a: won term 4 watched
                a: became leader in term 4 (won)
                a: leader is A in term 4 (held)
    5.3s    claims a term 4 nonce 3, b term 4 nonce 9
                b: release #9 term 4 (own claim found that was not asked for)
    5.4s    b: released ok
            now a: leads yes

story L3_one_more_than_what_came_during_the_renewal
    The same with a campaign that begins while the renewal is on the wire.
    with elections a b
    given standby of B term 3

    5s      ...
                renew lease 1 (due)
    5.02s   a: hint
                a: campaign #3 floor 3 (a hint)
    5.1s    renewed ok held 2
                claims lease 1 (the store counts other claims than are known)

story L3_a_campaign_during_the_renewal
    Begun and won while the renewal was on the wire: counted or not, both are right.
    with elections a b
    given standby of B term 3

    5s      ...
                renew lease 1 (due)
    5.02s   a: hint
                a: campaign #3 floor 3 (a hint)
    5.06s   a: won term 4 watched
                a: became leader in term 4 (won)
                a: leader is A in term 4 (held)
    5.1s    renewed ok held 1
            now a: leads yes, wake 10s

story L3_a_list_from_before_the_release
    The list was asked for before the claim of a was given back, and still shows it. It is older
    than what we know.
    with elections a b
    given leader term 3

    4.8s    a: resign
                a: lost term 3 (resigned)
    4.9s    a: drained
                a: release #1 term 3 (the work has ended)
    5s      ...
                renew lease 1 (due)
    5.1s    renewed ok held 3
                claims lease 1 (the store counts other claims than are known)
    5.2s    a: released ok
    5.3s    claims a term 3 nonce 1, b term 3 nonce 2
            now a: state standby
            now b: leads yes

story L3_a_claim_that_is_gone_while_it_drains
    Resigned, the work still runs, and the list says that the claim is gone. There is nothing
    left to give back.
    with elections a b
    given leader term 3

    4.9s    a: resign
                a: lost term 3 (resigned)
    5s      ...
                renew lease 1 (due)
    5.1s    renewed ok held 1
                claims lease 1 (the store counts other claims than are known)
    5.2s    claims b term 3 nonce 2
    6s      a: drained
                a: campaign #3 floor 3 (the work has ended)
            now a: state campaigning
            now b: leads yes

story L3_a_claim_that_drains_is_still_there
    The same, and the claim is there: it is given back when the work has ended.
    with elections a b
    given leader term 3

    4.9s    a: resign
                a: lost term 3 (resigned)
    5s      ...
                renew lease 1 (due)
    5.1s    renewed ok held 1
                claims lease 1 (the store counts other claims than are known)
    5.2s    claims a term 3 nonce 1, b term 3 nonce 2
    6s      a: drained
                a: release #1 term 3 (the work has ended)
            now a: state releasing

story L3_who_is_busy_ignores_the_list
    A campaign or a release is under way: its own answer will say more than the list.
    with elections a b
    given leader term 3

    4.9s    a: resign
                a: lost term 3 (resigned)
    4.95s   a: drained
                a: release #1 term 3 (the work has ended)
    5s      ...
                renew lease 1 (due)
    5.1s    renewed ok held 0
                claims lease 1 (the store counts other claims than are known)
    5.2s    claims b term 3 nonce 2
            now a: state releasing
    5.3s    a: released ok

story release_on_stop_off_on_a_shared_lease
    A claim can't be left to expire on a lease that lives on for others: it would be held for
    ever. The count finds it, and it is given back.
    with release_on_stop off
    with elections a b
    given leader term 3

    1s      a: stop
                a: lost term 3 (stopped)
    1.1s    a: drained
                a: stopped (stopped)
            now a: state stopped
    5s      ...
                renew lease 1 (due)
    5.1s    renewed ok held 2
                claims lease 1 (the store counts other claims than are known)
    5.2s    claims a term 3 nonce 1, b term 3 nonce 2
                a: release #1 term 3 (own claim found that was not asked for)
    5.3s    a: released ok
            now a: state stopped
            now b: leads yes

story a_claim_found_when_the_lease_is_gone
    The list arrives when the lease is already dead. The close will give back all that it
    carries; the stopped election stays stopped.
    with elections a b
    given standby of B term 3

    1s      a: stop
                a: stopped (stopped)
    4.7s    b: health 0
    4.8s    b: hint
                b: observe (a hint)
    4.9s    b: observed held mine term 4 nonce 9
                b: nobody leads after term 4 (free)
                claims lease 1 (the record differs from what is known)
    5s      ...
                renew lease 1 (due)
    5.1s    renewed refused
                lease 1 is down (the store says that the lease is gone)
                close lease 1 (the store says that the lease is gone)
    5.2s    claims a term 4 nonce 1, b term 4 nonce 9
            now a: state stopped
            now b: state standby
    5.3s    closed ok
                open lease 2 (started)

story started_one_after_the_other
    The second election joins the lease that is there.
    with elections a b

    0s      a: start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                a: campaign #1 (the lease is open)
    0.2s    a: won term 1 watched
                a: became leader in term 1 (won)
                a: leader is A in term 1 (held)
    3s      b: start
                b: campaign #2 (started)
    3.1s    b: won term 7 watched
                b: became leader in term 7 (won)
                b: leader is A in term 7 (held)
    5s      ...
                renew lease 1 (due)
    5.1s    renewed ok held 2
            now a: leads yes
            now b: leads yes
