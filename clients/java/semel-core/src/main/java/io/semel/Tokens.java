package io.semel;

import java.security.SecureRandom;
import java.util.List;

/** One-time tokens: issued, and then a call with one runs once. Safe for several threads. */
public final class Tokens {
  private static final SecureRandom RANDOM = new SecureRandom();
  private final Semel semel;
  private final String namespace;
  private final Terms terms;

  /** `terms` are of policy token, or others that are ISSUED. */
  Tokens(Semel semel, String namespace, Terms terms) {
    this.semel = semel;
    this.namespace = namespace;
    this.terms = terms;
  }

  /** A new token of 32 hex digits that lives for `ttlMs`; 0: as the terms say. */
  public String issue(long ttlMs) {
    byte[] random = new byte[16];
    RANDOM.nextBytes(random);
    StringBuilder token = new StringBuilder();
    for (byte each : random) token.append(String.format("%02x", each));
    semel.declare(namespace, terms);
    List<byte[]> words = Wire.words("SEMEL.ISSUE", namespace, token.toString());
    if (ttlMs > 0) words.addAll(Wire.words("TTL", Long.toString(ttlMs)));
    semel.send(words);
    return token.toString();
  }

  /** The call that uses up `token`. */
  public Call call(String token) {
    return Call.of(namespace, token).terms(terms);
  }
}
