package io.semel;

import java.util.List;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.logging.Level;

/**
 * Renews leases every third of their length, until they are ended, lost or too old. The work is told
 * of a lease that has ended. After a renewal
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
    lease.next(Math.min(lease.periodMs, lease.leftMs(System.nanoTime()) / 3));
    work.renewedBy(lease::stop, lease::isOver);
  }

  private final class Lease implements Runnable {
    private final Work work;
    private final List<byte[]> words;
    private final long periodMs;
    private final long endNanos =
        System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(options.renewForMs);
    private ScheduledFuture<?> scheduled;
    private boolean stopped;
    /** Before the last claim or renewal that succeeded was sent: its lease lasts from then on. */
    private volatile long sinceNanos;

    Lease(Work work) {
      Call call = work.call();
      this.work = work;
      sinceNanos = work.sinceNanos;
      periodMs = Math.max(10, call.leaseMs / 3);
      words = Wire.words("SEMEL.RENEW", call.namespace, call.key, Long.toString(work.epoch()),
          "LEASE", Long.toString(call.leaseMs));
    }

    private long leftMs(long now) {
      return work.call().leaseMs - TimeUnit.NANOSECONDS.toMillis(now - sinceNanos);
    }

    synchronized void next(long ms) {
      if (stopped) return;
      try {
        scheduled = threads.schedule(this, Math.max(1, ms), TimeUnit.MILLISECONDS);
      } catch (RejectedExecutionException closed) {
        stopped = true;
      }
    }

    /** By this process' clock, also while no thread renews: this is closed, or the process stood. */
    boolean isOver() {
      return System.nanoTime() - sinceNanos >= TimeUnit.MILLISECONDS.toNanos(work.call().leaseMs);
    }

    synchronized void stop() {
      stopped = true;
      if (scheduled != null) scheduled.cancel(false);
    }

    @Override
    public void run() {
      long began = System.nanoTime();
      long leftMs = leftMs(began);
      if (leftMs <= 0) {
        lost("it has ended without a renewal");
        return;
      }
      if (began - endNanos >= 0) {
        next(leftMs);
        return;
      }
      long wanted = renew(began);
      if (wanted == 0) return;
      next(wanted - TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - began));
    }

    private void lost(String why) {
      synchronized (this) {
        if (stopped) return;
      }
      Wire.LOG.log(Level.WARNING, "the lease of {0} is lost: {1}", new Object[] {work.call(), why});
      work.lose();
    }

    /** After how many ms to renew again, counted from the beginning of this; 0: never. */
    private long renew(long began) {
      try {
        String outcome = new Reply(link.call(words, Math.min(options.callTimeoutMs, periodMs)))
            .outcome();
        if (outcome.equals("ok")) {
          sinceNanos = began;
          return periodMs;
        }
        lost(outcome);
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
