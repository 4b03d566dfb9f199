package io.semel;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A result as it is stored: who made it, a status and headers if it answered a request, and the
 * value's bytes. Text with a head as of HTTP, so that people can read it:
 *
 * <pre>
 * semel/1 Orders.create
 * status: 201
 * header: Location: /orders/7
 *
 * {"id":7}
 * </pre>
 */
public final class Envelope {
  private static final byte[] MAGIC = "semel/1 ".getBytes(StandardCharsets.US_ASCII);
  private final String operation;
  private final byte[] body;
  private final Map<String, List<String>> headers = new LinkedHashMap<>();
  private int status;
  private String dropped;
  private String form = "";

  public Envelope(String operation, byte[] body) {
    this.operation = operation;
    this.body = body;
  }

  /** Of work that is done, but whose result cannot be kept. */
  public static Envelope dropped(String operation, String why) {
    Envelope made = new Envelope(operation, new byte[0]);
    made.dropped = oneLine(why);
    return made;
  }

  public String operation() {
    return operation;
  }

  public byte[] body() {
    return body;
  }

  /** Why the result was not kept, or null. */
  public String dropped() {
    return dropped;
  }

  /** Whether the value is null; no codec's bytes say that. */
  public boolean isNull() {
    return form.equals("null");
  }

  /** Whether it is to be read without a type, as it was written for a caller over HTTP. */
  public boolean isDocument() {
    return form.equals("document");
  }

  Envelope form(String word) {
    form = word;
    return this;
  }

  /** 0 if there is none. */
  public int status() {
    return status;
  }

  public Map<String, List<String>> headers() {
    return Collections.unmodifiableMap(headers);
  }

  public Envelope status(int value) {
    status = value;
    return this;
  }

  public Envelope header(String name, String value) {
    if (!name.isEmpty() && name.indexOf(':') < 0) {
      headers.computeIfAbsent(oneLine(name), n -> new ArrayList<String>()).add(oneLine(value));
    }
    return this;
  }

  private static String oneLine(String text) {
    return text == null ? "" : text.replaceAll("[\\r\\n]+", " ");
  }

  public byte[] encode() {
    StringBuilder head = new StringBuilder("semel/1 ").append(oneLine(operation)).append('\n');
    if (status != 0) head.append("status: ").append(status).append('\n');
    if (!form.isEmpty()) head.append("form: ").append(form).append('\n');
    if (dropped != null) head.append("dropped: ").append(dropped).append('\n');
    for (Map.Entry<String, List<String>> each : headers.entrySet()) {
      for (String value : each.getValue()) {
        head.append("header: ").append(each.getKey()).append(": ").append(value).append('\n');
      }
    }
    byte[] front = head.append('\n').toString().getBytes(StandardCharsets.UTF_8);
    byte[] all = Arrays.copyOf(front, front.length + body.length);
    System.arraycopy(body, 0, all, front.length, body.length);
    return all;
  }

  /** Bytes without a head, as another language's client stored them, are a body alone. */
  public static Envelope decode(byte[] bytes) {
    for (int i = 0; i < MAGIC.length; ++i) {
      if (i >= bytes.length || bytes[i] != MAGIC[i]) return new Envelope("", bytes);
    }
    int end = 0;
    while (end + 1 < bytes.length && !(bytes[end] == '\n' && bytes[end + 1] == '\n')) ++end;
    if (end + 1 >= bytes.length) return new Envelope("", bytes);
    String[] lines = new String(bytes, 0, end, StandardCharsets.UTF_8).split("\n");
    Envelope made = new Envelope(lines[0].substring(MAGIC.length),
        Arrays.copyOfRange(bytes, end + 2, bytes.length));
    for (int i = 1; i < lines.length; ++i) {
      int colon = lines[i].indexOf(": ");
      if (colon < 0) continue;
      String value = lines[i].substring(colon + 2);
      if (lines[i].startsWith("status: ")) made.status = Integer.parseInt(value);
      if (lines[i].startsWith("dropped: ")) made.dropped = value;
      if (lines[i].startsWith("form: ")) made.form = value;
      int second = value.indexOf(": ");
      if (lines[i].startsWith("header: ") && second > 0) {
        made.header(value.substring(0, second), value.substring(second + 2));
      }
    }
    return made;
  }
}
