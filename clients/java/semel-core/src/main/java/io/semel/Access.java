package io.semel;

/**
 * A hold of a read/write lock, as one of its readers or its writer, from Semel.readLock() and
 * Semel.writeLock():
 *
 * <pre>
 * try (Access reader = semel.readLock(Call.of("locks", "prices").wait(Duration.ofSeconds(5)))) {
 *   show(prices.read(reader.token()));
 * }
 * </pre>
 *
 * <p>Its lease is renewed until it is released or lost, or for the time of Options.renewFor(). May be
 * handed to another thread; safe for several threads.
 */
public final class Access implements AutoCloseable {
  private final Work work;
  private final long token;

  Access(Work work, long token) {
    this.work = work;
    this.token = token;
  }

  /**
   * The fencing token: that of a reader is at least that of every writer before it, and smaller than
   * that of every writer after it.
   */
  public long token() {
    return token;
  }

  /** Others may be in by now. To be looked at by long work before it has effects. */
  public boolean isLost() {
    return work.isLost();
  }

  /** Called once, from another thread, when the hold is lost; at once if it is. */
  public void whenLost(Runnable listener) {
    work.whenLost(listener);
  }

  /**
   * Gives the hold back; repeats have no effect. If the node cannot be asked, the lease ends it.
   *
   * @throws LeaseLost if it was lost before
   */
  public void release() {
    work.release();
  }

  /** release(). */
  @Override
  public void close() {
    release();
  }
}
