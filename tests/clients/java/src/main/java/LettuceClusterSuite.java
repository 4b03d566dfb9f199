import io.lettuce.core.ReadFrom;
import io.lettuce.core.RedisException;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisURI;
import io.lettuce.core.ScriptOutputType;
import io.lettuce.core.SetArgs;
import io.lettuce.core.cluster.ClusterClientOptions;
import io.lettuce.core.cluster.ClusterTopologyRefreshOptions;
import io.lettuce.core.cluster.RedisClusterClient;
import io.lettuce.core.cluster.api.StatefulRedisClusterConnection;
import io.lettuce.core.cluster.api.sync.RedisAdvancedClusterCommands;
import io.lettuce.core.cluster.models.partitions.RedisClusterNode;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.output.NestedMultiOutput;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.ProtocolKeyword;
import io.lettuce.core.protocol.ProtocolVersion;
import io.lettuce.core.pubsub.RedisPubSubAdapter;
import io.lettuce.core.pubsub.StatefulRedisPubSubConnection;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/** Lettuce's RedisClusterClient against a group. */
final class LettuceClusterSuite {
  private static final RedisClusterClient client = create(Report.PORT);
  private static final StatefulRedisClusterConnection<String, String> connection = client.connect();
  private static final RedisAdvancedClusterCommands<String, String> one = connection.sync();

  private LettuceClusterSuite() {}

  /**
   * Its own timeout is a minute, and it looks for another leader only when it is told to: then once in
   * 5 s, and what it sees right after a kill is the old one.
   */
  private static RedisClusterClient create(int... ports) {
    List<RedisURI> nodes = new ArrayList<>();
    for (int port : ports) {
      nodes.add(RedisURI.builder().withHost(Report.HOST).withPort(port)
          .withTimeout(Duration.ofSeconds(1)).build());
    }
    RedisClusterClient created = RedisClusterClient.create(nodes);
    created.setOptions(ClusterClientOptions.builder().protocolVersion(ProtocolVersion.RESP2)
        .topologyRefreshOptions(
            ClusterTopologyRefreshOptions.builder().enableAllAdaptiveRefreshTriggers()
                .adaptiveRefreshTriggersTimeout(Duration.ofMillis(100)).build())
        .build());
    return created;
  }

  private static void topology() throws Exception {
    int leader = Outages.needNumber("leader");
    Set<Integer> ports = new HashSet<>();
    List<Integer> masters = new ArrayList<>();
    for (RedisClusterNode node : client.getPartitions()) {
      ports.add(node.getUri().getPort());
      if (node.getSlots().size() == 16384) masters.add(node.getUri().getPort());
    }
    Report.same(ports, new HashSet<>(Outages.NODES));
    Report.same(masters, List.of(leader));
    List<?> slots = (List<?>) one.clusterSlots().get(0);
    Report.same(slots.subList(0, 2), List.of(0L, 16383L));
    Report.same(((List<?>) slots.get(2)).get(1), (long) leader);
    Report.same(one.clusterShards().size(), 1);
    Report.same(one.clusterNodes().split("slave").length, 3);
  }

  private static void claim() {
    SetArgs claim = SetArgs.Builder.nx().px(60_000);
    Report.same(one.setGet("claim", "mine", claim), null);
    Report.same(one.setGet("claim", "other", claim), "mine");
    Report.same(one.get("claim"), "mine");
  }

  private static void hashTags() {
    Report.same(one.clusterKeyslot("{tag}a"), one.clusterKeyslot("{tag}b"));
    Report.same(one.mset(Map.of("{tag}a", "1", "{tag}b", "2")), "OK");
    Report.same(one.mget("{tag}a", "{tag}b").stream().map(each -> each.getValue()).toList(),
        List.of("1", "2"));
  }

  private static void acrossSlots() {
    Map<String, String> pairs = new TreeMap<>();
    for (int i = 0; i < 50; ++i) pairs.put("across:" + i, Integer.toString(i));
    String[] keys = pairs.keySet().toArray(new String[0]);
    Report.same(one.mset(pairs), "OK");
    Report.same(one.mget(keys).stream().map(each -> each.getValue()).toList(),
        List.copyOf(pairs.values()));
    Report.same(one.del(keys), 50L);
  }

  private static void pipeline() throws Exception {
    connection.setAutoFlushCommands(false);
    List<RedisFuture<String>> replies = new ArrayList<>();
    for (int i = 0; i < 300; ++i) {
      connection.async().set("pipe:" + i, Integer.toString(i));
      replies.add(connection.async().get("pipe:" + i));
    }
    connection.flushCommands();
    connection.setAutoFlushCommands(true);
    for (int i = 0; i < 300; ++i) {
      Report.same(replies.get(i).get(10, TimeUnit.SECONDS), Integer.toString(i));
    }
  }

