package io.semel.spring;

import io.semel.CanonicalJson;
import io.semel.Terms;
import java.lang.reflect.Method;
import java.lang.reflect.Type;
import java.time.Duration;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import org.springframework.core.ResolvableType;
import org.springframework.core.annotation.AnnotatedElementUtils;
import org.springframework.expression.Expression;
import org.springframework.expression.spel.standard.SpelExpressionParser;
import org.springframework.util.ClassUtils;

/** One guarded method: its annotation, checked when the application starts. Immutable. */
final class Guard {
  private static final int NAMESPACE_MAX = 64;
  private static final long KEY_TIMEOUT_MS = 3_600_000;
  private static final String[] REFUSED = {"org.reactivestreams.Publisher",
      "org.springframework.web.context.request.async.DeferredResult",
      "org.springframework.web.context.request.async.WebAsyncTask",
      "org.springframework.web.servlet.mvc.method.annotation.ResponseBodyEmitter",
      "org.springframework.web.servlet.mvc.method.annotation.StreamingResponseBody",
      "org.springframework.web.servlet.ModelAndView", "org.springframework.core.io.Resource",
      "java.util.concurrent.Callable", "java.util.stream.BaseStream", "java.io.InputStream",
      "java.util.Iterator"};

  final Idempotent annotation;
  final IdempotentTypeEnum type;
  final String namespace;
  final String operation;
  final Terms terms;
  final Expression key;
  final Expression fingerprint;
  final String message;
  final Duration wait;
  final boolean isMq;
  final boolean isAsync;
  final boolean isController;
  final boolean isEntity;
  final Type bodyType;

  Guard(Method method, Class<?> target, Idempotent annotation, Settings settings) {
    this.annotation = annotation;
    operation = ClassUtils.getUserClass(target).getSimpleName() + "." + method.getName();
    isMq = annotation.scene() == IdempotentSceneEnum.MQ;
    String text = one("key", annotation.key(), annotation.expression(), annotation.spEL());
    type = annotation.type() != IdempotentTypeEnum.AUTO ? annotation.type()
        : text.isEmpty() ? IdempotentTypeEnum.PARAM : IdempotentTypeEnum.SPEL;
    key = type == IdempotentTypeEnum.SPEL ? keyExpression(text) : null;
    boolean comparesAll = annotation.fingerprint().isEmpty();
    fingerprint = comparesAll || annotation.fingerprint().equals("none") ? null
        : new SpelExpressionParser().parseExpression(annotation.fingerprint());
    message = one("message", annotation.message(), annotation.info());
    wait = Duration.ofMillis(annotation.timeUnit().toMillis(annotation.waitTime()));
    String prefix = one("prefix", annotation.prefix(), annotation.uniqueKeyPrefix());
    if (settings.application().isEmpty()) {
      throw refused("no application name: set spring.application.name or semel.application");
    }
    String last = type == IdempotentTypeEnum.TOKEN ? "token" : prefix.isEmpty() ? operation : prefix;
    namespace = namespaceOf(settings.application() + "." + last);
    terms = type == IdempotentTypeEnum.TOKEN ? tokenTerms(settings) : ownTerms();
    ResolvableType returned = ResolvableType.forMethodReturnType(method, target);
    isAsync = CompletionStage.class.isAssignableFrom(returned.toClass());
    if (isAsync) returned = returned.as(CompletionStage.class).getGeneric(0);
    isEntity = returned.toClass().getName().equals("org.springframework.http.ResponseEntity");
    isController = hasAnnotation(target, "org.springframework.stereotype.Controller");
    if (isEntity) returned = returned.getGeneric(0);
    checkReturn(returned.toClass(), method.getReturnType());
    Type body = returned.getType();
    bodyType = returned.resolve() == null ? Object.class : body;
    if (annotation.leaseMs() < 30) throw refused("leaseMs must be 30 or more");
    if (annotation.attempts() < 1) throw refused("attempts must be 1 or more");
  }

