package io.semel;

import java.time.Duration;

/** Bounds of a Semel; set them before it is built. */
public final class Options {
  /** What happens to a call when the node cannot be asked. */
  public enum WhenUnreachable {
    /** It is refused: nothing runs twice. */
    REFUSE,
    /** It runs without protection, and is counted as UNPROTECTED: it may run twice. */
    RUN_UNPROTECTED
  }

  long callTimeoutMs = 1_000;
  long patienceMs = 5_000;
  long recordPatienceMs = 5_000;
  long renewForMs = 3_600_000;
  int waitsMax = 8;
  int resultBytesMax = 1 << 20;
  int keyBytesMax = 1_024;
  boolean bind;
  boolean changeTerms;
  String owner = "";
  WhenUnreachable whenUnreachable = WhenUnreachable.REFUSE;

  /** How long one command may take. Default 1 s. */
  public Options callTimeout(Duration time) {
    callTimeoutMs = Times.ms("callTimeout", time, 10);
    return this;
  }

  /** How long a claim is asked for again when the node does not answer. Default 5 s. */
  public Options patience(Duration time) {
    patienceMs = Times.ms("patience", time, 0);
    return this;
  }

  /** How long the caller is held up while finished work cannot be recorded. Default 5 s. */
  public Options recordPatience(Duration time) {
    recordPatienceMs = Times.ms("recordPatience", time, 0);
    return this;
  }

  /** How long a lease is renewed at most: work that hangs keeps its key no longer. Default 1 h. */
  public Options renewFor(Duration time) {
    renewForMs = Times.ms("renewFor", time, 0);
    return this;
  }

  /** Connections that wait for other owners at a time; further calls poll instead. Default 8. */
  public Options waitsMax(int most) {
    if (most < 0) throw new IllegalArgumentException("waitsMax must be 0 or more, not " + most);
    waitsMax = most;
    return this;
  }

  /** Larger results are not kept: the work is done, and repeats are told so. Default 1 MiB. */
  public Options resultBytesMax(int most) {
    if (most < 1) {
      throw new IllegalArgumentException("resultBytesMax must be 1 or more, not " + most);
    }
    resultBytesMax = most;
    return this;
  }

  /** Longer keys are refused. Default 1024; a node takes 65,536 with the namespace. */
  public Options keyBytesMax(int most) {
    if (most < 1 || most > 65_000) {
      throw new IllegalArgumentException("keyBytesMax must be 1..65000, not " + most);
    }
    keyBytesMax = most;
    return this;
  }

  /** Claims end with this process' connection, not only with their lease. Default no. */
  public Options bind(boolean value) {
    bind = value;
    return this;
  }

  /** A namespace that is declared with other terms is changed instead of refused. Default no. */
  public Options changeTerms(boolean value) {
    changeTerms = value;
    return this;
  }

  /** The label of this process in `in_flight` answers and lists; cut at 64 bytes. */
  public Options owner(String label) {
    owner = label;
    return this;
  }

  public Options whenUnreachable(WhenUnreachable value) {
    whenUnreachable = value;
    return this;
  }
}
