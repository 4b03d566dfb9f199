package io.semel;

/** The node did not answer in time. Nothing was started, unless the caller chose to run unprotected. */
public class Unreachable extends SemelException {
  private static final long serialVersionUID = 1L;

  public Unreachable(String message, Throwable cause) {
    super(message, cause);
  }
}
