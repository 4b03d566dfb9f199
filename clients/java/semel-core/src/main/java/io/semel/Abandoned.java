package io.semel;

import java.util.List;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.logging.Level;

/**
 * Claims whose caller has gone, interrupted or out of patience, while the node may have granted
 * them. Such a grant is released in the background. What cannot be released ends with its lease.
 */
final class Abandoned {
  private static final int WAITING_MAX = 10_000;
  private static final long AGAIN_MS = 200;
  /** What was still on its way at the first look has arrived by then. */
  private static final long SECOND_LOOK_MS = 1_000;
  private final Link link;
  private final Options options;
  private final ScheduledThreadPoolExecutor thread;

  Abandoned(Link link, Options options) {
    this.link = link;
    this.options = options;
    thread = new ScheduledThreadPoolExecutor(1, task -> {
      Thread made = new Thread(task, "semel-abandoned");
      made.setDaemon(true);
      return made;
    });
    thread.setExecuteExistingDelayedTasksAfterShutdownPolicy(false);
  }

  /**
   * `claim`: the words of SEMEL.CLAIM, SEMEL.PERMIT or SEMEL.RWLOCK with their CLAIM-ID; `way`: how they were sent.
   */
  void release(Call call, List<byte[]> claim, Wire.Way way) {
    if (thread.getQueue().size() >= WAITING_MAX) {
      Wire.LOG.log(Level.WARNING, "{0} may be held until its lease ends", call);
      return;
    }
    next(new Look(call, claim, way), 0);
  }

  private void next(Look look, long ms) {
    try {
      thread.schedule(look, ms, TimeUnit.MILLISECONDS);
    } catch (RejectedExecutionException closed) {
      Wire.LOG.log(Level.FINE, "{0} may be held until its lease ends", look.call);
    }
  }

  private final class Look implements Runnable {
    final Call call;
    private final List<byte[]> claim;
    private final Wire.Way way;
    private final long endNanos;
    private final boolean isShared;
    private boolean looked;

    Look(Call call, List<byte[]> claim, Wire.Way way) {
      this.call = call;
      this.claim = claim;
      this.way = way;
      isShared = !Reply.text(claim.get(0)).equals("SEMEL.CLAIM");
      endNanos = System.nanoTime()
          + TimeUnit.MILLISECONDS.toNanos(call.leaseMs + options.callTimeoutMs + SECOND_LOOK_MS);
    }

    @Override
    public void run() {
      if (System.nanoTime() - endNanos >= 0) return;
      try {
        if (isHeld()) giveBack();
        if (looked) return;
        looked = true;
        next(this, SECOND_LOOK_MS);
      } catch (Unreachable notYet) {
        next(this, AGAIN_MS);
      } catch (ServerError error) {
        if (error.isTransient()) {
          next(this, AGAIN_MS);
        } else {
          Wire.LOG.log(Level.FINE, "an abandoned claim is not released", error);
        }
      } catch (RuntimeException error) {
        Wire.LOG.log(Level.FINE, "an abandoned claim is not released", error);
      }
    }

    /**
     * A claim on a free key would be granted, to be released at once: others would see it. Of a permit
     * or a read/write lock only its CLAIM-ID is known, so what is free is taken for that moment.
     */
    private boolean isHeld() {
      if (isShared) return true;
      try {
        Object reply = link.call(Wire.words("SEMEL.GETCLAIM", call.namespace, call.key),
            options.callTimeoutMs);
        return new Reply(reply).text("state").equals("held");
      } catch (ServerError error) {
        if (error.getMessage().startsWith("NOPERM")) return true;
        throw error;
      }
    }

    /**
     * By its CLAIM-ID a claim that is ours is granted again; another's is in flight. One that has been
     * freed since isHeld() is granted anew, for the moment until it is released.
     */
    private void giveBack() {
      Reply reply = new Reply(way.send(claim, options.callTimeoutMs));
      if (!reply.outcome().equals("granted") && !reply.outcome().equals("regranted")) return;
      String key = isShared ? reply.text("key") : call.key;
      link.call(Wire.words("SEMEL.RELEASE", call.namespace, key,
          Long.toString(reply.number("epoch"))), options.callTimeoutMs);
    }
  }

  void close() {
    thread.shutdownNow();
  }
}
