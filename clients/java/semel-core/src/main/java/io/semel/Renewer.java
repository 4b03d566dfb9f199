package io.semel;

import java.util.List;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.logging.Level;

/** Renews leases every third of their length, until they are ended, lost or too old. */
final class Renewer {
  private final Link link;
  private final Options options;
  private final ScheduledThreadPoolExecutor threads;

  Renewer(Link link, Options options) {
    this.link = link;
    this.options = options;
    threads = new ScheduledThreadPoolExecutor(2, task -> {
      Thread thread = new Thread(task, "semel-renewal");
      thread.setDaemon(true);
      return thread;
    });
    threads.setRemoveOnCancelPolicy(true);
  }

  void watch(Work work) {
    Call call = work.call();
    long period = Math.max(10, call.leaseMs / 3);
    long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(options.renewForMs);
    ScheduledFuture<?>[] task = new ScheduledFuture<?>[1];
    Runnable stop = () -> {
      synchronized (task) {
        if (task[0] != null) task[0].cancel(false);
      }
    };
    List<byte[]> words = Wire.words("SEMEL.RENEW", call.namespace, call.key,
        Long.toString(work.epoch()), "LEASE", Long.toString(call.leaseMs));
    synchronized (task) {
      task[0] = threads.scheduleAtFixedRate(() -> {
        if (System.nanoTime() - end >= 0 || !renew(words, period, work)) stop.run();
      }, period, period, TimeUnit.MILLISECONDS);
    }
    work.renewedBy(stop);
  }

  /** Whether to go on. */
  private boolean renew(List<byte[]> words, long period, Work work) {
    try {
      String outcome = new Reply(link.call(words, Math.min(options.callTimeoutMs, period)))
          .outcome();
      if (outcome.equals("ok")) return true;
      Wire.LOG.log(Level.WARNING, "the lease of {0} is lost: {1}",
          new Object[] {work.call(), outcome});
      work.lose();
      return false;
    } catch (RuntimeException error) {
      // The next try comes in time: a lease has three of them.
      Wire.LOG.log(Level.FINE, "a renewal failed", error);
      return true;
    }
  }

  void close() {
    threads.shutdownNow();
  }
}
