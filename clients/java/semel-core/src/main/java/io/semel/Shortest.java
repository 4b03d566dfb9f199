package io.semel;

import java.math.BigDecimal;
import java.math.MathContext;
import java.math.RoundingMode;
import java.util.function.Predicate;

/**
 * The shortest decimal number that gives a floating-point value back, and of those the closest.
 * Double.toString is that from JDK 19 on; before, 2.0E-3 and others had digits too many.
 */
final class Shortest {
  private static final int DOUBLE_DIGITS_MAX = 17;
  private static final int FLOAT_DIGITS_MAX = 9;

  private Shortest() {}

  static BigDecimal of(double value) {
    if (Double.isNaN(value) || Double.isInfinite(value)) throw new InvalidKey("it is " + value);
    if (value == Math.rint(value) && Math.abs(value) < 1L << 53) {
      return BigDecimal.valueOf((long) value);
    }
    return shortest(new BigDecimal(value), DOUBLE_DIGITS_MAX,
        each -> Double.parseDouble(each.toString()) == value);
  }

  static BigDecimal of(float value) {
    if (Float.isNaN(value) || Float.isInfinite(value)) throw new InvalidKey("it is " + value);
    if (value == 0) return BigDecimal.ZERO;
    // By its text: BigDecimal.floatValue rounds twice in some releases.
    return shortest(new BigDecimal(value), FLOAT_DIGITS_MAX,
        each -> Float.parseFloat(each.toString()) == value);
  }

  private static BigDecimal shortest(BigDecimal exact, int most, Predicate<BigDecimal> gives) {
    int few = 1;
    int enough = most;
    // What fits into n digits fits into n + 1.
    while (few < enough) {
      int middle = (few + enough) / 2;
      if (rounded(exact, middle, gives) != null) {
        enough = middle;
      } else {
        few = middle + 1;
      }
    }
    BigDecimal found = rounded(exact, few, gives);
    if (found == null) throw new IllegalStateException("not given back: " + exact);
    return found;
  }

  /** The closest number of so many digits that gives the value back, or null. */
  private static BigDecimal rounded(BigDecimal exact, int digits, Predicate<BigDecimal> gives) {
    BigDecimal near = exact.round(new MathContext(digits, RoundingMode.HALF_EVEN));
    if (gives.test(near)) return near;
    // At a power of two the values below are closer than those above.
    RoundingMode other = near.abs().compareTo(exact.abs()) < 0 ? RoundingMode.UP : RoundingMode.DOWN;
    BigDecimal far = exact.round(new MathContext(digits, other));
    return gives.test(far) ? far : null;
  }
}
