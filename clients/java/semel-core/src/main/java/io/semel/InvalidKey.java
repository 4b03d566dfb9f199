package io.semel;

/** The call has no usable key: null, empty, too long, or its expression fails. */
public class InvalidKey extends SemelException {
  private static final long serialVersionUID = 1L;

  public InvalidKey(String message) {
    super(message);
  }

  public InvalidKey(String message, Throwable cause) {
    super(message, cause);
  }
}
