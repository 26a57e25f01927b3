// Check.cs: the adapters with the usage that the packages document whose interfaces they have, and
// the examples of bindings/dotnet/examples, on the file store. Prints a line for each that passed.
using System;
using System.Collections.Concurrent;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Reflection;
using System.Threading;
using System.Threading.Tasks;
using Baton;
using Examples;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Diagnostics.HealthChecks;
using Microsoft.Extensions.Hosting;
using Excalibur = Baton.Excalibur;
using Ibis = Baton.MutexLeaderElection;
using Net = Baton.LeaderElectionNet;

sealed class Services : IServiceCollection, IServiceProvider
{
    readonly Dictionary<Type, Func<IServiceProvider, object>> makers =
        new Dictionary<Type, Func<IServiceProvider, object>>();
    readonly Dictionary<Type, object> made = new Dictionary<Type, object>();

    public void AddSingleton(Type service, Func<IServiceProvider, object> make) =>
        makers[service] = make;

    public object GetService(Type type)
    {
        object service;
        if (!made.TryGetValue(type, out service))
            made[type] = service = makers[type](this);
        return service;
    }

    public T Get<T>() => (T)GetService(typeof(T));

    public void Dispose()
    {
        foreach (var service in made.Values.OfType<IDisposable>())
            service.Dispose();
    }
}

sealed class HealthChecks : IHealthChecksBuilder
{
    public readonly List<HealthCheckRegistration> Registered = new List<HealthCheckRegistration>();

    public HealthChecks(IServiceCollection services)
    {
        Services = services;
    }

    public IServiceCollection Services { get; }

    public IHealthChecksBuilder Add(HealthCheckRegistration registration)
    {
        Registered.Add(registration);
        return this;
    }
}

// The worker that the package LeaderElection documents.
sealed class NetWorker : BackgroundService
{
    readonly Net.ILeaderElection election;
    public readonly ConcurrentQueue<bool> Changes = new ConcurrentQueue<bool>();
    public int Runs;

    public NetWorker(Net.ILeaderElection election)
    {
        this.election = election;
    }

    protected override async Task ExecuteAsync(CancellationToken stoppingToken)
    {
        election.LeadershipChanged += OnLeadershipChanged;
        try
        {
            await election.StartAsync(stoppingToken);
            while (!stoppingToken.IsCancellationRequested)
            {
                await election.RunTaskIfLeaderAsync(async () =>
                {
                    Interlocked.Increment(ref Runs);
                    await Task.Delay(10);
                }, stoppingToken);
                await Task.Delay(20, stoppingToken);
            }
        }
        catch (OperationCanceledException)
        {
        }
        finally
        {
            await election.StopAsync(stoppingToken);
            election.LeadershipChanged -= OnLeadershipChanged;
        }
    }

    void OnLeadershipChanged(object sender, bool isLeader) => Changes.Enqueue(isLeader);
}

sealed class Outbox : IOutbox
{
    public readonly List<string> Pending = new List<string> { "one", "two" };

    public Task<IList<string>> GetPendingAsync(int max, CancellationToken token)
    {
        lock (Pending)
            return Task.FromResult<IList<string>>(Pending.Take(max).ToList());
    }

    public Task MarkAsPublishedAsync(string message, CancellationToken token)
    {
        lock (Pending)
            Pending.Remove(message);
        return Task.FromResult(true);
    }
}

// The leadership ends while the item is being fetched.
sealed class Queue : IWorkQueue
{
    public readonly ConcurrentQueue<string> Items = new ConcurrentQueue<string>();
    public readonly ConcurrentQueue<string> Requeued = new ConcurrentQueue<string>();
    public Action<string> Taken = item => { };

    public async Task<string> DequeueAsync(CancellationToken token)
    {
        for (;;)
        {
            string item;
            if (Items.TryDequeue(out item))
            {
                Taken(item);
                return item;
            }
            await Task.Delay(10, token);
        }
    }

    public Task RequeueAsync(string item)
    {
        Requeued.Enqueue(item);
        return Task.FromResult(true);
    }
}

