package io.semel;

import java.lang.annotation.Annotation;
import java.lang.reflect.AccessibleObject;
import java.lang.reflect.AnnotatedElement;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Member;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/**
 * The properties of a class: its public getters, and its fields of any visibility that no getter
 * names, since two values that differ in one are two. Static and transient fields are none. Of
 * Jackson's annotations these count: JsonIgnore, JsonIgnoreProperties, JsonIgnoreType,
 * JsonBackReference, JsonProperty's name, JsonValue, JsonAnyGetter, JsonTypeInfo. They are found by
 * their names, as Jackson need not be there.
 */
final class Beans {
  private static final String JACKSON = "com.fasterxml.jackson.annotation.";
  private static final String[] CLOSED = {"java.", "javax.", "jdk.", "sun.", "com.sun."};

  /** One property. */
  static final class Property {
    final String name;
    final boolean isAny;
    private final Member from;

    Property(String name, Member from, boolean isAny) {
      this.name = name;
      this.from = from;
      this.isAny = isAny;
    }

    Object read(Object on) {
      try {
        return from instanceof Method ? ((Method) from).invoke(on) : ((Field) from).get(on);
      } catch (InvocationTargetException thrown) {
        throw new InvalidKey("its getter throws " + thrown.getCause(), thrown.getCause());
      } catch (IllegalAccessException closed) {
        throw new InvalidKey("it cannot be read: " + closed, closed);
      }
    }
  }

  private static final ClassValue<Object> KNOWN = new ClassValue<Object>() {
    @Override
    protected Object computeValue(Class<?> type) {
      try {
        return new Beans(type);
      } catch (InvalidKey refused) {
        return refused.getMessage();
      }
    }
  };

  final List<Property> properties = new ArrayList<>();
  /** What stands for the whole value (JsonValue), or null. */
  final Property only;
  final String typeProperty;
  final String typeName;

  static Beans of(Class<?> type) {
    Object known = KNOWN.get(type);
    if (known instanceof Beans) return (Beans) known;
    throw new InvalidKey((String) known);
  }

  private Beans(Class<?> type) {
    for (String each : CLOSED) {
      if (type.getName().startsWith(each)) {
        throw new InvalidKey("a " + type.getName() + " is no value");
      }
    }
    if (java.lang.reflect.Proxy.isProxyClass(type)) throw new InvalidKey("a proxy is no value");
    Map<String, Property> found = new TreeMap<>();
    Map<String, String> renamed = new TreeMap<>();
    Set<String> hidden = new HashSet<>(Arrays.asList(
        texts(annotation(type, "JsonIgnoreProperties"), "value")));
    List<Property> whole = new ArrayList<>();
    for (Method each : methods(type)) {
      String old = getter(type, each, found, hidden, whole);
      rename(each, old, renamed);
    }
    for (Class<?> part = type; part != null && part != Object.class; part = part.getSuperclass()) {
      for (Field each : part.getDeclaredFields()) {
        field(part, each, found, hidden, whole);
        rename(each, each.getName(), renamed);
      }
    }
    only = whole.isEmpty() ? null : whole.get(0);
    hidden.forEach(found::remove);
    for (Property each : found.values()) {
      String name = renamed.getOrDefault(each.name, each.name);
      properties.add(new Property(name, each.from, each.isAny));
    }
    if (only == null && properties.isEmpty()) {
      throw new InvalidKey("a " + type.getName()
          + " has no properties by which it could be compared");
    }
    String[] ofType = typeInfo(type);
    typeProperty = ofType == null ? null : ofType[0];
    typeName = ofType == null ? null : ofType[1];
  }

  /** The public ones, and others that are annotated. */
  private static List<Method> methods(Class<?> type) {
    List<Method> all = new ArrayList<>(Arrays.asList(type.getMethods()));
    for (Class<?> part = type; part != null && part != Object.class; part = part.getSuperclass()) {
      for (Method each : part.getDeclaredMethods()) {
        if (Modifier.isPublic(each.getModifiers())) continue;
        if (annotation(each, "JsonValue") != null || annotation(each, "JsonAnyGetter") != null
            || annotation(each, "JsonProperty") != null) {
          all.add(each);
        }
      }
    }
    return all;
  }

