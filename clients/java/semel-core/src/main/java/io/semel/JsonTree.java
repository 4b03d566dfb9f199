package io.semel;

import java.lang.reflect.Array;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.Collection;
import java.util.Collections;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.Queue;
import java.util.Set;
import java.util.TreeMap;

/**
 * A value as JSON by the table of docs/identity.md. No mapper of the application takes part: its
 * settings differ between applications, and an array of a Set would have the order of a hash table.
 * What is not in the table is an InvalidKey that says where it is.
 */
final class JsonTree {
  private final Deque<String> path = new ArrayDeque<>();
  private final List<Object> open = new ArrayList<>();
  private int values;

  /** Null, Boolean, String, CanonicalJson.Exact, List, or Map by names. */
  Object of(Object value) {
    try {
      return tree(value);
    } catch (InvalidKey refused) {
      if (path.isEmpty()) throw refused;
      StringBuilder where = new StringBuilder();
      path.descendingIterator().forEachRemaining(where::append);
      throw new InvalidKey(where.toString().replaceFirst("^\\.", "") + ": " + refused.getMessage(),
          refused);
    }
  }

  private Object below(String step, Object value) {
    path.push(step);
    Object made = tree(value);
    path.pop();
    return made;
  }

  private Object tree(Object value) {
    if (++values > CanonicalJson.VALUES_MAX) {
      throw new InvalidKey("more than " + CanonicalJson.VALUES_MAX + " values");
    }
    boolean isDone = value == null || value instanceof Boolean
        || value instanceof CanonicalJson.Exact;
    if (isDone) return value;
    if (value instanceof Enum) return ((Enum<?>) value).name();
    Object plain = Scalars.of(value);
    if (plain != null) return plain;
    Object bytes = bytes(value);
    if (bytes != null) return bytes;
    String lazy = Lazy.why(value);
    if (lazy != null) throw new InvalidKey(lazy + " has no value before it has run");
    for (Object each : open) {
      if (each == value) throw new InvalidKey("it contains itself");
    }
    if (open.size() == CanonicalJson.LEVELS_MAX) {
      throw new InvalidKey("more than " + CanonicalJson.LEVELS_MAX + " levels");
    }
    open.add(value);
    Object made = inside(value);
    open.remove(open.size() - 1);
    return made;
  }

  private Object inside(Object value) {
    Wrapped wrapped = Wrapped.of(value);
    if (wrapped != null) return tree(wrapped.value);
    if (value instanceof Map) return map((Map<?, ?>) value);
    if (value instanceof Map.Entry) {
      Map.Entry<?, ?> pair = (Map.Entry<?, ?>) value;
      return list(Arrays.asList(pair.getKey(), pair.getValue()));
    }
    if (value instanceof Set) return Collections.singletonMap("$set", list((Set<?>) value));
    if (value instanceof Collection) return collection((Collection<?>) value);
    if (value.getClass().isArray()) return array(value);
    return bean(value);
  }

  private static Object bytes(Object value) {
    byte[] found = null;
    if (value instanceof byte[]) {
      found = (byte[]) value;
    } else if (value instanceof ByteBuffer) {
      ByteBuffer view = ((ByteBuffer) value).duplicate();
      found = new byte[view.remaining()];
      view.get(found);
    }
    if (found == null) return null;
    return Collections.singletonMap("$bytes", Base64.getEncoder().encodeToString(found));
  }

  private List<Object> list(Collection<?> values) {
    List<Object> made = new ArrayList<>(values.size());
    for (Object each : values) made.add(below("[" + made.size() + "]", each));
    return made;
  }

  private Object collection(Collection<?> value) {
    boolean isOrdered = value instanceof List
        || value instanceof Queue && !(value instanceof PriorityQueue)
            && !value.getClass().getSimpleName().contains("Priority");
    if (!isOrdered) {
      throw new InvalidKey("a " + value.getClass().getName()
          + " may have any order; pass a List or a Set of it");
    }
    return list(value);
  }

  private List<Object> array(Object value) {
    int length = Array.getLength(value);
    List<Object> made = new ArrayList<>(length);
    for (int i = 0; i < length; ++i) made.add(below("[" + i + "]", Array.get(value, i)));
    return made;
  }

  private Object map(Map<?, ?> value) {
    boolean texts = true;
    for (Object each : value.keySet()) {
      texts = texts && (each instanceof CharSequence || each instanceof Character);
    }
    if (texts) {
      Map<String, Object> made = new LinkedHashMap<>();
      value.forEach((name, inside) -> member(made, name.toString(), inside));
      return made;
    }
    List<Object> pairs = new ArrayList<>(value.size());
    value.forEach((key, inside) -> pairs.add(Arrays.asList(below("{key}", key),
        below("[" + CanonicalJson.shown(String.valueOf(key)) + "]", inside))));
    return Collections.singletonMap("$map", pairs);
  }

  private void member(Map<String, Object> made, String name, Object value) {
    CanonicalJson.checkText(name);
    String safe = name.startsWith("$") ? "$" + name : name;
    if (made.containsKey(safe)) throw new InvalidKey("the name '" + name + "' is there twice");
    made.put(safe, below("." + name, value));
  }

  private Object bean(Object value) {
    Beans beans = Beans.of(value.getClass());
    if (beans.only != null) return tree(beans.only.read(value));
    Map<String, Object> made = new TreeMap<>();
    if (beans.typeName != null) made.put(beans.typeProperty, beans.typeName);
    for (Beans.Property each : beans.properties) {
      path.push("." + each.name);
      Object inside = each.read(value);
      path.pop();
      if (each.isAny && inside instanceof Map) {
        ((Map<?, ?>) inside).forEach((name, more) -> member(made, String.valueOf(name), more));
      } else {
        member(made, each.name, inside);
      }
    }
    return made;
  }

  /** Null if it is a number of a class of the application, which is a bean. */
  static Object ofNumber(Number value) {
    if (value instanceof Double) return CanonicalJson.Exact.of(Shortest.of(value.doubleValue()));
    if (value instanceof Float) return CanonicalJson.Exact.of(Shortest.of(value.floatValue()));
    if (value instanceof BigDecimal) return CanonicalJson.Exact.of((BigDecimal) value);
    if (value instanceof BigInteger) return CanonicalJson.Exact.of((BigInteger) value);
    String type = value.getClass().getName();
    boolean isWhole = value instanceof Long || value instanceof Integer || value instanceof Short
        || value instanceof Byte || type.equals("java.util.concurrent.atomic.AtomicInteger")
        || type.equals("java.util.concurrent.atomic.AtomicLong");
    return isWhole ? new CanonicalJson.Exact(Long.toString(value.longValue())) : null;
  }
}
