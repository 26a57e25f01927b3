// Store.cs: a handle on one store, and the thread that waits for what happens there: events of the
// library, and the ends of leaderships. Code of the application never runs on that thread, so no
// slow handler delays the others.
using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;
using System.Threading;

namespace Baton
{
    // What is null or zero has the library's default.
    public sealed class StoreOptions
    {
        public string Id { get; set; }
        public string Address { get; set; }
        public TimeSpan Lease { get; set; }
        public TimeSpan Renew { get; set; }
        public TimeSpan Grace { get; set; }
        public TimeSpan Retry { get; set; }
        public TimeSpan RetryMax { get; set; }
        public int DriftPermille { get; set; }
        public bool Outlive { get; set; }
    }

    // A candidate as the store knows it.
    public sealed class Candidate
    {
        public string Id { get; internal set; }
        public string Address { get; internal set; }
        public string Metadata { get; internal set; }
        public bool Leads { get; internal set; }
        public bool IsHealthy { get; internal set; }
        public int Score { get; internal set; }
        public DateTimeOffset Updated { get; internal set; }
    }

    // Makes elections. Dispose it: that stops them, waits for the work of leads that are open (no
    // longer than a lease), lets the handlers hear of the end, and gives everything back. Not from
    // within such work; called from a handler, it goes on in the background.
    public sealed class Store : IDisposable
    {
        internal readonly Pump Pump;
        // The pump knows elections only weakly; those in use must stay.
        readonly List<Election> elections = new List<Election>();
        readonly object closing = new object();
        bool disposed;

        public Store(string url, StoreOptions options = null)
        {
            var o = options ?? new StoreOptions();
            var n = new NativeOptions();
            var error = new byte[Native.ErrorSize];
            Native.baton_options_init_sized(ref n, (UIntPtr)Native.OptionsSize);
            Set(ref n.LeaseMs, o.Lease);
            Set(ref n.RenewMs, o.Renew);
            Set(ref n.GraceMs, o.Grace);
            Set(ref n.RetryMs, o.Retry);
            Set(ref n.RetryMaxMs, o.RetryMax);
            if (o.DriftPermille != 0)
                n.DriftPermille = (uint)o.DriftPermille;
            n.Outlive = (byte)(o.Outlive ? 1 : 0);
            var id = Pin(o.Id, ref n.Id);
            var address = Pin(o.Address, ref n.Address);
            StoreHandle handle;
            try
            {
                Native.Check(Native.baton_open(Native.Bytes(url), ref n, out handle, error), error);
            }
            finally
            {
                Unpin(id);
                Unpin(address);
            }
            Pump = new Pump(handle);
        }

        static void Set(ref ulong to, TimeSpan from)
        {
            if (from != TimeSpan.Zero)
                to = Native.Millis(from);
        }

        internal static GCHandle Pin(string text, ref IntPtr to)
        {
            var bytes = GCHandle.Alloc(Native.Bytes(text), GCHandleType.Pinned);
            if (text != null)
                to = bytes.AddrOfPinnedObject();
            return bytes;
        }

        internal static void Unpin(GCHandle bytes) => bytes.Free();

        public static string Version => Native.Text(Native.baton_version());
        public static uint VersionNumber => Native.baton_version_number();

        // This process' own id in the elections of the store.
        public string Id => Native.Text(Native.baton_id(Pump.Handle));
        // What this store promises, and under which faults it doesn't: text for people.
        public string Promises => Native.Text(Native.baton_promises(Pump.Handle));

        // How long the claim of a silent leader stands.
        public TimeSpan Lease
        {
            get
            {
                var timings = new byte[Native.TimingsSize];
                Native.Check(Native.baton_get_timings_sized(Pump.Handle, timings,
                    (UIntPtr)timings.Length));
                return TimeSpan.FromMilliseconds(
                    BitConverter.ToUInt64(timings, Native.TimingsLease) / 1000000.0);
            }
        }

