import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.Response;
import redis.clients.jedis.Transaction;
import redis.clients.jedis.exceptions.JedisConnectionException;
import redis.clients.jedis.exceptions.JedisRedirectionException;
import redis.clients.jedis.params.SetParams;

/** Jedis, which knows nothing of a cluster, with nodes that hand over to the leader. */
final class PlainJedisSuite {
  private PlainJedisSuite() {}

  private static Jedis connect(int port) {
    return new Jedis(new HostAndPort(Report.HOST, port),
        DefaultJedisClientConfig.builder().timeoutMillis(5_000).build());
  }

  /** Knows all addresses, as a Jedis does not, and leaves a node that has ended for the next. */
  private static final class Caller {
    private int index = Outages.NODES.indexOf(Report.PORT);
    private Jedis node = null;

    <T> T call(Function<Jedis, T> work) {
      try {
        if (node == null) node = connect(Outages.NODES.get(index));
        return work.apply(node);
      } catch (JedisConnectionException gone) {
        if (node != null) node.close();
        node = null;
        index = (index + 1) % Outages.NODES.size();
        throw gone;
      } catch (JedisRedirectionException error) {
        throw new AssertionError("a node that hands over answers " + error.getMessage());
      }
    }
  }

  private static void claim(Jedis one) {
    SetParams claim = SetParams.setParams().nx().px(60_000);
    Report.same(one.setGet("claim", "mine", claim), null);
    for (int port : Outages.NODES) {
      try (Jedis other = connect(port)) {
        Report.same(other.setGet("claim", "other", claim), "mine");
        Report.same(other.get("claim"), "mine");
      }
    }
  }

  private static void severalKeys(Jedis one) {
    Report.same(one.mset("a", "1", "b", "2", "c", "3"), "OK");
    Report.same(one.mget("a", "b", "c"), List.of("1", "2", "3"));
  }

  private static void pipeline(Jedis one) {
    List<Response<Long>> replies = new ArrayList<>();
    try (Pipeline pipeline = one.pipelined()) {
      for (int i = 0; i < 300; ++i) replies.add(pipeline.incr("count"));
      pipeline.sync();
    }
    for (int i = 0; i < 300; ++i) Report.same(replies.get(i).get(), i + 1L);
  }

  private static void transaction(Jedis one) {
    Transaction transaction = one.multi();
    transaction.set("t", "1");
    transaction.incr("t");
    Report.same(transaction.exec(), List.of("OK", 2L));
  }

  private static void script(Jedis one) {
    one.set("lock", "mine");
    String digest = one.scriptLoad(Report.RELEASE);
    Report.same(one.evalsha(digest, List.of("lock"), List.of("other")), 0L);
    Report.same(one.evalsha(digest, List.of("lock"), List.of("mine")), 1L);
  }

  public static void main(String[] arguments) throws Exception {
    try (Jedis one = connect(Report.PORT)) {
      Report.check("claim", () -> claim(one));
      Report.check("several keys", () -> severalKeys(one));
      Report.check("pipeline", () -> pipeline(one));
      Report.check("transaction", () -> transaction(one));
      Report.check("script", () -> script(one));
    }
    Caller caller = new Caller();
    SetParams claim = SetParams.setParams().nx();
    Outages.check("called:", (key, value) -> caller.call(jedis -> jedis.setGet(key, value, claim)),
        key -> caller.call(jedis -> jedis.get(key)));
    Report.end();
  }
}
