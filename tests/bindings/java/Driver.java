// Driver.java: the driver program of the Java binding. It does what the lines on standard input say;
// tests/bindings/README.md has the lines. It uses the binding as a program would.
import baton.BatonException;
import baton.Code;
import baton.Election;
import baton.Event;
import baton.Lead;
import baton.Store;
import com.sun.jna.Native;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;
import java.util.stream.Collectors;

public final class Driver {
    private static final Map<String, Store> STORES = new ConcurrentHashMap<>();
    private static final Map<String, Election> ELECTIONS = new ConcurrentHashMap<>();
    private static final Map<String, String> OWNERS = new ConcurrentHashMap<>();
    private static final Map<String, Lead> LEADS = new ConcurrentHashMap<>();
    private static final Map<String, Semaphore> FINISH = new ConcurrentHashMap<>();
    private static final Map<String, List<String>> HEARD = new ConcurrentHashMap<>();
    private static final List<Process> CHILDREN = new ArrayList<>();
    private static final PrintStream OUT =
            new PrintStream(new FileOutputStream(FileDescriptor.out), false);
    private static int made;

    static final class Clock {
        static {
            Native.register(Clock.class, "c");
        }

        static native int clock_gettime(int clock, long[] time);
    }

    static final class Skip extends RuntimeException {
        private static final long serialVersionUID = 1;

        Skip(String why) {
            super(why);
        }
    }

    private static long nowNs() {
        long[] t = new long[2];
        Clock.clock_gettime(7, t); // CLOCK_BOOTTIME
        return t[0] * 1_000_000_000 + t[1];
    }

    private static String quote(String word) {
        if (word.isEmpty())
            return "%";
        StringBuilder b = new StringBuilder();
        for (byte c : word.getBytes(StandardCharsets.UTF_8)) {
            if (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
                    || c > 0 && "-._~:/=,?&@+".indexOf(c) >= 0)
                b.append((char) c);
            else
                b.append(String.format("%%%02X", c & 0xff));
        }
        return b.toString();
    }

    private static String unquote(String word) {
        if (word.equals("%"))
            return "";
        ByteArrayOutputStream b = new ByteArrayOutputStream();
        for (int i = 0; i < word.length(); i++) {
            if (word.charAt(i) == '%') {
                b.write(Integer.parseInt(word.substring(i + 1, i + 3), 16));
                i += 2;
            } else {
                b.write(word.charAt(i));
            }
        }
        return b.toString(StandardCharsets.UTF_8);
    }

    private static synchronized void say(Object... words) {
        StringBuilder b = new StringBuilder();
        for (Object word : words)
            b.append(b.length() == 0 ? "" : " ").append(word);
        OUT.print(b.append('\n'));
        OUT.flush();
    }

    private static String failed(Throwable e) {
        if (e instanceof BatonException) {
            BatonException ours = (BatonException) e;
            return "error " + ours.codeName() + " " + ours.number() + " " + quote(e.getMessage());
        }
        if (e instanceof TimeoutException)
            return "error timeout -9 " + quote("the given time has passed");
        return "error other 0 " + quote(String.valueOf(e.getMessage()));
    }

    private static Duration millis(String word) {
        return word == null ? null : Duration.ofMillis(Long.parseLong(word));
    }

    private static Map<String, String> keys(String[] words, int from) {
        Map<String, String> found = new HashMap<>();
        for (int i = from; i < words.length; i++) {
            int at = words[i].indexOf('=');
            found.put(words[i].substring(0, at), words[i].substring(at + 1));
        }
        return found;
    }

    private static synchronized String nameLead(Lead lead) {
        String name = "L" + ++made;
        LEADS.put(name, lead);
        return name;
    }

    private static void spin(String e, Lead lead) throws InterruptedException {
        for (;;) {
            long before = nowNs();
            boolean leads = lead.leads();
            long after = nowNs();
            if (!leads)
                return;
            say("! yes", e, Long.toUnsignedString(lead.term()), before, after);
            Thread.sleep(1);
        }
    }

    private static void body(String e, Lead lead, String mode) throws Exception {
        String name = nameLead(lead);
        String how = "cancelled";
        say("! enter", e, name, Long.toUnsignedString(lead.term()), nowNs());
        try {
            if (mode.equals("raise")) {
                how = "raised";
                throw new IllegalArgumentException("the body failed");
            }
            if (mode.equals("spin")) {
                spin(e, lead);
                return;
            }
            if (mode.equals("stop"))
                ELECTIONS.get(e).stop(Duration.ZERO);
            try {
                if (mode.equals("until")) {
                    FINISH.get(e).acquire();
                    how = "returned";
                    return;
                }
                new Semaphore(0).acquire();
            } catch (InterruptedException lost) {
                say("! lost", e, name, nowNs());
                if (!mode.equals("stubborn"))
                    throw lost;
                FINISH.get(e).acquireUninterruptibly();
                how = "returned";
            }
        } finally {
            say("! leave", e, name, how, nowNs());
        }
    }

