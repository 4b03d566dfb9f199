package io.semel.spring;

import io.semel.Duplicate;
import io.semel.OnException;
import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import java.util.concurrent.TimeUnit;

/**
 * The method does its work once for each key: repeats get its result. Several attributes have the
 * names that other starters use; of such a group only one may be given.
 */
@Documented
@Target(ElementType.METHOD)
@Retention(RetentionPolicy.RUNTIME)
public @interface Idempotent {
  IdempotentTypeEnum type() default IdempotentTypeEnum.AUTO;

  IdempotentSceneEnum scene() default IdempotentSceneEnum.REST;

  /** SpEL over the arguments, such as #order.id; also #header['Idempotency-Key'] and @beans. */
  String key() default "";

  /** The same as key. */
  String expression() default "";

  /** The same as key. */
  String spEL() default "";

  /** Names the keys' namespace; methods of one prefix share their keys. */
  String prefix() default "";

  /** The same as prefix. */
  String uniqueKeyPrefix() default "";

  /** How long a repeat is recognised after the work, in timeUnit. Default 3600 s. */
  long keyTimeout() default -1;

  /** The same as keyTimeout. */
  long expireTime() default -1;

  /** The same as keyTimeout. */
  long ttl() default -1;

  /** The same as keyTimeout. */
  long timeout() default -1;

  /** How long the result is kept, in timeUnit; by default as long as the key. */
  long resultTimeout() default -1;

  /** How long to wait for a concurrent call's result, in timeUnit. Default: not at all. */
  long waitTime() default 0;

  TimeUnit timeUnit() default TimeUnit.SECONDS;

  /** How long an owner may be silent before another may take over, in ms; renewed while it runs. */
  long leaseMs() default 60_000;

  /** The text of a rejection. */
  String message() default "";

  /** The same as message. */
  String info() default "";

  /** The key is free again when the method has ended: only concurrent calls are rejected. */
  boolean delKey() default false;

  /** The header, or else the parameter, of a token. Default: semel.token.header. */
  String headerName() default "";

  /** Without a key or token the call is refused; otherwise it runs unguarded. */
  boolean mandatory() default true;

  /** What a repeat of finished work gets. */
  Duplicate duplicate() default Duplicate.REPLAY;

  /** What the record says after an exception. */
  OnException onException() default OnException.RELEASE;

  /** An owner that goes silent leaves the work in doubt, until SEMEL.RESOLVE: for payments. */
  boolean inDoubtOnSilence() default false;

  /** SpEL for what must be equal in repeats; empty: all arguments (not for MQ); none: nothing. */
  String fingerprint() default "";

  /**
   * Names what does the work, so that a renamed method or class still finds its records; empty: its
   * class, name and types of parameters. Another operation under the same key is a Mismatch.
   */
  String operation() default "";

  /** Names of parameters that are no part of the payload, besides those of docs/identity.md. */
  String[] leaveOut() default {};

  /** MQ: after so many tries a message is a dead letter. */
  int attempts() default 16;
}
