import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisPubSub;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.Response;
import redis.clients.jedis.Transaction;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.params.SetParams;

/** Jedis, in both dialects. */
final class JedisSuite {
  private final RedisProtocol protocol;

  private JedisSuite(RedisProtocol protocol) {
    this.protocol = protocol;
  }

  private Jedis connect(String name, int db) {
    return new Jedis(new HostAndPort(Report.HOST, Report.PORT),
        DefaultJedisClientConfig.builder().protocol(protocol).clientName(name).database(db).build());
  }

  private String key(String name) {
    return protocol + ":" + name;
  }

  private void handshake(Jedis one) {
    Report.same(one.ping(), "PONG");
    try (Jedis named = connect("second", 4)) {
      Report.same(named.clientGetname(), "second");
      Report.same(named.set(key("here"), "4"), "OK");
      Report.same(one.get(key("here")), null);
    }
  }

  private void claim(Jedis one, Jedis two) {
    SetParams claim = SetParams.setParams().nx().px(60_000);
    Report.same(one.setGet(key("claim"), "CONSUMING", claim), null);
    Report.same(two.setGet(key("claim"), "CONSUMING", claim), "CONSUMING");
  }

  private void lock(Jedis one, Jedis two) {
    SetParams lock = SetParams.setParams().nx().px(60_000);
    Report.same(one.set(key("lock"), "mine", lock), "OK");
    Report.same(two.set(key("lock"), "theirs", lock), null);
    one.watch(key("lock"));
    Report.same(one.get(key("lock")), "mine");
    Transaction release = one.multi();
    release.del(key("lock"));
    Report.same(release.exec(), List.of(1L));
    Report.same(two.set(key("lock"), "theirs", lock), "OK");
  }

  private void script(Jedis one) {
    one.set(key("scripted"), "mine");
    Report.same(one.eval(Report.RELEASE, List.of(key("scripted")), List.of("theirs")), 0L);
    Report.same(one.eval(Report.RELEASE, List.of(key("scripted")), List.of("mine")), 1L);
  }

  private void expiry(Jedis one, Jedis two) throws Exception {
    one.psetex(key("short"), 30, "1");
    Report.until(() -> !two.exists(key("short")));
    Report.same(two.ttl(key("short")), -2L);
    one.set(key("long"), "1");
    Report.same(one.expire(key("long"), 100), 1L);
    Report.same(two.ttl(key("long")), 100L);
    Report.same(one.persist(key("long")), 1L);
  }

  private void pubsub(Jedis one) throws Exception {
    CountDownLatch ready = new CountDownLatch(1);
    AtomicReference<String> heard = new AtomicReference<>();
    JedisPubSub listener = new JedisPubSub() {
      @Override
      public void onSubscribe(String channel, int count) {
        ready.countDown();
      }

      @Override
      public void onMessage(String channel, String message) {
        heard.set(channel + " " + message);
        unsubscribe();
      }
    };
    Thread thread = new Thread(() -> {
      try (Jedis subscribed = connect("listener", 0)) {
        subscribed.subscribe(listener, key("news"));
      }
    });
    thread.setDaemon(true);
    thread.start();
    Report.same(ready.await(10, TimeUnit.SECONDS), true);
    Report.same(one.publish(key("news"), "text"), 1L);
    thread.join(10_000);
    Report.same(heard.get(), key("news") + " text");
  }

  private void pipeline(Jedis one) {
    List<Response<Long>> replies = new ArrayList<>();
    try (Pipeline pipeline = one.pipelined()) {
      for (int i = 0; i < 500; ++i) replies.add(pipeline.incr(key("count")));
      pipeline.sync();
    }
    for (int i = 0; i < 500; ++i) Report.same(replies.get(i).get(), i + 1L);
  }

  private void transaction(Jedis one, Jedis two) {
    one.watch(key("t"));
    two.set(key("t"), "theirs");
    Transaction conflict = one.multi();
    conflict.set(key("t"), "mine");
    Report.same(conflict.exec(), null);
    Transaction fine = one.multi();
    fine.set(key("t"), "1");
    fine.incr(key("t"));
    Report.same(fine.exec(), List.of("OK", 2L));
  }

  private void errors(Jedis one) {
    one.set(key("text"), "abc");
    try {
      one.incr(key("text"));
      throw new AssertionError("no error");
    } catch (JedisDataException error) {
      Report.same(error.getMessage(), "ERR value is not an integer or out of range");
    }
  }

  private void hashes(Jedis one) {
    Report.same(one.hset(key("hash"), Map.of("a", "1", "b", "2")), 2L);
    Report.same(one.hgetAll(key("hash")), Map.of("a", "1", "b", "2"));
  }

  private void run() {
    String in = ", " + protocol;
    try (Jedis one = connect("first", 0); Jedis two = connect("second", 0)) {
      Report.check("handshake" + in, () -> handshake(one));
      Report.check("claim" + in, () -> claim(one, two));
      Report.check("lock" + in, () -> lock(one, two));
      Report.checkScripts("script" + in, () -> script(one));
      Report.check("expiry" + in, () -> expiry(one, two));
      Report.check("pub/sub" + in, () -> pubsub(one));
      Report.check("pipeline" + in, () -> pipeline(one));
      Report.check("transaction" + in, () -> transaction(one, two));
      Report.check("errors" + in, () -> errors(one));
      Report.check("hashes" + in, () -> hashes(one));
    }
  }

  public static void main(String[] arguments) {
    for (RedisProtocol protocol : List.of(RedisProtocol.RESP2, RedisProtocol.RESP3)) {
      new JedisSuite(protocol).run();
    }
    Report.end();
  }
}
