package io.semel.boot;

import io.lettuce.core.AbstractRedisClient;
import io.lettuce.core.RedisClient;
import io.lettuce.core.cluster.RedisClusterClient;
import io.semel.Link;
import io.semel.jedis.JedisLink;
import io.semel.lettuce.LettuceLink;
import io.semel.redisson.RedissonLink;
import org.redisson.api.RedissonClient;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.data.redis.connection.RedisConnection;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.jedis.JedisClientConfiguration;
import org.springframework.data.redis.connection.jedis.JedisConnectionFactory;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.util.ClassUtils;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisCluster;
import redis.clients.jedis.commands.ProtocolCommand;

/** Finds the application's client: that of Spring Data, a Redisson, or a bare RedisClient. */
final class Links {
  private Links() {}

  static Link of(BeanFactory beans) {
    ClassLoader loader = Links.class.getClassLoader();
    boolean data = ClassUtils.isPresent(
        "org.springframework.data.redis.connection.RedisConnectionFactory", loader);
    Link found = null;
    if (data && ClassUtils.isPresent("io.lettuce.core.RedisClient", loader)) {
      found = OverLettuce.of(beans);
    }
    if (found == null && data && ClassUtils.isPresent("redis.clients.jedis.Jedis", loader)) {
      found = OverJedis.of(beans);
    }
    if (found == null && ClassUtils.isPresent("org.redisson.Redisson", loader)) {
      found = OverRedisson.of(beans);
    }
    if (found == null && ClassUtils.isPresent("io.lettuce.core.RedisClient", loader)) {
      found = BareLettuce.of(beans);
    }
    if (found != null) return found;
    throw new IllegalStateException("no Redis client for Semel: a LettuceConnectionFactory or "
        + "JedisConnectionFactory, a RedissonClient, a RedisClient or RedisClusterClient, or a bean "
        + "Link");
  }

  private static final class OverLettuce {
    static Link of(BeanFactory beans) {
      LettuceConnectionFactory factory =
          beans.getBeanProvider(LettuceConnectionFactory.class).getIfAvailable();
      if (factory == null) return null;
      AbstractRedisClient client = factory.getRequiredNativeClient();
      return client instanceof RedisClusterClient ? new LettuceLink((RedisClusterClient) client)
          : new LettuceLink((RedisClient) client);
    }
  }

  private static final class BareLettuce {
    static Link of(BeanFactory beans) {
      RedisClient client = beans.getBeanProvider(RedisClient.class).getIfAvailable();
      if (client != null) return new LettuceLink(client);
      RedisClusterClient cluster = beans.getBeanProvider(RedisClusterClient.class).getIfAvailable();
      return cluster == null ? null : new LettuceLink(cluster);
    }
  }

  private static final class OverRedisson {
    static Link of(BeanFactory beans) {
      RedissonClient client = beans.getBeanProvider(RedissonClient.class).getIfAvailable();
      return client == null ? null : new RedissonLink(client, null);
    }
  }

  private static final class OverJedis {
    static Link of(BeanFactory beans) {
      JedisConnectionFactory factory =
          beans.getBeanProvider(JedisConnectionFactory.class).getIfAvailable();
      if (factory == null) return null;
      return factory.isRedisClusterAware()
          ? new JedisLink((key, command, arguments) -> clustered(factory, key, command, arguments))
          : new JedisLink(() -> pooled(factory),
              // Of a sentinel's node there is no address of its own: waits poll.
              factory.isRedisSentinelAware() ? null : ms -> own(factory, ms));
    }

    private static Object clustered(JedisConnectionFactory factory, byte[] key,
        ProtocolCommand command, byte[]... arguments) {
      try (RedisConnection connection = factory.getConnection()) {
        return ((JedisCluster) connection.getNativeConnection()).sendCommand(key, command,
            arguments);
      }
    }

    /** Spring's connection gives its Jedis back to the pool when it is closed; so does Jedis. */
    private static Jedis pooled(JedisConnectionFactory factory) {
      return jedis(factory.getConnection());
    }

    private static Jedis jedis(RedisConnection connection) {
      Object found = connection.getNativeConnection();
      if (found instanceof Jedis) return (Jedis) found;
      throw new IllegalStateException("not a Jedis of one node: " + found.getClass().getName());
    }

    private static Jedis own(JedisConnectionFactory factory, int timeoutMs) {
      JedisClientConfiguration from = factory.getClientConfiguration();
      JedisClientConfiguration.JedisClientConfigurationBuilder builder =
          JedisClientConfiguration.builder().readTimeout(java.time.Duration.ofMillis(timeoutMs))
              .connectTimeout(from.getConnectTimeout());
      from.getClientName().ifPresent(builder::clientName);
      if (from.isUseSsl()) {
        JedisClientConfiguration.JedisSslClientConfigurationBuilder ssl = builder.useSsl();
        from.getSslSocketFactory().ifPresent(ssl::sslSocketFactory);
        from.getSslParameters().ifPresent(ssl::sslParameters);
        from.getHostnameVerifier().ifPresent(ssl::hostnameVerifier);
      }
      RedisStandaloneConfiguration where = factory.getStandaloneConfiguration();
      if (where == null) throw new UnsupportedOperationException("not one node");
      JedisConnectionFactory single = new JedisConnectionFactory(where, builder.build());
      single.afterPropertiesSet();
      return jedis(single.getConnection());
    }
  }
}
