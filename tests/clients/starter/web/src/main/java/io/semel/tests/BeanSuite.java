package io.semel.tests;

import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.semel.Consumer;
import io.semel.Semel;
import io.semel.lettuce.LettuceLink;
import io.semel.spring.mq.DeadLetter;
import io.semel.spring.mq.RetryLater;
import io.semel.spring.mq.RocketListener;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyContext;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.springframework.amqp.AmqpRejectAndDontRequeueException;
import org.springframework.amqp.ImmediateRequeueAmqpException;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.core.env.MapPropertySource;
import org.springframework.kafka.listener.DefaultErrorHandler;

/** Services, transactions, listeners and applications without Boot. */
final class BeanSuite {
  private static ConfigurableApplicationContext context;

  private BeanSuite() {}

  private static void services() {
    Beans.Greeter greeter = context.getBean(Beans.Greeter.class);
    String first = greeter.greet("ann");
    Report.same(greeter.greet("ann"), first);
    Report.same(greeter.greet("bob").equals(first), false);
  }

  private static void transactions() throws Exception {
    Beans.Ledger ledger = context.getBean(Beans.Ledger.class);
    ledger.create();
    Report.thrown(IllegalStateException.class, () -> ledger.add("e-1", true));
    Report.same(ledger.count() + ledger.state("e-1"), "0absent");
    ledger.add("e-2", false);
    ledger.add("e-2", false);
    Report.same(ledger.count() + ledger.state("e-2"), "1done");
    // Within a larger transaction it is done when that is committed.
    Beans.Bank bank = context.getBean(Beans.Bank.class);
    bank.book("e-3", () -> {
      Report.same(ledger.state("e-3"), "held");
      return null;
    });
    Report.same(ledger.count() + ledger.state("e-3"), "2done");
    Report.thrown(java.io.IOException.class, () -> bank.book("e-4", () -> {
      throw new java.io.IOException("checked: committed all the same");
    }));
    Report.same(ledger.count() + ledger.state("e-4"), "3done");
    Report.thrown(ArithmeticException.class, () -> bank.book("e-5", () -> {
      throw new ArithmeticException("rolled back");
    }));
    Report.same(ledger.count() + ledger.state("e-5"), "3absent");
    Report.thrown(NullPointerException.class, () -> ledger.addBySelf("e-6"));
    Report.same(ledger.state("e-6"), "absent");
  }

  private static void listeners() {
    Beans.Listeners listeners = context.getBean(Beans.Listeners.class);
    int runs = Beans.RUNS.get();
    for (int i = 0; i < 2; ++i) {
      listeners.rabbit("m-1");
      listeners.kafka("m-1");
      Report.same(listeners.rocket("m-1"), ConsumeConcurrentlyStatus.CONSUME_SUCCESS);
    }
    Report.same(Beans.RUNS.get(), runs + 3);
    listeners.fail(new IllegalStateException("no such account"));
    Report.thrown(ImmediateRequeueAmqpException.class, () -> listeners.rabbit("m-2"));
    Report.thrown(RetryLater.class, () -> listeners.kafka("m-2"));
    Report.same(listeners.rocket("m-2"), ConsumeConcurrentlyStatus.RECONSUME_LATER);
    for (int i = 0; i < 2; ++i) {
      Report.thrown(AmqpRejectAndDontRequeueException.class, () -> listeners.rabbit("m-2"));
      Report.thrown(DeadLetter.class, () -> listeners.kafka("m-2"));
    }
    Report.same(Beans.RUNS.get(), runs + 8);
    listeners.fail(null);
    Report.thrown(AmqpRejectAndDontRequeueException.class, () -> listeners.rabbit(""));
    // The starter's, as this application has none: dead letters are not tried again.
    Report.same(context.getBean(DefaultErrorHandler.class).removeClassification(DeadLetter.class),
        false);
  }

  private static void rocket() {
    Consumer consumer = new Consumer(context.getBean(Semel.class), "rocket",
        java.time.Duration.ofSeconds(60), java.time.Duration.ofDays(1), 2);
    List<String> handled = new ArrayList<>();
    RocketListener listener = new RocketListener(consumer, MessageExt::getKeys, message -> {
      if (message.getKeys().startsWith("bad")) throw new IllegalStateException("bad");
      handled.add(message.getKeys());
    });
    ConsumeConcurrentlyContext first = batch(listener, "a", "bad", "b");
    Report.same(first.getAckIndex() + " " + first.getDelayLevelWhenNextConsume(), "0 0");
    // The second try is the last one; it goes to the dead letters when it is alone.
    ConsumeConcurrentlyContext second = batch(listener, "bad", "b");
    Report.same(second.getDelayLevelWhenNextConsume(), 0);
    ConsumeConcurrentlyContext third = batch(listener, "a", "b", "bad");
    Report.same(third.getAckIndex() + " " + third.getDelayLevelWhenNextConsume(), "1 -1");
    Report.same(handled, List.of("a", "b"));
  }

