package io.semel.tests;

import io.semel.InvalidKey;
import io.semel.LazyResult;
import io.semel.LeaseLost;
import io.semel.Mismatch;
import io.semel.Rejected;
import io.semel.ResultNotKept;
import io.semel.spring.mq.RetryLater;
import java.math.BigDecimal;
import java.net.URI;
import java.security.Principal;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.function.Supplier;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.data.domain.PageImpl;
import org.springframework.data.domain.PageRequest;
import org.springframework.data.domain.Pageable;
import org.springframework.data.domain.Sort;
import org.springframework.http.HttpEntity;
import org.springframework.http.HttpHeaders;
import org.springframework.http.RequestEntity;
import org.springframework.http.ResponseEntity;
import org.springframework.messaging.MessageHeaders;
import org.springframework.messaging.support.GenericMessage;
import org.springframework.ui.ExtendedModelMap;
import org.springframework.util.LinkedMultiValueMap;
import org.springframework.util.MultiValueMap;
import org.springframework.validation.BeanPropertyBindingResult;

/** What identifies a call of a method, and what of its result a repeat gets. */
final class CallSuite {
  private static CallBeans.Payloads payloads;
  private static CallBeans.Results results;
  private static CallBeans.Operations operations;

  private CallSuite() {}

  private static MultiValueMap<String, String> form(String amount) {
    LinkedMultiValueMap<String, String> made = new LinkedMultiValueMap<>();
    made.add("to", "bob");
    made.add("amount", amount);
    return made;
  }

  private static HttpHeaders trace(String id) {
    HttpHeaders made = new HttpHeaders();
    made.add("traceparent", id);
    return made;
  }

  private static CallBeans.Order order(String id) {
    return new CallBeans.Order(id, 7);
  }

  /** Of each row the second is other work, and the third is the first once more. */
  private static Object[][] rows() {
    URI uri = URI.create("/pay");
    return new Object[][] {{form("5"), form("900"), form("5")},
        {new HttpEntity<>(order("a"), trace("1")), new HttpEntity<>(order("b"), trace("1")),
            new HttpEntity<>(order("a"), trace("2"))},
        {RequestEntity.post(uri).header("a", "1").body(order("a")),
            RequestEntity.post(uri).body(order("b")), RequestEntity.post(uri).body(order("a"))},
        {ResponseEntity.ok(order("a")), ResponseEntity.ok(order("b")),
            ResponseEntity.ok(order("a"))},
        {new GenericMessage<>(order("a"), Map.of("n", 1)), new GenericMessage<>(order("b")),
            new GenericMessage<>(order("a"))},
        {new CallBeans.Upload("f", "1"), new CallBeans.Upload("f", "2"),
            new CallBeans.Upload("f", "1")},
        {new CallBeans.Upload("f", "3"), new CallBeans.Upload("g", "3"),
            new CallBeans.Upload("f", "3")},
        {List.of(new CallBeans.Upload("f", "1")), List.of(new CallBeans.Upload("f", "2")),
            List.of(new CallBeans.Upload("f", "1"))},
        {PageRequest.of(0, 5, Sort.by("a")), PageRequest.of(1, 5, Sort.by("a")),
            PageRequest.of(0, 5, Sort.by("a"))},
        {Sort.by("a").ascending(), Sort.by("a").descending(), Sort.by("a")},
        {new PageImpl<>(List.of("a"), PageRequest.of(0, 5), 40),
            new PageImpl<>(List.of("a"), PageRequest.of(0, 5), 41),
            new PageImpl<>(List.of("a"), PageRequest.of(0, 5), 40)},
        {new CallBeans.Ranked("a"), new CallBeans.Ranked("b"), new CallBeans.Ranked("a")},
        {new CallBeans.Row("a"), new CallBeans.Row("b"), new CallBeans.Row("a")},
        {Optional.of(order("a")), Optional.empty(), Optional.of(order("a"))},
        {new HashSet<>(List.of("Aa", "BB")), Set.of("Aa"), new HashSet<>(List.of("BB", "Aa"))},
        {Locale.GERMANY, Locale.FRANCE, Locale.GERMANY},
        {trace("1"), trace("2"), trace("1")}};
  }

  private static void payloads() {
    for (Object[] each : rows()) {
      String first = payloads.any(each[0]);
      if (payloads.any(each[1]).equals(first)) throw new AssertionError("one call: " + each[1]);
      Report.same(payloads.any(each[2]), first);
    }
  }

