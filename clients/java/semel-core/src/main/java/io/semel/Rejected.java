package io.semel;

/** The work was not started: another owner is doing it, it is done already, or there is no room. */
public class Rejected extends SemelException {
  private static final long serialVersionUID = 1L;

  /** Why it was not started. */
  public enum Reason {
    /** Another owner is doing it; ask again later. */
    IN_FLIGHT,
    /** It is done, and duplicates of it are refused (Duplicate.REJECT). */
    DONE,
    /** It is done, but its result was not kept or cannot be read. */
    RESULT_GONE,
    /** This very thread is doing it: a guarded call inside another one of the same key. */
    NESTED,
    /** The node has no room for another claim or waiter; ask again later. */
    BUSY,
    /** It was first sent before the namespace's window. */
    TOO_OLD,
    /** It claims to be sent later than the namespace allows. */
    TOO_NEW
  }

  private final Reason reason;
  private final long retryAfterMs;

  public Rejected(Reason reason, String message, long retryAfterMs) {
    super(message);
    this.reason = reason;
    this.retryAfterMs = retryAfterMs;
  }

  public Reason reason() {
    return reason;
  }

  /** After how many ms to ask again; 0 if that changes nothing. */
  public long retryAfterMs() {
    return retryAfterMs;
  }
}
