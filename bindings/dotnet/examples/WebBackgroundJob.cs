// WebBackgroundJob.cs: a web application hosts a background job; of its many instances one runs it.
using System;
using System.Threading;
using System.Threading.Tasks;
using Baton.MutexLeaderElection;
using Microsoft.Extensions.Hosting;

namespace Examples
{
    public sealed class WebBackgroundJob : IHostedService
    {
        readonly ILeaderElection election;
        readonly Func<CancellationToken, Task> worker;
        readonly CancellationTokenSource stopping = new CancellationTokenSource();
        Task running;

        public WebBackgroundJob(ILeaderElection election, Func<CancellationToken, Task> worker)
        {
            this.election = election;
            this.worker = worker;
        }

        // The host waits for this: so it returns, and the election goes on.
        public Task StartAsync(CancellationToken cancellationToken)
        {
            running = election.RunTaskWhenElectedLeaderAsync(worker, stopping.Token);
            return Task.FromResult(true);
        }

        public async Task StopAsync(CancellationToken cancellationToken)
        {
            stopping.Cancel();
            await running;
        }
    }
}
