package io.semel;

import java.util.List;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.logging.Level;

/**
 * Renews leases every third of their length, until they are ended, lost or too old. After a renewal
 * without an answer the next one comes soon: a lease outlives an outage of two thirds of its length.
 */
final class Renewer {
  private static final int RETRIES_A_PERIOD = 8;
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
    Lease lease = new Lease(work);
    lease.next(lease.periodMs);
    work.renewedBy(lease::stop);
  }

  private final class Lease implements Runnable {
    private final Work work;
    private final List<byte[]> words;
    private final long periodMs;
    private final long endNanos =
        System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(options.renewForMs);
    private ScheduledFuture<?> scheduled;
    private boolean stopped;

    Lease(Work work) {
      Call call = work.call();
      this.work = work;
      periodMs = Math.max(10, call.leaseMs / 3);
      words = Wire.words("SEMEL.RENEW", call.namespace, call.key, Long.toString(work.epoch()),
          "LEASE", Long.toString(call.leaseMs));
    }

    synchronized void next(long ms) {
      if (stopped) return;
      try {
        scheduled = threads.schedule(this, Math.max(1, ms), TimeUnit.MILLISECONDS);
      } catch (RejectedExecutionException closed) {
        stopped = true;
      }
    }

    synchronized void stop() {
      stopped = true;
      if (scheduled != null) scheduled.cancel(false);
    }

    @Override
    public void run() {
      long began = System.nanoTime();
      if (began - endNanos >= 0) return;
      long wanted = renew();
      if (wanted == 0) return;
      next(wanted - TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - began));
    }

    /** After how many ms to renew again, counted from the beginning of this; 0: never. */
    private long renew() {
      try {
        String outcome = new Reply(link.call(words, Math.min(options.callTimeoutMs, periodMs)))
            .outcome();
        if (outcome.equals("ok")) return periodMs;
        Wire.LOG.log(Level.WARNING, "the lease of {0} is lost: {1}",
            new Object[] {work.call(), outcome});
        work.lose();
        return 0;
      } catch (RuntimeException error) {
        Wire.LOG.log(Level.FINE, "a renewal failed", error);
        return Math.max(10, periodMs / RETRIES_A_PERIOD);
      }
    }
  }

  void close() {
    threads.shutdownNow();
  }
}
