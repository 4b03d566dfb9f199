package io.semel.spring;

/** Where the key of a guarded call comes from. */
public enum IdempotentTypeEnum {
  /** SPEL if there is an expression, otherwise PARAM. */
  AUTO,
  /** The value of an expression over the arguments. */
  SPEL,
  /** A digest of path, user and arguments. */
  PARAM,
  /** A token that was issued before, from a header or a parameter. */
  TOKEN
}
