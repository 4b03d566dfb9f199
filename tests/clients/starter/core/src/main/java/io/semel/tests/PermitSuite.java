package io.semel.tests;

import io.semel.Call;
import io.semel.InvalidKey;
import io.semel.LeaseLost;
import io.semel.Observer;
import io.semel.Options;
import io.semel.Permit;
import io.semel.Rejected;
import io.semel.Semel;
import io.semel.SemelException;
import io.semel.ServerError;
import io.semel.Terms;
import io.semel.Unreachable;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** Permits of a semaphore: docs/patterns.md#semaphore. */
final class PermitSuite {
  private static final String[] DRIVERS = {"Lettuce", "Jedis", "Redisson"};

  private PermitSuite() {}

  private static Call seats() {
    return Call.of("seats", "k");
  }

  private static boolean nobody(Semel semel) {
    return ((List<?>) semel.command("SEMEL.PERMITS", "seats", "k")).isEmpty();
  }

  private static void full(Semel semel, Call call, int permits) {
    Rejected refused = Report.thrown(Rejected.class, () -> semel.permit(call, permits));
    Report.same(refused.reason(), Rejected.Reason.IN_FLIGHT);
    Report.same(refused.retryAfterMs() > 0, true);
  }

  private static void holders(String driver) throws Exception {
    try (Node node = new Node();
        Semel semel = Drivers.semel(Drivers.named(driver, node.port()), new Options())) {
      Permit first = semel.permit("seats", "k", 2);
      Permit second = semel.permit(seats().wait(Duration.ofSeconds(5)), 2);
      Report.same(first.slot() + " " + second.slot(), "0 1");
      full(semel, seats(), 2);
      full(semel, seats().wait(Duration.ofMillis(30)), 2);
      first.release();
      first.release();
      full(semel, seats(), 1);  // one is held: fewer permits count it
      Permit third;
      try (Permit next = semel.permit("seats", "k", 2)) {
        Report.same(next.slot(), 0);
        Report.same(next.token() > first.token(), true);
        third = semel.permit("seats", "k", 3);
        Report.same(third.slot(), 2);
      }
      second.release();
      third.close();
      Report.same(nobody(semel), true);
      // The work of one claim may hold a permit of a semaphore with its name.
      Report.same(semel.once(seats().terms(Terms.as("lock")), String.class, () -> {
        try (Permit inner = semel.permit("seats", "k", 1)) {
          return "slot " + inner.slot();
        }
      }), "slot 0");
    }
  }

  private static void refused() throws Exception {
    List<Observer.Event> events = new CopyOnWriteArrayList<>();
    try (Node node = new Node(); Semel semel = Drivers.semel(Drivers.lettuce(node.port()),
        new Options().callTimeout(Duration.ofMillis(100)).patience(Duration.ZERO)
            .whenUnreachable(Options.WhenUnreachable.RUN_UNPROTECTED))) {
      semel.observe((event, namespace, nanos) -> events.add(event));
      for (int permits : new int[] {Integer.MIN_VALUE, -1, 0, 1025, Integer.MAX_VALUE}) {
        Report.has(Report.thrown(IllegalArgumentException.class,
            () -> semel.permit("seats", "k", permits)).getMessage(), permits + " permits");
      }
      for (String key : new String[] {null, "", " ", "k".repeat(70_000), "half \ud800"}) {
        Report.thrown(InvalidKey.class, () -> semel.permit("seats", key, 1));
      }
      for (Call call : new Call[] {seats().payload(1), seats().operation("pay"),
          seats().firstSent(Instant.EPOCH)}) {
        Report.thrown(IllegalArgumentException.class, () -> semel.permit(call, 1));
      }
      Report.thrown(ServerError.class, () -> semel.permit("no:such name", "k", 1));
      Report.same(events, List.of());
      Permit odd = semel.permit("seats", "a b\r\nc\0#{x}", 1);
      odd.release();
      semel.permit("seats", "k", 1);
      full(semel, seats(), 1);
      node.stop();
      // To run unprotected is not to hold a permit.
      Report.thrown(Unreachable.class, () -> semel.permit("seats", "k", 1));
      node.go();
      Report.same(events, List.of(Observer.Event.REJECTED, Observer.Event.UNREACHABLE));
    }
  }

  private static long leftMs(Semel semel) {
    List<?> held = (List<?>) semel.command("SEMEL.PERMITS", "seats", "k");
    List<?> first = (List<?>) held.get(0);
    for (int i = 0; i < first.size(); i += 2) {
      Object name = first.get(i);
      String text = name instanceof byte[] ? new String((byte[]) name) : name.toString();
      if (text.equals("lease_remaining_ms")) return Long.parseLong(first.get(i + 1).toString());
    }
    throw new AssertionError("no lease_remaining_ms");
  }

