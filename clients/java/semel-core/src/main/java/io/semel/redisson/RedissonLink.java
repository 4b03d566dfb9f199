package io.semel.redisson;

import io.netty.resolver.DefaultAddressResolverGroup;
import io.semel.Link;
import io.semel.ServerError;
import io.semel.Unreachable;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.client.RedisClient;
import org.redisson.client.RedisClientConfig;
import org.redisson.client.RedisConnection;
import org.redisson.client.RedisException;
import org.redisson.client.RedisTimeoutException;
import org.redisson.client.codec.ByteArrayCodec;
import org.redisson.client.protocol.RedisCommand;
import org.redisson.client.protocol.decoder.ObjectListReplayDecoder;

/**
 * Redisson: short commands on its own connections; waits and bound claims on connections of a client
 * of their own. It has no public way to send a command that it does not know, so this uses
 * Redisson.getCommandExecutor(), as its own modules do.
 */
public final class RedissonLink implements Link {
  private final Redisson redisson;
  private final RedisClientConfig own;
  private final AtomicLong generation = new AtomicLong();
  private RedisClient client;
  private RedisConnection bound;

  /** `own`: how connections that wait are opened; null: calls that wait poll instead. */
  public RedissonLink(RedissonClient redisson, RedisClientConfig own) {
    if (!(redisson instanceof Redisson)) {
      throw new IllegalArgumentException("not a Redisson of its own kind, but a "
          + redisson.getClass().getName());
    }
    this.redisson = (Redisson) redisson;
    this.own = own;
    RedissonOptions.check(this.redisson.getConfig(), own);
  }

  @Override
  public boolean hasOwnConnections() {
    return own != null;
  }

  private static RedisCommand<Object> command(List<byte[]> words) {
    String name = new String(words.get(0), StandardCharsets.US_ASCII);
    // These answer with a word or a number, the others with a map.
    return name.equals("SEMEL.NAMESPACE") || name.equals("SEMEL.ISSUE")
        || name.equals("SEMEL.FORGET") || name.equals("SEMEL.RESOLVE")
        ? new RedisCommand<>(name)
        : new RedisCommand<>(name, new ListDecoder());
  }

  @SuppressWarnings({"unchecked", "rawtypes"})
  private static final class ListDecoder extends ObjectListReplayDecoder {}

  private static Object[] arguments(List<byte[]> words) {
    return words.subList(1, words.size()).toArray();
  }

  /** What is given up is cancelled: Redisson would go on sending it, for nobody. */
  private Object await(CompletionStage<Object> stage, long timeoutMs) {
    CompletableFuture<Object> reply = stage.toCompletableFuture();
    try {
      return reply.get(timeoutMs, TimeUnit.MILLISECONDS);
    } catch (TimeoutException late) {
      reply.cancel(true);
      throw gone("no reply after " + timeoutMs + " ms", late);
    } catch (InterruptedException interrupted) {
      reply.cancel(true);
      Thread.currentThread().interrupt();
      throw gone("interrupted", interrupted);
    } catch (ExecutionException error) {
      throw told(error.getCause());
    }
  }

  /** An error reply has no class of its own: it is what is neither a timeout nor a connection. */
  private RuntimeException told(Throwable error) {
    boolean reply = error.getCause() == null && error.getClass() == RedisException.class
        || error.getClass().getSimpleName().matches("Redis(NoScript|Loading|TryAgain|ClusterDown|"
            + "OutOfMemory|ReadonlyException|Busy|Auth|WrongPassword).*");
    if (reply && !(error instanceof RedisTimeoutException)) {
      String text = String.valueOf(error.getMessage());
      int end = text.indexOf(". channel:");
      if (end >= 0) text = text.substring(0, end);
      // Redisson takes the first word off this one.
      boolean isCut = error.getClass().getSimpleName().startsWith("RedisOutOfMemory")
          && !text.startsWith("OOM");
      return new ServerError(isCut ? "OOM " + text : text);
    }
    return gone("no reply: " + error, error);
  }

  private Unreachable gone(String text, Throwable error) {
    generation.incrementAndGet();
    return new Unreachable(text, error);
  }

  @Override
  public Object call(List<byte[]> words, long timeoutMs) {
    try {
      return await(redisson.getCommandExecutor().writeAsync((String) null, ByteArrayCodec.INSTANCE,
          command(words), arguments(words)), timeoutMs);
    } catch (RedisException error) {
      throw told(error);
    }
  }

  /** Not by connect(), which forgets that its thread was interrupted. */
  private synchronized RedisConnection open(long timeoutMs) {
    if (own == null) throw new UnsupportedOperationException("no configuration of its own");
    try {
      if (client == null) {
        // Without one, Redisson looks for an epoll transport that is not always there.
        if (own.getResolverGroup() == null) {
          own.setResolverGroup(DefaultAddressResolverGroup.INSTANCE);
        }
        client = RedisClient.create(own);
      }
      CompletionStage<RedisConnection> made = client.connectAsync();
      try {
        return (RedisConnection) await(made.thenApply(Object.class::cast), timeoutMs);
      } catch (Unreachable leaves) {
        made.whenComplete((late, error) -> {
          if (late != null) late.closeAsync();
        });
        throw leaves;
      }
    } catch (RedisException error) {
      throw gone("no connection: " + error, error);
    }
  }

  private Object send(RedisConnection connection, List<byte[]> words, long timeoutMs) {
    return await(connection.async(timeoutMs, ByteArrayCodec.INSTANCE, command(words),
        arguments(words)), timeoutMs);
  }

  @Override
  public Object callAlone(List<byte[]> words, long timeoutMs) {
    RedisConnection connection = open(timeoutMs);
    try {
      return send(connection, words, timeoutMs);
    } finally {
      connection.closeAsync();
    }
  }

  @Override
  public Object callBound(List<byte[]> words, long timeoutMs) {
    RedisConnection connection;
    synchronized (this) {
      if (bound == null) bound = open(timeoutMs);
      connection = bound;
    }
    try {
      return send(connection, words, timeoutMs);
    } catch (Unreachable error) {
      synchronized (this) {
        if (bound == connection) bound = null;
      }
      connection.closeAsync();
      throw error;
    }
  }

  @Override
  public long generation() {
    return generation.get();
  }

  @Override
  public synchronized void close() {
    if (client != null) client.shutdownAsync();
  }
}
