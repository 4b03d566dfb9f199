import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.BatchOptions;
import org.redisson.api.RBatch;
import org.redisson.api.RBucket;
import org.redisson.api.RCountDownLatch;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import org.redisson.api.RMap;
import org.redisson.api.RReadWriteLock;
import org.redisson.api.RScript;
import org.redisson.api.RSemaphore;
import org.redisson.api.RTopic;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;
import org.redisson.config.Protocol;

/** Redisson: what of it needs no script, and its lock. Both dialects. */
final class RedissonSuite {
  private static final String ADDRESS = "redis://" + Report.HOST + ":" + Report.PORT;
  private static final int FIGHTS = 30;
  private final Protocol protocol;
  private final String in;
  private final RedissonClient client;

  private RedissonSuite(Protocol protocol) {
    this.protocol = protocol;
    in = ", " + protocol;
    Config config = new Config();
    config.setProtocol(protocol);
    config.setCodec(StringCodec.INSTANCE);
    config.useSingleServer().setAddress(ADDRESS).setConnectionMinimumIdleSize(4)
        .setConnectionPoolSize(8).setClientName("redisson");
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

  private static CompletableFuture<Boolean> elsewhere(RLock lock, long waitMs) {
    return CompletableFuture.supplyAsync(() -> {
      try {
        return lock.tryLock(waitMs, 60_000, TimeUnit.MILLISECONDS);
      } catch (InterruptedException error) {
        return null;
      }
    });
  }

  /** Counts the holds of the owner; no other may release it. */
  private void reentrance() throws Exception {
    RLock lock = client.getLock(key("again"));
    for (int i = 1; i <= 3; ++i) {
      lock.lock(60, TimeUnit.SECONDS);
      Report.same(lock.getHoldCount(), i);
    }
    Report.same(CompletableFuture.supplyAsync(() -> {
      try {
        lock.unlock();
        return "given back";
      } catch (IllegalMonitorStateException error) {
        return "refused";
      }
    }).get(10, TimeUnit.SECONDS), "refused");
    lock.unlock();
    lock.unlock();
    Report.same(elsewhere(lock, 0).get(10, TimeUnit.SECONDS), false);
    lock.unlock();
    Report.same(elsewhere(lock, 0).get(10, TimeUnit.SECONDS), true);
    lock.forceUnlock();
  }

  /** Without a lease it is renewed while its owner lives: here every 300 ms, for 900. */
  private void watchdog() throws Exception {
    Config config = new Config();
    config.setProtocol(protocol);
    config.setLockWatchdogTimeout(900);
    config.useSingleServer().setAddress(ADDRESS).setConnectionMinimumIdleSize(2)
        .setConnectionPoolSize(4);
    RedissonClient short_lived = Redisson.create(config);
    RLock lock = short_lived.getLock(key("watched"));
    lock.lock();
    long end = System.nanoTime() + 2_500_000_000L;
    Report.until(() -> {
      Report.same(client.getLock(key("watched")).isLocked(), true);
      return System.nanoTime() > end;
    });
    short_lived.shutdown();  // a client that is gone renews nothing
    Report.until(() -> !client.getLock(key("watched")).isLocked());
  }

  /** A waiter gets a message when the lock is released, and when it is taken away. */
  private void waiters() throws Exception {
    RLock lock = client.getLock(key("waited"));
    lock.lock(60, TimeUnit.SECONDS);
    CompletableFuture<Boolean> waiting = elsewhere(lock, 20_000);
    String channel = "redisson_lock__channel:{" + key("waited") + "}";
    Report.until(() -> client.getTopic(channel).countSubscribers() > 0);
    long began = System.nanoTime();
    lock.unlock();
    Report.same(waiting.get(10, TimeUnit.SECONDS), true);
    Report.same(System.nanoTime() - began < 5_000_000_000L, true);
    CompletableFuture<Boolean> next = elsewhere(lock, 20_000);
    Report.until(() -> client.getTopic(channel).countSubscribers() > 0);
    Report.same(client.getLock(key("waited")).forceUnlock(), true);
    Report.same(next.get(10, TimeUnit.SECONDS), true);
    Report.same(lock.forceUnlock(), true);
    Report.same(lock.forceUnlock(), false);
  }

  private void lease() throws Exception {
    RLock lock = client.getLock(key("leased"));
    lock.lock(60, TimeUnit.MILLISECONDS);
    Report.until(() -> !lock.isLocked());
    Report.same(elsewhere(lock, 0).get(10, TimeUnit.SECONDS), true);
    lock.forceUnlock();
  }

  /** Two processes, of which each reads a counter and writes one more. */
  private void fight() throws Exception {
    String java = System.getProperty("java.home") + "/bin/java";
    List<Process> fighters = new ArrayList<>();
    for (int i = 0; i < 2; ++i) {
      fighters.add(new ProcessBuilder(java, "-XX:TieredStopAtLevel=1", "-cp",
          System.getProperty("java.class.path"), "RedissonSuite", protocol.name(), key("fight"))
          .redirectErrorStream(true).redirectOutput(ProcessBuilder.Redirect.DISCARD).start());
    }
    for (Process each : fighters) {
      Report.same(each.waitFor(60, TimeUnit.SECONDS), true);
      Report.same(each.exitValue(), 0);
    }
    Report.same(bucket("fight:counter").get(), Integer.toString(2 * FIGHTS));
  }

  private static void fighter(Protocol protocol, String name) {
    RedissonSuite self = new RedissonSuite(protocol);
    RLock lock = self.client.getLock(name);
    // The name of the suite's bucket, whose key ends with the dialect as this name does.
    RBucket<String> counter = self.bucket("fight:counter");
    for (int i = 0; i < FIGHTS; ++i) {
      lock.lock();
      String seen = counter.get();
      counter.set(Integer.toString(seen == null ? 1 : Integer.parseInt(seen) + 1));
      lock.unlock();
    }
    Runtime.getRuntime().halt(0);
  }

  private void readersAndWriters() throws Exception {
    RReadWriteLock both = client.getReadWriteLock(key("rw"));
    Report.same(both.readLock().tryLock(0, 60, TimeUnit.SECONDS), true);
    Report.same(elsewhere(both.readLock(), 0).get(10, TimeUnit.SECONDS), true);
    Report.same(elsewhere(both.writeLock(), 0).get(10, TimeUnit.SECONDS), false);
    both.readLock().unlock();
    Report.same(both.writeLock().tryLock(0, 60, TimeUnit.SECONDS), false);
    both.readLock().forceUnlock();
    Report.same(both.writeLock().tryLock(0, 60, TimeUnit.SECONDS), true);
    Report.same(both.readLock().tryLock(0, 60, TimeUnit.SECONDS), true);
    Report.same(elsewhere(both.readLock(), 0).get(10, TimeUnit.SECONDS), false);
    both.readLock().unlock();
    both.writeLock().unlock();
  }

  private void fenced() {
    RFencedLock lock = client.getFencedLock(key("fenced"));
    long first = lock.lockAndGetToken();
    lock.unlock();
    long second = lock.lockAndGetToken();
    lock.unlock();
    Report.same(second > first, true);
  }

  private void counters() throws Exception {
    RSemaphore permits = client.getSemaphore(key("permits"));
    Report.same(permits.trySetPermits(2), true);
    Report.same(permits.tryAcquire(), true);
    Report.same(permits.tryAcquire(2), false);
    permits.release();
    Report.same(permits.availablePermits(), 2);
    RCountDownLatch latch = client.getCountDownLatch(key("latch"));
    Report.same(latch.trySetCount(2), true);
    latch.countDown();
    CompletableFuture<Boolean> open = CompletableFuture.supplyAsync(() -> {
      try {
        return latch.await(20, TimeUnit.SECONDS);
      } catch (InterruptedException error) {
        return null;
      }
    });
    latch.countDown();
    Report.same(open.get(10, TimeUnit.SECONDS), true);
    Report.same(client.getAtomicLong(key("n")).compareAndSet(0, 5), true);
    Report.same(client.getAtomicLong(key("n")).getAndAdd(3), 5L);
    Report.same(client.getIdGenerator(key("ids")).tryInit(1, 10), true);
    Report.same(client.getIdGenerator(key("ids")).nextId(), 1L);
  }

  private void ownScripts() {
    RScript script = client.getScript(StringCodec.INSTANCE);
    String sha = script.scriptLoad("return {KEYS[1], ARGV[1]}");
    Report.same(script.scriptExists(sha), List.of(true));
    Report.same(script.evalSha(RScript.Mode.READ_ONLY, sha, RScript.ReturnType.LIST,
        List.of("k"), "a"), List.of("k", "a"));
    Report.same(script.eval(RScript.Mode.READ_WRITE, "return redis.call('SET', KEYS[1], ARGV[1], "
        + "'NX', 'GET', 'PX', ARGV[2])", RScript.ReturnType.VALUE, List.of(key("job")), "v",
        "60000"), null);
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
    Report.checkScripts("RLock, reentrance" + in, this::reentrance);
    Report.checkScripts("RLock, watchdog" + in, this::watchdog);
    Report.checkScripts("RLock, waiters and force" + in, this::waiters);
    Report.checkScripts("RLock, a lease that ends" + in, this::lease);
    Report.checkScripts("RLock, two processes" + in, this::fight);
    Report.checkScripts("RReadWriteLock" + in, this::readersAndWriters);
    Report.checkScripts("RFencedLock" + in, this::fenced);
    Report.checkScripts("RSemaphore, RCountDownLatch, RAtomicLong" + in, this::counters);
    Report.checkScripts("RScript" + in, this::ownScripts);
    Report.check("expiry" + in, this::expiry);
    Report.check("RTopic" + in, this::pubsub);
    Report.check("pipeline" + in, () -> batch(BatchOptions.defaults(), "count"));
    Report.check("transaction" + in, () -> batch(BatchOptions.defaults()
        .executionMode(BatchOptions.ExecutionMode.IN_MEMORY_ATOMIC), "atomic"));
    Report.check("RMap" + in, this::map);
    Report.checkScripts("RMap.put" + in, this::mapPut);
  }

  public static void main(String[] arguments) {
    if (arguments.length == 2) fighter(Protocol.valueOf(arguments[0]), arguments[1]);
    new RedissonSuite(Protocol.RESP2).run();
    new RedissonSuite(Protocol.RESP3).run();
    Report.end();
  }
}
