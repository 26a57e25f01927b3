// Election.cs: this process' candidate in one election, and work that is bound to a leadership.
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Threading;
using System.Threading.Tasks;

namespace Baton
{
    public sealed class ElectionOptions
    {
        public string Metadata { get; set; }
        public bool ReleaseOnStop { get; set; } = true;
        public bool CheckHealth { get; set; } = true;
        public bool StepDownUnhealthy { get; set; } = true;
        public bool ObserveOnly { get; set; }
        // Campaigns only in TryAcquire.
        public bool Manual { get; set; }
        public int MinScorePermille { get; set; } = 800;
        public int Priority { get; set; }
        public TimeSpan Preempt { get; set; }
        // Alive must be called this often.
        public TimeSpan WorkTimeout { get; set; }
    }

    public sealed class ElectionEventArgs : EventArgs
    {
        internal ElectionEventArgs(byte[] e)
        {
            Kind = (EventKind)BitConverter.ToInt32(e, Native.EventKindAt);
            Reason = (Reason)BitConverter.ToInt32(e, Native.EventReason);
            Code = (Code)BitConverter.ToInt32(e, Native.EventCode);
            Term = BitConverter.ToUInt64(e, Native.EventTerm);
            OldTerm = BitConverter.ToUInt64(e, Native.EventOldTerm);
            Leader = Native.Text(e, Native.EventLeader);
            OldLeader = Native.Text(e, Native.EventOldLeader);
            Text = Native.Text(e, Native.EventText);
            Detail = Native.Text(e, Native.EventDetail);
        }

        public EventKind Kind { get; }
        public Reason Reason { get; }
        public Code Code { get; }
        public ulong Term { get; }
        public ulong OldTerm { get; }
        public string Leader { get; }
        public string OldLeader { get; }
        public string Text { get; }
        public string Detail { get; }
    }

    // What a candidate knows, from memory.
    public sealed class Status
    {
        public State State { get; internal set; }
        public string StateName => Native.Text(Native.baton_state_name((int)State));
        public bool Leads { get; internal set; }
        public bool Paused { get; internal set; }
        public ulong Term { get; internal set; }
        public string Leader { get; internal set; }
        public TimeSpan TimeLeft { get; internal set; }
        // null: none yet.
        public DateTimeOffset? LastRenewal { get; internal set; }
    }

    // What the pump knows of an election.
    internal sealed class ElectionState
    {
        internal ElectionHandle Handle;
        internal readonly WeakReference<Election> Outer;
        internal ElectionEventArgs Lost;
        TaskCompletionSource<bool> change = NewChange();
        internal volatile bool Stopped;
        readonly Queue<ElectionEventArgs> untold = new Queue<ElectionEventArgs>();
        volatile bool contends; // until the handlers have heard that the stop is complete
        [ThreadStatic] static bool tells;

        // Whether this thread runs a handler, which must not wait for itself.
        internal static bool Tells => tells;

        internal ElectionState(Election outer)
        {
            Outer = new WeakReference<Election>(outer);
        }

        static TaskCompletionSource<bool> NewChange() =>
            new TaskCompletionSource<bool>(TaskCreationOptions.RunContinuationsAsynchronously);

        internal Task Change => Volatile.Read(ref change).Task;

        internal void Changed() =>
            Interlocked.Exchange(ref change, NewChange()).TrySetResult(true);

        internal void Note(ElectionEventArgs e)
        {
            if (e.Kind == EventKind.Lost)
                Lost = e;
            if (e.Kind == EventKind.Became || e.Kind == EventKind.Lost ||
                e.Kind == EventKind.Stopped)
                Changed();
        }

        internal void Begin()
        {
            Stopped = false;
            contends = true;
        }

        internal void End()
        {
            contends = false;
            Changed();
        }

        // Whether the handlers have heard of all that happened before the stop (S8).
        internal bool HasHeard => !contends;

        // The same, at the latest after that time.
        internal bool AwaitHeard(TimeSpan limit)
        {
            var watch = Stopwatch.StartNew();
            for (;;)
            {
                Task change = Change;
                if (HasHeard || tells)
                    return true;
                double left = (limit - watch.Elapsed).TotalMilliseconds;
                if (left <= 0)
                    return false;
                change.Wait((int)Math.Min(left + 1, 60000));
            }
        }

