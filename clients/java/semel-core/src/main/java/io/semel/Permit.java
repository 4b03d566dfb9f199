package io.semel;

/**
 * One of the permits of a semaphore, from Semel.permit():
 *
 * <pre>
 * Call seats = Call.of("pools", "reports").wait(Duration.ofSeconds(5));
 * try (Permit seat = semel.permit(seats, 3)) {
 *   write(seat.slot(), seat.token(), "report 12");
 * }
 * </pre>
 *
 * <p>Its lease is renewed until it is released or lost, or for the time of Options.renewFor(). May be
 * handed to another thread; safe for several threads.
 */
public final class Permit implements AutoCloseable {
  private final Work work;
  private final int slot;

  Permit(Work work, int slot) {
    this.work = work;
    this.slot = slot;
  }

  /** 0 to permits - 1: no other holder has it. It may name one of as many things. */
  public int slot() {
    return slot;
  }

  /**
   * The fencing token: it grows with each holder of this slot. What the holders write to should keep
   * one for each slot, and refuse a smaller one.
   */
  public long token() {
    return work.epoch();
  }

  /** Another holder has its slot, or may. To be looked at by long work before it has effects. */
  public boolean isLost() {
    return work.isLost();
  }

  /** Called once, from another thread, when the permit is lost; at once if it is. */
  public void whenLost(Runnable listener) {
    work.whenLost(listener);
  }

  /**
   * Gives the permit back; repeats have no effect. If the node cannot be asked, the lease ends it.
   *
   * @throws LeaseLost if it was lost before, also to a holder that has come and gone
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
