package io.semel.spring.mq;

import io.semel.Verdict;
import java.lang.annotation.Annotation;
import java.lang.reflect.Method;
import java.time.Duration;

/**
 * Verdicts as the broker of a listener's method understands them. Of RabbitMQ and Kafka by the
 * listener's annotation, of RocketMQ by the status that it returns; for others RetryLater and
 * DeadLetter are thrown.
 */
public final class Brokers {
  private static final long RETRY_MS = 1_000;

  private Brokers() {}

  /**
   * What the method returned, as Consumer understands it: a status of RocketMQ that asks for another
   * delivery is a verdict, and null where a status, a flag or a verdict is due is none.
   *
   * @throws IllegalStateException if it is none
   */
  public static Object judged(Method method, Object value) {
    Class<?> type = method.getReturnType();
    boolean isAnswer = isStatus(type) || type == Boolean.class || type == Verdict.class;
    if (value == null && isAnswer) {
      throw new IllegalStateException(method.getName() + " answered null, which is no verdict");
    }
    boolean again = value != null && isStatus(value.getClass())
        && !value.toString().endsWith("SUCCESS") && !value.toString().equals("COMMIT");
    if (again) return Verdict.retryLater(Duration.ofMillis(RETRY_MS));
    return value;
  }

  /** What RocketMQ's listeners answer, one by one or in order. */
  private static boolean isStatus(Class<?> type) {
    return type.getSimpleName().equals("ConsumeConcurrentlyStatus")
        || type.getSimpleName().equals("ConsumeOrderlyStatus");
  }

  /** The method's value, or what a duplicate returns; throws for the other verdicts. */
  public static Object answer(Verdict verdict, Method method, Object value) {
    boolean rocket = isStatus(method.getReturnType());
    boolean ordered = method.getReturnType().getSimpleName().equals("ConsumeOrderlyStatus");
    switch (verdict.kind()) {
      case ACK:
        return value;
      case ACK_DUPLICATE:
        return rocket ? status(method, ordered ? "SUCCESS" : "CONSUME_SUCCESS")
            : none(method.getReturnType());
      case RETRY_LATER:
        if (rocket) {
          return status(method, ordered ? "SUSPEND_CURRENT_QUEUE_A_MOMENT" : "RECONSUME_LATER");
        }
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
    // False was no acknowledgement.
    if (type == boolean.class || type == Boolean.class) return true;
    if (type == Verdict.class) return Verdict.ack();
    if (type == int.class) return 0;
    if (type == long.class) return 0L;
    return null;
  }
}
