package io.semel.spring;

import io.semel.CanonicalJson;
import io.semel.Codec;
import io.semel.InvalidKey;
import java.lang.reflect.Method;
import java.security.Principal;
import java.util.AbstractMap;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.context.expression.BeanFactoryResolver;
import org.springframework.context.expression.MethodBasedEvaluationContext;
import org.springframework.core.DefaultParameterNameDiscoverer;
import org.springframework.core.ParameterNameDiscoverer;
import org.springframework.expression.Expression;
import org.springframework.util.ReflectionUtils;

/** Keys and fingerprints of calls. */
final class Keys {
  private final ParameterNameDiscoverer names = new DefaultParameterNameDiscoverer();
  private final Codec codec;
  private final Settings settings;
  private final BeanFactory beans;

  Keys(Codec codec, Settings settings, BeanFactory beans) {
    this.codec = codec;
    this.settings = settings;
    this.beans = beans;
  }

  /** #header['Name'], in any case of letters. */
  private static final class Headers extends AbstractMap<String, String> {
    private final WebCall web;

    Headers(WebCall web) {
      this.web = web;
    }

    @Override
    public String get(Object name) {
      return web == null ? null : web.header(String.valueOf(name));
    }

    @Override
    public boolean containsKey(Object name) {
      return get(name) != null;
    }

    @Override
    public Set<Map.Entry<String, String>> entrySet() {
      return Collections.emptySet();
    }
  }

  /** Null if there is none. */
  String key(Guard guard, Object target, Method method, Object[] arguments, WebCall web) {
    switch (guard.type) {
      case TOKEN:
        return token(guard, web);
      case SPEL:
        return plain(evaluate(guard.key, target, method, arguments, web));
      default:
        return parameters(guard, arguments, web);
    }
  }

  private String token(Guard guard, WebCall web) {
    if (web == null) {
      throw new InvalidKey(guard.operation + " needs a token, but no request is being answered");
    }
    String name = guard.annotation.headerName();
    if (name.isEmpty()) name = settings.tokenHeader();
    String token = web.header(name);
    return token == null || token.isEmpty() ? web.parameter(name) : token;
  }

  private Object evaluate(Expression expression, Object target, Method method, Object[] arguments,
      WebCall web) {
    try {
      MethodBasedEvaluationContext context =
          new MethodBasedEvaluationContext(target, method, arguments, names);
      if (beans != null) context.setBeanResolver(new BeanFactoryResolver(beans));
      context.setVariable("header", new Headers(web));
      return expression.getValue(context);
    } catch (RuntimeException error) {
      throw new InvalidKey("'" + expression.getExpressionString() + "' cannot be evaluated ("
          + error.getMessage() + "); names of parameters need javac -parameters", error);
    }
  }

  /** A value that has no text of its own becomes a digest: Object.toString() never repeats. */
  private String plain(Object value) {
    if (value == null) return null;
    boolean hasText = value instanceof CharSequence || value instanceof Number
        || value instanceof Boolean || value instanceof Character || value instanceof Enum
        || value instanceof java.util.UUID
        || value.getClass().getName().startsWith("java.time.");
    return hasText ? value.toString() : CanonicalJson.digest(canonical(value));
  }

  private String parameters(Guard guard, Object[] arguments, WebCall web) {
    List<Object> parts = new ArrayList<>();
    parts.add(web == null || !guard.isController ? guard.operation : web.line());
    parts.add(web == null ? null : user(web));
    parts.add(payload(arguments));
    return CanonicalJson.digest(CanonicalJson.of(parts));
  }

  private String user(WebCall web) {
    UserResolver resolver = beans == null ? null
        : beans.getBeanProvider(UserResolver.class).getIfAvailable();
    String user = resolver == null ? web.user() : resolver.user();
    if ((user == null || user.isEmpty()) && !settings.anonymous()) {
      throw new InvalidKey("nobody is logged in, and all callers would share one key: provide a "
          + "UserResolver, or set semel.param.anonymous");
    }
    return user;
  }

  /** A text that is equal for equal payloads; null: not to be compared. */
  String fingerprint(Guard guard, Object target, Method method, Object[] arguments, WebCall web) {
    if (guard.type == IdempotentTypeEnum.PARAM && guard.fingerprint == null) return null;
    if (guard.fingerprint != null) {
      return canonical(evaluate(guard.fingerprint, target, method, arguments, web));
    }
    if (guard.isMq || guard.annotation.fingerprint().equals("none")) return null;
    return payload(arguments);
  }

  private String payload(Object[] arguments) {
    List<Object> kept = new ArrayList<>();
    for (Object each : arguments) {
      if (isUpload(each)) {
        kept.add(ReflectionUtils.invokeMethod(
            ReflectionUtils.findMethod(each.getClass(), "getBytes"), each));
      } else if (!isInfrastructure(each)) {
        kept.add(each);
      }
    }
    return canonical(kept);
  }

  private String canonical(Object value) {
    try {
      return CanonicalJson.of(codec.decode(codec.encode(value), Object.class));
    } catch (Exception | StackOverflowError error) {
      throw new InvalidKey("the arguments are no JSON (" + error + "); name what matters: "
          + "fingerprint = \"#order.id\", or fingerprint = \"none\"", error);
    }
  }

  private static boolean isUpload(Object value) {
    return value != null && ReflectionUtils.findMethod(value.getClass(), "getOriginalFilename")
        != null;
  }

  /** Requests, responses, binding results and the like say nothing of the payload. */
  private static boolean isInfrastructure(Object value) {
    if (value == null) return false;
    if (value instanceof Principal || value instanceof java.io.Closeable) return true;
    for (Class<?> type = value.getClass(); type != null; type = type.getSuperclass()) {
      if (isFramework(type)) return true;
      for (Class<?> each : type.getInterfaces()) {
        if (isFramework(each)) return true;
      }
    }
    return false;
  }

  private static boolean isFramework(Class<?> type) {
    String name = type.getName();
    return name.startsWith("javax.servlet.") || name.startsWith("jakarta.servlet.")
        || name.startsWith("org.springframework.") || name.startsWith("com.rabbitmq.")
        || name.startsWith("org.apache.kafka.clients.");
  }
}
