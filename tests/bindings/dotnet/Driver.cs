// Driver.cs: the driver program of the .NET binding. It does what the lines on standard input say;
// tests/bindings/README.md has the lines. It uses the binding as a program would.
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.IO;
using System.Linq;
using System.Runtime.InteropServices;
using System.Text;
using System.Threading;
using System.Threading.Tasks;
using Baton;
using Mono.Unix;
using Mono.Unix.Native;

[StructLayout(LayoutKind.Sequential)]
struct TimeSpec
{
    public long Seconds, Nanoseconds;
}

sealed class SkipException : Exception
{
    public SkipException(string why) : base(why) { }
}

static class Driver
{
    static readonly Dictionary<string, Store> Stores = new Dictionary<string, Store>();
    static readonly Dictionary<string, Election> Elections = new Dictionary<string, Election>();
    static readonly Dictionary<string, string> Owners = new Dictionary<string, string>();
    static readonly Dictionary<string, Lead> Leads = new Dictionary<string, Lead>();
    static readonly Dictionary<string, SemaphoreSlim> Finish =
        new Dictionary<string, SemaphoreSlim>();
    static readonly Dictionary<string, List<string>> Heard =
        new Dictionary<string, List<string>>();
    static readonly List<Process> Children = new List<Process>();
    static readonly object Names = new object();
    static StreamWriter output;
    static int made;

    [DllImport("libc")] static extern int clock_gettime(int clock, out TimeSpec time);

    static long NowNs()
    {
        TimeSpec t;
        clock_gettime(7, out t); // CLOCK_BOOTTIME
        return t.Seconds * 1000000000 + t.Nanoseconds;
    }

    static string Quote(string word)
    {
        if (word == "")
            return "%";
        var b = new StringBuilder();
        foreach (byte c in Encoding.UTF8.GetBytes(word))
            if (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
                "-._~:/=,?&@+".IndexOf((char)c) >= 0)
                b.Append((char)c);
            else
                b.AppendFormat("%{0:X2}", c);
        return b.ToString();
    }

    static string Unquote(string word)
    {
        var bytes = new List<byte>();
        if (word == "%")
            return "";
        for (int i = 0; i < word.Length; i++)
            if (word[i] == '%')
            {
                bytes.Add(Convert.ToByte(word.Substring(i + 1, 2), 16));
                i += 2;
            }
            else
                bytes.Add((byte)word[i]);
        return Encoding.UTF8.GetString(bytes.ToArray());
    }

    static void Say(string line)
    {
        lock (output)
        {
            output.Write(line + "\n");
            output.Flush();
        }
    }

    static string Failed(Exception error)
    {
        var is_ours = error as BatonException;
        if (is_ours != null)
            return string.Format("error {0} {1} {2}", is_ours.CodeName, (int)is_ours.Code,
                Quote(is_ours.Message));
        if (error is OperationCanceledException || error is TimeoutException)
            return "error timeout -9 " + Quote("the given time has passed");
        return "error other 0 " + Quote(error.Message);
    }

    static TimeSpan Millis(string word) =>
        TimeSpan.FromMilliseconds(word == null ? 0 : double.Parse(word));

    static Dictionary<string, string> Keys(IEnumerable<string> words) => words.ToDictionary(
        w => w.Substring(0, w.IndexOf('=')), w => w.Substring(w.IndexOf('=') + 1));

    static string At(Dictionary<string, string> keys, string key)
    {
        string value;
        return keys.TryGetValue(key, out value) ? value : null;
    }

    static string NameLead(Lead lead)
    {
        lock (Names)
        {
            string name = "L" + ++made;
            Leads[name] = lead;
            return name;
        }
    }

    static async Task Until(CancellationToken token)
    {
        var done = new TaskCompletionSource<bool>();
        using (token.Register(() => done.TrySetResult(true)))
            await done.Task.ConfigureAwait(false);
    }

    static async Task Spin(string e, Lead lead, CancellationToken token)
    {
        while (!token.IsCancellationRequested)
        {
            long before = NowNs();
            bool leads = lead.Leads;
            long after = NowNs();
            if (!leads)
                return;
            Say(string.Format("! yes {0} {1} {2} {3}", e, lead.Term, before, after));
            await Task.Delay(1).ConfigureAwait(false);
        }
    }