        // A candidate in the named election. It does nothing until it is started.
        public Election CreateElection(string name, ElectionOptions options = null)
        {
            var election = new Election(this, name, options ?? new ElectionOptions());
            lock (elections)
                elections.Add(election);
            return election;
        }

        // Asks the store who contends. Blocks.
        public IList<Candidate> Candidates(string name)
        {
            for (int room = 16; ; room *= 4)
            {
                var list = new List<Candidate>();
                var all = new byte[room * Native.CandidateSize];
                var error = new byte[Native.ErrorSize];
                int n = Native.baton_get_candidates_sized(Pump.Handle, Native.Bytes(name), all,
                    (UIntPtr)room, (UIntPtr)Native.CandidateSize, error);
                Native.Check(n, error);
                if (n > room)
                    continue;
                for (int i = 0; i < n; i++)
                    list.Add(At(all, i * Native.CandidateSize));
                return list;
            }
        }

        static Candidate At(byte[] all, int at)
        {
            return new Candidate
            {
                Id = Native.Text(all, at + Native.CandidateId),
                Address = Native.Text(all, at + Native.CandidateAddress),
                Metadata = Native.Text(all, at + Native.CandidateMetadata),
                Leads = all[at + Native.CandidateLeads] != 0,
                IsHealthy = all[at + Native.CandidateHealthy] != 0,
                Score = BitConverter.ToInt32(all, at + Native.CandidateScore),
                Updated = DateTimeOffset.FromUnixTimeMilliseconds(
                    BitConverter.ToInt64(all, at + Native.CandidateUpdated)),
            };
        }

        public void Dispose()
        {
            if (ElectionState.Tells)
                new Thread(DisposeLater) { Name = "baton close" }.Start();
            else
                lock (closing)
                    Close();
        }

        // A handler must not wait for itself.
        void DisposeLater()
        {
            try
            {
                Dispose();
            }
            catch (BatonException error)
            {
                Console.Error.WriteLine("baton: a store was not closed: " + error.Message);
            }
        }

        void Close()
        {
            Election[] all;
            if (disposed)
                return;
            lock (elections)
                all = elections.ToArray();
            foreach (var election in all)
                election.Stop(TimeSpan.Zero);
            if (!Pump.WaitForLeads(Lease))
                throw new BatonException((int)Code.Busy, "leads of this store are still open");
            var until = DateTime.UtcNow + Lease;
            foreach (var election in all)
                election.State.AwaitHeard(until - DateTime.UtcNow);
            disposed = true;
            GC.SuppressFinalize(this);
            Pump.End();
            lock (elections)
                foreach (var election in elections)
                    election.State.Handle.Dispose();
            Pump.Handle.Closes = true;
            Pump.Handle.Dispose();
        }

        // Never blocks and never releases.
        ~Store()
        {
            if (Pump == null || Environment.HasShutdownStarted)
                return;
            Console.Error.WriteLine("baton: a store was not disposed of; its elections are stopped");
            Pump.StopAll(TimeSpan.Zero);
        }
    }

    // What the thread of a store knows. It must not know the Store, which could then never be
    // collected.
    internal sealed class Pump
    {
        const short Readable = 1;
        const int CloseOnExec = 0x80000, DoesNotBlock = 0x800;
        static readonly List<Pump> Open = new List<Pump>();

        internal readonly StoreHandle Handle;
        readonly Dictionary<IntPtr, ElectionState> elections =
            new Dictionary<IntPtr, ElectionState>();
        readonly List<LeadState> leads = new List<LeadState>();
        readonly Thread thread;
        readonly int wake;
        int unfinished; // events that the application is being told
        bool ends;

        static Pump()
        {
            AppDomain.CurrentDomain.ProcessExit += (sender, args) => StopEverything();
        }

