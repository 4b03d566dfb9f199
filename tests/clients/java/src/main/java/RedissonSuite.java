import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.BatchOptions;
import org.redisson.api.RBatch;
import org.redisson.api.RBucket;
import org.redisson.api.RLock;
import org.redisson.api.RMap;
import org.redisson.api.RTopic;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;
import org.redisson.config.Protocol;

/** Redisson: what of it needs no script, and its lock. Both dialects. */
final class RedissonSuite {
  private final String in;
  private final RedissonClient client;

  private RedissonSuite(Protocol protocol) {
    in = ", " + protocol;
    Config config = new Config();
    config.setProtocol(protocol);
    config.setCodec(StringCodec.INSTANCE);
    config.useSingleServer().setAddress("redis://" + Report.HOST + ":" + Report.PORT)
        .setConnectionMinimumIdleSize(4).setConnectionPoolSize(8).setClientName("redisson");
    client = Redisson.create(config);
  }

  private String key(String name) {
    return name + in;
  }

  private RBucket<String> bucket(String name) {
    return client.getBucket(key(name));
  }

  private void handshake() {
    Report.same(bucket("nothing").get(), null);
    bucket("here").set("1");
    Report.same(bucket("here").get(), "1");
  }

  private void claim() {
    RBucket<String> claim = bucket("claim");
    Report.same(claim.setIfAbsent("CONSUMING", Duration.ofSeconds(60)), true);
    Report.same(claim.setIfAbsent("CONSUMING", Duration.ofSeconds(60)), false);
    long left = claim.remainTimeToLive();
    Report.same(left > 0 && left <= 60_000, true);
    Report.same(claim.delete(), true);
  }

  private void bucketScripts() {
    bucket("scripted").set("1");
    Report.same(bucket("scripted").compareAndSet("2", "3"), false);
    Report.same(bucket("scripted").compareAndSet("1", "2"), true);
    Report.same(bucket("scripted").getAndDelete(), "2");
  }

  private void lock() throws Exception {
    RLock lock = client.getLock(key("lock"));
    Report.same(lock.tryLock(0, 60, TimeUnit.SECONDS), true);
    Report.same(lock.tryLock(0, 60, TimeUnit.SECONDS), true);
    CompletableFuture<Boolean> other = CompletableFuture.supplyAsync(() -> {
      try {
        return lock.tryLock(0, 60, TimeUnit.SECONDS);
      } catch (InterruptedException error) {
        return null;
      }
    });
    Report.same(other.get(10, TimeUnit.SECONDS), false);
    lock.unlock();
    lock.unlock();
    Report.same(lock.isLocked(), false);
  }

  private void expiry() throws Exception {
    bucket("short").set("1", Duration.ofMillis(30));
    Report.until(() -> !bucket("short").isExists());
    Report.same(bucket("short").remainTimeToLive(), -2L);
  }

  private void pubsub() throws Exception {
    CompletableFuture<String> heard = new CompletableFuture<>();
    RTopic topic = client.getTopic(key("news"));
    int listener =
        topic.addListener(String.class, (channel, message) -> heard.complete(message));
    Report.same(topic.publish("text"), 1L);
    Report.same(heard.get(10, TimeUnit.SECONDS), "text");
    topic.removeListener(listener);
  }

  private void batch(BatchOptions options, String name) {
    RBatch batch = client.createBatch(options);
    for (int i = 0; i < 100; ++i) batch.getAtomicLong(key(name)).incrementAndGetAsync();
    List<?> replies = batch.execute().getResponses();
    for (int i = 0; i < 100; ++i) Report.same(replies.get(i), i + 1L);
  }

  private void map() {
    RMap<String, String> map = client.getMap(key("map"));
    Report.same(map.fastPut("a", "1"), true);
    Report.same(map.fastPutIfAbsent("a", "2"), false);
    map.putAll(Map.of("b", "2", "c", "3"));
    Report.same(map.readAllMap(), Map.of("a", "1", "b", "2", "c", "3"));
    Report.same(map.size(), 3);
  }

  private void mapPut() {
    RMap<String, String> map = client.getMap(key("put"));
    Report.same(map.put("a", "1"), null);
    Report.same(map.put("a", "2"), "1");
    Report.same(map.remove("a", "1"), false);
  }

  private void run() {
    Report.check("handshake" + in, this::handshake);
    Report.check("RBucket" + in, this::claim);
    Report.checkScripts("RBucket, compared" + in, this::bucketScripts);
    Report.checkScripts("RLock" + in, this::lock);
    Report.check("expiry" + in, this::expiry);
    Report.check("RTopic" + in, this::pubsub);
    Report.check("pipeline" + in, () -> batch(BatchOptions.defaults(), "count"));
    Report.check("transaction" + in, () -> batch(BatchOptions.defaults()
        .executionMode(BatchOptions.ExecutionMode.IN_MEMORY_ATOMIC), "atomic"));
    Report.check("RMap" + in, this::map);
    Report.checkScripts("RMap.put" + in, this::mapPut);
  }

  public static void main(String[] arguments) {
    new RedissonSuite(Protocol.RESP2).run();
    new RedissonSuite(Protocol.RESP3).run();
    Report.end();
  }
}
