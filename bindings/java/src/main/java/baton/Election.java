// Election.java: this process' candidate in one election, from start to stop.
package baton;

import com.sun.jna.Memory;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Queue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;

/** This process' candidate. It belongs to its store, which frees it. */
public final class Election {
    final Store store; // stays while this is in use
    final State state;
    private final String name;

    /** The library's defaults, unless set otherwise. */
    public static final class Options {
        public String metadata;
        public boolean releaseOnStop = true;
        public boolean checkHealth = true;
        public boolean stepDownUnhealthy = true;
        public boolean observeOnly;
        public boolean manual;
        public int minScorePermille = 800;
        public int priority;
        public Duration preempt;
        public Duration workTimeout;
        /**
         * Told of every event, on a thread of the binding, one after the other. The work of those
         * who ask leads() without a Lead counts as ended when it returns from LOST.
         */
        public Consumer<Event> onEvent;
    }

    /** Work to do as leader. */
    @FunctionalInterface
    public interface Work {
        void run(Lead lead) throws Exception;
    }

    /** What this candidate knows, from memory. */
    public static final class Status {
        public final String state;
        public final boolean leads;
        public final boolean paused;
        public final long term;
        public final String leader;
        public final Duration timeLeft;

        Status(Memory s) {
            state = Lib.text(Lib.baton_state_name(s.getInt(Lib.STATUS_STATE)));
            leads = s.getByte(Lib.STATUS_LEADS) != 0;
            paused = s.getByte(Lib.STATUS_PAUSED) != 0;
            term = s.getLong(Lib.STATUS_TERM);
            leader = s.getString(Lib.STATUS_LEADER, "UTF-8");
            timeLeft = Duration.ofMillis(s.getLong(Lib.STATUS_LEFT));
        }
    }

    private static final long LONGEST_MS = TimeUnit.DAYS.toMillis(365);

    /** What the pump knows of an election. */
    static final class State {
        private static final ThreadLocal<Event> TELLS = new ThreadLocal<>();
        final long handle;
        private final Consumer<Event> onEvent;
        private final Queue<Event> untold = new ArrayDeque<>();
        private long changes;
        boolean stopped;
        private boolean contends; // until the application was told that the stop is complete
        Event lost;

        State(long handle, Consumer<Event> onEvent) {
            this.handle = handle;
            this.onEvent = onEvent;
        }

        synchronized void note(Event event) {
            if (event.kind == Event.Kind.LOST)
                lost = event;
            changed();
        }

        synchronized void begin() {
            stopped = false;
            contends = true;
        }

        synchronized void end() {
            contends = false;
            changed();
        }

        /**
         * Waits until the application has heard all that happened before the stop (S8), no longer
         * than until then. A handler doesn't wait for itself.
         */
        synchronized boolean awaitHeard(long untilNs) {
            return tells() || Store.await(this, () -> !contends, untilNs);
        }

        /** Whether this thread runs a handler. */
        static boolean tells() {
            return TELLS.get() != null;
        }

        synchronized void changed() {
            changes++;
            notifyAll();
        }

        synchronized long changes() {
            return changes;
        }

        /** Waits until something has changed since, or the time has come: then false. */
        synchronized boolean awaitChange(long since, long untilNs) throws InterruptedException {
            while (changes == since) {
                long left = (untilNs - System.nanoTime()) / 1_000_000;
                if (left <= 0)
                    return false;
                wait(left);
            }
            return true;
        }

        int stop(long ms) {
            synchronized (this) {
                stopped = true;
            }
            int code = Lib.baton_election_stop(handle, ms);
            changed();
            return code;
        }

        /**
         * Handlers of one election are called one after the other, and none delays another election.
         * (The library goes by the thread of the pump, which is always ready for the next event.)
         */
        void tell(Event event, Runnable told) {
            synchronized (this) {
                untold.add(event);
                if (untold.size() > 1)
                    return; // whoever tells the first goes on
            }
            Store.POOL.execute(() -> tellAll(told));
        }

        private void tellAll(Runnable told) {
            for (boolean more = true; more;) {
                Event event;
                synchronized (this) {
                    event = untold.peek();
                }
                raise(event);
                synchronized (this) {
                    untold.remove();
                    more = !untold.isEmpty();
                    if (event.kind == Event.Kind.STOPPED && stopped && !more)
                        end(); // and not started again
                }
                told.run();
            }
        }

