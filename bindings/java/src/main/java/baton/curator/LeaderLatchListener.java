package baton.curator;

/** Has the methods of Curator's listener. */
public interface LeaderLatchListener {
    void isLeader();

    /** The leadership passes on only after this has returned. */
    void notLeader();
}
