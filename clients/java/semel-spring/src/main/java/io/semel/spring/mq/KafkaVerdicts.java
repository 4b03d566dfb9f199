package io.semel.spring.mq;

import org.springframework.kafka.listener.DefaultErrorHandler;

/** Spring for Apache Kafka: its error handler seeks back and tries again, but not dead letters. */
public final class KafkaVerdicts {
  private KafkaVerdicts() {}

  /** Dead letters go to the handler's recoverer at once, the others after its back-off. */
  public static DefaultErrorHandler configure(DefaultErrorHandler handler) {
    handler.addNotRetryableExceptions(DeadLetter.class);
    return handler;
  }
}
