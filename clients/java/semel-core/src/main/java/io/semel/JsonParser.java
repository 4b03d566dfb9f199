package io.semel;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** JSON by RFC 8259 and no more, with its numbers as they are written. */
final class JsonParser {
  private final String text;
  private int at;
  private int values;

  private JsonParser(String text) {
    this.text = text;
  }

  /** Null, Boolean, String, CanonicalJson.Exact, List, or Map by names. */
  static Object parse(String text) {
    if (text.length() > CanonicalJson.TEXT_BYTES_MAX
        || CanonicalJson.bytes(text).length > CanonicalJson.TEXT_BYTES_MAX) {
      throw new InvalidKey("JSON of more than " + CanonicalJson.TEXT_BYTES_MAX + " bytes");
    }
    JsonParser parser = new JsonParser(text);
    Object value = parser.value(0);
    parser.blanks();
    if (parser.at < text.length()) throw parser.wrong("nothing may follow the value");
    return value;
  }

  private InvalidKey wrong(String what) {
    return new InvalidKey("no JSON: " + what + ", at " + at);
  }

  private void blanks() {
    while (at < text.length() && " \t\n\r".indexOf(text.charAt(at)) >= 0) ++at;
  }

  private char peek() {
    if (at == text.length()) throw wrong("it ends too early");
    return text.charAt(at);
  }

  private boolean takes(char expected) {
    if (at == text.length() || text.charAt(at) != expected) return false;
    ++at;
    return true;
  }

  private Object value(int level) {
    if (++values > CanonicalJson.VALUES_MAX) {
      throw wrong("more than " + CanonicalJson.VALUES_MAX + " values");
    }
    blanks();
    char first = peek();
    if (first == '"') return string();
    if (first != '{' && first != '[') return first == '-' || isDigit(first) ? number() : word();
    if (level == CanonicalJson.LEVELS_MAX) {
      throw wrong("more than " + CanonicalJson.LEVELS_MAX + " levels");
    }
    ++at;
    return first == '{' ? object(level + 1) : array(level + 1);
  }

  private Object word() {
    for (String each : new String[] {"null", "true", "false"}) {
      if (!text.startsWith(each, at)) continue;
      at += each.length();
      return each.equals("null") ? null : (Object) each.equals("true");
    }
    throw wrong("a value is missing");
  }

  private List<Object> array(int level) {
    List<Object> made = new ArrayList<>();
    blanks();
    if (takes(']')) return made;
    while (true) {
      made.add(value(level));
      blanks();
      if (takes(']')) return made;
      if (!takes(',')) throw wrong("',' or ']' is missing");
    }
  }

  private Map<String, Object> object(int level) {
    Map<String, Object> made = new LinkedHashMap<>();
    blanks();
    if (takes('}')) return made;
    while (true) {
      blanks();
      if (peek() != '"') throw wrong("a name is missing");
      String name = string();
      blanks();
      if (!takes(':')) throw wrong("':' is missing");
      if (made.containsKey(name)) throw wrong("the name '" + name + "' is there twice");
      made.put(name, value(level));
      blanks();
      if (takes('}')) return made;
      if (!takes(',')) throw wrong("',' or '}' is missing");
    }
  }

  private static boolean isDigit(char each) {
    return each >= '0' && each <= '9';
  }

  private void digits() {
    int from = at;
    while (at < text.length() && isDigit(text.charAt(at))) ++at;
    if (at == from) throw wrong("a digit is missing");
  }

  private CanonicalJson.Exact number() {
    int from = at;
    takes('-');
    if (!takes('0')) digits();
    if (takes('.')) digits();
    if (takes('e') || takes('E')) {
      if (!takes('+')) takes('-');
      digits();
    }
    return new CanonicalJson.Exact(text.substring(from, at));
  }

  private String string() {
    StringBuilder made = new StringBuilder();
    ++at;
    while (true) {
      char each = peek();
      ++at;
      if (each == '"') break;
      if (each < ' ') throw wrong("a control character in a text");
      made.append(each == '\\' ? escaped() : each);
    }
    CanonicalJson.checkText(made.toString());
    return made.toString();
  }

  private char escaped() {
    char each = peek();
    ++at;
    int known = "bfnrt\"\\/".indexOf(each);
    if (known >= 0) return "\b\f\n\r\t\"\\/".charAt(known);
    if (each != 'u' || at + 4 > text.length()) throw wrong("no such escape");
    int code = 0;
    for (int end = at + 4; at < end; ++at) {
      char digit = text.charAt(at);
      int number = digit < 128 ? Character.digit(digit, 16) : -1;
      if (number < 0) throw wrong("no hexadecimal digit");
      code = code * 16 + number;
    }
    return (char) code;
  }
}
