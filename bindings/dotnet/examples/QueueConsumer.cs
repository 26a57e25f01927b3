// QueueConsumer.cs: one instance consumes a queue. An item that was taken when the leadership ended
// goes back, since another instance may be at work by then.
using System;
using System.Threading;
using System.Threading.Tasks;
using Baton.Excalibur;
using Microsoft.Extensions.Hosting;

namespace Examples
{
    public interface IWorkQueue
    {
        Task<string> DequeueAsync(CancellationToken token);
        Task RequeueAsync(string item);
    }

    public sealed class QueueConsumer : BackgroundService
    {
        readonly ILeaderElection election;
        readonly IWorkQueue queue;
        readonly Func<string, Task> process;

        public QueueConsumer(ILeaderElection election, IWorkQueue queue, Func<string, Task> process)
        {
            this.election = election;
            this.queue = queue;
            this.process = process;
        }

        protected override async Task ExecuteAsync(CancellationToken stoppingToken)
        {
            await election.StartAsync(stoppingToken);
            try
            {
                while (!stoppingToken.IsCancellationRequested)
                {
                    if (!election.IsLeader)
                    {
                        await Task.Delay(50, stoppingToken);
                        continue;
                    }
                    string item = await queue.DequeueAsync(stoppingToken);
                    if (!election.IsLeader) // asks the clock
                        await queue.RequeueAsync(item);
                    else
                        await process(item);
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
