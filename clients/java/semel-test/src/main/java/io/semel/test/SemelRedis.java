package io.semel.test;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * A test class of JUnit 5 with a server of its own, which is empty before each test. Its methods
 * and its constructor may have parameters of the types {@link SemelServer}, {@link SemelClock},
 * {@link SemelFaults} and {@link java.net.URI}.
 */
@Target(ElementType.TYPE)
@Retention(RetentionPolicy.RUNTIME)
@ExtendWith(SemelExtension.class)
public @interface SemelRedis {
  /** Those of redis-server. */
  String[] flags() default {};
}
