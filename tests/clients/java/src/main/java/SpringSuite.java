import io.lettuce.core.ClientOptions;
import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.output.ObjectOutput;
import io.lettuce.core.protocol.ProtocolVersion;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.springframework.data.redis.connection.RedisConnectionFactory;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.jedis.JedisConnectionFactory;
import org.springframework.data.redis.connection.lettuce.LettuceClientConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceConnection;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.redis.core.RedisCallback;
import org.springframework.data.redis.core.RedisOperations;
import org.springframework.data.redis.core.SessionCallback;
import org.springframework.data.redis.core.StringRedisTemplate;
import org.springframework.data.redis.core.script.RedisScript;
import redis.clients.jedis.util.KeyValue;

/** Spring Data Redis, on both of its drivers. */
final class SpringSuite {
  private final String in;
  private final RedisConnectionFactory factory;
  private final StringRedisTemplate template;

  private SpringSuite(String driver, RedisConnectionFactory factory) {
    in = ", " + driver;
    this.factory = factory;
    template = new StringRedisTemplate(factory);
  }

  private String key(String name) {
    return name + in;
  }

  private void claim() {
    Duration minute = Duration.ofSeconds(60);
    Report.same(template.opsForValue().setIfAbsent(key("claim"), "CONSUMING", minute), true);
    Report.same(template.opsForValue().setIfAbsent(key("claim"), "CONSUMING", minute), false);
    Report.same(template.opsForValue().get(key("claim")), "CONSUMING");
    long left = template.getExpire(key("claim"), TimeUnit.MILLISECONDS);
    Report.same(left > 0 && left <= 60_000, true);
    Report.same(template.opsForValue().setIfAbsent(key("plain"), "1"), true);
    Report.same(template.opsForValue().setIfAbsent(key("plain"), "2"), false);
  }

  /** Deletes the key where it has this value: by WATCH, as is done without scripts. */
  private boolean release(String key, String token) {
    return Boolean.TRUE.equals(template.execute(new SessionCallback<Boolean>() {
      @Override
      @SuppressWarnings("unchecked")
      public <K, V> Boolean execute(RedisOperations<K, V> untyped) {
        RedisOperations<String, String> session = (RedisOperations<String, String>) untyped;
        session.watch(key);
        if (!token.equals(session.opsForValue().get(key))) {
          session.unwatch();
          return false;
        }
        session.multi();
        session.delete(key);
        List<Object> replies = session.exec();
        return replies != null && replies.size() == 1;
      }
    }));
  }

  private void lock() {
    Duration minute = Duration.ofSeconds(60);
    Report.same(template.opsForValue().setIfAbsent(key("lock"), "mine", minute), true);
    Report.same(template.opsForValue().setIfAbsent(key("lock"), "theirs", minute), false);
    Report.same(release(key("lock"), "theirs"), false);
    Report.same(release(key("lock"), "mine"), true);
    Report.same(template.opsForValue().setIfAbsent(key("lock"), "theirs", minute), true);
  }

  private void script() {
    RedisScript<Long> script = RedisScript.of(Report.RELEASE, Long.class);
    template.opsForValue().set(key("scripted"), "mine");
    Report.same(template.execute(script, List.of(key("scripted")), "theirs"), 0L);
    Report.same(template.execute(script, List.of(key("scripted")), "mine"), 1L);
  }

  private void scripts() {
    RedisScript<String> claim = RedisScript.of(
        "return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'GET', 'PX', ARGV[2])", String.class);
    List<String> job = List.of(key("job"));
    Report.same(template.execute(claim, job, "CONSUMING", "60000"), null);
    template.execute((RedisCallback<Object>) connection -> {
      connection.scriptingCommands().scriptFlush();
      return null;
    });
    Report.same(template.execute(claim, job, "CONSUMING", "60000"), "CONSUMING");
    Report.same(template.execute(RedisScript.of("return redis.call('DEL', KEYS[1]) == 1",
        Boolean.class), job), true);
    Report.same(template.execute(RedisScript.of("return {KEYS[1], ARGV[1], 'x'}", List.class), job,
        "a"), List.of(key("job"), "a", "x"));
    template.opsForValue().set(key("word"), "abc");
    try {
      template.execute(RedisScript.of("return redis.call('INCR', KEYS[1])", Long.class),
          List.of(key("word")));
      throw new AssertionError("no error");
    } catch (org.springframework.dao.DataAccessException error) {
      String text = error.getMostSpecificCause().getMessage();
      Report.same(text.startsWith("ERR value is not an integer or out of range"), true);
    }
  }

