// Store.java: a handle on one store, and the thread that waits for what happens there: events of the
// library, and the ends of leaderships. Code of the application never runs on that thread.
package baton;

import com.sun.jna.Memory;
import com.sun.jna.Pointer;
import java.lang.ref.Cleaner;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.BooleanSupplier;

/** Makes elections. Close it: that stops them, waits for open leads, and gives everything back. */
public final class Store implements AutoCloseable {
    private static final Cleaner CLEANER = Cleaner.create();
    private static final Set<Pump> OPEN = ConcurrentHashMap.newKeySet();
    static final ExecutorService POOL = Executors.newCachedThreadPool(work -> {
        Thread thread = new Thread(work, "baton");
        thread.setDaemon(true);
        return thread;
    });

    static {
        Runtime.getRuntime().addShutdownHook(new Thread(
                () -> OPEN.forEach(pump -> pump.stopAll(1000)), "baton exit"));
    }

    final Pump pump;
    private final Cleaner.Cleanable warning;

    /** What is null has the library's default. */
    public static final class Options {
        public String id;
        public String address;
        public Duration lease;
        public Duration renew;
        public Duration grace;
        public Duration retry;
        public Duration retryMax;
        public Integer driftPermille;
        public boolean outlive;
    }

    /** A candidate as the store knows it. */
    public static final class Candidate {
        public final String id;
        public final String address;
        public final String metadata;
        public final boolean leads;
        public final boolean healthy;
        public final int score;

        Candidate(Pointer p) {
            id = p.getString(Lib.CANDIDATE_ID, "UTF-8");
            address = p.getString(Lib.CANDIDATE_ADDRESS, "UTF-8");
            metadata = p.getString(Lib.CANDIDATE_METADATA, "UTF-8");
            leads = p.getByte(Lib.CANDIDATE_LEADS) != 0;
            healthy = p.getByte(Lib.CANDIDATE_HEALTHY) != 0;
            score = p.getInt(Lib.CANDIDATE_SCORE);
        }
    }

    private Store(long handle) {
        pump = new Pump(handle);
        OPEN.add(pump);
        Pump inner = pump;
        warning = CLEANER.register(this, () -> inner.abandon());
    }

    public static Store open(String url) {
        return open(url, new Options());
    }

    /** Opens a handle on the store that the URL names. Does no I/O. */
    public static Store open(String url, Options o) {
        Memory n = new Memory(Lib.OPTIONS_SIZE);
        Lib.baton_options_init_sized(n, Lib.OPTIONS_SIZE);
        Memory id = set(n, Lib.OPTIONS_ID, o.id);
        Memory address = set(n, Lib.OPTIONS_ADDRESS, o.address);
        set(n, Lib.OPTIONS_LEASE, o.lease);
        set(n, Lib.OPTIONS_RENEW, o.renew);
        set(n, Lib.OPTIONS_GRACE, o.grace);
        set(n, Lib.OPTIONS_RETRY, o.retry);
        set(n, Lib.OPTIONS_RETRY_MAX, o.retryMax);
        if (o.driftPermille != null)
            n.setInt(Lib.OPTIONS_DRIFT, o.driftPermille);
        n.setByte(Lib.OPTIONS_OUTLIVE, (byte) (o.outlive ? 1 : 0));
        long[] handle = new long[1];
        byte[] error = new byte[Lib.ERROR_SIZE];
        Lib.check(Lib.baton_open(Lib.bytes(url), n, handle, error), error);
        java.lang.ref.Reference.reachabilityFence(id);
        java.lang.ref.Reference.reachabilityFence(address);
        return new Store(handle[0]);
    }

    static Memory set(Memory n, int at, String text) {
        if (text == null)
            return null;
        byte[] bytes = Lib.bytes(text);
        Memory copy = new Memory(bytes.length);
        copy.write(0, bytes, 0, bytes.length);
        n.setPointer(at, copy);
        return copy;
    }

    static void set(Memory n, int at, Duration time) {
        if (time != null)
            n.setLong(at, millis(time));
    }