        // Handlers of one election are called one after the other, on a thread of the pool. (The
        // library goes by the thread of the pump, which is always ready for the next event.)
        internal void Tell(ElectionEventArgs e, Action told)
        {
            lock (untold)
            {
                untold.Enqueue(e);
                if (untold.Count > 1)
                    return; // whoever tells the first goes on
            }
            ThreadPool.QueueUserWorkItem(nothing => TellAll(told));
        }

        void TellAll(Action told)
        {
            for (bool more = true; more;)
            {
                ElectionEventArgs e;
                lock (untold)
                    e = untold.Peek();
                Raise(e);
                lock (untold)
                {
                    untold.Dequeue();
                    more = untold.Count != 0;
                }
                if (e.Kind == EventKind.Stopped && Stopped && !more) // and not started again
                    End();
                told();
            }
        }

        void Raise(ElectionEventArgs e)
        {
            Election outer;
            tells = true;
            try
            {
                if (Outer.TryGetTarget(out outer))
                    outer.Raise(e);
            }
            catch (Exception error)
            {
                Console.Error.WriteLine("baton: a handler failed: " + error.Message);
            }
            finally
            {
                tells = false;
                // Of work without a Lead nobody knows when it ends: with its handlers of Lost.
                // Leads that are open are waited for.
                if (e.Kind == EventKind.Lost)
                    Native.baton_drained(Handle, e.Term);
            }
        }
    }

    public sealed class Election
    {
        internal readonly ElectionState State;
        internal readonly Store Store; // stays while this is in use

        internal Election(Store store, string name, ElectionOptions o)
        {
            var n = new NativeElectionOptions();
            var error = new byte[Native.ErrorSize];
            Native.baton_election_options_init_sized(ref n, (UIntPtr)Native.ElectionOptionsSize);
            n.ReleaseOnStop = Bit(o.ReleaseOnStop);
            n.CheckHealth = Bit(o.CheckHealth);
            n.StepDownUnhealthy = Bit(o.StepDownUnhealthy);
            n.ObserveOnly = Bit(o.ObserveOnly);
            n.Manual = Bit(o.Manual);
            n.MinScorePermille = (uint)o.MinScorePermille;
            n.Priority = o.Priority;
            n.PreemptMs = Native.Millis(o.Preempt);
            n.WorkTimeoutMs = Native.Millis(o.WorkTimeout);
            n.DrainByHand = 1;
            var metadata = Store.Pin(o.Metadata, ref n.Metadata);
            State = new ElectionState(this);
            Store = store;
            Name = name;
            try
            {
                Native.Check(Native.baton_election_new(store.Pump.Handle, Native.Bytes(name), ref n,
                    out State.Handle, error), error);
            }
            finally
            {
                Store.Unpin(metadata);
            }
            State.Handle.KeepsOpen(store.Pump.Handle);
            store.Pump.Add(State);
        }

        static byte Bit(bool value) => (byte)(value ? 1 : 0);

        public string Name { get; }

        // Every event, on a thread of the pool, one after the other. The work of those who ask
        // Leads without a Lead counts as ended when the handlers of Lost have returned.
        public event EventHandler<ElectionEventArgs> Happened;

        internal void Raise(ElectionEventArgs e) => Happened?.Invoke(this, e);

        // Contends from now on. Idempotent; never blocks.
        public void Start()
        {
            State.Begin();
            int code = Native.baton_election_start(State.Handle);
            if (code < 0)
                State.End();
            Native.Check(code);
        }

        // Steps down and stops contending; waits so long for the work to end, the claim to go, and
        // the handlers to hear of it (a handler doesn't wait for that), and says whether all that
        // has happened. Zero from within the work of a lead.
        public bool Stop(TimeSpan limit)
        {
            var watch = Stopwatch.StartNew();
            if (!StopNow((long)limit.TotalMilliseconds))
                return false;
            return State.AwaitHeard(limit < TimeSpan.Zero ? Store.Lease : limit - watch.Elapsed);
        }

        bool StopNow(long ms)
        {
            State.Stopped = true;
            int code = Native.baton_election_stop(State.Handle, ms);
            State.Changed();
            if (code == (int)Code.Timeout)
                return false;
            Native.Check(code);
            return true;
        }

