package io.semel.lettuce;

import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisChannelHandler;
import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisConnectionStateAdapter;
import io.lettuce.core.RedisURI;
import io.lettuce.core.TimeoutOptions;
import io.lettuce.core.api.StatefulConnection;
import io.lettuce.core.cluster.RedisClusterClient;
import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.protocol.AsyncCommand;
import io.lettuce.core.protocol.Command;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.ProtocolKeyword;
import io.semel.Link;
import io.semel.ServerError;
import io.semel.Unreachable;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CancellationException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;

/**
 * Lettuce: three kinds of connections of the application's client, opened at their first use. One
 * for short commands, one for bound claims, and one for each call that waits. Those of a cluster's
 * client go to the node that leads.
 */
public final class LettuceLink implements Link {
  private static final int IDLE_MAX = 8;
  private static final long REFRESH_NANOS = TimeUnit.MILLISECONDS.toNanos(100);
  private final Supplier<? extends StatefulConnection<byte[], byte[]>> opener;
  private final Runnable unlisten;
  private final RedisClusterClient cluster;
  private final RedisClient client;
  private final AtomicLong refreshed = new AtomicLong(System.nanoTime());
  private final Map<AsyncCommand<byte[], byte[], Object>, Object> pending =
      new ConcurrentHashMap<>();
  private final AtomicLong generation = new AtomicLong();
  private final RedisConnectionStateAdapter listener = new RedisConnectionStateAdapter() {
    @Override
    public void onRedisDisconnected(RedisChannelHandler<?, ?> connection) {
      generation.incrementAndGet();
      // Lettuce would send them again by itself when it is connected again. A node that has lost its
      // memory must be told the namespaces before, so it is for the caller to ask again.
      pending.forEach((command, on) -> {
        if (on == connection) command.cancel(true);
      });
    }
  };
  private final Slot shared = new Slot();
  private final Slot bound = new Slot();
  private final Deque<StatefulConnection<byte[], byte[]>> idle = new ArrayDeque<>();
  private volatile boolean closed;

  private final class Slot {
    final ReentrantLock lock = new ReentrantLock();
    volatile StatefulConnection<byte[], byte[]> connection;

    StatefulConnection<byte[], byte[]> get(long timeoutMs) {
      StatefulConnection<byte[], byte[]> open = connection;
      if (open != null && !isOver(open)) return open;
      boolean mine = false;
      try {
        // Others do not queue behind a connect that hangs.
        mine = lock.tryLock(timeoutMs, TimeUnit.MILLISECONDS);
        if (!mine) throw new Unreachable("no connection after " + timeoutMs + " ms", null);
        if (connection != null && isOver(connection)) {
          connection.closeAsync();
          connection = null;
        }
        if (connection == null) connection = connect();
        return connection;
      } catch (InterruptedException interrupted) {
        Thread.currentThread().interrupt();
        throw new Unreachable("interrupted", interrupted);
      } finally {
        if (mine) lock.unlock();
      }
    }

    void close() {
      StatefulConnection<byte[], byte[]> open = connection;
      if (open != null) open.closeAsync();
    }
  }

  /** The client's own address. */
  public LettuceLink(RedisClient client) {
    this(client, null);
  }

  /** `uri`: where the node is, if the client has no address of its own. */
  public LettuceLink(RedisClient client, RedisURI uri) {
    opener = uri == null ? () -> client.connect(ByteArrayCodec.INSTANCE)
        : () -> client.connect(ByteArrayCodec.INSTANCE, uri);
    cluster = null;
    this.client = client;
    client.addListener(listener);
    unlisten = () -> client.removeListener(listener);
  }

  /**
   * The nodes of a group, which keep namespaces on disk: what the driver sends again by itself does
   * no harm there, and what is lost with a node is asked again after the timeout of a call. Has the
   * client look for the leader when a node does not answer.
   */
  public LettuceLink(RedisClusterClient client) {
    opener = () -> client.connect(ByteArrayCodec.INSTANCE);
    cluster = client;
    this.client = null;
    unlisten = () -> {};
  }

  /** With the option autoReconnect off, Lettuce never opens it again. */
  private boolean isOver(StatefulConnection<byte[], byte[]> connection) {
    return client != null && !connection.isOpen() && !client.getOptions().isAutoReconnect();
  }

  private StatefulConnection<byte[], byte[]> connect() {
    if (closed) throw new Unreachable("the link is closed", null);
    try {
      return opener.get();
    } catch (RuntimeException error) {
      lookForLeader();
      throw new Unreachable("no connection: " + error, error);
    }
  }

  private static ProtocolKeyword keyword(byte[] name) {
    return new ProtocolKeyword() {
      @Override
      public byte[] getBytes() {
        return name;
      }

      public String name() {
        return new String(name, java.nio.charset.StandardCharsets.US_ASCII);
      }

      @Override
      public String toString() {
        return name();
      }
    };
  }

