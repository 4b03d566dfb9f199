package io.semel.spring.mq;

import org.springframework.kafka.listener.DefaultErrorHandler;
import org.springframework.util.backoff.BackOff;
import org.springframework.util.backoff.FixedBackOff;

/** Spring for Apache Kafka: its error handler seeks back and tries again, but not dead letters. */
public final class KafkaVerdicts {
  private static final long PAUSE_MS = 1_000;

  private KafkaVerdicts() {}

  /**
   * Dead letters go to the handler's recoverer at once. What is to come again does so each second,
   * for as long as it takes: the handler's own back-off gives a message up after ten tries without a
   * pause, also one that only waits for another consumer or for the node. Other exceptions keep it.
   */
  public static DefaultErrorHandler configure(DefaultErrorHandler handler) {
    handler.addNotRetryableExceptions(DeadLetter.class);
    handler.setBackOffFunction((record, thrown) -> isLater(thrown) ? later() : null);
    return handler;
  }

  private static BackOff later() {
    return new FixedBackOff(PAUSE_MS, FixedBackOff.UNLIMITED_ATTEMPTS);
  }

  private static boolean isLater(Throwable thrown) {
    for (Throwable each = thrown; each != null; each = each.getCause()) {
      if (each instanceof RetryLater) return true;
    }
    return false;
  }
}
