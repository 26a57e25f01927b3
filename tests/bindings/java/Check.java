// Check.java: the adapter with the usage that Curator documents, with two latches.
import baton.BatonException;
import baton.Code;
import baton.Store;
import baton.curator.LeaderLatch;
import baton.curator.LeaderLatchListener;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Comparator;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

public final class Check {
    private static void check(boolean condition, String what) {
        if (!condition)
            throw new AssertionError("not so: " + what);
    }

    private static LeaderLatch latch(String url, String id, BlockingQueue<String> told) {
        LeaderLatch latch = new LeaderLatch(url, "/services/report", id);
        latch.addListener(new LeaderLatchListener() {
            @Override
            public void isLeader() {
                told.add(id + " leads");
            }

            @Override
            public void notLeader() {
                told.add(id + " does not");
            }
        });
        return latch;
    }

    private static void next(BlockingQueue<String> told, String want) throws InterruptedException {
        String got = told.poll(60, TimeUnit.SECONDS);
        check(want.equals(got), want + ", but " + got);
    }

    private static void twoLatches(String url) throws InterruptedException {
        BlockingQueue<String> told = new LinkedBlockingQueue<>();
        BlockingQueue<String> toldOne = new LinkedBlockingQueue<>();
        try (LeaderLatch two = latch(url, "two", told)) {
            try (LeaderLatch one = latch(url, "one", toldOne)) {
                one.start();
                check(one.await(60, TimeUnit.SECONDS), "one leads in the end");
                one.await(); // it does
                next(toldOne, "one leads");
                check(one.hasLeadership() && one.getId().equals("one"), "one has the leadership");
                two.start();
                check(!two.await(100, TimeUnit.MILLISECONDS), "two waits");
                check(two.getLeader().equals("one") || two.getLeader().isEmpty(), "who leads");
            }
            next(toldOne, "one does not");
            check(two.await(60, TimeUnit.SECONDS), "two leads in the end");
            next(told, "two leads");
        }
        next(told, "two does not");
    }

    // A listener that is still busy with a leadership when the latch is closed hears of its end.
    private static void closedAtOnce(String url) throws InterruptedException {
        BlockingQueue<String> told = new LinkedBlockingQueue<>();
        LeaderLatch latch = latch(url, "young", told);
        latch.addListener(new LeaderLatchListener() {
            @Override
            public void isLeader() {
                try {
                    Thread.sleep(200);
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
            }

            @Override
            public void notLeader() {}
        });
        latch.start();
        next(told, "young leads");
        latch.close();
        check("young does not".equals(told.poll()), "it has heard of the end");
    }

    // Less than a millisecond is rounded up: 0 would stand for the lease that the library chooses.
    private static void shortest(String url) {
        Store.Options options = new Store.Options();
        options.lease = Duration.ofNanos(1);
        try (Store store = Store.open(url, options)) {
            check(false, "a lease of a nanosecond, in " + store.id());
        } catch (BatonException e) {
            check(e.code() == Code.TIMING, "a timing that is refused, but " + e);
        }
    }

    public static void main(String[] args) throws Exception {
        String place = System.getenv("TMPDIR"); // Java itself doesn't ask for it
        Path folder = Files.createTempDirectory(
                Path.of(place != null ? place : System.getProperty("java.io.tmpdir")), "baton-java-");
        try {
            twoLatches("file:" + folder);
            System.out.println("ok twoLatches");
            closedAtOnce("file:" + folder);
            System.out.println("ok closedAtOnce");
            shortest("file:" + folder);
            System.out.println("ok shortest");
        } finally {
            try (Stream<Path> all = Files.walk(folder)) {
                all.sorted(Comparator.reverseOrder()).forEach(path -> path.toFile().delete());
            }
        }
    }
}
