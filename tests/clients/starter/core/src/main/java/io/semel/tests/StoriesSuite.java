package io.semel.tests;

import io.semel.Call;
import io.semel.Consumer;
import io.semel.Fn;
import io.semel.InDoubt;
import io.semel.LeaseLost;
import io.semel.Observer;
import io.semel.Options;
import io.semel.Rejected;
import io.semel.Semel;
import io.semel.Terms;
import io.semel.Unreachable;
import io.semel.Unrecorded;
import io.semel.Verdict;
import io.semel.Work;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

/** Owners that die, stand still or lose their node: the stories of docs/patterns.md. */
final class StoriesSuite {
  private StoriesSuite() {}

  private static Semel semel(int port) {
    return Drivers.semel(Drivers.lettuce(port), new Options().owner("parent"));
  }

  private static Child owner(Node node, String story, String namespace) throws Exception {
    Child child = new Child(Owner.class, Integer.toString(node.port()), story, namespace);
    Report.same(child.line(), "working");
    return child;
  }

  private static void crash() throws Exception {
    try (Node node = new Node(); Semel semel = semel(node.port());
        Child child = owner(node, "crash", "orders")) {
      child.go();
      Report.same(child.ended(), 9);
      Rejected held = Report.thrown(Rejected.class,
          () -> semel.once(Owner.call("orders"), String.class, () -> "too early"));
      Report.has(held.getMessage(), "child");
      node.advance(60_001);
      Report.same(semel.once(Owner.call("orders"), String.class, () -> {
        Report.same(Work.current().takeover(), true);
        return "of the parent";
      }), "of the parent");
    }
  }

  private static void crashInDoubt() throws Exception {
    try (Node node = new Node(); Semel semel = semel(node.port());
        Child child = owner(node, "crash", "payments")) {
      child.go();
      Report.same(child.ended(), 9);
      node.advance(60_001);
      Report.thrown(InDoubt.class,
          () -> semel.once(Owner.call("payments"), String.class, () -> "a second payment"));
      semel.command("SEMEL.RESOLVE", "payments", "order-1", "DONE", "\"in the ledger\"");
      Report.same(semel.once(Owner.call("payments"), String.class, () -> "no"), "in the ledger");
    }
  }

  private static void crashBound() throws Exception {
    try (Node node = new Node(); Semel semel = semel(node.port());
        Child child = owner(node, "bound", "orders")) {
      child.go();
      Report.same(child.ended(), 9);
      // The node's clock stands: only the connection's end can free it.
      Report.same(semel.once(Owner.call("orders").wait(Duration.ofSeconds(20)), String.class,
          () -> "at once"), "at once");
    }
  }

  private static void slow() throws Exception {
    try (Node node = new Node(); Semel semel = semel(node.port());
        Child child = owner(node, "slow", "orders")) {
      Node.signal(child.process(), "STOP");
      node.advance(60_001);
      Report.same(semel.once(Owner.call("orders"), String.class, () -> "of the parent"),
          "of the parent");
      Node.signal(child.process(), "CONT");
      child.go();
      Report.same(child.line(), "lost");
      Report.same(semel.once(Owner.call("orders"), String.class, () -> "no"), "of the parent");
    }
  }

  /** Nobody has taken over: what a late owner did counts. */
  private static void late() throws Exception {
    try (Node node = new Node(); Semel semel = semel(node.port())) {
      Report.same(semel.once(Owner.call("orders"), String.class, () -> {
        advance(node, 60_001);
        return "late";
      }), "late");
      Report.same(semel.once(Owner.call("orders"), String.class, () -> "no"), "late");
      Call strict = Call.of("strict", "k").terms(Terms.as("call").strict());
      Report.thrown(LeaseLost.class, () -> semel.once(strict, String.class, () -> {
        advance(node, 60_001);
        return "late";
      }));
    }
  }

  private static void advance(Node node, long ms) {
    try {
      node.advance(ms);
    } catch (java.io.IOException error) {
      throw new AssertionError(error);
    }
  }

  private static void redelivery() throws Exception {
    try (Node node = new Node(); Semel semel = semel(node.port());
        Child child = owner(node, "consumer", "mails")) {
      Consumer consumer = new Consumer(semel, "mails");
      Report.same(consumer.consume("m-1", () -> "x").kind(), Verdict.Kind.RETRY_LATER);
      child.go();
      Report.same(child.ended(), 9);
      Report.same(consumer.consume("m-1", () -> "x").kind(), Verdict.Kind.RETRY_LATER);
      node.advance(60_001);
      Report.same(consumer.consume("m-1", () -> {
        Report.same(Work.current().attempt(), 2L);
        return "x";
      }).kind(), Verdict.Kind.ACK);
      Report.same(consumer.consume("m-1", () -> "x").kind(), Verdict.Kind.ACK_DUPLICATE);
    }
  }