    static async Task Body(string e, Lead lead, string mode, CancellationToken token)
    {
        string name = NameLead(lead), how = "cancelled";
        Say(string.Format("! enter {0} {1} {2} {3}", e, name, lead.Term, NowNs()));
        try
        {
            if (mode == "raise")
            {
                how = "raised";
                throw new InvalidOperationException("the body failed");
            }
            if (mode == "spin")
                await Spin(e, lead, token).ConfigureAwait(false);
            if (mode == "stop")
                Elections[e].Stop(TimeSpan.Zero);
            if (mode == "until")
            {
                how = "returned";
                try
                {
                    await Finish[e].WaitAsync(token).ConfigureAwait(false);
                    return;
                }
                catch (OperationCanceledException)
                {
                    how = "cancelled";
                }
            }
            await Until(token).ConfigureAwait(false);
            Say(string.Format("! lost {0} {1} {2}", e, name, NowNs()));
            if (mode == "stubborn")
            {
                await Finish[e].WaitAsync().ConfigureAwait(false);
                how = "returned";
                return;
            }
            token.ThrowIfCancellationRequested();
        }
        finally
        {
            Say(string.Format("! leave {0} {1} {2} {3}", e, name, how, NowNs()));
        }
    }

    static async Task Run(string e, Election election, string mode)
    {
        try
        {
            await election.RunAsync((lead, token) => Body(e, lead, mode, token))
                .ConfigureAwait(false);
            Say("! end " + e + " stopped");
        }
        catch (BatonException error)
        {
            Say("! end " + e + " " + Failed(error));
        }
        catch (Exception error)
        {
            Say("! end " + e + " raised " + Quote(error.Message));
        }
    }

    static string Open(string[] w)
    {
        var k = Keys(w.Skip(3));
        var store = new Store(w[2], new StoreOptions
        {
            Id = At(k, "id"), Address = At(k, "address"), Lease = Millis(At(k, "lease_ms")),
            Renew = Millis(At(k, "renew_ms")), Grace = Millis(At(k, "grace_ms")),
            Retry = Millis(At(k, "retry_ms")), Outlive = At(k, "outlive") == "1",
        });
        Stores[w[1]] = store;
        return Quote(store.Id);
    }

    static string MakeElection(string[] w)
    {
        var k = Keys(w.Skip(4));
        var election = Stores[w[2]].CreateElection(w[3], new ElectionOptions
        {
            Metadata = At(k, "metadata"), Priority = int.Parse(At(k, "priority") ?? "0"),
            Manual = At(k, "manual") == "1", ObserveOnly = At(k, "observe_only") == "1",
            ReleaseOnStop = At(k, "release_on_stop") != "0",
            StepDownUnhealthy = At(k, "step_down_unhealthy") != "0",
            Preempt = Millis(At(k, "preempt_ms")), WorkTimeout = Millis(At(k, "work_timeout_ms")),
        });
        Elections[w[1]] = election;
        Owners[w[1]] = w[2];
        if (k.ContainsKey("hear_ms"))
            Hear(w[1], Stores[w[2]], Millis(k["hear_ms"]), At(k, "inside"));
        return Quote(election.Name);
    }

    static void Hear(string e, Store store, TimeSpan slow, string inside)
    {
        var heard = Heard[e] = new List<string>();
        Elections[e].Happened += (sender, happened) =>
        {
            if (happened.Kind == EventKind.Became)
            {
                Thread.Sleep(slow);
                if (inside == "stop")
                    ((Election)sender).StopAsync().Wait();
                if (inside == "close")
                    store.Dispose();
            }
            if (happened.Kind == EventKind.Became || happened.Kind == EventKind.Lost ||
                happened.Kind == EventKind.Stopped)
                lock (heard)
                    heard.Add(happened.Kind.ToString().ToLower());
        };
    }

    static string WhatWasHeard(string e)
    {
        lock (Heard[e])
            return string.Join(" ", Heard[e]);
    }

