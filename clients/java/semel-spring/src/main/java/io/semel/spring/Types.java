package io.semel.spring;

import java.lang.reflect.Type;
import org.springframework.core.ResolvableType;

/** The type of a method's value with nothing open in it: T of CompletableFuture is its class. */
final class Types {
  private static final int DEPTH_MAX = 16;

  private Types() {}

  /** Object where nothing is known. */
  static Type of(ResolvableType type) {
    return resolved(type, 0).getType();
  }

  private static ResolvableType resolved(ResolvableType type, int depth) {
    Class<?> raw = type.resolve();
    if (raw == null || depth > DEPTH_MAX) return ResolvableType.forClass(Object.class);
    if (type.isArray()) {
      return ResolvableType.forArrayComponent(resolved(type.getComponentType(), depth + 1));
    }
    // Of `? extends Shape` and of a variable the bound counts.
    ResolvableType[] inside = type.getGenerics();
    if (inside.length == 0 || inside.length != raw.getTypeParameters().length) {
      return type.hasGenerics() ? ResolvableType.forClass(raw) : bounded(type, raw, depth);
    }
    ResolvableType[] made = new ResolvableType[inside.length];
    for (int i = 0; i < inside.length; ++i) made[i] = resolved(inside[i], depth + 1);
    return ResolvableType.forClassWithGenerics(raw, made);
  }

  private static ResolvableType bounded(ResolvableType type, Class<?> raw, int depth) {
    if (type.getType() instanceof Class) return ResolvableType.forClass(raw);
    ResolvableType same = type.as(raw);
    return same == ResolvableType.NONE || same.getGenerics().length == 0
        ? ResolvableType.forClass(raw) : resolved(same, depth + 1);
  }
}
