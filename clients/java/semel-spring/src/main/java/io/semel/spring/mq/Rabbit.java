package io.semel.spring.mq;

import org.springframework.amqp.AmqpRejectAndDontRequeueException;
import org.springframework.amqp.ImmediateRequeueAmqpException;

/** Spring AMQP: its container requeues or rejects by the class of the exception. */
final class Rabbit {
  private static final long PAUSE_MS_MAX = 1_000;

  private Rabbit() {}

  /**
   * Waits before it answers, 1 s at most: RabbitMQ delivers what is requeued at once, so a message
   * that another consumer holds would go back and forth thousands of times a second.
   */
  static RuntimeException later(String text, Throwable cause, long retryAfterMs) {
    try {
      Thread.sleep(Math.min(PAUSE_MS_MAX, retryAfterMs));
    } catch (InterruptedException ending) {
      Thread.currentThread().interrupt();
    }
    return new ImmediateRequeueAmqpException(text, cause);
  }

  static RuntimeException deadLetter(String text, Throwable cause) {
    return new AmqpRejectAndDontRequeueException(text, cause);
  }
}