        // As Stop, without a thread that waits. It waits for slow handlers no longer than a lease.
        public async Task StopAsync(CancellationToken cancel = default(CancellationToken))
        {
            bool tells = ElectionState.Tells;
            TimeSpan limit = Store.Lease;
            Stopwatch since = null; // of all but the handlers
            for (;;)
            {
                Task change = State.Change;
                if (StopNow(0))
                {
                    since = since ?? Stopwatch.StartNew();
                    if (tells || State.HasHeard || since.Elapsed >= limit)
                        return;
                }
                await Task.WhenAny(change, Task.Delay(50, cancel)).Unwrap().ConfigureAwait(false);
            }
        }

        // Asks the clock whether this candidate leads now.
        public bool Leads => !State.Handle.IsClosed && Native.baton_is_leader(State.Handle) != 0;
        // Of the present leadership, 0 if there is none: the fencing token.
        public ulong Term => Native.baton_term(State.Handle);

        public void Resign(TimeSpan quiet) =>
            Native.Check(Native.baton_resign(State.Handle, (long)Native.Millis(quiet)));

        public void Transfer(string candidate)
        {
            var error = new byte[Native.ErrorSize];
            Native.Check(Native.baton_transfer(State.Handle, Native.Bytes(candidate), error), error);
        }

        // From 0 to 1000; null leaves the metadata.
        public void ReportHealth(int score, string metadata = null) => Native.Check(
            Native.baton_report_health(State.Handle, (uint)score, Native.Bytes(metadata)));

        // A sign of life of the work.
        public void Alive() => Native.baton_alive(State.Handle);

        public Condition Condition =>
            (Condition)Native.baton_election_condition(State.Handle, null);

        public bool TryAcquire(TimeSpan limit, out Obstacle obstacle)
        {
            int why;
            int code = Native.baton_try_acquire(State.Handle, (long)limit.TotalMilliseconds,
                out why);
            obstacle = (Obstacle)why;
            Native.Check(code);
            return code == 1;
        }

        public Status Status
        {
            get
            {
                var s = new byte[Native.StatusSize];
                Native.Check(Native.baton_get_status_sized(State.Handle, s, (UIntPtr)s.Length));
                long renewal = BitConverter.ToInt64(s, Native.StatusRenewal);
                return new Status
                {
                    State = (State)BitConverter.ToInt32(s, Native.StatusState),
                    Leads = s[Native.StatusLeads] != 0,
                    Paused = s[Native.StatusPaused] != 0,
                    Term = BitConverter.ToUInt64(s, Native.StatusTerm),
                    Leader = Native.Text(s, Native.StatusLeader),
                    TimeLeft = TimeSpan.FromMilliseconds(
                        BitConverter.ToInt64(s, Native.StatusLeft)),
                    LastRenewal = renewal == 0 ? (DateTimeOffset?)null
                        : DateTimeOffset.FromUnixTimeMilliseconds(renewal),
                };
            }
        }

        // Binds work to the present leadership. BatonException with NotLeader if there is none.
        public Lead Enter()
        {
            var error = new byte[Native.ErrorSize];
            LeadHandle handle;
            Native.Check(Native.baton_enter(State.Handle, out handle, error), error);
            return new Lead(this, handle);
        }

        // null if this candidate doesn't lead.
        public Lead TryEnter()
        {
            LeadHandle handle;
            int code = Native.baton_enter(State.Handle, out handle, null);
            if (code == (int)Code.NotLeader)
                return null;
            Native.Check(code);
            return new Lead(this, handle);
        }

        // Waits until this candidate leads, and binds work to that leadership. Throws
        // ObjectDisposedException when the election is stopped.
        public Task<Lead> AcquireAsync(CancellationToken cancel = default(CancellationToken)) =>
            AcquireAsync(0, cancel);

        // Of a leadership later than that: one that was resigned may linger for a moment.
        async Task<Lead> AcquireAsync(ulong after, CancellationToken cancel)
        {
            for (;;)
            {
                var change = State.Change;
                cancel.ThrowIfCancellationRequested();
                if (State.Stopped || State.Handle.IsClosed)
                    throw new ObjectDisposedException(Name, "the election is stopped");
                var lead = TryEnter();
                if (lead != null && lead.Term > after)
                    return lead;
                lead?.Dispose();
                var cancelled = new TaskCompletionSource<bool>();
                using (cancel.Register(() => cancelled.TrySetResult(true)))
                    await Task.WhenAny(change, cancelled.Task).ConfigureAwait(false);
            }
        }

