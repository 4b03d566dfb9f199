package io.semel;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * The fields of a class, of any visibility and whatever Jackson does with them. Not the static ones,
 * nor what compilers and libraries add.
 */
final class Fields {
  private static final String[] CLOSED = {"java.", "jdk.", "sun.", "com.sun."};
  private static final Field[] NONE = {};

  private static final ClassValue<Object> OWN = new ClassValue<Object>() {
    @Override
    protected Object computeValue(Class<?> type) {
      List<Field> all = new ArrayList<>();
      for (Field each : type.getDeclaredFields()) {
        if (!isOfValue(each)) continue;
        try {
          if (!isClosed(type)) each.setAccessible(true);
        } catch (RuntimeException closed) {
          return each + " cannot be read: open its module's package to this library";
        }
        all.add(each);
      }
      return all.toArray(NONE);
    }
  };

  private static final ClassValue<Field[]> SHOWN = new ClassValue<Field[]>() {
    @Override
    protected Field[] computeValue(Class<?> type) {
      List<Field> all = new ArrayList<>();
      Set<String> names = null;
      for (Class<?> part = type; part != null && !isClosed(part); part = part.getSuperclass()) {
        Object own = OWN.get(part);
        if (!(own instanceof Field[])) continue;
        if (names == null) names = namesOf(type);
        for (Field each : (Field[]) own) {
          boolean isTransient = Modifier.isTransient(each.getModifiers());
          if (!isTransient && !each.getType().isPrimitive() && isShown(each, names)) all.add(each);
        }
      }
      return all.toArray(NONE);
    }
  };

  private Fields() {}

  private static boolean isOfValue(Field field) {
    String name = field.getName();
    boolean isCaptured = field.isSynthetic() && name.startsWith("val$");
    return !Modifier.isStatic(field.getModifiers()) && (!field.isSynthetic() || isCaptured)
        && !name.startsWith("$") && !name.endsWith("$delegate") && !name.equals("metaClass");
  }

  /** Of public methods without arguments. */
  private static Set<String> namesOf(Class<?> type) {
    Set<String> names = new HashSet<>();
    for (Method each : type.getMethods()) {
      if (each.getParameterCount() == 0) names.add(each.getName());
    }
    return names;
  }

  /** By its visibility, a getter or a method of its name, such as that of a record. */
  private static boolean isShown(Field field, Set<String> names) {
    String name = field.getName();
    String after = Character.toUpperCase(name.charAt(0)) + name.substring(1);
    return Modifier.isPublic(field.getModifiers()) || names.contains(name)
        || names.contains("get" + after) || names.contains("is" + after);
  }

  /** Whether it is a class of the JDK, whose fields are its own affair. */
  static boolean isClosed(Class<?> type) {
    for (String each : CLOSED) {
      if (type.getName().startsWith(each)) return true;
    }
    return false;
  }

  /**
   * Those that `type` itself declares.
   *
   * @throws IllegalArgumentException if one cannot be read
   */
  static Field[] of(Class<?> type) {
    Object own = OWN.get(type);
    if (own instanceof Field[]) return (Field[]) own;
    throw new IllegalArgumentException((String) own);
  }

  /** Those of a class and its ancestors, without transient ones, that callers can get at. */
  static Field[] shown(Class<?> type) {
    return SHOWN.get(type);
  }

  static Object read(Field field, Object on) {
    try {
      return field.get(on);
    } catch (IllegalAccessException closed) {
      throw new IllegalArgumentException(field + " cannot be read", closed);
    }
  }
}
