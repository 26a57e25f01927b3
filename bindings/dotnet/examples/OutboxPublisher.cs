// OutboxPublisher.cs: one instance publishes the messages that transactions have left in an outbox.
// What a message was published by (the term) goes with it, so that a receiver can refuse the past.
using System;
using System.Collections.Generic;
using System.Threading;
using System.Threading.Tasks;
using Baton;
using Baton.Hosting;

namespace Examples
{
    public interface IOutbox
    {
        Task<IList<string>> GetPendingAsync(int max, CancellationToken token);
        Task MarkAsPublishedAsync(string message, CancellationToken token);
    }

    public sealed class OutboxPublisher : LeaderService
    {
        readonly IOutbox outbox;
        readonly Func<string, ulong, Task> publish;

        public OutboxPublisher(Election election, IOutbox outbox, Func<string, ulong, Task> publish)
            : base(election)
        {
            this.outbox = outbox;
            this.publish = publish;
        }

        protected override async Task LeadAsync(Lead lead, CancellationToken token)
        {
            while (lead.Leads)
            {
                foreach (string message in await outbox.GetPendingAsync(100, token))
                {
                    if (!lead.Leads)
                        return;
                    await publish(message, lead.Term);
                    await outbox.MarkAsPublishedAsync(message, token);
                }
                await Task.Delay(TimeSpan.FromMilliseconds(100), token);
            }
        }
    }
}
