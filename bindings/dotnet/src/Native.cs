// Native.cs: what libbaton and the C library export, and what baton.h says of numbers and layouts.
// A number with a name of baton.h behind it is compared with the header by tests/bindings/layouts.
// No function here takes a delegate: C never calls into this assembly.
using System;
using System.Runtime.InteropServices;
using System.Text;

namespace Baton
{
    // A failure of the library by its kind.
    public enum Code
    {
        Ok = 0, // BATON_OK
        Invalid = -1, // BATON_E_INVALID
        Timing = -2, // BATON_E_TIMING
        Url = -3, // BATON_E_URL
        NoDriver = -4, // BATON_E_NO_DRIVER
        Memory = -5, // BATON_E_MEMORY
        System = -6, // BATON_E_SYSTEM
        NotStarted = -7, // BATON_E_NOT_STARTED
        NotLeader = -8, // BATON_E_NOT_LEADER
        Timeout = -9, // BATON_E_TIMEOUT
        Exists = -10, // BATON_E_EXISTS
        Unavailable = -11, // BATON_E_UNAVAILABLE
        Denied = -12, // BATON_E_DENIED
        Corrupt = -13, // BATON_E_CORRUPT
        Unsupported = -14, // BATON_E_UNSUPPORTED
        NoCandidate = -15, // BATON_E_NO_CANDIDATE
        Stale = -16, // BATON_E_STALE
        Forked = -17, // BATON_E_FORKED
        Busy = -18, // BATON_E_BUSY
        DuplicateId = -19, // BATON_E_DUPLICATE_ID
    }

    public enum EventKind
    {
        Became = 1, // BATON_EVENT_BECAME
        Lost = 2, // BATON_EVENT_LOST
        Changed = 3, // BATON_EVENT_CHANGED
        Error = 4, // BATON_EVENT_ERROR
        Stopped = 5, // BATON_EVENT_STOPPED
        Waits = 6, // BATON_EVENT_WAITS
        Renewed = 7, // BATON_EVENT_RENEWED
    }

    // Why a leadership ended.
    public enum Reason
    {
        None = 0, // BATON_REASON_NONE
        Expired = 1, // BATON_REASON_EXPIRED
        Refused = 2, // BATON_REASON_REFUSED
        Superseded = 3, // BATON_REASON_SUPERSEDED
        Gone = 4, // BATON_REASON_GONE
        Stalled = 5, // BATON_REASON_STALLED
        Stopped = 6, // BATON_REASON_STOPPED
        Resigned = 7, // BATON_REASON_RESIGNED
        Ordered = 8, // BATON_REASON_ORDERED
        Transferred = 9, // BATON_REASON_TRANSFERRED
        Unhealthy = 10, // BATON_REASON_UNHEALTHY
        Paused = 11, // BATON_REASON_PAUSED
    }

    // What kept a candidate from leading.
    public enum Obstacle
    {
        None = 0, // BATON_OBSTACLE_NONE
        Held = 1, // BATON_OBSTACLE_HELD
        Paused = 2, // BATON_OBSTACLE_PAUSED
        Unhealthy = 3, // BATON_OBSTACLE_UNHEALTHY
        Draining = 4, // BATON_OBSTACLE_DRAINING
        Stopped = 5, // BATON_OBSTACLE_STOPPED
        Store = 6, // BATON_OBSTACLE_STORE
        Terms = 7, // BATON_OBSTACLE_TERMS
    }

    public enum State
    {
        Stopped = 0, // BATON_STATE_STOPPED
        Standby = 1, // BATON_STATE_STANDBY
        Campaigning = 2, // BATON_STATE_CAMPAIGNING
        Leading = 3, // BATON_STATE_LEADING
        Resigning = 4, // BATON_STATE_RESIGNING
    }

    // The condition of an election as seen from here.
    public enum Condition
    {
        Healthy = 0, // BATON_CONDITION_HEALTHY
        Degraded = 1, // BATON_CONDITION_DEGRADED
        Unhealthy = 2, // BATON_CONDITION_UNHEALTHY
    }

    public sealed class BatonException : Exception
    {
        internal BatonException(int code, string text) : base(text)
        {
            Code = (Code)code;
        }

        public Code Code { get; }
        // The code's name in one word: "timeout".
        public string CodeName => Native.Text(Native.baton_code_name((int)Code));
    }

    // The handle of a store. Dispose gives everything back; a finalizer never does, since that
    // blocks: it leaves the handle as it is, with its elections stopped.
    internal sealed class StoreHandle : SafeHandle
    {
        internal bool Closes;

        public StoreHandle() : base(IntPtr.Zero, true) { }
        public override bool IsInvalid => handle == IntPtr.Zero;

        protected override bool ReleaseHandle()
        {
            if (Closes)
                Native.baton_close(handle);
            return true;
        }
    }

    // An election belongs to its store, which is not closed while a call uses the election.
    internal sealed class ElectionHandle : SafeHandle
    {
        StoreHandle store;

