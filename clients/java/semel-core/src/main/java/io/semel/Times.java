package io.semel;

import java.time.Duration;

/** Times that a caller gives: none is silently another one. */
final class Times {
  private Times() {}

  /** In ms. Refused with its value: below `least`, negative, or a part of a millisecond alone. */
  static long ms(String what, Duration time, long least) {
    long ms;
    try {
      ms = time.toMillis();
    } catch (ArithmeticException beyond) {
      ms = time.isNegative() ? Long.MIN_VALUE : Long.MAX_VALUE;
    }
    boolean isPart = ms == 0 && !time.isZero();
    if (ms < least || time.isNegative() || isPart) {
      throw new IllegalArgumentException(what + " must be " + (isPart && least == 0 ? "0, or " : "")
          + Math.max(least, isPart ? 1 : 0) + " ms or more, not " + time);
    }
    return ms;
  }
}
