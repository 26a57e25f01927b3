// Lib.java: what libbaton and the C library export, by JNA's direct mapping, and what baton.h says of
// layouts. A number with a name of baton.h behind it is compared with the header by
// tests/bindings/layouts. Nothing here takes a callback: C never calls Java.
package baton;

import com.sun.jna.Native;
import com.sun.jna.Pointer;
import java.nio.charset.StandardCharsets;

final class Lib {
    static final int ERROR_SIZE = 256; // sizeof baton_error
    static final int ERROR_TEXT = 4; // baton_error.text
    // Sizes are what this class knows of a struct that may grow.
    static final int OPTIONS_SIZE = 112;
    static final int OPTIONS_ID = 8; // baton_options.id
    static final int OPTIONS_ADDRESS = 16; // baton_options.address
    static final int OPTIONS_LEASE = 24; // baton_options.lease_ms
    static final int OPTIONS_RENEW = 32; // baton_options.renew_ms
    static final int OPTIONS_GRACE = 40; // baton_options.grace_ms
    static final int OPTIONS_RETRY = 48; // baton_options.retry_ms
    static final int OPTIONS_RETRY_MAX = 56; // baton_options.retry_max_ms
    static final int OPTIONS_DRIFT = 64; // baton_options.drift_permille
    static final int OPTIONS_OUTLIVE = 104; // baton_options.outlive
    static final int ELECTION_SIZE = 72;
    static final int ELECTION_METADATA = 8; // baton_election_options.metadata
    static final int ELECTION_RELEASE = 16; // baton_election_options.release_on_stop
    static final int ELECTION_HEALTH = 17; // baton_election_options.check_health
    static final int ELECTION_UNHEALTHY = 18; // baton_election_options.step_down_unhealthy
    static final int ELECTION_OBSERVE = 19; // baton_election_options.observe_only
    static final int ELECTION_MANUAL = 20; // baton_election_options.manual
    static final int ELECTION_SCORE = 24; // baton_election_options.min_score_permille
    static final int ELECTION_PRIORITY = 28; // baton_election_options.priority
    static final int ELECTION_PREEMPT = 32; // baton_election_options.preempt_ms
    static final int ELECTION_WORK = 40; // baton_election_options.work_timeout_ms
    static final int ELECTION_DRAIN = 64; // baton_election_options.drain_by_hand
    static final int EVENT_SIZE = 1104;
    static final int EVENT_TOKEN = 8; // baton_event.token
    static final int EVENT_ELECTION = 16; // baton_event.election
    static final int EVENT_KIND = 24; // baton_event.kind
    static final int EVENT_REASON = 28; // baton_event.reason
    static final int EVENT_CODE = 32; // baton_event.code
    static final int EVENT_TERM = 40; // baton_event.term
    static final int EVENT_OLD_TERM = 48; // baton_event.old_term
    static final int EVENT_LEADER = 80; // baton_event.leader
    static final int EVENT_OLD_LEADER = 334; // baton_event.old_leader
    static final int EVENT_TEXT = 588; // baton_event.text
    static final int EVENT_DETAIL = 844; // baton_event.detail
    static final int STATUS_SIZE = 1600;
    static final int STATUS_STATE = 8; // baton_status.state
    static final int STATUS_LEADS = 12; // baton_status.is_leader
    static final int STATUS_PAUSED = 13; // baton_status.paused
    static final int STATUS_TERM = 16; // baton_status.term
    static final int STATUS_LEADER = 24; // baton_status.leader
    static final int STATUS_LEFT = 1592; // baton_status.time_left_ms
    static final int CANDIDATE_SIZE = 1560;
    static final int CANDIDATE_ID = 8; // baton_candidate.id
    static final int CANDIDATE_ADDRESS = 262; // baton_candidate.address
    static final int CANDIDATE_METADATA = 516; // baton_candidate.metadata
    static final int CANDIDATE_LEADS = 1541; // baton_candidate.is_leader
    static final int CANDIDATE_HEALTHY = 1542; // baton_candidate.is_healthy
    static final int CANDIDATE_SCORE = 1544; // baton_candidate.score_permille
    static final int TIMINGS_SIZE = 16;
    static final int TIMINGS_LEASE = 8; // baton_timings.lease_ns