  private static void forms() {
    String first = payloads.form(form("5"));
    Report.same(payloads.form(form("900")).equals(first), false);
    Report.same(payloads.form(form("5")), first);
    payloads.keyed("k-1", form("5"));
    Report.thrown(Mismatch.class, () -> payloads.keyed("k-1", form("900")));
    Report.same(payloads.page("a", Pageable.unpaged()).equals(
        payloads.page("a", PageRequest.of(0, 5))), false);
  }

  /** Those of the list are left out, also where they are null, and a DTO is not of the list. */
  private static void leftOut() {
    Principal ann = () -> "ann";
    String first = payloads.request("a", ann, new ExtendedModelMap(), new BeanPropertyBindingResult(
        "x", "x"), new MessageHeaders(Map.of()));
    Report.same(payloads.request("a", null, null, null, null), first);
    Report.same(payloads.request("b", null, null, null, null).equals(first), false);
    String named = payloads.named("a", "trace 1");
    Report.same(payloads.named("a", "trace 2"), named);
  }

  private static void refused() {
    Supplier<String> supplier = () -> "later";
    for (Object each : new Object[] {supplier, java.util.stream.Stream.of(1), List.of(1).iterator(),
        new java.io.ByteArrayInputStream(new byte[1]), new CompletableFuture<String>(),
        reactor.core.publisher.Mono.just("a"), new Object(), Double.NaN,
        Map.of("inside", List.of(supplier))}) {
      Report.has(Report.thrown(InvalidKey.class, () -> payloads.any(each)).getMessage(), "value");
    }
  }

  private static void operations() {
    Report.same(operations.pay("o-1"), "pay text");
    Report.thrown(Mismatch.class, () -> operations.pay(new StringBuilder("o-1")));
    Report.thrown(Mismatch.class, () -> operations.refund("o-1"));
    Report.same(operations.pay("o-1"), "pay text");
    // No fingerprint of a payload, and yet of another operation.
    operations.loose("o-2", 1);
    operations.loose("o-2", 2);
    Report.thrown(Mismatch.class, () -> operations.looser("o-2"));
    String first = operations.oldName("o-3");
    Report.same(operations.newName("o-3"), first);
  }

  private static void keys() {
    Report.has(Report.thrown(InvalidKey.class, () -> operations.joined(null, "b")).getMessage(),
        "#a, which is null");
    operations.joined("null", "b");
    Report.same(operations.composite("a|b", "c").equals(operations.composite("a", "b|c")), false);
    Report.thrown(InvalidKey.class, () -> operations.composite(null, "c"));
    String one = operations.number(new BigDecimal("1.50"));
    Report.same(operations.number(1.5), one);
    // By its name, also where its text is another.
    Report.same(operations.number(CallBeans.Color.RED), operations.number("RED"));
  }

  /** Run twice, and the values are of the same classes. */
  private static void same(Supplier<?> call) {
    Object first = call.get();
    Object second = call.get();
    Report.same(second, first);
  }

  private static void results() {
    same(() -> results.future("a").join());
    same(() -> results.futures("a").join());
    same(() -> results.entity("a").join().getBody());
    same(() -> results.list("a"));
    same(() -> results.map("a"));
    same(() -> results.optional("a"));
    same(() -> results.listed("a").getBody());
    same(() -> results.shapes("a"));
    same(() -> results.generic("a"));
    Report.same(results.generic("a").getClass(), CallBeans.Order.class);
    ResultNotKept told = Report.thrown(ResultNotKept.class, () -> results.any("a"));
    Report.same(told.value(), order("a"));
  }

  /** What the JSON does not have is not lost without a word. */
  private static void halves() {
    CallBeans.Half first =
        (CallBeans.Half) Report.thrown(ResultNotKept.class, () -> results.half("a")).value();
    Report.same(first.id, "a");
    Report.same(Report.thrown(Rejected.class, () -> results.half("a")).reason(),
        Rejected.Reason.RESULT_GONE);
    Report.same(results.half("whole").id + results.half("whole").id, "wholewhole");
    Report.same(Report.thrown(CompletionException.class, () -> results.halves("b").join())
        .getCause().getClass(), ResultNotKept.class);
    Report.same(results.halves("whole").join().get(0).id, "whole");
    Report.same(results.halves("whole").join().get(0).id, "whole");
  }

  /** Of a type that says so. */
  private static void lazyField() {
    CallBeans.next = new CallBeans.Mailed("a", new CompletableFuture<>());
    Report.thrown(LazyResult.class, () -> results.mailed("a"));
    CallBeans.next = new CallBeans.Mailed("a", null);
    Report.same(results.mailed("a"), CallBeans.next);
    Report.same(results.mailed("a"), CallBeans.next);
  }

