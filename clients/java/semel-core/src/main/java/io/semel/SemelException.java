package io.semel;

/** What a guarded call ends with when it neither ran nor was answered from the record. */
public class SemelException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  public SemelException(String message) {
    super(message);
  }

  public SemelException(String message, Throwable cause) {
    super(message, cause);
  }
}
