package io.semel.tests;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.springframework.amqp.rabbit.core.RabbitTemplate;
import org.springframework.amqp.rabbit.listener.RabbitListenerEndpointRegistry;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.kafka.config.KafkaListenerEndpointRegistry;
import org.springframework.kafka.core.KafkaTemplate;
import org.springframework.kafka.test.EmbeddedKafkaBroker;
import org.springframework.kafka.test.EmbeddedKafkaKraftBroker;

/**
 * Listeners of an application with its broker: `rabbit`, whose port is in SEMEL_TEST_RABBIT, or
 * `kafka`. Each wait ends after 20 s.
 */
public final class BrokerSuite {
  private static final long AWAY_MS = 3_000;
  private final String name;
  private final int port;
  private final Node node;
  private final Broker broker;
  private ConfigurableApplicationContext context;

  /** What the two have of their own. */
  private interface Broker {
    void send(ConfigurableApplicationContext from, String message, int copy);

    void listen(ConfigurableApplicationContext in);

    /** What has come to the dead letters since the last call. */
    List<String> dead(ConfigurableApplicationContext from);
  }

  private static final class Rabbit implements Broker {
    @Override
    public void send(ConfigurableApplicationContext from, String message, int copy) {
      from.getBean(RabbitTemplate.class).convertAndSend(Listeners.IN, message);
    }

    @Override
    public void listen(ConfigurableApplicationContext in) {
      in.getBean(RabbitListenerEndpointRegistry.class).start();
    }

    @Override
    public List<String> dead(ConfigurableApplicationContext from) {
      Object message = from.getBean(RabbitTemplate.class).receiveAndConvert(Listeners.DEAD);
      return message == null ? List.of() : List.of((String) message);
    }
  }

  private static final class Kafka implements Broker {
    private final Consumer<String, String> dead;

    Kafka(int port) {
      dead = new KafkaConsumer<>(java.util.Map.of("bootstrap.servers", "127.0.0.1:" + port,
          "group.id", "dead", "auto.offset.reset", "earliest"), new StringDeserializer(),
          new StringDeserializer());
      dead.subscribe(List.of(Listeners.DEAD));
    }

    /** Copies go to both partitions, and so to both threads of the listener. */
    @Override
    @SuppressWarnings("unchecked")
    public void send(ConfigurableApplicationContext from, String message, int copy) {
      from.getBean(KafkaTemplate.class).send(Listeners.IN, copy % 2, null, message);
    }

    @Override
    public void listen(ConfigurableApplicationContext in) {
      in.getBean(KafkaListenerEndpointRegistry.class).start();
    }

    @Override
    public List<String> dead(ConfigurableApplicationContext from) {
      List<String> found = new java.util.ArrayList<>();
      for (ConsumerRecord<String, String> each : dead.poll(Duration.ofMillis(200))) {
        found.add(each.value());
      }
      return found;
    }
  }

  private BrokerSuite(String name, int port, Node node) {
    this.name = name;
    this.port = port;
    this.node = node;
    broker = name.equals("rabbit") ? new Rabbit() : new Kafka(port);
  }

  private void send(String message, int copies) {
    for (int i = 0; i < copies; ++i) broker.send(context, message, i);
  }

  private static void effect(String message) throws Exception {
    Report.until(() -> Listeners.count(Listeners.EFFECTS, message) > 0);
  }

  /** A message that was sent last has gone through all that were sent before, and all are handled. */
  private void settled(String last) throws Exception {
    send(last, 4);
    effect(last);
    Thread.sleep(300);
  }

  /** The JVM of a listener is halted in the middle of a message, of which there is a copy. */
  private void halted() throws Exception {
    AtomicInteger refused = Listeners.REFUSED;
    try (Child child = new Child(Listeners.class, name, Integer.toString(port),
        Integer.toString(node.port()))) {
      send("hang 1", 1);
      Report.same(child.line(), "working");
      broker.listen(context);
      send("hang 1", 2);
      child.go();
      Report.same(child.ended(), 9);
    }
    effect("hang 1");
    settled("after hang");
    Report.same(Listeners.count(Listeners.EFFECTS, "hang 1"), 1);
    // Until the lease has ended copies come again; not as fast as a broker can.
    Runner.figure("refused until the lease ends, " + name, refused.get());
    Report.same(refused.get() <= 50, true);
  }