    // Away from 0, which has a meaning of its own.
    static long millis(Duration time) {
        return (time.isNegative() ? time.minusNanos(999_999) : time.plusNanos(999_999)).toMillis();
    }

    public static String version() {
        return Lib.text(Lib.baton_version());
    }

    public static int versionNumber() {
        return Lib.baton_version_number();
    }

    /** This process' own id in the elections of the store. */
    public String id() {
        return pump.with(() -> Lib.text(Lib.baton_id(pump.handle)));
    }

    /** What this store promises, and under which faults it doesn't: text for people. */
    public String promises() {
        return pump.with(() -> Lib.text(Lib.baton_promises(pump.handle)));
    }

    /** A candidate in the named election. It does nothing until it is started. */
    public Election election(String name) {
        return election(name, new Election.Options());
    }

    public Election election(String name, Election.Options options) {
        return pump.with(() -> new Election(this, name, options));
    }

    /** Asks the store who contends. Blocks. */
    public List<Candidate> candidates(String name) {
        return pump.with(() -> {
            for (int room = 16;; room *= 4) {
                Memory all = new Memory((long) room * Lib.CANDIDATE_SIZE);
                byte[] error = new byte[Lib.ERROR_SIZE];
                int n = Lib.check(Lib.baton_get_candidates_sized(pump.handle, Lib.bytes(name), all,
                        room, Lib.CANDIDATE_SIZE, error), error);
                if (n > room)
                    continue;
                List<Candidate> list = new ArrayList<>();
                for (int i = 0; i < n; i++)
                    list.add(new Candidate(all.share((long) i * Lib.CANDIDATE_SIZE)));
                return list;
            }
        });
    }

    /**
     * Stops all elections, waits for the work of open leads (no longer than a lease), lets the
     * handlers hear of the end, and gives everything back. Not from within the work of a lead;
     * called from a handler, it goes on in the background.
     */
    @Override
    public void close() {
        if (Election.State.tells()) {
            POOL.execute(this::closeLater);
            return;
        }
        if (!pump.end())
            return;
        OPEN.remove(pump);
        warning.clean();
    }

    // A handler must not wait for itself.
    private void closeLater() {
        try {
            close();
        } catch (BatonException e) {
            System.err.println("baton: a store was not closed: " + e.getMessage());
        }
    }

    /**
     * Waits until it is true, for somebody who changes what (whose lock we have); no longer than
     * until then, which says whether it is. An interrupt ends no stop and no closing: it is kept.
     */
    static boolean await(Object what, BooleanSupplier isTrue, long untilNs) {
        boolean interrupted = false;
        long left = 1;
        while (!isTrue.getAsBoolean() && (left = untilNs - System.nanoTime()) > 0) {
            try {
                what.wait(left / 1_000_000 + 1);
            } catch (InterruptedException e) {
                interrupted = true;
            }
        }
        if (interrupted)
            Thread.currentThread().interrupt();
        return left > 0;
    }

    /** What the thread of a store knows. It must not know the Store, which it would keep for ever. */
    static final class Pump {
        final long handle;
        final Guard guard = new Guard();
        private final Map<Long, Election.State> elections = new HashMap<>();
        private final List<Lead.State> leads = new ArrayList<>();
        private final int wake = Lib.Libc.eventfd(0, Lib.Libc.CLOSE_ON_EXEC
                | Lib.Libc.DOES_NOT_BLOCK);
        private final Thread thread = new Thread(this::run, "baton events");
        private int unfinished; // events that the application is being told
        private volatile boolean ends;
        private volatile boolean ended;
        private final Object closing = new Object(); // one call at a time

        Pump(long handle) {
            this.handle = handle;
            thread.setDaemon(true);
            thread.start();
        }

        <T> T with(java.util.function.Supplier<T> call) {
            guard.enterOrThrow();
            try {
                return call.get();
            } finally {
                guard.leave();
            }
        }

        // Never blocks and never releases.
        void abandon() {
            if (ended)
                return;
            System.err.println("baton: a store was not closed; its elections are stopped");
            stopAll(0);
        }

