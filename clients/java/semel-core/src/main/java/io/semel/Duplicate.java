package io.semel;

/** What a repeat of finished work gets. */
public enum Duplicate {
  /** The result of the first. */
  REPLAY,
  /** Rejected, as most starters do. */
  REJECT
}