static class Check
{
    static string NewUrl() => "file:" + Directory.CreateDirectory(
        Path.Combine(root, Guid.NewGuid().ToString("N"))).FullName;
    static string root;

    static async Task Until(Func<bool> condition, string what)
    {
        for (var until = DateTime.UtcNow.AddSeconds(60); !condition(); await Task.Delay(10))
            if (DateTime.UtcNow > until)
                throw new Exception("waited in vain for " + what);
    }

    static void True(bool condition, string what)
    {
        if (!condition)
            throw new Exception("not so: " + what);
    }

    static Services Registered(string url, string id)
    {
        var services = new Services();
        Excalibur.Registration.AddBatonLeaderElection(services, url, "my-app-leader", options =>
        {
            options.LeaseDuration = TimeSpan.FromSeconds(3);
            options.RenewInterval = TimeSpan.FromSeconds(1);
            options.RetryInterval = TimeSpan.FromMilliseconds(200);
            options.InstanceId = id;
            options.CandidateMetadata["region"] = "north \"1\"";
        });
        return services;
    }

    static async Task ExcaliburEvents()
    {
        string url = NewUrl();
        var told = new ConcurrentQueue<string>();
        var one = Registered(url, "one");
        var two = Registered(url, "two");
        var first = one.Get<Excalibur.ILeaderElection>();
        var second = two.Get<Excalibur.ILeaderElection>();
        first.OnBecameLeader += (sender, args) => told.Enqueue("became " + args.CandidateId);
        first.OnLostLeadership += (sender, args) => told.Enqueue("lost " + args.CandidateId);
        second.OnLeaderChanged += (sender, args) => told.Enqueue("changed " + args.NewLeaderId);
        await first.StartAsync(CancellationToken.None);
        await Until(() => told.Contains("became one"), "OnBecameLeader");
        True(first.IsLeader && first.CandidateId == "one", "one leads");
        True(first.CurrentLeaderId == "one", "one knows that");
        await second.StartAsync(CancellationToken.None);
        await Until(() => told.Contains("changed one"), "OnLeaderChanged");
        True(!second.IsLeader && second.CurrentLeaderId == "one", "two knows that, too");
        var check = await new Excalibur.LeaderElectionHealthCheck(second).CheckHealthAsync(null);
        True(check.Status == HealthStatus.Healthy && check.Description == "one leads",
            "a leader is seen");
        await first.StopAsync(CancellationToken.None);
        True(told.Contains("lost one"), "OnLostLeadership before StopAsync has ended");
        await Until(() => second.IsLeader, "two");
        one.Dispose();
        two.Dispose();
    }

    static async Task ExcaliburHealth()
    {
        using (var factory = new Excalibur.BatonLeaderElectionFactory(NewUrl(),
            new Excalibur.LeaderElectionOptions { RenewInterval = TimeSpan.FromSeconds(1) }))
        {
            bool healthy = true;
            var election = factory.CreateHealthBasedElection(resourceName: "critical-processor");
            var service = new HealthBased(election, () => healthy);
            await service.StartAsync(CancellationToken.None);
            await Until(() => election.IsLeader, "a healthy leader");
            Excalibur.CandidateHealth seen = null;
            for (int i = 0; i < 3000 && (seen == null || !seen.Metadata.ContainsKey("cpu")); i++)
            {
                await Task.Delay(20);
                seen = (await election.GetCandidateHealthAsync(CancellationToken.None))
                    .SingleOrDefault();
            }
            True(seen.CandidateId == election.CandidateId && seen.IsHealthy && seen.IsLeader &&
                seen.HealthScore == 1.0 && seen.Metadata["cpu"] == "45%", "the candidate is seen");
            healthy = false;
            await Until(() => !election.IsLeader, "a step-down");
            await service.StopAsync(CancellationToken.None);
        }
    }

