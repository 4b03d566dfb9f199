package io.semel;

/** The answer to a claim: the right to do the work, or what came of it. */
public final class Claimed {
  private final Work work;
  private final byte[] result;

  private Claimed(Work work, byte[] result) {
    this.work = work;
    this.result = result;
  }

  static Claimed granted(Work work) {
    return new Claimed(work, null);
  }

  static Claimed done(byte[] result) {
    return new Claimed(null, result);
  }

  public boolean isGranted() {
    return work != null;
  }

  /** To be ended by complete() or fail(); null if it is done. */
  public Work work() {
    return work;
  }

  /** What the first owner stored; null if that has ended. */
  public byte[] result() {
    return result;
  }
}