  private static void renewals() throws Exception {
    try (Node node = Node.inTime();
        Semel semel = Drivers.semel(Drivers.lettuce(node.port()), new Options())) {
      Permit held = semel.permit(seats().lease(Duration.ofMillis(600)), 1);
      long[] least = {Long.MAX_VALUE};
      // It sinks with the time, and rises by a renewal alone.
      for (int i = 0; i < 3; ++i) {
        least[0] = Long.MAX_VALUE;
        Report.until(() -> {
          long now = leftMs(semel);
          boolean rose = now > least[0];
          least[0] = Math.min(least[0], now);
          return rose;
        });
      }
      Report.same(held.isLost(), false);
      held.release();
    }
  }

  private static void lost() throws Exception {
    try (Node node = new Node();
        Semel semel = Drivers.semel(Drivers.lettuce(node.port()), new Options())) {
      Permit taken = semel.permit("seats", "k", 1);
      node.advance(60_001);
      semel.permit("seats", "k", 1).release();  // another holder has come and gone
      Report.thrown(LeaseLost.class, taken::release);
      taken.close();

      Permit told = semel.permit(seats().lease(Duration.ofMillis(300)), 1);
      CountDownLatch heard = new CountDownLatch(1);
      told.whenLost(heard::countDown);
      semel.command("SEMEL.FORGET", "seats", "{k}#0");
      Report.same(heard.await(20, TimeUnit.SECONDS), true);
      Report.same(told.isLost(), true);
      Permit next = semel.permit("seats", "k", 1);
      Report.thrown(LeaseLost.class, told::release);
      full(semel, seats(), 1);  // what was lost has not released the next holder's
      next.release();

      Permit throwing = semel.permit(seats().lease(Duration.ofMillis(300)), 1);
      throwing.whenLost(() -> {
        throw new IllegalStateException("the listener's own");
      });
      semel.command("SEMEL.FORGET", "seats", "{k}#0");
      Report.until(throwing::isLost);
    }
  }

  /** Nobody renews it any more, and nobody says so: its holder finds out by the clock. */
  private static void lostByTheClock() throws Exception {
    try (Node node = new Node()) {
      Semel semel = Drivers.semel(Drivers.lettuce(node.port()), new Options());
      Permit held = semel.permit(seats().lease(Duration.ofMillis(300)), 1);
      Permit given = semel.permit(Call.of("seats", "other").lease(Duration.ofMillis(300)), 1);
      given.release();
      semel.close();
      Report.until(held::isLost);
      Report.same(given.isLost(), false);
    }
  }

  private static void waiters(String driver) throws Exception {
    try (Node node = new Node();
        Semel semel = Drivers.semel(Drivers.named(driver, node.port()), new Options())) {
      AtomicInteger inside = new AtomicInteger();
      AtomicInteger most = new AtomicInteger();
      ExecutorService threads = Executors.newFixedThreadPool(12);
      List<Future<?>> all = new CopyOnWriteArrayList<>();
      for (int i = 0; i < 12; ++i) {
        all.add(threads.submit(() -> {
          try (Permit held = semel.permit(seats().wait(Duration.ofSeconds(60)), 3)) {
            most.accumulateAndGet(inside.incrementAndGet(), Math::max);
            inside.decrementAndGet();
          }
        }));
      }
      for (Future<?> each : all) each.get(60, TimeUnit.SECONDS);
      threads.shutdown();
      Report.same(most.get() <= 3, true);
      Report.same(nobody(semel), true);
    }
  }

  /** A wait that cannot block asks again soon: a permit is not free for long while others wait. */
  private static void polls() throws Exception {
    try (Node node = new Node(); Cutter counter = new Cutter(node.port(), "SEMEL.PERMIT", 0);
        Semel holder = Drivers.semel(Drivers.lettuce(node.port()), new Options());
        Semel semel = Drivers.semel(Drivers.lettuce(counter.port()), new Options().bind(true))) {
      holder.permit("seats", "k", 1);
      full(semel, seats().wait(Duration.ofSeconds(2)), 1);
      // Some 50; pauses that double up to 320 ms would make it 12.
      Report.same(counter.ids().size() > 24, true);
    }
  }

  /** Two threads give one permit back: one does, and it is not the next holder's. */
  private static void shared() throws Exception {
    try (Node node = new Node();
        Semel semel = Drivers.semel(Drivers.lettuce(node.port()), new Options())) {
      for (int i = 0; i < 50; ++i) {
        Permit held = semel.permit("seats", "k", 1);
        CompletableFuture<Void> other = CompletableFuture.runAsync(held::release);
        held.release();
        other.get(20, TimeUnit.SECONDS);
        Report.same(nobody(semel), true);
      }
    }
  }

