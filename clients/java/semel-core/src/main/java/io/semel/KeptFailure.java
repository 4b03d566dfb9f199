package io.semel;

/** The work failed for good; repeats are answered with the failure. */
public class KeptFailure extends SemelException {
  private static final long serialVersionUID = 1L;
  private final boolean poison;
  private final String failure;
  private final long attempts;

  public KeptFailure(String message, String failure, boolean poison, long attempts) {
    super(message);
    this.failure = failure;
    this.poison = poison;
    this.attempts = attempts;
  }

  /** What the last owner said; may be empty. */
  public String failure() {
    return failure;
  }

  /** Whether it was tried as often as the namespace allows. */
  public boolean poison() {
    return poison;
  }

  public long attempts() {
    return attempts;
  }
}
