package io.semel.spring;

import java.lang.reflect.Method;
import java.security.Principal;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.Set;
import org.springframework.util.ClassUtils;
import org.springframework.util.ReflectionUtils;
import org.springframework.web.context.request.RequestAttributes;
import org.springframework.web.context.request.RequestContextHolder;

/** The request that this thread answers. By reflection: it is of javax or of jakarta. */
final class WebCall {
  private static final boolean WEB = ClassUtils.isPresent(
      "org.springframework.web.context.request.RequestContextHolder",
      WebCall.class.getClassLoader());
  private final Object request;
  private final Object response;

  private WebCall(Object request, Object response) {
    this.request = request;
    this.response = response;
  }

  /** Null outside of a request. */
  static WebCall current() {
    return WEB ? Attributes.current() : null;
  }

  /** Apart, so that this class loads without spring-web. */
  private static final class Attributes {
    static WebCall current() {
      RequestAttributes attributes = RequestContextHolder.getRequestAttributes();
      if (attributes == null) return null;
      Object request = attributes.resolveReference(RequestAttributes.REFERENCE_REQUEST);
      if (request == null) return null;
      Method get = ReflectionUtils.findMethod(attributes.getClass(), "getResponse");
      Object response = get == null ? null : ReflectionUtils.invokeMethod(get, attributes);
      return new WebCall(request, response);
    }
  }

  private static Object call(Object on, String name, Class<?>[] types, Object... arguments) {
    Method method = ReflectionUtils.findMethod(on.getClass(), name, types);
    if (method == null) return null;
    ReflectionUtils.makeAccessible(method);
    return ReflectionUtils.invokeMethod(method, on, arguments);
  }

  private static final Class<?>[] NONE = {};
  private static final Class<?>[] TEXT = {String.class};
  private static final Class<?>[] TEXTS = {String.class, String.class};

  String header(String name) {
    return (String) call(request, "getHeader", TEXT, name);
  }

  String parameter(String name) {
    return (String) call(request, "getParameter", TEXT, name);
  }

  /** Method and path. */
  String line() {
    return call(request, "getMethod", NONE) + " " + call(request, "getRequestURI", NONE);
  }

  String user() {
    Principal principal = (Principal) call(request, "getUserPrincipal", NONE);
    return principal == null ? null : principal.getName();
  }

  int status() {
    Object status = response == null ? null : call(response, "getStatus", NONE);
    return status == null ? 0 : (Integer) status;
  }

  void status(int value) {
    if (response != null) call(response, "setStatus", new Class<?>[] {int.class}, value);
  }

  Set<String> headerNames() {
    Object names = response == null ? null : call(response, "getHeaderNames", NONE);
    Set<String> all = new LinkedHashSet<>();
    if (names instanceof Collection) {
      for (Object each : (Collection<?>) names) all.add(String.valueOf(each));
    }
    return all;
  }

  Collection<?> headers(String name) {
    return (Collection<?>) call(response, "getHeaders", TEXT, name);
  }

  void addHeader(String name, String value) {
    if (response != null) call(response, "addHeader", TEXTS, name, value);
  }
}
