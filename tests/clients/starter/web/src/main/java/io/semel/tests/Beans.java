package io.semel.tests;

import io.semel.Link;
import io.semel.Semel;
import io.semel.Work;
import io.semel.spring.EnableIdempotent;
import io.semel.spring.Idempotent;
import io.semel.spring.IdempotentSceneEnum;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.springframework.amqp.rabbit.annotation.RabbitListener;
import org.springframework.context.annotation.Bean;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.kafka.annotation.KafkaListener;
import org.springframework.transaction.annotation.Transactional;

/** Beans of applications that are no controllers. */
public final class Beans {
  static final AtomicInteger RUNS = new AtomicInteger();

  private Beans() {}

  /** What a service promises, and how often. */
  public interface Greeter {
    @Idempotent(key = "#name")
    String greet(String name);
  }

  /** The annotation is that of the interface. */
  public static class GreeterImpl implements Greeter {
    @Override
    public String greet(String name) {
      return "hello " + name + ' ' + RUNS.incrementAndGet();
    }
  }

  /** Services over a database. */
  public static class Ledger {
    private final JdbcTemplate jdbc;
    private final Semel semel;

    Ledger(JdbcTemplate jdbc, Semel semel) {
      this.jdbc = jdbc;
      this.semel = semel;
    }

    public void create() {
      jdbc.execute("create table entries (id varchar(100) primary key)");
    }

    public int count() {
      return jdbc.queryForObject("select count(*) from entries", Integer.class);
    }

    @Transactional
    @Idempotent(key = "#id", prefix = "ledger")
    public String add(String id, boolean fails) {
      jdbc.update("insert into entries values (?)", id);
      if (fails) throw new IllegalStateException("rolled back");
      return "added " + Work.current().attempt();
    }

    /** Calls itself: Spring's proxies do not see that, and nothing is guarded. */
    public String addBySelf(String id) {
      return add(id, false);
    }

    String state(String id) {
      return new String((byte[]) ((java.util.List<?>) semel.command("SEMEL.GETCLAIM", "shop.ledger",
          id)).get(1));
    }
  }

  /** Calls the ledger within a larger transaction. */
  public static class Bank {
    private final Ledger ledger;

    Bank(Ledger ledger) {
      this.ledger = ledger;
    }

    @Transactional
    public String book(String id, Callable<Void> inside) throws Exception {
      String added = ledger.add(id, false);
      inside.call();
      return added;
    }
  }

  /** Listeners of brokers. */
  public static class Listeners {
    private volatile RuntimeException thrown;

    /** By a method: the proxy has fields of its own. */
    public void fail(RuntimeException with) {
      thrown = with;
    }

    private void handle() {
      RUNS.incrementAndGet();
      if (thrown != null) throw thrown;
    }

    @RabbitListener(id = "r", queues = "q", autoStartup = "false")
    @Idempotent(scene = IdempotentSceneEnum.MQ, key = "#id", attempts = 2)
    public void rabbit(String id) {
      handle();
    }

    @KafkaListener(id = "k", topics = "t", autoStartup = "false")
    @Idempotent(scene = IdempotentSceneEnum.MQ, key = "#id", attempts = 2)
    public void kafka(String id) {
      handle();
    }

    @Idempotent(scene = IdempotentSceneEnum.MQ, key = "#id", attempts = 2)
    public ConsumeConcurrentlyStatus rocket(String id) {
      handle();
      return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
    }
  }

  /** Added to WebApp. */
  public static class More {
    @Bean
    Ledger ledger(JdbcTemplate jdbc, Semel semel) {
      return new Ledger(jdbc, semel);
    }

    @Bean
    Bank bank(Ledger ledger) {
      return new Bank(ledger);
    }

    @Bean
    Greeter greeter() {
      return new GreeterImpl();
    }

    @Bean
    Listeners listeners() {
      return new Listeners();
    }
  }

  /** Without Boot. */
  @EnableIdempotent
  public static class Plain {
    static volatile Link link;

    @Bean
    Semel semel() {
      return new Semel(link);
    }

    @Bean
    Greeter greeter() {
      return new GreeterImpl();
    }
  }

  /** Each is refused when its application starts. */
  public static final class Wrong {
    private Wrong() {}

    /** Streams cannot be kept. */
    public static class Reactive {
      @Idempotent(key = "#id")
      public reactor.core.publisher.Mono<String> mono(String id) {
        return null;
      }
    }

    /** All calls would be one. */
    public static class Constant {
      @Idempotent(key = "order.id")
      public String constant(String id) {
        return null;
      }
    }

    /** Which one counts? */
    public static class Twice {
      @Idempotent(key = "#id", ttl = 5, expireTime = 6)
      public String twice(String id) {
        return null;
      }
    }

    /** One namespace, two terms. */
    public static class Shared {
      @Idempotent(key = "#id", prefix = "p", ttl = 5)
      public String one(String id) {
        return null;
      }

      @Idempotent(key = "#id", prefix = "p", ttl = 6)
      public String two(String id) {
        return null;
      }
    }

    /** No expression. */
    public static class Broken {
      @Idempotent(key = "#id.(")
      public String broken(String id) {
        return null;
      }
    }
  }
}
