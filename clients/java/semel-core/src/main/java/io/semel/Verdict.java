package io.semel;

/** What a consumer tells its broker about a message. */
public final class Verdict {
  /** What to do with it. */
  public enum Kind {
    /** It was handled now. */
    ACK,
    /** It was handled before. */
    ACK_DUPLICATE,
    /** Another consumer has it, it failed, or the node cannot be asked: deliver it again later. */
    RETRY_LATER,
    /** It failed for good. */
    DEAD_LETTER
  }

  private final Kind kind;
  private final long retryAfterMs;
  private final boolean unguarded;
  private final Throwable cause;

  private Verdict(Kind kind, long retryAfterMs, boolean unguarded, Throwable cause) {
    this.kind = kind;
    this.retryAfterMs = retryAfterMs;
    this.unguarded = unguarded;
    this.cause = cause;
  }

  /** Of a handler that answers by a verdict: it was handled. */
  public static Verdict ack() {
    return ack(false);
  }

  /** Of a handler: deliver it again, at the earliest after this time. */
  public static Verdict retryLater(java.time.Duration after) {
    return later(Times.ms("retryLater", after, 0), null);
  }

  static Verdict ack(boolean unguarded) {
    return new Verdict(Kind.ACK, 0, unguarded, null);
  }

  static Verdict duplicate() {
    return new Verdict(Kind.ACK_DUPLICATE, 0, false, null);
  }

  static Verdict later(long ms, Throwable cause) {
    return new Verdict(Kind.RETRY_LATER, ms, false, cause);
  }

  /** For a message that no handler can take. */
  public static Verdict deadLetter(Throwable cause) {
    return new Verdict(Kind.DEAD_LETTER, 0, false, cause);
  }

  public Kind kind() {
    return kind;
  }

  public boolean isAck() {
    return kind == Kind.ACK || kind == Kind.ACK_DUPLICATE;
  }

  /** A hint for RETRY_LATER. */
  public long retryAfterMs() {
    return retryAfterMs;
  }

  /** It had no id, so nothing kept it from being handled twice. */
  public boolean unguarded() {
    return unguarded;
  }

  /** What was thrown, if that is why. */
  public Throwable cause() {
    return cause;
  }
}
