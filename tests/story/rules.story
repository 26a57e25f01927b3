# The ten rules of the design, each by a story. Where another file shows it best, its name stands
# here:
#
#   rule 1   count the holder's lease from before the send: S2_the_deadline_counts_from_the_send and
#            rule_1_one_failed_renewal_is_not_a_loss (02); everybody else's from after the sight:
#            here
#   rule 2   every write attempt has a nonce of its own: here, and in 05
#   rule 3   a session proves that a connection lives, not its holder: here
#   rule 4   ownership is checked, not liveness: here
#   rule 5   full names, unique incarnations: here
#   rule 6   the expiry that counts is the one in the record: here
#   rule 7   a new leadership is a new term: here, and in 12
#   rule 8   a claim is adopted only if it ended unknown and was never reported, nor another's: in 05
#   rule 9   who judges an expiry reads the clock before the record: here (the store's half of it is
#            shown with the drivers)
#   rule 10  an order names its term: in 07; pause is a flag of the election: in 08

story S1_the_successor_begins_after_the_predecessor_has_ended
    The whole of S1 in one story. A's renewals no longer reach the store; its last good one was
    sent at 0s. A's answer is no from 10s on, its work is over at 13.5s, and the store lets B in
    when the lease has run out, at 15s or later.
    with candidates A B
    given A: leader term 3

    0s      B: start
                B: open lease 1 (started)
    0.1s    B: opened ok
                B: lease 1 is up (the lease is open)
                B: campaign #1 (the lease is open)
    0.2s    B: held by A term 3
                B: leader is A in term 3 (held)
    5s      ...
                A: renew lease 1 (due)
                B: renew lease 1 (due)
    5.1s    B: renewed ok
    6.6s    A: renewed unknown
                A: error (the call failed)
                A: renew lease 1 (retry)
    7.7s    ...
                B: campaign #2 floor 3 (due)
    7.8s    B: held by A term 3 free_in 7.3s
    8.2s    A: renewed unknown
                A: error (the call failed)
    8.333333334s ...
                A: renew lease 1 (retry)
    9.9s    A: renewed unknown
                A: error (the call failed)
    10s     ...
                A: lease 1 is down (the deadline has passed)
                A: lost term 3 (the deadline has passed)
                B: renew lease 1 (due)
            now A: leads no
    10.1s   B: renewed ok
    12s     A: drained
                A: close lease 1 (the deadline has passed)
    13.6s   A: closed unknown
    14.6s   ...
                A: close lease 1 (the deadline has passed)
    15s     ...
                B: renew lease 1 (due)
    15.1s   ...
                B: campaign #3 floor 3 (due)
    15.1s   B: renewed ok
    15.1s   B: won term 4 watched
                B: became leader in term 4 (won)
                B: leader is B in term 4 (held)
            now A: leads no
            now B: leads yes

story rule_1_the_others_count_from_the_sight
    Asked at 0.1s, answered at 1.7s: free in 8s. That is counted from when we hear it, on our
    own clock: 9.7s. The way of the question and of the answer can only make us later.
    with renewals ok

    0s      start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                campaign #1 (the lease is open)
    1.7s    held by B term 3 free_in 8s
                leader is B in term 3 (held)
    9.7s    ...
                campaign #2 floor 3 (due)

story rule_2_every_attempt_has_a_nonce_of_its_own
    Three campaigns, three nonces: what lands late can't be mistaken for its retry.

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
    3.4s    campaigned failed
                error (the call failed)

story rule_2_a_late_claim_with_an_older_nonce_is_no_proof
    Campaign #1 ended unknown, and so did #2. What is found carries the nonce of #1, but the
    doubt is about #2. It goes back rather than being led by mistake.

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
    4.3s    campaigned unknown
                error (the outcome is unknown)
                claims lease 1 (the outcome is unknown)
    4.4s    claims term 1 nonce 1
                release #1 term 1 (own claim found that was not asked for)
            now leads no
    4.5s    released ok

story rule_3_a_connection_is_not_a_holder
    The connection is fine, and so is every answer; but the holder was frozen past its deadline.
    Its own clock decides, not the session that is still there.

    given leader term 3
    5s      ...
                renew lease 1 (due)
    5.1s    renewed ok
    6s      freezes
    16s     thaws, then reconnected
                lease 1 is down (the deadline has passed)
                lost term 3 (the deadline has passed)
            now leads no

