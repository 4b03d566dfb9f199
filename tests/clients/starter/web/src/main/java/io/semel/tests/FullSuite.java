package io.semel.tests;

import io.semel.Link;
import io.semel.Rejected;
import io.semel.ResultNotKept;
import io.semel.ServerError;
import io.semel.Unrecorded;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;

/** Guarded methods whose completions the node does not take, or not with their results. */
final class FullSuite {
  /** Null: completions are passed on. */
  private static volatile ServerError refusal;
  private static volatile boolean takesBare;

  private FullSuite() {}

  /** Puts it in front of the link of an application. */
  public static class Before {
    @Bean
    static BeanPostProcessor before() {
      return new BeanPostProcessor() {
        @Override
        public Object postProcessAfterInitialization(Object bean, String name) {
          return bean instanceof Link ? between((Link) bean) : bean;
        }
      };
    }
  }

  private static boolean isRefused(List<?> words) {
    if (refusal == null || !text(words.get(0)).equals("SEMEL.COMPLETE")) return false;
    return !takesBare || !text(words.get(4)).contains("dropped: ");
  }

  private static String text(Object word) {
    return new String((byte[]) word, StandardCharsets.UTF_8);
  }

  private static Object between(Link link) {
    return Proxy.newProxyInstance(Link.class.getClassLoader(), new Class<?>[] {Link.class},
        (proxy, method, words) -> {
          if (method.getName().equals("call") && isRefused((List<?>) words[0])) throw refusal;
          try {
            return method.invoke(link, words);
          } catch (InvocationTargetException thrown) {
            throw thrown.getCause();
          }
        });
  }

  private static void noRoom(ConfigurableApplicationContext context, Http http) throws Exception {
    refusal = new ServerError("OOM memory limit reached, nothing was changed");
    takesBare = true;
    Beans.Greeter greeter = context.getBean(Beans.Greeter.class);
    Object first = Report.thrown(ResultNotKept.class, () -> greeter.greet("no room")).value();
    Report.has(String.valueOf(first), "no room");
    Report.same(Report.thrown(Rejected.class, () -> greeter.greet("no room")).reason(),
        Rejected.Reason.RESULT_GONE);
    HttpResponse<String> told = http.post("/orders", "{\"id\":\"no-room\",\"amount\":7}");
    Report.same(told.statusCode(), 500);
    Report.has(told.body(), "done, but its result was not kept");
    Report.same(http.post("/orders", "{\"id\":\"no-room\",\"amount\":7}").statusCode(), 409);
    // The transaction is committed, and its work is done.
    Beans.Ledger ledger = context.getBean(Beans.Ledger.class);
    Report.thrown(ResultNotKept.class,
        () -> context.getBean(Beans.Bank.class).book("e-full", () -> null));
    Report.same(ledger.state("e-full"), "done");
    refusal = null;
  }

  private static void unrecorded(ConfigurableApplicationContext context, Http http)
      throws Exception {
    refusal = new ServerError("MISCONF the journal cannot accept writes");
    takesBare = false;
    Beans.Greeter greeter = context.getBean(Beans.Greeter.class);
    Object value = Report.thrown(Unrecorded.class, () -> greeter.greet("never")).value();
    Report.has(String.valueOf(value), "never");
    // The reply is true: an error would have it sent again.
    HttpResponse<String> reply = http.post("/orders", "{\"id\":\"never\",\"amount\":7}");
    Report.same(reply.statusCode() + Http.header(reply, "Semel-Recorded"), "201no");
    Report.same(http.post("/later?id=never", "").statusCode(), 202);
    // Handled, so it is not to come again.
    Beans.Listeners listeners = context.getBean(Beans.Listeners.class);
    listeners.rabbit("m-never");
    listeners.kafka("m-never");
    refusal = null;
    HttpResponse<String> next = http.post("/orders", "{\"id\":\"next\",\"amount\":7}");
    Report.same(next.statusCode() + Http.header(next, "Semel-Recorded"), "201");
  }

  static void run(ConfigurableApplicationContext context, String boot) {
    Http http = new Http(context.getEnvironment().getProperty("local.server.port"));
    Report.check("once-again-22: methods whose result has no room are done" + boot,
        () -> noRoom(context, http));
    Report.check("once-again-22: methods that are not recorded" + boot,
        () -> unrecorded(context, http));
    refusal = null;
  }
}
