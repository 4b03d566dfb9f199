package io.semel.test;

/** The server answered with an error, which is the message. */
public final class SemelReplyException extends RuntimeException {
  SemelReplyException(String text) {
    super(text);
  }
}
