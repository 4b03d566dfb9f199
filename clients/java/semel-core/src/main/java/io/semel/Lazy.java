package io.semel;

/**
 * What stands for work that is still to be done, can be read once or must be closed: not a result, and
 * not an argument that can be compared. By the names of types, so that no library is needed.
 */
public final class Lazy {
  private static final String[] NAMES = {"java.util.concurrent.Future",
      "java.util.concurrent.CompletionStage", "java.util.concurrent.Callable",
      "java.util.concurrent.Flow$Publisher", "java.util.concurrent.Executor", "java.lang.Runnable",
      "java.util.stream.BaseStream", "java.io.InputStream", "java.lang.AutoCloseable",
      "jakarta.servlet.http.HttpSession", "javax.servlet.http.HttpSession",
      "java.util.stream.Collector", "java.util.Iterator", "java.util.Enumeration",
      "java.util.Spliterator", "java.lang.Thread",
      "org.reactivestreams.Publisher", "org.springframework.core.io.InputStreamSource",
      "org.springframework.web.context.request.async.DeferredResult",
      "org.springframework.web.context.request.async.WebAsyncTask",
      "org.springframework.web.servlet.mvc.method.annotation.ResponseBodyEmitter",
      "org.springframework.web.servlet.mvc.method.annotation.StreamingResponseBody",
      "org.springframework.web.servlet.ModelAndView", "org.springframework.web.servlet.View",
      "io.reactivex.rxjava3.core.SingleSource", "io.reactivex.rxjava3.core.ObservableSource",
      "io.reactivex.rxjava3.core.MaybeSource", "io.reactivex.rxjava3.core.CompletableSource",
      "io.reactivex.SingleSource", "io.reactivex.ObservableSource", "io.reactivex.MaybeSource",
      "io.reactivex.CompletableSource", "io.smallrye.mutiny.Uni", "io.vavr.concurrent.Future",
      "io.vertx.core.Future", "scala.concurrent.Future",
      "kotlin.Function", "kotlin.sequences.Sequence", "kotlin.coroutines.Continuation",
      "kotlinx.coroutines.flow.Flow", "kotlinx.coroutines.Job", "groovy.lang.Closure"};
  /** Of those interfaces too, but what they hold is there: an upload, a page (a Supplier), a sort. */
  private static final String[] THERE = {"org.springframework.web.multipart.MultipartFile",
      "org.springframework.data.domain.Slice", "org.springframework.data.domain.Sort",
      "org.springframework.data.domain.Window"};

  private static final ClassValue<String> KNOWN = new ClassValue<String>() {
    @Override
    protected String computeValue(Class<?> type) {
      for (String each : THERE) {
        if (isOf(type, each)) return "";
      }
      for (String each : NAMES) {
        if (isOf(type, each)) return "a " + each;
      }
      String function = function(type);
      if (function != null) return "a " + function;
      boolean lambda = type.getName().contains("$$Lambda") || type.getName().contains("/0x");
      return lambda ? "a function" : "";
    }
  };

  private Lazy() {}

  /** Whether `type` has this name, or is a subtype of what has. */
  public static boolean isOf(Class<?> type, String name) {
    if (type == null) return false;
    if (type.getName().equals(name)) return true;
    for (Class<?> each : type.getInterfaces()) {
      if (isOf(each, name)) return true;
    }
    return isOf(type.getSuperclass(), name);
  }

  /** The type of java.util.function that it is one of. */
  private static String function(Class<?> type) {
    if (type == null) return null;
    if (type.getName().startsWith("java.util.function.")) return type.getName();
    for (Class<?> each : type.getInterfaces()) {
      String found = function(each);
      if (found != null) return found;
    }
    return function(type.getSuperclass());
  }

  /** What values of this type are, such as `a java.util.concurrent.Future`; null: not lazy. */
  public static String why(Class<?> type) {
    String known = KNOWN.get(type);
    return known.isEmpty() ? null : known;
  }

  /** why() of a value's class. */
  public static String why(Object value) {
    return value == null ? null : why(value.getClass());
  }

  /**
   * why() of a value or of what is in a collection, a map, an array, an entity, or a field that a
   * class shows.
   */
  public static String inside(Object value) {
    return new LazySearch().of(value);
  }

  /**
   * To be asked of what a function returned, before its claim is completed.
   *
   * @throws LazyResult if it is work that is still to be done
   */
  public static void check(Object value) {
    String lazy = inside(value);
    if (lazy != null) {
      throw new LazyResult("the function returned " + lazy + " (" + value.getClass().getName()
          + "): what it stands for has not run, and cannot be recorded");
    }
  }
}