story rule_4_ownership_is_checked
    Every renewal tells how many claims stand on the lease. A store that answers, but no longer
    has our claim, is found out by the next one.

    given leader term 3
    5s      ...
                renew lease 1 (due)
    5.1s    renewed ok held 0
                claims lease 1 (the store counts other claims than are known)
    5.2s    claims none
                lost term 3 (the claim is gone from the store)
            now leads no

story rule_5_a_namesake_is_somebody_else
    Another process with our name has it. The record says our name, but not our lease: we don't
    lead, and we don't give it back either (S6).

    0s      start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                campaign #1 (the lease is open)
    0.2s    held by A term 3 nonce 1 watched
            now leads no, state standby
    1s      hint
                campaign #2 floor 3 (a hint)
    1.1s    held by A term 3 nonce 2 watched
            now leads no, state standby

story rule_6_the_record_decides_when_a_lease_ends
    Our own lease is 15s, the leader's is 2s: it is come for after what is left of the 2s.

    0s      start
                open lease 1 (started)
    0.1s    opened ok
                lease 1 is up (the lease is open)
                campaign #1 (the lease is open)
    0.2s    held by B term 3 free_in 1.8s
                leader is B in term 3 (held)
    2s      ...
                campaign #2 floor 3 (due)
    2.1s    won term 4 watched
                became leader in term 4 (won)
                leader is A in term 4 (held)

story rule_6_different_lease_lengths_in_one_election
    A has a lease of 60s, B one of 6s. Each keeps its own promises by its own numbers, and waits
    for the other by what the record says.
    with candidates A B
    with renewals ok
    with A: lease 60s
    with B: lease 6s
    given A: leader term 3

    0s      B: start
                B: open lease 1 (started)
    0.1s    B: opened ok
                B: lease 1 is up (the lease is open)
                B: campaign #1 (the lease is open)
    0.2s    B: held by A term 3 free_in 59s
                B: leader is A in term 3 (held)
            now A: deadline 40s, end 54s
            now B: deadline 4s, end 5.4s
    19s     A: resign quiet 60s
                A: lost term 3 (resigned)
    19.1s   A: drained
                A: release #1 term 3 (the work has ended)
    19.2s   A: released ok
    19.3s   B: hint
                B: campaign #2 floor 3 (a hint)
    19.4s   B: won term 4
                B: became leader in term 4 (won)
                B: leader is B in term 4 (held)
    19.5s   A: hint
                A: observe (a hint)
    19.6s   A: observed held by B term 4 free_in 4s
                A: leader is B in term 4 (held)
    23.15s  ...
                B: observe (due)
    23.6s   ...
                A: observe (due)
    23.7s   A: observed held by B term 4 free_in 2s
            now B: leads yes

story rule_7_an_old_lease_is_not_the_new_one
    The lease is lost and opened anew. Nothing that was won on the old one is valid on the new
    one.

    given leader term 3
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
                campaign #2 floor 3 (the lease is open)
            now leads no, lease live
    5.5s    won term 4 watched
                became leader in term 4 (won)
                leader is A in term 4 (held)
            now leads yes, term 4

story rule_9_the_clock_is_read_first
    The good answer and the deadline fall on the same instant. The clock is asked before the
    answer is read: it is over.

    given leader term 3
    5s      ...
                renew lease 1 (due)
    6.6s    renewed unknown
                error (the call failed)
                renew lease 1 (retry)
    8.2s    renewed unknown
                error (the call failed)
    8.333333334s ...
                renew lease 1 (retry)
    9.9s    freezes
    10s     thaws, then renewed ok
                lease 1 is down (the deadline has passed)
                lost term 3 (the deadline has passed)
            now leads no

story rule_9_a_moment_earlier
    The same, one nanosecond earlier: still leader, and the answer counts.

    given leader term 3
    5s      ...
                renew lease 1 (due)
    6.6s    renewed unknown
                error (the call failed)
                renew lease 1 (retry)
    8.2s    renewed unknown
                error (the call failed)
    8.333333334s ...
                renew lease 1 (retry)
    9.999999999s renewed ok
            now leads yes, deadline 18.333333334s
