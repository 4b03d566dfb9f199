package io.semel.tests;

import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.cluster.RedisClusterClient;
import io.lettuce.core.resource.ClientResources;
import io.lettuce.core.resource.SocketAddressResolver;
import io.semel.Link;
import io.semel.Options;
import io.semel.Semel;
import io.semel.jedis.JedisLink;
import io.semel.lettuce.LettuceLink;
import io.semel.redisson.RedissonLink;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import org.redisson.Redisson;
import org.redisson.config.Config;
import org.redisson.config.ConstantDelay;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.RedisClusterClient.Builder;
import redis.clients.jedis.exceptions.JedisConnectionException;

/**
 * Drivers against the nodes of a group, with the settings that docs/java.md names. Those of a
 * cluster go where the leader is; plain ones take any node that is up, which hands over to it.
 */
final class GroupDrivers {
  static final List<Integer> NODES =
      Arrays.stream(System.getenv("SEMEL_TEST_NODES").split(" ")).map(Integer::valueOf).toList();
  static final String[] CLUSTER = {"Lettuce cluster", "Jedis cluster", "Redisson cluster"};
  static final String[] PLAIN = {"Lettuce plain", "Jedis plain"};
  /**
   * A group with an election timeout of 150 ms has a leader again within 3 s even on a busy
   * machine, and each driver finds it within 2 s more; three times that is the bound.
   */
  static final Duration PATIENCE = Duration.ofSeconds(15);

  private GroupDrivers() {}

  static Semel semel(String driver, String owner) {
    return semel(driver, new Options().owner(owner));
  }

  static Semel semel(String driver, Options options) {
    return Drivers.semel(link(driver), options.patience(PATIENCE).recordPatience(PATIENCE));
  }

  /** Whether it gives connections of its own, which claims with BIND need. */
  static boolean binds(String driver) {
    return !driver.equals("Jedis cluster") && !driver.equals("Redisson cluster");
  }

  static Link link(String driver) {
    switch (driver) {
      case "Lettuce cluster":
        return lettuceCluster();
      case "Jedis cluster":
        return jedisCluster();
      case "Redisson cluster":
        return redissonCluster();
      case "Lettuce plain":
        return lettucePlain();
      case "Jedis plain":
        return jedisPlain();
      default:
        throw new IllegalArgumentException(driver);
    }
  }

  private static Link lettuceCluster() {
    List<RedisURI> nodes = new ArrayList<>();
    for (int port : NODES) {
      nodes.add(RedisURI.builder().withHost(Report.HOST).withPort(port)
          .withTimeout(Duration.ofSeconds(1)).build());
    }
    return new LettuceLink(RedisClusterClient.create(nodes));
  }

  /**
   * It looks for another leader after two failures in a row. With its own timeout of 2 s a node
   * that hangs takes all the time that the retries have.
   */
  private static Link jedisCluster() {
    Set<HostAndPort> nodes = new HashSet<>();
    for (int port : NODES) nodes.add(new HostAndPort(Report.HOST, port));
    Builder builder = redis.clients.jedis.RedisClusterClient.builder();
    redis.clients.jedis.RedisClusterClient client =
        builder.nodes(nodes).clientConfig(DefaultJedisClientConfig.builder()
            .connectionTimeoutMillis(500).socketTimeoutMillis(500).build())
            .maxTotalRetriesDuration(Duration.ofSeconds(3)).build();
    return new JedisLink(client::sendCommand);
  }

  private static Link redissonCluster() {
    Config config = new Config();
    for (int port : NODES) {
      config.useClusterServers().addNodeAddress("redis://" + Report.HOST + ":" + port);
    }
    config.useClusterServers().setScanInterval(200).setTimeout(1_000)
        .setRetryDelay(new ConstantDelay(Duration.ofMillis(50)))
        .setMasterConnectionMinimumIdleSize(2).setMasterConnectionPoolSize(8)
        .setSlaveConnectionMinimumIdleSize(1).setSlaveConnectionPoolSize(2);
    return new RedissonLink(Redisson.create(config), null);
  }

  /** As a name with an address for each node does: the next attempt takes the next one. */
  private static Link lettucePlain() {
    AtomicInteger next = new AtomicInteger();
    ClientResources resources = ClientResources.builder()
        .reconnectDelay(io.lettuce.core.resource.Delay.constant(Duration.ofMillis(20)))
        .socketAddressResolver(new SocketAddressResolver() {
          @Override
          public SocketAddress resolve(RedisURI uri) {
            return new InetSocketAddress(Report.HOST, port(next.getAndIncrement()));
          }
        }).build();
    RedisURI uri = RedisURI.builder().withHost(Report.HOST).withPort(NODES.get(0))
        .withTimeout(Duration.ofSeconds(1)).build();
    return new LettuceLink(RedisClient.create(resources, uri));
  }

  private static int port(int number) {
    return NODES.get(Math.floorMod(number, NODES.size()));
  }

  /** A connection a call, to the first node that takes one: a pool of one node is useless here. */
  private static Link jedisPlain() {
    AtomicInteger where = new AtomicInteger();
    return new JedisLink(() -> jedis(where, 1_000), timeoutMs -> jedis(where, timeoutMs));
  }

  private static Jedis jedis(AtomicInteger where, int timeoutMs) {
    JedisConnectionException none = null;
    for (int i = 0; i < NODES.size(); ++i) {
      int number = where.get();
      try {
        return new Jedis(Report.HOST, port(number), 1_000, timeoutMs);  // connects
      } catch (JedisConnectionException down) {
        none = down;
        where.compareAndSet(number, number + 1);
      }
    }
    throw none;
  }
}