        private void raise(Event event) {
            TELLS.set(event);
            try {
                if (onEvent != null)
                    onEvent.accept(event);
            } catch (RuntimeException e) {
                System.err.println("baton: a handler failed: " + e);
            } finally {
                TELLS.remove();
                // Leads that are open are waited for.
                if (event.kind == Event.Kind.LOST)
                    Lib.baton_drained(handle, event.term);
            }
        }
    }

    Election(Store store, String name, Options o) {
        Memory n = new Memory(Lib.ELECTION_SIZE);
        Lib.baton_election_options_init_sized(n, Lib.ELECTION_SIZE);
        Memory metadata = Store.set(n, Lib.ELECTION_METADATA, o.metadata);
        flag(n, Lib.ELECTION_RELEASE, o.releaseOnStop);
        flag(n, Lib.ELECTION_HEALTH, o.checkHealth);
        flag(n, Lib.ELECTION_UNHEALTHY, o.stepDownUnhealthy);
        flag(n, Lib.ELECTION_OBSERVE, o.observeOnly);
        flag(n, Lib.ELECTION_MANUAL, o.manual);
        n.setInt(Lib.ELECTION_SCORE, o.minScorePermille);
        n.setInt(Lib.ELECTION_PRIORITY, o.priority);
        Store.set(n, Lib.ELECTION_PREEMPT, o.preempt);
        Store.set(n, Lib.ELECTION_WORK, o.workTimeout);
        flag(n, Lib.ELECTION_DRAIN, true);
        long[] handle = new long[1];
        byte[] error = new byte[Lib.ERROR_SIZE];
        Lib.check(Lib.baton_election_new(store.pump.handle, Lib.bytes(name), n, handle, error),
                error);
        java.lang.ref.Reference.reachabilityFence(metadata);
        this.store = store;
        this.name = name;
        state = new State(handle[0], o.onEvent);
        store.pump.add(state);
    }

    private static void flag(Memory n, int at, boolean value) {
        n.setByte(at, (byte) (value ? 1 : 0));
    }

    public String name() {
        return name;
    }

    /** Contends from now on. Idempotent; never blocks. */
    public void start() {
        store.pump.with(() -> {
            state.begin();
            int code = Lib.baton_election_start(state.handle);
            if (code < 0)
                state.end();
            return Lib.check(code, null);
        });
    }

    /**
     * Steps down and stops contending. Waits so long for the work to end, the claim to go, and the
     * handler to hear of it (which doesn't wait for itself), and says whether all that has happened.
     * Zero from within the work of a lead.
     */
    public boolean stop(Duration limit) {
        return store.pump.with(() -> {
            long until = limit.isNegative() ? store.pump.inALease() : System.nanoTime()
                    + TimeUnit.MILLISECONDS.toNanos(Math.min(limit.toMillis(), LONGEST_MS));
            int code = state.stop(Store.millis(limit));
            if (code == Code.TIMEOUT.number)
                return false;
            Lib.check(code, null);
            return state.awaitHeard(until);
        });
    }

    /** Asks the clock whether this candidate leads now. */
    public boolean leads() {
        if (!store.pump.guard.enter())
            return false;
        boolean leads = Lib.baton_is_leader(state.handle) != 0;
        store.pump.guard.leave();
        return leads;
    }

    /** Of the present leadership, 0 if there is none: the fencing token. Unsigned. */
    public long term() {
        return store.pump.with(() -> Lib.baton_term(state.handle));
    }

    /** Steps down, and leaves it to others for so long. */
    public void resign(Duration quiet) {
        store.pump.with(() -> Lib.check(Lib.baton_resign(state.handle, Store.millis(quiet)), null));
    }

    public void transfer(String candidate) {
        byte[] error = new byte[Lib.ERROR_SIZE];
        store.pump.with(() -> Lib.check(
                Lib.baton_transfer(state.handle, Lib.bytes(candidate), error), error));
    }

