// SeveralElections.cs: one process takes part in several elections, and works in those that it leads.
// They share one connection and one lease.
using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;
using Baton.Excalibur;
using Microsoft.Extensions.Hosting;

namespace Examples
{
    public sealed class SeveralElections : BackgroundService
    {
        readonly ILeaderElectionFactory factory;
        readonly IDictionary<string, Func<CancellationToken, Task>> work;

        public SeveralElections(ILeaderElectionFactory factory,
            IDictionary<string, Func<CancellationToken, Task>> work)
        {
            this.factory = factory;
            this.work = work;
        }

        protected override async Task ExecuteAsync(CancellationToken stoppingToken)
        {
            var elections = work.Keys.ToDictionary(name => name,
                name => factory.CreateElection(name));
            await Task.WhenAll(elections.Values.Select(e => e.StartAsync(stoppingToken)));
            try
            {
                while (!stoppingToken.IsCancellationRequested)
                {
                    foreach (var pair in elections)
                        if (pair.Value.IsLeader)
                            await work[pair.Key](stoppingToken);
                    await Task.Delay(20, stoppingToken);
                }
            }
            catch (OperationCanceledException)
            {
            }
            finally
            {
                await Task.WhenAll(elections.Values.Select(
                    e => e.StopAsync(CancellationToken.None)));
            }
        }
    }
}
