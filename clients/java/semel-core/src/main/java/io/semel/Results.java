package io.semel;

import java.lang.reflect.Field;
import java.lang.reflect.GenericArrayType;
import java.lang.reflect.Modifier;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.lang.reflect.WildcardType;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;

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

  /** Equal, types included. */
  boolean same(Object a, Object b) throws Exception {
    if (a == null || b == null) return a == b;
    if (a instanceof List && b instanceof List) {
      return sameElements((List<?>) a, (List<?>) b);
    }
    if (a instanceof Map && b instanceof Map) return sameMap((Map<?, ?>) a, (Map<?, ?>) b);
    if (a instanceof Set && b instanceof Set) {
      return typed((Set<?>) a).equals(typed((Set<?>) b));
    }
    if (a.getClass() != b.getClass()) return false;
    if (a instanceof Object[]) {
      return sameElements(Arrays.asList((Object[]) a), Arrays.asList((Object[]) b));
    }
    if (a.getClass().isArray()) return Objects.deepEquals(a, b);
    if (a instanceof Optional) {
      return same(((Optional<?>) a).orElse(null), ((Optional<?>) b).orElse(null));
    }
    if (a.equals(b)) return true;
    Class<?> above = a.getClass().getSuperclass();
    if (above != null && above.getName().equals("java.lang.Record")) return sameRecord(a, b);
    boolean hasEquality = a.getClass().getMethod("equals", Object.class).getDeclaringClass()
        != Object.class;
    return !hasEquality && Arrays.equals(codec.encode(a), codec.encode(b));
  }

  private boolean sameElements(List<?> a, List<?> b) throws Exception {
    if (a.size() != b.size()) return false;
    Iterator<?> other = b.iterator();
    for (Object each : a) {
      if (!same(each, other.next())) return false;
    }
    return true;
  }

  private boolean sameMap(Map<?, ?> a, Map<?, ?> b) throws Exception {
    if (a.size() != b.size() || !typed(a.keySet()).equals(typed(b.keySet()))) return false;
    for (Map.Entry<?, ?> each : a.entrySet()) {
      if (!b.containsKey(each.getKey()) || !same(each.getValue(), b.get(each.getKey()))) {
        return false;
      }
    }
    return true;
  }

  /** Of elements that may have no equality: their classes and bytes, in an order of their own. */
  private List<String> typed(Set<?> values) throws Exception {
    List<String> all = new ArrayList<>(values.size());
    for (Object each : values) {
      all.add(each == null ? "null"
          : each.getClass().getName() + ' ' + CanonicalJson.hex(codec.encode(each)));
    }
    Collections.sort(all);
    return all;
  }

  /** Its equality is that of its components, which may be arrays or have none. */
  private boolean sameRecord(Object a, Object b) throws Exception {
    for (Field each : a.getClass().getDeclaredFields()) {
      if (Modifier.isStatic(each.getModifiers())) continue;
      Beans.Property property = Beans.component(a.getClass(), each);
      if (!same(property.read(a), property.read(b))) return false;
    }
    return true;
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
