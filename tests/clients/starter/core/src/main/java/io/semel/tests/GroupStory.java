package io.semel.tests;

import io.semel.Semel;
import io.semel.ServerError;
import io.semel.Unreachable;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;

/** A story in three acts, each of which runs beside those of all other stories. */
abstract class GroupStory implements AutoCloseable {
  private final String title;
  final String driver;
  final String key;
  final Semel semel;

  /** `round`: of this run, so that no two have a key in common. */
  GroupStory(String title, String driver, int round) {
    this.title = title;
    this.driver = driver;
    key = title.replace(' ', '-') + "," + driver.replace(' ', '-') + "," + round;
    semel = GroupDrivers.semel(driver, "parent");
  }

  /** Before the leader is killed. */
  abstract void before() throws Exception;

  /** Begins when the leader is dead; others elect the next one meanwhile. */
  abstract void killed() throws Exception;

  /** When the killed node is back, and has what the others have. */
  abstract void back() throws Exception;

  String name() {
    return title + ", " + driver;
  }

  @Override
  public void close() throws Exception {
    semel.close();
  }

  /** Of a thread of its own. */
  static <T> CompletableFuture<T> start(Callable<T> work) {
    CompletableFuture<T> result = new CompletableFuture<>();
    Thread thread = new Thread(() -> {
      try {
        result.complete(work.call());
      } catch (Throwable error) {
        result.completeExceptionally(error);
      }
    });
    thread.setDaemon(true);
    thread.start();
    return result;
  }

  /** Within twice the patience of a call. */
  static <T> T get(CompletableFuture<T> result) throws Exception {
    return result.get(2 * GroupDrivers.PATIENCE.toSeconds(), TimeUnit.SECONDS);
  }

  static Map<String, String> fields(Object reply) {
    Map<String, String> found = new HashMap<>();
    List<?> parts = (List<?>) reply;
    for (int i = 0; i + 1 < parts.size(); i += 2) {
      found.put(text(parts.get(i)), text(parts.get(i + 1)));
    }
    return found;
  }

  /** The reply of one command, which Link and Semel.command() send once. */
  static Object patient(Callable<Object> command) throws Exception {
    AtomicReference<Object> reply = new AtomicReference<>();
    Report.until(() -> {
      try {
        reply.set(command.call());
      } catch (Unreachable again) {
        return false;
      } catch (ServerError error) {
        if (!error.isTransient()) throw error;
        return false;
      }
      return true;
    });
    return reply.get();
  }

  static String text(Object part) {
    return part instanceof byte[] ? new String((byte[]) part, StandardCharsets.UTF_8)
        : String.valueOf(part);
  }
}