  private static void rename(AnnotatedElement member, String old, Map<String, String> renamed) {
    String given = old == null ? null : text(annotation(member, "JsonProperty"), "value");
    if (given != null) renamed.putIfAbsent(old, given);
  }

  /** The name of the property that it adds, or null. */
  private static String getter(Class<?> type, Method method, Map<String, Property> found,
      Set<String> hidden, List<Property> whole) {
    if (Modifier.isStatic(method.getModifiers()) || method.getParameterCount() > 0
        || method.isBridge() || method.isSynthetic() || method.getReturnType() == void.class
        || method.getDeclaringClass() == Object.class) {
      return null;
    }
    boolean isWhole = isOn(method, "JsonValue");
    boolean isAny = isOn(method, "JsonAnyGetter");
    String name = isRecord(type) ? component(type, method) : property(method);
    boolean isNamed = annotation(method, "JsonProperty") != null;
    if (name == null && !isNamed && !isWhole && !isAny) return null;
    String plain = name == null ? method.getName() : name;
    if (isIgnored(method, method.getReturnType())) {
      hidden.add(plain);
      return null;
    }
    if (plain.startsWith("$") || plain.equals("metaClass")) return null;
    open(method);
    Property made = new Property(plain, method, isAny);
    if (isWhole) whole.add(made);
    Property other = found.get(plain);
    // getX goes before isX, and the most specific class before its ancestors.
    boolean isBetter = other == null || method.getName().startsWith("get")
        && ((Method) other.from).getName().startsWith("is");
    if (isBetter) found.put(plain, made);
    return plain;
  }

  private static void field(Class<?> owner, Field field, Map<String, Property> found,
      Set<String> hidden, List<Property> whole) {
    int modifiers = field.getModifiers();
    String name = field.getName();
    boolean isCaptured = field.isSynthetic() && name.startsWith("val$");
    if (Modifier.isStatic(modifiers) || field.isSynthetic() && !isCaptured
        || name.startsWith("$") || name.endsWith("$delegate") || name.equals("metaClass")) {
      return;
    }
    if (isIgnored(field, field.getType())) {
      hidden.add(name);
      return;
    }
    boolean isWhole = isOn(field, "JsonValue");
    Property other = found.get(name);
    if (other != null && other.from instanceof Method && !isWhole) return;
    // A class may have a field of the same name as its ancestor's.
    if (other != null) name = owner.getName() + "." + name;
    if (Modifier.isTransient(modifiers)) {
      if (hasOwnForm(owner)) {
        throw new InvalidKey("a " + owner.getName() + " hides its state: " + name
            + " is transient, and it writes itself");
      }
      return;
    }
    // What is computed at its first use, and kept.
    if (Modifier.isVolatile(modifiers)) return;
    open(field);
    Property made = new Property(name, field, isOn(field, "JsonAnyGetter"));
    if (isWhole) whole.add(made);
    found.put(name, made);
  }

  /** Its serial form is not its fields, so what its transient ones hold matters. */
  private static boolean hasOwnForm(Class<?> type) {
    for (Method each : type.getDeclaredMethods()) {
      if (each.getName().equals("writeObject") || each.getName().equals("writeReplace")
          || each.getName().equals("writeExternal")) {
        return true;
      }
    }
    return false;
  }

  static void open(AccessibleObject member) {
    try {
      member.setAccessible(true);
    } catch (RuntimeException closed) {
      boolean isPublic = member instanceof Member
          && Modifier.isPublic(((Member) member).getModifiers())
          && Modifier.isPublic(((Member) member).getDeclaringClass().getModifiers());
      if (isPublic) return;
      throw new InvalidKey(member + " cannot be read: open its module's package to this library",
          closed);
    }
  }

  /** One of a record. */
  static Property component(Class<?> type, Field field) {
    try {
      Method reader = type.getMethod(field.getName());
      open(reader);
      return new Property(field.getName(), reader, false);
    } catch (NoSuchMethodException impossible) {
      throw new IllegalStateException(impossible);
    }
  }

  private static boolean isRecord(Class<?> type) {
    return type.getSuperclass() != null
        && type.getSuperclass().getName().equals("java.lang.Record");
  }

  private static String component(Class<?> type, Method method) {
    try {
      Field field = type.getDeclaredField(method.getName());
      return Modifier.isStatic(field.getModifiers()) ? null : field.getName();
    } catch (NoSuchFieldException none) {
      return null;
    }
  }

