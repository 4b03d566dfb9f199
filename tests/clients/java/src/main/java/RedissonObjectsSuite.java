import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.EvictionMode;
import org.redisson.api.RBlockingQueue;
import org.redisson.api.RBloomFilter;
import org.redisson.api.RDelayedQueue;
import org.redisson.api.RLocalCachedMap;
import org.redisson.api.RLock;
import org.redisson.api.RMapCache;
import org.redisson.api.RRateLimiter;
import org.redisson.api.RStream;
import org.redisson.api.RateType;
import org.redisson.api.RedissonClient;
import org.redisson.api.map.event.EntryExpiredListener;
import org.redisson.api.options.LocalCachedMapOptions;
import org.redisson.api.stream.StreamAddArgs;
import org.redisson.api.stream.StreamCreateGroupArgs;
import org.redisson.api.stream.StreamMessageId;
import org.redisson.api.stream.StreamReadGroupArgs;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;
import org.redisson.config.Protocol;

/** What Redisson keeps in lists, sets, sorted sets, hashes and streams. Two clients, both dialects. */
final class RedissonObjectsSuite {
  private final String in;
  private final RedissonClient client;
  private final RedissonClient other;

  private RedissonObjectsSuite(Protocol protocol) {
    in = ", " + protocol;
    client = connect(protocol);
    other = connect(protocol);
  }

  private static RedissonClient connect(Protocol protocol) {
    Config config = new Config();
    config.setProtocol(protocol);
    config.setCodec(StringCodec.INSTANCE);
    config.useSingleServer().setAddress("redis://" + Report.HOST + ":" + Report.PORT)
        .setConnectionMinimumIdleSize(4).setConnectionPoolSize(16);
    return Redisson.create(config);
  }

  private String key(String name) {
    return name + in;
  }

  private static void pause(long ms) throws InterruptedException {
    Thread.sleep(ms);
  }

  /** Who waits gets the lock in the order in which they came, of two clients. */
  private void fairLock() throws Exception {
    RLock held = client.getFairLock(key("fair"));
    held.lock(60, TimeUnit.SECONDS);
    List<Integer> order = new CopyOnWriteArrayList<>();
    List<Thread> waiting = new ArrayList<>();
    List<Integer> came = new ArrayList<>();
    for (int i = 0; i < 6; ++i) {
      int number = i;
      Thread thread = new Thread(() -> {
        RLock lock = (number % 2 == 0 ? client : other).getFairLock(key("fair"));
        lock.lock(60, TimeUnit.SECONDS);
        order.add(number);
        lock.unlock();
      });
      thread.start();
      waiting.add(thread);
      came.add(i);
      Report.until(() -> client.getList("redisson_lock_queue:{" + key("fair") + "}").size()
          == number + 1);
    }
    Report.same(client.getFairLock(key("fair")).isLocked(), true);
    held.unlock();
    for (Thread thread : waiting) thread.join(10_000);
    Report.same(order, came);
  }

  /** Its holder is gone without a word; the next in the queue gets it when the lease is over. */
  private void fairLease() throws Exception {
    Thread gone = new Thread(() -> other.getFairLock(key("lease")).lock(500, TimeUnit.MILLISECONDS));
    gone.start();
    gone.join();
    RLock lock = client.getFairLock(key("lease"));
    Report.same(lock.tryLock(), false);
    Report.same(lock.tryLock(10, 60, TimeUnit.SECONDS), true);
    lock.unlock();
  }

  private void rateLimiter() throws Exception {
    RRateLimiter limiter = client.getRateLimiter(key("rate"));
    Report.same(limiter.trySetRate(RateType.OVERALL, 3, Duration.ofMillis(600)), true);
    Report.same(limiter.trySetRate(RateType.OVERALL, 9, Duration.ofMillis(600)), false);
    RRateLimiter theirs = other.getRateLimiter(key("rate"));
    int granted = 0;
    for (int i = 0; i < 6; ++i) {
      if ((i % 2 == 0 ? limiter : theirs).tryAcquire()) ++granted;
    }
    Report.same(granted, 3);
    Report.same(limiter.availablePermits(), 0L);
    Report.same(limiter.tryAcquire(3, Duration.ofSeconds(10)), true);
  }