    static void Forget(string s)
    {
        foreach (string e in Owners.Keys.Where(e => Owners[e] == s).ToList())
        {
            Elections.Remove(e);
            Owners.Remove(e);
        }
        Stores.Remove(s);
        Leads.Clear();
    }

    // On a stack of its own, so that no reference stays behind on ours.
    static void Drop(Action forget)
    {
        var forgets = new Thread(() => forget());
        forgets.Start();
        forgets.Join();
        Collect();
    }

    static void Collect()
    {
        for (int i = 0; i < 5; i++)
        {
            GC.Collect();
            GC.WaitForPendingFinalizers();
        }
    }

    static void Cycle(int n, string url)
    {
        for (int i = 0; i < n; i++)
            using (var store = new Store(url))
                store.CreateElection("cycle").Start();
    }

    static string Child()
    {
        var info = new ProcessStartInfo("cat")
        {
            RedirectStandardInput = true, UseShellExecute = false,
        };
        var child = Process.Start(info);
        Children.Add(child);
        return child.Id.ToString();
    }

    static string Bit(bool value) => value ? "1" : "0";

    static async Task<string> OfElection(string[] w, Election e)
    {
        switch (w[0])
        {
            case "start":
                e.Start();
                return "";
            case "run":
                Finish[w[1]] = new SemaphoreSlim(0);
                var ignored = Task.Run(() => Run(w[1], e, w[2]));
                return "";
            case "finish":
                Finish[w[1]].Release();
                return "";
            case "await":
                using (var limit = new CancellationTokenSource(Millis(w[2])))
                using (var lead = await e.AcquireAsync(limit.Token).ConfigureAwait(false))
                    return lead.Term.ToString();
            case "enter":
                var entered = e.Enter();
                return NameLead(entered) + " " + entered.Term;
            case "leads":
                return Bit(e.Leads);
            case "term":
                return e.Term.ToString();
            case "left":
                return ((long)e.Status.TimeLeft.TotalMilliseconds).ToString();
            case "status":
                var s = e.Status;
                return s.StateName + " " + Quote(s.Leader) + " " + s.Term;
            case "try":
                Obstacle obstacle;
                return Bit(e.TryAcquire(Millis(w[2]), out obstacle));
            case "resign":
                e.Resign(Millis(w[2]));
                return "";
            case "transfer":
                e.Transfer(w[2]);
                return "";
            case "health":
                e.ReportHealth(int.Parse(w[2]), w.Length > 3 ? w[3] : null);
                return "";
            case "alive":
                e.Alive();
                return "";
            case "condition":
                return e.Condition.ToString().ToLower();
            case "stop":
                if (!e.Stop(Millis(w[2])))
                    throw new TimeoutException();
                return "";
            case "fork":
                throw new SkipException(".NET can't fork");
        }
        throw new InvalidOperationException("unknown request " + w[0]);
    }

    static async Task<string> OfLead(string[] w, Lead lead)
    {
        switch (w[0])
        {
            case "leave":
                lead.Dispose();
                return "";
            case "leads":
                return Bit(lead.Leads);
            case "lost":
                return Bit(lead.Lost.IsCancellationRequested);
            case "awaitlost":
                var lost = Until(lead.Lost);
                if (await Task.WhenAny(lost, Task.Delay(Millis(w[2]))).ConfigureAwait(false) != lost)
                    throw new TimeoutException();
                return NowNs().ToString();
            case "term":
                return lead.Term.ToString();
            case "left":
                return ((long)lead.TimeLeft.TotalMilliseconds).ToString();
            case "bench":
                return Bench(lead, int.Parse(w[2]));
        }
        throw new InvalidOperationException("unknown request " + w[0]);
    }

    static string Constants()
    {
        var all = new List<string>();
        foreach (var pair in new Dictionary<Type, string> {
            { typeof(Code), "E_" }, { typeof(EventKind), "EVENT_" }, { typeof(Reason), "REASON_" },
            { typeof(Obstacle), "OBSTACLE_" }, { typeof(State), "STATE_" },
            { typeof(Condition), "CONDITION_" } })
            foreach (var value in Enum.GetValues(pair.Key))
            {
                string name = string.Concat(value.ToString().Select(
                    (c, i) => (i > 0 && char.IsUpper(c) ? "_" : "") + char.ToUpper(c)));
                all.Add("BATON_" + (name == "OK" ? "" : pair.Value) + name + "=" + (int)value);
            }
        return string.Join(" ", all);
    }

