package io.semel.spring;

import io.semel.Identity;
import io.semel.InvalidKey;
import io.semel.KeyText;
import java.lang.reflect.Method;
import java.util.AbstractMap;
import java.util.Collections;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.context.expression.BeanFactoryResolver;
import org.springframework.context.expression.MethodBasedEvaluationContext;
import org.springframework.core.DefaultParameterNameDiscoverer;
import org.springframework.core.ParameterNameDiscoverer;
import org.springframework.expression.Expression;
import org.springframework.util.ReflectionUtils;

/** Keys and fingerprints of calls. */
final class Keys {
  private static final Method COMPOSITE =
      ReflectionUtils.findMethod(KeyText.class, "composite", Object[].class);
  private static final Method FORMAT =
      ReflectionUtils.findMethod(KeyText.class, "format", String.class, Map.class);
  private final ParameterNameDiscoverer names = new DefaultParameterNameDiscoverer();
  private final Settings settings;
  private final BeanFactory beans;

  Keys(Settings settings, BeanFactory beans) {
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
        return KeyText.of(evaluate(guard.key, target, method, arguments, web));
      default:
        return parameters(guard, method, arguments, web).key();
    }
  }

  private String token(Guard guard, WebCall web) {
    if (web == null) {
      throw new InvalidKey(guard.name + " needs a token, but no request is being answered");
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
      context.registerFunction("compositeKey", COMPOSITE);
      context.registerFunction("formatKey", FORMAT);
      return Joined.value(expression, context);
    } catch (InvalidKey refused) {
      throw refused;
    } catch (RuntimeException error) {
      for (Throwable cause = error; cause != null; cause = cause.getCause()) {
        if (cause instanceof InvalidKey) throw (InvalidKey) cause;
      }
      throw new InvalidKey("'" + expression.getExpressionString() + "' cannot be evaluated ("
          + error.getMessage() + "); names of parameters need javac -parameters", error);
    }
  }

  /** Of the method, the user and all arguments; of a controller also the path. */
  private Identity parameters(Guard guard, Method method, Object[] arguments, WebCall web) {
    Map<String, Object> named = arguments(guard, method, arguments);
    // No parameter has such a name. A part of the path need not be an argument.
    if (web != null && guard.isController) named.put("@request", web.line());
    return Identity.of(guard.operation, null, web == null ? null : user(web), named);
  }

  private String user(WebCall web) {
    UserResolver resolver = beans == null ? null
        : beans.getBeanProvider(UserResolver.class).getIfAvailable();
    String user = resolver == null ? web.user() : resolver.user();
    if ((user == null || user.isEmpty()) && !settings.anonymous()) {
      throw new InvalidKey("nobody is logged in, and all callers would share one key: provide a "
          + "UserResolver, or set semel.param.anonymous");
    }
    return user == null || user.isEmpty() ? null : user;
  }

  /** What repeats are compared by; the operation is always a part of it. */
  Identity identity(Guard guard, Object target, Method method, Object[] arguments, WebCall web) {
    if (guard.fingerprint != null) {
      return Identity.of(guard.operation,
          evaluate(guard.fingerprint, target, method, arguments, web));
    }
    if (guard.type == IdempotentTypeEnum.PARAM) return parameters(guard, method, arguments, web);
    boolean comparesNothing = guard.isMq || guard.annotation.fingerprint().equals("none");
    return Identity.of(guard.operation,
        comparesNothing ? Collections.emptyMap() : arguments(guard, method, arguments));
  }

  private Map<String, Object> arguments(Guard guard, Method method, Object[] arguments) {
    String[] known = names.getParameterNames(method);
    Map<String, Object> named = new TreeMap<>();
    for (int i = 0; i < arguments.length; ++i) {
      String name = known == null ? "arg" + i : known[i];
      boolean isLeftOut = guard.leftOut.contains(name)
          || LeftOut.is(method.getParameterTypes()[i], arguments[i], guard.isController);
      if (!isLeftOut) named.put(name, arguments[i]);
    }
    return named;
  }
}
