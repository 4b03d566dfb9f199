package io.semel;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * The canonical form of docs/identity.md: one text for equal values, the same bytes as in every other
 * language. What has none is an InvalidKey.
 */
public final class CanonicalJson {
  static final int TEXT_BYTES_MAX = 16 << 20;
  static final int LEVELS_MAX = 128;
  static final int VALUES_MAX = 1_048_576;
  private static final int PLACES_MAX = 10_000;
  private static final int EXPONENT_DIGITS_MAX = 18;

  /** UTF-8 has the order of code points, which that of UTF-16 is not. */
  static final Comparator<String> BY_UTF8 = (a, b) -> {
    int common = Math.min(a.length(), b.length());
    for (int i = 0; i < common; ++i) {
      char x = a.charAt(i);
      char y = b.charAt(i);
      if (x == y) continue;
      boolean surrogates = Character.isSurrogate(x) != Character.isSurrogate(y);
      return surrogates ? (Character.isSurrogate(x) ? 1 : -1) : Character.compare(x, y);
    }
    return Integer.compare(a.length(), b.length());
  };

  private CanonicalJson() {}

  /** A number by its exact value; `text` is canonical. */
  static final class Exact {
    final String text;

    Exact(String literal) {
      text = number(literal);
    }

    static Exact of(BigInteger value) {
      return new Exact(digits(value));
    }

    static Exact of(BigDecimal value) {
      BigDecimal bare = value.signum() == 0 ? BigDecimal.ZERO : value.stripTrailingZeros();
      return new Exact(digits(bare.unscaledValue()) + "e" + -(long) bare.scale());
    }

    /** More than 2 * PLACES_MAX digits are refused before they are computed, which takes long. */
    private static String digits(BigInteger value) {
      if (value.bitLength() > 66_439) throw new InvalidKey("a number of more than 20000 digits");
      return value.toString();
    }
  }

  /** Of any value, by the table of docs/identity.md. */
  public static String of(Object value) {
    return ofTree(new JsonTree().of(value));
  }

  /** Of a JSON text. */
  public static String ofJson(String json) {
    return ofTree(JsonParser.parse(json));
  }

  /** Of what JsonTree or JsonParser made. */
  static String ofTree(Object tree) {
    StringBuilder out = new StringBuilder();
    write(out, tree);
    if (out.length() > TEXT_BYTES_MAX
        || out.length() > TEXT_BYTES_MAX / 3 && bytes(out.toString()).length > TEXT_BYTES_MAX) {
      throw new InvalidKey("the canonical text has more than " + TEXT_BYTES_MAX + " bytes");
    }
    return out.toString();
  }

  static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  static byte[] sha256(byte[] bytes) {
    try {
      return MessageDigest.getInstance("SHA-256").digest(bytes);
    } catch (NoSuchAlgorithmException impossible) {
      throw new IllegalStateException(impossible);
    }
  }

  static String hex(byte[] bytes) {
    StringBuilder hex = new StringBuilder(2 * bytes.length);
    for (byte each : bytes) {
      hex.append(Character.forDigit((each >> 4) & 15, 16));
      hex.append(Character.forDigit(each & 15, 16));
    }
    return hex.toString();
  }

  /** 64 hex digits of SHA-256. */
  public static String digest(String text) {
    return hex(sha256(bytes(text)));
  }

  private static void write(StringBuilder out, Object tree) {
    if (tree == null || tree instanceof Boolean) {
      out.append(tree);
    } else if (tree instanceof Exact) {
      out.append(((Exact) tree).text);
    } else if (tree instanceof String) {
      text(out, (String) tree);
    } else if (tree instanceof List) {
      array(out, (List<?>) tree);
    } else {
      object(out, (Map<?, ?>) tree);
    }
  }

  private static void array(StringBuilder out, List<?> values) {
    char before = '[';
    for (Object each : values) {
      write(out.append(before), each);
      before = ',';
    }
    out.append(before == '[' ? "[]" : "]");
  }

  private static void object(StringBuilder out, Map<?, ?> members) {
    if (members.size() == 1) {
      Map.Entry<?, ?> only = members.entrySet().iterator().next();
      if (only.getValue() instanceof List) {
        List<?> inside = (List<?>) only.getValue();
        if (only.getKey().equals("$set")) {
          joined(out, "$set", sorted(inside));
          return;
        }
        if (only.getKey().equals("$map") && arePairs(inside)) {
          joined(out, "$map", pairs(inside));
          return;
        }
      }
    }
    char before = '{';
    for (Map.Entry<?, ?> each : new TreeMap<>(members).entrySet()) {
      text(out.append(before), (String) each.getKey());
      write(out.append(':'), each.getValue());
      before = ',';
    }
    out.append(before == '{' ? "{}" : "}");
  }