        public ElectionHandle() : base(IntPtr.Zero, true) { }
        public override bool IsInvalid => handle == IntPtr.Zero;

        internal void KeepsOpen(StoreHandle owner)
        {
            bool done = false;
            owner.DangerousAddRef(ref done);
            store = owner;
        }

        protected override bool ReleaseHandle()
        {
            store?.DangerousRelease();
            return true;
        }
    }

    // Work that is bound to a leadership. A finalizer never leaves: the work may go on.
    internal sealed class LeadHandle : SafeHandle
    {
        internal bool Leaves;
        ElectionHandle election;

        public LeadHandle() : base(IntPtr.Zero, true) { }
        public override bool IsInvalid => handle == IntPtr.Zero;

        internal void KeepsOpen(ElectionHandle owner)
        {
            bool done = false;
            owner.DangerousAddRef(ref done);
            election = owner;
        }

        protected override bool ReleaseHandle()
        {
            if (!Leaves)
                return true;
            Native.baton_leave(handle);
            election?.DangerousRelease();
            return true;
        }
    }

    [StructLayout(LayoutKind.Sequential)]
    internal struct NativeOptions
    {
        internal UIntPtr Size;
        internal IntPtr Id, Address;
        internal ulong LeaseMs, RenewMs, GraceMs, RetryMs, RetryMaxMs;
        internal uint DriftPermille, Dispatchers;
        internal IntPtr Log, LogArg, Trace, TraceArg;
        internal byte Outlive;
    }

    [StructLayout(LayoutKind.Sequential)]
    internal struct NativeElectionOptions
    {
        internal UIntPtr Size;
        internal IntPtr Metadata;
        internal byte ReleaseOnStop, CheckHealth, StepDownUnhealthy, ObserveOnly, Manual;
        internal uint MinScorePermille;
        internal int Priority;
        internal ulong PreemptMs, WorkTimeoutMs;
        internal IntPtr Handler, HandlerArg;
        internal byte DrainByHand, TellRenewals;
    }

    [StructLayout(LayoutKind.Sequential)]
    internal struct PollFd
    {
        internal int Fd;
        internal short Events, Revents;
    }

    internal static class Native
    {
        const string Lib = "libbaton.so.0";

        internal const int ErrorSize = 256; // sizeof baton_error
        internal const int ErrorText = 4; // baton_error.text
        // Sizes are what this assembly knows of a struct that may grow.
        internal const int OptionsSize = 112;
        internal const int OptionsOutlive = 104; // baton_options.outlive
        internal const int ElectionOptionsSize = 72;
        internal const int ElectionOptionsDrain = 64; // baton_election_options.drain_by_hand
        internal const int EventSize = 1104;
        internal const int EventToken = 8; // baton_event.token
        internal const int EventElection = 16; // baton_event.election
        internal const int EventKindAt = 24; // baton_event.kind
        internal const int EventReason = 28; // baton_event.reason
        internal const int EventCode = 32; // baton_event.code
        internal const int EventTerm = 40; // baton_event.term
        internal const int EventOldTerm = 48; // baton_event.old_term
        internal const int EventLeader = 80; // baton_event.leader
        internal const int EventOldLeader = 334; // baton_event.old_leader
        internal const int EventText = 588; // baton_event.text
        internal const int EventDetail = 844; // baton_event.detail
        internal const int StatusSize = 1600;
        internal const int StatusState = 8; // baton_status.state
        internal const int StatusLeads = 12; // baton_status.is_leader
        internal const int StatusPaused = 13; // baton_status.paused
        internal const int StatusTerm = 16; // baton_status.term
        internal const int StatusLeader = 24; // baton_status.leader
        internal const int StatusRenewal = 1568; // baton_status.last_renewal_ms
        internal const int StatusLeft = 1592; // baton_status.time_left_ms
        internal const int CandidateSize = 1560;
        internal const int CandidateId = 8; // baton_candidate.id
        internal const int CandidateAddress = 262; // baton_candidate.address
        internal const int CandidateMetadata = 516; // baton_candidate.metadata
        internal const int CandidateLeads = 1541; // baton_candidate.is_leader
        internal const int CandidateHealthy = 1542; // baton_candidate.is_healthy
        internal const int CandidateScore = 1544; // baton_candidate.score_permille
        internal const int CandidateUpdated = 1552; // baton_candidate.updated_ms
        internal const int TimingsSize = 16;
        internal const int TimingsLease = 8; // baton_timings.lease_ns

