package io.semel;

/**
 * The work ran, but its lease had ended and another owner had taken over: what this owner did is not
 * on record. A repeat of the call is answered by the other owner's result.
 */
public class LeaseLost extends SemelException {
  private static final long serialVersionUID = 1L;

  public LeaseLost(String message) {
    super(message);
  }
}
