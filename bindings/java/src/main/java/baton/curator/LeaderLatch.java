package baton.curator;

import baton.Election;
import baton.Event;
import baton.Store;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Has the shape of Curator's LeaderLatch: a program changes its import and how it makes the latch. */
public final class LeaderLatch implements AutoCloseable {
    private final Store store;
    private final Election election;
    private final List<LeaderLatchListener> listeners = new CopyOnWriteArrayList<>();

    /** The URL takes the place of the client, the name that of the path; null: an id of its own. */
    public LeaderLatch(String url, String name, String id) {
        Store.Options options = new Store.Options();
        options.id = id;
        store = Store.open(url, options);
        Election.Options of = new Election.Options();
        of.onEvent = this::told;
        election = store.election(name, of);
    }

    private void told(Event event) {
        for (LeaderLatchListener listener : listeners) {
            if (event.kind == Event.Kind.BECAME)
                listener.isLeader();
            else if (event.kind == Event.Kind.LOST)
                listener.notLeader();
        }
    }

    public void addListener(LeaderLatchListener listener) {
        listeners.add(listener);
    }

    public void removeListener(LeaderLatchListener listener) {
        listeners.remove(listener);
    }

    public void start() {
        election.start();
    }

    /** Asks the clock. */
    public boolean hasLeadership() {
        return election.leads();
    }

    public void await() throws InterruptedException {
        await(Long.MAX_VALUE / 4, TimeUnit.NANOSECONDS);
    }

    public boolean await(long timeout, TimeUnit unit) throws InterruptedException {
        try {
            election.acquire(Duration.ofNanos(unit.toNanos(timeout))).close();
            return true;
        } catch (TimeoutException e) {
            return false;
        }
    }

    public String getId() {
        return store.id();
    }

    /** The leader's id as far as it is known; "" if none is. */
    public String getLeader() {
        return election.status().leader;
    }

    @Override
    public void close() {
        store.close();
    }
}
