// The tests of a small service in Java: Service KIND PORT TESTS, with KIND mock, redis or semel. The
// last line is JSON, as that of service.py. jedis-mock has no clock that a test moves.

import com.github.fppt.jedismock.RedisServer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.commands.ProtocolCommand;
import redis.clients.jedis.params.SetParams;

public class Service {
  private static final String CAD =
      "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) end return 0";
  private static final long SHORT_MS = 10;
  private static final ProtocolCommand CLOCK = () -> "SEMEL.CLOCK".getBytes();

  private static double resident() throws Exception {
    for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
      if (line.startsWith("VmRSS:")) return Long.parseLong(line.replaceAll("\\D", "")) / 1024.0;
    }
    throw new IllegalStateException();
  }

  private static void expect(Object got, Object wanted) {
    if (!Objects.equals(got, wanted)) throw new IllegalStateException(got + " is not " + wanted);
  }

  private static void oneTest(Jedis db, int number, boolean moves) throws Exception {
    db.flushAll();
    String session = "session:" + number;
    db.set(session, "ada");
    expect(db.get(session), "ada");
    db.pexpire(session, moves ? 60_000 : SHORT_MS);
    if (moves) {
      db.sendCommand(CLOCK, "ADVANCE", "60000");
    } else {
      Thread.sleep(SHORT_MS + 1);
    }
    expect(db.get(session), null);
    db.rpush("queue", "a", "b");
    expect(db.lpop("queue"), "a");
    Map<String, Double> scores = new HashMap<>();
    scores.put("ada", 1.0);
    scores.put("bob", 2.0);
    db.zadd("board", scores);
    expect(db.zrange("board", 0, -1), Arrays.asList("ada", "bob"));
    db.hset("cart", "tea", "2");
    expect(db.hincrBy("cart", "tea", 1), 3L);
    expect(db.set("lock", "mine", SetParams.setParams().nx().px(30_000)), "OK");
    expect(db.eval(CAD, List.of("lock"), List.of("other")), 0L);
    expect(db.eval(CAD, List.of("lock"), List.of("mine")), 1L);
    expect(db.get("lock"), null);
  }

  public static void main(String[] words) {
    try {
      measure(words);
      System.exit(0);
    } catch (Exception error) {
      error.printStackTrace();
      System.exit(1);  // the threads of the mock would go on
    }
  }

  private static void measure(String[] words) throws Exception {
    String kind = words[0];
    int port = Integer.parseInt(words[1]);
    double before = resident();
    long began = System.nanoTime();
    RedisServer mock = null;
    if (kind.equals("mock")) {
      mock = RedisServer.newRedisServer().start();
      port = mock.getBindPort();
    }
    Jedis db = new Jedis("127.0.0.1", port, 60_000);
    expect(db.ping(), "PONG");
    double startMs = mock == null ? 0 : (System.nanoTime() - began) / 1e6;
    began = System.nanoTime();
    for (int i = 0; i < Integer.parseInt(words[2]); ++i) oneTest(db, i, kind.equals("semel"));
    double seconds = (System.nanoTime() - began) / 1e9;
    System.out.printf(java.util.Locale.ROOT,
        "{\"start_ms\": %f, \"seconds\": %f, \"mib\": %f}%n", startMs, seconds, resident() - before);
  }
}
