package io.semel;

/** Its owner went silent or does not know the outcome; it runs again only after SEMEL.RESOLVE. */
public class InDoubt extends SemelException {
  private static final long serialVersionUID = 1L;

  public InDoubt(String message) {
    super(message);
  }
}
