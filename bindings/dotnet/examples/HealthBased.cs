// HealthBased.cs: a candidate reports how healthy it is. An unhealthy leader steps down, and only
// healthy candidates lead.
using System;
using System.Collections.Generic;
using System.Threading;
using System.Threading.Tasks;
using Baton.Excalibur;
using Microsoft.Extensions.Hosting;

namespace Examples
{
    public sealed class HealthBased : BackgroundService
    {
        readonly IHealthBasedLeaderElection election;
        readonly Func<bool> isHealthy;

        public HealthBased(IHealthBasedLeaderElection election, Func<bool> isHealthy)
        {
            this.election = election;
            this.isHealthy = isHealthy;
        }

        protected override async Task ExecuteAsync(CancellationToken stoppingToken)
        {
            await election.StartAsync(stoppingToken);
            try
            {
                while (!stoppingToken.IsCancellationRequested)
                {
                    await election.UpdateHealthAsync(isHealthy: isHealthy(),
                        metadata: new Dictionary<string, string>
                        {
                            ["cpu"] = "45%", ["queue_depth"] = "12",
                        });
                    await Task.Delay(100, stoppingToken);
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
