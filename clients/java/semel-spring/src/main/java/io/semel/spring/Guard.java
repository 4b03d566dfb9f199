package io.semel.spring;

import io.semel.CanonicalJson;
import io.semel.Lazy;
import io.semel.Terms;
import java.lang.reflect.Method;
import java.lang.reflect.Type;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.CompletionStage;
import org.springframework.core.DefaultParameterNameDiscoverer;
import org.springframework.core.ResolvableType;
import org.springframework.core.annotation.AnnotatedElementUtils;
import org.springframework.expression.Expression;
import org.springframework.expression.spel.standard.SpelExpressionParser;
import org.springframework.util.ClassUtils;

/** One guarded method: its annotation, checked when the application starts. Immutable. */
final class Guard {
  private static final int NAMESPACE_MAX = 64;
  private static final int OPERATION_BYTES_MAX = 512;
  private static final long KEY_TIMEOUT_MS = 3_600_000;
  final Idempotent annotation;
  final IdempotentTypeEnum type;
  final String namespace;
  /** Of its class and method, for people. */
  final String name;
  /** What is in the fingerprint and in the key of type PARAM. */
  final String operation;
  final Set<String> leftOut;
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
    name = ClassUtils.getUserClass(target).getSimpleName() + "." + method.getName();
    operation = annotation.operation().isEmpty() ? operation(method, target)
        : annotation.operation();
    if (operation.getBytes(StandardCharsets.UTF_8).length > OPERATION_BYTES_MAX) {
      throw refused("the operation has more than " + OPERATION_BYTES_MAX + " bytes");
    }
    leftOut = leftOut(method, annotation.leaveOut());
    isMq = annotation.scene() == IdempotentSceneEnum.MQ;
    String text = one("key", annotation.key(), annotation.expression(), annotation.spEL());
    type = annotation.type() != IdempotentTypeEnum.AUTO ? annotation.type()
        : text.isEmpty() ? IdempotentTypeEnum.PARAM : IdempotentTypeEnum.SPEL;
    key = type == IdempotentTypeEnum.SPEL ? keyExpression(text) : null;
    boolean comparesAll = annotation.fingerprint().isEmpty();
    fingerprint = comparesAll || annotation.fingerprint().equals("none") ? null
        : new SpelExpressionParser().parseExpression(annotation.fingerprint());
    message = one("message", annotation.message(), annotation.info());
    wait = Duration.ofMillis(annotation.waitTime() == 0 ? 0 : ms(annotation.waitTime(), -1));
    String prefix = one("prefix", annotation.prefix(), annotation.uniqueKeyPrefix());
    if (settings.application().isEmpty()) {
      throw refused("no application name: set spring.application.name or semel.application");
    }
    String last = type == IdempotentTypeEnum.TOKEN ? "token" : prefix.isEmpty() ? name : prefix;
    namespace = namespaceOf(settings.application() + "." + last);
    terms = type == IdempotentTypeEnum.TOKEN ? tokenTerms(settings) : ownTerms();
    ResolvableType returned = ResolvableType.forMethodReturnType(method, target);
    isAsync = CompletionStage.class.isAssignableFrom(returned.toClass());
    if (isAsync) returned = returned.as(CompletionStage.class).getGeneric(0);
    isEntity = returned.toClass().getName().equals("org.springframework.http.ResponseEntity");
    isController = hasAnnotation(target, "org.springframework.stereotype.Controller");
    if (isEntity) returned = returned.getGeneric(0);
    bodyType = Types.of(returned);
    checkReturn(method);
    if (annotation.leaseMs() < 30) {
      throw refused("leaseMs must be 30 or more, not " + annotation.leaseMs());
    }
    if (annotation.attempts() < 1) throw refused("attempts must be 1 or more");
  }

  /** Class, method and types of its parameters: overloads are other work. */
  private String operation(Method method, Class<?> target) {
    StringBuilder made = new StringBuilder(ClassUtils.getUserClass(target).getName()).append('.')
        .append(method.getName()).append('(');
    String before = "";
    for (Class<?> each : method.getParameterTypes()) {
      made.append(before).append(each.getTypeName());
      before = ",";
    }
    String whole = made.append(')').toString();
    if (whole.getBytes(StandardCharsets.UTF_8).length <= OPERATION_BYTES_MAX) return whole;
    String plain = whole.replaceAll("[^\\x20-\\x7e]", "?");
    return plain.substring(0, OPERATION_BYTES_MAX - 65) + "-" + CanonicalJson.digest(whole);
  }

  private Set<String> leftOut(Method method, String[] names) {
    Set<String> all = new HashSet<>(Arrays.asList(names));
    if (all.isEmpty()) return all;
    String[] known = new DefaultParameterNameDiscoverer().getParameterNames(method);
    if (known == null) throw refused("leaveOut needs the names of parameters: javac -parameters");
    for (String each : names) {
      if (!Arrays.asList(known).contains(each)) throw refused("it has no parameter " + each);
    }
    return all;
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
    if (value == -1 && otherwise >= 0) return otherwise;
    if (value < 1) throw refused("a time must be 1 or more, not " + value);
    long ms = annotation.timeUnit().toMillis(value);
    if (ms < 1) {
      throw refused("a time must be 1 ms or more, not " + value + " " + annotation.timeUnit());
    }
    return ms;
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

  private void checkReturn(Method method) {
    checkType(bodyType);
    if (isAsync && isMq) throw refused("a listener of a broker must end before it returns");
    Class<?>[] takes = method.getParameterTypes();
    boolean suspends = takes.length > 0
        && Lazy.isOf(takes[takes.length - 1], "kotlin.coroutines.Continuation");
    if (suspends) throw refused("it is a suspend function: it returns before it has run");
  }

  /** Also in what it holds, such as the elements of a list. */
  private void checkType(Type type) {
    ResolvableType known = ResolvableType.forType(type);
    for (ResolvableType each = known; each.isArray(); each = each.getComponentType()) {
      known = each.getComponentType();
    }
    String lazy = Lazy.why(known.toClass());
    if (lazy != null) {
      throw refused("it returns " + known.toClass().getName() + ", " + lazy + ", which has not run "
          + "when it is returned and cannot be kept; supported are values, void, ResponseEntity and "
          + "CompletionStage");
    }
    for (ResolvableType each : known.getGenerics()) checkType(each.getType());
  }

  private IllegalStateException refused(String why) {
    return new IllegalStateException("@Idempotent on " + name + ": " + why);
  }
}