  private void limiter() {
    RedisScript<List> limit = RedisScript.of("""
        local used = redis.call('INCR', KEYS[1])
        if used == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
        local left = tonumber(ARGV[1]) - used
        if left < 0 then return {0, 0} end
        return {1, left}""", List.class);
    for (int i = 2; i >= 0; --i) {
      Report.same(template.execute(limit, List.of(key("limit")), "3", "60000"),
          List.of(1L, (long) i));
    }
    Report.same(template.execute(limit, List.of(key("limit")), "3", "60000"), List.of(0L, 0L));
  }

  private void expiry() throws Exception {
    template.opsForValue().set(key("short"), "1", Duration.ofMillis(30));
    Report.until(() -> !Boolean.TRUE.equals(template.hasKey(key("short"))));
    template.opsForValue().set(key("long"), "1");
    Report.same(template.expire(key("long"), Duration.ofSeconds(100)), true);
    Report.same(template.getExpire(key("long")), 100L);
    Report.same(template.persist(key("long")), true);
  }

  private void pubsub() throws Exception {
    CompletableFuture<String> heard = new CompletableFuture<>();
    CompletableFuture<Void> ready = new CompletableFuture<>();
    Thread thread = new Thread(() -> {
      try (var connection = factory.getConnection()) {
        ready.complete(null);
        connection.subscribe((message, pattern) -> heard.complete(new String(message.getBody())),
            key("news").getBytes());
        Report.until(heard::isDone);
      } catch (Exception error) {
        heard.completeExceptionally(error);
      }
    });
    thread.setDaemon(true);
    thread.start();
    ready.get(10, TimeUnit.SECONDS);
    Report.until(() -> template.convertAndSend(key("news"), "text") == 1);
    Report.same(heard.get(10, TimeUnit.SECONDS), "text");
  }

  private void pipeline() {
    List<Object> replies = template.executePipelined(new SessionCallback<Object>() {
      @Override
      @SuppressWarnings("unchecked")
      public <K, V> Object execute(RedisOperations<K, V> untyped) {
        RedisOperations<String, String> session = (RedisOperations<String, String>) untyped;
        for (int i = 0; i < 100; ++i) session.opsForValue().increment(key("count"));
        return null;
      }
    });
    for (int i = 0; i < 100; ++i) Report.same(replies.get(i), i + 1L);
  }

  private void hashes() {
    template.opsForHash().putAll(key("hash"), Map.of("a", "1", "b", "2"));
    Report.same(template.opsForHash().entries(key("hash")), Map.of("a", "1", "b", "2"));
    Report.same(template.opsForHash().putIfAbsent(key("hash"), "a", "3"), false);
  }

  private static String text(Object part) {
    return part instanceof byte[] bytes ? new String(bytes) : String.valueOf(part);
  }

  /** Names and values of a map in turn, whatever the driver makes of one. */
  private static List<String> flat(Object reply) {
    List<String> parts = new ArrayList<>();
    if (reply instanceof Map<?, ?> map) {
      map.forEach((name, value) -> parts.addAll(List.of(text(name), text(value))));
    } else {
      for (Object part : reply == null ? List.of() : (List<?>) reply) {
        if (part instanceof KeyValue<?, ?> pair) {
          parts.addAll(List.of(text(pair.getKey()), text(pair.getValue())));
        } else {
          parts.add(text(part));
        }
      }
    }
    return parts;
  }