        private synchronized List<Election.State> all() {
            return new ArrayList<>(elections.values());
        }

        void stopAll(long ms) {
            List<Election.State> all = all();
            if (!guard.enter())
                return;
            try {
                for (Election.State e : all)
                    e.stop(0);
                long until = System.nanoTime() + ms * 1_000_000;
                for (Election.State e : all)
                    e.stop(Math.max(0, (until - System.nanoTime()) / 1_000_000));
            } finally {
                guard.leave();
            }
        }

        synchronized void add(Election.State election) {
            elections.put(election.handle, election);
        }

        synchronized void add(Lead.State lead) {
            leads.add(lead);
            wake();
        }

        synchronized void remove(Lead.State lead) {
            leads.remove(lead);
            notifyAll();
            wake();
        }

        private void wake() {
            Lib.Libc.write(wake, new long[] {1}, 8);
        }

        /** The time that is a lease from now. */
        long inALease() {
            Memory timings = new Memory(Lib.TIMINGS_SIZE);
            Lib.baton_get_timings_sized(handle, timings, Lib.TIMINGS_SIZE);
            return System.nanoTime() + timings.getLong(Lib.TIMINGS_LEASE);
        }

        private synchronized void waitForLeads() {
            if (!await(this, leads::isEmpty, inALease()))
                throw new BatonException(Code.BUSY.number, "leads of this store are still open");
        }

        private synchronized void waitForHandlers() {
            while (!await(this, () -> unfinished == 0, System.nanoTime() + 1_000_000_000L)) {
            }
        }

        /** False: it was closed before. */
        boolean end() {
            synchronized (closing) {
                if (ended)
                    return false;
                stopAll(0);
                waitForLeads();
                long until = inALease();
                for (Election.State e : all())
                    e.awaitHeard(until);
                guard.close();
                ended = true;
                ends = true;
                wake();
                join();
                waitForHandlers();
                Lib.Libc.close(wake);
                Lib.baton_close(handle);
                return true;
            }
        }

        private void join() {
            boolean interrupted = false;
            while (thread.isAlive()) {
                try {
                    thread.join();
                } catch (InterruptedException e) {
                    interrupted = true;
                }
            }
            if (interrupted)
                Thread.currentThread().interrupt();
        }

        private void run() {
            Memory event = new Memory(Lib.EVENT_SIZE);
            while (!ends) {
                List<Lead.State> watched = new ArrayList<>();
                synchronized (this) {
                    for (Lead.State lead : leads)
                        if (!lead.told)
                            watched.add(lead);
                }
                int n = 2 + watched.size();
                Memory fds = new Memory((long) n * Lib.Libc.POLLFD_SIZE);
                fds.clear();
                for (int i = 0; i < n; i++) {
                    int fd = i == 0 ? Lib.baton_fd(handle) : i == 1 ? wake : watched.get(i - 2).fd;
                    fds.setInt((long) i * Lib.Libc.POLLFD_SIZE, fd);
                    fds.setShort((long) i * Lib.Libc.POLLFD_SIZE + 4, Lib.Libc.READABLE);
                }
                Lib.Libc.poll(fds, n, -1);
                Lib.Libc.read(wake, new long[1], 8);
                // First the events: they say why.
                while (Lib.baton_wait_sized(handle, 0, event, Lib.EVENT_SIZE) == 1)
                    tell(event);
                for (int i = 2; i < n; i++)
                    if (fds.getShort((long) i * Lib.Libc.POLLFD_SIZE + 6) != 0)
                        watched.get(i - 2).look();
            }
        }

        private void tell(Memory p) {
            Event event = new Event(p);
            Election.State election;
            Lib.baton_event_done(handle, p.getLong(Lib.EVENT_TOKEN));
            synchronized (this) {
                election = elections.get(p.getLong(Lib.EVENT_ELECTION));
                if (election == null)
                    return;
                unfinished++;
            }
            election.note(event);
            election.tell(event, this::told);
        }

        private synchronized void told() {
            unfinished--;
            notifyAll();
        }
    }
}
