package baton;

import com.sun.jna.Pointer;

/** What happens in an election. */
public final class Event {
    /** The kinds of events. */
    public enum Kind {
        NONE(0),
        BECAME(1), // BATON_EVENT_BECAME
        LOST(2), // BATON_EVENT_LOST
        CHANGED(3), // BATON_EVENT_CHANGED
        ERROR(4), // BATON_EVENT_ERROR
        STOPPED(5), // BATON_EVENT_STOPPED
        WAITS(6), // BATON_EVENT_WAITS
        RENEWED(7); // BATON_EVENT_RENEWED

        public final int number;

        Kind(int number) {
            this.number = number;
        }
    }

    /** Why a leadership ended. */
    public enum Reason {
        NONE(0), // BATON_REASON_NONE
        EXPIRED(1), // BATON_REASON_EXPIRED
        REFUSED(2), // BATON_REASON_REFUSED
        SUPERSEDED(3), // BATON_REASON_SUPERSEDED
        GONE(4), // BATON_REASON_GONE
        STALLED(5), // BATON_REASON_STALLED
        STOPPED(6), // BATON_REASON_STOPPED
        RESIGNED(7), // BATON_REASON_RESIGNED
        ORDERED(8), // BATON_REASON_ORDERED
        TRANSFERRED(9), // BATON_REASON_TRANSFERRED
        UNHEALTHY(10), // BATON_REASON_UNHEALTHY
        PAUSED(11); // BATON_REASON_PAUSED

        public final int number;

        Reason(int number) {
            this.number = number;
        }
    }

    public final Kind kind;
    public final Reason reason;
    public final Code code;
    public final long term;
    public final long oldTerm;
    public final String leader;
    public final String oldLeader;
    public final String text;
    public final String detail;

    Event(Pointer p) {
        // A newer library may have more kinds and reasons.
        int k = p.getInt(Lib.EVENT_KIND);
        int r = p.getInt(Lib.EVENT_REASON);
        kind = k < Kind.values().length ? Kind.values()[k] : Kind.NONE;
        reason = r < Reason.values().length ? Reason.values()[r] : Reason.NONE;
        code = Code.of(p.getInt(Lib.EVENT_CODE));
        term = p.getLong(Lib.EVENT_TERM);
        oldTerm = p.getLong(Lib.EVENT_OLD_TERM);
        leader = p.getString(Lib.EVENT_LEADER, "UTF-8");
        oldLeader = p.getString(Lib.EVENT_OLD_LEADER, "UTF-8");
        text = p.getString(Lib.EVENT_TEXT, "UTF-8");
        detail = p.getString(Lib.EVENT_DETAIL, "UTF-8");
    }
}
