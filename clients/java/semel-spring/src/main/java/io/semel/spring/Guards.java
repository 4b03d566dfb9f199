package io.semel.spring;

import java.lang.reflect.Method;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import org.springframework.core.MethodClassKey;
import org.springframework.core.annotation.AnnotatedElementUtils;

/** The guarded methods, each looked at once. */
final class Guards {
  private final ConcurrentHashMap<MethodClassKey, Optional<Guard>> known =
      new ConcurrentHashMap<>();
  private final ConcurrentHashMap<String, Guard> namespaces = new ConcurrentHashMap<>();
  private final Supplier<Settings> settings;

  Guards(Supplier<Settings> settings) {
    this.settings = settings;
  }

  Settings settings() {
    return settings.get();
  }

  /** Null if it is not annotated. IllegalStateException if it is annotated wrongly. */
  Guard of(Method method, Class<?> target) {
    MethodClassKey key = new MethodClassKey(method, target);
    Optional<Guard> found = known.get(key);
    if (found == null) {
      Idempotent annotation =
          AnnotatedElementUtils.findMergedAnnotation(method, Idempotent.class);
      found = annotation == null ? Optional.empty()
          : Optional.of(checked(new Guard(method, target, annotation, settings())));
      known.put(key, found);
    }
    return found.orElse(null);
  }

  /** The terms are those of the namespace, so methods of one prefix need the same. */
  private Guard checked(Guard guard) {
    Guard other = namespaces.putIfAbsent(guard.namespace, guard);
    if (other != null && !other.terms.equals(guard.terms)) {
      throw new IllegalStateException("@Idempotent on " + guard.name + " and on "
          + other.name + " share the keys of " + guard.namespace + " but not their terms: "
          + guard.terms + " and " + other.terms + "; give one of them another prefix");
    }
    return guard;
  }
}
