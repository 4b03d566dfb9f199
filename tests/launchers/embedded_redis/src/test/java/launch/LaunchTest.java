package launch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.io.IOException;
import java.net.ServerSocket;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.commands.ProtocolCommand;
import redis.clients.jedis.util.SafeEncoder;
import redis.embedded.RedisServer;

/** embedded-redis starts the program that its constructor is given. */
class LaunchTest {
  private static RedisServer server;
  private static Jedis jedis;

  @BeforeAll
  static void start() throws IOException {
    int port;
    try (ServerSocket free = new ServerSocket(0)) {
      port = free.getLocalPort();
    }
    server = new RedisServer(port, new File(System.getenv("REDIS_SERVER")));
    server.start();
    jedis = new Jedis("127.0.0.1", port);
  }

  @AfterAll
  static void stop() throws IOException {
    jedis.close();
    server.stop();
  }

  @Test
  void itServes() {
    jedis.setex("k", 60, "v");
    assertEquals("v", jedis.get("k"));
    assertTrue(jedis.info("server").contains("server_name:semel"));
  }

  @Test
  void scriptsRun() {
    assertEquals(1L, jedis.eval("return redis.call('incr', KEYS[1])", 1, "n"));
  }

  @Test
  void timeIsTheTests() {
    jedis.setex("old", 60, "v");
    ProtocolCommand clock = () -> SafeEncoder.encode("SEMEL.CLOCK");
    jedis.sendCommand(clock, "ADVANCE", "60000");
    assertNull(jedis.get("old"));
  }
}