        // Runs body whenever this candidate is elected. Its token is cancelled when the leadership
        // ends, or by cancel; the leadership passes on only after body has ended. If body ends
        // while it leads, this resigns and contends again. Ends when the election is stopped, when
        // cancel is (with OperationCanceledException), and when body throws: with what it threw.
        public async Task RunAsync(Func<Lead, CancellationToken, Task> body,
            CancellationToken cancel = default(CancellationToken))
        {
            Start();
            ulong after = 0;
            try
            {
                for (;;)
                {
                    Lead lead;
                    try
                    {
                        lead = await AcquireAsync(after, cancel).ConfigureAwait(false);
                    }
                    catch (ObjectDisposedException)
                    {
                        return;
                    }
                    after = lead.Term;
                    await OneLeadership(lead, body, cancel).ConfigureAwait(false);
                }
            }
            finally
            {
                try
                {
                    await StopAsync().ConfigureAwait(false);
                }
                catch (ObjectDisposedException)
                {
                    // The store was closed meanwhile, which has stopped it.
                }
            }
        }

        async Task OneLeadership(Lead lead, Func<Lead, CancellationToken, Task> body,
            CancellationToken cancel)
        {
            bool leads = true;
            using (var either = CancellationTokenSource.CreateLinkedTokenSource(lead.Lost, cancel))
            {
                try
                {
                    await body(lead, either.Token).ConfigureAwait(false);
                }
                catch (OperationCanceledException) when (either.IsCancellationRequested)
                {
                }
                finally
                {
                    leads = lead.Leads;
                    lead.Dispose();
                }
            }
            if (leads && !cancel.IsCancellationRequested)
                Native.baton_resign(State.Handle, 0);
        }
    }

    // What the pump knows of a lead.
    internal sealed class LeadState
    {
        internal LeadHandle Handle;
        internal int Fd;
        internal volatile bool Cancelled;
        internal readonly CancellationTokenSource Lost = new CancellationTokenSource();

        internal bool Leads
        {
            get
            {
                try
                {
                    return !Handle.IsClosed && Native.baton_context_is_leader(Handle) != 0;
                }
                catch (ObjectDisposedException)
                {
                    return false;
                }
            }
        }

        // The descriptor is readable. Handlers of the token run on a thread of their own: neither
        // the pump nor a busy pool delays them.
        internal void Look()
        {
            if (Cancelled || Leads)
                return;
            Cancelled = true;
            new Thread(() => Lost.Cancel(false)) { IsBackground = true }.Start();
        }
    }

    // One leadership with work bound to it, which is not passed on before this is disposed of:
    // Dispose says that the work has ended.
    public sealed class Lead : IDisposable
    {
        readonly LeadState state;
        readonly Election election;
        int disposed;

        internal Lead(Election election, LeadHandle handle)
        {
            this.election = election;
            handle.KeepsOpen(election.State.Handle);
            state = new LeadState { Handle = handle, Fd = Native.baton_context_fd(handle) };
            Term = Native.baton_context_term(handle);
            election.Store.Pump.Add(state);
        }

        // The fencing token: hand it on to what the work writes to.
        public ulong Term { get; }
        // Asks the clock: ask before each piece of work.
        public bool Leads => state.Leads;
        // Cancelled when the leadership ends. The clock knows earlier.
        public CancellationToken Lost => state.Lost.Token;

        // Why it ended; None while it hasn't.
        public Reason Reason
        {
            get
            {
                var lost = election.State.Lost;
                return lost != null && lost.Term == Term ? lost.Reason
                    : Leads ? Reason.None : Reason.Expired;
            }
        }

        // How long Leads stays true if nothing more is heard from the store.
        public TimeSpan TimeLeft => state.Handle.IsClosed ? TimeSpan.Zero
            : TimeSpan.FromMilliseconds(Native.baton_context_time_left_ms(state.Handle));

        public void Dispose()
        {
            if (Interlocked.Exchange(ref disposed, 1) != 0)
                return;
            GC.SuppressFinalize(this);
            state.Handle.Leaves = true;
            state.Handle.Dispose();
            election.Store.Pump.Remove(state);
        }

        // For `await using`, which C# 8 and later have.
        public Task DisposeAsync()
        {
            Dispose();
            return Task.FromResult(true);
        }

        ~Lead()
        {
            if (state == null || disposed != 0 || Environment.HasShutdownStarted)
                return;
            Console.Error.WriteLine("baton: a lead of \"{0}\" was not disposed of: it stays open",
                election.Name);
        }
    }
}
