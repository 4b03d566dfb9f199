package io.semel.json;

import io.semel.Codec;
import java.lang.reflect.Array;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Type;

/** Jackson 3, which needs a newer Java than this library does: so it is called by reflection. */
public final class Jackson3Codec implements Codec {
  private final Object mapper;
  private final Object types;
  private final Method write;
  private final Method read;
  private final Method construct;

  /** `mapper` is a tools.jackson.databind.ObjectMapper. */
  public Jackson3Codec(Object mapper) {
    try {
      ClassLoader loader = mapper.getClass().getClassLoader();
      Class<?> own = loader.loadClass("tools.jackson.databind.ObjectMapper");
      this.mapper = exact(mapper, loader);
      write = own.getMethod("writeValueAsBytes", Object.class);
      read = own.getMethod("readValue", byte[].class,
          loader.loadClass("tools.jackson.databind.JavaType"));
      types = own.getMethod("getTypeFactory").invoke(mapper);
      construct = types.getClass().getMethod("constructType", Type.class);
    } catch (ReflectiveOperationException wrong) {
      throw new IllegalArgumentException("not a mapper of Jackson 3", wrong);
    }
  }

  /** Numbers keep their digits also where no type says how to read them, as in JacksonCodec. */
  @SuppressWarnings({"unchecked", "rawtypes"})
  private static Object exact(Object mapper, ClassLoader loader)
      throws ReflectiveOperationException {
    Class<?> feature = loader.loadClass("tools.jackson.databind.DeserializationFeature");
    Object features = Array.newInstance(feature, 1);
    Array.set(features, 0, Enum.valueOf((Class) feature, "USE_BIG_DECIMAL_FOR_FLOATS"));
    Object builder = mapper.getClass().getMethod("rebuild").invoke(mapper);
    Class<?> own = loader.loadClass("tools.jackson.databind.cfg.MapperBuilder");
    own.getMethod("enable", features.getClass()).invoke(builder, features);
    return own.getMethod("build").invoke(builder);
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
  public Object decode(byte[] bytes, Type type) throws Exception {
    return call(read, mapper, bytes, call(construct, types, type));
  }
}
