package io.semel;

import java.lang.reflect.Type;

/** Results to bytes and back. Safe for several threads. */
public interface Codec {
  /** Any exception means that the value cannot be kept. */
  byte[] encode(Object value) throws Exception;

  /** encode() of a value that will be read as `type`, such as a list whose elements have subtypes. */
  default byte[] encode(Object value, Type type) throws Exception {
    return encode(value);
  }

  /** What a caller over HTTP is sent: by the application's own settings. */
  default byte[] document(Object value) throws Exception {
    return encode(value);
  }

  /** The value as `type`, which may be generic; Object gives maps, lists, texts and numbers. */
  Object decode(byte[] bytes, Type type) throws Exception;
}
