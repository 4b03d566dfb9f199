import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.BatchOptions;
import org.redisson.api.RBatch;
import org.redisson.api.RBucket;
import org.redisson.api.RLock;
import org.redisson.api.RScript;
import org.redisson.api.RTopic;
import org.redisson.api.RedissonClient;
import org.redisson.api.redisnode.RedisCluster;
import org.redisson.api.redisnode.RedisNodes;
import org.redisson.client.RedisException;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;
import org.redisson.config.ConstantDelay;
import org.redisson.config.ReadMode;

/** Redisson in cluster mode against a group. */
final class RedissonClusterSuite {
  private static final RedissonClient client = create(ReadMode.MASTER, Report.PORT);

  private RedissonClusterSuite() {}

  /** Its own scan for another leader is every 5 s, its timeout 3 s, its retries up to 2 s apart. */
  private static RedissonClient create(ReadMode reads, int... ports) {
    Config config = new Config();
    config.setCodec(StringCodec.INSTANCE);
    for (int port : ports) {
      config.useClusterServers().addNodeAddress("redis://" + Report.HOST + ":" + port);
    }
    config.useClusterServers().setReadMode(reads).setScanInterval(200).setTimeout(1_000)
        .setRetryDelay(new ConstantDelay(Duration.ofMillis(50)))
        .setMasterConnectionMinimumIdleSize(2).setMasterConnectionPoolSize(4)
        .setSlaveConnectionMinimumIdleSize(2).setSlaveConnectionPoolSize(4);
    return Redisson.create(config);
  }

  private static void topology() throws Exception {
    RedissonClient reader = create(ReadMode.SLAVE, Report.PORT);  // others leave replicas out
    RedisCluster nodes = reader.getRedisNodes(RedisNodes.CLUSTER);
    int leader = Outages.needNumber("leader");
    Report.same(nodes.getMasters().size(), 1);
    nodes.getMasters().forEach(each -> {
      Report.same(each.getAddr().getPort(), leader);
      Report.same(each.clusterSlots().keySet().iterator().next().toString(), "[0-16383]");
    });
    Set<Integer> ports = new HashSet<>(Set.of(leader));
    nodes.getSlaves().forEach(each -> ports.add(each.getAddr().getPort()));
    Report.same(ports, new HashSet<>(Outages.NODES));
    reader.shutdown();
  }

  private static void claim() {
    RBucket<String> claim = client.getBucket("claim");
    Report.same(claim.setIfAbsent("mine", Duration.ofSeconds(60)), true);
    Report.same(claim.setIfAbsent("other", Duration.ofSeconds(60)), false);
    Report.same(claim.get(), "mine");
    RBucket<String> tried = client.getBucket("tried");
    Report.same(tried.trySet("mine", 60, TimeUnit.SECONDS), true);
    Report.same(tried.trySet("other", 60, TimeUnit.SECONDS), false);
    Report.same(tried.compareAndSet("other", "next"), false);
    Report.same(tried.compareAndSet("mine", "next"), true);
    Report.same(tried.getAndDelete(), "next");
  }

  private static void severalKeys() {
    Map<String, String> pairs = new TreeMap<>(Map.of("{tag}a", "1", "{tag}b", "2"));
    client.getBuckets().set(pairs);
    Report.same(client.getBuckets().get("{tag}a", "{tag}b"), pairs);
    for (int i = 0; i < 50; ++i) pairs.put("across:" + i, Integer.toString(i));
    client.getBuckets().set(pairs);
    Report.same(client.getBuckets().get(pairs.keySet().toArray(new String[0])), pairs);
  }

  private static void batch(BatchOptions.ExecutionMode mode, String name) {
    RBatch batch = client.createBatch(BatchOptions.defaults().executionMode(mode));
    for (int i = 0; i < 100; ++i) batch.getAtomicLong(name).incrementAndGetAsync();
    List<?> replies = batch.execute().getResponses();
    for (int i = 0; i < 100; ++i) Report.same(replies.get(i), i + 1L);
  }

  private static void readsOfReplicas() throws Exception {
    client.getBucket("read").set("here");
    RedissonClient reader = create(ReadMode.SLAVE, Report.PORT);
    Report.until(() -> {
      for (int i = 0; i < 5; ++i) {
        if (!"here".equals(reader.getBucket("read").get())) return false;
      }
      return true;
    });
    int before = Outages.needNumber("replica-calls get");
    for (int i = 0; i < 30; ++i) Report.same(reader.getBucket("read").get(), "here");
    Report.same(Outages.needNumber("replica-calls get") >= before + 30, true);
    reader.shutdown();
  }

