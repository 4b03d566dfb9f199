package io.semel;

import java.lang.reflect.Type;

/** Results to bytes and back. Safe for several threads. */
public interface Codec {
  /** Any exception means that the value cannot be kept. */
  byte[] encode(Object value) throws Exception;

  /** The value as `type`, which may be generic; Object gives maps, lists, texts and numbers. */
  Object decode(byte[] bytes, Type type) throws Exception;
}