  /**
   * By itself Lettuce looks only when it is told to, and never after a connection that it could not
   * open: then it goes on asking the node that has ended.
   */
  private void lookForLeader() {
    if (cluster == null) return;
    long last = refreshed.get();
    long now = System.nanoTime();
    if (now - last < REFRESH_NANOS || !refreshed.compareAndSet(last, now)) return;
    try {
      cluster.refreshPartitionsAsync();
    } catch (RuntimeException closed) {
      return;  // the application's client has ended; what the caller is told says so
    }
  }

  private Object send(StatefulConnection<byte[], byte[]> connection,
      List<byte[]> words, long timeoutMs) {
    CommandArgs<byte[], byte[]> args = new CommandArgs<>(ByteArrayCodec.INSTANCE);
    // A cluster's client needs a key. Any word does: all slots are those of the node that leads.
    if (words.size() > 1) args.addKey(words.get(1));
    for (byte[] each : words.subList(Math.min(2, words.size()), words.size())) args.add(each);
    AsyncCommand<byte[], byte[], Object> command = new AsyncCommand<>(
        new Command<>(keyword(words.get(0)), new ReplyOutput(), args));
    // Of a cluster's connection this is said of one node, which need not be the leader.
    if (cluster == null && !connection.isOpen()) throw new Unreachable("not connected", null);
    pending.put(command, connection);
    try {
      connection.dispatch(command);
      return command.get(timeoutMs, TimeUnit.MILLISECONDS);
    } catch (TimeoutException late) {
      command.cancel(true);
      lookForLeader();
      throw new Unreachable("no reply after " + timeoutMs + " ms", late);
    } catch (InterruptedException interrupted) {
      command.cancel(true);
      Thread.currentThread().interrupt();
      throw new Unreachable("interrupted", interrupted);
    } catch (ExecutionException error) {
      throw told(error.getCause());
    } catch (CancellationException lost) {
      throw new Unreachable("the connection was lost", lost);
    } catch (RuntimeException error) {
      throw told(error);
    } finally {
      pending.remove(command);
    }
  }

  private RuntimeException told(Throwable error) {
    if (error instanceof RedisCommandExecutionException) return new ServerError(error.getMessage());
    lookForLeader();
    return new Unreachable("no reply: " + error, error);
  }

  @Override
  public Object call(List<byte[]> words, long timeoutMs) {
    return send(shared.get(timeoutMs), words, timeoutMs);
  }

  @Override
  public Object callBound(List<byte[]> words, long timeoutMs) {
    return send(bound.get(timeoutMs), words, timeoutMs);
  }

  @Override
  public Object callAlone(List<byte[]> words, long timeoutMs) {
    StatefulConnection<byte[], byte[]> own;
    synchronized (idle) {
      own = idle.poll();
    }
    if (own == null) own = connect();
    // Of a cluster's connection this is said of one node.
    if (cluster == null && !own.isOpen()) {
      own.closeAsync();
      own = connect();
    }
    setTimeout(own, words.get(0), timeoutMs);
    boolean answered = false;
    try {
      Object reply = send(own, words, timeoutMs);
      answered = true;
      return reply;
    } catch (ServerError error) {
      answered = true;
      throw error;
    } finally {
      release(own, answered);
    }
  }

  /** TimeoutOptions, which Spring sets, would end a wait after the time of a short command. */
  private void setTimeout(StatefulConnection<byte[], byte[]> own, byte[] name, long timeoutMs) {
    ClientOptions options = own.getOptions();
    TimeoutOptions timeouts = options == null ? null : options.getTimeoutOptions();
    if (timeouts == null || !timeouts.isTimeoutCommands()) return;
    if (timeouts.isApplyConnectionTimeout()) {
      own.setTimeout(Duration.ofMillis(timeoutMs));
      return;
    }
    TimeoutOptions.TimeoutSource source = timeouts.getSource();
    long fixed = source.getTimeout(new Command<>(keyword(name), new ReplyOutput()));
    if (fixed <= 0 || source.getTimeUnit().toMillis(fixed) >= timeoutMs) return;
    release(own, true);
    throw new UnsupportedOperationException("TimeoutOptions end each command too early for a wait");
  }

  /** A connection without its reply may get it later: it is not used again. */
  private void release(StatefulConnection<byte[], byte[]> own, boolean answered) {
    synchronized (idle) {
      if (answered && !closed && idle.size() < IDLE_MAX) {
        idle.push(own);
        return;
      }
    }
    own.closeAsync();
  }

  @Override
  public long generation() {
    return generation.get();
  }

  @Override
  public void close() {
    closed = true;
    unlisten.run();
    shared.close();
    bound.close();
    synchronized (idle) {
      for (StatefulConnection<byte[], byte[]> each : idle) each.closeAsync();
      idle.clear();
    }
  }
}
