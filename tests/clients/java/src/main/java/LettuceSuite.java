import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisURI;
import io.lettuce.core.ScriptOutputType;
import io.lettuce.core.SetArgs;
import io.lettuce.core.TransactionResult;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.protocol.ProtocolVersion;
import io.lettuce.core.pubsub.RedisPubSubAdapter;
import io.lettuce.core.pubsub.StatefulRedisPubSubConnection;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/** Lettuce, in both dialects. */
final class LettuceSuite {
  private final ProtocolVersion version;
  private final RedisClient client;

  private LettuceSuite(ProtocolVersion version) {
    this.version = version;
    client = RedisClient.create(RedisURI.builder().withHost(Report.HOST).withPort(Report.PORT)
        .withTimeout(Duration.ofSeconds(20)).build());
    client.setOptions(ClientOptions.builder().protocolVersion(version).build());
  }

  private String key(String name) {
    return version + ":" + name;
  }

  private void handshake(RedisCommands<String, String> one) {
    Report.same(one.ping(), "PONG");
    RedisURI fourth = RedisURI.builder().withHost(Report.HOST).withPort(Report.PORT).withDatabase(4)
        .withClientName("second").build();
    try (StatefulRedisConnection<String, String> named = client.connect(fourth)) {
      Report.same(named.sync().clientGetname(), "second");
      Report.same(named.sync().set(key("here"), "4"), "OK");
      Report.same(one.get(key("here")), null);
    }
  }

  private void claim(RedisCommands<String, String> one, RedisCommands<String, String> two) {
    SetArgs claim = SetArgs.Builder.nx().px(60_000);
    Report.same(one.setGet(key("claim"), "CONSUMING", claim), null);
    Report.same(two.setGet(key("claim"), "CONSUMING", claim), "CONSUMING");
  }

  private void lock(RedisCommands<String, String> one, RedisCommands<String, String> two) {
    SetArgs lock = SetArgs.Builder.nx().px(60_000);
    Report.same(one.set(key("lock"), "mine", lock), "OK");
    Report.same(two.set(key("lock"), "theirs", lock), null);
    one.watch(key("lock"));
    Report.same(one.get(key("lock")), "mine");
    one.multi();
    one.del(key("lock"));
    Report.same(one.exec().stream().toList(), List.of(1L));
    Report.same(two.set(key("lock"), "theirs", lock), "OK");
  }

  private void script(RedisCommands<String, String> one) {
    one.set(key("scripted"), "mine");
    String[] keys = {key("scripted")};
    Long wrong = one.eval(Report.RELEASE, ScriptOutputType.INTEGER, keys, "theirs");
    Long right = one.eval(Report.RELEASE, ScriptOutputType.INTEGER, keys, "mine");
    Report.same(List.of(wrong, right), List.of(0L, 1L));
  }

  private void expiry(RedisCommands<String, String> one, RedisCommands<String, String> two)
      throws Exception {
    one.psetex(key("short"), 30, "1");
    Report.until(() -> two.exists(key("short")) == 0);
    Report.same(two.ttl(key("short")), -2L);
    one.setex(key("long"), 100, "1");
    Report.same(two.ttl(key("long")), 100L);
    Report.same(one.persist(key("long")), true);
  }

  private void pubsub(RedisCommands<String, String> one) throws Exception {
    CompletableFuture<String> heard = new CompletableFuture<>();
    try (StatefulRedisPubSubConnection<String, String> listener = client.connectPubSub()) {
      listener.addListener(new RedisPubSubAdapter<String, String>() {
        @Override
        public void message(String channel, String message) {
          heard.complete(channel + " " + message);
        }
      });
      listener.sync().subscribe(key("news"));
      Report.same(one.publish(key("news"), "text"), 1L);
      Report.same(heard.get(10, TimeUnit.SECONDS), key("news") + " text");
      listener.sync().unsubscribe(key("news"));
    }
  }

  private void pipeline(StatefulRedisConnection<String, String> connection) throws Exception {
    connection.setAutoFlushCommands(false);
    List<RedisFuture<Long>> replies = new ArrayList<>();
    for (int i = 0; i < 500; ++i) replies.add(connection.async().incr(key("count")));
    connection.flushCommands();
    connection.setAutoFlushCommands(true);
    for (int i = 0; i < 500; ++i) {
      Report.same(replies.get(i).get(10, TimeUnit.SECONDS), i + 1L);
    }
  }

  private void transaction(RedisCommands<String, String> one, RedisCommands<String, String> two) {
    one.watch(key("t"));
    two.set(key("t"), "theirs");
    one.multi();
    one.set(key("t"), "mine");
    TransactionResult conflict = one.exec();
    Report.same(conflict.wasDiscarded(), true);
    one.multi();
    one.set(key("t"), "1");
    one.incr(key("t"));
    Report.same(one.exec().stream().toList(), List.of("OK", 2L));
  }

  private void errors(RedisCommands<String, String> one) {
    one.set(key("text"), "abc");
    try {
      one.incr(key("text"));
      throw new AssertionError("no error");
    } catch (RedisCommandExecutionException error) {
      Report.same(error.getMessage(), "ERR value is not an integer or out of range");
    }
  }

  private void hashes(RedisCommands<String, String> one) {
    Report.same(one.hset(key("hash"), Map.of("a", "1", "b", "2")), 2L);
    Report.same(one.hgetall(key("hash")), Map.of("a", "1", "b", "2"));
  }

  private void run() {
    String in = ", " + version;
    StatefulRedisConnection<String, String> connection = client.connect();
    RedisCommands<String, String> one = connection.sync();
    RedisCommands<String, String> two = client.connect().sync();
    Report.check("handshake" + in, () -> handshake(one));
    Report.check("claim" + in, () -> claim(one, two));
    Report.check("lock" + in, () -> lock(one, two));
    Report.checkScripts("script" + in, () -> script(one));
    Report.check("expiry" + in, () -> expiry(one, two));
    Report.check("pub/sub" + in, () -> pubsub(one));
    Report.check("pipeline" + in, () -> pipeline(connection));
    Report.check("transaction" + in, () -> transaction(one, two));
    Report.check("errors" + in, () -> errors(one));
    Report.check("hashes" + in, () -> hashes(one));
  }

  public static void main(String[] arguments) {
    new LettuceSuite(ProtocolVersion.RESP2).run();
    new LettuceSuite(ProtocolVersion.RESP3).run();
    Report.end();
  }
}
