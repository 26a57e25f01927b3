// LeaderElectionNet.cs: the interface of the package LeaderElection (with LeaderElection.Redis,
// .Postgres and others), with the same members, on baton: a program changes its `using` and its
// registration. What is stronger here: a task that RunTaskIfLeaderAsync runs keeps the leadership
// from passing on before it has ended.
using System;
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
        readonly Store store;
        readonly Election election;

        public BatonLeaderElection(LeaderElectionSettings s)
        {
            store = new Store(s.ConnectionString, new StoreOptions
            {
                Id = s.InstanceId, Lease = s.LockExpiry, Renew = s.RenewInterval,
                Retry = s.RetryInterval,
            });
            election = store.CreateElection(s.LockId != 0 ? s.LockId.ToString() : s.LockKey,
                new ElectionOptions { ReleaseOnStop = s.EnableGracefulShutdown });
            election.Happened += Tell;
        }

        public event EventHandler<bool> LeadershipChanged;
        public event EventHandler<Exception> ErrorOccurred;

        void Tell(object sender, ElectionEventArgs e)
        {
            if (e.Kind == EventKind.Became || e.Kind == EventKind.Lost)
                LeadershipChanged?.Invoke(this, e.Kind == EventKind.Became);
            else if (e.Kind == EventKind.Error)
                ErrorOccurred?.Invoke(this, new InvalidOperationException(e.Text));
        }

        public bool IsLeader => election.Leads;

        public DateTime LastLeadershipRenewal =>
            election.Status.LastRenewal?.UtcDateTime ?? DateTime.MinValue;

        public Task StartAsync(CancellationToken cancellationToken = default(CancellationToken))
        {
            cancellationToken.ThrowIfCancellationRequested();
            election.Start();
            return Task.FromResult(true);
        }

        // Its users pass the token that has just been cancelled: stopping goes on nevertheless.
        public Task StopAsync(CancellationToken cancellationToken = default(CancellationToken)) =>
            election.StopAsync();

        public Task<bool> TryAcquireLeadershipAsync(
            CancellationToken cancellationToken = default(CancellationToken)) => Task.Run(() =>
        {
            Obstacle obstacle;
            election.Start();
            return election.TryAcquire(Patience, out obstacle);
        }, cancellationToken);

        public async Task RunTaskIfLeaderAsync(Func<Task> task,
            CancellationToken cancellationToken = default(CancellationToken))
        {
            cancellationToken.ThrowIfCancellationRequested();
            using (var lead = election.TryEnter())
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

        public void Dispose() => store.Dispose();
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
