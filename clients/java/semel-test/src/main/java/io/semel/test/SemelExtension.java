package io.semel.test;

import java.net.URI;
import java.util.function.BiConsumer;
import java.util.function.Supplier;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;

/**
 * What {@link SemelRedis} registers. As a field it serves frameworks that ask before JUnit does:
 *
 * <pre>{@code
 * @RegisterExtension static final SemelExtension redis = SemelExtension.withFlags();
 *
 * @DynamicPropertySource
 * static void redis(DynamicPropertyRegistry registry) { redis.springProperties(registry::add); }
 * }</pre>
 */
public final class SemelExtension
    implements BeforeAllCallback, BeforeEachCallback, AfterAllCallback, ParameterResolver {
  private static final ExtensionContext.Namespace SPACE =
      ExtensionContext.Namespace.create(SemelExtension.class);

  private final String[] flags;
  private final boolean isField;
  private SemelServer own; // of a field; that of an annotation is its class'

  /** For the annotation. */
  SemelExtension() {
    this(false);
  }

  private SemelExtension(boolean isField, String... flags) {
    this.isField = isField;
    this.flags = flags;
  }

  /** For a static field with {@code @RegisterExtension}: the class has a server with these flags. */
  public static SemelExtension withFlags(String... flags) {
    return new SemelExtension(true, flags);
  }

  /** Of a field: starts it when it is asked for first. */
  public synchronized SemelServer server() {
    if (!isField) throw new IllegalStateException("of a field alone; see SemelExtension.withFlags");
    if (own == null) own = SemelServer.start(flags);
    return own;
  }

  /** The properties of Spring Boot for the server; it starts when they are read. */
  public void springProperties(BiConsumer<String, Supplier<Object>> registry) {
    for (String prefix : new String[] {"spring.data.redis.", "spring.redis."}) {
      registry.accept(prefix + "host", () -> server().host());
      registry.accept(prefix + "port", () -> server().port());
    }
  }

  @Override
  public void beforeAll(ExtensionContext context) {
    server(context);
  }

  @Override
  public void beforeEach(ExtensionContext context) {
    server(context).flush();
  }

  @Override
  public synchronized void afterAll(ExtensionContext context) {
    if (own == null || isNested(context)) return;
    own.close();
    own = null;
  }

  @Override
  public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
    Class<?> type = parameter.getParameter().getType();
    return type == SemelServer.class || type == SemelClock.class || type == SemelFaults.class
        || type == URI.class;
  }

  @Override
  public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
    SemelServer server = server(context);
    Class<?> type = parameter.getParameter().getType();
    if (type == SemelClock.class) return server.clock();
    if (type == SemelFaults.class) return server.faults();
    return type == URI.class ? server.url() : server;
  }

  /** One for a class and those that are nested in it. */
  private SemelServer server(ExtensionContext context) {
    if (isField) return server();
    ExtensionContext at = context;
    while (isNested(at) || !at.getTestClass().equals(at.getElement())) at = at.getParent().get();
    Class<?> outer = at.getRequiredTestClass();
    return at.getStore(SPACE)
        .getOrComputeIfAbsent(SemelServer.class, key -> new Held(flagsOf(outer)), Held.class).server;
  }

  private static String[] flagsOf(Class<?> outer) {
    SemelRedis annotation = outer.getAnnotation(SemelRedis.class);
    return annotation == null ? new String[0] : annotation.flags();
  }

  private static boolean isNested(ExtensionContext context) {
    return context.getTestClass().map(each -> each.getEnclosingClass() != null).orElse(false)
        && context.getParent().flatMap(ExtensionContext::getTestClass).isPresent();
  }

  /** Closed by JUnit when the class has ended. */
  private static final class Held implements ExtensionContext.Store.CloseableResource {
    private final SemelServer server;

    Held(String... flags) {
      server = SemelServer.start(flags);
    }

    @Override
    public void close() {
      server.close();
    }
  }
}
