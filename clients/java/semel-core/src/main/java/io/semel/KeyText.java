package io.semel;

import java.util.Map;

/**
 * Keys of several fields that never meet: a value cannot look like another field, and one that is
 * null or empty is refused. The same keys as of format_key and composite_key in other languages.
 */
public final class KeyText {
  private static final String SEPARATORS = ":|/,;#=&{}\\ ";

  private KeyText() {}

  /** `order:{shop}:{id}` with its fields: separators in a value become %XX. */
  public static String format(String format, Map<String, ?> fields) {
    if (format.isEmpty()) throw new InvalidKey("the format is empty");
    StringBuilder key = new StringBuilder();
    boolean parted = true;
    for (int at = 0; at < format.length();) {
      char each = format.charAt(at);
      boolean isBrace = each == '{' || each == '}';
      boolean isDouble = isBrace && at + 1 < format.length() && format.charAt(at + 1) == each;
      if (!isBrace || isDouble) {
        parted |= SEPARATORS.indexOf(each) >= 0;
        key.append(each);
        at += isDouble ? 2 : 1;
        continue;
      }
      int end = each == '}' ? -1 : format.indexOf('}', at);
      if (end < 0) throw new InvalidKey("a brace without the other in '" + format + "', at " + at);
      String name = format.substring(at + 1, end);
      if (name.isEmpty() || name.indexOf('{') >= 0) {
        throw new InvalidKey("no name in '" + format + "', at " + at);
      }
      if (!parted) {
        throw new InvalidKey("nothing parts '" + name + "' from the name before it: put a blank or "
            + "one of " + SEPARATORS.trim() + " between them");
      }
      if (!fields.containsKey(name)) throw new InvalidKey("there is no field '" + name + "'");
      escape(key, text(name, fields.get(name)));
      parted = false;
      at = end + 1;
    }
    CanonicalJson.checkText(key.toString());
    return key.toString();
  }

  /** Its values with `|` between them; `|` and `\` in a value have a `\` in front. */
  public static String composite(Object... values) {
    if (values.length == 0) throw new InvalidKey("a key of no fields");
    StringBuilder key = new StringBuilder();
    for (int i = 0; i < values.length; ++i) {
      if (i > 0) key.append('|');
      key.append(text(Integer.toString(i), values[i]).replace("\\", "\\\\").replace("|", "\\|"));
    }
    return key.toString();
  }

  private static void escape(StringBuilder key, String value) {
    for (int i = 0; i < value.length(); ++i) {
      char each = value.charAt(i);
      boolean escaped = each < ' ' || each == 0x7f || each == '%' || SEPARATORS.indexOf(each) >= 0;
      if (escaped) {
        key.append(String.format("%%%02X", (int) each));
      } else {
        key.append(each);
      }
    }
  }

  private static String text(String name, Object value) {
    String text;
    try {
      text = of(value);
    } catch (InvalidKey refused) {
      throw new InvalidKey("the field '" + name + "': " + refused.getMessage(), refused);
    }
    if (text == null) throw new InvalidKey("the field '" + name + "' is null");
    if (text.isEmpty()) throw new InvalidKey("the field '" + name + "' is empty");
    return text;
  }

  /**
   * A value as a key: texts as they are, numbers and flags by their canonical text, dates, ids and
   * enums by their text in docs/identity.md, others by the digest of their canonical text. Null for
   * null.
   */
  public static String of(Object value) {
    if (value == null) return null;
    Object tree = new JsonTree().of(value);
    if (tree == null) return null;
    if (tree instanceof String) return (String) tree;
    boolean isShort = tree instanceof Boolean || tree instanceof CanonicalJson.Exact;
    String canonical = CanonicalJson.ofTree(tree);
    return isShort ? canonical : CanonicalJson.digest(canonical);
  }
}