  private void mapCache() throws Exception {
    RMapCache<String, String> map = client.getMapCache(key("cache"));
    List<String> expired = new CopyOnWriteArrayList<>();
    int listener = other.<String, String>getMapCache(key("cache")).addListener(
        (EntryExpiredListener<String, String>) event -> expired.add(event.getKey()));
    Report.same(map.put("short", "1", 300, TimeUnit.MILLISECONDS), null);
    Report.same(map.put("long", "2", 60, TimeUnit.SECONDS), null);
    Report.same(map.putIfAbsent("long", "3", 60, TimeUnit.SECONDS), "2");
    Report.same(map.get("short"), "1");
    Report.until(() -> map.get("short") == null);
    Report.same(map.readAllMap(), Map.of("long", "2"));
    Report.until(() -> expired.contains("short"));
    other.getMapCache(key("cache")).removeListener(listener);
    RMapCache<String, String> idle = client.getMapCache(key("idle"));
    idle.put("used", "1", 0, TimeUnit.SECONDS, 400, TimeUnit.MILLISECONDS);
    idle.put("unused", "1", 0, TimeUnit.SECONDS, 400, TimeUnit.MILLISECONDS);
    for (int i = 0; i < 8; ++i) {
      Report.same(idle.get("used"), "1");
      pause(75);
    }
    Report.same(idle.get("unused"), null);
  }

  /** It goes by the milliseconds of the last use, so that two uses must not be in the same one. */
  private void bounded() throws Exception {
    RMapCache<String, String> map = client.getMapCache(key("bounded"));
    map.setMaxSize(3, EvictionMode.LRU);
    for (String name : List.of("a", "b", "c")) {
      map.fastPut(name, name);
      pause(3);
    }
    Report.same(map.get("a"), "a");
    pause(3);
    map.fastPut("d", "d");
    Report.same(map.size(), 3);
    Report.same(map.get("b"), null);
    Report.same(map.get("a"), "a");
  }

  private void delayedQueue() throws Exception {
    RBlockingQueue<String> ready = client.getBlockingQueue(key("ready"));
    RDelayedQueue<String> delayed = client.getDelayedQueue(ready);
    long began = System.nanoTime();
    delayed.offer("later", 700, TimeUnit.MILLISECONDS);
    delayed.offer("sooner", 300, TimeUnit.MILLISECONDS);
    Report.same(ready.size(), 0);
    RBlockingQueue<String> theirs = other.getBlockingQueue(key("ready"));
    Report.same(theirs.poll(10, TimeUnit.SECONDS), "sooner");
    Report.same(theirs.poll(10, TimeUnit.SECONDS), "later");
    long tookMs = (System.nanoTime() - began) / 1_000_000;
    if (tookMs < 650) throw new AssertionError("after " + tookMs + " ms");
    delayed.destroy();
  }

  private void bloomFilter() {
    RBloomFilter<String> filter = client.getBloomFilter(key("bloom"));
    Report.same(filter.tryInit(2_000, 0.01), true);
    Report.same(other.getBloomFilter(key("bloom")).tryInit(5, 0.5), false);
    for (int i = 0; i < 500; ++i) filter.add("in " + i);
    int wrong = 0;
    for (int i = 0; i < 500; ++i) {
      if (!filter.contains("in " + i)) throw new AssertionError("lost: " + i);
      if (filter.contains("out " + i)) ++wrong;
    }
    if (wrong > 25) throw new AssertionError(wrong + " of 500 are taken for members");
    long count = filter.count();
    if (count < 470 || count > 530) throw new AssertionError("count " + count);
  }