  /** Work of many leases keeps its key, and hears when it has lost it. */
  private static void renewal() throws Exception {
    try (Node node = new Node(); Semel semel = semel(node.port())) {
      Work work = semel.claim(call(300)).work();
      long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(1_500);
      Report.until(() -> {
        Report.thrown(Rejected.class, () -> semel.claim(call(300)));
        return System.nanoTime() > end;
      });
      Report.same(work.isLost(), false);
      AtomicBoolean heard = new AtomicBoolean();
      work.whenLost(() -> {
        heard.set(true);
        throw new IllegalStateException("a listener that throws");
      });
      semel.command("SEMEL.FORGET", "orders", "renewed");
      Report.until(work::isLost);
      Report.until(heard::get);
    }
    try (Node node = new Node(); Semel semel = Drivers.semel(Drivers.lettuce(node.port()),
        new Options().renewFor(Duration.ofMillis(200)))) {
      semel.claim(call(200));  // hangs: its lease ends although its process lives
      Report.until(() -> {
        try {
          return semel.claim(call(200)).work().takeover();
        } catch (Rejected held) {
          return false;
        }
      });
    }
  }

  /** Renewals without an answer are repeated before the next one is due, 2 s later. */
  private static void renewalAgain() throws Exception {
    try (Node node = new Node(); Cutter cutter = new Cutter(node.port(), "SEMEL.RENEW", 2);
        Semel semel = Drivers.semel(Drivers.lettuce(cutter.port()), new Options())) {
      Work work = semel.claim(call(6_000)).work();
      Report.until(() -> cutter.ids().size() > 0);
      long first = System.nanoTime();
      Report.until(() -> cutter.ids().size() > 2);
      Report.same(System.nanoTime() - first < TimeUnit.MILLISECONDS.toNanos(3_900), true);
      Report.same(work.isLost(), false);
    }
  }

  private static Call call(long leaseMs) {
    return Call.of("orders", "renewed").lease(Duration.ofMillis(leaseMs));
  }

  private static void nodeDown(String driver) throws Exception {
    Options refuse = new Options().patience(Duration.ofMillis(300));
    Options open = new Options().patience(Duration.ofMillis(300))
        .whenUnreachable(Options.WhenUnreachable.RUN_UNPROTECTED);
    List<Observer.Event> events = new CopyOnWriteArrayList<>();
    try (Node node = new Node(); Semel closed = Drivers.semel(Drivers.named(driver, node.port()),
        refuse); Semel opened = Drivers.semel(Drivers.named(driver, node.port()), open)) {
      opened.observe((event, namespace, nanos) -> events.add(event));
      closed.once("orders", "before", () -> "ran");
      opened.once("orders", "before it", () -> "ran");
      node.kill();
      Report.thrown(Unreachable.class, () -> closed.once("orders", "k", () -> "ran"));
      Report.same(opened.once("orders", "k", () -> {
        Report.same(Work.current().isProtected(), false);
        return "unprotected";
      }), "unprotected");
      Report.same(events.subList(events.size() - 2, events.size()),
          List.of(Observer.Event.UNREACHABLE, Observer.Event.UNPROTECTED));
      node.start();
      Report.until(() -> {
        try {
          return closed.once("orders", "after", () -> "ran").equals("ran");
        } catch (Unreachable down) {
          return false;
        }
      });
    }
  }

  /** The connection of bound claims is opened again after the node was away. */
  private static void boundAgain(String driver) throws Exception {
    try (Node node = new Node(); Semel semel = Drivers.semel(Drivers.named(driver, node.port()),
        new Options().bind(true))) {
      semel.once("orders", "before", () -> "ran");
      node.kill();
      node.start();
      Report.until(() -> {
        try {
          return semel.once("orders", "after", () -> "ran").equals("ran");
        } catch (Unreachable notYet) {
          return false;
        }
      });
    }
  }

  private static void nodeHangs() throws Exception {
    try (Node node = new Node(); Semel semel = Drivers.semel(Drivers.lettuce(node.port()),
        new Options().callTimeout(Duration.ofMillis(200)).patience(Duration.ofMillis(300)))) {
      semel.once("orders", "before", () -> "ran");
      node.stop();
      Report.thrown(Unreachable.class, () -> semel.once("orders", "k", () -> "ran"));
      node.go();
      Report.same(semel.once("orders", "k2", () -> "ran"), "ran");
    }
  }

  private static void restart(boolean disk) throws Exception {
    List<Observer.Event> events = new CopyOnWriteArrayList<>();
    Terms terms = Terms.as("payment").lease(Duration.ofSeconds(45));
    Call call = Call.of("payments", "p-1").terms(terms);
    try (Node node = disk ? Node.onDisk() : new Node(); Semel semel = semel(node.port())) {
      semel.observe((event, namespace, nanos) -> events.add(event));
      Fn<String, RuntimeException> work = () -> {
        try {
          node.kill();
          node.start();
        } catch (Exception error) {
          throw new AssertionError(error);
        }
        return "paid";
      };
      if (disk) {
        Report.same(semel.once(call, String.class, work), "paid");
      } else {
        Report.same(Report.thrown(Unrecorded.class,
            () -> semel.once(call, String.class, work)).value(), "paid");
      }
      Report.same(events.get(events.size() - 1),
          disk ? Observer.Event.RAN : Observer.Event.UNRECORDED);
      Report.same(semel.once(call, String.class, () -> "again"), disk ? "paid" : "again");
      Report.has(node.ask("SEMEL.NAMESPACE", "SHOW", "payments"), "\r\n45000\r\n");
    }
  }

