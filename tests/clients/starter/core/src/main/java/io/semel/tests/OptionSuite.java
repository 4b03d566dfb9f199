package io.semel.tests;

import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.TimeoutOptions;
import io.lettuce.core.protocol.ProtocolVersion;
import io.lettuce.core.protocol.RedisCommand;
import io.semel.Call;
import io.semel.Link;
import io.semel.Options;
import io.semel.Rejected;
import io.semel.Semel;
import io.semel.Work;
import io.semel.jedis.JedisLink;
import io.semel.lettuce.LettuceLink;
import io.semel.redisson.RedissonLink;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.client.RedisClientConfig;
import org.redisson.config.Config;
import org.redisson.config.NameMapper;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisPool;

/** Options of drivers: each is kept, or refused by its name when the link is made. */
final class OptionSuite {
  private OptionSuite() {}

  private static Call call() {
    return Call.of("options", "k");
  }

  private static Config redisson(int port, int database) {
    Config config = new Config();
    config.useSingleServer().setAddress("redis://127.0.0.1:" + port).setDatabase(database)
        .setConnectionMinimumIdleSize(1).setConnectionPoolSize(2);
    return config;
  }

  private static RedisClientConfig own(int port, int database) {
    return new RedisClientConfig().setAddress("redis://127.0.0.1:" + port).setDatabase(database);
  }

  private static void refusedOption(String name, Report.Work work) {
    Report.has(Report.thrown(IllegalArgumentException.class, work).getMessage(), name);
  }

  private static void refusedOptions() {
    Config mapped = redisson(Report.PORT, 0);
    mapped.setNameMapper(new NameMapper() {
      @Override
      public String map(String name) {
        return "tenant:" + name;
      }

      @Override
      public String unmap(String name) {
        return name.substring(7);
      }
    });
    RedissonClient client = Redisson.create(mapped);
    RedissonClient second = Redisson.create(redisson(Report.PORT, 2));
    refusedOption("nameMapper", () -> new RedissonLink(client, null));
    refusedOption("database", () -> new RedissonLink(second, own(Report.PORT, 0)));
    for (Link each : new Link[] {new RedissonLink(second, null), new JedisLink(
        () -> new Jedis("127.0.0.1", Report.PORT), null), new JedisLink(
        (key, command, arguments) -> null)}) {
      refusedOption("bind", () -> Drivers.semel(each, new Options().bind(true)));
    }
    client.shutdown();
    second.shutdown();
  }

  /** Each is used for claims, waits and after a restart of the node. */
  private static void option(String name, java.util.function.IntFunction<Link> maker)
      throws Exception {
    try (Node node = Node.onDisk(); Semel semel = Drivers.semel(maker.apply(node.port()),
        new Options().patience(Duration.ofSeconds(30)))) {
      Work held = semel.claim(call()).work();
      CompletableFuture<String> waits = CompletableFuture.supplyAsync(() -> semel.once(
          call().wait(Duration.ofSeconds(20)), String.class, () -> "no"));
      Report.until(() -> node.ask("INFO", "clients").contains("blocked_clients:1")
          || name.equals("fixed timeouts"));
      // Longer than the timeouts of the options.
      long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(700);
      Report.until(() -> System.nanoTime() > end);
      held.complete("\"result\"".getBytes());
      Report.same(waits.get(20, TimeUnit.SECONDS), "result");
      node.kill();
      node.start();
      Report.same(semel.once("options", "after", () -> "ran"), "ran");
    } catch (Exception | AssertionError error) {
      throw new AssertionError(name + ": " + error, error);
    }
  }

  private static Link lettuce(int port, ClientOptions options, int database) {
    RedisClient client = RedisClient.create(RedisURI.builder().withHost("127.0.0.1").withPort(port)
        .withDatabase(database).withTimeout(Duration.ofMillis(500)).build());
    client.setOptions(options);
    return new LettuceLink(client);
  }

  private static void keptOptions() throws Exception {
    option("no reconnection",
        port -> lettuce(port, ClientOptions.builder().autoReconnect(false).build(), 0));
    option("timeouts", port -> lettuce(port,
        ClientOptions.builder().timeoutOptions(TimeoutOptions.enabled()).build(), 0));
    option("fixed timeouts", port -> lettuce(port, ClientOptions.builder()
        .timeoutOptions(TimeoutOptions.enabled(Duration.ofMillis(500))).build(), 0));
    option("RESP2", port -> lettuce(port,
        ClientOptions.builder().protocolVersion(ProtocolVersion.RESP2).build(), 0));
    option("Lettuce's database", port -> lettuce(port, ClientOptions.create(), 3));
    option("Jedis' database", port -> new JedisLink(
        new JedisPool("redis://127.0.0.1:" + port + "/3")::getResource, ms -> {
          Jedis own = new Jedis("127.0.0.1", port, 1000, ms);
          own.select(3);
          return own;
        }));
    option("Redisson's database", port -> new RedissonLink(
        Redisson.create(redisson(port, 3)), own(port, 3)));
  }

  /** Of a wait for a permit the time of SEMEL.PERMIT counts, not that of SEMEL.WAIT. */
  private static void timeoutOfPermits() throws Exception {
    TimeoutOptions.TimeoutSource source = new TimeoutOptions.TimeoutSource() {
      @Override
      public long getTimeout(RedisCommand<?, ?, ?> command) {
        byte[] name = command.getType().getBytes();
        return new String(name, StandardCharsets.US_ASCII).equals("SEMEL.PERMIT") ? 60_000 : 500;
      }
    };
    ClientOptions options = ClientOptions.builder()
        .timeoutOptions(TimeoutOptions.builder().timeoutSource(source).build()).build();
    try (Node node = new Node(); Cutter counter = new Cutter(node.port(), "SEMEL.PERMIT", 0);
        Semel holder = Drivers.semel(Drivers.lettuce(node.port()), new Options());
        Semel semel = Drivers.semel(lettuce(counter.port(), options, 0), new Options())) {
      holder.permit("seats", "k", 1);
      Report.thrown(Rejected.class,
          () -> semel.permit(Call.of("seats", "k").wait(Duration.ofMillis(300)), 1));
      Report.same(counter.ids().size(), 2);  // a question, and a wait that blocks
    }
  }

  static void run() {
    Report.check("options: the time of a wait for a permit is its own",
        OptionSuite::timeoutOfPermits);
    Report.check("once-again-25: options that are refused", OptionSuite::refusedOptions);
    Report.check("once-again-25: options that are kept", OptionSuite::keptOptions);
  }
}