  private static CompletableFuture<Boolean> elsewhere(RLock lock, long waitMs) {
    return CompletableFuture.supplyAsync(() -> {
      try {
        return lock.tryLock(waitMs, 60_000, TimeUnit.MILLISECONDS);
      } catch (InterruptedException error) {
        return null;
      }
    });
  }

  private static void lock() throws Exception {
    RLock lock = client.getLock("lock");
    Report.same(lock.tryLock(0, 60, TimeUnit.SECONDS), true);
    Report.same(lock.tryLock(0, 60, TimeUnit.SECONDS), true);
    Report.same(lock.getHoldCount(), 2);
    Report.same(elsewhere(lock, 0).get(10, TimeUnit.SECONDS), false);
    lock.unlock();
    CompletableFuture<Boolean> waiting = elsewhere(lock, 20_000);
    lock.unlock();
    Report.same(waiting.get(10, TimeUnit.SECONDS), true);
    Report.same(lock.forceUnlock(), true);
    Report.same(lock.isLocked(), false);
  }

  /** A lock that was taken before its leader died is held by the same owner behind it. */
  private static void lockOverOutage() throws Exception {
    RLock lock = client.getLock("outlives");
    Report.same(lock.tryLock(0, 60, TimeUnit.SECONDS), true);
    Outages.need("kill-leader");
    Report.until(() -> {
      try {
        return lock.isHeldByCurrentThread();
      } catch (RedisException again) {
        return false;
      }
    });
    Outages.need("restart");
    Report.same(elsewhere(lock, 0).get(10, TimeUnit.SECONDS), false);
    lock.unlock();
    Report.same(elsewhere(lock, 0).get(10, TimeUnit.SECONDS), true);
  }

  private static void script() {
    RScript script = client.getScript(StringCodec.INSTANCE);
    client.getBucket("scripted").set("mine");
    String digest = script.scriptLoad(Report.RELEASE);
    Report.same(script.evalSha("scripted", RScript.Mode.READ_WRITE, digest,
        RScript.ReturnType.LONG, List.of("scripted"), "other"), 0L);
    Report.same(script.evalSha("scripted", RScript.Mode.READ_WRITE, digest,
        RScript.ReturnType.LONG, List.of("scripted"), "mine"), 1L);
  }

  private static void pubsub() throws Exception {
    CompletableFuture<String> heard = new CompletableFuture<>();
    RTopic topic = client.getTopic("news");
    int listener = topic.addListener(String.class, (channel, message) -> heard.complete(message));
    topic.publish("text");
    Report.same(heard.get(10, TimeUnit.SECONDS), "text");
    topic.removeListener(listener);
  }

  private static void seeds() {
    RedissonClient both = create(ReadMode.MASTER, Outages.DEAD_PORT, Report.PORT);
    Report.same(both.getBucket("claim").get(), "mine");
    both.shutdown();
    long began = System.nanoTime();
    try {
      create(ReadMode.MASTER, Outages.DEAD_PORT);
      throw new AssertionError("no error");
    } catch (RedisException error) {
      Report.same(System.nanoTime() - began < 10_000_000_000L, true);
    }
  }

  public static void main(String[] arguments) throws Exception {
    Report.check("topology", RedissonClusterSuite::topology);
    Report.check("RBucket", RedissonClusterSuite::claim);
    Report.check("RBuckets, in one slot and across slots", RedissonClusterSuite::severalKeys);
    Report.check("RBatch", () -> batch(BatchOptions.ExecutionMode.IN_MEMORY, "count"));
    Report.check("RBatch, atomic",
        () -> batch(BatchOptions.ExecutionMode.IN_MEMORY_ATOMIC, "atomic"));
    Report.check("reads of replicas", RedissonClusterSuite::readsOfReplicas);
    Report.check("RLock", RedissonClusterSuite::lock);
    Report.check("RScript", RedissonClusterSuite::script);
    Report.check("RTopic", RedissonClusterSuite::pubsub);
    System.out.println("skipped claims of Semel: Redisson sends no commands but its own");
    Report.check("seeds that are dead", RedissonClusterSuite::seeds);
    Report.check("RLock over the end of a leader", RedissonClusterSuite::lockOverOutage);
    RedissonClient seed = create(ReadMode.MASTER, Outages.needNumber("leader"));
    Outages.check("kept:", (key, value) -> {
      RBucket<String> bucket = seed.getBucket(key);
      // A false may be the answer to this caller's own, whose first answer was lost.
      return bucket.setIfAbsent(value) ? null : bucket.get();
    }, key -> seed.<String>getBucket(key).get());
    Report.end();
  }
}