    static Task<string> Answer(string[] w)
    {
        switch (w[0])
        {
            case "hello":
                return Task.FromResult("dotnet " + Store.Version + " " + Store.VersionNumber);
            case "open":
                return Task.FromResult(Open(w));
            case "election":
                return Task.FromResult(MakeElection(w));
            case "close":
                var store = Stores[w[1]];
                Forget(w[1]);
                store.Dispose();
                return Task.FromResult("");
            case "candidates":
                return Task.FromResult(string.Join(" ", Stores[w[1]].Candidates(w[2]).Select(
                    c => Quote(c.Id + "=" + Bit(c.Leads) + "," + Bit(c.IsHealthy) + "," +
                    c.Score + "," + c.Metadata))));
            case "heard":
                return Task.FromResult(WhatWasHeard(w[1]));
            case "constants":
                return Task.FromResult(Constants());
            case "child":
                return Task.FromResult(Child());
            case "drop":
                Drop(() => Forget(w[1]));
                return Task.FromResult("");
            case "lose":
                Drop(() => { lock (Names) Leads.Remove(w[1]); });
                return Task.FromResult("");
            case "promises":
                return Task.FromResult(Quote(Stores[w[1]].Promises));
            case "observe":
                throw new SkipException("no observe");
            case "order":
                throw new SkipException("no orders");
            case "gc":
                Collect();
                return Task.FromResult("");
            case "cycle":
                Cycle(int.Parse(w[1]), w[2]);
                return Task.FromResult("");
            case "exit":
                Environment.Exit(int.Parse(w[1]));
                break;
        }
        Election e;
        Lead lead;
        if (Elections.TryGetValue(w[1], out e))
            return OfElection(w, e);
        lock (Names)
            if (!Leads.TryGetValue(w[1], out lead))
                throw new InvalidOperationException("no such name: " + w[1]);
        return OfLead(w, lead);
    }

    // Nanoseconds of one call, at best.
    static long Best(int n, Action calls)
    {
        double least = double.MaxValue;
        for (int round = 0; round < 5; round++)
        {
            var watch = Stopwatch.StartNew();
            calls();
            least = Math.Min(least, watch.Elapsed.TotalMilliseconds * 1e6 / n);
        }
        return (long)least;
    }

    // A question, and an empty call of the same kind.
    static string Bench(Lead lead, int n)
    {
        int yes = 0;
        long leads = Best(n, () => { for (int i = 0; i < n; i++) yes += lead.Leads ? 1 : 0; });
        long empty = Best(n, () => { for (int i = 0; i < n; i++) yes += (int)Store.VersionNumber; });
        return leads + " " + empty;
    }

    static void CloseAll()
    {
        foreach (var store in Stores.Values.ToList())
            store.Dispose();
    }

    static void Main()
    {
        output = new StreamWriter(Console.OpenStandardOutput(), new UTF8Encoding(false));
        // Mono tells Console.CancelKeyPress of SIGINT only at a terminal.
        var interrupts = new Thread(() =>
        {
            new UnixSignal(Signum.SIGINT).WaitOne();
            CloseAll();
            Environment.Exit(130);
        });
        interrupts.IsBackground = true;
        interrupts.Start();
        var input = new StreamReader(Console.OpenStandardInput(), new UTF8Encoding(false));
        for (string line; (line = input.ReadLine()) != null;)
        {
            try
            {
                var words = line.Split(' ').Select(Unquote).ToArray();
                Say(("ok " + Answer(words).GetAwaiter().GetResult()).TrimEnd());
            }
            catch (SkipException why)
            {
                Say("skip " + Quote(why.Message));
            }
            catch (Exception error)
            {
                Say(Failed(error));
            }
        }
        foreach (var finish in Finish.Values)
            finish.Release();
        CloseAll();
        Environment.Exit(0);
    }
}