  /** A consumer reads and is gone; another one takes over what it has not confirmed. */
  private void stream() throws Exception {
    RStream<String, String> stream = client.getStream(key("stream"));
    stream.createGroup(StreamCreateGroupArgs.name("g").id(StreamMessageId.ALL).makeStream());
    for (int i = 0; i < 10; ++i) stream.add(StreamAddArgs.entry("n", "" + i));
    StreamReadGroupArgs four = StreamReadGroupArgs.neverDelivered().count(4);
    Map<StreamMessageId, Map<String, String>> lost = stream.readGroup("g", "gone", four);
    Report.same(lost.size(), 4);
    RStream<String, String> theirs = other.getStream(key("stream"));
    Map<StreamMessageId, Map<String, String>> mine =
        theirs.readGroup("g", "lives", StreamReadGroupArgs.neverDelivered().count(100));
    Report.same(mine.size(), 6);
    Report.same(theirs.ack("g", mine.keySet().toArray(new StreamMessageId[0])), 6L);
    Report.same(stream.getPendingInfo("g").getTotal(), 4L);
    pause(20);
    Map<StreamMessageId, Map<String, String>> taken = theirs.autoClaim("g", "lives", 10,
        TimeUnit.MILLISECONDS, StreamMessageId.MIN, 100).getMessages();
    Report.same(taken, lost);
    Report.same(theirs.listPending("g", "lives", StreamMessageId.MIN, StreamMessageId.MAX, 10)
        .get(0).getDeliveryCount() >= 2, true);
    Report.same(theirs.ack("g", taken.keySet().toArray(new StreamMessageId[0])), 4L);
    Report.same(stream.getPendingInfo("g").getTotal(), 0L);
  }

  /** It waits in the group until there is an entry. */
  private void streamWaits() throws Exception {
    RStream<String, String> stream = client.getStream(key("waits"));
    stream.createGroup(StreamCreateGroupArgs.name("g").makeStream());
    var read = other.<String, String>getStream(key("waits")).readGroupAsync("g", "c",
        StreamReadGroupArgs.neverDelivered().timeout(Duration.ofSeconds(10)));
    pause(50);
    Report.same(read.isDone(), false);
    stream.add(StreamAddArgs.entry("n", "1"));
    Report.same(List.copyOf(read.get(10, TimeUnit.SECONDS).values()), List.of(Map.of("n", "1")));
  }

  private RLocalCachedMap<String, String> cachedBy(RedissonClient side) {
    return side.getLocalCachedMap(LocalCachedMapOptions.<String, String>name(key("local"))
        .codec(StringCodec.INSTANCE)
        .syncStrategy(LocalCachedMapOptions.SyncStrategy.INVALIDATE));
  }

  private void localCachedMap() throws Exception {
    RLocalCachedMap<String, String> mine = cachedBy(client);
    RLocalCachedMap<String, String> theirs = cachedBy(other);
    mine.put("a", "1");
    // News of the first value may come behind it, and empty what is cached.
    Report.until(() -> "1".equals(theirs.get("a")) && theirs.getCachedMap().equals(Map.of("a", "1")));
    mine.put("a", "2");
    Report.until(() -> theirs.getCachedMap().isEmpty());
    Report.same(theirs.get("a"), "2");
    mine.fastRemove("a");
    Report.until(() -> theirs.get("a") == null);
    mine.destroy();
    theirs.destroy();
  }

  private void run() {
    Report.checkScripts("RLock, fair: the order of those that wait" + in, this::fairLock);
    Report.checkScripts("RLock, fair: a holder that is gone" + in, this::fairLease);
    Report.checkScripts("RRateLimiter" + in, this::rateLimiter);
    Report.checkScripts("RMapCache" + in, this::mapCache);
    Report.checkScripts("RMapCache with a greatest size" + in, this::bounded);
    Report.checkScripts("RDelayedQueue" + in, this::delayedQueue);
    Report.checkScripts("RBloomFilter" + in, this::bloomFilter);
    Report.check("RStream, a consumer that is gone" + in, this::stream);
    Report.check("RStream, one that waits" + in, this::streamWaits);
    Report.checkScripts("RLocalCachedMap" + in, this::localCachedMap);
  }

  public static void main(String[] arguments) {
    new RedissonObjectsSuite(Protocol.RESP2).run();
    new RedissonObjectsSuite(Protocol.RESP3).run();
    Report.end();
  }
}