        [DllImport(Lib)] internal static extern IntPtr baton_version();
        [DllImport(Lib)] internal static extern uint baton_version_number();
        [DllImport(Lib)] internal static extern IntPtr baton_strerror(int code);
        [DllImport(Lib)] internal static extern IntPtr baton_code_name(int code);
        [DllImport(Lib)] internal static extern IntPtr baton_state_name(int state);
        [DllImport(Lib)] internal static extern void baton_options_init_sized(
            ref NativeOptions options, UIntPtr size);
        [DllImport(Lib)] internal static extern int baton_open(byte[] url,
            ref NativeOptions options, out StoreHandle store, byte[] error);
        [DllImport(Lib)] internal static extern void baton_close(IntPtr store);
        [DllImport(Lib)] internal static extern IntPtr baton_id(StoreHandle store);
        [DllImport(Lib)] internal static extern IntPtr baton_promises(StoreHandle store);
        [DllImport(Lib)] internal static extern int baton_get_timings_sized(StoreHandle store,
            byte[] timings, UIntPtr size);
        [DllImport(Lib)] internal static extern int baton_fd(StoreHandle store);
        [DllImport(Lib)] internal static extern int baton_wait_sized(StoreHandle store,
            long timeoutMs, byte[] happened, UIntPtr size);
        [DllImport(Lib)] internal static extern int baton_event_done(StoreHandle store,
            ulong token);
        [DllImport(Lib)] internal static extern int baton_get_candidates_sized(StoreHandle store,
            byte[] name, byte[] candidates, UIntPtr max, UIntPtr size, byte[] error);
        [DllImport(Lib)] internal static extern void baton_election_options_init_sized(
            ref NativeElectionOptions options, UIntPtr size);
        [DllImport(Lib)] internal static extern int baton_election_new(StoreHandle store,
            byte[] name, ref NativeElectionOptions options, out ElectionHandle election,
            byte[] error);
        [DllImport(Lib)] internal static extern int baton_election_start(ElectionHandle election);
        [DllImport(Lib)] internal static extern int baton_election_stop(ElectionHandle election,
            long timeoutMs);
        [DllImport(Lib)] internal static extern int baton_election_condition(
            ElectionHandle election, byte[] error);
        [DllImport(Lib)] internal static extern byte baton_is_leader(ElectionHandle election);
        [DllImport(Lib)] internal static extern ulong baton_term(ElectionHandle election);
        [DllImport(Lib)] internal static extern int baton_get_status_sized(
            ElectionHandle election, byte[] status, UIntPtr size);
        [DllImport(Lib)] internal static extern int baton_try_acquire(ElectionHandle election,
            long timeoutMs, out int obstacle);
        [DllImport(Lib)] internal static extern void baton_alive(ElectionHandle election);
        [DllImport(Lib)] internal static extern int baton_drained(ElectionHandle election,
            ulong term);
        [DllImport(Lib)] internal static extern int baton_resign(ElectionHandle election,
            long quietMs);
        [DllImport(Lib)] internal static extern int baton_transfer(ElectionHandle election,
            byte[] candidate, byte[] error);
        [DllImport(Lib)] internal static extern int baton_report_health(ElectionHandle election,
            uint score, byte[] metadata);
        [DllImport(Lib)] internal static extern int baton_enter(ElectionHandle election,
            out LeadHandle lead, byte[] error);
        [DllImport(Lib)] internal static extern void baton_leave(IntPtr lead);
        [DllImport(Lib)] internal static extern byte baton_context_is_leader(LeadHandle lead);
        [DllImport(Lib)] internal static extern ulong baton_context_term(LeadHandle lead);
        [DllImport(Lib)] internal static extern long baton_context_time_left_ms(LeadHandle lead);
        [DllImport(Lib)] internal static extern int baton_context_fd(LeadHandle lead);

        [DllImport("libc", SetLastError = true)]
        internal static extern int poll([In, Out] PollFd[] fds, UIntPtr n, int timeoutMs);
        [DllImport("libc", SetLastError = true)]
        internal static extern int eventfd(uint value, int flags);
        [DllImport("libc", SetLastError = true)]
        internal static extern IntPtr write(int fd, ref ulong value, UIntPtr size);
        [DllImport("libc", SetLastError = true)]
        internal static extern IntPtr read(int fd, ref ulong value, UIntPtr size);
        [DllImport("libc")] internal static extern int close(int fd);

        internal static string Text(IntPtr text)
        {
            int n = 0;
            while (Marshal.ReadByte(text, n) != 0)
                n++;
            var bytes = new byte[n];
            Marshal.Copy(text, bytes, 0, n);
            return Encoding.UTF8.GetString(bytes);
        }

        internal static string Text(byte[] bytes, int at)
        {
            int end = Array.IndexOf(bytes, (byte)0, at);
            return Encoding.UTF8.GetString(bytes, at, end - at);
        }

        // Ends with a zero byte, as C wants it, and has no other.
        internal static byte[] Bytes(string text)
        {
            if (text == null)
                return null;
            if (text.IndexOf('\0') >= 0)
                throw new BatonException((int)Code.Invalid,
                    "a text holds a zero byte; expected none");
            return Encoding.UTF8.GetBytes(text + "\0");
        }

        internal static void Check(int code, byte[] error = null)
        {
            if (code >= 0)
                return;
            string text = error != null ? Text(error, ErrorText) : "";
            throw new BatonException(code, text != "" ? text : Text(baton_strerror(code)));
        }

        internal static ulong Millis(TimeSpan time) => (ulong)Math.Ceiling(time.TotalMilliseconds);
    }
}
