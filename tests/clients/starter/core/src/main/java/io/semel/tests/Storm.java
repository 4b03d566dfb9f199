package io.semel.tests;

import io.semel.Call;
import io.semel.Observer;
import io.semel.Semel;
import io.semel.Unreachable;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Work without a pause over one driver: two threads ask for each key at about the same time, a
 * third asks again for what was acknowledged. Each effect is counted outside of the group.
 */
final class Storm implements AutoCloseable {
  private static final long STOP_MS = 40_000;
  private final String driver;
  private final Semel semel;
  private final Map<Integer, AtomicInteger> effects = new ConcurrentHashMap<>();
  private final Map<Integer, String> results = new ConcurrentHashMap<>();
  private final AtomicInteger unreachable = new AtomicInteger();
  private final AtomicInteger unrecorded = new AtomicInteger();
  private final AtomicInteger replayed = new AtomicInteger();
  private final AtomicLong last = new AtomicLong();
  private final AtomicLong longest = new AtomicLong();
  private final List<Thread> threads = new ArrayList<>();
  private volatile boolean over;
  private volatile Throwable wrong;

  Storm(String driver) {
    this.driver = driver;
    semel = GroupDrivers.semel(driver, "storm");
    semel.observe((event, namespace, nanos) -> {
      if (event == Observer.Event.UNRECORDED) unrecorded.incrementAndGet();
      if (event == Observer.Event.REPLAYED) replayed.incrementAndGet();
    });
  }

  String driver() {
    return driver;
  }

  void start() {
    for (int i = 0; i < 2; ++i) thread(this::work);
    thread(this::repeat);
  }

  private void thread(Runnable run) {
    Thread thread = new Thread(() -> {
      try {
        run.run();
      } catch (Throwable error) {
        wrong = error;
      }
    });
    thread.setDaemon(true);
    threads.add(thread);
    thread.start();
  }

  private Call call(int key) {
    return Call.of("storm", driver + " " + key).wait(GroupDrivers.PATIENCE);
  }

  /** Asks until there is an answer; each result must be the first one. */
  private void once(Semel through, int key) {
    while (!over) {
      try {
        String got = through.once(call(key), String.class, () -> {
          effects.computeIfAbsent(key, none -> new AtomicInteger()).incrementAndGet();
          return "result " + key + " of " + Thread.currentThread().getId();
        });
        String first = results.putIfAbsent(key, got);
        if (first != null) Report.same(got, first);
        return;
      } catch (Unreachable again) {
        unreachable.incrementAndGet();
      }
    }
  }

  private void work() {
    for (int key = 0; !over && wrong == null; ++key) {
      once(semel, key);
      long now = System.nanoTime();
      long before = last.getAndSet(now);
      if (before != 0) longest.accumulateAndGet(now - before, Math::max);
      // Neither so many that the machine has no time for the nodes.
      pause(5);
    }
  }

  private void repeat() {
    while (!over && wrong == null) {
      int known = results.size();
      if (known > 0) once(semel, ThreadLocalRandom.current().nextInt(known));
      pause(5);
    }
  }

  private static void pause(long ms) {
    try {
      Thread.sleep(ms);
    } catch (InterruptedException error) {
      throw new IllegalStateException(error);
    }
  }

  int done() {
    return results.size();
  }

  /** Within 20 s. */
  void goesOn() throws Exception {
    int enough = results.size() + 20;
    Report.until(() -> {
      check();
      return results.size() >= enough;
    });
  }

  /** The longest time between two answers since the last call of this, in ms. */
  long longestMs() {
    return longest.getAndSet(0) / 1_000_000;
  }

  private void check() {
    Throwable error = wrong;
    if (error != null) throw new AssertionError(error.toString(), error);
  }

  /** No effect twice, and each acknowledged result is what a new client is answered. */
  void verify() throws Exception {
    over = true;
    for (Thread each : threads) {
      each.join(STOP_MS);
      Report.same(each.isAlive(), false);
    }
    check();
    for (Map.Entry<Integer, AtomicInteger> each : effects.entrySet()) {
      Report.same(each.getKey() + ": " + each.getValue(), each.getKey() + ": 1");
    }
    Report.same(unrecorded.get(), 0);
    Report.same(replayed.get() > 0, true);
    AtomicInteger again = new AtomicInteger();
    try (Semel fresh = GroupDrivers.semel(driver, "reader")) {
      for (Map.Entry<Integer, String> each : results.entrySet()) {
        Report.same(fresh.once(call(each.getKey()), String.class, () -> {
          again.incrementAndGet();
          return "ran again";
        }), each.getValue());
      }
    }
    Report.same(again.get(), 0);
    Runner.figure("results, " + driver, results.size());
    Runner.figure("unreachable, " + driver, unreachable.get());
  }

  @Override
  public void close() {
    over = true;
    semel.close();
  }
}
