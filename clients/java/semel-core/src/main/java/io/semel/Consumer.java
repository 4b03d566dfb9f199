package io.semel;

import java.time.Duration;

/** Handles each message of a broker once. Immutable; safe for several threads. */
public final class Consumer {
  private static final long RETRY_MS = 1_000;
  private final Semel semel;
  private final String namespace;
  private final Duration lease;
  private final int attemptsMax;
  private final Terms terms;

  /** `namespace` is of one consumer: others that handle the same messages need their own. */
  public Consumer(Semel semel, String namespace) {
    this(semel, namespace, Duration.ofSeconds(60), Duration.ofDays(1), 16);
  }

  /** `keep`: how long a message is known; `attemptsMax` tries make it a dead letter. */
  public Consumer(Semel semel, String namespace, Duration lease, Duration keep, int attemptsMax) {
    if (attemptsMax < 1) throw new IllegalArgumentException("attemptsMax must be 1 or more");
    this.semel = semel;
    this.namespace = namespace;
    this.lease = lease;
    this.attemptsMax = attemptsMax;
    terms = Terms.as("message").keep(keep).attempts(attemptsMax);
  }

  /** consume() of the call that it makes. */
  public Verdict consume(String id, Fn<?, ?> handler) {
    if (id == null || id.trim().isEmpty()) return unguarded(handler);
    return consume(semel, Call.of(namespace, id).terms(terms).lease(lease), attemptsMax, handler);
  }

  /** consume() of a handler that answers by a verdict; null is none, so it is as if it had thrown. */
  public Verdict decide(String id, Fn<Verdict, ?> handler) {
    return consume(id, () -> {
      Verdict given = handler.run();
      if (given == null) throw new IllegalStateException("the handler answered null, not a verdict");
      return given;
    });
  }

  private static Verdict unguarded(Fn<?, ?> handler) {
    Wire.LOG.warning("a message without an id is handled unguarded");
    try {
      Verdict given = judged(handler.run());
      return given == null || given.isAck() ? Verdict.ack(true) : given;
    } catch (Exception thrown) {
      return Verdict.later(RETRY_MS, thrown);
    }
  }

  /**
   * The verdict that a handler returned, or null if it just ended. No other type is a verdict: a flag
   * or a number of 0 may well say that it failed, so it is as if the handler had thrown.
   */
  private static Verdict judged(Object value) {
    if (value instanceof Verdict) return (Verdict) value;
    Lazy.check(value);
    boolean isNo = value instanceof Boolean && !(Boolean) value
        || value instanceof Number && ((Number) value).doubleValue() == 0;
    if (isNo) {
      throw new IllegalStateException("the handler answered " + value
          + ", which is no verdict: return a Verdict, or throw");
    }
    return null;
  }

  /**
   * Never throws exceptions: each becomes a verdict. An Error is passed on. A Verdict that the handler
   * returns is obeyed, a future or stream, false and 0 are as if it had thrown, all else is an end.
   */
  public static Verdict consume(Semel semel, Call call, int attemptsMax, Fn<?, ?> handler) {
    Claimed claimed;
    try {
      claimed = semel.claim(call);
    } catch (KeptFailure | Mismatch | InvalidKey | UnknownToken forGood) {
      return Verdict.deadLetter(forGood);
    } catch (Rejected rejected) {
      return rejected.reason() == Rejected.Reason.TOO_OLD ? Verdict.deadLetter(rejected)
          : Verdict.later(Math.max(RETRY_MS / 10, rejected.retryAfterMs()), rejected);
    } catch (RuntimeException refused) {
      return Verdict.later(RETRY_MS, refused);
    }
    if (!claimed.isGranted()) return Verdict.duplicate();
    Work work = claimed.work();
    Verdict given;
    try {
      given = judged(work.run(handler));
    } catch (Exception thrown) {
      return failed(work, attemptsMax, thrown);
    } catch (Error thrown) {
      work.failed(thrown);
      throw thrown;
    }
    if (given != null && !given.isAck()) return obeyed(work, attemptsMax, given);
    try {
      work.complete(new byte[0]);
      return Verdict.ack(false);
    } catch (Unrecorded handled) {
      // The broker takes it as handled, which it was; only a copy could be handled again.
      return Verdict.ack(false);
    } catch (LeaseLost lost) {
      // Another consumer has it; its verdict counts.
      return Verdict.later(RETRY_MS, lost);
    }
  }

  private static Verdict obeyed(Work work, int attemptsMax, Verdict given) {
    boolean last = work.attempt() >= attemptsMax;
    boolean isDead = given.kind() == Verdict.Kind.DEAD_LETTER || last;
    work.fail("the handler answered " + given.kind(),
        isDead ? OnException.KEEP : OnException.RELEASE);
    return isDead ? Verdict.deadLetter(given.cause()) : given;
  }

  private static Verdict failed(Work work, int attemptsMax, Exception thrown) {
    boolean last = work.attempt() >= attemptsMax;
    if (last || work.call().onException == OnException.KEEP) {
      work.fail(thrown.toString(), OnException.KEEP);
      return Verdict.deadLetter(thrown);
    }
    work.failed(thrown);
    return Verdict.later(RETRY_MS, thrown);
  }
}
