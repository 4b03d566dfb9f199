package io.semel;

import java.io.InputStream;
import java.lang.reflect.Method;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;

/**
 * Values that count by what they hold: optional ones, the body of an entity, the payload of a message.
 * Those of libraries are known by the names of their types, with subtypes, and never by a package.
 */
final class Wrapped {
  private static final int BUFFER = 1 << 16;
  /** The type, and the methods of which the value is made; one alone is the value. */
  private static final String[][] KNOWN = {
      {"org.springframework.http.HttpEntity", "getBody"},
      {"org.springframework.messaging.Message", "getPayload"},
      {"org.springframework.amqp.core.Message", "getBody"},
      {"org.apache.rocketmq.common.message.Message", "getBody"},
      {"org.apache.kafka.clients.consumer.ConsumerRecord", "topic", "key", "value"},
      {"org.springframework.data.domain.Sort$Order", "getProperty", "getDirection", "isIgnoreCase",
          "getNullHandling"},
      {"org.springframework.util.MimeType", "toString"},
      {"org.springframework.http.HttpMethod", "name"},
      {"com.fasterxml.jackson.databind.JsonNode", ""}, {"tools.jackson.databind.JsonNode", ""},
      {"com.google.gson.JsonElement", ""}, {"org.json.JSONObject", ""}, {"org.json.JSONArray", ""}};

  private static final ClassValue<String[]> FOUND = new ClassValue<String[]>() {
    @Override
    protected String[] computeValue(Class<?> type) {
      for (String[] each : KNOWN) {
        if (Lazy.isOf(type, each[0])) return each;
      }
      for (String each : new String[] {"org.springframework.web.multipart.MultipartFile",
          "jakarta.servlet.http.Part", "javax.servlet.http.Part",
          "org.springframework.data.domain.Pageable", "org.springframework.data.domain.Sort",
          "org.springframework.http.HttpHeaders"}) {
        if (Lazy.isOf(type, each)) return new String[] {each};
      }
      return new String[0];
    }
  };

  final Object value;

  private Wrapped(Object value) {
    this.value = value;
  }

  /** Null if it is none of them. */
  static Wrapped of(Object value) {
    if (value instanceof Optional) return new Wrapped(((Optional<?>) value).orElse(null));
    if (value instanceof AtomicReference) return new Wrapped(((AtomicReference<?>) value).get());
    if (value instanceof AtomicBoolean) return new Wrapped(((AtomicBoolean) value).get());
    if (value instanceof OptionalInt) {
      OptionalInt optional = (OptionalInt) value;
      return new Wrapped(optional.isPresent() ? optional.getAsInt() : null);
    }
    if (value instanceof OptionalLong) {
      OptionalLong optional = (OptionalLong) value;
      return new Wrapped(optional.isPresent() ? optional.getAsLong() : null);
    }
    if (value instanceof OptionalDouble) {
      OptionalDouble optional = (OptionalDouble) value;
      return new Wrapped(optional.isPresent() ? optional.getAsDouble() : null);
    }
    String[] known = FOUND.get(value.getClass());
    return known.length == 0 ? null : new Wrapped(ofKnown(value, known));
  }

  private static Object ofKnown(Object value, String[] known) {
    String simple = known[0].substring(known[0].lastIndexOf('.') + 1);
    if (known.length == 1) {
      switch (simple) {
        case "MultipartFile":
          return upload(call(value, "getOriginalFilename"), value);
        case "Part":
          return upload(call(value, "getSubmittedFileName"), value);
        case "Pageable":
          return pageable(value);
        case "Sort":
          return call(value, "toList");
        default:
          return headers(value);
      }
    }
    if (known[1].isEmpty()) return JsonParser.parse(value.toString());
    if (known.length == 2) return call(value, known[1]);
    Map<String, Object> parts = new LinkedHashMap<>();
    for (String each : Arrays.asList(known).subList(1, known.length)) {
      parts.put(each, call(value, each));
    }
    return parts;
  }

  /** Its name and the digest of its bytes: an upload may be larger than an identity. */
  private static Object upload(Object name, Object value) {
    try (InputStream from = (InputStream) call(value, "getInputStream")) {
      MessageDigest digest = MessageDigest.getInstance("SHA-256");
      byte[] buffer = new byte[BUFFER];
      for (int count; (count = from.read(buffer)) >= 0;) digest.update(buffer, 0, count);
      Map<String, Object> parts = new TreeMap<>();
      parts.put("name", name);
      parts.put("sha256", CanonicalJson.hex(digest.digest()));
      return parts;
    } catch (Exception error) {
      throw new InvalidKey("the upload cannot be read: " + error, error);
    }
  }

  private static Object pageable(Object value) {
    if (!(Boolean) call(value, "isPaged")) return null;
    Map<String, Object> parts = new TreeMap<>();
    parts.put("page", call(value, "getPageNumber"));
    parts.put("size", call(value, "getPageSize"));
    parts.put("sort", call(value, "getSort"));
    return parts;
  }

  /** Their names have any case. In Spring 7 they are no map. */
  private static Object headers(Object value) {
    Map<String, List<?>> parts = new TreeMap<>();
    Map<?, ?> all = value instanceof Map ? (Map<?, ?>) value
        : (Map<?, ?>) call(value, "asMultiValueMap");
    all.forEach((name, values) -> parts.put(
        name.toString().toLowerCase(java.util.Locale.ROOT), (List<?>) values));
    return parts;
  }

  private static Object call(Object on, String name) {
    try {
      Method method = on.getClass().getMethod(name);
      Beans.open(method);
      return method.invoke(on);
    } catch (ReflectiveOperationException | RuntimeException error) {
      throw new InvalidKey(on.getClass().getName() + "." + name + "() fails: "
          + (error.getCause() == null ? error : error.getCause()), error);
    }
  }
}
