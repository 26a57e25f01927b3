package baton;

import java.lang.ref.Cleaner;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;

/**
 * One leadership with work bound to it, which is not passed on before this is closed: close() says
 * that the work has ended.
 */
public final class Lead implements AutoCloseable {
    private static final Cleaner CLEANER = Cleaner.create();

    private final Election election;
    private final State state;
    private final long term;
    private final Cleaner.Cleanable warning;

    /** What the pump knows of a lead. */
    static final class State {
        final long handle;
        final int fd;
        final Guard guard = new Guard();
        final CompletableFuture<Event.Reason> lost = new CompletableFuture<>();
        private final Election.State election;
        private final long term;
        volatile boolean told;
        private volatile boolean closed;

        State(long handle, long term, Election.State election) {
            this.handle = handle;
            this.term = term;
            this.election = election;
            fd = Lib.baton_context_fd(handle);
        }

        boolean leads() {
            if (!guard.enter())
                return false;
            boolean leads = Lib.baton_context_is_leader(handle) != 0;
            guard.leave();
            return leads;
        }

        /** The descriptor is readable. What depends on the future runs on a thread of its own. */
        void look() {
            if (told || leads())
                return;
            told = true;
            Event event;
            synchronized (election) {
                event = election.lost;
            }
            lost.completeAsync(() -> event != null && event.term == term ? event.reason
                    : Event.Reason.EXPIRED, Store.POOL);
        }

        void warn() {
            if (!closed)
                System.err.println("baton: a lead was not closed: it stays open");
        }
    }

    Lead(Election election, long handle) {
        this.election = election;
        term = Lib.baton_context_term(handle);
        state = new State(handle, term, election.state);
        State inner = state;
        warning = CLEANER.register(this, () -> inner.warn());
        election.store.pump.add(state);
    }

    /** The fencing token: hand it on to what the work writes to. Unsigned. */
    public long term() {
        return term;
    }

    /** Asks the clock: ask before each piece of work. */
    public boolean leads() {
        return state.leads();
    }

    /** Completed with the reason when the leadership ends. The clock knows earlier. */
    public CompletableFuture<Event.Reason> lost() {
        return state.lost;
    }

    /** How long leads() stays true if nothing more is heard from the store. */
    public Duration timeLeft() {
        if (!state.guard.enter())
            return Duration.ZERO;
        long ms = Lib.baton_context_time_left_ms(state.handle);
        state.guard.leave();
        return Duration.ofMillis(ms);
    }

    @Override
    public void close() {
        if (!state.guard.close())
            return;
        state.closed = true;
        Lib.baton_leave(state.handle);
        election.store.pump.remove(state);
        warning.clean();
    }
}
