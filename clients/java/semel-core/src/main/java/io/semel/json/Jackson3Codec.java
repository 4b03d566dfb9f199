package io.semel.json;

import io.semel.Codec;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Type;

/** Jackson 3, which needs a newer Java than this library does: so it is called by reflection. */
public final class Jackson3Codec implements Codec {
  /** A feature, and whether it is on: those of JacksonCodec. */
  private static final String[][] FEATURES = {
      {"DeserializationFeature", "USE_BIG_DECIMAL_FOR_FLOATS", "yes"},
      {"DeserializationFeature", "FAIL_ON_UNKNOWN_PROPERTIES", "no"},
      {"DeserializationFeature", "ACCEPT_EMPTY_STRING_AS_NULL_OBJECT", "no"},
      {"DeserializationFeature", "UNWRAP_ROOT_VALUE", "no"},
      {"SerializationFeature", "WRAP_ROOT_VALUE", "no"},
      {"SerializationFeature", "INDENT_OUTPUT", "no"},
      {"cfg.DateTimeFeature", "ADJUST_DATES_TO_CONTEXT_TIME_ZONE", "no"},
      {"cfg.DateTimeFeature", "WRITE_DATES_AS_TIMESTAMPS", "no"},
      {"cfg.DateTimeFeature", "WRITE_DURATIONS_AS_TIMESTAMPS", "no"},
      {"cfg.DateTimeFeature", "WRITE_DATES_WITH_ZONE_ID", "yes"},
      {"cfg.EnumFeature", "READ_ENUMS_USING_TO_STRING", "no"},
      {"cfg.EnumFeature", "WRITE_ENUMS_USING_TO_STRING", "no"},
      {"cfg.EnumFeature", "WRITE_ENUMS_USING_INDEX", "no"},
      {"cfg.JsonNodeFeature", "STRIP_TRAILING_BIGDECIMAL_ZEROES", "no"}};
  private final Object mapper;
  private final Object own;
  private final Object types;
  private final Method write;
  private final Method read;
  private final Method construct;
  private final Method rawClass;
  private final Method writerFor;
  private final Method writeAs;

  /** `mapper` is a tools.jackson.databind.ObjectMapper. */
  public Jackson3Codec(Object mapper) {
    try {
      ClassLoader loader = mapper.getClass().getClassLoader();
      Class<?> type = loader.loadClass("tools.jackson.databind.ObjectMapper");
      Class<?> javaType = loader.loadClass("tools.jackson.databind.JavaType");
      own = mapper;
      this.mapper = exact(mapper, loader);
      write = type.getMethod("writeValueAsBytes", Object.class);
      read = type.getMethod("readValue", byte[].class, javaType);
      types = type.getMethod("getTypeFactory").invoke(mapper);
      construct = types.getClass().getMethod("constructType", Type.class);
      rawClass = javaType.getMethod("getRawClass");
      writerFor = type.getMethod("writerFor", javaType);
      writeAs = writerFor.getReturnType().getMethod("writeValueAsBytes", Object.class);
    } catch (ReflectiveOperationException wrong) {
      throw new IllegalArgumentException("not a mapper of Jackson 3", wrong);
    }
  }

  private static Object exact(Object mapper, ClassLoader loader)
      throws ReflectiveOperationException {
    Object builder = mapper.getClass().getMethod("rebuild").invoke(mapper);
    Class<?> type = loader.loadClass("tools.jackson.databind.cfg.MapperBuilder");
    for (String[] each : FEATURES) {
      Object feature = constant(loader, "tools.jackson.databind." + each[0], each[1]);
      if (feature != null) configure(type, builder, feature, each[2].equals("yes"));
    }
    return type.getMethod("build").invoke(builder);
  }

  /** Null: this release has none, so it cannot be set the other way either. */
  private static Object constant(ClassLoader loader, String type, String name) {
    try {
      for (Object each : loader.loadClass(type).getEnumConstants()) {
        if (((Enum<?>) each).name().equals(name)) return each;
      }
      return null;
    } catch (ClassNotFoundException none) {
      return null;
    }
  }

  private static void configure(Class<?> type, Object builder, Object feature, boolean on)
      throws ReflectiveOperationException {
    for (Method each : type.getMethods()) {
      Class<?>[] takes = each.getParameterTypes();
      if (each.getName().equals("configure") && takes.length == 2 && takes[0].isInstance(feature)) {
        each.invoke(builder, feature, on);
        return;
      }
    }
  }

  private static Object call(Method method, Object self, Object... arguments) throws Exception {
    try {
      return method.invoke(self, arguments);
    } catch (InvocationTargetException thrown) {
      throw thrown.getCause() instanceof Exception ? (Exception) thrown.getCause() : thrown;
    }
  }

  @Override
  public byte[] encode(Object value) throws Exception {
    return (byte[]) call(write, mapper, value);
  }

  @Override
  public byte[] encode(Object value, Type type) throws Exception {
    Object known = call(construct, types, type);
    boolean isGeneric = !(type instanceof Class)
        && ((Class<?>) call(rawClass, known)).isInstance(value);
    return isGeneric ? (byte[]) call(writeAs, call(writerFor, mapper, known), value) : encode(value);
  }

  @Override
  public byte[] document(Object value) throws Exception {
    return (byte[]) call(write, own, value);
  }

  @Override
  public Object decode(byte[] bytes, Type type) throws Exception {
    return call(read, mapper, bytes, call(construct, types, type));
  }
}