  /**
   * A node without a storage has forgotten its namespaces: the terms are declared again. Redisson
   * connects again without a word, so there the node must say that it does not know one.
   */
  private static void forgotten(String driver) throws Exception {
    Call call = Call.of("payments", "p").terms(Terms.as("payment").lease(Duration.ofSeconds(45)));
    try (Node node = new Node("--namespace-creation",
        driver.equals("Redisson") ? "declared" : "any");
        Semel semel = Drivers.semel(Drivers.named(driver, node.port()), new Options())) {
      semel.once(call, String.class, () -> "1");
      node.kill();
      node.start();
      Report.until(() -> {
        try {
          return semel.once(call, String.class, () -> "2").equals("2");
        } catch (Unreachable notYet) {
          return false;
        }
      });
      Report.has(node.ask("SEMEL.NAMESPACE", "SHOW", "payments"), "\r\n45000\r\n");
    }
  }

  /**
   * The node has done what was asked, and the connection ends before its reply, twice: whoever asks
   * again, the driver or this library, asks with the same id, for the same claim.
   */
  private static void replyLost(String driver) throws Exception {
    Options patient = new Options().patience(Duration.ofSeconds(15))
        .recordPatience(Duration.ofSeconds(15));
    for (String command : new String[] {"SEMEL.CLAIM", "SEMEL.COMPLETE"}) {
      List<Observer.Event> events = new CopyOnWriteArrayList<>();
      try (Node node = new Node(); Cutter cutter = new Cutter(node.port(), command, 2);
          Semel semel = Drivers.semel(Drivers.repeating(driver, cutter.port()), patient)) {
        semel.observe((event, namespace, nanos) -> events.add(event));
        Report.same(semel.once("orders", "k", () -> {
          Report.same(Work.current().attempt(), 1L);
          return "once";
        }), "once");
        Report.same(cutter.cutsLeft() + " left of " + (cutter.ids().size() >= 3), "0 left of true");
        Report.same(cutter.ids().stream().distinct().count(), 1L);
        Report.same(events, List.of(Observer.Event.RAN));
        Report.same(semel.once("orders", "k", () -> "twice"), "once");
      }
    }
  }

  private static void noRoom() throws Exception {
    try (Node node = new Node(); Semel semel = Drivers.semel(Drivers.lettuce(node.port()),
        new Options().waitsMax(2).owner("x".repeat(100)))) {
      Work held = semel.claim(call(60_000)).work();
      CompletableFuture<?>[] waits = new CompletableFuture<?>[6];
      for (int i = 0; i < waits.length; ++i) {
        waits[i] = CompletableFuture.runAsync(() -> Report.thrown(Rejected.class,
            () -> semel.claim(call(60_000).wait(Duration.ofMillis(300)))));
      }
      CompletableFuture.allOf(waits).get(20, TimeUnit.SECONDS);
      held.complete("\"x\"".getBytes());
      held.complete("\"y\"".getBytes());
      Report.same(semel.once(call(60_000), String.class, () -> "z"), "x");
    }
  }

  static void run() {
    Report.check("the owner's process is halted", StoriesSuite::crash);
    Report.check("the owner of a payment is halted", StoriesSuite::crashInDoubt);
    Report.check("the owner of a bound claim is halted", StoriesSuite::crashBound);
    Report.check("a slow owner is told that it has lost", StoriesSuite::slow);
    Report.check("a late owner without a successor", StoriesSuite::late);
    Report.check("a consumer is halted, its message comes again", StoriesSuite::redelivery);
    Report.check("renewal", StoriesSuite::renewal);
    Report.check("renewals without an answer", StoriesSuite::renewalAgain);
    for (String driver : new String[] {"Lettuce", "Jedis", "Redisson"}) {
      Report.check("the node is down, " + driver, () -> nodeDown(driver));
      Report.check("the node has forgotten, " + driver, () -> forgotten(driver));
      Report.check("replies are lost, " + driver, () -> replyLost(driver));
      Report.check("a bound claim after a restart, " + driver, () -> boundAgain(driver));
    }
    Report.check("the node hangs", StoriesSuite::nodeHangs);
    Report.check("the node restarts under a call, with a storage", () -> restart(true));
    Report.check("the node restarts under a call, without one", () -> restart(false));
    Report.check("waits beyond their bound", StoriesSuite::noRoom);
  }
}