  /** Lettuce expects one bulk string from an unknown command, unless an output is given. */
  private List<String> called(String command, String... words) {
    byte[][] arguments = new byte[words.length][];
    for (int i = 0; i < words.length; ++i) arguments[i] = words[i].getBytes();
    try (var connection = factory.getConnection()) {
      return flat(connection instanceof LettuceConnection own
          ? own.execute(command, new ObjectOutput<>(ByteArrayCodec.INSTANCE), arguments)
          : connection.execute(command, arguments));
    }
  }

  private void claims() {
    List<String> first = called("SEMEL.CLAIM", "orders", key("order"));
    Report.same(first.subList(0, 3), List.of("outcome", "granted", "epoch"));
    List<String> other = called("SEMEL.CLAIM", "orders", key("order"));
    Report.same(other.subList(0, 3), List.of("outcome", "in_flight", "remaining_ms"));
    Report.same(called("SEMEL.COMPLETE", "orders", key("order"), first.get(3), "paid"),
        List.of("outcome", "ok", "late", "false"));
    List<String> again = called("SEMEL.CLAIM", "orders", key("order"));
    Report.same(again.get(1), "replay");
    Report.same(again.get(again.indexOf("result") + 1), "paid");
  }

  /** By RedisConnection.execute alone: an array of bulk strings is read, and the last one is it. */
  private static void plainClaims(RedisStandaloneConfiguration where) {
    ClientOptions two = ClientOptions.builder().protocolVersion(ProtocolVersion.RESP2).build();
    LettuceConnectionFactory factory = new LettuceConnectionFactory(where,
        LettuceClientConfiguration.builder().clientOptions(two).build());
    factory.afterPropertiesSet();
    factory.start();
    try (var connection = factory.getConnection()) {
      byte[] space = "orders".getBytes();
      byte[] order = "order, plain".getBytes();
      Report.same(text(connection.execute("SEMEL.CLAIM", space, order)), "0");  // no takeover
      Report.same(text(connection.execute("SEMEL.RELEASE", space, order, "1".getBytes())),
          "not_owner");
      Report.same(text(connection.execute("SEMEL.FORGET", space, order)), "1");
    }
  }

  private boolean hasClaims() {
    try {
      called("SEMEL.GETCLAIM", "orders", key("none"));
      return true;
    } catch (RuntimeException error) {
      return !String.valueOf(error.getCause()).contains("unknown command");
    }
  }

  private void checkClaims(String name, Report.Work work) {
    if (hasClaims()) {
      Report.check(name, work);
    } else {
      System.out.println("skipped " + name + ": the server has no claims");
    }
  }

  private void run() {
    Report.check("handshake" + in,
        () -> Report.same(template.execute(connection -> connection.ping(), true), "PONG"));
    Report.check("setIfAbsent" + in, this::claim);
    Report.check("lock" + in, this::lock);
    Report.checkScripts("RedisScript" + in, this::script);
    Report.checkScripts("RedisScript, kinds of results" + in, this::scripts);
    Report.checkScripts("RedisScript, a limiter" + in, this::limiter);
    Report.check("expiry" + in, this::expiry);
    Report.check("pub/sub" + in, this::pubsub);
    Report.check("pipeline" + in, this::pipeline);
    Report.check("hashes" + in, this::hashes);
    checkClaims("claims by execute" + in, this::claims);
  }

  public static void main(String[] arguments) {
    RedisStandaloneConfiguration where =
        new RedisStandaloneConfiguration(Report.HOST, Report.PORT);
    LettuceConnectionFactory lettuce = new LettuceConnectionFactory(where);
    lettuce.afterPropertiesSet();
    lettuce.start();
    SpringSuite first = new SpringSuite("Lettuce", lettuce);
    first.run();
    first.checkClaims("claims by execute, Lettuce in RESP2", () -> plainClaims(where));
    JedisConnectionFactory jedis = new JedisConnectionFactory(where);
    jedis.afterPropertiesSet();
    jedis.start();
    new SpringSuite("Jedis", jedis).run();
    Report.end();
  }
}
