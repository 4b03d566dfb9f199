package io.semel;

import java.lang.reflect.Type;
import java.nio.charset.StandardCharsets;

/** Texts, bytes, numbers, flags and nothing: what needs no library. */
public final class PlainCodec implements Codec {
  @Override
  public byte[] encode(Object value) {
    if (value == null) return new byte[0];
    if (value instanceof byte[]) return (byte[]) value;
    if (value instanceof String || value instanceof Long || value instanceof Integer
        || value instanceof Boolean) {
      return value.toString().getBytes(StandardCharsets.UTF_8);
    }
    throw new IllegalArgumentException(
        value.getClass().getName() + " needs a JSON library, or a Codec of yours");
  }

  @Override
  public Object decode(byte[] bytes, Type type) {
    String text = new String(bytes, StandardCharsets.UTF_8);
    if (type == byte[].class) return bytes;
    if (type == Long.class || type == long.class) return Long.valueOf(text);
    if (type == Integer.class || type == int.class) return Integer.valueOf(text);
    if (type == Boolean.class || type == boolean.class) return Boolean.valueOf(text);
    if (type == Void.class || type == void.class) return null;
    if (type == String.class || type == Object.class) return text;
    throw new IllegalArgumentException(type + " needs a JSON library, or a Codec of yours");
  }
}
