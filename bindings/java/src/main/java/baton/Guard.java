package baton;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;

/** Keeps a native handle while calls use it: it is closed after the last of them, and then is gone. */
final class Guard {
    private final AtomicInteger users = new AtomicInteger();

    /** False: it is closed. Else leave() must follow. */
    boolean enter() {
        if (users.incrementAndGet() > 0)
            return true;
        users.decrementAndGet();
        return false;
    }

    void enterOrThrow() {
        if (!enter())
            throw new IllegalStateException("baton: it is closed");
    }

    void leave() {
        users.decrementAndGet();
    }

    /** True for the first that closes, after all calls have left. */
    boolean close() {
        for (;;) {
            int now = users.get();
            if (now < 0)
                return false;
            if (users.compareAndSet(now, now + Integer.MIN_VALUE))
                break;
        }
        for (int i = 0; users.get() != Integer.MIN_VALUE; i++) {
            if (i < 100)
                Thread.yield(); // most calls never wait
            else
                LockSupport.parkNanos(1_000_000);
        }
        return true;
    }
}
