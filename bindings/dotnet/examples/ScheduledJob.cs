// ScheduledJob.cs: every instance wakes up at the time of the job, and the leader runs it.
using System;
using System.Threading;
using System.Threading.Tasks;
using Baton.Excalibur;
using Microsoft.Extensions.Hosting;

namespace Examples
{
    public sealed class ScheduledJob : BackgroundService
    {
        readonly ILeaderElection election;
        readonly Func<CancellationToken, Task> job;
        readonly TimeSpan period;

        public ScheduledJob(ILeaderElection election, TimeSpan period,
            Func<CancellationToken, Task> job)
        {
            this.election = election;
            this.period = period;
            this.job = job;
        }

        protected override async Task ExecuteAsync(CancellationToken stoppingToken)
        {
            await election.StartAsync(stoppingToken);
            try
            {
                while (!stoppingToken.IsCancellationRequested)
                {
                    if (election.IsLeader)
                        await job(stoppingToken);
                    await Task.Delay(period, stoppingToken);
                }
            }
            catch (OperationCanceledException)
            {
            }
            finally
            {
                await election.StopAsync(CancellationToken.None);
            }
        }
    }
}
