// Excalibur.cs: the interfaces of Excalibur.LeaderElection, with the same members, on baton: a
// program changes its `using` and its registration, and nothing else. What is stronger here:
// OnLostLeadership is raised before the leadership passes on, and it passes on only after the
// handlers have returned.
using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Diagnostics.HealthChecks;
using Microsoft.Extensions.Hosting;

namespace Baton.Excalibur
{
    public class LeaderElectionEventArgs : EventArgs
    {
        public string CandidateId { get; set; }
        public string ResourceName { get; set; }
        public ulong Term { get; set; }
    }

    public class LeaderChangedEventArgs : EventArgs
    {
        public string PreviousLeaderId { get; set; }
        public string NewLeaderId { get; set; }
        public string ResourceName { get; set; }
    }

    public interface ILeaderElection
    {
        event EventHandler<LeaderElectionEventArgs> OnBecameLeader;
        event EventHandler<LeaderElectionEventArgs> OnLostLeadership;
        event EventHandler<LeaderChangedEventArgs> OnLeaderChanged;
        string CandidateId { get; }
        bool IsLeader { get; }
        string CurrentLeaderId { get; }
        Task StartAsync(CancellationToken cancellationToken);
        Task StopAsync(CancellationToken cancellationToken);
    }

    public class CandidateHealth
    {
        public string CandidateId { get; set; }
        public bool IsHealthy { get; set; }
        public double HealthScore { get; set; }
        public bool IsLeader { get; set; }
        public DateTimeOffset LastUpdated { get; set; }
        public IDictionary<string, string> Metadata { get; set; }
    }

    public interface IHealthBasedLeaderElection : ILeaderElection
    {
        Task UpdateHealthAsync(bool isHealthy, IDictionary<string, string> metadata = null);
        Task<IEnumerable<CandidateHealth>> GetCandidateHealthAsync(
            CancellationToken cancellationToken);
    }

    public interface ILeaderElectionFactory
    {
        ILeaderElection CreateElection(string resourceName, string candidateId = null);
        IHealthBasedLeaderElection CreateHealthBasedElection(string resourceName,
            string candidateId = null);
    }

    public class LeaderElectionOptions
    {
        public TimeSpan LeaseDuration { get; set; } = TimeSpan.FromSeconds(15);
        public TimeSpan RenewInterval { get; set; } = TimeSpan.FromSeconds(5);
        public TimeSpan RetryInterval { get; set; } = TimeSpan.FromSeconds(2);
        // 5 s with the default lease. The library refuses zero: no call to a store takes no time.
        public TimeSpan GracePeriod
        {
            get => Grace ?? TimeSpan.FromTicks(LeaseDuration.Ticks / 3);
            set => Grace = value;
        }
        internal TimeSpan? Grace { get; private set; } // null: the library's default
        // null: an id that no other process has. The machine's name is not enough for that.
        public string InstanceId { get; set; }
        public bool EnableHealthChecks { get; set; } = true;
        public double MinimumHealthScore { get; set; } = 0.8;
        public bool StepDownWhenUnhealthy { get; set; } = true;
        public IDictionary<string, string> CandidateMetadata { get; } =
            new Dictionary<string, string>();
    }

    // Makes elections on one store; all of them share its connection and its lease.
    public sealed class BatonLeaderElectionFactory : ILeaderElectionFactory, IDisposable
    {
        readonly LeaderElectionOptions options;
        readonly string url;
        readonly Dictionary<string, Store> stores = new Dictionary<string, Store>();

        public BatonLeaderElectionFactory(string url, LeaderElectionOptions options = null)
        {
            this.url = url;
            this.options = options ?? new LeaderElectionOptions();
        }

