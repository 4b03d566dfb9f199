package io.semel.tests;

import io.semel.Observer;
import io.semel.Semel;
import io.semel.Work;
import io.semel.spring.Idempotent;
import io.semel.spring.IdempotentSceneEnum;
import io.semel.spring.mq.KafkaVerdicts;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.common.TopicPartition;
import org.springframework.amqp.core.Queue;
import org.springframework.amqp.core.QueueBuilder;
import org.springframework.amqp.rabbit.annotation.RabbitListener;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Profile;
import org.springframework.kafka.annotation.KafkaListener;
import org.springframework.kafka.core.KafkaTemplate;
import org.springframework.kafka.listener.DeadLetterPublishingRecoverer;
import org.springframework.kafka.listener.DefaultErrorHandler;

/**
 * An application with a listener. Its messages are `WHAT NAME`: `bad` ones always fail, `hang` is
 * where a child is halted, `slow` ones give their duplicates time.
 */
@SpringBootApplication
public class Listeners {
  static final String IN = "orders";
  static final String DEAD = "orders.dead";
  static final int ATTEMPTS = 3;
  static final long LEASE_MS = 2_000;
  static final Map<String, AtomicInteger> TRIES = new ConcurrentHashMap<>();
  static final Map<String, AtomicInteger> EFFECTS = new ConcurrentHashMap<>();
  static final AtomicInteger REFUSED = new AtomicInteger();
  private static volatile boolean child;

  static int count(Map<String, AtomicInteger> of, String message) {
    AtomicInteger found = of.get(message);
    return found == null ? 0 : found.get();
  }

  static void handle(String message) throws InterruptedException {
    add(TRIES, message);
    if (child) {
      Child.say("working");
      Thread.sleep(600_000);
    }
    if (message.startsWith("bad")) throw new IllegalStateException("no such account");
    if (message.startsWith("slow")) Thread.sleep(200);
    if (message.startsWith("hang")) {
      Report.same(Work.current().takeover() + " " + Work.current().attempt(), "true 2");
    }
    add(EFFECTS, message);
  }

  private static void add(Map<String, AtomicInteger> to, String message) {
    to.computeIfAbsent(message, none -> new AtomicInteger()).incrementAndGet();
  }

  /** Rejected messages go to another queue. */
  @Configuration
  @Profile("rabbit")
  static class Rabbit {
    @Bean
    Queue orders() {
      return QueueBuilder.durable(IN).deadLetterExchange("").deadLetterRoutingKey(DEAD).build();
    }

    @Bean
    Queue dead() {
      return QueueBuilder.durable(DEAD).build();
    }

    @RabbitListener(queues = IN, concurrency = "4")
    @Idempotent(scene = IdempotentSceneEnum.MQ, key = "#message", prefix = "rabbit",
        attempts = ATTEMPTS, leaseMs = LEASE_MS)
    public void on(String message) throws InterruptedException {
      handle(message);
    }
  }

  /** Dead letters go to another topic. The handler's own back-off is the default one. */
  @Configuration
  @Profile("kafka")
  static class Kafka {
    @Bean
    DefaultErrorHandler errors(KafkaTemplate<?, ?> template) {
      return KafkaVerdicts.configure(new DefaultErrorHandler(
          new DeadLetterPublishingRecoverer(template,
              (record, error) -> new TopicPartition(DEAD, 0))));
    }

    @KafkaListener(topics = IN, concurrency = "2")
    @Idempotent(scene = IdempotentSceneEnum.MQ, key = "#message", prefix = "kafka",
        attempts = ATTEMPTS, leaseMs = LEASE_MS)
    public void on(String message) throws InterruptedException {
      handle(message);
    }
  }

  static ConfigurableApplicationContext start(String broker, int brokerPort, int node,
      boolean listens) {
    ConfigurableApplicationContext context = new SpringApplication(Listeners.class).run(
        "--spring.profiles.active=" + broker, "--spring.application.name=shop",
        "--spring.main.banner-mode=off", "--logging.level.root=OFF",
        "--spring.data.redis.port=" + node, "--semel.patience=50ms",
        "--spring.rabbitmq.port=" + brokerPort, "--spring.rabbitmq.host=127.0.0.1",
        "--spring.rabbitmq.listener.simple.auto-startup=" + listens,
        "--spring.rabbitmq.listener.simple.prefetch=1",
        "--spring.kafka.bootstrap-servers=127.0.0.1:" + brokerPort,
        "--spring.kafka.listener.auto-startup=" + listens, "--spring.kafka.consumer.group-id=shop",
        "--spring.kafka.consumer.auto-offset-reset=earliest",
        "--spring.kafka.consumer.properties.session.timeout.ms=2000",
        "--spring.kafka.consumer.properties.heartbeat.interval.ms=300");
    context.getBean(Semel.class).observe((event, namespace, nanos) -> {
      if (event == Observer.Event.REJECTED || event == Observer.Event.UNREACHABLE) {
        REFUSED.incrementAndGet();
      }
    });
    return context;
  }

  /** As a child: BROKER PORT NODE. */
  public static void main(String[] words) throws Exception {
    child = true;
    start(words[0], Integer.parseInt(words[1]), Integer.parseInt(words[2]), true);
    Child.waitForParent();
    Runtime.getRuntime().halt(9);
  }
}