    /** From 0 to 1000; null leaves the metadata. */
    public void reportHealth(int score, String metadata) {
        store.pump.with(() -> Lib.check(
                Lib.baton_report_health(state.handle, score, Lib.bytes(metadata)), null));
    }

    /** A sign of life of the work. */
    public void alive() {
        store.pump.with(() -> {
            Lib.baton_alive(state.handle);
            return null;
        });
    }

    /** Tries to become leader now: null if it leads, else what kept it, in a word: "held". */
    public String tryAcquire(Duration limit) {
        int[] why = new int[1];
        int code = store.pump.with(() -> Lib.check(
                Lib.baton_try_acquire(state.handle, Store.millis(limit), why), null));
        return code == 1 ? null : Lib.text(Lib.baton_obstacle_name(why[0]));
    }

    public Status status() {
        return store.pump.with(() -> {
            Memory s = new Memory(Lib.STATUS_SIZE);
            Lib.check(Lib.baton_get_status_sized(state.handle, s, Lib.STATUS_SIZE), null);
            return new Status(s);
        });
    }

    /** Binds work to the present leadership. BatonException with NOT_LEADER if there is none. */
    public Lead enter() {
        byte[] error = new byte[Lib.ERROR_SIZE];
        return store.pump.with(() -> {
            long[] handle = new long[1];
            Lib.check(Lib.baton_enter(state.handle, handle, error), error);
            return new Lead(this, handle[0]);
        });
    }

    /** Waits until this candidate leads, and binds work to that leadership. */
    public Lead acquire(Duration limit) throws InterruptedException, TimeoutException {
        return acquire(0, System.nanoTime() + limit.toNanos());
    }

    // Of a leadership later than that: one that was resigned may linger for a moment.
    private Lead acquire(long after, long untilNs) throws InterruptedException, TimeoutException {
        for (;;) {
            long since = state.changes();
            synchronized (state) {
                if (state.stopped)
                    throw new IllegalStateException("baton: the election is stopped");
            }
            try {
                Lead lead = enter();
                if (Long.compareUnsigned(lead.term(), after) > 0)
                    return lead;
                lead.close();
            } catch (BatonException e) {
                if (e.code() != Code.NOT_LEADER)
                    throw e;
            }
            if (!state.awaitChange(since, untilNs))
                throw new TimeoutException("baton: not elected in time");
        }
    }

    /**
     * Runs work on this thread whenever this candidate is elected. The loss of the leadership
     * interrupts it; the leadership passes on only after it has ended. If it returns while it leads,
     * this resigns and contends again. Ends when the election is stopped or the store is closed,
     * when the thread is interrupted by others, and when work throws: with what it threw.
     */
    public void run(Work work) throws Exception {
        start();
        long after = 0;
        try {
            for (;;) {
                Lead lead;
                try {
                    lead = acquire(after, System.nanoTime() + Long.MAX_VALUE / 2);
                } catch (IllegalStateException e) {
                    return;
                }
                after = lead.term();
                if (new Interrupter(lead).run(work) && store.pump.guard.enter()) {
                    Lib.baton_resign(state.handle, 0);
                    store.pump.guard.leave();
                }
            }
        } finally {
            if (store.pump.guard.enter()) {
                state.stop(0);
                store.pump.guard.leave();
            }
        }
    }

    /** Interrupts the thread of the work while it runs, and takes back an interrupt of its own. */
    private static final class Interrupter {
        private final Lead lead;
        private final Thread thread = Thread.currentThread();
        private boolean runs = true;
        private boolean interrupted;

        Interrupter(Lead lead) {
            this.lead = lead;
            lead.lost().thenRun(this::interrupt);
        }

        private synchronized void interrupt() {
            if (!runs)
                return;
            interrupted = true;
            thread.interrupt();
        }

        private synchronized boolean ended() {
            runs = false;
            if (interrupted)
                Thread.interrupted();
            return interrupted;
        }

        /** Whether it still leads. */
        boolean run(Work work) throws Exception {
            boolean leads = true;
            try {
                work.run(lead);
            } catch (Exception e) {
                if (!ended() || !(e instanceof InterruptedException))
                    throw e;
            } finally {
                ended();
                leads = lead.leads();
                lead.close();
            }
            return leads;
        }
    }
}