  private static void interruptedWait(String driver) throws Exception {
    try (Node node = new Node();
        Semel semel = Drivers.semel(Drivers.named(driver, node.port()), new Options())) {
      Permit held = semel.permit("seats", "k", 1);
      CompletableFuture<Throwable> thrown = new CompletableFuture<>();
      Thread caller = new Thread(() -> {
        try {
          semel.permit(seats().wait(Duration.ofSeconds(60)), 1);
          thrown.complete(new AssertionError("it has a permit"));
        } catch (SemelException error) {
          thrown.complete(Thread.currentThread().isInterrupted() ? error
              : new AssertionError("it is not interrupted any more", error));
        } catch (RuntimeException | Error error) {
          thrown.complete(new AssertionError("another error", error));
        }
      });
      caller.start();
      caller.interrupt();
      Throwable told = thrown.get(20, TimeUnit.SECONDS);
      if (told instanceof AssertionError) throw (AssertionError) told;
      Report.same(told instanceof Rejected || told instanceof Unreachable, true);
      held.release();
      Report.until(() -> nobody(semel));
    }
  }

  /** The node stands still until the caller has gone, and grants the permit afterwards. */
  private static void lateGrant(String driver) throws Exception {
    Options options =
        new Options().callTimeout(Duration.ofMillis(200)).patience(Duration.ofMillis(300));
    try (Node node = new Node();
        Semel semel = Drivers.semel(Drivers.named(driver, node.port()), options)) {
      semel.permit("seats", "k", 1).release();
      node.stop();
      Report.thrown(Unreachable.class, () -> semel.permit("seats", "k", 1));
      node.go();
      Report.until(() -> nobody(semel));
      semel.permit(seats().wait(Duration.ofSeconds(20)), 1).release();
    }
  }

  /** `cuts` replies end with their connection. */
  private static void lostReplies(String driver, int cuts, Duration patience) throws Exception {
    try (Node node = new Node(); Cutter cutter = new Cutter(node.port(), "SEMEL.PERMIT", cuts);
        Semel semel = Drivers.semel(Drivers.named(driver, cutter.port()),
            new Options().patience(patience))) {
      if (patience.isZero()) {
        Report.thrown(Unreachable.class, () -> semel.permit("seats", "k", 2));
      } else {
        try (Permit held = semel.permit("seats", "k", 2)) {
          // Asked again with its CLAIM-ID, and so given the same slot.
          Report.same(held.slot(), 0);
          Report.same(cutter.ids().size() > cuts && cutter.ids().stream().distinct().count() == 1,
              true);
        }
      }
      Report.until(() -> node.ask("SEMEL.PERMITS", "seats", "k").startsWith("*0"));
    }
  }

  private static void closed(String driver) throws Exception {
    try (Node node = new Node();
        Semel other = Drivers.semel(Drivers.lettuce(node.port()), new Options())) {
      Semel semel = Drivers.semel(Drivers.named(driver, node.port()),
          new Options().patience(Duration.ofMillis(200)).recordPatience(Duration.ofMillis(200)));
      Permit held = semel.permit("seats", "k", 1);
      CompletableFuture<Throwable> waits = CompletableFuture.supplyAsync(() -> {
        try {
          semel.permit(seats().wait(Duration.ofSeconds(5)), 1).close();
          return null;
        } catch (RuntimeException error) {
          return error;
        }
      });
      semel.close();
      Report.same(waits.get(20, TimeUnit.SECONDS) instanceof RuntimeException, true);
      boolean lives = driver.equals("Jedis") || driver.equals("Redisson");
      if (!lives) Report.thrown(Unreachable.class, () -> semel.permit("seats", "k", 1));
      held.close();  // or its lease ends it: no exception
      node.advance(60_001);
      other.permit("seats", "k", 1).release();
    }
  }

  static void run() {
    for (String driver : DRIVERS) {
      Report.check("permits: as many holders as permits, " + driver, () -> holders(driver));
      Report.check("permits: waiters get them, " + driver, () -> waiters(driver));
      Report.check("permits: an interrupted wait ends at once, " + driver,
          () -> interruptedWait(driver));
      Report.check("permits: a grant after the patience is given back, " + driver,
          () -> lateGrant(driver));
      Report.check("permits: a lost reply is asked for again, " + driver,
          () -> lostReplies(driver, 1, Duration.ofSeconds(10)));
      Report.check("permits: a grant whose reply is lost is given back, " + driver,
          () -> lostReplies(driver, 1, Duration.ZERO));
      Report.check("permits: closed while it waits, " + driver, () -> closed(driver));
    }
    Report.check("permits: what is refused", PermitSuite::refused);
    Report.check("permits: a wait that polls asks again soon", PermitSuite::polls);
    Report.check("permits: renewed while they are held", PermitSuite::renewals);
    Report.check("permits: a loss is told", PermitSuite::lost);
    Report.check("permits: a lease that is over is lost, also after close",
        PermitSuite::lostByTheClock);
    Report.check("permits: two threads give one back", PermitSuite::shared);
  }
}
