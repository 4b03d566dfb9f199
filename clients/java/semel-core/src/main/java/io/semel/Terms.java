package io.semel;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/**
 * The policy of a namespace: a named policy of the node and what is different from it. Immutable.
 * Two owners that declare one namespace with different terms are refused, by the node.
 */
public final class Terms {
  private final String policy;
  private final List<String> options;

  private Terms(String policy, List<String> options) {
    this.policy = policy;
    this.options = Collections.unmodifiableList(options);
  }

  /** call, message, token, payment, dedup, debounce: docs/patterns.md has their numbers. */
  public static Terms as(String policy) {
    return new Terms(policy, new ArrayList<String>());
  }

  /** How long an owner may be silent. */
  public Terms lease(Duration time) {
    return with("LEASE", time);
  }

  /** How long results and kept failures are kept, and so how long a repeat is recognised. */
  public Terms keep(Duration time) {
    return with("RESULT-TTL", time).with("FAILURE-TTL", time);
  }

  /** How long the key stays taken after the result is gone. */
  public Terms unique(Duration time) {
    return with("UNIQUE-TTL", time);
  }

  /**
   * A sliding window: each repeat that gets the kept result lets {@link #keep} and {@link #unique}
   * begin again, at most up to this long after the completion. At least as long as these.
   */
  public Terms sliding(Duration most) {
    return with("SLIDING-MAX", most);
  }

  /** How long attempts are counted and, of tokens, how long one lives. */
  public Terms attemptsKept(Duration time) {
    return with("ATTEMPTS-TTL", time);
  }

  /** A grant beyond it becomes a kept failure; 0: no limit. */
  public Terms attempts(int most) {
    return with("ATTEMPTS-MAX", Integer.toString(most));
  }

  /** An owner that goes silent leaves the work in doubt: it runs again only after SEMEL.RESOLVE. */
  public Terms inDoubtOnSilence() {
    return with("ON-LEASE-END", "IN-DOUBT");
  }

  /** A completion after the lease ended is refused also if nobody has taken over. */
  public Terms strict() {
    return with("STRICT", "");
  }

  /** Any other option of SEMEL.NAMESPACE; of a flag the value is empty. */
  public Terms with(String name, String value) {
    List<String> more = new ArrayList<>(options);
    more.add(name);
    if (!value.isEmpty()) more.add(value);
    return new Terms(policy, more);
  }

  private Terms with(String name, Duration time) {
    return with(name, Long.toString(Times.ms(name, time, 1)));
  }

  String policy() {
    return policy;
  }

  List<String> options() {
    return options;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Terms && toString().equals(other.toString());
  }

  @Override
  public int hashCode() {
    return toString().hashCode();
  }

  @Override
  public String toString() {
    return policy + " " + options;
  }
}
