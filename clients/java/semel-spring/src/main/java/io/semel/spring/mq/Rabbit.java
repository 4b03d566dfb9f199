package io.semel.spring.mq;

import org.springframework.amqp.AmqpRejectAndDontRequeueException;
import org.springframework.amqp.ImmediateRequeueAmqpException;

/** Spring AMQP: its container requeues or rejects by the class of the exception. */
final class Rabbit {
  private Rabbit() {}

  static RuntimeException later(String text, Throwable cause) {
    return new ImmediateRequeueAmqpException(text, cause);
  }

  static RuntimeException deadLetter(String text, Throwable cause) {
    return new AmqpRejectAndDontRequeueException(text, cause);
  }
}
