package io.semel.tests;

import io.semel.Call;
import io.semel.InvalidKey;
import io.semel.LeaseLost;
import io.semel.Observer;
import io.semel.OnException;
import io.semel.Options;
import io.semel.Rejected;
import io.semel.Semel;
import io.semel.ServerError;
import io.semel.Terms;
import io.semel.Unreachable;
import io.semel.Work;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.redisson.Redisson;
import redis.clients.jedis.Jedis;

/** Callers that go, answers that are late or lost, and options of drivers. */
final class LateSuite {
  private static final String[] DRIVERS = {"Lettuce", "Jedis", "Redisson"};

  private LateSuite() {}

  private static Call call() {
    return Call.of("late", "k");
  }

  private static String state(Node node) throws Exception {
    return node.ask("SEMEL.GETCLAIM", "late", "k").split("\r\n")[4];
  }

  /** The node stands still until the caller has gone, and grants the claim afterwards. */
  private static void lateGrant(String driver, boolean interrupted) throws Exception {
    Options options = new Options().callTimeout(Duration.ofMillis(200))
        .patience(Duration.ofMillis(interrupted ? 30_000 : 300));
    try (Node node = new Node();
        Semel semel = Drivers.semel(Drivers.named(driver, node.port()), options)) {
      semel.once("late", "before", () -> "ran");
      node.stop();
      AtomicReference<Throwable> thrown = new AtomicReference<>();
      Thread caller = new Thread(() -> {
        try {
          semel.claim(call());
        } catch (Throwable error) {
          thrown.set(error);
        }
      });
      caller.start();
      if (interrupted) {
        Report.until(() -> caller.getState() != Thread.State.NEW
            && caller.getState() != Thread.State.RUNNABLE || driver.equals("Jedis"));
        caller.interrupt();
      }
      caller.join(10_000);
      Report.same(thrown.get() instanceof Unreachable, true);
      node.go();
      // What the node was sent it carries out; then the key is free, long before its lease ends.
      Report.until(() -> semel.once(call().wait(Duration.ofSeconds(10)), String.class,
          () -> "free").equals("free"));
    }
  }

  /** Twice the replies end with their connection, and nobody asks a third time. */
  private static void lostGrant(String driver) throws Exception {
    try (Node node = new Node(); Cutter cutter = new Cutter(node.port(), "SEMEL.CLAIM", 1);
        Semel semel = Drivers.semel(Drivers.named(driver, cutter.port()),
            new Options().patience(Duration.ZERO))) {
      Report.thrown(Unreachable.class, () -> semel.claim(call()));
      Report.until(() -> state(node).equals("absent"));
    }
  }

  private static void interruptedWait(String driver) throws Exception {
    try (Node node = new Node();
        Semel semel = Drivers.semel(Drivers.named(driver, node.port()), new Options())) {
      Work held = semel.claim(call()).work();
      CompletableFuture<Throwable> thrown = new CompletableFuture<>();
      Thread caller = new Thread(() -> {
        try {
          semel.claim(call().wait(Duration.ofSeconds(60)));
          thrown.complete(null);
        } catch (RuntimeException error) {
          thrown.complete(Thread.currentThread().isInterrupted() ? error : null);
        }
      });
      caller.start();
      Report.until(() -> node.ask("INFO", "clients").contains("blocked_clients:1"));
      caller.interrupt();
      Report.same(thrown.get(5, TimeUnit.SECONDS) instanceof Unreachable, true);
      Report.until(() -> node.ask("INFO", "clients").contains("blocked_clients:0"));
      held.fail("given back", OnException.RELEASE);
      // The look for a grant that nobody waits for may hold it for a moment.
      Report.same(semel.once(call().wait(Duration.ofSeconds(10)), String.class, () -> "free"),
          "free");
    }
  }

  /** An interrupted caller does not want the work done without protection. */
  private static void interruptedUnprotected() throws Exception {
    try (Node node = new Node(); Semel semel = Drivers.semel(Drivers.lettuce(node.port()),
        new Options().whenUnreachable(Options.WhenUnreachable.RUN_UNPROTECTED))) {
      semel.once("late", "before", () -> "ran");
      node.stop();
      Thread.currentThread().interrupt();
      try {
        Report.thrown(Unreachable.class, () -> semel.once("late", "k", () -> "ran"));
      } finally {
        Report.same(Thread.interrupted(), true);
        node.go();
      }
    }
  }

  /** The work is done, whatever the thread is told: a repeat must not do it again. */
  private static void interruptedOwner(String driver) throws Exception {
    List<Observer.Event> events = new CopyOnWriteArrayList<>();
    try (Node node = new Node();
        Semel semel = Drivers.semel(Drivers.named(driver, node.port()), new Options())) {
      semel.observe((event, namespace, nanos) -> events.add(event));
      semel.once("late", "before", () -> "ran");
      Report.same(semel.once("late", "k", () -> {
        Thread.currentThread().interrupt();
        return "done";
      }), "done");
      Report.same(Thread.interrupted(), true);
      Report.same(events, List.of(Observer.Event.RAN, Observer.Event.RAN));
      Report.same(semel.once("late", "k", () -> "again"), "done");
      Report.thrown(IllegalStateException.class, () -> semel.once("late", "throws", () -> {
        Thread.currentThread().interrupt();
        throw new IllegalStateException("own");
      }));
      Report.same(Thread.interrupted(), true);
      Report.same(semel.once("late", "throws", () -> "again"), "again");
    }
  }

