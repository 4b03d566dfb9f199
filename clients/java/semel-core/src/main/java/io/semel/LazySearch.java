package io.semel;

import java.lang.reflect.Field;
import java.util.Collection;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Map;
import java.util.Set;

/** Looks for a lazy value in a result, and in what the result holds and shows. For one search. */
final class LazySearch {
  private static final int LEVELS_MAX = 32;
  private static final int VALUES_MAX = 1 << 20;
  /** Trees of JSON: they hold texts and numbers. */
  private static final String[] TREES = {"com.fasterxml.jackson.", "tools.jackson.",
      "com.google.gson.", "org.json."};
  private final Set<Object> seen = Collections.newSetFromMap(new IdentityHashMap<>());

  /** Null if there is none within the bounds, or the value cannot be looked into. */
  String of(Object value) {
    try {
      return inside(value, 0);
    } catch (RuntimeException | StackOverflowError closed) {
      // Such as a collection of a database session that has ended. The comparison decides.
      return null;
    }
  }

  private String inside(Object value, int level) {
    if (value == null || level > LEVELS_MAX) return null;
    String found = Lazy.why(value);
    if (found != null) return found;
    if (value instanceof Collection) return each((Collection<?>) value, value, level);
    if (value instanceof Map) {
      Map<?, ?> map = (Map<?, ?>) value;
      found = each(map.values(), value, level);
      return found == null ? each(map.keySet(), map.keySet(), level) : found;
    }
    if (value instanceof Object[]) {
      return each(java.util.Arrays.asList((Object[]) value), value, level);
    }
    if (value instanceof Map.Entry) return inside(((Map.Entry<?, ?>) value).getValue(), level + 1);
    if (isTree(value.getClass())) return null;
    Wrapped wrapped = Wrapped.of(value);
    return wrapped != null ? inside(wrapped.value, level + 1) : inFields(value, level);
  }

  private static boolean isTree(Class<?> type) {
    for (String each : TREES) {
      if (type.getName().startsWith(each)) return true;
    }
    return false;
  }

  private boolean isNew(Object holder) {
    return seen.size() < VALUES_MAX && seen.add(holder);
  }

  private String each(Collection<?> values, Object holder, int level) {
    if (!isNew(holder)) return null;
    for (Object each : values) {
      String found = inside(each, level + 1);
      if (found != null) return found;
    }
    return null;
  }

  private String inFields(Object value, int level) {
    Field[] shown = Fields.shown(value.getClass());
    if (shown.length == 0 || !isNew(value)) return null;
    for (Field each : shown) {
      String found = inside(Fields.read(each, value), level + 1);
      if (found != null) return found;
    }
    return null;
  }
}