        // An id belongs to a handle of the library: each id has its own.
        Store StoreOf(string candidateId)
        {
            string id = candidateId ?? options.InstanceId;
            lock (stores)
            {
                Store store;
                if (stores.TryGetValue(id ?? "", out store))
                    return store;
                return stores[id ?? ""] = new Store(url, new StoreOptions
                {
                    Id = id, Lease = options.LeaseDuration, Renew = options.RenewInterval,
                    Grace = Given(options.Grace), Retry = options.RetryInterval,
                });
            }
        }

        // To the library zero is the default. A zero that was asked for must not become that: a
        // millisecond is refused, with a sentence.
        static TimeSpan Given(TimeSpan? time) => time == null ? TimeSpan.Zero
            : time == TimeSpan.Zero ? TimeSpan.FromMilliseconds(1) : time.Value;

        public ILeaderElection CreateElection(string resourceName, string candidateId = null) =>
            CreateHealthBasedElection(resourceName, candidateId);

        public IHealthBasedLeaderElection CreateHealthBasedElection(string resourceName,
            string candidateId = null) =>
            new BatonLeaderElection(StoreOf(candidateId), resourceName, options);

        public void Dispose()
        {
            lock (stores)
                foreach (var store in stores.Values)
                    store.Dispose();
        }
    }

    public sealed class BatonLeaderElection : IHealthBasedLeaderElection
    {
        readonly Store store;
        readonly string name;

        internal BatonLeaderElection(Store store, string name, LeaderElectionOptions options)
        {
            this.store = store;
            this.name = name;
            Election = store.CreateElection(name, new ElectionOptions
            {
                CheckHealth = options.EnableHealthChecks,
                StepDownUnhealthy = options.StepDownWhenUnhealthy,
                MinScorePermille = (int)Math.Round(options.MinimumHealthScore * 1000),
                Metadata = options.CandidateMetadata.Count == 0 ? null
                    : FlatJson.Write(options.CandidateMetadata),
            });
            Election.Happened += Tell;
        }

        // For what the interface doesn't have: terms, leads.
        public Election Election { get; }

        public event EventHandler<LeaderElectionEventArgs> OnBecameLeader;
        public event EventHandler<LeaderElectionEventArgs> OnLostLeadership;
        public event EventHandler<LeaderChangedEventArgs> OnLeaderChanged;

        public string CandidateId => store.Id;
        public bool IsLeader => Election.Leads;

        public string CurrentLeaderId
        {
            get
            {
                string leader = Election.Status.Leader;
                return leader == "" ? null : leader;
            }
        }

        void Tell(object sender, ElectionEventArgs e)
        {
            var args = new LeaderElectionEventArgs
            {
                CandidateId = CandidateId, ResourceName = name, Term = e.Term,
            };
            if (e.Kind == EventKind.Became)
                OnBecameLeader?.Invoke(this, args);
            else if (e.Kind == EventKind.Lost)
                OnLostLeadership?.Invoke(this, args);
            else if (e.Kind == EventKind.Changed)
                OnLeaderChanged?.Invoke(this, new LeaderChangedEventArgs
                {
                    PreviousLeaderId = e.OldLeader == "" ? null : e.OldLeader,
                    NewLeaderId = e.Leader == "" ? null : e.Leader, ResourceName = name,
                });
        }

        public Task StartAsync(CancellationToken cancellationToken)
        {
            cancellationToken.ThrowIfCancellationRequested();
            Election.Start();
            return Task.FromResult(true);
        }

        public Task StopAsync(CancellationToken cancellationToken) =>
            Election.StopAsync(cancellationToken);

        public Task UpdateHealthAsync(bool isHealthy, IDictionary<string, string> metadata = null)
        {
            Election.ReportHealth(isHealthy ? 1000 : 0,
                metadata == null ? null : FlatJson.Write(metadata));
            return Task.FromResult(true);
        }

        public Task<IEnumerable<CandidateHealth>> GetCandidateHealthAsync(
            CancellationToken cancellationToken) => Task.Run(() =>
            store.Candidates(name).Select(c => new CandidateHealth
            {
                CandidateId = c.Id, IsHealthy = c.IsHealthy, HealthScore = c.Score / 1000.0,
                IsLeader = c.Leads, LastUpdated = c.Updated,
                Metadata = FlatJson.Read(c.Metadata),
            }).ToList().AsEnumerable(), cancellationToken);
    }