  /** What an observer throws is not what the call throws, before and after the work. */
  private static void throwingObserver() throws Exception {
    List<Observer.Event> events = new CopyOnWriteArrayList<>();
    try (Node node = new Node();
        Semel semel = Drivers.semel(Drivers.lettuce(node.port()), new Options())) {
      semel.observe((event, namespace, nanos) -> {
        throw new AssertionError("the observer's own");
      });
      semel.observe((event, namespace, nanos) -> events.add(event));
      for (int i = 0; i < 2; ++i) Report.same(semel.once("late", "k", () -> "done"), "done");
      Work held = semel.claim(Call.of("late", "held")).work();
      Report.thrown(Rejected.class, () -> semel.claim(Call.of("late", "held")));
      held.release();
      Report.thrown(IllegalStateException.class, () -> semel.once("late", "throws", () -> {
        throw new IllegalStateException("own");
      }));
      Report.same(semel.once("late", "throws", () -> "again"), "again");
      Report.same(events, List.of(Observer.Event.RAN, Observer.Event.REPLAYED,
          Observer.Event.REJECTED, Observer.Event.THREW, Observer.Event.RAN));
    }
  }

  private static void transients() {
    for (String each : new String[] {"BUSY Redis is busy running a script", "TRYAGAIN again",
        "LOADING the dataset", "MASTERDOWN link", "CLUSTERDOWN no", "READONLY you", "MOVED 1 a:1",
        "ASK 1 a:1"}) {
      Report.same(each + new ServerError(each).isTransient(), each + true);
    }
    for (String each : new String[] {"ERR no", "BUSYKEY there", "WRONGTYPE", "NOPERM no"}) {
      Report.same(each + new ServerError(each).isTransient(), each + false);
    }
  }

  /** Claims and completions wait for the end of a script. */
  private static void busy(String driver) throws Exception {
    try (Node node = new Node("--busy-reply-threshold", "20");
        Cutter counter = new Cutter(node.port(), "SEMEL.C", 0);
        Semel semel = Drivers.semel(Drivers.named(driver, counter.port()),
            new Options().patience(Duration.ofSeconds(20)))) {
      semel.once("late", "before", () -> "ran");
      Report.same(semel.once("late", "k", () -> {
        whileBusy(node, counter);
        return "done";
      }), "done");
      whileBusy(node, counter);
      Report.same(semel.once("late", "k", () -> "again"), "done");
    }
  }

  /** A script that ends when two more commands of the suite have been sent. */
  private static void whileBusy(Node node, Cutter counter) {
    int sent = counter.ids().size();
    CompletableFuture.runAsync(() -> {
      try {
        node.ask("EVAL", "while true do end", "0");
      } catch (Exception killed) {
        return;
      }
    });
    try {
      Report.until(() -> node.ask("PING").startsWith("-BUSY"));
    } catch (Exception error) {
      throw new AssertionError(error);
    }
    CompletableFuture.runAsync(() -> {
      try {
        Report.until(() -> counter.ids().size() >= sent + 2);
        node.ask("SCRIPT", "KILL");
      } catch (Exception error) {
        throw new AssertionError(error);
      }
    });
  }

  private static void lostAtUnlock() throws Exception {
    try (Node node = new Node();
        Semel semel = Drivers.semel(Drivers.lettuce(node.port()), new Options())) {
      Work whole = semel.claim(call()).work();
      whole.release();
      whole.release();
      Work taken = semel.claim(call()).work();
      node.advance(60_001);
      Work other = semel.claim(call()).work();
      Report.thrown(LeaseLost.class, taken::release);
      other.release();
      // Another owner has come and gone.
      Work late = semel.claim(call()).work();
      node.advance(60_001);
      semel.claim(call()).work().release();
      Report.thrown(LeaseLost.class, late::release);
    }
  }

  /** The work is told when the renewals are over, or have had no answer for a whole lease. */
  private static void toldOfTheEnd() throws Exception {
    try (Node node = new Node(); Semel semel = Drivers.semel(Drivers.lettuce(node.port()),
        new Options().renewFor(Duration.ZERO)); Semel cut = Drivers.semel(
        Drivers.lettuce(node.port()), new Options().callTimeout(Duration.ofMillis(50)))) {
      Work unrenewed = semel.claim(call().lease(Duration.ofMillis(200))).work();
      Report.until(unrenewed::isLost);
      Work silent = cut.claim(Call.of("late", "other").lease(Duration.ofMillis(300))).work();
      node.stop();
      Report.until(silent::isLost);
      node.go();
    }
  }

