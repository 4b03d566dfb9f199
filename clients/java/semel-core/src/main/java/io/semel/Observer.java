package io.semel;

/** Hears what becomes of guarded calls; must not block. What it throws is ignored. */
public interface Observer {
  /** What became of a call. */
  enum Event {
    RAN, REPLAYED, REJECTED, MISMATCH, IN_DOUBT, KEPT_FAILURE, THREW, LEASE_LOST, UNRECORDED,
    UNPROTECTED, UNREACHABLE, UNKNOWN_TOKEN, RESULT_DROPPED
  }

  /** `nanos` is the time since the call began. */
  void on(Event event, String namespace, long nanos);
}
