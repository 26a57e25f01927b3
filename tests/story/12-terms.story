# Terms: the fencing tokens. Every leadership has one above all that were ever seen.

story S3_every_campaign_carries_the_highest_term_seen
    The floor: the store grants a term above it, even if it has forgotten its own.

    0s      start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                campaign #1 (the lease is open)
    0.2s    held by B term 41 watched
                leader is B in term 41 (held)
            now floor 41
    1s      hint
                campaign #2 floor 41 (a hint)
    1.1s    won term 42 watched
                became leader in term 42 (won)
                leader is A in term 42 (held)
            now term 42, floor 42

story S3_a_term_that_is_not_higher_is_no_leadership
    The store has lost its data, or counts anew. A grant in term 1, after 41 was seen, is an
    error and is given back; such a store is left alone for a while (L4), and then told the
    floor again.
    with renewals ok

    0s      start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                campaign #1 (the lease is open)
    0.2s    held by B term 41 watched
                leader is B in term 41 (held)
    1s      hint
                campaign #2 floor 41 (a hint)
    1.1s    won term 1
                error term 1 (the term is not above the highest one seen)
                release #2 term 1 (the term is not above the highest one seen)
            now leads no, floor 41
    1.2s    released ok
    11.1s   ...
                campaign #4 floor 41 (due)
    11.2s   won term 42 watched
                became leader in term 42 (won)
                leader is A in term 42 (held)
            now leads yes

story S3_not_the_same_term_twice
    Equal is not above.

    given standby of B term 41
    1s      hint
                campaign #2 floor 41 (a hint)
    1.1s    won term 41
                error term 41 (the term is not above the highest one seen)
                release #2 term 41 (the term is not above the highest one seen)
            now leads no

story S4_the_floor_survives_a_store_that_forgot
    The record shows a lower term than we have seen: an old replica, or lost data. The floor
    stays, and so does what we know of the leader. It is campaigned for at the usual time.

    given standby of B term 41
    1s      hint
                campaign #2 floor 41 (a hint)
    1.1s    held by C term 7
            now floor 41, leader B
    5s      ...
                renew lease 1 (due)
    5.1s    renewed ok
    8.6s    ...
                campaign #3 floor 41 (due)
    8.7s    won term 42 watched
                became leader in term 42 (won)
                leader is A in term 42 (held)
            now leads yes

story S4_whatever_is_seen_counts
    A look was under way when the leader resigned. It is of no use any more, except for the term
    that it shows.

    given leader term 3
    1s      hint
                observe (a hint)
    1.1s    resign
                lost term 3 (resigned)
    1.2s    observed held by B term 9 watched
            now state resigning, floor 9
    1.3s    drained
                release #1 term 3 (the work has ended)
    1.4s    released refused

story S9_whatever_is_seen_must_be_possible
    The same with a term that nobody can have counted to.

    given leader term 3
    1s      hint
                observe (a hint)
    1.1s    resign
                lost term 3 (resigned)
    1.2s    observed held by B term max watched
            now state resigning, floor 3

story S4_free_in_an_old_term_is_not_believed_at_once
    What an old replica calls free may be held: no hurry.

    given standby of B term 41
    1s      health 0
    1.1s    hint
                observe (a hint)
    1.2s    health 1
    1.3s    observed free term 7
            now state standby, wake 5s

story S9_a_term_that_jumps_is_corrupt
    Further than 2^48 above the highest one seen: nobody counted that far. It is neither
    believed nor led, since a single wrong byte would use up the terms for ever.
    with renewals ok

    0s      start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                campaign #1 (the lease is open)
    0.2s    held by B term 41 watched
                leader is B in term 41 (held)
    1s      hint
                campaign #2 floor 41 (a hint)
    1.1s    held by B term 281474976710698
                error term 281474976710698 (the term is impossibly high)
            now floor 41
    2.1s    ...
                campaign #3 floor 41 (retry)
    2.2s    won term 281474976710698
                error term 281474976710698 (the term is impossibly high)
                release #3 term 281474976710698 (the term is impossibly high)
            now leads no, floor 41
    2.3s    released ok
    12.2s   ...
                campaign #5 floor 41 (due)
    12.4s   won term 281474976710697 watched
                became leader in term 281474976710697 (won)
                leader is A in term 281474976710697 (held)
            now leads yes, floor 281474976710697