  private static void times() {
    Call call = call();
    for (Duration each : new Duration[] {Duration.ofMillis(-1), Duration.ofNanos(1),
        Duration.ofNanos(-1), Duration.ofSeconds(Long.MIN_VALUE)}) {
      for (Report.Work work : new Report.Work[] {() -> call.wait(each), () -> call.lease(each),
          () -> Terms.as("call").keep(each), () -> new Options().patience(each),
          () -> new Options().recordPatience(each), () -> new Options().renewFor(each),
          () -> new Options().callTimeout(each)}) {
        Report.has(Report.thrown(IllegalArgumentException.class, work).getMessage(),
            ", not " + each);
      }
    }
    Report.thrown(IllegalArgumentException.class, () -> call.lease(Duration.ZERO));
    Report.thrown(IllegalArgumentException.class, () -> Terms.as("call").lease(Duration.ZERO));
    Report.thrown(IllegalArgumentException.class, () -> call.firstSent(Instant.ofEpochMilli(-1)));
    Report.thrown(IllegalArgumentException.class, () -> new Options().resultBytesMax(0));
  }

  private static void longWait(String driver) throws Exception {
    try (Node node = new Node();
        Semel semel = Drivers.semel(Drivers.named(driver, node.port()), new Options())) {
      Work held = semel.claim(call()).work();
      CompletableFuture<String> waits = CompletableFuture.supplyAsync(() -> semel.once(
          call().wait(Duration.ofSeconds(Long.MAX_VALUE)), String.class, () -> "no"));
      Report.until(() -> node.ask("INFO", "clients").contains("blocked_clients:1"));
      held.complete("\"result\"".getBytes());
      Report.same(waits.get(5, TimeUnit.SECONDS), "result");
    }
  }

  /** 1970 is a time. */
  private static void firstSent() throws Exception {
    try (Node node = new Node();
        Semel semel = Drivers.semel(Drivers.lettuce(node.port()), new Options())) {
      Call call = call().terms(Terms.as("call").with("WINDOW", "60000"));
      Rejected old = Report.thrown(Rejected.class, () -> semel.claim(call.firstSent(Instant.EPOCH)));
      Report.same(old.reason(), Rejected.Reason.TOO_OLD);
      Report.same(semel.once(call.firstSent(null), String.class, () -> "ran"), "ran");
    }
  }

  private static void keys() {
    try (Semel semel = Drivers.semel(Drivers.lettuce(Report.PORT), new Options())) {
      Report.thrown(InvalidKey.class, () -> semel.once("late", "half \ud800", () -> "ran"));
      Report.thrown(InvalidKey.class, () -> Call.of("late", "k").operation("x".repeat(513)));
      Report.thrown(IllegalStateException.class,
          () -> semel.claim(Call.of("late", "scoped").scope(null, "ann")));
      Call first = Call.of("late", "operations").operation("pay").scope(null, "ann");
      Report.same(semel.once(first, String.class, () -> "paid"), "paid");
      for (Call other : new Call[] {first.operation("refund"), first.scope(null, "bob"),
          first.scope("acme", "ann"), first.payload(1), Call.of("late", "operations")
          .identity(io.semel.Identity.of("pay", null, "bob", null))}) {
        Report.thrown(io.semel.Mismatch.class, () -> semel.once(other, String.class, () -> "no"));
      }
      Report.same(semel.once(first, String.class, () -> "no"), "paid");
    }
  }

  static void run() {
    for (String driver : DRIVERS) {
      Report.check("once-again-22: a grant after the patience is released, " + driver,
          () -> lateGrant(driver, false));
      Report.check("once-again-22: a grant to an interrupted caller is released, " + driver,
          () -> lateGrant(driver, true));
      Report.check("once-again-22: a grant whose reply is lost is released, " + driver,
          () -> lostGrant(driver));
      Report.check("once-again-22: an interrupted wait ends at once, " + driver,
          () -> interruptedWait(driver));
      Report.check("once-again-22: an interrupted owner records its work, " + driver,
          () -> interruptedOwner(driver));
      Report.check("once-again-26: claims and completions outlast a script, " + driver,
          () -> busy(driver));
      Report.check("once-again-27: a wait without end, " + driver, () -> longWait(driver));
    }
    Report.check("once-again-22: interrupted, and not unprotected",
        LateSuite::interruptedUnprotected);
    Report.check("an observer that throws", LateSuite::throwingObserver);
    Report.check("once-again-26: one list of transient errors", LateSuite::transients);
    Report.check("once-again-26: a lost lease is told at the release", LateSuite::lostAtUnlock);
    Report.check("once-again-10: the end of a lease is told", LateSuite::toldOfTheEnd);
    Report.check("once-again-11: times that are none", LateSuite::times);
    Report.check("once-again-11: first sent in 1970", LateSuite::firstSent);
    Report.check("once-again-4: keys, operations and scopes of calls", LateSuite::keys);
  }
}