        internal Pump(StoreHandle handle)
        {
            Handle = handle;
            wake = Native.eventfd(0, CloseOnExec | DoesNotBlock);
            if (wake < 0)
                throw new BatonException((int)Code.System, "no descriptor is left");
            thread = new Thread(Run) { IsBackground = true, Name = "baton" };
            thread.Start();
            lock (Open)
                Open.Add(this);
        }

        // At the end of the program: leaderships are given back, within a second.
        static void StopEverything()
        {
            lock (Open)
                foreach (var pump in Open)
                    pump.StopAll(TimeSpan.FromSeconds(1));
        }

        internal void StopAll(TimeSpan limit)
        {
            ElectionState[] all;
            lock (leads)
            {
                all = new ElectionState[elections.Count];
                elections.Values.CopyTo(all, 0);
            }
            var until = DateTime.UtcNow + limit;
            foreach (var election in all)
                Native.baton_election_stop(election.Handle, 0);
            foreach (var election in all)
                Native.baton_election_stop(election.Handle, limit == TimeSpan.Zero ? 0
                    : Math.Max(0, (long)(until - DateTime.UtcNow).TotalMilliseconds));
        }

        internal void Add(ElectionState election)
        {
            lock (leads)
                elections.Add(election.Handle.DangerousGetHandle(), election);
        }

        internal void Add(LeadState lead)
        {
            lock (leads)
                leads.Add(lead);
            Wake();
        }

        internal void Remove(LeadState lead)
        {
            lock (leads)
            {
                leads.Remove(lead);
                Monitor.PulseAll(leads);
            }
            Wake();
        }

        internal bool WaitForLeads(TimeSpan limit)
        {
            var until = DateTime.UtcNow + limit;
            lock (leads)
            {
                while (leads.Count != 0)
                {
                    var left = until - DateTime.UtcNow;
                    if (left <= TimeSpan.Zero || !Monitor.Wait(leads, left))
                        return leads.Count == 0;
                }
            }
            return true;
        }

        void Wake()
        {
            ulong one = 1;
            Native.write(wake, ref one, (UIntPtr)8);
        }

        internal void End()
        {
            ends = true;
            Wake();
            thread.Join();
            lock (leads)
                while (unfinished != 0)
                    Monitor.Wait(leads);
            Native.close(wake);
            lock (Open)
                Open.Remove(this);
        }

        void Run()
        {
            var happened = new byte[Native.EventSize];
            while (!Volatile.Read(ref ends))
            {
                LeadState[] watched;
                lock (leads)
                    watched = leads.FindAll(lead => !lead.Cancelled).ToArray();
                var fds = new PollFd[2 + watched.Length];
                fds[0] = new PollFd { Fd = Native.baton_fd(Handle), Events = Readable };
                fds[1] = new PollFd { Fd = wake, Events = Readable };
                for (int i = 0; i < watched.Length; i++)
                    fds[2 + i] = new PollFd { Fd = watched[i].Fd, Events = Readable };
                Native.poll(fds, (UIntPtr)fds.Length, -1);
                ulong count = 0;
                Native.read(wake, ref count, (UIntPtr)8);
                // First the events: they say why.
                while (Native.baton_wait_sized(Handle, 0, happened, (UIntPtr)happened.Length) == 1)
                    Tell(happened);
                for (int i = 0; i < watched.Length; i++)
                    if (fds[2 + i].Revents != 0)
                        watched[i].Look();
            }
        }

        void Tell(byte[] happened)
        {
            ElectionState election;
            var e = new ElectionEventArgs(happened);
            ulong token = BitConverter.ToUInt64(happened, Native.EventToken);
            Native.baton_event_done(Handle, token);
            lock (leads)
                if (elections.TryGetValue((IntPtr)BitConverter.ToInt64(happened,
                    Native.EventElection), out election))
                    unfinished++;
            election?.Note(e);
            election?.Tell(e, Told);
        }

        void Told()
        {
            lock (leads)
            {
                unfinished--;
                Monitor.PulseAll(leads);
            }
        }
    }
}