  private void again() throws Exception {
    send("once 1", 1);
    effect("once 1");
    send("once 1", 3);
    settled("after once");
    Report.same(Listeners.count(Listeners.EFFECTS, "once 1"), 1);
    Report.same(Listeners.count(Listeners.TRIES, "once 1"), 1);
  }

  private void parallel() throws Exception {
    for (int i = 0; i < 5; ++i) send("slow " + i, 8);
    for (int i = 0; i < 5; ++i) effect("slow " + i);
    settled("after slow");
    for (int i = 0; i < 5; ++i) Report.same(Listeners.count(Listeners.TRIES, "slow " + i), 1);
  }

  /** Tried three times, then put aside, and so is a copy of it without another try. */
  private void poison() throws Exception {
    List<String> dead = new java.util.ArrayList<>();
    for (int copies = 1; copies <= 2; ++copies) {
      int expected = copies;
      send("bad 1", 1);
      Report.until(() -> {
        dead.addAll(broker.dead(context));
        return dead.size() >= expected;
      });
    }
    settled("after bad");
    dead.addAll(broker.dead(context));
    Report.same(dead, List.of("bad 1", "bad 1"));
    Report.same(Listeners.count(Listeners.TRIES, "bad 1"), Listeners.ATTEMPTS);
    Report.same(Listeners.count(Listeners.EFFECTS, "bad 1"), 0);
  }

  /**
   * What cannot be asked about waits at the broker, and is not put aside: it is away for longer than
   * the ten tries after which an error handler of Spring's gives up.
   */
  private void away() throws Exception {
    node.kill();
    int before = Listeners.REFUSED.get();
    send("away 1", 2);
    Report.until(() -> Listeners.REFUSED.get() >= before + 3);
    Thread.sleep(AWAY_MS);
    Report.same(Listeners.count(Listeners.TRIES, "away 1"), 0);
    node.start();
    effect("away 1");
    settled("after away");
    Report.same(Listeners.count(Listeners.EFFECTS, "away 1"), 1);
    Report.same(Listeners.count(Listeners.TRIES, "bad 1"), Listeners.ATTEMPTS);
    Report.same(broker.dead(context), List.of());
  }

  private void run() {
    context = Listeners.start(name, port, node.port(), false);
    Report.check("the listener is halted, " + name, this::halted);
    Report.check("a message comes again, " + name, this::again);
    Report.check("copies in parallel, " + name, this::parallel);
    Report.check("a poison message, " + name, this::poison);
    Report.check("the node is away, " + name, this::away);
    Report.check("no effect twice, " + name, () -> Listeners.EFFECTS.forEach(
        (message, times) -> Report.same(message + " " + times, message + " 1")));
  }

  private static EmbeddedKafkaBroker kafka() {
    EmbeddedKafkaBroker made = new EmbeddedKafkaKraftBroker(1, 2, Listeners.IN, Listeners.DEAD)
        .brokerProperties(java.util.Map.of("group.min.session.timeout.ms", "500",
            "group.initial.rebalance.delay.ms", "0", "offsets.topic.num.partitions", "1"));
    made.afterPropertiesSet();
    return made;
  }

  public static void main(String[] words) throws Exception {
    java.util.logging.Logger.getLogger("io.semel").setLevel(java.util.logging.Level.OFF);
    int port = words[0].equals("rabbit") ? Integer.parseInt(System.getenv("SEMEL_TEST_RABBIT"))
        : Integer.parseInt(kafka().getBrokersAsString().replaceAll(".*:", ""));
    try (Node node = Node.inTime()) {
      new BrokerSuite(words[0], port, node).run();
    }
    Report.end();
  }
}
