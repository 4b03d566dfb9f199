import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import redis.clients.jedis.AbstractTransaction;
import redis.clients.jedis.ClusterPipeline;
import redis.clients.jedis.CommandObjects;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisPubSub;
import redis.clients.jedis.RedisClusterClient;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.Response;
import redis.clients.jedis.exceptions.JedisException;
import redis.clients.jedis.params.SetParams;
import redis.clients.jedis.resps.ClusterShardInfo;
import redis.clients.jedis.util.SafeEncoder;

/** Jedis' client of a cluster, which was JedisCluster, against a group. */
final class JedisClusterSuite {
  private static final RedisClusterClient client = connect(false, Report.PORT);

  private JedisClusterSuite() {}

  /** It sleeps between retries, the longer the more time it has for all of them: 10 s of its own. */
  private static RedisClusterClient connect(boolean readsReplicas, int... ports) {
    DefaultJedisClientConfig.Builder config =
        DefaultJedisClientConfig.builder().protocol(RedisProtocol.RESP2);
    if (readsReplicas) config.readOnlyForRedisClusterReplicas();
    Set<HostAndPort> nodes = new HashSet<>();
    for (int port : ports) nodes.add(new HostAndPort(Report.HOST, port));
    return RedisClusterClient.builder().nodes(nodes).clientConfig(config.build())
        .maxTotalRetriesDuration(Duration.ofSeconds(2)).build();
  }

  private static void topology() throws Exception {
    Set<String> addresses = new HashSet<>();
    for (int port : Outages.NODES) addresses.add(Report.HOST + ":" + port);
    Report.same(client.getClusterNodes().keySet(), addresses);
    int leader = Outages.needNumber("leader");
    try (Jedis node = new Jedis(Report.HOST, Report.PORT)) {
      List<?> slots = (List<?>) node.clusterSlots().get(0);
      Report.same(List.of(slots.get(0), slots.get(1), ((List<?>) slots.get(2)).get(1)),
          List.of(0L, 16383L, (long) leader));
      ClusterShardInfo shard = node.clusterShards().get(0);
      Report.same(shard.getSlots(), List.of(List.of(0L, 16383L)));
      Report.same(shard.getNodes().stream().map(each -> each.getRole() + " " + each.getHealth())
          .sorted().toList(), List.of("master online", "replica online", "replica online"));
      Report.same(node.clusterNodes().split("slave").length, 3);
    }
  }

  private static void claim() {
    SetParams claim = SetParams.setParams().nx().px(60_000);
    Report.same(client.setGet("claim", "mine", claim), null);
    Report.same(client.setGet("claim", "other", claim), "mine");
    Report.same(client.get("claim"), "mine");
  }

  private static void hashTags() {
    Report.same(client.mset("{tag}a", "1", "{tag}b", "2"), "OK");
    Report.same(client.mget("{tag}a", "{tag}b"), List.of("1", "2"));
  }

  private static void acrossSlots() {
    List<String> pairs = new ArrayList<>();
    List<String> keys = new ArrayList<>();
    List<String> values = new ArrayList<>();
    for (int i = 0; i < 50; ++i) {
      keys.add("across:" + i);
      values.add(Integer.toString(i));
      pairs.addAll(List.of("across:" + i, Integer.toString(i)));
    }
    Report.same(client.mset(pairs.toArray(new String[0])), "OK");
    Report.same(client.mget(keys.toArray(new String[0])), values);
    Report.same(client.del(keys.toArray(new String[0])), 50L);
  }

  private static void pipeline() {
    List<Response<String>> replies = new ArrayList<>();
    try (ClusterPipeline pipeline = client.pipelined()) {
      for (int i = 0; i < 300; ++i) {
        pipeline.set("pipe:" + i, Integer.toString(i));
        replies.add(pipeline.get("pipe:" + i));
      }
      pipeline.sync();
    }
    for (int i = 0; i < 300; ++i) Report.same(replies.get(i).get(), Integer.toString(i));
  }

  /** Of the node that leads: with the cluster's own client one is opened first by its slot. */
  private static void transaction() throws Exception {
    try (Jedis leader = new Jedis(Report.HOST, Outages.needNumber("leader"))) {
      AbstractTransaction transaction = leader.multi();
      transaction.set("{t}a", "1");
      transaction.incr("{t}a");
      Report.same(transaction.exec(), List.of("OK", 2L));
    }
  }