    // An election that knows nothing of baton, for the health check.
    sealed class OthersElection : Excalibur.ILeaderElection
    {
        public Func<string> Leader;
#pragma warning disable 67 // never raised
        public event EventHandler<Excalibur.LeaderElectionEventArgs> OnBecameLeader;
        public event EventHandler<Excalibur.LeaderElectionEventArgs> OnLostLeadership;
        public event EventHandler<Excalibur.LeaderChangedEventArgs> OnLeaderChanged;
#pragma warning restore 67
        public string CandidateId => "me";
        public bool IsLeader => Leader() == CandidateId;
        public string CurrentLeaderId => Leader();
        public Task StartAsync(CancellationToken cancellationToken) => Task.FromResult(true);
        public Task StopAsync(CancellationToken cancellationToken) => Task.FromResult(true);
    }

    static async Task ExcaliburHealthCheck()
    {
        var others = new OthersElection();
        var check = new Excalibur.LeaderElectionHealthCheck(others);
        foreach (var expected in new Dictionary<Func<string>, string>
        {
            [() => "me"] = "Healthy: this instance leads",
            [() => "you"] = "Healthy: you leads",
            [() => null] = "Degraded: no leader is seen",
            [() => { throw new Exception("no way"); }] =
                "Unhealthy: the election can't be asked: no way",
        })
        {
            others.Leader = expected.Key;
            var result = await check.CheckHealthAsync(new HealthCheckContext());
            True(result.Status + ": " + result.Description == expected.Value, expected.Value);
        }
    }

    // The defaults of the package, and a zero that was asked for, which no store can keep.
    static Task ExcaliburOptions()
    {
        var options = new Excalibur.LeaderElectionOptions();
        True(options.GracePeriod == TimeSpan.FromSeconds(5) && options.LeaseDuration ==
            TimeSpan.FromSeconds(15) && options.RenewInterval == TimeSpan.FromSeconds(5) &&
            options.RetryInterval == TimeSpan.FromSeconds(2), "the package's defaults");
        options.GracePeriod = TimeSpan.Zero;
        True(options.GracePeriod == TimeSpan.Zero, "a zero that was asked for");
        using (var factory = new Excalibur.BatonLeaderElectionFactory(NewUrl(), options))
        {
            try
            {
                factory.CreateElection("zero");
            }
            catch (BatonException error) when (error.Code == Code.Timing)
            {
                options.GracePeriod = TimeSpan.FromSeconds(4);
                factory.CreateElection("four");
                return Task.FromResult(true);
            }
        }
        throw new Exception("not so: a zero is refused");
    }

    // The metadata of others: an object of strings is read as such, all else as one text.
    static Task ExcaliburMetadata()
    {
        var read = typeof(Excalibur.Registration).Assembly.GetType("Baton.Excalibur.FlatJson")
            .GetMethod("Read", BindingFlags.NonPublic | BindingFlags.Static);
        Func<string, string> found = text => string.Join(";",
            ((IDictionary<string, string>)read.Invoke(null, new object[] { text }))
                .Select(pair => pair.Key + "=" + pair.Value));
        foreach (var text in new[] { "plain", "{", "{\"a\"", "{\"a\":\"\\uzzzz\"}",
            "{\"a\":\"\\u 1a\"}", "{\"a\":\"\\u12\"}", "{\"a\":\"\\q\"}", "{\"a\":\"b", "{\"a\":\"b\\",
            "{\"a\":\"b\",}", "{\"a\":\"b\" \"c\":\"d\"}", "{\"a\":\"b\"", "{\"a\":\"b\"}}",
            "{\"a\":1}", " ", "[]" })
            True(found(text) == "text=" + text, text + ": " + found(text));
        foreach (var pair in new Dictionary<string, string> { { "", "" }, { "{}", "" },
            { " { } ", "" }, { "{\"a\":\"b\"}", "a=b" },
            { " { \"a\" : \"b c\" ,\n\t\"d\":\"\" } ", "a=b c;d=" },
            { "{\"\\u00e9\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\uD83D\\uDE00\"}",
                "\u00e9=\"\\/\b\f\n\r\t\U0001F600" } })
            True(found(pair.Key) == pair.Value, pair.Key + ": " + found(pair.Key));
        return Task.FromResult(true);
    }

