// Projection.cs: one instance applies events to a read model and writes down how far it came. The
// checkpoint takes the term: a leader of the past can't move it.
using System.Collections.Generic;
using System.Threading;
using System.Threading.Tasks;
using Baton;
using Baton.Hosting;

namespace Examples
{
    // A checkpoint that refuses older terms, as a row with a condition would.
    public sealed class Checkpoint
    {
        ulong highest;
        public int Position { get; private set; }

        public bool Save(int position, ulong term)
        {
            lock (this)
            {
                if (term < highest)
                    return false;
                highest = term;
                Position = position;
                return true;
            }
        }
    }

    public sealed class Projection : LeaderService
    {
        readonly IList<string> events;
        readonly Checkpoint checkpoint;
        readonly IList<string> applied;

        public Projection(Election election, IList<string> events, Checkpoint checkpoint,
            IList<string> applied) : base(election)
        {
            this.events = events;
            this.checkpoint = checkpoint;
            this.applied = applied;
        }

        protected override async Task LeadAsync(Lead lead, CancellationToken token)
        {
            for (;;)
            {
                while (checkpoint.Position < events.Count)
                {
                    if (!lead.Leads)
                        return;
                    applied.Add(events[checkpoint.Position]);
                    if (!checkpoint.Save(checkpoint.Position + 1, lead.Term))
                        return;
                }
                await Task.Delay(20, token);
            }
        }
    }
}