    private static void run(String e, Election election, String mode) {
        FINISH.put(e, new Semaphore(0));
        Thread thread = new Thread(() -> {
            try {
                election.run(lead -> body(e, lead, mode));
                say("! end", e, "stopped");
            } catch (BatonException error) {
                say("! end", e, failed(error));
            } catch (Exception error) {
                say("! end", e, "raised", quote(String.valueOf(error.getMessage())));
            }
        });
        thread.setDaemon(true);
        thread.start();
    }

    private static String open(String[] w) {
        Map<String, String> k = keys(w, 3);
        Store.Options o = new Store.Options();
        o.id = k.get("id");
        o.address = k.get("address");
        o.lease = millis(k.get("lease_ms"));
        o.renew = millis(k.get("renew_ms"));
        o.grace = millis(k.get("grace_ms"));
        o.retry = millis(k.get("retry_ms"));
        o.outlive = "1".equals(k.get("outlive"));
        Store store = Store.open(w[2], o);
        STORES.put(w[1], store);
        return quote(store.id());
    }

    private static String election(String[] w) {
        Map<String, String> k = keys(w, 4);
        Election.Options o = new Election.Options();
        o.metadata = k.get("metadata");
        o.priority = Integer.parseInt(k.getOrDefault("priority", "0"));
        o.preempt = millis(k.get("preempt_ms"));
        o.workTimeout = millis(k.get("work_timeout_ms"));
        o.manual = "1".equals(k.get("manual"));
        o.observeOnly = "1".equals(k.get("observe_only"));
        o.releaseOnStop = !"0".equals(k.get("release_on_stop"));
        o.stepDownUnhealthy = !"0".equals(k.get("step_down_unhealthy"));
        if (k.containsKey("hear_ms"))
            o.onEvent = hearing(w, Long.parseLong(k.get("hear_ms")), k.get("inside"));
        Election election = STORES.get(w[2]).election(w[3], o);
        ELECTIONS.put(w[1], election);
        OWNERS.put(w[1], w[2]);
        return quote(election.name());
    }

    private static Consumer<Event> hearing(String[] w, long slowMs, String inside) {
        List<String> heard = Collections.synchronizedList(new ArrayList<>());
        HEARD.put(w[1], heard);
        return event -> {
            if (event.kind == Event.Kind.BECAME) {
                pause(slowMs);
                if ("stop".equals(inside))
                    ELECTIONS.get(w[1]).stop(Duration.ofHours(1));
                if ("close".equals(inside))
                    STORES.get(w[2]).close();
            }
            if (EnumSet.of(Event.Kind.BECAME, Event.Kind.LOST, Event.Kind.STOPPED)
                    .contains(event.kind))
                heard.add(event.kind.toString().toLowerCase());
        };
    }