  /** A connection of the cluster has none: it is that of the node which has the slot. */
  private static void transaction() throws Exception {
    StatefulRedisConnection<String, String> node =
        connection.getConnection(Report.HOST, Outages.needNumber("leader"));
    RedisCommands<String, String> leader = node.sync();
    leader.multi();
    leader.set("{t}a", "1");
    leader.incr("{t}a");
    Report.same(leader.exec().stream().toList(), List.of("OK", 2L));
  }

  private static void readsOfReplicas() throws Exception {
    one.set("read", "here");
    try (StatefulRedisClusterConnection<String, String> reader = client.connect()) {
      reader.setReadFrom(ReadFrom.REPLICA);
      Report.until(() -> {
        for (int i = 0; i < 5; ++i) if (!"here".equals(reader.sync().get("read"))) return false;
        return true;
      });
      int before = Outages.needNumber("replica-calls get");
      for (int i = 0; i < 30; ++i) Report.same(reader.sync().get("read"), "here");
      Report.same(Outages.needNumber("replica-calls get") >= before + 30, true);
    }
  }

  private static void script() {
    one.set("lock", "mine");
    String digest = one.scriptLoad(Report.RELEASE);
    String[] keys = {"lock"};
    Long wrong = one.evalsha(digest, ScriptOutputType.INTEGER, keys, "other");
    Long right = one.evalsha(digest, ScriptOutputType.INTEGER, keys, "mine");
    Report.same(List.of(wrong, right), List.of(0L, 1L));
  }

  private static void pubsub() throws Exception {
    Map<Integer, CompletableFuture<String>> heard = new HashMap<>();
    for (int port : Outages.NODES) {
      heard.put(port, new CompletableFuture<>());
      StatefulRedisPubSubConnection<String, String> listener = client.connectPubSub();
      listener.addListener(new RedisPubSubAdapter<String, String>() {
        @Override
        public void message(String channel, String message) {
          // A node that does not lead may still come to what was published before.
          if (message.equals("to " + port)) heard.get(port).complete(message);
        }
      });
      listener.sync().subscribe("news");
      one.publish("news", "to " + port);
      Report.same(heard.get(port).get(10, TimeUnit.SECONDS), "to " + port);
      listener.close();
    }
  }

  private record Word(String name) implements ProtocolKeyword {
    @Override
    public byte[] getBytes() {
      return name.getBytes(StandardCharsets.US_ASCII);
    }

    @Override
    public String toString() {
      return name;
    }
  }

  private static Map<Object, Object> semel(String command, String... words) {
    CommandArgs<String, String> given = new CommandArgs<>(StringCodec.UTF8).add("pay");
    given.addKey("order:1");
    for (String word : words) given.add(word);
    List<Object> found = one.dispatch(new Word("SEMEL." + command),
        new NestedMultiOutput<>(StringCodec.UTF8), given);
    Map<Object, Object> fields = new HashMap<>();
    for (int i = 0; i < found.size(); i += 2) fields.put(found.get(i), found.get(i + 1));
    return fields;
  }

  private static void claimsOfSemel() {
    Map<Object, Object> first = semel("CLAIM", "CLAIM-ID", "a".repeat(32));
    Report.same(first.get("outcome"), "granted");
    Report.same(semel("CLAIM", "CLAIM-ID", "a".repeat(32)).get("outcome"), "regranted");
    Report.same(semel("CLAIM").get("outcome"), "in_flight");
    Report.same(semel("COMPLETE", first.get("epoch").toString(), "paid").get("outcome"), "ok");
    Report.same(semel("CLAIM").get("outcome"), "replay");
  }

  private static void seeds() {
    RedisClusterClient both = create(Outages.DEAD_PORT, Report.PORT);
    Report.same(both.connect().sync().get("claim"), "mine");
    both.shutdown();
    RedisClusterClient none = create(Outages.DEAD_PORT);
    long began = System.nanoTime();
    try {
      none.connect();
      throw new AssertionError("no error");
    } catch (RedisException error) {
      Report.same(System.nanoTime() - began < 10_000_000_000L, true);
    } finally {
      none.shutdown();
    }
  }

  public static void main(String[] arguments) throws Exception {
    Report.check("topology", LettuceClusterSuite::topology);
    Report.check("claim", LettuceClusterSuite::claim);
    Report.check("hash tags", LettuceClusterSuite::hashTags);
    Report.check("MSET and MGET across slots", LettuceClusterSuite::acrossSlots);
    Report.check("pipeline", LettuceClusterSuite::pipeline);
    Report.check("transaction", LettuceClusterSuite::transaction);
    Report.check("reads of replicas", LettuceClusterSuite::readsOfReplicas);
    Report.check("script", LettuceClusterSuite::script);
    Report.check("pub/sub", LettuceClusterSuite::pubsub);
    Report.check("claims of Semel", LettuceClusterSuite::claimsOfSemel);
    Report.check("seeds that are dead", LettuceClusterSuite::seeds);
    RedisAdvancedClusterCommands<String, String> seed =
        create(Outages.needNumber("leader")).connect().sync();
    Outages.check("kept:", (key, value) -> seed.setGet(key, value, SetArgs.Builder.nx()), seed::get);
    Report.end();
  }
}