  static boolean hasAnnotation(Class<?> type, String name) {
    return AnnotatedElementUtils.isAnnotated(type, name);
  }

  static Terms tokenTerms(Settings settings) {
    return Terms.as("token").keep(Duration.ofMillis(settings.tokenKeepMs()))
        .attemptsKept(Duration.ofMillis(settings.tokenTtlMs()));
  }

  static String tokenNamespace(Settings settings) {
    return namespaceOf(settings.application() + ".token");
  }

  /** Letters, digits, `_`, `.` and `-`; where others were replaced a digest keeps names apart. */
  private static String namespaceOf(String name) {
    String plain = name.replaceAll("[^A-Za-z0-9_.-]", "-");
    if (plain.equals(name) && plain.length() <= NAMESPACE_MAX) return plain;
    String digest = CanonicalJson.digest(name).substring(0, 8);
    return plain.substring(0, Math.min(plain.length(), NAMESPACE_MAX - 9)) + "-" + digest;
  }

  private Terms ownTerms() {
    long keyMs = ms(one("keyTimeout", annotation.keyTimeout(), annotation.expireTime(),
        annotation.ttl(), annotation.timeout()), KEY_TIMEOUT_MS);
    long resultMs = ms(annotation.resultTimeout(), keyMs);
    Terms made = Terms.as(isMq ? "message" : "call").keep(Duration.ofMillis(resultMs));
    if (keyMs > resultMs) made = made.unique(Duration.ofMillis(keyMs));
    if (isMq) made = made.attempts(annotation.attempts());
    return annotation.inDoubtOnSilence() ? made.inDoubtOnSilence() : made;
  }

  private long ms(long value, long otherwise) {
    if (value == -1) return otherwise;
    if (value < 1) throw refused("a time must be 1 or more, not " + value);
    return annotation.timeUnit().toMillis(value) < 1 ? TimeUnit.MILLISECONDS.toMillis(1)
        : annotation.timeUnit().toMillis(value);
  }

  private Expression keyExpression(String text) {
    if (text.isEmpty()) throw refused("type SPEL needs a key");
    if (!text.contains("#") && !text.contains("'") && !text.contains("@")
        && !text.contains("T(")) {
      throw refused("the key '" + text + "' is the same for all calls: write an expression such as "
          + "#order.id, or a constant in quotes");
    }
    try {
      return new SpelExpressionParser().parseExpression(text);
    } catch (RuntimeException error) {
      throw refused("the key is no expression: " + error.getMessage());
    }
  }

  private String one(String what, String... values) {
    String found = "";
    for (String each : values) {
      if (each.isEmpty()) continue;
      if (!found.isEmpty()) throw refused("two attributes say what the " + what + " is");
      found = each;
    }
    return found;
  }

  private long one(String what, long... values) {
    long found = -1;
    for (long each : values) {
      if (each == -1) continue;
      if (found != -1) throw refused("two attributes say what the " + what + " is");
      found = each;
    }
    return found;
  }

  private void checkReturn(Class<?> value, Class<?> whole) {
    for (Class<?> each : new Class<?>[] {value, whole}) {
      for (String name : REFUSED) {
        if (isOf(each, name)) {
          throw refused("it returns " + each.getName() + ", which cannot be kept; supported are "
              + "values, void, ResponseEntity and CompletionStage");
        }
      }
      if (java.util.concurrent.Future.class.isAssignableFrom(each) && !isAsync) {
        throw refused("it returns " + each.getName() + "; return a CompletableFuture");
      }
    }
    if (isAsync && isMq) throw refused("a listener of a broker must end before it returns");
  }

  private static boolean isOf(Class<?> type, String name) {
    if (type == null) return false;
    if (type.getName().equals(name)) return true;
    for (Class<?> each : type.getInterfaces()) {
      if (isOf(each, name)) return true;
    }
    return isOf(type.getSuperclass(), name);
  }

  private IllegalStateException refused(String why) {
    return new IllegalStateException("@Idempotent on " + operation + ": " + why);
  }
}
