package io.semel;

/** The key was used before for another payload, or by another method. */
public class Mismatch extends SemelException {
  private static final long serialVersionUID = 1L;

  public Mismatch(String message) {
    super(message);
  }
}
