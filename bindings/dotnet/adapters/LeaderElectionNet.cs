// LeaderElectionNet.cs: the interface of the package LeaderElection (with LeaderElection.Redis,
// .Postgres and others), with the same members, on baton: a program changes its `using` and its
// registration. What is stronger here: a task that RunTaskIfLeaderAsync runs keeps the leadership
// from passing on before it has ended.
using System;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;
using Microsoft.Extensions.DependencyInjection;

namespace Baton.LeaderElectionNet
{
    public interface ILeaderElection
    {
        event EventHandler<bool> LeadershipChanged;
        event EventHandler<Exception> ErrorOccurred;
        bool IsLeader { get; }
        DateTime LastLeadershipRenewal { get; }
        Task StartAsync(CancellationToken cancellationToken = default(CancellationToken));
        Task StopAsync(CancellationToken cancellationToken = default(CancellationToken));
        Task<bool> TryAcquireLeadershipAsync(
            CancellationToken cancellationToken = default(CancellationToken));
        Task RunTaskIfLeaderAsync(Func<Task> task,
            CancellationToken cancellationToken = default(CancellationToken));
        Task RunTaskIfLeaderAsync(Action action,
            CancellationToken cancellationToken = default(CancellationToken));
    }

    // The settings of all its packages. LockId takes the place of LockKey for PostgreSQL.
    public class LeaderElectionSettings
    {
        public string ConnectionString { get; set; } // a URL of baton
        public string LockKey { get; set; } = "leader_election";
        public long LockId { get; set; }
        public string InstanceId { get; set; }
        public TimeSpan LockExpiry { get; set; } = TimeSpan.FromSeconds(30);
        public TimeSpan RenewInterval { get; set; }
        public TimeSpan RetryInterval { get; set; } = TimeSpan.FromSeconds(5);
        public int MaxRetryAttempts { get; set; } = 3; // baton tries as long as the lease lasts
        public bool EnableGracefulShutdown { get; set; } = true;
    }

    public sealed class BatonLeaderElection : ILeaderElection, IDisposable
    {
        static readonly TimeSpan Patience = TimeSpan.FromSeconds(5);
        readonly LeaderElectionSettings settings;
        // Contends from StartAsync on.
        readonly Election contender;
        // Campaigns only in a try, for those who try without a start. An id belongs to one
        // candidate: this one's has an ending.
        readonly Lazy<Election> trier;
        volatile bool started;

        public BatonLeaderElection(LeaderElectionSettings settings)
        {
            this.settings = settings;
            contender = Make(settings.InstanceId, false);
            trier = new Lazy<Election>(() => Make(
                settings.InstanceId == null ? null : settings.InstanceId + "/try", true));
        }

        Election Make(string id, bool manual)
        {
            var store = new Store(settings.ConnectionString, new StoreOptions
            {
                Id = id, Lease = settings.LockExpiry, Renew = settings.RenewInterval,
                Retry = settings.RetryInterval,
            });
            var election = store.CreateElection(
                settings.LockId != 0 ? settings.LockId.ToString() : settings.LockKey,
                new ElectionOptions
                {
                    ReleaseOnStop = settings.EnableGracefulShutdown, Manual = manual,
                });
            election.Happened += Tell;
            return election;
        }

        Election[] Both => trier.IsValueCreated ? new[] { contender, trier.Value }
            : new[] { contender };

        public event EventHandler<bool> LeadershipChanged;
        public event EventHandler<Exception> ErrorOccurred;

        void Tell(object sender, ElectionEventArgs e)
        {
            if (e.Kind == EventKind.Became || e.Kind == EventKind.Lost)
                LeadershipChanged?.Invoke(this, e.Kind == EventKind.Became);
            else if (e.Kind == EventKind.Error)
                ErrorOccurred?.Invoke(this, new InvalidOperationException(e.Text));
        }

        public bool IsLeader => Both.Any(e => e.Leads);

        public DateTime LastLeadershipRenewal =>
            Both.Max(e => e.Status.LastRenewal?.UtcDateTime ?? DateTime.MinValue);

        public Task StartAsync(CancellationToken cancellationToken = default(CancellationToken))
        {
            cancellationToken.ThrowIfCancellationRequested();
            contender.Start();
            started = true;
            return Task.FromResult(true);
        }

        // Its users pass the token that has just been cancelled: stopping goes on nevertheless.
        public Task StopAsync(CancellationToken cancellationToken = default(CancellationToken))
        {
            started = false;
            return Task.WhenAll(Both.Select(e => e.StopAsync()));
        }

        // Without a start, a failed try leaves nothing behind that contends, and a leadership that
        // was won and lost is not contended for again.
        public Task<bool> TryAcquireLeadershipAsync(
            CancellationToken cancellationToken = default(CancellationToken)) => Task.Run(() =>
        {
            Obstacle obstacle;
            if (IsLeader)
                return true;
            if (started)
                return contender.TryAcquire(Patience, out obstacle);
            trier.Value.Start();
            return trier.Value.TryAcquire(Patience, out obstacle);
        }, cancellationToken);

        public async Task RunTaskIfLeaderAsync(Func<Task> task,
            CancellationToken cancellationToken = default(CancellationToken))
        {
            cancellationToken.ThrowIfCancellationRequested();
            using (var lead = Both.Select(e => e.TryEnter()).FirstOrDefault(l => l != null))
                if (lead != null)
                    await task().ConfigureAwait(false);
        }

        public Task RunTaskIfLeaderAsync(Action action,
            CancellationToken cancellationToken = default(CancellationToken)) =>
            RunTaskIfLeaderAsync(() =>
            {
                action();
                return Task.FromResult(true);
            }, cancellationToken);

        public void Dispose()
        {
            foreach (var election in Both)
                election.Store.Dispose();
        }
    }

    public static class Registration
    {
        // Takes the place of AddRedisLeaderElection, AddPostgresLeaderElection and the others.
        public static IServiceCollection AddBatonLeaderElection(this IServiceCollection services,
            Action<LeaderElectionSettings> configure)
        {
            var settings = new LeaderElectionSettings();
            configure(settings);
            return services.AddSingleton<ILeaderElection>(
                provider => new BatonLeaderElection(settings));
        }
    }
}
