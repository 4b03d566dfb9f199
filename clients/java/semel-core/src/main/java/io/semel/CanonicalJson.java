package io.semel;

import java.lang.reflect.Array;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Collection;
import java.util.Map;
import java.util.TreeMap;

/** One text for equal values: names in order, no white space, numbers without needless zeros. */
public final class CanonicalJson {
  private static final int DEPTH_MAX = 200;

  private CanonicalJson() {}

  /** Of maps, collections, arrays, texts, numbers, flags and null. */
  public static String of(Object value) {
    StringBuilder out = new StringBuilder();
    write(out, value, 0);
    return out.toString();
  }

  /** 64 hex digits of SHA-256. */
  public static String digest(String text) {
    try {
      byte[] sum = MessageDigest.getInstance("SHA-256")
          .digest(text.getBytes(StandardCharsets.UTF_8));
      StringBuilder hex = new StringBuilder(64);
      for (byte each : sum) {
        hex.append(Character.forDigit((each >> 4) & 15, 16));
        hex.append(Character.forDigit(each & 15, 16));
      }
      return hex.toString();
    } catch (NoSuchAlgorithmException impossible) {
      throw new IllegalStateException(impossible);
    }
  }

  private static void write(StringBuilder out, Object value, int depth) {
    if (depth > DEPTH_MAX) throw new IllegalArgumentException("nested too deeply");
    if (value == null || value instanceof Boolean) {
      out.append(value);
    } else if (value instanceof Number) {
      number(out, (Number) value);
    } else if (value instanceof Map) {
      map(out, (Map<?, ?>) value, depth);
    } else if (value instanceof Collection) {
      char before = '[';
      for (Object each : (Collection<?>) value) {
        write(out.append(before), each, depth + 1);
        before = ',';
      }
      out.append(before == '[' ? "[]" : "]");
    } else if (value.getClass().isArray()) {
      out.append('[');
      for (int i = 0; i < Array.getLength(value); ++i) {
        write(i == 0 ? out : out.append(','), Array.get(value, i), depth + 1);
      }
      out.append(']');
    } else {
      text(out, value.toString());
    }
  }

  private static void number(StringBuilder out, Number value) {
    if (value instanceof Double || value instanceof Float) {
      double plain = value.doubleValue();
      if (Double.isNaN(plain) || Double.isInfinite(plain)) {
        text(out, value.toString());
        return;
      }
    }
    BigDecimal exact = value instanceof BigInteger ? new BigDecimal((BigInteger) value)
        : new BigDecimal(value.toString());
    exact = exact.signum() == 0 ? BigDecimal.ZERO : exact.stripTrailingZeros();
    out.append(exact);
  }

  private static void map(StringBuilder out, Map<?, ?> value, int depth) {
    Map<String, Object> sorted = new TreeMap<>();
    for (Map.Entry<?, ?> each : value.entrySet()) {
      sorted.put(String.valueOf(each.getKey()), each.getValue());
    }
    char before = '{';
    for (Map.Entry<String, Object> each : sorted.entrySet()) {
      text(out.append(before), each.getKey());
      write(out.append(':'), each.getValue(), depth + 1);
      before = ',';
    }
    out.append(before == '{' ? "{}" : "}");
  }

  private static void text(StringBuilder out, String value) {
    out.append('"');
    for (int i = 0; i < value.length(); ++i) {
      char each = value.charAt(i);
      if (each == '"' || each == '\\') {
        out.append('\\').append(each);
      } else if (each < ' ') {
        out.append(String.format("\\u%04x", (int) each));
      } else {
        out.append(each);
      }
    }
    out.append('"');
  }
}