  private static void joined(StringBuilder out, String name, List<String> texts) {
    out.append("{\"").append(name).append("\":[").append(String.join(",", texts)).append("]}");
  }

  private static String one(Object tree) {
    StringBuilder out = new StringBuilder();
    write(out, tree);
    return out.toString();
  }

  private static List<String> sorted(List<?> values) {
    List<String> texts = new ArrayList<>(values.size());
    for (Object each : values) texts.add(one(each));
    texts.sort(BY_UTF8);
    return texts;
  }

  private static boolean arePairs(List<?> values) {
    for (Object each : values) {
      if (!(each instanceof List) || ((List<?>) each).size() != 2) return false;
    }
    return true;
  }

  private static List<String> pairs(List<?> values) {
    TreeMap<String, String> byKey = new TreeMap<>(BY_UTF8);
    for (Object each : values) {
      String key = one(((List<?>) each).get(0));
      if (byKey.put(key, one(((List<?>) each).get(1))) != null) {
        throw new InvalidKey("the key " + shown(key) + " is there twice");
      }
    }
    List<String> texts = new ArrayList<>(byKey.size());
    byKey.forEach((key, value) -> texts.add('[' + key + ',' + value + ']'));
    return texts;
  }

  static String shown(String text) {
    return text.length() > 40 ? text.substring(0, 40) + ".." : text;
  }

  private static void text(StringBuilder out, String value) {
    out.append('"');
    for (int i = 0; i < value.length(); ++i) {
      char each = value.charAt(i);
      int at = "\b\t\n\f\r\"\\".indexOf(each);
      if (at >= 0) {
        out.append('\\').append("btnfr\"\\".charAt(at));
      } else if (each < ' ') {
        out.append(String.format("\\u%04x", (int) each));
      } else {
        out.append(each);
      }
    }
    out.append('"');
    checkText(value);
  }

  /** As UTF-8 half a pair would become `?`, and two texts one. */
  static void checkText(String value) {
    for (int i = 0; i < value.length(); ++i) {
      char each = value.charAt(i);
      if (!Character.isSurrogate(each)) continue;
      if (!Character.isHighSurrogate(each) || i + 1 == value.length()
          || !Character.isLowSurrogate(value.charAt(i + 1))) {
        throw new InvalidKey(String.format("a text with half a surrogate pair, \\u%04x, at %d",
            (int) each, i));
      }
      ++i;
    }
  }

  /** The canonical text of the number that a JSON literal names. */
  static String number(String literal) {
    boolean negative = literal.startsWith("-");
    int mark = Math.max(literal.indexOf('e'), literal.indexOf('E'));
    String mantissa = literal.substring(negative ? 1 : 0, mark < 0 ? literal.length() : mark);
    String exponent = mark < 0 ? "0" : literal.substring(mark + 1);
    int point = mantissa.indexOf('.');
    int fraction = point < 0 ? 0 : mantissa.length() - point - 1;
    String digits = point < 0 ? mantissa
        : mantissa.substring(0, point) + mantissa.substring(point + 1);
    int from = 0;
    while (from < digits.length() && digits.charAt(from) == '0') ++from;
    int to = digits.length();
    while (to > from && digits.charAt(to - 1) == '0') --to;
    if (from == to) return "0";
    String power = exponent.replaceFirst("^[+-]?0*", "");
    if (power.length() > EXPONENT_DIGITS_MAX) throw beyond(literal);
    long sign = exponent.startsWith("-") ? -1 : 1;
    long last = (power.isEmpty() ? 0 : sign * Long.parseLong(power)) - fraction
        + digits.length() - to;
    long before = to - from + last;  // digits in front of the point
    if (before > PLACES_MAX || last < -PLACES_MAX) throw beyond(literal);
    return (negative ? "-" : "") + laidOut(digits.substring(from, to), (int) before);
  }

  private static InvalidKey beyond(String literal) {
    return new InvalidKey("the number " + shown(literal) + " has more than " + PLACES_MAX
        + " places in front of its point or behind it");
  }

  /** As ECMAScript lays out a double. */
  private static String laidOut(String digits, int before) {
    int count = digits.length();
    if (before > 0 && before <= 21) {
      return before >= count ? digits + zeros(before - count)
          : digits.substring(0, before) + '.' + digits.substring(before);
    }
    if (before > -6 && before <= 0) return "0." + zeros(-before) + digits;
    String power = before > 0 ? "e+" + (before - 1) : "e" + (before - 1);
    return digits.charAt(0) + (count > 1 ? "." + digits.substring(1) : "") + power;
  }

  private static String zeros(int count) {
    return "000000000000000000000".substring(0, count);
  }
}
