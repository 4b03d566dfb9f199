package io.semel.tests;

import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.semel.Codec;
import io.semel.Link;
import io.semel.Options;
import io.semel.Semel;
import io.semel.jedis.JedisLink;
import io.semel.json.JacksonCodec;
import io.semel.lettuce.LettuceLink;
import io.semel.redisson.RedissonLink;
import org.redisson.Redisson;
import org.redisson.client.RedisClientConfig;
import org.redisson.config.Config;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisPool;
import redis.clients.jedis.JedisPoolConfig;

/** The clients that an application may have. */
final class Drivers {
  static final Codec JSON = new JacksonCodec(new com.fasterxml.jackson.databind.ObjectMapper());

  private Drivers() {}

  static Link lettuce(int port) {
    return new LettuceLink(RedisClient.create(RedisURI.create("127.0.0.1", port)));
  }

  /** One connection in the pool: what waits must not take it. */
  static Link jedis(int port) {
    JedisPoolConfig config = new JedisPoolConfig();
    config.setMaxTotal(1);
    config.setMaxWait(java.time.Duration.ofSeconds(2));
    JedisPool pool = new JedisPool(config, "127.0.0.1", port, 1000);
    return new JedisLink(pool::getResource, ms -> new Jedis("127.0.0.1", port, 1000, ms));
  }

  static Link redisson(int port) {
    return redisson(port, 0);
  }

  /** As named(), and the driver itself sends again what was not answered, where it can. */
  static Link repeating(String name, int port) {
    return name.equals("Redisson") ? redisson(port, 3) : named(name, port);
  }

  private static Link redisson(int port, int attempts) {
    Config config = new Config();
    String address = "redis://127.0.0.1:" + port;
    config.useSingleServer().setAddress(address).setConnectionMinimumIdleSize(1)
        .setConnectionPoolSize(2).setRetryAttempts(attempts).setTimeout(1000);
    return new RedissonLink(Redisson.create(config), new RedisClientConfig().setAddress(address));
  }

  static Link named(String name, int port) {
    switch (name) {
      case "Lettuce":
        return lettuce(port);
      case "Jedis":
        return jedis(port);
      default:
        return redisson(port);
    }
  }

  static Semel semel(Link link, Options options) {
    return new Semel(link, options, JSON);
  }
}
