package io.semel;

import java.lang.reflect.GenericArrayType;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.lang.reflect.WildcardType;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Whether the bytes of a result give a repeat what the first caller has. */
final class Results {
  private final Codec codec;

  Results(Codec codec) {
    this.codec = codec;
  }

  /** Throws before the claim if values of `type` would be work that is still to be done. */
  static void check(Type type) {
    String lazy = lazy(type);
    if (lazy != null) {
      throw new IllegalArgumentException("a result of type " + type.getTypeName() + " is " + lazy
          + ": what it stands for has not run when the function returns");
    }
  }

  private static String lazy(Type type) {
    if (type instanceof Class) {
      Class<?> plain = (Class<?>) type;
      return plain.isArray() ? lazy(plain.getComponentType()) : Lazy.why(plain);
    }
    List<Type> parts = new ArrayList<>();
    if (type instanceof ParameterizedType) {
      parts.add(((ParameterizedType) type).getRawType());
      parts.addAll(Arrays.asList(((ParameterizedType) type).getActualTypeArguments()));
    } else if (type instanceof GenericArrayType) {
      parts.add(((GenericArrayType) type).getGenericComponentType());
    } else if (type instanceof WildcardType) {
      parts.addAll(Arrays.asList(((WildcardType) type).getUpperBounds()));
    }
    for (Type each : parts) {
      String found = lazy(each);
      if (found != null) return found;
    }
    return null;
  }

  /** Equal, types and fields included. */
  boolean same(Object a, Object b) throws Exception {
    return new Comparison(codec).same(a, b);
  }

  /** Equal for a caller over HTTP, who is sent JSON. */
  boolean sameDocument(Object a, Object b) throws Exception {
    byte[] first = codec.document(a);
    byte[] second = codec.document(b);
    return Arrays.equals(first, second) || json(first).equals(json(second));
  }

  private static String json(byte[] bytes) {
    return CanonicalJson.ofJson(new String(bytes, java.nio.charset.StandardCharsets.UTF_8));
  }
}
