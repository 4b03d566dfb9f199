package io.semel.spring.mq;

import io.semel.Verdict;
import java.lang.annotation.Annotation;
import java.lang.reflect.Method;

/**
 * Verdicts as the broker of a listener's method understands them. Of RabbitMQ and Kafka by the
 * listener's annotation, of RocketMQ by the status that it returns; for others RetryLater and
 * DeadLetter are thrown.
 */
public final class Brokers {
  private Brokers() {}

  /** The method's value, or what a duplicate returns; throws for the other verdicts. */
  public static Object answer(Verdict verdict, Method method, Object value) {
    boolean rocket = method.getReturnType().getSimpleName().equals("ConsumeConcurrentlyStatus");
    switch (verdict.kind()) {
      case ACK:
        return value;
      case ACK_DUPLICATE:
        return rocket ? status(method, "CONSUME_SUCCESS") : none(method.getReturnType());
      case RETRY_LATER:
        if (rocket) return status(method, "RECONSUME_LATER");
        throw later(verdict, method);
      default:
        throw deadLetter(verdict, method);
    }
  }

  private static RuntimeException later(Verdict verdict, Method method) {
    String text = "deliver again later: " + verdict.cause();
    return listens(method, "RabbitListener") ? Rabbit.later(text, verdict.cause(), verdict.retryAfterMs())
        : new RetryLater(text, verdict.cause());
  }

  private static RuntimeException deadLetter(Verdict verdict, Method method) {
    String text = "a dead letter: " + verdict.cause();
    return listens(method, "RabbitListener") ? Rabbit.deadLetter(text, verdict.cause())
        : new DeadLetter(text, verdict.cause());
  }

  private static boolean listens(Method method, String annotation) {
    for (Annotation each : method.getAnnotations()) {
      if (each.annotationType().getSimpleName().equals(annotation)) return true;
    }
    for (Annotation each : method.getDeclaringClass().getAnnotations()) {
      if (each.annotationType().getSimpleName().equals(annotation)) return true;
    }
    return false;
  }

  @SuppressWarnings({"unchecked", "rawtypes"})
  private static Object status(Method method, String name) {
    return Enum.valueOf((Class) method.getReturnType(), name);
  }

  private static Object none(Class<?> type) {
    if (type == boolean.class) return false;
    if (type == int.class) return 0;
    if (type == long.class) return 0L;
    return null;
  }
}
