package io.semel.tests;

import io.semel.Access;
import io.semel.Call;
import io.semel.LeaseLost;
import io.semel.Options;
import io.semel.Rejected;
import io.semel.Semel;
import io.semel.SemelException;
import io.semel.Unreachable;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** Read/write locks: docs/patterns.md#readers-and-a-writer. */
final class AccessSuite {
  private static final String[] DRIVERS = {"Lettuce", "Jedis", "Redisson"};

  private AccessSuite() {}

  private static Call lock() {
    return Call.of("locks", "k");
  }

  private static Call waiting() {
    return lock().wait(Duration.ofSeconds(60));
  }

  private static boolean reads(Semel semel) {
    try (Access in = semel.readLock(lock())) {
      return true;
    } catch (Rejected out) {
      return false;
    }
  }

  private static void refused(Report.Work work) {
    Rejected told = Report.thrown(Rejected.class, work);
    Report.same(told.reason(), Rejected.Reason.IN_FLIGHT);
  }

  private static void holders(String driver) throws Exception {
    try (Node node = new Node();
        Semel semel = Drivers.semel(Drivers.named(driver, node.port()), new Options())) {
      Access one = semel.readLock("locks", "k");
      Access other = semel.readLock("locks", "k");
      refused(() -> semel.writeLock("locks", "k"));
      one.release();
      one.release();
      refused(() -> semel.writeLock(lock().wait(Duration.ofMillis(30))));
      Report.same(reads(semel), true);  // who has stopped waiting is not in front any more
      other.release();
      Access writer = semel.writeLock("locks", "k");
      refused(() -> semel.readLock("locks", "k"));
      refused(() -> semel.writeLock("locks", "k"));
      Report.same(writer.token() > other.token(), true);
      writer.release();
      try (Access last = semel.readLock("locks", "k")) {
        Report.same(last.token() >= writer.token(), true);
      }
      try (Access next = semel.writeLock("locks", "k")) {
        Report.same(next.token() > writer.token(), true);
      }
    }
  }

  /** The thread that waits in front is let in, and nobody before. */
  private static void waits(String driver) throws Exception {
    try (Node node = new Node();
        Semel semel = Drivers.semel(Drivers.named(driver, node.port()), new Options())) {
      Access reader = semel.readLock("locks", "k");
      CompletableFuture<Access> in = CompletableFuture.supplyAsync(() -> semel.writeLock(waiting()));
      Report.until(() -> !reads(semel));
      Report.same(in.isDone(), false);
      reader.release();
      Access writer = in.get(20, TimeUnit.SECONDS);
      refused(() -> semel.readLock("locks", "k"));
      writer.release();
      Report.same(reads(semel), true);
    }
  }

  /** The node's clock stands still: a place in front that is not given back is kept. */
  private static void interrupted(String driver) throws Exception {
    try (Node node = new Node();
        Semel semel = Drivers.semel(Drivers.named(driver, node.port()), new Options())) {
      Report.same(node.ask("SEMEL.CLOCK", "FREEZE").startsWith("+OK"), true);
      Access reader = semel.readLock("locks", "k");
      for (int i = 0; i < 3; ++i) {
        CompletableFuture<Throwable> thrown = new CompletableFuture<>();
        Thread caller = new Thread(() -> {
          try {
            semel.writeLock(waiting());
            thrown.complete(null);
          } catch (SemelException error) {
            thrown.complete(Thread.currentThread().isInterrupted() ? error : null);
          }
        });
        caller.start();
        Report.until(() -> !reads(semel));
        caller.interrupt();
        Throwable told = thrown.get(20, TimeUnit.SECONDS);
        Report.same(told instanceof Rejected || told instanceof Unreachable, true);
        Report.until(() -> reads(semel));
      }
      reader.release();
      Report.until(() -> node.ask("SEMEL.RWLOCKS", "locks", "k").startsWith("*0"));
    }
  }

  private static void lost() throws Exception {
    try (Node node = new Node();
        Semel semel = Drivers.semel(Drivers.lettuce(node.port()), new Options())) {
      Access slow = semel.writeLock("locks", "k");
      node.advance(60_001);
      Access next = semel.writeLock("locks", "k");
      Report.thrown(LeaseLost.class, slow::release);
      slow.close();
      refused(() -> semel.readLock("locks", "k"));  // what was lost has not released the next one's
      next.release();

      Access told = semel.readLock(lock().lease(Duration.ofMillis(300)));
      CountDownLatch heard = new CountDownLatch(1);
      told.whenLost(heard::countDown);
      semel.command("SEMEL.FORGET", "locks", "{k}#read0");
      Report.same(heard.await(20, TimeUnit.SECONDS), true);
      Report.same(told.isLost(), true);
      semel.writeLock("locks", "k").release();
      Report.thrown(LeaseLost.class, told::release);
    }
  }

  private static void lostReply(String driver) throws Exception {
    try (Node node = new Node(); Cutter cutter = new Cutter(node.port(), "SEMEL.RWLOCK", 1);
        Semel semel = Drivers.semel(Drivers.named(driver, cutter.port()), new Options())) {
      semel.writeLock("locks", "k").release();
      List<String> ids = cutter.ids();
      Report.same(ids.size() > 1 && ids.stream().distinct().count() == 1, true);
      Report.same(cutter.cutsLeft(), 0);
      Report.same(reads(semel), true);
    }
  }

  static void run() {
    for (String driver : DRIVERS) {
      Report.check("read/write locks: readers together, a writer alone, " + driver,
          () -> holders(driver));
      Report.check("read/write locks: a writer waits and is not overtaken, " + driver,
          () -> waits(driver));
      Report.check("read/write locks: an interrupted wait stops nobody, " + driver,
          () -> interrupted(driver));
      Report.check("read/write locks: a lost reply is asked for again, " + driver,
          () -> lostReply(driver));
    }
    Report.check("read/write locks: a loss is told", AccessSuite::lost);
  }
}