    private static void pause(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private static Store forget(String s) {
        OWNERS.entrySet().removeIf(pair -> {
            if (pair.getValue().equals(s))
                ELECTIONS.remove(pair.getKey());
            return pair.getValue().equals(s);
        });
        LEADS.clear();
        return STORES.remove(s);
    }

    private static void drop(String s) throws InterruptedException {
        forget(s);
        collect();
    }

    private static void collect() throws InterruptedException {
        for (int i = 0; i < 5; i++) { // a cleaner runs some time after the collection
            System.gc();
            Thread.sleep(20);
        }
    }

    private static void cycle(int n, String url) {
        for (int i = 0; i < n; i++) {
            try (Store store = Store.open(url)) {
                store.election("cycle").start();
            }
        }
    }

    private static String bit(boolean value) {
        return value ? "1" : "0";
    }

    private static String ofElection(String[] w, Election e) throws Exception {
        switch (w[0]) {
            case "start":
                e.start();
                return "";
            case "run":
                run(w[1], e, w[2]);
                return "";
            case "finish":
                FINISH.get(w[1]).release();
                return "";
            case "await":
                try (Lead lead = e.acquire(millis(w[2]))) {
                    return Long.toUnsignedString(lead.term());
                }
            case "enter":
                Lead entered = e.enter();
                return nameLead(entered) + " " + Long.toUnsignedString(entered.term());
            case "leads":
                return bit(e.leads());
            case "term":
                return Long.toUnsignedString(e.term());
            case "left":
                return String.valueOf(e.status().timeLeft.toMillis());
            case "status":
                Election.Status s = e.status();
                return s.state + " " + quote(s.leader) + " " + Long.toUnsignedString(s.term);
            case "try":
                return bit(e.tryAcquire(millis(w[2])) == null);
            case "resign":
                e.resign(millis(w[2]));
                return "";
            case "transfer":
                e.transfer(w[2]);
                return "";
            case "health":
                e.reportHealth(Integer.parseInt(w[2]), w.length > 3 ? w[3] : null);
                return "";
            case "alive":
                e.alive();
                return "";
            case "stop":
                if (!e.stop(millis(w[2])))
                    throw new TimeoutException();
                return "";
            case "fork":
                throw new Skip("Java can't fork");
            default:
                throw new IllegalArgumentException("unknown request " + w[0]);
        }
    }

    private static String ofLead(String[] w, Lead lead) throws Exception {
        switch (w[0]) {
            case "leave":
                lead.close();
                return "";
            case "leads":
                return bit(lead.leads());
            case "lost":
                return bit(lead.lost().isDone());
            case "awaitlost":
                lead.lost().get(Long.parseLong(w[2]), TimeUnit.MILLISECONDS);
                return String.valueOf(nowNs());
            case "term":
                return Long.toUnsignedString(lead.term());
            case "left":
                return String.valueOf(lead.timeLeft().toMillis());
            case "bench":
                return bench(lead, Integer.parseInt(w[2]));
            default:
                throw new IllegalArgumentException("unknown request " + w[0]);
        }
    }

    private static String constants() {
        List<String> all = new ArrayList<>();
        for (Code code : Code.values())
            all.add("BATON_" + (code == Code.OK ? "" : "E_") + code + "=" + code.number);
        for (Event.Kind kind : Event.Kind.values())
            if (kind != Event.Kind.NONE)
                all.add("BATON_EVENT_" + kind + "=" + kind.number);
        for (Event.Reason reason : Event.Reason.values())
            all.add("BATON_REASON_" + reason + "=" + reason.number);
        return String.join(" ", all);
    }

    private static String answer(String[] w) throws Exception {
        switch (w[0]) {
            case "hello":
                return "java " + Store.version() + " " + Store.versionNumber();
            case "open":
                return open(w);
            case "election":
                return election(w);
            case "close":
                forget(w[1]).close();
                return "";
            case "candidates":
                return STORES.get(w[1]).candidates(w[2]).stream().map(c -> quote(c.id + "="
                        + bit(c.leads) + "," + bit(c.healthy) + "," + c.score + "," + c.metadata))
                        .collect(Collectors.joining(" "));
            case "heard":
                return String.join(" ", HEARD.get(w[1]));
            case "constants":
                return constants();
            case "child":
                Process child = new ProcessBuilder("cat").start();
                CHILDREN.add(child);
                return String.valueOf(child.pid());
            case "drop":
                drop(w[1]);
                return "";
            case "lose":
                LEADS.remove(w[1]);
                collect();
                return "";
            case "promises":
                return quote(STORES.get(w[1]).promises());
            case "condition":
                throw new Skip("no condition");
            case "observe":
                throw new Skip("no observe");
            case "order":
                throw new Skip("no orders");
            case "gc":
                collect();
                return "";
            case "cycle":
                cycle(Integer.parseInt(w[1]), w[2]);
                return "";
            case "exit":
                System.exit(Integer.parseInt(w[1]));
                return "";
            default:
                break;
        }
        if (ELECTIONS.containsKey(w[1]))
            return ofElection(w, ELECTIONS.get(w[1]));
        if (!LEADS.containsKey(w[1]))
            throw new IllegalArgumentException("no such name: " + w[1]);
        return ofLead(w, LEADS.get(w[1]));
    }

    private static long best(Runnable calls, int n) {
        long least = Long.MAX_VALUE;
        for (int round = 0; round < 7; round++) {
            long begin = System.nanoTime();
            calls.run();
            least = Math.min(least, System.nanoTime() - begin);
        }
        return least / n;
    }

    /** Nanoseconds of a question, and of an empty call of the same kind. */
    private static String bench(Lead lead, int n) {
        boolean[] sink = new boolean[1];
        long leads = best(() -> {
            for (int i = 0; i < n; i++)
                sink[0] ^= lead.leads();
        }, n);
        long empty = best(() -> {
            for (int i = 0; i < n; i++)
                sink[0] ^= Store.versionNumber() == 0;
        }, n);
        return leads + " " + empty;
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(
                new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = in.readLine()) != null;) {
            try {
                String[] words = Arrays.stream(line.split(" ")).map(Driver::unquote)
                        .toArray(String[]::new);
                say(("ok " + answer(words)).trim());
            } catch (Skip why) {
                say("skip", quote(why.getMessage()));
            } catch (Exception e) {
                say(failed(e));
            }
        }
        FINISH.values().forEach(finish -> finish.release());
        STORES.values().forEach(store -> store.close());
        System.exit(0);
    }
}
