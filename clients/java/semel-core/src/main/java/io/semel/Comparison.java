package io.semel;

import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;

/**
 * Whether a caller cannot tell two values apart: equal by their own equality, and where a class has
 * none, field by field, private and transient ones too. For one comparison.
 */
final class Comparison {
  private static final int LEVELS_MAX = 1_000;
  private static final int PAIRS_MAX = 1 << 20;
  private final Codec codec;
  /** Compared by their fields, or being so: the same until the contrary is found. */
  private Set<Pair> pairs = new HashSet<>();
  private int level;

  Comparison(Codec codec) {
    this.codec = codec;
  }

  /** Two objects, each by its identity. */
  private static final class Pair {
    final Object a;
    final Object b;

    Pair(Object a, Object b) {
      this.a = a;
      this.b = b;
    }

    @Override
    public boolean equals(Object other) {
      return other instanceof Pair && ((Pair) other).a == a && ((Pair) other).b == b;
    }

    @Override
    public int hashCode() {
      return System.identityHashCode(a) * 31 + System.identityHashCode(b);
    }
  }

  /** Throws if they cannot be compared. */
  boolean same(Object a, Object b) throws Exception {
    if (a == b) return true;
    if (a == null || b == null) return false;
    if (level == LEVELS_MAX) {
      throw new IllegalArgumentException("it has more than " + LEVELS_MAX + " levels");
    }
    ++level;
    boolean same = compared(a, b);
    --level;
    return same;
  }

  private boolean compared(Object a, Object b) throws Exception {
    if (a instanceof List && b instanceof List) {
      return sameBesides(a, b) && sameElements((List<?>) a, (List<?>) b);
    }
    if (a instanceof Map && b instanceof Map) {
      return sameBesides(a, b) && sameMap((Map<?, ?>) a, (Map<?, ?>) b);
    }
    if (a instanceof Set && b instanceof Set) {
      return sameBesides(a, b) && sameSet((Set<?>) a, (Set<?>) b);
    }
    if (a.getClass() != b.getClass()) return false;
    if (a instanceof Object[]) {
      return sameElements(Arrays.asList((Object[]) a), Arrays.asList((Object[]) b));
    }
    if (a.getClass().isArray()) return Objects.deepEquals(a, b);
    if (a instanceof Optional) {
      return same(((Optional<?>) a).orElse(null), ((Optional<?>) b).orElse(null));
    }
    if (a instanceof AtomicReference) {
      return same(((AtomicReference<?>) a).get(), ((AtomicReference<?>) b).get());
    }
    if (a instanceof Collection) {
      return sameBesides(a, b) && sameElements((Collection<?>) a, (Collection<?>) b);
    }
    return sameObject(a, b);
  }

  private boolean sameObject(Object a, Object b) throws Exception {
    Class<?> type = a.getClass();
    Class<?> above = type.getSuperclass();
    if (above != null && above.getName().equals("java.lang.Record")) return sameRecord(a, b);
    Class<?> equality = type.getMethod("equals", Object.class).getDeclaringClass();
    boolean hasEquality = equality != Object.class;
    if (hasEquality && !a.equals(b)) return false;
    if (!Fields.isClosed(type)) return sameFields(a, b, equality);
    // Of the JDK's classes without equality these are what they print.
    boolean isText = a instanceof CharSequence || a instanceof Number || a instanceof AtomicBoolean;
    return hasEquality || isText && a.toString().equals(b.toString());
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

  /** Of the classes below `above`, whose equality knows nothing of theirs. */
  private boolean sameFields(Object a, Object b, Class<?> above) throws Exception {
    if (!pairs.add(new Pair(a, b))) return true;
    if (pairs.size() > PAIRS_MAX) {
      throw new IllegalArgumentException("it has more than " + PAIRS_MAX + " objects");
    }
    for (Class<?> type = a.getClass(); type != above; type = type.getSuperclass()) {
      Field[] fields = Fields.of(type);
      if (fields.length > 0 && Fields.isClosed(type)) {
        throw new IllegalArgumentException("a " + type.getName() + " has no equality");
      }
      for (Field each : fields) {
        if (!same(Fields.read(each, a), Fields.read(each, b))) return false;
      }
    }
    return true;
  }

  /**
   * What a collection has besides its elements: the fields of a class that extends one of the JDK's,
   * such as a page that extends ArrayList. Other classes keep their elements in their fields.
   */
  private boolean sameBesides(Object a, Object b) throws Exception {
    Class<?> kind = a.getClass();
    boolean hasFields = false;
    while (kind != null && !Fields.isClosed(kind)) {
      hasFields |= Fields.of(kind).length > 0;
      kind = kind.getSuperclass();
    }
    if (!hasFields || kind == null || Modifier.isAbstract(kind.getModifiers())
        || kind == Object.class) {
      return true;
    }
    return a.getClass() == b.getClass() && sameFields(a, b, kind);
  }

  private boolean sameElements(Collection<?> a, Collection<?> b) throws Exception {
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

  private List<String> typed(Set<?> values) throws Exception {
    List<String> all = new ArrayList<>(values.size());
    for (Object each : values) all.add(typed(each));
    Collections.sort(all);
    return all;
  }

  /** Class and bytes of an element, which may have no equality. */
  private String typed(Object value) throws Exception {
    return value == null ? "null"
        : value.getClass().getName() + ' ' + CanonicalJson.hex(codec.encode(value));
  }

  /** Of those with the same bytes each is the same as one of the others. */
  private boolean sameSet(Set<?> a, Set<?> b) throws Exception {
    if (a.size() != b.size()) return false;
    Map<String, List<Object>> others = new HashMap<>();
    for (Object each : b) others.computeIfAbsent(typed(each), t -> new ArrayList<>()).add(each);
    for (Object each : a) {
      List<Object> alike = others.get(typed(each));
      if (alike == null || !takeSame(each, alike)) return false;
    }
    return true;
  }

  private boolean takeSame(Object value, List<Object> alike) throws Exception {
    for (Iterator<Object> each = alike.iterator(); each.hasNext();) {
      Set<Pair> before = alike.size() == 1 ? pairs : new HashSet<>(pairs);
      if (same(value, each.next())) {
        each.remove();
        return true;
      }
      pairs = before;
    }
    return false;
  }
}