    // The registrations of a host: the election lives as long as it, and its health can be asked.
    static async Task ExcaliburHosted()
    {
        string path = Path.Combine(root, "hosted");
        var services = new Services();
        var checks = new HealthChecks(services);
        Directory.CreateDirectory(path);
        Excalibur.Registration.AddBatonLeaderElectionHostedService(services, "file:" + path,
            "my-processor", options =>
            {
                options.LeaseDuration = TimeSpan.FromSeconds(2);
                options.RenewInterval = TimeSpan.FromMilliseconds(500);
                options.RetryInterval = TimeSpan.FromMilliseconds(100);
            });
        Excalibur.Registration.AddLeaderElectionHealthCheck(checks);
        var election = services.Get<Excalibur.ILeaderElection>();
        var host = services.Get<IHostedService>();
        var check = checks.Registered.Single().Factory(services);
        Func<HealthStatus, bool> isNow = status =>
            check.CheckHealthAsync(new HealthCheckContext()).Result.Status == status;
        True(isNow(HealthStatus.Degraded), "no leader is seen before the start");
        await host.StartAsync(CancellationToken.None);
        await Until(() => election.IsLeader && isNow(HealthStatus.Healthy), "the host to lead");
        Directory.Move(path, path + "-gone");
        File.WriteAllText(path, "no store can be made in its place");
        await Until(() => isNow(HealthStatus.Unhealthy), "the store to be missed");
        File.Delete(path);
        Directory.Move(path + "-gone", path);
        await Until(() => election.IsLeader && isNow(HealthStatus.Healthy), "the store's return");
        await host.StopAsync(CancellationToken.None);
        True(!election.IsLeader, "the host has stopped");
        services.Dispose();
    }

    static async Task LeaderElectionNetErrors()
    {
        string path = Path.Combine(root, "no-store");
        File.WriteAllText(path, "no folder");
        var told = new ConcurrentQueue<string>();
        using (var election = new Net.BatonLeaderElection(new Net.LeaderElectionSettings
            { ConnectionString = "file:" + path, RetryInterval = TimeSpan.FromMilliseconds(100) }))
        {
            election.ErrorOccurred += (sender, error) => told.Enqueue(error.Message);
            await election.StartAsync();
            await Until(() => !told.IsEmpty, "ErrorOccurred");
            await election.StopAsync();
            True(told.All(text => text.Length > 8) && !election.IsLeader, "a sentence");
        }
    }

    static async Task LeaderElectionNet()
    {
        var services = new Services();
        Net.Registration.AddBatonLeaderElection(services, settings =>
        {
            settings.ConnectionString = NewUrl();
            settings.LockKey = "leader_election_tester";
            settings.LockExpiry = TimeSpan.FromSeconds(30);
            settings.RenewInterval = TimeSpan.FromSeconds(10);
            settings.RetryInterval = TimeSpan.FromSeconds(5);
            settings.MaxRetryAttempts = 3;
            settings.EnableGracefulShutdown = true;
        });
        var election = services.Get<Net.ILeaderElection>();
        var worker = new NetWorker(election);
        await worker.StartAsync(CancellationToken.None);
        await Until(() => worker.Runs > 2 && worker.Changes.Count == 1, "a task that runs");
        True(await election.TryAcquireLeadershipAsync(CancellationToken.None), "it leads");
        True(election.IsLeader, "IsLeader");
        True(DateTime.UtcNow - election.LastLeadershipRenewal < TimeSpan.FromMinutes(1),
            "LastLeadershipRenewal");
        bool ran = false;
        await election.RunTaskIfLeaderAsync(() => { ran = true; }, CancellationToken.None);
        True(ran, "the action ran");
        await worker.StopAsync(CancellationToken.None);
        True(!election.IsLeader && worker.Changes.SequenceEqual(new[] { true, false }),
            "LeadershipChanged: true, false");
        await election.RunTaskIfLeaderAsync(() => { ran = false; }, CancellationToken.None);
        True(ran, "no action without a leadership");
        services.Dispose();
    }