    // Healthy: leads, or sees a leader. Degraded: sees none. Unhealthy: can't be asked, or the store
    // fails, which only an election of baton tells. Takes those of others, too.
    public sealed class LeaderElectionHealthCheck : IHealthCheck
    {
        readonly ILeaderElection election;

        public LeaderElectionHealthCheck(ILeaderElection election)
        {
            this.election = election;
        }

        public Task<HealthCheckResult> CheckHealthAsync(HealthCheckContext context,
            CancellationToken cancellationToken = default(CancellationToken)) =>
            Task.FromResult(Check());

        HealthCheckResult Check()
        {
            try
            {
                var known = election as BatonLeaderElection;
                if (known != null && known.Election.Condition == Condition.Unhealthy)
                    return HealthCheckResult.Unhealthy("the store fails");
                if (election.IsLeader)
                    return HealthCheckResult.Healthy("this instance leads");
                string leader = election.CurrentLeaderId;
                return string.IsNullOrEmpty(leader)
                    ? HealthCheckResult.Degraded("no leader is seen")
                    : HealthCheckResult.Healthy(leader + " leads");
            }
            catch (Exception error)
            {
                return HealthCheckResult.Unhealthy("the election can't be asked: " + error.Message);
            }
        }
    }

    // Contends from the start of the host to its stop.
    public sealed class LeaderElectionHostedService : IHostedService
    {
        readonly ILeaderElection election;

        public LeaderElectionHostedService(ILeaderElection election)
        {
            this.election = election;
        }

        public Task StartAsync(CancellationToken cancellationToken) =>
            election.StartAsync(cancellationToken);

        public Task StopAsync(CancellationToken cancellationToken) =>
            election.StopAsync(cancellationToken);
    }

    public static class Registration
    {
        // Takes the place of AddSqlServerLeaderElection, AddRedisLeaderElection and the others: the
        // URL says which store it is.
        public static IServiceCollection AddBatonLeaderElection(this IServiceCollection services,
            string url, string resource, Action<LeaderElectionOptions> configure = null) =>
            services.AddBatonLeaderElectionFactory(url, configure).AddSingleton<ILeaderElection>(
                provider => ((ILeaderElectionFactory)provider.GetService(
                    typeof(ILeaderElectionFactory))).CreateElection(resource));

        // Takes the place of AddExcaliburKubernetesLeaderElectionHostedService, on any store: the
        // election starts and stops with the host.
        public static IServiceCollection AddBatonLeaderElectionHostedService(
            this IServiceCollection services, string url, string resource,
            Action<LeaderElectionOptions> configure = null) =>
            services.AddBatonLeaderElection(url, resource, configure).AddSingleton<IHostedService>(
                provider => new LeaderElectionHostedService(Registered(provider)));

        public static IHealthChecksBuilder AddLeaderElectionHealthCheck(
            this IHealthChecksBuilder builder, string name = "leader_election",
            HealthStatus? failureStatus = null, IEnumerable<string> tags = null) =>
            builder.Add(new HealthCheckRegistration(name,
                provider => new LeaderElectionHealthCheck(Registered(provider)), failureStatus,
                tags));

        static ILeaderElection Registered(IServiceProvider provider) =>
            (ILeaderElection)provider.GetService(typeof(ILeaderElection));

        public static IServiceCollection AddBatonLeaderElectionFactory(
            this IServiceCollection services, string url,
            Action<LeaderElectionOptions> configure = null)
        {
            var options = new LeaderElectionOptions();
            configure?.Invoke(options);
            return services.AddSingleton<ILeaderElectionFactory>(
                provider => new BatonLeaderElectionFactory(url, options));
        }
    }
}
