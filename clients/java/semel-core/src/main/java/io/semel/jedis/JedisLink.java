package io.semel.jedis;

import io.semel.Link;
import io.semel.ServerError;
import io.semel.Unreachable;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.IntFunction;
import java.util.function.Supplier;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.commands.ProtocolCommand;
import redis.clients.jedis.exceptions.JedisConnectionException;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.exceptions.JedisException;

/**
 * Jedis: short commands on connections of the application's pool, for which its own timeouts count;
 * waits and bound claims on connections of their own, so that they take none from the pool.
 */
public final class JedisLink implements Link {
  /** The client of a cluster, such as {@code cluster::sendCommand} of a JedisCluster. */
  @FunctionalInterface
  public interface Cluster {
    /** `key`: by which the client finds the node. */
    Object send(byte[] key, ProtocolCommand command, byte[]... arguments);
  }

  private static final int CONNECT_MS_MAX = 10_000;
  private final Cluster cluster;
  private final Supplier<Jedis> pool;
  private final IntFunction<Jedis> own;
  private final AtomicLong generation = new AtomicLong();
  private final Object boundLock = new Object();
  private Jedis bound;

  /**
   * @param pool answers a connection that close() gives back, as JedisPool::getResource does
   * @param own opens a connection with a socket timeout in ms, as {@code ms -> new Jedis(host, port,
   *     1000, ms)} does; null: calls that wait poll instead
   */
  public JedisLink(Supplier<Jedis> pool, IntFunction<Jedis> own) {
    cluster = null;
    this.pool = pool;
    this.own = own;
  }

  /** The nodes of a group, by the client's own timeouts. Calls that wait poll, and bind fails. */
  public JedisLink(Cluster cluster) {
    this.cluster = cluster;
    pool = null;
    own = null;
  }

  private static Object send(Jedis jedis, List<byte[]> words) {
    return plain(jedis.sendCommand(command(words), arguments(words)));
  }

  private static ProtocolCommand command(List<byte[]> words) {
    byte[] name = words.get(0);
    return () -> name;
  }

  private static byte[][] arguments(List<byte[]> words) {
    return words.subList(1, words.size()).toArray(new byte[0][]);
  }

  /** In RESP3 it answers pairs of a class that older releases do not have. */
  private static Object plain(Object reply) {
    if (!(reply instanceof List)) return reply;
    List<Object> parts = new ArrayList<>();
    for (Object each : (List<?>) reply) {
      if (each instanceof Map.Entry) {
        parts.add(((Map.Entry<?, ?>) each).getKey());
        parts.add(plain(((Map.Entry<?, ?>) each).getValue()));
      } else {
        parts.add(plain(each));
      }
    }
    return parts;
  }

  private RuntimeException told(JedisException error) {
    if (error instanceof JedisDataException) return new ServerError(error.getMessage());
    generation.incrementAndGet();
    return new Unreachable("no reply: " + error, error);
  }

  @Override
  public Object call(List<byte[]> words, long timeoutMs) {
    return cluster == null ? callPooled(words) : callCluster(words);
  }

  private Object callCluster(List<byte[]> words) {
    try {
      // Any word does as the key: all slots are those of the node that leads.
      byte[] key = words.get(Math.min(1, words.size() - 1));
      return plain(cluster.send(key, command(words), arguments(words)));
    } catch (JedisException error) {
      throw told(error);
    }
  }

  private Object callPooled(List<byte[]> words) {
    try (Jedis jedis = pool.get()) {
      return send(jedis, words);
    } catch (JedisException error) {
      throw told(error);
    }
  }

  private void needsOwn() {
    if (own == null) throw new UnsupportedOperationException("no way to open a connection");
  }

  /** In a thread of its own, as a socket that is read does not hear of an interrupted caller. */
  @Override
  public Object callAlone(List<byte[]> words, long timeoutMs) {
    needsOwn();
    AtomicReference<Jedis> open = new AtomicReference<>();
    FutureTask<Object> task = new FutureTask<>(() -> {
      try (Jedis jedis = own.apply((int) Math.min(timeoutMs, Integer.MAX_VALUE))) {
        open.set(jedis);
        return send(jedis, words);
      }
    });
    Thread thread = new Thread(task, "semel-wait");
    thread.setDaemon(true);
    thread.start();
    try {
      return task.get(timeoutMs + CONNECT_MS_MAX, TimeUnit.MILLISECONDS);
    } catch (ExecutionException error) {
      if (error.getCause() instanceof JedisException) throw told((JedisException) error.getCause());
      if (error.getCause() instanceof RuntimeException) throw (RuntimeException) error.getCause();
      throw new Unreachable("no reply: " + error.getCause(), error.getCause());
    } catch (TimeoutException late) {
      disconnect(task, open.get());
      throw new Unreachable("no reply after " + timeoutMs + " ms", late);
    } catch (InterruptedException interrupted) {
      disconnect(task, open.get());
      Thread.currentThread().interrupt();
      throw new Unreachable("interrupted", interrupted);
    }
  }

  /** The node forgets the waiter with its connection. */
  private static void disconnect(FutureTask<?> task, Jedis jedis) {
    task.cancel(true);
    if (jedis == null) return;
    try {
      jedis.disconnect();
    } catch (JedisException closed) {
      return;
    }
  }

  @Override
  public boolean hasOwnConnections() {
    return own != null;
  }

  @Override
  public Object callBound(List<byte[]> words, long timeoutMs) {
    needsOwn();
    synchronized (boundLock) {
      try {
        if (bound == null) bound = own.apply((int) Math.min(timeoutMs, Integer.MAX_VALUE));
        return send(bound, words);
      } catch (JedisDataException error) {
        throw told(error);
      } catch (JedisConnectionException error) {
        if (bound != null) bound.close();
        bound = null;
        throw told(error);
      }
    }
  }

  @Override
  public long generation() {
    return generation.get();
  }

  @Override
  public void close() {
    synchronized (boundLock) {
      if (bound != null) bound.close();
      bound = null;
    }
  }
}