    static Net.BatonLeaderElection Candidate(string url, string id, bool graceful = true)
    {
        return new Net.BatonLeaderElection(new Net.LeaderElectionSettings
        {
            ConnectionString = url, LockId = 1337, InstanceId = id,
            LockExpiry = TimeSpan.FromSeconds(3), RetryInterval = TimeSpan.FromMilliseconds(100),
            EnableGracefulShutdown = graceful,
        });
    }

    // Those who try without a start contend in the try only. The leader's stop leaves an election
    // that a candidate would take within milliseconds; the observer sees that none does.
    static async Task LeaderElectionNetTries()
    {
        string url = NewUrl();
        var told = new ConcurrentQueue<bool>();
        var errors = new ConcurrentQueue<string>();
        using (var store = new Store(url, new StoreOptions { Lease = TimeSpan.FromSeconds(3) }))
        using (var one = Candidate(url, "one"))
        using (var two = Candidate(url, "two"))
        {
            var watch = store.CreateElection("1337", new ElectionOptions { ObserveOnly = true });
            watch.Start();
            two.LeadershipChanged += (sender, leads) => told.Enqueue(leads);
            two.ErrorOccurred += (sender, error) => errors.Enqueue(error.Message);
            True(await one.TryAcquireLeadershipAsync() && one.IsLeader, "the first try wins");
            await Until(() => watch.Status.Leader == "one/try", "LockId as the election's name");
            True(!await two.TryAcquireLeadershipAsync() && !two.IsLeader, "the second doesn't");
            await one.StopAsync();
            True(!one.IsLeader, "stopped");
            await Until(() => watch.Status.Leader == "", "the election to be free");
            await Task.Delay(1000); // ten times its retry interval
            True(!two.IsLeader && told.IsEmpty, "one that has tried in vain contends no more");
            True(await two.TryAcquireLeadershipAsync() && two.IsLeader, "it may try again");
            bool ran = false;
            await two.RunTaskIfLeaderAsync(() => { ran = true; });
            True(ran, "a leadership that was tried for runs tasks");
            await one.StartAsync();
            True(!await one.TryAcquireLeadershipAsync(), "the other leads");
            await two.StopAsync();
            await Until(() => one.IsLeader && watch.Status.Leader == "one", "who has started");
            True(told.SequenceEqual(new[] { true, false }), "true, false: " +
                string.Join(", ", told));
            True(!errors.Any(text => text.Contains("same id")), string.Join("; ", errors));
        }
    }

    // Without a graceful shutdown the lock stays until it expires.
    static async Task LeaderElectionNetUngraceful()
    {
        string url = NewUrl();
        using (var one = Candidate(url, null, false))
        using (var two = Candidate(url, null))
        {
            True(await one.TryAcquireLeadershipAsync(), "it leads");
            await one.StopAsync();
            True(!one.IsLeader && !await two.TryAcquireLeadershipAsync(), "the lock stays");
            await Until(() => two.TryAcquireLeadershipAsync().Result, "the lock to expire");
        }
    }

    static async Task MutexAndWebJob()
    {
        string url = NewUrl();
        int active = 0, most = 0;
        Func<CancellationToken, Task> worker = async token =>
        {
            most = Math.Max(most, Interlocked.Increment(ref active));
            try
            {
                while (!token.IsCancellationRequested)
                    await Task.Delay(TimeSpan.FromSeconds(10), token);
            }
            finally
            {
                Interlocked.Decrement(ref active);
            }
        };
        var options = new Ibis.DistributedLockOptions { Url = url };
        using (var one = new Ibis.LeaderElection(options))
        using (var two = new Ibis.LeaderElection(options))
        {
            var first = new WebBackgroundJob(one, worker);
            var second = new WebBackgroundJob(two, worker);
            await first.StartAsync(CancellationToken.None);
            await Until(() => active == 1, "the first job");
            await second.StartAsync(CancellationToken.None);
            await first.StopAsync(CancellationToken.None);
            await Until(() => active == 1, "the second job");
            await second.StopAsync(CancellationToken.None);
            True(active == 0 && most == 1, "one job at a time");
        }
    }

