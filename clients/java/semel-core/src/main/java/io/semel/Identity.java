package io.semel;

import java.util.Arrays;
import java.util.Map;
import java.util.TreeMap;

/**
 * What makes two calls the same piece of work: operation, scope and arguments, as one canonical text
 * (docs/identity.md). The same bytes in every JVM and every language.
 */
public final class Identity {
  /** The number of fingerprint() on the wire, `sha256_identity`. */
  public static final int ALGORITHM = 9;
  /** That of a payload alone, `sha256_json`. */
  static final int PAYLOAD_ALGORITHM = 7;
  private static final int OPERATION_BYTES_MAX = 512;
  private static final int FINGERPRINT_DIGITS = 32;
  private final String text;
  private final String digest;

  private Identity(String text) {
    this.text = text;
    digest = CanonicalJson.digest(text);
  }

  /** Of a call without a scope. */
  public static Identity of(String operation, Object arguments) {
    return of(operation, null, null, arguments);
  }

  /**
   * @param tenant, user null: no part of the scope
   * @param arguments a Map by names, or one value
   * @throws InvalidKey that names what has no canonical form
   */
  public static Identity of(String operation, String tenant, String user, Object arguments) {
    return ofTree(operation, tenant, user, new JsonTree().of(arguments));
  }

  /** Of arguments that are a JSON text. */
  public static Identity ofJson(String operation, String tenant, String user, String json) {
    return ofTree(operation, tenant, user, JsonParser.parse(json));
  }

  static Identity ofTree(String operation, String tenant, String user, Object tree) {
    checkOperation(operation);
    Map<String, Object> scope = new TreeMap<>();
    put(scope, "tenant", tenant);
    put(scope, "user", user);
    return new Identity(CanonicalJson.ofTree(
        Arrays.asList(operation, scope.isEmpty() ? null : scope, tree)));
  }

  static void checkOperation(String operation) {
    if (operation == null || operation.isEmpty()) throw new InvalidKey("the operation is empty");
    CanonicalJson.checkText(operation);
    int length = CanonicalJson.bytes(operation).length;
    if (length > OPERATION_BYTES_MAX) {
      throw new InvalidKey("the operation has " + length + " bytes; the limit is "
          + OPERATION_BYTES_MAX);
    }
  }

  private static void put(Map<String, Object> scope, String name, String value) {
    if (value == null) return;
    if (value.isEmpty()) throw new InvalidKey("the " + name + " of the scope is empty");
    scope.put(name, value);
  }

  /** Of a payload alone, without operation and scope. */
  static String payload(Object tree) {
    return CanonicalJson.digest(CanonicalJson.ofTree(tree)).substring(0, FINGERPRINT_DIGITS);
  }

  /** The canonical text. */
  public String text() {
    return text;
  }

  /** 64 hex digits. */
  public String key() {
    return digest;
  }

  /** 32 hex digits, of ALGORITHM. */
  public String fingerprint() {
    return digest.substring(0, FINGERPRINT_DIGITS);
  }

  @Override
  public String toString() {
    return text;
  }
}
