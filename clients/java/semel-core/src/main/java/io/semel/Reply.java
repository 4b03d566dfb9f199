package io.semel;

import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** A reply that is a map, in either dialect of the protocol: fields by name. */
final class Reply {
  private final Map<String, Object> fields = new HashMap<>();
  private final long askedNanos;

  Reply(Object reply) {
    this(reply, System.nanoTime());
  }

  /** Of a claim whose try began, or whose wait ended, at `askedNanos`. */
  Reply(Object reply, long askedNanos) {
    this.askedNanos = askedNanos;
    if (!(reply instanceof List)) throw new ServerError("ERR not a map: " + text(reply));
    List<?> parts = (List<?>) reply;
    for (int i = 0; i + 1 < parts.size(); i += 2) fields.put(text(parts.get(i)), parts.get(i + 1));
  }

  static String text(Object part) {
    if (part == null) return "";
    return part instanceof byte[] ? new String((byte[]) part, StandardCharsets.UTF_8)
        : part.toString();
  }

  /**
   * The moment from which a lease that was granted lasts for `leaseMs` at least. What an earlier try was
   * granted, whose reply was lost, has run since then: the node says how much of it is left.
   */
  long leaseSinceNanos(long leaseMs) {
    if (!outcome().equals("regranted")) return askedNanos;
    long goneMs = leaseMs - Math.max(0, Math.min(leaseMs, number("remaining_ms")));
    return System.nanoTime() - TimeUnit.MILLISECONDS.toNanos(goneMs);
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
