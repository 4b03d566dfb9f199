package io.semel;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BooleanSupplier;
import java.util.logging.Level;

/**
 * Work that this process owns. Its lease is renewed until it is ended by complete() or fail(), the
 * first of which counts. May be handed to another thread.
 */
public final class Work {
  private static final ThreadLocal<Deque<Work>> RUNNING = ThreadLocal.withInitial(ArrayDeque::new);
  private static final int FAILURE_CHARS_MAX = 500;
  private final Semel semel;
  private final Call call;
  private final long epoch;
  private final long attempt;
  private final boolean takeover;
  private final AtomicBoolean ended = new AtomicBoolean();
  final long startedNanos;
  /** The lease lasts at least from then on. */
  final long sinceNanos;
  private volatile boolean lost;
  private volatile String dropped;
  private volatile String unrecorded;
  private volatile Runnable whenLost;
  private volatile Runnable stopRenewal = () -> {};
  private volatile BooleanSupplier isOver = () -> false;

  /** Unprotected: nothing is recorded. */
  Work(Semel semel, Call call, long startedNanos) {
    this.semel = semel;
    this.call = call;
    this.startedNanos = startedNanos;
    epoch = 0;
    attempt = 0;
    takeover = false;
    sinceNanos = startedNanos;
  }

  /** What the node has granted. */
  Work(Semel semel, Call call, Reply reply, long startedNanos) {
    this.semel = semel;
    this.call = call;
    this.startedNanos = startedNanos;
    epoch = reply.number("epoch");
    attempt = reply.number("attempt");
    takeover = reply.flag("takeover");
    sinceNanos = reply.leaseSinceNanos(call.leaseMs);
  }

  /** The innermost guarded work that this thread runs, or null. */
  public static Work current() {
    return RUNNING.get().peek();
  }

  static boolean isRunningHere(Call call) {
    for (Work each : RUNNING.get()) {
      if (each.call.key.equals(call.key) && each.call.namespace.equals(call.namespace)) return true;
    }
    return false;
  }

  /** Runs a part of the work in this thread, so that current() is this. */
  public <T, X extends Exception> T run(Fn<T, X> part) throws X {
    Deque<Work> stack = RUNNING.get();
    stack.push(this);
    try {
      return part.run();
    } finally {
      stack.remove(this);
      if (stack.isEmpty()) RUNNING.remove();
    }
  }

  /** The fencing token: grows with each owner. 0 if unprotected. */
  public long epoch() {
    return epoch;
  }

  /** 1 for the first. */
  public long attempt() {
    return attempt;
  }

  /** An earlier owner went silent: it may have done a part of the work. */
  public boolean takeover() {
    return takeover;
  }

  /** False if the node could not be asked and the options allow that. */
  public boolean isProtected() {
    return epoch != 0;
  }

  /**
   * Another owner has taken over, or may, as the lease has ended. To be looked at by long work before it
   * has effects.
   */
  public boolean isLost() {
    return lost || !ended.get() && isOver.getAsBoolean();
  }

  /** Called once, from another thread, when the lease is lost. */
  public void whenLost(Runnable listener) {
    synchronized (this) {
      whenLost = listener;
      if (!lost) return;
      whenLost = null;
    }
    listener.run();
  }

  Call call() {
    return call;
  }

  /** isLost() of an owner who is about to end it, and whose call has set `ended` already. */
  boolean isOver() {
    return lost || isOver.getAsBoolean();
  }

  void renewedBy(Runnable stop, BooleanSupplier over) {
    stopRenewal = stop;
    isOver = over;
  }

  void lose() {
    Runnable listener;
    synchronized (this) {
      lost = true;
      listener = whenLost;
      whenLost = null;
    }
    if (listener == null) return;
    try {
      listener.run();
    } catch (RuntimeException error) {
      Wire.LOG.log(Level.WARNING, "a listener for lost leases threw", error);
    }
  }

  /**
   * The work is done; repeats get `result`. If the node cannot be asked that is tried for the time
   * of Options.recordPatience. What is thrown has `result` as its value; the work was done.
   *
   * @throws LeaseLost if another owner has taken over; what it records counts
   * @throws ResultNotKept if the node has no room for `result`: done, and repeats are told so
   * @throws Unrecorded if the node could not be told: it may run again when its lease has ended
   */
  public void complete(byte[] result) {
    if (record(result)) told(result);
  }

  /** complete() up to told(); false: it had ended before. */
  boolean record(byte[] result) {
    if (!ended.compareAndSet(false, true)) return false;
    try {
      semel.complete(this, result);
      return true;
    } finally {
      stopRenewal.run();
    }
  }

  /** Throws what the first caller, who has `value`, is to be told of record(). */
  void told(Object value) {
    if (unrecorded != null) {
      throw new Unrecorded(call + " is done, but that is not recorded: " + unrecorded, value);
    }
    if (dropped != null) throw Semel.notKept(this, dropped, value);
  }

  void dropped(String why) {
    dropped = why;
  }

  void unrecorded(String why) {
    unrecorded = why;
  }

  /**
   * Gives the key back as if it had never been claimed, as an unlock does. If the node cannot be
   * asked, the lease ends the claim.
   *
   * @throws LeaseLost if the lease was lost meanwhile, also to an owner that has come and gone
   */
  public void release() {
    if (!ended.compareAndSet(false, true)) return;
    stopRenewal.run();
    if (epoch != 0) semel.release(this);
  }

  /** The work failed; does not throw. If the node cannot be asked, the lease ends the claim. */
  public void fail(String why, OnException how) {
    if (!ended.compareAndSet(false, true)) return;
    stopRenewal.run();
    if (epoch == 0) return;
    String text = why == null ? "" : why.substring(0, Math.min(why.length(), FAILURE_CHARS_MAX));
    List<byte[]> words = Wire.words("SEMEL.FAIL", call.namespace, call.key, Long.toString(epoch),
        text, how.word());
    semel.endQuietly(this, words);
  }

  /** fail() as the call says, for what the work threw. */
  public void failed(Throwable thrown) {
    if (ended.get()) return;
    semel.report(Observer.Event.THREW, this);
    fail(thrown.toString(), call.onException);
  }
}
