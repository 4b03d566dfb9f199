package io.semel.tests;

import io.semel.Observer;
import io.semel.Semel;
import io.semel.Work;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** RocketListener with a broker. Each wait ends after 20 s. */
public final class RocketSuite {
  private static final Map<String, AtomicInteger> TRIES = new ConcurrentHashMap<>();
  private static final Map<String, AtomicInteger> EFFECTS = new ConcurrentHashMap<>();
  private static final AtomicInteger REFUSED = new AtomicInteger();
  private static DefaultMQProducer producer;
  private static Node node;
  private static RocketBroker broker;

  private RocketSuite() {}

  private static int count(Map<String, AtomicInteger> of, String key) {
    AtomicInteger found = of.get(key);
    return found == null ? 0 : found.get();
  }

  private static void add(Map<String, AtomicInteger> to, String key) {
    to.computeIfAbsent(key, none -> new AtomicInteger()).incrementAndGet();
  }

  private static void handle(MessageExt message) throws Exception {
    String key = message.getKeys();
    add(TRIES, key);
    if (key.startsWith("bad")) throw new IllegalStateException("no such account");
    if (key.startsWith("slow")) Thread.sleep(200);
    if (key.startsWith("hang")) {
      Report.same(Work.current().takeover() + " " + Work.current().attempt(), "true 2");
    }
    add(EFFECTS, key);
  }

  private static void send(String key, int copies) throws Exception {
    for (int i = 0; i < copies; ++i) {
      producer.send(new Message(RocketOwner.TOPIC, "", key, key.getBytes(StandardCharsets.UTF_8)));
    }
  }

  private static void effect(String key) throws Exception {
    Report.until(() -> count(EFFECTS, key) > 0);
  }

  private static void settled(String last) throws Exception {
    send(last, 4);
    effect(last);
    Thread.sleep(300);
  }

  private static void halted(Semel semel) throws Exception {
    try (Child child = new Child(RocketOwner.class, broker.address(),
        Integer.toString(node.port()))) {
      send("hang", 1);
      Report.same(child.line(), "working");
      RocketOwner.consumer(broker.address(), semel, RocketSuite::handle);
      send("hang", 2);
      child.go();
      Report.same(child.ended(), 9);
    }
    effect("hang");
    settled("after-hang");
    Report.same(count(EFFECTS, "hang"), 1);
    Runner.figure("refused until the lease ends, RocketMQ", REFUSED.get());
  }

  private static void again() throws Exception {
    send("once", 1);
    effect("once");
    send("once", 3);
    settled("after-once");
    Report.same(count(TRIES, "once"), 1);
  }

  private static void parallel() throws Exception {
    for (int i = 0; i < 5; ++i) send("slow-" + i, 8);
    for (int i = 0; i < 5; ++i) effect("slow-" + i);
    settled("after-slow");
    for (int i = 0; i < 5; ++i) Report.same(count(TRIES, "slow-" + i), 1);
  }

  private static void poison() throws Exception {
    for (int copies = 1; copies <= 2; ++copies) {
      int expected = copies;
      send("bad", 1);
      Report.until(() -> broker.dead(RocketOwner.GROUP).size() >= expected);
    }
    settled("after-bad");
    Report.same(broker.dead(RocketOwner.GROUP), List.of("bad", "bad"));
    Report.same(count(TRIES, "bad") + " " + count(EFFECTS, "bad"), RocketOwner.ATTEMPTS + " 0");
  }

  private static void away() throws Exception {
    node.kill();
    int before = REFUSED.get();
    send("away", 2);
    Report.until(() -> REFUSED.get() >= before + 3);
    Report.same(count(TRIES, "away"), 0);
    node.start();
    effect("away");
    settled("after-away");
    Report.same(count(EFFECTS, "away"), 1);
    Report.same(broker.dead(RocketOwner.GROUP).size(), 2);
  }

  public static void main(String[] words) throws Exception {
    java.util.logging.Logger.getLogger("io.semel").setLevel(java.util.logging.Level.OFF);
    node = Node.inTime();
    broker = new RocketBroker();
    producer = new DefaultMQProducer("producers");
    producer.setNamesrvAddr(broker.address());
    producer.setVipChannelEnabled(false);
    producer.start();
    Semel semel = RocketOwner.semel(node.port());
    semel.observe((event, namespace, nanos) -> {
      if (event == Observer.Event.REJECTED || event == Observer.Event.UNREACHABLE) {
        REFUSED.incrementAndGet();
      }
    });
    Report.check("the listener is halted, RocketMQ", () -> halted(semel));
    Report.check("a message comes again, RocketMQ", RocketSuite::again);
    Report.check("copies in parallel, RocketMQ", RocketSuite::parallel);
    Report.check("a poison message, RocketMQ", RocketSuite::poison);
    Report.check("the node is away, RocketMQ", RocketSuite::away);
    Report.check("no effect twice, RocketMQ", () -> EFFECTS.forEach(
        (key, times) -> Report.same(key + " " + times, key + " 1")));
    node.close();
    broker.close();
    Report.end();
  }
}
