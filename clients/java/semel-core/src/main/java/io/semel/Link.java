package io.semel;

import java.util.List;

/**
 * How commands reach the node: through the Redis client that the application has already. All
 * methods may be called from several threads.
 *
 * <p>A reply is null, a byte[], a Long, a Boolean, a Double or a List of these; a map is the List of
 * its names and values in turn. An error reply is thrown as ServerError, a missing one as
 * Unreachable.
 */
public interface Link extends AutoCloseable {
  /** Sends one command that the node answers at once. */
  Object call(List<byte[]> words, long timeoutMs);

  /**
   * Sends a command that the node may answer late, on a connection that nobody else uses meanwhile.
   * When the call ends without a reply, so does the connection, and the node forgets the waiter.
   *
   * @throws UnsupportedOperationException if this client gives no connection of its own
   */
  Object callAlone(List<byte[]> words, long timeoutMs);

  /**
   * Sends a claim with BIND on the connection that lasts as long as this link does.
   *
   * @throws UnsupportedOperationException if this client gives no connection of its own
   */
  Object callBound(List<byte[]> words, long timeoutMs);

  /** Whether callAlone() and callBound() can be used. */
  default boolean hasOwnConnections() {
    return true;
  }

  /** Grows when a connection was opened again: the node may have forgotten what it was told. */
  long generation();

  /** Ends the connections that this link has opened; the application's client stays open. */
  @Override
  void close();
}