story L4_a_corrupt_term_is_no_news
    Hints must wait after it, as after every look that told nothing.
    with renewals ok

    0s      start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                campaign #1 (the lease is open)
    0.2s    held by B term 41 watched
                leader is B in term 41 (held)
    1s      hint
                campaign #2 floor 41 (a hint)
    1.001s  held by B term 281474976710698
                error term 281474976710698 (the term is impossibly high)
    1.002s  hint
            now wake 1.0078125s

story the_first_term_may_be_any
    A new candidate has no opinion yet.

    0s      start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                campaign #1 (the lease is open)
    0.2s    held by B term 9000000000000000000 watched
                leader is B in term 9000000000000000000 (held)
            now floor 9000000000000000000

story S9_a_term_beyond_the_end_is_corrupt
    Terms end at 2^63 - 1.

    0s      start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                campaign #1 (the lease is open)
    0.2s    held by B term 9223372036854775808
                error term 9223372036854775808 (the term is impossibly high)
            now floor 0
    1.2s    ...
                campaign #2 (retry)
    1.3s    won term 9223372036854775808
                error term 9223372036854775808 (the term is impossibly high)
                release #2 term 9223372036854775808 (the term is impossibly high)
            now leads no, floor 0

story C21_at_the_end_of_the_terms_nobody_leads
    The last term is in use. There is no higher one, so nobody campaigns any more: that is an
    error to be told, not a reason to begin at 1.
    with renewals ok

    0s      start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                campaign #1 (the lease is open)
    0.2s    held by B term max watched
                error (there is no higher term)
                leader is B in term 9223372036854775807 (held)
            now floor 9223372036854775807
    100s    hint
                observe (a hint)
    100.1s  observed free term max watched
                nobody leads after term 9223372036854775807 (free)
    200s    acquire
                not-acquired (there is no higher term)

story C21_the_last_term_is_not_led
    Won in the last term of all: given back, and told once.
    with renewals ok

    0s      start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                campaign #1 (the lease is open)
    0.2s    won term max
                error term 9223372036854775807 (there is no higher term)
                release #1 term 9223372036854775807 (there is no higher term)
            now leads no
    0.3s    released ok
    10.2s   ...
                observe (due)
    10.3s   observed free term max watched
            now state standby

story S5_superseded_by_an_impossible_term
    The leader's own record shows a corrupt term. Whoever wrote it, the claim is not ours any
    more; but the term is not taken as seen.

    given leader term 3
    1s      hint
                observe (a hint)
    1.1s    observed held by B term 9223372036854775807 watched
                lost term 3 (another candidate leads in a later term)
            now leads no, floor 3

story rule_7_a_new_leadership_is_a_new_term
    The same process, the same lease, a moment later: another term.

    given leader term 3
    1s      resign
                lost term 3 (resigned)
    1.1s    drained
                release #1 term 3 (the work has ended)
    1.2s    released ok
    3.2s    ...
                campaign #3 floor 3 (due)
    3.2s    won term 4 watched
                became leader in term 4 (won)
                leader is A in term 4 (held)
            now leads yes, term 4

story S3_the_floor_survives_a_restart_of_the_election
    Stop and start keep what was seen.

    given standby of B term 41
    1s      stop
                stopped (stopped)
                close lease 1 (no election needs it)
    1.1s    closed ok
    2s      start
                open lease 2 (started)
    2.1s    opened ok
                lease 2 is up (the lease is open)
                campaign #2 floor 41 (the lease is open)
    2.2s    won term 42 watched
                became leader in term 42 (won)
                leader is A in term 42 (held)

story S3_a_new_election_takes_no_old_claim_for_its_own
    Election a was stopped without giving its claim back, freed, and made anew on the same lease. The
    new one is refused: the claim of the old one is still there. Its number is another than that of
    the new campaign, because the lease numbers the campaigns of all of its elections (rule 2). So it
    is an orphan, and not the new campaign carried out twice: term 3 has been led in before.
    with release_on_stop off
    with elections a b
    given leader term 3

    1s      a: stop
                a: lost term 3 (stopped)
    1.1s    a: drained
                a: stopped (stopped)
    2s      a: made anew
    2.1s    a: start
                a: campaign #3 (started)
    2.2s    a: held mine term 3 nonce 1
                a: release #1 term 3 (own claim found that was not asked for)
            now a: leads no, floor 3
