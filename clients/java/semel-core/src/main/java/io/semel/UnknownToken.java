package io.semel;

/** The token was never issued, or has ended. */
public class UnknownToken extends SemelException {
  private static final long serialVersionUID = 1L;

  public UnknownToken(String message) {
    super(message);
  }
}
