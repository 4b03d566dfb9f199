package io.semel;

import java.time.Duration;
import java.util.List;

/**
 * So many per period, by key:
 *
 * <pre>
 * RateLimiter calls = semel.rateLimiter(RateLimiter.Kind.SLIDING, 100, Duration.ofMinutes(1));
 * RateLimiter.Rate rate = calls.take("calls:ada");
 * if (rate.allowed()) serve(); else later(rate.retryAfterMs());
 * </pre>
 *
 * <p>A limit is one string of the node's store, under the key itself; DEL resets it. Safe for several
 * threads.
 */
public final class RateLimiter {
  private static final long MAX = 100_000_000;
  private static final Duration PERIOD_MAX = Duration.ofDays(366);

  /** Which calls are allowed. */
  public enum Kind {
    /** At most the limit in a window, which begins with its first call. */
    FIXED,
    /** At most the limit in any span of a period. */
    SLIDING,
    /** As many tokens as the limit, of which `refill` come back in a period, evenly. */
    BUCKET
  }

  /** The answer to a call. */
  public static final class Rate {
    private final Reply reply;

    Rate(Reply reply) {
      this.reply = reply;
    }

    /** False: nothing was taken. */
    public boolean allowed() {
      return reply.outcome().equals("allowed");
    }

    /** Available now, after this call. */
    public long remaining() {
      return reply.number("remaining");
    }

    /** Not allowed: the cost is available then, if no other call takes any. */
    public long retryAfterMs() {
      return reply.number("retry_after_ms");
    }

    /** Until the whole limit is available, if no other call takes any. */
    public long resetAfterMs() {
      return reply.number("reset_after_ms");
    }
  }

  private final Semel semel;
  private final long limit;
  private final List<byte[]> terms;

  /** `refill`: 0 is as many as the limit. */
  RateLimiter(Semel semel, Kind kind, long limit, Duration period, long refill) {
    this.semel = semel;
    this.limit = between("the limit", limit, 1, MAX);
    if (period.compareTo(Duration.ofMillis(1)) < 0 || period.compareTo(PERIOD_MAX) > 0) {
      throw new IllegalArgumentException("the period: " + period + ", 1 ms to 366 days are possible");
    }
    between("refill", refill, 0, MAX);
    if (refill != 0 && kind != Kind.BUCKET) {
      throw new IllegalArgumentException("refill: only a bucket has one");
    }
    boolean hasPart = period.getNano() % 1_000_000 != 0;
    terms = Wire.words(kind.name(), Long.toString(limit),
        Long.toString(period.toMillis() + (hasPart ? 1 : 0)));
    if (refill != 0) terms.addAll(Wire.words("REFILL", Long.toString(refill)));
  }

  private static long between(String name, long value, long least, long most) {
    if (value >= least && value <= most) return value;
    throw new IllegalArgumentException(name + ": " + value + ", " + least + " to " + most
        + " are possible");
  }

  /** take() of 1. */
  public Rate take(String key) {
    return take(key, 1);
  }

  /**
   * Takes `cost` of what the terms allow for the key, or nothing. A cost of 0 takes nothing and is
   * always allowed. A try whose reply was lost may have taken as well: fewer are allowed then, never
   * more.
   *
   * @throws IllegalArgumentException if the cost is negative, or above the limit
   * @throws InvalidKey if the key is null, empty or too long
   * @throws Unreachable if the node does not answer; whether to go on is the caller's choice
   * @throws ServerError if the node refuses the command: the key holds something else
   */
  public Rate take(String key, long cost) {
    if (key == null) throw new InvalidKey("the key is null");
    between("the cost", cost, 0, limit);
    List<byte[]> words = Wire.words("SEMEL.LIMIT", key);
    words.addAll(terms);
    words.addAll(Wire.words("COST", Long.toString(cost)));
    try {
      return new Rate(new Reply(semel.send(words)));
    } catch (ServerError error) {
      if (!error.getMessage().startsWith("ERR key ")) throw error;
      throw new InvalidKey(error.getMessage().substring(4), error);
    }
  }

  /** Takes nothing. */
  public Rate look(String key) {
    return take(key, 0);
  }
}