  private static ConsumeConcurrentlyContext batch(RocketListener listener, String... keys) {
    List<MessageExt> messages = new ArrayList<>();
    for (String each : keys) {
      MessageExt message = new MessageExt();
      message.setKeys(each);
      messages.add(message);
    }
    ConsumeConcurrentlyContext made =
        new ConsumeConcurrentlyContext(new MessageQueue("t", "broker", 0));
    listener.consumeMessage(messages, made);
    return made;
  }

  static AnnotationConfigApplicationContext plain(Node node, Class<?>... more) {
    Beans.Plain.link = new LettuceLink(
        RedisClient.create(RedisURI.create("127.0.0.1", node.port())));
    AnnotationConfigApplicationContext made = new AnnotationConfigApplicationContext();
    made.getEnvironment().getPropertySources().addFirst(
        new MapPropertySource("own", Map.of("semel.application", "plain")));
    made.register(Beans.Plain.class);
    if (more.length > 0) made.register(more);
    made.refresh();
    return made;
  }

  private static void withoutBoot(Node node) {
    try (AnnotationConfigApplicationContext made = plain(node)) {
      Beans.Greeter greeter = made.getBean(Beans.Greeter.class);
      Report.same(greeter.greet("ann"), greeter.greet("ann"));
    }
  }

  private static void refusedAtStart(Node node) {
    Object[][] wrongs = {{Beans.Wrong.Reactive.class, "reactor.core.publisher.Mono"},
        {Beans.Wrong.Constant.class, "the same for all calls"},
        {Beans.Wrong.Twice.class, "two attributes"},
        {Beans.Wrong.Shared.class, "share the keys of plain.p"},
        {Beans.Wrong.Broken.class, "no expression"}};
    for (Object[] each : wrongs) {
      try (AnnotationConfigApplicationContext made = plain(node, (Class<?>) each[0])) {
        throw new AssertionError("started with " + each[0]);
      } catch (RuntimeException error) {
        StringBuilder all = new StringBuilder();
        for (Throwable cause = error; cause != null; cause = cause.getCause()) all.append(cause);
        Report.has(all.toString(), (String) each[1]);
      }
    }
  }

  /** The pool of the application has one connection. */
  private static void overJedis(Node node) throws Exception {
    try (ConfigurableApplicationContext jedis = WebApp.start(node.port(),
        "--spring.redis.client-type=jedis", "--spring.data.redis.client-type=jedis",
        "--spring.redis.jedis.pool.max-active=1", "--spring.data.redis.jedis.pool.max-active=1",
        "--spring.application.name=jedis")) {
      Semel semel = jedis.getBean(Semel.class);
      io.semel.Work work = semel.claim(io.semel.Call.of("jedis", "k")).work();
      java.util.concurrent.CompletableFuture<String> waits =
          java.util.concurrent.CompletableFuture.supplyAsync(() -> semel.once(io.semel.Call.of(
              "jedis", "k").wait(java.time.Duration.ofSeconds(20)), String.class, () -> "no"));
      for (int i = 0; i < 20; ++i) semel.once("jedis", "other " + i, () -> "ran");
      work.complete("\"result\"".getBytes());
      Report.same(waits.get(), "result");
      // Another application with the same prefix and key: they have nothing in common.
      java.net.http.HttpResponse<String> own =
          new Http(jedis.getEnvironment().getProperty("local.server.port")).post("/orders",
              "{\"id\":\"o-1\",\"amount\":7}");
      Report.same(own.statusCode() + Http.header(own, "Idempotency-Replayed"), "201");
    }
  }

  /** The application starts without its node, refuses, and works when the node is there. */
  private static void beforeItsNode() throws Exception {
    try (Node late = new Node()) {
      late.kill();
      try (ConfigurableApplicationContext made = WebApp.start(late.port())) {
        Http http = new Http(made.getEnvironment().getProperty("local.server.port"));
        Report.same(http.post("/nothing?id=1", "").statusCode(), 503);
        late.start();
        Report.until(() -> http.post("/nothing?id=1", "").statusCode() == 200);
      }
    }
  }

  static void run(Node node, String boot) {
    context = WebApp.start(new Class<?>[] {WebApp.class, Beans.More.class,
        FullSuite.Before.class}, node.port(), "--semel.record-patience=500ms");
    Report.check("services" + boot, BeanSuite::services);
    Report.check("transactions" + boot, BeanSuite::transactions);
    Report.check("listeners" + boot, BeanSuite::listeners);
    Report.check("RocketMQ" + boot, BeanSuite::rocket);
    FullSuite.run(context, boot);
    context.close();
    CallSuite.run(node, boot);
    Report.check("Spring without Boot" + boot, () -> withoutBoot(node));
    Report.check("refused at the start" + boot, () -> refusedAtStart(node));
    Report.check("over Spring's Jedis" + boot, () -> overJedis(node));
    Report.check("started before its node" + boot, BeanSuite::beforeItsNode);
  }
}
