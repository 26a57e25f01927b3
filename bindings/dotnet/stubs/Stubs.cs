// Stubs.cs: the interfaces of Microsoft.Extensions that the hosting part and the adapters implement
// or call, with the members that they use and nothing more. Mono has none of these packages: this
// file lets the rest compile there, and is left out where the packages are (Baton.csproj).
using System;
using System.Collections.Generic;
using System.Threading;
using System.Threading.Tasks;

namespace Microsoft.Extensions.Hosting
{
    public interface IHostedService
    {
        Task StartAsync(CancellationToken cancellationToken);
        Task StopAsync(CancellationToken cancellationToken);
    }

    public abstract class BackgroundService : IHostedService, IDisposable
    {
        Task running;
        CancellationTokenSource stopping;

        protected abstract Task ExecuteAsync(CancellationToken stoppingToken);

        public virtual Task StartAsync(CancellationToken cancellationToken)
        {
            stopping = CancellationTokenSource.CreateLinkedTokenSource(cancellationToken);
            running = ExecuteAsync(stopping.Token);
            return running.IsCompleted ? running : Task.FromResult(true);
        }

        public virtual async Task StopAsync(CancellationToken cancellationToken)
        {
            if (running == null)
                return;
            stopping.Cancel();
            await Task.WhenAny(running, Task.Delay(Timeout.Infinite, cancellationToken))
                .ConfigureAwait(false);
        }

        public virtual void Dispose() => stopping?.Cancel();
    }
}

namespace Microsoft.Extensions.DependencyInjection
{
    public interface IServiceCollection
    {
        void AddSingleton(Type service, Func<IServiceProvider, object> make);
    }

    public static class ServiceCollectionServiceExtensions
    {
        public static IServiceCollection AddSingleton<T>(this IServiceCollection services,
            Func<IServiceProvider, T> make) where T : class
        {
            services.AddSingleton(typeof(T), make);
            return services;
        }
    }

    public interface IHealthChecksBuilder
    {
        IServiceCollection Services { get; }
        IHealthChecksBuilder Add(Diagnostics.HealthChecks.HealthCheckRegistration registration);
    }
}

namespace Microsoft.Extensions.Diagnostics.HealthChecks
{
    public enum HealthStatus { Unhealthy, Degraded, Healthy }

    public struct HealthCheckResult
    {
        public HealthStatus Status { get; private set; }
        public string Description { get; private set; }

        public static HealthCheckResult Healthy(string description = null) =>
            new HealthCheckResult { Status = HealthStatus.Healthy, Description = description };

        public static HealthCheckResult Degraded(string description = null) =>
            new HealthCheckResult { Status = HealthStatus.Degraded, Description = description };

        public static HealthCheckResult Unhealthy(string description = null) =>
            new HealthCheckResult { Status = HealthStatus.Unhealthy, Description = description };
    }

    public sealed class HealthCheckContext
    {
    }

    public interface IHealthCheck
    {
        Task<HealthCheckResult> CheckHealthAsync(HealthCheckContext context,
            CancellationToken cancellationToken = default(CancellationToken));
    }

    public sealed class HealthCheckRegistration
    {
        public HealthCheckRegistration(string name, Func<IServiceProvider, IHealthCheck> factory,
            HealthStatus? failureStatus, IEnumerable<string> tags)
        {
            Name = name;
            Factory = factory;
        }

        public string Name { get; }
        public Func<IServiceProvider, IHealthCheck> Factory { get; }
    }
}