  /** The property that a getter names, or null. */
  private static String property(Method method) {
    String name = method.getName();
    boolean flag = method.getReturnType() == boolean.class
        || method.getReturnType() == Boolean.class;
    int front = name.startsWith("get") ? 3 : flag && name.startsWith("is") ? 2 : 0;
    if (front == 0 || name.length() == front || Character.isLowerCase(name.charAt(front))) {
      return null;
    }
    String rest = name.substring(front);
    boolean isShort = rest.length() > 1 && Character.isUpperCase(rest.charAt(0))
        && Character.isUpperCase(rest.charAt(1));
    return isShort ? rest : Character.toLowerCase(rest.charAt(0)) + rest.substring(1);
  }

  private static boolean isIgnored(AnnotatedElement member, Class<?> type) {
    Annotation ignore = annotation(member, "JsonIgnore");
    boolean ignored = ignore != null && !Boolean.FALSE.equals(attribute(ignore, "value"));
    return ignored || isOn(member, "JsonBackReference") || isOn(type, "JsonIgnoreType");
  }

  /** The name and value by which JsonTypeInfo tells subtypes apart, or null. */
  private static String[] typeInfo(Class<?> type) {
    Annotation info = annotation(type, "JsonTypeInfo");
    if (info == null) return null;
    String use = String.valueOf(attribute(info, "use"));
    String include = String.valueOf(attribute(info, "include"));
    if (use.equals("NONE") || include.equals("EXISTING_PROPERTY")) return null;
    String property = text(info, "property");
    String name = text(annotation(type, "JsonTypeName"), "value");
    boolean byName = use.equals("NAME") || use.equals("SIMPLE_NAME");
    if (!byName || name == null) name = byName ? subtype(type) : type.getName();
    return new String[] {property != null ? property : byName ? "@type" : "@class", name};
  }

  private static String subtype(Class<?> type) {
    Annotation list = annotation(type, "JsonSubTypes");
    if (list != null) {
      for (Object each : (Object[]) attribute(list, "value")) {
        String name = text((Annotation) each, "name");
        if (type.equals(attribute((Annotation) each, "value")) && name != null) return name;
      }
    }
    return type.getName().substring(type.getName().lastIndexOf('.') + 1);
  }

  private static boolean isOn(AnnotatedElement member, String name) {
    Annotation found = annotation(member, name);
    return found != null && !Boolean.FALSE.equals(attribute(found, "value"))
        && !Boolean.FALSE.equals(attribute(found, "enabled"));
  }

  /** On a class also that of its ancestors and interfaces, on a method that of what it overrides. */
  private static Annotation annotation(AnnotatedElement on, String name) {
    if (on == null) return null;
    for (Annotation each : on.getAnnotations()) {
      if (each.annotationType().getName().equals(JACKSON + name)) return each;
    }
    if (on instanceof Method) return overridden((Method) on, name);
    if (!(on instanceof Class)) return null;
    Annotation found = annotation(((Class<?>) on).getSuperclass(), name);
    for (Class<?> each : ((Class<?>) on).getInterfaces()) {
      if (found == null) found = annotation(each, name);
    }
    return found;
  }

  private static Annotation overridden(Method method, String name) {
    List<Class<?>> above = new ArrayList<>(
        Arrays.asList(method.getDeclaringClass().getInterfaces()));
    above.add(method.getDeclaringClass().getSuperclass());
    for (Class<?> each : above) {
      if (each == null) continue;
      try {
        Annotation found = annotation(
            each.getMethod(method.getName(), method.getParameterTypes()), name);
        if (found != null) return found;
      } catch (NoSuchMethodException none) {
        // The next one may have it.
      }
    }
    return null;
  }

  /** Null if there is none, or it is empty. */
  private static String text(Annotation annotation, String name) {
    Object found = attribute(annotation, name);
    return found == null || found.toString().isEmpty() ? null : found.toString();
  }

  private static String[] texts(Annotation annotation, String name) {
    Object found = attribute(annotation, name);
    return found instanceof String[] ? (String[]) found : new String[0];
  }

  private static Object attribute(Annotation annotation, String name) {
    if (annotation == null) return null;
    try {
      return annotation.annotationType().getMethod(name).invoke(annotation);
    } catch (ReflectiveOperationException none) {
      return null;
    }
  }
}