    static async Task OutboxAndProjection()
    {
        using (var store = new Store(NewUrl()))
        {
            var outbox = new Outbox();
            var published = new ConcurrentQueue<string>();
            var publisher = new OutboxPublisher(store.CreateElection("outbox"), outbox,
                (message, term) =>
                {
                    published.Enqueue(message + " " + term);
                    return Task.FromResult(true);
                });
            var applied = new List<string>();
            var checkpoint = new Checkpoint();
            var projection = new Projection(store.CreateElection("projection"),
                new List<string> { "a", "b", "c" }, checkpoint, applied);
            await publisher.StartAsync(CancellationToken.None);
            await projection.StartAsync(CancellationToken.None);
            await Until(() => published.Count == 2 && checkpoint.Position == 3, "both");
            await publisher.StopAsync(CancellationToken.None);
            await projection.StopAsync(CancellationToken.None);
            True(published.SequenceEqual(new[] { "one 1", "two 1" }), "in order, with the term");
            True(applied.SequenceEqual(new[] { "a", "b", "c" }), "each event once");
            True(!checkpoint.Save(1, 0), "an older term is refused");
        }
    }

    static async Task JobQueueAndSeveral()
    {
        using (var factory = new Excalibur.BatonLeaderElectionFactory(NewUrl()))
        {
            int runs = 0;
            var job = new ScheduledJob(factory.CreateElection("job"), TimeSpan.FromMilliseconds(20),
                token =>
                {
                    Interlocked.Increment(ref runs);
                    return Task.FromResult(true);
                });
            var queue = new Queue();
            var processed = new ConcurrentQueue<string>();
            var leads = (Excalibur.BatonLeaderElection)factory.CreateElection("queue");
            queue.Items.Enqueue("first");
            var consumer = new QueueConsumer(leads, queue, item =>
            {
                processed.Enqueue(item);
                return Task.FromResult(true);
            });
            var seen = new ConcurrentDictionary<string, bool>();
            Func<string, Func<CancellationToken, Task>> notes = name => token =>
            {
                seen[name] = true;
                return Task.FromResult(true);
            };
            var several = new SeveralElections(factory,
                new[] { "outbox", "projector", "cleanup" }.ToDictionary(n => n, notes));
            await Task.WhenAll(job.StartAsync(CancellationToken.None),
                consumer.StartAsync(CancellationToken.None),
                several.StartAsync(CancellationToken.None));
            await Until(() => runs > 2 && processed.Count == 1 && seen.Count == 3, "all work");
            queue.Taken = item => leads.Election.Stop(TimeSpan.Zero);
            queue.Items.Enqueue("second");
            await Until(() => queue.Requeued.Contains("second"), "the item to be put back");
            True(!processed.Contains("second"), "not processed without a leadership");
            await Task.WhenAll(job.StopAsync(CancellationToken.None),
                consumer.StopAsync(CancellationToken.None),
                several.StopAsync(CancellationToken.None));
        }
    }

    static int Main()
    {
        root = Path.Combine(Path.GetTempPath(), "baton-dotnet-" + Guid.NewGuid().ToString("N"));
        try
        {
            foreach (Func<Task> test in new Func<Task>[] { ExcaliburEvents, ExcaliburHealth,
                ExcaliburHosted, ExcaliburHealthCheck, ExcaliburMetadata, ExcaliburOptions,
                LeaderElectionNet, LeaderElectionNetTries, LeaderElectionNetUngraceful,
                LeaderElectionNetErrors, MutexAndWebJob, OutboxAndProjection, JobQueueAndSeveral })
            {
                Task.Run(test).GetAwaiter().GetResult();
                Console.WriteLine("ok " + test.Method.Name);
            }
            return 0;
        }
        catch (Exception error)
        {
            Console.WriteLine(error);
            return 1;
        }
        finally
        {
            Directory.Delete(root, true);
        }
    }
}
