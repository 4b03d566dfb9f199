package io.semel.spring;

/** What calls the method, and so what a repeat is answered with. */
public enum IdempotentSceneEnum {
  /** A caller: it gets the result again, or an exception. */
  REST,
  /** The same as REST. */
  RESTAPI,
  /** A broker: it gets its verdict. */
  MQ
}
