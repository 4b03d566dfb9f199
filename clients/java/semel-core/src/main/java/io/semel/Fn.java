package io.semel;

/** Work that returns a value and may throw. */
@FunctionalInterface
public interface Fn<T, X extends Exception> {
  T run() throws X;
}