  private static void readsOfReplicas() throws Exception {
    CommandObjects commands = new CommandObjects(RedisProtocol.RESP2);
    client.set("read", "here");
    try (RedisClusterClient reader = connect(true, Report.PORT)) {
      Report.until(() -> {
        for (int i = 0; i < 5; ++i) {
          if (!"here".equals(reader.executeCommandToReplica(commands.get("read")))) return false;
        }
        return true;
      });
      int before = Outages.needNumber("replica-calls get");
      for (int i = 0; i < 30; ++i) {
        Report.same(reader.executeCommandToReplica(commands.get("read")), "here");
      }
      Report.same(Outages.needNumber("replica-calls get") >= before + 30, true);
    }
  }

  private static void script() {
    client.set("lock", "mine");
    String digest = client.scriptLoad(Report.RELEASE, "lock");
    Report.same(client.evalsha(digest, List.of("lock"), List.of("other")), 0L);
    Report.same(client.evalsha(digest, List.of("lock"), List.of("mine")), 1L);
  }

  private static void pubsub() throws Exception {
    for (int port : Outages.NODES) {
      CountDownLatch ready = new CountDownLatch(1);
      CompletableFuture<String> heard = new CompletableFuture<>();
      JedisPubSub listener = new JedisPubSub() {
        @Override
        public void onSubscribe(String channel, int count) {
          ready.countDown();
        }

        @Override
        public void onMessage(String channel, String message) {
          // A node that does not lead may still come to what was published before.
          if (!message.equals("to " + port)) return;
          heard.complete(message);
          unsubscribe();
        }
      };
      Thread thread = new Thread(() -> {
        try (Jedis node = new Jedis(Report.HOST, port)) {
          node.subscribe(listener, "news");
        }
      });
      thread.setDaemon(true);
      thread.start();
      Report.same(ready.await(10, TimeUnit.SECONDS), true);
      client.publish("news", "to " + port);
      Report.same(heard.get(10, TimeUnit.SECONDS), "to " + port);
    }
  }

  private static Map<String, Object> semel(String command, String... words) {
    String[] all = new String[words.length + 2];
    all[0] = "pay";
    all[1] = "order:1";
    System.arraycopy(words, 0, all, 2, words.length);
    List<?> found = (List<?>) client.sendCommand("pay:order:1",
        () -> SafeEncoder.encode("SEMEL." + command), all);
    Map<String, Object> fields = new TreeMap<>();
    for (int i = 0; i < found.size(); i += 2) {
      Object value = found.get(i + 1);
      fields.put(SafeEncoder.encode((byte[]) found.get(i)),
          value instanceof byte[] bytes ? SafeEncoder.encode(bytes) : value);
    }
    return fields;
  }

  private static void claimsOfSemel() {
    Map<String, Object> first = semel("CLAIM", "CLAIM-ID", "a".repeat(32));
    Report.same(first.get("outcome"), "granted");
    Report.same(semel("CLAIM", "CLAIM-ID", "a".repeat(32)).get("outcome"), "regranted");
    Report.same(semel("CLAIM").get("outcome"), "in_flight");
    Report.same(semel("COMPLETE", first.get("epoch").toString(), "paid").get("outcome"), "ok");
    Report.same(semel("CLAIM").get("outcome"), "replay");
  }

  private static void seeds() {
    try (RedisClusterClient both = connect(false, Outages.DEAD_PORT, Report.PORT)) {
      Report.same(both.get("claim"), "mine");
    }
    long began = System.nanoTime();
    try (RedisClusterClient none = connect(false, Outages.DEAD_PORT)) {
      none.get("claim");
      throw new AssertionError("no error");
    } catch (JedisException error) {
      Report.same(System.nanoTime() - began < 10_000_000_000L, true);
    }
  }

  public static void main(String[] arguments) throws Exception {
    Report.check("topology", JedisClusterSuite::topology);
    Report.check("claim", JedisClusterSuite::claim);
    Report.check("hash tags", JedisClusterSuite::hashTags);
    Report.check("MSET and MGET across slots", JedisClusterSuite::acrossSlots);
    Report.check("pipeline", JedisClusterSuite::pipeline);
    Report.check("transaction", JedisClusterSuite::transaction);
    Report.check("reads of replicas", JedisClusterSuite::readsOfReplicas);
    Report.check("script", JedisClusterSuite::script);
    Report.check("pub/sub over other nodes", JedisClusterSuite::pubsub);
    Report.check("claims of Semel", JedisClusterSuite::claimsOfSemel);
    Report.check("seeds that are dead", JedisClusterSuite::seeds);
    RedisClusterClient seed = connect(false, Outages.needNumber("leader"));
    SetParams claim = SetParams.setParams().nx();
    Outages.check("kept:", (key, value) -> seed.setGet(key, value, claim), seed::get);
    Report.end();
  }
}
