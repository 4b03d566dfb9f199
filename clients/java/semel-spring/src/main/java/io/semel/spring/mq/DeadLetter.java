package io.semel.spring.mq;

import io.semel.SemelException;

/** The broker is to put the message aside. */
public class DeadLetter extends SemelException {
  private static final long serialVersionUID = 1L;

  public DeadLetter(String message, Throwable cause) {
    super(message, cause);
  }
}
