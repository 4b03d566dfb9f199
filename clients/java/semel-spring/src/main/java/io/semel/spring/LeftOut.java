package io.semel.spring;

import io.semel.Lazy;
import java.security.Principal;
import java.time.ZoneId;
import java.util.Locale;
import java.util.TimeZone;

/**
 * Arguments that say nothing of the payload: these types of docs/identity.md and their subtypes, by
 * their names, and no others. A package is no reason: what a form, an entity or a page holds is
 * payload.
 */
final class LeftOut {
  private static final String[] NAMES = {"javax.servlet.ServletRequest",
      "javax.servlet.ServletResponse", "jakarta.servlet.ServletRequest",
      "jakarta.servlet.ServletResponse", "org.springframework.web.context.request.WebRequest",
      "org.springframework.ui.Model", "org.springframework.ui.ModelMap",
      "org.springframework.validation.Errors",
      "org.springframework.web.servlet.mvc.support.RedirectAttributes",
      "org.springframework.web.bind.support.SessionStatus",
      "org.springframework.web.util.UriComponentsBuilder",
      "org.springframework.messaging.MessageHeaders", "com.rabbitmq.client.Channel",
      "org.springframework.kafka.support.Acknowledgment",
      "org.apache.kafka.clients.consumer.Consumer",
      "org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyContext",
      "org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyContext"};

  private static final ClassValue<Boolean> KNOWN = new ClassValue<Boolean>() {
    @Override
    protected Boolean computeValue(Class<?> type) {
      for (String each : NAMES) {
        if (Lazy.isOf(type, each)) return true;
      }
      return Principal.class.isAssignableFrom(type);
    }
  };

  private LeftOut() {}

  /** By the parameter's type, as its value may be null, and by the value's own. */
  static boolean is(Class<?> declared, Object value, boolean isController) {
    return is(declared, isController)
        || value != null && declared.isAssignableFrom(value.getClass())
            && is(value.getClass(), isController);
  }

  private static boolean is(Class<?> type, boolean isController) {
    boolean ofRequest = isController && (Locale.class.isAssignableFrom(type)
        || TimeZone.class.isAssignableFrom(type) || ZoneId.class.isAssignableFrom(type));
    return ofRequest || KNOWN.get(type);
  }
}
