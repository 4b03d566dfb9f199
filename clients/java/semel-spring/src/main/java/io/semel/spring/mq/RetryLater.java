package io.semel.spring.mq;

import io.semel.SemelException;

/** The broker is to deliver the message again later. */
public class RetryLater extends SemelException {
  private static final long serialVersionUID = 1L;

  public RetryLater(String message, Throwable cause) {
    super(message, cause);
  }
}
