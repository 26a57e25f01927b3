// LeaderService.cs: a background service whose work runs on the leader only. Derive from it, and
// register it as any hosted service.
using System.Threading;
using System.Threading.Tasks;
using Microsoft.Extensions.Hosting;

namespace Baton.Hosting
{
    public abstract class LeaderService : BackgroundService
    {
        readonly Election election;

        protected LeaderService(Election election)
        {
            this.election = election;
        }

        // Called whenever this instance is elected. The token is cancelled when the leadership
        // ends, or the host stops; the leadership passes on only after the task has ended.
        protected abstract Task LeadAsync(Lead lead, CancellationToken token);

        protected override async Task ExecuteAsync(CancellationToken stoppingToken)
        {
            try
            {
                await election.RunAsync(LeadAsync, stoppingToken).ConfigureAwait(false);
            }
            catch (System.OperationCanceledException) when (stoppingToken.IsCancellationRequested)
            {
            }
        }
    }
}
