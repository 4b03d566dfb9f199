package io.semel;

import java.time.Duration;

/** One guarded call: its key and how it is guarded. Immutable; each method answers a changed copy. */
public final class Call {
  final String namespace;
  final String key;
  final Terms terms;
  final String operation;
  final String fingerprint;
  final long leaseMs;
  final long waitMs;
  final OnException onException;
  final Duplicate duplicate;

  private Call(String namespace, String key, Terms terms, String operation, String fingerprint,
      long leaseMs, long waitMs, OnException onException, Duplicate duplicate) {
    this.namespace = namespace;
    this.key = key;
    this.terms = terms;
    this.operation = operation;
    this.fingerprint = fingerprint;
    this.leaseMs = leaseMs;
    this.waitMs = waitMs;
    this.onException = onException;
    this.duplicate = duplicate;
  }

  /** A call of policy `call` with a lease of 60 s that waits for nobody. */
  public static Call of(String namespace, String key) {
    return new Call(namespace, key, Terms.as("call"), "", null, 60_000, 0, OnException.RELEASE,
        Duplicate.REPLAY);
  }

  /** The policy with which the namespace is declared. */
  public Call terms(Terms value) {
    return new Call(namespace, key, value, operation, fingerprint, leaseMs, waitMs, onException,
        duplicate);
  }

  /** What does the work, such as Orders.pay: another one under the same key is a mismatch. */
  public Call operation(String value) {
    return new Call(namespace, key, terms, value.replaceAll("[\\r\\n]", " "), fingerprint, leaseMs,
        waitMs, onException, duplicate);
  }

  /** A text of which equal payloads have equal ones; another one is a mismatch. Null: not compared. */
  public Call payload(String canonical) {
    String digest = canonical == null ? null : CanonicalJson.digest(canonical).substring(0, 32);
    return new Call(namespace, key, terms, operation, digest, leaseMs, waitMs, onException,
        duplicate);
  }

  /** How long the owner may be silent; it is renewed while the work runs. At least 30 ms. */
  public Call lease(Duration time) {
    if (time.toMillis() < 30) throw new IllegalArgumentException("a lease is 30 ms or more");
    return new Call(namespace, key, terms, operation, fingerprint, time.toMillis(), waitMs,
        onException, duplicate);
  }

  /** How long to wait for another owner's result; zero: not at all. */
  public Call wait(Duration time) {
    return new Call(namespace, key, terms, operation, fingerprint, leaseMs,
        Math.max(0, time.toMillis()), onException, duplicate);
  }

  public Call onException(OnException value) {
    return new Call(namespace, key, terms, operation, fingerprint, leaseMs, waitMs, value,
        duplicate);
  }

  public Call duplicate(Duplicate value) {
    return new Call(namespace, key, terms, operation, fingerprint, leaseMs, waitMs, onException,
        value);
  }

  @Override
  public String toString() {
    return namespace + ":" + key;
  }
}