  private static void lazyResults() {
    lazyField();
    for (Object each : new Object[] {new CompletableFuture<String>(), List.of(1).iterator(),
        new CallBeans.Mailed("a", new CompletableFuture<>()),
        List.of(reactor.core.publisher.Mono.just("a")),
        ResponseEntity.ok((Supplier<String>) () -> "b")}) {
      CallBeans.next = each;
      Report.thrown(LazyResult.class, () -> results.next("n-" + each.getClass()));
      CallBeans.next = "ran";
      Report.same(results.next("n-" + each.getClass()), "ran");
    }
  }

  private static void listeners() {
    for (Object each : new Object[] {ConsumeConcurrentlyStatus.RECONSUME_LATER, null}) {
      CallBeans.next = each;
      Report.same(results.rocket("r-" + each), ConsumeConcurrentlyStatus.RECONSUME_LATER);
      CallBeans.next = ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
      Report.same(results.rocket("r-" + each), ConsumeConcurrentlyStatus.CONSUME_SUCCESS);
      CallBeans.next = null;
      Report.same(results.rocket("r-" + each), ConsumeConcurrentlyStatus.CONSUME_SUCCESS);
    }
    CallBeans.next = ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT;
    Report.same(results.ordered("r"), CallBeans.next);
    CallBeans.next = ConsumeOrderlyStatus.SUCCESS;
    Report.same(results.ordered("r"), CallBeans.next);
    Report.same(results.ordered("r"), CallBeans.next);
    for (Object each : new Object[] {false, 0, new CompletableFuture<String>(),
        new CallBeans.Mailed("a", new CompletableFuture<>())}) {
      CallBeans.next = each;
      Report.thrown(RetryLater.class, () -> results.message("m-" + each.getClass()));
      CallBeans.next = "handled";
      Report.same(results.message("m-" + each.getClass()), "handled");
    }
  }

  /** A lock that another owner has had meanwhile was none. */
  private static void lock(Node node) {
    same(() -> results.lock("l").startsWith("run"));
    CallBeans.during = () -> {
      CallBeans.during = () -> {};
      try {
        node.advance(60_001);
      } catch (java.io.IOException error) {
        throw new AssertionError(error);
      }
      CompletableFuture.supplyAsync(() -> results.lock("l")).join();
    };
    Report.thrown(LeaseLost.class, () -> results.lock("l"));
  }

  private static void refusedAtStart(Node node) {
    List<Class<?>> wrong = new ArrayList<>(Arrays.asList(CallBeans.Wrong.class.getClasses()));
    Report.same(wrong.size() > 8, true);
    for (Class<?> each : wrong) {
      try (AnnotationConfigApplicationContext made = BeanSuite.plain(node, each)) {
        throw new AssertionError("started with " + each);
      } catch (RuntimeException error) {
        StringBuilder all = new StringBuilder();
        for (Throwable cause = error; cause != null; cause = cause.getCause()) all.append(cause);
        Report.has(all.toString(), "@Idempotent on " + each.getSimpleName());
      }
    }
  }

  static void run(Node node, String boot) {
    try (AnnotationConfigApplicationContext context = BeanSuite.plain(node, CallBeans.Payloads.class,
        CallBeans.Results.class, CallBeans.Operations.class)) {
      payloads = context.getBean(CallBeans.Payloads.class);
      results = context.getBean(CallBeans.Results.class);
      operations = context.getBean(CallBeans.Operations.class);
      Report.check("once-again-4: other arguments are other work" + boot, CallSuite::payloads);
      Report.check("once-again-4: forms and pages" + boot, CallSuite::forms);
      Report.check("once-again-4: what is left out" + boot, CallSuite::leftOut);
      Report.check("once-again-4: arguments that are refused" + boot, CallSuite::refused);
      Report.check("once-again-4: another operation is a mismatch" + boot, CallSuite::operations);
      Report.check("once-again-4: keys of expressions" + boot, CallSuite::keys);
      Report.check("once-again-8: results of generic types" + boot, CallSuite::results);
      Report.check("once-again-8: results that their JSON does not have" + boot,
          CallSuite::halves);
      Report.check("once-again-7: lazy results of methods" + boot, CallSuite::lazyResults);
      Report.check("once-again-26: a lost lock is told" + boot, () -> lock(node));
      Report.check("once-again-9: answers of listeners" + boot, CallSuite::listeners);
    }
    Report.check("once-again-7: refused at the start" + boot, () -> refusedAtStart(node));
  }
}
