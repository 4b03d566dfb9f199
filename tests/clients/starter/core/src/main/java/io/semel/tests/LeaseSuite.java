package io.semel.tests;

import io.semel.Call;
import io.semel.LeaseLost;
import io.semel.Link;
import io.semel.Options;
import io.semel.Permit;
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

  /** The first reply is lost, and most of the lease has passed when the second comes. */
  private static void regranted(boolean permit) throws Exception {
    String word = permit ? "SEMEL.PERMIT" : "SEMEL.CLAIM";
    AtomicInteger tries = new AtomicInteger();
    AtomicInteger renewals = new AtomicInteger();
    try (Node node = new Node()) {
      Between link = new Between(node);
      link.ways.put(word, (words, timeoutMs) -> {
        Object reply = link.link.call(words, timeoutMs);
        if (tries.incrementAndGet() > 1) return reply;
        node.advance(59_000);
        throw silence();
      });
      link.ways.put("SEMEL.RENEW", (words, timeoutMs) -> {
        renewals.incrementAndGet();
        throw silence();
      });
      try (Semel semel = Drivers.semel(link, new Options())) {
        if (permit) {
          Permit held = semel.permit("leases", "k", 1);
          Report.same(held.isLost(), false);
          Report.until(held::isLost);
        } else {
          Work held = semel.claim(Call.of("leases", "k")).work();
          Report.same(held.isLost(), false);
          Report.until(held::isLost);
        }
      }
      Report.same(tries.get(), 2);
      Report.same(renewals.get() > 0, true);  // within the second that was left of its minute
      link.link.close();
    }
  }

  /** The try that is answered began when most of the lease had passed: it counts from then on. */
  private static void slowReply() throws Exception {
    try (Node node = new Node()) {
      Between link = new Between(node);
      link.ways.put("SEMEL.CLAIM", (words, timeoutMs) -> {
        Object reply = link.link.call(words, timeoutMs);
        passed(System.nanoTime());
        return reply;
      });
      try (Semel semel = Drivers.semel(link, new Options())) {
        Work held = semel.claim(Call.of("leases", "k").lease(Duration.ofMillis(LEASE_MS))).work();
        Report.same(held.isLost(), true);
      }
      link.link.close();
    }
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
    Report.check("a claim that is granted again has what is left of its lease",
        () -> regranted(false));
    Report.check("a permit that is granted again has what is left of its lease",
        () -> regranted(true));
    Report.check("a lease counts from the try that got it", LeaseSuite::slowReply);
    Report.check("a lease that is over by the clock is lost at the release",
        () -> overAtTheEnd("SEMEL.RELEASE"));
    Report.check("a lease that is over by the clock is lost at the completion",
        () -> overAtTheEnd("SEMEL.COMPLETE"));
  }
}
