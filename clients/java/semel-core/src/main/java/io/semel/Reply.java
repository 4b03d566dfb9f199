package io.semel;

import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** A reply that is a map, in either dialect of the protocol: fields by name. */
final class Reply {
  private final Map<String, Object> fields = new HashMap<>();

  Reply(Object reply) {
    if (!(reply instanceof List)) throw new ServerError("ERR not a map: " + text(reply));
    List<?> parts = (List<?>) reply;
    for (int i = 0; i + 1 < parts.size(); i += 2) fields.put(text(parts.get(i)), parts.get(i + 1));
  }

  static String text(Object part) {
    if (part == null) return "";
    return part instanceof byte[] ? new String((byte[]) part, StandardCharsets.UTF_8)
        : part.toString();
  }

  String outcome() {
    return text("outcome");
  }

  String text(String name) {
    return text(fields.get(name));
  }

  /** 0 if there is none. */
  long number(String name) {
    Object part = fields.get(name);
    if (part instanceof Number) return ((Number) part).longValue();
    String digits = text(part);
    return digits.isEmpty() ? 0 : Long.parseLong(digits);
  }

  boolean flag(String name) {
    Object part = fields.get(name);
    if (part instanceof Boolean) return (Boolean) part;
    String word = text(part);
    return word.equals("1") || word.equals("true");
  }

  /** Null if the field is null or absent. */
  byte[] bytes(String name) {
    Object part = fields.get(name);
    if (part == null) return null;
    return part instanceof byte[] ? (byte[]) part : text(part).getBytes(StandardCharsets.UTF_8);
  }
}
