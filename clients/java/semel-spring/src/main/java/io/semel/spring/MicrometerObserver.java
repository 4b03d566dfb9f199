package io.semel.spring;

import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Timer;
import io.semel.Observer;
import java.util.Locale;
import java.util.concurrent.TimeUnit;

/** Timers semel.calls by namespace and outcome. */
public final class MicrometerObserver implements Observer {
  private final MeterRegistry registry;

  public MicrometerObserver(MeterRegistry registry) {
    this.registry = registry;
  }

  @Override
  public void on(Event event, String namespace, long nanos) {
    Timer.builder("semel.calls").description("What became of guarded calls")
        .tag("namespace", namespace).tag("outcome", event.name().toLowerCase(Locale.ROOT))
        .register(registry).record(nanos, TimeUnit.NANOSECONDS);
  }
}
