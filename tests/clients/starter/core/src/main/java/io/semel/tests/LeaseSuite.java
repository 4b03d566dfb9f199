package io.semel.tests;

import io.semel.Call;
import io.semel.LeaseLost;
import io.semel.Link;
import io.semel.Options;
import io.semel.Semel;
import io.semel.Unreachable;
import io.semel.Work;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;

/** How long an owner may believe in its lease: what its own clock and the node say. */
final class LeaseSuite {
  private static final long LEASE_MS = 300;

  private LeaseSuite() {}

  /** What becomes of a command. */
  private interface Way {
    Object send(List<byte[]> words, long timeoutMs) throws Exception;
  }

  /** In front of a link, which outlives its Semel. */
  private static final class Between implements Link {
    final Link link;
    final Map<String, Way> ways = new ConcurrentHashMap<>();

    Between(Node node) {
      link = Drivers.lettuce(node.port());
    }

    @Override
    public Object call(List<byte[]> words, long timeoutMs) {
      Way way = ways.get(new String(words.get(0), StandardCharsets.US_ASCII));
      if (way == null) return link.call(words, timeoutMs);
      try {
        return way.send(words, timeoutMs);
      } catch (RuntimeException error) {
        throw error;
      } catch (Exception error) {
        throw new AssertionError(error);
      }
    }

    @Override
    public Object callAlone(List<byte[]> words, long timeoutMs) {
      return link.callAlone(words, timeoutMs);
    }

    @Override
    public Object callBound(List<byte[]> words, long timeoutMs) {
      return link.callBound(words, timeoutMs);
    }

    @Override
    public long generation() {
      return link.generation();
    }

    @Override
    public void close() {}
  }

  private static Unreachable silence() {
    return new Unreachable("no reply", null);
  }

  private static void passed(long since) throws Exception {
    Report.until(() -> System.nanoTime() - since > LEASE_MS * 1_000_000);
  }

  /** Another owner has come and gone between the tries, and nobody renews or says so. */
  private static void overAtTheEnd(String word) throws Exception {
    try (Node node = new Node()) {
      Between link = new Between(node);
      AtomicInteger tries = new AtomicInteger();
      Call call = Call.of("leases", "k").lease(Duration.ofMillis(LEASE_MS));
      Semel semel = Drivers.semel(link, new Options());
      Work held = semel.claim(call).work();
      semel.close();
      link.ways.put(word, (words, timeoutMs) -> {
        if (tries.incrementAndGet() > 1) return link.link.call(words, timeoutMs);
        passed(System.nanoTime());
        node.advance(LEASE_MS + 1);
        try (Semel other = Drivers.semel(Drivers.lettuce(node.port()), new Options())) {
          other.claim(call).work().release();
        }
        throw silence();
      });
      Report.thrown(LeaseLost.class, word.equals("SEMEL.RELEASE") ? held::release
          : () -> held.complete(new byte[0]));
      Report.same(tries.get(), 2);
      link.link.close();
    }
  }

  static void run() {
    Report.check("a lease that is over by the clock is lost at the release",
        () -> overAtTheEnd("SEMEL.RELEASE"));
    Report.check("a lease that is over by the clock is lost at the completion",
        () -> overAtTheEnd("SEMEL.COMPLETE"));
  }
}
