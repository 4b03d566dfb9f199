package io.semel.spring;

import io.semel.Envelope;
import java.lang.reflect.Method;
import java.util.List;
import java.util.Map;
import org.springframework.http.ResponseEntity;
import org.springframework.util.ReflectionUtils;

/** ResponseEntity, whose methods differ between Spring 5, 6 and 7. Loaded only where it is. */
final class Entities {
  private Entities() {}

  static Object body(Object entity) {
    return ((ResponseEntity<?>) entity).getBody();
  }

  /** getStatusCode() answers another class in each. */
  static int status(Object entity) {
    Object code = call(entity, "getStatusCode");
    return (Integer) call(code, "value");
  }

  private static Object call(Object on, String name) {
    Method method = ReflectionUtils.findMethod(on.getClass(), name);
    ReflectionUtils.makeAccessible(method);
    return ReflectionUtils.invokeMethod(method, on);
  }

  static void copyHeaders(Object entity, Envelope to) {
    ((ResponseEntity<?>) entity).getHeaders().forEach((name, values) -> {
      if (!Replies.isPrivate(name)) {
        for (String each : values) to.header(name, each);
      }
    });
  }

  static Object made(Envelope envelope, Object body) {
    ResponseEntity.BodyBuilder builder =
        ResponseEntity.status(envelope.status() == 0 ? 200 : envelope.status());
    for (Map.Entry<String, List<String>> each : envelope.headers().entrySet()) {
      builder.header(each.getKey(), each.getValue().toArray(new String[0]));
    }
    builder.header(Replies.REPLAYED, "true");
    builder.header(Replies.REPLAYED_BEFORE, "true");
    return builder.body(body);
  }
}
