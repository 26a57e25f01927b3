// MutexLeaderElection.cs: the interface of Ibis.MutexLeaderElection, with the same member, on baton.
// What is stronger here: the task's end, not its cancellation, lets the leadership pass on.
using System;
using System.Threading;
using System.Threading.Tasks;

namespace Baton.MutexLeaderElection
{
    public interface ILeaderElection
    {
        Task RunTaskWhenElectedLeaderAsync(Func<CancellationToken, Task> taskToRun,
            CancellationToken cancellationToken);
    }

    // Where the lock is. Ibis' options name a storage account, a container and a blob; a URL of
    // baton names the store, "azblob://ACCOUNT/CONTAINER" among others.
    public class DistributedLockOptions
    {
        public string Url { get; set; }
        public string Key { get; set; } = "leader";
        public TimeSpan Lease { get; set; }
    }

    public sealed class LeaderElection : ILeaderElection, IDisposable
    {
        readonly Store store;
        readonly Election election;

        public LeaderElection(DistributedLockOptions options)
        {
            store = new Store(options.Url, new StoreOptions { Lease = options.Lease });
            election = store.CreateElection(options.Key);
        }

        // Ends when the token is cancelled and the task has ended, without an exception.
        public async Task RunTaskWhenElectedLeaderAsync(Func<CancellationToken, Task> taskToRun,
            CancellationToken cancellationToken)
        {
            try
            {
                await election.RunAsync((lead, token) => taskToRun(token), cancellationToken)
                    .ConfigureAwait(false);
            }
            catch (OperationCanceledException) when (cancellationToken.IsCancellationRequested)
            {
            }
        }

        public void Dispose() => store.Dispose();
    }
}
