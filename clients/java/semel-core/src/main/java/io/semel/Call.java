package io.semel;

import java.time.Duration;
import java.time.Instant;
import java.util.Collections;

/** One guarded call: its key and how it is guarded. Immutable; each method answers a changed copy. */
public final class Call {
  private static final long LEASE_MS_MIN = 30;
  /** A driver's timeout is an int. */
  private static final long WAIT_MS_MAX = Integer.MAX_VALUE - 60_000L;

  /** Of a call that names none. */
  static final Terms TERMS = Terms.as("call");

  final String namespace;
  final String key;
  Terms terms = TERMS;
  String operation = "";
  long leaseMs = 60_000;
  long waitMs;
  OnException onException = OnException.RELEASE;
  Duplicate duplicate = Duplicate.REPLAY;
  Instant firstSent;
  private String tenant;
  private String user;
  private boolean hasPayload;
  private Object payload;
  private Identity identity;

  private Call(String namespace, String key) {
    this.namespace = namespace;
    this.key = key;
  }

  private Call copy() {
    return at(key);
  }

  /** The same of another key. */
  Call at(String other) {
    Call made = new Call(namespace, other);
    made.terms = terms;
    made.operation = operation;
    made.leaseMs = leaseMs;
    made.waitMs = waitMs;
    made.onException = onException;
    made.duplicate = duplicate;
    made.firstSent = firstSent;
    made.tenant = tenant;
    made.user = user;
    made.hasPayload = hasPayload;
    made.payload = payload;
    made.identity = identity;
    return made;
  }

  /** A call of policy `call` with a lease of 60 s that waits for nobody. */
  public static Call of(String namespace, String key) {
    return new Call(namespace, key);
  }

  /** A call whose key is that of its identity. */
  public static Call of(String namespace, Identity identity) {
    return new Call(namespace, identity.key()).identity(identity);
  }

  /** The policy with which the namespace is declared. */
  public Call terms(Terms value) {
    Call made = copy();
    made.terms = value;
    return made;
  }

  /** What does the work, such as Orders.pay: another one under the same key is a mismatch. */
  public Call operation(String value) {
    if (!value.isEmpty()) Identity.checkOperation(value);
    Call made = copy();
    made.operation = value;
    return made;
  }

  /** For whom it is done; null: no part of it. Needs an operation. */
  public Call scope(String tenantOrNull, String userOrNull) {
    Call made = copy();
    made.tenant = tenantOrNull;
    made.user = userOrNull;
    return made;
  }

  /**
   * What is worked on, by its canonical form (docs/identity.md): another value under the same key is
   * a mismatch. Null: not compared.
   *
   * @throws InvalidKey that names what has no canonical form
   */
  public Call payload(Object value) {
    Call made = copy();
    made.hasPayload = value != null;
    made.payload = value == null ? null : new JsonTree().of(value);
    return made;
  }

  /** payload() of a JSON text. */
  public Call json(String text) {
    Call made = copy();
    made.hasPayload = true;
    made.payload = JsonParser.parse(text);
    return made;
  }

  /** Operation, scope and payload as they were made one text elsewhere. */
  public Call identity(Identity value) {
    Call made = copy();
    made.identity = value;
    return made;
  }

  /** How long the owner may be silent; it is renewed while the work runs. At least 30 ms. */
  public Call lease(Duration time) {
    Call made = copy();
    made.leaseMs = Times.ms("lease", time, LEASE_MS_MIN);
    return made;
  }

  /** How long to wait for another owner's result, at most 24 days; zero: not at all. */
  public Call wait(Duration time) {
    Call made = copy();
    made.waitMs = Math.min(WAIT_MS_MAX, Times.ms("wait", time, 0));
    return made;
  }

  /** When the work was first requested, for namespaces with a WINDOW. Null: not known. */
  public Call firstSent(Instant time) {
    if (time != null && time.isBefore(Instant.EPOCH)) {
      throw new IllegalArgumentException("firstSent must be 1970 or later, not " + time);
    }
    Call made = copy();
    made.firstSent = time;
    return made;
  }

  public Call onException(OnException value) {
    Call made = copy();
    made.onException = value;
    return made;
  }

  public Call duplicate(Duplicate value) {
    Call made = copy();
    made.duplicate = value;
    return made;
  }

  /** Its words on the wire; none if there is nothing to compare. Without a payload there is {}. */
  String[] fingerprint() {
    if (identity != null) return words(identity.fingerprint(), Identity.ALGORITHM);
    if (!operation.isEmpty()) {
      Object arguments = hasPayload ? payload : Collections.emptyMap();
      return words(Identity.ofTree(operation, tenant, user, arguments).fingerprint(),
          Identity.ALGORITHM);
    }
    if (tenant != null || user != null) {
      throw new IllegalStateException("the scope of " + this + " needs an operation");
    }
    return hasPayload ? words(Identity.payload(payload), Identity.PAYLOAD_ALGORITHM)
        : new String[0];
  }

  private static String[] words(String digits, int algorithm) {
    return new String[] {"FINGERPRINT", digits, "ALGORITHM", Integer.toString(algorithm)};
  }

  @Override
  public String toString() {
    return namespace + ":" + key;
  }
}