    static {
        Native.register(Lib.class, "libbaton.so.0");
    }

    private Lib() {}

    // Handles are pointers, kept as numbers: there is nothing in them for Java.
    static native Pointer baton_version();
    static native int baton_version_number();
    static native Pointer baton_strerror(int code);
    static native Pointer baton_code_name(int code);
    static native Pointer baton_state_name(int state);
    static native Pointer baton_obstacle_name(int obstacle);
    static native void baton_options_init_sized(Pointer options, long size);
    static native int baton_open(byte[] url, Pointer options, long[] store, byte[] error);
    static native void baton_close(long store);
    static native Pointer baton_id(long store);
    static native Pointer baton_promises(long store);
    static native int baton_get_timings_sized(long store, Pointer timings, long size);
    static native int baton_fd(long store);
    static native int baton_wait_sized(long store, long ms, Pointer event, long size);
    static native int baton_event_done(long store, long token);
    static native int baton_get_candidates_sized(long store, byte[] name, Pointer candidates,
            long max, long size, byte[] error);
    static native void baton_election_options_init_sized(Pointer options, long size);
    static native int baton_election_new(long store, byte[] name, Pointer options, long[] election,
            byte[] error);
    static native int baton_election_start(long election);
    static native int baton_election_stop(long election, long ms);
    static native byte baton_is_leader(long election);
    static native long baton_term(long election);
    static native int baton_get_status_sized(long election, Pointer status, long size);
    static native int baton_try_acquire(long election, long ms, int[] obstacle);
    static native void baton_alive(long election);
    static native int baton_drained(long election, long term);
    static native int baton_resign(long election, long ms);
    static native int baton_transfer(long election, byte[] candidate, byte[] error);
    static native int baton_report_health(long election, int score, byte[] metadata);
    static native int baton_enter(long election, long[] lead, byte[] error);
    static native void baton_leave(long lead);
    static native byte baton_context_is_leader(long lead);
    static native long baton_context_term(long lead);
    static native long baton_context_time_left_ms(long lead);
    static native int baton_context_fd(long lead);

    static String text(Pointer p) {
        return p.getString(0, "UTF-8");
    }

    // Ends with a zero byte, as C wants it, and has no other.
    static byte[] bytes(String text) {
        if (text == null)
            return null;
        if (text.indexOf('\0') >= 0)
            throw new BatonException(Code.INVALID.number, "a text holds a zero byte; expected none");
        return (text + "\0").getBytes(StandardCharsets.UTF_8);
    }

    static int check(int code, byte[] error) {
        if (code >= 0)
            return code;
        String text = "";
        if (error != null) {
            int end = ERROR_TEXT;
            while (error[end] != 0)
                end++;
            text = new String(error, ERROR_TEXT, end - ERROR_TEXT, StandardCharsets.UTF_8);
        }
        throw new BatonException(code, text.isEmpty() ? text(baton_strerror(code)) : text);
    }

    /** What the C library has for a thread that waits for descriptors. */
    static final class Libc {
        static final int CLOSE_ON_EXEC = 0x80000;
        static final int DOES_NOT_BLOCK = 0x800;
        static final int POLLFD_SIZE = 8;
        static final short READABLE = 1;

        static {
            Native.register(Libc.class, "c");
        }

        private Libc() {}

        static native int poll(Pointer fds, long n, int ms);
        static native int eventfd(int value, int flags);
        static native long write(int fd, long[] value, long size);
        static native long read(int fd, long[] value, long size);
        static native int close(int fd);
    }
}
