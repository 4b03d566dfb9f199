package io.semel;

/** What the record says after work that threw: it may have done a part of it. */
public enum OnException {
  /** The next call runs. */
  RELEASE,
  /** Failed for good: repeats get the failure. */
  KEEP,
  /** Nobody runs it before an operator has decided (SEMEL.RESOLVE). */
  IN_DOUBT;

  String word() {
    return this == IN_DOUBT ? "IN-DOUBT" : name();
  }
}
